#!/usr/bin/env bash
# Real trials of equal rows on a budget of time: how many runs call any two of them different, after a look after every block. Needs root
# and zram. Prints a row of a Markdown table.
#   FSTONE=target/release/fstone ROWS=4 RUNS=50 BUDGET=16s FIRST_SEED=1 bench/calibrate-budget.sh
set -euo pipefail
cd "$(dirname "$0")/calibrate"
fstone=$(realpath "${FSTONE:?the fstone to calibrate}")
rows=${ROWS:-4} runs=${RUNS:-50} budget=${BUDGET:-16s} first=${FIRST_SEED:-1}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/fstone-budget.XXXXXX")
export FSTONE_STORE=$scratch/store.db FSTONE_WORK_DIRECTORY=$scratch/work
trap '"$fstone" clean >/dev/null || true; rm -rf --one-file-system "$scratch"' EXIT
names=(one two three four)
only=()
for name in "${names[@]:0:rows}"; do only+=(--only "filesystem=$name"); done

# A resolution of next to nothing, so that no run ends because rows are shown to be alike.
wrong=0 made=0 trials=0
for seed in $(seq "$first" $((first + runs - 1))); do
  "$fstone" run ./names.toml --seed "$seed" --budget "$budget" --resolution 0.01% "${only[@]}" --output "$scratch" \
    >"$scratch/out" 2>"$scratch/log" || { tail -n 3 "$scratch/log" >&2; continue; }
  "$fstone" report --format json --output "$scratch/report.json"
  read -r differ of < <(sqlite3 -separator ' ' :memory: "
    WITH report AS (SELECT readfile('$scratch/report.json') AS text)
    SELECT (SELECT sum(value ->> 'differs') FROM report, json_each(text, '\$.comparisons')),
           (SELECT sum(value ->> 'completed') FROM report, json_each(text, '\$.rows'))")
  made=$((made + 1)) trials=$((trials + of)) wrong=$((wrong + (differ > 0)))
done
echo "| $rows | $budget | $made | $trials | $wrong ($((100 * wrong / (made > 0 ? made : 1))) %) |"

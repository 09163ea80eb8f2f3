#!/usr/bin/env bash
# Real trials through the real lab: rows that are the same, and rows whose devices differ by a known 5 %, each compared pair by
# pair. Needs root, zram and the blkio controller of cgroup v1. Prints what was found, in Markdown.
#   FSTONE=target/release/fstone bench/calibrate.sh [STORE]
# The store is kept when it is named; runs that it has already are not made again.
set -euo pipefail
cd "$(dirname "$0")/calibrate"
fstone=$(realpath "${FSTONE:?the fstone to calibrate}")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/fstone-calibrate.XXXXXX")
export FSTONE_STORE=${1:-$scratch/store.db} FSTONE_WORK_DIRECTORY=$scratch/work
trap '"$fstone" clean >/dev/null || true; rm -rf --one-file-system "$scratch"' EXIT
[ -w /sys/fs/cgroup/blkio/blkio.throttle.read_iops_device ] || {
  echo "calibrate: no /sys/fs/cgroup/blkio/blkio.throttle.read_iops_device; the known 5 % needs it (cgroup v1, root)" >&2
  exit 1
}

# A run that something else on the machine ends (a device probed at the wrong moment) goes on where it was.
complete() {
  ${SHARED:-} "$fstone" run "./$1.toml" --seed "$2" --output "$scratch" >/dev/null 2>"$scratch/log" && return
  for _ in 1 2 3 4 5; do
    sleep 2
    "$fstone" clean >/dev/null || true
    ${SHARED:-} "$fstone" run "./$1.toml" --resume --output "$scratch" >/dev/null 2>"$scratch/log" && return
  done
  tail -n 3 "$scratch/log" >&2
  return 1
}

# STUDIES: how many runs of which.
for study in ${STUDIES:-same:10 slower:5}; do
  have=0
  [ ! -e "$FSTONE_STORE" ] || have=$("$fstone" list runs | grep -cE " ${study%:*} +finished " || true)
  for seed in $(seq $((have + 1)) "${study#*:}"); do
    began=$SECONDS load=$(cut -d' ' -f1 /proc/loadavg)
    complete "${study%:*}" "$seed"
    echo "calibrate: ${study%:*}, seed $seed: $((SECONDS - began)) s, load $load to $(cut -d' ' -f1 /proc/loadavg)" >&2
  done
done

# The comparisons of the reports, in one table: what the two rows are called, and the second's shift against the first.
database=$scratch/comparisons.db
sqlite3 "$database" "CREATE TABLE pairs (study, differs, shift, low, high)"
"$fstone" list runs | awk '/ (same|slower) +finished / {print $1}' | while read -r run; do
  "$fstone" report "$run" --format json --output "$scratch/report.json"
  sqlite3 "$database" "
    WITH report AS (SELECT readfile('$scratch/report.json') AS text),
    rows AS (SELECT value ->> 'cell' AS cell, value ->> 'label' AS label FROM report, json_each(text, '\$.rows')),
    pairs AS (SELECT value AS pair, value ->> 'baseline' AS baseline FROM report, json_each(text, '\$.comparisons')),
    -- Told against the row that is named first in the study, whichever the report tells it against.
    told AS (
      SELECT text ->> '\$.run.study' AS study, pair ->> 'differs' AS differs, pair ->> '\$.relative.estimate' AS shift,
             pair ->> '\$.relative.interval.low' AS low, pair ->> '\$.relative.interval.high' AS high,
             label LIKE 'one%' OR label LIKE 'full%' AS forward
      FROM report, pairs JOIN rows ON cell = baseline)
    INSERT INTO main.pairs SELECT study, differs, iif(forward, shift, 1 / (1 + shift) - 1),
                           iif(forward, low, 1 / (1 + high) - 1), iif(forward, high, 1 / (1 + low) - 1) FROM told"
done
sqlite3 "$database" "
  SELECT printf('Same filesystem under two names: %d comparisons, %d called different (%.1f %%); %d of the 95 %% intervals contain 0 (%.1f %%).',
                count(*), sum(differs), 100.0 * sum(differs) / count(*), sum(low <= 0 AND high >= 0),
                100.0 * sum(low <= 0 AND high >= 0) / count(*)) FROM pairs WHERE study = 'same';
  SELECT printf('Device 5 %% slower: %d comparisons, %d found (%.1f %%), none of them the wrong way round: %s; median of the shifts %.2f %%; %d of the 95 %% intervals hold -5 %% (%.1f %%).',
                count(*), sum(differs AND shift < 0), 100.0 * sum(differs AND shift < 0) / count(*),
                iif(sum(differs AND shift > 0) = 0, 'yes', 'no'),
                100.0 * (SELECT shift FROM pairs WHERE study = 'slower' ORDER BY shift
                         LIMIT 1 OFFSET (SELECT count(*) / 2 FROM pairs WHERE study = 'slower')),
                sum(low <= -0.05 AND high >= -0.05), 100.0 * sum(low <= -0.05 AND high >= -0.05) / count(*))
  FROM pairs WHERE study = 'slower'"

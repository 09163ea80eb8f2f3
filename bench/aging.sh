#!/usr/bin/env bash
# What age does: the ratio aged/fresh per filesystem and drive, with its 95 % interval over REPEATS histories. `read old files` is the
# ratio to files of the same profile that were written once. In virtual time, on the models of drives in MODELS.
# Usage: [FSTONE=target/release/fstone] [SIZE="1 GiB"] [OVERWRITES=4] [UTILIZATION="60 %"] [PROFILE=agrawal] [FILESYSTEMS="ext4 xfs btrfs f2fs"] \
#        [PLACE=/var/tmp] [REPEATS=3] [MODELS="hdd-today sata-ssd"] [LOADS="tree small-file large-file mail"] \
#        [LEVELS="fresh once aged"] bench/aging.sh [WORDS OF fstone run]
# LOADS=none ages alone, and shows how long that takes, which targets were reached, and how long a second run takes, whose trials are all
# copies. On btrfs or XFS, copies go by reference. MODELS= ages on the running kernel, as root.
# LOADS=targets ages with each of PROFILES (all), and shows in a table which targets were reached, as ranges over the histories.
set -euo pipefail
TMPDIR=${PLACE:-/var/tmp}
# shellcheck source=bench/compare-common.sh
. "$(dirname "$0")/compare-common.sh"
begin
cd "$place"
if [ "${LOADS-}" = targets ]; then
    : "${SIZE=512 MiB}" "${OVERWRITES=1}" "${UTILIZATION=75 %}" "${FILESYSTEMS=ext4}" "${MODELS=sata-ssd}"
fi
export XDG_CACHE_HOME=$place/cache FSTONE_STORE=$place/fstone.db FSTONE_WORK_DIRECTORY=$place/work
models=${MODELS-hdd-today sata-ssd}
loads=${LOADS:-tree small-file large-file mail}
words=("$@")
[ -z "$models" ] || words+=(--exact --perturbed 0)

# study NAME LEVELS: the part that all studies share.
study() {
    echo "title = \"$1\""
    echo "seed = 1"
    echo "repeats = ${REPEATS:-3}"
    if [ -n "$models" ]; then
        echo "[factor.device]"
        for model in $models; do echo "\"$model\" = { model = \"$model\", size = \"${SIZE:-1 GiB}\" }"; done
    else
        echo "device = { loop = { size = \"${SIZE:-1 GiB}\" } }"
    fi
    echo "[factor.filesystem]"
    for kind in ${FILESYSTEMS:-ext4 xfs btrfs f2fs}; do
        made=
        [ "$kind" != ext4 ] || made=', mkfs = "-E lazy_itable_init=0,lazy_journal_init=0"'
        for level in $2; do
            case $level in
            fresh) echo "\"$kind fresh\" = { type = \"$kind\"$made }"; continue ;;
            once) overwrites=$(echo "${UTILIZATION:-60 %}" | awk '{ print $1 / 100 }') ;;
            aged) overwrites=${OVERWRITES:-4} ;;
            esac
            echo "\"$kind $level\" = { type = \"$kind\"$made, age = { profile = \"${PROFILE:-agrawal}\", utilization = \"${UTILIZATION:-60 %}\", overwrites = $overwrites } }"
        done
    done
}

steps_of_tree() {
    cat <<'STEPS'
[variables]
tree = "{source:2000}"
[[step]]
name = "read old files"
command = { shell = true, run = "[ ! -d .aged ] || tar cf /dev/zero .aged" }
show = "time"
[[step]]
name = "archive"
copy-in = { source = "{tree}", target = "linux.tar" }
[[step]]
sync = {}
[[step]]
name = "unpack"
command = { shell = true, run = "mkdir linux && tar xf linux.tar --strip-components=1 -C linux && sync" }
show = "time"
[[step]]
remount = {}
[[step]]
name = "re-read"
command = ["tar", "cf", "/dev/zero", "linux"]
show = "time"
STEPS
}

# The loads of the built-in studies, with fewer and smaller files than in their quick forms.
steps_of() {
    case $1 in
    none) printf '[[step]]\nsync = {}\nshow = "time"\n' ;;
    tree) ;;
    small-file)
        sed 's/num_files=.*/num_files=250/; s/num_dirs=.*/num_dirs=100/' "$root/studies/small-file.ffsb" >small-file.ffsb
        printf '[[step]]\nload = { ffsb = "small-file.ffsb" }\nshow = "transactions per second"\n'
        ;;
    large-file)
        sed 's/\(max\|min\)_filesize=.*/\1_filesize=4194304/' "$root/studies/large-file.ffsb" >large-file.ffsb
        printf '[[step]]\nload = { ffsb = "large-file.ffsb" }\nshow = "write throughput"\n'
        ;;
    mail)
        cp "$root/studies/mail.workload" .
        printf '[[step]]\nload = { workload = "mail.workload" }\nshow = "deliver operations per second"\n'
        ;;
    esac
}

# ratios STEP METRIC OLD NEW: of each filesystem and drive, by pairs of trials of one repetition.
ratios() {
    "$fstone" report --format csv >figures.csv
    python3 - "$@" <<'PYTHON' | while read -r row; do
import collections, csv, sys
step, metric, old, new = sys.argv[1:]
of = collections.defaultdict(dict)
for row in csv.DictReader(open("figures.csv")):
    if row["outcome"] == "completed" and (row["step"], row["metric"]) == (step, metric):
        kind, level = row["factor: filesystem"].rsplit(" ", 1)
        value = float(row["value"]) * (1000 if metric == "time" else 1)
        of[kind, row.get("factor: device", ""), row["repetition"]][level] = value
rows = collections.defaultdict(list)
for (kind, device, _), values in of.items():
    if old in values and new in values:
        rows[f"{kind} | {device}"].append(f"{values[old]!r} {values[new]!r}")
for row, pairs in rows.items():
    print(f"{row};{';'.join(pairs)}")
PYTHON
        echo "| $1 | ${row%%;*} | $(echo "${row#*;}" | tr ';' '\n' | paired) |"
    done
}

run() {
    "$fstone" run ./study.toml "${words[@]}" "$@" >run 2>&1 || { cat run >&2; exit 1; }
    grep -h 'age:\|failed\|skipped' run || true
}

if [ "$loads" = targets ]; then
    echo "|profile|in use|written/target|χ² of sizes|ages|depths|"
    echo "|---|--:|--:|--:|--:|--:|"
    for PROFILE in ${PROFILES:-$(cd "$root/ages" && basename -s .toml -- *.toml)}; do
        # It has 20,000 directories.
        [ "$PROFILE" != dabre ] || SIZE="1 GiB"
        { study targets aged; steps_of none; } >study.toml
        "$fstone" age rm --all >/dev/null
        run >&2
        for name in $("$fstone" age list | awk 'NR > 1 { print $1 }'); do "$fstone" age show "$name"; done >shown
        python3 - "$PROFILE" <<'PYTHON'
import re, sys
shown = open("shown").read()
sizes = {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30}
wrote = re.findall(r"wrote (\S+) (\S+), target (\S+) (\S+)", shown)
columns = [[float(value) for value in re.findall(rf"^{name} +(\S+)$", shown, re.M)]
           for name in ("utilization", "χ² of sizes", "χ² of ages", "χ² of depths")]
columns.insert(1, [float(a) * 2 ** sizes[b] / float(c) / 2 ** sizes[d] for a, b, c, d in wrote])
def digits(value): return f"{value:.0f}" if value >= 10 else f"{value:.2f}" if value < 1 else f"{value:.1f}"
def ends(column, told): return "–".join(dict.fromkeys([told(min(column)), told(max(column))]))
told = [lambda value: f"{value:.1f}", lambda value: f"{value:.2f}"] + [digits] * 3
print(f"|{sys.argv[1]}|{'|'.join(ends(*both) for both in zip(columns, told))}|")
for line in dict.fromkeys(re.findall(r"^overwritten in place .*$", shown, re.M)): print(line, file=sys.stderr)
PYTHON
        SIZE=${SIZE/1 GiB/512 MiB}
    done
    exit
fi
if [ "$loads" = none ]; then
    { study aged "fresh aged"; steps_of none; } >study.toml
    for what in "with ageing" "again, with copies"; do
        from=$(date +%s.%N)
        run
        echo "$what: $(echo "$(date +%s.%N) - $from" | bc) s in all"
        "$fstone" report --format json |
            jq -r '.rows[] | "  \(.label): \(.outcome), a trial of \((.trials[0].duration_ns // 0) / 1e9) s"'
    done
else
    echo "| load (times in ms) | filesystem | drive | before | after | ratio |"
    echo "|---|---|---|--:|--:|--:|"
    for load in $loads; do
        if [ "$load" = tree ]; then
            { study tree "${LEVELS:-fresh once aged}"; steps_of_tree; } >study.toml
            run >&2
            ratios "read old files" time once aged
            ratios unpack time fresh aged
            ratios re-read time fresh aged
            ratios re-read time fresh once | sed 's/re-read/re-read, written once/'
            continue
        fi
        { study "$load" "fresh aged"; steps_of "$load"; } >study.toml
        # They would fill what is free.
        case $load in small-file) duration=250ms ;; large-file) duration=100ms ;; *) duration=1s ;; esac
        run --duration "$duration" >&2
        case $load in
        small-file) ratios load "transactions per second" fresh aged ;;
        large-file) ratios load "write throughput" fresh aged ;;
        mail) ratios load "deliver operations per second" fresh aged ;;
        esac | sed "s/load/$load/"
    done
fi
"$fstone" age list
[ "$loads" != none ] || for name in $("$fstone" age list | awk 'NR > 1 { print $1 }'); do "$fstone" age show "$name"; done

#!/usr/bin/env bash
# What it costs a load to be watched for power cuts: the log of the guest's disk, the stamps in the data, and the list of what the
# kernel acknowledged. Each load runs in turns without and with the step `power-cut`, in user-mode Linux, on an image in memory, where
# nothing waits for a disk and the share is largest. `slow` is `commit` on a disk that takes so long for each request that about
# 1,000 fsyncs a second are left, what a fast drive does; `paced` is `commit` with a rate of 1,000 a second, where the latencies and the
# CPU time show what is added. Needs user-mode Linux and 4 GiB of memory; no root.
# `states` is another matter: how many states a second the study `durability --quick` as it is tries, by filesystem, medians of ROUNDS.
# Usage: [FSTONE=target/release/fstone] [ROUNDS=10] [LOADS="write commit slow paced"] [LATENCY=150us] bench/power-cuts.sh
#        [ROUNDS=3] LOADS=states [FILESYSTEMS="ext4 xfs btrfs f2fs"] bench/power-cuts.sh
set -euo pipefail
TMPDIR=${TMPDIR:-/dev/shm}
# shellcheck source=bench/compare-common.sh
. "$(dirname "$0")/compare-common.sh"
rounds=${ROUNDS:-10}
read -ra loads <<<"${LOADS:-write commit slow paced}"
begin
cd "$place"

# One file of 512 MiB, written from its start to its end through the page cache, and synced.
cat >write.workload <<'END'
name = "sequential write"
data = { stamped = true }
[[fileset]]
name = "file"
files = 0
size = "512 MiB"
[[phase]]
name = "write"
stop = { operations = 1 }
[[phase.group]]
name = "writer"
[[phase.group.sequence]]
create = { block = "1 MiB" }
END

# Pages of a table, each durable before the next.
cat >commit.workload <<'END'
name = "write and fsync"
data = { stamped = true }
[[fileset]]
name = "table"
files = 1
size = "16 MiB"
[[phase]]
name = "commit"
stop = { operations = 5000 }
[[phase.group]]
name = "writer"
open = "keep-open"
fsync = { every = 1 }
[[phase.group.mix]]
write = { size = "4 KiB", block = "4 KiB", pattern = "random" }
END

sed -e 's/operations = 5000/operations = 2000/' commit.workload >slow.workload
sed -e 's/^fsync = .*/&\nrate = 1000/' slow.workload >paced.workload

#   study LOAD WATCHED
study() {
    cat <<END
title = "$1"
repeats = 1
device = { loop = { size = "1 GiB" } }
[factor.filesystem]
"ext4" = { type = "ext4", mkfs = "-E lazy_itable_init=0,lazy_journal_init=0" }
[[step]]
name = "load"
load = { workload = "$1.workload" }
show = ["operations per second"]
END
    if [ "$2" = watched ]; then
        printf '[[step]]\npower-cut = { states = 1, log = "2 GiB" }\nshow = ["promises checked"]\n'
    fi
}

# Figures of the load, a line each.
#   figures LOAD plain|watched METRIC...
figures() {
    rm -f store.db*
    local disk=()
    [ "$1" != slow ] || disk=(--guest-disk "latency=${LATENCY:-150us}")
    "$fstone" --store store.db --work-directory "$place/work" run "./$1-$2.toml" --executor uml "${disk[@]}" >said 2>&1 ||
        { cat said >&2; return 1; }
    "$fstone" --store store.db report --format json | jq -r '.rows[0].trials[0].figures as $all | $ARGS.positional[] as $metric
        | $all[] | select(.step == "load" and .metric == $metric) | .value' --args "${@:3}"
}

# States a second of the built-in study on a filesystem.
states() {
    rm -f store.db*
    "$fstone" --store store.db --work-directory "$place/work" run durability --quick --only "filesystem=$1" --executor uml \
        >said 2>&1 || { cat said >&2; return 1; }
    "$fstone" --store store.db report --format json | jq -r '[.rows[0].trials[0].figures[] | select(.step == "power-cut")
        | {(.metric): .value}] | add | "\(.["crash states"] / .time) \(.["promises checked"]) \(.["promises lost"])"'
}

if [ "${loads[*]}" = states ]; then
    read -ra filesystems <<<"${FILESYSTEMS:-ext4 xfs btrfs f2fs}"
    echo "| filesystem | states a second | promises checked | lost |"
    echo "|---|---|---|---|"
    for filesystem in "${filesystems[@]}"; do
        for ((round = 0; round < rounds; round++)); do states "$filesystem"; done >rounds
        cat rounds >&2
        awk '{ lost += $3 } END { print lost }' rounds >lost
        echo "| $filesystem | $(cut -d ' ' -f 1 rounds | median) | $(cut -d ' ' -f 2 rounds | median) | $(cat lost) |"
    done
    circumstances "load $(cut -d ' ' -f 1-3 /proc/loadavg)"
    exit
fi

echo "| load | without | watched | watched / without (95 % interval) |"
echo "|---|---|---|---|"
for load in "${loads[@]}"; do
    metrics=("operations per second") per=1
    case $load in
    write) metrics=(throughput) per=1048576 what="sequential write, MiB/s" ;;
    commit) what="write of 4 KiB and fsync, per second" ;;
    slow) what="the same on a disk that takes its time, per second" ;;
    paced)
        metrics=("operations per second" "write latency p50" "fsync latency p50" "process CPU" CPU)
        what="the same at 1,000 a second" ;;
    *) echo "LOADS: write, commit, slow, paced, or states alone, not $load" >&2; exit 2 ;;
    esac
    for kind in plain watched; do study "$load" $kind >"$load-$kind.toml"; done
    for ((round = 0; round < rounds; round++)); do
        # Who comes first alternates, so that drift favours neither.
        order=(plain watched)
        ((round % 2)) && order=(watched plain)
        for kind in "${order[@]}"; do figures "$load" "$kind" "${metrics[@]}" >"$kind-figures"; done
        paste -d ' ' plain-figures watched-figures | awk -v per=$per '{ print $1 / per, $2 / per > ("pairs-" NR) ; print }' |
            sed "s/^/$load: /" >&2
        for ((number = 1; number <= ${#metrics[@]}; number++)); do cat "pairs-$number" >>"$load-$number"; done
    done
    for ((number = 1; number <= ${#metrics[@]}; number++)); do
        of=
        [ ${#metrics[@]} = 1 ] || of=": ${metrics[number - 1]}"
        echo "| $what$of | $(paired <"$load-$number") |"
    done
done
circumstances "load $(cut -d ' ' -f 1-3 /proc/loadavg)"

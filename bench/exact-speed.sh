#!/usr/bin/env bash
# How fast trials in virtual time are in real time: requests to the drive per second and core, the life of a guest that does nothing, and
# what as many trials at once as there are cores gain over one. For requests, each load is run with few and with many operations: what is
# counted is the difference, without the boot that both have. Medians of ROUNDS; the machine has to be quiet.
# Needs cargo build --release -p fstone-sandbox --example guest_agent, and a kernel that `fstone kernel build` made; no root.
# Usage: [AGENT=target/release/examples/guest_agent] [BEFORE=another agent] [FSTONE=target/release/fstone] [KERNEL=exact:6.1] [ROUNDS=5] \
#        [OPERATIONS=10000] [KERNELS=where kernels are kept] [PARTS="guest requests jobs"] bench/exact-speed.sh
set -euo pipefail
# shellcheck source=bench/compare-common.sh
. "$(dirname "$0")/compare-common.sh"
whole() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }
agents=("$(whole "${AGENT:-$root/target/release/examples/guest_agent}")")
[ -z "${BEFORE:-}" ] || agents+=("$(whole "$BEFORE")")
kernel=${KERNEL:-exact:6.1} rounds=${ROUNDS:-5} operations=${OPERATIONS:-10000}
kernels=${KERNELS:-${FSTONE_KERNELS:-${XDG_DATA_HOME:-$HOME/.local/share}/fstone/kernels}}
read -ra parts <<<"${PARTS:-guest requests jobs}"
binary=$kernels/$(jq -r --arg release "${kernel#exact:}" \
    '[.kernels[] | select(.flavour == "exact" and (.release | startswith($release)))] | last | .binary' "$kernels/kernels.json")
[ -x "$binary" ] || { echo "there is no $kernel in $kernels: fstone kernel build" >&2; exit 2; }
begin
cd "$place"

# What a guest says of itself, as "nanoseconds requests".
#   lived AGENT MODEL JOB...
lived() { "$1" exact "$binary" "${@:2}" 2>&1 | sed -n 's/^real \([0-9]*\) ns, \([0-9]*\) requests$/\1 \2/p'; }

guest() {
    for agent in "${agents[@]}"; do
        for ((round = 0; round < rounds * 4; round++)); do lived "$agent" constant echo ready; done |
            median | awk -v agent="$agent" '{ printf "%.0f ms: a guest boots, says a word and powers off (%s)\n", $1 / 1e6, agent }'
    done
}

requests() {
    local load model job few many agent
    echo "| load | $(printf '%s | ' "${agents[@]##*/}")"
    echo "|---|$(printf -- '---:|%.0s' "${agents[@]}")"
    while read -r model job threads load; do
        # One right after the other, round by round.
        for ((round = 0; round < rounds; round++)); do
            for ((which = 0; which < ${#agents[@]}; which++)); do
                few=$(lived "${agents[which]}" "$model" requests "$job" 100 "$threads" </dev/null)
                many=$(lived "${agents[which]}" "$model" requests "$job" "$operations" "$threads" </dev/null)
                echo "$few $many" | awk '{ printf "%.0f\n", ($4 - $2) / ($3 - $1) * 1e9 }' >>"$job-$threads-$which"
            done
        done
        for ((which = 0; which < ${#agents[@]}; which++)); do median <"$job-$threads-$which"; done |
            awk -v load="$load" 'BEGIN { printf "| %s |", load } { printf " %s |", $1 } END { print "" }'
    done <<'END'
constant read 1 direct reads, one at a time
nvme-ssd read 16 direct reads, 16 threads
hdd-7200-2008 write 1 direct writes, one at a time
hdd-7200-2008 sync 1 writes, each made durable
hdd-7200-2008 writeback 1 writes, made durable together
END
}

jobs() {
    cat >mixed.workload <<'END'
name = "mixed"
[[fileset]]
name = "files"
files = 200
size = "64 KiB"
[[phase]]
name = "mixed"
stop = { operations = 2000 }
[[phase.group]]
name = "threads"
threads = 4
fsync = { every = 4 }
[[phase.group.mix]]
write = { size = "4 KiB", block = "4 KiB", pattern = "random" }
END
    cat >mixed.toml <<'END'
title = "mixed"
device = { model = "hdd-7200-2008", size = "2 GiB" }
[factor.filesystem]
"ext4" = { type = "ext4" }
[[step]]
load = { workload = "mixed.workload" }
END
    local cores trials
    cores=$(nproc) trials=$((4 * $(nproc)))
    timed() {
        local began
        began=$(date +%s%N)
        "$fstone" --kernels "$kernels" --store "store-$2.db" --work-directory "$place/work" \
            run ./mixed.toml --exact --kernel "$kernel" --repeats "$trials" --jobs "$1" >said 2>&1 || { cat said >&2; return 1; }
        echo $(($(date +%s%N) - began))
    }
    for ((round = 0; round < rounds; round++)); do
        echo "$(timed 1 "$round-one") $(timed "$cores" "$round-all")"
    done | awk '{ printf "%.3f\n", $1 / $2 }' | median |
        sed "s/.*/$trials trials, $cores at once: & times as fast as one after the other/"
    # Guests that share nothing, not even a process of fstone: what the machine itself gives.
    side_by_side() {
        local began which
        began=$(date +%s%N)
        for ((which = 0; which < $1; which++)); do lived "${agents[0]}" hdd-7200-2008 requests sync "$operations" 1 </dev/null >"alone-$which" & done
        wait
        echo $(($(date +%s%N) - began))
    }
    for ((round = 0; round < rounds; round++)); do
        echo "$cores $(side_by_side 1) $(side_by_side "$cores")"
    done | awk '{ printf "%.3f\n", $1 * $2 / $3 }' | median |
        sed "s/.*/$cores guests without a lab, at once: & times as fast as one after the other/"
}

for part in "${parts[@]}"; do "$part"; done
circumstances "$kernel, load $(cut -d ' ' -f 1-3 /proc/loadavg)"

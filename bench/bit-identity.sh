#!/usr/bin/env bash
# Whether trials in virtual time are the same to the last bit: nine filesystems, each with a mixed load of four threads (creates, reads,
# unlinks, fsyncs) and its check, with several seeds, made several times: every figure of every trial and the hash of its requests.
# Each round has another directory, TMPDIR, home, environment and number of jobs. With BUSY=1, as many endless loops as there are cores run beside.
# Ends with 1 where anything differs, and says what. Needs a kernel that `fstone kernel build` made, and the filesystems' tools; no root.
# Usage: [FSTONE=target/release/fstone] [KERNEL=exact:6.1] [ROUNDS=5] [SEEDS="1 2"] [CPU=server-today] [BUSY=1] [OPERATIONS=400] [FILESYSTEMS="ext4 xfs"] bench/bit-identity.sh
set -euo pipefail
# shellcheck source=bench/compare-common.sh
. "$(dirname "$0")/compare-common.sh"
kernel=${KERNEL:-exact:6.1} rounds=${ROUNDS:-5} operations=${OPERATIONS:-400}
read -ra seeds <<<"${SEEDS:-1 2}"
read -ra filesystems <<<"${FILESYSTEMS:-ext2 ext3 ext4 xfs btrfs f2fs jfs nilfs2 reiserfs}"
begin
cd "$place"

spinners=()
quiet() {
    for spinner in "${spinners[@]}"; do kill "$spinner"; done
    spinners=()
    end
}
trap quiet EXIT
if [ "${BUSY:-0}" = 1 ]; then
    for ((core = 0; core < $(nproc); core++)); do
        while :; do :; done &
        spinners+=($!)
    done
fi

cat >mixed.workload <<END
name = "mixed"
[[fileset]]
name = "files"
files = 200
size = "16 KiB"
[[phase]]
name = "mixed"
stop = { operations = $operations }
[[phase.group]]
name = "threads"
threads = 4
fsync = { every = 5 }
[[phase.group.mix]]
create = { block = "4 KiB" }
weight = 3
[[phase.group.mix]]
read = { block = "4 KiB" }
weight = 3
[[phase.group.mix]]
unlink = {}
weight = 2
END
{
    cat <<'END'
title = "Is it the same again?"
repeats = 1
device = { model = "hdd-7200-2008", size = "2 GiB" }
[factor.filesystem]
END
    for kind in "${filesystems[@]}"; do echo "\"$kind\" = { type = \"$kind\" }"; done
    cat <<'END'
[[step]]
name = "load"
load = { workload = "mixed.workload" }
[[step]]
fsck = {}
END
} >identity.toml

# Each round is in surroundings of its own.
#   around ROUND COMMAND...
around() {
    local padding home=$place/round-$1
    padding=$(printf "%$(($1 * 7))s" '' | tr ' ' x)
    mkdir -p "$home/temporary$padding"
    HOME=$home TMPDIR=$home/temporary$padding SURROUNDINGS=$padding "$fstone" --work-directory "$home/work$padding" \
        ${KERNELS:+--kernels "$KERNELS"} --store "$home/store.db" "${@:2}"
}

differences=0 figures=0 traces=0
for seed in "${seeds[@]}"; do
    around "1$seed" run ./identity.toml --exact --kernel "$kernel" ${CPU:+--cpu "$CPU"} --seed "$seed" >said 2>&1 || { cat said >&2; exit 1; }
    around "1$seed" export 1 "$place/seed-$seed.fstone" >said 2>&1 || { cat said >&2; exit 1; }
    around "1$seed" report --format json | jq -r '.rows[] | .label as $row | .trials[] | select(.outcome != "completed") |
        "seed '"$seed"', \($row): \(.outcome)"' >&2
    for ((round = 2; round <= rounds; round++)); do
        # Every figure, and the hash over every request with its time.
        if around "$round" verify --again "$place/seed-$seed.fstone" --jobs $((round % 2 + 1)) >said 2>&1; then
            # "…: 9 trials. 972 figures, …"
            read -r trials compared < <(sed -nE 's/,([0-9]{3})/\1/g; s/.*: ([0-9]+) trials?\. ([0-9]+) figures?,.*/\1 \2/p' said)
            figures=$((figures + compared)) traces=$((traces + trials))
            echo "seed $seed, round $round: $trials trials, $compared figures, the same" >&2
        else
            differences=$((differences + 1))
            echo "seed $seed, round $round:"
            cat said
        fi
    done
done
echo "${#filesystems[@]} filesystems, seeds ${seeds[*]}, $rounds rounds: $figures figures and $traces traces compared with the first round's, $differences rounds differ"
circumstances "$kernel${CPU:+, work charged as on $CPU}, load $(cut -d ' ' -f 1-3 /proc/loadavg)"
((differences == 0))

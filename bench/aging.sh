#!/usr/bin/env bash
# How long it takes to age filesystems, which targets were reached, and what a trial that begins with a copy takes beside one on a
# fresh filesystem. Ages by PROFILE until UTILIZATION, with OVERWRITES of SIZE; then runs the same study again, whose trials are all copies.
# Words after the options are those of `fstone run`: on the running kernel as root, or with --exact --model nvme-ssd in virtual time.
# PLACE is where everything is made, below a new directory: on btrfs or XFS copies go by reference.
# Usage: [FSTONE=target/release/fstone] [SIZE="20 GiB"] [OVERWRITES=10] [UTILIZATION="80 %"] [PROFILE=agrawal] \
#        [FILESYSTEMS="ext4 xfs btrfs f2fs"] [PLACE=/var/tmp] bench/aging.sh [WORDS OF fstone run]
set -euo pipefail
TMPDIR=${PLACE:-/var/tmp}
# shellcheck source=bench/compare-common.sh
. "$(dirname "$0")/compare-common.sh"
begin
cd "$place"
export XDG_CACHE_HOME=$place/cache FSTONE_STORE=$place/fstone.db FSTONE_WORK_DIRECTORY=$place/work
{
    echo "title = \"Aged\""
    echo "seed = 1"
    echo "repeats = 1"
    echo "device = { loop = { size = \"${SIZE:-20 GiB}\" } }"
    echo "[factor.filesystem]"
    for kind in ${FILESYSTEMS:-ext4 xfs btrfs f2fs}; do
        echo "\"$kind\" = { type = \"$kind\" }"
        echo "\"$kind aged\" = { type = \"$kind\", age = { profile = \"${PROFILE:-agrawal}\", utilization = \"${UTILIZATION:-80 %}\", overwrites = ${OVERWRITES:-10} } }"
    done
    echo "[[step]]"
    echo "sync = {}"
    echo "show = [\"time\"]"
} >aged.toml
for what in "with ageing" "again, with copies"; do
    from=$(date +%s.%N)
    "$fstone" run ./aged.toml "$@" >run 2>&1 || { cat run; exit 1; }
    echo "$what: $(echo "$(date +%s.%N) - $from" | bc) s in all"
    "$fstone" report --format json |
        jq -r '.rows[] | "  \(.label): \(.outcome), a trial of \((.trials[0].duration_ns // 0) / 1e9) s"'
    grep -h 'age:' run || true
done
"$fstone" age list
for name in $("$fstone" age list | awk 'NR > 1 { print $1 }'); do "$fstone" age show "$name"; done

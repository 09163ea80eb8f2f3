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

for study in same:10 slower:5; do
  have=0
  [ ! -e "$FSTONE_STORE" ] || have=$("$fstone" list runs | grep -cE " ${study%:*} +finished " || true)
  for seed in $(seq $((have + 1)) "${study#*:}"); do
    began=$SECONDS load=$(cut -d' ' -f1 /proc/loadavg)
    complete "${study%:*}" "$seed"
    echo "calibrate: ${study%:*}, seed $seed: $((SECONDS - began)) s, load $load to $(cut -d' ' -f1 /proc/loadavg)" >&2
  done
done
"${ANALYSE:-true}" "$FSTONE_STORE"

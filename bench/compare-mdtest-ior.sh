#!/bin/bash
# Compares `fstone mdtest` and `fstone ior` with the real mdtest and IOR on tmpfs, under the same launcher of MPI, and prints Markdown.
#
#   bench/compare-mdtest-ior.sh [TASKS]...   (default: 1 2 8)
#   bench/compare-mdtest-ior.sh probe N
#
# With probe, N random command lines of each (SEED), of one to three tasks, on ext4: tables, files, and the calls of each rank as strace sees them.
# What differs is shortened.
#
# Files per second of create, stat and unlink (mdtest -F), and MiB per second of writes and reads in transfers of 4 KiB and
# 1 MiB (IOR -F, a file for each task). Both sides run the same command line, one right after the other, in an order that
# alternates from round to round. As root, for the tmpfs.
#
# FSTONE      the binary, built with the same MPI (default: target/mpi/release/fstone, from `make mpi`)
# PEERS       the directory of mdtest and ior (default: those in PATH)
# MPIRUN      the launcher (default: mpirun.openmpi --oversubscribe)
# ROUNDS      pairs of runs (default: 8)
# FILES       files of each run, shared out to the tasks (default: 40000)
# MEBIBYTES   data of each run, shared out likewise (default: 512)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
FSTONE=${FSTONE:-$root/target/mpi/release/fstone}
# shellcheck source=bench/compare-common.sh
. "$(dirname "$0")/compare-common.sh"

mdtest=mdtest ior=ior
if [ -n "${PEERS:-}" ]; then mdtest=$PEERS/mdtest ior=$PEERS/ior; fi
for program in "$mdtest" "$ior"; do
    command -v "$program" >/dev/null || { echo "skipped: there is no $program to compare with" >&2; exit 0; }
done
rounds=${ROUNDS:-8}
files=${FILES:-40000}
mebibytes=${MEBIBYTES:-512}
# shellcheck disable=SC2206 # words
launcher=(${MPIRUN:-mpirun.openmpi --oversubscribe})
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
begin

if [ "${1:-}" = probe ]; then
    # A single task needs no launcher.
    export OMPI_MCA_ess_singleton_isolated=1
    fresh ext4 256M
    failed=0
    for tool in mdtest ior; do
        python3 "$root/bench/probe.py" $tool "$FSTONE" "${!tool}" "${2:-100}" "${SEED:-1}" "$place/fs" "${launcher[@]}" || failed=1
    done
    exit $failed
fi
fresh tmpfs 4G

# run SIDE TASKS PROGRAM OPTIONS...: its output to $place/SIDE.
run() {
    local side=$1 tasks=$2 program=$3 command
    shift 3
    case $side$program in
        theirsmdtest) command=("$mdtest") ;;
        theirsior) command=("$ior") ;;
        *) command=("$fstone" "$program") ;;
    esac
    "${launcher[@]}" -n "$tasks" "${command[@]}" "$@" >"$place/$side" 2>"$place/$side.err" ||
        { cat "$place/$side" "$place/$side.err" >&2; exit 1; }
}

# both TASKS ROUND PROGRAM OPTIONS...: one side right after the other.
both() {
    local tasks=$1 round=$2 sides="theirs ours" side
    [ $((round % 2)) = 0 ] || sides="ours theirs"
    shift 2
    for side in $sides; do run "$side" "$tasks" "$@"; done
}

# The largest value, which is the only one, of a row of mdtest's table.
row() { awk -v name="$2" 'index($0, "   " name " ") == 1 { print $3; exit }' "$place/$1"; }
# The bandwidth of the first line of IOR's table.
line() { awk -v name="$2" '$1 == name && $2 ~ /^[0-9.]+$/ { print $2; exit }' "$place/$1"; }

# note NAME VALUE_OF WHAT
note() {
    local theirs ours
    theirs=$("$2" theirs "$3") ours=$("$2" ours "$3")
    [ -n "$theirs" ] && [ -n "$ours" ] || { echo "no $3 in the output" >&2; cat "$place/theirs" "$place/ours" >&2; exit 1; }
    echo "$theirs $ours" >>"$place/$1"
}

printf '| tasks | | mdtest, IOR | fstone | fstone ÷ theirs (95 %%) |\n|---|---|---|---|---|\n'
for tasks in ${*:-1 2 8}; do
    rm -f "$place"/of-*
    for round in $(seq "$rounds"); do
        both "$tasks" "$round" mdtest -n $((files / tasks)) -F -C -T -r -d "$place/fs/mdtest"
        note of-create row "File creation"
        note of-stat row "File stat"
        note of-unlink row "File removal"
        for transfer in 4k 1m; do
            both "$tasks" "$round" ior -F -b $((mebibytes / tasks))m -t "$transfer" -o "$place/fs/ior"
            note "of-write-$transfer" line write
            note "of-read-$transfer" line read
        done
    done
    while read -r what name; do
        printf '| %s | %s | %s |\n' "$tasks" "$name" "$(paired <"$place/of-$what")"
    done <<NAMES
create create, files/s
stat stat, files/s
unlink unlink, files/s
write-4k write 4 KiB, MiB/s
read-4k read 4 KiB, MiB/s
write-1m write 1 MiB, MiB/s
read-1m read 1 MiB, MiB/s
NAMES
done
circumstances "$("${launcher[0]}" --version | head -n 1), $rounds rounds; each $files files and $mebibytes MiB"

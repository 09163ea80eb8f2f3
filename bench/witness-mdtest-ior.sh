#!/bin/bash
# Holds the system calls of `fstone mdtest` and `fstone ior` against those of the real mdtest and IOR, rank by rank, under strace: which
# calls on which items, which bytes at which offsets, in which order.
#
#   bench/witness-mdtest-ior.sh
#
# FSTONE      the binary, built with the same MPI (default: target/mpi/release/fstone, from `make mpi`)
# PEERS       the directory of mdtest and ior (default: those in PATH)
# MPIRUN      the launcher (default: mpirun.openmpi --oversubscribe)
#
# What is taken for the same: pwrite and pread for lseek with write and read, and unlinkat for unlink. IOR asks for attributes before it opens
# a file and after; that is left out, and so is removing, which neither of them times.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
fstone=$(realpath "${FSTONE:-$root/target/mpi/release/fstone}")
mdtest=mdtest ior=ior
if [ -n "${PEERS:-}" ]; then mdtest=$PEERS/mdtest ior=$PEERS/ior; fi
for program in "$mdtest" "$ior" strace; do
    command -v "$program" >/dev/null || { echo "skipped: there is no $program" >&2; exit 0; }
done
# shellcheck disable=SC2206 # words
launcher=(${MPIRUN:-mpirun.openmpi --oversubscribe})
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
place=$(mktemp -d "${TMPDIR:-/tmp}/fstone-witness.XXXXXX")
trap 'rm -rf --one-file-system "$place"' EXIT

cat >"$place/rank.sh" <<'RANK'
#!/bin/sh
out=$1
shift
exec strace -f -qq -o "$out.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" \
  -e trace=openat,newfstatat,unlink,unlinkat,pwrite64,pread64,write,read,fsync,lseek "$@"
RANK
chmod +x "$place/rank.sh"

# A line for each call: its name, and the item, or the bytes and where they are.
cat >"$place/normal.awk" <<'AWK'
{
  sub(/^[0-9]+ +/, ""); call = $0; sub(/\(.*/, "", call)
  if (call == "lseek") { if (match($0, /, [0-9]+, SEEK_SET/)) offset = substr($0, RSTART + 2) + 0; next }
  if ((call == "write" || call == "read") && $NF == size) { print call, size "@" offset; next }
  if (call == "pwrite64" || call == "pread64") {
    if (match($0, /, [0-9]+, [0-9]+\)/)) {
      split(substr($0, RSTART + 2), at, ", ")
      if (at[1] == size) print substr(call, 2, length(call) - 3), size "@" at[2] + 0
    }
    next
  }
  if (call == "fsync") { print call; next }
  if (!match($0, /(file\.mdtest\.[0-9]+\.[0-9]+|items\.[0-9]+"|items")/)) next
  item = substr($0, RSTART, RLENGTH); gsub(/"/, "", item)
  if (call == "unlinkat") call = "unlink"
  if (call == "openat") call = /O_CREAT/ && item != "items" ? "create" : "open"
  if (item ~ /mdtest/ || (call != "newfstatat" && call != "unlink")) print call, item
}
AWK

failed=0
# both NAME SIZE PROGRAM OPTIONS...: both sides, and each of four ranks.
both() {
    local name=$1 size=$2 program=$3 side rank command lines
    shift 3
    for side in theirs ours; do
        command=("$fstone" "$program")
        if [ "$side" = theirs ]; then if [ "$program" = mdtest ]; then command=("$mdtest"); else command=("$ior"); fi; fi
        timeout 120 "${launcher[@]}" -n 4 "$place/rank.sh" "$place/$side" "${command[@]}" "$@" >"$place/out" 2>&1 ||
            { cat "$place/out" >&2; exit 1; }
        for rank in 0 1 2 3; do awk -v "size=$size" -f "$place/normal.awk" "$place/$side.$rank" >"$place/$side-$rank"; done
    done
    for rank in 0 1 2 3; do
        lines=$(wc -l <"$place/ours-$rank")
        if [ "$lines" -gt 0 ] && diff "$place/theirs-$rank" "$place/ours-$rank" >"$place/diff"; then
            echo "$name, rank $rank: the same $lines calls"
        else
            echo "$name, rank $rank: not the same"
            cat "$place/diff"
            failed=1
        fi
    done
}

both "mdtest -F -N 1" 9 mdtest -n 5 -F -N 1 -w 9 -e 9 -y -d "$place/d"
both "ior -F" 1112 ior -F -b 3336 -t 1112 -e -o "$place/items"
both "ior, one file" 4096 ior -b 8k -t 4k -s 3 -e -o "$place/items"
exit $failed

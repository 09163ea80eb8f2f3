#!/bin/sh
# What recording costs and how well replays keep the time, on programs that everybody has: medians of RUNS (default 5) runs, with the
# lowest and the highest. Needs strace for its column. Works in a new directory in $1 (default: the working directory).
#
#   FSTONE=target/release/fstone bench/replay.sh [DIR]
set -eu
fstone=$(realpath "${FSTONE:-target/release/fstone}")
runs=${RUNS:-5}
place=$(mktemp -d "${1:-.}/replay-bench-XXXXXX")
place=$(realpath "$place")
trap 'rm -r "$place"' EXIT
source=$(realpath "$(dirname "$0")/..")
mkdir "$place/target"
cp -r "$source/docs" "$source/crates" "$place/"
git init -q "$place/repository"
cp -r "$source/crates" "$place/repository/"
git -C "$place/repository" add -A
git -C "$place/repository" -c user.name=x -c user.email=x@example.org commit -q -m x
tar cf "$place/some.tar" -C "$place" docs crates

# Seconds of a command in a fresh directory.
timed() {
    rm -rf "$place/work"
    mkdir "$place/work"
    sync
    begin=$(date +%s%N)
    (cd "$place/work" && "$@" >/dev/null 2>&1)
    end=$(date +%s%N)
    echo "$begin $end" | awk '{ printf "%.4f\n", ($2 - $1) / 1e9 }'
}

spread() { sort -n | awk '{ v[NR] = $1 } END { printf "%.3f (%.3f–%.3f)", v[int((NR + 1) / 2)], v[1], v[NR] }'; }
repeat() { for _ in $(seq "$runs"); do "$@"; done | spread; }

recorded() { rm -f "$place/app.rec"; timed "$fstone" record -o "$place/app.rec" --under "$place" -- "$@"; }
replayed() { "$fstone" replay "$place/app.rec" --directory "$place/target" --json | awk -F'[ ,]+' '/"seconds"/ { print $3 }'; }

echo "| program | alone, s | recorded, s | under strace, s | replayed, s |"
echo "|---|---|---|---|---|"
row() {
    name=$1
    shift
    alone=$(repeat timed "$@")
    record=$(repeat recorded "$@")
    replay=$(repeat replayed)
    strace=$(repeat timed strace -f -q --seccomp-bpf -T -e trace=%file,%desc -o /dev/null "$@")
    echo "| $name | $alone | $record | $strace | $replay |"
}
row "tar x" tar xf ../some.tar
row "cp -a" cp -a ../crates copy
row "git clone" git clone -q --no-local ../repository clone
row "grep -r" grep -r fstone ../crates
row "rsync -a" rsync -a ../crates copy
row "sqlite" sqlite3 x.db "create table t(a, b); insert into t select value, hex(randomblob(50)) from generate_series(1, 20000); delete from t where a % 3 = 0; create index i on t(b);"

#!/bin/bash
# Compares the counts of operations of `fstone sysbench fileio` with those of the real sysbench, for each test mode and
# io-mode and a fixed number of events, and prints a Markdown table.
#
#   bench/compare-sysbench.sh [DIRECTORY]      (default: a new directory under ${TMPDIR:-/tmp}; removed at the end)
#
# FSTONE     the binary (default: target/release/fstone)
# SYSBENCH   the original (default: sysbench)
# EVENTS     events per run (default: 2000)
# WITNESS=1  also counts the system calls of both with strace (io-mode sync only, where each request is one call)
#
# Exits with 1 when a count differs. Of rndrw in io-mode async only the ratio of reads to writes is compared: sysbench
# chooses by the requests that are completed, and so by how fast the machine is.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
fstone=${FSTONE:-$root/target/release/fstone}
sysbench=${SYSBENCH:-sysbench}
events=${EVENTS:-2000}
witness=${WITNESS:-0}

command -v "$sysbench" >/dev/null || { echo "skipped: there is no $sysbench to compare with" >&2; exit 0; }
if [ "$witness" = 1 ] && ! command -v strace >/dev/null; then
    echo "skipped: the witness needs strace" >&2
    witness=0
fi

if [ $# -gt 0 ]; then
    directory=$1
    mkdir -p "$directory"
else
    directory=$(mktemp -d "${TMPDIR:-/tmp}/fstone-compare-XXXXXX")
    trap 'rm -rf "$directory"' EXIT
fi
directory=$(cd "$directory" && pwd)
cd "$directory"

files=4
size="--file-num=$files --file-total-size=4M --time=0 --events=$events"

# Reads, writes and fsyncs of a run. The original prints rates of an interval that it does not print; but reads, writes
# and fsyncs together are the events and the fsyncs at the end, which tells the interval.
#   counts EVENTS_AND_FINAL_FSYNCS FSYNC_ALL < output
counts() {
    awk -v sum="$1" -v all="$2" '
        /^ *reads\/s:/  { r = $2 }
        /^ *writes\/s:/ { w = $2 }
        /^ *fsyncs\/s:/ { f = $2 }
        END {
            total = all ? r + w : r + w + f
            if (total > 0) printf "%.0f %.0f %.0f", r * sum / total, w * sum / total, f * sum / total
            else printf "? ? ?"
        }'
}

# System calls that a command makes: reads, writes, syncs.
calls() {
    strace -f -qq -c -o calls.strace -e trace=pread64,pwrite64,fsync,fdatasync "$@" >/dev/null 2>&1 || true
    awk '$NF == "pread64" { r = $4 } $NF == "pwrite64" { w = $4 } $NF ~ /^f(data)?sync$/ { f += $4 }
         END { printf "%d %d %d", r, w, f }' calls.strace
}

differences=0
echo "| io-mode | test mode | options | sysbench: reads, writes, fsyncs | fstone | |"
echo "|---|---|---|---|---|---|"
for io in sync async mmap; do
    for mode in seqwr seqrewr seqrd rndrd rndwr rndrw; do
        for extra in "" "--file-fsync-all" "--file-merged-requests=3 --file-fsync-freq=7" "--threads=3" \
            "--file-fsync-freq=0 --file-fsync-mode=fdatasync"; do
            # shellcheck disable=SC2086 # options are words
            set -- $size --file-test-mode=$mode --file-io-mode=$io $extra
            threads=1
            case $extra in *threads=3*) threads=3 ;; esac
            all=0
            case $extra in *fsync-all*) all=1 ;; esac
            final=$((threads * files * (1 - all)))
            case $mode in seqrd | rndrd) final=0 ;; esac
            sum=$((events + final))

            rm -f test_file.*
            "$sysbench" fileio "$@" prepare >/dev/null
            theirs=$("$sysbench" fileio "$@" run | counts $sum $all)
            rm -f test_file.*
            "$sysbench" fileio "$@" prepare >/dev/null
            "$fstone" sysbench fileio "$@" run >ours.txt 2>ours.err || { cat ours.txt ours.err >&2; }
            done=$(awk '/total number of events:/ { print $5 }' ours.txt)
            ours=$(counts $((${done:-0} + final)) $all <ours.txt)

            ratio=0
            [ $io$mode = asyncrndrw ] && ratio=1.5
            verdict=$(awk -v theirs="$theirs" -v ours="$ours" -v ratio=$ratio 'BEGIN {
                split(theirs, a); split(ours, b); worst = 0
                if (ratio > 0 && b[2] > 0) {
                    wrong = b[1] / b[2] - ratio; if (wrong < 0) wrong = -wrong
                    print wrong < 0.01 ? "same" : "differs from the ratio"; exit
                }
                for (i = 1; i <= 3; i++) { d = a[i] - b[i]; if (d < 0) d = -d; if (d > worst) worst = d }
                print worst == 0 ? "same" : "differs by " worst }')
            [ "$verdict" = same ] || differences=$((differences + 1))
            if [ "$witness" = 1 ] && [ $io = sync ]; then
                rm -f test_file.* && "$sysbench" fileio "$@" prepare >/dev/null
                a=$(calls "$sysbench" fileio "$@" run)
                rm -f test_file.* && "$sysbench" fileio "$@" prepare >/dev/null
                b=$(calls "$fstone" sysbench fileio "$@" run)
                verdict="$verdict; system calls $a | $b"
            fi
            echo "| $io | $mode | $extra | ${theirs// /, } | ${ours// /, } | $verdict |"
        done
    done
done
rm -f test_file.* ours.txt ours.err calls.strace
echo
echo "$differences rows differ." >&2
[ "$differences" = 0 ]

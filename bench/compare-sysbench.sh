#!/bin/bash
# Compares `fstone sysbench fileio` with the real sysbench and prints Markdown.
#
#   bench/compare-sysbench.sh [counts|witness|throughput]... [sync|async|mmap]...   (default: counts, every io-mode)
#   bench/compare-sysbench.sh probe N
#
# probe       N random command lines in both (SEED), as root: what differs is shortened
# counts      reads, writes and fsyncs of each test mode for a fixed number of events, under several options
# witness     the same for the default options, with the system calls and io_uring requests that both make, as the
#             kernel counts them (strace, and perf for io_uring)
# throughput  requests per second of both, interleaved, on ext4 over a loop device (as root)
#
# FSTONE      the binary (default: target/release/fstone)
# SYSBENCH    the original (default: sysbench)
# EVENTS      events per run of counts and witness (default: 2000)
# ROUNDS      pairs of runs of throughput, in alternating order (default: 6)
# RUN_SECONDS length of each of its runs (default: 2)
#
# Exits with 1 when counts differ. Where the original's own counts differ from run to run (its threads race for the
# choice between reading and writing), and in rndrw async, where it goes by what has come back, fstone's have to make as
# many requests and to meet the ratio to within the requests in flight.
set -euo pipefail
# shellcheck source=bench/compare-common.sh
. "$(dirname "$0")/compare-common.sh"

sysbench=${SYSBENCH:-sysbench}
events=${EVENTS:-2000}
rounds=${ROUNDS:-6}
seconds=${RUN_SECONDS:-2}
command -v "$sysbench" >/dev/null || { echo "skipped: there is no $sysbench to compare with" >&2; exit 0; }

if [ "${1:-}" = probe ]; then
    begin
    fresh ext4 256M
    python3 "$root/bench/probe.py" sysbench "$fstone" "$sysbench" "${2:-100}" "${SEED:-1}" "$place/fs"
    exit
fi
parts= modes=
for word in "$@"; do
    case $word in
        counts | witness | throughput) parts="$parts $word" ;;
        sync | async | mmap) modes="$modes $word" ;;
        *) echo "unknown part $word" >&2; exit 2 ;;
    esac
done
parts=${parts:-counts} modes=${modes:-sync async mmap}
begin
tests="seqwr seqrewr seqrd rndrd rndwr rndrw"
files=4
backlog=128
ratio=1.5

# theirs|ours COMMAND: with the options in $options, output to $place/SIDE.
fileio() {
    # shellcheck disable=SC2086 # options are words
    case $1 in
        theirs) "$sysbench" fileio $options "$2" ;;
        ours) "$fstone" sysbench fileio $options "$2" ;;
    esac >"$place/$1" 2>"$place/$1.err" || { cat "$place/$1" "$place/$1.err" >&2; exit 1; }
}

# Reads, writes and fsyncs of a run. The original prints rates of an interval that it does not print; but reads, writes
# and fsyncs together are the events and the fsyncs at the end, which tells the interval.
#   counts_of SIDE FINAL_FSYNCS FSYNC_ALL
counts_of() {
    awk -v final="$2" -v all="$3" '
        /^ *reads\/s:/  { r = $2 }
        /^ *writes\/s:/ { w = $2 }
        /^ *fsyncs\/s:/ { f = $2 }
        /total number of events:/ { sum = $5 + final }
        END {
            total = all ? r + w : r + w + f
            if (total > 0) printf "%.0f %.0f %.0f", r * sum / total, w * sum / total, f * sum / total
            else printf "? ? ?"
        }' "$place/$1"
}

counts() {
    local same=0 inexact=0 different=0
    echo "| io-mode | test mode | options | sysbench: reads, writes, fsyncs | fstone | |"
    echo "|---|---|---|---|---|---|"
    for io in $modes; do for mode in $tests; do
        for extra in "" "--file-fsync-all" "--file-merged-requests=3 --file-fsync-freq=7" "--threads=3" \
            "--file-fsync-freq=0 --file-fsync-mode=fdatasync"; do
            options="--file-num=$files --file-total-size=4M --time=0 --events=$events --file-test-mode=$mode"
            options="$options --file-io-mode=$io $extra"
            local threads=1 all=0 flying=1
            case $extra in *threads=3*) threads=3 ;; esac
            case $extra in *fsync-all*) all=1 ;; esac
            [ $io != async ] || flying=$backlog
            local final=$((threads * files * (1 - all)))
            case $mode in seqrd | rndrd) final=0 ;; esac

            : >"$place/theirs.counts"
            for _ in 1 2 3; do
                rm -f test_file.*
                fileio theirs prepare
                fileio theirs run
                counts_of theirs $final $all >>"$place/theirs.counts"
                echo >>"$place/theirs.counts"
            done
            rm -f test_file.*
            fileio theirs prepare
            fileio ours run
            local ours theirs verdict
            ours=$(counts_of ours $final $all)
            # The original's range, and the verdict.
            verdict=$(awk -v ours="$ours" -v mode=$mode -v io=$io -v flying=$((threads * flying)) -v ratio=$ratio \
                -v files=$files -v all=$all '
                function range(i) { return low[i] == high[i] ? low[i] : low[i] "–" high[i] }
                function sum(r, w, f) { return all ? r + w : r + w + f }
                { whole = sum($1, $2, $3)
                  for (i = 1; i <= 3; i++) {
                    if (NR == 1 || $i < low[i]) low[i] = $i
                    if (NR == 1 || $i > high[i]) high[i] = $i } }
                END {
                    split(ours, b, " "); wide = 0; worst = 0
                    for (i = 1; i <= 3; i++) {
                        if (low[i] != high[i]) wide = 1
                        d = b[i] - low[i]; if (d < 0) d = -d; if (d > worst) worst = d
                    }
                    printf "%s, %s, %s:", range(1), range(2), range(3)
                    if (!wide && worst == 0) { print "same"; exit }
                    if (mode == "rndrw" && (wide || io == "async")) {
                        off = b[1] - ratio * b[2]; if (off < 0) off = -off
                        total = whole - sum(b[1], b[2], b[3]); if (total < 0) total = -total
                        fsyncs = b[3] - low[3]; if (fsyncs < 0) fsyncs = -fsyncs
                        if (off <= (1 + ratio) * flying && total <= 1 && (io == "async" || fsyncs <= files)) {
                            print wide ? "the original varies" : "by the ratio"; exit
                        }
                    }
                    print "differs by " worst
                }' "$place/theirs.counts")
            theirs=${verdict%%:*} verdict=${verdict#*:}
            case $verdict in
                same) same=$((same + 1)) ;;
                differs*) different=$((different + 1)) ;;
                *) inexact=$((inexact + 1)) ;;
            esac
            echo "| $io | $mode | $extra | $theirs | ${ours// /, } | $verdict |"
        done
    done; done
    rm -f test_file.*
    echo
    echo "$same option lines give the same counts, $different differ, and for $inexact the original's own counts vary."
    circumstances "$events events each"
    [ "$different" = 0 ]
}

# System calls of a side, by strace: pread64 pwrite64 io_submit fsync+fdatasync msync.
traced() {
    local command=("$sysbench" fileio)
    [ "$1" = theirs ] || command=("$fstone" sysbench fileio)
    # shellcheck disable=SC2086 # options are words
    strace -f -qq -c -o "$place/calls" -e trace=pread64,pwrite64,io_submit,fsync,fdatasync,msync \
        "${command[@]}" $options run >/dev/null 2>&1 || true
    awk '{ n[$NF] = $4 } END { printf "%d %d %d %d %d", n["pread64"], n["pwrite64"], n["io_submit"], n["fsync"] + n["fdatasync"], n["msync"] }' \
        "$place/calls"
}

# Requests that reached io_uring: reads, writes, fsyncs.
ringed() {
    local event=io_uring:io_uring_submit_req
    # READV 1, READ_FIXED 4, READ 22; WRITEV 2, WRITE_FIXED 5, WRITE 23; FSYNC 3.
    # shellcheck disable=SC2086 # options are words
    perf stat -x ' ' -o "$place/perf" \
        -e $event --filter 'opcode == 1 || opcode == 4 || opcode == 22' \
        -e $event --filter 'opcode == 2 || opcode == 5 || opcode == 23' \
        -e $event --filter 'opcode == 3' \
        "$fstone" sysbench fileio $options run >/dev/null 2>&1 || true
    awk -v event=$event '$0 ~ event { n[++i] = $1 } END { printf "%d %d %d", n[1], n[2], n[3] }' "$place/perf"
}

witness() {
    command -v strace >/dev/null || { echo "skipped: the witness needs strace" >&2; return 0; }
    echo "| io-mode | test mode | | reads | writes | both (io_submit) | fsyncs | msyncs |"
    echo "|---|---|---|---|---|---|---|---|"
    for io in $modes; do for mode in $tests; do
        options="--file-num=$files --file-total-size=4M --time=0 --events=$events --file-test-mode=$mode --file-io-mode=$io"
        for side in theirs ours; do
            rm -f test_file.*
            fileio theirs prepare
            read -r reads writes submits fsyncs msyncs <<<"$(traced $side)"
            if [ $side$io = oursasync ]; then
                rm -f test_file.*
                fileio theirs prepare
                command -v perf >/dev/null || { echo "skipped: io_uring's witness needs perf" >&2; continue; }
                read -r ring_reads ring_writes ring_fsyncs <<<"$(ringed)"
                reads=$((reads + ring_reads)) writes=$((writes + ring_writes)) fsyncs=$((fsyncs + ring_fsyncs))
            fi
            name=sysbench
            [ $side = theirs ] || name=fstone
            echo "| $io | $mode | $name | $reads | $writes | $submits | $fsyncs | $msyncs |"
        done
    done; done
    rm -f test_file.*
    circumstances "$events events each, $files files. Each program makes two more reads when it loads its libraries"
}

throughput() {
    [ "$(id -u)" = 0 ] || { echo "skipped: mounting needs root" >&2; return 0; }
    echo "| io-mode | test mode | sysbench, requests/s | fstone | fstone / sysbench (95 % interval) |"
    echo "|---|---|---|---|---|"
    for io in $modes; do
        fresh ext4 2G
        cd "$place/fs"
        for mode in $tests; do
            options="--file-num=16 --file-total-size=256M --time=$seconds --threads=2 --file-test-mode=$mode"
            options="$options --file-io-mode=$io ${EXTRA:-}"
            fileio theirs prepare
            : >"$place/rates"
            for round in $(seq "$rounds"); do
                # ABBA: a drift of the machine bears on both alike.
                order="theirs ours"
                [ $((round % 2)) = 1 ] || order="ours theirs"
                for side in $order; do
                    # seqwr takes the files away and makes them anew.
                    fileio $side run
                    awk '/^ *(reads|writes)\/s:/ { n += $2 } END { print n }' "$place/$side" >"$place/$side.rate"
                done
                echo "$(cat "$place/theirs.rate") $(cat "$place/ours.rate")" >>"$place/rates"
            done
            echo "| $io | $mode | $(paired <"$place/rates") |"
        done
        cd "$place"
        away
    done
    circumstances "$rounds pairs of runs of $seconds s in alternating order, 2 threads, 16 files, 256 MiB, ext4 on a loop device${EXTRA:+, $EXTRA}"
}

for part in $parts; do
    cd "$place"
    "$part"
done

#!/bin/bash
# Compares `fstone fio` with the real fio: what job files with a fixed amount of work do, counted. Prints Markdown.
#
#   bench/compare-fio.sh [counts|hot|witness|readers|speed|paced]...  (default: counts hot witness)
#   bench/compare-fio.sh probe N|JOB
#
# counts        reads, writes, bytes, fsyncs and files of some 100 job files, from both tools' JSON and the directories
#               they leave. A mix's reads and writes are drawn: their sum is compared
# hot           how many of the reads of skewed mixes come to a block that was written before, as strace sees both tools: whether what is written
#               often is read often. Equal within 0.05
# readers       programs that read fio's JSON and logs, unchanged: fio_jsonplus_clat2csv and fiologparser.py of fio's own tools (TOOLS),
#               and fio-plot (from PyPI), each where it is installed
# speed         operations per second of the same job in both, in turns: cached reads with psync and io_uring, O_DIRECT with libaio on ext4 on a
#               loop device (as root), and the null engine, where what is left is the tools' own cost
# paced         mean latencies of the same job at a rate in both, in turns: in fio from when a request is submitted, in fstone from when it was due
# probe         N random jobs in both (SEED), as root: what differs is shortened; or one such job again: "rw=read size=64k"
# witness       reads, writes and fsyncs of ten of them as strace sees them, beside what fstone's JSON says
#
# FSTONE        the binary (default: target/release/fstone)
# FIO           the original (default: fio)
# TOOLS         the tools/ directory of a checkout of fio
# FIO_PLOT      fio-plot (default: fio-plot)
# PAIRS         pairs of runs for speed (default: 8)
# RUNTIME       seconds of each (default: 1)
set -euo pipefail
# shellcheck source=bench/compare-common.sh
. "$(dirname "$0")/compare-common.sh"

fio=${FIO:-fio}
command -v "$fio" >/dev/null || { echo "skipped: there is no $fio" >&2; exit 0; }
command -v jq >/dev/null || { echo "skipped: there is no jq" >&2; exit 0; }
begin

# name, then the options of its job, or lines of a job file with ; between them.
cases() {
    cat <<'CASES'
seq-read rw=read;size=1m;bs=4k
seq-write rw=write;size=1m;bs=4k
rand-read rw=randread;size=1m;bs=4k
rand-write rw=randwrite;size=1m;bs=4k
mix rw=rw;size=1m;bs=4k
rand-mix rw=randrw;size=1m;bs=4k
mix-70 rw=randrw;size=4m;bs=4k;rwmixread=70
mix-write rw=randrw;size=4m;bs=4k;rwmixwrite=90
large-blocks rw=read;size=8m;bs=1m
small-blocks rw=write;size=64k;bs=512
odd-end rw=read;size=100k;bs=64k
odd-end-write rw=write;size=100k;bs=64k
odd-end-random rw=randwrite;size=100k;bs=16k
odd-size rw=write;size=12345;bs=1k
io-size rw=write;size=1m;io_size=256k;bs=4k
io-size-larger rw=read;size=1m;io_size=3m;bs=4k
io-size-odd rw=read;size=1m;io_size=100k;bs=64k
io-size-share rw=read;size=1m;io_size=50%;bs=4k
number-ios rw=randread;size=1m;bs=4k;number_ios=77
loops rw=read;size=256k;bs=4k;loops=3
loops-write rw=randwrite;size=256k;bs=4k;loops=2
clones rw=write;size=512k;bs=4k;numjobs=4
clones-grouped rw=randread;size=512k;bs=4k;numjobs=4;group_reporting
threads rw=randread;size=512k;bs=4k;numjobs=3;thread
files rw=read;size=1m;bs=4k;nrfiles=8
files-write rw=write;size=1m;bs=4k;nrfiles=8
files-random rw=randread;size=1m;bs=4k;nrfiles=8
files-odd rw=write;size=100k;bs=4k;nrfiles=3
files-sequential rw=read;size=1m;bs=4k;nrfiles=4;file_service_type=sequential
files-random-one-by-one rw=randread;size=1m;bs=4k;nrfiles=4;file_service_type=sequential
files-any-whole rw=randread;size=1m;bs=4k;nrfiles=4;file_service_type=random
files-any rw=read;size=1m;bs=4k;nrfiles=4;file_service_type=random;io_size=512k
files-sized rw=read;nrfiles=5;filesize=16k;bs=4k
files-clones rw=write;size=256k;nrfiles=4;numjobs=3;bs=4k
filename rw=write;size=256k;filename=one
filenames rw=read;size=256k;filename=one:two
filenames-one-by-one rw=randread;size=256k;filename=one:two;file_service_type=sequential
shared rw=randread;size=256k;filename=one;numjobs=4
offset rw=read;offset=64k;size=256k;bs=4k
offset-write rw=write;offset=64k;size=256k;bs=4k;filename=one
offset-increment rw=write;filename=one;size=64k;offset_increment=64k;numjobs=4
format rw=write;size=64k;filename_format=$jobname-$filenum;nrfiles=2
fsync rw=write;size=256k;bs=4k;fsync=1
fsync-8 rw=write;size=256k;bs=4k;fsync=8
fsync-odd rw=write;size=256k;bs=4k;fsync=7
fdatasync rw=randwrite;size=256k;bs=4k;fdatasync=4
end-fsync rw=write;size=256k;bs=4k;end_fsync=1
fsync-and-end rw=write;size=256k;bs=4k;fsync=16;end_fsync=1
fsync-read rw=read;size=256k;bs=4k;fsync=1
sync rw=write;size=64k;bs=4k;sync=1
dsync rw=write;size=64k;bs=4k;sync=dsync
direct rw=randread;size=1m;bs=4k;direct=1
libaio rw=randread;size=1m;bs=4k;direct=1;ioengine=libaio;iodepth=16
libaio-write rw=randwrite;size=1m;bs=4k;direct=1;ioengine=libaio;iodepth=16
libaio-mix rw=randrw;size=1m;bs=8k;direct=1;ioengine=libaio;iodepth=8
libaio-batches rw=randread;size=1m;bs=4k;direct=1;ioengine=libaio;iodepth=16;iodepth_batch=8;iodepth_batch_complete=8;iodepth_low=4
libaio-one-by-one rw=read;size=4m;bs=4k;direct=1;ioengine=libaio;iodepth=64;iodepth_batch=1
uring rw=randread;size=1m;bs=4k;ioengine=io_uring;iodepth=16
uring-write rw=write;size=1m;bs=16k;ioengine=io_uring;iodepth=4
mmap rw=read;size=1m;bs=4k;ioengine=mmap
mmap-write rw=randwrite;size=1m;bs=4k;ioengine=mmap
pvsync2 rw=randread;size=1m;bs=4k;ioengine=pvsync2
sync-engine rw=read;size=1m;bs=4k;ioengine=sync
null rw=randread;size=64m;bs=4k;ioengine=null
zipf rw=randread;size=1m;bs=4k;random_distribution=zipf:1.2
normal rw=randread;size=1m;bs=4k;random_distribution=normal:20
pareto rw=randread;size=1m;bs=4k;random_distribution=pareto:0.3
zoned rw=randread;size=1m;bs=4k;random_distribution=zoned:60/10:30/20:10/
zoned-bytes rw=randwrite;size=1m;bs=4k;random_distribution=zoned_abs:60/128k:40/
holes rw=read:4k;size=1m;bs=4k
holes-larger rw=read:4k;size=1m;io_size=3m;bs=4k
holes-passes rw=read:8k;size=1m;io_size=3m;loops=2;bs=4k
holes-part rw=write:12k;size=1m;loops=2;bs=12k
holes-odd rw=write:3k;size=64k;bs=4k
backwards rw=read:-8k;size=1m;bs=4k
bursts rw=randread:8;size=1m;bs=4k
pattern rw=write;size=1m;bs=4k;buffer_pattern=0xdeadbeef
norandommap rw=randread;size=1m;bs=4k;norandommap
part-random rw=randread;size=1m;bs=4k;percentage_random=50
two-sizes rw=rw;size=1m;bs=4k,8k
compress rw=write;size=1m;bs=64k;buffer_compress_percentage=50
zeros rw=write;size=1m;bs=64k;zero_buffers
rate rw=read;size=64k;bs=4k;rate_iops=200
rate-bytes rw=write;size=256k;bs=4k;rate=1m
rate-uring rw=randread;size=4m;bs=4k;ioengine=io_uring;iodepth=32;rate_iops=20000
rate-libaio rw=randread;size=4m;bs=4k;ioengine=libaio;iodepth=32;rate_iops=20000;rate_process=poisson
think rw=read;size=64k;bs=4k;thinktime=1000
think-blocks rw=read;size=64k;bs=4k;thinktime=1000;thinktime_blocks=4
think-queue rw=randread;size=256k;bs=4k;direct=1;ioengine=libaio;iodepth=8;thinktime=1000;thinktime_blocks=16
rates-apart rw=randrw;size=1m;bs=4k;rwmixread=80;rate_iops=2000,1000;number_ios=128
overwrite rw=randwrite;size=1m;bs=4k;overwrite=1
pre-read rw=randread;size=1m;bs=4k;pre_read=1
fallocate-none rw=write;size=256k;bs=4k;fallocate=none
unlink rw=write;size=256k;bs=4k;nrfiles=3;unlink=1
create-only rw=read;size=256k;bs=4k;create_only=1
stonewall rw=write;size=256k;filename=one;[next];stonewall;rw=read;size=256k;filename=one
waiting rw=write;size=256k;[next];wait_for=job;rw=randread;size=128k
delayed rw=read;size=64k;startdelay=1;[next];rw=write;size=64k
verify rw=write;size=256k;bs=4k;verify=crc32c
verify-random rw=randwrite;size=256k;bs=4k;verify=md5
verify-loops rw=write;size=256k;bs=4k;verify=crc32c;loops=3
filecreate ioengine=filecreate;nrfiles=200;filesize=4k;openfiles=1;create_on_open=1;fallocate=none
filestat ioengine=filestat;nrfiles=200;filesize=4k
filedelete ioengine=filedelete;nrfiles=200;filesize=4k;unlink=0
CASES
}

# The job file of a case.
job() { printf '[job]\n'; printf '%s\n' "$1" | tr ';' '\n'; }

# theirs|ours: runs the case in a directory of its own.
run() {
    rm -rf "$place/$1" && mkdir "$place/$1"
    case $1 in
        theirs) set -- "$fio" theirs ;;
        ours) set -- "$fstone fio" ours ;;
    esac
    # shellcheck disable=SC2086 # a command and its first argument
    (cd "$place/$2" && $1 "$place/job.fio" --output-format=json --output="$place/$2.json") >"$place/$2.out" 2>"$place/$2.err" || {
        echo "failed: $(head -3 "$place/$2.err" "$place/$2.out")" >&2
        return 1
    }
}

# Reads, writes, bytes read, bytes written, fsyncs, files: of all jobs. What fstone says of whole files counts as the
# reads that fio has it for.
figures() {
    jq -r '[.jobs[] | [.read.total_ios + ([.file_operations[]?.total_ios] | add // 0), .write.total_ios, .read.io_bytes,
        .write.io_bytes, .sync.total_ios // 0]] | transpose | map(add) | join(" ")' "$place/$1.json"
    find "$place/$1" -type f ! -name .fstone | wc -l
}

counts() {
    echo "### What job files do"
    echo
    echo "| job file | reads, writes, bytes read, bytes written, fsyncs, files: fio | fstone | |"
    echo "|---|---|---|---|"
    local equal=0 all=0
    while read -r name options; do
        all=$((all + 1))
        job "$options" >"$place/job.fio"
        local theirs=failed ours=failed verdict
        run theirs && theirs=$(figures theirs | xargs)
        run ours && ours=$(figures ours | xargs)
        # Of a mix the sums.
        local sums='{ print $1 + $2, $3 + $4, $5, $6 }'
        if [ "$theirs" = "$ours" ] && [ "$ours" != failed ]; then
            verdict=equal
        elif [[ $options == *rw=rw* || $options == *randrw* ]] && [ "$(awk "$sums" <<<"$theirs")" = "$(awk "$sums" <<<"$ours")" ]; then
            verdict="equal sums"
        else
            verdict=**different**
        fi
        [ "$verdict" = "**different**" ] || equal=$((equal + 1))
        echo "| $name | $theirs | $ours | $verdict |"
    done < <(cases)
    circumstances "$equal of $all equal"
    echo
}

witness() {
    command -v strace >/dev/null || { echo "skipped: there is no strace" >&2; return; }
    echo "### What strace sees of fstone"
    echo
    echo "| job file | reads, writes, fsyncs: strace | fstone's JSON | |"
    echo "|---|---|---|---|"
    for name in seq-read seq-write rand-read rand-write mix-70 files-random fsync-8 fdatasync offset-increment number-ios; do
        job "$(cases | awk -v name=$name '$1 == name { print $2 }')" >"$place/job.fio"
        # Files are made first, so that only the run's own calls are left.
        run ours
        local dir=$place/ours
        (cd "$dir" && strace -f -e trace=pread64,pwrite64,fsync,fdatasync -o "$place/calls" \
            "$fstone" fio "$place/job.fio" --output-format=json --output="$place/ours.json") >/dev/null 2>&1
        # Of the load's threads: the first one is where the program is loaded and files are looked at.
        local seen said
        seen=$(awk 'NR == 1 { main = $1 } $1 == main { next } /pread64\(/ { r++ } /pwrite64\(/ { w++ } /f(data)?sync\(/ { s++ } END { print r + 0, w + 0, s + 0 }' "$place/calls")
        said=$(jq -r '[.jobs[] | [.read.total_ios, .write.total_ios, .sync.total_ios // 0]] | transpose | map(add) | join(" ")' "$place/ours.json")
        echo "| $name | $seen | $said | $([ "$seen" = "$said" ] && echo equal || echo "**different**") |"
    done
    circumstances "strace -f, on files that are there"
    echo
}

# The share of reads at an offset that was written before.
#   hits COMMAND ARGUMENTS
hits() {
    local program=$1
    shift
    # The first run makes the file.
    # shellcheck disable=SC2086 # a command and its first argument
    (cd "$place/hot" && $program "$@" --output=/dev/null) >"$place/said" 2>&1 || { tail -n 3 "$place/said" >&2; return 1; }
    # shellcheck disable=SC2086 # a command and its first argument
    (cd "$place/hot" && strace -f -e trace=pread64,pwrite64 -o "$place/calls" $program "$@" --output=/dev/null) >/dev/null 2>&1
    awk '
        !/, 4096, [0-9]+\) *= 4096/ && !/, 4096, [0-9]+ <unfinished/ { next }
        { match($0, /, 4096, [0-9]+/); at = substr($0, RSTART + 8, RLENGTH - 8) }
        /pwrite64\(/ { written[at] = 1 }
        /pread64\(/ { reads++; hits += at in written }
        END { printf "%.3f", reads ? hits / reads : 0 }' "$place/calls"
}

hot() {
    command -v strace >/dev/null || { echo "skipped: there is no strace" >&2; return; }
    echo "### Reads of blocks that were written before"
    echo
    echo "| distribution | fio | fstone | |"
    echo "|---|---|---|---|"
    local distribution theirs ours verdict
    for distribution in zipf:1.2 zipf:0.9 pareto:0.1 pareto:0.2 normal:1 normal:20 zoned:60/10:30/20:10/70; do
        rm -rf "$place/hot" && mkdir "$place/hot"
        set -- --name=job --filename=data --size=64m --bs=4k --rw=randrw --norandommap --ioengine=psync --thread --number_ios=8000 \
            --random_distribution=$distribution
        theirs=$(hits "$fio" "$@")
        ours=$(hits "$fstone fio" "$@")
        verdict=$(awk -v a="$theirs" -v b="$ours" 'BEGIN { print (a - b < 0.05 && b - a < 0.05) ? "equal" : "**different**" }')
        echo "| $distribution | $theirs | $ours | $verdict |"
    done
    circumstances "8,000 reads and writes of 4 KiB in 64 MiB"
    echo
}

# A line for a program that was run on what fstone wrote: that it ended well, and left something.
#   reader NAME WHAT-IT-LEAVES COMMAND...
reader() {
    local name=$1 leaves=$2
    shift 2
    if (cd "$place/readers" && "$@") >"$place/said" 2>&1 && [ -s "$place/readers/$leaves" ]; then
        echo "| $name | read |"
    else
        echo "| $name | **failed**: $(tail -n 1 "$place/said") |"
    fi
}

readers() {
    echo "### Programs that read what fstone wrote"
    echo
    echo "| program | |"
    echo "|---|---|"
    mkdir -p "$place/readers/runs"
    local depth log
    for depth in 1 2 4; do
        log=runs/randread-iodepth-$depth-numjobs-1
        (cd "$place/readers" && "$fstone" fio --name="randread-iodepth-$depth-numjobs-1" --ioengine=io_uring --rw=randread --size=4m --bs=4k \
            --iodepth=$depth --numjobs=1 --time_based --runtime=1 --filename=data --output-format=json+ --log_avg_msec=100 \
            --output="runs/randread-$depth-1.json" --write_bw_log=$log --write_iops_log=$log --write_lat_log=$log) 2>/dev/null
    done
    local tools=${TOOLS:-} plot=${FIO_PLOT:-fio-plot} kind
    if [ -d "$tools" ]; then
        tools=$(cd "$tools" && pwd)
        reader fio_jsonplus_clat2csv out_job0.csv python3 "$tools/fio_jsonplus_clat2csv" runs/randread-4-1.json out.csv
        # It prints.
        reader fiologparser.py parsed sh -c "python3 '$tools/fiologparser.py' -i 100 runs/randread-iodepth-1-numjobs-1_bw.1.log >parsed"
    else
        echo "skipped: TOOLS names no directory" >&2
    fi
    if command -v "$plot" >/dev/null; then
        for kind in "-l -d 1 2 4" "-L -d 1 2 4 -t iops" "-g -d 1 2 4 -t bw iops lat" "-H -d 1" "-N -d 1"; do
            # shellcheck disable=SC2086 # options
            reader "fio-plot ${kind%% *}" "plot${kind%% *}.png" "$plot" -i runs -T fstone $kind -n 1 -r randread -o "plot${kind%% *}.png"
        done
    else
        echo "skipped: there is no $plot" >&2
    fi
    circumstances "Each ends well and leaves what it makes"
    echo
}

# Requests that the device has read.
requested() {
    if [ -n "${loop:-}" ]; then awk '{ print $1 }' "/sys/block/${loop#/dev/}/stat"; else echo 0; fi
}

# Reads per second of a job by one of both tools, in the directory of the case; $place/requests gets the side, the device's requests, and reads.
#   rate COMMAND ARGUMENTS
rate() {
    local program=$1 before side=ours
    [ "$program" != "$fio" ] || side=theirs
    shift
    before=$(requested)
    # shellcheck disable=SC2086 # a command and its first argument
    (cd "$place/fs" && $program "$@" --output-format=json --output="$place/speed.json") >"$place/said" 2>&1 || {
        tail -n 3 "$place/said" >&2
        return 1
    }
    jq -r ".jobs[0].read | \"$side $(($(requested) - before)) \(.total_ios)\"" "$place/speed.json" >>"$place/requests"
    jq -r '.jobs[0].read.iops' "$place/speed.json"
}

# Mean latency of a job by one of both tools, in microseconds.
#   latency COMMAND ARGUMENTS
latency() {
    rate "$@" >/dev/null && jq -r '.jobs[0].read.lat_ns.mean / 1000' "$place/speed.json"
}

paced() {
    local pairs=${PAIRS:-8} seconds=${RUNTIME:-1} name options pair a b
    echo "### Mean latency in µs of cached reads of 4 KiB, 32 in flight at most"
    echo
    echo "| job | fio | fstone | fstone / fio (95 %) |"
    echo "|---|---|---|---|"
    mkdir -p "$place/fs"
    while read -r name options; do
        : >"$place/pairs"
        for ((pair = 0; pair < pairs; pair++)); do
            local job="--name=job --filename=data --rw=randread --bs=4k --size=1m --iodepth=32 --norandommap --invalidate=0 --time_based --runtime=$seconds --thread $options"
            # shellcheck disable=SC2086 # options
            if ((pair % 2)); then
                b=$(latency "$fstone fio" $job)
                a=$(latency "$fio" $job)
            else
                a=$(latency "$fio" $job)
                b=$(latency "$fstone fio" $job)
            fi
            echo "$a $b" >>"$place/pairs"
        done
        echo "| ${name//_/ } | $(paired <"$place/pairs") |"
    done <<'JOBS'
io_uring,_20000/s --ioengine=io_uring --rate_iops=20000
libaio,_20000/s --ioengine=libaio --rate_iops=20000
io_uring,_15000/s,_Poisson --ioengine=io_uring --rate_iops=15000 --rate_process=poisson
JOBS
    circumstances "$("$fio" --version), $pairs pairs of $seconds s"
    echo
}

speed() {
    local pairs=${PAIRS:-8} seconds=${RUNTIME:-1} name options pair a b per_read
    echo "### Reads per second, one thread, 4 KiB at random"
    echo
    echo "| job | fio | fstone | fstone / fio (95 %) | device requests per read: fio, fstone |"
    echo "|---|---|---|---|---|"
    fresh ext4 1G
    while read -r name options; do
        : >"$place/pairs"
        : >"$place/requests"
        for ((pair = 0; pair < pairs; pair++)); do
            local job="--name=job --filename=data --rw=randread --bs=4k --norandommap --invalidate=0 --time_based --runtime=$seconds --thread $options"
            # Who is first takes turns. The first run makes the file.
            # shellcheck disable=SC2086 # options
            if ((pair % 2)); then
                b=$(rate "$fstone fio" $job)
                a=$(rate "$fio" $job)
            else
                a=$(rate "$fio" $job)
                b=$(rate "$fstone fio" $job)
            fi
            echo "$a $b" >>"$place/pairs"
        done
        rm -f "$place/fs/data"
        per_read=$(awk '{ requests[$1] += $2; reads[$1] += $3 }
            END { printf "%.4f, %.4f", requests["theirs"] / reads["theirs"], requests["ours"] / reads["ours"] }' "$place/requests")
        echo "| ${name//_/ } | $(paired <"$place/pairs") | $per_read |"
    done <<'JOBS'
psync,_1_MiB_cached --ioengine=psync --size=1m
psync,_256_MiB_cached --ioengine=psync --size=256m
io-uring,_32_in_flight,_1_MiB_cached --ioengine=io_uring --iodepth=32 --size=1m
io-uring,_32_in_flight,_batches,_1_MiB_cached --ioengine=io_uring --iodepth=32 --iodepth_batch=32 --iodepth_batch_complete_max=32 --size=1m
libaio,_32_in_flight,_O_DIRECT --ioengine=libaio --iodepth=32 --direct=1 --size=256m
libaio,_32_in_flight,_batches,_O_DIRECT --ioengine=libaio --iodepth=32 --iodepth_batch=32 --iodepth_batch_complete_max=32 --direct=1 --size=256m
null --ioengine=null --size=256m
JOBS
    circumstances "$("$fio" --version), $pairs pairs of $seconds s, ext4 on a loop device"
    echo
}

probe() {
    fresh ext4 256M
    python3 "$root/bench/probe.py" fio "$fstone" "$fio" "$1" "${SEED:-1}" "$place/fs"
}

if [ "${1:-}" = probe ]; then
    probe "${2:-100}"
    exit
fi
[ $# -gt 0 ] || set -- counts hot witness
for part in "$@"; do
    case $part in
        counts | hot | witness | readers | speed | paced) "$part" ;;
        *) echo "unknown part $part: counts, hot, witness, readers, speed or paced" >&2; exit 2 ;;
    esac
done

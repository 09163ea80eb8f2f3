#!/bin/bash
# Compares `fstone ffsb` with the real FFSB 6.0 and prints Markdown.
#
#   FFSB=/path/to/ffsb bench/compare-ffsb.sh [tmpfs|ext4|random|mix]...      (default: all; as root)
#
# tmpfs, ext4   the small-file profile, side by side: transactions per second and the mix of operations achieved
# random        distinct blocks that random reads of one file touch, counted by the kernel (which pages are resident)
# mix           the mix achieved by weights 70 to 30
#
# FSTONE        the binary (default: target/release/fstone)
# ROUNDS        pairs of runs of the side-by-side comparisons, in alternating order (default: 6)
# RUN_SECONDS   length of each run (default: 4)
# AUDIT_SECONDS length of the runs of `random` (default: 5)
#
# FFSB is not part of Debian; `git clone https://github.com/FFSB-Prime/ffsb && cd ffsb && autoreconf -i && ./configure
# CFLAGS='-O2 -fcommon' && make` builds it.
set -euo pipefail
# shellcheck source=bench/compare-common.sh
. "$(dirname "$0")/compare-common.sh"

[ -n "${FFSB:-}" ] || { echo "skipped: FFSB=/path/to/ffsb names no original to compare with" >&2; exit 0; }
[ -x "$FFSB" ] || { echo "skipped: $FFSB is no program" >&2; exit 0; }
[ "$(id -u)" = 0 ] || { echo "skipped: mounting needs root" >&2; exit 0; }
rounds=${ROUNDS:-6}
seconds=${RUN_SECONDS:-4}
begin

# The published small-file profile, in the words that FFSB 6.0 knows too.
small_file() {
    cat <<PROFILE
time = $seconds
directio = 0
[filesystem]
location = $place/fs
num_files = 5000
num_dirs = 1000
min_filesize = 4096
max_filesize = 524288
[end]
[threadgroup]
num_threads = 128
write_size = 4096
write_blocksize = 4096
read_blocksize = 4096
create_weight = 1
write_weight = 1
readall_weight = 2
[end]
PROFILE
}

# theirs|ours: runs the profile; its output is in $place/theirs or $place/ours.
run() {
    case $1 in
        theirs) "$FFSB" "$place/profile" ;;
        ours) "$fstone" ffsb "$place/profile" ;;
    esac >"$place/$1" 2>"$place/$1.err" || { cat "$place/$1" "$place/$1.err" >&2; exit 1; }
}

# Transactions per second of the whole run.
rate() { awk '/Transactions per Second/ { rate = $1 } END { print rate + 0 }' "$place/$1"; }

# The share of invocations of an operation, percent, in the totals.
share() {
    awk -v op="$2" '/^ *Total Results/ { totals = 1 } totals && $1 == op { for (i = 3; i <= NF; i++) if ($i ~ /%$/) share = $i }
        END { print share + 0 }' "$place/$1"
}

# Transactions of an operation in the totals.
transactions() {
    awk -v op="$2" '/^ *Total Results/ { totals = 1 } totals && $1 == op { count = $3 } END { print count + 0 }' "$place/$1"
}

side_by_side() {
    small_file >"$place/profile"
    : >"$place/rates"
    : >"$place/mix"
    for round in $(seq "$rounds"); do
        # ABBA: a drift of the machine bears on both alike.
        order="theirs ours"
        [ $((round % 2)) = 1 ] || order="ours theirs"
        for side in $order; do
            fresh "$1" 16G
            run "$side"
            away
        done
        echo "$(rate theirs) $(rate ours)" >>"$place/rates"
        for op in readall write create; do
            echo "$op $(share theirs $op) $(share ours $op)" >>"$place/mix"
        done
    done
    echo "### Small files on $1"
    echo
    echo "| | FFSB | fstone | fstone / FFSB (95 % interval) |"
    echo "|---|---|---|---|"
    echo "| transactions per second | $(paired <"$place/rates") |"
    for op in readall write create; do
        awk -v op=$op '$1 == op { n++; a += $2; b += $3 }
            END { printf "| %s, %% of operations (wanted %d) | %.2f | %.2f | |\n", op, op == "readall" ? 50 : 25, a / n, b / n }' \
            "$place/mix"
    done
    circumstances "$rounds pairs of runs of $seconds s, 128 threads, each on a new filesystem"
    echo
}

# Blocks of the one file that are in the page cache; readahead is off and the cache was empty before the run.
resident() { fincore --bytes --noheadings --output PAGES "$place"/fs/data/datafile0 | tr -d ' '; }

random_reads() {
    local blocks=131072
    cat >"$place/drop" <<'SCRIPT'
#!/bin/sh
sync
echo 3 >/proc/sys/vm/drop_caches
SCRIPT
    chmod +x "$place/drop"
    cat >"$place/profile" <<PROFILE
time = ${AUDIT_SECONDS:-5}
alignio = 1
callout = $place/drop
[filesystem]
location = $place/fs
num_files = 1
min_filesize = 512m
max_filesize = 512m
[end]
[threadgroup]
num_threads = 4
read_random = 1
read_size = 4k
read_blocksize = 4k
read_weight = 1
[end]
PROFILE
    echo "### Random reads of a file of 512 MiB"
    echo
    echo "| | 4 KiB reads | blocks read, of $blocks | expected of a uniform draw |"
    echo "|---|---|---|---|"
    for side in theirs ours; do
        fresh ext4 1G
        blockdev --setra 0 "$loop"
        run "$side"
        reads=$(transactions "$side" read)
        name=FFSB
        [ $side = theirs ] || name=fstone
        awk -v name=$name -v n="$reads" -v b=$blocks -v found="$(resident)" 'BEGIN {
            left = exp(n * log(1 - 1 / b)); expected = b * (1 - left)
            spread = sqrt(b * left * (1 - (1 + n / b) * left))
            printf "| %s | %d | %d | %.0f ± %.0f |\n", name, n, found, expected, 2 * spread }'
        away
    done
    circumstances "4 threads, ext4 on a loop device, readahead off, page cache emptied before the start, resident pages counted with fincore afterwards; ± is two standard deviations"
    echo
}

mix() {
    cat >"$place/profile" <<PROFILE
time = $((seconds * 2))
[filesystem]
location = $place/fs
num_files = 1000
num_dirs = 10
min_filesize = 4k
max_filesize = 4k
[end]
[threadgroup]
num_threads = 2
stat_weight = 70
open_close_weight = 30
[end]
PROFILE
    echo "### Weights 70 to 30"
    echo
    echo "| | operations | stat, % | open_close, % |"
    echo "|---|---|---|---|"
    for side in theirs ours; do
        fresh tmpfs 1G
        run "$side"
        a=$(transactions "$side" stat) b=$(transactions "$side" open_close)
        name=FFSB
        [ $side = theirs ] || name=fstone
        awk -v name=$name -v a="$a" -v b="$b" \
            'BEGIN { printf "| %s | %d | %.3f | %.3f |\n", name, a + b, 100 * a / (a + b), 100 * b / (a + b) }'
        away
    done
    circumstances "2 threads, tmpfs, $((seconds * 2)) s"
    echo
}

[ $# -gt 0 ] || set -- tmpfs ext4 random mix
for part in "$@"; do
    case $part in
        tmpfs | ext4) side_by_side "$part" ;;
        random) random_reads ;;
        mix) mix ;;
        *) echo "unknown part $part: tmpfs, ext4, random or mix" >&2; exit 2 ;;
    esac
done

#!/bin/bash
# Compares `fstone filebench` with the real filebench on personalities of its own repository. Prints Markdown.
#
#   bench/compare-filebench.sh WORKLOADS [throughput|read|starts]...      (default: read throughput)
#
# WORKLOADS     filebench's workloads/ directory, of a checkout: nothing of it is in this repository
# read          every personality there is read, or refused with a reason
# throughput    operations per second of fileserver, varmail, webserver and webproxy on tmpfs, in pairs, and each flowop's
#               share of all operations
# starts        fstone starts each of the four STARTS times, and ends
#
# FSTONE        the binary (default: target/release/fstone)
# FILEBENCH     the original (default: filebench). It is run without address space randomisation: with it, it hangs
# PAIRS         pairs of runs (default: 5)
# RUNTIME       seconds of each (default: 5)
# STARTS        starts of each personality (default: 1000)
set -euo pipefail
# shellcheck source=bench/compare-common.sh
. "$(dirname "$0")/compare-common.sh"

workloads=$(cd "${1:?where are the personalities of filebench?}" && pwd)
shift
[ $# -gt 0 ] || set -- read throughput
filebench=${FILEBENCH:-filebench}
four="fileserver varmail webserver webproxy"
begin

# A personality on $place/fs, for so long.
#   personality NAME SECONDS
personality() {
    sed -e "s#^set \$dir=.*#set \$dir=$place/fs#" -e '/^run/d' "$workloads/$1.f" >"$place/$1.f"
    echo "run $2" >>"$place/$1.f"
}

# Operations per second of a report on standard input, and each flowop's count in a file.
summary() {
    tee "$1" | sed -n 's/.*IO Summary: *[0-9]* ops *\([0-9.]*\) ops\/s.*/\1/p'
}

theirs() {
    fresh tmpfs 4G
    timeout 300 setarch -R "$filebench" -f "$place/$1.f" 2>&1 | summary "$place/theirs"
}

ours() {
    fresh tmpfs 4G
    "$fstone" filebench "$place/$1.f" 2>"$place/said" | summary "$place/ours"
}

read_all() {
    echo "## Personalities that are read"
    echo
    local read=0 all=0 file
    for file in "$workloads"/*.f; do
        all=$((all + 1))
        if "$fstone" convert "$file" >"$place/converted" 2>"$place/said"; then
            read=$((read + 1))
        else
            echo "- $(basename "$file"): $(grep -m1 '^error' "$place/said")"
        fi
    done
    echo
    echo "$read of $all are read; the others are refused for the reasons above."
    echo
}

throughput() {
    command -v "$filebench" >/dev/null || { echo "skipped: there is no $filebench" >&2; return 0; }
    local seconds=${RUNTIME:-5} pairs=${PAIRS:-5} name
    echo "## Operations per second on tmpfs, $pairs pairs of $seconds s"
    echo
    echo "| personality | filebench | fstone | fstone / filebench (95 %) | largest difference of a flowop's share |"
    echo "|---|---|---|---|---|"
    for name in $four; do
        personality "$name" "$seconds"
        : >"$place/pairs"
        local pair
        for ((pair = 0; pair < pairs; pair++)); do
            # Who is first takes turns.
            if ((pair % 2)); then
                a=$(ours "$name") b=$(theirs "$name")
                echo "$b $a" >>"$place/pairs"
            else
                a=$(theirs "$name") b=$(ours "$name")
                echo "$a $b" >>"$place/pairs"
            fi
        done
        echo "| $name | $(paired <"$place/pairs") | $(shares) |"
    done
    echo
}

# The largest difference between the two tools of a flowop's share of all operations, in percentage points.
shares() {
    awk '
        $2 ~ /^[0-9]+ops$/ { file[FILENAME]; count[FILENAME, $1] += $2; sum[FILENAME] += $2; name[$1] }
        END {
            for (one in name) {
                difference = 100 * (count[ARGV[1], one] / sum[ARGV[1]] - count[ARGV[2], one] / sum[ARGV[2]])
                if (difference < 0) difference = -difference
                if (difference >= worst) { worst = difference; which = one }
            }
            printf "%.2f points (%s)", worst, which
        }' "$place/theirs" "$place/ours"
}

starts() {
    local times=${STARTS:-1000} name number wrong=0
    for name in $four; do
        personality "$name" 1
        # Few files and an instant: what is tried is the starting.
        sed -i -e 's/^set \$nfiles=.*/set $nfiles=50/' "$place/$name.f"
        "$fstone" convert "$place/$name.f" | sed -e 's/time = "1 s"/time = "20 ms"/' >"$place/$name.toml"
        fresh tmpfs 1G
        for ((number = 0; number < times; number++)); do
            timeout 30 "$fstone" load "$place/$name.toml" --directory "$place/fs" >/dev/null 2>&1 || wrong=$((wrong + 1))
        done
    done
    echo "Of $times starts of each of four personalities, $wrong did not end as they should."
}

for part in "$@"; do
    case $part in
    read) read_all ;;
    throughput) throughput ;;
    starts) starts ;;
    *) echo "$0: unknown part $part" >&2; exit 2 ;;
    esac
done

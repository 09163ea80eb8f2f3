#!/bin/bash
# Compares `fstone filebench` with the real filebench on personalities of its own repository. Prints Markdown.
#
#   bench/compare-filebench.sh WORKLOADS [throughput|every|read|starts]...      (default: read throughput)
#
# WORKLOADS     filebench's workloads/ directory, of a checkout: nothing of it is in this repository
# read          every personality there is read, or refused with a reason
# throughput    operations per second of PERSONALITIES on tmpfs, in pairs, and each flowop's share of all operations
# every         the same for all personalities there, once each
# starts        fstone starts each personality STARTS times, with few small files and for an instant, and ends
#
# Files are smaller than filebench's where they would not fit into memory, varmail has 50,000 of them, and videoserver has no limit:
# see `personality`.
#
# FSTONE        the binary (default: target/release/fstone)
# FILEBENCH     the original (default: filebench). It is run without address space randomisation: with it, it hangs
# PERSONALITIES those of `throughput` (default: fileserver varmail webserver webproxy oltp videoserver)
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
personalities=${PERSONALITIES:-fileserver varmail webserver webproxy oltp videoserver}
begin

# A personality on $place/fs, for so long.
#   personality NAME SECONDS
personality() {
    local change=(-e "s#^set \$\(dir\|path\)=.*#set \$\1=$place/fs#" -e '/^run/d' -e '/^psrun/d'
        -e 's/^set \$filesize=[0-9]*g$/set $filesize=20m/' -e 's/,size=[0-9]*[0-9][0-9]m,/,size=20m,/')
    case $1 in
    # Of 1,000 files 200 names are free. filebench leaves out a deletion whose file is open: the names are gone in a second.
    varmail) change+=(-e 's/^set \$nfiles=.*/set $nfiles=50000/') ;;
    # 96 events a second are no measure of a tool.
    videoserver) change+=(-e 's/^set \$eventrate=.*/set $eventrate=0/') ;;
    esac
    sed "${change[@]}" "$workloads/$1.f" >"$place/$1.f"
    echo "run $2" >>"$place/$1.f"
}

# Operations per second of a report on standard input, which is kept in a file.
summary() {
    tee "$1" | sed -n 's/.*IO Summary: *[0-9]* ops *\([0-9.]*\) ops\/s.*/\1/p'
}

theirs() {
    fresh tmpfs 8G
    { timeout 120 setarch -R "$filebench" -f "$place/$1.f" 2>&1 || true; } | summary "$place/theirs"
}

ours() {
    fresh tmpfs 8G
    { "$fstone" filebench "$place/$1.f" 2>"$place/said" || true; } | summary "$place/ours"
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

there_is_filebench() {
    command -v "$filebench" >/dev/null || { echo "skipped: there is no $filebench" >&2; return 1; }
}

throughput() {
    there_is_filebench || return 0
    local seconds=${RUNTIME:-5} pairs=${PAIRS:-5} name
    echo "## Operations per second on tmpfs, $pairs pairs of $seconds s"
    echo
    echo "| personality | filebench | fstone | fstone / filebench (95 %) | largest difference of a flowop's share |"
    echo "|---|---|---|---|---|"
    for name in $personalities; do
        personality "$name" "$seconds"
        : >"$place/pairs"
        local pair a b
        for ((pair = 0; pair < pairs; pair++)); do
            # Who is first takes turns.
            if ((pair % 2)); then
                b=$(ours "$name")
                a=$(theirs "$name")
            else
                a=$(theirs "$name")
                b=$(ours "$name")
            fi
            echo "$a $b" >>"$place/pairs"
        done
        echo "| $name | $(paired <"$place/pairs") | $(shares) |"
    done
    circumstances "$("$filebench" -h 2>&1 | sed -n 's/^\(Filebench Version [^ ]*\).*/\1/p' | head -n 1)"
    echo
}

# Of a report in a file: operations, and how many per second.
amounts() {
    sed -n 's/.*IO Summary: *\([0-9]*\) ops *\([0-9.]*\) ops\/s.*/\1 \2/p' "$1"
}

every() {
    there_is_filebench || return 0
    local seconds=${RUNTIME:-5} file name a b
    echo "## All personalities on tmpfs, $seconds s each"
    echo
    echo "Operations, and operations per second. A load that ends by itself is timed by filebench to the second."
    echo
    echo "| personality | filebench | fstone | fstone / filebench | largest difference of a flowop's share |"
    echo "|---|---|---|---|---|"
    for file in "$workloads"/*.f; do
        name=$(basename "$file" .f)
        personality "$name" "$seconds"
        theirs "$name" >"$place/rate"
        ours "$name" >"$place/rate"
        a=$(amounts "$place/theirs")
        b=$(amounts "$place/ours")
        [ -n "$a" ] || a=$(grep -m1 -iE 'error|stopped|failed|cannot|could not' "$place/theirs" | sed 's/^[0-9. ]*: *//' | cut -c 1-60 || true)
        [ -n "$b" ] || b=$(grep -m1 -A1 -E '^(error|fstone)' "$place/said" | tr '\n' ' ' || true)
        echo "| $name | ${a:-nothing} | ${b:-nothing} | $(echo "$a $b" | awk 'NF == 4 { printf "%.2f", $4 / $2 }') | $(shares) |"
    done
    echo
}

# The largest difference between the two tools of a flowop's share of all operations, in percentage points. Flowops that are no
# operations on files are in filebench's breakdown only, and are left out.
shares() {
    awk '
        $2 ~ /^[0-9]+ops$/ { count[FILENAME, $1] = $2 + 0; if (FILENAME == ARGV[2]) name[$1] }
        END {
            for (one in name) for (tool = 1; tool <= 2; tool++) sum[tool] += count[ARGV[tool], one]
            if (!sum[1] || !sum[2]) { print "?"; exit }
            for (one in name) {
                difference = 100 * (count[ARGV[2], one] / sum[2] - count[ARGV[1], one] / sum[1])
                size = difference < 0 ? -difference : difference
                if (size >= worst) { worst = size; signed = difference; which = one }
            }
            printf "%+.2f points (%s)", signed, which
        }' "$place/theirs" "$place/ours"
}

# Few small files and an instant: what is tried is the starting, and the end.
#   tiny NAME
tiny() {
    personality "$1" 1
    sed -i -e 's/^set \$\(nfiles\|ndirs\|count\)=.*/set $\1=50/' -e 's/^set \$\(filesize\|workingset\|logfilesize\)=[0-9]*[mg]$/set $\1=1m/' \
        -e 's/,size=20m,/,size=1m,/' "$place/$1.f"
    "$fstone" convert "$place/$1.f" 2>/dev/null | sed -e 's/time = "1 s"/time = "5 ms"/' >"$place/$1.toml"
}

starts() {
    local times=${STARTS:-1000} file name number all=0 hung=0 failed=0 status
    echo "## Starts"
    echo
    for file in "$workloads"/*.f; do
        name=$(basename "$file" .f)
        tiny "$name"
        fresh tmpfs 2G
        local before=$((hung + failed))
        for ((number = 0; number < times; number++)); do
            status=0 all=$((all + 1))
            timeout -k 5 30 "$fstone" load "$place/$name.toml" --directory "$place/fs" >/dev/null 2>"$place/said" || status=$?
            case $status in
            0) ;;
            124 | 137) hung=$((hung + 1)) ;;
            *) failed=$((failed + 1)) ;;
            esac
            # What fails once fails again.
            [ $((hung + failed - before)) -lt 3 ] || break
        done
        [ $((hung + failed)) -eq "$before" ] || echo "- $name: $(tail -n 1 "$place/said")"
    done
    echo
    echo "Of $all starts, at most $times of each personality, $hung hung and $failed failed."
    echo
}

for part in "$@"; do
    case $part in
    read) read_all ;;
    throughput) throughput ;;
    every) every ;;
    starts) starts ;;
    *) echo "$0: unknown part $part" >&2; exit 2 ;;
    esac
done

#!/usr/bin/env bash
# What an operation takes of a kernel that counts its work: microseconds, as --cpu charges it, and thousands of instructions, on a drive
# without delay, of files of 8 KiB in one directory. Each operation is a load of its own, whose files are made before.
# With HOST=7, also so many trials of the same loads on this machine's kernel, on a loop device in memory (needs root): how the medians of
# latencies here compare with those.
# Usage: [FSTONE=target/release/fstone] [KERNELS=where kernels are kept] [KERNEL=exact:6.1.192-counting] [CPU=server-today] [OPERATIONS=10000] \
#        [FILESYSTEMS="ext4 xfs"] [NAMES="create stat"] [HOST=7] bench/kernel-work.sh
set -euo pipefail
# shellcheck source=bench/compare-common.sh
. "$(dirname "$0")/compare-common.sh"
kernel=${KERNEL:-exact:6.1.192-counting} cpu=${CPU:-server-today} operations=${OPERATIONS:-10000} host=${HOST:-0}
read -ra filesystems <<<"${FILESYSTEMS:-ext2 ext3 ext4 xfs btrfs f2fs jfs nilfs2 reiserfs}"
read -ra names <<<"${NAMES:-create stat read append unlink}"
begin
cd "$place"

# An operation of a phase.
phase() {
    local action='{}'
    case $1 in
        create | read) action='{ block = "8 KiB" }' ;;
        append) action='{ size = "8 KiB", block = "8 KiB" }' ;;
    esac
    cat <<END
[[phase]]
name = "$1"
measured = $2
stop = { operations = $operations }
group = [{ name = "$1", sequence = [{ $1 = $action, fileset = "files" }] }]
END
}

{
    cat <<'END'
title = "The kernel's work for an operation"
repeats = 1
device = { loop = { size = "2 GiB", memory = true } }
[factor.filesystem]
"ext2" = { type = "ext2" }
"ext3" = { type = "ext3" }
"ext4" = { type = "ext4", mkfs = "-E lazy_itable_init=0,lazy_journal_init=0" }
"ext4 without a journal" = { type = "ext4", mkfs = "-O ^has_journal -E lazy_itable_init=0" }
END
    for kind in xfs btrfs f2fs jfs nilfs2 reiserfs; do echo "\"$kind\" = { type = \"$kind\" }"; done
    for name in "${names[@]}"; do
        files=$operations leaves=0
        case $name in create) files=0 ;; mkdir | rmdir) files=0 leaves=$operations ;; esac
        {
            cat <<END
name = "$name"
final-sync = "none"
[[fileset]]
name = "files"
directory = "$name"
files = $files
leaf-directories = $leaves
size = "8 KiB"
END
            # The directories are there at first.
            [ "$name" != mkdir ] || phase rmdir false
            phase "$name" true
        } >"$name.workload"
        echo "[[step]]
name = \"$name\"
load = { workload = \"$name.workload\" }
show = [\"$name latency mean\", \"$name latency p50\", \"kernel work per operation\"]
[[step]]
name = \"clear $name\"
command = { shell = true, run = \"rm -rf $name\" }"
    done
} >operations.toml
cat >no-delay.toml <<'END'
title = "a drive without delay"
kind = "constant"
[parameters]
latency = { is = "0 s", from = "none" }
bandwidth = { is = "1000000 GB/s", from = "none" }
END

only=()
for kind in "${filesystems[@]}"; do only+=(--only "filesystem=${kind//_/ }"); done
#   run WHERE OPTIONS...
run() {
    "$fstone" --work-directory "$place/work" ${KERNELS:+--kernels "$KERNELS"} --store "$1.db" run ./operations.toml "${only[@]}" "${@:2}" >said 2>&1 ||
        { cat said >&2; return 1; }
    "$fstone" --store "$1.db" report --format json >"$1.json"
    jq -r '.rows[] | select(.outcome != "completed") | "\(.label): \(.outcome)"' "$1.json" >&2
}

run here --kernel "$kernel" --model ./no-delay.toml --cpu "$cpu" --perturbed 0
echo "| filesystem |$(printf ' %s, µs | 1,000 |' "${names[@]}")"
echo "|---|$(printf -- '--:|--:|%.0s' "${names[@]}")"
jq -r '.rows[] | [.label, (.figures | range(0; length; 3) as $at | (.[$at].mean, .[$at + 2].mean) // "?")] | @tsv' here.json |
    awk -F '\t' '{ printf "| %s |", $1; for (i = 2; i <= NF; i += 2) printf " %.1f | %.1f |", $i / 1e3, $(i + 1) / 1e3; print "" }'
circumstances "$kernel on $cpu, $operations operations"
[ "$host" = 0 ] && exit

run host --repeats "$host" --seed 1
echo
echo "| here by host |$(printf ' %s |' "${names[@]}")"
echo "|---|$(printf -- '--:|%.0s' "${names[@]}")"
ratios='[range(1; length; 3) as $at | .[$at].median]'
jq -rs "[.[] | [.rows[] | .figures | $ratios]] as [\$here, \$host] | .[0].rows | keys[] as \$row
    | [.[\$row].label, (range(\$here[\$row] | length) as \$at | \$here[\$row][\$at] / \$host[\$row][\$at])] | @tsv" here.json host.json |
    awk -F '\t' '{ printf "| %s |", $1; for (i = 2; i <= NF; i++) printf " %.2f |", $i; print "" }'
jq -rs "def ranks: . as \$all | map(. as \$one | [\$all[] | select(. < \$one)] + [\$all[] | select(. <= \$one)] | (length + 1) / 2);
    def mean: add / length;
    def centred: mean as \$mean | map(. - \$mean);
    def times(\$other): [., \$other] | transpose | map(.[0] * .[1]) | add;
    map([.rows[].figures | $ratios[]]) as [\$here, \$host]
    | (\$here | ranks | centred) as \$a | (\$host | ranks | centred) as \$b
    | ((\$a | times(\$b)) / (((\$a | times(\$a)) * (\$b | times(\$b))) | sqrt)) as \$correlation
    | [\$here, \$host] | transpose | map(.[0] / .[1]) | sort
    | \"\(length) figures: rank correlation \(\$correlation), ratios \(.[0]) to \(.[-1]), median \(.[length / 2 | floor])\"" here.json host.json
circumstances "medians of $host trials, load $(cut -d ' ' -f 1-3 /proc/loadavg)"

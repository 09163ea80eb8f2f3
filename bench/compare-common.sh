# shellcheck shell=bash
# What the comparisons with other tools share: a place to run in, and what to make of pairs of figures. Sourced.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
fstone=${FSTONE:-$root/target/release/fstone}
case $fstone in /*) ;; *) fstone=$PWD/$fstone ;; esac

# Everything made is below here, and gone at the end.
place=
begin() {
    place=$(mktemp -d "${TMPDIR:-/tmp}/fstone-compare-XXXXXX") || exit
    trap end EXIT
    trap 'exit 130' INT TERM HUP
}

end() {
    cd /
    away || return
    rm -rf --one-file-system "$place"
}

away() {
    local tries=0
    while mountpoint -q "$place/fs" && ! umount "$place/fs" 2>/dev/null; do
        # What was killed may still be at work in the kernel.
        tries=$((tries + 1))
        if [ $tries = 40 ]; then
            echo "$place/fs cannot be unmounted and is left${loop:+, with $loop}: end what uses it, then umount${loop:+ and losetup -d}" >&2
            return 1
        fi
        sleep 0.25
    done
    if [ -n "${loop:-}" ]; then
        losetup -d "$loop"
        loop=
    fi
    return 0
}

# A new filesystem at $place/fs.
#   fresh tmpfs|ext4 SIZE
fresh() {
    away
    mkdir -p "$place/fs"
    if [ "$1" = tmpfs ]; then
        mount -t tmpfs -o "size=$2" tmpfs "$place/fs"
        return
    fi
    rm -f "$place/image"
    truncate -s "$2" "$place/image"
    mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$place/image"
    loop=$(losetup --find --show --direct-io=on "$place/image" 2>/dev/null) || loop=$(losetup --find --show "$place/image")
    mount "$loop" "$place/fs"
}

# The median of what is read, a number a line; of an even count the lower of both.
median() { sort -g | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

# Reads lines "theirs ours", one per round, and prints a table row's cells: both means, and the geometric mean of
# ours / theirs with its 95 % interval, by Student's t on the logarithms of the pairs' ratios.
paired() {
    awk '
        $1 > 0 && $2 > 0 { n++; a += $1; b += $2; d = log($2 / $1); s += d; q += d * d }
        END {
            if (n < 2) { printf "? | ? | ?"; exit }
            split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131", t, " ")
            mean = s / n; variance = (q - n * mean * mean) / (n - 1); if (variance < 0) variance = 0
            half = (n - 1 <= 15 ? t[n - 1] : 2.0) * sqrt(variance / n)
            printf "%.0f | %.0f | %.3f (%.3f to %.3f)", a / n, b / n, exp(mean), exp(mean - half), exp(mean + half)
        }'
}

# Where and when: the line below a table.
circumstances() {
    printf '\n%s, Linux %s, %s CPUs (%s), %s. %s.\n' "$(date -u +%Y-%m-%d)" "$(uname -r)" "$(nproc)" \
        "$(awk -F ': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)" "$("$fstone" --version | head -n 1)" "$1"
}

#!/bin/sh
# Runs every fuzz target, or those named, for a while each.
#
#   fuzz/run.sh [SECONDS [TARGET...]]     (default: 60 seconds, all targets)
#
# Inputs found on the way go to fuzz/corpus-local, which is not kept; fuzz/corpus has the seeds. The readers are free of
# unsafe code, so the address sanitizer would only slow them down; so would tracing comparisons, for which there are
# dictionaries. With neither, and fully optimised, a target runs some thousands to tens of thousands of inputs a second.
#
# SANITIZER=address     runs with it all the same: for what is below the readers (zstd, in `bundle`)
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- ffsb fio filebench sysbench mdtest ior io500 study native bundle report frames recording strace iolog dxt
cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz --version '0.13.*'
for target in "$@"; do
    mkdir -p "fuzz/corpus-local/$target"
    dictionary=fuzz/dictionaries/$target.dict
    # Longer texts repeat what shorter ones do, and take longer.
    length=1024
    case $target in
        bundle) length=4096 ;;
        report) length=193 ;; # a form and 24 changes
    esac
    # -timeout and -rss_limit_mb make a hang and unbounded memory crashes too.
    cargo +nightly fuzz run --sanitizer "${SANITIZER:-none}" --no-trace-compares "$target" "fuzz/corpus-local/$target" "fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -max_len="$length" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        $([ ! -e "$dictionary" ] || echo "-dict=$dictionary")
done

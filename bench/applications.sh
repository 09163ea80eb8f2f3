#!/usr/bin/env bash
# What recording costs real applications, and how well replays keep their time: on the filesystem that was recorded (ext4), and on others,
# where the applications run as well. Each application begins with the caches of its filesystem cold, on a fresh filesystem of a loop
# device; all runs of a round come one after the other, ROUNDS times. Prints two tables in Markdown: medians, and in brackets the
# lowest and the highest. A replay is also traced with strace, and its calls are counted beside the recording's. What an application lacks
# here is said in its row: git, rsync, make and a compiler, sqlite3, PostgreSQL, npm, dpkg, python3-plyvel.
# With REQUESTS the device carries out so many reads and so many writes a second at most: with TMPDIR=/dev/shm it is then equally fast in all
# runs, which a virtual machine's disk is not (cgroup v1).
# Needs root, strace, jq and 2 GiB in $TMPDIR; about half an hour with FILES=2000.
# Usage: [FSTONE=target/release/fstone] [ROUNDS=3] [FILES=4000] [SIZE=1G] [LIMIT=120] [REQUESTS=] [TMPDIR=/var/tmp] bench/applications.sh [APPLICATION...]
began=$EPOCHREALTIME
set -u
export LC_ALL=C
applications=(git tar make npm rsync sqlite pgbench leveldb mail dpkg grep cp)
# What the applications' input is made of: the sources that cargo unpacked.
sources=${CARGO_HOME:-$HOME/.cargo}/registry/src
files=${FILES:-4000}
rounds=${ROUNDS:-3}
limit=${LIMIT:-120}
if [ "${1:-}" != --within ]; then
    # shellcheck source=bench/compare-common.sh
    . "$(dirname "${BASH_SOURCE[0]}")/compare-common.sh"
fi

# How each application is prepared, in a directory that becomes the filesystem's top, and what it does there.

# Source files, so many.
material() {
    mkdir -p "$1"
    find "$sources" -type f -size -256k -printf '%P\n' | sort | head -n "$2" | tar c -C "$sources" -T - | tar x -C "$1"
    [ "$(find "$1" -type f | head -n 100 | wc -l)" = 100 ] || { echo "no sources in $sources"; return 1; }
}

prepare_git() {
    material "$1/repository" "$files"
    (
        cd "$1/repository" || exit
        as=(git -c user.name=x -c user.email=x@example.org -c gc.auto=0 -c init.defaultBranch=main)
        "${as[@]}" init -q .
        "${as[@]}" add -A -f
        "${as[@]}" commit -q -m one
        "${as[@]}" checkout -q -b other
        find . -name '*.rs' | sort | head -n 400 | xargs -d '\n' sed -i '1i //'
        "${as[@]}" commit -q -a -m two
        "${as[@]}" checkout -q main
    )
    git clone -q --bare --no-local "$1/repository" "$1/bare" && rm -r "$1/repository"
}
app_git() {
    git clone -q --no-local bare clone && git -C clone checkout -q origin/other
}

prepare_tar() {
    material "$1/tree" "$files" && tar cf "$1/some.tar" -C "$1" tree && rm -r "$1/tree"
}
app_tar() { tar xf some.tar; }

prepare_make() {
    local from
    from=$(find "$sources" -path '*zstd-sys*/zstd/lib' -type d | sort | tail -n 1)
    [ -n "$from" ] || { echo "no sources of zstd in $sources"; return 1; }
    command -v make cc >/dev/null || { echo "make or cc is not installed"; return 1; }
    cp -r "$from" "$1/lib"
    cat >"$1/Makefile" <<'MAKE'
objects := $(patsubst %.c,%.o,$(wildcard lib/common/*.c lib/decompress/*.c lib/dictBuilder/*.c lib/compress/zstd_[cdf]*.c lib/compress/[fh]*.c))
CFLAGS := -O0 -g -DZSTD_DISABLE_ASM
libzstd.a: $(objects)
	ar rc $@ $^
MAKE
}
app_make() { make -s -j2; }

prepare_npm() {
    local from
    command -v npm >/dev/null || { echo "npm is not installed"; return 1; }
    from=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
    mkdir "$1/project"
    echo '{ "name": "project", "version": "1.0.0" }' >"$1/project/package.json"
    tar czf "$1/npm.tgz" -h -C "$(dirname "$from")" --transform 's,^npm,package,' "$(basename "$from")"
}
app_npm() {
    cd project && npm install --offline --no-audit --no-fund --ignore-scripts --no-update-notifier --cache ../cache ../npm.tgz
}

prepare_rsync() {
    command -v rsync >/dev/null || { echo "rsync is not installed"; return 1; }
    material "$1/tree" "$files"
}
app_rsync() { rsync -a tree/ copy; }

prepare_sqlite() {
    command -v sqlite3 >/dev/null || { echo "sqlite3 is not installed"; return 1; }
    {
        echo "create table t(a integer primary key, b, c); create index i on t(b);"
        echo "insert into t select value, hex(randomblob(20)), hex(randomblob(50)) from generate_series(1, 20000);"
        for number in $(seq 150); do
            echo "insert into t(b, c) select hex(randomblob(20)), hex(randomblob(50)) from generate_series(1, 5);"
            echo "update t set c = hex(randomblob(50)) where a % 20000 = $((number * 97));"
        done
        echo "select count(*), max(length(b)) from t where c > 'A'; delete from t where a % 3 = 0; vacuum;"
    } >"$1/benchmark.sql"
}
app_sqlite() { sqlite3 x.db <benchmark.sql; }

with_postgres() {
    PATH=$PATH:$(find /usr/lib/postgresql -name bin -type d 2>/dev/null | sort -V | tail -n 1)
    as_postgres=(setpriv --reuid=postgres --regid=postgres --clear-groups env HOME=/ "PGHOST=$place/sockets")
}
# Starts the server. It ends when the caller sends it SIGINT.
serve() {
    "${as_postgres[@]}" postgres -D "$1" -k "$place/sockets" -c listen_addresses= -c autovacuum=off 2>"$place/sockets/log" &
    server=$!
    for _ in $(seq 500); do
        ! "${as_postgres[@]}" pg_isready -q || return 0
        sleep 0.02
    done
    return 1
}
prepare_pgbench() {
    with_postgres
    command -v postgres initdb pgbench >/dev/null || { echo "PostgreSQL is not installed"; return 1; }
    id -u postgres >/dev/null || return 1
    mkdir -p "$place/sockets"
    chmod 755 "$place"
    chown postgres "$place/sockets" "$1"
    "${as_postgres[@]}" initdb -D "$1/data" -A trust -N >/dev/null && serve "$1/data" && "${as_postgres[@]}" pgbench -q -i -s 2 postgres
    local status=$?
    kill -INT "$server"
    wait "$server"
    return $status
}
app_pgbench() {
    with_postgres
    serve "$PWD/data" && "${as_postgres[@]}" pgbench -n -c 2 -j 2 -t 300 postgres
    local status=$?
    kill -INT "$server"
    wait "$server"
    return $status
}

prepare_leveldb() {
    /usr/bin/python3 -c 'import plyvel' 2>/dev/null || { echo "python3-plyvel is not installed"; return 1; }
    cat >"$1/store.py" <<'PYTHON'
import plyvel, random
random.seed(1)
store = plyvel.DB("store", create_if_missing=True, write_buffer_size=1 << 20, max_open_files=64)
key = lambda: b"%016d" % random.randrange(100000)
for number in range(60000):
    store.put(key(), random.randbytes(200), sync=number % 200 == 0)
for _ in range(20000):
    store.get(key())
print(sum(1 for _ in store))
PYTHON
}
app_leveldb() { /usr/bin/python3 store.py; }

prepare_mail() {
    command -v python3 >/dev/null || { echo "python3 is not installed"; return 1; }
    cat >"$1/deliver.py" <<'PYTHON'
import os, random
def deliver(who):
    random.seed(who)
    boxes = []
    for box in range(10):
        boxes.append(f"mail/{who}-{box}")
        for part in "tmp", "new", "cur":
            os.makedirs(f"{boxes[-1]}/{part}")
    for number in range(250):
        box = random.choice(boxes)
        made, name = f"{box}/tmp/{number}.{who}", f"{box}/new/{number}.{who}"
        with open(made, "xb") as file:
            file.write(random.randbytes(random.choice([2000, 4000, 8000, 40000])))
            file.flush()
            os.fsync(file.fileno())
        os.link(made, name)
        os.unlink(made)
        directory = os.open(f"{box}/new", os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(directory)
        os.close(directory)
        if number % 4 == 0:
            new = sorted(os.listdir(f"{box}/new"))[0]
            open(f"{box}/new/{new}", "rb").read()
            os.rename(f"{box}/new/{new}", f"{box}/cur/{new}:2,S")
children = []
for who in range(2):
    child = os.fork()
    if child == 0:
        deliver(who)
        os._exit(0)
    children.append(child)
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
PYTHON
}
app_mail() { python3 deliver.py; }

prepare_dpkg() {
    command -v dpkg-deb >/dev/null || { echo "dpkg is not installed"; return 1; }
    material "$1/package/usr/src/some" $((files / 5)) || return
    mkdir "$1/package/DEBIAN"
    printf 'Package: some\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n' \
        >"$1/package/DEBIAN/control"
    dpkg-deb -Zgzip -z1 --root-owner-group -b "$1/package" "$1/some.deb" >/dev/null && rm -r "$1/package"
    mkdir -p "$1"/root/var/lib/dpkg/{info,updates,triggers}
    touch "$1/root/var/lib/dpkg/status"
}
app_dpkg() { dpkg --root="$PWD/root" --log="$PWD/log" --unpack some.deb; }

prepare_grep() { material "$1/tree" "$files"; }
# Its output does not go to /dev/null, where it would do less.
app_grep() { grep -r unsafe tree | tail -n 1; }

prepare_cp() { material "$1/tree" "$files"; }
app_cp() { cp -a tree copy; }

# One application with cold caches, in a process of its own: $place/stamps says when it began and ended, and what came before.
if [ "${1:-}" = --within ]; then
    umount "$fs" && mount -o "$options" "$loop" "$fs" || exit
    cd "$fs" || exit
    own=$EPOCHREALTIME
    "app_$2"
    status=$?
    echo "$began $own $EPOCHREALTIME" >"$place/stamps"
    exit $status
fi

# A fresh filesystem with the application's input.
#   filesystem KIND APPLICATION|-
filesystem() {
    ! mountpoint -q "$fs" || umount "$fs" || return
    local make
    case $1 in
        ext4) make=(mkfs.ext4 -q -F -E "nodiscard,lazy_itable_init=0,lazy_journal_init=0") options=rw ;;
        xfs) make=(mkfs.xfs -q -f -K) options=rw ;;
        btrfs) make=(mkfs.btrfs -q -f -K) options=nodiscard ;;
    esac
    export options
    # The device is in use as long as a mount namespace that somebody made meanwhile has it.
    local tries=0
    until "${make[@]}" "$loop" >"$place/said" 2>&1; do
        [ $((tries += 1)) -lt 20 ] || return
        sleep 0.5
    done
    mount -o "$options" "$loop" "$fs" || return
    if [ "$2" != - ]; then
        cp -a "$place/inputs/$2/." "$fs/" || return
    fi
    sync -f "$fs"
}

# Carries out a command within the time limit; what it said is in $place/said, with its warnings if it failed.
limited() {
    local status=0
    timeout -k 5 "$limit" "$@" >"$place/said" 2>"$place/warned" || status=$?
    [ $status = 0 ] || cat "$place/warned" >>"$place/said"
    return $status
}

# Notes a figure of the application.
#   note KEY VALUE
note() { echo "$application $1 $2" >>"$place/figures"; }

# The application on a fresh filesystem, by itself or under the words given.
#   run KEY KIND [WORDS...]
run() {
    local key=$1 kind=$2 began
    filesystem "$kind" "$application" || return
    shift 2
    began=$EPOCHREALTIME
    rm -f "$place/stamps"
    limited "$@" bash "$self" --within "$application" || return
    read -r wrapped own ended <"$place/stamps"
    note "$key" "$(echo "$ended - $own" | bc)"
    before=$(echo "$own - $wrapped" | bc)
    whole=$(echo "$EPOCHREALTIME - $began - $before" | bc)
}

# A replay on a fresh filesystem: how long it took, without what came before the application in its recording.
#   replay KIND
replay() {
    filesystem "$1" - || return
    limited "$fstone" replay "$recording" --directory "$fs" --cold --json || return
    note "replay-$1" "$(jq -r --arg before "$before" '.seconds - ($before | tonumber)' "$place/said")"
    note differences "$(jq .differences "$place/said")"
}

# The calls of a replay as strace sees them, beside those that the recording has. Not counted: closes, because strace sees those of
# duplicates and directories too; mapped files, which are not replayed.
trace_replay() {
    filesystem ext4 - || return
    limited strace -f -qq -y -s 0 -o "$place/log" "$fstone" replay "$recording" --directory "$fs" --pace full --json || return
    cp "$place/said" "$place/traced.json"
    "$fstone" record show "$recording" --calls >"$place/calls" || return
    awk -v cuts="$(jq '.extra_calls' "$place/traced.json")" '
        function moves(kind) { return kind ~ /^(read|pread|write|pwrite|readv|preadv|writev|pwritev|sendfile|splice|copy_file_range)$/ }
        BEGIN {
            split("openat2 open,newfstatat stat,statx stat,pread64 pread,preadv2 preadv,pwrite64 pwrite,pwritev2 pwritev,faccessat2 access," \
                "readlinkat readlink,getdents64 getdents,mkdirat mkdir,renameat2 rename,linkat link,symlinkat symlink,mknodat mknod," \
                "fchmodat2 chmod,syscall_0x1c4 chmod,fchmodat chmod,fchownat chown,fadvise64 fadvise,lgetxattr getxattr,lsetxattr setxattr," \
                "llistxattr listxattr,lremovexattr removexattr,ftruncate truncate,fstatfs statfs,fchmod chmod,fchown chown", pairs, ",")
            for (pair in pairs) { split(pairs[pair], names, " "); as[names[1]] = names[2] }
            known = " open read pread write pwrite readv preadv writev pwritev lseek fsync fdatasync sync_file_range syncfs truncate " \
                "fallocate fadvise stat fstat access readlink getdents mkdir rmdir unlink rename link symlink mknod chmod chown " \
                "utimensat getxattr fgetxattr setxattr fsetxattr listxattr flistxattr removexattr fremovexattr flock " \
                "sendfile copy_file_range splice readahead statfs "
        }
        # The recording: time, thread, kind. What the first thread of the replay does makes the tree.
        FNR == NR {
            kind = $3
            if (kind == "fcntl") kind = $3 " " $4
            if (kind == "ioctl") kind = "ioctl FICLONE"
            if (kind == "sync") kind = "syncfs"
            if (kind ~ /^(ftruncate|fstatfs|fchmod|fchown)$/) kind = substr(kind, 2)
            if (kind == "futimens") kind = "utimensat"
            if (index(known, " " kind " ") == 0 && kind !~ /^(fcntl|ioctl) /) next
            result = $0; sub(/.* = /, "", result); result += 0
            recorded[kind]++
            if (moves(kind) && result > 0) recorded_bytes[kind] += result
            next
        }
        { if (first == "") first = $1 }
        $1 == first || !/\(/ && !/ resumed>/ { next }
        / <unfinished \.\.\.>$/ { sub(/ <unfinished \.\.\.>$/, ""); held[$1] = $0; next }
        /<\.\.\. .* resumed>/ { rest = $0; sub(/.*resumed>/, "", rest); $0 = held[$1] rest }
        {
            name = $2; sub(/\(.*/, "", name)
            kind = name in as ? as[name] : name
            if (name == "unlinkat") kind = /AT_REMOVEDIR/ ? "rmdir" : "unlink"
            if (name == "fcntl") kind = /F_SETFL,/ ? "fcntl F_SETFL" : "fcntl lock"
            if (name == "ioctl") kind = "ioctl FICLONE"
            if (index(known, " " kind " ") == 0 && kind !~ /^(fcntl|ioctl) /) next
            result = $0; sub(/.* = /, "", result); result += 0
            # A directory that the replay opens for itself: a call about a name that would be in it fails so.
            if (name == "openat2" && /O_PATH/ && !/O_NOFOLLOW/) { opened++; if (result < 0) refused++; next }
            traced[kind]++
            if (moves(kind) && result > 0) traced_bytes[kind] += result
        }
        END {
            # Beside them a file is opened, and closed, to be cut or asked.
            traced["open"] -= (cuts - opened) / 2
            for (kind in recorded) kinds[kind]
            for (kind in traced) kinds[kind]
            for (kind in kinds) {
                other = traced[kind] - recorded[kind]
                off += other < 0 ? -other : other
                if (other) which = which " " kind (other > 0 ? " +" : " ") other
                other = traced_bytes[kind] - recorded_bytes[kind]
                off_bytes += other < 0 ? -other : other
                calls += recorded[kind]
            }
            print calls, off - refused, off_bytes + 0, which ? which : " none"
        }' "$place/calls" "$place/log" >"$place/counted" || return
    read -r calls off off_bytes which <"$place/counted"
    note calls "$calls"
    note unlike "$off"
    note unlike-bytes "$off_bytes"
    [ "$off $off_bytes" = "0 0" ] || remark "$application: strace of the replay counts other calls than the recording has: $which"
}

remark() { echo "- $*" >>"$place/remarks"; }

# All that is done of an application in one round.
round() {
    run own-ext4 ext4 || return
    rm -f "$recording"
    run recorded ext4 "$fstone" record -o "$recording" --under "$fs" -- || return
    note whole "$whole"
    local of_recording=$before kind
    run strace ext4 strace -f -o "$place/log" || return
    rm -f "$place/log"
    before=$of_recording
    replay ext4 || return
    if [ "$1" = 1 ]; then
        trace_replay || remark "$application: the replay under strace: $(tail -n 1 "$place/said")"
        rm -f "$place/log"
        "$fstone" record show "$recording" | sed -n 's/^ *not covered *//p' | sed "s/^/- $application, not covered: /" >>"$place/remarks"
    fi
    for kind in xfs btrfs; do
        run "own-$kind" "$kind" || return
        before=$of_recording
        replay "$kind" || return
    done
}

# How many reads and writes a second of the device there may be at most; 0 for no limit.
throttle() {
    local of
    for of in read write; do
        echo "$(lsblk -dno MAJ:MIN "$loop") $1" >"/sys/fs/cgroup/blkio/blkio.throttle.${of}_iops_device" || return
    done
}

# Several things were made that a killed application may still hold.
end() {
    cd /
    [ -z "${REQUESTS:-}" ] || throttle 0
    for _ in 1 2 3 4 5; do
        ! mountpoint -q "$fs" || umount "$fs" 2>/dev/null || { sleep 1; false; } && break
    done
    ! mountpoint -q "$fs" || umount -l "$fs"
    away
    rm -rf --one-file-system "$place"
}

tables() {
    awk -v rounds="$rounds" -v order="$*" '
        { key = $1 " " $2; count[key]++; all[key, count[key]] = $3 }
        function sort_of(key, n, i, j, t) {
            n = count[key]
            for (i = 1; i <= n; i++) v[i] = all[key, i] + 0
            for (i = 2; i <= n; i++) { t = v[i]; for (j = i - 1; j > 0 && v[j] > t; j--) v[j + 1] = v[j]; v[j + 1] = t }
            return n
        }
        function median(key, n) { n = sort_of(key); return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2 }
        function low(key) { sort_of(key); return v[1] }
        function high(key) { return v[sort_of(key)] }
        function spread(key) { return sprintf("%.3f (%.3f–%.3f)", median(key), low(key), high(key)) }
        function error(name, kind, e) {
            e = 100 * (median(name " replay-" kind) / median(name " own-" kind) - 1)
            errors[kind == "ext4", ++errors_of[kind == "ext4"]] = e < 0 ? -e : e
            return sprintf("%+.1f %%", e)
        }
        function middle(which, n, i, j, t) {
            n = errors_of[which]
            for (i = 1; i <= n; i++) v[i] = errors[which, i]
            for (i = 2; i <= n; i++) { t = v[i]; for (j = i - 1; j > 0 && v[j] > t; j--) v[j + 1] = v[j]; v[j + 1] = t }
            if (!n) return "none"
            return sprintf("%.1f %% (of %d, the worst %.1f %%)", n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2, n, v[n])
        }
        function sum(key, i, s) { for (i = 1; i <= count[key]; i++) s += all[key, i]; return s + 0 }
        function ordered(name, i, j, a, b, right, pairs) {
            split("ext4 xfs btrfs", kinds, " ")
            for (i = 1; i <= 3; i++) for (j = i + 1; j <= 3; j++) {
                a = name " own-" kinds[i]; b = name " own-" kinds[j]
                if (high(a) >= low(b) && high(b) >= low(a)) continue
                pairs++
                right += (median(a) < median(b)) == (median(name " replay-" kinds[i]) < median(name " replay-" kinds[j]))
            }
            all_pairs += pairs; all_right += right
            return sprintf("%d of %d", right, pairs)
        }
        END {
            n = split(order, names, " ")
            print "| application | alone, s | recorded, s | × | whole command, s | under strace, s | × | calls |"
            print "|---|---|---|---|---|---|---|---|"
            for (i = 1; i <= n; i++) {
                name = names[i]
                if (!count[name " strace"]) { printf "| %s | no figures | | | | | | |\n", name; continue }
                alone = median(name " own-ext4")
                printf "| %s | %s | %s | %.2f | %.3f | %s | %.2f | %d |\n", name, spread(name " own-ext4"), spread(name " recorded"),
                    median(name " recorded") / alone, median(name " whole"), spread(name " strace"), median(name " strace") / alone,
                    median(name " calls")
            }
            print ""
            print "| application | ext4, s | replayed, s | error | differing results | calls unlike strace | bytes unlike | xfs, s | replayed, s | error |" \
                " btrfs, s | replayed, s | error | filesystems in order |"
            print "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
            for (i = 1; i <= n; i++) {
                name = names[i]
                if (!count[name " replay-btrfs"]) { printf "| %s | no figures | | | | | | | | | | | | |\n", name; continue }
                printf "| %s | %s | %s | %s | %d of %d | %d | %d", name, spread(name " own-ext4"), spread(name " replay-ext4"), error(name, "ext4"),
                    sum(name " differences"), median(name " calls") * count[name " differences"], sum(name " unlike"), sum(name " unlike-bytes")
                for (k = 1; k <= 2; k++) {
                    kind = k == 1 ? "xfs" : "btrfs"
                    printf " | %s | %s | %s", spread(name " own-" kind), spread(name " replay-" kind), error(name, kind)
                }
                printf " | %s |\n", ordered(name)
            }
            printf "\nMedian error of a replay on ext4, which was recorded: %s; on xfs and btrfs: %s. ", middle(1), middle(0)
            printf "Of pairs of filesystems between which the runs of an application do not overlap, %d of %d are in order.\n", all_right, all_pairs
        }' "$place/figures"
}

[ "$(id -u)" = 0 ] || { echo "this needs root" >&2; exit 1; }
for tool in strace jq bc mkfs.xfs mkfs.btrfs; do
    command -v "$tool" >/dev/null || { echo "$tool is not installed" >&2; exit 1; }
done
TMPDIR=${TMPDIR:-/var/tmp}
begin
self=$(realpath "${BASH_SOURCE[0]}")
fs=$place/fs
recording=$place/app.rec
export place fs TMPDIR
mkdir "$fs" "$place/inputs"
touch "$place/figures" "$place/remarks"
# Written to, so that the disk below has its place.
dd if=/dev/zero of="$place/image" bs=1M count="$(numfmt --from=iec "${SIZE:-1G}" | awk '{ print int($1 / 2 ^ 20) }')" status=none &&
    sync "$place/image" && { loop=$(losetup --find --show --direct-io=on "$place/image" 2>/dev/null) || loop=$(losetup --find --show "$place/image"); } || exit
export loop
[ -z "${REQUESTS:-}" ] || throttle "$REQUESTS" || exit
[ $# -gt 0 ] || set -- "${applications[@]}"
for application; do
    mkdir "$place/inputs/$application"
    if ! said=$("prepare_$application" "$place/inputs/$application" 2>&1); then
        remark "$application cannot be prepared: $(tail -n 1 <<<"$said")"
        continue
    fi
    for number in $(seq "$rounds"); do
        echo "$(date +%T) $application $number of $rounds" >&2
        if ! round "$number"; then
            remark "$application, round $number: $(grep -v '^$' "$place/said" | tail -n 1)"
            break
        fi
    done
    rm -rf "${place:?}/inputs/$application"
done
tables "$@"
echo
cat "$place/remarks"
circumstances "$rounds rounds; loop device of ${SIZE:-1G} on $(findmnt -n -o FSTYPE -T "$place" | head -n 1)$(losetup -n -O DIO "$loop" | sed 's/ *1/, direct I\/O/; s/ *0//')${REQUESTS:+, $REQUESTS requests/s}"

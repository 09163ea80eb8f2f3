//! What a program did is in its recording once, and nothing else is; what cannot be recorded is counted.

use super::record;
use crate::support::{Bench, is_root, tool};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// `None` without a compiler.
fn compiled(bench: &Bench, source: &str) -> Option<String> {
    if !tool("cc") {
        eprintln!("skipped: cc is not installed");
        return None;
    }
    bench.write("program.c", source);
    let [from, to] = ["program.c", "program"].map(|name| bench.path(name));
    let made = Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(&to).arg(from).status();
    assert!(made.expect("cc starts").success());
    Some(to.display().to_string())
}

fn place(bench: &Bench) -> PathBuf {
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    place
}

/// Calls of a kind, by `record show --calls`.
fn count(calls: &str, kind: &str) -> usize {
    calls.lines().filter(|line| line.split_whitespace().nth(2) == Some(kind)).count()
}

/// Descriptors go from one thread to the next. Long names stop, and so does dup(2); other calls are kept by the program.
#[test]
fn calls_of_threads_are_about_the_files_that_their_descriptors_are_of_then() {
    const PROGRAM: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int width, duplicates;
static void *work(void *number) {
    char name[300];
    snprintf(name, sizeof name, "%0*ld", width, (long)number);
    for (int i = 0; i < 300; i++) {
        int fd = open(name, O_RDWR | O_CREAT, 0644), file = fd;
        if (pwrite(fd, "xx", 2, 0) != 2) abort();
        if (duplicates) { file = dup(fd); close(fd); }
        if (fsync(file) || close(file)) abort();
    }
    return 0;
}
int main(int count, char **words) {
    width = atoi(words[1]); duplicates = atoi(words[2]);
    pthread_t threads[6];
    for (long i = 0; i < 6; i++) pthread_create(threads + i, 0, work, (void *)i);
    for (int i = 0; i < 6; i++) pthread_join(threads[i], 0);
}
"#;
    let bench = Bench::new();
    let Some(program) = compiled(&bench, PROGRAM) else { return };
    for (number, [width, duplicates]) in [["180", "0"], ["180", "1"], ["5", "0"], ["5", "1"]].into_iter().enumerate() {
        let recording = format!("{number}.rec");
        record(&bench, &place(&bench), &recording, &[&program, width, duplicates]);
        let calls = bench.succeed(&["record", "show", "--calls", &recording]);
        for kind in ["open", "pwrite", "fsync", "close"] {
            assert_eq!(count(&calls, kind), 1800, "{kind} {width} {duplicates}");
        }
        assert!(!calls.contains("inherited"), "{width} {duplicates}");
    }
}

/// A socket's name needs no end, and an attribute's that is too long is none.
#[test]
fn of_a_name_there_is_in_a_recording_what_the_kernel_took_for_it() {
    const PROGRAM: &str = r#"
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>
static struct { struct sockaddr_un address; char behind[4096]; } memory;
static char longer[3000];
int main(void) {
    memset(&memory, 'S', sizeof memory - 1);
    memory.address.sun_family = AF_UNIX;
    memcpy(memory.address.sun_path, "name", 4);
    for (int length = 4; length >= 3; length--)
        if (bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&memory, 2 + length)) return 1;
    memset(memory.address.sun_path, 'n', 108);
    if (bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&memory, 110)) return 2;
    bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&memory, 2);
    int fd = open("f", O_RDWR | O_CREAT, 0644);
    memset(longer, 'S', sizeof longer - 1);
    return fsetxattr(fd, longer, "x", 1, 0) != -1;
}
"#;
    let bench = Bench::new();
    let Some(program) = compiled(&bench, PROGRAM) else { return };
    record(&bench, &place(&bench), "x.rec", &[&program]);
    let calls = bench.succeed(&["record", "show", "--calls", "x.rec"]);
    assert!(calls.contains("\"name\"") && calls.contains("\"nam\"") && calls.contains(&"n".repeat(108)), "{calls}");
    assert!(!calls.contains("SS"), "{calls}");
    assert_eq!(count(&calls, "bind"), 3, "{calls}");
}

/// Where the kernel does not know a call its error is recorded.
#[test]
fn calls_that_no_replay_makes_are_counted() {
    const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static char handle[200], range[64], attributes[64];
static struct { uint64_t value; uint32_t size, flags; } arguments;
int main(void) {
    int mount, flags, one = open("f", O_RDWR | O_CREAT, 0644);
    ((unsigned *)handle)[0] = 128;
    syscall(SYS_name_to_handle_at, AT_FDCWD, "f", handle, &mount, 0);
    syscall(468, AT_FDCWD, "f", attributes, 24, 0);
    syscall(469, AT_FDCWD, "f", attributes, 24, 0);
    ioctl(one, FIDEDUPERANGE, range);
    ioctl(one, FS_IOC_GETFLAGS, &flags);
    /* FS_IOC_RESVSP, UNRESVSP, both with 64 bits, and ZERO_RANGE. */
    static const int reserving[] = { 40, 41, 42, 43, 57 };
    for (int i = 0; i < 5; i++) ioctl(one, _IOW('X', reserving[i], char[48]), range);
    arguments.value = (uintptr_t)"value"; arguments.size = 5;
    syscall(463, AT_FDCWD, "f", 0, "user.name", &arguments, 16);
    syscall(463, one, "", AT_EMPTY_PATH, "user.name", &arguments, 16);
    syscall(464, AT_FDCWD, "f", 0, "user.name", &arguments, 16);
    syscall(465, AT_FDCWD, "f", 0, handle, 100);
    syscall(466, AT_FDCWD, "f", 0, "user.name");
    struct io_uring_params plain = { 0 }, polled = { .flags = IORING_SETUP_SQPOLL };
    syscall(SYS_io_uring_setup, 4, &plain);
    syscall(SYS_io_uring_setup, 4, &polled);
    flock(one, LOCK_EX);
    int child = fork();
    if (child == 0) return flock(open("f", O_RDONLY), LOCK_EX);
    usleep(300000);
    kill(child, SIGKILL);
    waitpid(child, &flags, 0);
    return 0;
}
"#;
    let bench = Bench::new();
    let Some(program) = compiled(&bench, PROGRAM) else { return };
    record(&bench, &place(&bench), "x.rec", &[&program]);
    let calls = bench.succeed(&["record", "show", "--calls", "x.rec"]);
    for (kind, number) in [
        ("name_to_handle_at", 1),
        ("file_getattr", 1),
        ("file_setattr", 1),
        ("ioctl", 7),
        ("setxattr", 1),
        ("fsetxattr", 1),
        ("getxattr", 1),
        ("listxattr", 1),
        ("removexattr", 1),
        ("io_uring_setup", 1),
        ("unreturned", 1),
    ] {
        assert_eq!(count(&calls, kind), number, "{kind}: {calls}");
    }
    assert!(calls.contains("\"user.name\""), "{calls}");
    let shown = bench.succeed(&["record", "show", "x.rec"]);
    assert!(shown.contains("1 calls that had not returned"), "{shown}");
    let can_poll = !calls.lines().any(|line| line.contains(" io_uring_setup ") && line.contains("= -"));
    assert_eq!(shown.contains("a polled ring (io_uring), number unknown"), can_poll, "{shown}");
    fs::create_dir(bench.path("target")).expect("writable");
    let report = bench.succeed(&["replay", "x.rec", "--directory", "target", "--pace", "full"]);
    assert!(report.contains("did not return"), "{report}");
}

/// As in a whole system, `--under /`.
#[test]
fn what_the_kernel_makes_up_is_no_part_of_the_tree() {
    let bench = Bench::new();
    let place = place(&bench);
    fs::create_dir(place.join("proc")).expect("writable");
    fs::write(place.join("f"), "x").expect("writable");
    let mut shell = Command::new("unshare");
    let script = "mount -t proc proc proc && exec \"$@\"";
    let file = bench.path("x.rec").display().to_string();
    let command = bench.command(&["record", "-o", &file, "--", "cat", "proc/self/status", "f"]);
    if !is_root() || !Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success()) {
        return eprintln!("skipped: mounting needs root");
    }
    shell.args(["-m", "sh", "-c", script, "sh"]).arg(command.get_program()).args(command.get_args());
    let output = shell.current_dir(&place).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown = bench.succeed(&["record", "show", "x.rec"]);
    assert!(shown.contains("1 files and 1 directories"), "{shown}");
    let calls = bench.succeed(&["record", "show", "--calls", "x.rec"]);
    assert!(calls.contains("\"f\"") && !calls.contains("status"), "{calls}");
}

/// Some of these opens stop, and others do not.
#[test]
fn files_are_recorded_by_whatever_name_they_are_opened() {
    const SCRIPT: &str = "cat ../link/read; cat ../link/deep/../read; printf xx > ../link/written; printf xxx > /dev/stdout; \
        cat ../to-file; cat /proc/self/cwd/read; cat ../elsewhere";
    let bench = Bench::new();
    let place = place(&bench);
    fs::create_dir(place.join("deep")).expect("writable");
    for name in ["place/read", "place/linked", "elsewhere"] {
        bench.write(name, "some text");
    }
    std::os::unix::fs::symlink(&place, bench.path("link")).expect("writable");
    std::os::unix::fs::symlink("place/linked", bench.path("to-file")).expect("writable");
    let script = format!("{{ {SCRIPT}; }} > out");
    record(&bench, &place, "x.rec", &["sh", "-c", &script]);
    let calls = bench.succeed(&["record", "show", "--calls", "x.rec"]);
    let opens = |name: &str| {
        let name = format!("\"{name}\"");
        calls.lines().filter(|line| line.contains(" open ") && line.contains(&name)).count()
    };
    let found = ["read", "written", "out", "linked", "elsewhere"].map(opens);
    assert_eq!(found, [3, 1, 2, 1, 0], "{calls}");
    assert!(!calls.contains("inherited"), "{calls}");
    fs::create_dir(bench.path("target")).expect("writable");
    let report = bench.succeed(&["replay", "x.rec", "--directory", "target", "--pace", "full"]);
    assert!(report.contains("differences    0 calls"), "{report}");
}

/// Some stop, and others do not.
#[test]
fn renames_are_recorded_with_the_names_that_they_leave() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import ctypes, errno, os
def fails(number, *names):
    try: os.rename(*names)
    except OSError as error: assert error.errno == number, error
    else: assert False
libc = ctypes.CDLL(None)
HERE = ctypes.c_int(-100)
for directory in ["d/inner", "other", "e"]: os.makedirs(directory)
for name in ["a", "d/f", "long" + "x" * 200]: open(name, "w").close()
for _ in range(50):
    os.rename("a", "b")
    os.rename("b", "a")
    os.rename("d/f", "d/../d/g")
    os.rename("d/g", "d/f")
    os.rename("long" + "x" * 200, "y" * 250)
    os.rename("y" * 250, "long" + "x" * 200)
    fails(errno.ENOENT, "none", "n")
    fails(errno.EISDIR, "a", "e")
    os.rename("d/f", "other/f")
    os.rename("other/f", "d/f")
    os.rename("../outside", "../out")
    os.rename("../out", "../outside")
    assert libc.renameat2(HERE, b"a", HERE, b"d/f", 1) == -1
    assert libc.renameat2(HERE, b"a", HERE, b"e", 2) == 0
    assert libc.renameat2(HERE, b"a", HERE, b"e", 2) == 0
directory = os.open("d", os.O_RDONLY)
os.chdir("d/inner")
os.rename("../../d", "../../moved")
open("here", "w").close()
os.rename("here", "there")
os.stat("f", dir_fd=directory)
os.rename("f", "../f", src_dir_fd=directory, dst_dir_fd=directory)
os.rename("../../f", "../../last")
os.rename("../../../outside", "../../came")
os.stat("../../came")
"#;
    let bench = Bench::new();
    let place = place(&bench);
    bench.write("outside", "text");
    record(&bench, &place, "x.rec", &["python3", "-I", "-c", PROGRAM]);
    let calls = bench.succeed(&["record", "show", "--calls", "x.rec"]);
    assert_eq!(count(&calls, "rename"), 50 * 13 + 5, "{calls}");
    assert!(calls.contains("\"moved/inner/there\"") && calls.contains("/last\""), "{calls}");
    fs::create_dir(bench.path("target")).expect("writable");
    let report = bench.succeed(&["replay", "x.rec", "--directory", "target", "--pace", "full"]);
    assert!(report.contains("differences    0 calls"), "{report}");
}

/// What a request of io_uring closes is closed, and its descriptor may be a socket's next.
#[test]
fn a_descriptor_that_a_ring_has_closed_is_no_longer_the_files() {
    const PROGRAM: &str = r#"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
static char *map(int ring, size_t bytes, off_t what) {
    char *at = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, what);
    return at == MAP_FAILED ? exit(2), at : at;
}
int main(void) {
    struct io_uring_params p = { 0 };
    int ring = syscall(SYS_io_uring_setup, 4, &p), sockets[2], file, other;
    if (ring < 0) return 3;
    char *queue = map(ring, p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
    struct io_uring_sqe *entries = (void *)map(ring, p.sq_entries * sizeof *entries, IORING_OFF_SQES);
    file = open("f", O_RDWR | O_CREAT, 0644);
    other = open("g", O_RDWR | O_CREAT, 0644);
    if (write(file, "four", 4) != 4) return 4;
    entries[0] = (struct io_uring_sqe) { .opcode = IORING_OP_CLOSE, .fd = file };
    ((unsigned *)(queue + p.sq_off.array))[0] = 0;
    __atomic_store_n((unsigned *)(queue + p.sq_off.tail), 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) != 1) return 5;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) || sockets[0] != file) return 6;
    for (int i = 0; i < 10; i++) if (write(file, "traffic", 7) != 7) return 7;
    if (write(other, "four", 4) != 4 || rename("g", "h") || write(other, "four", 4) != 4) return 8;
    return close(file) || close(other);
}
"#;
    let bench = Bench::new();
    let Some(program) = compiled(&bench, PROGRAM) else { return };
    let place = place(&bench);
    let alone = Command::new(&program).current_dir(&place).status().expect("it starts");
    if alone.code() == Some(3) {
        return eprintln!("skipped: io_uring is not allowed here");
    }
    assert!(alone.success(), "{alone}");
    record(&bench, &place, "x.rec", &[&program]);
    let calls = bench.succeed(&["record", "show", "--calls", "x.rec"]);
    let numbers = ["open", "write", "close", "io_uring_enter", "rename"].map(|kind| count(&calls, kind));
    assert_eq!(numbers, [2, 3, 2, 1, 1], "{calls}");
    assert!(!calls.contains("inherited"), "{calls}");
}

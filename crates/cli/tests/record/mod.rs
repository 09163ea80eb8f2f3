//! `fstone record` and `fstone replay` with real programs, beside what strace sees of them.

mod whole;

use crate::support::{Bench, is_root, tool, trials, wait_until};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Calls by kind, and the bytes that they read or wrote.
type Counts = BTreeMap<String, (u64, u64)>;

/// Each works in a directory that holds a copy of `tree`, and names what it uses relative to that.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("tar", &["tar", "cf", "tree.tar", "tree"]),
    ("tar", &["tar", "xf", "some.tar"]),
    ("cp", &["cp", "-a", "tree", "copy"]),
    ("rm", &["rm", "-r", "tree"]),
    ("grep", &["grep", "-r", "needle", "tree"]),
    ("sqlite3", &["sqlite3", "x.db", "create table t(a); insert into t values (1), (2); select * from t;"]),
    ("git", &["git", "init", "-q", "repository"]),
    ("make", &["make", "-s", "-f", "tree/Makefile"]),
    ("mv", &["sh", "-c", "mv tree/a b; ln -s ../b tree/l; cat tree/l/1 > c; ln c d; chmod 600 d; truncate -s 100 c"]),
];

fn prepare(place: &Path) {
    fs::create_dir_all(place.join("tree/a")).expect("writable");
    for number in 0..20 {
        fs::write(place.join(format!("tree/a/{number}")), vec![b'x'; 3000 * number]).expect("writable");
    }
    fs::write(place.join("tree/needles"), "a needle\n").expect("writable");
    std::os::unix::fs::symlink("needles", place.join("tree/link")).expect("writable");
    fs::write(place.join("tree/Makefile"), "all: x\n\tcat x tree/needles > y\nx:\n\tcp tree/a/3 x\n")
        .expect("writable");
    let packed = Command::new("tar").args(["cf", "some.tar", "tree/a"]).current_dir(place).status().expect("tar");
    assert!(packed.success());
}

/// Records a program below the directory that it works in; returns what was said.
fn record(bench: &Bench, place: &Path, recording: &str, words: &[&str]) -> String {
    record_with(bench, place, recording, &["--"], words)
}

fn record_with(bench: &Bench, place: &Path, recording: &str, options: &[&str], words: &[&str]) -> String {
    let file = bench.path(recording).display().to_string();
    let mut command = bench.command(&[&["record", "-o", &file], options, words].concat());
    let output = command.current_dir(place).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {told}");
    told
}

/// A kind of call as a recording names it.
fn kind(call: &str, line: &str) -> Option<&'static str> {
    Some(match call {
        "open" | "openat" | "creat" | "openat2" => "open",
        "newfstatat" | "statx" if line.contains("AT_EMPTY_PATH") && line.contains(", \"\"") => "fstat",
        "stat" | "lstat" | "newfstatat" | "statx" => "stat",
        "fstat" => "fstat",
        "statfs" => "statfs",
        "fstatfs" => "fstatfs",
        "readahead" => "readahead",
        "msync" => "msync",
        "fcntl" if line.contains("F_SETFL,") => "fcntl F_SETFL",
        "read" => "read",
        "pread64" => "pread",
        "write" => "write",
        "pwrite64" => "pwrite",
        "writev" => "writev",
        "lseek" => "lseek",
        "fsync" => "fsync",
        "fdatasync" => "fdatasync",
        "ftruncate" => "ftruncate",
        "truncate" => "truncate",
        "fadvise64" => "fadvise",
        "fallocate" => "fallocate",
        "access" | "faccessat" | "faccessat2" => "access",
        "readlink" | "readlinkat" => "readlink",
        "getdents64" => "getdents",
        "mkdir" | "mkdirat" => "mkdir",
        "rmdir" => "rmdir",
        "unlinkat" if line.contains("AT_REMOVEDIR") => "rmdir",
        "unlink" | "unlinkat" => "unlink",
        "rename" | "renameat" | "renameat2" => "rename",
        "link" | "linkat" => "link",
        "symlink" | "symlinkat" => "symlink",
        "chmod" | "fchmodat" | "fchmodat2" => "chmod",
        "fchmod" => "fchmod",
        "chown" | "lchown" | "fchownat" => "chown",
        "fchown" => "fchown",
        "utimensat" if line.contains(">, NULL, ") => "futimens",
        "utimensat" => "utimensat",
        "copy_file_range" => "copy_file_range",
        "sendfile" => "sendfile",
        "splice" => "splice",
        "flock" => "flock",
        "fcntl" if line.contains("SETLK") => "fcntl lock",
        "ioctl" if line.contains("CLONE") => "ioctl FICLONE",
        "getxattr" | "lgetxattr" => "getxattr",
        "setxattr" | "lsetxattr" => "setxattr",
        "listxattr" | "llistxattr" => "listxattr",
        "removexattr" | "lremovexattr" => "removexattr",
        "fgetxattr" => "fgetxattr",
        "fsetxattr" => "fsetxattr",
        "flistxattr" => "flistxattr",
        "fremovexattr" => "fremovexattr",
        _ => return None,
    })
}

/// What strace saw below a directory that was the working directory, of the threads whose logs are given.
fn seen(logs: impl Iterator<Item = String>, place: &Path) -> Counts {
    let below = |path: &str| Path::new(path).starts_with(place);
    let mut counts = Counts::new();
    for text in logs {
        for line in text.lines() {
            let Some((call, rest)) = line.split_once('(') else { continue };
            let Some((arguments, result)) = rest.rsplit_once(" = ") else { continue };
            let Some(kind) = kind(call, line) else { continue };
            // The directories that a replay opens for itself.
            if call == "openat2" && arguments.contains("O_PATH") && !arguments.contains("O_NOFOLLOW") {
                continue;
            }
            let of_descriptor =
                arguments.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(path, _)| path);
            let mut strings = arguments.split('"').skip(1).step_by(2);
            // The first string of symlink is its target.
            let name = if call.starts_with("symlink") { strings.nth(1) } else { strings.next() };
            let moves = ["read", "pread", "write", "pwrite", "writev"].contains(&kind);
            let is_inside = match name {
                Some(name) if !moves && name.starts_with('/') => below(name),
                Some(name) if !moves && name.starts_with("..") => false,
                Some(_) if !moves && of_descriptor.is_none() => true,
                _ => of_descriptor.is_some_and(below),
            };
            if is_inside {
                let bytes = result.split_whitespace().next().and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
                let one = counts.entry(kind.to_owned()).or_default();
                *one = (one.0 + 1, one.1 + if moves { bytes } else { 0 });
            }
        }
    }
    counts
}

fn strace(bench: &Bench, words: &[&str], place: &Path, log: &str) -> Vec<(u32, String)> {
    let logs = bench.path(log);
    fs::create_dir_all(&logs).expect("writable");
    let output = logs.join("of");
    // grep does less if its output goes to /dev/null.
    let done = Command::new("strace")
        .args(["-ff", "-qq", "-y", "-s", "4096", "-o"])
        .arg(&output)
        .args(words)
        .current_dir(place)
        .output()
        .expect("strace starts");
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    let mut all: Vec<(u32, String)> = fs::read_dir(&logs)
        .expect("readable")
        .map(|entry| entry.expect("readable").path())
        .map(|path| {
            let thread = path.extension().expect("a thread").to_string_lossy().parse().expect("a number");
            (thread, String::from_utf8_lossy(&fs::read(&path).expect("readable")).into_owned())
        })
        .collect();
    all.sort();
    all
}

/// The table of `fstone record show`, or of `fstone replay`, without closes: strace counts those of duplicates as well.
fn table(text: &str, bench: &Bench, recording: &str) -> Counts {
    let calls = bench.succeed(&["record", "show", "--calls", recording]);
    let mut counts = Counts::new();
    let rows = text.lines().skip_while(|line| !line.trim_start().starts_with("call ")).skip(1);
    for row in rows.take_while(|line| !line.trim().is_empty()) {
        let (name, rest) = row.trim_start().split_at(16);
        let count = rest.split_whitespace().next().and_then(|count| count.parse().ok()).expect("a number");
        if !["close", "mmap"].contains(&name.trim()) {
            counts.insert(name.trim().to_owned(), (count, 0));
        }
    }
    for line in calls.lines() {
        let kind = line.split_whitespace().nth(2).expect("a kind");
        let result = line.split(" = ").nth(1).and_then(|rest| rest.split_whitespace().next());
        let bytes: i64 = result.and_then(|result| result.parse().ok()).expect("a result");
        if ["read", "pread", "write", "pwrite", "writev"].contains(&kind) {
            counts.get_mut(kind).expect("it is in the table").1 += bytes.max(0) as u64;
        }
    }
    counts
}

#[test]
fn programs_are_recorded_as_strace_sees_them_and_replayed_so() {
    if !tool("strace") {
        return eprintln!("skipped: strace is not installed");
    }
    for (number, (name, words)) in PROGRAMS.iter().enumerate() {
        if !tool(name) {
            eprintln!("skipped: {name} is not installed");
            continue;
        }
        let bench = Bench::new();
        let (one, two) = (bench.path("one"), bench.path("two"));
        prepare(&one);
        prepare(&two);
        let recording = format!("{number}.rec");
        let told = record(&bench, &one, &recording, words);
        assert!(told.contains("recorded"), "{told}");
        let shown = bench.succeed(&["record", "show", &recording]);
        let recorded = table(&shown, &bench, &recording);
        let logs = strace(&bench, words, &two, "log");
        let expected = seen(logs.into_iter().map(|(_, text)| text), &two);
        assert!(expected.values().map(|one| one.0).sum::<u64>() > 3, "{words:?}: {expected:?}");
        assert_eq!(recorded, expected, "{words:?}");

        let target = bench.path("target");
        fs::create_dir(&target).expect("writable");
        let binary = assert_cmd::cargo::cargo_bin!("fstone").display().to_string();
        let (file, directory) = (bench.path(&recording).display().to_string(), target.display().to_string());
        let words = [&binary, "replay", &file, "--directory", &directory, "--pace", "full", "--keep"];
        let mut logs = strace(&bench, &words, &bench.path(""), "replay");
        // The first thread makes the tree.
        logs.remove(0);
        let kept = fs::read_dir(&target).expect("readable").next().expect("it was kept").expect("readable").path();
        // It has this name when it is complete.
        let kept_name = kept.file_name().expect("it has one").to_string_lossy().into_owned();
        let made = kept.with_file_name(kept_name.replacen("fstone-kept-", "fstone-replay-", 1));
        assert_ne!(made, kept);
        let mut replayed = seen(logs.into_iter().map(|(_, text)| text), &made);
        // Attributes are reached by other paths, and not all are replayed; older straces do not know fchmodat2.
        let mut countable = recorded.clone();
        countable.retain(|kind, _| !kind.contains("xattr") && kind != "chmod");
        // What git looks for in a directory that is not there fails when that is opened.
        if *name == "git" {
            countable.remove("stat");
        }
        replayed.retain(|kind, _| countable.contains_key(kind));
        assert_eq!(replayed, countable, "{words:?}");
        let report = bench.succeed(&["replay", &recording, "--directory", &directory, "--pace", "full"]);
        assert!(report.contains("differences    0 calls"), "{name}: {report}");
        assert!(!report.contains("that change attributes"), "{name}: {report}");
        assert_eq!(fs::read_dir(&target).expect("readable").count(), 1, "what is not kept is removed");
    }
}

#[test]
fn what_a_recording_cannot_be_made_of_is_said() {
    let bench = Bench::new();
    for (words, status, said) in [
        (&["record", "-o", "x.rec", "--", "/no/such/program"][..], 2, "cannot start /no/such/program"),
        (&["record", "-o", "x.rec", "--under", "/no/such", "--", "true"], 2, "cannot record /no/such"),
        (&["record", "-o", "x.rec", "--pid", "99999999"], 2, "no process has the number 99999999"),
        (&["record", "show", "none.rec"], 2, "cannot use none.rec"),
        (&["replay", "none.rec", "--directory", "."], 2, "cannot use none.rec"),
        (&["replay", "x", "--directory", ".", "--speed", "0"], 2, "a number from 0.001 to 1000"),
        (
            &["replay", "x", "--directory", ".", "--speed", "2", "--pace", "full"],
            2,
            "no waits that a speed could change",
        ),
    ] {
        let (exit, _, told) = bench.run(words);
        assert!(exit == status && told.contains(said), "{words:?}: {exit}: {told}");
        assert!(!bench.path("x.rec").exists(), "{words:?}");
    }
    bench.write("text.rec", "this is no recording, whatever it is called");
    let (exit, _, told) = bench.run(&["record", "show", "text.rec"]);
    assert!(exit == 2 && told.contains("no recording of fstone's"), "{told}");
}

/// The limit of a file's size is reached as a full disk would be.
#[test]
fn how_the_program_ended_is_said_when_its_recording_cannot_be_written() {
    let bench = Bench::new();
    fs::create_dir(bench.path("place")).expect("writable");
    let script = "i=0; while [ $i -lt 500 ]; do echo x > name-$i; i=$((i + 1)); done; exit 7";
    let words =
        bench.typed(&["record", "-o", "a.rec", "--under", "place", "--", "sh", "-c", &format!("cd place; {script}")]);
    let output = bench.shell(&format!("trap '' XFSZ; ulimit -f 2; {}", words.join(" "))).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    assert!(told.contains("the program ended with status 7; failed to record it"), "{told}");
    assert!(told.contains("cannot write the recording"), "{told}");
    assert!(bench.path("place/name-499").exists());
}

#[test]
fn a_recording_that_was_cut_is_used_as_far_as_it_goes() {
    let bench = Bench::new();
    let place = bench.path("place");
    prepare(&place);
    record(&bench, &place, "a.rec", &["sh", "-c", "for i in 1 2 3; do cat tree/needles > \"<i>$i\"; sleep 1.1; done"]);
    let whole = fs::read(bench.path("a.rec")).expect("readable");
    fs::write(bench.path("cut.rec"), &whole[..whole.len() - 30]).expect("writable");
    let shown = bench.succeed(&["record", "show", "cut.rec"]);
    assert!(shown.contains("was not finished") && shown.contains("  open "), "{shown}");
    let page = bench.succeed(&["record", "show", "--html", "cut.rec"]);
    let has = |words: &str| page.contains(words);
    assert!(has("<!doctype html>") && has("was not finished") && has("i&#62;1") && !has("<i>1"), "{page}");
    fs::create_dir(bench.path("target")).expect("writable");
    let report = bench.succeed(&["replay", "cut.rec", "--directory", "target"]);
    assert!(report.contains("differences    0 calls") && report.contains("was not finished"), "{report}");
}

/// An ordinary user may not read or write all of its own directories, but take the right to.
#[test]
fn nothing_of_a_replay_is_left_whatever_modes_it_had() {
    let bench = Bench::of_nobody();
    let script = "mkdir app && mkdir -p app/a/b && touch app/a/b/c && chmod 555 app/a/b && chmod 500 app/a && \
        \"$0\" record -o x.rec --under app -- sh -c 'mkdir -p app/d/e/f && chmod 333 app/d/e && chmod 0 app/d app'";
    let mut command = bench.command(&[]);
    let program = command.get_args().last().unwrap_or(command.get_program()).to_owned();
    if is_root() {
        command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg("sh").current_dir(bench.path("."));
    } else {
        command = Command::new("sh");
        command.current_dir(bench.path("."));
    }
    let output = command.args(["-ec", script]).arg(program).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    bench.succeed(&["replay", "x.rec", "--directory", "."]);
    let left = fs::read_dir(bench.path(".")).expect("readable").flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("fstone-replay-")).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn names_are_hashed_if_asked_for() {
    let bench = Bench::new();
    let place = bench.path("place");
    prepare(&place);
    let (exit, _, told) = bench.run(&[
        "record",
        "-o",
        "h.rec",
        "--hash-names",
        "--under",
        "place",
        "--",
        "tar",
        "cf",
        "place/secret.tar",
        "place/tree",
    ]);
    assert_eq!(exit, 0, "{told}");
    let calls = bench.succeed(&["record", "show", "--calls", "h.rec"]) + &bench.succeed(&["record", "show", "h.rec"]);
    assert!(["needles", "secret"].iter().all(|name| !calls.contains(name)), "{calls}");
    fs::create_dir(bench.path("target")).expect("writable");
    let report = bench.succeed(&["replay", "h.rec", "--directory", "target", "--pace", "full"]);
    assert!(report.contains("differences    0 calls"), "{report}");
}

/// A directory that has a file "f".
fn with_one_file(bench: &Bench) -> PathBuf {
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    fs::write(place.join("f"), "x").expect("writable");
    place
}

/// What `record show --calls` has of a thread's calls of a kind about a name: how long they took, and the time
/// since the call before, in seconds.
fn times(calls: &str, thread: &str, kind: &str) -> Vec<[f64; 2]> {
    let mut waited = 0.0;
    let mut of_kind = Vec::new();
    for line in calls.lines() {
        let mut words = line.split_whitespace().skip(1);
        let (Some(of), Some(name)) = (words.next(), words.next()) else { continue };
        if of != thread {
            continue;
        }
        let (_, times) = line.rsplit_once('<').expect("times");
        let (took, think) = times.split_once("> after ").expect("times");
        let [took, think] = [took, think].map(|text| text.parse::<f64>().expect("a number"));
        if name == "wakeup" {
            waited += took + think;
            continue;
        }
        let before = std::mem::take(&mut waited) + think;
        if name == kind {
            of_kind.push([took, before]);
        }
    }
    of_kind
}

/// Most of these calls do not stop the program, which records them itself. Some of their names cannot be read, or are too long for that.
#[test]
fn calls_are_recorded_whatever_else_happens_to_the_program() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import ctypes, os, signal, subprocess, threading
def look(name, times):
    for _ in range(times):
        try: os.stat(name)
        except OSError: pass
def forked(does):
    process = os.fork()
    if process == 0:
        does()
        os._exit(0)
    return os.waitpid(process, 0)[1]
look("alone", 1000)
handled = 0
def handle(*_):
    global handled
    handled += 1
    look("handler", 1)
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
look("interrupted", 3000)
def wait():
    read, write = os.pipe()
    if os.fork() == 0:
        signal.setitimer(signal.ITIMER_REAL, 0)
        look("sleeper", 100)
        subprocess.run(["sleep", "0.1"])
        os.write(write, b"x")
        os._exit(0)
    assert os.read(read, 1) == b"x"
    os.wait()
wait()
signal.setitimer(signal.ITIMER_REAL, 0)
assert handled > 5
look("handled-%d" % handled, 1)
def child():
    look("child", 300)
    forked(lambda: look("grandchild", 300))
    subprocess.run(["true"])
    look("child", 300)
assert forked(child) == 0
subprocess.run(["true"])
def killed():
    look("killed", 50)
    os.kill(os.getpid(), signal.SIGKILL)
assert forked(killed) == signal.SIGKILL
libc = ctypes.CDLL(None, use_errno=True)
for address in 1, 0x7fffffffe000:
    for _ in range(100):
        assert libc.access(ctypes.c_void_p(address), 0) == -1 and ctypes.get_errno() == 14
look("x" * 200, 100)
os.mkdir("d")
os.chdir("d")
look("beneath", 100)
os.rename("../d", "../e")
look("renamed", 100)
os.chdir("..")
for number in range(100):
    read, write = os.pipe()
    os.write(write, b"abc")
    assert os.read(read, 3) == b"abc"
    os.close(read)
    os.close(write)
    with open("f", "rb") as file: assert file.read(1) == b"x"
threads = [threading.Thread(target=look, args=("thread", 300)) for _ in range(3)]
for thread in threads: thread.start()
look("beside", 300)
for thread in threads: thread.join()
look("after", 300)
assert forked(lambda: look("late", 300)) == 0
"#;
    let bench = Bench::new();
    let place = with_one_file(&bench);
    record(&bench, &place, "a.rec", &["python3", "-c", PROGRAM]);
    let calls = bench.succeed(&["record", "show", "--calls", "a.rec"]);
    let count = |what: &str| calls.lines().filter(|line| line.contains(what)).count();
    let named = |name: &str| count(&format!(" \"{name}\""));
    let long = "x".repeat(200);
    for (name, times) in [
        ("alone", 1000),
        ("interrupted", 3000),
        ("sleeper", 100),
        ("child", 600),
        ("grandchild", 300),
        ("killed", 50),
        (&long, 100),
        ("d/beneath", 100),
        ("e/renamed", 100),
        ("thread", 900),
        ("beside", 300),
        ("after", 300),
        ("late", 300),
    ] {
        assert_eq!(named(name), times, "{name}: {calls}");
    }
    let handled = calls.split(" \"handled-").nth(1).and_then(|rest| rest.split('"').next());
    assert_eq!(handled.and_then(|number| number.parse().ok()), Some(named("handler")), "{calls}");
    fs::create_dir(bench.path("target")).expect("writable");
    let report = bench.succeed(&["replay", "a.rec", "--directory", "target", "--pace", "full"]);
    assert!(report.contains("differences    0 calls"), "{report}");
}

/// Thirty-two processes keep the tracer busy; another one sleeps between its calls, up to a moment that comes nearer meanwhile.
#[test]
fn waiting_for_the_tracer_is_no_time_of_the_program() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import os, time
for _ in range(32):
    if os.fork() == 0:
        for _ in range(1500): os.stat("f")
        os._exit(0)
os.stat("f")
for _ in range(100):
    time.sleep(0.0003)
    os.stat("f")
"#;
    let bench = Bench::new();
    let place = with_one_file(&bench);
    let told = record(&bench, &place, "a.rec", &["python3", "-c", PROGRAM]);
    assert!(told.contains("are uncertain by"), "{told}");
    let mut times = times(&bench.succeed(&["record", "show", "--calls", "a.rec"]), "1", "stat");
    // Python has its own before. A quarter of them is as good as undisturbed by whatever else runs here.
    let times = times.split_off(times.len() - 100);
    let [took, think] = [0, 1].map(|which| {
        let mut values: Vec<f64> = times.iter().map(|one| one[which]).collect();
        values.sort_by(f64::total_cmp);
        values[25]
    });
    assert!((0.5..1.8).contains(&(think / 0.0003)), "recorded {think} s, and it was 0.0003 s: {told}");
    assert!(took < 100e-6, "{took}: {told}");
}

/// Both share a processor with the tracer, which waits for it as well: sometimes as soon as it has let the caller go on.
#[test]
fn calls_beside_a_process_that_computes_take_as_long_as_alone() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import os, sys
child = os.fork()
if child == 0:
    while sys.argv[1] == "beside": pass
    os._exit(0)
for _ in range(3000): os.stat("f")
os.kill(child, 9)
"#;
    let bench = Bench::new();
    let place = with_one_file(&bench);
    let [alone, beside] = ["alone", "beside"].map(|how| {
        let told = record(&bench, &place, how, &["python3", "-c", PROGRAM, how]);
        let calls = times(&bench.succeed(&["record", "show", "--calls", how]), "1", "stat");
        (calls.iter().map(|[took, _]| took).sum::<f64>(), told)
    });
    assert!(beside.0 < 5.0 * alone.0, "{} s alone, {} s beside: {}", alone.0, beside.0, beside.1);
}

/// Other programs compute as well. They would without a tracer, which hardly runs here.
#[test]
fn waiting_for_other_programs_is_time_of_the_program() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import os, time
file = os.open("f", os.O_WRONLY)
began = time.monotonic()
for _ in range(20):
    for _ in range(200000): pass
    os.pwrite(file, b"x", 0)
with open("seconds", "w") as seconds: seconds.write(str(time.monotonic() - began))
"#;
    let bench = Bench::new();
    let place = with_one_file(&bench);
    let others = 4 * std::thread::available_parallelism().map_or(1, usize::from);
    let mut others: Vec<_> = (0..others)
        .map(|_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("it starts"))
        .collect();
    let file = bench.path("a.rec").display().to_string();
    let mut command = bench.command(&["record", "-o", &file, "--", "python3", "-I", "-c", PROGRAM]);
    let output = command.current_dir(&place).output();
    others.iter_mut().for_each(|other| _ = other.kill().and_then(|()| other.wait()));
    assert!(output.is_ok_and(|output| output.status.success()));
    let recorded: f64 =
        times(&bench.succeed(&["record", "show", "--calls", "a.rec"]), "1", "pwrite").iter().flatten().sum();
    let seconds: f64 = fs::read_to_string(place.join("seconds")).expect("it was made").parse().expect("a number");
    assert!((0.8..1.2).contains(&(recorded / seconds)), "recorded {recorded} s of {seconds} s");
}

/// Each of the child's calls stops it for many times what the call takes, and its parent waits for all of them. The child computes as well,
/// so that its fork and its exit, which are in no call, are little of it. Those that sleep beside them slow nothing down.
#[test]
fn a_wait_for_another_thread_is_as_long_as_what_that_one_did() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import os, time
def begin(what):
    process = os.fork()
    if process == 0:
        while True: what()
    return process
sleepers = [begin(lambda: time.sleep(0.005)) for _ in range(4)]
ready, go = os.pipe()
if os.fork() == 0:
    for _ in range(5000): os.stat("f"); sum(range(2000))
    os.write(go, b"x")
    os._exit(0)
os.read(ready, 1)
os.stat("f")
for sleeper in sleepers: os.kill(sleeper, 9)
"#;
    let bench = Bench::new();
    let place = with_one_file(&bench);
    let mut tried = Vec::new();
    // What else the machine does may spoil some recordings, but not all.
    while tried.len() < 5 {
        let file = format!("{}.rec", tried.len());
        let told = record(&bench, &place, &file, &["python3", "-c", PROGRAM]);
        let calls = bench.succeed(&["record", "show", "--calls", &file]);
        let waited = times(&calls, "1", "stat").pop().expect("it is there")[1];
        // How many are seen before it is chance, and more if a script starts Python. Only the parent and this child ask for "f".
        let asking = calls.lines().filter(|line| line.contains(" \"f\" "));
        let child =
            asking.filter_map(|line| line.split_whitespace().nth(1)).max_by_key(|thread| thread.parse::<u32>().ok());
        let child: f64 = times(&calls, child.expect("it is there"), "stat").into_iter().flatten().sum();
        if (0.6..1.5).contains(&(waited / child)) {
            return;
        }
        tried.push(format!("waited {waited} s for {child} s: {told}"));
    }
    panic!("{tried:#?}");
}

#[test]
fn names_beside_their_values_and_waits_for_fifos_are_recorded() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import ctypes, os
fd = os.open("f", os.O_RDWR)
text = ctypes.create_string_buffer(b"1\0user.b\0")
at = ctypes.addressof(text)
call = ctypes.CDLL(None).fsetxattr
call.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for _ in range(200): call(fd, at + 2, at, 2, 0)
os.mkfifo("../p")
if os.fork() == 0:
    to = os.open("../p", os.O_WRONLY)
    for _ in range(2000): os.stat("f")
    os.write(to, b"x")
    os._exit(0)
fifo = os.open("../p", os.O_RDONLY)
os.read(fifo, 1)
os.stat("f")
"#;
    let bench = Bench::new();
    let place = with_one_file(&bench);
    record(&bench, &place, "a.rec", &["python3", "-c", PROGRAM]);
    let calls = bench.succeed(&["record", "show", "--calls", "a.rec"]);
    assert_eq!(
        calls.lines().filter(|line| line.contains("setxattr") && line.contains("user.b")).count(),
        200,
        "{calls}"
    );
    let longest = longest_wait(&calls);
    let child: f64 = times(&calls, "2", "stat").into_iter().flatten().sum();
    assert!(longest > child / 10.0, "{longest} s for {child} s: {calls}");
}

/// How long the first thread waited for another one at once.
fn longest_wait(calls: &str) -> f64 {
    let waits = calls.lines().filter(|line| line.contains(" 1 wakeup ") && line.contains(" length "));
    waits.filter_map(|line| line.rsplit_once('<')?.1.split_once('>')?.0.parse::<f64>().ok()).fold(0.0, f64::max)
}

/// Their waits are short, and what recording costs the one is most of what the other waits for.
#[test]
fn processes_that_take_turns_wait_for_each_other() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import os
(asked, ask), (answered, answer) = os.pipe(), os.pipe()
if os.fork() == 0:
    os.close(ask)
    while os.read(asked, 1): os.stat("f"), os.write(answer, b"x")
    os._exit(0)
for _ in range(1000): os.write(ask, b"x"), os.read(answered, 1)
"#;
    let bench = Bench::new();
    let place = with_one_file(&bench);
    let told = record(&bench, &place, "a.rec", &["python3", "-c", PROGRAM]);
    let calls = bench.succeed(&["record", "show", "--calls", "a.rec"]);
    let waits = calls.lines().filter(|line| line.contains(" wakeup ") && line.contains(" length ")).count();
    // Not all: recording may slow one of them down so that it finds what it would have waited for.
    assert!(waits > 450, "{waits} waits: {told}");
}

/// As `make -j` waits for its jobs; a timer's signal ends a sleep.
#[test]
fn a_wait_that_a_childs_signal_ends_is_one_for_the_child() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import os, select, signal, sys, time
class Ended(Exception): pass
def ends(*_): raise Ended
which, what = sys.argv[1:]
signal.signal(signal.SIGCHLD if which == "child" else signal.SIGALRM, ends)
try:
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        while time.process_time() < 0.4: os.stat("f")
        if which != "child": time.sleep(2)
        os._exit(0)
    if which != "child": signal.setitimer(signal.ITIMER_REAL, 0.7)
    if what == "select": select.select([], [], [], 60)
    else: select.poll().poll(60000)
except Ended: pass
"#;
    let bench = Bench::new();
    let place = with_one_file(&bench);
    // What `python3` is may be a script that waits for others.
    let said =
        Command::new("python3").args(["-c", "import sys; print(sys.executable, end='')"]).output().expect("it starts");
    let python = String::from_utf8(said.stdout).expect("a path");
    for what in ["select", "poll"] {
        for which in ["child", "timer"] {
            let file = format!("{what}-{which}.rec");
            record(&bench, &place, &file, &[&python, "-c", PROGRAM, which, what]);
            let calls = bench.succeed(&["record", "show", "--calls", &file]);
            assert_eq!(longest_wait(&calls) > 0.1, which == "child", "{what} {which}: {calls}");
        }
    }
}

/// A program that has a filter of its own, one that makes calls without libc, one that closes all descriptors, and environments: all is as
/// without fstone, and all calls are there.
#[test]
fn what_the_library_cannot_record_stops_and_no_program_sees_it() {
    if !tool("python3") || !tool("cc") {
        return eprintln!("skipped: python3 or a C compiler is not installed");
    }
    const OWN_LIBRARY: &str = "int chmod(const char *name, unsigned mode) { return 77; }";
    const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void look(const char *name, int times) { while (times--) access(name, F_OK); }
static void *looks(void *name) { look(name, 500); return 0; }
static void *waits(void *pipe) { char byte; for (;;) if (read(*(int *)pipe, &byte, 1) != 1) abort(); }
static void *works(void *name) { for (;;) close(open(name, O_RDONLY)); }
static int vforked(void *name) { look(name, 50); _exit(0); }
static char stack[65536];
int main(int count, char **words) {
    if (count > 1) { look("executed", 500); close(open("f", O_RDONLY)); return 0; }
    struct stat facts;
    for (int i = 0; i < 500; i++) syscall(SYS_faccessat, AT_FDCWD, "raw", F_OK);
    look("plain", 500);
    if (access((char *)1, F_OK) != -1 || errno != EFAULT || access((char *)-1, F_OK) != -1 || errno != EFAULT) return 1;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, looks, "thread");
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    if (vfork() == 0) vforked("vforked");
    wait(0);
    waitpid(clone(vforked, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, "cloned"), 0, 0);
    look("after", 500);
    if (fork() == 0) {
        look("child", 500);
        for (int fd = 0; fd < 1024; fd++) close(fd);
        int file = open("f", O_RDWR);
        char byte;
        if (file != 0 || pread(file, &byte, 1, 0) != 1 || byte != 'x') _exit(1);
        for (int i = 0; i < 300; i++) if (pwrite(file, "x", 1, 0) != 1) _exit(1);
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        // Whatever libc does not do itself ends it.
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_lseek, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { 5, filter };
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(2);
        look("filtered", 500);
        if (fork() == 0) { look("filtered", 500); close(open("f", O_RDONLY)); _exit(0); }
        int status;
        wait(&status);
        if (status) _exit(3);
        execl(words[0], words[0], "filtered", (char *)0);
    }
    int status;
    wait(&status);
    if (status) return 3;
    for (char **one = environ; *one; one++) puts(*one);
    printf("chmod %d\n", chmod("f", 0644));
    printf("page %lu secure %lu\n", getauxval(AT_PAGESZ), getauxval(AT_SECURE));
    unsigned long *vector = (unsigned long *)environ;
    while (*vector++);
    while (vector[0] && vector[0] != AT_PAGESZ) vector += 2;
    printf("page %lu\n", vector[1]);
    fflush(stdout);
    char *none[] = { "ONLY=this", 0 };
    if (fork() == 0) { char *list[] = { "env", 0 }; execve("/usr/bin/env", list, none); }
    wait(0);
    // In a call that waits, and among calls that do not.
    int pipes[2];
    pipe(pipes);
    pthread_create(&threads[0], 0, waits, &pipes[0]);
    pthread_create(&threads[1], 0, works, "f");
    usleep(10000);
    for (int i = 0; i < 2; i++) { pthread_cancel(threads[i]); pthread_join(threads[i], 0); }
    return stat("f", &facts) || !S_ISREG(facts.st_mode);
}
"#;
    let bench = Bench::new();
    let place = with_one_file(&bench);
    let built = bench.path("built");
    fs::create_dir(&built).expect("writable");
    for (name, text, options) in [("program", PROGRAM, &["-pthread", "-w"][..]), ("own.so", OWN_LIBRARY, &["-shared"])]
    {
        let source = built.join(name).with_extension("c");
        fs::write(&source, text).expect("writable");
        let made = Command::new("cc").args(options).arg("-o").arg(built.join(name)).arg(source).status();
        assert!(made.expect("cc is installed").success());
    }
    let (program, own) = (built.join("program"), built.join("own.so"));
    // Its run-time wants to be the first library.
    let sanitized = built.join("sanitized").display().to_string();
    fs::write(built.join("sanitized.c"), "int main() { return 0; }").expect("writable");
    let mut compiler = Command::new("cc");
    compiler.args(["-fsanitize=address", "-o", &sanitized]).arg(built.join("sanitized.c"));
    if compiler.output().is_ok_and(|made| made.status.success()) {
        record(&bench, &place, "sanitized.rec", &["env", "ASAN_OPTIONS=detect_leaks=0", &sanitized]);
    }
    for preloaded in [None, Some(&own)] {
        let run = |words: &[&std::ffi::OsStr]| {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).current_dir(&place).env_clear().env("PATH", "/usr/bin:/bin");
            preloaded.into_iter().for_each(|own| _ = command.env("LD_PRELOAD", own));
            let output = command.output().expect("it can be started");
            let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
            assert!(output.status.success(), "{:?}: {out}{errors}", output.status);
            out
        };
        let alone = run(&[program.as_os_str()]);
        let _ = fs::remove_file(bench.path("a.rec"));
        let recording = bench.path("a.rec");
        let words = ["record".as_ref(), "-o".as_ref(), recording.as_os_str(), "--".as_ref(), program.as_os_str()];
        let recorded = run(&[&[std::ffi::OsStr::new(env!("CARGO_BIN_EXE_fstone"))], &words[..]].concat());
        assert_eq!(alone, recorded);
        let calls = bench.succeed(&["record", "show", "--calls", "a.rec"]);
        let named = |name: &str| {
            calls.lines().filter(|line| line.contains(" access ") && line.contains(&format!(" \"{name}\""))).count()
        };
        let counts =
            ["raw", "plain", "thread", "vforked", "cloned", "after", "child", "filtered", "executed"].map(named);
        assert_eq!(counts, [500, 500, 2000, 50, 50, 500, 500, 1000, 500], "{calls}");
        assert_eq!(calls.lines().filter(|line| line.contains(" pwrite ")).count(), 300);
    }
}

/// Children with filters or of a signal's handler, and programs whose own libraries have functions of libc: all do what they do alone.
#[test]
fn the_library_changes_nothing_that_a_program_does() {
    if !tool("cc") {
        return eprintln!("skipped: a C compiler is not installed");
    }
    const HEAD: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
extern char **environ;
"#;
    const OF_LIBRARIES: &str = r#"
static int syncs;
int syncs_made(void) { return syncs; }
int fsync(int fd) { syncs++; return 0; }
ssize_t pwrite(int fd, const void *from, size_t length, off_t at) {
    ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
    return real(fd, "X", 1, at);
}
__attribute__((constructor)) static void begin(void) { setenv("BEGAN", getenv("LD_PRELOAD") ? "preloaded" : "alone", 1); }
"#;
    const OF_CLOCKS: &str = r#"
int clock_gettime(clockid_t clock, struct timespec *to) {
    static long calls;
    to->tv_sec = 1000 * ++calls;
    return to->tv_nsec = 0;
}
"#;
    const PROGRAM: &str = r#"
static int file, forks;
static volatile int is_child;
static void forks_one(int signal) { if (!is_child && forks < 40) { forks++; is_child = fork() == 0; } }
static void works(int times) { while (times--) if (pwrite(file, "x", 1, 0) != 1) _exit(1); }
static int sandboxes_itself(void) {
    // What the library needs, and this program does not, ends it.
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { 6, filter };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
static void waits(const char *what) {
    int status, all = 0;
    while (wait(&status) > 0) all |= status;
    printf("%s %x\n", what, all);
    fflush(stdout);
}
int main(int count, char **words) {
    file = open("f", O_RDWR);
    works(10);
    printf("fsync %d\n", fsync(file));
    for (char **one = environ; *one; one++) puts(*one);
    fflush(stdout);
    for (int before = 0; before < 40; before += 10) {
        if (fork() == 0) { works(before); if (sandboxes_itself()) _exit(2); works(100); _exit(0); }
        waits("sandboxed child");
    }
    if (fork() == 0) { works(100); if (fork() == 0) { works(100); _exit(0); } waits("grandchild"); _exit(0); }
    waits("child");
    struct sigaction action = { .sa_handler = forks_one, .sa_flags = SA_RESTART };
    sigaction(SIGALRM, &action, 0);
    struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
    setitimer(ITIMER_REAL, &often, 0);
    static char many[65536];
    while (forks < 40) { if (pwrite(file, many, sizeof many, 0) < 1) _exit(9); if (is_child) _exit(0); }
    setitimer(ITIMER_REAL, &never, 0);
    waits("children of a handler");
    if (sandboxes_itself()) return 2;
    if (fork() == 0) { works(100); _exit(0); }
    waits("child of one in a sandbox");
    char byte = 0;
    pread(file, &byte, 1, 0);
    printf("%c\n", byte);
    return 0;
}
"#;
    let bench = Bench::new();
    let place = with_one_file(&bench);
    let built = bench.path("built");
    fs::create_dir(&built).expect("writable");
    let linked = ["-L.", "-Wl,--no-as-needed,-rpath,$ORIGIN"];
    let library = ["-shared", "-fPIC"];
    for (name, text, options, library) in [
        ("libown.so", OF_LIBRARIES, library, None),
        ("libclock.so", OF_CLOCKS, library, None),
        ("plain", PROGRAM, linked, None),
        ("own", PROGRAM, linked, Some("-lown")),
        ("clock", PROGRAM, linked, Some("-lclock")),
    ] {
        let source = format!("{name}.c");
        fs::write(built.join(&source), format!("{HEAD}{text}")).expect("writable");
        let mut compiler = Command::new("cc");
        compiler.current_dir(&built).args(["-w", "-o", name, &source]).args(options).args(library);
        assert!(compiler.status().expect("cc is installed").success());
    }
    for (name, preloaded) in [("plain", None), ("own", None), ("clock", None), ("plain", Some("libclock.so"))] {
        let run = |before: &[&str]| {
            let mut command = Command::new("env");
            command.args(["-i", "PATH=/usr/bin:/bin"]).args(before).arg("env").current_dir(&place);
            preloaded.into_iter().for_each(|own| _ = command.arg(format!("LD_PRELOAD={}", built.join(own).display())));
            let output = command.arg(built.join(name)).output().expect("it can be started");
            let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
            assert!(output.status.success(), "{name} {preloaded:?} {:?}: {out}{errors}", output.status);
            out
        };
        let alone = run(&[]);
        let _ = fs::remove_file(bench.path("a.rec"));
        let recording = bench.path("a.rec").display().to_string();
        let began = std::time::Instant::now();
        let recorded = run(&[env!("CARGO_BIN_EXE_fstone"), "record", "-o", &recording, "--"]);
        let most_s = began.elapsed().as_secs_f64();
        assert_eq!(alone, recorded, "{name} {preloaded:?}");
        let calls = bench.succeed(&["record", "show", "--calls", "a.rec"]);
        let syncs = usize::from(name != "own");
        assert_eq!(calls.lines().filter(|line| line.contains(" fsync ")).count(), syncs, "{calls}");
        // By whatever clock the program has.
        let spent_s: f64 = times(&calls, "1", "pwrite").into_iter().flatten().sum();
        assert!(spent_s > 0.0 && spent_s < most_s, "{name} {preloaded:?}: {spent_s} s of {most_s} s");
    }
}

/// A glibc before 2.34 has no dlsym unless the program wants libdl; this program's libc never has.
#[test]
fn a_program_whose_libc_cannot_be_searched_makes_its_calls() {
    if !tool("cc") {
        return eprintln!("skipped: a C compiler is not installed");
    }
    const LIBC: &str = "long write(int a, const void *b, unsigned long c) { return -1; }
int open(const char *a, int b, ...) { return -1; }
int close(int a) { return -1; }
int posix_fadvise(int a, long b, long c, int d) { return -1; }";
    const PROGRAM: &str = r#"
extern long write(int, const void *, unsigned long);
extern int open(const char *, int, ...);
extern int close(int);
extern int posix_fadvise(int, long, long, int);
__attribute__((force_align_arg_pointer)) void _start(void) {
    int fd = open("made", 0101, 0644);
    long status = fd < 0 || write(fd, "x", 1) != 1 || posix_fadvise(fd, 0, 0, 77) != 22 || close(fd) || open("none", 0) != -1;
    __asm__ volatile("syscall" :: "a"(231L), "D"(status) : "memory");
}
"#;
    let bench = Bench::new();
    let place = with_one_file(&bench);
    let built = bench.path("built");
    fs::create_dir(&built).expect("writable");
    let bare = ["-nostdlib", "-fno-builtin", "-fno-stack-protector"];
    let of_libc = ["-lbare", "-L.", "-Wl,-rpath,$ORIGIN"];
    for (name, text, options) in [("libbare.so", LIBC, &["-shared", "-fPIC"][..]), ("program", PROGRAM, &of_libc)] {
        let source = format!("{name}.c");
        fs::write(built.join(&source), text).expect("writable");
        let mut compiler = Command::new("cc");
        compiler.current_dir(&built).args(bare).args(["-o", name, &source]).args(options);
        assert!(compiler.status().expect("cc is installed").success());
    }
    record(&bench, &place, "a.rec", &[&built.join("program").display().to_string()]);
    assert_eq!(fs::read(place.join("made")).expect("the program made it"), b"x");
    let calls = bench.succeed(&["record", "show", "--calls", "a.rec"]);
    assert_eq!(calls.lines().filter(|line| line.contains(" write ")).count(), 1, "{calls}");
}

/// Whatever other processes do meanwhile, and although signals interrupt it that are ignored.
#[test]
fn a_wait_that_times_out_is_a_sleep() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import ctypes, os, select, signal, socket, struct, threading, time
child = os.fork()
while child == 0: os.stat(".")
other = os.fork()
while other == 0:
    time.sleep(0.07)
    os.kill(os.getppid(), signal.SIGWINCH)
ours, _theirs = socket.socketpair()
ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 200_000))
def receive():
    try: os.read(ours.fileno(), 1)
    except BlockingIOError: pass
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
def all_of(*waits):
    for wait in waits:
        wait()
        os.stat("f")
all_of(
    lambda: select.poll().poll(200),
    lambda: select.select([], [], [], 0.2),
    lambda: threading.Event().wait(0.2),
    lambda: time.sleep(0.2),
)
os.kill(other, 9)
# These end with a signal.
libc = ctypes.CDLL(None)
limit = struct.pack("ll", 0, 200_000_000)
semaphores = libc.semget(0, 1, 0o600)
queued = ctypes.c_ulong()
setup, get = (206, 208) if os.uname().machine == "x86_64" else (0, 4)
assert libc.syscall(ctypes.c_long(setup), ctypes.c_long(1), ctypes.byref(queued)) == 0
get_events = map(ctypes.c_long, (get, queued.value, 1, 1))
all_of(
    lambda: select.epoll().poll(0.2),
    lambda: signal.sigtimedwait([signal.SIGUSR1], 0.2),
    lambda: libc.semtimedop(semaphores, struct.pack("Hhh", 0, -1, 0), ctypes.c_long(1), limit),
    lambda: libc.syscall(*get_events, bytes(64), limit),
    receive,
)
libc.semctl(semaphores, 0, 0)
os.kill(child, 9)
"#;
    // A thread that waits for a processor between the moment from which its time counts and the call waits the less in it. What is
    // wrong on a busy machine alone is not so three times.
    let tried: Vec<String> = (0..3)
        .map_while(|_| {
            let bench = Bench::new();
            let place = with_one_file(&bench);
            let told = record(&bench, &place, "a.rec", &["python3", "-c", PROGRAM]);
            let calls = bench.succeed(&["record", "show", "--calls", "a.rec"]);
            let waits = times(&calls, "1", "stat");
            let waits = &waits[waits.len() - 9..];
            let are_sleeps = waits.iter().all(|[_, think]| (0.19..0.4).contains(think));
            (!are_sleeps).then(|| format!("{waits:?}: {told}"))
        })
        .collect();
    assert!(tried.len() < 3, "{tried:#?}");
}

/// It goes on while the thread is stopped for each of them.
#[test]
fn a_sleep_takes_as_long_however_often_signals_interrupt_it() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import os, select, signal, threading, time
other = os.fork()
while other == 0:
    time.sleep(0.002)
    os.kill(os.getppid(), signal.SIGWINCH)
for wait in [
    lambda: time.sleep(0.5),
    lambda: select.poll().poll(500),
    lambda: select.select([], [], [], 0.5),
    lambda: threading.Event().wait(0.5),
]:
    wait()
    os.stat("f")
os.kill(other, 9)
"#;
    let bench = Bench::new();
    let place = with_one_file(&bench);
    let told = record(&bench, &place, "a.rec", &["python3", "-c", PROGRAM]);
    let calls = bench.succeed(&["record", "show", "--calls", "a.rec"]);
    let waits = times(&calls, "1", "stat");
    let waits = &waits[waits.len() - 4..];
    assert!(waits.iter().all(|[_, think]| (0.49..0.8).contains(think)), "{waits:?}: {told}");
}

/// The thread is stopped for the call that fails, for the signal, and for the next call, while the clock goes on.
#[test]
fn a_sleep_in_parts_takes_as_long_however_often_a_handler_interrupts_it() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import ctypes, os, select, signal, struct, threading, time
libc = ctypes.CDLL(None)
signal.signal(signal.SIGALRM, lambda *_: None)
writes = os.pipe()[1]
def nanosleep():
    left = ctypes.create_string_buffer(struct.pack("ll", 0, 400_000_000))
    while libc.nanosleep(left, left) == -1: pass
def write_and_poll():
    end = time.monotonic() + 0.4
    while (left := end - time.monotonic()) > 0:
        if libc.poll(None, 0, int(left * 1000) + 1) == -1: os.write(writes, b"x")
def times(call):
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    for _ in range(20): call()
for wait in [
    lambda: time.sleep(0.4),
    nanosleep,
    lambda: select.poll().poll(400),
    lambda: select.select([], [], [], 0.4),
    lambda: threading.Event().wait(0.4),
    write_and_poll,
    lambda: times(lambda: libc.poll(None, 0, -1)),
    lambda: times(lambda: libc.poll(None, 0, 5000)),
    lambda: times(libc.pause),
]:
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    wait()
    signal.setitimer(signal.ITIMER_REAL, 0)
    os.stat("f")
"#;
    let bench = Bench::new();
    let place = with_one_file(&bench);
    let told = record(&bench, &place, "a.rec", &["python3", "-c", PROGRAM]);
    let calls = bench.succeed(&["record", "show", "--calls", "a.rec"]);
    let waits = times(&calls, "1", "stat");
    let waits = &waits[waits.len() - 9..];
    assert!(waits.iter().all(|[_, think]| (0.37..0.8).contains(think)), "{waits:?}: {told}");
}

#[test]
fn a_signal_ends_a_write_to_a_full_pipe_and_no_name_is_none() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import os, signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
r, w = os.pipe()
os.write(w, b"x")
os.read(r, 1)
signal.alarm(1)
assert os.write(w, bytes(200000)) == 65536
for call in lambda: os.stat(""), lambda: os.rename("", "../moved"), lambda: os.open("", os.O_RDONLY):
    try: call()
    except FileNotFoundError: continue
    raise SystemExit("it has no name")
os.stat("f")
"#;
    let bench = Bench::new();
    let place = with_one_file(&bench);
    record(&bench, &place, "a.rec", &["python3", "-c", PROGRAM]);
    let calls = bench.succeed(&["record", "show", "--calls", "a.rec"]);
    assert!(calls.contains(" stat ") && !calls.contains(" rename ") && !calls.contains("\"\" = -2"), "{calls}");
}

#[test]
fn threads_beyond_the_limit_of_descriptors_are_recorded() {
    let bench = Bench::new();
    let place = with_one_file(&bench);
    let file = bench.path("a.rec").display().to_string();
    let script = "for one in $(seq 40); do sleep 1 & done; cat > copy";
    let command = bench.command(&["record", "-o", &file, "--", "sh", "-c", script]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 32; exec \"$@\"", "sh"]).arg(command.get_program()).args(command.get_args());
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(&place);
    let input = fs::File::open(place.join("f")).expect("readable");
    let output = limited.stdin(input).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    assert_eq!(told.matches("of the threads ran is not known").count(), 1, "{told}");
    let calls = bench.succeed(&["record", "show", "--calls", "a.rec"]);
    assert!(calls.contains("open           \"f\""), "{calls}");
}

/// glibc changes a mode without following links so, as tar does for directories.
#[test]
fn what_was_opened_as_a_path_is_changed_by_its_name_in_proc() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir_all(place.join("d")).expect("writable");
    let program = "import os\np = '/proc/self/fd/%d' % os.open('d', os.O_PATH)\nos.chmod(p, 0o700)\nos.chown(p, -1, -1)\nos.utime(p)";
    record(&bench, &place, "path.rec", &["python3", "-c", program]);
    fs::create_dir(bench.path("target")).expect("writable");
    let report = bench.succeed(&["replay", "path.rec", "--directory", "target", "--pace", "full"]);
    assert!(report.contains("differences    0 calls"), "{report}");
    assert!(["fchmod", "fchown", "futimens"].iter().all(|kind| report.contains(&format!("\n  {kind} "))), "{report}");
}

#[test]
fn a_program_thinks_before_it_starts_another_and_before_it_ends() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    let bench = Bench::new();
    let place = with_one_file(&bench);
    let program = "import os, time\nos.open('f', 0)\ntime.sleep(0.3)\nos._exit(0)";
    record(&bench, &place, "end.rec", &["python3", "-c", program]);
    let calls = bench.succeed(&["record", "show", "--calls", "end.rec"]);
    let [close, exit] = ["close", "exit"].map(|kind| times(&calls, "1", kind).pop().expect("it is there")[1]);
    assert!(close >= 0.3 && exit < 0.1, "{calls}");
    // Isolated, it does not look for modules in the working directory.
    let program = "import os, time\ntime.sleep(0.3)\nos.execvp('cat', ['cat', 'f'])";
    record(&bench, &place, "exec.rec", &["python3", "-I", "-c", program]);
    let calls = bench.succeed(&["record", "show", "--calls", "exec.rec"]);
    assert!(times(&calls, "1", "open")[0][1] >= 0.3, "{calls}");
}

#[test]
fn a_recording_ends_with_a_signal_and_its_status_is_the_programs() {
    let bench = Bench::new();
    let place = bench.path("place");
    let file = |name: &str| bench.path(name).display().to_string();
    fs::create_dir_all(&place).expect("writable");
    let start = |name: &str, script: &str| {
        let mut command = bench.command(&["record", "-o", &file(name), "--", "sh", "-c", script]);
        command.current_dir(&place).stderr(std::process::Stdio::null()).spawn().expect("it starts")
    };
    let wait_for = |name: &str| wait_until(name, || place.join(name).exists());
    let signal = |process: &std::process::Child, signal: rustix::process::Signal| {
        rustix::process::kill_process(rustix::process::Pid::from_child(process), signal).expect("it is there");
    };
    let status = start("seven.rec", "exit 7").wait().expect("it ends");
    assert_eq!(status.code(), Some(7));
    use rustix::process::Signal;
    for (name, script, asked, code) in [
        ("term", "echo x > term; sleep 60", Signal::TERM, 143),
        ("int", "echo x > int; sleep 60", Signal::INT, 130),
        ("late", "trap '' INT; echo x > late; while :; do sleep 60; done", Signal::INT, 143),
        ("deaf", "trap '' TERM; echo x > deaf; while :; do sleep 60; done", Signal::TERM, 137),
    ] {
        let recording = format!("{name}.rec");
        let mut process = start(&recording, script);
        wait_for(name);
        signal(&process, asked);
        assert_eq!(process.wait().expect("it ends").code(), Some(code), "{name}");
        let shown = bench.succeed(&["record", "show", &recording]);
        assert!(!shown.contains("was not finished") && shown.contains("was ended by signal"), "{shown}");
        assert!(shown.contains("  open "), "{shown}");
    }
    // What the caller ignores, the program does, and its recording goes on.
    let words = bench.typed(&["record", "-o", &file("ignored.rec"), "--", "sh", "-c", "echo x > on; sleep 1; exit 3"]);
    let mut command = bench.shell(&format!("cd {}; trap '' INT; exec {}", place.display(), words.join(" ")));
    let mut process = command.stderr(std::process::Stdio::null()).spawn().expect("it starts");
    wait_for("on");
    signal(&process, Signal::INT);
    assert_eq!(process.wait().expect("it ends").code(), Some(3));
    // Nothing is done with the last signal; what was written within a second is there.
    let mut process = start("killed.rec", "echo x > killed; sleep 60");
    wait_for("killed");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    signal(&process, Signal::KILL);
    process.wait().expect("it ends");
    let shown = bench.succeed(&["record", "show", "killed.rec"]);
    assert!(shown.contains("was not finished") && shown.contains("  open "), "{shown}");
}

/// As from a terminal. What the program does at its end takes a while, and nothing is to come in between.
#[test]
fn an_interrupt_for_the_whole_process_group_comes_to_the_program_once() {
    use std::os::unix::process::CommandExt;
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAMS: [&str; 3] = [
        r#"
import signal, subprocess, time
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    open("ready", "w").close()
    time.sleep(60)
except KeyboardInterrupt:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    child = subprocess.Popen(["sleep", "0.5"])
    time.sleep(0.7)
    assert child.wait() == 0
    open("saved", "w").close()
    raise SystemExit(5)
"#,
        r#"
import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
open("ready", "w").close()
assert signal.sigwait([signal.SIGINT]) == signal.SIGINT
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
time.sleep(0.7)
open("saved", "w").close()
raise SystemExit(5)
"#,
        r#"
import ctypes, os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
signals = ctypes.create_string_buffer((1 << signal.SIGINT - 1).to_bytes(8, "little"), 128)
file = ctypes.CDLL(None).signalfd(-1, signals, 0)
open("ready", "w").close()
assert os.read(file, 1280)[0] == signal.SIGINT
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
time.sleep(0.7)
open("saved", "w").close()
raise SystemExit(5)
"#,
    ];
    use rustix::process::{Pid, Signal, kill_process_group};
    for program in PROGRAMS {
        let bench = Bench::new();
        let place = bench.path("place");
        fs::create_dir_all(&place).expect("writable");
        let file = bench.path("app.rec").display().to_string();
        let mut command = bench.command(&["record", "-o", &file, "--", "python3", "-c", program]);
        let command = command.current_dir(&place).stderr(std::process::Stdio::null()).process_group(0);
        let mut process = command.spawn().expect("it starts");
        wait_until("it is ready", || place.join("ready").exists());
        kill_process_group(Pid::from_child(&process), Signal::INT).expect("it is there");
        assert_eq!(process.wait().expect("it ends").code(), Some(5), "{program}");
        assert!(place.join("saved").exists());
        let shown = bench.succeed(&["record", "show", "app.rec"]);
        assert!(!shown.contains("was not finished"), "{shown}");
    }
}

/// Ctrl-\ for all of the process group, which some programs handle and others die of.
#[test]
fn a_quit_from_the_terminal_is_the_programs() {
    use rustix::process::{Pid, Signal, kill_process_group};
    use std::os::unix::process::CommandExt;
    for (trap, code) in [("trap 'echo x > caught; exit 7' QUIT", 7), ("ulimit -c 0", 131)] {
        let bench = Bench::new();
        let place = bench.path("place");
        fs::create_dir_all(&place).expect("writable");
        let file = bench.path("app.rec").display().to_string();
        let script = format!("{trap}; echo x > ready; while :; do sleep 0.1; done");
        let mut command = bench.command(&["record", "-o", &file, "--", "sh", "-c", &script]);
        let command = command.current_dir(&place).stderr(std::process::Stdio::null()).process_group(0);
        let mut process = command.spawn().expect("it starts");
        wait_until("it is ready", || place.join("ready").exists());
        kill_process_group(Pid::from_child(&process), Signal::QUIT).expect("it is there");
        assert_eq!(process.wait().expect("it ends").code(), Some(code), "{trap}");
        let shown = bench.succeed(&["record", "show", "app.rec"]);
        assert!(!shown.contains("was not finished"), "{shown}");
    }
}

/// timeout(1) sends the same signal twice.
#[test]
fn what_is_ended_by_timeout_ends_as_if_it_were_asked_once() {
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    fs::create_dir(bench.path("target")).expect("writable");
    bench.write("app.sh", "trap 'echo x > caught; exit 9' TERM; echo x > a; while :; do sleep 0.1; done");
    let file = bench.path("app.rec").display().to_string();
    let words = bench.typed(&["record", "-o", &file, "--", "sh", "../app.sh"]).join(" ");
    let mut command = bench.shell(&format!("cd {}; timeout --preserve-status 1 {words}", place.display()));
    assert_eq!(command.output().expect("it starts").status.code(), Some(9));
    assert!(place.join("caught").exists());
    let shown = bench.succeed(&["record", "show", "app.rec"]);
    assert!(!shown.contains("was not finished"), "{shown}");
    record(&bench, &place, "slow.rec", &["sh", "-c", "echo x > b; sleep 4; echo y > c"]);
    let words = bench.typed(&["replay", "slow.rec", "--directory", "target"]).join(" ");
    let status = bench.shell(&format!("timeout --preserve-status 1 {words}")).output().expect("it starts").status;
    assert_eq!(status.code(), Some(130));
    assert_eq!(fs::read_dir(bench.path("target")).expect("readable").count(), 0, "its directory is gone");
}

#[test]
fn a_program_has_the_processors_that_it_asks_for_and_all_of_them_when_it_needs_them() {
    tool("taskset");
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir(&place).expect("writable");
    let own = |word: &str, words: &[&str]| {
        String::from_utf8(Command::new(word).args(words).output().expect("it starts").stdout).expect("text")
    };
    let all = own("grep", &["Cpus_allowed_list:", "/proc/self/status"]);
    let list = "grep Cpus_allowed_list: /proc/self/status";
    // Two that compute, until their processors are seen to be enough.
    let script = format!(
        "nproc > asked; for try in $(seq 20); do nproc & nproc & nproc & nproc & wait; done > at_once
        sleep 1 & {list} > read; echo $! > pid; wait
        while :; do :; done & one=$!
        while :; do :; done & two=$!
        for try in $(seq 250); do {list} > both; [ \"$(cat both)\" = \"$1\" ] && break; sleep 0.02; done
        kill $one $two
        taskset -c 0 {list} > chosen"
    );
    // It asks nobody, so that it does not change what it sees.
    let look = std::thread::spawn({
        let pid = place.join("pid");
        move || {
            let read = || fs::read_to_string(&pid).ok().filter(|pid| pid.ends_with('\n'));
            wait_until("it sleeps", || read().is_some());
            std::thread::sleep(std::time::Duration::from_millis(200));
            let status = fs::read_to_string(format!("/proc/{}/status", read().expect("just seen").trim_end()));
            status
                .expect("it sleeps")
                .lines()
                .find_map(|line| Some(line.strip_prefix("Cpus_allowed_list:")?.trim().to_owned()))
        }
    });
    record(&bench, &place, "app.rec", &["sh", "-c", &script, "sh", all.trim_end()]);
    let waits = look.join().expect("it looked").expect("a list");
    let text = |name: &str| fs::read_to_string(place.join(name)).expect("the program wrote it");
    let number = |name: &str| text(name).trim_start_matches(|letter: char| !letter.is_ascii_digit()).to_owned();
    assert_eq!(text("asked"), own("nproc", &[]));
    assert_eq!(text("at_once"), own("nproc", &[]).repeat(80), "several that ask at the same time");
    assert_eq!(text("both"), all);
    assert_eq!(number("chosen"), "0\n");
    assert_eq!(text("read"), all);
    assert!(waits.parse::<usize>().is_ok(), "the one that sleeps needs none: {waits}");
}

/// It stands still while its tree is read, and goes on when the recording ends.
#[test]
fn a_process_that_runs_is_recorded_and_goes_on() {
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    let script =
        "exec 3>>log; while [ ! -e stop ]; do echo x >&3; cat log | wc -c > count; sleep 0.01; done; echo y > ended";
    let mut process = Command::new("sh").args(["-c", script]).current_dir(&place).spawn().expect("it starts");
    wait_until("it runs", || place.join("count").exists());
    let file = bench.path("of.rec").display().to_string();
    let mut command = bench.command(&["record", "-o", &file, "--pid", &process.id().to_string()]);
    let mut recorder = command.stderr(std::process::Stdio::null()).spawn().expect("it starts");
    // The first words of the file come when the tree has been read.
    wait_until("it is recorded", || fs::metadata(&file).is_ok_and(|facts| facts.len() > 2000));
    let from = rustix::process::Pid::from_child(&recorder);
    rustix::process::kill_process(from, rustix::process::Signal::INT).expect("it is there");
    let ended = recorder.wait().expect("it ends");
    fs::write(place.join("stop"), "").expect("writable");
    assert!(ended.success() && process.wait().expect("it ends").success());
    assert_eq!(fs::read_to_string(place.join("ended")).expect("it went on"), "y\n");
    let calls = bench.succeed(&["record", "show", "--calls", "of.rec"]);
    let calls: Vec<String> = calls.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    // Its own descriptor, which was open before, and its children's files.
    for said in [&[" 1 write #", " length 2 = 2"][..], &["open \"count\""], &["length 131072 = "]] {
        assert!(calls.iter().any(|line| said.iter().all(|part| line.contains(part))), "{said:?}: {calls:#?}");
    }
    let shown = bench.succeed(&["record", "show", "of.rec"]);
    assert!(!shown.contains("was not finished"), "{shown}");
}

/// What strace cost is in its times, and a log may have none.
#[test]
fn a_replay_is_not_compared_with_times_that_are_not_the_applications() {
    let bench = Bench::new();
    let timed =
        "1 1000.000000 mkdir(\"/w/a\", 0777) = 0 <0.000010>\n1 1000.020000 mkdir(\"/w/b\", 0777) = 0 <0.000010>\n";
    let untimed = "1 mkdir(\"/w/a\", 0777) = 0\n1 mkdir(\"/w/b\", 0777) = 0\n";
    let iolog = "fio version 3 iolog\n1 /w/f add\n2 /w/f open\n5 /w/f write 0 4096\n20000 /w/f write 4096 4096\n";
    for (log, recorded, shown, why) in [
        (
            timed,
            " with what strace cost",
            "20 ms with what strace cost",
            Some("the log's times include what strace cost"),
        ),
        (untimed, "", "", Some("the log has no times")),
        (iolog, "", "20 ms\n", None),
    ] {
        bench.write("log", log);
        bench.succeed(&["record", "import", "log", "-o", "log.rec", "--under", "/w"]);
        let text = bench.succeed(&["replay", "log.rec", "--directory", "."]);
        assert_eq!(text.contains("that of the application"), why.is_none(), "{text}");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(why.is_none_or(|why| flat.contains(&format!("not known: {why}"))), "{text}");
        assert!(!text.contains("what recording cost"), "{text}");
        assert_eq!(text.contains("  recorded  "), !shown.is_empty(), "{text}");
        assert!(text.contains(shown), "{text}");
        // Where it is not known how long calls took, there is nothing beside how long they take here.
        let line = text.lines().find(|line| line.contains("mkdir") || line.contains("pwrite")).expect("it made some");
        assert_eq!(line.ends_with(" -"), log != timed, "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&bench.succeed(&["replay", "log.rec", "--directory", ".", "--json"])).expect("JSON");
        assert_eq!(json["recorded_seconds"].as_f64().is_some(), why.is_none(), "{json}");
        assert_eq!(json["not_comparable"].as_str(), why, "{json}");
        let text = bench.succeed(&["record", "show", "log.rec"]);
        assert!(!text.contains("what recording cost"), "{text}");
        assert_eq!(text.contains("  time  "), log != untimed, "{text}");
        assert!(text.contains(recorded), "{text}");
        fs::remove_file(bench.path("log.rec")).expect("it is there");
    }
}

#[test]
fn what_is_not_for_a_command_is_named() {
    let bench = Bench::new();
    bench.write("log", "1 1000.0 mkdir(\"/w/a\", 0777) = 0 <0.000010>\n");
    bench.succeed(&["record", "import", "log", "-o", "a.rec", "--under", "/w"]);
    fs::write(bench.path("log.gz"), b"\x1f\x8b\x08\0\xff\xfe").expect("writable");
    fs::write(bench.path("image"), b"a\0\xff").expect("writable");
    for (words, expected) in [
        (&["record", "import", "a.rec", "-o", "b.rec"][..], "this is a recording: "),
        (&["record", "import", "log.gz", "-o", "b.rec"], "it is no text: unpack it first"),
        (&["record", "import", "image", "-o", "b.rec"], "it is no text\n"),
        (&["load", "a.rec", "--directory", "."], "this is a recording: fstone replay takes it"),
        (&["run", "./a.rec"], "this is a recording: fstone replay takes it"),
        (&["record", "-o", "b.rec", "--under", "sh", "./sh.sh"], "the program and its arguments come after --"),
    ] {
        let (exit, _, told) = bench.run(words);
        assert!(exit == 2 && told.contains(expected), "{words:?}: {told}");
        assert!(!told.contains('\u{fffd}') && !bench.path("b.rec").exists(), "{told}");
    }
    let (_, _, told) = bench.run(&["record", "--undr", "sh", "--", "true"]);
    assert!(!told.contains("come after --"), "{told}");
}

#[test]
fn of_a_mapping_what_the_file_has_counts() {
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir(&place).expect("writable");
    fs::write(place.join("f"), vec![7; 10_000]).expect("writable");
    let program = "import ctypes, mmap, os\nf = os.open('f', os.O_RDWR)\nmap = ctypes.CDLL(None).mmap\nmap.restype = ctypes.c_void_p\n\
        for at in 0, 8192: map(None, ctypes.c_size_t(1 << 30), 1, mmap.MAP_SHARED, f, ctypes.c_long(at))";
    record(&bench, &place, "a.rec", &["python3", "-c", program]);
    let text = bench.succeed(&["record", "show", "a.rec"]);
    let line = text.lines().find(|line| line.contains("were mapped")).expect("two are");
    assert!(line.contains("11.5 KiB were mapped"), "{line}");
    let calls = bench.succeed(&["record", "show", "--calls", "a.rec"]);
    let lengths = ["length 10000 ", "length 1808 offset 8192 "];
    assert!(lengths.iter().all(|length| calls.contains(length)), "{calls}");
}

#[test]
fn a_recording_is_converted_to_a_workload_that_resembles_it() {
    let bench = Bench::new();
    let place = bench.path("place");
    prepare(&place);
    let script = "for i in $(seq 40); do head -c 5000 tree/a/9 > new$i; done; cat tree/a/* > /dev/null; rm new1 new2; mkdir d; sync d";
    record(&bench, &place, "a.rec", &["sh", "-c", script]);
    let text = bench.succeed(&["convert", "a.rec"]);
    bench.write("a.workload", &text);
    assert!(text.starts_with("# Resembles a: "), "{text}");
    let report: serde_json::Value = serde_json::from_str(&bench.succeed(&[
        "load",
        "a.workload",
        "--directory",
        &bench.path("place").display().to_string(),
        "--json",
    ]))
    .expect("it is JSON");
    let text_of = report.to_string();
    for what in ["create", "read whole", "unlink", "mkdir", "fsync"] {
        assert!(text_of.contains(what), "{what}: {text} {report}");
    }
}

/// Its journal is made, written here and there, and removed with each transaction.
#[test]
fn the_workload_that_a_recording_of_sqlite_becomes_runs() {
    if !tool("sqlite3") {
        return eprintln!("skipped: sqlite3 is not installed");
    }
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    let insert = "insert into t values (hex(randomblob(300)));";
    let script = format!("create table t (a); {}", insert.repeat(100));
    record(&bench, &place, "a.rec", &["sqlite3", "db", &script]);
    let text = bench.succeed(&["convert", "a.rec"]);
    bench.write("a.workload", &text);
    fs::create_dir(bench.path("load")).expect("writable");
    let directory = bench.path("load").display().to_string();
    let report: serde_json::Value =
        serde_json::from_str(&bench.succeed(&["load", "a.workload", "--directory", &directory, "--json"]))
            .expect("JSON");
    let operations = report["operations"].as_array().expect("a list");
    let [failed, done] = ["errors", "invocations"]
        .map(|field| operations.iter().map(|one| one[field].as_u64().expect("a number")).sum::<u64>());
    assert!(done > 1000 && failed * 50 < done, "{failed} failed, {done} did not: {text} {report}");
}

/// By its position, or because the file was set to append: the second half of each file is written behind the first.
#[test]
fn what_is_written_behind_a_file_is_converted_to_an_append() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import fcntl, os
for i in range(40):
    with open(f"f{i}", "wb") as f: f.write(b"x" * 8192)
for i in range(20):
    fd = os.open(f"f{i}", os.O_WRONLY)
    os.lseek(fd, 0, os.SEEK_END)
    os.pwritev(fd, [b"x" * 4096], -1, os.RWF_DSYNC)
    os.close(fd)
    fd = os.open(f"f{20 + i}", os.O_WRONLY)
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
    os.write(fd, b"x" * 4096)
    os.close(fd)
"#;
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    record(&bench, &place, "a.rec", &["python3", "-c", PROGRAM]);
    let text = bench.succeed(&["convert", "a.rec"]);
    assert!(text.contains("append") && !text.contains("write ") && !text.contains("overwrite"), "{text}");
}

#[test]
fn no_memory_of_the_program_and_no_attribute_is_in_a_recording() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import os
open("f", "w").close()
for call in [lambda: os.stat("SECRET" * 1000), lambda: os.setxattr("f", "user.SECRET", b"x")]:
    try: call()
    except OSError: pass
"#;
    let bench = Bench::new();
    let file = bench.path("s.rec").display().to_string();
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    let mut command = bench.command(&["record", "-o", &file, "--hash-names", "--", "python3", "-c", PROGRAM]);
    let output = command.current_dir(&place).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let calls = bench.succeed(&["record", "show", "--calls", "s.rec"]) + &bench.succeed(&["record", "show", "s.rec"]);
    assert!(!calls.contains("SECRET") && calls.contains("\"user."), "{calls}");
    // The unfinished name was too long for the kernel; with names as they are it is left out as well.
    record(&bench, &place, "plain.rec", &["python3", "-c", PROGRAM]);
    let calls = bench.succeed(&["record", "show", "--calls", "plain.rec"]);
    assert!(!calls.contains("SECRETSECRET") && calls.contains("user.SECRET"), "{calls}");
}

#[test]
fn a_study_compares_filesystems_by_a_recording() {
    if !is_root() {
        return eprintln!("skipped: making filesystems needs root");
    }
    let bench = Bench::new();
    let place = bench.path("place");
    prepare(&place);
    record(&bench, &place, "a.rec", &["tar", "cf", "tree.tar", "tree"]);
    let page = include_str!("../../../../docs/record-replay.md");
    let study = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the page has a study");
    let study = study.replace("4 GiB", "400 MiB").replace("unpack.rec", "a.rec");
    bench.write("study.toml", &format!("repeats = 2\n{study}"));
    let dry = bench.succeed(&["run", "./study.toml", "--dry-run"]);
    assert!(dry.contains("replay a: ") && dry.contains("/a.rec"), "{dry}");
    bench.succeed(&["run", "./study.toml"]);
    let report = bench.succeed(&["report"]);
    for word in ["ext4", "xfs", "execution time", "think time", "differing calls"] {
        assert!(report.contains(word), "{report}");
    }
    let json = bench.json();
    assert!(!json["rules"].to_string().contains("which clock"), "{}", json["rules"]);
    let trials = trials(&json);
    assert_eq!(trials.len(), 4);
    for trial in trials {
        let value = |name: &str| {
            let mut figures = trial["figures"].as_array().into_iter().flatten();
            let is_wanted = |figure: &&serde_json::Value| figure["step"] == "application" && figure["metric"] == name;
            figures.find(is_wanted).and_then(|figure| figure["value"].as_f64())
        };
        assert_eq!(value("differing calls"), Some(0.0), "{trial}");
        assert!(value("open latency p99") > Some(0.0) && value("think time") > Some(0.0), "{trial}");
        assert!(value("execution time") < value("setup time").map(|time| time + 60.0), "{trial}");
    }
}

/// The program makes files by a name that is not recorded, so that the replay lacks them.
const UNSEEN: &str = r#"
import os, sys
for number in range(int(sys.argv[1])):
    os.mknod(f"/proc/self/root{os.getcwd()}/app/{number}", 0o644)
    os.stat(f"app/{number}")
for _ in range(200): os.stat("app")
"#;

fn record_unseen(bench: &Bench, unseen: &str) -> String {
    let place = bench.path(&format!("place{unseen}"));
    fs::create_dir_all(place.join("app")).expect("writable");
    let file = format!("{unseen}.rec");
    record_with(bench, &place, &file, &["--under", "app", "--"], &["python3", "-c", UNSEEN, unseen]);
    file
}

#[test]
fn a_replay_with_many_differences_is_marked_and_one_with_more_has_no_times() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    let bench = Bench::new();
    fs::create_dir(bench.path("target")).expect("writable");
    for (unseen, status, is_marked) in [("1", 0, false), ("10", 0, true), ("40", 4, false)] {
        let file = record_unseen(&bench, unseen);
        let words = ["replay", &file, "--directory", "target", "--pace", "full"];
        let (exit, report, told) = bench.run(&words);
        assert_eq!(exit, status, "{report}{told}");
        let marked = report.contains("  doubtful       its times, because 10 of 210 calls (4.8 %)");
        assert_eq!((marked, report.contains("  time ")), (is_marked, status == 0), "{report}");
        assert!(report.contains("stat 0: No such file or directory"), "{report}");
        let (_, json, _) = bench.run(&[&words[..], &["--json"]].concat());
        let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
        assert_eq!((json["seconds"].is_null(), json["doubtful"].is_string()), (status != 0, is_marked), "{json}");
        assert_eq!(json["differences"].to_string(), unseen);
        if status != 0 {
            assert!(told.contains("40 of 240 calls (16.7 %) returned something else"), "{told}");
        }
    }
}

#[test]
fn a_row_of_a_study_is_marked_or_fails_if_its_replay_differs_much() {
    if !is_root() || !tool("python3") {
        return eprintln!("skipped: making filesystems needs root, and the program python3");
    }
    let bench = Bench::new();
    let mut tables = Vec::new();
    for unseen in ["10", "40"] {
        let file = record_unseen(&bench, unseen);
        let study = format!(
            "title = \"x\"\nrepeats = 2\ndevice = {{ loop = {{ size = \"64 MiB\" }} }}\nfactor.filesystem.ext4 = {{ type = \"ext4\" }}\n\
             [[step]]\nname = \"app\"\nload = {{ replay = \"{file}\", speed = 2, cold = true }}\nshow = [\"execution time\"]\n"
        );
        bench.write("study.toml", &study);
        let dry = bench.succeed(&["run", "./study.toml", "--dry-run"]);
        assert!(dry.contains(&format!("/{unseen}.rec, with cold caches")), "{dry}");
        bench.run(&["run", "./study.toml"]);
        let formats = ["terminal", "markdown", "html"].map(|format| bench.succeed(&["report", "--format", format]));
        tables.push((formats, bench.json()));
    }
    let [(marked, json), (failed, failed_json)] = tables.try_into().expect("two");
    let flat = |table: &String| table.split_whitespace().collect::<Vec<_>>().join(" ");
    for table in marked.iter().map(flat) {
        assert!(table.contains("doubtful at app") && table.contains("10 of 210 calls (4.8 %) returned"), "{table}");
    }
    let note = &json["footnotes"][0];
    assert!(note["outcome"] == "doubtful" && json["rows"][0]["footnotes"][0] == 1, "{json:#}");
    for table in failed.iter().map(flat) {
        assert!(table.contains("40 of 240 calls (16.7 %) returned something else"), "{table}");
    }
    assert!(failed_json["footnotes"][0]["outcome"] == "failed", "{failed_json:#}");
}

#[test]
fn a_recording_of_nothing_says_so_and_is_refused() {
    let bench = Bench::new();
    let place = with_one_file(&bench);
    fs::create_dir(place.join("other")).expect("writable");
    let file = bench.path("empty.rec").display().to_string();
    let mut command = bench.command(&["record", "-o", &file, "--under", "other", "--", "sh", "-c", "cat f; exit 7"]);
    let output = command.current_dir(&place).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(7), "{told}");
    let below = format!("no call was about a file below {}", place.join("other").display());
    assert!(told.contains("warning: the recording is empty") && told.contains(&below), "{told}");
    assert!(told.contains("with --under"), "{told}");
    for words in [&["replay", "empty.rec", "--directory", "."][..], &["convert", "empty.rec"]] {
        let (exit, _, told) = bench.run(words);
        assert!(exit == 2 && told.contains("it has no calls to replay: make it with --under"), "{told}");
    }
}

#[test]
fn attributes_that_are_only_made_or_replaced_and_names_of_pipes_do_not_differ() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import os, socket, sys
def fails(call):
    try: call()
    except OSError: return
    assert False
open("f", "w").close()
file = os.open("f", os.O_RDWR)
for of in ["f", file]:
    for name in ["user.one", "user.two"]:
        fails(lambda: os.setxattr(of, name, b"x", os.XATTR_REPLACE))
        os.setxattr(of, name, b"x", os.XATTR_CREATE)
        fails(lambda: os.setxattr(of, name, b"y", os.XATTR_CREATE))
        os.setxattr(of, name, b"y", os.XATTR_REPLACE)
        os.removexattr(of, name)
if sys.argv[1] == "before": assert os.stat("d/more").st_nlink == 2
else: os.mkdir("d")
if sys.argv[1] == "pipe": os.mkfifo("d/p")
if sys.argv[1] == "socket": socket.socket(socket.AF_UNIX).bind("d/p")
os.stat("d/p")
os.chmod("d/p", 0o600)
fails(lambda: os.mkdir("d/p"))
fails(lambda: os.rmdir("d"))
os.rename("d/p", "q")
os.link("q", "d/r")
os.stat("d/r")
os.unlink("d/r")
fails(lambda: os.stat("d/p"))
os.rename("f", "q")
os.stat("q")
if sys.argv[1] == "before": os.unlink("d/more")
os.rmdir("d")
"#;
    let bench = Bench::new();
    fs::create_dir(bench.path("target")).expect("writable");
    for what in ["pipe", "socket", "before"] {
        let place = bench.path(what);
        fs::create_dir_all(&place).expect("writable");
        if what == "before" {
            fs::create_dir(place.join("d")).expect("writable");
            let script = "mkfifo d/p && ln d/p d/more";
            let made = Command::new("sh").args(["-c", script]).current_dir(&place).status();
            assert!(made.expect("sh starts").success());
        }
        let file = format!("{what}.rec");
        record(&bench, &place, &file, &["python3", "-I", "-c", PROGRAM, what]);
        let report = bench.succeed(&["replay", &file, "--directory", "target", "--pace", "full"]);
        assert!(report.contains("differences    0 calls") && report.contains("devices, pipes and sockets"), "{report}");
    }
    let shown = bench.succeed(&["record", "show", "before.rec"]);
    assert!(shown.contains("1 directories, 0 B, 1 links, 1 devices, pipes and"), "{shown}");
    let report = bench.succeed(&["replay", "before.rec", "--directory", "target", "--pace", "full"]);
    assert!(report.contains("2 parts of the tree that are devices, pipes or sockets"), "{report}");
}

/// A replay of what a program did in a directory, which is compared with the one that was kept.
fn replayed_alike(bench: &Bench, recording: &str, place: &Path) -> String {
    fs::create_dir(bench.path("target")).expect("writable");
    let report = bench.succeed(&["replay", recording, "--directory", "target", "--pace", "full", "--keep"]);
    assert!(report.contains("differences    0 calls"), "{report}");
    let kept = fs::read_dir(bench.path("target")).expect("readable").flatten().next().expect("it was kept").path();
    let files = |of: &Path| {
        let wanted = ["-mindepth", "1", "!", "-type", "p", "!", "-path", "./.fstone-elsewhere*"];
        let shown =
            ["-printf", "%P %y %m %l ", "(", "-type", "f", "-printf", "%s", "-o", "-true", ")", "-printf", "\\n"];
        let mut found = Command::new("find");
        found.arg(".").args(wanted).args(shown);
        let output = found.current_dir(of).output().expect("find");
        let text = String::from_utf8(output.stdout).expect("plain names");
        text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(files(&kept), files(place));
    report
}

#[test]
fn what_is_done_with_an_open_pipe_and_below_its_name_is_about_a_pipe() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import errno, os
os.mkfifo("new")
for pipe in "new", "there":
    for below in [pipe + "/x", pipe + "/"]:
        for call in os.stat, os.unlink, os.mkdir, lambda name: os.close(os.open(name, os.O_RDONLY)):
            try: call(below)
            except OSError as error: assert error.errno in (errno.ENOTDIR, errno.EEXIST), (below, error)
            else: assert False
    through = os.open(pipe, os.O_RDWR)
    file = os.open("from-" + pipe, os.O_RDWR | os.O_CREAT)
    os.write(through, b"x" * 500)
    os.fstat(through)
    assert os.splice(through, file, 400) == 400 and len(os.read(through, 500)) == 100
    assert len(os.pread(file, 500, 0)) == 400
    os.fchmod(through, 0o600)
    os.close(through)
    os.close(file)
"#;
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    assert!(Command::new("mkfifo").arg(place.join("there")).status().expect("it starts").success());
    record(&bench, &place, "x.rec", &["python3", "-I", "-c", PROGRAM]);
    let report = replayed_alike(&bench, "x.rec", &place);
    assert!(report.contains("calls about devices, pipes and sockets"), "{report}");
    assert!(!report.contains("unseen") && !report.contains("lead out"), "{report}");
}

#[test]
fn what_is_changed_through_a_link_from_elsewhere_is_recorded() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import os
for again in range(20): os.stat("app")
os.mkdir("other/link/made")
with open("other/link/made/f", "w") as file: file.write("x" * 700)
os.rename("other/link/made/f", "other/link/made/g")
os.symlink("g", "other/link/made/s")
os.link("app/file", "other/link/more")
os.rename("app/old", "other/link/new")
os.rename("other/file", "other/link/came")
os.unlink("other/link/gone")
os.rmdir("other/link/empty")
os.chmod("other/one", 0o600)
os.truncate("other/one", 5)
os.utime("other/one")
for name in "made/g", "made/s", "more", "new", "came", "file": os.stat("app/" + name)
"#;
    let bench = Bench::new();
    let place = bench.path("place");
    for directory in ["app/empty", "other"] {
        fs::create_dir_all(place.join(directory)).expect("writable");
    }
    for name in ["app/file", "app/old", "app/gone", "other/file"] {
        fs::write(place.join(name), "x".repeat(90)).expect("writable");
    }
    std::os::unix::fs::symlink("../app", place.join("other/link")).expect("writable");
    std::os::unix::fs::symlink("../app/file", place.join("other/one")).expect("writable");
    record_with(&bench, &place, "x.rec", &["--under", "app", "--"], &["python3", "-I", "-c", PROGRAM]);
    replayed_alike(&bench, "x.rec", &place.join("app"));
}

/// Of a pointer to nothing some functions of libc make a signal, others an error.
#[test]
fn what_a_program_had_no_right_or_no_memory_for_fails_again() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import ctypes, errno, os, struct
libc = ctypes.CDLL(None, use_errno=True)
nowhere = ctypes.c_void_p(1)
os.symlink("f", "l")
file, directory = os.open("f", os.O_RDWR), os.open(".", os.O_RDONLY)
for number, call in enumerate([
    lambda to: libc.utimensat(-100, b"f", to, 0),
    lambda to: libc.futimens(file, to),
    lambda to: libc.stat(b"f", to),
    lambda to: libc.fstat(file, to),
    lambda to: libc.statfs(b"f", to),
    lambda to: libc.fstatfs(file, to),
    lambda to: libc.readlink(b"l", to, 10),
    lambda to: libc.getdents64(directory, to, 1000),
    lambda to: libc.read(file, to, 1),
    lambda to: libc.pread(file, to, 1, ctypes.c_long(0)),
    lambda to: libc.readv(file, to, 1),
    lambda to: libc.write(file, to, 5),
    lambda to: libc.pwrite(file, to, 5, ctypes.c_long(3)),
    lambda to: libc.writev(file, to, 1),
]):
    assert call(nowhere) == -1 and ctypes.get_errno() == errno.EFAULT, number
moments = struct.pack("qqqq", 0, 2_000_000_000, 0, 2_000_000_000)
for call in [lambda: libc.utimensat(-100, b"f", moments, 0), lambda: libc.futimens(file, moments)]:
    assert call() == -1 and ctypes.get_errno() == errno.EINVAL
ends = open("ends", "w")
for call in libc.utimes, libc.utime:
    child = os.fork()
    if child == 0:
        for again in range(50): os.stat("f")
        call(b"f", nowhere)
        os._exit(0)
    ends.write("%d " % os.waitpid(child, 0)[1])
ends.close()
if os.geteuid() == 0:
    child = os.fork()
    if child == 0:
        os.setgid(65534)
        os.setuid(65534)
        for call in [
            lambda: os.utime("f"), lambda: os.utime("f", (1, 1)), lambda: os.utime(file), lambda: os.chmod("f", 0),
            lambda: os.fchmod(file, 0), lambda: os.chown("f", 65534, -1), lambda: os.unlink("f"),
            lambda: open("f", "w"), lambda: open("n", "w"), lambda: os.mkdir("d"), lambda: os.rename("f", "g"),
            lambda: os.symlink("f", "t"), lambda: os.truncate("f", 0), lambda: os.setxattr("f", "user.x", b""),
        ]:
            try: call()
            except PermissionError: continue
            os._exit(1)
        assert not os.access("f", os.W_OK)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
os.stat("f")
"#;
    let bench = Bench::new();
    let place = with_one_file(&bench);
    let words = ["python3", "-I", "-c", PROGRAM];
    let alone = Command::new(words[0]).args(&words[1..]).current_dir(&place).status().expect("it starts");
    assert!(alone.success());
    let ends = fs::read_to_string(place.join("ends")).expect("it was written");
    for name in ["l", "ends"] {
        fs::remove_file(place.join(name)).expect("it was made");
    }
    record(&bench, &place, "x.rec", &words);
    assert_eq!(fs::read_to_string(place.join("ends")).expect("it was written"), ends);
    replayed_alike(&bench, "x.rec", &place);
}

/// The kernel goes where a link leads before it goes up, and refuses files with a slash behind their names.
#[test]
fn names_lead_where_the_kernel_goes() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import errno, os
def fails(call, *numbers):
    try: call()
    except OSError as error: assert error.errno in numbers, error
    else: assert False
for directory in ["sub", "sub/dir", "d", "full"]: os.mkdir(directory)
here = os.getcwd()
os.symlink("sub/dir", "l")
os.symlink(here + "/l/../dir", "up")
for name in ["sub/file", "full/f", "f"]:
    with open(name, "w") as file: file.write(name)
for name in ["l/../file", here + "/l/../file", "l/./..//file", "up/../file", "../" + os.path.basename(here) + "/l/../file"]:
    with open(name) as file: assert file.read() == "sub/file", name
os.chdir("d")
with open("../l/../file") as file: assert file.read() == "sub/file"
os.chdir("..")
fails(lambda: os.rmdir("d/."), errno.EINVAL)
fails(lambda: os.rmdir("d/.."), errno.ENOTEMPTY)
fails(lambda: os.rmdir("sub/dir/../"), errno.ENOTEMPTY)
fails(lambda: os.unlink("d/.."), errno.EISDIR)
fails(lambda: os.rename("f", "d/.."), errno.EBUSY, errno.EEXIST, errno.EISDIR, errno.ENOTEMPTY)
fails(lambda: os.rename("d/.", "e"), errno.EBUSY, errno.EINVAL)
os.stat("d/.")
fails(lambda: os.stat("f/"), errno.ENOTDIR)
fails(lambda: open("f/"), errno.ENOTDIR)
fails(lambda: open("none/", "w"), errno.EISDIR)
fails(lambda: os.truncate("f/", 0), errno.ENOTDIR)
fails(lambda: os.unlink("f/"), errno.ENOTDIR)
fails(lambda: os.rename("f/", "g"), errno.ENOTDIR)
fails(lambda: os.rename("f", "g/"), errno.ENOTDIR)
fails(lambda: os.rename("f", "full/f/"), errno.ENOTDIR)
fails(lambda: os.rmdir("l/"), errno.ENOTDIR)
fails(lambda: os.unlink("l/"), errno.ENOTDIR)
fails(lambda: os.symlink("x", "none/"), errno.ENOENT)
fails(lambda: os.link("f", "none/"), errno.ENOENT)
fails(lambda: os.mkdir("l/"), errno.EEXIST)
fails(lambda: os.stat("none"), errno.ENOENT)
os.mkdir("new/")
os.rename("new/", "newer/")
os.rmdir("newer/")
for name in ["f", "d", "l", "sub/dir", "full/f"]: os.lstat(name)
fails(lambda: os.lstat("g"), errno.ENOENT)
"#;
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    record(&bench, &place, "names.rec", &["python3", "-I", "-c", PROGRAM]);
    fs::create_dir(bench.path("target")).expect("writable");
    let words = ["replay", "names.rec", "--directory", "target", "--pace", "full"];
    let report = bench.succeed(&words);
    assert!(report.contains("differences    0 calls"), "{report}");
    assert!(!report.contains("lead out"), "{report}");
    assert!(report.contains("6 calls that failed because `.` and `..` cannot be"), "{report}");
}

#[test]
fn calls_that_failed_by_the_limits_of_the_process_change_nothing() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import ctypes, errno, os, resource, shutil, signal, struct, subprocess, sys
def fails(call, *numbers):
    try: call()
    except OSError as error: assert error.errno in numbers, error
    else: assert False
with open("keep", "wb") as keep: keep.write(b"k" * 3000)
os.symlink("keep", "l")
file = os.open("big", os.O_CREAT | os.O_RDWR)
shutil.copy("/bin/sleep", "program")
child = subprocess.Popen(["./program", "60"])
fails(lambda: os.open("program", os.O_WRONLY | os.O_TRUNC), errno.ETXTBSY)
child.kill()
child.wait()
libc = ctypes.CDLL(None, use_errno=True)
def open_without_links(name, flags):
    how = struct.pack("QQQ", flags, 0o600 if flags & os.O_CREAT else 0, 4)
    if libc.syscall(437, -100, name, how, len(how)) < 0: raise OSError(ctypes.get_errno(), "openat2")
fails(lambda: open_without_links(b"l", os.O_WRONLY | os.O_TRUNC), errno.ELOOP)
before = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (file + 1, before[1]))
fails(lambda: os.open("keep", os.O_WRONLY | os.O_TRUNC), errno.EMFILE)
fails(lambda: os.open("new", os.O_WRONLY | os.O_CREAT), errno.EMFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, before)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, -1))
assert [os.write(file, b"b" * 4096) for again in range(2)] == [4096, 904]
fails(lambda: os.write(file, b"b"), errno.EFBIG)
fails(lambda: os.ftruncate(file, 9000), errno.EFBIG)
fails(lambda: os.truncate("keep", 9000), errno.EFBIG)
"#;
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    record(&bench, &place, "limits.rec", &["python3", "-I", "-c", PROGRAM]);
    replayed_alike(&bench, "limits.rec", &place);
}

#[test]
fn changes_by_names_in_proc_are_replayed() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import os
os.mkdir("d")
d = os.open("d", os.O_RDONLY | os.O_DIRECTORY)
for name in ["f", "g", "t"]:
    with open(name, "w") as file: file.write(name * 3000)
os.mkdir("/proc/self/fd/%d/made" % d)
os.rename("f", "/dev/fd/%d/moved" % d)
os.rename("/proc/%d/cwd/g" % os.getpid(), "/proc/thread-self/fd/%d/made/g" % d)
os.symlink("moved", "/proc/self/cwd/d/link")
os.unlink("/proc/self/fd/%d/link" % d)
with open("/proc/self/fd/%d/new" % d, "w") as file: file.write("new")
t = os.open("t", os.O_RDONLY)
os.truncate("/proc/self/fd/%d" % t, 1000)
try: os.setxattr("/proc/self/fd/%d" % t, "user.x", b"1")
except OSError: pass
"#;
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    record(&bench, &place, "proc.rec", &["python3", "-I", "-c", PROGRAM]);
    let report = replayed_alike(&bench, "proc.rec", &place);
    assert!(report.contains("\n  setxattr "), "{report}");
}

/// Whatever umask the replay has, and however the calls were recorded.
#[test]
fn files_have_the_modes_that_the_program_made_them_with() {
    use std::os::unix::fs::PermissionsExt;
    const SCRIPT: &str =
        "umask 077; echo > a; mkdir d; umask 0; echo > b; mkdir e; (umask 027; echo > c); echo > f; touch g";
    const PROGRAM: &str = r#"
import os, threading
def make(number):
    os.close(os.open(f"p{number}", os.O_CREAT | os.O_WRONLY, 0o666))
    os.mkdir(f"q{number}", 0o777)
for number, umask in enumerate([0o022, 0o077, 0, 0o027]):
    for again in range(20): os.stat(".")
    os.umask(umask)
    thread = threading.Thread(target=make, args=[number])
    thread.start()
    thread.join()
    make(10 + number)
    if os.fork() == 0:
        make(20 + number)
        os.umask(0o070)
        make(30 + number)
        os._exit(0)
    os.wait()
    make(40 + number)
"#;
    let bench = Bench::new();
    for (name, words) in [("sh", ["sh", "-c", SCRIPT]), ("python3", ["python3", "-c", PROGRAM])] {
        if !tool(name) {
            eprintln!("skipped: {name} is not installed");
            continue;
        }
        let (place, target) = (bench.path(name), bench.path(&format!("{name}-target")));
        fs::create_dir_all(&place).expect("writable");
        fs::create_dir(&target).expect("writable");
        let file = format!("{name}.rec");
        record(&bench, &place, &file, &words);
        let directory = target.display().to_string();
        let words = bench.typed(&["replay", &file, "--keep", "--directory", &directory]).join(" ");
        let done = bench.shell(&format!("umask 022; {words}")).output().expect("it starts");
        assert!(done.status.success());
        let kept = fs::read_dir(&target).expect("readable").next().expect("it was kept").expect("readable").path();
        let modes = |of: &Path| {
            let mode = |entry: fs::DirEntry| {
                (entry.file_name(), entry.metadata().expect("it is there").permissions().mode() & 0o777)
            };
            let all: BTreeMap<_, _> = fs::read_dir(of).expect("readable").flatten().map(mode).collect();
            all.into_iter().map(|(name, mode)| format!("{} {mode:o}", name.display())).collect::<Vec<_>>()
        };
        assert!(modes(&place).len() > 6);
        assert_eq!(modes(&kept), modes(&place), "{name}");
    }
}

#[test]
fn locks_that_others_have_and_those_from_the_end_of_a_file_are_replayed() {
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    const PROGRAM: &str = r#"
import fcntl, os
EXCLUSIVE = fcntl.LOCK_EX | fcntl.LOCK_NB
file = open("f", "wb")
file.write(b"x" * 100)
file.flush()
fcntl.lockf(file, EXCLUSIVE, 10, -10, os.SEEK_END)
fcntl.lockf(file, EXCLUSIVE, 10, -60, os.SEEK_CUR)
fcntl.flock(file, EXCLUSIVE)
if os.fork() == 0:
    other = open("f", "r+b")
    refused = 0
    for round in range(20):
        for lock in [lambda: fcntl.lockf(other, EXCLUSIVE, 1, 95), lambda: fcntl.flock(other, EXCLUSIVE)]:
            try: lock()
            except BlockingIOError: refused += 1
    assert refused == 40
    os._exit(0)
assert os.wait()[1] == 0
"#;
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    record(&bench, &place, "locks.rec", &["python3", "-I", "-c", PROGRAM]);
    fs::create_dir(bench.path("target")).expect("writable");
    let report = bench.succeed(&["replay", "locks.rec", "--directory", "target", "--pace", "full"]);
    assert!(report.contains("differences    0 calls"), "{report}");
}

/// None is wider than a terminal, but for words that are.
#[test]
fn lines_fit_into_a_terminal() {
    let bench = Bench::new();
    let place = bench.path("place");
    prepare(&place);
    let told =
        record(&bench, &place, "a.rec", &["sh", "-c", "cp -r tree copy; cat copy/*/*; rm -r copy; stat none; exit 0"]);
    fs::create_dir(bench.path("target")).expect("writable");
    let replayed = bench.succeed(&["replay", "a.rec", "--directory", "target"]);
    for text in [told, replayed, bench.succeed(&["record", "show", "a.rec"])] {
        let is_wide = |line: &&str| line.chars().count() > 80;
        assert_eq!(text.lines().find(is_wide), None, "{text}");
    }
}

#[test]
fn a_study_says_what_it_cannot_do_with_a_recording() {
    let bench = Bench::new();
    let place = bench.path("place");
    prepare(&place);
    record(&bench, &place, "a.rec", &["cat", "tree/needles"]);
    record_with(&bench, &place, "empty.rec", &["--under", "tree", "--"], &["true"]);
    bench.write("text.rec", "no recording");
    let study = "title = \"x\"\ndevice = { loop = { size = \"64 MiB\" } }\nfactor.filesystem.ext4 = { type = \"ext4\" }\n[[step]]\n";
    for (step, said) in [
        ("load = { replay = \"text.rec\" }", "is no recording"),
        ("load = { replay = \"none.rec\" }", "cannot be read"),
        ("load = { replay = \"a.rec\", pace = \"slow\" }", "slow"),
        ("load = { sysbench = \"--file-test-mode=rndrw run\", pace = \"full\" }", "only a replay has a pace"),
        ("load = { sysbench = \"--file-test-mode=rndrw run\", cold = true }", "only a replay has a pace"),
        ("load = { replay = \"a.rec\", speed = 0.0001 }", "expected 0.001 to 1000"),
        ("load = { replay = \"a.rec\", pace = \"full\", speed = 2 }", "no waits that a speed could change"),
        ("load = { replay = \"empty.rec\" }", "it has no calls"),
        ("load = { replay = \"a.rec\", ranks = 2 }", "replays a recording"),
        (
            "load = { replay = \"a.rec\" }\nshow = [\"fsync latency p99\", \"mkdir latency p99\"]",
            "unknown metric `mkdir",
        ),
    ] {
        bench.write("study.toml", &format!("{study}{step}\n"));
        let (exit, _, told) = bench.run(&["run", "./study.toml", "--dry-run"]);
        assert!(exit == 2 && told.contains(said), "{step}: {exit}: {told}");
    }
}

/// The recording is in the directory that it is of, and is no part of it.
#[test]
fn calls_have_the_names_that_their_files_have_then() {
    const PROGRAM: &str = r#"
import ctypes, fcntl, os
os.mkdir("real"); os.symlink("real", "link"); os.mkdir("real/d"); os.chdir("real/d")
os.rename("../../link/d", "../../link/e"); open("f", "w").write("x")
os.chdir("../..")
os.mkdir("a"); os.chdir("a"); os.rename("../a", "../b")
open("f", "w").write("x" * 9000)
libc = ctypes.CDLL(None)
unnamed = os.open(".", os.O_TMPFILE | os.O_RDWR)
os.write(unnamed, b"x" * 500)
assert libc.linkat(-100, b"/proc/self/fd/%d" % unnamed, -100, b"made", 0x400) == 0
f, g = os.open("f", os.O_RDWR), os.open("g", os.O_RDWR | os.O_CREAT)
os.copy_file_range(f, g, 4000, 5000, 1 << 20)
os.pwritev(g, [b"y" * 100], 0, os.RWF_DSYNC)
fcntl.fcntl(f, fcntl.F_SETFL, os.O_APPEND)
os.write(f, b"y")
open("/dev/fd/%d" % f).read(10)
os.statvfs("f"), os.fstatvfs(f), os.stat("made")
for name in os.listdir(".."):
    os.stat("../" + name)
    if name.endswith(".rec"):
        open("../" + name, "rb").read()
"#;
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    let mut command = bench.command(&["record", "--", "python3", "-c", PROGRAM]);
    let output = command.current_dir(&place).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let calls = bench.succeed(&["record", "show", "--calls", "place/python3.rec"]);
    let plain = calls.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in
        ["offset 5000 other offset 1048576 = 4000", "flags 0o2 = 100", "statfs \"b/f\"", "\"b/made\"", "\"real/e/f\""]
    {
        assert!(plain.contains(said), "{said}: {calls}");
    }
    assert!(!calls.contains("python3.rec"), "{calls}");
    fs::create_dir(bench.path("target")).expect("writable");
    let report = bench.succeed(&["replay", "place/python3.rec", "--directory", "target", "--pace", "full", "--keep"]);
    assert!(report.contains("differences    0 calls"), "{report}");
    let kept = fs::read_dir(bench.path("target")).expect("readable").flatten().next().expect("it was kept").path();
    for name in ["f", "g", "made"] {
        let [here, there] =
            [&place, &kept].map(|top| fs::metadata(top.join("b").join(name)).expect("it is there").len());
        assert_eq!(here, there, "{name}");
    }
}

/// A thread has descriptors of its own from some moment on, while others use theirs.
#[test]
fn calls_are_about_a_threads_own_descriptors() {
    const PROGRAM: &str = r#"
import ctypes, os, threading
libc = ctypes.CDLL(None)
def to(fd, bytes, times):
    for _ in range(times): os.write(fd, b"x" * bytes)
for unshare in (lambda: libc.unshare(0x400)), (lambda: libc.syscall(436, 1000, 2000, 2)):
    apart, written = threading.Event(), threading.Event()
    first = os.open("first", os.O_RDWR | os.O_CREAT)
    def work():
        assert unshare() == 0
        os.close(first)
        other = os.open("other", os.O_RDWR | os.O_CREAT)
        assert first == other
        apart.set()
        written.wait()
        to(other, 70, 5)
    thread = threading.Thread(target=work)
    thread.start()
    apart.wait()
    to(first, 900, 5)
    written.set()
    thread.join()
    to(first, 900, 1)
    os.close(first)
"#;
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    if !tool("python3") {
        return eprintln!("skipped: python3 is not installed");
    }
    record(&bench, &place, "x.rec", &["python3", "-c", PROGRAM]);
    fs::create_dir(bench.path("target")).expect("writable");
    let report = bench.succeed(&["replay", "x.rec", "--directory", "target", "--pace", "full", "--keep"]);
    assert!(report.contains("differences    0 calls"), "{report}");
    let kept = fs::read_dir(bench.path("target")).expect("readable").flatten().next().expect("it was kept").path();
    for name in ["first", "other"] {
        let [here, there] = [&place, &kept].map(|top| fs::metadata(top.join(name)).expect("it is there").len());
        assert_eq!(here, there, "{name}");
    }
}

#[test]
fn what_the_caller_ignores_is_ignored_by_a_recorded_program() {
    let bench = Bench::new();
    let typed = bench.typed(&["record", "-o", "x.rec", "--", "grep", "SigIgn", "/proc/self/status"]).join(" ");
    for ignored in ["", "trap '' PIPE; ", "trap '' INT QUIT; ", "trap '' HUP INT PIPE QUIT TERM; "] {
        let said = |words: &str| {
            let output = bench.shell(&format!("{ignored}{words}")).output().expect("it starts");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let alone = said("grep SigIgn /proc/self/status");
        assert!(alone.starts_with("SigIgn:"), "{alone}");
        assert_eq!(said(&typed), alone, "{ignored}");
        fs::remove_file(bench.path("x.rec")).expect("it was made");
    }
}

#[test]
fn what_crosses_the_border_of_the_recorded_directories_is_replayed() {
    const PROGRAM: &str = r#"
import ctypes, os, socket
os.rename("other/file", "app/came")
os.rename("other/tree", "app/tree")
assert len(open("app/tree/deep/f").read()) == 700
os.rename("app/old", "other/gone")
os.rename("app/full", "other/full")
open("app/old", "x").write("new")
os.mkdir("app/full")
os.rename("other/gone", "app/old")
for name in "one", "two": os.link("other/linked", "app/" + name)
assert len(open("app/two").read()) == 3000
os.unlink("app/two")
passing, passed = socket.socketpair()
socket.send_fds(passing, [b"x"], [os.open("other/passed", os.O_RDONLY), os.open("app/inside", os.O_RDWR)])
_, [passed, inside], _, _ = socket.recv_fds(passed, 1, 2)
unnamed = os.open("other", os.O_TMPFILE | os.O_RDWR)
os.write(unnamed, b"x" * 800)
libc = ctypes.CDLL(None)
for fd, name in (passed, b"app/passed"), (unnamed, b"app/unnamed"):
    assert libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, name, 0x400) == 0
    assert len(open(name).read()) > 500
assert len(os.read(inside, 5000)) == 4000 and os.write(inside, b"x" * 100) == 100
for name in "swapped", "back": assert libc.renameat2(-100, b"other/exchanged", -100, b"app/exchanged", 2) == 0
assert libc.renameat2(-100, b"app/exchanged", -100, b"other/exchanged", 2) == 0
assert len(open("app/exchanged").read()) == 6000
assert os.copy_file_range(passed, os.open("app/copied", os.O_CREAT | os.O_WRONLY), 900) == 900
assert len(open("app/copied").read()) == 900
if os.geteuid() == 0 and os.fork() == 0:
    os.chroot("app"); os.chdir("/tree")
    os.write(os.open("/../made", os.O_CREAT | os.O_WRONLY), b"x" * 30)
    os.stat("deep/../../made")
    os._exit(0)
"#;
    let bench = Bench::new();
    let place = bench.path("place");
    // A replay that was kept has such a name.
    const TAKEN: &str = ".fstone-elsewhere/0";
    for directory in ["app/full", "other/tree/deep", "app/.fstone-elsewhere"] {
        fs::create_dir_all(place.join(directory)).expect("writable");
    }
    let others = [("file", 5000), ("tree/deep/f", 700), ("linked", 3000), ("passed", 2000), ("exchanged", 6000)];
    let others = others.map(|(name, bytes)| (format!("other/{name}"), bytes));
    let own = [("old", 9000), ("full/f", 10), (TAKEN, 33), ("inside", 4000), ("exchanged", 50)];
    for (name, bytes) in own.map(|(name, bytes)| (format!("app/{name}"), bytes)).into_iter().chain(others) {
        fs::write(place.join(name), vec![b'x'; bytes]).expect("writable");
    }
    let file = bench.path("x.rec").display().to_string();
    let mut command = bench.command(&["record", "-o", &file, "--under", "app", "--", "python3", "-c", PROGRAM]);
    let output = command.current_dir(&place).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::create_dir(bench.path("target")).expect("writable");
    let report = bench.succeed(&["replay", "x.rec", "--directory", "target", "--pace", "full", "--keep"]);
    assert!(report.contains("differences    0 calls"), "{report}");
    let kept = fs::read_dir(bench.path("target")).expect("readable").flatten().next().expect("it was kept").path();
    let made = if is_root() { &["made"][..] } else { &[] };
    let came = &["came", "tree/deep/f", "one", "passed", "unnamed", "copied", "exchanged", "inside"][..];
    for name in [came, &["old", TAKEN], made].concat() {
        let [here, there] =
            [&place.join("app"), &kept].map(|top| fs::metadata(top.join(name)).expect("it is there").len());
        assert_eq!(here, there, "{name}");
    }
    assert_eq!(fs::read_dir(kept.join("full")).expect("readable").count(), 0);
}

#[test]
fn a_replay_writes_data_that_compresses_as_well() {
    const PROGRAM: &str =
        "import os\nfor name, data in ('a', b'x' * 65536), ('b', os.urandom(65536)):\n open(name, 'wb').write(data)\n";
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    let file = bench.path("x.rec").display().to_string();
    let mut command = bench.command(&["record", "--data-entropy", "-o", &file, "--", "python3", "-c", PROGRAM]);
    let output = command.current_dir(&place).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown = bench.succeed(&["record", "show", "x.rec"]);
    assert!(shown.contains("compresses to 50 %") || shown.contains("compresses to 51 %"), "{shown}");
    fs::create_dir(bench.path("target")).expect("writable");
    bench.succeed(&["replay", "x.rec", "--directory", "target", "--pace", "full", "--keep"]);
    let kept = fs::read_dir(bench.path("target")).expect("readable").flatten().next().expect("it was kept").path();
    let zeros = |name| fs::read(kept.join(name)).expect("it is there").iter().filter(|byte| **byte == 0).count();
    assert!(zeros("a") > 60_000 && zeros("b") < 1_000, "{} {}", zeros("a"), zeros("b"));
}

/// Each child is killed while it makes children of its own, and has one that is no child of the recorded program.
#[test]
fn what_killed_processes_leave_does_not_keep_a_recording_from_its_end() {
    const PROGRAM: &str = r#"
import os, random, signal, time
for number in range(60):
    child = os.fork()
    if child == 0:
        while True:
            if os.fork() == 0:
                os._exit(0)
    time.sleep(random.uniform(0, 0.004))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
open("done", "w")
"#;
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir_all(&place).expect("writable");
    let file = bench.path("k.rec").display().to_string();
    let command = bench.command(&["record", "-o", &file, "--", "python3", "-c", PROGRAM]);
    // This process has a child when it begins to record.
    let mut shell = Command::new("sh");
    shell.args(["-c", "sleep 60 & echo $! > ../pid; exec \"$@\"", "sh"]).arg(command.get_program());
    let mut recorder = shell.args(command.get_args()).current_dir(&place).spawn().expect("it starts");
    wait_until("the recording ends", || recorder.try_wait().expect("it is there").is_some());
    let pid = fs::read_to_string(bench.path("pid")).expect("readable");
    assert!(Command::new("kill").arg(pid.trim()).status().expect("kill").success());
    assert!(place.join("done").exists());
    assert!(!bench.succeed(&["record", "show", "k.rec"]).contains("was not finished"));
}

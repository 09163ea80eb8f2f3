use super::*;
use crate::process::rights;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn private() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir().expect("possible in a test")
}

fn shell(script: &str, directory: &Path) -> (Launch, File) {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).expect("possible in a test");
    let launch = Launch {
        program: "/bin/sh".into(),
        argv: ["sh", "-c", script].map(OsString::from).to_vec(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("GREETING".into(), "hello".into())],
        directory: directory.to_owned(),
        descriptors: vec![(File::open("/dev/null").expect("possible in a test").into(), 0), (write, 1)],
        addresses: Addresses::Random,
        confined: Some(Confined::default()),
        mounts_apart: false,
        ipc_apart: false,
    };
    (launch, File::from(read))
}

/// What root lends to guests' users is in directories that were made for that. Nothing else changes its group or its mode, and
/// nothing is removed.
#[test]
fn a_directory_that_is_not_private_is_refused_and_stays_as_it_is() {
    let place = private();
    let directory = place.path().join("shared");
    std::fs::create_dir_all(directory.join("out/deep")).expect("possible in a test");
    std::fs::write(directory.join("file"), "x").expect("possible in a test");
    let facts = || {
        ["", "out", "file"].map(|name| {
            let facts = std::fs::metadata(directory.join(name)).expect("possible in a test");
            (facts.mode(), facts.uid(), facts.gid())
        })
    };
    for mode in [0o755, 0o1777, 0o770, 0o701] {
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(mode)).expect("possible in a test");
        let before = facts();
        let (mut launch, _output) = shell("true", &directory);
        launch.confined = Some(Confined { outputs: Some("out"), ..Confined::default() });
        let error = launch.spawn().unwrap_err().to_string();
        assert!(error.contains("mode 0700"), "{error}");
        assert!(facts() == before && directory.join("out/deep").exists(), "{mode:o}");
    }
    let (launch, _output) = shell("true", &place.path().join("shared/file"));
    assert!(launch.spawn().is_err());
}

#[test]
fn status_signal_and_environment() {
    let own = private();
    let (launch, mut output) = shell("echo $GREETING; pwd; exit 7", own.path());
    let mut process = launch.spawn().expect("possible in a test");
    let mut text = String::new();
    output.read_to_string(&mut text).expect("possible in a test");
    assert_eq!(text, format!("hello\n{}\n", own.path().display()));
    assert_eq!(process.wait(Duration::from_secs(10)), Some(ProcessEnd::Exited(7)));
    assert_eq!(process.wait(Duration::ZERO), Some(ProcessEnd::Exited(7)));
    let (launch, _output) = shell("sleep 1000", own.path());
    let mut process = launch.spawn().expect("possible in a test");
    assert_eq!(process.wait(Duration::from_millis(20)), None);
    process.kill();
    assert_eq!(process.wait(Duration::from_secs(10)), Some(ProcessEnd::Signalled(9)));
    let (launch, _output) = shell("kill -ABRT $$; echo shielded", own.path());
    assert_eq!(
        launch.spawn().expect("possible in a test").wait(Duration::from_secs(10)),
        Some(ProcessEnd::Signalled(6))
    );
}

#[test]
fn processes_of_two_namespaces_have_different_numbers() {
    let numbers = [0; 3].map(|_| {
        let own = private();
        let (launch, mut output) = shell("echo $$", own.path());
        let process = launch.spawn().expect("possible in a test");
        let mut text = String::new();
        output.read_to_string(&mut text).expect("possible in a test");
        (process.confinement(), text.trim().parse::<u32>().expect("possible in a test"))
    });
    let may_choose = std::fs::OpenOptions::new().write(true).open("/proc/sys/kernel/ns_last_pid").is_ok();
    if may_choose && numbers.iter().all(|(confinement, _)| *confinement == Confinement::Namespace) {
        assert!(numbers.iter().all(|(_, number)| *number > 300), "{numbers:?}");
        assert!(numbers[0].1 != numbers[1].1 || numbers[1].1 != numbers[2].1, "{numbers:?}");
    }
}

/// What a killed program leaves in shared memory of System V goes with its namespace.
#[test]
fn objects_of_system_v_are_apart_where_that_is_wanted() {
    let own = private();
    let here = std::fs::read_link("/proc/self/ns/ipc").expect("possible in a test");
    let is_root = rustix::process::geteuid().is_root();
    for (mounts_apart, ipc_apart) in [(is_root, false), (is_root, true), (false, true)] {
        let (mut launch, mut output) = shell("readlink /proc/self/ns/ipc", own.path());
        (launch.confined, launch.mounts_apart, launch.ipc_apart) = (None, mounts_apart, ipc_apart);
        let mut process = launch.spawn().expect("possible in a test");
        let mut text = String::new();
        output.read_to_string(&mut text).expect("possible in a test");
        assert_eq!(process.wait(Duration::from_secs(10)), Some(ProcessEnd::Exited(0)));
        assert_eq!(text.trim() != here.to_string_lossy(), ipc_apart, "{text}");
    }
}

/// Also as root, who otherwise may write anywhere.
#[test]
fn it_writes_where_it_may_and_nowhere_else() {
    let (own, other) = (private(), tempfile::tempdir().expect("possible in a test"));
    let (own_path, other_path) = (own.path().display(), other.path().display());
    std::fs::write(other.path().join("file"), "before\n").expect("possible in a test");
    let script = format!(
        "echo x >{own_path}/out/made && echo x >{own_path}/memory/made && echo own; cat {other_path}/file; \
         echo x >{own_path}/made; echo x >{other_path}/file; rm {other_path}/file; mv {other_path}/file {own_path}/; \
         chmod 4777 {own_path} {other_path} {other_path}/file; touch -d @0 {other_path}/file /dev/null; \
         ls /dev/shm; grep Cap[EPA] /proc/self/status; id -u"
    );
    let (mut launch, mut output) = shell(&script, own.path());
    launch.confined = Some(Confined {
        readable: vec![other.path().join("file")],
        outputs: Some("out"),
        memory: Some(("memory", 1 << 20)),
        ..Confined::default()
    });
    let mut process = launch.spawn().expect("possible in a test");
    let mut text = String::new();
    output.read_to_string(&mut text).expect("possible in a test");
    process.wait(Duration::from_secs(10));
    if process.confinement() != Confinement::Apart && rights::landlock_version() == 0 {
        eprintln!("skipped: this host has neither namespaces nor Landlock");
        return;
    }
    assert!(text.starts_with("own\nbefore\nCap"), "{text}");
    let file = std::fs::metadata(other.path().join("file")).expect("possible in a test");
    assert_eq!(std::fs::read_to_string(other.path().join("file")).expect("possible in a test"), "before\n");
    assert!(file.mode() & 0o7777 == 0o644 && file.mtime() > 0, "{file:?}");
    assert_eq!(std::fs::read_dir(other.path()).expect("possible in a test").count(), 1);
    let mut names: Vec<_> = std::fs::read_dir(own.path())
        .expect("possible in a test")
        .map(|entry| entry.expect("possible in a test").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["memory", "out"]);
    let kept: Vec<u64> = text
        .lines()
        .filter_map(|line| u64::from_str_radix(line.strip_prefix("Cap")?.rsplit_once('\t')?.1, 16).ok())
        .collect();
    assert_eq!(kept, [0; 3], "{text}");
    let user = text.lines().last().expect("possible in a test");
    assert_ne!(user, "0", "whoever starts it");
}

/// What a guest needs it can read, wherever that is, also if only root could read the original.
#[test]
fn what_it_needs_it_can_read() {
    let (own, other) = (private(), private());
    std::fs::create_dir(own.path().join("below")).expect("possible in a test");
    let files = [own.path().join("below/file"), other.path().join("file")];
    for file in &files {
        std::fs::write(file, "read\n").expect("possible in a test");
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).expect("possible in a test");
    }
    let script = format!("cat {} {}", files[0].display(), files[1].display());
    let (mut launch, mut output) = shell(&script, own.path());
    launch.confined = Some(Confined { needed: files.to_vec(), ..Confined::default() });
    let mut process = launch.spawn().expect("possible in a test");
    let mut text = String::new();
    output.read_to_string(&mut text).expect("possible in a test");
    process.wait(Duration::from_secs(10));
    assert_eq!(text, "read\nread\n");
}

/// Grandchildren hold the output pipe: it ends only when they are gone too.
#[test]
fn descendants_die_too() {
    let own = private();
    let (launch, mut output) = shell("sleep 1000 & sleep 1000 & echo up; wait", own.path());
    let process = launch.spawn().expect("possible in a test");
    let mut up = [0u8; 3];
    output.read_exact(&mut up).expect("possible in a test");
    drop(process);
    let mut rest = Vec::new();
    assert_eq!(output.read_to_end(&mut rest).expect("possible in a test"), 0);
}

#[test]
fn a_missing_program_is_named() {
    let own = private();
    let (mut launch, _output) = shell("", own.path());
    launch.program = "/nowhere/linux.uml".into();
    let error = launch.spawn().unwrap_err();
    assert!(error.to_string().starts_with("cannot execute /nowhere/linux.uml: No such file"), "{error}");
}

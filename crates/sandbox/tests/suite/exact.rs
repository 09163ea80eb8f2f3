//! Guests whose time is simulated: the same to the last bit, whatever the machine does meanwhile. They need a kernel that
//! `fstone kernel build` made, in the store that `FSTONE_TEST_KERNELS` names.

use crate::support::{agent, private_directory, skip};
use fstone_drive::Model;
use fstone_sandbox::exact::{ExactEnd, ExactReport, ExactSpec};
use fstone_sandbox::guest::Ending;
use fstone_sandbox::kernel::Store;
use std::fs::File;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn kernel() -> Option<PathBuf> {
    let found = std::env::var("FSTONE_TEST_KERNELS").map(|directory| Store::new(directory).find("exact:6.1"));
    match found {
        Ok(Ok(kernel)) => return Some(kernel.binary),
        Ok(Err(error)) => skip(&error.to_string()),
        Err(_) => skip("FSTONE_TEST_KERNELS names no store of kernels"),
    }
    None
}

struct Guest {
    _place: tempfile::TempDir,
    spec: ExactSpec,
}

impl Guest {
    fn new(name: &str, model: Model) -> Option<Self> {
        let kernel = kernel()?;
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
        let image = directory.join("image");
        File::create(&image).unwrap().set_len(4 << 30).unwrap();
        let spec = ExactSpec::new(kernel, agent(), image, directory, model);
        Some(Self { _place: place, spec })
    }

    fn run(&self, job: &str, body: &str) -> ExactReport {
        self.spec.run(job, body.as_bytes(), &AtomicBool::new(false)).unwrap()
    }
}

fn disk() -> Model {
    Model::find("hdd-7200-2008").unwrap()
}

fn result(report: &ExactReport) -> String {
    match &report.end {
        ExactEnd::Done(body) => String::from_utf8_lossy(body).into_owned(),
        other => panic!("{other:?}, {:?}", report.console),
    }
}

const BURST: Duration = Duration::from_millis(2);

/// Keeps every processor busy until it is dropped, in bursts: guests lose and get the processor at many more moments than beside
/// one that never sleeps, for half of its CPU time.
struct Busy {
    stop: std::sync::Arc<AtomicBool>,
}

impl Busy {
    fn new() -> Self {
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            let stop = stop.clone();
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let since = Instant::now();
                    while since.elapsed() < BURST {}
                    std::thread::sleep(BURST);
                }
            });
        }
        Self { stop }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[test]
fn every_filesystem_is_the_same_to_the_last_bit_on_a_quiet_and_a_busy_machine() {
    // The gate's two repeats of each seed; more by hand.
    let repeats = std::env::var("FSTONE_TEST_REPEATS").map_or(2, |count| count.parse::<u32>().unwrap());
    let mut differ = 0;
    for kind in ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "nilfs2", "reiserfs"] {
        if !["/usr/sbin", "/sbin"].iter().any(|place| PathBuf::from(place).join(format!("mkfs.{kind}")).exists()) {
            skip(&format!("mkfs.{kind} is not installed"));
            continue;
        }
        let run = &|name: &str, seed: u64| {
            let mut guest = Guest::new(name, disk())?;
            guest.spec.seed = seed;
            let report = guest.run("timed-filesystem", kind);
            Some((result(&report), report.trace.clone(), report.virtual_time, report.counters))
        };
        let Some(first) = run("a", 1) else { return };
        let other = run("a", 2);
        for repeat in 1..repeats {
            let busy = (repeat % 2 == 1).then(Busy::new);
            // Side by side: each is a load for the other.
            let again = std::thread::scope(|scope| {
                let guests = [("a-directory-with-a-longer-name", 1), ("b", 2)];
                guests.map(|(name, seed)| scope.spawn(move || run(name, seed))).map(|guest| guest.join().unwrap())
            });
            drop(busy);
            assert_eq!(again[0].as_ref(), Some(&first), "{kind}, repeat {repeat}");
            assert_eq!(again[1], other, "{kind}, repeat {repeat}");
        }
        differ += u32::from(other.as_ref() != Some(&first));
    }
    // Not every filesystem draws lots for where things go, but some do.
    assert!(differ > 0, "the seed decides nothing");
}

/// What a guest's kernel draws follows from the seed, and from no path of the host's.
#[test]
fn chance_follows_from_the_seed_alone() {
    let drawn = |directory: &str, program: &str, seed: u64| {
        let mut guest = Guest::new(directory, disk())?;
        let copy = guest.spec.directory.join(program);
        std::fs::copy(agent(), &copy).unwrap();
        (guest.spec.agent, guest.spec.seed) = (copy, seed);
        Some(result(&guest.run("read-file", "/proc/sys/kernel/random/uuid")))
    };
    let Some(first) = drawn("a", "agent-of-one-name", 1) else { return };
    assert_eq!(drawn("another-directory", "another name", 1).unwrap(), first);
    assert_ne!(drawn("a", "agent-of-one-name", 2).unwrap(), first);
}

#[test]
fn guests_side_by_side_do_not_disturb_each_other() {
    let run = || Guest::new("guest", disk()).map(|guest| guest.run("timed-filesystem", "ext4").trace);
    let Some(alone) = run() else { return };
    let together: Vec<_> = std::thread::scope(|scope| {
        let guests: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        guests.into_iter().map(|guest| guest.join().unwrap()).collect()
    });
    assert!(together.iter().all(|trace| trace.as_ref() == Some(&alone)), "{together:?}, {alone}");
}

/// As the seccomp profiles of some containers do.
#[test]
fn a_container_that_refuses_fixed_addresses_is_named() {
    let place = private_directory();
    let image = place.path().join("image");
    File::create(&image).unwrap().set_len(4 << 20).unwrap();
    let spec = ExactSpec::new("/bin/true", agent(), image, place.path(), disk());
    // The filter is this thread's, and that of what it starts.
    let refused = std::thread::spawn(move || {
        refuse_personality();
        spec.run("nothing", b"", &AtomicBool::new(false)).unwrap_err().to_string()
    });
    let words = refused.join().unwrap();
    assert!(words.contains("personality(ADDR_NO_RANDOMIZE)") && words.contains("seccomp profile"), "{words}");
}

#[expect(unsafe_code, reason = "prctl(2) has no safe wrapper for filters")]
fn refuse_personality() {
    use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SYS_personality, sock_filter, sock_fprog};
    let step = |code: u32, jt: u8, jf: u8, k: u32| sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0),
        step(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_personality as u32),
        step(BPF_RET | BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(BPF_RET | BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its filter are valid for both calls, which copy them; only this thread is bound by it.
    let bound = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    assert!(bound, "{}", std::io::Error::last_os_error());
}

/// The latency and what a system call is charged with: to the nanosecond. Beyond that, reading the clock twice takes a
/// system call and 256 ns.
#[test]
fn a_read_takes_its_latency_and_the_charge() {
    let Some(mut guest) = Guest::new("guest", Model::find("constant").unwrap()) else { return };
    let time =
        |guest: &Guest, count: u64| result(&guest.run("timed-reads", &count.to_string())).parse::<u64>().unwrap();
    let per_read = |guest: &Guest| (time(guest, 1_100) - time(guest, 100)) / 1_000;
    for charge in [0, 2_000, 5_000] {
        guest.spec.charge = Duration::from_nanos(charge);
        assert_eq!(per_read(&guest).saturating_sub(1_000_000 + charge) / 512, 0, "charge {charge}");
        assert!(per_read(&guest) >= 1_000_000 + charge, "charge {charge}");
    }
}

/// A disk cannot forget what is on it, and does not say that it could: zeros take as long as any data, the last of them from the
/// cache.
#[test]
fn zeros_are_written_by_a_disk_and_forgotten_by_flash() {
    let took = |model: &str| {
        let guest = Guest::new("guest", Model::find(model).unwrap())?;
        let answer = result(&guest.run("timed-zeros", &(256 << 20).to_string()));
        let (took, discards) = answer.split_once(' ').unwrap();
        Some((took.parse::<f64>().unwrap() / 1e9, discards != "0"))
    };
    let (Some(disk), Some(flash)) = (took("hdd-7200-2008"), took("nvme-ssd")) else { return };
    let expected = 256.0 / 110.51;
    assert!((disk.0 / expected - 1.0).abs() < 0.02, "{disk:?}, {expected}");
    assert!(flash.0 < 0.001, "{flash:?}");
    assert_eq!((disk.1, flash.1), (false, true));
}

/// Half a per cent more latency is found in one trial.
#[test]
fn a_slightly_slower_model_is_slower() {
    let text = include_str!("../../../../models/constant.toml");
    let model = |latency: &str| Model::parse("mine", &text.replace("\"1 ms\"", latency)).unwrap();
    let time = |model: Model| {
        Guest::new("guest", model).map(|guest| result(&guest.run("timed-reads", "200")).parse::<f64>().unwrap())
    };
    let (Some(one), Some(more)) = (time(model("\"1 ms\"")), time(model("\"1005 us\""))) else { return };
    assert!((more / one - 1.005).abs() < 0.0001, "{one}, {more}");
}

#[test]
fn a_guest_that_waits_for_ever_or_computes_for_ever_is_hung() {
    let Some(mut guest) = Guest::new("guest", disk()) else { return };
    guest.spec.virtual_limit = Duration::from_secs(3_600);
    let report = guest.run("stop-for-ever", "");
    assert!(matches!(report.end, ExactEnd::GuestEnded(Ending::Hung { .. })), "{:?}", report.end);
    guest.spec.silence_limit = Duration::from_secs(2);
    let report = guest.run("spin", "");
    assert!(matches!(report.end, ExactEnd::GuestEnded(Ending::Hung { .. })), "{:?}", report.end);
}

#[test]
fn a_guest_that_crashes_says_so_in_the_kernels_words() {
    let Some(guest) = Guest::new("guest", disk()) else { return };
    let report = guest.run("kernel-panic", "");
    let ExactEnd::GuestEnded(Ending::Panicked { words }) = &report.end else { panic!("{:?}", report.end) };
    assert!(words.contains("sysrq triggered crash"), "{words}");
    let report = guest.run("handler-panic", "");
    assert!(matches!(&report.end, ExactEnd::Failed(why) if why.contains("as asked")), "{:?}", report.end);
}

/// A shell script in a kernel's place, and what it said.
fn run_instead_of_a_kernel(script: &str) -> (ExactReport, String) {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let kernel = place.path().join("linux");
    // Longer than it takes to open the directory of its results, as every kernel lives.
    std::fs::write(&kernel, format!("#!/bin/sh\n{script}\nsleep 1\n")).unwrap();
    std::fs::set_permissions(&kernel, std::fs::Permissions::from_mode(0o755)).unwrap();
    let directory = place.path().join("guest");
    std::fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
    let image = directory.join("image");
    File::create(&image).unwrap().set_len(1 << 20).unwrap();
    std::fs::write(directory.join("secret"), "done\nsecret").unwrap();
    let spec = ExactSpec::new(kernel, agent(), image, &directory, Model::find("constant").unwrap());
    let report = spec.run("kind", b"body", &AtomicBool::new(false)).unwrap();
    let said = std::fs::read_to_string(&report.console_log).unwrap();
    (report, said)
}

/// What would otherwise be silent for five minutes, or look like a panic of its kernel.
#[test]
fn a_kernel_that_cannot_be_simulated_is_refused_at_once() {
    let connects = |to: &str, then: &str| {
        format!(
            "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un(\"{to}\")) or die; {then}; sleep 60'"
        )
    };
    let starts = "syswrite(S, pack(\"LLQ\", 1, 1, 0))";
    for (script, expected) in [
        (format!("unset LD_PRELOAD; {}", connects("calendar", starts)), "linked statically"),
        (format!("unset LD_PRELOAD; {}", connects("disk", starts)), "CONFIG_UML_TIME_TRAVEL_SUPPORT"),
    ] {
        let since = std::time::Instant::now();
        let (report, said) = run_instead_of_a_kernel(&script);
        let ExactEnd::Failed(words) = &report.end else { panic!("{:?}, {said}", report.end) };
        assert!(words.contains(expected) && words.contains("fstone kernel build"), "{words}");
        assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
    }
    let (report, _) = run_instead_of_a_kernel(&format!("exec {}", connects("calendar", "syswrite(S, \"half\")")));
    let ExactEnd::GuestEnded(Ending::Exited { status: 1, words }) = &report.end else { panic!("{:?}", report.end) };
    assert!(words.contains("writes what is no message to its calendar"), "{words}");
}

/// Whatever is started in a kernel's place: what it leaves is read as its result, and nothing that it points to.
#[test]
fn a_result_is_a_file_of_the_guests_own() {
    let (report, said) = run_instead_of_a_kernel(
        "echo $LD_PRELOAD; cat job; echo; printf 'done\\nyes' >uml/result; echo a >memory/b && echo kept; echo a >b",
    );
    assert_eq!(report.end, ExactEnd::Done(b"yes".to_vec()), "{report:?}");
    assert!(said.contains("\nkind\nbody\nkept\n") && !said.contains('\0'), "{said}");
    assert!(said.starts_with("/proc/self/fd/3:/proc/self/fd/4\n") && !said.contains("preloaded"), "{said}");
    for script in
        ["ln -s ../secret uml/result", "mkfifo uml/result", "mkdir uml/result", "ln secret uml/result", "true"]
    {
        let (report, _) = run_instead_of_a_kernel(script);
        assert!(matches!(report.end, ExactEnd::GuestEnded(Ending::Exited { .. })), "{script}: {:?}", report.end);
    }
}

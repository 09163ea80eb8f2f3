//! What hangs in the kernel is given up with its stack, and the run goes on.

use crate::support::{Memory, cell, command, may_use_devices, options, plan, scratch_directory, shell};
use fstone_lab::{
    events::{Event, ProgressSink, Silent},
    machine::Machine,
    place::undo::clean,
    run::carry_out::{LabOptions, RunEnd, carry_out},
};
use fstone_model::{Outcome, Step, Workload, study::DeviceSpec};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::{
    ffi::CString,
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, atomic::AtomicBool},
    time::{Duration, Instant},
};

fn limited(step: Step, seconds: u64) -> Step {
    Step { limit: Duration::from_secs(seconds), ..step }
}

/// A FUSE filesystem that says it is there, and from then on only says what its root is.
struct Dead {
    at: PathBuf,
    _device: File,
}

impl Dead {
    fn mount(at: &Path) -> Option<Self> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse").ok()?;
        let options = format!("fd={},rootmode=40755,user_id=0,group_id=0", device.as_raw_fd());
        let options = CString::new(options).expect("no NUL");
        mount("dead", at, "fuse", MountFlags::empty(), options.as_c_str()).ok()?;
        let mut channel = device.try_clone().expect("duplicated");
        std::thread::spawn(move || {
            let mut request = vec![0; 1 << 17];
            while let Ok(length) = channel.read(&mut request) {
                // fuse_in_header of linux/fuse.h: length, operation, unique number.
                let word = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().expect("four bytes"));
                assert!(length >= 40);
                let mut answer: Vec<u8> = Vec::new();
                match word(4) {
                    // INIT: version 7.31, nothing else.
                    26 => {
                        answer.extend([7_u32, 31, 0, 0].iter().flat_map(|word| word.to_ne_bytes()));
                        answer.extend([12_u16, 9].iter().flat_map(|word| word.to_ne_bytes()));
                        answer.extend([1_u32 << 16, 1].iter().flat_map(|word| word.to_ne_bytes()));
                        answer.resize(64, 0);
                    }
                    // GETATTR of the root: valid for a second, a directory of root's.
                    3 => {
                        answer.extend([1_u64, 0].iter().flat_map(|word| word.to_ne_bytes()));
                        let attributes = [1_u64, 0, 0, 0, 0, 0];
                        answer.extend(attributes.iter().flat_map(|word| word.to_ne_bytes()));
                        answer.extend(
                            [0_u32, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0].iter().flat_map(|word| word.to_ne_bytes()),
                        );
                    }
                    // MKDIR, STATFS and all else: no answer, ever.
                    _ => continue,
                }
                let mut head: Vec<u8> = Vec::new();
                head.extend((16 + answer.len() as u32).to_ne_bytes());
                head.extend(0_i32.to_ne_bytes());
                head.extend(&request[8..16]);
                head.extend(answer);
                if channel.write_all(&head).is_err() {
                    return;
                }
            }
        });
        Some(Self { at: at.to_owned(), _device: device })
    }
}

impl Drop for Dead {
    fn drop(&mut self) {
        // Ends every request that waits, and with it what hangs. It is found by the number of its superblock.
        let name = format!(" {} ", self.at.display());
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let number = mounts
            .lines()
            .find(|line| line.contains(&name))
            .and_then(|line| line.split(' ').nth(2)?.split_once(':')?.1.parse::<u32>().ok());
        if let Some(number) = number {
            let _ = mount("none", "/sys/fs/fuse/connections", "fusectl", MountFlags::empty(), None);
            let _ = fs::write(format!("/sys/fs/fuse/connections/{number}/abort"), "1");
        }
        let _ = unmount(&self.at, UnmountFlags::DETACH);
    }
}

#[test]
fn a_directory_that_never_answers_hangs_its_trials_and_not_the_run() {
    if !may_use_devices(&[]) || !Path::new("/dev/fuse").exists() {
        return;
    }
    let place = scratch_directory();
    let Some(dead) = Dead::mount(place.path()) else {
        eprintln!("skipped: FUSE filesystems cannot be mounted here");
        return;
    };
    let work = scratch_directory();
    let mut hanging = cell("ext4", "", "", vec![command("touch", &["touch", "{mount}/a"])]);
    hanging.device = DeviceSpec::Directory { path: Some(place.path().display().to_string()) };
    let mut well = cell("ext4", "", "", vec![command("touch", &["touch", "{mount}/a"])]);
    well.device = DeviceSpec::Directory { path: None };
    let mut memory = Memory::default();
    let options = LabOptions { patience: Duration::from_secs(3), ..options(work.path()) };
    let end = carry_out(&plan(vec![hanging, well], 2), &options, &[], &mut memory, &Silent, &AtomicBool::new(false));
    drop(dead);
    assert_eq!(end.expect("carried out"), RunEnd::Completed);
    let outcomes =
        |cell: u32| memory.trials.iter().filter(move |trial| trial.id.cell == cell).map(|trial| &trial.outcome);
    assert_eq!(outcomes(1).collect::<Vec<_>>(), [&Outcome::Completed; 2]);
    assert_eq!(outcomes(0).count(), 2);
    for outcome in outcomes(0) {
        let Outcome::Hung(reason) = outcome else { panic!("{outcome:?}") };
        assert!(reason.words.contains("fuse") && reason.words.contains("task:"), "{}", reason.words);
    }
}

struct Mounted {
    at: PathBuf,
    root: File,
}

impl Mounted {
    fn make(image: &Path, at: &Path) -> Self {
        File::create(image).and_then(|file| file.set_len(64 << 20)).expect("made");
        let run = |command: &mut Command| assert!(command.status().expect("starts").success(), "{command:?}");
        run(Command::new("mkfs.ext4").arg("-q").arg(image));
        run(Command::new("mount").args(["-o", "loop"]).args([image, at]));
        Self { at: at.to_owned(), root: File::open(at).expect("mounted") }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        thaw(&self.root);
        let _ = unmount(&self.at, UnmountFlags::DETACH);
    }
}

#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Told {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("sound"))
    }
}

impl ProgressSink for Told {
    fn event(&self, event: &Event<'_>) {
        let line = match event {
            Event::LeftBehind { error } => format!("left behind: {error}"),
            Event::NotCleanedUp { error } => format!("not cleaned up: {error}"),
            Event::CleanedUp { what } => format!("cleaned up: {what}"),
            _ => return,
        };
        self.0.lock().expect("sound").push(line);
    }
}

#[test]
fn a_directory_that_a_trial_hangs_in_is_left_to_clean() {
    if !may_use_devices(&["mkfs.ext4", "mount", "fsfreeze"]) {
        return;
    }
    let (work, place) = (scratch_directory(), scratch_directory());
    let point = place.path().join("point");
    fs::create_dir(&point).expect("made");
    let mounted = Mounted::make(&place.path().join("image"), &point);
    let options = LabOptions { patience: Duration::from_secs(3), ..options(work.path()) };
    let directory = |path: Option<&Path>, steps| {
        let mut cell = cell("ext4", "", "", steps);
        cell.device = DeviceSpec::Directory { path: path.map(|path| path.display().to_string()) };
        // It is neither made nor mounted.
        cell.steps.drain(..2);
        cell
    };
    let touch = || limited(command("touch", &["touch", "a"]), 2);
    let (told, never) = (Told::default(), AtomicBool::new(false));
    let run = |cells| {
        let mut memory = Memory::default();
        let end = carry_out(&plan(cells, 1), &options, &[], &mut memory, &told, &never);
        assert_eq!(end.expect("carried out"), RunEnd::Completed);
        memory.trials.sort_by_key(|trial| trial.id);
        memory.trials
    };
    let clean = |dry_run| {
        let found = clean(&options.work_directory, dry_run, &[], &Machine::host()).expect("can be cleaned");
        found.into_iter().map(|leftover| (leftover.what, leftover.error)).collect::<Vec<_>>()
    };

    // It freezes once its files are there: its threads hang, and its first one, which waits for them, dies without them.
    let freeze = Some(format!("fsfreeze -f {}", point.display()));
    let hanging = limited(crate::load::load(Workload { callout: freeze, ..crate::load::small_files(20, None) }), 2);
    let trials = run(vec![directory(Some(&point), vec![hanging]), directory(None, vec![touch()])]);
    assert!(matches!(trials[0].outcome, Outcome::Hung(_)), "{:#?}", trials[0]);
    assert_eq!(trials[1].outcome, Outcome::Completed);
    let left: Vec<PathBuf> = fs::read_dir(&point)
        .expect("listed")
        .map(|entry| entry.expect("listed").path())
        .filter(|path| !path.ends_with("lost+found"))
        .collect();
    let [left] = &left[..] else { panic!("{left:?}") };
    let words = ["left behind: ", &left.display().to_string(), "hangs in it", "`fstone clean`"];
    let is_told = |line: &String| words.iter().all(|word| line.contains(word));
    assert!(trials[0].warnings.iter().any(is_told), "{:?}", trials[0].warnings);
    assert!(trials[1].warnings.is_empty(), "{:?}", trials[1].warnings);
    let lines = told.take();
    assert!(lines.len() == 1 && is_told(&lines[0]), "{lines:?}");

    // As long as the process hangs nobody touches the directory, and it is in nobody's way.
    for dry_run in [true, false] {
        let found = clean(dry_run);
        assert!(matches!(&found[..], [(_, Some(error))] if error.contains("hangs in it")), "{found:?}");
    }
    assert_eq!(run(vec![directory(None, vec![touch()])])[0].outcome, Outcome::Completed);
    let lines = told.take();
    assert!(
        matches!(&lines[..], [before, after]
        if before.starts_with("not cleaned up: ") && after.starts_with("left behind: ")),
        "{lines:?}"
    );
    assert!(fs::read_dir(left).expect("listed").count() > 0);

    // Once it has ended, the next run removes it.
    thaw(&mounted.root);
    let since = Instant::now();
    while clean(true).iter().any(|(_, error)| error.is_some()) {
        assert!(since.elapsed() < Duration::from_secs(120), "it hangs still");
        std::thread::sleep(Duration::from_millis(20));
    }
    run(vec![directory(None, vec![touch()])]);
    let lines = told.take();
    assert!(matches!(&lines[..], [line] if line.starts_with("cleaned up: ")), "{lines:?}");
    assert!(!left.exists());
    assert!(clean(false).is_empty());
    assert!(!options.work_directory.exists(), "it was made for a run");
}

/// Its agent can still tell of it, but not remove the directory.
#[test]
fn an_agent_that_hangs_as_it_tidies_up_is_waited_for_no_longer_than_its_step() {
    if !may_use_devices(&["mkfs.ext4", "mount", "fsfreeze"]) {
        return;
    }
    let (work, place) = (scratch_directory(), scratch_directory());
    let point = place.path().join("point");
    fs::create_dir(&point).expect("made");
    let mounted = Mounted::make(&place.path().join("image"), &point);
    let mut hanging = cell("ext4", "", "", vec![limited(shell("touch", "fsfreeze -f . && touch a"), 1)]);
    hanging.device = DeviceSpec::Directory { path: Some(point.display().to_string()) };
    hanging.steps.drain(..2);
    let options = LabOptions {
        // Longer than an agent waits for a command that it killed.
        patience: Duration::from_secs(15),
        closing_limit: Duration::from_secs(600),
        ..options(work.path())
    };
    let (mut memory, since) = (Memory::default(), Instant::now());
    let end = carry_out(&plan(vec![hanging], 1), &options, &[], &mut memory, &Silent, &AtomicBool::new(false));
    assert_eq!(end.expect("carried out"), RunEnd::Completed);
    assert!(since.elapsed() < options.closing_limit, "it was waited for as if it had something to write");
    let Outcome::Hung(reason) = &memory.trials[0].outcome else { panic!("{:#?}", memory.trials[0]) };
    assert!(reason.words.contains("task:"), "{}", reason.words);

    drop(mounted);
    let is_left = || clean(&options.work_directory, false, &[], &Machine::host()).expect("can be cleaned");
    while is_left().iter().any(|left| left.error.as_ref().is_some_and(|error| error.contains("hangs in it"))) {
        assert!(since.elapsed() < options.closing_limit, "it hangs still");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Thaws what a step froze, once the trial is recorded or given up.
struct Thaws {
    held: Mutex<Vec<File>>,
    point: PathBuf,
}

/// FIFREEZE and FITHAW of linux/fs.h.
const FITHAW: u64 = 0xc004_5878;

impl Thaws {
    fn hold(&self) {
        for entry in fs::read_dir("/proc").expect("proc").flatten() {
            let root = entry.path().join("root").join(self.point.strip_prefix("/").expect("absolute"));
            let mounts = fs::read_to_string(entry.path().join("mountinfo")).unwrap_or_default();
            if mounts.contains(&format!(" {} ", self.point.display()))
                && let Ok(file) = File::open(root)
            {
                self.held.lock().expect("sound").push(file);
                return;
            }
        }
    }
}

impl ProgressSink for Thaws {
    fn event(&self, event: &Event<'_>) {
        match event {
            // Mounted, and not yet frozen.
            Event::StepStarted { step: "freeze", .. } => self.hold(),
            Event::TrialFinished(_) => {
                for file in self.held.lock().expect("sound").drain(..) {
                    thaw(&file);
                }
            }
            _ => {}
        }
    }
}

#[expect(unsafe_code, reason = "FITHAW has no safe wrapper")]
fn thaw(file: &File) {
    // SAFETY: the request takes no argument that the kernel looks at.
    unsafe { libc::ioctl(file.as_raw_fd(), FITHAW as _, 0) };
}

#[test]
fn a_load_on_a_frozen_filesystem_is_given_up_with_its_stack() {
    if !may_use_devices(&["mkfs.ext4", "e2fsck", "dumpe2fs", "blkid", "fsfreeze"]) {
        return;
    }
    let work = scratch_directory();
    let freeze = || shell("freeze", "fsfreeze -f .");
    let write = limited(command("write", &["dd", "if=/dev/zero", "of=a", "bs=1M", "count=1"]), 2);
    let load = limited(crate::load::load(crate::load::small_files(20, None)), 2);
    let cells = vec![
        cell("ext4", "", "", vec![freeze(), write]),
        cell("ext4", "", "", vec![freeze(), load]),
        cell("ext4", "", "", vec![command("touch", &["touch", "{mount}/a"])]),
    ];
    let options = LabOptions { patience: Duration::from_secs(3), ..options(work.path()) };
    let sink = Thaws { held: Mutex::default(), point: options.work_directory.join("mnt") };
    let mut memory = Memory::default();
    let end = carry_out(&plan(cells, 1), &options, &[], &mut memory, &sink, &AtomicBool::new(false));
    assert_eq!(end.expect("carried out"), RunEnd::Completed);
    memory.trials.sort_by_key(|trial| trial.id);
    for trial in &memory.trials[..2] {
        let Outcome::Hung(reason) = &trial.outcome else { panic!("{:#?}", trial.outcome) };
        assert!(["write", "load"].contains(&reason.step.as_str()), "{reason:?}");
        assert!(reason.words.contains("task:"), "{}", reason.words);
    }
    assert_eq!(memory.trials[2].outcome, Outcome::Completed);
}

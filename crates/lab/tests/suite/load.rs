//! Loads by the real engine, on real filesystems and in a directory.

use crate::support::{
    Memory, assert_clean, cell, loop_device, may_use_devices, options, plan, scratch_directory, shell, step,
};
use fstone_lab::{
    events::{Event, LoadProgress, ProgressSink, Silent},
    run::carry_out::{LabOptions, RunEnd, carry_out},
    trial::{kept_images, old_image, remove_aged_directory},
};
use fstone_model::{
    Cell, Outcome, Step, StepKind, Trial, Workload,
    age::{Age, Class, Depth, Past, Profile},
    load_metric,
    metric::catalog,
    result::StepResult,
    service::{Ready, Service},
    study::{DeviceSpec, FsckMode, StepAction},
    workload::{
        Action, Actions, Amount, Directories, Extent, FileChoice, Fileset, FsyncPolicy, Operation, Pattern, Phase,
        SizeDistribution, Stop, ThreadGroup, Transfer, Weighted,
    },
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

pub(crate) fn small_files(files: u64, time: Option<Duration>) -> Workload {
    let action = |name: &str, operation| Action::new(name, operation, None);
    let transfer =
        || Transfer { block_bytes: 4096, extent: Extent::Bytes(4096), pattern: Pattern::FromStart, fsync: false };
    let mix = vec![
        Weighted { weight: 1, action: action("create", Operation::Create { block_bytes: 4096, fsync: false }) },
        Weighted { weight: 1, action: action("write", Operation::Write(transfer())) },
        Weighted { weight: 2, action: action("read", Operation::Read(transfer())) },
    ];
    Workload {
        series_interval: Duration::from_millis(100),
        ..Workload::new(
            "small files",
            vec![Fileset {
                directories: Directories::Flat { count: 10, root_too: true },
                build_block_bytes: 4096,
                ..Fileset::new(
                    "files",
                    Amount::Files(files),
                    SizeDistribution::Uniform { minimum: 4096, maximum: 65536 },
                )
            }],
            vec![Phase::new(
                "run",
                vec![ThreadGroup::new("threads", 4, Actions::Mix(mix))],
                Stop { time, operations: time.is_none().then_some(500), ..Stop::default() },
            )],
        )
    }
}

pub(crate) fn load(workload: Workload) -> Step {
    step("load", StepAction::Load(Arc::new(workload)))
}

fn value(trial: &Trial, metric: &str) -> f64 {
    trial.figure("load", metric).unwrap_or_else(|| panic!("{metric}: {trial:#?}")).value
}

#[derive(Default)]
struct Told(Mutex<Vec<LoadProgress>>);

impl ProgressSink for Told {
    fn event(&self, event: &Event<'_>) {
        if let Event::Load(progress) = event {
            self.0.lock().expect("no panic").push(progress.clone());
        }
    }
}

#[test]
fn every_metric_comes_from_the_steps_that_the_catalogue_names() {
    if !may_use_devices(&["mkfs.ext4", "e2fsck", "dumpe2fs", "cp"]) {
        return;
    }
    let work = scratch_directory();
    let file = work.path().join("file");
    std::fs::write(&file, "copied").expect("written");
    let copy = StepAction::CopyIn { source: file.display().to_string(), target: "file".into() };
    let mut synced = small_files(50, Some(Duration::from_millis(200)));
    synced.phases.iter_mut().flat_map(|phase| &mut phase.groups).for_each(|group| {
        group.fsync = FsyncPolicy { at_end: true, every_operations: 1, ..FsyncPolicy::default() };
    });
    let of_parts = load_metric::names(&synced);
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let service = Service {
        name: "sleeper".into(),
        make: Vec::new(),
        start: words(&["sleep", "1000"]),
        ready: Ready::Command(words(&["true"])),
        stop: Vec::new(),
        log: None,
        user: None,
        limit: Duration::from_secs(10),
    };
    let steps = vec![
        step("age", StepAction::Age(Arc::new(ageing(0.1).into()))),
        step("copy-in", copy),
        step("load", StepAction::Load(Arc::new(synced))),
        step("service", StepAction::Service(Arc::new(service))),
        shell("command", "head -c 1000000 /dev/urandom > data"),
        step("sync", StepAction::Sync),
        step("drop-caches", StepAction::DropCaches),
        step("fragmentation", StepAction::Fragmentation),
        step("trim", StepAction::Trim),
        step("remount", StepAction::Remount),
        step("unmount", StepAction::Unmount),
        step("fsck", StepAction::Fsck { mode: FsckMode::ReadOnly }),
    ];
    let plan = plan(vec![cell("ext4", "", "", steps)], 1);
    let options = LabOptions { measure_null: true, ..options(work.path()) };
    let mut memory = Memory::default();
    carry_out(&plan, &options, &[], &mut memory, &Silent, &AtomicBool::new(false)).expect("carried out");
    let trial = &memory.trials[0];
    assert_eq!(trial.outcome, Outcome::Completed, "{trial:#?}");

    let names = |kind: StepKind| -> Vec<&str> {
        let of_step = |step: &&StepResult| step.step == kind.name();
        let results: Vec<_> = trial.steps.iter().filter(of_step).collect();
        assert!(!results.is_empty(), "no step is {}", kind.name());
        results.iter().flat_map(|step| &step.figures).map(|figure| figure.metric.as_str()).collect()
    };
    // Power cuts are for guests; their figures are looked at where there is one (fstone's own tests).
    let on_the_host = |kind: &&StepKind| **kind != StepKind::PowerCut;
    // So are those of loads of several ranks, which need MPI (scripts/try-mpi), and of kernels that count their work.
    let elsewhere = [
        catalog::START_SKEW,
        catalog::STOP_SKEW,
        catalog::SLOWEST_RANK,
        catalog::MEDIAN_RANK,
        catalog::FASTEST_RANK,
        catalog::KERNEL_WORK,
        catalog::KERNEL_WORK_PER_OPERATION,
        catalog::KERNEL_BACKGROUND_WORK,
        catalog::KERNEL_INTERRUPT_WORK,
        catalog::KERNEL_COPIES,
        catalog::KERNEL_TIME,
    ];
    for metric in catalog::ALL.iter().filter(|metric| elsewhere.iter().all(|other| other.name != metric.name)) {
        let mut producers =
            metric.steps.iter().filter(on_the_host).map(|kind| (kind, names(*kind).contains(&metric.name)));
        if metric.steps.len() == StepKind::ALL.len() {
            // CPU time is counted in ticks: a short step has none of it.
            assert!(producers.any(|(_, has)| has), "no step has {}", metric.name);
        } else {
            producers.for_each(|(kind, has)| assert!(has, "{} has no {}", kind.name(), metric.name));
        }
    }
    for part in &of_parts {
        assert!(names(StepKind::Load).contains(&part.as_str()), "the load has no {part}");
    }
    for kind in StepKind::ALL.into_iter().filter(|kind| on_the_host(&kind)) {
        for name in names(kind) {
            let is_listed = catalog::find(name).is_some_and(|metric| metric.steps.contains(&kind));
            let is_of_a_part = kind == StepKind::Load && of_parts.iter().any(|part| part == name);
            assert!(is_listed || is_of_a_part, "the catalogue does not say that {} has {name}", kind.name());
        }
    }
}

fn ageing(utilization: f64) -> Age {
    let class = |up_to, weight| Class { up_to, weight };
    let profile = Profile {
        name: "small".into(),
        sizes: vec![class(0.0, 1.0), class(4096.0, 4.0), class(65536.0, 6.0), class(524_288.0, 2.0)],
        ages: vec![class(10.0, 2.0), class(100.0, 3.0), class(1000.0, 1.0)],
        depths: (0..4).map(|depth| Depth { depth, weight: 1.0, directories: depth * 3 }).collect(),
        ..Profile::default()
    };
    Age { profile, utilization, overwrites: utilization * 4.0, compressible: 0.3, seed: Some(1) }
}

#[test]
fn a_filesystem_is_aged_until_its_targets_are_reached() {
    if !may_use_devices(&["mkfs.ext4", "e2fsck"]) {
        return;
    }
    let work = scratch_directory();
    // The smallest xfs has 300 MiB.
    let kinds = [("ext4", 128), ("btrfs", 128), ("xfs", 304), ("f2fs", 128)];
    // Copy-on-write keeps parts of files that are overwritten.
    let cells =
        kinds.into_iter().flat_map(|kind| [(kind, None), (kind, Some(0.8))]).map(|((kind, mebibytes), share)| {
            let mut age = ageing(0.4);
            age.profile.overwritten = share;
            if share.is_some() {
                age.overwrites = 2.4;
            }
            let steps = vec![
                step("age", StepAction::Age(Arc::new(age.into()))),
                load(small_files(50, None)),
                step("fsck", StepAction::Fsck { mode: FsckMode::ReadOnly }),
            ];
            let device = DeviceSpec::Loop {
                size_bytes: mebibytes << 20,
                direct_io: false,
                sector_bytes: 512,
                directory: None,
                in_memory: true,
                model: None,
            };
            Cell { device, ..cell(kind, "", "", steps) }
        });
    let plan = plan(cells.collect(), 1);
    let mut memory = Memory::default();
    carry_out(&plan, &options(work.path()), &[], &mut memory, &Silent, &AtomicBool::new(false)).expect("carried out");
    for (trial, kind) in memory.trials.iter().map(|trial| (trial, &plan.cells[trial.id.cell as usize].filesystem.kind))
    {
        if matches!(trial.outcome, Outcome::Skipped(_)) && kind != "ext4" {
            eprintln!("skipped: {kind}: {:?}", trial.outcome);
            continue;
        }
        assert_eq!(trial.outcome, Outcome::Completed, "{kind}: {trial:#?}");
        let step = trial.steps.iter().find(|step| step.step == "age").expect("it was aged");
        eprintln!("{kind}: {}", step.commands[0].output_tail);
        let figure = |metric: &str| trial.figure("age", metric).map(|figure| figure.value);
        assert!(figure("time").is_some(), "{kind}: {step:#?}");
        assert!(figure("utilization").is_some_and(|share| (38.0..42.0).contains(&share)), "{kind}: {step:#?}");
        assert!(figure("layout score").is_some_and(|score| (0.0..=1.0).contains(&score)), "{kind}: {step:#?}");
        // Classes of a hundred files each: χ² with three degrees of freedom is seldom above 16.
        for metric in ["χ² of sizes", "χ² of ages", "χ² of depths"] {
            assert!(figure(metric).is_some_and(|chi| chi < 16.0), "{kind}: {metric}: {step:#?}");
        }
        let regions = step.commands[0].output_tail.lines().find_map(|line| line.strip_prefix("regions "));
        assert!(regions.is_some_and(|regions| regions.len() == 1024 && regions.contains('1')), "{kind}: {step:#?}");
        if kind == "ext4" {
            assert!(figure("free extents").is_some_and(|count| count > 5.0), "{kind}: {step:#?}");
        }
        let said: Vec<&String> = trial.warnings.iter().filter(|words| words.starts_with("age:")).collect();
        assert_eq!(said, ["age: every repeat begins with the same history, that of seed 1"], "{kind}");
        let typed =
            |step: &StepResult| step.commands.iter().map(|one| one.argv.join(" ")).collect::<Vec<_>>().join("; ");
        let typed = typed(step);
        assert!(
            typed.starts_with("age small seed=1") && typed.contains("umount") && typed.contains("drop_caches"),
            "{typed}"
        );
    }
    assert_clean(work.path());
}

/// Two lives, and every trial begins with a copy of that of its repetition, also in a later run.
#[test]
fn an_aged_filesystem_is_made_once_and_copied_for_each_trial() {
    if !may_use_devices(&["mkfs.ext4", "e2fsck"]) {
        return;
    }
    let (work, cache) = (scratch_directory(), scratch_directory());
    let aged = cache.path().join("aged");
    let options = LabOptions { aged: Some(aged.clone()), ..options(work.path()) };
    let mut cells = Vec::new();
    for (kind, in_memory) in [("ext4", false), ("ext4", true), ("btrfs", false)] {
        let age = Age { seed: None, ..ageing(0.3) };
        let fsck = step("fsck", StepAction::Fsck { mode: FsckMode::ReadOnly });
        let mut cell = cell(kind, "", "", vec![step("age", StepAction::Age(Arc::new(age.into()))), fsck]);
        cell.device = DeviceSpec::Loop {
            size_bytes: 128 << 20,
            direct_io: false,
            sector_bytes: 512,
            directory: None,
            in_memory,
            model: None,
        };
        cells.push(cell);
    }
    let run = |repeats| {
        let plan = plan(cells.clone(), repeats);
        let mut memory = Memory::default();
        carry_out(&plan, &options, &[], &mut memory, &Silent, &AtomicBool::new(false)).expect("carried out");
        assert_clean(work.path());
        let mut lives = Vec::new();
        for trial in &memory.trials {
            if matches!(trial.outcome, Outcome::Skipped(_)) && trial.id.cell == 2 {
                continue;
            }
            assert_eq!(trial.outcome, Outcome::Completed, "{trial:#?}");
            let [mkfs, mount, age, fsck, ..] = &trial.steps[..] else { panic!("{trial:#?}") };
            let names = [mkfs, mount, age, fsck].map(|result| result.step.as_str());
            assert_eq!(names, ["mkfs", "mount", "age", "fsck"]);
            assert!(mkfs.figures.is_empty() && mkfs.commands[0].argv[0].starts_with("mkfs."), "{mkfs:#?}");
            assert!(age.figure("time").is_none() && mount.figure("time").is_some(), "{trial:#?}");
            assert!(age.figure("layout score").is_some() && !trial.effective.superblock.is_empty(), "{trial:#?}");
            assert!(
                trial.effective.mount.is_some() && age.commands.last().expect("a copy").argv[0] == "cp",
                "{age:#?}"
            );
            assert!(!trial.warnings.iter().any(|words| words.starts_with("age:")), "{:?}", trial.warnings);
            lives.push((trial.id, age.commands[0].clone()));
        }
        let images = kept_images(&aged);
        assert!(images.iter().all(|image| image.past.as_ref().is_some_and(|past| past.1.is_some())));
        lives.sort_by_key(|(id, _)| *id);
        (lives, images.iter().map(|image| (image.name(), image.bytes)).collect::<BTreeMap<_, _>>())
    };
    let (first, images) = run(2);
    assert_eq!(images.len(), first.len() - 2, "both rows of ext4 have the same lives");
    assert_eq!(first[0].1, first[2].1);
    assert_ne!(first[0].1.argv, first[1].1.argv, "another repetition, another life");
    let (again, still) = run(1);
    assert!(again.iter().all(|trial| first.contains(trial)) && !again.is_empty(), "{again:?}");
    assert_eq!(still, images, "made once");
}

#[test]
fn what_cannot_be_aged_is_refused() {
    let work = scratch_directory();
    let mut of_directory = cell("dir", "", "", vec![step("age", StepAction::Age(Arc::new(ageing(0.8).into())))]);
    of_directory.device = DeviceSpec::Directory { path: None };
    let mut memory = Memory::default();
    let mut cells = vec![of_directory];
    if may_use_devices(&["mkfs.ext4"]) {
        let few_inodes = cell("ext4", "-N 256", "", vec![step("age", StepAction::Age(Arc::new(ageing(0.8).into())))]);
        let mut large = ageing(0.8);
        large.profile.sizes[3].up_to = (1u64 << 30) as f64;
        cells.extend([few_inodes, cell("ext4", "", "", vec![step("age", StepAction::Age(Arc::new(large.into())))])]);
    }
    let expected =
        ["which the study has to name", "files, and there are 256 inodes", "its largest files have 1073741824 bytes"];
    carry_out(&plan(cells, 1), &options(work.path()), &[], &mut memory, &Silent, &AtomicBool::new(false))
        .expect("carried out");
    for trial in &memory.trials {
        let Outcome::Refused(reason) = &trial.outcome else { panic!("{trial:#?}") };
        let expected = expected[trial.id.cell as usize];
        assert!(reason.step == "age" && reason.words.contains(expected), "{reason:?}, not {expected}");
    }
}

/// A filesystem that somebody uses.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(bytes: u64) -> Self {
        let mounted = Self(scratch_directory());
        let (image, place) = (mounted.0.path().join("image"), mounted.place());
        std::fs::File::create(&image).and_then(|file| file.set_len(bytes)).expect("sized");
        std::fs::create_dir(&place).expect("made");
        let run = |program: &str, words: &[&std::ffi::OsStr]| {
            assert!(std::process::Command::new(program).args(words).status().expect("starts").success(), "{program}");
        };
        run("mkfs.ext4", &["-q".as_ref(), image.as_ref()]);
        run("mount", &["-o".as_ref(), "loop".as_ref(), image.as_ref(), place.as_ref()]);
        mounted
    }

    fn place(&self) -> std::path::PathBuf {
        self.0.path().join("place")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.place()).status();
    }
}

#[test]
fn a_directory_is_aged_beneath_goes_on_when_interrupted_and_is_taken_up() {
    struct Interrupts(AtomicBool);
    impl ProgressSink for Interrupts {
        fn event(&self, event: &Event<'_>) {
            if let Event::Load(LoadProgress { phase, .. }) = event
                && phase == LoadProgress::AGEING
            {
                self.0.store(true, Ordering::Release);
            }
        }
    }
    if !may_use_devices(&["mkfs.ext4"]) {
        return;
    }
    let (work, mounted) = (scratch_directory(), Mounted::new(64 << 20));
    let place = mounted.place();
    let (aged, mine) = (place.join("fstone-aged"), place.join("mine"));
    std::fs::write(&mine, "mine").expect("written");
    let run = |overwrites, repeats, sink: &dyn ProgressSink, cancel: &AtomicBool| {
        let age = Age { overwrites, seed: None, ..ageing(0.4) };
        let steps = vec![step("age", StepAction::Age(Arc::new(age.into()))), load(small_files(50, None))];
        let device = DeviceSpec::Directory { path: Some(place.display().to_string()) };
        let (plan, mut memory) =
            (plan(vec![Cell { device, ..cell("dir", "", "", steps) }], repeats), Memory::default());
        let end = carry_out(&plan, &options(work.path()), &[], &mut memory, sink, cancel).expect("carried out");
        (end, memory.trials)
    };
    let interrupts = Interrupts(AtomicBool::new(false));
    let (end, trials) = run(6.0, 1, &interrupts, &interrupts.0);
    assert!(end == RunEnd::Cancelled && trials.is_empty(), "{end:?} {trials:#?}");
    struct Removes<'a>(&'a std::path::Path, std::sync::Mutex<Vec<String>>);
    impl ProgressSink for Removes<'_> {
        fn event(&self, event: &Event<'_>) {
            // Between trials, too.
            let is_there = match event {
                Event::StepStarted { step, .. } => *step != "age",
                Event::TrialFinished(_) => true,
                _ => false,
            };
            if is_there {
                let removed = remove_aged_directory(self.0).map_err(|error| error.to_string());
                self.1.lock().expect("sound").push(removed.err().unwrap_or_default());
            }
        }
    }
    let removes = Removes(&aged, std::sync::Mutex::default());
    let (end, trials) = run(6.0, 2, &removes, &AtomicBool::new(false));
    assert_eq!(end, RunEnd::Completed);
    let refused = "another process ages it, measures on it or removes it";
    assert_eq!(*removes.1.lock().expect("sound"), [refused; 4]);
    for (trial, how) in trials.iter().zip(["it went on", "was aged before"]) {
        assert_eq!(trial.outcome, Outcome::Completed, "{trial:#?}");
        let said = trial.warnings.join("\n");
        assert!(said.contains(how) && said.contains(&format!("fstone age rm {}", aged.display())), "{said}");
        assert!(!said.contains("missed"), "{said}");
        assert_eq!(trial.figure("age", "time"), None, "of the remainder, or of nothing");
        let used = trial.figure("age", "utilization").expect("measured").value;
        assert!((38.0..42.0).contains(&used), "{used}");
    }
    std::fs::rename(aged.join(".aged"), place.join("away")).expect("renamed");
    let (_, gone) = run(6.0, 1, &Silent, &AtomicBool::new(false));
    let Outcome::Failed(reason) = &gone[0].outcome else { panic!("{gone:#?}") };
    assert!(reason.words.contains("were removed") && reason.cure.as_ref().is_some_and(|cure| cure.contains("age rm")));
    std::fs::rename(place.join("away"), aged.join(".aged")).expect("renamed");
    let (_, other) = run(3.0, 1, &Silent, &AtomicBool::new(false));
    let Outcome::Refused(reason) = &other[0].outcome else { panic!("{other:#?}") };
    assert!(reason.words.ends_with("it was aged otherwise") && reason.cure.is_some(), "{reason:?}");
    assert!(remove_aged_directory(&place).is_err() && remove_aged_directory(&place.join("lost+found")).is_err());
    remove_aged_directory(&aged).expect("removed");
    let left: std::collections::BTreeSet<_> =
        std::fs::read_dir(&place).expect("readable").map(|entry| entry.expect("readable").file_name()).collect();
    assert_eq!(left, ["lost+found", "mine"].map(Into::into).into(), "and nothing else");
    assert_eq!(std::fs::read_to_string(&mine).expect("readable"), "mine");
    assert_clean(work.path());
}

#[test]
fn an_old_xfs_whose_original_is_mounted_has_its_cure() {
    if !may_use_devices(&["mkfs.xfs"]) {
        return;
    }
    let (work, cache, old) = (scratch_directory(), scratch_directory(), scratch_directory());
    let [image, original, at] = ["image", "original", "at"].map(|name| old.path().join(name));
    std::fs::File::create(&image).and_then(|file| file.set_len(320 << 20)).expect("sized");
    std::fs::create_dir(&at).expect("made");
    let run = |program: &str, words: &[&std::ffi::OsStr]| {
        assert!(std::process::Command::new(program).args(words).status().expect("starts").success(), "{program}");
    };
    run("mkfs.xfs", &["-q".as_ref(), image.as_ref()]);
    run("cp", &["--sparse=always".as_ref(), image.as_ref(), original.as_ref()]);
    let options = LabOptions { aged: Some(cache.path().join("aged")), ..options(work.path()) };
    let of = |mount: &str| {
        let past = Past::Image(old_image(&image).expect("an image"));
        let cell = cell("xfs", "", mount, vec![step("age", StepAction::Age(Arc::new(past)))]);
        Cell { device: loop_device(320 << 20), ..cell }
    };
    run("mount", &["-o".as_ref(), "loop".as_ref(), original.as_ref(), at.as_ref()]);
    let mut memory = Memory::default();
    let fresh = Cell { device: loop_device(320 << 20), ..cell("xfs", "", "nosuchoption", Vec::new()) };
    let plan = plan(vec![of(""), of("nouuid"), fresh], 1);
    let end = carry_out(&plan, &options, &[], &mut memory, &Silent, &AtomicBool::new(false));
    run("umount", &[at.as_ref()]);
    end.expect("carried out");
    let reason = memory.trials[0].outcome.reason().expect("it is not mounted");
    assert!(reason.cure.as_ref().is_some_and(|cure| cure.ends_with("mount = \"nouuid\"")), "{reason:?}");
    assert_eq!(memory.trials[1].outcome, Outcome::Completed, "{:#?}", memory.trials);
    let reason = memory.trials[2].outcome.reason().expect("there is no such option");
    assert_eq!(reason.cure, None, "what mkfs made is no copy");
    assert_clean(work.path());
}

#[test]
fn what_would_leave_too_little_of_a_disk_is_refused_before_the_first_write() {
    if !may_use_devices(&["mkfs.ext4"]) {
        return;
    }
    let (work, mounted) = (scratch_directory(), Mounted::new(64 << 20));
    let (place, aged) = (mounted.place(), mounted.place().join("fstone-aged"));
    let run = |utilization| {
        let steps = vec![step("age", StepAction::Age(Arc::new(ageing(utilization).into())))];
        let device = DeviceSpec::Directory { path: Some(place.display().to_string()) };
        let plan = plan(vec![Cell { device, ..cell("dir", "", "", steps) }], 1);
        let mut memory = Memory::default();
        carry_out(&plan, &options(work.path()), &[], &mut memory, &Silent, &AtomicBool::new(false)).expect("done");
        memory.trials.remove(0)
    };
    let Outcome::Refused(reason) = run(0.95).outcome else { panic!("it is too much") };
    let cure = reason.cure.as_deref().unwrap_or_default();
    let highest = cure.strip_prefix("utilization = \"").and_then(|words| words.strip_suffix(" %\""));
    let highest: f64 = highest.and_then(|words| words.parse().ok()).expect("a value");
    assert!((90.0..95.0).contains(&highest) && !aged.exists(), "{reason:?}");
    let trial = run(highest / 100.0);
    assert_eq!(trial.outcome, Outcome::Completed, "{trial:#?}");
    assert_clean(work.path());
}

/// Between two measured phases that read, 200 files of 64 KiB are made durable in a phase that may be measured too.
pub(crate) fn ages_between_reads(measured: bool) -> Workload {
    let mut workload = small_files(20, None);
    let phase = |name: &str, measured, operation| {
        let mix = vec![Weighted { weight: 1, action: Action::new(name, operation, None) }];
        let stop = Stop { operations: Some(200), ..Stop::default() };
        Phase { measured, ..Phase::new(name, vec![ThreadGroup::new(name, 1, Actions::Mix(mix))], stop) }
    };
    let create = Operation::Create { block_bytes: 65536, fsync: true };
    workload.filesets[0].size = SizeDistribution::Fixed(65536);
    workload.phases = vec![
        phase("before", true, Operation::Stat),
        phase("ageing", measured, create),
        phase("after", true, Operation::Stat),
    ];
    workload
}

/// 200 files of 64 KiB are made, and nothing but the end of the load makes them durable.
pub(crate) fn makes_files() -> Workload {
    let mut workload = ages_between_reads(true);
    workload.phases.retain(|phase| phase.name == "ageing");
    let create = Operation::Create { block_bytes: 65536, fsync: false };
    let action = Action::new("make", create, None);
    workload.phases[0].groups[0].actions = Actions::Mix(vec![Weighted { weight: 1, action }]);
    workload
}

#[test]
fn what_the_device_writes_between_measured_phases_is_in_no_figure() {
    if !may_use_devices(&["mkfs.ext4", "dumpe2fs"]) {
        return;
    }
    let work = scratch_directory();
    let plan = plan(vec![cell("ext4", "", "", vec![load(ages_between_reads(false))])], 1);
    let mut memory = Memory::default();
    carry_out(&plan, &options(work.path()), &[], &mut memory, &Silent, &AtomicBool::new(false)).expect("carried out");
    let trial = &memory.trials[0];
    assert_eq!(trial.outcome, Outcome::Completed, "{trial:#?}");
    assert_eq!(value(trial, "operations"), 400.0);
    let written = value(trial, "device written bytes");
    assert!(written < 100.0 * 65536.0, "{written} bytes, and 200 files of 64 KiB were made durable between");
}

/// What a measured phase leaves dirty is written back in its own interval, and what ageing leaves in none.
#[test]
fn write_back_belongs_to_the_phase_that_wrote() {
    if !may_use_devices(&["mkfs.ext4", "dumpe2fs"]) {
        return;
    }
    const MIB: f64 = (1 << 20) as f64;
    let phase = |name: &str, measured, files, fsync| {
        let whole = Transfer { block_bytes: 65536, extent: Extent::Whole, pattern: Pattern::FromStart, fsync };
        // One file after the other, so that each is written.
        let write = Action { choice: FileChoice::RoundRobin, ..Action::new("write", Operation::Write(whole), None) };
        let group = ThreadGroup::new(name, 1, Actions::Mix(vec![Weighted { weight: 1, action: write }]));
        let stop = Stop { operations: Some(files), ..Stop::default() };
        Phase { measured, ..Phase::new(name, vec![group], stop) }
    };
    let trial_of = |phases: Vec<Phase>| {
        let work = scratch_directory();
        let mut workload = small_files(64, None);
        workload.filesets[0].size = SizeDistribution::Fixed(1 << 20);
        workload.phases = phases;
        let plan = plan(vec![cell("ext4", "", "", vec![load(workload)])], 1);
        let mut memory = Memory::default();
        carry_out(&plan, &options(work.path()), &[], &mut memory, &Silent, &AtomicBool::new(false))
            .expect("carried out");
        assert_eq!(memory.trials[0].outcome, Outcome::Completed, "{:#?}", memory.trials[0]);
        memory.trials.remove(0)
    };
    // 16 MiB that nobody synced, which the next phase writes again and syncs, before the last measured one.
    let mut last = phase("last", true, 10, false);
    let stat = Action::new("stat", Operation::Stat, None);
    last.groups[0].actions = Actions::Mix(vec![Weighted { weight: 1, action: stat }]);
    let trial = trial_of(vec![phase("before", true, 16, false), phase("ageing", false, 16, true), last]);
    let amplification = value(&trial, "write amplification");
    assert!((0.99..2.0).contains(&amplification), "{amplification}");
    // 64 MiB that nobody synced, ahead of one that is measured.
    let trial = trial_of(vec![phase("ageing", false, 64, false), phase("after", true, 1, false)]);
    let written = value(&trial, "device written bytes");
    assert!((MIB..4.0 * MIB).contains(&written), "{written} bytes");
}

#[test]
fn a_load_on_a_fresh_filesystem_gives_its_figures() {
    if !may_use_devices(&["mkfs.ext4", "e2fsck", "dumpe2fs", "blkid"]) {
        return;
    }
    let work = scratch_directory();
    let mut timed = small_files(50, Some(Duration::from_millis(400)));
    timed.series_interval = Duration::from_millis(50);
    let fsck = || step("fsck", StepAction::Fsck { mode: FsckMode::ReadOnly });
    let fragmentation = || step("fragmentation", StepAction::Fragmentation);
    let cells = vec![
        cell("ext4", "", "", vec![load(small_files(50, None)), fragmentation(), fsck()]),
        cell("ext4", "", "nodelalloc", vec![load(timed), fsck()]),
    ];
    let (mut memory, told) = (Memory::default(), Told::default());
    let mut options = options(work.path());
    options.measure_null = true;
    let end = carry_out(&plan(cells, 1), &options, &[], &mut memory, &told, &AtomicBool::new(false));
    assert_eq!(end.expect("carried out"), RunEnd::Completed);
    assert_clean(work.path());
    for trial in &memory.trials {
        assert_eq!(trial.outcome, Outcome::Completed, "{trial:#?}");
        let report = trial.steps[2].load.as_ref().expect("the engine's report");
        assert_eq!(value(trial, "operations"), report.invocations() as f64);
        let per_second = value(trial, "operations") / value(trial, "execution time");
        assert!((value(trial, "operations per second") / per_second - 1.0).abs() < 1e-6);
        assert!(value(trial, "time") >= value(trial, "execution time") + value(trial, "setup time"));
        assert!(value(trial, "execution time") >= value(trial, "sync time"));
        for metric in
            ["process CPU", "read latency p50", "write latency p99", "create latency p50", "engine cost per operation"]
        {
            assert!(value(trial, metric) > 0.0, "{metric}");
        }
        // The final sync is inside the interval, so what was written has reached the device.
        assert!(value(trial, "write amplification") > 0.2, "{trial:#?}");
        assert!(value(trial, "device written bytes") > 0.0);
        assert!(trial.figure("load", "peak dirty bytes").is_some());
    }
    let of = |cell: u32| memory.trials.iter().find(|trial| trial.id.cell == cell).expect("there");
    assert_eq!(value(of(0), "operations"), 500.0);
    assert!(of(0).figure("fragmentation", "extents per file").expect("counted").value >= 1.0);
    assert!(of(0).figure("fsck", "files used").expect("counted").value > 50.0);
    let told = told.0.into_inner().expect("no panic");
    assert!(told.iter().any(|progress| progress.phase == "run"), "{told:?}");
}

#[test]
fn a_load_in_a_directory_needs_no_rights() {
    let (work, inner) = (scratch_directory(), scratch_directory());
    let mut here = cell("here", "", "", vec![load(small_files(20, None))]);
    here.device = DeviceSpec::Directory { path: Some(work.path().display().to_string()) };
    let mut memory = Memory::default();
    let end =
        carry_out(&plan(vec![here], 2), &options(inner.path()), &[], &mut memory, &Silent, &AtomicBool::new(false));
    assert_eq!(end.expect("carried out"), RunEnd::Completed);
    assert_eq!(memory.trials.len(), 2);
    for trial in &memory.trials {
        assert_eq!(trial.outcome, Outcome::Completed, "{trial:#?}");
        assert_eq!(value(trial, "operations"), 500.0);
    }
    assert_clean(work.path());
    assert_clean(inner.path());
}

#[test]
fn errors_limits_and_cancellations_of_a_load() {
    if !may_use_devices(&["mkfs.ext4", "e2fsck", "dumpe2fs", "blkid"]) {
        return;
    }
    let work = scratch_directory();
    let too_much = || {
        let mut workload = small_files(50, None);
        workload.filesets[0].size = SizeDistribution::Fixed(8 << 20);
        workload
    };
    let mut small = cell("ext4", "", "", vec![load(too_much())]);
    small.device = loop_device(32 << 20);
    let mut endless = cell("ext4", "", "", vec![load(small_files(10, Some(Duration::from_secs(1000))))]);
    endless.steps[2].limit = Duration::from_millis(300);
    let mut memory = Memory::default();
    let plan_of_both = plan(vec![small, endless], 1);
    let end = carry_out(&plan_of_both, &options(work.path()), &[], &mut memory, &Silent, &AtomicBool::new(false));
    assert_eq!(end.expect("carried out"), RunEnd::Completed);
    let told = |cell: u32| {
        let trial = memory.trials.iter().find(|trial| trial.id.cell == cell).expect("tried");
        let reason = trial.outcome.reason().expect("not completed");
        format!("{}: {}: {}", trial.outcome.word(), reason.step, reason.words)
    };
    assert!(told(0).starts_with("failed: load: ") && told(0).contains("No space left on device"), "{}", told(0));
    assert!(told(1).starts_with("hung: load: not done within its limit of 300 ms"), "{}", told(1));

    let cancel = AtomicBool::new(false);
    let endless = cell("ext4", "", "", vec![load(small_files(10, Some(Duration::from_secs(1000))))]);
    let started = Instant::now();
    let end = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(400));
            cancel.store(true, Ordering::Release);
        });
        carry_out(&plan(vec![endless], 1), &options(work.path()), &[], &mut Memory::default(), &Silent, &cancel)
    });
    assert_eq!(end.expect("no error"), RunEnd::Cancelled);
    assert!(started.elapsed() < Duration::from_secs(500), "it did not wait for the load's own end");
    assert_clean(work.path());
}

/// The filesystem that holds the work directory is a small one in memory; the load would fill it up.
#[test]
fn a_full_work_directory_ends_the_trial_before_it_is_full() {
    if !may_use_devices(&["mkfs.ext4", "e2fsck", "dumpe2fs", "blkid", "mount"]) {
        return;
    }
    let directory = scratch_directory();
    let small = directory.path().join("small");
    std::fs::create_dir(&small).expect("made");
    let mounted = Tmpfs::mount(&small, 96 << 20);
    // Slow enough for the watchdog, whose reserve on so small a filesystem is small.
    let script = "for i in $(seq 400); do head -c 1000000 /dev/urandom >> big; sync big; sleep 0.02; done";
    let fill = || {
        step(
            "fill",
            StepAction::Command { argv: vec![script.into()], shell: true, success: Vec::new(), figures: Vec::new() },
        )
    };
    let cells = vec![cell("ext4", "", "", vec![fill()]), cell("ext4", "", "", Vec::new())];
    let mut memory = Memory::default();
    let end = carry_out(&plan(cells, 1), &options(&small), &[], &mut memory, &Silent, &AtomicBool::new(false));
    assert_eq!(end.expect("carried out"), RunEnd::Completed);
    assert_eq!(std::fs::read_dir(&small).expect("listed").count(), 0);
    drop(mounted);
    std::fs::remove_dir(&small).expect("empty");
    assert_clean(directory.path());
    for trial in &memory.trials {
        match (&trial.outcome, trial.id.cell) {
            (Outcome::Failed(reason), 0) => {
                assert!(reason.step == "fill" && reason.words.contains("small/work has only"), "{reason:?}");
            }
            (Outcome::Completed, 1) => {}
            other => panic!("{other:?}"),
        }
        assert!(trial.warnings.iter().any(|words| words.contains("may grow to 400 MiB")), "{:?}", trial.warnings);
    }
}

struct Tmpfs(std::path::PathBuf);

impl Tmpfs {
    fn mount(target: &std::path::Path, size_bytes: u64) -> Self {
        let options = format!("size={size_bytes}");
        let done = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(target)
            .status()
            .expect("mount runs");
        assert!(done.success());
        Self(target.to_owned())
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let done = std::process::Command::new("umount").arg(&self.0).status().expect("umount runs");
        assert!(done.success());
    }
}

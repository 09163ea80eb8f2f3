//! What a run would do, without doing any of it: for `--dry-run`.

use crate::{
    filesystem::{self, OWN_DIRECTORY, OwnPlaces, mount_points},
    place::{
        device::{Devices, KernelDevices},
        undo::IMAGE_NAME,
    },
    run::schedule::block_order,
    trial::{
        beside::{has_other_users, open_place},
        kept_past, maker_device,
        preflight::{Obstacle, obstacle_of_age, obstacle_of_room},
        steps::{Scene, calls},
        who::{GUEST_DEVICE, GUEST_PLACE, Whom, left_out, parts},
    },
};
use fstone_engine::age::expected_files;
use fstone_model::{
    Better, Cell, Plan, Step,
    age::Past,
    own::OwnCommand,
    study::{DeviceSpec, FilesystemSpec, KernelSpec, StepAction},
    units::{format_bytes, format_duration},
};
use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

/// What ageing writes in a second, and what each file takes besides, to tell minutes from hours: a guess, for two cores. In virtual time one
/// processor does it.
const RATE: (f64, f64) = (200e6, 120e-6);
const VIRTUAL_RATE: (f64, f64) = (100e6, 240e-6);

/// What a trial takes besides its loads' own time, measured on small images: attach, mkfs, mount, unmount, fsck.
const OVERHEAD: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    pub cells: Vec<CellDescription>,
    /// Blocks before those that count.
    pub warm_up: u32,
    /// The order of each block that is certain to run: indices of cells.
    pub blocks: Vec<Vec<u32>>,
    /// Blocks that may follow while intervals are too wide.
    pub further_blocks: u32,
    pub within_budget: bool,
    /// Trials of each cell in perturbed guests.
    pub perturbed: u32,
    /// What ageing writes before all else, in a line for each filesystem.
    pub ageing: Vec<String>,
    pub time: TimeEstimate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellDescription {
    pub index: u32,
    pub label: String,
    pub device: String,
    pub kernel: String,
    /// Each step's name and what it does: the exact command where there is one.
    pub steps: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeEstimate {
    /// By the time limits of its loads, for the least number of repeats.
    About(Duration),
    /// The same, but some loads or commands take as long as they take.
    AtLeast(Duration),
    /// As the study's author says.
    Stated(Duration),
    /// Virtual time goes by what the drive does.
    Virtual,
}

impl fmt::Display for TimeEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::About(time) => write!(f, "about {}", format_duration(*time)),
            Self::AtLeast(time) => write!(f, "more than {}", format_duration(*time)),
            Self::Stated(time) => write!(f, "about {} (as the study says)", format_duration(*time)),
            Self::Virtual => f.write_str("known after the first trial, as all are in virtual time"),
        }
    }
}

/// Describes a run. Touches nothing. In place of what is not known before, such as the number of a loop
/// device, stands a letter: `/dev/loopN`.
pub fn describe(plan: &Plan, work_directory: &Path) -> Description {
    let repeats = plan.repeats;
    let blocks = (0..repeats.min).map(|block| block_order(plan, block)).collect();
    let further_blocks = if repeats.until.is_some() { repeats.max.saturating_sub(repeats.min) } else { 0 };
    Description {
        cells: plan.cells.iter().map(|cell| describe_cell(cell, work_directory)).collect(),
        warm_up: plan.warm_up,
        blocks,
        further_blocks,
        within_budget: plan.budget.is_some(),
        perturbed: plan.perturbed,
        ageing: ageing(plan),
        time: estimate(plan),
    }
}

fn describe_cell(cell: &Cell, work_directory: &Path) -> CellDescription {
    let directory = |named: &Option<String>| named.as_ref().map_or_else(|| work_directory.to_owned(), PathBuf::from);
    let device_path = match &cell.device {
        DeviceSpec::Loop { directory: named, .. } if cell.kernel != KernelSpec::Host => {
            directory(named).join(IMAGE_NAME).display().to_string()
        }
        DeviceSpec::Loop { .. } => "/dev/loopN".to_owned(),
        DeviceSpec::Zram { .. } => "/dev/zramN".to_owned(),
        DeviceSpec::Block { path } => path.clone(),
        DeviceSpec::Directory { .. } | DeviceSpec::Scratch { .. } => String::new(),
    };
    let place = match &cell.device {
        DeviceSpec::Directory { path } => directory(path).join("fstone-load-PROCESS"),
        _ => open_place().filter(|_| has_other_users(cell)).unwrap_or_else(|| work_directory.join("mnt")),
    };
    let in_directory = matches!(cell.device, DeviceSpec::Directory { .. });
    let trial = match &cell.device {
        DeviceSpec::Scratch { directory: named } => directory(named),
        _ => work_directory.to_owned(),
    }
    .join("fstone-load-PROCESS");
    let own =
        cell.filesystem.own.as_deref().map(|own| (own, trial.join(OWN_DIRECTORY), mount_points(own, &place, &trial)));
    let host = Scene {
        filesystem: filesystem::find(&cell.filesystem.kind).filter(|_| !in_directory),
        spec: &cell.filesystem,
        device: &device_path,
        named: matches!(cell.device, DeviceSpec::Block { .. }),
        place: &place,
        mounted: false,
        own: own.as_ref().map(|(definition, directory, mounts)| OwnPlaces { definition, directory, mounts }),
    };
    let guest = Scene { device: GUEST_DEVICE, place: Path::new(GUEST_PLACE), ..host };
    let mut mounted = None;
    let obstacle = obstacle_of_age(cell).or_else(|| obstacle_of_room(cell, work_directory, &KernelDevices));
    let steps = cell.steps.iter().map(|step| {
        let what = match &obstacle {
            Some(Obstacle { words, cure, .. }) if matches!(step.action, StepAction::Age(_)) => {
                let cure = cure.as_ref().map(|cure| format!(" (fix: {cure})")).unwrap_or_default();
                let unless = if kept_past(cell).is_some() { ", unless it is kept" } else { "" };
                format!("refused{unless}: {words}{cure}")
            }
            _ => describe_step(cell, step, host, guest, &mut mounted),
        };
        (step.name.clone(), what)
    });
    let mut steps: Vec<(String, String)> = steps.collect();
    // What a trial ends with, whether or not it got that far.
    let remove = host.own.and_then(|own| own.command(OwnCommand::Remove, "", 0));
    steps.extend(remove.map(|command| ("(remove)".to_owned(), command.typed())));

    let mut device = cell.device.describe();
    for (name, value) in &cell.queue {
        device.push_str(&format!(", {name}={value}"));
    }
    let kernel = match &cell.kernel {
        KernelSpec::Host => "the running one".to_owned(),
        KernelSpec::Uml(kernel) => format!("user-mode Linux {kernel}"),
        KernelSpec::Qemu(kernel) => format!("QEMU {kernel}"),
        KernelSpec::Exact(kernel) => format!("user-mode Linux {kernel} in virtual time"),
    };
    CellDescription { index: cell.index, label: cell.label.clone(), device, kernel, steps }
}

/// The very calls that a trial makes, of each agent that has a part in the step.
fn describe_step(cell: &Cell, step: &Step, host: Scene<'_>, guest: Scene<'_>, mounted: &mut Option<Whom>) -> String {
    if let Some(why) = left_out(cell, step) {
        return why.to_owned();
    }
    if host.filesystem.is_none() && host.own.is_none() && !matches!(cell.device, DeviceSpec::Directory { .. }) {
        return format!("fstone has no adapter for {}", cell.filesystem.kind);
    }
    let mut told = Vec::new();
    for (whom, part) in parts(cell, step, *mounted) {
        let (scene, where_) = if whom == Whom::Host { (host, "") } else { (guest, "in the guest: ") };
        let has_it = *mounted == Some(whom);
        let what = match calls(&Scene { mounted: has_it, ..scene }, &part) {
            Ok(calls) => {
                match (has_it, calls.leave_mounted(has_it)) {
                    (false, true) => *mounted = Some(whom),
                    (true, false) => *mounted = None,
                    _ => {}
                }
                calls.typed()
            }
            Err(outcome) => outcome.reason().map(|reason| reason.words.clone()).unwrap_or_default(),
        };
        told.push(format!("{where_}{what}"));
    }
    let mut told = told.join("; ");
    if step.background {
        told.insert_str(0, "beside the next load or command: ");
    }
    if let StepAction::Command { figures, .. } = &step.action
        && !figures.is_empty()
    {
        let names: Vec<String> = figures
            .iter()
            .map(|figure| match figure.better {
                Better::Neither => format!("{} (neither direction is better)", figure.name),
                _ => figure.name.clone(),
            })
            .collect();
        told.push_str(&format!("  (prints {})", names.join(", ")));
    }
    told
}

fn estimate(plan: &Plan) -> TimeEstimate {
    if let Some(budget) = plan.budget {
        return TimeEstimate::About(budget.time);
    }
    if plan.cells.iter().all(|cell| cell.kernel.is_exact()) {
        return TimeEstimate::Virtual;
    }
    if let Some(stated) = plan.expected_duration {
        return TimeEstimate::Stated(stated);
    }
    let mut open_ended = false;
    let mut block = Duration::ZERO;
    for cell in &plan.cells {
        block += OVERHEAD;
        for step in &cell.steps {
            match &step.action {
                _ if step.background => {}
                StepAction::Load(workload) => match workload.time_limit() {
                    Some(time) if !time.is_zero() => {
                        block += time;
                        // Even on a fast disk its files take more than a tenth of that.
                        open_ended |= workload.built_bytes() / 1_000_000_000 > time.as_secs() / 10;
                    }
                    _ => open_ended = true,
                },
                // How fast, the run itself finds out.
                StepAction::Age(past) => open_ended |= past.image().is_none(),
                StepAction::Command { .. } | StepAction::CopyIn { .. } | StepAction::Service(_) => open_ended = true,
                _ => {}
            }
        }
    }
    let time = block * (plan.warm_up + plan.repeats.min);
    if open_ended { TimeEstimate::AtLeast(time) } else { TimeEstimate::About(time) }
}

/// What each aged filesystem takes once; one that is the same in two cells is made once, if images of it are kept.
fn ageing(plan: &Plan) -> Vec<String> {
    let mut known = Vec::new();
    let mut lines = Vec::new();
    for cell in &plan.cells {
        let Some(Past::Aged(age)) = cell.past() else { continue };
        let once = kept_past(cell).is_some() || matches!(cell.device, DeviceSpec::Directory { .. });
        let filesystem = FilesystemSpec { name: String::new(), ..cell.filesystem.clone() };
        let mut device = maker_device(&cell.device);
        if let DeviceSpec::Loop { in_memory, directory, .. } = &mut device {
            // Its blocks are the same wherever they are.
            (*in_memory, *directory) = (false, None);
        }
        let life = (filesystem, device, &cell.kernel, age);
        if once && known.contains(&life) {
            continue;
        }
        known.push(life);
        let times = match (&cell.device, once) {
            (DeviceSpec::Directory { .. }, _) => 1,
            (_, true) if age.seed.is_some() => 1,
            (_, true) => plan.repeats.min,
            (_, false) => plan.repeats.min + plan.warm_up,
        };
        let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
        let place = cell.device.describe();
        let overwrites = age.overwrites;
        let whole = match &cell.device {
            // Whatever else is there.
            DeviceSpec::Directory { path: Some(path) } => {
                KernelDevices.space(Path::new(path)).ok().map(|space| space.total_bytes)
            }
            device => device.size_bytes(),
        };
        let place = match (&cell.device, whole) {
            (DeviceSpec::Directory { .. }, Some(bytes)) => {
                format!("{place}, whose filesystem has {}", format_bytes(bytes))
            }
            _ => format!("{}, {place}", cell.filesystem.kind),
        };
        lines.push(match whole {
            Some(size) => {
                // The filesystem, whose size ageing multiplies, is smaller.
                let bytes = overwrites * size as f64;
                let (rate, of_file) = if cell.kernel.is_exact() { VIRTUAL_RATE } else { RATE };
                let files = expected_files(age, bytes);
                let time = Duration::from_secs((bytes / rate + files * of_file).ceil() as u64);
                let (bytes, rate, of_file) = (format_bytes(bytes as u64), rate / 1e6, of_file * 1e6);
                let unless = match &cell.device {
                    DeviceSpec::Directory { .. } => ", unless it was aged before",
                    _ if once => ", unless it is kept",
                    _ => "",
                };
                let time = format_duration(time);
                format!(
                    "{place}: {times} at most {bytes} in {files:.0} files, {time} at {rate} MB/s and {of_file:.0} µs a file{unless}"
                )
            }
            None => format!("{place}: {times} {overwrites} times the size of its filesystem"),
        });
    }
    lines
}

fn counted(warm_up: u32) -> String {
    if warm_up == 1 { "a warm-up block".to_owned() } else { format!("{warm_up} warm-up blocks") }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for cell in &self.cells {
            writeln!(f, "{:>3}  {}", cell.index + 1, cell.label)?;
            writeln!(f, "     on {}, kernel: {}", cell.device, cell.kernel)?;
            let width = cell.steps.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
            for (name, what) in &cell.steps {
                writeln!(f, "     {name:width$}  {what}")?;
            }
        }
        writeln!(f, "Order")?;
        if self.warm_up > 0 {
            writeln!(f, "     first {}, not recorded", counted(self.warm_up))?;
        }
        for (number, block) in self.blocks.iter().enumerate() {
            let cells: Vec<String> = block.iter().map(|cell| (cell + 1).to_string()).collect();
            writeln!(f, "     block {}: {}", number + 1, cells.join(" "))?;
        }
        if self.further_blocks > 0 {
            writeln!(
                f,
                "     then at most {} more, of the cells whose intervals are still too wide",
                self.further_blocks
            )?;
        }
        if self.perturbed > 0 {
            writeln!(f, "     then {} of each in perturbed guests", self.perturbed)?;
        }
        if self.within_budget {
            writeln!(f, "     then blocks of the cells that are not told apart, while there is time")?;
        }
        for line in &self.ageing {
            writeln!(f, "Ageing: {line}")?;
        }
        writeln!(f, "Time: {}{}", self.time, if self.ageing.is_empty() { "" } else { ", besides ageing" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use fstone_model::{
        age::{Age, Class, Profile},
        study::{FsckMode, Repeats},
    };
    use std::sync::Arc;

    #[test]
    fn ageing_takes_a_time_that_only_the_run_knows() {
        let sizes = vec![Class { up_to: 0.0, weight: 0.0 }, Class { up_to: 8192.0, weight: 1.0 }];
        let profile = Profile { sizes, ..Profile::default() };
        let age = Age { profile, utilization: 0.8, overwrites: 10.0, compressible: 0.0, seed: None };
        let aged = testing::cell(0, "ext4", "", &[testing::step("age", StepAction::Age(Arc::new(age.into())))]);
        let plan = testing::plan(vec![aged], Repeats { min: 2, max: 2, until: None });
        assert_eq!(estimate(&plan), TimeEstimate::AtLeast(Duration::from_secs(2)));
        assert_eq!(
            ageing(&plan),
            [
                "ext4, loop 400 MiB: 2 times at most 3.91 GiB in 789590 files, 1 min 56 s at 200 MB/s and 120 µs a file, unless it is kept"
            ]
        );
    }

    #[test]
    fn every_step_is_spelled_out() {
        let command = |name: &str, argv: &[&str], shell| {
            let argv = argv.iter().map(|word| (*word).to_owned()).collect();
            testing::step(name, StepAction::Command { argv, shell, success: Vec::new(), figures: Vec::new() })
        };
        let steps = [
            command("tar", &["tar", "cf", "/dev/zero", "{mount}"], false),
            command("build", &["make defconfig && make -j8"], true),
            testing::step("remount", StepAction::Remount),
            testing::step("drop", StepAction::DropCaches),
            testing::step("trim", StepAction::Trim),
            testing::step("extents", StepAction::Fragmentation),
            testing::step("copy", StepAction::CopyIn { source: "/usr/src/a b".into(), target: "src".into() }),
            testing::step("fsck", StepAction::Fsck { mode: FsckMode::Repair }),
        ];
        let mut ext4 = testing::cell(0, "ext4", "data=writeback", &steps);
        ext4.filesystem.mkfs = vec!["-I".into(), "256".into()];
        ext4.queue = vec![("scheduler".into(), "none".into())];
        let mut directory = testing::cell(1, "here", "", &[]);
        directory.device = DeviceSpec::Directory { path: None };
        let plan = testing::plan(vec![ext4, directory], Repeats { min: 2, max: 5, until: Some(0.02) });
        insta::assert_snapshot!(describe(&plan, Path::new("/var/tmp/fstone")), @r#"
          1  ext4 0
             on loop 400 MiB, scheduler=none, kernel: the running one
             mkfs     mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 -I 256 /dev/loopN
             mount    mount -t ext4 -o data=writeback /dev/loopN /var/tmp/fstone/mnt
             tar      tar cf /dev/zero /var/tmp/fstone/mnt
             build    sh -c 'make defconfig && make -j8'
             remount  sync -f /var/tmp/fstone/mnt; umount /var/tmp/fstone/mnt; sh -c 'sync; echo 3 > /proc/sys/vm/drop_caches'; mount -t ext4 -o data=writeback /dev/loopN /var/tmp/fstone/mnt
             drop     sync -f /var/tmp/fstone/mnt; sh -c 'sync; echo 3 > /proc/sys/vm/drop_caches'
             trim     fstrim /var/tmp/fstone/mnt
             extents  count the extents of every file (FIEMAP)
             copy     cp -R -P --preserve=timestamps -- '/usr/src/a b' /var/tmp/fstone/mnt/src
             fsck     sync -f /var/tmp/fstone/mnt; umount /var/tmp/fstone/mnt; e2fsck -fy /dev/loopN
          2  here 1
             on directory (work directory), kernel: the running one
             mkfs   left out: fstone does not make, mount or check a directory
             mount  left out: fstone does not make, mount or check a directory
        Order
             block 1: 1 2
             block 2: 1 2
             then at most 3 more, of the cells whose intervals are still too wide
        Time: more than 4 s
        "#);
    }

    #[test]
    fn who_makes_a_step_is_told() {
        let steps = [testing::step("fsck", StepAction::Fsck { mode: FsckMode::ReadOnly })];
        let told = |kernel, kind| {
            let mut cell = testing::cell(0, kind, "", &steps);
            cell.kernel = kernel;
            describe_cell(&cell, Path::new("/w")).steps.into_iter().map(|(_, what)| what).collect::<Vec<_>>()
        };
        let guest = "/run/fstone/work/mnt";
        assert_eq!(
            told(KernelSpec::Uml("6.1".into()), "ext4")[1..],
            [
                format!("in the guest: mount -t ext4 /dev/vda {guest}"),
                format!("in the guest: sync -f {guest}; umount {guest}; e2fsck -fn /w/fstone-scratch.img"),
            ]
        );
        let exact = told(KernelSpec::Exact("6.1".into()), "ext4");
        assert!(exact.iter().all(|what| what.starts_with("in the guest: ")), "{exact:?}");
    }

    #[test]
    fn the_estimate_says_what_it_is() {
        let repeats = Repeats { min: 3, max: 3, until: None };
        let plan = testing::plan(vec![testing::cell(0, "ext4", "", &[]), testing::cell(1, "xfs", "", &[])], repeats);
        assert_eq!(estimate(&plan).to_string(), "about 6 s");
        let budget = fstone_model::study::Budget { time: Duration::from_secs(300), resolution: 0.05 };
        let within = Plan { budget: Some(budget), ..plan.clone() };
        assert_eq!(estimate(&within).to_string(), "about 5 min");
        assert!(
            describe(&within, Path::new("/w")).to_string().contains("then blocks of the cells that are not told apart")
        );
        let stated = Plan { expected_duration: Some(Duration::from_secs(90)), ..plan };
        assert_eq!(estimate(&stated).to_string(), "about 1 min 30 s (as the study says)");
    }
}

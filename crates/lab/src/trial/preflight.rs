//! What speaks against a cell before anything is touched.

use super::{aged::is_of_an_image, steps::cure};
use crate::{
    agent::is_hidden_in_guests,
    filesystem::{self, Filesystem},
    inventory::package_of,
    machine::Machine,
    place::{
        device::Devices,
        mount::{MountOption, MountOptions},
    },
};
use fstone_engine::age::{MORE_INODES, expected_files};
use fstone_model::{
    Cell, Outcome, Step,
    age::Past,
    mkfs::lists,
    outcome::{KERNEL_LACKS, Reason},
    own::{OwnCommand, OwnFilesystem},
    study::{DeviceSpec, KernelSpec, StepAction},
    units::format_bytes,
};
use std::path::Path;

/// The share of a device that is certainly the files'.
const WITHOUT_METADATA: f64 = 0.9;

/// Why a cell cannot be tried here. It becomes the outcome of its first trial and there is no second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    pub step: String,
    pub words: String,
    pub cure: Option<String>,
    /// Whether it is the study's fault (refused) or the machine's (skipped).
    pub refused: bool,
}

impl Obstacle {
    fn skipped(step: &str, words: impl Into<String>) -> Self {
        Self { step: step.to_owned(), words: words.into(), cure: None, refused: false }
    }

    fn with_cure(mut self, cure: impl Into<String>) -> Self {
        self.cure = Some(cure.into());
        self
    }

    pub fn outcome(&self) -> Outcome {
        let mut reason = Reason::new(&self.step, &self.words);
        reason.cure.clone_from(&self.cure);
        if self.refused { Outcome::Refused(reason) } else { Outcome::Skipped(reason) }
    }
}

/// The first thing that speaks against a cell. Touches nothing.
pub fn preflight(cell: &Cell, machine: &Machine) -> Option<Obstacle> {
    let missing_program = |cell: &Cell| {
        cell.steps.iter().find_map(|step| {
            let programs: Vec<&String> = match &step.action {
                StepAction::Command { argv, shell: false, .. } => argv.first().into_iter().collect(),
                StepAction::Service(service) => service.commands().filter_map(|(_, words)| words.first()).collect(),
                _ => Vec::new(),
            };
            // A program named relative to the mounted filesystem comes to be by an earlier step.
            let missing = |program: &&String| !program.contains(['/', '{']) && machine.runner.find(program).is_none();
            programs.into_iter().find(missing).map(|program| {
                let obstacle = Obstacle::skipped(&step.name, format!("{program} is not installed"));
                let cure = package_of(program).map(|package| format!("apt-get install {package}"));
                Obstacle { cure, ..obstacle }
            })
        })
    };
    if let Some(obstacle) =
        obstacle_of_ranks(cell, machine).or_else(|| obstacle_of_replay(cell)).or_else(|| obstacle_of_age(cell))
    {
        return Some(obstacle);
    }
    let in_guest = cell.kernel != KernelSpec::Host;
    let beside = cell.steps.iter().find(|step| step.background || matches!(step.action, StepAction::Service(_)));
    if let Some(step) = beside.filter(|_| in_guest) {
        let words = "services and steps in the background run on this machine's kernel, not in a guest";
        return Some(Obstacle { refused: true, ..Obstacle::skipped(&step.name, words) }.with_cure("--executor host"));
    }
    if let Some(own) = &cell.filesystem.own {
        return obstacle_of_own(cell, own, machine).or_else(|| missing_program(cell));
    }
    if cell.device.model().is_some() && !cell.kernel.is_exact() {
        let words = "a modelled drive works in virtual time only";
        return Some(
            Obstacle::skipped("device", words).with_cure("run it with --exact, or kernel = [\"exact:VERSION\"]"),
        );
    }
    let cuts = cell.steps.iter().find(|step| matches!(step.action, StepAction::PowerCut(_)));
    if let Some(step) = cuts.filter(|_| !in_guest) {
        let words = "power cuts need a guest (user-mode Linux or QEMU), because its disk is fstone's own";
        let obstacle = Obstacle { refused: true, ..Obstacle::skipped(&step.name, words) };
        return Some(obstacle.with_cure("--executor uml"));
    }
    if in_guest && !matches!(cell.device, DeviceSpec::Loop { .. }) {
        let words = format!("a guest's disk is an image, and cannot be {}", cell.device.describe());
        return Some(Obstacle::skipped("device", words).with_cure("device = { loop = { size = \"…\" } }"));
    }
    if matches!(cell.device, DeviceSpec::Directory { .. }) {
        return missing_program(cell);
    }
    let kind = &cell.filesystem.kind;
    let Some(filesystem) = filesystem::find(kind) else {
        return Some(Obstacle::skipped("mkfs", format!("fstone has no adapter for {kind}")));
    };
    if let Some(why) = filesystem.unusable() {
        return Some(Obstacle::skipped("mkfs", why));
    }
    if !in_guest && !machine.privileged {
        let cure = match cell.device {
            DeviceSpec::Loop { .. } => "run it with sudo, or add --executor uml",
            // No guest can have it.
            _ => "run it with sudo",
        };
        return Some(Obstacle::skipped("mount", "making and mounting filesystems needs root").with_cure(cure));
    }
    reaches_further(cell, filesystem)
        .or_else(|| missing_tool(filesystem, machine))
        .or_else(|| too_small(cell, filesystem))
        .or_else(|| {
            let name = filesystem.kernel_name();
            // What a guest's kernel has, it says itself.
            (!in_guest && !machine.mounter.kernel_has(name)).then(|| {
                Obstacle::skipped("mount", format!("{KERNEL_LACKS}{name}"))
                    .with_cure("fstone run … --missing uml, where user-mode Linux has it")
            })
        })
        .or_else(|| missing_program(cell))
}

fn obstacle_of_replay(cell: &Cell) -> Option<Obstacle> {
    let is_hidden = |step: &&Step| step.replay().is_some_and(|replay| is_hidden_in_guests(Path::new(&replay.file)));
    let step = cell.steps.iter().find(is_hidden).filter(|_| cell.kernel != KernelSpec::Host)?;
    let words = "a guest has directories of its own in place of /dev, /proc, /run and /sys, and does not see the recording there";
    Some(Obstacle { refused: true, ..Obstacle::skipped(&step.name, words) }.with_cure("keep the study elsewhere"))
}

/// What cannot be aged, as far as that is known before anything is made.
pub(crate) fn obstacle_of_age(cell: &Cell) -> Option<Obstacle> {
    let (step, past) = cell.steps.iter().find_map(|step| match &step.action {
        StepAction::Age(past) => Some((step, past)),
        _ => None,
    })?;
    let Past::Aged(age) = &**past else { return obstacle_of_image(cell) };
    let refused = |words: &str| Obstacle { refused: true, ..Obstacle::skipped(&step.name, words) };
    if cell.device == (DeviceSpec::Directory { path: None }) {
        let words = "ageing fills the whole filesystem of a directory, which the study has to name";
        return Some(refused(words).with_cure("device = { loop = { size = \"…\" } }, or --device directory:/path"));
    }
    let size_bytes = cell.device.size_bytes()?;
    let inodes = filesystem::find(&cell.filesystem.kind)?.inodes(&cell.filesystem.mkfs, size_bytes)?;
    let files = expected_files(age, age.utilization * size_bytes as f64 * WITHOUT_METADATA);
    let words =
        format!("profile {} needs more than {files:.0} files, and there are {inodes:.0} inodes", age.profile.name);
    (files > inodes).then(|| refused(&words).with_cure(MORE_INODES))
}

/// Why what ageing leaves in an image has no room in the directory where images are made, as far as that is certain: a copy of what is kept
/// may be by reference, or take the room of what is removed then.
pub(crate) fn obstacle_of_room(cell: &Cell, work_directory: &Path, devices: &dyn Devices) -> Option<Obstacle> {
    let DeviceSpec::Loop { size_bytes, directory, in_memory: false, .. } = &cell.device else { return None };
    let (step, age) = cell.steps.iter().find_map(|step| match &step.action {
        StepAction::Age(past) => match &**past {
            Past::Aged(age) => Some((step, age)),
            Past::Image(_) => None,
        },
        _ => None,
    })?;
    let named = directory.as_ref().map_or(work_directory, Path::new);
    // It may not have been made yet.
    let directory = named.ancestors().find(|path| path.exists())?;
    let space = devices.space(directory).ok()?;
    let room = space.free_bytes.saturating_sub(space.reserve_bytes());
    let needed = age.utilization * *size_bytes as f64 * WITHOUT_METADATA;
    let words = || {
        let [needed, room] = [needed as u64, room].map(format_bytes);
        format!("ageing leaves about {needed} in the image; {} has room for {room}", directory.display())
    };
    let place = if named == work_directory { "--work-directory on" } else { "a directory of" };
    let cure = format!("a smaller device, a lower utilization, or {place} a larger disk");
    (needed > room as f64).then(|| Obstacle { refused: true, ..Obstacle::skipped(&step.name, words()) }.with_cure(cure))
}

/// Only an image of fstone's own becomes a copy of an old one, and the log of a guest's disk begins with mkfs.
fn obstacle_of_image(cell: &Cell) -> Option<Obstacle> {
    let step = cell.steps.iter().find(|step| is_of_an_image(step))?;
    let refused = |words: String| Obstacle { refused: true, ..Obstacle::skipped(&step.name, words) };
    if cell.steps.iter().any(|step| matches!(step.action, StepAction::PowerCut(_))) {
        return Some(refused("power cuts need a filesystem that is made in the trial".to_owned()));
    }
    let is_loop = matches!(cell.device, DeviceSpec::Loop { .. });
    let words = || format!("an old image cannot be copied to {}", cell.device.describe());
    (!is_loop).then(|| refused(words()).with_cure("device = { loop = { size = \"…\" } }"))
}

fn obstacle_of_ranks(cell: &Cell, machine: &Machine) -> Option<Obstacle> {
    let launched = cell.steps.iter().find_map(|step| match &step.action {
        StepAction::Load(load) => load.launch.as_ref().map(|launch| (step, launch)),
        _ => None,
    });
    let (step, launch) = launched?;
    let program = launch.program();
    if cell.kernel != KernelSpec::Host {
        let words = "the ranks of a load are processes of this machine, and cannot be started in a guest";
        return Some(Obstacle { refused: true, ..Obstacle::skipped(&step.name, words) }.with_cure("--executor host"));
    }
    if launch.is_of_slurm() && !matches!(cell.device, DeviceSpec::Directory { .. }) {
        let words =
            format!("{program} starts ranks on the nodes of a cluster, where the mounts of this trial do not exist");
        let cure = "measure a directory that all nodes see (--device directory:/path), or launch = \"mpirun\"";
        return Some(Obstacle { refused: true, ..Obstacle::skipped(&step.name, words) }.with_cure(cure));
    }
    if program.contains('/') || machine.runner.find(program).is_some() {
        return None;
    }
    let package = if launch.is_of_slurm() { "slurm-client" } else { "openmpi-bin" };
    let words = format!("{program}, which starts the ranks, is not installed");
    Some(Obstacle::skipped(&step.name, words).with_cure(format!("apt-get install {package}")))
}

/// What speaks against a filesystem of the study's own. What its scripts need is seen when they run.
fn obstacle_of_own(cell: &Cell, own: &OwnFilesystem, machine: &Machine) -> Option<Obstacle> {
    let name = &cell.filesystem.kind;
    if cell.kernel != KernelSpec::Host {
        let words = format!("{name} is described by the study itself and cannot be made in a guest");
        return Some(Obstacle { refused: true, ..Obstacle::skipped("mkfs", words) }.with_cure("--executor host"));
    }
    if !machine.privileged {
        let words = "making and mounting filesystems needs root";
        return Some(Obstacle::skipped("mount", words).with_cure("run it with sudo"));
    }
    let cuts = cell.steps.iter().find(|step| matches!(step.action, StepAction::PowerCut(_)));
    if let Some(step) = cuts {
        let words = "power cuts need a guest, but a filesystem that the study describes is made on the host";
        return Some(Obstacle { refused: true, ..Obstacle::skipped(&step.name, words) });
    }
    own.commands().find_map(|(which, words)| {
        let program = words.first()?;
        // One that is named by a place of the trial comes to be by `make`.
        if program.contains('{') || machine.runner.find(program).is_some() {
            return None;
        }
        let step = if which == OwnCommand::Make { "mkfs" } else { "mount" };
        let obstacle = Obstacle::skipped(step, format!("{program} is not installed, which `{}` runs", which.word()));
        Some(Obstacle { cure: cure(own), ..obstacle })
    })
}

/// mkfs and mount get the scratch device from us; a study's options that name any other path (an external journal or
/// log, a second device of a btrfs) would have something written that nobody allowed. Options that the adapter does not list
/// may run programs, or name a device in a way that is not known here.
fn reaches_further(cell: &Cell, filesystem: &dyn Filesystem) -> Option<Obstacle> {
    let refused = |step: &str, option: &str| Obstacle {
        step: step.to_owned(),
        words: format!(
            "{option:?} names a file or device besides the scratch device, which fstone never lets be written"
        ),
        cure: None,
        refused: true,
    };
    let tagged = |word: &str| ["UUID=", "LABEL=", "PARTUUID=", "PARTLABEL="].iter().any(|tag| word.contains(tag));
    let of_mkfs = cell.filesystem.mkfs.iter().find(|word| word.contains('/') || tagged(word));
    if let Some(word) = of_mkfs {
        return Some(refused("mkfs", word));
    }
    if let Some(word) = filesystem.facts().mkfs_options.unsafe_word(&cell.filesystem.mkfs) {
        return Some(Obstacle {
            step: "mkfs".to_owned(),
            words: format!("{word:?} is not an option of {} that fstone knows to be safe", filesystem.facts().tools[0]),
            cure: Some("leave it out; options that run programs or name files are never used".to_owned()),
            refused: true,
        });
    }
    let options = MountOptions::parse(&cell.filesystem.mount);
    let valued = options.filesystem.iter().filter_map(|option| match option {
        MountOption::Value(name, value) => Some((name, value)),
        // Without a value it leads nowhere.
        MountOption::Flag(_) => None,
    });
    let mut obstacles = valued.filter_map(|(name, value)| {
        let typed = format!("{name}={value}");
        let known = lists(filesystem.facts().mount_values, name) || OF_SECURITY.contains(&name.as_str());
        // A subvolume's path is inside the filesystem.
        if name != "subvol" && (value.contains('/') || tagged(value)) {
            Some(refused("mount", &typed))
        } else if !known {
            Some(Obstacle {
                step: "mount".to_owned(),
                words: format!("{typed:?} is not an option of {} that fstone knows to be safe", filesystem.kind()),
                cure: Some("leave it out; an option with a value may name another device".to_owned()),
                refused: true,
            })
        } else if value == "panic" && cell.kernel == KernelSpec::Host {
            Some(Obstacle {
                step: "mount".to_owned(),
                words: format!("{typed:?} would end this machine's kernel at the first error"),
                cure: Some("use another value, or a guest's kernel".to_owned()),
                refused: true,
            })
        } else {
            None
        }
    });
    let panics = cell.filesystem.mkfs.iter().find(|word| word.ends_with("panic") && cell.kernel == KernelSpec::Host);
    obstacles.next().or_else(|| {
        panics.map(|word| Obstacle {
            step: "mkfs".to_owned(),
            words: format!("{word:?} would end this machine's kernel at the first error"),
            cure: Some("use another value, or a guest's kernel".to_owned()),
            refused: true,
        })
    })
}

/// Mount options that any filesystem has from the security modules; the values are labels.
const OF_SECURITY: [&str; 4] = ["context", "defcontext", "fscontext", "rootcontext"];

fn missing_tool(filesystem: &dyn Filesystem, machine: &Machine) -> Option<Obstacle> {
    let tool = filesystem.facts().tools.iter().find(|tool| machine.runner.find(tool).is_none())?;
    let step = if tool.starts_with("mkfs") { "mkfs" } else { "fsck" };
    let obstacle = Obstacle::skipped(step, format!("{tool} is not installed"));
    Some(obstacle.with_cure(format!("apt-get install {}", filesystem.facts().package)))
}

fn too_small(cell: &Cell, filesystem: &dyn Filesystem) -> Option<Obstacle> {
    let size = cell.device.size_bytes()?;
    let minimum = filesystem.facts().minimum_bytes;
    (size < minimum).then(|| Obstacle {
        step: "mkfs".into(),
        words: format!(
            "{} needs {} and the device has {}",
            filesystem.kind(),
            format_bytes(minimum),
            format_bytes(size)
        ),
        cure: Some("make the study's device larger".into()),
        refused: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        command::FakeRunner,
        place::{device::FakeDevices, mount::FakeMounter},
        testing,
    };
    use fstone_model::age::{Age, Profile};
    use std::sync::Arc;

    #[test]
    fn ageing_without_room_for_what_it_leaves_is_refused_before_it_begins() {
        let (work, devices) = (tempfile::tempdir().expect("a directory"), FakeDevices::new());
        let age = |utilization| Age {
            profile: Profile::default(),
            utilization,
            overwrites: 1.0,
            compressible: 0.0,
            seed: None,
        };
        let cell = |utilization, in_memory, kernel| {
            let step = testing::step("age", StepAction::Age(Arc::new(age(utilization).into())));
            let mut cell = Cell { kernel, ..testing::cell(0, "ext4", "", &[step]) };
            cell.device = testing::loop_device(100 << 30);
            if let DeviceSpec::Loop { in_memory: it, .. } = &mut cell.device {
                *it = in_memory;
            }
            cell
        };
        let refused = |cell: &Cell, free_gib: u64| {
            devices.set_free_bytes(free_gib << 30);
            obstacle_of_room(cell, &work.path().join("not there yet"), &devices)
        };
        let host = cell(0.8, false, KernelSpec::Host);
        assert_eq!(refused(&host, 80), None);
        let words = refused(&host, 11).expect("no room").words;
        assert!(words.starts_with("ageing leaves about 72 GiB in the image; ") && words.ends_with("GiB"), "{words}");
        assert_eq!(refused(&cell(0.8, true, KernelSpec::Host), 1), None, "that is memory's");
        assert_eq!(refused(&testing::cell(0, "ext4", "", &[]), 0), None);
    }

    #[test]
    fn options_that_lead_to_another_device_are_refused() {
        let refused_by = |kind: &str, mkfs: &[&str], mount: &str| {
            let mut cell = testing::cell(0, kind, mount, &[]);
            cell.filesystem.mkfs = mkfs.iter().map(|word| (*word).to_owned()).collect();
            preflight(&cell, &Machine::fake()).is_some_and(|obstacle| obstacle.refused)
        };
        let refused = |mkfs: &[&str], mount: &str| refused_by("ext4", mkfs, mount);
        for mkfs in [
            &["/dev/sdb"][..],
            &["-f", "-d", "single", "../../dev/sdb"],
            &["-J", "device=/dev/sdb"],
            &["-Jdevice=/dev/sdb"],
            &["-J", "device=LABEL=journal"],
            &["-J", "device=UUID=0123"],
            &["-l", "logdev=/dev/sdb,size=64m"],
            &["-d", "name=/dev/sdb"],
        ] {
            assert!(refused(mkfs, ""), "{mkfs:?}");
        }
        for mount in [
            "logdev=/dev/sdb",
            "noatime,device=/dev/sdb",
            "journal_path=/dev/sdb",
            "journal_dev=0x811",
            "source=x",
            "jdev=x",
            "data=writeback,no_such_option=sdb",
            "errors=panic",
        ] {
            assert!(refused(&[], mount), "{mount}");
        }
        for (kind, mkfs, mount) in [
            ("ext4", &["-I", "256", "-O", "uninit_bg,flex_bg", "-G", "64"][..], "data=writeback,nomballoc,nodelalloc"),
            ("xfs", &["-l", "lazy-count=1,size=64m", "-d", "agcount=16"], "logbufs=8,noatime"),
            ("btrfs", &["-m", "single"], "subvol=/a,compress=zstd:3"),
            ("ext4", &[], "no_such_option,errors=remount-ro,context=\"a:b,c\""),
        ] {
            assert!(!refused_by(kind, mkfs, mount), "{mkfs:?} {mount}");
        }
    }

    #[test]
    fn a_missing_program_is_named_with_what_installs_it() {
        let argv = vec!["rsync".to_owned(), "-a".to_owned()];
        let command = StepAction::Command { argv, shell: false, success: vec![0], figures: Vec::new() };
        let mut machine = Machine::fake();
        let mut cell = testing::cell(0, "ext4", "", &[testing::step("copy", command)]);
        assert_eq!(preflight(&cell, &machine), None);
        machine.runner = Arc::new(FakeRunner::new().without("rsync"));
        let obstacle = preflight(&cell, &machine).expect("it is missing");
        assert_eq!((obstacle.words.as_str(), obstacle.refused), ("rsync is not installed", false));
        assert_eq!(obstacle.cure.as_deref(), Some("apt-get install rsync"));
        if let Some(step) = cell.steps.last_mut() {
            step.background = true;
        }
        cell.kernel = KernelSpec::Uml("6.1".into());
        assert!(preflight(&cell, &machine).expect("not in a guest").refused);
    }

    #[test]
    fn options_that_run_programs_are_refused() {
        let mut cell = testing::cell(0, "squashfs", "ro", &[]);
        cell.filesystem.mkfs = vec!["-p".to_owned(), "x f 644 0 0 id".to_owned()];
        let obstacle = preflight(&cell, &Machine::fake()).expect("it would run id");
        assert!(
            obstacle.refused && obstacle.words.contains("\"-p\" is not an option of mksquashfs"),
            "{}",
            obstacle.words
        );
        cell.filesystem.mkfs = vec!["-comp".to_owned(), "zstd".to_owned()];
        assert_eq!(preflight(&cell, &Machine::fake()).filter(|obstacle| obstacle.refused), None);
    }

    #[test]
    fn each_obstacle_is_told_with_its_cure() {
        let cell = testing::cell(0, "ext4", "", &[]);
        let mut machine = Machine::fake();
        assert_eq!(preflight(&cell, &machine), None);

        machine.runner = Arc::new(FakeRunner::new().without("e2fsck"));
        let obstacle = preflight(&cell, &machine).expect("e2fsck is missing");
        assert_eq!((obstacle.step.as_str(), obstacle.cure.as_deref()), ("fsck", Some("apt-get install e2fsprogs")));
        assert!(matches!(obstacle.outcome(), Outcome::Skipped(_)));

        let mut machine = Machine::fake();
        machine.mounter = Arc::new(FakeMounter::new().without("ext4"));
        assert!(preflight(&cell, &machine).expect("no ext4").words.contains("kernel has no ext4"));

        let mut machine = Machine::fake();
        machine.privileged = false;
        let obstacle = preflight(&cell, &machine).expect("no root");
        assert!(obstacle.words.contains("root"));
        assert_eq!(obstacle.cure.as_deref(), Some("run it with sudo, or add --executor uml"));
        let mut named = cell.clone();
        named.device = DeviceSpec::Block { path: "/dev/sdx".into() };
        assert_eq!(preflight(&named, &machine).expect("no root").cure.as_deref(), Some("run it with sudo"));

        let mut small = testing::cell(0, "xfs", "", &[]);
        small.device = testing::loop_device(100 << 20);
        let obstacle = preflight(&small, &Machine::fake()).expect("too small");
        assert_eq!(obstacle.words, "xfs needs 300 MiB and the device has 100 MiB");
        assert!(matches!(obstacle.outcome(), Outcome::Refused(_)));

        let reiser4 = testing::cell(0, "reiser4", "", &[]);
        assert!(preflight(&reiser4, &Machine::fake()).expect("unusable").words.contains("never merged"));
        let unknown = testing::cell(0, "zfs", "", &[]);
        assert!(preflight(&unknown, &Machine::fake()).expect("unknown").words.contains("no adapter for zfs"));
    }
}

//! What a step does, as calls that can be looked at before any of them is made.
//!
//! A session makes them one by one; `--dry-run` prints them. Both get them from [`calls`], so they cannot differ.

use crate::{
    command::{CommandLine, typed},
    filesystem::{self, Filesystem, OwnPlaces},
    place::{AGED_BENEATH, mount::MountRequest},
    trial::beside::{fill, service_command, user},
};
use fstone_model::{
    Outcome, Step, Workload,
    age::Past,
    outcome::Reason,
    own::{MAXIMUM_CLIENTS, OwnCommand},
    service::{Ready, Service},
    study::{FilesystemSpec, FsckMode, StepAction},
    units::format_duration,
};
use std::{
    path::{Component, Path, PathBuf},
    sync::Arc,
};

/// One thing that a step does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Call<'s> {
    /// Gives all blocks of the device back, where it can do that.
    Discard {
        device: String,
    },
    /// Runs a tool of the filesystem on the device. `hold` when the tool does not open the device exclusively itself.
    Tool {
        command: CommandLine,
        hold: bool,
    },
    Mount(MountRequest),
    /// Makes everything written to the mounted filesystem durable.
    Flush(PathBuf),
    Unmount(PathBuf),
    MountBy {
        command: CommandLine,
        place: PathBuf,
    },
    /// Unmounts one, by umount(2) where the study has no command.
    UnmountBy {
        command: Option<CommandLine>,
        place: PathBuf,
    },
    /// Makes everything written anywhere durable and drops the kernel's caches.
    DropCaches,
    /// Makes everything written anywhere durable, and tells what could not be written to this filesystem.
    Sync(PathBuf),
    Trim(PathBuf),
    MakeDirectory(PathBuf),
    Run(CommandLine),
    Load(&'s Workload),
    CountExtents(PathBuf),
    Age {
        age: &'s Past,
        place: PathBuf,
    },
    /// Starts a service; with what that takes, as a person would type it.
    Serve {
        service: &'s Arc<Service>,
        typed: String,
    },
    /// Looks at what power cuts would have left, so many states at most.
    CutPower(u32),
}

impl Call<'_> {
    /// The command that a person would type for it; none for what only fstone does.
    pub(crate) fn argv(&self) -> Option<Vec<String>> {
        let words = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect());
        let at = |place: &Path| place.display().to_string();
        match self {
            Self::Discard { device } => words(&["blkdiscard", device]),
            Self::Tool { command, .. }
            | Self::Run(command)
            | Self::MountBy { command, .. }
            | Self::UnmountBy { command: Some(command), .. } => Some(command.argv()),
            Self::Mount(request) => Some(request.argv()),
            Self::Flush(place) => words(&["sync", "-f", &at(place)]),
            Self::Unmount(place) | Self::UnmountBy { command: None, place } => words(&["umount", &at(place)]),
            Self::DropCaches => words(&["sh", "-c", "sync; echo 3 > /proc/sys/vm/drop_caches"]),
            Self::Sync(place) => words(&["sh", "-c", &format!("sync; sync -f {}", typed(&[at(place)]))]),
            Self::Trim(place) => words(&["fstrim", &at(place)]),
            Self::MakeDirectory(path) => words(&["mkdir", "-p", &at(path)]),
            Self::Load(_) | Self::CountExtents(_) | Self::Age { .. } | Self::CutPower(_) | Self::Serve { .. } => None,
        }
    }

    fn typed(&self) -> String {
        match self {
            Self::Load(Workload { name, replay: Some(replay), .. }) => {
                let cold = if replay.cold { ", with cold caches" } else { "" };
                let file = typed(std::slice::from_ref(&replay.file));
                format!("replay {name}: {} calls of {file}{cold}", replay.calls)
            }
            Self::Load(workload) => {
                let time = workload.time_limit().map(|time| format!(", {}", format_duration(time))).unwrap_or_default();
                let threads = workload.threads();
                let plural = if threads == 1 { "" } else { "s" };
                let launch =
                    workload.launch.as_ref().map(|launch| format!(", in each rank of {}", typed(&launch.words())));
                format!("load {}: {threads} thread{plural}{time}{}", workload.name, launch.unwrap_or_default())
            }
            Self::Serve { typed, .. } => typed.clone(),
            Self::CountExtents(_) => "count the extents of every file (FIEMAP)".to_owned(),
            Self::Age { age: Past::Image(image), .. } => {
                format!("look at the copy of {}", typed(std::slice::from_ref(&image.file)))
            }
            Self::Age { age, place } => {
                let is_beneath = place.ends_with(AGED_BENEATH);
                let stays = if is_beneath { format!(" by {}, which stays", place.display()) } else { String::new() };
                format!("age it by profile {}{stays}", age.describe())
            }
            Self::CutPower(states) => {
                format!("mount, read and check up to {states} states that a power cut could leave")
            }
            _ => typed(&self.argv().unwrap_or_default()),
        }
    }

    /// Whether the filesystem is mounted when it is done; `None` when that stays as it is.
    pub(crate) const fn leaves_mounted(&self) -> Option<bool> {
        match self {
            Self::Mount(_) | Self::MountBy { .. } => Some(true),
            Self::Unmount(_) | Self::UnmountBy { .. } => Some(false),
            _ => None,
        }
    }

    /// Whether something has to be looked after right before it, which is not its time.
    pub(crate) const fn needs_preparing(&self) -> bool {
        self.opens_device() || self.command().is_some()
    }

    pub(crate) const fn opens_device(&self) -> bool {
        matches!(self, Self::Discard { .. } | Self::Tool { .. } | Self::Mount(_) | Self::MountBy { .. })
    }

    pub(crate) const fn command(&self) -> Option<&CommandLine> {
        match self {
            Self::Tool { command, .. } | Self::Run(command) | Self::MountBy { command, .. } => Some(command),
            Self::UnmountBy { command, .. } => command.as_ref(),
            _ => None,
        }
    }
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Calls<'s> {
    /// What has to be done before and is not the step's time.
    pub(crate) before: Vec<Call<'s>>,
    pub(crate) timed: Vec<Call<'s>>,
    /// Why there is nothing to do, when that is so.
    pub(crate) nothing: Option<String>,
}

impl Calls<'_> {
    pub(crate) fn typed(&self) -> String {
        let all = self.before.iter().chain(&self.timed).map(Call::typed);
        all.chain(self.nothing.clone()).collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn leave_mounted(&self, mounted: bool) -> bool {
        self.before.iter().chain(&self.timed).filter_map(Call::leaves_mounted).next_back().unwrap_or(mounted)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    /// None on a directory, which is not fstone's to make, mount or check.
    pub(crate) filesystem: Option<&'static dyn Filesystem>,
    pub(crate) spec: &'a FilesystemSpec,
    /// The device, as tools are given it; empty where there is none.
    pub(crate) device: &'a str,
    pub(crate) named: bool,
    /// The mount point, or the directory that stands for it.
    pub(crate) place: &'a Path,
    pub(crate) mounted: bool,
    pub(crate) own: Option<OwnPlaces<'a>>,
}

pub(crate) fn calls<'s>(scene: &Scene<'_>, step: &'s Step) -> Result<Calls<'s>, Outcome> {
    let failed = |words: String| Outcome::Failed(Reason::new(&step.name, words));
    let filesystem = || scene.filesystem.ok_or_else(|| failed("there is no device".to_owned()));
    let timed = |timed: Vec<Call<'s>>| Calls { timed, ..Calls::default() };
    let place = || match (scene.filesystem.is_some() || scene.own.is_some()) && !scene.mounted {
        true => Err(failed("nothing is mounted; put a mount step before".to_owned())),
        false => Ok(scene.place.to_owned()),
    };
    if let Some(own) = &scene.own
        && let Some(calls) = calls_of_own(scene, own, step)?
    {
        return Ok(calls);
    }
    Ok(match &step.action {
        StepAction::Mkfs => mkfs(scene, step, filesystem()?)?,
        StepAction::Mount if scene.mounted => return Err(failed("it is mounted already".to_owned())),
        StepAction::Mount => timed(vec![Call::Mount(mount_request(scene, filesystem()?))]),
        StepAction::Unmount | StepAction::Remount if !scene.mounted => {
            return Err(failed("it is not mounted".to_owned()));
        }
        StepAction::Unmount => timed(unmount(scene)),
        StepAction::Remount => {
            let mount = Call::Mount(mount_request(scene, filesystem()?));
            timed(unmount(scene).into_iter().chain([Call::DropCaches, mount]).collect())
        }
        StepAction::Load(workload) => {
            place()?;
            timed(vec![Call::Load(workload)])
        }
        StepAction::Command { argv, shell, figures, .. } => {
            let command = command(argv, *shell, scene, &place()?);
            let command = command.ok_or_else(|| failed("the command is empty".to_owned()))?;
            timed(vec![Call::Run(CommandLine { kept: !figures.is_empty(), ..command })])
        }
        StepAction::Service(service) => {
            let place = place()?;
            let (user, data) = (service.user.as_deref().and_then(user), place.join(&service.name));
            let typed = |words: &[String]| {
                let command = service_command(words, &place, &data, user.clone());
                command.map(|command| command.typed())
            };
            let ready = match &service.ready {
                Ready::Command(words) => typed(words),
                Ready::Socket(socket) => Some(format!("{} accepts a connection", fill(socket, &place, &data))),
                Ready::Line(line) => Some(format!("its log has {line:?}")),
            };
            let ready = ready.map(|ready| format!("wait until {ready}"));
            let stop = typed(&service.stop).unwrap_or_else(|| "SIGTERM".to_owned());
            let start = typed(&service.start).map(|start| format!("{start} &"));
            let all = typed(&service.make).into_iter().chain(start).chain(ready).chain([format!("in the end {stop}")]);
            let all: Vec<String> = all.collect();
            timed(vec![Call::Serve { service, typed: all.join("; ") }])
        }
        StepAction::Sync => timed(vec![Call::Sync(place()?)]),
        StepAction::DropCaches => {
            let flush = scene.mounted.then(|| Call::Flush(scene.place.to_owned()));
            timed(flush.into_iter().chain([Call::DropCaches]).collect())
        }
        StepAction::Trim => timed(vec![Call::Trim(place()?)]),
        StepAction::Fsck { mode } => {
            let filesystem = filesystem()?;
            let before = if scene.mounted { unmount(scene) } else { Vec::new() };
            match filesystem.fsck(*mode, scene.device) {
                Some(command) => Calls { before, timed: vec![Call::Tool { command, hold: false }], nothing: None },
                None => {
                    let nothing = Some(format!("{} has no check", filesystem.kind()));
                    Calls { before, timed: Vec::new(), nothing }
                }
            }
        }
        StepAction::Fragmentation => timed(vec![Call::CountExtents(place()?)]),
        StepAction::Age(age) if scene.device.is_empty() => {
            let above = scene.place.parent().filter(|_| scene.own.is_none());
            let Some(place) = above.map(|above| above.join(AGED_BENEATH)) else {
                let words = "ageing needs a device, or a directory that the study names";
                return Err(Outcome::Refused(Reason::new(&step.name, words)));
            };
            timed(vec![Call::Age { age, place }])
        }
        StepAction::Age(age) => {
            let aged = Call::Age { age, place: place()? };
            let mount = Call::Mount(mount_request(scene, filesystem()?));
            timed([aged].into_iter().chain(unmount(scene)).chain([Call::DropCaches, mount]).collect())
        }
        StepAction::PowerCut(cut) => timed(vec![Call::CutPower(cut.states)]),
        StepAction::CopyIn { source, target } => copy_in(step, source, target, &place()?)?,
    })
}

/// The calls of a step that the study's own commands make; `None` for any other step.
fn calls_of_own<'s>(scene: &Scene<'_>, own: &OwnPlaces<'_>, step: &'s Step) -> Result<Option<Calls<'s>>, Outcome> {
    let failed = |words: &str| Outcome::Failed(Reason::new(&step.name, words));
    let timed = |timed: Vec<Call<'s>>| Calls { timed, ..Calls::default() };
    let clients = || own.mounts.iter().enumerate();
    let mount = || {
        clients().filter_map(|(client, place)| {
            let command = own.command(OwnCommand::Mount, scene.device, client)?;
            Some(Call::MountBy { command, place: place.clone() })
        })
    };
    let unmount = || {
        clients().rev().flat_map(|(client, place)| {
            let command = own.command(OwnCommand::Unmount, scene.device, client);
            [Call::Flush(place.clone()), Call::UnmountBy { command, place: place.clone() }]
        })
    };
    Ok(Some(match &step.action {
        StepAction::Mkfs if scene.mounted => return Err(failed("it is mounted; put an unmount step before")),
        StepAction::Mkfs => {
            let discard = scene.named.then(|| Call::Discard { device: scene.device.to_owned() });
            let make = own.command(OwnCommand::Make, scene.device, 0);
            let make = make.map(|command| Call::Tool { command, hold: false });
            Calls { before: discard.into_iter().collect(), timed: make.into_iter().collect(), nothing: None }
        }
        StepAction::Mount if scene.mounted => return Err(failed("it is mounted already")),
        StepAction::Mount => timed(mount().collect()),
        StepAction::Unmount | StepAction::Remount if !scene.mounted => return Err(failed("it is not mounted")),
        StepAction::Unmount => timed(unmount().collect()),
        StepAction::Remount => timed(unmount().chain([Call::DropCaches]).chain(mount()).collect()),
        StepAction::Age(age) if scene.mounted && !scene.device.is_empty() => {
            let aged = Call::Age { age, place: scene.place.to_owned() };
            timed([aged].into_iter().chain(unmount()).chain([Call::DropCaches]).chain(mount()).collect())
        }
        StepAction::Fsck { mode: FsckMode::Repair } => {
            let words = format!("whether the check of {} repairs is unknown; use fsck = {{}}", scene.spec.kind);
            return Err(Outcome::Refused(Reason::new(&step.name, words)));
        }
        StepAction::Fsck { mode: FsckMode::ReadOnly } => {
            let before = if scene.mounted { unmount().collect() } else { Vec::new() };
            match own.command(OwnCommand::Check, scene.device, 0) {
                Some(command) => Calls { before, timed: vec![Call::Tool { command, hold: false }], nothing: None },
                None => Calls { before, timed: Vec::new(), nothing: Some(format!("{} has no check", scene.spec.kind)) },
            }
        }
        _ => return Ok(None),
    }))
}

fn mkfs<'s>(scene: &Scene<'_>, step: &Step, filesystem: &dyn Filesystem) -> Result<Calls<'s>, Outcome> {
    if scene.mounted {
        let words = "it is mounted; put an unmount step before";
        return Err(Outcome::Failed(Reason::new(&step.name, words)));
    }
    let Some(command) = filesystem::mkfs_of(filesystem, scene.spec, scene.device) else {
        let words = format!("the mkfs of {} cannot put a tree into the new filesystem", filesystem.kind());
        return Err(Outcome::Refused(Reason::new(&step.name, words)));
    };
    // A disk of the user's begins every trial with all its blocks given back: an SSD that the last filesystem has filled
    // is slower.
    let discard = scene.named.then(|| Call::Discard { device: scene.device.to_owned() });
    // In an empty directory, so that no word of a study's options can be the name of a file.
    let command = command.in_directory(scene.place);
    let tool = Call::Tool { command, hold: !filesystem.facts().mkfs_is_exclusive };
    Ok(Calls { before: discard.into_iter().collect(), timed: vec![tool], nothing: None })
}

pub(super) fn mount_request(scene: &Scene<'_>, filesystem: &dyn Filesystem) -> MountRequest {
    MountRequest {
        source: scene.device.into(),
        kernel_name: filesystem.kernel_name().to_owned(),
        options: scene.spec.mount.clone(),
        target: scene.place.to_owned(),
    }
}

/// An unmount throws away without a word what it cannot write, so that is written before and its errors are told. Any
/// unmount writes what is in memory, so it is part of its time.
fn unmount<'s>(scene: &Scene<'_>) -> Vec<Call<'s>> {
    vec![Call::Flush(scene.place.to_owned()), Call::Unmount(scene.place.to_owned())]
}

fn command(argv: &[String], shell: bool, scene: &Scene<'_>, place: &Path) -> Option<CommandLine> {
    let place_word = place.display().to_string();
    let fill = |word: &String| {
        let word = word.replace("{mount}", &place_word).replace("{device}", scene.device);
        // Where there are fewer clients they are shared, as a row with one is compared with a row with several.
        let clients = if word.contains("{mount") { MAXIMUM_CLIENTS as usize } else { 0 };
        (0..clients).fold(word, |word, client| {
            let mounts = scene.own.map_or(&[][..], |own| own.mounts);
            let mount = if mounts.is_empty() { place } else { &mounts[client % mounts.len()] };
            word.replace(&format!("{{mount{client}}}"), &mount.display().to_string())
        })
    };
    let argv: Vec<String> = argv.iter().map(fill).collect();
    let (program, args) = argv.split_first()?;
    let command = match shell {
        true => CommandLine::new("sh", ["-c", program.as_str()]),
        false => CommandLine::new(program, args.iter().cloned()),
    };
    Some(command.in_directory(place))
}

fn copy_in<'s>(step: &Step, source: &str, target: &str, place: &Path) -> Result<Calls<'s>, Outcome> {
    let relative = Path::new(target);
    let inside = relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !inside || relative.as_os_str().is_empty() {
        let words = format!("{target:?} must be a path inside the mounted filesystem");
        return Err(Outcome::Refused(Reason::new(&step.name, words)));
    }
    let target = place.join(relative);
    let parent = target.parent().filter(|parent| *parent != place).map(|parent| Call::MakeDirectory(parent.to_owned()));
    let words = ["-R", "-P", "--preserve=timestamps", "--", source, &target.display().to_string()];
    let command = CommandLine::new("cp", words).in_directory(place);
    Ok(Calls { before: parent.into_iter().collect(), timed: vec![Call::Run(command)], nothing: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn scene<'a>(spec: &'a FilesystemSpec, mounted: bool) -> Scene<'a> {
        let filesystem = filesystem::find(&spec.kind);
        Scene { filesystem, spec, device: "/dev/loop7", named: false, place: Path::new("/mnt"), mounted, own: None }
    }

    #[test]
    fn what_is_before_is_not_timed() {
        let spec = testing::cell(0, "ext4", "", &[]).filesystem;
        let named = Scene { named: true, ..scene(&spec, false) };
        let mkfs = testing::step("mkfs", StepAction::Mkfs);
        let made = calls(&named, &mkfs).expect("it can be made");
        assert_eq!(made.before, [Call::Discard { device: "/dev/loop7".to_owned() }]);
        assert!(matches!(&made.timed[..], [Call::Tool { hold: false, .. }]), "{made:?}");

        let fsck = testing::step("fsck", StepAction::Fsck { mode: FsckMode::ReadOnly });
        let checked = calls(&scene(&spec, true), &fsck).expect("it can be made");
        assert_eq!(checked.typed(), "sync -f /mnt; umount /mnt; e2fsck -fn /dev/loop7");
        assert_eq!((checked.before.len(), checked.timed.len(), checked.leave_mounted(true)), (2, 1, false));

        let copy = testing::step("copy", StepAction::CopyIn { source: "/a b".into(), target: "c/d".into() });
        let copied = calls(&scene(&spec, true), &copy).expect("it can be made");
        assert_eq!(copied.before, [Call::MakeDirectory("/mnt/c".into())]);
        assert_eq!(copied.typed(), "mkdir -p /mnt/c; cp -R -P --preserve=timestamps -- '/a b' /mnt/c/d");
    }

    #[test]
    fn what_cannot_be_made_says_why() {
        let spec = testing::cell(0, "ext4", "", &[]).filesystem;
        let words = |mounted, action| {
            let step = testing::step("step", action);
            let outcome = calls(&scene(&spec, mounted), &step).expect_err("it cannot be made");
            outcome.reason().expect("it has one").words.clone()
        };
        assert_eq!(words(true, StepAction::Mkfs), "it is mounted; put an unmount step before");
        assert_eq!(words(true, StepAction::Mount), "it is mounted already");
        assert_eq!(words(false, StepAction::Unmount), "it is not mounted");
        assert_eq!(words(false, StepAction::Remount), "it is not mounted");
        assert_eq!(words(false, StepAction::Trim), "nothing is mounted; put a mount step before");
        let outside = StepAction::CopyIn { source: "/a".into(), target: "../b".into() };
        assert_eq!(words(true, outside), "\"../b\" must be a path inside the mounted filesystem");
    }
}

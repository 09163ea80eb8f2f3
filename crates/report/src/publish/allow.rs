//! What is published of a run: numbers, fstone's own words, and the free texts that are listed here.
//!
//! A field that is added to the model is left out until it is listed.

use super::{
    texts::{LEFT_OUT, Texts},
    words,
};
use fstone_model::{
    Cell, Dataset, Inventory, LoadReport, Plan, Trial, dataset::Run, fnv::fnv1a, inventory::MODEL_SETTING,
    study::DeviceSpec,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::HashMap, sync::LazyLock};

/// What is shown only on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Names of machines.
    Hosts,
    /// Paths, and devices and kernels that are named by one.
    Paths,
    /// The study's title, its text and the files that it names.
    Study,
    /// Command lines.
    Commands,
    /// Warnings, reasons and what commands printed.
    Messages,
    /// The note.
    Note,
    /// Mounts, and all that the machine's devices, settings and superblocks say.
    Machine,
}

/// What is shown beyond the list.
#[derive(Debug, Clone)]
pub struct Show {
    /// On request.
    pub kinds: Vec<Kind>,
    /// Whether the text of a plan's study and of its files came with fstone, so that it reveals nothing.
    pub is_ours: fn(&Plan) -> bool,
}

/// Something that was left out of a run made it invalid.
#[derive(Debug, thiserror::Error)]
#[error("leave texts out of the run: {0}")]
pub struct AllowError(#[from] serde_json::Error);

/// How a text is shown unless it is requested.
#[derive(Clone, Copy)]
enum Shown {
    /// As it is, except for paths: names that a study gives to rows and columns, models and versions.
    Name,
    /// As the number of a machine.
    Host,
    /// In part.
    Part(fn(&str) -> String),
    LeftOut,
}

use Shown::{Host, LeftOut, Name, Part};

/// Every text that a page may show: on which request it is shown whole, how otherwise, and where it is in the model. All other texts
/// are left out.
const PLACES: &[(Option<Kind>, Shown, &str)] = &[
    (
        None,
        Name,
        "Plan.study Plan.compare Factor.name Factor.levels Cell.label FilesystemSpec.name FilesystemSpec.kind \
         DeviceSpec.loop.model Step.name OutputFigure.name Column.header Column.step Column.metric Published.model \
         PublishedFigure.cell PublishedFigure.column Phase.name ThreadGroup.name Action.name Inventory.distribution \
         Inventory.cpu_model Inventory.virtualization Inventory.fstone_version Inventory.fstone_commit \
         DeviceFacts.model StepResult.step Reason.step Figure.metric ThreadReport.group PhaseReport.name \
         PhaseReport.groups OperationReport.phase OperationReport.group OperationReport.name GroupFsyncs.phase \
         GroupFsyncs.group CallReport.group CallReport.call OwnSeries.group OwnSeries.name ErrorReport.group ErrorReport.operation \
         ErrorReport.call PhaseMeeting.name Profile.name OldImage.holds RankPhase.name",
    ),
    // Words of fstone's own, which come as texts: how a trial or a rank ended, and the fields of a rank.
    (None, Name, "Outcome.outcome Reason.outcome Ranked.per_rank.outcome"),
    (Some(Kind::Hosts), Host, "Inventory.host BlockOrigin.machine Ranked.per_rank.host NodeReport.host"),
    (
        Some(Kind::Paths),
        LeftOut,
        "DeviceSpec.loop.directory DeviceSpec.directory.path DeviceSpec.scratch.directory FilesystemSpec.tree \
         OldImage.file StepAction.copy-in.source StepAction.copy-in.target Fileset.directory ErrorReport.path",
    ),
    (Some(Kind::Paths), Part(device_path), "DeviceSpec.block.path"),
    (Some(Kind::Paths), Part(version), "KernelSpec.uml KernelSpec.qemu KernelSpec.exact"),
    (Some(Kind::Paths), Part(device), "DeviceFacts.name"),
    (
        Some(Kind::Study),
        LeftOut,
        "Plan.title Plan.about Plan.source Plan.attachments.0 Plan.attachments.1 Published.source PublishedFigure.note \
         Workload.name Fileset.name",
    ),
    (
        Some(Kind::Commands),
        LeftOut,
        "Run.command CommandRecord.argv StepAction.command.argv Service.make Service.start Service.stop \
         OwnFilesystem.packages Workload.callout Launch.command",
    ),
    (
        Some(Kind::Commands),
        Part(placeholder),
        "OwnFilesystem.make OwnFilesystem.mount OwnFilesystem.unmount OwnFilesystem.check OwnFilesystem.remove",
    ),
    (Some(Kind::Commands), Part(words::only_known), "Inventory.kernel_command_line"),
    (
        Some(Kind::Messages),
        LeftOut,
        "Reason.words Reason.cure CommandRecord.output_tail Trial.warnings LoadReport.warnings Ranked.ended_early \
         Ranked.per_rank.words Ranked.per_rank.warnings",
    ),
    (Some(Kind::Messages), Part(symbol), "ErrorReport.text"),
    (Some(Kind::Note), LeftOut, "Run.note"),
    (Some(Kind::Machine), Part(kernel), "Inventory.kernel"),
    (Some(Kind::Machine), LeftOut, "Inventory.mounts"),
    (
        Some(Kind::Machine),
        Part(words::known),
        "Inventory.tools.0 Inventory.settings.1 DeviceFacts.backing_filesystem DeviceFacts.queue.0 DeviceFacts.queue.1 \
         Cell.queue.0 Cell.queue.1 FilesystemSpec.mkfs FilesystemSpec.mount Effective.mount Effective.superblock.0 \
         Effective.superblock.1",
    ),
    (Some(Kind::Machine), Part(tool_version), "Inventory.tools.1"),
    (Some(Kind::Machine), Part(setting), "Inventory.settings.0"),
    (None, Part(str::to_owned), "Ranked.per_rank.key"),
    (None, Part(words::known), "ClockReport.source"),
];

static LISTED: LazyLock<HashMap<&str, (Option<Kind>, Shown)>> = LazyLock::new(|| {
    let each = |&(kind, shown, places): &(Option<Kind>, Shown, &'static str)| {
        places.split_whitespace().map(move |place| (place, (kind, shown)))
    };
    PLACES.iter().flat_map(each).collect()
});

/// Leaves texts out of runs, in the same way in all that are shown together.
#[derive(Debug, Clone)]
pub(super) struct AllowList {
    show: Show,
    /// What machines are called, by [`key`].
    machines: HashMap<String, String>,
    /// The paths in names; each has its number, so that names stay different.
    paths: Vec<String>,
}

/// What distinguishes machines: many are called "localhost".
fn key(name: &str, inventory: &Inventory) -> String {
    let Inventory { cpu_model, cpus, virtualization, .. } = inventory;
    format!("{name}\n{cpu_model}\n{cpus}\n{virtualization:?}")
}

impl AllowList {
    pub(super) fn new(show: Show) -> Self {
        Self { show, machines: HashMap::new(), paths: Vec::new() }
    }

    /// What a machine is called; new ones are numbered.
    fn machine(&mut self, key: String) -> String {
        let number = self.machines.len() + 1;
        self.machines.entry(key).or_insert_with(|| format!("machine {number}")).clone()
    }

    /// A name without its paths: `--kernel uml:PATH` becomes the name of a level.
    fn name(&mut self, text: &str, known: &[&str]) -> String {
        let parts: Vec<String> = text.split(" · ").map(|part| self.part_of_name(part, known)).collect();
        parts.join(" · ")
    }

    fn part_of_name(&mut self, part: &str, known: &[&str]) -> String {
        let begins = |(at, _): &(usize, &str)| {
            let before = part[..*at].trim_end_matches(['.', '~']);
            !before.ends_with(|c: char| c.is_alphanumeric() || c == '/')
        };
        let absolute =
            part.match_indices('/').find(begins).map(|(at, _)| part[..at].trim_end_matches(['.', '~']).len());
        let Some(at) = known.iter().filter_map(|path| part.find(path)).chain(absolute).min() else {
            return part.to_owned();
        };
        let path = &part[at..];
        if device_path(path) == path {
            return part.to_owned();
        }
        let number = self.paths.iter().position(|other| *other == path).unwrap_or_else(|| {
            self.paths.push(path.to_owned());
            self.paths.len() - 1
        });
        format!("{}[path {}]", &part[..at], number + 1)
    }

    /// A run without what is not shown. It keeps the number that it has in its store.
    pub(super) fn apply(&mut self, dataset: &Dataset) -> Result<Dataset, AllowError> {
        let is_ours = (self.show.is_ours)(&dataset.run.plan);
        // Ranks name their nodes; those that made blocks are described, too.
        let mut nodes: HashMap<String, String> = HashMap::new();
        let own = (&dataset.run.inventory.host, &dataset.run.inventory);
        let blocks = dataset.run.blocks.iter().map(|origin| (&origin.machine, &origin.inventory));
        for (name, inventory) in std::iter::once(own).chain(blocks) {
            let called = self.machine(key(name, inventory));
            nodes.entry(name.clone()).or_insert_with(|| called.clone());
            nodes.entry(inventory.host.clone()).or_insert(called);
        }
        let kinds = self.show.kinds.clone();
        let known: Vec<&str> =
            dataset.run.plan.cells.iter().flat_map(paths_of).filter(|path| !path.is_empty()).collect();
        let mut decide = |place: &str, text: &str| {
            let (kind, shown) = LISTED.get(place).copied().unwrap_or((None, LeftOut));
            if kind.is_some_and(|kind| kinds.contains(&kind) || kind == Kind::Study && is_ours) {
                return text.to_owned();
            }
            match shown {
                Name if kinds.contains(&Kind::Paths) => text.to_owned(),
                Name => self.name(text, &known),
                Host => nodes.entry(text.to_owned()).or_insert_with(|| self.machine(text.to_owned())).clone(),
                Part(part) => part(text),
                LeftOut => LEFT_OUT.to_owned(),
            }
        };
        let mut run: Run = read_back(&dataset.run, &mut decide)?;
        let trials = dataset.trials.iter().map(|trial| {
            let mut shown: Trial = read_back(trial, &mut decide)?;
            if let Some(reason) = shown.outcome.reason_mut() {
                reason.cure = reason.cure.take().filter(|cure| cure != LEFT_OUT);
            }
            for (step, was) in shown.steps.iter_mut().zip(&trial.steps) {
                for (figure, was) in step.figures.iter_mut().zip(&was.figures) {
                    figure.value = was.value;
                }
                for (command, was) in step.commands.iter_mut().zip(&was.commands) {
                    // The options that a filesystem was made with are more than those that the study asked for.
                    if command.argv == [LEFT_OUT] && was.argv[0].starts_with("mkfs.") {
                        command.argv = was.argv.iter().map(|word| words::known(word)).collect();
                    }
                }
                step.commands.retain(|command| command.argv != [LEFT_OUT]);
            }
            Ok(shown)
        });
        let trials = trials.collect::<Result<_, AllowError>>()?;
        if run.plan.title == LEFT_OUT {
            run.plan.title.clone_from(&run.plan.study);
        }
        run.note = run.note.filter(|note| note.as_str() != LEFT_OUT);
        for text in [&mut run.plan.about, &mut run.plan.source] {
            if text == LEFT_OUT {
                text.clear();
            }
        }
        run.identity = identity(&run)?;
        Ok(Dataset { run, trials })
    }
}

/// The paths that a cell is made of.
fn paths_of(cell: &Cell) -> impl Iterator<Item = &str> {
    let device = match &cell.device {
        DeviceSpec::Loop { directory, .. } | DeviceSpec::Scratch { directory } => directory.as_deref(),
        DeviceSpec::Block { path } => Some(path.as_str()),
        DeviceSpec::Directory { path } => path.as_deref(),
        DeviceSpec::Zram { .. } => None,
    };
    device.into_iter().chain(cell.kernel.path()).chain(cell.filesystem.tree.as_deref())
}

/// Whether the text of a place is shown as it is, except for paths.
#[doc(hidden)]
pub fn is_name(place: &str) -> bool {
    matches!(LISTED.get(place), Some((_, Name)))
}

/// Every text of a run and its place, for tests of the list.
#[doc(hidden)]
pub fn texts_of(dataset: &Dataset) -> Result<Vec<(String, String)>, AllowError> {
    let mut found = Vec::new();
    let mut decide = |place: &str, text: &str| {
        found.push((place.to_owned(), text.to_owned()));
        text.to_owned()
    };
    dataset.run.serialize(Texts::new(&mut decide))?;
    dataset.trials.iter().try_for_each(|trial| trial.serialize(Texts::new(&mut decide)).map(drop))?;
    Ok(found)
}

/// An identity that is the same in every copy, also of a run that was not finished before, and that begins with
/// [`Run::ANONYMOUS`].
fn identity(run: &Run) -> Result<String, AllowError> {
    let begun =
        Run { id: 0, identity: String::new(), finished_unix_ns: None, note: None, blocks: Vec::new(), ..run.clone() };
    let json = serde_json::to_string(&begun)?;
    let (one, other) = (fnv1a(json.as_bytes()), fnv1a(format!("{json}\n").as_bytes()));
    Ok(format!("{}{one:016x}{other:016x}", Run::ANONYMOUS))
}

fn read_back<T: Serialize + DeserializeOwned>(
    of: &T,
    decide: &mut dyn FnMut(&str, &str) -> String,
) -> Result<T, AllowError> {
    let value = of.serialize(Texts::new(decide))?;
    // From text, as everything else is read: a reader of values is as much code again.
    Ok(serde_json::from_str(&value.to_string())?)
}

/// Release and architecture of `uname -srvm`; the version between them is free text of the kernel's builder.
fn kernel(text: &str) -> String {
    const MACHINES: [&str; 8] = ["x86_64", "aarch64", "riscv64", "ppc64le", "s390x", "loongarch64", "i686", "armv7l"];
    let mut words = text.split(' ');
    let (system, release, machine) = (words.next(), words.next(), words.next_back());
    match (system, release) {
        (Some("Linux"), Some(release)) if release.starts_with(|c: char| c.is_ascii_digit()) => {
            let machine = machine.filter(|machine| MACHINES.contains(machine));
            format!("Linux {release} {}", machine.unwrap_or_default()).trim_end().to_owned()
        }
        _ => LEFT_OUT.to_owned(),
    }
}

/// A kernel's version; other kernels are named by paths and by names that users chose.
fn version(text: &str) -> String {
    let number = text
        .split("-rc")
        .all(|part| !part.is_empty() && part.len() <= 20 && part.chars().all(|c| c.is_ascii_digit() || c == '.'));
    if number { text.to_owned() } else { LEFT_OUT.to_owned() }
}

/// The number in a line in which a tool tells its version.
fn tool_version(text: &str) -> String {
    let candidates = text.split(|c: char| !(c.is_ascii_alphanumeric() || ".-_".contains(c)));
    let number = |word: &str| {
        let number = word.trim_start_matches('v');
        let end = number.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(number.len());
        let number = number[..end].trim_end_matches('.');
        (number.contains('.') && number.len() <= 20).then(|| number.to_owned())
    };
    candidates.filter(|word| !word.is_empty()).find_map(number).unwrap_or_else(|| words::known(text))
}

/// The name of a setting; a model of a drive has its own in it.
fn setting(text: &str) -> String {
    if text.starts_with(MODEL_SETTING) { text.to_owned() } else { words::known(text) }
}

/// The symbol of an error number.
fn symbol(text: &str) -> String {
    let symbol = text.split(':').next().unwrap_or_default();
    let is_one = symbol.starts_with('E')
        && symbol.len() <= 16
        && symbol.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    if is_one { symbol.to_owned() } else { LEFT_OUT.to_owned() }
}

/// The name of a disk, if it is one that the kernel gives in turn.
fn device(text: &str) -> String {
    let driver = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let disk = ["sd", "vd", "xvd", "hd"].iter().filter_map(|prefix| driver.strip_prefix(prefix));
    let lettered = disk
        .into_iter()
        .any(|letters| (1..=2).contains(&letters.len()) && letters.chars().all(|c| c.is_ascii_lowercase()));
    let numbered = ["dm-", "md", "loop", "zram", "ram", "pmem", "nbd", "sr", "rbd"].contains(&driver);
    let parts = text.strip_prefix("nvme").or_else(|| text.strip_prefix("mmcblk"));
    let parted = parts
        .is_some_and(|parts| parts.len() <= 8 && parts.chars().all(|c| c.is_ascii_digit() || c == 'n' || c == 'p'));
    if text.len() <= 16 && (lettered || numbered || parted) { text.to_owned() } else { LEFT_OUT.to_owned() }
}

fn device_path(text: &str) -> String {
    match text.strip_prefix("/dev/").map(device) {
        Some(name) if name != LEFT_OUT => text.to_owned(),
        _ => LEFT_OUT.to_owned(),
    }
}

/// A word of a filesystem's own command, which must go on naming the device where it does.
fn placeholder(text: &str) -> String {
    let device = "{device}";
    if text.contains(device) { device.to_owned() } else { LEFT_OUT.to_owned() }
}

/// The reports of loads without what no page shows.
pub(super) fn shorten(dataset: &mut Dataset) {
    let steps = dataset.trials.iter_mut().flat_map(|trial| &mut trial.steps);
    steps.filter_map(|step| step.load.as_deref_mut()).for_each(LoadReport::shorten);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A field that the list does not have is not shown, of whatever type it is.
    #[test]
    fn a_new_field_is_left_out() {
        #[derive(Serialize)]
        #[serde(rename = "Inventory")]
        struct Grown<'a> {
            cpu_model: &'a str,
            asset_tag: &'a str,
            owner: Option<&'a str>,
            labels: Vec<(&'a str, &'a str)>,
            tags: Vec<&'a str>,
            by_name: BTreeMap<&'a str, u32>,
            initial: char,
            bytes: Vec<u8>,
            racks: u32,
        }
        let grown = Grown {
            cpu_model: "CPU",
            asset_tag: "secret",
            owner: Some("secret"),
            labels: vec![("secret", "secret")],
            tags: vec!["secret", "secret"],
            by_name: BTreeMap::from([("secret", 1)]),
            initial: 's',
            bytes: b"secret".to_vec(),
            racks: 7,
        };
        let mut places = Vec::new();
        let mut decide = |place: &str, text: &str| {
            places.push(place.to_owned());
            if LISTED.contains_key(place) { text.to_owned() } else { LEFT_OUT.to_owned() }
        };
        let shown = grown.serialize(Texts::new(&mut decide)).expect("JSON").to_string();
        let expected = r#"{"asset_tag":"(left out)","by_name":{"(left out)":1},"bytes":[],"cpu_model":"CPU","initial":"(left out)","#;
        assert_eq!(shown, format!(r#"{expected}"labels":[],"owner":"(left out)","racks":7,"tags":["(left out)"]}}"#));
        assert!(places.contains(&"Inventory.labels.1".to_owned()), "{places:?}");
    }

    #[test]
    fn names_that_the_kernel_gives_are_shown() {
        for name in ["sda1", "vdb", "nvme0n1p2", "mmcblk0", "dm-3", "md127", "loop0", "zram0"] {
            assert_eq!((device(name), device_path(&format!("/dev/{name}"))), (name.to_owned(), format!("/dev/{name}")));
        }
        for name in ["mapper/vg-alice", "sdalice", "filer:/srv", "disk/by-id/x", "nvme-alice", "alice1"] {
            assert_eq!((device(name).as_str(), device_path(&format!("/dev/{name}")).as_str()), (LEFT_OUT, LEFT_OUT));
        }
        assert_eq!(kernel("Linux 6.1.0-18-amd64 #1 SMP alice@build x86_64"), "Linux 6.1.0-18-amd64 x86_64");
        assert_eq!((version("6.12-rc3").as_str(), version("6.12-alice").as_str()), ("6.12-rc3", LEFT_OUT));
        assert_eq!(tool_version("mke2fs 1.47.0 (5-Feb-2023), alice"), "1.47.0");
        assert_eq!(tool_version("not installed"), "not installed");
        assert_eq!((symbol("ENOSPC: No space").as_str(), symbol("Ealice").as_str()), ("ENOSPC", LEFT_OUT));
    }

    #[test]
    fn names_keep_what_is_no_path() {
        let mut list = AllowList::new(Show { kinds: Vec::new(), is_ours: |_| false });
        for (name, shown) in [
            ("ext4 nodelalloc · 16 threads", "ext4 nodelalloc · 16 threads"),
            ("read/write, 100 MiB/s · /dev/sdb1", "read/write, 100 MiB/s · /dev/sdb1"),
            ("Debian GNU/Linux 12 (bookworm)", "Debian GNU/Linux 12 (bookworm)"),
            ("ext4 · uml:/home/alice moon/linux · 4", "ext4 · uml:[path 1] · 4"),
            ("uml:/home/alice moon/linux", "uml:[path 1]"),
            ("qemu:../alice/bzImage", "qemu:[path 2]"),
            ("uml:out/alice", "uml:[path 3]"),
            ("on ~/alice", "on [path 4]"),
            ("/dev/mapper/alice", "[path 5]"),
        ] {
            assert_eq!(list.name(name, &["out/alice"]), shown);
        }
    }
}

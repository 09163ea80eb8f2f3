//! The study file as it is written: every table and key there is, defined once.

use crate::{
    decode::{
        At, Count, Decode, Entries, Field, Flag, Given, InPlace, Key, Keys, Listed, Node, Nothing, OneOrMany, OrTable,
        Real, Share, Shared, Size, Text, Time, Word, Words, expected_table, field, object_schema, open, table,
        wrong_type,
    },
    diagnostic::{Diagnostic, Report},
    loads::{self, FileReader, LoadFormat, WordsReader},
    study::level::{Numbers, PlainFactors},
};
use fstone_model::{
    Better,
    output::Several,
    own::MAXIMUM_CLIENTS,
    study::{DiskTruth, FsckMode, Order},
    workload::ReplayPace,
};
use serde_json::{Value, json};
use toml::de::DeValue;

/// A number of repeats. A thousand of the shortest trials take a day.
pub(crate) type Trials = Count<1, 1000>;

/// A number of blocks before those that count.
pub(crate) type WarmUp = Count<0, 10>;

table! {
    /// A study: which filesystems are compared, under which load, how often and in which order.
    pub(crate) struct StudyFile {
        /// What is compared, in one line.
        "title" => title: Text, required;
        /// What the study asks and what to look for; paragraphs of plain text.
        "about" => about: Text;
        /// How often each cell is run: a number, or { min, max, until }. 3 unless given.
        "repeats" => repeats: RepeatsSurface;
        /// How many blocks (each cell once) run first and are not recorded. 0 unless given.
        "warm-up" => warm_up: WarmUp;
        /// In which order trials run: "blocks" (each block holds every cell once, shuffled; the default) or "as-written".
        "order" => order: Listed<Order>;
        /// The seed of the order and of all random streams. Unless it is given here or by `--seed`, each run draws one, prints it and records it.
        "seed" => seed: Count<0, { u64::MAX }>;
        /// How long the whole run is expected to take.
        "expected-duration" => expected_duration: Time;
        /// The row that ratios refer to: its label, or the name of a level.
        "baseline" => baseline: Text;
        /// The factor by which rows are compared, if it varies. `filesystem` unless given.
        "compare" => compare: Text;
        /// The device on which filesystems are made.
        "device" => device: DeviceSurface;
        /// Filesystems that the study defines, by name: the commands that make, mount and remove them.
        "filesystem" => filesystem: Entries<OwnSurface>;
        /// Programs that steps need, such as a database, by name.
        "service" => service: Entries<ServiceSurface>;
        /// What is varied. Every combination of levels is a row; the last factor varies fastest.
        "factor" => factor: FactorsSurface, required;
        /// Instead of every combination of levels: the combinations of each sweep, one sweep after the other.
        "sweep" => sweep: Vec<At<SweepSurface>>;
        /// Texts that commands use as `{name}`, so that `[quick]` can change them.
        "variables" => variables: Entries<Variable>;
        /// What is done to each filesystem, in order. Making and mounting it come first, even if not listed.
        "step" => step: Vec<At<StepSurface>>, required;
        /// What `--quick` changes.
        "quick" => quick: QuickSurface;
        /// Figures published elsewhere, to be printed beside those of a run.
        "published" => published: PublishedSurface;
        .. given: Given;
    }
}

pub(crate) type RepeatsSurface = OrTable<Trials, RepeatsRange>;

table! {
    /// Repeats until the figures are good enough.
    pub(crate) struct RepeatsRange {
        /// At least this often.
        "min" => min: Trials, required;
        /// At most this often.
        "max" => max: Trials, required;
        /// Stop when the half-width of the 95 % interval is below this share of the value.
        "until" => until: Share, required;
    }
}

impl InPlace for RepeatsRange {
    const EXPECTED: &'static str = "a number, or { min = 3, max = 10, until = \"2 %\" }";
}

impl Word for Order {
    const WORDS: &'static [(&'static str, Self)] = &[("blocks", Self::Blocks), ("as-written", Self::AsWritten)];
}

table! {
    /// The device on which filesystems are made.
    pub(crate) struct DeviceSurface {
        /// A sparse image file behind a loop device.
        "loop" => r#loop: LoopSurface;
        /// A compressed RAM disk.
        "zram" => zram: ZramSurface;
        /// The path of a block device, which will be formatted; the command line must permit it.
        "block" => block: Text;
        /// No device: a directory of an existing filesystem. Nothing is made, mounted or checked.
        "directory" => directory: Text;
        /// A drive in virtual time: the name of a model (`fstone device` lists them), or a .toml file beside the study.
        "model" => model: Text;
        /// The size of a modelled drive; its image is sparse.
        "size" => size: Size;
    }
    one of ["loop", "zram", "block", "directory", "model"]
}

table! {
    /// A sparse image file behind a loop device.
    pub(crate) struct LoopSurface {
        /// Its size.
        "size" => size: Size, required;
        /// Whether the loop device bypasses the page cache of the filesystem below. False unless given.
        "direct-io" => direct_io: Flag;
        /// Logical sector size: 512 (the default), 1024, 2048 or 4096.
        "sector-size" => sector_size: Size;
        /// Where the image is made. In the work directory unless given.
        "directory" => directory: Text;
        /// Whether the image is in memory, if twice its size is free. False unless given.
        "memory" => memory: Flag;
    }
}

table! {
    /// A compressed RAM disk.
    pub(crate) struct ZramSurface {
        /// Its size.
        "size" => size: Size, required;
    }
}

table! {
    /// What is varied.
    pub(crate) struct FactorsSurface {
        /// Filesystems, by name.
        "filesystem" => filesystem: Entries<FilesystemSurface>, required;
        /// Devices, by name.
        "device" => device: Entries<DeviceSurface>;
        .. plain: PlainFactors;
    }
}

table! {
    /// A filesystem to make.
    pub(crate) struct FilesystemSurface {
        /// Its type: ext4, xfs, btrfs, …, or the name of one that the study defines.
        "type" => r#type: Text, required;
        /// Options for its mkfs, as on a command line.
        "mkfs" => mkfs: Words;
        /// Mount options, comma separated.
        "mount" => mount: Text;
        /// A directory of this machine that mkfs copies into it; or `{source}`, see `command`.
        "tree" => tree: Text;
        /// How it was used before: "fresh" (not at all, the default) or a table.
        "age" => age: AgeChoice;
    }
}

table! {
    /// The image of a filesystem that was used elsewhere: each trial gets a copy.
    pub(crate) struct OldImageSurface {
        /// A file beside the study, not mounted, with a filesystem of this type and no partitions.
        "image" => image: Text, required;
    }
}

table! {
    /// How a filesystem was used before the steps begin.
    pub(crate) struct AgeSurface {
        /// What its files are like: a profile by name, or a .toml file beside the study.
        "profile" => profile: Text, required;
        /// How full the filesystem is in the end, as df counts.
        "utilization" => utilization: Share, required;
        /// How many times its size is written.
        "overwrites" => overwrites: Real, required;
        /// The share of the data that a compressor can remove. 0 unless given.
        "compressible" => compressible: Share;
        /// Makes all trials the same. Unless given, every repeat has another history.
        "seed" => seed: Count<0, { u64::MAX }>;
    }
}

#[derive(Debug, Clone)]
pub(crate) enum AgeChoice {
    Fresh,
    Aged(Box<AgeSurface>),
    Image(OldImageSurface),
}

impl Decode for AgeChoice {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        match node.get_ref().as_str() {
            Some("fresh") => Some(Self::Fresh),
            Some(_) => wrong_type(node, &Self::expected(), report),
            None if node.get_ref().get("image").is_some() => OldImageSurface::decode(node, report).map(Self::Image),
            None => AgeSurface::decode(node, report).map(|aged| Self::Aged(Box::new(aged))),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "enum": ["fresh"] }, AgeSurface::schema(), OldImageSurface::schema()] })
    }

    fn expected() -> String {
        "\"fresh\", { profile = \"agrawal\", utilization = \"80 %\", overwrites = 10 } or { image = \"old.img\" }"
            .into()
    }
}

table! {
    /// A profile: what the files of a filesystem are like.
    pub(crate) struct ProfileSurface {
        /// Sizes of files: [bytes, weight], ascending. A file of a row is larger than those of the row before.
        "sizes" => sizes: Rows<2>, required;
        /// Ages of files: [hours, weight], ascending.
        "ages" => ages: Rows<2>, required;
        /// Where files are: [depth, weight, number of directories at this depth], ascending.
        "directories" => directories: Rows<3>, required;
        /// The share of the written bytes that overwrite others in place, a page of 16 KiB at a time: "80 %".
        "overwritten" => overwritten: Share;
        /// The share of the files that grow by such a page at a time.
        "appended" => appended: Share;
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Rows<const WIDTH: usize>(pub(crate) Vec<[f64; WIDTH]>);

impl<const WIDTH: usize> Decode for Rows<WIDTH> {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        let number = |node: &Node<'_>| match node.get_ref() {
            DeValue::Integer(integer) => u64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|n| n as f64),
            DeValue::Float(float) => float.as_str().replace('_', "").parse().ok(),
            _ => None,
        };
        let row = |row: &Node<'_>| {
            let numbers: Option<Vec<f64>> = row.get_ref().as_array()?.iter().map(number).collect();
            numbers?.try_into().ok()
        };
        let Some(rows) = node.get_ref().as_array() else {
            return wrong_type(node, &Self::expected(), report);
        };
        let read: Vec<Option<[f64; WIDTH]>> = rows.iter().map(row).collect();
        for (row, _) in rows.iter().zip(&read).filter(|(_, read)| read.is_none()) {
            report.push(
                Diagnostic::error(row.span(), "this row cannot be read")
                    .label(format!("expected {WIDTH} numbers, none of them negative")),
            );
        }
        read.into_iter().collect::<Option<_>>().map(Self)
    }

    fn schema() -> Value {
        let row = json!({ "type": "array", "items": { "type": "number", "minimum": 0 }, "minItems": WIDTH, "maxItems": WIDTH });
        json!({ "type": "array", "items": row })
    }

    fn expected() -> String {
        format!("a list of rows of {WIDTH} numbers")
    }
}

pub(crate) type CommandWords = Vec<At<Text>>;

pub(crate) type Clients = Count<1, { MAXIMUM_CLIENTS as u64 }>;

table! {
    /// A filesystem of the study's own. Each command is a list of words; `{directory}` stands for a directory that is made for the trial, `{host}` for this machine's name.
    pub(crate) struct OwnSurface {
        /// Makes it, on `{device}` or in `{directory}`.
        "make" => make: CommandWords;
        /// Mounts it at `{mountpoint}`. The command ends when that is done; a daemon stays in the background.
        "mount" => mount: CommandWords, required;
        /// Unmounts `{mountpoint}`. umount(2) unless given.
        "unmount" => unmount: CommandWords;
        /// Checks it after unmounting; an exit status other than 0 means that it is damaged.
        "check" => check: CommandWords;
        /// Removes what `make` made. It runs after every trial in which `make` was started, perhaps twice.
        "remove" => remove: CommandWords;
        /// The Debian packages of its programs, named if one is missing.
        "packages" => packages: CommandWords;
        /// How many times it is mounted, each time as another client, `{client}`, at another mount point. 1 unless given.
        "clients" => clients: Clients;
    }
}

table! {
    /// A program that steps need. Each command is a list of words; `{data}` stands for its directory, `{mount}/NAME`.
    pub(crate) struct ServiceSurface {
        /// Fills its directory, once in a trial.
        "make" => make: CommandWords;
        /// Starts it; the command stays in the foreground until the service ends.
        "start" => start: CommandWords, required;
        /// When it answers.
        "ready" => ready: ReadySurface, required;
        /// Ends it. SIGTERM unless given.
        "stop" => stop: CommandWords;
        /// A file in its directory that it writes its log to. What it prints is its log, too.
        "log" => log: Text;
        /// The user that it runs as if fstone is root, and who owns its directory.
        "user" => user: Text;
        /// How long it may take to be ready, and to stop. 60 s unless given.
        "limit" => limit: Time;
    }
}

table! {
    /// How it is known that a service answers.
    pub(crate) struct ReadySurface {
        /// This command succeeds.
        "command" => command: CommandWords;
        /// This Unix socket, or this address and port, accepts a connection.
        "socket" => socket: Text;
        /// Its log has this text.
        "line" => line: Text;
    }
    one of ["command", "socket", "line"]
}

table! {
    /// Some levels of each factor. A factor that is not named keeps all of its levels.
    pub(crate) struct SweepSurface {
        /// Names of filesystems.
        "filesystem" => filesystem: OneOrMany<Text>;
        /// Names of devices.
        "device" => device: OneOrMany<Text>;
        .. plain: PlainFactors;
    }
}

table! {
    /// One step of a trial: exactly one thing to do, and how it is called, bounded and shown.
    pub(crate) struct StepSurface {
        /// Its name, unique in the study. Its kind unless given.
        "name" => name: Text;
        /// The time after which the trial counts as hung.
        "limit" => limit: Time;
        /// Its metrics that become columns of the table.
        "show" => show: OneOrMany<Text>;
        /// Makes the filesystem. Always the first step; listed to show its metrics.
        "mkfs" => mkfs: Nothing;
        /// Mounts it. Always the second step; listed to show its metrics, or again after `unmount` or `fsck`.
        "mount" => mount: Nothing;
        /// Runs a load in the mounted filesystem.
        "load" => load: LoadSurface;
        /// Runs a command in the mounted filesystem. `{mount}` and `{device}` stand for the mount point and the device, `{source}` for the archive of a source tree, and `{source:FILES}` for a generated one with this many files.
        "command" => command: CommandSurface;
        /// Starts a service, by its name, and waits until it answers. It is stopped where the filesystem is unmounted, and at the end.
        "service" => service: Text;
        /// Whether a load or command starts with the next one that has no such key, and ends with it. False unless given.
        "background" => background: Flag;
        /// Unmounts, drops caches and mounts again.
        "remount" => remount: Nothing;
        /// Unmounts.
        "unmount" => unmount: Nothing;
        /// Writes everything to the device: sync(2).
        "sync" => sync: Nothing;
        /// Drops the page, dentry and inode caches.
        "drop-caches" => drop_caches: Nothing;
        /// Tells the device which blocks are free: FITRIM.
        "trim" => trim: Nothing;
        /// Checks the filesystem with its own tool, unmounting it first.
        "fsck" => fsck: FsckSurface;
        /// Counts extents per file: FIEMAP.
        "fragmentation" => fragmentation: Nothing;
        /// Copies a file or tree of this machine into the filesystem.
        "copy-in" => copy_in: CopySurface;
        /// Mounts, reads and checks the states that power cuts during the preceding loads would have left. Needs a guest.
        "power-cut" => power_cut: PowerSurface;
    }
    one of [
        "mkfs", "mount", "load", "command", "service", "remount", "unmount", "sync", "drop-caches", "trim", "fsck",
        "fragmentation", "copy-in", "power-cut",
    ]
}

table! {
    /// A check of the filesystem.
    pub(crate) struct FsckSurface {
        /// What it may change: "read-only" (the default) or "repair".
        "mode" => mode: Listed<FsckMode>;
    }
}

impl Word for FsckMode {
    const WORDS: &'static [(&'static str, Self)] = &[("read-only", Self::ReadOnly), ("repair", Self::Repair)];
}

table! {
    /// Power cuts to be tried.
    pub(crate) struct PowerSurface {
        /// The largest number of states to try. 200 unless given.
        "states" => states: Count<1, 1_000_000>;
        /// How much data the disk's log may hold. 1 GiB unless given.
        "log" => log: Size;
        /// "sound" (the default), or a faulty disk, to see that the fault is found: "forgets-flushes", "tears" or "reorders".
        "disk" => disk: Listed<DiskTruth>;
        /// How many bytes the disk writes as a whole: 4096 (the default) or 512. Larger writes may be torn.
        "sector" => sector: Size;
    }
}

impl Word for DiskTruth {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("sound", Self::Sound),
        ("forgets-flushes", Self::ForgetsFlushes),
        ("tears", Self::Tears),
        ("reorders", Self::Reorders),
    ];
}

table! {
    /// A copy of a file or tree of this machine into the filesystem.
    pub(crate) struct CopySurface {
        /// An absolute path on this machine; or `{source}`, see `command`.
        "source" => source: Text, required;
        /// A relative path in the filesystem.
        "target" => target: Text, required;
    }
}

const LAUNCH: &str = "launch";
const PACE: &str = "pace";
const SPEED: &str = "speed";
const COLD: &str = "cold";

impl Word for ReplayPace {
    const WORDS: &'static [(&'static str, Self)] =
        &[("think", Self::Think), ("full", Self::Full), ("clock", Self::Clock)];
}

/// A load in one of the formats there are, and numbers of it that are set here whatever the file says.
#[derive(Debug, Clone)]
pub(crate) struct LoadSurface {
    /// The load: its format, and what is written there. `None` when there is none that can be read.
    pub(crate) load: Option<LoadField>,
    pub(crate) launch: Option<Field<Words>>,
    pub(crate) pace: Option<Field<Listed<ReplayPace>>>,
    pub(crate) speed: Option<Field<Real>>,
    pub(crate) cold: Option<Field<Flag>>,
    pub(crate) numbers: Numbers,
}

#[derive(Debug, Clone)]
pub(crate) enum LoadField {
    File { key: &'static str, read: FileReader, path: Field<Text> },
    Words { read: WordsReader, words: Field<Words> },
}

impl Keys for LoadSurface {
    const ABOUT: &'static str = "A load, and numbers of it that are set here whatever the file says.";

    fn one_of() -> Vec<&'static str> {
        loads::ALL.iter().map(|format| format.key).collect()
    }

    fn keys() -> Vec<Key> {
        let key = |format: &LoadFormat| Key {
            name: format.key,
            doc: format.about,
            required: false,
            schema: if format.words.is_some() { Words::schema } else { Text::schema },
        };
        let launch = Key {
            name: LAUNCH,
            doc: "What starts the ranks that run the load together: \"mpirun\", \"srun\", or a command line in which `{ranks}` \
                  is their number. \"mpirun\" if only `ranks` is given.",
            required: false,
            schema: Words::schema,
        };
        let pace = Key {
            name: PACE,
            doc: "When a replayed thread makes its next call: after the time that the application spent between the two (\"think\", \
                  the default), at once (\"full\"), or when it was made in the recording (\"clock\").",
            required: false,
            schema: Listed::<ReplayPace>::schema,
        };
        let speed = Key {
            name: SPEED,
            doc: "A replay's threads think, or its clock runs, so many times as fast: 0.001 to 1000. 1 unless given.",
            required: false,
            schema: Real::schema,
        };
        let cold = Key {
            name: COLD,
            doc: "Whether caches are dropped between the making of a replay's files and its first call. False unless given.",
            required: false,
            schema: Flag::schema,
        };
        loads::ALL.iter().map(key).chain([launch, pace, speed, cold]).chain(Numbers::keys()).collect()
    }

    fn takes(value: &Node<'_>) -> bool {
        Numbers::takes(value)
    }

    fn others() -> Option<Value> {
        Numbers::others()
    }
}

impl Decode for LoadSurface {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        let table = open::<Self>(node, report)?;
        let read = |&LoadFormat { key, words, file, .. }: &LoadFormat| match words {
            None => field(table, key, report).map(|path| LoadField::File { key, read: file, path }),
            Some(read) => field(table, key, report).map(|words| LoadField::Words { read, words }),
        };
        // All are read, so that everything that is wrong is reported.
        let loads: Vec<LoadField> = loads::ALL.iter().filter_map(read).collect();
        Some(Self {
            load: loads.into_iter().next(),
            launch: field(table, LAUNCH, report),
            pace: field(table, PACE, report),
            speed: field(table, SPEED, report),
            cold: field(table, COLD, report),
            numbers: Numbers::decode(table, &Self::one_of(), report),
        })
    }

    fn schema() -> Value {
        object_schema::<Self>()
    }

    fn expected() -> String {
        expected_table::<Self>()
    }
}

#[derive(Debug, Clone)]
pub(crate) enum CommandSurface {
    Argv(Vec<At<Text>>),
    Table(CommandTable),
}

table! {
    /// A command and how it is run.
    pub(crate) struct CommandTable {
        /// Program and arguments as a list, or a string with `shell = true`.
        "run" => run: OneOrMany<Text>, required;
        /// Whether `run` is a script for `sh -c`. False unless given.
        "shell" => shell: Flag;
        /// Exit statuses that count as success. 0 unless given.
        "success" => success: OneOrMany<Count<0, 255>>;
        /// Figures that it prints, by name.
        "figures" => figures: Entries<FigureSurface>;
    }
}

table! {
    /// Where a figure is in what a command prints.
    pub(crate) struct FigureSurface {
        /// A regular expression with one group, the number. `^` and `$` match at every line.
        "match" => r#match: Text;
        /// A JSON pointer to a number or to a list of numbers: "/jobs/0/read/iops".
        "json" => json: Text;
        /// A column of a table with commas, by the name in its first row: { column = "tps" }.
        "csv" => csv: CsvSurface;
        /// What is searched: "stdout" (the default), "stderr", or a relative path of a file in the filesystem.
        "from" => from: Text;
        /// Which of several numbers: "last" (the default) or "first", or their "mean" or "sum", or "each": their mean, and all of them as a series.
        "several" => several: Listed<Several>;
        /// The unit of the printed number: "s", "ms", "µs", "ns", "/s", "B", "kB" (1,000), "KiB" (1,024), "MB/s", "MiB/s", "%", "ratio" or "count". "count" unless fstone has a metric of this name.
        "unit" => unit: Text;
        /// The better direction: "higher", "lower" or "neither". By the unit unless given: rates higher, times lower, others neither.
        "better" => better: Listed<Better>;
    }
    one of ["match", "json", "csv"]
}

table! {
    /// A column of a table with commas.
    pub(crate) struct CsvSurface {
        /// Its name, in the first row.
        "column" => column: Text, required;
    }
}

impl Word for Several {
    const WORDS: &'static [(&'static str, Self)] =
        &[("first", Self::First), ("last", Self::Last), ("mean", Self::Mean), ("sum", Self::Sum), ("each", Self::Each)];
}

impl Word for Better {
    const WORDS: &'static [(&'static str, Self)] =
        &[("higher", Self::Higher), ("lower", Self::Lower), ("neither", Self::Neither)];
}

impl Decode for CommandSurface {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        match node.get_ref() {
            DeValue::Array(_) => Vec::decode(node, report).map(Self::Argv),
            DeValue::Table(_) => CommandTable::decode(node, report).map(Self::Table),
            DeValue::String(_) => {
                report.push(
                    Diagnostic::error(node.span(), "a string cannot stand here")
                        .label("expected program and arguments as a list")
                        .help("for a shell's script, write { run = \"…\", shell = true }"),
                );
                None
            }
            _ => wrong_type(node, &Self::expected(), report),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [Vec::<At<Text>>::schema(), CommandTable::schema()] })
    }

    fn expected() -> String {
        "program and arguments as a list, or { run = […] }".into()
    }
}

table! {
    /// What `--quick` changes.
    pub(crate) struct QuickSurface {
        /// How often each cell is run.
        "repeats" => repeats: RepeatsSurface;
        /// How many blocks run first and are not recorded.
        "warm-up" => warm_up: WarmUp;
        /// How long the whole run is expected to take.
        "expected-duration" => expected_duration: Time;
        /// The device on which filesystems are made.
        "device" => device: DeviceSurface;
        /// The remaining levels of the factors named here. Filesystems and devices are chosen by name; other levels may be new.
        "factor" => factor: SweepSurface;
        /// Instead of the study's sweeps.
        "sweep" => sweep: Vec<At<SweepSurface>>;
        /// Other values of variables.
        "variables" => variables: Entries<Variable>;
        .. numbers: Numbers;
    }
}

/// The value of a variable: a text or a whole number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable(pub(crate) String);

impl Decode for Variable {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        match node.get_ref() {
            DeValue::String(text) => Some(Self(text.to_string())),
            DeValue::Integer(_) => {
                Count::<0, { u64::MAX }>::decode(node, report).map(|Count(count)| Self(count.to_string()))
            }
            _ => wrong_type(node, &Self::expected(), report),
        }
    }

    fn schema() -> Value {
        json!({ "type": ["string", "integer"] })
    }

    fn expected() -> String {
        "a string or a whole number".into()
    }
}

table! {
    /// Figures published elsewhere.
    pub(crate) struct PublishedSurface {
        /// Where, when, and on what machine; plain text.
        "source" => source: Text, required;
        /// The memory of that machine, which guests get with --published --exact.
        "memory" => memory: Size;
        /// The model of its drive (`fstone device`), which guests get with --published --exact.
        "model" => model: Text;
        /// The columns of each row: headers of the study's table.
        "columns" => columns: Vec<At<Text>>, required;
        /// The figures of each row, by its label: one per column, or one text in place of all of them.
        "row" => row: Entries<PublishedRow>, required;
    }
}

#[derive(Debug, Clone)]
pub(crate) enum PublishedRow {
    /// One per column.
    Figures(Vec<At<PublishedValue>>),
    Note(String),
}

impl Decode for PublishedRow {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        if node.get_ref().is_str() {
            return Text::decode(node, report).map(|Text(note)| Self::Note(note));
        }
        Vec::decode(node, report).map(Self::Figures)
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "type": "string" }, Vec::<At<PublishedValue>>::schema()] })
    }

    fn expected() -> String {
        "a list of figures, or a text in place of them".into()
    }
}

#[derive(Debug, Clone)]
pub(crate) enum PublishedValue {
    /// A number in the metric's base unit.
    Number(f64),
    /// A quantity with its unit, or a text in place of a figure.
    Text(String),
    Remarked(RemarkedFigure),
}

table! {
    /// A figure with a remark.
    pub(crate) struct RemarkedFigure {
        /// The figure: a number in the metric's base unit, or a text with its unit.
        "value" => value: Figure, required;
        /// The note that goes with it.
        "note" => note: Text, required;
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Figure {
    /// In the metric's base unit.
    Number(f64),
    Text(String),
}

impl Decode for Figure {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        let number = match node.get_ref() {
            DeValue::Integer(integer) => u64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|n| n as f64),
            DeValue::Float(float) => float.as_str().replace('_', "").parse().ok(),
            DeValue::String(text) => return Some(Self::Text(text.to_string())),
            _ => None,
        };
        number.map(Self::Number).or_else(|| wrong_type(node, &Self::expected(), report))
    }

    fn schema() -> Value {
        json!({ "type": ["number", "string"] })
    }

    fn expected() -> String {
        "a number in the metric's base unit, or a text such as \"32.7 MiB/s\"".into()
    }
}

impl Decode for PublishedValue {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        if node.get_ref().is_table() {
            return RemarkedFigure::decode(node, report).map(Self::Remarked);
        }
        Figure::decode(node, report).map(|figure| match figure {
            Figure::Number(number) => Self::Number(number),
            Figure::Text(text) => Self::Text(text),
        })
    }

    fn schema() -> Value {
        json!({ "anyOf": [Figure::schema(), RemarkedFigure::schema()] })
    }

    fn expected() -> String {
        "a figure, or a text in place of one".into()
    }
}

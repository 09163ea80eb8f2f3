//! A workload as a workload file.
//!
//! What is as it would be without being said is left out, so that the file reads like one a person wrote.

use super::{
    action::ANY,
    read::DEFAULT_SERIES_INTERVAL,
    surface::{BLOCK, WHOLE},
};
use crate::decode::Word;
use fstone_model::workload::{
    Action, Actions, Amount, Arrivals, CpuPolicy, DEFAULT_BUILD_BLOCK_BYTES, DataPattern, Directories, Distribution,
    ErrorPolicy, Existing, Extent, FileChoice, Fileset, FinalSync, FsyncPolicy, IoOverrides, IoSettings, Naming,
    OpenPolicy, Operation, Pattern, Phase, Region, SizeDistribution, Stop, ThreadGroup, TransactionRule, Transfer,
    Workload,
};
use std::time::Duration;

/// A workload as a workload file; [`super::parse`] reads it back as the same workload.
///
/// That holds for workloads that a workload file can describe: names are unique, filesets are below the load's
/// directory, every phase ends. Queue depths that change nothing are left out.
#[must_use]
pub fn print(workload: &Workload) -> String {
    let workload = &workload.clone().without_unused_depths();
    let mut out = Lines::default();
    out.key("name", quoted(&workload.name));
    out.unless_default("on-error", word(&workload.on_error), workload.on_error == ErrorPolicy::Stop);
    out.unless_default("final-sync", word(&workload.final_sync), workload.final_sync == FinalSync::Syncfs);
    if let Some(callout) = &workload.callout {
        out.key("callout", quoted(callout));
    }
    let is_default = workload.series_interval == DEFAULT_SERIES_INTERVAL;
    out.unless_default("series-interval", time(workload.series_interval), is_default);
    out.table_unless_empty("[io]", io(&beyond_default(&workload.io)));
    out.table_unless_empty("[data]", data(&workload.data));
    for fileset in &workload.filesets {
        out.table("[[fileset]]", self::fileset(fileset));
    }
    for phase in &workload.phases {
        out.table("[[phase]]", self::phase(phase));
        for group in &phase.groups {
            out.table("[[phase.group]]", self::group(group, &workload.filesets));
            actions(&mut out, &group.actions, &workload.filesets);
        }
    }
    out.0
}

/// Keys of a table, in order.
type KeyValues = Vec<(&'static str, String)>;

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn key(&mut self, name: &str, value: impl AsRef<str>) {
        self.0.push_str(&format!("{name} = {}\n", value.as_ref()));
    }

    fn unless_default(&mut self, name: &str, value: impl AsRef<str>, is_default: bool) {
        if !is_default {
            self.key(name, value);
        }
    }

    fn table(&mut self, header: &str, keys: KeyValues) {
        self.0.push_str(&format!("\n{header}\n"));
        for (name, value) in keys {
            self.key(name, value);
        }
    }

    fn table_unless_empty(&mut self, header: &str, keys: KeyValues) {
        if !keys.is_empty() {
            self.table(header, keys);
        }
    }
}

/// The keys that are wanted.
fn wanted<const N: usize>(keys: [(&'static str, Option<String>); N]) -> KeyValues {
    keys.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// A value unless it is what stands there without being said.
fn unless(is_default: bool, value: impl FnOnce() -> String) -> Option<String> {
    (!is_default).then(value)
}

fn flag(is_set: bool) -> Option<String> {
    unless(!is_set, || "true".into())
}

fn inline(keys: &KeyValues) -> String {
    if keys.is_empty() {
        return "{}".into();
    }
    let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    format!("{{ {} }}", keys.join(", "))
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn word<T: Word + PartialEq>(value: &T) -> String {
    let (word, _) = T::WORDS.iter().find(|(_, known)| known == value).expect("every value has its word");
    format!("\"{word}\"")
}

/// With the largest unit that leaves a whole number.
fn size(bytes: u64) -> String {
    // Sizes with a unit are read by way of a double, which is exact up to here.
    const EXACT: u64 = 1 << 53;
    for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if (1..=EXACT).contains(&bytes) && bytes.is_multiple_of(1 << shift) {
            return format!("\"{} {unit}\"", bytes >> shift);
        }
    }
    // A bare number is bytes, and exact where TOML's integers end.
    if i64::try_from(bytes).is_ok() { bytes.to_string() } else { format!("\"{bytes}\"") }
}

/// With the largest unit that leaves a whole number; a fraction of a second otherwise.
fn time(time: Duration) -> String {
    let ns = time.as_nanos();
    for (unit, ns_per_unit) in [("min", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)] {
        if ns.is_multiple_of(ns_per_unit) && (ns > 0 || unit == "s") {
            return format!("\"{} {unit}\"", ns / ns_per_unit);
        }
    }
    format!("\"{}.{:09} s\"", time.as_secs(), time.subsec_nanos())
}

/// As a percentage when that is the same number, as a share otherwise.
fn share(share: f64) -> String {
    let percent = format!("{}", share * 100.0);
    let is_short = percent.len() <= 4;
    let is_same = percent.parse::<f64>().is_ok_and(|percent| percent / 100.0 == share);
    if is_short && is_same { format!("\"{percent} %\"") } else { format!("\"{share}\"") }
}

fn real(number: f64) -> String {
    format!("{number:?}")
}

/// What a workload's settings are beyond the usual.
fn beyond_default(io: &IoSettings) -> IoOverrides {
    let default = IoSettings::default();
    IoOverrides {
        engine: Some(io.engine).filter(|engine| *engine != default.engine),
        direct: Some(io.direct).filter(|direct| *direct != default.direct),
        sync: Some(io.sync).filter(|sync| *sync != default.sync),
        queue_depth: Some(io.queue_depth).filter(|depth| *depth != default.queue_depth),
    }
}

fn io(io: &IoOverrides) -> KeyValues {
    wanted([
        ("engine", io.engine.as_ref().map(word)),
        ("direct", io.direct.map(|direct| direct.to_string())),
        ("sync", io.sync.as_ref().map(word)),
        ("queue-depth", io.queue_depth.map(|depth| depth.to_string())),
    ])
}

fn data(data: &DataPattern) -> KeyValues {
    wanted([
        ("compressible", unless(data.compressible == 0.0, || share(data.compressible))),
        ("duplicate", unless(data.duplicate == 0.0, || share(data.duplicate))),
        ("stamped", flag(data.stamped)),
    ])
}

fn fileset(fileset: &Fileset) -> KeyValues {
    let naming = Naming::default();
    let amount = match fileset.amount {
        Amount::Files(files) => ("files", files.to_string()),
        Amount::Bytes(bytes) => ("bytes", size(bytes)),
        Amount::Utilization(utilization) => ("utilization", share(utilization)),
    };
    wanted([
        ("name", Some(quoted(&fileset.name))),
        ("directory", unless(fileset.directory.is_empty(), || quoted(&fileset.directory))),
        (amount.0, Some(amount.1)),
        ("directories", directories(fileset.directories)),
        ("size", Some(size_distribution(&fileset.size))),
        (
            "file-prefix",
            unless(fileset.naming.exact || fileset.naming.file_prefix == naming.file_prefix, || {
                quoted(&fileset.naming.file_prefix)
            }),
        ),
        ("file-name", unless(!fileset.naming.exact, || quoted(&fileset.naming.file_prefix))),
        (
            "directory-prefix",
            unless(fileset.naming.directory_prefix == naming.directory_prefix, || {
                quoted(&fileset.naming.directory_prefix)
            }),
        ),
        ("preallocated", unless(fileset.preallocated == 1.0, || share(fileset.preallocated))),
        (
            "build-block",
            unless(fileset.build_block_bytes == DEFAULT_BUILD_BLOCK_BYTES, || size(fileset.build_block_bytes)),
        ),
        ("existing", unless(fileset.existing == Existing::Rebuild, || word(&fileset.existing))),
        ("fill", unless(fileset.fill, || "false".into())),
    ])
}

fn directories(directories: Directories) -> Option<String> {
    match directories {
        Directories::Flat { count: 0, root_too: false } => None,
        Directories::Flat { count, root_too: false } => Some(count.to_string()),
        Directories::Flat { count, root_too: true } => Some(format!("{{ count = {count}, parent-too = true }}")),
        Directories::Tree { width, depth } => Some(format!("{{ tree = {{ width = {width}, depth = {depth} }} }}")),
    }
}

fn size_distribution(distribution: &SizeDistribution) -> String {
    match distribution {
        SizeDistribution::Fixed(bytes) => size(*bytes),
        SizeDistribution::Uniform { minimum, maximum } => {
            format!("{{ uniform = {{ from = {}, below = {} }} }}", size(*minimum), size(*maximum))
        }
        SizeDistribution::Weighted(sizes) => {
            let sizes: Vec<String> = sizes
                .iter()
                .map(|(bytes, weight)| format!("{{ size = {}, weight = {weight} }}", size(*bytes)))
                .collect();
            format!("{{ weighted = [{}] }}", sizes.join(", "))
        }
        SizeDistribution::Gamma { mean, shape } => {
            format!("{{ gamma = {{ mean = {}, shape = {} }} }}", size(*mean), real(*shape))
        }
        SizeDistribution::Lognormal { median, sigma } => {
            format!("{{ lognormal = {{ median = {}, sigma = {} }} }}", size(*median), real(*sigma))
        }
    }
}

fn phase(phase: &Phase) -> KeyValues {
    wanted([
        ("name", Some(quoted(&phase.name))),
        ("measured", unless(phase.measured, || "false".into())),
        ("stop", stop(&phase.stop)),
    ])
}

fn stop(stop: &Stop) -> Option<String> {
    let keys = wanted([
        ("time", stop.time.map(time)),
        ("operations", stop.operations.map(|operations| operations.to_string())),
        ("bytes", stop.bytes.map(size)),
        ("once-through", flag(stop.once_through)),
        ("utilization", stop.utilization.map(share)),
    ]);
    unless(keys.is_empty(), || inline(&keys))
}

fn group(group: &ThreadGroup, filesets: &[Fileset]) -> KeyValues {
    let ratio = match &group.actions {
        Actions::Ratio { first, second, ratio } => Some(format!(
            "{{ value = {}, first = {}, second = {} }}",
            real(*ratio),
            inline(&action(first, filesets)),
            inline(&action(second, filesets))
        )),
        Actions::Mix(_) | Actions::Sequence(_) => None,
    };
    wanted([
        ("name", Some(quoted(&group.name))),
        ("threads", unless(group.threads == 1, || group.threads.to_string())),
        ("io", unless(group.io.is_empty(), || inline(&io(&group.io)))),
        ("open", unless(group.open == OpenPolicy::PerOperation, || word(&group.open))),
        ("think-time", unless(group.think_time.is_zero(), || time(group.think_time))),
        ("rate", group.rate_per_second.map(real)),
        ("bandwidth", group.bytes_per_second.map(size)),
        ("arrivals", unless(group.arrivals == Arrivals::Even, || word(&group.arrivals))),
        ("invalidate", flag(group.invalidate)),
        ("region", region(group.region)),
        ("start-delay", unless(group.start_delay.is_zero(), || time(group.start_delay))),
        ("cpus", unless(group.cpus.is_empty(), || format!("{:?}", group.cpus))),
        ("cpu-policy", unless(group.cpu_policy == CpuPolicy::Shared, || word(&group.cpu_policy))),
        ("fsync", fsync(&group.fsync)),
        ("stop", stop(&group.stop)),
        ("ratio", ratio),
    ])
}

fn region(region: Region) -> Option<String> {
    match region {
        Region::Whole => None,
        Region::Split => Some("\"split\"".into()),
        Region::At { offset_bytes, length_bytes, step_bytes } => Some(inline(&wanted([
            ("offset", unless(offset_bytes == 0, || size(offset_bytes))),
            ("length", length_bytes.map(size)),
            ("step", unless(step_bytes == 0, || size(step_bytes))),
        ]))),
    }
}

fn fsync(policy: &FsyncPolicy) -> Option<String> {
    let keys = wanted([
        ("every", unless(policy.every_operations == 0, || policy.every_operations.to_string())),
        ("all-files", flag(policy.all_files)),
        ("counted", flag(policy.counted)),
        ("at-end", flag(policy.at_end)),
        ("data-only", flag(policy.data_only)),
    ]);
    unless(keys.is_empty(), || inline(&keys))
}

fn actions(out: &mut Lines, actions: &Actions, filesets: &[Fileset]) {
    match actions {
        Actions::Mix(mix) => {
            for weighted in mix {
                let mut keys = wanted([("weight", unless(weighted.weight == 1, || weighted.weight.to_string()))]);
                keys.extend(action(&weighted.action, filesets));
                out.table("[[phase.group.mix]]", keys);
            }
        }
        Actions::Sequence(sequence) => {
            for one in sequence {
                out.table("[[phase.group.sequence]]", action(one, filesets));
            }
        }
        // On the group's own lines.
        Actions::Ratio { .. } => {}
    }
}

fn action(action: &Action, filesets: &[Fileset]) -> KeyValues {
    let (key, value) = (action.operation.nature().word, operation(action, filesets));
    let fileset = match action.fileset {
        None => (filesets.len() == 1).then(|| format!("\"{ANY}\"")),
        Some(0) if filesets.len() == 1 => None,
        Some(index) => filesets.get(index as usize).map(|fileset| quoted(&fileset.name)),
    };
    wanted([
        ("name", unless(action.name == key, || quoted(&action.name))),
        (key, Some(value)),
        ("fileset", fileset),
        ("choice", unless(action.choice == FileChoice::Uniform, || word(&action.choice))),
        ("transactions", unless(action.transactions == TransactionRule::One, || word(&action.transactions))),
    ])
}

/// What stands behind the operation's key.
fn operation(action: &Action, filesets: &[Fileset]) -> String {
    let (operation, blocks) = (&action.operation, action.blocks.as_ref());
    let length = |bytes: u64| inline(&vec![("size", size(bytes))]);
    match operation {
        Operation::Create { block_bytes, fsync } => {
            let block = unless(*block_bytes == 0, || block(*block_bytes, blocks));
            inline(&wanted([("block", block), ("fsync", flag(*fsync))]))
        }
        Operation::Read(transfer)
        | Operation::Write(transfer)
        | Operation::Append(transfer)
        | Operation::MmapRead(transfer) => inline(&self::transfer(transfer, blocks)),
        Operation::MmapWrite { transfer, msync } => {
            let mut keys = self::transfer(transfer, blocks);
            keys.extend(wanted([("msync", flag(*msync))]));
            inline(&keys)
        }
        Operation::Move { to } => {
            let name = filesets.get(*to as usize).map(|fileset| quoted(&fileset.name));
            inline(&wanted([("to", name)]))
        }
        Operation::Truncate { size_bytes } | Operation::Fallocate { size_bytes, .. } => length(*size_bytes),
        Operation::Setxattr { value_bytes } => length(u64::from(*value_bytes)),
        Operation::OpenClose
        | Operation::Fsync
        | Operation::Fdatasync
        | Operation::FsyncDirectory
        | Operation::Syncfs
        | Operation::Unlink
        | Operation::Rename
        | Operation::Link
        | Operation::Symlink
        | Operation::Mkdir
        | Operation::Rmdir
        | Operation::Metadata
        | Operation::Readdir
        | Operation::Walk
        | Operation::Stat
        | Operation::Chmod
        | Operation::Utimens
        | Operation::Getxattr
        | Operation::CopyFileRange
        | Operation::Reflink => "{}".into(),
    }
}

fn block(bytes: u64, blocks: Option<&SizeDistribution>) -> String {
    blocks.map_or_else(|| size(bytes), size_distribution)
}

fn transfer(transfer: &Transfer, blocks: Option<&SizeDistribution>) -> KeyValues {
    let smallest =
        blocks.and_then(SizeDistribution::block_bounds).map_or(transfer.block_bytes, |(smallest, _)| smallest);
    let (word, align, distribution, skip) = match transfer.pattern {
        Pattern::FromStart => (None, None, None, None),
        Pattern::FromRandom { align_bytes } => (Some("\"from-random\""), Some(align_bytes), None, None),
        Pattern::Cursor { shared: false } => (Some("\"cursor\""), None, None, None),
        Pattern::Cursor { shared: true } => (Some("\"shared-cursor\""), None, None, None),
        Pattern::Random { distribution, align_bytes } => {
            let distribution = match distribution {
                Distribution::Uniform => None,
                Distribution::Permutation => Some("\"permutation\"".to_owned()),
                Distribution::Zipf { theta } => Some(format!("{{ zipf = {} }}", real(theta))),
                Distribution::Gauss { deviation } => Some(format!("{{ gauss = {} }}", real(deviation))),
            };
            (Some("\"random\""), Some(align_bytes), distribution, None)
        }
        Pattern::Skip { skip_bytes } => (Some("\"skip\""), None, None, Some(skip_bytes)),
    };
    let extent = match transfer.extent {
        Extent::Whole => format!("\"{WHOLE}\""),
        Extent::Bytes(bytes) if blocks.is_some() && bytes == transfer.block_bytes => format!("\"{BLOCK}\""),
        Extent::Bytes(bytes) => size(bytes),
    };
    wanted([
        ("size", Some(extent)),
        ("block", Some(block(transfer.block_bytes, blocks))),
        ("pattern", word.map(str::to_owned)),
        ("align", align.filter(|align| *align != smallest).map(size)),
        ("distribution", distribution),
        ("skip", skip.map(size)),
        ("fsync", flag(transfer.fsync)),
    ])
}

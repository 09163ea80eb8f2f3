//! A workload file, read into the workload.

use super::surface::{
    ActionSurface, DirectoriesSurface, DistributionSurface, DistributionWord, FilesetSurface, FsyncSurface,
    GroupSurface, IoSurface, PatternWord, PhaseSurface, SizeSurface, SizeTable, StopSurface, TransferSurface,
    WorkloadFile,
};
use crate::{
    decode::{At, Count, Field, Flag, Keys, Listed, Nothing, Share, Size, Text, Time, Word, document, listed},
    diagnostic::{Diagnostic, Diagnostics, Report, Source, Span},
};
use fstone_model::workload::{
    Action, Actions, Amount, DataPattern, Directories, Distribution, ErrorPolicy, Existing, Extent, FileChoice,
    Fileset, FinalSync, FsyncPolicy, IoSettings, Naming, OpenPolicy, OpenSync, Operation, Pattern, Phase,
    SizeDistribution, Stop, ThreadGroup, TransactionRule, Transfer, Weighted, Workload,
};
use std::{
    path::{Component, Path},
    time::Duration,
};

/// The largest workload file that is read.
pub const MAXIMUM_BYTES: usize = 1 << 20;
/// What stands for any fileset.
pub(super) const ANY: &str = "*";
/// Writes that make files, unless the file says otherwise.
pub(super) const DEFAULT_BUILD_BLOCK_BYTES: u64 = 64 << 10;
/// A point of the series, unless the file says otherwise.
pub(super) const DEFAULT_SERIES_INTERVAL: Duration = Duration::from_secs(1);
/// The largest block: what the kernel moves in one call.
const MAXIMUM_BLOCK_BYTES: u64 = 1 << 30;

/// Reads a workload file.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(source: &Source) -> Result<Workload, Diagnostics> {
    let mut report = Report::new(source.clone());
    if !report.check_size(MAXIMUM_BYTES, "the workload file") {
        return Err(report.into_diagnostics().expect("the size is wrong"));
    }
    let workload = document(&mut report).and_then(|surface| workload(&surface, &mut report));
    let (workload, _warnings) = report.finish(workload)?;
    Ok(workload.expect("there is a workload, or an error"))
}

/// The value of a key, or its default.
fn or<T: Clone, U>(field: Option<&Field<T>>, default: U, value: impl Fn(T) -> U) -> U {
    field.map_or(default, |field| value(field.value.clone()))
}

fn word<T: Word>(field: Option<&Field<Listed<T>>>, default: T) -> T {
    or(field, default, |Listed(word)| word)
}

fn flag(field: Option<&Field<Flag>>, default: bool) -> bool {
    or(field, default, |Flag(flag)| flag)
}

fn bytes(field: Option<&Field<Size>>) -> u64 {
    or(field, 0, |Size(bytes)| bytes)
}

fn text(field: Option<&Field<Text>>, default: &str) -> String {
    or(field, default.to_owned(), |Text(text)| text)
}

fn small<const MAX: u64>(field: Option<&Field<Count<1, MAX>>>) -> u32 {
    or(field, 1, |Count(count)| u32::try_from(count).expect("the type allows no more"))
}

fn workload(surface: &WorkloadFile, report: &mut Report) -> Option<Workload> {
    let (no_filesets, no_phases) = (Vec::new(), Vec::new());
    let fileset_surfaces = surface.fileset.as_ref().map_or(&no_filesets, |field| &field.value);
    if let Some(field) = surface.fileset.as_ref().filter(|field| field.value.is_empty()) {
        report.push(
            Diagnostic::error(field.span, "there are no files to work on").label("expected at least one fileset"),
        );
    }
    unique(fileset_surfaces.iter().filter_map(|at| at.value.name.as_ref()), "fileset", report);
    let filesets: Vec<Fileset> = fileset_surfaces.iter().map(|at| fileset(&at.value, report)).collect();
    let names: Vec<&str> = filesets.iter().map(|fileset| fileset.name.as_str()).collect();
    let phase_surfaces = surface.phase.as_ref().map_or(&no_phases, |field| &field.value);
    unique(phase_surfaces.iter().filter_map(|at| at.value.name.as_ref()), "phase", report);
    let phases: Vec<Phase> = phase_surfaces.iter().map(|at| phase(&at.value, &names, report)).collect();
    let data = surface.data.as_ref().map_or_else(DataPattern::default, |Field { value, .. }| DataPattern {
        compressible: or(value.compressible.as_ref(), 0.0, |Share(share)| share),
        duplicate: or(value.duplicate.as_ref(), 0.0, |Share(share)| share),
        stamped: flag(value.stamped.as_ref(), false),
    });
    let series_interval = or(surface.series_interval.as_ref(), DEFAULT_SERIES_INTERVAL, |Time(time)| time);
    if let Some(field) = surface.series_interval.as_ref().filter(|field| field.value.0.is_zero()) {
        report.push(Diagnostic::error(field.span, "a point of the series needs some time"));
    }
    Some(Workload {
        name: text(surface.name.as_ref(), ""),
        io: surface.io.as_ref().map_or_else(IoSettings::default, |field| io(&field.value)),
        filesets,
        phases,
        data,
        on_error: word(surface.on_error.as_ref(), ErrorPolicy::Stop),
        final_sync: word(surface.final_sync.as_ref(), FinalSync::Syncfs),
        callout: surface.callout.as_ref().map(|field| field.value.0.clone()),
        series_interval,
    })
}

fn unique<'s>(names: impl Iterator<Item = &'s Field<Text>>, what: &str, report: &mut Report) {
    let mut seen: Vec<&Field<Text>> = Vec::new();
    for field in names {
        if let Some(first) = seen.iter().find(|first| first.value == field.value) {
            report.push(
                Diagnostic::error(field.span, format!("a {what} named `{}` is there already", field.value.0))
                    .label("the name again")
                    .context(first.span, "the first"),
            );
        }
        seen.push(field);
    }
}

fn io(surface: &IoSurface) -> IoSettings {
    let default = IoSettings::default();
    IoSettings {
        engine: word(surface.engine.as_ref(), default.engine),
        direct: flag(surface.direct.as_ref(), default.direct),
        sync: word(surface.sync.as_ref(), OpenSync::None),
        queue_depth: small(surface.queue_depth.as_ref()),
    }
}

fn fileset(surface: &FilesetSurface, report: &mut Report) -> Fileset {
    if let Some(field) = surface.name.as_ref().filter(|field| field.value.0 == ANY) {
        report.push(Diagnostic::error(field.span, "no fileset can be called `*`").label("`*` stands for any of them"));
    }
    if let Some(field) = &surface.directory {
        let Text(path) = &field.value;
        if path.contains('\0') || !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
            report.push(
                Diagnostic::error(field.span, format!("`{path}` is not below the load's directory"))
                    .label("expected a relative path without `.` and `..`"),
            );
        }
    }
    for field in [&surface.file_prefix, &surface.directory_prefix].into_iter().flatten() {
        if field.value.0.contains(['/', '\0']) || field.value.0.len() > 200 {
            report.push(
                Diagnostic::error(field.span, "no file can be called that").label("expected a short name without `/`"),
            );
        }
    }
    let amount = if let Some(field) = &surface.bytes {
        Amount::Bytes(field.value.0)
    } else if let Some(field) = &surface.utilization {
        Amount::Utilization(field.value.0)
    } else {
        Amount::Files(or(surface.files.as_ref(), 0, |Count(files)| files))
    };
    let naming = Naming::default();
    Fileset {
        name: text(surface.name.as_ref(), ""),
        directory: text(surface.directory.as_ref(), ""),
        amount,
        directories: directories(surface.directories.as_ref(), report),
        size: surface.size.as_ref().map_or(SizeDistribution::Fixed(0), |field| size(&field.value, field.span, report)),
        naming: Naming {
            file_prefix: text(surface.file_prefix.as_ref(), &naming.file_prefix),
            directory_prefix: text(surface.directory_prefix.as_ref(), &naming.directory_prefix),
        },
        preallocated: or(surface.preallocated.as_ref(), 1.0, |Share(share)| share),
        build_block_bytes: surface.build_block.as_ref().map_or(DEFAULT_BUILD_BLOCK_BYTES, |field| block(field, report)),
        existing: word(surface.existing.as_ref(), Existing::Rebuild),
        fill: flag(surface.fill.as_ref(), true),
    }
}

fn directories(field: Option<&Field<DirectoriesSurface>>, report: &mut Report) -> Directories {
    let none = Directories::Flat { count: 0, root_too: false };
    let Some(field) = field else { return none };
    let table = match &field.value {
        DirectoriesSurface::Count(count) => return Directories::Flat { count: *count, root_too: false },
        DirectoriesSurface::Table(table) => table,
    };
    if let Some(Field { value: Count(count), .. }) = table.count {
        return Directories::Flat { count, root_too: flag(table.parent_too.as_ref(), false) };
    }
    if let Some(field) = &table.parent_too {
        report.push(
            Diagnostic::error(field.key, "`parent-too` beside `tree`").label("files of a tree are in its leaves"),
        );
    }
    let Some(Field { value: tree, .. }) = &table.tree else { return none };
    Directories::Tree { width: small(tree.width.as_ref()), depth: small(tree.depth.as_ref()) }
}

fn size(surface: &SizeSurface, span: Span, report: &mut Report) -> SizeDistribution {
    let table: &SizeTable = match surface {
        SizeSurface::Fixed(bytes) => return SizeDistribution::Fixed(*bytes),
        SizeSurface::Table(table) => table,
    };
    let real = |field: Option<&Field<crate::decode::Real>>| or(field, 1.0, |crate::decode::Real(real)| real);
    if let Some(Field { value, .. }) = &table.uniform {
        let (minimum, maximum) = (bytes(value.from.as_ref()), bytes(value.below.as_ref()));
        if let (Some(from), Some(below)) = (&value.from, &value.below)
            && minimum > maximum
        {
            report.push(
                Diagnostic::error(below.span, "`below` is less than `from`")
                    .context(from.span, "`from`")
                    .label("expected a larger size"),
            );
        }
        return SizeDistribution::Uniform { minimum, maximum };
    }
    if let Some(Field { span, value: sizes, .. }) = &table.weighted {
        if sizes.is_empty() {
            report.push(Diagnostic::error(*span, "there is no size to draw").label("expected at least one size"));
        }
        let weighted =
            |at: &At<super::surface::WeightedSize>| (bytes(at.value.size.as_ref()), small(at.value.weight.as_ref()));
        return SizeDistribution::Weighted(sizes.iter().map(weighted).collect());
    }
    let (distribution, middle) = if let Some(Field { value, .. }) = &table.gamma {
        let mean = bytes(value.mean.as_ref());
        (SizeDistribution::Gamma { mean, shape: real(value.shape.as_ref()) }, mean)
    } else if let Some(Field { value, .. }) = &table.lognormal {
        let median = bytes(value.median.as_ref());
        (SizeDistribution::Lognormal { median, sigma: real(value.sigma.as_ref()) }, median)
    } else {
        (SizeDistribution::Fixed(0), 1)
    };
    if middle == 0 {
        report.push(Diagnostic::error(span, "a distribution around 0 bytes has only empty files"));
    }
    distribution
}

fn block(field: &Field<Size>, report: &mut Report) -> u64 {
    let Size(bytes) = field.value;
    if !(1..=MAXIMUM_BLOCK_BYTES).contains(&bytes) {
        report.push(Diagnostic::error(field.span, "no block can have this size").label("expected 1 byte to 1 GiB"));
    }
    bytes
}

fn phase(surface: &PhaseSurface, filesets: &[&str], report: &mut Report) -> Phase {
    let no_groups = Vec::new();
    let surfaces = surface.group.as_ref().map_or(&no_groups, |field| &field.value);
    unique(surfaces.iter().filter_map(|at| at.value.name.as_ref()), "group", report);
    let groups: Vec<ThreadGroup> = surfaces.iter().map(|at| group(&at.value, filesets, report)).collect();
    let stop = surface.stop.as_ref().map_or_else(Stop::default, |field| self::stop(&field.value));
    let ends = |stop: &Stop| *stop != Stop::default();
    if let Some(name) = surface.name.as_ref().filter(|_| !ends(&stop) && !groups.iter().all(|group| ends(&group.stop)))
    {
        report.push(
            Diagnostic::error(name.span, format!("phase `{}` never ends", name.value.0))
                .label("neither it nor each of its groups has an end")
                .help("for example: stop = { time = \"30 s\" }"),
        );
    }
    if let Some(field) = surface.group.as_ref().filter(|field| field.value.is_empty()) {
        report.push(Diagnostic::error(field.span, "a phase needs threads").label("expected at least one group"));
    }
    Phase { name: text(surface.name.as_ref(), ""), measured: flag(surface.measured.as_ref(), true), groups, stop }
}

fn stop(surface: &StopSurface) -> Stop {
    Stop {
        time: surface.time.as_ref().map(|field| field.value.0),
        operations: surface.operations.as_ref().map(|field| field.value.0),
        bytes: surface.bytes.as_ref().map(|field| field.value.0),
        once_through: flag(surface.once_through.as_ref(), false),
        utilization: surface.utilization.as_ref().map(|field| field.value.0),
    }
}

fn group(surface: &GroupSurface, filesets: &[&str], report: &mut Report) -> ThreadGroup {
    let actions = if let Some(field) = &surface.mix {
        not_empty(field, report);
        let weighted = |at: &At<ActionSurface>, report: &mut Report| Weighted {
            weight: small(at.value.weight.as_ref()),
            action: action(&at.value, filesets, Place::Mix, report),
        };
        Actions::Mix(field.value.iter().map(|at| weighted(at, report)).collect())
    } else if let Some(field) = &surface.sequence {
        not_empty(field, report);
        let actions = field.value.iter().enumerate().map(|(index, at)| {
            let place = if index == 0 { Place::First } else { Place::Later };
            action(&at.value, filesets, place, report)
        });
        Actions::Sequence(actions.collect())
    } else if let Some(Field { value, .. }) = &surface.ratio
        && let (Some(first), Some(second)) = (&value.first, &value.second)
    {
        Actions::Ratio {
            first: action(&first.value, filesets, Place::Ratio, report),
            second: action(&second.value, filesets, Place::Ratio, report),
            ratio: or(value.value.as_ref(), 1.0, |crate::decode::Real(ratio)| ratio),
        }
    } else {
        Actions::Sequence(Vec::new())
    };
    ThreadGroup {
        name: text(surface.name.as_ref(), ""),
        threads: small(surface.threads.as_ref()),
        actions,
        open: word(surface.open.as_ref(), OpenPolicy::PerOperation),
        think_time: or(surface.think_time.as_ref(), Duration::ZERO, |Time(time)| time),
        rate_per_second: surface.rate.as_ref().map(|field| field.value.0),
        fsync: surface.fsync.as_ref().map_or_else(FsyncPolicy::default, |field| fsync(&field.value)),
        stop: surface.stop.as_ref().map_or_else(Stop::default, |field| stop(&field.value)),
    }
}

fn not_empty(field: &Field<Vec<At<ActionSurface>>>, report: &mut Report) {
    if field.value.is_empty() {
        report
            .push(Diagnostic::error(field.span, "a group needs something to do").label("expected at least one action"));
    }
}

fn fsync(surface: &FsyncSurface) -> FsyncPolicy {
    FsyncPolicy {
        every_operations: or(surface.every.as_ref(), 0, |Count(every)| every),
        all_files: flag(surface.all_files.as_ref(), false),
        counted: flag(surface.counted.as_ref(), false),
        at_end: flag(surface.at_end.as_ref(), false),
        data_only: flag(surface.data_only.as_ref(), false),
    }
}

/// Where an action stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Mix,
    /// First of a sequence.
    First,
    /// Later in a sequence.
    Later,
    Ratio,
}

fn action(surface: &ActionSurface, filesets: &[&str], place: Place, report: &mut Report) -> Action {
    if let Some(field) = surface.weight.as_ref().filter(|_| place != Place::Mix) {
        report.push(
            Diagnostic::error(field.key, "only an action of a mix has a weight").label("it would change nothing"),
        );
    }
    let choice = word(surface.choice.as_ref(), FileChoice::Uniform);
    if let Some(field) = surface.choice.as_ref().filter(|_| choice == FileChoice::Same && place != Place::Later) {
        report.push(
            Diagnostic::error(field.span, "there is no action before this one")
                .label("\"same\" is for the later actions of a sequence"),
        );
    }
    let fileset = match &surface.fileset {
        None => (filesets.len() == 1).then_some(0),
        Some(Field { value: Text(name), .. }) if name == ANY => None,
        Some(Field { span, value: Text(name), .. }) => {
            let position = filesets.iter().position(|known| known == name);
            if position.is_none() {
                report.push(
                    Diagnostic::error(*span, format!("there is no fileset `{name}`"))
                        .label("no such fileset")
                        .did_you_mean(name, filesets.iter().copied())
                        .note(format!("there are {}", listed(filesets))),
                );
            }
            position.map(|index| u32::try_from(index).expect("few filesets"))
        }
    };
    let (key, operation) = operation(surface, report);
    Action {
        name: text(surface.name.as_ref(), key),
        operation,
        fileset,
        choice,
        transactions: word(surface.transactions.as_ref(), TransactionRule::One),
    }
}

/// An operation that has nothing to choose: its key, itself, and where an action says it.
type PlainOperation = (&'static str, Operation, fn(&ActionSurface) -> &Option<Field<Nothing>>);

/// The operations that have nothing to choose.
pub(super) const PLAIN_OPERATIONS: [PlainOperation; 19] = [
    ("open-close", Operation::OpenClose, |surface| &surface.open_close),
    ("fsync", Operation::Fsync, |surface| &surface.fsync),
    ("fdatasync", Operation::Fdatasync, |surface| &surface.fdatasync),
    ("syncfs", Operation::Syncfs, |surface| &surface.syncfs),
    ("unlink", Operation::Unlink, |surface| &surface.unlink),
    ("rename", Operation::Rename, |surface| &surface.rename),
    ("link", Operation::Link, |surface| &surface.link),
    ("symlink", Operation::Symlink, |surface| &surface.symlink),
    ("mkdir", Operation::Mkdir, |surface| &surface.mkdir),
    ("rmdir", Operation::Rmdir, |surface| &surface.rmdir),
    ("metadata", Operation::Metadata, |surface| &surface.metadata),
    ("readdir", Operation::Readdir, |surface| &surface.readdir),
    ("walk", Operation::Walk, |surface| &surface.walk),
    ("stat", Operation::Stat, |surface| &surface.stat),
    ("chmod", Operation::Chmod, |surface| &surface.chmod),
    ("utimens", Operation::Utimens, |surface| &surface.utimens),
    ("getxattr", Operation::Getxattr, |surface| &surface.getxattr),
    ("copy-file-range", Operation::CopyFileRange, |surface| &surface.copy_file_range),
    ("reflink", Operation::Reflink, |surface| &surface.reflink),
];

/// The operation of an action, and its key.
fn operation(surface: &ActionSurface, report: &mut Report) -> (&'static str, Operation) {
    for (key, operation, field) in PLAIN_OPERATIONS {
        if field(surface).is_some() {
            return (key, operation);
        }
    }
    let transfers = [
        ("read", &surface.read),
        ("write", &surface.write),
        ("append", &surface.append),
        ("mmap-read", &surface.mmap_read),
    ];
    for (key, field) in transfers {
        if let Some(field) = field {
            if let Some(msync) = &field.value.msync {
                report.push(
                    Diagnostic::error(msync.key, "only `mmap-write` has `msync`").label("it would change nothing"),
                );
            }
            let transfer = transfer(&field.value, report);
            let operation = match key {
                "read" => Operation::Read(transfer),
                "write" => Operation::Write(transfer),
                "append" => Operation::Append(transfer),
                _ => Operation::MmapRead(transfer),
            };
            return (key, operation);
        }
    }
    if let Some(Field { value, .. }) = &surface.mmap_write {
        let msync = flag(value.msync.as_ref(), false);
        return ("mmap-write", Operation::MmapWrite { transfer: transfer(value, report), msync });
    }
    if let Some(Field { value, .. }) = &surface.create {
        let block_bytes = value.block.as_ref().map_or(0, |field| block(field, report));
        return ("create", Operation::Create { block_bytes, fsync: flag(value.fsync.as_ref(), false) });
    }
    if let Some(Field { value, .. }) = &surface.truncate {
        return ("truncate", Operation::Truncate { size_bytes: bytes(value.size.as_ref()) });
    }
    if let Some(Field { value, .. }) = &surface.fallocate {
        return ("fallocate", Operation::Fallocate { size_bytes: bytes(value.size.as_ref()), punch: false });
    }
    if let Some(Field { value, .. }) = &surface.punch_hole {
        return ("punch-hole", Operation::Fallocate { size_bytes: bytes(value.size.as_ref()), punch: true });
    }
    if let Some(Field { value, .. }) = &surface.setxattr {
        let value_bytes = value.size.as_ref().map_or(0, |field| {
            u32::try_from(field.value.0).ok().filter(|bytes| *bytes <= 64 << 10).unwrap_or_else(|| {
                report.push(
                    Diagnostic::error(field.span, "no extended attribute is this large")
                        .label("expected at most 64 KiB"),
                );
                0
            })
        });
        return ("setxattr", Operation::Setxattr { value_bytes });
    }
    // Reported by the table: exactly one operation has to be there.
    debug_assert!(report.has_errors() || ActionSurface::ONE_OF.is_empty());
    ("", Operation::Stat)
}

fn transfer(surface: &TransferSurface, report: &mut Report) -> Transfer {
    let block_bytes = surface.block.as_ref().map_or(1, |field| block(field, report));
    let word = word(surface.pattern.as_ref(), PatternWord::FromStart);
    let place = surface.pattern.as_ref().map(|field| field.span);
    let mut only_for = |key: Option<Span>, name: &str, words: &[PatternWord]| {
        let Some(key) = key.filter(|_| !words.contains(&word)) else { return };
        let known = PatternWord::WORDS.iter().filter(|(_, value)| words.contains(value)).map(|(word, _)| *word);
        let patterns = listed(&known.collect::<Vec<_>>());
        let diagnostic =
            Diagnostic::error(key, format!("`{name}` is for the pattern {patterns}")).label("it would change nothing");
        report.push(match place {
            Some(place) => diagnostic.context(place, "the pattern"),
            None => diagnostic.note("the pattern is \"from-start\" unless given"),
        });
    };
    only_for(surface.align.as_ref().map(|field| field.key), "align", &[PatternWord::FromRandom, PatternWord::Random]);
    only_for(surface.distribution.as_ref().map(|field| field.key), "distribution", &[PatternWord::Random]);
    only_for(surface.skip.as_ref().map(|field| field.key), "skip", &[PatternWord::Skip]);
    if let Some(place) = place.filter(|_| word == PatternWord::Skip && surface.skip.is_none()) {
        report.push(Diagnostic::error(place, "how much is skipped?").help("for example: skip = \"64 KiB\""));
    }
    let align_bytes = surface.align.as_ref().map_or(block_bytes, |field| {
        if field.value.0 == 0 {
            report.push(Diagnostic::error(field.span, "nothing is a multiple of 0").label("expected at least 1 byte"));
        }
        field.value.0
    });
    let pattern = match word {
        PatternWord::FromStart => Pattern::FromStart,
        PatternWord::FromRandom => Pattern::FromRandom { align_bytes },
        PatternWord::Cursor => Pattern::Cursor { shared: false },
        PatternWord::SharedCursor => Pattern::Cursor { shared: true },
        PatternWord::Random => Pattern::Random { distribution: distribution(surface), align_bytes },
        PatternWord::Skip => Pattern::Skip { skip_bytes: bytes(surface.skip.as_ref()) },
    };
    let extent = surface.size.as_ref().map_or(Extent::Whole, |field| {
        if field.value.0 == Extent::Bytes(0) {
            report.push(
                Diagnostic::error(field.span, "an operation has to move something").label("expected at least 1 byte"),
            );
        }
        field.value.0
    });
    Transfer { extent, block_bytes, pattern, fsync: flag(surface.fsync.as_ref(), false) }
}

fn distribution(surface: &TransferSurface) -> Distribution {
    match surface.distribution.as_ref().map(|field| &field.value) {
        None | Some(DistributionSurface::Word(DistributionWord::Uniform)) => Distribution::Uniform,
        Some(DistributionSurface::Word(DistributionWord::Permutation)) => Distribution::Permutation,
        Some(DistributionSurface::Table(table)) => match (&table.zipf, &table.gauss) {
            (Some(theta), _) => Distribution::Zipf { theta: theta.value.0 },
            (None, Some(deviation)) => Distribution::Gauss { deviation: deviation.value.0 },
            (None, None) => Distribution::Uniform,
        },
    }
}

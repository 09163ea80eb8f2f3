//! An action of a workload file: an operation, and on which files.

use super::{
    sizes::blocks,
    surface::{ActionSurface, DistributionSurface, DistributionWord, ExtentSurface, PatternWord, TransferSurface},
    value::{bytes, flag, text, word},
};
use crate::{
    decode::{Field, Keys, Nothing, Text, Word, listed},
    diagnostic::{Diagnostic, Report, Span},
};
use fstone_model::nature::MAX_ATTRIBUTE_BYTES;
use fstone_model::workload::{
    Action, Distribution, Extent, FileChoice, Operation, Pattern, SizeDistribution, TransactionRule, Transfer,
};

/// What stands for any fileset.
pub(super) const ANY: &str = "*";

/// Where an action stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Mix,
    /// First of a sequence.
    First,
    /// Later in a sequence.
    Later,
    Ratio,
}

/// An action of a group.
pub(super) fn action(surface: &ActionSurface, filesets: &[&str], place: Place, report: &mut Report) -> Action {
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
        Some(field) => fileset_named(field, filesets, report),
    };
    let (operation, blocks) = operation(surface, filesets, report);
    drawn_where_they_can_be(surface, &operation, blocks.is_some(), choice, report);
    Action {
        name: text(surface.name.as_ref(), operation.nature().word),
        operation,
        fileset,
        choice,
        transactions: word(surface.transactions.as_ref(), TransactionRule::One),
        blocks,
    }
}

/// The index of a fileset that a field names.
fn fileset_named(field: &Field<Text>, filesets: &[&str], report: &mut Report) -> Option<u32> {
    let Text(name) = &field.value;
    let position = filesets.iter().position(|known| known == name);
    if position.is_none() {
        report.push(
            Diagnostic::error(field.span, format!("there is no fileset `{name}`"))
                .label("no such fileset")
                .did_you_mean(name, filesets.iter().copied())
                .note(format!("there are {}", listed(filesets))),
        );
    }
    position.map(|index| u32::try_from(index).expect("few filesets"))
}

/// An operation that has nothing to choose, and where an action says it.
type PlainOperation = (Operation, fn(&ActionSurface) -> &Option<Field<Nothing>>);

/// The operations that have nothing to choose.
const PLAIN_OPERATIONS: [PlainOperation; 20] = [
    (Operation::OpenClose, |surface| &surface.open_close),
    (Operation::Fsync, |surface| &surface.fsync),
    (Operation::Fdatasync, |surface| &surface.fdatasync),
    (Operation::FsyncDirectory, |surface| &surface.fsync_directory),
    (Operation::Syncfs, |surface| &surface.syncfs),
    (Operation::Unlink, |surface| &surface.unlink),
    (Operation::Rename, |surface| &surface.rename),
    (Operation::Link, |surface| &surface.link),
    (Operation::Symlink, |surface| &surface.symlink),
    (Operation::Mkdir, |surface| &surface.mkdir),
    (Operation::Rmdir, |surface| &surface.rmdir),
    (Operation::Metadata, |surface| &surface.metadata),
    (Operation::Readdir, |surface| &surface.readdir),
    (Operation::Walk, |surface| &surface.walk),
    (Operation::Stat, |surface| &surface.stat),
    (Operation::Chmod, |surface| &surface.chmod),
    (Operation::Utimens, |surface| &surface.utimens),
    (Operation::Getxattr, |surface| &surface.getxattr),
    (Operation::CopyFileRange, |surface| &surface.copy_file_range),
    (Operation::Reflink, |surface| &surface.reflink),
];

/// Blocks of drawn sizes have no places of their own that could be numbered: reports patterns that need them.
fn drawn_where_they_can_be(
    surface: &ActionSurface,
    operation: &Operation,
    drawn: bool,
    choice: FileChoice,
    report: &mut Report,
) {
    let Some(transfer) = operation.nature().transfer.filter(|_| drawn) else { return };
    let one = transfer.extent == Extent::Bytes(transfer.block_bytes);
    let problem = match transfer.pattern {
        Pattern::Random { .. } if !one => "random blocks of drawn sizes are moved one at a time",
        Pattern::Random { distribution: Distribution::Permutation, .. } => {
            "blocks of drawn sizes have no places that could be gone through"
        }
        Pattern::Cursor { .. } if one && !matches!(choice, FileChoice::Uniform | FileChoice::Same) => {
            "how many blocks of drawn sizes a file has cannot be told"
        }
        _ => return,
    };
    let fields = [&surface.read, &surface.write, &surface.append, &surface.mmap_read, &surface.mmap_write];
    let Some(block) = fields.into_iter().flatten().find_map(|field| field.value.block.as_ref()) else { return };
    let diagnostic = Diagnostic::error(block.span, problem);
    report.push(if one {
        diagnostic.label("expected one size, or another pattern or choice")
    } else {
        diagnostic.label("expected `size = \"block\"` beside it")
    });
}

/// The operation of an action, and the sizes that its blocks are drawn from.
fn operation(surface: &ActionSurface, filesets: &[&str], report: &mut Report) -> (Operation, Option<SizeDistribution>) {
    type Moving = fn(Transfer) -> Operation;
    let transfers: [(Moving, &Option<Field<TransferSurface>>); 4] = [
        (Operation::Read, &surface.read),
        (Operation::Write, &surface.write),
        (Operation::Append, &surface.append),
        (Operation::MmapRead, &surface.mmap_read),
    ];
    for (operation, field) in transfers {
        if let Some(field) = field {
            if let Some(msync) = &field.value.msync {
                report.push(
                    Diagnostic::error(msync.key, "only `mmap-write` has `msync`").label("it would change nothing"),
                );
            }
            let (transfer, blocks) = transfer(&field.value, report);
            return (operation(transfer), blocks);
        }
    }
    if let Some(Field { value, .. }) = &surface.mmap_write {
        let msync = flag(value.msync.as_ref(), false);
        let (transfer, blocks) = transfer(value, report);
        return (Operation::MmapWrite { transfer, msync }, blocks);
    }
    if let Some(Field { value, .. }) = &surface.create {
        let (block_bytes, blocks) = value.block.as_ref().map_or((0, None), |field| blocks(field, report));
        return (Operation::Create { block_bytes, fsync: flag(value.fsync.as_ref(), false) }, blocks);
    }
    (unmoving(surface, filesets, report), None)
}

/// The operation of an action that moves no data of the load's.
fn unmoving(surface: &ActionSurface, filesets: &[&str], report: &mut Report) -> Operation {
    for (operation, field) in PLAIN_OPERATIONS {
        if field(surface).is_some() {
            return operation;
        }
    }
    if let Some(Field { value, .. }) = &surface.move_ {
        let to = value.to.as_ref().and_then(|field| fileset_named(field, filesets, report));
        return Operation::Move { to: to.unwrap_or(0) };
    }
    if let Some(Field { value, .. }) = &surface.truncate {
        return Operation::Truncate { size_bytes: bytes(value.size.as_ref()) };
    }
    for (field, punch) in [(&surface.fallocate, false), (&surface.punch_hole, true)] {
        if let Some(Field { value, .. }) = field {
            return Operation::Fallocate { size_bytes: bytes(value.size.as_ref()), punch };
        }
    }
    if let Some(Field { value, .. }) = &surface.setxattr {
        let value_bytes = value.size.as_ref().map_or(0, |field| {
            u32::try_from(field.value.0).ok().filter(|bytes| u64::from(*bytes) <= MAX_ATTRIBUTE_BYTES).unwrap_or_else(
                || {
                    report.push(
                        Diagnostic::error(field.span, "no extended attribute is this large")
                            .label("expected at most 64 KiB"),
                    );
                    0
                },
            )
        });
        return Operation::Setxattr { value_bytes };
    }
    // Reported by the table: exactly one operation has to be there.
    debug_assert!(report.has_errors() || ActionSurface::one_of().is_empty());
    Operation::Stat
}

fn transfer(surface: &TransferSurface, report: &mut Report) -> (Transfer, Option<SizeDistribution>) {
    let (block_bytes, blocks) = surface.block.as_ref().map_or((1, None), |field| blocks(field, report));
    let smallest =
        blocks.as_ref().and_then(SizeDistribution::block_bounds).map_or(block_bytes, |(smallest, _)| smallest);
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
    let align_bytes = surface.align.as_ref().map_or(smallest, |field| {
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
    let extent = surface.size.as_ref().map_or(Extent::Whole, |field| match field.value {
        ExtentSurface::Whole => Extent::Whole,
        ExtentSurface::Block => Extent::Bytes(block_bytes),
        ExtentSurface::Bytes(bytes) => {
            if bytes == 0 {
                report.push(
                    Diagnostic::error(field.span, "an operation has to move something")
                        .label("expected at least 1 byte"),
                );
            }
            Extent::Bytes(bytes)
        }
    });
    (Transfer { extent, block_bytes, pattern, fsync: flag(surface.fsync.as_ref(), false) }, blocks)
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

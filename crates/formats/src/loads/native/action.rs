//! An action of a workload file: an operation, and on which files. Its keys, how they are read, and how they are printed.

use super::{
    lines::{self, KeyValues},
    sizes::{self, SizeSurface, blocks, size},
    transfer::{self, TransferSurface},
    value::{Small, bytes, flag, text, word},
};
use crate::{
    decode::{Count, Field, Flag, Listed, Nothing, Size, Text, listed, table},
    diagnostic::{Diagnostic, Report, Span},
};
use fstone_model::workload::operation::MAX_ATTRIBUTE_BYTES;
use fstone_model::workload::{
    Action, Distribution, Extent, FileChoice, Fileset, MAXIMUM_HANDLES, Operation, Pattern, SizeDistribution,
    TransactionRule, Transfer,
};

type HandleNumber = Count<0, { MAXIMUM_HANDLES as u64 - 1 }>;

table! {
    /// One kind of operation as a group performs it: exactly one operation, and on which files.
    pub(crate) struct ActionSurface {
        /// Its name in results. The key of its operation unless given.
        "name" => name: Text;
        /// In a mix: its share of all operations is weight / sum of weights. 1 unless given.
        "weight" => weight: Small;
        /// The fileset; "*" draws one for each operation. Unless given, the only fileset, or "*" if there are several.
        "fileset" => fileset: Text;
        /// Which file: "uniform" (the default), "round-robin", "shuffled" (each once, in an order drawn at random), "concatenated", "partitioned", the "same" as the action before, or the next in "rotation".
        "choice" => choice: Listed<FileChoice>;
        /// In a program: the handle that it uses. `open` and `create` leave a file open in it, `close` closes it, and others use the open file.
        "handle" => handle: HandleNumber;
        /// The number of the file, as a size or a table with a distribution, instead of `choice`. If that file does not exist, the next one is used.
        "numbers" => numbers: SizeSurface;
        /// Whether its random places come in the order of the action before it, which has the same pattern on the same files. False unless given.
        "follows" => follows: Flag;
        /// How transactions are counted: "one" per operation (the default), "whole-blocks" moved, or "begun-blocks".
        "transactions" => transactions: Listed<TransactionRule>;
        /// Make a new file of a size drawn from the fileset, write it, close it.
        "create" => create: CreateSurface;
        /// Read data.
        "read" => read: TransferSurface;
        /// Overwrite data in place.
        "write" => write: TransferSurface;
        /// Write at the end.
        "append" => append: TransferSurface;
        /// Read through a memory mapping.
        "mmap-read" => mmap_read: TransferSurface;
        /// Free blocks of a file, or discard those of a device.
        "trim" => trim: TransferSurface;
        /// Write through a memory mapping.
        "mmap-write" => mmap_write: TransferSurface;
        /// Write as much as the file in the handle should hold: the size drawn when it was made, or its size when it was opened.
        "fill" => fill: FillSurface;
        /// Open and close a file.
        "open-close" => open_close: Nothing;
        /// Open a file and leave it open in the handle.
        "open" => open: Nothing;
        /// Close the file in the handle.
        "close" => close: Nothing;
        /// fsync a file.
        "fsync" => fsync: Nothing;
        /// fdatasync a file.
        "fdatasync" => fdatasync: Nothing;
        /// fsync the directory of a file, which makes the name of the file durable.
        "fsync-directory" => fsync_directory: Nothing;
        /// syncfs.
        "syncfs" => syncfs: Nothing;
        /// Set a file's size.
        "truncate" => truncate: LengthSurface;
        /// Allocate blocks without writing, from the start of a file.
        "fallocate" => fallocate: LengthSurface;
        /// Free blocks, from the start of a file.
        "punch-hole" => punch_hole: LengthSurface;
        /// Remove a file.
        "unlink" => unlink: Nothing;
        /// Rename a file within its directory.
        "rename" => rename: Nothing;
        /// Rename a file into another fileset, or to a new name in its own.
        "move" => move_: MoveSurface;
        /// Replace a file as editors do: write a new file of the same size beside it, and rename it over the old one.
        "replace" => replace: ReplaceSurface;
        /// Make a hard link and keep it.
        "link" => link: Nothing;
        /// Make a symbolic link and keep it.
        "symlink" => symlink: Nothing;
        /// Make a directory: the next missing one in a fileset with `leaf-directories`, otherwise one with a new name.
        "mkdir" => mkdir: Nothing;
        /// Remove a directory: the next existing leaf directory, or one that `mkdir` made.
        "rmdir" => rmdir: Nothing;
        /// stat a leaf directory: the next existing one.
        "stat-directory" => stat_directory: Nothing;
        /// Rename a leaf directory within its directory: the next existing one.
        "rename-directory" => rename_directory: Nothing;
        /// FFSB's metaop: two mkdir, one rmdir and one rename.
        "metadata" => metadata: Nothing;
        /// List one directory.
        "readdir" => readdir: Nothing;
        /// Walk the whole fileset and stat each entry.
        "walk" => walk: Nothing;
        /// stat a file.
        "stat" => stat: Nothing;
        /// chmod a file.
        "chmod" => chmod: Nothing;
        /// Set a file's times.
        "utimens" => utimens: Nothing;
        /// Set an extended attribute.
        "setxattr" => setxattr: AttributeSurface;
        /// Get an extended attribute.
        "getxattr" => getxattr: Nothing;
        /// copy_file_range into a new file.
        "copy-file-range" => copy_file_range: Nothing;
        /// Clone into a new file (FICLONE).
        "reflink" => reflink: Nothing;
    }
    one of [
        "create", "read", "write", "append", "mmap-read", "trim", "mmap-write", "fill", "open-close", "open", "close",
        "fsync", "fdatasync",
        "fsync-directory", "syncfs",
        "truncate", "fallocate", "punch-hole", "unlink", "rename", "move", "replace", "link", "symlink", "mkdir", "rmdir",
        "stat-directory", "rename-directory", "metadata",
        "readdir", "walk", "stat", "chmod", "utimens", "setxattr", "getxattr", "copy-file-range", "reflink",
    ]
}

table! {
    /// The making of a file.
    pub(crate) struct CreateSurface {
        /// Size of each write, or a table with a distribution. Unless given, the file stays empty.
        "block" => block: SizeSurface;
        /// Whether to fsync before the close. False unless given.
        "fsync" => fsync: Flag;
    }
}

table! {
    /// The replacing of a file.
    pub(crate) struct ReplaceSurface {
        /// Size of each write, or a table with a distribution.
        "block" => block: SizeSurface, required;
        /// Whether to fsync the new file before it is renamed. False unless given.
        "fsync" => fsync: Flag;
    }
}

table! {
    /// Writing a file that is open in a handle.
    pub(crate) struct FillSurface {
        /// Size of each write, or a table with a distribution.
        "block" => block: SizeSurface, required;
        /// Write as much as the file in this handle should hold.
        "like" => like: HandleNumber;
    }
}

table! {
    /// Where a file is moved to.
    pub(crate) struct MoveSurface {
        /// The target fileset; the file gets the next free name there.
        "to" => to: Text, required;
    }
}

table! {
    /// A length from a file's start.
    pub(crate) struct LengthSurface {
        /// The length.
        "size" => size: Size, required;
    }
}

table! {
    /// An extended attribute.
    pub(crate) struct AttributeSurface {
        /// Size of the value. Kernels accept at most 64 KiB.
        "size" => size: Size, required;
    }
}

pub(super) const ANY: &str = "*";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Mix,
    First,
    Later,
    Ratio,
    /// In a program, where a file may be that of the action before, or one that is held open.
    Program,
}

pub(super) fn read(surface: &ActionSurface, filesets: &[&str], place: Role, report: &mut Report) -> Action {
    if let Some(field) = surface.weight.as_ref().filter(|_| place != Role::Mix) {
        report.push(
            Diagnostic::error(field.key, "only an action of a mix has a weight").label("it would change nothing"),
        );
    }
    let choice = word(surface.choice.as_ref(), FileChoice::Uniform);
    if let Some(field) =
        surface.choice.as_ref().filter(|_| choice == FileChoice::Same && !matches!(place, Role::Later | Role::Program))
    {
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
    by_handle(surface, &operation, choice, place, report);
    drawn_where_they_can_be(surface, &operation, blocks.is_some(), choice, report);
    Action {
        name: text(surface.name.as_ref(), operation.nature().word),
        operation,
        fileset,
        choice,
        transactions: word(surface.transactions.as_ref(), TransactionRule::One),
        blocks,
        handle: surface.handle.as_ref().map(handle),
        numbers: surface.numbers.as_ref().map(|field| size(&field.value, field.span, report)),
        follows: flag(surface.follows.as_ref(), false),
    }
}

fn handle(field: &Field<HandleNumber>) -> u32 {
    u32::try_from(field.value.0).expect("the type allows no more")
}

/// Reports handles where there are none, and what does not work by them.
fn by_handle(surface: &ActionSurface, operation: &Operation, choice: FileChoice, place: Role, report: &mut Report) {
    let word = operation.nature().word;
    let Some(field) = &surface.handle else {
        if operation.needs_handle()
            && let Some(key) = surface.operation_key()
        {
            report.push(Diagnostic::error(key, format!("`{word}` works by a handle")).help("in a program: handle = 1"));
        }
        return;
    };
    if place != Role::Program {
        report.push(
            Diagnostic::error(field.key, "handles are for programs").label("nothing else could use what is open in it"),
        );
    }
    if !operation.works_by_handle() {
        let made = "a file is made empty by a handle, and filled by `fill`";
        let diagnostic = Diagnostic::error(field.key, format!("`{word}` does not work by a handle"));
        report.push(if word == "create" { diagnostic.label(made) } else { diagnostic });
    }
    if !matches!(choice, FileChoice::Uniform | FileChoice::Rotation)
        && let Some(choice) = &surface.choice
    {
        report.push(Diagnostic::error(choice.span, "by a handle files are opened uniformly or in rotation"));
    }
}

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

const PLAIN_OPERATIONS: [PlainOperation; 24] = [
    (Operation::OpenClose, |surface| &surface.open_close),
    (Operation::Open, |surface| &surface.open),
    (Operation::Close, |surface| &surface.close),
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
    (Operation::StatDirectory, |surface| &surface.stat_directory),
    (Operation::RenameDirectory, |surface| &surface.rename_directory),
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
        Pattern::Random { distribution: Distribution::Permutation, .. }
            if matches!(choice, FileChoice::Concatenated | FileChoice::Partitioned) =>
        {
            "blocks of drawn sizes that come once each need files that are chosen one by one"
        }
        Pattern::Cursor { .. }
            if one && !matches!(choice, FileChoice::Uniform | FileChoice::Same | FileChoice::Rotation) =>
        {
            "how many blocks of drawn sizes a file has cannot be told"
        }
        _ => return,
    };
    let fields =
        [&surface.read, &surface.write, &surface.append, &surface.mmap_read, &surface.trim, &surface.mmap_write];
    let Some(block) = fields.into_iter().flatten().find_map(|field| field.value.block.as_ref()) else { return };
    let diagnostic = Diagnostic::error(block.span, problem);
    report.push(if one {
        diagnostic.label("expected one size, or another pattern or choice")
    } else {
        diagnostic.label("expected `size = \"block\"` beside it")
    });
}

fn operation(surface: &ActionSurface, filesets: &[&str], report: &mut Report) -> (Operation, Option<SizeDistribution>) {
    type Moving = fn(Transfer) -> Operation;
    let transfers: [(Moving, &Option<Field<TransferSurface>>); 5] = [
        (Operation::Read, &surface.read),
        (Operation::Write, &surface.write),
        (Operation::Append, &surface.append),
        (Operation::MmapRead, &surface.mmap_read),
        (Operation::Trim, &surface.trim),
    ];
    for (operation, field) in transfers {
        if let Some(field) = field {
            if let Some(msync) = &field.value.msync {
                report.push(
                    Diagnostic::error(msync.key, "only `mmap-write` has `msync`").label("it would change nothing"),
                );
            }
            let (transfer, blocks) = transfer::read(&field.value, report);
            return (operation(transfer), blocks);
        }
    }
    if let Some(Field { value, .. }) = &surface.mmap_write {
        let msync = flag(value.msync.as_ref(), false);
        let (transfer, blocks) = transfer::read(value, report);
        return (Operation::MmapWrite { transfer, msync }, blocks);
    }
    if let Some(Field { value, .. }) = &surface.create {
        let (block_bytes, blocks) = value.block.as_ref().map_or((0, None), |field| blocks(field, report));
        return (Operation::Create { block_bytes, fsync: flag(value.fsync.as_ref(), false) }, blocks);
    }
    if let Some(Field { value, .. }) = &surface.replace {
        let (block_bytes, blocks) = value.block.as_ref().map_or((1, None), |field| blocks(field, report));
        return (Operation::Replace { block_bytes, fsync: flag(value.fsync.as_ref(), false) }, blocks);
    }
    if let Some(Field { value, .. }) = &surface.fill {
        let (block_bytes, blocks) = value.block.as_ref().map_or((1, None), |field| blocks(field, report));
        return (Operation::Fill { block_bytes, like: value.like.as_ref().map(handle) }, blocks);
    }
    (unmoving(surface, filesets, report), None)
}

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
    debug_assert!(report.has_errors());
    Operation::Stat
}

pub(super) fn print(action: &Action, filesets: &[Fileset]) -> KeyValues {
    let (key, value) = (action.operation.nature().word, printed(action, filesets));
    let fileset = match action.fileset {
        None => (filesets.len() == 1).then(|| format!("\"{ANY}\"")),
        Some(0) if filesets.len() == 1 => None,
        Some(index) => filesets.get(index as usize).map(|fileset| lines::quoted(&fileset.name)),
    };
    lines::wanted([
        ("name", lines::unless(action.name == key, || lines::quoted(&action.name))),
        (key, Some(value)),
        ("fileset", fileset),
        ("choice", lines::unless(action.choice == FileChoice::Uniform, || lines::word(&action.choice))),
        ("handle", action.handle.map(|handle| handle.to_string())),
        ("numbers", action.numbers.as_ref().map(sizes::print)),
        ("follows", lines::flag(action.follows)),
        (
            "transactions",
            lines::unless(action.transactions == TransactionRule::One, || lines::word(&action.transactions)),
        ),
    ])
}

/// What stands behind the operation's key.
fn printed(action: &Action, filesets: &[Fileset]) -> String {
    let (operation, blocks) = (&action.operation, action.blocks.as_ref());
    let length = |bytes: u64| lines::inline(&vec![("size", lines::size(bytes))]);
    match operation {
        Operation::Create { block_bytes, fsync } => {
            let block = lines::unless(*block_bytes == 0, || transfer::print_block(*block_bytes, blocks));
            lines::inline(&lines::wanted([("block", block), ("fsync", lines::flag(*fsync))]))
        }
        Operation::Replace { block_bytes, fsync } => {
            let block = Some(transfer::print_block(*block_bytes, blocks));
            lines::inline(&lines::wanted([("block", block), ("fsync", lines::flag(*fsync))]))
        }
        Operation::Read(transfer)
        | Operation::Write(transfer)
        | Operation::Append(transfer)
        | Operation::MmapRead(transfer)
        | Operation::Trim(transfer) => lines::inline(&transfer::print(transfer, blocks)),
        Operation::MmapWrite { transfer, msync } => {
            let mut keys = transfer::print(transfer, blocks);
            keys.extend(lines::wanted([("msync", lines::flag(*msync))]));
            lines::inline(&keys)
        }
        Operation::Fill { block_bytes, like } => {
            let block = Some(transfer::print_block(*block_bytes, blocks));
            lines::inline(&lines::wanted([("block", block), ("like", like.map(|like| like.to_string()))]))
        }
        Operation::Move { to } => {
            let name = filesets.get(*to as usize).map(|fileset| lines::quoted(&fileset.name));
            lines::inline(&lines::wanted([("to", name)]))
        }
        Operation::Truncate { size_bytes } | Operation::Fallocate { size_bytes, .. } => length(*size_bytes),
        Operation::Setxattr { value_bytes } => length(u64::from(*value_bytes)),
        Operation::OpenClose
        | Operation::Open
        | Operation::Close
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
        | Operation::StatDirectory
        | Operation::RenameDirectory
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

impl ActionSurface {
    fn operation_key(&self) -> Option<Span> {
        let plain = |field: &Option<Field<Nothing>>| field.as_ref().map(|field| field.key);
        plain(&self.open).or_else(|| plain(&self.close)).or_else(|| self.fill.as_ref().map(|field| field.key))
    }
}

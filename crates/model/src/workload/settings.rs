//! What each I/O setting does, by I/O engine and kind of operation, or why it is refused. The checks, their messages and the documentation
//! come from this one table, so no setting is silently without effect.

use super::{IoEngineKind, IoSettings, OpenSync, Operation, ThreadGroup, Workload};
use std::fmt::Write as _;

crate::named! {
    /// A setting that differs from the default, as it is written in a workload file.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Setting: word, ALL {
        Direct => "direct = true",
        Sync => "sync = \"sync\"",
        Dsync => "sync = \"dsync\"",
        Polled => "polled = true",
        Uncached => "uncached = true",
        NoWait => "no-wait = true",
        Atomic => "atomic = true",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataPath {
    Read,
    Write,
    /// By a mapping that is made for the operation.
    MappedRead,
    MappedWrite,
    /// By the kernel, from file to file.
    Copied,
    /// Not at all: settings that concern data do not concern it.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// It is done, in this way.
    Done(&'static str),
    /// It is refused: why, and what to do instead.
    Refused(&'static str, &'static str),
}

use DataPath::{Copied, MappedRead, MappedWrite, Read, Write};
use IoEngineKind::{Falloc, IoUring, Libaio, Mmap, Null, Psync, Splice};
use Support::{Done, Refused};

const WRITES_ONLY: &str = "only writes are concerned";
const MAPPED: &str = "a memory mapping goes through the page cache";
const ANOTHER: &str = "leave it out, or use the engine psync, io-uring or libaio and reads and writes";
const NO_FLAG: &str = "copies between files take no such flag";
const LEAVE: &str = "leave it out, or put the operation into a group of its own";

impl Setting {
    /// What a transfer with this setting lacks where the kernel says EOPNOTSUPP; its word first. From fs.h and the filesystems' `fop_flags`.
    pub const fn needs(self) -> Option<&'static str> {
        match self {
            Self::Polled => Some("polled = true needs a device with queues for polling (nvme.poll_queues)"),
            Self::Uncached => {
                Some("uncached = true needs Linux 6.14 and a filesystem that has RWF_DONTCACHE, such as ext4 and XFS")
            }
            Self::NoWait => Some("no-wait = true needs a filesystem that has RWF_NOWAIT for this kind of transfer"),
            Self::Atomic => Some("atomic = true needs Linux 6.13, and ext4 or XFS on a device that writes atomically"),
            Self::Direct | Self::Sync | Self::Dsync => None,
        }
    }

    pub fn is_in(self, io: IoSettings) -> bool {
        match self {
            Self::Direct => io.direct,
            Self::Sync => io.sync == OpenSync::Sync,
            Self::Dsync => io.sync == OpenSync::Dsync,
            Self::Polled => io.polled,
            Self::Uncached => io.uncached,
            Self::NoWait => io.no_wait,
            Self::Atomic => io.atomic,
        }
    }

    pub fn fate(self, engine: IoEngineKind, path: DataPath) -> Support {
        let mapped = matches!(path, MappedRead | MappedWrite) || engine == Mmap && path != Copied;
        match (self, engine, path) {
            (_, _, DataPath::None) => Done("moves no data"),
            (_, Null, _) => Done("nothing reaches the kernel"),
            (Self::Sync | Self::Dsync, _, Read | MappedRead) => Done(WRITES_ONLY),
            (Self::Sync, _, Write | MappedWrite) if mapped => Done("fsync after each write"),
            (Self::Dsync, _, Write | MappedWrite) if mapped => Done("msync(MS_SYNC) after each write"),
            (Self::Sync, ..) => Done("O_SYNC"),
            (Self::Dsync, ..) => Done("O_DSYNC"),
            (Self::Atomic, _, Read) => Done(WRITES_ONLY),
            (Self::Direct, _, _) if mapped => Refused(MAPPED, ANOTHER),
            (Self::Direct, ..) => Done("O_DIRECT"),
            (_, Falloc | Splice, _) => Refused("neither fallocate nor splice takes such a flag", ANOTHER),
            (_, _, Copied) => Refused(NO_FLAG, LEAVE),
            (_, _, _) if mapped => Refused("a memory mapping takes no such flag", ANOTHER),
            (Self::Polled, Libaio, _) => {
                Refused("the kernel does not poll for AIO", "use io-uring or psync, or leave it out")
            }
            (Self::Polled, IoUring, _) => Done("IORING_SETUP_IOPOLL"),
            (Self::Polled, ..) => Done("RWF_HIPRI"),
            (Self::Uncached, ..) => Done("RWF_DONTCACHE"),
            (Self::NoWait, ..) => Done("RWF_NOWAIT"),
            (Self::Atomic, ..) => Done("RWF_ATOMIC"),
        }
    }

    /// What it excludes or needs beside it: why, and what to do instead.
    fn conflict(self, io: IoSettings, group: &ThreadGroup) -> Option<(&'static str, &'static str)> {
        let odd = || {
            let of = |operation: &Operation| operation.nature().transfer.map(|transfer| transfer.block_bytes);
            let actions = group.actions.all();
            actions.iter().any(|action| {
                let writes = path_of(&action.operation) == Write;
                let block = of(&action.operation).unwrap_or(action.operation.nature().largest_block);
                writes && (action.blocks.is_some() || !block.is_power_of_two())
            })
        };
        match self {
            _ if io.engine == Null => None,
            Self::Polled if !io.direct => Some(("only direct I/O can be polled for", "add direct = true")),
            Self::Polled if io.engine == IoUring && has_fsyncs(group) => {
                Some(("a ring that polls takes no fsyncs", "leave the fsyncs out, or use psync"))
            }
            Self::Uncached if io.direct => Some(("direct I/O does not use the page cache", "leave one of the two out")),
            Self::Atomic if !io.direct => Some(("atomic writes are direct", "add direct = true")),
            Self::Atomic if odd() => {
                Some(("atomic writes have a size that is a power of two, and are aligned to it", "set such a block"))
            }
            _ => None,
        }
    }
}

/// Whether fsyncs may be queued beside a group's transfers.
fn has_fsyncs(group: &ThreadGroup) -> bool {
    let policy = &group.fsync;
    policy.every_operations.max(policy.data_every) > 0 && !policy.all_files && !policy.between
}

pub fn path_of(operation: &Operation) -> DataPath {
    match operation {
        Operation::Read(_) => Read,
        Operation::Create { block_bytes, .. } if *block_bytes == 0 => DataPath::None,
        Operation::Write(_)
        | Operation::Append(_)
        | Operation::Create { .. }
        | Operation::Fill { .. }
        | Operation::Replace { .. } => Write,
        Operation::MmapRead(_) => MappedRead,
        Operation::MmapWrite { .. } => MappedWrite,
        Operation::CopyFileRange | Operation::Reflink => Copied,
        _ => DataPath::None,
    }
}

impl Workload {
    /// The first I/O setting of a group that cannot be done: which one, why, and what to do instead.
    pub fn refused_setting(&self, group: &ThreadGroup) -> Option<(Setting, &'static str, &'static str)> {
        let io = self.io_of(group);
        let actions = group.actions.all();
        Setting::ALL.into_iter().filter(|setting| setting.is_in(io)).find_map(|setting| {
            let refused = actions.iter().find_map(|action| match setting.fate(io.engine, path_of(&action.operation)) {
                Done(_) => None,
                Refused(why, cure) => Some((why, cure)),
            });
            let (why, cure) = refused.or_else(|| setting.conflict(io, group))?;
            Some((setting, why, cure))
        })
    }
}

/// The table in Markdown: a row for each setting and the operations with which it has the same effect, a column for each engine. What every
/// engine refuses, or does for writes alone, has no row.
pub fn markdown() -> String {
    let mut text =
        String::from("| setting | operations | psync | io-uring | libaio | mmap |\n|---|---|---|---|---|---|\n");
    let paths = [
        (Read, "`read`"),
        (Write, "`write`, `append`, `create`, `fill`, `replace`"),
        (MappedRead, "`mmap-read`"),
        (MappedWrite, "`mmap-write`"),
        (Copied, "`copy-file-range`, `reflink`"),
    ];
    for setting in Setting::ALL {
        let mut rows: Vec<(String, [&str; 4])> = Vec::new();
        for (path, operations) in paths {
            let cells = [Psync, IoUring, Libaio, Mmap].map(|engine| match setting.fate(engine, path) {
                Done(how) => how,
                Refused(..) => "refused",
            });
            match rows.iter_mut().find(|(_, others)| *others == cells) {
                Some((names, _)) => names.extend([", ", operations]),
                None => rows.push((operations.to_owned(), cells)),
            }
        }
        let left_out = [["refused"; 4], [WRITES_ONLY; 4]];
        for (operations, cells) in rows.iter().filter(|(_, cells)| !left_out.contains(cells)) {
            let _ = writeln!(text, "| `{}` | {operations} | {} |", setting.word(), cells.join(" | "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Action, Actions, Extent, Pattern, Transfer};

    fn group(operation: Operation) -> ThreadGroup {
        ThreadGroup::new("g", 1, Actions::Sequence(vec![Action::new("a", operation, Some(0))]))
    }

    fn write(block_bytes: u64) -> Operation {
        let extent = Extent::Bytes(block_bytes);
        Operation::Write(Transfer { extent, block_bytes, pattern: Pattern::FromStart, fsync: false })
    }

    #[test]
    fn what_excludes_what_is_found() {
        let io = IoSettings::default();
        let conflict = |setting: Setting, io: IoSettings, operation: Operation| setting.conflict(io, &group(operation));
        let direct = IoSettings { direct: true, ..io };
        assert!(conflict(Setting::Atomic, io, write(4096)).is_some());
        assert!(conflict(Setting::Atomic, direct, write(4096)).is_none());
        assert!(conflict(Setting::Atomic, direct, write(6144)).is_some());
        assert!(conflict(Setting::Uncached, direct, write(4096)).is_some());
        assert!(conflict(Setting::Polled, io, write(4096)).is_some());
        assert!(conflict(Setting::Polled, direct, write(4096)).is_none());
        let ring = IoSettings { engine: IoUring, ..direct };
        let mut fsyncs = group(write(4096));
        fsyncs.fsync.every_operations = 8;
        assert!(Setting::Polled.conflict(ring, &fsyncs).is_some());
    }

    /// No cell is silent: what is not refused says what is done, and only the null engine and operations without data have nothing to do.
    #[test]
    fn every_cell_says_what_becomes_of_the_setting() {
        for setting in Setting::ALL {
            for engine in [Psync, IoUring, Libaio, Mmap] {
                for path in [Read, Write, MappedRead, MappedWrite, Copied] {
                    match setting.fate(engine, path) {
                        Done(how) => {
                            assert!(!how.is_empty() && !how.starts_with("nothing"), "{setting:?} {engine:?} {path:?}");
                        }
                        Refused(why, cure) => assert!(!why.is_empty() && !cure.is_empty()),
                    }
                }
            }
        }
        assert_eq!(Setting::Dsync.fate(Mmap, Write), Done("msync(MS_SYNC) after each write"));
        assert_eq!(Setting::Dsync.fate(Psync, MappedWrite), Done("msync(MS_SYNC) after each write"));
        assert_eq!(Setting::Dsync.fate(Mmap, Copied), Done("O_DSYNC"));
        assert!(matches!(Setting::Direct.fate(Psync, MappedRead), Refused(..)));
    }
}

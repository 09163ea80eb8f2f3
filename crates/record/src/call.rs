//! What a recording consists of.

use serde::{Deserialize, Serialize};

/// Table of the calls: its name, as `strace` has it for the plainest of its family.
macro_rules! kinds {
    ($($kind:ident $name:literal),+ $(,)?) => {
        /// A kind of call. New ones are added at the end, and with a new `VERSION`: recordings have their numbers.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Kind {
            #[default]
            $($kind),+
        }

        impl Kind {
            pub const ALL: &[Self] = &[$(Self::$kind),+];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name),+
                }
            }
        }
    };
}

kinds! {
    Open "open", Close "close", Read "read", Pread "pread", Readv "readv", Preadv "preadv", Write "write", Pwrite "pwrite",
    Writev "writev", Pwritev "pwritev", Seek "lseek", Fsync "fsync", Fdatasync "fdatasync", SyncRange "sync_file_range",
    Syncfs "syncfs", Sync "sync", Truncate "truncate", Ftruncate "ftruncate", Fallocate "fallocate", Fadvise "fadvise",
    Stat "stat", Fstat "fstat", Access "access", Readlink "readlink", Getdents "getdents", Mkdir "mkdir", Rmdir "rmdir",
    Unlink "unlink", Rename "rename", Link "link", Symlink "symlink", Mknod "mknod", Chmod "chmod", Fchmod "fchmod",
    Chown "chown", Fchown "fchown", Utimens "utimensat", Futimens "futimens", Getxattr "getxattr", Fgetxattr "fgetxattr",
    Setxattr "setxattr", Fsetxattr "fsetxattr", Listxattr "listxattr", Flistxattr "flistxattr",
    Removexattr "removexattr", Fremovexattr "fremovexattr", Flock "flock", Lock "fcntl lock", Sendfile "sendfile",
    CopyRange "copy_file_range", Splice "splice", Reflink "ioctl FICLONE", Map "mmap", Uring "io_uring_enter", Aio "io_submit",
    Spawn "clone", Wait "wait4", Exit "exit", Readahead "readahead", Statfs "statfs", Fstatfs "fstatfs",
    SetFlags "fcntl F_SETFL", Msync "msync", OpenByHandle "open_by_handle_at", Bind "bind", Wakeup "wakeup",
    Lost "lost call", Unreturned "unreturned", PolledRing "io_uring_setup", Ioctl "ioctl", Handle "name_to_handle_at",
    GetAttributes "file_getattr", SetAttributes "file_setattr",
}

impl Kind {
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::Pread | Self::Readv | Self::Preadv)
    }

    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Pwrite | Self::Writev | Self::Pwritev)
    }

    pub const fn is_copy(self) -> bool {
        matches!(self, Self::Sendfile | Self::CopyRange | Self::Splice)
    }

    /// Whether it may change a filesystem, or how a file is open. A new kind is one or the other, which the compiler asks here; what the change
    /// is, is said in `replay/witnessed.rs` for power cuts, in `replay/program.rs` for the order, and in `replay/calls.rs`.
    pub(crate) const fn may_change(self) -> bool {
        use Kind as K;
        match self {
            K::Open | K::Write | K::Pwrite | K::Writev | K::Pwritev | K::Sendfile | K::CopyRange | K::Splice => true,
            K::SetFlags | K::Truncate | K::Ftruncate | K::Fallocate | K::Reflink | K::SetAttributes => true,
            K::Mkdir | K::Rmdir | K::Unlink | K::Rename | K::Link | K::Symlink | K::Mknod | K::Bind => true,
            K::Chmod | K::Fchmod | K::Chown | K::Fchown | K::Utimens | K::Futimens => true,
            K::Setxattr | K::Fsetxattr | K::Removexattr | K::Fremovexattr => true,
            K::Uring | K::Aio | K::PolledRing | K::Ioctl | K::Lost | K::Unreturned => true,
            K::Close | K::Read | K::Pread | K::Readv | K::Preadv | K::Seek | K::Fadvise | K::Readahead => false,
            K::Fsync | K::Fdatasync | K::SyncRange | K::Syncfs | K::Sync | K::Map | K::Msync => false,
            K::Stat | K::Fstat | K::Access | K::Readlink | K::Getdents | K::Statfs | K::Fstatfs => false,
            K::Getxattr | K::Fgetxattr | K::Listxattr | K::Flistxattr | K::Flock | K::Lock => false,
            K::Spawn | K::Wait | K::Exit | K::Wakeup | K::OpenByHandle | K::Handle | K::GetAttributes => false,
        }
    }

    /// About threads, not about files. A wakeup is no call: the end of a wait for another thread, and, without a result, what
    /// that one had done until then.
    pub const fn is_of_threads(self) -> bool {
        matches!(self, Self::Spawn | Self::Wait | Self::Exit | Self::Wakeup)
    }

    /// What is recorded and not replayed: I/O that a tracer of system calls does not see, and calls that no replay can make.
    pub const fn is_uncovered(self) -> bool {
        matches!(
            self,
            Self::Map
                | Self::Uring
                | Self::Aio
                | Self::Msync
                | Self::OpenByHandle
                | Self::Bind
                | Self::Lost
                | Self::Unreturned
                | Self::PolledRing
                | Self::Ioctl
                | Self::Handle
                | Self::GetAttributes
                | Self::SetAttributes
        )
    }
}

/// A name as a call gives it: relative to an open directory, or with 0 to the top of the recorded tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The number of an open file.
    pub base: u32,
    /// Index of a name of the block.
    pub name: u32,
}

/// A call that has returned. Numbers of open files are given once: they are not descriptors, which come again, are inherited and duplicated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub kind: Kind,
    /// Threads are numbered from 1 in the order in which they began.
    pub thread: u32,
    /// Since the recording began; as observed, with what the recording cost until then.
    pub begin_ns: u64,
    /// Time that the thread spent since its previous recorded call, without what the recording costs.
    pub think_ns: u64,
    /// How long the call took, without what the recording costs.
    pub took_ns: u64,
    /// The open file that it is about; 0 for none.
    pub file: u32,
    /// The open file that `open` made, or the second one of a call that has two (where a copy goes); 0 for none.
    pub other: u32,
    pub at: Option<Place>,
    /// The second name: of rename and link; the target of a symbolic link and the name of an attribute as they are, with base 0.
    pub to: Option<Place>,
    /// Of a copy, where it begins in `file` and in `other`; -1 for their positions. Of a lock, where it begins, and from where that counts
    /// (lseek(2)'s numbers).
    pub offset: i64,
    pub other_offset: i64,
    /// Of a mapping, how much of it is the file's.
    pub length: u64,
    /// The kernel's own, and those below.
    pub flags: u32,
    /// Permissions; of what is made, those that the umask left. Of a write: what is left of its data when that is compressed, in percent, 0 if it was not measured. Of an attribute
    /// that is a list of rights with no more than a mode has: that, and `IS_ACL`.
    pub mode: u16,
    /// What was returned; the negative errno of a call that failed. Of `clone` and `wait4` the number of a thread; of `wakeup`
    /// that of the one that was waited for, of which the recording had `length` calls by then.
    pub result: i64,
}

impl Call {
    /// The end of a wait that took as long as it was to take at most.
    pub(crate) const fn is_sleep(&self) -> bool {
        matches!(self.kind, Kind::Wakeup) && self.flags & TIMED_OUT != 0
    }

    /// Whether the program made it, and it is no thread's. A file that was open before, or is still open when its process ends, has no
    /// call of its own, which would take no time.
    pub(crate) const fn counts(&self) -> bool {
        !self.kind.is_of_threads() && !is_implied(self.kind, self.flags)
    }

    /// Whether a kernel can have returned this: a number that counts something, or an errno. Only of a mapping it is an address.
    pub const fn has_possible_result(&self) -> bool {
        self.result >= -4095 || matches!(self.kind, Kind::Map)
    }

    /// Whether it has the names and the open files that a call of its kind is about.
    pub const fn is_complete(&self) -> bool {
        use Kind as K;
        let (at, to, file, other) = (self.at.is_some(), self.to.is_some(), self.file != 0, self.other != 0);
        match self.kind {
            K::Open => at && (self.result < 0 || other),
            K::Truncate | K::Stat | K::Access | K::Readlink | K::Mkdir | K::Rmdir | K::Unlink | K::Mknod => at,
            K::Chmod | K::Chown | K::Utimens | K::Listxattr | K::Statfs => at,
            K::Rename | K::Symlink | K::Getxattr | K::Setxattr | K::Removexattr => at && to,
            K::Link => (at || file) && to,
            K::Fgetxattr | K::Fsetxattr | K::Fremovexattr => file && to,
            K::Sendfile | K::CopyRange | K::Splice => file || other,
            K::Reflink => file && other,
            K::Sync | K::Spawn | K::Wait | K::Exit | K::Wakeup => true,
            kind if kind.is_uncovered() => true,
            _ => file,
        }
    }

    /// Whether it makes a file with a mode, of which the umask takes some.
    pub(crate) const fn takes_umask(&self) -> bool {
        const TEMPORARY: u32 = libc::O_TMPFILE as u32;
        match self.kind {
            Kind::Open => self.flags & libc::O_CREAT as u32 != 0 || self.flags & TEMPORARY == TEMPORARY,
            kind => matches!(kind, Kind::Mkdir | Kind::Mknod),
        }
    }

    /// Others' second name, if they have one, is a text.
    pub(crate) const fn has_two_names(&self) -> bool {
        matches!(self.kind, Kind::Rename | Kind::Link)
    }

    /// Flags of preadv2(2) and pwritev2(2); with others none.
    pub(crate) const fn vector_flags(&self) -> i32 {
        if matches!(self.kind, Kind::Readv | Kind::Preadv | Kind::Writev | Kind::Pwritev) {
            self.flags as i32
        } else {
            0
        }
    }

    /// A program may give an empty name to these, or one that is nowhere: then a recording has none, and is sound.
    pub(crate) const fn may_lack(&self) -> bool {
        self.result < 0 || matches!(self.kind, Kind::Access | Kind::Readlink)
    }
}

/// In [`Call::flags`] of `open`: the file was open when the recording, or the program, first used it.
pub const INHERITED: u32 = 1 << 31;
/// In [`Call::mode`] of `setxattr`.
pub(crate) const IS_ACL: u16 = 1 << 15;
/// The list of rights of a file whose mode says as much.
pub(crate) const ACL_BYTES: usize = 28;
/// Of its owner, its group, and all others.
const ACL_TAGS: [u16; 3] = [0x01, 0x04, 0x20];

/// As the kernel has it: version 2, then a tag, rights and nobody's number for each.
pub(crate) fn acl_of_mode(mode: u16) -> [u8; ACL_BYTES] {
    let mut acl = [0xff; ACL_BYTES];
    acl[..4].copy_from_slice(&2u32.to_le_bytes());
    for (index, tag) in ACL_TAGS.iter().enumerate() {
        let rights = mode >> (6 - 3 * index) & 7;
        acl[4 + 8 * index..][..2].copy_from_slice(&tag.to_le_bytes());
        acl[6 + 8 * index..][..2].copy_from_slice(&rights.to_le_bytes());
    }
    acl
}

/// `None` for other lists of rights.
pub(crate) fn mode_of_acl(acl: &[u8]) -> Option<u16> {
    let rights = |index: usize| acl.get(6 + 8 * index).map(|rights| u16::from(*rights) & 7);
    let mode = rights(0)? << 6 | rights(1)? << 3 | rights(2)? | IS_ACL;
    (acl == acl_of_mode(mode)).then_some(mode)
}

/// In [`Call::flags`] of `close`: the process ended or started another program, and had not closed it.
pub const IMPLICIT: u32 = 1 << 31;

/// Whether it stands for an open or a close that the program did not make.
pub(crate) const fn is_implied(kind: Kind, flags: u32) -> bool {
    matches!(kind, Kind::Open) && flags & INHERITED != 0 || matches!(kind, Kind::Close) && flags & IMPLICIT != 0
}

/// In [`Call::flags`] of `wakeup`: the thread waited as long as it had wanted to at most.
pub(crate) const TIMED_OUT: u32 = 1 << 31;

/// Something in the tree as it was before the program began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Below the top.
    pub path: Vec<u8>,
    /// Permissions.
    pub mode: u16,
    pub node: Node,
}

/// New ones are added at the end, and with a new `VERSION`: recordings have their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Node {
    Directory,
    /// `stored_bytes`: less than its size where it has holes.
    File {
        size_bytes: u64,
        stored_bytes: u64,
    },
    Link {
        target: Vec<u8>,
    },
    /// Another name of the file with this path.
    Name {
        of: Vec<u8>,
    },
    /// A device, a pipe or a socket, which no replay makes.
    Special,
}

/// What is known before the first call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// "x86_64".
    pub architecture: String,
    pub kernel: String,
    /// Empty if names are hashed.
    pub command: Vec<Vec<u8>>,
    /// The directories that were recorded, as absolute paths. Of several, each is a directory "0", "1", … of the top; a single one is the top.
    pub roots: Vec<Vec<u8>>,
    /// The same as they were given, links included; of a converted log none.
    pub given: Vec<Vec<u8>>,
    pub began_unix_ns: u64,
    pub hashed: bool,
    /// What recording adds to a call, and to the time before the next: taken out of the times.
    pub overhead_ns: [u64; 2],
    /// A call without it.
    pub bare_ns: u64,
    /// What a converted log cannot say: empty for a recording.
    pub unknown: Vec<Unknown>,
}

/// What the log of another tool does not say. New ones are added at the end, and with a new `VERSION`: recordings have their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unknown {
    /// When calls were made.
    Times,
    /// How long they took.
    Durations,
    /// What strace added to the times.
    StraceCost,
    /// What was open before the log, and where relative names are.
    Descriptors,
    /// What so many children did, of which the log has no line, although it may follow others.
    Children {
        count: u64,
        follows: bool,
    },
    /// What so many other processes did, which have logs of their own.
    OtherLogs {
        count: u64,
    },
    /// What calls were about for which the tool has no name.
    Unnamed {
        calls: Vec<String>,
    },
    Umask,
    /// What was there before; what is used decides.
    Tree,
    /// What the last line was to be.
    LastLine,
    /// What calls returned: each is taken to have done what it was to do.
    Results,
    /// All calls about names.
    Names,
    Threads,
    /// When files were opened and closed.
    Opens,
    /// What Darshan had no memory for.
    Dropped,
    /// So many accesses by MPI-IO, which POSIX has as well.
    MpiIo {
        count: u64,
    },
}

impl Start {
    fn lacks(&self, what: &Unknown) -> bool {
        self.unknown.contains(what)
    }

    pub fn has_times(&self) -> bool {
        !self.lacks(&Unknown::Times)
    }

    /// Whether it was another tool that recorded it: what that cost is not known.
    pub fn is_of_log(&self) -> bool {
        !self.unknown.is_empty()
    }

    /// Why nothing can be compared with its times.
    pub fn not_comparable(&self) -> Option<&'static str> {
        if !self.has_times() {
            return Some("the log has no times");
        }
        self.lacks(&Unknown::StraceCost).then_some("the log's times include what strace cost")
    }

    /// Without durations, [`Call::think_ns`] includes the time of the call before.
    pub fn has_durations(&self) -> bool {
        self.has_times() && !self.lacks(&Unknown::Durations)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Since the recording began.
    pub at_ns: u64,
    /// As wait(2) has it.
    pub status: i32,
}

/// What is written at once. Names belong to their block, so that neither writer nor reader remember them for longer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    pub start: Option<Start>,
    pub tree: Vec<Entry>,
    pub names: Vec<Vec<u8>>,
    pub calls: Vec<Call>,
    /// Calls since the previous block about files that are not below the recorded directories.
    pub outside_calls: u64,
    pub outside_bytes: u64,
    /// Some of their names, for a message.
    pub outside_names: Vec<Vec<u8>>,
    pub end: Option<End>,
}

impl Block {
    /// # Panics
    /// If the block was not [checked](crate::Reader): the name is missing.
    pub fn name(&self, place: Place) -> &[u8] {
        &self.names[place.name as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_rights_is_a_mode_if_it_has_no_more() {
        for mode in 0..=0o777 {
            assert_eq!(mode_of_acl(&acl_of_mode(mode)), Some(mode | IS_ACL));
        }
        // As cp -a writes it for 0640.
        let written = b"\x02\0\0\0\x01\0\x06\0\xff\xff\xff\xff\x04\0\x04\0\xff\xff\xff\xff\x20\0\0\0\xff\xff\xff\xff";
        assert_eq!(mode_of_acl(written), Some(0o640 | IS_ACL));
        let mut other = acl_of_mode(0o640);
        // A named user.
        other[4] = 2;
        assert_eq!((mode_of_acl(&other), mode_of_acl(&other[..20])), (None, None));
    }
}

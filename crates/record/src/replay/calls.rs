//! The calls of a replay, each made to one name in a directory that is open, or to an open file.
//!
//! No name has several parts, and no link is followed, not even the last part of a name: a recording may come from anybody, and nothing
//! in it leads out of the directory that the replay works in.

#![expect(unsafe_code, reason = "calls with numbers and addresses of recorded arguments, which no wrapper takes")]

use super::program::{Action, DATA, Program, Target, data_of};
use crate::call::{INHERITED, IS_ACL, Kind, acl_of_mode};
use crate::trace::{FICLONE, FICLONERANGE};
use libc::{
    AT_FDCWD, AT_REMOVEDIR, AT_SYMLINK_FOLLOW, AT_SYMLINK_NOFOLLOW, O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, O_PATH, c_long,
};
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicI32, Ordering};

const RESOLVE: u64 =
    libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS | libc::RESOLVE_NO_XDEV;
const SYS_FCHMODAT2: c_long = 452;
/// The most memory for data. Larger reads and writes use it several times.
pub(super) const MOST_BYTES: u64 = 64 << 20;
/// What the kernel moves with one call at most, and how many times that memory it is.
const MOST_MOVED: u64 = 0x7fff_f000;
const MOST_PARTS: usize = MOST_MOVED.div_ceil(MOST_BYTES) as usize;
/// Writes begin at different places of the data, so that no two blocks are alike.
const VARIETY: usize = 1 << 20;
const PAGE: usize = 4096;

/// An address where no program has memory.
const NOWHERE: i64 = 1;

/// Makes a call; a negative errno if it failed.
fn call(number: c_long, a: [i64; 6]) -> i64 {
    // SAFETY: the addresses among the arguments are of buffers and strings that live as long as the call, with their lengths, or NOWHERE.
    let result = unsafe { libc::syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]) };
    if result == -1 { -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)) } else { result }
}

pub(super) fn close(fd: i32) -> i64 {
    call(libc::SYS_close, [i64::from(fd), 0, 0, 0, 0, 0])
}

/// From now on this thread has a umask of its own, which takes nothing: recorded modes are what another one left. Where the kernel does not
/// allow that, the process's stays.
pub(super) fn mask_nothing() {
    // SAFETY: plain calls; umask, root and working directory are this thread's own after the first.
    unsafe {
        if libc::unshare(libc::CLONE_FS) == 0 {
            libc::umask(0);
        }
    }
}

/// User and system time of this process.
pub(super) fn cpu_ns() -> [u64; 2] {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is of integers, all of which may be zero, and getrusage fills it in.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    [usage.ru_utime, usage.ru_stime].map(|time| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000)
}

/// Linux 6.6 has it.
pub(super) fn has_fchmodat2() -> bool {
    call(SYS_FCHMODAT2, [-1, c"".as_ptr() as i64, 0, 0, 0, 0]) != -i64::from(libc::ENOSYS)
}

/// What stat(2) says of a name, or of the directory's descriptor itself if the name is empty.
pub(super) fn facts(directory: i64, name: &CStr) -> Option<libc::stat> {
    let mut facts = std::mem::MaybeUninit::<libc::stat>::zeroed();
    let flags = i64::from(AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH);
    let got = call(libc::SYS_newfstatat, [directory, name.as_ptr() as i64, facts.as_mut_ptr() as i64, flags, 0, 0]);
    // SAFETY: it is of integers, all of which may be zero.
    (got == 0).then(|| unsafe { facts.assume_init() })
}

/// Where the next write to an open file goes.
pub(super) fn position(fd: i64, appends: bool) -> i64 {
    if appends {
        return facts(fd, c"").map_or(-1, |facts| facts.st_size);
    }
    call(libc::SYS_lseek, [fd, 0, i64::from(libc::SEEK_CUR), 0, 0, 0])
}

/// Opens a name beneath a directory.
pub(super) fn open_beneath(directory: i32, name: &CString, flags: u32, mode: u16) -> i64 {
    let made = flags & libc::O_CREAT as u32 != 0 || flags & libc::O_TMPFILE as u32 == libc::O_TMPFILE as u32;
    // As the kernel's `struct open_how`.
    let how = [u64::from(flags), if made { u64::from(mode) } else { 0 }, RESOLVE];
    let name = if name.is_empty() { c".".as_ptr() } else { name.as_ptr() };
    let size = size_of_val(&how) as i64;
    call(libc::SYS_openat2, [i64::from(directory), name as i64, how.as_ptr() as i64, size, 0, 0])
}

/// What all lanes have in common.
pub(super) struct Common<'a> {
    pub(super) program: &'a Program,
    /// The directory that everything is beneath.
    pub(super) root: i32,
    pub(super) texts: Vec<CString>,
    pub(super) files: Vec<AtomicI32>,
    pub(super) data: [Option<Buffer>; DATA.len()],
    pub(super) identity: [u32; 2],
    pub(super) has_fchmodat2: bool,
}

impl Common<'_> {
    pub(super) fn data(&self, kind: usize) -> &Buffer {
        self.data[kind].as_ref().or(self.data[0].as_ref()).expect("it was made first")
    }
}

/// Another process had the lock, or the wait for it was given up. A replay is one process, whose locks do not keep it from more: it only
/// looks.
fn lacked_lock(action: &Action) -> bool {
    [libc::EAGAIN, libc::EACCES, libc::EDEADLK, libc::EINTR].contains(&-action.result)
}

/// Errors that a filesystem gives for what it holds, for its names or its room.
const OF_FILESYSTEM: [i32; 10] = [
    libc::ENOENT,
    libc::EEXIST,
    libc::ENOTDIR,
    libc::EISDIR,
    libc::ENOTEMPTY,
    libc::ENAMETOOLONG,
    libc::EMLINK,
    libc::ENODATA,
    libc::ENOSPC,
    libc::EDQUOT,
];

/// A call that failed for a reason that is not here: rights, limits or mounts of the process, its own mistake, or a feature that was not
/// there. It could succeed and change what the application kept: the replay only looks.
fn only_looks(action: &Action) -> bool {
    use Kind as K;
    const ABOUT_LINKS: i32 = O_NOFOLLOW | libc::O_CREAT | libc::O_TRUNC;
    // It was opened to see whether it is a link.
    if action.kind == K::Open && action.result == -libc::ELOOP && action.flags as i32 & ABOUT_LINKS == O_NOFOLLOW {
        return false;
    }
    let may_change = action.kind.may_change() || action.kind == K::Access;
    // Without the right to it, a link to a descriptor finds nothing.
    let has_no_right = action.kind == K::Link && action.file != 0 && action.result == -libc::ENOENT;
    // What the other side said is not known here.
    let is_one_sided = action.kind.is_copy() && (action.file == 0 || action.other == 0);
    // Where it could be done, what the application copies then is the same.
    let is_lacking_clone = action.kind == K::Reflink && [libc::EOPNOTSUPP, libc::ENOTTY].contains(&-action.result);
    let is_answer = is_lacking_clone || OF_FILESYSTEM.contains(&-action.result) && !has_no_right && !is_one_sided;
    may_change && action.result < 0 && !is_answer
}

fn most(bytes: u64) -> usize {
    bytes.min(MOST_BYTES) as usize
}

/// As many `iovec`s of the same memory as a call has bytes; how many there are.
fn parts(memory: [i64; 2], wanted: u64) -> ([[i64; 2]; MOST_PARTS], usize) {
    let [address, length] = memory;
    let mut parts = [[address, 0]; MOST_PARTS];
    let mut left = wanted.min(MOST_MOVED) as i64;
    let mut count = 0;
    while left > 0 && length > 0 && count < MOST_PARTS {
        parts[count][1] = length.min(left);
        left -= length;
        count += 1;
    }
    (parts, count.max(1))
}

/// Memory that begins at a page, as O_DIRECT wants it.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    begin: usize,
}

impl Buffer {
    pub(super) fn of(length: usize) -> Self {
        let bytes = vec![0; length + PAGE];
        let begin = bytes.as_ptr().align_offset(PAGE).min(PAGE);
        Self { bytes, begin }
    }

    /// Address and length of what a call may write to: no more than there is.
    fn room(&mut self, wanted: u64) -> [i64; 2] {
        let begin = self.begin;
        let whole = &mut self.bytes[begin..];
        let most = whole.len().min(most(wanted));
        let room = &mut whole[..most];
        [room.as_mut_ptr() as i64, room.len() as i64]
    }

    /// Address and length of what a call may read from: no more than there is.
    fn from(&self, offset: usize, wanted: u64) -> [i64; 2] {
        let whole = self.bytes.get(self.begin + offset..).unwrap_or_default();
        let given = &whole[..whole.len().min(most(wanted))];
        [given.as_ptr() as i64, given.len() as i64]
    }

    /// So many bytes, if there is room for them or may be.
    pub(super) fn filled(&mut self, length: u64) -> Option<&mut [u8]> {
        let length = usize::try_from(length).ok().filter(|_| length <= MOST_BYTES)?;
        if self.bytes.len() < self.begin + length {
            *self = Self::of(length);
        }
        Some(self.part_mut(length))
    }

    pub(crate) fn part_mut(&mut self, length: usize) -> &mut [u8] {
        &mut self.bytes[self.begin..][..length]
    }

    pub(super) fn part(&self, offset: usize, length: usize) -> &[u8] {
        &self.bytes[self.begin + offset..][..length]
    }

    /// Data that compresses to so many percent: the rest of each page is zeros.
    pub(super) fn of_data(length: u64, percent: usize) -> Self {
        let mut buffer = Self::incompressible(length.clamp(1 << 20, MOST_BYTES) as usize + VARIETY);
        // In short turns, so that short writes compress as well.
        buffer.bytes.chunks_mut(64).for_each(|part| {
            let filled = (part.len() * percent).div_ceil(100);
            part[filled..].fill(0);
        });
        buffer
    }

    /// Data that does not compress.
    pub(crate) fn incompressible(length: usize) -> Self {
        let mut buffer = Self::of(length);
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        for chunk in buffer.bytes.chunks_mut(8) {
            // xorshift64* (Vigna 2016).
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let word = state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        buffer
    }
}

/// A thread of the replay: its directories and memory.
pub(super) struct Caller<'a> {
    pub(super) common: &'a Common<'a>,
    /// By the directory's number; `None` for one that is not open.
    directories: Vec<Option<(u32, i32)>>,
    input: Buffer,
    writes: usize,
    /// A file that was opened to be cut, because there is no call that cuts one beneath a directory by its name, or for its mode or its
    /// filesystem.
    pub(super) to_cut: Option<i64>,
    /// Data of the next call, if that is to say what it is.
    pub(super) stamped: Buffer,
    pub(super) is_stamped: bool,
    /// Calls that a replay makes and the application did not: directories opened, files opened to be cut.
    pub(super) extra: u64,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.cut();
        for (_, fd) in self.directories.iter().flatten() {
            close(*fd);
        }
    }
}

impl<'a> Caller<'a> {
    pub(super) fn new(common: &'a Common<'a>, directories: usize, most_read: u64) -> Self {
        let input = Buffer::of(most_read.clamp(1 << 16, MOST_BYTES) as usize);
        let directories = vec![None; directories.max(1) + 1];
        let stamped = Buffer::of(0);
        Self { common, directories, input, writes: 0, to_cut: None, stamped, is_stamped: false, extra: 0 }
    }

    fn cut(&mut self) {
        if let Some(fd) = self.to_cut.take().filter(|fd| *fd >= 0) {
            close(fd as i32);
        }
    }

    /// The directory of a target, open; a negative errno.
    pub(super) fn directory(&mut self, target: Target) -> i64 {
        let slot = target.directory.unwrap_or(0) as usize % (self.directories.len() - 1);
        self.directory_at(target, slot)
    }

    fn directory_at(&mut self, target: Target, slot: usize) -> i64 {
        let path = &self.common.texts[target.path as usize];
        let Some(number) = target.directory else {
            // It is not there, or is no directory: so the kernel says why.
            self.extra += 1;
            let opened = open_beneath(self.common.root, path, (O_PATH | O_DIRECTORY | O_CLOEXEC) as u32, 0);
            if opened >= 0 {
                close(opened as i32);
            }
            return opened.min(-i64::from(libc::ENOENT));
        };
        if let Some((known, fd)) = self.directories[slot]
            && known == number
        {
            return i64::from(fd);
        }
        self.extra += 1;
        let opened = open_beneath(self.common.root, path, (O_PATH | O_DIRECTORY | O_CLOEXEC) as u32, 0);
        if opened >= 0
            && let Some((_, old)) = self.directories[slot].replace((number, opened as i32))
        {
            close(old);
        }
        opened
    }

    pub(super) fn file(&self, slot: u32) -> i64 {
        i64::from(self.common.files[slot as usize].load(Ordering::Acquire))
    }

    /// The descriptor of a directory and the address of a name in it.
    fn named(&mut self, index: u32) -> Result<(i64, i64), i64> {
        self.place(index).map(|(directory, name)| (i64::from(directory), name.as_ptr() as i64))
    }

    pub(super) fn place(&mut self, index: u32) -> Result<(i32, &'a CString), i64> {
        let target = self.common.program.targets[index as usize];
        let directory = self.directory(target);
        if directory < 0 { Err(directory) } else { Ok((directory as i32, &self.common.texts[target.name as usize])) }
    }

    /// A path of the same name for calls that take no directory.
    fn by_descriptor(&mut self, index: u32) -> Result<CString, i64> {
        let (directory, name) = self.place(index)?;
        let path = [format!("/proc/self/fd/{directory}/").as_bytes(), name.as_bytes()].concat();
        CString::new(path).map_err(|_| -i64::from(libc::EINVAL))
    }

    /// Opens the directories that an action needs, and the file that it is to cut, so that its call is timed alone. Returns whether one
    /// was not open yet.
    pub(super) fn prepare(&mut self, action: &Action) -> bool {
        let before = self.extra;
        self.cut();
        let is_there = |index: u32| index != 0 && self.common.program.targets[index as usize].directory.is_some();
        // Of other kinds the second name is a text.
        let to = matches!(action.kind, Kind::Rename | Kind::Link) && is_there(action.to);
        match is_there(action.at) {
            true if to => _ = self.both(action),
            true => _ = self.place(action.at),
            false if to => _ = self.place(action.to),
            false => {}
        }
        let flags = match action.kind {
            Kind::Truncate => Some(libc::O_WRONLY),
            Kind::Chmod if !self.common.has_fchmodat2 => Some(O_PATH),
            Kind::Statfs => Some(O_PATH),
            _ => None,
        };
        if let Some(flags) = flags.filter(|_| is_there(action.at))
            && let Ok((directory, name)) = self.place(action.at)
        {
            self.to_cut = Some(open_beneath(directory, name, (flags | O_CLOEXEC | O_NOFOLLOW) as u32, 0));
            self.extra += 2;
        }
        self.extra != before
    }

    /// Carries out an action; returns what the call did: a negative errno if it failed.
    pub(super) fn perform(&mut self, action: &Action) -> i64 {
        self.performed(action).unwrap_or_else(|failed| failed)
    }

    #[expect(clippy::too_many_lines, reason = "a table")]
    fn performed(&mut self, action: &Action) -> Result<i64, i64> {
        use Kind as K;
        let none = i64::from(AT_SYMLINK_NOFOLLOW);
        let (file, other) = (self.file(action.file), self.file(action.other));
        let (offset, to) = (action.offset, action.other_offset);
        let mode = i64::from(action.mode);
        let text = |index: u32| self.common.texts[index as usize].as_ptr() as i64;
        let attribute = if matches!(
            action.kind,
            K::Symlink | K::Setxattr | K::Fsetxattr | K::Getxattr | K::Fgetxattr | K::Removexattr | K::Fremovexattr
        ) {
            text(action.to)
        } else {
            0
        };
        let mut facts = std::mem::MaybeUninit::<libc::stat>::uninit();
        let mut filesystem = std::mem::MaybeUninit::<libc::statfs>::uninit();
        let [mut facts, mut filesystem] = [facts.as_mut_ptr() as i64, filesystem.as_mut_ptr() as i64];
        if only_looks(action) {
            if action.at == 0 {
                let either = if action.file == 0 { other } else { file };
                call(libc::SYS_fstat, [either, facts, 0, 0, 0, 0]);
            } else if let Ok((directory, name)) = self.named(action.at) {
                call(libc::SYS_newfstatat, [directory, name, facts, none, 0, 0]);
            }
            return Ok(action.result.into());
        }
        let is_copy = action.kind.is_copy();
        let moved = action.moved();
        // An `iovec` is the same: an address, and the length that belongs to it.
        let [mut input, room] = self.input.room(moved);
        let (inputs, input_count) = parts([input, room], moved);
        self.writes += usize::from(action.kind.writes());
        let most_value = if action.kind.writes() || is_copy { u64::MAX } else { 1 << 16 };
        let [data, length] = if self.is_stamped {
            self.stamped.from(0, moved)
        } else {
            let kind = if action.kind.writes() { data_of(action.mode) } else { 0 };
            self.common.data(kind).from((self.writes * 7 * PAGE) % VARIETY, moved.min(most_value))
        };
        let (outputs, output_count) = parts([data, length], moved);
        // Of very many threads each has less memory to read into.
        let reads_more = moved > room as u64;
        let writes_more = moved > MOST_BYTES;
        let mut inputs = [inputs.as_ptr() as i64, input_count as i64];
        let outputs = [outputs.as_ptr() as i64, output_count as i64];
        if action.result == -libc::EFAULT {
            (input, facts, filesystem, inputs) = (NOWHERE, NOWHERE, NOWHERE, [NOWHERE, 1]);
        }
        let [user, group] = self.common.identity.map(i64::from);
        let on = |number: c_long, a: [i64; 5]| call(number, [file, a[0], a[1], a[2], a[3], a[4]]);
        // What was opened with O_PATH can only be changed by its name in /proc, as glibc does for fchmodat without following links.
        let or_by_name = |own: c_long, arguments: [i64; 5], number: c_long, a: [i64; 3]| {
            if action.flags & O_PATH as u32 == 0 {
                return on(own, arguments);
            }
            let path = CString::new(format!("/proc/self/fd/{file}")).expect("digits");
            call(number, [i64::from(AT_FDCWD), path.as_ptr() as i64, a[0], a[1], a[2], 0])
        };
        Ok(match action.kind {
            K::Open => return self.open(action),
            K::Close => {
                let fd = self.common.files[action.file as usize].swap(-1, Ordering::AcqRel);
                close(fd)
            }
            K::Read if !reads_more => on(libc::SYS_read, [input, room, 0, 0, 0]),
            K::Pread if !reads_more => on(libc::SYS_pread64, [input, room, offset, 0, 0]),
            K::Readv if action.flags != 0 => on(libc::SYS_preadv2, [inputs[0], inputs[1], -1, 0, action.flags.into()]),
            K::Preadv if action.flags != 0 => {
                on(libc::SYS_preadv2, [inputs[0], inputs[1], offset, 0, action.flags.into()])
            }
            K::Read | K::Readv => on(libc::SYS_readv, [inputs[0], inputs[1], 0, 0, 0]),
            K::Pread | K::Preadv => on(libc::SYS_preadv, [inputs[0], inputs[1], offset, 0, 0]),
            K::Write if !writes_more => on(libc::SYS_write, [data, length, 0, 0, 0]),
            K::Pwrite if !writes_more => on(libc::SYS_pwrite64, [data, length, offset, 0, 0]),
            K::Writev if action.flags != 0 => {
                on(libc::SYS_pwritev2, [outputs[0], outputs[1], -1, 0, action.flags.into()])
            }
            K::Pwritev if action.flags != 0 => {
                on(libc::SYS_pwritev2, [outputs[0], outputs[1], offset, 0, action.flags.into()])
            }
            K::Write | K::Writev => on(libc::SYS_writev, [outputs[0], outputs[1], 0, 0, 0]),
            K::Pwrite | K::Pwritev => on(libc::SYS_pwritev, [outputs[0], outputs[1], offset, 0, 0]),
            K::Seek => on(libc::SYS_lseek, [offset, i64::from(action.flags), 0, 0, 0]),
            K::Fsync => on(libc::SYS_fsync, [0; 5]),
            K::Fdatasync => on(libc::SYS_fdatasync, [0; 5]),
            K::SyncRange => {
                on(libc::SYS_sync_file_range, [offset, action.length as i64, i64::from(action.flags), 0, 0])
            }
            K::Syncfs => on(libc::SYS_syncfs, [0; 5]),
            // Of this filesystem alone.
            K::Sync => call(libc::SYS_syncfs, [i64::from(self.common.root), 0, 0, 0, 0, 0]),
            K::Truncate => {
                self.place(action.at)?;
                match self.to_cut {
                    Some(fd) if fd >= 0 => call(libc::SYS_ftruncate, [fd, action.length as i64, 0, 0, 0, 0]),
                    refused => refused.unwrap_or(-i64::from(libc::ENOENT)),
                }
            }
            K::Ftruncate => on(libc::SYS_ftruncate, [action.length as i64, 0, 0, 0, 0]),
            K::Fallocate => on(libc::SYS_fallocate, [i64::from(action.flags), offset, action.length as i64, 0, 0]),
            K::Readahead => on(libc::SYS_readahead, [offset, action.length as i64, 0, 0, 0]),
            K::Statfs => {
                self.place(action.at)?;
                match self.to_cut {
                    Some(fd) if fd >= 0 => call(libc::SYS_fstatfs, [fd, filesystem, 0, 0, 0, 0]),
                    refused => refused.unwrap_or(-i64::from(libc::ENOENT)),
                }
            }
            K::Fstatfs => on(libc::SYS_fstatfs, [filesystem, 0, 0, 0, 0]),
            K::SetFlags => {
                const KEPT: i32 = libc::O_APPEND | libc::O_NONBLOCK | libc::O_DIRECT | libc::O_NOATIME;
                on(libc::SYS_fcntl, [libc::F_SETFL.into(), (action.flags & KEPT as u32).into(), 0, 0, 0])
            }
            K::Fadvise => on(libc::SYS_fadvise64, [offset, action.length as i64, i64::from(action.flags), 0, 0]),
            K::Stat => {
                let (directory, name) = self.named(action.at)?;
                call(libc::SYS_newfstatat, [directory, name, facts, none, 0, 0])
            }
            K::Fstat => on(libc::SYS_fstat, [facts, 0, 0, 0, 0]),
            K::Access => {
                let (directory, name) = self.named(action.at)?;
                call(libc::SYS_faccessat2, [directory, name, mode & 7, none, 0, 0])
            }
            K::Readlink => {
                let (directory, name) = self.named(action.at)?;
                call(libc::SYS_readlinkat, [directory, name, input, room, 0, 0])
            }
            K::Getdents => on(libc::SYS_getdents64, [input, room, 0, 0, 0]),
            K::Mkdir => {
                let (directory, name) = self.named(action.at)?;
                call(libc::SYS_mkdirat, [directory, name, mode, 0, 0, 0])
            }
            K::Rmdir => {
                let (directory, name) = self.named(action.at)?;
                call(libc::SYS_unlinkat, [directory, name, i64::from(AT_REMOVEDIR), 0, 0, 0])
            }
            K::Unlink => {
                let (directory, name) = self.named(action.at)?;
                call(libc::SYS_unlinkat, [directory, name, 0, 0, 0, 0])
            }
            K::Rename => {
                let [one, two] = self.both(action)?;
                let flags = action.flags & (libc::RENAME_NOREPLACE | libc::RENAME_EXCHANGE);
                call(libc::SYS_renameat2, [one.0, one.1, two.0, two.1, i64::from(flags), 0])
            }
            K::Link if action.file != 0 => {
                let path = CString::new(format!("/proc/self/fd/{file}")).expect("digits");
                let (directory, name) = self.named(action.to)?;
                let follow = i64::from(AT_SYMLINK_FOLLOW);
                call(libc::SYS_linkat, [i64::from(AT_FDCWD), path.as_ptr() as i64, directory, name, follow, 0])
            }
            K::Link => {
                let [one, two] = self.both(action)?;
                call(libc::SYS_linkat, [one.0, one.1, two.0, two.1, 0, 0])
            }
            K::Symlink => {
                let (directory, name) = self.named(action.at)?;
                call(libc::SYS_symlinkat, [attribute, directory, name, 0, 0, 0])
            }
            K::Mknod => {
                let (directory, name) = self.named(action.at)?;
                call(libc::SYS_mknodat, [directory, name, i64::from(libc::S_IFREG) | mode, 0, 0, 0])
            }
            K::Chmod if !self.common.has_fchmodat2 => {
                self.place(action.at)?;
                match self.to_cut {
                    Some(fd) if fd >= 0 => {
                        let path = CString::new(format!("/proc/self/fd/{fd}")).expect("digits");
                        call(libc::SYS_fchmodat, [i64::from(AT_FDCWD), path.as_ptr() as i64, mode, 0, 0, 0])
                    }
                    refused => refused.unwrap_or(-i64::from(libc::ENOENT)),
                }
            }
            K::Chmod => {
                let (directory, name) = self.named(action.at)?;
                call(SYS_FCHMODAT2, [directory, name, mode, none, 0, 0])
            }
            K::Fchmod => or_by_name(libc::SYS_fchmod, [mode, 0, 0, 0, 0], libc::SYS_fchmodat, [mode, 0, 0]),
            K::Chown => {
                let (directory, name) = self.named(action.at)?;
                call(libc::SYS_fchownat, [directory, name, user, group, none, 0])
            }
            K::Fchown => or_by_name(libc::SYS_fchown, [user, group, 0, 0, 0], libc::SYS_fchownat, [user, group, 0]),
            K::Utimens => {
                let (directory, name) = self.named(action.at)?;
                call(libc::SYS_utimensat, [directory, name, 0, none, 0, 0])
            }
            K::Futimens => or_by_name(libc::SYS_utimensat, [0; 5], libc::SYS_utimensat, [0; 3]),
            K::Getxattr => {
                let path = self.by_descriptor(action.at)?;
                call(libc::SYS_lgetxattr, [path.as_ptr() as i64, attribute, input, room, 0, 0])
            }
            K::Fgetxattr => on(libc::SYS_fgetxattr, [attribute, input, room, 0, 0]),
            K::Setxattr | K::Fsetxattr => {
                let flags = i64::from(action.flags & (libc::XATTR_CREATE | libc::XATTR_REPLACE) as u32);
                let acl = acl_of_mode(action.mode);
                let [data, length] =
                    if action.mode & IS_ACL != 0 { [acl.as_ptr() as i64, acl.len() as i64] } else { [data, length] };
                if action.kind == K::Fsetxattr {
                    return Ok(on(libc::SYS_fsetxattr, [attribute, data, length, flags, 0]));
                }
                let path = self.by_descriptor(action.at)?;
                call(libc::SYS_lsetxattr, [path.as_ptr() as i64, attribute, data, length, flags, 0])
            }
            K::Listxattr => {
                let path = self.by_descriptor(action.at)?;
                call(libc::SYS_llistxattr, [path.as_ptr() as i64, input, room, 0, 0, 0])
            }
            K::Flistxattr => on(libc::SYS_flistxattr, [input, room, 0, 0, 0]),
            K::Removexattr => {
                let path = self.by_descriptor(action.at)?;
                call(libc::SYS_lremovexattr, [path.as_ptr() as i64, attribute, 0, 0, 0, 0])
            }
            K::Fremovexattr => on(libc::SYS_fremovexattr, [attribute, 0, 0, 0, 0]),
            // The order in which locks were had is kept by the program: none is waited for in the kernel.
            K::Flock => {
                let got = on(libc::SYS_flock, [i64::from(action.flags | libc::LOCK_NB as u32), 0, 0, 0, 0]);
                if got == 0 && lacked_lock(action) {
                    // One that it had before is lost in the attempt to change it as well.
                    on(libc::SYS_flock, [libc::LOCK_UN.into(), 0, 0, 0, 0]);
                }
                if lacked_lock(action) { action.result.into() } else { got }
            }
            K::Lock => {
                // SAFETY: integers alone.
                let mut lock: libc::flock = unsafe { std::mem::zeroed() };
                (lock.l_type, lock.l_start, lock.l_len) = (action.mode as i16, offset, action.length as i64);
                lock.l_whence = to as i16;
                let command = if lacked_lock(action) { libc::F_GETLK } else { libc::F_SETLK };
                let got = on(libc::SYS_fcntl, [command.into(), &raw mut lock as i64, 0, 0, 0]);
                if lacked_lock(action) { action.result.into() } else { got }
            }
            // With one side only in the recorded directories, it reads from there or writes there.
            K::Sendfile | K::CopyRange | K::Splice => match (action.file, action.other) {
                (_, 0) if offset >= 0 => on(libc::SYS_preadv, [inputs[0], inputs[1], offset, 0, 0]),
                (_, 0) => on(libc::SYS_readv, [inputs[0], inputs[1], 0, 0, 0]),
                (0, _) if to >= 0 => call(libc::SYS_pwritev, [other, outputs[0], outputs[1], to, 0, 0]),
                (0, _) => call(libc::SYS_writev, [other, outputs[0], outputs[1], 0, 0, 0]),
                _ => {
                    let mut offsets = [offset, to];
                    let length = action.length as i64;
                    let [from, to] = offsets.each_mut().map(|one| if *one >= 0 { &raw mut *one as i64 } else { 0 });
                    match action.kind {
                        K::Sendfile => call(libc::SYS_sendfile, [other, file, from, length, 0, 0]),
                        _ => on(libc::SYS_copy_file_range, [from, other, to, length, 0]),
                    }
                }
            },
            K::Reflink if (offset, action.length, to) == (0, 0, 0) => {
                call(libc::SYS_ioctl, [other, FICLONE.into(), file, 0, 0, 0])
            }
            K::Reflink => {
                // As the kernel's `struct file_clone_range`.
                let range = [file, offset, action.length as i64, to];
                call(libc::SYS_ioctl, [other, FICLONERANGE.into(), range.as_ptr() as i64, 0, 0, 0])
            }
            K::Map | K::Uring | K::Aio | K::Msync | K::OpenByHandle | K::Bind | K::Lost | K::Unreturned => 0,
            K::PolledRing | K::Ioctl | K::Handle | K::GetAttributes | K::SetAttributes => 0,
            K::Spawn | K::Wait | K::Exit | K::Wakeup => 0,
        })
    }

    /// The directories and names of a call with two names. The second directory has a place of its own in the table.
    fn both(&mut self, action: &Action) -> Result<[(i64, i64); 2], i64> {
        let first = self.named(action.at)?;
        let [one, two] = [action.at, action.to].map(|index| self.common.program.targets[index as usize]);
        let directory = match two.directory {
            number if number.is_some() && number == one.directory => first.0,
            _ => self.directory_at(two, self.directories.len() - 1),
        };
        if directory < 0 {
            Err(directory)
        } else {
            Ok([first, (directory, self.common.texts[two.name as usize].as_ptr() as i64)])
        }
    }

    fn open(&mut self, action: &Action) -> Result<i64, i64> {
        const KEPT: i32 = libc::O_ACCMODE
            | libc::O_CREAT
            | libc::O_EXCL
            | libc::O_TRUNC
            | libc::O_APPEND
            | libc::O_NONBLOCK
            | libc::O_SYNC
            | libc::O_DIRECT
            | libc::O_NOATIME
            | O_PATH
            | O_DIRECTORY
            | libc::O_TMPFILE;
        // openat2 refuses what openat ignores beside O_PATH.
        let kept = if action.flags & O_PATH as u32 != 0 { O_PATH | O_DIRECTORY } else { KEPT };
        let flags = action.flags & kept as u32 | (O_NOFOLLOW | O_CLOEXEC) as u32;
        let (directory, name) = self.place(action.at)?;
        let mut opened = open_beneath(directory, name, flags, action.mode);
        if action.flags & INHERITED != 0 && [libc::EISDIR, libc::EACCES].contains(&(-opened as i32)) {
            // A log does not say whether it was to be written to.
            opened = open_beneath(directory, name, flags & !(libc::O_ACCMODE as u32), action.mode);
        }
        if opened < 0 {
            return Err(opened);
        }
        if action.other == 0 {
            // It was to fail.
            close(opened as i32);
            return Ok(0);
        }
        if action.flags & INHERITED != 0 && action.offset > 0 {
            call(libc::SYS_lseek, [opened, action.offset, 0, 0, 0, 0]);
        }
        self.common.files[action.other as usize].store(opened as i32, Ordering::Release);
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_gets_more_than_there_is() {
        let mut buffer = Buffer::of(1 << 16);
        let held = buffer.bytes.as_ptr_range();
        let (begin, end) = (held.start as i64, held.end as i64);
        for wanted in [0, 1, 1 << 16, (1 << 16) + 1, i32::MAX as u64, MOST_BYTES + 1, u64::MAX] {
            let parts = [0, 1, 1 << 15, 1 << 16, 1 << 20].map(|offset| buffer.from(offset, wanted));
            for [address, length] in parts.into_iter().chain([buffer.room(wanted)]) {
                assert!(length >= 0 && length as u64 <= wanted, "{wanted}: {length}");
                assert!(length == 0 || (begin <= address && address + length <= end), "{wanted}: {length}");
            }
        }
    }
}

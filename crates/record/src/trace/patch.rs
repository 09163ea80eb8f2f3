//! Calls that a program records itself, without a stop: a jump in place of the `syscall` instruction leads to code that makes the call and
//! keeps it, with its times, in memory that the tracer shares.
//!
//! Only processes of one thread have it, and only calls about descriptors that the tracer knows, or names. All others stop as they do without
//! it, and what was kept is looked at before any stop is. Where it cannot be had nothing changes: on another architecture or clock, or where
//! the addresses are in use.

#![expect(unsafe_code, reason = "machine code, and memory that another process writes to")]

use super::decode::FICLONE;
use super::kept::{Event, Happened, Pointed};
use super::ptrace;
use crate::call::ACL_BYTES;
use libc::{c_long, c_void, pid_t};
use rustix::mm::{MapFlags, ProtFlags};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::rc::Rc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

// Where all of it is in the program: below 2 GiB, where an instruction has room for the address, and above what is loaded there.
pub(super) const CODE: u64 = 0x7000_0000;
/// Calls that are made from there do not stop.
pub(super) const CODE_BYTES: u32 = 0x800;
/// One byte for each number of a call: what is to be done.
const TABLE: u64 = CODE + CODE_BYTES as u64;
const NUMBERS: usize = 512;
/// What belongs to each patched place.
const CELLS: u64 = CODE + 0x1000;
const CELL: u64 = 64;
const MOST_CELLS: u64 = 0x2000 / CELL;
/// The program's own: the address of its slot.
const OWN: u64 = CODE + 0x3000;
/// A slot without room, for memory that has none of its own.
const NO_ROOM: u64 = OWN + 64;
const SHARED: u64 = 0x7010_0000;
const SLOTS: usize = 64;
const SLOT: usize = ENTRIES + ROOM * ENTRY;
const ENTRIES: usize = 0x1000;
const ENTRY: usize = 256;
const ROOM: usize = 128;
/// Entries for handlers of signals that come between the look whether there is room and the taking of it.
const SPARE: u64 = 8;
const MOST: u64 = ROOM as u64 - SPARE;
const NAME: usize = 96;
const MOST_NAME: usize = ENTRY - NAME;
const DESCRIPTORS: i32 = 1024;
/// In a slot, before the entries: how many were taken, how many may be, and a byte for each descriptor that is known.
const LIMIT: usize = 8;
const KNOWN: usize = 64;

// What is to be done for a call.
const FD: u8 = 1;
/// The descriptor may be the working directory.
const HERE: u8 = 2;
const NAME_SECOND: u8 = 4;
const NAME_FIRST: u8 = 8;
const OPENS: u8 = 16;
const CLOSES: u8 = 32;
const LOCKS: u8 = 64;
/// With a name, the value of an attribute; else a second descriptor, where copies go to.
const MORE: u8 = 128;
/// What is read of a `struct flock`.
const LOCK: usize = 24;
/// Where in an entry that value is, if it is short.
const VALUE: usize = ENTRY - ACL_BYTES;

/// Not those that move what others may have as their working directory. Only opening a FIFO may wait for another process.
const CALLS: &[(c_long, u8)] = &[
    (libc::SYS_read, FD),
    (libc::SYS_write, FD),
    (libc::SYS_pread64, FD),
    (libc::SYS_pwrite64, FD),
    (libc::SYS_lseek, FD),
    (libc::SYS_fsync, FD),
    (libc::SYS_fdatasync, FD),
    (libc::SYS_ftruncate, FD),
    (libc::SYS_fallocate, FD),
    (libc::SYS_fadvise64, FD),
    (libc::SYS_getdents64, FD),
    (libc::SYS_fstat, FD),
    (libc::SYS_fstatfs, FD),
    (libc::SYS_fchmod, FD),
    (libc::SYS_fchown, FD),
    (libc::SYS_flistxattr, FD),
    (libc::SYS_fgetxattr, FD | NAME_SECOND),
    (libc::SYS_fsetxattr, FD | NAME_SECOND | MORE),
    (libc::SYS_copy_file_range, FD | MORE),
    (libc::SYS_ioctl, FD | MORE),
    (libc::SYS_close, FD | CLOSES),
    (libc::SYS_fcntl, FD | LOCKS),
    (libc::SYS_open, NAME_FIRST | OPENS),
    (libc::SYS_creat, NAME_FIRST | OPENS),
    (libc::SYS_stat, NAME_FIRST),
    (libc::SYS_lstat, NAME_FIRST),
    (libc::SYS_access, NAME_FIRST),
    (libc::SYS_mkdir, NAME_FIRST),
    (libc::SYS_rmdir, NAME_FIRST),
    (libc::SYS_unlink, NAME_FIRST),
    (libc::SYS_chmod, NAME_FIRST),
    (libc::SYS_chown, NAME_FIRST),
    (libc::SYS_lchown, NAME_FIRST),
    (libc::SYS_readlink, NAME_FIRST),
    (libc::SYS_statfs, NAME_FIRST),
    (libc::SYS_truncate, NAME_FIRST),
    (libc::SYS_listxattr, NAME_FIRST),
    (libc::SYS_llistxattr, NAME_FIRST),
    (libc::SYS_openat, FD | HERE | NAME_SECOND | OPENS),
    (libc::SYS_newfstatat, FD | HERE | NAME_SECOND),
    (libc::SYS_statx, FD | HERE | NAME_SECOND),
    (libc::SYS_faccessat, FD | HERE | NAME_SECOND),
    (libc::SYS_faccessat2, FD | HERE | NAME_SECOND),
    (libc::SYS_mkdirat, FD | HERE | NAME_SECOND),
    (libc::SYS_unlinkat, FD | HERE | NAME_SECOND),
    (libc::SYS_fchmodat, FD | HERE | NAME_SECOND),
    (libc::SYS_fchownat, FD | HERE | NAME_SECOND),
    (libc::SYS_readlinkat, FD | HERE | NAME_SECOND),
    (libc::SYS_utimensat, FD | HERE | NAME_SECOND),
];

// r11 has the address behind the `syscall` instruction of the cell, which makes the call with a stop; rcx and r11 are lost in a call anyway. A
// name that cannot be read ends in a signal, upon which the tracer has the thread go on at `cancel`.
core::arch::global_asm!(
    ".pushsection .text.fstone_patch, \"ax\", @progbits",
    ".globl fstone_patch_begin, fstone_patch_copies, fstone_patch_copied, fstone_patch_cancel, fstone_patch_end",
    ".hidden fstone_patch_begin, fstone_patch_copies, fstone_patch_copied, fstone_patch_cancel, fstone_patch_end",
    "fstone_patch_begin:",
    // What is below the stack pointer is in use.
    "lea rsp, [rsp - 128]",
    "push r11",
    "push rbx",
    "push rdx",
    "push rax",
    "mov ebx, {own}",
    "mov rbx, [rbx]",
    "cmp rax, {numbers}",
    "jae 90f",
    "movzx ecx, byte ptr [rax + {table}]",
    "test ecx, ecx",
    "je 90f",
    "mov r11, [rbx]",
    "cmp r11, [rbx + {limit}]",
    "jae 90f",
    "test cl, {fd}",
    "jz 30f",
    "mov edx, edi",
    "cmp edx, {descriptors}",
    "jae 20f",
    "cmp byte ptr [rbx + rdx + {known}], 0",
    "je 90f",
    "jmp 30f",
    "20:",
    "test cl, {here}",
    "jz 90f",
    "cmp edi, {at_fdcwd}",
    "jne 90f",
    "30:",
    "test cl, {locks}",
    "jz 32f",
    "cmp esi, {setlk}",
    "jne 90f",
    "32:",
    "test cl, {more}",
    "jz 34f",
    "test cl, {second}",
    "jnz 34f",
    "mov r11d, [rsp + 8]",
    "cmp r11d, {descriptors}",
    "jae 90f",
    "cmp byte ptr [rbx + r11 + {known}], 0",
    "je 90f",
    "cmp eax, {ioctl}",
    "jne 33f",
    "cmp esi, {ficlone}",
    "jne 90f",
    "jmp 34f",
    "33:",
    // Offsets that are not the files' own are elsewhere.
    "test rsi, rsi",
    "jnz 90f",
    "test r10, r10",
    "jnz 90f",
    "34:",
    // One entry: a handler of a signal takes another.
    "mov r11d, 1",
    "xadd [rbx], r11",
    "and r11d, {last}",
    "shl r11d, 8",
    "test cl, {closes}",
    "jz 35f",
    "mov byte ptr [rbx + rdx + {known}], 0",
    "35:",
    "lea rbx, [rbx + r11 + {entries}]",
    "mov [rbx + 8], rax",
    "mov [rbx + 16], rdi",
    "mov [rbx + 24], rsi",
    "mov rdx, [rsp + 8]",
    "mov [rbx + 32], rdx",
    "mov [rbx + 40], r10",
    "mov [rbx + 48], r8",
    "mov [rbx + 56], r9",
    "mov [rbx + 88], rcx",
    "mov r11, rsi",
    "test cl, {second}",
    "jnz 40f",
    "mov r11, rdi",
    "test cl, {first}",
    "jnz 40f",
    "test cl, {locks}",
    "jz 60f",
    "fstone_patch_copies:",
    "mov r11, [rdx]",
    "mov [rbx + {name}], r11",
    "mov r11, [rdx + 8]",
    "mov [rbx + {name} + 8], r11",
    "mov r11, [rdx + 16]",
    "mov [rbx + {name} + 16], r11",
    "jmp 60f",
    "40:",
    "test r11, r11",
    "jz 60f",
    "test cl, {more}",
    "jz 42f",
    "cmp r10, {acl_bytes}",
    "jne 42f",
    "mov rax, [rdx]",
    "mov [rbx + {value}], rax",
    "mov rax, [rdx + 8]",
    "mov [rbx + {value} + 8], rax",
    "mov rax, [rdx + 16]",
    "mov [rbx + {value} + 16], rax",
    "mov eax, [rdx + 24]",
    "mov [rbx + {value} + 24], eax",
    "42:",
    "xor edx, edx",
    "41:",
    "mov al, [r11 + rdx]",
    "mov [rbx + rdx + {name}], al",
    "inc edx",
    "test al, al",
    "jz fstone_patch_copied",
    "cmp edx, {most_name}",
    "jb 41b",
    "jmp fstone_patch_cancel",
    "fstone_patch_copied:",
    // Names of descriptors, and what may wait for others: /proc and /dev without /dev/shm.
    "cmp dword ptr [rbx + {name}], 0x6f72702f",
    "je fstone_patch_cancel",
    "cmp dword ptr [rbx + {name}], 0x7665642f",
    "jne 60f",
    "cmp dword ptr [rbx + {name} + 5], 0x2f6d6873",
    "jne fstone_patch_cancel",
    "60:",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "mov [rbx + 72], rax",
    "mov qword ptr [rbx], {begun}",
    "mov rax, [rsp]",
    "mov rdx, [rsp + 8]",
    "syscall",
    "mov [rsp], rax",
    "mov [rbx + 64], rax",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "mov [rbx + 80], rax",
    "mov cl, [rbx + 88]",
    "mov qword ptr [rbx], {ended}",
    "test cl, {opens}",
    "jz 70f",
    "mov rax, [rsp]",
    "cmp rax, {descriptors}",
    "jae 70f",
    // What has no position is no file, and to read it may be to wait.
    "push rdi",
    "push rsi",
    "mov edi, eax",
    "xor esi, esi",
    "mov edx, {seek_cur}",
    "mov eax, {lseek}",
    "syscall",
    "mov ecx, {own}",
    "mov rcx, [rcx]",
    "test rax, rax",
    "js 71f",
    "mov byte ptr [rcx + rdi + {known}], 1",
    "71:",
    "pop rsi",
    "pop rdi",
    "70:",
    "pop rax",
    "pop rdx",
    "pop rbx",
    "pop r11",
    "lea rsp, [rsp + 128]",
    "jmp r11",
    "fstone_patch_cancel:",
    "mov qword ptr [rbx], {cancelled}",
    "90:",
    "pop rax",
    "pop rdx",
    "pop rbx",
    "pop r11",
    "lea rsp, [rsp + 128]",
    "lea r11, [r11 - 2]",
    "jmp r11",
    "fstone_patch_end:",
    ".popsection",
    own = const OWN,
    numbers = const NUMBERS,
    table = const TABLE,
    limit = const LIMIT,
    fd = const FD,
    descriptors = const DESCRIPTORS,
    known = const KNOWN,
    here = const HERE,
    at_fdcwd = const libc::AT_FDCWD,
    locks = const LOCKS,
    more = const MORE,
    ioctl = const libc::SYS_ioctl,
    ficlone = const FICLONE,
    lseek = const libc::SYS_lseek,
    seek_cur = const libc::SEEK_CUR,
    acl_bytes = const ACL_BYTES,
    value = const VALUE,
    setlk = const libc::F_SETLK,
    last = const ROOM - 1,
    closes = const CLOSES,
    entries = const ENTRIES,
    second = const NAME_SECOND,
    first = const NAME_FIRST,
    name = const NAME,
    most_name = const MOST_NAME,
    begun = const BEGUN,
    opens = const OPENS,
    ended = const ENDED,
    cancelled = const CANCELLED,
);

const BEGUN: u64 = 1;
const ENDED: u64 = 2;
const CANCELLED: u64 = 3;

unsafe extern "C" {
    static fstone_patch_begin: u8;
    static fstone_patch_copies: u8;
    static fstone_patch_copied: u8;
    static fstone_patch_cancel: u8;
    static fstone_patch_end: u8;
}

fn code() -> &'static [u8] {
    // SAFETY: the symbols are of one section, in this order.
    unsafe {
        let length = (&raw const fstone_patch_end).offset_from(&raw const fstone_patch_begin);
        std::slice::from_raw_parts(&raw const fstone_patch_begin, length as usize)
    }
}

/// Where a place of the code above is in the program.
fn placed(place: *const u8) -> u64 {
    CODE + (place as u64 - (&raw const fstone_patch_begin) as u64)
}

/// What is done for a call; 0 for those that stop.
pub(super) fn way(number: u64) -> u8 {
    CALLS.iter().find(|(known, _)| *known as u64 == number).map_or(0, |(_, way)| *way)
}

fn ticks() -> u64 {
    // SAFETY: every processor with this architecture has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

struct Process {
    shared: Rc<Shared>,
    slot: usize,
    /// The first entry that has not ended, and what was said of it and those after it.
    first: u64,
    said: Vec<u64>,
    /// Places that were looked at, by the address behind the instruction.
    looked: HashSet<u64>,
    cells: u64,
    is_enabled: bool,
    /// Its memory no longer has its slot.
    is_apart: bool,
    /// Another one writes to its slot.
    is_spoilt: bool,
}

impl Process {
    fn new(shared: Rc<Shared>, slot: usize) -> Self {
        let (looked, said) = (HashSet::new(), vec![0; ROOM]);
        Self { shared, slot, first: 0, said, looked, cells: 0, is_enabled: true, is_apart: false, is_spoilt: false }
    }
}

/// Memory that processes share with the tracer: one that got it and those that it forks.
struct Shared {
    memory: *mut u8,
    free: RefCell<Vec<usize>>,
}

impl Shared {
    fn word(&self, slot: usize, at: usize) -> &AtomicU64 {
        assert!(slot < SLOTS && at + 8 <= SLOT && at.is_multiple_of(8));
        // SAFETY: in the mapping, which lives as long as this, and aligned. Others write to it as they like.
        unsafe { AtomicU64::from_ptr(self.memory.add(slot * SLOT + at).cast()) }
    }

    fn byte(&self, slot: usize, at: usize) -> &AtomicU8 {
        assert!(slot < SLOTS && at < SLOT);
        // SAFETY: as above.
        unsafe { AtomicU8::from_ptr(self.memory.add(slot * SLOT + at)) }
    }

    /// An empty slot.
    fn slot(&self) -> Option<usize> {
        let slot = self.free.borrow_mut().pop()?;
        let entries = (0..ROOM).map(|place| ENTRIES + place * ENTRY);
        entries.chain((0..KNOWN + DESCRIPTORS as usize).step_by(8)).for_each(|at| {
            self.word(slot, at).store(0, Ordering::Relaxed);
        });
        self.word(slot, LIMIT).store(MOST, Ordering::Relaxed);
        Some(slot)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more.
        let _ = unsafe { rustix::mm::munmap(self.memory.cast::<c_void>(), SLOTS * SLOT) };
    }
}

pub(super) struct Patches {
    processes: HashMap<pid_t, Process>,
    /// Places to which a handler of a signal returns.
    never: HashSet<u64>,
    began: Instant,
    began_ticks: u64,
}

impl Patches {
    /// `None` where it cannot be had.
    pub(super) fn new() -> Option<Self> {
        let clock = ptrace::proc_text("/sys/devices/system/clocksource/clocksource0/current_clocksource")?;
        let (began, began_ticks) = (Instant::now(), ticks());
        let (processes, never) = (HashMap::new(), HashSet::new());
        (clock.trim() == "tsc").then_some(Self { processes, never, began, began_ticks })
    }

    pub(super) fn has(&self, thread: pid_t) -> bool {
        self.processes.contains_key(&thread)
    }

    pub(super) fn are_used(&self) -> bool {
        !self.processes.is_empty()
    }

    /// Has a process record calls itself. Its only thread has stopped at the end of a call.
    pub(super) fn enter(&mut self, thread: pid_t, known: impl Iterator<Item = i32>) -> bool {
        // The calls that map would be made under its own filters.
        if ptrace::filters(thread) != ptrace::filters(std::process::id() as pid_t).map(|own| own + 1) {
            return false;
        }
        let Some(shared) = Self::mapped(thread) else { return false };
        self.processes.insert(thread, Process::new(Rc::new(shared), 0));
        known.for_each(|fd| self.know(thread, fd, || true));
        true
    }

    fn mapped(thread: pid_t) -> Option<Shared> {
        let mut calls = ptrace::Injected::new(thread)?;
        let name = c"fstone".to_bytes_with_nul();
        let on_stack = calls.below_stack(name.len() as u64);
        ptrace::write(thread, on_stack, name)?;
        let fd = calls.make(libc::SYS_memfd_create, [on_stack, libc::MFD_CLOEXEC.into(), 0, 0, 0, 0])?;
        let fd = u64::try_from(fd).ok()?;
        let length = SLOTS * SLOT;
        let file = File::options().read(true).write(true).open(format!("/proc/{thread}/fd/{fd}")).ok();
        let is_long = file.as_ref().is_some_and(|file| file.set_len(length as u64).is_ok());
        let (own, both) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
        let all = [
            (CODE, OWN - CODE, libc::PROT_READ | libc::PROT_EXEC, own, u64::MAX),
            (OWN, 0x1000, both, own, u64::MAX),
            (SHARED, length as u64, both, libc::MAP_SHARED, fd),
        ];
        let are_mapped = is_long
            && all.into_iter().all(|(address, length, access, flags, fd)| {
                let flags = flags | libc::MAP_FIXED_NOREPLACE;
                let got = calls.make(libc::SYS_mmap, [address, length, access as u64, flags as u64, fd, 0]);
                got == Some(address as i64)
            });
        calls.make(libc::SYS_close, [fd, 0, 0, 0, 0, 0])?;
        if rustix::process::geteuid().is_root() {
            // A child may give up its rights, and then must not see what others do.
            let advice = [SHARED, length as u64, libc::MADV_DONTFORK as u64, 0, 0, 0];
            calls.make(libc::SYS_madvise, advice).filter(|got| *got == 0)?;
        }
        let file = file.filter(|_| are_mapped)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a mapping where nothing is.
        let memory =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, &file, 0).ok()? };
        let shared = Shared { memory: memory.cast(), free: RefCell::new((0..SLOTS).rev().collect()) };
        let slot = shared.slot()?;
        let mut table = vec![0; NUMBERS];
        CALLS.iter().for_each(|(number, way)| table[*number as usize] = *way);
        assert!(code().len() <= CODE_BYTES as usize, "the table is behind it");
        ptrace::write(thread, CODE, code())?;
        ptrace::write(thread, TABLE, &table)?;
        Self::give(thread, Some(slot))?;
        Some(shared)
    }

    fn give(thread: pid_t, slot: Option<usize>) -> Option<()> {
        let place = slot.map_or(NO_ROOM, |slot| SHARED + (slot * SLOT) as u64);
        ptrace::write(thread, OWN, &place.to_ne_bytes())
    }

    /// A new process has its parent's memory, and does not run before that is changed: it gets a slot of its own, or one without room.
    pub(super) fn fork(&mut self, parent: Option<pid_t>, child: pid_t) {
        let of = parent.and_then(|parent| self.processes.get_mut(&parent));
        let Some(of) = of else {
            // Of a thread, or of one whose parent was killed meanwhile.
            let mut bytes = vec![0; code().len()];
            if ptrace::read(child, CODE, &mut bytes) == bytes.len() && bytes == code() {
                Self::give(child, None);
            }
            return;
        };
        let (shared, from, looked, cells) = (of.shared.clone(), of.slot, of.looked.clone(), of.cells);
        let slot = if rustix::process::geteuid().is_root() { None } else { shared.slot() };
        if Self::give(child, slot).is_none() {
            // It writes to its parent's slot: that keeps no calls any more, and is given to no other.
            return parent.into_iter().for_each(|parent| self.spoil(parent));
        }
        let Some(slot) = slot else { return };
        for at in (KNOWN..KNOWN + DESCRIPTORS as usize).step_by(8) {
            shared.word(slot, at).store(shared.word(from, at).load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.processes.insert(child, Process { looked, cells, ..Process::new(shared, slot) });
    }

    /// Whether calls are kept, which is not while others have its memory or its descriptors.
    pub(super) fn enable(&mut self, thread: pid_t, enabled: bool) {
        let Some(process) = self.processes.get_mut(&thread).filter(|process| !process.is_spoilt) else { return };
        process.is_enabled = enabled;
        let (slot, most) = (process.slot, if enabled { process.first + MOST } else { 0 });
        process.shared.word(slot, LIMIT).store(most, Ordering::Relaxed);
    }

    fn spoil(&mut self, thread: pid_t) {
        self.enable(thread, false);
        if let Some(process) = self.processes.get_mut(&thread) {
            process.is_spoilt = true;
        }
    }

    /// It has several threads, and keeps none of its calls any more.
    pub(super) fn part(&mut self, thread: pid_t) {
        self.enable(thread, false);
        if let Some(process) = self.processes.get_mut(&thread) {
            process.is_apart = Self::give(thread, None).is_some();
        }
    }

    /// The process has ended, or has another program.
    pub(super) fn leave(&mut self, thread: pid_t) {
        if let Some(process) = self.processes.remove(&thread)
            && !process.is_spoilt
            && (process.is_enabled || process.is_apart)
        {
            // The slot is free only if no other process can still write to it.
            process.shared.free.borrow_mut().push(process.slot);
        }
    }

    pub(super) fn know(&self, thread: pid_t, fd: i32, known: impl FnOnce() -> bool) {
        if let Some(process) = self.processes.get(&thread).filter(|_| (0..DESCRIPTORS).contains(&fd)) {
            process.shared.byte(process.slot, KNOWN + fd as usize).store(known().into(), Ordering::Relaxed);
        }
    }

    /// What was kept and not said yet, in the order of time: of the thread all, of others what was until some time.
    pub(super) fn events(&mut self, of: Option<pid_t>, until_ns: u64, now_ns: impl Fn() -> u64) -> Vec<Event> {
        let mut events = Vec::new();
        let passed = ticks().saturating_sub(self.began_ticks).max(1);
        let ns_per_tick = self.began.elapsed().as_nanos() as f64 / passed as f64;
        let (now_ns, now_ticks) = (now_ns(), ticks());
        let moment = |then: u64| now_ns.saturating_sub((now_ticks.saturating_sub(then) as f64 * ns_per_tick) as u64);
        for (&thread, process) in &mut self.processes {
            let most_ns = if of == Some(thread) { u64::MAX } else { until_ns };
            let word = |at| process.shared.word(process.slot, at);
            let taken = word(0).load(Ordering::Acquire).min(process.first + ROOM as u64);
            for entry in process.first..taken {
                let place = (entry % ROOM as u64) as usize;
                let at = |offset: usize| word(ENTRIES + place * ENTRY + offset).load(Ordering::Relaxed);
                let state = word(ENTRIES + place * ENTRY).load(Ordering::Acquire);
                let said = &mut process.said[place];
                if *said == 0 && (state == BEGUN || state == ENDED) && moment(at(72)) <= most_ns {
                    *said = BEGUN;
                    let arguments = [16, 24, 32, 40, 48, 56].map(at);
                    let way = at(88) as u8;
                    let address = match way {
                        way if way & NAME_SECOND != 0 => arguments[1],
                        way if way & NAME_FIRST != 0 => arguments[0],
                        way if way & LOCKS != 0 => arguments[2],
                        _ => 0,
                    };
                    let mut pointed = Pointed::new();
                    if address != 0 {
                        let words = (NAME..ENTRY).step_by(8);
                        let mut bytes: Vec<u8> = words.flat_map(|offset| at(offset).to_ne_bytes()).collect();
                        if way & MORE != 0 && arguments[3] == ACL_BYTES as u64 {
                            pointed.push((arguments[2], bytes.split_off(VALUE - NAME)));
                        }
                        // What follows it is of earlier calls.
                        let name = bytes.iter().position(|byte| *byte == 0).map_or(bytes.len(), |end| end + 1);
                        bytes.truncate(if way & LOCKS != 0 { LOCK } else { name });
                        pointed.push((address, bytes));
                    }
                    let what = Happened::Began { number: at(8), arguments, pointed };
                    events.push(Event { ns: moment(at(72)), thread, entry, what });
                }
                if *said == BEGUN && state == ENDED && moment(at(80)) <= most_ns {
                    *said = ENDED;
                    let what = Happened::Ended { result: at(64) as i64 };
                    events.push(Event { ns: moment(at(80)), thread, entry, what });
                }
                if *said == 0 && state == CANCELLED {
                    *said = ENDED;
                }
            }
            // In order, so that the places of those that last are not given away.
            let before = process.first;
            while process.first < taken && process.said[(process.first % ROOM as u64) as usize] == ENDED {
                let place = (process.first % ROOM as u64) as usize;
                process.said[place] = 0;
                word(ENTRIES + place * ENTRY).store(0, Ordering::Relaxed);
                process.first += 1;
            }
            if process.first != before && process.is_enabled {
                word(LIMIT).store(process.first + MOST, Ordering::Release);
            }
        }
        events.sort_by_key(|event| event.ns);
        events
    }

    /// A call has ended and its thread has stopped: later ones from there do not stop, if it can be changed.
    pub(super) fn patch(&mut self, thread: pid_t, behind: u64) {
        let Some(process) = self.processes.get_mut(&thread) else { return };
        let is_own = (CODE..OWN).contains(&behind);
        if is_own || process.cells == MOST_CELLS || self.never.contains(&behind) || !process.looked.insert(behind) {
            return;
        }
        // A jump from elsewhere into what is replaced would be lost. What is near enough for one is looked at.
        const AROUND: u64 = 4096;
        let mut code = vec![0; 2 * AROUND as usize];
        let from = behind.saturating_sub(AROUND);
        // Another mapping may begin or end nearby.
        let [mut low, mut high] = [from, behind.saturating_add(AROUND)];
        if ptrace::read(thread, low, &mut code) < code.len() {
            (low, high) = (behind & !0xfff, (behind & !0xfff) + 4096);
            code.truncate(4096);
            if ptrace::read(thread, low, &mut code) < code.len() {
                return;
            }
        }
        if !ptrace::is_private(thread, behind - 2) {
            return;
        }
        let offset = (behind - low) as usize;
        debug_assert_eq!(code.len() as u64, high - low);
        let Some(next) = replaceable(&code, offset) else { return };
        let cell = CELLS + process.cells * CELL;
        let back = behind + next.len() as u64;
        // The pointer of the jump, then its target: r11 = what is behind the call; a jump to the code; the call; what was replaced; and back.
        let calls_end = cell + 8 + 6 + 5 + 2;
        let mut bytes = (cell + 8).to_le_bytes().to_vec();
        bytes.extend([0x41, 0xbb]);
        bytes.extend((calls_end as u32).to_le_bytes());
        bytes.push(0xe9);
        bytes.extend((CODE.wrapping_sub(cell + 8 + 6 + 5) as u32).to_le_bytes());
        bytes.extend([0x0f, 0x05]);
        bytes.extend(next);
        bytes.extend([0xff, 0x25, 0, 0, 0, 0]);
        bytes.extend(back.to_le_bytes());
        let mut jump = vec![0xff, 0x24, 0x25];
        jump.extend((cell as u32).to_le_bytes());
        jump.resize(2 + next.len(), 0x90);
        if ptrace::write(thread, cell, &bytes).is_some() && ptrace::write(thread, behind - 2, &jump).is_some() {
            process.cells += 1;
            ptrace::go_to(thread, calls_end);
        }
    }

    /// A signal is about to be delivered: true if it is that a name cannot be read, and the call is made with a stop.
    pub(super) fn interrupted(&mut self, thread: pid_t, signal: i32) -> bool {
        let Some(at) = ptrace::place(thread) else { return false };
        let copies = placed(&raw const fstone_patch_copies)..placed(&raw const fstone_patch_copied);
        if matches!(signal, libc::SIGSEGV | libc::SIGBUS) && copies.contains(&at) && self.has(thread) {
            ptrace::go_to(thread, placed(&raw const fstone_patch_cancel));
            return true;
        }
        let mut before = [0; 2];
        if ptrace::read(thread, at.wrapping_sub(2), &mut before) == 2 && before == [0x0f, 0x05] {
            self.never.insert(at);
        }
        false
    }
}

/// The instruction behind a `syscall`, if both can give way to a jump: a comparison with an error, which may be anywhere, and to which
/// nothing near jumps.
fn replaceable(code: &[u8], behind: usize) -> Option<&[u8]> {
    if behind < 2 || code.get(behind - 2..behind)? != [0x0f, 0x05] {
        return None;
    }
    let length = match code.get(behind..behind + 6)? {
        // cmp rax, -4096 or -4095
        [0x48, 0x3d, 0 | 1, 0xf0, 0xff, 0xff] => 6,
        // cmp eax, the same
        [0x3d, 0 | 1, 0xf0, 0xff, 0xff, _] => 5,
        _ => return None,
    };
    let leads_there = |at: usize| {
        let near = |skip: usize| {
            let bytes = code.get(at + skip..at + skip + 4)?;
            Some((at + skip + 4) as i64 + i64::from(i32::from_le_bytes(bytes.try_into().ok()?)))
        };
        let target = match code[at] {
            0xeb | 0x70..=0x7f | 0xe0..=0xe3 => code.get(at + 1).map(|by| (at + 2) as i64 + i64::from(*by as i8)),
            0xe8 | 0xe9 => near(1),
            0x0f if code.get(at + 1).is_some_and(|next| (0x80..=0x8f).contains(next)) => near(2),
            _ => None,
        };
        target == Some(behind as i64)
    };
    // What is replaced itself is no jump.
    let around = (0..code.len()).filter(|at| !(behind - 2..behind + length).contains(at));
    if around.into_iter().any(leads_there) { None } else { Some(&code[behind..behind + length]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_comparison_that_nothing_jumps_to_gives_way() {
        let mut code = vec![0x90; 64];
        code[20..28].copy_from_slice(&[0x0f, 0x05, 0x48, 0x3d, 0, 0xf0, 0xff, 0xff]);
        assert_eq!(replaceable(&code, 22), Some(&code[22..28]));
        assert_eq!(replaceable(&code, 21), None);
        // A jump to the call itself is none into the middle.
        code[40..42].copy_from_slice(&[0xeb, (20i8 - 42) as u8]);
        assert!(replaceable(&code, 22).is_some());
        code[40..42].copy_from_slice(&[0x74, (22i8 - 42) as u8]);
        assert_eq!(replaceable(&code, 22), None);
        code[40..46].copy_from_slice(&[0x0f, 0x84, (22i8 - 46) as u8, 0xff, 0xff, 0xff]);
        assert_eq!(replaceable(&code, 22), None);
    }
}

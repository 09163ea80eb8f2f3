//! Functions of libc, preloaded into a program that is recorded: they make calls about files without a stop, and keep them in memory that
//! the recorder reads. What they cannot keep, libc does, and the recorder stops at it.
//!
//! A call is made by the one instruction that the recorder's filter lets through. A process has the memory that it got itself: after a
//! fork its page [`Own`] is empty until the recorder invites it. Nothing here waits, allocates, or needs more of libc than it may lack.
#![no_std]

mod shared;

use core::arch::asm;
use core::mem::transmute;
use core::ops::Range;
use core::ptr::{null_mut, with_exposed_provenance as pointer};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*, compiler_fence};
use shared::*;

type Six = [u64; 6];

// What else is done for a call, beside what `shared` says: its first argument is a descriptor, or may be the working directory; the third is a
// second descriptor; it opens or closes one.
const FD: u64 = 16;
const HERE: u64 = 32;
const OTHER: u64 = 64;
const OPENS: u64 = 128;
const CLOSES: u64 = 256;
// It renames something: only within a directory, and no directory, or names and descriptors that the recorder knows would be others.
const RENAMES: u64 = 1024;
const AT: u64 = FD | HERE | NAME[1];

/// Private, and zeroes in a child that a fork made.
#[repr(C)]
struct Own {
    /// Whether it is to get memory: a child's filter may end it for that, and the recorder knows whether it has one.
    invited: AtomicU64,
    shared: AtomicPtr<Shared>,
    process: AtomicU64,
}

static OWN: AtomicPtr<Own> = AtomicPtr::new(null_mut());
static CLOCK: AtomicUsize = AtomicUsize::new(0);
/// Beside a function's address: it is another library's, which wants to be asked.
const OTHERS: usize = 1 << 63;
/// Of what is in /dev.
const NEVER_WAIT: [&[u8]; 3] = [b"/dev/shm/", b"/dev/null\0", b"/dev/urandom\0"];

const AT_FDCWD: u64 = -100i64 as u64;
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const O_CREAT: u64 = 0o100;
const O_TMPFILE: u64 = 0o20_000_000;
const O_PATH: u64 = 0o10_000_000;
const FICLONE: u64 = 0x4004_9409;
const F_SETLK: u64 = 6;
const RENAME_NOREPLACE: u64 = 1;
const SYS_READ: u64 = 0;
const SYS_WRITE: u64 = 1;
const SYS_CLOSE: u64 = 3;
const SYS_MMAP: u64 = 9;
const SYS_IOCTL: u64 = 16;
const SYS_FCNTL: u64 = 72;
const SYS_FADVISE: u64 = 221;
const SYS_COPY_FILE_RANGE: u64 = 326;
const SYS_CLOSE_RANGE: u64 = 436;
const SYS_FSTATAT: u64 = 262;
const SYS_PREADV2: u64 = 327;
const SYS_PWRITEV2: u64 = 328;
const NOT_SUPPORTED: i64 = -95;
const NOT_THERE: i64 = -2;
const PIPE_BUF: u64 = 4096;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

core::arch::global_asm!(".weak dlsym", ".weak __errno_location");

unsafe extern "C" {
    fn dlsym(of: *const u8, name: *const u8) -> usize;
    fn __errno_location() -> *mut i32;
}

/// Whether the program has a function that it may lack.
fn has(function: *const ()) -> bool {
    !core::hint::black_box(function).is_null()
}

/// A call that stops, if it is one that the recorder stops at.
unsafe fn system_call(number: u64, [a, b, c, d, e, f]: Six) -> i64 {
    let result;
    // SAFETY: the program's own arguments.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// One that does not, if `STUB` is there.
unsafe fn unstopped(number: u64, [a, b, c, d, e, f]: Six) -> i64 {
    let result;
    // SAFETY: as above; what is called uses no more of the stack than its return address.
    unsafe {
        asm!("call {stub}", stub = in(reg) STUB, inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
            in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _);
    }
    result
}

fn now() -> u64 {
    let mut time = [0; 2];
    // SAFETY: libc's clock_gettime, or nothing is kept.
    unsafe { transmute::<usize, extern "C" fn(i32, *mut [i64; 2]) -> i32>(CLOCK.load(Relaxed))(1, &raw mut time) };
    time[0] as u64 * 1_000_000_000 + time[1] as u64
}

fn thread_pointer() -> u64 {
    let value;
    // SAFETY: of every thread that uses libc.
    unsafe { asm!("mov {}, fs:[0]", out(reg) value, options(nostack, readonly, preserves_flags)) };
    value
}

fn own() -> Option<&'static Own> {
    // SAFETY: null, or mapped for as long as the program has this library.
    unsafe { OWN.load(Acquire).as_ref() }
}

/// The next library's function of a name that ends with a zero.
unsafe fn next(name: &[u8]) -> usize {
    // SAFETY: it is there, as the callers know.
    unsafe { dlsym(pointer(usize::MAX), name.as_ptr()) }
}

/// From where to where the library is that has a function.
unsafe fn library_of(name: &[u8]) -> Range<usize> {
    // SAFETY: what dladdr fills, and the headers of a file that is mapped.
    unsafe {
        let (dladdr, function) = (next(b"dladdr\0"), next(name));
        let mut found = [0usize; 4];
        if dladdr == 0
            || function == 0
            || transmute::<usize, extern "C" fn(usize, *mut [usize; 4]) -> i32>(dladdr)(function, &raw mut found) == 0
        {
            return 0..0;
        }
        let base = found[1];
        let [offset, count] = [*pointer::<usize>(base + 32), *pointer::<u16>(base + 56) as usize];
        let segments = core::slice::from_raw_parts(pointer::<[usize; 7]>(base + offset), count);
        let loaded = segments.iter().filter(|segment| segment[0] as u32 == 1).map(|segment| segment[2] + segment[5]);
        base..base + loaded.max().unwrap_or(0)
    }
}

/// Finds libc's functions, and a page.
unsafe fn prepared() -> Option<&'static Own> {
    // SAFETY: plain calls with valid arguments; the addresses are not in use.
    unsafe {
        if !has(__errno_location as *const ()) || !has(dlsym as *const ()) {
            return None;
        }
        // Two that no other library has; before glibc 2.34 threads had a library of their own.
        let libc = [library_of(b"a64l\0"), library_of(b"pthread_setconcurrency\0")];
        let find = |name: &[u8]| match next(name) {
            0 => 0,
            at if libc.iter().any(|library| library.contains(&at)) => at,
            at => at | OTHERS,
        };
        resolve(find);
        let clock = find(b"clock_gettime\0");
        CLOCK.store(clock, Relaxed);
        let (private, fixed) = (0x22, 0x10_0000);
        if clock == 0 || clock & OTHERS != 0 {
            return None;
        }
        let at = system_call(SYS_MMAP, [0, 4096, 3, private, u64::MAX, 0]);
        let stub = system_call(SYS_MMAP, [STUB, STUB_BYTES, 3, private | fixed, u64::MAX, 0]);
        let wiped_at_fork = 18;
        if at < 0 || stub != STUB as i64 || system_call(28, [at as u64, 4096, wiped_at_fork, 0, 0, 0]) != 0 {
            return None;
        }
        // syscall; ret
        (STUB as *mut [u8; 3]).write([0x0f, 0x05, 0xc3]);
        (system_call(10, [STUB, STUB_BYTES, 5, 0, 0, 0]) == 0).then(|| &*(at as *const Own))
    }
}

/// Before the program's first instruction.
unsafe extern "C" fn begin() {
    // SAFETY: as above.
    unsafe {
        if let Some(own) = prepared() {
            OWN.store(&raw const *own as *mut Own, Release);
            own.invited.store(INVITED, Relaxed);
            set_up(own);
        } else {
            // The recorder takes it out of the environment.
            system_call(SYS_CLOSE_RANGE, [HELLO, u64::MAX, 0, 0, 0, 0]);
        }
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: unsafe extern "C" fn() = begin;

/// Gets memory that is shared with the recorder. A process that cannot have it does without.
unsafe fn set_up(own: &Own) {
    if own.invited.compare_exchange(INVITED, OVER, AcqRel, Relaxed).is_err() {
        return;
    }
    // SAFETY: plain calls; what they write to is there.
    unsafe {
        let length = size_of::<Shared>() as u64;
        let (mut fd, mut at) = (-1, -1);
        // Beyond RLIMIT_FSIZE a file that grows ends the program.
        let mut limit = [0u64; 2];
        if system_call(302, [0, 1, 0, &raw mut limit as u64, 0, 0]) == 0 && limit[0] >= length {
            let closed_by_exec = 1;
            fd = system_call(319, [c"fstone".as_ptr() as u64, closed_by_exec, 0, 0, 0, 0]);
        }
        if fd >= 0 && unstopped(77, [fd as u64, length, 0, 0, 0, 0]) == 0 {
            at = unstopped(SYS_MMAP, [0, length, 3, 1, fd as u64, 0]);
        }
        let offered = if at > 0 { fd } else { -1 };
        system_call(SYS_CLOSE_RANGE, [HELLO, offered as u64, &raw const *own as u64, 0, 0, 0]);
        if at > 0 && (*(at as *const Shared)).accepted.load(Acquire) != 0 {
            own.process.store(system_call(39, [0; 6]) as u64, Relaxed);
            own.shared.store(at as *mut Shared, Release);
        }
        if fd >= 0 {
            unstopped(SYS_CLOSE, [fd as u64, 0, 0, 0, 0, 0]);
        }
    }
}

fn ring(shared: &Shared) -> Option<&Ring> {
    let key = thread_pointer();
    let found = shared.keys.iter().position(|other| matches!(other.load(Acquire), other if other == key || other == 0))?;
    (shared.keys[found].load(Relaxed) == key).then(|| &shared.rings[shared.of_keys[found].load(Relaxed) as usize % RINGS])
}

fn known(shared: &Shared, fd: u64) -> u8 {
    shared.known.get(fd as u32 as usize).map_or(0, |known| known.load(Acquire))
}

fn is_known(shared: &Shared, fd: u64) -> bool {
    known(shared, fd) != 0
}

/// Reads what a pipe or a counter of events has, or writes as much as is written at once. `None` if that is to wait, or the kernel cannot tell
/// (of pipes before 6.4).
unsafe fn at_once(number: u64, known: u8, arguments: Six) -> Option<i64> {
    let [fd, at, length, ..] = arguments;
    if number == SYS_WRITE && known == EVENTS {
        // Only a counter that is full waits, at 2^64 events.
        // SAFETY: the program's own arguments.
        return Some(unsafe { unstopped(number, arguments) });
    }
    // More may be written in parts, between which a signal or a cancellation ends the call.
    if number == SYS_WRITE && length > PIPE_BUF {
        return None;
    }
    let vector = [at, length];
    let (call, do_not_wait) = (if number == SYS_READ { SYS_PREADV2 } else { SYS_PWRITEV2 }, 8);
    // SAFETY: the program's own arguments.
    let done = unsafe { unstopped(call, [fd, &raw const vector as u64, 1, u64::MAX, u64::MAX, do_not_wait]) };
    // What waits says what is wrong, but of a broken pipe, of which a signal has been sent.
    const BROKEN: i64 = -32;
    (done >= 0 || done == BROKEN).then_some(done)
}

/// Whether a name becomes another one in the same directory, and is of no directory. Both names follow each other.
unsafe fn stays(entry: &Entry, [directory, from, other, ..]: Six) -> bool {
    // SAFETY: in the entry, which is this thread's.
    let names = unsafe { core::slice::from_raw_parts(entry.names.as_ptr().cast::<u8>(), NAMES) };
    let mut names = names.split(|byte| *byte == 0);
    let above = |name: &[u8]| name.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let (Some(old), Some(new)) = (names.next(), names.next()) else { return false };
    // Not by ==, which calls the libc that the program may not have.
    let same = above(old) == above(new) && old[..above(old)].iter().zip(new).all(|(one, other)| one == other);
    if directory as i32 != other as i32 || !same {
        return false;
    }
    // struct stat: the mode is in the second half of the fourth word.
    let mut facts = [0u64; 18];
    // SAFETY: the program's own name, and room for what the kernel writes.
    match unsafe { unstopped(SYS_FSTATAT, [directory, from, &raw mut facts as u64, AT_SYMLINK_NOFOLLOW, 0, 0]) } {
        0 => facts[3] as u32 & 0o170_000 != 0o040_000,
        error => error == NOT_THERE,
    }
}

/// Copies what the program has at an address, as far as it is there.
unsafe fn copy(process: u64, from: u64, to: *mut u8, most: usize) -> usize {
    let in_page = most.min(4096 - (from as usize & 4095));
    let local = [to as usize, most];
    let remote = [[from as usize, in_page], [(from as usize).wrapping_add(in_page), most - in_page]];
    // SAFETY: the kernel checks the addresses.
    let got = unsafe { system_call(310, [process, &raw const local as u64, 1, &raw const remote as u64, 2, 0]) };
    got.max(0) as usize
}

/// Whether the program has so many bytes at an address. libc's function reads them itself, and a program that has not gets a signal.
fn is_there(from: u64, bytes: usize) -> bool {
    let mut there = [0u8; 32];
    // SAFETY: there is room for no more.
    let got = |own: &Own| unsafe { copy(own.process.load(Relaxed), from, there.as_mut_ptr(), bytes.min(there.len())) };
    from == 0 || own().map(got) == Some(bytes)
}

/// Names behind each other. `None` if they are not all there, or of something that may wait: a descriptor, a terminal.
unsafe fn copy_names(process: u64, entry: &Entry, way: u64, arguments: &Six) -> Option<()> {
    let to = entry.names.as_ptr() as *mut u8;
    let mut used = 0;
    for (bit, &from) in NAME.iter().zip(arguments) {
        if way & bit == 0 || from == 0 {
            continue;
        }
        // SAFETY: in the entry, which is this thread's.
        let got = unsafe { core::slice::from_raw_parts(to.add(used), copy(process, from, to.add(used), NAMES - used)) };
        let length = got.iter().position(|byte| *byte == 0)?;
        let never_waits = |name: &&[u8]| got.starts_with(name);
        if got.starts_with(b"/proc") || got.starts_with(b"/dev") && !NEVER_WAIT.iter().any(never_waits) {
            return None;
        }
        used += length + 1;
    }
    if way & POINTS != 0 {
        let most = if way & NAME[1] != 0 { VALUE } else { LOCK } as usize;
        if way & NAME[1] != 0 && arguments[3] != VALUE {
            return Some(());
        }
        // SAFETY: as above.
        if NAMES - used < most || unsafe { copy(process, arguments[2], to.add(used), most) } != most {
            return None;
        }
    }
    Some(())
}

/// Makes a call without a stop, if it can.
unsafe fn kept(number: u64, way: u64, arguments: Six) -> Option<i64> {
    let own = own()?;
    // SAFETY: mapped as long as it is here.
    let Some(shared) = (unsafe { own.shared.load(Acquire).as_ref() }) else {
        // SAFETY: after its beginning.
        unsafe { set_up(own) };
        return None;
    };
    // A signal's handler may fork here, and the child returns with memory that is its parent's.
    let process = own.process.load(Relaxed);
    let is_parents = || own.process.load(Relaxed) != process;
    if process == 0 {
        return None;
    }
    // To close what may wait is to wait for no other thread of the program.
    let is_there = way & (FD | CLOSES) != FD || is_known(shared, arguments[0]) || way & HERE != 0 && arguments[0] as i32 == AT_FDCWD as i32;
    if !is_there || way & OTHER != 0 && !is_known(shared, arguments[2]) {
        return None;
    }
    let ring = ring(shared)?;
    let taken = ring.taken.load(Relaxed);
    if ring.busy.load(Relaxed) != 0 || taken >= ring.limit.load(Acquire) {
        return None;
    }
    let known = known(shared, arguments[0]);
    if matches!(number, SYS_READ | SYS_WRITE) && matches!(known, PIPE | EVENTS) {
        // SAFETY: the program's own arguments.
        return unsafe { at_once(number, known, arguments) };
    }
    ring.busy.store(1, Relaxed);
    compiler_fence(SeqCst);
    let entered_ns = now();
    let entry = &ring.entries[taken as usize % ROOM];
    // SAFETY: this thread's own, and the program's arguments.
    let fits = unsafe { copy_names(process, entry, way, &arguments).is_some() && (way & RENAMES == 0 || stays(entry, arguments)) };
    if is_parents() {
        return None;
    }
    if !fits {
        ring.busy.store(0, Relaxed);
        return None;
    }
    if let Some(known) = shared.known.get(arguments[0] as u32 as usize).filter(|_| way & CLOSES != 0) {
        known.store(0, Relaxed);
    }
    entry.number.store(number, Relaxed);
    entry.way.store(way, Relaxed);
    entry.arguments.iter().zip(arguments).for_each(|(to, from)| to.store(from, Relaxed));
    entry.times_ns[0].store(entered_ns, Relaxed);
    entry.times_ns[1].store(now(), Relaxed);
    entry.state.store(BEGUN, Release);
    ring.taken.store(taken + 1, Release);
    // SAFETY: the program's own call.
    let result = unsafe { unstopped(number, arguments) };
    if is_parents() {
        return Some(result);
    }
    entry.result.store(result as u64, Relaxed);
    let end_ns = now();
    entry.times_ns[2].store(end_ns, Relaxed);
    let mut left_ns = end_ns;
    let mut is_file = false;
    if way & OPENS != 0 && result >= 0 {
        // What has no position is no file, and to read it may be to wait; what is only a path is not read.
        let seek_here = 1;
        // SAFETY: a plain call.
        is_file = arguments[2] & O_PATH != 0 || unsafe { unstopped(8, [result as u64, 0, seek_here, 0, 0, 0]) } >= 0;
        left_ns = now();
    }
    entry.times_ns[3].store(left_ns, Relaxed);
    entry.state.store(ENDED, Release);
    if let Some(known) = shared.known.get(result as usize).filter(|_| is_file) {
        known.store(1, Release);
    }
    compiler_fence(SeqCst);
    ring.busy.store(0, Relaxed);
    Some(result)
}

/// As libc's functions return it.
unsafe fn returned(result: i64) -> i64 {
    if (-4095..0).contains(&result) {
        if has(__errno_location as *const ()) {
            // SAFETY: libc's own, valid for the calling thread.
            unsafe { *__errno_location() = -result as i32 };
        }
        return -1;
    }
    result
}

/// libc's function, or where it cannot be found (a glibc before 2.34 without libdl) its call.
unsafe fn of_libc(real: &AtomicUsize, number: u64, plain: Option<Six>, all: Six) -> i64 {
    let [a, b, c, d, e, f] = all;
    let real = real.load(Relaxed) & !OTHERS;
    if real == 0 {
        // SAFETY: the program's own call.
        let result = unsafe {
            match (plain, number) {
                (Some(arguments), _) => system_call(number, arguments),
                (None, SYS_IOCTL | SYS_FCNTL | SYS_COPY_FILE_RANGE) => system_call(number, all),
                _ => NOT_SUPPORTED,
            }
        };
        // SAFETY: a thread of a program with libc.
        return if number == SYS_FADVISE { -result } else { unsafe { returned(result) } };
    }
    // SAFETY: the function of this name, with the program's arguments; those that it does not have are ignored.
    unsafe { transmute::<usize, extern "C" fn(u64, u64, u64, u64, u64, u64) -> i64>(real)(a, b, c, d, e, f) }
}

/// Each function of libc: its arguments, and the call that it makes, if it is to be kept.
macro_rules! functions {
    ($($($name:ident)+ ($($argument:ident),*) $(if $condition:expr)? => $way:expr, $number:literal $values:tt;)+) => {
        #[allow(non_upper_case_globals)]
        mod real { $($(pub static $name: super::AtomicUsize = super::AtomicUsize::new(0);)+)+ }

        fn resolve(find: impl Fn(&[u8]) -> usize) {
            $($(real::$name.store(find(concat!(stringify!($name), "\0").as_bytes()), Relaxed);)+)+
        }

        $(functions!(@each [$($name)+] ($($argument),*) [$($condition)?] $way, $number $values);)+
    };
    (@each [$($name:ident)+] $arguments:tt $condition:tt $way:expr, $number:literal $values:tt) => {
        $(functions!(@one $name $arguments $condition $way, $number $values);)+
    };
    (@one $name:ident ($($argument:ident),*) [$($condition:expr)?] $way:expr, $number:literal [$($value:expr),*]) => {
        /// # Safety
        /// As in libc.
        #[unsafe(no_mangle)]
        #[allow(unused_variables)]
        pub unsafe extern "C" fn $name(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> i64 {
            let all: Six = [a, b, c, d, e, f];
            let [$($argument,)* ..] = all;
            let mut arguments: Six = [0; 6];
            arguments.iter_mut().zip([$($value),*]).for_each(|(to, from)| *to = from);
            // SAFETY: the program's own call.
            unsafe {
                if real::$name.load(Relaxed) & OTHERS != 0 $(|| !($condition))? {
                    return of_libc(&real::$name, $number, None, all);
                }
                match kept($number, $way, arguments) {
                    // posix_fadvise returns its error.
                    Some(result) if $number == SYS_FADVISE => -result,
                    Some(result) => returned(result),
                    None => of_libc(&real::$name, $number, Some(arguments), all),
                }
            }
        }
    };
}

fn creates(flags: u64) -> bool {
    flags & O_CREAT != 0 || flags & O_TMPFILE == O_TMPFILE
}

fn mode(flags: u64, mode: u64) -> u64 {
    if creates(flags) { mode } else { 0 }
}

functions! {
    read(fd, to, length) => FD, 0 [fd, to, length];
    __read_chk(fd, to, length, room) if length <= room => FD, 0 [fd, to, length];
    write(fd, from, length) => FD, 1 [fd, from, length];
    pread pread64(fd, to, length, offset) => FD, 17 [fd, to, length, offset];
    __pread_chk __pread64_chk(fd, to, length, offset, room) if length <= room => FD, 17 [fd, to, length, offset];
    pwrite pwrite64(fd, from, length, offset) => FD, 18 [fd, from, length, offset];
    open open64(name, flags, given) => AT | OPENS, 257 [AT_FDCWD, name, flags, mode(flags, given)];
    __open_2 __open64_2(name, flags) if !creates(flags) => AT | OPENS, 257 [AT_FDCWD, name, flags];
    openat openat64(directory, name, flags, given) => AT | OPENS, 257 [directory, name, flags, mode(flags, given)];
    __openat_2 __openat64_2(directory, name, flags) if !creates(flags) => AT | OPENS, 257 [directory, name, flags];
    creat creat64(name, given) => AT | OPENS, 257 [AT_FDCWD, name, 0o1101, given];
    close(fd) => FD | CLOSES, 3 [fd];
    lseek lseek64(fd, offset, whence) => FD, 8 [fd, offset, whence];
    fsync(fd) => FD, 74 [fd];
    fdatasync(fd) => FD, 75 [fd];
    sync_file_range(fd, offset, length, flags) => FD, 277 [fd, offset, length, flags];
    truncate truncate64(name, length) => NAME[0], 76 [name, length];
    ftruncate ftruncate64(fd, length) => FD, 77 [fd, length];
    fallocate fallocate64(fd, how, offset, length) => FD, 285 [fd, how, offset, length];
    posix_fadvise posix_fadvise64(fd, offset, length, advice) => FD, 221 [fd, offset, length, advice];
    ioctl(fd, request, other) if request as u32 as u64 == FICLONE => FD | OTHER, 16 [fd, request, other];
    fcntl fcntl64(fd, command, lock) if command as u32 as u64 == F_SETLK => FD | POINTS, 72 [fd, command, lock];
    copy_file_range(from, at, to, to_at, length, flags) if at == 0 && to_at == 0 => FD | OTHER, 326 [from, 0, to, 0, length, flags];
    stat stat64(name, to) => AT, 262 [AT_FDCWD, name, to, 0];
    lstat lstat64(name, to) => AT, 262 [AT_FDCWD, name, to, AT_SYMLINK_NOFOLLOW];
    fstat fstat64(fd, to) => FD, 5 [fd, to];
    fstatat fstatat64(directory, name, to, flags) => AT, 262 [directory, name, to, flags];
    __xstat __xstat64(version, name, to) if version as u32 == 1 => AT, 262 [AT_FDCWD, name, to, 0];
    __lxstat __lxstat64(version, name, to) if version as u32 == 1 => AT, 262 [AT_FDCWD, name, to, AT_SYMLINK_NOFOLLOW];
    __fxstat __fxstat64(version, fd, to) if version as u32 == 1 => FD, 5 [fd, to];
    __fxstatat __fxstatat64(version, directory, name, to, flags) if version as u32 == 1 => AT, 262 [directory, name, to, flags];
    statx(directory, name, flags, mask, to) => AT, 332 [directory, name, flags, mask, to];
    statfs statfs64(name, to) => NAME[0], 137 [name, to];
    fstatfs fstatfs64(fd, to) => FD, 138 [fd, to];
    access(name, rights) => NAME[0], 21 [name, rights];
    faccessat(directory, name, rights, flags) if flags as u32 == 0 => AT, 269 [directory, name, rights];
    mkdir(name, given) => NAME[0], 83 [name, given];
    mkdirat(directory, name, given) => AT, 258 [directory, name, given];
    rmdir(name) => NAME[0], 84 [name];
    rename(old, new) => HERE | NAME[1] | NAME[3] | RENAMES, 264 [AT_FDCWD, old, AT_FDCWD, new];
    renameat(from, old, to, new) => AT | NAME[3] | RENAMES, 264 [from, old, to, new];
    renameat2(from, old, to, new, flags) if flags as u32 as u64 & !RENAME_NOREPLACE == 0 => AT | NAME[3] | RENAMES, 316 [from, old, to, new, flags];
    unlink(name) => NAME[0], 87 [name];
    unlinkat(directory, name, flags) => AT, 263 [directory, name, flags];
    symlink(target, name) => NAME[0] | NAME[1], 88 [target, name];
    readlink(name, to, length) => NAME[0], 89 [name, to, length];
    __readlink_chk(name, to, length, room) if length <= room => NAME[0], 89 [name, to, length];
    readlinkat(directory, name, to, length) => AT, 267 [directory, name, to, length];
    chmod(name, given) => NAME[0], 90 [name, given];
    fchmod(fd, given) => FD, 91 [fd, given];
    fchmodat(directory, name, given, flags) if flags as u32 == 0 => AT, 268 [directory, name, given];
    chown(name, user, group) => NAME[0], 92 [name, user, group];
    fchown(fd, user, group) => FD, 93 [fd, user, group];
    lchown(name, user, group) => NAME[0], 94 [name, user, group];
    fchownat(directory, name, user, group, flags) => AT, 260 [directory, name, user, group, flags];
    utimensat(directory, name, times, flags) if name != 0 => AT, 280 [directory, name, times, flags];
    utimes(name, times) if is_there(times, 32) => NAME[0], 235 [name, times];
    utime(name, times) if is_there(times, 16) => NAME[0], 132 [name, times];
    futimens(fd, times) if (fd as i32) >= 0 => AT, 280 [fd, 0, times, 0];
    getdents64(fd, to, length) => FD, 217 [fd, to, length];
    fgetxattr(fd, name, to, length) => FD | NAME[1], 193 [fd, name, to, length];
    fsetxattr(fd, name, value, length, flags) => FD | NAME[1] | POINTS, 190 [fd, name, value, length, flags];
    flistxattr(fd, to, length) => FD, 196 [fd, to, length];
    getxattr(file, name, to, length) => NAME[0] | NAME[1], 191 [file, name, to, length];
    lgetxattr(file, name, to, length) => NAME[0] | NAME[1], 192 [file, name, to, length];
    listxattr(file, to, length) => NAME[0], 194 [file, to, length];
    llistxattr(file, to, length) => NAME[0], 195 [file, to, length];
}

/// # Safety
/// As in libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cancel(thread: u64) -> i32 {
    // From now on all calls are libc's, which a thread may be cancelled in.
    if let Some(own) = own() {
        own.invited.store(OVER, Relaxed);
        own.shared.store(null_mut(), Release);
    }
    // SAFETY: the next library's function of this name.
    unsafe {
        transmute::<usize, extern "C" fn(u64) -> i32>(next(b"pthread_cancel\0"))(thread)
    }
}

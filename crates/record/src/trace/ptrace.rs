//! Calls to the kernel of a tracer: ptrace(2), process_vm_readv(2), waitpid(2), and the start of the program.

#![expect(unsafe_code, reason = "ptrace(2) and fork(2) have no safe wrappers")]

use libc::{c_long, c_uint, c_void, pid_t, sock_filter};
use std::ffi::CString;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const OPTIONS: i32 = libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_EXITKILL;

pub(super) const EVENT_STOP: i32 = 128;

/// A thread that is stopped, or the reason why it no longer is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stop {
    pub(super) thread: pid_t,
    pub(super) status: i32,
}

impl Stop {
    /// It was interrupted, or has just been made.
    pub(super) fn is_interruption(&self) -> bool {
        self.status >> 8 == libc::SIGTRAP | EVENT_STOP << 8
    }
}

fn request(request: c_uint, thread: pid_t, address: usize, data: usize) -> io::Result<c_long> {
    // SAFETY: the callers give addresses that the request may write to; a thread that is not a stopped tracee is an error.
    let result = unsafe { libc::ptrace(request, thread, address as *mut c_void, data as *mut c_void) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// How a stopped thread goes on. One that was killed meanwhile is reported by the next wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resume {
    ToNextStop,
    /// Stops when the call that it is in returns.
    ToCallsEnd,
    /// A stop of job control goes on.
    Listening,
}

pub(super) fn resume(thread: pid_t, how: Resume, signal: i32) {
    let word = match how {
        Resume::ToNextStop => libc::PTRACE_CONT,
        Resume::ToCallsEnd => libc::PTRACE_SYSCALL,
        Resume::Listening => libc::PTRACE_LISTEN,
    };
    let _ = request(word, thread, 0, signal as usize);
}

/// A stopped thread stops again when it goes on, before it has done anything. Not where a call begins, which would be interrupted.
pub(super) fn interrupt(thread: pid_t) {
    let _ = request(libc::PTRACE_INTERRUPT, thread, 0, 0);
}

/// The call that a thread has stopped before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Called {
    pub(super) number: u64,
    pub(super) arguments: [u64; 6],
    /// Of another architecture.
    pub(super) foreign: bool,
}

pub(super) fn call(thread: pid_t) -> Option<Called> {
    let info = info(thread)?;
    let foreign = info.arch != super::decode::ARCHITECTURE;
    // SAFETY: `op` says which member of the union the kernel filled; all are integers.
    let (seccomp, entry) = unsafe { (info.u.seccomp, info.u.entry) };
    match info.op {
        libc::PTRACE_SYSCALL_INFO_SECCOMP => Some(Called { number: seccomp.nr, arguments: seccomp.args, foreign }),
        libc::PTRACE_SYSCALL_INFO_ENTRY => Some(Called { number: entry.nr, arguments: entry.args, foreign }),
        _ => None,
    }
}

/// Traces all threads of a process that runs, and stops them. It goes on without a tracer when this one ends, however it does.
///
/// # Errors
/// Those of ptrace(2).
pub(super) fn attach(process: pid_t) -> io::Result<Vec<pid_t>> {
    let mut threads = Vec::new();
    loop {
        let before = threads.len();
        let tasks = std::fs::read_dir(format!("/proc/{process}/task"))?.flatten();
        for thread in tasks.filter_map(|task| task.file_name().to_str()?.parse::<pid_t>().ok()) {
            if threads.contains(&thread) {
                continue;
            }
            match request(libc::PTRACE_SEIZE, thread, 0, (OPTIONS & !libc::PTRACE_O_EXITKILL) as usize) {
                Ok(_) => threads.push(thread),
                // A thread that is gone.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) && thread != process => continue,
                Err(error) => return Err(error),
            }
            request(libc::PTRACE_INTERRUPT, thread, 0, 0)?;
        }
        if threads.len() == before {
            return Ok(threads);
        }
    }
}

/// What the call that a thread was in has returned, a negative errno if it failed.
pub(super) fn result(thread: pid_t) -> Option<i64> {
    let info = info(thread)?;
    let is_after = info.op == libc::PTRACE_SYSCALL_INFO_EXIT;
    // SAFETY: as above.
    let exit = unsafe { info.u.exit };
    is_after.then_some(exit.sval)
}

/// Whether a signal is about to be handled by a stopped thread that neither a timer nor the kernel itself has sent.
pub(super) fn has_signal_of_others(thread: pid_t) -> bool {
    const MOST: usize = 16;
    let status = proc_text(&format!("/proc/{thread}/status")).unwrap_or_default();
    let [caught, blocked] = ["SigCgt:\t", "SigBlk:\t"].map(|key| {
        let mask = status.lines().find_map(|line| line.strip_prefix(key));
        mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0)
    });
    [0, libc::PTRACE_PEEKSIGINFO_SHARED].into_iter().any(|flags| {
        let wanted = libc::ptrace_peeksiginfo_args { off: 0, flags, nr: MOST as i32 };
        // SAFETY: integers, of which zero is a value.
        let mut found: [libc::siginfo_t; MOST] = unsafe { std::mem::zeroed() };
        let got = request(libc::PTRACE_PEEKSIGINFO, thread, &raw const wanted as usize, found.as_mut_ptr() as usize);
        let got = got.map_or(0, |got| got as usize);
        let is_of_others = |info: &libc::siginfo_t| match info.si_code {
            libc::SI_USER | libc::SI_TKILL | libc::SI_QUEUE => true,
            _ => info.si_signo == libc::SIGCHLD,
        };
        let is_handled = |info: &libc::siginfo_t| (caught & !blocked) >> (info.si_signo - 1) & 1 == 1;
        found[..got].iter().any(|info| is_handled(info) && is_of_others(info))
    })
}

/// Writes to a program's memory, whatever the program may do with it.
pub(super) fn write(thread: pid_t, address: u64, bytes: &[u8]) -> Option<()> {
    let memory = std::fs::OpenOptions::new().write(true).open(format!("/proc/{thread}/mem")).ok()?;
    std::os::unix::fs::FileExt::write_all_at(&memory, bytes, address).ok()
}

#[cfg(target_arch = "x86_64")]
fn registers(thread: pid_t) -> Option<libc::user_regs_struct> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
    request(libc::PTRACE_GETREGS, thread, 0, registers.as_mut_ptr() as usize).ok()?;
    // SAFETY: integers, which the kernel has filled.
    Some(unsafe { registers.assume_init() })
}

#[cfg(target_arch = "x86_64")]
fn set_registers(thread: pid_t, registers: &libc::user_regs_struct) -> Option<()> {
    request(libc::PTRACE_SETREGS, thread, 0, ptr::from_ref(registers) as usize).ok().map(drop)
}

/// What tells a thread of a process from the others, while it has stopped.
#[cfg(target_arch = "x86_64")]
pub(super) fn thread_pointer(thread: pid_t) -> Option<u64> {
    registers(thread).map(|registers| registers.fs_base)
}

/// Where a program has a variable that it did not have: its place in the list, and its text.
pub(super) type Variable = (u64, u64);

/// Adds a variable to the environment of a program that has not run yet, behind a value that it has and a colon. `None` if the program
/// loads no libraries, or none that are named there, or one that must be the first, or is none of this architecture.
///
/// What begins at the stack pointer moves down: the arguments, the environment and the auxiliary vector, with two more entries for the
/// new variable, and its text where the vector ended.
#[cfg(target_arch = "x86_64")]
pub(super) fn add_variable(thread: pid_t, name: &str, value: &str) -> Option<Variable> {
    const CODE_64_BITS: u64 = 0x33;
    const MOST_BYTES: usize = 1 << 20;
    const AT_PHDR: u64 = 3;
    const AT_PHNUM: u64 = 5;
    const AT_BASE: u64 = 7;
    const AT_SECURE: u64 = 23;
    let registers = registers(thread).filter(|registers| registers.cs == CODE_64_BITS)?;
    let mut bytes = vec![0; 1 << 12];
    let (words, end_of_environment, end) = loop {
        let got = read(thread, registers.rsp, &mut bytes);
        let words: Vec<u64> =
            bytes[..got].chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes"))).collect();
        let ends = || {
            let first = usize::try_from(*words.first()?).ok()?.checked_add(2)?;
            let last = first + words.get(first..)?.iter().position(|word| *word == 0)?;
            let pairs = words[last + 1..].chunks_exact(2).position(|pair| pair[0] == 0)?;
            Some((last, last + 1 + 2 * (pairs + 1)))
        };
        match ends() {
            Some((last, end)) => break (words, last, end),
            None if bytes.len() < MOST_BYTES => bytes.resize(2 * bytes.len(), 0),
            None => return None,
        }
    };
    let vector = words[end_of_environment + 1..end].chunks_exact(2);
    let has = |key: u64| vector.clone().any(|pair| pair[0] == key && pair[1] != 0);
    let value_of = |key: u64| vector.clone().find_map(|pair| (pair[0] == key).then_some(pair[1]));
    // The run-time of gcc's address sanitizer ends programs in which another library is before it.
    if !has(AT_BASE) || has(AT_SECURE) || needs_library(thread, value_of(AT_PHDR)?, value_of(AT_PHNUM)?, b"libasan.so")?
    {
        return None;
    }
    let environment = &words[words[0] as usize + 2..end_of_environment];
    let name = format!("{name}=");
    let theirs = match (environment.first(), environment.last()) {
        // The kernel has put them one after the other.
        (Some(first), Some(last)) => {
            let mut strings = vec![0; usize::try_from(last.checked_sub(*first)?).ok()?.min(MOST_BYTES) + 4096];
            let got = read(thread, *first, &mut strings);
            strings.truncate(got);
            strings.split(|byte| *byte == 0).find_map(|one| one.strip_prefix(name.as_bytes()).map(<[u8]>::to_vec))
        }
        _ => None,
    };
    let before = theirs.map(|theirs| [&theirs, &b":"[..]].concat()).unwrap_or_default();
    let mut text = [name.as_bytes(), &before, value.as_bytes()].concat();
    text.resize(text.len() / 16 * 16 + 16, 0);
    let rsp = registers.rsp - 16 - text.len() as u64;
    let at = rsp + 8 * (end as u64 + 2);
    let [before, behind] = [&words[..end_of_environment], &words[end_of_environment..end]];
    let mut moved: Vec<u8> = [before, &[at, at], behind].concat().into_iter().flat_map(u64::to_ne_bytes).collect();
    moved.extend(text);
    write(thread, rsp, &moved)?;
    set_registers(thread, &libc::user_regs_struct { rsp, ..registers })?;
    Some((rsp + 8 * end_of_environment as u64, at))
}

/// Whether a program is linked with a library whose name begins so.
#[cfg(target_arch = "x86_64")]
fn needs_library(thread: pid_t, headers: u64, count: u64, name: &[u8]) -> Option<bool> {
    const MOST_BYTES: u64 = 1 << 16;
    const DT_NEEDED: u64 = 1;
    const DT_STRTAB: u64 = 5;
    let words = |at: u64, bytes: u64| {
        let mut there = vec![0; bytes.min(MOST_BYTES) as usize];
        let got = read(thread, at, &mut there);
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
        there[..got].chunks_exact(8).map(word).collect::<Vec<_>>()
    };
    // Type and flags, offset, address; and the size in memory as the sixth.
    let table = words(headers, 56 * count);
    let of = |kind: u32| table.chunks_exact(7).find(|one| one[0] as u32 == kind);
    let moved_by = of(libc::PT_PHDR).map_or(0, |own| headers.wrapping_sub(own[2]));
    let dynamic = of(libc::PT_DYNAMIC)?;
    let entries = words(moved_by.wrapping_add(dynamic[2]), dynamic[5]);
    let values = |key: u64| entries.chunks_exact(2).filter(move |pair| pair[0] == key).map(|pair| pair[1]);
    let names = moved_by.wrapping_add(values(DT_STRTAB).next()?);
    let mut there = vec![0; name.len()];
    let is_it = |offset: u64| read(thread, names.wrapping_add(offset), &mut there) == name.len() && there == name;
    Some(values(DT_NEEDED).any(is_it))
}

/// Takes it away: what it had in the list becomes an entry of the auxiliary vector that says nothing.
pub(super) fn remove_variable(thread: pid_t, (place, text): Variable) {
    const AT_IGNORE: u64 = 1;
    let bytes = |words: [u64; 3]| words.map(u64::to_ne_bytes).concat();
    let mut there = [0; 24];
    if read(thread, place, &mut there) == there.len() && there[..] == bytes([text, text, 0]) {
        write(thread, place, &bytes([0, AT_IGNORE, 0]));
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn thread_pointer(_: pid_t) -> Option<u64> {
    None
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn add_variable(_: pid_t, _: &str, _: &str) -> Option<Variable> {
    None
}

fn info(thread: pid_t) -> Option<libc::ptrace_syscall_info> {
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = size_of::<libc::ptrace_syscall_info>();
    request(libc::PTRACE_GET_SYSCALL_INFO, thread, size, info.as_mut_ptr() as usize).ok()?;
    // SAFETY: zeroed, of integers alone, and filled as far as the kernel knows it.
    Some(unsafe { info.assume_init() })
}

pub(super) fn message(thread: pid_t) -> Option<u64> {
    let mut message: u64 = 0;
    request(libc::PTRACE_GETEVENTMSG, thread, 0, &raw mut message as usize).ok()?;
    Some(message)
}

/// Reads up to as many bytes as there is room for; what is there ends at a page that is not mapped.
pub(super) fn read(thread: pid_t, address: u64, buffer: &mut [u8]) -> usize {
    // Up to the end of the page, and then the rest: a string may be the last in its mapping.
    let first = (4096 - (address as usize & 4095)).min(buffer.len());
    let mut remote = [
        libc::iovec { iov_base: address as *mut c_void, iov_len: first },
        libc::iovec { iov_base: (address as usize).wrapping_add(first) as *mut c_void, iov_len: buffer.len() - first },
    ];
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: the kernel writes only into `buffer`, and checks the other addresses.
    let got = unsafe { libc::process_vm_readv(thread, &raw const local, 1, remote.as_mut_ptr(), 2, 0) };
    usize::try_from(got).unwrap_or(0)
}

/// What a wait came to.
pub(super) enum Waited {
    Stop(Stop),
    /// A signal came, or nothing has stopped and the wait was not to block.
    Nothing,
    NoneLeft,
}

/// Waits for any thread to stop or end, or only looks whether one has.
pub(super) fn wait(block: bool) -> Waited {
    let mut status = 0;
    let options = libc::__WALL | if block { 0 } else { libc::WNOHANG };
    // SAFETY: a plain call.
    match unsafe { libc::waitpid(-1, &raw mut status, options) } {
        0 => Waited::Nothing,
        thread if thread > 0 => Waited::Stop(Stop { thread, status }),
        _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Waited::Nothing,
        _ => Waited::NoneLeft,
    }
}

/// Whether threads are traced that have not stopped yet: of processes that were killed while they forked.
pub(super) fn has_tracees() -> bool {
    // SAFETY: integers, of which zero is a value; the kernel writes to it alone.
    let has_children = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        libc::waitid(libc::P_ALL, 0, &raw mut info, options) == 0
    };
    // Children may be of another program that this process was before.
    let own = format!("TracerPid:\t{}\n", rustix::thread::gettid());
    let traced = |entry: std::fs::DirEntry| {
        let text = proc_text(&format!("{}/status", entry.path().display()));
        text.is_some_and(|text| text.contains(&own))
    };
    has_children && std::fs::read_dir("/proc").into_iter().flatten().flatten().any(traced)
}

/// Interrupts the waits of the thread that made it, again and again, until it is dropped: SIGALRM, which nothing else here uses.
pub(super) struct Ticks(libc::timer_t);

impl Ticks {
    /// # Errors
    /// Those of timer_create(2).
    pub(super) fn every(nanoseconds: i64) -> io::Result<Self> {
        extern "C" fn ignore(_: libc::c_int) {}
        let moment = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
        let times = libc::itimerspec { it_interval: moment, it_value: moment };
        // SAFETY: structures of integers, of which zero is a value; the handler does nothing, and without SA_RESTART calls are interrupted.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = ignore as extern "C" fn(libc::c_int) as usize;
            let mut event: libc::sigevent = std::mem::zeroed();
            (event.sigev_notify, event.sigev_signo) = (libc::SIGEV_THREAD_ID, libc::SIGALRM);
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer = std::mem::zeroed();
            if libc::sigaction(libc::SIGALRM, &raw const action, ptr::null_mut()) != 0
                || libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) != 0
            {
                return Err(io::Error::last_os_error());
            }
            let ticks = Self(timer);
            let set = libc::timer_settime(timer, 0, &raw const times, ptr::null_mut());
            if set == 0 { Ok(ticks) } else { Err(io::Error::last_os_error()) }
        }
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        // SAFETY: it was made, and is deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Whether a clock shows the same to all processes, as those of processors' time do not: these have numbers of their own, or negative ones.
pub(super) fn is_for_all(clock: libc::clockid_t) -> bool {
    clock >= 0 && ![libc::CLOCK_PROCESS_CPUTIME_ID, libc::CLOCK_THREAD_CPUTIME_ID].contains(&clock)
}

/// What a clock shows, in ns; of one that is not there the end of all times.
pub(super) fn clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to `time` alone.
    let got = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if got == 0 { time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64 } else { u64::MAX }
}

/// How much of something a process may have; nothing if that cannot be known.
pub(super) fn limit(process: pid_t, of: libc::__rlimit_resource_t) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes to `limit` alone.
    let got = unsafe { libc::prlimit(process, of, ptr::null(), &raw mut limit) };
    if got == 0 { limit.rlim_cur } else { 0 }
}

/// Sends a signal to the process of a thread.
pub(super) fn send(thread: pid_t, signal: i32) {
    // SAFETY: a plain call; a traced thread keeps its number until it was waited for.
    unsafe { libc::kill(thread, signal) };
}

/// A bit for each signal. Rust's run-time ignores SIGPIPE before `main`, and this program handles others.
static IGNORED: AtomicU64 = AtomicU64::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_AT_SIGNALS: extern "C" fn() = {
    extern "C" fn look() {
        let is_ignored = |signal: &i32| {
            // SAFETY: integers, of which zero is a value; the kernel writes to them alone.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(*signal, ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
            }
        };
        IGNORED.store((1..=64).filter(is_ignored).fold(0, |all, signal| all | 1 << (signal - 1)), Relaxed);
    }
    look
};

/// Whether this program was started with a signal ignored.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    IGNORED.load(Relaxed) >> (signal - 1) & 1 == 1
}

/// What a traced process is to do.
pub(super) enum Task<'a> {
    Run(&'a [CString]),
    /// So many calls that find nothing, to measure what recording costs.
    Idle(u32),
}

/// A name has to be read from the program's memory and looked up, and what that leaves of the processor's caches is what a stop costs too.
pub(super) fn idle(calls: u32) {
    for _ in 0..calls {
        // SAFETY: the kernel reads the name, which ends with a zero.
        unsafe { libc::faccessat(libc::AT_FDCWD, c"fstone: no such file".as_ptr(), libc::F_OK, 0) };
    }
}

/// Starts a process that is traced from its beginning. It runs when the first stop is answered.
///
/// # Errors
/// Those of fork(2) and ptrace(2).
pub(super) fn start(task: &Task<'_>, filter: &[sock_filter]) -> io::Result<pid_t> {
    let (ready, go) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let words = match task {
        Task::Run(words) => words.iter().map(|word| word.as_ptr()).chain([ptr::null()]).collect(),
        Task::Idle(_) => Vec::new(),
    };
    // SAFETY: the child makes only calls that are safe after a fork of a process with threads.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    if child == 0 {
        // SAFETY: as above; the buffers were made before.
        unsafe {
            libc::close(go.as_raw_fd());
            let mut byte = 0u8;
            if libc::read(ready.as_raw_fd(), (&raw mut byte).cast(), 1) != 1 || !bind(filter) {
                libc::_exit(126);
            }
            match task {
                Task::Idle(calls) => idle(*calls),
                Task::Run(_) => {
                    libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                    for signal in (1..=64).filter(|signal| is_ignored(*signal)) {
                        libc::signal(signal, libc::SIG_IGN);
                    }
                    libc::execvp(words[0], words.as_ptr());
                    libc::_exit(127);
                }
            }
            libc::_exit(0);
        }
    }
    drop(ready);
    let seized = request(libc::PTRACE_SEIZE, child, 0, OPTIONS as usize);
    if seized.is_ok() {
        rustix::io::write(&go, &[1])?;
    }
    // Without its byte the child ends.
    drop(go);
    if let Err(error) = seized {
        // SAFETY: a child of this function's.
        unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
        return Err(error);
    }
    Ok(child)
}

/// # Safety
/// Async-signal-safe: for the child of a fork.
unsafe fn bind(program: &[sock_filter]) -> bool {
    let described = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program, which lives as long as the call.
    unsafe {
        let set = || libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const described) == 0;
        // Without the capability for it, a filter is only for programs that gain no rights by exec.
        set() || (libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && set())
    }
}

/// A text file below /proc, which may be gone.
pub(super) fn proc_text(path: &str) -> Option<String> {
    // As much as most of them have.
    let mut text = String::with_capacity(4096);
    std::fs::File::open(path).ok()?.take(1 << 16).read_to_string(&mut text).ok()?;
    Some(text)
}

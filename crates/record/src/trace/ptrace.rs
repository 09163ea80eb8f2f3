//! Calls to the kernel of a tracer: ptrace(2), process_vm_readv(2), waitpid(2), and the start of the program.

#![expect(unsafe_code, reason = "ptrace(2) and fork(2) have no safe wrappers")]

use libc::{c_long, c_uint, c_void, pid_t, sock_filter};
use std::ffi::CString;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr;

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

/// What the call that a thread was in has returned, a negative errno if it failed, and where it goes on.
pub(super) fn result(thread: pid_t) -> Option<(i64, u64)> {
    let info = info(thread)?;
    let is_after = info.op == libc::PTRACE_SYSCALL_INFO_EXIT;
    // SAFETY: as above.
    let exit = unsafe { info.u.exit };
    is_after.then_some((exit.sval, info.instruction_pointer))
}

/// Where a thread that has stopped goes on.
#[cfg(target_arch = "x86_64")]
pub(super) fn place(thread: pid_t) -> Option<u64> {
    info(thread).map(|info| info.instruction_pointer)
}

/// Writes to a program's memory, whatever the program may do with it.
#[cfg(target_arch = "x86_64")]
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

/// Has a thread that has stopped go on elsewhere.
#[cfg(target_arch = "x86_64")]
pub(super) fn go_to(thread: pid_t, address: u64) {
    if let Some(registers) = registers(thread) {
        set_registers(thread, &libc::user_regs_struct { rip: address, ..registers });
    }
}

/// Calls that a thread makes which has stopped at the end of one. It has its registers again when this is dropped.
#[cfg(target_arch = "x86_64")]
pub(super) struct Injected {
    thread: pid_t,
    registers: libc::user_regs_struct,
    /// The signals that it blocks. All are blocked meanwhile, so that none is lost.
    mask: u64,
}

// Of <linux/ptrace.h>.
#[cfg(target_arch = "x86_64")]
const PTRACE_GETSIGMASK: libc::c_uint = 0x420a;
#[cfg(target_arch = "x86_64")]
const PTRACE_SETSIGMASK: libc::c_uint = 0x420b;

#[cfg(target_arch = "x86_64")]
fn signal_mask(of: libc::c_uint, thread: pid_t, mask: &mut u64) -> Option<()> {
    request(of, thread, size_of::<u64>(), std::ptr::from_mut(mask) as usize).ok()?;
    Some(())
}

#[cfg(target_arch = "x86_64")]
impl Injected {
    /// `None` if it does not run 64-bit code, or made its call in another way.
    pub(super) fn new(thread: pid_t) -> Option<Self> {
        const CODE_64_BITS: u64 = 0x33;
        let registers = registers(thread)?;
        let mut before = [0; 2];
        let is_call = read(thread, registers.rip.wrapping_sub(2), &mut before) == 2 && before == [0x0f, 0x05];
        let mut mask = 0;
        signal_mask(PTRACE_GETSIGMASK, thread, &mut mask)?;
        if registers.cs != CODE_64_BITS || !is_call {
            return None;
        }
        let injected = Self { thread, registers, mask };
        let mut all = u64::MAX;
        signal_mask(PTRACE_SETSIGMASK, thread, &mut all)?;
        Some(injected)
    }

    /// So many bytes of the stack that the thread does not use.
    pub(super) fn below_stack(&self, length: u64) -> u64 {
        (self.registers.rsp - 256 - length) & !15
    }

    /// What the call has returned; `None` if the thread has ended.
    pub(super) fn make(&mut self, call: c_long, arguments: [u64; 6]) -> Option<i64> {
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        let rip = self.registers.rip - 2;
        let (rax, orig_rax) = (call as u64, u64::MAX);
        set_registers(
            self.thread,
            &libc::user_regs_struct { rip, rax, orig_rax, rdi, rsi, rdx, r10, r8, r9, ..self.registers },
        )?;
        loop {
            resume(self.thread, Resume::ToCallsEnd, 0);
            let mut status = 0;
            // SAFETY: plain calls; what the kernel writes to is there. Only a stop is taken: that the thread has ended the next wait is to find.
            let stopped = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let options = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::__WALL;
                while libc::waitid(libc::P_PID, self.thread as u32, &raw mut info, options) != 0 {
                    if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                        return None;
                    }
                }
                matches!(info.si_code, libc::CLD_TRAPPED | libc::CLD_STOPPED)
                    && libc::waitpid(self.thread, &raw mut status, libc::__WALL) == self.thread
            };
            if !stopped {
                return None;
            }
            if let Some((result, _)) = result(self.thread) {
                return Some(result);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Drop for Injected {
    fn drop(&mut self) {
        set_registers(self.thread, &self.registers);
        signal_mask(PTRACE_SETSIGMASK, self.thread, &mut self.mask);
    }
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

/// Sends a signal to the process of a thread.
pub(super) fn send(thread: pid_t, signal: i32) {
    // SAFETY: a plain call; a traced thread keeps its number until it was waited for.
    unsafe { libc::kill(thread, signal) };
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

/// Whether what is written to a place of a program's memory is written to nothing else: to no file, and to no other program's memory.
#[cfg(target_arch = "x86_64")]
pub(super) fn is_private(thread: pid_t, address: u64) -> bool {
    use std::io::BufRead;
    let Ok(maps) = std::fs::File::open(format!("/proc/{thread}/maps")) else { return false };
    let of = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let [from, to] = [from, to].map(|text| u64::from_str_radix(text, 16).ok());
        (from?..to?).contains(&address).then(|| rest.as_bytes().get(3) == Some(&b'p'))
    };
    let mut lines = std::io::BufReader::new(maps).lines().map_while(Result::ok);
    lines.find_map(|line| of(&line)).unwrap_or(false)
}

/// How many filters of seccomp(2) a process has.
#[cfg(target_arch = "x86_64")]
pub(super) fn filters(process: pid_t) -> Option<u32> {
    let status = proc_text(&format!("/proc/{process}/status"))?;
    status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"))?.trim().parse().ok()
}

/// A text file below /proc, which may be gone.
pub(super) fn proc_text(path: &str) -> Option<String> {
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(1 << 16).read_to_string(&mut text).ok()?;
    Some(text)
}

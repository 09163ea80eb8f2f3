//! The filter of seccomp(2) that stops a program at the calls of [`super::decode`] and at no others.

use super::decode::{ARCHITECTURE, FICLONE, FICLONERANGE, FUTEX_COMMAND, REQUESTS, decode};
use super::preload::{STUB, STUB_BYTES};
use libc::{BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter};

/// No architecture has larger numbers of calls yet.
const NUMBERS: u64 = 600;

const fn step(code: u32, yes: u8, no: u8, value: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: yes, jf: no, k: value }
}

const fn load(offset: u32) -> sock_filter {
    step(BPF_LD | BPF_W | BPF_ABS, 0, 0, offset)
}

const fn end_with(action: u32) -> sock_filter {
    step(BPF_RET | BPF_K, 0, 0, action)
}

const STOP: sock_filter = end_with(libc::SECCOMP_RET_TRACE);
const ALLOW: sock_filter = end_with(libc::SECCOMP_RET_ALLOW);

/// The call that asks for a thread's processors, and those that set them or need all of them (SCHED_DEADLINE).
pub(super) const PROCESSORS: [u64; 4] = [
    libc::SYS_sched_getaffinity as u64,
    libc::SYS_sched_setaffinity as u64,
    libc::SYS_sched_setscheduler as u64,
    libc::SYS_sched_setattr as u64,
];

/// They change what names are relative to, or the umask, or may.
pub(super) const DIRECTORIES: [u64; 6] = [
    libc::SYS_umask as u64,
    libc::SYS_chdir as u64,
    libc::SYS_fchdir as u64,
    libc::SYS_chroot as u64,
    libc::SYS_pivot_root as u64,
    libc::SYS_setns as u64,
];

/// They may make calls of the library end the program.
pub(super) const SANDBOXES: [u64; 2] = [libc::SYS_seccomp as u64, libc::SYS_prctl as u64];

/// After these a process records no calls itself.
pub(super) fn ends_keeping(number: u64, arguments: [u64; 6]) -> bool {
    match number as std::os::raw::c_long {
        libc::SYS_unshare => true,
        libc::SYS_close_range => arguments[2] as u32 & libc::CLOSE_RANGE_UNSHARE != 0,
        _ => SANDBOXES.contains(&number),
    }
}

/// Of fcntl(2).
const COMMANDS: [i32; 7] = [
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_SETFL,
    libc::F_SETLK,
    libc::F_SETLKW,
    libc::F_OFD_SETLK,
    libc::F_OFD_SETLKW,
];

const WAITS: [i32; 2] = [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET];

/// Of ioctl(2).
fn requests() -> impl Iterator<Item = u32> {
    [FICLONE, FICLONERANGE].into_iter().chain(REQUESTS)
}

/// Which argument of a wait is its time limit in milliseconds: 0 only looks.
fn limit(number: u64) -> Option<u32> {
    match number as std::os::raw::c_long {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => Some(2),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => Some(3),
        libc::SYS_epoll_pwait => Some(3),
        _ => None,
    }
}

/// Whether the filter would stop at a call that [`decode`] knows, for a program that stops at all of them.
pub(super) fn stops_at(number: u64, arguments: [u64; 6]) -> bool {
    let call = number as std::os::raw::c_long;
    if call == libc::SYS_futex && !WAITS.contains(&(arguments[1] as i32 & FUTEX_COMMAND)) {
        return false;
    }
    if let Some(index) = limit(number) {
        return arguments[index as usize] as i32 != 0;
    }
    match call {
        libc::SYS_fcntl => COMMANDS.contains(&(arguments[1] as i32)),
        libc::SYS_mmap => arguments[3] & libc::MAP_ANONYMOUS as u64 == 0,
        libc::SYS_ioctl => requests().any(|request| request == arguments[1] as u32),
        _ => true,
    }
}

/// Kernels since 5.11 know which calls are allowed whatever their arguments are, and do not run the filter for them.
pub(super) fn program() -> Vec<sock_filter> {
    let is = |value: u32, no: u8| step(BPF_JMP | BPF_JEQ | BPF_K, 0, no, value);
    let argument = |index: u32| load(16 + 8 * index);
    let mut program = vec![load(4), step(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCHITECTURE), STOP, load(0)];
    let limited = |index| vec![argument(index), is(0, 1), ALLOW, STOP];
    let others = [&PROCESSORS[..], &DIRECTORIES, &SANDBOXES].concat();
    for number in (0..NUMBERS).filter(|number| others.contains(number) || decode(*number, [0; 6]).is_some()) {
        // Not those that the program records itself, by where they are made.
        let [low, high] = [STUB as u32, (STUB >> 32) as u32];
        let page = step(BPF_ALU | BPF_AND | BPF_K, 0, 0, !(STUB_BYTES as u32 - 1));
        let mut all = vec![load(8), page, is(low, 3), load(12), is(high, 1), ALLOW];
        let steps = match number as std::os::raw::c_long {
            libc::SYS_futex => {
                let mut steps = vec![argument(1), step(BPF_ALU | BPF_AND | BPF_K, 0, 0, FUTEX_COMMAND as u32)];
                let [wait, until] = WAITS.map(|command| command as u32);
                steps.extend([
                    step(BPF_JMP | BPF_JEQ | BPF_K, 2, 0, wait),
                    step(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, until),
                ]);
                steps.extend([ALLOW, STOP]);
                steps
            }
            // Not those that only ask.
            libc::SYS_fcntl => {
                let mut steps = vec![argument(1)];
                steps.extend(COMMANDS.iter().flat_map(|command| [is(*command as u32, 1), STOP]));
                steps.push(ALLOW);
                steps
            }
            libc::SYS_mmap => {
                let anonymous = step(BPF_JMP | BPF_JSET | BPF_K, 0, 1, libc::MAP_ANONYMOUS as u32);
                vec![argument(3), anonymous, ALLOW, STOP]
            }
            libc::SYS_prctl => {
                let [filter, clock] = [libc::PR_SET_SECCOMP, libc::PR_SET_TSC].map(|option| option as u32);
                vec![argument(0), is(filter, 1), STOP, is(clock, 1), STOP, ALLOW]
            }
            libc::SYS_ioctl => {
                let mut steps = vec![argument(1)];
                steps.extend(requests().flat_map(|request| [is(request, 1), STOP]));
                steps.push(ALLOW);
                steps
            }
            _ => limit(number).map_or_else(|| vec![STOP], limited),
        };
        all.extend(steps);
        program.push(is(number as u32, all.len() as u8));
        program.extend(all);
    }
    program.push(ALLOW);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_stops_at_calls_that_touch_files() {
        let program = program();
        let stops = |number: std::os::raw::c_long| {
            program.iter().any(|step| step.code == (BPF_JMP | BPF_JEQ | BPF_K) as u16 && step.k == number as u32)
        };
        let others = [libc::SYS_close, libc::SYS_clone3, libc::SYS_clock_nanosleep];
        for number in [libc::SYS_openat, libc::SYS_pwrite64, libc::SYS_renameat2].into_iter().chain(others) {
            assert!(stops(number), "{number}");
        }
        for number in [libc::SYS_brk, libc::SYS_rt_sigaction, libc::SYS_sched_yield] {
            assert!(!stops(number), "{number}");
        }
        assert!(program.len() < 4096);
    }

    /// What the kernel does with such a program.
    fn run(program: &[sock_filter], number: std::os::raw::c_long, arguments: [u64; 6]) -> u32 {
        let mut data = vec![number as u32, ARCHITECTURE, 0, 0];
        data.extend(arguments.iter().flat_map(|argument| [*argument as u32, (argument >> 32) as u32]));
        let (mut at, mut value) = (0, 0);
        loop {
            let step = program[at];
            let jump = |holds: bool| usize::from(if holds { step.jt } else { step.jf });
            at += 1;
            match u32::from(step.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => value = data[step.k as usize / 4],
                code if code == BPF_ALU | BPF_AND | BPF_K => value &= step.k,
                code if code == BPF_JMP | BPF_JEQ | BPF_K => at += jump(value == step.k),
                code if code == BPF_JMP | BPF_JSET | BPF_K => at += jump(value & step.k != 0),
                _ => return step.k,
            }
        }
    }

    #[test]
    fn waits_stop_and_looks_do_not() {
        let program = program();
        let at = |index: usize, limit: u64| {
            let mut arguments = [0; 6];
            arguments[index] = limit;
            arguments
        };
        let forever = u64::from(u32::MAX);
        let [until, wake] =
            [libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG, libc::FUTEX_WAKE].map(|one| one as u64);
        for (number, arguments, stops) in [
            (libc::SYS_epoll_pwait, at(3, 1000), true),
            (libc::SYS_epoll_pwait, at(3, 0), false),
            (libc::SYS_epoll_pwait, at(3, forever), true),
            (libc::SYS_ppoll, at(2, 0x7fff_ffff_f000), true),
            (libc::SYS_ppoll, at(2, 0), true),
            (libc::SYS_futex, [0, until, 0, 0x7fff_ffff_f000, 0, 0], true),
            (libc::SYS_futex, [0, until, 0, 0, 0, 0], true),
            (libc::SYS_futex, at(3, 0), true),
            (libc::SYS_futex, [0, wake, 0, 0x7fff_ffff_f000, 0, 0], false),
        ] {
            let action = run(&program, number, arguments);
            assert_eq!(action == libc::SECCOMP_RET_TRACE, stops, "{number} {arguments:x?}");
            assert_eq!(stops_at(number as u64, arguments), stops, "{number} {arguments:x?}");
        }
    }
}

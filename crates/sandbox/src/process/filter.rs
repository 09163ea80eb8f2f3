//! System calls that a guest's process is refused: a filter of seccomp(2).
//!
//! Namespaces and Landlock limit what the process reaches; this filter takes away what neither restricts, or what only makes the kernel
//! of the host easier to attack. It lists what is refused, because different versions of user-mode Linux and QEMU, and their C
//! libraries, make different calls.

#![expect(unsafe_code, reason = "seccomp(2) has no safe wrapper")]

use libc::sock_filter;
use libc::{BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W};
use std::os::raw::c_long;

/// Refused whatever their arguments are.
const REFUSED: &[c_long] = &[
    // Modes, owners, times and attributes: Landlock has no rules for them.
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SYS_SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
    // Names for what is there, and devices.
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mknodat,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    // Other users and capabilities.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    // Other processes.
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kcmp,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // What others do with files.
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_flock,
    // The host's kernel and its state.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    // Landlock has no rule for it before Linux 6.2.
    libc::SYS_truncate,
];

/// The older calls, which only this architecture has.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_mknod,
    libc::SYS_inotify_init,
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

/// They do what other calls do, with arguments in memory, which a filter cannot see. C libraries then use the other calls.
const NOT_THERE: &[c_long] = &[
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Newer than libc's list; the same on every architecture.
const SYS_FCHMODAT2: c_long = 452;
const SYS_SETXATTRAT: c_long = 463;
const SYS_REMOVEXATTRAT: c_long = 466;
const SYS_OPEN_TREE_ATTR: c_long = 467;
const SYS_FILE_SETATTR: c_long = 469;

/// They change limits and priorities of any process of the same user, and the last two of all of them. Refused unless these arguments, with
/// these values, say that the calling process is meant.
const OF_ITSELF: &[(c_long, &[(u32, i32)])] = &[
    (libc::SYS_prlimit64, &[(0, 0)]),
    (libc::SYS_sched_setscheduler, &[(0, 0)]),
    (libc::SYS_sched_setparam, &[(0, 0)]),
    (libc::SYS_sched_setattr, &[(0, 0)]),
    (libc::SYS_sched_setaffinity, &[(0, 0)]),
    (libc::SYS_migrate_pages, &[(0, 0)]),
    (libc::SYS_move_pages, &[(0, 0)]),
    (libc::SYS_setpriority, &[(0, libc::PRIO_PROCESS as i32), (1, 0)]),
    // IOPRIO_WHO_PROCESS.
    (libc::SYS_ioprio_set, &[(0, 1), (1, 0)]),
];

/// Requests of ioctl(2) to type for the user at a terminal.
const REQUESTS: [u32; 2] = [libc::TIOCSTI as u32, 0x541C];

/// The types of requests that are needed: to terminals, pipes and sockets, and to KVM. All others are refused: with some a filesystem
/// changes attributes of files, seals, encrypts or freezes, for which a descriptor for reading is enough and Landlock has no rules.
const TYPES: [u32; 2] = [0x5400, 0xAE00];

/// Requests of fcntl(2) that make others wait, signal what they do, or say how a file is to be written.
const OF_OTHERS_FILES: [i32; 4] = [libc::F_SETLEASE, libc::F_NOTIFY, 1024 + 12, 1024 + 14];

/// Those that lock parts of a file, for which a descriptor for reading is enough.
const LOCKS: [i32; 4] = [libc::F_SETLK, libc::F_SETLKW, libc::F_OFD_SETLK, libc::F_OFD_SETLKW];

/// The request of prctl(2) to share a processor's core with another process.
const PR_SCHED_CORE: i32 = 62;

const NAMESPACES: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

const SET_ID: u32 = 0o6000;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

/// In a call's number on x86-64: it is one of the x32 ABI, whose numbers are others.
const X32: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`: the number, the architecture, the lower half of an argument.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

const fn step(code: u32, yes: u8, no: u8, value: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: yes, jf: no, k: value }
}

const fn load(offset: u32) -> sock_filter {
    step(BPF_LD | BPF_W | BPF_ABS, 0, 0, offset)
}

const fn end_with(action: u32) -> sock_filter {
    step(BPF_RET | BPF_K, 0, 0, action)
}

const fn refuse(errno: i32) -> sock_filter {
    end_with(libc::SECCOMP_RET_ERRNO | errno as u32)
}

const ALLOW: sock_filter = end_with(libc::SECCOMP_RET_ALLOW);

/// The filter. A kernel since 5.11 knows for each call that is refused or allowed whatever its arguments are that it need not be run.
pub(super) fn program(may_trace: bool, may_lock: bool) -> Vec<sock_filter> {
    let mut program = vec![
        load(ARCH),
        step(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCHITECTURE),
        refuse(libc::ENOSYS),
        load(NUMBER),
        step(BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32),
        refuse(libc::ENOSYS),
    ];
    // The steps to take for one call. Each ends in a decision, so nothing follows it.
    let mut for_call = |number: c_long, steps: &[sock_filter]| {
        program.push(step(BPF_JMP | BPF_JEQ | BPF_K, 0, steps.len() as u8, number as u32));
        program.extend_from_slice(steps);
    };
    let tracing = if may_trace { None } else { Some(libc::SYS_ptrace) };
    for number in REFUSED.iter().chain(REFUSED_HERE).copied().chain(tracing) {
        for_call(number, &[refuse(libc::EPERM)]);
    }
    for number in NOT_THERE {
        for_call(*number, &[refuse(libc::ENOSYS)]);
    }
    // vsock and netlink reach out of a network namespace, or into the kernel.
    let unix = step(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, libc::AF_UNIX as u32);
    for number in [libc::SYS_socket, libc::SYS_socketpair] {
        for_call(number, &[load(argument(0)), unix, ALLOW, refuse(libc::EAFNOSUPPORT)]);
    }
    let any_of = |bits: u32| step(BPF_JMP | BPF_JSET | BPF_K, 0, 1, bits);
    for_call(libc::SYS_clone, &[load(argument(0)), any_of(NAMESPACES as u32), refuse(libc::EPERM), ALLOW]);
    let equal = |value: u32| step(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value);
    for (number, arguments) in OF_ITSELF {
        let is = |(index, value): &(u32, i32)| {
            [load(argument(*index)), step(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, *value as u32), refuse(libc::EPERM)]
        };
        let steps: Vec<sock_filter> = arguments.iter().flat_map(is).chain([ALLOW]).collect();
        for_call(*number, &steps);
    }
    let mut requests = vec![load(argument(1))];
    requests.extend(REQUESTS.into_iter().flat_map(|request| [equal(request), refuse(libc::EPERM)]));
    requests.push(step(BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xFF00));
    requests.extend(TYPES.into_iter().flat_map(|kind| [equal(kind), ALLOW]));
    requests.push(refuse(libc::EPERM));
    for_call(libc::SYS_ioctl, &requests);
    let locks = LOCKS.into_iter().filter(|_| !may_lock);
    let refused = |requests: Vec<i32>| requests.into_iter().flat_map(|one| [equal(one as u32), refuse(libc::EPERM)]);
    let of_files: Vec<sock_filter> = refused(OF_OTHERS_FILES.into_iter().chain(locks).collect()).collect();
    for_call(libc::SYS_fcntl, &[&[load(argument(1))], &*of_files, &[ALLOW]].concat());
    let core: Vec<sock_filter> = refused(vec![PR_SCHED_CORE]).collect();
    for_call(libc::SYS_prctl, &[&[load(argument(0))], &*core, &[ALLOW]].concat());
    // A file that is opened to be read may be emptied nevertheless. The mode has a meaning only where a file may be made.
    let made = (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;
    let opens = |flags: u32, mode: u32| {
        [
            load(argument(flags)),
            step(BPF_ALU | BPF_AND | BPF_K, 0, 0, (libc::O_ACCMODE | libc::O_TRUNC) as u32),
            step(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, libc::O_TRUNC as u32),
            refuse(libc::EPERM),
            load(argument(flags)),
            step(BPF_ALU | BPF_AND | BPF_K, 0, 0, made),
            step(BPF_JMP | BPF_JEQ | BPF_K, 3, 0, 0),
            load(argument(mode)),
            any_of(SET_ID),
            refuse(libc::EPERM),
            ALLOW,
        ]
    };
    for_call(libc::SYS_openat, &opens(2, 3));
    #[cfg(target_arch = "x86_64")]
    {
        for_call(libc::SYS_open, &opens(1, 2));
        for_call(libc::SYS_creat, &[load(argument(1)), any_of(SET_ID), refuse(libc::EPERM), ALLOW]);
    }
    program.push(ALLOW);
    program
}

pub(super) fn is_possible() -> bool {
    // SAFETY: a plain question.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 }
}

/// Binds the calling thread, and what it starts, to the filter.
///
/// # Safety
/// Async-signal-safe: for the child of a fork.
pub(super) unsafe fn bind(program: &[sock_filter]) -> bool {
    /// The filter is to keep a program from doing things, and not from observing what the processor speculates: without this flag, kernels
    /// before 5.16 slow it down.
    const SPEC_ALLOW: libc::c_ulong = 1 << 2;
    let described = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program, which lives as long as the call.
    unsafe {
        let set = |flags: libc::c_ulong| {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const described) == 0
        };
        set(SPEC_ALLOW) || set(0)
    }
}

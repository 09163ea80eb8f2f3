#![expect(unsafe_code, reason = "asks the kernel for a scheduling policy")]
//! Going first for a moment.
//!
//! All ranks of a machine wake at the same moment to let their threads go. With more ranks than processors, the threads of the first would
//! have the processors before the last rank has woken. So who lets threads go does it ahead of all that has ordinary priority. That
//! takes a right that root has (CAP_SYS_NICE); without it the skew is larger, and is printed.

/// Has the calling thread go first, or not any more; whether that was granted.
pub(crate) fn go_first(first: bool) -> bool {
    let (policy, priority): (_, libc::c_int) = if first { (libc::SCHED_FIFO, 1) } else { (libc::SCHED_OTHER, 0) };
    // By number, for musl's function of this name does nothing. The kernel's `struct sched_param` is the priority alone.
    // SAFETY: the priority outlives the call, and 0 is the calling thread. What it starts later has ordinary priority again.
    unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, policy | libc::SCHED_RESET_ON_FORK, &raw const priority) == 0
    }
}

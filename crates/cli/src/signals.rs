//! Ctrl-C, SIGTERM and SIGHUP: each ends every command with one status, and a command that has something to undo first does so.

#![expect(unsafe_code, reason = "a handler that looks at a clock, which signal_hook has no safe function for")]

use crate::exit::Exit;
use fstone_record::is_ignored;
use rustix::time::{ClockId, clock_gettime};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM},
    flag::{register, register_conditional_shutdown},
};
use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering},
    },
};

/// After the first signal, others have no effect for so long: timeout(1) sends one to its child and one to the whole process group, and
/// job control of shells and schedulers does so too.
const IMPATIENT_MS: u64 = 1000;
const SECOND: &[u8] = b"fstone: ended at once by a second signal; what was not undone yet is left behind\n";

static FIRST: AtomicI32 = AtomicI32::new(0);

/// Whether a signal ends the process at once, which holds until work begins that must be undone.
static AT_ONCE: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on these signals end the process with the status of an interruption. Where they cannot be handled they end it all
/// the same, with the shell's status for them.
pub(crate) fn watch() {
    let at_once = AT_ONCE.get_or_init(|| Arc::new(AtomicBool::new(true)));
    for signal in wanted() {
        let _ = register_conditional_shutdown(signal, i32::from(Exit::Interrupted as u8), Arc::clone(at_once));
    }
}

/// A flag that the first of these signals sets from now on, in place of ending the process. One that comes a second later ends it.
pub(crate) fn cancel() -> io::Result<Arc<AtomicBool>> {
    cancel_on(wanted())
}

/// The same without those that the caller ignores.
pub(crate) fn cancel_unless_ignored() -> io::Result<Arc<AtomicBool>> {
    cancel_on(wanted().filter(|signal| !is_ignored(*signal)))
}

/// From now on SIGQUIT has no effect here. It comes from the terminal to all of the process group, and a program may handle it. It is not
/// ignored, because a program that is started would inherit that.
pub(crate) fn leave_quit_to_program() -> io::Result<()> {
    if is_ignored(SIGQUIT) { Ok(()) } else { register(SIGQUIT, Arc::default()).map(drop) }
}

/// The first signal that has set such a flag; 0 if none has.
pub(crate) fn first() -> &'static AtomicI32 {
    &FIRST
}

fn cancel_on(signals: impl Iterator<Item = i32>) -> io::Result<Arc<AtomicBool>> {
    let cancel = Arc::new(AtomicBool::new(false));
    let first_ms = Arc::new(AtomicU64::new(0));
    for signal in signals {
        let (cancel, first_ms) = (Arc::clone(&cancel), Arc::clone(&first_ms));
        let came = move || came(signal, &cancel, &first_ms);
        // SAFETY: it reads a clock, changes atomic integers, and may write to standard error and end the process by calls to the kernel alone.
        unsafe { signal_hook::low_level::register(signal, came) }?;
    }
    if let Some(at_once) = AT_ONCE.get() {
        at_once.store(false, Ordering::Release);
    }
    Ok(cancel)
}

/// Handles a signal: async-signal-safe.
fn came(signal: i32, cancel: &AtomicBool, first_ms: &AtomicU64) {
    let time = clock_gettime(ClockId::Monotonic);
    let now_ms = 1 + time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000;
    match first_ms.compare_exchange(0, now_ms, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            let _ = FIRST.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire);
            cancel.store(true, Ordering::Release);
        }
        Err(first_ms) if now_ms.saturating_sub(first_ms) >= IMPATIENT_MS => {
            crate::terminal::tell_in_handler(SECOND);
            signal_hook::low_level::exit(i32::from(Exit::Interrupted as u8));
        }
        Err(_) => {}
    }
}

/// `nohup` has whatever it starts ignore SIGHUP. SIGINT is ignored in the background of every script, which may send it all the same.
fn wanted() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| *signal != SIGHUP || !is_ignored(SIGHUP))
}

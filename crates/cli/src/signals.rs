//! Ctrl-C, SIGTERM and SIGHUP: each ends every command with one status, and a command that has something to undo first does so.

use crate::exit::Exit;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag::{register, register_conditional_shutdown},
};
use std::{
    fs, io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

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

/// A flag that the first of these signals sets from now on, in place of ending the process. A second one ends it.
pub(crate) fn cancel() -> io::Result<Arc<AtomicBool>> {
    let cancel = Arc::new(AtomicBool::new(false));
    for signal in wanted() {
        // The order matters: the first signal finds the flag unset and only sets it.
        register_conditional_shutdown(signal, i32::from(Exit::Interrupted as u8), Arc::clone(&cancel))
            .and_then(|_| register(signal, Arc::clone(&cancel)))?;
    }
    if let Some(at_once) = AT_ONCE.get() {
        at_once.store(false, Ordering::Release);
    }
    Ok(cancel)
}

/// The signals that are not to be ignored: `nohup` has whatever it starts ignore SIGHUP.
fn wanted() -> Vec<i32> {
    static HANGUP_IS_IGNORED: OnceLock<bool> = OnceLock::new();
    let ignored = *HANGUP_IS_IGNORED.get_or_init(|| is_ignored(SIGHUP));
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| *signal != SIGHUP || !ignored).collect()
}

/// Whether this process was started with a signal ignored, as proc(5) says.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

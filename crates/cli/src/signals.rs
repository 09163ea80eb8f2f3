//! Ctrl-C, SIGTERM and SIGHUP: each ends every command with one status, and a command that has something to undo first does so.

use crate::exit::Exit;
use fstone_record::is_ignored;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag::{register, register_conditional_shutdown},
};
use std::{
    io,
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
    cancel_on(wanted())
}

/// The same without those that the caller ignores.
pub(crate) fn cancel_unless_ignored() -> io::Result<Arc<AtomicBool>> {
    cancel_on(wanted().filter(|signal| !is_ignored(*signal)))
}

fn cancel_on(signals: impl Iterator<Item = i32>) -> io::Result<Arc<AtomicBool>> {
    let cancel = Arc::new(AtomicBool::new(false));
    for signal in signals {
        // The order matters: the first signal finds the flag unset and only sets it.
        register_conditional_shutdown(signal, i32::from(Exit::Interrupted as u8), Arc::clone(&cancel))
            .and_then(|_| register(signal, Arc::clone(&cancel)))?;
    }
    if let Some(at_once) = AT_ONCE.get() {
        at_once.store(false, Ordering::Release);
    }
    Ok(cancel)
}

/// `nohup` has whatever it starts ignore SIGHUP. SIGINT is ignored in the background of every script, which may send it all the same.
fn wanted() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| *signal != SIGHUP || !is_ignored(SIGHUP))
}

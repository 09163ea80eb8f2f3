//! Ctrl-C and its like.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

/// Set by a signal: loads end, and everything that was mounted or made is taken back.
pub(crate) static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Ends on signals as it would by itself, with everything taken back.
pub(crate) fn heed() -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    [SIGINT, SIGTERM, SIGHUP]
        .into_iter()
        .try_for_each(|signal| signal_hook::flag::register(signal, Arc::clone(&INTERRUPTED)).map(drop))
}

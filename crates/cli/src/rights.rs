//! What this process may do.

/// Whether this process may make filesystems.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

//! What this process may do.

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

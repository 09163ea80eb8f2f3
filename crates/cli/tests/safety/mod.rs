//! What docs/safety.md promises, tried on the binary: as root on loop images, skipped with a reason elsewhere.

mod disk;
mod documented;
mod hostile;
mod killed;
mod named;
mod own;
mod resumed;
mod together;

use crate::support::is_root;
use std::path::Path;

fn may_use_devices() -> bool {
    let may = is_root() && Path::new("/dev/loop-control").exists();
    if !may {
        eprintln!("skipped: making filesystems needs root and loop devices");
    }
    may
}

//! Guests as executors: trials under user-mode Linux and in QEMU.
//!
//! A trial's image is made, formatted and checked on the host, as the user that fstone runs as. Everything in between
//! (mounting, loads, commands, caches) is done in a guest booted for this trial alone, whose process 1 is this same
//! binary. There it is again an executor on "the running kernel": [`served`] takes a step at a time off the channel and
//! carries it out with the code that does so on the host, meters included, on the guest's only disk. [`guest`] is the
//! other end: it boots, hands steps over, and knows how to tell how a guest ended.
//!
//! An exact guest ([`exact`]) makes the whole trial as one job.
//!
//! The border between the two is [`protocol`]; both ends are one and the same binary, so it has no version of its own.

mod exact;
mod guest;
mod kept;
mod kernels;
mod protocol;
mod served;

pub use fstone_sandbox::kernel::Flavour;
pub(crate) use guest::{BOOT_LIMIT, GuestBench, STUCK_GRACE, is_for_guest};
pub use kernels::{default_kernel, missing_kernel};
pub use served::{is_agent, main as agent_main};

use fstone_drive::Model;
use fstone_sandbox::{
    guest::Watch,
    vhost::{Fault, Speed},
};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// The drive of exact guests when nobody names one.
pub const DEFAULT_MODEL: &str = "hdd-7200-2008";

/// How guests are made.
#[derive(Debug, Clone)]
pub struct GuestOptions {
    /// Where kernels are kept.
    pub kernels: PathBuf,
    /// Where unpacked kernels and what QEMU starts from are kept; can be made again.
    pub cache: PathBuf,
    /// Where the console's log, and the image where it can be moved there, of a guest that crashed or hung go.
    pub kept: PathBuf,
    /// The binary that is process 1: this one.
    pub agent: PathBuf,
    /// Memory of a guest.
    pub memory_bytes: u64,
    /// How patient to be, when not as usual.
    pub watch: Option<Watch>,
    /// How fast disks are, when not as fast as the host.
    pub speed: Speed,
    /// What is to go wrong with disks.
    pub faults: Vec<Fault>,
    /// What the drives of exact guests are.
    pub model: Model,
    /// What a system call takes in exact guests.
    pub charge: Duration,
}

impl GuestOptions {
    /// Memory of a guest when nobody says otherwise: room for the caches of a small load and for some hundred threads.
    pub const MEMORY_BYTES: u64 = 512 << 20;

    /// Guests of 512 MiB whose agent is the running binary, with everything below these two directories.
    #[must_use]
    pub fn new(kernels: PathBuf, cache: &Path) -> Self {
        Self {
            kernels,
            kept: cache.join("kept"),
            cache: cache.join("guests"),
            agent: std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into()),
            memory_bytes: Self::MEMORY_BYTES,
            watch: None,
            speed: Speed::default(),
            faults: Vec::new(),
            model: Model::find(DEFAULT_MODEL).expect("it is built in"),
            charge: fstone_sandbox::exact::CHARGE,
        }
    }
}

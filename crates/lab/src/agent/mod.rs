//! Agents: who makes a trial's steps, and how the lab talks to them.
//!
//! An agent is this same binary. Every trial has one on the host: a child process with mounts and processes of its own,
//! which the kernel takes back when it ends, however it ends. A trial under another kernel has a second one, process 1 of
//! a guest in user-mode Linux or QEMU, booted for this trial alone. Both speak `protocol`, across a channel of the
//! sandbox; `served` is their end of it, `link` the lab's. `guest` boots guests, and tells how one ended.
//! On a fake machine the agent is in this process.
//!
//! An exact guest (`exact`) makes the whole trial as one job (`whole`), and there is no agent on the host. What only the lab
//! can do there, it asks for in between.
//!
//! Both ends of the protocol are one and the same binary, so it has no version of its own.

mod counts;
mod exact;
mod guest;
#[cfg(any(test, feature = "fakes"))]
mod here;
mod kept;
mod kernels;
mod link;
mod loads;
pub(crate) mod protocol;
mod served;
mod whole;

pub(crate) use counts::count_exactly;
pub(crate) use exact::simulate;
pub use fstone_sandbox::kernel::Flavour;
pub(crate) use guest::{GuestSeat, is_hidden_in_guests, set_up as set_up_guest};
#[cfg(any(test, feature = "fakes"))]
pub(crate) use here::Here;
pub(crate) use kept::{DISK_LOG, file_name};
pub use kept::{kept, remove_kept};
pub(crate) use kernels::find as find_kernel;
pub use kernels::{default_kernel, missing_kernel, missing_named_kernel};
pub(crate) use link::Link;
pub use served::{is_agent, main as agent_main};

use fstone_drive::{Model, Processor};
use fstone_sandbox::{
    guest::Watch,
    vhost::{Fault, Speed},
};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

pub(crate) const BOOT: &str = "boot";

pub const DEFAULT_MODEL: &str = "hdd-7200-2008";

#[derive(Debug, Clone)]
pub struct GuestOptions {
    pub kernels: PathBuf,
    /// Where unpacked kernels and what QEMU starts from are kept; can be made again.
    pub cache: PathBuf,
    /// Where the console's log, and the image where it can be moved there, of a guest that crashed or hung go.
    pub kept: PathBuf,
    /// The binary that is process 1: this one.
    pub agent: PathBuf,
    pub memory_bytes: u64,
    /// How patient to be, when not as usual.
    pub watch: Option<Watch>,
    pub speed: Speed,
    pub faults: Vec<Fault>,
    /// What the drives of exact guests are, by the names that cells have for them.
    pub models: Vec<(String, Model)>,
    /// What a system call takes in exact guests.
    pub charge: Duration,
    /// What their kernels' work takes; nothing if it is absent.
    pub processor: Option<Processor>,
    /// Of the blocks that this machine runs: its trials record what each function did.
    pub first_block: u32,
}

impl GuestOptions {
    /// Memory of a guest when nobody says otherwise: room for the caches of a small load and for some hundred threads.
    pub const MEMORY_BYTES: u64 = 512 << 20;

    /// Where things are kept to be examined.
    pub fn kept_in(cache: &Path) -> PathBuf {
        cache.join("kept")
    }

    pub fn new(kernels: PathBuf, cache: &Path) -> Self {
        Self {
            kernels,
            kept: Self::kept_in(cache),
            cache: cache.join("guests"),
            agent: std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into()),
            memory_bytes: Self::MEMORY_BYTES,
            watch: None,
            speed: Speed::default(),
            faults: Vec::new(),
            models: Vec::new(),
            first_block: 0,
            charge: fstone_sandbox::exact::CHARGE,
            processor: None,
        }
    }
}

//! The machine a run was made on, as far as it affects figures.

use serde::{Deserialize, Serialize};

/// The name of the setting that records how long a system call takes in virtual time.
pub const CHARGE_SETTING: &str = "charge of a system call";

/// The name of the setting that records what the kernel's work takes in virtual time: a processor's model, with its parameters.
pub const PROCESSOR_SETTING: &str = "modelled processor";

pub const GUEST_MEMORY_SETTING: &str = "guest memory";

/// What the names of the settings begin with that are the models of drives, each with its parameters.
pub const MODEL_SETTING: &str = "modelled drive ";

/// The machine, read once at the start of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    pub taken_unix_ns: u64,
    pub host: String,
    /// `uname -srvm`.
    pub kernel: String,
    pub kernel_command_line: String,
    /// The distribution's pretty name.
    pub distribution: String,
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: u32,
    pub memory_bytes: u64,
    pub virtualization: Option<String>,
    /// The device under the work directory (or the named device) and its queue.
    pub device: Option<DeviceFacts>,
    /// (tool, version) of each mkfs, fsck and mount tool that the study uses.
    pub tools: Vec<(String, String)>,
    pub fstone_version: String,
    pub fstone_commit: String,
    /// Raw sequential read of the device before the run, bytes per second (what `hdparm -t` tells).
    pub raw_read_bytes_per_second: Option<f64>,
    /// Raw sequential write to a file on the device before the run, past the page cache.
    #[serde(default)]
    pub raw_write_bytes_per_second: Option<f64>,
    /// How many single blocks per second the device makes durable, one at a time (write and fdatasync).
    #[serde(default)]
    pub flushes_per_second: Option<f64>,
    /// /proc/self/mountinfo at the start, bounded.
    pub mounts: String,
    /// Kernel settings that affect figures: (name, value), e.g. ("vm.dirty_ratio", "20").
    pub settings: Vec<(String, String)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Its name, e.g. `vda`, or the name of the filesystem if there is no block device below it.
    pub name: String,
    pub model: Option<String>,
    pub size_bytes: u64,
    /// The filesystem that holds the work directory.
    pub backing_filesystem: Option<String>,
    /// Every readable queue setting as (name, value): scheduler, rotational, read_ahead_kb, …
    pub queue: Vec<(String, String)>,
}

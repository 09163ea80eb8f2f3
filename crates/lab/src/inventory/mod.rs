//! The machine a run is made on, as far as it bears on the figures.
//!
//! [`take`] reads it once, at the start of a run; [`raw_read`] and [`raw_write`] measure the device's own speed;
//! [`check()`] tells what this machine can do, before anything is run. Nothing here fails: what cannot be read is left empty.

mod check;
mod check_text;
mod device;
mod machine;
mod memory;
mod place;
mod raw_read;
mod raw_write;
mod settings;
mod text;
mod tools;

pub(crate) use check::package_of;
pub use check::{Ability, Check, FilesystemCheck, ProgramCheck, check};
pub use memory::too_little_memory;
pub use raw_read::{RawRead, RawSpeedError, raw_read};
pub use raw_write::{RawWrite, raw_write};
pub use settings::STATES;
pub use tools::tool_version;

use crate::command::CommandRunner;
use fstone_model::study::DeviceSpec;
use fstone_model::{Inventory, Plan};
use place::{existing, mount_of};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone, Copy)]
pub struct InventoryContext<'a> {
    /// What is going to be run: the block device it names and the tools it uses are described.
    pub plan: &'a Plan,
    /// The work directory; unless the plan names a device, this one's filesystem and device are described.
    pub work_directory: &'a Path,
    pub fstone_version: &'a str,
    pub fstone_commit: &'a str,
}

/// A mount table is bounded to this in a record: a machine with containers has thousands of mounts.
const MOUNTS_BYTES: usize = 64 << 10;

/// Takes the inventory; the device's own speed is left to [`raw_read`] and [`raw_write`].
pub fn take(context: &InventoryContext<'_>, runner: &dyn CommandRunner) -> Inventory {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = rustix::system::uname();
    let word = |word: &std::ffi::CStr| word.to_string_lossy().into_owned();
    let cpu_information = text::read(Path::new("/proc/cpuinfo")).unwrap_or_default();
    let memory_information = text::read(Path::new("/proc/meminfo")).unwrap_or_default();
    let mounts = text::read(Path::new("/proc/self/mountinfo")).unwrap_or_default();
    Inventory {
        taken_unix_ns: u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX),
        host: word(name.nodename()),
        kernel: [name.sysname(), name.release(), name.version(), name.machine()].map(word).join(" "),
        kernel_command_line: text::read_line(Path::new("/proc/cmdline")).unwrap_or_default(),
        distribution: machine::distribution(&text::read(Path::new("/etc/os-release")).unwrap_or_default()),
        cpu_model: machine::cpu_model(&cpu_information).unwrap_or_else(|| word(name.machine())),
        cpus: crate::meters::CpuTimes::read().map_or(0, |times| times.cpus),
        memory_bytes: machine::memory_bytes(&memory_information, "MemTotal").unwrap_or(0),
        virtualization: machine::virtualization(&cpu_information),
        device: device::facts(context.work_directory, named_device(context.plan)),
        tools: tools::versions(context.plan, runner),
        fstone_version: context.fstone_version.to_owned(),
        fstone_commit: context.fstone_commit.to_owned(),
        raw_read_bytes_per_second: None,
        raw_write_bytes_per_second: None,
        flushes_per_second: None,
        mounts: text::clip(&mounts, MOUNTS_BYTES).to_owned(),
        settings: settings::read(&memory_information),
    }
}

/// The kernel's name of the filesystem that a path is on ("ext4"); of one that is not there yet, where it would be made.
pub fn filesystem_of(path: &Path) -> Option<String> {
    let mounts = crate::place::mount::read_mountinfo().ok()?;
    mount_of(&existing(path)?, &mounts).map(|mount| mount.kernel_name.clone())
}

pub fn named_device(plan: &Plan) -> Option<&Path> {
    plan.cells.iter().find_map(|cell| match &cell.device {
        DeviceSpec::Block { path } => Some(Path::new(path)),
        _ => None,
    })
}

/// Whether any trial of a plan takes the host's time, so that the speed of the host's devices has to do with it.
pub fn takes_host_time(plan: &Plan) -> bool {
    plan.cells.iter().any(|cell| !cell.kernel.is_exact())
}

/// Whether images of a plan are files in the work directory, so that the device under it is what is tested.
pub fn tests_work_directory(plan: &Plan) -> bool {
    let there = |device: &DeviceSpec| matches!(device, DeviceSpec::Loop { directory: None, in_memory: false, .. });
    plan.cells.iter().any(|cell| there(&cell.device) && !cell.kernel.is_exact())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::FakeRunner;
    use crate::place::mount::MountEntry;

    fn mount(target: &str, kernel_name: &str) -> MountEntry {
        MountEntry {
            id: 1,
            device: (0, 1),
            root: "/".into(),
            target: target.into(),
            kernel_name: kernel_name.into(),
            source: "none".into(),
            mount_options: String::new(),
            superblock_options: String::new(),
        }
    }

    #[test]
    fn the_last_of_the_nearest_mounts_holds_a_path() {
        let mounts = [mount("/", "ext4"), mount("/var", "xfs"), mount("/var", "btrfs"), mount("/va", "tmpfs")];
        let of = |path: &str| mount_of(Path::new(path), &mounts).map(|mount| mount.kernel_name.as_str());
        assert_eq!(of("/var/tmp"), Some("btrfs"));
        assert_eq!(of("/variable"), Some("ext4"), "names are compared whole");
        assert_eq!(mount_of(Path::new("/x"), &[]), None);
    }

    #[test]
    fn a_path_that_is_not_there_yet_is_where_its_parent_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let real = directory.path().canonicalize().expect("there");
        assert_eq!(existing(&directory.path().join("not/yet")), Some(real));
    }

    #[test]
    fn the_filesystem_of_a_path_is_known_before_the_path_is_there() {
        assert_eq!(filesystem_of(Path::new("/proc/self")).as_deref(), Some("proc"));
        let directory = tempfile::tempdir().expect("a directory");
        let there = filesystem_of(directory.path());
        assert!(there.is_some());
        assert_eq!(filesystem_of(&directory.path().join("not/yet")), there);
    }

    #[test]
    fn this_machine_has_an_inventory() {
        let directory = tempfile::tempdir().expect("a directory");
        let context = InventoryContext {
            plan: &tools::plan_of(&["xfs"], &DeviceSpec::Block { path: "/dev/nonexistent".into() }, &[]),
            work_directory: directory.path(),
            fstone_version: "1.2.3",
            fstone_commit: "abc",
        };
        let inventory = take(&context, &FakeRunner::new());
        assert!(inventory.kernel.starts_with("Linux "), "{}", inventory.kernel);
        assert!(inventory.cpus > 0 && inventory.memory_bytes > 0 && inventory.taken_unix_ns > 0);
        assert!(!inventory.cpu_model.is_empty() && !inventory.mounts.is_empty());
        let device = inventory.device.expect("the work directory is on something");
        assert!(device.backing_filesystem.is_some() && device.size_bytes > 0, "{device:?}");
        assert!(inventory.tools.iter().any(|(tool, _)| tool == "mkfs.xfs"), "{:?}", inventory.tools);
        assert!(inventory.settings.iter().any(|(name, _)| name == "vm.dirty_ratio"), "{:?}", inventory.settings);
        assert_eq!((inventory.fstone_version.as_str(), inventory.fstone_commit.as_str()), ("1.2.3", "abc"));
    }
}

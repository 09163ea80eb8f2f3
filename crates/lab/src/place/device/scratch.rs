//! The only thing that mkfs, discard and raw writes are ever given.

use super::{BlockFacts, DeviceLock, Devices, FileId, FileKind, Refusal, file_id};
use crate::command::{CommandLine, CommandRunner, RunError};
use serde::{Deserialize, Serialize};
use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// On what grounds a device may be formatted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// It is the loop device of an image that this run made.
    OwnImage(FileId),
    /// The same of an image that this run filled with a copy of a filesystem.
    OwnCopy(FileId),
    OwnFile(FileId),
    OwnZram,
    /// It is the disk that a guest was given, and this is the agent in that guest: whatever is on it, the host put there.
    GuestDisk,
    Named {
        allowed: Vec<PathBuf>,
    },
}

impl Purpose {
    /// Whether it is behind a loop device of this run's.
    pub const fn is_of_an_image(&self) -> bool {
        matches!(self, Self::OwnImage(_) | Self::OwnCopy(_))
    }
}

/// A block device that may be formatted: nothing uses it, nothing is on it, and it is ours or was named as a sacrifice.
///
/// There is no other way to one than [`ScratchDevice::claim`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScratchDevice {
    path: PathBuf,
    number: (u32, u32),
    size_bytes: u64,
    purpose: Purpose,
}

const PROBE_LIMIT: Duration = Duration::from_secs(60);

impl ScratchDevice {
    /// Examines a device and, when nothing speaks against it, gives the right to format it.
    ///
    /// # Errors
    /// The first thing that speaks against it.
    pub fn claim(
        path: &Path,
        purpose: Purpose,
        needed_bytes: u64,
        devices: &dyn Devices,
        runner: &dyn CommandRunner,
    ) -> Result<Self, Refusal> {
        if let Purpose::OwnFile(id) = purpose {
            return Self::claim_file(path, id, needed_bytes);
        }
        let facts = examine(path, devices)?;
        judge(path, &facts, &purpose, needed_bytes)?;
        if matches!(purpose, Purpose::GuestDisk | Purpose::OwnCopy(_)) {
            return Ok(Self { path: facts.canonical, number: facts.number, size_bytes: facts.size_bytes, purpose });
        }
        // Probing opens the device, so it comes after everything that a look at it can rule out.
        if let Some(signature) = signature(&facts.canonical, runner)? {
            return Err(Refusal::ForeignSignature { path: path.to_owned(), signature });
        }
        // blkid ends with the same status for "nothing recognised" and for "cannot be read".
        devices
            .read_ends(&facts.canonical, facts.number)
            .map_err(|error| Refusal::Unprobed { path: path.to_owned(), words: error.to_string() })?;
        // From here on it goes by the path without links, which the person has allowed with the one that was named.
        let purpose = match purpose {
            Purpose::Named { .. } => Purpose::Named { allowed: vec![facts.canonical.clone()] },
            own => own,
        };
        let claimed = Self { path: facts.canonical, number: facts.number, size_bytes: facts.size_bytes, purpose };
        // The path may be a symbolic link that was turned while blkid looked.
        let again = examine(path, devices)?;
        if (again.number, &again.canonical) == (claimed.number, &claimed.path) {
            Ok(claimed)
        } else {
            Err(Refusal::Changed(path.to_owned()))
        }
    }

    /// The same of a named device, which no other run has until the lock is dropped. It is locked before anybody looks at what is on it:
    /// what another run is just making there is no finding.
    ///
    /// # Errors
    /// [`Refusal::Locked`] with the holder, and as [`ScratchDevice::claim`].
    pub fn claim_locked(
        path: &Path,
        allowed: &[PathBuf],
        needed_bytes: u64,
        devices: &dyn Devices,
        runner: &dyn CommandRunner,
    ) -> Result<(Self, DeviceLock), Refusal> {
        let facts = examine(path, devices)?;
        let lock = match facts.kind {
            FileKind::Block => Some(devices.lock(&facts.canonical, facts.number)?),
            _ => None,
        };
        let purpose = Purpose::Named { allowed: allowed.to_vec() };
        let claimed = Self::claim(path, purpose, needed_bytes, devices, runner)?;
        match lock.filter(|_| claimed.number == facts.number) {
            Some(lock) => Ok((claimed, lock)),
            None => Err(Refusal::Changed(path.to_owned())),
        }
    }

    /// An image of this run, which stands where it was made and was made empty.
    fn claim_file(path: &Path, id: FileId, needed_bytes: u64) -> Result<Self, Refusal> {
        let unexamined = |error: io::Error| Refusal::Unexamined { path: path.to_owned(), words: error.to_string() };
        // Of the name itself: a symbolic link is none of ours.
        let file = std::fs::symlink_metadata(path).map_err(unexamined)?;
        if !file.is_file() || file_id(&file) != id {
            return Err(Refusal::NotOurs(path.to_owned()));
        }
        if file.len() < needed_bytes.max(1) {
            return Err(Refusal::TooSmall { path: path.to_owned(), size_bytes: file.len(), needed_bytes });
        }
        Ok(Self { path: path.to_owned(), number: id.device, size_bytes: file.len(), purpose: Purpose::OwnFile(id) })
    }

    /// Examines it again, right before it is written: still the same device, still used by nobody. What is on it now
    /// is what this run put there, since it has been ours in between.
    pub fn recheck(&self, devices: &dyn Devices) -> Result<(), Refusal> {
        if let Purpose::OwnFile(id) = self.purpose {
            return Self::claim_file(&self.path, id, self.size_bytes).map(drop);
        }
        let facts = examine(&self.path, devices)?;
        if (facts.number, &facts.canonical, facts.size_bytes) != (self.number, &self.path, self.size_bytes) {
            return Err(Refusal::Changed(self.path.clone()));
        }
        judge(&self.path, &facts, &self.purpose, self.size_bytes)
    }

    pub const fn is_named(&self) -> bool {
        matches!(self.purpose, Purpose::Named { .. })
    }

    pub const fn purpose(&self) -> &Purpose {
        &self.purpose
    }

    /// Its path, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn argument(&self) -> String {
        self.path.display().to_string()
    }

    /// Its device number: (major, minor).
    pub const fn number(&self) -> (u32, u32) {
        self.number
    }

    pub const fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

fn examine(path: &Path, devices: &dyn Devices) -> Result<BlockFacts, Refusal> {
    devices.facts(path).map_err(|error| Refusal::Unexamined { path: path.to_owned(), words: error.to_string() })
}

/// What the facts speak against. Pure, so that every refusal can be tested without the device it is about.
fn judge(path: &Path, facts: &BlockFacts, purpose: &Purpose, needed_bytes: u64) -> Result<(), Refusal> {
    let owned = || path.to_owned();
    match facts.kind {
        FileKind::Block => {}
        FileKind::Missing => return Err(Refusal::Missing(owned())),
        FileKind::Regular | FileKind::Other => return Err(Refusal::NotBlock(owned())),
    }
    // In a guest the whole disk is an image of ours, and what its kernel takes for a partition is chance: the checksum of
    // Acorn's tables has 8 bits, and one in 256 ext4 filesystems of 1 KiB blocks has it.
    if !facts.partitions.is_empty() && *purpose != Purpose::GuestDisk {
        return Err(Refusal::Partitioned { path: owned(), partitions: facts.partitions.clone() });
    }
    if facts.swap {
        return Err(Refusal::Swap(owned()));
    }
    if let Some(at) = facts.mounted_at.first() {
        return Err(Refusal::Mounted { path: owned(), at: at.clone() });
    }
    if !facts.holders.is_empty() {
        return Err(Refusal::Held { path: owned(), holders: facts.holders.clone() });
    }
    if let Err(errno) = facts.exclusive {
        return Err(Refusal::InUse { path: owned(), errno });
    }
    match purpose {
        Purpose::OwnImage(image) | Purpose::OwnCopy(image) if facts.backing != Some(*image) => {
            return Err(Refusal::NotOurs(owned()));
        }
        Purpose::OwnFile(_) => return Err(Refusal::NotOurs(owned())),
        Purpose::GuestDisk if !fstone_sandbox::agent::is_guest() => return Err(Refusal::NotOurs(owned())),
        Purpose::OwnImage(_) | Purpose::OwnCopy(_) | Purpose::OwnZram | Purpose::GuestDisk => {}
        // The path has to be the very one that was allowed: a link that leads to the same device was not named.
        Purpose::Named { allowed } if allowed.iter().any(|allowed| allowed == path || *allowed == facts.canonical) => {}
        Purpose::Named { .. } => {
            let size = fstone_model::units::format_bytes(facts.size_bytes);
            let identity =
                facts.identity.as_ref().map_or_else(|| size.clone(), |identity| format!("{identity}, {size}"));
            return Err(Refusal::NotAllowed { path: owned(), identity });
        }
    }
    if let Some(part) = &facts.exchangeable {
        return Err(Refusal::Exchangeable { path: owned(), part: part.clone() });
    }
    if facts.read_only {
        return Err(Refusal::ReadOnly(owned()));
    }
    if facts.size_bytes < needed_bytes.max(1) {
        return Err(Refusal::TooSmall { path: owned(), size_bytes: facts.size_bytes, needed_bytes });
    }
    Ok(())
}

pub(crate) fn signature(path: &Path, runner: &dyn CommandRunner) -> Result<Option<String>, Refusal> {
    let unprobed = |words: String| Refusal::Unprobed { path: path.to_owned(), words };
    let command = CommandLine::new("blkid", ["-p", "-o", "export", &path.display().to_string()]);
    let output = runner.run(&command, PROBE_LIMIT).map_err(|error: RunError| unprobed(error.to_string()))?;
    // blkid(8): 2 when nothing was recognised, 8 when several things were and they contradict each other.
    match output.status {
        2 => Ok(None),
        0 => {
            let value = |name: &str| {
                output.stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
            };
            let table = value("PTTYPE").map(|kind| format!("a partition table ({kind})"));
            let label = value("LABEL").map_or_else(String::new, |label| format!(" labelled {label:?}"));
            let content = value("TYPE").map(|kind| format!("{kind}{label}"));
            Ok(content.or(table).or_else(|| value("USAGE")))
        }
        _ => Err(unprobed(output.words())),
    }
}

pub(crate) fn filesystem_uuid(path: &Path, runner: &dyn CommandRunner) -> Option<String> {
    let command = CommandLine::new("blkid", ["-p", "-o", "value", "-s", "UUID", &path.display().to_string()]);
    let output = runner.run(&command, PROBE_LIMIT).ok()?;
    let uuid = output.stdout.trim();
    (output.status == 0 && !uuid.is_empty()).then(|| uuid.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        command::{CommandOutput, FakeRunner},
        place::device::{FakeDevices, fake::blank},
    };

    const DISK: &str = "/dev/sdz";

    fn named() -> Purpose {
        Purpose::Named { allowed: vec![DISK.into()] }
    }

    fn disk() -> BlockFacts {
        blank(Path::new(DISK), (8, 400), 1 << 30)
    }

    fn refusal(change: impl FnOnce(&mut BlockFacts)) -> Option<Refusal> {
        let mut facts = disk();
        change(&mut facts);
        judge(Path::new(DISK), &facts, &named(), 1 << 20).err()
    }

    #[test]
    fn each_fact_alone_is_enough_to_refuse() {
        assert_eq!(refusal(|_| {}), None);
        let path = || PathBuf::from(DISK);
        assert_eq!(refusal(|facts| facts.kind = FileKind::Missing), Some(Refusal::Missing(path())));
        assert_eq!(refusal(|facts| facts.kind = FileKind::Regular), Some(Refusal::NotBlock(path())));
        assert_eq!(refusal(|facts| facts.kind = FileKind::Other), Some(Refusal::NotBlock(path())));
        assert_eq!(refusal(|facts| facts.swap = true), Some(Refusal::Swap(path())));
        let part = || fstone_files::Exchangeable::Writable("/dev/shm".into());
        let refused = refusal(|facts| facts.exchangeable = Some(part()));
        assert_eq!(refused, Some(Refusal::Exchangeable { path: path(), part: part() }));
        assert_eq!(refusal(|facts| facts.read_only = true), Some(Refusal::ReadOnly(path())));
        assert!(matches!(refusal(|facts| facts.partitions = vec!["sdz1".into()]), Some(Refusal::Partitioned { .. })));
        // Only a guest's agent may call a disk its own.
        let partitioned = BlockFacts { partitions: vec!["sdz1".into()], ..disk() };
        let judged = judge(Path::new(DISK), &partitioned, &Purpose::GuestDisk, 0);
        assert!(matches!(judged, Err(Refusal::NotOurs(_))), "{judged:?}");
        assert!(matches!(refusal(|facts| facts.holders = vec!["md0".into()]), Some(Refusal::Held { .. })));
        assert!(matches!(refusal(|facts| facts.mounted_at = vec!["/home".into()]), Some(Refusal::Mounted { .. })));
        assert!(matches!(refusal(|facts| facts.exclusive = Err(libc::EBUSY)), Some(Refusal::InUse { .. })));
        assert!(matches!(refusal(|facts| facts.exclusive = Err(libc::EACCES)), Some(Refusal::InUse { .. })));
        assert!(matches!(refusal(|facts| facts.size_bytes = 4096), Some(Refusal::TooSmall { .. })));
        assert!(matches!(refusal(|facts| facts.size_bytes = 0), Some(Refusal::TooSmall { .. })));
    }

    #[test]
    fn only_what_was_named_may_be_destroyed() {
        let judged = |path: &str, allowed: &[&str]| {
            let allowed = allowed.iter().map(PathBuf::from).collect();
            judge(Path::new(path), &disk(), &Purpose::Named { allowed }, 0)
        };
        assert!(judged(DISK, &[DISK]).is_ok());
        // The study names a link; the person allowed the device, or the link.
        assert!(judged("/dev/disk/by-id/x", &[DISK]).is_ok());
        assert!(judged("/dev/disk/by-id/x", &["/dev/disk/by-id/x"]).is_ok());
        for allowed in [&[][..], &["/dev/sdy"], &["/dev/sdz1"], &["/dev"], &["/dev/disk/by-id/x"]] {
            let refused = judged(DISK, allowed);
            assert!(matches!(refused, Err(Refusal::NotAllowed { .. })), "{allowed:?}");
        }
    }

    #[test]
    fn a_loop_device_is_ours_only_when_our_image_is_behind_it() {
        let image = FileId { device: (254, 0), inode: 77 };
        for purpose in [Purpose::OwnImage(image), Purpose::OwnCopy(image)] {
            let judged = |backing| judge(Path::new(DISK), &BlockFacts { backing, ..disk() }, &purpose, 0);
            assert!(judged(Some(image)).is_ok());
            assert_eq!(judged(None), Err(Refusal::NotOurs(DISK.into())));
            assert_eq!(judged(Some(FileId { inode: 78, ..image })), Err(Refusal::NotOurs(DISK.into())));
        }
    }

    #[test]
    fn whatever_blkid_recognises_is_foreign() {
        let claimed = |status, stdout: &str| {
            let devices = FakeDevices::new();
            devices.set_facts(Path::new(DISK), disk());
            let output = CommandOutput { status, stdout: stdout.into(), ..CommandOutput::default() };
            let runner = FakeRunner::scripted([(format!("blkid -p -o export {DISK}"), output)]);
            let claimed = ScratchDevice::claim(Path::new(DISK), named(), 0, &devices, &runner);
            runner.finish();
            claimed
        };
        assert!(claimed(2, "").is_ok());
        for (status, stdout, signature) in [
            (0, "DEVNAME=/dev/sdz\nUUID=1\nTYPE=ext4\nLABEL=home\n", "ext4 labelled \"home\""),
            (0, "DEVNAME=/dev/sdz\nTYPE=crypto_LUKS\nUSAGE=crypto\n", "crypto_LUKS"),
            (0, "DEVNAME=/dev/sdz\nPTTYPE=gpt\n", "a partition table (gpt)"),
        ] {
            let expected = Refusal::ForeignSignature { path: DISK.into(), signature: signature.into() };
            assert_eq!(claimed(status, stdout), Err(expected));
        }
        assert!(matches!(claimed(8, ""), Err(Refusal::Unprobed { .. })));
        assert!(matches!(claimed(4, ""), Err(Refusal::Unprobed { .. })));
    }

    #[test]
    fn a_device_that_cannot_be_probed_is_refused() {
        let devices = FakeDevices::new();
        devices.set_facts(Path::new(DISK), disk());
        let claimed = ScratchDevice::claim(Path::new(DISK), named(), 0, &devices, &FakeRunner::new().without("blkid"));
        assert!(matches!(claimed, Err(Refusal::Unprobed { .. })));
    }

    /// blkid says 2 for a device that it cannot read, as for an empty one.
    #[test]
    fn a_device_that_cannot_be_read_is_not_taken_for_empty() {
        let devices = FakeDevices::new();
        devices.set_facts(Path::new(DISK), disk());
        devices.make_unreadable(Path::new(DISK));
        let runner = FakeRunner::new().answering("blkid", CommandOutput { status: 2, ..CommandOutput::default() });
        let claimed = ScratchDevice::claim(Path::new(DISK), named(), 0, &devices, &runner);
        assert!(matches!(claimed, Err(Refusal::Unprobed { .. })), "{claimed:?}");
    }

    #[test]
    fn a_claim_does_not_outlive_its_device() {
        let devices = FakeDevices::new();
        devices.set_facts(Path::new(DISK), disk());
        let nothing = CommandOutput { status: 2, ..CommandOutput::default() };
        let runner = FakeRunner::new().answering("blkid", nothing);
        let claimed = ScratchDevice::claim(Path::new(DISK), named(), 0, &devices, &runner).expect("nothing against it");
        assert_eq!(claimed.recheck(&devices), Ok(()));
        devices.set_facts(Path::new(DISK), BlockFacts { number: (8, 416), ..disk() });
        assert_eq!(claimed.recheck(&devices), Err(Refusal::Changed(DISK.into())));
        devices.set_facts(Path::new(DISK), BlockFacts { size_bytes: 1 << 31, ..disk() });
        assert_eq!(claimed.recheck(&devices), Err(Refusal::Changed(DISK.into())));
        devices.set_facts(Path::new(DISK), BlockFacts { mounted_at: vec!["/x".into()], ..disk() });
        assert!(matches!(claimed.recheck(&devices), Err(Refusal::Mounted { .. })));
        devices.set_facts(Path::new(DISK), BlockFacts { kind: FileKind::Missing, ..disk() });
        assert!(matches!(claimed.recheck(&devices), Err(Refusal::Changed(_) | Refusal::Missing(_))));
    }
}

//! A block device in place of a load's file.

use super::destroy::agree;
use crate::{
    exit::Exit,
    terminal::{Failure, OrExit},
};
use anyhow::{Context as _, anyhow};
use fstone_lab::{
    machine::Machine,
    place::device::{DeviceLock, ScratchDevice},
};
use fstone_model::{
    Workload,
    workload::{Existing, Fileset, Naming},
};
use std::path::{Path, PathBuf};

/// A device that is to be written and was named twice, locked until this is dropped; or one that is only read.
pub(super) struct ClaimedDevice {
    /// The load, with the device as its one file.
    pub(super) workload: Workload,
    /// The directory that the device's node is in.
    pub(super) directory: PathBuf,
    _locks: Option<[DeviceLock; 2]>,
}

impl ClaimedDevice {
    pub(super) fn claim(
        device: &Path,
        allowed: &[PathBuf],
        allowed_data: &[PathBuf],
        mut workload: Workload,
    ) -> Result<Self, Failure> {
        let needed = only_fileset(&mut workload)?.size.typical_bytes();
        let machine = Machine::host();
        let (devices, runner) = (&*machine.devices, &*machine.runner);
        let (claimed, lock) = ScratchDevice::claim_locked(device, allowed, needed, devices, runner)
            .context("refused")
            .or_exit(Exit::CannotHere)?;
        let (path, number) = (claimed.path(), claimed.number());
        agree(&claimed, device, devices, allowed_data, "overwritten")?;
        let hold = devices.hold(path, number).context("refused").or_exit(Exit::CannotHere)?;
        Ok(Self { _locks: Some([lock, hold]), ..Self::at(path, workload)? })
    }

    /// A device of a load that only reads it, which may be in use.
    pub(super) fn read(device: &Path, workload: Workload) -> Result<Self, Failure> {
        let path = device.canonicalize().with_context(|| device.display().to_string()).or_exit(Exit::BadInput)?;
        Self::at(&path, workload)
    }

    fn at(path: &Path, mut workload: Workload) -> Result<Self, Failure> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
            return Err(anyhow!("{}: this is not a path of a device", path.display())).or_exit(Exit::BadInput);
        };
        let files = only_fileset(&mut workload)?;
        files.naming = Naming { file_prefix: name.to_owned(), exact: true, ..Naming::default() };
        files.directory = String::new();
        files.existing = Existing::Require;
        Ok(Self { directory: directory.to_owned(), workload, _locks: None })
    }
}

fn only_fileset(workload: &mut Workload) -> Result<&mut Fileset, Failure> {
    let filesets = workload.filesets.len();
    match workload.filesets.as_mut_slice() {
        [files] => Ok(files),
        _ => Err(anyhow!("a device is one file, and the load has {filesets} filesets")).or_exit(Exit::BadInput),
    }
}

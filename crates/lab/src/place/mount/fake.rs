//! A mounter that mounts nothing: for tests of everything above it.

use super::{MountEntry, MountError, MountRequest, Mounter, UnmountError};
use crate::faults::Faults;
use std::{
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

#[derive(Debug, Default)]
pub struct FakeMounter {
    faults: Arc<Faults>,
    refused: Vec<(String, String)>,
    unknown: Vec<String>,
    mounts: Mutex<Vec<MountEntry>>,
}

impl FakeMounter {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn with_faults(mut self, faults: Arc<Faults>) -> Self {
        self.faults = faults;
        self
    }

    #[must_use]
    pub fn refusing(mut self, option: &str, words: &str) -> Self {
        self.refused.push((option.to_owned(), words.to_owned()));
        self
    }

    #[must_use]
    pub fn without(mut self, kernel_name: &str) -> Self {
        self.unknown.push(kernel_name.to_owned());
        self
    }
}

impl FakeMounter {
    fn call(&self) -> io::Result<()> {
        if self.faults.strikes() { Err(io::Error::from_raw_os_error(libc::EIO)) } else { Ok(()) }
    }
}

impl Mounter for FakeMounter {
    fn mount(&self, request: &MountRequest) -> Result<(), MountError> {
        if self.faults.strikes() {
            return Err(MountError::Failed { call: "fsconfig", errno: 5, words: "injected fault".into() });
        }
        if !self.kernel_has(&request.kernel_name) {
            return Err(MountError::UnknownFilesystem { kernel_name: request.kernel_name.clone() });
        }
        if let Some((option, words)) =
            self.refused.iter().find(|(option, _)| request.options.split(',').any(|w| w == option))
        {
            return Err(MountError::Refused { option: Some(option.clone()), words: words.clone() });
        }
        let mut mounts = self.mounts.lock().unwrap_or_else(PoisonError::into_inner);
        let source = request.source.to_string_lossy();
        let digits: String = source.chars().filter(char::is_ascii_digit).collect();
        let major = if source.contains("zram") { 252 } else { 7 };
        let entry = MountEntry {
            id: mounts.len() as u64 + 1,
            device: (major, digits.parse().unwrap_or(0)),
            root: "/".into(),
            target: request.target.clone(),
            kernel_name: request.kernel_name.clone(),
            source: request.source.display().to_string(),
            mount_options: "rw,relatime".into(),
            superblock_options: request.options.clone(),
        };
        mounts.push(entry);
        Ok(())
    }

    fn unmount(&self, target: &Path) -> Result<(), UnmountError> {
        if self.faults.strikes() {
            return Err(UnmountError::Busy { target: target.to_owned(), by: vec!["injected fault (1)".into()] });
        }
        let mut mounts = self.mounts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = mounts.iter().rposition(|mount| mount.target == target) else {
            return Err(UnmountError::Failed { target: target.to_owned(), cause: io::ErrorKind::InvalidInput.into() });
        };
        mounts.remove(at);
        Ok(())
    }

    fn mounts(&self) -> io::Result<Vec<MountEntry>> {
        Ok(self.mounts.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn drop_caches(&self) -> io::Result<()> {
        self.call()
    }

    fn sync(&self, _target: &Path) -> io::Result<()> {
        self.call()
    }

    fn flush(&self, _target: &Path) -> io::Result<()> {
        self.call()
    }

    fn trim(&self, _target: &Path) -> io::Result<()> {
        self.call()
    }

    fn namespace_ended(&self) {
        self.mounts.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn kernel_has(&self, kernel_name: &str) -> bool {
        !self.unknown.iter().any(|unknown| unknown == kernel_name)
    }
}

//! Filesystems that a study defines itself: its own commands make, mount and remove them.
//!
//! They are part of the plan, so that a stored run can be repeated. The commands come from a file that a stranger may have
//! written, so those of a plan from outside are never run without asking.

use serde::{Deserialize, Serialize};

pub const MAXIMUM_CLIENTS: u32 = 64;

/// How a filesystem of the study's own is made and mounted. A command is a program and its arguments, and empty where there is
/// none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnFilesystem {
    #[serde(default)]
    pub make: Vec<String>,
    /// Mounts it, once for each client.
    pub mount: Vec<String>,
    /// Unmounts it, once for each client; umount(2) does where it is empty.
    #[serde(default)]
    pub unmount: Vec<String>,
    /// Checks it, unmounted.
    #[serde(default)]
    pub check: Vec<String>,
    /// Removes what `make` made. It may run twice, and after an unfinished `make`.
    #[serde(default)]
    pub remove: Vec<String>,
    /// Debian packages that have its programs.
    #[serde(default)]
    pub packages: Vec<String>,
    /// How often it is mounted, each time in a place of its own.
    pub clients: u32,
}

crate::named! {
    /// The commands in the order in which a trial runs them, and their keys in a study.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum OwnCommand: word, ALL {
        Make => "make",
        Mount => "mount",
        Unmount => "unmount",
        Check => "check",
        Remove => "remove",
    }
}

impl OwnCommand {
    /// What the lab substitutes for names in braces. There is a mount point only if something is mounted, and undoing must not
    /// need a device that a killed run has lost.
    pub const fn placeholders(self) -> &'static [&'static str] {
        match self {
            Self::Make | Self::Check => &["directory", "host", "device"],
            Self::Mount => &["mountpoint", "client", "directory", "host", "device"],
            Self::Unmount => &["mountpoint", "client", "directory", "host"],
            Self::Remove => &["directory", "host"],
        }
    }
}

impl OwnFilesystem {
    /// One of its commands; empty when it has none.
    pub fn command(&self, which: OwnCommand) -> &[String] {
        match which {
            OwnCommand::Make => &self.make,
            OwnCommand::Mount => &self.mount,
            OwnCommand::Unmount => &self.unmount,
            OwnCommand::Check => &self.check,
            OwnCommand::Remove => &self.remove,
        }
    }

    pub fn commands(&self) -> impl Iterator<Item = (OwnCommand, &[String])> {
        OwnCommand::ALL.into_iter().map(|which| (which, self.command(which))).filter(|(_, words)| !words.is_empty())
    }

    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.commands().flat_map(|(_, words)| words).map(String::as_str)
    }

    pub fn words_mut(&mut self) -> impl Iterator<Item = &mut String> {
        [&mut self.make, &mut self.mount, &mut self.unmount, &mut self.check, &mut self.remove].into_iter().flatten()
    }

    pub fn needs_device(&self) -> bool {
        self.words().any(|word| word.contains("{device}"))
    }
}

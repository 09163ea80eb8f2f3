//! What a kernel on this host is.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What names of kernels that count their work end with, unless the user names them.
pub(super) const COUNTING: &str = "-counting";

/// The parameters by which kernels are known that have time travel, and those of them that `kernel/work.patch` lets count.
pub(super) const TIME_TRAVEL: &[u8] = b"time-travel=ext:";
pub(super) const COUNTS: &[u8] = b"work_price=";

pub(super) fn knows(image: &[u8], parameter: &[u8]) -> bool {
    image.windows(parameter.len()).any(|window| window == parameter)
}

fstone_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Flavour: word {
        Uml => "uml",
        Qemu => "qemu",
        /// User-mode Linux whose time is simulated.
        Exact => "exact",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    pub flavour: Flavour,
    /// `uname -r` of it ("6.1.176").
    pub release: String,
    /// Where it came from: package, version and suite, or a path.
    pub source: String,
    /// `linux.uml`, `vmlinuz` or `vmlinux`.
    pub binary: PathBuf,
    pub modules: Option<PathBuf>,
    /// A C library for it, newer than the host's.
    pub libraries: Option<PathBuf>,
    /// Whether it counts its work, and can be charged for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts: bool,
}

impl Kernel {
    /// What a study calls it ("uml:6.1.176").
    pub fn name(&self) -> String {
        format!("{}:{}", self.flavour.word(), self.release)
    }

    /// As user-mode Linux takes it; `None` when it is not one.
    pub fn as_uml(&self) -> Option<crate::uml::UmlKernel> {
        (self.flavour != Flavour::Qemu).then(|| crate::uml::UmlKernel {
            binary: self.binary.clone(),
            modules: self.modules.clone(),
            libraries: self.libraries.clone(),
        })
    }

    pub(super) fn in_normal_time(self) -> Self {
        Self { flavour: Flavour::Uml, ..self }
    }

    /// SHA-256 of the kernel itself, in hexadecimal digits.
    pub fn digest(&self) -> io::Result<String> {
        let digest = Sha256::digest(fs::read(&self.binary)?);
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub(super) fn with_paths(mut self, change: impl Fn(&Path) -> PathBuf) -> Self {
        self.binary = change(&self.binary);
        self.modules = self.modules.as_deref().map(&change);
        self.libraries = self.libraries.as_deref().map(&change);
        self
    }

    /// Whether "uml:6.1" means it: the version may be shortened at its dots. "6.1" is not 6.12, and not a kernel that counts.
    pub(super) fn answers_to(&self, name: &str) -> bool {
        let whole = self.name();
        let is_meant = |rest: &str| rest.is_empty() || (rest.starts_with(['.', '-', '+']) && !self.counts);
        whole.strip_prefix(name).is_some_and(is_meant)
    }
}

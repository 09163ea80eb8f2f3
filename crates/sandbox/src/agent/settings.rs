//! What the host tells the agent through the kernel's command line, which becomes process 1's environment.

use std::path::PathBuf;

/// The terminal or port that is the channel: `/dev/ttyS0`, or `virtio:NAME` for a named virtio-serial port.
pub const CHANNEL: &str = "FSTONE_CHANNEL";

/// Instead of a channel: the guest is an exact one.
pub const EXACT: &str = "FSTONE_EXACT";

/// The directory with `modules.dep`; absent when nothing is to be loaded.
pub const MODULES: &str = "FSTONE_MODULES";

/// Modules to load before hello, comma separated, in this order, dependencies understood.
pub const LOAD: &str = "FSTONE_LOAD";

const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const TMPDIR: &str = "TMPDIR=/run/tmp";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    pub channel: String,
    pub modules: Option<PathBuf>,
    pub load: Vec<String>,
}

impl Settings {
    pub(crate) fn from_environment() -> Result<Self, String> {
        let channel = std::env::var(CHANNEL).map_err(|error| format!("{CHANNEL}: {error}"))?;
        let load = std::env::var(LOAD).unwrap_or_default();
        Ok(Self {
            channel,
            modules: std::env::var_os(MODULES).map(PathBuf::from),
            load: load.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        })
    }

    /// The words for a kernel's command line. Whether they can be spoken is for the caller to check.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec![format!("{CHANNEL}={}", self.channel), PATH.to_owned(), TMPDIR.to_owned()];
        if let Some(modules) = &self.modules {
            words.push(format!("{MODULES}={}", modules.display()));
        }
        if !self.load.is_empty() {
            words.push(format!("{LOAD}={}", self.load.join(",")));
        }
        words
    }
}

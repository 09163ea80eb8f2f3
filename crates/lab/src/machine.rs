//! The borders of the lab, gathered: everything that reaches outside this process.

use crate::{
    command::{CommandRunner, FakeRunner, SystemRunner},
    faults::Faults,
    place::{
        device::{Devices, FakeDevices, KernelDevices},
        mount::{FakeMounter, KernelMounter, Mounter},
    },
    stop::Stop,
    trial::{EngineLoader, FakeLoader, Loader},
};
use std::sync::Arc;

/// What a trial is carried out with. Each border has a fake, so that all above them can be tested without rights.
#[derive(Clone)]
pub struct Machine {
    /// Runs commands.
    pub runner: Arc<dyn CommandRunner>,
    /// Mounts.
    pub mounter: Arc<dyn Mounter>,
    /// Sets up devices.
    pub devices: Arc<dyn Devices>,
    /// Runs loads.
    pub loader: Arc<dyn Loader>,
    /// Asks commands and loads to stop.
    pub stop: Arc<Stop>,
    /// Whether it may make devices and mount (root).
    pub privileged: bool,
    /// Whether trials are made by processes of their own; a fake machine is known in this one only.
    pub apart: bool,
}

impl Machine {
    /// The machine this process runs on.
    #[must_use]
    pub fn host() -> Self {
        let stop = Arc::new(Stop::default());
        Self {
            runner: Arc::new(SystemRunner::new(Arc::clone(&stop))),
            mounter: Arc::new(KernelMounter),
            devices: Arc::new(KernelDevices),
            loader: Arc::new(EngineLoader),
            stop,
            privileged: rustix::process::geteuid().is_root(),
            apart: true,
        }
    }

    /// A machine on which everything succeeds and nothing happens, for tests.
    #[must_use]
    pub fn fake() -> Self {
        Self::with_faults(&Arc::new(Faults::none()))
    }

    /// A fake machine on which one call fails.
    #[must_use]
    pub fn with_faults(faults: &Arc<Faults>) -> Self {
        Self {
            runner: Arc::new(FakeRunner::new().with_faults(Arc::clone(faults))),
            mounter: Arc::new(FakeMounter::new().with_faults(Arc::clone(faults))),
            devices: Arc::new(FakeDevices::new().with_faults(Arc::clone(faults))),
            loader: Arc::new(FakeLoader::new().with_faults(Arc::clone(faults))),
            stop: Arc::new(Stop::default()),
            privileged: true,
            apart: false,
        }
    }
}

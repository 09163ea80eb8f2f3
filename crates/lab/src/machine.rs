//! The borders of the lab, gathered: everything that reaches outside this process.

use crate::{
    command::{CommandRunner, SystemRunner},
    place::{
        device::{Devices, KernelDevices},
        mount::{KernelMounter, Mounter},
    },
    stop::Stop,
    trial::{EngineLoader, Loader},
};
use std::sync::Arc;

/// What a trial is carried out with. Each border has a fake, so that all above them can be tested without rights.
#[derive(Clone)]
pub struct Machine {
    pub runner: Arc<dyn CommandRunner>,
    pub mounter: Arc<dyn Mounter>,
    pub devices: Arc<dyn Devices>,
    pub loader: Arc<dyn Loader>,
    pub stop: Arc<Stop>,
    /// Whether it may make devices and mount (root).
    pub privileged: bool,
    /// Whether trials are made by processes of their own; a fake machine is known in this one only.
    #[cfg(any(test, feature = "fakes"))]
    pub apart: bool,
}

impl Machine {
    pub fn host() -> Self {
        let stop = Arc::new(Stop::default());
        Self {
            runner: Arc::new(SystemRunner::new(Arc::clone(&stop))),
            mounter: Arc::new(KernelMounter),
            devices: Arc::new(KernelDevices),
            loader: Arc::new(EngineLoader::default()),
            stop,
            privileged: rustix::process::geteuid().is_root(),
            #[cfg(any(test, feature = "fakes"))]
            apart: true,
        }
    }
}

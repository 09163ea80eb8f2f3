//! A machine that is not there, for tests of all that is above its borders.

use crate::{
    command::FakeRunner,
    faults::Faults,
    machine::Machine,
    place::{device::FakeDevices, mount::FakeMounter},
    stop::Stop,
    trial::FakeLoader,
};
use std::sync::Arc;

impl Machine {
    pub fn fake() -> Self {
        Self::with_faults(&Arc::new(Faults::none()))
    }

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

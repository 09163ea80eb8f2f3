//! An agent in this process, on a machine that is a fake.

use super::{
    protocol::{Advice, AgentHost, Question},
    served::Served,
};
use crate::{events::LoadProgress, machine::Machine, stop::Stop};
use fstone_sandbox::{agent::LoadError, guest::JobEnd};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) struct Here {
    served: Served,
    machine: Machine,
}

impl Here {
    pub(crate) fn new(machine: &Machine) -> Self {
        let machine = Machine { stop: Arc::new(Stop::default()), ..machine.clone() };
        Self { served: Served::new(machine.clone()), machine }
    }

    pub(super) fn ask(&mut self, kind: &str, body: &[u8], progress: &mut (dyn FnMut(LoadProgress) + Send)) -> JobEnd {
        match self.served.serve(kind, body, &NoHost(Mutex::new(progress))) {
            Ok(body) => JobEnd::Done(body),
            Err(words) => JobEnd::Failed(words),
        }
    }

    /// What the kernel does when a process ends that has mounts of its own.
    pub(super) fn end(&self) {
        self.machine.mounter.namespace_ended();
    }
}

struct NoHost<'a>(Mutex<&'a mut (dyn FnMut(LoadProgress) + Send)>);

impl AgentHost for NoHost<'_> {
    fn progress(&self, progress: &LoadProgress) {
        (self.0.lock().unwrap_or_else(PoisonError::into_inner))(progress.clone());
    }

    fn load_module(&self, name: &str) -> Result<(), LoadError> {
        Err(LoadError::Unknown(name.to_owned()))
    }

    fn ask(&self, _question: &Question) -> Result<Advice, String> {
        Err("nobody is there to be asked".to_owned())
    }
}

//! The lab's end of an agent, wherever that is.

use super::{
    protocol::{Progress, decode},
    served::{Beyond, Served},
};
use crate::{events::LoadProgress, machine::Machine, stop::Stop};
use fstone_sandbox::{
    agent::LoadError,
    guest::{Event, Guest, GuestReport, JobEnd},
};
use std::{
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    time::Duration,
};

/// An agent that is up.
pub(crate) enum Link {
    /// Across a channel: a child process, or process 1 of a guest.
    Channel(Box<Guest>),
    /// In this process, on a machine that is a fake.
    Here(Box<Here>),
}

pub(crate) struct Here {
    served: Served,
    machine: Machine,
}

impl Link {
    /// An agent in this process. It has a flag to stop of its own, as across a channel.
    pub(crate) fn here(machine: &Machine) -> Self {
        let machine = Machine { stop: Arc::new(Stop::default()), ..machine.clone() };
        Self::Here(Box::new(Here { served: Served::new(machine.clone()), machine }))
    }

    /// Has a job done, for at most `limit`; the agent is killed when `stop` becomes true.
    pub(crate) fn ask(
        &mut self,
        kind: &str,
        body: &[u8],
        limit: Duration,
        stop: &AtomicBool,
        progress: &mut (dyn FnMut(LoadProgress) + Send),
    ) -> JobEnd {
        match self {
            Self::Channel(guest) => guest.run_until(kind, body, limit, stop, &mut |event| {
                if let Event::Progress(text) = event
                    && let Ok(told) = decode::<Progress>(text.as_bytes())
                {
                    progress(told.into());
                }
            }),
            Self::Here(here) => match here.served.serve(kind, body, &Nobody(Mutex::new(progress))) {
                Ok(body) => JobEnd::Done(body),
                Err(words) => JobEnd::Failed(words),
            },
        }
    }

    /// Has it end in peace.
    pub(crate) fn dismiss(&mut self) {
        match self {
            Self::Channel(guest) => guest.dismiss(),
            Self::Here(here) => here.end(),
        }
    }

    /// What there is to say of one that has ended.
    pub(crate) fn report(self) -> Option<GuestReport> {
        match self {
            Self::Channel(guest) => Some(guest.finish()),
            Self::Here(_) => None,
        }
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        match self {
            Self::Channel(guest) => guest.kill_now(),
            Self::Here(here) => here.end(),
        }
    }

    /// Whether all of it is gone, or is within this time.
    pub(crate) fn is_gone_within(&mut self, limit: Duration) -> bool {
        match self {
            Self::Channel(guest) => guest.is_gone_within(limit),
            Self::Here(_) => true,
        }
    }
}

impl Here {
    /// What the kernel does when a process ends that has mounts of its own.
    fn end(&self) {
        self.machine.mounter.namespace_ended();
    }
}

/// Beyond an agent in this process.
struct Nobody<'a>(Mutex<&'a mut (dyn FnMut(LoadProgress) + Send)>);

impl Beyond for Nobody<'_> {
    fn progress(&self, progress: &LoadProgress) {
        (self.0.lock().unwrap_or_else(PoisonError::into_inner))(progress.clone());
    }

    fn load_module(&self, name: &str) -> Result<(), LoadError> {
        Err(LoadError::Unknown(name.to_owned()))
    }
}

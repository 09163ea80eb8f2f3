//! The lab's end of an agent, wherever that is.

#[cfg(any(test, feature = "fakes"))]
use super::here::Here;
use super::protocol::decode;
use crate::events::LoadProgress;
use fstone_sandbox::guest::{Event, Guest, GuestReport, JobEnd};
use std::{sync::atomic::AtomicBool, time::Duration};

pub(crate) enum Link {
    /// Across a channel: a child process, or process 1 of a guest.
    Channel(Box<Guest>),
    /// In this process, on a machine that is a fake.
    #[cfg(any(test, feature = "fakes"))]
    Here(Box<Here>),
}

impl Link {
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
                    && let Ok(told) = decode(text.as_bytes())
                {
                    progress(told);
                }
            }),
            #[cfg(any(test, feature = "fakes"))]
            Self::Here(here) => here.ask(kind, body, progress),
        }
    }

    pub(crate) fn dismiss(&mut self) {
        match self {
            Self::Channel(guest) => guest.dismiss(),
            #[cfg(any(test, feature = "fakes"))]
            Self::Here(here) => here.end(),
        }
    }

    pub(crate) fn report(self) -> Option<GuestReport> {
        match self {
            Self::Channel(guest) => Some(guest.finish()),
            #[cfg(any(test, feature = "fakes"))]
            Self::Here(_) => None,
        }
    }

    pub(crate) fn kill(&mut self) {
        match self {
            Self::Channel(guest) => guest.kill_now(),
            #[cfg(any(test, feature = "fakes"))]
            Self::Here(here) => here.end(),
        }
    }

    /// The process that holds all of it; it is there for as long as any other.
    pub(crate) fn process(&self) -> Option<u32> {
        match self {
            Self::Channel(guest) => Some(guest.process()),
            #[cfg(any(test, feature = "fakes"))]
            Self::Here(_) => None,
        }
    }

    pub(crate) fn not_enforced(&self) -> Option<String> {
        match self {
            Self::Channel(guest) => guest.not_enforced(),
            #[cfg(any(test, feature = "fakes"))]
            Self::Here(_) => None,
        }
    }

    pub(crate) fn is_gone_within(&mut self, limit: Duration) -> bool {
        match self {
            Self::Channel(guest) => guest.is_gone_within(limit),
            #[cfg(any(test, feature = "fakes"))]
            Self::Here(_) => true,
        }
    }
}

//! Models of drives: when would this request be complete?
//!
//! A [`Model`] is a file of parameters, each with its source. A [`Drive`] of it is handed requests at points of virtual time and says
//! what completes when. There is no clock here, no I/O, no random number and no function whose last bit depends on the machine
//! (sums, products and square roots of IEEE numbers do not): the same requests give the same nanoseconds everywhere.
//!
//! Reading order: [`Model`]; [`Drive`]; `disk` (platters and heads) and `ssd`; [`curves`] for what a model comes to.

mod commands;
mod constant;
pub mod curves;
mod disk;
mod model;
mod request;
mod ssd;
#[cfg(test)]
mod testing;

use disk::Disk;
pub use model::{Kind, Model, ModelError, Parameter, Processor};
pub use request::{Request, SECTOR_BYTES};

use constant::Constant;
use ssd::Ssd;

/// A drive of some model at work. Times that it is given never go back.
#[derive(Debug)]
pub struct Drive(Inside);

#[derive(Debug)]
enum Inside {
    Constant(Constant),
    Disk(Box<Disk>),
    Ssd(Box<Ssd>),
}

impl Drive {
    pub fn new(model: &Model, capacity_bytes: u64) -> Self {
        Self(match model.kind() {
            Kind::Constant => Inside::Constant(Constant::new(model)),
            Kind::Disk => Inside::Disk(Box::new(Disk::new(model, capacity_bytes))),
            Kind::Ssd => Inside::Ssd(Box::new(Ssd::new(model))),
        })
    }

    pub const fn unmaps(&self) -> bool {
        !matches!(self.0, Inside::Disk(_))
    }

    /// Whether what is acknowledged survives a loss of power without a flush.
    pub fn is_durable(&self) -> bool {
        match &self.0 {
            Inside::Constant(_) => false,
            Inside::Disk(disk) => disk.is_durable(),
            Inside::Ssd(ssd) => ssd.is_durable(),
        }
    }

    /// Whether writes are acknowledged before they are on the medium, where the model has a cache.
    pub fn set_write_back(&mut self, write_back: bool) {
        match &mut self.0 {
            Inside::Constant(_) => {}
            Inside::Disk(disk) => disk.set_write_back(write_back),
            Inside::Ssd(ssd) => ssd.set_write_back(write_back),
        }
    }

    /// Takes a request. `id` comes back with its completion.
    pub fn submit(&mut self, now_ns: u64, id: u64, request: &Request) {
        match &mut self.0 {
            Inside::Constant(constant) => constant.submit(now_ns, id, request),
            Inside::Disk(disk) => disk.submit(now_ns, id, request),
            Inside::Ssd(ssd) => ssd.submit(now_ns, id, request),
        }
    }

    /// When something happens next, if nothing is asked until then: no completion comes before that.
    pub fn next_event(&self) -> Option<u64> {
        match &self.0 {
            Inside::Constant(constant) => constant.done.next(),
            Inside::Disk(disk) => disk.next_event(),
            Inside::Ssd(ssd) => ssd.next_event(),
        }
    }

    /// The next request that is complete by now: when it was, and its id. To be called until there is none.
    pub fn completed(&mut self, now_ns: u64) -> Option<(u64, u64)> {
        match &mut self.0 {
            Inside::Constant(constant) => constant.done.pop(now_ns),
            Inside::Disk(disk) => disk.completed(now_ns),
            Inside::Ssd(ssd) => ssd.completed(now_ns),
        }
    }
}

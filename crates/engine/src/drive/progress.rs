//! How far a thread has come in its program, and what it has done on the way.

use crate::measure::Done;
use crate::plan::Program;
use fstone_model::workload::PaceUnit;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) operations: u64,
    transfers: u64,
    pub(super) bytes: u64,
}

impl Count {
    fn add(&mut self, done: Done) {
        let bytes = done.read_bytes + done.written_bytes;
        self.operations += 1;
        self.transfers += u64::from(bytes > 0);
        self.bytes += bytes;
    }
}

#[derive(Debug, Default)]
pub(super) struct ProgramProgress {
    pub(super) at: usize,
    /// How often the present action is still to be performed.
    pub(super) left: u64,
    /// Rounds that are left of the steps that are repeated, by how deep they are.
    pub(super) rounds: Vec<u64>,
    /// What the thread has done by action, where some step asks.
    done: Vec<Count>,
    /// What each step that holds the thread back has seen of that.
    seen: Vec<Option<Count>>,
}

impl ProgramProgress {
    pub(super) fn of(program: &Program, actions: usize) -> Self {
        Self {
            at: 0,
            left: 0,
            rounds: vec![0; program.depth],
            done: vec![Count::default(); if program.counter.is_some() { actions } else { 0 }],
            seen: vec![None; program.paces],
        }
    }

    #[inline]
    pub(super) fn completed(&mut self, program: &Program, index: usize, done: Done) {
        if let Some(counter) = &program.counter {
            self.done[index].add(done);
            counter.done(done.read_bytes + done.written_bytes);
        }
    }

    pub(super) fn sum(&self, of: Option<&[usize]>) -> Count {
        let mut sum = Count::default();
        let mut add = |count: &Count| {
            sum.operations += count.operations;
            sum.transfers += count.transfers;
            sum.bytes += count.bytes;
        };
        match of {
            Some(of) => of.iter().for_each(|index| add(&self.done[*index])),
            None => self.done.iter().for_each(add),
        }
        sum
    }

    /// Events that a step wants for what was done since the last time; at first none, as for nothing.
    pub(super) fn due(&mut self, number: usize, unit: PaceUnit, of: Option<&[usize]>) -> f64 {
        if unit == PaceUnit::Rounds {
            return 1.0;
        }
        let now = self.sum(of);
        let before = self.seen[number].replace(now).unwrap_or_default();
        match unit {
            PaceUnit::Rounds => 1.0,
            PaceUnit::Operations => (now.operations - before.operations) as f64,
            PaceUnit::Transfers => (now.transfers - before.transfers) as f64,
            PaceUnit::Mebibytes => (now.bytes - before.bytes) as f64 / f64::from(1 << 20),
        }
    }
}

//! A command line in the words of the model.

use super::command::Ior;
use crate::loads::letters;
use fstone_model::workload::{
    Action, Actions, Amount, ErrorPolicy, Existing, Extent, Fileset, FinishUnit, Naming, Operation, PADDED_RANK,
    Pattern, Phase, Runs, Sharing, SizeDistribution, Step, Stop, ThreadGroup, Transfer, Workload,
};

const HANDLE: u32 = 0;
pub(super) const OPEN: &str = "open";
pub(super) const FSYNC: &str = "fsync";
pub(super) const CLOSE: &str = "close";

fstone_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Access: name {
        Write => "write",
        Read => "read",
    }
}

/// A phase that has a line in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    pub access: Access,
    /// From 0.
    pub repetition: u64,
    pub phase: String,
    /// The name of the phase that makes it durable, where that is apart.
    pub sync: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The load, in the directory of the file. Each repetition has a fileset.
    pub workload: Workload,
    pub stages: Vec<Stage>,
}

impl Ior {
    pub fn plan(&self) -> Plan {
        let (mut phases, mut stages) = (Vec::new(), Vec::new());
        for repetition in 0..self.repetitions {
            let name = |what: &str| {
                if self.repetitions == 1 { what.to_owned() } else { format!("{what}, repetition {}", repetition + 1) }
            };
            for (access, done) in [(Access::Write, self.write), (Access::Read, self.read)] {
                if !done {
                    continue;
                }
                let phase = name(access.name());
                phases.push(self.phase(access, &phase, repetition));
                // What a deadline ends does not come to its fsync.
                let apart = self.fsync && self.deadline.is_some() && access == Access::Write;
                let sync = apart.then(|| name("write: sync"));
                phases.extend(sync.as_ref().map(|name| self.sync(name, repetition)));
                stages.push(Stage { access, repetition, phase, sync });
            }
        }
        let filesets = (0..self.repetitions).map(|repetition| self.fileset(repetition)).collect();
        let workload = letters::workload("ior", filesets, phases, self.direct, ErrorPolicy::Stop);
        Plan { workload, stages }
    }

    fn fileset(&self, repetition: u64) -> Fileset {
        let (name, tail) = (self.name(), self.tail(repetition));
        let (file_prefix, ranks) = if self.file_per_process {
            (format!("{name}.{PADDED_RANK}{tail}"), Sharing::Names)
        } else {
            (format!("{name}{tail}"), Sharing::Shared)
        };
        let naming = Naming { file_prefix, exact: true, ..Naming::default() };
        // A file that all share is made by the first task, empty; one of its own by each, within the time.
        let (bytes, preallocated) = match (self.write, self.file_per_process) {
            (true, true) => (self.task_bytes(), 0.0),
            (true, false) => (0, 1.0),
            (false, _) => (self.task_bytes(), 1.0),
        };
        Fileset {
            naming,
            ranks,
            preallocated,
            existing: if self.write { Existing::Rebuild } else { Existing::Assume },
            ..Fileset::new(format!("file {}", repetition + 1), Amount::Files(1), SizeDistribution::Fixed(bytes))
        }
    }

    fn phase(&self, access: Access, name: &str, repetition: u64) -> Phase {
        let transfer = Transfer {
            extent: Extent::Bytes(self.transfer_bytes),
            block_bytes: self.transfer_bytes,
            pattern: Pattern::Runs(self.runs()),
            fsync: self.fsync_per_write && access == Access::Write,
        };
        let (open, moves) = match access {
            Access::Write if self.file_per_process => {
                (Operation::Create { block_bytes: 0, fsync: false }, Operation::Write(transfer))
            }
            Access::Write => (Operation::Open, Operation::Write(transfer)),
            Access::Read => (Operation::Open, Operation::Read(transfer)),
        };
        let perform = |action: (&str, Operation), times| step(action.0, action.1, repetition, times);
        let mut steps = vec![perform((OPEN, open), 1)];
        steps.push(perform((access.name(), moves), self.task_bytes() / self.transfer_bytes.max(1)));
        if access == Access::Write && self.fsync && self.deadline.is_none() {
            steps.push(perform((FSYNC, Operation::Fsync), 1));
        }
        steps.extend([perform((CLOSE, Operation::Close), 1), finish()]);
        let operations = self.deadline.is_none().then(|| performed(&steps));
        let stop = Stop { time: self.deadline, operations, wear_out: self.wear_out, ..Stop::default() };
        let mut phase = Phase::new(name, vec![ThreadGroup::new(name, 1, Actions::Program(steps))], stop);
        if access == Access::Read {
            phase.node_shift = self.offset();
        }
        phase
    }

    fn runs(&self) -> Runs {
        Runs {
            run_bytes: self.block_bytes,
            total_bytes: self.task_bytes(),
            interleaved: !self.file_per_process,
            shuffled: self.random,
            ..Runs::default()
        }
    }

    /// Makes durable what was written until a deadline.
    fn sync(&self, name: &str, repetition: u64) -> Phase {
        let steps = [(OPEN, Operation::Open), (FSYNC, Operation::Fsync), (CLOSE, Operation::Close)];
        let steps = steps.into_iter().map(|(name, operation)| step(name, operation, repetition, 1)).chain([finish()]);
        let steps: Vec<Step> = steps.collect();
        let stop = Stop { operations: Some(performed(&steps)), ..Stop::default() };
        Phase::new(name, vec![ThreadGroup::new(name, 1, Actions::Program(steps))], stop)
    }
}

fn step(name: &str, operation: Operation, repetition: u64, times: u64) -> Step {
    let fileset = Some(u32::try_from(repetition).unwrap_or(u32::MAX));
    let action = Action { handle: Some(HANDLE), ..Action::new(name, operation, fileset) };
    Step::Perform { action, times }
}

/// How many operations there are in steps that are gone through once.
fn performed(steps: &[Step]) -> u64 {
    steps.iter().map(|step| if let Step::Perform { times, .. } = step { *times } else { 0 }).sum()
}

fn finish() -> Step {
    Step::Finish { count: 1, unit: FinishUnit::Operations, of: Some(CLOSE.into()) }
}

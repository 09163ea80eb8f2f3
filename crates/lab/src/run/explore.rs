//! Many sequences of calls before power cuts, in several guests at once: each has a work directory, a filesystem and a disk of
//! its own, and takes the next sequence when it is done with one.

pub use crate::trial::{Explorer, SequenceFound};
use crate::{
    events::{ProgressSink, Silent},
    machine::Machine,
    place::{
        undo::UndoError,
        work_directory::{WorkDirectory, WorkDirectoryError},
    },
    run::carry_out::{LabError, LabOptions, clean_up},
    stop::Stop,
    trial::{AgentExecutor, Executor, Job, TrialEnd},
};
use fstone_engine::sequences::Sequence;
use fstone_model::{Cell, Outcome, result::TrialId};
use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

#[derive(Debug, Clone, PartialEq)]
pub enum Explored {
    All,
    Cancelled,
    /// The filesystem could not be made or mounted, or the guest not be booted.
    Not(Outcome),
}

/// Tries every sequence of an explorer on a filesystem, in so many guests at once.
///
/// The cell's last step is the power cut, which says how many states each sequence gets at most.
///
/// # Errors
/// When the lab failed. A guest that crashes or hangs is a result of its sequence, and another one takes its place.
pub fn explore(
    cell: &Cell,
    options: &LabOptions,
    (guests, seed): (usize, u64),
    explorer: &dyn Explorer,
    sink: &dyn ProgressSink,
    cancel: &AtomicBool,
) -> Result<Explored, LabError> {
    let machine = Machine::host();
    clean_up(&machine, &options.work_directory, &[], sink);
    let work = WorkDirectory::lock(&options.work_directory)?;
    let own = || Machine { stop: Arc::new(Stop::default()), ..machine.clone() };
    let places = (1..=guests.max(1)).map(|number| Ok((work.lane(number)?, own())));
    let places: Vec<_> = places.collect::<Result<_, WorkDirectoryError>>()?;
    let ends = Mutex::new(Vec::new());
    let give_up = AtomicBool::new(false);
    thread::scope(|scope| {
        for (place, machine) in &places {
            scope.spawn(|| {
                let end = lane(cell, seed, options, (machine, place), explorer, (cancel, &give_up));
                // One guest that cannot be had is no different from the others.
                if !matches!(end, Ok(Explored::All)) {
                    give_up.store(true, Ordering::Release);
                }
                ends.lock().unwrap_or_else(PoisonError::into_inner).push(end);
            });
        }
    });
    let ends = ends.into_inner().unwrap_or_else(PoisonError::into_inner);
    let ends: Vec<Explored> = ends.into_iter().collect::<Result<_, _>>()?;
    if cancel.load(Ordering::Acquire) {
        return Ok(Explored::Cancelled);
    }
    Ok(ends.into_iter().find(|end| matches!(end, Explored::Not(_))).unwrap_or(Explored::All))
}

/// What one guest takes of the sequences, counted: one that can do nothing is noticed.
struct Taking<'e> {
    all: &'e dyn Explorer,
    own: AtomicU64,
    stop: [&'e AtomicBool; 2],
}

impl Explorer for Taking<'_> {
    fn next(&self) -> Option<Sequence> {
        let stopped = self.stop.iter().any(|stop| stop.load(Ordering::Acquire));
        let next = if stopped { None } else { self.all.next() };
        if next.is_some() {
            self.own.fetch_add(1, Ordering::Relaxed);
        }
        next
    }

    fn found(&self, sequence: &Sequence, found: SequenceFound) -> Result<(), String> {
        self.all.found(sequence, found)
    }

    fn log(&self, sequence: &Sequence, found: &SequenceFound) -> Option<PathBuf> {
        self.all.log(sequence, found)
    }
}

fn lane(
    cell: &Cell,
    seed: u64,
    options: &LabOptions,
    (machine, place): (&Machine, &WorkDirectory),
    explorer: &dyn Explorer,
    (cancel, give_up): (&AtomicBool, &AtomicBool),
) -> Result<Explored, LabError> {
    let mut executor = AgentExecutor::new(machine, place, options, cancel)?;
    let id = TrialId { cell: cell.index, repetition: 0 };
    let failed = |cause| LabError::Trial { id, label: cell.label.clone(), cause };
    let stuck = |undo: Vec<UndoError>| LabError::Stuck { id, label: cell.label.clone(), undo };
    let end = loop {
        let taking = Taking { all: explorer, own: AtomicU64::new(0), stop: [cancel, give_up] };
        let job = Job { cell, id, position: 0, seed, direct: false, sink: &Silent, explorer: Some(&taking) };
        let trial = match executor.run(&job).map_err(failed)? {
            TrialEnd::Finished(trial) => trial,
            TrialEnd::Cancelled => break Explored::Cancelled,
            TrialEnd::Stuck(_, undo) => return Err(stuck(undo)),
        };
        let took_any = taking.own.load(Ordering::Relaxed) > 0;
        match trial.outcome {
            Outcome::Completed => break Explored::All,
            // What ended this guest is a result of its sequence.
            _ if took_any => {}
            outcome => break Explored::Not(outcome),
        }
    };
    let left = executor.close();
    if left.is_empty() { Ok(end) } else { Err(stuck(left)) }
}

//! How a load is run, and who watches.

use crate::io::CallLog;
use crate::peers::Peers;
use crate::promises::Witness;
use fstone_model::{Histogram, LoadReport, lately::Lately};
use std::sync::{Arc, atomic::AtomicBool};
use std::time::Duration;

/// Is told what the load does. Called from one thread, never from those that perform operations.
pub trait Observer: Sync {
    /// All files so far were there before, and were looked at. What that left in memory is not the load's doing, and may be dropped. Called before
    /// others are made, and again before the first phase if there are none.
    fn found(&self) {}
    /// A measured interval begins: all threads of a measured phase stand ready and have not yet done anything. Measured
    /// phases that follow one another are one interval. After a phase that is not measured, another one begins. Of several ranks all stand
    /// ready.
    fn measured_begin(&self) {}
    /// A measured interval has ended, with its sync, and on all ranks where there are several.
    fn measured_end(&self) {}
    /// A measured phase has ended, with its sync, and the next one follows in the same interval. What is done until that begins is in neither.
    fn phase_ended(&self) {}
    /// All threads of that next one stand ready.
    fn phase_begins(&self) {}
    /// Who remembers what the load was promised, if somebody wants to check that. Data is stamped then.
    fn witness(&self) -> Option<&Witness> {
        None
    }
    /// In a perturbed guest, its number: threads give up the processor now and then, in an order that follows from it.
    fn perturbation(&self) -> Option<u64> {
        None
    }
    fn peers(&self) -> Option<&dyn Peers> {
        None
    }
    /// Who takes down what the threads of this group ask of their files.
    fn call_log(&self, _group: &str) -> Option<Arc<dyn CallLog>> {
        None
    }
    /// The directories that hold the files of a fileset, given by its index, were made: so many, in so much time.
    fn directories_made(&self, _fileset: usize, _count: u64, _elapsed: Duration) {}
    /// About once per point of the series, and while filesets are built.
    fn progress(&self, _progress: &Progress) {}
    /// Whether it wants the report of what was done so far. Asked often while a measured phase runs.
    fn wants_report(&self) -> bool {
        false
    }
    /// Whether it will want that often: threads then note their figures at each point of the series, and not only once somebody wanted
    /// them, who has to wait for the next point.
    fn wants_reports(&self) -> bool {
        false
    }
    /// What was done so far, of each thread until the last point of the series that is over. Threads that have not begun are not in it.
    fn report_so_far(&self, _report: LoadReport) {}
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// The phase's name; "setup" while filesets are built, "final sync" at the end of a measured interval, "sync" ahead of one that
    /// follows a phase that is not measured.
    pub phase: String,
    /// Time in this phase.
    pub elapsed: Duration,
    /// How long it is to take, when it is limited by time.
    pub expected: Option<Duration>,
    /// Operations completed in this phase; files made, in "setup".
    pub operations: u64,
    pub bytes: u64,
    /// Time since the previous progress that the following are about.
    pub interval: Duration,
    pub interval_operations: u64,
    pub interval_read_bytes: u64,
    pub interval_written_bytes: u64,
    pub interval_fsyncs: u64,
    /// Latency of the operations completed in it.
    pub latency: Histogram,
    /// Latency of the fsyncs in it that the groups' policies made.
    pub fsync_latency: Histogram,
}

impl Progress {
    pub fn lately(&self) -> Lately {
        let bytes = self.interval_read_bytes + self.interval_written_bytes;
        Lately::of(self.interval, self.interval_operations, bytes, &self.latency)
    }
}

/// Whose the directories of the filesets are.
///
/// Whatever it is, only files whose names the fileset gives are ever removed or overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// Anybody's. A fileset is made only in a directory that is empty or carries fstone's mark, which it then does.
    Marked,
    /// The user's, who said that what is in the way of the fileset may go. The directory carries the mark from then on.
    Overwrite,
    /// The load's own, made for it alone. No mark is looked for or left.
    Own,
    /// As with [`Self::Marked`] or, to `overwrite`, [`Self::Overwrite`], but directories may be anywhere and links are followed, as with FFSB. But
    /// for the following two, all others stay below the load's directory.
    Anywhere { overwrite: bool },
    /// Anybody's, as are files in them, and directories may be anywhere and links are followed, as with sysbench. No mark is looked for or left.
    /// The load has the very files that it names. Those to be reused stay as they are, whatever their size; those that it makes
    /// anew are replaced.
    AsWritten,
    /// The same, but no file is replaced in which there is something, as with fio.
    ByName,
    /// Somebody else's, and the load's one file is a block device in it, which the caller keeps from all others. Nothing is
    /// made and nothing removed: the device is read and overwritten where it is.
    Device,
}

impl Ownership {
    /// Whether directories may be anywhere, and links are followed.
    pub(crate) const fn follows_links(self) -> bool {
        matches!(self, Self::Anywhere { .. } | Self::AsWritten | Self::ByName)
    }

    pub(crate) const fn is_shared_directory(self) -> bool {
        matches!(self, Self::AsWritten | Self::ByName)
    }

    pub(crate) const fn overwrites(self) -> bool {
        matches!(self, Self::Overwrite | Self::Anywhere { overwrite: true })
    }
}

#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    pub seed: u64,
    /// Set to true from outside, it ends the load within 20 ms and one operation of each thread,
    /// with [`crate::LoadError::Interrupted`], which has what was measured until then.
    pub cancel: &'a AtomicBool,
    pub observer: &'a dyn Observer,
    /// Whether to run the workload on the null I/O engine afterwards (at most a quarter of a second), for the
    /// audit of the engine's own cost.
    pub measure_null: bool,
    pub ownership: Ownership,
}

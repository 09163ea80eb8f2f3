//! What came of a run, line by line of IOR's table.

use super::{
    command::Ior,
    workload::{Access, CLOSE, FSYNC, OPEN, Plan, Stage},
};
use crate::loads::letters;
use fstone_model::{
    load::{OperationReport, Span},
    ranks::{PhaseMeeting, RankReport, RanksReport},
};
use std::time::Duration;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Place {
    pub command_line: String,
    /// The file of `-o`, with the directory that it is in.
    pub path: String,
    /// When the run began and ended, as text.
    pub times: [String; 2],
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line<'r> {
    pub(super) access: Access,
    /// From 0.
    pub(super) repetition: u64,
    /// Bytes of all tasks.
    pub(super) bytes: u64,
    /// Transfers of all tasks.
    pub(super) transfers: u64,
    /// From the first task's begin to the last one's end, with its fsync.
    pub(super) seconds: f64,
    /// Longest of all tasks: open, fsync, close. Nothing for what no task did within its program, as what a deadline ended does not close.
    pub(super) longest: [Option<f64>; 3],
    /// From the first task's begin to the last one's end, as IOR has it: open, the transfers with their fsync, close. Tasks are not at the
    /// same at once, so these may overlap. Nothing for what is not known of all tasks.
    pub(super) seconds_of: [Option<f64>; 3],
    /// IOR's column Latency(s): seconds at reading or writing, with the fsync, for each transfer, of the task that has the least.
    pub(super) latency: Option<f64>,
    /// Seconds until the stonewall, or of all transfers if it was not reached, and what a task moved until then on average, MiB per second.
    /// IOR has both only of a stonewall that wears out.
    pub(super) wall: Option<[f64; 2]>,
    pub(super) meeting: &'r PhaseMeeting,
    pub(super) moves: Option<&'r OperationReport>,
    /// What it lacks, if not all tasks did all of it.
    pub(super) lacking: Option<String>,
}

impl Line<'_> {
    /// MiB per second.
    pub(super) fn bandwidth(&self) -> f64 {
        self.per_second(self.bytes as f64 / f64::from(1 << 20))
    }

    pub(super) fn transfers_per_second(&self) -> f64 {
        self.per_second(self.transfers as f64)
    }

    fn per_second(&self, count: f64) -> f64 {
        if self.seconds > 0.0 { count / self.seconds } else { 0.0 }
    }

    /// Transfers over the time in which any task was at them: IOR's column IOPS, where its summary has the whole time. So has this if that
    /// time is not known.
    pub(super) fn iops(&self) -> f64 {
        let seconds = self.seconds_of[1].unwrap_or(self.seconds);
        if seconds > 0.0 { self.transfers as f64 / seconds } else { 0.0 }
    }
}

#[derive(Debug, Clone)]
pub struct Results<'r> {
    pub ior: &'r Ior,
    pub plan: &'r Plan,
    pub report: &'r RanksReport,
    pub place: &'r Place,
}

impl<'r> Results<'r> {
    /// Those that some task ended, in their order.
    pub(super) fn lines(&self) -> Vec<Line<'r>> {
        self.plan.stages.iter().filter_map(|stage| self.line(stage)).collect()
    }

    fn line(&self, stage: &Stage) -> Option<Line<'r>> {
        let meeting = self.report.meeting(&stage.phase)?;
        let sync = stage.sync.as_ref().and_then(|name| self.report.meeting(name));
        let bytes: u64 = self.report.of_phase(&stage.phase).map(|phase| phase.read_bytes + phase.written_bytes).sum();
        let longest = |phase: &str, name: &str| {
            let done = self.operation(phase, name).filter(|operation| operation.invocations > 0)?;
            Some(Duration::from_nanos(done.latency.max_ns()).as_secs_f64())
        };
        let span = |name: &str| self.report.action_span(meeting, name).map(|all| all.span);
        let synced_apart = sync.map_or(0.0, PhaseMeeting::seconds);
        let moving = span(stage.access.name()).map(|moves| {
            let fsync = span(FSYNC).unwrap_or(moves);
            seconds(Span { end_ns: fsync.end_ns.max(moves.end_ns), ..moves }) + synced_apart
        });
        let whole = self.ior.task_bytes().saturating_mul(u64::from(self.report.ranked.ranks));
        let synced = stage.sync.as_deref().unwrap_or(&stage.phase);
        let moves = self.operation(&stage.phase, stage.access.name());
        Some(Line {
            access: stage.access,
            repetition: stage.repetition,
            bytes,
            // Of a task that was lost there are bytes, and no report.
            transfers: bytes / self.ior.transfer_bytes.max(1),
            seconds: meeting.seconds() + synced_apart,
            longest: [longest(&stage.phase, OPEN), longest(synced, FSYNC), longest(&stage.phase, CLOSE)],
            seconds_of: [span(OPEN).map(seconds), moving, span(CLOSE).map(seconds)],
            latency: self.latency(stage, meeting),
            wall: self.wall(stage, meeting, bytes),
            meeting,
            moves,
            lacking: letters::lacking(self.report, meeting, (bytes, whole), stage.sync.as_deref()),
        })
    }

    fn latency(&self, stage: &Stage, meeting: &PhaseMeeting) -> Option<f64> {
        let moves = self.report.action_span(meeting, stage.access.name())?;
        let fsync = self.report.action_span(meeting, FSYNC);
        let of_task = |task: &RankReport| {
            let phase = |name: &String| task.phases.iter().find(|phase| phase.name == *name);
            let did = phase(&stage.phase)?;
            let transfers = (did.read_bytes + did.written_bytes) / self.ior.transfer_bytes.max(1);
            let moving = *moves.of_ranks.get(&task.rank)?;
            let synced = fsync.and_then(|all| all.of_ranks.get(&task.rank)).unwrap_or(&moving);
            let apart_ns = stage.sync.as_ref().and_then(phase).map_or(0, |sync| sync.end_ns - sync.begin_ns);
            let all = seconds(Span { end_ns: synced.end_ns.max(moving.end_ns) + apart_ns, ..moving });
            (transfers > 0).then(|| all / transfers as f64)
        };
        self.report.ranked.per_rank.iter().filter_map(of_task).min_by(f64::total_cmp)
    }

    fn wall(&self, stage: &Stage, meeting: &PhaseMeeting, bytes: u64) -> Option<[f64; 2]> {
        let ranks = f64::from(meeting.ranks.max(1));
        let (length_ns, moved) = if let Some(wall) = meeting.stonewall {
            // Each task has opened its file.
            let transfers = (wall.operations as f64 / ranks - 1.0).max(0.0);
            (wall.length_ns, transfers * self.ior.transfer_bytes as f64)
        } else if self.ior.wear_out && self.ior.deadline.is_some() {
            let moves = self.report.action_span(meeting, stage.access.name())?;
            (moves.of_ranks.values().map(|span| span.length_ns()).max()?, bytes as f64 / ranks)
        } else {
            return None;
        };
        let seconds = Duration::from_nanos(length_ns).as_secs_f64();
        Some([seconds, moved / f64::from(1 << 20)])
    }

    fn operation(&self, phase: &str, name: &str) -> Option<&'r OperationReport> {
        self.report.load.operations.iter().find(|operation| operation.group == phase && operation.name == name)
    }
}

fn seconds(span: Span) -> f64 {
    Duration::from_nanos(span.length_ns()).as_secs_f64()
}

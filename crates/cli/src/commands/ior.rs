//! `fstone ior …`: IOR's command lines, unchanged, with or without a launcher of MPI.

use super::{Context, fresh_seed, now_unix_ns, ranks, tasks};
use crate::{
    args::IorArguments,
    exit::Exit,
    paths,
    terminal::{CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_analysis::when;
use fstone_engine::{Ownership, Peers as _};
use fstone_formats::ior::{self, Ior, Place, Plan, Results};
use fstone_model::ranks::RanksReport;
use fstone_ranks::Member;
use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

pub(crate) fn ior(_context: &Context, arguments: &IorArguments) -> CommandResult {
    let begun = tasks::begin(&arguments.words, ior::help, ior::parse, |ior| ior.warnings.as_ref())?;
    let ior = match begun {
        ControlFlow::Break(exit) => return Ok(exit),
        ControlFlow::Continue(ior) => ior,
    };
    let plan = ior.plan();
    let directory = PathBuf::from(ior.directory());
    ranks::run(ranks::Load {
        workload: plan.workload.clone(),
        directories: vec![directory],
        seed: ior.seed.unwrap_or_else(fresh_seed),
        // Exactly the files that it names; existing content is in the way.
        ownership: Ownership::ByName,
        results: ior.results.as_ref().map(PathBuf::from),
        silence: ior.silence,
        stillness: ior.stillness,
        measure_null: false,
        expected: None,
        output: ranks::Output::Command(Arc::new(IorCommand {
            command_line: tasks::typed("ior", &arguments.words),
            place: OnceLock::new(),
            gone: AtomicU32::new(0),
            plan,
            ior,
        })),
    })
}

struct IorCommand {
    command_line: String,
    ior: Ior,
    plan: Plan,
    place: OnceLock<Place>,
    /// Repetitions whose files are gone. Others may have made some of their names since.
    gone: AtomicU32,
}

impl IorCommand {
    fn with_results<T>(&self, report: &RanksReport, show: impl FnOnce(&Results<'_>) -> T) -> T {
        let mut place = self.place.get().cloned().unwrap_or_default();
        place.times[1] = when::iso(now_unix_ns());
        show(&Results { ior: &self.ior, plan: &self.plan, report, place: &place })
    }
}

impl ranks::RankCommand for IorCommand {
    fn prepare(&self) -> Result<(), Failure> {
        let directory = Path::new(self.ior.directory());
        let path = directory.canonicalize().with_context(|| format!("there is no directory {}", directory.display()));
        let path = path.or_exit(Exit::BadInput)?.join(self.ior.name()).display().to_string();
        let (command_line, times) = (self.command_line.clone(), [when::iso(now_unix_ns()), String::new()]);
        let _ = self.place.set(Place { command_line, path, times });
        Ok(())
    }

    /// As in IOR, which needs no more space than for one repetition.
    fn phase_ended(&self, ended: usize, directory: &Path, member: &Arc<Member>) {
        let of_each = self.plan.workload.phases.len() / self.ior.repetitions.max(1) as usize;
        let goes = self.ior.write && !self.ior.keep;
        if !goes || !ended.is_multiple_of(of_each) || member.meet().is_err() {
            return;
        }
        let (repetition, rank) = ((ended / of_each - 1) as u32, member.rank());
        if rank > 0 && !self.ior.file_per_process {
            return;
        }
        // What cannot be removed, and what comes after it, is tried again at the end.
        let path = directory.join(self.ior.file_of(repetition.into(), rank));
        if self.gone.load(Ordering::Relaxed) == repetition && paths::remove_file(&path).is_ok() {
            self.gone.store(repetition + 1, Ordering::Relaxed);
        }
    }

    fn ended(&self, load: &ranks::Ran<'_>) -> Result<(), String> {
        // After this all ranks are done with the files. Files that were only read are not removed.
        if load.member.meet().is_err() || self.ior.keep || !self.ior.write {
            return Ok(());
        }
        let rank = load.member.rank();
        if rank > 0 && !self.ior.file_per_process {
            return Ok(());
        }
        let mut removed = Ok(());
        for repetition in self.gone.load(Ordering::Relaxed).into()..self.ior.repetitions {
            let path = load.directory.join(self.ior.file_of(repetition, rank));
            // A load that ended early did not reach all repetitions.
            if let Err(error) = paths::remove_file(&path) {
                removed = removed.and(Err(format!("cannot remove {}: {error}", path.display())));
            }
        }
        removed
    }

    /// If not all ranks removed their files, rank 0 removes them when all are done. It reports those that it cannot remove.
    fn settled(&self, report: &RanksReport) -> Result<(), String> {
        if report.ranked.ended_early.is_some() && !ranks::any_lost(report) {
            for path in self.left(report) {
                let _ = paths::remove_file(&path);
            }
        }
        Ok(())
    }

    fn left(&self, report: &RanksReport) -> Vec<PathBuf> {
        // Files from before the first phase are in the way, and belong to somebody, unless no task was there to tell of the first phase's end.
        let begun = !report.ranked.phases.is_empty() || ranks::any_lost(report);
        if self.ior.keep || !self.ior.write || !begun {
            return Vec::new();
        }
        let tasks = if self.ior.file_per_process { report.ranked.ranks } else { 1 };
        let there = self.gone.load(Ordering::Relaxed).into()..self.ior.repetitions;
        let all = there.flat_map(|repetition| (0..tasks).map(move |task| (repetition, task)));
        all.map(|(repetition, task)| Path::new(self.ior.directory()).join(self.ior.file_of(repetition, task))).collect()
    }

    fn live(&self) -> bool {
        !self.ior.json
    }

    fn shown(&self, report: &RanksReport) -> Result<(String, bool), serde_json::Error> {
        let text = self.with_results(report, |results| match self.ior.json {
            true => tasks::document(&ior::json(results)),
            false => Ok(ior::print(results)),
        })?;
        Ok((text, self.ior.json))
    }

    fn own_file(&self) -> Option<&'static str> {
        Some("ior.json")
    }

    fn own_text(&self, report: &RanksReport) -> Option<String> {
        self.with_results(report, |results| tasks::document(&ior::json(results))).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{ranks::RankCommand as _, *};
    use fstone_formats::letters::CommandLine;
    use fstone_model::ranks::{PhaseMeeting, RankOutcome, RankReport, Ranked};

    /// Tasks that a signal found in their first phase, where all of them are still at work, have made files as well.
    #[test]
    fn files_that_may_be_left_are_named() {
        let left = |line: &str, outcome: RankOutcome, phases: Vec<PhaseMeeting>| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let ior = ior::parse(&CommandLine::of_arguments(&words)).expect("right");
            let (place, gone) = (OnceLock::new(), AtomicU32::new(0));
            let command = IorCommand { command_line: String::new(), plan: ior.plan(), ior, place, gone };
            let per_rank = vec![RankReport { outcome, ..RankReport::default() }, RankReport::default()];
            let ranked = Ranked { ranks: 2, phases, per_rank, ..Ranked::default() };
            command.left(&RanksReport { ranked, ..RanksReport::default() })
        };
        let interrupted = || RankOutcome::Interrupted { words: String::new() };
        let files = ["/mnt/x/f.00000000", "/mnt/x/f.00000001"].map(PathBuf::from);
        assert_eq!(left("-F -o /mnt/x/f", interrupted(), Vec::new()), files);
        assert_eq!(left("-F -o /mnt/x/f", RankOutcome::EndedEarly, vec![PhaseMeeting::default()]), files);
        assert_eq!(left("-F -o /mnt/x/f", RankOutcome::EndedEarly, Vec::new()), Vec::<PathBuf>::new(), "somebody's");
        assert_eq!(left("-F -k -o /mnt/x/f", interrupted(), Vec::new()), Vec::<PathBuf>::new(), "to be kept");
    }
}

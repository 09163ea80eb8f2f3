//! `fstone ior …`: IOR's command lines, unchanged, with or without a launcher of MPI.

use super::{Context, fresh_seed, now_unix_ns, ranks, tasks};
use crate::{
    args::IorArguments,
    exit::Exit,
    paths,
    terminal::{CommandResult, OrExit},
};
use anyhow::Context as _;
use fstone_analysis::when;
use fstone_engine::{Ownership, Peers as _};
use fstone_formats::ior::{self, Ior, Place, Plan, Results};
use fstone_model::ranks::RanksReport;
use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) fn ior(_context: &Context, arguments: &IorArguments) -> CommandResult {
    let begun = tasks::begin(&arguments.words, ior::help, ior::parse, |ior| ior.warnings.as_ref())?;
    let ior = match begun {
        ControlFlow::Break(exit) => return Ok(exit),
        ControlFlow::Continue(ior) => ior,
    };
    let plan = ior.plan();
    let directory = PathBuf::from(ior.directory());
    let path = directory.canonicalize().with_context(|| format!("there is no directory {}", directory.display()));
    let path = path.or_exit(Exit::BadInput)?;
    let place = Place {
        command_line: tasks::typed("ior", &arguments.words),
        path: path.join(ior.name()).display().to_string(),
        times: [when::iso(now_unix_ns()), String::new()],
    };
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
        told: ranks::Told::Course(Arc::new(Course { place, plan, ior })),
    })
}

/// The files that this rank removes, and the tables.
struct Course {
    ior: Ior,
    plan: Plan,
    place: Place,
}

impl Course {
    fn with_results<T>(&self, report: &RanksReport, show: impl FnOnce(&Results<'_>) -> T) -> T {
        let mut place = self.place.clone();
        place.times[1] = when::iso(now_unix_ns());
        show(&Results { ior: &self.ior, plan: &self.plan, report, place: &place })
    }
}

impl ranks::Course for Course {
    fn ended(&self, load: &ranks::Ran<'_>) -> Result<(), String> {
        // All ranks are done with the files. Files that were only read belong to somebody else.
        if load.member.meet().is_err() || self.ior.keep || !self.ior.write {
            return Ok(());
        }
        let rank = load.member.rank();
        if rank > 0 && !self.ior.file_per_process {
            return Ok(());
        }
        let mut removed = Ok(());
        for repetition in 0..self.ior.repetitions {
            let path = load.directory.join(self.ior.file_of(repetition, rank));
            // A load that ended early did not come to all repetitions.
            if let Err(error) = paths::remove_file(&path) {
                removed = removed.and(Err(format!("cannot remove {}: {error}", path.display())));
            }
        }
        removed
    }

    fn left(&self, report: &RanksReport) -> Vec<PathBuf> {
        // Files from before the first phase are in the way, and belong to somebody.
        if self.ior.keep || !self.ior.write || report.phases.is_empty() {
            return Vec::new();
        }
        let tasks = if self.ior.file_per_process { report.ranks } else { 1 };
        let all = (0..self.ior.repetitions).flat_map(|repetition| (0..tasks).map(move |task| (repetition, task)));
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

    fn beside(&self, report: &RanksReport) -> Vec<(&'static str, String)> {
        let json = self.with_results(report, |results| tasks::document(&ior::json(results)));
        json.map(|text| ("ior.json", text)).into_iter().collect()
    }
}

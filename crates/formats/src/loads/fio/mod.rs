//! fio's job files, read into the workload; and its way of printing results.
//!
//! [`parse`] takes a job file, and [`parse_command_line`] what may stand on fio's command line; both give a [`Plan`]: the jobs,
//! the load that they describe, and where each job is in the load's report. [`json`], [`normal`] and [`terse`] print that report
//! as fio does. `docs/formats/fio.md` says, option by option, what differs and why.
//!
//! Reading order: `text` reads lines and includes, `options` has every option there is, `value` their values (`distribution` one of them), `read` makes
//! [`Job`]s, `files`, `actions`, `ends`, `removals` and `workload` say them in the words of the model. Jobs of `iolog` carry out logs in place of a load.
//!
//! The format was learnt from fio's documentation and from running it; no code is taken from it.

mod actions;
mod command_line;
mod distribution;
mod ends;
mod files;
mod format;
mod help;
mod iolog;
mod job;
mod options;
mod print;
mod read;
mod removals;
#[cfg(test)]
mod tests;
mod text;
mod value;
mod workload;

pub use command_line::{Asked, CommandLine, IdleProfile, Output, OutputFormat, parse_command_line};
pub use files::{Look, Placement};
pub use format::FORMAT;
pub use help::{engines, help, version};
pub use job::{Amount, Blocks, Direction, Engine, Hint, Job, Offsets, Service, Sync};
pub use print::{Idle, Log, When, json, logs, normal, terse};
pub use workload::Part;

use crate::{Diagnostics, Source, loads::Loader};
use fstone_model::{Workload, workload::ThreadGroup};
use text::Findings;

/// The largest job file that is read, bytes: generated ones have a section for each of many files.
pub const MAXIMUM_SIZE: usize = 4 << 20;

const COMMAND_LINE: &str = "command line";

/// What a job file comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub jobs: Vec<Job>,
    pub global: Vec<(String, String)>,
    pub workload: Workload,
    pub parts: Vec<Part>,
    pub warnings: Option<Diagnostics>,
}

impl Plan {
    /// The block device that the jobs work on in place of files, and whether one of them writes to it.
    pub fn device(&self) -> Option<(String, bool)> {
        let path = self.workload.filesets.iter().find_map(files::device_of)?;
        Some((path, self.writes().is_some()))
    }

    /// Whether its jobs carry out logs (`read_iolog`) in place of the workload, which is empty.
    pub fn has_iologs(&self) -> bool {
        self.jobs.iter().any(|job| !job.iologs.is_empty())
    }

    /// The first group that changes anything.
    pub fn writes(&self) -> Option<&str> {
        let mut groups = self.workload.phases.iter().flat_map(|phase| &phase.groups);
        let changes = |group: &&ThreadGroup| group.actions.all().iter().any(|of| of.operation.nature().changes());
        groups.find(changes).map(|group| group.name.as_str())
    }

    /// What all random numbers follow from, if they are to be the same in each run, as the first job says.
    pub fn seed(&self) -> Option<u64> {
        self.jobs.first().filter(|job| job.repeats).map(|job| job.seed)
    }
}

pub struct Options<'o, 'l> {
    pub placement: Placement,
    /// Only these sections; all when there are none.
    pub sections: &'o [String],
    /// The value of an environment variable, or of `$ncpus`, `$pagesize` and `$mb_memory`.
    pub variable: &'o dyn Fn(&str) -> Option<String>,
    /// The size of a regular file or a block device that is there: of a job that gives none. Asked only with [`Placement::AsWritten`].
    pub size_of: &'o Look<'o>,
    /// The path of a directory that is there, without links and `..`. Asked only with [`Placement::AsWritten`].
    pub real: &'o dyn Fn(&str) -> Option<String>,
    pub loader: &'o mut Loader<'l>,
    /// How long every job runs, whatever the file says.
    pub seconds: Option<u64>,
}

/// Reads a job file.
///
/// # Errors
/// Everything that is wrong with it, each with its place. Warnings alone are no failure; they are in [`Plan::warnings`].
pub fn parse(source: &Source, options: &mut Options<'_, '_>) -> Result<Plan, Diagnostics> {
    let mut findings = Findings::new(source.clone());
    if !findings.report().check_size(MAXIMUM_SIZE, "the job file") {
        return Err(findings.into_report().into_diagnostics().expect("the size is wrong"));
    }
    let sections = text::sections(source, options.loader, &mut findings);
    plan(source, &sections, options, findings)
}

fn plan(
    source: &Source,
    sections: &[text::Section],
    options: &Options<'_, '_>,
    mut findings: Findings,
) -> Result<Plan, Diagnostics> {
    let mut jobs = read::jobs(sections, options.variable, &mut findings);
    if !options.sections.is_empty() {
        for name in options.sections.iter().filter(|name| !jobs.iter().any(|job| job.section_name == **name)) {
            let known = jobs.iter().map(|job| job.section_name.as_str());
            let diagnostic =
                crate::Diagnostic::whole(format!("there is no section `{name}`")).did_you_mean(name, known);
            findings.report().push(diagnostic);
        }
        jobs.retain(|job| options.sections.contains(&job.section_name));
    }
    // As in fio, each further job file begins behind a stonewall.
    for index in 1..jobs.len() {
        jobs[index].stonewall |= jobs[index].file != jobs[index - 1].file;
    }
    if let Some(seconds) = options.seconds {
        for job in &mut jobs {
            job.runtime = Some(std::time::Duration::from_secs(seconds));
        }
    }
    if jobs.is_empty() && !findings.report().has_errors() {
        let cure = if source.name() == COMMAND_LINE {
            "give a job file, or begin a job with --name, as in: --name=job --rw=randread --size=1g"
        } else {
            "add a section, such as [read]"
        };
        findings.report().push(crate::Diagnostic::whole("there is no job").help(cure));
    }
    // As fio prints them: those of the last file.
    let last = sections.iter().rev().find_map(|section| section.file);
    let global: Vec<&text::Setting> =
        sections.iter().filter(|section| section.holds_in(last)).flat_map(|section| &section.settings).collect();
    let global = read::written(&global);
    if findings.report().has_errors() {
        // What follows from jobs that are not as they were meant is no news.
        return Err(findings.into_report().into_diagnostics().expect("there are errors"));
    }
    if let Some(job) =
        jobs.iter().find(|job| job.logs.iter().any(Option::is_some) && options.placement != Placement::AsWritten)
    {
        let what = "write_bw_log, write_lat_log and write_iops_log have no effect here".to_owned();
        files::note(job, &mut findings, what, "only `fstone fio` writes logs; a report has the series of a load");
    }
    if options.placement == Placement::AsWritten {
        jobs.iter_mut().for_each(|job| files::resolve_parents(job, options.real));
    }
    let name = stem(source.name());
    iolog::check_written(&jobs, options.placement, &mut findings);
    let (workload, parts) = if jobs.iter().any(|job| !job.iologs.is_empty()) {
        let all = sections.iter().flat_map(|section| &section.settings);
        iolog::jobs(&name, &jobs, all, options.placement, &mut findings)
    } else {
        workload::workload(&name, &jobs, options.placement, options.size_of, &mut findings)
    };
    let ((), warnings) = findings.into_report().finish(())?;
    Ok(Plan { jobs, global, workload, parts, warnings })
}

fn stem(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    match file.rsplit_once('.') {
        Some((stem, _)) if !stem.trim().is_empty() => stem.to_owned(),
        _ if file.trim().is_empty() => "jobs".to_owned(),
        _ => file.to_owned(),
    }
}

//! Logs of jobs' calls. Of jobs that carry them out (`read_iolog`): their places in the report, and which options mean something for them. Of jobs
//! that write them (`write_iolog`): which can.

use super::{
    Part, Placement,
    files::error,
    job::{Engine, Job},
    options::{self, Treatment},
    text::{Findings, Setting},
    workload::{group_name, unique},
};
use fstone_model::{
    Workload,
    workload::{DataPattern, ErrorPolicy, FinalSync, IoSettings},
};
use std::{collections::HashMap, time::Duration};

/// What such a job may say; the second part has no effect there, as in fio, but that `filename` names what may be written elsewhere.
const MEANT: [&[&str]; 2] = [
    &[
        "name",
        "description",
        "read_iolog",
        "replay_no_stall",
        "replay_time_scale",
        "replay_redirect",
        "ioengine",
        "direct",
        "buffered",
        "invalidate",
        "fadvise_hint",
        "numjobs",
        "group_reporting",
        "new_group",
        "thread",
        "continue_on_error",
        "percentile_list",
        "clat_percentiles",
        "lat_percentiles",
    ],
    &["readwrite", "blocksize", "size", "filesize", "filename", "nrfiles", "iodepth"],
];

pub(super) fn check_written(jobs: &[Job], placement: Placement, findings: &mut Findings) {
    for (index, job) in jobs.iter().enumerate() {
        let Some(log) = &job.call_log else { continue };
        let shared = jobs[..index].iter().any(|other| other.call_log.as_ref() == Some(log));
        let (what, cure) = if placement != Placement::AsWritten {
            ("only `fstone fio` writes logs of calls", "run the job with it, or leave write_iolog out")
        } else if job.clones > 1 || shared {
            let cure = "give each job a log of its own, and each clone a section; fio 3.33 mixes their lines, and reads no such log";
            ("one log for the calls of several jobs or clones", cure)
        } else if names_of(job).iter().any(|name| name.contains(char::is_whitespace)) {
            ("a log that names files with blanks", "no program reads such a log; give the files names without blanks")
        } else if job.engine == Engine::Null || job.engine.of_files() {
            ("a log of calls of an engine that moves no data", "leave write_iolog out, or use psync")
        } else {
            continue;
        };
        error(job, findings, what.to_owned(), cure);
    }
}

/// What can be a part of the names in its log.
fn names_of(job: &Job) -> Vec<String> {
    let own = if job.filenames.is_empty() { vec![job.file_name(0, 0)] } else { job.filenames.clone() };
    own.into_iter().chain([job.directory(0).to_owned()]).collect()
}

pub(super) fn jobs<'s>(
    name: &str,
    jobs: &[Job],
    settings: impl Iterator<Item = &'s Setting>,
    placement: Placement,
    findings: &mut Findings,
) -> (Workload, Vec<Part>) {
    let first = &jobs[0];
    if placement != Placement::AsWritten {
        let cure = "run it with `fstone fio`, or make a recording of the log: `fstone record import LOG`";
        error(first, findings, "only `fstone fio` carries out fio's logs".to_owned(), cure);
    }
    if let Some(job) = jobs.iter().find(|job| job.iologs.is_empty()) {
        let cure = "give both a log, or run them one after the other";
        error(job, findings, format!("`{}` is a load beside a job that carries out a log", job.name), cure);
    }
    // Those of a further file begin behind a stonewall, which is for loads.
    if let Some(job) = jobs.iter().find(|job| job.file != first.file) {
        let cure =
            "run the job files one by one, or put their jobs into one file to carry out the logs at the same time";
        error(job, findings, "logs of several job files, which fio carries out one after the other".to_owned(), cure);
    }
    let mut engine = None;
    for setting in settings {
        let Some(option) = options::find(&setting.key.text) else { continue };
        let is_meant = MEANT.iter().any(|names| names.contains(&option.name));
        if !is_meant && !matches!(option.treatment, Treatment::None(..) | Treatment::Refused(..)) {
            let what = format!("`{}` is not supported with read_iolog", setting.key.text);
            findings.error(&setting.key, what, "leave it out");
        }
        if option.name == "ioengine" {
            engine = Some(&setting.key);
        }
    }
    if let Some(engine) = engine.filter(|_| jobs.iter().any(|job| job.engine != Engine::Psync)) {
        findings.error(engine, "logs are carried out by ioengine=psync", "leave ioengine out");
    }
    let mut names = HashMap::new();
    let mut parts = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        for clone in 0..job.clones {
            let group = unique(&mut names, &group_name(job, clone));
            parts.push(Part { job: index, clone, group, again: Vec::new(), verify: Vec::new() });
        }
    }
    let workload = Workload {
        name: name.to_owned(),
        filesets: Vec::new(),
        phases: Vec::new(),
        io: IoSettings::default(),
        data: DataPattern::default(),
        on_error: ErrorPolicy::StopGroup,
        final_sync: FinalSync::None,
        callout: None,
        launch: None,
        replay: None,
        series_interval: Duration::from_secs(1),
    };
    (workload, parts)
}

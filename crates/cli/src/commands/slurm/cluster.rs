//! Commands to Slurm, and its answers: `sbatch`, `squeue`, `sacct` and `scancel`.

use crate::{
    exit::Exit,
    terminal::{Failure, OrExit},
};
use anyhow::Context as _;
use fstone_analysis::text::listing;
use fstone_model::text;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Output},
};

/// The Slurm programs that a run needs; `sacct` is used if it exists.
const PROGRAMS: [&str; 3] = ["sbatch", "squeue", "scancel"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    /// "RUNNING", "PENDING", "NODE_FAIL", …
    pub(super) state: String,
    /// Its node; empty before it has one.
    pub(super) node: String,
    /// Why it waits: "Resources".
    pub(super) reason: String,
    /// What its script ended with, once it has.
    pub(super) status: Option<i32>,
}

impl Task {
    pub(super) fn is_under_way(&self) -> bool {
        const ENDED: [&str; 9] = [
            "COMPLETED",
            "FAILED",
            "CANCELLED",
            "TIMEOUT",
            "NODE_FAIL",
            "PREEMPTED",
            "BOOT_FAIL",
            "DEADLINE",
            "OUT_OF_MEMORY",
        ];
        !ENDED.contains(&self.state.as_str())
    }
}

pub(crate) fn refuse_without_slurm() -> Result<(), Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |program: &str| std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    let missing: Vec<&str> = PROGRAMS.into_iter().filter(|program| !there(program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let words = format!(
        "--slurm needs {}, which this machine lacks; on Debian they are in slurm-client. Without Slurm, `fstone blocks` runs blocks on other machines",
        listing(&missing)
    );
    Err(Failure::new(Exit::CannotHere, words))
}

/// A program of Slurm's. Ctrl-C at the terminal is for fstone, which then tells Slurm.
fn ask(program: &str, arguments: &[String]) -> Result<Output, Failure> {
    Command::new(program)
        .args(arguments)
        .process_group(0)
        .output()
        .with_context(|| format!("cannot start {program}"))
        .or_exit(Exit::CannotHere)
}

fn words(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let said = if said.trim().is_empty() { String::from_utf8_lossy(&output.stdout) } else { said };
    said.trim().lines().map(text::line).collect::<Vec<_>>().join("\n")
}

pub(super) enum Submission {
    Job(u64),
    /// There may be a job, and these words do not say which.
    Unclear(String),
}

/// Submits the script as an array of these tasks, under a name by which [`named`] finds it. `Err` if no job was submitted.
pub(super) fn submit(
    script: &Path,
    log: &Path,
    name: &str,
    tasks: &str,
    options: &[String],
) -> Result<Submission, Failure> {
    let mut arguments = vec![
        "--parsable".to_owned(),
        format!("--job-name={name}"),
        format!("--output={}", log.display()),
        format!("--array={tasks}"),
    ];
    arguments.extend(options.iter().cloned());
    arguments.push(script.display().to_string());
    let output = ask("sbatch", &arguments)?;
    if output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        let unclear = || Submission::Unclear(format!("sbatch printed no job number: {}", words(&output)));
        return Ok(job_number(&said).map_or_else(unclear, Submission::Job));
    }
    let refused = format!("sbatch refused the job: {}", words(&output));
    // The controller may have taken the job and been late with its answer.
    if refused.contains("timed out") {
        return Ok(Submission::Unclear(refused));
    }
    Err(Failure::new(Exit::CannotHere, refused))
}

/// The last line that is NUMBER or NUMBER;CLUSTER: a site may have sbatch print more.
fn job_number(said: &str) -> Option<u64> {
    said.lines().rev().find_map(|line| line.split(';').next()?.trim().parse().ok())
}

/// The jobs of this name. `Err` is why Slurm cannot be asked just now.
pub(super) fn named(name: &str) -> Result<BTreeSet<u64>, String> {
    let arguments = ["--json", "--states=all", "--array", &format!("--name={name}")].map(str::to_owned);
    Ok(read_named(&queue(&arguments)?, name))
}

/// Some versions list other jobs, too.
fn read_named(answer: &Value, name: &str) -> BTreeSet<u64> {
    let jobs = answer["jobs"].as_array().into_iter().flatten();
    jobs.filter(|job| job["name"] == name).filter_map(|job| number(&job["array_job_id"])).collect()
}

fn queue(arguments: &[String]) -> Result<Value, String> {
    let output = ask("squeue", arguments).map_err(|failure| format!("{:#}", failure.error))?;
    if !output.status.success() {
        // The last task of a job that was over long ago.
        if words(&output).contains("Invalid job id") {
            return Ok(Value::Null);
        }
        return Err(words(&output));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("squeue --json: {error}"))
}

/// The tasks of jobs that Slurm knows, by job and index. `Err` is why it cannot be asked just now.
pub(super) fn tasks(jobs: &[u64]) -> Result<BTreeMap<(u64, u32), Task>, String> {
    if jobs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let listed = jobs.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let arguments = ["--json", "--states=all", "--array", &format!("--jobs={listed}")].map(str::to_owned);
    Ok(read_tasks(&queue(&arguments)?, jobs))
}

/// Slurm 22 to 24 write numbers as such or as `{"set": true, "number": 3}`, and states as a word or as a list of words.
fn read_tasks(answer: &Value, jobs: &[u64]) -> BTreeMap<(u64, u32), Task> {
    let mut tasks = BTreeMap::new();
    for job in answer["jobs"].as_array().into_iter().flatten() {
        let Some(array) = number(&job["array_job_id"]).filter(|number| jobs.contains(number)) else { continue };
        let state = match &job["job_state"] {
            Value::Array(states) => states.first().and_then(Value::as_str),
            other => other.as_str(),
        };
        let exit = &job["exit_code"];
        let status =
            number(&exit["return_code"]).or_else(|| number(exit)).and_then(|status| i32::try_from(status).ok());
        let task = Task {
            state: text::line(state.unwrap_or("UNKNOWN")),
            node: text::line(job["nodes"].as_str().unwrap_or_default()),
            reason: text::line(job["state_reason"].as_str().unwrap_or_default()),
            // As wait(2) has it, in the versions that have no other.
            status: status.map(|status| if exit.is_object() || status < 256 { status } else { status >> 8 & 0xff }),
        };
        // Tasks that have not begun may stand together in one entry: "3-4,7%2".
        let together = job["array_task_string"].as_str().filter(|text| !text.is_empty());
        let indices = match (together, number(&job["array_task_id"])) {
            (Some(text), _) => indices(text),
            (None, Some(index)) => u32::try_from(index).into_iter().collect(),
            (None, None) => Vec::new(),
        };
        tasks.extend(indices.into_iter().map(|index| ((array, index), task.clone())));
    }
    tasks
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value["number"].as_u64().filter(|_| value["set"].as_bool() != Some(false)))
}

/// "3-4,7%2", also in brackets.
fn indices(text: &str) -> Vec<u32> {
    let text = text.trim_matches(|c| c == '[' || c == ']');
    let text = text.split('%').next().unwrap_or_default();
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// What the accounting knows of a task that `squeue` has forgotten: its state and its node. Many clusters have no accounting.
pub(super) fn afterwards(job: u64, index: u32) -> Option<String> {
    let arguments = ["--noheader", "--parsable2", "--allocations", "--format=State,ExitCode,NodeList"];
    let mut arguments: Vec<String> = arguments.map(str::to_owned).into();
    arguments.push(format!("--jobs={job}_{index}"));
    let output = ask("sacct", &arguments).ok().filter(|output| output.status.success())?;
    let said = String::from_utf8_lossy(&output.stdout);
    let mut fields = said.lines().next()?.split('|');
    let (state, status, node) = (fields.next()?, fields.next()?, fields.next()?);
    Some(format!("{} on {}, exit status {}", text::line(state), text::line(node), text::line(status)))
}

/// Cancels jobs; what of them is over is left as it is.
pub(super) fn cancel(jobs: &[u64]) -> Result<(), Failure> {
    if jobs.is_empty() {
        return Ok(());
    }
    let arguments: Vec<String> = jobs.iter().map(u64::to_string).collect();
    let output = ask("scancel", &arguments)?;
    if output.status.success() || words(&output).contains("Invalid job id") {
        return Ok(());
    }
    let jobs = arguments.join(" ");
    Err(Failure::new(Exit::LabFailed, format!("scancel {jobs} failed; do it by hand: {}", words(&output))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tasks_are_read_as_slurm_22_and_as_slurm_24_writes_them() {
        let old = json!({"jobs": [
            {"array_job_id": 7, "array_task_id": 1, "array_task_string": "", "job_state": "RUNNING", "nodes": "n1",
             "state_reason": "None", "exit_code": 0},
            {"array_job_id": 7, "array_task_id": 2, "array_task_string": "", "job_state": "FAILED", "nodes": "n2",
             "state_reason": "NonZeroExitCode", "exit_code": 768},
            {"array_job_id": 7, "array_task_id": null, "array_task_string": "3-4,6%2", "job_state": "PENDING", "nodes": "",
             "state_reason": "Resources", "exit_code": 0},
            {"array_job_id": 8, "array_task_id": 1, "array_task_string": "", "job_state": "RUNNING", "nodes": "n3"},
        ]});
        let set = |number: u64| json!({"set": true, "infinite": false, "number": number});
        let new = json!({"jobs": [
            {"array_job_id": set(7), "array_task_id": set(1), "array_task_string": "", "job_state": ["RUNNING"], "nodes": "n1",
             "state_reason": "None", "exit_code": {"status": ["SUCCESS"], "return_code": set(0)}},
            {"array_job_id": set(7), "array_task_id": set(2), "array_task_string": "", "job_state": ["FAILED"], "nodes": "n2",
             "state_reason": "NonZeroExitCode", "exit_code": {"status": ["ERROR"], "return_code": set(3)}},
            {"array_job_id": set(7), "array_task_id": {"set": false, "infinite": false, "number": 0},
             "array_task_string": "3-4,6%2", "job_state": ["PENDING"], "nodes": "", "state_reason": "Resources",
             "exit_code": {"status": ["SUCCESS"], "return_code": set(0)}},
        ]});
        for answer in [old, new] {
            let tasks = read_tasks(&answer, &[7]);
            let states: Vec<(u32, &str, Option<i32>, bool)> = tasks
                .iter()
                .map(|((_, index), task)| (*index, task.state.as_str(), task.status, task.is_under_way()))
                .collect();
            let expected = [
                (1, "RUNNING", Some(0), true),
                (2, "FAILED", Some(3), false),
                (3, "PENDING", Some(0), true),
                (4, "PENDING", Some(0), true),
                (6, "PENDING", Some(0), true),
            ];
            assert_eq!(states, expected);
        }
        assert_eq!(read_tasks(&json!({}), &[7]), BTreeMap::new());
    }

    #[test]
    fn a_jobs_number_is_found_among_lines_of_the_site() {
        for (said, number) in [
            ("7\n", Some(7)),
            ("7;cluster\n", Some(7)),
            ("12 hours are left\n7\n", Some(7)),
            ("100\nsubmitted\n8;north\nthank you\n", Some(8)),
            ("Submitted batch job\n", None),
            ("", None),
        ] {
            assert_eq!(job_number(said), number, "{said}");
        }
    }

    #[test]
    fn jobs_are_found_by_their_name() {
        let answer = json!({"jobs": [
            {"array_job_id": 7, "name": "fstone-1f2c"},
            {"array_job_id": {"set": true, "infinite": false, "number": 8}, "name": "fstone-1f2c"},
            {"array_job_id": 9, "name": "fstone-1f2c1"},
        ]});
        assert_eq!(read_named(&answer, "fstone-1f2c"), BTreeSet::from([7, 8]));
        assert!(read_named(&Value::Null, "fstone-1f2c").is_empty());
    }
}

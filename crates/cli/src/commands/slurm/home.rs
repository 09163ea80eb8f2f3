//! Where the tasks of a run find the plan and leave their blocks: a directory that all nodes see.

use crate::{
    commands::begun,
    exit::Exit,
    paths,
    terminal::{Failure, OrExit},
};
use anyhow::Context as _;
use fstone_files::{Exchangeable, Temporary, read_text, regular, resolve, unguessable};
use fstone_lab::place::custody;
use fstone_model::{Dataset, dataset::Run, text::quoted};
use fstone_store::bundle;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

/// A run's own directory, and whether the one above it is fstone's as well.
pub(in crate::commands) struct Home(PathBuf, bool);

pub(super) struct Noted {
    pub(super) jobs: Vec<u64>,
    /// Whether sbatch was started and its answer is not noted: there may be a job that `jobs` lacks.
    pub(super) is_submitting: bool,
}

impl Home {
    /// The directory of a run, below the one that is named, or beside the store.
    pub(super) fn of(run: &Run, named: Option<&Path>, store: &Path) -> Result<Self, Failure> {
        let above = match named {
            Some(named) if named.is_dir() => named.to_owned(),
            Some(named) => {
                let words = format!(
                    "--slurm-directory: there is no directory {}; make it where all nodes see it",
                    named.display()
                );
                return Err(Failure::new(Exit::BadInput, words));
            }
            None => paths::directory_of(store).join("slurm"),
        };
        let above =
            std::path::absolute(&above).with_context(|| above.display().to_string()).or_exit(Exit::LabFailed)?;
        Ok(Self(Self::below(&above, run), named.is_none()))
    }

    pub(super) fn below(above: &Path, run: &Run) -> PathBuf {
        above.join(begun::file_name(run))
    }

    pub(in crate::commands) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn exists(&self) -> bool {
        self.0.is_dir()
    }

    /// Writes the plan and the script, unless an earlier process has.
    pub(super) fn prepare(&self, run: &Run) -> Result<(), Failure> {
        paths::create_directory(&self.0)
            .with_context(|| format!("cannot make {}; name another with --slurm-directory", self.0.display()))
            .or_exit(Exit::LabFailed)?;
        // All nodes run what is in it, under its name.
        let found = self.exchangeable().with_context(|| self.0.display().to_string()).or_exit(Exit::CannotHere)?;
        if let Some(part) = found {
            let words = format!("{part}, or name another directory with --slurm-directory");
            return Err(Failure::new(Exit::CannotHere, words));
        }
        if !self.plan().exists() {
            let run = Run { blocks: Vec::new(), ..run.clone() };
            bundle::write(Dataset { run, trials: Vec::new() }, &self.plan()).or_exit(Exit::LabFailed)?;
        }
        let program = std::env::current_exe().context("cannot find this program").or_exit(Exit::LabFailed)?;
        let digest =
            bundle::digest_of_file(&program).with_context(|| program.display().to_string()).or_exit(Exit::LabFailed)?;
        let secret = self.mark().with_context(|| self.0.display().to_string()).or_exit(Exit::LabFailed)?;
        self.replace("task.sh", &script(&program, &digest, &self.0, &secret))
    }

    /// Marks the directory as this run's, and gives a part of the names of the tasks' work directories that other users of the
    /// nodes cannot guess. All attempts have the same, so that one undoes what another left on its node.
    fn mark(&self) -> io::Result<String> {
        let name = self.0.file_name().unwrap_or_default().to_string_lossy();
        let path = self.0.join(MARK);
        if !path.exists() {
            let temporary = Temporary::beside(&path)?;
            temporary.file().write_all(format!("{}\n", json!({ "run": name, "secret": unguessable()? })).as_bytes())?;
            match temporary.publish(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made?,
            }
        }
        self.secret().ok_or_else(|| io::Error::other(format!("{} is of another run", path.display())))
    }

    /// What the mark has, if the directory was made for this run.
    fn secret(&self) -> Option<String> {
        let path = regular(&self.0.join(MARK)).ok()??;
        let mark: Value = serde_json::from_reader(fs::File::open(path).ok()?.take(MARK_BYTES)).ok()?;
        let secret = mark["secret"].as_str()?;
        let plain = !secret.is_empty() && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
        (plain && Some(mark["run"].as_str()?) == self.0.file_name()?.to_str()).then(|| secret.to_owned())
    }

    /// Whether the directory itself says that it was made for this run, where nobody else could have said so or can exchange it. A store
    /// may name any.
    pub(in crate::commands) fn is_marked(&self) -> bool {
        self.secret().is_some() && matches!(self.exchangeable(), Ok(None))
    }

    fn exchangeable(&self) -> io::Result<Option<Exchangeable>> {
        resolve(&self.0).and_then(|path| custody::unowned(&path))
    }

    fn plan(&self) -> PathBuf {
        self.0.join("plan.fstone")
    }

    pub(super) fn script(&self) -> PathBuf {
        self.0.join("task.sh")
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.0.join("task-%A_%a.log")
    }

    pub(super) fn log(&self, job: u64, block: u32) -> Option<String> {
        let text = self.end_of(&format!("task-{job}_{}.log", block + 1)).ok()?;
        let lines: Vec<String> = text.lines().map(fstone_model::text::line).filter(|line| !line.is_empty()).collect();
        (!lines.is_empty()).then(|| lines[lines.len().saturating_sub(LINES)..].join("\n"))
    }

    /// The last lines are among the last bytes, however much a task printed.
    fn end_of(&self, name: &str) -> io::Result<String> {
        let mut file = fs::File::open(self.0.join(name))?;
        file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(LOG_BYTES)))?;
        let mut end = Vec::new();
        file.take(LOG_BYTES).read_to_end(&mut end)?;
        Ok(String::from_utf8_lossy(&end).into_owned())
    }

    pub(super) fn bundle(&self, block: u32) -> PathBuf {
        self.0.join(format!("block-{}.fstone", block + 1))
    }

    /// The blocks whose bundles are there. The directory is read, not asked for each name: a network filesystem may remember that a
    /// name was not there.
    pub(super) fn blocks(&self) -> Result<BTreeSet<u32>, Failure> {
        let block = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_prefix("block-")?.strip_suffix(".fstone")?.parse::<u32>().ok()?.checked_sub(1)
        };
        let entries = fs::read_dir(&self.0).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        Ok(self.readable(entries)?.into_iter().filter_map(block).collect())
    }

    pub(super) fn noted(&self) -> Result<Noted, Failure> {
        let text = match read_text(&self.0.join(JOBS)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => self.readable(text)?,
        };
        let noted: Value = serde_json::from_str(&text).unwrap_or_default();
        Ok(Noted {
            jobs: noted["jobs"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect(),
            is_submitting: noted["submitting"] == true,
        })
    }

    /// That something cannot be read does not mean that nothing is there.
    fn readable<T>(&self, read: io::Result<T>) -> Result<T, Failure> {
        read.with_context(|| format!("cannot read {}, where Slurm's tasks leave their blocks", self.0.display()))
            .or_exit(Exit::CannotHere)
    }

    pub(super) fn note_jobs(&self, jobs: &[u64], submitting: bool) -> Result<(), Failure> {
        self.replace(JOBS, &format!("{}\n", json!({ "jobs": jobs, "submitting": submitting })))
    }

    /// What the run's jobs are called: no other run's are.
    pub(super) fn job_name(&self) -> String {
        format!("fstone-{}", self.0.file_name().unwrap_or_default().display())
    }

    /// The same of a run whose directory is not there.
    pub(super) fn job_name_of(run: &Run) -> String {
        format!("fstone-{}", begun::file_name(run))
    }

    fn replace(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.0.join(name);
        Temporary::beside(&path)
            .and_then(|temporary| {
                temporary.file().write_all(text.as_bytes())?;
                temporary.replace(&path)
            })
            .with_context(|| format!("cannot write {}", path.display()))
            .or_exit(Exit::LabFailed)
    }

    /// Removes what is the run's own, once the store has all of it: files of others stay, and so does the directory then.
    /// One that was not made for the run stays as a whole.
    pub(in crate::commands) fn remove(&self) {
        if !self.is_marked() {
            return;
        }
        let is_ours = |name: &str| {
            ["plan.fstone", "task.sh", JOBS].contains(&name)
                || (name.starts_with("block-")
                    && [".fstone", ".damaged", begun::SUFFIX].iter().any(|end| name.ends_with(end)))
                || (name.starts_with("task-") && name.ends_with(".log"))
        };
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(is_ours) {
                let _ = fs::remove_file(entry.path());
            }
        }
        // Last, so that a removal that is interrupted can be continued.
        let _ = fs::remove_file(self.0.join(MARK));
        let _ = fs::remove_dir(&self.0);
        // The directory beside the store, when this was the last run in it. One that was named is its user's.
        if let Some(above) = self.0.parent().filter(|_| self.1) {
            let _ = fs::remove_dir(above);
        }
    }
}

const JOBS: &str = "jobs.json";
const MARK: &str = "run.json";
const MARK_BYTES: u64 = 4096;

/// So much of what a task printed says why it ended.
const LINES: usize = 4;
const LOG_BYTES: u64 = 16 << 10;

/// The script of a task. One task has a node for itself unless the user's options say otherwise: a neighbour would be measured too.
fn script(program: &Path, digest: &str, home: &Path, secret: &str) -> String {
    let (program, home) = (quoted(&program.display().to_string()), quoted(&home.display().to_string()));
    format!(
        "#!/bin/sh\n\
         #SBATCH --nodes=1\n\
         #SBATCH --ntasks=1\n\
         #SBATCH --exclusive\n\
         #SBATCH --requeue\n\
         # A block of a run, whole, in a bundle. `fstone run --slurm` wrote this.\n\
         # Slurm tells every process of a task to end. fstone undoes what it made then, and this shell waits for it.\n\
         trap : TERM INT HUP\n\
         home={home}\n\
         work=${{SLURM_TMPDIR:-${{TMPDIR:-/tmp}}}}/fstone-{secret}-${{SLURMD_NODENAME:-node}}\n\
         {program} blocks \"$home/plan.fstone\" \"$SLURM_ARRAY_TASK_ID\" --output \"$home/block-$SLURM_ARRAY_TASK_ID.fstone\" \\\n\
         \x20 --work-directory \"$work\" --local --allow-commands --program {digest}\n\
         status=$?\n\
         rmdir \"$work\" 2>/dev/null\n\
         exit $status\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_that_others_can_change_is_not_emptied_whatever_it_says() {
        let place = tempfile::tempdir().expect("a directory");
        let home = Home(place.path().to_owned(), false);
        let plan = home.plan();
        fs::write(&plan, "a plan").expect("ours");
        home.mark().expect("marked");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).expect("ours");
        home.remove();
        assert!(plan.exists(), "another user can put a link in its place at any time");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).expect("ours");
        home.remove();
        assert!(!plan.exists());
    }

    #[test]
    fn of_a_long_log_the_end_is_read() {
        let place = tempfile::tempdir().expect("a directory");
        let home = Home(place.path().to_owned(), false);
        // As much as no memory has.
        let log = fs::File::create(place.path().join("task-7_1.log")).expect("ours");
        log.set_len(1 << 42).expect("sparse");
        io::Write::write_all(
            &mut fs::OpenOptions::new().append(true).open(place.path().join("task-7_1.log")).expect("ours"),
            b"\na\nb\n\nc\nd\ne\n",
        )
        .expect("written");
        assert_eq!(home.log(7, 0).as_deref(), Some("b\nc\nd\ne"));
        assert_eq!(home.log(7, 1), None);
    }
}

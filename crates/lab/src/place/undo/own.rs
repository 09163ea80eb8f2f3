//! Removing what the commands of a study made, after the agent that ran them is gone.

use crate::{
    command::{CommandLine, CommandRunner, NOT_FOUND, SystemRunner},
    filesystem::OWN_DIRECTORY,
    stop::Stop,
};
use fstone_files::FileIdentity;
use std::{fs, io, path::Path, sync::Arc, time::Duration};

const LIMIT: Duration = Duration::from_secs(600);

/// Runs the command in the directory that it was given, and nowhere else: with a relative path in it, it would remove
/// something of somebody's in any other.
pub(super) fn remove(command: &[String], trial: &Path, id: FileIdentity) -> io::Result<()> {
    let directory = trial.join(OWN_DIRECTORY);
    let is_own = fs::symlink_metadata(trial).is_ok_and(|facts| facts.is_dir() && id.is(&facts));
    if !is_own || !fs::symlink_metadata(&directory).is_ok_and(|facts| facts.is_dir()) {
        let words = format!(
            "{}, in which it must run, is gone; remove what is left by hand, then delete its line from the journal",
            directory.display()
        );
        return Err(io::Error::new(io::ErrorKind::NotFound, words));
    }
    if command.is_empty() {
        return Ok(());
    }
    // What the trial started and mounted is gone with its namespaces, and the numbers of its processes are now those of others.
    let apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--"];
    let apart = if rustix::process::geteuid().is_root() { &apart[..] } else { &[] };
    let words: Vec<&str> = apart.iter().copied().chain(command.iter().map(String::as_str)).collect();
    let command = CommandLine::new(words[0], words[1..].iter().copied()).in_directory(&directory);
    // Not the run's own runner, which a Ctrl-C stops.
    let runner = SystemRunner::new(Arc::new(Stop::default()));
    let output = runner.run(&command, LIMIT).map_err(io::Error::other)?;
    if output.status == 0 {
        return Ok(());
    }
    let cure = match output.status {
        NOT_FOUND => "; install it, or remove what is left by hand, then delete its line from the journal",
        _ => "",
    };
    Err(io::Error::other(format!("exit status {}: {}{cure}", output.status, output.words())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_in_its_own_directory_or_not_at_all() {
        let place = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let trial = place.path().join("fstone-load-1-1");
        fs::create_dir_all(trial.join(OWN_DIRECTORY)).expect("made");
        let id = FileIdentity::of(&fs::symlink_metadata(&trial).expect("there"));
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        remove(&words(&["touch", "ran"]), &trial, id).expect("it ends well");
        assert!(trial.join(OWN_DIRECTORY).join("ran").exists());
        let failed = remove(&words(&["sh", "-c", "echo no >&2; exit 3"]), &trial, id).expect_err("it fails");
        assert_eq!(failed.to_string(), "exit status 3: no");
        let lacks = remove(&words(&["sh", "-c", "no-such-program"]), &trial, id).expect_err("it lacks a program");
        assert!(lacks.to_string().contains("install it, or remove what is left by hand"), "{lacks}");
        if rustix::process::geteuid().is_root() {
            let theirs = std::process::id().to_string();
            remove(&words(&["kill", "-0", &theirs]), &trial, id)
                .expect_err("no process of the machine has a number there");
        }

        fs::rename(&trial, place.path().join("aside")).expect("renamed");
        fs::create_dir_all(trial.join(OWN_DIRECTORY)).expect("made");
        fs::write(trial.join(OWN_DIRECTORY).join("precious"), "data").expect("written");
        let refused = remove(&words(&["rm", "precious"]), &trial, id).expect_err("another directory");
        assert!(refused.to_string().contains("in which it must run, is gone"), "{refused}");
        assert!(trial.join(OWN_DIRECTORY).join("precious").exists());
    }
}

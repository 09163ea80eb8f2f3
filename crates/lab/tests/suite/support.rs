//! Plans, recorders and looks at the machine that the tests share.

pub(crate) use fstone_lab::testing::{loop_device, step};
use fstone_lab::{
    run::carry_out::{LabOptions, Recorder, RecorderError},
    testing,
};
use fstone_model::{
    Cell, Plan, Step, Trial,
    result::TrialId,
    study::{Repeats, StepAction},
};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) fn scratch_directory() -> TempDir {
    tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory")
}

pub(crate) fn options(work: &Path) -> LabOptions {
    LabOptions { work_directory: work.join("work"), agent: agent(), ..testing::options() }
}

/// The example that is an agent and nothing else: this test is none.
pub(crate) fn agent() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let agent = test.parent().and_then(Path::parent).expect("in target").join("examples/trial_agent");
    assert!(agent.exists(), "{} is not built: cargo build --example trial_agent", agent.display());
    agent
}

pub(crate) fn command(name: &str, argv: &[&str]) -> Step {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    step(name, StepAction::Command { argv, shell: false, success: Vec::new(), figures: Vec::new() })
}

pub(crate) fn shell(name: &str, script: &str) -> Step {
    step(name, StepAction::Command { argv: vec![script.into()], shell: true, success: Vec::new(), figures: Vec::new() })
}

/// mkfs, mount, then these steps, on a sparse image of 400 MiB.
#[expect(clippy::needless_pass_by_value, reason = "callers make the list for it")]
pub(crate) fn cell(kind: &str, mkfs: &str, mount: &str, steps: Vec<Step>) -> Cell {
    let mut cell = testing::cell(0, kind, mount, &steps);
    cell.label = kind.into();
    cell.filesystem.mkfs = mkfs.split_whitespace().map(str::to_owned).collect();
    cell
}

pub(crate) fn plan(mut cells: Vec<Cell>, repeats: u32) -> Plan {
    for (index, cell) in (0..).zip(&mut cells) {
        cell.index = index;
        cell.levels = vec![index];
    }
    testing::plan(cells, Repeats { min: repeats, max: repeats, until: None })
}

#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) started: Vec<TrialId>,
    pub(crate) trials: Vec<Trial>,
    pub(crate) fail_at: Option<usize>,
    calls: usize,
}

impl Memory {
    pub(crate) fn failing_at(n: usize) -> Self {
        Self { fail_at: Some(n), ..Self::default() }
    }

    pub(crate) fn struck(&self) -> bool {
        self.fail_at.is_some_and(|at| self.calls > at)
    }

    fn call(&mut self) -> Result<(), RecorderError> {
        self.calls += 1;
        if self.fail_at == Some(self.calls - 1) { Err("the store is full".into()) } else { Ok(()) }
    }
}

impl Recorder for Memory {
    fn trial_started(&mut self, id: TrialId, _position: u32) -> Result<(), RecorderError> {
        self.call()?;
        self.started.push(id);
        Ok(())
    }

    fn trial_finished(&mut self, trial: &Trial) -> Result<(), RecorderError> {
        self.call()?;
        self.trials.push(trial.clone());
        Ok(())
    }
}

/// Shell code that finds the image behind a step's loop device. It has no name, but this process has it open.
pub(crate) fn finds_image() -> String {
    format!(
        "inode=$(losetup -nO BACK-INO {{device}} | tr -d ' ')
        for d in /proc/{}/fd/*; do if [ \"$(stat -Lc %i $d 2>/dev/null)\" = $inode ]; then image=$d; fi; done",
        std::process::id()
    )
}

pub(crate) fn may_use_devices(tools: &[&str]) -> bool {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: making loop devices needs root");
        return false;
    }
    if !Path::new("/dev/loop-control").exists() {
        eprintln!("skipped: this machine has no loop devices");
        return false;
    }
    for tool in tools {
        if fstone_lab::command::find_program(tool).is_none() {
            eprintln!("skipped: {tool} is not installed");
            return false;
        }
    }
    true
}

#[track_caller]
pub(crate) fn assert_clean(directory: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mount table");
    let name = directory.to_str().expect("plain path");
    assert!(!mounts.contains(name), "still mounted:\n{mounts}");
    for entry in std::fs::read_dir("/sys/block").expect("sysfs").flatten() {
        let backing = std::fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        assert!(!backing.contains(name), "{:?} still has {backing}", entry.file_name());
    }
    let left: Vec<_> = std::fs::read_dir(directory).expect("listed").flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

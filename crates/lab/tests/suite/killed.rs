//! kill -9 at random moments: a clean undoes what was left, a resume completes the run, and no finished trial is lost.

use crate::support::{assert_clean, cell, command, may_use_devices, options, plan, scratch_directory, step};
use fstone_lab::{
    events::Silent,
    machine::Machine,
    place::undo::clean,
    run::carry_out::{Recorder, RecorderError, RunEnd, carry_out},
};
use fstone_model::{
    Plan, Trial,
    result::TrialId,
    study::{DeviceSpec, FsckMode, StepAction},
};
use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

const TOOLS: &[&str] = &["mkfs.ext4", "e2fsck", "dumpe2fs", "mkfs.btrfs", "btrfs", "blkid"];
const VICTIM: &str = "FSTONE_LAB_TEST_VICTIM";
/// How many times a run is killed. Set higher by hand for a soak.
const KILLS: &str = "FSTONE_LAB_TEST_KILLS";

fn victims_plan() -> Plan {
    let steps = || {
        vec![
            command("write", &["dd", "if=/dev/zero", "of=a", "bs=1M", "count=8"]),
            step("remount", StepAction::Remount),
            step("fsck", StepAction::Fsck { mode: FsckMode::ReadOnly }),
        ]
    };
    let mut zram = cell("ext4", "", "noatime", steps());
    zram.device = DeviceSpec::Zram { size_bytes: 64 << 20 };
    let mut settings = cell("ext4", "", "", steps());
    settings.queue = vec![("read_ahead_kb".into(), "256".into())];
    let mut cells = vec![settings, cell("btrfs", "", "", steps())];
    if Path::new("/sys/class/zram-control/hot_add").exists() {
        cells.push(zram);
    }
    plan(cells, 2)
}

struct Lines(File);

impl Lines {
    fn append(path: &Path) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(path).expect("opens");
        // Half a line, which a kill in the middle of a write leaves, would be a part of the next one.
        let text = fs::read(path).expect("readable");
        file.set_len(text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end as u64 + 1)).expect("shortened");
        Self(file)
    }
}

impl Recorder for Lines {
    fn trial_started(&mut self, _id: TrialId, _position: u32) -> Result<(), RecorderError> {
        Ok(())
    }

    fn trial_finished(&mut self, trial: &Trial) -> Result<(), RecorderError> {
        self.0.write_all(format!("{}\n", serde_json::to_string(trial)?).as_bytes())?;
        Ok(self.0.sync_data()?)
    }
}

fn recorded(path: &Path) -> Vec<Trial> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'))
        .map(|line| serde_json::from_str(line).expect("a trial"))
        .collect()
}

/// The process that is killed; only when it is asked for by the test below.
#[test]
fn victim() {
    let Some(directory) = std::env::var_os(VICTIM).map(PathBuf::from) else { return };
    let results = directory.join("results");
    let finished = recorded(&results);
    let end = carry_out(
        &victims_plan(),
        &options(&directory),
        &finished,
        &mut Lines::append(&results),
        &Silent,
        &AtomicBool::new(false),
    );
    assert_eq!(end.expect("carried out"), RunEnd::Completed);
}

fn holds_something(directory: &Path) -> bool {
    let name = directory.to_str().expect("plain");
    fs::read_dir("/sys/block")
        .expect("sysfs")
        .flatten()
        .any(|entry| fs::read_to_string(entry.path().join("loop/backing_file")).is_ok_and(|file| file.contains(name)))
}

fn start_victim(directory: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "killed::victim", "--nocapture"])
        .env(VICTIM, directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts")
}

/// How long the victim takes here and now when nobody kills it: a busy machine takes many times that of an idle one.
fn length_of_a_run() -> Duration {
    let directory = scratch_directory();
    let since = Instant::now();
    let status = start_victim(directory.path()).wait().expect("reaped");
    assert!(status.success(), "the run failed by itself: {status}");
    since.elapsed()
}

#[test]
fn a_killed_run_is_cleaned_up_and_resumed() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let kills: u64 = std::env::var(KILLS).ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    let planned = victims_plan();
    let wanted = planned.cells.len() * planned.repeats.min as usize;
    let machine = Machine::host();
    let whole = length_of_a_run();
    let (mut started, mut killed, mut cleaned, mut held) = (0_u32, 0, 0, 0);
    while killed < kills {
        let directory = scratch_directory();
        let work_directory = options(directory.path()).work_directory;
        let results = directory.path().join("results");
        loop {
            let before = recorded(&results);
            let mut victim = start_victim(directory.path());
            // Moments spread over the whole of a run, by a low-discrepancy sequence, so that each kill is at another.
            let moment = (f64::from(started) * 0.618_033_988_749_895).fract();
            started += 1;
            std::thread::sleep(whole.mul_f64(moment));
            held += usize::from(holds_something(directory.path()));
            let ended = victim.try_wait().expect("waits");
            if ended.is_none() {
                victim.kill().expect("killed");
                killed += 1;
            }
            let status = victim.wait().expect("reaped");
            assert!(ended.is_none() || status.success(), "the run failed by itself: {status}");

            let after = recorded(&results);
            assert_eq!(after[..before.len()], before[..], "a finished trial is lost");
            // The kernel takes back all but settings: nothing of that waits for a clean.
            let since = Instant::now();
            while holds_something(directory.path()) {
                assert!(since.elapsed() < Duration::from_secs(60), "a loop device or an image is left");
                std::thread::sleep(Duration::from_millis(20));
            }
            let listed = clean(&work_directory, true, &[], &machine).expect("lists");
            let undone = clean(&work_directory, false, &[], &machine).expect("cleans");
            assert_eq!(listed.len(), undone.len(), "what is listed is what is undone: {listed:?}\n{undone:?}");
            assert!(undone.iter().all(|leftover| leftover.error.is_none()), "{undone:?}");
            cleaned += undone.len();
            let of_journal = |what: &str| what.starts_with("queue setting") || what.starts_with("zram");
            assert!(undone.iter().all(|leftover| of_journal(&leftover.what)), "{undone:?}");
            assert!(
                clean(&work_directory, false, &[], &machine).expect("cleans").is_empty(),
                "a second clean has nothing to do"
            );
            if ended.is_some() || killed >= kills {
                break;
            }
        }
        // To the end, without a kill.
        let finished = recorded(&results);
        let options = options(directory.path());
        let end =
            carry_out(&planned, &options, &finished, &mut Lines::append(&results), &Silent, &AtomicBool::new(false));
        assert_eq!(end.expect("carried out"), RunEnd::Completed);
        let trials = recorded(&results);
        assert_eq!(trials.len(), wanted);
        let mut ids: Vec<TrialId> = trials.iter().map(|trial| trial.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), wanted, "no trial was made twice");
        assert!(trials.iter().all(|trial| trial.outcome.is_completed()), "{trials:#?}");
        fs::remove_file(&results).expect("removed");
        assert_clean(directory.path());
    }
    eprintln!(
        "{killed} kills, {held} of them of a run with a device, left {cleaned} things to clean up; all were undone"
    );
    assert!(held > 0, "no kill hit a trial: the moments are chosen badly");
}

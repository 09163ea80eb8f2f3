//! A run of many trials: nothing in the process grows with their number but what the schedule has to know of each.

use crate::{
    load::{load, small_files},
    support::{cell, options, plan, scratch_directory},
};
use fstone_lab::{
    events::Silent,
    machine::Machine,
    run::carry_out::{Recorder, RecorderError, RunEnd, carry_out_on},
};
use fstone_model::{Trial, result::TrialId, study::DeviceSpec};
use std::{fs, process::Command, sync::atomic::AtomicBool};

/// Asks for the run below, in a process of its own: other tests would be in its memory.
const ALONE: &str = "FSTONE_LAB_TEST_LONG";
const TRIALS: u32 = 600;
/// Until here the allocator and the run's own tables grow to what they need.
const WARM: usize = 100;
/// What the schedule keeps of a trial (its number, and a value for each column) and what an allocator wastes. A trial's
/// own record is several times as long.
const PER_TRIAL_BYTES: u64 = 1024;

#[derive(Default)]
struct Meter {
    resident: Vec<u64>,
}

impl Recorder for Meter {
    fn trial_started(&mut self, _id: TrialId, _position: u32) -> Result<(), RecorderError> {
        Ok(())
    }

    fn trial_finished(&mut self, _trial: &Trial) -> Result<(), RecorderError> {
        let pages = fs::read_to_string("/proc/self/statm")?;
        let pages: u64 = pages.split(' ').nth(1).ok_or("no resident pages")?.parse()?;
        self.resident.push(pages * rustix::param::page_size() as u64);
        Ok(())
    }
}

#[test]
fn alone() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let work = scratch_directory();
    let mut cell = cell("ext4", "", "", vec![load(small_files(10, None))]);
    cell.device = DeviceSpec::Directory { path: None };
    let mut meter = Meter::default();
    let options = options(work.path());
    let plan = plan(vec![cell], TRIALS);
    let end = carry_out_on(&Machine::fake(), &plan, &options, &[], &mut meter, &Silent, &AtomicBool::new(false));
    assert_eq!(end.expect("carried out"), RunEnd::Completed);
    assert_eq!(meter.resident.len(), TRIALS as usize);
    let (warm, last) = (meter.resident[WARM], meter.resident[TRIALS as usize - 1]);
    let grown = last.saturating_sub(warm);
    println!("{grown} bytes more after {TRIALS} trials than after {WARM}, of {last}");
    assert!(grown <= (u64::from(TRIALS) - WARM as u64) * PER_TRIAL_BYTES, "{grown} bytes");
}

#[test]
fn memory_does_not_grow_with_the_number_of_trials() {
    let output = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "long::alone", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .expect("starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("bytes more after"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    eprint!("{}", text.lines().find(|line| line.contains("bytes more after")).unwrap_or_default());
}

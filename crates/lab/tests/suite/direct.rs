//! Loads with O_DIRECT on loop devices: past the host's page cache too, or marked.

use crate::{
    load::{load, small_files},
    support::{Memory, assert_clean, cell, may_use_devices, options, plan, scratch_directory, shell},
};
use fstone_lab::{
    events::Silent,
    run::carry_out::{LabOptions, RunEnd, carry_out},
};
use fstone_model::{Step, Trial};
use std::{
    fs,
    path::Path,
    process::{Command, Output},
    sync::atomic::AtomicBool,
};

const TOOLS: &[&str] = &["mkfs.ext4", "e2fsck", "dumpe2fs", "blkid", "losetup", "truncate"];

fn writes(direct: bool) -> Step {
    let mut workload = small_files(20, None);
    workload.io.direct = direct;
    workload.filesets[0].size = fstone_model::workload::SizeDistribution::Uniform { minimum: 65536, maximum: 65536 };
    load(workload)
}

fn expects(direct: bool) -> Step {
    let wanted = u8::from(direct);
    shell("look", &format!("device={{device}}; [ $(cat /sys/block/${{device##*/}}/loop/dio) = {wanted} ]"))
}

fn trials(work: &Path, cells: Vec<fstone_model::Cell>) -> Vec<Trial> {
    let mut memory = Memory::default();
    let options = LabOptions { work_directory: work.to_owned(), keep_going: true, ..options(work) };
    let end = carry_out(&plan(cells, 1), &options, &[], &mut memory, &Silent, &AtomicBool::new(false));
    assert_eq!(end.expect("carried out"), RunEnd::Completed);
    for trial in &memory.trials {
        assert!(trial.outcome.is_completed(), "{trial:#?}");
    }
    memory.trials
}

fn cached(trial: &Trial) -> bool {
    trial.warnings.iter().any(|warning| warning.contains("cannot do direct I/O"))
}

#[test]
fn a_loop_device_is_direct_where_a_load_of_the_plan_is() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let work = scratch_directory();
    let probe = work.path().join("probe");
    fs::write(&probe, [0; 4096]).expect("written");
    let mut read = Command::new("dd");
    read.args(["of=/dev/null", "iflag=direct", "bs=4096"]).arg(format!("if={}", probe.display()));
    if !read.output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {} cannot do direct I/O", work.path().display());
        return;
    }
    fs::remove_file(probe).expect("removed");
    let both = |direct: bool| {
        vec![
            cell("ext4", "", "", vec![expects(direct), writes(direct)]),
            cell("ext4", "", "", vec![expects(direct), writes(false)]),
        ]
    };
    for direct in [true, false] {
        let trials = trials(&work.path().join("work"), both(direct));
        assert!(trials.len() == 2 && !trials.iter().any(cached), "{trials:#?}");
    }
    assert_clean(work.path());
}

/// A filesystem whose device has sectors that are larger than those of the loop device.
struct Coarse {
    place: tempfile::TempDir,
    device: String,
}

impl Coarse {
    fn new() -> Self {
        let place = scratch_directory();
        let (image, mount) = (place.path().join("image"), place.path().join("mount"));
        fs::create_dir(&mount).expect("made");
        let run = |program: &str, arguments: &[&str]| -> Output {
            let output = Command::new(program).args(arguments).output().expect("starts");
            assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            output
        };
        let (image, mount) = (image.display().to_string(), mount.display().to_string());
        run("truncate", &["-s", "700M", &image]);
        let device = run("losetup", &["--sector-size", "4096", "--show", "-f", &image]);
        let device = String::from_utf8_lossy(&device.stdout).trim().to_owned();
        let coarse = Self { place, device };
        run("mkfs.ext4", &["-q", "-F", &coarse.device]);
        run("mount", &[&coarse.device, &mount]);
        coarse
    }

    fn mount(&self) -> std::path::PathBuf {
        self.place.path().join("mount")
    }
}

impl Drop for Coarse {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.mount()).status();
        let _ = Command::new("losetup").args(["-d", &self.device]).status();
    }
}

#[test]
fn where_it_cannot_be_direct_the_trial_says_so() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let coarse = Coarse::new();
    let work = coarse.mount().join("work");
    let of_direct = trials(&work, vec![cell("ext4", "", "", vec![expects(false), writes(true)])]);
    assert!(of_direct.iter().all(cached), "{of_direct:#?}");
    let of_buffered = trials(&work, vec![cell("ext4", "", "", vec![expects(false), writes(false)])]);
    assert!(!of_buffered.iter().any(cached), "{of_buffered:#?}");
}

//! A disk to name on a command line.

use crate::support::Bench;
use std::{fs, process::Command};

/// Its read-ahead before and after a run, whatever was killed in between; studies set another.
pub(super) const READ_AHEAD: &str = "96";

/// A loop device that stands in for a disk, outside the work directory; detached in the end.
pub(super) struct Disk(pub(super) String);

impl Disk {
    pub(super) fn new(bench: &Bench) -> Self {
        let image = bench.path("disk.img");
        fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("an image");
        let output = Command::new("losetup").args(["-f", "--show"]).arg(&image).output().expect("losetup starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let disk = Self(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        fs::write(disk.read_ahead(), READ_AHEAD).expect("a queue of its own");
        disk
    }

    pub(super) fn read_ahead(&self) -> String {
        format!("/sys/block/{}/queue/read_ahead_kb", self.0.trim_start_matches("/dev/"))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

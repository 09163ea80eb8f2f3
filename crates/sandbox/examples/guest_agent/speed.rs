//! Disks of known speed, read back from inside a guest.

use super::{job, kernel};
use fstone_sandbox::uml::{UmlDisk, UmlSpec};
use fstone_sandbox::vhost::{Disk, DiskSpec, Speed};
use std::error::Error;
use std::fs::File;
use std::time::Duration;

const SECONDS: u64 = 10;

/// What a guest measures on a disk of this speed: (count, nanoseconds) of the job.
fn read_back(speed: Speed, kind: &str, how: &str) -> Result<(f64, f64), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let image = directory.path().join("disk.img");
    File::create(&image)?.set_len(256 << 20)?;
    let disk = Disk::serve(&DiskSpec { speed, ..DiskSpec::new(&image) }, &directory.path().join("disk.sock"))?;
    let mut spec = UmlSpec::new(kernel()?, std::env::current_exe()?, directory.path());
    spec.disks = vec![UmlDisk::VhostUser(disk.socket().to_owned())];
    let mut guest = spec.boot()?;
    let answer = job(&mut guest, kind, &format!("/dev/vda {how}"))?;
    let report = guest.finish();
    for warning in report.clock.warnings() {
        println!("    {warning}");
    }
    let mut numbers = answer.split_whitespace().map(str::parse::<f64>);
    let (Some(count), Some(ns)) = (numbers.next(), numbers.next()) else { return Err(answer.into()) };
    Ok((count?, ns?))
}

/// Measures and prints.
pub(crate) fn measure() -> Result<(), Box<dyn Error>> {
    let reads = SECONDS.to_string();
    let (operations, ns) = read_back(Speed::default(), "random-reads", "5")?;
    let transport = Duration::from_nanos((ns / operations) as u64);
    println!("unlimited: {:.0} reads/s, {transport:.1?} each", operations / ns * 1e9);
    for iops in [500u32, 4000] {
        let (operations, ns) = read_back(Speed { iops: Some(iops), ..Speed::default() }, "random-reads", &reads)?;
        let got = operations / ns * 1e9;
        println!("{iops} reads/s: {got:.1} ({:+.2} %)", (got / f64::from(iops) - 1.0) * 100.0);
    }
    for rate in [20_000_000u64, 50_000_000] {
        for how in ["read", "write", "buffered"] {
            let speed = Speed { bytes_per_second: Some(rate), ..Speed::default() };
            let (bytes, ns) = read_back(speed, "sequential", &format!("{how} {SECONDS}"))?;
            let got = bytes / ns * 1e9;
            println!("{rate} bytes/s, {how}: {got:.0} ({:+.2} %)", (got / rate as f64 - 1.0) * 100.0);
        }
    }
    for transport in [Duration::ZERO, transport] {
        let speed = Speed { latency: Some(Duration::from_millis(1)), transport, ..Speed::default() };
        let (operations, ns) = read_back(speed, "random-reads", &reads)?;
        let each = ns / operations / 1e6;
        println!("1 ms, transport {transport:.1?} taken off: {each:.4} ms ({:+.2} %)", (each - 1.0) * 100.0);
    }
    Ok(())
}

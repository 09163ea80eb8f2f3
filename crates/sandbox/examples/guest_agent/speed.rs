//! Disks of known speed, read back from inside a guest.

use super::{job, kernel};
use fstone_sandbox::uml::{UmlDisk, UmlSpec};
use fstone_sandbox::vhost::{Disk, DiskSpec, Speed};
use std::error::Error;
use std::fs::File;
use std::time::Duration;

/// How long each is looked at. The median of its windows is not moved by stalls of the host.
const SECONDS: u64 = 11;

/// What a guest measures on a disk of this speed, per second: operations or bytes, as the job counts. With `settle`,
/// what the way to the disk and back costs is measured first, as a trial does, and taken off.
fn read_back(speed: Speed, settle: bool, kind: &str, how: &str) -> Result<f64, Box<dyn Error>> {
    let directory = super::private_directory()?;
    let image = directory.path().join("disk.img");
    File::create(&image)?.set_len(256 << 20)?;
    let disk = Disk::serve(&DiskSpec { speed, ..DiskSpec::new(&image) }, &directory.path().join("disk.sock"))?;
    let mut spec = UmlSpec::new(kernel()?, std::env::current_exe()?, directory.path());
    spec.disks = vec![UmlDisk::VhostUser(disk.socket().to_owned())];
    let mut guest = spec.boot()?;
    if settle && let Some(latency) = speed.deciding_latency() {
        let answer = job(&mut guest, "settle", "/dev/vda")?;
        let seen = Duration::from_nanos(answer.trim().parse()?);
        disk.take_off(seen.saturating_sub(latency));
        println!("    the way there and back: {:.1?}", seen.saturating_sub(latency));
    }
    let answer = job(&mut guest, kind, &format!("/dev/vda {how}{SECONDS}"))?;
    let rates: Result<Vec<f64>, _> = answer.split_whitespace().map(str::parse).collect();
    let mut rates = rates?;
    if rates.is_empty() {
        return Err("not one window was measured".into());
    }
    rates.sort_by(f64::total_cmp);
    let at = |share: usize| rates[rates.len() * share / 4];
    println!("    quartiles: {:.1?}", [at(1), at(2), at(3)]);
    let report = guest.finish();
    for warning in report.clock.warnings() {
        println!("    {warning}");
    }
    Ok(rates[rates.len() / 2])
}

pub(crate) fn measure() -> Result<(), Box<dyn Error>> {
    let unlimited = read_back(Speed::default(), false, "random-reads", "")?;
    println!("unlimited: {unlimited:.0} reads/s, {:.1?} each", Duration::from_secs_f64(1.0 / unlimited));
    for iops in [500u32, 4000] {
        let got = read_back(Speed { iops: Some(iops), ..Speed::default() }, false, "random-reads", "")?;
        println!("{iops} reads/s: {got:.1} ({:+.2} %)", (got / f64::from(iops) - 1.0) * 100.0);
    }
    for rate in [20_000_000u64, 50_000_000] {
        for how in ["read", "write", "buffered"] {
            let speed = Speed { bytes_per_second: Some(rate), ..Speed::default() };
            let got = read_back(speed, false, "sequential", &format!("{how} "))?;
            println!("{rate} bytes/s, {how}: {got:.0} ({:+.2} %)", (got / rate as f64 - 1.0) * 100.0);
        }
    }
    for latency_ms in [1u32, 5] {
        let speed = Speed { latency: Some(Duration::from_millis(latency_ms.into())), ..Speed::default() };
        for settle in [false, true] {
            let each = 1e3 / read_back(speed, settle, "random-reads", "")?;
            let off = (each / f64::from(latency_ms) - 1.0) * 100.0;
            println!("{latency_ms} ms{}: {each:.4} ms ({off:+.2} %)", if settle { ", settled" } else { "" });
        }
    }
    Ok(())
}

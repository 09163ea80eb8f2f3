//! Host and guest in one binary: boots itself as the agent of a guest and has it do something. The tests of this
//! crate use it as their agent.
//!
//! - `guest_agent boot [N]` boots N guests, one after the other, and prints how long each took to say hello.
//! - `guest_agent kernel add WHAT` and `kernel list` fetch and show kernels, in the directory `GUEST_KERNELS`.
//! - `guest_agent echo BYTES` sends so many bytes to a guest and back, there only, and back only.
//! - `guest_agent disk KIND` makes a filesystem on an image, has a guest mount it over vhost-user, write a hundred
//!   files with fsync, and prints what arrived at the disk.
//! - `guest_agent qemu qemu:6.12 ext4` does the same in QEMU, with a kernel of the store.
//! - `guest_agent exact KERNEL MODEL JOB [WORD]` has a guest whose time is simulated do a job of `jobs.rs` on a drive of
//!   16 GiB, with the seed `GUEST_SEED`, and prints its result, its time and the hash of its requests.
//! - `guest_agent attacked kernel|root [refused] …` is attacked by a hostile guest: see `attacks.rs`.
//! - `guest_agent speed` reads disks of known speed back, from inside a guest.

#[path = "guest_agent/attacks.rs"]
mod attacks;
#[path = "guest_agent/jobs.rs"]
mod jobs;
#[path = "guest_agent/speed.rs"]
mod speed;

use fstone_drive::Model;
use fstone_sandbox::agent;
use fstone_sandbox::exact::{ExactEnd, ExactSpec};
use fstone_sandbox::guest::{Guest, JobEnd};
use fstone_sandbox::kernel::Store;
use fstone_sandbox::qemu::{QemuSpec, probe_kvm};
use fstone_sandbox::uml::{UmlDisk, UmlKernel, UmlSpec, installed_kernel};
use fstone_sandbox::vhost::{Disk, DiskSpec};
use std::error::Error;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    if agent::is_agent() {
        agent::main(&mut jobs::Jobs);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if attacks::as_kernel(&words) {
        return Ok(());
    }
    match words.as_slice() {
        ["attacked", "kernel", victims @ ..] => attacks::with_hostile_kernel(victims),
        ["attacked", "root", victims @ ..] => attacks::with_hostile_root(kernel()?, victims),
        ["boot"] => boot(1),
        ["boot", count] => boot(count.parse()?),
        ["disk", kind] => disk(kind),
        ["kernel", "add", what] => show(&store()?.add(what)?),
        ["kernel", "list"] => show(&store()?.list()?),
        ["echo", bytes] => echo(bytes.parse()?),
        ["qemu", name, kind] => qemu(name, kind),
        ["exact", kernel, model, job, body @ ..] => exact(kernel, model, job, &body.join(" ")),
        ["speed"] => speed::measure(),
        _ => Err("usage: guest_agent boot [N] | attacked kernel|root [refused] VICTIMS | kernel add WHAT | kernel list | echo BYTES | disk KIND | qemu KERNEL FILESYSTEM | exact KERNEL MODEL JOB | speed".into()),
    }
}

/// What user-mode kernel to use: `GUEST_KERNEL=uml:5.10` of the store in `GUEST_KERNELS`, else the installed one.
fn kernel() -> Result<UmlKernel, Box<dyn Error>> {
    let Ok(name) = std::env::var("GUEST_KERNEL") else {
        return installed_kernel().ok_or_else(|| "linux.uml is not installed: apt-get install user-mode-linux".into());
    };
    store()?.find(&name)?.as_uml().ok_or_else(|| format!("{name} is no user-mode Linux").into())
}

fn store() -> Result<Store, Box<dyn Error>> {
    let directory = std::env::var("GUEST_KERNELS").map_err(|_| "GUEST_KERNELS names no directory")?;
    Ok(Store::new(directory))
}

fn show(what: &impl std::fmt::Debug) -> Result<(), Box<dyn Error>> {
    println!("{what:#?}");
    Ok(())
}

fn private_directory() -> std::io::Result<tempfile::TempDir> {
    tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir()
}

fn job(guest: &mut Guest, kind: &str, body: &str) -> Result<String, Box<dyn Error>> {
    match guest.run(kind, body.as_bytes(), Duration::from_secs(120), &mut |event| eprintln!("{event:?}")) {
        JobEnd::Done(result) => Ok(String::from_utf8(result)?),
        JobEnd::Failed(why) => Err(format!("{kind} {body}: {why}").into()),
        JobEnd::Stopped => Err(format!("{kind} {body}: stopped").into()),
        JobEnd::GuestEnded(ending) => Err(format!("{kind} {body}: {}\n{}", ending.describe(), ending.words()).into()),
    }
}

fn exact(kernel: &str, model: &str, job: &str, body: &str) -> Result<(), Box<dyn Error>> {
    let directory = private_directory()?;
    let image = directory.path().join("image");
    File::create(&image)?.set_len(16 << 30)?;
    let model = Model::find(model)?;
    let mut spec = ExactSpec::new(kernel, std::env::current_exe()?, image, directory.path(), model);
    spec.seed = std::env::var("GUEST_SEED").map_or(Ok(0), |seed| seed.parse())?;
    let report = spec.run(job, body.as_bytes(), &AtomicBool::new(false))?;
    match &report.end {
        ExactEnd::Done(result) => println!("{}", String::from_utf8_lossy(result)),
        ExactEnd::GuestEnded(ending) => println!("{}\n{}", ending.describe(), ending.words()),
        other => println!("{other:?}"),
    }
    println!("virtual {:?}, trace {}", report.virtual_time, report.trace);
    let fstone_sandbox::vhost::DiskCounters { reads, writes, flushes, .. } = report.counters;
    println!("reads {reads}, writes {writes}, flushes {flushes}");
    eprintln!("real {} ns, {} requests", report.real_time.as_nanos(), reads + writes + flushes);
    if std::env::var_os("GUEST_CONSOLE").is_some() {
        eprintln!("{}", std::fs::read_to_string(&report.console_log)?);
    }
    Ok(())
}

fn boot(count: u32) -> Result<(), Box<dyn Error>> {
    let directory = private_directory()?;
    let mut times = Vec::new();
    for _ in 0..count {
        let spec = UmlSpec::new(kernel()?, std::env::current_exe()?, directory.path());
        let start = Instant::now();
        let mut guest = spec.boot()?;
        let round_trip = Instant::now();
        job(&mut guest, "echo", &"x".repeat(1000))?;
        let round_trip = round_trip.elapsed();
        let (hello, boot_time, confinement) = (guest.hello().clone(), guest.boot_time(), guest.confinement());
        let report = guest.finish();
        times.push(boot_time);
        println!(
            "{} hello after {} ms, kernel {} ms, round trip {} µs, whole {} ms, {confinement:?}, {:?}, {:?}",
            hello.kernel_release,
            boot_time.as_millis(),
            hello.booted_ns / 1_000_000,
            round_trip.as_micros(),
            start.elapsed().as_millis(),
            report.ending,
            hello.tsc,
        );
        for complaint in &hello.complaints {
            println!("  {complaint}");
        }
    }
    times.sort();
    println!("median {} ms of {count}", times[times.len() / 2].as_millis());
    Ok(())
}

fn echo(bytes: usize) -> Result<(), Box<dyn Error>> {
    let directory = private_directory()?;
    let mut guest = UmlSpec::new(kernel()?, std::env::current_exe()?, directory.path()).boot()?;
    for kind in ["echo", "count", "produce"] {
        let body = if kind == "produce" { bytes.to_string() } else { "x".repeat(bytes) };
        let start = Instant::now();
        job(&mut guest, kind, &body)?;
        println!("{kind} {bytes} bytes: {:?}", start.elapsed());
    }
    println!("{:?}", guest.finish().ending);
    Ok(())
}

fn mkfs(kind: &str, image: &Path) -> Result<(), Box<dyn Error>> {
    let options: &[&str] = match kind {
        "ext2" | "ext3" | "ext4" => &["-q", "-F"],
        "xfs" | "btrfs" | "f2fs" => &["-q", "-f"],
        "jfs" => &["-q"],
        "reiserfs" => &["-q", "-f", "-f"],
        "nilfs2" => &["-q"],
        _ => return Err(format!("how is {kind} made?").into()),
    };
    let output = Command::new(format!("mkfs.{kind}"))
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .args(options)
        .arg(image)
        .output()
        .map_err(|error| format!("mkfs.{kind}: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned().into()) }
}

fn disk(kind: &str) -> Result<(), Box<dyn Error>> {
    let directory = private_directory()?;
    let image = directory.path().join("disk.img");
    File::create(&image)?.set_len(512 << 20)?;
    mkfs(kind, &image)?;
    let disk = Disk::serve(&DiskSpec::new(&image), &directory.path().join("disk.sock"))?;
    let mut spec = UmlSpec::new(kernel()?, std::env::current_exe()?, directory.path());
    spec.disks = vec![UmlDisk::VhostUser(disk.socket().to_owned())];
    let mut guest = spec.boot()?;
    println!("disks {:?}, {:?}", guest.hello().disks, guest.hello().complaints);
    if !guest.hello().filesystems.iter().any(|name| name == kind) {
        println!("module: {:?}", job(&mut guest, "module", kind));
    }
    job(&mut guest, "mount", &format!("/dev/vda {kind}"))?;
    let before = disk.counters();
    let took = job(&mut guest, "fsync-files", "100")?;
    println!("{kind}: 100 files of 4 KiB with fsync each: {took} ns");
    println!("  {:?}", disk.counters().since(&before));
    job(&mut guest, "unmount", "")?;
    let report = guest.finish();
    println!("  {:?} {:?}", report.ending, report.clock);
    println!("  in all {:?}", disk.finish());
    Ok(())
}

fn qemu(name: &str, kind: &str) -> Result<(), Box<dyn Error>> {
    let directory = private_directory()?;
    let image = directory.path().join("disk.img");
    File::create(&image)?.set_len(512 << 20)?;
    mkfs(kind, &image)?;
    let disk = Disk::serve(&DiskSpec::new(&image), &directory.path().join("disk.sock"))?;
    let cache = std::env::temp_dir().join("fstone-qemu-cache");
    let mut spec = QemuSpec::new(store()?.find(name)?, std::env::current_exe()?, directory.path(), cache);
    spec.disks = vec![disk.socket().to_owned()];
    spec.modules = vec![kind.to_owned()];
    spec.asked_by_name = vec!["crc32c_generic".to_owned(), "crc32_generic".to_owned()];
    let start = Instant::now();
    spec.prepare()?;
    println!("prepared in {:?}, KVM: {:?}", start.elapsed(), probe_kvm());
    let mut guest = spec.boot()?;
    println!("{} hello after {:?}, {:?}", guest.hello().kernel_release, guest.boot_time(), guest.hello());
    job(&mut guest, "mount", &format!("/dev/vda {kind}"))?;
    let before = disk.counters();
    let took = job(&mut guest, "fsync-files", "100")?;
    println!("{kind}: 100 files of 4 KiB with fsync each: {took} ns\n  {:?}", disk.counters().since(&before));
    job(&mut guest, "unmount", "")?;
    let report = guest.finish();
    println!("  {:?} {:?}", report.ending, report.clock);
    Ok(())
}

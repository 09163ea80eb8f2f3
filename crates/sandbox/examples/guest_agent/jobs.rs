//! What the example's guest can do, good and evil. Bodies are words of text.

use fstone_sandbox::agent::{Context, Handler};
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, mkdir, open};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant};

/// A page for O_DIRECT.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

#[derive(Debug, Default)]
pub(crate) struct Jobs;

type Answer = Result<Vec<u8>, String>;

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn number(words: &[&str], at: usize) -> Result<u64, String> {
    words.get(at).and_then(|word| word.parse().ok()).ok_or_else(|| format!("word {at} has to be a number"))
}

fn point(context: &Context<'_>) -> String {
    format!("{}/mount", context.scratch())
}

impl Handler for Jobs {
    fn run(&mut self, kind: &str, body: &[u8], context: &Context<'_>) -> Answer {
        let body_text = String::from_utf8_lossy(body);
        let words: Vec<&str> = body_text.split_whitespace().collect();
        match kind {
            "echo" => Ok(body.to_vec()),
            "count" => Ok(body.len().to_string().into()),
            "produce" => Ok(vec![b'x'; number(&words, 0)? as usize]),
            "report" => {
                context.progress("half way");
                context.log("one\ntwo");
                Ok(Vec::new())
            }
            "sleep" => {
                std::thread::sleep(Duration::from_millis(number(&words, 0)?));
                Ok(Vec::new())
            }
            "read-file" => fs::read(words.first().copied().unwrap_or("")).map_err(text),
            "write-file" => fs::write(words.first().copied().unwrap_or(""), "x").map_err(text).map(|()| Vec::new()),
            "module" => context.load_module(words.first().copied().unwrap_or("")).map_err(text).map(|()| Vec::new()),
            "mount" => do_mount(&words, context),
            "unmount" => {
                unmount(point(context), UnmountFlags::empty()).map_err(text)?;
                Ok(Vec::new())
            }
            "fsync-files" => fsync_files(number(&words, 0)?, context),
            "fill" => fill(number(&words, 0)?, context),
            "random-reads" => random_reads(&words),
            "settle" => {
                let device = std::path::Path::new(words.first().copied().unwrap_or(""));
                let time = fstone_sandbox::agent::time_of_a_read(device).map_err(text)?;
                Ok(time.as_nanos().to_string().into())
            }
            "sequential" => sequential(&words),
            "command" => command(&words),
            "timed-reads" => timed_reads(number(&words, 0)?),
            "timed-zeros" => timed_zeros(number(&words, 0)?),
            "requests" => requests(&words),
            "timed-filesystem" => timed_filesystem(words.first().copied().unwrap_or(""), context),
            "attack" => Ok(super::attacks::in_guest(words.first().copied().unwrap_or("")).into()),
            "stop-for-ever" => {
                std::thread::park();
                Ok(Vec::new())
            }
            "spin" => loop {
                std::hint::black_box(0);
            },
            "handler-panic" => panic!("as asked"),
            "kernel-panic" => fs::write("/proc/sysrq-trigger", "c").map_err(text).map(|()| Vec::new()),
            "abort" => std::process::abort(),
            "hang-kernel" => hang_kernel(),
            "flood" => flood(number(&words, 0)?),
            other => Err(format!("no such job: {other}")),
        }
    }
}

/// Has the disk zero so many bytes, which it may do by forgetting them, and makes that durable. Answers with what it took, in
/// nanoseconds, and what a disk that can discard says that it takes at once.
fn timed_zeros(bytes: u64) -> Answer {
    let disk = OpenOptions::new().write(true).open("/dev/vda").map_err(text)?;
    let start = Instant::now();
    fallocate(&disk, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, bytes).map_err(text)?;
    disk.sync_all().map_err(text)?;
    let took = start.elapsed().as_nanos();
    let discards = fs::read_to_string("/sys/block/vda/queue/discard_max_bytes").map_err(text)?;
    Ok(format!("{took} {}", discards.trim()).into_bytes())
}

fn do_mount(words: &[&str], context: &Context<'_>) -> Answer {
    let [device, kind, rest @ ..] = words else { return Err("mount DEVICE KIND [OPTIONS]".to_owned()) };
    let point = point(context);
    let _ = mkdir(&point, Mode::from(0o755));
    let options = std::ffi::CString::new(rest.first().copied().unwrap_or("")).map_err(text)?;
    mount(*device, &point, *kind, MountFlags::empty(), Some(options.as_c_str())).map_err(text)?;
    Ok(Vec::new())
}

fn command(words: &[&str]) -> Answer {
    let [program, arguments @ ..] = words else { return Err("command PROGRAM ARGUMENTS".to_owned()) };
    let output = std::process::Command::new(program).args(arguments).output().map_err(text)?;
    if output.status.success() { Ok(output.stdout) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// So many reads of 4 KiB off the disk, one at a time; answers with the nanoseconds they took.
fn timed_reads(count: u64) -> Answer {
    let direct = i32::try_from(OFlags::DIRECT.bits()).map_err(text)?;
    let file = OpenOptions::new().read(true).custom_flags(direct).open("/dev/vda").map_err(text)?;
    let mut page = Box::new(Page([0; 4096]));
    let start = Instant::now();
    for at in 0..count {
        file.read_exact_at(&mut page.0, at * 1_007 % 4_096 * 4096).map_err(text)?;
    }
    Ok(start.elapsed().as_nanos().to_string().into())
}

/// So many operations of 4 KiB on the whole disk, by so many threads: `read` and `write` go past the page cache, `sync` writes
/// through it and has each write made durable, `writeback` has them all made durable at its end.
fn requests(words: &[&str]) -> Answer {
    let (kind, count, threads) = (words.first().copied().unwrap_or(""), number(words, 1)?, number(words, 2)?);
    let direct =
        if matches!(kind, "read" | "write") { i32::try_from(OFlags::DIRECT.bits()).map_err(text)? } else { 0 };
    let file = OpenOptions::new().read(true).write(true).custom_flags(direct).open("/dev/vda").map_err(text)?;
    let work = |thread: u64| -> std::io::Result<()> {
        let mut page = Box::new(Page([thread as u8; 4096]));
        for index in (thread..count).step_by(threads as usize) {
            // A step of a large odd number of pages through 1 GiB.
            let at = index * 1_299_827 % (1 << 18) * 4096;
            match kind {
                "read" => file.read_exact_at(&mut page.0, at)?,
                _ => file.write_all_at(&page.0, at)?,
            }
            if kind == "sync" {
                file.sync_data()?;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        started.into_iter().try_for_each(|one| one.join().map_err(|_| "a thread panicked".to_owned())?.map_err(text))
    })?;
    file.sync_all().map_err(text)?;
    Ok(Vec::new())
}

/// Makes a filesystem, fills it with files of which each tenth is made durable, reads them back cold, removes half, and
/// checks it; answers with the nanoseconds of each.
fn timed_filesystem(kind: &str, context: &Context<'_>) -> Answer {
    const FILES: u64 = 300;
    let mut told = String::new();
    let mut timed = |what: &str, step: &mut dyn FnMut() -> Result<(), String>| {
        let start = Instant::now();
        step().map_err(|why| format!("{what}: {why}"))?;
        told += &format!("{what} {}\n", start.elapsed().as_nanos());
        Ok::<(), String>(())
    };
    let mkfs: &[&str] = match kind {
        "btrfs" | "xfs" | "f2fs" => &["-f"],
        "reiserfs" => &["-q", "-f", "-f"],
        "jfs" => &["-q"],
        "nilfs2" => &["-q", "-f"],
        _ => &["-q", "-F"],
    };
    let program = format!("mkfs.{kind}");
    timed("mkfs", &mut || command(&[&[program.as_str()], mkfs, &["/dev/vda"]].concat()).map(drop))?;
    timed("mount", &mut || do_mount(&["/dev/vda", kind], context).map(drop))?;
    let path = |index: u64| format!("{}/directory-{}/file-{index}", point(context), index % 7);
    timed("write", &mut || {
        for directory in 0..7 {
            mkdir(format!("{}/directory-{directory}", point(context)), Mode::from(0o755)).map_err(text)?;
        }
        for index in 0..FILES {
            let mut file = File::create(path(index)).map_err(text)?;
            file.write_all(&vec![index as u8; 16 << 10]).map_err(text)?;
            if index % 10 == 9 {
                file.sync_all().map_err(text)?;
            }
        }
        rustix::fs::sync();
        Ok(())
    })?;
    timed("drop", &mut || fs::write("/proc/sys/vm/drop_caches", "3").map_err(text))?;
    timed("read", &mut || (0..FILES).try_for_each(|index| fs::read(path(index * 7 % FILES)).map(drop).map_err(text)))?;
    timed("remove", &mut || (0..FILES / 2).try_for_each(|index| fs::remove_file(path(index)).map_err(text)))?;
    timed("unmount", &mut || unmount(point(context), UnmountFlags::empty()).map_err(text))?;
    match kind {
        "ext2" | "ext3" | "ext4" => timed("check", &mut || command(&["e2fsck", "-fn", "/dev/vda"]).map(drop))?,
        "xfs" => timed("check", &mut || command(&["xfs_repair", "-n", "/dev/vda"]).map(drop))?,
        _ => {}
    }
    Ok(told.into())
}

/// Files of 4 KiB, each made durable; answers with the nanoseconds it took.
fn fsync_files(count: u64, context: &Context<'_>) -> Answer {
    let start = Instant::now();
    for index in 0..count {
        let mut file = File::create(format!("{}/file-{index}", point(context))).map_err(text)?;
        file.write_all(&[index as u8; 4096]).map_err(text)?;
        file.sync_all().map_err(text)?;
    }
    Ok(start.elapsed().as_nanos().to_string().into())
}

fn fill(mebibytes: u64, context: &Context<'_>) -> Answer {
    let mut file = File::create(format!("{}/fill", point(context))).map_err(text)?;
    let piece = vec![0x5a_u8; 1 << 20];
    for _ in 0..mebibytes {
        file.write_all(&piece).map_err(text)?;
    }
    file.sync_all().map_err(text)?;
    Ok(Vec::new())
}

/// What was done per second, in windows of a fifth of a second, as "RATE RATE …".
struct Rates {
    window: Instant,
    done: u64,
    calls: u64,
    rates: Vec<String>,
}

impl Rates {
    fn new() -> Self {
        Self { window: Instant::now(), done: 0, calls: 0, rates: Vec::new() }
    }

    fn add(&mut self, done: u64) {
        self.done += done;
        self.calls += 1;
        // A clock read costs a guest some 15 µs.
        if !self.calls.is_multiple_of(8) {
            return;
        }
        let took = self.window.elapsed();
        if took >= Duration::from_millis(200) {
            self.rates.push((self.done as f64 / took.as_secs_f64()).to_string());
            (self.window, self.done) = (Instant::now(), 0);
        }
    }
}

/// `random-reads DEVICE SECONDS`: one at a time, 4 KiB, O_DIRECT; answers with [`Rates`] of operations.
fn random_reads(words: &[&str]) -> Answer {
    let (device, seconds) = (words.first().copied().unwrap_or(""), number(words, 1)?);
    let direct = i32::try_from(OFlags::DIRECT.bits()).map_err(text)?;
    let file = OpenOptions::new().read(true).custom_flags(direct).open(device).map_err(text)?;
    let pages = size_of_device(device)? / 4096;
    let mut page = Box::new(Page([0; 4096]));
    let mut state = 88_172_645_463_325_252u64;
    let mut rates = Rates::new();
    while rates.rates.len() < 5 * seconds as usize {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        file.read_exact_at(&mut page.0, state % pages * 4096).map_err(text)?;
        rates.add(1);
    }
    Ok(rates.rates.join(" ").into())
}

/// `sequential DEVICE read|write|buffered SECONDS`: 128 KiB at a time; answers with [`Rates`] of bytes.
fn sequential(words: &[&str]) -> Answer {
    let [device, how, ..] = words else { return Err("sequential DEVICE HOW SECONDS".to_owned()) };
    let seconds = number(words, 2)?;
    let direct = if *how == "buffered" { OFlags::empty() } else { OFlags::DIRECT };
    let file = open(*device, OFlags::RDWR | direct, Mode::empty()).map_err(text)?;
    let mut file = File::from(file);
    let mut pages: Vec<Page> = (0..32).map(|_| Page([0x5a; 4096])).collect();
    let size = size_of_device(device)?;
    let mut at = 0u64;
    let mut rates = Rates::new();
    while rates.rates.len() < 5 * seconds as usize {
        // 4 KiB pages that lie one after the other are one buffer only to readv; one page a call would hide the rate.
        let mut views: Vec<std::io::IoSliceMut<'_>> =
            pages.iter_mut().map(|page| std::io::IoSliceMut::new(&mut page.0)).collect();
        let moved = match *how {
            "read" => file.read_vectored(&mut views),
            _ => {
                let views: Vec<std::io::IoSlice<'_>> = views.iter().map(|view| std::io::IoSlice::new(view)).collect();
                file.write_vectored(&views)
            }
        };
        rates.add(moved.map_err(text)? as u64);
        at += 128 << 10;
        if at + (128 << 10) > size {
            std::io::Seek::rewind(&mut file).map_err(text)?;
            at = 0;
        }
    }
    if *how == "buffered" {
        file.sync_all().map_err(text)?;
    }
    Ok(rates.rates.join(" ").into())
}

fn size_of_device(device: &str) -> Result<u64, String> {
    let name = device.rsplit('/').next().unwrap_or(device);
    let sectors = fs::read_to_string(format!("/sys/block/{name}/size")).map_err(text)?;
    Ok(sectors.trim().parse::<u64>().map_err(text)? * 512)
}

/// A loop that nothing of lower real-time priority can interrupt, on a guest with one CPU: for everything in the
/// guest, the heartbeat too, time stands still.
fn hang_kernel() -> Answer {
    fs::write("/proc/sys/kernel/sched_rt_runtime_us", "-1").map_err(text)?;
    let status = std::process::Command::new("/usr/bin/chrt")
        .args(["-f", "99", "/bin/sh", "-c", "while :; do :; done"])
        .status()
        .map_err(text)?;
    Err(format!("the loop ended: {status}"))
}

fn flood(mebibytes: u64) -> Answer {
    let mut console = OpenOptions::new().write(true).open("/dev/console").map_err(text)?;
    let line = format!("{}\n", "flood ".repeat(20));
    let piece = line.repeat((64 << 10) / line.len());
    let mut left = mebibytes << 20;
    while left > 0 {
        console.write_all(piece.as_bytes()).map_err(text)?;
        left = left.saturating_sub(piece.len() as u64);
    }
    let _ = console.read(&mut []);
    Ok(Vec::new())
}

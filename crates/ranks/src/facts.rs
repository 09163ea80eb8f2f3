//! What a process knows about itself and its machine, and can find out about another one on it.

use crate::message::Hello;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// Who a rank is. A simulation has facts of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    pub host: String,
    /// Which start of which kernel this is.
    pub boot: String,
    pub process: u32,
}

impl Facts {
    pub fn of_this_process() -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
        // Processes of another namespace have other numbers.
        let namespace =
            fs::read_link("/proc/self/ns/pid").map_or_else(|_| String::new(), |link| link.display().to_string());
        Self { host, boot: format!("{boot} {namespace}"), process: std::process::id() }
    }

    pub(crate) fn hello(&self, subject: String) -> Hello {
        Hello { host: self.host.clone(), boot: self.boot.clone(), process: self.process, subject }
    }
}

/// CLOCK_MONOTONIC, in nanoseconds.
pub(crate) fn clock_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Whether /proc has the numbers that processes have here: in a namespace that came after it, they are those of others.
fn has_own_numbers() -> bool {
    let shown = fs::read_link("/proc/self").ok().and_then(|link| link.to_str()?.parse::<u32>().ok());
    shown == Some(std::process::id())
}

/// What the kernel says of a process of this machine: "is gone", "is stopped (T)".
pub(crate) fn of_process(process: u32) -> String {
    let number = i32::try_from(process).ok().and_then(Pid::from_raw);
    if number.is_none_or(|number| test_kill_process(number) == Err(Errno::SRCH)) {
        return "is gone".into();
    }
    if !has_own_numbers() {
        return "is there".into();
    }
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { return "is gone".into() };
    let state = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').next()).unwrap_or("?");
    match state {
        "T" | "t" => "is stopped (SIGSTOP or a debugger)".into(),
        "D" => "waits in the kernel, where no signal reaches it (state D)".into(),
        "Z" | "X" => "has ended".into(),
        _ => format!("is there (state {state})"),
    }
}

/// Where the threads of this process's load are: "load-0: D in io_schedule".
pub(crate) fn threads() -> Vec<String> {
    const MOST: usize = 8;
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let line = |name: &str, path: &std::path::Path| -> Option<String> {
        let read = |file: &str| fs::read_to_string(path.join(file)).unwrap_or_default();
        let stat = read("stat");
        let state = stat.rsplit(") ").next()?.split(' ').next()?.to_owned();
        let stack = read("stack");
        let places: Vec<&str> = stack.lines().filter_map(|line| line.split_whitespace().nth(1)).take(3).collect();
        let place = if places.is_empty() { read("wchan") } else { places.join(" < ") };
        Some(format!("{name}: {state} in {place}"))
    };
    let mut lines: Vec<String> = tasks
        .flatten()
        .filter_map(|task| {
            let name = fs::read_to_string(task.path().join("comm")).ok()?;
            // The threads of a phase, and the one that runs the load, which is where a sync hangs.
            let name = name.trim();
            if name.starts_with("load") { line(name, &task.path()) } else { None }
        })
        .collect();
    lines.sort();
    lines.truncate(MOST);
    lines
}

//! Faults of fstone's own: a panic is logged, what the run had made is undone, and the process ends with a status that
//! is documented.

use crate::{exit::Exit, paths, terminal::tell};
use fstone_files::Temporary;
use fstone_lab::{machine::Machine, place::undo::clean};
use std::{
    backtrace::Backtrace,
    fs,
    io::{self, Write},
    panic::{self, AssertUnwindSafe, PanicHookInfo},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

/// Whether any thread has panicked, the run's own or another.
static HAPPENED: AtomicBool = AtomicBool::new(false);

static WRITTEN: AtomicU32 = AtomicU32::new(1);

/// From now on a panic is logged, and an abort (a stack or memory at its end) has the status of a fault. An abort can
/// undo nothing any more; `fstone clean` can.
pub(crate) fn watch() {
    panic::set_hook(Box::new(log));
    // If the signal cannot be handled, an abort still ends the process, with the shell's status for it.
    let always = Arc::new(AtomicBool::new(true));
    let _ = signal_hook::flag::register_conditional_shutdown(
        signal_hook::consts::SIGABRT,
        i32::from(Exit::Fault as u8),
        always,
    );
}

/// Does the work. A panic ends it with the status of a fault, and so does one of another thread:
/// success is not claimed then.
pub(crate) fn caught(work: impl FnOnce() -> Exit) -> Exit {
    match panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(Exit::Success) if HAPPENED.load(Ordering::Acquire) => Exit::Fault,
        Ok(exit) => exit,
        Err(_) => Exit::Fault,
    }
}

/// Undoes what unwinding could not undo of a run in this work directory. One that another run is using is left alone.
pub(crate) fn undo(work_directory: &Path) {
    for leftover in clean(work_directory, false, &[], &Machine::host()).unwrap_or_default() {
        match leftover.error {
            None => tell(&format!("undone: {}", leftover.what)),
            Some(error) => {
                tell(&format!("still there: {}: {error}; `fstone clean` tries again", leftover.what));
            }
        }
    }
}

fn log(panic: &PanicHookInfo<'_>) {
    HAPPENED.store(true, Ordering::Release);
    let words = panic.payload_as_str().unwrap_or("without a word");
    let place = panic.location().map(|place| format!(" ({}:{})", place.file(), place.line())).unwrap_or_default();
    let entry = entry(words, &place);
    let advice = match write(&paths::default_logs(), &entry).or_else(|_| write(&std::env::temp_dir(), &entry)) {
        Ok(path) => format!("Please report it, with {}", path.display()),
        Err(_) => format!("Please report it, with this:\n{entry}"),
    };
    tell(&format!("fstone: a fault in fstone itself: {words}{place}\n  {advice}"));
}

fn entry(words: &str, place: &str) -> String {
    let command: Vec<String> = std::env::args_os().map(|word| format!("{word:?}")).collect();
    let thread = std::thread::current();
    format!(
        "fstone {} ({}, {})\ncommand: {}\nthread: {}\n{words}{place}\n{:#}\nloaded at: {}\n",
        env!("CARGO_PKG_VERSION"),
        env!("FSTONE_COMMIT"),
        env!("FSTONE_TARGET"),
        command.join(" "),
        thread.name().unwrap_or("without a name"),
        // With addresses: an installed binary has no names (CONTRIBUTING.md says what becomes of them).
        Backtrace::force_capture(),
        loaded_at().unwrap_or_else(|| "unknown".to_owned())
    )
}

/// The address where the kernel put the program, which differs from process to process.
fn loaded_at() -> Option<String> {
    let (maps, program) = (fs::read_to_string("/proc/self/maps").ok()?, fs::read_link("/proc/self/exe").ok()?);
    let program = program.to_str()?;
    let first = maps.lines().find(|line| line.ends_with(program))?;
    Some(format!("0x{}", first.split('-').next()?))
}

/// Writes an entry into a file of its own, which belongs to the user who called `sudo`. Its name can be guessed, and its
/// directory may be everybody's: what is there already, a link among it, is not touched.
fn write(directory: &Path, entry: &str) -> io::Result<PathBuf> {
    paths::create_directory(directory)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!("fault-{now}-{}-{number}.log", std::process::id()));
    let temporary = Temporary::beside(&path)?;
    temporary.file().write_all(entry.as_bytes())?;
    temporary.publish(&path)?;
    Ok(path)
}

/// Panics or aborts at a step, "panic fsck", when a test asks for it.
#[cfg(debug_assertions)]
pub(crate) fn rehearse(step: &str) {
    let wanted = std::env::var("FSTONE_REHEARSE_FAULT").unwrap_or_default();
    match wanted.split_once(' ') {
        Some(("panic", at)) if at == step => panic!("rehearsed"),
        Some(("abort", at)) if at == step => std::process::abort(),
        _ => {}
    }
}

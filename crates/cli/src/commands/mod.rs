//! One module per command: what the arguments mean, in calls to the other crates.

mod again;
pub(crate) mod age;
mod alike;
mod begun;
pub(crate) mod blocks;
pub(crate) mod bundles;
mod carry_out;
mod changed;
pub(crate) mod check;
mod claimed_device;
pub(crate) mod clean;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod crash_state;
pub(crate) mod delete;
mod destroy;
pub(crate) mod device;
pub(crate) mod durability;
pub(crate) mod ffsb;
pub(crate) mod figures;
pub(crate) mod filebench;
pub(crate) mod fio;
pub(crate) mod generated;
pub(crate) mod history;
pub(crate) mod io500;
pub(crate) mod ior;
pub(crate) mod kernel;
pub(crate) mod list;
pub(crate) mod load;
pub(crate) mod mdtest;
mod merge;
pub(crate) mod note;
pub(crate) mod profile;
pub(crate) mod publish;
mod ranks;
pub(crate) mod reaches;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod rerun;
mod resume;
pub(crate) mod run;
pub(crate) mod serve;
mod slurm;
pub(crate) mod stored;
pub(crate) mod sysbench;
mod tasks;
mod unfinished;

use crate::{
    args::{ColorWhen, Global, RunArguments},
    exit::Exit,
    paths, signals,
    terminal::{self, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_lab::place::{
    holder::{self, Whereabouts},
    presence::shared_file,
};
use fstone_model::{dataset::Holder, study::Repeats, text};
use fstone_store::{OpenError, RunSummary, Store};
use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::{SystemTime, UNIX_EPOCH},
};

pub(crate) struct Context {
    pub(crate) store: PathBuf,
    store_is_named: bool,
    pub(crate) work_directory: PathBuf,
    work_directory_is_named: bool,
    pub(crate) kernels: PathBuf,
    kernels_are_named: bool,
    /// Where the runs of this machine notice each other.
    pub(crate) presence: PathBuf,
    color: ColorWhen,
    /// The words of the command line that say where all this is.
    named: Vec<String>,
}

/// The command line's value, else that of an environment variable, else the default.
fn chosen(named: Option<&PathBuf>, variable: &str, default: impl Fn() -> PathBuf) -> PathBuf {
    let set = || std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    named.cloned().or_else(set).unwrap_or_else(default)
}

impl Context {
    pub(crate) fn new(global: &Global) -> Self {
        Self {
            store_is_named: global.store.is_some(),
            store: chosen(global.store.as_ref(), "FSTONE_STORE", paths::default_store),
            work_directory: chosen(
                global.work_directory.as_ref(),
                "FSTONE_WORK_DIRECTORY",
                paths::default_work_directory,
            ),
            work_directory_is_named: global.work_directory.is_some(),
            kernels_are_named: global.kernels.is_some(),
            kernels: chosen(global.kernels.as_ref(), "FSTONE_KERNELS", paths::default_kernels),
            presence: chosen(None, "FSTONE_MACHINE_LOCK", shared_file),
            color: global.color,
            named: global.words(),
        }
    }

    pub(crate) fn command_line(&self, arguments: &RunArguments) -> Vec<String> {
        let mut words = vec![program()];
        words.extend(self.named.iter().cloned());
        words.extend(arguments.words());
        words
    }

    pub(crate) fn typed(&self, command: &[String]) -> String {
        let program = std::iter::once("fstone".to_owned());
        let words: Vec<String> = program.chain(self.named.iter().cloned()).chain(command.iter().cloned()).collect();
        fstone_lab::command::typed(&words)
    }

    pub(crate) fn colored(&self) -> bool {
        terminal::colored(self.color)
    }

    /// Opens the store for writing and creates it if it does not exist; its directory, too, unless the user named it.
    pub(crate) fn open_store(&self) -> Result<Store, Failure> {
        self.check_named_store()?;
        if let Some(directory) = self.store.parent().filter(|path| !path.as_os_str().is_empty()) {
            paths::create_directory(directory)
                .with_context(|| {
                    format!("cannot make the store's directory {}; name another with --store", directory.display())
                })
                .or_exit(Exit::LabFailed)?;
        }
        let store = Store::open(&self.store).or_exit(Exit::LabFailed)?;
        self.tell_of_rights(&store);
        Ok(store)
    }

    /// The rights are taken once, so this is said once.
    fn tell_of_rights(&self, store: &Store) {
        if store.was_readable_by_others() {
            terminal::tell(&format!("Other users could read {}; now only its owner can.", self.store.display()));
        }
    }

    /// Refuses a store that the user named in a directory that is not there.
    pub(crate) fn check_named_store(&self) -> Result<(), Failure> {
        if self.store_is_named { paths::require_directory_of(&self.store, " with --store") } else { Ok(()) }
    }

    pub(crate) fn check_named_work_directory(&self) -> Result<(), Failure> {
        if !self.work_directory_is_named {
            return Ok(());
        }
        paths::require_directory_of(&self.work_directory, " with --work-directory")
    }

    pub(crate) fn check_named_kernels(&self) -> Result<(), Failure> {
        if self.kernels_are_named { paths::require_directory_of(&self.kernels, " with --kernels") } else { Ok(()) }
    }

    /// Opens the store for reading; `None` when there is none yet.
    pub(crate) fn read_store(&self) -> Result<Option<Store>, Failure> {
        self.check_named_store()?;
        match Store::open_read_only(&self.store) {
            // An empty file counts as missing, because another process is about to fill it.
            Err(OpenError::Missing { .. }) => Ok(None),
            other => {
                let store = other.or_exit(Exit::LabFailed)?;
                self.tell_of_rights(&store);
                Ok(Some(store))
            }
        }
    }
}

/// This program as it was called.
pub(crate) fn program() -> String {
    let program = std::env::args_os().next().unwrap_or_else(|| "fstone".into());
    program.to_string_lossy().into_owned()
}

/// Sets a flag on Ctrl-C, SIGTERM and SIGHUP. A signal at least a second later ends the process at once; `fstone clean` then undoes
/// what it had made.
pub(crate) fn cancel_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    signals::cancel().context("cannot handle signals").or_exit(Exit::LabFailed)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunState<'a> {
    Finished,
    InProgress(&'a Holder),
    /// This one may be, where it cannot be seen from here.
    Elsewhere(&'a Holder),
    Unfinished,
}

impl<'a> RunState<'a> {
    pub(crate) fn of(run: &'a RunSummary) -> Self {
        match run.holder.as_ref().map(|holder| (holder, holder::find(holder))) {
            _ if run.finished_unix_ns.is_some() => Self::Finished,
            Some((holder, Whereabouts::Running)) => Self::InProgress(holder),
            Some((holder, Whereabouts::Elsewhere)) => Self::Elsewhere(holder),
            Some((_, Whereabouts::Ended)) | None => Self::Unfinished,
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::InProgress(_) => "in progress",
            Self::Elsewhere(_) => "elsewhere",
            Self::Unfinished => "unfinished",
        }
    }
}

/// Where a holder is that this process cannot see: "on another machine, node7".
pub(crate) fn elsewhere(holder: &Holder) -> String {
    if holder::is_of_this_machine(holder) {
        "in a container of this machine".to_owned()
    } else {
        format!("on another machine, {}", text::line(&holder.host))
    }
}

/// "3", or "3 to 10".
pub(crate) fn repeats(repeats: Repeats) -> String {
    if repeats.min == repeats.max { repeats.min.to_string() } else { format!("{} to {}", repeats.min, repeats.max) }
}

pub(crate) fn now_unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

pub(crate) fn fresh_seed() -> u64 {
    // Kept below 2^48 so that it can be read, typed and stored by any tool without loss.
    let mut bytes = [0; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_ne_bytes(bytes) >> 16,
        _ => now_unix_ns() & ((1 << 48) - 1),
    }
}

/// A run's identity: a random UUID (version 4, RFC 9562).
pub(crate) fn fresh_identity() -> String {
    let mut bytes = [0; 16];
    if !matches!(rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()), Ok(16)) {
        // A kernel without random numbers this early still has a clock and process numbers.
        bytes = (u128::from(now_unix_ns()) << 32 | u128::from(std::process::id())).to_be_bytes();
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..4], &hex[4..6], &hex[6..8], &hex[8..10], &hex[10..]].map(<[String]>::concat).join("-")
}

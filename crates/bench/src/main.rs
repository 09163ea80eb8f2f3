//! Measures the load engine beside bare loops of the same calls, fio and sysbench.
//!
//! Reading order: [`figures`] is what is measured and what is expected of it; [`side`] is one way of doing the work
//! (`ours`, `bare` and `peers` are the ways); [`run`] takes all sides of a figure in turns; [`record`] keeps the
//! results with their machine. Nothing here is linked into the product.
//!
//! Usage: `fstone-bench [--smoke] [--only NAME] [--rounds N] [--seconds S] [--output DIRECTORY]`

mod bare;
mod figures;
mod inside;
mod ours;
mod peers;
mod place;
mod record;
mod run;
mod side;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

/// Set by a signal: loads end, and everything that was mounted or made is taken back.
static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Ends on signals as it would by itself, with everything taken back.
fn heed_signals() -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    [SIGINT, SIGTERM, SIGHUP]
        .into_iter()
        .try_for_each(|signal| signal_hook::flag::register(signal, Arc::clone(&INTERRUPTED)).map(drop))
}

/// What was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Small amounts, two rounds, nothing mounted: to see that everything still works.
    pub(crate) smoke: bool,
    /// Only the figure of this name or, if there is none, those whose names contain it.
    pub(crate) only: Option<String>,
    /// How often every side is measured.
    pub(crate) rounds: usize,
    /// Length of one measurement, where it is limited by time.
    pub(crate) seconds: f64,
    /// Where results are kept.
    pub(crate) output: PathBuf,
}

fn parse(arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options =
        Options { smoke: false, only: None, rounds: 10, seconds: 1.0, output: PathBuf::from("bench/runs") };
    let mut arguments = arguments.peekable();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--smoke" => {
                options.smoke = true;
                options.rounds = 2;
                options.seconds = 0.05;
            }
            "--only" => options.only = Some(value()?),
            "--rounds" => options.rounds = value()?.parse().map_err(|_| "--rounds needs a number".to_owned())?,
            "--seconds" => options.seconds = value()?.parse().map_err(|_| "--seconds needs a number".to_owned())?,
            "--output" => options.output = PathBuf::from(value()?),
            _ => {
                return Err(format!(
                    "unknown argument {argument:?}; use [--smoke] [--only NAME] [--rounds N] [--seconds S] [--output DIRECTORY]"
                ));
            }
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.peek().is_some_and(|first| first == inside::ARGUMENT) {
        return inside::main(arguments.skip(1));
    }
    let options = match parse(arguments) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("fstone-bench: {message}");
            return ExitCode::from(2);
        }
    };
    if let Err(error) = heed_signals() {
        eprintln!("fstone-bench: failed to heed signals: {error}");
        return ExitCode::FAILURE;
    }
    match run::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("fstone-bench: failed to {message}");
            ExitCode::FAILURE
        }
    }
}

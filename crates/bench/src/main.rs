//! Measures the load engine beside bare loops of the same calls, fio and sysbench.
//!
//! Reading order: [`figures`] is what is measured and what is expected of it; [`side`] is one way of doing the work
//! (`ours`, `bare` and `peers` are the ways); [`run`] takes all sides of a figure in turns; [`record`] keeps the
//! results with their machine. Nothing here is linked into the product.

mod bare;
mod before;
mod figures;
mod inside;
mod options;
mod ours;
mod peers;
mod place;
mod record;
mod run;
mod side;
mod signals;

use clap::Parser;
use options::Options;
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = Options::parse().scaled();
    if let Some(arguments) = options.inside {
        return inside::main(arguments.into_iter());
    }
    if let Err(error) = signals::heed() {
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

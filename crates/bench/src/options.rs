//! What the command line asks for.

use clap::Parser;
use std::path::PathBuf;

/// Measures the load engine beside bare loops of the same calls, fio and sysbench.
///
/// All sides of a figure are measured in turns, and goals are judged by the ratios within a round.
#[derive(Debug, Clone, Parser)]
#[command(name = "fstone-bench")]
pub(crate) struct Options {
    /// Use small amounts, two rounds and no mounts, to see that every figure can still be measured.
    #[arg(long)]
    pub(crate) smoke: bool,
    /// Measure only the figure of this name or, if there is none, those whose names contain it.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Option<String>,
    /// How often to measure every side; without it each figure has its own number, 6 to 10.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: Option<u32>,
    /// How long one measurement takes, where it is limited by time.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, value_parser = positive)]
    pub(crate) seconds: f64,
    /// Where to keep the results.
    #[arg(long, value_name = "DIRECTORY", default_value = "bench/runs")]
    pub(crate) output: PathBuf,
    /// The JSON record of an earlier run, to stand beside this one in the table.
    #[arg(long, value_name = "FILE")]
    pub(crate) before: Option<PathBuf>,
    /// What this process is to measure for another one: WHAT AMOUNT DIRECTORY.
    #[arg(long, num_args = 3, hide = true)]
    pub(crate) inside: Option<Vec<String>>,
}

impl Options {
    /// With everything small where that was asked for.
    pub(crate) fn scaled(self) -> Self {
        if self.smoke { Self { rounds: Some(2), seconds: 0.02, ..self } } else { self }
    }
}

fn positive(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
    if seconds.is_finite() && seconds > 0.0 { Ok(seconds) } else { Err("it has to be above 0".into()) }
}

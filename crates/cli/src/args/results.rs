//! What the commands that work with stored runs are told.

use clap::{Args, ValueEnum};
use fstone_model::units;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fstone compare 3 7\n  fstone compare --save-baseline main 3\n  fstone compare --baseline main\n  \
    fstone compare --baseline main --threshold 2% --format markdown --output comment.md\n  fstone compare before.fstone after.fstone --format junit\n\n\
    A regression is a difference that is statistically real (rank tests, Holm-corrected to 5 % over all figures), in the worse direction, and by its\n\
    estimate beyond the threshold; or a row that completed and does not any more. Exit status 1 then, else 0."
)]
pub(crate) struct CompareArguments {
    /// The baseline and the run to compare with it: numbers (`fstone list runs`) or bundles (`fstone export`). With
    /// --baseline, only the latter, and the last run of the baseline's study unless it is given
    #[arg(value_name = "RUN", num_args = 0..=2)]
    pub(crate) runs: Vec<String>,
    /// Compare with the run that was saved under this name
    #[arg(long, value_name = "NAME", conflicts_with = "save_baseline")]
    pub(crate) baseline: Option<String>,
    /// Save the run under this name, for --baseline; nothing is compared
    #[arg(long, value_name = "NAME")]
    pub(crate) save_baseline: Option<String>,
    /// Differences up to this are told but are no regressions
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = parse_share)]
    pub(crate) threshold: f64,
    /// Only this column of the table; may be given several times. Fewer figures need less correction
    #[arg(long, value_name = "HEADER")]
    pub(crate) column: Vec<String>,
    /// Compare although these are not the same in both runs
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) across: Vec<Across>,
    /// What to make
    #[arg(long, short, default_value = "terminal")]
    pub(crate) format: CompareFormat,
    /// Where to. Default: standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// What may differ when the user says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Across {
    /// Different studies
    Study,
    /// Rows of one name that do different work
    Load,
    /// Host and guests
    Executor,
    /// Different devices
    Device,
    /// Different machines
    Machine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareFormat {
    /// A table for the terminal
    Terminal,
    /// Markdown, for a comment on a pull request
    Markdown,
    /// JUnit XML, for CI systems
    Junit,
    /// Everything
    Json,
    /// One self-contained page
    Html,
}

fn parse_share(text: &str) -> Result<f64, String> {
    units::parse_share(text).map_err(|error| error.to_string())
}

//! The command line.

use std::path::PathBuf;

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

pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Options, String> {
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

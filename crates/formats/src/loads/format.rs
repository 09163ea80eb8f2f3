//! What every load format provides.

use super::native;
use crate::{Diagnostics, Source, Span, diagnostic::Diagnostic};
use fstone_model::Workload;

/// Reads a file by the path that another file gives; says why it cannot.
pub type Loader<'l> = dyn FnMut(&str) -> Result<String, String> + 'l;

pub type FileReader = fn(&mut Document<'_, '_>) -> Result<Load, Diagnostics>;

pub type WordsReader = fn(&[String]) -> Result<Load, Diagnostics>;

/// A workload file, with warnings.
pub type Converted = (String, Option<Diagnostics>);

pub type Converter = fn(&mut Document<'_, '_>) -> Result<Converted, Diagnostics>;

/// A format that loads are written in.
#[derive(Clone, Copy)]
pub struct LoadFormat {
    /// Its key in a study's `load` table: `ffsb` for `load = { ffsb = "small.ffsb" }`.
    pub key: &'static str,
    /// What that key holds, for the reference and the schema of the study file.
    pub about: &'static str,
    /// Extensions that only this format's files have, without the dot.
    pub extensions: &'static [&'static str],
    /// Reads what the key holds, if that is the words of a command line and not the path of a file.
    pub words: Option<WordsReader>,
    /// Reads a file: a document of this format, or the words of a command line.
    pub file: FileReader,
    /// The workload file that means the same, with comments where the original may be misunderstood; `None` where there are none.
    pub converted: Option<Converter>,
}

impl LoadFormat {
    /// The workload file that means the same.
    ///
    /// # Errors
    /// Everything that is wrong with the document.
    pub fn convert(&self, document: &mut Document<'_, '_>) -> Result<Converted, Diagnostics> {
        if let Some(converted) = self.converted {
            return converted(document);
        }
        let load = (self.file)(document)?;
        Ok((native::print(&load.workload), load.warnings))
    }
}

pub struct Document<'d, 'l> {
    pub source: &'d Source,
    /// How long to run, whatever the file says.
    pub seconds: Option<u64>,
    pub loader: &'d mut Loader<'l>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// The load, below one directory.
    pub workload: Workload,
    pub warnings: Option<Diagnostics>,
    /// Whether the total size is what the format gives, and stays when the number of files changes (sysbench).
    pub keeps_total: bool,
}

/// Why an option has no effect in a study, nor with `fstone load` and `fstone convert`, which take only the load from a command line or job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandOnly {
    /// It says what the command prints, keeps or waits for.
    Output,
    /// It says where the load works.
    Place,
    /// It says where random numbers begin.
    Seed,
}

impl CommandOnly {
    pub(in crate::loads) fn warning(self, program: &str, option: &str, place: Span) -> Diagnostic {
        let (message, note) = match self {
            Self::Output => {
                (format!("{option} has no effect"), format!("only the command `fstone {program}` obeys it"))
            }
            Self::Place => (
                format!("the directory of {option} has no effect"),
                "the study, or `fstone load --directory`, says where a load works".to_owned(),
            ),
            Self::Seed => (
                format!("the seed of {option} has no effect"),
                "--seed of `fstone run` and `fstone load` is the seed of all random numbers".to_owned(),
            ),
        };
        Diagnostic::warning(place, message).note(note)
    }
}

#[cfg(test)]
impl LoadFormat {
    /// The options that neither change any of these command lines' loads nor give a warning.
    pub(in crate::loads) fn dropped(&self, lines: &[&str], options: impl Iterator<Item = String>) -> Vec<String> {
        const VALUES: &str = "1 3 7 9 30 4k 1m 4m on off fdatasync mmap sync rndwr stoneWallingWearOut=1 POSIX";
        let read = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let load = self.words.expect("it is written as words")(&words).ok()?;
            Some((load.workload, load.warnings.map(|warnings| warnings.to_string())))
        };
        let heeded = |line: &str, option: &str| {
            let without = read(line).expect(line);
            VALUES.split(' ').filter_map(|value| read(&format!("{line} {option}={value}"))).any(|with| with != without)
        };
        options.filter(|option| !lines.iter().any(|line| heeded(line, option))).collect()
    }
}

//! What every load format provides.

use super::native;
use crate::{Diagnostics, Source};
use fstone_model::Workload;

/// Reads a file by the path that another file gives; says why it cannot.
pub type Loader<'l> = dyn FnMut(&str) -> Result<String, String> + 'l;

/// A format that loads are written in.
pub trait LoadFormat: Sync {
    /// Its key in a study's `load` table: `ffsb` for `load = { ffsb = "small.ffsb" }`.
    fn key(&self) -> &'static str;

    /// What that key holds, for the reference and the schema of the study file.
    fn about(&self) -> &'static str;

    fn reader(&self) -> Reader;

    /// Reads a file: a document of this format, or the words of a command line.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    fn read_file(&self, document: &mut Document<'_, '_>) -> Result<Load, Diagnostics> {
        match self.reader() {
            Reader::File { read, .. } => read(document),
            Reader::Words { read, .. } => {
                read(&document.source.text().split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            }
        }
    }

    /// The workload file that means the same, with comments where the original may be misunderstood; and warnings.
    ///
    /// # Errors
    /// Everything that is wrong with the document.
    fn convert(&self, document: &mut Document<'_, '_>) -> Result<(String, Option<Diagnostics>), Diagnostics> {
        let load = self.read_file(document)?;
        Ok((native::print(&load.workload), load.warnings))
    }
}

pub type FileReader = fn(&mut Document<'_, '_>) -> Result<Load, Diagnostics>;

pub type WordsReader = fn(&[String]) -> Result<Load, Diagnostics>;

#[derive(Clone, Copy)]
pub enum Reader {
    File {
        /// Extensions that only this format's files have, without the dot.
        extensions: &'static [&'static str],
        read: FileReader,
    },
    Words {
        /// Extensions of files with such a command line, without the dot.
        extensions: &'static [&'static str],
        read: WordsReader,
    },
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

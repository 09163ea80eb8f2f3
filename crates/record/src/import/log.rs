//! What readers of formats have in common: the lines of a log, and the calls that they hand over.

use crate::call::{Call, Unknown};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// A line with all the strings of an `execve`.
const MOST_LINE: u64 = 4 << 20;
/// Of a path. A kernel takes 4096 bytes at once; a recording has room for twice this.
const MOST_PATH: usize = 16 << 10;
/// Of a line, in an error.
const SHOWN: usize = 120;

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("cannot read it: {0}")]
    Read(io::Error),
    #[error("line {line}: expected {expected}, and found {text:?}; --lenient leaves such lines out")]
    Line { line: u64, expected: &'static str, text: String },
    #[error("this is a recording: fstone record show prints what it holds, and fstone replay takes it")]
    Recording,
    #[error("it is no text{}", if *.is_packed { ": unpack it first" } else { "" })]
    Binary { is_packed: bool },
    #[error("its times are those since the line before (strace -r): use -ttt instead")]
    Relative,
    #[error("none of its calls is about a file below {0}; say with --under which directory counts")]
    Nothing(String),
    #[error("cannot write the recording: {0}")]
    Write(io::Error),
}

/// A call as a log has it.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard {
    pub(super) call: Call,
    pub(super) at: Option<Vec<u8>>,
    /// A path too, or a text.
    pub(super) to: Option<Vec<u8>>,
    /// Of an open file, where it is without links, if the log says so.
    pub(super) real: Option<Vec<u8>>,
    /// What stat(2) said of it: mode and size.
    pub(super) facts: Option<(u32, u64)>,
}

impl Heard {
    /// Others are a damaged log's, and no recording has them.
    pub(super) fn is_possible(&self) -> bool {
        let mut names = [&self.at, &self.to, &self.real].into_iter().flatten();
        self.call.has_possible_result() && names.all(|name| name.len() <= MOST_PATH && !name.contains(&0))
    }
}

pub(super) type Each<'a> = &'a mut dyn FnMut(Heard) -> io::Result<()>;

/// What a log as a whole says, beside its calls.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) began_unix_ns: u64,
    pub(super) end_ns: u64,
    pub(super) status: i32,
    /// Where it worked.
    pub(super) directory: Option<Vec<u8>>,
    /// Its lines say which process or thread they are of.
    pub(super) has_pids: bool,
    /// Relative names came before it was known.
    pub(super) was_directory_needed: bool,
    pub(super) unknown: Vec<Unknown>,
}

pub(crate) struct Lines {
    input: BufReader<File>,
    pub(crate) number: u64,
    line: String,
    has_no_end: bool,
    lenient: bool,
    pub(super) left_out: u64,
    /// Where the log's first process began to work, as an earlier reading has found.
    pub(super) directory: Option<Vec<u8>>,
    /// The last line has no end: who wrote the log was stopped.
    pub(super) is_cut: bool,
}

impl Lines {
    pub(crate) fn open(log: &Path, lenient: bool) -> Result<Self, ImportError> {
        let input = BufReader::with_capacity(1 << 18, File::open(log).map_err(ImportError::Read)?);
        Ok(Self {
            input,
            number: 0,
            line: String::new(),
            has_no_end: false,
            lenient,
            left_out: 0,
            directory: None,
            is_cut: false,
        })
    }

    pub(crate) fn next(&mut self) -> Result<Option<String>, ImportError> {
        let mut bytes = Vec::new();
        self.input.by_ref().take(MOST_LINE).read_until(b'\n', &mut bytes).map_err(ImportError::Read)?;
        self.number += 1;
        self.has_no_end = !bytes.ends_with(b"\n") && (bytes.len() as u64) < MOST_LINE;
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        self.line.clone_from(&line);
        Ok((!bytes.is_empty()).then_some(line))
    }

    /// The same, without a last line that was cut: what is left of it may look whole.
    pub(super) fn next_whole(&mut self) -> Result<Option<String>, ImportError> {
        let line = self.next()?;
        self.is_cut |= line.is_some() && self.has_no_end;
        Ok(line.filter(|_| !self.has_no_end))
    }

    /// The line is none of the format.
    pub(super) fn wrong(&mut self, expected: &'static str) -> Result<(), ImportError> {
        if self.lenient {
            self.left_out += 1;
            return Ok(());
        }
        let text = self.line.chars().take(SHOWN).collect();
        Err(ImportError::Line { line: self.number, expected, text })
    }
}

//! What an application asked of its filesystem: recorded as it runs, kept in a file, read back.
//!
//! | part | what it does |
//! |---|---|
//! | `call`, `file` | what a recording consists of, and its file: written and read block by block |
//! | `trace`, `tree` | run a program and record it: seccomp(2), ptrace(2), and the tree as it was |
//! | `import` | logs of other tools as recordings |
//! | `iolog` | fio's logs, carried out as fio does |
//! | `summary`, `likeness` | what a recording shows, and a workload that resembles it |
//! | `replay` | compiles a recording into programs of threads, makes the tree, carries the calls out and compares |
//!
//! This crate does not know studies, results or reports.

mod call;
mod cause;
mod file;
mod import;
mod iolog;
mod latencies;
mod likeness;
mod replay;
mod summary;
mod system_calls;
mod trace;
mod tree;

pub use call::{Block, Call, End, Entry, IMPLICIT, INHERITED, Kind, Node, Place, Start, Unknown};
pub use cause::system_error;
pub use file::{Ending, ReadError, Reader, VERSION, Writer, is_recording};
pub use import::{Import, ImportError, Imported, import};
pub use iolog::{Iolog, IologError, IologFault, IologReport, IologSettings, IologWriter, Transfers};
pub use likeness::{Likeness, likeness};
pub use replay::{
    CompileError, Difference, EMPTY, Moment, OUTSIDE, Pace, Program, ReplayError, Replayed, Report, Settings, replay,
};
pub use summary::{Group, Summary, Touched, summarize};
pub use trace::{RecordError, Recorded, Wanted, is_ignored, record};

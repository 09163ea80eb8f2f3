//! How a personality is read.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// In the load's directory, each fileset in one of its own name. For studies, where a personality's path is another machine's.
    UnderDirectory,
    AsWritten,
}

#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub placement: Placement,
    /// How long to run, whatever the personality says.
    pub seconds: Option<u64>,
}

//! A personality file as it is written: commands and their attributes, with their places.

use crate::diagnostic::Span;

/// Something and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) span: Span,
}

impl<T> At<T> {
    pub(super) const fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

/// What stands for a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Number(u64),
    Flag(bool),
    Text(String),
    /// What the variable has when the load is run.
    Variable(String),
    /// What is worked out of two others (filebench 1.4).
    Sum(Box<At<Value>>, char, Box<At<Value>>),
    /// Drawn each time.
    Random(Box<Random>),
}

/// A random variable, or a custom one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Random {
    /// Whether it is a `cvar`.
    pub(super) custom: bool,
    pub(super) attributes: Vec<Attribute>,
    /// Rows of `randtable`: percent, smallest, largest.
    pub(super) table: Vec<[At<Value>; 3]>,
}

/// `name=value`, or a name alone, which says yes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attribute {
    pub(super) name: At<String>,
    pub(super) value: Option<At<Value>>,
}

/// A flowop, or the use of one that was put together of others.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Flowop {
    pub(super) kind: At<String>,
    pub(super) attributes: Vec<Attribute>,
    /// What local variables are set to.
    pub(super) locals: Vec<Local>,
}

/// A local variable of a flowop that is put together, and what it is set to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Local {
    pub(super) name: At<String>,
    pub(super) value: Option<At<Value>>,
}

/// A thread of a process.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Thread {
    pub(super) span: Span,
    pub(super) attributes: Vec<Attribute>,
    pub(super) flowops: Vec<Flowop>,
}

/// A command.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    Set {
        name: At<String>,
        value: At<Value>,
    },
    /// `set mode quit …`.
    Mode(At<Quit>),
    /// A file or a fileset.
    Files {
        one: bool,
        attributes: Vec<Attribute>,
    },
    Process {
        attributes: Vec<Attribute>,
        threads: Vec<Thread>,
    },
    /// A flowop that is put together of others.
    Flowop {
        attributes: Vec<Attribute>,
        locals: Vec<Local>,
        flowops: Vec<Flowop>,
    },
    Eventgen {
        attributes: Vec<Attribute>,
    },
    /// `run` and `psrun`.
    Run {
        seconds: Option<At<Value>>,
    },
    Quit,
    /// Understood, and without any effect on the load.
    Nothing,
    /// Refused, for this reason.
    Refused {
        why: &'static str,
        cure: &'static str,
    },
}

/// When a run ends for want of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quit {
    Timeout,
    AllDone,
    FirstDone,
}

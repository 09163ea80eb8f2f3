//! A personality file as it is written: commands and their attributes, with their places.

use crate::diagnostic::Span;

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

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Number(u64),
    Flag(bool),
    Text(String),
    /// What the variable has when the load is run.
    Variable(String),
    Sum(Box<At<Value>>, char, Box<At<Value>>),
    Random(Box<Random>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Random {
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

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Flowop {
    pub(super) kind: At<String>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) locals: Vec<Local>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Local {
    pub(super) name: At<String>,
    pub(super) value: Option<At<Value>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Thread {
    pub(super) span: Span,
    pub(super) attributes: Vec<Attribute>,
    pub(super) flowops: Vec<Flowop>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    Set {
        name: At<String>,
        value: At<Value>,
    },
    /// `set mode quit …`.
    Mode(At<Quit>),
    Files {
        one: bool,
        attributes: Vec<Attribute>,
    },
    Process {
        attributes: Vec<Attribute>,
        threads: Vec<Thread>,
    },
    Flowop {
        attributes: Vec<Attribute>,
        locals: Vec<Local>,
        flowops: Vec<Flowop>,
    },
    Eventgen {
        attributes: Vec<Attribute>,
    },
    Run {
        seconds: Option<At<Value>>,
    },
    Quit,
    /// `system`: whether it syncs, and which caches it drops.
    Settle {
        syncs: bool,
        drops_caches: u32,
    },
    /// Understood, and without any effect on the load.
    Nothing,
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

//! The calls of a sequence, as values and as text.

use std::fmt;
use std::str::FromStr;

/// One call. Paths are below the filesystem's root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    Create(String),
    Mkdir(String),
    Link(String, String),
    /// Renames a file or directory, in place of what has that name.
    Rename(String, String),
    Unlink(String),
    Rmdir(String),
    Truncate(String, u64),
    /// Makes a hole: offset and bytes.
    Punch(String, u64, u64),
    /// Allocates blocks, and makes the file longer where they are beyond its end: offset and bytes.
    Allocate(String, u64, u64),
    /// Allocates blocks and leaves the length as it is: offset and bytes.
    Reserve(String, u64, u64),
    /// Makes a range zeros that stay allocated: offset and bytes.
    Zero(String, u64, u64),
    /// Writes new data: offset and bytes.
    Write(String, u64, u64),
    SetAttribute(String, String),
    RemoveAttribute(String, String),
    Fsync(String),
    Fdatasync(String),
    /// syncfs.
    Sync,
}

impl Call {
    pub const fn persists(&self) -> bool {
        matches!(self, Self::Fsync(_) | Self::Fdatasync(_) | Self::Sync)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(path) => write!(f, "create {path}"),
            Self::Mkdir(path) => write!(f, "mkdir {path}"),
            Self::Link(from, to) => write!(f, "link {from} {to}"),
            Self::Rename(from, to) => write!(f, "rename {from} {to}"),
            Self::Unlink(path) => write!(f, "unlink {path}"),
            Self::Rmdir(path) => write!(f, "rmdir {path}"),
            Self::Truncate(path, length) => write!(f, "truncate {path} {length}"),
            Self::Punch(path, offset, bytes) => write!(f, "punch {path} {offset} {bytes}"),
            Self::Allocate(path, offset, bytes) => write!(f, "allocate {path} {offset} {bytes}"),
            Self::Reserve(path, offset, bytes) => write!(f, "reserve {path} {offset} {bytes}"),
            Self::Zero(path, offset, bytes) => write!(f, "zero {path} {offset} {bytes}"),
            Self::Write(path, offset, bytes) => write!(f, "write {path} {offset} {bytes}"),
            Self::SetAttribute(path, name) => write!(f, "setxattr {path} {name}"),
            Self::RemoveAttribute(path, name) => write!(f, "removexattr {path} {name}"),
            Self::Fsync(path) => write!(f, "fsync {path}"),
            Self::Fdatasync(path) => write!(f, "fdatasync {path}"),
            Self::Sync => f.write_str("sync"),
        }
    }
}

/// Calls one after the other: `rename a b; fsync b`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(Vec<Call>);

const MAX_CALLS: usize = 16;
/// Furthest byte that a call may reach: the filesystem is small.
const MAX_BYTES: u64 = 1 << 20;

impl Sequence {
    pub(super) fn new(calls: Vec<Call>) -> Self {
        Self(calls)
    }

    pub fn calls(&self) -> &[Call] {
        &self.0
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, call) in self.0.iter().enumerate() {
            write!(f, "{}{call}", if number == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseSequenceError {
    #[error(
        "{0:?} is not a call; calls are create, mkdir, unlink, rmdir PATH, link, rename FROM TO, truncate PATH LENGTH, write, punch, \
         allocate, reserve, zero PATH OFFSET BYTES, setxattr, removexattr PATH NAME, fsync, fdatasync PATH, sync"
    )]
    Call(String),
    /// A path that leads elsewhere.
    #[error("{0:?} is not a path below the filesystem's root")]
    Path(String),
    #[error("{0:?} is not a number of bytes up to {MAX_BYTES}")]
    Number(String),
    #[error("{0:?} is not a name of an attribute; they begin with \"user.\"")]
    Attribute(String),
    /// None, or too many.
    #[error("a sequence has 1 to {MAX_CALLS} calls, with \";\" between them")]
    Count,
}

impl FromStr for Sequence {
    type Err = ParseSequenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let calls: Vec<Call> = text.split(';').map(call).collect::<Result<_, _>>()?;
        if calls.len() > MAX_CALLS { Err(ParseSequenceError::Count) } else { Ok(Self(calls)) }
    }
}

fn call(text: &str) -> Result<Call, ParseSequenceError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(match words[..] {
        ["create", at] => Call::Create(path(at)?),
        ["mkdir", at] => Call::Mkdir(path(at)?),
        ["link", from, to] => Call::Link(path(from)?, path(to)?),
        ["rename", from, to] => Call::Rename(path(from)?, path(to)?),
        ["unlink", at] => Call::Unlink(path(at)?),
        ["rmdir", at] => Call::Rmdir(path(at)?),
        ["truncate", at, length] => Call::Truncate(path(at)?, number(length)?),
        ["punch", at, offset, bytes] => Call::Punch(path(at)?, number(offset)?, number(bytes)?),
        ["allocate", at, offset, bytes] => Call::Allocate(path(at)?, number(offset)?, number(bytes)?),
        ["reserve", at, offset, bytes] => Call::Reserve(path(at)?, number(offset)?, number(bytes)?),
        ["zero", at, offset, bytes] => Call::Zero(path(at)?, number(offset)?, number(bytes)?),
        ["write", at, offset, bytes] => Call::Write(path(at)?, number(offset)?, number(bytes)?),
        ["setxattr", at, name] => Call::SetAttribute(path(at)?, attribute(name)?),
        ["removexattr", at, name] => Call::RemoveAttribute(path(at)?, attribute(name)?),
        ["fsync", at] => Call::Fsync(path_or_root(at)?),
        ["fdatasync", at] => Call::Fdatasync(path_or_root(at)?),
        ["sync"] => Call::Sync,
        _ => return Err(ParseSequenceError::Call(text.trim().to_owned())),
    })
}

fn path(word: &str) -> Result<String, ParseSequenceError> {
    let sound = word.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if sound { Ok(word.to_owned()) } else { Err(ParseSequenceError::Path(word.to_owned())) }
}

/// The root itself is ".".
fn path_or_root(word: &str) -> Result<String, ParseSequenceError> {
    if word == "." { Ok(word.to_owned()) } else { path(word) }
}

fn number(word: &str) -> Result<u64, ParseSequenceError> {
    let number = word.parse().ok().filter(|number| *number <= MAX_BYTES);
    number.ok_or_else(|| ParseSequenceError::Number(word.to_owned()))
}

fn attribute(word: &str) -> Result<String, ParseSequenceError> {
    let sound = word.strip_prefix("user.").is_some_and(|rest| !rest.is_empty());
    if sound { Ok(word.to_owned()) } else { Err(ParseSequenceError::Attribute(word.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_elsewhere_or_makes_no_sense_is_no_sequence() {
        let error = |text: &str| text.parse::<Sequence>().unwrap_err().to_string();
        assert!(error("create /etc/passwd").contains("is not a path below"));
        assert!(error("rename a ../b").contains("is not a path below"));
        assert!(error("unlink .").contains("is not a path below"));
        assert!(error("write a 0 99999999").contains("is not a number of bytes"));
        assert!(error("setxattr a security.x").contains("is not a name of an attribute"));
        assert!(error("melt a").contains("is not a call"));
        assert!(error("").contains("is not a call"));
        assert!(error(&["sync"; 17].join(";")).contains("1 to 16 calls"));
        let sequence: Sequence = "rename a b;fsync .".parse().unwrap();
        assert_eq!(sequence.to_string(), "rename a b; fsync .");
    }
}

//! What has to hold of a message beyond its form. It is looked at where the message is decoded, so nothing behind that
//! has to doubt it.

use super::{Hello, JobStatus, Message, TscFacts};
use fstone_model::text::visible;

impl Message {
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Self::Hello(hello) => hello.check(),
            Self::Progress { text, .. } if !is_line(text) => Err("its text is not one line".to_owned()),
            Self::Result { status: JobStatus::Failed(_), body, .. } if !body.is_empty() => {
                Err(format!("a job that failed has a result of {} bytes", body.len()))
            }
            _ => Ok(()),
        }
    }
}

impl Hello {
    fn check(&self) -> Result<(), String> {
        for (what, text) in [
            ("kernel's release", &self.kernel_release),
            ("kernel's version", &self.kernel_version),
            ("agent's version", &self.agent_version),
        ] {
            require(is_line(text), || format!("the {what} {text:?} is not one line"))?;
        }
        for name in &self.filesystems {
            require(is_name(name), || format!("{name:?} names no filesystem"))?;
        }
        for (at, (name, bytes)) in self.disks.iter().enumerate() {
            require(is_name(name), || format!("{name:?} names no disk"))?;
            require(*bytes > 0, || format!("the disk {name} has no blocks"))?;
            let again = self.disks[..at].iter().any(|(other, _)| other == name);
            require(!again, || format!("the disk {name} is there twice"))?;
        }
        self.tsc.check()
    }
}

impl TscFacts {
    fn check(&self) -> Result<(), String> {
        let measured = self.ticks_per_second > 0 || self.invariant;
        require(self.present || !measured, || "facts are told of a time-stamp counter that is not there".to_owned())
    }
}

fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// Whether nothing in it acts on a terminal or ends the line.
fn is_line(text: &str) -> bool {
    text.chars().all(|c| visible(c) == c)
}

/// Whether it is one part of a path, as the names in /dev and those of filesystem types are.
fn is_name(text: &str) -> bool {
    let plain = |c: char| !c.is_whitespace() && c != '/' && visible(c) == c;
    !text.is_empty() && text != "." && text != ".." && text.chars().all(plain)
}

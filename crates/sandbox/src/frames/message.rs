//! What host and agent say to each other.

use serde::{Deserialize, Serialize};

/// One message. Who sends it is said with each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Agent → host, first of all: it is up, and under which kernel.
    Hello(Hello),
    /// Host → agent: do this.
    Job {
        /// Chosen by the host; comes back with progress and result.
        id: u32,
        kind: String,
        /// Opaque; the rest of what the chunks before it began.
        body: Vec<u8>,
    },
    /// Host → agent: a piece of the body of the job that comes next, in order. The agent acknowledges each, and the
    /// host sends only few ahead: the serial line of user-mode Linux stalls for good when it is sent too much.
    Chunk { body: Vec<u8> },
    /// Agent → host, about four times a second for as long as the guest's kernel schedules anything.
    Heartbeat(Heartbeat),
    /// Agent → host: how far a job is, for a person.
    Progress {
        id: u32,
        /// One line.
        text: String,
    },
    /// Agent → host: a job is over.
    Result {
        id: u32,
        status: JobStatus,
        /// Opaque; empty unless `status` is done.
        body: Vec<u8>,
    },
    /// Agent → host: a line for the trial's log.
    Log {
        /// One line or more.
        text: String,
    },
    /// Either way: the frame with this sequence number has arrived and is kept.
    Ack { sequence: u32 },
    /// Host → agent: print the stacks of blocked tasks on the console (sysrq w), because a job is overdue.
    Dump,
    /// Host → agent: power off. Agent → host: about to.
    Bye,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// `uname -r` of the guest.
    pub kernel_release: String,
    /// `uname -v` of the guest.
    pub kernel_version: String,
    pub agent_version: String,
    pub cpus: u32,
    pub memory_bytes: u64,
    /// Time since the guest's kernel started.
    pub booted_ns: u64,
    /// What /proc/filesystems names, after the asked-for modules were loaded.
    pub filesystems: Vec<String>,
    /// Block devices as (name, bytes).
    pub disks: Vec<(String, u64)>,
    pub tsc: TscFacts,
    /// What went wrong while it set itself up, without being fatal (a module that would not load).
    pub complaints: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TscFacts {
    pub present: bool,
    /// The processor says it ticks at a constant rate in every power state (CPUID 8000_0007h, EDX bit 8).
    pub invariant: bool,
    /// Ticks per second, measured against the guest's monotonic clock; 0 when it was not measured.
    pub ticks_per_second: u64,
    /// Largest disagreement between two halves of the measurement, in parts per million.
    pub disagreement_ppm: u32,
    /// Cost of reading the guest's monotonic clock once (in UML a system call), the median of many.
    pub clock_read_ns: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// From 0.
    pub count: u64,
    /// The guest's CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// The time-stamp counter, 0 without one.
    pub tsc: u64,
    pub job: Option<u32>,
}

/// Whether the handler could do a job. What the job found out is in the body; this is about the doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobStatus {
    Done,
    /// It could not, and says why. A handler that panics ends here too.
    Failed(String),
}

/// Which message a frame holds: the byte in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    Hello = 1,
    Job = 2,
    Heartbeat = 3,
    Progress = 4,
    Result = 5,
    Log = 6,
    Ack = 7,
    Dump = 8,
    Bye = 9,
    Chunk = 10,
}

impl Kind {
    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Hello,
            2 => Self::Job,
            3 => Self::Heartbeat,
            4 => Self::Progress,
            5 => Self::Result,
            6 => Self::Log,
            7 => Self::Ack,
            8 => Self::Dump,
            9 => Self::Bye,
            10 => Self::Chunk,
            _ => return None,
        })
    }

    pub(crate) const fn max_body_bytes(self) -> usize {
        match self {
            Self::Job | Self::Result => super::MAX_BODY_BYTES,
            _ => super::MAX_SMALL_BODY_BYTES,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobHead {
    id: u32,
    kind: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgressHead {
    id: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultHead {
    id: u32,
    status: JobStatus,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AckHead {
    sequence: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoHead {}

impl Message {
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Hello(_) => Kind::Hello,
            Self::Job { .. } => Kind::Job,
            Self::Heartbeat(_) => Kind::Heartbeat,
            Self::Progress { .. } => Kind::Progress,
            Self::Result { .. } => Kind::Result,
            Self::Log { .. } => Kind::Log,
            Self::Ack { .. } => Kind::Ack,
            Self::Dump => Kind::Dump,
            Self::Bye => Kind::Bye,
            Self::Chunk { .. } => Kind::Chunk,
        }
    }

    /// Its head as JSON, and its body.
    pub(crate) fn parts(&self) -> Result<(Vec<u8>, &[u8]), serde_json::Error> {
        Ok(match self {
            Self::Hello(hello) => (serde_json::to_vec(hello)?, &[]),
            Self::Job { id, kind, body } => {
                (serde_json::to_vec(&JobHead { id: *id, kind: kind.clone() })?, body.as_slice())
            }
            Self::Heartbeat(beat) => (serde_json::to_vec(beat)?, &[]),
            Self::Progress { id, text } => (serde_json::to_vec(&ProgressHead { id: *id })?, text.as_bytes()),
            Self::Result { id, status, body } => {
                (serde_json::to_vec(&ResultHead { id: *id, status: status.clone() })?, body.as_slice())
            }
            Self::Log { text } => (serde_json::to_vec(&NoHead {})?, text.as_bytes()),
            Self::Chunk { body } => (serde_json::to_vec(&NoHead {})?, body.as_slice()),
            Self::Ack { sequence } => (serde_json::to_vec(&AckHead { sequence: *sequence })?, &[]),
            Self::Dump | Self::Bye => (serde_json::to_vec(&NoHead {})?, &[]),
        })
    }

    pub(crate) fn from_parts(kind: Kind, head: &[u8], body: Vec<u8>) -> Result<Self, String> {
        fn parse<'a, T: Deserialize<'a>>(head: &'a [u8]) -> Result<T, String> {
            let text = std::str::from_utf8(head).map_err(|error| error.to_string())?;
            serde_json::from_str(text).map_err(|error| error.to_string())
        }
        fn text(body: Vec<u8>) -> Result<String, String> {
            String::from_utf8(body).map_err(|_| "its text is not UTF-8".to_owned())
        }
        let bodiless = matches!(kind, Kind::Hello | Kind::Heartbeat | Kind::Ack | Kind::Dump | Kind::Bye);
        if bodiless && !body.is_empty() {
            return Err(format!("{} bytes follow where nothing belongs", body.len()));
        }
        let message = match kind {
            Kind::Hello => Self::Hello(parse(head)?),
            Kind::Job => {
                let JobHead { id, kind } = parse(head)?;
                Self::Job { id, kind, body }
            }
            Kind::Heartbeat => Self::Heartbeat(parse(head)?),
            Kind::Progress => Self::Progress { id: parse::<ProgressHead>(head)?.id, text: text(body)? },
            Kind::Result => {
                let ResultHead { id, status } = parse(head)?;
                Self::Result { id, status, body }
            }
            Kind::Log => {
                parse::<NoHead>(head)?;
                Self::Log { text: text(body)? }
            }
            Kind::Chunk => parse::<NoHead>(head).map(|_| Self::Chunk { body })?,
            Kind::Ack => Self::Ack { sequence: parse::<AckHead>(head)?.sequence },
            Kind::Dump => parse::<NoHead>(head).map(|_| Self::Dump)?,
            Kind::Bye => parse::<NoHead>(head).map(|_| Self::Bye)?,
        };
        message.check()?;
        Ok(message)
    }
}

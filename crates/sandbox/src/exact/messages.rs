//! The messages of user-mode Linux' time travel (include/uapi/linux/um_timetravel.h): 16 bytes each, both ways.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// Bytes of a message: operation, number, time.
const BYTES: usize = 16;

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// The answer to any other.
    Ack,
    /// The guest begins.
    Start,
    /// The guest has something to do at this time.
    Request,
    /// The guest has nothing to do before that, and stops.
    Wait,
    /// The guest asks for the time.
    Get,
    /// The guest says what time it has got to.
    Update,
    /// The guest goes on, at this time.
    Run,
    /// The guest may go on by itself until this time.
    FreeUntil,
    /// The guest asks for the time of day at its start.
    TimeOfDay,
}

const OPERATIONS: [Operation; 9] = [
    Operation::Ack,
    Operation::Start,
    Operation::Request,
    Operation::Wait,
    Operation::Get,
    Operation::Update,
    Operation::Run,
    Operation::FreeUntil,
    Operation::TimeOfDay,
];

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) operation: Operation,
    pub(super) sequence: u32,
    pub(super) time_ns: u64,
}

impl Message {
    pub(super) fn receive(stream: &mut UnixStream) -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        stream.read_exact(&mut bytes)?;
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let operation = *OPERATIONS
            .get(word(0) as usize)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("operation {}", word(0))))?;
        let time_ns = u64::from_ne_bytes(bytes[8..].try_into().expect("eight of sixteen bytes"));
        Ok(Self { operation, sequence: word(4), time_ns })
    }

    pub(super) fn send(&self, stream: &mut UnixStream) -> io::Result<()> {
        let number = OPERATIONS.iter().position(|one| *one == self.operation).unwrap_or(0) as u32;
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&number.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time_ns.to_ne_bytes());
        stream.write_all(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were_sent_and_others_are_refused() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        for operation in OPERATIONS {
            let message = Message { operation, sequence: 7, time_ns: u64::MAX - 1 };
            message.send(&mut ours).unwrap();
            assert_eq!(Message::receive(&mut theirs).unwrap(), message);
        }
        ours.write_all(&[9; BYTES]).unwrap();
        assert_eq!(Message::receive(&mut theirs).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}

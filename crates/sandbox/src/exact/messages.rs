//! The messages of user-mode Linux' time travel (include/uapi/linux/um_timetravel.h): 16 bytes each, both ways.

use rustix::fd::{AsFd, BorrowedFd};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// Bytes of a message: operation, number, time.
const BYTES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// The answer to any other.
    Ack,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) operation: Operation,
    pub(super) sequence: u32,
    pub(super) time_ns: u64,
}

impl Message {
    fn decode(bytes: &[u8; BYTES]) -> io::Result<Self> {
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let operation = *OPERATIONS
            .get(word(0) as usize)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("operation {}", word(0))))?;
        let time_ns = u64::from_ne_bytes(bytes[8..].try_into().expect("eight of sixteen bytes"));
        Ok(Self { operation, sequence: word(4), time_ns })
    }

    fn encode(&self) -> [u8; BYTES] {
        let number = OPERATIONS.iter().position(|one| *one == self.operation).unwrap_or(0) as u32;
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&number.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time_ns.to_ne_bytes());
        bytes
    }
}

/// The calendar's end of the connection. The guest's answers and what it says next often lie there together, and so does what it is
/// told: one system call for all of them, for these are most of what a simulated request costs in real time.
#[derive(Debug)]
pub(super) struct Calendar {
    stream: UnixStream,
    heard: Vec<u8>,
}

impl Calendar {
    pub(super) const fn new(stream: UnixStream) -> Self {
        Self { stream, heard: Vec::new() }
    }

    /// Waits for a message, and gives it and those that have come with it, in their order.
    pub(super) fn receive(&mut self, messages: &mut Vec<Message>) -> io::Result<()> {
        let mut piece = [0; BYTES * 16];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.heard.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let (whole, rest) = self.heard.as_chunks::<BYTES>();
            if rest.is_empty() {
                break messages.extend(whole.iter().map(Message::decode).collect::<io::Result<Vec<_>>>()?);
            }
        }
        self.heard.clear();
        Ok(())
    }

    pub(super) fn send(&mut self, messages: &[Message]) -> io::Result<()> {
        match messages {
            [one] => self.stream.write_all(&one.encode()),
            several => self.stream.write_all(&several.iter().flat_map(Message::encode).collect::<Vec<u8>>()),
        }
    }
}

impl AsFd for Calendar {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were_sent_and_others_are_refused() {
        let (mut raw, theirs) = UnixStream::pair().unwrap();
        let mut ours = Calendar::new(raw.try_clone().unwrap());
        let mut theirs = Calendar::new(theirs);
        let mut heard = Vec::new();
        let all = OPERATIONS.map(|operation| Message { operation, sequence: 7, time_ns: u64::MAX - 1 });
        for message in all {
            ours.send(&[message]).unwrap();
        }
        theirs.receive(&mut heard).unwrap();
        assert_eq!(heard, all);
        heard.clear();
        ours.send(&all).unwrap();
        theirs.receive(&mut heard).unwrap();
        assert_eq!(heard, all);
        // Half a message waits for its rest.
        let bytes = all[3].encode();
        raw.write_all(&bytes[..5]).unwrap();
        let later = std::thread::spawn(move || {
            raw.write_all(&bytes[5..]).unwrap();
            raw
        });
        heard.clear();
        theirs.receive(&mut heard).unwrap();
        assert_eq!(heard, [all[3]]);
        later.join().unwrap().write_all(&[9; BYTES]).unwrap();
        assert_eq!(theirs.receive(&mut heard).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}

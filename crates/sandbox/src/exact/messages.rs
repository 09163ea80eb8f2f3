//! What a guest and its calendar say to each other, three words each way. The guest's end is `shim/calendar.rs`.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const BYTES: usize = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The guest powers off.
    Ends,
    /// There are requests on the disk's ring.
    OnRing,
    /// There is a message at the disk's socket.
    AtSocket,
    /// The guest has nothing to do until this time.
    Waits(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) what: What,
    pub(super) now_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    /// Whether its disk interrupts it, or it goes on by itself.
    pub(super) interrupts: bool,
    pub(super) now_ns: u64,
    /// Until when it may go on by itself.
    pub(super) may_ns: u64,
}

#[derive(Debug)]
pub(super) struct Calendar {
    stream: UnixStream,
    bytes: [u8; BYTES],
    have: usize,
}

impl Calendar {
    pub(super) fn new(stream: UnixStream, tick: Duration) -> io::Result<Self> {
        stream.set_read_timeout(Some(tick))?;
        stream.set_write_timeout(Some(tick))?;
        Ok(Self { stream, bytes: [0; BYTES], have: 0 })
    }

    /// A question, or none if none is whole within a tick.
    pub(super) fn receive(&mut self) -> io::Result<Option<Question>> {
        match self.stream.read(&mut self.bytes[self.have..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.have += count,
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
        if self.have < BYTES {
            return Ok(None);
        }
        self.have = 0;
        let [what, now_ns, request_ns] =
            [0, 8, 16].map(|at| self.bytes[at..].first_chunk().map_or(0, |word| u64::from_ne_bytes(*word)));
        let what = match what {
            0 => What::Ends,
            1 => What::OnRing,
            2 => What::AtSocket,
            3 => What::Waits(request_ns),
            other => return Err(io::Error::new(io::ErrorKind::InvalidData, format!("question {other}"))),
        };
        Ok(Some(Question { what, now_ns }))
    }

    pub(super) fn send(&mut self, answer: &Answer) -> io::Result<()> {
        let words = [u64::from(answer.interrupts), answer.now_ns, answer.may_ns];
        self.stream.write_all(words.map(u64::to_ne_bytes).as_flattened())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_question_waits_for_its_rest_and_others_are_refused() {
        let (mut guest, ours) = UnixStream::pair().unwrap();
        let mut ours = Calendar::new(ours, Duration::from_millis(1)).unwrap();
        let asked = [3, 7, u64::MAX].map(u64::to_ne_bytes).concat();
        guest.write_all(&asked[..5]).unwrap();
        assert_eq!(ours.receive().unwrap(), None);
        assert_eq!(ours.receive().unwrap(), None);
        guest.write_all(&asked[5..]).unwrap();
        let question = Question { what: What::Waits(u64::MAX), now_ns: 7 };
        assert_eq!(ours.receive().unwrap(), Some(question));
        ours.send(&Answer { interrupts: true, now_ns: 8, may_ns: 9 }).unwrap();
        let mut heard = [0; BYTES];
        guest.read_exact(&mut heard).unwrap();
        assert_eq!(heard[..], [1u64, 8, 9].map(u64::to_ne_bytes).concat());
        guest.write_all(&[9; BYTES]).unwrap();
        assert_eq!(ours.receive().unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(guest);
        assert_eq!(ours.receive().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}

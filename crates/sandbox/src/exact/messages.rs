//! What a guest and its calendar say to each other, three words each way. The guest's end is `shim/calendar.rs`.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const BYTES: usize = 24;

/// Beside what there is: requests on the disk's ring.
const ON_RING: u64 = 1 << 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The guest powers off.
    Ends,
    /// Nothing but the requests.
    GoesOn,
    /// There is a message at the disk's socket.
    AtSocket,
    /// The guest has nothing to do until this time.
    Waits(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Question {
    /// Whether there are new requests on the disk's ring. They arrive at this time.
    pub(super) on_ring: bool,
    pub(super) what: What,
    pub(super) now_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    /// Whether its disk interrupts it, or it goes on by itself.
    pub(super) interrupts: bool,
    /// Whether requests are to be announced before time passes in any way, and not by the next question.
    pub(super) at_once: bool,
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

    /// A question, or none if none is whole within a tick. `Unsupported`: the kernel speaks for itself, without fstone's library.
    pub(super) fn receive(&mut self) -> io::Result<Option<Question>> {
        match self.stream.read(&mut self.bytes[self.have..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.have += count,
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
        let [what, now_ns, request_ns] =
            [0, 8, 16].map(|at| self.bytes[at..].first_chunk().map_or(0, |word| u64::from_ne_bytes(*word)));
        // The kernel's own first message (struct um_timetravel_msg) is shorter, and has its number in this word's upper half.
        if self.have >= 8 && what > u64::from(u32::MAX) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if self.have < BYTES {
            return Ok(None);
        }
        self.have = 0;
        let on_ring = what & ON_RING != 0;
        let what = match what & !ON_RING {
            0 => What::Ends,
            1 => What::GoesOn,
            2 => What::AtSocket,
            3 => What::Waits(request_ns),
            other => return Err(io::Error::new(io::ErrorKind::InvalidData, format!("question {other}"))),
        };
        Ok(Some(Question { on_ring, what, now_ns }))
    }

    pub(super) fn send(&mut self, answer: &Answer) -> io::Result<()> {
        let follows = u64::from(answer.interrupts) | u64::from(answer.at_once) << 1;
        let words = [follows, answer.now_ns, answer.may_ns];
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
        let asked = [3 | ON_RING, 7, u64::MAX].map(u64::to_ne_bytes).concat();
        guest.write_all(&asked[..5]).unwrap();
        assert_eq!(ours.receive().unwrap(), None);
        assert_eq!(ours.receive().unwrap(), None);
        guest.write_all(&asked[5..]).unwrap();
        let question = Question { on_ring: true, what: What::Waits(u64::MAX), now_ns: 7 };
        assert_eq!(ours.receive().unwrap(), Some(question));
        ours.send(&Answer { interrupts: true, at_once: false, now_ns: 8, may_ns: 9 }).unwrap();
        let mut heard = [0; BYTES];
        guest.read_exact(&mut heard).unwrap();
        assert_eq!(heard[..], [1u64, 8, 9].map(u64::to_ne_bytes).concat());
        guest.write_all(&[9u64; 3].map(u64::to_ne_bytes).concat()).unwrap();
        assert_eq!(ours.receive().unwrap_err().kind(), io::ErrorKind::InvalidData);
        // What a kernel says first by itself: START, its number, a time.
        guest.write_all(&[1u32, 1, 0, 0].map(u32::to_ne_bytes).concat()).unwrap();
        assert_eq!(ours.receive().unwrap_err().kind(), io::ErrorKind::Unsupported);
        drop(guest);
        assert_eq!(ours.receive().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}

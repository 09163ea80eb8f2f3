//! Bytes to messages.

use super::checksum;
use super::{HEADER_BYTES, Kind, MAGIC, MAX_HEAD_BYTES, Message, Version};
use fstone_model::text;
use std::io::{self, Read};

/// Why no message could be read; completes "failed to read a message of the guest: …".
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The stream ended between two frames.
    #[error("the channel was closed")]
    Closed,
    #[error("the channel was closed {have} bytes into a frame of {want}")]
    Truncated {
        have: usize,
        /// Bytes it should have had, as far as known.
        want: usize,
    },
    #[error("a frame must start with 66 73 but {found:02x?} came: something else writes to this channel")]
    Magic { found: [u8; 2] },
    #[error(
        "the other side speaks protocol version {found} and this fstone knows up to {}: use the same fstone on both",
        Version::CURRENT.byte()
    )]
    Version { found: u8 },
    #[error("there is no message of kind {found}")]
    Kind { found: u8 },
    #[error("a {kind:?} message claims {length} bytes, more than the {limit} it may have")]
    TooLong { kind: Kind, length: u32, limit: usize },
    #[error("the checksum of a {kind:?} message is {found:08x} and should be {expected:08x}")]
    Checksum {
        kind: Kind,
        /// In the header.
        found: u32,
        /// Of what arrived.
        expected: u32,
    },
    #[error("frame {found} came where frame {expected} was due")]
    Sequence { expected: u32, found: u32 },
    /// An intact frame whose content is not what its kind promises.
    #[error("a {kind:?} message makes no sense: {problem}")]
    Content { kind: Kind, problem: String },
    #[error("the channel is broken: {0}")]
    Io(io::Error),
}

impl From<io::Error> for ReadError {
    fn from(cause: io::Error) -> Self {
        Self::Io(cause)
    }
}

#[derive(Debug)]
pub struct FrameReader<R> {
    stream: R,
    next_sequence: u32,
}

impl<R: Read> FrameReader<R> {
    /// Over this stream, expecting sequence number 0.
    pub const fn new(stream: R) -> Self {
        Self { stream, next_sequence: 0 }
    }

    /// The next message and its sequence number; waits for it. After an error the stream is of no more use.
    pub fn next_message(&mut self) -> Result<(u32, Message), ReadError> {
        let mut header = [0u8; HEADER_BYTES];
        let have = read_full(&mut self.stream, &mut header)?;
        if have == 0 {
            return Err(ReadError::Closed);
        }
        if have >= 2 && header[..2] != MAGIC {
            return Err(ReadError::Magic { found: [header[0], header[1]] });
        }
        if have < HEADER_BYTES {
            return Err(ReadError::Truncated { have, want: HEADER_BYTES });
        }
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (sequence, length, crc) = (word(4), word(8), word(12));
        Version::from_byte(header[2]).ok_or(ReadError::Version { found: header[2] })?;
        let kind = Kind::from_byte(header[3]).ok_or(ReadError::Kind { found: header[3] })?;
        let limit = 2 + MAX_HEAD_BYTES + kind.max_body_bytes();
        if length as usize > limit {
            return Err(ReadError::TooLong { kind, length, limit });
        }

        // Grows with what arrives, not with what the header promises.
        let mut payload = Vec::new();
        (&mut self.stream).take(u64::from(length)).read_to_end(&mut payload)?;
        if payload.len() < length as usize {
            let (have, want) = (HEADER_BYTES + payload.len(), HEADER_BYTES + length as usize);
            return Err(ReadError::Truncated { have, want });
        }
        let expected = checksum(&[&header[..12], &payload]);
        if crc != expected {
            return Err(ReadError::Checksum { kind, found: crc, expected });
        }
        if sequence != self.next_sequence {
            return Err(ReadError::Sequence { expected: self.next_sequence, found: sequence });
        }

        // The JSON reader quotes what it does not know, and a guest's escape sequences are not for the host's terminal.
        let content = |problem: String| ReadError::Content { kind, problem: text::line(&problem) };
        let (length_bytes, rest) = payload.split_first_chunk::<2>().ok_or_else(|| content("it is empty".to_owned()))?;
        let head_bytes = usize::from(u16::from_le_bytes(*length_bytes));
        if head_bytes > rest.len() {
            return Err(content(format!("its head claims {head_bytes} bytes and {} are there", rest.len())));
        }
        let (head, body) = rest.split_at(head_bytes);
        if body.len() > kind.max_body_bytes() {
            return Err(content(format!("its body has {} bytes", body.len())));
        }
        let message = Message::from_parts(kind, head, body.to_vec()).map_err(content)?;
        self.next_sequence = sequence.wrapping_add(1);
        Ok((sequence, message))
    }
}

fn read_full(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while have < buffer.len() {
        match stream.read(&mut buffer[have..]) {
            Ok(0) => break,
            Ok(bytes) => have += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}

/// Reads frames from arbitrary bytes until one is wrong, and checks that every message read encodes to a frame that
/// reads as the same message. Gives how many there were. The entry point for fuzzing.
///
/// # Panics
/// When a message that was read does not survive encoding, or an error has control characters: a fault in this module.
pub fn check_stream(bytes: &[u8]) -> usize {
    let mut reader = FrameReader::new(bytes);
    let mut count = 0;
    loop {
        let message = match reader.next_message() {
            Ok((_, message)) => message,
            Err(error) => {
                assert!(!error.to_string().contains(char::is_control), "nothing that a terminal obeys: {error:?}");
                return count;
            }
        };
        // A head may be longer on the way back (JSON escapes), and only then may encoding refuse it.
        if let Ok(frame) = super::encode(&message, 0) {
            let again = FrameReader::new(frame.as_slice()).next_message();
            assert_eq!(again.expect("what was encoded can be read").1, message);
        }
        count += 1;
    }
}

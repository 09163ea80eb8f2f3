//! Messages to bytes.

use super::checksum;
use super::{HEADER_BYTES, MAGIC, MAX_HEAD_BYTES, Message, Version};
use std::io::{self, Write};

/// Why a message was not sent; completes "failed to send a message to the guest: …".
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("a {kind:?} message of {bytes} bytes is longer than the {limit} the protocol allows")]
    TooLong { kind: super::Kind, bytes: usize, limit: usize },
    #[error("its head cannot be written as JSON: {0}")]
    Head(serde_json::Error),
    #[error("the channel is broken: {0}")]
    Io(io::Error),
}

impl From<serde_json::Error> for WriteError {
    fn from(cause: serde_json::Error) -> Self {
        Self::Head(cause)
    }
}

impl From<io::Error> for WriteError {
    fn from(cause: io::Error) -> Self {
        Self::Io(cause)
    }
}

pub fn encode(message: &Message, sequence: u32) -> Result<Vec<u8>, WriteError> {
    let kind = message.kind();
    let (head, body) = message.parts()?;
    for (bytes, limit) in [(head.len(), MAX_HEAD_BYTES), (body.len(), kind.max_body_bytes())] {
        if bytes > limit {
            return Err(WriteError::TooLong { kind, bytes, limit });
        }
    }
    // Both were bounded above: the lengths fit their fields.
    let head_length = (head.len() as u16).to_le_bytes();
    let length = (2 + head.len() + body.len()) as u32;

    let mut frame = Vec::with_capacity(HEADER_BYTES + length as usize);
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&[Version::CURRENT.byte(), kind as u8]);
    frame.extend_from_slice(&sequence.to_le_bytes());
    frame.extend_from_slice(&length.to_le_bytes());
    let crc = checksum(&[&frame, &head_length, &head, body]);
    frame.extend_from_slice(&crc.to_le_bytes());
    frame.extend_from_slice(&head_length);
    frame.extend_from_slice(&head);
    frame.extend_from_slice(body);
    Ok(frame)
}

/// Writes frames to a stream, one `write_all` each, and numbers them.
#[derive(Debug)]
pub struct FrameWriter<W> {
    stream: W,
    next_sequence: u32,
}

impl<W: Write> FrameWriter<W> {
    /// Over this stream, from sequence number 0.
    pub const fn new(stream: W) -> Self {
        Self { stream, next_sequence: 0 }
    }

    /// The stream, for what is not a frame.
    pub const fn get_ref(&self) -> &W {
        &self.stream
    }

    /// Sends one message and gives its sequence number.
    pub fn send(&mut self, message: &Message) -> Result<u32, WriteError> {
        let sequence = self.next_sequence;
        let frame = encode(message, sequence)?;
        self.stream.write_all(&frame)?;
        self.stream.flush()?;
        self.next_sequence = sequence.wrapping_add(1);
        Ok(sequence)
    }
}

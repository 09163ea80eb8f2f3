//! What a command prints, bounded: its beginning and its end, whatever its length.

use fstone_model::output::SEARCHED_BYTES;
use std::collections::VecDeque;

/// Kept from the beginning. The tools' read-backs (`dumpe2fs -h`, `xfs_db`) are well below this.
const HEAD_BYTES: usize = 32 << 10;
const TAIL_BYTES: usize = 16 << 10;

#[derive(Debug, Default)]
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out_bytes: u64,
    /// All of it, up to what is searched, where that is wanted.
    whole: Option<Vec<u8>>,
}

impl Capture {
    pub(super) fn new(kept: bool) -> Self {
        Self { whole: kept.then(Vec::new), ..Self::default() }
    }

    /// The text, and all of it.
    pub(super) fn into_parts(mut self) -> (String, Vec<u8>) {
        let whole = self.whole.take().unwrap_or_default();
        (self.into_text(), whole)
    }

    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        if let Some(whole) = &mut self.whole {
            // One more, so that it is seen that there was more.
            let room = SEARCHED_BYTES + 1 - whole.len();
            whole.extend_from_slice(&bytes[..room.min(bytes.len())]);
        }
        let room = HEAD_BYTES - self.head.len();
        if room > 0 {
            let taken = room.min(bytes.len());
            self.head.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
        }
        self.tail.extend(bytes);
        let excess = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..excess);
        self.left_out_bytes += excess as u64;
    }

    fn into_text(mut self) -> String {
        let mut bytes = self.head;
        if self.left_out_bytes > 0 {
            bytes.extend_from_slice(format!("\n[{} bytes left out]\n", self.left_out_bytes).as_bytes());
        }
        bytes.extend_from_slice(self.tail.make_contiguous());
        // Progress wheels, colours and cursor movements have no place in a record, nor on the terminal it is shown on.
        let text = String::from_utf8_lossy(&bytes);
        text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_left_out() {
        let mut capture = Capture::default();
        capture.push(b"10%\r20%\x08\x1b[31mred\x1b[0m\x9b2J\ttab\n");
        assert_eq!(capture.into_text(), "10%20%[31mred[0m\u{fffd}2J\ttab\n");
    }

    #[test]
    fn short_streams_are_whole_and_long_ones_keep_both_ends() {
        let mut short = Capture::default();
        short.push(b"one\n");
        short.push(b"two\n");
        assert_eq!(short.into_text(), "one\ntwo\n");

        let mut long = Capture::default();
        long.push(b"first");
        for _ in 0..1000 {
            long.push(&[b'x'; 1000]);
        }
        long.push(b"last");
        let text = long.into_text();
        assert!(text.starts_with("firstx") && text.ends_with("xlast") && text.contains("bytes left out"));
        assert!(text.len() < HEAD_BYTES + TAIL_BYTES + 100);
    }
}

//! No bytes from a guest make the reader of frames panic, and every message it reads survives being sent back.
//!
//! An input is the stream itself when it begins with the magic. Otherwise it is messages, each a byte for the kind, one
//! for the length of the head, the head, and the body up to the next 0xff; they are framed here, because no fuzzer
//! guesses a checksum.

#![no_main]

use fstone_sandbox::frames::check_stream;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if input.starts_with(b"fs") {
        let _ = check_stream(input);
        return;
    }
    let mut stream = Vec::new();
    for (sequence, message) in (0u32..).zip(input.split(|byte| *byte == 0xff)) {
        let [kind, head, content @ ..] = message else { continue };
        let length = u32::try_from(content.len() + 2).expect("inputs are small");
        let mut frame = vec![b'f', b's', 1, *kind];
        frame.extend(sequence.to_le_bytes());
        frame.extend(length.to_le_bytes());
        let payload: Vec<u8> = u16::from(*head).to_le_bytes().iter().chain(content).copied().collect();
        frame.extend(crc32(frame.iter().chain(&payload)).to_le_bytes());
        stream.extend(frame);
        stream.extend(payload);
    }
    let _ = check_stream(&stream);
});

/// CRC-32 as in IEEE 802.3, bit by bit: a second opinion on the table in the crate.
fn crc32<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    !bytes.fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

//! Any bytes as a recording, or, unless they begin as one, as blocks with 0xff 0xff between.

#![no_main]

#[expect(dead_code, reason = "each target has one of them")]
#[path = "../checks/recordings.rs"]
mod recordings;

libfuzzer_sys::fuzz_target!(|input: &[u8]| recordings::blocks(input));

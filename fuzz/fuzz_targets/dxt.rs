//! Any text as what `darshan-dxt-parser` prints.

#![no_main]

#[expect(dead_code, reason = "each target has one of them")]
#[path = "../checks/recordings.rs"]
mod recordings;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    recordings::dxt(text);
});

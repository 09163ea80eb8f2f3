//! Any text as a log of fio's, of version 2 or 3.

#![no_main]

#[expect(dead_code, reason = "each target has one of them")]
#[path = "../checks/recordings.rs"]
mod recordings;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    recordings::iolog(text);
});

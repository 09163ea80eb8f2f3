//! Any text as what `darshan-dxt-parser` prints.

#![no_main]

#[expect(dead_code, reason = "each target has one of them")]
#[path = "../checks/recordings.rs"]
mod recordings;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let head = "# darshan log version: 3.41\n";
    recordings::log(&[head.as_bytes(), text].concat(), text.len() % 2 == 1);
});

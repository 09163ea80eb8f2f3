//! Any text as a log of fio's, of version 2 or 3.

#![no_main]

#[expect(dead_code, reason = "each target has one of them")]
#[path = "../checks/recordings.rs"]
mod recordings;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let head = if text.len() % 4 < 2 { "fio version 2 iolog\n" } else { "fio version 3 iolog\n" };
    recordings::log(&[head.as_bytes(), text].concat(), text.len() % 2 == 1);
});

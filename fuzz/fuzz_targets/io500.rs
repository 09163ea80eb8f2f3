//! Any text as an ini file of IO500.

#![no_main]

#[expect(dead_code, reason = "each target has one of them")]
#[path = "../checks/formats.rs"]
mod formats;

libfuzzer_sys::fuzz_target!(|text: &str| formats::io500(text));

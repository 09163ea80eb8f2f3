//! A study file: any text, or, where the input begins with 0xff, changes to a study that has everything
//! (`base/study.toml`), most of which still give a plan.

#![no_main]

#[expect(dead_code, reason = "each target has one of them")]
#[path = "../checks/formats.rs"]
mod formats;
#[path = "../changes/lines.rs"]
mod lines;

libfuzzer_sys::fuzz_target!(|input: &[u8]| match input {
    [0xff, changes @ ..] => formats::study(&lines::changed(changes)),
    text => drop(str::from_utf8(text).map(formats::study)),
});

//! No text makes the reader of study files panic, whole or quick. Files that the study names are refused.

#![no_main]

use fstone_formats::{
    Source,
    study::{self, Overrides},
};
use libfuzzer_sys::fuzz_target;

/// Rendering shows the whole text once per finding; beyond this it is the renderer that is tested, slowly.
const RENDERED: usize = 64;

fuzz_target!(|text: &str| {
    let source = Source::new("study.toml", text);
    let refuse = |name: &str| Err(format!("{name} is not read here"));
    for quick in [false, true] {
        match study::compile(&source, &refuse, &Overrides { quick, ..Overrides::default() }) {
            Ok(plan) => {
                assert!(!plan.cells.is_empty());
                assert!(plan.cells.iter().all(|cell| !cell.steps.is_empty()));
            }
            Err(wrong) => {
                assert!(wrong.errors() > 0);
                if text.len() <= RENDERED {
                    assert!(!wrong.to_string().is_empty());
                }
            }
        }
    }
});

//! No text makes the reader of workload files panic, and what it accepts is printed as a file that means the same.

#![no_main]

use fstone_formats::{Source, native};
use libfuzzer_sys::fuzz_target;

/// Rendering shows the whole text once per finding; beyond this it is the renderer that is tested, slowly.
const RENDERED: usize = 64;

fuzz_target!(|text: &str| {
    match native::parse(&Source::new("load.workload", text)) {
        Ok(workload) => {
            let printed = native::print(&workload);
            let again = native::parse(&Source::new("printed.workload", printed.as_str()));
            assert!(again.is_ok(), "{printed}\n{}", again.expect_err("checked"));
        }
        Err(wrong) => {
            assert!(wrong.errors() > 0);
            if text.len() <= RENDERED {
                assert!(!wrong.to_string().is_empty());
            }
        }
    }
});

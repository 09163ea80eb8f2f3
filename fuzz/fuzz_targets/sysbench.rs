//! No arguments make the sysbench reader panic, and what it accepts can be turned into a load and printed. Arguments are
//! the input's lines.

#![no_main]

use fstone_formats::sysbench::{self, Command};
use fstone_model::LoadReport;
use libfuzzer_sys::fuzz_target;

/// Rendering shows the whole line once per finding; beyond this it is the renderer that is tested, slowly.
const RENDERED: usize = 64;

fuzz_target!(|text: &str| {
    let args: Vec<String> = text.lines().map(str::to_owned).collect();
    match sysbench::parse(&args) {
        Ok(fileio) => {
            let workload = fileio.workload();
            assert_eq!(workload.phases.len(), usize::from(fileio.command == Command::Run));
            assert_eq!(workload.filesets.is_empty(), fileio.command == Command::Cleanup);
            assert!(!sysbench::header(&fileio).is_empty());
            assert!(!sysbench::print(&fileio, &LoadReport::default()).is_empty());
        }
        Err(wrong) => {
            assert!(wrong.errors() > 0);
            if text.len() <= RENDERED {
                assert!(!wrong.to_string().is_empty());
            }
        }
    }
});

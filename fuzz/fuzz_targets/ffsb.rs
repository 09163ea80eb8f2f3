//! No text makes the FFSB reader panic, and what it accepts can be turned into a load and printed.

#![no_main]

use fstone_formats::{
    Source,
    ffsb::{self, Options, Placement},
};
use fstone_model::LoadReport;
use libfuzzer_sys::fuzz_target;

/// Rendering shows the whole text once per finding; beyond this it is the renderer that is tested, slowly.
const RENDERED: usize = 64;

fuzz_target!(|text: &str| {
    let source = Source::new("profile.ffsb", text);
    for seconds in [None, Some(60)] {
        match ffsb::parse(&source, &Options { seconds }) {
            Ok(profile) => {
                for placement in [Placement::UnderDirectory, Placement::AsWritten] {
                    let workload = profile.workload(placement);
                    assert!(workload.filesets.len() >= profile.filesystems.len());
                    assert_eq!(workload.time_limit().is_some_and(|time| !time.is_zero()), !profile.time.is_zero());
                }
                assert!(!profile.clarifications().is_empty());
                assert!(!ffsb::header(&profile).is_empty());
                assert!(!ffsb::print(&profile, &LoadReport::default()).is_empty());
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

//! What has to hold for every recording, and for every log that becomes one.

use fstone_record::{CompileError, Ending, Import, Program, Reader, import, likeness, summarize};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// A recording is refused, or is shown, compiled and converted as far as it goes.
pub(crate) fn recording(bytes: &[u8]) -> Option<(Ending, Result<(), CompileError>)> {
    let reader = || Reader::new(bytes).ok();
    let summary = summarize(&mut reader()?).expect("memory does not fail");
    let likeness = likeness(&mut reader()?, "fuzz").expect("memory does not fail");
    assert!(likeness.covered <= likeness.calls);
    let compiled = Program::compile(&mut reader()?, &AtomicBool::new(false)).map(|_| ());
    Some((summary.ending.expect("it was read to its end"), compiled))
}

/// A log is refused, or becomes a recording that is whole and can be replayed.
pub(crate) fn log(text: &[u8], lenient: bool) {
    let made = || File::from(memfd_create("fuzz", MemfdFlags::CLOEXEC).expect("memory does not fail"));
    let (mut log, mut out) = (made(), made());
    log.write_all(text).expect("memory does not fail");
    let path = PathBuf::from(format!("/proc/self/fd/{}", log.as_raw_fd()));
    let written = out.try_clone().expect("there are descriptors");
    match import(&Import { log: &path, under: &[], lenient }, written) {
        Err(error) => assert!(!error.to_string().chars().any(char::is_control), "{error}"),
        Ok(imported) => {
            out.rewind().expect("memory does not fail");
            let mut bytes = Vec::new();
            out.read_to_end(&mut bytes).expect("memory does not fail");
            assert_eq!(imported.bytes, bytes.len() as u64);
            match recording(&bytes) {
                Some((Ending::Whole, Ok(()))) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

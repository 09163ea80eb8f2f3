//! What has to hold for every recording, and for every log that becomes one.

use fstone_record::{CompileError, Ending, Import, Program, Reader, Start, Writer, import, likeness, summarize};
use rustix::fs::{MemfdFlags, memfd_create};
use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use zstd::bulk::Compressor;

/// A recording is refused, or is shown, compiled and converted as far as it goes.
pub(crate) fn recording(bytes: &[u8]) -> Option<(Ending, Result<(), CompileError>)> {
    let reader = || Reader::new(bytes).ok();
    let summary = summarize(&mut reader()?).expect("memory does not fail");
    let likeness = likeness(&mut reader()?, "fuzz").expect("memory does not fail");
    assert!(likeness.covered <= likeness.calls);
    let compiled = Program::compile(&mut reader()?, &AtomicBool::new(false)).map(|_| ());
    Some((summary.ending.expect("it was read to its end"), compiled))
}

thread_local!(static PACKER: RefCell<Compressor<'static>> = RefCell::new(Compressor::new(1).expect("a level of zstd's")));

/// A recording as it is, or, unless the bytes begin as one, of the blocks that have 0xff 0xff between them.
pub(crate) fn blocks(input: &[u8]) {
    if input.starts_with(b"fstone") {
        recording(input);
        return;
    }
    let start = Start { roots: vec![b"/app".to_vec()], ..Start::default() };
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, start).expect("memory does not fail");
    writer.flush().expect("memory does not fail");
    let mut rest = input;
    while !rest.is_empty() {
        let end = rest.windows(2).position(|two| two == [0xff; 2]).unwrap_or(rest.len());
        let packed = PACKER.with_borrow_mut(|packer| packer.compress(&rest[..end])).expect("memory does not fail");
        bytes.extend(b"blck");
        for number in [packed.len() as u32, end as u32, 0, crc32fast::hash(&packed)] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(packed);
        rest = rest.get(end + 2..).unwrap_or_default();
    }
    recording(&bytes);
}

pub(crate) fn strace(text: &[u8]) -> Option<Vec<u8>> {
    log("", text)
}

/// Of version 2 or 3.
pub(crate) fn iolog(text: &[u8]) -> Option<Vec<u8>> {
    log(if text.len() % 4 < 2 { "fio version 2 iolog\n" } else { "fio version 3 iolog\n" }, text)
}

pub(crate) fn dxt(text: &[u8]) -> Option<Vec<u8>> {
    log("# darshan log version: 3.41\n", text)
}

/// A log is refused, or becomes a recording that is whole and can be replayed, which is returned.
fn log(head: &str, text: &[u8]) -> Option<Vec<u8>> {
    let made = || File::from(memfd_create("fuzz", MemfdFlags::CLOEXEC).expect("memory does not fail"));
    let (mut log, mut out) = (made(), made());
    log.write_all(&[head.as_bytes(), text].concat()).expect("memory does not fail");
    let path = PathBuf::from(format!("/proc/self/fd/{}", log.as_raw_fd()));
    let written = out.try_clone().expect("there are descriptors");
    match import(&Import { log: &path, under: &[], lenient: text.len() % 2 == 1 }, written) {
        Err(error) => {
            assert!(!error.to_string().chars().any(char::is_control), "{error}");
            None
        }
        Ok(imported) => {
            out.rewind().expect("memory does not fail");
            let mut bytes = Vec::new();
            out.read_to_end(&mut bytes).expect("memory does not fail");
            assert_eq!(imported.bytes, bytes.len() as u64);
            match recording(&bytes) {
                // Of a log, nothing may be left that a replay can do.
                Some((Ending::Whole, Ok(()) | Err(CompileError::Empty))) => Some(bytes),
                other => panic!("{other:?}"),
            }
        }
    }
}

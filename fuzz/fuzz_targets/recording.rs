//! Any bytes as a recording, or, unless they begin as one, as blocks with 0xff 0xff between.

#![no_main]

#[expect(dead_code, reason = "each target has one of them")]
#[path = "../checks/recordings.rs"]
mod recordings;

use fstone_record::{Start, Writer};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if input.starts_with(b"fstone") {
        recordings::recording(input);
        return;
    }
    let start = Start { roots: vec![b"/app".to_vec()], ..Start::default() };
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, start).expect("memory does not fail");
    writer.flush().expect("memory does not fail");
    let mut rest = input;
    while !rest.is_empty() {
        let end = rest.windows(2).position(|two| two == [0xff; 2]).unwrap_or(rest.len());
        let packed = zstd::bulk::compress(&rest[..end], 1).expect("memory does not fail");
        bytes.extend(b"blck");
        for number in [packed.len() as u32, end as u32, 0, crc32fast::hash(&packed)] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(packed);
        rest = rest.get(end + 2..).unwrap_or_default();
    }
    recordings::recording(&bytes);
});

//! A moment of fuzzing: recordings, and logs that become ones. `make fuzz` goes on from here.

#[path = "../../../fuzz/checks/recordings.rs"]
mod checks;
#[path = "../../../fuzz/checks/variants.rs"]
mod variants;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As much address space as any reader may need.
const MOST_MEMORY: u64 = 2 << 30;

fn run(target: &str, check: fn(&str)) {
    let maximum = getrlimit(Resource::As).maximum;
    setrlimit(Resource::As, Rlimit { current: Some(MOST_MEMORY), maximum }).expect("it may be lowered");
    variants::run(target, check);
}

#[test]
fn logs_of_strace() {
    run("strace", |text| _ = checks::strace(text.as_bytes()));
}

#[test]
fn logs_of_fio() {
    run("iolog", |text| _ = checks::iolog(text.as_bytes()));
}

#[test]
fn logs_of_darshan() {
    run("dxt", |text| _ = checks::dxt(text.as_bytes()));
}

/// Recordings with one byte changed in the block of their calls.
#[test]
fn recordings() {
    run("strace", |text| {
        let Some(recording) = checks::strace(text.as_bytes()) else { return };
        // The second one. Both have heads of 20 bytes, as the file has.
        let first = u32::from_le_bytes(recording[24..28].try_into().expect("4 bytes")) as usize;
        let mut block = zstd::bulk::decompress(&recording[40 + first + 20..], 1 << 20).expect("it was written");
        let hash = crc32fast::hash(text.as_bytes());
        let at = (hash >> 8) as usize % block.len();
        block[at] ^= hash as u8;
        checks::blocks(&block);
    });
}

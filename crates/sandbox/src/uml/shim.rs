//! Stand-ins for functions of libc, for user-mode Linux: `ptrace` on processors with a large register file, and
//! `getrandom` where what is random is to follow from a seed.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

/// `shim/ptrace.rs`, compiled; empty where it could not be.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ptrace.so"));

/// Register bytes that user-mode Linux keeps per thread: AVX-512 and protection keys, and no more.
const KEPT_BYTES: u32 = 2696;

/// `shim/seed.rs`, compiled; empty where it could not be.
static SEED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/seed.so"));

/// What a guest's kernel is to be started with, written into its directory, where this processor makes it necessary.
pub(super) fn preload(directory: &Path) -> io::Result<Option<OsString>> {
    if register_bytes() <= KEPT_BYTES || LIBRARY.is_empty() {
        return Ok(None);
    }
    let path = directory.join("ptrace.so");
    fs::write(&path, LIBRARY)?;
    Ok(Some(path.into()))
}

/// What a guest is to be started with whose randomness follows from the environment, written into its directory and named relative
/// to it. It is the same on every processor: what is loaded, and the length of its names, is in the guest's address space.
pub(super) fn seeded_preloads(directory: &Path) -> io::Result<OsString> {
    if SEED.is_empty() {
        return Err(io::Error::other("this fstone was built without the library that makes randomness follow a seed"));
    }
    let libraries = [("ptrace.so", LIBRARY), ("seed.so", SEED)];
    let mut names = Vec::new();
    for (name, library) in libraries.into_iter().filter(|(_, library)| !library.is_empty()) {
        fs::write(directory.join(name), library)?;
        names.push(format!("./{name}"));
    }
    Ok(names.join(":").into())
}

/// Bytes of the register components that the host's kernel has enabled (CPUID 0Dh, sub-leaf 0, EBX).
#[cfg(target_arch = "x86_64")]
fn register_bytes() -> u32 {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    if __cpuid(0).eax >= 0xD { __cpuid_count(0xD, 0).ebx } else { 0 }
}

#[cfg(not(target_arch = "x86_64"))]
fn register_bytes() -> u32 {
    0
}

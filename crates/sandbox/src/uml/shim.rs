//! Stand-ins for functions of libc, for user-mode Linux: `ptrace` on processors with a large register file, and
//! `getrandom` where what is random is to follow from a seed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// `shim/ptrace.rs`, compiled; empty where it could not be.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ptrace.so"));

/// Register bytes that user-mode Linux keeps per thread: AVX-512 and protection keys, and no more.
const KEPT_BYTES: u32 = 2696;

/// `shim/seed.rs`, compiled; empty where it could not be.
static SEED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/seed.so"));

/// What a guest's kernel is to be started with, written into its directory; with `seeded`, its randomness follows from the
/// environment.
pub(super) fn preloads(directory: &Path, seeded: bool) -> io::Result<Option<OsString>> {
    let mut libraries: Vec<PathBuf> = install(directory)?.into_iter().collect();
    if seeded {
        if SEED.is_empty() {
            return Err(io::Error::other(
                "this fstone was built without the library that makes randomness follow a seed",
            ));
        }
        let path = directory.join("seed.so");
        fs::write(&path, SEED)?;
        libraries.push(path);
    }
    let list = libraries.iter().map(|path| path.as_os_str()).collect::<Vec<_>>().join(OsStr::new(":"));
    Ok((!list.is_empty()).then_some(list))
}

/// Writes the library into this directory and gives its path, where this processor makes it necessary.
fn install(directory: &Path) -> io::Result<Option<PathBuf>> {
    if register_bytes() <= KEPT_BYTES || LIBRARY.is_empty() {
        return Ok(None);
    }
    let path = directory.join("ptrace.so");
    fs::write(&path, LIBRARY)?;
    Ok(Some(path))
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

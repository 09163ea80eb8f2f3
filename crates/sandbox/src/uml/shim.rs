//! The stand-in for libc's ptrace that user-mode Linux needs on processors with a large register file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// `shim/ptrace.rs`, compiled; empty where it could not be.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ptrace.so"));

/// Register bytes that user-mode Linux keeps per thread: AVX-512 and protection keys, and no more.
const KEPT_BYTES: u32 = 2696;

/// Writes the library into this directory and gives its path, where this processor makes it necessary.
pub(super) fn install(directory: &Path) -> io::Result<Option<PathBuf>> {
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

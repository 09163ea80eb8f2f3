//! Stand-ins for functions of libc, for user-mode Linux: `ptrace` on processors with a large register file, and
//! `getrandom` where what is random is to follow from a seed.

use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};

/// Libraries to be preloaded, which nobody can exchange: in memory, sealed, and named by the descriptors that the kernel's process gets.
#[derive(Debug, Default)]
pub(crate) struct Preloads {
    /// With the numbers they are to have.
    pub(crate) libraries: Vec<(OwnedFd, i32)>,
}

impl Preloads {
    fn of(libraries: &[&[u8]], first: i32) -> io::Result<Self> {
        let sealed = |content: &&[u8]| -> io::Result<OwnedFd> {
            let library = memfd_create("preloaded", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
            let mut library = File::from(library);
            library.write_all(content)?;
            fcntl_add_seals(&library, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
            Ok(library.into())
        };
        let sealed = libraries.iter().filter(|content| !content.is_empty()).map(sealed);
        Ok(Self {
            libraries: sealed
                .zip(first..)
                .map(|(library, number)| Ok((library?, number)))
                .collect::<io::Result<_>>()?,
        })
    }

    pub(crate) fn names(&self) -> Option<OsString> {
        let names: Vec<String> = self.libraries.iter().map(|(_, number)| format!("/proc/self/fd/{number}")).collect();
        (!names.is_empty()).then(|| names.join(":").into())
    }
}

/// `shim/ptrace.rs`, compiled; empty where it could not be.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ptrace.so"));

/// Register bytes that user-mode Linux keeps per thread: AVX-512 and protection keys, and no more.
const KEPT_BYTES: u32 = 2696;

/// `shim/exact.rs`, compiled; empty where it could not be.
static EXACT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/exact.so"));

/// What a guest's kernel is to be started with, where this processor makes it necessary.
pub(super) fn needed(first: i32) -> io::Result<Preloads> {
    if register_bytes() <= KEPT_BYTES { Ok(Preloads::default()) } else { Preloads::of(&[LIBRARY], first) }
}

/// What a guest is to be started with whose randomness follows from the environment. It is the same on every processor: what is
/// loaded, and the length of its names, is in the guest's address space.
pub(super) fn seeded(first: i32) -> io::Result<Preloads> {
    if EXACT.is_empty() {
        return Err(io::Error::other("this fstone was built without the library that makes randomness follow a seed"));
    }
    Preloads::of(&[LIBRARY, EXACT], first)
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

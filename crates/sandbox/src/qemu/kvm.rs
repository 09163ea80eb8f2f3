#![expect(unsafe_code, reason = "the KVM interface is ioctls on raw memory")]
//! Whether KVM really runs guests. On nested and odd hosts /dev/kvm opens, and guests hang on it for ever; so a
//! million instructions are run on it by a child that can be killed.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

/// A million iterations take about a millisecond where KVM works.
const LIMIT: Duration = Duration::from_millis(300);

const CREATE_VM: libc::Ioctl = 0xAE01;
const GET_VCPU_MMAP_SIZE: libc::Ioctl = 0xAE04;
const CREATE_VCPU: libc::Ioctl = 0xAE41;
const SET_USER_MEMORY_REGION: libc::Ioctl = 0x4020_AE46;
const RUN: libc::Ioctl = 0xAE80;
const SET_REGS: libc::Ioctl = 0x4090_AE82;
const GET_SREGS: libc::Ioctl = 0x8138_AE83u32 as libc::Ioctl;
const SET_SREGS: libc::Ioctl = 0x4138_AE84;

/// The exit reason of a halted processor.
const EXIT_HLT: u32 = 5;

/// Where the exit reason is in the shared area.
const EXIT_REASON_OFFSET: usize = 8;

/// Real mode: mov ecx, 1000000; again: dec ecx; jnz again; hlt.
const PROGRAM: [u8; 11] = [0x66, 0xB9, 0x40, 0x42, 0x0F, 0x00, 0x66, 0x49, 0x75, 0xFC, 0xF4];

/// What came of trying KVM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kvm {
    /// It ran the program.
    Works,
    /// It is not there, or may not be used.
    Absent(String),
    /// It is there and does not work.
    Broken(String),
}

/// struct `kvm_userspace_memory_region`.
#[repr(C)]
struct MemoryRegion {
    slot: u32,
    flags: u32,
    guest_address: u64,
    bytes: u64,
    user_address: u64,
}

/// Tries KVM, once per process. Takes a few milliseconds, or 300 when it hangs.
#[must_use]
pub fn probe() -> Kvm {
    static FOUND: OnceLock<Kvm> = OnceLock::new();
    FOUND.get_or_init(try_it).clone()
}

fn try_it() -> Kvm {
    let opened = std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm");
    let kvm = match opened {
        Ok(kvm) => kvm,
        Err(error) => return Kvm::Absent(format!("/dev/kvm: {error}")),
    };
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&kvm);
    // SAFETY: the child makes system calls only, on memory it maps itself, and ends with _exit.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: this is the child of the fork above.
        unsafe { libc::_exit(run_program(descriptor)) };
    }
    if pid < 0 {
        return Kvm::Broken(io::Error::last_os_error().to_string());
    }
    let start = std::time::Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: waits for our own child, into a variable of our own.
        if unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == pid {
            break;
        }
        if start.elapsed() > LIMIT {
            // SAFETY: our own child, not reaped yet.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, &raw mut status, 0);
            }
            return Kvm::Broken(format!("a million instructions were not done in {} ms", LIMIT.as_millis()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    match libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)) {
        Some(0) => Kvm::Works,
        Some(step) => Kvm::Broken(format!("step {step} of running a program on it failed")),
        None => Kvm::Broken("the process using it was killed".to_owned()),
    }
}

/// Runs the program; 0 when it ran to its end, else which step failed.
///
/// # Safety
/// In the child of a fork; `kvm` is an open /dev/kvm.
unsafe fn run_program(kvm: i32) -> i32 {
    const PAGE: usize = 4096;
    // SAFETY: ioctls as linux/kvm.h defines them, on memory mapped here and large enough for each structure: 24 words
    // of registers where 18 are used, and 64 words of special registers where 39 are.
    unsafe {
        let vm = libc::ioctl(kvm, CREATE_VM, 0);
        if vm < 0 {
            return 1;
        }
        let map = |bytes, flags, descriptor| {
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, descriptor, 0)
        };
        let memory = map(PAGE, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1);
        if memory == libc::MAP_FAILED {
            return 2;
        }
        std::ptr::copy_nonoverlapping(PROGRAM.as_ptr(), memory.cast(), PROGRAM.len());
        let region =
            MemoryRegion { slot: 0, flags: 0, guest_address: 0, bytes: PAGE as u64, user_address: memory as u64 };
        if libc::ioctl(vm, SET_USER_MEMORY_REGION, &raw const region) != 0 {
            return 3;
        }
        let (vcpu, shared_bytes) = (libc::ioctl(vm, CREATE_VCPU, 0), libc::ioctl(kvm, GET_VCPU_MMAP_SIZE, 0));
        if vcpu < 0 || shared_bytes < 16 {
            return 4;
        }
        let shared = map(shared_bytes as usize, libc::MAP_SHARED, vcpu);
        if shared == libc::MAP_FAILED {
            return 5;
        }
        let mut special = [0u64; 64];
        if libc::ioctl(vcpu, GET_SREGS, special.as_mut_ptr()) != 0 {
            return 6;
        }
        // The code segment comes first: base, limit, and its selector 12 bytes in.
        special[0] = 0;
        special[1] &= 0xffff_0000_ffff_ffff;
        let mut registers = [0u64; 24];
        registers[17] = 2; // flags: the bit that is always set; the instruction pointer before it is 0
        if libc::ioctl(vcpu, SET_SREGS, special.as_ptr()) != 0 || libc::ioctl(vcpu, SET_REGS, registers.as_ptr()) != 0 {
            return 7;
        }
        if libc::ioctl(vcpu, RUN, 0) != 0 {
            return 8;
        }
        let reason = shared.cast::<u8>().add(EXIT_REASON_OFFSET).cast::<u32>().read_volatile();
        if reason == EXIT_HLT { 0 } else { 9 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_ends_and_tells_absent_from_broken() {
        let found = probe();
        if std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_err() {
            return assert!(matches!(found, Kvm::Absent(_)), "{found:?}");
        }
        assert!(!matches!(found, Kvm::Absent(_)), "{found:?}");
        // Steps before the last are plain set-up: where /dev/kvm opens, only running may fail.
        assert!(
            !matches!(&found, Kvm::Broken(why) if why.starts_with("step") && !why.contains("step 8") && !why.contains("step 9")),
            "{found:?}"
        );
    }
}

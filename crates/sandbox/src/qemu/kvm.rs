#![expect(unsafe_code, reason = "a fork, and memory for a guest")]
//! Whether KVM really runs guests. On nested and odd hosts /dev/kvm opens, and guests hang on it for ever; so a
//! million instructions are run on it by a child that can be killed.

use kvm_bindings::{kvm_regs, kvm_userspace_memory_region};
use kvm_ioctls::VcpuExit;
use std::io;
use std::os::fd::FromRawFd;
use std::sync::OnceLock;
use std::time::Duration;

/// A million iterations take about a millisecond where KVM works.
const LIMIT: Duration = Duration::from_millis(300);

/// The guest's memory.
const PAGE: usize = 4096;

/// Real mode: mov ecx, 1000000; again: dec ecx; jnz again; hlt.
const PROGRAM: [u8; 11] = [0x66, 0xB9, 0x40, 0x42, 0x0F, 0x00, 0x66, 0x49, 0x75, 0xFC, 0xF4];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kvm {
    Works,
    /// It is not there, or may not be used.
    Absent(String),
    Broken(String),
}

/// Tries KVM, once per process. Takes a few milliseconds, or 300 when it hangs.
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

/// Runs the program; 0 when it ran to its end, else which step failed. Nothing here allocates: this is the child of a fork.
///
/// # Safety
/// In a process that ends after it; `descriptor` is an open /dev/kvm.
unsafe fn run_program(descriptor: i32) -> i32 {
    // SAFETY: open, and nothing else in this process uses it.
    let kvm = unsafe { kvm_ioctls::Kvm::from_raw_fd(descriptor) };
    let Ok(vm) = kvm.create_vm() else { return 1 };
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, wherever there is room.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, -1, 0) };
    if memory == libc::MAP_FAILED {
        return 2;
    }
    // SAFETY: the mapping is larger than the program.
    unsafe { std::ptr::copy_nonoverlapping(PROGRAM.as_ptr(), memory.cast(), PROGRAM.len()) };
    let region = kvm_userspace_memory_region {
        slot: 0,
        flags: 0,
        guest_phys_addr: 0,
        memory_size: PAGE as u64,
        userspace_addr: memory as u64,
    };
    // SAFETY: the mapping stays for as long as the process does.
    if unsafe { vm.set_user_memory_region(region) }.is_err() {
        return 3;
    }
    let Ok(mut cpu) = vm.create_vcpu(0) else { return 4 };
    let Ok(mut special) = cpu.get_sregs() else { return 5 };
    (special.cs.base, special.cs.selector) = (0, 0);
    // The bit of the flags that is always set.
    let registers = kvm_regs { rflags: 2, ..kvm_regs::default() };
    if cpu.set_sregs(&special).is_err() || cpu.set_regs(&registers).is_err() {
        return 6;
    }
    match cpu.run() {
        Ok(VcpuExit::Hlt) => 0,
        Ok(_) => 8,
        Err(_) => 7,
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
        // Steps 1 to 6 are plain set-up: where /dev/kvm opens, only running may fail.
        assert!(
            !matches!(&found, Kvm::Broken(why) if why.starts_with("step") && !why.contains("step 7") && !why.contains("step 8")),
            "{found:?}"
        );
    }
}

//! A stand-in for libc's `ptrace`, preloaded into user-mode Linux on hosts with a large register file.
//!
//! User-mode Linux up to 6.12 keeps 2696 bytes of floating-point registers per thread and hands the host that many
//! when it sets them. The host takes exactly as many as its processor has, or refuses with EFAULT: with AMX tiles
//! there are about 11,000, and every guest program dies at its first instruction. The host ignores components whose
//! bit in the header is clear, and clear it is for tiles, which a program has to ask for first; so zeroes after what
//! the guest kept are the whole cure.
//!
//! Everything else is as in libc. No library is used but libc's errno.
#![no_std]

use core::arch::asm;

const PTRACE_PEEKTEXT: i64 = 1;
const PTRACE_PEEKUSER: i64 = 3;
const PTRACE_SETREGSET: i64 = 0x4205;
const NT_X86_XSTATE: u64 = 0x202;
const EFAULT: i64 = 14;
const SYS_PTRACE: i64 = 101;

/// The XSAVE area with every component that is defined today is below 12 KiB; the host clamps what is too long.
const AREA_BYTES: usize = 32 << 10;

#[repr(C)]
struct IoVec {
    base: *const u8,
    length: usize,
}

#[repr(C, align(64))]
struct Area([u8; AREA_BYTES]);

/// Only one thread of user-mode Linux traces.
static mut AREA: Area = Area([0; AREA_BYTES]);

/// Whether the host has refused the short form before.
static mut REFUSED: bool = false;

unsafe extern "C" {
    fn __errno_location() -> *mut i32;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

unsafe fn system_call(request: i64, pid: i64, address: u64, data: u64) -> i64 {
    let result;
    // SAFETY: the caller's arguments, passed on to the kernel as libc would.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") SYS_PTRACE => result,
            in("rdi") request,
            in("rsi") pid,
            in("rdx") address,
            in("r10") data,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// Sets registers with zeroes after those the caller has.
unsafe fn padded(request: i64, pid: i64, address: u64, data: u64) -> i64 {
    // SAFETY: the caller passed an iovec; the copy is no longer than the area, which only this thread uses.
    unsafe {
        let asked = &*(data as *const IoVec);
        let area = &raw mut AREA as *mut u8;
        core::ptr::copy_nonoverlapping(asked.base, area, asked.length.min(AREA_BYTES));
        let whole = IoVec { base: area, length: AREA_BYTES };
        system_call(request, pid, address, &raw const whole as u64)
    }
}

/// # Safety
/// As ptrace(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptrace(request: i32, pid: i32, address: u64, data: u64) -> i64 {
    let (request, pid) = (i64::from(request), i64::from(pid));
    let mut word = 0u64;
    let peeks = (PTRACE_PEEKTEXT..=PTRACE_PEEKUSER).contains(&request);
    let given = if peeks { &raw mut word as u64 } else { data };
    let registers = request == PTRACE_SETREGSET && address == NT_X86_XSTATE;
    // SAFETY: as asked by the caller; for a peek the kernel stores one word at `word`. The statics belong to the one
    // thread that traces, and `padded` is called for a register set only.
    let result = unsafe {
        if registers && REFUSED {
            padded(request, pid, address, data)
        } else {
            let result = system_call(request, pid, address, given);
            if registers && result == -EFAULT {
                REFUSED = true;
                padded(request, pid, address, data)
            } else {
                result
            }
        }
    };
    if result < 0 {
        // SAFETY: libc's own, valid for the calling thread.
        unsafe { *__errno_location() = -result as i32 };
        return -1;
    }
    if peeks {
        // SAFETY: a successful peek may return -1 as data; callers tell it by errno, which libc clears.
        unsafe { *__errno_location() = 0 };
        return word as i64;
    }
    result
}

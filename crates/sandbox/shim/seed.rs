//! A stand-in for libc's `getrandom`, preloaded into an exact guest: numbers that follow from the guest's seed.
//!
//! User-mode Linux fills its pool of randomness from the host, through this call and no other. With the host's numbers no
//! two boots would be the same. The seed is FSTONE_SEED of the environment, in decimal. Nothing else of libc is used.

unsafe extern "C" {
    fn getenv(name: *const u8) -> *const u8;
}

/// The state of SplitMix64; `None` before the first call. Only the kernel's own thread asks.
static mut STATE: Option<u64> = None;

fn seed() -> u64 {
    let mut seed = 0u64;
    // SAFETY: the name ends in a zero byte; the value, if there is one, does too.
    unsafe {
        let mut at = getenv(c"FSTONE_SEED".as_ptr().cast());
        while !at.is_null() && (*at).is_ascii_digit() {
            seed = seed.wrapping_mul(10).wrapping_add(u64::from(*at - b'0'));
            at = at.add(1);
        }
    }
    seed
}

/// # Safety
/// As getrandom(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    // SAFETY: one thread asks; the caller's buffer has room for as much as it says.
    unsafe {
        let mut state = match STATE {
            Some(state) => state,
            None => seed(),
        };
        for at in 0..length {
            if at % 8 == 0 {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            }
            let mut word = state;
            word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^= word >> 31;
            *buffer.add(at) = (word >> (8 * (at % 8))) as u8;
        }
        STATE = Some(state);
    }
    length as isize
}

//! Whether images fit in memory.

use super::machine::memory_bytes;
use fstone_model::units::format_bytes;

/// Times its size that have to be free for an image in memory: what is written to it is also in the page cache of the
/// filesystem on it.
const ROOM: u64 = 2;

/// Why an image of this size should not be in memory now; `None` when it may be.
pub fn too_little_memory(size_bytes: u64) -> Option<String> {
    let information = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    lacking(size_bytes, memory_bytes(&information, "MemAvailable").unwrap_or(0))
}

fn lacking(size_bytes: u64, available_bytes: u64) -> Option<String> {
    let needed = size_bytes.saturating_mul(ROOM);
    (needed > available_bytes).then(|| {
        format!("it takes {} of free memory, and there are {}", format_bytes(needed), format_bytes(available_bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_to_hold_the_image_twice() {
        assert_eq!(lacking(4 << 30, 8 << 30), None);
        let words = lacking(4 << 30, (8 << 30) - 1).expect("too little");
        assert!(words.starts_with("it takes 8 GiB of free memory"), "{words}");
        assert!(lacking(u64::MAX, u64::MAX - 1).is_some());
    }
}

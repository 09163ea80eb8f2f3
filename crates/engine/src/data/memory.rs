//! Memory aligned as direct I/O wants it.

/// Alignment that every device and filesystem accepts: a page.
pub(crate) const ALIGNMENT: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Aligned {
    /// With room for the alignment; never resized, so it stays where it is.
    memory: Box<[u8]>,
    start: usize,
    length: usize,
}

impl Aligned {
    pub(crate) fn new(length: usize) -> Self {
        if length == 0 {
            return Self::default();
        }
        let memory = vec![0u8; length + ALIGNMENT].into_boxed_slice();
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, start, length }
    }

    /// Has the kernel give the pages of the first bytes now, not when they are used.
    pub(crate) fn touch(&mut self, length: usize) {
        for page in self.bytes_mut().iter_mut().take(length).step_by(ALIGNMENT) {
            // Without this the compiler knows that it is zero already.
            *std::hint::black_box(page) = 0;
        }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned() {
        for length in [1, 512, 4096, 100_000] {
            let mut buffer = Aligned::new(length);
            assert_eq!(buffer.bytes().len(), length);
            assert_eq!(buffer.bytes_mut().as_ptr() as usize % ALIGNMENT, 0);
        }
        assert!(Aligned::new(0).bytes().is_empty());
        Aligned::new(0).touch(4096);
    }

    #[test]
    fn what_is_touched_has_its_pages() {
        let resident = |bytes: &[u8]| {
            let mut pages = vec![0u64; bytes.len() / ALIGNMENT];
            let map = std::fs::File::open("/proc/self/pagemap").expect("Linux has it");
            for (page, entry) in pages.iter_mut().enumerate() {
                let mut word = [0; 8];
                let at = (bytes.as_ptr() as usize / ALIGNMENT + page) * 8;
                std::os::unix::fs::FileExt::read_exact_at(&map, &mut word, at as u64).expect("the page is mapped");
                *entry = u64::from_ne_bytes(word) >> 63;
            }
            pages.iter().sum::<u64>()
        };
        // Large enough for memory of its own; the kernel may give it in large pages.
        let mut buffer = Aligned::new(16 << 20);
        buffer.touch(8 << 20);
        let half = resident(&buffer.bytes()[..8 << 20]);
        assert_eq!(half, 2048);
        assert!(resident(buffer.bytes()) < 4096, "the rest is as it was");
    }
}

//! Memory aligned as direct I/O wants it.

/// Alignment that every device and filesystem accepts: a page.
pub(crate) const ALIGNMENT: usize = 4096;

/// A buffer whose start is a multiple of [`ALIGNMENT`].
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
    }
}

//! CRC-32 as in IEEE 802.3 and zlib: reflected, polynomial 0xEDB88320.

const TABLE: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ 0xEDB8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};

/// A running checksum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crc32(u32);

impl Crc32 {
    pub(crate) const fn new() -> Self {
        Self(u32::MAX)
    }

    #[must_use]
    pub(crate) fn add(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |crc, &byte| (crc >> 8) ^ TABLE[((crc ^ u32::from(byte)) & 0xff) as usize]))
    }

    pub(crate) const fn value(self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_value_of_the_standard() {
        assert_eq!(Crc32::new().add(b"123456789").value(), 0xCBF4_3926);
        assert_eq!(Crc32::new().add(b"1234").add(b"56789").value(), 0xCBF4_3926);
        assert_eq!(Crc32::new().value(), 0);
    }
}

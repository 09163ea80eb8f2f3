#![expect(unsafe_code, reason = "hands paths to the kernel without looking for their end again")]
//! Paths in buffers that are used again and again. Before each call that names a file one is made: a path that costs as
//! much as the call's own look at it would be seen in the figures.

use std::ffi::CStr;

const DIGITS: usize = 20;
/// Length of a prefix that is copied as a whole: copying a fixed length needs no call. Nearly all prefixes are shorter.
const SHORT: usize = 16;
const NAME: usize = SHORT + DIGITS + 1;

const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// What the names of all files of a fileset begin with. Holds no zero byte.
#[derive(Debug, Clone)]
pub(super) struct Prefix {
    text: Vec<u8>,
    /// The same, when it is short and a number follows.
    padded: Option<[u8; SHORT]>,
    /// It is the whole name, and no number follows.
    exact: bool,
}

impl Prefix {
    pub(super) fn new(text: &str, exact: bool) -> Self {
        let text = before_zero(text.as_bytes()).to_vec();
        let mut padded = [0; SHORT];
        let fits = padded.get_mut(..text.len()).map(|place| place.copy_from_slice(&text));
        Self { padded: fits.filter(|()| !exact).map(|()| padded), text, exact }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn is_exact(&self) -> bool {
        self.exact
    }
}

/// A path, always with a zero behind it and none in it.
#[derive(Debug, Clone)]
pub(crate) struct PathBuffer {
    /// The path, its zero, and room for at least a [`NAME`] more.
    bytes: Vec<u8>,
    end: usize,
}

impl Default for PathBuffer {
    fn default() -> Self {
        Self { bytes: vec![0; 256], end: 0 }
    }
}

impl PathBuffer {
    #[inline]
    pub(crate) fn clear(&mut self) -> &mut Self {
        self.bytes[0] = 0;
        self.end = 0;
        self
    }

    /// Appends a text, up to its first zero byte.
    pub(crate) fn text(&mut self, text: &[u8]) -> &mut Self {
        let text = before_zero(text);
        self.make_room(text.len());
        let end = self.end + text.len();
        self.bytes[self.end..end].copy_from_slice(text);
        self.bytes[end] = 0;
        self.end = end;
        self
    }

    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        let end = self.end + digits(number);
        write(&mut self.bytes[self.end..end], number);
        self.bytes[end] = 0;
        self.end = end;
        self.make_room(0);
        self
    }

    #[inline]
    pub(super) fn name(&mut self, prefix: &Prefix, number: u64) -> &mut Self {
        let place = self.bytes[self.end..].first_chunk_mut::<NAME>();
        let (Some(padded), Some(place)) = (&prefix.padded, place) else {
            self.text(&prefix.text);
            return if prefix.exact { self } else { self.number(number) };
        };
        place[..SHORT].copy_from_slice(padded);
        let start = prefix.text.len();
        let end = start + digits(number);
        write(&mut place[start..end], number);
        place[end] = 0;
        self.end += end;
        self.make_room(0);
        self
    }

    #[inline]
    fn make_room(&mut self, more: usize) {
        let wanted = self.end + more + NAME;
        if wanted > self.bytes.len() {
            self.bytes.resize(wanted * 2, 0);
        }
    }

    #[inline]
    pub(crate) fn as_c(&self) -> &CStr {
        // SAFETY: the byte at `end` is zero and none before it: whatever writes to the path puts a zero behind it, texts and
        // prefixes are cut at their first one, and digits are none.
        unsafe { CStr::from_bytes_with_nul_unchecked(&self.bytes[..=self.end]) }
    }

    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.end]).into_owned()
    }
}

fn before_zero(text: &[u8]) -> &[u8] {
    text.iter().position(|byte| *byte == 0).map_or(text, |end| &text[..end])
}

#[inline]
fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |last| last as usize + 1)
}

/// Writes a number to a place of as many bytes as it has [`digits`], two at a time.
#[inline]
fn write(place: &mut [u8], mut number: u64) {
    let mut pairs = place.rchunks_exact_mut(2);
    for pair in pairs.by_ref() {
        pair.copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if let [first] = pairs.into_remainder() {
        *first = b'0' + number as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 9, 10, 99, 100, 101, 999, 1000, 12345, 1234567890, u64::MAX] {
            let mut path = PathBuffer::default();
            path.number(number);
            assert_eq!(path.shown(), number.to_string());
            assert_eq!(path.as_c().to_bytes(), number.to_string().as_bytes());
        }
    }

    proptest! {
        #[test]
        fn a_path_is_its_parts(parts in prop::collection::vec(("[a-z\0/]{0,40}", any::<u64>(), any::<bool>()), 0..40)) {
            let mut path = PathBuffer::default();
            let mut expected = Vec::new();
            for round in 0..2 {
                path.clear();
                expected.clear();
                for (text, number, named) in &parts {
                    let number = number >> (number % 64) >> round;
                    if *named {
                        path.name(&Prefix::new(text, false), number);
                    } else {
                        path.text(text.as_bytes()).number(number);
                    }
                    expected.extend_from_slice(before_zero(text.as_bytes()));
                    expected.extend_from_slice(number.to_string().as_bytes());
                }
                prop_assert_eq!(path.shown().into_bytes(), &*expected);
                expected.push(0);
                prop_assert_eq!(path.as_c().to_bytes_with_nul(), &*expected);
                prop_assert!(CStr::from_bytes_with_nul(&expected).is_ok());
            }
        }
    }
}

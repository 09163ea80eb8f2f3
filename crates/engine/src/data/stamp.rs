//! Stamped data: every 512 bytes say which file, offset and generation they are, with a checksum, and the rest
//! follows from it, so that each byte read back can be proved right without keeping a copy.

use crate::random::scatter;

/// The unit that carries a stamp; offsets and sizes of stamped files are multiples of it.
pub(crate) const UNIT: usize = 512;
const WORD: usize = 8;
const HEADER_WORDS: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A stamp of any generation: it was written by an earlier load.
    Stamped,
    /// The same or nothing: a write to it failed.
    Anything,
    Nothing,
    Generation(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// It is all zeros: never written, or lost.
    Zeros,
    /// It is all zeros, and was written.
    Lost,
    /// It belongs to another file or offset.
    Misplaced,
    Corrupt,
    /// It was written to this place, but not last.
    Outdated,
    Unwritten,
}

impl Mismatch {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Zeros | Self::Lost => "zeros where data should be",
            Self::Misplaced => "data of another file or place",
            Self::Corrupt => "corrupt data",
            Self::Outdated => "an older state of the data",
            Self::Unwritten => "data where nothing was written",
        }
    }
}

fn checksum(file: u64, offset: u64, generation: u64) -> u64 {
    scatter(scatter(scatter(file) ^ offset) ^ generation)
}

fn make(unit: &mut [u8; UNIT], file: u64, offset: u64, generation: u64) {
    let checksum = checksum(file, offset, generation);
    let (words, _) = unit.as_chunks_mut::<WORD>();
    words[0] = offset.to_le_bytes();
    words[1] = file.to_le_bytes();
    words[2] = generation.to_le_bytes();
    words[3] = checksum.to_le_bytes();
    // No range is zipped to the words: a build without optimisation makes them ten times as fast.
    let mut state = checksum;
    for word in &mut words[HEADER_WORDS..] {
        *word = scatter(state).to_le_bytes();
        state = state.wrapping_add(1);
    }
}

/// Fills a block that goes to `offset`, a multiple of [`UNIT`]; its last unit may be cut short.
pub(crate) fn write(block: &mut [u8], file: u64, offset: u64, generation: u64) {
    let (units, rest) = block.as_chunks_mut::<UNIT>();
    let mut at = offset;
    for unit in units {
        make(unit, file, at, generation);
        at += UNIT as u64;
    }
    if !rest.is_empty() {
        let mut last = [0; UNIT];
        make(&mut last, file, at, generation);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// Checks a unit, or the part of one before the end of its file.
pub(crate) fn check(unit: &[u8], file: u64, offset: u64, expected: Expected) -> Result<(), Mismatch> {
    let empty = unit.iter().all(|byte| *byte == 0);
    let is = |generation| {
        let mut written = [0; UNIT];
        make(&mut written, file, offset, generation);
        unit == &written[..unit.len()]
    };
    match expected {
        Expected::Nothing if !empty => return Err(Mismatch::Unwritten),
        Expected::Nothing => return Ok(()),
        Expected::Anything if empty => return Ok(()),
        Expected::Generation(generation) if is(generation) => return Ok(()),
        _ => {}
    }
    let word = |index: usize| {
        unit.get(index * WORD..(index + 1) * WORD).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight")))
    };
    let generation = word(2);
    if generation.is_some() && empty {
        let lost = matches!(expected, Expected::Generation(_));
        return Err(if lost { Mismatch::Lost } else { Mismatch::Zeros });
    }
    if word(0).is_some_and(|found| found != offset) || word(1).is_some_and(|found| found != file) {
        return Err(Mismatch::Misplaced);
    }
    let known = matches!(expected, Expected::Generation(_));
    match generation {
        Some(generation) if is(generation) => {
            if known {
                Err(Mismatch::Outdated)
            } else {
                Ok(())
            }
        }
        // What is cut off before its generation says too little to be checked further.
        None if !known => Ok(()),
        _ => Err(Mismatch::Corrupt),
    }
}

/// How many bytes of a unit say which one it is, and prove that.
pub(crate) const NAME: usize = HEADER_WORDS * WORD;

/// Of which file and generation a block says it is, when it was stamped for this offset and is long enough to say so.
pub(crate) fn says(block: &[u8], offset: u64) -> Option<(u64, u64)> {
    let (words, _) = block.get(..NAME)?.as_chunks::<WORD>();
    (u64::from_le_bytes(words[0]) == offset).then(|| (u64::from_le_bytes(words[1]), u64::from_le_bytes(words[2])))
}

/// The generation of a unit, or of at least [`NAME`] bytes of its beginning, that is what was once written there.
pub(crate) fn generation(unit: &[u8], file: u64, offset: u64) -> Result<u64, Mismatch> {
    check(unit, file, offset, Expected::Stamped)?;
    Ok(says(unit, offset).map_or(0, |(_, generation)| generation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks a block of any generation. The error says where in it the first wrong unit is.
    fn check(block: &[u8], file: u64, offset: u64) -> Result<(), (usize, Mismatch)> {
        (0..).step_by(UNIT).zip(block.chunks(UNIT)).try_for_each(|(start, unit)| {
            super::check(unit, file, offset + start as u64, Expected::Stamped).map_err(|mismatch| (start, mismatch))
        })
    }

    #[test]
    fn what_was_written_is_right_in_any_cut() {
        let mut block = vec![0; 4096 + 100];
        write(&mut block, 7, 8192, 3);
        assert_eq!(check(&block, 7, 8192), Ok(()));
        assert_eq!(check(&block[1024..2048], 7, 8192 + 1024), Ok(()));
        for cut in [1, 8, 16, 23, 24, 40] {
            assert_eq!(check(&block[..cut], 7, 8192), Ok(()));
        }
    }

    #[test]
    fn what_is_elsewhere_or_lost_is_told_apart() {
        let mut block = vec![0; 1024];
        assert_eq!(check(&block, 7, 0), Err((0, Mismatch::Zeros)));
        write(&mut block, 7, 0, 1);
        assert_eq!(check(&block, 8, 0), Err((0, Mismatch::Misplaced)));
        assert_eq!(check(&block, 7, 512), Err((0, Mismatch::Misplaced)));
        block[512..].fill(0);
        assert_eq!(check(&block, 7, 0), Err((512, Mismatch::Zeros)));
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_found(bit in 0usize..2048 * 8, generation in any::<u64>()) {
            let mut block = vec![0; 2048];
            write(&mut block, 1, 0, generation);
            block[bit / 8] ^= 1 << (bit % 8);
            let (start, _) = check(&block, 1, 0).expect_err("a bit is wrong");
            prop_assert_eq!(start, bit / 8 / UNIT * UNIT);
        }
    }
}

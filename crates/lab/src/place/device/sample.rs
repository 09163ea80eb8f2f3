//! What is on a device that no program recognises.

use std::{
    fmt, fs, io,
    os::unix::fs::FileExt,
    time::{Duration, Instant},
};

/// What fstone writes to the beginning of a named disk when it gives it back: what is on it then, trials left.
pub(super) const MARK: &[u8; 48] = b"fstone: only trials have left data on this disk\n";

/// Samples besides those of both ends, and the bytes of each.
const SAMPLES: u64 = 254;
const SAMPLE_BYTES: u64 = 64 << 10;
const BEGINNING_BYTES: u64 = 1 << 20;
/// No sample is begun after this time: a device may take seconds for each.
const LIMIT: Duration = Duration::from_secs(5);
/// So many of the first bytes are shown.
const SHOWN: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// Where the first byte that is not zero was found.
    pub first_at: u64,
    pub first: Vec<u8>,
    pub with_data: u32,
    /// How many there are, evenly distributed.
    pub samples: u32,
}

impl fmt::Display for Sampled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first_at, first, with_data, samples } = self;
        // No control characters reach a terminal.
        let shown: String =
            first.iter().map(|&byte| if (0x20..0x7f).contains(&byte) { char::from(byte) } else { '.' }).collect();
        write!(
            formatter,
            "from byte {first_at} on it holds {shown:?}, and {with_data} of {samples} samples across it hold data"
        )
    }
}

/// Looks at the beginning and the end, and at places between them; `None` if all are zero, or if fstone marked the disk as its own.
pub(super) fn sample(device: &fs::File, size: u64) -> io::Result<Option<Sampled>> {
    let since = Instant::now();
    let mut found = Sampled { first_at: 0, first: Vec::new(), with_data: 0, samples: 0 };
    let mut buffer = vec![0; size.min(BEGINNING_BYTES) as usize];
    device.read_exact_at(&mut buffer, 0)?;
    if buffer.starts_with(MARK) {
        return Ok(None);
    }
    found.add(0, &buffer);
    let (each, last) = (size.min(SAMPLE_BYTES), size.saturating_sub(SAMPLE_BYTES));
    buffer.truncate(each as usize);
    // The end comes before the others, in case the time is over: some formats have their index there.
    let between = (1..=SAMPLES).map(|number| (u128::from(last) * u128::from(number) / u128::from(SAMPLES + 1)) as u64);
    for at in std::iter::once(last).chain(between.filter(|at| *at >= BEGINNING_BYTES)) {
        if found.samples > 2 && since.elapsed() > LIMIT {
            break;
        }
        device.read_exact_at(&mut buffer, at)?;
        found.add(at, &buffer);
    }
    Ok((found.with_data > 0).then_some(found))
}

impl Sampled {
    fn add(&mut self, at: u64, bytes: &[u8]) {
        self.samples += 1;
        let Some(first) = bytes.iter().position(|&byte| byte != 0) else { return };
        let here = at + first as u64;
        if self.with_data == 0 || here < self.first_at {
            self.first_at = here;
            self.first = bytes[first..].iter().take(SHOWN).copied().collect();
        }
        self.with_data += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(writes: &[(u64, &[u8])]) -> Option<Sampled> {
        let file = tempfile::tempfile().expect("a file");
        let size = 64 << 20;
        file.set_len(size).expect("sparse");
        writes.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).expect("written"));
        sample(&file, size).expect("readable")
    }

    #[test]
    fn what_no_program_recognises_is_seen_and_an_empty_disk_is_empty() {
        assert_eq!(disk(&[]), None);
        let tar = disk(&[(0, b"notes.txt\0\0\0"), (8 << 20, &vec![1; 8 << 20])]).expect("data");
        assert_eq!((tar.first_at, &tar.first[..9]), (0, &b"notes.txt"[..]));
        assert!((20..60).contains(&tar.with_data) && (200..=256).contains(&tar.samples), "{tar:?}");
        let end = disk(&[((64 << 20) - 3, b"end")]).expect("data");
        assert_eq!((end.first_at, end.first.as_slice(), end.with_data), ((64 << 20) - 3, &b"end"[..], 1));
        // What trials left between its ends is fstone's own, as long as the beginning is as fstone left it.
        let left = (32 << 20, &[7_u8; 1 << 20][..]);
        assert_eq!(disk(&[(0, MARK), left]), None);
        assert!(disk(&[left]).is_some() && disk(&[(0, MARK), (0, b"x"), left]).is_some());
        let small = tempfile::tempfile().expect("a file");
        small.write_all_at(b"x", 10).expect("written");
        assert_eq!(sample(&small, 11).expect("readable").map(|found| found.first_at), Some(10));
    }
}

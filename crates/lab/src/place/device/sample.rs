//! What is on a device that no program recognises.

use rustix::fs::{Advice, fadvise};
use sha2::{Digest, Sha256};
use std::{
    fmt, fs, io,
    os::unix::fs::FileExt,
    time::{Duration, Instant},
};

/// What fstone writes to the beginning of a named disk when it gives it back: what is on it then, trials left. The next line says how many
/// samples it had, and their digest: if they are not the same later, somebody else has written since.
const MARK: &str = "fstone: only trials have left data on this disk\n";
/// A sector, which holds the mark and nothing else.
const MARK_BYTES: usize = 512;

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

/// Looks at the beginning and the end, and at places between them; `None` if all are zero, or as they were when fstone marked the disk
/// as its own.
pub(super) fn sample(device: &fs::File, size: u64) -> io::Result<Option<Sampled>> {
    let mut beginning = vec![0; size.min(MARK_BYTES as u64) as usize];
    device.read_exact_at(&mut beginning, 0)?;
    let marked = samples_of_mark(&beginning);
    let (found, mark) = look(device, size, marked)?;
    let is_ours = marked.is_some() && beginning == mark;
    Ok((!is_ours && found.with_data > 0).then_some(found))
}

/// Marks a disk, whose beginning is empty, as one on which only trials have left data.
pub(super) fn mark(device: &fs::File, size: u64) -> io::Result<()> {
    if size < MARK_BYTES as u64 {
        return Ok(());
    }
    let (_, mark) = look(device, size, None)?;
    device.write_all_at(&mark, 0)
}

/// How many samples a disk had when it was marked; `None` without a mark.
fn samples_of_mark(beginning: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(beginning.strip_prefix(MARK.as_bytes())?).ok()?;
    text.split(' ').next()?.parse().ok().filter(|&samples| u64::from(samples) <= SAMPLES + 2)
}

/// All samples, or this number of them, and the mark that says so.
fn look(device: &fs::File, size: u64, number: Option<u32>) -> io::Result<(Sampled, Vec<u8>)> {
    let since = Instant::now();
    // What a filesystem wrote is not in the cache of the device, which may be older.
    fadvise(device, 0, None, Advice::DontNeed)?;
    let mut found = Sampled { first_at: 0, first: Vec::new(), with_data: 0, samples: 0 };
    let mut digest = Sha256::new();
    let mut buffer = vec![0; size.min(BEGINNING_BYTES) as usize];
    device.read_exact_at(&mut buffer, 0)?;
    if let Some(beginning) = buffer.get_mut(..MARK_BYTES)
        && beginning.starts_with(MARK.as_bytes())
    {
        beginning.fill(0);
    }
    found.add(0, &buffer);
    digest.update(&buffer);
    let (each, last) = (size.min(SAMPLE_BYTES), size.saturating_sub(SAMPLE_BYTES));
    buffer.truncate(each as usize);
    // The end comes before the others, in case the time is over: some formats have their index there.
    let between = (1..=SAMPLES).map(|number| (u128::from(last) * u128::from(number) / u128::from(SAMPLES + 1)) as u64);
    for at in std::iter::once(last).chain(between.filter(|at| *at >= BEGINNING_BYTES)) {
        let is_enough = match number {
            Some(number) => found.samples >= number,
            None => found.samples > 2 && since.elapsed() > LIMIT,
        };
        if is_enough {
            break;
        }
        device.read_exact_at(&mut buffer, at)?;
        found.add(at, &buffer);
        digest.update(&buffer);
    }
    let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut mark = format!("{MARK}{} samples of {size} bytes: {digest}\n", found.samples).into_bytes();
    mark.resize(MARK_BYTES, 0);
    Ok((found, mark))
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
        let small = tempfile::tempfile().expect("a file");
        small.write_all_at(b"x", 10).expect("written");
        assert_eq!(sample(&small, 11).expect("readable").map(|found| found.first_at), Some(10));
    }

    #[test]
    fn a_mark_counts_only_for_what_trials_left() {
        let (file, size) = (tempfile::tempfile().expect("a file"), 64 << 20);
        file.set_len(size).expect("sparse");
        let write = |at: u64, bytes: &[u8]| file.write_all_at(bytes, at).expect("written");
        write(32 << 20, &[7; 1 << 20]);
        assert!(sample(&file, size).expect("readable").is_some(), "nobody has marked it");
        mark(&file, size).expect("marked");
        assert_eq!(sample(&file, size).expect("readable"), None, "what trials left");
        // A later user's data, on a disk whose beginning is as fstone left it.
        for (at, bytes) in [(1 << 20, 1 << 20), (48 << 20, 1 << 20), (size - 9, 9)] {
            write(at, &vec![b'x'; bytes]);
            let found = sample(&file, size).expect("readable").expect("data");
            assert!(found.first_at > 0, "the mark is no data: {found:?}");
            mark(&file, size).expect("marked");
            assert_eq!(sample(&file, size).expect("readable"), None);
        }
        write(600, b"x");
        assert!(sample(&file, size).expect("readable").is_some_and(|found| found.first_at == 600));
        mark(&file, size).expect("marked");
        file.set_len(2 * size).expect("sparse");
        assert!(sample(&file, 2 * size).expect("readable").is_some(), "a copy on a larger disk");
        // The mark of an earlier fstone, which had no digest.
        write(0, &[MARK.as_bytes(), &[0; 512]].concat());
        assert!(sample(&file, size).expect("readable").is_some());
    }
}

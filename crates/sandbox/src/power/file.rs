//! A log as a file: to make a state again after the trial.
//!
//! `fstone disk log 1\n`, the length of the index (8 bytes, little-endian), the index (JSON), then the data of the log and,
//! from the next multiple of 4096 bytes on, the disk as it was when the log began, with its holes.

use super::log::{Entry, Flush, Log, SECTOR_BYTES, copy_range};
use fstone_files::{Temporary, nameless};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

const MAGIC: &[u8; 18] = b"fstone disk log 1\n";
const MAX_INDEX_BYTES: u64 = 1 << 30;
const ALIGNMENT: u64 = 4096;

#[derive(Serialize, Deserialize)]
struct Index {
    entries: Vec<Entry>,
    flushes: Vec<Flush>,
    marks: Vec<(u64, u64)>,
    events: u64,
    atom: u64,
    data_bytes: u64,
    disk_bytes: u64,
}

fn invalid(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

impl Log {
    /// Writes it into a new file, which gets its name when all of it is written: a kill leaves no half of a log.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        // Before all of it is written in vain.
        if std::fs::symlink_metadata(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let temporary = Temporary::beside(path)?;
        self.write(temporary.file())?;
        temporary.publish(path)
    }

    /// Writes it into an empty file.
    fn write(&self, mut file: &File) -> io::Result<()> {
        let index = Index {
            entries: self.entries.clone(),
            flushes: self.flushes.clone(),
            marks: self.marks.clone(),
            events: self.events,
            atom: self.atom,
            data_bytes: self.data.metadata()?.len(),
            disk_bytes: self.base.metadata()?.len(),
        };
        let text = serde_json::to_vec(&index).map_err(io::Error::other)?;
        file.write_all(MAGIC)?;
        file.write_all(&(text.len() as u64).to_le_bytes())?;
        file.write_all(&text)?;
        let (data_at, base_at) = places(text.len() as u64, index.data_bytes);
        copy_range(&self.data, 0, index.data_bytes, file, data_at)?;
        copy_range(&self.base, 0, index.disk_bytes, file, base_at)?;
        file.set_len(base_at + index.disk_bytes)
    }

    /// Reads one that was [saved](Self::save). Its data goes to files without a name in this directory.
    ///
    /// # Errors
    /// When the file cannot be read, or is none.
    pub fn load(path: &Path, directory: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut head = [0; MAGIC.len() + 8];
        file.read_exact(&mut head).map_err(|_| invalid("it is not the log of a disk"))?;
        let (magic, length) = head.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(invalid("it is not the log of a disk"));
        }
        let length = u64::from_le_bytes(length.try_into().expect("eight bytes"));
        let whole = file.metadata()?.len();
        if length > MAX_INDEX_BYTES.min(whole) {
            return Err(invalid("the log of a disk is damaged"));
        }
        let mut text = vec![0; length as usize];
        file.read_exact(&mut text)?;
        let index: Index = serde_json::from_slice(&text).map_err(|error| invalid(&error.to_string()))?;
        let (data_at, base_at) = places(length, index.data_bytes);
        let fits = base_at.checked_add(index.disk_bytes).is_some_and(|end| end == whole);
        if !fits || !index.is_sound() {
            return Err(invalid("the log of a disk is damaged"));
        }
        let (data, base) = (nameless(directory)?, nameless(directory)?);
        data.set_len(index.data_bytes)?;
        base.set_len(index.disk_bytes)?;
        copy_range(&file, data_at, index.data_bytes, &data, 0)?;
        copy_range(&file, base_at, index.disk_bytes, &base, 0)?;
        Ok(Self {
            entries: index.entries,
            flushes: index.flushes,
            marks: index.marks,
            events: index.events,
            base: Arc::new(base),
            data: Arc::new(data),
            atom: index.atom,
        })
    }
}

/// Where the data of the log and the disk begin in the file.
const fn places(index_bytes: u64, data_bytes: u64) -> (u64, u64) {
    let data_at = MAGIC.len() as u64 + 8 + index_bytes;
    (data_at, (data_at.saturating_add(data_bytes)).next_multiple_of(ALIGNMENT))
}

impl Index {
    /// Whether every change lies on the disk, and its data in the log.
    fn is_sound(&self) -> bool {
        let sectors = self.disk_bytes / SECTOR_BYTES;
        let sound = |entry: &Entry| {
            let range = &entry.sectors;
            let fits = range.start < range.end && range.end <= sectors;
            fits && entry.data_end().is_none_or(|end| end <= self.data_bytes)
        };
        (1..=8).contains(&self.atom) && self.entries.iter().all(sound)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        LogSpec, States,
        log::{Change, LogWriter},
    };
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_saved_log_makes_the_same_states() {
        let directory = tempfile::tempdir().unwrap();
        let image = tempfile::tempfile().unwrap();
        image.set_len(1 << 20).unwrap();
        image.write_all_at(&[9; 4096], 65536).unwrap();
        let spec = LogSpec { directory: directory.path().to_owned(), bound_bytes: 1 << 20 };
        let writer = LogWriter::new(&spec, &image, 512).unwrap();
        for number in 0..10u8 {
            let data_at = writer.position();
            writer.add_data(&[number + 1; 4096]);
            let sector = u64::from(number) * 4;
            let logged = writer.change(Change::Write { data_at }, sector..sector + 8).unwrap();
            writer.completed(logged, false);
        }
        let log = writer.take().unwrap();
        let path = directory.path().join("log");
        log.save(&path).unwrap();
        assert!(log.save(&path).is_err(), "nothing is replaced");
        let dangling = directory.path().join("dangling");
        std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
        assert_eq!(log.save(&dangling).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let again = Log::load(&path, directory.path()).unwrap();
        let window = 0..log.events + 1;
        let (mut first, mut second) = (States::new(log, window.clone(), None), States::new(again, window, None));
        for state in first.choose(20, 5) {
            let (one, other) = (directory.path().join("one"), directory.path().join("other"));
            let [one, other] = [(&mut first, one), (&mut second, other)].map(|(states, path)| {
                states.write_image(state, &File::create(&path).unwrap()).unwrap();
                std::fs::read(path).unwrap()
            });
            assert_eq!(one.len(), 1 << 20);
            assert!(one == other, "{state}");
            assert_eq!(one[65536..65536 + 4096], [9; 4096]);
        }

        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.truncate(bytes.len() - 1);
        std::fs::write(&path, &bytes).unwrap();
        assert!(Log::load(&path, directory.path()).is_err());
        std::fs::write(&path, b"something else").unwrap();
        let error = Log::load(&path, directory.path()).unwrap_err();
        assert_eq!(error.to_string(), "it is not the log of a disk");
    }
}

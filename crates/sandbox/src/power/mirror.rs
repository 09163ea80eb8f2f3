//! A state as a file, for programs of the host: between two states only what differs is written.

use super::log::{SECTOR_BYTES, copy_range, copy_sparsely, make_hole};
use super::map::Shown;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

/// A file that holds what a disk shows, as often as it is asked to.
#[derive(Debug)]
pub struct Mirror {
    file: File,
    /// The disk when its log began: what the file holds but for the changed sectors.
    base: Option<Arc<File>>,
    changed: Vec<Range<u64>>,
}

impl Mirror {
    /// A new, empty file at this path.
    ///
    /// # Errors
    /// When it is there already or cannot be made.
    pub fn new(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        Ok(Self { file, base: None, changed: Vec::new() })
    }

    /// Makes it hold what is shown.
    pub(crate) fn hold(&mut self, shown: &Shown) -> io::Result<()> {
        let base = shown.base();
        if self.base.as_ref().is_some_and(|known| Arc::ptr_eq(known, base)) {
            for sectors in std::mem::take(&mut self.changed) {
                let (at, bytes) = (sectors.start * SECTOR_BYTES, (sectors.end - sectors.start) * SECTOR_BYTES);
                make_hole(&self.file, at, bytes)?;
                copy_range(base, at, bytes, &self.file, at)?;
            }
        } else {
            self.base = None;
            self.changed.clear();
            self.file.set_len(0)?;
            copy_sparsely(base, &self.file)?;
            self.base = Some(Arc::clone(base));
        }
        // Known before they are written: what fails in between is put right by the next.
        self.changed = shown.changed();
        shown.write_changes(&self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::{Change, LogSpec, LogWriter};
    use super::super::states::States;
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_mirror_holds_one_state_after_the_other() {
        let directory = tempfile::tempdir().unwrap();
        let image = tempfile::tempfile().unwrap();
        image.set_len(1 << 20).unwrap();
        image.write_all_at(&[9; 8192], 4096).unwrap();
        let spec = LogSpec { directory: directory.path().to_owned(), bound_bytes: 1 << 20 };
        let writer = LogWriter::new(&spec, &image, 512).unwrap();
        for number in 0..12u8 {
            let data_at = writer.position();
            writer.add_data(&[number + 1; 4096]);
            let sector = u64::from(number) * 6;
            let logged = writer.change(Change::Write { data_at }, sector..sector + 8).unwrap();
            writer.completed(logged, false);
        }
        let log = writer.take().unwrap();
        let end = log.events() + 1;
        let mut states = States::new(log, 0..end, None);
        let path = directory.path().join("mirror");
        let mut mirror = Mirror::new(&path).unwrap();
        assert!(Mirror::new(&path).is_err(), "nothing is replaced");
        for state in states.choose(20, 3) {
            let mut shown = states.shown(state, directory.path()).unwrap();
            shown.write_all_at(&[77; 1024], 512 * 1000).unwrap();
            mirror.hold(&shown).unwrap();
            let (mut expected, found) = (vec![0; 1 << 20], std::fs::read(&path).unwrap());
            shown.read_exact_at(&mut expected, 0).unwrap();
            assert!(expected == found, "{state}");
        }
    }
}

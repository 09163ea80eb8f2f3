//! A state as a file, for programs of the host: between two states only what differs is written.

use super::log::copy_sparsely;
use super::map::{Content, Shown};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// A file that holds what a disk shows, as often as it is asked to.
#[derive(Debug)]
pub struct Mirror {
    file: File,
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    /// The disk when its log began, and the log's data. Kept, so that no other file can be taken for them.
    base: Arc<File>,
    data: Arc<File>,
    content: Content,
    /// When the file was written last. A program that looks at it has no business writing there, and some do.
    written: SystemTime,
}

impl Mirror {
    /// A new, empty file at this path.
    ///
    /// # Errors
    /// When it is there already or cannot be made.
    pub fn new(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        Ok(Self { file, held: None })
    }

    pub(crate) fn hold(&mut self, shown: &Shown) -> io::Result<()> {
        let content = shown.content().clone();
        // Unknown until all of it is written: after what fails in between, the next begins from nothing.
        let differing = match self.held.take() {
            Some(held)
                if Arc::ptr_eq(&held.base, shown.base()) && self.file.metadata()?.modified()? == held.written =>
            {
                content.differing(&held.content, Arc::ptr_eq(&held.data, shown.data()))
            }
            _ => {
                self.file.set_len(0)?;
                copy_sparsely(shown.base(), &self.file)?;
                content.differing(&Content::default(), false)
            }
        };
        for sectors in differing {
            shown.write_range(&self.file, sectors)?;
        }
        let (base, data) = (Arc::clone(shown.base()), Arc::clone(shown.data()));
        let written = self.file.metadata()?.modified()?;
        self.held = Some(Held { base, data, content, written });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::{Change, LogSpec, LogWriter};
    use super::super::states::States;
    use super::*;
    use std::os::unix::fs::FileExt;

    fn write(writer: &LogWriter, bytes: u8) -> States {
        for number in 0..12u8 {
            let data_at = writer.position();
            writer.add_data(&[number + bytes; 4096]);
            let sector = u64::from(number) * 6;
            let change = if number == 5 { Change::Zero } else { Change::Write { data_at } };
            let logged = writer.change(change, sector..sector + 8).unwrap();
            writer.completed(logged, false);
        }
        let log = writer.take().unwrap();
        let end = log.events() + 1;
        States::new(log, 0..end, None)
    }

    #[test]
    fn a_mirror_holds_one_state_after_the_other() {
        let directory = tempfile::tempdir().unwrap();
        let image = tempfile::tempfile().unwrap();
        image.set_len(1 << 20).unwrap();
        image.write_all_at(&[9; 8192], 4096).unwrap();
        let spec = LogSpec { directory: directory.path().to_owned(), bound_bytes: 1 << 20 };
        let writer = LogWriter::new(&spec, &image, 512).unwrap();
        let path = directory.path().join("mirror");
        let mut mirror = Mirror::new(&path).unwrap();
        assert!(Mirror::new(&path).is_err(), "nothing is replaced");
        let mut look = |mut states: States, tampers: bool| {
            for state in states.choose(20, 3) {
                let mut shown = states.shown(state, directory.path()).unwrap();
                shown.write_all_at(&[77; 1024], 512 * 1000).unwrap();
                mirror.hold(&shown).unwrap();
                let (mut expected, found) = (vec![0; 1 << 20], std::fs::read(&path).unwrap());
                shown.read_exact_at(&mut expected, 0).unwrap();
                assert!(expected == found, "{state}");
                if tampers {
                    // As a check that repairs what it was asked only to look at.
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&[1; 512], 999).unwrap();
                }
            }
        };
        look(write(&writer, 1), false);
        // Another log of the same disk has other data at the same places.
        writer.rewind(&image, directory.path()).unwrap();
        look(write(&writer, 100), false);
        writer.rewind(&image, directory.path()).unwrap();
        look(write(&writer, 1), true);
    }
}

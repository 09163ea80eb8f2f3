//! The journal of a run.

use super::{
    Entry, UndoError,
    entry::{By, JOURNAL_NAME},
};
use crate::{machine::Machine, place::holder};
use fstone_files::{Temporary, directory_of, open_or_create};
use fstone_model::{dataset::Holder, text};
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

const LIMIT_BYTES: u64 = 4 << 20;
/// A journal is truncated whenever nothing is open, and else written anew when it is as long as this.
const LONG_BYTES: u64 = LIMIT_BYTES / 16;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    /// The machine on which what follows was made, and the boot. Journals of earlier versions name no machine.
    Boot {
        id: String,
        #[serde(default)]
        machine: String,
        #[serde(default)]
        host: String,
        #[serde(default)]
        pid_namespace: u64,
    },
    Made {
        id: u64,
        entry: Entry,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<u64>,
    },
    Undone {
        id: u64,
    },
}

/// When a line has to survive a power failure. A kill it survives as soon as it is written.
#[derive(Clone, Copy)]
enum Durable {
    /// Before what it announces.
    Now,
    /// Some time: when it is lost, something is looked for in vain.
    Later,
}

/// Why the journal could not be kept; completes "failed to keep the journal of undo: ".
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("{}: {cause}", path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error(
        "an earlier run left {count} thing(s) behind, first {first}; run `fstone clean` (work directory {})",
        work_directory.display()
    )]
    Leftovers { count: usize, first: String, work_directory: PathBuf },
    /// It is not this user's own, or others may write to it: it could name anything.
    #[error("{}: it has to belong to the user who runs fstone and be writable by nobody else", .0.display())]
    Untrusted(PathBuf),
    #[error("{}: it names something that fstone never makes: {what}", path.display())]
    Implausible { path: PathBuf, what: String },
    /// A run on another machine wrote it, in a directory that machines share.
    #[error(
        "{}: a run on {host}, another machine, left things behind that only {host} can undo; run `fstone clean` there, or \
         name another directory with --work-directory",
        path.display()
    )]
    Elsewhere { path: PathBuf, host: String },
    #[error("{}:{line}: not a line of a journal; is it another program's file?", path.display())]
    Foreign {
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
    },
}

impl JournalError {
    pub(crate) const fn system(&self) -> Option<&io::Error> {
        match self {
            Self::File { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

/// Everything a run has made and not yet undone. Dropped by a run, it undoes what is left, latest first.
pub struct Undo<'m> {
    machine: &'m Machine,
    file: File,
    path: PathBuf,
    open: Vec<(u64, Entry)>,
    next: u64,
    /// The first entry of this run. Those of earlier ones are undone only by [`super::clean`].
    own: u64,
}

impl<'m> Undo<'m> {
    /// Begins the journal of a run in a work directory, whose lock the caller holds. It may format these `disks`.
    ///
    /// # Errors
    /// When it cannot be read, or an earlier run left something open. What a process hangs in is in nobody's way, nor is what is on
    /// another disk: it stays until a person says that it may go.
    pub(crate) fn begin(work_directory: &Path, disks: &[PathBuf], machine: &'m Machine) -> Result<Self, JournalError> {
        let mut journal = Self::open(work_directory, machine)?;
        let stays = |entry: &Entry| entry.is_on_a_disk_other_than(disks);
        // What is removed in a directory keeps that.
        let is_kept = |entry: &Entry| {
            let Entry::Tree { path, .. } = entry else { return false };
            journal.entries().any(|other| stays(other) && other.needs(path))
        };
        let is_in_the_way = |entry: &&Entry| entry.hangs().is_none() && !stays(entry) && !is_kept(entry);
        let left: Vec<&Entry> = journal.entries().filter(is_in_the_way).collect();
        if let Some(first) = left.first() {
            return Err(JournalError::Leftovers {
                count: left.len(),
                first: first.describe(),
                work_directory: work_directory.to_owned(),
            });
        }
        journal.own = journal.next;
        if !journal.open.is_empty() {
            // What follows is of this boot, whenever that was made.
            journal.rewrite().map_err(|cause| JournalError::File { path: journal.path.clone(), cause })?;
        }
        Ok(journal)
    }

    /// Opens the journal of a work directory, whose lock the caller holds, with what an earlier run left open.
    pub(super) fn open(work_directory: &Path, machine: &'m Machine) -> Result<Self, JournalError> {
        let path = work_directory.join(JOURNAL_NAME);
        let failed = |cause| JournalError::File { path: path.clone(), cause };
        let file = open_or_create(&path, true).map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        if facts.uid() != rustix::process::geteuid().as_raw() || facts.mode() & 0o022 != 0 {
            return Err(JournalError::Untrusted(path));
        }
        let mut text = String::new();
        (&file).take(LIMIT_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > LIMIT_BYTES {
            return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, "longer than any journal becomes")));
        }
        // Half a line was never acted upon; a whole one without its end is what an editor leaves.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let lacks_end = serde_json::from_str::<Line>(&text[whole..]).is_ok();
        if lacks_end {
            text.push('\n');
        }
        let Replayed { open, next, elsewhere } = replay(&text, &holder::this_process())
            .map_err(|line| JournalError::Foreign { path: path.clone(), line })?;
        if let Some(host) = elsewhere {
            return Err(JournalError::Elsewhere { path, host });
        }
        if let Some((_, entry)) = open.iter().find(|(_, entry)| !entry.is_plausible(work_directory)) {
            return Err(JournalError::Implausible { path, what: entry.describe() });
        }
        if lacks_end {
            (&file).write_all(b"\n").map_err(failed)?;
        } else if !text.ends_with('\n') {
            // The next line would be a part of it.
            file.set_len(whole as u64).map_err(failed)?;
        }
        Ok(Self { machine, file, path, open, next, own: u64::MAX })
    }

    /// What is not undone, in the order it was made.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.open.iter().map(|(_, entry)| entry)
    }

    /// Records what is about to be made. It is in the journal, durably, when this returns.
    ///
    /// # Errors
    /// When the journal cannot be written; then it must not be made.
    pub(crate) fn record(&mut self, entry: Entry) -> Result<u64, JournalError> {
        let entry = match (entry, self.scratch()) {
            (own @ Entry::Own { .. }, Some((_, Entry::Scratch { path, device, .. }))) => {
                Entry::OwnOnDisk { disk: path.clone(), device: *device, own: Box::new(own) }
            }
            (entry, _) => entry,
        };
        self.add(entry, None)
    }

    /// Replaces an entry by one that says more; the old one stands until the new one is durable. What was made after the old
    /// one is still undone before the new one.
    pub(crate) fn replace(&mut self, id: u64, entry: Entry) -> Result<u64, JournalError> {
        let new = self.add(entry, Some(id))?;
        self.forget(id);
        Ok(new)
    }

    fn add(&mut self, entry: Entry, replaces: Option<u64>) -> Result<u64, JournalError> {
        let id = self.next;
        self.next += 1;
        self.append(&Line::Made { id, entry: entry.clone(), replaces }, Durable::Now)
            .map_err(|cause| JournalError::File { path: self.path.clone(), cause })?;
        insert(&mut self.open, id, entry, replaces);
        Ok(id)
    }

    pub(crate) fn scratch_entry(&self) -> Option<u64> {
        self.scratch().map(|(id, _)| *id)
    }

    /// The named disk of this run.
    fn scratch(&self) -> Option<&(u64, Entry)> {
        let is_own = |(id, entry): &&(u64, Entry)| *id >= self.own && matches!(entry, Entry::Scratch { .. });
        self.open.iter().rfind(is_own)
    }

    pub(crate) fn undo(&mut self, id: u64) -> Result<(), UndoError> {
        self.undo_by(id, By::Itself)
    }

    pub(super) fn undo_by(&mut self, id: u64, by: By<'_>) -> Result<(), UndoError> {
        let Some((_, entry)) = self.open.iter().find(|(open, _)| *open == id) else { return Ok(()) };
        entry.undo(self.machine, by)?;
        self.forget(id);
        Ok(())
    }

    /// Undoes everything of this run, latest first. What cannot be undone stays in the journal, with all that it stands on. So does
    /// what a process hangs in, which is no failure of its trial: see [`Undo::close`].
    pub(crate) fn undo_all(&mut self) -> Vec<UndoError> {
        let mut failed = Vec::new();
        for (id, entry) in self.in_undo_order() {
            if id < self.own || entry.hangs().is_some() {
                continue;
            }
            if let Err(error) = self.undo_by(id, By::Itself) {
                failed.push(error);
                if entry.holds_others() {
                    break;
                }
            }
        }
        failed
    }

    /// Latest first.
    pub(super) fn in_undo_order(&self) -> Vec<(u64, Entry)> {
        self.open.iter().rev().cloned().collect()
    }

    /// Leaves the directory of a load to a process that hangs in it, and to `clean`.
    pub(crate) fn leave_to(&mut self, id: u64, process: Holder) -> Option<UndoError> {
        let place = self.open.iter().position(|(open, _)| *open == id)?;
        let mut entry = self.open[place].1.clone();
        let of = match &mut entry {
            Entry::OwnOnDisk { own, .. } => &mut **own,
            entry => entry,
        };
        let (Entry::Tree { hung, .. } | Entry::Own { hung, .. }) = of else { return None };
        *hung = Some(process);
        let hangs = entry.hangs();
        // Where this cannot be written, a later clean may hang as well; this run must not.
        if self.replace(id, entry.clone()).is_err() {
            self.open[place].1 = entry;
        }
        hangs
    }

    /// Notes that something is not there (any more). Where this cannot be written, the worst is that a later clean
    /// looks for it in vain.
    pub(crate) fn forget(&mut self, id: u64) {
        self.open.retain(|(open, _)| *open != id);
        let result = if self.open.is_empty() {
            self.cut(0)
        } else {
            self.append(&Line::Undone { id }, Durable::Later).and_then(|()| {
                let is_long = self.file.metadata()?.len() > LONG_BYTES;
                if is_long { self.rewrite() } else { Ok(()) }
            })
        };
        drop(result);
    }

    fn append(&mut self, line: &Line, durable: Durable) -> io::Result<()> {
        if self.open.is_empty() {
            // Nothing in it counts any more, and it may be of another boot or machine than what follows.
            self.cut(0)?;
        }
        let before = self.file.metadata()?.len();
        let mut text = Vec::new();
        if before == 0 {
            add_line(&mut text, &boot_line())?;
        }
        add_line(&mut text, line)?;
        let written = self.file.write_all(&text).and_then(|()| match durable {
            Durable::Now => self.file.sync_data(),
            Durable::Later => Ok(()),
        });
        if written.is_err() {
            // Half a line would hide the next one.
            self.cut(before)?;
        }
        written
    }

    /// The next line begins there and leaves no hole.
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)?;
        self.file.seek(SeekFrom::Start(length)).map(drop)
    }

    /// Leaves out what was undone.
    fn rewrite(&mut self) -> io::Result<()> {
        let mut text = Vec::new();
        add_line(&mut text, &boot_line())?;
        for (id, entry) in self.open.iter().cloned() {
            add_line(&mut text, &Line::Made { id, entry, replaces: None })?;
        }
        let new = Temporary::owned(&self.path, None)?;
        let mut file = new.file().try_clone()?;
        file.write_all(&text)?;
        new.replace(&self.path)?;
        self.file = file;
        // A power cut must not bring the old one back, which lacks what comes next.
        File::open(directory_of(&self.path))?.sync_all()
    }

    /// Undoes what is left. What cannot be undone was told when that was tried first, and stays in the journal. The rest of
    /// what stays there, because a process hangs in it.
    pub(crate) fn close(mut self) -> Vec<UndoError> {
        self.undo_all();
        self.own = u64::MAX;
        self.entries().filter_map(Entry::hangs).collect()
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        for error in self.undo_all() {
            // Nobody is left to return it to, and perhaps nobody to read it; it is also still in the journal.
            let _ = writeln!(io::stderr(), "fstone: not undone: {}", text::line(&error.to_string()));
        }
        if self.open.is_empty() {
            // Staying behind, empty, it would do no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Replayed {
    open: Vec<(u64, Entry)>,
    next: u64,
    /// The host of another machine, where the open entries were made there. Its boot is no reboot of this machine, and its
    /// numbers of files and devices mean others here.
    elsewhere: Option<String>,
}

fn add_line(text: &mut Vec<u8>, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *text, line)?;
    text.push(b'\n');
    Ok(())
}

fn boot_line() -> Line {
    let Holder { machine, host, boot: id, pid_namespace, .. } = holder::this_process();
    Line::Boot { id, machine, host, pid_namespace }
}

/// Puts an entry right after the one that it replaces, or at the end.
fn insert(open: &mut Vec<(u64, Entry)>, id: u64, entry: Entry, replaces: Option<u64>) {
    let replaced = open.iter().position(|(known, _)| replaces == Some(*known));
    open.insert(replaced.map_or(open.len(), |index| index + 1), (id, entry));
}

/// `Err` is the number of a line that is not ours.
fn replay(text: &str, this: &Holder) -> Result<Replayed, usize> {
    let mut open: Vec<(u64, Entry)> = Vec::new();
    let mut same_boot = true;
    let mut elsewhere = None;
    let mut next = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        // A last line without its end was never acted upon.
        let Some(line) = line.strip_suffix('\n') else { break };
        match serde_json::from_str(line).map_err(|_| number + 1)? {
            Line::Made { id, entry, replaces } => {
                next = next.max(id + 1);
                insert(&mut open, id, entry, replaces);
            }
            Line::Boot { id, machine, host, pid_namespace } => {
                same_boot = id == this.boot;
                // A machine that was renamed since; in a container of it, processes of the run might not be seen.
                let is_renamed =
                    same_boot && !id.is_empty() && pid_namespace != 0 && pid_namespace == this.pid_namespace;
                elsewhere = (!machine.is_empty() && machine != this.machine && !is_renamed).then_some(host);
            }
            Line::Undone { id } => open.retain(|(made, _)| *made != id),
        }
    }
    // A reboot undid what was in memory only, and gave its numbers to others.
    open.retain(|(_, entry)| same_boot || elsewhere.is_some() || entry.outlives_a_boot());
    let elsewhere = elsewhere.filter(|_| !open.is_empty());
    Ok(Replayed { open, next, elsewhere })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::device::{BlockFacts, FakeDevices, FileKind};
    use std::{slice, sync::Arc};

    #[test]
    fn a_journal_that_could_be_anybodys_or_names_anything_is_not_followed() {
        use std::os::unix::fs::PermissionsExt;
        let work = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let machine = Machine::fake();
        let path = work.path().join(JOURNAL_NAME);
        let write = |entry: &Entry| {
            let line = serde_json::to_string(&Line::Made { id: 0, entry: entry.clone(), replaces: None })
                .expect("serialises")
                + "\n";
            std::fs::write(&path, line).expect("written");
        };
        let precious = work.path().join("precious");
        std::fs::write(&precious, "data").expect("written");
        let elsewhere = || PathBuf::from("/etc");
        for entry in [
            Entry::Image { path: precious.clone(), id: None },
            Entry::Tree { path: elsewhere(), id: None, hung: None },
            Entry::Tree { path: "/home/../etc/fstone-load-1".into(), id: None, hung: None },
            Entry::Guest { path: elsewhere(), id: None, program: "/bin/true".into() },
            Entry::QueueSetting { device: (7, 0), name: "../../x".into(), before: "1".into(), after: None },
        ] {
            write(&entry);
            let opened = Undo::open(work.path(), &machine);
            assert!(matches!(opened, Err(JournalError::Implausible { .. })), "{entry:?}");
        }
        write(&Entry::Tree { path: work.path().join("fstone-load-1"), id: None, hung: None });
        assert_eq!(Undo::open(work.path(), &machine).expect("plausible").entries().count(), 1);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("changed");
        assert!(matches!(Undo::open(work.path(), &machine), Err(JournalError::Untrusted(_))));
        assert!(precious.exists());
    }

    fn directory(name: &str) -> Entry {
        Entry::Tree { path: name.into(), id: None, hung: None }
    }

    fn boot(id: &str, machine: &str) -> Line {
        Line::Boot { id: id.into(), machine: machine.into(), host: format!("{machine}.example"), pid_namespace: 7 }
    }

    fn replayed(text: &str, boot: &str) -> Result<Replayed, usize> {
        let here = Holder { machine: "here".into(), boot: boot.into(), pid_namespace: 7, ..holder::this_process() };
        replay(text, &here)
    }

    fn written(lines: &[Line]) -> String {
        lines.iter().map(|line| serde_json::to_string(line).expect("serialises") + "\n").collect()
    }

    #[test]
    fn replay_keeps_what_is_open_and_ignores_half_a_line() {
        let lines = written(&[
            boot("boot 1", "here"),
            Line::Made { id: 0, entry: directory("/a"), replaces: None },
            Line::Made { id: 1, entry: directory("/b"), replaces: None },
            Line::Undone { id: 0 },
        ]);
        let expected = Replayed { open: vec![(1, directory("/b"))], next: 2, elsewhere: None };
        assert_eq!(replayed(&lines, "boot 1").expect("ours"), expected);
        let torn = format!("{lines}{{\"made\":{{\"id\":2,\"ent");
        assert_eq!(replayed(&torn, "boot 1").expect("ours"), expected);
        assert_eq!(replayed("hello\n", "boot 1").expect_err("foreign"), 1);
    }

    #[test]
    fn what_follows_half_a_line_is_a_line_of_its_own() {
        let work = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let machine = Machine::fake();
        let (a, b) = (directory("/tmp/fstone-load-a"), directory("/tmp/fstone-load-b"));
        let mut undo = Undo::begin(work.path(), &[], &machine).expect("begins");
        undo.record(a.clone()).expect("records");
        undo.file.write_all(b"{\"made\":{\"id\":1,\"ent").expect("written");
        std::mem::forget(undo);
        let mut undo = Undo::open(work.path(), &machine).expect("opens");
        undo.record(b.clone()).expect("records");
        // What an editor leaves that ends no last line.
        undo.file.set_len(undo.file.metadata().expect("there").len() - 1).expect("shortened");
        std::mem::forget(undo);
        for _ in 0..2 {
            let undo = Undo::open(work.path(), &machine).expect("opens");
            assert!(undo.entries().eq([&a, &b]));
            std::mem::forget(undo);
        }
    }

    #[test]
    fn what_is_replaced_is_undone_after_what_was_made_on_it() {
        let work = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let machine = Machine::fake();
        let path = work.path().join("disk");
        let disk =
            |uuid: Option<&str>| Entry::Scratch { path: path.clone(), device: (8, 1), uuid: uuid.map(Into::into) };
        let setting = Entry::QueueSetting { device: (8, 1), name: "x".into(), before: "1".into(), after: None };
        let mut undo = Undo::begin(work.path(), &[], &machine).expect("begins");
        let first = undo.record(disk(None)).expect("records");
        undo.record(setting.clone()).expect("records");
        let second = undo.replace(first, disk(Some("one"))).expect("replaces");
        undo.replace(second, disk(Some("two"))).expect("replaces");
        let order = [disk(Some("two")), setting];
        assert!(undo.entries().eq(&order));
        // A killed run's journal says the same.
        std::mem::forget(undo);
        assert!(Undo::open(work.path(), &machine).expect("opens").entries().eq(&order));
    }

    #[test]
    fn after_a_reboot_only_what_is_on_a_disk_is_still_there() {
        let image = Entry::Image { path: "/image".into(), id: None };
        let lines = written(&[
            boot("boot 1", "here"),
            Line::Made { id: 0, entry: image.clone(), replaces: None },
            Line::Made { id: 1, entry: Entry::Zram { index: 3, size_bytes: 4096 }, replaces: None },
            Line::Made { id: 2, entry: Entry::ZramToCome { existing: Vec::new() }, replaces: None },
        ]);
        assert_eq!(replayed(&lines, "boot 1").expect("ours").open.len(), 3);
        assert_eq!(replayed(&lines, "boot 2").expect("ours").open, [(0, image.clone())]);
        // Journals of earlier versions.
        let unnamed = lines.replace(",\"machine\":\"here\",\"host\":\"here.example\",\"pid_namespace\":7", "");
        assert_ne!(unnamed, lines);
        let expected = Replayed { open: vec![(0, image)], next: 3, elsewhere: None };
        assert_eq!(replayed(&unnamed, "boot 2").expect("ours"), expected);
    }

    #[test]
    fn a_machine_that_was_renamed_knows_its_own_until_it_boots() {
        let made = Line::Made { id: 0, entry: directory("/a"), replaces: None };
        let lines = written(&[boot("boot 1", "before"), made]);
        let elsewhere = |lines: &str, boot: &str| replayed(lines, boot).expect("ours").elsewhere;
        assert_eq!(elsewhere(&lines, "boot 1"), None);
        let other = Some("before.example".to_owned());
        assert_eq!(elsewhere(&lines, "boot 2"), other);
        assert_eq!(elsewhere(&lines.replace(":7}", ":8}"), "boot 1"), other, "of a container");
        assert_eq!(elsewhere(&lines.replace(",\"pid_namespace\":7", ""), "boot 1"), other, "of an earlier version");
        assert_eq!(elsewhere(&lines.replace("boot 1", ""), ""), other, "the kernel does not say which boot");
    }

    #[test]
    fn what_another_machine_left_is_not_touched() {
        let work = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let machine = Machine::fake();
        let (journal, tree) = (work.path().join(JOURNAL_NAME), work.path().join("fstone-load-1"));
        std::fs::create_dir(&tree).expect("made");
        let made = Line::Made { id: 0, entry: directory(&tree.to_string_lossy()), replaces: None };
        std::fs::write(&journal, written(&[boot("their boot", "there"), made])).expect("written");
        let before = std::fs::read(&journal).expect("read");
        for error in [
            Undo::begin(work.path(), &[], &machine).map(drop).expect_err("another machine's"),
            Undo::open(work.path(), &machine).map(drop).expect_err("another machine's"),
        ] {
            let words = error.to_string();
            assert!(words.contains("there.example") && words.contains("--work-directory"), "{words}");
        }
        assert!(tree.exists() && std::fs::read(&journal).expect("read") == before);

        // Where it left nothing, its journal is in nobody's way.
        std::fs::write(&journal, written(&[boot("their boot", "there")])).expect("written");
        let mut undo = Undo::begin(work.path(), &[], &machine).expect("nothing is left");
        undo.record(directory(&tree.to_string_lossy())).expect("records");
        assert_eq!(Undo::open(work.path(), &machine).expect("this machine's").entries().count(), 1);
    }

    #[test]
    fn what_is_on_another_disk_stays_and_is_in_nobodys_way() {
        let work = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let (machine, path) = (Machine::fake(), work.path().join(JOURNAL_NAME));
        let disk = PathBuf::from("/dev/sdz");
        let on_disk = Entry::Scratch { path: disk.clone(), device: (8, 1), uuid: None };
        let lines =
            [boot("an earlier boot", holder::machine()), Line::Made { id: 4, entry: on_disk.clone(), replaces: None }];
        std::fs::write(&path, written(&lines)).expect("written");
        for _ in 0..2 {
            let mut undo = Undo::begin(work.path(), &[], &machine).expect("it is in nobody's way");
            // As a full filesystem leaves it.
            let whole = undo.file.metadata().expect("there").len();
            undo.file.write_all(b"half a li").expect("written");
            undo.cut(whole).expect("shortened");
            assert_eq!(undo.scratch_entry(), None);
            let tree = work.path().join("fstone-load-1");
            for _ in 0..4000 {
                let id = undo.record(directory(&tree.to_string_lossy())).expect("records");
                undo.forget(id);
            }
            undo.record(directory(&tree.to_string_lossy())).expect("records");
            std::fs::create_dir(&tree).expect("made");
            // As a kill leaves it, now.
            let text = std::fs::read_to_string(&path).expect("read");
            assert!(text.len() < 2 * usize::try_from(LONG_BYTES).expect("small"), "{}", text.len());
            let left = replay(&text, &holder::this_process()).expect("ours").open;
            assert!(left.iter().map(|(_, entry)| entry).eq([&on_disk, &directory(&tree.to_string_lossy())]));
            drop(undo);
            assert!(!tree.exists());
        }
        let refused = Undo::begin(work.path(), &[disk], &machine).map(drop);
        assert!(matches!(refused, Err(JournalError::Leftovers { count: 1, .. })));
        assert!(Undo::open(work.path(), &machine).expect("opens").entries().eq([&on_disk]));
    }

    /// What a command of a study removes on a named disk may be somebody's by then.
    #[test]
    fn a_removal_on_a_named_disk_needs_permission_after_a_kill() {
        use fstone_files::FileIdentity;
        let work = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let disk = PathBuf::from("/dev/sdz");
        let devices = Arc::new(FakeDevices::new());
        let machine = Machine { devices: devices.clone(), ..Machine::fake() };
        let attached = BlockFacts { number: (8, 1), ..BlockFacts::of_kind(FileKind::Block, disk.clone()) };
        let trial = work.path().join("fstone-load-1");
        let directory = trial.join(crate::filesystem::OWN_DIRECTORY);
        std::fs::create_dir_all(&directory).expect("made");
        let id = FileIdentity::of(&std::fs::metadata(&trial).expect("there"));
        let remove = ["touch", "ran"].map(str::to_owned).to_vec();
        let own = Entry::Own { filesystem: "own".into(), remove, trial: trial.clone(), id, hung: None };
        let mut undo = Undo::begin(work.path(), &[], &machine).expect("begins");
        undo.record(Entry::Tree { path: trial, id: Some(id), hung: None }).expect("records");
        undo.record(Entry::Scratch { path: disk.clone(), device: (8, 1), uuid: None }).expect("records");
        let removal = undo.record(own.clone()).expect("records");
        std::mem::forget(undo);

        Undo::begin(work.path(), &[], &machine).map(drop).expect("who uses other disks goes on");
        let refused = Undo::begin(work.path(), slice::from_ref(&disk), &machine).map(drop);
        assert!(matches!(refused, Err(JournalError::Leftovers { count: 3, .. })));
        let mut undo = Undo::open(work.path(), &machine).expect("opens");
        let on_disk = Entry::OwnOnDisk { disk: disk.clone(), device: (8, 1), own: Box::new(own) };
        assert_eq!(undo.entries().next_back(), Some(&on_disk));
        let another = [PathBuf::from("/dev/sdy")];
        for others in [&another[..], &[]] {
            let error = undo.undo_by(removal, By::Later(others)).expect_err("it is not permitted");
            assert!(error.words.contains("fstone clean --allow-destroy-data /dev/sdz"), "{error}");
            assert!(!directory.join("ran").exists());
        }
        let mounted = BlockFacts { mounted_at: vec!["/mnt".into()], ..attached.clone() };
        let renamed = BlockFacts { number: (8, 2), ..attached.clone() };
        for (facts, words) in [(renamed, "another device has its name"), (mounted, "in use; unmount it")] {
            devices.set_facts(&disk, facts);
            let error = undo.undo_by(removal, By::Later(slice::from_ref(&disk))).expect_err("it is somebody's");
            assert!(error.words.contains(words) && !directory.join("ran").exists(), "{error}");
        }
        devices.set_facts(&disk, attached);
        undo.undo_by(removal, By::Later(&[disk])).expect("permitted");
        assert!(directory.join("ran").exists());
    }

    #[test]
    fn an_old_boots_journal_does_not_pass_its_boot_on() {
        let work = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let machine = Machine::fake();
        let zram = || Entry::Zram { index: 3, size_bytes: 4096 };
        let lines = [boot("an earlier boot", holder::machine()), Line::Made { id: 0, entry: zram(), replaces: None }];
        std::fs::write(work.path().join(JOURNAL_NAME), written(&lines)).expect("written");
        let mut undo = Undo::begin(work.path(), &[], &machine).expect("the reboot undid it");
        undo.record(zram()).expect("records");
        assert_eq!(Undo::open(work.path(), &machine).expect("opens").entries().count(), 1);
    }

    #[test]
    fn a_dropped_journal_undoes_and_a_reopened_one_remembers() {
        let work = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let machine = Machine::fake();
        let made = work.path().join("fstone-load-1");
        let mut undo = Undo::begin(work.path(), &[], &machine).expect("begins");
        undo.record(directory(&made.to_string_lossy())).expect("records");
        std::fs::create_dir(&made).expect("made");
        assert_eq!(Undo::open(work.path(), &machine).expect("opens").entries().count(), 1);
        assert!(matches!(Undo::begin(work.path(), &[], &machine), Err(JournalError::Leftovers { count: 1, .. })));
        assert!(made.exists(), "another's entries are not undone by a drop");
        drop(undo);
        assert!(!made.exists());
        assert!(!work.path().join(JOURNAL_NAME).exists());
    }
}

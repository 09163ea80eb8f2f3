//! Whose a directory is.
//!
//! Building a fileset removes files by their names, and people call theirs "file7", too. So a directory is taken only
//! when nothing is in it, and then carries a mark: a file that says which names belong to fstone in there. What carries
//! the mark may be built anew later; whatever else is found is refused and listed.

use super::Layout;
use super::beneath::{Failure, Held};
use crate::options::Ownership;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Error, Read, Write};

pub(crate) const MARK: &str = ".fstone";
const HEADER: &str =
    "This directory is fstone's: loads make, overwrite and remove what is called as below, with a number behind it.\n";
/// More than any mark has.
const LARGEST: u64 = 1 << 20;
const MADE_BY_MKFS: [&str; 2] = ["lost+found", ".nilfs"];

#[derive(Debug)]
pub(super) enum Refusal {
    InTheWay(Vec<String>),
    Failed(Failure),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

pub(super) fn claim(held: Held<'_>, layout: &Layout, ownership: Ownership) -> Result<(), Refusal> {
    if ownership == Ownership::Own || ownership.is_shared_directory() {
        return Ok(());
    }
    let mark = read_mark(held)?;
    let claim = layout.claim();
    if mark.as_ref().is_some_and(|mark| mark.lines().any(|line| line == claim)) {
        return Ok(());
    }
    // A marked directory has other filesets in it, whose names are not this one's.
    let mut names = others(held, layout, mark.is_some())?;
    if !names.is_empty() && !ownership.overwrites() {
        names.sort();
        return Err(Refusal::InTheWay(names.into_iter().map(|(_, name)| name).collect()));
    }
    Ok(add(held, mark.is_none(), &claim)?)
}

fn open_mark(held: Held<'_>, flags: OFlags) -> Result<File, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(held.directory, MARK, flags, Mode::from_raw_mode(0o666)).map(File::from)
}

fn failed(held: Held<'_>, call: &'static str) -> impl Fn(Errno) -> Failure {
    move |errno| (call, held.path.join(MARK), errno)
}

fn number(error: &Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn read_mark(held: Held<'_>) -> Result<Option<String>, Failure> {
    let file = match open_mark(held, OFlags::RDONLY) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(failed(held, "open")(errno)),
    };
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(|error| failed(held, "read")(number(&error)))?;
    // A file of this name that says something else is somebody's.
    Ok(text.starts_with(HEADER).then_some(text))
}

/// What is in a directory, those first that the layout would replace; `only` these where it is marked.
fn others(held: Held<'_>, layout: &Layout, only: bool) -> Result<Vec<(bool, String)>, Failure> {
    let mut names = Vec::new();
    for entry in held.entries()? {
        let (name, kind) = entry?;
        let shown = name.to_string_lossy().into_owned();
        let ours = layout.is_ours(name.to_bytes(), kind.is_dir());
        let passes = if only { !ours } else { MADE_BY_MKFS.contains(&shown.as_str()) };
        if !passes {
            names.push((!ours, shown));
        }
    }
    Ok(names)
}

fn add(held: Held<'_>, first: bool, claim: &str) -> Result<(), Failure> {
    let how = if first { OFlags::CREATE | OFlags::EXCL } else { OFlags::APPEND };
    let mut file = open_mark(held, OFlags::WRONLY | how).map_err(failed(held, "make"))?;
    let text = if first { format!("{HEADER}{claim}\n") } else { format!("{claim}\n") };
    file.write_all(text.as_bytes()).map_err(|error| failed(held, "write")(number(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fileset::beneath::open_below;
    use crate::tests_support::fileset;
    use rustix::fd::AsFd;
    use std::path::Path;

    fn held<T>(directory: &Path, with: impl FnOnce(Held<'_>) -> T) -> T {
        let opened = open_below(directory, "").expect("it is there");
        with(Held { directory: opened.as_fd(), path: directory })
    }

    fn claim(directory: &Path, layout: &Layout, ownership: Ownership) -> Result<(), Refusal> {
        held(directory, |held| super::claim(held, layout, ownership))
    }

    fn is_claimed(directory: &Path, layout: &Layout) -> bool {
        let mark = held(directory, read_mark).expect("readable");
        mark.is_some_and(|mark| mark.lines().any(|line| line == layout.claim()))
    }

    fn names(refusal: Result<(), Refusal>) -> Vec<String> {
        match refusal {
            Err(Refusal::InTheWay(names)) => names,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_empty_directory_is_taken_and_known_again() {
        let place = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(place.path().join("lost+found")).expect("writable");
        let layout = Layout::new(&fileset(1));
        assert!(!is_claimed(place.path(), &layout));
        claim(place.path(), &layout, Ownership::Marked).expect("it is empty");
        assert!(is_claimed(place.path(), &layout));
        std::fs::write(place.path().join("file1"), b"").expect("writable");
        std::fs::write(place.path().join("notes"), b"").expect("writable");
        claim(place.path(), &layout, Ownership::Marked).expect("it is fstone's");
        // Another fileset's names are its own only when nobody has used them.
        let mut other = fileset(1);
        other.naming.file_prefix = "image".into();
        std::fs::write(place.path().join("image3"), b"").expect("writable");
        assert_eq!(names(claim(place.path(), &Layout::new(&other), Ownership::Marked)), ["image3"]);
        std::fs::remove_file(place.path().join("image3")).expect("it is there");
        claim(place.path(), &Layout::new(&other), Ownership::Marked).expect("nothing is in the way");
        assert!(is_claimed(place.path(), &layout));
        assert!(is_claimed(place.path(), &Layout::new(&other)));
    }

    #[test]
    fn what_is_there_is_listed_and_stays() {
        let place = tempfile::tempdir().expect("a temporary directory");
        for name in ["file7", "a", "file0042"] {
            std::fs::write(place.path().join(name), b"mine").expect("writable");
        }
        let layout = Layout::new(&fileset(1));
        assert_eq!(names(claim(place.path(), &layout, Ownership::Marked)), ["file7", "a", "file0042"]);
        claim(place.path(), &layout, Ownership::Own).expect("nobody asks");
        assert!(!place.path().join(MARK).exists());
        claim(place.path(), &layout, Ownership::Overwrite).expect("it was said");
        assert!(is_claimed(place.path(), &layout));
        // A mark that somebody else wrote is none.
        std::fs::write(place.path().join(MARK), format!("{}\n", layout.claim())).expect("writable");
        assert!(!is_claimed(place.path(), &layout));
    }
}

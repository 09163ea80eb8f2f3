//! Whose a directory is.
//!
//! Building a fileset removes files by their names, and people call theirs "file7", too. So a directory is taken only
//! when nothing is in it, and then carries a mark: a file that says which names belong to fstone in there. What carries
//! the mark may be built anew later; whatever else is found is refused and listed.

use super::Layout;
use crate::options::Ownership;
use std::fs::OpenOptions;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The mark's name.
pub(crate) const MARK: &str = ".fstone";
/// What it begins with.
const HEADER: &str =
    "This directory is fstone's: loads make, overwrite and remove what is called as below, with a number behind it.\n";
/// More than any mark has.
const LARGEST: u64 = 1 << 20;
/// What filesystems make themselves.
const MADE_BY_MKFS: [&str; 2] = ["lost+found", ".nilfs"];

/// Why a directory cannot be had.
#[derive(Debug)]
pub(super) enum Refusal {
    /// This is in it.
    InTheWay(Vec<String>),
    /// It cannot be read or marked.
    Failed(&'static str, Error),
}

/// Takes a directory for the files of a layout.
pub(super) fn claim(directory: &Path, layout: &Layout, ownership: Ownership) -> std::result::Result<(), Refusal> {
    if ownership == Ownership::Own || ownership.is_as_written() {
        return Ok(());
    }
    let mark = read_mark(directory).map_err(|error| Refusal::Failed("open the mark of", error))?;
    let claim = layout.claim();
    if mark.as_ref().is_some_and(|mark| mark.lines().any(|line| line == claim)) {
        return Ok(());
    }
    // A marked directory has other filesets in it, whose names are not this one's.
    let mut names = others(directory, layout, mark.is_some()).map_err(|error| Refusal::Failed("read", error))?;
    if !names.is_empty() && ownership == Ownership::Marked {
        names.sort();
        return Err(Refusal::InTheWay(names.into_iter().map(|(_, name)| name).collect()));
    }
    add(directory, mark.is_none(), &claim).map_err(|error| Refusal::Failed("write the mark of", error))
}

fn read_mark(directory: &Path) -> Result<Option<String>> {
    let opened =
        OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(directory.join(MARK));
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text)?;
    // A file of this name that says something else is somebody's.
    Ok(text.starts_with(HEADER).then_some(text))
}

/// What is in a directory, those first that the layout would replace; `only` these where it is marked.
fn others(directory: &Path, layout: &Layout, only: bool) -> Result<Vec<(bool, String)>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let shown = name.to_string_lossy().into_owned();
        let ours = layout.is_ours(name.as_bytes(), entry.file_type()?.is_dir());
        let passes = if only { !ours } else { MADE_BY_MKFS.contains(&shown.as_str()) };
        if !passes {
            names.push((!ours, shown));
        }
    }
    Ok(names)
}

fn add(directory: &Path, first: bool, claim: &str) -> Result<()> {
    let mut options = OpenOptions::new();
    options.custom_flags(libc::O_NOFOLLOW);
    if first {
        options.write(true).create_new(true);
    } else {
        options.append(true);
    }
    let mut file = options.open(directory.join(MARK))?;
    file.write_all(if first { format!("{HEADER}{claim}\n") } else { format!("{claim}\n") }.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests_support::fileset;

    fn is_claimed(directory: &Path, layout: &Layout) -> bool {
        let mark = read_mark(directory).expect("readable");
        mark.is_some_and(|mark| mark.lines().any(|line| line == layout.claim()))
    }

    fn names(refusal: std::result::Result<(), Refusal>) -> Vec<String> {
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

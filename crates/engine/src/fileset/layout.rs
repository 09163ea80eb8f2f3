//! How files and directories are called and where they are. All follows from a file's number: nothing is stored.

use super::path::{PathBuffer, Prefix};
use fstone_model::workload::{Directories, Fileset};

/// Where a fileset's files are, relative to its directory.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    file_prefix: Prefix,
    directory_prefix: Vec<u8>,
    leaf_prefix: Option<Vec<u8>>,
    directories: Directories,
    /// Directories that hold files.
    holders: u64,
    has_leaves: bool,
    /// What the first file's name has: where directories above hold no files, it counts those that they would hold, as in mdtest.
    first_number: u64,
}

impl Layout {
    pub(crate) fn new(spec: &Fileset) -> Self {
        let holders = match spec.directories {
            Directories::Flat { count, root_too } => (count + u64::from(root_too)).max(1),
            Directories::Tree { width, depth } => u64::from(width.max(1)).saturating_pow(depth).max(1),
            Directories::Filled { width, depth, leaves_only, .. } => {
                let (all, above) = Directories::of_tree(width, depth);
                if leaves_only { all - above } else { all }
            }
        };
        Self {
            file_prefix: Prefix::new(&spec.naming.file_prefix, spec.naming.exact),
            directory_prefix: spec.naming.directory_prefix.clone().into_bytes(),
            leaf_prefix: spec.naming.leaf_prefix.clone().map(String::into_bytes),
            directories: spec.directories,
            holders,
            has_leaves: spec.leaf_directories > 0,
            first_number: match spec.directories {
                Directories::Filled { width, depth, each, leaves_only: true } => {
                    Directories::of_tree(width, depth).1.saturating_mul(each).min(u64::MAX >> 1)
                }
                _ => 0,
            },
        }
    }

    pub(crate) fn holders(&self) -> u64 {
        self.holders
    }

    /// Subdirectories of the fileset's own directory; more may be made beside them.
    pub(crate) fn top_directories(&self) -> u64 {
        match self.directories {
            Directories::Flat { count, .. } => count,
            Directories::Tree { depth: 0, .. } => 0,
            Directories::Tree { width, .. } => u64::from(width.max(1)),
            Directories::Filled { .. } => 1,
        }
    }

    /// The directory that holds a file. Scattered by a fixed function of the file's number, so that a fileset built
    /// earlier, with another seed, is laid out the same; or one directory is filled after the other.
    #[inline]
    pub(crate) fn holder_of(&self, file: u32) -> u64 {
        if self.holders == 1 {
            return 0;
        }
        if let Directories::Filled { each, .. } = self.directories {
            return (u64::from(file) / each.max(1)).min(self.holders - 1);
        }
        ((u128::from(crate::random::scatter(u64::from(file))) * u128::from(self.holders)) >> 64) as u64
    }

    /// Which file, or leaf directory, is made or removed after so many others: in a filled tree one directory of the tree after the other, depth
    /// first, as mdtest does it.
    #[inline]
    pub(crate) fn depth_first(&self, turn: u64) -> u64 {
        if self.is_deep() { self.turn_in_tree(turn) } else { turn }
    }

    /// Whether that is not the order of their numbers.
    pub(crate) const fn is_deep(&self) -> bool {
        matches!(self.directories, Directories::Filled { width: 2.., depth: 2.., leaves_only: false, .. })
    }

    fn turn_in_tree(&self, turn: u64) -> u64 {
        let Directories::Filled { width, mut depth, each, .. } = self.directories else { return turn };
        let (mut left, mut directory) = (turn / each.max(1), 0);
        if left >= self.holders {
            return turn;
        }
        while left > 0 {
            depth -= 1;
            let of_child = Directories::of_tree(width, depth).0;
            let child = (left - 1) / of_child;
            directory = directory * u64::from(width) + 1 + child;
            left = (left - 1) % of_child;
        }
        directory * each.max(1) + turn % each.max(1)
    }

    /// Appends the path of a directory that holds files, with a slash behind it; nothing for the fileset's own.
    #[inline]
    pub(crate) fn push_holder(&self, path: &mut PathBuffer, holder: u64) {
        match self.directories {
            Directories::Flat { count, .. } => {
                if holder < count {
                    path.text(&self.directory_prefix).number(holder).text(b"/");
                }
            }
            Directories::Filled { width, depth, leaves_only, .. } => {
                let above = if leaves_only { Directories::of_tree(width, depth).1 } else { 0 };
                self.push_of_tree(path, above + holder, u64::from(width.max(1)));
            }
            Directories::Tree { width, depth } => {
                let width = u64::from(width.max(1));
                let mut divisor = width.saturating_pow(depth.saturating_sub(1));
                for _ in 0..depth {
                    path.text(&self.directory_prefix).number(holder / divisor % width).text(b"/");
                    divisor = (divisor / width).max(1);
                }
            }
        }
    }

    /// The path of a directory of a filled tree: those above it first.
    fn push_of_tree(&self, path: &mut PathBuffer, number: u64, width: u64) {
        let mut push = |number: u64| {
            path.text(&self.directory_prefix).number(number).text(b"/");
        };
        if width == 1 {
            return (0..=number).for_each(push);
        }
        // With two or more in each, 64 levels are all there are numbers for.
        let mut above = [0; 64];
        let mut levels = 0;
        let mut directory = number;
        while directory > 0 && levels < above.len() {
            above[levels] = directory;
            levels += 1;
            directory = (directory - 1) / width;
        }
        push(0);
        above[..levels].iter().rev().for_each(|number| push(*number));
    }

    #[inline]
    pub(crate) fn file(&self, path: &mut PathBuffer, file: u32, renamed: bool) {
        path.clear();
        self.push_holder(path, self.holder_of(file));
        path.name(&self.file_prefix, self.first_number + u64::from(file));
        if renamed {
            path.text(b".r");
        }
    }

    /// The path of a link to a file: hard (`.l`) or symbolic (`.s`), in the file's directory.
    pub(crate) fn link(&self, path: &mut PathBuffer, file: u32, symbolic: bool, number: u64) {
        self.file(path, file, false);
        path.text(if symbolic { b".s" } else { b".l" }).number(number);
    }

    /// What a symbolic link beside the file holds: its bare name.
    pub(crate) fn bare_name(&self, path: &mut PathBuffer, file: u32, renamed: bool) {
        path.clear().name(&self.file_prefix, self.first_number + u64::from(file));
        if renamed {
            path.text(b".r");
        }
    }

    pub(crate) fn made_directory(&self, path: &mut PathBuffer, number: u64) {
        path.clear().text(&self.directory_prefix).number(number);
    }

    /// The path of a leaf directory, in one of the directories that hold files. Where those have directories beside the files, its
    /// number is above theirs, unless leaf directories have a prefix of their own.
    pub(crate) fn leaf(&self, path: &mut PathBuffer, leaf: u32, renamed: bool) {
        path.clear();
        self.push_holder(path, self.holder_of(leaf));
        match &self.leaf_prefix {
            Some(prefix) => path.text(prefix).number(self.first_number + u64::from(leaf)),
            None => path.text(&self.directory_prefix).number(self.top_directories() + u64::from(leaf)),
        };
        if renamed {
            path.text(b".r");
        }
    }

    /// The path of a holder to be opened: "." for the fileset's own directory.
    pub(crate) fn holder(&self, path: &mut PathBuffer, holder: u64) {
        path.clear();
        self.push_holder(path, holder);
        path.text(b".");
    }

    /// Every directory, parents first, without the trailing slash.
    pub(crate) fn all_directories(&self) -> Box<dyn Iterator<Item = String> + '_> {
        let name = |number: u64| format!("{}{number}", String::from_utf8_lossy(&self.directory_prefix));
        match self.directories {
            Directories::Flat { count, .. } => Box::new((0..count).map(name)),
            Directories::Filled { width, depth, .. } => {
                let mut path = PathBuffer::default();
                Box::new((0..Directories::of_tree(width, depth).0).map(move |number| {
                    path.clear();
                    self.push_of_tree(&mut path, number, u64::from(width.max(1)));
                    path.shown().trim_end_matches('/').to_owned()
                }))
            }
            Directories::Tree { width, depth } => {
                let width = u64::from(width.max(1));
                Box::new((1..=depth).flat_map(move |level| {
                    (0..width.saturating_pow(level)).map(move |index| {
                        let parts: Vec<String> =
                            (0..level).rev().map(|up| name(index / width.saturating_pow(up) % width)).collect();
                        parts.join("/")
                    })
                }))
            }
        }
    }

    pub(crate) fn claim(&self) -> String {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let exactly = if self.file_prefix.is_exact() { "exactly " } else { "" };
        let leaves = self.leaf_prefix.as_deref().map_or_else(String::new, |prefix| format!(" and {:?}", text(prefix)));
        let (files, directories) = (text(self.file_prefix.text()), text(&self.directory_prefix));
        format!("files {exactly}{files:?} directories {directories:?}{leaves}")
    }

    /// Whether a directory entry's name is one that this fileset gives: a prefix and a number as fstone writes it, and
    /// behind that ".r" for a renamed file, or ".l" or ".s" and a number for a link.
    pub(crate) fn is_ours(&self, name: &[u8], directory: bool) -> bool {
        if directory {
            // A leaf directory may have been renamed.
            let number = |rest: &[u8]| is_number(rest.strip_suffix(b".r").unwrap_or(rest), false);
            let of = |prefix: &[u8]| name.strip_prefix(prefix);
            let leaves = self.leaf_prefix.as_deref().unwrap_or(&self.directory_prefix);
            return of(&self.directory_prefix).is_some_and(|rest| is_number(rest, false))
                || (self.has_leaves && of(leaves).is_some_and(number));
        }
        let exact = self.file_prefix.is_exact();
        let rest = name.strip_prefix(self.file_prefix.text());
        rest.is_some_and(|rest| if exact { is_tail(rest) } else { is_number(rest, true) })
    }

    /// The number of the file with this name, or with this second name; `None` for links and what is not ours.
    pub(crate) fn number_of(&self, name: &[u8]) -> Option<u32> {
        let rest = name.strip_prefix(self.file_prefix.text())?;
        if self.file_prefix.is_exact() {
            return matches!(rest, b"" | b".r").then_some(0);
        }
        let digits = rest.strip_suffix(b".r").unwrap_or(rest);
        let digits = std::str::from_utf8(digits).ok().filter(|digits| is_number(digits.as_bytes(), false))?;
        u32::try_from(digits.parse::<u64>().ok()?.checked_sub(self.first_number)?).ok()
    }
}

/// A number without leading zeros, and if `tailed` a tail as of links and renamed files behind it.
fn is_number(text: &[u8], tailed: bool) -> bool {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, tail) = text.split_at(digits);
    let written = digits == 1 || (digits > 1 && number[0] != b'0');
    written && (tail.is_empty() || (tailed && is_tail(tail)))
}

/// What stands behind a file's name: nothing, or what renamed files and links have.
fn is_tail(tail: &[u8]) -> bool {
    match tail {
        [] | b".r" => true,
        [b'.', b'l' | b's', number @ ..] => is_number(number, false),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests_support::fileset;
    use std::collections::HashSet;

    fn path(layout: &Layout, file: u32) -> String {
        let mut path = PathBuffer::default();
        layout.file(&mut path, file, false);
        path.shown()
    }

    #[test]
    fn flat_directories_fill_evenly() {
        let mut spec = fileset(10);
        spec.directories = Directories::Flat { count: 9, root_too: true };
        let layout = Layout::new(&spec);
        let mut counts = [0u32; 10];
        for file in 0..10_000 {
            counts[layout.holder_of(file) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        let root = (0..1000).find(|file| layout.holder_of(*file) == 9).expect("some");
        assert_eq!(path(&layout, root), format!("file{root}"));
        let inside = (0..1000).find(|file| layout.holder_of(*file) == 4).expect("some");
        assert_eq!(path(&layout, inside), format!("dir4/file{inside}"));
        assert_eq!(layout.all_directories().count(), 9);
    }

    #[test]
    fn trees_hold_files_in_their_leaves() {
        let mut spec = fileset(10);
        spec.directories = Directories::Tree { width: 3, depth: 2 };
        let layout = Layout::new(&spec);
        let all: Vec<String> = layout.all_directories().collect();
        assert_eq!(all.len(), 3 + 9);
        assert_eq!(all[..4], ["dir0", "dir1", "dir2", "dir0/dir0"]);
        let leaves: HashSet<&str> = all[3..].iter().map(String::as_str).collect();
        for file in 0..1000 {
            let path = path(&layout, file);
            let (directory, name) = path.rsplit_once('/').expect("in a directory");
            assert!(leaves.contains(directory), "{path}");
            assert_eq!(name, format!("file{file}"));
        }
    }

    #[test]
    fn a_filled_tree_has_its_files_in_the_order_of_its_directories() {
        let mut spec = fileset(14);
        spec.naming.directory_prefix = "t.".into();
        spec.naming.leaf_prefix = Some("d.".into());
        spec.leaf_directories = 14;
        for (leaves_only, first, last) in
            [(false, "t.0/file0", "t.0/t.2/t.6/file13"), (true, "t.0/t.1/t.3/file6", "t.0/t.2/t.6/file19")]
        {
            spec.directories = Directories::Filled { width: 2, depth: 2, each: 2, leaves_only };
            let layout = Layout::new(&spec);
            let all: Vec<String> = layout.all_directories().collect();
            assert_eq!(all, ["t.0", "t.0/t.1", "t.0/t.2", "t.0/t.1/t.3", "t.0/t.1/t.4", "t.0/t.2/t.5", "t.0/t.2/t.6"]);
            assert_eq!((path(&layout, 0), path(&layout, 13)), (first.into(), last.into()));
            for file in 0..14 {
                let path = path(&layout, file);
                let (directory, _) = path.rsplit_once('/').expect("in a directory");
                let place = all.iter().position(|known| known == directory).expect("one of them");
                assert_eq!(place, if leaves_only { (3 + file as usize / 2).min(6) } else { file as usize / 2 });
            }
            let turns: Vec<u64> = (0..15).map(|turn| layout.depth_first(turn)).collect();
            let depth_first = [0, 1, 2, 3, 6, 7, 8, 9, 4, 5, 10, 11, 12, 13, 14];
            assert_eq!(turns, if leaves_only { (0..15).collect::<Vec<_>>() } else { depth_first.into() });
            let mut leaf = PathBuffer::default();
            layout.leaf(&mut leaf, 3, true);
            let (name, number) = if leaves_only { ("/d.9.r", b"file9") } else { ("/d.3.r", b"file3") };
            assert!(leaf.shown().ends_with(name), "{}", leaf.shown());
            assert_eq!((layout.number_of(number), layout.number_of(b"file1")), (Some(3), (!leaves_only).then_some(1)));
            for name in ["t.0", "d.3", "d.3.r"] {
                assert!(layout.is_ours(name.as_bytes(), true), "{name}");
            }
            for name in ["t.0.r", "d.", "d.3.l0", "d.03"] {
                assert!(!layout.is_ours(name.as_bytes(), true), "{name}");
            }
        }
    }

    #[test]
    fn an_exact_name_is_the_whole_name() {
        let mut spec = fileset(1);
        spec.naming.file_prefix = "database.db".into();
        spec.naming.exact = true;
        let layout = Layout::new(&spec);
        assert_eq!(path(&layout, 0), "database.db");
        for name in ["database.db", "database.db.r", "database.db.l3"] {
            assert!(layout.is_ours(name.as_bytes(), false), "{name}");
        }
        for name in ["database.db0", "database", "database.db.bak", "database.db-wal"] {
            assert!(!layout.is_ours(name.as_bytes(), false), "{name}");
        }
        assert_eq!([&b"database.db"[..], b"database.db1"].map(|name| layout.number_of(name)), [Some(0), None]);
    }

    #[test]
    fn only_own_names_are_recognised() {
        let layout = Layout::new(&fileset(1));
        for name in ["file0", "file12", "file3.r", "file3.l17", "file3.s0"] {
            assert!(layout.is_ours(name.as_bytes(), false), "{name}");
        }
        for name in [
            "file",
            "file.txt",
            "file1.txt",
            "files",
            "file1.rs",
            "file1.bak",
            "1",
            "dir1",
            "file0042",
            "file00",
            "file1.r2",
            "file1.l",
            "file1.l01",
        ] {
            assert!(!layout.is_ours(name.as_bytes(), false), "{name}");
        }
        assert_eq!(layout.number_of(b"file12"), Some(12));
        assert_eq!(layout.number_of(b"file12.r"), Some(12));
        for name in ["file12.l0", "file", "file+1", "other1", "file99999999999", "file012"] {
            assert_eq!(layout.number_of(name.as_bytes()), None, "{name}");
        }
        assert!(layout.is_ours(b"dir7", true));
        assert!(!layout.is_ours(b"dir7.r", true));
        assert!(!layout.is_ours(b"file7", true));
    }
}

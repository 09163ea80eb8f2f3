//! Which filesets would take each other's files for their own.

use super::Fileset;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The one file of a fileset.
    ExactFile,
    File,
    /// Directories beside one file, which are never made.
    UnmadeDirectory,
    Directory,
}

/// Where a name is, and the name itself, before and from its last number on. Names that meet differ in digits at the end alone, so
/// that they stand together in a sorted table.
type Key<'f> = (Kind, &'f str, &'f str, &'f str);

/// The names of filesets, each with the first fileset that has it.
#[derive(Default)]
struct Names<'f>(BTreeMap<Key<'f>, usize>);

impl<'f> Names<'f> {
    fn equal(&self, key: Key<'f>) -> Option<usize> {
        self.0.get(&key).copied()
    }

    /// One that begins with the name, and has only digits behind it.
    fn longer(&self, key: Key<'f>) -> Option<usize> {
        let ((kind, directory, stem, digits), index) = self.0.range(key..).next()?;
        ((*kind, *directory, *stem) == (key.0, key.1, key.2) && digits.starts_with(key.3)).then_some(*index)
    }

    /// One that the name begins with, when it has only digits behind that.
    fn shorter(&self, (kind, directory, stem, digits): Key<'f>) -> Option<usize> {
        (0..=digits.len()).filter_map(|length| self.equal((kind, directory, stem, &digits[..length]))).min()
    }

    fn either(&self, key: Key<'f>) -> Option<usize> {
        self.longer(key).into_iter().chain(self.shorter(key)).min()
    }

    fn clash(&self, fileset: &'f Fileset) -> Option<usize> {
        let naming = &fileset.naming;
        let key = |kind, prefix| key(fileset, kind, prefix);
        let of = |kind| key(kind, &naming.file_prefix);
        let files = if naming.exact {
            [self.equal(of(Kind::ExactFile)), self.shorter(of(Kind::File))]
        } else {
            [self.longer(of(Kind::ExactFile)), self.either(of(Kind::File))]
        };
        let directories = [Kind::UnmadeDirectory, Kind::Directory].map(|kind| self.either(of(kind)));
        let own = directory_prefixes(fileset).flat_map(|prefix| {
            [Kind::ExactFile, Kind::File]
                .into_iter()
                .chain((!naming.exact).then_some(Kind::Directory))
                .filter_map(move |kind| self.either(key(kind, prefix)))
        });
        files.into_iter().chain(directories).flatten().chain(own).min()
    }

    fn add(&mut self, index: usize, fileset: &'f Fileset) {
        let (file, directory) = match fileset.naming.exact {
            true => (Kind::ExactFile, Kind::UnmadeDirectory),
            false => (Kind::File, Kind::Directory),
        };
        self.0.entry(key(fileset, file, &fileset.naming.file_prefix)).or_insert(index);
        for prefix in directory_prefixes(fileset) {
            self.0.entry(key(fileset, directory, prefix)).or_insert(index);
        }
    }
}

fn key<'f>(fileset: &'f Fileset, kind: Kind, prefix: &'f str) -> Key<'f> {
    let stem = prefix.trim_end_matches(|last: char| last.is_ascii_digit());
    (kind, &fileset.directory, stem, &prefix[stem.len()..])
}

fn directory_prefixes(fileset: &Fileset) -> impl Iterator<Item = &String> {
    std::iter::once(&fileset.naming.directory_prefix).chain(&fileset.naming.leaf_prefix)
}

/// Filesets whose names can clash with those of one before them in the same directory, by their places: such a one, and the fileset. None
/// is compared with all others: a load can have ten thousand.
pub fn name_clashes(filesets: &[Fileset]) -> impl Iterator<Item = (usize, usize)> {
    let mut before = Names::default();
    filesets.iter().enumerate().filter_map(move |(index, fileset)| {
        let clash = before.clash(fileset);
        before.add(index, fileset);
        clash.map(|first| (first, index))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Amount, Naming, SizeDistribution};
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn prefix() -> impl Strategy<Value = String> {
        prop_oneof![Just("dir".to_owned()), "[ab]{0,2}[01]{0,3}", "[a1é]{0,3}"]
    }

    prop_compose! {
        fn fileset()(
            directory in "x?1?",
            file_prefix in prefix(),
            directory_prefix in prefix(),
            leaf_prefix in prop::option::of(prefix()),
            exact in any::<bool>(),
        ) -> Fileset {
            let mut fileset = Fileset::new("f", Amount::Files(1), SizeDistribution::Fixed(1));
            fileset.directory = directory;
            fileset.naming = Naming { file_prefix, directory_prefix, exact, leaf_prefix };
            fileset
        }
    }

    /// Whether their names can clash, in the same directory: what [`name_clashes`] has to find.
    fn share_names(one: &Fileset, other: &Fileset) -> bool {
        // "file" and a number is "file1" and a number, too.
        let meet = |one: &str, other: &str| {
            let rest = one.strip_prefix(other).or_else(|| other.strip_prefix(one));
            rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let directory_is_same = one.directory == other.directory;
        let (one, another) = (&one.naming, &other.naming);
        let files_meet = match (one.exact, another.exact) {
            (true, true) => one.file_prefix == another.file_prefix,
            (true, false) => {
                one.file_prefix.starts_with(&another.file_prefix) && meet(&one.file_prefix, &another.file_prefix)
            }
            (false, true) => {
                another.file_prefix.starts_with(&one.file_prefix) && meet(&one.file_prefix, &another.file_prefix)
            }
            (false, false) => meet(&one.file_prefix, &another.file_prefix),
        };
        let directories_of = |naming: &'_ Naming| -> Vec<String> {
            std::iter::once(naming.directory_prefix.clone()).chain(naming.leaf_prefix.clone()).collect()
        };
        let (ours, theirs) = (directories_of(one), directories_of(another));
        let mixed = theirs.iter().any(|prefix| meet(&one.file_prefix, prefix))
            || ours.iter().any(|prefix| meet(prefix, &another.file_prefix));
        // A fileset without directories of its own makes none by that name.
        let directories =
            ours.iter().any(|ours| theirs.iter().any(|theirs| meet(ours, theirs))) && !(one.exact || another.exact);
        directory_is_same && (files_meet || mixed || directories)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn the_table_finds_what_comparing_all_finds(filesets in prop::collection::vec(fileset(), 0..7)) {
            let found: HashMap<usize, usize> = name_clashes(&filesets).map(|(first, later)| (later, first)).collect();
            for (later, fileset) in filesets.iter().enumerate() {
                let clashes = |first: usize| share_names(fileset, &filesets[first]);
                match found.get(&later) {
                    Some(first) => prop_assert!(*first < later && clashes(*first)),
                    None => prop_assert!(!(0..later).any(clashes)),
                }
            }
        }
    }
}

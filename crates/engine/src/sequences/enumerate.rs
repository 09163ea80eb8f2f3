//! Which sequences there are.

use super::call::{Call, Sequence};
use crate::random::Random;
use std::collections::{BTreeMap, BTreeSet};

/// Which names there are, as far as the list of sequences has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Names(BTreeMap<String, bool>);

/// What a tree begins with: path, and bytes of a file. See [`super::plant`].
pub(super) const DIRECTORIES: [&str; 3] = ["A", "B", "C"];
pub(super) const FILES: [(&str, u64); 5] = [("a", 16 << 10), ("b", 5000), ("s", 1000), ("h", 4096), ("A/a", 16 << 10)];
pub(super) const LINK: (&str, &str) = ("h", "A/h");

impl Names {
    fn planted() -> Self {
        let mut names: BTreeMap<String, bool> =
            DIRECTORIES.iter().map(|directory| ((*directory).to_owned(), true)).collect();
        names.extend(FILES.iter().map(|(file, _)| ((*file).to_owned(), false)));
        names.insert(LINK.1.to_owned(), false);
        Self(names)
    }

    fn is_file(&self, path: &str) -> bool {
        self.0.get(path) == Some(&false)
    }

    fn is_directory(&self, path: &str) -> bool {
        path == "." || self.0.get(path) == Some(&true)
    }

    fn is_empty_directory(&self, path: &str) -> bool {
        self.is_directory(path) && !self.0.keys().any(|name| name.starts_with(&format!("{path}/")))
    }

    fn is_free(&self, path: &str) -> bool {
        !self.0.contains_key(path) && self.is_directory(parent(path))
    }

    /// The names after a call; `None` where the call would fail.
    fn after(&self, call: &Call) -> Option<Self> {
        let mut names = self.clone();
        let fine = match call {
            Call::Create(path) => {
                let fine = self.is_free(path);
                names.0.insert(path.clone(), false);
                fine
            }
            Call::Mkdir(path) => {
                let fine = self.is_free(path);
                names.0.insert(path.clone(), true);
                fine
            }
            Call::Link(from, to) => {
                let fine = self.is_file(from) && self.is_free(to);
                names.0.insert(to.clone(), false);
                fine
            }
            Call::Rename(from, to) => return self.renamed(from, to),
            Call::Unlink(path) => {
                names.0.remove(path);
                self.is_file(path)
            }
            Call::Rmdir(path) => {
                names.0.remove(path);
                self.is_empty_directory(path)
            }
            Call::Truncate(path, _)
            | Call::Punch(path, ..)
            | Call::Allocate(path, ..)
            | Call::Reserve(path, ..)
            | Call::Zero(path, ..)
            | Call::Write(path, ..) => self.is_file(path),
            Call::SetAttribute(path, _)
            | Call::RemoveAttribute(path, _)
            | Call::Fsync(path)
            | Call::Fdatasync(path) => path == "." || self.0.contains_key(path),
            Call::Sync => true,
        };
        fine.then_some(names)
    }

    fn renamed(&self, from: &str, to: &str) -> Option<Self> {
        let mut names = self.clone();
        let directory = *self.0.get(from)?;
        let over = match self.0.get(to) {
            None => self.is_free(to),
            Some(true) => directory && self.is_empty_directory(to),
            Some(false) => !directory,
        };
        let inside = format!("{from}/");
        if !over || from == to || to.starts_with(&inside) {
            return None;
        }
        names.0.remove(from);
        names.0.insert(to.to_owned(), directory);
        let below: Vec<String> = self.0.keys().filter(|name| name.starts_with(&inside)).cloned().collect();
        for name in below {
            let moved = format!("{to}/{}", &name[inside.len()..]);
            if let Some(kind) = names.0.remove(&name) {
                names.0.insert(moved, kind);
            }
        }
        Some(names)
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(parent, _)| parent)
}

/// Every operation that is tried, with its arguments. They are chosen for what they are to filesystems: the same directory or
/// another, a new name or one in use, at block borders and across them, inside a file, at its end, and beyond it, files that
/// are stored in their inode and files that are not.
fn operations() -> Vec<Call> {
    let path = |text: &str| text.to_owned();
    let two = |make: fn(String, String) -> Call, pairs: &[(&str, &str)]| {
        pairs.iter().map(|(from, to)| make(path(from), path(to))).collect::<Vec<_>>()
    };
    let ranges = |make: fn(String, u64, u64) -> Call, ranges: &[(&str, u64, u64)]| {
        ranges.iter().map(|(file, offset, bytes)| make(path(file), *offset, *bytes)).collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    all.extend(["n", "A/n", "B/n"].map(|name| Call::Create(path(name))));
    all.extend(["N", "A/N"].map(|name| Call::Mkdir(path(name))));
    all.extend(two(Call::Link, &[("a", "n"), ("a", "A/n"), ("A/a", "A/n"), ("A/a", "n"), ("h", "B/h")]));
    let to_new = [("a", "n"), ("a", "A/n"), ("A/a", "A/n"), ("A/a", "n"), ("h", "n")];
    let over = [("a", "b"), ("a", "A/a"), ("A/a", "a"), ("b", "h")];
    let directories = [("A", "N"), ("A", "B/N"), ("A", "B"), ("B", "A/N")];
    all.extend(two(Call::Rename, &[&to_new[..], &over, &directories].concat()));
    all.extend(["a", "A/a", "h", "A/h"].map(|name| Call::Unlink(path(name))));
    all.push(Call::Rmdir(path("C")));
    let lengths = [("a", 0), ("a", 5000), ("a", 8192), ("a", 20_000), ("A/a", 0), ("s", 10), ("s", 6000)];
    all.extend(lengths.map(|(file, length)| Call::Truncate(path(file), length)));
    all.extend(ranges(Call::Punch, &[("a", 4096, 8192), ("a", 3000, 3000), ("a", 8192, 8192), ("A/a", 0, 4096)]));
    all.extend(ranges(Call::Allocate, &[("a", 16_384, 8192), ("a", 20_000, 5000), ("b", 0, 16_384)]));
    all.extend(ranges(Call::Reserve, &[("a", 16_384, 8192), ("b", 8192, 8192)]));
    all.extend(ranges(Call::Zero, &[("a", 4096, 8192), ("a", 3000, 3000)]));
    let inside = [("a", 0, 4096), ("a", 1000, 3000), ("a", 0, 16_384), ("s", 500, 100)];
    let longer =
        [("a", 16_384, 4096), ("a", 24_576, 4096), ("a", 15_000, 3000), ("A/a", 16_384, 100), ("s", 500, 3000)];
    all.extend(ranges(Call::Write, &[&inside[..], &longer].concat()));
    let attributes = [("a", "user.new"), ("a", "user.old"), ("A/a", "user.new"), ("A", "user.new")];
    all.extend(two(Call::SetAttribute, &attributes));
    all.extend(two(Call::RemoveAttribute, &[("a", "user.old")]));
    all
}

/// What may be asked to be durable after a call, given the names that are there then: what it was about, the directories whose
/// names it changed, everything.
fn persistence(call: &Call, names: &Names) -> Vec<Call> {
    let (about, changed): (Vec<&str>, Vec<&str>) = match call {
        Call::Create(path) | Call::Mkdir(path) | Call::Unlink(path) | Call::Rmdir(path) => {
            (vec![path], vec![parent(path)])
        }
        Call::Link(from, to) | Call::Rename(from, to) => (vec![from, to], vec![parent(from), parent(to)]),
        Call::Truncate(path, _)
        | Call::Punch(path, ..)
        | Call::Allocate(path, ..)
        | Call::Reserve(path, ..)
        | Call::Zero(path, ..)
        | Call::Write(path, ..)
        | Call::SetAttribute(path, _)
        | Call::RemoveAttribute(path, _) => (vec![path], Vec::new()),
        Call::Fsync(_) | Call::Fdatasync(_) | Call::Sync => (Vec::new(), Vec::new()),
    };
    let mut found = BTreeSet::from([Call::Sync]);
    for path in about {
        if names.is_file(path) {
            found.insert(Call::Fsync(path.to_owned()));
            found.insert(Call::Fdatasync(path.to_owned()));
        } else if names.is_directory(path) {
            found.insert(Call::Fsync(path.to_owned()));
        }
    }
    let directories = changed.into_iter().filter(|directory| names.is_directory(directory));
    found.extend(directories.map(|directory| Call::Fsync(directory.to_owned())));
    found.into_iter().collect()
}

/// Every sequence of one operation and one call that makes something durable.
pub fn one_operation() -> Vec<Sequence> {
    let planted = Names::planted();
    let mut sequences = Vec::new();
    for operation in operations() {
        let Some(names) = planted.after(&operation) else { continue };
        for persisted in persistence(&operation, &names) {
            sequences.push(Sequence::new(vec![operation.clone(), persisted]));
        }
    }
    sequences
}

/// So many different sequences of two operations, each followed by a call that makes something durable, or the first by none.
/// The same seed gives the same ones; fewer when there are not so many.
pub fn two_operations(count: usize, seed: u64) -> Vec<Sequence> {
    /// Draws without a new sequence after which there are considered to be no more.
    const VAIN: usize = 10_000;
    let (operations, mut random) = (operations(), Random::new(seed));
    let mut pick = |among: usize| random.below(among as u64) as usize;
    let (mut found, mut seen, mut vain) = (Vec::new(), BTreeSet::new(), 0);
    while found.len() < count && vain < VAIN {
        let (first, second) = (&operations[pick(operations.len())], &operations[pick(operations.len())]);
        let between = Names::planted().after(first);
        let after = between.as_ref().and_then(|names| names.after(second));
        let (Some(between), Some(after)) = (between, after) else {
            vain += 1;
            continue;
        };
        let mut calls = vec![first.clone()];
        let persisted = persistence(first, &between);
        // One time in so many, nothing.
        calls.extend(persisted.get(pick(persisted.len() + 1)).cloned());
        calls.push(second.clone());
        let persisted = persistence(second, &after);
        calls.push(persisted[pick(persisted.len())].clone());
        let sequence = Sequence::new(calls);
        if seen.insert(sequence.clone()) {
            found.push(sequence);
            vain = 0;
        } else {
            vain += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_can_be_carried_out_and_every_sequence_read_back() {
        for operation in operations() {
            assert!(Names::planted().after(&operation).is_some(), "{operation}");
        }
        let one = one_operation();
        assert!(one.len() > 150, "{}", one.len());
        assert_eq!(one.iter().collect::<BTreeSet<_>>().len(), one.len(), "none is there twice");
        let two = two_operations(300, 7);
        assert_eq!(two.len(), 300);
        assert_eq!(two, two_operations(300, 7));
        assert_ne!(two, two_operations(300, 8));
        for sequence in one.iter().chain(&two) {
            assert_eq!(sequence.to_string().parse::<Sequence>().as_ref(), Ok(sequence));
        }
        let words: BTreeSet<String> = one
            .iter()
            .flat_map(Sequence::calls)
            .map(|call| call.to_string().split(' ').next().unwrap().to_owned())
            .collect();
        assert_eq!(words.len(), 17, "every kind of call is among them: {words:?}");
    }

    #[test]
    fn names_follow_a_renamed_directory() {
        let rename = Call::Rename("A".into(), "B/N".into());
        let names = Names::planted().after(&rename).unwrap();
        assert!(names.is_file("B/N/a") && !names.0.contains_key("A/a"));
        assert!(names.after(&Call::Rename("B".into(), "B/N/x".into())).is_none());
    }
}

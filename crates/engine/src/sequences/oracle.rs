//! What has to be there after a power cut.
//!
//! Everything was durable before the first call. From then on, what a call made durable is as it was at that call, or as a
//! later call made it that may have begun by the time of the cut. Facts are about a file (by its inode number, which stays) or
//! about a name:
//!
//! | made durable by | facts |
//! |---|---|
//! | fdatasync of a file | its data and length |
//! | fsync of a file | the same, its names, link count and attributes |
//! | fsync or fdatasync of a directory | the names in it, that removed ones stay away, its own names and attributes |
//! | syncfs | all of this for everything |
//!
//! That fsync of a file makes its names durable is not in POSIX; see docs/durability.md.

use super::call::Call;
use super::perform::{Performed, STALE};
use super::tree::{Node, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// A disk writes so many bytes whole.
const SECTOR: usize = 512;

fstone_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Aspect: name, ALL {
        /// Data is there that was persisted, or that was written later.
        Data => "data",
        Length => "length",
        Names => "names",
        /// A directory has the names that were in it, and not those that were removed.
        Entries => "directory entries",
        Links => "link count",
        Attributes => "attributes",
        Readable => "readable",
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finding {
    pub checked: u64,
    pub broken: u64,
    pub first: Option<String>,
}

/// By which call facts were made durable last: the index of its tree.
#[derive(Debug, Default)]
struct Durable {
    data: BTreeMap<u64, usize>,
    rest: BTreeMap<u64, usize>,
    entries: BTreeMap<String, usize>,
}

struct Looking<'a> {
    trees: &'a [Tree],
    found: &'a Tree,
    findings: BTreeMap<Aspect, Finding>,
}

impl Performed {
    /// Compares the tree after a power cut, before which so many calls had returned, with what was persisted.
    pub(super) fn compare(&self, found: &Tree, returned: usize) -> BTreeMap<Aspect, Finding> {
        let most = self.trees.len() - 1;
        let returned = returned.min(most);
        let last = (returned + 1).min(most);
        let durable = self.durable(returned);
        let mut looking = Looking { trees: &self.trees, found, findings: BTreeMap::new() };
        looking.readable();
        for (inode, from) in &durable.rest {
            looking.rest(*inode, *from..=last);
        }
        for (inode, from) in &durable.data {
            looking.data(*inode, *from..=last);
        }
        for (path, from) in &durable.entries {
            looking.entry(path, *from..=last);
        }
        looking.findings
    }

    fn durable(&self, returned: usize) -> Durable {
        let mut durable = Durable::default();
        self.persist(&mut durable, &Call::Sync, 0);
        for (index, call) in (1..=returned).zip(self.sequence.calls()) {
            self.persist(&mut durable, call, index);
        }
        durable
    }

    fn persist(&self, durable: &mut Durable, call: &Call, index: usize) {
        let tree = &self.trees[index];
        match call {
            Call::Fsync(path) | Call::Fdatasync(path) => {
                let node = tree.nodes.get(path);
                if path == "." || node.is_some_and(|node| node.directory) {
                    let inside = |name: &&String| parent(name) == path;
                    let known = self.trees[..=index].iter().flat_map(|tree| tree.nodes.keys()).filter(inside);
                    durable.entries.extend(known.map(|name| (name.clone(), index)));
                    durable.rest.extend(node.map(|node| (node.inode, index)));
                } else if let Some(node) = node {
                    durable.data.insert(node.inode, index);
                    if matches!(call, Call::Fsync(_)) {
                        durable.rest.insert(node.inode, index);
                    }
                }
            }
            Call::Sync => {
                let known = self.trees[..=index].iter().flat_map(|tree| tree.nodes.keys());
                durable.entries = known.map(|name| (name.clone(), index)).collect();
                durable.rest = tree.nodes.values().map(|node| (node.inode, index)).collect();
                durable.data =
                    tree.nodes.values().filter(|node| !node.directory).map(|node| (node.inode, index)).collect();
            }
            _ => {}
        }
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(parent, _)| parent)
}

impl Looking<'_> {
    fn note(&mut self, aspect: Aspect, broken: Option<String>) {
        let finding = self.findings.entry(aspect).or_default();
        finding.checked += 1;
        finding.broken += u64::from(broken.is_some());
        finding.first = finding.first.take().or(broken);
    }

    fn readable(&mut self) {
        let node = self.found.nodes.iter().find_map(|(path, node)| Some(format!("{path}: {}", node.error.as_ref()?)));
        let words = self.found.errors.first().cloned().or(node);
        self.note(Aspect::Readable, words);
    }

    fn called(&self, inode: u64, among: &RangeInclusive<usize>) -> String {
        let mut trees = self.trees[among.clone()].iter();
        trees.find_map(|tree| tree.by_number(inode)).map_or_else(String::new, |(path, _)| path.to_owned())
    }

    fn allowed(&self, inode: u64, among: &RangeInclusive<usize>) -> Vec<Option<&Node>> {
        self.trees[among.clone()].iter().map(|tree| tree.by_number(inode).map(|(_, node)| node)).collect()
    }

    /// Names, link count and attributes.
    fn rest(&mut self, inode: u64, among: RangeInclusive<usize>) {
        let called = self.called(inode, &among);
        let sets: Vec<BTreeSet<&str>> = self.trees[among.clone()].iter().map(|tree| tree.names(inode)).collect();
        let names = self.found.names(inode);
        let broken = wrong_names(&names, &sets).map(|words| format!("{called}: {words}"));
        self.note(Aspect::Names, broken);
        let allowed = self.allowed(inode, &among);
        let Some((_, node)) = self.found.by_number(inode) else { return };
        let nodes: Vec<&Node> = allowed.iter().flatten().copied().collect();
        if node.error.is_some() {
            let words = node.error.as_ref().map(|error| format!("{called}: {error}"));
            return self.note(Aspect::Attributes, words);
        }
        let links = (!node.directory && !nodes.iter().any(|allowed| allowed.links == node.links)).then(|| {
            format!("{called}: {} links, and {} were persisted", node.links, nodes.first().map_or(0, |node| node.links))
        });
        let keys: BTreeSet<&String> =
            nodes.iter().chain(std::iter::once(&node)).flat_map(|node| node.attributes.keys()).collect();
        let wrong = keys
            .into_iter()
            .find(|&key| !nodes.iter().any(|allowed| allowed.attributes.get(key) == node.attributes.get(key)));
        let wrong = wrong.map(|key| {
            let value = node.attributes.get(key).map(|value| String::from_utf8_lossy(value).into_owned());
            format!("{called}: the attribute {key} is {}", value.map_or("missing".into(), |value| format!("{value:?}")))
        });
        if !node.directory {
            self.note(Aspect::Links, links);
        }
        self.note(Aspect::Attributes, wrong);
    }

    fn data(&mut self, inode: u64, among: RangeInclusive<usize>) {
        let called = self.called(inode, &among);
        let allowed = self.allowed(inode, &among);
        let Some((_, node)) = self.found.by_number(inode) else {
            // Which names it has to have is asked elsewhere, but by none its data cannot be found.
            if allowed.iter().all(|node| node.is_some_and(|node| node.length > 0)) {
                self.note(Aspect::Data, Some(format!("{called}: the file is not there by any name")));
            }
            return;
        };
        let allowed: Vec<&Node> = allowed.into_iter().flatten().collect();
        let lengths = allowed.iter().map(|node| node.length);
        let (least, most) = (lengths.clone().min().unwrap_or(0), lengths.max().unwrap_or(0));
        let length = (node.directory || !(least..=most).contains(&node.length)).then(|| {
            let expected = if least == most { format!("{least}") } else { format!("{least} to {most}") };
            format!("{called}: {} bytes, and {expected} were persisted or being made", node.length)
        });
        let damage = match &node.error {
            Some(error) => Some(error.clone()),
            None => damaged(&node.data, &allowed),
        };
        let damage = damage.map(|words| format!("{called}: {words}"));
        self.note(Aspect::Length, length);
        self.note(Aspect::Data, damage);
    }

    fn entry(&mut self, path: &str, among: RangeInclusive<usize>) {
        let found = self.found.number(path);
        let mut allowed = self.trees[among.clone()].iter().map(|tree| tree.number(path));
        let first = allowed.next().flatten();
        let fine = found == first || allowed.any(|number| number == found);
        let broken = (!fine).then(|| match (found, first) {
            (None, _) => format!("{path} is not there"),
            (Some(_), None) => format!("{path} was removed and is back"),
            (Some(_), Some(_)) => format!("{path} is another file"),
        });
        self.note(Aspect::Entries, broken);
    }
}

/// A change of names is there or not, as a whole: the names are those of one of the trees. Only where several calls changed
/// them may some of these be there without the others.
pub(super) fn wrong_names(names: &BTreeSet<&str>, sets: &[BTreeSet<&str>]) -> Option<String> {
    if sets.contains(names) {
        return None;
    }
    let list = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(" and ");
    let different: BTreeSet<&BTreeSet<&str>> = sets.iter().collect();
    let all: BTreeSet<&str> = sets.iter().flatten().copied().collect();
    let always: BTreeSet<&str> = all.iter().copied().filter(|name| sets.iter().all(|set| set.contains(name))).collect();
    if different.len() > 2 && !names.is_empty() && names.is_subset(&all) && names.is_superset(&always) {
        return None;
    }
    Some(match names.is_empty() {
        true => "it is not there by any name".to_owned(),
        false => format!("its names are {}, which are those of no moment since they were persisted", list(names)),
    })
}

/// The first sector that holds what none of these files held. Where a file may be longer than it was, zeros are taken for
/// data that was not written yet.
fn damaged(data: &[u8], allowed: &[&Node]) -> Option<String> {
    for (number, sector) in data.chunks(SECTOR).enumerate() {
        let at = number * SECTOR;
        let fine = allowed.iter().any(|node| {
            let held = node.data.get(at..).unwrap_or_default();
            let (held, beyond) = (&held[..held.len().min(sector.len())], sector.get(held.len()..).unwrap_or_default());
            sector.starts_with(held) && beyond.iter().all(|byte| *byte == 0)
        });
        if !fine {
            let what = if sector.iter().all(|byte| *byte == 0) {
                "zeros where data should be"
            } else if sector.contains(&STALE) && sector.iter().all(|byte| matches!(*byte, STALE | 0)) {
                "stale data of a removed file"
            } else {
                "data that this place did not hold when it was persisted, or later"
            };
            return Some(format!("byte {at}: {what}"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: u64, data: &[u8]) -> Node {
        Node { inode, length: data.len() as u64, links: 1, data: data.to_vec(), ..Node::default() }
    }

    fn tree(nodes: &[(&str, Node)]) -> Tree {
        Tree {
            nodes: nodes.iter().map(|(path, node)| ((*path).to_owned(), node.clone())).collect(),
            errors: Vec::new(),
        }
    }

    fn performed(sequence: &str, trees: &[Tree]) -> Performed {
        Performed { sequence: sequence.parse().unwrap(), trees: trees.to_vec() }
    }

    fn broken(performed: &Performed, found: &Tree, returned: usize) -> Vec<Aspect> {
        let findings = performed.compare(found, returned);
        findings.iter().filter(|(_, finding)| finding.broken > 0).map(|(aspect, _)| *aspect).collect()
    }

    #[test]
    fn a_rename_is_there_or_not_and_nothing_between() {
        let (old, new) = (file(5, &[1; 600]), file(6, &[2; 600]));
        let before = tree(&[("a", old.clone()), ("b", new.clone())]);
        let after = tree(&[("b", old.clone())]);
        let performed = performed("rename a b; fsync b", &[before.clone(), after.clone(), after.clone()]);
        for returned in 0..=1 {
            assert!(broken(&performed, &before, returned).is_empty());
            assert!(broken(&performed, &after, returned).is_empty());
        }
        assert!(broken(&performed, &after, 2).is_empty());
        assert_eq!(broken(&performed, &before, 2), [Aspect::Names], "the new name was persisted");
        let both = tree(&[("a", old.clone()), ("b", old)]);
        assert_eq!(broken(&performed, &both, 1), [Aspect::Names]);
        assert!(broken(&performed, &tree(&[]), 1).contains(&Aspect::Entries));
        assert!(broken(&performed, &tree(&[("a", new)]), 1).contains(&Aspect::Names));
    }

    #[test]
    fn data_is_old_or_new_sector_by_sector_and_nothing_else() {
        let (old, new) = ([1; 2048], [2; 4096]);
        let before = tree(&[("a", file(5, &old))]);
        let after = tree(&[("a", file(5, &new))]);
        let performed = performed("write a 0 4096; fdatasync a", &[before, after.clone(), after.clone()]);
        let state = |data: &[u8]| tree(&[("a", file(5, data))]);
        let mixed = [&[2; 512][..], &[1; 512], &[2; 512], &[1; 512], &[0; 512]].concat();
        assert!(broken(&performed, &state(&mixed), 1).is_empty());
        assert_eq!(broken(&performed, &state(&mixed), 2), [Aspect::Data, Aspect::Length]);
        assert_eq!(broken(&performed, &state(&[0; 2048]), 1), [Aspect::Data], "zeros where data was");
        let stale = [&old[..], &[STALE; 512]].concat();
        assert_eq!(broken(&performed, &state(&stale), 1), [Aspect::Data]);
        let words = performed.compare(&state(&stale), 1)[&Aspect::Data].first.clone().unwrap();
        assert_eq!(words, "a: byte 2048: stale data of a removed file");
        assert_eq!(broken(&performed, &state(&[1; 100]), 1), [Aspect::Length]);
        assert!(broken(&performed, &after, 2).is_empty());
    }

    #[test]
    fn what_was_never_persisted_may_be_missing() {
        let before = tree(&[]);
        let made = tree(&[("n", file(7, b""))]);
        let unsynced = performed("create n; fdatasync n", &[before.clone(), made.clone(), made.clone()]);
        assert!(broken(&unsynced, &before, 2).is_empty(), "fdatasync is about data");
        let written = tree(&[("n", file(7, b"x"))]);
        let data = [before.clone(), made.clone(), written.clone(), written];
        let data = performed("create n; write n 0 1; fdatasync n", &data);
        assert_eq!(broken(&data, &before, 3), [Aspect::Data], "and has it, by some name");
        let synced = performed("create n; fsync n", &[before.clone(), made.clone(), made.clone()]);
        assert!(broken(&synced, &before, 1).is_empty());
        assert_eq!(broken(&synced, &before, 2), [Aspect::Names]);
        let entry = performed("create n; fsync .", &[before.clone(), made.clone(), made]);
        assert_eq!(broken(&entry, &before, 2), [Aspect::Entries]);
    }

    #[test]
    fn what_was_removed_durably_stays_away() {
        let before = tree(&[("a", file(5, b"x")), ("b", file(6, b"y"))]);
        let after = tree(&[("b", file(6, b"y"))]);
        for (persisted, found) in
            [("sync", vec![Aspect::Entries]), ("fsync .", vec![Aspect::Entries]), ("fsync b", vec![])]
        {
            let performed =
                performed(&format!("unlink a; {persisted}"), &[before.clone(), after.clone(), after.clone()]);
            assert_eq!(broken(&performed, &before, 2), found, "{persisted}");
        }
    }

    #[test]
    fn link_counts_and_attributes_are_those_of_one_moment() {
        let mut linked = file(5, b"x");
        linked.links = 2;
        linked.attributes.insert("user.x".into(), b"1".to_vec());
        let before = tree(&[("a", file(5, b"x"))]);
        let after = tree(&[("a", linked.clone()), ("b", linked)]);
        let performed = performed("link a b; fsync a", &[before.clone(), after.clone(), after.clone()]);
        let mut wrong = after;
        for node in wrong.nodes.values_mut() {
            node.links = 1;
            node.attributes.insert("user.x".into(), b"2".to_vec());
        }
        assert_eq!(broken(&performed, &wrong, 2), [Aspect::Links, Aspect::Attributes]);
        assert_eq!(broken(&performed, &before, 2), [Aspect::Names, Aspect::Links, Aspect::Attributes]);
    }

    #[test]
    fn a_tree_that_cannot_be_read_is_a_loss() {
        let before = tree(&[("a", file(5, b"x"))]);
        let performed = performed("sync", &[before.clone(), before.clone()]);
        let mut sick = before;
        sick.errors.push("the directory . cannot be listed: Structure needs cleaning".into());
        assert_eq!(broken(&performed, &sick, 1), [Aspect::Readable]);
    }
}

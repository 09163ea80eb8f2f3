//! What applications would like to rely on and nothing promises. Filesystems differ in it (Pillai et al., "All File Systems Are Not
//! Created Equal", OSDI 2014).

use super::call::Call;
use super::oracle::{Finding, wrong_names};
use super::perform::{Performed, STALE};
use super::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

fstone_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Property: name {
        /// A file that was synced by fsync has the names it had then.
        SyncedNames => "names of synced files",
        /// The names are those of one moment: no call is there whose forerunner is not.
        Order => "order",
        /// Under a name that was given to another file by rename is the old file or the new one, whole.
        Replacement => "replacement",
        /// What a file has beyond its old end is not zeros in place of what was written.
        Zeros => "appended zeros",
        /// What a file has beyond its old end is not stale data.
        Stale => "appended stale data",
    }
}

impl Performed {
    /// Which properties a tree has after a power cut before which so many calls had returned. Only those are there that this
    /// cut could have broken: not before their call may have begun, and not when all is durable again.
    pub(super) fn properties(&self, found: &Tree, returned: usize) -> BTreeMap<Property, Finding> {
        let mut findings = BTreeMap::new();
        let mut note = |property, at_stake: bool, broken: Option<String>| {
            if at_stake || broken.is_some() {
                let finding: &mut Finding = findings.entry(property).or_default();
                finding.checked += 1;
                finding.broken += u64::from(broken.is_some());
                finding.first = finding.first.take().or(broken);
            }
        };
        // One call alone has no order.
        note(Property::Order, returned > 0 && self.is_unsettled(0, returned), self.out_of_order(found));
        for (number, call) in self.sequence.calls().iter().enumerate() {
            let (before, after) = (&self.trees[number], &self.trees[number + 1]);
            let unsettled = self.is_unsettled(number, returned);
            match call {
                Call::Fsync(path) if returned > number => {
                    let Some(node) = after.nodes.get(path).filter(|node| !node.directory) else { continue };
                    let last = (returned + 1).min(self.trees.len() - 1);
                    let sets: Vec<_> =
                        self.trees[number + 1..=last].iter().map(|tree| tree.names(node.inode)).collect();
                    let broken = wrong_names(&found.names(node.inode), &sets);
                    note(Property::SyncedNames, true, broken.map(|words| format!("{path}: {words}")));
                }
                Call::Rename(_, to) if before.nodes.get(to).is_some_and(|node| !node.directory) => {
                    let whole = [before, after].map(|tree| tree.nodes.get(to).map(|node| &node.data));
                    let held = found.nodes.get(to).map(|node| &node.data);
                    let broken = (!whole.contains(&held)).then(|| match held {
                        None => format!("{to} is not there"),
                        Some(data) => {
                            format!("{to} has {} bytes, neither the old file's data nor the new one's", data.len())
                        }
                    });
                    note(Property::Replacement, unsettled, broken);
                }
                Call::Write(path, ..) => {
                    let old = before.nodes.get(path).map_or(0, |node| node.length) as usize;
                    let (Some(new), Some(held)) = (after.nodes.get(path), found.nodes.get(path)) else { continue };
                    let at_stake = unsettled && held.data.len() > old;
                    let beyond = held.data.iter().zip(&new.data).enumerate().skip(old);
                    let wrong: Vec<(usize, u8)> =
                        beyond.filter(|(_, (held, new))| held != new).map(|(at, (held, _))| (at, *held)).collect();
                    let words = |at: usize, what: &str| format!("{path}: byte {at}: {what}");
                    let stale = wrong.iter().find(|(_, byte)| *byte == STALE).map(|(at, _)| words(*at, "stale data"));
                    let zeros = wrong.iter().find(|(_, byte)| *byte == 0).map(|(at, _)| words(*at, "zeros"));
                    note(Property::Zeros, at_stake, zeros);
                    note(Property::Stale, at_stake, stale);
                }
                _ => {}
            }
        }
        findings
    }

    /// Whether a call may have begun, and no sync of everything has returned since.
    fn is_unsettled(&self, number: usize, returned: usize) -> bool {
        let since = self.sequence.calls().iter().take(returned).skip(number + 1);
        returned >= number && !since.into_iter().any(|call| *call == Call::Sync)
    }

    /// What is there, where that is the tree of no moment.
    fn out_of_order(&self, found: &Tree) -> Option<String> {
        let names = |tree: &Tree| -> BTreeSet<(String, u64)> {
            tree.nodes.iter().map(|(path, node)| (path.clone(), node.inode)).collect()
        };
        let held = names(found);
        if self.trees.iter().any(|tree| names(tree) == held) {
            return None;
        }
        let (first, last) = (names(self.trees.first()?), names(self.trees.last()?));
        let list = |mut paths: Vec<&str>| {
            paths.sort_unstable();
            paths.dedup();
            if paths.is_empty() { "nothing".to_owned() } else { paths.join(", ") }
        };
        let done = held.difference(&first).chain(first.difference(&held)).map(|(path, _)| path.as_str()).collect();
        let missing = last.difference(&held).chain(held.difference(&last)).map(|(path, _)| path.as_str()).collect();
        Some(format!("changed: {}; not yet: {}", list(done), list(missing)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Node;
    use super::*;

    fn tree(nodes: &[(&str, u64, &[u8])]) -> Tree {
        let node =
            |inode, data: &[u8]| Node { inode, length: data.len() as u64, data: data.to_vec(), ..Node::default() };
        let nodes = nodes.iter().map(|(path, inode, data)| ((*path).to_owned(), node(*inode, data))).collect();
        Tree { nodes, errors: Vec::new() }
    }

    fn broken(performed: &Performed, found: &Tree) -> Vec<Property> {
        let findings = performed.properties(found, performed.sequence.calls().len() - 1);
        findings.iter().filter(|(_, finding)| finding.broken > 0).map(|(property, _)| *property).collect()
    }

    #[test]
    fn order_and_replacement() {
        let old: (&str, u64, &[u8]) = ("b", 5, b"old");
        let trees = [
            tree(&[old]),
            tree(&[old, ("n", 6, b"")]),
            tree(&[old, ("n", 6, b"new")]),
            tree(&[("b", 6, b"new")]),
            tree(&[("b", 6, b"new"), ("m", 7, b"")]),
        ];
        let sequence = "create n; write n 0 3; rename n b; create m".parse().unwrap();
        let performed = Performed { sequence, trees: trees.to_vec() };
        for tree in &trees {
            assert!(broken(&performed, tree).is_empty(), "{tree:?}");
        }
        assert_eq!(broken(&performed, &tree(&[("b", 6, b"")])), [Property::Replacement]);
        assert_eq!(broken(&performed, &tree(&[("b", 6, &[0; 3])])), [Property::Replacement]);
        assert_eq!(broken(&performed, &tree(&[])), [Property::Order, Property::Replacement]);
        let later_alone = tree(&[old, ("m", 7, b"")]);
        assert_eq!(broken(&performed, &later_alone), [Property::Order]);
        let words = performed.properties(&later_alone, 3)[&Property::Order].first.clone();
        assert_eq!(words.as_deref(), Some("changed: m; not yet: b"));
    }

    #[test]
    fn what_was_appended_is_there_or_not_and_nothing_else() {
        let sequence = "write a 4 4".parse().unwrap();
        let trees = vec![tree(&[("a", 5, b"1234")]), tree(&[("a", 5, b"1234abcd")])];
        let performed = Performed { sequence, trees };
        assert!(broken(&performed, &tree(&[("a", 5, b"1234ab")])).is_empty());
        assert_eq!(broken(&performed, &tree(&[("a", 5, b"1234\0\0cd")])), [Property::Zeros]);
        assert_eq!(broken(&performed, &tree(&[("a", 5, &[b'1', b'2', b'3', b'4', STALE, STALE])])), [Property::Stale]);
    }

    #[test]
    fn properties_are_looked_at_where_they_are_at_stake() {
        let (old, synced): (&[u8], _) = (b"1234", tree(&[("a", 5, b"1234"), ("n", 6, b"")]));
        let whole = tree(&[("a", 5, b"1234abcd"), ("n", 6, b"")]);
        let trees = vec![tree(&[("a", 5, old)]), synced.clone(), synced.clone(), whole.clone(), whole.clone()];
        let sequence = "create n; fsync n; write a 4 4; sync".parse().unwrap();
        let performed = Performed { sequence, trees };
        let at_stake =
            |found: &Tree, returned| performed.properties(found, returned).into_keys().collect::<Vec<Property>>();
        assert!(at_stake(&synced, 0).is_empty());
        assert_eq!(at_stake(&synced, 1), [Property::Order], "the fsync has not returned");
        assert_eq!(at_stake(&synced, 2), [Property::SyncedNames, Property::Order], "nothing was appended");
        let appended = [Property::SyncedNames, Property::Order, Property::Zeros, Property::Stale];
        assert_eq!(at_stake(&whole, 3), appended);
        assert_eq!(at_stake(&whole, 4), [Property::SyncedNames], "all is durable");
        let lost = tree(&[("a", 5, old)]);
        let findings = performed.properties(&lost, 2);
        assert_eq!(findings[&Property::SyncedNames].broken, 1);
        assert_eq!(
            findings[&Property::SyncedNames].first.as_deref(),
            Some("n: it is not there by any name"),
            "and the names of others are not asked for"
        );
        let other = tree(&[("n", 6, b"")]);
        assert_eq!(performed.properties(&other, 2)[&Property::SyncedNames].broken, 0);
    }
}

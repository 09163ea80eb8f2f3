//! What applications would like to rely on and nothing promises. Filesystems differ in it (Pillai et al., "All File Systems Are Not
//! Created Equal", OSDI 2014).

use super::call::Call;
use super::oracle::Finding;
use super::perform::{Performed, STALE};
use super::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// A property that a state after a power cut has or has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Property {
    /// The names are those of one moment: no call is there whose forerunner is not.
    Order,
    /// Under a name that was given to another file by rename is the old file or the new one, whole.
    Replacement,
    /// What a file has beyond its old end is not zeros in place of what was written.
    Zeros,
    /// What a file has beyond its old end is not stale data.
    Stale,
}

impl Property {
    /// As it is called in what an agent says.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Replacement => "replacement",
            Self::Zeros => "appended zeros",
            Self::Stale => "appended stale data",
        }
    }
}

impl Performed {
    /// Which properties a tree after a power cut has; those that the sequence says nothing of are not there.
    pub(super) fn properties(&self, found: &Tree) -> BTreeMap<Property, Finding> {
        let mut findings = BTreeMap::new();
        let mut note = |property, broken: Option<String>| {
            let finding: &mut Finding = findings.entry(property).or_default();
            finding.checked += 1;
            finding.broken += u64::from(broken.is_some());
            finding.first = finding.first.take().or(broken);
        };
        note(Property::Order, self.out_of_order(found));
        for (number, call) in self.sequence.calls().iter().enumerate() {
            let (before, after) = (&self.trees[number], &self.trees[number + 1]);
            match call {
                Call::Rename(_, to) if before.nodes.get(to).is_some_and(|node| !node.directory) => {
                    let whole = [before, after].map(|tree| tree.nodes.get(to).map(|node| &node.data));
                    let held = found.nodes.get(to).map(|node| &node.data);
                    let broken = (!whole.contains(&held)).then(|| match held {
                        None => format!("{to} is not there"),
                        Some(data) => {
                            format!("{to} has {} bytes, neither the old file's data nor the new one's", data.len())
                        }
                    });
                    note(Property::Replacement, broken);
                }
                Call::Write(path, ..) => {
                    let old = before.nodes.get(path).map_or(0, |node| node.length) as usize;
                    let (Some(new), Some(held)) = (after.nodes.get(path), found.nodes.get(path)) else { continue };
                    // Units of the disk beyond the old end in which the new data has something to show.
                    let beyond = held.data.iter().zip(&new.data).enumerate().skip(old);
                    let wrong: Vec<(usize, u8)> =
                        beyond.filter(|(_, (held, new))| held != new).map(|(at, (held, _))| (at, *held)).collect();
                    let words = |at: usize, what: &str| format!("{path}: byte {at}: {what}");
                    let stale = wrong.iter().find(|(_, byte)| *byte == STALE).map(|(at, _)| words(*at, "stale data"));
                    let zeros = wrong.iter().find(|(_, byte)| *byte == 0).map(|(at, _)| words(*at, "zeros"));
                    note(Property::Zeros, zeros);
                    note(Property::Stale, stale);
                }
                _ => {}
            }
        }
        findings
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
        let findings = performed.properties(found);
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
        let words = performed.properties(&later_alone)[&Property::Order].first.clone();
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
}

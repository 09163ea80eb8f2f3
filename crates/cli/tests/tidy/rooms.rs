//! The engine's rooms stand in ARCHITECTURE.md in the order in which they depend on each other.

use super::modules::{Crate, Edges, ModulePath};
use std::{collections::BTreeSet, fs};

#[test]
fn the_engines_rooms_depend_on_those_below_them() {
    let document = fs::read_to_string(super::root().join("ARCHITECTURE.md")).expect("it is there");
    let order = rooms_of(&document);
    assert!(order.len() > 8, "the table is found: {order:?}");
    let source = super::root().join("crates/engine/src");
    let folders: BTreeSet<String> = fs::read_dir(&source)
        .expect("readable")
        .map(|entry| entry.expect("readable"))
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(folders, order.iter().cloned().collect(), "the table has a line for each folder of engine/src");
    let wrong = upward(&Crate::read(&source), &order);
    assert!(wrong.is_empty(), "a room depends only on rooms below it in ARCHITECTURE.md:\n{}", wrong.join("\n"));
}

#[test]
fn a_planted_way_up_is_found() {
    let order = ["a", "b", "c"].map(str::to_owned);
    let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\nmod beside;\n");
    let a = ("a/mod.rs", "use crate::c::C;\npub struct A(C);\n");
    let beside = ("beside.rs", "pub struct Beside(crate::b::B);\n");
    let b = ("b/mod.rs", "pub struct B;\n");
    let planted = |c: &str| upward(&Crate::planted(&[lib, a, b, beside, ("c/mod.rs", c)]), &order);
    assert_eq!(planted("pub struct C;\n"), Vec::<String>::new());
    assert_eq!(planted("use crate::b::B;\npub struct C(B);\n"), ["c/mod.rs → b/mod.rs"]);
    assert_eq!(planted("use crate::beside::Beside;\npub struct C(Beside);\n"), ["c/mod.rs → beside.rs → b/mod.rs"]);
}

/// The names in the first column of the table of rooms, from the top to the bottom and from left to right.
fn rooms_of(document: &str) -> Vec<String> {
    let section = document.split("\n## ").find(|section| section.starts_with("The engine's rooms\n"));
    let rows = section.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("| `"));
    rows.flat_map(|row| row.split('|').next().unwrap_or_default().split(", "))
        .map(|name| name.trim().trim_matches('`').to_owned())
        .collect()
}

/// Each way from a file of a room to a file of a room above it, if need be through files that are in no room.
fn upward(files: &Crate, order: &[String]) -> Vec<String> {
    let edges = files.edges();
    let room = |at: &ModulePath| order.iter().position(|room| at.first() == Some(room));
    let mut wrong = Vec::new();
    for from in files.modules.keys() {
        let Some(own) = room(from) else { continue };
        for way in ways_to_rooms(from, &edges, &|at| room(at).is_some()) {
            if way.last().and_then(|to| room(to)).is_some_and(|to| to < own) {
                let names: Vec<&str> = way.iter().map(|at| files.file(at)).collect();
                wrong.push(names.join(" → "));
            }
        }
    }
    wrong
}

fn ways_to_rooms<'a>(
    from: &'a ModulePath,
    edges: &'a Edges<'a>,
    in_room: &dyn Fn(&ModulePath) -> bool,
) -> Vec<Vec<&'a ModulePath>> {
    let (mut open, mut ended) = (vec![vec![from]], Vec::new());
    let mut seen = BTreeSet::from([from]);
    while let Some(way) = open.pop() {
        for next in edges[*way.last().expect("never empty")].keys() {
            if seen.insert(next) {
                let longer = [way.as_slice(), &[next]].concat();
                if in_room(next) { ended.push(longer) } else { open.push(longer) }
            }
        }
    }
    ended
}

//! No file depends on a file that depends on it.

use super::modules::{Crate, Edges, ModulePath};
use std::{collections::BTreeSet, fs};

#[test]
fn files_do_not_depend_on_each_other_in_circles() {
    let (mut wrong, mut crates) = (Vec::new(), 0);
    for entry in fs::read_dir(super::root().join("crates")).expect("crates/ is there") {
        let part = entry.expect("readable").path();
        let files = Crate::read(&part.join("src"));
        crates += usize::from(files.modules.len() > 1);
        wrong.extend(circles(&files).into_iter().map(|circle| format!("{}: {circle}", part.display())));
    }
    assert!(crates > 10, "the walk found the source: {crates} crates");
    assert!(wrong.is_empty(), "move what both sides use into a file of its own:\n{}", wrong.join("\n"));
}

#[test]
fn a_planted_circle_is_found() {
    let planted = |files: &[(&str, &str)]| circles(&Crate::planted(files));
    let lib = ("lib.rs", "mod a;\nmod b;\npub use a::A;\npub use b::B;\n");
    let a = ("a.rs", "use crate::b::B;\npub struct A(B);\n");
    assert_eq!(planted(&[lib, a, ("b.rs", "pub struct B;\n")]), Vec::<String>::new());
    let through = planted(&[lib, a, ("b.rs", "pub struct B;\nfn f(a: &crate::A) {}\n")]);
    assert_eq!(through, ["a.rs → b.rs (b::B), b.rs → a.rs (A)"], "what the root passes on is in a.rs");
    let parent = planted(&[
        ("lib.rs", "mod a;\nstruct Root;\nfn f() { a::g() }\n"),
        ("a.rs", "use super::Root;\npub fn g() { Root }\n"),
    ]);
    assert_eq!(parent, ["lib.rs → a.rs (a::g), a.rs → lib.rs (Root)"]);
    let imported = planted(&[
        ("lib.rs", "mod a;\nmod b;\n"),
        ("a.rs", "use crate::b;\nfn f() { b::g() }\n"),
        ("b.rs", "use crate::a as other;\nfn g() { other::f() }\n#[cfg(test)]\nmod tests {\n    use crate::a::f;\n}\n"),
    ]);
    assert_eq!(imported, ["a.rs → b.rs (b::g), b.rs → a.rs (a::f)"]);
    let only_tests = planted(&[
        ("lib.rs", "mod a;\nmod b;\n"),
        ("a.rs", "use crate::b::g;\npub fn f() { g() }\n"),
        ("b.rs", "pub fn g() {}\n#[cfg(test)]\nmod tests {\n    use crate::a::f;\n}\n"),
    ]);
    assert_eq!(only_tests, Vec::<String>::new());
    let a_macro = "use crate::b::B;\nmacro_rules! made {\n    () => {};\n}\npub(crate) use made;\n";
    let by_macro = planted(&[lib, ("a.rs", a_macro), ("b.rs", "use crate::a::made;\nmade!();\npub struct B;\n")]);
    assert_eq!(by_macro, ["a.rs → b.rs (b::B), b.rs → a.rs (a::made)"]);
    let body = "macro_rules! made {\n    () => { $crate::b::B };\n}\npub(crate) use made;\n";
    let in_body = planted(&[lib, ("a.rs", body), ("b.rs", "fn f() -> B { crate::a::made!() }\npub struct B;\n")]);
    assert_eq!(in_body, ["a.rs → b.rs (b::B), b.rs → a.rs (a::made)"]);
    let all_of_a = "mod a;\npub use a::*;\npub struct Root(A);\n";
    let used_again = planted(&[("lib.rs", all_of_a), ("a.rs", "pub struct A(Option<Box<super::Root>>);\n")]);
    assert_eq!(used_again, ["lib.rs → a.rs (a::A), a.rs → lib.rs (Root)"]);
    let passed_on_only =
        planted(&[("lib.rs", "mod a;\npub use a::*;\npub struct Root;\n"), ("a.rs", "pub struct A(super::Root);\n")]);
    assert_eq!(passed_on_only, Vec::<String>::new());
}

/// A circle for each file that is in one and not in one before, as the dependencies it consists of.
fn circles(files: &Crate) -> Vec<String> {
    let edges = files.edges();
    let mut told: BTreeSet<&ModulePath> = BTreeSet::new();
    let mut circles = Vec::new();
    for start in edges.keys().copied() {
        if told.contains(start) {
            continue;
        }
        let Some(circle) = shortest_circle(start, &edges) else { continue };
        let steps = circle.windows(2).map(|step| {
            let name = &edges[step[0]][step[1]];
            format!("{} → {} ({name})", files.file(step[0]), files.file(step[1]))
        });
        circles.push(steps.collect::<Vec<_>>().join(", "));
        told.extend(circle);
    }
    circles
}

/// The shortest way from a file back to itself, both ends included.
fn shortest_circle<'a>(start: &'a ModulePath, edges: &'a Edges<'a>) -> Option<Vec<&'a ModulePath>> {
    let mut ways: Vec<Vec<&ModulePath>> = vec![vec![start]];
    let mut seen: BTreeSet<&ModulePath> = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in &ways {
            for next in edges[way.last().expect("never empty")].keys() {
                let on = || [way.as_slice(), &[next]].concat();
                if next == start {
                    return Some(on());
                }
                if seen.insert(next) {
                    longer.push(on());
                }
            }
        }
        ways = longer;
    }
    None
}

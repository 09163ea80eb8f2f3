//! What is linked, held against `deny.toml`: licences, two versions of one crate, and where crates come from. cargo-deny
//! says the same, and what is known against them besides; this needs no tool that has to be installed.

use super::root;
use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    process::Command,
};

fn quoted<'a>(text: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    let part = text.split(from).nth(1).and_then(|rest| rest.split(to).next()).expect("deny.toml has this part");
    part.split('"').skip(1).step_by(2).collect()
}

/// Every package that a build or its tests take, with its version and licence.
fn packages() -> BTreeSet<(String, String, String)> {
    let output = Command::new(env::var_os("CARGO").expect("cargo runs tests"))
        .args(["tree", "--offline", "--locked", "--workspace"])
        .args(["--edges", "normal,build,dev", "--prefix", "none", "--format", "{p}|{l}|"])
        .current_dir(root())
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let of_line = |line: &str| {
        let mut parts = line.split('|');
        let mut package = parts.next()?.split(' ');
        let (name, version) = (package.next()?, package.next()?.strip_prefix('v')?);
        Some((name.to_owned(), version.to_owned(), parts.next()?.to_owned()))
    };
    text.lines().filter_map(of_line).collect()
}

/// Whether an SPDX expression can be fulfilled with these licences. AND binds more than OR; crates of old have "/" for OR.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ").replace(" WITH ", "+");
    let mut words = spaced.split_whitespace().peekable();
    any_of(&mut words, allowed) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    let mut fits = all_of(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        fits |= all_of(words, allowed);
    }
    fits
}

fn all_of(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    let mut fits = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        fits &= one(words, allowed);
    }
    fits
}

fn one(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    match words.next() {
        Some("(") => any_of(words, allowed) & words.next_if_eq(&")").is_some(),
        Some(licence) => allowed.contains(&licence),
        None => false,
    }
}

#[test]
fn licences_are_read_as_spdx_has_them() {
    let allowed = ["MIT", "Unicode-3.0"];
    for (expression, fits) in [
        ("MIT", true),
        ("Unlicense OR MIT", true),
        ("Apache-2.0/MIT", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("Apache-2.0 AND MIT", false),
        ("MIT AND GPL-2.0 OR Apache-2.0", false),
        ("MIT WITH LLVM-exception", false),
        ("MIT)", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), fits, "{expression:?}");
    }
}

#[test]
fn dependencies_are_what_deny_toml_allows() {
    let deny = fs::read_to_string(root().join("deny.toml")).expect("it is there");
    let allowed = quoted(&deny, "\nallow = [", "]");
    let skipped: Vec<(&str, &str)> =
        quoted(&deny, "\nskip = [", "\n]").chunks(3).map(|entry| (entry[0], entry[1])).collect();
    let packages = packages();
    assert!(packages.len() > 100, "only {packages:?}");
    let mut wrong = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, version, licence) in &packages {
        if !is_allowed(licence, &allowed) {
            wrong.push(format!("{name} {version}: deny.toml does not allow {licence:?}"));
        }
        let is_skipped = |(of, from): &(&str, &str)| of == name && version.starts_with(&format!("{from}."));
        if !skipped.iter().any(is_skipped) {
            versions.entry(name).or_default().push(version);
        }
    }
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        wrong.push(format!("{name} is there as {}; deny.toml may skip one, with a reason", versions.join(" and ")));
    }
    for (name, version) in skipped {
        if !packages.iter().any(|(of, at, _)| of == name && at.starts_with(&format!("{version}."))) {
            wrong.push(format!("deny.toml skips {name} {version}, which is not there any more"));
        }
    }
    let lock = fs::read_to_string(root().join("Cargo.lock")).expect("it is there");
    let sources: BTreeSet<&str> = lock.lines().filter_map(|line| line.strip_prefix("source = ")).collect();
    if sources != BTreeSet::from([r#""registry+https://github.com/rust-lang/crates.io-index""#]) {
        wrong.push(format!("crates come from {sources:?}"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

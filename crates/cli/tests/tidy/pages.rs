//! Links of the pages lead to files and headings that exist.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

fn pages(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The lines of a page that are not a block of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

/// What follows `](` or `src="` up to the end of the link.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        for (begin, end) in [("](", ')'), ("src=\"", '"'), ("srcset=\"", '"')] {
            let after = line.split(begin).skip(1);
            found.extend(after.filter_map(|rest| Some(rest.split_once(end)?.0.to_owned())));
        }
    }
    found.retain(|link| !link.contains("://") && !link.contains(' '));
    found
}

fn anchors(text: &str) -> HashSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let letters = |heading: &str| {
        let kept = |letter: &char| letter.is_alphanumeric() || ['-', '_', ' '].contains(letter);
        heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
    };
    headings.map(letters).collect()
}

fn dead(page: &Path, text: &str) -> Vec<String> {
    let is_dead = |link: &String| {
        let (file, anchor) = link.split_once('#').unwrap_or((link.as_str(), ""));
        let target = if file.is_empty() { page.to_owned() } else { page.with_file_name(file) };
        let has = |anchor: &str| fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(anchor));
        !target.exists() || !anchor.is_empty() && !has(anchor)
    };
    links(text).into_iter().filter(is_dead).collect()
}

#[test]
fn links_lead_to_what_is_there() {
    let mut found = Vec::new();
    pages(&super::root().join("docs"), &mut found);
    found.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| super::root().join(name)),
    );
    let mut count = 0;
    for page in &found {
        let text = fs::read_to_string(page).expect("readable");
        count += links(&text).len();
        assert_eq!(dead(page, &text), Vec::<String>::new(), "{}", page.display());
    }
    assert!(count > 100, "only {count} links were found");
}

#[test]
fn a_dead_link_is_found() {
    let page = super::root().join("docs/README.md");
    for link in ["none.md", "method.md#no-such-heading", "#no-such-heading"] {
        assert_eq!(dead(&page, &format!("see [this]({link}) and [that](method.md#outcomes)")), [link]);
    }
}

/// Names of pages in a source file: what begins with `docs/` and ends with `.md`.
fn named(text: &str) -> impl Iterator<Item = &str> {
    text.split("docs/").skip(1).filter_map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && !"-_/.".contains(letter));
        Some(rest[..end.unwrap_or(rest.len())].split_once(".md")?.0)
    })
}

#[test]
fn pages_that_sources_name_exist() {
    let root = super::root();
    let (mut sources, mut count) = (Vec::new(), 0);
    super::rust_files(&root.join("crates"), &mut sources);
    for source in sources {
        let text = fs::read_to_string(&source).expect("readable");
        for name in named(&text) {
            let page = format!("docs/{name}.md");
            assert!(root.join(&page).exists(), "{} names {page}, which does not exist", source.display());
            count += 1;
        }
    }
    assert!(count > 40, "only {count} names were found");
    // In two pieces, or this line would be found.
    let text = ["see docs/method.md, docs/a.rs or docs", "/method/none.md: it"].concat();
    assert_eq!(named(&text).collect::<Vec<&str>>(), ["method", "method/none"]);
}

#[test]
fn the_index_names_every_page() {
    let docs = super::root().join("docs");
    let index = fs::read_to_string(docs.join("README.md")).expect("readable");
    let index = links(&index);
    for directory in ["", "formats", "method"] {
        for entry in fs::read_dir(docs.join(directory)).expect("a directory") {
            let path = entry.expect("readable").path();
            let name = path.strip_prefix(&docs).expect("below it").display().to_string();
            let is_page = name.ends_with(".md") && name != "README.md";
            assert!(!is_page || index.contains(&name), "docs/README.md does not name {name}");
        }
    }
}

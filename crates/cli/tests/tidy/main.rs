//! House rules that a compiler does not keep: which part may see which, how long a file may get, words that have a
//! better replacement. Each failure names the cure.

mod circles;
mod dependencies;
mod modules;
mod pages;
mod reading;
mod rooms;
mod written;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// Who may depend on whom; ARCHITECTURE.md has the same table for people.
const MAY_SEE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("stats", &[]),
    ("files", &[]),
    ("analysis", &["model", "stats"]),
    ("engine", &["model"]),
    ("formats", &["model"]),
    ("drive", &["model"]),
    ("sandbox", &["model", "files", "drive"]),
    ("store", &["model", "files"]),
    ("report", &["model", "stats", "analysis"]),
    ("lab", &["model", "files", "engine", "stats", "sandbox", "drive", "record"]),
    ("record", &["model", "files", "engine"]),
    ("ranks", &["model", "engine"]),
    ("mpi", &["ranks"]),
    ("bench", &["model", "engine", "stats"]),
    (
        "cli",
        &[
            "model", "files", "engine", "formats", "stats", "analysis", "lab", "store", "report", "sandbox", "drive",
            "ranks", "record", "mpi",
        ],
    ),
];

#[test]
fn parts_see_only_what_the_architecture_allows() {
    let allowed: BTreeMap<_, _> = MAY_SEE.iter().copied().collect();
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root().join("crates")).expect("crates/ is there") {
        let path = entry.expect("readable").path();
        let part = path.file_name().expect("named").to_string_lossy().into_owned();
        let Some(may_see) = allowed.get(part.as_str()) else {
            wrong.push(format!("crates/{part} has no line in MAY_SEE and in ARCHITECTURE.md"));
            continue;
        };
        let manifest = fs::read_to_string(path.join("Cargo.toml")).expect("a crate has a manifest");
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        for line in dependencies.lines() {
            if let Some(seen) = line.strip_prefix("fstone-").and_then(|rest| rest.split(['.', ' ', '=']).next())
                && !may_see.contains(&seen)
            {
                wrong.push(format!("crates/{part} may not see {seen}: pass data through model, or move the code"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target" && name != "node_modules") {
                rust_files(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// A file without what only its tests have, every line where it was. `rustfmt` puts the end of an item below its beginning.
fn product(text: &str) -> String {
    if text.contains("#![cfg(test)]") {
        return String::new();
    }
    let (mut kept, mut lines) = (String::new(), text.lines());
    while let Some(line) = lines.next() {
        kept.push('\n');
        if line.trim_start() != "#[cfg(test)]" {
            kept.insert_str(kept.len() - 1, line);
            continue;
        }
        let depth = line.len() - line.trim_start().len();
        let is_attribute = |line: &str| line.trim_start().starts_with("#[");
        for item in lines.by_ref() {
            kept.push('\n');
            let ends_here = item.ends_with(';') || item.ends_with('}') || item.ends_with(',');
            let at_its_depth = item.len() - item.trim_start().len() == depth;
            if !is_attribute(item) && at_its_depth && ends_here {
                break;
            }
        }
    }
    kept
}

#[test]
fn only_what_tests_have_is_left_out() {
    let text = "a\n#[cfg(test)]\nmod tests;\nb\n    #[cfg(test)]\n    #[must_use]\n    fn of() {\n        no;\n    }\nc\n#[cfg(test)]\nmod t {\n    no;\n}\n";
    assert_eq!(product(text), "a\n\n\nb\n\n\n\n\n\nc\n\n\n\n\n");
}

/// What is known of a filesystem is known by its adapter: elsewhere its name would be a list to keep up.
#[test]
fn filesystems_are_named_by_their_adapters_alone() {
    const MAY_NAME: [(&str, &str); 3] = [
        ("crates/engine/src/run/durable.rs", "sees no adapter; a load may run where none made the filesystem"),
        ("crates/bench/src/place.rs", "mounts one of its own, and is no part of the product"),
        (
            "crates/report/src/html/differences.rs",
            "tells facts of one family from another's; an unknown one is by itself",
        ),
    ];
    let root = root();
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join("crates")).expect("crates/ is there") {
        rust_files(&entry.expect("readable").path().join("src"), &mut files);
    }
    let mut wrong = Vec::new();
    for file in files {
        let name = file.strip_prefix(&root).expect("below the root").display().to_string();
        let is_adapter = name.starts_with("crates/lab/src/filesystem/");
        if is_adapter || name.ends_with("/tests.rs") || MAY_NAME.iter().any(|(file, _)| *file == name) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("source is UTF-8");
        let product = product(&text);
        for (number, line) in product.lines().enumerate() {
            for filesystem in fstone_lab::filesystem::all() {
                let kind = filesystem.kind();
                if line.contains(&format!("\"{kind}\"")) && !line.trim_start().starts_with("//") {
                    wrong.push(format!("{name}:{}: {kind}: ask its adapter (lab/src/filesystem/)", number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_are_chosen() {
    // Put together so that this file does not find itself.
    let words = [
        (["TO", "DO"].concat(), "do it, or say in the docs what is not done"),
        (["FIX", "ME"].concat(), "fix it"),
        (["unwrap", "()"].concat(), "expect(\"why this cannot fail\"), or an error with context"),
    ];
    let root = root();
    let mut files = Vec::new();
    rust_files(&root.join("crates"), &mut files);
    assert!(files.len() > 50, "the walk found the source: {} files", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let name = file.strip_prefix(&root).expect("below the root").display().to_string();
        let text = fs::read_to_string(&file).expect("source is UTF-8");
        let is_test = name.contains("/tests/") || name.contains("/examples/");
        // Unit tests may panic as they like.
        let product = product(&text);
        for (number, line) in product.lines().enumerate() {
            for (word, cure) in &words {
                if line.contains(word.as_str()) && !is_test {
                    wrong.push(format!("{name}:{}: {word}: {cure}", number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Only these print, or end the process: one place makes the words of others harmless, sees whether output arrived, and
/// knows the exit statuses. The journal has nobody to return an error to, and an agent's parent reads what it prints.
const MAY_PRINT: &[&str] = &[
    "cli/src/terminal.rs",
    "cli/src/terminal/",
    "cli/src/fault.rs",
    "lab/src/place/undo/journal.rs",
    "sandbox/src/agent/child.rs",
];

#[test]
fn everything_printed_passes_one_place() {
    let root = root();
    let mut files = Vec::new();
    rust_files(&root.join("crates"), &mut files);
    let words = ["println!(", "print!(", "stdout()", "stderr()", "process::exit", "process::abort", "indicatif::"];
    let (mut wrong, mut printing) = (Vec::new(), 0);
    for file in files {
        let name = file.strip_prefix(root.join("crates")).expect("below").display().to_string();
        if !name.contains("/src/") || name.starts_with("bench/") || name.ends_with("/tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("source is UTF-8");
        for (number, line) in product(&text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if !words.iter().any(|word| code.contains(word)) {
                continue;
            }
            printing += 1;
            if !MAY_PRINT.iter().any(|may| name.starts_with(may)) {
                wrong.push(format!("crates/{name}:{}: print with crate::terminal, end with an Exit", number + 1));
            }
        }
    }
    assert!(printing > 5, "the rule finds those who may: {printing}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What makes an error print its cause twice: a text that names the cause, and a chain that leads to it as well.
///
/// One rule for the whole workspace: an error's text names its cause, and no error of ours chains one. Only what is
/// `transparent` has a `#[from]`, since it has no text of its own. The binary adds contexts; these are printed as a chain.
fn chained_causes(text: &str) -> Vec<usize> {
    let (mut in_error, mut transparent, mut found) = (false, false, Vec::new());
    for (number, line) in text.lines().enumerate() {
        let code = line.trim_start();
        match code {
            _ if code.starts_with("#[derive(") && code.contains("Error") => in_error = true,
            _ if line == "}" || line.ends_with(");") && !line.starts_with(' ') => in_error = false,
            _ if code.starts_with("#[error(") => transparent = code.starts_with("#[error(transparent)"),
            _ => {}
        }
        let field = code.strip_prefix("pub ").unwrap_or(code).starts_with("source:");
        let chains = in_error && (field || code.contains("#[source]") || code.contains("#[from]") && !transparent);
        if chains || code.starts_with("fn source(&self) -> Option<&(dyn") {
            found.push(number + 1);
        }
    }
    found
}

#[test]
fn a_cause_is_printed_once() {
    let twice = "#[derive(Debug, thiserror::Error)]\nenum E {\n    #[error(\"a: {source}\")]\n    A { source: B },\n    \
                 #[error(\"c: {0}\")]\n    C(#[from] D),\n    #[error(transparent)]\n    T(#[from] U),\n}\nstruct S {\n    \
                 source: B,\n}\n";
    assert_eq!(
        chained_causes(&twice.replace("A { source", "A {\n        source")),
        [5, 7],
        "the rule finds both kinds"
    );
    let root = root();
    let mut files = Vec::new();
    rust_files(&root.join("crates"), &mut files);
    let wrong: Vec<String> = files
        .iter()
        .flat_map(|file| {
            let text = fs::read_to_string(file).expect("source is UTF-8");
            chained_causes(&text).into_iter().map(|line| format!("{}:{line}", file.display())).collect::<Vec<_>>()
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "these chain a cause that their text names: call the field `cause`, write `impl From` for #[from]\n{}",
        wrong.join("\n")
    );
}

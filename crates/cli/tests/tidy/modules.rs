//! Which file of a crate depends on which.
//!
//! A file depends on another when it names something that the other defines: in a `use`, or by a path that starts at
//! `crate`, `super`, `self`, an imported module or a child. What a `mod.rs` passes on (`pub use child::Thing`) is looked
//! for where it is defined, so a folder's own file may list its children while they use each other. What a macro's body
//! names counts for the file that defines the macro. What only tests have does not count, and calls of methods are not seen.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// `["compare", "html"]` for `compare/html.rs`; empty for the root.
pub(crate) type ModulePath = Vec<String>;

pub(crate) struct Crate {
    pub(crate) modules: BTreeMap<ModulePath, Module>,
}

pub(crate) struct Module {
    file: String,
    /// Names that `use` brings in: name → where it is from, as written, and whether it is passed on.
    imports: Vec<Import>,
    paths: BTreeSet<Vec<String>>,
    /// Words in the code outside `use`.
    words: BTreeSet<String>,
    items: BTreeSet<String>,
}

struct Import {
    /// What it is called here; `*` for everything.
    name: String,
    path: Vec<String>,
    passed_on: bool,
}

fn module_path(file: &Path) -> ModulePath {
    let mut path: ModulePath =
        file.with_extension("").components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    if path.last().is_some_and(|last| last == "mod" || (path.len() == 1 && (last == "lib" || last == "main"))) {
        path.pop();
    }
    path
}

impl Crate {
    pub(crate) fn planted(files: &[(&str, &str)]) -> Self {
        let modules = files.iter().map(|(path, text)| (module_path(Path::new(path)), Module::of(path, text)));
        Self { modules: modules.collect() }
    }

    pub(crate) fn read(source: &Path) -> Self {
        let mut files: Vec<PathBuf> = Vec::new();
        super::rust_files(source, &mut files);
        let modules = files.iter().map(|file| {
            let name = file.strip_prefix(source).expect("below the source");
            let text = fs::read_to_string(file).expect("source is UTF-8");
            (module_path(name), Module::of(&name.display().to_string(), &text))
        });
        Self { modules: modules.collect() }
    }

    /// For each file those that it depends on, and by which name.
    pub(crate) fn edges(&self) -> Edges<'_> {
        let mut edges = Edges::new();
        for (at, module) in &self.modules {
            let mut targets = BTreeMap::new();
            for path in module.named(self, at) {
                if let Some(target) = self.definer(&path, 0).filter(|target| target != at) {
                    targets.entry(target).or_insert_with(|| path.join("::"));
                }
            }
            edges.insert(at, targets);
        }
        edges
    }

    pub(crate) fn file(&self, path: &ModulePath) -> &str {
        &self.modules[path].file
    }

    /// The module that defines what a path from the crate's root names; `None` for a module itself.
    fn definer(&self, path: &[String], depth: usize) -> Option<ModulePath> {
        let known = (0..=path.len()).rev().find(|length| self.modules.contains_key(&path[..*length]))?;
        let (at, rest) = path.split_at(known);
        let item = rest.first()?;
        let module = &self.modules[at];
        if !module.items.contains(item) && depth < 8 {
            let follow = |import: &Import, tail: &[String]| {
                let from = self.absolute(&import.path, at)?;
                self.definer(&[&from, tail].concat(), depth + 1)
            };
            if let Some(import) = module.imports.iter().find(|import| import.name == *item) {
                return follow(import, &rest[1..]);
            }
            let glob = |import: &&Import| import.name == "*" && import.passed_on;
            for import in module.imports.iter().filter(glob) {
                let from = self.absolute(&import.path, at);
                if from.is_some_and(|from| self.modules.get(&from).is_some_and(|there| there.items.contains(item))) {
                    return follow(import, rest);
                }
            }
        }
        Some(at.to_vec())
    }

    /// A path as written in a module, from the crate's root; `None` when it leads out of the crate.
    fn absolute(&self, path: &[String], at: &[String]) -> Option<Vec<String>> {
        let first = path.first()?;
        match first.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([at, &path[1..]].concat()),
            "super" => {
                let up = path.iter().take_while(|part| *part == "super").count();
                Some([at.get(..at.len().checked_sub(up)?)?, &path[up..]].concat())
            }
            _ => {
                let child = [at, std::slice::from_ref(first)].concat();
                if self.modules.contains_key(&child) {
                    return Some([at, path].concat());
                }
                let import = self.modules[at].imports.iter().find(|import| import.name == *first)?;
                // An import of its own name from another crate leads nowhere.
                let from = (import.path.first() != Some(first)).then(|| self.absolute(&import.path, at))??;
                Some([&from, &path[1..]].concat())
            }
        }
    }
}

const DEFINES: [&str; 9] = ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules"];

pub(crate) type Edges<'a> = BTreeMap<&'a ModulePath, BTreeMap<ModulePath, String>>;

impl Module {
    fn of(file: &str, text: &str) -> Self {
        let code = without_comments(&super::product(text));
        let (uses, rest) = split_uses(&code);
        let mut imports = Vec::new();
        for (tree, passed_on) in uses {
            flatten(&tree, &[], &mut |name, path| imports.push(Import { name, path, passed_on }));
        }
        let (mut paths, mut words, mut items) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut before = String::new();
        for path in paths_of(&rest) {
            let defines = DEFINES.contains(&before.as_str());
            if defines && path.len() == 1 {
                items.insert(path[0].clone());
            }
            if before != "mod" {
                words.extend(path.iter().take(1).cloned());
            }
            before = path.last().cloned().unwrap_or_default();
            if path.len() > 1 {
                paths.insert(path);
            }
        }
        Self { file: file.to_owned(), imports, paths, words, items }
    }

    /// What it uses itself of that which it passes on as `pub use child::*`.
    fn used_of_globs(&self, of: &Crate, at: &ModulePath) -> Vec<Vec<String>> {
        let globs = self.imports.iter().filter(|import| import.name == "*" && import.passed_on);
        globs
            .filter_map(|import| of.absolute(&import.path, at))
            .filter_map(|from| of.modules.get(&from).map(|there| (from, there)))
            .flat_map(|(from, there)| {
                let used = there.items.intersection(&self.words);
                used.map(|item| [from.as_slice(), std::slice::from_ref(item)].concat()).collect::<Vec<_>>()
            })
            .collect()
    }

    /// Everything that it names, from the crate's root.
    fn named(&self, of: &Crate, at: &ModulePath) -> Vec<Vec<String>> {
        let imported = self.imports.iter().filter(|import| !import.passed_on || self.words.contains(&import.name));
        let everything = self.imports.iter().filter(|import| import.name == "*" && !import.passed_on);
        let everything = everything.map(|import| [&import.path[..], &["*".to_owned()]].concat());
        imported
            .filter(|import| import.name != "*")
            .map(|import| import.path.clone())
            .chain(everything)
            .chain(self.paths.iter().cloned())
            .filter_map(|path| of.absolute(&path, at))
            .chain(self.used_of_globs(of, at))
            .collect()
    }
}

/// Comments and what stands in quotation marks hold no paths.
fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(['/', '"', '\'']) {
        let (before, from) = rest.split_at(start);
        code.push_str(before);
        let skipped = if from.starts_with("//") {
            from.find('\n').unwrap_or(from.len())
        } else if let Some(body) = from.strip_prefix('"') {
            let hashes = before.len() - before.trim_end_matches('#').len();
            let raw = before.trim_end_matches('#').ends_with('r');
            1 + if raw { raw_end(body, hashes) } else { string_end(body) }
        } else if from.starts_with("'\"'") || from.starts_with("'/'") {
            3
        } else if let Some(escape) = from.strip_prefix("'\\") {
            2 + escape.char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1)
        } else {
            code.push_str(&from[..1]);
            1
        };
        rest = &from[skipped..];
    }
    code + rest
}

fn raw_end(body: &str, hashes: usize) -> usize {
    let end = format!("\"{}", "#".repeat(hashes));
    body.find(&end).map_or(body.len(), |at| at + end.len())
}

fn string_end(body: &str) -> usize {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    body.len()
}

/// The trees of `use` with whether they are passed on, and the code without them.
fn split_uses(code: &str) -> (Vec<(String, bool)>, String) {
    let (mut uses, mut rest) = (Vec::new(), String::new());
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        let (visibility, tree) = match trimmed.split_once("use ") {
            Some((before, tree)) if before.is_empty() || before.starts_with("pub") => (before, tree),
            _ => {
                rest.push_str(line);
                rest.push('\n');
                continue;
            }
        };
        let mut tree = tree.to_owned();
        while !tree.contains(';') {
            tree.push_str(lines.next().expect("a use ends"));
        }
        let tree: String = tree.split(';').next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        uses.push((tree, !visibility.is_empty()));
    }
    (uses, rest)
}

/// `a::{b, c::{self, D as E}}` as (name here, path).
fn flatten(tree: &str, prefix: &[String], found: &mut dyn FnMut(String, Vec<String>)) {
    let tree = tree.trim();
    if let Some((head, body)) = tree.split_once('{') {
        let prefix = [prefix, &segments(head)].concat();
        let body = body.trim_end().strip_suffix('}').expect("braces are closed");
        let (mut depth, mut start) = (0, 0);
        for (index, c) in body.char_indices().chain([(body.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    if !body[start..index].trim().is_empty() {
                        flatten(&body[start..index], &prefix, found);
                    }
                    start = (index + 1).min(body.len());
                }
                _ => {}
            }
        }
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias.trim())));
    let mut path = [prefix, &segments(path)].concat();
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let Some(last) = path.last().cloned() else { return };
    if last == "*" {
        path.pop();
    }
    found(alias.map_or(last, str::to_owned), path);
}

fn segments(path: &str) -> Vec<String> {
    path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Every `a::b::c` and every single word, in order.
fn paths_of(code: &str) -> Vec<Vec<String>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut paths: Vec<Vec<String>> = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(is_word) {
        let joined = rest[..start].trim() == "::";
        let end = rest[start..].find(|c| !is_word(c)).map_or(rest.len(), |length| start + length);
        let word = rest[start..end].to_owned();
        match paths.last_mut() {
            Some(path) if joined => path.push(word),
            _ => paths.push(vec![word]),
        }
        rest = &rest[end..];
    }
    paths
}

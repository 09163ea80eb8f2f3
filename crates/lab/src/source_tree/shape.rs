//! How a kernel tree is shaped: tables measured on the source of Linux 6.1 (Debian's linux-source-6.1, 6.1.192:
//! 78,579 regular files in 5,095 directories, 1,298,681,992 bytes), and a layout drawn from them.

use super::draw::Draw;
use std::{collections::HashSet, path::PathBuf};

/// Files at the top besides its `Kbuild`: Makefile, the recursive part, main, configurations.
pub(super) const TOP_FILES: usize = 3;

/// Files per directory of the measured tree.
const FILES_PER_DIRECTORY: f64 = 78_579.0 / 5_096.0;

/// File sizes: (% of files, bytes). The largest are cut off: generated register tables of up to 24 MB, 0.1 % of the files,
/// would decide by themselves what a small tree weighs. The mean then comes to 16.5 kB, the measured one.
const SIZE: &[(f64, f64)] = &[
    (0.0, 0.0),
    (1.0, 73.0),
    (5.0, 254.0),
    (10.0, 446.0),
    (20.0, 959.0),
    (30.0, 1_621.0),
    (40.0, 2_525.0),
    (50.0, 3_874.0),
    (60.0, 5_910.0),
    (70.0, 9_044.0),
    (80.0, 14_833.0),
    (90.0, 28_759.0),
    (95.0, 48_093.0),
    (98.0, 83_945.0),
    (99.0, 124_858.0),
    (99.5, 191_202.0),
    (99.9, 1_120_270.0),
    (100.0, 8_000_000.0),
];

/// Directories at depth 1, 2, …: their shares.
const DIRECTORY_DEPTH: &[(usize, f64)] =
    &[(1, 24.0), (2, 608.0), (3, 1505.0), (4, 1383.0), (5, 835.0), (6, 287.0), (7, 233.0), (8, 164.0), (9, 56.0)];

/// Files in a directory: (% of directories, files).
const DIRECTORY_FILES: &[(f64, f64)] = &[
    (0.0, 0.0),
    (10.0, 1.0),
    (25.0, 3.0),
    (50.0, 6.0),
    (75.0, 14.0),
    (90.0, 32.0),
    (95.0, 52.0),
    (99.0, 156.0),
    (100.0, 2545.0),
];

/// Lengths of file names, and of directory names.
const FILE_NAME: &[(f64, f64)] =
    &[(0.0, 4.0), (5.0, 5.0), (25.0, 8.0), (50.0, 12.0), (75.0, 16.0), (95.0, 24.0), (99.0, 32.0), (100.0, 60.0)];
const DIRECTORY_NAME: &[(f64, f64)] =
    &[(0.0, 1.0), (5.0, 3.0), (25.0, 4.0), (50.0, 5.0), (75.0, 7.0), (95.0, 12.0), (100.0, 23.0)];

/// Top-level directories, where a kernel has 24.
const TOP: &[&str] = &[
    "drivers",
    "arch",
    "include",
    "tools",
    "Documentation",
    "sound",
    "fs",
    "net",
    "kernel",
    "lib",
    "mm",
    "crypto",
    "security",
    "scripts",
    "block",
    "samples",
    "virt",
    "init",
    "ipc",
    "usr",
    "certs",
    "rust",
    "firmware",
    "platform",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    C,
    Header,
    /// Prose, device trees, tables: text with this ending.
    Text(&'static str),
}

/// Endings and their shares in %.
const KINDS: &[(Kind, f64)] = &[
    (Kind::C, 40.7),
    (Kind::Header, 29.8),
    (Kind::Text(".rst"), 4.1),
    (Kind::Text(".yaml"), 3.8),
    (Kind::Text(".dts"), 3.3),
    (Kind::Text(".txt"), 2.7),
    (Kind::Text(".dtsi"), 2.4),
    (Kind::Text(""), 2.6),
    (Kind::Text(".inc"), 1.7),
    (Kind::Text(".sh"), 1.0),
    (Kind::Text(".json"), 0.8),
    (Kind::Text(".py"), 0.2),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) size_bytes: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Directory {
    /// Relative to the top; empty for the top itself, which comes first.
    pub(super) path: PathBuf,
    pub(super) subdirectories: Vec<String>,
    /// Its files but for its `Kbuild`.
    pub(super) files: Vec<Planned>,
}

/// The whole tree; parents come before their children.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) directories: Vec<Directory>,
}

/// Draws a tree of exactly this many files, those of the build (see `makefile`) included.
pub(super) fn layout(files: u64, seed: u64) -> Layout {
    let mut draw = Draw::new(seed, &[1]);
    let mut directories = tree(((files as f64 / FILES_PER_DIRECTORY).round() as usize).max(3), &mut draw);
    // Every directory has a Kbuild; the top has the files of the build besides.
    let own = (files as usize).saturating_sub(directories.len() + TOP_FILES);
    let weights: Vec<f64> = directories.iter().map(|_| draw.quantile(DIRECTORY_FILES)).collect();
    let total: f64 = weights.iter().sum::<f64>().max(1.0);
    let mut dealt = 0;
    let mut passed = 0.0;
    for (directory, weight) in directories.iter_mut().zip(&weights) {
        passed += weight;
        // Rounding the running sum rather than each share makes the numbers add up to exactly `own`.
        let until = (own as f64 * passed / total).round() as usize;
        fill(directory, until - dealt, &mut draw);
        dealt = until;
    }
    let last = directories.len() - 1;
    fill(&mut directories[last], own - dealt, &mut draw);
    Layout { directories }
}

fn tree(count: usize, draw: &mut Draw) -> Vec<Directory> {
    let new = |path: PathBuf| Directory { path, subdirectories: Vec::new(), files: Vec::new() };
    let mut depths: Vec<usize> = (1..count).map(|_| *draw.weighted(DIRECTORY_DEPTH)).collect();
    depths.sort_unstable();
    // A small tree may draw nothing at some depth; its deeper directories move up so that each has a parent.
    let mut reachable = 0;
    for depth in &mut depths {
        *depth = (*depth).min(reachable + 1);
        reachable = *depth;
    }
    let mut directories = vec![new(PathBuf::new())];
    let mut at_depth: Vec<Vec<usize>> = vec![vec![0]];
    for depth in depths {
        // Squaring the draw crowds the first-born: a kernel's directories have 0 subdirectories, or many.
        let parents = &at_depth[depth - 1];
        let parent = parents[(draw.unit().powi(2) * parents.len() as f64) as usize];
        let siblings = &directories[parent].subdirectories;
        let fixed = (depth == 1).then(|| TOP.get(siblings.len())).flatten().map(|name| (*name).to_owned());
        let name = fixed
            .unwrap_or_else(|| unused(draw, DIRECTORY_NAME, "", |name| siblings.iter().any(|sibling| sibling == name)));
        let path = directories[parent].path.join(&name);
        directories[parent].subdirectories.push(name);
        if at_depth.len() == depth {
            at_depth.push(Vec::new());
        }
        at_depth[depth].push(directories.len());
        directories.push(new(path));
    }
    directories
}

fn fill(directory: &mut Directory, count: usize, draw: &mut Draw) {
    let mut taken: HashSet<String> = directory.files.iter().map(|file| file.name.clone()).collect();
    taken.extend(directory.subdirectories.iter().cloned());
    taken.insert("Kbuild".to_owned());
    for _ in 0..count {
        let kind = *draw.weighted(KINDS);
        let ending = match kind {
            Kind::C => ".c",
            Kind::Header => ".h",
            Kind::Text(ending) => ending,
        };
        let name = unused(draw, FILE_NAME, ending, |name| taken.contains(name));
        taken.insert(name.clone());
        directory.files.push(Planned { name, kind, size_bytes: draw.quantile(SIZE) as usize });
    }
}

fn unused(draw: &mut Draw, lengths: &[(f64, f64)], ending: &str, taken: impl Fn(&str) -> bool) -> String {
    const CONSONANTS: &[u8] = b"bcdfghklmnprstvwxz";
    const VOWELS: &[u8] = b"aeiou";
    let mut extra = 0;
    loop {
        let length = (draw.quantile(lengths).round() as usize).saturating_sub(ending.len()).max(2) + extra;
        let mut name = String::with_capacity(length + ending.len());
        for position in 0..length {
            let letter = match position {
                position if position > 3 && position + 2 < length && draw.below(9) == 0 => b'_',
                position if position % 2 == 0 => *draw.pick(CONSONANTS),
                _ => *draw.pick(VOWELS),
            };
            name.push(char::from(letter));
        }
        name.push_str(ending);
        // The names of the build's own files at the top are upper case or reserved here.
        if !taken(&name) && name != "image" {
            return name;
        }
        // A crowded directory runs out of short names.
        extra += 1;
    }
}

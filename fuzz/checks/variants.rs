//! Seeds of a fuzz target, and texts that are nearly like them, always the same ones. For tests.

use std::{fs, path::PathBuf};

/// Of the seeds of a target, if FSTONE_FUZZ does not say how many.
const VARIANTS: usize = 2000;

/// Steele and others' SplitMix64: as good as needed here, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }
}

fn seeds(target: &str) -> Vec<String> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)
        .expect("the corpus is part of the source")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths.into_iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

fn variant(random: &mut Random, seed: &str, other: &str) -> String {
    let mut lines: Vec<&str> = seed.lines().collect();
    let others: Vec<&str> = other.lines().collect();
    for _ in 0..=random.below(3) {
        let at = random.below(lines.len());
        match random.below(3) {
            0 if !lines.is_empty() => drop(lines.remove(at)),
            1 if !lines.is_empty() => lines.insert(at, lines[random.below(lines.len())]),
            _ if !others.is_empty() => lines.insert(at, others[random.below(others.len())]),
            _ => {}
        }
    }
    let mut text: Vec<char> = lines.join("\n").chars().collect();
    for _ in 0..random.below(4) {
        let at = random.below(text.len());
        let with = ['0', '9', '-', '=', '[', '"', '\n', ' ', 'k', 'é', '\u{0}'][random.below(11)];
        if random.below(2) == 0 && !text.is_empty() {
            text[at] = with;
        } else {
            text.insert(at, with);
        }
    }
    text.into_iter().collect()
}

pub(crate) fn run(target: &str, check: fn(&str)) {
    let count = std::env::var("FSTONE_FUZZ").ok().and_then(|count| count.parse().ok()).unwrap_or(VARIANTS);
    let seeds = seeds(target);
    assert!(!seeds.is_empty(), "{target} has seeds");
    let mut random = Random(1);
    for seed in &seeds {
        check(seed);
        for _ in 0..count.div_ceil(seeds.len()) {
            let other = &seeds[random.below(seeds.len())];
            check(&variant(&mut random, seed, other));
        }
    }
}

//! Ageing: how a filesystem was used before it is measured.

use crate::{fnv::fnv1a, units::percent};
use serde::{Deserialize, Serialize};

/// Where the past of a filesystem comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Past {
    Aged(Age),
    Image(OldImage),
}

/// The image of a filesystem that lived elsewhere, of which trials get copies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OldImage {
    /// An absolute path on the host, without links.
    pub file: String,
    /// What it holds, in the words of blkid: "ext4".
    pub holds: String,
    pub size_bytes: u64,
    /// When it was changed last, since 1970. An image of another size or time is another one.
    pub modified_ns: u64,
}

/// The state that ageing has to reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Age {
    pub profile: Profile,
    /// The share of the filesystem that is in use at the end, 0 to 1, as df(1) counts.
    pub utilization: f64,
    /// Bytes written altogether, as a multiple of the filesystem's size.
    pub overwrites: f64,
    /// The share of the data that a compressor can remove, 0 to 1.
    pub compressible: f64,
    /// Unless given, each repetition has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// What the files of a filesystem are like: three distributions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    pub name: String,
    /// In bytes. A file of a class is larger than those of the class before it.
    pub sizes: Vec<Class>,
    /// In hours.
    pub ages: Vec<Class>,
    pub depths: Vec<Depth>,
    /// The share of the written bytes that overwrite others in place, a page at a time; without it, a few parts of files are overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwritten: Option<f64>,
    /// The share of the files that grow a page at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub appended: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Class {
    pub up_to: f64,
    /// Its share of the files, in any unit.
    pub weight: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Depth {
    /// How many directories are above a file.
    pub depth: u32,
    pub weight: f64,
    /// How many directories there are at this depth.
    pub directories: u32,
}

/// The directory of the files that age a filesystem.
pub const AGED_DIRECTORY: &str = ".aged";
/// How far a state may miss its targets before it is marked, as a share.
pub const TOLERANCE: f64 = 0.05;
pub const MAXIMUM_UTILIZATION: f64 = 0.95;
/// More would leave too little for the files themselves.
const MOST_OVERWRITTEN: f64 = 0.95;

const MAXIMUM_CLASSES: usize = 100;
const MAXIMUM_DEPTH: u32 = 100;
const MAXIMUM_DIRECTORIES: u32 = 100_000;
const LARGEST: f64 = (1u64 << 50) as f64;

impl Past {
    /// Its profile, or its image without the directory.
    pub fn name(&self) -> &str {
        match self {
            Self::Aged(age) => &age.profile.name,
            Self::Image(image) => image.name(),
        }
    }

    /// "agrawal, 80 % in use, 10 overwrites".
    pub fn brief(&self) -> String {
        match self {
            Self::Aged(age) => {
                let [_, utilization, overwrites, ..] = age.words();
                [Some(age.profile.name.clone()), utilization, overwrites]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(", ")
            }
            Self::Image(_) => self.describe(),
        }
    }

    /// The same, and what else was asked for: "30 % compressible, seed 7".
    pub fn describe(&self) -> String {
        match self {
            Self::Aged(age) => age.words().into_iter().flatten().collect::<Vec<_>>().join(", "),
            Self::Image(image) => format!("a copy of {}", image.file),
        }
    }

    pub const fn image(&self) -> Option<&OldImage> {
        match self {
            Self::Aged(_) => None,
            Self::Image(image) => Some(image),
        }
    }

    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Aged(age) => age.check(),
            Self::Image(_) => Ok(()),
        }
    }
}

impl From<Age> for Past {
    fn from(age: Age) -> Self {
        Self::Aged(age)
    }
}

impl OldImage {
    pub fn name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or_default()
    }
}

impl Age {
    /// Each property in words; `None` where a study leaves it out.
    fn words(&self) -> [Option<String>; 5] {
        let Self { profile, utilization, overwrites, compressible, seed } = self;
        let plural = if *overwrites == 1.0 { "" } else { "s" };
        [
            Some(profile.describe()),
            Some(format!("{} in use", percent(*utilization))),
            Some(format!("{overwrites} overwrite{plural}")),
            (*compressible > 0.0).then(|| format!("{} compressible", percent(*compressible))),
            seed.map(|seed| format!("seed {seed}")),
        ]
    }

    /// In which properties two ages differ: all that are not alike, in words.
    pub fn differences(&self, other: &Self) -> (String, String) {
        let defaults = ["", "", "", "0 % compressible", "a seed for each repetition"];
        let pairs = self.words().into_iter().zip(other.words()).zip(defaults).filter(|((a, b), _)| a != b);
        let told = |word: Option<String>, default: &str| word.unwrap_or_else(|| default.to_owned());
        let (a, b): (Vec<_>, Vec<_>) = pairs.map(|((a, b), default)| (told(a, default), told(b, default))).unzip();
        (a.join(", "), b.join(", "))
    }

    pub fn check(&self) -> Result<(), String> {
        let Self { utilization, overwrites, compressible, .. } = self;
        if !(*utilization > 0.0 && *utilization <= MAXIMUM_UTILIZATION) {
            return Err(format!("a utilization must be above 0 % and at most {}", percent(MAXIMUM_UTILIZATION)));
        }
        if *overwrites > 10_000.0 {
            return Err(format!("{overwrites} overwrites are too many: expected at most 10000"));
        }
        if overwrites.is_nan() || *overwrites < *utilization {
            return Err(format!(
                "{overwrites} overwrites cannot fill {} of a filesystem: expected at least {utilization}",
                percent(*utilization)
            ));
        }
        if !(0.0..=1.0).contains(compressible) {
            return Err("what can be compressed is a share from 0 to 1".to_owned());
        }
        self.profile.check()
    }
}

impl Profile {
    /// Its name; with a hash if it is of a file, which may have changed: "own.toml (1f2e3d4c)".
    fn describe(&self) -> String {
        let hash = || fnv1a(format!("{self:?}").as_bytes()) as u32;
        if self.name.ends_with(".toml") { format!("{} ({:08x})", self.name, hash()) } else { self.name.clone() }
    }

    pub fn check(&self) -> Result<(), String> {
        for (what, classes) in [("sizes", &self.sizes), ("ages", &self.ages)] {
            if classes.is_empty() || classes.len() > MAXIMUM_CLASSES {
                return Err(format!("{what}: expected 1 to {MAXIMUM_CLASSES} rows"));
            }
            let mut before = -1.0;
            for Class { up_to, weight } in classes {
                if !(*up_to > before && *up_to <= LARGEST && *weight >= 0.0 && *weight <= LARGEST) {
                    return Err(format!("{what}: [{up_to}, {weight}] is not above the row before it, or below 0"));
                }
                before = *up_to;
            }
        }
        if self.depths.is_empty() || self.depths.len() > MAXIMUM_CLASSES {
            return Err(format!("directories: expected 1 to {MAXIMUM_CLASSES} rows"));
        }
        let mut before = None;
        for Depth { depth, weight, directories } in &self.depths {
            let follows = before.is_none_or(|before| *depth > before) && *depth <= MAXIMUM_DEPTH;
            if !(follows && *weight >= 0.0 && *weight <= LARGEST && *directories <= MAXIMUM_DIRECTORIES) {
                return Err(format!("directories: [{depth}, {weight}, {directories}] cannot be there"));
            }
            before = Some(*depth);
        }
        let sums = [weights(&self.sizes), weights(&self.ages), self.depth_weights()];
        if sums.iter().any(|weights| weights.iter().sum::<f64>() <= 0.0) {
            return Err("the weights of a distribution are all 0".to_owned());
        }
        if self.sizes.iter().all(|class| class.weight == 0.0 || class.up_to == 0.0) {
            return Err("sizes: files that are all empty fill nothing".to_owned());
        }
        for (what, share, most) in
            [("overwritten", self.overwritten, MOST_OVERWRITTEN), ("appended", self.appended, 1.0)]
        {
            if share.is_some_and(|share| !(0.0..=most).contains(&share)) {
                return Err(format!("{what}: a share from 0 to {}", percent(most)));
            }
        }
        Ok(())
    }

    pub fn depth_weights(&self) -> Vec<f64> {
        self.depths.iter().map(|depth| depth.weight).collect()
    }
}

pub fn weights(classes: &[Class]) -> Vec<f64> {
    classes.iter().map(|class| class.weight).collect()
}

/// The class that a value falls into; the last one for what is above all.
pub fn class_of(classes: &[Class], value: f64) -> usize {
    classes.partition_point(|class| class.up_to < value).min(classes.len() - 1)
}

/// How counts compare with weights: χ², and the share of the files that are in a wrong class (the total variation distance).
pub fn compare(counts: &[u64], weights: &[f64]) -> (f64, f64) {
    let (total, sum) = (counts.iter().sum::<u64>() as f64, weights.iter().sum::<f64>());
    if total == 0.0 {
        return (0.0, 1.0);
    }
    let pairs = || counts.iter().map(|count| *count as f64).zip(weights.iter().map(|weight| weight / sum * total));
    let square = |(count, expected): (f64, f64)| {
        // Nothing is expected of a class without weight, which would make one file there infinitely bad.
        if expected > 0.0 { (count - expected).powi(2) / expected } else { count }
    };
    (pairs().map(square).sum(), pairs().map(|(count, expected)| (count - expected).abs()).sum::<f64>() / (2.0 * total))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn age() -> Age {
        let class = |up_to, weight| Class { up_to, weight };
        let profile = Profile {
            name: "p".into(),
            sizes: vec![class(0.0, 1.0), class(4096.0, 3.0)],
            ages: vec![class(1.0, 1.0)],
            depths: vec![Depth { depth: 1, weight: 1.0, directories: 2 }],
            overwritten: Some(0.5),
            appended: None,
        };
        Age { profile, utilization: 0.8, overwrites: 10.0, compressible: 0.0, seed: None }
    }

    #[test]
    fn impossible_states_are_refused() {
        assert_eq!(age().check(), Ok(()));
        let wrong = |change: fn(&mut Age)| {
            let mut age = age();
            change(&mut age);
            age.check().expect_err("it is wrong")
        };
        assert!(wrong(|age| age.utilization = 0.96).contains("at most 95 %"));
        assert!(wrong(|age| age.utilization = f64::NAN).contains("above 0 %"));
        assert!(wrong(|age| age.overwrites = 0.5).contains("cannot fill 80 %"));
        assert!(wrong(|age| age.profile.sizes.reverse()).starts_with("sizes: [0, 1]"));
        assert!(wrong(|age| age.profile.sizes[1].weight = 0.0).contains("all empty"));
        assert!(wrong(|age| age.profile.ages[0].weight = 0.0).contains("all 0"));
        assert!(wrong(|age| age.profile.overwritten = Some(0.96)).contains("overwritten: a share from 0 to 95 %"));
        assert!(wrong(|age| age.profile.depths[0].depth = 101).contains("[101, 1, 2]"));
    }

    #[test]
    fn what_was_asked_for_is_in_the_words_and_all_that_differs() {
        let one = Age { utilization: 0.57, overwrites: 1.0, ..age() };
        assert_eq!(Past::from(one.clone()).describe(), "p, 57 % in use, 1 overwrite");
        let other = Age { utilization: 0.29, compressible: 0.07, seed: Some(7), ..one.clone() };
        assert_eq!(Past::from(other.clone()).describe(), "p, 29 % in use, 1 overwrite, 7 % compressible, seed 7");
        let differences =
            ["57 % in use, 0 % compressible, a seed for each repetition", "29 % in use, 7 % compressible, seed 7"];
        assert_eq!(one.differences(&other), differences.map(str::to_owned).into());
        let mut profile = Profile { name: "own.toml".into(), ..one.profile.clone() };
        let before = Past::from(Age { profile: profile.clone(), ..one.clone() }).describe();
        profile.sizes[0].weight += 1.0;
        let after = Past::from(Age { profile, ..one }).describe();
        assert!(before.starts_with("own.toml (") && after.starts_with("own.toml (") && before != after, "{before}");
    }

    #[test]
    fn classes_and_how_counts_compare() {
        let sizes = age().profile.sizes;
        assert_eq!([0.0, 1.0, 4096.0, 5000.0].map(|size| class_of(&sizes, size)), [0, 1, 1, 1]);
        assert_eq!(compare(&[25, 75], &[1.0, 3.0]), (0.0, 0.0));
        let (chi, share) = compare(&[50, 50], &[1.0, 3.0]);
        assert!((chi - (625.0 / 25.0 + 625.0 / 75.0)).abs() < 1e-9 && (share - 0.25).abs() < 1e-9);
        assert_eq!(compare(&[0, 0], &[1.0, 3.0]).1, 1.0);
    }
}

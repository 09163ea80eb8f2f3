//! What the command line changes in a study.

use std::{str::FromStr, time::Duration};

/// What the command line changes in a study. It goes before anything the study says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    pub quick: bool,
    /// How long every load runs that is limited by time.
    pub duration: Option<Duration>,
    /// How often each cell is tried, at least and at most. When the two differ and the study does not say when it is
    /// enough, it is at an interval of ±2 %.
    pub repeats: Option<(u32, u32)>,
    /// The time to deal out instead of repeats.
    pub budget: Option<Duration>,
    /// Differences of at most this share do not matter to it.
    pub resolution: Option<f64>,
    pub device: Option<DeviceChoice>,
    /// Size of the loop image or the compressed-RAM disk.
    pub device_size: Option<u64>,
    pub seed: Option<u64>,
    /// The seed when neither this nor the study names one; 1 when this is `None` too.
    pub fresh_seed: Option<u64>,
    /// Only these levels: (factor, pattern). `*` stands for any text, `?` for any character. Patterns of the same
    /// factor add up.
    pub only: Vec<(String, String)>,
    /// Other values of the study's variables: (name, value). The last one of a name counts.
    pub variables: Vec<(String, String)>,
    /// Why no load of several ranks can be carried out here, and what helps: a study that has one is refused.
    pub no_ranks: Option<(&'static str, &'static str)>,
}

impl Overrides {
    pub(crate) const fn change_the_time(&self) -> bool {
        self.duration.is_some()
            || self.repeats.is_some()
            || self.budget.is_some()
            || self.device.is_some()
            || !self.only.is_empty()
            || !self.variables.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A loop image on disk, of the study's size unless [`Overrides::device_size`] says another.
    Loop,
    /// A loop image in memory, likewise.
    Memory,
    /// A compressed-RAM disk, likewise.
    Zram,
    Block(String),
    /// A directory that is there; the work directory when `None`.
    Directory(Option<String>),
}

impl FromStr for DeviceChoice {
    type Err = String;

    /// `loop`, `memory`, `zram`, `directory`, `directory:PATH`, or the path of a block device.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "loop" => Ok(Self::Loop),
            "memory" => Ok(Self::Memory),
            "zram" => Ok(Self::Zram),
            "directory" => Ok(Self::Directory(None)),
            _ => match text.strip_prefix("directory:") {
                Some(path) if !path.is_empty() => Ok(Self::Directory(Some(path.to_owned()))),
                None if text.starts_with("/dev/") => Ok(Self::Block(text.to_owned())),
                _ => Err(format!(
                    "{text:?} is not a device: use loop, memory, zram, directory, directory:PATH or a path below /dev"
                )),
            },
        }
    }
}

/// Whether a text matches a pattern with `*` and `?`.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    // Where to go on after a mismatch: behind the last star, one character further than it was tried.
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((behind, tried)) => {
                    star = Some((behind, tried + 1));
                    p = behind;
                    t = tried + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("ext4*", "ext4 flex_bg", true),
            ("*flex*64", "ext4 flex_bg -G 64", true),
            ("ext?", "ext4", true),
            ("ext?", "ext", false),
            ("*", "", true),
            ("a*b", "acbd", false),
            ("16", "16", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn devices() {
        assert_eq!("loop".parse(), Ok(DeviceChoice::Loop));
        assert_eq!("directory:/mnt".parse(), Ok(DeviceChoice::Directory(Some("/mnt".into()))));
        assert_eq!("/dev/sdx1".parse(), Ok(DeviceChoice::Block("/dev/sdx1".into())));
        assert!("sdx1".parse::<DeviceChoice>().is_err() && "directory:".parse::<DeviceChoice>().is_err());
    }
}

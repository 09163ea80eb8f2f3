//! Options of mkfs programs that are safe in any study.
//!
//! Some options of mkfs run commands (`mksquashfs -p`), read files into the filesystem (`-d` of mke2fs) or write to a
//! second device. New versions may add more. Each adapter therefore lists the options that do none of this, and all others
//! are refused.

/// The options of one mkfs that a study may use, in lists of words.
#[derive(Debug, PartialEq, Eq)]
pub struct MkfsOptions {
    /// Options without a value ("-K", "--mixed").
    pub flags: &'static str,
    /// Options whose value is never a path ("-I", "--label").
    pub values: &'static str,
    /// Options whose value is a list of settings, with the settings that name no file ("-d", "agcount").
    pub settings: &'static [(&'static str, &'static str)],
    /// Whether an option is a whole word, as with mksquashfs ("-comp zstd"). With others a value may follow its option
    /// in the same word ("-I256", "--label=x").
    pub whole_words: bool,
}

impl MkfsOptions {
    pub const NONE: Self = Self { flags: "", values: "", settings: &[], whole_words: false };

    /// The first word that is not known to be safe.
    pub fn unsafe_word<'w>(&self, words: &'w [String]) -> Option<&'w str> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if lists(self.flags, word) {
                continue;
            }
            let Some((option, attached)) = self.valued(word) else { return Some(word) };
            let value = match attached {
                Some(value) => value,
                // A tool that treats the option as a flag would read the next word as an option.
                None => match words.next().filter(|value| !value.starts_with('-')) {
                    Some(value) => value,
                    None => return Some(word),
                },
            };
            if !self.is_safe(option, value) {
                return Some(if attached.is_some() { word } else { value });
            }
        }
        None
    }

    /// The option with a value that a word is or begins with, and the value where it is in the same word.
    fn valued<'w>(&self, word: &'w str) -> Option<(&'static str, Option<&'w str>)> {
        let options = self.values.split_whitespace().chain(self.settings.iter().map(|(option, _)| *option));
        options.into_iter().find_map(|option| {
            let rest = word.strip_prefix(option)?;
            if rest.is_empty() {
                return Some((option, None));
            }
            let value = if option.starts_with("--") { rest.strip_prefix('=')? } else { rest };
            (!self.whole_words).then_some((option, Some(value)))
        })
    }

    fn is_safe(&self, option: &str, value: &str) -> bool {
        let tagged = ["UUID=", "LABEL="].iter().any(|tag| value.contains(tag));
        let known = self.settings.iter().find(|(name, _)| *name == option).is_none_or(|(_, known)| {
            value.split(',').all(|setting| lists(known, setting.split_once('=').map_or(setting, |(name, _)| name)))
        });
        known && !tagged && !value.contains('/')
    }
}

/// Whether a list of words has this one.
pub fn lists(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_unsafe(options: &MkfsOptions, line: &str) -> Option<String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        options.unsafe_word(&words).map(str::to_owned)
    }

    #[test]
    fn what_is_not_listed_is_unsafe() {
        let options = MkfsOptions {
            flags: "-K --mixed",
            values: "-I --label",
            settings: &[("-d", "agcount size")],
            whole_words: false,
        };
        for safe in ["", "-K", "-I 256 -K", "-I256", "--label x --mixed", "--label=x", "-d agcount=4,size=9 -dsize=1"] {
            assert_eq!(first_unsafe(&options, safe), None, "{safe}");
        }
        for (line, word) in [
            ("-K -p", "-p"),
            ("-K sdb", "sdb"),
            ("-I", "-I"),
            ("-I -p", "-I"),
            ("-I 256 512", "512"),
            ("-I a/b", "a/b"),
            ("-Ia/b", "-Ia/b"),
            ("-I LABEL=x", "LABEL=x"),
            ("--label/x", "--label/x"),
            ("--lab=x", "--lab=x"),
            ("--mixed=x", "--mixed=x"),
            ("-Kp x", "-Kp"),
            ("-d agcount=4,name=sdb", "agcount=4,name=sdb"),
            ("-dfile", "-dfile"),
            ("--", "--"),
        ] {
            assert_eq!(first_unsafe(&options, line).as_deref(), Some(word), "{line}");
        }
        let whole = MkfsOptions { whole_words: true, ..options };
        assert_eq!(first_unsafe(&whole, "-I 256 -I256").as_deref(), Some("-I256"));
        assert_eq!(first_unsafe(&whole, "--label=x").as_deref(), Some("--label=x"));
        assert_eq!(first_unsafe(&MkfsOptions::NONE, "-K").as_deref(), Some("-K"));
    }
}

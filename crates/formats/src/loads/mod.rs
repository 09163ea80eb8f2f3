//! The formats that loads are written in, each a folder here with its own way of reading text into a
//! [`fstone_model::Workload`].
//!
//! [`ALL`] lists them. A study's `load` table, `fstone load` and `fstone convert` take what is listed there, so a
//! further format is a folder with its [`LoadFormat`], and its line in the list.

pub mod ffsb;
pub mod filebench;
pub mod fio;
mod format;
pub mod io500;
pub mod ior;
pub mod letters;
pub mod mdtest;
pub mod native;
mod replay;
pub mod sysbench;

pub use format::{CommandOnly, Converted, Converter, Document, FileReader, Load, LoadFormat, Loader, WordsReader};

/// Every format, in the order that documentation lists them.
pub const ALL: &[LoadFormat] = &[
    ffsb::FORMAT,
    sysbench::FORMAT,
    fio::FORMAT,
    filebench::FORMAT,
    mdtest::FORMAT,
    ior::FORMAT,
    native::FORMAT,
    replay::FORMAT,
];

pub fn by_extension(file_name: &str) -> Option<LoadFormat> {
    let (_, extension) = file_name.rsplit_once('.')?;
    ALL.iter().copied().find(|format| format.extensions.contains(&extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart_by_key_and_extension() {
        let mut keys: Vec<&str> = ALL.iter().map(|format| format.key).collect();
        let mut extensions: Vec<&str> = ALL.iter().flat_map(|format| format.extensions).copied().collect();
        for names in [&mut keys, &mut extensions] {
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{names:?}");
        }
        assert_eq!(by_extension("a/b.ffsb").map(|format| format.key), Some("ffsb"));
        assert!(by_extension("ffsb").is_none() && by_extension("a.txt").is_none());
    }
}

//! The formats that loads are written in, each a folder here with its own way of reading text into a
//! [`fstone_model::Workload`].
//!
//! [`ALL`] lists them. A study's `load` table, `fstone load` and `fstone convert` take what is listed there, so a
//! further format is a folder that implements [`LoadFormat`], and its line in the list.

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

pub use format::{Document, FileReader, Load, LoadFormat, Loader, Reader, WordsReader};

/// Every format, in the order that documentation lists them.
pub const ALL: &[&dyn LoadFormat] = &[
    &ffsb::Ffsb,
    &sysbench::Sysbench,
    &fio::Fio,
    &filebench::Filebench,
    &mdtest::MdtestFormat,
    &ior::IorFormat,
    &native::Native,
    &replay::Recording,
];

pub fn by_extension(file_name: &str) -> Option<&'static dyn LoadFormat> {
    let (_, extension) = file_name.rsplit_once('.')?;
    ALL.iter().copied().find(|format| match format.reader() {
        Reader::File { extensions, .. } | Reader::Words { extensions, .. } => extensions.contains(&extension),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart_by_key_and_extension() {
        let mut keys: Vec<&str> = ALL.iter().map(|format| format.key()).collect();
        let mut extensions: Vec<&str> = ALL
            .iter()
            .flat_map(|format| match format.reader() {
                Reader::File { extensions, .. } | Reader::Words { extensions, .. } => extensions,
            })
            .copied()
            .collect();
        for names in [&mut keys, &mut extensions] {
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{names:?}");
        }
        assert_eq!(by_extension("a/b.ffsb").map(LoadFormat::key), Some("ffsb"));
        assert!(by_extension("ffsb").is_none() && by_extension("a.txt").is_none());
    }
}

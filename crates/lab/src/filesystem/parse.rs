//! Reading what the tools print.

use fstone_model::metric::{Figure, catalog};

/// Lines of the form `name: value` (or `name value` for another separator) whose name is in `wanted`, renamed.
pub(super) fn pairs(text: &str, separator: char, wanted: &[(&str, &str)]) -> Vec<(String, String)> {
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .filter_map(|(name, value)| {
            let (_, ours) = wanted.iter().find(|(theirs, _)| *theirs == name.trim())?;
            let value = value.trim();
            (!value.is_empty()).then(|| ((*ours).to_owned(), value.to_owned()))
        })
        .collect()
}

pub(super) fn number_before(text: &str, word: &str) -> Option<f64> {
    let (before, _) = text.split_once(word)?;
    before.split(|c: char| !(c.is_ascii_digit() || c == '.')).next_back()?.parse().ok()
}

pub(super) fn number_after(text: &str, word: &str) -> Option<f64> {
    let (_, after) = text.split_once(word)?;
    after.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// What is in use, where both counts were found.
pub(super) fn files_used(directories: Option<f64>, files: Option<f64>) -> Vec<Figure> {
    let used = directories.zip(files).map(|(directories, files)| catalog::FSCK_FILES_USED.figure(directories + files));
    used.into_iter().collect()
}

/// "used/total" as two numbers.
pub(super) fn fraction(text: &str) -> Option<(f64, f64)> {
    let (used, total) = text.trim().split_once('/')?;
    Some((used.parse().ok()?, total.parse().ok()?))
}

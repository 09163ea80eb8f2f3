//! `{name}` in the commands of a study.
//!
//! Variables of the study and numbers of a cell are put in here. `{mount}` and `{device}` are the lab's to put in, and so
//! is the archive of a source tree: `{source}`, or `{source:FILES}` for a made one of so many files. Anything else in
//! braces is the command's own business (`awk '{print}'`), unless it looks like a misspelt name.

use crate::diagnostic::{Diagnostic, Report, Span, closest};

pub(super) const OF_THE_LAB: [&str; 3] = ["mount", "device", "source"];

/// A name in braces: its place, braces included, and the name.
fn places(text: &str) -> impl Iterator<Item = (std::ops::Range<usize>, &str)> {
    text.match_indices('{').filter_map(|(start, _)| {
        // In a shell's script, ${name} is the shell's.
        if text[..start].ends_with('$') {
            return None;
        }
        let rest = &text[start + 1..];
        let length = rest.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'))?;
        (length > 0 && rest[length..].starts_with('}')).then(|| (start..start + length + 2, &rest[..length]))
    })
}

pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    places(text).map(|(_, name)| name)
}

pub(super) fn fill(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut done = 0;
    for (place, name) in places(text) {
        if let Some(value) = value(name) {
            filled.push_str(&text[done..place.start]);
            filled.push_str(&value);
            done = place.end;
        }
    }
    filled.push_str(&text[done..]);
    filled
}

pub(super) fn filled_bytes<'v>(text: &str, value: impl Fn(&str) -> Option<&'v str>) -> usize {
    let values = names(text).filter_map(value).map(str::len);
    values.fold(text.len(), usize::saturating_add)
}

/// Reports names that look like a misspelt one of `known`, or of the lab's.
pub(super) fn check(text: &str, span: Span, known: &[&str], report: &mut Report) {
    let known: Vec<&str> = OF_THE_LAB.iter().chain(known).copied().collect();
    for name in names(text).filter(|name| !known.contains(name)) {
        if let Some(meant) = closest(name, known.iter().copied()) {
            report.push(
                Diagnostic::error(span, format!("nothing is called `{{{name}}}`"))
                    .label("in these words")
                    .help(format!("did you mean `{{{meant}}}`?")),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_filled() {
        let text = "make -j{threads} -C {mount}/x | awk '{print $1}' ${threads} {a b} {} {source:{files}} {unknown} {";
        assert_eq!(names(text).collect::<Vec<_>>(), ["threads", "mount", "files", "unknown"]);
        let filled = fill(text, |name| (name == "threads" || name == "files").then(|| "7".to_owned()));
        assert_eq!(filled, "make -j7 -C {mount}/x | awk '{print $1}' ${threads} {a b} {} {source:7} {unknown} {");
        assert_eq!(fill("no names", |_| None), "no names");
    }
}

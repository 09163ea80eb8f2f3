//! User text made harmless, and words put together.
//!
//! Study files, kernels and tools all put text into a report. [`line()`] and [`block`] are applied once, when the
//! analysis is built, so that no format can let a terminal escape or a text-direction override through; each format
//! then escapes what is special to itself.

use crate::number::grouped;
use fstone_model::text::visible;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// One line: control characters become their Unicode pictures, runs of white space one space.
pub fn line(text: &str) -> String {
    let visible: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { visible(c) }).collect();
    visible.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Several lines: line feeds stay, tabs become four spaces, trailing white space goes.
pub fn block(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for line in text.lines() {
        let start = cleaned.len();
        for c in line.chars() {
            if c == '\t' { cleaned.push_str("    ") } else { cleaned.push(visible(c)) }
        }
        cleaned.truncate(start + cleaned[start..].trim_end().len());
        cleaned.push('\n');
    }
    cleaned.truncate(cleaned.trim_end().len());
    cleaned
}

/// The parts that say something, with `between` between them.
pub fn joined(parts: &[impl AsRef<str>], between: &str) -> String {
    parts.iter().map(AsRef::as_ref).filter(|part| !part.is_empty()).collect::<Vec<&str>>().join(between)
}

/// Columns the text takes in a terminal.
pub fn width(text: &str) -> usize {
    text.width()
}

/// At most `limit` columns, with an ellipsis where something was left out.
pub fn shorten(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used + 1 > limit {
            break;
        }
        short.push(c);
    }
    format!("{}…", short.trim_end())
}

pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}

/// The header of a column or the name of a step as a title: capitalised, unless it begins with the name of a command.
pub fn title(text: &str) -> String {
    // Commands keep their spelling.
    if ["fsck", "mkfs", "mount", "tar", "rm"].iter().any(|command| text.split(' ').next() == Some(command)) {
        return text.to_owned();
    }
    capitalised(text)
}

/// "a", "a and b", "a, b and c".
pub fn listing<S: AsRef<str>>(items: &[S]) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [head @ .., last] => {
            let head: Vec<&str> = head.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", head.join(", "), last.as_ref())
        }
    }
}

pub fn has(count: usize) -> &'static str {
    if count == 1 { "has" } else { "have" }
}

/// "1 trial", "3 trials".
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{} {noun}s", grouped(count as f64, 0)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn controls_are_made_visible() {
        assert_eq!(line("a\x1b[31mred\x07\x7f\u{9b}x"), "a␛[31mred␇␡\u{fffd}x");
        assert_eq!(line("  one\r\n\ttwo  "), "one two");
        assert_eq!(line("abc\u{202e}def"), "abc\u{fffd}def");
        assert_eq!(block("a\tb  \nc\x1b\n\n"), "a    b\nc␛");
    }

    #[test]
    fn short_forms() {
        assert_eq!(shorten("abcdef", 4), "abc…");
        assert_eq!(shorten("abcd", 4), "abcd");
        assert_eq!((title("fsck time").as_str(), title("ops per second").as_str()), ("fsck time", "Ops per second"));
    }

    #[test]
    fn items_are_listed_and_counted() {
        assert_eq!(listing(&["a", "b", "c"]), "a, b and c");
        assert_eq!((counted(1, "trial").as_str(), counted(2000, "trial").as_str()), ("1 trial", "2,000 trials"));
    }

    proptest! {
        #[test]
        fn no_control_character_survives(text in any::<String>()) {
            prop_assert!(!line(&text).chars().any(char::is_control));
            prop_assert!(!block(&text).chars().any(|c| c.is_control() && c != '\n'));
        }
    }
}

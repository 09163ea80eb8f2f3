//! The one place that makes foreign text safe for a terminal or a page.
//!
//! Text from study files, bundles, kernels and tools ends up in what fstone prints. Control characters in it act on a terminal,
//! and characters that reorder a line mislead a reader. Both are made visible here, and nowhere else. What tools and
//! the machine said is recorded without control characters, and passes through here when it is shown.

/// The character itself, or a visible replacement if it acts on a terminal or on the order of text.
pub fn visible(c: char) -> char {
    match c {
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + c as u32).expect("control pictures are assigned"),
        '\u{7f}' => '\u{2421}',
        // C1 controls, bidirectional marks, overrides and isolates, line and paragraph separators, the byte order mark.
        '\u{80}'..='\u{9f}'
        | '\u{61c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}' => '\u{fffd}',
        other => other,
    }
}

/// One line: line ends and tabs become spaces, other active characters become visible.
pub fn line(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { visible(c) }).collect()
}

/// Several lines: line feeds and tabs stay, other active characters become visible.
pub fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").chars().map(|c| if matches!(c, '\n' | '\t') { c } else { visible(c) }).collect()
}

/// A word as sh(1) takes it, whatever is in it.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let all: String = (0..=0x2_0000).filter_map(char::from_u32).collect();
        assert!(!line(&all).contains(char::is_control));
        assert!(!lines(&all).contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')));
        for text in [line(&all), lines(&all)] {
            assert!(!text.contains(['\u{61c}', '\u{200e}', '\u{202e}', '\u{2066}', '\u{2028}', '\u{feff}']));
        }
    }

    #[test]
    fn what_was_there_can_be_seen() {
        assert_eq!(line("\u{1b}[2Jboo\nmore"), "␛[2Jboo more");
        assert_eq!(lines("a\tb\r\n\u{9b}31m\rc\n"), "a\tb\n\u{fffd}31m␍c\n");
        assert_eq!(lines("größer 文件 🙂"), "größer 文件 🙂");
    }

    #[test]
    fn a_shell_reads_a_quoted_word_as_it_was() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}

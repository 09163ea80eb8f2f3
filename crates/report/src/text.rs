//! Fits text into a width. `fstone_analysis::text` makes it harmless.

pub(crate) use fstone_analysis::text::{block, capitalised, counted, joined, line, listing, shorten, title, width};

/// Lines of at most `limit` columns, broken at spaces, else after a comma or the like, else anywhere. Never empty.
pub fn wrap(text: &str, limit: usize) -> Vec<String> {
    wrap_by(text, &|part| width(part) <= limit.max(1))
}

/// [`wrap`] for any measure of what fits. A single character always counts as fitting.
pub(crate) fn wrap_by(text: &str, fits: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let current = lines.last_mut().expect("never empty");
        let joined = if current.is_empty() { word.to_owned() } else { format!("{current} {word}") };
        if fits(&joined) {
            *current = joined;
            continue;
        }
        if !current.is_empty() {
            lines.push(String::new());
        }
        for piece in pieces(word, fits) {
            let current = lines.last_mut().expect("never empty");
            if fits(&format!("{current}{piece}")) {
                current.push_str(&piece);
            } else {
                lines.push(piece);
            }
        }
    }
    lines.retain(|line| !line.is_empty());
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// A word cut after its punctuation, and where that is not enough, anywhere. A piece keeps what made it end.
fn pieces(word: &str, fits: &dyn Fn(&str) -> bool) -> Vec<String> {
    if fits(word) {
        return vec![word.to_owned()];
    }
    let mut pieces = Vec::new();
    for part in word.split_inclusive([',', ';', '/', ':', '=', '_', '+']) {
        let mut piece = String::new();
        for c in part.chars() {
            piece.push(c);
            if !fits(&piece) && piece.chars().count() > 1 {
                piece.pop();
                pieces.push(std::mem::replace(&mut piece, c.to_string()));
            }
        }
        pieces.push(piece);
    }
    pieces
}

/// For text nodes and attribute values of SVG. HTML pages are escaped by askama.
pub(crate) fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // U+FFFE and U+FFFF are no characters of XML.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_options_break_after_commas() {
        let lines = wrap("ext4 -O uninit_bg,flex_bg data=writeback,nomballoc,nodelalloc", 24);
        assert_eq!(lines, ["ext4 -O", "uninit_bg,flex_bg", "data=writeback,", "nomballoc,nodelalloc"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("", 3), [""]);
    }

    #[test]
    fn short_forms() {
        assert_eq!(xml("<a b='\"&'>"), "&lt;a b=&#39;&quot;&amp;&#39;&gt;");
    }

    proptest! {
        #[test]
        fn wrapping_loses_nothing_and_fits(text in "[a-z,=/äß漢 ]{0,80}", limit in 2usize..30) {
            let lines = wrap(&text, limit);
            prop_assert!(lines.iter().all(|line| width(line) <= limit), "{:?}", lines);
            let kept: String = lines.concat().split(' ').collect();
            let given: String = text.split(' ').collect();
            prop_assert_eq!(kept, given);
        }
    }
}

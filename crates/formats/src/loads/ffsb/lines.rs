//! A profile's lines: comments and blank lines left out, each with its place.

use crate::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Its text, from the first to the last character that is not white space.
    pub(super) text: &'a str,
    pub(super) span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) text: &'a str,
    pub(super) span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape<'a> {
    /// `[name3]`
    Section {
        /// "name", without the number that ends it.
        name: Piece<'a>,
        number: Option<u64>,
    },
    /// `key = value`, or `key value value`.
    Setting {
        /// Left of the `=` or of the first white space.
        key: Piece<'a>,
        /// The rest, comment included; empty when there is none.
        rest: Piece<'a>,
        assigned: bool,
    },
}

/// The lines of a text that are neither blank nor comments.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    text.split('\n').filter_map(move |line| {
        let offset = start;
        start += line.len() + 1;
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            return None;
        }
        Some(piece(line, offset, text)).map(|Piece { text, span }| Line { text, span })
    })
}

/// `inner`, a slice of `outer`, which starts at `offset` of the source.
fn piece<'a>(outer: &str, offset: usize, inner: &'a str) -> Piece<'a> {
    let start = offset + (inner.as_ptr() as usize - outer.as_ptr() as usize);
    Piece { text: inner, span: Span::new(start, start + inner.len()) }
}

impl<'a> Line<'a> {
    fn piece(&self, inner: &'a str) -> Piece<'a> {
        piece(self.text, self.span.start, inner)
    }

    pub(super) fn shape(&self) -> Shape<'a> {
        if let Some(inside) = self.text.strip_prefix('[') {
            let inside = inside.split(']').next().unwrap_or(inside).trim();
            let name = inside.trim_end_matches(|c: char| c.is_ascii_digit());
            return Shape::Section { number: inside[name.len()..].parse().ok(), name: self.piece(name.trim_end()) };
        }
        let end = self.text.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(self.text.len());
        let (key, rest) = self.text.split_at(end);
        let rest = rest.trim_start();
        let (assigned, rest) = rest.strip_prefix('=').map_or((false, rest), |value| (true, value.trim_start()));
        Shape::Setting { key: self.piece(key), rest: self.piece(rest), assigned }
    }
}

impl<'a> Piece<'a> {
    pub(super) fn word(self) -> (Self, Self) {
        let end = self.text.find(char::is_whitespace).unwrap_or(self.text.len());
        let (word, rest) = self.text.split_at(end);
        (self.slice(word), self.slice(rest.trim()))
    }

    pub(super) fn without_comment(self) -> Self {
        let text = self.text.split_once('#').map_or(self.text, |(before, _)| before);
        self.slice(text.trim_end())
    }

    fn slice(self, inner: &'a str) -> Self {
        piece(self.text, self.span.start, inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_knows_its_place() {
        let text = "# nothing\n\n  key =  a b # c\r\n[filesystem12] x\nmsec_range 0.1 0.2";
        let shapes: Vec<Shape<'_>> = lines(text).map(|line| line.shape()).collect();
        let at = |span: Span| &text[span.start..span.end];
        let [Shape::Setting { key, rest, assigned: true }, Shape::Section { name, number: Some(12) }, last] =
            shapes[..]
        else {
            panic!("{shapes:?}");
        };
        assert_eq!((at(key.span), at(rest.span)), ("key", "a b # c"));
        assert_eq!(at(rest.without_comment().span), "a b");
        assert_eq!((at(rest.word().0.span), at(rest.word().1.span)), ("a", "b # c"));
        assert_eq!(at(name.span), "filesystem");
        assert!(matches!(last, Shape::Setting { rest, assigned: false, .. } if rest.text == "0.1 0.2"));
    }
}

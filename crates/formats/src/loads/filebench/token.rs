//! The words of a personality file.

use crate::diagnostic::{Diagnostic, Report, Span};

/// Tokens read; real files have a few thousand.
const MAXIMUM_TOKENS: usize = 200_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword, a name or a path.
    Word(String),
    /// A number, with its unit worked out.
    Number(u64),
    /// A number below 0, as its distance from it.
    Negative(u64),
    /// A variable, without its dollar and braces.
    Variable(String),
    Quoted(String),
    /// One of `{}(),=*/+-`.
    Sign(char),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

impl Token {
    pub(super) fn shown(&self) -> String {
        match &self.kind {
            Kind::Word(text) => format!("`{text}`"),
            Kind::Number(number) => format!("the number {number}"),
            Kind::Negative(number) => format!("the number -{number}"),
            Kind::Variable(name) => format!("the variable `${name}`"),
            Kind::Quoted(_) => "a text in quotes".to_owned(),
            Kind::Sign(sign) => format!("`{sign}`"),
        }
    }
}

/// Takes a text apart. What is no token is reported, and passed over.
pub(super) fn tokens(text: &str, report: &mut Report) -> Vec<Token> {
    let mut reader = Reader { text, at: 0, report };
    let mut found = Vec::new();
    while let Some(token) = reader.next() {
        if found.len() == MAXIMUM_TOKENS {
            reader.report.push(
                Diagnostic::error(token.span, format!("more than {MAXIMUM_TOKENS} words"))
                    .help("this does not look like a filebench file"),
            );
            break;
        }
        found.push(token);
    }
    found
}

struct Reader<'t, 'r> {
    text: &'t str,
    at: usize,
    report: &'r mut Report,
}

fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'-' | b'_')
}

fn is_in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b':' | b';' | b'-')
}

impl<'t> Reader<'t, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn run(&mut self, of: impl Fn(u8) -> bool) -> &'t str {
        let start = self.at;
        while self.peek().is_some_and(&of) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn next(&mut self) -> Option<Token> {
        loop {
            let byte = self.peek()?;
            let start = self.at;
            let kind = match byte {
                b if b.is_ascii_whitespace() => {
                    self.at += 1;
                    continue;
                }
                b'#' => {
                    self.run(|byte| byte != b'\n');
                    continue;
                }
                b'"' => self.quoted(),
                b'$' => self.variable(),
                b'0'..=b'9' => Some(self.number()),
                b'-' if self.text.as_bytes().get(start + 1).is_some_and(u8::is_ascii_digit) => {
                    self.at += 1;
                    let Kind::Number(number) = self.number() else { return None };
                    Some(Kind::Negative(number))
                }
                b'{' | b'}' | b'(' | b')' | b',' | b'=' | b'*' | b'+' => {
                    self.at += 1;
                    Some(Kind::Sign(char::from(byte)))
                }
                // Between numbers and variables only: a path begins with it, too.
                b'/' | b'-' if !self.text.as_bytes().get(start + 1).copied().is_some_and(is_in_word) => {
                    self.at += 1;
                    Some(Kind::Sign(char::from(byte)))
                }
                b if begins_word(b) => Some(Kind::Word(self.run(is_in_word).to_owned())),
                _ => {
                    let character = self.text[start..].chars().next()?;
                    self.at += character.len_utf8();
                    let diagnostic =
                        Diagnostic::error(Span::new(start, self.at), format!("`{character}` means nothing here"));
                    self.report.push(diagnostic.help("a text with such characters stands between quotes"));
                    continue;
                }
            };
            let Some(kind) = kind else { continue };
            return Some(Token { kind, span: Span::new(start, self.at) });
        }
    }

    fn number(&mut self) -> Kind {
        let start = self.at;
        let digits = self.run(|byte| byte.is_ascii_digit());
        let unit = self.run(is_in_word);
        let span = Span::new(start, self.at);
        let shift = match unit {
            "" => 0,
            "k" | "K" => 10,
            "m" | "M" => 20,
            "g" | "G" => 30,
            _ => {
                self.report.push(
                    Diagnostic::error(span, format!("`{unit}` is not a unit"))
                        .label("expected `k`, `m` or `g`, or none for bytes")
                        .help("filebench has whole numbers only"),
                );
                0
            }
        };
        let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
        if number.is_none() {
            self.report.push(Diagnostic::error(span, "this number is too large").label("expected at most 2^64 - 1"));
        }
        Kind::Number(number.unwrap_or(0))
    }

    fn variable(&mut self) -> Option<Kind> {
        let start = self.at;
        self.at += 1;
        let close = match self.peek() {
            Some(b'{') => Some(b'}'),
            Some(b'(') => Some(b')'),
            _ => None,
        };
        self.at += usize::from(close.is_some());
        let name = self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_').to_owned();
        let closed = close.is_none_or(|close| self.peek() == Some(close));
        self.at += usize::from(close.is_some() && closed);
        if name.is_empty() || !closed {
            self.report.push(
                Diagnostic::error(Span::new(start, self.at), "this is no variable's name")
                    .help("for example: $nthreads"),
            );
            return None;
        }
        Some(Kind::Variable(name))
    }

    fn quoted(&mut self) -> Option<Kind> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        let mut characters = self.text[self.at..].char_indices();
        while let Some((place, character)) = characters.next() {
            match character {
                '"' => {
                    self.at += place + 1;
                    return Some(Kind::Quoted(text));
                }
                '\\' => match characters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, other)) => text.push(other),
                    None => break,
                },
                other => text.push(other),
            }
        }
        self.at = self.text.len();
        self.report.push(
            Diagnostic::error(Span::new(start, start + 1), "this quote is never closed").help("end the text with `\"`"),
        );
        None
    }
}

//! What is wrong with a file, shown where it is wrong.
//!
//! A reader makes a [`Report`] for its [`Source`], adds every [`Diagnostic`] it finds, and ends with
//! [`Report::finish`]: the value when there was no error, all of them as [`Diagnostics`] otherwise. Diagnostics of
//! several files (a study and the profile it names) are joined with [`Diagnostics::append`].
//!
//! Text that came out of a file may hold terminal escapes; everything is made harmless when it is rendered, so a
//! reader may quote it as it is.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use fstone_model::text::{line, visible};
use std::{collections::HashSet, fmt, ops::Range, sync::Arc};

/// Diagnostics rendered in full; those beyond are counted. A file with more than this is not a file of its format.
pub const MAXIMUM_SHOWN: usize = 50;

/// Columns that a rendered line may take before it is cut around the offending text.
const WIDTH: usize = 120;

/// A text that was read, under the name messages use for it.
///
/// Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    inner: Arc<(String, String)>,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { inner: Arc::new((name.into(), text.into())) }
    }

    pub fn name(&self) -> &str {
        &self.inner.0
    }

    pub fn text(&self) -> &str {
        &self.inner.1
    }

    /// Line and column of a byte offset, both from 1; columns count characters. Offsets beyond the end mean the end.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let before = &self.text()[..floor_char_boundary(self.text(), offset)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

/// A range of bytes of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Span {
    pub start: usize,
    /// First byte after it.
    pub end: usize,
}

impl Span {
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The file means nothing.
    Error,
    /// The file means something, perhaps not what was meant.
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// What is wrong, in lower case, without a full stop: "unknown key `repeat`".
    pub message: String,
    /// The offending text; `None` when it is the file as a whole.
    pub span: Option<Span>,
    pub label: Option<String>,
    pub context: Vec<(Span, String)>,
    pub notes: Vec<String>,
    pub helps: Vec<String>,
}

impl Diagnostic {
    fn new(severity: Severity, span: Option<Span>, message: String) -> Self {
        Self { severity, message, span, label: None, context: Vec::new(), notes: Vec::new(), helps: Vec::new() }
    }

    pub fn error(span: impl Into<Span>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, Some(span.into()), message.into())
    }

    pub fn warning(span: impl Into<Span>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, Some(span.into()), message.into())
    }

    /// An error of the file as a whole.
    pub fn whole(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, None, message.into())
    }

    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    #[must_use]
    pub fn context(mut self, span: impl Into<Span>, label: impl Into<String>) -> Self {
        self.context.push((span.into(), label.into()));
        self
    }

    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.helps.push(help.into());
        self
    }

    /// Adds "did you mean …?" when one of the candidates is close to what was written.
    pub fn did_you_mean<'a>(self, written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Self {
        match closest(written, candidates) {
            Some(candidate) => {
                let help = format!("did you mean `{candidate}`?");
                self.help(help)
            }
            None => self,
        }
    }
}

/// The candidate that was probably meant, if any is close: at most a third of the longer word's letters differ.
pub fn closest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Longer texts are not typing errors, and the distance costs the product of the lengths.
    const LONGEST: usize = 64;
    if written.len() > LONGEST {
        return None;
    }
    let folded = |text: &str| text.to_lowercase().replace(['_', ' '], "-");
    let wanted = folded(written);
    let wanted_letters = wanted.chars().count();
    let wanted_alphabet = alphabet(&wanted);
    let is_close = |differing: usize, letters: usize| differing * 3 <= letters.max(wanted_letters);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        // Words differ by as many letters as one is longer, and as one lacks of the other's; for a text that is full of
        // other words, this saves nearly all of the work.
        .filter(|candidate| {
            let letters = candidate.chars().count();
            let (of_one, of_other) = (wanted_alphabet, alphabet(candidate));
            let lacking = (of_one & !of_other).count_ones().max((of_other & !of_one).count_ones()) as usize;
            is_close(letters.abs_diff(wanted_letters).max(lacking), letters)
        })
        .map(|candidate| (strsim::osa_distance(&wanted, &folded(candidate)), candidate))
        .filter(|(distance, candidate)| is_close(*distance, candidate.chars().count()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A set of the letters and digits in a word, some of which share a place.
fn alphabet(word: &str) -> u64 {
    let known = word.bytes().filter(u8::is_ascii_alphanumeric);
    known.fold(0, |set, byte| set | 1 << (byte.to_ascii_lowercase() % 64))
}

/// Collects what is wrong with one source.
#[derive(Debug)]
pub struct Report {
    source: Source,
    found: Vec<(Source, Diagnostic)>,
}

impl Report {
    pub const fn new(source: Source) -> Self {
        Self { source, found: Vec::new() }
    }

    pub const fn source(&self) -> &Source {
        &self.source
    }

    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.found.push((self.source.clone(), diagnostic));
    }

    pub fn append(&mut self, other: Diagnostics) {
        self.found.extend(other.found);
    }

    pub fn has_errors(&self) -> bool {
        self.found.iter().any(|(_, diagnostic)| diagnostic.severity == Severity::Error)
    }

    /// Adds an error and returns false when the source is larger than `limit_bytes`.
    pub fn check_size(&mut self, limit_bytes: usize, what: &str) -> bool {
        let size = self.source.text().len();
        if size <= limit_bytes {
            return true;
        }
        let limit = fstone_model::units::format_bytes(limit_bytes as u64);
        self.push(Diagnostic::whole(format!("{what} has {size} bytes; the limit is {limit}")));
        false
    }

    /// The value and the warnings, if there are any; or all findings when one of them is an error.
    ///
    /// # Errors
    /// Everything that was found, in the order of the text.
    pub fn finish<T>(self, value: T) -> Result<(T, Option<Diagnostics>), Diagnostics> {
        let failed = self.has_errors();
        match self.into_diagnostics() {
            Some(diagnostics) if failed => Err(diagnostics),
            warnings => Ok((value, warnings)),
        }
    }

    /// Everything that was found, in the order of the text and each thing once; `None` when it was nothing.
    #[must_use]
    pub fn into_diagnostics(mut self) -> Option<Diagnostics> {
        if self.found.is_empty() {
            return None;
        }
        // Stable, and only within this source: findings of a named file stay where the file was named.
        let own = self.source.name().to_owned();
        self.found.sort_by_key(|(source, diagnostic)| {
            (source.name() != own, if source.name() == own { diagnostic.span.map(|span| span.start) } else { None })
        });
        // The same mistake may be met several times, once per cell of a study for instance.
        let mut seen = HashSet::new();
        self.found.retain(|(source, diagnostic)| {
            seen.insert((source.name().to_owned(), diagnostic.span, diagnostic.message.clone()))
        });
        Some(Diagnostics { found: self.found })
    }
}

/// What is wrong with one or more files; never empty.
///
/// `Display` renders it without colour, in the manner of rustc.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    found: Vec<(Source, Diagnostic)>,
}

impl Diagnostics {
    pub fn one(source: &Source, diagnostic: Diagnostic) -> Self {
        Self { found: vec![(source.clone(), diagnostic)] }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Source, &Diagnostic)> {
        self.found.iter().map(|(source, diagnostic)| (source, diagnostic))
    }

    pub fn errors(&self) -> usize {
        self.found.iter().filter(|(_, diagnostic)| diagnostic.severity == Severity::Error).count()
    }

    pub fn append(&mut self, other: Self) {
        self.found.extend(other.found);
    }

    /// As text, with or without terminal colours; ends without a newline.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() }.term_width(WIDTH);
        let mut blocks: Vec<String> = self
            .found
            .iter()
            .take(MAXIMUM_SHOWN)
            .map(|(source, diagnostic)| render_one(&renderer, source, diagnostic))
            .collect();
        if self.found.len() > MAXIMUM_SHOWN {
            blocks.push(format!("… and {} more", self.found.len() - MAXIMUM_SHOWN));
        }
        blocks.join("\n\n")
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

fn render_one(renderer: &Renderer, source: &Source, diagnostic: &Diagnostic) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    // A file as a whole has no line to point at: its name goes into the message.
    let title = match diagnostic.span {
        Some(_) => line(&diagnostic.message),
        None => format!("{}: {}", line(source.name()), line(&diagnostic.message)),
    };
    let title = level.primary_title(title);
    let mut group = match diagnostic.span {
        None => Group::with_title(title),
        Some(span) => {
            let text = harmless_source(source.text());
            let mut primary = AnnotationKind::Primary.span(clamp(&text, span));
            if let Some(label) = &diagnostic.label {
                primary = primary.label(line(label));
            }
            let mut snippet = Snippet::source(text.clone()).path(line(source.name())).annotation(primary);
            for (span, label) in &diagnostic.context {
                snippet = snippet.annotation(AnnotationKind::Context.span(clamp(&text, *span)).label(line(label)));
            }
            title.element(snippet)
        }
    };
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(line(note)));
    }
    for help in &diagnostic.helps {
        group = group.element(Level::HELP.message(line(help)));
    }
    renderer.render(&[group])
}

/// A source without characters that act on a terminal or on the order of text, every byte where it was. The renderer replaces those of 7
/// bits itself.
fn harmless_source(text: &str) -> String {
    let shown = |c: char| match c.len_utf8() {
        1 => c,
        _ if visible(c) == c => c,
        2 => '·',
        _ => char::REPLACEMENT_CHARACTER,
    };
    text.chars().map(shown).collect()
}

/// The span within the text, on character boundaries.
fn clamp(text: &str, span: Span) -> Range<usize> {
    let start = floor_char_boundary(text, span.start);
    let end = floor_char_boundary(text, span.end.max(start));
    start..end.max(start)
}

fn floor_char_boundary(text: &str, offset: usize) -> usize {
    text.floor_char_boundary(offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn source() -> Source {
        Source::new("a.toml", "title = \"x\"\nrepeat = 3\nseed = \u{1b}[31m\u{9b}31m\n")
    }

    #[test]
    fn it_points_at_the_text() {
        let mut report = Report::new(source());
        report.push(Diagnostic::error(23..30, "a later one").note("a note"));
        report.push(
            Diagnostic::error(12..18, "unknown key `repeat`")
                .label("expected one of `repeats`, `seed`")
                .context(0..5, "in this file")
                .did_you_mean("repeat", ["seed", "repeats"]),
        );
        let diagnostics = report.finish(()).expect_err("there are errors");
        insta::assert_snapshot!(diagnostics.render(false), @r#"
        error: unknown key `repeat`
         --> a.toml:2:1
          |
        1 | title = "x"
          | ----- in this file
        2 | repeat = 3
          | ^^^^^^ expected one of `repeats`, `seed`
          |
          = help: did you mean `repeats`?

        error: a later one
         --> a.toml:3:1
          |
        3 | seed = ␛[31m·31m
          | ^^^^^^^
          |
          = note: a note
        "#);
        assert!(diagnostics.render(true).contains("\u{1b}["), "colour was asked for");
    }

    #[test]
    fn escapes_in_a_file_do_not_reach_the_terminal() {
        let mut report = Report::new(Source::new("\u{1b}]0;evil\u{7}.toml", source().text()));
        report.push(Diagnostic::error(30..40, "unexpected `\u{1b}[31m\u{9b}31m`").label("\u{1b}c").help("\u{202e}"));
        let text = report.into_diagnostics().expect("one").to_string();
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert!(!text.contains('\u{202e}'), "{text:?}");
    }

    #[test]
    fn a_warning_alone_is_no_failure() {
        let mut report = Report::new(source());
        report.push(Diagnostic::warning(0..5, "unusual"));
        let (value, warnings) = report.finish(7).expect("no error");
        assert_eq!((value, warnings.map(|warnings| warnings.errors())), (7, Some(0)));
    }

    #[test]
    fn a_limit_is_said() {
        let mut report = Report::new(Source::new("big", "x".repeat(2049)));
        assert!(!report.check_size(2048, "the file"));
        assert_eq!(
            report.into_diagnostics().expect("one").to_string(),
            "error: big: the file has 2049 bytes; the limit is 2 KiB"
        );
    }

    #[test]
    fn close_words_are_found_and_far_ones_are_not() {
        assert_eq!(closest("repeat", ["seed", "repeats"]), Some("repeats"));
        assert_eq!(closest("direct_io", ["direct-io"]), Some("direct-io"));
        assert_eq!(closest("Seed", ["seed"]), Some("seed"));
        assert_eq!(closest("fiel-num", ["file-num"]), Some("file-num"), "two letters changed places");
        assert_eq!(closest("colour", ["seed", "repeats"]), None);
        assert_eq!(closest("time", ["runtime-seconds"]), None, "lengths too different to be a typing error");
        assert_eq!(closest(&"a".repeat(1 << 20), ["a"]), None);
    }

    #[test]
    fn positions_count_from_one() {
        let source = Source::new("a", "é\nbc");
        assert_eq!([0, 2, 3, 4, 99].map(|offset| source.position(offset)), [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)]);
    }

    proptest! {
        #[test]
        fn no_span_makes_it_panic(text in "[a-zé\\n\\r\\t\u{1b}]{0,40}", start in 0usize..60, end in 0usize..60) {
            let diagnostic = Diagnostic::error(Span::new(start, end), "m").label("l").context(Span::new(end, start), "c");
            let rendered = Diagnostics::one(&Source::new("f", text), diagnostic).to_string();
            prop_assert!(rendered.starts_with("error: m"));
        }
    }
}

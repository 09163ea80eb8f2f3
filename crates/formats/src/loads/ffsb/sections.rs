//! Reads the lines of a 5.x or 6.0 profile into sections of settings, each value checked against its keyword.
//!
//! The two dialects are read by one grammar, their union; [`Dialect`] decides only what an unknown line is (5.x warns
//! and goes on, 6.0 gives up) and how strictly values are taken.

use super::{
    Dialect,
    findings::Findings,
    keyword::{self, KEYWORDS, Keyword, Kind, Part},
    lines::{Line, Piece, Shape, lines},
};
use crate::{
    Span,
    diagnostic::{Diagnostic, Severity, closest},
};
use fstone_model::units;

/// Filesystems, threadgroups, and values of a keyword that may be repeated. FFSB has no limit; nobody has more disks,
/// and inheritance would multiply them.
pub(super) const MAXIMUM_ENTRIES: usize = 256;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Number, flag (0 or 1) and size.
    Number(u64),
    Share(f64),
    Text(String),
    SizeAndWeight(u64, u32),
    /// Milliseconds.
    Range(f64, f64),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    pub(super) keyword: &'static Keyword,
    pub(super) value: Value,
    /// The value, or the key where there is none.
    pub(super) span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Section {
    pub(super) part: Part,
    pub(super) header: Span,
    pub(super) settings: Vec<Setting>,
    /// `[threadgroup]` in `[filesystem]`, `[stats]` in `[threadgroup]`.
    pub(super) children: Vec<Section>,
    /// Canonical names of keywords that were meant to be set, and of sections that were meant to be opened, but were
    /// written wrongly. That has been said; that they are missing is not to be said as well.
    pub(super) botched: Vec<&'static str>,
}

impl Section {
    pub(super) fn new(part: Part, header: Span) -> Self {
        Self { part, header, settings: Vec::new(), children: Vec::new(), botched: Vec::new() }
    }

    /// Takes a setting; a keyword's later value replaces the earlier one unless it may have many.
    pub(super) fn set(&mut self, setting: Setting) -> Option<Setting> {
        let name = setting.keyword.canonical;
        let place = self.settings.iter_mut().find(|old| old.keyword.canonical == name);
        match place {
            Some(old) if !setting.keyword.kind.is_list() => Some(std::mem::replace(old, setting)),
            _ => {
                self.settings.push(setting);
                None
            }
        }
    }

    pub(super) fn get(&self, canonical: &str) -> Option<&Setting> {
        self.all(canonical).next()
    }

    pub(super) fn all(&self, canonical: &str) -> impl Iterator<Item = &Setting> {
        self.settings.iter().filter(move |setting| setting.keyword.canonical == canonical)
    }

    /// A number, flag or size; 0 when it is not set.
    pub(super) fn number(&self, canonical: &str) -> u64 {
        match self.get(canonical).map(|setting| &setting.value) {
            Some(Value::Number(number)) => *number,
            _ => 0,
        }
    }

    pub(super) fn flag(&self, canonical: &str) -> bool {
        self.number(canonical) != 0
    }

    pub(super) fn share(&self, canonical: &str) -> f64 {
        match self.get(canonical).map(|setting| &setting.value) {
            Some(Value::Share(share)) => *share,
            _ => 0.0,
        }
    }

    pub(super) fn text(&self, canonical: &str) -> Option<(&str, Span)> {
        match self.get(canonical) {
            Some(Setting { value: Value::Text(text), span, .. }) => Some((text, *span)),
            _ => None,
        }
    }

    /// Whether it was meant to be set, or opened, and is not.
    pub(super) fn is_botched(&self, canonical: &str) -> bool {
        self.botched.contains(&canonical)
    }

    /// Where a keyword was set, else the section's header.
    pub(super) fn span_of(&self, canonical: &str) -> Span {
        self.get(canonical).map_or(self.header, |setting| setting.span)
    }
}

/// Reads the whole profile: the global part, with all sections as its children.
pub(super) fn read(text: &str, dialect: Dialect, findings: &mut Findings) -> Section {
    let global = Section::new(Part::Global, Span::default());
    let mut reader = Reader { dialect, findings, open: vec![global], skips: false };
    for line in lines(text) {
        if reader.findings.is_full() {
            break;
        }
        reader.line(line);
    }
    reader.finish()
}

struct Reader<'f> {
    dialect: Dialect,
    findings: &'f mut Findings,
    /// From the global part down to the section being read; never empty.
    open: Vec<Section>,
    /// In a section that nobody knows.
    skips: bool,
}

impl Reader<'_> {
    fn current(&mut self) -> &mut Section {
        self.open.last_mut().expect("the global part is never closed")
    }

    fn line(&mut self, line: Line<'_>) {
        match line.shape() {
            Shape::Section { name, .. } if name.text == "end" => self.close(line.span),
            Shape::Section { name, .. } => self.open(name, line.span),
            Shape::Setting { .. } if self.skips => {}
            Shape::Setting { key, rest, assigned } => self.setting(line, key, rest, assigned),
        }
    }

    fn open(&mut self, name: Piece<'_>, header: Span) {
        const NAMES: [&str; 4] = ["filesystem", "threadgroup", "stats", "end"];
        let mut meant = name.text;
        if !NAMES.contains(&name.text) {
            self.findings.push(
                Diagnostic::error(name.span, format!("unknown section `{}`", name.text))
                    .label("expected filesystem, threadgroup, stats or end")
                    .did_you_mean(name.text, NAMES),
            );
            meant = closest(name.text, NAMES).unwrap_or_default();
        }
        self.skips = false;
        let around = self.current().part;
        let part = match meant {
            "filesystem" => Part::Filesystem,
            "threadgroup" => Part::Threadgroup,
            "stats" => Part::Stats,
            "end" => return self.close(header),
            // What it holds cannot be judged.
            _ => {
                self.skips = true;
                self.open[0].botched.extend(["filesystem", "threadgroup"]);
                return;
            }
        };
        let fits = matches!(
            (around, part),
            (Part::Global, Part::Filesystem | Part::Threadgroup)
                | (Part::Filesystem, Part::Threadgroup)
                | (Part::Threadgroup, Part::Stats)
        );
        if !fits {
            let begun = self.current().header;
            let mut diagnostic = Diagnostic::error(header, format!("{} cannot be in {}", part.name(), around.name()));
            if around != Part::Global {
                diagnostic = diagnostic.context(begun, "begun here").help("close the section before with [end]");
            }
            self.findings.push(diagnostic);
            // As if the forgotten [end] were there, so that the rest is read for what it is.
            while !matches!((self.current().part, part), (Part::Global, _) | (Part::Threadgroup, Part::Stats)) {
                self.pop();
            }
        }
        self.open.push(Section::new(part, header));
    }

    fn close(&mut self, span: Span) {
        if std::mem::take(&mut self.skips) {
            return;
        }
        if self.open.len() > 1 {
            self.pop();
        } else {
            self.findings.push(Diagnostic::error(span, "[end] without a section").label("nothing is open here"));
        }
    }

    fn pop(&mut self) {
        let section = self.open.pop().expect("checked by the caller");
        let parent = self.current();
        let alike = parent.children.iter().filter(|child| child.part == section.part).count();
        let limit = if parent.part == Part::Global { MAXIMUM_ENTRIES } else { 1 };
        if alike < limit {
            parent.children.push(section);
        } else {
            let message = format!("there can be at most {limit} of {} here", section.part.name());
            self.findings.push(Diagnostic::error(section.header, message));
        }
    }

    fn finish(mut self) -> Section {
        while self.open.len() > 1 {
            let header = self.current().header;
            self.findings.push(Diagnostic::error(header, "this section has no end").help("close it with a line [end]"));
            self.pop();
        }
        self.open.pop().expect("the global part")
    }

    fn setting(&mut self, line: Line<'_>, key: Piece<'_>, rest: Piece<'_>, assigned: bool) {
        let part = self.current().part;
        let Some(keyword) = keyword::find(part, key.text) else {
            self.unknown(line, key, part);
            return;
        };
        let with_sign = !matches!(keyword.kind, Kind::SizeAndWeight | Kind::Range);
        if assigned != with_sign {
            let form = if with_sign { format!("{} = …", key.text) } else { format!("{} … …", key.text) };
            let message = if with_sign { "expected `=` after the keyword" } else { "this keyword takes no `=`" };
            self.findings.push(
                Diagnostic::error(key.span, message).help(format!("write `{form}`, {}", keyword.kind.expected())),
            );
            self.current().botched.push(keyword.canonical);
            return;
        }
        let Some((value, span)) = self.value(keyword, rest, key.span) else {
            self.current().botched.push(keyword.canonical);
            return;
        };
        if keyword.kind.is_list() && self.current().all(keyword.canonical).count() >= MAXIMUM_ENTRIES {
            let message = format!("more than {MAXIMUM_ENTRIES} of `{}`", key.text);
            self.findings.push(Diagnostic::error(key.span, message));
            return;
        }
        if let Some(earlier) = self.current().set(Setting { keyword, value, span }) {
            self.findings.push_with(Severity::Warning, || {
                Diagnostic::warning(span, format!("`{}` is set twice; this value counts", key.text))
                    .context(earlier.span, "set here first")
            });
        }
    }

    fn unknown(&mut self, line: Line<'_>, key: Piece<'_>, part: Part) {
        // A misplaced keyword is better news than a similar one.
        let elsewhere = KEYWORDS.iter().find(|keyword| keyword.name == key.text).map(|keyword| keyword.part);
        let skipped = self.dialect == Dialect::V5 && part != Part::Global;
        let severity = if skipped { Severity::Warning } else { Severity::Error };
        let near = || elsewhere.is_none().then(|| closest(key.text, keyword::names(part))).flatten();
        // Only looked for when something is to be said or done about it.
        let mut here = None;
        if !skipped {
            here = near();
            let meant = here.and_then(|name| keyword::find(part, name));
            self.current().botched.extend(meant.map(|keyword| keyword.canonical));
        }
        self.findings.push_with(severity, || {
            let message = format!("unknown keyword `{}` in {}", key.text, part.name());
            let diagnostic = if skipped {
                Diagnostic::warning(line.span, message).label("skipped, as FFSB 5 does")
            } else {
                Diagnostic::error(key.span, message)
            };
            let anywhere = || {
                let meant = closest(key.text, KEYWORDS.iter().map(|keyword| keyword.name))?;
                KEYWORDS.iter().find(|keyword| keyword.name == meant)
            };
            match (elsewhere, here.or_else(near)) {
                (Some(place), _) => diagnostic.help(format!("it belongs to {}", place.name())),
                (None, Some(name)) => diagnostic.help(format!("did you mean `{name}`?")),
                (None, None) => match anywhere() {
                    Some(meant) => diagnostic.help(format!("did you mean `{}` of {}?", meant.name, meant.part.name())),
                    None => diagnostic,
                },
            }
        });
    }

    /// A keyword's value and where it is; `whole` is the place to point at when there is none.
    fn value(&mut self, keyword: &Keyword, rest: Piece<'_>, whole: Span) -> Option<(Value, Span)> {
        // 5.x knows comments only as lines of their own, but ignores whatever follows a value.
        let text = if self.dialect == Dialect::V5 { rest } else { rest.without_comment() };
        let (first, after) = text.word();
        let (second, after_both) = after.word();
        let both = Span::new(first.span.start, second.span.end);
        let (value, span, beyond) = match keyword.kind {
            Kind::Number => (self.number(keyword, first, false).map(Value::Number), first.span, after),
            Kind::Size => (self.number(keyword, first, true).map(Value::Number), first.span, after),
            Kind::Flag => (self.flag(keyword, first).map(Value::Number), first.span, after),
            Kind::Share => (share(first.text).map(Value::Share), first.span, after),
            Kind::Word | Kind::Words => (some_text(first), first.span, after),
            Kind::Line => (some_text(text), text.span, text.end()),
            Kind::SizeAndWeight => {
                let size = self.number(keyword, first, true);
                let weight = second.text.parse::<u32>().ok();
                (size.zip(weight).map(|(size, weight)| Value::SizeAndWeight(size, weight)), both, after_both)
            }
            Kind::Range => {
                let range = milliseconds(first.text).zip(milliseconds(second.text)).filter(|(from, to)| from <= to);
                (range.map(|(from, to)| Value::Range(from, to)), both, after_both)
            }
        };
        let span = if text.text.is_empty() { whole } else { span };
        let Some(value) = value else {
            self.findings.push(
                Diagnostic::error(span, format!("not a value for `{}`", keyword.name))
                    .label(format!("expected {}", keyword.kind.expected())),
            );
            return None;
        };
        // The original ignores it; in 5.x profiles that is how comments are written.
        if self.dialect != Dialect::V5 && !beyond.text.is_empty() {
            self.findings.push_with(Severity::Warning, || {
                Diagnostic::warning(beyond.span, "text after the value is ignored").help("write # before a comment")
            });
        }
        Some((value, span))
    }

    fn number(&mut self, keyword: &Keyword, word: Piece<'_>, size: bool) -> Option<u64> {
        let end = word.text.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.text.len());
        let (digits, suffix) = word.text.split_at(end);
        let number: u64 = digits.parse().ok()?;
        if suffix.is_empty() {
            return Some(number);
        }
        if size {
            let bytes = units::parse_bytes(word.text).ok().filter(|_| is_size_suffix(suffix))?;
            if self.dialect == Dialect::V5 {
                self.findings.push_with(Severity::Warning, || {
                    let message = format!("FFSB 5 knows no suffixes and would read {number}; this is {bytes}");
                    Diagnostic::warning(word.span, message)
                });
            }
            return Some(bytes);
        }
        self.findings.push_with(Severity::Warning, || {
            Diagnostic::warning(word.span, format!("`{}` is a plain number; `{suffix}` is ignored", keyword.name))
                .label(format!("read as {number}, as FFSB does"))
        });
        Some(number)
    }

    fn flag(&mut self, keyword: &Keyword, word: Piece<'_>) -> Option<u64> {
        let number = self.number(keyword, word, false)?;
        match (self.dialect, number) {
            (_, 0 | 1) => Some(number),
            (Dialect::V5, _) => Some(1),
            _ => None,
        }
    }
}

impl Piece<'_> {
    /// The empty piece at its end.
    fn end(self) -> Self {
        Self { text: "", span: Span::new(self.span.end, self.span.end) }
    }
}

fn some_text(piece: Piece<'_>) -> Option<Value> {
    (!piece.text.is_empty()).then(|| Value::Text(piece.text.to_owned()))
}

fn is_size_suffix(suffix: &str) -> bool {
    ["k", "kb", "m", "mb", "g", "gb"].iter().any(|known| suffix.eq_ignore_ascii_case(known))
}

fn share(word: &str) -> Option<f64> {
    word.parse().ok().filter(|share| (0.0..=1.0).contains(share))
}

/// A time in milliseconds; more than a day is no system call's.
fn milliseconds(word: &str) -> Option<f64> {
    word.parse().ok().filter(|time| (0.0..=86_400_000.0).contains(time))
}

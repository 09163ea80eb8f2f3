//! The lines of job files: sections, settings and what is included, each with its place.

use crate::{
    Source, Span,
    diagnostic::{Diagnostic, Diagnostics, Report},
    loads::Loader,
};

/// Files that include each other more deeply than this include themselves.
const MAXIMUM_DEPTH: usize = 16;
/// Settings read in all, included files and all.
const MAXIMUM_SETTINGS: usize = 200_000;
const MAXIMUM_SECTIONS: usize = 4_000;

#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) source: Source,
    pub(super) span: Span,
}

impl Word {
    fn new(source: &Source, start: usize, text: &str) -> Self {
        Self { text: text.to_owned(), source: source.clone(), span: Span::new(start, start + text.len()) }
    }
}

/// `key=value`, or a key alone.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) key: Word,
    pub(super) value: Option<Word>,
}

#[derive(Debug, Clone)]
pub(super) struct Section {
    pub(super) name: Word,
    pub(super) settings: Vec<Setting>,
    /// The number of the job file that it comes from. The first is 0, as is the command line; `None` is for a section that holds for all files.
    pub(super) file: Option<usize>,
}

impl Section {
    pub(super) const fn new(name: Word, settings: Vec<Setting>) -> Self {
        Self { name, settings, file: Some(0) }
    }

    pub(super) fn is_global(&self) -> bool {
        self.name.text == "global"
    }

    /// Whether a `[global]` section says something of the jobs of this file. As in fio, those of other files do not.
    pub(super) fn holds_in(&self, file: Option<usize>) -> bool {
        self.is_global() && (self.file.is_none() || self.file == file)
    }
}

#[derive(Debug)]
pub(super) struct Findings {
    report: Report,
}

impl Findings {
    pub(super) const fn new(source: Source) -> Self {
        Self { report: Report::new(source) }
    }

    pub(super) fn at(&mut self, source: &Source, diagnostic: Diagnostic) {
        if source == self.report.source() {
            self.report.push(diagnostic);
        } else {
            self.report.append(Diagnostics::one(source, diagnostic));
        }
    }

    pub(super) fn error(&mut self, word: &Word, message: impl Into<String>, cure: impl Into<String>) {
        self.at(&word.source, Diagnostic::error(word.span, message).help(cure));
    }

    pub(super) fn note(&mut self, word: &Word, message: impl Into<String>, note: impl Into<String>) {
        self.at(&word.source, Diagnostic::warning(word.span, message).note(note));
    }

    pub(super) fn report(&mut self) -> &mut Report {
        &mut self.report
    }

    pub(super) fn into_report(self) -> Report {
        self.report
    }
}

pub(super) fn sections(source: &Source, loader: &mut Loader<'_>, findings: &mut Findings) -> Vec<Section> {
    let mut reader = Reader { loader, findings, sections: Vec::new(), settings: 0, open: Vec::new() };
    reader.read(source);
    reader.sections
}

struct Reader<'r, 'l> {
    loader: &'r mut Loader<'l>,
    findings: &'r mut Findings,
    sections: Vec<Section>,
    settings: usize,
    /// The files that are being read, each included by the one before.
    open: Vec<Source>,
}

impl Reader<'_, '_> {
    fn read(&mut self, source: &Source) {
        self.open.push(source.clone());
        self.lines(source);
        self.open.pop();
    }

    fn lines(&mut self, source: &Source) {
        let text = source.text();
        let mut start = 0;
        let mut lost = false;
        for line in text.split_inclusive('\n') {
            let at = start;
            start += line.len();
            let bare = uncommented(line);
            let trimmed = bare.trim();
            if trimmed.is_empty() {
                continue;
            }
            let word = Word::new(source, at + (bare.len() - bare.trim_start().len()), trimmed);
            if let Some(rest) = trimmed.strip_prefix('[') {
                self.section(&word, rest);
            } else if let Some(name) = included(trimmed) {
                self.include(&word, name);
            } else if self.settings >= MAXIMUM_SETTINGS {
                self.findings.error(&word, format!("more than {MAXIMUM_SETTINGS} settings"), "split the job file");
                return;
            } else {
                self.setting(&word, &mut lost);
            }
        }
    }

    fn section(&mut self, word: &Word, rest: &str) {
        let Some((name, _)) = rest.split_once(']') else {
            self.findings.error(word, "a section's name ends with `]`", "write [name]");
            return;
        };
        if name.trim().is_empty() {
            self.findings.error(word, "a section has no name", "write [name]");
            return;
        }
        if self.sections.len() >= MAXIMUM_SECTIONS {
            if self.sections.len() == MAXIMUM_SECTIONS {
                self.findings.error(word, format!("more than {MAXIMUM_SECTIONS} sections"), "use numjobs");
            }
            return;
        }
        let name = Word::new(&word.source, word.span.start + 1, name);
        self.sections.push(Section::new(name, Vec::new()));
    }

    fn setting(&mut self, word: &Word, lost: &mut bool) {
        self.settings += 1;
        let Some(section) = self.sections.last_mut() else {
            // One error is enough for a file that begins without a section.
            if !std::mem::replace(lost, true) {
                self.findings.error(word, "a setting outside any section", "put [global] or [name] above it");
            }
            return;
        };
        let (key, value) = match word.text.split_once('=') {
            None => (word.text.as_str(), None),
            Some((key, value)) => (key, Some((word.span.start + key.len() + 1, value))),
        };
        let value = value.map(|(start, value)| {
            Word::new(&word.source, start + (value.len() - value.trim_start().len()), value.trim())
        });
        section.settings.push(Setting { key: Word::new(&word.source, word.span.start, key.trim_end()), value });
    }

    fn include(&mut self, word: &Word, name: &str) {
        if name.is_empty() || name.starts_with('=') {
            self.findings.error(word, "an include without a file", "write the file behind a blank: include common.fio");
            return;
        }
        if self.open.len() > MAXIMUM_DEPTH {
            let what = format!("files include each other more than {MAXIMUM_DEPTH} deep");
            self.findings.error(word, what, "put what these files set into fewer of them");
            return;
        }
        let text = match (self.loader)(name) {
            Ok(text) => text,
            Err(why) => {
                let cure = "name a file that is there: its path is relative to the directory of the job file";
                self.findings.error(word, format!("`{name}` cannot be read: {why}"), cure);
                return;
            }
        };
        // Paths of one file can differ. Whatever it is called, this text leads here again.
        if let Some(place) = self.open.iter().position(|open| open.text() == text) {
            let between: Vec<String> = self.open[place + 1..].iter().map(|open| format!("`{}`", open.name())).collect();
            let by = if between.is_empty() { String::new() } else { format!(", by way of {}", between.join(" and ")) };
            let what = format!("`{name}` includes itself{by}");
            self.findings.error(word, what, "remove this line, or name the file that was meant");
            return;
        }
        self.read(&Source::new(name, text));
    }
}

fn included(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("include")?;
    (rest.is_empty() || rest.starts_with(|next: char| next.is_whitespace() || next == '=')).then(|| rest.trim())
}

/// A line without its comment: everything from a `;` or `#` on.
fn uncommented(line: &str) -> &str {
    let end = line.find([';', '#']).unwrap_or(line.len());
    line[..end].trim_end()
}

//! The options of a command line, each with its value and place.

use super::{CommandLine, Kind, Opt, Treatment, Word};
use crate::{
    Span,
    diagnostic::{Diagnostic, Report},
};
use fstone_model::units;
use std::time::Duration;

/// Words read; nobody types more.
const MAXIMUM_WORDS: usize = 1000;

#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    pub option: &'static Opt,
    /// What was given for a flag (1) or a number.
    pub number: u64,
    /// What was written; nothing for a flag.
    pub text: String,
    pub span: Span,
}

impl Given {
    pub fn read(line: &CommandLine, options: &'static [Opt], report: &mut Report) -> Vec<Self> {
        let mut reading = Reading { options, report, given: Vec::new() };
        let mut words = line.words.iter().take(MAXIMUM_WORDS);
        while let Some(word) = words.next() {
            reading.word(word, &mut words);
        }
        if line.words.len() > MAXIMUM_WORDS {
            reading.report.push(Diagnostic::whole(format!("more than {MAXIMUM_WORDS} words")));
        }
        reading.given
    }
}

struct Reading<'r> {
    options: &'static [Opt],
    report: &'r mut Report,
    given: Vec<Given>,
}

impl Reading<'_> {
    fn word<'w>(&mut self, word: &Word, rest: &mut impl Iterator<Item = &'w Word>) {
        if let Some(long) = word.text.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let found = self.options.iter().find(|option| option.has_word && option.name == name);
            match found {
                Some(option) => self.option(option, value.map(str::to_owned), word.span, rest),
                None => {
                    let words = self.options.iter().filter(|option| option.has_word).map(|option| option.name);
                    let diagnostic = Diagnostic::error(word.span, format!("unknown option --{name}"));
                    self.report.push(match crate::diagnostic::closest(name, words) {
                        Some(meant) => diagnostic.help(format!("did you mean `--{meant}`?")),
                        None => diagnostic.help("--help lists the options"),
                    });
                }
            }
            return;
        }
        let Some(letters) = word.text.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            self.report.push(
                Diagnostic::error(word.span, format!("`{}` is not an option", word.text))
                    .label("expected an option, which begins with a dash"),
            );
            return;
        };
        for (at, letter) in letters.char_indices() {
            let Some(option) = self.options.iter().find(|option| option.letter == Some(letter)) else {
                let place = Span::new(word.span.start, word.span.end);
                self.report.push(
                    Diagnostic::error(place, format!("unknown option -{letter}")).help("--help lists the options"),
                );
                return;
            };
            let behind = &letters[at + letter.len_utf8()..];
            let is_flag = option.kind == Kind::Flag;
            let value = behind.strip_prefix('=').or((!is_flag && !behind.is_empty()).then_some(behind));
            let ends = value.is_some();
            self.option(option, value.map(str::to_owned), word.span, rest);
            if ends || !is_flag {
                return;
            }
        }
    }

    fn option<'w>(
        &mut self,
        option: &'static Opt,
        value: Option<String>,
        mut span: Span,
        rest: &mut impl Iterator<Item = &'w Word>,
    ) {
        let written = option.written();
        let value = match (value, option.kind) {
            (value, Kind::Flag) => Some(value.unwrap_or_else(|| "1".into())),
            (Some(value), _) => Some(value),
            (None, _) => rest.next().map(|word| {
                span = Span::new(span.start, word.span.end);
                word.text.clone()
            }),
        };
        match option.treatment {
            Treatment::Ignored(why) => {
                self.report.push(Diagnostic::warning(span, format!("{written} has no effect")).note(why));
                return;
            }
            Treatment::Refused(why) if !(option.kind == Kind::Flag && value.as_deref() == Some("0")) => {
                self.report.push(Diagnostic::error(span, format!("{written} is not supported")).note(why));
                return;
            }
            Treatment::Refused(_) => return,
            Treatment::Supported | Treatment::Own => {}
        }
        let Some(text) = value else {
            self.report.push(
                Diagnostic::error(span, format!("{written} needs a value"))
                    .label(format!("expected {} behind it", option.kind.expected())),
            );
            return;
        };
        match option.kind.read(&text) {
            Some(number) => self.given.push(Given { option, number, text, span }),
            None => self.report.push(
                Diagnostic::error(span, format!("not a value for {written}"))
                    .label(format!("expected {}", option.kind.expected())),
            ),
        }
    }
}

impl Kind {
    /// What a value says: of a flag 1 or 0, of a time nanoseconds, of a text nothing.
    pub(super) fn read(self, text: &str) -> Option<u64> {
        match self {
            Self::Flag => text.parse().ok(),
            Self::Number(most) | Self::Size(most) => number(text).filter(|number| *number <= most),
            Self::Time => time(text).and_then(|time| u64::try_from(time.as_nanos()).ok()),
            Self::Text | Self::Any => Some(0),
        }
    }
}

/// Digits, and one letter of k, m, g, t or p in either case.
fn number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "p" => 50,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn time(text: &str) -> Option<Duration> {
    text.parse().ok().map(Duration::from_secs).or_else(|| units::parse_duration(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &[Opt] = &[
        Opt::letter('n', "items", Kind::Number(1 << 40), "how many"),
        Opt::letter('F', "files", Kind::Flag, "files"),
        Opt::letter('u', "unique", Kind::Flag, "unique").or_word(),
        Opt::letter('B', "barriers", Kind::Flag, "").treated(Treatment::Refused("phases begin together")),
        Opt::word("seed", Kind::Number(u64::MAX), "a seed"),
    ];

    fn read(line: &str) -> Result<Vec<(String, u64)>, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let line = CommandLine::of_arguments(&words);
        let mut report = Report::new(line.source.clone());
        let given = Given::read(&line, OPTIONS, &mut report);
        let given = given.into_iter().map(|given| (given.option.name.to_owned(), given.number)).collect();
        report.finish(given).map(|(given, _)| given).map_err(|wrong| wrong.to_string())
    }

    #[test]
    fn options_are_written_in_every_way_of_the_original() {
        for line in ["-n 5 -F -u", "-n5 -Fu", "-n=5 -uF", "-Fu -n 5", "-Fn5 --unique"] {
            let mut given = read(line).expect(line);
            given.sort();
            assert_eq!(given, [("files".into(), 1), ("items".into(), 5), ("unique".into(), 1)], "{line}");
        }
        assert_eq!(
            read("-n 1k --seed=3 --seed 4"),
            Ok(vec![("items".into(), 1024), ("seed".into(), 3), ("seed".into(), 4)])
        );
        assert_eq!(read("-F=0"), Ok(vec![("files".into(), 0)]));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (line, told) in [
            ("-n", "-n needs a value"),
            ("-n 1kb", "not a value for -n"),
            ("-n 9t", "not a value for -n"),
            ("-Q", "unknown option -Q"),
            ("-FQ", "unknown option -Q"),
            ("--sead=1", "did you mean `--seed`"),
            ("-FB", "-B is not supported"),
            ("stray", "`stray` is not an option"),
        ] {
            let wrong = read(line).expect_err(line);
            assert!(wrong.contains(told) && wrong.contains("command line:1:"), "{line}: {wrong}");
        }
        assert_eq!(read("-B=0"), Ok(vec![]));
    }
}

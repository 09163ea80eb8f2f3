//! From arguments to options with values, each with its place on the command line.

use super::options::{self, Kind, OPTIONS, Opt, Treatment};
use crate::{
    Source, Span,
    diagnostic::{Diagnostic, Report, closest},
};

pub(super) const COMMANDS: [&str; 3] = ["prepare", "run", "cleanup"];

/// Arguments read; nobody types more.
const MAXIMUM_ARGUMENTS: usize = 1000;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Number(u64),
    Decimal(f64),
    Switch(bool),
    Words(Vec<&'static str>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Given {
    pub(super) option: &'static Opt,
    pub(super) value: Value,
    /// The whole argument.
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) report: Report,
    pub(super) given: Vec<Given>,
    /// `prepare`, `run` or `cleanup`.
    pub(super) command: Option<&'static str>,
    /// Whether a word stands where the command should, and is none.
    pub(super) unknown_command: bool,
    pub(super) end: Span,
}

impl Arguments {
    /// Reads the arguments. What is wrong with them is in `report`.
    pub(super) fn read(args: &[String]) -> Self {
        let line = args.join(" ");
        let end = Span::new(line.len(), line.len());
        let mut this = Self {
            report: Report::new(Source::new("command line", line)),
            given: Vec::new(),
            command: None,
            unknown_command: false,
            end,
        };
        if let Some((test, span)) = other_test(args) {
            this.unknown_command = true;
            this.report.push(not_fileio(test, span));
            return this;
        }
        let mut start = 0;
        // An option that wants a value and has none probably has it in the next argument.
        let mut value_lost = false;
        for arg in args.iter().take(MAXIMUM_ARGUMENTS) {
            let span = Span::new(start, start + arg.len());
            start = span.end + 1;
            match arg.strip_prefix("--") {
                Some(option) => value_lost = !this.option(option, span),
                None if std::mem::take(&mut value_lost) && !COMMANDS.contains(&arg.as_str()) => {}
                None => this.word(arg, span),
            }
        }
        if args.len() > MAXIMUM_ARGUMENTS {
            this.report.push(Diagnostic::whole(format!("more than {MAXIMUM_ARGUMENTS} arguments")));
        }
        this
    }

    /// What was given for an option; the last counts.
    pub(super) fn get(&self, canonical: &str) -> Option<&Given> {
        self.given.iter().rev().find(|given| given.option.canonical == canonical)
    }

    /// What was given, or the default of the option's row.
    pub(super) fn value(&self, canonical: &str) -> Option<Value> {
        self.get(canonical).map(|given| given.value.clone()).or_else(|| default(canonical))
    }

    /// 0 for one that has no value.
    pub(super) fn number(&self, canonical: &str) -> u64 {
        if let Some(Value::Number(number)) = self.value(canonical) { number } else { 0 }
    }

    pub(super) fn switch(&self, canonical: &str) -> bool {
        self.value(canonical) == Some(Value::Switch(true))
    }

    pub(super) fn words(&self, canonical: &str) -> Vec<&'static str> {
        if let Some(Value::Words(words)) = self.value(canonical) { words } else { Vec::new() }
    }

    /// Where an option was given, else the end of the line.
    pub(super) fn span_of(&self, canonical: &str) -> Span {
        self.get(canonical).map_or(self.end, |given| given.span)
    }

    fn word(&mut self, word: &str, span: Span) {
        let command = COMMANDS.into_iter().find(|command| *command == word);
        match (command, self.command) {
            (Some(command), None) => self.command = Some(command),
            (Some(_), Some(_)) => self.report.push(Diagnostic::error(span, "more than one command")),
            (None, _) if word == "fileio" => {}
            (None, _) => {
                self.unknown_command = true;
                self.report.push(
                    Diagnostic::error(span, format!("unknown command `{word}`"))
                        .label("expected fileio, prepare, run or cleanup")
                        .did_you_mean(word, COMMANDS),
                );
            }
        }
    }

    /// Takes an option. False when it lacks its value.
    fn option(&mut self, text: &str, span: Span) -> bool {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let name_span = Span::new(span.start, span.start + 2 + name.len());
        let Some(option) = options::find(name) else {
            let diagnostic = Diagnostic::error(name_span, format!("unknown option --{name}"));
            // `file-` is what most of them begin with, and what is forgotten most.
            let whole = OPTIONS.iter().find(|option| option.name.strip_prefix("file-") == Some(name));
            let meant = whole.map(|option| option.name);
            self.report.push(match meant.or_else(|| closest(name, OPTIONS.iter().map(|option| option.name))) {
                Some(meant) => diagnostic.help(format!("did you mean `--{meant}`?")),
                None => diagnostic,
            });
            return true;
        };
        match option.treatment {
            Treatment::Ignored(why) => {
                self.report.push(Diagnostic::warning(span, format!("--{name} is ignored")).note(why));
                return true;
            }
            Treatment::Refused(why) => {
                self.report.push(Diagnostic::error(span, format!("--{name} is not supported")).note(why));
                return true;
            }
            Treatment::Supported => {}
        }
        let Some(value) = value.or(if option.kind == Kind::Switch { Some("on") } else { None }) else {
            self.report.push(
                Diagnostic::error(span, format!("--{name} needs a value"))
                    .label(format!("expected `=` and {}", option.kind.expected()))
                    .help(format!("write --{name}=… in one word, as sysbench has it")),
            );
            return false;
        };
        match read(option.kind, value) {
            Ok(value) => self.given.push(Given { option, value, span }),
            Err(wrong) => {
                let place = wrong.and_then(|wrong| value.find(wrong).map(|at| (at, wrong.len())));
                let (at, length) = place.unwrap_or((0, value.len()));
                let start = name_span.end + 1 + at;
                let bad = if value.is_empty() { span } else { Span::new(start, start + length) };
                let mut diagnostic = Diagnostic::error(bad, format!("not a value for --{name}"))
                    .label(format!("expected {}", option.kind.expected()));
                if let Kind::Choice(words) | Kind::List(words) = option.kind {
                    diagnostic = diagnostic.did_you_mean(wrong.unwrap_or(value), words.iter().copied());
                }
                self.report.push(diagnostic);
            }
        }
        true
    }
}

/// A test of sysbench's other than fileio: `--test=NAME`, or the first word that is no option.
fn other_test(args: &[String]) -> Option<(&str, Span)> {
    const OTHERS: [&str; 5] = ["cpu", "memory", "threads", "mutex", "bulk_insert"];
    let is_other = |name: &str| {
        let of_database = ["oltp", "select_", "tpcc"].iter().any(|prefix| name.starts_with(prefix));
        of_database || OTHERS.contains(&name) || name.ends_with(".lua")
    };
    let mut start = 0;
    args.iter().find_map(|arg| {
        let span = Span::new(start, start + arg.len());
        start = span.end + 1;
        let name = arg.strip_prefix("--test=").or((!arg.starts_with("--")).then_some(arg))?;
        is_other(name).then_some((name, span))
    })
}

/// Its options mean nothing here, so this is all that is said.
fn not_fileio(test: &str, span: Span) -> Diagnostic {
    let itself = "sysbench itself as a step's command (docs/applications.md)";
    let is_bare = ["cpu", "memory", "threads", "mutex"].contains(&test);
    Diagnostic::error(span, "fstone runs sysbench's fileio only").help(if is_bare {
        format!("run {itself}")
    } else {
        format!("for a database itself: `fstone run postgresql`, or {itself}")
    })
}

/// The value of an option that is not given.
pub(super) fn default(canonical: &str) -> Option<Value> {
    let option = options::find(canonical).filter(|option| !option.default.is_empty())?;
    read(option.kind, option.default).ok()
}

/// A value, or what of it is wrong (everything when `None`).
fn read(kind: Kind, text: &str) -> Result<Value, Option<&str>> {
    match kind {
        Kind::Number => text.parse().map(Value::Number).map_err(|_| None),
        Kind::Size => size(text).map(Value::Number).ok_or(None),
        Kind::Decimal => {
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
            number.map(Value::Decimal).ok_or(None)
        }
        Kind::Switch => match text {
            "on" | "true" | "1" => Ok(Value::Switch(true)),
            "off" | "false" | "0" => Ok(Value::Switch(false)),
            _ => Err(None),
        },
        Kind::Choice(words) => {
            let word = words.iter().find(|word| **word == text);
            word.map(|word| Value::Words(vec![word])).ok_or(None)
        }
        Kind::List(words) => text
            .split(',')
            .filter(|word| !word.is_empty())
            .map(|word| words.iter().copied().find(|known| *known == word).ok_or(Some(word)))
            .collect::<Result<_, _>>()
            .map(Value::Words),
        Kind::Any => Ok(Value::Words(Vec::new())),
    }
}

/// Digits and one letter of K, M, G, T in either case, as sysbench with or without a B behind it.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let letters = text[digits.len()..].to_ascii_uppercase();
    let shift = match if letters.len() == 2 { letters.strip_suffix('B').unwrap_or(&letters) } else { &letters } {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

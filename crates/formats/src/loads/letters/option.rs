//! An option's line in a table, and the help that is made of such a table.

use crate::loads::CommandOnly;
use std::fmt::Write as _;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing. Given `=0` it is off.
    Flag,
    /// A whole number, with k, m, g or t behind it for powers of 1024, up to this one.
    Number(u64),
    /// The same, of bytes.
    Size(u64),
    Text,
    /// A time, such as `60s`; a number alone is of seconds.
    Time,
    Any,
}

impl Kind {
    pub const fn placeholder(self) -> &'static str {
        match self {
            Self::Flag => "",
            Self::Number(_) => " N",
            Self::Size(_) => " BYTES",
            Self::Text => " WORD",
            Self::Time => " TIME",
            Self::Any => " …",
        }
    }

    pub fn expected(self) -> String {
        match self {
            Self::Flag => "nothing, 0 or 1".into(),
            Self::Number(most) if most < u64::MAX >> 1 => format!("a whole number up to {most}"),
            Self::Number(_) => "a whole number".into(),
            Self::Size(_) => "a number of bytes, such as 3901, 4k or 1m".into(),
            Self::Time => "a time, such as 30 or 30s".into(),
            Self::Text | Self::Any => "a word".into(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// It means what it means to the original, or better.
    Supported,
    /// It is taken and does nothing, for this reason, which is told.
    Ignored(&'static str),
    Refused(&'static str),
    Own,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opt {
    pub letter: Option<char>,
    /// Its word without the dashes; what it is called by here where it only has a letter.
    pub name: &'static str,
    pub has_word: bool,
    pub kind: Kind,
    pub treatment: Treatment,
    pub about: &'static str,
    /// The value that it has when it is not given; empty for none.
    pub default: &'static str,
    /// Why the whole option, or one with this in its value, is no part of the load.
    pub command_only: Option<(CommandOnly, &'static str)>,
}

impl Opt {
    pub const fn letter(letter: char, name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { letter: Some(letter), has_word: false, ..Self::word(name, kind, about) }
    }

    pub const fn word(name: &'static str, kind: Kind, about: &'static str) -> Self {
        let treatment = Treatment::Supported;
        Self { letter: None, name, has_word: true, kind, treatment, about, default: "", command_only: None }
    }

    pub const fn treated(self, treatment: Treatment) -> Self {
        Self { treatment, ..self }
    }

    pub const fn default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    pub const fn command_only(self, why: CommandOnly) -> Self {
        self.command_only_with(why, "")
    }

    pub const fn command_only_with(self, why: CommandOnly, part: &'static str) -> Self {
        Self { command_only: Some((why, part)), ..self }
    }

    pub const fn or_word(self) -> Self {
        Self { has_word: true, ..self }
    }

    pub fn written(&self) -> String {
        self.letter.map_or_else(|| format!("--{}", self.name), |letter| format!("-{letter}"))
    }
}

pub fn asks_for_help(arguments: &[String]) -> bool {
    arguments.iter().any(|word| word == "-h" || word == "--help")
}

pub fn help(options: &[Opt]) -> String {
    let mut out = String::new();
    let left = |option: &Opt| match (option.letter, option.has_word) {
        (Some(letter), true) => format!("-{letter}, --{}{}", option.name, option.kind.placeholder()),
        _ => format!("{}{}", option.written(), option.kind.placeholder()),
    };
    for (head, treatment) in [("Options:", Treatment::Supported), ("fstone's own:", Treatment::Own)] {
        let section: Vec<&Opt> = options.iter().filter(|option| option.treatment == treatment).collect();
        let width = section.iter().map(|option| left(option).chars().count()).max().unwrap_or(0);
        let _ = writeln!(out, "\n{head}");
        for option in section {
            let default = if option.default.is_empty() { String::new() } else { format!(" [{}]", option.default) };
            let _ = writeln!(out, "  {:<width$}  {}{default}", left(option), option.about);
        }
    }
    let names = |wanted: fn(&Treatment) -> bool| -> Vec<String> {
        options.iter().filter(|option| wanted(&option.treatment)).map(Opt::written).collect()
    };
    let lists = [
        ("Accepted without effect, with a warning", names(|treatment| matches!(treatment, Treatment::Ignored(_)))),
        ("Refused, with a reason", names(|treatment| matches!(treatment, Treatment::Refused(_)))),
    ];
    for (head, names) in lists.iter().filter(|(_, names)| !names.is_empty()) {
        let _ = writeln!(out, "\n{head}:");
        for line in names.chunks(5) {
            let _ = writeln!(out, "  {}", line.join(" "));
        }
    }
    out
}

//! What `--help`, `fileio help` and `--version` ask for.

use super::options::{Kind, OPTIONS, Opt, Treatment};
use std::fmt::Write as _;

/// What a command line asks to be told, in place of something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Help,
    Version,
}

/// What the arguments after `sysbench` ask to be told, if anything. As with sysbench, whatever else there is does not
/// count then.
pub fn asked(args: &[String]) -> Option<Asked> {
    args.iter().find_map(|arg| match arg.as_str() {
        "--help" | "--help=on" | "-h" | "help" => Some(Asked::Help),
        "--version" | "--version=on" | "-V" => Some(Asked::Version),
        _ => None,
    })
}

/// The program's name and version, as the first line of every output has it.
pub fn version() -> String {
    format!("sysbench 1.0.20 (fstone {})\n", env!("CARGO_PKG_VERSION"))
}

pub fn help() -> String {
    let mut out = String::from(
        "Run a sysbench fileio command line unchanged\n\nUsage:\n  fstone sysbench [options]... fileio prepare|run|cleanup|help\n\n\
         The files are test_file.0 and so on, in the current directory: `prepare` makes them, `run` uses\n\
         them, and `cleanup` removes them. A value follows its option after `=`, in the same word.\n",
    );
    let supported = |option: &&Opt| option.treatment == Treatment::Supported;
    let is_old = |option: &&Opt| option.canonical != option.name || matches!(option.name, "test" | "max-requests");
    let section = |option: &&Opt| match () {
        () if is_old(option) => "Old names",
        () if option.name.starts_with("file-") => "fileio options",
        () => "General options",
    };
    for head in ["General options", "fileio options", "Old names"] {
        let options: Vec<&Opt> = OPTIONS.iter().filter(supported).filter(|option| section(option) == head).collect();
        let width = options.iter().map(|option| name(option).len()).max().unwrap_or(0);
        let _ = writeln!(out, "\n{head}:");
        for option in options {
            let _ = writeln!(out, "  {:<width$}  {}", name(option), about(option));
        }
    }
    let ignored: Vec<String> = OPTIONS
        .iter()
        .filter(|option| matches!(option.treatment, Treatment::Ignored(_)))
        .map(|option| format!("--{}", option.name))
        .collect();
    let _ = writeln!(out, "\nAccepted without effect:");
    for line in ignored.chunks(4) {
        let _ = writeln!(out, "  {}", line.join(" "));
    }
    out
}

/// "--file-num=N"
fn name(option: &Opt) -> String {
    let value = match option.kind {
        Kind::Number | Kind::Decimal => "=N",
        Kind::Size => "=SIZE",
        Kind::Switch => "[=on|off]",
        Kind::Choice(_) | Kind::Any => "=WORD",
        Kind::List(_) => "=WORD,...",
    };
    format!("--{}{value}", option.name)
}

/// "how many files [128]"
fn about(option: &Opt) -> String {
    let mut about = option.about.to_owned();
    if option.canonical != option.name {
        let _ = write!(about, " of --{}", option.canonical);
    }
    if let Kind::Choice(words) | Kind::List(words) = option.kind {
        let _ = write!(about, " {{{}}}", words.join(","));
    }
    if !option.default.is_empty() {
        let _ = write!(about, " [{}]", option.default);
    }
    about
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn help_is_asked_for_in_every_way_of_sysbench() {
        for line in ["--help", "fileio --help", "fileio help", "--file-num=3 fileio --help run"] {
            assert_eq!(asked(&words(line)), Some(Asked::Help), "{line}");
        }
        assert_eq!(asked(&words("--version")), Some(Asked::Version));
        assert_eq!(asked(&words("fileio --file-test-mode=rndrd run")), None);
    }

    #[test]
    fn every_option_that_is_taken_is_told_with_its_default() {
        let help = help();
        for option in OPTIONS.iter().filter(|option| !matches!(option.treatment, Treatment::Refused(_))) {
            assert!(help.contains(&format!("--{}", option.name)), "{}", option.name);
            assert_eq!(option.about.is_empty(), option.treatment != Treatment::Supported, "{}", option.name);
        }
        assert!(help.contains("how many files [128]") && help.contains("{seqwr,seqrewr,"), "{help}");
        assert!(help.lines().all(|line| line.len() <= 130), "{help}");
    }
}

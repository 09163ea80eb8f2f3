//! From the words of a command line to what it means.

use super::{
    command::{FILE, Ior},
    options::OPTIONS,
};
use crate::{
    Diagnostics,
    diagnostic::{Diagnostic, Report},
    loads::letters::{CommandLine, Given},
};
use fstone_model::workload::RANK;
use std::time::Duration;

/// Reads a command line.
///
/// # Errors
/// Everything that is wrong with it. Warnings alone are no failure; they are in [`Ior::warnings`].
pub fn parse(line: &CommandLine) -> Result<Ior, Diagnostics> {
    let mut report = Report::new(line.source.clone());
    let given = Given::read(line, OPTIONS, &mut report);
    let ior = Said { given: &given, report: &mut report }.ior();
    let (mut ior, warnings) = report.finish(ior)?;
    ior.warnings = warnings;
    Ok(ior)
}

/// What was given, and what is found about it.
struct Said<'a> {
    given: &'a [Given],
    report: &'a mut Report,
}

impl Said<'_> {
    /// The last counts.
    fn get(&self, name: &str) -> Option<&Given> {
        self.given.iter().rev().find(|given| given.option.name == name)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.get(name).map(|given| given.number)
    }

    fn flag(&self, name: &str) -> bool {
        self.number(name).unwrap_or(0) > 0
    }

    fn wrong(&mut self, names: &[&str], message: impl Into<String>, help: &str) {
        let place = names.iter().find_map(|name| self.get(name)).map(|given| given.span);
        let diagnostic = place.map_or_else(|| Diagnostic::whole(""), |place| Diagnostic::error(place, ""));
        self.report.push(Diagnostic { message: message.into(), ..diagnostic }.help(help));
    }

    fn ior(&mut self) -> Ior {
        let (wear_out, json) = self.directives();
        let (write, read) = (self.flag("write"), self.flag("read"));
        let time = |given: Option<u64>, default| Duration::from_nanos(given.unwrap_or(default));
        let shift = if self.flag("shift") { self.number("shift-by").unwrap_or(1) } else { 0 };
        let ior = Ior {
            file: self.get("file").map_or_else(|| FILE.to_owned(), |given| given.text.clone()),
            block_bytes: self.number("block").unwrap_or(1 << 20),
            transfer_bytes: self.number("transfer").unwrap_or(256 << 10),
            segments: self.number("segments").unwrap_or(1),
            file_per_process: self.flag("file-per-process"),
            write: write || !read,
            read: read || !write,
            shift: u32::try_from(shift).unwrap_or(u32::MAX),
            random: self.flag("random"),
            fsync: self.flag("fsync"),
            fsync_per_write: self.flag("fsync-per-write"),
            keep: self.flag("keep"),
            repetitions: self.number("repetitions").unwrap_or(1),
            deadline: self.number("deadline").filter(|seconds| *seconds > 0).map(Duration::from_secs),
            wear_out,
            direct: self.flag("posix.odirect"),
            seed: self.number("seed"),
            results: self.get("results").map(|given| given.text.clone()),
            json: json || self.flag("json"),
            silence: time(self.number("rank-silence"), 60_000_000_000),
            stillness: time(self.number("rank-stillness"), 600_000_000_000),
            warnings: None,
        };
        self.check(&ior);
        ior
    }

    /// What `-O` says: whether a stonewall wears out, and whether JSON is printed.
    fn directives(&mut self) -> (bool, bool) {
        let (mut wear_out, mut json) = (false, false);
        for given in self.given.iter().filter(|given| given.option.name == "directives") {
            for directive in given.text.split(',').filter(|directive| !directive.is_empty()) {
                let (name, value) = directive.split_once('=').unwrap_or((directive, "1"));
                match name {
                    "stoneWallingWearOut" => wear_out = value != "0",
                    "summaryFormat" => json = value.eq_ignore_ascii_case("json"),
                    _ => {
                        let message = format!("the directive {name} is not supported");
                        let help = "stoneWallingWearOut=1 and summaryFormat=JSON are; others are options of a letter";
                        self.report.push(Diagnostic::error(given.span, message).help(help));
                    }
                }
            }
        }
        (wear_out, json)
    }

    /// What does not go together.
    fn check(&mut self, ior: &Ior) {
        if let Some(api) =
            self.get("api").map(|given| given.text.clone()).filter(|api| !api.eq_ignore_ascii_case("posix"))
        {
            self.wrong(
                &["api"],
                format!("there is no interface {api} here"),
                "files are reached by system calls, as with -a POSIX",
            );
        }
        if ior.transfer_bytes == 0 || ior.block_bytes == 0 || ior.segments == 0 || ior.repetitions == 0 {
            self.wrong(
                &["transfer", "block", "segments", "repetitions"],
                "nothing would be moved",
                "-t, -b, -s and -i are 1 or more",
            );
        } else if !ior.block_bytes.is_multiple_of(ior.transfer_bytes) {
            let message =
                format!("a piece of {} bytes is no multiple of transfers of {}", ior.block_bytes, ior.transfer_bytes);
            self.wrong(&["block", "transfer"], message, "-b as a multiple of -t");
        }
        if ior.block_bytes.checked_mul(ior.segments).is_none_or(|bytes| bytes > 1 << 60) {
            self.wrong(
                &["segments", "block"],
                "a task would move more than a file can have",
                "fewer segments, or smaller ones",
            );
        }
        let name = ior.name();
        if name.is_empty() || matches!(name, "." | "..") || name.contains(['@', '\0']) || name.contains(RANK) {
            self.wrong(
                &["file"],
                format!("{:?} is no file", ior.file),
                "one file; with -F each task has one of that name and its number",
            );
        }
        if ior.random && ior.deadline.is_some() {
            self.wrong(
                &["random"],
                "of transfers in random order that a deadline ends nobody knows which were made",
                "-z, or -D",
            );
        }
        if ior.wear_out && ior.deadline.is_none() {
            self.wrong(&["directives"], "stoneWallingWearOut needs a deadline", "-D 300, for example");
        }
        if ior.repetitions > 500 {
            self.wrong(&["repetitions"], "more phases than one load can have", "fewer, or several runs");
        }
    }
}

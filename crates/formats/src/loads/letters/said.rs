//! What a command line said, and what is found about it.

use super::{CommandLine, Given, Opt};
use crate::{
    Diagnostics,
    diagnostic::{Diagnostic, Report},
};
use fstone_model::{ranks::LEAST_PATIENCE, units};
use std::time::Duration;

const SECTOR_BYTES: u64 = 512;

/// What was given, and what is found about it.
#[derive(Debug)]
pub struct Said<'a> {
    options: &'static [Opt],
    pub(in crate::loads) given: &'a [Given],
    pub(in crate::loads) report: &'a mut Report,
}

impl Said<'_> {
    /// Reads a command line, and has `meaning` say what it means; beside that are warnings.
    pub fn read<T>(
        line: &CommandLine,
        options: &'static [Opt],
        meaning: impl FnOnce(&mut Said<'_>) -> T,
    ) -> Result<(T, Option<Diagnostics>), Diagnostics> {
        let mut report = Report::new(line.source.clone());
        let given = Given::read(line, options, &mut report);
        let meant = meaning(&mut Said { options, given: &given, report: &mut report });
        report.finish(meant)
    }

    /// An option, by its name in the table. The last one counts.
    pub fn get(&self, name: &str) -> Option<&Given> {
        self.given.iter().rev().find(|given| given.option.name == name)
    }

    /// The default that an option's row in the table has.
    fn default(&self, name: &str) -> Option<&'static Opt> {
        self.options.iter().find(|option| option.name == name && !option.default.is_empty())
    }

    /// The number given for an option, or its default; of a time, nanoseconds.
    pub fn number(&self, name: &str) -> Option<u64> {
        let default = || self.default(name).and_then(|option| option.kind.read(option.default));
        self.get(name).map(|given| given.number).or_else(default)
    }

    /// The same of one that always has a value.
    pub fn count(&self, name: &str) -> u64 {
        self.number(name).unwrap_or(0)
    }

    /// The same where larger values mean the largest.
    pub fn small(&self, name: &str) -> u32 {
        u32::try_from(self.count(name)).unwrap_or(u32::MAX)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.count(name) > 0
    }

    pub fn text(&self, name: &str) -> Option<String> {
        let default = || self.default(name).map(|option| option.default.to_owned());
        self.get(name).map(|given| given.text.clone()).or_else(default)
    }

    /// Seconds after which something ends; 0 is never.
    pub fn deadline(&self, name: &str) -> Option<Duration> {
        Some(self.count(name)).filter(|seconds| *seconds > 0).map(Duration::from_secs)
    }

    /// How long to wait for a task: no less than [`LEAST_PATIENCE`].
    pub fn patience(&mut self, name: &str) -> Duration {
        let time = Duration::from_nanos(self.count(name));
        if time < LEAST_PATIENCE {
            let words = format!("--{name} is at least {}", units::format_duration(LEAST_PATIENCE));
            self.wrong(&[name], words, "a task gives a sign of life about once a second, and a busy machine delays it");
        }
        time
    }

    /// Reports an error where one of these was given, else of the whole.
    pub fn wrong(&mut self, names: &[&str], message: impl Into<String>, help: &str) {
        let place = names.iter().find_map(|name| self.get(name)).map(|given| given.span);
        let diagnostic = place.map_or_else(|| Diagnostic::whole(""), |place| Diagnostic::error(place, ""));
        let diagnostic = Diagnostic { message: message.into(), ..diagnostic };
        self.report.push(if help.is_empty() { diagnostic } else { diagnostic.help(help) });
    }

    pub fn warn(&mut self, name: &str, message: &str, note: &str) {
        let place = self.get(name).map(|given| given.span);
        if let Some(place) = place {
            self.report.push(Diagnostic::warning(place, message).note(note));
        }
    }

    /// What O_DIRECT does not move on filesystems of disks: the originals fail on most of it there.
    pub fn check_direct(&mut self, name: &str, bytes: u64) {
        if !bytes.is_multiple_of(SECTOR_BYTES) {
            let message = format!("O_DIRECT moves whole sectors of {SECTOR_BYTES} bytes here, and not {bytes} bytes");
            self.wrong(&[name], message, "a multiple of 4k, or no O_DIRECT");
        }
    }

    /// `-a`: files are reached by system calls.
    pub fn check_interface(&mut self) {
        if let Some(api) = self.text("api").filter(|api| !api.eq_ignore_ascii_case("posix")) {
            let message = format!("there is no interface {api} here");
            self.wrong(&["api"], message, "files are reached by system calls, as with -a POSIX");
        }
    }
}

//! What the end of a step's command means, and what a count of extents found.

use crate::{
    command::{CommandLine, CommandOutput, RECORD_TAIL_BYTES, typed},
    filesystem::{Filesystem, Verdict, mkfs_refused},
    fragmentation::Fragmentation,
    trial::{
        aged::{OLD_IMAGE, TO_CLEAN},
        measure::is_accepted,
        record::{Halt, StepReport, failed},
        session::Session,
    },
};
use fstone_model::{
    Figure, Outcome, Step,
    outcome::{NOT_CHECKED, NOT_CONSISTENT, Reason},
    output::{From, OutputFigure, SEARCHED_BYTES, Several},
    own::OwnCommand,
    study::StepAction,
    text,
    units::format_bytes,
};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use std::{
    borrow::Cow,
    fs,
    io::{self, Read},
    path::Path,
};

impl Session {
    pub(super) fn judge(&mut self, step: &Step, output: &CommandOutput, report: &mut StepReport) -> Result<(), Halt> {
        let good = match &step.action {
            StepAction::Fsck { .. } if self.own.is_some() => {
                if output.status == 0 {
                    return Ok(());
                }
                let said = format!("`check`: exit status {}: {}", output.status, last_words(output));
                return Err(failed(step, format!("{NOT_CONSISTENT}: {said}")));
            }
            StepAction::Mkfs if self.own.is_some() => return self.judge_own(step, OwnCommand::Make, output),
            StepAction::Fsck { .. } => return self.judge_check(step, output, report),
            action => is_accepted(action, output.status),
        };
        if good {
            return match &step.action {
                StepAction::Command { figures, .. } => self.read_figures(step, figures, output, report),
                _ => Ok(()),
            };
        }
        let reason = Reason::new(&step.name, output.words());
        Err(Halt::Outcome(match &step.action {
            StepAction::Mkfs if mkfs_refused(&self.spec.mkfs, output) => Outcome::Refused(reason),
            StepAction::Command { .. } => {
                let status = format!("exit status {}", output.status);
                let said = output.last_words();
                let said = if said.starts_with(&status) { said } else { format!("{status}: {said}") };
                Outcome::Failed(Reason { words: format!("{said} (in `{}`)", begins(&ran(report))), ..reason })
            }
            _ => Outcome::Failed(reason),
        }))
    }

    fn read_figures(
        &mut self,
        step: &Step,
        figures: &[OutputFigure],
        output: &CommandOutput,
        report: &mut StepReport,
    ) -> Result<(), Halt> {
        let (found, warnings, wrong) = take_figures(&self.place, figures, output);
        report.figures.extend(found);
        warnings.into_iter().for_each(|words| self.warn(format!("{}: {words}", step.name)));
        wrong.map_or(Ok(()), |words| Err(failed(step, words)))
    }

    fn judge_check(&mut self, step: &Step, output: &CommandOutput, report: &mut StepReport) -> Result<(), Halt> {
        let Some(filesystem) = self.filesystem else { return Ok(()) };
        report.figures.extend(filesystem.figures(output));
        let said = || format!("{}: exit status {}: {}", ran(report), output.status, last_words(output));
        if step.name == OLD_IMAGE && filesystem.is_unclean(output) {
            let reason = Reason::new(OLD_IMAGE, "its filesystem was not unmounted, and its log has to be replayed");
            return Err(Halt::Outcome(Outcome::Refused(reason.with_cure(TO_CLEAN))));
        }
        match filesystem.verdict(output) {
            Verdict::Clean => Ok(()),
            Verdict::Corrected => {
                self.warn(format!("{}: the check found something to correct: {}", step.name, said()));
                Ok(())
            }
            Verdict::Errors => Err(failed(step, format!("{NOT_CONSISTENT}: {}", said()))),
            Verdict::Unusable => Err(failed(step, format!("{NOT_CHECKED}: {}", said()))),
        }
    }

    pub(super) fn count(&mut self, step: &Step, counted: &Fragmentation, report: &mut StepReport) -> Result<(), Halt> {
        report.figures.extend(counted.figures());
        for failure in &counted.errors {
            let error = std::io::Error::from_raw_os_error(failure.errno);
            // A file that the filesystem can count no extents of is one thing, a filesystem that cannot be read another.
            if matches!(failure.errno, libc::EIO | libc::EUCLEAN) {
                return Err(failed(step, format!("{} {}: {error}", failure.call, failure.path.display())));
            }
            let times = if failure.count > 1 { format!(" ({} times)", failure.count) } else { String::new() };
            self.warn(format!(
                "{}: left out of the count: {} {}: {error}{times}",
                step.name,
                failure.call,
                failure.path.display()
            ));
        }
        Ok(())
    }
}

/// Takes figures out of what a command printed: those that are there, warnings, and what is wrong with the first that is not.
pub(super) fn take_figures(
    place: &Path,
    figures: &[OutputFigure],
    output: &CommandOutput,
) -> (Vec<Figure>, Vec<String>, Option<String>) {
    let (mut found, mut warnings) = (Vec::new(), Vec::new());
    for figure in figures {
        let (bytes, name) = match &figure.from {
            From::Stdout => (Cow::Borrowed(&output.whole[0]), "standard output"),
            From::Stderr => (Cow::Borrowed(&output.whole[1]), "standard error"),
            From::File(path) => match read_below(place, path) {
                Ok(bytes) => (Cow::Owned(bytes), path.as_str()),
                Err(error) => {
                    let said = last_words(output);
                    let said = if said.is_empty() { said } else { format!("; the command ended with: {said}") };
                    return (found, warnings, Some(format!("{:?}: {path}: {error}{said}", figure.name)));
                }
            },
        };
        let cut = bytes.len() > SEARCHED_BYTES;
        let searched = &bytes[..bytes.len().min(SEARCHED_BYTES)];
        let too_long =
            format!("{name} is longer than {}, which is all that is searched", format_bytes(SEARCHED_BYTES as u64));
        if cut && figure.several != Several::First {
            return (found, warnings, Some(format!("{:?}: {too_long}", figure.name)));
        }
        match figure.read(searched) {
            Ok(figures) => found.extend(figures),
            Err(error) => {
                let said = last_words(&CommandOutput { stdout: end_of(searched), ..CommandOutput::default() });
                let said = if said.is_empty() { "it is empty".to_owned() } else { format!("it ends with: {said}") };
                return (found, warnings, Some(format!("{:?} in {name}: {error}; {said}", figure.name)));
            }
        }
        let not_text = std::str::from_utf8(searched).is_err().then(|| format!("{name} is not text (UTF-8)"));
        for words in cut.then_some(too_long).into_iter().chain(not_text) {
            if !warnings.contains(&words) {
                warnings.push(words);
            }
        }
    }
    (found, warnings, None)
}

fn read_below(place: &Path, path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_below(place, path)?.take(SEARCHED_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file that commands made in the filesystem, and nothing outside it, whatever links they made.
pub(super) fn open_below(place: &Path, path: &str) -> io::Result<fs::File> {
    let directory = fs::File::open(place)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let file = fs::File::from(openat2(&directory, path, flags, Mode::empty(), resolve)?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    Ok(file)
}

/// The end of an output, fit to be recorded.
fn end_of(bytes: &[u8]) -> String {
    let end = &bytes[bytes.len().saturating_sub(RECORD_TAIL_BYTES)..];
    text::lines(&String::from_utf8_lossy(end))
}

fn ran(report: &StepReport) -> String {
    report.commands.last().map(|command| typed(&command.argv)).unwrap_or_default()
}

/// The beginning of a command, which may be a script of many lines; all of it is in the record.
fn begins(typed: &str) -> String {
    const SHOWN: usize = 60;
    let first = typed.lines().next().unwrap_or_default();
    let short: String = first.chars().take(SHOWN).collect();
    if short == typed { short } else { format!("{}…", short.trim_end()) }
}

pub(in crate::trial) struct Checked {
    /// `None` if the check could not be made.
    pub(in crate::trial) clean: Option<bool>,
    pub(in crate::trial) words: Option<String>,
}

impl Checked {
    pub(in crate::trial) fn of(filesystem: &dyn Filesystem, command: &CommandLine, output: &CommandOutput) -> Self {
        let said = || found_by(command, output);
        if filesystem.is_clean_after_power_cut(output) {
            return Self { clean: Some(true), words: None };
        }
        match filesystem.verdict(output) {
            Verdict::Unusable => Self { clean: None, words: Some(format!("{NOT_CHECKED}: {}", said())) },
            _ => Self { clean: Some(false), words: Some(said()) },
        }
    }
}

/// The first faults that e2fsck found, which ends with a summary, or the last words of another tool; without the path of the image, which
/// is gone when this is read.
fn found_by(command: &CommandLine, output: &CommandOutput) -> String {
    let argv = command.argv();
    let (paths, words): (Vec<String>, Vec<String>) = argv.into_iter().partition(|word| word.starts_with('/'));
    let summary = |line: &str| paths.iter().any(|path| line.starts_with(&format!("{path}: ")));
    let lines = || output.stdout.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_pass = |line: &str| line.starts_with("Pass ");
    let faults: Vec<&str> = lines().filter(|line| !is_pass(line) && !summary(line)).take(SAID_LINES).collect();
    let said = if lines().any(is_pass) && !faults.is_empty() { faults.join("; ") } else { last_words(output) };
    let said = paths.iter().fold(said, |said, path| said.replace(path, "the image"));
    format!("{}: exit status {}: {said}", typed(&words), output.status)
}

const SAID_LINES: usize = 3;

pub(super) fn last_words(output: &CommandOutput) -> String {
    let lines: Vec<&str> =
        output.stdout.lines().chain(output.stderr.lines()).map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(SAID_LINES)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that could not be made is neither clean nor damage.
    #[test]
    fn checks_after_a_power_cut() {
        let ext4 = crate::filesystem::find("ext4").expect("ext4");
        let checked = |status| {
            let output = CommandOutput { status, stderr: "Bad magic number\n".into(), ..CommandOutput::default() };
            Checked::of(ext4, &CommandLine::new("e2fsck", ["-n".to_owned()]), &output)
        };
        assert_eq!([0, 4, 8, 137].map(|status| checked(status).clean), [Some(true), Some(false), None, None]);
        let words = "the filesystem could not be checked: e2fsck -n: exit status 8: Bad magic number";
        assert_eq!(checked(8).words.as_deref(), Some(words));

        let stdout = "Pass 1: Checking inodes, blocks, and sizes\nInode 12, i_blocks is 8, should be 16.  Fix? no\n\n\
            Pass 2: Checking directory structure\nEntry 'a' in / (2) has deleted/unused inode 13.  Clear? no\n\n\
            /gone/state.img: ********** WARNING: Filesystem still has errors **********\n\n\
            /gone/state.img: 12/16384 files (0.0% non-contiguous), 7461/65536 blocks\n";
        let output = CommandOutput { status: 4, stdout: stdout.into(), ..CommandOutput::default() };
        let command = CommandLine::new("e2fsck", ["-fn", "/gone/state.img"]);
        let words = "e2fsck -fn: exit status 4: Inode 12, i_blocks is 8, should be 16.  Fix? no; Entry 'a' in / (2) has \
                     deleted/unused inode 13.  Clear? no";
        assert_eq!(Checked::of(ext4, &command, &output).words.as_deref(), Some(words));
    }

    #[test]
    fn a_script_is_named_by_its_beginning() {
        assert_eq!(begins("false"), "false");
        assert_eq!(begins("sh -c 'set -e\ngit clone x'"), "sh -c 'set -e…");
        let output = CommandOutput {
            stderr: "Cloning into 'x'...\na\nb\nc\nd\ne\nfatal: no room\nusage: git\n".into(),
            ..CommandOutput::default()
        };
        assert_eq!(output.last_words(), "a; b; c; d; e; fatal: no room");
    }

    #[test]
    fn the_last_words_of_a_check() {
        let output = CommandOutput {
            stdout: "Pass 1\nPass 2\n\n".into(),
            stderr: "Fix? no\nerrors left\n".into(),
            ..CommandOutput::default()
        };
        assert_eq!(last_words(&output), "Pass 2; Fix? no; errors left");
        assert_eq!(last_words(&CommandOutput::default()), "");
    }
}

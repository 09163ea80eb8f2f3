//! What the end of a step's command means, and what a count of extents found.

use crate::{
    command::{CommandLine, CommandOutput, typed},
    filesystem::{Filesystem, Verdict, mkfs_refused},
    fragmentation::Fragmentation,
    trial::{
        record::{Halt, StepReport, failed},
        session::Session,
    },
};
use fstone_model::{Outcome, Step, outcome::Reason, own::OwnCommand, study::StepAction};

impl Session {
    pub(super) fn judge(&mut self, step: &Step, output: &CommandOutput, report: &mut StepReport) -> Result<(), Halt> {
        let good = match &step.action {
            StepAction::Fsck { .. } if self.own.is_some() => {
                if output.status == 0 {
                    return Ok(());
                }
                let said = format!("`check`: exit status {}: {}", output.status, last_words(output));
                return Err(failed(step, format!("the filesystem is not consistent: {said}")));
            }
            StepAction::Mkfs if self.own.is_some() => return self.judge_own(step, OwnCommand::Make, output),
            StepAction::Fsck { .. } => return self.judge_check(step, output, report),
            StepAction::Command { success, .. } if !success.is_empty() => success.contains(&output.status),
            _ => output.status == 0,
        };
        if good {
            return Ok(());
        }
        let reason = Reason::new(&step.name, output.words());
        Err(Halt::Outcome(match &step.action {
            StepAction::Mkfs if mkfs_refused(&self.spec.mkfs, output) => Outcome::Refused(reason),
            StepAction::Command { .. } => {
                let words = format!("{}: exit status {}: {}", ran(report), output.status, reason.words);
                Outcome::Failed(Reason { words, ..reason })
            }
            _ => Outcome::Failed(reason),
        }))
    }

    fn judge_check(&mut self, step: &Step, output: &CommandOutput, report: &mut StepReport) -> Result<(), Halt> {
        let Some(filesystem) = self.filesystem else { return Ok(()) };
        report.figures.extend(filesystem.figures(output));
        let said = || format!("{}: exit status {}: {}", ran(report), output.status, last_words(output));
        match filesystem.verdict(output) {
            Verdict::Clean => Ok(()),
            Verdict::Corrected => {
                self.warn(format!("{}: the check found something to correct: {}", step.name, said()));
                Ok(())
            }
            Verdict::Errors => Err(failed(step, format!("the filesystem is not consistent: {}", said()))),
            Verdict::Unusable => Err(failed(step, said())),
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

fn ran(report: &StepReport) -> String {
    report.commands.last().map(|command| typed(&command.argv)).unwrap_or_default()
}

pub(in crate::trial) struct Checked {
    pub(in crate::trial) clean: bool,
    pub(in crate::trial) words: Option<String>,
}

impl Checked {
    pub(in crate::trial) fn of(filesystem: &dyn Filesystem, command: &CommandLine, output: &CommandOutput) -> Self {
        let clean = filesystem.is_clean_after_power_cut(output);
        let said = || format!("{}: exit status {}: {}", command.typed(), output.status, last_words(output));
        Self { clean, words: (!clean).then(said) }
    }
}

pub(super) fn last_words(output: &CommandOutput) -> String {
    const LINES: usize = 3;
    let lines: Vec<&str> =
        output.stdout.lines().chain(output.stderr.lines()).map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

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

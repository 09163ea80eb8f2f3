//! How a guest ended, told from everything that is known about it, never from the exit status alone.

use super::console::{ConsoleSummary, Incident, IncidentKind};
use crate::process::ProcessEnd;
use fstone_model::outcome::{Outcome, Reason};
use fstone_model::units::format_duration;
use std::time::Duration;

/// Lines of the kernel's words that go into a reason; the console log has all.
const REASON_LINES: usize = 24;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It was told to power off, said bye and did.
    Bye,
    Panicked {
        words: String,
    },
    /// The agent, process 1 of the guest, died; the kernel panics then.
    AgentDied {
        words: String,
    },
    /// It was killed by fstone because nothing came from it any more, or not what was due.
    Hung {
        waiting: Waiting,
        waited: Duration,
        words: String,
    },
    /// Its process on the host was killed by somebody else.
    Killed {
        signal: i32,
    },
    /// Its process on the host ended by itself, without bye and without a panic.
    Exited {
        status: i32,
        /// The last lines on the console.
        words: String,
    },
    Garbled {
        problem: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    Hello,
    Heartbeat,
    /// To finish a job within its limit; its heartbeat went on.
    Job,
    /// To take the bytes of a job.
    Acceptance,
    PowerOff,
    /// Anything at all: it sleeps, and nothing will wake it.
    Event,
}

#[derive(Debug, Clone)]
pub(crate) struct Evidence<'a> {
    /// The agent said bye, after the host had.
    pub(crate) bye: bool,
    /// Why fstone killed it, if it did, and after what time.
    pub(crate) gave_up: Option<(Waiting, Duration)>,
    pub(crate) process: ProcessEnd,
    pub(crate) garbled: Option<String>,
    /// The process ended as it does after a panic only: user-mode Linux by abort, QEMU as told for pvpanic.
    pub(crate) panic_reported: bool,
    pub(crate) console: &'a ConsoleSummary,
}

impl Evidence<'_> {
    /// What happened. A panic on the console explains everything else; then what fstone did; then how it looked.
    pub(crate) fn ending(&self) -> Ending {
        if let Some(panic) = self.console.first(IncidentKind::Panic) {
            let words = self.words(Some(panic));
            return if panic.lines.iter().any(|line| line.contains("Attempted to kill init")) {
                Ending::AgentDied { words }
            } else {
                Ending::Panicked { words }
            };
        }
        if self.panic_reported {
            return Ending::Panicked { words: self.words(None) };
        }
        if let Some((waiting, waited)) = self.gave_up {
            return Ending::Hung { waiting, waited, words: self.words(None) };
        }
        if let Some(problem) = &self.garbled {
            return Ending::Garbled { problem: problem.clone() };
        }
        match self.process {
            // A guest that has said bye has done all it should; how its process then goes says nothing.
            _ if self.bye => Ending::Bye,
            ProcessEnd::Signalled(signal) => Ending::Killed { signal },
            ProcessEnd::Exited(status) => Ending::Exited { status, words: self.words(None) },
        }
    }

    /// The kernel's own words: of this incident, preceded by an oops that led to it; else of the worst there is;
    /// else the last lines.
    fn words(&self, main: Option<&Incident>) -> String {
        const WORST_FIRST: [IncidentKind; 4] =
            [IncidentKind::Oops, IncidentKind::Stuck, IncidentKind::BlockedTasks, IncidentKind::Filesystem];
        let mut lines: Vec<&str> = Vec::new();
        let cause = WORST_FIRST.iter().find_map(|&kind| self.console.first(kind));
        let oops = cause.filter(|incident| incident.kind == IncidentKind::Oops || main.is_none());
        for incident in oops.into_iter().chain(main) {
            lines.extend(incident.lines.iter().map(String::as_str));
        }
        if lines.is_empty() {
            lines.extend(self.console.last_lines.iter().map(String::as_str));
        }
        lines.truncate(REASON_LINES);
        lines.join("\n")
    }
}

impl Ending {
    pub fn describe(&self) -> String {
        match self {
            Self::Bye => "it ended as asked".to_owned(),
            Self::Panicked { .. } => "the guest's kernel panicked".to_owned(),
            Self::AgentDied { .. } => "the agent, process 1 of the guest, died".to_owned(),
            Self::Hung { waiting, waited, .. } => {
                let waited = format_duration(*waited);
                match waiting {
                    Waiting::Hello => format!("the agent did not come up within {waited}"),
                    Waiting::Heartbeat => format!("the agent gave no sign of life for {waited}"),
                    Waiting::Job => format!("not done within {waited}, while the agent's heartbeat went on"),
                    Waiting::Acceptance => format!("the agent did not take its job within {waited}"),
                    Waiting::PowerOff => format!("the agent did not end within {waited}"),
                    Waiting::Event => "every task of the guest waits, and nothing will happen any more".to_owned(),
                }
            }
            Self::Killed { signal } => format!("the agent's process was killed by signal {signal}"),
            Self::Exited { status, .. } => format!("the agent's process exited with status {status}"),
            Self::Garbled { problem } => format!("the agent's messages cannot be read: {problem}"),
        }
    }

    /// What the kernel had to say, empty when it said nothing.
    pub fn words(&self) -> &str {
        match self {
            Self::Panicked { words }
            | Self::AgentDied { words }
            | Self::Hung { words, .. }
            | Self::Exited { words, .. } => words,
            Self::Bye | Self::Killed { .. } | Self::Garbled { .. } => "",
        }
    }

    pub fn outcome(&self, step: &str) -> Outcome {
        let mut text = self.describe();
        if !self.words().is_empty() {
            text.push('\n');
            text.push_str(self.words());
        }
        let reason = Reason::new(step, text);
        match self {
            Self::Bye => Outcome::Completed,
            Self::Panicked { .. } => Outcome::Crashed(reason),
            Self::Hung { waiting: Waiting::Hello, .. } => {
                Outcome::Failed(reason.with_cure("look at the guest's console log; give it more memory"))
            }
            Self::Hung { .. } => Outcome::Hung(reason),
            Self::AgentDied { .. } | Self::Killed { .. } | Self::Exited { .. } | Self::Garbled { .. } => {
                Outcome::Failed(reason)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn console(incidents: &[(IncidentKind, &str)]) -> ConsoleSummary {
        ConsoleSummary {
            incidents: incidents.iter().map(|&(kind, line)| Incident { kind, lines: vec![line.to_owned()] }).collect(),
            last_lines: VecDeque::from(["the last line".to_owned()]),
            ..ConsoleSummary::default()
        }
    }

    fn evidence(console: &ConsoleSummary) -> Evidence<'_> {
        Evidence {
            bye: false,
            gave_up: None,
            process: ProcessEnd::Exited(0),
            garbled: None,
            panic_reported: false,
            console,
        }
    }

    #[test]
    fn exit_status_alone_says_nothing() {
        let quiet = console(&[]);
        let left = evidence(&quiet).ending();
        assert_eq!(left, Ending::Exited { status: 0, words: "the last line".to_owned() });
        assert_eq!(left.outcome("load").word(), "failed");
        // UML ends with a signal of its own after some panics, and QEMU with 0.
        let bye = Evidence { bye: true, process: ProcessEnd::Signalled(6), ..evidence(&quiet) };
        assert_eq!(bye.ending(), Ending::Bye);
        let panicked = console(&[(IncidentKind::Panic, "Kernel panic - not syncing: sysrq")]);
        for process in [ProcessEnd::Exited(0), ProcessEnd::Signalled(6), ProcessEnd::Signalled(9)] {
            let ending = Evidence { process, ..evidence(&panicked) }.ending();
            assert_eq!(ending.outcome("load").word(), "crashed");
            assert!(ending.words().contains("sysrq"));
        }
    }

    #[test]
    fn a_panic_explains_a_hang_but_an_oops_is_the_cause_of_both() {
        let both = console(&[
            (IncidentKind::Oops, "BUG: unable to handle page fault"),
            (IncidentKind::Panic, "Kernel panic - not syncing: Fatal exception"),
        ]);
        let gave_up = Some((Waiting::Heartbeat, Duration::from_secs(5)));
        let ending = Evidence { gave_up, ..evidence(&both) }.ending();
        assert_eq!(
            ending,
            Ending::Panicked {
                words: "BUG: unable to handle page fault\nKernel panic - not syncing: Fatal exception".to_owned()
            }
        );
    }

    #[test]
    fn hang_killed_agent_and_garbage() {
        let stuck = console(&[(IncidentKind::BlockedTasks, "sysrq: Show Blocked State")]);
        let gave_up = Some((Waiting::Job, Duration::from_secs(5)));
        let hung = Evidence { gave_up, process: ProcessEnd::Signalled(9), ..evidence(&stuck) }.ending();
        assert_eq!(hung.outcome("load").word(), "hung");
        assert!(hung.outcome("load").reason().unwrap().words.contains("Show Blocked State"));
        let quiet = console(&[]);
        let killed = Evidence { process: ProcessEnd::Signalled(9), ..evidence(&quiet) }.ending();
        assert_eq!(killed, Ending::Killed { signal: 9 });
        let init =
            console(&[(IncidentKind::Panic, "Kernel panic - not syncing: Attempted to kill init! exitcode=0xb")]);
        assert!(matches!(evidence(&init).ending(), Ending::AgentDied { .. }));
        let garbled = Evidence { garbled: Some("no".to_owned()), ..evidence(&quiet) }.ending();
        assert_eq!(garbled, Ending::Garbled { problem: "no".to_owned() });
        let silent = Evidence { panic_reported: true, ..evidence(&quiet) }.ending();
        assert!(matches!(silent, Ending::Panicked { .. }));
    }
}

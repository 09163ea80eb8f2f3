//! What ranks say to each other. The bytes are postcard's: all ranks run the same build, which they check when they meet.

use fstone_model::{LoadReport, ranks::PhasePassed, workload::RankShift};
use serde::{Deserialize, Serialize};

/// Why a rank fails whose message cannot be read. Both ends are the same build, so nothing should ever show it.
pub(crate) const UNREADABLE: &str = "a message of it cannot be read, which is a fault of fstone";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// To rank 0: a rank is there.
    Hello(Hello),
    /// To rank 0: the answer to a ping, with the clock as it came.
    Pong { round: u32, clock_ns: u64 },
    /// To rank 0: the rank has come to a point where all meet.
    Arrive { meeting: u64, call: Call },
    /// To rank 0: a sign of life.
    State(State),
    /// To rank 0: the rank has ended a phase.
    Passed(PhasePassed),
    /// To rank 0: the rank's load has ended, why where that was an error, and whether there is a report of it. `halted`: the error of an
    /// operation that ended it. `unfinished`: what the rank could not do afterwards.
    Done { failed: Option<String>, halted: Option<String>, unfinished: Option<String>, early: bool, reports: bool },
    /// To rank 0: the report that it asked for.
    Report(Option<Box<LoadReport>>),
    /// To rank 0: a signal ends the rank.
    Signalled,
    /// From rank 0: begin the load.
    Welcome(Common),
    /// From rank 0: what does your clock show?
    Ping { round: u32 },
    /// From rank 0: all have come, go on.
    Go { meeting: u64, answer: Answer },
    /// From rank 0: the load of all ranks ends now.
    Over { why: String },
    /// From rank 0: send the report.
    Collect,
    /// From rank 0: it is alive.
    Alive,
    /// From rank 0: all is done. Where it is not clean, a rank cannot be waited for, and rank 0 ends all. `status`: what ranks end with.
    Bye { clean: bool, status: u8 },
    /// From one rank to another.
    Give { meeting: u64, bytes: Vec<u8> },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Common {
    pub(crate) seed: u64,
    pub(crate) whose: Vec<RankShift>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) host: String,
    /// Which start of which kernel this is: ranks with the same one see the same processes.
    pub(crate) boot: String,
    pub(crate) process: u32,
    /// What is to be run, and by which build.
    pub(crate) subject: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Call {
    Begin {
        phase: u32,
    },
    Meet,
    /// The largest of all counts.
    Most(Vec<u64>),
    /// What rank 0 has; rank 0 brings it.
    Share(Option<Vec<u8>>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// Begin when your clock shows this.
    At {
        clock_ns: u64,
    },
    Met,
    Most(Vec<u64>),
    Shared(Vec<u8>),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// "setup", "final sync", or the phase's name.
    pub(crate) at: String,
    pub(crate) operations: u64,
    /// For how long nothing was completed, in ms; 0 while it waits for others.
    pub(crate) still_ms: u64,
    pub(crate) threads: Vec<String>,
}

impl Hello {
    /// Which start of which kernel this is, without the namespace of its processes.
    pub(crate) fn machine(&self) -> Option<&str> {
        self.boot.split(' ').next().filter(|boot| !boot.is_empty())
    }
}

impl Message {
    pub(crate) fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("messages have nothing that postcard cannot write")
    }

    /// `None` for what no rank of this build sends.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Message;
    use fstone_model::{LoadReport, load::ThreadReport};

    #[test]
    fn a_report_is_sent_with_fields_that_are_empty() {
        let report = LoadReport { per_thread: vec![ThreadReport::default()], ..LoadReport::default() };
        let message = Message::Report(Some(Box::new(report)));
        assert_eq!(Message::decode(&message.encode()), Some(message));
    }
}

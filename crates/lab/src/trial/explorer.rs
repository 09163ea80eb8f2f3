//! Sequences of calls that the power is cut in: where they come from, and what came of each.

use super::record::Halt;
use crate::agent::protocol::SequenceStateReply;
use fstone_engine::sequences::Sequence;
use fstone_model::units::nanoseconds;
use fstone_sandbox::power::CrashState;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};

/// Losses of a sequence that are told one by one.
const TOLD: usize = 3;

/// Where sequences come from, and what is found goes. Several guests ask at once.
pub trait Explorer: Sync {
    fn next(&self) -> Option<Sequence>;

    /// What came of it.
    ///
    /// # Errors
    /// In words, when it could not be recorded; then no other follows.
    fn found(&self, sequence: &Sequence, found: SequenceFound) -> Result<(), String>;

    /// Where the disk's log of a sequence is to be kept, by what was found; `None` where nothing is to be seen, or no more are kept.
    fn log(&self, sequence: &Sequence, found: &SequenceFound) -> Option<PathBuf>;
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceFound {
    /// Why it was not carried out: a call that this filesystem does not do.
    pub refused: Option<String>,
    pub ended: Option<String>,
    /// The state that it looked at then.
    pub ended_in: Option<String>,
    /// States looked at, all of them different.
    pub states: u64,
    pub mounted: u64,
    /// Those that the filesystem's own check looked at, and those of them that it found clean.
    pub checked: u64,
    pub clean: u64,
    /// States with a loss, or that could not be mounted.
    pub lossy: u64,
    /// For each aspect, facts looked at, and those lost.
    pub facts: BTreeMap<String, (u64, u64)>,
    /// For each aspect and property that some state lacks: how many lack it, the first of these, and what is wrong with it.
    pub lacking: BTreeMap<String, (u64, String, String)>,
    /// For each aspect and property, the states in which it could have been lacking.
    pub at_stake: BTreeMap<String, u64>,
    pub told: Vec<(String, String)>,
    pub log: Option<PathBuf>,
    /// How long it took, of that until the first state, and of that the filesystem's own check, in nanoseconds.
    pub time_ns: u64,
    pub calls_ns: u64,
    pub checking_ns: u64,
}

impl SequenceFound {
    pub fn is_sound(&self) -> bool {
        self.ended.is_none() && self.lossy == 0 && self.clean == self.checked
    }

    pub(super) fn note_end(&mut self, ended: &Result<(), Halt>, state: Option<CrashState>) {
        if let (Err(Halt::Outcome(outcome)), None) = (ended, &self.ended) {
            let words = outcome.reason().map_or_else(String::new, |reason| reason.words.clone());
            self.ended = Some(format!("{}: {words}", outcome.word()));
            self.ended_in = state.map(|state| state.to_string());
        }
    }

    pub(super) fn add(&mut self, state: CrashState, mut reply: SequenceStateReply) {
        if reply.mounted.is_none() && reply.words.is_none() {
            // Something went wrong before it was known whether it can be mounted.
            return;
        }
        self.states += 1;
        let mut words = reply.words;
        match reply.mounted {
            Some(_) => self.mounted += 1,
            None => self.lossy += 1,
        }
        if let Some(clean) = reply.clean {
            self.checked += 1;
            self.clean += u64::from(clean);
        }
        for told in reply.told.iter().filter(|told| told.checked > 0) {
            *self.at_stake.entry(told.aspect.clone()).or_default() += 1;
            if told.broken == 0 {
                continue;
            }
            let first = || (0, state.to_string(), told.first.clone().unwrap_or_default());
            self.lacking.entry(told.aspect.clone()).or_insert_with(first).0 += 1;
        }
        reply.told.retain(|told| told.promised);
        let lost: u64 = reply.told.iter().map(|told| told.broken).sum();
        self.lossy += u64::from(lost > 0);
        for told in reply.told {
            let fact = self.facts.entry(told.aspect.clone()).or_default();
            fact.0 += told.checked;
            fact.1 += told.broken;
            if let Some(first) = told.first.filter(|_| told.broken > 0)
                && words.as_ref().is_none_or(|_| reply.clean == Some(false))
            {
                words = Some(format!("{}: {first}", told.aspect));
            }
        }
        self.checking_ns += nanoseconds(reply.checking);
        if self.told.len() < TOLD {
            self.told.extend(words.map(|words| (state.to_string(), words)));
        }
    }
}

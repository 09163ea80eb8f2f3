//! What rank 0 does for all: it gathers them, compares clocks, begins phases, notices missing ranks, and collects reports. It is given
//! the time and says what to send: nothing here waits.

use crate::clocks::{Compared, LONG_NS, MOST_ROUNDS, Offset, ROUNDS, WAKE, WELL_NS};
use crate::facts;
use crate::given::Settings;
use crate::member::seed_of;
use crate::merge::Merger;
use crate::message::{Answer, Call, Common, Hello, Message, State, UNREADABLE};
use fstone_model::load::LoadReport;
use fstone_model::ranks::{PhasePassed, RankOutcome, RankReport, RanksReport, Wall};
use fstone_model::units::nanoseconds;
use fstone_model::workload::Neighbours;
use std::collections::VecDeque;
use std::time::Duration;

/// How long after the last rank has arrived a phase begins: time for all ranks to hear of it and to go to sleep until then.
const LEAD_NS: u64 = 25_000_000;
const LEAD_OF_RANK_NS: u64 = 50_000;
/// How long ranks have to report after a signal: launchers kill about a second after it.
const HASTE: Duration = Duration::from_millis(600);
/// With more ranks than this, the next rank is woken while one is asked, so that pinging 10,000 takes seconds, not minutes.
const MANY: usize = 256;
/// Reports that are asked for at once.
const WINDOW: usize = 4;
/// After so long without a sign of life, rank 0 looks whether a process of this machine still exists.
const LOOK_NS: u64 = 2_500_000_000;

#[derive(Debug, Default)]
struct Rank {
    hello: Option<Hello>,
    heard_ns: u64,
    state: State,
    arrived: Option<(u64, Call)>,
    passed: Vec<PhasePassed>,
    done: Option<RankOutcome>,
    silent: bool,
    compared: Compared,
    lost: Option<RankOutcome>,
    reported: bool,
    figures: RankReport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Gathering,
    /// Round trips to a rank; `again`: after the load.
    Comparing {
        rank: usize,
        round: u32,
        sent_ns: u64,
        /// When the first one was queued.
        since_ns: u64,
        again: bool,
    },
    Running,
    /// The load ends early, and ranks have until then to say so.
    Ending {
        until_ns: u64,
    },
    Collecting,
    Concluded,
}

pub(crate) struct Coordinator {
    settings: Settings,
    ranks: Vec<Rank>,
    stage: Stage,
    over: Option<String>,
    hasty: bool,
    out: VecDeque<(u32, Message)>,
    to_collect: VecDeque<usize>,
    asked: usize,
    merger: Option<Merger>,
    report: Option<RanksReport>,
    told_ns: u64,
    /// How many phases all ranks had completed at the last look.
    passed: usize,
}

impl Coordinator {
    pub(crate) fn new(settings: Settings, size: u32, now_ns: u64) -> Self {
        let rank = |_| Rank { heard_ns: now_ns, ..Rank::default() };
        let mut ranks: Vec<Rank> = (0..size).map(rank).collect();
        ranks[0].compared = Compared::SAME;
        Self {
            settings,
            ranks,
            stage: Stage::Gathering,
            over: None,
            hasty: false,
            out: VecDeque::new(),
            to_collect: VecDeque::new(),
            asked: 0,
            merger: None,
            report: None,
            told_ns: now_ns,
            passed: 0,
        }
    }

    pub(crate) fn outgoing(&mut self) -> impl Iterator<Item = (u32, Message)> + '_ {
        self.out.drain(..)
    }

    pub(crate) fn is_timing(&self) -> bool {
        matches!(self.stage, Stage::Comparing { .. })
    }

    /// The result, once, when there is one.
    pub(crate) fn concluded(&mut self) -> Option<RanksReport> {
        self.report.take()
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.ranks.iter().all(|rank| rank.lost.is_none() && rank.done.is_some())
    }

    pub(crate) fn was_signalled(&self) -> bool {
        self.hasty
    }

    /// Sends to every rank, also to those that do not answer: a rank that was only stopped must end, too.
    fn tell_all(&mut self, message: &Message) {
        for number in 0..self.ranks.len() as u32 {
            self.out.push_back((number, message.clone()));
        }
    }

    /// The last word. `status`: what rank 0 ends with. The others leave it to rank 0 to tell of a failure, for launchers add words of their own
    /// for each process that fails. But MPICH's launcher ends with 0 after a signal if all but the last of its processes do.
    pub(crate) fn say_bye(&mut self, status: u8) {
        let clean = self.is_clean();
        self.tell_all(&Message::Bye { clean, status: if self.hasty { status } else { 0 } });
    }

    pub(crate) fn handle(&mut self, from: u32, message: Message, now_ns: u64) {
        let Some(rank) = self.ranks.get_mut(from as usize) else { return };
        rank.heard_ns = now_ns;
        match message {
            Message::Hello(hello) => {
                rank.hello = Some(hello);
                self.gathered(now_ns);
            }
            Message::Pong { round, clock_ns } => self.pong(from as usize, round, clock_ns, now_ns),
            Message::State(state) => rank.state = state,
            Message::Passed(passed) => rank.passed.push(passed),
            Message::Arrive { meeting, call } => {
                rank.arrived = Some((meeting, call));
                self.met(now_ns);
            }
            Message::Done { failed, halted, unfinished, early, reports } => {
                rank.silent = !reports;
                let ends_all = failed.clone().or_else(|| halted.clone());
                rank.done = Some(match failed.or(halted).or(unfinished) {
                    Some(words) => RankOutcome::Failed { words },
                    None if early => RankOutcome::EndedEarly,
                    None => RankOutcome::Completed,
                });
                self.one_done(from as usize, ends_all, now_ns);
            }
            Message::Report(report) => self.reported(from as usize, report.as_deref(), now_ns),
            Message::Signalled => {
                self.end(format!("{} was told by a signal to end", self.name(from as usize)), true, now_ns);
            }
            _ => {}
        }
    }

    /// A message came that is none.
    pub(crate) fn garbled(&mut self, from: u32, now_ns: u64) {
        let number = from as usize;
        if self.ranks.get(number).is_some_and(|rank| rank.lost.is_none()) {
            self.lose(number, RankOutcome::Failed { words: UNREADABLE.into() }, now_ns);
        }
    }

    fn name(&self, rank: usize) -> String {
        match &self.ranks[rank].hello {
            Some(hello) => format!("rank {rank} on {}", hello.host),
            None => format!("rank {rank}"),
        }
    }

    fn gathered(&mut self, now_ns: u64) {
        if self.stage != Stage::Gathering || !self.ranks.iter().all(|rank| rank.hello.is_some()) {
            return;
        }
        let subject = |rank: &Rank| rank.hello.as_ref().map(|hello| hello.subject.clone());
        let first = subject(&self.ranks[0]);
        if let Some(other) = self.ranks.iter().position(|rank| subject(rank) != first) {
            let why = format!(
                "{} was started with another workload, other arguments or another build of fstone than rank 0",
                self.name(other)
            );
            self.end(why, false, now_ns);
            return;
        }
        self.compare(1, false, now_ns);
    }

    fn compare(&mut self, from: usize, again: bool, now_ns: u64) {
        let next = (from..self.ranks.len()).find(|rank| self.ranks[*rank].lost.is_none());
        let Some(rank) = next else {
            if again {
                self.collect(now_ns);
            } else {
                self.stage = Stage::Running;
                self.welcome();
            }
            return;
        };
        // The one after it is woken meanwhile.
        if self.ranks.len() > MANY && rank + 1 < self.ranks.len() {
            self.out.push_back((rank as u32 + 1, Message::Ping { round: WAKE }));
        }
        self.stage = Stage::Comparing { rank, round: 0, sent_ns: now_ns, since_ns: now_ns, again };
        self.out.push_back((rank as u32, Message::Ping { round: 0 }));
    }

    /// The nodes of all ranks are known now, and so is which rank reads whose files.
    fn welcome(&mut self) {
        let host = |rank: &Rank| rank.hello.as_ref().map(|hello| hello.host.clone());
        let neighbours = Neighbours::on(&self.ranks.iter().map(host).collect::<Vec<_>>());
        let (seed, workload) = (self.settings.seed, &self.settings.workload);
        let welcome = |rank| Message::Welcome(Common { seed, whose: workload.whose(&neighbours, rank) });
        self.out.extend((0..self.ranks.len() as u32).map(|rank| (rank, welcome(rank))));
    }

    fn pong(&mut self, from: usize, answered: u32, clock_ns: u64, now_ns: u64) {
        let Stage::Comparing { rank, round, sent_ns, since_ns, again } = self.stage else { return };
        if rank != from || answered != round {
            return;
        }
        let offset = Offset::of(sent_ns, clock_ns, now_ns);
        let compared = &mut self.ranks[rank].compared;
        let which = if again { &mut compared.after } else { &mut compared.before };
        let surest = offset.surer(*which);
        *which = Some(surest);
        let round = round + 1;
        let enough = surest.uncertainty_ns <= WELL_NS || now_ns.saturating_sub(since_ns) >= LONG_NS;
        if round >= MOST_ROUNDS || round >= ROUNDS && enough {
            self.compare(rank + 1, again, now_ns);
        } else {
            self.stage = Stage::Comparing { rank, round, sent_ns: now_ns, since_ns, again };
            self.out.push_back((rank as u32, Message::Ping { round }));
        }
    }

    /// Notes when a message was really sent, which is later than when it was queued.
    pub(crate) fn sent(&mut self, to: u32, message: &Message, now_ns: u64) {
        if let (Stage::Comparing { rank, round, sent_ns, .. }, Message::Ping { round: sent }) =
            (&mut self.stage, message)
            && *rank == to as usize
            && *round == *sent
        {
            *sent_ns = now_ns;
        }
    }

    fn met(&mut self, now_ns: u64) {
        if self.stage != Stage::Running {
            return;
        }
        if let Some(done) = self.ranks.iter().position(|rank| rank.done.is_some()) {
            // It will not come.
            self.end(
                format!("the load of {} ended before that of others: see its errors", self.name(done)),
                false,
                now_ns,
            );
            return;
        }
        if !self.ranks.iter().all(|rank| rank.arrived.is_some()) {
            return;
        }
        let (mut at, mut most, mut shared, mut begins, mut counts) = (Vec::new(), Vec::new(), None, None, false);
        for (meeting, call) in self.ranks.iter_mut().filter_map(|rank| rank.arrived.take()) {
            at.push(meeting);
            match call {
                Call::Begin { phase } => begins = Some(phase as usize),
                Call::Most(theirs) => {
                    counts = true;
                    most.resize(theirs.len().max(most.len()), 0);
                    most.iter_mut().zip(theirs).for_each(|(most, count): (&mut u64, u64)| *most = count.max(*most));
                }
                Call::Share(bytes) => shared = Some(bytes.or(shared.flatten())),
                Call::Meet => {}
            }
        }
        let meeting = at[0];
        if at.iter().any(|other| *other != meeting) {
            self.end("the ranks are out of step, which is a fault of fstone's".into(), false, now_ns);
            return;
        }
        if let Some(phase) = begins.and_then(|phase: usize| self.settings.workload.phases.get(phase)) {
            for rank in &mut self.ranks {
                rank.state = State { at: phase.name.clone(), ..State::default() };
            }
        }
        let begin_ns = now_ns + LEAD_NS + LEAD_OF_RANK_NS * self.ranks.len() as u64;
        for (number, rank) in (0..).zip(&self.ranks) {
            let answer = if begins.is_some() {
                Answer::At { clock_ns: rank.compared.of_rank_0(begin_ns) }
            } else if counts {
                Answer::Most(most.clone())
            } else if let Some(bytes) = &shared {
                Answer::Shared(bytes.clone().unwrap_or_default())
            } else {
                Answer::Met
            };
            self.out.push_back((number, Message::Go { meeting, answer }));
        }
    }

    /// `error`: what ended this rank's load, if it was one.
    fn one_done(&mut self, rank: usize, error: Option<String>, now_ns: u64) {
        if let Some(words) = error {
            // The others would measure without it, and wait for it at the next phase.
            self.end(format!("{}: {words}", self.name(rank)), false, now_ns);
        }
        if self.stage == Stage::Running && self.ranks.iter().any(|rank| rank.arrived.is_some()) {
            self.met(now_ns);
        }
        self.all_done(now_ns);
    }

    fn all_done(&mut self, now_ns: u64) {
        let done = self.ranks.iter().all(|rank| rank.done.is_some() || rank.lost.is_some());
        if !done || !matches!(self.stage, Stage::Running | Stage::Ending { .. }) {
            return;
        }
        // After a signal there is no time to compare clocks again.
        if self.hasty || self.ranks.iter().all(|rank| rank.passed.is_empty()) {
            self.collect(now_ns);
        } else {
            self.compare(1, true, now_ns);
        }
    }

    pub(crate) fn end(&mut self, why: String, hasty: bool, now_ns: u64) {
        if hasty && !self.hasty {
            self.hasty = true;
            let until_ns = now_ns + nanoseconds(HASTE);
            match &mut self.stage {
                Stage::Ending { until_ns: until } => *until = until_ns.min(*until),
                Stage::Comparing { again: true, .. } => self.collect(now_ns),
                _ => {}
            }
        }
        if !matches!(self.stage, Stage::Gathering | Stage::Comparing { again: false, .. } | Stage::Running) {
            return;
        }
        self.over.get_or_insert_with(|| why.clone());
        let until_ns = now_ns + nanoseconds(if self.hasty { HASTE } else { self.settings.silence });
        self.tell_all(&Message::Over { why });
        self.stage = Stage::Ending { until_ns };
        self.all_done(now_ns);
    }

    pub(crate) fn tick(&mut self, now_ns: u64) {
        if self.stage == Stage::Concluded {
            return;
        }
        if now_ns.saturating_sub(self.told_ns) >= nanoseconds(self.settings.silence) / 5 {
            self.told_ns = now_ns;
            self.tell_all(&Message::Alive);
        }
        let boot = self.ranks[0].hello.as_ref().map(|hello| hello.boot.clone());
        // Rank 0 sends itself signs of life as the others do: its load may hang, too.
        for number in 0..self.ranks.len() {
            let rank = &self.ranks[number];
            if rank.lost.is_some() {
                continue;
            }
            let silent = now_ns.saturating_sub(rank.heard_ns);
            let near = rank.hello.as_ref().filter(|hello| Some(&hello.boot) == boot.as_ref());
            let gone = silent >= LOOK_NS && near.is_some_and(|hello| facts::of_process(hello.process).contains("gone"));
            if gone || silent >= nanoseconds(self.settings.silence) {
                let outcome = self.last_words(number, silent);
                self.lose(number, outcome, now_ns);
            } else if rank.done.is_none() && Duration::from_millis(rank.state.still_ms) >= self.settings.stillness {
                let outcome = RankOutcome::Hung { words: self.still(number) };
                self.lose(number, outcome, now_ns);
            }
        }
        if let Stage::Ending { until_ns } = self.stage
            && now_ns >= until_ns
        {
            for number in 0..self.ranks.len() {
                let rank = &self.ranks[number];
                if rank.done.is_some() || rank.lost.is_some() {
                    continue;
                }
                let silent = now_ns.saturating_sub(rank.heard_ns);
                let outcome = if self.hasty {
                    self.interrupted(number, silent)
                } else if silent > LOOK_NS {
                    self.last_words(number, silent)
                } else {
                    RankOutcome::Hung { words: format!("did not end when it was told to; {}", self.still(number)) }
                };
                self.ranks[number].lost = Some(outcome);
            }
            self.all_done(now_ns);
        }
    }

    fn lose(&mut self, number: usize, outcome: RankOutcome, now_ns: u64) {
        let why = format!("{} {}: {}", self.name(number), outcome.word(), outcome.words().unwrap_or_default());
        self.ranks[number].lost = Some(outcome);
        match self.stage {
            Stage::Comparing { rank, again: true, .. } if rank == number => self.compare(number + 1, true, now_ns),
            Stage::Collecting => self.reported(number, None, now_ns),
            Stage::Ending { .. } => self.all_done(now_ns),
            _ => self.end(why, false, now_ns),
        }
    }

    /// What became of a rank that has not ended so soon after a signal. It may be in one long write or fsync.
    fn interrupted(&self, number: usize, silent_ns: u64) -> RankOutcome {
        let rank = &self.ranks[number];
        let words =
            format!("had not ended {:.1} s after the signal; it was last at {}", HASTE.as_secs_f64(), self.at(number));
        if rank.hello.is_none() || silent_ns <= LOOK_NS && !self.is_gone(number) {
            RankOutcome::Interrupted { words }
        } else {
            self.last_words(number, silent_ns)
        }
    }

    fn is_gone(&self, number: usize) -> bool {
        self.near(number).is_some_and(|hello| {
            let found = facts::of_process(hello.process);
            found.contains("gone") || found.contains("ended")
        })
    }

    fn near(&self, number: usize) -> Option<&Hello> {
        let boot = self.ranks[0].hello.as_ref().map(|hello| &hello.boot);
        self.ranks[number].hello.as_ref().filter(|hello| Some(&hello.boot) == boot)
    }

    fn last_words(&self, number: usize, silent_ns: u64) -> RankOutcome {
        let rank = &self.ranks[number];
        let found = self.near(number).map(|hello| facts::of_process(hello.process));
        let process =
            rank.hello.as_ref().map_or_else(|| "its process".into(), |hello| format!("process {}", hello.process));
        let words = format!(
            "no sign of life for {:.1} s{}; it was last at {}",
            silent_ns as f64 / 1e9,
            found.as_ref().map_or_else(String::new, |found| format!(", {process} {found}")),
            self.at(number)
        );
        let stopped = found.is_some_and(|found| found.contains("stopped") || found.contains("no signal"));
        if stopped { RankOutcome::Hung { words } } else { RankOutcome::Died { words } }
    }

    fn at(&self, number: usize) -> String {
        let rank = &self.ranks[number];
        if rank.hello.is_none() {
            return "its start: it never came".into();
        }
        if rank.done.is_some() {
            return "its end".into();
        }
        format!("{:?} with {} operations done", rank.state.at, rank.state.operations)
    }

    fn still(&self, number: usize) -> String {
        let state = &self.ranks[number].state;
        let threads = if state.threads.is_empty() { String::new() } else { format!("; {}", state.threads.join(", ")) };
        format!("nothing was completed for {:.1} s at {}{threads}", state.still_ms as f64 / 1e3, self.at(number))
    }

    fn collect(&mut self, now_ns: u64) {
        self.stage = Stage::Collecting;
        self.merger = Some(self.merger());
        self.to_collect = (0..self.ranks.len()).filter(|rank| self.ranks[*rank].lost.is_none()).collect();
        self.asked = 0;
        self.ask(now_ns);
    }

    fn ask(&mut self, now_ns: u64) {
        while self.asked < WINDOW
            && let Some(rank) = self.to_collect.pop_front()
        {
            self.asked += 1;
            // From here on it is its silence since then that counts.
            self.ranks[rank].heard_ns = now_ns;
            self.out.push_back((rank as u32, Message::Collect));
        }
        if self.asked == 0 && self.to_collect.is_empty() {
            self.conclude();
        }
    }

    fn reported(&mut self, number: usize, report: Option<&LoadReport>, now_ns: u64) {
        if self.stage != Stage::Collecting || self.ranks[number].reported {
            return;
        }
        self.ranks[number].reported = true;
        if let (Some(report), Some(merger)) = (report, &mut self.merger) {
            self.ranks[number].figures = merger.add(number as u32, report);
        }
        if let Some(place) = self.to_collect.iter().position(|rank| *rank == number) {
            self.to_collect.remove(place);
        } else {
            self.asked = self.asked.saturating_sub(1);
        }
        self.ask(now_ns);
    }

    /// Every rank's phases by rank 0's clock.
    fn passed_by_all(&self) -> Vec<Vec<PhasePassed>> {
        let translated = |rank: &Rank| {
            let time = |ns| rank.compared.to_rank_0(ns);
            let passed = |passed: &PhasePassed| PhasePassed {
                begin_ns: time(passed.begin_ns),
                end_ns: time(passed.end_ns),
                stonewall: passed.stonewall.map(|wall| Wall { at_ns: time(wall.at_ns), ..wall }),
                ..*passed
            };
            rank.passed.iter().map(passed).collect()
        };
        self.ranks.iter().map(translated).collect()
    }

    /// What puts all together. Of ranks that are lost or failed there will be no report, so their time does not count.
    fn merger(&self) -> Merger {
        let counts: Vec<bool> = self.ranks.iter().map(|rank| rank.lost.is_none() && !rank.silent).collect();
        Merger::new(&self.settings.workload, self.settings.seed, self.passed_by_all(), &counts)
    }

    /// What is known until now, when all have passed one more phase; to be kept in case there is no more.
    pub(crate) fn news(&mut self) -> Option<RanksReport> {
        let passed = self.ranks.iter().map(|rank| rank.passed.len()).min().unwrap_or(0);
        if self.stage != Stage::Running || passed <= self.passed {
            return None;
        }
        self.passed = passed;
        let merger = self.merger();
        Some(self.put_together(merger))
    }

    fn conclude(&mut self) {
        let Some(merger) = self.merger.take() else { return };
        self.report = Some(self.put_together(merger));
        self.stage = Stage::Concluded;
    }

    fn put_together(&mut self, merger: Merger) -> RanksReport {
        let seed = self.settings.seed;
        let per_rank = (0..).zip(&mut self.ranks).map(|(number, rank)| {
            let hello = rank.hello.clone().unwrap_or_default();
            let outcome = rank.lost.clone().or_else(|| rank.done.clone()).unwrap_or(RankOutcome::EndedEarly);
            RankReport {
                rank: number,
                host: if hello.host.is_empty() { "unknown".into() } else { hello.host },
                process: hello.process,
                seed: seed_of(seed, number),
                outcome,
                clock: (number > 0).then(|| rank.compared.report()).flatten(),
                ..std::mem::take(&mut rank.figures)
            }
        });
        let per_rank = per_rank.collect();
        let machine = |rank: usize| self.ranks[rank].hello.as_ref().and_then(Hello::machine);
        let mut report = merger.finish(per_rank, &|rank, at_ns| {
            let one_clock = rank == 0 || (machine(rank).is_some() && machine(rank) == machine(0));
            self.ranks[rank].compared.uncertainty_at_ns(at_ns, one_clock)
        });
        report.ranked.ended_early.clone_from(&self.over);
        report
    }
}

#[cfg(test)]
mod tests;

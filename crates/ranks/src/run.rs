//! A rank from its start to its end: a thread runs the load, and the one that called speaks with the other ranks.

use crate::coordinator::Coordinator;
use crate::facts;
use crate::given::{Loaded, Settings};
use crate::member::{Member, Request};
use crate::message::{Answer, Common, Message};
use crate::transport::Transport;
use fstone_engine::Peers;
use fstone_model::ranks::RanksReport;
use fstone_model::{LoadReport, workload::ErrorPolicy};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Between two looks for messages, at least and at most: a look takes about a microsecond, and nothing that is told in a message is
/// urgent but pings, which are answered at once.
const NAPS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));
/// While the load waits for other ranks, which may need the processor.
const MEETING_NAP: Duration = Duration::from_millis(5);
/// While the load is at work it is left alone: eight ranks that looked every 5 ms took 1 MiB writes 5 % of their speed.
const LONG_NAP: Duration = Duration::from_millis(50);
/// After a ping the next one is waited for without a nap.
const AWAKE_NS: u64 = 500_000;
/// Between two signs of life, and the more of them the more ranks there are.
const SIGN_NS: u64 = 1_000_000_000;
const SIGN_OF_RANK_NS: u64 = 500_000;
/// How long a last message may take.
const LAST: Duration = Duration::from_millis(500);

/// How a rank ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Whether all ranks ended by themselves. Otherwise all processes were told to end.
    pub clean: bool,
    /// The exit status: what `conclude` gave on rank 0, and 0 elsewhere.
    pub status: u8,
}

/// What a rank does at its end, which rank 0 alone does.
pub trait Conclusion {
    /// What all have done until now, in case that there is no more. The merged report is not in it yet.
    fn keep(&mut self, report: &RanksReport);
    /// What came of it; gives the exit status. `signalled`: somebody told the load to end.
    fn conclude(&mut self, report: RanksReport, signalled: bool) -> u8;
}

/// Runs a load as one of many ranks.
///
/// `load` runs it in a thread of its own, and is not waited for when it hangs; its error is words for people.
pub fn run<T: Transport>(
    mut transport: T,
    settings: Settings,
    load: impl FnOnce(&Arc<Member>) -> Result<Loaded, String> + Send + 'static,
    conclusion: &mut dyn Conclusion,
) -> Ended {
    let (rank, size) = (transport.rank(), transport.size());
    let (sender, requests) = channel();
    let hello = settings.facts.hello(settings.subject.clone());
    let cancel = Arc::clone(&settings.cancel);
    let phases: Vec<String> = settings.workload.phases.iter().map(|phase| phase.name.clone()).collect();
    let silence_ns = u64::try_from(settings.silence.as_nanos()).unwrap_or(u64::MAX);
    let now_ns = facts::clock_ns();
    let mut node = Node {
        rank,
        local: VecDeque::new(),
        requests,
        member: None,
        report: None,
        done: false,
        on_error: settings.workload.on_error,
        coordinator: (rank == 0).then(|| Coordinator::new(settings, size, now_ns)),
        awake_until_ns: 0,
        heard_ns: now_ns,
        bye: None,
    };
    node.say(&mut transport, 0, Message::Hello(hello));
    let mut load = Some((load, sender));
    let (mut signed_ns, mut signalled, mut nap, mut status) = (0, false, NAPS.0, 0);
    let sign_ns = SIGN_NS.max(SIGN_OF_RANK_NS * u64::from(size));
    loop {
        let mut busy = node.take_messages(&mut transport, |common| {
            let (load, sender) = load.take()?;
            let member = Arc::new(Member::new(rank, size, common, phases.clone(), sender.clone()));
            let for_load = Arc::clone(&member);
            let body = move || {
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| load(&for_load)));
                let outcome = outcome.unwrap_or_else(|_| Err("fstone panicked, as it said on standard error".into()));
                let _ = sender.send(Request::Done(outcome.map(Box::new)));
            };
            let started = std::thread::Builder::new().name("load".into()).spawn(body);
            started.is_ok().then_some(member)
        });
        let now_ns = facts::clock_ns();
        if cancel.load(Ordering::Relaxed) && !signalled {
            signalled = true;
            // At once, whether rank 0 still is there or not.
            if let Some(member) = &node.member {
                member.part("told by a signal to end".into());
            }
            node.say(&mut transport, 0, Message::Signalled);
            busy = true;
        }
        if now_ns.saturating_sub(signed_ns) >= sign_ns {
            signed_ns = now_ns;
            let state = node.member.as_ref().map(|member| member.state()).unwrap_or_default();
            node.say(&mut transport, 0, Message::State(state));
        }
        if let Some(report) = node.coordinate(&mut transport, now_ns, conclusion) {
            let told_to = node.coordinator.as_ref().is_some_and(Coordinator::was_signalled);
            status = conclusion.conclude(report, told_to);
            if let Some(coordinator) = &mut node.coordinator {
                coordinator.say_bye();
            }
            node.send_all(&mut transport);
            busy = true;
        }
        if let Some(clean) = node.bye {
            return Ended { clean, status: end(transport, rank, clean, status) };
        }
        if rank > 0 && now_ns.saturating_sub(node.heard_ns) >= silence_ns {
            // Rank 0 has all the words, so nothing can be said any more.
            return Ended { clean: false, status: end(transport, 0, false, 1) };
        }
        nap = if busy { NAPS.0 } else { (nap * 2).min(node.longest_nap()) };
        let timing = node.coordinator.as_ref().is_some_and(Coordinator::is_timing) || now_ns < node.awake_until_ns;
        if timing && !busy {
            // Where there are fewer processors than ranks, the one that is asked may be waiting for this one.
            std::thread::yield_now();
        }
        match node.requests.recv_timeout(if timing { Duration::ZERO } else { nap }) {
            Ok(request) => {
                node.request(&mut transport, request);
                nap = NAPS.0;
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The load has ended, or never begun.
            Err(RecvTimeoutError::Disconnected) if timing => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(nap),
        }
    }
}

/// Ends all processes before the load, where this one cannot begin it: ending the transport would wait for the others, which wait for this one.
/// It may return.
pub fn give_up<T: Transport>(transport: T, status: u8) {
    // What was printed is on its way to the launcher's terminal.
    std::thread::sleep(LAST);
    transport.abort(status.max(1));
}

/// Ends the transport; gives the exit status.
fn end<T: Transport>(mut transport: T, rank: u32, clean: bool, status: u8) -> u8 {
    let started = std::time::Instant::now();
    while !transport.idle() && started.elapsed() < LAST {
        std::thread::sleep(NAPS.1);
    }
    if clean {
        transport.finish();
    } else if rank == 0 {
        give_up(transport, status);
    } else {
        // Rank 0 ends all, once it has said everything.
        std::thread::sleep(LAST * 20);
        transport.abort(1);
    }
    status
}

struct Node {
    rank: u32,
    /// What it sent to itself.
    local: VecDeque<Message>,
    requests: Receiver<Request>,
    member: Option<Arc<Member>>,
    report: Option<Box<LoadReport>>,
    done: bool,
    /// Whether an operation that fails ends the load.
    on_error: ErrorPolicy,
    coordinator: Option<Coordinator>,
    awake_until_ns: u64,
    /// When it last heard of rank 0.
    heard_ns: u64,
    bye: Option<bool>,
}

impl Node {
    fn say<T: Transport>(&mut self, transport: &mut T, to: u32, message: Message) {
        if to == self.rank {
            self.local.push_back(message);
        } else {
            transport.send(to, message.encode());
        }
    }

    /// While the load is at work, nothing is urgent.
    fn longest_nap(&self) -> Duration {
        match &self.member {
            Some(member) if !self.done => {
                if member.waits() {
                    MEETING_NAP
                } else {
                    LONG_NAP
                }
            }
            _ => NAPS.1,
        }
    }

    /// Takes all messages that have come; whether there were any.
    fn take_messages<T: Transport>(
        &mut self,
        transport: &mut T,
        mut begin: impl FnMut(Common) -> Option<Arc<Member>>,
    ) -> bool {
        let mut any = false;
        loop {
            let (from, message) = match self.local.pop_front() {
                Some(message) => (self.rank, message),
                None => match transport.receive() {
                    Some((from, bytes)) => match Message::decode(&bytes) {
                        Some(message) => (from, message),
                        None => continue,
                    },
                    None => return any,
                },
            };
            any = true;
            let now_ns = facts::clock_ns();
            if from == 0 {
                self.heard_ns = now_ns;
            }
            match message {
                Message::Ping { round } => {
                    self.say(transport, 0, Message::Pong { round, clock_ns: facts::clock_ns() });
                    self.awake_until_ns = now_ns + AWAKE_NS;
                }
                Message::Welcome(common) => {
                    self.member = begin(common);
                    if self.member.is_none() {
                        self.finish(transport, Some("cannot start a thread for the load".into()), None);
                    }
                }
                Message::Go { meeting, answer } => self.answered(meeting, answer),
                Message::Give { meeting, bytes } => {
                    if let Some(member) = &self.member {
                        member.was_given(from, meeting, bytes);
                    }
                }
                Message::Over { why } => match &self.member {
                    Some(member) => member.part(why),
                    // It never began.
                    None => self.finish(transport, None, None),
                },
                Message::Collect => {
                    let report = self.report.take();
                    self.say(transport, 0, Message::Report(report));
                }
                Message::Bye { clean } => self.bye = Some(clean),
                Message::Alive => {}
                told => {
                    if let Some(coordinator) = &mut self.coordinator {
                        coordinator.handle(from, told, now_ns);
                        self.send_all(transport);
                    }
                }
            }
        }
    }

    fn answered(&self, meeting: u64, answer: Answer) {
        if let Some(member) = &self.member {
            member.answered(meeting, answer);
        }
    }

    fn request<T: Transport>(&mut self, transport: &mut T, request: Request) {
        match request {
            Request::Tell(message) => self.say(transport, 0, message),
            Request::Give { to, meeting, bytes } => {
                if to == self.rank {
                    if let Some(member) = &self.member {
                        member.was_given(self.rank, meeting, bytes);
                    }
                } else {
                    transport.send(to, Message::Give { meeting, bytes }.encode());
                }
            }
            Request::Done(Ok(loaded)) => {
                let Loaded { report, unfinished } = *loaded;
                self.report = Some(Box::new(report));
                self.finish(transport, None, unfinished);
            }
            Request::Done(Err(words)) => {
                // A load that was told to end has not failed.
                let early = self.member.as_ref().is_some_and(|member| member.parted());
                self.finish(transport, (!early).then_some(words), None);
            }
        }
    }

    fn finish<T: Transport>(&mut self, transport: &mut T, failed: Option<String>, unfinished: Option<String>) {
        if !std::mem::replace(&mut self.done, true) {
            let early = self.member.as_ref().is_none_or(|member| member.parted());
            let reports = self.report.is_some();
            let error = self.report.as_ref().and_then(|report| report.ended_by(self.on_error));
            let halted = error.map(|error| format!("{} of {:?} failed: {}", error.call, error.path, error.text));
            self.say(transport, 0, Message::Done { failed, halted, unfinished, early, reports });
        }
    }

    /// Rank 0's part; gives the result once there is one.
    fn coordinate<T: Transport>(
        &mut self,
        transport: &mut T,
        now_ns: u64,
        conclusion: &mut dyn Conclusion,
    ) -> Option<RanksReport> {
        let coordinator = self.coordinator.as_mut()?;
        coordinator.tick(now_ns);
        if let Some(news) = coordinator.news() {
            conclusion.keep(&news);
        }
        let concluded = coordinator.concluded();
        self.send_all(transport);
        concluded
    }

    /// Sends what rank 0 has to say.
    fn send_all<T: Transport>(&mut self, transport: &mut T) {
        loop {
            let Some(coordinator) = &mut self.coordinator else { return };
            let outgoing: Vec<(u32, Message)> = coordinator.outgoing().collect();
            if outgoing.is_empty() {
                return;
            }
            for (to, message) in outgoing {
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.sent(to, &message, facts::clock_ns());
                }
                self.say(transport, to, message);
            }
        }
    }
}

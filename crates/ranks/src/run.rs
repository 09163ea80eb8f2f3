//! A rank from its start to its end: one thread runs the load, and the calling thread communicates with the other ranks.

use crate::coordinator::Coordinator;
use crate::facts;
use crate::given::{Loaded, Settings};
use crate::member::{Member, Request};
use crate::message::{Answer, Common, Message, UNREADABLE};
use crate::transport::Transport;
use fstone_engine::Peers;
use fstone_model::ranks::RanksReport;
use fstone_model::{LoadReport, Workload};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The shortest and longest time between two looks for messages. A look takes about a microsecond. Only pings are urgent, and they are
/// answered at once.
const NAPS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));
/// While the load waits for other ranks, which may need the processor.
const MEETING_NAP: Duration = Duration::from_millis(5);
/// While the load is at work it is left alone: eight ranks that looked every 5 ms slowed writes of 1 MiB down by 5 %.
const LONG_NAP: Duration = Duration::from_millis(50);
/// For so long after a ping, the next one is awaited without a nap.
const AWAKE_NS: u64 = 500_000;
/// The time between two signs of life, and what each rank adds to it.
const SIGN_NS: u64 = 1_000_000_000;
const SIGN_OF_RANK_NS: u64 = 500_000;
const LAST: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Whether all ranks ended by themselves. Otherwise all processes were made to end.
    pub clean: bool,
    /// The exit status: what `conclude` gave on rank 0. Elsewhere the same if a signal ended the load, and 0 otherwise.
    pub status: u8,
}

/// What rank 0 does with the result.
pub trait Conclusion {
    /// Keeps what all have done so far, in case the load does not complete. The merged report is not in it yet.
    fn keep(&mut self, report: &RanksReport);
    /// Reports the result; returns the exit status. `signalled`: a signal ended the load.
    fn conclude(&mut self, report: RanksReport, signalled: bool) -> u8;
}

/// Runs a load as one of many ranks.
///
/// `load` runs it in a thread of its own, which is abandoned if it hangs. Its error is a message for people.
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
        workload: settings.workload.clone(),
        coordinator: (rank == 0).then(|| Coordinator::new(settings, size, now_ns)),
        awake_until_ns: 0,
        heard_ns: now_ns,
        bye: None,
    };
    node.say(&mut transport, 0, Message::Hello(hello));
    let mut load = Some((load, sender));
    let (mut signed_ns, mut signalled, mut nap, mut status) = (0, false, NAPS.0, 0);
    // Several of them within the time after which a rank that sends none is given up.
    let sign_ns = SIGN_NS.max(SIGN_OF_RANK_NS * u64::from(size)).min(silence_ns / 3);
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
            // At once, even if rank 0 is gone.
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
                coordinator.say_bye(status);
            }
            node.send_all(&mut transport);
            busy = true;
        }
        if let Some((clean, of_all)) = node.bye {
            let status = if rank == 0 { status } else { of_all };
            return Ended { clean, status: end(transport, rank, clean, status) };
        }
        if rank > 0 && now_ns.saturating_sub(node.heard_ns) >= silence_ns {
            // Rank 0 is gone, and only rank 0 reports.
            return Ended { clean: false, status: end(transport, 0, false, 1) };
        }
        nap = if busy { NAPS.0 } else { (nap * 2).min(node.longest_nap()) };
        let timing = node.coordinator.as_ref().is_some_and(Coordinator::is_timing) || now_ns < node.awake_until_ns;
        if timing && !busy {
            // With fewer processors than ranks, the rank that was asked may be waiting for this processor.
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

/// Ends all processes because this one cannot begin the load. Ending the transport normally would wait for the others, which wait for this
/// one. It may return.
pub fn give_up<T: Transport>(transport: T, status: u8) {
    // The launcher still has to print what this rank printed.
    std::thread::sleep(LAST);
    transport.abort(status.max(1));
}

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
        // Rank 0 ends all processes when it has reported everything.
        std::thread::sleep(LAST * 20);
        transport.abort(1);
    }
    status
}

struct Node {
    rank: u32,
    local: VecDeque<Message>,
    requests: Receiver<Request>,
    member: Option<Arc<Member>>,
    report: Option<Box<LoadReport>>,
    done: bool,
    workload: Workload,
    coordinator: Option<Coordinator>,
    awake_until_ns: u64,
    heard_ns: u64,
    /// Whether it was clean, and the exit status of the ranks.
    bye: Option<(bool, u8)>,
}

impl Node {
    fn say<T: Transport>(&mut self, transport: &mut T, to: u32, message: Message) {
        if to == self.rank {
            self.local.push_back(message);
        } else {
            transport.send(to, message.encode());
        }
    }

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
                        None => {
                            match &mut self.coordinator {
                                Some(coordinator) => coordinator.garbled(from, facts::clock_ns()),
                                None => self.finish(transport, Some(format!("rank {from}: {UNREADABLE}")), None),
                            }
                            any = true;
                            continue;
                        }
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
                Message::Bye { clean, status } => self.bye = Some((clean, status)),
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
                // A load that was stopped has not failed.
                let early = self.member.as_ref().is_some_and(|member| member.parted());
                self.finish(transport, (!early).then_some(words), None);
            }
        }
    }

    fn finish<T: Transport>(&mut self, transport: &mut T, failed: Option<String>, unfinished: Option<String>) {
        if !std::mem::replace(&mut self.done, true) {
            let early = self.member.as_ref().is_none_or(|member| member.parted());
            let reports = self.report.is_some();
            let error = self.report.as_ref().and_then(|report| report.ended_by(&self.workload));
            let halted = error.map(|error| format!("{} of {:?} failed: {}", error.call, error.path, error.text));
            self.say(transport, 0, Message::Done { failed, halted, unfinished, early, reports });
        }
    }

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

//! A program, made ready: its steps in a row, with jumps, and what the threads of a phase share to wait for each other.

use crossbeam_utils::CachePadded;
use fstone_model::workload::{Actions, FinishUnit, PaceUnit, Phase, Step, ThreadGroup};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) code: Vec<Instruction>,
    /// How deep steps are repeated within steps.
    pub(crate) depth: usize,
    /// How many of the steps hold the thread back.
    pub(crate) paces: usize,
    pub(crate) written: Vec<bool>,
    /// Where some step asks what has been done.
    pub(crate) counter: Option<Arc<Counter>>,
}

/// What all threads that count together have done.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    pub(crate) operations: CachePadded<AtomicU64>,
    pub(crate) bytes: CachePadded<AtomicU64>,
}

impl Counter {
    /// Each group's, which all groups of a process have in common.
    pub(super) fn of(phase: &Phase) -> Vec<Option<Arc<Self>>> {
        let asks = |group: &ThreadGroup| match &group.actions {
            Actions::Program(steps) => {
                Step::all(steps).into_iter().any(|step| matches!(step, Step::Finish { .. } | Step::Pace { .. }))
            }
            _ => false,
        };
        let mut all: Vec<Option<Arc<Self>>> = Vec::new();
        for group in &phase.groups {
            let is_with = |other: &ThreadGroup| other.process.is_some() && other.process == group.process;
            all.push(match phase.groups[..all.len()].iter().position(is_with) {
                Some(first) => all[first].clone(),
                None => phase
                    .groups
                    .iter()
                    .any(|other| (other == group || is_with(other)) && asks(other))
                    .then(Arc::default),
            });
        }
        all
    }

    #[inline]
    pub(crate) fn done(&self, bytes: u64) {
        self.operations.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(crate) enum Instruction {
    Perform {
        action: usize,
        times: u64,
    },
    /// The steps until [`Self::Again`] are repeated.
    Enter {
        depth: usize,
        times: u64,
    },
    /// Back to `first`, unless that was the last time.
    Again {
        depth: usize,
        first: usize,
    },
    Finish {
        count: u64,
        unit: FinishUnit,
        of: Option<Vec<usize>>,
    },
    Pace {
        number: usize,
        unit: PaceUnit,
        of: Option<Vec<usize>>,
    },
    Pause(Duration),
    Spin(u64),
    Wait {
        mail: usize,
        posts: u64,
    },
    Post {
        mails: Vec<usize>,
        posts: u64,
        bounded: bool,
    },
}

impl Program {
    pub(super) fn new(
        spec: &ThreadGroup,
        steps: &[Step],
        group: usize,
        mails: &[Mail],
        counter: Option<Arc<Counter>>,
    ) -> Self {
        let actions = Step::actions(steps);
        let handles = actions.iter().filter_map(|action| action.handle).max().map_or(0, |most| most as usize + 1);
        let mut written = vec![false; handles];
        for action in &actions {
            if let Some(handle) = action.handle.filter(|_| action.operation.nature().writes()) {
                written[handle as usize] = true;
            }
        }
        let names: Vec<&str> = actions.iter().map(|action| action.name.as_str()).collect();
        let mut compiler =
            Compiler { code: Vec::new(), actions: 0, depth: 0, deepest: 0, paces: 0, names, group, mails };
        compiler.steps(steps);
        debug_assert_eq!(compiler.actions, spec.actions.all().len());
        Self { depth: compiler.deepest, paces: compiler.paces, code: compiler.code, written, counter }
    }
}

struct Compiler<'a> {
    code: Vec<Instruction>,
    actions: usize,
    depth: usize,
    deepest: usize,
    paces: usize,
    names: Vec<&'a str>,
    group: usize,
    mails: &'a [Mail],
}

impl Compiler<'_> {
    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            let instruction = match step {
                Step::Perform { times, .. } => {
                    self.actions += 1;
                    Instruction::Perform { action: self.actions - 1, times: *times }
                }
                Step::Repeat { times, steps } => {
                    self.repeat(*times, steps);
                    continue;
                }
                Step::Finish { count, unit, of } => {
                    Instruction::Finish { count: *count, unit: *unit, of: self.named(of.as_deref()) }
                }
                Step::Pace { unit, of, .. } => {
                    self.paces += 1;
                    Instruction::Pace { number: self.paces - 1, unit: *unit, of: self.named(of.as_deref()) }
                }
                Step::Pause(time) => Instruction::Pause(*time),
                Step::Spin(times) => Instruction::Spin(*times),
                Step::Wait { name, posts, .. } => {
                    let own = |mail: &Mail| mail.group == self.group && mail.name == *name;
                    Instruction::Wait { mail: self.mails.iter().position(own).unwrap_or(0), posts: *posts }
                }
                Step::Post { to, posts, bounded } => {
                    let theirs = self.mails.iter().enumerate().filter(|(_, mail)| mail.name == *to);
                    let mails = theirs.map(|(place, _)| place).collect();
                    Instruction::Post { mails, posts: *posts, bounded: *bounded }
                }
            };
            self.code.push(instruction);
        }
    }

    fn repeat(&mut self, times: u64, steps: &[Step]) {
        let depth = self.depth;
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        self.code.push(Instruction::Enter { depth, times });
        let first = self.code.len();
        self.steps(steps);
        self.code.push(Instruction::Again { depth, first });
        self.depth = depth;
    }

    fn named(&self, of: Option<&str>) -> Option<Vec<usize>> {
        let of = of?;
        Some(self.names.iter().enumerate().filter(|(_, name)| **name == of).map(|(place, _)| place).collect())
    }
}

/// What is posted to the threads of a group under a name, a box for each.
#[derive(Debug)]
pub(crate) struct Mail {
    group: usize,
    name: String,
    ahead: Option<u64>,
    once: bool,
    boxes: Vec<CachePadded<Post>>,
}

#[derive(Debug, Default)]
struct Post {
    state: Mutex<State>,
    arrived: Condvar,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    here: u64,
    room: u64,
    /// What the thread waits for, if it does. It is woken once so many are here, and not by each.
    wanted: Option<u64>,
    blocked: u64,
}

impl Post {
    fn new(ahead: Option<u64>) -> Self {
        Self { state: Mutex::new(State { room: ahead.unwrap_or(u64::MAX), ..State::default() }), ..Self::default() }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mail {
    pub(super) fn of(phase: &Phase) -> Vec<Self> {
        let mut mails: Vec<Self> = Vec::new();
        for (group, spec) in phase.groups.iter().enumerate() {
            let fstone_model::workload::Actions::Program(steps) = &spec.actions else { continue };
            for step in Step::all(steps) {
                let Step::Wait { name, ahead, once, .. } = step else { continue };
                if mails.iter().any(|mail| mail.group == group && mail.name == *name) {
                    continue;
                }
                let boxes = (0..spec.threads).map(|_| CachePadded::new(Post::new(*ahead)));
                mails.push(Self { group, name: name.clone(), ahead: *ahead, once: *once, boxes: boxes.collect() });
            }
        }
        mails
    }

    /// Takes posts for a thread; `false` when it was told to stop before they had come. `patience` says how long it may wait
    /// before it asks again, and nothing when it is to stop.
    pub(crate) fn take(&self, thread: u64, posts: u64, patience: impl Fn() -> Option<Duration>) -> bool {
        let post = &self.boxes[thread as usize];
        let mut state = post.locked();
        if self.ahead.is_some() {
            // Room for as many is made before they have come: so many may be under way beside those that wait.
            state.room = state.room.saturating_add(posts);
            if state.blocked > 0 {
                post.freed.notify_all();
            }
        }
        while state.here < posts {
            let Some(time) = patience() else { return false };
            state.wanted = Some(posts);
            state = post.arrived.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0;
            state.wanted = None;
        }
        state.here -= posts;
        true
    }

    /// Posts to every thread; `false` when told to stop before there was room.
    pub(crate) fn put(&self, posts: u64, bounded: bool, patience: impl Fn() -> Option<Duration>) -> bool {
        self.boxes.iter().all(|post| {
            let mut state = post.locked();
            if bounded && self.ahead.is_some() {
                while state.room < posts {
                    let Some(time) = patience() else { return false };
                    state.blocked += 1;
                    state = post.freed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0;
                    state.blocked -= 1;
                }
                state.room -= posts;
            }
            state.here = if self.once { 1 } else { state.here.saturating_add(posts) };
            if state.wanted.is_some_and(|wanted| state.here >= wanted) {
                post.arrived.notify_one();
            }
            true
        })
    }
}

/// Events at a rate, which threads use up.
#[derive(Debug)]
pub(crate) struct Events {
    per_second: f64,
    /// Events used, as a count since the phase's begin.
    used: Mutex<f64>,
}

/// Events that nobody used for longer than this are lost.
const KEPT: Duration = Duration::from_secs(5);

impl Events {
    pub(super) fn of(phase: &Phase) -> Option<Self> {
        let programs = phase.groups.iter().filter_map(|group| match &group.actions {
            fstone_model::workload::Actions::Program(steps) => Some(Step::all(steps)),
            _ => None,
        });
        programs.flatten().find_map(|step| match step {
            Step::Pace { per_second, .. } => Some(Self { per_second: *per_second, used: Mutex::new(0.0) }),
            _ => None,
        })
    }

    /// Uses so many at this time since the phase's begin; when the last of them comes.
    pub(crate) fn take(&self, count: f64, at: Duration) -> Duration {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = at.saturating_sub(KEPT).as_secs_f64() * self.per_second;
        *used = used.max(oldest) + count;
        Duration::try_from_secs_f64(*used / self.per_second).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(ahead: Option<u64>, once: bool) -> Mail {
        let boxes = (0..2).map(|_| CachePadded::new(Post::new(ahead))).collect();
        Mail { group: 0, name: "m".into(), ahead, once, boxes }
    }

    #[test]
    fn posts_wait_for_who_takes_them() {
        let mail = mail(None, false);
        assert!(!mail.take(0, 1, || None), "nothing has come");
        assert!(
            mail.put(2, false, || Some(Duration::from_secs(60)))
                && mail.put(1, false, || Some(Duration::from_secs(60)))
        );
        assert!(mail.take(0, 3, || None) && mail.take(1, 2, || None), "each thread has posts of its own");
        assert!(!mail.take(0, 1, || None) && mail.take(1, 1, || None));
    }

    #[test]
    fn posts_within_bounds_wait_for_room() {
        let mail = mail(Some(2), false);
        assert!(mail.put(2, true, || None));
        assert!(!mail.put(1, true, || None), "two are waiting");
        assert!(mail.put(1, false, || None), "this one does not ask");
        assert!(mail.take(0, 2, || None) && mail.take(1, 2, || None));
        assert!(mail.put(2, true, || None), "there is room for as many as were taken");
    }

    /// Neither side is woken in vain, and each is when it matters: with a wait of a minute a wakeup that is lost would show.
    #[test]
    fn whoever_waits_is_woken_when_there_is_what_it_waits_for() {
        let patient = || Some(Duration::from_secs(60));
        let (mail, rounds) = (mail(Some(8), false), 500);
        let begin = std::time::Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let mail = &mail;
                scope.spawn(move || (0..rounds).for_each(|_| assert!(mail.take(thread, 20, patient))));
            }
            for _ in 0..4 {
                scope.spawn(|| (0..rounds * 5).for_each(|_| assert!(mail.put(1, true, patient))));
            }
        });
        assert!(begin.elapsed() < Duration::from_secs(60), "somebody slept through");
        assert!(!mail.take(0, 1, || None), "all were taken");
    }

    #[test]
    fn a_wakeup_before_the_wait_is_not_lost() {
        let mail = mail(None, true);
        assert!(
            mail.put(1, false, || Some(Duration::from_secs(60)))
                && mail.put(1, false, || Some(Duration::from_secs(60)))
        );
        assert!(mail.take(0, 1, || None));
        assert!(!mail.take(0, 1, || None), "two wakeups are one");
    }

    #[test]
    fn events_come_at_their_rate_and_are_kept_for_a_while() {
        let events = Events { per_second: 10.0, used: Mutex::new(0.0) };
        let ms = Duration::from_millis;
        assert_eq!([1.0, 1.0, 3.0].map(|count| events.take(count, ms(0))), [ms(100), ms(200), ms(500)]);
        // A hundred seconds later those of five seconds are there, and no more.
        assert_eq!(events.take(50.0, ms(100_000)), ms(100_000));
        assert_eq!(events.take(1.0, ms(100_000)), ms(100_100));
    }
}

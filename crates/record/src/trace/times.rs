//! How long threads ran, slept and waited, without what recording cost them, and what they waited for.

use super::decode::Asked;
use super::preload::Event;
use super::processors::Usage;
use super::ptrace;
use super::state::{Interrupted, LONG_NS, Noticed, Pending, Spent, Tracer, is_interrupted};
use crate::call::{Call, Kind};
use libc::pid_t;
use std::collections::HashMap;

/// What is left of a thread's activity at each decision: half after 14 of them.
const FADING: f64 = 0.95;
/// A thread that is active for so much of the most active one's time counts whole: threads that take turns are waited for one after another.
const COUNTS_WHOLE: f64 = 0.1;
/// A wait that is longer, with what recording cost others meanwhile, is one for another thread, if one was at work. What is shorter is no
/// more than what is not known of a stop.
const WAIT_NS: u64 = 10_000;
/// How many threads a wait may have been for: as many as may be at work at once, and some.
const MOST_AT_WORK: usize = 16;
/// What is left at each wait of how often a thread was at work at the end of another's waits, and what is as good as never.
const FORGETTING: f64 = 0.9;
const RARE: f64 = 0.001;
impl Tracer {
    /// Most programs have one thread that runs, and others that wait for what it does: then one processor is enough.
    pub(super) fn decide(&mut self, now: u64) {
        self.asking.retain(|asking| self.threads.contains_key(asking));
        if !self.asking.is_empty() {
            return;
        }
        let mut all_known = true;
        let most_ns = self.threads.values().filter_map(|state| state.active_ns).fold(1.0, f64::max);
        for state in self.threads.values_mut() {
            if let Some(active_ns) = &mut state.active_ns {
                state.weight = (*active_ns / most_ns / COUNTS_WHOLE).min(1.0);
                *active_ns *= FADING;
            }
            all_known &= state.account.is_kept();
            state.reckon(&mut self.usage[0], &mut self.sums);
        }
        let [program, tracer] = std::mem::take(&mut self.usage);
        let time_ns = now.saturating_sub(std::mem::replace(&mut self.decided_ns, now));
        let shared = self.threads.len() <= 1 || all_known && self.processors.is_enough(program, tracer, time_ns);
        self.share(shared);
    }

    /// For how long the tracer waited for a processor since this was asked last.
    pub(super) fn look_at_own(&mut self, now: u64) -> u64 {
        let usage = self.account.since();
        self.usage[1] += usage;
        self.accounted_ns = now;
        usage.delayed_ns
    }

    /// A call is about a thread's processors: until its end they are all that it has without a tracer.
    pub(super) fn asks(&mut self, thread: pid_t) -> bool {
        let changes = self.processors.shared || !self.asking.is_empty();
        if changes {
            self.asking.insert(thread);
            self.share(false);
        }
        changes
    }

    pub(super) fn share(&mut self, shared: bool) {
        self.processors.share(shared, self.threads.keys().chain(&self.early).copied());
    }

    /// Adds the time that a thread spent until it stopped, without what recording cost; returns when that was.
    ///
    /// Its own stop cost what was measured at the start, and as long as it waited for a processor because of the tracer; what the kernel says
    /// that it ran is not less than it needed. Where it may have waited for other threads, what recording cost *them* meanwhile made the wait
    /// longer: time passes for a thread that waits as it does for those that run. If several of them ran at once, each cost delays some
    /// of what is waited for, so that the costs of all are divided by how many there were on average. Each counts by how active its
    /// thread is.
    pub(super) fn account(&mut self, Noticed { stop, from_ns, to_ns, seen_ns }: &Noticed) -> u64 {
        let Some(others) = self.others(stop.thread) else { return *to_ns };
        let Some(state) = self.threads.get_mut(&stop.thread) else { return *to_ns };
        let from_ns = (*from_ns).max(state.resumed_ns).min(*to_ns);
        let half_ns = to_ns.saturating_sub(from_ns) / 2;
        let stopped_ns = from_ns + half_ns;
        let wall_ns = stopped_ns.saturating_sub(state.resumed_ns);
        state.reckon(&mut self.usage[0], &mut self.sums);
        let mut usage = std::mem::take(&mut state.usage);
        if std::mem::take(&mut state.kept) {
            usage = Usage::default();
        }
        let spent = Spent { wall_ns, usage };
        if std::mem::take(&mut state.is_probed) && stop.is_interruption() {
            let probe_ns = wall_ns.saturating_sub(usage.delayed_ns);
            match &mut self.samples {
                _ if half_ns > 0 => {}
                Some((_, probes)) => probes.push(probe_ns),
                None => self.overhead[usize::from(self.processors.shared)].saw(probe_ns),
            }
            self.sums.add(state.weight, wall_ns, 0);
            state.stopped_ns = Some(stopped_ns);
            return stopped_ns;
        }
        self.sums.stops += 1;
        if let Some((samples, _)) = &mut self.samples {
            match &state.pending {
                None => samples.push([Spent::default(), spent]),
                Some(_) => samples.last_mut().into_iter().for_each(|last| last[0] = spent),
            }
        }
        let which = usize::from(state.pending.is_none());
        let never_slept = half_ns == 0 && usage.turns == 1;
        let cost = self.overhead[usize::from(self.processors.shared)].now(which);
        let mut cost_ns = cost.wall_ns;
        if half_ns > 0 {
            // The tracer did not have to wake up, which is about half of what a stop costs.
            cost_ns /= 2;
            (self.meanwhile, self.uncertain_ns) = (self.meanwhile + 1, self.uncertain_ns + half_ns);
        }
        self.taken[which] = [self.taken[which][0] + cost_ns, self.taken[which][1] + 1];
        let waited_ns = usage.delayed_ns.saturating_sub(cost.usage.delayed_ns);
        let blamed = self.processors.blamed(others, seen_ns.saturating_sub(self.idle_ns), self.sums.ran_ns);
        let delayed_ns = state.delayed_ns(Usage { delayed_ns: waited_ns, ..usage }, blamed);
        let ran_ns = usage.ran_ns.saturating_sub(cost.usage.ran_ns).min(wall_ns);
        let (all_ns, due_ns) = if never_slept {
            // But for its turn it waited for others', and for the tracer to notice.
            (usage.ran_ns + waited_ns - delayed_ns, cost.usage.ran_ns)
        } else {
            (wall_ns.saturating_sub(delayed_ns), cost_ns)
        };
        let due_ns = due_ns + state.owed_ns;
        let own_ns = all_ns.saturating_sub(due_ns).min(wall_ns);
        state.owed_ns = due_ns.saturating_sub(all_ns).min(cost_ns);
        let own_ns = if never_slept { own_ns } else { own_ns.max(ran_ns) };
        let ran_ns = ran_ns.min(own_ns);
        let mut spent_ns = own_ns;
        let sleeps = state.pending.as_ref().is_some_and(|pending| pending.sleeps(stop.thread));
        let may_wait = !sleeps && state.pending.as_ref().is_none_or(Pending::may_wait);
        if may_wait {
            let [lost_ns, active_ns] = [
                self.sums.lost_ns.saturating_sub(state.sums.lost_ns),
                self.sums.active_ns.saturating_sub(state.sums.active_ns),
            ];
            let at_once = (active_ns as f64 / wall_ns.max(1) as f64).max(1.0);
            spent_ns = own_ns.saturating_sub((lost_ns as f64 / at_once) as u64).max(ran_ns);
        }
        if let Some(Pending { asked, call, .. }) = state.pending.as_ref().filter(|_| sleeps)
            && ptrace::result(stop.thread).is_some_and(is_interrupted)
        {
            // What is left of it is known when the thread runs again.
            spent_ns = wall_ns.saturating_sub(cost_ns).max(ran_ns);
            let (asked, since_ns, most_ns) = (*asked, call.begin_ns, call.took_ns);
            state.interrupted = Some(Interrupted { asked, since_ns, most_ns, counted_ns: 0, is_last: true });
        }
        state.stopped_ns = Some(stopped_ns);
        let active_ns = if sleeps || may_wait { ran_ns } else { own_ns };
        *state.active_ns.get_or_insert(0.0) += active_ns as f64;
        self.sums.add(state.weight, wall_ns - own_ns, active_ns);
        let waited_ns = spent_ns - ran_ns;
        let waits = may_wait && state.pending.as_ref().is_some_and(|pending| !pending.call.kind.is_of_threads());
        let (number, resumed_ns) = (state.number, state.resumed_ns);
        let woken_ns = stopped_ns.saturating_sub(cost_ns / 2 + delayed_ns);
        let waker = if waits && own_ns - ran_ns > WAIT_NS {
            self.waker(stop.thread, [resumed_ns, woken_ns.saturating_sub(half_ns + LONG_NS)])
        } else {
            None
        };
        if let Some(state) = self.threads.get_mut(&stop.thread) {
            state.ran(if waker.is_some() { ran_ns } else { spent_ns });
        }
        match waker {
            Some(waker) => self.woken(stop.thread, waker, waited_ns, woken_ns, stopped_ns),
            None if sleeps => {}
            None => self.was_at_work(stop.thread, number, stopped_ns),
        }
        stopped_ns
    }

    pub(super) fn was_at_work(&mut self, thread: pid_t, number: u32, until_ns: u64) {
        if let Some(place) = self.at_work.iter().position(|(other, ..)| *other == thread) {
            self.at_work.remove(place);
        }
        self.at_work.truncate(MOST_AT_WORK - 1);
        self.at_work.push_front((thread, number, until_ns));
    }

    /// The last of the other threads that were at work after some time, or are.
    fn others_at_work(&self, thread: pid_t, since_ns: u64) -> impl Iterator<Item = (pid_t, u32)> {
        let is_at_work = |other: &pid_t| self.threads.get(other).is_some_and(|state| state.pending.is_none());
        let others = self.at_work.iter().filter(move |(other, ..)| *other != thread);
        others
            .filter(move |(other, _, at_ns)| *at_ns > since_ns || is_at_work(other))
            .map(|(other, number, _)| (*other, *number))
    }

    /// How many other threads were at work since a thread went on. `None` of one that is not known.
    fn others(&self, thread: pid_t) -> Option<usize> {
        Some(self.others_at_work(thread, self.threads.get(&thread)?.resumed_ns).count())
    }

    /// The thread that another one probably waited for: of those that were at work when its wait ended, or else meanwhile, the one that was
    /// so at most of its waits, and of several the last.
    pub(super) fn waker(&mut self, thread: pid_t, [since_ns, woken_ns]: [u64; 2]) -> Option<(pid_t, u32)> {
        let mut found: Vec<(pid_t, u32)> = self.others_at_work(thread, woken_ns.max(since_ns)).collect();
        if found.is_empty() {
            found.extend(self.others_at_work(thread, since_ns));
        }
        let wakers = &mut self.threads.get_mut(&thread)?.wakers;
        wakers.retain(|_, often| {
            *often *= FORGETTING;
            *often > RARE
        });
        found.iter().for_each(|(_, number)| *wakers.entry(*number).or_insert(0.0) += 1.0 - FORGETTING);
        found.into_iter().rev().max_by(|(_, one), (_, other)| wakers[one].total_cmp(&wakers[other]))
    }

    /// Notes that a thread went on when another one had come so far.
    pub(super) fn woken(&mut self, thread: pid_t, (waker, of): (pid_t, u32), waited_ns: u64, woken_ns: u64, now: u64) {
        let wakeup = Call { kind: Kind::Wakeup, begin_ns: now, ..Call::default() };
        let after = self.overhead[usize::from(self.processors.shared)].now(1);
        let (others, worked_ns) = (self.others(waker).unwrap_or(0), self.now().saturating_sub(self.idle_ns));
        if let Some(state) = self.threads.get_mut(&waker) {
            if state.pending.is_none() && state.stopped_ns.is_none() && state.resumed_ns < woken_ns {
                // It ran until then, but for what its last stop cost, and while it waited for a processor.
                state.reckon(&mut self.usage[0], &mut self.sums);
                let usage = std::mem::take(&mut state.usage);
                let delayed_ns = state.delayed_ns(usage, self.processors.blamed(others, worked_ns, self.sums.ran_ns));
                state.ran((woken_ns - state.resumed_ns).saturating_sub(after.wall_ns + delayed_ns));
                state.think_ns += std::mem::take(&mut state.ran_ns);
                state.resumed_ns = woken_ns;
            }
            let think_ns = std::mem::take(&mut state.think_ns);
            self.write(Call { thread: of, think_ns, ..wakeup });
        }
        let Some(state) = self.threads.get_mut(&thread) else { return };
        let (number, think_ns) = (state.number, std::mem::take(&mut state.think_ns));
        let length = self.written[of as usize];
        self.write(Call { thread: number, think_ns, took_ns: waited_ns, result: i64::from(of), length, ..wakeup });
    }

    /// What passed for its thread before each event. What a thread waited for a processor since this was asked last was most likely in the
    /// longest of these times.
    pub(super) fn spent(&mut self, events: &[Event]) -> Vec<u64> {
        let mut longest: HashMap<pid_t, (u64, usize)> = HashMap::new();
        let mut all = vec![0; events.len()];
        for (index, Event { ns, cost_ns, thread, .. }) in events.iter().enumerate() {
            let Some(state) = self.threads.get(thread) else { continue };
            let (before_ns, most) = longest.entry(*thread).or_insert((state.resumed_ns, index));
            all[index] = ns.saturating_sub(*before_ns + cost_ns[0]);
            *before_ns = (*before_ns).max(*ns + cost_ns[1]);
            if all[index] > all[*most] {
                *most = index;
            }
        }
        for (thread, (_, most)) in longest {
            let (others, worked_ns) = (self.others(thread).unwrap_or(0), self.now().saturating_sub(self.idle_ns));
            let Some(state) = self.threads.get_mut(&thread) else { continue };
            state.reckon(&mut self.usage[0], &mut self.sums);
            let usage = std::mem::take(&mut state.usage);
            let blamed = self.processors.blamed(others, worked_ns, self.sums.ran_ns);
            let delayed_ns = state.delayed_ns(usage, blamed).min(all[most]);
            all[most] -= delayed_ns;
            self.sums.add(state.weight, delayed_ns, 0);
        }
        all
    }

    /// How long a wait takes if nothing ends it before; 0 if that is not known, or if it has no end.
    pub(super) fn most_ns(&self, thread: pid_t, asked: &Asked, now: u64) -> u64 {
        let limit_ns = match asked.pointer {
            0 => asked.length,
            at => {
                let [seconds, rest] = [at, at.wrapping_add(8)].map(|at| self.number(thread, at).unwrap_or(0));
                seconds.saturating_mul(1_000_000_000).saturating_add(rest.saturating_mul(asked.count))
            }
        };
        if asked.flags & libc::TIMER_ABSTIME as u32 == 0 {
            return limit_ns;
        }
        if !ptrace::is_for_all(asked.mode as i32) {
            return 0;
        }
        // Until a moment, which comes nearer while the tracer is at work.
        let stopped_ns = ptrace::clock(asked.mode as i32).saturating_sub(self.now().saturating_sub(now));
        limit_ns.saturating_sub(stopped_ns)
    }
}

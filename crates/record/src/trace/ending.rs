//! How a program is asked to end, once, and signals that have come to it already.

use super::decode::Asked;
use super::state::{Noticed, Tracer};
use super::{ptrace, tables};
use libc::pid_t;
use std::collections::{HashSet, VecDeque};

/// A program that was asked to end has so long before it is asked with a stronger signal, and at last killed.
const GRACE_NS: u64 = 5_000_000_000;
/// A signal for the whole process group has come to all of it by then.
const ARRIVED_NS: u64 = 100_000_000;
/// And so long before the tracer knew of its own, it was the same.
const SAME_NS: u64 = 1_000_000_000;
/// What ends recordings.
const ENDING: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

impl Tracer {
    /// Asks the program to end, with one signal after the other.
    pub(super) fn end(&mut self, signal: i32, now: u64, stopped: &VecDeque<Noticed>) {
        let (next, due_ns, last) = *self.ending.get_or_insert((signal, now + ARRIVED_NS, self.last_thread));
        if now < due_ns {
            return;
        }
        let stronger = if matches!(next, libc::SIGINT | libc::SIGHUP) { libc::SIGTERM } else { libc::SIGKILL };
        self.ending = Some((stronger, now + GRACE_NS, last));
        // The number of one that has ended may be another's by now.
        let ended = |thread: pid_t| {
            stopped.iter().any(|Noticed { stop, .. }| stop.thread == thread && !libc::WIFSTOPPED(stop.status))
        };
        let since_ns = now.saturating_sub(ARRIVED_NS + SAME_NS);
        let has_come = |ns: &u64| *ns >= since_ns;
        let came = self.came.iter().any(|((_, of), ns)| *of == signal && has_come(ns));
        // What was begun since then is of those that got the first one: it is how they end.
        let is_meant = |thread: &pid_t| {
            next != signal || !came || self.threads.get(thread).is_some_and(|state| state.number <= last)
        };
        let all = self.threads.keys().chain(&self.early).copied().filter(is_meant);
        let mut processes: HashSet<pid_t> =
            all.filter(|thread| !ended(*thread)).map(|thread| tables::process(thread).unwrap_or(thread)).collect();
        if next == signal {
            // Twice it would end the program in the middle of what it does at the end.
            let has_it = |process: &pid_t| self.came.get(&(*process, signal)).is_some_and(has_come);
            processes.retain(|process| !has_it(process));
        }
        processes.into_iter().for_each(|process| ptrace::send(process, next));
    }

    pub(super) fn comes(&mut self, thread: pid_t, signal: i32, now: u64) {
        if ENDING.contains(&signal) {
            self.came.insert((tables::process(thread).unwrap_or(thread), signal), now);
        }
    }

    /// Signals that a thread may have read from a signalfd(2) are not delivered.
    pub(super) fn read_signals(&mut self, thread: pid_t, asked: &Asked, bytes: i64, now: u64) {
        const BYTES: usize = size_of::<libc::signalfd_siginfo>();
        let count = usize::try_from(bytes).unwrap_or(0);
        let file = || std::fs::read_link(format!("/proc/{thread}/fd/{}", asked.fd.unwrap_or(-1)));
        if count % BYTES != 0 || !file().is_ok_and(|file| file.as_os_str() == "anon_inode:[signalfd]") {
            return;
        }
        for at in (0..count).step_by(BYTES) {
            // Its number is the first of what is known of it.
            let mut number = [0; 4];
            if ptrace::read(thread, asked.pointer.wrapping_add(at as u64), &mut number) == number.len() {
                self.comes(thread, i32::from_ne_bytes(number), now);
            }
        }
    }
}

//! What a thread that goes through a program does next.

use super::choice::Next;
use super::progress::ProgramProgress;
use crate::io::Io;
use crate::plan::{Instruction, Selector};
use crate::worker::Worker;
use fstone_model::workload::FinishUnit;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a thread waits for others before it looks whether it is to stop. Hundreds may wait: each look costs a switch.
const LOOK: Duration = Duration::from_millis(50);
/// And at least so long, lest it spins.
const SHORTEST: Duration = Duration::from_micros(100);

impl<E: Io> Worker<'_, E> {
    #[inline(never)]
    pub(super) fn next_of_program(&mut self, progress: &mut ProgramProgress) -> Next {
        let group = self.group;
        let Selector::Program(program) = &group.selector else { return Next::End };
        let mut rested = false;
        loop {
            let Some(instruction) = program.code.get(progress.at) else {
                progress.at = 0;
                if self.told_to_stop() {
                    return Next::End;
                }
                continue;
            };
            match instruction {
                Instruction::Perform { action, times } => {
                    if progress.left == 0 {
                        progress.left = *times;
                    }
                    progress.left -= 1;
                    if progress.left == 0 {
                        progress.at += 1;
                    }
                    return if rested { Next::Rested(*action) } else { Next::Action(*action) };
                }
                Instruction::Enter { depth, times } => progress.rounds[*depth] = *times,
                Instruction::Again { depth, first } => {
                    progress.rounds[*depth] -= 1;
                    if progress.rounds[*depth] > 0 {
                        progress.at = *first;
                        continue;
                    }
                }
                Instruction::Finish { count, unit, of } => {
                    let (operations, bytes) = match of {
                        Some(of) => {
                            let sum = progress.sum(Some(of));
                            (sum.operations, sum.bytes)
                        }
                        None => program.counter.as_ref().map_or((0, 0), |counter| {
                            (counter.operations.load(Ordering::Relaxed), counter.bytes.load(Ordering::Relaxed))
                        }),
                    };
                    let enough = match unit {
                        FinishUnit::Operations => operations >= *count,
                        FinishUnit::Bytes => bytes > *count,
                    };
                    if enough {
                        return Next::End;
                    }
                }
                Instruction::Pace { number, unit, of } => {
                    let due = progress.due(*number, *unit, of.as_deref());
                    if due > 0.0 && !self.until_events(due) {
                        return Next::End;
                    }
                    rested = true;
                }
                Instruction::Pause(time) => {
                    let now = self.load.clock.now();
                    let until = now.saturating_add(self.load.clock.ticks(*time));
                    self.sleep_until(until.min(self.deadline()), now);
                    rested = true;
                }
                Instruction::Spin(times) => {
                    let mut memory = 0_u64;
                    let memory = std::hint::black_box(&mut memory);
                    for _ in 0..*times {
                        *memory = 1;
                        // Somebody might look: each is written, and nothing else is.
                        std::hint::black_box(());
                    }
                    rested = true;
                }
                Instruction::Wait { mail, posts } => {
                    let mail = &self.load.phase.mails[*mail];
                    if !mail.take(self.number, *posts, || self.patience()) {
                        return Next::End;
                    }
                    rested = true;
                }
                Instruction::Post { mails, posts, bounded } => {
                    let all = mails.iter().map(|mail| &self.load.phase.mails[*mail]);
                    for mail in all {
                        if !mail.put(*posts, *bounded, || self.patience()) {
                            return Next::End;
                        }
                    }
                    rested = true;
                }
            }
            progress.at += 1;
        }
    }

    /// How long to wait for others before the next look at whether to stop; nothing when that is now.
    fn patience(&self) -> Option<Duration> {
        if self.should_stop() {
            return None;
        }
        let clock = self.load.clock;
        Some(Duration::from_nanos(clock.between(clock.now(), self.deadline())).clamp(SHORTEST, LOOK))
    }

    /// Waits for events; `false` when told to stop, or when they would come after the end.
    fn until_events(&self, count: f64) -> bool {
        let Some(events) = &self.load.phase.events else { return true };
        let (clock, start) = (self.load.clock, self.load.start.load(Ordering::Relaxed));
        let now = clock.now();
        let at = Duration::from_nanos(clock.between(start, now));
        let until = start.saturating_add(clock.ticks(events.take(count, at)));
        self.sleep_until(until.min(self.deadline()), now) && until < self.deadline()
    }
}

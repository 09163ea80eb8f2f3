//! Which file, and which place in it, an action works on.

use super::aim::Target;
use super::attempt::{Attempt, Incomplete};
use super::picked::Picked;
use super::thread::Worker;
use crate::fileset::{Draw, Hold};
use crate::io::Io;
use crate::measure::Call;
use crate::pattern::{distribution_of, permute, positions};
use crate::plan::{Guide, PlannedAction, cursor_of, is_read_back};
use fstone_model::workload::{FileChoice, Operation, Pattern, Transfer};
use rustix::io::Errno;
use std::sync::atomic::Ordering;

/// Redraws of a busy file before a thread lets others run.
const SPINS: u32 = 64;

impl<E: Io> Worker<'_, E> {
    /// The next block of an action that is aimed, noted as touched; `None` when it has to be found the general way.
    #[inline(always)]
    pub(crate) fn aimed(&mut self, index: usize) -> Option<Target> {
        let aim = self.states[index].aim?;
        let file = aim.table.draw_free(aim.size, aim.measured, |bound| self.random.below(bound))?;
        let fd = match aim.shared {
            None => self.own.get(aim.fileset, file)?,
            Some(shared) => shared.get(file)?,
        };
        let offset = self.random.below(aim.positions) * aim.align;
        if let Some(blocks) = aim.blocks {
            blocks.touch(file, offset);
        }
        self.previous = Some((aim.fileset, file));
        let picked = Picked { fileset: aim.fileset, file, hold: Hold::Free, position: None };
        Some(Target { picked, fd, offset, length: aim.length })
    }

    #[inline(always)]
    pub(crate) fn choose(&mut self, index: usize) -> Attempt<Picked> {
        match self.group.actions[index].handle {
            None => self.choose_freely(index),
            Some(handle) => self.by_handle(index, handle),
        }
    }

    /// A file for the action, whatever its handle has.
    #[inline(always)]
    pub(super) fn choose_freely(&mut self, index: usize) -> Attempt<Picked> {
        let group = self.group;
        let action = &group.actions[index];
        let fileset = self.fileset(action);
        let hold = if self.load.phase.contended[fileset] { action.hold } else { Hold::Free };
        match action.choice {
            _ if action.guide.is_some() => self.by_guide(index, action, fileset, hold),
            FileChoice::Uniform => self.draw(fileset, hold),
            FileChoice::Rotation => self.in_rotation(fileset, hold),
            FileChoice::Same => self.same(action, hold),
            FileChoice::RoundRobin | FileChoice::Shuffled => self.in_turn(index, action, fileset, hold),
            FileChoice::Concatenated | FileChoice::Partitioned => self.in_space(index, action, fileset, hold),
        }
    }

    /// The fileset of the action: its own, or one drawn.
    #[inline(always)]
    pub(crate) fn fileset(&mut self, action: &PlannedAction) -> usize {
        match action.fileset {
            Some(fileset) => fileset,
            None => self.random.below(self.load.files.len() as u64) as usize,
        }
    }

    #[inline(always)]
    fn draw(&mut self, fileset: usize, hold: Hold) -> Attempt<Picked> {
        let table = &self.load.files[fileset].table;
        match table.draw(hold, |bound| self.random.below(bound)) {
            Draw::File(file) => Ok(Picked { fileset, file, hold, position: None }),
            Draw::Again | Draw::None => self.draw_again(fileset, hold),
        }
    }

    #[cold]
    fn draw_again(&mut self, fileset: usize, hold: Hold) -> Attempt<Picked> {
        let table = &self.load.files[fileset].table;
        self.until_free(|worker| match table.draw(hold, |bound| worker.random.below(bound)) {
            Draw::File(file) => Ok(Some(Picked { fileset, file, hold, position: None })),
            Draw::Again => Ok(None),
            Draw::None => Err(worker.no_file(fileset)),
        })
    }

    /// There is no file: the end of a walk, something that passes, or a failure.
    fn no_file(&self, fileset: usize) -> Incomplete {
        match (self.group.until_walked, self.load.phase.refilled[fileset]) {
            (true, _) => Incomplete::Exhausted,
            (false, true) => Incomplete::Missed,
            (false, false) => Incomplete::fault(Call::Choose, Errno::NOENT),
        }
    }

    /// The file of the previous action; at first, one drawn.
    fn same(&mut self, action: &PlannedAction, hold: Hold) -> Attempt<Picked> {
        let Some((fileset, file)) = self.previous else {
            let fileset = self.fileset(action);
            return self.draw(fileset, hold);
        };
        let hold = if self.load.phase.contended[fileset] { hold.max_with(action.hold) } else { Hold::Free };
        self.take(fileset, file, hold, None)
    }

    #[inline(always)]
    pub(super) fn take(&mut self, fileset: usize, file: u32, hold: Hold, position: Option<u64>) -> Attempt<Picked> {
        let table = &self.load.files[fileset].table;
        if let Draw::File(file) = table.take(file, hold) {
            return Ok(Picked { fileset, file, hold, position });
        }
        self.take_later(fileset, file, hold, position)
    }

    #[cold]
    fn take_later(&mut self, fileset: usize, file: u32, hold: Hold, position: Option<u64>) -> Attempt<Picked> {
        let table = &self.load.files[fileset].table;
        self.until_free(|_| match table.take(file, hold) {
            Draw::File(file) => Ok(Some(Picked { fileset, file, hold, position })),
            Draw::Again | Draw::None if table.is_live(file) => Ok(None),
            Draw::Again | Draw::None => Err(Incomplete::Missed),
        })
    }

    /// A file that is not the choice of an action, held so that nobody renames or removes it.
    pub(crate) fn hold_shared(&mut self, fileset: usize, file: u32) -> Attempt<Picked> {
        let hold = if self.load.phase.contended[fileset] { Hold::Shared } else { Hold::Free };
        self.take(fileset, file, hold, None)
    }

    fn in_rotation(&mut self, fileset: usize, hold: Hold) -> Attempt<Picked> {
        let files = self.files(fileset);
        self.next_from(fileset, hold, || files.next_file.fetch_add(1, Ordering::Relaxed)).map(|(picked, passed)| {
            files.next_file.fetch_add(passed, Ordering::Relaxed);
            picked
        })
    }

    #[inline(never)]
    fn by_guide(&mut self, index: usize, action: &PlannedAction, fileset: usize, hold: Hold) -> Attempt<Picked> {
        let number = match &action.guide {
            Some(Guide::Tour) => return self.by_tour(index, fileset, hold),
            Some(Guide::Numbers(numbers)) => numbers.draw(&mut self.random),
            None => 0,
        };
        // The file of a drawn number, or the next.
        self.next_from(fileset, hold, || number).map(|(picked, _)| picked)
    }

    /// The next file that exists and can be held so, and how many numbers were passed over.
    fn next_from(&mut self, fileset: usize, hold: Hold, mut from: impl FnMut() -> u64) -> Attempt<(Picked, u64)> {
        let table = &self.load.files[fileset].table;
        let mut tries = 0_u32;
        loop {
            if let Some((file, passed)) = table.take_from(from(), hold) {
                return Ok((Picked { fileset, file, hold, position: None }, passed));
            }
            if table.live() == 0 {
                return Err(Incomplete::Exhausted);
            }
            // What is open somewhere is not removed; what is just being made or removed, is not opened yet.
            if hold == Hold::Alone {
                return Err(Incomplete::Missed);
            }
            tries += 1;
            if tries.is_multiple_of(SPINS) && self.should_stop() {
                return Err(Incomplete::Stopped);
            }
            std::thread::yield_now();
        }
    }

    /// One file after the other, by a cursor that the group's threads share.
    fn in_turn(&mut self, index: usize, action: &PlannedAction, fileset: usize, hold: Hold) -> Attempt<Picked> {
        let Some(roster) = self.load.phase.rosters[fileset].as_ref().filter(|roster| roster.len() > 0) else {
            return Err(self.no_file(fileset));
        };
        loop {
            let turn = self.load.phase.count_up(&action.cursor);
            // The first round, often the only one, needs no division.
            let (round, place) =
                if turn < roster.len() { (0, turn) } else { (turn / roster.len(), turn % roster.len()) };
            if self.group.until_walked && round > 0 && !self.walks_further(action, fileset, round, roster.get(0)) {
                return Err(Incomplete::Exhausted);
            }
            let file = roster.get(match (action.choice, &action.operation) {
                (FileChoice::Shuffled, _) => permute(place, roster.len(), self.load.shuffle_seed()),
                (_, Operation::Unlink) if roster.len() == self.files(fileset).table.names() => {
                    self.files(fileset).layout.depth_first(place)
                }
                _ => place,
            });
            match self.take(fileset, file, hold, Some(round)) {
                // It was removed since the phase began: the next one, as long as any is left.
                Err(Incomplete::Missed) if self.files(fileset).table.live() == 0 => return Err(self.no_file(fileset)),
                Err(Incomplete::Missed) => self.missed(index)?,
                other => return other,
            }
        }
    }

    /// Whether a walk through files in turn still has places in this round: as many rounds as the first file has
    /// positions.
    fn walks_further(&self, action: &PlannedAction, fileset: usize, round: u64, first: u32) -> bool {
        action
            .transfer
            .as_ref()
            .filter(|transfer| cursor_of(transfer).is_some())
            .is_some_and(|transfer| round < positions(transfer, self.files(fileset).table.size(first)))
    }

    /// A place in the whole fileset seen as one, or in the thread's share of it.
    fn in_space(&mut self, index: usize, action: &PlannedAction, fileset: usize, hold: Hold) -> Attempt<Picked> {
        loop {
            match self.in_space_once(index, action, fileset, hold) {
                // Another action may still have something to read back.
                Err(Incomplete::Missed) if self.states[index].all_read => return Err(Incomplete::Missed),
                // The file was removed since the phase began: another place, as long as any file is left.
                Err(Incomplete::Missed) if self.files(fileset).table.live() > 0 => self.missed(index)?,
                Err(Incomplete::Missed) => return Err(self.no_file(fileset)),
                other => return other,
            }
        }
    }

    #[inline(always)]
    fn in_space_once(&mut self, index: usize, action: &PlannedAction, fileset: usize, hold: Hold) -> Attempt<Picked> {
        let own = action.choice == FileChoice::Partitioned;
        let transfer = action.transfer.as_ref();
        let walking = transfer.is_none_or(|transfer| distribution_of(transfer).is_none());
        let once = self.group.until_walked;
        let phase = self.load.phase;
        let roster = phase.rosters[fileset].as_ref();
        let state = &mut self.states[index];
        let space = if own { state.space.as_ref() } else { action.space.as_ref() };
        let (Some(space), Some(roster)) = (space, roster) else {
            return match transfer {
                Some(transfer) if is_read_back(transfer) => self.next_written(index, transfer, fileset, hold),
                _ => self.draw(fileset, hold),
            };
        };
        let total = space.total();
        if total == 0 {
            return Err(if once { Incomplete::Exhausted } else { Incomplete::fault(Call::Choose, Errno::NODATA) });
        }
        let shared = !own && transfer.and_then(cursor_of) != Some(false);
        let mut turn = || {
            if shared {
                return phase.count_up(&action.cursor);
            }
            state.cursor += 1;
            state.cursor - 1
        };
        // A space is of one fileset, so the action has one drawer.
        let place = if walking || once {
            let turn = turn();
            if once && turn >= total {
                return Err(Incomplete::Exhausted);
            }
            if walking { turn % total } else { state.drawers[0].draw(total, &mut self.random, || turn) }
        } else {
            state.drawers[0].draw(total, &mut self.random, turn)
        };
        let (file, inside) = space.locate(place);
        self.take(fileset, roster.get(file), hold, Some(inside))
    }

    /// The next piece that earlier phases wrote.
    #[inline(never)]
    fn next_written(&mut self, index: usize, transfer: &Transfer, fileset: usize, hold: Hold) -> Attempt<Picked> {
        let load = self.load;
        let (Pattern::Written { phases }, Some(ledger)) = (transfer.pattern, load.depot.ledger()) else {
            return Err(Incomplete::Exhausted);
        };
        let first = load.generations.len().saturating_sub(1 + phases as usize);
        let since = load.generations.get(first).copied().unwrap_or(0);
        loop {
            let place = self.states[index].file;
            let Some(roster) = load.phase.rosters[fileset].as_ref().filter(|roster| place < roster.len()) else {
                return Err(self.all_read(index));
            };
            let picked = Picked { fileset, file: roster.get(place), hold, position: None };
            let (begin, length) = self.span(&picked)?;
            let destination = self.destination(&picked, begin);
            let from = begin + self.states[index].cursor;
            let found = ledger.written(destination.file, from, begin + length, since);
            let state = &mut self.states[index];
            let Some((start, end)) = found else {
                (state.file, state.cursor) = (place + 1, 0);
                continue;
            };
            state.piece = (end - start).min(transfer.block_bytes);
            state.cursor = start - begin + state.piece;
            return self.take(fileset, picked.file, hold, Some(start - begin));
        }
    }

    /// An action has read all that was written to its files: the thread is done when all its actions have.
    fn all_read(&mut self, index: usize) -> Incomplete {
        self.states[index].all_read = true;
        let done = self.states.iter().zip(&self.group.actions);
        let done = done
            .filter(|(_, action)| action.transfer.as_ref().is_some_and(is_read_back))
            .all(|(state, _)| state.all_read);
        if done { Incomplete::Exhausted } else { Incomplete::Missed }
    }

    /// How many blocks a permutation of this file has given before, adding `blocks` to it.
    pub(crate) fn turns(&mut self, index: usize, picked: &Picked, blocks: u64) -> u64 {
        let group = self.group;
        let action = &group.actions[index];
        match action.turns.get(picked.file as usize) {
            Some(turns) => turns.fetch_add(blocks, Ordering::Relaxed),
            None => {
                let cursor = &mut self.states[index].cursor;
                *cursor += blocks;
                *cursor - blocks
            }
        }
    }

    #[inline(always)]
    pub(crate) fn drawn_block(&mut self, index: usize) -> Option<u64> {
        let group = self.group;
        let sizes = group.actions[index].blocks.as_ref()?;
        Some(sizes.draw(&mut self.random))
    }

    /// Goes on by so many bytes in files of this size; from where.
    pub(crate) fn walk_on(&mut self, index: usize, shared: bool, bytes: u64, size: u64) -> u64 {
        let next = |from: u64| if from + bytes >= size { 0 } else { from + bytes };
        // A file may be smaller than the one before.
        let within = |from: u64| if from < size { from } else { 0 };
        if shared {
            let cursor = &self.group.actions[index].cursor;
            let before = cursor
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |from| Some(next(within(from))))
                .unwrap_or_default();
            return within(before);
        }
        let cursor = &mut self.states[index].cursor;
        let from = within(*cursor);
        *cursor = next(from);
        from
    }

    /// Where the next block of a stride begins, of so many bytes in a file of this size.
    pub(crate) fn stride(&mut self, index: usize, (gap_bytes, run): (i64, u32), bytes: u64, size: u64) -> u64 {
        let last = size.saturating_sub(bytes);
        let state = &mut self.states[index];
        let mut at = state.cursor;
        if at.cast_signed() < 0 || at > last {
            // What is larger than the file is as large as it.
            at = if gap_bytes < 0 { size.saturating_sub(gap_bytes.unsigned_abs()).min(last) } else { 0 };
            state.burst = 0;
        }
        state.burst += 1;
        let mut next = at.cast_signed().saturating_add_unsigned(bytes);
        if state.burst >= run {
            (next, state.burst) = (next.saturating_add(gap_bytes), 0);
        }
        state.cursor = next.cast_unsigned();
        at
    }

    /// Where the next block of a burst begins.
    pub(crate) fn burst(&mut self, index: usize, operations: u32, align_bytes: u64, bytes: u64, size: u64) -> u64 {
        let (align, last) = (align_bytes.max(1), size.saturating_sub(bytes));
        if self.states[index].burst == 0 {
            self.states[index].burst = operations.max(1);
            self.states[index].cursor = self.random.below(last / align + 1) * align;
        }
        let state = &mut self.states[index];
        state.burst -= 1;
        // Behind the file's end it goes on at its start.
        let at = if state.cursor <= last { state.cursor } else { 0 };
        state.cursor = at.saturating_add(bytes);
        at
    }

    /// Counts a choice that has to be made again, unless the thread is to stop.
    #[cold]
    fn missed(&mut self, index: usize) -> Attempt<()> {
        self.tally.actions[index].missed += 1;
        if self.should_stop() { Err(Incomplete::Stopped) } else { Ok(()) }
    }

    /// Draws until a file is free; lets others run when that takes long.
    fn until_free(&mut self, mut attempt: impl FnMut(&mut Self) -> Attempt<Option<Picked>>) -> Attempt<Picked> {
        let mut tries = 0;
        loop {
            if let Some(picked) = attempt(self)? {
                // What was waited is not the next call's.
                self.mark = 0;
                return Ok(picked);
            }
            tries += 1;
            if tries % SPINS == 0 {
                if self.should_stop() {
                    return Err(Incomplete::Stopped);
                }
                std::thread::yield_now();
            }
        }
    }
}

//! Platters and heads: zones, seeks, rotation, a queue that the drive orders by itself, a cache that reads ahead and one that
//! acknowledges writes.
//!
//! - The drive takes `queue-depth` commands at a time (`commands`). The next is the one that the heads can begin with soonest, less a
//!   share (`ageing`) of the time that it has waited: aged shortest access time first.
//! - Commands go before what the write cache holds, unless a flush or a write without room waits for it. As long as one does, a command
//!   and an extent of the cache take turns. Of the extents next to the heads in ascending order, it is the one that they can begin with soonest.
//! - What is to be written is written once it has come over the interface. Its room in the cache is free again, sector by sector, when it is on the
//!   platters.
//! - The heads read on after a read, until they leave its track for something else or its segment is full of what the host has not read
//!   yet. With `read-on-arrival` they also read what passes before the wanted sector does. What they read is in `segments` of the read cache,
//!   of `segment-size` each: the last of it, and of the segments those that were used last. Writes have their room in the same `buffer`, and
//!   take it from segments.
//! - The host gets what it reads in order: sectors that pass before the first of them wait for that.
//! - A flush is complete when all that was acknowledged before it is on the platters, and that is written before anything later.

mod geometry;
mod writes;

use crate::commands::Commands;
use crate::model::Model;
use crate::request::{Done, Request, SECTOR_BYTES, transfer_ns};
use geometry::{Geometry, Place};
use std::collections::VecDeque;
use std::ops::Range;
use writes::Writes;

const DESTAGED_AT_ONCE: u64 = (1 << 20) / SECTOR_BYTES;

#[derive(Debug, Clone)]
struct Waiting {
    id: u64,
    since_ns: u64,
    /// When the command, and what is to be written, has come over the interface.
    there_ns: u64,
    sectors: Range<u64>,
    writes: bool,
}

#[derive(Debug)]
enum Work {
    Request(u64, Read),
    /// An extent out of the write cache, and when they begin with it.
    Destage(u64, Range<u64>),
}

/// What the host wants, what of the disk comes into the read cache with it, and when the heads have read that.
#[derive(Debug, Default)]
struct Read {
    wanted: Range<u64>,
    /// What the heads read after the read before, until they left.
    ahead: Range<u64>,
    /// What is wanted, with what passed before it; and of the same track what passed first, which comes after it.
    run: Range<u64>,
    passed: Range<u64>,
    ended_ns: u64,
    /// When the first sector that is wanted was there, how many are wanted, and how many of them had passed before the first.
    first_ns: u64,
    count: u64,
    passed_count: u64,
}

/// A part of the read cache: sectors in the order in which they passed the heads, and when they were used last. Where that order has come
/// round on a track, its beginning is in `passed`, further on than the rest.
#[derive(Debug, Clone, Default)]
struct Segment {
    sectors: Range<u64>,
    passed: Range<u64>,
    used: u64,
}

impl Segment {
    fn is_empty(&self) -> bool {
        self.sectors.is_empty() && self.passed.is_empty()
    }

    /// What was read first goes where there is no room for all of it.
    fn fit(&mut self, most: u64) {
        let Self { sectors, passed, .. } = self;
        sectors.start = sectors.start.max(sectors.end.saturating_sub(most));
        let room = most - (sectors.end - sectors.start);
        if overlap(sectors, passed) {
            passed.start = sectors.end.min(passed.end);
        }
        passed.start = passed.start.max(passed.end.saturating_sub(room));
        if touch(sectors, passed) {
            sectors.end = passed.end;
            *passed = 0..0;
        }
    }
}

fn touch(one: &Range<u64>, other: &Range<u64>) -> bool {
    !one.is_empty() && !other.is_empty() && one.start <= other.end && other.start <= one.end
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Reading ahead: the segment, where the heads will read next, and from when on they may go there.
#[derive(Debug, Clone, Copy)]
struct Ahead {
    segment: usize,
    limit: u64,
    next_ns: u64,
}

/// A drive of platters and heads.
#[derive(Debug)]
pub(crate) struct Disk {
    geometry: Geometry,
    sectors: u64,
    ageing: f64,
    command_ns: u64,
    settle_ns: u64,
    interface: f64,
    segment_sectors: u64,
    reads_on_arrival: bool,
    buffer_sectors: u64,
    cache_sectors: u64,
    write_choice: usize,
    write_back: bool,

    commands: Commands,
    place: Place,
    /// The sector that follows what the heads passed last, and whether they wrote that.
    next_sector: u64,
    have_written: bool,
    destaged_last: bool,
    /// What the heads are at, and until when.
    current: Option<(u64, Work)>,
    queue: VecDeque<Waiting>,
    /// Writes that do not fit into the cache yet.
    blocked: VecDeque<Waiting>,
    /// When the first of them has room, if that is while the heads are at an extent.
    room_ns: Option<u64>,
    writes: Writes,
    /// What was written before each, and when it came.
    flushes: VecDeque<(u64, u64, u64)>,
    segments: Vec<Segment>,
    uses: u64,
    ahead: Option<Ahead>,
    interface_free_ns: u64,
    /// When idle heads have something to do that is on its way now.
    wake_ns: Option<u64>,
    done: Done,
}

impl Disk {
    pub(crate) fn new(model: &Model, capacity_bytes: u64) -> Self {
        Self {
            geometry: Geometry::new(model, capacity_bytes),
            sectors: capacity_bytes / SECTOR_BYTES,
            ageing: model.number("ageing"),
            command_ns: model.whole("command-time"),
            settle_ns: model.whole("write-settle"),
            interface: model.number("interface-rate"),
            segment_sectors: model.whole("segment-size") / SECTOR_BYTES,
            reads_on_arrival: model.number("read-on-arrival") > 0.5,
            buffer_sectors: model.whole("buffer") / SECTOR_BYTES,
            cache_sectors: model.whole("write-cache") / SECTOR_BYTES,
            write_choice: model.whole("write-choice") as usize,
            write_back: true,
            commands: Commands::new(model.whole("queue-depth") as usize, model.number("queued-flush") > 0.5),
            place: Geometry::START,
            next_sector: 0,
            have_written: false,
            destaged_last: false,
            current: None,
            queue: VecDeque::new(),
            blocked: VecDeque::new(),
            room_ns: None,
            writes: Writes::default(),
            flushes: VecDeque::new(),
            segments: vec![Segment::default(); model.whole("segments") as usize],
            uses: 0,
            ahead: None,
            interface_free_ns: 0,
            wake_ns: None,
            done: Done::default(),
        }
    }

    /// Without a cache, a write is acknowledged when it is on the medium.
    pub(crate) const fn is_durable(&self) -> bool {
        self.cache_sectors == 0
    }

    pub(crate) const fn set_write_back(&mut self, write_back: bool) {
        self.write_back = write_back;
    }

    pub(crate) fn submit(&mut self, now_ns: u64, id: u64, request: &Request) {
        self.catch_up(now_ns);
        if *request == Request::Free {
            return self.done.push(now_ns, id);
        }
        self.commands.arrive(id, request.clone());
        self.take(now_ns);
    }

    fn take(&mut self, now_ns: u64) {
        while let Some((id, request)) = self.commands.take() {
            self.begin(now_ns, id, &request);
            self.start(now_ns);
        }
    }

    fn begin(&mut self, now_ns: u64, id: u64, request: &Request) {
        match request {
            Request::Free => self.end(now_ns, id),
            Request::Flush => {
                if self.writes.is_empty() && !self.is_destaging() {
                    self.end(now_ns + self.command_ns, id);
                } else {
                    self.flushes.push_back((id, self.writes.newest(), now_ns));
                }
            }
            Request::Read(sectors) => self.read(now_ns, id, sectors),
            Request::Write(sectors) => {
                self.forget(sectors);
                let mut waiting =
                    Waiting { id, since_ns: now_ns, there_ns: now_ns, sectors: sectors.clone(), writes: true };
                if self.write_back && self.cache_sectors > 0 {
                    self.blocked.push_back(waiting);
                    self.unblock(now_ns);
                } else {
                    waiting.there_ns = self.transfer(now_ns + self.command_ns, sectors);
                    self.queue.push_back(waiting);
                }
            }
            // Platters cannot forget: zeros are written, but none come over the interface, and none are kept in the cache.
            Request::Unmap(sectors) | Request::Zero(sectors) => {
                self.forget(sectors);
                let there_ns = now_ns + self.command_ns;
                let sectors = sectors.clone();
                self.queue.push_back(Waiting { id, since_ns: now_ns, there_ns, sectors, writes: true });
            }
        }
    }

    fn end(&mut self, at_ns: u64, id: u64) {
        self.done.push(at_ns, id);
        self.commands.ends_at(at_ns);
    }

    pub(crate) fn next_event(&self) -> Option<u64> {
        self.heads_event().into_iter().chain(self.room_ns).chain(self.done.next()).min()
    }

    fn heads_event(&self) -> Option<u64> {
        self.current.as_ref().map(|(end, _)| *end).or(self.wake_ns)
    }

    pub(crate) fn completed(&mut self, now_ns: u64) -> Option<(u64, u64)> {
        self.catch_up(now_ns);
        self.done.pop(now_ns)
    }

    fn catch_up(&mut self, now_ns: u64) {
        loop {
            let heads = self.heads_event();
            let next = heads.into_iter().chain(self.room_ns).chain(self.commands.next_end()).min();
            let Some(at_ns) = next.filter(|at_ns| *at_ns <= now_ns) else { return };
            if heads != Some(at_ns) {
                if self.room_ns == Some(at_ns) {
                    self.unblock(at_ns);
                    continue;
                }
                self.commands.end();
                self.take(at_ns);
                continue;
            }
            match self.current.take() {
                Some((_, Work::Request(id, read))) => {
                    let sent_ns = self.send_rest(at_ns, &read);
                    self.end(sent_ns, id);
                    let Read { wanted, ahead, run, passed, ended_ns, .. } = read;
                    self.keep(ahead, 0..0);
                    let segment = self.keep(run, passed);
                    // After a write they stay where they are.
                    if let Some(segment) = segment.filter(|_| !wanted.is_empty()) {
                        self.follow(segment, &wanted, ended_ns);
                    }
                }
                Some((_, Work::Destage(..))) => {
                    self.unblock(at_ns);
                    self.end_flushes(at_ns);
                }
                None => self.wake_ns = None,
            }
            self.start(at_ns);
        }
    }

    fn is_destaging(&self) -> bool {
        self.destaging().is_some()
    }

    /// The extent that the heads are writing out of the cache, and when they begin with it.
    fn destaging(&self) -> Option<(u64, &Range<u64>)> {
        match &self.current {
            Some((_, Work::Destage(begin_ns, extent))) => Some((*begin_ns, extent)),
            _ => None,
        }
    }

    /// Over the interface from some time on, after what is under way there.
    fn transfer(&mut self, from_ns: u64, sectors: &Range<u64>) -> u64 {
        let bytes = (sectors.end - sectors.start) * SECTOR_BYTES;
        self.interface_free_ns = self.interface_free_ns.max(from_ns) + transfer_ns(bytes, self.interface);
        self.interface_free_ns
    }

    /// When the host has all of what the heads have read by now. It gets that in order, so some of it may not have come over the interface.
    fn send_rest(&mut self, now_ns: u64, read: &Read) -> u64 {
        let [all, passed] =
            [read.count, read.passed_count].map(|count| transfer_ns(count * SECTOR_BYTES, self.interface));
        let left_ns = passed.max(all.saturating_sub(now_ns - read.first_ns));
        if left_ns == 0 {
            return now_ns;
        }
        self.interface_free_ns = self.interface_free_ns.max(now_ns) + left_ns;
        self.interface_free_ns
    }

    fn read(&mut self, now_ns: u64, id: u64, sectors: &Range<u64>) {
        self.read_on(now_ns);
        let there_ns = now_ns + self.command_ns;
        if self.is_to_be_written(sectors) {
            let at_ns = self.transfer(there_ns, sectors);
            return self.end(at_ns, id);
        }
        let waiting = Waiting { id, since_ns: now_ns, there_ns, sectors: sectors.clone(), writes: false };
        match self.segment_with(sectors) {
            Some(segment) => self.serve_from_cache(now_ns, segment, &waiting),
            None => self.queue.push_back(waiting),
        }
    }

    fn segment_with(&self, sectors: &Range<u64>) -> Option<usize> {
        let holds = |all: &Range<u64>| all.start <= sectors.start && sectors.end <= all.end;
        self.segments.iter().position(|one| holds(&one.sectors) || holds(&one.passed))
    }

    fn serve_from_cache(&mut self, now_ns: u64, segment: usize, request: &Waiting) {
        let at_ns = self.transfer(now_ns.max(request.there_ns), &request.sectors);
        self.end(at_ns, request.id);
        self.uses += 1;
        self.segments[segment].used = self.uses;
        self.make_room(segment, &request.sectors, now_ns);
    }

    /// Whether all of these sectors are in the write cache, or the heads are writing them out of it.
    fn is_to_be_written(&self, sectors: &Range<u64>) -> bool {
        let extent = self.destaging().map_or(&(0..0), |(_, extent)| extent);
        let rest = [sectors.start..sectors.end.min(extent.start), sectors.start.max(extent.end)..sectors.end];
        rest.iter().all(|part| part.is_empty() || self.writes.holds(part))
    }

    /// Reads on up to a moment.
    fn read_on(&mut self, now_ns: u64) {
        let Some((read, at_ns, place)) = self.read_by(now_ns) else { return };
        let Some(ahead) = &mut self.ahead else { return };
        ahead.next_ns = at_ns;
        let segment = &mut self.segments[ahead.segment];
        segment.sectors.end = read.end;
        segment.fit(self.segment_sectors);
        (self.place, self.next_sector, self.have_written) = (place, read.end, false);
    }

    /// What heads that read on have read by a moment, when the last of that was over, and where they are.
    fn read_by(&self, now_ns: u64) -> Option<(Range<u64>, u64, Place)> {
        let ahead = self.ahead?;
        let from = self.segments[ahead.segment].sectors.end;
        if now_ns <= ahead.next_ns || from >= ahead.limit {
            return None;
        }
        // The next sector may be on another track, or come round once more only.
        let begin_ns = self.geometry.arrival_ns(ahead.next_ns, self.place, from, 0);
        if now_ns <= begin_ns {
            return None;
        }
        let (end, at_ns, place) = self.geometry.run(from, ahead.limit, begin_ns, now_ns);
        Some((from..end, at_ns, place))
    }

    /// Goes on after what was read last, which is in this segment.
    fn follow(&mut self, segment: usize, wanted: &Range<u64>, at_ns: u64) {
        let limit = self.full_at(wanted);
        self.ahead = Some(Ahead { segment, limit, next_ns: at_ns });
    }

    /// Where reading ahead stops: the segment keeps what the host wanted last, but for at least half of it.
    fn full_at(&self, wanted: &Range<u64>) -> u64 {
        let kept = wanted.start.max(wanted.end.saturating_sub(self.segment_sectors / 2));
        (kept + self.segment_sectors).min(self.sectors)
    }

    /// The host has read something else of a segment: there is room for as much after that. Heads that had stopped wait for the
    /// place to come round.
    fn make_room(&mut self, index: usize, wanted: &Range<u64>, now_ns: u64) {
        let limit = self.full_at(wanted);
        let next = self.segments[index].sectors.end;
        let Some(ahead) = self.ahead.as_mut().filter(|ahead| ahead.segment == index && ahead.limit < limit) else {
            return;
        };
        if next >= ahead.limit && self.current.is_none() {
            ahead.next_ns = now_ns;
        }
        ahead.limit = limit;
    }

    /// The first request that the heads come by anyway, when its command is there at the latest: its place in the queue.
    fn in_stream(&self) -> Option<usize> {
        let ahead = self.ahead?;
        let segment = &self.segments[ahead.segment].sectors;
        let is_next = |waiting: &Waiting| {
            let from = waiting.sectors.start;
            !waiting.writes
                && from >= segment.start
                && (segment.end < ahead.limit || waiting.sectors.end <= segment.end)
                && (from <= segment.end || self.read_by(waiting.there_ns).is_some_and(|(read, ..)| from <= read.end))
        };
        self.queue.iter().position(is_next)
    }

    /// Puts into the read cache what was read, together with what it touches, or else in place of what was not used for the longest time.
    /// Gives the segment.
    fn keep(&mut self, read: Range<u64>, mut passed: Range<u64>) -> Option<usize> {
        if read.is_empty() {
            return if passed.is_empty() { None } else { self.keep(passed, 0..0) };
        }
        let union = |one: &Range<u64>, other: &Range<u64>| one.start.min(other.start)..one.end.max(other.end);
        let mut all = read.clone();
        let mut segment = None;
        for (index, one) in self.segments.iter_mut().enumerate() {
            if touch(&one.sectors, &all) {
                all = union(&all, &one.sectors);
                if passed.is_empty() {
                    passed = one.passed.clone();
                }
            } else if touch(&one.sectors, &passed) {
                passed = union(&passed, &one.sectors);
            } else {
                if touch(&one.passed, &all) {
                    all = union(&all, &std::mem::take(&mut one.passed));
                }
                continue;
            }
            *one = Segment::default();
            segment = Some(index);
        }
        let segment = segment.unwrap_or_else(|| self.unused_segment());
        let start = all.start.max(read.end.saturating_sub(self.segment_sectors));
        self.uses += 1;
        let sectors = start..all.end.min(start + self.segment_sectors);
        let mut kept = Segment { sectors, passed, used: self.uses };
        kept.fit(self.segment_sectors);
        self.segments[segment] = kept;
        Some(segment)
    }

    /// The segment for something new: one that is empty if the buffer has room for it, or that which was not used for the longest time.
    fn unused_segment(&self) -> usize {
        let in_use = self.segments.iter().filter(|one| !one.is_empty()).count();
        let may_be_empty = in_use < self.segments_with_room();
        let all = self.segments.iter().enumerate().filter(|(_, one)| may_be_empty || !one.is_empty());
        all.min_by_key(|(_, one)| (!one.is_empty(), one.used)).map_or(0, |(index, _)| index)
    }

    /// For how many segments the buffer has room beside what is to be written. The heads always have one.
    fn segments_with_room(&self) -> usize {
        let room = self.buffer_sectors.saturating_sub(self.held_sectors()).checked_div(self.segment_sectors);
        (room.unwrap_or(u64::MAX) as usize).clamp(1, self.segments.len())
    }

    /// Writes take the room of segments that were not used for the longest time.
    fn give_up_segments(&mut self) {
        let ahead = self.ahead.map(|ahead| ahead.segment);
        let mut in_use: Vec<usize> =
            (0..self.segments.len()).filter(|index| !self.segments[*index].is_empty()).collect();
        let too_many = in_use.len().saturating_sub(self.segments_with_room());
        in_use.sort_by_key(|index| (ahead == Some(*index), self.segments[*index].used));
        for index in in_use.into_iter().take(too_many) {
            self.segments[index] = Segment::default();
        }
    }

    /// What is written is not read from an older copy.
    fn forget(&mut self, sectors: &Range<u64>) {
        for segment in &mut self.segments {
            if overlap(&segment.sectors, sectors) {
                segment.sectors = segment.sectors.end..segment.sectors.end;
            }
            if overlap(&segment.passed, sectors) {
                segment.passed = 0..0;
            }
        }
        if let Some((_, Work::Request(_, read))) = &mut self.current {
            for one in [&mut read.wanted, &mut read.ahead, &mut read.passed] {
                if overlap(one, sectors) {
                    *one = 0..0;
                }
            }
            if overlap(&read.run, sectors) {
                read.run.start = sectors.end.min(read.run.end);
            }
        }
    }

    fn unblock(&mut self, now_ns: u64) {
        self.room_ns = None;
        while let Some(first) = self.blocked.front() {
            let room_ns = self.room_for_ns(first.sectors.end - first.sectors.start);
            if room_ns.is_none_or(|room_ns| room_ns > now_ns) {
                self.room_ns = room_ns;
                return;
            }
            let Some(first) = self.blocked.pop_front() else { return };
            let at_ns = self.receive(now_ns, &first);
            self.writes.add(first.sectors, at_ns);
            self.give_up_segments();
            self.end(at_ns, first.id);
        }
    }

    /// When all of a write that has room from now on is in the cache. It came over the interface as fast as there was room for it: what is left is
    /// its last sector, or as much as the cache does not hold.
    fn receive(&mut self, now_ns: u64, write: &Waiting) -> u64 {
        let left = (write.sectors.end - write.sectors.start).saturating_sub(self.cache_sectors).max(1);
        let moved_ns = self.transfer(write.since_ns + self.command_ns, &write.sectors);
        self.interface_free_ns = moved_ns.max(now_ns + transfer_ns(left * SECTOR_BYTES, self.interface));
        self.interface_free_ns
    }

    /// When the cache has room for so many sectors more, if it has now or as soon as enough of the extent that the heads are at is written.
    fn room_for_ns(&self, count: u64) -> Option<u64> {
        let (begin_ns, extent) = self.destaging().unwrap_or((0, &(0..0)));
        // What is larger than the cache has it for itself.
        let too_many = self.held_sectors().saturating_sub(self.cache_sectors.saturating_sub(count));
        if too_many == 0 {
            return Some(0);
        }
        let last = extent.start + too_many;
        (last <= extent.end).then(|| self.geometry.run(extent.start, last, begin_ns, u64::MAX).1)
    }

    /// What is to be written, or is being written.
    fn held_sectors(&self) -> u64 {
        self.writes.sectors() + self.destaging().map_or(0, |(_, extent)| extent.end - extent.start)
    }

    fn end_flushes(&mut self, now_ns: u64) {
        while let Some(&(id, up_to, since_ns)) = self.flushes.front() {
            if self.writes.oldest().is_some_and(|oldest| oldest <= up_to) {
                return;
            }
            self.flushes.pop_front();
            self.end(now_ns.max(since_ns + self.command_ns), id);
        }
    }

    /// What of a positioning time counts when its request has waited since some time.
    fn aged(&self, begin_ns: u64, now_ns: u64, since_ns: u64) -> i64 {
        (begin_ns - now_ns) as i64 - (now_ns.saturating_sub(since_ns) as f64 * self.ageing).round() as i64
    }

    fn start(&mut self, now_ns: u64) {
        if self.current.is_some() {
            return;
        }
        self.wake_ns = None;
        self.read_on(now_ns);
        for request in std::mem::take(&mut self.queue) {
            match self.segment_with(&request.sectors).filter(|_| !request.writes) {
                Some(segment) => self.serve_from_cache(now_ns, segment, &request),
                None => self.queue.push_back(request),
            }
        }
        if self.is_turn_of_the_cache()
            && let Some((begin_ns, extent)) = self.next_extent(now_ns)
        {
            return self.destage(now_ns, begin_ns, extent);
        }
        let Some((index, begin_ns)) = self.next_request(now_ns) else {
            self.wake_ns = self.writes.next_ns(now_ns);
            return;
        };
        let Some(request) = self.queue.remove(index) else { return };
        match begin_ns {
            Some(begin_ns) => self.serve(now_ns, begin_ns, &request),
            None => self.serve_from_stream(&request),
        }
    }

    fn is_turn_of_the_cache(&self) -> bool {
        let is_waited_for = !(self.blocked.is_empty() && self.flushes.is_empty());
        self.queue.is_empty() || (is_waited_for && !self.destaged_last)
    }

    /// The extent of the write cache that is written next, and when that can begin.
    fn next_extent(&self, now_ns: u64) -> Option<(u64, Range<u64>)> {
        // A flush has what it waits for written first: new writes could go on for ever.
        let up_to = self.flushes.front().map_or(u64::MAX, |(_, up_to, _)| *up_to);
        let near = self.writes.near(self.next_sector, self.write_choice, DESTAGED_AT_ONCE, up_to, now_ns).into_iter();
        let begun = near.map(|sectors| (self.begin_ns(now_ns, &sectors, true), sectors));
        begun.min_by_key(|(begin_ns, sectors)| (*begin_ns, sectors.start))
    }

    /// The command that is next: its place in the queue, and when the heads can begin with it, if they do not come by it anyway.
    fn next_request(&self, now_ns: u64) -> Option<(usize, Option<u64>)> {
        let stream = self.in_stream();
        let stands = self.queue.iter().enumerate().map(|(index, one)| {
            let in_stream = stream == Some(index);
            let begin_ns =
                if in_stream { now_ns } else { self.begin_ns(now_ns.max(one.there_ns), &one.sectors, one.writes) };
            (self.aged(begin_ns, now_ns, one.since_ns), index, (!in_stream).then_some(begin_ns))
        });
        stands.min().map(|(_, index, begin_ns)| (index, begin_ns))
    }

    fn begin_ns(&self, ready_ns: u64, sectors: &Range<u64>, writes: bool) -> u64 {
        // Heads that write on where they are have settled.
        let settle =
            if writes && !(self.have_written && sectors.start == self.next_sector) { self.settle_ns } else { 0 };
        self.geometry.arrival_ns(ready_ns, self.place, sectors.start, settle)
    }

    fn destage(&mut self, now_ns: u64, begin_ns: u64, extent: Range<u64>) {
        self.ahead = None;
        let (end, end_ns, place) = self.geometry.run(extent.start, extent.end, begin_ns, u64::MAX);
        self.writes.take(&extent);
        self.at(place, end, true);
        self.destaged_last = true;
        self.current = Some((end_ns, Work::Destage(begin_ns, extent)));
        self.unblock(now_ns);
    }

    fn at(&mut self, place: Place, next_sector: u64, have_written: bool) {
        (self.place, self.next_sector, self.have_written) = (place, next_sector, have_written);
        self.destaged_last = false;
    }

    fn serve(&mut self, now_ns: u64, begin_ns: u64, request: &Waiting) {
        let Range { start, mut end } = request.sectors;
        let leave_ns = now_ns.max(request.there_ns);
        let on_arrival = self.reads_on_arrival && !request.writes;
        let mut from_ns = leave_ns + self.geometry.seek_to_ns(self.place, start);
        let mut read = Read { first_ns: begin_ns, ..Read::default() };
        if let Some((ahead, ..)) = self.read_by(leave_ns) {
            read.ahead = ahead;
        }
        // Heads that stay on the track read on.
        let ahead = self.ahead.take().filter(|ahead| self.segments[ahead.segment].sectors.end < ahead.limit);
        if let Some(ahead) = ahead.filter(|_| on_arrival && self.geometry.is_on_track(self.place, start)) {
            read.ahead = 0..0;
            from_ns = ahead.next_ns;
        }
        if !request.writes {
            read.wanted = request.sectors.clone();
            read.run = request.sectors.clone();
            read.count = end - start;
        }
        if on_arrival {
            let [after, before] = self.geometry.passed(from_ns, begin_ns, start);
            // The end of what is wanted may pass before its beginning.
            if after.start < end && end <= after.end {
                end = after.start.max(start);
                read.passed_count = request.sectors.end - end;
            }
            read.passed = after.start..after.end.min(self.sectors);
            read.run.start = before.start;
        }
        let (end, end_ns, place) = self.geometry.run(start, end, begin_ns, u64::MAX);
        self.at(place, end, request.writes);
        read.ended_ns = end_ns;
        self.current = Some((end_ns, Work::Request(request.id, read)));
    }

    fn serve_from_stream(&mut self, request: &Waiting) {
        let Some(ahead) = self.ahead.take() else { return };
        let from = self.segments[ahead.segment].sectors.end;
        let begin_ns = self.geometry.arrival_ns(ahead.next_ns, self.place, from, 0);
        let (end, ended_ns, place) = self.geometry.run(from, request.sectors.end, begin_ns, u64::MAX);
        self.at(place, end, false);
        let wanted = request.sectors.clone();
        let first_ns =
            if wanted.start <= from { 0 } else { self.geometry.run(from, wanted.start, begin_ns, u64::MAX).1 };
        let (first_ns, count) = (first_ns.max(request.there_ns), wanted.end - wanted.start);
        let read = Read { wanted, run: from..end, ended_ns, first_ns, count, ..Read::default() };
        self.current = Some((ended_ns.max(request.there_ns), Work::Request(request.id, read)));
    }
}

#[cfg(test)]
mod tests;

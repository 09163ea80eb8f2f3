//! Flash: channels and dies, pages that are read and programmed, blocks that are erased, a buffer for writes, and the collection of
//! garbage as it is once the drive has been written over often enough.
//!
//! - The drive takes `queue-depth` commands at a time (`commands`), and a flush alone unless it is `queued-flush`.
//! - Addresses are striped over the dies page by page. A die does one thing at a time (`die`): a read waits for what is under way, and
//!   goes before all that is not begun. Channels and the interface move one page at a time,
//!   in the order in which there is something to move. An interface that is `full-duplex` does so in each direction.
//! - A die holds the page that it sensed last: requests for parts of it that follow each other sense it once. What is in the write buffer
//!   is read from there.
//! - Writes gather in the buffer to whole pages, which go to one die after the other, but for those that are busy. They are acknowledged when they are in the
//!   buffer, and wait for room in it.
//! - In the steady state each page written at random makes room by moving others: with spare flash ρ a greedy collector writes
//!   (1 + ρ) / 2ρ pages for one (Agarwal and Marrow, "A closed-form expression for write amplification in NAND flash", 2010). Its die
//!   is busy with that after the page. What is written in sequence is overwritten in sequence, and moves nothing.
//! - Of the dies, `writing-dies` program, move and erase at the same time: power and controller allow no more. The controller takes a command
//!   each `controller-time`.
//! - A flush programs what is in the buffer, unless that survives a loss of power.

mod buffer;
mod die;
mod lane;

use crate::commands::Commands;
use crate::model::Model;
use crate::request::{Done, Request, SECTOR_BYTES, transfer_ns};
use buffer::Buffer;
use die::{Die, Work};
use lane::Lane;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;

const STREAMS: usize = 16;

/// Which of some things is free first, without a look at all of them. Each has one entry, with a time that is no later than the true one:
/// those times only grow.
#[derive(Debug)]
struct Soonest(BinaryHeap<Reverse<(u64, usize)>>);

impl Soonest {
    fn of(count: usize) -> Self {
        Self((0..count).map(|index| Reverse((0, index))).collect())
    }

    fn first(&mut self, free_ns: impl Fn(usize) -> u64) -> usize {
        while let Some(mut top) = self.0.peek_mut() {
            let Reverse((was_ns, index)) = *top;
            let is_ns = free_ns(index);
            if is_ns == was_ns {
                return index;
            }
            *top = Reverse((is_ns, index));
        }
        0
    }
}

#[derive(Debug)]
pub(crate) struct Ssd {
    page_sectors: u64,
    pages_per_block: f64,
    read_ns: u64,
    program_ns: u64,
    erase_ns: u64,
    command_ns: u64,
    controller_ns: u64,
    channel: f64,
    interface: f64,
    buffer_bytes: u64,
    durable: bool,
    amplification: f64,
    write_back: bool,

    commands: Commands,
    now_ns: u64,
    /// When the controller takes the next command.
    controller_free_ns: u64,
    dies: Vec<Die>,
    soonest_die: Soonest,
    /// Of the places of dies that write at a time, when each is free.
    places: Vec<u64>,
    soonest_place: Soonest,
    channels: Vec<Lane>,
    /// Of each die, pages that are to be moved and are not a whole one yet.
    to_move: Vec<f64>,
    /// Of each die, pages programmed since its last erasure. They do not erase all at once.
    programmed: Vec<f64>,
    /// To the host and from it: the same one for both, unless each direction has its own.
    lanes: [Lane; 2],
    full_duplex: bool,
    streams: VecDeque<u64>,
    /// Bytes of the page that gathers, and those of them that were written at random.
    open_bytes: u64,
    open_random: u64,
    next_die: usize,
    /// When pages in the buffer will be programmed, by which die, and their bytes.
    programming: BTreeMap<(u64, usize), u64>,
    buffer: Buffer,
    buffered: u64,
    last_programmed_ns: u64,
    /// When the last write was given room: none that comes later is given any before.
    room_ns: u64,
    done: Done,
}

impl Ssd {
    pub(crate) fn new(model: &Model) -> Self {
        let spare = model.number("over-provisioning");
        let [dies, channels, places] = ["dies", "channels", "writing-dies"].map(|name| model.whole(name) as usize);
        Self {
            page_sectors: (model.whole("page") / SECTOR_BYTES).max(1),
            pages_per_block: model.number("pages-per-block"),
            read_ns: model.whole("read-time"),
            program_ns: model.whole("program-time"),
            erase_ns: model.whole("erase-time"),
            command_ns: model.whole("command-time"),
            controller_ns: model.whole("controller-time"),
            channel: model.number("channel-rate"),
            interface: model.number("interface-rate"),
            buffer_bytes: model.whole("write-buffer"),
            durable: model.number("buffer-is-durable") > 0.5,
            amplification: ((1.0 + spare) / (2.0 * spare)).max(1.0),
            write_back: true,
            commands: Commands::new(model.whole("queue-depth") as usize, model.number("queued-flush") > 0.5),
            now_ns: 0,
            controller_free_ns: 0,
            dies: vec![Die::default(); dies],
            soonest_die: Soonest::of(dies),
            places: vec![0; places],
            soonest_place: Soonest::of(places),
            channels: (0..channels).map(|_| Lane::default()).collect(),
            to_move: vec![0.0; dies],
            programmed: (0..dies).map(|die| model.number("pages-per-block") * die as f64 / dies as f64).collect(),
            lanes: Default::default(),
            full_duplex: model.number("full-duplex") > 0.5,
            streams: VecDeque::new(),
            open_bytes: 0,
            open_random: 0,
            next_die: 0,
            programming: BTreeMap::new(),
            buffer: Buffer::default(),
            buffered: 0,
            last_programmed_ns: 0,
            room_ns: 0,
            done: Done::default(),
        }
    }

    pub(crate) const fn is_durable(&self) -> bool {
        self.durable
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

    pub(crate) fn next_event(&self) -> Option<u64> {
        self.done.next()
    }

    pub(crate) fn completed(&mut self, now_ns: u64) -> Option<(u64, u64)> {
        self.catch_up(now_ns);
        self.done.pop(now_ns)
    }

    fn catch_up(&mut self, now_ns: u64) {
        while let Some(at_ns) = self.commands.next_end().filter(|at_ns| *at_ns <= now_ns) {
            self.commands.end();
            self.take(at_ns);
        }
    }

    fn take(&mut self, now_ns: u64) {
        while let Some((id, request)) = self.commands.take() {
            let at_ns = self.end_of(now_ns, &request);
            self.done.push(at_ns, id);
            self.commands.ends_at(at_ns);
        }
    }

    fn end_of(&mut self, now_ns: u64, request: &Request) -> u64 {
        self.now_ns = now_ns;
        if *request == Request::Free {
            return now_ns;
        }
        let begin_ns = now_ns.max(self.controller_free_ns);
        self.controller_free_ns = begin_ns + self.controller_ns;
        let ready = begin_ns + self.command_ns;
        match request {
            Request::Free => ready,
            Request::Read(sectors) => self.read(ready, sectors),
            Request::Write(sectors) | Request::Zero(sectors) => {
                let from_host = matches!(request, Request::Write(_));
                let taken = self.write(ready, sectors, from_host);
                if self.write_back || self.durable { taken } else { self.flush(taken) }
            }
            // Of a table in the controller's memory.
            Request::Unmap(_) => ready,
            Request::Flush if self.durable => ready,
            Request::Flush => self.flush(ready),
        }
    }

    /// Over the interface, to the host.
    fn send(&mut self, ready_ns: u64, bytes: u64) -> u64 {
        self.lanes[0].book(self.now_ns, ready_ns, transfer_ns(bytes, self.interface))
    }

    /// Over the interface, from the host.
    fn receive(&mut self, ready_ns: u64, bytes: u64) -> u64 {
        let lane = usize::from(self.full_duplex);
        self.lanes[lane].book(self.now_ns, ready_ns, transfer_ns(bytes, self.interface))
    }

    fn over_channel(&mut self, die: usize, from_ns: u64, bytes: u64) -> u64 {
        let channels = self.channels.len();
        self.channels[die % channels].book(self.now_ns, from_ns, transfer_ns(bytes, self.channel))
    }

    fn die_of(&self, page: u64) -> usize {
        (page % self.dies.len() as u64) as usize
    }

    /// Page by page: each goes over the interface as soon as it is there.
    fn read(&mut self, ready_ns: u64, sectors: &Range<u64>) -> u64 {
        let mut last = ready_ns;
        let mut at = sectors.start;
        while at < sectors.end {
            let page = at / self.page_sectors;
            let end = ((page + 1) * self.page_sectors).min(sectors.end);
            let bytes = (end - at) * SECTOR_BYTES;
            let there = if self.buffer.holds(ready_ns, &(at..end)) {
                ready_ns
            } else {
                let die = self.die_of(page);
                let sensed = self.sense(die, page, ready_ns);
                self.over_channel(die, sensed, bytes)
            };
            last = last.max(self.send(there, bytes));
            at = end;
        }
        last
    }

    fn sense(&mut self, die: usize, page: u64, ready_ns: u64) -> u64 {
        let mut put_off = Vec::new();
        let sensed_ns = self.dies[die].sense(page, ready_ns, self.read_ns, |was_ns, one| put_off.push((was_ns, one)));
        // Backwards: one may end when the next was to end.
        for (was_ns, one) in put_off.into_iter().rev() {
            // What is to write there next is booked already, but those after it begin later.
            if let Some(place) = one.place {
                self.places[place] += one.end_ns - was_ns;
            }
            if one.work == Work::Program {
                // The room of some is given away already.
                if let Some(bytes) = self.programming.remove(&(was_ns, die)) {
                    self.programming.insert((one.end_ns, die), bytes);
                }
                self.last_programmed_ns = self.last_programmed_ns.max(one.end_ns);
            }
        }
        sensed_ns
    }

    fn continues(&mut self, sectors: &Range<u64>) -> bool {
        let continued = self.streams.iter().position(|end| *end == sectors.start);
        if let Some(index) = continued {
            self.streams.remove(index);
        }
        self.streams.push_back(sectors.end);
        if self.streams.len() > STREAMS {
            self.streams.pop_front();
        }
        continued.is_some()
    }

    /// Into the buffer, piece by piece as there is room. Gives when the last is there. Zeros that the host asks for do not come from it,
    /// and are in sequence: nobody zeroes pages here and there.
    fn write(&mut self, ready_ns: u64, sectors: &Range<u64>, from_host: bool) -> u64 {
        let random = from_host && !self.continues(sectors);
        // What a die holds of it is old.
        for page in sectors.start / self.page_sectors..sectors.end.div_ceil(self.page_sectors) {
            let die = self.die_of(page);
            self.dies[die].forget(page);
        }
        let page_bytes = self.page_sectors * SECTOR_BYTES;
        let mut left = (sectors.end - sectors.start) * SECTOR_BYTES;
        let mut now = ready_ns;
        while left > 0 {
            let piece = left.min(page_bytes - self.open_bytes);
            let room = self.room_ns(now, piece);
            now = if from_host { self.receive(room, piece) } else { room };
            let at = sectors.end - left / SECTOR_BYTES;
            self.buffer.add(self.now_ns, at..at + piece / SECTOR_BYTES);
            self.buffered += piece;
            self.open_bytes += piece;
            self.open_random += if random { piece } else { 0 };
            if self.open_bytes == page_bytes {
                self.program(now);
            }
            left -= piece;
        }
        now
    }

    fn room_ns(&mut self, from_ns: u64, bytes: u64) -> u64 {
        let mut now = from_ns.max(self.room_ns);
        while let Some((&(at_ns, _), &programmed)) = self.programming.first_key_value() {
            if at_ns > now && self.buffered + bytes <= self.buffer_bytes {
                break;
            }
            self.programming.pop_first();
            self.buffered -= programmed;
            now = now.max(at_ns);
        }
        self.room_ns = now;
        now
    }

    fn program(&mut self, now_ns: u64) {
        let (bytes, random) = (self.open_bytes, self.open_random);
        (self.open_bytes, self.open_random) = (0, 0);
        // One after the other, but for those that are busy.
        let (dies, count) = (&self.dies, self.dies.len());
        let soonest = self.soonest_die.first(|die| dies[die].free_ns());
        let mut in_turn = (self.next_die..self.next_die + count).map(|die| die % count);
        let die = if dies[soonest].free_ns() > now_ns {
            soonest
        } else {
            in_turn.find(|die| dies[*die].free_ns() <= now_ns).unwrap_or(soonest)
        };
        self.next_die = die + 1;
        let there = self.over_channel(die, now_ns, self.page_sectors * SECTOR_BYTES);
        let one = &mut self.dies[die];
        one.pass(self.now_ns);
        let place = self.soonest_place.first(|place| self.places[place]);
        let end = one.append(Work::Program, there.max(self.places[place]), self.program_ns);
        let mut last_ns = end;
        // Pages are moved within the die, whole ones.
        let page_bytes = self.page_sectors * SECTOR_BYTES;
        let moved = (self.amplification - 1.0) * random as f64 / page_bytes as f64;
        self.to_move[die] += moved;
        while self.to_move[die] >= 1.0 {
            self.to_move[die] -= 1.0;
            one.append(Work::Collect, end, self.read_ns);
            last_ns = one.append(Work::Collect, end, self.program_ns);
        }
        self.programmed[die] += 1.0 + moved;
        while self.programmed[die] >= self.pages_per_block {
            self.programmed[die] -= self.pages_per_block;
            last_ns = one.append(Work::Collect, end, self.erase_ns);
        }
        one.gives_up(place);
        self.places[place] = last_ns;
        self.programming.insert((end, die), bytes);
        self.buffer.programmed(end);
        self.last_programmed_ns = self.last_programmed_ns.max(end);
    }

    fn flush(&mut self, ready_ns: u64) -> u64 {
        if self.open_bytes > 0 {
            self.program(ready_ns);
        }
        self.last_programmed_ns.max(ready_ns)
    }
}

#[cfg(test)]
mod tests;

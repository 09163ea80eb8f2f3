//! Flash: channels and dies, pages that are read and programmed, blocks that are erased, a buffer for writes, and the collection of
//! garbage as it is once the drive has been written over often enough.
//!
//! - Addresses are striped over the dies page by page. A die does one thing at a time, a channel moves one page at a time.
//! - Writes gather in the buffer to whole pages, which go to one die after the other. They are acknowledged when they are in the
//!   buffer, and wait for room in it.
//! - In the steady state each page written at random makes room by moving others: with spare flash ρ a greedy collector writes
//!   (1 + ρ) / 2ρ pages for one (Agarwal and Marrow, "A closed-form expression for write amplification in NAND flash", 2010). Its die
//!   is busy with that right after the page. What is written in sequence is overwritten in sequence, and moves nothing.
//! - A flush programs what is in the buffer, unless that survives a loss of power.

use crate::model::Model;
use crate::request::{Done, Request, SECTOR_BYTES, transfer_ns};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

/// Sequential streams that are recognised.
const STREAMS: usize = 16;

#[derive(Debug)]
pub(crate) struct Ssd {
    page_sectors: u64,
    pages_per_block: f64,
    read_ns: u64,
    program_ns: u64,
    erase_ns: u64,
    command_ns: u64,
    channel: f64,
    interface: f64,
    buffer_bytes: u64,
    durable: bool,
    amplification: f64,
    write_back: bool,

    die_free_ns: Vec<u64>,
    channel_free_ns: Vec<u64>,
    /// Of each die, pages programmed since its last erasure.
    programmed: Vec<f64>,
    interface_free_ns: u64,
    /// Where the streams of writes are.
    streams: VecDeque<u64>,
    /// Bytes of the page that gathers, and those of them that were written at random.
    open_bytes: u64,
    open_random: u64,
    next_die: usize,
    /// When pages in the buffer will be programmed: (time, bytes).
    programming: BinaryHeap<Reverse<(u64, u64)>>,
    buffered: u64,
    last_programmed_ns: u64,
    pub(crate) done: Done,
}

impl Ssd {
    pub(crate) fn new(model: &Model) -> Self {
        let spare = model.number("over-provisioning");
        let (dies, channels) = (model.ns("dies") as usize, model.ns("channels") as usize);
        Self {
            page_sectors: (model.ns("page") / SECTOR_BYTES).max(1),
            pages_per_block: model.number("pages-per-block"),
            read_ns: model.ns("read-time"),
            program_ns: model.ns("program-time"),
            erase_ns: model.ns("erase-time"),
            command_ns: model.ns("command-time"),
            channel: model.number("channel-rate"),
            interface: model.number("interface-rate"),
            buffer_bytes: model.ns("write-buffer"),
            durable: model.number("buffer-is-durable") > 0.5,
            amplification: ((1.0 + spare) / (2.0 * spare)).max(1.0),
            write_back: true,
            die_free_ns: vec![0; dies],
            channel_free_ns: vec![0; channels],
            programmed: vec![0.0; dies],
            interface_free_ns: 0,
            streams: VecDeque::new(),
            open_bytes: 0,
            open_random: 0,
            next_die: 0,
            programming: BinaryHeap::new(),
            buffered: 0,
            last_programmed_ns: 0,
            done: Done::default(),
        }
    }

    pub(crate) const fn set_write_back(&mut self, write_back: bool) {
        self.write_back = write_back;
    }

    pub(crate) fn submit(&mut self, now_ns: u64, id: u64, request: &Request) {
        let ready = now_ns + self.command_ns;
        let at_ns = match request {
            Request::Free => now_ns,
            Request::Read(sectors) => self.read(ready, sectors),
            Request::Write(sectors) => {
                let taken = self.write(ready, sectors);
                if self.write_back || self.durable { taken } else { self.flush(taken) }
            }
            // Of a table in the controller's memory.
            Request::Unmap(_) => ready,
            Request::Flush if self.durable => ready,
            Request::Flush => self.flush(ready),
        };
        self.done.push(at_ns, id);
    }

    fn over_interface(&mut self, from_ns: u64, bytes: u64) -> u64 {
        self.interface_free_ns = self.interface_free_ns.max(from_ns) + transfer_ns(bytes, self.interface);
        self.interface_free_ns
    }

    fn over_channel(&mut self, die: usize, from_ns: u64, bytes: u64) -> u64 {
        let channels = self.channel_free_ns.len();
        let free = &mut self.channel_free_ns[die % channels];
        *free = (*free).max(from_ns) + transfer_ns(bytes, self.channel);
        *free
    }

    fn read(&mut self, ready_ns: u64, sectors: &Range<u64>) -> u64 {
        let mut last = ready_ns;
        let mut at = sectors.start;
        while at < sectors.end {
            let page = at / self.page_sectors;
            let end = ((page + 1) * self.page_sectors).min(sectors.end);
            let die = (page % self.die_free_ns.len() as u64) as usize;
            let sensed = self.die_free_ns[die].max(ready_ns) + self.read_ns;
            self.die_free_ns[die] = sensed;
            // Its turn on the channel is taken now and not when the die is done: until then others use the channel.
            let bytes = (end - at) * SECTOR_BYTES;
            let passed = self.over_channel(die, ready_ns, bytes);
            last = last.max(passed).max(sensed + transfer_ns(bytes, self.channel));
            at = end;
        }
        let bytes = (sectors.end - sectors.start) * SECTOR_BYTES;
        // Pages stream through: the interface is done when the last has passed it, too.
        let passed = self.over_interface(ready_ns, bytes);
        passed.max(last + transfer_ns(bytes.min(self.page_sectors * SECTOR_BYTES), self.interface))
    }

    /// Into the buffer, piece by piece as there is room. Gives when the last is there.
    fn write(&mut self, ready_ns: u64, sectors: &Range<u64>) -> u64 {
        let continued = self.streams.iter().position(|end| *end == sectors.start);
        if let Some(index) = continued {
            self.streams.remove(index);
        }
        self.streams.push_back(sectors.end);
        if self.streams.len() > STREAMS {
            self.streams.pop_front();
        }
        let page_bytes = self.page_sectors * SECTOR_BYTES;
        let mut left = (sectors.end - sectors.start) * SECTOR_BYTES;
        let mut now = ready_ns;
        while left > 0 {
            let piece = left.min(page_bytes - self.open_bytes);
            let room = self.room_ns(now, piece);
            now = self.over_interface(room, piece);
            self.buffered += piece;
            self.open_bytes += piece;
            self.open_random += if continued.is_none() { piece } else { 0 };
            if self.open_bytes == page_bytes {
                self.program(now);
            }
            left -= piece;
        }
        now
    }

    /// When there is room in the buffer for so much more.
    fn room_ns(&mut self, from_ns: u64, bytes: u64) -> u64 {
        let mut now = from_ns;
        while let Some(&Reverse((at_ns, programmed))) = self.programming.peek() {
            if at_ns > now && self.buffered + bytes <= self.buffer_bytes {
                break;
            }
            self.programming.pop();
            self.buffered -= programmed;
            now = now.max(at_ns);
        }
        now
    }

    /// Programs the page that gathers, and has its die make room for the next.
    fn program(&mut self, now_ns: u64) {
        let (bytes, random) = (self.open_bytes, self.open_random);
        (self.open_bytes, self.open_random) = (0, 0);
        let die = self.next_die;
        self.next_die = (die + 1) % self.die_free_ns.len();
        let there = self.over_channel(die, now_ns, self.page_sectors * SECTOR_BYTES);
        let end = self.die_free_ns[die].max(there) + self.program_ns;
        self.programming.push(Reverse((end, bytes)));
        self.last_programmed_ns = self.last_programmed_ns.max(end);
        // Pages are moved within the die.
        let moved = (self.amplification - 1.0) * random as f64 / bytes as f64;
        let mut free = end + (moved * (self.read_ns + self.program_ns) as f64).round() as u64;
        self.programmed[die] += 1.0 + moved;
        while self.programmed[die] >= self.pages_per_block {
            self.programmed[die] -= self.pages_per_block;
            free += self.erase_ns;
        }
        self.die_free_ns[die] = free;
    }

    fn flush(&mut self, ready_ns: u64) -> u64 {
        if self.open_bytes > 0 {
            self.program(ready_ns);
        }
        self.last_programmed_ns.max(ready_ns)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Drive, Kind, Model, Request, SECTOR_BYTES, curves};

    const SIZE: u64 = 256 << 30;

    fn ssds() -> Vec<Model> {
        let models = Model::built_in().map(|name| Model::find(name).unwrap());
        models.filter(|model| model.kind() == Kind::Ssd).collect()
    }

    #[test]
    fn a_read_alone_takes_the_sum_of_its_parts() {
        for model in ssds() {
            let (_, mean) = curves::random_reads(&model, SIZE, 1, 1_000);
            let moved = 4096e9 / model.number("channel-rate") + 4096e9 / model.number("interface-rate");
            let expected = model.number("command-time") + model.number("read-time") + moved;
            assert!((mean / expected - 1.0).abs() < 0.01, "{}: {mean}, {expected}", model.name());
        }
    }

    /// A channel is free for others until a die that is busy has something to move.
    #[test]
    fn a_read_of_an_idle_die_does_not_wait_for_a_busy_one() {
        for model in ssds() {
            let (page, dies) = (model.ns("page") / SECTOR_BYTES, model.ns("dies"));
            let channels = model.ns("channels");
            if dies <= channels {
                continue;
            }
            let mut drive = Drive::new(&model, SIZE);
            let read =
                |number: u64, die: u64| Request::Read((number * dies + die) * page..(number * dies + die) * page + 8);
            for number in 0..100 {
                drive.submit(0, number, &read(number, 0));
            }
            // Of the same channel.
            drive.submit(0, 1000, &read(0, channels));
            let mut done = None;
            while let (None, Some(event)) = (done, drive.next_event()) {
                while let Some((at_ns, id)) = drive.completed(event) {
                    done = done.or((id == 1000).then_some(at_ns));
                }
            }
            let moved = 100.0 * (4096e9 / model.number("channel-rate") + 4096e9 / model.number("interface-rate"));
            let most = model.number("command-time") + model.number("read-time") + moved * 1.1;
            assert!((done.expect("complete") as f64) < most, "{}: {done:?}, {most}", model.name());
        }
    }

    /// However many at a time, the slowest part sets the pace: dies, channels, or the interface.
    #[test]
    fn many_reads_reach_the_ceiling_and_not_more() {
        for model in ssds() {
            let (rate, _) = curves::random_reads(&model, SIZE, 4096, 200_000);
            let dies = model.number("dies") * 1e9 / model.number("read-time");
            let channels = model.number("channels") * model.number("channel-rate") / 4096.0;
            let ceiling = dies.min(channels).min(model.number("interface-rate") / 4096.0);
            assert!(rate < ceiling * 1.001 && rate > ceiling * 0.8, "{}: {rate}, {ceiling}", model.name());
        }
    }

    #[test]
    fn writes_in_sequence_and_at_random_in_the_steady_state() {
        for model in ssds() {
            let page = model.number("page");
            let program = model.number("program-time") + model.number("erase-time") / model.number("pages-per-block");
            let by_flash = model.number("dies") * page * 1e9 / program;
            let channels = model.number("channels") * model.number("channel-rate");
            let ceiling = by_flash.min(channels).min(model.number("interface-rate"));
            let rate = curves::sequential(&model, SIZE, 0.0, true);
            assert!(rate < ceiling * 1.01 && rate > ceiling * 0.9, "{}: {rate}, {ceiling}", model.name());

            let spare = model.number("over-provisioning");
            let amplification = (1.0 + spare) / (2.0 * spare);
            let each = model.number("program-time")
                + (amplification - 1.0) * (model.number("read-time") + model.number("program-time"))
                + amplification * model.number("erase-time") / model.number("pages-per-block");
            let expected = model.number("dies") * page / 4096.0 * 1e9 / each;
            let full = (model.number("write-buffer") / 4096.0) as usize;
            let rate = curves::random_writes(&model, SIZE, 4 * full + 100_000, 100_000);
            let expected = expected.min(model.number("interface-rate") / 4096.0);
            assert!((rate / expected - 1.0).abs() < 0.03, "{}: {rate}, {expected}", model.name());
        }
    }

    #[test]
    fn a_flush_programs_a_page_unless_the_buffer_lasts() {
        for model in ssds() {
            let mean = curves::durable_writes(&model, SIZE, 1_000);
            let acknowledged = model.number("command-time") * 2.0 + 4096e9 / model.number("interface-rate");
            if model.number("buffer-is-durable") > 0.5 {
                assert!((mean / acknowledged - 1.0).abs() < 0.01, "{}: {mean}", model.name());
            } else {
                let moved = model.number("page") * 1e9 / model.number("channel-rate");
                let expected = acknowledged + moved + model.number("program-time");
                assert!((mean / expected - 1.0).abs() < 0.02, "{}: {mean}, {expected}", model.name());
            }
        }
    }
}

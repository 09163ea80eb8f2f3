//! The disk itself: takes requests off a queue in the guest's memory, has them done, and completes each when due.

use super::counters::{DiskCounters, Marks};
use super::fault::{Effect, Faults, Operation};
use super::medium::Medium;
use super::request::{MAX_RANGE_SECTORS, MAX_RANGES, Request, SECTOR_BYTES, Status, What};
use super::spec::{DiskSpec, MARK_PREFIX, Shared};
use super::speed::{Due, Pacer, Work};
use crate::power::{Change, Logged};
use fstone_drive::{Drive, Model};
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fs::File;
use std::io::{self, Read, Write};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_F_BLK_SIZE, VIRTIO_BLK_F_CONFIG_WCE, VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_FLUSH, VIRTIO_BLK_F_SEG_MAX,
    VIRTIO_BLK_F_WRITE_ZEROES, VIRTIO_BLK_T_FLUSH,
};
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_ring::VIRTIO_RING_F_EVENT_IDX;
use virtio_queue::{DescriptorChain, Queue, QueueOwnedT, QueueT};
use vm_memory::GuestMemoryMmap;

/// Entries of the queue. No fewer either: a request in as many pieces as are offered would never fit, and the guest would
/// wait for ever.
pub(crate) const QUEUE_SIZE: u16 = 256;

/// Pieces of memory per request that the guest may send: the queue less head and status.
const MAX_SEGMENTS: u32 = QUEUE_SIZE as u32 - 2;

/// How long a completion may wait for others, so that one interrupt serves them all. A read of an image in memory takes
/// some 10 µs; a disk's own interrupts are gathered for about as long.
const GATHER_NS: u64 = 50_000;

/// Zeros that a modelled drive, or one which cannot forget, is asked for at once, 32 MiB as in SCSI's WRITE SAME(10) and NVMe's Write
/// Zeroes: a disk reads and writes nothing else meanwhile.
const WRITTEN_AT_ONCE_SECTORS: u32 = 1 << 16;

const WRITEBACK_OFFSET: u32 = 32;

#[derive(Debug, Clone, Copy)]
struct Waiting {
    due: Due,
    arrived_ns: u64,
    head: u16,
    bytes: u32,
    operation: Option<Operation>,
    logged: Option<Logged>,
}

/// Whose time it is, and what decides when a request is complete.
#[derive(Debug)]
enum Timing {
    /// The host's. The disk is as fast as the host is, or of known speed.
    Host { pacer: Pacer, start: Instant },
    /// The calendar's. The disk is as fast as its model.
    Simulated(Box<Simulated>),
}

#[derive(Debug)]
struct Simulated {
    drive: Drive,
    model: Model,
    now_ns: u64,
    /// Over every request: operation, offset, length and time.
    trace: Sha256,
}

impl Timing {
    fn admit(&mut self, arrived_ns: u64, number: u64, work: Work, asked: &fstone_drive::Request) -> Due {
        match self {
            Self::Host { pacer, .. } => pacer.admit(arrived_ns, work),
            Self::Simulated(simulated) => {
                simulated.drive.submit(arrived_ns, number, asked);
                Due::by_model(arrived_ns)
            }
        }
    }
}

/// A disk without a connection.
#[derive(Debug)]
pub(crate) struct Engine {
    medium: Medium,
    sectors: u64,
    sector_bytes: u32,
    discard: bool,
    /// Of a drive with capacitors nothing is lost: it offers no cache that could be flushed or switched off.
    durable: bool,
    write_through: bool,
    timing: Timing,
    faults: Faults,
    counters: Arc<Mutex<DiskCounters>>,
    marks: Arc<Mutex<Marks>>,
    /// Nanoseconds to take off the latencies; whoever serves the disk may change it at any time.
    transport: Arc<AtomicU64>,
    buffer: Vec<u8>,
    /// (due, arrival number) of what waits, earliest first.
    order: BinaryHeap<Reverse<(u64, u64)>>,
    /// What waits, by arrival number.
    waiting: HashMap<u64, Waiting>,
    arrivals: u64,
    /// Whether its name was asked for since somebody last wanted to know.
    named: bool,
}

impl Engine {
    pub(crate) fn new(spec: &DiskSpec, image: File, shared: &Shared) -> io::Result<Self> {
        let sectors = image.metadata()?.len() / SECTOR_BYTES;
        let medium = Medium::new(spec, image, shared.log.clone(), &shared.showing);
        let medium = match &spec.base {
            Some(_) if spec.log.is_some() => return Err(io::ErrorKind::Unsupported.into()),
            Some(base) => medium.over(File::open(base)?),
            None => medium,
        };
        Ok(Self {
            sectors,
            medium,
            sector_bytes: spec.sector_bytes,
            discard: spec.discard,
            durable: false,
            write_through: false,
            timing: Timing::Host { pacer: Pacer::new(spec.speed), start: Instant::now() },
            faults: Faults::new(spec.faults.clone()),
            counters: Arc::clone(&shared.counters),
            marks: Arc::clone(&shared.marks),
            transport: Arc::clone(&shared.transport),
            buffer: Vec::new(),
            order: BinaryHeap::new(),
            waiting: HashMap::new(),
            arrivals: 0,
            named: false,
        })
    }

    /// The same with a model for its speed and a calendar for its clock. Nothing it does is durable on the host.
    pub(crate) fn simulated(spec: &DiskSpec, image: File, model: &Model, shared: &Shared) -> io::Result<Self> {
        let mut engine = Self::new(spec, image, shared)?;
        let drive = Drive::new(model, engine.sectors * SECTOR_BYTES);
        engine.discard &= drive.unmaps();
        engine.durable = drive.is_durable();
        let simulated = Simulated { drive, model: model.clone(), now_ns: 0, trace: Sha256::new() };
        engine.timing = Timing::Simulated(Box::new(simulated));
        Ok(engine)
    }

    pub(crate) fn set_now_ns(&mut self, now_ns: u64) {
        if let Timing::Simulated(simulated) = &mut self.timing {
            simulated.now_ns = now_ns;
        }
    }

    /// When something happens next by the model, if nothing is asked until then.
    pub(crate) fn next_event_ns(&self) -> Option<u64> {
        match &self.timing {
            Timing::Host { .. } => None,
            Timing::Simulated(simulated) => simulated.drive.next_event(),
        }
    }

    pub(crate) fn trace(&self) -> String {
        match &self.timing {
            Timing::Host { .. } => String::new(),
            Timing::Simulated(simulated) => {
                simulated.trace.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect()
            }
        }
    }

    fn counters(&self) -> MutexGuard<'_, DiskCounters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        match &self.timing {
            Timing::Host { start, .. } => start.elapsed().as_nanos() as u64,
            Timing::Simulated(simulated) => simulated.now_ns,
        }
    }

    pub(crate) fn features(&self) -> u64 {
        let always = [
            VIRTIO_F_VERSION_1,
            VIRTIO_RING_F_EVENT_IDX,
            VIRTIO_BLK_F_SEG_MAX,
            VIRTIO_BLK_F_BLK_SIZE,
            VIRTIO_BLK_F_WRITE_ZEROES,
        ];
        let discard = self.discard.then_some(VIRTIO_BLK_F_DISCARD);
        // A cache that may lose data, a flush that empties it, and a switch for it: only then do flushes arrive.
        let cache = [VIRTIO_BLK_F_FLUSH, VIRTIO_BLK_F_CONFIG_WCE].into_iter().filter(|_| !self.durable);
        always.into_iter().chain(discard).chain(cache).fold(0, |all, bit| all | 1 << bit)
    }

    /// The configuration space (struct virtio_blk_config), as much of it as is asked for.
    pub(crate) fn config(&self, offset: u32, bytes: u32) -> Vec<u8> {
        let mut space = Vec::with_capacity(64);
        space.extend(self.sectors.to_le_bytes());
        space.extend(0u32.to_le_bytes()); // size_max: not offered
        space.extend(MAX_SEGMENTS.to_le_bytes());
        space.extend([0; 4]); // geometry: not offered
        space.extend(self.sector_bytes.to_le_bytes());
        space.extend([0; 8]); // topology: not offered
        space.extend([u8::from(!self.write_through && !self.durable), 0]);
        space.extend(1u16.to_le_bytes()); // queues
        let alignment = self.sector_bytes / SECTOR_BYTES as u32;
        space.extend([MAX_RANGE_SECTORS, MAX_RANGES as u32, alignment].map(u32::to_le_bytes).concat());
        let forgets = self.discard && matches!(self.timing, Timing::Host { .. });
        let zeros = if forgets { MAX_RANGE_SECTORS } else { WRITTEN_AT_ONCE_SECTORS };
        space.extend([zeros, MAX_RANGES as u32].map(u32::to_le_bytes).concat());
        space.push(u8::from(self.discard)); // write_zeroes_may_unmap
        let at = |index: u32| space.get(index as usize).copied().unwrap_or(0);
        (offset..offset.saturating_add(bytes)).map(at).collect()
    }

    /// The guest writes to the configuration space; only the write cache can be changed.
    pub(crate) fn set_config(&mut self, offset: u32, bytes: &[u8]) {
        let written = WRITEBACK_OFFSET.checked_sub(offset).and_then(|at| bytes.get(at as usize));
        if let Some(&writeback) = written {
            self.write_through = writeback == 0;
            if let Timing::Simulated(simulated) = &mut self.timing {
                simulated.drive.set_write_back(!self.write_through);
            }
            self.counters().write_through = self.write_through;
        }
    }

    pub(crate) fn reset(&mut self) {
        self.order.clear();
        self.waiting.clear();
        self.write_through = false;
        self.counters().write_through = false;
    }

    /// Takes everything off the queue and completes each request when it is due; `tell` interrupts the guest. When the
    /// next completion is due.
    pub(crate) fn serve(&mut self, queue: &mut Queue, memory: &GuestMemoryMmap, tell: &impl Fn()) -> Option<Duration> {
        loop {
            // A ring that does not work is the guest's own doing; it gets no answer.
            let _ = queue.disable_notification(memory);
            while let Some(chain) = queue.iter(memory).ok().and_then(|mut available| available.next()) {
                // What is done must not wait for what comes after it in the queue.
                if flushes(&chain, memory) || self.oldest_due_ns().is_some_and(|due| due + GATHER_NS <= self.now_ns()) {
                    self.complete(queue, memory, tell);
                }
                self.take(&chain, memory);
            }
            if !queue.enable_notification(memory).unwrap_or(false) {
                break;
            }
        }
        self.complete(queue, memory, tell)
    }

    fn oldest_due_ns(&self) -> Option<u64> {
        self.order.peek().map(|&Reverse((due, _))| due)
    }

    /// Does one request. Its completion waits until it is due.
    fn take(&mut self, chain: &DescriptorChain<&GuestMemoryMmap>, memory: &GuestMemoryMmap) {
        let arrived_ns = self.now_ns();
        let head = chain.head_index();
        let parts = chain.clone().reader(memory).and_then(|reader| Ok((reader, chain.clone().writer(memory)?)));
        let Ok((mut readable, mut writable)) = parts else { return self.senseless(arrived_ns, head) };
        // The last byte the guest offers is for the status.
        let Some(room) = writable.available_bytes().checked_sub(1) else { return self.senseless(arrived_ns, head) };
        let Ok(mut status_byte) = writable.split_at(room) else { return self.senseless(arrived_ns, head) };
        let data_bytes = (readable.available_bytes() as u64).saturating_sub(16);

        let mut logged = None;
        let (status, bytes, operation, work, asked) =
            match Request::decode(&mut readable, data_bytes, room as u64, self.sectors) {
                Err(status) => {
                    self.counters().guest_errors += 1;
                    (status, 0, None, Work::Free, fstone_drive::Request::Free)
                }
                Ok(request) => {
                    let operation = request.operation();
                    if let Some(operation) = operation {
                        self.counters().arrived(operation, request.bytes());
                    }
                    let hit = operation.and_then(|kind| self.faults.hit(kind, &request.sectors));
                    let (status, bytes) = match hit {
                        Some(Effect::Stall) => {
                            self.counters().stalled += 1;
                            return;
                        }
                        Some(Effect::Error) => {
                            self.counters().injected_errors += 1;
                            (Status::Failed, 0)
                        }
                        None if operation == Some(Operation::Discard) && !self.discard => (Status::Unsupported, 0),
                        None => {
                            let data = self.medium.position_in_log();
                            let done = self.carry_out(&request, &mut readable, &mut writable);
                            if done.0 == Status::Done {
                                logged = self.log(&request, data);
                            }
                            done
                        }
                    };
                    if let Timing::Simulated(simulated) = &mut self.timing {
                        simulated.note(&request);
                    }
                    // What is refused costs nothing.
                    let refused = status == Status::Unsupported;
                    let asked = if refused { fstone_drive::Request::Free } else { asked_of(&request) };
                    (status, bytes, operation, work_of(&request), asked)
                }
            };
        let _ = status_byte.write_all(&[status.byte()]);
        if let Timing::Host { pacer, .. } = &mut self.timing {
            pacer.set_transport(Duration::from_nanos(self.transport.load(Ordering::Relaxed)));
        }
        let due = self.timing.admit(arrived_ns, self.arrivals, work, &asked);
        self.wait(Waiting { due, arrived_ns, head, bytes: bytes + 1, operation, logged });
    }

    /// Writes into the disk's log, if it keeps one, what a request changed. `data` is where the log put its data.
    fn log(&self, request: &Request, data: Change) -> Option<Logged> {
        let log = self.medium.log()?;
        match request.what {
            What::Operation(Operation::Write) => log.change(data, request.sectors.clone()),
            What::Operation(Operation::Discard) | What::WriteZeroes { .. } => {
                log.change(Change::Zero, request.sectors.clone())
            }
            What::Operation(Operation::Flush) => log.flush(),
            What::Operation(Operation::Read) | What::Name => None,
        }
    }

    fn log_completed(&self, logged: Option<Logged>) {
        if let (Some(logged), Some(log)) = (logged, self.medium.log()) {
            log.completed(logged, self.write_through || self.durable);
        }
    }

    fn carry_out(
        &mut self,
        request: &Request,
        readable: &mut impl io::Read,
        writable: &mut impl io::Write,
    ) -> (Status, u32) {
        let name = if request.what == What::Name {
            self.named = true;
            let mark = self.marks.lock().unwrap_or_else(PoisonError::into_inner).set(self.counters().clone());
            if let Some(log) = self.medium.log() {
                log.mark(mark);
            }
            format!("{MARK_PREFIX}{mark}")
        } else {
            String::new()
        };
        let simulated = matches!(self.timing, Timing::Simulated(_));
        if simulated && request.what == What::Operation(Operation::Flush) {
            return (Status::Done, 0);
        }
        let write_through = self.write_through && !simulated;
        match request.carry_out(&self.medium, &name, &mut self.buffer, readable, writable, write_through) {
            Ok(bytes) => {
                self.drop_behind(request);
                (Status::Done, u32::try_from(bytes).unwrap_or(u32::MAX - 1))
            }
            Err(error) => {
                let mut counters = self.counters();
                counters.host_errors += 1;
                counters.host_error.get_or_insert_with(|| error.to_string());
                (Status::Failed, 0)
            }
        }
    }

    /// Drops from the host's page cache what a disk would not hold in memory.
    fn drop_behind(&self, request: &Request) {
        match request.what {
            What::Operation(Operation::Read) => {
                let bytes = NonZeroU64::new(request.bytes());
                self.medium.drop_behind(request.sectors.start * SECTOR_BYTES, bytes);
            }
            What::Operation(Operation::Flush) => self.medium.drop_behind(0, None),
            _ => {}
        }
    }

    /// A request without room for its status: there is no way to say so, only to give its memory back.
    fn senseless(&mut self, arrived_ns: u64, head: u16) {
        self.counters().guest_errors += 1;
        let due = self.timing.admit(arrived_ns, self.arrivals, Work::Free, &fstone_drive::Request::Free);
        self.wait(Waiting { due, arrived_ns, head, bytes: 0, operation: None, logged: None });
    }

    fn wait(&mut self, waiting: Waiting) {
        let number = self.arrivals;
        self.arrivals += 1;
        if matches!(self.timing, Timing::Host { .. }) {
            self.order.push(Reverse((waiting.due.at_ns, number)));
        }
        self.waiting.insert(number, waiting);
    }

    /// Completes what is due. When the next is due.
    fn complete(&mut self, queue: &mut Queue, memory: &GuestMemoryMmap, tell: &impl Fn()) -> Option<Duration> {
        self.complete_until(queue, memory, tell, None)
    }

    /// Completes all that waits, due or not: the guest stops the ring.
    pub(crate) fn complete_all(&mut self, queue: &mut Queue, memory: &GuestMemoryMmap, tell: &impl Fn()) {
        self.complete_until(queue, memory, tell, Some(u64::MAX));
    }

    /// Completes what is due by a time, now when `None`. When the next is due.
    fn complete_until(
        &mut self,
        queue: &mut Queue,
        memory: &GuestMemoryMmap,
        tell: &impl Fn(),
        until_ns: Option<u64>,
    ) -> Option<Duration> {
        let mut any = false;
        let mut next = None;
        while let Some(&Reverse((due, number))) = self.order.peek() {
            let now = self.now_ns();
            if due > until_ns.unwrap_or(now) {
                next = Some(Duration::from_nanos(due - now));
                break;
            }
            self.order.pop();
            let Some(done) = self.waiting.remove(&number) else { continue };
            self.log_completed(done.logged);
            if let Timing::Host { pacer, .. } = &mut self.timing {
                pacer.completed(done.due, now);
            }
            if let Some(operation) = done.operation {
                self.counters().completed(operation, now.saturating_sub(done.arrived_ns));
            }
            any |= queue.add_used(memory, done.head, done.bytes).is_ok();
        }
        if any && queue.needs_notification(memory).unwrap_or(true) {
            tell();
        }
        next
    }
}

/// Whether a request is a flush, which takes long. One that cannot be read is none.
fn flushes(chain: &DescriptorChain<&GuestMemoryMmap>, memory: &GuestMemoryMmap) -> bool {
    let mut kind = [0u8; 4];
    let read = chain.clone().reader(memory).is_ok_and(|mut readable| readable.read_exact(&mut kind).is_ok());
    read && u32::from_le_bytes(kind) == VIRTIO_BLK_T_FLUSH
}

impl Engine {
    /// Whether the guest asked for the disk's name since the last call.
    pub(crate) const fn was_named(&mut self) -> bool {
        std::mem::replace(&mut self.named, false)
    }

    /// Whether nothing that it was asked to do is under way; questions for its name are not counted.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.values().all(|waiting| waiting.operation.is_none())
    }

    /// Switches an idle drive off and on: nothing is in its caches, and its heads are parked.
    pub(crate) fn switch_on_again(&mut self) {
        let Timing::Simulated(simulated) = &mut self.timing else { return };
        simulated.drive = Drive::new(&simulated.model, self.sectors * SECTOR_BYTES);
        simulated.drive.set_write_back(!self.write_through);
        let mut waiting: Vec<u64> = self.waiting.keys().copied().collect();
        waiting.sort_unstable();
        for number in waiting {
            simulated.drive.submit(simulated.now_ns, number, &fstone_drive::Request::Free);
        }
    }

    pub(crate) fn take_all(&mut self, queue: &mut Queue, memory: &GuestMemoryMmap) {
        loop {
            let _ = queue.disable_notification(memory);
            while let Some(chain) = queue.iter(memory).ok().and_then(|mut available| available.next()) {
                self.take(&chain, memory);
            }
            if !queue.enable_notification(memory).unwrap_or(false) {
                return;
            }
        }
    }

    /// Completes what is complete by the model at the calendar's time. Whether the guest wants to be told.
    pub(crate) fn complete_simulated(&mut self, queue: &mut Queue, memory: &GuestMemoryMmap) -> bool {
        let mut any = false;
        while let Timing::Simulated(simulated) = &mut self.timing
            && let Some((at_ns, number)) = simulated.drive.completed(simulated.now_ns)
        {
            let Some(done) = self.waiting.remove(&number) else { continue };
            self.log_completed(done.logged);
            if let Some(operation) = done.operation {
                self.counters().completed(operation, at_ns.saturating_sub(done.arrived_ns));
            }
            any |= queue.add_used(memory, done.head, done.bytes).is_ok();
        }
        any && queue.needs_notification(memory).unwrap_or(true)
    }
}

impl Simulated {
    fn note(&mut self, request: &Request) {
        let kind: u8 = match request.what {
            What::Operation(Operation::Read) => 0,
            What::Operation(Operation::Write) => 1,
            What::Operation(Operation::Flush) => 2,
            What::Operation(Operation::Discard) => 3,
            What::WriteZeroes { .. } => 4,
            What::Name => 5,
        };
        self.trace.update([kind]);
        for number in [request.sectors.start, request.sectors.end - request.sectors.start, self.now_ns] {
            self.trace.update(number.to_le_bytes());
        }
    }
}

fn asked_of(request: &Request) -> fstone_drive::Request {
    match request.what {
        What::Operation(Operation::Read) => fstone_drive::Request::Read(request.sectors.clone()),
        What::Operation(Operation::Write) => fstone_drive::Request::Write(request.sectors.clone()),
        What::WriteZeroes { may_unmap: false } => fstone_drive::Request::Zero(request.sectors.clone()),
        What::Operation(Operation::Flush) => fstone_drive::Request::Flush,
        What::Operation(Operation::Discard) | What::WriteZeroes { may_unmap: true } => {
            fstone_drive::Request::Unmap(request.sectors.clone())
        }
        What::Name => fstone_drive::Request::Free,
    }
}

const fn work_of(request: &Request) -> Work {
    match request.what {
        What::Operation(Operation::Flush) => Work::Flush,
        What::Operation(Operation::Read | Operation::Write) | What::WriteZeroes { .. } => {
            Work::Transfer(request.bytes())
        }
        What::Operation(Operation::Discard) | What::Name => Work::Free,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power::{LogSpec, LogWriter, States};

    /// However they are asked for, no zeros come over the interface, and no piece keeps a modelled drive busy for long.
    #[test]
    fn zeros_are_asked_of_a_modelled_drive_in_pieces_and_not_as_data() {
        let sectors = 8..16;
        let asked = |may_unmap| asked_of(&Request { what: What::WriteZeroes { may_unmap }, sectors: sectors.clone() });
        assert_eq!(asked(false), fstone_drive::Request::Zero(8..16));
        assert_eq!(asked(true), fstone_drive::Request::Unmap(8..16));

        let image = tempfile::tempfile().unwrap();
        image.set_len(1 << 20).unwrap();
        let (spec, shared) = (DiskSpec::new(""), Shared::default());
        // struct virtio_blk_config: max_write_zeroes_sectors and write_zeroes_may_unmap.
        let zeros = |engine: &Engine| (engine.config(48, 4), engine.config(56, 1));
        let host = Engine::new(&spec, image.try_clone().unwrap(), &shared).unwrap();
        assert_eq!(zeros(&host), (MAX_RANGE_SECTORS.to_le_bytes().to_vec(), vec![1]));
        for (name, may_unmap) in [("hdd-7200-2008", 0), ("sata-ssd", 1)] {
            let model = Model::find(name).unwrap();
            let engine = Engine::simulated(&spec, image.try_clone().unwrap(), &model, &shared).unwrap();
            assert_eq!(zeros(&engine), (65_536u32.to_le_bytes().to_vec(), vec![may_unmap]), "{name}");
        }
    }

    /// A drive with capacitors: the kernel sees no volatile cache, so it sends no flush, and a completed write is durable.
    #[test]
    fn a_drive_whose_buffer_lasts_offers_no_cache_to_flush() {
        let cache = 1u64 << VIRTIO_BLK_F_FLUSH | 1 << VIRTIO_BLK_F_CONFIG_WCE;
        for (name, offered) in [("nvme-ssd", 0), ("sata-ssd", cache), ("hdd-today", cache), ("constant", cache)] {
            let image = tempfile::tempfile().unwrap();
            image.set_len(1 << 20).unwrap();
            let directory = std::env::temp_dir();
            let log = LogWriter::new(&LogSpec { directory, bound_bytes: 1 << 20 }, &image, 512).unwrap();
            let shared = Shared { log: Some(log.clone()), ..Shared::default() };
            let model = Model::find(name).unwrap();
            let engine = Engine::simulated(&DiskSpec::new(""), image, &model, &shared).unwrap();
            assert_eq!(engine.features() & cache, offered, "{name}");
            assert_eq!(engine.config(WRITEBACK_OFFSET, 1), [u8::from(offered > 0)], "{name}");
            let written = log.change(Change::Zero, 0..8);
            engine.log_completed(written);
            let log = log.take().unwrap();
            let end = log.events();
            let states = States::new(log, 0..end + 1, None).choose(100, 1);
            let may_be_lost = states.iter().any(|state| state.cut() == end && state.to_string().contains("none"));
            assert_eq!(may_be_lost, offered > 0, "{name}: {states:?}");
        }
    }
}

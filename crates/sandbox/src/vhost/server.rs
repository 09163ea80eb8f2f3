//! One thread per disk: accepts a guest, does what its kernel asks for, serves its queue, and waits for the next.

use super::engine::{Engine, QUEUE_SIZE};
use super::protocol::{Call, Message, ProtocolError, Region};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;
use virtio_queue::{Queue, QueueT};
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionMmap, MmapRegion};

/// How long a guest's kernel may take for half a message; it writes them whole.
const MESSAGE_TIME: Duration = Duration::from_secs(2);

/// "The features of the protocol itself are understood", beside those of virtio.
const PROTOCOL_FEATURES: u64 = 1 << 30;

/// Number of rings can be asked for; orders can be confirmed; the device may ask too; the configuration space is here.
/// This device never asks, but user-mode Linux 6.1 sets up its interrupt only for one that could.
const OFFERED: u64 = 1 << 0 | 1 << 3 | 1 << 5 | 1 << 9;

/// Requests and completions are announced by messages, each of which is confirmed, and not by files: what a guest does
/// whose time is simulated.
const IN_BAND: u64 = 1 << 14;

/// Serves guests, one after the other, until the other end of `stop` is closed.
pub(crate) fn serve(listener: &UnixListener, stop: &OwnedFd, engine: &mut Engine) {
    // Timers of this thread are to fire when they are due, not up to 50 µs later.
    let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
    while let Some(true) = wait_for(stop, listener, None, None) {
        let Ok((stream, _)) = listener.accept() else { continue };
        if stream.set_read_timeout(Some(MESSAGE_TIME)).is_err() {
            continue;
        }
        engine.reset();
        let mut connection = Connection::new(stream);
        while connection.turn(stop, engine).is_ok() {}
        if connection.stopped {
            return;
        }
    }
}

/// Waits for the first of: `stop` (gives `None`), `ready` (`Some(true)`), `kick` or the time (`Some(false)`).
fn wait_for(stop: &OwnedFd, ready: &impl AsFd, kick: Option<&OwnedFd>, time: Option<Duration>) -> Option<bool> {
    let timeout = time.map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) });
    let mut polled = vec![PollFd::new(stop, PollFlags::IN), PollFd::new(ready, PollFlags::IN)];
    polled.extend(kick.map(|kick| PollFd::new(kick, PollFlags::IN)));
    loop {
        match poll(&mut polled, timeout.as_ref()) {
            Err(Errno::INTR) => {}
            Err(_) => return None,
            Ok(_) if !polled[0].revents().is_empty() => return None,
            Ok(_) => return Some(!polled[1].revents().is_empty()),
        }
    }
}

pub(crate) struct Connection {
    offered: u64,
    stream: UnixStream,
    memory: GuestMemoryMmap,
    regions: Vec<Region>,
    queue: Option<Queue>,
    kick: Option<OwnedFd>,
    call: Option<OwnedFd>,
    /// Never written to; a guest whose channel is closed takes its disk for gone.
    requests: Option<OwnedFd>,
    enabled: bool,
    next: Option<Duration>,
    stopped: bool,
}

impl Connection {
    fn new(stream: UnixStream) -> Self {
        Self {
            offered: OFFERED,
            stream,
            memory: GuestMemoryMmap::new(),
            regions: Vec::new(),
            queue: Queue::new(QUEUE_SIZE).ok(),
            kick: None,
            call: None,
            requests: None,
            enabled: false,
            next: None,
            stopped: false,
        }
    }

    /// One whose guest announces everything by messages.
    pub(crate) fn in_band(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(MESSAGE_TIME))?;
        Ok(Self { offered: OFFERED | IN_BAND, ..Self::new(stream) })
    }

    /// In band: takes one message.
    pub(crate) fn hear(&mut self, engine: &mut Engine) -> Result<(), ProtocolError> {
        let mut message = Message::receive(&mut self.stream)?;
        self.handle(&mut message, engine)
    }

    /// In band: takes requests off the queue at the engine's time.
    pub(crate) fn take(&mut self, engine: &mut Engine) {
        if let Some(queue) = self.queue.as_mut().filter(|queue| self.enabled && queue.ready()) {
            engine.take_all(queue, &self.memory);
        }
    }

    /// In band: completes what is complete at the engine's time. Whether the guest wants to be told.
    pub(crate) fn complete(&mut self, engine: &mut Engine) -> bool {
        self.queue.as_mut().is_some_and(|queue| engine.complete_simulated(queue, &self.memory))
    }

    /// Waits for something to do and does it. An error ends the connection.
    fn turn(&mut self, stop: &OwnedFd, engine: &mut Engine) -> Result<(), ProtocolError> {
        let running = self.is_running();
        let kick = self.kick.as_ref().filter(|_| running);
        match wait_for(stop, &self.stream, kick, self.next) {
            None => {
                self.stopped = true;
                return Err(ProtocolError::Closed);
            }
            Some(true) => {
                let mut message = Message::receive(&mut self.stream)?;
                self.handle(&mut message, engine)?;
            }
            Some(false) => {
                if let Some(kick) = &self.kick {
                    let _ = rustix::io::read(kick, &mut [0u8; 8]);
                }
            }
        }
        if self.is_running()
            && let Some(queue) = &mut self.queue
        {
            self.next = engine.serve(queue, &self.memory, &|| interrupt(self.call.as_ref()));
        }
        Ok(())
    }

    fn is_running(&self) -> bool {
        self.enabled && self.kick.is_some() && self.queue.as_ref().is_some_and(QueueT::ready)
    }

    fn handle(&mut self, message: &mut Message, engine: &mut Engine) -> Result<(), ProtocolError> {
        match &message.call {
            Call::GetFeatures => {
                let features = engine.features() | PROTOCOL_FEATURES;
                return self.reply(message, &features.to_ne_bytes());
            }
            Call::GetProtocolFeatures => return self.reply(message, &self.offered.to_ne_bytes()),
            Call::GetRingCount => return self.reply(message, &1u64.to_ne_bytes()),
            Call::GetConfig { offset, bytes, flags } => {
                if *bytes > 4 << 10 {
                    return Err(ProtocolError::Refused("a configuration space of more than 4 KiB"));
                }
                let mut payload = [*offset, *bytes, *flags].map(u32::to_ne_bytes).concat();
                payload.extend(engine.config(*offset, *bytes));
                return self.reply(message, &payload);
            }
            Call::GetRingBase { ring } => {
                let base = self.stop_ring(*ring, engine)?;
                return self.reply(message, &[*ring, base].map(u32::to_ne_bytes).concat());
            }
            Call::SetOwner | Call::ResetOwner | Call::SetError { .. } => {}
            Call::SetFeatures(features) => {
                if features & !(engine.features() | PROTOCOL_FEATURES) != 0 {
                    return Err(ProtocolError::Refused("features that were not offered"));
                }
                let event_index = features & 1 << virtio_bindings::virtio_ring::VIRTIO_RING_F_EVENT_IDX != 0;
                self.ring(0)?.set_event_idx(event_index);
                // Without the protocol's features there is no order to enable a ring.
                self.enabled |= features & PROTOCOL_FEATURES == 0;
            }
            Call::SetProtocolFeatures(features) => {
                if features & !self.offered != 0 {
                    return Err(ProtocolError::Refused("protocol features that were not offered"));
                }
            }
            Call::SetMemory(regions) => {
                self.memory = map(regions, &mut message.files)?;
                self.regions.clone_from(regions);
            }
            Call::SetRingSize { ring, entries } => {
                let entries = u16::try_from(*entries).ok().filter(|&entries| entries == QUEUE_SIZE);
                let entries = entries.ok_or(ProtocolError::Refused("a ring of another size than 256"))?;
                self.ring(*ring)?.set_size(entries);
            }
            Call::SetRingAddress { ring, descriptors, used, available } => {
                let [descriptors, used, available] =
                    [self.guest(*descriptors), self.guest(*used), self.guest(*available)];
                let (descriptors, used, available) = (descriptors?, used?, available?);
                let halves = |address: u64| (Some(address as u32), Some((address >> 32) as u32));
                let queue = self.ring(*ring)?;
                let (low, high) = halves(descriptors);
                queue.set_desc_table_address(low, high);
                let (low, high) = halves(used);
                queue.set_used_ring_address(low, high);
                let (low, high) = halves(available);
                queue.set_avail_ring_address(low, high);
            }
            Call::SetRingBase { ring, base } => {
                let base = *base as u16;
                let queue = self.ring(*ring)?;
                queue.set_next_avail(base);
                queue.set_next_used(base);
            }
            Call::SetKick { ring, with_file } => {
                let kick = message.files.pop().filter(|_| *with_file);
                if let Some(kick) = &kick {
                    // It may be read when there is nothing in it.
                    let _ = rustix::io::ioctl_fionbio(kick, true);
                }
                self.ring(*ring)?.set_ready(kick.is_some());
                self.kick = kick;
            }
            Call::SetNotify { ring, with_file } => {
                let call = message.files.pop().filter(|_| *with_file);
                self.ring(*ring)?;
                self.call = call;
                // What was completed before this message was read went to the file before, where nobody may look any more.
                if self.is_running() {
                    interrupt(self.call.as_ref());
                }
            }
            Call::EnableRing { ring, enable } => {
                let in_band = self.offered & IN_BAND != 0;
                let queue = self.ring(*ring)?;
                if in_band {
                    // No file for requests says that it is.
                    queue.set_ready(*enable);
                }
                self.enabled = *enable;
            }
            Call::Kick { ring } => {
                self.ring(*ring)?;
            }
            Call::SetRequestChannel => self.requests = message.files.pop(),
            Call::SetConfig { offset, bytes } => engine.set_config(*offset, bytes),
        }
        Ok(message.acknowledge(&mut self.stream, true)?)
    }

    fn reply(&mut self, message: &Message, payload: &[u8]) -> Result<(), ProtocolError> {
        Ok(message.reply(&mut self.stream, payload)?)
    }

    fn ring(&mut self, ring: u32) -> Result<&mut Queue, ProtocolError> {
        self.queue.as_mut().filter(|_| ring == 0).ok_or(ProtocolError::Refused("a ring that does not exist"))
    }

    /// An address of the guest's kernel as an address of its memory.
    fn guest(&self, user_address: u64) -> Result<u64, ProtocolError> {
        self.regions
            .iter()
            .find_map(|region| {
                let offset = user_address.checked_sub(region.user_address)?;
                (offset < region.bytes).then(|| region.guest_address.checked_add(offset))?
            })
            .ok_or(ProtocolError::Refused("a ring outside of the guest's memory"))
    }

    /// Completes what the guest still waits for, then nothing more.
    fn stop_ring(&mut self, ring: u32, engine: &mut Engine) -> Result<u32, ProtocolError> {
        let running = self.is_running();
        self.ring(ring)?;
        let Some(queue) = &mut self.queue else { return Ok(0) };
        if running {
            engine.complete_all(queue, &self.memory, &|| interrupt(self.call.as_ref()));
        }
        queue.set_ready(false);
        let base = u32::from(queue.next_avail());
        self.kick = None;
        self.next = None;
        Ok(base)
    }
}

fn interrupt(call: Option<&OwnedFd>) {
    if let Some(call) = call {
        let _ = rustix::io::write(call, &1u64.to_ne_bytes());
    }
}

fn map(regions: &[Region], files: &mut Vec<OwnedFd>) -> Result<GuestMemoryMmap, ProtocolError> {
    if files.len() < regions.len() {
        return Err(ProtocolError::Refused("a memory region without a file"));
    }
    let mut mapped = Vec::new();
    for (region, file) in regions.iter().zip(files.drain(..)) {
        let bytes = usize::try_from(region.bytes).map_err(io::Error::other)?;
        let offset = FileOffset::new(File::from(file), region.file_offset);
        let mapping = MmapRegion::from_file(offset, bytes).map_err(io::Error::other)?;
        let address = GuestAddress(region.guest_address);
        mapped
            .push(GuestRegionMmap::new(mapping, address).ok_or(ProtocolError::Refused("a memory region that wraps"))?);
    }
    mapped.sort_by_key(vm_memory::GuestMemoryRegion::start_addr);
    Ok(GuestMemoryMmap::from_regions(mapped).map_err(io::Error::other)?)
}

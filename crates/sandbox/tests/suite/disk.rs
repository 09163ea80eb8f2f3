//! The disk without a guest: driven through its socket by somebody else's vhost-user frontend.

use fstone_sandbox::vhost::{Disk, DiskError, DiskSpec, Effect, Fault, Operation, Speed, Trigger};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use vhost::vhost_user::message::{VhostUserConfigFlags, VhostUserProtocolFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap};
use vmm_sys_util::eventfd::EventFd;

const MEMORY: usize = 4 << 20;
const RING: u16 = 256;
const DESCRIPTORS: u64 = 0x1000;
const AVAILABLE: u64 = 0x3000;
const USED: u64 = 0x4000;
const HEAD: u64 = 0x8000;
const STATUS: u64 = 0x9000;
const DATA: u64 = 0x10_0000;
/// Where the frontend claims to have its memory; any address will do.
const USER: u64 = 0x7f00_0000_0000;

const IN: u32 = 0;
const OUT: u32 = 1;
const FLUSH: u32 = 4;

/// A guest's kernel, as far as a disk can tell.
struct Driver {
    frontend: Frontend,
    memory: GuestMemoryMmap,
    kick: EventFd,
    call: EventFd,
    available: u16,
}

impl Driver {
    fn connect(disk: &Disk) -> Self {
        let file = tempfile::tempfile().unwrap();
        file.set_len(MEMORY as u64).unwrap();
        let range = (GuestAddress(0), MEMORY, Some(FileOffset::new(file.try_clone().unwrap(), 0)));
        let memory = GuestMemoryMmap::from_ranges_with_files([range]).unwrap();
        let mut frontend = Frontend::connect(disk.socket(), 1).unwrap();
        frontend.set_owner().unwrap();
        let features = frontend.get_features().unwrap();
        frontend.set_features(features & !(1 << 29)).unwrap();
        let protocol = frontend.get_protocol_features().unwrap();
        let wanted = VhostUserProtocolFeatures::CONFIG | VhostUserProtocolFeatures::REPLY_ACK;
        assert!(protocol.contains(wanted), "{protocol:?}");
        frontend.set_protocol_features(wanted).unwrap();
        let region = VhostUserMemoryRegionInfo {
            guest_phys_addr: 0,
            memory_size: MEMORY as u64,
            userspace_addr: USER,
            mmap_offset: 0,
            mmap_handle: file.as_raw_fd(),
        };
        frontend.set_mem_table(&[region]).unwrap();
        let (kick, call) = (EventFd::new(0).unwrap(), EventFd::new(0).unwrap());
        frontend.set_vring_num(0, RING).unwrap();
        frontend.set_vring_base(0, 0).unwrap();
        let addresses = VringConfigData {
            queue_max_size: RING,
            queue_size: RING,
            flags: 0,
            desc_table_addr: USER + DESCRIPTORS,
            used_ring_addr: USER + USED,
            avail_ring_addr: USER + AVAILABLE,
            log_addr: None,
        };
        frontend.set_vring_addr(0, &addresses).unwrap();
        frontend.set_vring_call(0, &call).unwrap();
        frontend.set_vring_kick(0, &kick).unwrap();
        frontend.set_vring_enable(0, true).unwrap();
        Self { frontend, memory, kick, call, available: 0 }
    }

    fn descriptor(&self, index: u64, address: u64, bytes: u32, flags: u16, next: u16) {
        let at = DESCRIPTORS + index * 16;
        self.memory.write_obj(address, GuestAddress(at)).unwrap();
        self.memory.write_obj(bytes, GuestAddress(at + 8)).unwrap();
        self.memory.write_obj(flags, GuestAddress(at + 12)).unwrap();
        self.memory.write_obj(next, GuestAddress(at + 14)).unwrap();
    }

    fn submit(&mut self, kind: u32, sector: u64, data_bytes: u32) {
        self.queue(0, kind, sector, data_bytes);
        self.kick.write(1).unwrap();
    }

    fn queue(&mut self, place: u64, kind: u32, sector: u64, data_bytes: u32) {
        const NEXT: u16 = 1;
        const WRITE: u16 = 2;
        let (head, status, first) = (HEAD + place * 16, STATUS + place, place * 3);
        self.memory.write_obj(kind, GuestAddress(head)).unwrap();
        self.memory.write_obj(0u32, GuestAddress(head + 4)).unwrap();
        self.memory.write_obj(sector, GuestAddress(head + 8)).unwrap();
        self.memory.write_obj(0xffu8, GuestAddress(status)).unwrap();
        let after_head = if data_bytes == 0 { first + 2 } else { first + 1 } as u16;
        self.descriptor(first, head, 16, NEXT, after_head);
        self.descriptor(first + 1, DATA, data_bytes, NEXT | if kind == IN { WRITE } else { 0 }, first as u16 + 2);
        self.descriptor(first + 2, status, 1, WRITE, 0);
        let slot = AVAILABLE + 4 + u64::from(self.available % RING) * 2;
        self.memory.write_obj(first as u16, GuestAddress(slot)).unwrap();
        self.available += 1;
        self.memory.write_obj(self.available, GuestAddress(AVAILABLE + 2)).unwrap();
    }

    /// Waits for an interrupt; whether one came within 20 seconds.
    fn interrupted(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        // SAFETY: the descriptor is the event's, which lives as long as `self`.
        #[expect(unsafe_code, reason = "EventFd does not lend its descriptor")]
        let call = unsafe { std::os::fd::BorrowedFd::borrow_raw(self.call.as_raw_fd()) };
        let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
        poll(&mut [PollFd::new(&call, PollFlags::IN)], Some(&limit)).unwrap() == 1
    }

    /// Does one request and gives its status byte.
    fn request(&mut self, kind: u32, sector: u64, data_bytes: u32) -> u8 {
        self.submit(kind, sector, data_bytes);
        self.call.read().unwrap();
        let used: u16 = self.memory.read_obj(GuestAddress(USED + 2)).unwrap();
        assert_eq!(used, self.available);
        self.memory.read_obj(GuestAddress(STATUS)).unwrap()
    }
}

fn disk(change: impl FnOnce(&mut DiskSpec)) -> (tempfile::TempDir, Disk) {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    File::create(&image).unwrap().set_len(1 << 20).unwrap();
    let mut spec = DiskSpec::new(&image);
    change(&mut spec);
    let disk = Disk::serve(&spec, &directory.path().join("socket")).unwrap();
    (directory, disk)
}

#[test]
fn writes_reads_and_flushes_are_done_and_counted() {
    let (directory, disk) = disk(|_| ());
    let mut driver = Driver::connect(&disk);
    driver.memory.write_slice(&[0x5a; 4096], GuestAddress(DATA)).unwrap();
    assert_eq!(driver.request(OUT, 8, 4096), 0);
    assert_eq!(driver.request(FLUSH, 0, 0), 0);
    driver.memory.write_slice(&[0; 4096], GuestAddress(DATA)).unwrap();
    assert_eq!(driver.request(IN, 8, 4096), 0);
    let mut back = [0u8; 4096];
    driver.memory.read_slice(&mut back, GuestAddress(DATA)).unwrap();
    assert_eq!(back, [0x5a; 4096]);
    assert_eq!(driver.request(IN, 2048, 512), 1, "beyond the end");
    assert_eq!(driver.request(77, 0, 0), 2, "unknown");
    drop(driver);
    let counters = disk.finish();
    assert_eq!((counters.writes, counters.write_bytes), (1, 4096));
    assert_eq!((counters.reads, counters.read_bytes), (1, 4096));
    assert_eq!((counters.flushes, counters.guest_errors), (1, 2));
    assert_eq!(std::fs::read(directory.path().join("image")).unwrap()[4096..8192], [0x5a; 4096]);
}

#[test]
fn the_write_cache_is_on_and_can_be_switched_off() {
    let (_directory, disk) = disk(|spec| spec.sector_bytes = 4096);
    let mut driver = Driver::connect(&disk);
    let read =
        |driver: &mut Driver| driver.frontend.get_config(0, 60, VhostUserConfigFlags::WRITABLE, &[0; 60]).unwrap().1;
    let config = read(&mut driver);
    assert_eq!(config[..8], 2048u64.to_le_bytes());
    assert_eq!(config[20..24], 4096u32.to_le_bytes());
    assert_eq!(config[32], 1, "write-back");
    driver.frontend.set_config(32, VhostUserConfigFlags::WRITABLE, &[0]).unwrap();
    assert_eq!(read(&mut driver)[32], 0);
    assert_eq!(driver.request(OUT, 0, 4096), 0);
    assert!(disk.counters().write_through);
}

#[test]
fn faults_hit_what_they_name() {
    let nth = |n, effect| Fault { operation: Some(Operation::Write), trigger: Trigger::Nth(n), effect };
    let (_directory, disk) = disk(|spec| spec.faults = vec![nth(2, Effect::Error), nth(4, Effect::Stall)]);
    let mut driver = Driver::connect(&disk);
    assert_eq!(driver.request(OUT, 0, 512), 0);
    assert_eq!(driver.request(OUT, 0, 512), 1);
    assert_eq!(driver.request(IN, 0, 512), 0);
    assert_eq!(driver.request(OUT, 0, 512), 0);
    driver.submit(OUT, 0, 512);
    let start = Instant::now();
    while disk.counters().stalled == 0 && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(driver);
    let counters = disk.finish();
    assert_eq!((counters.injected_errors, counters.stalled, counters.writes), (1, 1, 4), "{counters:?}");
}

fn cached_bytes(path: &std::path::Path) -> usize {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    let file = File::open(path).unwrap();
    let bytes = file.metadata().unwrap().len() as usize;
    let mut resident = vec![0u8; bytes.div_ceil(4096)];
    // SAFETY: a mapping of its own, never accessed; `resident` has a byte for each of its pages.
    #[expect(unsafe_code, reason = "mincore(2) has no safe wrapper")]
    unsafe {
        let at = mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, &file, 0).unwrap();
        assert_eq!(libc::mincore(at, bytes, resident.as_mut_ptr()), 0);
        munmap(at, bytes).unwrap();
    }
    resident.iter().filter(|&&page| page & 1 != 0).count() * 4096
}

#[test]
fn what_was_read_or_flushed_is_cold_again() {
    for host_cache in [false, true] {
        let (directory, disk) = disk(|spec| spec.host_cache = host_cache);
        let image = directory.path().join("image");
        if rustix::fs::statfs(&image).unwrap().f_type == libc::TMPFS_MAGIC {
            eprintln!("skipped: the temporary directory is a tmpfs, whose files are always in memory");
            return;
        }
        let mut driver = Driver::connect(&disk);
        assert_eq!(driver.request(OUT, 0, 256 << 10), 0);
        assert_eq!(cached_bytes(&image), 256 << 10, "the write cache, before the flush");
        assert_eq!(driver.request(FLUSH, 0, 0), 0);
        let after_flush = cached_bytes(&image);
        assert_eq!(driver.request(IN, 0, 128 << 10), 0);
        let after_read = cached_bytes(&image);
        let expected = if host_cache { (256 << 10, 256 << 10) } else { (0, 0) };
        assert_eq!((after_flush, after_read), expected, "host_cache: {host_cache}");
    }
}

#[test]
fn a_read_does_not_wait_for_the_flush_behind_it() {
    let (_directory, disk) = disk(|_| ());
    let mut driver = Driver::connect(&disk);
    driver.queue(0, IN, 0, 4096);
    driver.queue(1, FLUSH, 0, 0);
    driver.kick.write(1).unwrap();
    // One interrupt for each: had the read waited for the flush, there would be one for both.
    let mut interrupts = 0;
    while interrupts < 2 && driver.interrupted() {
        interrupts += driver.call.read().unwrap();
    }
    assert_eq!(interrupts, 2);
    let used: u16 = driver.memory.read_obj(GuestAddress(USED + 2)).unwrap();
    assert_eq!(used, 2);
}

#[test]
fn a_slow_disk_is_at_least_as_slow_as_asked() {
    let speed = Speed { latency: Some(Duration::from_millis(20)), ..Speed::default() };
    let (_directory, disk) = disk(|spec| spec.speed = speed);
    let mut driver = Driver::connect(&disk);
    for _ in 0..5 {
        assert_eq!(driver.request(IN, 0, 512), 0);
    }
    let counters = disk.counters();
    assert!(counters.read_ns >= 5 * 19_000_000, "{counters:?}");
}

#[test]
fn a_hostile_frontend_is_disconnected_and_the_next_one_is_served() {
    let (_directory, disk) = disk(|_| ());
    let header = |request: u32, flags: u32, bytes: u32| [request, flags, bytes].map(u32::to_ne_bytes).concat();
    for message in [
        header(1, 2, 0),
        header(5, 1, u32::MAX),
        [header(5, 1, 8), vec![0xff; 8]].concat(),
        header(200, 1, 0),
        [header(8, 1, 8), [7u32, 256].map(u32::to_ne_bytes).concat()].concat(),
        // Too small for a request in as many pieces as the disk offers to take.
        [header(8, 1, 8), [0u32, 128].map(u32::to_ne_bytes).concat()].concat(),
        [header(9, 1, 40), vec![0x41; 40]].concat(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
    ] {
        let mut stream = UnixStream::connect(disk.socket()).unwrap();
        stream.write_all(&message).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let end = std::io::Read::read(&mut stream, &mut [0; 16]);
        assert!(matches!(end, Ok(0)) || end.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset));
    }
    assert_eq!(Driver::connect(&disk).request(IN, 0, 512), 0);
}

#[test]
fn what_cannot_be_a_disk_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let missing = Disk::serve(&DiskSpec::new(directory.path().join("nothing")), &socket).unwrap_err();
    assert!(missing.to_string().contains("No such file"), "{missing}");
    let odd = directory.path().join("odd");
    std::fs::write(&odd, [0; 700]).unwrap();
    assert!(Disk::serve(&DiskSpec::new(&odd), &socket).unwrap_err().to_string().contains("not a multiple"));
    let spec = DiskSpec { sector_bytes: 1000, ..DiskSpec::new(&odd) };
    assert!(matches!(Disk::serve(&spec, &socket), Err(DiskError::SectorSize(1000))));
    // Dropped without ever having had a guest.
    let image = directory.path().join("image");
    File::create(&image).unwrap().set_len(1 << 20).unwrap();
    drop(Disk::serve(&DiskSpec::new(&image), &socket).unwrap());
    assert!(!socket.exists());
}

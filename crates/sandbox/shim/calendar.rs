//! Stand-ins for what libc does with the sockets of an exact guest's calendar and disk: most of what its kernel asks them is
//! answered here, in its own process, for each change between processes costs more than the request that it is for.
//!
//! The calendar is asked when the guest waits: until when, or until an interrupt (`exact/messages.rs`). Requests on the disk's ring
//! are announced with that, for no time passes before: as soon as there are any, the guest has to wait even for the next
//! nanosecond. A guest whose work takes time announces them at once. Messages of the set-up of the disk go through.

use core::arch::asm;

const EINTR: i32 = 4;
const EAGAIN: i32 = 11;
const SIGIO: usize = 29;
const POLLIN: i16 = 1;
const EPOLLIN: u32 = 1;

const SYS_READ: usize = 0;
const SYS_WRITE: usize = 1;
const SYS_CLOSE: usize = 3;
const SYS_POLL: usize = 7;
const SYS_GETPID: usize = 39;
const SYS_CONNECT: usize = 42;
const SYS_SENDMSG: usize = 46;
const SYS_RECVMSG: usize = 47;
const SYS_SOCKETPAIR: usize = 53;
const SYS_GETTID: usize = 186;
const SYS_EXIT_GROUP: usize = 231;
const SYS_EPOLL_WAIT: usize = 232;
const SYS_EPOLL_CTL: usize = 233;
const SYS_TGKILL: usize = 234;

/// Messages of time travel, as its kernel numbers them.
const ACK: u32 = 0;
const REQUEST: u32 = 2;
const WAIT: u32 = 3;
const GET: u32 = 4;
const UPDATE: u32 = 5;
const RUN: u32 = 6;
const FREE_UNTIL: u32 = 7;
const TIME_OF_DAY: u32 = 8;

/// The time of day at which every guest starts: 2020-01-01.
const START_OF_TIME_NS: u64 = 1_577_836_800_000_000_000;

/// Messages of vhost-user: requests are on the ring; here is the channel for interrupts.
const KICK: u32 = 35;
const SET_CHANNEL: u32 = 21;

/// The disk's interrupt, and its answer to a kick.
const INTERRUPT: [u32; 5] = [4, 1 | 1 << 3, 8, 0, 0];
const KICKED: [u32; 5] = [KICK, 1 | 1 << 2, 8, 0, 0];

const NEVER: u64 = u64::MAX;
const NONE: i32 = -2;

/// Most that the calendar has said and the guest has not read.
const TOLD: usize = 8;

#[repr(C)]
#[derive(Clone, Copy)]
struct Message {
    operation: u32,
    sequence: u32,
    time_ns: u64,
}

/// What the calendar is asked: what there is, the guest's time, when it wants to go on. Its answer: what follows, the time, and until
/// when the guest may go on by itself.
type Words = [u64; 3];

/// What there is: the guest's last word, nothing else, a message at the disk's socket, or nothing to do. With it, requests on the
/// disk's ring.
const ENDS: u64 = 0;
const GOES_ON: u64 = 1;
const AT_SOCKET: u64 = 2;
const WAITS: u64 = 3;
const ON_RING: u64 = 1 << 8;

/// What follows: the disk interrupts the guest; requests are to be announced at once.
const INTERRUPTS: u64 = 1;
const AT_ONCE: u64 = 2;

#[repr(C)]
pub struct Part {
    base: *mut u8,
    length: usize,
}

#[repr(C)]
pub struct Envelope {
    name: *const u8,
    name_length: u32,
    parts: *const Part,
    count: usize,
    control: *mut u8,
    control_length: usize,
    flags: i32,
}

#[repr(C)]
pub struct Polled {
    file: i32,
    events: i16,
    ready: i16,
}

#[repr(C, packed)]
#[derive(Clone, Copy)]
pub struct Event {
    events: u32,
    data: u64,
}

struct State {
    calendar: i32,
    disk: i32,
    /// The guest's end of the channel for interrupts, and what epoll is to say of it.
    channel: i32,
    data: u64,
    /// Ends of the pair that was made last.
    pair: [i32; 2],
    now_ns: u64,
    request_ns: u64,
    may_ns: u64,
    waiting: bool,
    /// Requests that the calendar does not know of yet, and whether there may be such.
    on_ring: bool,
    at_once: bool,
    sequence: u32,
    /// To the guest, from its calendar.
    told: [Message; TOLD],
    first: usize,
    count: usize,
    /// Bytes of the answer to a kick, and of an interrupt, that the guest has not read.
    kicked: usize,
    interrupt: usize,
    reported: bool,
    itself: [usize; 2],
}

const BLANK: Message = Message { operation: ACK, sequence: 0, time_ns: 0 };

/// Only the kernel's own thread uses these files.
static mut STATE: State = State {
    calendar: NONE,
    disk: NONE,
    channel: NONE,
    data: 0,
    pair: [NONE; 2],
    now_ns: 0,
    request_ns: NEVER,
    may_ns: 0,
    waiting: false,
    on_ring: false,
    at_once: false,
    sequence: 0,
    told: [BLANK; TOLD],
    first: 0,
    count: 0,
    kicked: 0,
    interrupt: 0,
    reported: false,
    itself: [0; 2],
};

unsafe extern "C" {
    fn __errno_location() -> *mut i32;
}

fn state() -> &'static mut State {
    // SAFETY: one thread, and nothing here calls back while it holds this: a signal is raised after the last use.
    unsafe { &mut *(&raw mut STATE) }
}

fn failed(code: i32) -> isize {
    // SAFETY: libc's own, valid for the calling thread.
    unsafe { *__errno_location() = code };
    -1
}

/// As libc does it.
unsafe fn system_call(number: usize, arguments: [usize; 4]) -> isize {
    let result: isize;
    // SAFETY: the caller's arguments, passed on to the kernel as libc would.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    if (-4095..0).contains(&result) { failed(-result as i32) } else { result }
}

/// Nothing in the guest may go on. Says why and ends the process, not by abort as after a panic.
fn broken(why: &[u8]) -> ! {
    for words in [b"fstone's library in the kernel's process: ", why, b"\n"] {
        // SAFETY: the words are there for as long as the call takes.
        unsafe { system_call(SYS_WRITE, [2, words.as_ptr() as usize, words.len(), 0]) };
    }
    loop {
        // SAFETY: ends the process.
        unsafe { system_call(SYS_EXIT_GROUP, [1, 0, 0, 0]) };
    }
}

impl State {
    fn tell(&mut self, operation: u32, time_ns: u64) {
        self.sequence = self.sequence.wrapping_add(1);
        self.push(Message { operation, sequence: self.sequence, time_ns });
    }

    fn push(&mut self, message: Message) {
        if self.count == TOLD {
            broken(b"the kernel does not read what its calendar says");
        }
        self.told[(self.first + self.count) % TOLD] = message;
        self.count += 1;
    }

    /// The guest's word to its calendar.
    fn hear(&mut self, message: Message) {
        let mut time_ns = 0;
        match message.operation {
            ACK => return,
            REQUEST => self.request_ns = message.time_ns,
            WAIT => self.waiting = true,
            GET => time_ns = self.now_ns,
            UPDATE => self.now_ns = message.time_ns,
            TIME_OF_DAY => time_ns = START_OF_TIME_NS,
            _ => {}
        }
        self.push(Message { operation: ACK, sequence: message.sequence, time_ns });
    }

    /// There are requests on the ring. What came with them may be complete before the guest was to be stopped.
    fn kick(&mut self) {
        self.on_ring = true;
        if self.at_once {
            self.ask(GOES_ON);
        }
        self.kicked = size_of_val(&KICKED);
        if !self.waiting {
            self.tell(FREE_UNTIL, if self.on_ring { self.now_ns } else { self.may_ns });
        }
    }

    /// Whether the answer is an interrupt.
    fn ask(&mut self, what: u64) -> bool {
        let on_ring = if core::mem::take(&mut self.on_ring) { ON_RING } else { 0 };
        let question: Words = [what | on_ring, self.now_ns, self.request_ns];
        let mut answer: Words = [0; 3];
        let bytes = size_of::<Words>();
        // SAFETY: both are there for as long as the calls take.
        unsafe {
            let file = self.calendar as usize;
            if system_call(SYS_WRITE, [file, question.as_ptr() as usize, bytes, 0]) != bytes as isize {
                broken(b"the calendar is gone");
            }
            loop {
                match system_call(SYS_READ, [file, answer.as_mut_ptr() as usize, bytes, 0]) {
                    count if count == bytes as isize => break,
                    -1 if *__errno_location() == EINTR => {}
                    _ => broken(b"the calendar is gone"),
                }
            }
        }
        let follows;
        [follows, self.now_ns, self.may_ns] = answer;
        self.at_once = follows & AT_ONCE != 0;
        follows & INTERRUPTS != 0
    }

    /// The guest waits, and nothing is there for it to read: time passes. Whether the disk interrupts it.
    fn pass(&mut self) -> bool {
        if !self.waiting {
            broken(b"the kernel waits, and has not said so");
        }
        let goes_on_now = !self.on_ring && self.request_ns <= self.now_ns && self.request_ns < self.may_ns;
        if !goes_on_now && self.ask(WAITS) {
            self.interrupt = size_of_val(&INTERRUPT);
            self.reported = false;
            return true;
        }
        self.request_ns = NEVER;
        self.waiting = false;
        self.tell(FREE_UNTIL, self.may_ns);
        self.tell(RUN, self.now_ns);
        false
    }
}

/// Copies what is unread of a message.
unsafe fn unread(message: &[u32; 5], left: &mut usize, buffer: *mut u8, length: usize) -> isize {
    let count = length.min(*left);
    // SAFETY: no more than is left of the message, and than the caller's buffer has room for.
    unsafe {
        let from = message.as_ptr().cast::<u8>().add(size_of_val(message) - *left);
        core::ptr::copy_nonoverlapping(from, buffer, count);
    }
    *left -= count;
    count as isize
}

/// # Safety
/// As read(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(file: i32, buffer: *mut u8, length: usize) -> isize {
    let state = state();
    // SAFETY: the caller's buffer has room for as much as it says; other files are libc's.
    unsafe {
        if file == state.calendar {
            if state.count == 0 || length != size_of::<Message>() {
                broken(b"the kernel reads what its calendar has not said");
            }
            buffer.cast::<Message>().write_unaligned(state.told[state.first % TOLD]);
            state.first = (state.first + 1) % TOLD;
            state.count -= 1;
            return length as isize;
        }
        if file == state.disk && state.kicked > 0 {
            return unread(&KICKED, &mut state.kicked, buffer, length);
        }
        if file == state.channel {
            if state.interrupt == 0 {
                return failed(EAGAIN);
            }
            return unread(&INTERRUPT, &mut state.interrupt, buffer, length);
        }
        system_call(SYS_READ, [file as usize, buffer as usize, length, 0])
    }
}

/// # Safety
/// As write(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(file: i32, buffer: *const u8, length: usize) -> isize {
    let state = state();
    // SAFETY: the caller's buffer holds as much as it says; other files are libc's.
    unsafe {
        if file == state.calendar {
            if length != size_of::<Message>() {
                broken(b"the kernel writes what is no message to its calendar");
            }
            state.hear(buffer.cast::<Message>().read_unaligned());
            return length as isize;
        }
        system_call(SYS_WRITE, [file as usize, buffer as usize, length, 0])
    }
}

/// # Safety
/// As sendmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(file: i32, message: *const Envelope, flags: i32) -> isize {
    let state = state();
    // SAFETY: the caller's message is whole; other files are libc's.
    unsafe {
        let part = &*(*message).parts;
        if file == state.channel {
            // Its answer to an interrupt.
            return part.length as isize;
        }
        if file == state.disk {
            match part.base.cast::<u32>().read_unaligned() {
                KICK => {
                    state.kick();
                    return part.length as isize;
                }
                SET_CHANNEL => state.channel = state.pair[0],
                _ => {}
            }
            let sent = system_call(SYS_SENDMSG, [file as usize, message as usize, flags as usize, 0]);
            state.ask(AT_SOCKET);
            return sent;
        }
        system_call(SYS_SENDMSG, [file as usize, message as usize, flags as usize, 0])
    }
}

/// How kernels from 6.12 on read the first answer of their calendar, with which files could come.
///
/// # Safety
/// As recvmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(file: i32, message: *mut Envelope, flags: i32) -> isize {
    // SAFETY: the caller's message has room for what it says; other files are libc's.
    unsafe {
        if file == state().calendar {
            (*message).control_length = 0;
            let part = &*(*message).parts;
            return read(file, part.base, part.length);
        }
        system_call(SYS_RECVMSG, [file as usize, message as usize, flags as usize, 0])
    }
}

/// # Safety
/// As poll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(files: *mut Polled, count: usize, timeout: i32) -> i32 {
    let state = state();
    // SAFETY: the caller has as many as it says.
    let polled = unsafe { core::slice::from_raw_parts_mut(files, count) };
    let ours = polled.iter().any(|one| one.file == state.calendar);
    let disk = polled.iter().any(|one| one.file == state.disk);
    let ready = if !ours {
        NONE
    } else if state.count > 0 {
        state.calendar
    } else if disk {
        if state.kicked > 0 { state.disk } else { NONE }
    } else if state.pass() {
        let [process, thread] = state.itself;
        // SAFETY: the guest's kernel has a handler for it, which reads the interrupt.
        unsafe { system_call(SYS_TGKILL, [process, thread, SIGIO, 0]) };
        return failed(EINTR) as i32;
    } else {
        state.calendar
    };
    if ready == NONE {
        // SAFETY: as asked by the caller. Nothing comes from the calendar by itself.
        return unsafe { system_call(SYS_POLL, [files as usize, count, timeout as usize, 0]) } as i32;
    }
    for one in polled {
        one.ready = if one.file == ready { POLLIN } else { 0 };
    }
    1
}

/// What poll is called where compilers harden programs unasked.
///
/// # Safety
/// As poll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __poll_chk(files: *mut Polled, count: usize, timeout: i32, _bytes: usize) -> i32 {
    // SAFETY: as asked by the caller.
    unsafe { poll(files, count, timeout) }
}

/// # Safety
/// As connect(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(file: i32, address: *const u8, length: u32) -> i32 {
    let state = state();
    // SAFETY: as asked by the caller; its address has a family and a name.
    unsafe {
        let result = system_call(SYS_CONNECT, [file as usize, address as usize, length as usize, 0]) as i32;
        let name = |expected: &[u8]| {
            let bytes = core::slice::from_raw_parts(address.add(2), length.saturating_sub(2) as usize);
            bytes.starts_with(expected)
        };
        if result == 0 && name(b"calendar\0") {
            state.calendar = file;
            state.itself = [system_call(SYS_GETPID, [0; 4]) as usize, system_call(SYS_GETTID, [0; 4]) as usize];
        }
        if result == 0 && name(b"disk\0") {
            state.disk = file;
        }
        result
    }
}

/// # Safety
/// As socketpair(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socketpair(domain: i32, kind: i32, protocol: i32, pair: *mut i32) -> i32 {
    // SAFETY: as asked by the caller, which has room for two.
    unsafe {
        let result = system_call(SYS_SOCKETPAIR, [domain as usize, kind as usize, protocol as usize, pair as usize]);
        if result == 0 {
            state().pair = [*pair, *pair.add(1)];
        }
        result as i32
    }
}

/// # Safety
/// As epoll_ctl(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(epoll: i32, operation: i32, file: i32, event: *const Event) -> i32 {
    let state = state();
    // SAFETY: as asked by the caller.
    unsafe {
        if (file == state.channel || file == state.pair[0]) && !event.is_null() {
            state.data = (*event).data;
        }
        system_call(SYS_EPOLL_CTL, [epoll as usize, operation as usize, file as usize, event as usize]) as i32
    }
}

/// # Safety
/// As epoll_wait(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(epoll: i32, events: *mut Event, most: i32, timeout: i32) -> i32 {
    let state = state();
    // SAFETY: as asked by the caller, which has room for one.
    unsafe {
        if state.interrupt > 0 && !state.reported {
            state.reported = true;
            *events = Event { events: EPOLLIN, data: state.data };
            return 1;
        }
        system_call(SYS_EPOLL_WAIT, [epoll as usize, events as usize, most as usize, timeout as usize]) as i32
    }
}

/// # Safety
/// As close(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(file: i32) -> i32 {
    let state = state();
    if file == state.channel && file >= 0 {
        // The last word of a guest that powers off is its time.
        state.ask(ENDS);
    }
    for ours in [&mut state.calendar, &mut state.disk, &mut state.channel] {
        if *ours == file && file >= 0 {
            *ours = NONE;
        }
    }
    // SAFETY: as asked by the caller.
    unsafe { system_call(SYS_CLOSE, [file as usize, 0, 0, 0]) as i32 }
}

//! A call from its beginning to its end: what it is about, and what it did.

use super::decode::{Asked, What, decode};
use super::filter;
use super::places::{MOST_NAME, without_links};
use super::preload::{self, Event, Happened, Pointed, Until};
use super::ptrace::{self, Called, Resume};
use super::state::{AGAIN, Named, Pending, Tracer, Wait, hashed};
use super::tables::{self, Slot};
use crate::call::{ACL_BYTES, Call, IMPLICIT, Kind, TIMED_OUT, mode_of_acl};
use crate::file;
use libc::pid_t;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

/// Of the name of an attribute, with its end.
const MOST_ATTRIBUTE: usize = 256;
/// Of a socket's name, whose end the kernel does not ask for.
const MOST_SOCKET: usize = 108;

/// Of a call that changes a file or what a name stands for: whether it follows a link that is the last part of that name.
fn changes_through(call: &Call, second: bool) -> Option<bool> {
    let has = |flag: i32| call.flags & flag as u32 != 0;
    match call.kind {
        Kind::Mkdir | Kind::Rmdir | Kind::Unlink | Kind::Rename | Kind::Symlink | Kind::Mknod => Some(false),
        Kind::Link => Some(!second && has(libc::AT_SYMLINK_FOLLOW)),
        Kind::Truncate => Some(true),
        Kind::Chmod | Kind::Chown | Kind::Utimens | Kind::Setxattr | Kind::Removexattr => {
            Some(!has(libc::AT_SYMLINK_NOFOLLOW))
        }
        _ => None,
    }
}

impl Tracer {
    /// Records what programs have kept: of one thread all, of others what was until some time.
    pub(super) fn catch_up(&mut self, of: Option<pid_t>, until: Until) {
        let Some(mut preload) = self.preload.take_if(|preload| preload.are_used()) else { return };
        let events = preload.events(of, until, || self.now());
        self.preload = Some(preload);
        let spent_ns = self.spent(&events);
        for (Event { ns, cost_ns, thread, entry, what }, spent_ns) in events.into_iter().zip(spent_ns) {
            let Some(state) = self.threads.get_mut(&thread) else { continue };
            let ns = if state.resumed_ns == u64::MAX { ns } else { ns.max(state.resumed_ns) };
            (state.resumed_ns, state.kept) = (ns + cost_ns[1], true);
            *state.active_ns.get_or_insert(0.0) += spent_ns as f64;
            self.sums.add(state.weight, cost_ns.iter().sum(), spent_ns);
            state.ran(spent_ns);
            let ran_ns = std::mem::take(&mut state.ran_ns);
            let of = state.number;
            match what {
                Happened::Began { number, arguments, pointed } => {
                    state.think_ns += ran_ns + state.wait.take().map_or(0, |wait| wait.took_ns);
                    state.interrupted.iter_mut().for_each(|interrupted| interrupted.is_last = false);
                    self.was_at_work(thread, of, ns);
                    let Some(asked) = decode(number, arguments) else { continue };
                    self.pointed = Some(pointed);
                    let pending = self.pending(thread, of, asked, ns);
                    self.kept.insert((thread, entry), pending);
                }
                Happened::Ended { result } => {
                    let Some(pending) = self.kept.remove(&(thread, entry)) else { continue };
                    self.pointed = Some(Pointed::new());
                    self.was_at_work(thread, of, ns);
                    self.finished(thread, pending, result, ran_ns, ns);
                }
            }
        }
        self.pointed = None;
    }

    /// A thread is about to make a call.
    pub(super) fn entered(&mut self, thread: pid_t, now: u64, called: Option<Called>) {
        // A signal's handler has jumped out of the one before.
        if let Some(pending) = self.threads.get_mut(&thread).and_then(|state| state.pending.take()) {
            self.unreturned(thread, &pending);
        }
        let Some(state) = self.threads.get_mut(&thread) else { return self.go_on(thread, 0) };
        state.think_ns += std::mem::take(&mut state.ran_ns);
        let number = state.number;
        let called = called.filter(|called| !called.foreign);
        let mut asked = called.and_then(|called| decode(called.number, called.arguments));
        let is_again = |wait: &mut Wait| asked.is_some_and(|asked| asked.what == What::Call(wait.kind));
        state.think_ns += state.wait.take_if(|wait| !is_again(wait)).map_or(0, |wait| wait.took_ns);
        if !asked.is_some_and(|asked| asked.waits() || asked.what == What::Again) {
            state.interrupted.iter_mut().for_each(|interrupted| interrupted.is_last = false);
        }
        if let Some(Called { arguments: [preload::HELLO, fd, word, ..], .. }) =
            called.filter(|called| called.number == libc::SYS_close_range as u64)
        {
            self.welcome(thread, fd, word);
            return self.go_on(thread, 0);
        }
        if let (Some(preload), true) =
            (&self.preload, called.is_some_and(|called| filter::ends_keeping(called.number, called.arguments)))
        {
            preload.off(thread);
        }
        if called.is_some_and(|called| filter::SANDBOXES.contains(&called.number)) {
            self.preload.iter_mut().for_each(|preload| preload.forbid(thread));
            return self.go_on(thread, 0);
        }
        if called.is_some_and(|called| filter::DIRECTORIES.contains(&called.number)) {
            return self.resume(thread, Resume::ToCallsEnd, 0);
        }
        if let Some(number) = called.map(|called| called.number).filter(|number| filter::PROCESSORS.contains(number)) {
            if number != filter::PROCESSORS[0] {
                self.processors.leave(self.threads.keys().chain(&self.early).copied());
            } else if self.asks(thread) {
                return self.resume(thread, Resume::ToCallsEnd, 0);
            }
            return self.go_on(thread, 0);
        }
        if asked.is_some_and(|asked| asked.what == What::Again) {
            asked = state.interrupted.as_ref().map(|interrupted| interrupted.rest(now));
            if asked.is_none() {
                return self.go_on(thread, 0);
            }
        }
        let Some(asked) = asked else {
            if let Some(writer) = self.writer.as_mut() {
                writer.outside(0, Some(b"a call of another architecture"));
            }
            return self.go_on(thread, 0);
        };
        if let (Some(preload), true) = (&mut self.preload, state.is_alone) {
            preload.invite(thread);
        }
        let pending = self.pending(thread, number, asked, now);
        let is_own_status = |path: &Vec<u8>| path.starts_with(b"/proc/") && path.ends_with(b"/status");
        if pending.call.kind.reads()
            && pending.outside.as_ref().is_some_and(|path| path.as_ref().is_some_and(is_own_status))
        {
            self.asks(thread);
        }
        // Without another stop at its end, for half of what a new program does is to load its libraries.
        if let Some(name) = pending.outside.as_ref().filter(|_| self.samples.is_none() && pending.ends_unseen()) {
            self.outside(name.as_ref(), 0);
            return self.go_on(thread, 0);
        }
        if let (Kind::Spawn, Some(preload)) = (pending.call.kind, &mut self.preload)
            && pending.call.flags & (libc::CLONE_VM | libc::CLONE_THREAD) as u32 == libc::CLONE_VM as u32
        {
            preload.pause(thread, true);
        }
        if let Some(state) = self.threads.get_mut(&thread) {
            // Calls that do not return to the tracer's knowledge are none; all others end in a stop.
            state.pending = Some(pending);
        }
        self.go_on(thread, 0);
    }

    pub(super) fn pending(&mut self, thread: pid_t, number: u32, mut asked: Asked, now: u64) -> Pending {
        let kind = match asked.what {
            What::Call(kind) => kind,
            _ => Kind::Close,
        };
        let mut call = Call {
            kind,
            thread: number,
            begin_ns: now,
            offset: asked.offset,
            length: asked.length,
            flags: asked.flags,
            mode: asked.mode as u16,
            ..Call::default()
        };
        if asked.waits() {
            call.took_ns = self.most_ns(thread, &asked, now);
            if let Some(state) = self.threads.get_mut(&thread)
                && let Some(before) = state.interrupted.take()
            {
                state.think_ns += before.missing_ns(&asked, call.took_ns, now);
            }
        }
        let mut pending = Pending {
            asked,
            call,
            at: None,
            to: None,
            text: None,
            path: Vec::new(),
            new_path: Vec::new(),
            outside: None,
            is_lost: false,
        };
        let mut bound = None;
        if matches!(kind, Kind::Setxattr | Kind::Getxattr) && asked.other_pointer != 0 {
            // struct xattr_args: where the value is, its length, flags.
            let arguments = [0, 8].map(|at| self.number(thread, asked.other_pointer.wrapping_add(at)).unwrap_or(0));
            (asked.pointer, call.length) = (arguments[0], u64::from(arguments[1] as u32));
            call.flags |= (arguments[1] >> 32) as u32 & (libc::XATTR_CREATE | libc::XATTR_REPLACE) as u32;
        }
        match kind {
            Kind::Open if asked.pointer != 0 => {
                let how = [0, 8].map(|at| self.number(thread, asked.pointer.wrapping_add(at)).unwrap_or(0));
                (call.flags, call.mode) = (how[0] as u32, how[1] as u16);
            }
            Kind::Readv | Kind::Preadv | Kind::Writev | Kind::Pwritev => {
                call.length = self.vector_bytes(thread, asked.pointer, asked.count);
            }
            Kind::Spawn if asked.pointer != 0 => call.flags = self.number(thread, asked.pointer).unwrap_or(0) as u32,
            Kind::Sendfile | Kind::CopyRange | Kind::Splice => {
                [call.offset, call.other_offset] = [asked.pointer, asked.other_pointer]
                    .map(|address| self.number(thread, address).map_or(-1, |offset| offset as i64));
            }
            Kind::Reflink if asked.pointer != 0 => {
                // struct file_clone_range: descriptor, offset, length, offset in the other.
                let [fd, offset, length, other_offset] =
                    [0, 8, 16, 24].map(|at| self.number(thread, asked.pointer.wrapping_add(at)).unwrap_or(u64::MAX));
                asked.fd = Some(fd as i32);
                (call.offset, call.length, call.other_offset) = (offset as i64, length, other_offset as i64);
            }
            Kind::Setxattr | Kind::Fsetxattr if call.length == ACL_BYTES as u64 => {
                let mut value = [0; ACL_BYTES];
                let got = self.read(thread, asked.pointer, &mut value);
                call.mode = mode_of_acl(&value[..got]).unwrap_or(0);
            }
            Kind::Bind => {
                // struct sockaddr_un, unless the name is none of a file. What is behind its length is the program's.
                let mut address = [0; 2 + MOST_SOCKET];
                let length = address.len().min(asked.count as u32 as usize);
                let got = self.read(thread, asked.pointer, &mut address[..length]);
                let name = address[..got].strip_prefix(&(libc::AF_UNIX as u16).to_ne_bytes()).unwrap_or_default();
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                if name.is_empty() {
                    pending.outside = Some(None);
                } else {
                    asked.at = Some((libc::AT_FDCWD, asked.pointer.wrapping_add(2)));
                    bound = Some(name.to_vec());
                }
            }
            Kind::PolledRing => {
                // struct io_uring_params: two numbers of entries, flags. Without a thread that polls each request needs a call.
                const SQPOLL: u32 = 1 << 1;
                if self.number(thread, asked.pointer.wrapping_add(8)).unwrap_or(0) as u32 & SQPOLL == 0 {
                    pending.outside = Some(None);
                }
            }
            Kind::Lock => {
                // struct flock: type, whence, start, length.
                let fields = [0, 8, 16].map(|at| self.number(thread, asked.pointer.wrapping_add(at)).unwrap_or(0));
                (call.mode, call.offset, call.length) = (fields[0] as u16, fields[1] as i64, fields[2]);
                call.other_offset = i64::from((fields[0] >> 16) as u16);
            }
            _ => {}
        }
        if matches!(kind, Kind::Uring | Kind::PolledRing) && pending.outside.is_none() {
            self.has_ring(thread);
        }
        if asked.what == What::Call(Kind::Close) {
            if self.threads.get(&thread).is_some_and(|state| state.has_ring) {
                self.slot(thread, asked.fd.unwrap_or(-1), now);
            }
            // Its number may be given to another thread's file as soon as the call begins.
            let descriptors = self.threads[&thread].descriptors.clone();
            match self.forget(thread, &descriptors, asked.fd.unwrap_or(-1)) {
                Some(file) => call.file = file,
                None => pending.outside = Some(None),
            }
            pending.call = call;
            return pending;
        }
        if asked.text != 0 {
            let most = if kind == Kind::Symlink { MOST_NAME } else { MOST_ATTRIBUTE };
            pending.text = self.string(thread, asked.text).filter(|text| text.len() < most);
        }
        for second in [false, true] {
            let Some((mut directory, address)) = (if second { asked.to } else { asked.at }) else { continue };
            let name = match bound.take() {
                None if address == 0 => Some(Vec::new()),
                None => self.string(thread, address),
                bound => bound,
            };
            let Some(mut name) = name else {
                pending.outside = Some(None);
                continue;
            };
            if let Some((from, rest)) = tables::below_own(&name, || tables::process(thread)) {
                (directory, name) = (from, rest.to_vec());
            }
            if let Some(fd) = tables::descriptor(&name).filter(|_| !second) {
                match kind {
                    // A descriptor that is only for reading, or with O_PATH, does not keep these from what its name is of.
                    Kind::Open | Kind::Truncate => name = tables::look(thread, fd).map_or(name, |found| found.path),
                    Kind::Setxattr | Kind::Getxattr | Kind::Listxattr | Kind::Removexattr
                        if call.flags & libc::AT_SYMLINK_NOFOLLOW as u32 == 0 =>
                    {
                        name = tables::look(thread, fd).map_or(name, |found| found.path);
                    }
                    Kind::Link | Kind::Stat | Kind::Chown | Kind::Chmod | Kind::Utimens
                        if call.flags & libc::AT_SYMLINK_NOFOLLOW as u32 == 0 =>
                    {
                        (directory, name) = (fd, Vec::new());
                    }
                    _ => {}
                }
            }
            if name.is_empty() && (second || directory == libc::AT_FDCWD) {
                // No name at all, which is an error, and not the working directory's.
                pending.outside = Some(None);
                continue;
            }
            if name.is_empty() {
                // AT_EMPTY_PATH: about the descriptor itself.
                call.kind = match call.kind {
                    Kind::Stat => Kind::Fstat,
                    Kind::Chown => Kind::Fchown,
                    Kind::Chmod => Kind::Fchmod,
                    Kind::Utimens => Kind::Futimens,
                    Kind::Setxattr => Kind::Fsetxattr,
                    Kind::Getxattr => Kind::Fgetxattr,
                    Kind::Listxattr => Kind::Flistxattr,
                    Kind::Removexattr => Kind::Fremovexattr,
                    kind => kind,
                };
                asked.fd = Some(directory);
                continue;
            }
            let (mut named, mut path) = self.named(thread, directory, &name, now);
            // By a link from elsewhere it may be below a root all the same. What is in /proc is another process's here.
            if named.is_none()
                && !path.starts_with(b"/proc/")
                && let Some(real) = changes_through(&call, second).and_then(|follow| without_links(&path, follow))
                && let Some(name) = self.roots.below(&real)
            {
                (named, path) = (Some(Named { base: 0, name }), real);
            }
            if named.is_none() {
                pending.outside = Some(Some(path.clone()));
            }
            if second {
                pending.to = named;
            } else {
                pending.at = named;
            }
            if second {
                pending.new_path.clone_from(&path);
            }
            if !second || pending.at.is_none() {
                pending.path = path;
            }
        }
        for second in [false, true] {
            let Some(fd) = (if second { asked.other } else { asked.fd }) else { continue };
            match self.slot(thread, fd, now) {
                Some(Slot::Recorded(file)) if second => call.other = file.number,
                Some(Slot::Recorded(file)) => call.file = file.number,
                // It may be the number of a registered ring.
                Some(Slot::Gone) if matches!(kind, Kind::Uring) => {}
                Some(Slot::Gone) => (pending.outside, pending.is_lost) = (Some(None), true),
                Some(Slot::Elsewhere(path)) if !matches!(kind, Kind::Uring) => {
                    pending.outside = Some(path.map(|path| path.to_vec()));
                }
                _ => {}
            }
        }
        if kind.is_copy() && (call.file != 0 || call.other != 0) {
            // With a pipe or a file elsewhere on one side it is still a read or a write of the other.
            (pending.outside, pending.is_lost) = (None, false);
        }
        // What is mapped behind a file's end is none of its bytes.
        if kind == Kind::Map
            && self.pointed.is_none()
            && let Some(size_bytes) = asked.fd.and_then(|fd| tables::size_bytes(thread, fd))
        {
            call.length = call.length.min(size_bytes.saturating_sub(call.offset.max(0) as u64));
        }
        if self.measures_data && kind.writes() && pending.outside.is_none() {
            call.mode = self.entropy(thread, &asked, call.length);
        }
        if pending.outside.is_none() && call.takes_umask() {
            call.mode &= !self.umask(thread);
        }
        pending.asked = asked;
        pending.call = call;
        pending
    }

    /// Reads a thread's memory, as it was at the call that is looked at.
    pub(super) fn read(&self, thread: pid_t, address: u64, buffer: &mut [u8]) -> usize {
        let Some(pointed) = &self.pointed else { return ptrace::read(thread, address, buffer) };
        let found = pointed.iter().find_map(|(from, bytes)| {
            bytes.get(usize::try_from(address.checked_sub(*from)?).ok()?..).filter(|there| !there.is_empty())
        });
        let there = found.unwrap_or_default();
        let got = there.len().min(buffer.len());
        buffer[..got].copy_from_slice(&there[..got]);
        got
    }

    pub(super) fn string(&self, thread: pid_t, address: u64) -> Option<Vec<u8>> {
        let mut buffer = [0; MOST_NAME];
        // Most names are short. One that does not end is none for the kernel, and here it would be some of the program's memory.
        [256, MOST_NAME].into_iter().find_map(|most| {
            let got = self.read(thread, address, &mut buffer[..most]);
            buffer[..got].iter().position(|byte| *byte == 0).map(|end| buffer[..end].to_vec())
        })
    }

    pub(super) fn number(&self, thread: pid_t, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (address != 0 && self.read(thread, address, &mut bytes) == 8).then(|| u64::from_ne_bytes(bytes))
    }

    /// The bytes of an array of `iovec`s.
    fn vector_bytes(&self, thread: pid_t, address: u64, count: u64) -> u64 {
        let mut bytes = vec![0; 16 * count.min(1024) as usize];
        let got = self.read(thread, address, &mut bytes);
        let lengths =
            bytes[..got].chunks_exact(16).map(|one| u64::from_ne_bytes(one[8..].try_into().expect("8 bytes")));
        lengths.fold(0, u64::saturating_add)
    }

    /// What compression leaves of the first part of what is written, in percent.
    fn entropy(&self, thread: pid_t, asked: &Asked, length: u64) -> u16 {
        const SAMPLE: u64 = 16 << 10;
        let mut sample = vec![0; SAMPLE.min(length) as usize];
        let (mut got, mut at) = (0, asked.pointer);
        if asked.count == 0 {
            got = ptrace::read(thread, at, &mut sample);
        }
        for _ in 0..asked.count {
            let [Some(address), Some(bytes)] = [at, at.wrapping_add(8)].map(|at| self.number(thread, at)) else {
                break;
            };
            let end = sample.len().min(got + bytes.min(SAMPLE) as usize);
            got += ptrace::read(thread, address, &mut sample[got..end]);
            at = at.wrapping_add(16);
            if got == sample.len() {
                break;
            }
        }
        // zstd's own frame is no data.
        let packed = |bytes: &[u8]| file::packed(bytes).map_or(bytes.len(), |packed| packed.len());
        let left = packed(&sample[..got]).saturating_sub(packed(&[]));
        (100 * left).checked_div(got).map_or(0, |percent| percent.clamp(1, 100) as u16)
    }

    /// A call has returned.
    pub(super) fn returned(&mut self, thread: pid_t, now: u64, result: i64) {
        let Some(state) = self.threads.get_mut(&thread) else { return };
        let Some(pending) = state.pending.take() else { return };
        let took_ns = std::mem::take(&mut state.ran_ns);
        if let (Kind::Spawn, Some(preload)) = (pending.call.kind, &mut self.preload) {
            preload.pause(thread, false);
        }
        self.finished(thread, pending, result, took_ns, now);
    }

    /// Counts a call about a file elsewhere.
    pub(super) fn outside(&mut self, name: Option<&Vec<u8>>, bytes: u64) {
        // Pipes and sockets have no name, and are no files.
        let name = name.filter(|name| Some(*name) != self.library.as_ref());
        if let (Some(writer), Some(name)) = (self.writer.as_mut(), name) {
            writer.outside(bytes, Some(&hashed(name, self.secret.as_ref())));
        }
    }

    /// A call is over.
    fn finished(&mut self, thread: pid_t, mut pending: Pending, result: i64, took_ns: u64, now: u64) {
        // Of a wait whose time is over, which it needed at least, whatever is uncertain of its stops.
        let slept_ns = took_ns.max(pending.call.took_ns.min(self.now().saturating_sub(pending.call.begin_ns)));
        let Some(state) = self.threads.get_mut(&thread) else { return };
        let asked = pending.asked;
        let has_own = result == 0
            && match asked.what {
                What::Unshare => asked.flags & libc::CLONE_FILES as u32 != 0,
                What::CloseRange => asked.flags & libc::CLOSE_RANGE_UNSHARE != 0,
                _ => false,
            };
        let descriptors = if has_own { state.own_descriptors() } else { state.descriptors.clone() };
        match asked.what {
            What::Unshare => {
                state.think_ns += took_ns;
                return self.find_directories(|other, state| other == thread || !state.is_alone);
            }
            What::Duplicate => {
                let fd = asked.fd.unwrap_or(-1);
                state.think_ns += took_ns;
                if result >= 0 && result as i32 != fd {
                    let slot = self.slot(thread, fd, now);
                    self.release(thread, &descriptors, result as i32, now);
                    if let Some(slot @ (Slot::Recorded(_) | Slot::Elsewhere(_))) = slot {
                        self.keep(thread, &descriptors, result as i32, slot);
                    }
                }
                return;
            }
            What::CloseRange => {
                state.think_ns += took_ns;
                // CLOSE_RANGE_CLOEXEC closes nothing yet.
                if result == 0 && asked.flags & libc::CLOSE_RANGE_CLOEXEC == 0 {
                    let range = asked.offset..=asked.length.min(i64::MAX as u64) as i64;
                    let gone: Vec<i32> =
                        descriptors.borrow().keys().copied().filter(|fd| range.contains(&i64::from(*fd))).collect();
                    gone.into_iter().for_each(|fd| self.release(thread, &descriptors, fd, now));
                }
                return;
            }
            What::Sleep => return state.think_ns += if result == 0 { slept_ns } else { took_ns },
            What::Limited(over) if result == over => {
                let (thread, think_ns) = (state.number, std::mem::take(&mut state.think_ns));
                let took_ns = slept_ns;
                let begin_ns = pending.call.begin_ns;
                let flags = TIMED_OUT;
                let kind = Kind::Wakeup;
                return self.write(Call { kind, thread, begin_ns, think_ns, took_ns, flags, ..Call::default() });
            }
            What::Limited(_) | What::Again => {
                state.think_ns += took_ns;
                // Taken by sigwait(3), it is not delivered; no other call with a time limit that may be over returns so much.
                if asked.what == What::Limited(-i64::from(libc::EAGAIN)) {
                    self.comes(thread, result as i32, now);
                }
                return;
            }
            What::Call(_) => {}
        }
        let mut call = Call { result, took_ns, ..pending.call };
        if let Some(Wait { begin_ns, took_ns: before_ns, .. }) = state.wait.take() {
            (call.begin_ns, call.took_ns) = (begin_ns, took_ns + before_ns);
        }
        // The kernel makes such a call again by itself; of a new thread all is recorded.
        if AGAIN.contains(&result) && matches!(call.kind, Kind::Wait | Kind::Flock | Kind::Lock) {
            state.wait = Some(Wait { kind: call.kind, begin_ns: call.begin_ns, took_ns: call.took_ns });
            return;
        }
        if AGAIN.contains(&result) || call.kind == Kind::Spawn {
            state.think_ns += took_ns;
            return;
        }
        if call.kind == Kind::Wait {
            let waited = match asked.pointer {
                0 => result,
                // si_pid of siginfo_t.
                address if result == 0 => self.number(thread, address.wrapping_add(12)).unwrap_or(0) as i32 as i64,
                _ => result,
            };
            let child = if waited > 0 { self.numbers.get(&(waited as pid_t)).copied() } else { None };
            // A number of another PID namespace, or none at all: what it took is not to be lost.
            if child.is_none() && result >= 0 {
                self.threads.get_mut(&thread).into_iter().for_each(|state| state.think_ns += call.took_ns);
                return;
            }
            call.result = child.map_or(result, i64::from);
        }
        if call.kind == Kind::OpenByHandle {
            let opened = if result >= 0 { self.slot(thread, result as i32, now) } else { None };
            match opened {
                Some(Slot::Recorded(file)) => (call.file, call.result) = (file.number, 0),
                _ => pending.outside = Some(None),
            }
        }
        // The program keeps no renames of directories.
        if call.kind == Kind::Rename && result == 0 && self.pointed.is_none() {
            let is_any = pending.at.is_none() || call.flags & libc::RENAME_EXCHANGE != 0;
            let is_in = |known: &Option<Vec<u8>>| known.as_ref().is_some_and(|known| known.starts_with(&pending.path));
            // By another name of it, a link's: what is known is without links.
            let renamed = std::fs::symlink_metadata(std::ffi::OsStr::from_bytes(&pending.new_path));
            let is_directory = renamed.map_or(true, |found| found.is_dir());
            self.find_directories(|_, state| is_any || is_directory || state.directories.iter().any(is_in));
        }
        let [is_from, is_to] = [pending.at.is_some() || call.file != 0, pending.to.is_some()];
        if result == 0
            && (call.kind == Kind::Rename && is_from != is_to || call.kind == Kind::Link && !is_from && is_to)
        {
            self.moves_across(&mut pending);
        }
        let state = self.threads.get_mut(&thread).expect("it was there above");
        if call.kind == Kind::Reflink && result == 0 && call.file == 0 && call.other != 0 {
            call.think_ns = std::mem::take(&mut state.think_ns);
            return self.clones_from_elsewhere(thread, &call, asked.fd.unwrap_or(-1));
        }
        if pending.is_lost && result != -i64::from(libc::EBADF) {
            call.think_ns = std::mem::take(&mut state.think_ns);
            return self.write(Call { kind: Kind::Lost, ..call });
        }
        if call.kind == Kind::Open && result >= 0 && pending.outside.is_some() {
            // By a link from elsewhere, or a name in /proc, it may be below a root all the same.
            let is_link = call.flags & libc::O_NOFOLLOW as u32 != 0;
            let found = self.opened(thread, result as i32, &pending.path, is_link);
            if let Some(path) = found
                && let Some(name) = self.roots.below(&path)
            {
                (pending.outside, pending.path) = (None, path);
                pending.at = Some(Named { base: 0, name });
                if call.takes_umask() {
                    call.mode &= !self.umask(thread);
                }
            }
        }
        let state = self.threads.get_mut(&thread).expect("it was there above");
        if let Some(name) = &pending.outside {
            state.think_ns += call.took_ns;
            if call.kind == Kind::Read && name.is_none() && result > 0 && self.pointed.is_none() {
                self.read_signals(thread, &asked, result, now);
            }
            if call.kind == Kind::Open && result >= 0 {
                let path = Some(Rc::from(pending.path.as_slice()));
                self.keep(thread, &descriptors, result as i32, Slot::Elsewhere(path));
            }
            let moves = call.kind.reads() || call.kind.writes() || call.kind.is_copy();
            return self.outside(name.as_ref(), if moves { result.max(0) as u64 } else { 0 });
        }
        call.think_ns = std::mem::take(&mut state.think_ns);
        if call.kind == Kind::Open && result >= 0 {
            let file = self.open_file(std::mem::take(&mut pending.path));
            call.other = file.number;
            call.result = 0;
            self.keep(thread, &descriptors, result as i32, Slot::Recorded(file));
        }
        self.write_named(call, pending.at.as_ref(), pending.to.as_ref(), pending.text.as_deref());
    }

    /// A thread has ended in a call, or has begun another program.
    pub(super) fn unreturned(&mut self, thread: pid_t, pending: &Pending) {
        let Some(state) = self.threads.get_mut(&thread) else { return };
        let What::Call(kind) = pending.asked.what else { return };
        if kind.is_of_threads() || pending.outside.is_some() {
            return;
        }
        let think_ns = std::mem::take(&mut state.think_ns);
        let took_ns = std::mem::take(&mut state.ran_ns);
        let call = match kind {
            // The descriptor is no longer the file's.
            Kind::Close => Call { flags: IMPLICIT, ..pending.call },
            _ => Call { kind: Kind::Unreturned, flags: 0, result: 0, ..pending.call },
        };
        self.write_named(Call { think_ns, took_ns, ..call }, pending.at.as_ref(), None, None);
    }
}

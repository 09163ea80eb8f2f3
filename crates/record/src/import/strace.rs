//! What `strace -f -ttt -T` writes, best with `-y`: which file a descriptor is of it says only then, where it was open before.

use super::log::{Each, Heard, ImportError, Lines, Log};
use crate::call::{Call, IMPLICIT, INHERITED, Kind, Place, Unknown};
use crate::system_calls::{CALLS, WITH_STRUCTURES};
use crate::trace;
use crate::trace::{joined, normal};
use libc::c_long;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// Where relative names are, as long as the log does not say.
const SOMEWHERE: &[u8] = b"/working-directory";

/// Where names are that are relative to a descriptor of which the log does not say what it is of.
const UNKNOWN_DIRECTORY: &[u8] = b"/unknown-directory";

/// What most programs begin with.
const USUAL_UMASK: u16 = 0o022;

/// Names of numbers. Those of seccomp's, sockets' and other calls are not needed.
const WORDS: &[(&str, i32)] = &[
    ("O_WRONLY", libc::O_WRONLY),
    ("O_RDWR", libc::O_RDWR),
    ("O_CREAT", libc::O_CREAT),
    ("O_EXCL", libc::O_EXCL),
    ("O_TRUNC", libc::O_TRUNC),
    ("O_APPEND", libc::O_APPEND),
    ("O_NONBLOCK", libc::O_NONBLOCK),
    ("O_DSYNC", libc::O_DSYNC),
    ("O_SYNC", libc::O_SYNC),
    ("O_DIRECT", libc::O_DIRECT),
    ("O_DIRECTORY", libc::O_DIRECTORY),
    ("O_NOFOLLOW", libc::O_NOFOLLOW),
    ("O_NOATIME", libc::O_NOATIME),
    ("O_CLOEXEC", libc::O_CLOEXEC),
    ("O_PATH", libc::O_PATH),
    ("O_TMPFILE", libc::O_TMPFILE),
    ("AT_SYMLINK_NOFOLLOW", libc::AT_SYMLINK_NOFOLLOW),
    ("AT_SYMLINK_FOLLOW", libc::AT_SYMLINK_FOLLOW),
    ("AT_EMPTY_PATH", libc::AT_EMPTY_PATH),
    ("AT_REMOVEDIR", libc::AT_REMOVEDIR),
    ("SEEK_CUR", libc::SEEK_CUR),
    ("SEEK_END", libc::SEEK_END),
    ("SEEK_DATA", libc::SEEK_DATA),
    ("SEEK_HOLE", libc::SEEK_HOLE),
    ("FALLOC_FL_KEEP_SIZE", libc::FALLOC_FL_KEEP_SIZE),
    ("FALLOC_FL_PUNCH_HOLE", libc::FALLOC_FL_PUNCH_HOLE),
    ("FALLOC_FL_ZERO_RANGE", libc::FALLOC_FL_ZERO_RANGE),
    ("FALLOC_FL_COLLAPSE_RANGE", libc::FALLOC_FL_COLLAPSE_RANGE),
    ("FALLOC_FL_INSERT_RANGE", libc::FALLOC_FL_INSERT_RANGE),
    ("FALLOC_FL_UNSHARE_RANGE", libc::FALLOC_FL_UNSHARE_RANGE),
    ("RENAME_NOREPLACE", libc::RENAME_NOREPLACE as i32),
    ("RENAME_WHITEOUT", libc::RENAME_WHITEOUT as i32),
    ("RENAME_EXCHANGE", libc::RENAME_EXCHANGE as i32),
    ("XATTR_CREATE", libc::XATTR_CREATE),
    ("XATTR_REPLACE", libc::XATTR_REPLACE),
    ("LOCK_SH", libc::LOCK_SH),
    ("LOCK_EX", libc::LOCK_EX),
    ("LOCK_UN", libc::LOCK_UN),
    ("LOCK_NB", libc::LOCK_NB),
    ("POSIX_FADV_RANDOM", libc::POSIX_FADV_RANDOM),
    ("POSIX_FADV_SEQUENTIAL", libc::POSIX_FADV_SEQUENTIAL),
    ("POSIX_FADV_WILLNEED", libc::POSIX_FADV_WILLNEED),
    ("POSIX_FADV_DONTNEED", libc::POSIX_FADV_DONTNEED),
    ("POSIX_FADV_NOREUSE", libc::POSIX_FADV_NOREUSE),
    ("SYNC_FILE_RANGE_WAIT_BEFORE", 1),
    ("SYNC_FILE_RANGE_WRITE", 2),
    ("SYNC_FILE_RANGE_WAIT_AFTER", 4),
    ("X_OK", 1),
    ("W_OK", 2),
    ("R_OK", 4),
    ("S_IFREG", libc::S_IFREG as i32),
    ("S_IFDIR", libc::S_IFDIR as i32),
    ("S_IFLNK", libc::S_IFLNK as i32),
    ("S_IFIFO", libc::S_IFIFO as i32),
    ("S_IFSOCK", libc::S_IFSOCK as i32),
    ("S_IFCHR", libc::S_IFCHR as i32),
    ("S_IFBLK", libc::S_IFBLK as i32),
    ("RWF_HIPRI", libc::RWF_HIPRI),
    ("RWF_DSYNC", libc::RWF_DSYNC),
    ("RWF_SYNC", libc::RWF_SYNC),
    ("RWF_NOWAIT", libc::RWF_NOWAIT),
    ("RWF_APPEND", libc::RWF_APPEND),
    ("RWF_NOAPPEND", 0x20),
    ("SIGHUP", libc::SIGHUP),
    ("SIGINT", libc::SIGINT),
    ("SIGQUIT", libc::SIGQUIT),
    ("SIGABRT", libc::SIGABRT),
    ("SIGBUS", libc::SIGBUS),
    ("SIGKILL", libc::SIGKILL),
    ("SIGSEGV", libc::SIGSEGV),
    ("SIGPIPE", libc::SIGPIPE),
    ("SIGTERM", libc::SIGTERM),
    ("F_WRLCK", libc::F_WRLCK),
    ("F_UNLCK", libc::F_UNLCK),
    ("CLONE_FILES", libc::CLONE_FILES),
    ("CLONE_FS", libc::CLONE_FS),
    ("ENOENT", libc::ENOENT),
    ("EACCES", libc::EACCES),
    ("EPERM", libc::EPERM),
    ("EEXIST", libc::EEXIST),
    ("ENOTDIR", libc::ENOTDIR),
    ("EISDIR", libc::EISDIR),
    ("ENOTEMPTY", libc::ENOTEMPTY),
    ("EINVAL", libc::EINVAL),
    ("EBADF", libc::EBADF),
    ("EAGAIN", libc::EAGAIN),
    ("EWOULDBLOCK", libc::EAGAIN),
    ("EINTR", libc::EINTR),
    ("EIO", libc::EIO),
    ("ENXIO", libc::ENXIO),
    ("ENOSPC", libc::ENOSPC),
    ("EDQUOT", libc::EDQUOT),
    ("EFBIG", libc::EFBIG),
    ("EROFS", libc::EROFS),
    ("EBUSY", libc::EBUSY),
    ("EXDEV", libc::EXDEV),
    ("ELOOP", libc::ELOOP),
    ("EMLINK", libc::EMLINK),
    ("ENAMETOOLONG", libc::ENAMETOOLONG),
    ("ENODATA", libc::ENODATA),
    ("ENOTSUP", libc::EOPNOTSUPP),
    ("EOPNOTSUPP", libc::EOPNOTSUPP),
    ("ENOSYS", libc::ENOSYS),
    ("ENOTTY", libc::ENOTTY),
    ("ESPIPE", libc::ESPIPE),
    ("ERANGE", libc::ERANGE),
    ("EMFILE", libc::EMFILE),
    ("EFAULT", libc::EFAULT),
    ("ENOMEM", libc::ENOMEM),
    ("ETXTBSY", libc::ETXTBSY),
    ("EOVERFLOW", libc::EOVERFLOW),
    ("ECHILD", libc::ECHILD),
    ("ENODEV", libc::ENODEV),
    ("ENOMSG", libc::ENOMSG),
    ("E2BIG", libc::E2BIG),
    ("EDEADLK", libc::EDEADLK),
    ("ENOLCK", libc::ENOLCK),
    ("ENFILE", libc::ENFILE),
    ("EPIPE", libc::EPIPE),
    ("ESTALE", libc::ESTALE),
    ("EUCLEAN", libc::EUCLEAN),
    ("ENOTBLK", libc::ENOTBLK),
    ("EADDRINUSE", libc::EADDRINUSE),
];

/// "A|B|0644": numbers in C's manner, and names. What has no name here counts as nothing.
fn number(text: &str, words: &HashMap<&str, i32>) -> i64 {
    let one = |part: &str| {
        let (digits, radix) = match part.as_bytes() {
            [b'0', b'x', ..] => (&part[2..], 16),
            [b'0', _, ..] => (&part[1..], 8),
            _ => (part, 10),
        };
        let digits = digits.split(|c: char| !c.is_ascii_hexdigit()).next().unwrap_or_default();
        match part.strip_prefix('-') {
            Some(part) => -part.parse::<i64>().unwrap_or(0),
            None => {
                u64::from_str_radix(digits, radix).ok().or(words.get(part).map(|word| *word as u64)).unwrap_or(0) as i64
            }
        }
    };
    text.trim().split('|').fold(0, |sum, part| sum | one(part.trim()))
}

/// A quoted string; `None` if it was cut, or is none.
fn string(text: &str) -> Option<Vec<u8>> {
    let inside = text.trim().strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let (mut bytes, mut at) = (Vec::with_capacity(inside.len()), 0);
    while let Some(byte) = inside.get(at) {
        at += 1;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let escape = *inside.get(at)?;
        at += 1;
        let digits = |at: usize, most: usize, is: fn(&u8) -> bool| {
            inside[at..].iter().take(most).take_while(|byte| is(byte)).count()
        };
        bytes.push(match escape {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 11,
            b'f' => 12,
            b'x' => {
                let count = digits(at, 2, u8::is_ascii_hexdigit);
                at += count;
                u8::from_str_radix(std::str::from_utf8(&inside[at - count..at]).ok()?, 16).ok()?
            }
            b'0'..=b'7' => {
                let count = digits(at - 1, 3, |byte| matches!(byte, b'0'..=b'7'));
                let octal = &inside[at - 1..at - 1 + count];
                at += count - 1;
                u16::from_str_radix(std::str::from_utf8(octal).ok()?, 8).ok()? as u8
            }
            other => other,
        });
    }
    Some(bytes)
}

/// The arguments of a call, apart at commas that are in no string, structure or path.
fn arguments(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut parts, mut from, mut depth, mut quoted, mut path, mut at) = (Vec::new(), 0, 0u32, false, 0u32, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quoted => at += 1,
            b'"' if path == 0 => quoted = !quoted,
            _ if quoted => {}
            // Behind a descriptor.
            b'<' if path > 0 || at > 0 && (bytes[at - 1].is_ascii_digit() || text[..at].ends_with("AT_FDCWD")) => {
                path += 1;
            }
            b'>' if path > 0 => path -= 1,
            _ if path > 0 => {}
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    let last = text.get(from..).unwrap_or_default().trim();
    if !last.is_empty() || !parts.is_empty() {
        parts.push(last);
    }
    parts
}

/// What is behind a name of a structure.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let rest = &text[text.find(name)? + name.len()..];
    Some(rest.split([',', '}', ')']).next().unwrap_or(rest))
}

/// The path behind a descriptor, of what has one.
fn annotated(text: &str) -> Option<Vec<u8>> {
    let path = text.split_once('<')?.1.strip_suffix('>')?;
    // Behind a device's own path strace -yy says which it is.
    let path = string(&format!("\"{path}\"")).filter(|_| !path.ends_with('>'))?;
    (path.starts_with(b"/") && !path.ends_with(b"(deleted)")).then_some(path)
}

/// Seconds with a fraction, or a time of day.
fn time_ns(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut seconds = 0u64;
    for part in whole.split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    seconds.checked_mul(1_000_000_000)?.checked_add(digits.parse().ok()?)
}

struct Opened {
    number: u32,
    path: Vec<u8>,
}

#[derive(Clone)]
struct Slot {
    file: Rc<Opened>,
    closed_by_exec: bool,
}

type Table = Rc<RefCell<HashMap<i32, Slot>>>;

/// What threads share with CLONE_FS.
#[derive(Clone)]
struct Surroundings {
    directory: Option<Vec<u8>>,
    umask: u16,
}

struct Thread {
    number: u32,
    table: Table,
    around: Rc<RefCell<Surroundings>>,
    unfinished: Option<(String, u64)>,
    /// What it is about to close.
    closing: Option<Slot>,
    /// The child of its call that has not returned yet was met already.
    child: Option<u32>,
}

struct Reading<'a, 'e> {
    each: Each<'e>,
    /// Where processes work of which the log does not say it (yet).
    first_directory: Option<Vec<u8>>,
    words: HashMap<&'static str, i32>,
    calls: HashMap<&'static str, (Kind, &'static str)>,
    threads: HashMap<u32, Thread>,
    /// The numbers of all threads there were; a PID may come again.
    numbers: HashMap<u32, u32>,
    last_thread: u32,
    last_file: u32,
    log: &'a mut Log,
    is_annotated: bool,
    /// Where it may have begun to work, and by how many names.
    directories: BTreeMap<Vec<u8>, u64>,
    /// Processes and threads that a call made, and of which the log has no line.
    unseen: HashSet<u32>,
    /// Calls that are recorded, and that this strace has no name for.
    unnamed: BTreeSet<String>,
}

pub(super) fn read(lines: &mut Lines, each: Each<'_>) -> Result<Log, ImportError> {
    const EXPECTED: &str = "[PID] [TIME] CALL(ARGUMENTS) = RESULT [<DURATION>], as strace -f -ttt -T writes it";
    let mut log = Log::default();
    let (mut began_ns, mut now_ns, mut has_durations) = (None, 0u64, false);
    let (mut last_ns, mut has_pids) = (0, false);
    log.directory.clone_from(&lines.directory);
    let mut reading = Reading {
        each,
        first_directory: lines.directory.clone(),
        words: WORDS.iter().copied().collect(),
        calls: CALLS.iter().map(|(_, name, kind, roles)| (*name, (*kind, *roles))).collect(),
        threads: HashMap::new(),
        numbers: HashMap::new(),
        last_thread: 0,
        last_file: 0,
        log: &mut log,
        is_annotated: false,
        directories: BTreeMap::new(),
        unseen: HashSet::new(),
        unnamed: BTreeSet::new(),
    };
    while let Some(line) = lines.next_whole()? {
        let mut rest = line.trim_start();
        if rest.is_empty() || rest.starts_with("strace: ") {
            continue;
        }
        let mut pid = 0;
        let word = |rest: &mut &str| -> Option<String> {
            let (word, after) = rest.split_once(' ')?;
            let word = word.to_owned();
            *rest = after.trim_start();
            Some(word)
        };
        if let Some(after) = rest.strip_prefix("[pid ") {
            let (number, after) = after.split_once(']').unwrap_or_default();
            (pid, rest) = (number.trim().parse().unwrap_or(0), after.trim_start());
        } else if rest
            .split(' ')
            .next()
            .is_some_and(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()))
        {
            pid = word(&mut rest).and_then(|word| word.parse().ok()).unwrap_or(0);
        }
        if rest.starts_with(|c: char| c.is_ascii_digit())
            && let Some(time) = word(&mut rest).and_then(|word| time_ns(&word))
        {
            let began = *began_ns.get_or_insert(time);
            if began == 0 && time < last_ns {
                return Err(ImportError::Relative);
            }
            last_ns = time;
            // A time of day begins again.
            let passed = if time < began { time.saturating_add(86_400_000_000_000) } else { time };
            now_ns = now_ns.max(passed.saturating_sub(began));
        }
        if rest.starts_with("---") {
            continue;
        }
        has_pids |= pid != 0;
        reading.unseen.remove(&pid);
        if !reading.threads.contains_key(&pid) {
            reading.begins(pid, now_ns)?;
        }
        if rest.starts_with("+++") {
            reading.ends(pid, now_ns, rest)?;
            continue;
        }
        let (mut text, mut begun_ns) = (rest.to_owned(), now_ns);
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let tail = resumed.split_once(" resumed>").map(|(_, tail)| tail.to_owned());
            let thread = reading.threads.get_mut(&pid).expect("it began above");
            match (thread.unfinished.take(), tail) {
                (Some((head, begun)), Some(tail)) => (text, begun_ns) = (head + &tail, begun),
                // Its beginning was before the log's.
                (None, Some(_)) => continue,
                (_, None) => {
                    lines.wrong(EXPECTED)?;
                    continue;
                }
            }
        }
        let unfinished = ["<unfinished ...>", "<detached ...>"];
        if let Some(head) = unfinished.iter().find_map(|end| text.strip_suffix(end)) {
            let head = head.trim_end().to_owned();
            let thread = reading.threads.get_mut(&pid).expect("it began above");
            if let Some(fd) = head.strip_prefix("close(").and_then(descriptor) {
                // Its number may be another file's before the call returns.
                thread.closing = thread.table.borrow_mut().remove(&fd);
            }
            thread.unfinished = Some((head, begun_ns));
            continue;
        }
        let mut took_ns = now_ns - begun_ns;
        if let Some((before, duration)) = text.rsplit_once(" <")
            && let Some(duration) = duration.strip_suffix('>').and_then(time_ns)
        {
            (took_ns, has_durations) = (duration, true);
            let length = before.len();
            text.truncate(length);
        }
        // A path in the result may have the sign as well.
        let parts = text.rmatch_indices(" = ").find_map(|(at, _)| {
            let (name, arguments) = text[..at].trim_end().strip_suffix(')')?.split_once('(')?;
            let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            is_name.then_some((name, arguments, text[at + 3..].trim()))
        });
        match parts {
            Some((name, arguments, result)) => {
                let times = [begun_ns, took_ns];
                reading.call(pid, name, arguments, result, times)?;
                reading.log.end_ns = reading.log.end_ns.max(begun_ns.saturating_add(took_ns));
            }
            None => lines.wrong(EXPECTED)?,
        }
    }
    let (is_annotated, unnamed, unseen) = (reading.is_annotated, reading.unnamed, reading.unseen.len());
    let most_named = reading.directories.into_iter().max_by_key(|(_, names)| *names).map(|(directory, _)| directory);
    log.directory = log.directory.or(most_named);
    log.end_ns = log.end_ns.max(now_ns);
    let mut unknown = vec![Unknown::StraceCost];
    if began_ns.is_none() {
        unknown.push(Unknown::Times);
    } else if !has_durations {
        unknown.push(Unknown::Durations);
    }
    if !is_annotated {
        unknown.push(Unknown::Descriptors);
    }
    if unseen > 0 {
        unknown.push(Unknown::Children { count: unseen as u64, follows: has_pids });
    }
    if !unnamed.is_empty() {
        unknown.push(Unknown::Unnamed { calls: unnamed.into_iter().collect() });
    }
    // A time of day says nothing of the day.
    log.began_unix_ns = began_ns.filter(|ns| *ns > 86_400_000_000_000).unwrap_or(0);
    log.has_pids = has_pids;
    log.was_directory_needed &= log.directory.is_some();
    log.directory.get_or_insert_with(|| SOMEWHERE.to_vec());
    unknown.push(Unknown::Umask);
    log.unknown = unknown;
    Ok(log)
}

impl Reading<'_, '_> {
    fn hand_over(&mut self, heard: Heard) -> Result<(), ImportError> {
        (self.each)(heard).map_err(ImportError::Read)
    }

    /// A thread is met for the first time.
    fn begins(&mut self, pid: u32, now_ns: u64) -> Result<(), ImportError> {
        let is_making = |thread: &&mut Thread| {
            let makes =
                |(head, _): &(String, u64)| ["clone", "fork", "vfork"].iter().any(|call| head.starts_with(call));
            thread.child.is_none() && thread.unfinished.as_ref().is_some_and(makes)
        };
        let parent = self.threads.values_mut().filter(is_making).min_by_key(|thread| thread.number);
        let Some(parent) = parent else { return self.add(pid, now_ns, None) };
        parent.child = Some(pid);
        let (head, begun_ns) = parent.unfinished.clone().unwrap_or_default();
        let flags = clone_flags(&head, &self.words);
        let made = (parent.number, flags, Rc::clone(&parent.table), Rc::clone(&parent.around));
        self.add(pid, begun_ns, Some(&made))
    }

    fn add(
        &mut self,
        pid: u32,
        begin_ns: u64,
        parent: Option<&(u32, i64, Table, Rc<RefCell<Surroundings>>)>,
    ) -> Result<(), ImportError> {
        self.last_thread += 1;
        let number = self.last_thread;
        self.numbers.insert(pid, number);
        let (table, around) = match parent {
            None => {
                let directory = self.first_directory.clone();
                (Table::default(), Rc::new(RefCell::new(Surroundings { directory, umask: USUAL_UMASK })))
            }
            Some((_, flags, table, around)) => {
                let has = |flag: i32| flags & i64::from(flag) != 0;
                let table = if has(libc::CLONE_FILES) { Rc::clone(table) } else { Rc::new((**table).clone()) };
                let around = if has(libc::CLONE_FS) { Rc::clone(around) } else { Rc::new((**around).clone()) };
                (table, around)
            }
        };
        let thread = Thread { number, table, around, unfinished: None, closing: None, child: None };
        self.threads.insert(pid, thread);
        if let Some((thread, ..)) = parent {
            let call = Call { kind: Kind::Spawn, thread: *thread, begin_ns, result: number.into(), ..Call::default() };
            self.hand_over(Heard { call, ..Heard::default() })?;
        }
        Ok(())
    }

    fn ends(&mut self, pid: u32, now_ns: u64, how: &str) -> Result<(), ImportError> {
        let Some(thread) = self.threads.remove(&pid) else { return Ok(()) };
        let mut words = how.split(' ').skip(1);
        if thread.number == 1
            && let Some((how, word)) = words.next().zip(words.nth(1))
        {
            let word = number(word, &self.words) as i32;
            self.log.status = if how == "exited" { word << 8 } else { word & 0x7f };
        }
        let number = thread.number;
        if let Ok(table) = Rc::try_unwrap(thread.table) {
            let mut slots: Vec<(i32, Slot)> = table.into_inner().into_iter().collect();
            slots.sort_unstable_by_key(|(fd, _)| *fd);
            for (_, slot) in slots {
                self.let_go(slot, number, now_ns)?;
            }
        }
        let call = Call { kind: Kind::Exit, thread: number, begin_ns: now_ns, ..Call::default() };
        self.hand_over(Heard { call, ..Heard::default() })
    }

    /// A descriptor is gone without a call that closed it.
    fn let_go(&mut self, slot: Slot, thread: u32, now_ns: u64) -> Result<(), ImportError> {
        let Ok(file) = Rc::try_unwrap(slot.file) else { return Ok(()) };
        let call =
            Call { kind: Kind::Close, thread, begin_ns: now_ns, file: file.number, flags: IMPLICIT, ..Call::default() };
        self.hand_over(Heard { call, ..Heard::default() })
    }

    fn put(&mut self, pid: u32, fd: i32, slot: Slot, now_ns: u64) -> Result<(), ImportError> {
        let thread = &self.threads[&pid];
        let (number, before) = (thread.number, thread.table.borrow_mut().insert(fd, slot));
        before.map_or(Ok(()), |slot| self.let_go(slot, number, now_ns))
    }

    /// The file of a descriptor. One that was open before the log is known where its path is written.
    fn slot(&mut self, pid: u32, text: &str, now_ns: u64) -> Result<Option<Slot>, ImportError> {
        let Some(fd) = descriptor(text) else { return Ok(None) };
        let path = annotated(text);
        self.is_annotated |= path.is_some();
        let thread = &self.threads[&pid];
        if let Some(slot) = thread.table.borrow().get(&fd) {
            return Ok(Some(slot.clone()));
        }
        let Some(path) = path else { return Ok(None) };
        let slot = self.opened(path.clone(), false);
        let call = Call {
            kind: Kind::Open,
            thread: thread_number(&self.threads, pid),
            begin_ns: now_ns,
            other: slot.file.number,
            flags: INHERITED | libc::O_RDWR as u32,
            ..Call::default()
        };
        self.put(pid, fd, slot.clone(), now_ns)?;
        self.hand_over(Heard { call, at: Some(path), ..Heard::default() })?;
        Ok(Some(slot))
    }

    fn opened(&mut self, path: Vec<u8>, closed_by_exec: bool) -> Slot {
        self.last_file += 1;
        Slot { file: Rc::new(Opened { number: self.last_file, path }), closed_by_exec }
    }

    /// An absolute path: of a name relative to a directory's descriptor, or to the working directory. What is in the name stays, because
    /// "name/" and "name/." stand for a directory only.
    fn path(&mut self, pid: u32, directory: &str, name: &[u8], now_ns: u64) -> Result<Vec<u8>, ImportError> {
        let is_here = directory.is_empty() || directory.starts_with("AT_FDCWD");
        if is_here && let Some(known) = annotated(directory) {
            self.is_annotated = true;
            let before = self.threads[&pid].around.borrow_mut().directory.replace(known.clone());
            self.learn(before.as_deref().unwrap_or(SOMEWHERE), &known);
        }
        if name.starts_with(b"/") {
            return Ok(name.to_vec());
        }
        let above = if is_here {
            let known = self.threads[&pid].around.borrow().directory.clone();
            self.log.was_directory_needed |= known.is_none();
            known.unwrap_or_else(|| SOMEWHERE.to_vec())
        } else {
            let opened = self.slot(pid, directory, now_ns)?.map(|slot| slot.file.path.clone());
            // It may have been renamed since it was opened.
            annotated(directory).or(opened).unwrap_or_else(|| UNKNOWN_DIRECTORY.to_vec())
        };
        Ok(joined(&above, name))
    }

    /// What a name turns out to stand for that is relative to where the log began to work. Of a link that is another place.
    fn learn(&mut self, name: &[u8], real: &[u8]) {
        let is_end = |rest: &&[u8]| matches!(rest, [] | [b'/', ..]);
        if let Some(rest) = name.strip_prefix(SOMEWHERE).filter(is_end)
            && let Some(found) = real.strip_suffix(rest)
        {
            let found = if found.is_empty() { b"/".to_vec() } else { found.to_vec() };
            *self.directories.entry(found).or_default() += 1;
        }
    }

    fn call(
        &mut self,
        pid: u32,
        name: &str,
        text: &str,
        result: &str,
        [begin_ns, took_ns]: [u64; 2],
    ) -> Result<(), ImportError> {
        let end_ns = begin_ns.saturating_add(took_ns);
        let value = match result.strip_prefix("-1 ") {
            Some(error) => {
                let errno = error.split(' ').next().unwrap_or_default();
                // The kernel makes such a call again by itself.
                if errno.starts_with("ERESTART") {
                    return Ok(());
                }
                -i64::from(self.words.get(errno).copied().unwrap_or(libc::EINVAL))
            }
            None if result.starts_with('?') => return Ok(()),
            None => number(result.split([' ', '<']).next().unwrap_or_default(), &self.words),
        };
        let parts = || arguments(text);
        let thread = thread_number(&self.threads, pid);
        let plain = Call { thread, begin_ns, took_ns, result: value, ..Call::default() };
        match name {
            "clone" | "clone3" | "fork" | "vfork" if value > 0 => {
                let child = value as u32;
                let known = self.threads.get_mut(&pid).and_then(|thread| thread.child.take());
                if known != Some(child) && !self.threads.contains_key(&child) {
                    // One that was met under another number is in a namespace of numbers.
                    if known.is_none() {
                        self.unseen.insert(child);
                    }
                    let parent = &self.threads[&pid];
                    let flags = clone_flags(text, &self.words);
                    let made = (thread, flags, Rc::clone(&parent.table), Rc::clone(&parent.around));
                    self.add(child, begin_ns, Some(&made))?;
                }
                return Ok(());
            }
            "wait4" | "waitid" if value >= 0 => {
                let waited = if name == "wait4" {
                    value
                } else {
                    field(text, "si_pid=").map_or(0, |pid| number(pid, &self.words))
                };
                let result = self.numbers.get(&(waited as u32)).map_or(0, |number| i64::from(*number));
                let call = Call { kind: Kind::Wait, thread, begin_ns, took_ns, result, ..Call::default() };
                return self.hand_over(Heard { call, ..Heard::default() });
            }
            "execve" | "execveat" if value == 0 => {
                let own = (*self.threads[&pid].table).clone();
                let gone: Vec<i32> =
                    own.borrow().iter().filter(|(_, slot)| slot.closed_by_exec).map(|(fd, _)| *fd).collect();
                let gone: Vec<Slot> = gone.iter().filter_map(|fd| own.borrow_mut().remove(fd)).collect();
                let thread_of = self.threads.get_mut(&pid).expect("it is there");
                thread_of.table = Rc::new(own);
                return gone.into_iter().try_for_each(|slot| self.let_go(slot, thread, end_ns));
            }
            "unshare" if value == 0 => {
                let flags = parts().first().map_or(0, |flags| number(flags, &self.words)) as i32;
                let thread_of = self.threads.get_mut(&pid).expect("it is there");
                if flags & libc::CLONE_FS != 0 {
                    thread_of.around = Rc::new((*thread_of.around).clone());
                }
                if flags & libc::CLONE_FILES != 0 {
                    thread_of.table = Rc::new((*thread_of.table).clone());
                }
                return Ok(());
            }
            "chdir" if value == 0 => {
                let Some(name) = parts().first().and_then(|name| string(name)) else { return Ok(()) };
                let path = self.path(pid, "", &name, begin_ns)?;
                self.threads[&pid].around.borrow_mut().directory = Some(normal(&path));
                return Ok(());
            }
            "umask" => {
                let umask = parts().first().map_or(0, |umask| number(umask, &self.words)) as u16 & 0o777;
                self.threads[&pid].around.borrow_mut().umask = umask;
                return Ok(());
            }
            "fchdir" if value == 0 => {
                let parts = parts();
                let directory = parts.first().copied().unwrap_or_default();
                let opened = self.slot(pid, directory, begin_ns)?.map(|slot| slot.file.path.clone());
                if let Some(path) = annotated(directory).or(opened) {
                    self.threads[&pid].around.borrow_mut().directory = Some(path);
                }
                return Ok(());
            }
            "dup" | "dup2" | "dup3" if value >= 0 => return self.duplicated(pid, &parts(), value as i32, end_ns),
            "fcntl" | "fcntl64" => return self.controlled(pid, &parts(), value, [begin_ns, took_ns]),
            "close_range" if value == 0 => {
                let parts = parts();
                let [from, to] = [0, 1].map(|at| parts.get(at).map_or(0, |text| number(text, &self.words)));
                let to = if to < from { i64::from(i32::MAX) } else { to };
                if parts.get(2).is_none_or(|flags| !flags.contains("CLOEXEC")) {
                    let table = Rc::clone(&self.threads[&pid].table);
                    let mut gone: Vec<i32> =
                        table.borrow().keys().copied().filter(|fd| (from..=to).contains(&i64::from(*fd))).collect();
                    gone.sort_unstable();
                    for fd in gone {
                        let slot = table.borrow_mut().remove(&fd).expect("it was there");
                        self.let_go(slot, thread, end_ns)?;
                    }
                }
                return Ok(());
            }
            "ioctl" => {
                let parts = parts();
                let [to, request, from] = [0, 1, 2].map(|at| parts.get(at).copied().unwrap_or_default());
                let inside = |name| field(from, name).unwrap_or_default();
                let (from, numbers) = if request.contains("FICLONERANGE") {
                    let numbers = ["src_offset=", "src_length=", "dest_offset="];
                    (inside("src_fd="), numbers.map(|name| number(inside(name), &self.words)))
                } else {
                    (from, [0; 3])
                };
                if request.contains("FICLONE")
                    && let (Some(to), Some(from)) = (self.slot(pid, to, begin_ns)?, self.slot(pid, from, begin_ns)?)
                {
                    let (file, other) = (from.file.number, to.file.number);
                    let [offset, length, other_offset] = numbers;
                    let call = Call {
                        kind: Kind::Reflink,
                        thread,
                        begin_ns,
                        took_ns,
                        file,
                        other,
                        offset,
                        length: length as u64,
                        other_offset,
                        result: value,
                        ..Call::default()
                    };
                    return self.hand_over(Heard { call, ..Heard::default() });
                }
                // About a file's blocks and attributes.
                if ["FS_IOC_", "XFS_IOC_", "FIDEDUPERANGE"].iter().any(|name| request.starts_with(name))
                    && let Some(slot) = self.slot(pid, to, begin_ns)?
                {
                    let call = Call { kind: Kind::Ioctl, file: slot.file.number, ..plain };
                    return self.hand_over(Heard { call, ..Heard::default() });
                }
                return Ok(());
            }
            "bind" => {
                // Other sockets have no name in a filesystem.
                let name = text.split_once("sun_path=").and_then(|(_, rest)| string(rest.rsplit_once('}')?.0));
                let Some(name) = name else { return Ok(()) };
                let at = Some(self.path(pid, "", &name, begin_ns)?);
                return self.hand_over(Heard { call: Call { kind: Kind::Bind, ..plain }, at, ..Heard::default() });
            }
            "io_uring_setup" if text.contains("IORING_SETUP_SQPOLL") && value >= 0 => {
                let call = Call { kind: Kind::PolledRing, ..plain };
                return self.hand_over(Heard { call, ..Heard::default() });
            }
            _ => {}
        }
        let Some((kind, roles)) = self.calls.get(name).copied() else {
            let number = name.strip_prefix("syscall_0x").and_then(|number| c_long::from_str_radix(number, 16).ok());
            let in_table = CALLS.iter().map(|(of, known, ..)| (*of, *known));
            let mut all = in_table.chain(WITH_STRUCTURES.iter().copied());
            let Some((_, name)) = all.find(|(of, known)| number == Some(*of) || *known == name) else { return Ok(()) };
            self.unnamed.insert(name.to_owned());
            let call = Call { kind: Kind::Lost, ..plain };
            return self.hand_over(Heard { call, ..Heard::default() });
        };
        let call = Call { kind, ..plain };
        let real = if kind == Kind::Open { annotated(result) } else { None };
        self.is_annotated |= real.is_some();
        self.made(pid, name, &parts(), roles, Heard { call, real, ..Heard::default() })
    }

    fn duplicated(&mut self, pid: u32, parts: &[&str], to: i32, now_ns: u64) -> Result<(), ImportError> {
        let from = parts.first().copied().unwrap_or_default();
        let closed_by_exec = parts.iter().any(|part| part.contains("CLOEXEC"));
        match self.slot(pid, from, now_ns)? {
            _ if from.split('<').next() == Some(to.to_string().as_str()) => Ok(()),
            Some(slot) => self.put(pid, to, Slot { closed_by_exec, ..slot }, now_ns),
            None => {
                let before = self.threads[&pid].table.borrow_mut().remove(&to);
                let thread = thread_number(&self.threads, pid);
                before.map_or(Ok(()), |slot| self.let_go(slot, thread, now_ns))
            }
        }
    }

    fn controlled(
        &mut self,
        pid: u32,
        parts: &[&str],
        result: i64,
        [begin_ns, took_ns]: [u64; 2],
    ) -> Result<(), ImportError> {
        let [fd, request, argument] = [0, 1, 2].map(|at| parts.get(at).copied().unwrap_or_default());
        match request {
            "F_DUPFD" | "F_DUPFD_CLOEXEC" if result >= 0 => {
                self.duplicated(pid, parts, result as i32, begin_ns.saturating_add(took_ns))
            }
            "F_SETFD" => {
                if let Some(fd) = descriptor(fd)
                    && let Some(slot) = self.threads[&pid].table.borrow_mut().get_mut(&fd)
                {
                    slot.closed_by_exec = argument.contains("CLOEXEC");
                }
                Ok(())
            }
            "F_SETFL" => {
                let Some(slot) = self.slot(pid, fd, begin_ns)? else { return Ok(()) };
                let call = Call {
                    kind: Kind::SetFlags,
                    thread: thread_number(&self.threads, pid),
                    begin_ns,
                    took_ns,
                    file: slot.file.number,
                    flags: number(argument, &self.words) as u32,
                    result,
                    ..Call::default()
                };
                self.hand_over(Heard { call, ..Heard::default() })
            }
            "F_SETLK" | "F_SETLKW" | "F_OFD_SETLK" | "F_OFD_SETLKW" => {
                let Some(slot) = self.slot(pid, fd, begin_ns)? else { return Ok(()) };
                let [kind, offset, length, other_offset] = ["l_type=", "l_start=", "l_len=", "l_whence="]
                    .map(|name| field(argument, name).map_or(0, |text| number(text, &self.words)));
                let call = Call {
                    kind: Kind::Lock,
                    thread: thread_number(&self.threads, pid),
                    begin_ns,
                    took_ns,
                    file: slot.file.number,
                    mode: kind as u16,
                    offset,
                    other_offset,
                    length: length as u64,
                    result,
                    ..Call::default()
                };
                self.hand_over(Heard { call, ..Heard::default() })
            }
            _ => Ok(()),
        }
    }

    /// A call of the table.
    fn made(&mut self, pid: u32, name: &str, parts: &[&str], roles: &str, mut heard: Heard) -> Result<(), ImportError> {
        let (begin_ns, kind) = (heard.call.begin_ns, heard.call.kind);
        let end_ns = begin_ns.saturating_add(heard.call.took_ns);
        let (mut directory, mut fd) = ("", None);
        if name == "creat" {
            heard.call.flags = (libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC) as u32;
        } else if matches!(name, "lstat" | "lchown" | "lsetxattr" | "lgetxattr" | "llistxattr" | "lremovexattr") {
            heard.call.flags = libc::AT_SYMLINK_NOFOLLOW as u32;
        }
        if kind.is_copy() {
            (heard.call.offset, heard.call.other_offset) = (-1, -1);
        }
        for (role, part) in roles.chars().zip(parts) {
            match role {
                'd' => directory = *part,
                'p' | 'q' => {
                    let of = std::mem::take(&mut directory);
                    match (role, string(part).filter(|name| !name.is_empty())) {
                        // AT_EMPTY_PATH, or no name at all: about the descriptor itself.
                        (_, None) => fd = Some(of),
                        ('p', Some(name)) => heard.at = Some(self.path(pid, of, &name, begin_ns)?),
                        (_, Some(name)) => heard.to = Some(self.path(pid, of, &name, begin_ns)?),
                    }
                }
                't' | 'r' => heard.to = string(part),
                'f' => fd = Some(*part),
                'o' => {
                    heard.call.other = self.slot(pid, part, begin_ns)?.map_or(0, |slot| slot.file.number);
                }
                'n' => heard.call.length = number(part, &self.words) as u64,
                '@' | '>' if *part != "NULL" => {
                    let first = part.trim_start_matches('[').split([' ', ']']).next().unwrap_or_default();
                    let into = if role == '@' { &mut heard.call.offset } else { &mut heard.call.other_offset };
                    *into = number(first, &self.words);
                }
                'm' => heard.call.mode = number(part, &self.words) as u16,
                'x' => heard.call.flags |= number(part, &self.words) as u32,
                'v' => {
                    let lengths = part.split("iov_len=").skip(1);
                    let sum = lengths
                        .map(|text| number(text.split(['}', ',']).next().unwrap_or_default(), &self.words))
                        .fold(0, i64::saturating_add);
                    heard.call.length = sum.max(heard.call.result) as u64;
                }
                's' => {
                    let [mode, bytes] = ["st_mode=", "st_size="]
                        .map(|name| field(part, name).or(field(part, &name.replace("st_", "stx_"))));
                    heard.facts = mode.map(|mode| {
                        (number(mode, &self.words) as u32, bytes.map_or(0, |bytes| number(bytes, &self.words) as u64))
                    });
                }
                'h' => {
                    let [flags, mode] =
                        ["flags=", "mode="].map(|name| field(part, name).map_or(0, |text| number(text, &self.words)));
                    (heard.call.flags, heard.call.mode) = (flags as u32, mode as u16);
                }
                _ => {}
            }
        }
        // Another name of a descriptor.
        let follows = heard.call.flags & libc::AT_SYMLINK_NOFOLLOW as u32 == 0;
        let own = heard.at.as_deref().and_then(trace::descriptor).filter(|_| follows).map(|fd| fd.to_string());
        match (kind, &own) {
            (Kind::Link | Kind::Stat | Kind::Chown | Kind::Chmod | Kind::Utimens, Some(own)) => {
                (heard.at, fd) = (None, Some(own.as_str()));
            }
            (Kind::Open, Some(own)) => {
                if let Some(slot) = self.slot(pid, own, begin_ns)? {
                    heard.at = Some(slot.file.path.clone());
                }
            }
            _ => {}
        }
        if heard.call.offset == -1 {
            heard.call.kind = match kind {
                Kind::Preadv => Kind::Readv,
                Kind::Pwritev => Kind::Writev,
                kind => kind,
            };
        }
        if heard.call.takes_umask() {
            heard.call.mode &= !self.threads[&pid].around.borrow().umask;
        }
        if kind == Kind::Close {
            let thread = self.threads.get_mut(&pid).expect("it is there");
            let by_number = |fd| thread.table.borrow_mut().remove(&fd);
            let slot = thread.closing.take().or_else(|| fd.and_then(descriptor).and_then(by_number));
            // Of a file that other descriptors are of as well, it closes nothing.
            let Some(Ok(file)) = slot.map(|slot| Rc::try_unwrap(slot.file)) else { return Ok(()) };
            heard.call.file = file.number;
            return self.hand_over(heard);
        }
        if let Some(fd) = fd {
            let Some(slot) = self.slot(pid, fd, begin_ns)? else {
                return if kind.is_copy() && heard.call.other != 0 { self.hand_over(heard) } else { Ok(()) };
            };
            heard.call.file = slot.file.number;
            heard.call.kind = match heard.call.kind {
                Kind::Stat => Kind::Fstat,
                Kind::Chown => Kind::Fchown,
                Kind::Chmod => Kind::Fchmod,
                Kind::Utimens => Kind::Futimens,
                kind => kind,
            };
        }
        match kind {
            Kind::Unlink if heard.call.flags & libc::AT_REMOVEDIR as u32 != 0 => heard.call.kind = Kind::Rmdir,
            Kind::Open if heard.call.result >= 0 => {
                let fd = heard.call.result as i32;
                if let Some(real) = &heard.real {
                    let name = heard.at.as_deref().map(normal).unwrap_or_default();
                    self.learn(&name, real);
                    if name.is_empty() || name.starts_with(UNKNOWN_DIRECTORY) {
                        heard.at = Some(real.clone());
                    }
                }
                let Some(path) = heard.at.clone() else { return Ok(()) };
                let slot = self.opened(normal(&path), heard.call.flags & libc::O_CLOEXEC as u32 != 0);
                (heard.call.other, heard.call.result) = (slot.file.number, 0);
                self.put(pid, fd, slot, end_ns)?;
            }
            _ => {}
        }
        let any = Some(Place { base: 0, name: 0 });
        let [at, to] = [&heard.at, &heard.to].map(|name| any.filter(|_| name.is_some()));
        if (Call { at, to, ..heard.call }).is_complete() || heard.call.may_lack() {
            self.hand_over(heard)
        } else {
            Ok(())
        }
    }
}

/// "3</a/path>".
fn descriptor(text: &str) -> Option<i32> {
    text.split(['<', ')']).next()?.trim().parse().ok()
}

fn thread_number(threads: &HashMap<u32, Thread>, pid: u32) -> u32 {
    threads.get(&pid).map_or(1, |thread| thread.number)
}

fn clone_flags(text: &str, words: &HashMap<&str, i32>) -> i64 {
    field(text, "flags=").map_or(0, |flags| number(flags, words))
}

#[cfg(test)]
mod tests {
    use super::super::tests::named;
    use crate::call::Unknown;

    #[test]
    fn calls_of_threads_are_put_together_and_tell_what_was_there() {
        let log = r#"
100 10.000000 execve("/bin/sh", ["sh"], 0x7f /* 3 vars */) = 0 <0.000500>
100 10.001000 openat(AT_FDCWD</w>, "in, put", O_RDONLY|O_CLOEXEC) = 3</w/in, put> <0.000010>
100 10.002000 fstat(3</w/in, put>, {st_mode=S_IFREG|0640, st_size=9000, ...}) = 0 <0.000005>
100 10.003000 read(3</w/in, put>, "a) = 1 <x"..., 4096) = 4096 <0.000020>
100 10.004000 vfork( <unfinished ...>
101 10.005000 openat(AT_FDCWD</w>, "out\303\244", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 4</w/out\303\244> <0.000010>
101 10.006000 fdatasync(4</w/out\303\244> <unfinished ...>
100 10.006500 <... vfork resumed>) = 101 <0.002500>
100 10.006600 wait4(-1,  <unfinished ...>
101 10.007000 <... fdatasync resumed>) = 0 <0.001000>
101 10.008000 write(1</w/log>, "x", 1) = 1 <0.000001>
101 10.008500 rename("outä", "d/out") = 0
101 10.009000 exit_group(0)   = ?
101 10.009500 +++ exited with 0 +++
100 10.009600 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 101 <0.003000>
100 10.009700 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=101} ---
100 10.010000 stat("/etc/passwd", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0 <0.000001>
100 10.011000 openat(AT_FDCWD</w>, "none", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000001>
100 10.012000 unlinkat(AT_FDCWD</w>, "old", AT_REMOVEDIR) = 0 <0.000001>
100 10.020000 +++ exited with 3 +++
"#;
        let (calls, tree, done) = named(log, &[], false).expect("sound");
        let told: Vec<String> = calls
            .iter()
            .map(|(call, names)| {
                let (kind, file) = (call.kind.name(), call.file.max(call.other));
                format!("{} {kind} #{file} {names} = {} <{}>", call.thread, call.result, call.took_ns / 1000)
            })
            .collect();
        let expected = [
            "1 open #1 in, put = 0 <10>",
            "1 fstat #1  = 0 <5>",
            "1 read #1  = 4096 <20>",
            "1 clone #0  = 2 <0>",
            "2 open #2 outä = 0 <10>",
            "2 fdatasync #2  = 0 <1000>",
            "2 open #3 log = 0 <0>",
            "2 write #3  = 1 <1>",
            "2 rename #0 outä d/out = 0 <0>",
            "2 close #3  = 0 <0>",
            "2 close #2  = 0 <0>",
            "2 exit #0  = 0 <0>",
            "1 wait4 #0  = 2 <3000>",
            "1 open #0 none = -2 <1>",
            "1 rmdir #0 old = 0 <1>",
            "1 close #1  = 0 <0>",
            "1 exit #0  = 0 <0>",
        ];
        assert_eq!(told, expected);
        assert_eq!(tree, ["d", "in, put 9000", "log 0", "old"]);
        let think: Vec<u64> = [1, 4].map(|index: usize| calls[index].0.think_ns / 1000).to_vec();
        assert_eq!(think, [990, 1000], "since the last call ended, and since the thread began");
        assert_eq!((done.format, done.left_out_lines), ("strace", 0));
        // Without -y the descriptors are followed; what was open before is not known.
        let plain = log
            .replace("AT_FDCWD</w>", "AT_FDCWD")
            .replace("</w/in, put>", "")
            .replace("</w/out\\303\\244>", "")
            .replace("</w/log>", "");
        let (calls, ..) = named(&plain, &[], false).expect("sound");
        assert_eq!(calls.len(), expected.len() - 3, "without the inherited file: {calls:?}");
        let wrong = log.replace("fstat(3", "fstat 3");
        let error = named(&wrong, &[], false).map(|_| ()).expect_err("no call").to_string();
        assert!(error.starts_with("line 4: expected [PID] [TIME] CALL(ARGUMENTS) = RESULT"), "{error}");
        assert_eq!(named(&wrong, &[], true).expect("lenient").2.left_out_lines, 1);
        let error = named(log, &["/elsewhere"], false).map(|_| ()).expect_err("nothing is there").to_string();
        assert!(error.contains("below /elsewhere"), "{error}");
    }

    #[test]
    fn the_target_of_a_link_is_not_taken_for_the_working_directory() {
        let log = r#"
101 10.0 openat(AT_FDCWD, "settings", O_RDONLY) = 3</etc/app/settings> <0.000010>
101 10.1 openat(AT_FDCWD, "a", O_RDONLY) = 4</w/a> <0.000010>
101 10.2 openat(AT_FDCWD, "d/b", O_RDONLY) = 5</w/d/b> <0.000010>
101 10.3 openat(AT_FDCWD, "d/settings", O_RDONLY) = 6</etc/app/settings> <0.000010>
101 10.4 unlink("/w/c") = 0 <0.000010>
"#;
        let (_, tree, _) = named(log, &[], false).expect("sound");
        assert_eq!(tree, ["a 0", "c 0", "d", "d/b 0", "d/settings 0", "settings 0"]);
    }

    #[test]
    fn what_a_clone_or_a_ring_wrote_is_not_taken_for_nothing() {
        let read = r#"101 10.0 openat(AT_FDCWD</w>, "f", O_RDONLY) = 4</w/f> <0.000010>"#;
        let sized = "101 10.1 fstat(4</w/f>, {st_mode=S_IFREG|0644, st_size=5000, ...}) = 0 <0.000010>";
        let clone = "101 10.3 ioctl(3</w/o>, FICLONE, 4) = 0 <0.000010>";
        let part = "101 10.3 ioctl(3</w/o>, FICLONERANGE, {src_fd=4, src_offset=0, src_length=3000, dest_offset=0}) = 0 <0.000010>";
        let ring = "101 10.3 io_uring_enter(5, 1, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 1 <0.000010>";
        for (before, call, expected) in
            [("", "", 0), ("", clone, 9000), (sized, clone, 5000), ("", part, 3000), ("", ring, 9000)]
        {
            let log = format!(
                r#"{read}
{before}
101 10.2 openat(AT_FDCWD</w>, "o", O_RDWR|O_CREAT|O_TRUNC, 0666) = 3</w/o> <0.000010>
{call}
101 10.4 mmap(NULL, 9000, PROT_READ, MAP_SHARED, 3</w/o>, 0) = 0x7f0000000000 <0.000010>
"#
            );
            let (calls, ..) = named(&log, &["/w"], false).expect("sound");
            let map = calls.iter().find(|(call, _)| call.kind == crate::call::Kind::Map).expect("it is in the log");
            assert_eq!(map.0.length, expected, "{before} {call}");
        }
    }

    #[test]
    fn threads_that_share_their_directory_share_the_umask() {
        let alone = "CLONE_NEWNS|CLONE_FS";
        for (flags, unshared, expected) in [
            ("CLONE_FS|CLONE_FILES", "CLONE_FILES", 0o700),
            ("CLONE_FS|CLONE_FILES", alone, 0o755),
            ("SIGCHLD", "0", 0o755),
        ] {
            let log = format!(
                r#"
101 10.0 clone(child_stack=NULL, flags={flags}) = 102 <0.000010>
102 10.0 unshare({unshared}) = 0 <0.000010>
102 10.1 umask(077) = 022 <0.000010>
101 10.2 mkdir("/w/d", 0777) = 0 <0.000010>
"#
            );
            let (calls, ..) = named(&log, &["/w"], false).expect("sound");
            let made = calls.iter().find(|(call, _)| call.kind == crate::call::Kind::Mkdir).expect("it is in the log");
            assert_eq!(made.0.mode, expected, "{flags}, {unshared}");
        }
    }

    /// With all letters as numbers (-xx), quotes, a directory that is renamed while it is open, and names of descriptors.
    #[test]
    fn paths_are_those_that_the_log_has() {
        let log = r#"
101 10.0 openat(AT_FDCWD<\x2f\x77>, "\x64", O_RDONLY|O_DIRECTORY) = 3<\x2f\x77\x2f\x64> <0.000010>
101 10.1 rename("d", "e") = 0 <0.000010>
101 10.2 openat(3</w/e>, "q\"x, y", O_RDONLY) = 4</w/e/q"x, y> <0.000010>
101 10.3 pread64(4</w/e/q"x, y>, "a, b", 10, 7) = 4 <0.000010>
101 10.4 fsync(5<\x2f\x77\x2f\x66>) = 0 <0.000010>
101 10.5 umask(077) = 022 <0.000010>
101 10.6 openat(AT_FDCWD</w>, ".", O_RDWR|O_TMPFILE, 0666) = 6</w/#1 (deleted)> <0.000010>
101 10.7 linkat(AT_FDCWD</w>, "/proc/self/fd/6", AT_FDCWD</w>, "linked", AT_SYMLINK_FOLLOW) = 0 <0.000010>
101 10.8 fcntl(6</w/linked>, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_END, l_start=-5, l_len=5}) = 0 <0.000010>
101 10.9 setxattr("linked", "user.x", "v", 1, XATTR_CREATE) = 0 <0.000010>
101 11.0 stat("/dev/fd/6", {st_mode=S_IFREG|0600, st_size=0, ...}) = 0 <0.000010>
101 11.1 fchdir(3</w/e>) = 0 <0.000010>
101 11.2 mkdir("m", 0777) = 0 <0.000010>
101 11.3 +++ exited with 0 +++
"#;
        let (calls, ..) = named(log, &[], false).expect("sound");
        let told: Vec<String> = calls
            .iter()
            .take_while(|(call, _)| call.kind.name() != "close")
            .map(|(call, names)| {
                let crate::call::Call { file, other, offset, other_offset, mode, .. } = *call;
                format!("{} {names} #{file} #{other} {offset} {other_offset} {mode:o}", call.kind.name())
            })
            .collect();
        let expected = [
            "open d #0 #1 0 0 0",
            "rename d e #0 #0 0 0 0",
            "open e/q\"x, y #0 #2 0 0 0",
            "pread  #2 #0 7 0 0",
            "open f #0 #3 0 0 0",
            "fsync  #3 #0 0 0 0",
            "open . #0 #4 0 0 600",
            "link linked #4 #0 0 0 0",
            "fcntl lock  #4 #0 -5 2 1",
            "setxattr linked user.x #0 #0 0 0 0",
            "fstat  #4 #0 0 0 0",
            "mkdir e/m #0 #0 0 0 700",
        ];
        assert_eq!(told, expected);
        let made = calls.iter().find(|(call, _)| call.kind == crate::call::Kind::Setxattr).expect("there is one").0;
        assert_eq!(made.flags, libc::XATTR_CREATE as u32);
    }

    /// Through a link, by a descriptor that is not known, and relative to where the log says only later that it worked.
    #[test]
    fn what_a_descriptor_is_of_says_which_file_was_opened() {
        let log = r#"
101 10.0 stat("first", {st_mode=S_IFREG|0644, st_size=7, ...}) = 0 <0.000010>
101 10.1 openat(9, "two", O_RDONLY) = 3</w/d/two> <0.000010>
101 10.2 read(3</w/d/two>, "x"..., 100) = 100 <0.000010>
101 10.3 open("/link/to/three", O_RDWR|O_CREAT, 0666) = 4</w/three> <0.000010>
101 10.4 write(4</w/three>, "x", 1) = 1 <0.000010>
101 10.5 open("d/four", O_RDONLY) = 5</w/d/four> <0.000010>
101 10.6 open("d/link", O_RDONLY) = 6</w/five> <0.000010>
101 10.7 open("/w/link/six", O_RDONLY) = 7</elsewhere/six> <0.000010>
101 10.8 open("/link/other", O_RDONLY) = 8</elsewhere/other> <0.000010>
"#;
        for under in [&[][..], &["/w"]] {
            let (calls, tree, _) = named(log, under, false).expect("sound");
            let told: Vec<String> = calls.iter().map(|(call, names)| format!("{} {names}", call.kind.name())).collect();
            let expected = [
                "stat first",
                "open d/two",
                "read ",
                "open three",
                "write ",
                "open d/four",
                "open d/link",
                "open link/six",
            ];
            assert_eq!(told, expected, "{under:?}");
            let there = ["d", "d/four 0", "d/link 0", "d/two 100", "first 7", "link", "link/six 0"];
            assert_eq!(tree, there, "{under:?}");
        }
        // As with the options -y and -yy of an strace that does not say it of AT_FDCWD, after a relative chdir.
        let log = r#"
101 10.0 chdir("d") = 0 <0.000010>
101 10.1 openat(AT_FDCWD, "../one", O_RDONLY) = 3</w/one> <0.000010>
101 10.2 openat(AT_FDCWD, "two", O_RDONLY) = 3</w/d/two> <0.000010>
"#;
        let (calls, ..) = named(log, &["/w"], false).expect("sound");
        let names: Vec<&str> = calls.iter().map(|(_, names)| &**names).filter(|names| !names.is_empty()).collect();
        assert_eq!(names, ["d/../one", "d/two"]);
    }

    #[test]
    fn of_a_mapping_what_is_behind_the_file_s_end_is_none_of_it() {
        let log = r#"
101 10.0 openat(AT_FDCWD</w>, "f", O_RDONLY) = 3</w/f> <0.000010>
101 10.1 mmap(NULL, 1048576, PROT_READ, MAP_SHARED, 3</w/f>, 0) = 0x7f0000000000 <0.000010>
101 10.2 fstat(3</w/f>, {st_mode=S_IFREG|0644, st_size=5000, ...}) = 0 <0.000010>
101 10.3 mmap(NULL, 1048576, PROT_READ, MAP_SHARED, 3</w/f>, 0) = 0x7f0000000000 <0.000010>
101 10.4 mmap(NULL, 1048576, PROT_READ, MAP_SHARED, 3</w/f>, 0x1000) = 0x7f0000000000 <0.000010>
101 10.5 mmap(NULL, 1048576, PROT_READ, MAP_SHARED, 3</w/f>, 0x2000) = 0x7f0000000000 <0.000010>
101 10.6 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3</w/f>, 0) = 0x7f0000000000 <0.000010>
"#;
        let (calls, ..) = named(log, &["/w"], false).expect("sound");
        let maps = calls.iter().filter(|(call, _)| call.kind == crate::call::Kind::Map);
        let lengths: Vec<u64> = maps.map(|(call, _)| call.length).collect();
        assert_eq!(lengths, [1 << 20, 5000, 904, 0, 4096], "how long it is is not known at first");
    }

    /// What is behind a name says what it stands for: without it, the calls that failed here would be made.
    #[test]
    fn slashes_and_dots_of_names_stay() {
        let log = r#"
101 10.0 rmdir("/w/xx/.") = -1 EINVAL (Invalid argument) <0.000010>
101 10.1 openat(AT_FDCWD</w>, "yy/", O_RDWR|O_CREAT, 0666) = -1 EISDIR (Is a directory) <0.000010>
101 10.2 rename("keep", "new/") = -1 ENOTDIR (Not a directory) <0.000010>
101 10.3 rmdir("d/..") = -1 ENOTEMPTY (Directory not empty) <0.000010>
101 10.4 stat("/w//d/./../d/", {st_mode=S_IFDIR|0755, st_size=4096, ...}) = 0 <0.000010>
101 10.5 chdir("d/.") = 0 <0.000010>
101 10.6 unlink("../keep") = 0 <0.000010>
101 10.7 symlink("keep/", "link") = 0 <0.000010>
"#;
        let (calls, tree, _) = named(log, &["/w"], false).expect("sound");
        let told: Vec<String> = calls.iter().map(|(call, names)| format!("{} {names}", call.kind.name())).collect();
        let expected = [
            "rmdir xx/.",
            "open yy/",
            "rename keep new/",
            "rmdir d/..",
            "stat d/../d/",
            "unlink d/../keep",
            "symlink d/link keep/",
        ];
        assert_eq!(told[..expected.len()], expected);
        assert_eq!(tree, ["d", "keep 0"]);
    }

    /// strace has no names for calls that are newer than it.
    /// A time that is less than the one before, where the first is zero, is one since the line before.
    #[test]
    fn times_since_the_line_before_are_refused() {
        let log = "1 0.000000 mkdir(\"/w/a\", 0777) = 0\n1 0.000300 mkdir(\"/w/b\", 0777) = 0\n";
        assert_eq!(named(log, &["/w"], false).expect("it may be the clock's").0.len(), 2);
        let more = "1 0.000200 mkdir(\"/w/c\", 0777) = 0\n";
        for lenient in [false, true] {
            let error = named(&format!("{log}{more}"), &["/w"], lenient).err().expect("they go back").to_string();
            assert!(error.contains("strace -r") && error.contains("-ttt"), "{error}");
        }
    }

    #[test]
    fn what_children_did_without_lines_is_not_known() {
        const OTHERS: &str = "10.4 vfork() = 104\n10.5 fork() = 105\n";
        let without = |log: &str| {
            let (_, _, done) = named(log, &["/w"], false).expect("sound");
            done.unknown.into_iter().find_map(|unknown| match unknown {
                Unknown::Children { count, follows } => Some((count, follows)),
                _ => None,
            })
        };
        let log = format!("10.0 mkdir(\"/w/a\", 0777) = 0\n{OTHERS}");
        assert_eq!(without(&log), Some((2, false)));
        let followed = OTHERS.lines().map(|line| format!("101 {line}\n")).collect::<String>();
        let log = format!("101 10.0 mkdir(\"/w/a\", 0777) = 0\n{followed}104 10.6 +++ exited with 0 +++\n");
        assert_eq!(without(&log), Some((1, true)));
        assert_eq!(without(&format!("{log}105 10.6 +++ exited with 0 +++\n")), None);
    }

    /// By Ctrl-C: also where what is left of the last line looks whole.
    #[test]
    fn a_last_line_that_was_cut_is_left_out() {
        let log = "1 10.0 mkdir(\"/w/a\", 0777) = 0 <0.000010>\n1 10.1 read(3</w/x>,  <detached ...>\n1 10.2 mkdir(\"/w/b\", 0777) = 0 <0.000010>\n";
        for end in log.trim_end().rfind('\n').expect("it has lines") + 2..log.len() {
            let (calls, _, done) = named(&log[..end], &["/w"], false).expect("sound");
            assert_eq!((calls.len(), done.left_out_lines), (1, 0), "{end}");
            assert!(done.unknown.contains(&Unknown::LastLine), "{:?}", done.unknown);
        }
        let (calls, _, done) = named(log, &["/w"], false).expect("sound");
        assert_eq!(calls.len(), 2);
        assert!(!done.unknown.contains(&Unknown::LastLine), "{:?}", done.unknown);
    }

    #[test]
    fn calls_without_a_name_are_counted() {
        let log = r#"
101 10.0 mkdir("/w/d", 0777) = 0 <0.000010>
101 10.1 syscall_0x1c4(0xffffff9c, 0x7f0000000000, 0x1a4, 0x100, 0, 0) = 0 <0.000010>
101 10.2 syscall_0x1c4(0xffffff9c, 0x7f0000000000, 0x1a4, 0x100, 0, 0) = -1 EPERM (Operation not permitted) <0.000010>
101 10.3 syscall_0x7ff(0, 0, 0, 0, 0, 0) = 0 <0.000010>
"#;
        let (calls, _, done) = named(log, &["/w"], false).expect("sound");
        let told: Vec<(&str, i64)> = calls.iter().map(|(call, _)| (call.kind.name(), call.result)).collect();
        assert_eq!(told, [("mkdir", 0), ("lost call", 0), ("lost call", -1)]);
        let unnamed = Unknown::Unnamed { calls: vec!["fchmodat2".to_owned()] };
        assert!(done.unknown.contains(&unnamed), "{:?}", done.unknown);
    }

    #[test]
    fn calls_that_a_replay_cannot_make_are_counted() {
        let log = r#"
101 10.0 openat(AT_FDCWD</w>, "f", O_RDWR|O_CREAT, 0600) = 3</w/f> <0.000010>
101 10.1 setxattrat(AT_FDCWD, "/w/f", 0, "user.a", {value="b", size=1, flags=0}, 16) = 0 <0.000010>
101 10.2 syscall_0x1d0(0xffffff9c, 0x7f0000000000, 0, 0x7f0000000000, 0x7f0000000000, 0x10) = 1 <0.000010>
101 10.3 ioctl(3</w/f>, FS_IOC_FIEMAP, {fm_start=0, fm_length=4096}) = 0 <0.000010>
101 10.4 ioctl(1, TCGETS, 0x7f0000000000) = -1 ENOTTY (Inappropriate ioctl for device) <0.000010>
101 10.5 bind(4, {sa_family=AF_UNIX, sun_path="/w/a,socket"}, 110) = 0 <0.000010>
101 10.6 bind(4, {sa_family=AF_INET, sin_port=htons(1), sin_addr=inet_addr("0.0.0.0")}, 16) = 0 <0.000010>
101 10.7 io_uring_setup(8, {flags=IORING_SETUP_SQPOLL, sq_thread_cpu=0}) = 5 <0.000010>
101 10.8 io_uring_setup(8, {flags=0}) = 6 <0.000010>
"#;
        let (calls, _, done) = named(log, &["/w"], false).expect("sound");
        let told: Vec<&str> = calls.iter().map(|(call, _)| call.kind.name()).collect();
        assert_eq!(told, ["open", "lost call", "lost call", "ioctl", "bind", "io_uring_setup"]);
        let unnamed = Unknown::Unnamed { calls: vec!["getxattrat".to_owned(), "setxattrat".to_owned()] };
        assert!(done.unknown.contains(&unnamed), "{:?}", done.unknown);
    }

    /// Another thread opens a file while a close is on its way; a PID comes again; a result has a sign in its path.
    #[test]
    fn numbers_that_come_again_are_of_others() {
        let log = r#"101 10.0 openat(AT_FDCWD</w>, "one", O_RDWR|O_CREAT, 0600) = 3</w/one = 1> <0.000010>
101 10.1 clone(child_stack=NULL, flags=CLONE_FILES) = 102 <0.000010>
101 10.2 close(3</w/one> <unfinished ...>
102 10.2 openat(AT_FDCWD</w>, "two", O_RDWR|O_CREAT, 0600) = 3</w/two> <0.000010>
101 10.3 <... close resumed>) = 0 <0.1>
102 10.4 pwritev2(3</w/two>, [{iov_base="x", iov_len=1}], 1, -1, RWF_DSYNC) = 1 <0.000010>
102 10.5 copy_file_range(3</w/two>, [0], 3</w/two>, [4096], 1, 0) = 1 <0.000010>
102 10.6 msync(0x7f0000000000, 4096, MS_SYNC) = 0 <0.000010>
102 10.7 +++ exited with 0 +++
101 10.8 clone(child_stack=NULL, flags=SIGCHLD) = 102 <0.000010>
101 10.8 clone(child_stack=NULL, flags=SIGCHLD) = 103 <0.000010>
103 10.9 +++ exited with 0 +++
101 11.0 +++ killed by SIGKILL +++
"#;
        let (calls, _, _) = named(log, &[], false).expect("sound");
        let told: Vec<String> = calls
            .iter()
            .map(|(call, _)| {
                let crate::call::Call { thread, file, other, offset, other_offset, flags, .. } = *call;
                format!("{thread} {} #{file} #{other} {offset} {other_offset} {flags:x}", call.kind.name())
            })
            .collect();
        let expected = [
            "1 open #0 #1 0 0 42",
            "1 clone #0 #0 0 0 0",
            "2 open #0 #2 0 0 42",
            "1 close #1 #0 0 0 0",
            "2 writev #2 #0 -1 0 2",
            "2 copy_file_range #2 #2 0 4096 0",
            "2 msync #0 #0 0 0 0",
            "2 exit #0 #0 0 0 0",
            "1 clone #0 #0 0 0 0",
            "1 clone #0 #0 0 0 0",
            "4 exit #0 #0 0 0 0",
            "1 exit #0 #0 0 0 0",
        ];
        assert_eq!(told, expected);
    }
}

//! Logs that have reads and writes of named files and little else: fio's iologs and Darshan's DXT as text.

use super::log::{Each, Heard, ImportError, Lines, Log};
use crate::call::{Call, INHERITED, Kind, Unknown};
use crate::iolog::{Action, Form, Line};
use std::collections::HashMap;

/// Files by their names, opened when they are first used.
#[derive(Default)]
struct Files {
    numbers: HashMap<String, u32>,
    last: u32,
}

impl Files {
    fn opened(&mut self, name: &str, call: Call, each: Each<'_>) -> Result<u32, ImportError> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        self.last += 1;
        self.numbers.insert(name.to_owned(), self.last);
        let flags = call.flags | libc::O_RDWR as u32;
        hand_over(
            each,
            Call { kind: Kind::Open, other: self.last, flags, mode: 0o644, took_ns: 0, ..call },
            Some(name),
        )?;
        Ok(self.last)
    }
}

fn hand_over(each: Each<'_>, call: Call, name: Option<&str>) -> Result<(), ImportError> {
    let at = name.map(|name| crate::trace::normal(name.as_bytes()));
    each(Heard { call, at, ..Heard::default() }).map_err(ImportError::Read)
}

/// What a fio job logged with `write_iolog`, of version 2 or 3.
pub(super) fn iolog(lines: &mut Lines, each: Each<'_>) -> Result<Log, ImportError> {
    let head = lines.next()?.unwrap_or_default();
    let mut form = Form::of(&head).unwrap_or(Form { has_times: false, now_ns: 0 });
    let mut files = Files::default();
    while let Some(text) = lines.next_whole()? {
        let Some(Line { name, action, offset, length }) = form.line(&text) else {
            lines.wrong(form.expected())?;
            continue;
        };
        let call = Call { thread: 1, begin_ns: form.now_ns, ..Call::default() };
        let kind = match action {
            Action::Add | Action::Wait => continue,
            Action::Open => {
                files.opened(name, call, each)?;
                continue;
            }
            Action::Close => {
                if let Some(file) = files.numbers.remove(name) {
                    hand_over(each, Call { kind: Kind::Close, file, ..call }, None)?;
                }
                continue;
            }
            Action::Read => Kind::Pread,
            Action::Write => Kind::Pwrite,
            Action::Trim => Kind::Fallocate,
            Action::Sync => Kind::Fsync,
            Action::Datasync => Kind::Fdatasync,
        };
        // Before its first line fio lays a file out.
        let file = files.opened(name, Call { flags: INHERITED, ..call }, each)?;
        hand_over(each, moving(Call { kind, file, ..call }, offset, length), None)?;
    }
    let mut log = Log { end_ns: form.now_ns, ..Log::default() };
    let gone = if form.has_times { Unknown::Durations } else { Unknown::Times };
    log.unknown = vec![gone, Unknown::Results, Unknown::Names, Unknown::Threads];
    Ok(log)
}

/// A call that moves all that it is to move.
fn moving(call: Call, offset: Option<u64>, length: Option<u64>) -> Call {
    let (offset, length) = (offset.unwrap_or(0).min(i64::MAX as u64) as i64, length.unwrap_or(0).min(i64::MAX as u64));
    match call.kind {
        Kind::Fsync | Kind::Fdatasync => call,
        Kind::Fallocate => {
            let flags = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE) as u32;
            Call { offset, length, flags, ..call }
        }
        _ => Call { offset, length, result: length as i64, ..call },
    }
}

/// What `darshan-dxt-parser` prints: files one after the other, each with its accesses.
pub(super) fn dxt(lines: &mut Lines, each: Each<'_>) -> Result<Log, ImportError> {
    const EXPECTED: &str = "X_POSIX RANK read|write SEGMENT OFFSET LENGTH START END";
    let (mut names, mut name): (Vec<String>, Option<usize>) = (Vec::new(), None);
    let mut threads: HashMap<(u64, u64), u32> = HashMap::new();
    // By the end, as a recording has them.
    let mut calls: Vec<(u64, usize, Call)> = Vec::new();
    let mut of_mpi = 0u64;
    while let Some(line) = lines.next_whole()? {
        if let Some((_, found)) = line.split_once("file_name: ") {
            name = Some(names.len());
            names.push(found.trim().to_owned());
        }
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| words.get(index).and_then(|word| word.parse::<u64>().ok());
        let seconds = |index: usize| words.get(index).and_then(|word| word.parse::<f64>().ok());
        match words.first() {
            Some(&"X_POSIX") => {}
            // The same accesses come by POSIX.
            Some(&"X_MPIIO") => {
                of_mpi += 1;
                continue;
            }
            _ => {
                lines.wrong(EXPECTED)?;
                continue;
            }
        }
        let kind = match words.get(2) {
            Some(&"read") => Some(Kind::Pread),
            Some(&"write") => Some(Kind::Pwrite),
            _ => None,
        };
        let (Some(name), Some(kind), Some(rank), Some(offset), Some(length), Some(begin), Some(end)) =
            (name, kind, number(1), number(4), number(5), seconds(6), seconds(7))
        else {
            lines.wrong(EXPECTED)?;
            continue;
        };
        let next = threads.len() as u32 + 1;
        let thread = *threads.entry((rank, number(8).unwrap_or(0))).or_insert(next);
        let [begin_ns, end_ns] = [begin, end].map(|seconds| (seconds.max(0.0) * 1e9) as u64);
        let call = Call { kind, thread, begin_ns, took_ns: end_ns.saturating_sub(begin_ns), ..Call::default() };
        calls.push((end_ns, name, moving(call, Some(offset), Some(length))));
    }
    calls.sort_by_key(|(end_ns, ..)| *end_ns);
    let end_ns = calls.last().map_or(0, |(end_ns, ..)| *end_ns);
    let mut files: HashMap<u32, Files> = HashMap::new();
    let mut last = 0;
    for (_, name, call) in calls {
        let made = if call.kind == Kind::Pwrite { libc::O_CREAT as u32 } else { 0 };
        let own = files.entry(call.thread).or_default();
        own.last = last;
        let opening = Call { offset: 0, length: 0, result: 0, flags: made, ..call };
        let file = own.opened(&names[name], opening, each)?;
        last = last.max(own.last);
        hand_over(each, Call { file, ..call }, None)?;
    }
    let mut log = Log { end_ns, ..Log::default() };
    log.unknown = vec![Unknown::Opens, Unknown::Names, Unknown::Results, Unknown::Dropped];
    if of_mpi > 0 {
        log.unknown.push(Unknown::MpiIo { count: of_mpi });
    }
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::super::tests::imported;

    #[test]
    fn fio_lays_files_out_and_reads_and_writes_them() {
        for (text, took) in [
            (
                "fio version 2 iolog\n/x/f add\n/x/f open\n/x/f write 0 4096\n/x/f wait 7\n/x/f read 8192 4096\n/x/g sync\n/x/f close\n",
                7_000_000,
            ),
            (
                "fio version 3 iolog\n1 /x/f add\n2 /x/f open\n5 /x/f write 0 4096\n9 /x/f read 8192 4096\n9 /x/g sync\n9 /x/f close\n",
                9_000,
            ),
        ] {
            let (calls, tree) = imported(text, &[]).expect("sound");
            let kinds: Vec<String> = calls.iter().map(|call| format!("{} {}", call.kind.name(), call.result)).collect();
            assert_eq!(kinds, ["open 0", "pwrite 4096", "pread 4096", "open 0", "fsync 0", "close 0"]);
            assert_eq!(calls[2].begin_ns, took);
            assert_eq!(tree, ["f 12288", "g 0"]);
        }
        let error = imported("fio version 3 iolog\n1 /x/f read 0\n", &[]).expect_err("a length is missing");
        assert!(error.to_string().starts_with("line 2: expected TIME FILE ACTION"), "{error}");
    }

    #[test]
    fn darshan_has_accesses_of_ranks_in_the_order_of_files() {
        let text = "# darshan log version: 3.41\n# DXT, file_id: 1, file_name: /scratch/a\n# DXT, rank: 0, hostname: n\n\
            # Module    Rank  Wt/Rd  Segment  Offset  Length  Start(s)  End(s)\n\
            X_MPIIO 0 write 0 0 100 0.5 0.6\n X_POSIX 0 write 0 0 100 0.5 0.6 [OST: 1]\n X_POSIX 1 write 0 100 50 0.1 0.2\n\
            # DXT, file_id: 2, file_name: /scratch/d/b\n X_POSIX 0 read 0 10 20 0.3 0.4\n";
        let (calls, tree) = imported(text, &[]).expect("sound");
        let told: Vec<String> =
            calls.iter().map(|call| format!("{} {} {}", call.thread, call.kind.name(), call.offset)).collect();
        let expected = ["2 open 0", "2 pwrite 100", "1 open 0", "1 pread 10", "1 open 0", "1 pwrite 0"];
        assert_eq!((told, tree), (expected.map(str::to_owned).to_vec(), vec!["d".to_owned(), "d/b 30".to_owned()]));
    }
}

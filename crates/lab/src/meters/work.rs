//! The work of a guest's kernel, which counts its own instructions (`sandbox/kernel/work.patch`).

use fstone_files::read_text;
use fstone_model::result::{CommandRecord, KERNEL_WORK};
use std::{
    collections::{BTreeMap, HashMap},
    fs::{File, OpenOptions},
    io::Write,
    os::unix::fs::FileExt,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// Whether a kernel is there that counts, and no [`Counter`] has it: it has one set of sums, so of steps that overlap the first counts. To look
/// for the file would be a system call more, which takes virtual time, on kernels that do not.
static FREE: AtomicBool = AtomicBool::new(false);

/// Whether it counts: what meters do beside a step would be counted as the step's.
static COUNTS: AtomicBool = AtomicBool::new(false);

pub(crate) fn may_count(counts: bool) {
    FREE.store(counts, Relaxed);
    COUNTS.store(counts, Relaxed);
}

pub(super) fn counts() -> bool {
    COUNTS.load(Relaxed)
}

#[derive(Debug)]
pub(super) struct Counter {
    /// Kept open: all that a mark takes is counted. `None` once one failed, for the sums are of another interval then.
    file: Option<File>,
    has_begun: bool,
    runs: bool,
    /// The instructions until the end of each phase but the last.
    until: Vec<u64>,
}

impl Counter {
    pub(super) fn take() -> Option<Self> {
        let open = || OpenOptions::new().read(true).write(true).open(KERNEL_WORK).ok();
        let new = || Self { file: open(), has_begun: false, runs: false, until: Vec::new() };
        FREE.swap(false, Relaxed).then(new)
    }

    pub(super) fn resume(&mut self) {
        self.mark(if self.has_begun { b"1" } else { b"0" });
        (self.has_begun, self.runs) = (true, true);
    }

    pub(super) fn pause(&mut self) {
        if std::mem::take(&mut self.runs) {
            self.mark(b"2");
        }
    }

    /// Pauses between two phases. Only the first line is read: lines of functions would take long to make.
    pub(super) fn end_phase(&mut self) {
        self.pause();
        let mut line = [0; 48];
        let length = self.file.as_ref().and_then(|file| file.read_at(&mut line, 0).ok());
        match length.and_then(|length| instructions(&String::from_utf8_lossy(&line[..length]))) {
            Some(until) => self.until.push(until),
            None => self.file = None,
        }
    }

    /// What the file takes: 0 begins to sum anew, 1 goes on, 2 stops.
    fn mark(&mut self, word: &[u8]) {
        if self.file.as_mut().is_some_and(|file| file.write_all(word).is_err()) {
            self.file = None;
        }
    }

    pub(super) fn read(&self) -> Option<KernelWork> {
        self.file.as_ref().filter(|_| self.has_begun)?;
        let mut work = KernelWork::parse(&read_text(Path::new(KERNEL_WORK)).ok()?)?;
        work.phases = of_phases(&self.until, work.instructions);
        Some(work)
    }
}

/// Of the file's first line.
fn instructions(text: &str) -> Option<u64> {
    text.split_once(" instructions")?.0.parse().ok()
}

fn of_phases(until: &[u64], all: u64) -> Vec<u64> {
    let ends = until.iter().copied().chain([all]);
    ends.scan(0, |begin, end| Some(end.saturating_sub(std::mem::replace(begin, end)))).collect()
}

impl Drop for Counter {
    fn drop(&mut self) {
        FREE.store(true, Relaxed);
    }
}

/// What a kernel did in an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelWork {
    pub instructions: u64,
    /// Those of each phase of a load, in their order.
    pub phases: Vec<u64>,
    /// Bytes that it copied or filled.
    pub bytes: u64,
    /// What it was charged for both.
    pub charged_ns: u64,
    /// Instructions of kernel threads, and of interrupts while no program ran.
    pub background: u64,
    /// Instructions of interrupts.
    pub interrupts: u64,
    /// The interval, and how much of it the processor idled; 0 where a kernel of an earlier version did not say.
    pub wall_ns: u64,
    pub idle_ns: u64,
    /// Those of everything else, by the names of tasks, in their order.
    pub tasks: Vec<(String, u64)>,
    /// Instructions of each function that executed any, in the order of their names; one that is known in its file only is "name (file)".
    pub functions: Vec<(String, u64)>,
    /// Instructions by the functions that called each other, the outermost first: of the stack at every 10,007th.
    pub paths: BTreeMap<Vec<String>, u64>,
}

/// Of the tree of calls, what is less than such a part is recorded as its caller's: nobody sees it in a drawing.
const LEAST_PART: u64 = 5_000;

/// What the compiler keeps apart of a function, or makes of it for one caller, is a part of it.
fn plain(name: &str) -> String {
    let (name, rest) = name.split_once(' ').map_or((name, None), |(name, rest)| (name, Some(rest)));
    let whole = name.split('.').next().unwrap_or(name).to_owned();
    rest.map_or_else(|| whole.clone(), |rest| format!("{whole} {rest}"))
}

impl KernelWork {
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(|line| line.split_once(' ')).peekable();
        let mut total = |wanted: &str| {
            let (count, _) = lines.next_if(|line| line.is_some_and(|(_, name)| name == wanted))??;
            count.parse::<u64>().ok()
        };
        let mut work = Self {
            instructions: total("instructions")?,
            phases: Vec::new(),
            bytes: total("bytes")?,
            charged_ns: total("ns")?,
            background: total("background")?,
            interrupts: total("interrupts")?,
            idle_ns: total("idle").unwrap_or(0),
            wall_ns: total("wall").unwrap_or(0),
            tasks: Vec::new(),
            functions: Vec::new(),
            paths: BTreeMap::new(),
        };
        // By number: "path NUMBER CALLER COUNT NAME", and the caller of an outermost one is 0. Names of modules' functions have a space.
        let mut calls = HashMap::new();
        for (count, name) in lines.flatten() {
            if count == "task" {
                let task = name.split_once(' ').and_then(|(count, name)| Some((name.to_owned(), count.parse().ok()?)));
                work.tasks.extend(task);
            } else if count == "path" {
                let [number, caller, count, name] = name.splitn(4, ' ').collect::<Vec<_>>()[..] else { continue };
                let Ok(count) = count.parse::<u64>() else { continue };
                calls.insert(number, (caller, count, plain(name)));
            } else if let Ok(count) = count.parse() {
                work.functions.push((plain(name), count));
            }
        }
        for (mut number, (_, count, _)) in calls.iter().filter(|(_, (_, count, _))| *count > 0) {
            let mut path = Vec::new();
            while let Some((caller, _, name)) = calls.get(number).filter(|_| path.len() < calls.len()) {
                path.push(name.clone());
                number = caller;
            }
            path.reverse();
            *work.paths.entry(path).or_default() += count;
        }
        work.merge();
        Some(work)
    }

    /// Shares of the interval in which the processor was busy: for programs, the kernel, and interrupts. What programs take are the charges
    /// for system calls and clock readings. Where the work takes no time, those stand for the kernel's. `None` if it is not known how long it idled.
    pub(super) fn busy_shares(&self) -> Option<[f64; 3]> {
        let wall = (self.wall_ns > 0).then_some(self.wall_ns as f64)?;
        let busy = self.wall_ns.saturating_sub(self.idle_ns);
        let kernel = if self.charged_ns > 0 { self.charged_ns.min(busy) } else { busy };
        let interrupts =
            if self.charged_ns > 0 { self.interrupts as f64 / self.instructions.max(1) as f64 } else { 0.0 };
        let interrupts = kernel as f64 * interrupts;
        Some([(busy - kernel) as f64, kernel as f64 - interrupts, interrupts].map(|ns| ns / wall))
    }

    /// The functions, the tasks and the tree of calls, as a record of the step.
    pub(crate) fn record(&self) -> CommandRecord {
        let mut lines: Vec<String> = self.functions.iter().map(|(name, count)| format!("{count} {name}")).collect();
        lines.extend(self.tasks.iter().map(|(name, count)| format!("@{count} {name}")));
        lines.extend(self.tree());
        CommandRecord {
            argv: vec![KERNEL_WORK.to_owned()],
            status: None,
            duration_ns: 0,
            output_tail: lines.join("\n"),
        }
    }

    fn tree(&self) -> Vec<String> {
        let all: u64 = self.paths.values().sum();
        let mut below = BTreeMap::<&[String], u64>::new();
        for (path, count) in &self.paths {
            for depth in 1..=path.len() {
                *below.entry(&path[..depth]).or_default() += count;
            }
        }
        below.retain(|path, count| path.len() == 1 || *count * LEAST_PART >= all);
        let mut own: BTreeMap<&[String], u64> = below.keys().map(|path| (*path, 0)).collect();
        for (path, count) in &self.paths {
            let kept = (1..=path.len()).rev().map(|depth| &path[..depth]).find(|path| below.contains_key(path));
            *own.entry(kept.unwrap_or_default()).or_default() += count;
        }
        let line = |(path, count): (&&[String], &u64)| Some(format!(">{} {count} {}", path.len(), path.last()?));
        own.iter().filter_map(line).collect()
    }

    fn merge(&mut self) {
        for counts in [&mut self.functions, &mut self.tasks] {
            counts.sort();
            counts.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                kept.1 += if same { later.1 } else { 0 };
                same
            });
        }
    }

    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = Self {
            instructions: self.instructions + other.instructions,
            phases: [&self.phases[..], &other.phases[..]].concat(),
            bytes: self.bytes + other.bytes,
            charged_ns: self.charged_ns + other.charged_ns,
            background: self.background + other.background,
            interrupts: self.interrupts + other.interrupts,
            wall_ns: self.wall_ns + other.wall_ns,
            idle_ns: self.idle_ns + other.idle_ns,
            tasks: [&self.tasks[..], &other.tasks[..]].concat(),
            functions: [&self.functions[..], &other.functions[..]].concat(),
            paths: self.paths.clone(),
        };
        for (path, count) in &other.paths {
            *sum.paths.entry(path.clone()).or_default() += count;
        }
        sum.merge();
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, count: u64) -> (String, u64) {
        (name.to_owned(), count)
    }

    #[test]
    fn each_phase_has_what_was_done_since_the_one_before() {
        assert_eq!(instructions("1234 instructions\n99 byt"), Some(1234));
        for text in ["", "1234", "1234 instr", "x instructions\n", "-1 instructions\n"] {
            assert_eq!(instructions(text), None, "{text:?}");
        }
        assert_eq!(of_phases(&[], 7), [7]);
        assert_eq!(of_phases(&[3, 3], 7), [3, 0, 4]);
        let work = KernelWork { phases: vec![3, 4], ..KernelWork::default() };
        assert_eq!(work.plus(&work).phases, [3, 4, 3, 4]);
    }

    #[test]
    fn counts_are_read_and_parts_of_a_function_added() {
        let text = "70 instructions\n4096 bytes\n35 ns\n25 background\n8 interrupts\ntask 2 kworker/0:1 x\ntask 60 fstone\n\
                    20 f\n40 g.isra.0\n10 f.part.0\n";
        let work = KernelWork::parse(text).unwrap();
        assert_eq!((work.instructions, work.bytes, work.charged_ns, work.background), (70, 4096, 35, 25));
        assert_eq!((work.interrupts, &work.tasks[..]), (8, &[of("fstone", 60), of("kworker/0:1 x", 2)][..]));
        assert_eq!(work.functions, [of("f", 30), of("g", 40)]);
        let twice = work.plus(&work);
        assert_eq!((twice.instructions, twice.background, twice.functions), (140, 50, vec![of("f", 60), of("g", 80)]));
        assert_eq!((twice.interrupts, twice.tasks), (16, vec![of("fstone", 120), of("kworker/0:1 x", 4)]));
        assert_eq!((work.wall_ns, work.busy_shares()), (0, None));
        let timed = KernelWork::parse(&text.replace("8 interrupts\n", "7 interrupts\n20 idle\n80 wall\n")).unwrap();
        assert_eq!((timed.idle_ns, timed.wall_ns, timed.functions.len()), (20, 80, 2));
        // 60 busy, of which 35 are the kernel's, and a tenth of those interrupts'.
        assert_eq!(timed.busy_shares(), Some([25.0, 31.5, 3.5].map(|ns| ns / 80.0)));
        let free = KernelWork { charged_ns: 0, ..timed.plus(&timed) };
        assert_eq!(free.busy_shares(), Some([0.0, 0.75, 0.0]));
        // Functions of one name in two files are two.
        let files = text.replace("20 f", "20 f.isra.0 (fs/a.c)").replace("10 f.part.0", "5 f (fs/a.c)\n5 f (fs/b.c)");
        let functions = KernelWork::parse(&files).unwrap().functions;
        assert_eq!(functions, [of("f (fs/a.c)", 25), of("f (fs/b.c)", 5), of("g", 40)]);

        let text = "70 instructions\n4096 bytes\n35 ns\n25 background\n0 interrupts\ntask 70 init\n70 f\npath 9 4 10 g.cold\npath 4 0 60 f\npath 2 4 0 h\n\
                    path 7 2 999999 g\npath 3 9 30 f.isra.0\npath 5 2 0 unused\n";
        let work = KernelWork::parse(text).unwrap();
        let paths: Vec<String> = work.paths.iter().map(|(path, count)| format!("{} {count}", path.join(";"))).collect();
        assert_eq!(paths, ["f 60", "f;g 10", "f;g;f 30", "f;h;g 999999"]);
        // What would not be seen is its caller's.
        let recorded = work.plus(&work).record().output_tail;
        assert_eq!(recorded, "140 f\n@140 init\n>1 200 f\n>2 0 h\n>3 1999998 g");
        for text in ["", "70 instructions\n", "x instructions\n1 bytes\n1 ns\n0 background\n0 interrupts\n"] {
            assert_eq!(KernelWork::parse(text), None, "{text:?}");
        }
        // A line that is none costs itself only.
        let text = "9 instructions\n1 bytes\n1 ns\n0 background\n0 interrupts\ntask x y\ntask 1\nf\nx h\npath 1 0 f\npath 1 0 7 g [module]\n9 g [module]\n";
        let work = KernelWork::parse(text).unwrap();
        assert_eq!((work.instructions, work.functions), (9, vec![of("g [module]", 9)]));
        assert_eq!(work.paths, BTreeMap::from([(vec!["g [module]".to_owned()], 7)]));
    }
}

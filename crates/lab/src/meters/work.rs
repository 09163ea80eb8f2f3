//! The work of a guest's kernel, which counts its own instructions (`sandbox/kernel/work.patch`).

use fstone_files::read_text;
use fstone_model::result::{CommandRecord, KERNEL_WORK};
use std::{
    fs,
    io::Write,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// Whether a kernel is there that counts, and no [`Counter`] has it: it has one set of sums, so of steps that overlap the first counts. To look
/// for the file would be a system call more, which takes virtual time, on kernels that do not.
static FREE: AtomicBool = AtomicBool::new(false);

pub(crate) fn read_work(counts: bool) {
    FREE.store(counts, Relaxed);
}

#[derive(Debug)]
pub(super) struct Counter {
    has_begun: bool,
}

impl Counter {
    pub(super) fn take() -> Option<Self> {
        FREE.swap(false, Relaxed).then_some(Self { has_begun: false })
    }

    pub(super) fn resume(&mut self) {
        Self::mark(if self.has_begun { b"1" } else { b"0" });
        self.has_begun = true;
    }

    pub(super) fn pause(&self) {
        Self::mark(b"2");
    }

    /// What the file takes: 0 begins to sum anew, 1 goes on, 2 stops.
    fn mark(word: &[u8]) {
        let _ = fs::OpenOptions::new().write(true).open(KERNEL_WORK).and_then(|mut file| file.write_all(word));
    }

    pub(super) fn read(&self) -> Option<KernelWork> {
        self.has_begun.then(|| read_text(Path::new(KERNEL_WORK)).ok()).flatten().as_deref().and_then(KernelWork::parse)
    }
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
    /// Bytes that it copied or filled.
    pub bytes: u64,
    /// What it was charged for both.
    pub charged_ns: u64,
    /// Instructions of kernel threads, and of interrupts while no program ran.
    pub background: u64,
    /// Instructions of each function that executed any, in the order of their names.
    pub functions: Vec<(String, u64)>,
}

impl KernelWork {
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(|line| line.split_once(' '));
        let mut total = |wanted: &str| {
            let (count, name) = lines.next()??;
            if name == wanted { count.parse::<u64>().ok() } else { None }
        };
        let mut work = Self {
            instructions: total("instructions")?,
            bytes: total("bytes")?,
            charged_ns: total("ns")?,
            background: total("background")?,
            functions: Vec::new(),
        };
        for line in lines {
            let (count, name) = line?;
            // What the compiler keeps apart of a function, or makes of it for one caller, is a part of it.
            let name = name.split('.').next()?;
            work.functions.push((name.to_owned(), count.parse().ok()?));
        }
        work.merge();
        Some(work)
    }

    /// The functions, as a record of the step.
    pub(crate) fn record(&self) -> CommandRecord {
        let lines: Vec<String> = self.functions.iter().map(|(name, count)| format!("{count} {name}")).collect();
        CommandRecord {
            argv: vec![KERNEL_WORK.to_owned()],
            status: None,
            duration_ns: 0,
            output_tail: lines.join("\n"),
        }
    }

    fn merge(&mut self) {
        self.functions.sort();
        self.functions.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            kept.1 += if same { later.1 } else { 0 };
            same
        });
    }

    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = Self {
            instructions: self.instructions + other.instructions,
            bytes: self.bytes + other.bytes,
            charged_ns: self.charged_ns + other.charged_ns,
            background: self.background + other.background,
            functions: [&self.functions[..], &other.functions[..]].concat(),
        };
        sum.merge();
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_and_parts_of_a_function_added() {
        let text = "70 instructions\n4096 bytes\n35 ns\n25 background\n20 f\n40 g.isra.0\n10 f.cold\n";
        let work = KernelWork::parse(text).unwrap();
        assert_eq!((work.instructions, work.bytes, work.charged_ns, work.background), (70, 4096, 35, 25));
        let of = |name: &str, count: u64| (name.to_owned(), count);
        assert_eq!(work.functions, [of("f", 30), of("g", 40)]);
        let twice = work.plus(&work);
        assert_eq!((twice.instructions, twice.background, twice.functions), (140, 50, vec![of("f", 60), of("g", 80)]));
        for text in [
            "",
            "70 instructions\n",
            "x instructions\n1 bytes\n1 ns\n0 background\n",
            "1 instructions\n1 bytes\n1 ns\n0 background\nf\n",
        ] {
            assert_eq!(KernelWork::parse(text), None, "{text:?}");
        }
    }
}

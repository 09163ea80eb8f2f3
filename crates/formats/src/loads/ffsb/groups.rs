//! The rules of a threadgroup.

use super::{
    keyword::Part,
    profile::{CALLS, Dialect, Group, Op, ReadSettings, Stats, WriteSettings},
    resolver::{MAXIMUM_BLOCK, MAXIMUM_SECONDS, Resolver},
    sections::{Section, Setting, Value},
};
use crate::diagnostic::{Diagnostic, closest};
use fstone_model::workload::MAXIMUM_THREADS;
use std::time::Duration;

impl Resolver<'_, '_> {
    /// A group of threads; `ages` when it is to age a filesystem.
    pub(super) fn group(&mut self, section: &Section, ages: bool) -> Group {
        let bound_to = self.bound(section);
        let weights = self.weights(section);
        let read = self.reads(section, &weights, bound_to);
        let write = self.writes(section, &weights, bound_to);
        let threads = self.limited(section, "num_threads", MAXIMUM_THREADS);
        if threads == 0 && !section.is_botched("num_threads") {
            let help = format!("set `{}` to 1 or more", self.spelled("num_threads"));
            self.error(section.span_of("num_threads"), "this threadgroup has no threads", help);
        }
        if ages {
            for (op, _) in weights.iter().filter(|(op, _)| !op.ages()) {
                self.error(
                    section.span_of(op.weight_keyword()),
                    format!("a filesystem cannot be aged with {}", op.name()),
                    "age with create, append and delete, with or without _fsync",
                );
            }
        }
        Group {
            threads: u32::try_from(threads).unwrap_or(u32::MAX),
            bound_to,
            weights,
            read,
            write,
            delay: Duration::from_millis(self.limited(section, "op_delay", MAXIMUM_SECONDS * 1000)),
            stats: self.stats(section),
        }
    }

    fn bound(&mut self, section: &Section) -> Option<u32> {
        let (name, span) = section.text("bindfs")?;
        // 5.x writes -1 for none.
        if name == "-1" {
            return None;
        }
        let location = |filesystem: &&Section| filesystem.text("location").map(|(text, _)| text.to_owned());
        let by_location = self.filesystems.iter().position(|filesystem| location(filesystem).as_deref() == Some(name));
        let by_number = || name.parse::<usize>().ok().filter(|number| *number < self.filesystems.len());
        let Some(index) = by_location.or_else(by_number) else {
            let known: Vec<String> = self.filesystems.iter().filter_map(location).collect();
            self.findings.push(
                Diagnostic::error(span, format!("there is no filesystem {name}"))
                    .label("expected the location of a [filesystem], or its number from 0")
                    .did_you_mean(name, known.iter().map(String::as_str)),
            );
            return None;
        };
        u32::try_from(index).ok()
    }

    fn weights(&mut self, section: &Section) -> Vec<(Op, u32)> {
        let mut weights = Vec::new();
        for op in Op::ALL {
            let keyword = op.weight_keyword();
            let weight = self.limited(section, keyword, u64::from(u32::MAX));
            if weight > 0 {
                weights.push((op, u32::try_from(weight).unwrap_or(u32::MAX)));
            }
        }
        if weights.is_empty() && !Op::ALL.into_iter().any(|op| section.is_botched(op.weight_keyword())) {
            let help = format!("give at least one operation a weight, such as `{} = 1`", self.spelled("read_weight"));
            self.error(section.header, "this threadgroup has nothing to do", help);
        }
        weights
    }

    fn reads(&mut self, section: &Section, weights: &[(Op, u32)], bound_to: Option<u32>) -> ReadSettings {
        let skip = section.flag("read_skip");
        let settings = ReadSettings {
            random: section.flag("read_random"),
            size_bytes: section.number("read_size"),
            block_bytes: self.limited(section, "read_blocksize", MAXIMUM_BLOCK),
            skip_bytes: skip.then(|| section.number("read_skipsize")),
        };
        if settings.random && skip {
            let random = section.span_of("read_random");
            self.findings.push(
                Diagnostic::error(section.span_of("read_skip"), "reads cannot skip and be random as well")
                    .context(random, "random here"),
            );
        }
        if settings.skip_bytes == Some(0) && !section.is_botched("read_skipsize") {
            self.error(section.span_of("read_skip"), "skipping needs a size", "add `read_skipsize`");
        }
        for (op, _) in weights.iter().filter(|(op, _)| matches!(op, Op::Read | Op::Readall)) {
            self.needs(section, *op, "read_blocksize");
            if *op == Op::Read {
                self.needs(section, *op, "read_size");
                self.fits(section, "read_size", bound_to);
            }
        }
        settings
    }

    fn writes(&mut self, section: &Section, weights: &[(Op, u32)], bound_to: Option<u32>) -> WriteSettings {
        let mut block_bytes = self.limited(section, "write_blocksize", MAXIMUM_BLOCK);
        let writers: Vec<Op> = weights.iter().map(|(op, _)| *op).filter(|op| op.writes()).collect();
        // Creates can do with the filesystem's own block size, where all agree on one.
        let only_creates = writers.iter().all(|op| op.creates());
        if block_bytes == 0 && only_creates && !writers.is_empty() {
            let mut sizes = self.worked_on(bound_to).map(|filesystem| filesystem.number("create_blocksize"));
            let first = sizes.next().unwrap_or(0);
            if sizes.all(|size| size == first) {
                block_bytes = first.min(MAXIMUM_BLOCK);
            }
        }
        for op in writers {
            if block_bytes == 0 {
                self.needs(section, op, "write_blocksize");
            }
            if op.writes_an_amount() {
                self.needs(section, op, "write_size");
            }
            if matches!(op, Op::Write | Op::WriteFsync) {
                self.fits(section, "write_size", bound_to);
            }
        }
        WriteSettings {
            random: section.flag("write_random"),
            size_bytes: section.number("write_size"),
            block_bytes,
            fsync: section.flag("fsync_file"),
        }
    }

    fn needs(&mut self, section: &Section, op: Op, keyword: &'static str) {
        if section.number(keyword) == 0 && !section.is_botched(keyword) {
            let (weight, keyword) = (op.weight_keyword(), self.spelled(keyword));
            let name = if self.dialect == Dialect::V4 { self.spelled(weight) } else { op.name() };
            self.error(
                section.span_of(weight),
                format!("{name} needs `{keyword}`"),
                format!("add `{keyword} = 4096`, or leave {name} out"),
            );
        }
    }

    /// Warns when files may be shorter than what an operation moves; FFSB aborts then.
    fn fits(&mut self, section: &Section, keyword: &'static str, bound_to: Option<u32>) {
        let Some(Setting { value: Value::Number(wanted), span, .. }) = section.get(keyword) else { return };
        let smallest = |filesystem: &&Section| {
            let weighted = filesystem.all("size_weight").filter_map(|setting| match setting.value {
                Value::SizeAndWeight(size, _) => Some(size),
                _ => None,
            });
            weighted.min().unwrap_or_else(|| filesystem.number("min_filesize"))
        };
        if let Some(size) = self.worked_on(bound_to).map(smallest).min().filter(|size| size < wanted) {
            self.warning(*span, || {
                format!("files may have only {size} bytes; such a file is used to its end, where FFSB would abort")
            });
        }
    }

    fn worked_on(&self, bound_to: Option<u32>) -> impl Iterator<Item = &'_ &Section> {
        let bound = bound_to.map(|index| index as usize);
        self.filesystems
            .iter()
            .enumerate()
            .filter(move |(index, _)| bound.is_none_or(|bound| bound == *index))
            .map(|(_, section)| section)
    }

    fn stats(&mut self, section: &Section) -> Option<Stats> {
        let section = section.children.iter().find(|child| child.part == Part::Stats)?;
        let mut stats = Stats::default();
        for setting in section.all("ignore") {
            let Value::Text(written) = &setting.value else { continue };
            let word = written.to_ascii_lowercase();
            match CALLS.iter().find(|call| word == **call) {
                Some(call) => stats.ignored.push(call),
                None => {
                    let meant =
                        closest(&word, CALLS).map_or_else(String::new, |call| format!("; did you mean {call}?"));
                    self.warning(setting.span, || {
                        format!("{written} is none of the calls {}{meant}", CALLS.join(", "))
                    });
                }
            }
        }
        if section.flag("enable_range") {
            stats.ranges = section
                .all("msec_range")
                .filter_map(|setting| match setting.value {
                    Value::Range(from, to) => Some((from, to)),
                    _ => None,
                })
                .collect();
        }
        section.flag("enable_stats").then_some(stats)
    }
}

//! From sections that are spelled out to a [`Profile`], with every rule of FFSB checked.

use super::{
    Dialect, Options,
    findings::Findings,
    inherit,
    keyword::Part,
    profile::{Ageing, CALLS, Filesystem, Group, Op, Profile, ReadSettings, Stats, WriteSettings},
    sections::{Section, Setting, Value},
};
use crate::{
    Span,
    diagnostic::{Diagnostic, Severity, closest},
};
use fstone_model::workload::{Amount, SizeDistribution};
use std::{collections::HashMap, time::Duration};

/// FFSB's default for `create_blocksize` and `age_blocksize`.
const DEFAULT_BLOCK: u64 = 4096;
/// Every thread has a buffer of this size; more is a typing error.
const MAXIMUM_BLOCK: u64 = 1 << 30;
/// More threads than a machine's process table has by default.
const MAXIMUM_THREADS: u64 = 32_768;
/// A year; longer is a typing error, and sums of times stay far from their limits.
const MAXIMUM_SECONDS: u64 = 366 * 24 * 3600;
/// Files, or directories; more than a filesystem can hold.
const MAXIMUM_FILES: u64 = u32::MAX as u64;

/// The profile; whether it is any good is in the findings.
pub(super) fn resolve(
    mut root: Section,
    name: &str,
    dialect: Dialect,
    options: Options,
    findings: &mut Findings,
) -> Profile {
    counted(&mut root, findings);
    inherit::expand(&mut root, dialect, findings);
    let sections = |part| root.children.iter().filter(move |child| child.part == part);
    let filesystems: Vec<&Section> = sections(Part::Filesystem).collect();
    distinct_locations(&filesystems, findings);
    let mut resolver = Resolver { filesystems: &filesystems, findings };
    let time = resolver.seconds(&root, options);
    let groups: Vec<Group> = sections(Part::Threadgroup).map(|section| resolver.group(section, Some(time))).collect();
    let resolved = filesystems.iter().map(|section| resolver.filesystem(section)).collect();
    Profile {
        name: name.to_owned(),
        dialect,
        time,
        direct: root.flag("directio"),
        aligned: root.flag("directio") || root.flag("alignio"),
        callout: root.text("callout").map(|(command, _)| command.to_owned()),
        filesystems: resolved,
        groups,
        warnings: None,
    }
}

/// Holds the sections against `num_filesystems` and `num_threadgroups`, and asks for one of each.
fn counted(root: &mut Section, findings: &mut Findings) {
    for (part, keyword, name) in
        [(Part::Filesystem, "num_filesystems", "filesystem"), (Part::Threadgroup, "num_threadgroups", "threadgroup")]
    {
        let spans: Vec<Span> =
            root.children.iter().filter(|child| child.part == part).map(|child| child.header).collect();
        let Some(said) = root.get(keyword).map(|setting| setting.span) else {
            if spans.is_empty() {
                findings.push(Diagnostic::whole(format!("the profile has no [{name}]")));
            }
            continue;
        };
        let wanted = usize::try_from(root.number(keyword)).unwrap_or(usize::MAX);
        if wanted == 0 || spans.len() < wanted {
            let found = spans.len();
            findings.push(
                Diagnostic::error(said, format!("{wanted} of [{name}] are promised, {found} given"))
                    .label("expected the number of sections below, at least 1"),
            );
        } else if let Some(extra) = spans.get(wanted) {
            match part {
                // FFSB 5 reads this many and leaves the rest of the file alone.
                Part::Threadgroup => {
                    findings.push(
                        Diagnostic::warning(*extra, "this [threadgroup] and those after it are ignored")
                            .context(said, "only this many are read, as FFSB 5 does"),
                    );
                    let mut kept = 0;
                    root.children.retain(|child| {
                        kept += usize::from(child.part == part);
                        child.part != part || kept <= wanted
                    });
                }
                _ => findings
                    .push(Diagnostic::error(*extra, "more filesystems than promised").context(said, "promised here")),
            }
        }
    }
}

fn distinct_locations(filesystems: &[&Section], findings: &mut Findings) {
    let mut seen: HashMap<&str, Span> = HashMap::new();
    for filesystem in filesystems {
        let Some((location, span)) = filesystem.text("location") else {
            findings.push(
                Diagnostic::error(filesystem.header, "this filesystem has no location")
                    .help("add `location = /a/directory`"),
            );
            continue;
        };
        if let Some(first) = seen.insert(location.trim_end_matches('/'), span) {
            findings.push(
                Diagnostic::error(span, "two filesystems in one location would remove each other's files")
                    .context(first, "the other one"),
            );
        }
    }
}

struct Resolver<'a, 'f> {
    filesystems: &'a [&'a Section],
    findings: &'f mut Findings,
}

impl Resolver<'_, '_> {
    fn error(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.findings.push(Diagnostic::error(span, message).help(help));
    }

    fn warning(&mut self, span: Span, message: impl FnOnce() -> String) {
        self.findings.push_with(Severity::Warning, || Diagnostic::warning(span, message()));
    }

    /// A number that is at most `limit`.
    fn limited(&mut self, section: &Section, keyword: &'static str, limit: u64) -> u64 {
        let number = section.number(keyword);
        if number > limit {
            self.findings.push(
                Diagnostic::error(section.span_of(keyword), format!("`{keyword}` is too large"))
                    .label(format!("expected at most {limit}")),
            );
        }
        number.min(limit)
    }

    fn seconds(&mut self, root: &Section, options: Options) -> Duration {
        let seconds = self.limited(root, "time", MAXIMUM_SECONDS);
        Duration::from_secs(options.seconds.unwrap_or(seconds).min(MAXIMUM_SECONDS))
    }

    fn filesystem(&mut self, section: &Section) -> Filesystem {
        let files = self.limited(section, "num_files", MAXIMUM_FILES);
        // In this order of precedence.
        let amount = match (files, section.number("init_size"), section.share("init_util")) {
            (0, 0, share) if share > 0.0 => Amount::Utilization(share),
            (0, bytes, _) if bytes > 0 => Amount::Bytes(bytes),
            (files, ..) => Amount::Files(files),
        };
        let ageing = section.flag("agefs").then(|| self.ageing(section)).flatten();
        let mut reuse = section.flag("reuse");
        if reuse && ageing.is_some() {
            self.warning(section.span_of("reuse"), || "`reuse` is ignored: an aged fileset is always made anew".into());
            reuse = false;
        }
        Filesystem {
            location: section.text("location").map_or_else(String::new, |(location, _)| location.to_owned()),
            directories: self.limited(section, "num_dirs", MAXIMUM_FILES),
            amount,
            sizes: self.sizes(section),
            create_block_bytes: self.block(section, "create_blocksize"),
            reuse,
            ageing,
        }
    }

    /// A filesystem's block size, by default 4096.
    fn block(&mut self, section: &Section, keyword: &'static str) -> u64 {
        match self.limited(section, keyword, MAXIMUM_BLOCK) {
            0 => DEFAULT_BLOCK,
            bytes => bytes,
        }
    }

    fn sizes(&mut self, section: &Section) -> SizeDistribution {
        let mut weighted: Vec<(u64, u32)> = Vec::new();
        for setting in section.all("size_weight") {
            if let Value::SizeAndWeight(size, weight) = setting.value {
                weighted.push((size, weight));
            }
        }
        if !weighted.is_empty() {
            for replaced in ["min_filesize", "max_filesize"] {
                if let Some(setting) = section.get(replaced) {
                    self.warning(setting.span, || format!("`{replaced}` is ignored: `size_weight` says the sizes"));
                }
            }
            if weighted.iter().all(|(_, weight)| *weight == 0) {
                self.error(section.span_of("size_weight"), "every weight is 0", "give one size a weight of 1 or more");
            }
            return SizeDistribution::Weighted(weighted);
        }
        let (minimum, maximum) = (section.number("min_filesize"), section.number("max_filesize"));
        if maximum < minimum {
            let min_span = section.span_of("min_filesize");
            self.findings.push(
                Diagnostic::error(section.span_of("max_filesize"), "`max_filesize` is less than `min_filesize`")
                    .context(min_span, format!("{minimum} here")),
            );
        }
        if minimum >= maximum {
            return SizeDistribution::Fixed(minimum);
        }
        SizeDistribution::Uniform { minimum, maximum }
    }

    fn ageing(&mut self, section: &Section) -> Option<Ageing> {
        let Some(group) = section.children.iter().find(|child| child.part == Part::Threadgroup) else {
            self.error(
                section.span_of("agefs"),
                "nobody is there to age it",
                "add a [threadgroup] with create, append and delete weights inside this [filesystem]",
            );
            return None;
        };
        let utilization = section.share("desired_util");
        if utilization == 0.0 {
            self.warning(section.span_of("agefs"), || "without `desired_util` nothing is aged".into());
        }
        Some(Ageing { group: self.group(group, None), utilization, block_bytes: self.block(section, "age_blocksize") })
    }

    /// A group of threads; one that ages when there is no `time`.
    fn group(&mut self, section: &Section, time: Option<Duration>) -> Group {
        let bound_to = self.bound(section);
        let weights = self.weights(section);
        let read = self.reads(section, &weights, bound_to);
        let write = self.writes(section, &weights, bound_to);
        let threads = self.limited(section, "num_threads", MAXIMUM_THREADS);
        if threads == 0 {
            self.error(section.span_of("num_threads"), "this threadgroup has no threads", "add `num_threads = 1`");
        }
        if time.is_none() {
            for (op, _) in weights.iter().filter(|(op, _)| !op.ages()) {
                self.error(
                    section.span_of(weight_keyword(*op)),
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
            let keyword = weight_keyword(op);
            let weight = self.limited(section, keyword, u64::from(u32::MAX));
            if weight > 0 {
                weights.push((op, u32::try_from(weight).unwrap_or(u32::MAX)));
            }
        }
        if weights.is_empty() {
            self.error(
                section.header,
                "this threadgroup has nothing to do",
                "give at least one operation a weight, such as `read_weight = 1`",
            );
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
        if settings.skip_bytes == Some(0) {
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

    /// Demands a setting that an operation cannot do without.
    fn needs(&mut self, section: &Section, op: Op, keyword: &'static str) {
        if section.number(keyword) == 0 {
            let name = op.name();
            self.error(
                section.span_of(weight_keyword(op)),
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

/// The keyword of an operation's weight.
pub(super) const fn weight_keyword(op: Op) -> &'static str {
    match op {
        Op::Read => "read_weight",
        Op::Readall => "readall_weight",
        Op::Write => "write_weight",
        Op::Create => "create_weight",
        Op::Append => "append_weight",
        Op::Delete => "delete_weight",
        Op::Metaop => "metaop_weight",
        Op::Createdir => "createdir_weight",
        Op::Stat => "stat_weight",
        Op::Writeall => "writeall_weight",
        Op::WriteallFsync => "writeall_fsync_weight",
        Op::OpenClose => "open_close_weight",
        Op::WriteFsync => "write_fsync_weight",
        Op::CreateFsync => "create_fsync_weight",
        Op::AppendFsync => "append_fsync_weight",
    }
}

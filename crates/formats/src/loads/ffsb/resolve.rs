//! From sections that are spelled out to a [`Profile`], with every rule of FFSB checked.

use super::{
    findings::Findings,
    inherit,
    keyword::Part,
    profile::{Ageing, Dialect, Filesystem, Group, Profile},
    resolver::{MAXIMUM_BLOCK, MAXIMUM_SECONDS, Resolver},
    sections::{Section, Value},
};
use crate::{Span, diagnostic::Diagnostic};
use fstone_model::workload::{Amount, MAXIMUM_FILES, MAXIMUM_THREADS, SizeDistribution};
use std::{collections::HashMap, time::Duration};

/// FFSB's default for `create_blocksize` and `age_blocksize`.
const DEFAULT_BLOCK: u64 = 4096;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Seconds to run: required by 4.x profiles, and in place of `time` for the others.
    pub seconds: Option<u64>,
}

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
    let mut resolver = Resolver { dialect, filesystems: &filesystems, findings };
    let time = resolver.seconds(&root, options);
    let groups: Vec<Group> = sections(Part::Threadgroup).map(|section| resolver.group(section, false)).collect();
    let mut threads = 0;
    for (group, section) in groups.iter().zip(sections(Part::Threadgroup)) {
        let fitted = threads <= MAXIMUM_THREADS;
        threads += u64::from(group.threads);
        if fitted && threads > MAXIMUM_THREADS {
            let words = format!("with this threadgroup there are {threads} threads");
            resolver.error(section.header, words, format!("at most {MAXIMUM_THREADS} are run"));
        }
    }
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
            if spans.is_empty() && !root.is_botched(name) {
                findings.push(Diagnostic::whole(format!("the profile has no [{name}]")));
            }
            continue;
        };
        let wanted = usize::try_from(root.number(keyword)).unwrap_or(usize::MAX);
        if wanted == 0 || spans.len() < wanted {
            let found = spans.len();
            findings.push(
                Diagnostic::error(said, format!("the profile announces {wanted} of [{name}] but has {found}"))
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
            if !filesystem.is_botched("location") {
                findings.push(
                    Diagnostic::error(filesystem.header, "this filesystem has no location")
                        .help("add `location = /a/directory`"),
                );
            }
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

impl Resolver<'_, '_> {
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
        let sizes = self.sizes(section);
        if matches!(amount, Amount::Bytes(bytes) if bytes / sizes.typical_bytes().max(1) > MAXIMUM_FILES) {
            let help = format!("at this size of a file more than {MAXIMUM_FILES} would be needed to hold it");
            self.error(section.span_of("init_size"), "too many files", help);
        }
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
            sizes,
            create_block_bytes: self.block(section, "create_blocksize"),
            reuse,
            ageing,
        }
    }

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
                    self.warning(setting.span, || format!("`{replaced}` is ignored: `size_weight` sets the sizes"));
                }
            }
            if weighted.iter().all(|(_, weight)| *weight == 0) {
                self.error(section.span_of("size_weight"), "every weight is 0", "give one size a weight of 1 or more");
            }
            return SizeDistribution::Weighted(weighted);
        }
        let (minimum, maximum) = (section.number("min_filesize"), section.number("max_filesize"));
        if maximum < minimum && !section.is_botched("max_filesize") {
            let (less, more) = (self.spelled("max_filesize"), self.spelled("min_filesize"));
            self.findings.push(
                Diagnostic::error(section.span_of("max_filesize"), format!("`{less}` is less than `{more}`"))
                    .context(section.span_of("min_filesize"), format!("{minimum} here")),
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
        Some(Ageing { group: self.group(group, true), utilization, block_bytes: self.block(section, "age_blocksize") })
    }
}

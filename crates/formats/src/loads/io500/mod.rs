//! IO500's ini files, read into the workload of the io500 study with other sizes; and its way of printing results.
//!
//! Learnt from IO500's documentation, its sample configurations and its published rules; no code is taken from it.

mod print;
#[cfg(test)]
mod tests;

pub use print::print;

use super::native;
use crate::{
    Diagnostics, Source, Span,
    diagnostic::{Diagnostic, Report},
};
use fstone_model::{
    Workload, io500, units,
    workload::{
        Actions, Amount, Directories, Extent, Fileset, MAXIMUM_BLOCK_BYTES, Operation, Pattern, Phase,
        SizeDistribution, Step, Transfer,
    },
};
use std::time::Duration;

/// The largest ini file that is read, bytes.
pub const MAXIMUM_SIZE: usize = 64 << 10;

/// The phases with the official sizes, as the study has them.
const OFFICIAL: &str = include_str!("../../../../../studies/io500.workload");

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub workload: Workload,
    /// Where the files are, and whether below it in a directory named after the time.
    pub data: (String, bool),
    /// The same of results.
    pub results: (String, bool),
    pub warnings: Option<Diagnostics>,
}

/// Sections with the options of several phases.
const GENERAL: [&str; 4] = ["ior-easy", "ior-hard", "mdtest-easy", "mdtest-hard"];
/// Beginnings of the names of phases that IO500 runs only with `--mode=extended`.
const EXTENDED: [&str; 6] = ["ior-rnd4k", "ior-rnd1mb", "mdworkbench", "find-easy", "find-hard", "timestamp"];

const GLOBAL: &[&str] = &[
    "datadir",
    "timestamp-datadir",
    "resultdir",
    "timestamp-resultdir",
    "api",
    "drop-caches",
    "drop-caches-cmd",
    "io-buffers-on-gpu",
    "verbosity",
    "scc",
    "dataPacketType",
];
const FIND: &[&str] = &[
    "external-script",
    "external-mpi-args",
    "external-extra-args",
    "nproc",
    "run",
    "pfind-queue-length",
    "pfind-steal-next",
    "pfind-parallelize-single-dir-access-using-hashing",
];

/// The options of a section of this name; `None` where there is no such section.
fn options_of(section: &str) -> Option<&'static [&'static str]> {
    Some(match section {
        "global" => GLOBAL,
        "debug" => &["stonewall-time", "pause-dir"],
        "ior-easy" => &["API", "transferSize", "blockSize", "filePerProc", "uniqueDir", "run", "verbosity"],
        "ior-hard" => &["API", "segmentCount", "collective", "run", "verbosity"],
        "mdtest-easy" => &["API", "n", "run"],
        "mdtest-hard" => &["API", "n", "files-per-dir", "run"],
        "find" => FIND,
        "ior-hard-write" | "ior-hard-read" => &["API", "collective", "run"],
        phase if io500::phases().any(|known| known == phase) => &["API", "run"],
        _ => return None,
    })
}

struct Value<'v> {
    section: &'v str,
    key: &'static str,
    text: &'v str,
    span: Span,
}

/// Reads an ini file.
pub fn parse(source: &Source) -> Result<Config, Diagnostics> {
    let mut report = Report::new(source.clone());
    if !report.check_size(MAXIMUM_SIZE, "the configuration") {
        return Err(report.into_diagnostics().expect("the size is wrong"));
    }
    let mut config = Config {
        workload: native::parse(&Source::new("io500.workload", OFFICIAL)).expect("a test reads it"),
        data: ("./datafiles".into(), true),
        results: ("./results".into(), true),
        warnings: None,
    };
    let mut off: Vec<(String, Span)> = Vec::new();
    for value in values(source.text(), &mut report) {
        match config.take(&value, &mut off) {
            Ok(None) => {}
            Ok(Some(why)) => {
                report.push(Diagnostic::warning(value.span, format!("`{}` has no effect", value.key)).note(why));
            }
            Err((what, cure)) => {
                let what = format!("`{}` of [{}]: {what}", value.key, value.section);
                report.push(Diagnostic::error(value.span, what).help(cure));
            }
        }
    }
    config.leave_out(&off, &mut report);
    let (config, warnings) = report.finish(config)?;
    Ok(Config { warnings, ..config })
}

fn values<'t>(text: &'t str, report: &mut Report) -> Vec<Value<'t>> {
    let (mut values, mut at, mut section) = (Vec::new(), 0, None);
    for whole in text.split_inclusive('\n') {
        let begin = at;
        at += whole.len();
        let line = whole.find(['#', ';']).map_or(whole, |comment| &whole[..comment]);
        let trimmed = line.trim();
        let start = begin + (line.len() - line.trim_start().len());
        let span = Span::from(start..start + trimmed.len());
        if trimmed.is_empty() {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let name = name.trim();
            section = Some((name, options_of(&name.to_lowercase())));
            let lower = name.to_lowercase();
            if EXTENDED.iter().any(|phase| lower.starts_with(phase)) {
                let why = "it is a phase of IO500's extended mode";
                report.push(Diagnostic::warning(span, format!("the section [{name}] has no effect")).note(why));
            } else if options_of(&lower).is_none() {
                let known = ["global", "debug", "find"].into_iter().chain(GENERAL).chain(io500::phases());
                report.push(Diagnostic::error(span, format!("unknown section [{name}]")).did_you_mean(name, known));
            }
            continue;
        }
        let Some((key, value)) = trimmed.split_once('=') else {
            report.push(
                Diagnostic::error(span, "a line that is no `[section]` and no `option = value`")
                    .help("write an option and its value with `=` between them, or a comment behind `#`"),
            );
            continue;
        };
        match section {
            None => report.push(Diagnostic::error(span, "an option before any section").help("begin with [global]")),
            Some((name, Some(options))) => match options.iter().find(|known| known.eq_ignore_ascii_case(key.trim())) {
                Some(known) => values.push(Value { section: name, key: known, text: value.trim(), span }),
                None => {
                    let what = format!("unknown option `{}` of [{name}]", key.trim());
                    let diagnostic = Diagnostic::error(span, what).did_you_mean(key.trim(), options.iter().copied());
                    report.push(match diagnostic.helps.is_empty() {
                        true => diagnostic.help(format!("leave it out; there are {}", options.join(", "))),
                        false => diagnostic,
                    });
                }
            },
            Some((_, None)) => {}
        }
    }
    values
}

type Wrong = (String, &'static str);

fn truth(text: &str) -> Result<bool, Wrong> {
    match text.to_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err((format!("`{text}` is neither"), "give TRUE or FALSE")),
    }
}

fn number(text: &str) -> Result<u64, Wrong> {
    let wrong = || (format!("`{text}` is not a number"), "give a number above 0, such as 1000000");
    text.parse().ok().filter(|number| (1..=u64::from(u32::MAX)).contains(number)).ok_or_else(wrong)
}

/// Bytes with IOR's units of 1024: `2m`.
fn size(text: &str) -> Result<u64, Wrong> {
    let wrong = || (format!("`{text}` is not a size"), "give bytes, or a number with k, m, g or t, such as 2m");
    let (digits, unit) = match text.char_indices().last() {
        Some((last, unit)) if unit.is_ascii_alphabetic() => (&text[..last], unit.to_ascii_lowercase()),
        _ => (text, 'b'),
    };
    let shift = ['b', 'k', 'm', 'g', 't'].iter().position(|known| *known == unit).ok_or_else(wrong)?;
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << (10 * shift)));
    bytes.filter(|bytes| (1..1 << 50).contains(bytes)).ok_or_else(wrong)
}

impl Config {
    /// Takes an option; gives why it has no effect, if it has none.
    fn take(&mut self, value: &Value<'_>, off: &mut Vec<(String, Span)>) -> Result<Option<&'static str>, Wrong> {
        const POSIX: &str = "give POSIX, with --posix.odirect in [ior-easy] alone, or leave it out";
        let (section, text) = (value.section.to_lowercase(), value.text);
        let must_be = |usual: &str, cure: &'static str| {
            let usual_or_none = text.is_empty() || text.eq_ignore_ascii_case(usual);
            if usual_or_none { Ok(None) } else { Err((format!("`{text}` is not supported"), cure)) }
        };
        // As in IO500, what is empty is as it is without the line.
        if text.is_empty() {
            return Ok(None);
        }
        match value.key {
            "datadir" => self.data.0 = text.to_owned(),
            "timestamp-datadir" => self.data.1 = truth(text)?,
            "resultdir" => self.results.0 = text.to_owned(),
            "timestamp-resultdir" => self.results.1 = truth(text)?,
            "api" => return must_be("POSIX", POSIX),
            "API" if section == "ior-easy" && text.eq_ignore_ascii_case("POSIX --posix.odirect") => {
                let groups = self.phases("ior-easy").flat_map(|phase| &mut phase.groups);
                groups.for_each(|group| group.io.direct = Some(true));
            }
            "API" => return must_be("POSIX", POSIX),
            "drop-caches" => {
                if truth(text)? {
                    for phase in self.workload.phases.iter_mut().filter(|phase| !phase.name.ends_with(" sync")) {
                        (phase.syncs, phase.drops_caches) = (true, 3);
                    }
                }
            }
            "drop-caches-cmd" => return Ok(Some("with drop-caches = TRUE fstone drops the caches itself, as root")),
            "io-buffers-on-gpu" => return must_be("FALSE", "leave it out: buffers are in memory"),
            "scc" => {
                return must_be("FALSE", "give the sizes and the stonewall-time of the competition's rules instead");
            }
            "verbosity" => return Ok(Some("the results of all phases are printed")),
            "dataPacketType" => return Ok(Some("the data is incompressible")),
            "stonewall-time" => {
                let time = Duration::from_secs(number(text)?);
                self.workload.phases.iter_mut().filter_map(|phase| phase.stop.time.as_mut()).for_each(|of| *of = time);
            }
            "pause-dir" => return must_be("", "leave it out: phases follow each other"),
            "filePerProc" => return must_be("TRUE", "leave it out: each rank writes a file of its own"),
            "uniqueDir" => return must_be("FALSE", "leave it out: the files are in one directory"),
            "collective" => return must_be("FALSE", "leave it out: POSIX has no collective calls"),
            "files-per-dir" => return must_be("0", "leave it out: all files are in one directory"),
            "transferSize" | "blockSize" => self.easy(value.key == "blockSize", size(text)?)?,
            "segmentCount" => self.hard(number(text)?),
            "n" => self.files(&section, number(text)?),
            "run" => {
                if !truth(text)? {
                    off.push((section, value.span));
                }
            }
            "external-script" => return must_be("", "leave it out: fstone walks the directories itself"),
            _ => return Ok(Some("each rank lists the directories and stats its own files")),
        }
        Ok(None)
    }

    /// The phases whose names begin so, without their syncs.
    fn phases<'c>(&'c mut self, begin: &'c str) -> impl Iterator<Item = &'c mut Phase> {
        self.workload
            .phases
            .iter_mut()
            .filter(move |phase| phase.name.starts_with(begin) && !phase.name.ends_with("sync"))
    }

    fn fileset(&mut self, name: &str) -> &mut Fileset {
        self.workload.filesets.iter_mut().find(|fileset| fileset.name == name).expect("the study has it")
    }

    fn easy(&mut self, is_block: bool, bytes: u64) -> Result<(), Wrong> {
        let mut sizes = (0, 0);
        for transfer in self.phases("ior-easy").flat_map(runs).map(|(transfer, _)| transfer) {
            if let Pattern::Runs(runs) = &transfer.pattern {
                sizes = (transfer.block_bytes, runs.run_bytes);
            }
        }
        let (transfer, block) = if is_block { (sizes.0, bytes) } else { (bytes, sizes.1) };
        if transfer > MAXIMUM_BLOCK_BYTES {
            return Err((units::format_bytes(transfer), "give less than 4g"));
        }
        // The other of the two may come in a later line: what is left of a block is written as well.
        self.fileset("ior-easy").size = SizeDistribution::Fixed(block);
        self.sized("ior-easy", transfer, block, block.div_ceil(transfer));
        Ok(())
    }

    fn hard(&mut self, segments: u64) {
        const PIECE: u64 = 47_008;
        self.sized("ior-hard", PIECE, PIECE * segments, segments);
    }

    fn sized(&mut self, begin: &str, block: u64, total: u64, operations: u64) {
        for phase in self.phases(begin) {
            phase.stop.operations = Some(operations + 2);
            for (transfer, times) in runs(phase) {
                *times = operations;
                (transfer.block_bytes, transfer.extent) = (block, Extent::Bytes(block));
                if let Pattern::Runs(runs) = &mut transfer.pattern {
                    runs.total_bytes = total;
                    runs.run_bytes = if runs.interleaved { block } else { total };
                }
            }
        }
    }

    fn files(&mut self, name: &str, files: u64) {
        let fileset = self.fileset(name);
        fileset.amount = Amount::Files(files);
        fileset.directories = Directories::Filled { width: 1, depth: 0, each: files, leaves_only: false };
        let groups = self.phases(name).flat_map(|phase| &mut phase.groups);
        groups.filter_map(|group| group.stop.operations.as_mut()).for_each(|of| *of = files);
    }

    /// Leaves out phases, each with its sync. Those that need what others make go with them.
    fn leave_out(&mut self, off: &[(String, Span)], report: &mut Report) {
        let is_off = |phase: &str| {
            off.iter().any(|(name, _)| phase == name || GENERAL.contains(&name.as_str()) && phase.starts_with(name))
        };
        for write in io500::phases().filter(|phase| phase.ends_with("-write") && is_off(phase)) {
            let of_it = write.trim_end_matches("write");
            let needs = io500::phases().find(|phase| phase.starts_with(of_it) && !is_off(phase));
            if let (Some(needs), Some((_, span))) = (needs, off.iter().find(|(name, _)| name == write)) {
                let general = of_it.trim_end_matches('-');
                let what = format!("{needs} needs the files that {write} makes");
                report.push(Diagnostic::error(*span, what).help(format!("give run = FALSE in [{general}]")));
            }
        }
        self.workload.phases.retain(|phase| !is_off(phase.name.trim_end_matches(" sync")));
        if self.workload.phases.is_empty() {
            report.push(Diagnostic::whole("no phase is run").help("leave out some of the lines `run = FALSE`"));
        }
    }
}

/// The transfers of a phase that go through runs, and how often each is performed.
fn runs(phase: &mut Phase) -> impl Iterator<Item = (&mut Transfer, &mut u64)> {
    let steps = phase.groups.iter_mut().flat_map(|group| match &mut group.actions {
        Actions::Program(steps) => steps.as_mut_slice(),
        _ => &mut [],
    });
    steps.filter_map(|step| match step {
        Step::Perform { action, times } => match &mut action.operation {
            Operation::Read(transfer) | Operation::Write(transfer) => Some((transfer, times)),
            _ => None,
        },
        _ => None,
    })
}

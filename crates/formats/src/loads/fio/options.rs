//! Every option of fio's that a file job can have: how it is read, or why it has no effect or is refused.
//!
//! Help, messages and what is read all come from this one table.

use super::{
    distribution::distribution,
    job::{Blocks, Ends, Hint, Job, Service, Sync},
    value::{self, Expected, Value, between, cpus, direction, is_block, separated, split, take_two},
};
use crate::diagnostic::{Diagnostic, closest};
use fstone_model::workload::{MAXIMUM_BLOCK_BYTES, MAXIMUM_REPEAT};
use std::time::Duration;

/// Clones and files that a job has at most: what the engine can have at once.
const MAXIMUM_CLONES: u64 = 4_000;
const MAXIMUM_FILES: u64 = 100_000_000;
pub(super) const MAXIMUM_DEPTH: u64 = 4_096;
const MAXIMUM_FSYNC: u64 = 1_000_000;
/// Percentiles that a list may have, as in fio.
const MAXIMUM_PERCENTILES: usize = 20;
const CHECKSUMS: [&str; 20] = [
    "0",
    "null",
    "md5",
    "crc64",
    "crc32c",
    "crc32c-intel",
    "crc32",
    "crc16",
    "crc7",
    "xxhash",
    "sha512",
    "sha256",
    "sha1",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "meta",
    "pattern",
    "pattern_hdr",
];

#[derive(Clone, Copy)]
pub(super) enum Treatment {
    Flag(fn(&mut Job) -> &mut bool),
    Taken(fn(&mut Job, &Value<'_>) -> Result<(), Expected>),
    /// `ioengine`, some of whose values come with notes.
    Engine,
    /// It changes neither the load nor a result, for this reason; its value is checked all the same.
    None(Check, &'static str),
    /// A load that has it would not be what was asked for, for this reason. These values, and 0 where it is no value of its own, ask for
    /// nothing.
    Refused(&'static [&'static str], &'static str),
}

/// What the value of an option without effect has to be.
#[derive(Clone, Copy)]
pub(super) enum Check {
    Any,
    Flag,
    Number,
    Word(&'static [&'static str]),
}

/// The errors that fio knows by name, from 1 on.
const ERRORS: &[&str] = &[
    "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD", "EAGAIN", "ENOMEM",
    "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV", "ENOTDIR", "EISDIR", "EINVAL", "ENFILE",
    "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC", "ESPIPE", "EROFS", "EMLINK", "EPIPE", "EDOM", "ERANGE",
];

/// Its number, by its name if fio knows that.
fn error(word: &str) -> Option<i32> {
    let named = ERRORS.iter().zip(1..).find(|(name, _)| **name == word).map(|(_, number)| number);
    named.or_else(|| word.parse().ok().filter(|number| *number > 0))
}

pub(super) struct Opt {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) treatment: Treatment,
    /// Whether its value, if it has one, is behind `=` and not in the next word of a command line: so it is with those that `fio --cmdhelp` of
    /// 3.33 says can be empty, and with those of the engines' own that were found to be such.
    pub(super) is_switch: bool,
}

impl Opt {
    const fn or(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn switch(self) -> Self {
        Self { is_switch: true, ..self }
    }

    /// The reason why it is not read, if it is not.
    pub(super) const fn why_not(&self) -> Option<&'static str> {
        match self.treatment {
            Treatment::None(_, why) | Treatment::Refused(_, why) => Some(why),
            Treatment::Flag(_) | Treatment::Taken(_) | Treatment::Engine => None,
        }
    }
}

pub(super) fn find(name: &str) -> Option<&'static Opt> {
    // Dashes and underscores are the same to fio's command line.
    let same = |known: &str| known == name || (known.len() == name.len() && known == name.replace('-', "_"));
    OPTIONS.iter().find(|option| same(option.name) || option.aliases.iter().any(|alias| same(alias)))
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().flat_map(|option| std::iter::once(option.name).chain(option.aliases.iter().copied()))
}

/// An error about an option that nobody knows, with what was probably meant: an option, or one of these words.
pub(super) fn meant(error: Diagnostic, name: &str, others: impl IntoIterator<Item = &'static str>) -> Diagnostic {
    match closest(name, others.into_iter().chain(names())) {
        Some(meant) => error.help(format!("did you mean `{meant}`?")),
        None => error.help("leave it out; `fstone fio --help` lists all options"),
    }
}

const fn row(name: &'static str, treatment: Treatment) -> Opt {
    Opt { name, aliases: &[], treatment, is_switch: false }
}

const fn flag(name: &'static str, of: fn(&mut Job) -> &mut bool) -> Opt {
    row(name, Treatment::Flag(of))
}

macro_rules! taken {
    ($name:literal, |$job:tt, $value:tt| $body:expr) => {
        row(
            $name,
            Treatment::Taken(|$job: &mut Job, $value: &Value<'_>| {
                $body;
                Ok(())
            }),
        )
    };
}

const fn none(name: &'static str, check: Check, why: &'static str) -> Opt {
    row(name, Treatment::None(check, why))
}

const fn refused(name: &'static str, why: &'static str) -> Opt {
    refused_but(name, &["0"], why)
}

const fn refused_but(name: &'static str, nothing: &'static [&'static str], why: &'static str) -> Opt {
    row(name, Treatment::Refused(nothing, why))
}

const TIMES: &str = "latencies are always measured; docs/performance.md says what that costs";
const MEMORY: &str = "buffers are the engine's own";
const LAYOUT: &str = "files are made before the first phase, one fileset after the other";
const LOGS: &str = "it belongs to fio's own log files";
const OPERATOR: &str = "it concerns how fio's processes run";
const ZONED: &str = "it concerns zoned block devices, and loads work on files";
const BLKTRACE: &str = "it belongs to logs of blktrace, which are not replayed";
const SHELL: &str = "job files cannot run commands";
const TRIM: &str = "trims are those of rw=trim and rw=trimwrite";
const FLOW: &str =
    "the speed of one job would depend on another's, and neither figure would be its own; give each a rate instead";
const PRIORITY: &str = "I/O priorities are not set";
const NUMA: &str = "memory is not bound to NUMA nodes";
const VERIFYING: &str =
    "all data is stamped and every stamp is checked; the first damage is reported with file and offset";
const NETWORK: &str =
    "it belongs to an I/O engine for hardware, a network or a library, and loads work on a mounted filesystem";

pub(super) const OPTIONS: &[Opt] = &[
    taken!("kb_base", |job, v| job.kilo = match v.text() {
        "1000" => 1000,
        "1024" => 1024,
        _ => return Err("1000 or 1024"),
    }),
    none("unit_base", Check::Word(&["0", "1", "8"]), "it changes how rates are printed"),
    taken!("description", |job, v| job.description = Some(v.text().to_owned()).filter(|text| !text.is_empty())),
    taken!("name", |job, v| {
        if v.text().trim().is_empty() {
            return Err("a name");
        }
        v.text().clone_into(&mut job.name);
    }),
    taken!("loops", |job, v| job.loops = v.number()?.max(1)),
    taken!("numjobs", |job, v| job.clones = v.up_to(MAXIMUM_CLONES)?.max(1) as u32),
    taken!("runtime", |job, v| job.runtime = Some(v.seconds()?).filter(|time| !time.is_zero())).or(&["timeout"]),
    flag("time_based", |job| &mut job.time_based).switch(),
    taken!("startdelay", |job, v| {
        let unit = Duration::from_secs(1);
        let (low, high) = v.text().split_once('-').unwrap_or((v.text(), v.text()));
        let both = value::time(low, unit).zip(value::time(high, unit));
        let (one, other) = both.ok_or("a time, such as 10, 10s or 5m, or two with `-` between them")?;
        job.delay = [one.min(other), one.max(other)];
    }),
    taken!("ramp_time", |job, v| job.ramp = v.seconds()?),
    none(
        "clocksource",
        Check::Word(&["gettimeofday", "clock_gettime", "cpu"]),
        "docs/method.md says which clock is used",
    ),
    none("gtod_reduce", Check::Flag, TIMES),
    none("gtod_cpu", Check::Number, TIMES),
    refused("job_max_open_zones", ZONED),
    taken!("directory", |job, v| job.directories = separated(v.text()).ok_or("directories with `:` between them")?),
    taken!("filename", |job, v| {
        let names = separated(v.text()).filter(|names| !names.iter().any(|name| name.ends_with('/')));
        job.filenames = names.ok_or("names with `:` between them")?;
    }),
    taken!("filename_format", |job, v| v.text().clone_into(&mut job.format)),
    none("unique_filename", Check::Flag, "it concerns fio's clients and servers"),
    refused("opendir", "a load works only on files that it names"),
    refused_but("lockfile", &["none"], "the engine itself locks a file that an operation needs exclusively"),
    taken!("nrfiles", |job, v| job.files = v.up_to(MAXIMUM_FILES)?.max(1)).or(&["nr_files"]),
    taken!("openfiles", |job, v| job.open_files = Some(v.number()?).filter(|files| *files > 0)),
    taken!("file_service_type", |job, v| {
        const EXPECTED: Expected = "roundrobin, sequential or random, with a number of operations on each file behind `:` (zipf, pareto and normal are not supported)";
        let (word, number) = v.text().split_once(':').unwrap_or((v.text(), "1"));
        job.service = match word {
            "roundrobin" => Service::RoundRobin,
            "random" => Service::Random,
            "sequential" => Service::Sequential,
            _ => return Err(EXPECTED),
        };
        job.service_operations = v.number_of(number).ok_or(EXPECTED)?.max(1);
    }),
    refused_but(
        "ioscheduler",
        &[],
        "the device's scheduler is left as it is; set it in /sys/block/DEVICE/queue/scheduler",
    ),
    none("create_serialize", Check::Flag, LAYOUT),
    refused_but("create_fsync", &["1"], "files are made durable before the first phase"),
    flag("create_on_open", |job| &mut job.create_on_open),
    flag("create_only", |job| &mut job.create_only),
    taken!("allow_file_create", |_, v| {
        if !v.flag()? {
            return Err("1: files are made when they are missing");
        }
    }),
    none("allow_mounted_write", Check::Flag, "a device that is in use is not written"),
    flag("pre_read", |job| &mut job.pre_read),
    flag("unlink", |job| &mut job.unlink),
    flag("unlink_each_loop", |job| &mut job.unlink_each_loop),
    taken!("zonemode", |job, v| job.zones.0 = match v.text() {
        "none" => false,
        "strided" => true,
        _ => return Err("none or strided: zbd needs a zoned block device, which is not supported"),
    }),
    taken!("zonerange", |job, v| job.zones.2 = Some(v.number()?).filter(|bytes| *bytes > 0)),
    taken!("zonesize", |job, v| job.zones.1 = v.number()?),
    refused("zonecapacity", ZONED),
    taken!("zoneskip", |job, v| job.zones.3 = v.number()?),
    refused("read_beyond_wp", ZONED),
    refused("max_open_zones", ZONED),
    refused("ignore_zone_limits", ZONED),
    refused("zone_reset_threshold", ZONED),
    refused("zone_reset_frequency", ZONED),
    flag("direct", |job| &mut job.direct),
    flag("atomic", |job| &mut job.atomic),
    taken!("buffered", |job, v| job.direct = !v.flag()?),
    taken!("readwrite", |job, v| job.direction = direction(v.text(), v.base)?).or(&["rw"]),
    taken!("rw_sequencer", |_, v| {
        if v.text() != "sequential" {
            return Err("sequential: offsets are not repeated");
        }
    }),
    refused_but("unified_rw_reporting", &["none", "0"], "reads and writes are reported separately; add them up"),
    taken!("randrepeat", |job, v| job.repeats = v.flag()?),
    flag("allrandrepeat", |job| &mut job.all_repeat),
    taken!("randseed", |job, v| job.seed = v.number()?),
    taken!("fallocate", |job, v| (job.allocate, job.grows) = match v.text() {
        "native" | "posix" | "1" => (true, false),
        "keep" => (true, true),
        "none" | "0" => (false, true),
        "truncate" => (false, false),
        _ => return Err("none, native, posix, keep or truncate"),
    }),
    taken!("fadvise_hint", |job, v| job.hint = match v.text() {
        "none" | "0" => Hint::None,
        "" | "1" => Hint::ByType,
        "random" => Hint::Random,
        "sequential" => Hint::Sequential,
        _ => return Err("0, 1, random or sequential"),
    }),
    refused_but("write_hint", &["none"], "the engine gives the kernel no hints"),
    taken!("offset", |job, v| job.offset = Some(v.amount()?)),
    taken!("offset_align", |job, v| job.offset_align = Some(v.number()?).filter(|bytes| *bytes > 0)),
    taken!("offset_increment", |job, v| job.offset_increment = Some(v.amount()?)),
    taken!("number_ios", |job, v| job.number_ios = Some(v.number()?).filter(|number| *number > 0)),
    taken!("fsync", |job, v| job.fsync_every = v.up_to(MAXIMUM_FSYNC)?),
    taken!("fdatasync", |job, v| job.fdatasync_every = v.up_to(MAXIMUM_FSYNC)?),
    refused("write_barrier", "there is no such system call"),
    taken!("sync_file_range", |job, v| {
        let (words, every) = v.text().split_once(':').unwrap_or((v.text(), "1"));
        let flag = |word: &str| ["wait_before", "write", "wait_after"].iter().position(|known| *known == word.trim());
        let flags = words.split(',').try_fold(0, |flags, word| Some(flags | 1 << flag(word)?));
        let every = v.number_of(every).filter(|every| (1..=MAXIMUM_FSYNC).contains(every));
        job.range =
            flags.zip(every).ok_or("wait_before, write or wait_after, and a number behind `:`, such as write:8")?;
    }),
    flag("overwrite", |job| &mut job.overwrite),
    flag("end_fsync", |job| &mut job.end_fsync),
    flag("fsync_on_close", |job| &mut job.close_fsync),
    taken!("rwmixread", |job, v| job.read_percent = v.percent()?),
    taken!("rwmixwrite", |job, v| job.read_percent = 100 - v.percent()?),
    taken!("random_distribution", |job, v| job.distribution = distribution(v.text(), v.base)?),
    taken!("percentage_random", |job, v| {
        let read = |part: &str| v.number_of(part).filter(|percent| *percent <= 100);
        let [reads, writes, _] = value::by_direction(v.text(), read).ok_or("a number from 0 to 100")?;
        job.random_percent = [reads, writes].map(|percent| percent.unwrap_or(100) as u32);
    }),
    flag("norandommap", |job| &mut job.repeats_blocks).switch(),
    none("softrandommap", Check::Flag, "the order of blocks needs no map"),
    none(
        "random_generator",
        Check::Word(&["tausworthe", "tausworthe64", "lfsr"]),
        "a random order has each block once and needs no map, as with lfsr",
    ),
    taken!("blocksize", |job, v| {
        let read = |part: &str| v.number_of(part).filter(is_block).map(Blocks::Fixed);
        // fio takes `4k-16k` for reads of 4k and writes of 16k; blocksize_range has ranges.
        let separator = if v.text().contains(['(', ',']) { "-" } else { "," };
        let three = value::by_direction(&v.text().replace('-', separator), read)
            .ok_or("a size below 4g, such as 4k, and one for writes behind a comma; blocksize_range has ranges")?;
        job.trim_block = three[2].as_ref().map(Blocks::smallest);
        take_two(&mut job.block_ranges, three.clone().map(|of| of.map(|_| None)));
        take_two(&mut job.blocks, three);
    })
    .or(&["bs"]),
    taken!("blocksize_range", |job, v| {
        let read = |part: &str| {
            let (low, high) = value::range(part, v.base)?;
            (low > 0 && high <= MAXIMUM_BLOCK_BYTES).then_some((low, high))
        };
        let three = value::by_direction(&v.text().replace('/', ","), read).ok_or("sizes such as 1k-4k")?;
        take_two(&mut job.block_ranges, three.map(|range| range.map(Some)));
        take_two(&mut job.blocks, three.map(|range| range.map(|(low, high)| between(low, high))));
    })
    .or(&["bsrange"]),
    taken!("bssplit", |job, v| {
        let three = value::by_direction(v.text(), |part| split(part, v.base));
        let three = three.ok_or("sizes and percents that add up to 100, such as 4k/10:64k/90")?;
        take_two(&mut job.block_ranges, three.clone().map(|of| of.map(|_| None)));
        take_two(&mut job.blocks, three);
    }),
    flag("blocksize_unaligned", |job| &mut job.odd_blocks).or(&["bs_unaligned"]).switch(),
    refused("bs_is_seq_rand", "set the block sizes of reads and writes instead"),
    taken!("blockalign", |job, v| {
        let read = |part: &str| v.number_of(part).filter(is_block);
        let [reads, writes, _] = value::by_direction(v.text(), read).ok_or("a size, such as 4k")?;
        job.align = [reads, writes];
    })
    .or(&["ba"]),
    flag("zero_buffers", |job| &mut job.zeroes).switch(),
    none("refill_buffers", Check::Flag, "each written block has its own data").switch(),
    none("scramble_buffers", Check::Flag, "each written block has its own data"),
    taken!("buffer_compress_percentage", |job, v| job.compress_percent = v.percent()?),
    none("buffer_compress_chunk", Check::Number, "the share applies to every 4 KiB"),
    taken!("buffer_pattern", |job, v| {
        let bytes = value::bytes(v.text()).filter(|bytes| bytes.len() <= MAXIMUM_REPEAT);
        job.pattern = bytes.ok_or("text in double quotes, numbers such as 0xdeadbeef or -1, or several of them, at most 512 bytes (none from a file)")?;
    }),
    taken!("dedupe_percentage", |job, v| job.dedupe_percent = v.percent()?),
    refused_but("dedupe_mode", &["repeat"], "a duplicate repeats an earlier block"),
    refused("dedupe_working_set_percentage", "a duplicate repeats an earlier block"),
    refused("dedupe_global", "a duplicate repeats an earlier block"),
    flag("invalidate", |job| &mut job.invalidate),
    taken!("sync", |job, v| job.sync = match v.text.unwrap_or("1") {
        "1" | "sync" => Sync::Sync,
        "0" | "none" => Sync::None,
        "dsync" => Sync::Dsync,
        _ => return Err("none, sync or dsync"),
    }),
    refused_but("iomem", &["malloc", "mmap"], MEMORY).or(&["mem"]),
    none("iomem_align", Check::Number, MEMORY).or(&["mem_align"]),
    none("hugepage-size", Check::Number, MEMORY),
    refused(
        "lockmem",
        "no memory is taken away from the machine; start it with less, or run in a cgroup with memory.max",
    ),
    taken!("size", |job, v| job.size = Some(v.amount()?)),
    taken!("io_size", |job, v| job.io_size = Some(v.amount()?)).or(&["io_limit"]),
    taken!("filesize", |job, v| {
        let range = value::range(v.text(), v.base);
        job.file_size = Some(range.ok_or("a size such as 4k, or two such as 4k-64k")?);
    }),
    flag("file_append", |job| &mut job.append),
    flag("fill_device", |job| &mut job.fills).or(&["fill_fs"]),
    row("ioengine", Treatment::Engine),
    taken!("iodepth", |job, v| job.depth = v.up_to(MAXIMUM_DEPTH)?.max(1) as u32),
    taken!("iodepth_batch_submit", |job, v| job.submit =
        Some(v.up_to(MAXIMUM_DEPTH)? as u32).filter(|submit| *submit > 0))
    .or(&["iodepth_batch"]),
    taken!("iodepth_batch_complete_min", |job, v| job.complete_least = v.up_to(MAXIMUM_DEPTH)?.max(1) as u32)
        .or(&["iodepth_batch_complete"]),
    taken!("iodepth_batch_complete_max", |job, v| job.complete_most = Some(v.up_to(MAXIMUM_DEPTH)? as u32)),
    taken!("iodepth_low", |job, v| job.low = Some(v.up_to(MAXIMUM_DEPTH)? as u32)),
    refused("serialize_overlap", "overlapping requests are not held back; blocks of a random map do not overlap"),
    refused_but(
        "io_submit_mode",
        &["inline"],
        "requests are submitted by the thread that makes them, and latency counts from the intended start",
    ),
    taken!("thinktime", |job, v| job.think = v.microseconds()?),
    taken!("thinktime_spin", |job, v| job.think_spin = v.microseconds()?),
    taken!("thinktime_blocks", |job, v| job.think_every = Some(v.number()?.max(1))),
    none(
        "thinktime_blocks_type",
        Check::Word(&["complete", "issue"]),
        "a pause begins when all requests in flight are complete",
    ),
    taken!("thinktime_iotime", |job, v| job.think_after = Some(v.microseconds()?).filter(|time| !time.is_zero())),
    taken!("rate", |job, v| job.rate_bytes = v.rates("bytes a second, such as 1m or 1m,500k")?),
    taken!("rate_min", |job, v| job.least_bytes = v.rates("bytes a second, such as 1m or 1m,500k")?).or(&["ratemin"]),
    taken!("rate_iops", |job, v| job.rate_operations = v.rates("operations a second, such as 500")?),
    taken!("rate_iops_min", |job, v| job.least_operations = v.rates("operations a second, such as 500")?),
    taken!("rate_process", |job, v| job.poisson = match v.text() {
        "linear" => false,
        "poisson" => true,
        _ => return Err("linear or poisson"),
    }),
    refused("rate_ignore_thinktime", "pauses do not shift the start times of paced operations"),
    taken!("rate_cycle", |job, v| job.least_every = Duration::from_millis(v.number()?.max(1))).or(&["ratecycle"]),
    taken!("latency_target", |job, v| job.latency_target = Some(v.microseconds()?).filter(|time| !time.is_zero())),
    taken!("latency_window", |job, v| job.latency_window = v.microseconds()?),
    taken!("latency_percentile", |job, v| {
        let percent = value::decimal(v.text()).filter(|percent| *percent > 0.0 && *percent <= 100.0);
        job.latency_percent = percent.ok_or("a number above 0, at most 100")?;
    }),
    flag("latency_run", |job| &mut job.latency_run),
    refused("max_latency", "the measurement would decide when the run ends; the largest latency is reported"),
    taken!("write_iolog", |job, v| job.call_log = Some(v.text().to_owned())),
    taken!("read_iolog", |job, v| {
        job.iologs = separated(v.text()).filter(|names| !names.is_empty()).ok_or("files, separated by `:`")?;
    }),
    none("read_iolog_chunked", Check::Flag, "a log is read before it is carried out"),
    none("merge_blktrace_file", Check::Any, BLKTRACE),
    none("merge_blktrace_scalars", Check::Any, BLKTRACE),
    none("merge_blktrace_iters", Check::Any, BLKTRACE),
    flag("replay_no_stall", |job| &mut job.no_stall),
    taken!("replay_redirect", |job, v| job.redirect = Some(v.text().to_owned())),
    none("replay_scale", Check::Any, BLKTRACE),
    none("replay_align", Check::Any, BLKTRACE),
    taken!("replay_time_scale", |job, v| {
        job.replay_percent = Some(v.number()?).filter(|percent| *percent > 0).ok_or("a number of percent above 0")?;
    }),
    none("replay_skip", Check::Any, BLKTRACE),
    taken!("thread", |_, v| v.flag()?).or(&["threads"]).switch(),
    taken!("wait_for", |job, v| {
        job.wait_for = Some(v.text().to_owned()).filter(|name| name != "none");
        job.waits_at = Some((v.place.source.clone(), v.place.span));
    }),
    refused("nice", "it concerns how fio's processes run: use `nice -n N fstone fio`"),
    refused_but("prio", &[], PRIORITY),
    refused("prioclass", PRIORITY),
    refused("cmdprio_percentage", PRIORITY),
    refused("cmdprio_class", PRIORITY),
    refused("cmdprio_hint", PRIORITY),
    refused_but("cmdprio", &[], PRIORITY),
    refused("cmdprio_bssplit", PRIORITY),
    taken!("cpus_allowed", |job, v| job.cpus = cpus(v.text()).ok_or("CPUs such as 0,2-3")?),
    taken!("cpumask", |job, v| {
        let mask = v.number()?;
        job.cpus = (0..64).filter(|cpu| mask >> cpu & 1 == 1).collect();
    }),
    taken!("cpus_allowed_policy", |job, v| job.split_cpus = match v.text() {
        "shared" => false,
        "split" => true,
        _ => return Err("shared or split"),
    }),
    refused_but("numa_cpu_nodes", &[], NUMA),
    refused_but("numa_mem_policy", &["default"], NUMA),
    refused_but("cgroup", &[], "it concerns how fio's processes run: start fstone in the cgroup, as with systemd-run"),
    refused_but(
        "cgroup_weight",
        &[],
        "it concerns how fio's processes run: start fstone in the cgroup, as with systemd-run",
    ),
    refused("cgroup_nodelete", "it concerns how fio's processes run: start fstone in the cgroup, as with systemd-run"),
    refused("flow_id", FLOW),
    refused("flow", FLOW),
    refused("flow_sleep", FLOW),
    refused("flow_watermark", FLOW),
    flag("stonewall", |job| &mut job.stonewall).or(&["wait_for_previous"]).switch(),
    flag("exitall", |job| &mut job.exit_all).switch(),
    taken!("exit_what", |job, v| job.exit_what = match v.text() {
        "group" => Ends::Group,
        "stonewall" => Ends::Running,
        "all" => Ends::All,
        _ => return Err("group, stonewall or all"),
    }),
    flag("exitall_on_error", |job| &mut job.ends_all).switch(),
    refused("exec_prerun", SHELL),
    refused("exec_postrun", SHELL),
    refused_but("uid", &[], OPERATOR),
    refused_but("gid", &[], OPERATOR),
    taken!("verify", |job, v| {
        if !CHECKSUMS.contains(&v.text()) {
            return Err("a checksum such as crc32c, or pattern");
        }
        job.verify = !matches!(v.text(), "0" | "null");
    }),
    flag("do_verify", |job| &mut job.do_verify),
    none("verify_offset", Check::Number, VERIFYING),
    none("verify_interval", Check::Number, VERIFYING),
    refused_but(
        "verify_pattern",
        &[],
        "verified data is stamped, and has no pattern; buffer_pattern writes one where nothing is verified",
    ),
    none("verify_pattern_interval", Check::Flag, VERIFYING),
    none("verify_header_seed", Check::Flag, VERIFYING),
    none("verify_write_sequence", Check::Flag, VERIFYING),
    none("verify_fatal", Check::Flag, VERIFYING),
    none("verify_dump", Check::Flag, VERIFYING),
    none("verify_async", Check::Number, "data is verified by the thread that reads it"),
    none("verify_async_cpus", Check::Any, "data is verified by the thread that reads it"),
    taken!("verify_backlog", |job, v| job.backlog = v.number()?),
    taken!("verify_backlog_batch", |job, v| job.backlog_batch = v.number()?),
    none("experimental_verify", Check::Flag, VERIFYING),
    flag("verify_only", |job| &mut job.verify_only).switch(),
    refused("verify_state_load", VERIFYING),
    none("verify_state_save", Check::Flag, VERIFYING),
    refused("trim_percentage", TRIM),
    refused("trim_verify_zero", TRIM),
    refused("trim_backlog", TRIM),
    refused("trim_backlog_batch", TRIM),
    refused("num_range", TRIM),
    taken!("steadystate", |job, v| job.steady = Some(value::steady(v.text(), v.base)?)).or(&["ss"]),
    taken!("steadystate_duration", |job, v| job.steady_window = v.seconds()?).or(&["ss_dur"]),
    taken!("steadystate_ramp_time", |job, v| job.steady_ramp = v.seconds()?).or(&["ss_ramp"]),
    refused_but("steadystate_check_interval", &["1", "1s"], "a sample is taken each second").or(&["ss_interval"]),
    flag("per_job_logs", |job| &mut job.log_each),
    flag("group_reporting", |job| &mut job.group_reporting).switch(),
    flag("new_group", |job| &mut job.new_group).switch(),
    refused_but("stats", &["1"], "every job is reported"),
    taken!("write_bw_log", |job, v| job.logs[0] = Some(v.prefix()?)),
    taken!("write_lat_log", |job, v| job.logs[1] = Some(v.prefix()?)).or(&["latency-log"]),
    taken!("write_iops_log", |job, v| job.logs[2] = Some(v.prefix()?)),
    refused_but("write_hist_log", &[], "histograms are in --output-format=json+"),
    none("log_entries", Check::Number, LOGS),
    none("log_hist_msec", Check::Number, LOGS),
    none("log_hist_coarseness", Check::Number, LOGS),
    taken!("log_avg_msec", |job, v| job.log_interval =
        Some(Duration::from_millis(v.number()?)).filter(|time| !time.is_zero())),
    refused("log_max_value", LOGS).or(&["log_window_value"]),
    refused("log_offset", LOGS),
    refused("log_prio", LOGS),
    refused("log_issue_time", LOGS),
    none("log_compression", Check::Number, LOGS),
    none("log_compression_cpus", Check::Any, LOGS),
    refused("log_store_compressed", LOGS),
    refused("log_unix_epoch", LOGS),
    refused("log_alternate_epoch", LOGS),
    none("log_alternate_epoch_clock_id", Check::Number, LOGS),
    none("block_error_percentiles", Check::Flag, TRIM),
    none("bwavgtime", Check::Number, LOGS),
    none("iopsavgtime", Check::Number, LOGS),
    none("disk_util", Check::Flag, "a study has the device's counters"),
    none("disable_lat", Check::Flag, TIMES),
    none("disable_clat", Check::Flag, TIMES),
    none("disable_slat", Check::Flag, TIMES),
    none("disable_bw_measurement", Check::Flag, TIMES).or(&["disable_bw"]),
    none("slat_percentiles", Check::Flag, "there is only one latency, from submission to completion"),
    flag("clat_percentiles", |job| &mut job.percentiles_of_completion),
    flag("lat_percentiles", |job| &mut job.percentiles_of_all),
    taken!("percentile_list", |job, v| {
        let list: Option<Vec<f64>> = v.text().split(':').map(value::decimal).collect();
        let fits = |list: &Vec<f64>| {
            list.len() <= MAXIMUM_PERCENTILES && list.iter().all(|percent| (0.0..=100.0).contains(percent))
        };
        job.percentiles = list.filter(fits).ok_or("at most 20 numbers from 0 to 100 with `:` between them")?;
        job.percentiles.sort_by(f64::total_cmp);
    }),
    none("significant_figures", Check::Number, "it changes how figures are printed"),
    taken!("continue_on_error", |job, v| job.continues = match v.text() {
        "none" | "0" => [false; 3],
        "read" => [true, false, false],
        "write" => [false, true, false],
        "io" => [true, true, false],
        "verify" => [false, false, true],
        "all" | "1" => [true; 3],
        _ => return Err("none, read, write, io, verify or all"),
    }),
    taken!("ignore_error", |job, v| {
        const EXPECTED: Expected =
            "errors of reads, of writes and of checks, such as EIO:EAGAIN,ENOSPC; those above ERANGE (34) as numbers";
        let parts: Vec<&str> = v.text().split(',').collect();
        if v.text().is_empty() || parts.len() > 3 {
            return Err(EXPECTED);
        }
        for (index, part) in parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            let errors: Option<Vec<i32>> = part.split(':').filter(|word| !word.is_empty()).map(error).collect();
            job.ignored[index] = errors.ok_or(EXPECTED)?;
            job.continues[index] = true;
        }
    }),
    none("error_dump", Check::Flag, "every error is reported with its path"),
    refused("profile", "write the job file out in full"),
    // I/O engines' own.
    none("userspace_reap", Check::Flag, "completions are collected as they arrive").switch(),
    flag("hipri", |job| &mut job.polled).switch(),
    taken!("hipri_percentage", |job, v| job.polled = match v.text() {
        "0" => false,
        "100" => true,
        _ => return Err("100, or 0: all requests are polled for, or none"),
    }),
    none("fixedbufs", Check::Flag, "the engine's buffers are registered when that is possible").switch(),
    none("registerfiles", Check::Flag, "files are registered when that is possible").switch(),
    refused("sqthread_poll", "requests are submitted by the thread that makes them").switch(),
    refused_but("sqthread_poll_cpu", &[], "requests are submitted by the thread that makes them"),
    none("nonvectored", Check::Flag, "requests are not vectored"),
    flag("uncached", |job| &mut job.uncached),
    flag("nowait", |job| &mut job.no_wait),
    refused("force_async", "the kernel decides what its workers do"),
    none("libaio_vectored", Check::Flag, "requests are not vectored"),
    refused("readfua", NETWORK),
    refused("writefua", NETWORK),
    refused("hostname", NETWORK),
    refused("port", NETWORK),
    refused("protocol", NETWORK).or(&["proto"]),
    refused("listen", NETWORK),
    refused("pingpong", NETWORK),
    refused("verb", NETWORK),
    refused("cpuload", "jobs that only compute are not supported"),
    refused("cpumode", "jobs that only compute are not supported"),
    refused("cpuchunks", "jobs that only compute are not supported"),
    refused("exit_on_io_done", "jobs that only compute are not supported"),
    refused("program", SHELL),
    refused("arguments", SHELL),
    refused("http_verbose", NETWORK),
    refused("https", NETWORK),
    refused("http_mode", NETWORK),
    refused("http_host", NETWORK),
    refused("http_user", NETWORK),
    refused("http_pass", NETWORK),
    refused("http_s3_key", NETWORK),
    refused("http_s3_keyid", NETWORK),
    refused("http_s3_region", NETWORK),
    refused("http_s3_sse_customer_key", NETWORK),
    refused("http_s3_sse_customer_algorithm", NETWORK),
    refused("http_s3_storage_class", NETWORK),
    refused("http_swift_auth_token", NETWORK),
    refused("cmd_type", NETWORK),
    refused("write_mode", NETWORK),
    refused("md_per_io_size", NETWORK),
    refused("pi_act", NETWORK),
    refused("pi_chk", NETWORK),
    refused("apptag", NETWORK),
    refused("apptag_mask", NETWORK),
    refused("fdp", NETWORK),
    refused("fdp_pli", NETWORK),
    refused("libblkio_driver", NETWORK),
    refused("libblkio_path", NETWORK),
    refused_but("gpu_dev_id", &[], NETWORK),
    refused_but("gpu_dev_ids", &[], NETWORK),
    refused("cuda_io", NETWORK),
    refused("rocm_io", NETWORK),
    refused("sg_write_mode", NETWORK),
    refused("ttl", NETWORK),
    refused("skip_bad", NETWORK),
    refused("conf", NETWORK),
    refused("cont", NETWORK),
    refused("busy_poll", NETWORK),
    refused("spr_op", "files have no regions of their own on an SSD"),
    refused("spr_num_regions", "files have no regions of their own on an SSD"),
    refused("grace_time", SHELL),
    refused("std_redirect", SHELL),
    refused("random_sequence_stride", "offsets are drawn, not stridden"),
    refused("donorname", "files are not defragmented"),
    refused("inplace", "files are not defragmented"),
    refused("pool", NETWORK),
    refused("rbdname", NETWORK),
    refused("clientname", NETWORK),
    refused("volume", NETWORK),
    refused("brick", NETWORK),
    refused("uri", NETWORK),
    refused("nfs_url", NETWORK),
    refused("sprandom", "files have no regions of their own on an SSD"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_name_is_there_once() {
        let mut seen = HashSet::new();
        for name in names() {
            assert!(seen.insert(name), "{name} twice");
        }
        assert_eq!(find("bs").map(|option| option.name), Some("blocksize"));
        assert_eq!(find("time-based").map(|option| option.name), Some("time_based"));
        // "empty or boolean value" in `fio --cmdhelp` of 3.33.
        for switch in [
            "bs_unaligned",
            "exitall",
            "exitall_on_error",
            "group_reporting",
            "new_group",
            "norandommap",
            "refill_buffers",
            "stonewall",
            "thread",
            "time_based",
            "verify_only",
            "zero_buffers",
        ] {
            assert!(find(switch).is_some_and(|option| option.is_switch), "{switch}");
        }
        assert!(find("blocksiz").is_none());
    }
}

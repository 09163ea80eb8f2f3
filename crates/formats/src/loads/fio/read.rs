//! Sections to jobs: each option's value, and what is refused.

use super::{
    distribution::distribution,
    job::{Amount, Blocks, Direction, Engine, Hint, Job, Service, Sync},
    options::{self, Treatment},
    text::{Findings, Section, Setting, Word},
    value::{self, Base},
};
use crate::diagnostic::Diagnostic;
use fstone_model::workload::MAXIMUM_REPEAT;
use std::{cell::Cell, time::Duration};

/// Clones and files that a job has at most: what the engine can have at once.
const MAXIMUM_CLONES: u64 = 4_000;
const MAXIMUM_FILES: u64 = 100_000_000;
const MAXIMUM_DEPTH: u64 = 4_096;
const MAXIMUM_BLOCK: u64 = 1 << 30;
const MAXIMUM_GAP: u64 = 1 << 50;
const MAXIMUM_FSYNC: u64 = 1_000_000;
/// Percentiles that a list may have, as in fio.
const MAXIMUM_PERCENTILES: usize = 20;

/// Words of `rw` and `ioengine`, for whoever mistypes them.
const DIRECTIONS: &[&str] = &["read", "write", "rw", "readwrite", "randread", "randwrite", "randrw"];
const ENGINES: &[&str] = &[
    "psync",
    "sync",
    "vsync",
    "pvsync",
    "pvsync2",
    "libaio",
    "posixaio",
    "io_uring",
    "mmap",
    "null",
    "filecreate",
    "filestat",
    "filedelete",
    "filerename",
    "dircreate",
    "dirstat",
    "dirdelete",
];

/// What a machine and its user have to say to a job file.
pub(super) type Variable<'v> = dyn Fn(&str) -> Option<String> + 'v;

/// The jobs of sections, each with what the `[global]` sections before it say.
pub(super) fn jobs(sections: &[Section], variable: &Variable<'_>, findings: &mut Findings) -> Vec<Job> {
    let mut global: Vec<&Setting> = Vec::new();
    let mut jobs = Vec::new();
    for section in sections {
        if section.name.text == "global" {
            global.extend(&section.settings);
            continue;
        }
        let own: Vec<&Setting> = section.settings.iter().collect();
        let mut job = Job::new(section.name.text.clone());
        job.section = Some((section.name.source.clone(), section.name.span));
        let mut reader = Reader { job, base: Base { kilo: 1024 }, variable, findings, why: Cell::default() };
        let all = || global.iter().chain(&own);
        // What `k` means holds for the whole job, wherever it is said.
        if let Some(base) = all().rfind(|setting| setting.key.text == "kb_base") {
            reader.setting(base);
        }
        // A name that all sections have is none's.
        for setting in global.iter().copied().filter(|setting| setting.key.text != "name").chain(own.iter().copied()) {
            reader.setting(setting);
        }
        reader.job.written = written(&own);
        jobs.push(reader.finish(&section.name));
    }
    jobs
}

pub(super) fn written(settings: &[&Setting]) -> Vec<(String, String)> {
    let value = |setting: &&Setting| setting.value.as_ref().map_or("1".to_owned(), |value| value.text.clone());
    settings.iter().map(|setting| (setting.key.text.clone(), value(setting))).collect()
}

struct Reader<'r> {
    job: Job,
    base: Base,
    variable: &'r Variable<'r>,
    findings: &'r mut Findings,
    why: Cell<Option<String>>,
}

fn with_unset(diagnostic: Diagnostic, unset: &[String]) -> Diagnostic {
    let Some(name) = unset.first() else { return diagnostic };
    if let Some(machine) = name.strip_prefix('$') {
        let note = format!("`${machine}` is a number of the machine, which only `fstone fio` knows");
        return diagnostic.note(note).help("write the number in its place");
    }
    diagnostic.note(format!("`${{{name}}}` is not set, and stands for nothing")).help(format!(
        "set {name} in the environment of `fstone fio`, or write the value in its place; studies and other commands have no variables"
    ))
}

type Expected = &'static str;

impl Reader<'_> {
    fn setting(&mut self, setting: &Setting) {
        let key = &setting.key;
        let Some(option) = options::find(&key.text) else {
            let diagnostic = Diagnostic::error(key.span, format!("unknown option `{}`", key.text));
            self.findings.at(&key.source, options::meant(diagnostic, &key.text, []));
            return;
        };
        match option.treatment {
            Treatment::Refused(why) => {
                let span =
                    setting.value.as_ref().map_or(key.span, |value| crate::Span::new(key.span.start, value.span.end));
                let off = setting.value.as_ref().is_some_and(|value| value.text == "0");
                // Switched off, it asks for nothing.
                if !off {
                    let diagnostic = Diagnostic::error(span, format!("`{}` is not supported", key.text))
                        .note(why)
                        .help("leave it out; docs/formats/fio.md lists all options");
                    self.findings.at(&key.source, diagnostic);
                }
            }
            Treatment::Ignored(why) => self.findings.note(key, format!("`{}` has no effect", key.text), why),
            Treatment::Taken => {
                let place = setting.value.as_ref().unwrap_or(key);
                let mut unset = Vec::new();
                let text = setting.value.as_ref().map(|value| {
                    value::expanded(&value.text, |name| {
                        let value = (self.variable)(name);
                        if value.is_none() {
                            unset.push(name.to_owned());
                        }
                        value
                    })
                });
                let taken = self.take(option.name, text.as_deref(), place);
                if let Err(expected) = taken {
                    let known = match option.name {
                        "readwrite" => DIRECTIONS,
                        "ioengine" => ENGINES,
                        _ => &[],
                    };
                    let mut diagnostic = Diagnostic::error(place.span, format!("not a value for `{}`", key.text))
                        .label(format!("expected {expected}"))
                        .did_you_mean(&place.text, known.iter().copied());
                    if let Some(why) = self.why.take().filter(|_| unset.is_empty()) {
                        diagnostic = diagnostic.note(why);
                    }
                    self.findings.at(&place.source, with_unset(diagnostic, &unset));
                } else if !unset.is_empty() {
                    let what = format!("`{}` has a variable without a value", key.text);
                    self.findings.at(&place.source, with_unset(Diagnostic::warning(place.span, what), &unset));
                }
            }
        }
    }

    fn take(&mut self, name: &str, text: Option<&str>, place: &Word) -> Result<(), Expected> {
        let base = self.base;
        let some = text.unwrap_or("");
        let why = &self.why;
        why.set(None);
        let explained = |part: &str| {
            let read = value::explained(part, base);
            read.map_err(|wrong| why.set(Some(wrong))).ok()
        };
        let flag = || value::flag(text).ok_or("0 or 1");
        let number = || explained(some).ok_or("a number, such as 16 or 4k");
        let up_to =
            |most: u64| number().and_then(|number| if number <= most { Ok(number) } else { Err("a smaller number") });
        let percent = || up_to(100).map(|number| number as u32).map_err(|_| "a number from 0 to 100");
        let amount = || amount(some, &explained).ok_or("a size such as 64m, or a share such as 50%");
        let seconds = || value::time(some, Duration::from_secs(1)).ok_or("a time, such as 10, 10s or 5m");
        let microseconds = || value::time(some, Duration::from_micros(1)).ok_or("a time, such as 100us");
        let job = &mut self.job;
        match name {
            "kb_base" => {
                self.base.kilo = match some {
                    "1000" => 1000,
                    "1024" => 1024,
                    _ => return Err("1000 or 1024"),
                };
            }
            "name" => {
                if some.trim().is_empty() {
                    return Err("a name");
                }
                some.clone_into(&mut job.name);
            }
            "loops" => job.loops = number()?.max(1),
            "numjobs" => job.clones = up_to(MAXIMUM_CLONES)?.max(1) as u32,
            "runtime" => job.runtime = Some(seconds()?).filter(|time| !time.is_zero()),
            "time_based" => job.time_based = flag()?,
            "startdelay" => {
                let low = some.split(['-', ':']).next().unwrap_or("");
                if low.len() < some.len() {
                    return Err("one time: each clone's own is not drawn");
                }
                job.delay = seconds()?;
            }
            "ramp_time" => job.ramp = seconds()?,
            "directory" => {
                job.directories = separated(some).ok_or("directories with `:` between them")?;
            }
            "filename" => {
                let names = separated(some).filter(|names| !names.iter().any(|name| name.ends_with('/')));
                job.filenames = names.ok_or("names with `:` between them")?;
            }
            "filename_format" => some.clone_into(&mut job.format),
            "nrfiles" => job.files = up_to(MAXIMUM_FILES)?.max(1),
            "file_service_type" => {
                let word = some.split(':').next().unwrap_or("");
                job.service = match word {
                    "roundrobin" if word == some => Service::RoundRobin,
                    "sequential" => Service::Sequential,
                    "random" if word == some => Service::Random,
                    _ => {
                        return Err(
                            "roundrobin, sequential or random (one file for several operations in turn, and zipf, pareto and normal are not supported)",
                        );
                    }
                };
            }
            "allow_file_create" => {
                if !flag()? {
                    return Err("1: files are made when they are missing");
                }
            }
            "direct" => job.direct = flag()?,
            "buffered" => job.direct = !flag()?,
            "readwrite" => job.direction = direction(some, base)?,
            "rw_sequencer" => match some {
                "sequential" => {}
                _ => return Err("sequential: offsets are not repeated"),
            },
            "fallocate" => match some {
                "native" | "posix" | "1" => (job.allocate, job.grows) = (true, false),
                "keep" => (job.allocate, job.grows) = (true, true),
                "none" | "0" => (job.allocate, job.grows) = (false, true),
                "truncate" => (job.allocate, job.grows) = (false, false),
                _ => return Err("none, native, posix, keep or truncate"),
            },
            "offset" => job.offset = Some(amount()?),
            "offset_increment" => job.offset_increment = Some(amount()?),
            "offset_align" => job.offset_align = Some(number()?).filter(|bytes| *bytes > 0),
            "number_ios" => job.number_ios = Some(number()?).filter(|number| *number > 0),
            "fsync" | "fdatasync" => {
                let every = up_to(MAXIMUM_FSYNC)?;
                *(if name == "fsync" { &mut job.fsync_every } else { &mut job.fdatasync_every }) = every;
            }
            "overwrite" => job.overwrite = flag()?,
            "pre_read" => job.pre_read = flag()?,
            "unlink" => job.unlink = flag()?,
            "create_only" => job.create_only = flag()?,
            "end_fsync" => job.end_fsync = flag()?,
            "fsync_on_close" => job.end_fsync |= flag()?,
            "rwmixread" => job.read_percent = percent()?,
            "rwmixwrite" => job.read_percent = 100 - percent()?,
            "random_distribution" => job.distribution = distribution(some, base)?,
            "percentage_random" => {
                let read = |part: &str| value::number(part, base).filter(|percent| *percent <= 100);
                let [reads, writes, _] = value::by_direction(some, read).ok_or("a number from 0 to 100")?;
                job.random_percent = [reads.unwrap_or(100) as u32, writes.unwrap_or(100) as u32];
            }
            "norandommap" => job.repeats_blocks = flag()?,
            "blocksize" => {
                let read = |part: &str| explained(part).filter(is_block).map(Blocks::Fixed);
                let three = value::by_direction(some, read).ok_or("a size from 1 to 1g, such as 4k")?;
                take_two(&mut job.blocks, three);
            }
            "blocksize_range" => {
                let read = |part: &str| {
                    let (low, high) = value::range(part, base)?;
                    (low > 0 && high <= MAXIMUM_BLOCK).then(|| between(low, high))
                };
                let three = value::by_direction(&some.replace('/', ","), read).ok_or("sizes such as 1k-4k")?;
                take_two(&mut job.blocks, three);
            }
            "bssplit" => {
                let three = value::by_direction(some, |part| split(part, base))
                    .ok_or("sizes and percents such as 4k/10:64k/90")?;
                take_two(&mut job.blocks, three);
            }
            "blockalign" => {
                let three = value::by_direction(some, |part| block(part, base)).ok_or("a size, such as 4k")?;
                job.align = [three[0], three[1]];
            }
            "zero_buffers" => {
                if flag()? {
                    job.compress_percent = 100;
                }
            }
            "buffer_compress_percentage" => job.compress_percent = percent()?,
            "buffer_pattern" => {
                job.pattern = value::bytes(some)
                    .filter(|bytes| bytes.len() <= MAXIMUM_REPEAT)
                    .ok_or("text in double quotes, numbers such as 0xdeadbeef or -1, or several of them, at most 512 bytes (none from a file)")?;
            }
            "dedupe_percentage" => job.dedupe_percent = percent()?,
            "invalidate" => job.invalidate = flag()?,
            "fadvise_hint" => {
                job.hint = match some {
                    "none" | "0" => Hint::None,
                    "" | "1" => Hint::ByType,
                    "random" => Hint::Random,
                    "sequential" => Hint::Sequential,
                    _ => return Err("0, 1, random or sequential"),
                };
            }
            "sync" => {
                job.sync = match text {
                    None | Some("1" | "sync") => Sync::Sync,
                    Some("0" | "none") => Sync::None,
                    Some("dsync") => Sync::Dsync,
                    Some(_) => return Err("none, sync or dsync"),
                };
            }
            "size" => job.size = Some(amount()?),
            "io_size" => job.io_size = Some(amount()?),
            "filesize" => {
                job.file_size = Some(value::range(some, base).ok_or("a size such as 4k, or two such as 4k-64k")?);
            }
            "ioengine" => return self.engine(some, place),
            "iodepth" => job.depth = up_to(MAXIMUM_DEPTH)?.max(1) as u32,
            "iodepth_batch_submit" => job.submit = Some(up_to(MAXIMUM_DEPTH)? as u32).filter(|submit| *submit > 0),
            "iodepth_batch_complete_min" => job.complete_least = up_to(MAXIMUM_DEPTH)?.max(1) as u32,
            "hipri" => job.polled = flag()?,
            "hipri_percentage" => match some {
                "0" | "100" => job.polled = some == "100",
                _ => return Err("100, or 0: all requests are polled for, or none"),
            },
            "uncached" => job.uncached = flag()?,
            "nowait" => job.no_wait = flag()?,
            "atomic" => {
                job.atomic = flag()?;
                job.direct |= job.atomic;
            }
            "iodepth_low" => job.low = Some(up_to(MAXIMUM_DEPTH)? as u32),
            "thinktime" => job.think = microseconds()?,
            "thinktime_blocks" => job.think_every = number()?.max(1),
            "thinktime_blocks_type" => match some {
                "complete" | "issue" => {}
                _ => return Err("complete or issue"),
            },
            "rate" => {
                let three = value::by_direction(some, explained).ok_or("bytes a second, such as 1m or 1m,500k")?;
                job.rate_bytes = [three[0].filter(|rate| *rate > 0), three[1].filter(|rate| *rate > 0)];
            }
            "rate_iops" => {
                let three = value::by_direction(some, explained).ok_or("operations a second, such as 500")?;
                job.rate_operations = [three[0].filter(|rate| *rate > 0), three[1].filter(|rate| *rate > 0)];
            }
            "rate_process" => {
                job.poisson = match some {
                    "linear" => false,
                    "poisson" => true,
                    _ => return Err("linear or poisson"),
                };
            }
            "latency_target" => job.latency_target = Some(microseconds()?).filter(|time| !time.is_zero()),
            "latency_window" => job.latency_window = microseconds()?,
            "latency_percentile" => {
                let percent = value::decimal(some).filter(|percent| *percent > 0.0 && *percent <= 100.0);
                job.latency_percent = percent.ok_or("a number above 0, at most 100")?;
            }
            "latency_run" => job.latency_run = flag()?,
            // Threads or processes: all are threads here.
            "thread" => drop(flag()?),
            "wait_for" => {
                job.wait_for = Some(some.to_owned()).filter(|name| name != "none");
                job.waits_at = Some((place.source.clone(), place.span));
            }
            "cpus_allowed" => job.cpus = cpus(some).ok_or("CPUs such as 0,2-3")?,
            "cpumask" => {
                let mask = number()?;
                job.cpus = (0..64).filter(|cpu| mask >> cpu & 1 == 1).collect();
            }
            "cpus_allowed_policy" => {
                job.split_cpus = match some {
                    "shared" => false,
                    "split" => true,
                    _ => return Err("shared or split"),
                };
            }
            "stonewall" => job.stonewall = flag()?,
            "exitall" => job.exit_all = flag()?,
            "exit_what" => {
                if some != "group" {
                    return Err("group: a job ends those that run at the same time");
                }
            }
            "verify" => {
                const KNOWN: [&str; 20] = [
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
                if !KNOWN.contains(&some) {
                    return Err("a checksum such as crc32c, or pattern");
                }
                job.verify = !matches!(some, "0" | "null");
            }
            "do_verify" => job.do_verify = flag()?,
            "group_reporting" => job.group_reporting = flag()?,
            "new_group" => job.new_group = flag()?,
            "write_bw_log" | "write_lat_log" | "write_iops_log" => {
                let at = ["write_bw_log", "write_lat_log", "write_iops_log"].iter().position(|known| *known == name);
                let prefix = text.filter(|text| !text.is_empty() && *text != "1").unwrap_or(&job.name).to_owned();
                if prefix.contains('\0') {
                    return Err("a prefix for the names of files");
                }
                job.logs[at.unwrap_or_default()] = Some(prefix);
            }
            "per_job_logs" => job.log_each = flag()?,
            "log_avg_msec" => job.log_interval = Some(Duration::from_millis(number()?)).filter(|time| !time.is_zero()),
            "slat_percentiles" => drop(flag()?),
            "clat_percentiles" => job.percentiles_of_completion = flag()?,
            "lat_percentiles" => job.percentiles_of_all = flag()?,
            "percentile_list" => {
                let list: Option<Vec<f64>> = some.split(':').map(value::decimal).collect();
                let fits = |list: &Vec<f64>| {
                    list.len() <= MAXIMUM_PERCENTILES && list.iter().all(|percent| (0.0..=100.0).contains(percent))
                };
                job.percentiles = list.filter(fits).ok_or("at most 20 numbers from 0 to 100 with `:` between them")?;
                job.percentiles.sort_by(f64::total_cmp);
            }
            "continue_on_error" => {
                job.continues = match some {
                    "none" | "0" => false,
                    "read" | "write" | "io" | "verify" | "all" | "1" => true,
                    _ => return Err("none, read, write, io, verify or all"),
                };
            }
            "ignore_error" => job.continues = true,
            _ => unreachable!("every option that is taken has an arm: {name}"),
        }
        Ok(())
    }

    fn engine(&mut self, name: &str, place: &Word) -> Result<(), Expected> {
        /// Engines that need hardware, a network or a library.
        const ELSEWHERE: &[&str] = &[
            "rdma",
            "net",
            "netsplice",
            "rbd",
            "rados",
            "gfapi",
            "gfapi_async",
            "libhdfs",
            "http",
            "nbd",
            "nfs",
            "libiscsi",
            "libzbc",
            "libblkio",
            "libcufile",
            "libhipfile",
            "libpmem",
            "dev-dax",
            "pmemblk",
            "mtd",
            "sg",
            "io_uring_cmd",
            "xnvme",
            "dfs",
            "ime_psync",
            "ime_psyncv",
            "ime_aio",
            "guasi",
            "spdk",
            "external",
            "cpuio",
            "exec",
            "e4defrag",
            "splice",
            "falloc",
            "ftruncate",
            "windowsaio",
            "solarisaio",
        ];
        self.job.engine = match name {
            "psync" | "pvsync" | "pvsync2" => Engine::Psync,
            "sync" | "vsync" => {
                if name == "vsync" {
                    self.findings.note(
                        place,
                        "blocks are not joined into vectors",
                        "each is a call of its own, as with psync",
                    );
                }
                Engine::Psync
            }
            "libaio" => Engine::Libaio,
            "posixaio" => {
                self.findings.note(
                    place,
                    "posixaio is run as io_uring",
                    "both keep iodepth requests in flight; no threads of the C library are in between",
                );
                Engine::IoUring
            }
            "io_uring" => Engine::IoUring,
            "mmap" | "page_fault" => Engine::Mmap,
            "null" | "cpp_null" => Engine::Null,
            "filecreate" => Engine::FileCreate,
            "filestat" => Engine::FileStat,
            "filedelete" => Engine::FileDelete,
            "filerename" => Engine::FileRename,
            "dircreate" => Engine::DirectoryCreate,
            "dirstat" => Engine::DirectoryStat,
            "dirdelete" => Engine::DirectoryDelete,
            _ if ELSEWHERE.contains(&name) => {
                let diagnostic = Diagnostic::error(place.span, format!("the I/O engine `{name}` is not supported"))
                    .note("loads work on the files of a mounted filesystem, by the kernel's own calls")
                    .help("docs/formats/fio.md lists the engines");
                self.findings.at(&place.source, diagnostic);
                return Ok(());
            }
            _ => {
                return Err(
                    "psync, libaio, io_uring, mmap, null, filecreate, filestat, filedelete, filerename, dircreate, dirstat or dirdelete",
                );
            }
        };
        Ok(())
    }

    fn finish(mut self, section: &Word) -> Job {
        let job = &mut self.job;
        if job.time_based && job.runtime.is_none() {
            let why = "the job ends when it has moved its size, as with fio; add runtime=, such as runtime=60s";
            self.findings.note(section, "time_based has no effect without a runtime", why);
            job.time_based = false;
        }
        let [reads, writes] = job.own_rates();
        if job.direction.reads && job.direction.writes && reads != writes {
            let cure = "give the other a rate, too, or give reads and writes a job each";
            self.findings.error(section, "a rate for one of reads and writes, in a mix of both", cure);
        }
        if job.latency_target.is_some() && job.latency_window.is_zero() {
            let cure = "say how long each queue depth is tried, such as latency_window=5s";
            self.findings.error(section, "latency_target without a latency_window", cure);
        }
        if let (Some(name), Some((source, span))) = (&job.wait_for, &job.waits_at)
            && *name == job.name
        {
            let cure = "name another job, or leave wait_for out";
            let diagnostic = Diagnostic::error(*span, format!("`{name}` waits for itself")).help(cure);
            self.findings.at(source, diagnostic);
        }
        if matches!(job.engine, Engine::Psync | Engine::Mmap) {
            job.depth = 1;
        }
        self.job
    }
}

/// Reads and writes; trims are not.
fn take_two<T: Clone>(to: &mut [T; 2], from: [Option<T>; 3]) {
    for (to, from) in to.iter_mut().zip(from) {
        if let Some(value) = from {
            *to = value;
        }
    }
}

fn block(text: &str, base: Base) -> Option<u64> {
    value::number(text, base).filter(is_block)
}

fn is_block(bytes: &u64) -> bool {
    (1..=MAXIMUM_BLOCK).contains(bytes)
}

fn amount(text: &str, number: &impl Fn(&str) -> Option<u64>) -> Option<Amount> {
    match text.strip_suffix('%') {
        Some(share) => number(share).filter(|share| *share <= 100).map(Amount::Percent),
        None => number(text).map(Amount::Bytes),
    }
}

/// Multiples of the smaller, and what is left of the larger: as in fio a size is drawn from the smaller to the sum of both, rounded down to a
/// multiple, and at most the larger.
fn between(low: u64, high: u64) -> Blocks {
    /// With more multiples, what is left of the larger comes in less than one of a thousand blocks.
    const MOST: u64 = 1000;
    match (high / low, high % low) {
        (1, 0) => Blocks::Fixed(low),
        (count, rest @ 1..) if count <= MOST => {
            let multiples = (1..=count).map(|number| (number * low, low as u32));
            Blocks::Split(multiples.chain([(high, rest as u32)]).collect())
        }
        _ => Blocks::Range(low, high),
    }
}

/// `4k/10:64k/50:32k`: shares that are left out share what is left.
fn split(text: &str, base: Base) -> Option<Blocks> {
    let mut sizes: Vec<(u64, Option<u32>)> = Vec::new();
    for part in text.split(':').filter(|part| !part.is_empty()) {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let share =
            if share.is_empty() { None } else { Some(share.parse::<u32>().ok().filter(|share| *share <= 100)?) };
        sizes.push((block(size, base)?, share));
    }
    let given: u32 = sizes.iter().filter_map(|(_, share)| *share).sum();
    let open = sizes.iter().filter(|(_, share)| share.is_none()).count() as u32;
    if sizes.is_empty() || given > 100 || (open == 0 && given != 100) {
        return None;
    }
    // In parts of a percent, so that what is left divides evenly.
    let weight = |share: Option<u32>| share.map_or(100 - given, |share| share * open.max(1));
    let sizes: Vec<(u64, u32)> =
        sizes.into_iter().map(|(size, share)| (size, weight(share))).filter(|(_, weight)| *weight > 0).collect();
    match sizes.as_slice() {
        [] => None,
        [(size, _)] => Some(Blocks::Fixed(*size)),
        _ => Some(Blocks::Split(sizes)),
    }
}

fn direction(text: &str, base: Base) -> Result<Direction, Expected> {
    let (word, behind) = text.split_once(':').map_or((text, None), |(word, behind)| (word, Some(behind)));
    let (reads, writes, random) = match word {
        "read" => (true, false, false),
        "write" => (false, true, false),
        "rw" | "readwrite" => (true, true, false),
        "randread" => (true, false, true),
        "randwrite" => (false, true, true),
        "randrw" => (true, true, true),
        _ if word.contains("trim") => {
            return Err("read, write, rw, randread, randwrite or randrw: files are not trimmed");
        }
        _ => return Err("read, write, rw, randread, randwrite or randrw"),
    };
    let (mut gap, mut burst) = (0, 1);
    match behind {
        None => {}
        Some(behind) if random => {
            let number = value::number(behind, base).and_then(|number| u32::try_from(number).ok());
            burst = number.filter(|number| *number > 0).ok_or("a number of operations from each place, such as 8")?;
        }
        Some(behind) => {
            let (sign, size) = behind.strip_prefix('-').map_or((1, behind), |size| (-1, size));
            let bytes = value::number(size, base).filter(|bytes| *bytes <= MAXIMUM_GAP);
            gap = sign * bytes.ok_or("a size to skip or, with `-`, to go back, such as 8k or -8k")?.cast_signed();
        }
    }
    Ok(Direction { reads, writes, random, gap, burst })
}

/// Names with `:` between them, where none is meant by a backslash before it.
fn separated(text: &str) -> Option<Vec<String>> {
    let mut names = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        match c {
            '\\' if !escaped => escaped = true,
            ':' if !escaped => names.push(String::new()),
            c => {
                escaped = false;
                names.last_mut().expect("one is always there").push(c);
            }
        }
    }
    let fits = |name: &String| !name.is_empty() && !name.contains('\0');
    names.iter().all(fits).then_some(names)
}

/// `0,2-3` as a list.
fn cpus(text: &str) -> Option<Vec<u32>> {
    /// What the kernel's sets of CPUs hold.
    const MOST: u32 = 1024;
    let mut all = Vec::new();
    for part in text.split([',', ':']).map(str::trim) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (low.parse::<u32>().ok()?, high.parse::<u32>().ok()?);
        if low > high || high >= MOST {
            return None;
        }
        all.extend(low..=high);
    }
    all.sort_unstable();
    all.dedup();
    Some(all)
}

//! Sections to jobs: each option's value, and what is refused.

use super::{
    ends::MOST_PHASES,
    files::is_device,
    job::{Blocks, Direction, Engine, Job, Offsets, Trims},
    options::{self, Check, Treatment},
    text::{Findings, Section, Setting, Word},
    value::{self, Base, Expected, Value},
};
use crate::diagnostic::Diagnostic;
use fstone_model::workload::FailedPart;
use std::cell::Cell;

/// The smallest block of a device.
const SECTOR: u64 = 512;

/// Words of `rw` and `ioengine`, for whoever mistypes them.
const DIRECTIONS: &[&str] = &[
    "read",
    "write",
    "rw",
    "readwrite",
    "randread",
    "randwrite",
    "randrw",
    "trim",
    "randtrim",
    "trimwrite",
    "randtrimwrite",
];
pub(super) const ENGINES: &[&str] = &[
    "psync",
    "sync",
    "vsync",
    "pvsync",
    "pvsync2",
    "libaio",
    "posixaio",
    "io_uring",
    "mmap",
    "falloc",
    "splice",
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

/// The jobs of sections, each with what the `[global]` sections before it in its file say.
pub(super) fn jobs(sections: &[Section], variable: &Variable<'_>, findings: &mut Findings) -> Vec<Job> {
    let mut global: Vec<&Section> = Vec::new();
    let mut jobs = Vec::new();
    for section in sections {
        if section.is_global() {
            global.push(section);
            continue;
        }
        let of_all: Vec<&Setting> =
            global.iter().filter(|of| of.holds_in(section.file)).flat_map(|of| &of.settings).collect();
        let own: Vec<&Setting> = section.settings.iter().collect();
        let mut job = Job::new(section.name.text.clone());
        job.section = Some((section.name.source.clone(), section.name.span));
        job.file = section.file.unwrap_or(0);
        let mut reader = Reader { job, variable, findings };
        let all = || of_all.iter().chain(&own);
        // What `k` means holds for the whole job, wherever it is said.
        if let Some(base) = all().rfind(|setting| setting.key.text == "kb_base") {
            reader.setting(base);
        }
        // A name that all sections have is none's.
        for setting in of_all.iter().copied().filter(|setting| setting.key.text != "name").chain(own.iter().copied()) {
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
    variable: &'r Variable<'r>,
    findings: &'r mut Findings,
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

fn checked(check: Check, value: &Value<'_>) -> Result<(), Expected> {
    match check {
        Check::Flag => value.flag().map(drop),
        Check::Number => value.number().map(drop),
        Check::Word(words) if !words.contains(&value.text()) => Err("another word; see fio's manual"),
        Check::Any | Check::Word(_) => Ok(()),
    }
}

impl Reader<'_> {
    fn setting(&mut self, setting: &Setting) {
        let key = &setting.key;
        let Some(option) = options::find(&key.text) else {
            let diagnostic = Diagnostic::error(key.span, format!("unknown option `{}`", key.text));
            self.findings.at(&key.source, options::meant(diagnostic, &key.text, []));
            return;
        };
        let text_of = setting.value.as_ref().map(|value| value.text.as_str());
        if let Treatment::Refused(nothing, why) = option.treatment {
            if text_of.is_some_and(|text| nothing.contains(&text)) {
                return;
            }
            let span =
                setting.value.as_ref().map_or(key.span, |value| crate::Span::new(key.span.start, value.span.end));
            let what = match nothing {
                [] | ["0"] => format!("`{}` is not supported", key.text),
                _ => format!("`{}` is only supported as {}", key.text, nothing.join(" or ")),
            };
            let diagnostic =
                Diagnostic::error(span, what).note(why).help("leave it out; docs/formats/fio.md lists all options");
            self.findings.at(&key.source, diagnostic);
            return;
        }
        let place = setting.value.as_ref().unwrap_or(key);
        let mut unset = Vec::new();
        let text = text_of.map(|text| {
            value::expanded(text, |name| {
                let value = (self.variable)(name);
                if value.is_none() {
                    unset.push(name.to_owned());
                }
                value
            })
        });
        let value = Value { text: text.as_deref(), place, base: Base { kilo: self.job.kilo }, why: Cell::default() };
        let read = match option.treatment {
            Treatment::Flag(of) => value.flag().map(|flag| *of(&mut self.job) = flag),
            Treatment::Taken(take) => take(&mut self.job, &value),
            Treatment::Engine => self.engine(value.text(), place),
            Treatment::None(check, why) => {
                self.findings.note(key, format!("`{}` has no effect", key.text), why);
                checked(check, &value)
            }
            Treatment::Refused(..) => Ok(()),
        };
        if let Err(expected) = read {
            let known = match option.name {
                "readwrite" => DIRECTIONS,
                "ioengine" => ENGINES,
                _ => &[],
            };
            let mut diagnostic = Diagnostic::error(place.span, format!("not a value for `{}`", key.text))
                .label(format!("expected {expected}"))
                .did_you_mean(&place.text, known.iter().copied());
            if let Some(why) = value.why.take().filter(|_| unset.is_empty()) {
                diagnostic = diagnostic.note(why);
            }
            self.findings.at(&place.source, with_unset(diagnostic, &unset));
        } else if !unset.is_empty() {
            let what = format!("`{}` has a variable without a value", key.text);
            self.findings.at(&place.source, with_unset(Diagnostic::warning(place.span, what), &unset));
        }
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
            "falloc" => Engine::Falloc,
            "splice" => Engine::Splice,
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
                    "psync, libaio, io_uring, mmap, falloc, splice, null, filecreate, filestat, filedelete, filerename, dircreate, dirstat or dirdelete",
                );
            }
        };
        Ok(())
    }

    fn finish(mut self, section: &Word) -> Job {
        let job = &mut self.job;
        job.end_fsync |= job.close_fsync;
        job.direct |= job.atomic;
        job.repeats |= job.all_repeat;
        if job.zeroes && job.pattern.is_empty() {
            job.pattern = vec![0];
        }
        for prefix in job.logs.iter_mut().flatten().filter(|prefix| prefix.is_empty()) {
            prefix.clone_from(&job.name);
        }
        if job.time_based && job.runtime.is_none() {
            let why = "the job ends when it has moved its size, as with fio; add runtime=, such as runtime=60s";
            self.findings.note(section, "time_based has no effect without a runtime", why);
            job.time_based = false;
        }
        let ranges = job.block_ranges.iter().zip(&mut job.blocks).filter(|_| job.odd_blocks);
        for (range, blocks) in ranges.filter_map(|(range, blocks)| Some(((*range)?, blocks))) {
            *blocks = value::odd_between(range);
        }
        // Those of a range have what is left of the larger.
        let splits = job.block_ranges.iter().zip(&mut job.blocks).filter(|(range, _)| range.is_none());
        splits.filter(|_| !job.odd_blocks).for_each(|(_, blocks)| blocks.round_down());
        if let (strided, bytes @ 1.., range, skip) = job.zones {
            let in_order = strided && job.direction.reads != job.direction.writes;
            let block = job.blocks[usize::from(job.direction.writes)].smallest();
            let part = range.unwrap_or(bytes).checked_add(skip).filter(|part| *part >= bytes && *part < 1 << 50);
            let run = u32::try_from(bytes / block).ok().filter(|run| *run > 0 && bytes.is_multiple_of(block));
            match part.zip(run) {
                Some((part, run)) if in_order && !job.direction.random && job.direction.gap == 0 => {
                    (job.direction.gap, job.direction.run) = ((part - bytes) as i64, run);
                }
                _ => {
                    let (what, cure) = if !strided {
                        ("a zonesize without a zonemode", "give it zonemode=strided, or leave zonesize out")
                    } else if part.zip(run).is_none() {
                        let cure = "give it a zonesize of whole blocks, no more than zonerange";
                        ("zonemode=strided with zones of parts of blocks, or larger than zonerange", cure)
                    } else {
                        ("zonemode=strided of a job at random places or of a mix", "give it rw=read or rw=write")
                    };
                    self.findings.error(section, what, cure);
                }
            }
        }
        if job.verify_only {
            let whole = job.io_size.is_none() && job.number_ios.is_none() && job.direction.gap == 0;
            let mapped = job.distribution == Offsets::Uniform && !job.repeats_blocks;
            let once =
                !job.direction.random || mapped && job.direction.burst <= 1 && matches!(job.random_percent[1], 0 | 100);
            if !job.do_verify {
                let what = "verify_only with do_verify=0, which reads nothing";
                self.findings.error(section, what, "leave out one of them");
            }
            if !(job.verify && job.direction.writes && !job.direction.reads && whole && once) {
                let cure = "give it verify= and the rw=write or randwrite that wrote the files, with a random map, without io_size, a number behind rw= or percentage_random";
                self.findings.error(section, "verify_only of a job that does not write each block once", cure);
            }
            job.direction = Direction { reads: true, writes: false, random: false, ..job.direction };
            job.blocks[0] = job.blocks[1].clone();
            (job.loops, job.runtime, job.time_based) = (1, None, false);
        }
        // As fio says of itself; the usual alignment is none.
        let usual = |(align, blocks): (&Option<u64>, &Blocks)| align.is_none_or(|align| align == blocks.smallest());
        match job.align.iter().zip(&job.blocks).all(usual) {
            true => job.align = [None; 2],
            false => job.repeats_blocks = true,
        }
        if job.direction.burst > 1 && job.distribution != Offsets::Uniform {
            let cure = "leave out the number behind rw= or random_distribution";
            self.findings.error(
                section,
                "bursts of blocks in order, which begin anywhere, with a random_distribution",
                cure,
            );
        }
        if job.append {
            job.loops = 1;
        }
        if job.latency_target.is_some() && job.latency_window.is_zero() {
            let cure = "say how long each queue depth is tried, such as latency_window=5s";
            self.findings.error(section, "latency_target without a latency_window", cure);
        }
        let files = job.files.max(job.filenames.len() as u64);
        if job.engine == Engine::Falloc && (job.direction.reads || job.verify) {
            let cure = "give rw=write or randwrite, without verify: what is allocated has no data to be read";
            self.findings.error(section, "ioengine=falloc with reads", cure);
        }
        if job.fdatasync_every > 0 && job.range.1 > 0 {
            self.findings.error(section, "fdatasync beside sync_file_range", "give one of the two to a job");
        }
        let fits = match job.engine {
            Engine::FileCreate => true,
            engine => !engine.of_files() && !job.direction.reads && job.file_size.is_none_or(|(low, high)| low == high),
        };
        let fits = fits && job.direction.gap == 0;
        let other_end = job.runtime.is_some() || job.number_ios.is_some() || job.io_size.is_some() || job.exit_all;
        if job.removes_between() && (!fits || other_end || job.latency_target.is_some() || job.loops > MOST_PHASES) {
            let cure = "give it at most 100 loops that only write files of one size, and that end with them";
            self.findings.error(section, "unlink_each_loop with other than whole loops of writes", cure);
        }
        let fixed = matches!(job.blocks[1], Blocks::Fixed(_)) && job.file_size.is_none_or(|(low, high)| low == high);
        let in_order = job.direction.gap == 0 && job.direction.burst == 1 && job.random_percent[1] == 100;
        let mapped = !job.direction.random || job.distribution == Offsets::Uniform && !job.repeats_blocks;
        let ends = job.loops == 1 && job.runtime.is_none() && job.io_size.is_none() && job.ramp.is_zero() && !job.fills;
        let whole = fixed && in_order && mapped && ends && files == 1 && !job.direction.reads && !job.is_paced();
        if job.in_backlog() && !(whole && [0, job.backlog].contains(&job.backlog_batch)) {
            let cure = "give it rw=write or randwrite, one file that is written once, one block size, no rate, and no other verify_backlog_batch";
            self.findings.error(
                section,
                "verify_backlog with other than one pass of writes, all of which are read back",
                cure,
            );
        }
        if job.in_backlog() && job.continues_in(FailedPart::Write) {
            let cure = "leave out one: a block whose write failed would be read back as if it were written";
            self.findings.error(section, "verify_backlog beside continue_on_error or ignore_error of writes", cure);
        }
        let trims = job.direction.trims;
        if let (Trims::Only, Some(block)) = (trims, job.trim_block) {
            job.blocks[1] = Blocks::Fixed(block);
        }
        let one_block = job.blocks[1] == Blocks::Fixed(job.trim_block.unwrap_or(job.blocks[1].smallest()));
        let again = trims == Trims::First && !mapped;
        if trims != Trims::None
            && (!one_block || !in_order || again || files != 1 || job.verify || job.file_size.is_some())
        {
            let cure = "give it one file, one block size and size=, no verify, and with trimwrite no norandommap or random_distribution";
            self.findings.error(
                section,
                "trims of several files, of blocks of several sizes, or of places that are drawn",
                cure,
            );
        }
        let on_device = !job.filenames.is_empty() && job.filenames.iter().all(|name| is_device(name));
        if trims != Trims::None && job.engine != Engine::Falloc && job.engine != Engine::Null && !on_device {
            let cure = "as in fio, only devices are trimmed: give filename=DEVICE (and --allow-destroy DEVICE), or ioengine=falloc to free blocks of files";
            self.findings.error(section, "trims of files", cure);
        }
        let judged =
            [job.least_bytes, job.least_operations].iter().flatten().any(Option::is_some) || job.steady.is_some();
        if trims != Trims::None && judged {
            let cure = "leave them out: the rate of trims is not judged";
            self.findings.error(section, "rate_min, rate_iops_min or steadystate of trims", cure);
        }
        if job.rate_bytes != [None; 3] && job.rate_operations != [None; 3] {
            self.findings.error(section, "rate beside rate_iops", "give one of the two, as in fio");
        }
        let least = [(job.least_bytes, job.rate_bytes), (job.least_operations, job.rate_operations)];
        let above = |(least, rate): &(Option<u64>, Option<u64>)| {
            rate.is_some_and(|rate| least.is_some_and(|least| least > rate))
        };
        if least.iter().any(|(least, rates)| least.iter().copied().zip(rates.iter().copied()).any(|pair| above(&pair)))
        {
            self.findings.error(
                section,
                "a least rate above the rate itself",
                "give a smaller rate_min or rate_iops_min",
            );
        }
        if job.steady.is_some() && (job.steady_window.as_secs() == 0 || job.engine.of_files()) {
            let why =
                "it is judged over so many seconds; add ss_dur=, such as ss_dur=60s, to a job that reads or writes";
            self.findings.note(section, "steadystate has no effect without a steadystate_duration", why);
            job.steady = None;
        }
        if job.steady.is_some() && job.group_reporting && job.clones > 1 {
            let cure = "leave group_reporting out: the rate of each clone is judged";
            self.findings.error(section, "steadystate of clones that are reported together", cure);
        }
        let alone = job.direction.writes && !job.direction.reads && !job.direction.random && !job.verify && files == 1;
        if job.fills && job.size.is_none() && !alone {
            let cure = "give it rw=write, one file and no verify, or a size";
            self.findings.error(section, "fill_device without a size, of more than one file written in order", cure);
        }
        let odd = |blocks: &Blocks| !blocks.sizes().all(|bytes| bytes.is_multiple_of(SECTOR));
        let used = job.blocks.iter().zip([job.direction.reads, job.direction.writes]);
        if job.direct
            && !job.engine.of_files()
            && job.engine != Engine::Null
            && used.clone().any(|(blocks, used)| used && odd(blocks))
        {
            let cure = "give bs and its like multiples of 512, or more if the device has larger blocks, or direct=0";
            self.findings.error(section, "direct=1 with blocks that no device can read or write by itself", cure);
        }
        if let (Some(name), Some((source, span))) = (&job.wait_for, &job.waits_at)
            && *name == job.name
        {
            let cure = "name another job, or leave wait_for out";
            let diagnostic = Diagnostic::error(*span, format!("`{name}` waits for itself")).help(cure);
            self.findings.at(source, diagnostic);
        }
        if matches!(job.engine, Engine::Psync | Engine::Mmap | Engine::Falloc | Engine::Splice) {
            job.depth = 1;
        }
        self.job
    }
}

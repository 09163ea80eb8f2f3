//! A job: the options of a section and of the `[global]` ones before it, with their values.

use crate::Source;
use fstone_model::workload::{FailedPart, Rate, Steady, Tolerated, Zones};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The section's name, or the section's own `name`.
    pub name: String,
    /// What is printed of it with the results.
    pub description: Option<String>,
    /// The section's name, after which its files are called.
    pub(super) section_name: String,
    pub(super) section: Option<(Source, crate::Span)>,
    /// The number of its job file.
    pub(super) file: usize,
    /// What `k` means: 1024, or 1000.
    pub(super) kilo: u64,
    pub engine: Engine,
    pub direction: Direction,
    /// Block sizes of reads and of writes.
    pub blocks: [Blocks; 2],
    /// Where these are ranges, and whether the sizes in them are any, and not multiples of the smallest.
    pub(super) block_ranges: [Option<(u64, u64)>; 2],
    pub(super) odd_blocks: bool,
    pub(super) trim_block: Option<u64>,
    /// Offsets of reads and of writes are multiples of this, if it is not the block size.
    pub align: [Option<u64>; 2],
    pub size: Option<Amount>,
    /// How much is moved, if it is not the size.
    pub io_size: Option<Amount>,
    pub file_size: Option<(u64, u64)>,
    pub offset: Option<Amount>,
    /// How much further it begins for each further clone.
    pub offset_increment: Option<Amount>,
    /// What an offset that is a share is rounded up to, if it is not the block size.
    pub offset_align: Option<u64>,
    pub number_ios: Option<u64>,
    pub files: u64,
    pub service: Service,
    /// Operations on a file before another one comes.
    pub service_operations: u64,
    /// Files that may be open at once.
    pub(super) open_files: Option<u64>,
    /// Whether files are made one by one, when they are opened.
    pub(super) create_on_open: bool,
    /// Names of files, if they are not made up.
    pub filenames: Vec<String>,
    /// Where files are: each clone in one of them, in turn.
    pub directories: Vec<String>,
    pub format: String,
    /// Whether zones are used, the size of one, what each has of the file if it is not that, and what is left out behind it.
    pub(super) zones: (bool, u64, Option<u64>, u64),
    pub direct: bool,
    pub sync: Sync,
    pub depth: u32,
    pub polled: bool,
    /// Whether data leaves the page cache again.
    pub uncached: bool,
    /// Whether what would have to wait fails.
    pub no_wait: bool,
    /// Whether writes are never torn.
    pub atomic: bool,
    /// Requests that are submitted together; all that the queue has room for without a number.
    pub submit: Option<u32>,
    /// The fewest requests that are taken back when the queue is full.
    pub complete_least: u32,
    /// At most so many are reaped at once, if that was said.
    pub(super) complete_most: Option<u32>,
    /// How many are left in flight then.
    pub low: Option<u32>,
    pub clones: u32,
    pub loops: u64,
    pub runtime: Option<Duration>,
    /// Whether it runs that long whatever it has done.
    pub time_based: bool,
    pub ramp: Duration,
    /// The least and the most; each clone's own is drawn.
    pub delay: [Duration; 2],
    pub stonewall: bool,
    /// Whether the jobs that run beside it end when it does.
    pub exit_all: bool,
    /// Which jobs these are.
    pub exit_what: Ends,
    /// Whether an error of its ends all jobs.
    pub ends_all: bool,
    /// Whether its random numbers are the same in each run.
    pub repeats: bool,
    pub(super) all_repeat: bool,
    /// What they follow from then.
    pub seed: u64,
    pub wait_for: Option<String>,
    pub(super) waits_at: Option<(Source, crate::Span)>,
    pub group_reporting: bool,
    pub new_group: bool,
    /// An fsync after so many writes; 0 for none.
    pub fsync_every: u64,
    /// An fdatasync after so many writes, where no fsync is due; 0 for none.
    pub fdatasync_every: u64,
    /// sync_file_range with these flags after so many writes; 0 for none.
    pub range: (u32, u64),
    pub end_fsync: bool,
    pub close_fsync: bool,
    /// Percent of a mix that are reads.
    pub read_percent: u32,
    /// Percent of reads and of writes that are random.
    pub random_percent: [u32; 2],
    pub distribution: Offsets,
    /// Whether a block may come again before all were there.
    pub repeats_blocks: bool,
    /// Of reads, of writes and of trims.
    pub rate_bytes: [Option<u64>; 3],
    pub rate_operations: [Option<u64>; 3],
    pub poisson: bool,
    /// What reads and writes have to reach in each interval.
    pub least_bytes: [Option<u64>; 3],
    pub least_operations: [Option<u64>; 3],
    pub least_every: Duration,
    /// When its rate is steady.
    pub steady: Option<Steady>,
    pub steady_window: Duration,
    pub steady_ramp: Duration,
    /// A pause after each operation, or after so many, or that long after the last.
    pub think: Duration,
    pub think_every: Option<u64>,
    pub think_after: Option<Duration>,
    /// How much of it is spent computing.
    pub think_spin: Duration,
    /// The latency to keep with as many requests in flight as can be.
    pub latency_target: Option<Duration>,
    /// How long each queue depth is tried for that.
    pub latency_window: Duration,
    /// Percent of the requests that have to keep it.
    pub latency_percent: f64,
    /// Whether the job goes on when the depth is found.
    pub latency_run: bool,
    pub cpus: Vec<u32>,
    /// Whether each clone has one of them.
    pub split_cpus: bool,
    pub verify: bool,
    pub do_verify: bool,
    /// Whether what an earlier run wrote is read back, and nothing is written.
    pub verify_only: bool,
    /// Writes after which what was written is read back; 0 for once, at the end.
    pub backlog: u64,
    /// How much is read back then, if that was said.
    pub(super) backlog_batch: u64,
    /// Percent that compress away.
    pub compress_percent: u32,
    pub pattern: Vec<u8>,
    /// Whether it writes zeroes, unless there is a pattern.
    pub(super) zeroes: bool,
    pub dedupe_percent: u32,
    /// Whether cached data of its files is dropped first.
    pub invalidate: bool,
    pub pre_read: bool,
    pub hint: Hint,
    /// Whether files that it only writes have data before that.
    pub overwrite: bool,
    /// Whether files that it only writes have blocks before that.
    pub allocate: bool,
    /// Whether their size stays 0 until they are written.
    pub grows: bool,
    pub create_only: bool,
    pub unlink: bool,
    pub unlink_each_loop: bool,
    /// Whether it begins where its files end.
    pub append: bool,
    /// Whether it writes until there is no room.
    pub fills: bool,
    /// Whether it goes on after some errors of reads, of writes and of verification.
    pub continues: [bool; 3],
    /// After which, if it names them; after EIO and failed verifications otherwise.
    pub(super) ignored: [Vec<i32>; 3],
    pub percentiles: Vec<f64>,
    pub percentiles_of_completion: bool,
    pub percentiles_of_all: bool,
    /// The log that it carries out in place of all else; of several, each clone has one, in turn.
    pub iologs: Vec<String>,
    /// Where its calls are taken down.
    pub call_log: Option<String>,
    /// Whether calls of a log do not wait for their times.
    pub no_stall: bool,
    /// How fast a log is carried out, percent.
    pub replay_percent: u64,
    /// The file in place of those that a log names.
    pub redirect: Option<String>,
    /// Prefixes of the files with bandwidth, latency and IOPS over time.
    pub logs: [Option<String>; 3],
    pub log_each: bool,
    pub log_interval: Option<Duration>,
    /// The options as they were written, for JSON.
    pub written: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// One call after the other.
    Psync,
    Libaio,
    IoUring,
    Mmap,
    /// Its writes allocate blocks.
    Falloc,
    Splice,
    Null,
    FileCreate,
    FileStat,
    FileDelete,
    FileRename,
    DirectoryCreate,
    DirectoryStat,
    DirectoryDelete,
}

impl Engine {
    pub const fn of_files(self) -> bool {
        matches!(self, Self::FileCreate | Self::FileStat | Self::FileDelete | Self::FileRename) || self.of_directories()
    }

    /// Whether it makes the files or directories that it works on.
    pub(super) const fn makes(self) -> bool {
        matches!(self, Self::FileCreate | Self::DirectoryCreate)
    }

    pub const fn of_directories(self) -> bool {
        matches!(self, Self::DirectoryCreate | Self::DirectoryStat | Self::DirectoryDelete)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Direction {
    pub reads: bool,
    /// Whether it writes or trims.
    pub writes: bool,
    pub random: bool,
    pub trims: Trims,
    /// What stands behind it: of sequential operations, bytes between the end of one and the begin of the next.
    pub gap: i64,
    /// How many blocks are between two gaps.
    pub run: u32,
    /// Of random operations, how many follow each other from each place.
    pub burst: u32,
}

impl Direction {
    pub(super) const READS: Self =
        Self { reads: true, writes: false, random: false, trims: Trims::None, gap: 0, run: 1, burst: 1 };
}

/// What is trimmed: nothing, all in place of being written, or each block before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trims {
    None,
    Only,
    First,
}

/// The jobs that end with one that has `exitall`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    Group,
    /// All that run then.
    Running,
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocks {
    Fixed(u64),
    /// Uniform, in steps of the smaller.
    Range(u64, u64),
    /// By weight.
    Split(Vec<(u64, u32)>),
}

impl Blocks {
    pub fn smallest(&self) -> u64 {
        match self {
            Self::Fixed(bytes) | Self::Range(bytes, _) => *bytes,
            Self::Split(sizes) => sizes.iter().map(|(bytes, _)| *bytes).min().unwrap_or(1),
        }
    }

    pub(super) fn sizes(&self) -> impl Iterator<Item = u64> {
        let (low, high, split) = match self {
            Self::Fixed(bytes) => (*bytes, None, &[][..]),
            Self::Range(low, high) => (*low, Some(*high), &[][..]),
            Self::Split(sizes) => (sizes.first().map_or(1, |(bytes, _)| *bytes), None, &sizes[..]),
        };
        std::iter::once(low).chain(high).chain(split.iter().map(|(bytes, _)| *bytes))
    }

    /// Makes all sizes of a split multiples of the smallest.
    pub(super) fn round_down(&mut self) {
        let smallest = self.smallest();
        if let Self::Split(sizes) = self {
            sizes.iter_mut().for_each(|(bytes, _)| *bytes -= *bytes % smallest);
            if sizes.iter().all(|(bytes, _)| *bytes == smallest) {
                *self = Self::Fixed(smallest);
            }
        }
    }

    fn mean(&self) -> f64 {
        match self {
            Self::Fixed(bytes) => *bytes as f64,
            // As they are drawn: multiples of the smaller.
            Self::Range(low, high) => low.midpoint(high - high % low) as f64,
            Self::Split(sizes) => {
                let weights: f64 = sizes.iter().map(|(_, weight)| f64::from(*weight)).sum();
                sizes.iter().map(|(bytes, weight)| *bytes as f64 * f64::from(*weight)).sum::<f64>() / weights
            }
        }
    }

    pub fn largest(&self) -> u64 {
        match self {
            Self::Fixed(bytes) | Self::Range(_, bytes) => *bytes,
            Self::Split(sizes) => sizes.iter().map(|(bytes, _)| *bytes).max().unwrap_or(1),
        }
    }
}

fn parts(first: f64, second: f64) -> [u32; 2] {
    const ALL: f64 = 10_000.0;
    let first = (ALL * first / (first + second)).round().clamp(1.0, ALL - 1.0);
    [first as u32, (ALL - first) as u32]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    Bytes(u64),
    Percent(u64),
}

impl Amount {
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (u128::from(whole) * u128::from(percent) / 100) as u64,
        }
    }
}

/// What the kernel is told of a job's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    None,
    /// What `rw` says.
    ByType,
    Sequential,
    Random,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Each in turn, for one block.
    RoundRobin,
    /// Each to its end.
    Sequential,
    Random,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    None,
    Sync,
    Dsync,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Offsets {
    Uniform,
    Zipf(f64),
    /// Normal around the middle, the deviation as percent of the space.
    Normal(f64),
    Pareto(f64),
    /// By zones: percent of the operations and of the space.
    Zoned(Zones),
    /// By zones: parts of the operations, and bytes; the last may be the rest of the file.
    ZonedBytes(Vec<(u32, Option<u64>)>),
}

const PARTS: [FailedPart; 3] = [FailedPart::Read, FailedPart::Write, FailedPart::Verify];
pub(super) const EIO: i32 = 5;
pub(super) const ENODATA: i32 = 61;
pub(super) const EILSEQ: i32 = 84;

impl Job {
    /// The errors after which it goes on.
    pub fn goes_on_after(&self) -> Vec<Tolerated> {
        let mut all = Vec::new();
        for (part, ignored) in PARTS.into_iter().zip(&self.ignored).filter(|(part, _)| self.continues_in(*part)) {
            let usual = [EIO, EILSEQ];
            let ignored = if ignored.is_empty() { &usual[..] } else { ignored };
            match part {
                FailedPart::Verify if ignored.contains(&EILSEQ) => all.push(Tolerated { part, errno: 0 }),
                FailedPart::Verify => {}
                _ => all.extend(ignored.iter().map(|errno| Tolerated { part, errno: *errno })),
            }
            // A read behind a file's end is EIO to fio.
            if part == FailedPart::Read && ignored.contains(&EIO) {
                all.push(Tolerated { part, errno: ENODATA });
            }
        }
        all
    }

    pub(super) fn continues_in(&self, part: FailedPart) -> bool {
        PARTS.into_iter().zip(self.continues).any(|(of, continues)| continues && of == part)
    }

    /// A job without any option, as fio's manual has the defaults.
    pub(super) fn new(name: String) -> Self {
        Self {
            section_name: name.clone(),
            name,
            description: None,
            section: None,
            file: 0,
            kilo: 1024,
            engine: Engine::Psync,
            direction: Direction::READS,
            blocks: [Blocks::Fixed(4096), Blocks::Fixed(4096)],
            block_ranges: [None; 2],
            odd_blocks: false,
            trim_block: None,
            align: [None; 2],
            size: None,
            io_size: None,
            file_size: None,
            offset: None,
            offset_increment: None,
            offset_align: None,
            number_ios: None,
            files: 1,
            service: Service::RoundRobin,
            service_operations: 1,
            open_files: None,
            create_on_open: false,
            filenames: Vec::new(),
            directories: Vec::new(),
            format: DEFAULT_FORMAT.into(),
            zones: (false, 0, None, 0),
            direct: false,
            sync: Sync::None,
            depth: 1,
            polled: false,
            uncached: false,
            no_wait: false,
            atomic: false,
            submit: Some(1),
            complete_least: 1,
            complete_most: None,
            low: None,
            clones: 1,
            loops: 1,
            runtime: None,
            time_based: false,
            ramp: Duration::ZERO,
            delay: [Duration::ZERO; 2],
            stonewall: false,
            exit_all: false,
            exit_what: Ends::Group,
            ends_all: false,
            repeats: true,
            all_repeat: false,
            seed: 0,
            wait_for: None,
            waits_at: None,
            group_reporting: false,
            new_group: false,
            fsync_every: 0,
            fdatasync_every: 0,
            range: (0, 0),
            end_fsync: false,
            close_fsync: false,
            read_percent: 50,
            random_percent: [100; 2],
            distribution: Offsets::Uniform,
            repeats_blocks: false,
            rate_bytes: [None; 3],
            rate_operations: [None; 3],
            poisson: false,
            least_bytes: [None; 3],
            least_operations: [None; 3],
            least_every: Duration::from_secs(1),
            steady: None,
            steady_window: Duration::ZERO,
            steady_ramp: Duration::ZERO,
            think: Duration::ZERO,
            think_every: None,
            think_after: None,
            think_spin: Duration::ZERO,
            latency_target: None,
            latency_window: Duration::ZERO,
            latency_percent: 100.0,
            latency_run: false,
            cpus: Vec::new(),
            split_cpus: false,
            verify: false,
            do_verify: true,
            verify_only: false,
            backlog: 0,
            backlog_batch: 0,
            compress_percent: 0,
            pattern: Vec::new(),
            zeroes: false,
            dedupe_percent: 0,
            invalidate: true,
            pre_read: false,
            hint: Hint::ByType,
            overwrite: false,
            allocate: true,
            grows: false,
            create_only: false,
            unlink: false,
            unlink_each_loop: false,
            append: false,
            fills: false,
            continues: [false; 3],
            ignored: Default::default(),
            percentiles: DEFAULT_PERCENTILES.to_vec(),
            percentiles_of_completion: true,
            percentiles_of_all: false,
            iologs: Vec::new(),
            call_log: None,
            no_stall: false,
            replay_percent: 100,
            redirect: None,
            logs: [None, None, None],
            log_each: true,
            log_interval: None,
            written: Vec::new(),
        }
    }

    /// How many of so many files it has open at once, if it closes those that are done.
    pub(super) fn opened_of(&self, files: u64) -> Option<u64> {
        let open = self.open_files.unwrap_or(files).min(files);
        (files > 1 && (self.create_on_open || open < files)).then_some(open)
    }

    /// Whether its files are removed between its loops; with time_based there are none.
    pub(super) fn removes_between(&self) -> bool {
        self.unlink_each_loop && self.loops > 1 && !self.time_based
    }

    /// Whether it reads back what it wrote while it still writes.
    pub(super) fn in_backlog(&self) -> bool {
        self.backlog > 0 && self.verify && self.do_verify && self.direction.writes && !self.engine.of_files()
    }

    pub(super) fn is_paced(&self) -> bool {
        [self.rate_operations, self.rate_bytes].iter().flatten().any(Option::is_some)
    }

    /// How often it reads and how often it writes, as weights, where no rate holds it back.
    pub(super) fn read_and_write_weights(&self) -> [u32; 2] {
        match (self.direction.reads, self.direction.writes) {
            (true, true) => [self.read_percent, 100 - self.read_percent],
            (reads, _) => [100 * u32::from(reads), 100 * u32::from(!reads)],
        }
    }

    /// The rate of reads, of writes or of trims. As in fio, what counts operations and what counts bytes are one another's measure by the smallest
    /// block, however large blocks are on average.
    pub(super) fn rate(&self, direction: usize) -> Option<Rate> {
        let blocks = &self.blocks[direction.min(1)];
        // What is trimmed is not moved, nor is a file that is made; and what comes at random is operations.
        let counts = self.poisson || self.direction.trims != Trims::None || self.engine.of_files();
        match (self.rate_operations[direction], self.rate_bytes[direction]) {
            (Some(operations), _) if counts || matches!(blocks, Blocks::Fixed(_)) => {
                Some(Rate::Operations(operations as f64))
            }
            (Some(operations), _) => Some(Rate::Bytes(operations.saturating_mul(blocks.smallest()))),
            (None, Some(bytes)) if counts => Some(Rate::Operations(bytes as f64 / blocks.smallest() as f64)),
            (None, bytes) => bytes.map(Rate::Bytes),
        }
    }

    /// How often it reads and how often it writes as it is expected to be: rates of both decide it, if it does both.
    pub(super) fn expected_weights(&self) -> [u32; 2] {
        let weights = self.read_and_write_weights();
        let operations = |direction: usize| match self.rate(direction)? {
            Rate::Operations(operations) => Some(operations),
            Rate::Bytes(bytes) => Some(bytes as f64 / self.blocks[direction].mean()),
        };
        match (operations(0), operations(1)) {
            (Some(reads), Some(writes)) if !weights.contains(&0) => parts(reads, writes),
            _ => weights,
        }
    }

    pub(super) fn directory(&self, clone: u32) -> &str {
        // As in fio, names that are given are all in the first.
        let turn = if self.filenames.is_empty() { clone as usize } else { 0 };
        self.directories.get(turn % self.directories.len().max(1)).map_or("", String::as_str)
    }

    pub(super) fn file_name(&self, clone: u32, file: u64) -> String {
        self.format
            .replace("$jobname", &self.section_name)
            .replace("$jobnum", &clone.to_string())
            .replace("$filenum", &file.to_string())
            .replace("$clientuid", "localhost")
    }
}

pub(super) const DEFAULT_FORMAT: &str = "$jobname.$jobnum.$filenum";

pub(super) const DEFAULT_PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

//! A job: the options of a section and of the `[global]` ones before it, with their values.

use crate::Source;
use fstone_model::workload::Zones;
use std::time::Duration;

/// A job as it is to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The section's name, or the section's own `name`.
    pub name: String,
    /// The section's name, after which its files are called.
    pub(super) section_name: String,
    /// Where its section begins.
    pub(super) section: Option<(Source, crate::Span)>,
    /// What does the I/O.
    pub engine: Engine,
    /// `rw`.
    pub direction: Direction,
    /// Block sizes of reads and of writes.
    pub blocks: [Blocks; 2],
    /// Offsets of reads and of writes are multiples of this, if it is not the block size.
    pub align: [Option<u64>; 2],
    /// Total size of the files.
    pub size: Option<Amount>,
    /// How much is moved, if it is not the size.
    pub io_size: Option<Amount>,
    /// Size of each file.
    pub file_size: Option<(u64, u64)>,
    /// Where in each file I/O begins.
    pub offset: Option<Amount>,
    /// How much further it begins for each further clone.
    pub offset_increment: Option<Amount>,
    /// What an offset that is a share is rounded up to, if it is not the block size.
    pub offset_align: Option<u64>,
    /// The most reads and writes.
    pub number_ios: Option<u64>,
    /// How many files.
    pub files: u64,
    /// How a file is chosen.
    pub service: Service,
    /// Names of files, if they are not made up.
    pub filenames: Vec<String>,
    /// Where files are: each clone in one of them, in turn.
    pub directories: Vec<String>,
    /// How files are called.
    pub format: String,
    /// O_DIRECT.
    pub direct: bool,
    /// O_SYNC or O_DSYNC.
    pub sync: Sync,
    /// Requests in flight.
    pub depth: u32,
    /// Whether completions are polled for.
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
    /// How many are left in flight then.
    pub low: Option<u32>,
    /// Clones.
    pub clones: u32,
    /// Times that the job is run.
    pub loops: u64,
    /// The longest it runs.
    pub runtime: Option<Duration>,
    /// Whether it runs that long whatever it has done.
    pub time_based: bool,
    /// Time before it is measured.
    pub ramp: Duration,
    /// Time before it starts.
    pub delay: Duration,
    /// Whether it waits for the jobs before it.
    pub stonewall: bool,
    /// Whether the jobs that run beside it end when it does.
    pub exit_all: bool,
    /// The job that it waits for.
    pub wait_for: Option<String>,
    /// Where it says so.
    pub(super) waits_at: Option<(Source, crate::Span)>,
    /// Whether its clones are reported as one.
    pub group_reporting: bool,
    /// Whether a new group of reports begins with it.
    pub new_group: bool,
    /// An fsync after so many writes; 0 for none.
    pub fsync_every: u64,
    /// An fdatasync after so many writes, where no fsync is due; 0 for none.
    pub fdatasync_every: u64,
    /// An fsync at the end.
    pub end_fsync: bool,
    /// Percent of a mix that are reads.
    pub read_percent: u32,
    /// Percent of reads and of writes that are random.
    pub random_percent: [u32; 2],
    /// How random offsets are drawn.
    pub distribution: Offsets,
    /// Whether a block may come again before all were there.
    pub repeats_blocks: bool,
    /// Bytes a second of reads and of writes.
    pub rate_bytes: [Option<u64>; 2],
    /// Operations a second of reads and of writes.
    pub rate_operations: [Option<u64>; 2],
    /// Whether operations of a rate begin at random times.
    pub poisson: bool,
    /// A pause after each operation, or after so many.
    pub think: Duration,
    /// Operations between two pauses.
    pub think_every: u64,
    /// The latency to keep with as many requests in flight as can be.
    pub latency_target: Option<Duration>,
    /// How long each queue depth is tried for that.
    pub latency_window: Duration,
    /// Percent of the requests that have to keep it.
    pub latency_percent: f64,
    /// Whether the job goes on when the depth is found.
    pub latency_run: bool,
    /// CPUs that threads run on.
    pub cpus: Vec<u32>,
    /// Whether each clone has one of them.
    pub split_cpus: bool,
    /// Whether data is verified.
    pub verify: bool,
    /// Whether what was written is read back.
    pub do_verify: bool,
    /// Percent that compress away.
    pub compress_percent: u32,
    /// Bytes that are written again and again.
    pub pattern: Vec<u8>,
    /// Percent of blocks that repeat another.
    pub dedupe_percent: u32,
    /// Whether cached data of its files is dropped first.
    pub invalidate: bool,
    /// Whether its files are read into the cache first.
    pub pre_read: bool,
    /// What the kernel is told of its files when they are opened.
    pub hint: Hint,
    /// Whether files that it only writes have data before that.
    pub overwrite: bool,
    /// Whether files that it only writes have blocks before that.
    pub allocate: bool,
    /// Whether it makes its files, and does nothing with them.
    pub create_only: bool,
    /// Whether its files are removed in the end.
    pub unlink: bool,
    /// Whether an error ends the job.
    pub continues: bool,
    /// Percentiles that are reported.
    pub percentiles: Vec<f64>,
    /// Whether `clat_ns` has percentiles.
    pub percentiles_of_completion: bool,
    /// Whether `lat_ns` has.
    pub percentiles_of_all: bool,
    /// Prefixes of the files with bandwidth, latency and IOPS over time.
    pub logs: [Option<String>; 3],
    /// Whether each clone has files of its own.
    pub log_each: bool,
    /// Length of an interval in them.
    pub log_interval: Option<Duration>,
    /// The options as they were written, for JSON.
    pub written: Vec<(String, String)>,
}

/// What does the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// One call after the other.
    Psync,
    /// The kernel's AIO.
    Libaio,
    /// io_uring.
    IoUring,
    /// Memory mappings.
    Mmap,
    /// Nothing.
    Null,
    /// A file is made for each operation.
    FileCreate,
    /// A file is looked at.
    FileStat,
    /// A file is removed.
    FileDelete,
    /// A file gets another name.
    FileRename,
    /// A directory is made.
    DirectoryCreate,
    /// A directory is looked at.
    DirectoryStat,
    /// A directory is removed.
    DirectoryDelete,
}

impl Engine {
    /// Whether its operations are of whole files, or of directories.
    #[must_use]
    pub const fn of_files(self) -> bool {
        matches!(self, Self::FileCreate | Self::FileStat | Self::FileDelete | Self::FileRename) || self.of_directories()
    }

    /// Whether they are of directories.
    #[must_use]
    pub const fn of_directories(self) -> bool {
        matches!(self, Self::DirectoryCreate | Self::DirectoryStat | Self::DirectoryDelete)
    }
}

/// `rw`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Direction {
    /// Whether it reads.
    pub reads: bool,
    /// Whether it writes.
    pub writes: bool,
    /// Whether at random places.
    pub random: bool,
    /// What stands behind it: of sequential operations, bytes between the end of one and the begin of the next.
    pub gap: i64,
    /// Of random operations, how many follow each other from each place.
    pub burst: u32,
}

/// Sizes of blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocks {
    /// One size.
    Fixed(u64),
    /// Uniform, in steps of the smaller.
    Range(u64, u64),
    /// By weight.
    Split(Vec<(u64, u32)>),
}

impl Blocks {
    /// The smallest.
    #[must_use]
    pub fn smallest(&self) -> u64 {
        match self {
            Self::Fixed(bytes) | Self::Range(bytes, _) => *bytes,
            Self::Split(sizes) => sizes.iter().map(|(bytes, _)| *bytes).min().unwrap_or(1),
        }
    }

    /// What they are on average.
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

    /// The largest.
    #[must_use]
    pub fn largest(&self) -> u64 {
        match self {
            Self::Fixed(bytes) | Self::Range(_, bytes) => *bytes,
            Self::Split(sizes) => sizes.iter().map(|(bytes, _)| *bytes).max().unwrap_or(1),
        }
    }
}

/// Two amounts as weights.
fn parts(first: f64, second: f64) -> [u32; 2] {
    const ALL: f64 = 10_000.0;
    let first = (ALL * first / (first + second)).round().clamp(1.0, ALL - 1.0);
    [first as u32, (ALL - first) as u32]
}

/// A size, or a share of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percent.
    Percent(u64),
}

impl Amount {
    /// Bytes, where a whole has so many.
    #[must_use]
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
    /// Nothing.
    None,
    /// What `rw` says.
    ByType,
    /// That they are read from begin to end.
    Sequential,
    /// That they are read anywhere.
    Random,
}

/// How the next file is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Each in turn, for one block.
    RoundRobin,
    /// Each to its end.
    Sequential,
    /// Any.
    Random,
}

/// O_SYNC and the like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// Neither.
    None,
    /// O_SYNC.
    Sync,
    /// O_DSYNC.
    Dsync,
}

/// How random offsets are drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Offsets {
    /// All alike.
    Uniform,
    /// Zipf with this exponent.
    Zipf(f64),
    /// Normal around the middle, the deviation as percent of the space.
    Normal(f64),
    /// By the Pareto principle with this share.
    Pareto(f64),
    /// By zones: percent of the operations and of the space.
    Zoned(Zones),
    /// By zones: parts of the operations, and bytes; the last may be the rest of the file.
    ZonedBytes(Vec<(u32, Option<u64>)>),
}

impl Job {
    /// A job without any option, as fio's manual has the defaults.
    pub(super) fn new(name: String) -> Self {
        Self {
            section_name: name.clone(),
            name,
            section: None,
            engine: Engine::Psync,
            direction: Direction { reads: true, writes: false, random: false, gap: 0, burst: 1 },
            blocks: [Blocks::Fixed(4096), Blocks::Fixed(4096)],
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
            filenames: Vec::new(),
            directories: Vec::new(),
            format: DEFAULT_FORMAT.into(),
            direct: false,
            sync: Sync::None,
            depth: 1,
            polled: false,
            uncached: false,
            no_wait: false,
            atomic: false,
            submit: Some(1),
            complete_least: 1,
            low: None,
            clones: 1,
            loops: 1,
            runtime: None,
            time_based: false,
            ramp: Duration::ZERO,
            delay: Duration::ZERO,
            stonewall: false,
            exit_all: false,
            wait_for: None,
            waits_at: None,
            group_reporting: false,
            new_group: false,
            fsync_every: 0,
            fdatasync_every: 0,
            end_fsync: false,
            read_percent: 50,
            random_percent: [100; 2],
            distribution: Offsets::Uniform,
            repeats_blocks: false,
            rate_bytes: [None; 2],
            rate_operations: [None; 2],
            poisson: false,
            think: Duration::ZERO,
            think_every: 1,
            latency_target: None,
            latency_window: Duration::ZERO,
            latency_percent: 100.0,
            latency_run: false,
            cpus: Vec::new(),
            split_cpus: false,
            verify: false,
            do_verify: true,
            compress_percent: 0,
            pattern: Vec::new(),
            dedupe_percent: 0,
            invalidate: true,
            pre_read: false,
            hint: Hint::ByType,
            overwrite: false,
            allocate: true,
            create_only: false,
            unlink: false,
            continues: false,
            percentiles: DEFAULT_PERCENTILES.to_vec(),
            percentiles_of_completion: true,
            percentiles_of_all: false,
            logs: [None, None, None],
            log_each: true,
            log_interval: None,
            written: Vec::new(),
        }
    }

    /// Whether reads and writes have a rate each, of operations or of bytes.
    pub(super) fn own_rates(&self) -> [bool; 2] {
        let rates = if self.rate_operations == [None; 2] { self.rate_bytes } else { self.rate_operations };
        rates.map(|rate| rate.is_some())
    }

    /// How often it reads and how often it writes, as weights. In a mix rates decide it: reads and writes have one each, whatever
    /// `rwmixread` says.
    pub(super) fn read_and_write_weights(&self) -> [u32; 2] {
        match (self.direction.reads, self.direction.writes) {
            (true, true) => match (self.rate_operations, self.rate_bytes) {
                ([Some(reads), Some(writes)], _) => parts(reads as f64, writes as f64),
                ([None, None], [Some(reads), Some(writes)]) => {
                    let [of_reads, of_writes] = [&self.blocks[0], &self.blocks[1]].map(Blocks::mean);
                    parts(reads as f64 / of_reads, writes as f64 / of_writes)
                }
                _ => [self.read_percent, 100 - self.read_percent],
            },
            (reads, _) => [100 * u32::from(reads), 100 * u32::from(!reads)],
        }
    }

    /// Where files of a clone are.
    pub(super) fn directory(&self, clone: u32) -> &str {
        // As in fio, names that are given are all in the first.
        let turn = if self.filenames.is_empty() { clone as usize } else { 0 };
        self.directories.get(turn % self.directories.len().max(1)).map_or("", String::as_str)
    }

    /// How files are called, in clone `clone`.
    pub(super) fn file_name(&self, clone: u32, file: u64) -> String {
        self.format
            .replace("$jobname", &self.section_name)
            .replace("$jobnum", &clone.to_string())
            .replace("$filenum", &file.to_string())
            .replace("$clientuid", "localhost")
    }
}

/// How files are called by default.
pub(super) const DEFAULT_FORMAT: &str = "$jobname.$jobnum.$filenum";

/// Percentiles that are reported by default.
pub(super) const DEFAULT_PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

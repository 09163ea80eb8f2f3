//! A command line in the words of the model.

use super::{Command, Fileio, IoMode, Limit, TestMode};
use fstone_model::workload::{
    Action, Actions, Amount, Arrivals, Batches, DataPattern, Directories, Distribution, Existing, Extent, FileChoice,
    Fileset, FinalSync, FsyncPolicy, IoEngineKind, IoSettings, Naming, OpenPolicy, OpenSync, Operation, Pattern, Phase,
    SizeDistribution, Stop, ThreadGroup, Transfer, Workload,
};

const FILE_PREFIX: &str = "test_file.";
const WORKLOAD: &str = "sysbench fileio";

pub(super) const GROUP: &str = "fileio";
pub(super) const READ: &str = "read";
pub(super) const WRITE: &str = "write";

/// Whether this is a `run` on files that were prepared.
pub fn needs_files(workload: &Workload) -> bool {
    workload.name == WORKLOAD && workload.filesets.iter().any(|fileset| fileset.existing == Existing::Require)
}

/// Whether a load leaves files of the names that sysbench's have.
pub fn leaves_files(workload: &Workload) -> bool {
    workload
        .filesets
        .iter()
        .any(|fileset| fileset.existing != Existing::Require && fileset.naming.file_prefix == FILE_PREFIX)
}

impl Fileio {
    /// The names of its files, in the working directory; what `cleanup` removes.
    pub fn file_names(&self) -> impl Iterator<Item = String> {
        (0..self.files).map(|index| format!("{FILE_PREFIX}{index}"))
    }

    /// The load it describes: of `prepare` the files alone; of `run` the test, on files that have to be there already;
    /// of `cleanup` nothing at all.
    pub fn workload(&self) -> Workload {
        let filesets = if self.command == Command::Cleanup { Vec::new() } else { vec![self.fileset()] };
        let phases = match (self.command, self.mode) {
            (Command::Run, Some(mode)) => vec![self.phase(mode)],
            _ => Vec::new(),
        };
        Workload {
            io: self.io_settings(),
            data: DataPattern { stamped: self.validate, ..DataPattern::default() },
            final_sync: FinalSync::None,
            series_interval: self.report_interval.unwrap_or(Workload::SERIES_INTERVAL),
            ..Workload::new(WORKLOAD, filesets, phases)
        }
    }

    /// The load of `prepare` and `run` in one: for studies, where every trial begins on an empty filesystem.
    pub fn prepared_workload(&self) -> Workload {
        let mut workload = self.workload();
        for fileset in &mut workload.filesets {
            fileset.existing = Existing::Rebuild;
        }
        workload
    }

    fn fileset(&self) -> Fileset {
        let creates = self.command == Command::Run && self.mode == Some(TestMode::Seqwr);
        let size = match self.command {
            // It writes whole blocks.
            Command::Prepare => self.file_bytes.checked_next_multiple_of(self.block_bytes).unwrap_or(self.file_bytes),
            _ => self.file_bytes,
        };
        Fileset {
            directories: Directories::Flat { count: 0, root_too: true },
            naming: Naming { file_prefix: FILE_PREFIX.into(), ..Naming::default() },
            build_block_bytes: self.block_bytes,
            existing: match (self.command, creates) {
                (_, true) => Existing::Rebuild,
                (Command::Run, false) => Existing::Require,
                _ => Existing::Reuse,
            },
            // The test writes them: they grow, unless they are mapped.
            fill: !creates,
            grows: creates && self.io != IoMode::Mmap,
            ..Fileset::new(GROUP, Amount::Files(self.files), SizeDistribution::Fixed(size))
        }
    }

    fn io_settings(&self) -> IoSettings {
        let (engine, queue_depth) = match self.io {
            IoMode::Sync => (IoEngineKind::Psync, 1),
            IoMode::Async => (IoEngineKind::IoUring, self.backlog),
            IoMode::Mmap => (IoEngineKind::Mmap, 1),
        };
        let sync = match (self.flags.sync, self.flags.dsync) {
            // Flags of a descriptor say nothing of a mapping.
            _ if self.io == IoMode::Mmap => OpenSync::None,
            (true, _) => OpenSync::Sync,
            (false, true) => OpenSync::Dsync,
            (false, false) => OpenSync::None,
        };
        IoSettings { engine, direct: self.flags.direct, sync, queue_depth, ..IoSettings::default() }
    }

    fn phase(&self, mode: TestMode) -> Phase {
        let operations = self.limit.map(|limit| match limit {
            Limit::Events(count) | Limit::Requests(count) => count,
        });
        let group = ThreadGroup {
            open: OpenPolicy::KeepShared,
            rate_per_second: self.rate_per_second.map(|rate| rate as f64),
            arrivals: if self.rate_per_second.is_some() { Arrivals::Poisson } else { Arrivals::Even },
            // sysbench submits each request by itself.
            batches: Batches { submit: matches!(self.io, IoMode::Async).then_some(1), ..Batches::default() },
            fsync: FsyncPolicy {
                every_operations: if mode.writes() { self.fsync.every } else { 0 },
                all_files: true,
                counted: self.counts_fsyncs(),
                at_end: mode.writes() && self.fsync.at_end,
                data_only: self.fsync.data_only,
                ..FsyncPolicy::default()
            },
            ..ThreadGroup::new(GROUP, self.threads, self.actions(mode))
        };
        let stop = Stop { time: self.time, operations, ..Stop::default() };
        Phase::new("run", vec![group], stop)
    }

    fn actions(&self, mode: TestMode) -> Actions {
        let (bytes, pattern) = if mode.random() {
            let pattern = Pattern::Random { distribution: Distribution::Uniform, align_bytes: self.block_bytes };
            (self.block_bytes, pattern)
        } else {
            (self.request_bytes(), Pattern::Cursor { shared: true })
        };
        let transfer = |fsync| Transfer { extent: Extent::Bytes(bytes), block_bytes: bytes, pattern, fsync };
        let action = |name: &str, operation| Action {
            choice: FileChoice::Concatenated,
            ..Action::new(name, operation, Some(0))
        };
        let read = || action(READ, Operation::Read(transfer(false)));
        let write = || action(WRITE, Operation::Write(transfer(self.fsync.all)));
        match mode {
            TestMode::Seqrd | TestMode::Rndrd => Actions::Sequence(vec![read()]),
            TestMode::Seqwr | TestMode::Seqrewr | TestMode::Rndwr => Actions::Sequence(vec![write()]),
            TestMode::Rndrw => Actions::Ratio { first: read(), second: write(), ratio: self.rw_ratio },
        }
    }

    /// Whether periodic fsyncs are events, as reads and writes are. With `--max-requests` they are not.
    pub fn counts_fsyncs(&self) -> bool {
        !matches!(self.limit, Some(Limit::Requests(_)))
    }

    pub(super) fn request_bytes(&self) -> u64 {
        self.block_bytes * self.merged_requests.max(1)
    }
}

//! Metrics: the name, unit and direction of every figure fstone prints.
//!
//! A metric is defined once, as a line in [`catalog`], with the kinds of steps that have it; `show = [...]` in a study,
//! the columns of a table, the axis of a plot and the rows of the store all use that name.

use crate::StepKind;
use serde::{Deserialize, Serialize};

crate::named! {
    /// What a value counts. Values are always stored in the base unit named here; scaling is the report's. A
    /// symbol is for a table head or an axis.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Unit: symbol {
        /// Seconds.
        Seconds => "s",
        /// Nanoseconds; printed as ns, µs, ms or s.
        Nanoseconds => "ns",
        /// Bytes; printed with binary prefixes.
        Bytes => "B",
        /// Bytes per second; printed as MiB/s.
        BytesPerSecond => "B/s",
        /// Events per second.
        PerSecond => "/s",
        /// A percentage, 100 = whole.
        Percent => "%",
        /// A pure count.
        Count => "",
        /// A dimensionless ratio.
        Ratio => "×",
    }
}

/// Which direction of a metric is the better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither: it describes.
    Neither,
}

impl Better {
    /// "higher is better", "lower is better", or nothing.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Higher => "higher is better",
            Self::Lower => "lower is better",
            Self::Neither => "",
        }
    }

    pub const fn arrow(self) -> &'static str {
        match self {
            Self::Higher => "↑",
            Self::Lower => "↓",
            Self::Neither => "",
        }
    }
}

/// The definition of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// The name used in `show`, tables and the store.
    pub name: &'static str,
    /// The unit its values are stored in.
    pub unit: Unit,
    /// The better direction.
    pub better: Better,
    /// The kinds of steps that have it; none when it belongs to a trial as a whole.
    pub steps: &'static [StepKind],
    /// One sentence: what it is and how it is made.
    pub about: &'static str,
}

impl Metric {
    /// The most that there can be of it: all, of a share. A process may take several CPUs of which 100 % are one.
    pub fn most(&self) -> Option<f64> {
        let of_one_cpu = [catalog::PROCESS_CPU.name, catalog::TRIAL_CPU.name].contains(&self.name);
        (self.unit == Unit::Percent && !of_one_cpu).then_some(100.0)
    }

    /// A figure of this metric.
    pub fn figure(&self, value: f64) -> Figure {
        Figure { metric: self.name.to_owned(), value, unit: self.unit, better: self.better }
    }
}

/// One measured value, carrying its unit so that a stored figure can be read without this program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The metric's name.
    pub metric: String,
    /// The value, in `unit`.
    pub value: f64,
    /// The unit of `value`.
    pub unit: Unit,
    /// The better direction.
    pub better: Better,
}

/// Every metric there is.
pub mod catalog {
    use super::{Better, Metric, StepKind, Unit};

    const EVERY: &[StepKind] = &StepKind::ALL;
    const LOAD: &[StepKind] = &[StepKind::Load];
    const PROGRAMS: &[StepKind] = &[StepKind::Mkfs, StepKind::Command, StepKind::CopyIn, StepKind::Fsck];
    const FSCK: &[StepKind] = &[StepKind::Fsck];
    const FRAGMENTATION: &[StepKind] = &[StepKind::Fragmentation, StepKind::Age];
    const AGE: &[StepKind] = &[StepKind::Age];
    const POWER: &[StepKind] = &[StepKind::PowerCut];
    const TRIAL: &[StepKind] = &[];

    macro_rules! metrics {
        ($($id:ident = $name:literal, $unit:ident, $better:ident, $steps:ident, $about:literal;)*) => {
            $(#[doc = $about] pub const $id: Metric =
                Metric { name: $name, unit: Unit::$unit, better: Better::$better, steps: $steps, about: $about };)*
            /// All metrics with a fixed name, in the order they are documented.
            pub const ALL: &[Metric] = &[$($id),*];
        };
    }

    metrics! {
        TIME = "time", Seconds, Lower, EVERY, "wall-clock time of the step";
        CPU = "CPU", Percent, Lower, EVERY, "busy time of the whole machine during the step (kernel threads and write-back included); 100 % = all CPUs";
        CPU_USER = "CPU user", Percent, Lower, EVERY, "user time of the whole machine; 100 % = all CPUs";
        CPU_SYSTEM = "CPU system", Percent, Lower, EVERY, "system time of the whole machine; 100 % = all CPUs";
        CPU_IOWAIT = "CPU iowait", Percent, Neither, EVERY, "time CPUs were idle with I/O outstanding; 100 % = all CPUs";
        CPU_IRQ = "CPU irq", Percent, Lower, EVERY, "time in hard and soft interrupts; 100 % = all CPUs";
        CPU_STEAL = "CPU steal", Percent, Neither, EVERY, "time the hypervisor ran something else; 100 % = all CPUs";
        PROCESS_CPU = "process CPU", Percent, Lower, EVERY, "user and system time of the process that does the step: the load's, a tool's or command's with its children, or fstone's own; 100 % = one CPU (what FFSB prints)";
        TRIAL_CPU = "trial CPU", Percent, Lower, EVERY, "user and system time of all processes of the trial, services and what runs in the background included; 100 % = one CPU";
        KERNEL_THREADS_CPU = "kernel threads CPU", Percent, Lower, EVERY, "system time of kernel threads (write-back, journal, workqueues); 100 % = all CPUs";
        KERNEL_WORK = "kernel work", Count, Lower, EVERY, "instructions that the kernel executed, counted exactly: in virtual time, on kernels that count (`fstone kernel build --counting`)";
        KERNEL_WORK_PER_OPERATION = "kernel work per operation", Count, Lower, LOAD, "instructions that the kernel executed, divided by the operations completed";
        KERNEL_BACKGROUND_WORK = "kernel background work", Count, Lower, EVERY, "the part of the kernel's work that kernel threads did (write-back, journal), and interrupts while no program ran";
        KERNEL_INTERRUPT_WORK = "kernel interrupt work", Count, Lower, EVERY, "the part of the kernel's work that interrupts did (completed requests, timers), whatever ran when they came";
        KERNEL_COPIES = "kernel copied bytes", Bytes, Lower, EVERY, "bytes that the kernel copied or filled, counted with its work";
        KERNEL_TIME = "kernel time", Percent, Lower, EVERY, "share of the step's time that the kernel's work was charged, as on the processor of --cpu";
        DEVICE_READ_BYTES = "device read bytes", Bytes, Lower, EVERY, "bytes read from the device during the step";
        DEVICE_WRITTEN_BYTES = "device written bytes", Bytes, Lower, EVERY, "bytes written to the device during the step";
        DEVICE_READS = "device reads", Count, Lower, EVERY, "read requests completed by the device";
        DEVICE_WRITES = "device writes", Count, Lower, EVERY, "write requests completed by the device";
        DEVICE_FLUSHES = "device flushes", Count, Lower, EVERY, "flush requests completed by the device";
        DEVICE_DISCARDS = "device discards", Count, Neither, EVERY, "discard requests completed by the device";
        DEVICE_DISCARDED_BYTES = "device discarded bytes", Bytes, Neither, EVERY, "bytes discarded on the device";
        WRITE_AMPLIFICATION = "write amplification", Ratio, Lower, LOAD, "device written bytes per byte the load asked to write";
        BESIDE = "steps beside", Count, Neither, EVERY, "services and steps in the background that ran beside the step: what the device and all CPUs did was for them, too";
        PEAK_DIRTY_BYTES = "peak dirty bytes", Bytes, Neither, EVERY, "largest amount of dirty page cache seen during the step, sampled";
        TRANSACTIONS_PER_SECOND = "transactions per second", PerSecond, Higher, LOAD, "transactions as the load's format counts them, divided by the interval that includes the final sync";
        OPERATIONS_PER_SECOND = "operations per second", PerSecond, Higher, LOAD, "operations completed, divided by the interval that includes the final sync";
        OPERATIONS = "operations", Count, Neither, LOAD, "operations completed";
        THROUGHPUT = "throughput", BytesPerSecond, Higher, LOAD, "bytes read and written by operations, divided by the interval that includes the final sync";
        READ_THROUGHPUT = "read throughput", BytesPerSecond, Higher, LOAD, "bytes read by operations, divided by the interval that includes the final sync";
        WRITE_THROUGHPUT = "write throughput", BytesPerSecond, Higher, LOAD, "bytes written by operations, divided by the interval that includes the final sync";
        EXECUTION_TIME = "execution time", Seconds, Lower, LOAD, "time from the first operation's start until the last is durable";
        SYNC_TIME = "sync time", Seconds, Lower, LOAD, "the final sync's share of the measured interval";
        SETUP_TIME = "setup time", Seconds, Lower, LOAD, "time to build the fileset, before the measured interval";
        FSYNC_LATENCY_P50 = "fsync latency p50", Nanoseconds, Lower, LOAD, "median latency of fsync, fdatasync and msync calls, those inside operations and of the group's policy";
        FSYNC_LATENCY_P95 = "fsync latency p95", Nanoseconds, Lower, LOAD, "95th percentile latency of these calls";
        FSYNC_LATENCY_P99 = "fsync latency p99", Nanoseconds, Lower, LOAD, "99th percentile latency of these calls";
        COMMIT_LATENCY_P50 = "commit latency p50", Nanoseconds, Lower, LOAD, "median time from the begin of an operation that writes to the end of the fsync that the group's policy makes right after it";
        COMMIT_LATENCY_P95 = "commit latency p95", Nanoseconds, Lower, LOAD, "95th percentile of these times";
        COMMIT_LATENCY_P99 = "commit latency p99", Nanoseconds, Lower, LOAD, "99th percentile of these times";
        READ_LATENCY_P50 = "read latency p50", Nanoseconds, Lower, LOAD, "median latency of read operations";
        READ_LATENCY_P95 = "read latency p95", Nanoseconds, Lower, LOAD, "95th percentile latency of read operations";
        READ_LATENCY_P99 = "read latency p99", Nanoseconds, Lower, LOAD, "99th percentile latency of read operations";
        WRITE_LATENCY_P50 = "write latency p50", Nanoseconds, Lower, LOAD, "median latency of write operations";
        WRITE_LATENCY_P95 = "write latency p95", Nanoseconds, Lower, LOAD, "95th percentile latency of write operations";
        WRITE_LATENCY_P99 = "write latency p99", Nanoseconds, Lower, LOAD, "99th percentile latency of write operations";
        ENGINE_COST = "engine cost per operation", Nanoseconds, Lower, LOAD, "the load engine's own cost per operation, measured by the same workload on the null I/O engine";
        START_SKEW = "start skew", Nanoseconds, Lower, LOAD, "of a load of several ranks: from the first rank's begin of a phase to the last one's, the largest of its measured phases";
        STOP_SKEW = "stop skew", Nanoseconds, Lower, LOAD, "the same of the ranks' ends";
        SLOWEST_RANK = "slowest rank", PerSecond, Higher, LOAD, "operations per second of the slowest of several ranks, in its own time";
        MEDIAN_RANK = "median rank", PerSecond, Higher, LOAD, "the same of the median rank";
        FASTEST_RANK = "fastest rank", PerSecond, Higher, LOAD, "the same of the fastest rank";
        FSCK_FILES_USED = "files used", Count, Neither, FSCK, "inodes in use, as the filesystem's own check counts them";
        FSCK_FILES_TOTAL = "files total", Count, Neither, FSCK, "inodes there are, as the filesystem's own check counts them";
        FSCK_NON_CONTIGUOUS = "non-contiguous", Percent, Lower, FSCK, "share of files that are not contiguous, as the filesystem's own check counts them";
        FSCK_BLOCKS_USED = "blocks used", Count, Neither, FSCK, "blocks in use, as the filesystem's own check counts them";
        FSCK_BLOCKS_TOTAL = "blocks total", Count, Neither, FSCK, "blocks there are, as the filesystem's own check counts them";
        EXTENTS_PER_FILE = "extents per file", Ratio, Lower, FRAGMENTATION, "mean number of extents of a non-empty file (FIEMAP)";
        FRAGMENTED_FILES = "fragmented files", Percent, Lower, FRAGMENTATION, "share of non-empty files in more than one extent (FIEMAP)";
        LAYOUT_SCORE = "layout score", Ratio, Higher, FRAGMENTATION, "share of the blocks of files, but for each first one, that follow their predecessor on the device (FIEMAP)";
        UTILIZATION = "utilization", Percent, Neither, AGE, "space in use, as df counts, when the filesystem was aged";
        AGED_FILES = "aged files", Count, Neither, AGE, "files that ageing left";
        SIZES_CHI = "χ² of sizes", Ratio, Neither, AGE, "how far the sizes of these files are from the profile's: the sum over its classes of (found − expected)² ÷ expected";
        AGES_CHI = "χ² of ages", Ratio, Neither, AGE, "the same of their ages (mtime)";
        DEPTHS_CHI = "χ² of depths", Ratio, Neither, AGE, "the same of the depths of their directories";
        FREE_EXTENTS = "free extents", Count, Neither, AGE, "stretches of free space, where the filesystem lists them (FS_IOC_GETFSMAP)";
        MEAN_FREE_EXTENT = "mean free extent", Bytes, Neither, AGE, "their mean length";
        PROMISES_CHECKED = "promises checked", Count, Neither, POWER, "promises that were looked at after power cuts, summed over the states that could be mounted: the data, length and name of each synced file, and each name whose removal was synced";
        PROMISES_LOST = "promises lost", Count, Lower, POWER, "those of them that were not kept";
        CRASH_STATES = "crash states", Count, Neither, POWER, "states of the disk that a power cut could have left and that were looked at";
        LOSSY_STATES = "states with a loss", Count, Lower, POWER, "states in which a promise was not kept, or that could not be mounted";
        STATES_MOUNTED = "states mounted", Percent, Higher, POWER, "share of the states that could be mounted";
        STATES_CLEAN = "states clean", Percent, Higher, POWER, "share of the states in which the filesystem's own check, after mounting and unmounting, found no fault";
        RECOVERY_P50 = "recovery time p50", Nanoseconds, Lower, POWER, "median time to mount a state";
        RECOVERY_MAX = "recovery time max", Nanoseconds, Lower, POWER, "longest time to mount a state";
        EXIT_STATUS = "exit status", Count, Neither, PROGRAMS, "exit status of the command";
        BOOT_TIME = "boot time", Seconds, Lower, TRIAL, "from the decision to start a guest until the agent in it is ready";
        TRIAL_OVERHEAD = "trial overhead", Seconds, Lower, TRIAL, "time of the whole trial that none of its steps took: setting up and giving back the device, boot and power-off";
        SETTLING_TIME = "settling time", Seconds, Lower, TRIAL, "time after the trial until its image was freed and what held it was at rest";
        MAXIMUM_RESIDENT_BYTES = "maximum resident bytes", Bytes, Lower, PROGRAMS, "largest resident set of the command's processes";
    }

    /// The metric of this name.
    pub fn find(name: &str) -> Option<&'static Metric> {
        ALL.iter().find(|metric| metric.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::catalog;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = catalog::ALL.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(count, names.len());
    }
}

//! The figures of each job, as fio has them, from the report of the load.

use crate::loads::fio::{
    Job, Plan,
    actions::{TRIM, reads, writes},
    job::{EILSEQ, EIO, ENODATA},
    workload::groups,
};
use fstone_model::{
    CpuIdleness, Histogram, LoadReport,
    histogram::bounds_of,
    load::{ErrorReport, GroupFsyncs, OperationReport, OverTime, SteadyReport, ThreadReport, ThreadUsage},
    workload::{FailedPart, Steady, ThreadGroup},
};
use std::{collections::HashMap, fmt::Write as _};

/// How idle the machine was, as `--idle-prof` prints it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Idle {
    pub found: CpuIdleness,
    pub per_cpu: bool,
}

impl Idle {
    pub(super) fn system_percent(&self) -> f64 {
        let all = &self.found.cpus_percent;
        all.iter().map(|(_, percent)| percent).sum::<f64>() / all.len().max(1) as f64
    }

    /// All of it, or only what a unit of work takes if nothing was measured.
    pub fn text(&self, measured: bool) -> String {
        let mut out = "CPU idleness:\n".to_owned();
        if measured {
            let _ = writeln!(out, "  system: {:.2}%", self.system_percent());
        }
        if measured && self.per_cpu {
            let each: Vec<String> =
                self.found.cpus_percent.iter().map(|(_, percent)| format!("{percent:.2}%")).collect();
            let _ = writeln!(out, "  percpu: {}", each.join(", "));
        }
        let [mean, deviation] = [self.found.unit_mean_ns, self.found.unit_deviation_ns].map(|ns| ns / 1000.0);
        let _ = writeln!(out, "  unit work: mean={mean:.2}us, stddev={deviation:.2}");
        out
    }
}

/// What a report says besides its jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct When {
    pub unix_ms: u64,
    /// The same as fio prints it: `Sun Nov 22 20:05:55 2026`.
    pub text: String,
    /// How long it took with all its phases, but for making the files, ns.
    pub elapsed_ns: u64,
    pub idle: Option<Idle>,
}

/// One job, or the jobs of a group with `group_reporting`.
#[derive(Debug, Clone)]
pub(super) struct JobFigures {
    pub(super) name: String,
    /// Of jobs that are reported together, that of the first, as is the name.
    pub(super) description: Option<String>,
    pub(super) group: u32,
    pub(super) clones: u64,
    /// The first error number.
    pub(super) error: i32,
    pub(super) job: usize,
    /// Reads, writes, trims.
    pub(super) directions: [DirectionFigures; 3],
    pub(super) syncs: Histogram,
    pub(super) others: Vec<(String, Histogram)>,
    /// Of the kinds of which it goes on after some: how many, and the number of the first.
    pub(super) errors: u64,
    pub(super) first_error: i32,
    /// How long its clones ran together, ms.
    pub(super) job_runtime_ms: u64,
    pub(super) usage: ThreadUsage,
    /// The queue depth that it was given, or found.
    pub(super) depth: u32,
    pub(super) steady: Option<SteadyReport>,
    /// Operations by the class of the depth that their clone kept to; none of one whose depth changed while it was measured.
    by_depth: [u64; 7],
    /// How many requests are submitted together at most, and how many are found complete together at most.
    most: [u32; 2],
}

#[derive(Debug, Clone, Default)]
pub(super) struct DirectionFigures {
    pub(super) operations: u64,
    pub(super) bytes: u64,
    pub(super) latency: Histogram,
    /// How long the longest clone ran, with what it read back, ms.
    pub(super) runtime_ms: u64,
    pub(super) over_time: OverTime,
    /// Its mean bandwidth, percent of that of all jobs of the group.
    pub(super) share_percent: f64,
}

impl DirectionFigures {
    pub(super) fn per_second(&self, count: u64) -> f64 {
        if self.runtime_ms == 0 { 0.0 } else { count as f64 * 1000.0 / self.runtime_ms as f64 }
    }

    pub(super) fn bytes_per_second(&self) -> f64 {
        self.per_second(self.bytes)
    }

    pub(super) fn iops(&self) -> f64 {
        self.per_second(self.operations)
    }
}

pub(super) fn jobs(plan: &Plan, report: &LoadReport) -> Vec<JobFigures> {
    let ran: HashMap<&str, &ThreadReport> =
        report.per_thread.iter().map(|thread| (thread.group.as_str(), thread)).collect();
    let mut operations: HashMap<&str, Vec<&OperationReport>> = HashMap::new();
    for operation in &report.operations {
        operations.entry(&operation.group).or_default().push(operation);
    }
    let mut fsyncs: HashMap<&str, Vec<&GroupFsyncs>> = HashMap::new();
    for of_group in &report.group_fsyncs {
        fsyncs.entry(&of_group.group).or_default().push(of_group);
    }
    let mut errors: HashMap<&str, Vec<&ErrorReport>> = HashMap::new();
    for error in &report.errors {
        errors.entry(&error.group).or_default().push(error);
    }
    let groups = groups(&plan.jobs);
    let in_load: HashMap<&str, &ThreadGroup> =
        plan.workload.phases.iter().flat_map(|phase| &phase.groups).map(|group| (group.name.as_str(), group)).collect();
    let mut all: Vec<JobFigures> = Vec::new();
    for part in &plan.parts {
        let job = &plan.jobs[part.job];
        let group = groups[part.job];
        let joins = job.group_reporting
            && all.last().is_some_and(|last| last.group == group && plan.jobs[last.job].group_reporting);
        if !joins {
            all.push(JobFigures {
                name: job.name.clone(),
                description: job.description.clone(),
                group,
                clones: 0,
                error: 0,
                errors: 0,
                first_error: 0,
                job: part.job,
                directions: Default::default(),
                syncs: Histogram::default(),
                others: Vec::new(),
                job_runtime_ms: 0,
                usage: ThreadUsage::default(),
                depth: job.depth,
                steady: None,
                by_depth: [0; 7],
                most: [1; 2],
            });
        }
        let figures = all.last_mut().expect("one was pushed");
        figures.clones += 1;
        // Of jobs that are reported together, fio prints the last one's options.
        figures.job = part.job;
        let elapsed = |group: &str| match ran.get(group) {
            Some(thread) => thread.elapsed_ns,
            None if job.create_only => 0,
            None => report.running_ns,
        };
        let ms = |ns: u64| ns.div_ceil(1_000_000);
        let mut over_time: [OverTime; 2] = Default::default();
        for name in part.groups() {
            figures.job_runtime_ms += ms(elapsed(name));
            let Some(thread) = ran.get(name.as_str()) else { continue };
            figures.usage.add(thread.usage);
            for (sum, one) in over_time.iter_mut().zip(thread.over_time) {
                sum.bytes.follow(one.bytes);
                sum.operations.follow(one.operations);
            }
        }
        for (direction, clone) in figures.directions.iter_mut().zip(over_time) {
            direction.over_time.bytes.beside(clone.bytes);
            direction.over_time.operations.beside(clone.operations);
        }
        let thread = ran.get(part.group.as_str());
        figures.steady = thread.and_then(|thread| thread.steady.clone()).or(figures.steady.take());
        let found = thread.map(|thread| thread.queue_depth).filter(|depth| *depth > 0);
        let group_in_load = in_load.get(part.group.as_str());
        let one = group_in_load.is_some_and(|group| plan.workload.one_at_a_time(group).is_some());
        let depth = if one { 1 } else { job.depth };
        figures.depth = found.unwrap_or(depth);
        let reaped = group_in_load.and_then(|group| group.batches.most).unwrap_or(depth);
        let most = [job.submit.unwrap_or(depth), reaped].map(|most| most.min(depth));
        figures.most = [0, 1].map(|of| figures.most[of].max(most[of]));
        if job.latency_target.is_none() || !job.latency_run {
            figures.by_depth[depth_class(figures.depth)] += thread.map_or(1, |thread| thread.operations.max(1));
        }
        let mut ran_ms = [0; 3];
        for name in part.groups() {
            let mut moved = [false; 3];
            for operation in operations.get(name.as_str()).into_iter().flatten() {
                figures.add(operation, job);
                moved[0] |= reads(&operation.name) && operation.invocations > 0;
                moved[1] |= writes(&operation.name) && operation.invocations > 0;
                moved[2] |= operation.name == TRIM && operation.invocations > 0;
            }
            // What is read back comes behind what the job reads.
            for (sum, _) in ran_ms.iter_mut().zip(moved).filter(|(_, moved)| *moved) {
                *sum += ms(elapsed(name));
            }
            for of_group in fsyncs.get(name.as_str()).into_iter().flatten() {
                figures.syncs.merge(&of_group.latency);
            }
            for error in errors.get(name.as_str()).into_iter().flatten() {
                if figures.error == 0 {
                    figures.error = number(error);
                }
                if FailedPart::of(&error.call).is_some_and(|part| job.continues_in(part)) {
                    figures.errors += error.count;
                    figures.first_error = if figures.first_error == 0 { number(error) } else { figures.first_error };
                }
                figures.add_failed(error);
            }
        }
        for (direction, ran_ms) in figures.directions.iter_mut().zip(ran_ms) {
            direction.runtime_ms = direction.runtime_ms.max(ran_ms);
        }
    }
    share_out(&mut all);
    all
}

fn share_out(all: &mut [JobFigures]) {
    let groups: Vec<u32> = all.iter().map(|figures| figures.group).collect();
    for direction in 0..3 {
        let mut of_groups: HashMap<u32, (u64, u64)> = HashMap::new();
        for (figures, group) in all.iter().zip(&groups) {
            let (bytes, longest_ms) = of_groups.entry(*group).or_default();
            *bytes += figures.directions[direction].bytes;
            *longest_ms = (*longest_ms).max(figures.directions[direction].runtime_ms);
        }
        for figures in all.iter_mut() {
            let (bytes, longest_ms) = of_groups[&figures.group];
            let figures = &mut figures.directions[direction];
            if bytes > 0 && longest_ms > 0 {
                let together = bytes as f64 * 1000.0 / longest_ms as f64;
                figures.share_percent = (figures.over_time.bytes.mean * 100.0 / together).min(100.0);
            }
        }
    }
}

/// What fio calls an error: it has its own names for a read behind a file's end, and for data that is not as it was written.
fn number(error: &ErrorReport) -> i32 {
    match (error.call.as_str(), error.errno) {
        ("verify", _) => EILSEQ,
        (_, ENODATA) => EIO,
        (_, errno) => errno,
    }
}

impl JobFigures {
    /// Counts operations that failed as fio does, which has them in `total_ios` without a byte. Files that could not be opened are none.
    fn add_failed(&mut self, error: &ErrorReport) {
        if !matches!(error.call.as_str(), "read" | "write" | "verify" | "fallocate" | "BLKDISCARD") {
            return;
        }
        let direction = match error.operation.as_str() {
            name if reads(name) => 0,
            name if writes(name) => 1,
            TRIM => 2,
            _ => return,
        };
        self.directions[direction].operations += error.count;
    }

    fn add(&mut self, operation: &OperationReport, job: &Job) {
        let direction = match operation.name.as_str() {
            name if reads(name) => &mut self.directions[0],
            name if writes(name) => &mut self.directions[1],
            TRIM => {
                // Their blocks have one size.
                self.directions[2].bytes += operation.invocations * job.blocks[1].largest();
                &mut self.directions[2]
            }
            name => {
                match self.others.iter_mut().find(|(known, _)| known == name) {
                    Some((_, latency)) => latency.merge(&operation.latency),
                    None => self.others.push((name.to_owned(), operation.latency.clone())),
                }
                return;
            }
        };
        direction.operations += operation.invocations;
        direction.bytes += operation.read_bytes + operation.written_bytes;
        direction.latency.merge(&operation.latency);
    }

    /// CPU time of its clones, percent of their runs: user, system.
    pub(super) fn cpu(&self) -> (f64, f64) {
        let all = self.job_runtime_ms as f64 * 1e6;
        let share = |ns: u64| if all == 0.0 { 0.0 } else { ns as f64 * 100.0 / all };
        (share(self.usage.user_ns), share(self.usage.system_ns))
    }

    /// The share of operations, in percent, of each class of queue depths.
    pub(super) fn depths(&self) -> [f64; 7] {
        let all: u64 = self.by_depth.iter().sum();
        self.by_depth.map(|count| if all == 0 { 0.0 } else { count as f64 * 100.0 / all as f64 })
    }

    /// The share of calls, in percent, of each class of requests that are submitted together. They are not counted: nothing where they can be in several.
    pub(super) fn submitted(&self) -> [f64; 7] {
        together(self.most[0])
    }

    /// The same of those that are found complete together.
    pub(super) fn completed(&self) -> [f64; 7] {
        together(self.most[1])
    }

    pub(super) fn latency(&self) -> Histogram {
        let mut all = self.directions[0].latency.clone();
        self.directions[1..].iter().for_each(|direction| all.merge(&direction.latency));
        for (_, latency) in &self.others {
            all.merge(latency);
        }
        all
    }
}

/// Mean and standard deviation of a histogram; the deviation within 0.4 %, as its buckets are.
pub(super) fn mean_and_deviation(histogram: &Histogram) -> (f64, f64) {
    let Some(mean) = histogram.mean_ns() else { return (0.0, 0.0) };
    let squares: f64 = histogram
        .buckets()
        .iter()
        .map(|(bucket, count)| {
            let (low, next) = bounds_of(*bucket as usize);
            let middle = (low + next - 1) as f64 / 2.0;
            (middle - mean).powi(2) * *count as f64
        })
        .sum();
    (mean, if histogram.count() > 1 { (squares / (histogram.count() - 1) as f64).sqrt() } else { 0.0 })
}

/// A histogram in fio's bins: 64 to each power of two, named by the middle of the bin. Our buckets are half as wide and
/// lie within them.
pub(super) fn bins(histogram: &Histogram) -> Vec<(u64, u64)> {
    let mut bins: Vec<(u64, u64)> = Vec::new();
    for (bucket, count) in histogram.buckets() {
        let (low, _) = bounds_of(*bucket as usize);
        let name = bin_of(low);
        match bins.last_mut() {
            Some((last, held)) if *last == name => *held += count,
            _ => bins.push((name, *count)),
        }
    }
    bins
}

/// Values below this have a bin each.
const SMALL: u64 = 128;

fn bin_of(value: u64) -> u64 {
    if value < SMALL {
        return value;
    }
    let shift = 63 - value.leading_zeros() - 6;
    ((value >> shift) << shift) + (1 << (shift - 1))
}

pub(super) fn percentiles(histogram: &Histogram, list: &[f64]) -> Vec<(f64, u64)> {
    let bins = bins(histogram);
    let count = histogram.count();
    if count == 0 {
        return Vec::new();
    }
    let (mut seen, mut bin) = (0, 0);
    list.iter()
        .map(|percent| {
            let rank = ((percent / 100.0 * count as f64) * (1.0 - 1e-12)).ceil().max(1.0) as u64;
            while bin < bins.len() && seen + bins[bin].1 < rank {
                seen += bins[bin].1;
                bin += 1;
            }
            (*percent, bins[bin.min(bins.len() - 1)].0)
        })
        .collect()
}

/// Where shares of latencies are divided, in each unit; below the first, between each two.
pub(super) const DIVISIONS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// Percent of latencies below each division of ns, of us and of ms, with those from 1 s to 2 s and beyond; any at all are 0.01 % at least, as in fio.
pub(super) fn shares(histogram: &Histogram) -> ([f64; 10], [f64; 10], [f64; 12]) {
    let (mut ns, mut us, mut ms) = ([0.0; 10], [0.0; 10], [0.0; 12]);
    let total = histogram.count().max(1) as f64;
    for (bucket, count) in histogram.buckets() {
        let (value, _) = bounds_of(*bucket as usize);
        let share = *count as f64 * 100.0 / total;
        let place = |value: u64| DIVISIONS.iter().position(|division| value < *division);
        if let Some(place) = place(value) {
            ns[place] += share;
        } else if let Some(place) = place(value / 1_000) {
            us[place] += share;
        } else if let Some(place) = place(value / 1_000_000) {
            ms[place] += share;
        } else {
            ms[if value < 2_000_000_000 { 10 } else { 11 }] += share;
        }
    }
    let all = ns.iter_mut().chain(&mut us).chain(&mut ms);
    all.filter(|share| **share > 0.0).for_each(|share| *share = share.max(0.01));
    (ns, us, ms)
}

/// fio's classes of queue depths, and of requests that are submitted or complete together.
pub(super) const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
pub(super) const TOGETHER: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

fn together(most: u32) -> [f64; 7] {
    [0.0, if most <= 4 { 100.0 } else { 0.0 }, 0.0, 0.0, 0.0, 0.0, 0.0]
}

/// What was judged, in percent of the mean if the limit is relative.
pub(super) fn criterion(wanted: &Steady, seen: &SteadyReport) -> f64 {
    let judged = if wanted.slope { seen.slope } else { seen.deviation };
    if wanted.relative && seen.mean > 0.0 { judged * 100.0 / seen.mean } else { judged }
}

/// In which of fio's classes a queue depth is: 1, 2, 4, 8, 16, 32, and 64 and more.
fn depth_class(depth: u32) -> usize {
    (31 - depth.max(1).leading_zeros()).min(6) as usize
}

pub(super) fn version() -> String {
    crate::loads::fio::help::version().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_those_that_fio_prints() {
        // Names of bins in fio's own json+, of values that it says are in them.
        for (value, name) in
            [(3285, 3280), (686_971, 684_032), (98_466, 98_816), (127, 127), (128, 129), (13_000, 12_992)]
        {
            assert_eq!(bin_of(value), name, "{value}");
        }
        let histogram = Histogram::from_values(&[5, 3285, 3290, 3300, 98_466]);
        assert_eq!(bins(&histogram), [(5, 1), (3280, 2), (3312, 1), (98_816, 1)]);
        assert_eq!(percentiles(&histogram, &[1.0, 50.0, 100.0]), [(1.0, 5), (50.0, 3280), (100.0, 98_816)]);
    }

    #[test]
    fn shares_are_divided_as_in_fio() {
        let (ns, us, ms) =
            shares(&Histogram::from_values(&[1, 3, 999, 1_500, 9_000, 1_500_000, 1_500_000_000, 3_000_000_000]));
        assert_eq!((ns[0], ns[1], ns[9]), (12.5, 12.5, 12.5));
        assert_eq!((us[0], us[2]), (12.5, 12.5));
        assert_eq!((ms[0], ms[10], ms[11]), (12.5, 12.5, 12.5));
    }

    #[test]
    fn few_latencies_are_some() {
        let values: Vec<u64> = std::iter::repeat_n(5, 100_000).chain([5_000]).collect();
        assert_eq!(shares(&Histogram::from_values(&values)).1[2], 0.01);
    }

    #[test]
    fn depths_have_classes() {
        assert_eq!([1, 2, 3, 4, 32, 63, 64, 4096].map(depth_class), [0, 1, 1, 2, 5, 5, 6, 6]);
    }

    #[test]
    fn depths_are_those_that_clones_kept_to() {
        let depths = |options: &str| {
            let text = format!(
                "[a]\nrw=randread\nsize=1m\nioengine=libaio\niodepth=64\nnumjobs=2\ngroup_reporting\n{options}\n"
            );
            let mut asked = crate::fio::Options {
                placement: crate::fio::Placement::UnderDirectory,
                sections: &[],
                variable: &|_| None,
                size_of: &|_| None,
                real: &|_| None,
                loader: &mut |_| Err(String::new()),
                seconds: None,
            };
            let plan = crate::fio::parse(&crate::Source::new("load.fio", text), &mut asked).expect("it is right");
            let thread = |group: &str, queue_depth, operations| ThreadReport {
                group: group.into(),
                queue_depth,
                operations,
                ..ThreadReport::default()
            };
            let found = u32::from(options.contains("target"));
            let per_thread = vec![thread("a.0", found * 4, 30), thread("a.1", found * 16, 10)];
            let report = LoadReport { per_thread, ..LoadReport::default() };
            let figures = jobs(&plan, &report).remove(0);
            assert_eq!(figures.submitted()[1], if options.contains("batch") { 0.0 } else { 100.0 });
            // fio reaps one by one then.
            assert_eq!(figures.completed()[1], if options.contains("batch") { 100.0 } else { 0.0 });
            figures.depths()
        };
        assert_eq!(depths(""), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 100.0]);
        depths("iodepth_batch=16");
        depths("iodepth_batch=0");
        let target = "latency_target=500\nlatency_window=2s";
        assert_eq!(depths(target), [0.0, 0.0, 75.0, 0.0, 25.0, 0.0, 0.0]);
        // It changed while the job was measured.
        assert_eq!(depths(&format!("{target}\nlatency_run=1")), [0.0; 7]);
    }
}

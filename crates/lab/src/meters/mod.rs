//! Meters: what the whole machine did during a step.
//!
//! [`Meters::begin`] right before a step, [`Meters::end`] right after it, [`Readings::figures`] for what there is to
//! tell. Between them the meters can pause. A meter never fails: what this machine cannot tell is absent from the readings and from the figures.
//!
//! What is slow to read (every kernel thread) is read outside the interval that what is quick to read (/proc/stat,
//! the device) spans, so that metering costs the step next to nothing: about 15 µs every 100 ms, for the dirty pages. A kernel that counts its
//! work would count that, too, so there is no peak of them there.

mod cpu;
mod device;
mod dirty;
mod process;
mod threads;
mod work;

pub use cpu::CpuTimes;
pub(crate) use device::Marker;
pub use device::{DeviceCounters, DeviceNumber};
pub use process::ProcessTimes;
pub use work::KernelWork;
pub(crate) use work::may_count;

use fstone_model::{
    Better, Unit,
    metric::{Figure, catalog},
};
use std::path::Path;
use std::time::{Duration, Instant};

/// Figures that only travel from a guest to its host, which puts what its disk counted between them in their place. Their
/// names end with the number of the interval's part, since no figure may be there twice.
const MARK_BEGIN: &str = "disk mark at the begin of part ";
const MARK_END: &str = "disk mark at the end of part ";

pub(crate) fn is_mark(figure: &Figure) -> bool {
    figure.metric.starts_with(MARK_BEGIN) || figure.metric.starts_with(MARK_END)
}

/// The marks of the disk among figures: between which of them the meters ran, part by part.
pub(crate) fn marks(figures: &[Figure]) -> Vec<(u64, u64)> {
    let of = |prefix: &'static str| {
        figures.iter().filter(move |figure| figure.metric.starts_with(prefix)).map(|figure| figure.value as u64)
    };
    of(MARK_BEGIN).zip(of(MARK_END)).collect()
}

pub(crate) fn covered(before: Option<(u64, u64)>, figures: &[Figure]) -> Option<(u64, u64)> {
    let marks = marks(figures);
    match (marks.first(), marks.last()) {
        (Some((begin, _)), Some((_, end))) => Some((before.map_or(*begin, |(first, _)| first), *end)),
        _ => before,
    }
}

pub(crate) fn marker(device: &Path) -> Option<Marker> {
    Marker::of(DeviceNumber::of(device)?)
}

/// Meters of one interval. Whatever happens while they pause is not in it.
#[derive(Debug)]
pub struct Meters {
    device: Option<DeviceNumber>,
    dirty: Option<dirty::Sampler>,
    /// Where the counters were when they last began to run; `None` while they pause.
    running: Option<Counters>,
    work: Option<work::Counter>,
    sum: Readings,
}

#[derive(Debug)]
struct Counters {
    tasks: Option<threads::Tasks>,
    process: Option<ProcessTimes>,
    device: Option<DeviceCounters>,
    mark: Option<u64>,
    cpu: Option<CpuTimes>,
    at: Instant,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Readings {
    pub elapsed: Duration,
    /// Time of all CPUs by kind, in ticks.
    pub cpu: Option<CpuTimes>,
    /// CPU time of kernel threads. Threads that ended meanwhile are missed.
    pub kernel_threads: Option<Duration>,
    /// CPU time of this process and of those of its children that it has waited for.
    pub process: Option<ProcessTimes>,
    /// CPU time of this process and all its descendants.
    pub trial: Option<Duration>,
    pub device: Option<DeviceCounters>,
    /// In a guest whose kernel counts.
    pub work: Option<KernelWork>,
    /// Largest amount of dirty page cache of the whole machine seen, in bytes.
    pub peak_dirty_bytes: Option<u64>,
    /// In a guest: the marks that were set on the host's side of the disk when each part began and ended.
    pub marks: Vec<(u64, u64)>,
}

impl Meters {
    /// Meters that do not run yet. `device` is the block device whose requests are counted, such as /dev/loop0.
    pub fn new(device: Option<&Path>) -> Self {
        let device = device.and_then(DeviceNumber::of);
        Self {
            device,
            dirty: (!work::counts()).then(dirty::Sampler::start),
            running: None,
            work: work::Counter::take(),
            sum: Readings::default(),
        }
    }

    pub fn begin(device: Option<&Path>) -> Self {
        let mut meters = Self::new(device);
        meters.resume();
        meters
    }

    /// Those of the processors alone, without a thread of their own.
    pub fn of_processors() -> Self {
        let mut meters = Self { device: None, dirty: None, running: None, work: None, sum: Readings::default() };
        meters.resume();
        meters
    }

    pub fn resume(&mut self) {
        if self.running.is_some() {
            return;
        }
        // The slow ones first.
        let tasks = threads::Tasks::read();
        let process = ProcessTimes::now();
        let device = self.device.and_then(DeviceCounters::read);
        let mark = self.device.and_then(DeviceNumber::mark);
        let cpu = CpuTimes::read();
        if let Some(work) = &mut self.work {
            work.resume();
        }
        self.running = Some(Counters { tasks, process, device, mark, cpu, at: Instant::now() });
    }

    /// Between two phases of a load the kernel's work is not counted, so that each phase has its own.
    pub(crate) fn phase_ended(&mut self) {
        if let Some(work) = &mut self.work {
            work.end_phase();
        }
    }

    pub(crate) fn phase_begins(&mut self) {
        if let Some(work) = &mut self.work {
            work.resume();
        }
    }

    pub fn pause(&mut self) {
        let Some(begin) = self.running.take() else { return };
        let elapsed = begin.at.elapsed();
        if let Some(work) = &mut self.work {
            work.pause();
        }
        let cpu = CpuTimes::read();
        let mark = self.device.and_then(DeviceNumber::mark);
        let device = self.device.and_then(DeviceCounters::read);
        let process = ProcessTimes::now();
        let tasks = threads::Tasks::read();
        self.sum.add(&Readings {
            elapsed,
            cpu: begin.cpu.zip(cpu).map(|(begin, end)| end.since(&begin)),
            kernel_threads: tasks
                .as_ref()
                .zip(begin.tasks.as_ref())
                .and_then(|(end, begin)| end.kernel_threads_since(begin)),
            trial: of_trial(process, tasks.as_ref())
                .zip(of_trial(begin.process, begin.tasks.as_ref()))
                .map(|(end, begin)| end.saturating_sub(begin)),
            process: begin.process.zip(process).map(|(begin, end)| end.since(&begin)),
            device: begin.device.zip(device).and_then(|(begin, end)| end.since(&begin)),
            work: None,
            peak_dirty_bytes: None,
            marks: begin.mark.zip(mark).into_iter().collect(),
        });
    }

    #[must_use]
    pub fn end(mut self) -> Readings {
        self.pause();
        Readings {
            work: self.work.and_then(|work| work.read()),
            peak_dirty_bytes: self.dirty.and_then(dirty::Sampler::stop),
            ..self.sum
        }
    }
}

fn of_trial(process: Option<ProcessTimes>, tasks: Option<&threads::Tasks>) -> Option<Duration> {
    Some(process?.total() + tasks?.of_descendants())
}

/// What two parts of an interval come to; where only one of them has a reading, that.
fn both<T>(one: Option<T>, other: Option<T>, sum: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(sum(one, other)),
        (one, other) => one.or(other),
    }
}

impl Readings {
    pub(crate) fn add(&mut self, later: &Self) {
        self.elapsed += later.elapsed;
        self.cpu = both(self.cpu, later.cpu, |one, other| one.plus(&other));
        self.kernel_threads = both(self.kernel_threads, later.kernel_threads, |one, other| one + other);
        self.trial = both(self.trial, later.trial, |one, other| one + other);
        self.process = both(self.process, later.process, |one, other| one.plus(&other));
        self.device = both(self.device, later.device, |one, other| one.plus(&other));
        self.work = both(self.work.take(), later.work.clone(), |one, other| one.plus(&other));
        self.peak_dirty_bytes = both(self.peak_dirty_bytes, later.peak_dirty_bytes, u64::max);
        self.marks.extend(&later.marks);
    }

    /// The figures, except those that need to know what the step did ([`catalog::TIME`], write amplification).
    ///
    /// The kernel counts CPU time in ticks, mostly of 10 ms: over a step that is shorter than a tick on every CPU there
    /// is nothing to tell, and over one of a few ticks single trials are coarse.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        let exact = self.work.as_ref().and_then(KernelWork::busy_shares);
        if let Some(cpu) = self.cpu.filter(|cpu| exact.is_some() || cpu.total() > 0) {
            let percent = |ticks: u64| ticks as f64 * 100.0 / cpu.total().max(1) as f64;
            let [mut user, mut system, mut irq] = [cpu.user + cpu.nice, cpu.system, cpu.irq + cpu.softirq].map(percent);
            let (mut busy, mut iowait) = (percent(cpu.busy()), percent(cpu.iowait));
            if let Some(shares) = exact {
                [user, system, irq] = shares.map(|share| share * 100.0);
                busy = user + system + irq;
                iowait = (100.0 - busy) * cpu.iowait as f64 / (cpu.idle + cpu.iowait).max(1) as f64;
            }
            figures.extend([
                catalog::CPU.figure(busy),
                catalog::CPU_USER.figure(user),
                catalog::CPU_SYSTEM.figure(system),
                catalog::CPU_IOWAIT.figure(iowait),
                catalog::CPU_IRQ.figure(irq),
                catalog::CPU_STEAL.figure(percent(cpu.steal)),
            ]);
        }
        let elapsed = self.elapsed.as_secs_f64();
        if elapsed > 0.0 {
            if let Some(process) = self.process {
                figures.push(catalog::PROCESS_CPU.figure(process.total().as_secs_f64() * 100.0 / elapsed));
            }
            figures.extend(self.trial.map(|time| catalog::TRIAL_CPU.figure(time.as_secs_f64() * 100.0 / elapsed)));
            if let (Some(threads), Some(cpu)) = (self.kernel_threads, self.cpu.filter(|cpu| cpu.cpus > 0)) {
                let share = threads.as_secs_f64() / (elapsed * f64::from(cpu.cpus));
                figures.push(catalog::KERNEL_THREADS_CPU.figure(share * 100.0));
            }
        }
        if let Some(device) = self.device {
            figures.extend([
                catalog::DEVICE_READ_BYTES.figure(device.read_bytes as f64),
                catalog::DEVICE_WRITTEN_BYTES.figure(device.written_bytes as f64),
                catalog::DEVICE_READS.figure(device.reads as f64),
                catalog::DEVICE_WRITES.figure(device.writes as f64),
            ]);
            figures.extend(device.flushes.map(|flushes| catalog::DEVICE_FLUSHES.figure(flushes as f64)));
            figures.extend(device.discards.map(|discards| catalog::DEVICE_DISCARDS.figure(discards as f64)));
            figures.extend(device.discarded_bytes.map(|bytes| catalog::DEVICE_DISCARDED_BYTES.figure(bytes as f64)));
        }
        if let Some(work) = &self.work {
            figures.push(catalog::KERNEL_WORK.figure(work.instructions as f64));
            figures.push(catalog::KERNEL_BACKGROUND_WORK.figure(work.background as f64));
            figures.push(catalog::KERNEL_INTERRUPT_WORK.figure(work.interrupts as f64));
            figures.push(catalog::KERNEL_COPIES.figure(work.bytes as f64));
            // Without what is between phases, where the kernel says for how long it counted.
            let counted = if work.wall_ns > 0 { work.wall_ns as f64 / 1e9 } else { elapsed };
            if work.charged_ns > 0 && counted > 0.0 {
                figures.push(catalog::KERNEL_TIME.figure(work.charged_ns as f64 / 1e7 / counted));
            }
        }
        figures.extend(self.peak_dirty_bytes.map(|bytes| catalog::PEAK_DIRTY_BYTES.figure(bytes as f64)));
        let mark = |prefix: &str, part: usize, number: u64| Figure {
            metric: format!("{prefix}{part}"),
            value: number as f64,
            unit: Unit::Count,
            better: Better::Neither,
        };
        for (part, (begin, end)) in self.marks.iter().enumerate() {
            figures.extend([mark(MARK_BEGIN, part, *begin), mark(MARK_END, part, *end)]);
        }
        figures
    }

    /// Bytes the device wrote per byte that the load asked to write; `None` when it asked for none.
    pub fn write_amplification(&self, asked_bytes: u64) -> Option<Figure> {
        let device = self.device.filter(|_| asked_bytes > 0)?;
        Some(catalog::WRITE_AMPLIFICATION.figure(device.written_bytes as f64 / asked_bytes as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(figures: &[Figure], metric: &str) -> Option<f64> {
        figures.iter().find(|figure| figure.metric == metric).map(|figure| figure.value)
    }

    #[test]
    fn figures_are_shares_of_the_whole_machine() {
        let readings = Readings {
            elapsed: Duration::from_secs(2),
            cpu: Some(CpuTimes {
                user: 50,
                nice: 10,
                system: 100,
                idle: 180,
                iowait: 20,
                irq: 4,
                softirq: 16,
                steal: 20,
                cpus: 2,
            }),
            kernel_threads: Some(Duration::from_secs(1)),
            process: Some(ProcessTimes { user: Duration::from_secs(1), system: Duration::from_secs(2) }),
            trial: Some(Duration::from_secs(4)),
            device: Some(DeviceCounters {
                written_bytes: 3 << 20,
                flushes: Some(7),
                discarded_bytes: None,
                ..DeviceCounters::default()
            }),
            work: Some(KernelWork {
                instructions: 7,
                bytes: 9,
                charged_ns: 500_000_000,
                background: 3,
                interrupts: 2,
                ..KernelWork::default()
            }),
            peak_dirty_bytes: Some(4096),
            marks: Vec::new(),
        };
        let figures = readings.figures();
        for (metric, expected) in [
            ("CPU", Some(45.0)),
            ("CPU user", Some(15.0)),
            ("CPU system", Some(25.0)),
            ("CPU iowait", Some(5.0)),
            ("CPU irq", Some(5.0)),
            ("CPU steal", Some(5.0)),
            ("process CPU", Some(150.0)),
            ("trial CPU", Some(200.0)),
            ("kernel threads CPU", Some(25.0)),
            ("device written bytes", Some(3145728.0)),
            ("device flushes", Some(7.0)),
            ("device discarded bytes", None),
            ("kernel work", Some(7.0)),
            ("kernel background work", Some(3.0)),
            ("kernel interrupt work", Some(2.0)),
            ("kernel copied bytes", Some(9.0)),
            ("kernel time", Some(25.0)),
            ("peak dirty bytes", Some(4096.0)),
        ] {
            assert_eq!(value(&figures, metric), expected, "{metric}");
        }
        // A kernel that says how long it idled is believed, also where no tick was counted.
        let exact = KernelWork { wall_ns: 1000, idle_ns: 900, charged_ns: 80, ..KernelWork::default() };
        let between =
            Readings { elapsed: Duration::from_nanos(2000), work: Some(exact.clone()), ..Readings::default() };
        assert_eq!(value(&between.figures(), "kernel time"), Some(8.0), "what is between phases is not counted");
        let short = Readings {
            cpu: Some(CpuTimes { cpus: 1, ..CpuTimes::default() }),
            work: Some(exact),
            ..Readings::default()
        };
        let figures = short.figures();
        for (metric, expected) in
            [("CPU", 10.0), ("CPU user", 2.0), ("CPU system", 8.0), ("CPU irq", 0.0), ("CPU iowait", 0.0)]
        {
            assert!((value(&figures, metric).expect(metric) - expected).abs() < 1e-9, "{metric}");
        }
        assert_eq!(readings.write_amplification(1 << 20).expect("asked for some").value, 3.0);
        assert_eq!(readings.write_amplification(0), None);
    }

    #[test]
    fn a_pause_is_not_in_the_interval() {
        let part = |seconds, ticks, writes, marks| Readings {
            elapsed: Duration::from_secs(seconds),
            cpu: Some(CpuTimes { user: ticks, idle: 10, cpus: 2, ..CpuTimes::default() }),
            kernel_threads: Some(Duration::from_secs(seconds)),
            process: Some(ProcessTimes { user: Duration::from_secs(seconds), system: Duration::ZERO }),
            trial: Some(Duration::from_secs(seconds)),
            device: Some(DeviceCounters { writes, flushes: Some(writes), ..DeviceCounters::default() }),
            work: None,
            peak_dirty_bytes: None,
            marks: vec![marks],
        };
        let mut sum = Readings::default();
        sum.add(&part(1, 3, 5, (7, 8)));
        sum.add(&part(2, 4, 6, (11, 12)));
        assert_eq!(
            sum,
            Readings {
                cpu: Some(CpuTimes { user: 7, idle: 20, cpus: 2, ..CpuTimes::default() }),
                marks: vec![(7, 8), (11, 12)],
                ..part(3, 0, 11, (0, 0))
            }
        );
        assert_eq!(marks(&sum.figures()), sum.marks, "the host learns of each part");

        let mut meters = Meters::begin(None);
        meters.pause();
        let while_running = meters.sum.elapsed;
        std::thread::sleep(Duration::from_millis(20));
        meters.pause();
        let read = meters.end();
        assert_eq!(read.elapsed, while_running, "and pausing twice is pausing once");
        let mut meters = Meters::begin(None);
        meters.resume();
        let started = meters.running.as_ref().expect("it runs").at;
        assert!(meters.end().elapsed <= started.elapsed());
        assert_eq!(Meters::new(None).end().elapsed, Duration::ZERO, "they never ran");
    }

    #[test]
    fn what_is_not_known_is_not_told() {
        assert_eq!(Readings::default().figures(), []);
        assert_eq!(Readings::default().write_amplification(1), None);
        let too_short = Readings { cpu: Some(CpuTimes { cpus: 2, ..CpuTimes::default() }), ..Readings::default() };
        assert_eq!(too_short.figures(), []);
    }

    #[test]
    fn this_machine_can_be_metered() {
        let meters = Meters::begin(None);
        // Until every counter has moved on, however coarse it is.
        let (mut sum, begin) = (0_u64, CpuTimes::read().expect("/proc/stat"));
        while CpuTimes::read().expect("/proc/stat").since(&begin).busy() < 2 {
            sum = (0..100_000).fold(sum, |sum, i| std::hint::black_box(sum ^ i));
        }
        let readings = meters.end();
        let figures = readings.figures();
        assert!(readings.elapsed > Duration::ZERO);
        assert!(readings.process.expect("getrusage").total() > Duration::ZERO, "{sum}");
        assert!(value(&figures, "peak dirty bytes").is_some());
        let all = readings.cpu.expect("/proc/stat");
        assert!(all.busy() >= 2 && all.cpus > 0);
        let cpu = value(&figures, "CPU").expect("CPU");
        assert!(cpu > 0.0 && cpu <= 100.0, "{cpu}");
        let parts = ["CPU user", "CPU system", "CPU irq"].map(|metric| value(&figures, metric).expect(metric));
        assert!((parts.iter().sum::<f64>() - cpu).abs() < 1e-9, "the parts add up");
        if let Some(threads) = value(&figures, "kernel threads CPU") {
            assert!((0.0..=100.0).contains(&threads), "{threads}");
        }
        // However short: this process is the larger part of it, and reading all tasks is none.
        let read = Meters::begin(None).end();
        assert!(read.trial.expect("/proc") >= read.process.expect("getrusage").total());
    }
}

//! How idle processors are while a load runs, as fio's `--idle-prof` measures it.
#![expect(unsafe_code, reason = "a thread of the lowest scheduling class, for which no crate has a call")]

use super::clock::thread_cpu_ns;
use fstone_model::CpuIdleness;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What one unit of work takes: some 50 µs, so that few are begun and not done.
const UNIT_STEPS: u64 = 30_000;
/// Units by which a processor is calibrated. The median of their times does not know of those that something came into.
const CALIBRATED_BY: usize = 21;

fn unit() {
    let mut state = black_box(1u64);
    for step in 0..UNIT_STEPS {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step));
    }
}

fn unit_ns() -> u64 {
    let mut times: Vec<u64> = (0..CALIBRATED_BY)
        .map(|_| {
            // Not the time of those that had the processor in between.
            let begun_ns = thread_cpu_ns();
            unit();
            thread_cpu_ns() - begun_ns
        })
        .collect();
    times.sort_unstable();
    times[CALIBRATED_BY / 2].max(1)
}

/// One processor's thread: it works only where nothing else wants the processor.
#[derive(Debug, Default)]
struct Cpu {
    number: u32,
    unit_ns: AtomicU64,
    done: AtomicU64,
}

#[derive(Debug, Default)]
struct Shared {
    cpus: Vec<Cpu>,
    /// Read after each unit.
    works: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    calibrated: usize,
    over: bool,
    begun: Option<Instant>,
    measured: Duration,
    counted: Vec<u64>,
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl Fn(&State) -> bool) -> bool {
        let state = self.changed.wait_while(self.state(), |state| condition(state));
        state.unwrap_or_else(PoisonError::into_inner).over
    }

    fn work(&self, cpu: &Cpu) {
        let mut set = CpuSet::new();
        set.set(cpu.number as usize);
        // A processor that was taken away in the meantime is idle for nobody.
        let is_there = sched_setaffinity(None, &set).is_ok();
        cpu.unit_ns.store(unit_ns(), Ordering::Relaxed);
        let is_lowest = is_there && lowest_class();
        self.state().calibrated += 1;
        self.changed.notify_all();
        while is_lowest && !self.wait_while(|state| !state.over && state.begun.is_none()) {
            while self.works.load(Ordering::Relaxed) {
                unit();
                cpu.done.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Puts the calling thread into SCHED_IDLE.
fn lowest_class() -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel reads the parameters, a live local; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) == 0 }
}

/// Threads of the lowest class, one on each processor that the process may use, that count units of work while a load runs.
#[derive(Debug)]
pub struct IdleMeter {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl IdleMeter {
    /// Starts and calibrates them. They do nothing until [`Self::begin`].
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start() -> std::io::Result<Self> {
        let allowed = sched_getaffinity(None)?;
        let numbers = (0..CpuSet::MAX_CPU).filter(|number| allowed.is_set(*number));
        let cpus: Vec<Cpu> = numbers.map(|number| Cpu { number: number as u32, ..Cpu::default() }).collect();
        let counted = vec![0; cpus.len()];
        let shared = Shared { cpus, state: Mutex::new(State { counted, ..State::default() }), ..Shared::default() };
        let mut meter = Self { shared: Arc::new(shared), threads: Vec::new() };
        for index in 0..meter.shared.cpus.len() {
            let shared = Arc::clone(&meter.shared);
            let thread = std::thread::Builder::new().name(format!("idle-{index}"));
            meter.threads.push(thread.spawn(move || shared.work(&shared.cpus[index]))?);
        }
        meter.shared.wait_while(|state| state.calibrated < meter.shared.cpus.len());
        Ok(meter)
    }

    /// An interval begins that is measured.
    pub fn begin(&self) {
        self.shared.cpus.iter().for_each(|cpu| cpu.done.store(0, Ordering::Relaxed));
        self.shared.works.store(true, Ordering::Relaxed);
        self.shared.state().begun = Some(Instant::now());
        self.shared.changed.notify_all();
    }

    /// It has ended. Without one that has begun, nothing happens.
    pub fn end(&self) {
        let mut state = self.shared.state();
        let Some(begun) = state.begun.take() else { return };
        self.shared.works.store(false, Ordering::Relaxed);
        state.measured += begun.elapsed();
        for (counted, cpu) in state.counted.iter_mut().zip(&self.shared.cpus) {
            *counted += cpu.done.load(Ordering::Relaxed);
        }
    }

    /// How idle they were in all intervals.
    pub fn found(&self) -> CpuIdleness {
        let state = self.shared.state();
        let measured_ns = state.measured.as_nanos() as f64;
        let unit_ns = |cpu: &Cpu| cpu.unit_ns.load(Ordering::Relaxed) as f64;
        let percent = |(cpu, counted): (&Cpu, &u64)| {
            let worked = *counted as f64 * unit_ns(cpu);
            (cpu.number, if measured_ns > 0.0 { (worked * 100.0 / measured_ns).min(100.0) } else { 0.0 })
        };
        let count = self.shared.cpus.len().max(1) as f64;
        let mean = self.shared.cpus.iter().map(unit_ns).sum::<f64>() / count;
        let squares = self.shared.cpus.iter().map(|cpu| (unit_ns(cpu) - mean).powi(2)).sum::<f64>();
        CpuIdleness {
            cpus_percent: self.shared.cpus.iter().zip(&state.counted).map(percent).collect(),
            unit_mean_ns: mean,
            unit_deviation_ns: (squares / (count - 1.0).max(1.0)).sqrt(),
        }
    }
}

impl Drop for IdleMeter {
    fn drop(&mut self) {
        self.end();
        self.shared.state().over = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_counted_while_an_interval_is_measured() {
        let meter = IdleMeter::start().expect("threads can be started");
        assert!(meter.found().cpus_percent.iter().all(|(_, percent)| *percent == 0.0), "nothing was measured");
        assert!(meter.found().unit_mean_ns > 0.0);
        meter.begin();
        std::thread::sleep(Duration::from_millis(200));
        meter.end();
        let found = meter.found();
        assert!(found.cpus_percent.iter().all(|(_, percent)| (0.0..=100.0).contains(percent)), "{found:?}");
        std::thread::sleep(Duration::from_millis(20));
        meter.end();
        assert_eq!(meter.found(), found, "it is over");
    }
}

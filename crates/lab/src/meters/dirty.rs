//! The largest amount of dirty page cache, sampled by a small thread from /proc/meminfo.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Write-back wakes up every 5 s and the limit of dirty memory is filled in seconds: a peak lasts longer than this.
const INTERVAL: Duration = Duration::from_millis(100);

/// The thread needs a page or two.
const STACK_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Sampler {
    /// Dropped, it wakes the thread up for its last sample.
    running: Option<Sender<()>>,
    thread: Option<JoinHandle<Option<u64>>>,
}

impl Sampler {
    /// Starts sampling; without a thread, and so without a reading, where that is impossible.
    pub(super) fn start() -> Self {
        let (running, stopped) = mpsc::channel();
        let sample_until_stopped = move || {
            let meminfo = File::open("/proc/meminfo").ok()?;
            let mut peak = sample(&meminfo);
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                peak = peak.max(sample(&meminfo));
            }
            peak.max(sample(&meminfo))
        };
        let builder = thread::Builder::new().name("fstone-dirty".into()).stack_size(STACK_BYTES);
        Self { running: Some(running), thread: builder.spawn(sample_until_stopped).ok() }
    }

    /// Stops, and tells the peak in bytes.
    pub(super) fn stop(mut self) -> Option<u64> {
        self.join()
    }

    fn join(&mut self) -> Option<u64> {
        self.running = None;
        self.thread.take()?.join().ok()?
    }
}

/// A trial that ends early leaves no thread behind.
impl Drop for Sampler {
    fn drop(&mut self) {
        self.join();
    }
}

fn sample(meminfo: &File) -> Option<u64> {
    let mut buffer = [0; 4096];
    let length = meminfo.read_at(&mut buffer, 0).ok()?;
    parse(std::str::from_utf8(&buffer[..length]).ok()?)
}

fn parse(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("Dirty:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_hostile_and_short_texts() {
        let recorded =
            "MemTotal:       24684092 kB\nActive(file):    10 kB\nDirty:             76764 kB\nWriteback: 3 kB\n";
        assert_eq!(parse(recorded), Some(76_764 * 1024));
        for text in
            ["", "Dirty:", "Dirty: kB", "Dirty: 5", "Dirty: -5 kB", "Dirty: 99999999999999999 kB", "Writeback: 1 kB"]
        {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_sampler_tells_a_peak_and_ends_when_dropped() {
        assert!(Sampler::start().stop().is_some());
        drop(Sampler::start());
    }
}

//! CPU time of kernel threads: write-back, journals, workqueues.
//!
//! They are the tasks with PF_KTHREAD in their flags (field 9 of /proc/PID/stat, proc_pid_stat(5)). Their run time is
//! the first number of /proc/PID/schedstat, in nanoseconds; where the kernel has none, the ticks of stat serve.
//! In a container with a PID namespace of its own there are no kernel threads to be seen, and so no figure.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

/// The kernel's flag for a kernel thread, in include/linux/sched.h.
const PF_KTHREAD: u64 = 0x0020_0000;

/// Reading a task costs about 20 µs; with more tasks than this it is not cheap any more, and left out.
const MOST_TASKS: usize = 16_384;

/// Run time of each kernel thread, by process id and start time: ids are used again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KernelThreads {
    run_times: HashMap<(u32, u64), Duration>,
}

impl KernelThreads {
    /// As of now; `None` when none can be seen.
    pub(super) fn read() -> Option<Self> {
        let mut run_times = HashMap::new();
        let mut tasks = 0;
        for entry in fs::read_dir("/proc").ok()?.flatten() {
            let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            tasks += 1;
            if tasks > MOST_TASKS {
                return None;
            }
            // A task may end while it is looked at; it is left out then.
            let Some(task) = fs::read(format!("/proc/{process}/stat")).ok().and_then(|text| Task::parse(&text)) else {
                continue;
            };
            if task.flags & PF_KTHREAD == 0 {
                continue;
            }
            let exact = fs::read_to_string(format!("/proc/{process}/schedstat")).ok();
            let run_time = exact.and_then(|text| parse_schedstat(&text)).unwrap_or_else(|| task.run_time());
            run_times.insert((process, task.started_ticks), run_time);
        }
        (!run_times.is_empty()).then_some(Self { run_times })
    }

    /// What was added since an earlier reading. A thread that is new counts from its start; one that has ended
    /// meanwhile is missed, so this is a lower bound.
    pub(super) fn since(&self, earlier: &Self) -> Duration {
        self.run_times
            .iter()
            .map(|(thread, time)| time.saturating_sub(earlier.run_times.get(thread).copied().unwrap_or(Duration::ZERO)))
            .sum()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Task {
    flags: u64,
    run_ticks: u64,
    started_ticks: u64,
}

impl Task {
    /// The name, the second field, is in parentheses and may have parentheses, spaces, line ends and any byte in it.
    fn parse(text: &[u8]) -> Option<Self> {
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let fields: Vec<&str> = std::str::from_utf8(&text[name_end + 1..]).ok()?.split_ascii_whitespace().collect();
        // The first of these is field 3 of the manual page, the state.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self { flags: field(9)?, run_ticks: field(14)?.saturating_add(field(15)?), started_ticks: field(22)? })
    }

    fn run_time(&self) -> Duration {
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        Duration::from_secs_f64(self.run_ticks.min(1 << 52) as f64 / ticks_per_second as f64)
    }
}

fn parse_schedstat(text: &str) -> Option<Duration> {
    text.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KTHREADD: &str = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 3 4 0 0 20 0 1 0 10 0 0 18446744073709551615 0 0";

    #[test]
    fn recorded_texts_are_read() {
        let task = Task::parse(KTHREADD.as_bytes()).expect("a stat");
        assert_eq!(task, Task { flags: 2_129_984, run_ticks: 7, started_ticks: 10 });
        assert!(task.flags & PF_KTHREAD != 0);
        let hostile = KTHREADD.replace("(kthreadd)", "(a) S 0 0 0 0 -1 0\n(\u{7f})");
        assert_eq!(Task::parse(hostile.as_bytes()), Some(task), "a name is no field");
        assert_eq!(Task::parse(&[b"2 (\xff\xfe) ", &KTHREADD.as_bytes()[13..]].concat()), Some(task));
        assert_eq!(parse_schedstat("2139272 6148478 61\n"), Some(Duration::from_nanos(2_139_272)));
    }

    #[test]
    fn hostile_and_short_texts_are_not() {
        for text in ["", "2", "2 (kthreadd)", "2 (kthreadd) S 0 0", "(((((", ")", &KTHREADD.replace("2129984", "-5")] {
            assert_eq!(Task::parse(text.as_bytes()), None, "{text:?}");
        }
        for text in ["", "\n", "x", "-3 1 1"] {
            assert_eq!(parse_schedstat(text), None, "{text:?}");
        }
        let forever = Task { flags: 0, run_ticks: u64::MAX, started_ticks: 0 };
        assert!(forever.run_time() > Duration::ZERO, "no overflow");
    }

    #[test]
    fn threads_that_come_and_go() {
        let times = |list: &[((u32, u64), u64)]| KernelThreads {
            run_times: list.iter().map(|(thread, seconds)| (*thread, Duration::from_secs(*seconds))).collect(),
        };
        let earlier = times(&[((2, 10), 5), ((3, 10), 7), ((4, 10), 9)]);
        let later = times(&[((2, 10), 6), ((3, 99), 2), ((5, 99), 4)]);
        let expected = Duration::from_secs(1 + 2 + 4);
        assert_eq!(later.since(&earlier), expected, "2 went on; 3 is another one by now; 5 is new; 4 has ended");
    }
}

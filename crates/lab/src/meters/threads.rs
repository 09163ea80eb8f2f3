//! CPU time of kernel threads (write-back, journals, workqueues) and of this process's living descendants.
//!
//! Kernel threads are the tasks with PF_KTHREAD in their flags (field 9 of /proc/PID/stat, proc_pid_stat(5)). Their run time is
//! the first number of /proc/PID/schedstat, in nanoseconds; where the kernel has none, the ticks of stat serve.
//! In a container with a PID namespace of its own there are no kernel threads to be seen, and so no figure.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

/// The kernel's flag for a kernel thread, in include/linux/sched.h.
const PF_KTHREAD: u64 = 0x0020_0000;

/// Reading a task costs about 20 µs; with more tasks than this it is not cheap any more, and left out.
const MOST_TASKS: usize = 16_384;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tasks {
    /// Run time of each kernel thread, by process id and start time: ids are used again.
    kernel_threads: HashMap<(u32, u64), Duration>,
    /// CPU time of this process's living descendants, and of those of their children that were waited for. Of one that ended it is in
    /// its parent's, so that the sum with [`ProcessTimes`](super::ProcessTimes) only grows. What this process itself runs while it reads
    /// all tasks is not in it.
    descendants_ticks: u64,
}

impl Tasks {
    /// As of now; `None` when there are too many.
    pub(super) fn read() -> Option<Self> {
        let mut kernel_threads = HashMap::new();
        let mut processes = HashMap::new();
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
                processes.insert(process, task);
                continue;
            }
            let exact = fs::read_to_string(format!("/proc/{process}/schedstat")).ok();
            let run_time = exact.and_then(|text| parse_schedstat(&text)).unwrap_or_else(|| of_ticks(task.run_ticks));
            kernel_threads.insert((process, task.started_ticks), run_time);
        }
        // As this /proc numbers it.
        let own = fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()?;
        Some(Self { kernel_threads, descendants_ticks: ticks_below(own, &processes) })
    }

    /// What kernel threads ran since an earlier reading; `None` when none can be seen. A thread that is new counts from its start; one
    /// that has ended meanwhile is missed, so this is a lower bound.
    pub(super) fn kernel_threads_since(&self, earlier: &Self) -> Option<Duration> {
        let before = |thread| earlier.kernel_threads.get(thread).copied().unwrap_or(Duration::ZERO);
        let since = self.kernel_threads.iter().map(|(thread, time)| time.saturating_sub(before(thread))).sum();
        (!self.kernel_threads.is_empty()).then_some(since)
    }

    pub(super) fn of_descendants(&self) -> Duration {
        of_ticks(self.descendants_ticks)
    }
}

/// What a process's descendants ran, and those of their children that were waited for.
fn ticks_below(root: u32, processes: &HashMap<u32, Task>) -> u64 {
    let mut children = HashMap::<u32, Vec<u32>>::new();
    for (id, task) in processes {
        children.entry(task.parent).or_default().push(*id);
    }
    let mut sum = 0u64;
    let mut next = vec![root];
    while let Some(process) = next.pop() {
        if let Some(task) = processes.get(&process).filter(|_| process != root) {
            sum = sum.saturating_add(task.run_ticks).saturating_add(task.waited_ticks);
        }
        // Taken out, because parents that were read while they came and went could seem to be in a circle.
        next.extend(children.remove(&process).unwrap_or_default().into_iter().filter(|child| *child != root));
    }
    sum
}

fn of_ticks(ticks: u64) -> Duration {
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_secs_f64(ticks.min(1 << 52) as f64 / ticks_per_second as f64)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Task {
    parent: u32,
    flags: u64,
    run_ticks: u64,
    /// Of children that were waited for.
    waited_ticks: u64,
    started_ticks: u64,
}

impl Task {
    /// The name, the second field, is in parentheses and may have parentheses, spaces, line ends and any byte in it.
    fn parse(text: &[u8]) -> Option<Self> {
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let fields: Vec<&str> = std::str::from_utf8(&text[name_end + 1..]).ok()?.split_ascii_whitespace().collect();
        // The first of these is field 3 of the manual page, the state.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            parent: u32::try_from(field(4)?).ok()?,
            flags: field(9)?,
            run_ticks: field(14)?.saturating_add(field(15)?),
            waited_ticks: field(16)?.saturating_add(field(17)?),
            started_ticks: field(22)?,
        })
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
        assert_eq!(task, Task { parent: 0, flags: 2_129_984, run_ticks: 7, waited_ticks: 0, started_ticks: 10 });
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
        assert!(of_ticks(u64::MAX) > Duration::ZERO, "no overflow");
    }

    #[test]
    fn threads_that_come_and_go() {
        let times = |list: &[((u32, u64), u64)]| Tasks {
            kernel_threads: list.iter().map(|(thread, seconds)| (*thread, Duration::from_secs(*seconds))).collect(),
            descendants_ticks: 0,
        };
        let earlier = times(&[((2, 10), 5), ((3, 10), 7), ((4, 10), 9)]);
        let later = times(&[((2, 10), 6), ((3, 99), 2), ((5, 99), 4)]);
        let expected = Duration::from_secs(1 + 2 + 4);
        let since = later.kernel_threads_since(&earlier);
        assert_eq!(since, Some(expected), "2 went on; 3 is another one by now; 5 is new; 4 has ended");
        assert_eq!(Tasks::default().kernel_threads_since(&earlier), None);
    }

    #[test]
    fn below_a_process_are_all_descendants_and_nobody_else() {
        let task =
            |parent, run_ticks, waited_ticks| Task { parent, flags: 0, run_ticks, waited_ticks, started_ticks: 0 };
        let processes =
            [(1, task(0, 9, 9)), (5, task(1, 1, 2)), (6, task(5, 10, 20)), (7, task(6, 100, 0)), (8, task(1, 9, 0))];
        assert_eq!(ticks_below(5, &processes.into()), 130);
        assert_eq!(ticks_below(5, &[(5, task(6, 1, 0)), (6, task(5, 1, 0))].into()), 1);
    }
}

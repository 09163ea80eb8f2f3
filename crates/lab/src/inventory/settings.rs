//! Kernel settings that bear on the figures.

use super::{machine, text};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Not settings of anybody's: they change by themselves.
pub const STATES: [&str; 2] = ["kernel.tainted", "load average at the start"];

/// Files with one value: (name in the record, path).
const FILES: [(&str, &str); 24] = [
    ("vm.dirty_ratio", "/proc/sys/vm/dirty_ratio"),
    ("vm.dirty_bytes", "/proc/sys/vm/dirty_bytes"),
    ("vm.dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio"),
    ("vm.dirty_background_bytes", "/proc/sys/vm/dirty_background_bytes"),
    ("vm.dirty_expire_centisecs", "/proc/sys/vm/dirty_expire_centisecs"),
    ("vm.dirty_writeback_centisecs", "/proc/sys/vm/dirty_writeback_centisecs"),
    ("vm.dirtytime_expire_seconds", "/proc/sys/vm/dirtytime_expire_seconds"),
    ("vm.laptop_mode", "/proc/sys/vm/laptop_mode"),
    ("vm.swappiness", "/proc/sys/vm/swappiness"),
    ("vm.vfs_cache_pressure", "/proc/sys/vm/vfs_cache_pressure"),
    ("vm.overcommit_memory", "/proc/sys/vm/overcommit_memory"),
    ("fs.aio-max-nr", "/proc/sys/fs/aio-max-nr"),
    ("fs.file-max", "/proc/sys/fs/file-max"),
    ("kernel.io_uring_disabled", "/proc/sys/kernel/io_uring_disabled"),
    ("kernel.tainted", "/proc/sys/kernel/tainted"),
    ("clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("transparent huge pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("simultaneous multithreading", "/sys/devices/system/cpu/smt/active"),
    ("CPU boost", "/sys/devices/system/cpu/cpufreq/boost"),
    ("CPU no turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("CPU idle driver", "/sys/devices/system/cpu/cpuidle/current_driver"),
    ("CPU limit of the control group", "/sys/fs/cgroup/cpu.max"),
    ("memory limit of the control group", "/sys/fs/cgroup/memory.max"),
    ("load average at the start", "/proc/loadavg"),
];

/// Files that every CPU has; CPUs are counted by value.
const PER_CPU: [(&str, &str); 4] = [
    ("CPU frequency governor", "cpufreq/scaling_governor"),
    ("CPU frequency driver", "cpufreq/scaling_driver"),
    ("CPU minimum frequency, kHz", "cpufreq/scaling_min_freq"),
    ("CPU maximum frequency, kHz", "cpufreq/scaling_max_freq"),
];

pub(super) fn read(meminfo: &str) -> Vec<(String, String)> {
    let files = FILES.iter().filter_map(|(name, path)| Some(((*name).to_owned(), text::read_line(Path::new(path))?)));
    let mut settings: Vec<(String, String)> = files.collect();
    let cpus = Path::new("/sys/devices/system/cpu");
    settings.extend(PER_CPU.iter().filter_map(|(name, file)| Some(((*name).to_owned(), per_cpu(cpus, file)?))));
    if let Some(swap) = machine::memory_bytes(meminfo, "SwapTotal") {
        settings.push(("swap, bytes".to_owned(), swap.to_string()));
    }
    let status = text::read(Path::new("/proc/self/status")).unwrap_or_default();
    if let Some(allowed) = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")) {
        settings.push(("CPUs allowed".to_owned(), text::clean(allowed)));
    }
    settings
}

/// "performance" when all CPUs agree, else "performance (4 CPUs), powersave (12 CPUs)".
fn per_cpu(cpus: &Path, file: &str) -> Option<String> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for entry in fs::read_dir(cpus).ok()?.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("cpu"));
        if number.is_some_and(|number| number.parse::<u32>().is_ok())
            && let Some(value) = text::read_line(&entry.path().join(file))
        {
            *counts.entry(value).or_default() += 1;
        }
    }
    match counts.len() {
        0 => None,
        1 => counts.into_keys().next(),
        _ => Some(counts.iter().map(|(value, count)| format!("{value} ({count} CPUs)")).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_disagree_are_counted() {
        let directory = tempfile::tempdir().expect("a directory");
        let set = |cpu: &str, value: &str| {
            fs::create_dir_all(directory.path().join(cpu)).expect("made");
            fs::write(directory.path().join(cpu).join("governor"), value).expect("written");
        };
        assert_eq!(per_cpu(directory.path(), "governor"), None);
        set("cpu0", "powersave\n");
        set("cpu1", "powersave\n");
        set("cpufreq", "no CPU\n");
        assert_eq!(per_cpu(directory.path(), "governor").as_deref(), Some("powersave"));
        set("cpu10", "performance\n");
        let both = per_cpu(directory.path(), "governor");
        assert_eq!(both.as_deref(), Some("performance (1 CPUs), powersave (2 CPUs)"));
    }
}

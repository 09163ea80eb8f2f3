//! Where the tasks of a child agent are stuck, as the kernel tells it.
//!
//! All of it is read from /proc, and nothing that waits for the task that is looked at: no command line, no memory map.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Tasks that are told of, the blocked ones first.
const TASKS: usize = 8;
const LINES: usize = 16;

/// The stacks of the tasks that this process and all in its pid namespace have, in the form of the kernel's own list of
/// blocked tasks. Where there is no namespace, of this process alone.
pub(super) fn describe() -> String {
    // What waits to be called on is where it should be; it is told of only when nothing is blocked.
    blocked().unwrap_or_else(|| told(&all()))
}

/// The same of what cannot even be killed, when there is such a task.
pub fn blocked() -> Option<String> {
    let mut tasks = all();
    tasks.retain(|(blocked, _)| *blocked);
    (!tasks.is_empty()).then(|| told(&tasks))
}

fn all() -> Vec<(bool, String)> {
    processes().iter().flat_map(|process| tasks_of(process)).collect()
}

fn told(tasks: &[(bool, String)]) -> String {
    let mut text = String::from("Show Blocked State\n");
    for (_, task) in tasks.iter().take(TASKS) {
        text.push_str(task);
    }
    text
}

fn processes() -> Vec<PathBuf> {
    let own = PathBuf::from("/proc/self");
    let namespace = |process: &Path| fs::read_link(process.join("ns/pid")).ok();
    // In a namespace of its own the numbers that a process and the host's /proc have for it differ.
    let Some(ours) = namespace(&own).filter(|_| in_namespace()) else { return vec![own] };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(|process| namespace(process).as_ref() == Some(&ours)).collect();
    // This one first: it is mostly the one that waits, for a file or for a program.
    let number = fs::read_link(own).unwrap_or_default();
    found.sort_by_key(|process| process.file_name() != Some(number.as_os_str()));
    found
}

/// Whether process 1 is another for this process than for the /proc it sees.
fn in_namespace() -> bool {
    fs::read_link("/proc/self").is_ok_and(|seen| seen != Path::new(&std::process::id().to_string()))
}

fn tasks_of(process: &Path) -> Vec<(bool, String)> {
    let entries = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| task(&entry.path())).collect()
}

fn task(path: &Path) -> Option<(bool, String)> {
    let read = |name: &str| fs::read_to_string(path.join(name)).unwrap_or_default();
    let status = read("status");
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let state = field("State:")?.chars().next()?;
    let name = field("Name:")?;
    let number = path.file_name()?.to_string_lossy();
    let mut text = String::new();
    writeln!(text, "task:{name} state:{state} pid:{number}").ok()?;
    let stack = read("stack");
    if stack.is_empty() {
        // Only root may read stacks.
        writeln!(text, " {}", read("wchan")).ok()?;
    }
    for line in stack.lines().take(LINES) {
        // The addresses are all zero for a reader like this one.
        writeln!(text, " {}", line.trim_start_matches("[<0>] ")).ok()?;
    }
    Some((state == 'D', text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_tasks_are_told_of() {
        let text = describe();
        assert!(text.starts_with("Show Blocked State\n"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("task:") && line.contains(" state:")), "{text}");
    }
}

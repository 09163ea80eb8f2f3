//! What kernels did, function by function.

use fstone_analysis::{
    number::grouped,
    profile::{Change, Profile, changes},
    text,
};
use std::fmt::Write as _;

fn head(profile: &Profile) -> String {
    let each = if profile.operations > 1.0 {
        let (per, operations) = (profile.instructions / profile.operations, profile.operations);
        format!(", {} for each of {} operations", grouped(per, 1), grouped(operations, 0))
    } else {
        String::new()
    };
    let (row, step) = (text::line(&profile.row), text::line(&profile.step));
    format!("{row}, {step}: {} instructions of the kernel{each}\n", grouped(profile.instructions, 0))
}

/// The tasks, and the functions with the most work, each with its share and what it and those above it come to.
pub fn profile(profile: &Profile, most: usize) -> String {
    let mut out = head(profile);
    let share = |count: f64| count * 100.0 / profile.instructions.max(1.0);
    let tasks = profile.tasks.iter().map(|(name, count)| format!("{} {:.2} %", text::line(name), share(*count)));
    let tasks: Vec<String> = tasks.collect();
    if !tasks.is_empty() {
        let _ = writeln!(out, "  by task: {}", tasks.join(", "));
    }
    let _ = writeln!(out, "  {:>14} {:>8} {:>8}  function", "per operation", "share", "sum");
    let mut sum = 0.0;
    for (name, count) in profile.functions.iter().take(most) {
        sum += count;
        let each = grouped(count / profile.operations, 1);
        let _ = writeln!(out, "  {each:>14} {:>6.2} % {:>6.2} %  {}", share(*count), share(sum), text::line(name));
    }
    rest(&mut out, profile.functions.len(), most);
    out
}

/// The calls with the most work beneath them, as a tree: what each and all that it called did, and what it did itself, as shares of all samples.
pub fn profile_calls(profile: &Profile, most: usize) -> String {
    let mut out = head(profile);
    let _ = writeln!(out, "  {:>14} {:>8} {:>8}  call", "per operation", "share", "itself");
    let mut kept: Vec<usize> = (0..profile.calls.len()).collect();
    // Stable: what has no less work than what it called stays before it.
    kept.sort_by(|one, other| profile.calls[*other].all.total_cmp(&profile.calls[*one].all));
    kept.truncate(most);
    kept.sort_unstable();
    let all: f64 = profile.calls.iter().map(|call| call.own).sum();
    for call in kept.iter().map(|number| &profile.calls[*number]) {
        let share = |count: f64| count * 100.0 / all.max(1.0);
        let each = grouped(call.all / profile.operations, 1);
        let (name, indent) = (text::line(&call.function), "  ".repeat(call.depth - 1));
        let _ = writeln!(out, "  {each:>14} {:>6.2} % {:>6.2} %  {indent}{name}", share(call.all), share(call.own));
    }
    rest(&mut out, profile.calls.len(), most);
    out
}

/// What differs between two profiles, per operation, the largest difference first.
pub fn profile_difference(before: &Profile, after: &Profile, most: usize) -> String {
    let mut out = format!("before: {}after:  {}", head(before), head(after));
    let found = changes(before, after);
    if found.is_empty() {
        return out + "  every function did the same, to the instruction\n";
    }
    let each = |profile: &Profile| profile.instructions / profile.operations;
    let (one, other) = (each(before), each(after));
    let whole = Change { function: "all of the kernel".into(), before: one, after: other };
    let _ = writeln!(out, "  {:>14} {:>14} {:>14} {:>10}  function", "before", "after", "difference", "of all");
    for change in std::iter::once(&whole).chain(found.iter().take(most)) {
        let difference = change.after - change.before;
        let _ = writeln!(
            out,
            "  {:>14} {:>14} {:>14} {:>+8.2} %  {}",
            grouped(change.before, 1),
            grouped(change.after, 1),
            format!("{}{}", if difference < 0.0 { "-" } else { "+" }, grouped(difference.abs(), 1)),
            difference * 100.0 / one.max(1.0),
            text::line(&change.function)
        );
    }
    rest(&mut out, found.len(), most);
    out
}

fn rest(out: &mut String, all: usize, most: usize) {
    if all > most {
        let _ = writeln!(out, "  and {} more (--lines {all})", all - most);
    }
}

/// One line for each path of calls, or for each function if there are none, as viewers of flame graphs read them.
pub fn profile_folded(profile: &Profile) -> String {
    let plain = |name: &str| text::line(name).replace([';', ' '], "_");
    let mut path = vec![plain(&profile.row), plain(&profile.step)];
    let functions = profile.functions.iter().map(|(name, count)| (1, name, *count));
    let calls = profile.calls.iter().map(|call| (call.depth, &call.function, call.own));
    let lines: Vec<_> = if profile.calls.is_empty() { functions.collect() } else { calls.collect() };
    let mut out = String::new();
    for (depth, name, count) in lines {
        path.truncate(depth + 1);
        path.push(plain(name));
        if count > 0.0 {
            let _ = writeln!(out, "{} {count:.0}", path.join(";"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_and_a_difference_are_per_operation() {
        let of = |row: &str, functions: &[(&str, f64)]| Profile {
            row: row.into(),
            step: "create".into(),
            instructions: functions.iter().map(|(_, count)| count).sum(),
            operations: 10.0,
            functions: functions.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            tasks: Vec::new(),
            calls: Vec::new(),
        };
        let [ext4, xfs] =
            [of("ext4", &[("walk", 60.0), ("crc32", 40.0)]), of("x;fs", &[("walk", 60.0), ("log", 20.0)])];
        assert_eq!(
            profile(&ext4, 1),
            "ext4, create: 100 instructions of the kernel, 10.0 for each of 10 operations\n\
             \x20  per operation    share      sum  function\n\
             \x20            6.0  60.00 %  60.00 %  walk\n\
             \x20 and 1 more (--lines 2)\n"
        );
        let tasks = vec![("fstone".to_owned(), 80.0), ("interrupts".to_owned(), 20.0)];
        let busy = profile(&Profile { tasks, ..ext4.clone() }, 1);
        assert!(busy.contains("\n  by task: fstone 80.00 %, interrupts 20.00 %\n"), "{busy}");
        assert_eq!(
            profile_difference(&ext4, &xfs, 9),
            "before: ext4, create: 100 instructions of the kernel, 10.0 for each of 10 operations\n\
             after:  x;fs, create: 80 instructions of the kernel, 8.0 for each of 10 operations\n\
             \x20         before          after     difference     of all  function\n\
             \x20           10.0            8.0           -2.0   -20.00 %  all of the kernel\n\
             \x20            4.0            0.0           -4.0   -40.00 %  crc32\n\
             \x20            0.0            2.0           +2.0   +20.00 %  log\n"
        );
        assert!(profile_difference(&ext4, &ext4, 9).ends_with("every function did the same, to the instruction\n"));
        assert_eq!(profile_folded(&xfs), "x_fs;create;walk 60\nx_fs;create;log 20\n");

        let call = |depth, function: &str, own, all| fstone_analysis::profile::Call {
            depth,
            function: function.into(),
            own,
            all,
        };
        let tree = vec![call(1, "sys_open", 0.0, 90.0), call(2, "walk", 60.0, 60.0), call(2, "crc32", 30.0, 30.0)];
        let ext4 = Profile { calls: tree, ..ext4 };
        assert_eq!(
            profile_calls(&ext4, 2),
            "ext4, create: 100 instructions of the kernel, 10.0 for each of 10 operations\n\
             \x20  per operation    share   itself  call\n\
             \x20            9.0 100.00 %   0.00 %  sys_open\n\
             \x20            6.0  66.67 %  66.67 %    walk\n\
             \x20 and 1 more (--lines 3)\n"
        );
        let tie = vec![call(1, "a", 0.0, 30.0), call(2, "b", 0.0, 30.0), call(3, "c", 30.0, 30.0)];
        let shown = profile_calls(&Profile { calls: tie, ..ext4.clone() }, 2);
        assert!(shown.contains("  b\n") && shown.ends_with("and 1 more (--lines 3)\n"), "{shown}");
        assert_eq!(profile_folded(&ext4), "ext4;create;sys_open;walk 60\next4;create;sys_open;crc32 30\n");
    }
}

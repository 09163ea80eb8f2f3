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

/// The functions with the most work, each with its share and what it and those above it come to.
pub fn profile(profile: &Profile, most: usize) -> String {
    let mut out = head(profile);
    let _ = writeln!(out, "  {:>14} {:>8} {:>8}  function", "per operation", "share", "sum");
    let mut sum = 0.0;
    for (name, count) in profile.functions.iter().take(most) {
        sum += count;
        let share = |count: f64| count * 100.0 / profile.instructions.max(1.0);
        let each = grouped(count / profile.operations, 1);
        let _ = writeln!(out, "  {each:>14} {:>6.2} % {:>6.2} %  {}", share(*count), share(sum), text::line(name));
    }
    rest(&mut out, profile.functions.len(), most);
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
        let _ = writeln!(out, "  and {} more (--lines {all})", text::counted(all - most, "function"));
    }
}

/// One line for each function, as viewers of flame graphs read them.
pub fn profile_folded(profile: &Profile) -> String {
    let plain = |name: &str| text::line(name).replace([';', ' '], "_");
    let lines = profile
        .functions
        .iter()
        .map(|(name, count)| format!("{};{};{} {count:.0}\n", plain(&profile.row), plain(&profile.step), plain(name)));
    lines.collect()
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
        };
        let [ext4, xfs] =
            [of("ext4", &[("walk", 60.0), ("crc32", 40.0)]), of("x;fs", &[("walk", 60.0), ("log", 20.0)])];
        assert_eq!(
            profile(&ext4, 1),
            "ext4, create: 100 instructions of the kernel, 10.0 for each of 10 operations\n\
             \x20  per operation    share      sum  function\n\
             \x20            6.0  60.00 %  60.00 %  walk\n\
             \x20 and 1 function more (--lines 2)\n"
        );
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
    }
}

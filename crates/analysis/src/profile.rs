//! What kernels did, function by function: every instruction is counted, so a profile is exact, and so is a difference of two. By path
//! of calls it is a sample, of the stack at every 10,007th instruction, that is repeatable: another run has the same.

use fstone_model::{Dataset, StepResult, metric::catalog, result::KERNEL_WORK};

/// The work of a kernel in one step of a row's first trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub row: String,
    pub step: String,
    pub instructions: f64,
    /// What it is divided by: the load's operations, or 1 for a step without.
    pub operations: f64,
    /// Instructions of each function, most first.
    pub functions: Vec<(String, f64)>,
    /// Instructions of each task by its name, most first, and of interrupts; kernels of earlier versions have none.
    pub tasks: Vec<(String, f64)>,
    /// The tree of calls: each is followed by what it called. Kernels of earlier versions have none.
    pub calls: Vec<Call>,
}

impl Profile {
    /// Whether its kernel knew what its functions are called. Of one without symbols they are addresses, which are another kernel's own.
    pub fn has_symbols(&self) -> bool {
        self.functions.iter().any(|(name, _)| !name.starts_with("0x"))
    }
}

/// A function below those that called it, and the instructions that it, and it with all that it called, executed there.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// From 1.
    pub depth: usize,
    pub function: String,
    pub own: f64,
    pub all: f64,
}

fn calls(record: &str) -> Vec<Call> {
    let call = |line: &str| {
        let mut words = line.strip_prefix('>')?.splitn(3, ' ');
        let (depth, own) = (words.next()?.parse().ok()?, words.next()?.parse::<u64>().ok()? as f64);
        Some(Call { depth, function: words.next()?.to_owned(), own, all: own })
    };
    let mut calls: Vec<Call> = record.lines().filter_map(call).collect();
    // One below another without one between would hang in the air.
    let mut depth = 0;
    calls.retain(|call| {
        let is_below = (1..=depth + 1).contains(&call.depth);
        depth = if is_below { call.depth } else { depth };
        is_below
    });
    // By depth, what those behind it came to that are not yet their caller's.
    let mut below = vec![0.0; calls.iter().map(|call| call.depth).max().unwrap_or(0) + 2];
    for call in calls.iter_mut().rev() {
        call.all += std::mem::take(&mut below[call.depth + 1]);
        below[call.depth] += call.all;
    }
    calls
}

/// In the order of rows and steps; empty if no kernel counted.
pub fn profiles(dataset: &Dataset) -> Vec<Profile> {
    let cells = dataset.run.plan.cells.iter();
    cells
        .flat_map(|cell| {
            let of_row = dataset.trials.iter().filter(move |trial| trial.id.cell == cell.index);
            // Others, of other seeds or perturbed, have no profile.
            let trial = of_row.min_by_key(|trial| (trial.id.perturbation().is_some(), trial.id.repetition));
            trial.into_iter().flat_map(|trial| &trial.steps).filter_map(|step| of_step(&cell.label, step))
        })
        .collect()
}

/// `None` if its kernel did not count, or what each function did was left out.
pub fn of_step(row: &str, step: &StepResult) -> Option<Profile> {
    let record = step.commands.iter().find(|command| command.argv.first().is_some_and(|word| word == KERNEL_WORK))?;
    let counts = |mark: &str| {
        let count = |line: &str| {
            let (count, name) = line.strip_prefix(mark)?.split_once(' ')?;
            Some((name.to_owned(), count.parse::<u64>().ok()? as f64))
        };
        let mut counts: Vec<(String, f64)> = record.output_tail.lines().filter_map(count).collect();
        counts.sort_by(|(a, one), (b, other)| other.total_cmp(one).then_with(|| a.cmp(b)));
        counts
    };
    let (functions, mut tasks) = (counts(""), counts("@"));
    if functions.is_empty() {
        return None;
    }
    let value = |metric: &str| step.figure(metric).map(|figure| figure.value);
    if !tasks.is_empty() {
        tasks.extend(value(catalog::KERNEL_INTERRUPT_WORK.name).map(|count| ("interrupts".to_owned(), count)));
    }
    Some(Profile {
        row: row.to_owned(),
        step: step.step.clone(),
        instructions: value(catalog::KERNEL_WORK.name)?,
        operations: value(catalog::OPERATIONS.name).filter(|count| *count > 0.0).unwrap_or(1.0),
        functions,
        tasks,
        calls: calls(&record.output_tail),
    })
}

/// What one function takes in two profiles, per operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub function: String,
    pub before: f64,
    pub after: f64,
}

/// The largest difference first; functions that are the same in both are left out.
pub fn changes(before: &Profile, after: &Profile) -> Vec<Change> {
    let mut by_name = std::collections::BTreeMap::<&str, [f64; 2]>::new();
    for (side, profile) in [before, after].into_iter().enumerate() {
        for (name, count) in &profile.functions {
            by_name.entry(name).or_default()[side] += count / profile.operations;
        }
    }
    let differ = by_name.into_iter().filter(|(_, [before, after])| before != after);
    let mut changes: Vec<Change> =
        differ.map(|(name, [before, after])| Change { function: name.to_owned(), before, after }).collect();
    changes.sort_by(|one, other| (other.after - other.before).abs().total_cmp(&(one.after - one.before).abs()));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::result::CommandRecord;

    fn step(operations: f64, functions: &str) -> StepResult {
        let total = functions.lines().filter_map(|line| line.split(' ').next()?.parse::<f64>().ok()).sum();
        let record = CommandRecord {
            argv: vec![KERNEL_WORK.into()],
            status: None,
            duration_ns: 0,
            output_tail: functions.to_owned(),
        };
        StepResult {
            step: "create".into(),
            started_ns: 0,
            duration_ns: 0,
            commands: vec![record],
            figures: vec![catalog::KERNEL_WORK.figure(total), catalog::OPERATIONS.figure(operations)],
            load: None,
        }
    }

    #[test]
    fn differences_are_per_operation_and_the_largest_is_first() {
        let before = of_step("ext4", &step(10.0, "100 same\n50 slower\n10 gone\n")).unwrap();
        assert_eq!((before.instructions, before.functions[0].0.as_str()), (160.0, "same"));
        let after = of_step("ext4", &step(20.0, "200 same\n500 slower\n20 new\n")).unwrap();
        let found: Vec<(String, f64, f64)> =
            changes(&before, &after).into_iter().map(|one| (one.function, one.before, one.after)).collect();
        let of = |name: &str, before, after| (name.to_owned(), before, after);
        assert_eq!(found, [of("slower", 5.0, 25.0), of("gone", 1.0, 0.0), of("new", 0.0, 1.0)]);
        let nameless = of_step("ext4", &step(1.0, "9 0x60012340 (fs/ext4/namei.c)\n")).unwrap();
        assert!(before.has_symbols() && !nameless.has_symbols());
        let tree =
            of_step("ext4", &step(1.0, "9 f\n>1 2 sys_write\n>2 3 f\n>3 4 g\n>2 5 h\n>4 1 lost\n>1 7 segv\n")).unwrap();
        let tree: Vec<_> = tree.calls.iter().map(|call| (call.depth, &*call.function, call.own, call.all)).collect();
        let one = [(1, "sys_write", 2.0, 14.0), (2, "f", 3.0, 7.0), (3, "g", 4.0, 4.0), (2, "h", 5.0, 5.0)];
        assert_eq!(tree, [&one[..], &[(1, "segv", 7.0, 7.0)]].concat());
        let without = StepResult { commands: Vec::new(), ..step(1.0, "") };
        assert_eq!(of_step("ext4", &without), None);
    }
}

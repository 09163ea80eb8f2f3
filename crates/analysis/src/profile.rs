//! What kernels did, function by function: every instruction is counted, so a profile is exact, and so is a difference of two.

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
    let mut functions: Vec<(String, f64)> = record
        .output_tail
        .lines()
        .filter_map(|line| {
            let (count, name) = line.split_once(' ')?;
            Some((name.to_owned(), count.parse::<u64>().ok()? as f64))
        })
        .collect();
    if functions.is_empty() {
        return None;
    }
    functions.sort_by(|(a, one), (b, other)| other.total_cmp(one).then_with(|| a.cmp(b)));
    let value = |metric: &str| step.figure(metric).map(|figure| figure.value);
    Some(Profile {
        row: row.to_owned(),
        step: step.step.clone(),
        instructions: value(catalog::KERNEL_WORK.name)?,
        operations: value(catalog::OPERATIONS.name).filter(|count| *count > 0.0).unwrap_or(1.0),
        functions,
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
        let without = StepResult { commands: Vec::new(), ..step(1.0, "") };
        assert_eq!(of_step("ext4", &without), None);
    }
}

//! What the workload implies, beside what was seen.

use super::rate::{bandwidth, rate, rates};
use super::summary::{DEVIATIONS, Summary};
use crate::pattern::{distribution_of, pareto_power};
use fstone_model::load::{Audit, Expected, OperationReport};
use fstone_model::workload::operation::Target;
use fstone_model::workload::{
    Action, Actions, ByFileset, Distribution, Extent, FileChoice, Pattern, Phase, Region, ThreadGroup, Zones,
};

/// Relative difference between expected and observed counts that is worth a warning.
const TOLERANCE: f64 = 0.02;
/// Points of a mix that may be off beyond chance.
const MIX_POINTS: f64 = 0.5;
/// Share of the mean latency above which the engine's own cost is worth a warning.
const OVERHEAD: f64 = 0.05;

type Performed<'a> = (&'a Phase, &'a ThreadGroup, &'a Action, &'a OperationReport);

fn by_fileset<'a>(summary: &Summary<'a>) -> ByFileset<Performed<'a>> {
    ByFileset::of(actions(summary).into_iter().map(|performed| (performed.2, performed)))
}

fn actions<'a>(summary: &Summary<'a>) -> Vec<Performed<'a>> {
    let groups =
        summary.workload.measured_phases().flat_map(|phase| phase.groups.iter().map(move |group| (phase, group)));
    groups
        .flat_map(|(phase, group)| group.actions.all().into_iter().map(move |action| (phase, group, action)))
        .zip(summary.operations)
        .map(|((phase, group, action), report)| (phase, group, action, report))
        .collect()
}

pub(crate) fn judge(summary: &Summary<'_>) -> (Audit, Vec<String>) {
    let mut warnings = Vec::new();
    let mean = time_of_one(summary);
    rates(summary, &mut warnings);
    bandwidth(summary, &mut warnings);
    let audit = Audit {
        rate: rate(summary),
        distinct_files: distinct_files(summary, &mut warnings),
        distinct_blocks: distinct_blocks(summary, &mut warnings),
        mix_error_points: mix(summary, &mut warnings),
        written_bytes: written(summary),
        null_ns_per_operation: summary.null_ns_per_operation,
        overhead_share: summary.null_ns_per_operation.zip(mean).map(|(null, mean)| null / mean),
        verified_bytes: summary.verified_bytes,
    };
    if let (Some(share), Some(null)) = (audit.overhead_share, audit.null_ns_per_operation)
        && share > OVERHEAD
    {
        warnings.push(format!(
            "fstone's own cost is {null:.0} ns per operation, {:.1} % of an operation's time: compare only with figures from the same tool",
            share * 100.0
        ));
    }
    (audit, warnings)
}

/// Time that a thread spends on an operation: the mean latency, but no more than its share of the threads' time. Latency
/// counts the waiting in a queue of many, and for an intended start, over and over.
fn time_of_one(summary: &Summary<'_>) -> Option<f64> {
    let count: u64 = summary.operations.iter().map(|operation| operation.latency.count()).sum();
    let sum: u128 = summary.operations.iter().map(|operation| operation.latency.sum_ns()).sum();
    let threads_ns: f64 = summary
        .workload
        .measured_phases()
        .zip(summary.phases_ns)
        .map(|(phase, ns)| phase.groups.iter().map(|group| f64::from(group.threads)).sum::<f64>() * *ns as f64)
        .sum();
    (count > 0 && sum > 0).then(|| (sum as f64).min(threads_ns) / count as f64)
}

fn mix(summary: &Summary<'_>, warnings: &mut Vec<String>) -> Option<f64> {
    let mut worst: Option<f64> = None;
    let mut reports = summary.operations.iter();
    for group in summary.workload.measured_phases().flat_map(|phase| &phase.groups) {
        let count = group.actions.all().len();
        let own: Vec<&OperationReport> = reports.by_ref().take(count).collect();
        // Of a tour, shares are those on each file. Rates of reads and of writes leave no share to ask for.
        let has_shares = group.tour.is_none() && group.direction_rates == [None; 2];
        if !matches!(group.actions, Actions::Mix(_)) || count < 2 || !has_shares {
            continue;
        }
        let total: u64 = own.iter().map(|report| report.invocations + report.errors).sum();
        if total == 0 {
            continue;
        }
        for report in own {
            let achieved = (report.invocations + report.errors) as f64 / total as f64;
            let wanted = report.requested_share;
            let points = (achieved - wanted).abs() * 100.0;
            let chance = DEVIATIONS * 100.0 * (wanted * (1.0 - wanted) / total as f64).sqrt();
            if points > MIX_POINTS + chance {
                warnings.push(format!(
                    "{}: {} was {:.2} % of the operations where {:.2} % were asked for",
                    report.group,
                    report.name,
                    achieved * 100.0,
                    wanted * 100.0
                ));
            }
            worst = Some(worst.unwrap_or(0.0).max(points));
        }
    }
    worst
}

fn written(summary: &Summary<'_>) -> Option<Expected> {
    let (mut expected, mut observed) = (0.0, 0.0);
    for (_, _, action, report) in actions(summary) {
        observed += report.written_bytes as f64;
        expected += match (
            action.operation.nature().writes(),
            action.operation.nature().transfer.map(|transfer| transfer.extent),
        ) {
            (true, Some(Extent::Bytes(bytes))) if action.blocks.is_none() => bytes as f64 * report.invocations as f64,
            _ => report.written_bytes as f64,
        };
    }
    (expected > 0.0).then_some(Expected { expected, observed })
}

#[derive(Default)]
struct Sum {
    any: bool,
    expected: f64,
    observed: f64,
}

impl Sum {
    fn add(&mut self, expected: f64, observed: f64) {
        self.any = true;
        self.expected += expected;
        self.observed += observed;
    }

    fn finish(self, what: &str, warnings: &mut Vec<String>) -> Option<Expected> {
        if !self.any {
            return None;
        }
        let allowed = TOLERANCE * self.expected + DEVIATIONS * self.expected.sqrt();
        if (self.observed - self.expected).abs() > allowed {
            warnings.push(format!(
                "{:.0} distinct {what} were touched where the workload implies {:.0}",
                self.observed, self.expected
            ));
        }
        Some(Expected { expected: self.expected, observed: self.observed })
    }
}

fn distinct_files(summary: &Summary<'_>, warnings: &mut Vec<String>) -> Option<Expected> {
    if summary.handed {
        return None;
    }
    let mut sum = Sum::default();
    let actions = by_fileset(summary);
    for (index, files) in summary.files.iter().enumerate() {
        let count = files.table.live();
        if count == 0 {
            continue;
        }
        let mut walks = 0;
        let untouched = untouched(&actions, index, |group, action, report| {
            let indirect = action.handle.is_some() || action.numbers.is_some();
            if action.operation.nature().changes_names() || action.fileset.is_none() || indirect || group.tour.is_some()
            {
                return None;
            }
            match action.choice {
                _ if action.operation.nature().target == Target::Fileset => Some(1.0),
                FileChoice::Uniform => Some(missed_uniformly(count as f64, report.invocations as f64)),
                FileChoice::Same if matches!(group.actions, Actions::Sequence(_)) => Some(1.0),
                // Of what was begun before, nobody knows how far it had come.
                FileChoice::RoundRobin | FileChoice::Shuffled if group.continues => None,
                FileChoice::RoundRobin | FileChoice::Shuffled => {
                    walks += 1;
                    Some(1.0 - (report.invocations as f64 / count as f64).min(1.0))
                }
                FileChoice::Concatenated
                    if action.operation.nature().transfer.is_some_and(|transfer| {
                        matches!(transfer.pattern, Pattern::Random { distribution: Distribution::Uniform, .. })
                    }) && files.sizes.fixed().is_some() =>
                {
                    Some(missed_uniformly(count as f64, report.invocations as f64))
                }
                _ => None,
            }
        });
        // Two walks that begin at the same place are not independent of each other.
        if let Some(untouched) = untouched.filter(|_| walks < 2) {
            sum.add(count as f64 * (1.0 - untouched), files.table.touched() as f64);
        }
    }
    sum.finish("files", warnings)
}

fn distinct_blocks(summary: &Summary<'_>, warnings: &mut Vec<String>) -> Option<Expected> {
    let mut sum = Sum::default();
    let actions = by_fileset(summary);
    for (index, files) in summary.files.iter().enumerate() {
        let Some(count) = summary.touched.count(index).filter(|count| count.total > 0) else { continue };
        let total = count.total as f64;
        let (mut skewed, mut walks, mut tours) = (0, 0, Tours::default());
        let untouched = untouched(&actions, index, |group, action, report| {
            let Some(transfer) = action.operation.nature().transfer else { return Some(1.0) };
            if group.region != Region::Whole {
                return None;
            }
            let blocks = report.calls as f64;
            // Of what was begun before, nobody knows how much was left of the round.
            let permuted = distribution_of(transfer) == Some(Distribution::Permutation);
            let walks_on = matches!(transfer.pattern, Pattern::Cursor { .. });
            if group.continues && (permuted || walks_on || group.tour.is_some()) {
                return None;
            }
            if group.tour.is_some() {
                return on_tour(group, action).then(|| tours.missed(group, blocks, total));
            }
            match (transfer.pattern, action.choice) {
                (Pattern::Random { distribution, .. }, choice) => {
                    let in_one_space = choice == FileChoice::Concatenated || files.table.live() == 1;
                    match distribution {
                        Distribution::Uniform => Some(missed_uniformly(total, blocks)),
                        Distribution::Permutation if in_one_space && action.blocks.is_none() => {
                            Some(1.0 - (blocks / total).min(1.0))
                        }
                        Distribution::Zipf { theta } if in_one_space => {
                            skewed += 1;
                            Some(missed_by_zipf(total, theta, blocks))
                        }
                        Distribution::Gauss { deviation, .. } if in_one_space => {
                            skewed += 1;
                            Some(missed_by_gauss(total, deviation, blocks))
                        }
                        Distribution::Pareto { share } if in_one_space => {
                            skewed += 1;
                            Some(missed_by_pareto(total, share, blocks))
                        }
                        Distribution::Zoned(zones) if in_one_space => {
                            skewed += 1;
                            Some(missed_by_zones(count.total, &zones, blocks))
                        }
                        _ => None,
                    }
                }
                (Pattern::Cursor { shared }, FileChoice::Concatenated) if shared || group.threads == 1 => {
                    walks += 1;
                    Some(1.0 - (blocks / total).min(1.0))
                }
                (Pattern::FromStart, FileChoice::Uniform) if transfer.extent == Extent::Whole => {
                    Some(missed_uniformly(files.table.live() as f64, report.invocations as f64))
                }
                _ => None,
            }
        });
        // Two skewed actions favour blocks that are not independent of each other, nor are two walks that begin at the same place.
        if let Some(untouched) = untouched.filter(|_| skewed < 2 && walks < 2) {
            sum.add(total * (1.0 - untouched), count.touched as f64);
        }
    }
    sum.finish("blocks", warnings)
}

/// Whether a thread's tour gives each block of the action's fileset once before any comes again.
fn on_tour(group: &ThreadGroup, action: &Action) -> bool {
    let of_fileset = |other: &&Action| other.fileset == action.fileset;
    let grid = |action: &Action| match action.operation.nature().transfer?.pattern {
        Pattern::Random { distribution: Distribution::Permutation, align_bytes } if action.blocks.is_none() => {
            Some(align_bytes)
        }
        _ => None,
    };
    let first = grid(action);
    first.is_some()
        && group.threads == 1
        && group.actions.all().into_iter().filter(of_fileset).all(|other| grid(other) == first)
}

#[derive(Default)]
struct Tours<'g> {
    of: Option<&'g ThreadGroup>,
    blocks: f64,
}

impl<'g> Tours<'g> {
    /// Of the blocks that the actions of the group before this one left, the share that this one leaves.
    fn missed(&mut self, group: &'g ThreadGroup, blocks: f64, total: f64) -> f64 {
        if !self.of.is_some_and(|of| std::ptr::eq(of, group)) {
            *self = Self { of: Some(group), blocks: 0.0 };
        }
        let left = total - self.blocks;
        self.blocks += blocks;
        if left > 0.0 { (1.0 - blocks / left).max(0.0) } else { 1.0 }
    }
}

/// Share of a fileset's files or blocks that no action is expected to touch: the product over the actions. `None`
/// when that cannot be told of one of them, or when there are none.
fn untouched<'a>(
    actions: &ByFileset<Performed<'a>>,
    fileset: usize,
    mut missed: impl FnMut(&'a ThreadGroup, &'a Action, &'a OperationReport) -> Option<f64>,
) -> Option<f64> {
    let mut product = None;
    for (_, group, action, report) in actions.on(fileset) {
        if report.errors > 0 {
            return None;
        }
        let share = missed(group, action, report)?;
        product = Some(product.unwrap_or(1.0) * share);
    }
    product
}

/// (1 - 1/n)^k.
fn missed_uniformly(space: f64, draws: f64) -> f64 {
    if space < 2.0 {
        return if draws > 0.0 { 0.0 } else { 1.0 };
    }
    (draws * (-1.0 / space).ln_1p()).exp()
}

/// Ranks that are summed one by one; those beyond by pieces.
const EXACT_RANKS: f64 = 100_000.0;

/// Sum of f(rank) over ranks 1..=space, the tail in pieces that grow by 1 %.
fn over_ranks(space: f64, f: impl Fn(f64) -> f64) -> f64 {
    let mut sum = 0.0;
    let mut rank = 1.0;
    while rank <= space.min(EXACT_RANKS) {
        sum += f(rank);
        rank += 1.0;
    }
    while rank <= space {
        let next = (rank * 1.01).ceil().min(space + 1.0);
        sum += (next - rank) * f((rank + next - 1.0) / 2.0);
        rank = next;
    }
    sum
}

fn missed_by_zipf(space: f64, theta: f64, draws: f64) -> f64 {
    let norm = over_ranks(space, |rank| rank.powf(-theta));
    over_ranks(space, |rank| (draws * (-(rank.powf(-theta) / norm).min(1.0)).ln_1p()).exp()) / space
}

fn missed_by_gauss(space: f64, deviation: f64, draws: f64) -> f64 {
    const STEPS: u32 = 100_000;
    let place = |step: u32| (f64::from(step) + 0.5) / f64::from(STEPS);
    let density = |x: f64| (-0.5 * ((x - 0.5) / deviation.max(1e-9)).powi(2)).exp();
    let norm: f64 = (0..STEPS).map(|step| density(place(step))).sum::<f64>() / f64::from(STEPS);
    let missed = |x: f64| (draws * (-(density(x) / norm / space).min(1.0)).ln_1p()).exp();
    (0..STEPS).map(|step| missed(place(step))).sum::<f64>() / f64::from(STEPS)
}

fn missed_by_pareto(space: f64, share: f64, draws: f64) -> f64 {
    // The chance of the places before x is (x / space) to this power.
    let power = 1.0 / pareto_power(share);
    let before = |place: f64| (place / space).powf(power);
    over_ranks(space, |rank| (draws * (-(before(rank) - before(rank - 1.0)).min(1.0)).ln_1p()).exp()) / space
}

fn missed_by_zones(space: u64, zones: &Zones, draws: f64) -> f64 {
    let weights = zones.weights() as f64;
    let of = |(weight, begin, end): (u32, u64, u64)| {
        let length = (end - begin) as f64;
        length * missed_uniformly(length, draws * f64::from(weight) / weights)
    };
    zones.of(space).map(of).sum::<f64>() / (space as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Drawer;
    use crate::random::Random;
    use fstone_model::workload::Zone;
    use std::collections::HashSet;

    const ZONES: [Zone; 3] =
        [Zone { weight: 60, length: 1 }, Zone { weight: 30, length: 3 }, Zone { weight: 10, length: 6 }];

    #[test]
    fn expectations_are_met_by_the_drawers() {
        let space = 20_000u64;
        for distribution in [
            Distribution::Uniform,
            Distribution::Zipf { theta: 0.9 },
            Distribution::Zipf { theta: 1.2 },
            Distribution::Gauss { deviation: 0.1, scattered: false },
            Distribution::Pareto { share: 0.2 },
            Distribution::Zoned(Zones::new(&ZONES).expect("they fit")),
        ] {
            for draws in [1000u64, 20_000, 100_000] {
                let (mut drawer, mut random) = (Drawer::new(distribution, 1), Random::new(9));
                let seen: HashSet<u64> = (0..draws).map(|_| drawer.draw(space, &mut random, || 0)).collect();
                let n = draws as f64;
                let missed = match distribution {
                    Distribution::Uniform => missed_uniformly(space as f64, n),
                    Distribution::Zipf { theta } => missed_by_zipf(space as f64, theta, n),
                    Distribution::Gauss { deviation, .. } => missed_by_gauss(space as f64, deviation, n),
                    Distribution::Pareto { share } => missed_by_pareto(space as f64, share, n),
                    Distribution::Zoned(zones) => missed_by_zones(space, &zones, n),
                    Distribution::Permutation => 0.0,
                };
                let expected = space as f64 * (1.0 - missed);
                let off = (seen.len() as f64 - expected).abs();
                assert!(off < 0.02 * expected + 20.0, "{distribution:?} {draws}: {} for {expected}", seen.len());
            }
        }
    }

    #[test]
    fn the_tail_of_the_ranks_is_summed_closely() {
        let exact: f64 = (1..=3_000_000u64).map(|rank| (rank as f64).powf(-0.9)).sum();
        let quick = over_ranks(3_000_000.0, |rank| rank.powf(-0.9));
        assert!((quick / exact - 1.0).abs() < 1e-4, "{quick} for {exact}");
    }
}

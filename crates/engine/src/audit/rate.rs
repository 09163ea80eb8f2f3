//! Whether the rates that groups were to keep were kept.

use super::summary::{DEVIATIONS, Summary};
use fstone_model::load::{Expected, OperationReport};
use fstone_model::workload::{Arrivals, Phase, Rate, Stop, ThreadGroup};

/// A rate this far below what was asked for is worth a warning.
const SHORTFALL: f64 = 0.02;

struct Did<'a> {
    phase: &'a Phase,
    group: &'a ThreadGroup,
    operations: &'a [OperationReport],
    /// Fsyncs of its policy that the rate paces.
    fsyncs: u64,
    /// How long its phase let operations begin, as far as this group is concerned: not while it, or others, finished their last
    /// ones and made files durable at the end.
    phase_seconds: f64,
}

impl Did<'_> {
    fn seconds(&self) -> f64 {
        let of_phase = (self.phase_seconds - self.group.start_delay.as_secs_f64()).max(0.0);
        self.group.stop.time.map_or(of_phase, |time| of_phase.min(time.as_secs_f64()))
    }

    /// Operations that it went through at its rate, all or some. Fsyncs that count are of writes.
    fn count(&self, writes: Option<bool>) -> u64 {
        let fsyncs = if writes == Some(false) { 0 } else { self.fsyncs };
        fsyncs + self.of(writes).map(|operation| operation.invocations + operation.errors).sum::<u64>()
    }

    /// What it did, or of that what wrote or did not.
    fn of(&self, writes: Option<bool>) -> impl Iterator<Item = &OperationReport> {
        let actions = self.group.actions.all();
        let of = self.operations.iter().zip(actions);
        of.filter(move |(_, action)| writes.is_none_or(|writes| action.operation.nature().writes() == writes))
            .map(|(operation, _)| operation)
    }

    /// The rates that it is held to, if it is: of which of its operations, and how much.
    fn rates(&self) -> Vec<(Option<bool>, Rate)> {
        let of_all = [self.group.rate_per_second.map(Rate::Operations), self.group.bytes_per_second.map(Rate::Bytes)];
        let of_all = of_all.into_iter().map(|rate| (None, rate));
        let of_directions = [Some(false), Some(true)].into_iter().zip(self.group.direction_rates);
        let all = of_all.chain(of_directions).filter_map(|(of, rate)| Some((of, rate?)));
        all.filter(|_| self.lasts()).collect()
    }

    /// Whether it is known how long it is at work: until its time or its phase ends. A group that ends before does less, by as much as
    /// cannot be told.
    fn lasts(&self) -> bool {
        ends_by_time(self.group) && (self.phase.groups.len() == 1 || !self.phase.stop.once_through)
    }
}

fn ends_by_time(group: &ThreadGroup) -> bool {
    group.stop == Stop { time: group.stop.time, ..Stop::default() }
}

fn groups<'a>(summary: &Summary<'a>) -> Vec<Did<'a>> {
    let all = summary.workload.measured_phases().flat_map(|phase| phase.groups.iter().map(move |group| (phase, group)));
    let mut operations = summary.operations;
    all.zip(summary.groups)
        .map(|((phase, group), ran)| {
            let own;
            (own, operations) = operations.split_at(group.actions.all().len().min(operations.len()));
            let worked_ns = phase
                .stop
                .time
                .map_or(ran.worked_ns, |time| ran.worked_ns.min(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
            // One right after an operation takes no place in the schedule.
            let paced = group.fsync.counted && (group.fsync.all_files || group.fsync.between);
            let fsyncs = if paced { ran.periodic_fsyncs } else { 0 };
            Did { phase, group, operations: own, fsyncs, phase_seconds: worked_ns as f64 / 1e9 }
        })
        .collect()
}

pub(super) fn rates(summary: &Summary<'_>, warnings: &mut Vec<String>) {
    for did in groups(summary) {
        for (writes, rate) in did.rates() {
            let Rate::Operations(rate) = rate else { continue };
            let reached = did.count(writes) as f64;
            let wanted = rate * did.seconds();
            // One operation more or less is no finding, nor is what chance may take from random arrivals.
            let chance = if did.group.arrivals == Arrivals::Poisson { DEVIATIONS * wanted.sqrt() } else { 0.0 };
            if reached + 1.0 + chance < wanted * (1.0 - SHORTFALL) {
                warnings.push(format!(
                    "{}: {:.1} {} per second were reached where {rate:.1} were asked for; latencies count from the \
                     moment an operation should have begun",
                    did.group.name,
                    reached / did.seconds(),
                    ["operations", "reads", "writes"][writes.map_or(0, |writes| 1 + usize::from(writes))]
                ));
            }
        }
    }
}

/// Operations per second over all phases, each with the rates of its own groups, if every group has one.
pub(super) fn rate(summary: &Summary<'_>) -> Option<Expected> {
    let mut all = summary.workload.measured_phases().flat_map(|phase| &phase.groups);
    if all.any(|group| !ends_by_time(group)) {
        return None;
    }
    let groups = groups(summary);
    let of_phase = |phase: &[Did<'_>]| phase.iter().map(|did| did.phase_seconds).fold(0.0, f64::max);
    let total: f64 = groups.chunk_by(|one, next| std::ptr::eq(one.phase, next.phase)).map(of_phase).sum();
    if total == 0.0 {
        return None;
    }
    let mut wanted = 0.0;
    for did in &groups {
        let [reads, writes] = did.group.direction_rates;
        let rate = match (did.group.rate_per_second, reads, writes) {
            (None, Some(Rate::Operations(reads)), Some(Rate::Operations(writes))) => reads + writes,
            (rate, ..) => rate?,
        };
        wanted += rate * did.seconds();
    }
    let reached: u64 = groups.iter().map(|did| did.count(None)).sum();
    Some(Expected { expected: wanted / total, observed: reached as f64 / total })
}

pub(super) fn bandwidth(summary: &Summary<'_>, warnings: &mut Vec<String>) {
    for did in groups(summary) {
        for (writes, rate) in did.rates() {
            let Rate::Bytes(wanted) = rate else { continue };
            let moved = |one: &OperationReport| one.read_bytes + one.written_bytes;
            let bytes: u64 = did.of(writes).map(moved).sum();
            let largest = did.of(writes).map(|one| moved(one) / one.invocations.max(1)).max().unwrap_or(0);
            if ((bytes + largest) as f64) < wanted as f64 * did.seconds() * (1.0 - SHORTFALL) {
                warnings.push(format!(
                    "{}: {:.1} MiB per second{} were reached where {:.1} were asked for; latencies count from the moment an \
                     operation should have begun",
                    did.group.name,
                    bytes as f64 / did.seconds() / f64::from(1 << 20),
                    ["", " of reads", " of writes"][writes.map_or(0, |writes| 1 + usize::from(writes))],
                    wanted as f64 / f64::from(1 << 20)
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Ran, Touched};
    use fstone_model::Workload;
    use fstone_model::workload::{Action, Actions, Operation, Weighted};
    use std::time::Duration;

    const TEN_SECONDS: u64 = 10_000_000_000;

    fn group(name: &str, rate: Option<f64>) -> ThreadGroup {
        let action = Action::new("stat", Operation::Stat, Some(0));
        let actions = Actions::Mix(vec![Weighted { weight: 1, action }]);
        ThreadGroup { rate_per_second: rate, ..ThreadGroup::new(name, 1, actions) }
    }

    fn phase(groups: Vec<ThreadGroup>) -> Phase {
        let stop = Stop { time: Some(Duration::from_secs(10)), ..Stop::default() };
        Phase::new("main", groups, stop)
    }

    fn judged(phases: Vec<Phase>, completed: &[u64], ran: &[Ran]) -> (Option<Expected>, Vec<String>) {
        let workload =
            Workload { series_interval: Duration::from_millis(100), ..Workload::new("test", Vec::new(), phases) };
        let report = |invocations: &u64| OperationReport { invocations: *invocations, ..Default::default() };
        let operations: Vec<OperationReport> = completed.iter().map(report).collect();
        let summary = Summary {
            workload: &workload,
            files: &[],
            touched: &Touched::nothing(0),
            handed: false,
            operations: &operations,
            groups: ran,
            phases_ns: &[],
            verified_bytes: 0,
            null_ns_per_operation: None,
        };
        let mut warnings = Vec::new();
        rates(&summary, &mut warnings);
        (rate(&summary), warnings)
    }

    fn told(groups: &[(Option<f64>, u64)], change: impl Fn(&mut Phase)) -> (Option<Expected>, Vec<String>) {
        let named = |(number, (rate, _)): (usize, &(Option<f64>, u64))| group(&format!("group{number}"), *rate);
        let mut phase = phase(groups.iter().enumerate().map(named).collect());
        change(&mut phase);
        let completed: Vec<u64> = groups.iter().map(|(_, completed)| *completed).collect();
        judged(vec![phase], &completed, &vec![Ran { worked_ns: TEN_SECONDS, periodic_fsyncs: 0 }; groups.len()])
    }

    #[test]
    fn what_follows_the_last_operation_to_begin_is_not_held_against_a_rate() {
        let ran = |worked_ns| Ran { worked_ns, periodic_fsyncs: 0 };
        let both = || vec![group("paced", Some(100.0)), group("free", None)];
        // The other group's last operation takes two seconds more, and so does the paced one's own.
        for paced_ns in [TEN_SECONDS, 12_000_000_000] {
            assert_eq!(judged(vec![phase(both())], &[1000, 9], &[ran(paced_ns), ran(12_000_000_000)]).1, [""; 0]);
        }
        let mut alone = phase(vec![group("paced", Some(100.0))]);
        let as_asked = Some(Expected { expected: 100.0, observed: 100.0 });
        assert_eq!(judged(vec![alone.clone()], &[1000], &[ran(12_000_000_000)]), (as_asked, vec![]));
        // Without a time the phase ended when it was told to.
        alone.stop = Stop { bytes: Some(1), ..Stop::default() };
        assert_eq!(judged(vec![alone.clone()], &[500], &[ran(5_000_000_000)]), (as_asked, vec![]));
        assert_eq!(judged(vec![alone], &[500], &[ran(6_000_000_000)]).1.len(), 1);
    }

    #[test]
    fn fsyncs_count_for_the_group_that_made_them_and_not_for_all_of_its_name() {
        let counting = |rate| {
            let mut group = group("main", rate);
            (group.fsync.counted, group.fsync.all_files) = (true, true);
            phase(vec![group])
        };
        let ran = |periodic_fsyncs| Ran { worked_ns: TEN_SECONDS, periodic_fsyncs };
        let two = vec![counting(None), counting(Some(1000.0))];
        let (_, warnings) = judged(two, &[5000, 50], &[ran(5000), ran(50)]);
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(warning.starts_with("main: 10.0 operations per second were reached where 1000.0 were"), "{warning}");
    }

    #[test]
    fn fsyncs_right_after_operations_are_not_paced() {
        let judged = |between| {
            let mut group = group("main", Some(1000.0));
            (group.fsync.counted, group.fsync.between) = (true, between);
            judged(vec![phase(vec![group])], &[5000], &[Ran { worked_ns: TEN_SECONDS, periodic_fsyncs: 5000 }]).1
        };
        assert_eq!((judged(true).len(), judged(false).len()), (0, 1));
    }

    #[test]
    fn reads_and_writes_are_held_to_their_own_rates() {
        let create = Operation::Create { block_bytes: 4096, fsync: false };
        let action = |operation| Weighted { weight: 1, action: Action::new("a", operation, Some(0)) };
        let mut group = ThreadGroup::new("both", 1, Actions::Mix(vec![action(Operation::Stat), action(create)]));
        let operations = |rate| Some(Rate::Operations(rate));
        let ran = [Ran { worked_ns: TEN_SECONDS, periodic_fsyncs: 0 }];
        let mut judged = |rates, completed: &[u64]| {
            group.direction_rates = rates;
            judged(vec![phase(vec![group.clone()])], completed, &ran)
        };
        let as_asked = Some(Expected { expected: 500.0, observed: 500.0 });
        assert_eq!(judged([operations(400.0), operations(100.0)], &[4000, 1000]), (as_asked, vec![]));
        // As many as both together, and yet not as asked.
        let (_, warnings) = judged([operations(400.0), operations(100.0)], &[4500, 500]);
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(warning.starts_with("both: 50.0 writes per second were reached where 100.0 were"), "{warning}");
        assert_eq!(judged([None, operations(100.0)], &[9, 1000]), (None, vec![]));
        assert_eq!(judged([operations(1.0), None], &[5, 1000]).1.len(), 1);
    }

    #[test]
    fn each_group_is_held_to_its_own_rate() {
        let as_asked = |_: &mut Phase| {};
        assert_eq!(told(&[(Some(1000.0), 10_000), (Some(5.0), 50), (None, 7)], as_asked), (None, vec![]));
        // Beside a group without a rate, and beside one so large that the small one is lost in its tolerance.
        for other in [(None, 1_000_000), (Some(1000.0), 10_000)] {
            let (sum, warnings) = told(&[other, (Some(5.0), 10)], as_asked);
            let [warning] = &warnings[..] else { panic!("{warnings:?}") };
            assert!(warning.starts_with("group1: 1.0 operations per second were reached where 5.0 were"), "{warning}");
            assert_eq!(sum, other.0.map(|_| Expected { expected: 1005.0, observed: 1001.0 }));
        }
        // Also beside a group with an end of its own, which is not judged itself.
        let (_, warnings) = told(&[(Some(1000.0), 5), (Some(5.0), 10)], |phase| {
            phase.groups[0].stop.operations = Some(5);
        });
        assert!(matches!(&warnings[..], [warning] if warning.starts_with("group1: ")), "{warnings:?}");
        // Nor is it free of its rate until the time at which it ends.
        let own_time = |phase: &mut Phase| phase.groups[0].stop.time = Some(Duration::from_secs(4));
        assert_eq!(told(&[(Some(5.0), 20)], own_time).1, Vec::<String>::new());
        assert_eq!(told(&[(Some(5.0), 10)], own_time).1.len(), 1);
        // Whoever is through with its files has nothing left to do at its rate.
        let once = |phase: &mut Phase| phase.stop.once_through = true;
        assert_eq!(told(&[(None, 7), (Some(5.0), 10)], once).1, Vec::<String>::new());
        // One operation, two in a hundred, and what chance takes from random arrivals.
        assert_eq!(told(&[(Some(5.0), 48)], as_asked).1, Vec::<String>::new());
        assert_eq!(told(&[(Some(5.0), 47)], as_asked).1.len(), 1);
        let random = |phase: &mut Phase| phase.groups[0].arrivals = Arrivals::Poisson;
        assert_eq!(told(&[(Some(5.0), 20)], random).1, Vec::<String>::new());
        assert_eq!(told(&[(Some(5.0), 10)], random).1.len(), 1);
    }
}

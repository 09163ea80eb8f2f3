//! What a load reports about its actions and groups, by the names that `show`, tables and the store use.

use crate::{
    Better, Figure, Histogram, LoadReport, Unit, Workload, io500,
    load::{OperationReport, ReplayReport},
    metric::{Metric, catalog},
    workload::FsyncPolicy,
};

const RATE: &str = "operations per second";

/// How a figure is computed from latencies; `None` without any.
type OfLatencies = fn(&Histogram) -> Option<f64>;

/// The unit and the better direction of a figure of this name, wherever it comes from: those of the catalog, or those of a load's part
/// by the end of its name.
pub fn kind_of(name: &str) -> Option<(Unit, Better)> {
    if let Some(metric) = catalog::find(name) {
        return Some((metric.unit, metric.better));
    }
    if let Some(unit) = io500::unit_of(name) {
        return Some((unit, Better::Higher));
    }
    if let Some((_, unit, better, _)) = REPLAY.iter().find(|(known, ..)| *known == name) {
        return Some((*unit, *better));
    }
    let ends = |words: &str| name.strip_suffix(words).is_some_and(|part| part.len() > 1 && part.ends_with(' '));
    if ends(RATE) {
        return Some((Unit::PerSecond, Better::Higher));
    }
    if OF_PHASES.iter().any(|metric| ends(metric.name)) {
        return Some((Unit::Count, Better::Lower));
    }
    LATENCIES.iter().any(|(words, _)| ends(words)).then_some((Unit::Nanoseconds, Better::Lower))
}

/// What is reported about latency: the suffix of a part's name, and how it is computed.
const LATENCIES: [(&str, OfLatencies); 6] = [
    ("latency mean", Histogram::mean_ns),
    ("latency p50", |latency| latency.percentile_ns(50.0)),
    ("latency p95", |latency| latency.percentile_ns(95.0)),
    ("latency p99", |latency| latency.percentile_ns(99.0)),
    ("latency p99.9", |latency| latency.percentile_ns(99.9)),
    ("latency max", |latency| (latency.count() > 0).then_some(latency.max_ns() as f64)),
];

/// What a load of several measured phases has of each: "create kernel work per operation".
const OF_PHASES: [Metric; 2] = [catalog::KERNEL_WORK, catalog::KERNEL_WORK_PER_OPERATION];

type OfReplay = fn(&ReplayReport) -> Option<f64>;

/// What only a replay has: its name, its unit and better direction, and how it is computed.
const REPLAY: [(&str, Unit, Better, OfReplay); 5] = [
    ("differing calls", Unit::Count, Better::Lower, |replay| Some(replay.differences as f64)),
    ("think time", Unit::Seconds, Better::Neither, |replay| Some(replay.think_ns as f64 / 1e9)),
    ("waited time", Unit::Seconds, Better::Lower, |replay| Some(replay.waited_ns as f64 / 1e9)),
    ("recorded time", Unit::Seconds, Better::Neither, |replay| {
        (replay.recorded_ns > 0).then_some(replay.recorded_ns as f64 / 1e9)
    }),
    ("late calls", Unit::Count, Better::Lower, |replay| Some(replay.late as f64)),
];

/// The one group of a replay.
pub const REPLAY_GROUP: &str = "replay";

/// A part of a load: an action wherever it is done, all of a group or of the clones of a job, or an action in one of several of these.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    name: String,
    /// Empty: all.
    groups: Vec<String>,
    action: Option<String>,
    /// Whether it is one of several clones.
    clone: bool,
}

impl Part {
    fn has(&self, operation: &OperationReport) -> bool {
        (self.groups.is_empty() || self.groups.contains(&operation.group))
            && self.action.as_ref().is_none_or(|action| *action == operation.name)
    }
}

/// The job and the number of a clone by its group's name: `job.3`, `job.3 verify`.
fn clone_of(group: &str) -> Option<(String, usize)> {
    let (job, rest) = group.rsplit_once('.')?;
    let (number, what) = rest.find(' ').map_or((rest, ""), |at| rest.split_at(at));
    Some((format!("{job}{what}"), number.parse().ok().filter(|parsed: &usize| parsed.to_string() == number)?))
}

/// Jobs with their clones, where these are numbered from 0 on.
fn jobs(groups: &[String]) -> Vec<(String, Vec<String>)> {
    let mut jobs: Vec<(String, Vec<String>)> = Vec::new();
    for group in groups {
        let Some((job, number)) = clone_of(group) else { continue };
        match jobs.iter_mut().find(|(known, _)| *known == job) {
            Some((_, clones)) if clones.len() == number => clones.push(group.clone()),
            None if number == 0 && !groups.contains(&job) => jobs.push((job, vec![group.clone()])),
            _ => {}
        }
    }
    jobs.retain(|(_, clones)| clones.len() > 1);
    jobs
}

/// The parts of a load with these actions, as (group, action). Groups are distinguished only if there are several. A name
/// that an action has already is given to a group with the word in front.
fn parts(actions: &[(&str, &str)]) -> Vec<Part> {
    let distinct = |names: &mut dyn Iterator<Item = &str>| {
        let mut found: Vec<String> = Vec::new();
        for name in names {
            if !found.iter().any(|known| known == name) {
                found.push(name.to_owned());
            }
        }
        found
    };
    let names = distinct(&mut actions.iter().map(|(_, action)| *action));
    let groups = distinct(&mut actions.iter().map(|(group, _)| *group));
    let mut parts: Vec<Part> = names
        .iter()
        .map(|name| Part { name: name.clone(), groups: Vec::new(), action: Some(name.clone()), clone: false })
        .collect();
    if groups.len() < 2 {
        return parts;
    }
    let jobs = jobs(&groups);
    let called = |group: String| if names.contains(&group) { format!("group {group}") } else { group };
    let single = groups.iter().map(|group| {
        let clone = jobs.iter().any(|(_, clones)| clones.contains(group));
        Part { name: called(group.clone()), groups: vec![group.clone()], action: None, clone }
    });
    let of_jobs = jobs.iter().map(|(job, clones)| Part {
        name: called(job.clone()),
        groups: clones.clone(),
        action: None,
        clone: false,
    });
    let units: Vec<Part> = of_jobs.chain(single).collect();
    parts.extend(units.iter().cloned());
    for name in &names {
        let doing: Vec<&str> = actions.iter().filter(|(_, action)| action == name).map(|(group, _)| *group).collect();
        let is_doing = |group: &String| doing.contains(&group.as_str());
        let some = units.iter().filter(|part| {
            part.groups.iter().any(is_doing) && doing.iter().any(|group| !part.groups.iter().any(|own| own == group))
        });
        parts.extend(some.map(|part| {
            let action = Some(name.clone());
            Part { name: format!("{} {name}", part.name), action, ..part.clone() }
        }));
    }
    parts
}

fn actions(workload: &Workload) -> Vec<(&str, &str)> {
    let groups = workload.measured_phases().flat_map(|phase| &phase.groups);
    let actions = groups
        .flat_map(|group| group.actions.all().into_iter().map(|action| (group.name.as_str(), action.name.as_str())));
    let calls = workload.replay.iter().flat_map(|replay| &replay.kinds).map(|kind| (REPLAY_GROUP, kind.as_str()));
    actions.chain(calls).collect()
}

/// Operations with the fsyncs that follow them, as a part of the load. An action of that name has its rate under it, but not its latency,
/// which would be that of a commit without its fsync.
pub const COMMIT: &str = "commit";

/// The names of everything that a load will report about its parts: "create latency p99", "readers operations per second"; and the scores of one that has
/// the phases of IO500.
pub fn names(workload: &Workload) -> Vec<String> {
    let of = |part: Part| {
        let latencies = LATENCIES.map(|(words, _)| format!("{} {words}", part.name));
        std::iter::once(format!("{} {RATE}", part.name)).chain(latencies)
    };
    let groups = workload.measured_phases().flat_map(|phase| &phase.groups);
    let syncing = groups.filter(|group| group.fsync != FsyncPolicy::default());
    let fsyncs = syncing.flat_map(|group| {
        let between = group.fsync.between && group.fsync.every_operations.max(group.fsync.data_every) > 0;
        let between = between && workload.one_at_a_time(group).is_some();
        let commits = (group.fsync.commits() || between).then(|| [format!("{} {COMMIT}", group.name), COMMIT.into()]);
        std::iter::once(format!("{} fsync", group.name)).chain(commits.into_iter().flatten())
    });
    let fsyncs = fsyncs.flat_map(|part| LATENCIES.map(|(words, _)| format!("{part} {words}")));
    let several = workload.measured_phases().count() > 1;
    let phases = workload.measured_phases().filter(|_| several);
    let of_phases = phases.flat_map(|phase| OF_PHASES.map(|metric| format!("{} {}", phase.name, metric.name)));
    let of_replay = workload.replay.iter().flat_map(|_| REPLAY.map(|(name, ..)| name.to_owned()));
    let mut names: Vec<String> = parts(&actions(workload)).into_iter().flat_map(of).collect();
    for name in fsyncs.chain(io500::names(workload)).chain(of_phases).chain(of_replay) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The rates of a load's groups, by name, of clones together: what a table shows unless the study says otherwise. A sum over groups would
/// be a sum over paced and unpaced groups. `None` for a load of a single group.
pub fn group_rates(workload: &Workload) -> Option<Vec<String>> {
    let is_group = |part: &Part| !part.groups.is_empty() && part.action.is_none() && !part.clone;
    let rates: Vec<String> = parts(&actions(workload))
        .iter()
        .filter(|part| is_group(part))
        .map(|part| format!("{} {RATE}", part.name))
        .collect();
    (!rates.is_empty()).then_some(rates)
}

/// What a table shows of a replay unless the study says otherwise.
pub fn of_replay() -> Vec<String> {
    [catalog::EXECUTION_TIME.name, catalog::OPERATIONS_PER_SECOND.name, REPLAY[0].0].map(str::to_owned).to_vec()
}

/// Whether some measured groups go at a given rate while others go as fast as they can, so that a rate over all of them
/// says little of either.
pub fn mixes_paced_and_free(workload: &Workload) -> bool {
    let paced = |wanted: bool| {
        let mut groups = workload.measured_phases().flat_map(|phase| &phase.groups);
        groups.any(|group| group.is_paced() == wanted)
    };
    paced(true) && paced(false)
}

fn actions_of(report: &LoadReport) -> Vec<(&str, &str)> {
    report.operations.iter().map(|operation| (operation.group.as_str(), operation.name.as_str())).collect()
}

pub fn figures(report: &LoadReport) -> Vec<Figure> {
    let mut figures = Vec::new();
    let policies = policies(report);
    for part in parts(&actions_of(report)) {
        let of_part = report.operations.iter().filter(|operation| part.has(operation));
        let latency = Histogram::merged(of_part.clone().map(|operation| &operation.latency));
        figures.push(Figure {
            metric: format!("{} {RATE}", part.name),
            value: report.rate_of(of_part),
            unit: Unit::PerSecond,
            better: Better::Higher,
        });
        if policies.iter().all(|(name, _)| *name != part.name) {
            figures.extend(latency_figures(&part.name, &latency));
        }
    }
    figures.extend(policies.iter().flat_map(|(name, latency)| latency_figures(name, latency)));
    figures.extend(io500::figures(report));
    figures.extend(report.replay.iter().flat_map(|replay| {
        let figure = |(name, unit, better, value): (&str, _, _, OfReplay)| {
            value(replay).map(|value| Figure { metric: name.to_owned(), value, unit, better })
        };
        REPLAY.into_iter().filter_map(figure)
    }));
    figures
}

/// The kernel's work in each phase of a load that measures several; `instructions` are of one after the other. Phases of one name count together,
/// as their operations do.
pub fn phase_work(report: &LoadReport, instructions: &[u64]) -> Vec<Figure> {
    let mut figures = Vec::new();
    if instructions.len() != report.phases.len() {
        return figures;
    }
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for (phase, instructions) in report.phases.iter().zip(instructions) {
        match sums.iter_mut().find(|(name, _)| *name == phase.name) {
            Some((_, sum)) => *sum += instructions,
            None => sums.push((&phase.name, *instructions)),
        }
    }
    for (name, sum) in sums {
        let operations = report.operations.iter().filter(|operation| operation.phase == name);
        let operations: u64 = operations.map(|operation| operation.invocations).sum();
        let per_operation = (operations > 0).then(|| sum as f64 / operations as f64);
        for (metric, value) in OF_PHASES.iter().zip([Some(sum as f64), per_operation]) {
            let figure = |value| Figure { metric: format!("{name} {}", metric.name), ..metric.figure(value) };
            figures.extend(value.map(figure));
        }
    }
    figures
}

fn latency_figures(part: &str, latency: &Histogram) -> impl Iterator<Item = Figure> {
    LATENCIES.iter().filter_map(move |(words, value)| {
        let metric = format!("{part} {words}");
        Some(Figure { metric, value: value(latency)?, unit: Unit::Nanoseconds, better: Better::Lower })
    })
}

/// The fsyncs of each group's policy, and the operations with the fsyncs that follow them, with their latencies.
pub fn policies(report: &LoadReport) -> Vec<(String, Histogram)> {
    let mut policies: Vec<(String, Histogram)> = Vec::new();
    let mut add = |name: String, latency: &Histogram| match policies.iter_mut().find(|(known, _)| *known == name) {
        Some((_, sum)) => sum.merge(latency),
        None => policies.push((name, latency.clone())),
    };
    for policy in &report.group_fsyncs {
        add(format!("{} fsync", policy.group), &policy.latency);
    }
    for policy in report.group_fsyncs.iter().filter(|policy| policy.commits.count() > 0) {
        add(format!("{} {COMMIT}", policy.group), &policy.commits);
        add(COMMIT.into(), &policy.commits);
    }
    policies
}

/// The latencies behind a figure "… latency p99" by the words before "latency": those of a part, or of all operations that read
/// or write, or of all fsyncs where no part has that name. Empty where there are none.
pub fn latencies_of(report: &LoadReport, name: &str) -> Histogram {
    let operations = |wanted: &dyn Fn(&OperationReport) -> bool| {
        Histogram::merged(
            report.operations.iter().filter(|operation| wanted(operation)).map(|operation| &operation.latency),
        )
    };
    let policy = |wanted: &str| policies(report).into_iter().find(|(part, _)| part == wanted);
    if let Some((_, commits)) = policy(COMMIT).filter(|_| name == COMMIT) {
        return commits;
    }
    // Also if the part completed nothing: a figure must not mean something else in a single trial.
    if let Some(part) = parts(&actions_of(report)).iter().find(|part| part.name == name) {
        return operations(&|operation| part.has(operation));
    }
    match name {
        "read" => operations(&|operation| operation.read_bytes > 0),
        "write" => operations(&|operation| operation.written_bytes > 0),
        "fsync" => {
            let calls = report.calls.iter().filter(|call| call.makes_durable()).map(|call| &call.latency);
            Histogram::merged(calls.chain(report.group_fsyncs.iter().map(|policy| &policy.latency)))
        }
        _ => policy(name).map(|(_, latency)| latency).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{CallReport, GroupFsyncs, PhaseReport, Span};

    #[test]
    fn groups_are_told_apart_where_there_are_several() {
        let names =
            |actions: &[(&str, &str)]| -> Vec<String> { parts(actions).into_iter().map(|part| part.name).collect() };
        assert_eq!(names(&[("main", "create"), ("main", "read")]), ["create", "read"]);
        assert_eq!(names(&[("readers", "read"), ("writers", "write")]), ["read", "write", "readers", "writers"]);
        assert_eq!(
            names(&[("a", "read"), ("b", "read"), ("b", "stat")]),
            ["read", "stat", "a", "b", "a read", "b read"]
        );
        assert_eq!(names(&[("read", "read"), ("write", "sync")]), ["read", "sync", "group read", "write"]);
        assert_eq!(
            names(&[("db.0", "read"), ("db.1", "read")]),
            ["read", "db", "db.0", "db.1", "db.0 read", "db.1 read"]
        );
        let clones = [("db.0", "read"), ("db.1", "read"), ("a", "read"), ("v.1", "stat"), ("v.2", "stat")];
        let rates: Vec<String> = parts(&clones)
            .into_iter()
            .filter(|part| part.action.is_none() && !part.clone)
            .map(|part| part.name)
            .collect();
        assert_eq!(rates, ["db", "a", "v.1", "v.2"]);
    }

    #[test]
    fn the_rates_of_the_groups_add_up_to_the_load() {
        let operation = |group: &str, name: &str, invocations| {
            let latency = Histogram::from_values(&vec![2_000_000; invocations as usize]);
            OperationReport {
                group: group.into(),
                name: name.into(),
                invocations,
                latency,
                ..OperationReport::default()
            }
        };
        let report = LoadReport {
            elapsed_ns: 2_000_000_000,
            operations: vec![
                operation("readers", "open", 10),
                operation("readers", "read", 30),
                operation("deliverers", "deliver", 6),
            ],
            ..LoadReport::default()
        };
        let figures = figures(&report);
        let value = |name: &str| figures.iter().find(|figure| figure.metric == name).map(|figure| figure.value);
        assert_eq!(value("readers operations per second"), Some(20.0));
        assert_eq!(value("deliverers operations per second"), Some(3.0));
        assert_eq!(value("read operations per second"), Some(15.0));
        assert_eq!(value("deliver latency max"), Some(2_000_000.0));
        assert_eq!(value("deliver latency mean"), Some(2_000_000.0));
        assert!(value("deliver latency p99.9").is_some());
    }

    #[test]
    fn the_latencies_behind_a_name_are_those_of_its_part() {
        let operation = |name: &str, read_bytes, count: usize| OperationReport {
            group: "main".into(),
            name: name.into(),
            read_bytes,
            latency: Histogram::from_values(&vec![1000; count]),
            ..OperationReport::default()
        };
        let call = |call: &str, count: usize| CallReport {
            group: "main".into(),
            call: call.into(),
            latency: Histogram::from_values(&vec![1000; count]),
        };
        let mut report = LoadReport {
            operations: vec![operation("list", 10, 4), operation("copy", 10, 5), operation("create", 0, 90)],
            calls: vec![call("fsync", 3), call("open", 70)],
            ..LoadReport::default()
        };
        report.group_fsyncs.push(GroupFsyncs {
            group: "writers".into(),
            periodic: 8,
            at_end: 0,
            latency: Histogram::from_values(&[3000; 8]),
            commits: Histogram::from_values(&[5000; 7]),
            ..GroupFsyncs::default()
        });
        assert_eq!(
            ["writers fsync", "writers commit", "commit"].map(|name| latencies_of(&report, name).count()),
            [8, 7, 7]
        );
        assert!(figures(&report).iter().any(|figure| figure.metric == "writers fsync latency p95"));
        report.operations.push(operation("commit", 0, 7));
        let commits: Vec<f64> = figures(&report)
            .iter()
            .filter(|figure| figure.metric == "commit latency max")
            .map(|figure| figure.value)
            .collect();
        assert_eq!((commits, latencies_of(&report, "commit").min_ns()), (vec![5000.0], 5000), "with its fsync");
        report.operations.pop();
        report.group_fsyncs.clear();
        let counts = |report: &LoadReport| {
            ["copy", "read", "write", "fsync", "none"].map(|name| latencies_of(report, name).count())
        };
        assert_eq!(counts(&report), [5, 9, 0, 3, 0]);
        report.operations.push(operation("read", 10, 1));
        assert_eq!(counts(&report), [5, 1, 0, 3, 0], "an action of that name goes before");
        report.operations.push(operation("fsync", 0, 0));
        report.operations.last_mut().expect("it is there").errors = 7;
        assert_eq!(counts(&report), [5, 1, 0, 0, 0], "also where it completed nothing");
    }

    fn value(report: &LoadReport, name: &str) -> Option<f64> {
        figures(report).iter().find(|figure| figure.metric == name).map(|figure| figure.value)
    }

    fn sixty(group: &str, name: &str, seconds: (u64, u64)) -> OperationReport {
        let at_work = Span { begin_ns: seconds.0 * 1_000_000_000, end_ns: seconds.1 * 1_000_000_000 };
        OperationReport {
            group: group.into(),
            name: name.into(),
            invocations: 60,
            at_work: Some([at_work, Span::default()]),
            ..OperationReport::default()
        }
    }

    fn phase(name: &str, groups: &[&str], seconds: u64) -> PhaseReport {
        PhaseReport {
            name: name.into(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            elapsed_ns: seconds * 1_000_000_000,
            sync_ns: 0,
        }
    }

    #[test]
    fn a_group_of_the_same_name_in_another_phase_takes_nothing_from_a_rate() {
        let report = LoadReport {
            elapsed_ns: 9_000_000_000,
            phases: vec![phase("fill", &["main", "other"], 6), phase("work", &["main"], 3)],
            operations: vec![
                sixty("main", "write", (0, 6)),
                sixty("other", "stat", (0, 6)),
                sixty("main", "read", (6, 9)),
                sixty("main", "stat", (6, 9)),
            ],
            ..LoadReport::default()
        };
        assert_eq!(value(&report, "write operations per second"), Some(10.0));
        assert_eq!(value(&report, "read operations per second"), Some(20.0));
        assert_eq!(value(&report, "main operations per second"), Some(20.0), "180 in both phases");
        assert_eq!(value(&report, "stat operations per second"), Some(120.0 / 9.0));
        assert_eq!(value(&report, "main stat operations per second"), Some(20.0));
    }

    #[test]
    fn a_groups_delay_and_what_others_do_after_its_end_are_not_its_time() {
        let report = LoadReport {
            elapsed_ns: 10_000_000_000,
            operations: vec![
                sixty("early", "read", (0, 2)),
                sixty("late", "read", (4, 10)),
                sixty("always", "stat", (0, 10)),
            ],
            ..LoadReport::default()
        };
        assert_eq!(value(&report, "early operations per second"), Some(30.0));
        assert_eq!(value(&report, "late operations per second"), Some(10.0));
        assert_eq!(value(&report, "always operations per second"), Some(6.0));
        assert_eq!(value(&report, "read operations per second"), Some(15.0), "in eight seconds");
    }

    #[test]
    fn groups_of_different_phases_have_each_their_own_time() {
        // Reports from before groups recorded when they were at work.
        let operation = |group: &str, name: &str| OperationReport { at_work: None, ..sixty(group, name, (0, 0)) };
        let report = LoadReport {
            elapsed_ns: 9_000_000_000,
            phases: vec![phase("fill", &["writers"], 6), phase("work", &["readers", "deleters"], 3)],
            operations: vec![
                operation("writers", "write"),
                operation("readers", "read"),
                operation("deleters", "read"),
            ],
            ..LoadReport::default()
        };
        assert_eq!(value(&report, "writers operations per second"), Some(10.0));
        assert_eq!(value(&report, "readers operations per second"), Some(20.0));
        assert_eq!(value(&report, "read operations per second"), Some(40.0));
        assert_eq!(value(&report, "write operations per second"), Some(10.0));
    }
}

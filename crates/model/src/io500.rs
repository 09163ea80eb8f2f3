//! IO500's score, for a load that has its phases.
//!
//! From the published rules (<https://io500.org/rules-submission>): the score is √(bandwidth × metadata rate), where bandwidth is the geometric
//! mean of four phases in GiB/s, and the metadata rate that of eight phases in thousands per second. If a phase is followed by a `sync` of its own, its time includes
//! the sync. The entries that `find` visits are counted by its stat calls.

use crate::{Better, Figure, LoadReport, Unit, Workload};

const BANDWIDTHS: [&str; 4] = ["ior-easy-write", "ior-hard-write", "ior-easy-read", "ior-hard-read"];
const RATES: [&str; 8] = [
    "mdtest-easy-write",
    "mdtest-hard-write",
    "find",
    "mdtest-easy-stat",
    "mdtest-hard-stat",
    "mdtest-easy-delete",
    "mdtest-hard-read",
    "mdtest-hard-delete",
];
const THROUGHPUT: &str = "throughput";
const RATE: &str = "rate";
const SCORE: &str = "IO500 score";
const BANDWIDTH: &str = "IO500 bandwidth";
const METADATA: &str = "IO500 metadata rate";
const GIB: f64 = (1_u64 << 30) as f64;

fn result_name(phase: &str) -> String {
    let word = if BANDWIDTHS.contains(&phase) { THROUGHPUT } else { RATE };
    format!("{phase} {word}")
}

/// The phases, those of bandwidth first.
pub fn phases() -> impl Iterator<Item = &'static str> {
    BANDWIDTHS.into_iter().chain(RATES)
}

/// The unit of a figure of this name, if it is one of these. Higher is better for all of them.
pub fn unit_of(name: &str) -> Option<Unit> {
    match name {
        SCORE => Some(Unit::Count),
        BANDWIDTH => Some(Unit::BytesPerSecond),
        METADATA => Some(Unit::PerSecond),
        _ => phases().find(|phase| name == result_name(phase)).map(unit_of_phase),
    }
}

fn unit_of_phase(phase: &str) -> Unit {
    if BANDWIDTHS.contains(&phase) { Unit::BytesPerSecond } else { Unit::PerSecond }
}

/// The names of the figures that a load will have; none unless it measures all of the phases.
pub fn names(workload: &Workload) -> Vec<String> {
    if !phases().all(|name| workload.measured_phases().any(|phase| phase.name == name)) {
        return Vec::new();
    }
    let scores = [SCORE, BANDWIDTH, METADATA].map(str::to_owned);
    scores.into_iter().chain(phases().map(result_name)).collect()
}

/// The results of the phases, in bytes or files per second, and the scores. Without a result of every phase there is no score.
pub fn figures(report: &LoadReport) -> Vec<Figure> {
    if !phases().all(|name| report.phases.iter().any(|phase| phase.name == name)) {
        return Vec::new();
    }
    let value = |phase: &str| result(report, phase).map(|(value, _)| value);
    let results: Vec<(&str, Option<f64>)> = phases().map(|phase| (phase, value(phase))).collect();
    let of =
        |metric: String, value| unit_of(&metric).map(|unit| Figure { metric, value, unit, better: Better::Higher });
    let mut figures: Vec<Figure> =
        results.iter().filter_map(|(phase, value)| of(result_name(phase), (*value)?)).collect();
    if let Some((bandwidth, metadata, score)) = scores(report) {
        let scores = [(SCORE, score), (BANDWIDTH, bandwidth), (METADATA, metadata)];
        figures.extend(scores.into_iter().filter_map(|(name, value)| of(name.to_owned(), value)));
    }
    figures
}

/// Bytes per second, files per second and the score, if there is a result of every phase.
pub fn scores(report: &LoadReport) -> Option<(f64, f64, f64)> {
    let value = |phase: &str| result(report, phase).map(|(value, _)| value).filter(|value| *value > 0.0);
    let all: Vec<f64> = phases().map(value).collect::<Option<_>>()?;
    let (bandwidths, rates) = all.split_at_checked(BANDWIDTHS.len())?;
    let (bandwidth, metadata) = (geometric_mean(bandwidths), geometric_mean(rates));
    Some((bandwidth, metadata, score(bandwidth, metadata)))
}

/// Of bytes per second and files per second.
fn score(bandwidth: f64, metadata: f64) -> f64 {
    (bandwidth / GIB * (metadata / 1000.0)).sqrt()
}

fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// Bytes or files per second of a phase, and its seconds; `None` where it took no time.
pub fn result(report: &LoadReport, phase: &str) -> Option<(f64, f64)> {
    let elapsed = |name: &str| -> u64 {
        report.phases.iter().filter(|phase| phase.name == name).map(|phase| phase.elapsed_ns).sum()
    };
    let nanoseconds = elapsed(phase) + elapsed(&format!("{phase} sync"));
    let operations = report.operations.iter().filter(|operation| operation.group == phase);
    let done: u64 = match phase {
        "find" => {
            let stats = report.calls.iter().filter(|call| call.group == phase && call.call == "stat");
            stats.map(|call| call.latency.count()).sum()
        }
        _ if BANDWIDTHS.contains(&phase) => operations.map(|done| done.read_bytes + done.written_bytes).sum(),
        _ => operations.map(|done| done.invocations).sum(),
    };
    let seconds = nanoseconds as f64 / 1e9;
    (nanoseconds > 0).then(|| (done as f64 / seconds, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Histogram,
        load::{CallReport, OperationReport, PhaseReport},
    };

    fn phase(name: &str, seconds: u64) -> PhaseReport {
        PhaseReport {
            name: name.into(),
            groups: vec![name.into()],
            elapsed_ns: seconds * 1_000_000_000,
            ..PhaseReport::default()
        }
    }

    /// Each bandwidth is 2 GiB/s and each rate 8000/s, but for one of each.
    fn report() -> LoadReport {
        let bandwidth = |name: &str| OperationReport {
            group: name.into(),
            name: "move".into(),
            invocations: 1,
            written_bytes: if name == "ior-easy-write" { 40 << 30 } else { 20 << 30 },
            ..OperationReport::default()
        };
        let rate = |name: &str| OperationReport {
            group: name.into(),
            name: "file".into(),
            invocations: if name == "find" { 3 } else { 80_000 },
            ..OperationReport::default()
        };
        let calls = [("find", "stat", 80_000), ("find", "open", 7), ("mdtest-easy-stat", "stat", 80_000)];
        LoadReport {
            phases: phases().map(|name| phase(name, 10)).chain([phase("ior-easy-write sync", 10)]).collect(),
            operations: BANDWIDTHS.map(bandwidth).into_iter().chain(RATES.map(rate)).collect(),
            calls: calls
                .map(|(group, call, count)| CallReport {
                    group: group.into(),
                    call: call.into(),
                    latency: Histogram::from_values(&vec![1000; count]),
                })
                .into(),
            ..LoadReport::default()
        }
    }

    fn value(report: &LoadReport, name: &str) -> Option<f64> {
        figures(report).iter().find(|figure| figure.metric == name).map(|figure| figure.value)
    }

    #[test]
    fn the_score_is_the_published_one() {
        let report = report();
        let close = |name: &str, wanted: f64| {
            let is = value(&report, name).unwrap_or_else(|| panic!("no {name}"));
            assert!((is / wanted - 1.0).abs() < 1e-9, "{name}: {is}, and not {wanted}");
        };
        close("ior-easy-write throughput", 2.0 * GIB);
        close("find rate", 8000.0);
        close("mdtest-easy-delete rate", 8000.0);
        close("IO500 bandwidth", 2.0 * GIB);
        close("IO500 metadata rate", 8000.0);
        close("IO500 score", 4.0);
        // From a published list of results: 9.5 GiB/s and 150 kIOPS give a score of 37.7.
        assert!((score(9.5 * GIB, 150_000.0) - 37.749).abs() < 0.001);
        assert!((geometric_mean(&[1.0, 16.0, 4.0, 4.0]) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_phase_that_did_nothing_leaves_no_score() {
        let mut report = report();
        report.operations.retain(|operation| operation.group != "mdtest-hard-delete");
        assert_eq!(value(&report, "mdtest-hard-delete rate"), Some(0.0));
        assert_eq!(value(&report, "IO500 score"), None);
        report.phases.retain(|phase| phase.name != "find");
        assert!(figures(&report).is_empty(), "not all phases: it is another load");
    }

    #[test]
    fn every_figure_has_the_unit_that_its_name_has() {
        let figures = figures(&report());
        assert_eq!(figures.len(), 15);
        for figure in figures {
            assert_eq!(unit_of(&figure.metric), Some(figure.unit));
        }
    }
}

//! A load's report as filebench prints it.

use fstone_model::LoadReport;
use fstone_model::load::{OperationReport, PhaseReport};
use std::fmt::Write as _;

const MEBIBYTE: f64 = (1 << 20) as f64;
const NS_PER_MS: f64 = 1e6;

/// The breakdown by flowop and the summary, of each `run`. Flowops that are no operations on files (limits, semaphores) are not counted, and
/// have no line.
pub fn print(report: &LoadReport) -> String {
    if report.phases.is_empty() {
        return run(&report.operations.iter().collect::<Vec<_>>(), report.running_ns);
    }
    let mut begin_ns = 0;
    let of_phase = |phase: &PhaseReport| {
        let end_ns = begin_ns + phase.elapsed_ns;
        let is_in = |one: &&OperationReport| {
            one.at_work.is_some_and(|[work, _]| (begin_ns..end_ns.max(begin_ns + 1)).contains(&work.begin_ns))
        };
        let operations: Vec<&OperationReport> = report.operations.iter().filter(is_in).collect();
        begin_ns = end_ns;
        run(&operations, phase.elapsed_ns - phase.sync_ns.min(phase.elapsed_ns))
    };
    report.phases.iter().map(of_phase).collect()
}

fn run(operations: &[&OperationReport], ran_ns: u64) -> String {
    let seconds = ran_ns as f64 / 1e9;
    let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let mut out = format!("{seconds:.3}: Per-Operation Breakdown\n");
    for one in operations {
        let (least, most) = (ms(one.latency.min_ns() as f64), ms(one.latency.max_ns() as f64));
        let _ = writeln!(
            out,
            "{:<20} {}ops {:8.0}ops/s {:5.1}mb/s {:8.3}ms/op [{least:.3}ms - {most:5.3}ms]",
            one.name,
            one.invocations,
            per_second(one.invocations as f64),
            per_second(bytes(one) / MEBIBYTE),
            mean_ms(one.latency.sum_ns(), one.invocations),
        );
    }
    let sum: u128 = operations.iter().map(|one| one.latency.sum_ns()).sum();
    let count = |moved: fn(&OperationReport) -> bool| {
        operations.iter().filter(|one| moved(one)).map(|one| one.invocations).sum::<u64>() as f64
    };
    let all: f64 = operations.iter().map(|one| bytes(one)).sum();
    let operations: u64 = operations.iter().map(|one| one.invocations).sum();
    let _ = writeln!(
        out,
        "{seconds:.3}: IO Summary: {operations:5} ops {:5.3} ops/s {:.0}/{:.0} rd/wr {:5.1}mb/s {:5.3}ms/op",
        per_second(operations as f64),
        per_second(count(|one| one.read_bytes > 0)),
        per_second(count(|one| one.written_bytes > 0)),
        per_second(all / MEBIBYTE),
        mean_ms(sum, operations),
    );
    out
}

fn bytes(one: &OperationReport) -> f64 {
    (one.read_bytes + one.written_bytes) as f64
}

fn ms(ns: f64) -> f64 {
    ns / NS_PER_MS
}

fn mean_ms(sum_ns: u128, count: u64) -> f64 {
    if count == 0 { 0.0 } else { ms(sum_ns as f64 / count as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::load::Span;

    #[test]
    fn each_run_has_figures_of_its_own() {
        let phase = |seconds: u64| PhaseReport { elapsed_ns: seconds * 1_000_000_000, ..PhaseReport::default() };
        let operation = |begin: u64, invocations| OperationReport {
            name: "read".into(),
            invocations,
            at_work: Some([
                Span { begin_ns: begin * 1_000_000_000, end_ns: (begin + 1) * 1_000_000_000 },
                Span::default(),
            ]),
            ..OperationReport::default()
        };
        let mut report = LoadReport {
            running_ns: 4_000_000_000,
            phases: vec![phase(1), phase(3)],
            operations: vec![operation(0, 600), operation(1, 300)],
            ..LoadReport::default()
        };
        let text = print(&report);
        let rates: Vec<&str> = text.lines().filter(|line| line.starts_with("read ")).collect();
        assert_eq!(rates.len(), 2, "{text}");
        assert!(rates[0].contains("600ops      600ops/s") && rates[1].contains("300ops      100ops/s"), "{text}");
        assert!(text.contains("1.000: IO Summary:   600 ops 600.000 ops/s"), "{text}");
        assert!(text.contains("3.000: IO Summary:   300 ops 100.000 ops/s"), "{text}");
        report.phases.clear();
        assert!(print(&report).contains("4.000: IO Summary:   900 ops 225.000 ops/s"));
    }
}

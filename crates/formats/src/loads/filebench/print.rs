//! A load's report as filebench prints it.

use fstone_model::LoadReport;
use fstone_model::load::OperationReport;
use std::fmt::Write as _;

const MEBIBYTE: f64 = (1 << 20) as f64;
const NS_PER_MS: f64 = 1e6;

/// The breakdown by flowop and the summary. Flowops that are no operations on files (limits, semaphores) are not counted, and have no
/// line.
#[must_use]
pub fn print(report: &LoadReport) -> String {
    let seconds = report.running_ns as f64 / 1e9;
    let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let mut out = format!("{seconds:.3}: Per-Operation Breakdown\n");
    for one in &report.operations {
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
    let operations = report.invocations();
    let sum: u128 = report.operations.iter().map(|one| one.latency.sum_ns()).sum();
    let count = |moved: fn(&OperationReport) -> bool| {
        report.operations.iter().filter(|one| moved(one)).map(|one| one.invocations).sum::<u64>() as f64
    };
    let all: f64 = report.operations.iter().map(bytes).sum();
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

//! Results for people, in fio's words and order.

use super::figures::{
    DIVISIONS, DirectionFigures, JobFigures, When, jobs, mean_and_deviation, percentiles, shares, version,
};
use crate::loads::fio::Plan;
use fstone_model::{Histogram, LoadReport, units::nanoseconds};
use std::fmt::Write as _;

pub fn normal(plan: &Plan, report: &LoadReport, when: &When) -> String {
    let all = jobs(plan, report);
    let mut out = format!("{}\n", version());
    for figures in &all {
        job(&mut out, plan, figures, when);
    }
    let mut groups: Vec<u32> = all.iter().map(|figures| figures.group).collect();
    groups.dedup();
    for group in groups {
        let _ = writeln!(out, "\nRun status group {group} (all jobs):");
        for (index, name) in ["READ", "WRITE", "TRIM"].iter().enumerate() {
            status(
                &mut out,
                name,
                all.iter().filter(|figures| figures.group == group).map(|figures| &figures.directions[index]),
            );
        }
    }
    for error in &report.errors {
        let _ = writeln!(out, "\nError: {} of {}: {} (x{})", error.call, error.path, error.text, error.count);
    }
    out
}

fn job(out: &mut String, plan: &Plan, figures: &JobFigures, when: &When) {
    let job = &plan.jobs[figures.job];
    let _ = writeln!(
        out,
        "\n{}: (groupid={}, jobs={}): err={:2}: {}",
        figures.name, figures.group, figures.clones, figures.error, when.text
    );
    for (name, direction) in ["read", "write", "trim"].iter().zip(&figures.directions) {
        if direction.operations == 0 {
            continue;
        }
        let rate = direction.bytes_per_second();
        let _ = writeln!(
            out,
            "  {name}: IOPS={}, BW={}/s ({}/s)({}/{}msec)",
            direction.iops() as u64,
            binary(rate),
            decimal(rate),
            binary(direction.bytes as f64),
            direction.runtime_ms
        );
        latency(out, "clat", &direction.latency, &job.percentiles);
        over_time(out, direction);
    }
    if figures.syncs.count() > 0 {
        let _ = writeln!(out, "  fsync/fdatasync/sync_file_range:");
        latency(out, "sync", &figures.syncs, &job.percentiles);
    }
    for (name, histogram) in &figures.others {
        let _ = writeln!(out, "  {name}: operations={}", histogram.count());
        latency(out, "clat", histogram, &job.percentiles);
    }
    let (ns, us, ms) = shares(&figures.latency());
    for (unit, shares) in [("nsec", &ns[..]), ("usec", &us[..]), ("msec", &ms[..])] {
        let shown: Vec<String> = shares
            .iter()
            .enumerate()
            .filter(|(_, share)| **share > 0.0)
            .map(|(index, share)| match DIVISIONS.get(index) {
                Some(division) => format!("{division}={share:.2}%"),
                None if index == DIVISIONS.len() => format!("2000={share:.2}%"),
                None => format!(">=2000={share:.2}%"),
            })
            .collect();
        for line in shown.chunks(5) {
            let _ = writeln!(out, "  lat ({unit})   : {}", line.join(", "));
        }
    }
    let (user, system) = figures.cpu();
    let usage = &figures.usage;
    let _ = writeln!(
        out,
        "  cpu          : usr={user:.2}%, sys={system:.2}%, ctx={}, majf={}, minf={}",
        usage.context_switches, usage.major_faults, usage.minor_faults
    );
    let names = ["1", "2", "4", "8", "16", "32", ">=64"].iter();
    let depths: Vec<String> = names.zip(figures.depths()).map(|(name, share)| format!("{name}={share:.1}%")).collect();
    let _ = writeln!(out, "  IO depths    : {}", depths.join(", "));
    let _ = writeln!(
        out,
        "     issued rwts: total={},{},{},{} short=0,0,0,0 dropped=0,0,0,0",
        figures.directions[0].operations,
        figures.directions[1].operations,
        figures.directions[2].operations,
        figures.syncs.count()
    );
    let _ = writeln!(
        out,
        "     latency   : target={}, window={}, percentile={:.2}%, depth={}",
        nanoseconds(job.latency_target.unwrap_or_default()),
        nanoseconds(job.latency_window) / 1000,
        job.latency_percent,
        figures.depth
    );
}

fn over_time(out: &mut String, figures: &DirectionFigures) {
    let (bytes, operations) = (&figures.over_time.bytes, &figures.over_time.operations);
    if bytes.samples == 0 {
        return;
    }
    let _ = writeln!(
        out,
        "   bw (  KiB/s): min={:5}, max={:5}, per={:3.2}%, avg={:5.2}, stdev={:5.2}, samples={}",
        (bytes.minimum / 1024.0) as u64,
        (bytes.maximum / 1024.0) as u64,
        figures.share_percent,
        bytes.mean / 1024.0,
        bytes.deviation() / 1024.0,
        bytes.samples
    );
    let _ = writeln!(
        out,
        "   iops        : min={:5}, max={:5}, avg={:5.2}, stdev={:5.2}, samples={}",
        operations.minimum as u64,
        operations.maximum as u64,
        operations.mean,
        operations.deviation(),
        operations.samples
    );
}

fn latency(out: &mut String, name: &str, histogram: &Histogram, list: &[f64]) {
    let (mean, deviation) = mean_and_deviation(histogram);
    let (unit, one) = unit_of(histogram.min_ns(), histogram.max_ns());
    let whole = |ns: u64| (ns as f64 / one) as u64;
    let _ = writeln!(
        out,
        "    {name} ({unit}): min={}, max={}, avg={:.2}, stdev={:.2}",
        whole(histogram.min_ns()),
        whole(histogram.max_ns()),
        mean / one,
        deviation / one
    );
    let values = percentiles(histogram, list);
    let extreme = |choose: fn(u64, u64) -> u64| values.iter().map(|(_, value)| *value).reduce(choose).unwrap_or(0);
    let (unit, one) = unit_of(extreme(u64::min), extreme(u64::max));
    let whole = |ns: u64| (ns as f64 / one) as u64;
    let _ = writeln!(out, "    {name} percentiles ({unit}):");
    let all: Vec<String> =
        values.iter().map(|(percent, value)| format!("{percent:5.2}th=[{:5}]", whole(*value))).collect();
    let lines: Vec<String> = all.chunks(4).map(|line| format!("     | {}", line.join(", "))).collect();
    let _ = writeln!(out, "{}", lines.join(",\n"));
}

/// The finest unit, but where no value is small or the largest would be too long. The bounds are fio's.
const fn unit_of(min_ns: u64, max_ns: u64) -> (&'static str, f64) {
    if min_ns <= 2_000 || max_ns < 100_000 {
        ("nsec", 1.0)
    } else if min_ns <= 2_000_000 || max_ns < 100_000_000 {
        ("usec", 1e3)
    } else {
        ("msec", 1e6)
    }
}

fn status<'f>(out: &mut String, name: &str, all: impl Iterator<Item = &'f DirectionFigures>) {
    let all: Vec<&DirectionFigures> = all.filter(|figures| figures.operations > 0).collect();
    let (Some(first), bytes) = (all.first(), all.iter().map(|figures| figures.bytes).sum::<u64>()) else { return };
    let rates = all.iter().map(|figures| figures.bytes_per_second());
    let (low, high) = rates.fold((f64::INFINITY, 0.0f64), |(low, high), rate| (low.min(rate), high.max(rate)));
    let times = all.iter().map(|figures| figures.runtime_ms);
    let (short, long) = times.fold((first.runtime_ms, 0), |(short, long), time| (short.min(time), long.max(time)));
    let rate = if long == 0 { 0.0 } else { bytes as f64 * 1000.0 / long as f64 };
    let _ = writeln!(
        out,
        "{name:>7}: bw={}/s ({}/s), {}/s-{}/s ({}/s-{}/s), io={} ({}), run={short}-{long}msec",
        binary(rate),
        decimal(rate),
        binary(low),
        binary(high),
        decimal(low),
        decimal(high),
        binary(bytes as f64),
        decimal(bytes as f64)
    );
}

/// Four digits at most, in units of 1024.
fn binary(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// Four digits at most, in units of 1000.
fn decimal(bytes: f64) -> String {
    scaled(bytes, 1000.0, &["B", "kB", "MB", "GB", "TB"])
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = if value >= 100.0 || value.fract() == 0.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_coarse_only_if_all_values_are() {
        for (min, max, unit) in [
            (400, 29_185_000, "nsec"),
            (2_001, 99_999, "nsec"),
            (2_001, 100_000, "usec"),
            (2_000_000, 500_000_000, "usec"),
            (3_161_000, 27_412_000, "usec"),
            (3_161_000, 100_000_000, "msec"),
        ] {
            assert_eq!(unit_of(min, max).0, unit, "{min} to {max}");
        }
    }
}

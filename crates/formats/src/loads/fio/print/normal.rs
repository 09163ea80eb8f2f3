//! Results for people, in fio's words and order.

use super::figures::{
    DEPTHS, DIVISIONS, DirectionFigures, JobFigures, TOGETHER, When, criterion, jobs, mean_and_deviation, percentiles,
    shares, version,
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
    if let Some(idle) = &when.idle {
        let _ = write!(out, "\n{}", idle.text(true));
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
    if let Some(description) = &figures.description {
        let _ = writeln!(out, "  Description  : [{description}]");
    }
    for (name, direction) in ["read", "write", "trim"].iter().zip(&figures.directions) {
        // As in fio, not of operations that all failed.
        if direction.operations == 0 || direction.runtime_ms == 0 && direction.bytes == 0 {
            continue;
        }
        let rate = direction.bytes_per_second();
        let _ = writeln!(
            out,
            "  {name}: IOPS={}, BW={}/s ({}/s)({}/{}msec){}",
            count(direction.iops(), 4),
            binary(rate),
            decimal(rate),
            binary(direction.bytes as f64),
            direction.runtime_ms,
            if *name == "write" { "; 0 zone resets" } else { "" }
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
    for (title, names, shares) in [
        ("  IO depths    : ", DEPTHS, figures.depths()),
        ("     submit    : ", TOGETHER, figures.submitted()),
        ("     complete  : ", TOGETHER, figures.completed()),
    ] {
        let all: Vec<String> = names.iter().zip(shares).map(|(name, share)| format!("{name}={share:.1}%")).collect();
        let _ = writeln!(out, "{title}{}", all.join(", "));
    }
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
    if let (Some(wanted), Some(seen)) = (&job.steady, &figures.steady) {
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len().max(1) as f64;
        let rate = mean(&seen.bytes);
        let _ = writeln!(
            out,
            "  steadystate  : attained={}, bw={}/s ({}/s), iops={}, {}{}={:.3}{}",
            if seen.attained { "yes" } else { "no" },
            binary(rate),
            decimal(rate),
            mean(&seen.operations).round(),
            if wanted.bytes { "bw" } else { "iops" },
            if wanted.slope { " slope" } else { " mean dev" },
            criterion(wanted, seen),
            if wanted.relative { "%" } else { "" }
        );
    }
}

fn over_time(out: &mut String, figures: &DirectionFigures) {
    let (bytes, operations) = (&figures.over_time.bytes, &figures.over_time.operations);
    if bytes.samples == 0 {
        return;
    }
    let (unit, one) = if bytes.mean > f64::from(1 << 30) { ("MiB", 1048576.0) } else { ("KiB", 1024.0) };
    let _ = writeln!(
        out,
        "   bw (  {unit}/s): min={:5}, max={:5}, per={:3.2}%, avg={:5.2}, stdev={:5.2}, samples={}",
        (bytes.minimum / one) as u64,
        (bytes.maximum / one) as u64,
        figures.share_percent,
        bytes.mean / one,
        bytes.deviation() / one,
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
    let whole = |ns: u64| count(ns as f64 / one, 6);
    let _ = writeln!(
        out,
        "    {name} ({unit}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
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
    let all: Vec<&DirectionFigures> =
        all.filter(|figures| figures.operations > 0 && (figures.runtime_ms > 0 || figures.bytes > 0)).collect();
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

fn binary(bytes: f64) -> String {
    scaled(bytes, 4, 1024, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

fn decimal(bytes: f64) -> String {
    scaled(bytes, 4, 1000, &["B", "kB", "MB", "GB", "TB", "PB"])
}

fn count(number: f64, digits: u32) -> String {
    scaled(number, digits, 1000, &["", "k", "M", "G", "T", "P"])
}

/// A whole number, or the largest unit in which it has no more digits; a point is one of them. As seen in the output of fio 3.33.
fn scaled(number: f64, most: u32, step: u64, units: &[&str]) -> String {
    let (mut whole, mut part, mut unit) = (number as u64, 0, 0);
    while whole >= 10_u64.pow(most) && unit + 1 < units.len() {
        (whole, part, unit) = (whole / step, whole % step, unit + 1);
    }
    let digits = whole.checked_ilog10().unwrap_or(0) + 1;
    let behind = if unit == 0 { 0 } else { (most - 1).saturating_sub(digits) as usize };
    format!("{:.behind$}{}", whole as f64 + part as f64 / step as f64, units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As fio 3.33 prints them.
    #[test]
    fn numbers_have_the_units_and_digits_of_fio() {
        for (bytes, in_binary, in_decimal) in [
            (9_999_u64, "9999B", "9999B"),
            (10_000, "9.77KiB", "10.0kB"),
            (10_239, "10.00KiB", "10.2kB"),
            (12_345, "12.1KiB", "12.3kB"),
            (99_999, "97.7KiB", "100.0kB"),
            (999_999, "977KiB", "1000kB"),
            (2 << 20, "2048KiB", "2097kB"),
            (9_999_999, "9766KiB", "10000kB"),
            (10_239_999, "10000KiB", "10.2MB"),
            (10_240_000, "9.77MiB", "10.2MB"),
            (1 << 30, "1024MiB", "1074MB"),
            (10 << 30, "10.0GiB", "10.7GB"),
            (20 << 40, "20.0TiB", "22.0TB"),
        ] {
            assert_eq!((&*binary(bytes as f64), &*decimal(bytes as f64)), (in_binary, in_decimal), "{bytes}");
        }
        for (number, digits, shown) in [
            (9_999, 4, "9999"),
            (16_600, 4, "16.6k"),
            (2_597_000, 4, "2597k"),
            (7_666_000, 6, "7666.0k"),
            (13_584_000, 6, "13584k"),
        ] {
            assert_eq!(count(f64::from(number), digits), shown);
        }
    }

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

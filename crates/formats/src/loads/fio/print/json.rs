//! Results as fio's JSON, key by key.

use super::figures::{
    DIVISIONS, DirectionFigures, JobFigures, When, bins, cpu, jobs, mean_and_deviation, percentiles, shares, version,
};
use crate::loads::fio::Plan;
use fstone_model::{Histogram, LoadReport, units::nanoseconds};
use serde_json::{Map, Value, json};

/// The results of a run as JSON, with histograms if that is `plus`.
#[must_use]
pub fn json(plan: &Plan, report: &LoadReport, when: &When, plus: bool) -> String {
    let all = jobs(plan, report);
    let alone = all.len() == 1;
    let parts = plan.parts.len().max(1) as u64;
    let entries: Vec<Value> =
        all.iter().map(|figures| entry(plan, report, figures, when, plus, alone, parts)).collect();
    let mut out = Map::new();
    out.insert("fio version".into(), version().into());
    out.insert("timestamp".into(), (when.unix_ms / 1000).into());
    out.insert("timestamp_ms".into(), when.unix_ms.into());
    out.insert("time".into(), when.text.clone().into());
    if !plan.global.is_empty() {
        out.insert("global options".into(), options(&plan.global));
    }
    out.insert("jobs".into(), entries.into());
    out.insert("disk_util".into(), json!([]));
    format!("{:#}\n", Value::Object(out))
}

fn options(written: &[(String, String)]) -> Value {
    Value::Object(written.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect())
}

fn entry(
    plan: &Plan,
    report: &LoadReport,
    figures: &JobFigures,
    when: &When,
    plus: bool,
    alone: bool,
    parts: u64,
) -> Value {
    let job = &plan.jobs[figures.job];
    let list = &job.percentiles;
    let series = alone.then_some(report);
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.into(), value);
    put("jobname", figures.name.clone().into());
    put("groupid", figures.group.into());
    put("error", figures.error.into());
    put("eta", 0.into());
    put("elapsed", (report.elapsed_ns.div_ceil(1_000_000_000)).into());
    put("job options", options(&job.written));
    put("read", direction(&figures.directions[0], 0, list, plus, series));
    put("write", direction(&figures.directions[1], 1, list, plus, series));
    put("trim", direction(&DirectionFigures::default(), 2, list, plus, None));
    let mut sync = Map::new();
    sync.insert("total_ios".into(), figures.syncs.count().into());
    sync.insert("lat_ns".into(), latency(&figures.syncs, list, figures.syncs.count() > 0, plus));
    put("sync", Value::Object(sync));
    if !figures.others.is_empty() {
        // What is done to whole files is no read.
        let others = figures.others.iter().map(|(name, histogram)| {
            let of_it = json!({ "total_ios": histogram.count(), "lat_ns": latency(histogram, list, true, plus) });
            (name.clone(), of_it)
        });
        put("file_operations", Value::Object(others.collect()));
    }
    put("job_runtime", figures.job_runtime_ms.into());
    let (user, system) = cpu(report);
    put("usr_cpu", rounded(user));
    put("sys_cpu", rounded(system));
    put("ctx", (when.context_switches * figures.clones / parts).into());
    put("majf", (when.major_faults * figures.clones / parts).into());
    put("minf", (when.minor_faults * figures.clones / parts).into());
    let four = [0.0, 100.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    put("iodepth_level", classes(["1", "2", "4", "8", "16", "32", ">=64"], figures.depths()));
    put("iodepth_submit", classes(["0", "4", "8", "16", "32", "64", ">=64"], four));
    put("iodepth_complete", classes(["0", "4", "8", "16", "32", "64", ">=64"], four));
    let (ns, us, ms) = shares(&figures.latency());
    let named = |shares: &[f64]| -> Value {
        let name = |index: usize| match DIVISIONS.get(index) {
            Some(division) => division.to_string(),
            None if index == DIVISIONS.len() => "2000".into(),
            None => ">=2000".into(),
        };
        Value::Object(shares.iter().enumerate().map(|(index, share)| (name(index), rounded(*share))).collect())
    };
    put("latency_ns", named(&ns));
    put("latency_us", named(&us));
    put("latency_ms", named(&ms));
    put("latency_depth", figures.depth.into());
    put("latency_target", nanoseconds(job.latency_target.unwrap_or_default()).into());
    put("latency_percentile", json!(job.latency_percent));
    put("latency_window", (nanoseconds(job.latency_window) / 1000).into());
    Value::Object(out)
}

fn classes(names: [&str; 7], shares: [f64; 7]) -> Value {
    Value::Object(names.into_iter().zip(shares).map(|(name, share)| (name.to_owned(), rounded(share))).collect())
}

/// fio prints six digits.
fn rounded(number: f64) -> Value {
    json!((number * 1e6).round() / 1e6)
}

fn direction(
    figures: &DirectionFigures,
    number: usize,
    list: &[f64],
    plus: bool,
    series: Option<&LoadReport>,
) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.into(), value);
    put("io_bytes", figures.bytes.into());
    put("io_kbytes", (figures.bytes >> 10).into());
    let bandwidth = figures.bytes_per_second();
    put("bw_bytes", (bandwidth as u64).into());
    put("bw", ((bandwidth / 1024.0) as u64).into());
    put("iops", rounded(figures.iops()));
    put("runtime", figures.runtime_ms.into());
    put("total_ios", figures.operations.into());
    put("short_ios", 0.into());
    put("drop_ios", 0.into());
    let nothing = Histogram::default();
    put("slat_ns", latency(&nothing, list, false, false));
    put("clat_ns", latency(&figures.latency, list, figures.latency.count() > 0, plus));
    put("lat_ns", latency(&figures.latency, list, false, false));
    let over_time = series.map(|report| Series::of(report, number)).unwrap_or_default();
    let mean_bw = if over_time.samples > 0 { over_time.bandwidth.mean } else { bandwidth / 1024.0 };
    put("bw_min", (over_time.bandwidth.minimum as u64).into());
    put("bw_max", (over_time.bandwidth.maximum as u64).into());
    put("bw_agg", json!(if figures.operations > 0 { 100.0 } else { 0.0 }));
    put("bw_mean", rounded(mean_bw));
    put("bw_dev", rounded(over_time.bandwidth.deviation));
    put("bw_samples", over_time.samples.into());
    let share = if figures.bytes == 0 { 0.0 } else { figures.operations as f64 / figures.bytes as f64 * 1024.0 };
    put("iops_min", ((over_time.bandwidth.minimum * share) as u64).into());
    put("iops_max", ((over_time.bandwidth.maximum * share) as u64).into());
    put("iops_mean", rounded(if over_time.samples > 0 { over_time.bandwidth.mean * share } else { figures.iops() }));
    put("iops_stddev", rounded(over_time.bandwidth.deviation * share));
    put("iops_samples", over_time.samples.into());
    Value::Object(out)
}

fn latency(histogram: &Histogram, list: &[f64], with_percentiles: bool, with_bins: bool) -> Value {
    let (mean, deviation) = mean_and_deviation(histogram);
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.into(), value);
    put("min", histogram.min_ns().into());
    put("max", histogram.max_ns().into());
    put("mean", rounded(mean));
    put("stddev", rounded(deviation));
    put("N", histogram.count().into());
    if with_percentiles {
        let all =
            percentiles(histogram, list).into_iter().map(|(percent, value)| (format!("{percent:.6}"), value.into()));
        put("percentile", Value::Object(all.collect()));
        if with_bins {
            let all = bins(histogram).into_iter().map(|(name, count)| (name.to_string(), count.into()));
            put("bins", Value::Object(all.collect()));
        }
    }
    Value::Object(out)
}

/// Bandwidth over time, KiB/s.
#[derive(Debug, Clone, Copy, Default)]
struct Series {
    samples: u64,
    bandwidth: Spread,
}

#[derive(Debug, Clone, Copy, Default)]
struct Spread {
    minimum: f64,
    maximum: f64,
    mean: f64,
    deviation: f64,
}

impl Series {
    fn of(report: &LoadReport, direction: usize) -> Self {
        let seconds = report.series_interval_ns as f64 / 1e9;
        let values: Vec<f64> = report
            .whole_points()
            .into_iter()
            .map(|(_, point)| if direction == 0 { point.read_bytes } else { point.written_bytes })
            .map(|bytes| bytes as f64 / 1024.0 / seconds)
            .collect();
        if values.is_empty() {
            return Self::default();
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        let minimum = values.iter().copied().fold(f64::INFINITY, f64::min);
        let maximum = values.iter().copied().fold(0.0, f64::max);
        Self { samples: values.len() as u64, bandwidth: Spread { minimum, maximum, mean, deviation } }
    }
}

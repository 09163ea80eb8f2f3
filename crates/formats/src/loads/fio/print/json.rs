//! Results as fio's JSON, key by key.

use super::figures::{
    DEPTHS, DIVISIONS, DirectionFigures, JobFigures, TOGETHER, When, bins, criterion, jobs, mean_and_deviation,
    percentiles, shares, version,
};
use crate::loads::fio::{Job, Plan};
use fstone_model::{Histogram, LoadReport, load::SteadyReport, units::nanoseconds, workload::Steady};
use serde_json::{Map, Value, json};

/// The results of a run as JSON, with histograms if that is `plus`.
pub fn json(plan: &Plan, report: &LoadReport, when: &When, plus: bool) -> String {
    let all = jobs(plan, report);
    let entries: Vec<Value> = all.iter().map(|figures| entry(plan, figures, when, plus)).collect();
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
    if let Some(idle) = &when.idle {
        let mut of_cpus = Map::new();
        of_cpus.insert("system".into(), rounded(idle.system_percent()));
        for (number, percent) in idle.found.cpus_percent.iter().filter(|_| idle.per_cpu) {
            of_cpus.insert(format!("cpu-{number}"), rounded(*percent));
        }
        of_cpus.insert("unit_mean".into(), rounded(idle.found.unit_mean_ns / 1000.0));
        of_cpus.insert("unit_stddev".into(), rounded(idle.found.unit_deviation_ns / 1000.0));
        out.insert("cpu_idleness".into(), Value::Object(of_cpus));
    }
    format!("{:#}\n", Value::Object(out))
}

fn options(written: &[(String, String)]) -> Value {
    Value::Object(written.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect())
}

fn entry(plan: &Plan, figures: &JobFigures, when: &When, plus: bool) -> Value {
    let job = &plan.jobs[figures.job];
    let list = &job.percentiles;
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.into(), value);
    put("jobname", figures.name.clone().into());
    put("groupid", figures.group.into());
    put("error", figures.error.into());
    put("eta", 0.into());
    put("elapsed", (when.elapsed_ns.div_ceil(1_000_000_000)).into());
    put("job options", options(&job.written));
    put("read", direction(&figures.directions[0], job, plus));
    put("write", direction(&figures.directions[1], job, plus));
    put("trim", direction(&figures.directions[2], job, plus));
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
    let (user, system) = figures.cpu();
    put("usr_cpu", rounded(user));
    put("sys_cpu", rounded(system));
    put("ctx", figures.usage.context_switches.into());
    put("majf", figures.usage.major_faults.into());
    put("minf", figures.usage.minor_faults.into());
    put("iodepth_level", classes(DEPTHS, figures.depths()));
    put("iodepth_submit", classes(TOGETHER, figures.submitted()));
    put("iodepth_complete", classes(TOGETHER, figures.completed()));
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
    if job.continues.contains(&true) {
        put("total_err", figures.errors.into());
        put("first_error", figures.first_error.into());
    }
    put("latency_depth", figures.depth.into());
    put("latency_target", nanoseconds(job.latency_target.unwrap_or_default()).into());
    put("latency_percentile", json!(job.latency_percent));
    put("latency_window", (nanoseconds(job.latency_window) / 1000).into());
    if let Some(description) = &figures.description {
        put("desc", description.clone().into());
    }
    if let (Some(wanted), Some(seen)) = (&job.steady, &figures.steady) {
        put("steadystate", steady(wanted, job.steady_window.as_secs(), seen));
    }
    Value::Object(out)
}

fn steady(wanted: &Steady, seconds: u64, seen: &SteadyReport) -> Value {
    let unit = if wanted.relative { "%" } else { "" };
    let name = match (wanted.bytes, wanted.slope) {
        (false, false) => "iops",
        (false, true) => "iops_slope",
        (true, false) => "bw",
        (true, true) => "bw_slope",
    };
    let judged = if wanted.slope { seen.slope } else { seen.deviation };
    let mean = |of: &[f64]| (of.iter().sum::<f64>() / of.len().max(1) as f64).round() as u64;
    let whole = |of: &[f64]| -> Value { of.iter().map(|sample| sample.round() as u64).collect() };
    json!({
        "ss": format!("{name}:{:.6}{unit}", wanted.limit * if wanted.relative { 100.0 } else { 1.0 }),
        "duration": seconds,
        "attained": u8::from(seen.attained),
        "criterion": format!("{:.6}{unit}", criterion(wanted, seen)),
        "max_deviation": rounded(if wanted.slope { 0.0 } else { judged }),
        "slope": rounded(if wanted.slope { judged } else { 0.0 }),
        "data": {
            "bw_mean": mean(&seen.bytes),
            "iops_mean": mean(&seen.operations),
            "iops": whole(&seen.operations),
            "bw": whole(&seen.bytes),
        },
    })
}

fn classes(names: [&str; 7], shares: [f64; 7]) -> Value {
    Value::Object(names.into_iter().zip(shares).map(|(name, share)| (name.to_owned(), rounded(share))).collect())
}

/// fio prints six digits.
fn rounded(number: f64) -> Value {
    json!((number * 1e6).round() / 1e6)
}

fn direction(figures: &DirectionFigures, job: &Job, plus: bool) -> Value {
    let list = &job.percentiles;
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
    let any = figures.latency.count() > 0;
    put("slat_ns", latency(&nothing, list, false, false));
    put("clat_ns", latency(&figures.latency, list, any && job.percentiles_of_completion, plus));
    put("lat_ns", latency(&figures.latency, list, any && job.percentiles_of_all, plus));
    let (bytes, operations) = (figures.over_time.bytes, figures.over_time.operations);
    put("bw_min", ((bytes.minimum / 1024.0) as u64).into());
    put("bw_max", ((bytes.maximum / 1024.0) as u64).into());
    put("bw_agg", rounded(figures.share_percent));
    put("bw_mean", rounded(bytes.mean / 1024.0));
    put("bw_dev", rounded(bytes.deviation() / 1024.0));
    put("bw_samples", bytes.samples.into());
    put("iops_min", (operations.minimum as u64).into());
    put("iops_max", (operations.maximum as u64).into());
    put("iops_mean", rounded(operations.mean));
    put("iops_stddev", rounded(operations.deviation()));
    put("iops_samples", operations.samples.into());
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

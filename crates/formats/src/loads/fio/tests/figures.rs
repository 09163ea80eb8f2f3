//! What results and logs say of each job.

use super::*;
use fstone_model::load::{
    ErrorReport, OverTime, OwnSeries, PhaseReport, SeriesPoint, Span, Spread, SteadyReport, ThreadUsage,
};

/// Samples, CPU time and counts are those of each job's own threads; of jobs that are reported as one they add up.
#[test]
fn each_job_has_figures_of_its_own() {
    let spread = |samples: &[f64]| {
        let mut spread = Spread::default();
        samples.iter().for_each(|sample| spread.take(*sample));
        spread
    };
    let thread = |group: &str, samples: &[f64]| {
        let bytes = samples.iter().map(|sample| sample * 4096.0).collect::<Vec<_>>();
        let read = OverTime { bytes: spread(&bytes), operations: spread(samples) };
        let usage = ThreadUsage { user_ns: 200_000_000, context_switches: 7, ..ThreadUsage::default() };
        let elapsed_ns = 1_000_000_000;
        ThreadReport {
            group: group.into(),
            elapsed_ns,
            usage,
            over_time: [read, OverTime::default()],
            ..ThreadReport::default()
        }
    };
    let operation = |group: &str| OperationReport {
        group: group.into(),
        name: "read".into(),
        invocations: 10,
        read_bytes: 40960,
        errors: 2,
        latency: Histogram::from_values(&[5000]),
        ..OperationReport::default()
    };
    let error = |group: &str, errno| ErrorReport {
        group: group.into(),
        call: "read".into(),
        errno,
        count: 2,
        ..ErrorReport::default()
    };
    let report = LoadReport {
        per_thread: vec![thread("a.0", &[6.0, 10.0]), thread("a.1", &[2.0, 4.0]), thread("b", &[])],
        operations: vec![operation("a.0"), operation("a.1"), operation("b")],
        errors: [("a.1", 5), ("a.0", 5), ("b", 28)].map(|(group, errno)| error(group, errno)).into(),
        ..LoadReport::default()
    };
    let printed = |options: &str| {
        let jobs = format!("[global]\nrw=read\nsize=20k\n{options}\n[a]\nnumjobs=2\ngroup_reporting\n[b]\nstonewall\n");
        let plan = plan(&jobs);
        let when = When { elapsed_ns: 2_300_000_000, ..When::default() };
        let json: serde_json::Value = serde_json::from_str(&json(&plan, &report, &when, false)).expect("JSON");
        (json, terse(&plan, &report, 3), normal(&plan, &report, &when))
    };
    let (json, lines, text) = printed("continue_on_error=io\nlat_percentiles=1");
    let (a, b) = (&json["jobs"][0], &json["jobs"][1]);
    let of = |job: &serde_json::Value, keys: &[&str]| {
        keys.iter().map(|key| job[key].as_f64().expect(key)).collect::<Vec<_>>()
    };
    let keys = ["bw_min", "bw_max", "bw_mean", "bw_samples", "iops_min", "iops_max", "iops_mean", "bw_agg"];
    assert_eq!(of(&a["read"], &keys), [32.0, 56.0, 44.0, 4.0, 8.0, 14.0, 11.0, 55.0]);
    // As fio has it where the job was over before the first sample.
    assert_eq!(of(&b["read"], &keys), [0.0; 8]);
    let keys = ["usr_cpu", "sys_cpu", "ctx", "job_runtime", "elapsed", "error", "total_err", "first_error"];
    assert_eq!(of(a, &keys), [20.0, 0.0, 14.0, 2000.0, 3.0, 5.0, 4.0, 5.0]);
    assert_eq!(of(b, &keys), [20.0, 0.0, 7.0, 1000.0, 3.0, 28.0, 2.0, 28.0]);
    assert!(!a["read"]["lat_ns"]["percentile"].is_null() && !a["read"]["clat_ns"]["percentile"].is_null());
    assert!(lines.contains(";32;56;55.000000%;44.000000;"), "{lines}");
    assert!(text.contains("bw (  KiB/s): min=   32, max=   56, per=55.00%, avg=44.00"), "{text}");
    let (json, ..) = printed("clat_percentiles=0");
    assert!(json["jobs"][0]["read"]["clat_ns"]["percentile"].is_null() && json["jobs"][0]["error"] == 5);
}

/// A job that reads, and then reads back what it wrote, has read in both: as long as it did so is what its bandwidth is of.
#[test]
fn what_is_read_back_takes_time_of_its_own() {
    let plan = plan("[a]\nrw=randrw\nsize=1m\nverify=crc32c\nnumjobs=2\ngroup_reporting\n");
    let group = |place: usize| (plan.parts[place].group.as_str(), plan.parts[place].verify[0].as_str());
    let thread = |group: &str, ms: u64| ThreadReport {
        group: group.into(),
        elapsed_ns: ms * 1_000_000,
        ..ThreadReport::default()
    };
    let read = |group: &str, name: &str| OperationReport {
        group: group.into(),
        name: name.into(),
        invocations: 1000,
        read_bytes: if name == "read" { 4_096_000 } else { 0 },
        written_bytes: if name == "read" { 0 } else { 4_096_000 },
        ..OperationReport::default()
    };
    let ((first, first_back), (second, second_back)) = (group(0), group(1));
    let report = LoadReport {
        per_thread: vec![thread(first, 600), thread(second, 500), thread(first_back, 300), thread(second_back, 500)],
        operations: [first, second]
            .into_iter()
            .flat_map(|group| [read(group, "read"), read(group, "write")])
            .chain([read(first_back, "read"), read(second_back, "read")])
            .collect(),
        ..LoadReport::default()
    };
    let json: serde_json::Value = serde_json::from_str(&json(&plan, &report, &When::default(), false)).expect("JSON");
    let job = &json["jobs"][0];
    // The longest clone's: 500 ms and 500 ms of reads, and 600 ms of writes.
    assert_eq!((&job["read"]["runtime"], &job["write"]["runtime"]), (&1000.into(), &600.into()));
    assert_eq!((&job["read"]["iops"], &job["read"]["bw_bytes"]), (&4000.0.into(), &16_384_000.into()));
}

#[test]
fn the_depth_of_a_load_of_checks_is_one() {
    let plan = plan("[a]\nrw=randread\nsize=20k\nioengine=libaio\niodepth=32\nverify=md5\n");
    assert!(normal(&plan, &report(), &When::default()).contains("depth=1\n"));
    let json: serde_json::Value = serde_json::from_str(&json(&plan, &report(), &When::default(), false)).expect("JSON");
    let job = &json["jobs"][0];
    assert_eq!((&job["latency_depth"], &job["iodepth_level"]["1"]), (&1.into(), &100.0.into()));
}

#[test]
fn the_options_of_jobs_reported_together_are_those_of_the_last() {
    let plan = plan("[global]\nioengine=libaio\nsize=1m\nrw=read\ngroup_reporting\n[a]\niodepth=4\n[b]\niodepth=16\n");
    let json: serde_json::Value = serde_json::from_str(&json(&plan, &report(), &When::default(), false)).expect("JSON");
    let job = &json["jobs"][0];
    assert_eq!(
        (&job["jobname"], &job["latency_depth"], &job["job options"]["iodepth"]),
        (&"a".into(), &16.into(), &"16".into())
    );
}

/// fio 3.33: `  steadystate  : attained=yes, bw=1991KiB/s (1991kB/s), iops=497, bw mean dev=1.116%`.
#[test]
fn whether_the_state_was_steady_is_printed() {
    let mut report = report();
    report.per_thread[0].steady = Some(SteadyReport {
        attained: true,
        mean: 200.0,
        slope: -20.0,
        deviation: 3.0,
        bytes: vec![512_000.0, 512_000.0],
        operations: vec![150.0, 250.0],
    });
    for (wanted, end) in [("iops_slope:20%", "iops slope=-10.000%"), ("bw:7", "bw mean dev=3.000")] {
        let plan = plan(&format!("[a]\nrw=read\nsize=1m\ntime_based\nruntime=9\nsteadystate={wanted}\nss_dur=2\n"));
        let text = normal(&plan, &report, &When::default());
        let line = format!("\n  steadystate  : attained=yes, bw=500KiB/s (512kB/s), iops=200, {end}\n");
        assert!(text.contains(&line), "{line} in {text}");
    }
}

/// What fio 3.33 wrote for this job: 400 and 800 ms in both logs, and 1000 ms in the log of latencies alone.
#[test]
fn logs_have_intervals_that_were_cut_short_only_for_latency() {
    let point = |operations: u64| SeriesPoint {
        operations,
        read_bytes: operations * 4096,
        latency: Histogram::from_values(&[1000]),
        ..SeriesPoint::default()
    };
    let job = "[a]\nrw=randread\nsize=1m\nwrite_iops_log=x\nwrite_bw_log=x\nwrite_lat_log=x\n";
    let lines = |report: &LoadReport| -> Vec<(String, String)> {
        logs(&plan(job), report).into_iter().map(|log| (log.file, log.text.replace(", 0, 0, 0\n", "; "))).collect()
    };
    let own = |operations: &[u64]| {
        let series = operations.iter().map(|count| point(*count)).collect();
        vec![OwnSeries { group: "a".into(), name: "read".into(), series }]
    };
    let one = LoadReport {
        running_ns: 1_000_000_000,
        series: [80, 80, 40].map(point).to_vec(),
        own_series: own(&[80, 80, 40]),
        series_interval_ns: 400_000_000,
        ..report()
    };
    let told = |bandwidth: &str, latency: &str, iops: &str| {
        [("x_bw.1.log", bandwidth), ("x_clat.1.log", latency), ("x_iops.1.log", iops), ("x_lat.1.log", latency)]
            .map(|(file, text)| (file.to_owned(), text.to_owned()))
    };
    assert_eq!(lines(&one), told("400, 800; 800, 800; ", "400, 1000; 800, 1000; 1000, 1000; ", "400, 200; 800, 200; "));
    // The second of two phases begins where the first ended, and not after a full interval.
    let phase = |ran_ns: u64| PhaseReport { elapsed_ns: ran_ns, ..PhaseReport::default() };
    let two = LoadReport {
        running_ns: 1_000_000_000,
        phases: vec![phase(500_000_000), phase(500_000_000)],
        series: [80, 20, 80, 20].map(point).to_vec(),
        own_series: own(&[80, 20, 80, 20]),
        ..one
    };
    let latency = "400, 1000; 500, 1000; 900, 1000; 1000, 1000; ";
    assert_eq!(lines(&two), told("400, 800; 900, 800; ", latency, "400, 200; 900, 200; "));
    // A job's times begin with itself.
    let mut later = LoadReport { own_series: own(&[0, 0, 80, 20]), ..two };
    let span = |begin_ns, end_ns| Span { begin_ns, end_ns };
    for operation in &mut later.operations {
        operation.at_work = Some([span(500_000_000, 1_000_000_000), Span::default()]);
    }
    assert_eq!(lines(&later), told("400, 800; ", "400, 1000; 500, 1000; ", "400, 200; "));
}

#[test]
fn each_clone_has_logs_of_its_own() {
    let own = |group: &str, name: &str, operations: &[u64]| OwnSeries {
        group: group.into(),
        name: name.into(),
        series: operations.iter().map(|count| SeriesPoint { operations: *count, ..SeriesPoint::default() }).collect(),
    };
    let report = LoadReport {
        running_ns: 2_000_000_000,
        series: vec![SeriesPoint::default(); 2],
        series_interval_ns: 1_000_000_000,
        own_series: vec![
            own("a.0", "read", &[5]),
            own("a.1", "read", &[0, 7]),
            own("b", "read", &[1, 2]),
            own("b", "write", &[3, 4]),
        ],
        ..report()
    };
    let jobs = "[a]\nrw=read\nnumjobs=2\nwrite_iops_log=x\n[b]\nrw=rw\nwrite_iops_log=x\n";
    let written = |more: &str| -> Vec<(String, String)> {
        let plan = plan(&format!("[global]\nsize=1m\nlog_avg_msec=1000\n{more}{jobs}"));
        assert!(plan.workload.phases[0].groups.iter().all(|group| group.own_series));
        logs(&plan, &report).into_iter().map(|log| (log.file, log.text.replace(", 0, 0\n", "; "))).collect()
    };
    let told = |logs: &[(&str, &str)]| -> Vec<(String, String)> {
        logs.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect()
    };
    let (first, second, both) = ("1000, 5, 0; ", "2000, 7, 0; ", "1000, 1, 0; 1000, 3, 1; 2000, 2, 0; 2000, 4, 1; ");
    assert_eq!(written(""), told(&[("x_iops.1.log", first), ("x_iops.2.log", second), ("x_iops.3.log", both)]));
    assert_eq!(written("per_job_logs=0\n"), told(&[("x_iops.log", &format!("{first}{second}{both}"))]));
}

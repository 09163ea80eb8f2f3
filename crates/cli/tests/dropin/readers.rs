//! Programs that read fio's results, unchanged and from their packages, on those of `fstone fio`.
//!
//! What Debian has no package of is looked for in the Python environment that scripts/prerequisites makes.

use crate::support::{Bench, tool};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A program of the Python environment for tests, or wherever else it is installed; says why not.
fn from_python(name: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")));
    let own = cache.map(|cache| cache.join("fstone-test-python/bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = own.into_iter().chain(std::env::split_paths(&path)).map(|at| at.join(name)).find(|at| at.exists());
    if found.is_none() {
        eprintln!("skipped: {name} is not installed (scripts/prerequisites test)");
    }
    found
}

fn succeeded(what: &str, output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{what}\n{out}\n{err}");
    out
}

/// Results with histograms, and logs, of queues of 1 and of 4, as fio-plot's own runner calls the files.
fn results(bench: &Bench) {
    fs::create_dir(bench.path("runs")).expect("it can be made");
    for depth in [1, 4] {
        let log = format!("runs/randread-iodepth-{depth}-numjobs-1");
        let line = format!(
            "fio --name=job --rw=randread --bs=4k --size=1m --filename=blocks --ioengine=io_uring --iodepth={depth} --numjobs=1 \
             --time_based --runtime=600ms --log_avg_msec=100 --write_bw_log={log} --write_iops_log={log} --write_lat_log={log} \
             --output-format=json+ --output=runs/randread-{depth}-1.json"
        );
        bench.succeed(&line.split_whitespace().collect::<Vec<_>>());
    }
}

#[test]
fn fios_own_converter_of_histograms_reads_ours() {
    if !tool("fio_jsonplus_clat2csv") {
        eprintln!("skipped: fio_jsonplus_clat2csv is not installed (apt-get install fio)");
        return;
    }
    let bench = Bench::new();
    results(&bench);
    let converted = Command::new("fio_jsonplus_clat2csv")
        .args(["runs/randread-4-1.json", "latencies.csv"])
        .current_dir(bench.path(""))
        .output()
        .expect("it starts");
    let words = String::from_utf8_lossy(&converted.stderr);
    if let Some(missing) = words.lines().find(|line| line.starts_with("ModuleNotFoundError")) {
        eprintln!("skipped: fio_jsonplus_clat2csv: {missing}");
        return;
    }
    succeeded("fio_jsonplus_clat2csv", &converted);
    let table = fs::read_to_string(bench.path("latencies_job0.csv")).expect("it was written");
    let results = fs::read_to_string(bench.path("runs/randread-4-1.json")).expect("it was written");
    let results: Value = serde_json::from_str(&results).expect("JSON");
    let reads = results["jobs"][0]["read"]["total_ios"].as_u64().expect("a count");
    // Its columns: a bin's latency, the count, the sum up to there, the percentile.
    let last = table.lines().last().expect("a line");
    let columns: Vec<&str> = table.lines().next().expect("a heading").split(',').map(str::trim).collect();
    let sum =
        columns.iter().position(|name| *name == "read_clat_ns_cumulative").unwrap_or_else(|| panic!("{columns:?}"));
    let all: Vec<u64> =
        table.lines().skip(1).filter_map(|line| line.split(',').nth(sum)?.trim().parse().ok()).collect();
    assert_eq!(all.last(), Some(&reads), "{last}");
    assert!(reads > 0 && all.is_sorted());
}

#[test]
fn fio_plot_draws_ours() {
    let Some(plot) = from_python("fio-plot") else { return };
    let bench = Bench::new();
    results(&bench);
    for kind in ["-l -d 1 4", "-L -d 1 4 -t iops", "-g -d 1 4 -t bw iops lat", "-H -d 1", "-N -d 1"] {
        let picture = bench.path("picture.png");
        let drawn = Command::new(&plot)
            .args(["-i", "runs", "-T", "fstone", "-n", "1", "-r", "randread", "-o", "picture.png"])
            .args(kind.split_whitespace())
            .env("MPLCONFIGDIR", bench.path("matplotlib"))
            .current_dir(bench.path(""))
            .output()
            .expect("it starts");
        let told = succeeded(kind, &drawn);
        let length = fs::metadata(&picture).map_or(0, |picture| picture.len());
        assert!(length > 10_000, "{kind}: {length} bytes: {told}");
        fs::remove_file(picture).expect("ours");
    }
}

/// What exporters do: gauges of each job's figures, served in Prometheus' format and read back by its own parser.
const EXPORTER: &str = r#"
import json, sys
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.parser import text_string_to_metric_families

registry, gauges = CollectorRegistry(), {}

def export(name, labels, value):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "percentile":
                for percent, ns in inner.items():
                    export(name + "_percentile", {**labels, "percentile": str(float(percent))}, ns)
            elif key != "bins":
                export(f"{name}_{key}", labels, inner)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if name not in gauges:
            gauges[name] = Gauge(name, "of fio", sorted(labels), registry=registry)
        gauges[name].labels(**labels).set(value)

for job in json.load(open(sys.argv[1]))["jobs"]:
    for part in ["read", "write", "sync"]:
        export("fio_" + part, {"job": job["jobname"], "group": str(job["groupid"])}, job[part])
text = generate_latest(registry).decode()
for family in text_string_to_metric_families(text):
    for sample in family.samples:
        print(sample.name, sample.labels.get("percentile", "-"), sample.value)
"#;

#[test]
fn prometheus_reads_ours() {
    let Some(python) = from_python("python3") else { return };
    let has = Command::new(&python).args(["-c", "import prometheus_client"]).output().expect("it starts");
    if !has.status.success() {
        eprintln!("skipped: prometheus_client is not installed (scripts/prerequisites test)");
        return;
    }
    let bench = Bench::new();
    results(&bench);
    bench.write("exporter.py", EXPORTER);
    let exported = Command::new(&python)
        .args(["exporter.py", "runs/randread-1-1.json"])
        .current_dir(bench.path(""))
        .output()
        .expect("it starts");
    let samples = succeeded("exporter", &exported);
    let of = |wanted: &str| -> f64 {
        let line = samples.lines().find_map(|line| line.strip_prefix(wanted)).unwrap_or_else(|| panic!("{samples}"));
        line.trim().parse().expect("a number")
    };
    let results = fs::read_to_string(bench.path("runs/randread-1-1.json")).expect("it was written");
    let results: Value = serde_json::from_str(&results).expect("JSON");
    let read = &results["jobs"][0]["read"];
    assert_eq!(of("fio_read_total_ios - "), read["total_ios"].as_f64().expect("a number"));
    assert_eq!(of("fio_read_iops_mean - "), read["iops_mean"].as_f64().expect("a number"));
    let median = read["clat_ns"]["percentile"]["50.000000"].as_f64().expect("a number");
    assert_eq!(of("fio_read_clat_ns_percentile 50.0 "), median);
    assert_eq!(of("fio_write_total_ios - "), 0.0);
}

/// Every value in `ours` that fio has, too, is of the same kind: readers with types take a whole number where fio writes one.
fn same_kinds(place: &str, theirs: &Value, ours: &Value, wrong: &mut Vec<String>) {
    let kind = |value: &Value| match value {
        Value::Number(number) if number.is_f64() => "a number with a point",
        Value::Number(_) => "a whole number",
        Value::String(_) => "text",
        Value::Object(_) => "a table",
        Value::Array(_) => "a list",
        Value::Bool(_) => "true or false",
        Value::Null => "nothing",
    };
    if kind(theirs) != kind(ours) {
        wrong.push(format!("{place}: {} of fio, {} of fstone", kind(theirs), kind(ours)));
    }
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for (key, ours) in ours {
                if let Some(theirs) = theirs.get(key) {
                    same_kinds(&format!("{place}.{key}"), theirs, ours, wrong);
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            for (theirs, ours) in theirs.iter().zip(ours) {
                same_kinds(place, theirs, ours, wrong);
            }
        }
        _ => {}
    }
}

#[test]
fn readers_with_types_find_the_types_of_fio() {
    if !tool("fio") {
        eprintln!("skipped: fio is not installed");
        return;
    }
    let bench = Bench::new();
    bench.write("job.fio", "[job]\nrw=randrw\nsize=1m\nfsync=8\n");
    let fio = Command::new("fio")
        .args(["job.fio", "--output-format=json+"])
        .current_dir(bench.path(""))
        .output()
        .expect("fio starts");
    let theirs: Value = serde_json::from_str(&succeeded("fio", &fio)).expect("JSON");
    let ours = bench.succeed(&["fio", "job.fio", "--output-format=json+"]);
    let ours: Value = serde_json::from_str(&ours).expect("JSON");
    let mut wrong = Vec::new();
    same_kinds("", &theirs, &ours, &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

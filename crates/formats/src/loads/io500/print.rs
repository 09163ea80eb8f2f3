//! Results in IO500's words.

use fstone_model::{LoadReport, Workload, io500};
use std::{fmt::Write as _, time::Duration};

const GIB: f64 = (1_u64 << 30) as f64;
/// A phase that writes has to take as long, whatever the stonewall.
const SHORTEST: Duration = Duration::from_secs(300);
const INVALID: &str = " [INVALID]";

/// The results of the phases that ran, in their order, and the score if all did; marked where IO500's rules are not met.
pub fn print(report: &LoadReport, workload: &Workload) -> String {
    let (mut out, mut all) = (String::new(), "");
    for phase in report.phases.iter().filter(|phase| io500::phases().any(|known| known == phase.name)) {
        let Some((value, seconds)) = io500::result(report, &phase.name) else { continue };
        let stonewall = workload.phases.iter().find(|planned| planned.name == phase.name);
        let shortest = stonewall.and_then(|planned| planned.stop.time).map(|time| time.max(SHORTEST));
        let is_short = shortest.is_some_and(|shortest| seconds < shortest.as_secs_f64());
        let mark = if is_short || value == 0.0 { INVALID } else { "" };
        all = if mark.is_empty() { all } else { mark };
        let (value, unit) = if phase.name.starts_with("ior") { (value / GIB, "GiB/s") } else { (value / 1e3, "kIOPS") };
        let _ = writeln!(out, "[RESULT] {:>20} {value:15.6} {unit} : time {seconds:.3} seconds{mark}", phase.name);
    }
    if let Some((bandwidth, rate, score)) = io500::scores(report) {
        let (bandwidth, rate) = (bandwidth / GIB, rate / 1e3);
        let _ = writeln!(out, "[SCORE ] Bandwidth {bandwidth:.6} GiB/s : IOPS {rate:.6} kiops : TOTAL {score:.6}{all}");
    }
    out
}

//! Results in IO500's words.

use fstone_model::{LoadReport, io500};
use std::fmt::Write as _;

const GIB: f64 = (1_u64 << 30) as f64;

/// The results of the phases that ran, in their order, and the score if all did.
pub fn print(report: &LoadReport) -> String {
    let mut out = String::new();
    for phase in report.phases.iter().filter(|phase| io500::phases().any(|known| known == phase.name)) {
        let Some((value, seconds)) = io500::result(report, &phase.name) else { continue };
        let (value, unit) = if phase.name.starts_with("ior") { (value / GIB, "GiB/s") } else { (value / 1e3, "kIOPS") };
        let _ = writeln!(out, "[RESULT] {:>20} {value:15.6} {unit} : time {seconds:.3} seconds", phase.name);
    }
    if let Some((bandwidth, rate, score)) = io500::scores(report) {
        let (bandwidth, rate) = (bandwidth / GIB, rate / 1e3);
        let _ = writeln!(out, "[SCORE ] Bandwidth {bandwidth:.6} GiB/s : IOPS {rate:.6} kiops : TOTAL {score:.6}");
    }
    out
}

//! A moment of fuzzing: every seed of the fuzz targets, and thousands of texts that are nearly like them, always the
//! same ones. `make fuzz` goes on from here; fuzz/README.md tells how far.

#[path = "../../../fuzz/checks/formats.rs"]
mod checks;

#[path = "../../../fuzz/checks/variants.rs"]
mod variants;

use variants::run;

#[test]
fn profiles() {
    run("ffsb", checks::ffsb);
}

#[test]
fn job_files() {
    run("fio", checks::fio);
}

#[test]
fn personalities() {
    run("filebench", checks::filebench);
}

#[test]
fn command_lines() {
    run("sysbench", checks::sysbench);
}

#[test]
fn options_of_letters() {
    run("mdtest", checks::mdtest);
    run("ior", checks::ior);
}

#[test]
fn configurations_of_io500() {
    run("io500", checks::io500);
}

#[test]
fn studies() {
    run("study", checks::study);
}

#[test]
fn workload_files() {
    run("native", checks::native);
}

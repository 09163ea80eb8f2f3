//! What `--help` and `--version` ask for.

use super::options::{OPTIONS, Treatment};
use std::fmt::Write as _;

/// The program's name and version, as every output begins.
#[must_use]
pub fn version() -> String {
    format!("fio-3.33 (fstone {})\n", env!("CARGO_PKG_VERSION"))
}

/// Usage and options.
#[must_use]
pub fn help() -> String {
    let mut out = String::from(
        "Usage:\n  fstone fio [options] JOB.fio...\n  fstone fio [options] --name=NAME --rw=randread --size=1g [options of the job]...\n\n\
         Runs fio job files in the current directory, or in the directories that they name. fstone fio prints what fio prints.\n\n\
         Options:\n  \
         --output-format=FORMAT  normal, terse, json or json+; or several, separated by commas\n  \
         --output=FILE           write the results to FILE\n  \
         --minimal               the same as --output-format=terse\n  \
         --section=NAME          only this section of the job file; can be given several times\n  \
         --parse-only            only read the job file\n  \
         --batches               submit all requests that a queue has room for together, unless a job has iodepth_batch\n  \
         --seed=N                the seed of all random streams; drawn unless given\n  \
         --help, --version\n",
    );
    type IsOfKind = fn(Treatment) -> bool;
    let kinds: [(&str, IsOfKind); 3] = [
        ("Job options", |treatment| treatment == Treatment::Taken),
        ("Accepted without effect", |treatment| matches!(treatment, Treatment::Ignored(_))),
        ("Refused", |treatment| matches!(treatment, Treatment::Refused(_))),
    ];
    for (head, is_of_kind) in kinds {
        let _ = writeln!(out, "\n{head}:");
        let names: Vec<&str> =
            OPTIONS.iter().filter(|option| is_of_kind(option.treatment)).map(|option| option.name).collect();
        for line in names.chunks(5) {
            let _ = writeln!(out, "  {}", line.join(" "));
        }
    }
    out.push_str("\ndocs/formats/fio.md says what each option does, and why some are refused.\n");
    out
}

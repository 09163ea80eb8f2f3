//! What `--help` and `--version` ask for.

use super::{
    options::{OPTIONS, Treatment},
    read::ENGINES,
};
use std::fmt::Write as _;

pub fn version() -> String {
    format!("fio-3.33 (fstone {})\n", env!("CARGO_PKG_VERSION"))
}

/// What `--enghelp` prints.
pub fn engines() -> String {
    format!("Available IO engines:\n\t{}\n", ENGINES.join("\n\t"))
}

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
         --append-terse          the terse results as well\n  \
         --readonly              refuse jobs that write\n  \
         --allow-destroy=DEVICE  jobs whose filename is this block device may overwrite it; nothing may be on it\n  \
         --allow-destroy-data=DEVICE  nor may this, but for data that nothing recognises\n  \
         --status-interval=T     print all results so far each T seconds, as SIGUSR1 does once\n  \
         --idle-prof=WHAT        how idle the processors are: system, percpu, or calibrate (no job is run)\n  \
         --help, --enghelp, --version\n",
    );
    let taken = OPTIONS.iter().filter(|option| option.why_not().is_none()).map(|option| option.name);
    out.push_str("\nJob options:\n");
    push_names(&mut out, &taken.collect::<Vec<_>>());
    out.push_str("\nAccepted with a warning, without effect:\n");
    push_reasons(&mut out, |treatment| matches!(treatment, Treatment::None(..)));
    out.push_str("\nRefused unless switched off (=0, or the value in brackets):\n");
    push_reasons(&mut out, |treatment| matches!(treatment, Treatment::Refused(..)));
    out.push_str("\ndocs/formats/fio.md says what each job option does.\n");
    out
}

fn push_names(out: &mut String, names: &[&str]) {
    for line in names.chunks(5) {
        let _ = writeln!(out, "  {}", line.join(" "));
    }
}

fn push_reasons(out: &mut String, is_meant: fn(Treatment) -> bool) {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for option in OPTIONS.iter().filter(|option| is_meant(option.treatment)) {
        let Some(why) = option.why_not() else { continue };
        let nothing = match option.treatment {
            Treatment::Refused(nothing, _) if nothing != ["0"] && !nothing.is_empty() => {
                format!(" [{}]", nothing.join(" or "))
            }
            _ => String::new(),
        };
        let names = std::iter::once(&option.name).chain(option.aliases).map(|name| format!("{name}{nothing}"));
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, of_reason)) => of_reason.extend(names),
            None => reasons.push((why, names.collect())),
        }
    }
    for (why, names) in reasons {
        push_names(out, &names.iter().map(String::as_str).collect::<Vec<_>>());
        let _ = writeln!(out, "      {why}");
    }
}

//! From the words of a command line to what it means.

use super::{command::Ior, options::OPTIONS};
use crate::{
    Diagnostics,
    diagnostic::Diagnostic,
    loads::letters::{CommandLine, Said},
};
use fstone_model::workload::has_rank;

/// Reads a command line.
///
/// # Errors
/// Everything that is wrong with it. Warnings alone are no failure; they are in [`Ior::warnings`].
pub fn parse(line: &CommandLine) -> Result<Ior, Diagnostics> {
    let (mut ior, warnings) = Said::read(line, OPTIONS, ior)?;
    ior.warnings = warnings;
    Ok(ior)
}

fn ior(said: &mut Said<'_>) -> Ior {
    let (wear_out, json) = directives(said);
    let (write, read) = (said.flag("write"), said.flag("read"));
    let ior = Ior {
        file: said.text("file").unwrap_or_default(),
        block_bytes: said.count("block"),
        transfer_bytes: said.count("transfer"),
        segments: said.count("segments"),
        file_per_process: said.flag("file-per-process"),
        write: write || !read,
        read: read || !write,
        reordered: said.flag("shift"),
        shift: said.small("shift-by"),
        random: said.flag("random"),
        fsync: said.flag("fsync"),
        fsync_per_write: said.flag("fsync-per-write"),
        keep: said.flag("keep"),
        repetitions: said.count("repetitions"),
        numbered: said.flag("multi-file"),
        deadline: said.deadline("deadline"),
        wear_out,
        direct: said.flag("posix.odirect") || said.flag("direct"),
        seed: said.number("seed"),
        results: said.text("results"),
        json: json || said.flag("json"),
        silence: said.patience("rank-silence"),
        stillness: said.patience("rank-stillness"),
        warnings: None,
    };
    check(said, &ior);
    ior
}

/// What `-O` says: whether a stonewall wears out, and whether JSON is printed.
fn directives(said: &mut Said<'_>) -> (bool, bool) {
    let (mut wear_out, mut json) = (false, false);
    for given in said.given.iter().filter(|given| given.option.name == "directives") {
        for directive in given.text.split(',').filter(|directive| !directive.is_empty()) {
            let (name, value) = directive.split_once('=').unwrap_or((directive, "1"));
            match name {
                "stoneWallingWearOut" => wear_out = value != "0",
                "summaryFormat" if value.eq_ignore_ascii_case("json") => json = true,
                "summaryFormat" if value.eq_ignore_ascii_case("default") => json = false,
                "summaryFormat" => {
                    let message = format!("the summary format {value} is not supported");
                    said.report.push(Diagnostic::error(given.span, message).help("summaryFormat=JSON"));
                }
                _ => {
                    let message = format!("the directive {name} is not supported");
                    let help = "stoneWallingWearOut=1 and summaryFormat=JSON are; others are options of a letter";
                    said.report.push(Diagnostic::error(given.span, message).help(help));
                }
            }
        }
    }
    (wear_out, json)
}

fn check(said: &mut Said<'_>, ior: &Ior) {
    said.check_interface();
    if ior.transfer_bytes == 0 || ior.block_bytes == 0 || ior.segments == 0 || ior.repetitions == 0 {
        said.wrong(
            &["transfer", "block", "segments", "repetitions"],
            "nothing would be moved",
            "-t, -b, -s and -i are 1 or more",
        );
    } else if !ior.block_bytes.is_multiple_of(ior.transfer_bytes) {
        let message =
            format!("a piece of {} bytes is not a multiple of a transfer of {}", ior.block_bytes, ior.transfer_bytes);
        said.wrong(&["block", "transfer"], message, "-b as a multiple of -t");
    }
    if ior.direct {
        said.check_direct("transfer", ior.transfer_bytes);
    }
    if ior.block_bytes.checked_mul(ior.segments).is_none_or(|bytes| bytes > 1 << 60) {
        said.wrong(
            &["segments", "block"],
            "a task would move more than a file can hold",
            "fewer segments, or smaller ones",
        );
    }
    let name = ior.name();
    if name.is_empty() || matches!(name, "." | "..") || name.contains(['@', '\0']) || has_rank(name) {
        said.wrong(
            &["file"],
            format!("{:?} is not a file", ior.file),
            "one file; with -F each task has one of that name and its number",
        );
    }
    if ior.random && ior.deadline.is_some() {
        said.wrong(
            &["random"],
            "if a deadline ends transfers in random order, it is unknown which were made",
            "-z, or -D",
        );
    }
    if ior.random && ior.block_bytes == ior.transfer_bytes {
        let message = "as with IOR, a block of one transfer has no random order";
        said.wrong(&["random"], message, "a larger block, such as -b 1m -t 64k");
    }
    if ior.random && ior.offset() > 0 && !ior.file_per_process {
        let message = "as with IOR, tasks do not read what others wrote in random order in a shared file";
        said.wrong(&["random", "shift"], message, "-F, or only one of -z and -C");
    }
    if ior.wear_out && ior.deadline.is_none() {
        said.wrong(&["directives"], "stoneWallingWearOut needs a deadline", "-D 300, for example");
    }
    if ior.repetitions > 500 {
        said.wrong(&["repetitions"], "more phases than one load can have", "fewer, or several runs");
    }
}

//! What opens something for writing, and what empties a directory.
//!
//! The files of fstone's own are opened by the crate `files`, which refuses what is no regular file. What else opens something
//! for writing is listed here, with the reason why that need not pass there.

use super::{product, root, rust_files};
use std::{collections::BTreeSet, fs};

/// Beginnings of paths below `crates/`, and why what is there may open for writing.
const MAY_WRITE: &[(&str, &str)] = &[
    ("files/src/", "it is the place"),
    ("store/src/open.rs", "SQLite opens it by its name; `files` looked at it and the files beside it before"),
    ("cli/src/documents.rs", "--output: a pipe or a terminal is written into, and what is replaced passes `files`"),
    ("cli/src/commands/slurm/dispatcher.rs", "renames a damaged bundle in the run's own directory"),
    ("cli/src/commands/ranks.rs", "the pipe to the process that started the ranks; it makes nothing"),
    ("cli/src/commands/sysbench.rs", "looks whether a test can open its files, as it will; it writes nothing"),
    ("engine/src/", "the files of a load, by the load's own rules: docs/safety.md"),
    ("lab/src/agent/kept.rs", "in a directory that it has just made"),
    ("lab/src/inventory/check.rs", "asks whether /dev/kvm may be used"),
    ("lab/src/inventory/raw_read.rs", "reads, without the cache"),
    ("lab/src/meters/work.rs", "/proc/kernel_work, in a guest"),
    (
        "lab/src/place/device/",
        "devices that a ScratchDevice gives the right to, loop devices, settings in /sys; an image with O_EXCL",
    ),
    ("lab/src/place/mount/kernel.rs", "/proc/sys/vm/drop_caches"),
    ("lab/src/place/presence.rs", "a file for locks only, made with O_EXCL and never written"),
    ("lab/src/source_archive.rs", "renames what is complete out of a directory that it has just made"),
    ("lab/src/source_tree/mod.rs", "in a directory that it has just made"),
    ("lab/src/trial/aged.rs", "a file for locks only, in this user's own directory, never written"),
    ("lab/src/trial/steps/ranks.rs", "in a directory of this user's alone that it has just made"),
    ("record/src/call.rs", "flags of calls that were recorded"),
    ("record/src/likeness.rs", "flags of calls that were recorded"),
    ("record/src/trace/", "flags of the program that it records; it opens nothing for writing itself"),
    ("record/src/import/", "flags in logs of other tools; it writes into the file that it is given"),
    ("record/src/iolog.rs", "files that a fio log names, as fio opens them: docs/formats/fio.md"),
    ("record/src/system_calls.rs", "names of calls; it makes none"),
    ("record/src/replay/", "the files of a replay, beneath a directory of its own: docs/record-replay.md"),
    ("sandbox/src/agent/", "in the guest"),
    ("sandbox/src/exact/", "in the guest's own directory"),
    ("sandbox/src/guest/console.rs", "in the guest's own directory"),
    ("sandbox/src/kernel/", "in the directories that the store of kernels makes for packages and builds"),
    ("sandbox/src/power/mirror.rs", "in the guest's own directory, with O_EXCL"),
    ("sandbox/src/process/", "/proc/self/oom_score_adj, and what a child may reach"),
    ("sandbox/src/qemu/", "/dev/kvm, and the cache of what guests start from"),
    ("sandbox/src/vhost/mod.rs", "the guest's image, which the lab made"),
];

const WRITES: &[&str] = &[
    "File::create",
    "OpenOptions",
    "File::options",
    "fs::write(",
    "fs::rename(",
    "fs::copy(",
    "hard_link(",
    " linkat(",
    "(linkat(",
    "renameat",
    "OFlags::CREATE",
    "OFlags::WRONLY",
    "OFlags::RDWR",
    "OFlags::TRUNC",
    "OFlags::TMPFILE",
    "OFlags::APPEND",
    "libc::O_WRONLY",
    "libc::O_RDWR",
    "libc::O_CREAT",
    "Connection::open",
    "mknodat(",
];

const EMPTIES: &[&str] = &["remove_dir_all", "REMOVEDIR"];

const MAY_EMPTY: &[(&str, &str)] = &[
    ("files/src/tree.rs", "it is the place: by an identity, by descriptors, and across no mount"),
    ("engine/src/", "directories of a load's fileset, by the load's own rules"),
    ("record/src/trace/decode.rs", "a flag of the program that it records"),
    ("record/src/import/strace.rs", "a flag in a log"),
    ("record/src/replay/", "directories that a replay made, beneath its own"),
];

/// The lines of the product in which one of these words is, as `file:line`, but for `use`.
fn lines_with(words: &[&str]) -> Vec<(String, usize)> {
    let crates = root().join("crates");
    let mut files = Vec::new();
    rust_files(&crates, &mut files);
    let mut found = Vec::new();
    for file in files {
        let name = file.strip_prefix(&crates).expect("below").display().to_string();
        let is_product = name.contains("/src/") && !name.starts_with("bench/") && !name.contains("/tests");
        let text = if is_product { fs::read_to_string(&file).expect("source is UTF-8") } else { String::new() };
        for (number, line) in product(&text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if !code.trim_start().starts_with("use ") && words.iter().any(|word| code.contains(word)) {
                found.push((name.clone(), number + 1));
            }
        }
    }
    found
}

/// Every such line is of a file that may, and every file that may has one.
fn only_in(may: &[(&str, &str)], words: &[&str], cure: &str) {
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for (name, line) in lines_with(words) {
        match may.iter().find(|(place, _)| name.starts_with(place)) {
            Some((place, _)) => drop(seen.insert(*place)),
            None => wrong.push(format!("crates/{name}:{line}: {cure}")),
        }
    }
    let unseen = may.iter().filter(|(place, _)| !seen.contains(place));
    wrong.extend(
        unseen.map(|(place, _)| format!("{place} is listed in tidy/written.rs and does no such thing: strike it")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_opened_for_writing_passes_one_crate_or_is_listed() {
    only_in(MAY_WRITE, WRITES, "open it with fstone_files, or say in tidy/written.rs why it need not");
}

#[test]
fn directories_are_emptied_in_one_place() {
    only_in(MAY_EMPTY, EMPTIES, "use fstone_files::{OwnDirectory, remove_tree}, which go by no name alone");
}

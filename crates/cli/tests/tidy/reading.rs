//! Text that a user names is read by one function, which has a limit and says it.

use super::{product, root, rust_files};
use std::{collections::BTreeSet, fs};

const KERNEL: &str = "files of the kernel, below /proc and /sys";
const OWN: &str = "files that fstone itself wrote, or a kernel's or a program's as fstone starts it";
const BOUND: &str = "reads no more than a bound of its own";

/// Where else files are read whole, and why that is right.
const ELSEWHERE: &[(&str, &str)] = &[
    ("cli/src/commands/durability/campaign.rs", OWN),
    ("cli/src/commands/figures.rs", BOUND),
    ("cli/src/commands/report.rs", BOUND),
    ("cli/src/commands/slurm/home.rs", OWN),
    ("cli/src/studies.rs", BOUND),
    ("engine/src/fileset/claim.rs", BOUND),
    ("engine/src/measure/clock.rs", KERNEL),
    ("engine/src/sequences/tree.rs", BOUND),
    ("lab/src/filesystem/kernel.rs", OWN),
    ("lab/src/inventory/text.rs", KERNEL),
    ("lab/src/meters/device.rs", KERNEL),
    ("lab/src/place/device/facts.rs", KERNEL),
    ("lab/src/place/device/kernel.rs", KERNEL),
    ("lab/src/place/device/zram.rs", KERNEL),
    ("lab/src/place/holder.rs", KERNEL),
    ("lab/src/place/mount/kernel.rs", KERNEL),
    ("lab/src/place/undo/journal.rs", BOUND),
    ("lab/src/place/work_directory.rs", BOUND),
    ("lab/src/trial/aged.rs", KERNEL),
    ("lab/src/trial/steps/beside.rs", BOUND),
    ("lab/src/trial/steps/judge.rs", BOUND),
    ("lab/src/trial/steps/ranks.rs", BOUND),
    ("ranks/src/facts.rs", KERNEL),
    ("record/src/trace/ptrace.rs", KERNEL),
    ("sandbox/src/agent/channel.rs", KERNEL),
    ("sandbox/src/agent/exact.rs", OWN),
    ("sandbox/src/agent/exchange.rs", OWN),
    ("sandbox/src/agent/modules.rs", OWN),
    ("sandbox/src/agent/setup.rs", KERNEL),
    ("sandbox/src/agent/stacks.rs", KERNEL),
    ("sandbox/src/exact/attend.rs", BOUND),
    ("sandbox/src/frames/read.rs", BOUND),
    ("sandbox/src/kernel/build/make.rs", OWN),
    ("sandbox/src/kernel/build/mod.rs", OWN),
    ("sandbox/src/kernel/build/source.rs", OWN),
    ("sandbox/src/kernel/identity.rs", OWN),
    ("sandbox/src/kernel/store.rs", OWN),
    ("sandbox/src/kernel/unpacked.rs", OWN),
    ("sandbox/src/process/rights.rs", KERNEL),
    ("sandbox/src/qemu/initramfs.rs", OWN),
    ("sandbox/src/qemu/mod.rs", OWN),
    ("sandbox/src/qemu/modules.rs", OWN),
    ("store/src/bundle/read.rs", BOUND),
];

#[test]
fn texts_that_a_user_names_are_read_within_a_limit() {
    let root = root();
    let mut files = Vec::new();
    for part in [
        "analysis", "cli", "drive", "engine", "files", "formats", "lab", "ranks", "record", "report", "sandbox",
        "store",
    ] {
        rust_files(&root.join("crates").join(part).join("src"), &mut files);
    }
    let mut found = BTreeSet::new();
    for path in files {
        let name = path.strip_prefix(root.join("crates")).expect("below").display().to_string();
        if name.ends_with("tests.rs") || name == "files/src/text.rs" {
            continue;
        }
        let text = product(&fs::read_to_string(&path).expect("readable"));
        let reads =
            |line: &str| ["read_to_string(", "fs::read(", "read_to_end("].iter().any(|call| line.contains(call));
        let of_kernel = |line: &str| ["\"/proc/", "\"/sys/", "\"/etc/"].iter().any(|place| line.contains(place));
        if text.lines().any(|line| reads(line) && !of_kernel(line)) {
            found.insert(name);
        }
    }
    let listed: BTreeSet<String> = ELSEWHERE.iter().map(|(name, _)| (*name).to_owned()).collect();
    let new: Vec<&String> = found.difference(&listed).collect();
    assert!(new.is_empty(), "use fstone_files::read_text, or list the file here with the reason: {new:?}");
    let gone: Vec<&String> = listed.difference(&found).collect();
    assert!(gone.is_empty(), "they no longer read a file whole; remove them from the list: {gone:?}");
    assert!(ELSEWHERE.iter().all(|(_, why)| !why.is_empty()));
}

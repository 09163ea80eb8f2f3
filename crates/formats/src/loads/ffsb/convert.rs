//! A profile as a workload file, with comments where its meaning was clarified.

use super::{
    Placement,
    profile::{Dialect, Group, Op, Profile},
};
use crate::loads::native;
use fstone_model::workload::{Amount, SizeDistribution};

/// Something a reader of the profile may not have known it means.
struct Clarification {
    /// How the lines begin that it is about; it stands above the first of them. Empty: above everything.
    about: &'static str,
    text: &'static str,
}

pub fn convert(profile: &Profile) -> String {
    let mut out = format!("# Read as a profile of FFSB {}.\n", profile.dialect.name());
    let (general, mut particular): (Vec<_>, Vec<_>) =
        clarifications(profile).into_iter().partition(|clarification| clarification.about.is_empty());
    for Clarification { text, .. } in general {
        out.push_str(&format!("# {text}\n"));
    }
    for line in native::print(&profile.workload(Placement::UnderDirectory)).lines() {
        particular.retain(|Clarification { about, text }| {
            let here = line.starts_with(about);
            if here {
                out.push_str(&format!("# {text}\n"));
            }
            !here
        });
        out.push_str(line);
        out.push('\n');
    }
    debug_assert!(particular.is_empty(), "every line that needs a comment is there");
    out
}

fn clarifications(profile: &Profile) -> Vec<Clarification> {
    let mut said = Vec::new();
    let mut say = |condition: bool, about: &'static str, text: &'static str| {
        if condition {
            said.push(Clarification { about, text });
        }
    };
    let runs = !profile.time.is_zero();
    let has = |wanted: &dyn Fn(&Group, Op) -> bool| {
        runs && profile.groups.iter().any(|group| group.weights.iter().any(|(op, _)| wanted(group, *op)))
    };
    let filesystems = &profile.filesystems;
    let ages = filesystems.iter().any(|filesystem| filesystem.ageing.is_some());
    say(true, "", "Data is incompressible; FFSB writes zeros.");
    say(
        filesystems.len() > 1,
        "",
        "Each location is a directory here: fs0, fs1, … in their order. `fstone ffsb` works in the locations themselves.",
    );
    say(
        profile.dialect == Dialect::V5 && filesystems.len() > 1,
        "",
        "Each filesystem inherits from the one before it what it does not set itself, except its location.",
    );
    say(
        profile.dialect == Dialect::V5 && profile.groups.len() > 1,
        "",
        "Each threadgroup inherits from the one before it what it does not set itself, except weights and bindfs.",
    );
    say(
        filesystems.iter().any(|fs| matches!(fs.sizes, SizeDistribution::Uniform { .. })),
        "size = { uniform",
        "Drawn uniformly; max_filesize itself is never drawn. Creates draw as the initial files do.",
    );
    say(
        filesystems.iter().any(|fs| matches!(fs.sizes, SizeDistribution::Weighted(_))),
        "size = { weighted",
        "Creates draw their sizes as the initial files do.",
    );
    say(
        filesystems.iter().any(|fs| matches!(fs.amount, Amount::Bytes(_))),
        "bytes = ",
        "init_size is the sum of the files' sizes; FFSB goes by the filesystem's used blocks.",
    );
    say(ages, "name = \"ageing\"", "On files of its own, which stay, before the measured files are made.");
    say(
        has(&|_, op| op == Op::Readall),
        "read = { size = \"whole\"",
        "A transaction for each whole block; a file shorter than a block counts once, where FFSB counts nothing.",
    );
    say(
        has(&|group, op| op == Op::Read && group.read.random),
        "name = \"benchmark\"",
        "Random reads move whole blocks only; FFSB counts a last part of a block as moved without moving it.",
    );
    say(
        has(&|group, op| matches!(op, Op::Write | Op::WriteFsync) && group.write.random),
        "name = \"benchmark\"",
        "Random writes move whole blocks only; FFSB counts a last part of a block as moved without moving it.",
    );
    say(runs && profile.aligned, "name = \"benchmark\"", "Random offsets are multiples of 4096.");
    say(
        profile.dialect == Dialect::V4 && has(&|_, op| op == Op::Append),
        "name = \"benchmark\"",
        "FFSB 4's write appends.",
    );
    say(
        has(&|group, op| op == Op::Write && group.write.fsync),
        "name = \"benchmark\"",
        "fsync_file: every write ends with an fsync, which is not counted.",
    );
    say(
        has(&|_, op| op == Op::Metaop),
        "metadata = ",
        "Makes two directories, removes one and renames one; that counts once.",
    );
    said
}

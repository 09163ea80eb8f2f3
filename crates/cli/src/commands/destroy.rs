//! Before a named disk is formatted: everything that can be known about it is checked, and a person is asked.

use super::Context;
use crate::{
    exit::Exit,
    progress::{Expected, RunProgress},
    rights::is_root,
    terminal::{self, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_lab::{
    machine::Machine,
    place::device::{BlockFacts, Devices, Sampled, ScratchDevice},
    run::carry_out::clean_up,
};
use fstone_model::{Plan, study::DeviceSpec, units::format_bytes};
use std::{
    collections::BTreeSet,
    io::{Read, stdin},
    path::{Path, PathBuf},
};

const ANSWER_BYTES: u64 = 256;

/// Refuses plans that name a disk which may not be formatted, before anything is made or recorded; and where a person
/// sits at the terminal, has the serial number of each disk typed back. What is allowed on the command line of a script
/// is allowed: `--allow-destroy` names the disk a second time.
///
/// The lab examines each disk again before every trial; this check lets a person notice a mistake at once.
pub(super) fn confirm<'p>(
    context: &Context,
    plans: impl IntoIterator<Item = &'p Plan>,
    allowed: &[PathBuf],
    allowed_data: &[PathBuf],
) -> Result<(), Failure> {
    if !is_root() {
        return Ok(());
    }
    let machine = Machine::host();
    let cells = plans.into_iter().flat_map(|plan| &plan.cells);
    let disks: BTreeSet<&Path> = cells
        .filter_map(|cell| match &cell.device {
            DeviceSpec::Block { path } => Some(Path::new(path)),
            _ => None,
        })
        .collect();
    // What a killed run left on a disk looks like a filesystem in use until it is undone. That erases the disk, so it is for those
    // alone that this plan may format, and neither before a question is answered nor before all others were found fit.
    let is_permitted =
        |path: &&PathBuf| disks.contains(path.as_path()) && allowed.contains(path) && !terminal::is_interactive();
    let permitted: Vec<PathBuf> = allowed_data.iter().filter(is_permitted).cloned().collect();
    let (last, first): (Vec<&Path>, Vec<&Path>) =
        disks.into_iter().partition(|disk| permitted.iter().any(|path| path == disk));
    let clean = || clean_up(&machine, &context.work_directory, &permitted, &RunProgress::new(Expected::default()));
    if last.is_empty() && !first.is_empty() {
        clean();
    }
    let mut asked = BTreeSet::new();
    for (number, disk) in first.iter().chain(&last).copied().enumerate() {
        if number == first.len() {
            clean();
        }
        let (devices, runner) = (&*machine.devices, &*machine.runner);
        // No other run begins with it until the question is answered.
        let (claimed, _lock) = ScratchDevice::claim_locked(disk, allowed, 0, devices, runner)
            .context("refused")
            .or_exit(Exit::CannotHere)?;
        if asked.insert(claimed.number()) {
            agree(&claimed, disk, devices, allowed_data, "formatted")?;
        }
    }
    Ok(())
}

/// Has a person type back what tells the disk from others before it is `formatted`, or `overwritten`. Without a terminal, data on it
/// that no signature accounts for has to be permitted to go: what one program does not recognise may be another's.
pub(super) fn agree(
    claimed: &ScratchDevice,
    named: &Path,
    devices: &dyn Devices,
    allowed_data: &[PathBuf],
    fate: &str,
) -> Result<(), Failure> {
    let path = claimed.path();
    let found = devices.sample(path, claimed.number()).with_context(|| path.display().to_string());
    let found = found.or_exit(Exit::CannotHere)?;
    if terminal::is_interactive() {
        return ask(path, &devices.facts(path).or_exit(Exit::CannotHere)?, found.as_ref(), fate);
    }
    let is_allowed = allowed_data.iter().any(|allowed| allowed == named || allowed == path);
    match found.filter(|_| !is_allowed) {
        None => Ok(()),
        Some(found) => {
            let words = format!(
                "{0}: {found}; nothing recognises it, and it would be lost. To permit that, add --allow-destroy-data {0}",
                path.display()
            );
            Err(Failure::new(Exit::CannotHere, words))
        }
    }
}

/// Has a person who sits at the terminal agree to what `clean` erases.
pub(super) fn agree_to_erase(disk: &Path, devices: &dyn Devices) -> Result<(), Failure> {
    if !terminal::is_interactive() {
        return Ok(());
    }
    ask(disk, &devices.facts(disk).or_exit(Exit::CannotHere)?, None, "erased")
}

fn ask(path: &Path, facts: &BlockFacts, found: Option<&Sampled>, fate: &str) -> Result<(), Failure> {
    let (question, answer) = question(path, facts, found, fate);
    let asked = terminal::ask(&question);
    let mut typed = Vec::new();
    let mut input = stdin().lock().take(ANSWER_BYTES).bytes();
    while let Some(Ok(byte)) = input.next()
        && byte != b'\n'
    {
        typed.push(byte);
    }
    if asked.is_ok() && String::from_utf8_lossy(&typed).trim() == answer {
        return Ok(());
    }
    Err(Failure::new(Exit::CannotHere, format!("that is not {answer}; {} was not touched", path.display())))
}

/// What a person is shown, and what has to be typed back: the number that is printed on the disk, so that it is the disk
/// that is compared and not once more a name in /dev that may have gone to another since yesterday.
fn question(path: &Path, facts: &BlockFacts, found: Option<&Sampled>, fate: &str) -> (String, String) {
    let identity = facts.identity.as_ref().map(|identity| format!("{identity}, ")).unwrap_or_default();
    let serial = facts.identity.as_ref().and_then(|identity| identity.serial.clone());
    let (what, answer) = match serial {
        Some(serial) => ("its serial number", serial),
        None => ("its path, since it has no serial number,", path.display().to_string()),
    };
    let size = format_bytes(facts.size_bytes);
    let question = format!(
        "{} ({identity}{size}) will be {fate}, and everything on it will be lost.\n{}Type {what} to go on: ",
        path.display(),
        found.map(|found| format!("It is not empty: {found}.\n")).unwrap_or_default()
    );
    (question, answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_lab::place::device::{FileKind, Identity};

    #[test]
    fn the_number_on_the_disk_is_asked_for_and_the_path_where_it_has_none() {
        let mut facts = BlockFacts {
            size_bytes: 1 << 40,
            identity: Some(Identity { model: Some("Disk 9000".into()), serial: Some("S4EVNX0".into()) }),
            ..BlockFacts::of_kind(FileKind::Block, "/dev/sdz".into())
        };
        let disk = Path::new("/dev/sdz");
        let (asked, answer) = question(disk, &facts, None, "formatted");
        assert_eq!(
            asked,
            "/dev/sdz (Disk 9000, serial number S4EVNX0, 1 TiB) will be formatted, and everything on it will be lost.\n\
             Type its serial number to go on: "
        );
        assert_eq!(answer, "S4EVNX0");
        facts.identity = None;
        let (asked, answer) = question(disk, &facts, None, "formatted");
        assert!(asked.starts_with("/dev/sdz (1 TiB) will") && asked.contains("Type its path"), "{asked}");
        assert_eq!(answer, "/dev/sdz");
        let found = Sampled { first_at: 0, first: b"README\0\x1b".to_vec(), with_data: 3, samples: 256 };
        let (asked, _) = question(disk, &facts, Some(&found), "formatted");
        let told =
            "\nIt is not empty: from byte 0 on it holds \"README..\", and 3 of 256 samples across it hold data.\n";
        assert!(asked.contains(told), "{asked}");
    }
}

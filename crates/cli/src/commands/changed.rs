//! Whether a machine still is what it was when a run began on it.

use fstone_lab::inventory;
use fstone_model::Inventory;

/// What is another than it was of a machine, in words; empty where nothing is that figures depend on. Figures of two machines in one
/// table would compare the machines.
pub(super) fn changed(then: &Inventory, now: &Inventory) -> String {
    let changed: Vec<String> = [
        ("kernel", &then.kernel, &now.kernel),
        ("host", &then.host, &now.host),
        ("fstone", &then.fstone_commit, &now.fstone_commit),
    ]
    .into_iter()
    .filter(|(_, then, now)| then != now)
    .map(|(what, then, now)| format!("{what}: {then} then, {now} now"))
    .chain(
        then.tools
            .iter()
            .filter(|tool| !now.tools.contains(tool))
            .map(|(tool, version)| format!("{tool}: {version} then")),
    )
    .chain(
        then.settings
            .iter()
            .filter(|(name, _)| !inventory::STATES.contains(&name.as_str()))
            .filter(|setting| !now.settings.contains(setting))
            .map(|(name, value)| format!("{name}: {value} then")),
    )
    .collect();
    changed.join("; ")
}

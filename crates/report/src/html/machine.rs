//! The machine, and how to repeat the run.

use super::differences::quoted;
use crate::{
    Analysis,
    analysis::machines,
    number::Scale,
    text::{block, line, listing},
    when,
};
use fstone_model::{Unit, study::KernelSpec, units::format_bytes};

pub(super) struct Machine {
    pub(super) facts: Vec<(String, String)>,
    /// Longer texts: (title, text).
    pub(super) blocks: Vec<(&'static str, String)>,
}

pub(super) struct Repeat {
    pub(super) command: String,
    pub(super) facts: Vec<(String, String)>,
    pub(super) about: Vec<String>,
    pub(super) source: String,
    pub(super) attachments: Vec<(String, String)>,
}

/// Queue settings that affect figures most; the full list has the others.
const QUEUE: [&str; 7] =
    ["scheduler", "rotational", "read_ahead_kb", "nr_requests", "write_cache", "wbt_lat_usec", "physical_block_size"];

pub(super) fn machine(analysis: &Analysis<'_>) -> Machine {
    let inventory = &analysis.dataset.run.inventory;
    let mut facts: Vec<(&str, String)> = Vec::new();
    if !analysis.dataset.run.blocks.is_empty() {
        for machine in machines(analysis.dataset) {
            facts.push(("Blocks", format!("{} on {}", machine.blocks_in_words(), machine.in_words())));
        }
        facts.push((
            "Begun on",
            "the machine below; rows are compared within blocks, and each block comes from one machine".to_owned(),
        ));
    }
    facts.extend([
        ("Host", inventory.host.clone()),
        ("Kernel", inventory.kernel.clone()),
        ("Distribution", inventory.distribution.clone()),
        ("CPU", format!("{} × {}", inventory.cpus, inventory.cpu_model)),
        ("Memory", format_bytes(inventory.memory_bytes)),
        ("Virtualization", inventory.virtualization.clone().unwrap_or_else(|| "none seen".to_owned())),
    ]);
    if let Some(device) = &inventory.device {
        let mut told = vec![device.name.clone(), format_bytes(device.size_bytes)];
        told.extend(device.model.clone());
        told.extend(device.backing_filesystem.as_ref().map(|filesystem| format!("holds {filesystem}")));
        facts.push(("Device", told.join(", ")));
        let told = QUEUE.iter().filter_map(|wanted| device.queue.iter().find(|(name, _)| name == wanted));
        let queue: Vec<String> = told.map(|(name, value)| format!("{name} {value}")).collect();
        facts.push(("Its queue", queue.join("; ")));
    }
    let raw = [
        ("Raw sequential read", inventory.raw_read_bytes_per_second),
        ("Raw sequential write", inventory.raw_write_bytes_per_second),
    ];
    for (name, rate) in raw.into_iter().filter_map(|(name, rate)| Some((name, rate?))) {
        let told = Scale::of_one(Unit::BytesPerSecond, rate).with_unit(rate);
        facts.push((name, format!("{told}, before the run")));
    }
    if let Some(rate) = inventory.flushes_per_second {
        let told = Scale::of_one(Unit::PerSecond, rate).with_unit(rate);
        facts.push(("Blocks made durable", format!("{told}, one at a time, before the run")));
    }
    facts.push(("Tested on", tested_on(analysis)));
    // Most tools say their name with their version.
    let tool = |(tool, version): &(String, String)| {
        if version.contains(tool.as_str()) { version.clone() } else { format!("{tool}: {version}") }
    };
    facts.push(("Tools", inventory.tools.iter().map(tool).collect::<Vec<_>>().join("; ")));
    let lines = |pairs: &[(String, String)]| {
        pairs.iter().map(|(name, value)| format!("{} = {}", line(name), line(value))).collect::<Vec<_>>().join("\n")
    };
    let blocks = [
        ("Kernel command line", inventory.kernel_command_line.clone()),
        ("Kernel settings", lines(&inventory.settings)),
        (
            "Every queue setting of the device",
            inventory.device.as_ref().map_or_else(String::new, |device| lines(&device.queue)),
        ),
        ("Mounts at the start", inventory.mounts.clone()),
    ];
    Machine {
        facts: present(facts),
        blocks: blocks
            .into_iter()
            .map(|(title, text)| (title, block(&text)))
            .filter(|(_, text)| !text.is_empty())
            .collect(),
    }
}

fn tested_on(analysis: &Analysis<'_>) -> String {
    let mut told: Vec<String> = Vec::new();
    for cell in &analysis.dataset.run.plan.cells {
        let kernel = match &cell.kernel {
            KernelSpec::Host => String::new(),
            KernelSpec::Uml(version) => format!(" under User-mode Linux {version}"),
            KernelSpec::Qemu(version) => format!(" under QEMU with kernel {version}"),
            KernelSpec::Exact(version) => format!(" in virtual time under User-mode Linux {version}"),
        };
        let queue: Vec<String> = cell.queue.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let queue = if queue.is_empty() { String::new() } else { format!(" ({})", queue.join(", ")) };
        let text = format!("{}{queue}{kernel}", cell.device.describe());
        if !told.contains(&text) {
            told.push(text);
        }
    }
    listing(&told)
}

fn present(facts: Vec<(&str, String)>) -> Vec<(String, String)> {
    facts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), line(&value)))
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

pub(super) fn repeat(analysis: &Analysis<'_>) -> Repeat {
    let run = &analysis.dataset.run;
    let typed: Vec<String> = run.command.iter().map(|word| quoted(word)).collect();
    let expected = run.plan.expected_duration.map(fstone_model::units::format_duration).unwrap_or_default();
    let facts = vec![
        ("Seed", run.plan.seed.to_string()),
        ("fstone", format!("{} ({})", run.inventory.fstone_version, run.inventory.fstone_commit)),
        ("Started", when::minute(run.started_unix_ns)),
        ("Ended", run.finished_unix_ns.map_or_else(|| "not finished".to_owned(), when::minute)),
        ("Expected to take", expected),
    ];
    Repeat {
        command: line(&typed.join(" ")),
        facts: present(facts),
        about: run.plan.about.split("\n\n").map(line).filter(|paragraph| !paragraph.is_empty()).collect(),
        source: block(&run.plan.source),
        attachments: run.plan.attachments.iter().map(|(name, text)| (line(name), block(text))).collect(),
    }
}

//! Whether two runs may be compared, and what was different between them.

use crate::{
    clock::{self, is_virtual},
    number::Scale,
    text::{line, listing, shorten},
};
use fstone_model::{
    Cell, Dataset, Inventory, Step,
    age::Past,
    dataset::Run,
    inventory::{GUEST_MEMORY_SETTING, MODEL_SETTING},
    study::{DeviceSpec, KernelSpec, StepAction},
    units,
};
use serde_json::Value;
use std::time::Duration;

fstone_model::named! {
    /// Something that has to be alike for figures to be compared.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Setting: word {
        Study => "study",
        /// What is done in rows of the same name.
        Load => "load",
        /// Real or virtual time, and what a system call is charged in it. Never compared.
        Clock => "clock",
        /// Host or guest: where kernels run.
        Executor => "executor",
        Memory => "memory",
        Device => "device",
        Machine => "machine",
    }
}

impl Setting {
    pub const fn why(self) -> &'static str {
        match self {
            Self::Study => "two studies answer different questions",
            Self::Load => "rows of the same name did different work",
            Self::Clock => "a second of one is not a second of the other",
            Self::Executor => "a guest's figures measure its emulator as much as its kernel",
            Self::Memory => "a guest with more memory reads and writes its drive less",
            Self::Device => "the difference would be the devices' as much as the filesystems'",
            Self::Machine => "the difference would be the machines' as much as the filesystems'",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    pub setting: Setting,
    pub baseline: String,
    pub other: String,
}

/// In words: "different device: A, then B; the difference would be the devices'…".
impl std::fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { setting, baseline, other } = self;
        write!(formatter, "different {}: {baseline}, then {other}; {}", setting.word(), setting.why())
    }
}

/// Something else that was different: possibly what the comparison is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub what: String,
    pub baseline: String,
    pub other: String,
}

/// A device that reads this much slower or faster than before the other run is worth mentioning.
const RAW_READ_SLACK: f64 = 0.2;

/// What must be the same for a meaningful comparison but is not; at most one of each kind.
pub fn mismatches(baseline: &Dataset, other: &Dataset) -> Vec<Mismatch> {
    let (a, b) = (&baseline.run, &other.run);
    let mut found = Vec::new();
    let mut differ = |setting, baseline: String, other: String| {
        if baseline != other {
            found.push(Mismatch { setting, baseline: line(&baseline), other: line(&other) });
        }
    };
    differ(Setting::Study, a.plan.study.clone(), b.plan.study.clone());
    let rows: Vec<(&Cell, &Cell)> = a
        .plan
        .cells
        .iter()
        .filter_map(|cell| Some((cell, b.plan.cells.iter().find(|other| other.label == cell.label)?)))
        .collect();
    let first = |unlike: &dyn Fn(&Cell, &Cell) -> bool| rows.iter().copied().find(|(a, b)| unlike(a, b));
    if a.plan.study == b.plan.study
        && let Some((a, b)) = first(&|a, b| work(a) != work(b))
    {
        let (before, after) = told_work(a, b);
        differ(Setting::Load, before, after);
    }
    // Rows of other names, too: a figure of one clock says nothing about the other.
    differ(Setting::Clock, clock::told(baseline), clock::told(other));
    if let Some((a, b)) = first(&|a, b| executor(&a.kernel) != executor(&b.kernel)) {
        differ(Setting::Executor, executor(&a.kernel).to_owned(), executor(&b.kernel).to_owned());
    }
    if let Some((before, after)) = both_settings(a, b, GUEST_MEMORY_SETTING) {
        differ(Setting::Memory, before.to_owned(), after.to_owned());
    }
    let has_blocks = !a.blocks.is_empty() || !b.blocks.is_empty();
    let devices = match first(&|a, b| device(&a.device) != device(&b.device)) {
        Some((a, b)) => (device(&a.device), device(&b.device)),
        // Where a modelled drive's image is stored, and which processor simulates it, affects no figure.
        None if is_virtual(baseline) && is_virtual(other) => models(a, b).unwrap_or_default(),
        None if has_blocks => (of_all(baseline, beneath), of_all(other, beneath)),
        None => (beneath(&a.inventory), beneath(&b.inventory)),
    };
    differ(Setting::Device, devices.0, devices.1);
    if is_virtual(baseline) && is_virtual(other) {
        return found;
    }
    let (before, after) = if has_blocks {
        (of_all(baseline, told_machine), of_all(other, told_machine))
    } else {
        machines(&a.inventory, &b.inventory)
    };
    differ(Setting::Machine, before, after);
    found
}

pub fn changes(baseline: &Dataset, other: &Dataset) -> Vec<Change> {
    let (a, b) = (&baseline.run.inventory, &other.run.inventory);
    let mut found = Vec::new();
    let mut differ = |what: &str, baseline: String, other: String| {
        let (baseline, other) = (line(&baseline), line(&other));
        if baseline != other {
            let recorded = what == GUEST_MEMORY_SETTING || what.starts_with(MODEL_SETTING);
            let nothing = if recorded { "not recorded" } else { "none" };
            let some = |text: String| if text.is_empty() { nothing.to_owned() } else { text };
            found.push(Change { what: line(what), baseline: some(baseline), other: some(other) });
        }
    };
    differ("kernel", a.kernel.clone(), b.kernel.clone());
    differ("kernel command line", a.kernel_command_line.clone(), b.kernel_command_line.clone());
    differ("distribution", a.distribution.clone(), b.distribution.clone());
    let fstone = |inventory: &Inventory| format!("{} ({})", inventory.fstone_version, inventory.fstone_commit);
    differ("fstone", fstone(a), fstone(b));
    for (what, baseline, other) in pairs(&a.tools, &b.tools).into_iter().chain(pairs(&a.settings, &b.settings)) {
        differ(&what, baseline, other);
    }
    let queue =
        |inventory: &Inventory| inventory.device.as_ref().map(|device| device.queue.clone()).unwrap_or_default();
    for (what, baseline, other) in pairs(&queue(a), &queue(b)) {
        differ(&format!("queue {what}"), baseline, other);
    }
    if let (Some(before), Some(after)) = (a.raw_read_bytes_per_second, b.raw_read_bytes_per_second)
        && (after / before - 1.0).abs() > RAW_READ_SLACK
    {
        let scale = Scale::of_one(fstone_model::Unit::BytesPerSecond, before);
        differ("device's raw read before the run", scale.with_unit(before), scale.with_unit(after));
    }
    for cell in &baseline.run.plan.cells {
        let Some(partner) = other.run.plan.cells.iter().find(|there| there.label == cell.label) else { continue };
        let asked = |cell: &Cell| match &cell.filesystem.own {
            Some(own) => {
                let commands = own.commands().map(|(which, words)| format!("{} {}", which.word(), words.join(" ")));
                commands.collect::<Vec<_>>().join("; ")
            }
            None => format!("mkfs {}; mount {}", cell.filesystem.mkfs.join(" "), cell.filesystem.mount),
        };
        differ(&format!("{}, options", cell.label), asked(cell), asked(partner));
        let in_force = |dataset: &Dataset, cell: u32| {
            let trial = dataset.trials_of(cell).find(|trial| trial.outcome.is_completed())?;
            trial.effective.mount.clone()
        };
        if let (Some(before), Some(after)) = (in_force(baseline, cell.index), in_force(other, partner.index)) {
            differ(&format!("{}, mount options in force", cell.label), before, after);
        }
    }
    found
}

/// (name, before, after) of everything in either list.
fn pairs(a: &[(String, String)], b: &[(String, String)]) -> Vec<(String, String, String)> {
    let of = |list: &[(String, String)], name: &str| {
        list.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let only_b = b.iter().filter(|(name, _)| !a.iter().any(|(known, _)| known == name));
    a.iter().chain(only_b).map(|(name, _)| (name.clone(), of(a, name), of(b, name))).collect()
}

/// Names and actions of a cell's steps; where a source was found on the host does not count, only what it is called.
fn work(cell: &Cell) -> Vec<(String, StepAction)> {
    let steps = cell.steps.iter();
    steps
        .map(|step| {
            let action = match &step.action {
                StepAction::CopyIn { source, target } => StepAction::CopyIn {
                    source: source.rsplit('/').next().unwrap_or_default().to_owned(),
                    target: target.clone(),
                },
                other => other.clone(),
            };
            (of_work(step), action)
        })
        .collect()
}

fn of_work(step: &Step) -> String {
    if step.background { format!("{} in the background", step.name) } else { step.name.clone() }
}

fn told_work(a: &Cell, b: &Cell) -> (String, String) {
    let names = |cell: &Cell| cell.steps.iter().map(of_work).collect::<Vec<_>>();
    if names(a) != names(b) {
        return (format!("steps {}", listing(&names(a))), format!("steps {}", listing(&names(b))));
    }
    let step = work(a).into_iter().zip(work(b)).find(|(a, b)| a != b);
    let Some(((name, a), (_, b))) = step else { return (String::new(), String::new()) };
    if let (StepAction::Age(a), StepAction::Age(b)) = (&a, &b)
        && let (Past::Aged(a), Past::Aged(b)) = (&**a, &**b)
    {
        let (before, after) = a.differences(b);
        if before != after {
            return (format!("step {name}: {before}"), after);
        }
    }
    let value = |action: &StepAction| serde_json::to_value(action).unwrap_or_default();
    let mut path = Vec::new();
    let (before, after) = first_difference(&value(&a), &value(&b), &mut path);
    if path.ends_with(&["stop".to_owned(), "time".to_owned()]) {
        return (format!("{name} ran {before}"), after);
    }
    // The kind of step goes without saying where it is the step's name.
    let kind = path.first().is_some_and(|kind| *kind == name);
    let place = path.split_off(usize::from(kind)).join(" ");
    (format!("step {name}: {place} {before}"), after)
}

/// The innermost place where two values differ, as (before, after); its path is added to `path`.
fn first_difference(a: &Value, b: &Value, path: &mut Vec<String>) -> (String, String) {
    match (a, b) {
        (Value::Object(_), Value::Object(_)) if time(a).is_some() && time(b).is_some() => {
            let told = |value| time(value).map(units::format_duration).unwrap_or_default();
            return (told(a), told(b));
        }
        (Value::Object(x), Value::Object(y)) if x.keys().eq(y.keys()) => {
            if let Some((key, value)) = x.iter().find(|(key, value)| y.get(*key) != Some(value)) {
                path.push(key.clone());
                return first_difference(value, &y[key], path);
            }
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            if let Some(index) = (0..x.len()).find(|index| x[*index] != y[*index]) {
                return first_difference(&x[index], &y[index], path);
            }
        }
        _ => {}
    }
    let told = |value: &Value| shorten(&value.to_string(), 60);
    (told(a), told(b))
}

/// A time, as serde writes one.
fn time(value: &Value) -> Option<Duration> {
    let parts = value.as_object().filter(|parts| parts.len() == 2)?;
    Some(Duration::new(parts.get("secs")?.as_u64()?, u32::try_from(parts.get("nanos")?.as_u64()?).ok()?))
}

/// What two runs have under the name of a setting. A run that did not record it says nothing; it is among the changes then.
fn both_settings<'a>(a: &'a Run, b: &'a Run, name: &str) -> Option<(&'a str, &'a str)> {
    let of =
        |run: &'a Run| run.inventory.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    of(a).zip(of(b))
}

/// How two models of one name differ: the parameters that only one of them has so.
fn models(a: &Run, b: &Run) -> Option<(String, String)> {
    let names = a.inventory.settings.iter().map(|(name, _)| name).filter(|name| name.starts_with(MODEL_SETTING));
    let unlike = |name: &String| both_settings(a, b, name).filter(|(before, after)| before != after);
    let (name, (before, after)) = names.filter_map(|name| Some((name, unlike(name)?))).next()?;
    let parameters = |model: &str| -> Vec<String> { parameters(model).map(str::to_owned).collect() };
    let (before, after) = (parameters(before), parameters(after));
    let only = |these: &[String], others: &[String]| {
        let own: Vec<&str> = these.iter().filter(|one| !others.contains(one)).map(String::as_str).collect();
        format!("{} with {}", name.trim_start_matches(MODEL_SETTING), listing(&own))
    };
    Some((only(&before, &after), only(&after, &before)))
}

/// The parameters of a model as a run records it: "NAME: rpm=7200 outer-rate=110.51 MiB/s". Values can have spaces, names cannot.
fn parameters(model: &str) -> impl Iterator<Item = &str> {
    let text = model.split_once(": ").map_or(model, |(_, parameters)| parameters);
    let begins: Vec<usize> =
        text.match_indices('=').map(|(at, _)| text[..at].rfind(' ').map_or(0, |space| space + 1)).collect();
    let ends: Vec<usize> = begins.iter().skip(1).copied().chain([text.len()]).collect();
    begins.into_iter().zip(ends).map(|(begin, end)| text[begin..end].trim())
}

const fn executor(kernel: &KernelSpec) -> &'static str {
    match kernel {
        KernelSpec::Host => "the host",
        KernelSpec::Uml(_) => "user-mode Linux",
        KernelSpec::Qemu(_) => "QEMU",
        KernelSpec::Exact(_) => "virtual time",
    }
}

/// A device as a comparison sees it, without the place of the image.
fn device(spec: &DeviceSpec) -> String {
    match spec {
        DeviceSpec::Directory { .. } => "a directory".to_owned(),
        DeviceSpec::Scratch { .. } => "a scratch directory".to_owned(),
        other => other.describe(),
    }
}

/// What is under the work directory, or the named device.
fn beneath(inventory: &Inventory) -> String {
    let Some(device) = &inventory.device else { return String::new() };
    let model = device.model.as_deref().map(|model| format!(" ({model})")).unwrap_or_default();
    let filesystem = device.backing_filesystem.as_deref().map(|name| format!(" with {name}")).unwrap_or_default();
    let size = units::format_bytes(device.size_bytes);
    format!("{}{model}, {size}{filesystem}", device.name)
}

/// The same for every machine that made blocks, with their number: a machine that made more of them weighs more in the run's figures.
fn of_all(dataset: &Dataset, told: impl Fn(&Inventory) -> String) -> String {
    let mut all: Vec<String> = crate::machines::machines(dataset)
        .iter()
        .map(|machine| {
            format!(
                "{} ({}, {})",
                told(machine.inventory),
                machine.name,
                crate::text::counted(machine.blocks.len(), "block")
            )
        })
        .collect();
    all.sort();
    all.join("; ")
}

fn told_machine(inventory: &Inventory) -> String {
    let memory = units::format_bytes(inventory.memory_bytes);
    format!("{}: {} × {}, {memory}", inventory.host, inventory.cpus, inventory.cpu_model)
}

/// Describes two machines in words that are equal only for the same machine.
fn machines(a: &Inventory, b: &Inventory) -> (String, String) {
    let told = |inventory: &Inventory| {
        let memory = units::format_bytes(inventory.memory_bytes);
        let under = inventory.virtualization.as_deref().map(|name| format!(", {name}")).unwrap_or_default();
        format!("{}: {} × {}, {memory}{under}", inventory.host, inventory.cpus, inventory.cpu_model)
    };
    if crate::machines::is_memory_of_one(a, b) {
        (told(&Inventory { memory_bytes: 0, ..a.clone() }), told(&Inventory { memory_bytes: 0, ..b.clone() }))
    } else {
        (told(a), told(b))
    }
}

//! Small plans, for tests.

#[cfg(test)]
use crate::agent::protocol::{Ground, Opening};
use crate::trial::LabOptions;
use fstone_model::{
    Cell, Plan, Step,
    study::{Column, DeviceSpec, Factor, FilesystemSpec, KernelSpec, Order, Repeats, StepAction},
};
#[cfg(test)]
use std::path::Path;
use std::time::Duration;

pub fn options() -> LabOptions {
    LabOptions {
        work_directory: "/nowhere".into(),
        allow_destroy: Vec::new(),
        measure_null: false,
        agent: "/nowhere".into(),
        patience: LabOptions::PATIENCE,
        closing_limit: LabOptions::CLOSING_LIMIT,
        guests: None,
        jobs: None,
        presence: None,
        aged: None,
        keep_going: false,
    }
}

pub fn loop_device(size_bytes: u64) -> DeviceSpec {
    DeviceSpec::Loop { size_bytes, direct_io: false, sector_bytes: 512, directory: None, in_memory: false, model: None }
}

pub fn step(name: &str, action: StepAction) -> Step {
    Step { name: name.into(), action, limit: Duration::from_secs(120), background: false }
}

/// A trial of ext4 in a directory below another.
#[cfg(test)]
pub(crate) fn opening(parent: &Path) -> Opening {
    Opening {
        ground: Ground::Directory { parent: parent.to_owned(), name: "tree".into(), notes: None },
        filesystem: cell(0, "ext4", "", &[]).filesystem,
        mounts: false,
        queue: Vec::new(),
        seed: 1,
        time_disk: false,
        measure_null: false,
        promises: false,
        work: None,
    }
}

/// mkfs, mount, then these, on a loop device of 400 MiB.
pub fn cell(index: u32, kind: &str, mount: &str, steps: &[Step]) -> Cell {
    let mut all = vec![step("mkfs", StepAction::Mkfs), step("mount", StepAction::Mount)];
    all.extend_from_slice(steps);
    Cell {
        index,
        levels: vec![index],
        label: format!("{kind} {index}"),
        filesystem: FilesystemSpec {
            name: kind.into(),
            kind: kind.into(),
            mount: mount.into(),
            ..FilesystemSpec::default()
        },
        device: loop_device(400 << 20),
        kernel: KernelSpec::Host,
        queue: Vec::new(),
        steps: all,
    }
}

pub fn plan(cells: Vec<Cell>, repeats: Repeats) -> Plan {
    Plan {
        study: "test".into(),
        title: "Test".into(),
        about: String::new(),
        source: String::new(),
        attachments: Vec::new(),
        quick: false,
        warm_up: 0,
        perturbed: 0,
        budget: None,
        repeats,
        order: Order::Blocks,
        seed: 1,
        factors: vec![Factor {
            name: "filesystem".into(),
            levels: cells.iter().map(|cell| cell.label.clone()).collect(),
            numbers: None,
        }],
        cells,
        columns: vec![Column { header: "mkfs".into(), step: "mkfs".into(), metric: "time".into() }],
        baseline: None,
        compare: None,
        expected_duration: None,
        published: None,
    }
}

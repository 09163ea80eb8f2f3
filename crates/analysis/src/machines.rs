//! Which machines made a run's blocks. One machine makes a whole block, and what it adds to every row is part of the block's
//! effect, because rows are compared within blocks. What a machine affects otherwise, its processors or its device's speed, goes by
//! the block, too.

use crate::text::{counted, line, listing};
use fstone_model::dataset::{Dataset, Run};
use fstone_model::{Inventory, units};

#[derive(Debug, Clone, PartialEq)]
pub struct Machine<'a> {
    pub name: String,
    /// The blocks, from 0, in their order.
    pub blocks: Vec<u32>,
    /// The machine as it was at the first of them.
    pub inventory: &'a Inventory,
}

impl Machine<'_> {
    /// "block 3", "blocks 1, 2 and 5".
    pub fn blocks_in_words(&self) -> String {
        let numbers: Vec<String> = self.blocks.iter().map(|block| (block + 1).to_string()).collect();
        // No one counts further.
        if numbers.len() > 12 {
            return counted(numbers.len(), "block");
        }
        format!("block{} {}", if numbers.len() == 1 { "" } else { "s" }, listing(&numbers))
    }

    /// "n1: Linux 6.1.0, 8 × EPYC, 64 GiB".
    pub fn in_words(&self) -> String {
        let inventory = self.inventory;
        let kernel = inventory.kernel.split(' ').take(2).collect::<Vec<_>>().join(" ");
        let memory = units::format_bytes(inventory.memory_bytes);
        line(&format!("{}: {kernel}, {} × {}, {memory}", self.name, inventory.cpus, inventory.cpu_model))
    }
}

/// Memory sizes that differ by less than this share are the same: kernels reserve different amounts.
const MEMORY_SLACK: f64 = 0.05;

pub(crate) fn is_memory_of_one(a: &Inventory, b: &Inventory) -> bool {
    (a.memory_bytes as f64 - b.memory_bytes as f64).abs() <= MEMORY_SLACK * a.memory_bytes as f64
}

/// Whether two blocks from machines of the same name were made under the same conditions, by what figures depend on: people choose names,
/// and a node may come back with another kernel or another disk.
fn is_same(a: &Inventory, b: &Inventory) -> bool {
    let of = |inventory: &Inventory| {
        let device = inventory.device.as_ref();
        let device = device.map(|device| (device.model.clone(), device.size_bytes, device.backing_filesystem.clone()));
        let Inventory { kernel, cpu_model, cpus, virtualization, .. } = inventory.clone();
        (kernel, cpu_model, cpus, virtualization, device)
    };
    of(a) == of(b) && is_memory_of_one(a, b)
}

pub(crate) fn inventory_of(run: &Run, block: u32) -> &Inventory {
    run.origin(block).map_or(&run.inventory, |origin| &origin.inventory)
}

/// The machines that made a run's trials, in the order of their first blocks; one where the run's own made all of them. Another one
/// of the same name is "n1 #2".
pub fn machines(dataset: &Dataset) -> Vec<Machine<'_>> {
    let run = &dataset.run;
    let mut blocks: Vec<u32> = dataset
        .trials
        .iter()
        .filter(|trial| trial.id.perturbation().is_none())
        .map(|trial| trial.id.repetition)
        .collect();
    blocks.sort_unstable();
    blocks.dedup();
    let mut machines: Vec<(String, Machine<'_>)> = Vec::new();
    for block in blocks {
        let name = line(run.origin(block).map_or(&run.inventory.host, |origin| &origin.machine));
        let inventory = inventory_of(run, block);
        let same =
            |(of_name, machine): &&mut (String, Machine<'_>)| *of_name == name && is_same(machine.inventory, inventory);
        if let Some((_, machine)) = machines.iter_mut().find(same) {
            machine.blocks.push(block);
            continue;
        }
        let shown = match machines.iter().filter(|(of_name, _)| *of_name == name).count() {
            0 => name.clone(),
            others => format!("{name} #{}", others + 1),
        };
        machines.push((name, Machine { name: shown, blocks: vec![block], inventory }));
    }
    machines.into_iter().map(|(_, machine)| machine).collect()
}

/// The number of each block's machine, for comparisons within one machine.
pub(crate) fn numbering(dataset: &Dataset) -> impl Fn(u32) -> usize + use<> {
    let machines: Vec<Vec<u32>> = machines(dataset).into_iter().map(|machine| machine.blocks).collect();
    move |block| machines.iter().position(|blocks| blocks.contains(&block)).unwrap_or(0)
}

/// Which machine made which blocks, in words; `None` where the run's own made all of them.
pub fn machines_in_words(dataset: &Dataset) -> Option<String> {
    if dataset.run.blocks.is_empty() {
        return None;
    }
    let machines = machines(dataset);
    let told = |machine: &Machine<'_>| format!("{} ({})", machine.name, machine.blocks_in_words());
    // A hundred nodes would fill a page; the JSON has them all.
    let told: Vec<String> = machines.iter().take(MOST_TOLD).map(told).collect();
    let more = machines.len() - told.len();
    let told = if more > 0 { format!("{} and {more} more", told.join(", ")) } else { listing(&told) };
    Some(format!("made by {told}"))
}

const MOST_TOLD: usize = 16;

//! What the device under a run can do by itself, and which figures exceed that.
//!
//! A load that reads or writes faster than the device, or whose fsyncs take less time than the device needs for a flush, was served by
//! memory. That is not a fault, but the reader must know whose figure it is.

use fstone_model::{
    Better, Cell, Dataset, Inventory,
    metric::{Metric, catalog},
    study::DeviceSpec,
};

/// Tolerance for a rate above the ceiling, which was measured for only two seconds before the run.
const RATE_MARGIN: f64 = 1.1;
/// Tolerance for fsyncs faster than a flush, which was measured with one request at a time; a busy disk takes longer.
const FLUSH_MARGIN: f64 = 2.0;

/// The best that the device under a run can do in a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ceiling {
    /// In the metric's unit: the highest rate, or the shortest time.
    pub value: f64,
    better: Better,
    margin: f64,
}

impl Ceiling {
    /// The better of two that were measured of one device.
    pub(crate) fn higher(self, other: Self) -> Self {
        let is_better = match self.better {
            Better::Higher | Better::Neither => self.value >= other.value,
            Better::Lower => self.value <= other.value,
        };
        if is_better { self } else { other }
    }

    pub(crate) fn is_beaten(&self, mut values: impl Iterator<Item = f64>) -> bool {
        let beyond = |value: f64| match self.better {
            Better::Higher => value > self.margin * self.value,
            Better::Lower => value < self.value / self.margin,
            Better::Neither => false,
        };
        values.next().is_some_and(beyond) && values.all(beyond)
    }
}

/// A metric that cannot be better than what the device can do by itself.
pub(crate) struct Bounded {
    pub(crate) metric: &'static Metric,
    measured: fn(&Inventory) -> Option<f64>,
    margin: f64,
    pub(crate) warning: &'static str,
    /// How the device was measured.
    pub(crate) device: &'static str,
}

pub(crate) const BOUNDED: [Bounded; 3] = [
    Bounded {
        metric: &catalog::READ_THROUGHPUT,
        measured: |inventory| inventory.raw_read_bytes_per_second,
        margin: RATE_MARGIN,
        warning: "reads went faster than the device can read",
        device: "by itself",
    },
    Bounded {
        metric: &catalog::WRITE_THROUGHPUT,
        measured: |inventory| inventory.raw_write_bytes_per_second,
        margin: RATE_MARGIN,
        warning: "writes went faster than the device can write",
        device: "by itself",
    },
    Bounded {
        metric: &catalog::FSYNC_LATENCY_P50,
        measured: |inventory| Some(1e9 / inventory.flushes_per_second.filter(|rate| *rate > 0.0)?),
        margin: FLUSH_MARGIN,
        warning: "half of the fsyncs took less time than the device needs to make a block durable",
        device: "one at a time",
    },
];

/// The ceiling of a metric, if all rows used the device that was measured.
pub(crate) fn of_metric(dataset: &Dataset, metric: &str) -> Option<Ceiling> {
    let bounded = BOUNDED.iter().find(|bounded| bounded.metric.name == metric)?;
    let cells = &dataset.run.plan.cells;
    // Several machines have several devices, and a figure of the table covers all of them.
    if !dataset.run.blocks.is_empty() {
        return None;
    }
    (!cells.is_empty() && cells.iter().all(is_on_device)).then(|| bounded.ceiling(&dataset.run.inventory)).flatten()
}

impl Bounded {
    pub(crate) fn ceiling(&self, inventory: &Inventory) -> Option<Ceiling> {
        let value = (self.measured)(inventory).filter(|value| value.is_finite() && *value > 0.0)?;
        Some(Ceiling { value, better: self.metric.better, margin: self.margin })
    }
}

/// Whether a cell's bytes end up on the device that was measured before the run.
pub(crate) fn is_on_device(cell: &Cell) -> bool {
    let own = matches!(cell.device, DeviceSpec::Loop { in_memory: false, .. } | DeviceSpec::Block { .. });
    own && !cell.kernel.is_exact()
}

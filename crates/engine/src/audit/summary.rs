//! What the audit asks about.

use super::touched::Touched;
use crate::fileset::Files;
use fstone_model::Workload;
use fstone_model::load::OperationReport;

/// Standard deviations that chance is granted.
pub(super) const DEVIATIONS: f64 = 5.0;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ran {
    /// From its phase's begin until the last of its threads had no operation to begin any more.
    pub(crate) worked_ns: u64,
    pub(crate) periodic_fsyncs: u64,
}

pub(crate) struct Summary<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) files: &'a [Files],
    pub(crate) touched: &'a Touched,
    /// Whether ranks hand each other their files, so that none sees all that is done to its own.
    pub(crate) handed: bool,
    pub(crate) operations: &'a [OperationReport],
    pub(crate) groups: &'a [Ran],
    pub(crate) phases_ns: &'a [u64],
    pub(crate) verified_bytes: u64,
    pub(crate) null_ns_per_operation: Option<f64>,
}

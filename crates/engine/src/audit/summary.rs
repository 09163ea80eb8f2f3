//! What the audit asks about.

use super::touched::Touched;
use crate::fileset::Files;
use fstone_model::Workload;
use fstone_model::load::{GroupFsyncs, OperationReport};

/// Standard deviations that chance is granted.
pub(super) const DEVIATIONS: f64 = 5.0;

/// What was done, as far as the audit asks.
pub(crate) struct Summary<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) files: &'a [Files],
    pub(crate) touched: &'a Touched,
    pub(crate) operations: &'a [OperationReport],
    /// Fsyncs of the groups' policies.
    pub(crate) group_fsyncs: &'a [GroupFsyncs],
    /// How long each measured phase ran, of those that did.
    pub(crate) phases_ns: &'a [u64],
    pub(crate) verified_bytes: u64,
    pub(crate) null_ns_per_operation: Option<f64>,
}

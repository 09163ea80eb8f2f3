//! What a load did a moment ago, for those who watch it.

use crate::Histogram;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a load did in the last short interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lately {
    pub interval: Duration,
    pub operations: u64,
    /// Bytes read and written in it.
    pub bytes: u64,
    /// The median latency of the operations, if there were enough of them.
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
}

impl Lately {
    pub fn of(interval: Duration, operations: u64, bytes: u64, latency: &Histogram) -> Self {
        let percentile = |percent| latency.percentile_ns(percent).filter(|_| latency.has_percentile(percent));
        Self { interval, operations, bytes, p50_ns: percentile(50.0), p99_ns: percentile(99.0) }
    }
}

//! Durations as they are counted.

use fstone_model::Histogram;
use fstone_model::histogram::{BUCKETS, bucket_of};

#[derive(Debug, Default)]
pub(crate) struct Latencies {
    counts: Option<Box<[u64]>>,
    pub(crate) count: u64,
    pub(crate) sum_ns: u128,
    least_ns: u64,
    most_ns: u64,
}

impl Latencies {
    pub(crate) fn record(&mut self, ns: u64) {
        self.counts.get_or_insert_with(|| vec![0; BUCKETS].into_boxed_slice())[bucket_of(ns)] += 1;
        self.least_ns = if self.count == 0 { ns } else { self.least_ns.min(ns) };
        self.most_ns = self.most_ns.max(ns);
        self.sum_ns += u128::from(ns);
        self.count += 1;
    }

    pub(crate) fn histogram(&self) -> Histogram {
        Histogram::from_counts(self.counts.as_deref().unwrap_or_default(), self.sum_ns, self.least_ns, self.most_ns)
    }
}

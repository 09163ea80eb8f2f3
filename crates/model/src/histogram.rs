//! A log-linear histogram of durations with a stated error.
//!
//! Values below 2^[`PRECISION_BITS`] ns have a bucket each. Above, every power of two is cut into
//! 2^[`PRECISION_BITS`] equal buckets, so a bucket of values around v is at most v / 2^[`PRECISION_BITS`] wide; a
//! percentile is reported as the middle of its bucket and is therefore off by at most
//! 1 / 2^([`PRECISION_BITS`]+1) = 0.39 % of the true value. Values of 2^[`LIMIT_BITS`] ns (about 18 minutes) and
//! more share the last bucket; the exact maximum is kept apart.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Buckets per power of two, as a power of two.
pub const PRECISION_BITS: u32 = 7;
/// Values at or above 2^this fall into the last bucket.
pub const LIMIT_BITS: u32 = 40;
pub const BUCKETS: usize = ((LIMIT_BITS - PRECISION_BITS + 1) as usize) << PRECISION_BITS;

#[inline]
pub const fn bucket_of(value_ns: u64) -> usize {
    if value_ns < 1 << PRECISION_BITS {
        return value_ns as usize;
    }
    let exponent = 63 - value_ns.leading_zeros();
    if exponent >= LIMIT_BITS {
        return BUCKETS - 1;
    }
    let shift = exponent - PRECISION_BITS;
    // The top PRECISION_BITS+1 bits of the value, whose leading one counts the octave.
    ((shift as usize) << PRECISION_BITS) + (value_ns >> shift) as usize
}

/// The lowest value of a bucket and the lowest value of the next one.
pub const fn bounds_of(bucket: usize) -> (u64, u64) {
    let linear = 1 << PRECISION_BITS;
    if bucket < linear {
        return (bucket as u64, bucket as u64 + 1);
    }
    let shift = (bucket >> PRECISION_BITS) - 1;
    let low = ((bucket - (shift << PRECISION_BITS)) as u64) << shift;
    (low, low + (1 << shift))
}

/// A finished histogram: the buckets that are not empty, and exact count, sum, minimum and maximum.
///
/// Its parts are always consistent, even if it comes from outside: the only ways to make one are to record values, to
/// merge, or to pass the check on deserialisation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Parts")]
pub struct Histogram {
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    buckets: Vec<(u32, u64)>,
}

/// A histogram from outside, not yet checked.
#[derive(Deserialize)]
struct Parts {
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    buckets: Vec<(u32, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    #[error("a histogram's buckets are not in order, or one of them is unknown or empty")]
    Buckets,
    #[error("a histogram claims {count} values, and its buckets hold another number of them")]
    Count { count: u64 },
    /// The smallest value is not in the first bucket, the largest not in the last, or the smallest exceeds the largest.
    #[error(
        "a histogram's smallest value, {min_ns} ns, and its largest, {max_ns} ns, contradict each other or its buckets"
    )]
    Bounds { min_ns: u64, max_ns: u64 },
    #[error("a histogram of {count} values from {min_ns} ns to {max_ns} ns cannot have the sum {sum_ns} ns")]
    Sum { count: u64, sum_ns: u128, min_ns: u64, max_ns: u64 },
}

impl TryFrom<Parts> for Histogram {
    type Error = HistogramError;

    fn try_from(parts: Parts) -> Result<Self, HistogramError> {
        let Parts { count, sum_ns, min_ns, max_ns, buckets } = parts;
        let ascending = buckets.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !ascending || buckets.iter().any(|(bucket, count)| *bucket as usize >= BUCKETS || *count == 0) {
            return Err(HistogramError::Buckets);
        }
        let held = buckets.iter().try_fold(0u64, |sum, (_, count)| sum.checked_add(*count));
        if held != Some(count) {
            return Err(HistogramError::Count { count });
        }
        let fits = match (buckets.first(), buckets.last()) {
            (Some((first, _)), Some((last, _))) => {
                min_ns <= max_ns && bucket_of(min_ns) == *first as usize && bucket_of(max_ns) == *last as usize
            }
            _ => min_ns == 0 && max_ns == 0,
        };
        if !fits {
            return Err(HistogramError::Bounds { min_ns, max_ns });
        }
        // (2⁶⁴ − 1)² is less than 2¹²⁸.
        let values = u128::from(count);
        if sum_ns < values * u128::from(min_ns) || sum_ns > values * u128::from(max_ns) {
            return Err(HistogramError::Sum { count, sum_ns, min_ns, max_ns });
        }
        Ok(Self { count, sum_ns, min_ns, max_ns, buckets })
    }
}

impl Histogram {
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their exact sum.
    pub const fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The exact smallest value; 0 when empty.
    pub const fn min_ns(&self) -> u64 {
        self.min_ns
    }

    /// The exact largest value; 0 when empty.
    pub const fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// (bucket, count) for every bucket that is not empty, in order.
    pub fn buckets(&self) -> &[(u32, u64)] {
        &self.buckets
    }

    /// From dense counts by bucket, as the engine records them.
    pub fn from_counts(counts: &[u64], sum_ns: u128, min_ns: u64, max_ns: u64) -> Self {
        let buckets: Vec<(u32, u64)> = counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(bucket, count)| (u32::try_from(bucket).expect("fewer than 2^32 buckets"), *count))
            .collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        if count == 0 {
            return Self::default();
        }
        Self { count, sum_ns, min_ns, max_ns, buckets }
    }

    /// Merges several histograms. Counts are added in one dense array, so merging ten thousand of them, as in a large study or a load of many
    /// ranks, takes no longer than reading them.
    pub fn merged<'a>(histograms: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut counts = vec![0u64; BUCKETS];
        let mut all = Self { min_ns: u64::MAX, ..Self::default() };
        let (mut first, mut end) = (BUCKETS, 0);
        for one in histograms {
            let (Some((lowest, _)), Some((highest, _))) = (one.buckets.first(), one.buckets.last()) else { continue };
            (first, end) = (first.min(*lowest as usize), end.max(*highest as usize + 1));
            for (bucket, count) in &one.buckets {
                let held = &mut counts[*bucket as usize];
                *held = held.saturating_add(*count);
            }
            all.count = all.count.saturating_add(one.count);
            all.sum_ns = all.sum_ns.saturating_add(one.sum_ns);
            all.min_ns = all.min_ns.min(one.min_ns);
            all.max_ns = all.max_ns.max(one.max_ns);
        }
        if all.count == 0 {
            return Self::default();
        }
        let numbered = (first as u32..).zip(&counts[first..end]);
        all.buckets = numbered.filter(|(_, count)| **count > 0).map(|(bucket, count)| (bucket, *count)).collect();
        all
    }

    /// From single values; for tests and small sets.
    pub fn from_values(values_ns: &[u64]) -> Self {
        let mut buckets = BTreeMap::<u32, u64>::new();
        for value in values_ns {
            *buckets.entry(u32::try_from(bucket_of(*value)).expect("fewer than 2^32 buckets")).or_default() += 1;
        }
        Self {
            count: values_ns.len() as u64,
            sum_ns: values_ns.iter().map(|value| u128::from(*value)).sum(),
            min_ns: values_ns.iter().copied().min().unwrap_or(0),
            max_ns: values_ns.iter().copied().max().unwrap_or(0),
            buckets: buckets.into_iter().collect(),
        }
    }

    /// The mean; `None` when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// The value below or at which `percent` % of the values lie (nearest rank), within 0.39 %; `None` when empty.
    pub fn percentile_ns(&self, percent: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        // 99.9 % of 1000 is 999, and a little more in binary fractions.
        let exact = percent / 100.0 * self.count as f64;
        let rank = ((exact * (1.0 - 1e-12)).ceil() as u64).clamp(1, self.count);
        let mut seen = 0u64;
        for (bucket, count) in &self.buckets {
            seen = seen.saturating_add(*count);
            if seen >= rank {
                let (low, next) = bounds_of(*bucket as usize);
                let middle = low as f64 + (next - 1 - low) as f64 / 2.0;
                return Some(middle.clamp(self.min_ns as f64, self.max_ns as f64));
            }
        }
        Some(self.max_ns as f64)
    }

    /// Whether any value lies beyond the percentile. With fewer values the percentile is just the maximum.
    pub fn has_percentile(&self, percent: f64) -> bool {
        // A hundredth of 100 is 1, and a little less in binary fractions.
        self.count as f64 * (1.0 - percent / 100.0) >= 1.0 - 1e-6
    }

    /// Adds another histogram's values to this one. Counts saturate: no load reaches the largest number, but
    /// histograms from outside may claim anything.
    pub fn merge(&mut self, other: &Self) {
        if self.count == 0 {
            self.clone_from(other);
            return;
        }
        if other.count == 0 {
            return;
        }
        self.count = self.count.saturating_add(other.count);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.add_buckets(&other.buckets);
    }

    /// Both are in order. If they are alike, as for ranks of one load, this one already has the other one's buckets: only counts
    /// change then, and nothing is moved.
    fn add_buckets(&mut self, others: &[(u32, u64)]) {
        let mut at = 0;
        for (position, (bucket, count)) in others.iter().enumerate() {
            while self.buckets.get(at).is_some_and(|(own, _)| own < bucket) {
                at += 1;
            }
            match self.buckets.get_mut(at) {
                Some((own, held)) if own == bucket => *held = held.saturating_add(*count),
                _ => return self.weave(at, &others[position..]),
            }
        }
    }

    /// Inserts these from this position on; the first of them is not a bucket of this histogram yet.
    fn weave(&mut self, from: usize, others: &[(u32, u64)]) {
        let tail = self.buckets.split_off(from);
        self.buckets.reserve(tail.len() + others.len());
        let (mut own, mut others) = (tail.into_iter().peekable(), others.iter().copied().peekable());
        loop {
            let next = match (own.peek(), others.peek()) {
                (Some((one, _)), Some((other, _))) if one == other => own
                    .next()
                    .zip(others.next())
                    .map(|((bucket, held), (_, count))| (bucket, held.saturating_add(count))),
                (Some((one, _)), Some((other, _))) if one < other => own.next(),
                (Some(_), None) => own.next(),
                _ => others.next(),
            };
            match next {
                Some(next) => self.buckets.push(next),
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_tile_the_range() {
        let mut next_low = 0;
        for bucket in 0..BUCKETS {
            let (low, next) = bounds_of(bucket);
            assert_eq!(low, next_low, "bucket {bucket}");
            assert_eq!(bucket_of(low), bucket);
            assert_eq!(bucket_of(next - 1), bucket);
            next_low = next;
        }
        assert_eq!(next_low, 1 << LIMIT_BITS);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_percentile_has_a_value_beyond_it() {
        let has = |count: usize, percent| Histogram::from_values(&vec![1000; count]).has_percentile(percent);
        for (fewest, percent) in [(2, 50.0), (100, 99.0), (1000, 99.9), (10_000, 99.99)] {
            assert!(has(fewest, percent) && !has(fewest - 1, percent), "{percent}");
        }
    }

    #[test]
    fn parts_that_disagree_make_no_histogram() {
        let read = |text: &str| serde_json::from_str::<Histogram>(text).map_err(|error| error.to_string());
        let whole = r#"{"count":3,"sum_ns":60,"min_ns":10,"max_ns":30,"buckets":[[10,1],[20,1],[30,1]]}"#;
        assert_eq!(read(whole), Ok(Histogram::from_values(&[10, 20, 30])));
        assert_eq!(read(r#"{"count":0,"sum_ns":0,"min_ns":0,"max_ns":0,"buckets":[]}"#), Ok(Histogram::default()));
        for (from, to) in [
            ("\"min_ns\":10", "\"min_ns\":31"),
            ("\"max_ns\":30", "\"max_ns\":40"),
            ("\"count\":3", "\"count\":4"),
            ("\"sum_ns\":60", "\"sum_ns\":91"),
            ("\"sum_ns\":60", "\"sum_ns\":29"),
            ("[10,1]", "[25,1]"),
            ("[20,1]", "[20,0]"),
            ("[20,1]", "[99999,1]"),
            ("[20,1]", "[20,18446744073709551615]"),
        ] {
            let wrong = whole.replace(from, to);
            assert_ne!(wrong, whole);
            assert!(read(&wrong).is_err_and(|told| told.contains("histogram")), "{wrong}");
        }
        assert!(read(r#"{"count":0,"sum_ns":0,"min_ns":0,"max_ns":1,"buckets":[]}"#).is_err());
    }

    proptest! {
        #[test]
        fn what_is_recorded_and_merged_comes_back_from_json(left in prop::collection::vec(0u64.., 0..20), right in prop::collection::vec(0u64.., 0..20)) {
            let mut histogram = Histogram::from_values(&left);
            histogram.merge(&Histogram::from_values(&right));
            let text = serde_json::to_string(&histogram).expect("JSON");
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).expect("whole"), histogram);
        }

        #[test]
        fn a_percentile_is_within_the_stated_error(mut values in prop::collection::vec(1u64..1 << 39, 1..200), percent in 0.0f64..=100.0) {
            let histogram = Histogram::from_values(&values);
            values.sort_unstable();
            let rank = ((percent / 100.0 * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64;
            let reported = histogram.percentile_ns(percent).expect("not empty");
            prop_assert!((reported - exact).abs() <= exact / 256.0 + 0.5, "{} against {}", reported, exact);
        }

        #[test]
        fn merging_is_recording_both(left in prop::collection::vec(0u64..1 << 41, 0..50), right in prop::collection::vec(0u64..1 << 41, 0..50)) {
            let mut merged = Histogram::from_values(&left);
            merged.merge(&Histogram::from_values(&right));
            let all: Vec<u64> = left.iter().chain(&right).copied().collect();
            prop_assert_eq!(merged, Histogram::from_values(&all));
        }

        #[test]
        fn many_merged_are_one_of_all_values(parts in prop::collection::vec(prop::collection::vec(0u64..1 << 41, 0..30), 0..12)) {
            let histograms: Vec<Histogram> = parts.iter().map(|part| Histogram::from_values(part)).collect();
            prop_assert_eq!(Histogram::merged(&histograms), Histogram::from_values(&parts.concat()));
        }
    }
}

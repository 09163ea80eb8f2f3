//! Clocks of ranks against rank 0's, by round trips.
//!
//! Rank 0 notes its clock, sends a ping, gets the other's clock, and notes its own again. The other read its clock somewhere in between;
//! taken as the middle, that is off by at most half of the round trip. Of several, the fastest says most (Cristian 1989).

use fstone_model::ranks::{ClockComparison, MOST_DRIFT_PPM};

/// Round trips to each rank: the fastest of so many is close to the fastest there is.
pub(crate) const ROUNDS: u32 = 16;
/// As many more as it takes to know a clock this well, on machines whose processors have other work.
pub(crate) const WELL_NS: u64 = 20_000;
/// But no more once they have taken so long: where each waits for a processor, all of them take several seconds a rank.
pub(crate) const LONG_NS: u64 = 100_000_000;
/// And no more than these.
pub(crate) const MOST_ROUNDS: u32 = 160;
/// A ping that only wakes the other side; its answer is not waited for.
pub(crate) const WAKE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offset {
    /// The other's clock less rank 0's.
    pub(crate) offset_ns: i64,
    /// Half of the round trip.
    pub(crate) uncertainty_ns: u64,
    /// When, by rank 0's clock.
    pub(crate) at_ns: u64,
}

impl Offset {
    pub(crate) fn of(sent_ns: u64, theirs_ns: u64, received_ns: u64) -> Self {
        let half = received_ns.saturating_sub(sent_ns) / 2;
        let at_ns = sent_ns + half;
        Self { offset_ns: theirs_ns.wrapping_sub(at_ns).cast_signed(), uncertainty_ns: half.max(1), at_ns }
    }

    pub(crate) fn surer(self, other: Option<Self>) -> Self {
        other.filter(|other| other.uncertainty_ns <= self.uncertainty_ns).unwrap_or(self)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Compared {
    pub(crate) before: Option<Offset>,
    pub(crate) after: Option<Offset>,
}

impl Compared {
    pub(crate) const SAME: Self =
        Self { before: Some(Offset { offset_ns: 0, uncertainty_ns: 0, at_ns: 0 }), after: None };

    /// What rank 0's clock shows when this one shows so much: both comparisons are points of both clocks, and a straight line goes
    /// through them.
    pub(crate) fn to_rank_0(self, theirs_ns: u64) -> u64 {
        let Some(before) = self.before else { return theirs_ns };
        let theirs = |offset: Offset| i128::from(offset.at_ns) + i128::from(offset.offset_ns);
        let since = i128::from(theirs_ns) - theirs(before);
        let passed = match self.after {
            Some(after) if after.at_ns > before.at_ns && theirs(after) > theirs(before) => {
                since * i128::from(after.at_ns - before.at_ns) / (theirs(after) - theirs(before))
            }
            _ => since,
        };
        u64::try_from(i128::from(before.at_ns) + passed).unwrap_or(0)
    }

    /// What this clock will show when rank 0's shows so much, as far as is known before the load.
    pub(crate) fn of_rank_0(self, ours_ns: u64) -> u64 {
        ours_ns.wrapping_add(self.before.map_or(0, |before| before.offset_ns).cast_unsigned())
    }

    /// How far off a time of this clock may be that is translated to this moment of rank 0's. Between two comparisons it is known as well as
    /// at them; where there was one only, it drifts from there on, unless both are `one_clock`.
    pub(crate) fn uncertainty_at_ns(self, ours_ns: u64, one_clock: bool) -> u64 {
        let drifted_ns = match (self.before, self.after) {
            (Some(before), None) if !one_clock => {
                let since_ns = u128::from(ours_ns.abs_diff(before.at_ns));
                u64::try_from(since_ns * u128::from(MOST_DRIFT_PPM) / 1_000_000).unwrap_or(u64::MAX)
            }
            _ => 0,
        };
        self.uncertainty_ns().saturating_add(drifted_ns)
    }

    pub(crate) fn uncertainty_ns(self) -> u64 {
        [self.before, self.after].into_iter().flatten().map(|offset| offset.uncertainty_ns).max().unwrap_or(0)
    }

    pub(crate) fn report(self) -> Option<ClockComparison> {
        let before = self.before?;
        let drift = |after: Offset| {
            let between = after.at_ns.saturating_sub(before.at_ns);
            let ppm = |ns: f64| ns / between as f64 * 1e6;
            let either = before.uncertainty_ns + after.uncertainty_ns;
            (between > 0).then(|| (ppm((after.offset_ns - before.offset_ns) as f64), ppm(either as f64)))
        };
        let (drift_ppm, drift_uncertainty_ppm) = self.after.and_then(drift).unzip();
        Some(ClockComparison {
            offset_ns: before.offset_ns,
            uncertainty_ns: self.uncertainty_ns(),
            drift_ppm,
            drift_uncertainty_ppm,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_clock_is_known_within_its_uncertainty(
            offset in -1_000_000_000_000i64..1_000_000_000_000,
            drift_ppm in -200.0f64..200.0,
            trips in prop::collection::vec((100u64..50_000, 100u64..50_000), 2..20),
            later in 1_000_000_000u64..3_600_000_000_000,
        ) {
            let start = 2_000_000_000_000u64;
            let theirs = |ours: u64| {
                let drifted = (ours - start) as f64 * drift_ppm / 1e6;
                ours.wrapping_add((offset + drifted.round() as i64).cast_unsigned())
            };
            let compare = |from: u64| {
                let mut best = None;
                let mut now = from;
                for (there, back) in &trips {
                    let one = Offset::of(now, theirs(now + there), now + there + back);
                    best = Some(one.surer(best));
                    now += there + back + 10;
                }
                best
            };
            let compared = Compared { before: compare(start), after: compare(start + later) };
            for share in [0.0, 0.3, 0.9, 1.0] {
                let ours = start + (later as f64 * share) as u64;
                let found = compared.to_rank_0(theirs(ours));
                let off = found.abs_diff(ours);
                // Both comparisons are off by no more than they say; two for the rounding.
                prop_assert!(off <= compared.uncertainty_ns() + 2, "{off} of {}", compared.uncertainty_ns());
            }
            // The second comparison may never come.
            let once = Compared { after: None, ..compared };
            for share in [0.0, 0.3, 1.0] {
                let ours = start + (later as f64 * share) as u64;
                let (off, known) = (once.to_rank_0(theirs(ours)).abs_diff(ours), once.uncertainty_at_ns(ours, false));
                prop_assert!(off <= known + 2, "{off} of {known}");
                prop_assert_eq!(once.uncertainty_at_ns(ours, true), once.uncertainty_ns());
            }
            let report = compared.report().expect("compared");
            let drift = report.drift_ppm.expect("twice");
            let allowed = report.drift_uncertainty_ppm.expect("twice") + 0.01;
            prop_assert!((drift - drift_ppm).abs() <= allowed, "{drift} ± {allowed} for {drift_ppm}");
        }
    }
}

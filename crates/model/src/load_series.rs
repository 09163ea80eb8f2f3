//! The points of a load's series, placed in time.

use crate::LoadReport;
use crate::load::SeriesPoint;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment<'r> {
    /// When it begins, in ns of running time, without unmeasured phases and syncs.
    pub begin_ns: u64,
    pub length_ns: u64,
    /// Whether it is as long as `series_interval_ns` and belongs to one phase alone.
    pub whole: bool,
    pub point: &'r SeriesPoint,
}

/// A phase on the series' own clock, which counts points before any were merged.
struct Stretch {
    first: u64,
    begin_ns: u64,
    ran_ns: u64,
}

impl LoadReport {
    /// All points of `series` with their place in time. Every phase begins a new point, so the last one of each phase is cut
    /// short. If the load's running time was not recorded, all points count as whole.
    pub fn moments(&self) -> Vec<Moment<'_>> {
        self.moments_of(&self.series)
    }

    /// The same of points that are as long as those of `series`.
    pub fn moments_of<'r>(&self, points: &'r [SeriesPoint]) -> Vec<Moment<'r>> {
        // Arithmetic saturates, because reports also come from files.
        let interval_ns = self.series_interval_ns.max(1);
        let series = (0_u64..).zip(points);
        if self.running_ns == 0 {
            let moment = |(place, point): (u64, _)| Moment {
                begin_ns: place.saturating_mul(interval_ns),
                length_ns: interval_ns,
                whole: true,
                point,
            };
            return series.map(moment).collect();
        }
        let merged = 1_u64.checked_shl(self.series_doublings).unwrap_or(u64::MAX);
        let unmerged_ns = (interval_ns / merged).max(1);
        let stretches = self.stretches(unmerged_ns);
        // The stretch that a point of before any merging is in, and when the point begins.
        let at = |place: u64| {
            let stretch = stretches.partition_point(|stretch| stretch.first <= place).saturating_sub(1);
            let Stretch { first, begin_ns, ran_ns } = stretches[stretch];
            (stretch, begin_ns.saturating_add((place - first).saturating_mul(unmerged_ns).min(ran_ns)))
        };
        let moment = |(place, point): (u64, _)| {
            let from = place.saturating_mul(merged);
            let next = from.saturating_add(merged);
            let ((stretch, begin_ns), (_, end_ns)) = (at(from), at(next));
            let length_ns = end_ns - begin_ns;
            let alone = at(next - 1).0 == stretch;
            Moment { begin_ns, length_ns, whole: alone && length_ns == unmerged_ns.saturating_mul(merged), point }
        };
        series.map(moment).collect()
    }

    /// The points that are as long as `series_interval_ns`, each with its start in ns of running time: those that rates can be taken
    /// from.
    pub fn whole_points(&self) -> Vec<(u64, &SeriesPoint)> {
        let whole = self.moments().into_iter().filter(|moment| moment.whole);
        whole.map(|moment| (moment.begin_ns, moment.point)).collect()
    }

    /// The measured phases on the series' clock; never none.
    fn stretches(&self, unmerged_ns: u64) -> Vec<Stretch> {
        let mut ran: Vec<u64> =
            self.phases.iter().map(|phase| phase.elapsed_ns.saturating_sub(phase.sync_ns)).collect();
        match ran.last_mut() {
            // In reports from before phases recorded their syncs there was one sync, in the last phase.
            Some(last) if self.phases.iter().all(|phase| phase.sync_ns == 0) => {
                *last = last.saturating_sub(self.sync_ns);
            }
            Some(_) => {}
            None => ran.push(self.running_ns),
        }
        let (mut first, mut begin_ns) = (0_u64, 0_u64);
        ran.into_iter()
            .map(|ran_ns| {
                let stretch = Stretch { first, begin_ns, ran_ns };
                first = first.saturating_add(ran_ns.div_ceil(unmerged_ns).max(1));
                begin_ns = begin_ns.saturating_add(ran_ns);
                stretch
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::PhaseReport;

    /// A load of phases of (running, sync) ms, and points of a second.
    fn report(points: &[u64], phases_ms: &[(u64, u64)]) -> LoadReport {
        let ns = |ms: u64| ms * 1_000_000;
        let phase = |(ran, sync): &(u64, u64)| PhaseReport {
            elapsed_ns: ns(ran + sync),
            sync_ns: ns(*sync),
            ..PhaseReport::default()
        };
        LoadReport {
            running_ns: ns(phases_ms.iter().map(|(ran, _)| ran).sum()),
            sync_ns: ns(phases_ms.iter().map(|(_, sync)| sync).sum()),
            phases: if phases_ms.len() > 1 { phases_ms.iter().map(phase).collect() } else { Vec::new() },
            series: points.iter().map(|count| SeriesPoint { operations: *count, ..SeriesPoint::default() }).collect(),
            series_interval_ns: ns(1_000),
            ..LoadReport::default()
        }
    }

    fn whole(report: &LoadReport) -> Vec<(u64, u64)> {
        report.whole_points().into_iter().map(|(begin, point)| (begin / 1_000_000, point.operations)).collect()
    }

    /// Begin and length of every point, in ms.
    fn times(report: &LoadReport) -> Vec<(u64, u64)> {
        report.moments().iter().map(|moment| (moment.begin_ns / 1_000_000, moment.length_ns / 1_000_000)).collect()
    }

    #[test]
    fn the_last_point_of_each_phase_is_cut_short() {
        assert_eq!(whole(&report(&[100, 50, 100, 50], &[(1_500, 0), (1_500, 0)])), [(0, 100), (1_500, 100)]);
        assert_eq!(whole(&report(&[100, 20, 100, 50], &[(1_200, 0), (1_500, 4_000)])), [(0, 100), (1_200, 100)]);
        assert_eq!(whole(&report(&[100, 100, 30], &[(2_300, 9_000)])), [(0, 100), (1_000, 100)]);
        let short = report(&[9, 100, 100], &[(90, 0), (2_000, 0)]);
        assert_eq!(whole(&short), [(90, 100), (1_090, 100)], "a short phase");
        assert_eq!(times(&short), [(0, 90), (90, 1_000), (1_090, 1_000)]);
    }

    #[test]
    fn a_sync_is_no_running_time_wherever_it_is() {
        let synced = report(&[100, 20, 100, 50], &[(1_200, 3_000), (1_500, 4_000)]);
        assert_eq!(times(&synced), [(0, 1_000), (1_000, 200), (1_200, 1_000), (2_200, 500)]);
        // A report that does not say whose sync it was.
        let mut old = report(&[100, 20, 100, 50], &[(1_200, 0), (1_500, 4_000)]);
        old.phases.last_mut().expect("there are two").sync_ns = 0;
        assert_eq!(times(&old), times(&synced));
    }

    #[test]
    fn merged_points_are_whole_where_all_they_were_merged_from_are() {
        // 5.5 and 4 s; points of 1 s, six and four of them.
        let merged = |points: &[u64], doublings| LoadReport {
            series_interval_ns: 1_000_000_000_u64 << doublings,
            series_doublings: doublings,
            ..report(points, &[(5_500, 0), (4_000, 0)])
        };
        let once = merged(&[200, 200, 150, 200, 200], 1);
        assert_eq!(whole(&once), [(0, 200), (2_000, 200), (5_500, 200), (7_500, 200)]);
        assert_eq!(times(&once)[2], (4_000, 1_500));
        let twice = merged(&[400, 350, 200], 2);
        assert_eq!(whole(&twice), [(0, 400)], "the second is of both phases");
        assert_eq!(times(&twice), [(0, 4_000), (4_000, 3_500), (7_500, 2_000)]);
        // As long as any, and of two phases all the same.
        let straddling = LoadReport {
            series_interval_ns: 2_000_000_000,
            series_doublings: 1,
            ..report(&[7], &[(1_000, 0), (1_000, 0)])
        };
        assert_eq!(whole(&straddling), []);
    }

    #[test]
    fn what_a_file_may_claim_is_no_error() {
        assert_eq!(whole(&report(&[100], &[(3_000, 0), (2_000, 0)])), [(0, 100)], "fewer points than there should be");
        let more = report(&[100, 100, 100, 9], &[(2_000, 0)]);
        assert_eq!(whole(&more), [(0, 100), (1_000, 100)]);
        assert_eq!(times(&more)[3], (2_000, 0));
        assert_eq!(whole(&LoadReport { running_ns: 0, ..report(&[1, 2], &[(500, 0)]) }), [(0, 1), (1_000, 2)]);
        for (doublings, interval) in [(63, u64::MAX), (64, 1), (u32::MAX, 0), (0, 0), (1, 1)] {
            let odd = LoadReport {
                series_doublings: doublings,
                series_interval_ns: interval,
                ..report(&[1; 3], &[(2_000, 0)])
            };
            assert_eq!(odd.moments().len(), 3);
        }
    }
}

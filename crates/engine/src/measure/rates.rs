//! A thread's own rate over time, and whether it is steady.

use fstone_model::load::SteadyReport;
use fstone_model::workload::Steady;
use std::collections::VecDeque;

/// Bytes and operations, of reads and of writes.
pub(crate) type Moved = [(u64, u64); 2];

/// What was seen of a thread's rate.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    pub(crate) least: Option<(u64, Moved)>,
    pub(crate) sampled: Option<(u64, Moved)>,
    samples: VecDeque<(f64, f64)>,
    attained: bool,
}

impl Rates {
    pub(crate) fn forget(&mut self) {
        self.samples.clear();
        self.attained = false;
    }

    /// Takes a sample of what was moved per second; whether the last window of them is steady.
    pub(crate) fn take(&mut self, bytes: f64, operations: f64, steady: Steady) -> bool {
        let window = steady.window.as_secs().max(1) as usize;
        self.samples.push_back((bytes, operations));
        let more = self.samples.len().saturating_sub(window);
        self.samples.drain(..more);
        let (slope, deviation, mean) = self.judged(steady);
        let tested = if steady.slope { slope.abs() } else { deviation };
        let limit = if steady.relative { steady.limit * mean } else { steady.limit };
        self.attained = self.samples.len() == window && tested < limit;
        self.attained
    }

    fn judged(&self, steady: Steady) -> (f64, f64, f64) {
        let chosen = |(bytes, operations): &(f64, f64)| if steady.bytes { *bytes } else { *operations };
        line(self.samples.iter().map(chosen))
    }

    pub(crate) fn report(&mut self, steady: Option<Steady>) -> Option<SteadyReport> {
        let (slope, deviation, mean) = self.judged(steady?);
        let (bytes, operations) = std::mem::take(&mut self.samples).into_iter().unzip();
        Some(SteadyReport { attained: self.attained, bytes, operations, slope, deviation, mean })
    }
}

/// The slope of the line of least squares through samples of equal distances, the largest distance of one from their mean, and the mean.
fn line(samples: impl ExactSizeIterator<Item = f64> + Clone) -> (f64, f64, f64) {
    let count = samples.len().max(1) as f64;
    let mean = samples.clone().sum::<f64>() / count;
    let middle = (count - 1.0) / 2.0;
    let (mut both, mut squares, mut deviation) = (0.0, 0.0, 0.0f64);
    for (place, sample) in samples.enumerate() {
        let from_middle = place as f64 - middle;
        both += from_middle * (sample - mean);
        squares += from_middle * from_middle;
        deviation = deviation.max((sample - mean).abs());
    }
    (if squares > 0.0 { both / squares } else { 0.0 }, deviation, mean)
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn the_line_is_that_of_least_squares() {
        assert_eq!(line([10.0, 12.0, 14.0, 16.0].into_iter()), (2.0, 3.0, 13.0));
        assert_eq!(line([5.0, 5.0, 5.0].into_iter()), (0.0, 0.0, 5.0));
        let (slope, deviation, mean) = line([1.0, 3.0, 2.0].into_iter());
        assert!((slope - 0.5).abs() < 1e-12 && deviation == 1.0 && mean == 2.0);
        assert_eq!(line(std::iter::empty::<f64>()), (0.0, 0.0, 0.0));
    }
}

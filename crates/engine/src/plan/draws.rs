//! Actions that are drawn by their weights.

/// Actions to draw from, each with the sum of the weights up to and including its own.
#[derive(Debug, Default)]
pub(crate) struct Draws {
    all: Vec<(usize, u64)>,
    /// Of these, the ones that do not write and the ones that do.
    directions: [Vec<(usize, u64)>; 2],
}

impl Draws {
    pub(super) fn add(&mut self, index: usize, weight: u32, writes: bool) {
        for list in [&mut self.all, &mut self.directions[usize::from(writes)]] {
            let sum = list.last().map_or(0, |(_, sum)| *sum);
            list.push((index, sum + u64::from(weight)));
        }
    }

    /// One of all, or of those that write or do not if there are such.
    #[inline]
    pub(crate) fn draw(&self, writes: Option<bool>, below: impl FnOnce(u64) -> u64) -> usize {
        let of = writes.map(|writes| &self.directions[usize::from(writes)]).filter(|of| !of.is_empty());
        let of = of.unwrap_or(&self.all);
        if let [(only, _)] = of.as_slice() {
            return *only;
        }
        let drawn = below(of.last().map_or(0, |(_, sum)| *sum));
        of.iter().find(|(_, sum)| drawn < *sum).map_or(0, |(index, _)| *index)
    }
}

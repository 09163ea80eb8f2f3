//! Two versions in virtual time: whether they differ by more than a guest does that is perturbed in what should not matter.

use crate::ROUNDING;
use crate::distribution::{student_quantile, student_two_sided};

/// Figures that do not scatter at all may agree by chance, as counts of two values do: two seeds agree and differ in one case of eight.
/// With this much evidence, 1 for each degree of freedom of guests and 2 for one of pairs, it is one of thirty.
const MIN_STILL: f64 = 4.0;

/// What one source of chance does to a difference: as a variance of that of two single guests, in so many pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Source {
    variance: f64,
    freedom: f64,
    pairs: f64,
}

impl Source {
    fn new(squares: f64, freedom: f64, pairs: usize) -> Self {
        let variance = if freedom > 0.0 { squares / freedom } else { 0.0 };
        Self { variance, freedom, pairs: pairs.max(1) as f64 }
    }

    fn without_rounding(self, largest: f64) -> Self {
        let still = self.variance.sqrt() <= ROUNDING * largest;
        Self { variance: if still { 0.0 } else { self.variance }, ..self }
    }

    /// How much of its variance a mean over its pairs takes away.
    fn averaged(self) -> f64 {
        self.variance * (1.0 - 1.0 / self.pairs)
    }

    /// Its variance in a mean that has `weight` of its first pair and the rest spread over all its pairs.
    fn with_first(self, weight: f64) -> f64 {
        self.variance / self.pairs + weight * weight * self.averaged()
    }
}

/// A mean difference over some guests, with what seeds and perturbation make of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moved {
    /// The two-sided p-value of the difference.
    pub p: f64,
    /// The standard error of the mean difference, where versions are equal.
    pub error: f64,
    /// The difference is a mean over seeds, and this share of it one over the guests of the first seed.
    pub share_of_guests: f64,
    freedom: f64,
    seeds: Source,
    guests: Source,
}

impl Moved {
    /// Before and after, of the guests that both versions have: `seeds` of one guest of each seed, `guests` of all those of the first seed, that
    /// one among them. `perturbed`: of each version, its figures in guests of one seed. `None` if nothing shows how far chance moves figures.
    ///
    /// Seeds and perturbation may each move figures or not. What one does, the other averages away only where all figures are independent: all
    /// seeds share one draw of the perturbation, and all guests one of the seed. So their variances add, with the weights that make the sum
    /// least, and Student's t has the degrees of freedom of Satterthwaite (Biometrics Bulletin 2, 1946).
    pub fn of(seeds: &[(f64, f64)], guests: &[(f64, f64)], perturbed: [&[f64]; 2]) -> Option<Self> {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let about = |values: &[f64]| {
            let center = mean(values);
            let squares: f64 = values.iter().map(|value| (value - center).powi(2)).sum();
            (squares, values.len().saturating_sub(1) as f64)
        };
        let differences =
            |pairs: &[(f64, f64)]| -> Vec<f64> { pairs.iter().map(|(before, after)| after - before).collect() };
        let (over_seeds, over_guests) = (differences(seeds), differences(guests));
        let [(first, of_first), (second, of_second)] = perturbed.map(about);
        let (squares, freedom) = about(&over_seeds);
        let all = || seeds.iter().chain(guests);
        let largest = all().fold(0.0, |largest: f64, (a, b)| largest.max(a.abs()).max(b.abs()));
        // The variance of a difference is that of two guests.
        let of_guests =
            Source::new(2.0 * (first + second), of_first + of_second, guests.len()).without_rounding(largest);
        let of_seeds = Source::new(squares, freedom, seeds.len()).without_rounding(largest);
        if of_seeds.freedom + of_guests.freedom == 0.0 || all().next().is_none() {
            return None;
        }
        let sources =
            Self { p: 1.0, error: 0.0, share_of_guests: 0.0, freedom: 0.0, seeds: of_seeds, guests: of_guests };
        let weighed = sources.weighed();
        let share = if seeds.is_empty() { 1.0 } else { weighed.share_of_guests };
        let difference = ((1.0 - share) * mean(&over_seeds) + share * mean(&over_guests)).abs();
        let is_none = difference <= ROUNDING * largest;
        let evidence = of_guests.freedom + 2.0 * of_seeds.freedom;
        if weighed.error == 0.0 && !is_none && evidence < MIN_STILL {
            return None;
        }
        let p = match weighed.error {
            _ if is_none => 1.0,
            0.0 => 0.0,
            error => student_two_sided(difference / error, weighed.freedom),
        };
        Some(Self { p, share_of_guests: share, ..weighed })
    }

    /// With the error of the mean that scatters least.
    fn weighed(self) -> Self {
        let (seeds, guests) = (self.seeds, self.guests);
        let (of_seeds, of_guests) = (seeds.averaged(), guests.averaged());
        let share = if of_guests > 0.0 { of_guests / (of_seeds + of_guests) } else { 0.0 };
        let parts = [(seeds.with_first(share), seeds.freedom), (guests.with_first(1.0 - share), guests.freedom)];
        let variance: f64 = parts.iter().map(|(variance, _)| variance).sum();
        let moving = parts.iter().filter(|(variance, _)| *variance > 0.0);
        let spread: f64 = moving.map(|(variance, freedom)| variance * variance / freedom).sum();
        let freedom =
            if variance > 0.0 { variance * variance / spread } else { (seeds.freedom + guests.freedom).max(1.0) };
        Self { error: variance.sqrt(), share_of_guests: share, freedom, ..self }
    }

    /// Half the interval of the difference at a two-sided level.
    pub fn half_width(&self, level: f64) -> f64 {
        self.error * student_quantile(1.0 - level / 2.0, self.freedom)
    }

    /// The difference that is found in this share of all cases at a two-sided level.
    pub fn reach(&self, level: f64, power: f64) -> f64 {
        self.half_width(level) + self.error * student_quantile(power, self.freedom)
    }

    /// With about how many seeds and perturbed guests of each version a difference is found as often, further ones being of the kind that there
    /// is: more of what moves nothing narrow nothing. `None` if a thousand seeds, or so many perturbed guests, do not do.
    pub fn needed(&self, difference: f64, level: f64, power: f64, most_perturbed: usize) -> Option<(usize, usize)> {
        let finds = |seeds: usize, guests: usize| {
            let of_seeds = match self.seeds.freedom > 0.0 {
                true => Source { freedom: seeds as f64 - 1.0, pairs: seeds as f64, ..self.seeds },
                false => self.seeds,
            };
            let of_guests = match self.guests.freedom > 0.0 {
                true => Source { freedom: 2.0 * (guests as f64 - 1.0), pairs: guests as f64, ..self.guests },
                false => self.guests,
            };
            Self { seeds: of_seeds, guests: of_guests, ..*self }.weighed().reach(level, power) <= difference
        };
        let numbers = |of: Source, most: usize| {
            if of.variance > 0.0 { (2, most) } else { (of.pairs as usize, of.pairs as usize) }
        };
        let (fewest, most) = numbers(self.seeds, 1000);
        let (from, to) = numbers(self.guests, most_perturbed + 1);
        let with = |guests: usize| {
            let (mut low, mut high) = (fewest, most);
            if !finds(high, guests) {
                return None;
            }
            while low < high {
                let middle = usize::midpoint(low, high);
                if finds(middle, guests) { high = middle } else { low = middle + 1 }
            }
            Some((low, guests - 1))
        };
        (from..=to).filter_map(with).min_by_key(|(seeds, perturbed)| seeds + perturbed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, derive_seed};

    /// What moves figures.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Chance {
        Guests,
        Seeds,
        /// Each figure by itself, as a chaotic course does.
        Each,
        /// Seeds so far, and guests by 1 beside it.
        Both(f64),
    }

    /// The figures of one seed each and, behind that of the first, in perturbed guests.
    fn version(chance: Chance, seeds: usize, perturbed: usize, random: &mut Random) -> (Vec<f64>, Vec<f64>) {
        let mut draws = |count: usize| -> Vec<f64> { (0..count).map(|_| random.normal()).collect() };
        let (of_seeds, of_guests) = (draws(seeds), draws(perturbed + 1));
        let (far_seeds, far_guests) = match chance {
            Chance::Guests => (0.0, 1.0),
            Chance::Seeds | Chance::Each => (1.0, 0.0),
            Chance::Both(far) => (far, 1.0),
        };
        let figure = |seed: usize, guest: usize| match chance {
            Chance::Each if guest > 0 => 100.0 + of_guests[guest],
            _ => 100.0 + 5.0 * seed as f64 + far_seeds * of_seeds[seed] + far_guests * of_guests[guest],
        };
        ((0..seeds).map(|seed| figure(seed, 0)).collect(), (0..=perturbed).map(|guest| figure(0, guest)).collect())
    }

    fn moved((a, of_a): &(Vec<f64>, Vec<f64>), (b, of_b): &(Vec<f64>, Vec<f64>)) -> Option<Moved> {
        let pairs = |a: &[f64], b: &[f64]| -> Vec<(f64, f64)> { a.iter().copied().zip(b.iter().copied()).collect() };
        Moved::of(&pairs(a, b), &pairs(of_a, of_b), [of_a, of_b])
    }

    #[test]
    fn equal_versions_are_called_different_no_more_often_than_promised() {
        use Chance::{Both, Each, Guests, Seeds};
        for (seeds, perturbed, chances) in [
            (1, 2, &[Guests, Each][..]),
            (1, 4, &[Guests, Each]),
            (2, 2, &[Guests, Seeds, Each, Both(1.0)]),
            (3, 2, &[Guests, Seeds, Each, Both(0.3), Both(1.0), Both(3.0)]),
            (3, 4, &[Guests, Seeds, Each, Both(0.3), Both(1.0), Both(3.0)]),
            (10, 8, &[Guests, Seeds, Each, Both(1.0)]),
            (3, 0, &[Seeds]),
            (5, 0, &[Seeds]),
        ] {
            for chance in chances.iter().copied() {
                let mut random = Random::new(derive_seed(seeds as u64, perturbed as u64));
                let tables = 4000;
                let is_wrong = |_: &usize| {
                    let mut version = || version(chance, seeds, perturbed, &mut random);
                    moved(&version(), &version()).unwrap().p <= 0.05
                };
                let share = (0..tables).filter(is_wrong).count() as f64 / tables as f64;
                assert!(share < 0.06, "{seeds} seeds, {perturbed} perturbed, {chance:?}: {share}");
                let is_alone = matches!(chance, Guests | Seeds);
                assert!(!is_alone || share > 0.04, "{seeds} seeds, {perturbed} perturbed, {chance:?}: {share}");
            }
        }
    }

    /// So many figures about 100 whose standard deviation is 1.
    fn around(count: usize) -> Vec<f64> {
        let places: Vec<f64> = (0..count).map(|place| place as f64 - (count as f64 - 1.0) / 2.0).collect();
        let deviation = (places.iter().map(|place| place.powi(2)).sum::<f64>() / (count as f64 - 1.0)).sqrt();
        places.iter().map(|place| 100.0 + place / deviation).collect()
    }

    #[test]
    fn as_many_seeds_or_guests_as_it_takes_find_a_difference() {
        let by_guests =
            |guests: usize| moved(&(vec![100.0; 3], around(guests)), &(vec![100.0; 3], around(guests))).unwrap();
        let by_seeds = |seeds: usize| moved(&(vec![100.0; seeds], vec![]), &(around(seeds), vec![])).unwrap();
        for difference in [1.5, 2.0, 4.0] {
            let (seeds, perturbed) = by_guests(5).needed(difference, 0.05, 0.8, 16).unwrap();
            assert_eq!(seeds, 3, "more seeds narrow nothing");
            assert!(by_guests(perturbed + 1).reach(0.05, 0.8) <= difference, "{perturbed} do not find {difference}");
            assert!(by_guests(perturbed).reach(0.05, 0.8) > difference, "fewer than {perturbed} find {difference}");
            let (seeds, perturbed) = by_seeds(5).needed(difference, 0.05, 0.8, 16).unwrap();
            assert_eq!(perturbed, 0);
            assert!(by_seeds(seeds).reach(0.05, 0.8) <= difference, "{seeds} seeds do not find {difference}");
            assert!(
                seeds == 2 || by_seeds(seeds - 1).reach(0.05, 0.8) > difference,
                "fewer than {seeds} find {difference}"
            );
        }
        assert_eq!(by_guests(5).needed(0.5, 0.05, 0.8, 16), None, "there are no more guests than 16");
    }

    #[test]
    fn figures_that_nothing_moves_are_told_apart_by_any_difference() {
        let [still, other] = [7.0, 7.001].map(|value| (vec![value], vec![value; 3]));
        let same = moved(&still, &still).unwrap();
        assert_eq!((same.p, same.error), (1.0, 0.0));
        let other = moved(&still, &other).unwrap();
        assert_eq!((other.p, other.reach(0.05, 0.8)), (0.0, 0.0));
        assert_eq!(other.needed(0.01, 0.05, 0.8, 16), Some((1, 2)));
        let seeds = |count: usize| Moved::of(&vec![(7.0, 8.0); count], &[], [&[], &[]]);
        assert_eq!(seeds(1), None, "one seed shows no scatter");
        assert_eq!(seeds(2), None, "two seeds agree by chance");
        assert_eq!(seeds(3).unwrap().p, 0.0);
    }

    /// Counts of two values, as likely as each other.
    #[test]
    fn counts_that_agree_by_chance_are_not_exact() {
        for (seeds, perturbed) in [(1, 1), (1, 2), (2, 0), (2, 1), (2, 2), (3, 0), (5, 0)] {
            let mut random = Random::new(derive_seed(90 + seeds, perturbed));
            let (tables, mut wrong) = (4000, 0);
            for _ in 0..tables {
                let mut counts = |count: u64| -> Vec<f64> { (0..count).map(|_| random.below(2) as f64).collect() };
                let (a, b) = (counts(seeds), counts(seeds));
                let mut with_first = |first: f64| [vec![first], counts(perturbed)].concat();
                let (pa, pb) = (with_first(a[0]), with_first(b[0]));
                wrong += usize::from(moved(&(a, pa), &(b, pb)).is_some_and(|moved| moved.p <= 0.05));
            }
            assert!(
                f64::from(wrong as u32) / f64::from(tables) < 0.06,
                "{seeds} seeds, {perturbed} perturbed: {wrong}"
            );
        }
    }

    #[test]
    fn what_is_within_reach_is_found_as_often_as_claimed() {
        let mut random = Random::new(11);
        let (runs, mut found) = (3000_u32, 0_u32);
        let shift = 3.0;
        let mut reach = 0.0;
        for _ in 0..runs {
            let mut guests = |shift: f64| -> Vec<f64> { (0..3).map(|_| shift + random.normal()).collect() };
            let (a, b) = (guests(0.0), guests(shift));
            let moved = moved(&(vec![a[0]], a), &(vec![b[0]], b)).unwrap();
            found += u32::from(moved.p <= 0.05);
            reach += moved.reach(0.05, 0.8) / f64::from(runs);
        }
        assert!((reach / shift - 1.0).abs() < 0.1, "{reach}");
        assert!((f64::from(found) / f64::from(runs) - 0.8).abs() < 0.06, "{found}");
    }
}

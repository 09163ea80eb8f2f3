//! Two versions in virtual time: whether they differ by more than a guest does that is perturbed in what should not matter.

use crate::distribution::{student_quantile, student_two_sided};

/// Rounding of figures that are the same, as a share of the largest.
const ROUNDING: f64 = 1e-12;

/// Figures that do not scatter at all may agree by chance, as counts of two values do: two seeds agree and differ in one case of eight.
/// With this much evidence, 1 for each degree of freedom of guests and 2 for one of pairs, it is one of thirty.
const MIN_STILL: f64 = 4.0;

/// A mean difference over some guests, with what perturbation alone makes of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moved {
    /// The two-sided p-value of the difference.
    pub p: f64,
    /// The standard error of the mean difference, where versions are equal.
    pub error: f64,
    freedom: f64,
    /// How many of these are of pairs of seeds.
    of_pairs: f64,
    guests: f64,
}

impl Moved {
    /// `pairs`: before and after, of each guest that both versions have. `perturbed`: of each version, its figures in guests of one seed.
    /// With `seeds`, pairs have seeds of their own, and their differences show how far chance moves them, too; else they are among
    /// `perturbed`. `None` if nothing shows that.
    ///
    /// Student's t, with the variance of a guest pooled over both versions.
    pub fn of(pairs: &[(f64, f64)], seeds: bool, perturbed: [&[f64]; 2]) -> Option<Self> {
        let about = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (squares, values.len().saturating_sub(1) as f64)
        };
        let differences: Vec<f64> = pairs.iter().map(|(before, after)| after - before).collect();
        let [(first, of_first), (second, of_second)] = perturbed.map(about);
        let of_guests = of_first + of_second;
        let (between, of_pairs) = if seeds { about(&differences) } else { (0.0, 0.0) };
        // The variance of a difference is that of two guests.
        let (squares, freedom) = (first + second + between / 2.0, of_guests + of_pairs);
        let evidence = of_guests + 2.0 * of_pairs;
        if freedom == 0.0 || pairs.is_empty() {
            return None;
        }
        let guests = pairs.len() as f64;
        let largest = pairs.iter().fold(0.0, |largest: f64, (a, b)| largest.max(a.abs()).max(b.abs()));
        let still = |size: f64| size <= ROUNDING * largest;
        let error = (2.0 * squares / freedom / guests).sqrt();
        let error = if still(error) { 0.0 } else { error };
        let mean = (differences.iter().sum::<f64>() / guests).abs();
        if error == 0.0 && !still(mean) && evidence < MIN_STILL {
            return None;
        }
        let p = match error {
            _ if still(mean) => 1.0,
            0.0 => 0.0,
            error => student_two_sided(mean / error, freedom),
        };
        Some(Self { p, error, freedom, of_pairs, guests })
    }

    /// The difference that is found in this share of all cases at a two-sided level.
    pub fn reach(&self, level: f64, power: f64) -> f64 {
        self.error * (student_quantile(1.0 - level / 2.0, self.freedom) + student_quantile(power, self.freedom))
    }

    /// With about how many guests of each version a difference is found as often, further ones being of the kind that there is; `None` if a
    /// thousand do not do.
    pub fn guests_needed(&self, difference: f64, level: f64, power: f64) -> Option<usize> {
        (2..1000).find(|guests| {
            let n = *guests as f64;
            let freedom = if self.of_pairs > 0.0 { self.freedom - self.of_pairs + n - 1.0 } else { 2.0 * (n - 1.0) };
            let more = Self { error: self.error * (self.guests / n).sqrt(), freedom, ..*self };
            more.reach(level, power) <= difference
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, derive_seed};

    fn normal(random: &mut Random) -> f64 {
        crate::distribution::normal_quantile((random.below(1 << 40) as f64 + 0.5) / (1_u64 << 40) as f64)
    }

    #[test]
    fn equal_versions_are_called_different_as_often_as_promised() {
        // (seeds, perturbed guests of each version)
        for (seeds, perturbed) in [(1, 2), (1, 4), (2, 2), (3, 0), (3, 2), (5, 0)] {
            let mut random = Random::new(derive_seed(seeds, perturbed));
            let (tables, mut wrong) = (4000, 0);
            for _ in 0..tables {
                let mut guests = |count: u64| -> Vec<f64> { (0..count).map(|_| normal(&mut random)).collect() };
                let layouts: Vec<f64> = (0..seeds).map(|seed| 5.0 * seed as f64).collect();
                let mut version = || -> Vec<f64> { guests(seeds).iter().zip(&layouts).map(|(a, b)| a + b).collect() };
                let (a, b) = (version(), version());
                let mut with_first =
                    |first: f64| -> Vec<f64> { std::iter::once(first).chain(guests(perturbed)).collect() };
                let (pa, pb) = (with_first(a[0]), with_first(b[0]));
                let pairs: Vec<(f64, f64)> = if seeds == 1 {
                    pa.iter().copied().zip(pb.iter().copied()).collect()
                } else {
                    a.into_iter().zip(b).collect()
                };
                wrong += usize::from(Moved::of(&pairs, seeds > 1, [&pa, &pb]).unwrap().p <= 0.05);
            }
            let share = wrong as f64 / tables as f64;
            assert!((0.04..0.06).contains(&share), "{seeds} seeds, {perturbed} perturbed: {share}");
        }
    }

    #[test]
    fn as_many_guests_as_it_takes_find_a_difference() {
        for seeds in [false, true] {
            let of = |guests: usize| {
                let places: Vec<f64> = (0..guests).map(|guest| guest as f64 - (guests as f64 - 1.0) / 2.0).collect();
                let deviation = (places.iter().map(|place| place.powi(2)).sum::<f64>() / (guests as f64 - 1.0)).sqrt();
                let values: Vec<f64> = places.iter().map(|place| place / deviation).collect();
                let pair = |value: &f64| if seeds { (0.0, value * 2.0_f64.sqrt()) } else { (*value, *value) };
                let pairs: Vec<(f64, f64)> = values.iter().map(pair).collect();
                let perturbed: &[f64] = if seeds { &[] } else { &values };
                Moved::of(&pairs, seeds, [perturbed; 2]).unwrap()
            };
            for difference in [1.0, 2.0, 4.0] {
                let needed = of(5).guests_needed(difference, 0.05, 0.8).unwrap();
                assert!(of(needed).reach(0.05, 0.8) <= difference, "{needed} guests do not find {difference}");
                assert!(of(needed - 1).reach(0.05, 0.8) > difference, "fewer than {needed} find {difference}");
            }
        }
    }

    #[test]
    fn figures_that_nothing_moves_are_told_apart_by_any_difference() {
        let same = Moved::of(&[(7.0, 7.0); 3], false, [&[7.0; 3], &[7.0; 3]]).unwrap();
        assert_eq!((same.p, same.error), (1.0, 0.0));
        let other = Moved::of(&[(7.0, 7.001); 3], false, [&[7.0; 3], &[7.001; 3]]).unwrap();
        assert_eq!((other.p, other.reach(0.05, 0.8)), (0.0, 0.0));
        assert_eq!(other.guests_needed(0.01, 0.05, 0.8), Some(2));
        assert_eq!(Moved::of(&[(7.0, 8.0)], true, [&[], &[]]), None, "one seed shows no scatter");
        assert_eq!(Moved::of(&[(7.0, 8.0); 2], true, [&[], &[]]), None, "two seeds agree by chance");
        assert_eq!(Moved::of(&[(7.0, 8.0); 3], true, [&[], &[]]).unwrap().p, 0.0);
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
                let of_pairs = if seeds == 1 { (&pa, &pb) } else { (&a, &b) };
                let pairs: Vec<(f64, f64)> = of_pairs.0.iter().copied().zip(of_pairs.1.iter().copied()).collect();
                wrong += usize::from(Moved::of(&pairs, seeds > 1, [&pa, &pb]).is_some_and(|moved| moved.p <= 0.05));
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
            let mut guests = |shift: f64| -> Vec<f64> { (0..3).map(|_| shift + normal(&mut random)).collect() };
            let (a, b) = (guests(0.0), guests(shift));
            let pairs: Vec<(f64, f64)> = a.iter().copied().zip(b.iter().copied()).collect();
            let moved = Moved::of(&pairs, false, [&a, &b]).unwrap();
            found += u32::from(moved.p <= 0.05);
            reach += moved.reach(0.05, 0.8) / f64::from(runs);
        }
        assert!((reach / shift - 1.0).abs() < 0.1, "{reach}");
        assert!((f64::from(found) / f64::from(runs) - 0.8).abs() < 0.06, "{found}");
    }
}

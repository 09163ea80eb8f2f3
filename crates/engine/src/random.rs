//! Random streams: Xoshiro256++, seeded per thread.
//!
//! Every stream's seed is derived from the run's seed and the stream's place in the workload with SplitMix64
//! (Steele, Lea, Flood 2014), so that a stream does not depend on how many others there are, and the run's seed
//! alone repeats all of them.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// SplitMix64's output function: a bijection of 64 bits that scatters well.
#[inline]
pub(crate) const fn scatter(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A seed for the stream at `place`, a path of numbers such as (what for, phase, group, thread).
pub(crate) fn derive(seed: u64, place: &[u64]) -> u64 {
    place.iter().fold(scatter(seed), |state, part| scatter(state ^ scatter(*part)))
}

#[derive(Debug, Clone)]
pub(crate) struct Random {
    generator: Xoshiro256PlusPlus,
    spare_normal: Option<f64>,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { generator: Xoshiro256PlusPlus::seed_from_u64(seed), spare_normal: None }
    }

    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Uniform in `0..bound`, without bias (Lemire 2019); 0 when `bound` is 0.
    #[inline(always)]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.bits()) * u128::from(bound);
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound.max(1);
            while (product as u64) < threshold {
                product = u128::from(self.bits()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Standard normal (Marsaglia's polar method).
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare_normal.take() {
            return spare;
        }
        loop {
            let (u, v) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let s = u * u + v * v;
            if s > 0.0 && s < 1.0 {
                let factor = (-2.0 * s.ln() / s).sqrt();
                self.spare_normal = Some(v * factor);
                return u * factor;
            }
        }
    }

    /// Gamma with this shape (> 0) and scale 1 (Marsaglia and Tsang 2000).
    pub(crate) fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            // Boosting: Gamma(shape) = Gamma(shape + 1) · U^(1/shape).
            let unit = 1.0 - self.unit();
            return self.gamma(shape + 1.0) * unit.powf(1.0 / shape);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && (1.0 - self.unit()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    /// The bytes of `fill_bytes`, whose iterators take a build without optimisation three times as long.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        let (words, rest) = bytes.as_chunks_mut();
        for word in words {
            *word = self.bits().to_le_bytes();
        }
        if !rest.is_empty() {
            rest.copy_from_slice(&self.bits().to_le_bytes()[..rest.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |place: &[u64]| Random::new(derive(7, place)).bits();
        assert_eq!(draw(&[1, 2]), draw(&[1, 2]));
        assert_ne!(draw(&[1, 2]), draw(&[2, 1]));
        assert_ne!(draw(&[1, 2]), draw(&[1, 3]));
        assert_ne!(Random::new(derive(7, &[0])).bits(), Random::new(derive(8, &[0])).bits());
    }

    #[test]
    fn bytes_are_those_of_the_generator() {
        let mut random = Random::new(3);
        for length in [0, 1, 7, 8, 9, 4096, 4099] {
            let (mut ours, mut theirs) = (vec![0; length], vec![0; length]);
            random.clone().generator.fill_bytes(&mut theirs);
            random.fill(&mut ours);
            assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn bounded_draws_are_unbiased() {
        let mut random = Random::new(1);
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
        let mut counts = [0u64; 10];
        for _ in 0..1_000_000 {
            counts[random.below(10) as usize] += 1;
        }
        // χ² with 9 degrees of freedom: 27.9 is the 99.9 % point; the seed is fixed.
        let chi: f64 = counts.iter().map(|count| (*count as f64 - 1e5).powi(2) / 1e5).sum();
        assert!(chi < 27.9, "χ² = {chi}");
        // A bound just above 2^63, where a modulus would favour the lower half two to one.
        let bound = (1u64 << 63) + (1 << 62);
        let low = (0..100_000).filter(|_| random.below(bound) < bound / 2).count();
        assert!((49_000..51_000).contains(&low), "{low}");
    }

    #[test]
    fn moments_fit() {
        let mut random = Random::new(2);
        let n = 200_000;
        let normals: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        let mean = normals.iter().sum::<f64>() / f64::from(n);
        let variance = normals.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
        for shape in [0.5, 1.5, 8.0] {
            let mean = (0..n).map(|_| random.gamma(shape)).sum::<f64>() / f64::from(n);
            assert!((mean / shape - 1.0).abs() < 0.02, "shape {shape}: {mean}");
        }
    }
}

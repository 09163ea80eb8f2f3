//! Simulated figures for the calibrations. Their streams are apart from the library's own.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(crate) struct Simulation(Xoshiro256PlusPlus);

impl Simulation {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub(crate) fn seed(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform, strictly between 0 and 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal (Box & Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// `n` steps of a stationary first-order autoregression with unit variance.
    pub(crate) fn autoregression(&mut self, n: usize, coefficient: f64) -> Vec<f64> {
        let mut value = self.normal();
        (0..n)
            .map(|_| {
                let now = value;
                value = coefficient * value + (1.0 - coefficient.powi(2)).sqrt() * self.normal();
                now
            })
            .collect()
    }
}

//! Zipf-distributed ranks in constant time and memory, for any exponent above 0 and spaces up to 2^63.
//!
//! Rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
//! distributions", ACM TOMACS 6 (1996). Rank k from 1 has probability proportional to k^-θ.

use crate::random::Random;

/// A distribution over ranks 0..space.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    space: u64,
    theta: f64,
    integral_first: f64,
    integral_last: f64,
    squeeze: f64,
}

impl Zipf {
    pub(crate) fn new(space: u64, theta: f64) -> Self {
        let theta = if theta.is_finite() { theta.max(1e-9) } else { 1.0 };
        let mut zipf = Self { space, theta, integral_first: 0.0, integral_last: 0.0, squeeze: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(space as f64 + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    pub(crate) fn space(&self) -> u64 {
        self.space
    }

    /// x^-θ.
    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// ∫ x^-θ: (x^(1-θ) - 1) / (1-θ), or ln x when θ is 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        expm1_ratio((1.0 - self.theta) * log) * log
    }

    fn inverse(&self, y: f64) -> f64 {
        let t = (y * (1.0 - self.theta)).max(-1.0);
        (ln_1p_ratio(t) * y).exp()
    }

    /// A rank; 0 is the most frequent.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        if self.space < 2 {
            return 0;
        }
        loop {
            let u = self.integral_last + random.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, self.space as f64);
            if k - x <= self.squeeze || u >= self.integral(k + 0.5) - self.density(k) {
                return (k as u64 - 1).min(self.space - 1);
            }
        }
    }
}

/// (e^x - 1) / x, smooth at 0.
fn expm1_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// ln(1 + x) / x, smooth at 0.
fn ln_1p_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_fit_the_law() {
        for theta in [0.5, 0.99, 1.0, 1.2, 2.5] {
            let space = 1000;
            let zipf = Zipf::new(space, theta);
            let mut random = Random::new(6);
            let n = 400_000;
            let mut counts = vec![0u64; space as usize];
            for _ in 0..n {
                counts[zipf.draw(&mut random) as usize] += 1;
            }
            let norm: f64 = (1..=space).map(|k| (k as f64).powf(-theta)).sum();
            for rank in [0usize, 1, 2, 9, 99] {
                let expected = (rank as f64 + 1.0).powf(-theta) / norm * f64::from(n);
                let slack = 4.5 * expected.sqrt() + 1.0;
                assert!(
                    (counts[rank] as f64 - expected).abs() < slack,
                    "θ {theta} rank {rank}: {} for {expected}",
                    counts[rank]
                );
            }
        }
    }

    #[test]
    fn huge_and_tiny_spaces() {
        let mut random = Random::new(7);
        let zipf = Zipf::new(1 << 60, 0.9);
        assert!((0..1000).map(|_| zipf.draw(&mut random)).all(|rank| rank < 1 << 60));
        assert_eq!(Zipf::new(1, 1.0).draw(&mut random), 0);
        assert!((0..100).all(|_| Zipf::new(2, 1e-12).draw(&mut random) < 2));
    }
}

//! The distribution of the studentised range: how far apart the outermost of several equal means may lie by chance.
//!
//! `statrs` has none. The range of `k` standard normals has the distribution
//! W(w) = k ∫ φ(z) [Φ(z) − Φ(z − w)]^(k − 1) dz; dividing by an independent estimate of the standard deviation with ν degrees
//! of freedom mixes it over s = √(χ²(ν)/ν) (Tukey, "The problem of multiple comparisons", 1953; Copenhaver & Holland, J. Stat.
//! Comput. Simul. 30, 1988). Both integrands are analytic and vanish at both ends, so the trapezoidal rule converges
//! exponentially (Trefethen & Weideman, SIAM Review 56, 2014): no panels and no tuning.

use std::f64::consts::TAU;

use statrs::function::gamma::ln_gamma;

use crate::distribution::normal_cdf;

/// Steps of 1 in z and in w. Their grids coincide, so Φ is only ever needed at its multiples.
const PER_UNIT: usize = 16;
/// φ is below 1e-20 beyond.
const Z_MAX: usize = 9;
/// 1 − W is below 1e-16 beyond, for any number of means that a table has.
const W_MAX: usize = 16;

/// The studentised range of a number of means; degrees of freedom are told with each question.
#[derive(Debug, Clone)]
pub struct StudentizedRange {
    /// W and its derivative at w = 0, 1/16, …
    table: Vec<(f64, f64)>,
}

impl StudentizedRange {
    /// Of `means` means.
    ///
    /// # Panics
    /// With fewer than two, which have no range.
    pub fn new(means: usize) -> Self {
        assert!(means >= 2, "{means} means have no range");
        let cdf = |index: usize| normal_cdf((index as f64 - ((Z_MAX + W_MAX) * PER_UNIT) as f64) / PER_UNIT as f64);
        let cdf: Vec<f64> = (0..=(2 * Z_MAX + W_MAX) * PER_UNIT).map(cdf).collect();
        let density = |steps: usize| {
            let z = steps as f64 / PER_UNIT as f64;
            (-z * z / 2.0).exp() / TAU.sqrt()
        };
        let density: Vec<f64> = (0..=(Z_MAX + W_MAX) * PER_UNIT).map(density).collect();
        let power = i32::try_from(means - 1).expect("a table has fewer rows");
        let k = means as f64;
        let at = |w: usize| {
            let (mut value, mut slope) = (0.0, 0.0);
            for z in 0..=2 * Z_MAX * PER_UNIT {
                let middle = Z_MAX * PER_UNIT;
                let inside = cdf[z + W_MAX * PER_UNIT] - cdf[z + W_MAX * PER_UNIT - w];
                let below = inside.powi(power - 1);
                value += density[z.abs_diff(middle)] * below * inside;
                slope += density[z.abs_diff(middle)] * density[(z + Z_MAX * PER_UNIT).abs_diff(2 * middle + w)] * below;
            }
            (k * value / PER_UNIT as f64, k * (k - 1.0) * slope / PER_UNIT as f64)
        };
        Self { table: (0..=W_MAX * PER_UNIT).map(at).collect() }
    }

    /// 1 − W(w): cubic Hermite interpolation, whose error is below 1e-8 at this step.
    fn normal_upper(&self, w: f64) -> f64 {
        let step = w * PER_UNIT as f64;
        let left = step as usize;
        let (Some(&(a, slope_a)), Some(&(b, slope_b))) = (self.table.get(left), self.table.get(left + 1)) else {
            return 0.0;
        };
        let t = step - left as f64;
        let (slope_a, slope_b) = (slope_a / PER_UNIT as f64, slope_b / PER_UNIT as f64);
        let rest = 1.0 - t;
        let value = a * (1.0 + 2.0 * t) * rest * rest + slope_a * t * rest * rest + b * t * t * (3.0 - 2.0 * t)
            - slope_b * t * t * rest;
        (1.0 - value).clamp(0.0, 1.0)
    }

    /// P(range / s ≥ q), for an s with `freedom` > 0 degrees of freedom, which may be a fraction or infinite.
    pub fn upper(&self, q: f64, freedom: f64) -> f64 {
        if q <= 0.0 {
            return 1.0;
        }
        if freedom > 1e6 {
            return self.normal_upper(q);
        }
        // The density of u = ln s: 2 (ν/2)^(ν/2) / Γ(ν/2) · exp(ν (u − e^(2u) / 2)).
        let half = freedom / 2.0;
        let scale = std::f64::consts::LN_2 + half * half.ln() - ln_gamma(half);
        // u has a standard deviation of about 1 / √(2ν); 0.7 of it is exact to 1e-16. W itself asks for steps of a tenth.
        let step = (0.7 / (2.0 * freedom).sqrt()).min(0.1);
        let mut sum = 0.0;
        // Downwards from the mode at u = 0 the density falls off like s^ν, upwards much faster.
        let mut add = |direction: f64, from: usize| {
            for index in from.. {
                let u = direction * index as f64 * step;
                let logarithm = scale + freedom * (u - (2.0 * u).exp() / 2.0);
                if logarithm < -37.0 {
                    break;
                }
                sum += logarithm.exp() * self.normal_upper(q * u.exp());
            }
        };
        add(1.0, 0);
        add(-1.0, 1);
        (sum * step).clamp(0.0, 1.0)
    }

    /// The q with P(range / s ≥ q) = `alpha`.
    ///
    /// # Panics
    /// When `alpha` is not strictly between 0 and 1.
    pub fn critical(&self, alpha: f64, freedom: f64) -> f64 {
        assert!(0.0 < alpha && alpha < 1.0, "an alpha of {alpha} means nothing");
        // In ln q the tail is nearly straight. Illinois (Dowell & Jarratt, BIT 11, 1971) keeps the root between its ends.
        let excess = |logarithm: f64| self.upper(logarithm.exp(), freedom).max(1e-300).ln() - alpha.ln();
        let (mut low, mut high) = (-7.0, 1.0);
        let mut at_low = excess(low);
        let mut at_high = excess(high);
        while at_high > 0.0 && high < 60.0 {
            (low, at_low) = (high, at_high);
            high += 1.0;
            at_high = excess(high);
        }
        for _ in 0..200 {
            let middle = (low * at_high - high * at_low) / (at_high - at_low);
            let found = excess(middle);
            if found.abs() < 1e-11 || (high - low).abs() < 1e-13 {
                return middle.exp();
            }
            if found * at_high < 0.0 {
                (low, at_low) = (high, at_high);
            } else {
                at_low /= 2.0;
            }
            (high, at_high) = (middle, found);
        }
        f64::midpoint(low, high).exp()
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found / expected - 1.0).abs() < tolerance, "{found} is not {expected}");
    }

    #[test]
    fn two_means_are_students_t() {
        // P(|t| ≥ q / √2): with one degree of freedom 1 − 2 atan(q / √2) / π.
        let range = StudentizedRange::new(2);
        for q in [0.5, 2.0, 7.0, 18.0] {
            close(range.upper(q, 1.0), 1.0 - 2.0 * (q / 2_f64.sqrt()).atan() / PI, 1e-7);
        }
        close(range.critical(0.05, f64::INFINITY), 2.771_807_648_701_155, 1e-8);
    }
    /// scipy 1.16.3: studentized_range.isf(α, k, ν). R's qtukey(1 − α, k, ν) agrees to the six places that it prints.
    #[test]
    fn critical_values_agree_with_scipy_and_r() {
        let known = [
            (3, 2.0, 0.05, 8.330_782_645_6),
            (9, 16.0, 0.05, 5.031_007_473_0),
            (9, 16.0, 0.01, 6.222_079_282_4),
            (5, 10.0, 0.05, 4.654_292_997_9),
            (20, 38.0, 0.05, 5.375_977_944_9),
            (2, 4.0, 0.05, 3.926_486_323_0),
            (40, 80.0, 0.05, 5.716_270_660_3),
            (9, 5.5, 0.05, 6.533_646_085_3),
            (10, 1.0, 0.05, 49.071_022_423_7),
            (9, 240.0, 0.001, 6.013_738_236_6),
        ];
        for (means, freedom, alpha, expected) in known {
            close(StudentizedRange::new(means).critical(alpha, freedom), expected, 1e-7);
        }
    }

    /// scipy 1.16.3: studentized_range.sf(q, k, ν); R: ptukey(q, k, ν, lower.tail = FALSE).
    #[test]
    fn tails_agree_with_scipy_and_r() {
        let known = [
            (3.5, 9, 16.0, 3.112_591_068_541e-1),
            (1.0, 3, 4.0, 7.726_602_263_494e-1),
            (8.0, 4, 3.0, 3.259_266_422_985e-2),
            (5.2, 30, 60.0, 9.926_587_664_116e-2),
            (0.3, 2, 7.5, 8.376_548_015_680e-1),
        ];
        for (q, means, freedom, expected) in known {
            close(StudentizedRange::new(means).upper(q, freedom), expected, 1e-7);
        }
        close(StudentizedRange::new(9).upper(10.0, 16.0), 7.165_111_401_408e-5, 1e-4);
    }

    #[test]
    fn the_tail_falls_and_the_critical_value_inverts_it() {
        let range = StudentizedRange::new(9);
        for freedom in [1.0, 2.3, 16.0, 500.0, f64::INFINITY] {
            let tails: Vec<f64> = (0..60).map(|q| range.upper(f64::from(q) / 4.0, freedom)).collect();
            assert!(tails.windows(2).all(|pair| pair[0] >= pair[1] - 1e-10), "{freedom}: {tails:?}");
            for alpha in [0.2, 0.05, 0.001] {
                close(range.upper(range.critical(alpha, freedom), freedom), alpha, 1e-8);
            }
        }
    }
}

//! The few distribution functions that are needed, from `statrs`.
//!
//! Checked against scipy below: `statrs` is used for these alone, because some of its tests return
//! wrong p-values.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};

/// P(Z ≤ z) of the standard normal; relative error below 1e-10 into the far tail.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// P(|Z| ≥ |z|) of the standard normal, without cancellation in the tail.
pub(crate) fn normal_two_sided(z: f64) -> f64 {
    (2.0 * normal_cdf(-z.abs())).min(1.0)
}

/// The quantile of the standard normal at `probability`, strictly between 0 and 1.
pub(crate) fn normal_quantile(probability: f64) -> f64 {
    Normal::standard().inverse_cdf(probability)
}

/// The quantile of Student's t with `freedom` > 0 degrees of freedom.
pub(crate) fn student_quantile(probability: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom)
        .expect("a positive, finite number of degrees of freedom is a valid parameter")
        .inverse_cdf(probability)
}

/// P(|T| ≥ |t|) of Student's t with `freedom` > 0 degrees of freedom.
pub(crate) fn student_two_sided(t: f64, freedom: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom)
        .expect("a positive, finite number of degrees of freedom is a valid parameter");
    (2.0 * student.cdf(-t.abs())).min(1.0)
}

/// P(F ≥ ratio) of Fisher's F; 1 where it has no degrees of freedom, or there is no ratio.
pub(crate) fn upper_f(ratio: f64, numerator: f64, denominator: f64) -> f64 {
    if !ratio.is_finite() || ratio <= 0.0 {
        return 1.0;
    }
    FisherSnedecor::new(numerator, denominator).map_or(1.0, |fisher| fisher.sf(ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(actual: f64, expected: f64) {
        assert!((actual / expected - 1.0).abs() < 1e-9, "{actual:e} is not {expected:e}");
    }

    /// scipy 1.17.1: norm.cdf, norm.ppf, t.ppf.
    #[test]
    fn agrees_with_scipy() {
        close(normal_cdf(-8.0), 6.220_960_574_271_74e-16);
        close(normal_cdf(-1.96), 0.024_997_895_148_220_435);
        close(normal_cdf(1.5), 0.933_192_798_731_141_9);
        close(normal_two_sided(1.96), 0.049_995_790_296_440_87);
        close(normal_quantile(1e-6), -4.753_424_308_822_899);
        close(normal_quantile(0.975), 1.959_963_984_540_054);
        close(student_quantile(0.975, 1.0), 12.706_204_736_174_694);
        close(student_quantile(0.975, 2.0), 4.302_652_729_749_462);
        close(student_quantile(0.9995, 4.0), 8.610_301_581_379_522);
        close(student_quantile(0.975, 29.0), 2.045_229_642_132_703);
        close(student_quantile(0.975, 500.0), 1.964_719_837_467_367_6);
    }
}

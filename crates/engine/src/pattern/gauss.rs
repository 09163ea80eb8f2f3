//! Positions normally distributed around the middle of the space.

use crate::random::Random;

/// A number from `0..space`; `deviation` is the standard deviation as a share of the space. What falls outside is
/// drawn again.
pub(crate) fn draw(space: u64, deviation: f64, random: &mut Random) -> u64 {
    if space < 2 {
        return 0;
    }
    // Far wider than the space, a normal distribution cut off at the ends is uniform, and drawing again would not end.
    if deviation.is_nan() || deviation > 50.0 {
        return random.below(space);
    }
    loop {
        let place = 0.5 + random.normal() * deviation.max(0.0);
        if (0.0..1.0).contains(&place) {
            return ((place * space as f64) as u64).min(space - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_parameters_end() {
        let mut random = Random::new(4);
        for deviation in [0.0, 1e-9, 10.0, 1e9, f64::INFINITY, f64::NAN] {
            assert!(draw(10, deviation, &mut random) < 10);
        }
        assert_eq!(draw(0, 0.1, &mut random), 0);
    }
}

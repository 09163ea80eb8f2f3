//! Correction for comparing many pairs.

/// Holm's step-down correction: adjusted p-values, in the order given.
///
/// Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
/// Statistics 6 (1979). Calling a pair different when its adjusted p is at most α calls *any* pair
/// wrongly different in at most α of tables, whatever the dependence between pairs.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&i, &j| p_values[i].total_cmp(&p_values[j]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (smaller, &index) in order.iter().enumerate() {
        let remaining = (p_values.len() - smaller) as f64;
        largest = largest.max((p_values[index] * remaining).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_r() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005, 0.9), "holm") = 0.04 0.09 0.09 0.025 0.9
        let found = holm(&[0.01, 0.04, 0.03, 0.005, 0.9]);
        let expected = [0.04, 0.09, 0.09, 0.025, 0.9];
        assert!(found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-12), "{found:?}");
        assert!(holm(&[]).is_empty());
    }
}

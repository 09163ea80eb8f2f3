//! The crate's integration tests: oracles (brute force, recorded scipy values) and properties.

mod oracles;
mod properties;

use fstone_stats::Sample;

fn sample(values: &[f64]) -> Sample {
    Sample::new(values.to_vec()).unwrap()
}

//! Renders a comparison of two runs, which `fstone_analysis::runs` computes.

mod html;
mod json;
mod junit;
mod markdown;
mod terminal;

use fstone_analysis::runs::RunComparison;

pub use html::html;
pub use json::{Document, VERSION, json};
pub use junit::junit;
pub use markdown::markdown;
pub use terminal::terminal;

fn title(comparison: &RunComparison<'_>) -> String {
    format!("{} against {}", at_the_start(&comparison.other_name), comparison.baseline_name)
}

/// A run's name where a line begins: "Run 7". The names of files and baselines are spelled as their users spell them.
fn at_the_start(name: &str) -> String {
    match name.strip_prefix("run ").and_then(|rest| rest.split(' ').next()) {
        Some(number) if number.parse::<u64>().is_ok() => crate::text::capitalised(name),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_word_run_is_capitalised() {
        for (name, at_the_start) in [
            ("run 7", "Run 7"),
            ("run 7 here", "Run 7 here"),
            ("slow6.f (run 7 of vm)", "slow6.f (run 7 of vm)"),
            ("run 7.fstone (run 7 of vm)", "run 7.fstone (run 7 of vm)"),
            ("main (run 3)", "main (run 3)"),
        ] {
            assert_eq!(super::at_the_start(name), at_the_start);
        }
    }
}

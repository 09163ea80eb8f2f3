//! An earlier run, to stand beside this one.

use serde::Deserialize;
use std::path::Path;

#[derive(Debug, Deserialize)]
pub(crate) struct Before {
    pub(crate) date: String,
    figures: Vec<Figure>,
}

#[derive(Debug, Deserialize)]
struct Figure {
    name: String,
    sides: Vec<Side>,
    verdicts: Vec<Verdict>,
}

#[derive(Debug, Deserialize)]
struct Side {
    name: String,
    mean: f64,
    interval95: Option<(f64, f64)>,
}

#[derive(Debug, Deserialize)]
struct Verdict {
    goal: String,
    value: f64,
    interval95: Option<(f64, f64)>,
}

/// A value and its interval.
pub(crate) type Value = (f64, Option<(f64, f64)>);

impl Before {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("read {}: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("read {}: {error}", path.display()))
    }

    pub(crate) fn verdict(&self, figure: &str, goal: &str) -> Option<Value> {
        let verdicts = &self.figures.iter().find(|one| one.name == figure)?.verdicts;
        let found = verdicts.iter().find(|one| subject(&one.goal) == subject(goal))?;
        Some((found.value, found.interval95))
    }

    pub(crate) fn side(&self, figure: &str, side: &str) -> Option<Value> {
        let sides = &self.figures.iter().find(|one| one.name == figure)?.sides;
        sides.iter().find(|one| one.name == side).map(|found| (found.mean, found.interval95))
    }
}

/// What a goal is about, without its number: "× fio" of "at least 1.5 × fio".
fn subject(goal: &str) -> &str {
    goal.split_once(" × ").map_or(goal, |(_, over)| over)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_found_by_what_they_are_over() {
        let record = r#"{"date": "d", "figures": [{"name": "ring", "unit": "u",
            "sides": [{"name": "fio", "mean": 2.0, "values": [2.0], "interval95": null}],
            "verdicts": [{"goal": "at least 1.5 × fio", "value": 1.7, "interval95": [1.4, 1.8], "reached": true}]}]}"#;
        let before: Before = serde_json::from_str(record).expect("a record");
        assert_eq!(before.verdict("ring", "at least 1 × fio"), Some((1.7, Some((1.4, 1.8)))));
        assert_eq!(before.verdict("ring", "at least 1 × bare"), None);
        assert_eq!((before.side("ring", "fio"), before.side("null", "fio")), (Some((2.0, None)), None));
    }
}

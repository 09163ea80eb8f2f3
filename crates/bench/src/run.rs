//! Measures: all sides of a figure in turns, so that whatever the machine does meanwhile it does to all of them.

use crate::figures::{Amounts, Figure, Goal, Places, all};
use crate::options::Options;
use crate::record::{Record, SideRecord, Verdict};
use crate::side::Trouble;
use fstone_stats::compare::blocked_relative_shift;
use fstone_stats::{Sample, interval95};

const SEED: u64 = 1;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let amounts = Amounts::new(options);
    let exact = |figure: &Figure| options.only.as_ref().is_some_and(|only| figure.name == only.as_str());
    let one = all(&amounts).iter().any(exact);
    let wanted = |figure: &Figure| {
        exact(figure) || !one && options.only.as_ref().is_none_or(|only| figure.name.contains(only.as_str()))
    };
    let mut records = Vec::new();
    for figure in all(&amounts).into_iter().filter(wanted) {
        eprintln!("{}: {}", figure.name, figure.title);
        let rounds = options.rounds.map_or(figure.rounds, |rounds| rounds as usize);
        let record = measure(&figure, &amounts, rounds)?;
        for line in record.lines() {
            eprintln!("    {line}");
        }
        records.push(record);
    }
    if records.is_empty() {
        return Err("find a figure of that name".into());
    }
    let files = crate::record::keep(&records, options)?;
    for file in files {
        println!("{}", file.display());
    }
    Ok(())
}

fn measure(figure: &Figure, amounts: &Amounts, rounds: usize) -> Result<Record, String> {
    let mut record = Record {
        name: figure.name.into(),
        title: figure.title.clone(),
        unit: figure.unit.into(),
        rounds,
        sides: Vec::new(),
        verdicts: Vec::new(),
        absent: Vec::new(),
    };
    let mut places = Places::default();
    let mut sides = match (figure.sides)(amounts, &mut places) {
        Ok(sides) => sides,
        Err(Trouble::Absent(why)) => {
            record.absent.push(format!("all: {why}"));
            return Ok(record);
        }
        Err(Trouble::Failed(why)) => return Err(format!("prepare {}: {why}", figure.name)),
    };
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); sides.len()];
    // One round is not counted: it fills caches and finds out who is absent.
    for round in 0..=rounds {
        // Each round begins with another side.
        for turn in 0..sides.len() {
            let index = (round + turn) % sides.len();
            let side = &mut sides[index];
            if record.absent.iter().any(|absent| absent.starts_with(&format!("{}: ", side.name))) {
                continue;
            }
            let measured = (side.measure)();
            if crate::signals::interrupted() {
                return Err(format!("measure {}: interrupted", figure.name));
            }
            match measured {
                Ok(_) if round == 0 => {}
                Ok(value) => values[index].push(value),
                Err(Trouble::Absent(why)) => record.absent.push(format!("{}: {why}", side.name)),
                Err(Trouble::Failed(why)) => return Err(format!("measure {} of {}: {why}", side.name, figure.name)),
            }
        }
    }
    for (side, values) in sides.iter().zip(&values).filter(|(_, values)| !values.is_empty()) {
        let sample = Sample::new(values.clone()).map_err(|error| format!("judge {}: {error}", side.name))?;
        record.sides.push(SideRecord {
            name: side.name.clone(),
            values: values.clone(),
            mean: sample.mean(),
            interval95: interval95(&sample, SEED).map(|interval| (interval.low, interval.high)),
        });
    }
    record.verdicts = figure.goals.iter().filter_map(|goal| judge(&record, *goal)).collect();
    Ok(record)
}

/// Whether a goal is reached; `None` when the other side was absent.
fn judge(record: &Record, goal: Goal) -> Option<Verdict> {
    let ours = record.side("fstone")?;
    let over = match goal {
        Goal::AtMost(limit) => {
            let text = format!("at most {limit}");
            return Some(Verdict {
                goal: text,
                value: ours.mean,
                interval95: ours.interval95,
                reached: ours.mean <= limit,
            });
        }
        Goal::AtMostBeyond { over, .. }
        | Goal::AtLeast { over, .. }
        | Goal::AtMostTimes { over, .. }
        | Goal::Like { over } => over,
    };
    let theirs = record.side(over)?;
    if let Goal::AtMostBeyond { by, .. } = goal {
        let beyond = ours.values.iter().zip(&theirs.values).map(|(ours, theirs)| ours - theirs).collect();
        let beyond = Sample::new(beyond).ok()?;
        let interval95 = interval95(&beyond, SEED).map(|interval| (interval.low, interval.high));
        let (goal, value) = (format!("at most {by} beyond {over}"), beyond.mean());
        return Some(Verdict { goal, value, interval95, reached: value <= by });
    }
    let pairs: Vec<(f64, f64)> = theirs.values.iter().copied().zip(ours.values.iter().copied()).collect();
    let shift = blocked_relative_shift(&pairs, 0.95)?;
    let (value, low, high) = (1.0 + shift.estimate, 1.0 + shift.interval.low, 1.0 + shift.interval.high);
    let (text, reached) = match goal {
        Goal::AtLeast { ratio, .. } => (format!("at least {ratio} × {over}"), value >= ratio),
        Goal::AtMostTimes { ratio, .. } => (format!("at most {ratio} × {over}"), value <= ratio),
        Goal::Like { .. } | Goal::AtMost(_) | Goal::AtMostBeyond { .. } => {
            (format!("within the noise of {over}"), high >= 1.0)
        }
    };
    Some(Verdict { goal: text, value, interval95: Some((low, high)), reached })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(ours: &[f64], theirs: &[f64]) -> Record {
        let side = |name: &str, values: &[f64]| SideRecord {
            name: name.into(),
            values: values.to_vec(),
            mean: values.iter().sum::<f64>() / values.len() as f64,
            interval95: None,
        };
        Record {
            name: "n".into(),
            title: "t".into(),
            unit: "u".into(),
            rounds: ours.len(),
            sides: vec![side("fstone", ours), side("bare", theirs)],
            verdicts: Vec::new(),
            absent: Vec::new(),
        }
    }

    #[test]
    fn ratios_are_of_pairs() {
        // The machine halves its speed in between: the ratio stays.
        let record = record(&[99.0, 98.0, 49.0, 49.5, 99.5, 49.2], &[100.0, 100.0, 50.0, 50.0, 100.0, 50.0]);
        let verdict = judge(&record, Goal::AtLeast { over: "bare", ratio: 0.95 }).expect("both sides");
        assert!(verdict.reached);
        assert!((verdict.value - 0.987).abs() < 0.01, "{}", verdict.value);
        let (low, high) = verdict.interval95.expect("six pairs");
        assert!(low > 0.97 && high < 1.0);
        assert!(!judge(&record, Goal::AtLeast { over: "bare", ratio: 1.0 }).expect("both sides").reached);
        assert!(!judge(&record, Goal::Like { over: "bare" }).expect("both sides").reached);
        assert!(!judge(&record, Goal::AtMost(70.0)).expect("ours").reached);
        assert!(judge(&record, Goal::AtMostTimes { over: "bare", ratio: 1.0 }).expect("both sides").reached);
        let beyond = |by| judge(&record, Goal::AtMostBeyond { over: "bare", by }).expect("both sides");
        assert!(beyond(-0.9).reached && !beyond(-1.0).reached, "{}", beyond(0.0).value);
    }

    #[test]
    fn an_absent_side_has_no_verdict() {
        assert!(judge(&record(&[1.0], &[1.0]), Goal::Like { over: "fio" }).is_none());
    }
}

//! Excerpts: what reports show of a trial, in a single value.
//!
//! The tables have a row for every figure, so that SQL can query them, and load reports are kept whole. For ten thousand trials
//! that is more than a million rows and half a gigabyte of JSON, which take seconds to read. So steps, figures, commands, superblock and
//! warnings of a trial are kept a second time, followed by what pages show of its loads ([`LoadReport::shorten`]), over time last, in the
//! format of postcard (<https://postcard.jamesmunns.com/wire-format>): a report of ten thousand trials reads ten thousand values.
//!
//! The tables are authoritative. Triggers remove the excerpt when one of them is changed by hand, and a run of which a trial has no
//! excerpt, or one that this program cannot read, is read from the tables.

use crate::ReadError;
use crate::rows::{ByTrial, unsigned};
use crate::steps::Loads;
use fstone_model::load::SeriesPoint;
use fstone_model::result::StepResult;
use fstone_model::{LoadReport, Trial};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError, mpsc};
use std::{num::NonZero, thread};

/// Postcard does not name fields: an excerpt means what the types below meant when it was written. It begins with this number, which must be
/// raised when one of them changes, so that earlier excerpts are not misread. A test pins the bytes.
const LAYOUT: u8 = 8;

/// Decoding fewer trials than this takes less time than starting a thread for them.
const TRIALS_PER_THREAD: usize = 32;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Parts {
    pub(crate) steps: Vec<StepResult>,
    pub(crate) superblock: Vec<(String, String)>,
    pub(crate) warnings: Vec<String>,
}

pub(crate) fn encode(trial: &Trial) -> Vec<u8> {
    let without_load = |step: &StepResult| StepResult {
        step: step.step.clone(),
        started_ns: step.started_ns,
        duration_ns: step.duration_ns,
        commands: step.commands.clone(),
        figures: step.figures.clone(),
        load: None,
    };
    let parts = Parts {
        steps: trial.steps.iter().map(without_load).collect(),
        superblock: trial.effective.superblock.clone(),
        warnings: trial.warnings.clone(),
    };
    // Behind the rest, for those who do without.
    let mut loads: Vec<(u32, LoadReport)> = (0u32..)
        .zip(&trial.steps)
        .filter_map(|(place, step)| {
            let mut load = step.load.as_deref()?.clone();
            load.shorten();
            Some((place, load))
        })
        .collect();
    let series: Vec<Vec<SeriesPoint>> = loads.iter_mut().map(|(_, load)| std::mem::take(&mut load.series)).collect();
    let written = "memory takes all that is written";
    let bytes = postcard::to_extend(&parts, vec![LAYOUT]).expect(written);
    let bytes = postcard::to_extend(&loads, bytes).expect(written);
    postcard::to_extend(&series, bytes).expect(written)
}

/// What an excerpt says; `None` when it is of another layout or damaged.
fn decode(excerpt: &[u8], loads: Loads) -> Option<Parts> {
    let (&LAYOUT, bytes) = excerpt.split_first()? else { return None };
    let (mut parts, bytes) = postcard::take_from_bytes::<Parts>(bytes).ok()?;
    if loads == Loads::LeftOut {
        return Some(parts);
    }
    let (mut reports, bytes) = postcard::take_from_bytes::<Vec<(u32, LoadReport)>>(bytes).ok()?;
    if loads == Loads::Shown {
        let (series, rest) = postcard::take_from_bytes::<Vec<Vec<SeriesPoint>>>(bytes).ok()?;
        if series.len() != reports.len() || !rest.is_empty() {
            return None;
        }
        for ((_, report), series) in reports.iter_mut().zip(series) {
            report.series = series;
        }
    }
    for (place, report) in reports {
        parts.steps.get_mut(place as usize)?.load = Some(Box::new(report));
    }
    Some(parts)
}

/// The excerpts of all trials of a run; `None` unless every trial has a readable one.
pub(crate) fn read(connection: &Connection, run: i64, loads: Loads) -> Result<Option<ByTrial<Parts>>, ReadError> {
    let count = "SELECT count(*) FROM trials WHERE run = ?";
    let trials: usize = connection.query_row(count, [run], |row| unsigned(row, 0))? as usize;
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let (send, receive) = mpsc::sync_channel::<((u32, u32), Vec<u8>)>(TRIALS_PER_THREAD);
    let receive = Mutex::new(receive);
    let next = || receive.lock().unwrap_or_else(PoisonError::into_inner).recv();
    thread::scope(|scope| {
        let decode = || {
            let mut decoded = Vec::new();
            while let Ok((key, excerpt)) = next() {
                decoded.push((key, decode(&excerpt, loads)));
            }
            decoded
        };
        let threads = (trials / TRIALS_PER_THREAD).clamp(1, processors);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(decode)).collect();
        let sent = send_all(connection, run, &send);
        drop(send);
        let mut all = ByTrial::new();
        let mut readable = sent? == trials;
        for thread in threads {
            for (key, parts) in thread.join().expect("decoding does not panic") {
                match parts {
                    Some(parts) => _ = all.insert(key, parts),
                    None => readable = false,
                }
            }
        }
        Ok(readable.then_some(all))
    })
}

/// Sends the excerpts of a run's trials to the decoding threads, and returns how many there were.
fn send_all(
    connection: &Connection,
    run: i64,
    send: &mpsc::SyncSender<((u32, u32), Vec<u8>)>,
) -> Result<usize, ReadError> {
    let mut statement = connection.prepare_cached(
        "SELECT cell, repetition, excerpt FROM trials JOIN excerpts USING (run, cell, repetition) WHERE run = ?",
    )?;
    let mut rows = statement.query([run])?;
    let mut sent = 0;
    while let Some(row) = rows.next()? {
        send.send(((row.get(0)?, row.get(1)?), row.get(2)?)).expect("they take all that comes");
        sent += 1;
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::load::{
        Audit, CallReport, ClockReport, Expected, GroupFsyncs, OperationReport, PhaseReport, ReplayReport, Span,
    };
    use fstone_model::result::{CommandRecord, Effective, TrialId};
    use fstone_model::{Better, Figure, Histogram, Outcome, Unit};
    use sha2::{Digest, Sha256};

    /// A trial with something in every field that an excerpt has.
    fn trial() -> Trial {
        let latency = Histogram::from_values(&[100, 2_000, 1 << 41]);
        let expected = Some(Expected { expected: 1.0, observed: 0.5 });
        let load = LoadReport {
            seed: 1,
            setup_ns: 2,
            elapsed_ns: 3,
            phases: vec![PhaseReport { name: "main".into(), groups: vec!["g".into()], elapsed_ns: 4, sync_ns: 1 }],
            operations: vec![OperationReport {
                phase: "main".into(),
                group: "g".into(),
                name: "read".into(),
                invocations: 3,
                requested_share: 0.5,
                latency: latency.clone(),
                at_work: Some([Span { begin_ns: 5, end_ns: 6 }, Span { begin_ns: 7, end_ns: 8 }]),
                ..OperationReport::default()
            }],
            group_fsyncs: vec![GroupFsyncs {
                phase: "main".into(),
                group: "g".into(),
                periodic: 7,
                at_end: 8,
                latency: latency.clone(),
                commits: latency.clone(),
            }],
            calls: vec![CallReport { group: "g".into(), call: "fsync".into(), latency }],
            series: vec![fstone_model::load::SeriesPoint { operations: 9, ..Default::default() }],
            series_interval_ns: 10,
            errors: vec![fstone_model::load::ErrorReport { operation: "read".into(), errno: -5, ..Default::default() }],
            audit: Audit { rate: expected, mix_error_points: Some(0.25), verified_bytes: 11, ..Audit::default() },
            clock: ClockReport { source: "tsc".into(), cost_ns: 14.5, resolution_ns: 0.5 },
            warnings: vec!["beware".into()],
            replay: Some(Box::new(ReplayReport {
                think_ns: 12,
                differences: 13,
                unexplained: 14,
                ..ReplayReport::default()
            })),
            ..LoadReport::default()
        };
        use Unit::{Bytes, BytesPerSecond, Count, Nanoseconds, PerSecond, Percent, Ratio, Seconds};
        let units = [Seconds, Nanoseconds, Bytes, BytesPerSecond, PerSecond, Percent, Count, Ratio];
        let figure = |(number, unit): (u32, Unit)| Figure {
            metric: format!("figure {number}"),
            value: f64::from(number) - 0.25,
            unit,
            better: [Better::Higher, Better::Lower, Better::Neither][number as usize % 3],
        };
        let command = CommandRecord {
            argv: vec!["mkfs".into(), "-q".into()],
            status: Some(-1),
            duration_ns: 12,
            output_tail: "done".into(),
        };
        let step = StepResult {
            step: "load".into(),
            started_ns: 13,
            duration_ns: 14,
            commands: vec![command],
            figures: (0..).zip(units).map(figure).collect(),
            load: Some(Box::new(load)),
        };
        Trial {
            id: TrialId { cell: 0, repetition: 0 },
            position: 0,
            started_unix_ns: 0,
            duration_ns: 0,
            seed: 0,
            outcome: Outcome::Completed,
            steps: vec![step],
            effective: Effective { mount: None, superblock: vec![("features".into(), "extent".into())] },
            warnings: vec!["the device was busy".into()],
        }
    }

    #[test]
    fn an_excerpt_gives_back_what_went_in() {
        let whole = trial();
        let parts = decode(&encode(&whole), Loads::Shown).expect("of this layout");
        assert_eq!((parts.steps, parts.superblock), (whole.steps.clone(), whole.effective.superblock.clone()));
        assert_eq!(parts.warnings, whole.warnings);
        let without = decode(&encode(&whole), Loads::LeftOut).expect("of this layout");
        assert_eq!(without.steps, [StepResult { load: None, ..whole.steps[0].clone() }]);
        let mut timeless = whole.steps.clone();
        timeless[0].load.as_mut().expect("a load").series.clear();
        assert_eq!(decode(&encode(&whole), Loads::WithoutSeries).expect("of this layout").steps, timeless);
    }

    #[test]
    fn what_is_no_excerpt_of_this_layout_is_none() {
        let excerpt = encode(&trial());
        assert_eq!(decode(&[], Loads::Shown), None);
        assert_eq!(decode(&[&[LAYOUT + 1], &excerpt[1..]].concat(), Loads::Shown), None, "another layout");
        assert_eq!(decode(&[&excerpt[..], &[0]].concat(), Loads::Shown), None, "too long");
        for end in 0..excerpt.len() {
            assert_eq!(decode(&excerpt[..end], Loads::Shown), None, "cut at {end}");
        }
    }

    /// Stores have excerpts of earlier versions of this program. If this fails, the types that an excerpt consists of have changed:
    /// raise `LAYOUT`, and put the new number and digest here.
    #[test]
    fn the_layout_has_a_number_of_its_own() {
        let digest: String = Sha256::digest(encode(&trial())).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((LAYOUT, digest.as_str()), (8, "566d754b112cdb613d334ff88db83172467b0bd5141b2e00f591d7039e1a5840"));
    }
}

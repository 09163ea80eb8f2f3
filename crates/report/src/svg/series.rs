//! Throughput over the time of a trial: is the figure one level, or the mean of a fast start and a slow rest?

use super::{
    axis::Axis,
    canvas::{Anchor, Canvas, through},
    figure::{Chapter, Drawing, Figure, Look, slug},
    frame::{axis_words, horizontal_axis, labels_width, vertical_axis},
    multiples::{Panels, shown},
};
use crate::{
    Analysis,
    analysis::LoadStep,
    number::{Scale, is_whole},
    text::{counted, line, title},
};
use fstone_model::{
    LoadReport, Trial, Unit,
    output::{OutputFigure, Several, series_of},
    study::StepAction,
};

const HEIGHT: f64 = 90.0;
const MIN_POINTS: usize = 4;
const MAX_TRIALS: usize = 30;
const MAX_POINTS: usize = 240;

/// Where on the axis, and the value.
type Trace = Vec<(f64, f64)>;

struct Traces {
    row: usize,
    /// Seconds and rate, per trial.
    trials: Vec<Vec<(f64, f64)>>,
    median: Vec<(f64, f64)>,
}

/// What is drawn over what.
struct Axes<'a> {
    step: &'a str,
    what: &'a str,
    unit: Unit,
    along: &'static str,
}

/// The figure; `None` without a series.
pub(super) fn figure<'a>(analysis: &'a Analysis<'a>, load: &'a LoadStep<'a>) -> Option<Figure<'a>> {
    let counts_transactions = load.rows.iter().flat_map(|row| &row.reports).any(|report| report.transactions() > 0);
    let what = if counts_transactions { "transactions per second" } else { "operations per second" };
    let axes = Axes { step: &load.step, what, unit: Unit::PerSecond, along: "seconds since the start" };
    let of_row = |row: usize| load.rows.iter().find(|of_row| of_row.row == row);
    of_trials(analysis, axes, &|row| {
        Some(of_row(row)?.reports.iter().map(|report| rates(report, counts_transactions)).collect())
    })
}

/// The figures of the series that commands print.
pub(super) fn printed<'a>(analysis: &'a Analysis<'a>) -> Vec<Figure<'a>> {
    let mut known: Vec<(&str, &OutputFigure)> = Vec::new();
    for step in analysis.dataset.run.plan.cells.iter().flat_map(|cell| &cell.steps) {
        let StepAction::Command { figures, .. } = &step.action else { continue };
        for figure in figures.iter().filter(|figure| figure.several == Several::Each) {
            if !known.iter().any(|(name, other)| *name == step.name && other.name == figure.name) {
                known.push((&step.name, figure));
            }
        }
    }
    let drawn = known.into_iter().filter_map(|(step, figure)| {
        let points = |trial: &Trial| -> Trace {
            let figures = trial.steps.iter().filter(|one| one.step == step).flat_map(|step| &step.figures);
            let point = |one: &fstone_model::Figure| {
                let (name, number) = series_of(&one.metric)?;
                (name == figure.name).then_some((number as f64, one.value))
            };
            figures.filter_map(point).collect()
        };
        let axes = Axes { step, what: &figure.name, unit: figure.unit, along: "number in the output" };
        of_trials(analysis, axes, &|row| {
            let trials = analysis.rows[row].trials.iter().filter(|trial| trial.outcome.is_completed());
            let trials: Vec<Trace> = trials.map(|trial| points(trial)).collect();
            trials.iter().any(|trial| !trial.is_empty()).then_some(trials)
        })
    });
    drawn.collect()
}

fn of_trials<'a>(
    analysis: &'a Analysis<'a>,
    axes: Axes<'a>,
    of_row: &dyn Fn(usize) -> Option<Vec<Trace>>,
) -> Option<Figure<'a>> {
    let (rows, note) = shown(analysis, &|row| of_row(row).is_some());
    let traces: Vec<Traces> = rows
        .iter()
        .filter_map(|&row| {
            let trials = of_row(row)?.into_iter().filter(|trial| trial.len() >= MIN_POINTS).collect::<Vec<_>>();
            let median = median(&trials);
            (!median.is_empty()).then_some(Traces { row, trials, median })
        })
        .collect();
    // Showing only a few rows would look as if the others had nothing to show.
    if traces.len() * 2 < rows.len() || traces.is_empty() {
        return None;
    }
    let note = if traces.len() < rows.len() {
        format!("{note} Rows with fewer than {MIN_POINTS} moments are left out.")
    } else {
        note
    };
    let Axes { step, what, unit, .. } = axes;
    let told: Vec<String> = traces
        .iter()
        .map(|traces| {
            let low = traces.median.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
            let high = traces.median.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
            let scale = Scale::choose(unit, &[low, high].map(|value| (value, None)), is_whole(low) && is_whole(high));
            let row = &analysis.rows[traces.row];
            format!(
                "{}: {} to {} over {}",
                row.label,
                scale.number(low),
                scale.with_unit(high),
                counted(traces.trials.len(), "trial")
            )
        })
        .collect();
    let what = line(what);
    Some(Figure {
        slug: slug(&[step, if unit == Unit::PerSecond { "" } else { &what }, "over time"]),
        chapter: Chapter::Load,
        title: format!("{}: {what} over time", title(step)),
        caption: format!("Thin lines are single trials, the thick one their median at each moment.{note}"),
        description: format!("{} over the time of a trial, by row: {}.", title(&what), told.join("; ")),
        logarithmic: false,
        number: 0,
        draw: Box::new(move |look| draw(analysis, &traces, &what, &axes, look)),
    })
}

/// (seconds since the start, per second) for every full interval; neighbours averaged when there are very many.
fn rates(report: &LoadReport, transactions: bool) -> Vec<(f64, f64)> {
    let interval = report.series_interval_ns as f64 / 1e9;
    if interval <= 0.0 {
        return Vec::new();
    }
    let points: Vec<(f64, f64)> = report
        .whole_points()
        .into_iter()
        .map(|(begin, point)| {
            let count = if transactions { point.transactions } else { point.operations };
            (begin as f64 / 1e9 + 0.5 * interval, count as f64 / interval)
        })
        .collect();
    let together = points.len().div_ceil(MAX_POINTS).max(1);
    points
        .chunks(together)
        .map(|chunk| {
            let mean = |pick: &dyn Fn(&(f64, f64)) -> f64| chunk.iter().map(pick).sum::<f64>() / chunk.len() as f64;
            (mean(&|point| point.0), mean(&|point| point.1))
        })
        .collect()
}

/// At each moment of the longest trial the median of what trials have then: whose phases ended at other times has other moments.
fn median(trials: &[Vec<(f64, f64)>]) -> Vec<(f64, f64)> {
    let Some(longest) = trials.iter().max_by_key(|trial| trial.len()) else { return Vec::new() };
    let apart = longest.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(f64::INFINITY, f64::min);
    longest
        .iter()
        .map(|&(moment, _)| {
            let mut values: Vec<f64> =
                trials.iter().filter_map(|trial| value_at(trial, moment, 0.501 * apart)).collect();
            values.sort_by(f64::total_cmp);
            let middle = values.len() / 2;
            let median =
                if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) };
            (moment, median)
        })
        .collect()
}

/// The value nearest to a moment, if it is no farther away than that.
fn value_at(trial: &[(f64, f64)], moment: f64, reach: f64) -> Option<f64> {
    let after = trial.partition_point(|point| point.0 < moment);
    let near = trial[after.saturating_sub(1)..].iter().take(2);
    let distance = |point: &(f64, f64)| (point.0 - moment).abs();
    let nearest = near.min_by(|one, other| distance(one).total_cmp(&distance(other)))?;
    (distance(nearest) <= reach).then_some(nearest.1)
}

fn draw(analysis: &Analysis<'_>, traces: &[Traces], what: &str, axes: &Axes<'_>, look: Look) -> Drawing {
    let mut canvas = Canvas::default();
    let points = || traces.iter().flat_map(|traces| traces.trials.iter().flatten());
    let up = Axis::linear(points().map(|point| point.1), true, HEIGHT, 0.0);
    let scale = Scale::of_one(axes.unit, up.high());
    canvas.text(0.0, 11.0, Anchor::Start, "fs-m", what);
    let left = labels_width(&up, scale.divisor, 3) + 10.0;
    let titles: Vec<String> = traces.iter().map(|traces| analysis.rows[traces.row].label.clone()).collect();
    let panels = Panels::new(&titles, look, left, 24.0, HEIGHT);
    let longest = points().map(|point| point.0).fold(0.0, f64::max);
    let across = Axis::exact(0.0, longest * 1.02, 0.0, panels.width);
    panels.draw(&mut canvas, |canvas, index| {
        vertical_axis(canvas, &up, scale.divisor, 3, 0.0, panels.width);
        horizontal_axis(canvas, &across, 1.0, 4, 0.0, HEIGHT);
        canvas.open("fs-0");
        let place = |points: &[(f64, f64)]| through(points.iter().map(|(x, y)| Some((across.at(*x), up.at(*y)))));
        if traces[index].trials.len() > 1 {
            let thin: String = traces[index].trials.iter().take(MAX_TRIALS).map(|trial| place(trial)).collect();
            canvas.path(&thin, "fs-thin");
        }
        canvas.path(&place(&traces[index].median), "fs-line");
        canvas.close();
    });
    let bottom = axis_words(&mut canvas, axes.along, look.width / 2.0, panels.total + 12.0, look.width);
    Drawing { width: look.width, height: bottom - 4.0, body: canvas.finish() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::load::{PhaseReport, SeriesPoint};

    #[test]
    fn the_last_partial_interval_is_left_out() {
        let point = |operations| SeriesPoint { operations, ..SeriesPoint::default() };
        let report = LoadReport {
            series: vec![point(100), point(120), point(7)],
            series_interval_ns: 500_000_000,
            running_ns: 1_030_000_000,
            ..LoadReport::default()
        };
        assert_eq!(rates(&report, false), [(0.25, 200.0), (0.75, 240.0)]);
    }

    #[test]
    fn a_constant_rate_in_two_phases_is_constant() {
        let phase = |ms: u64| PhaseReport { elapsed_ns: ms * 1_000_000, ..PhaseReport::default() };
        let report = LoadReport {
            series: [100, 50, 100, 50].map(|operations| SeriesPoint { operations, ..SeriesPoint::default() }).to_vec(),
            series_interval_ns: 1_000_000_000,
            running_ns: 3_000_000_000,
            phases: vec![phase(1_500), phase(1_500)],
            ..LoadReport::default()
        };
        assert_eq!(rates(&report, false), [(0.5, 100.0), (2.0, 100.0)]);
    }

    #[test]
    fn medians_are_taken_where_there_are_values() {
        let trials = vec![vec![(0.5, 1.0), (1.5, 5.0)], vec![(0.5, 3.0)]];
        assert_eq!(median(&trials), [(0.5, 2.0), (1.5, 5.0)]);
        // The first phase of the second trial was a second longer.
        let trials = vec![vec![(0.5, 1.0), (1.5, 5.0), (2.5, 6.0)], vec![(0.5, 3.0), (2.6, 8.0)]];
        assert_eq!(median(&trials), [(0.5, 2.0), (1.5, 5.0), (2.5, 7.0)]);
        assert_eq!(median(&[vec![(0.5, 2.0)]]), [(0.5, 2.0)]);
    }
}

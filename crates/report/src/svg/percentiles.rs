//! Latency by percentile: how long the slowest one in ten, in a hundred, in a thousand take.

use super::{
    axis::Axis,
    canvas::{Anchor, Canvas, Px, between, through},
    figure::{Chapter, Drawing, Figure, Look, slug},
    frame::{LINE, TEXT, axis_words, labels_width, legend, vertical_axis},
    measure::{text_width, wrap},
    multiples::{Panels, shown},
};
use crate::{Analysis, analysis::LoadStep, number::Scale};
use fstone_model::{Histogram, Unit, histogram::bounds_of};
use std::{borrow::Cow, sync::LazyLock};

/// Steps of the horizontal axis, in powers of ten of 1 / (1 - share).
const STEP: f64 = 0.1;
/// The share at every step, for as many as 2^64 values have.
static SHARES: LazyLock<[f64; 194]> =
    LazyLock::new(|| std::array::from_fn(|step| 1.0 - 10f64.powf(-STEP * step as f64)));
const HEIGHT: f64 = 260.0;
const SMALL_HEIGHT: f64 = 120.0;
/// More curves than this in one plot cannot be followed, and get a panel each.
const OVERLAID: usize = 4;

/// A row's curve: latency in ns at each step, as far as there are values to tell; all trials together, and the
/// lowest and highest of the single trials.
struct Curve {
    row: usize,
    all: Vec<f64>,
    edges: Vec<(f64, f64)>,
    /// p50, p99, p99.9.
    told: [Option<f64>; 3],
}

pub(super) fn figures<'a>(analysis: &'a Analysis<'a>, load: &'a LoadStep<'a>) -> Vec<Figure<'a>> {
    load.operations.iter().filter_map(|operation| figure(analysis, load, operation)).collect()
}

fn figure<'a>(analysis: &'a Analysis<'a>, load: &'a LoadStep<'a>, operation: &str) -> Option<Figure<'a>> {
    let of_row = |row: usize| load.rows.iter().find(|of_row| of_row.row == row);
    let (rows, note) = shown(analysis, &|row| of_row(row).is_some());
    let curves: Vec<Curve> = rows.iter().filter_map(|row| curve(*row, &of_row(*row)?.latencies(operation))).collect();
    if curves.is_empty() {
        return None;
    }
    let scale = |value: f64| Scale::of_one(Unit::Nanoseconds, value).with_unit(value);
    let told: Vec<String> = curves
        .iter()
        .map(|curve| {
            let [p50, p99, p999] = curve.told.map(|value| value.map_or_else(|| "unknown".to_owned(), scale));
            format!("{}: median {p50}, 99 % {p99}, 99.9 % {p999}", analysis.rows[curve.row].label)
        })
        .collect();
    let overlaid = curves.len() <= OVERLAID;
    let caption = if overlaid {
        "Further right is rarer: at 99 %, one operation in a hundred takes longer. Bands cover the single trials."
    } else {
        "Further right is rarer: at 99 %, one operation in a hundred takes longer. Grey: the other rows. Bands cover the single trials."
    };
    Some(Figure {
        slug: slug(&[&load.step, operation, "latency"]),
        chapter: Chapter::Load,
        title: format!("{}: latency of {operation}", crate::text::title(&load.step)),
        caption: format!("{caption}{note}"),
        description: format!("Latency of {operation} by row: {}.", told.join("; ")),
        logarithmic: false,
        number: 0,
        draw: Box::new(
            move |look| if overlaid { one_plot(analysis, &curves, look) } else { many_plots(analysis, &curves, look) },
        ),
    })
}

fn curve(row: usize, trials: &[Cow<'_, Histogram>]) -> Option<Curve> {
    let merged = Histogram::merged(trials.iter().map(|trial| &**trial));
    if merged.count() == 0 {
        return None;
    }
    let all = along(&merged);
    let single: Vec<Vec<f64>> = trials.iter().map(|trial| along(trial)).collect();
    let edges = if single.len() < 2 {
        Vec::new()
    } else {
        // As far as every trial tells.
        let length = single.iter().map(Vec::len).min().unwrap_or(0);
        (0..length)
            .map(|step| {
                let at = single.iter().map(|trial| trial[step]);
                (at.clone().fold(f64::INFINITY, f64::min), at.fold(0.0, f64::max))
            })
            .collect()
    };
    let told =
        [50.0, 99.0, 99.9].map(|percent| merged.percentile_ns(percent).filter(|_| merged.has_percentile(percent)));
    Some(Curve { row, all, edges, told })
}

/// Latency at every step up to the rarest share that the count can tell: at least one value lies beyond.
fn along(histogram: &Histogram) -> Vec<f64> {
    let count = histogram.count() as f64;
    let steps = (count.log10() / STEP).floor() as usize;
    let mut latencies = Vec::with_capacity(steps + 1);
    let (mut seen, mut buckets) = (0.0, histogram.buckets().iter());
    let mut current = histogram.min_ns() as f64;
    for step in 0..=steps {
        let rank = (SHARES.get(step).copied().unwrap_or(1.0) * count).max(1.0);
        while seen < rank {
            let Some((bucket, of_bucket)) = buckets.next() else { break };
            seen += *of_bucket as f64;
            let (low, next) = bounds_of(*bucket as usize);
            current = f64::midpoint(low as f64, (next - 1) as f64)
                .clamp(histogram.min_ns() as f64, histogram.max_ns() as f64);
        }
        latencies.push(current.max(1.0));
    }
    latencies
}

fn axes(curves: &[Curve], width: f64, height: f64) -> (Axis, Axis) {
    let longest = curves.iter().map(|curve| curve.all.len()).max().unwrap_or(1);
    let across = Axis::exact(0.0, ((longest - 1) as f64 * STEP).max(1.0), 0.0, width);
    let values = || {
        curves
            .iter()
            .flat_map(|curve| curve.all.iter().copied().chain(curve.edges.iter().flat_map(|edge| [edge.0, edge.1])))
    };
    let up = Axis::logarithmic(values(), height, 0.0).unwrap_or_else(|| Axis::exact(0.0, 1.0, height, 0.0));
    (across, up)
}

/// Ticks at 0, 90, 99 … per cent, and labels where there is room.
fn percent_axis(canvas: &mut Canvas, across: &Axis, height: f64) {
    let mut nines = 0;
    let mut free_from = f64::NEG_INFINITY;
    while f64::from(nines) <= across.high() + 1e-9 {
        let x = across.at(f64::from(nines));
        canvas.line(x, 0.0, x, height, "fs-grid");
        let label = match nines {
            0 => "0 %".to_owned(),
            1 => "90 %".to_owned(),
            2 => "99 %".to_owned(),
            n => format!("99.{} %", "9".repeat(usize::try_from(n - 2).unwrap_or(1))),
        };
        // The last label ends at the plot's edge rather than beyond it.
        let half = text_width(&label, 11.0) / 2.0;
        let middle = x.min(across.to() - half);
        if middle - half > free_from {
            canvas.text(middle, height + 15.0, Anchor::Middle, "fs-m fs-s", &label);
            free_from = middle + half + 8.0;
        }
        nines += 1;
    }
}

fn trace(canvas: &mut Canvas, curve: &Curve, series: usize, across: &Axis, up: &Axis) {
    canvas.open(&format!("fs-{series}"));
    let edge = |pick: &dyn Fn(&(f64, f64)) -> f64| -> Vec<(f64, f64)> {
        curve.edges.iter().enumerate().map(|(step, edge)| (across.at(step as f64 * STEP), up.at(pick(edge)))).collect()
    };
    canvas.path(&between(&edge(&|edge| edge.1), &edge(&|edge| edge.0)), "fs-band");
    canvas.path(&path(curve, across, up), "fs-line");
    canvas.close();
}

fn path(curve: &Curve, across: &Axis, up: &Axis) -> String {
    through(curve.all.iter().enumerate().map(|(step, latency)| Some((across.at(step as f64 * STEP), up.at(*latency)))))
}

/// The largest latency decides the unit of the axis.
fn divisor(up: &Axis) -> Scale {
    Scale::of_one(Unit::Nanoseconds, (up.low() * up.high()).sqrt())
}

fn one_plot(analysis: &Analysis<'_>, curves: &[Curve], look: Look) -> Drawing {
    let mut canvas = Canvas::default();
    let names: Vec<&str> = curves.iter().map(|curve| analysis.rows[curve.row].label.as_str()).collect();
    let mut top = legend(&mut canvas, &names, look.width, false);
    let (_, up) = axes(curves, look.width, HEIGHT);
    let scale = divisor(&up);
    for line in wrap(&format!("latency ({}), logarithmic", scale.symbol), TEXT, look.width) {
        canvas.text(0.0, top + 10.0, Anchor::Start, "fs-m", &line);
        top += LINE;
    }
    top += 12.0;
    let left = labels_width(&up, scale.divisor, 6) + 10.0;
    let (across, up) = axes(curves, look.width - left, HEIGHT);
    canvas.raw(&format!("<g transform=\"translate({} {})\">", Px(left), Px(top)));
    vertical_axis(&mut canvas, &up, scale.divisor, 6, 0.0, look.width - left);
    percent_axis(&mut canvas, &across, HEIGHT);
    for (series, curve) in curves.iter().enumerate() {
        trace(&mut canvas, curve, series, &across, &up);
        // Marks on the line, shifted from series to series, so that shape tells as much as colour.
        canvas.open(&format!("fs-{series}"));
        for step in (series * 2..curve.all.len()).step_by(14) {
            let (x, y) = (across.at(step as f64 * STEP), up.at(curve.all[step]));
            canvas.mark(x, y, super::canvas::Shape::of(series), 3.4);
        }
        canvas.close();
    }
    canvas.close();
    let bottom = axis_words(
        &mut canvas,
        "share of operations that are faster",
        look.width / 2.0,
        top + HEIGHT + 36.0,
        look.width,
    );
    Drawing { width: look.width, height: bottom - 4.0, body: canvas.finish() }
}

fn many_plots(analysis: &Analysis<'_>, curves: &[Curve], look: Look) -> Drawing {
    let mut canvas = Canvas::default();
    let (_, up) = axes(curves, 1.0, SMALL_HEIGHT);
    let scale = divisor(&up);
    canvas.text(0.0, 11.0, Anchor::Start, "fs-m", &format!("latency ({}), logarithmic", scale.symbol));
    let left = labels_width(&up, scale.divisor, 4) + 10.0;
    let titles: Vec<String> = curves.iter().map(|curve| analysis.rows[curve.row].label.clone()).collect();
    let panels = Panels::new(&titles, look, left, 24.0, SMALL_HEIGHT);
    let (across, up) = axes(curves, panels.width, SMALL_HEIGHT);
    let ghosts: Vec<String> = curves.iter().map(|curve| path(curve, &across, &up)).collect();
    // Drawn once, and put behind every panel.
    canvas.raw(&format!("<defs><path id=\"{}\" class=\"fs-ghost\" d=\"{}\"/></defs>", look.id(), ghosts.concat()));
    panels.draw(&mut canvas, |canvas, index| {
        vertical_axis(canvas, &up, scale.divisor, 4, 0.0, panels.width);
        percent_axis(canvas, &across, SMALL_HEIGHT);
        canvas.raw(&format!("<use href=\"#{}\"/>", look.id()));
        trace(canvas, &curves[index], 0, &across, &up);
    });
    let bottom = axis_words(
        &mut canvas,
        "share of operations that are faster",
        look.width / 2.0,
        panels.total + 12.0,
        look.width,
    );
    Drawing { width: look.width, height: bottom - 4.0, body: canvas.finish() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_that_few_operations_do_not_have_is_not_told() {
        let told =
            |count: usize| curve(0, &[Cow::Owned(Histogram::from_values(&vec![1000; count]))]).expect("a curve").told;
        assert_eq!(told(1000).map(|value| value.is_some()), [true; 3]);
        assert_eq!(told(999).map(|value| value.is_some()), [true, true, false]);
        assert_eq!(told(99).map(|value| value.is_some()), [true, false, false]);
        assert_eq!(told(1).map(|value| value.is_some()), [false; 3]);
    }

    #[test]
    fn a_curve_goes_as_far_as_there_are_values() {
        let values: Vec<u64> = (1..=1000).map(|value| value * 1000).collect();
        let latencies = along(&Histogram::from_values(&values));
        assert_eq!(latencies.len(), 31);
        // The median is a third of a power of ten along.
        assert!((latencies[3] / 500_000.0 - 1.0).abs() < 0.01, "{}", latencies[3]);
        assert!((latencies[10] / 900_000.0 - 1.0).abs() < 0.01);
        assert!((latencies[30] / 999_000.0 - 1.0).abs() < 0.01);
    }
}

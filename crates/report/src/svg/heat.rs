//! Latency over time as a heat map: stalls, pauses and write-back that a percentile hides.

use super::{
    axis::Axis,
    canvas::{Anchor, Canvas, Px},
    figure::{Chapter, Drawing, Figure, Look, slug},
    frame::{axis_words, horizontal_axis, labels_width, vertical_axis},
    multiples::{Panels, shown},
};
use crate::{
    Analysis,
    analysis::{LoadRow, LoadStep},
    number::Scale,
};
use fstone_model::{Unit, histogram::bounds_of, load_series::Moment};
use std::fmt::Write;

const HEIGHT: f64 = 110.0;
const MOMENTS: u64 = 60;
const BINS: usize = 22;
const MIN_POINTS: usize = 4;
/// Shares of a moment's operations from which the next darker shade is used, and the shades.
const SHADES: [(f64, &str); 6] = [(0.3, "1"), (0.1, ".8"), (0.03, ".6"), (0.01, ".42"), (0.003, ".27"), (0.0, ".14")];

struct Map {
    row: usize,
    /// How long its load ran, and how long a moment is.
    seconds: f64,
    moment: f64,
    counts: Vec<[f64; BINS]>,
    slowest_ns: u64,
}

/// The figure; `None` without a series that has latencies.
pub(super) fn figure<'a>(analysis: &'a Analysis<'a>, load: &'a LoadStep<'a>) -> Option<Figure<'a>> {
    let of_row = |row: usize| load.rows.iter().find(|of_row| of_row.row == row);
    let (rows, note) = shown(analysis, &|row| of_row(row).is_some());
    let rows: Vec<&LoadRow<'_>> = rows.into_iter().filter_map(of_row).collect();
    let points = || rows.iter().flat_map(|row| row.reports.iter().flat_map(|report| &report.series));
    let low =
        points().filter(|point| point.latency.count() > 0).map(|point| point.latency.min_ns()).min()?.max(1) as f64;
    let high = points().map(|point| point.latency.max_ns()).max()?.max(2) as f64;
    let high = high.max(low * 2.0);
    let maps: Vec<Map> = rows.iter().filter_map(|row| map(row, low, high)).collect();
    // Showing only a few rows would look as if the others had nothing to show.
    if maps.len() * 2 < rows.len() || maps.is_empty() {
        return None;
    }
    let note = if maps.len() < rows.len() {
        format!("{note} Rows with fewer than {MIN_POINTS} moments are left out.")
    } else {
        note
    };
    let told: Vec<String> = maps
        .iter()
        .map(|map| {
            let slowest = map.slowest_ns as f64;
            let slowest = Scale::of_one(Unit::Nanoseconds, slowest).with_unit(slowest);
            format!("{}: slowest {slowest}", analysis.rows[map.row].label)
        })
        .collect();
    Some(Figure {
        slug: slug(&[&load.step, "latency over time"]),
        chapter: Chapter::Load,
        title: format!("{}: latency over time", crate::text::title(&load.step)),
        caption: format!(
            "The darker, the more of a moment's operations took that long (all trials together; each shade is about \
             three times the next).{note}"
        ),
        description: format!("Latency of operations over the time of a trial, by row: {}.", told.join("; ")),
        logarithmic: false,
        number: 0,
        draw: Box::new(move |look| draw(analysis, &maps, (low, high), look)),
    })
}

/// The moments of a row. Points that were cut short are drawn, too: a shade is a share of its own moment's operations.
fn map(row: &LoadRow<'_>, low: f64, high: f64) -> Option<Map> {
    let reports: Vec<Vec<Moment<'_>>> = row.reports.iter().map(|report| report.moments()).collect();
    reports.iter().map(Vec::len).max().filter(|points| *points >= MIN_POINTS)?;
    let interval_ns = row.reports.iter().map(|report| report.series_interval_ns).max()?.max(1);
    let moments = || reports.iter().flatten();
    let end_ns = moments().map(|moment| moment.begin_ns.saturating_add(moment.length_ns)).max()?.max(1);
    // Never shorter than a point, so that none is without one.
    let moment_ns = interval_ns.saturating_mul(end_ns.div_ceil(interval_ns).div_ceil(MOMENTS));
    let mut counts = vec![[0.0; BINS]; end_ns.div_ceil(moment_ns) as usize];
    let last = counts.len() - 1;
    let mut slowest_ns = 0;
    for Moment { begin_ns, point, .. } in moments() {
        slowest_ns = slowest_ns.max(point.latency.max_ns());
        let of_moment = &mut counts[((begin_ns / moment_ns) as usize).min(last)];
        for (bucket, count) in point.latency.buckets() {
            let (from, next) = bounds_of(*bucket as usize);
            let middle = f64::midpoint(from as f64, (next - 1) as f64).clamp(low, high);
            let share = (middle / low).ln() / (high / low).ln();
            let bin = ((share * BINS as f64) as usize).min(BINS - 1);
            of_moment[bin] += *count as f64;
        }
    }
    Some(Map { row: row.row, seconds: end_ns as f64 / 1e9, moment: moment_ns as f64 / 1e9, counts, slowest_ns })
}

fn draw(analysis: &Analysis<'_>, maps: &[Map], (low, high): (f64, f64), look: Look) -> Drawing {
    let mut canvas = Canvas::default();
    let up = Axis::logarithmic([low, high], HEIGHT, 0.0).unwrap_or_else(|| Axis::exact(0.0, 1.0, HEIGHT, 0.0));
    let scale = Scale::of_one(Unit::Nanoseconds, (low * high).sqrt());
    canvas.text(0.0, 11.0, Anchor::Start, "fs-m", &format!("latency ({}), logarithmic", scale.symbol));
    let left = labels_width(&up, scale.divisor, 4) + 10.0;
    let titles: Vec<String> = maps.iter().map(|map| analysis.rows[map.row].label.clone()).collect();
    let panels = Panels::new(&titles, look, left, 24.0, HEIGHT);
    let longest = maps.iter().map(|map| map.seconds).fold(0.0, f64::max);
    let across = Axis::exact(0.0, longest, 0.0, panels.width);
    panels.draw(&mut canvas, |canvas, index| {
        vertical_axis(canvas, &up, scale.divisor, 4, 0.0, panels.width);
        horizontal_axis(canvas, &across, 1.0, 4, 0.0, HEIGHT);
        canvas.open("fs-0");
        shade(canvas, &maps[index], &across, &up, (low, high));
        canvas.close();
    });
    let bottom = axis_words(&mut canvas, "seconds since the start", look.width / 2.0, panels.total + 12.0, look.width);
    Drawing { width: look.width, height: bottom - 4.0, body: canvas.finish() }
}

/// One path per shade, of rectangles that span neighbouring moments of the same shade.
fn shade(canvas: &mut Canvas, map: &Map, across: &Axis, up: &Axis, (low, high): (f64, f64)) {
    let shade_of = |index: usize, bin: usize| -> Option<usize> {
        let counts = &map.counts[index];
        let total: f64 = counts.iter().sum();
        (counts[bin] > 0.0).then(|| {
            SHADES.iter().position(|(from, _)| counts[bin] / total >= *from).expect("the last shade is for all")
        })
    };
    let mut paths = vec![String::new(); SHADES.len()];
    for bin in 0..BINS {
        let edge = |bin: usize| up.at(low * (high / low).powf(bin as f64 / BINS as f64));
        let (bottom, top) = (edge(bin), edge(bin + 1));
        let mut index = 0;
        while index < map.counts.len() {
            let shade = shade_of(index, bin);
            let start = index;
            while index < map.counts.len() && shade_of(index, bin) == shade {
                index += 1;
            }
            if let Some(shade) = shade {
                let at = |moment: usize| across.at((moment as f64 * map.moment).min(map.seconds));
                let (x, end) = (at(start), at(index));
                let _ = write!(paths[shade], "M{} {}H{}V{}H{}z", Px(x), Px(top), Px(end), Px(bottom), Px(x));
            }
        }
    }
    for ((_, opacity), d) in SHADES.iter().zip(&paths).filter(|(_, d)| !d.is_empty()) {
        canvas.raw(&format!("<path fill=\"currentColor\" fill-opacity=\"{opacity}\" d=\"{d}\"/>"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::{
        Histogram, LoadReport,
        load::{PhaseReport, SeriesPoint},
    };

    /// A report of points of a second with one operation each.
    fn report(points: usize, phases_ms: &[u64]) -> LoadReport {
        let phase = |ms: &u64| PhaseReport { elapsed_ns: ms * 1_000_000, ..PhaseReport::default() };
        let point = SeriesPoint { latency: Histogram::from_values(&[1000]), ..SeriesPoint::default() };
        LoadReport {
            running_ns: phases_ms.iter().sum::<u64>() * 1_000_000,
            phases: if phases_ms.len() > 1 { phases_ms.iter().map(phase).collect() } else { Vec::new() },
            series: vec![point; points],
            series_interval_ns: 1_000_000_000,
            ..LoadReport::default()
        }
    }

    /// (seconds, operations by moment).
    fn drawn(reports: &[LoadReport]) -> (f64, Vec<f64>) {
        let row = LoadRow { row: 0, reports: reports.iter().collect() };
        let map = map(&row, 500.0, 2000.0).expect("enough points");
        (map.seconds, map.counts.iter().map(|bins| bins.iter().sum()).collect())
    }

    #[test]
    fn points_are_drawn_when_they_were() {
        assert_eq!(drawn(&[report(5, &[4_500])]), (4.5, vec![1.0; 5]));
        // Three phases of a second and a half: six points, in four and a half seconds.
        let three = report(6, &[1_500, 1_500, 1_500]);
        assert_eq!(drawn(std::slice::from_ref(&three)), (4.5, vec![1.0, 2.0, 1.0, 1.0, 1.0]));
        // Beside a trial whose points were merged.
        let merged = LoadReport { series_interval_ns: 2_000_000_000, series_doublings: 1, ..report(3, &[4_500]) };
        assert_eq!(drawn(&[three, merged]), (4.5, vec![4.0, 3.0, 2.0]));
        assert_eq!(drawn(&[report(121, &[120_500])]).1.len(), 41, "three seconds each");
    }
}

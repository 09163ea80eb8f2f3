//! All figures of a run.

use super::{column, figure::Figure, heat, order, percentiles, series, then_lines, then_now};
use crate::{Analysis, Options, analysis::Loads};
use fstone_model::Dataset;

/// Every figure of a run as a stand-alone SVG file: (name, content).
pub fn svg_files(dataset: &Dataset, options: &Options) -> Vec<(String, String)> {
    let analysis = Analysis::of(dataset);
    let loads = Loads::of(&analysis);
    figures(&analysis, &loads, options)
        .iter()
        .map(|figure| (format!("{}.svg", figure.slug), figure.standalone()))
        .collect()
}

pub(crate) fn figures<'a>(analysis: &'a Analysis<'a>, loads: &'a Loads<'a>, options: &Options) -> Vec<Figure<'a>> {
    let mut figures: Vec<Figure<'a>> =
        (0..analysis.columns.len()).flat_map(|column| column::figures(analysis, column)).collect();
    if let Some(published) = analysis.published.as_ref().filter(|_| options.published) {
        figures.extend(published.columns.iter().flat_map(|column| then_lines::figures(analysis, published, *column)));
        figures.extend(published.columns.iter().filter_map(|column| then_now::figure(analysis, published, *column)));
    }
    for load in &loads.steps {
        figures.extend(percentiles::figures(analysis, load));
        figures.extend(series::figure(analysis, load));
        figures.extend(heat::figure(analysis, load));
    }
    figures.extend(series::printed(analysis));
    figures.extend(order::figures(analysis));
    unique(&mut figures);
    for (number, figure) in figures.iter_mut().enumerate() {
        figure.number = number;
    }
    figures
}

/// Two columns may have headers that give the same slug.
fn unique(figures: &mut [Figure<'_>]) {
    for index in 1..figures.len() {
        let taken = |slug: &str, before: &[Figure<'_>]| before.iter().any(|figure| figure.slug == slug);
        let (before, rest) = figures.split_at_mut(index);
        let stem = rest[0].slug.clone();
        let mut number = 2;
        while taken(&rest[0].slug, before) {
            rest[0].slug = format!("{stem}-{number}");
            number += 1;
        }
    }
}

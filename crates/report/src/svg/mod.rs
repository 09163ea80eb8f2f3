//! The figures: small SVG of our own, the same for the page and for papers.
//!
//! A [`Figure`] knows its words and how to draw itself at a width, linearly or logarithmically. [`svg_files`] gives
//! stand-alone files, with title and description inside and dark colours where the reader prefers them; the HTML page
//! embeds the same drawings under its own style sheet.

mod axis;
mod bars;
mod canvas;
mod column;
mod dots;
mod forest;
mod frame;
mod heat;
mod lines;
mod measure;
mod multiples;
mod order;
mod percentiles;
mod rows;
mod series;
mod theme;
mod then_lines;
mod then_now;
mod timeline;

use crate::{
    Analysis, Options,
    analysis::Loads,
    text::{line, xml},
};
use canvas::{Anchor, Canvas, Px};
use fstone_model::Dataset;

pub(crate) use column::capital;
pub(crate) use forest::forest;
pub(crate) use theme::style;
pub(crate) use timeline::timeline;

/// The width figures are drawn at for papers and desktops.
pub(crate) const WIDE: f64 = 720.0;
/// The width figures are drawn at for phones.
pub(crate) const NARROW: f64 = 352.0;
/// No figure shows more rows than this; the table has all.
const MAX_ROWS: usize = 200;
/// A page of more trials than this is drawn and listed sparingly: it has to stay below 2 MB.
pub(crate) const MANY_TRIALS: usize = 3000;

/// How to draw a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Look {
    /// Width in CSS pixels.
    pub(crate) width: f64,
    /// Whether the values' axis is logarithmic; ignored by figures that do not offer it.
    pub(crate) logarithmic: bool,
    /// The figure's number in its report, for ids that are unique in a page.
    number: usize,
}

impl Look {
    /// An id that no other drawing of the page has.
    fn id(self) -> String {
        format!("drawing-{}-{}", self.number, self.width as u32)
    }

    /// Whether there is no room for labels beside a plot.
    const fn is_narrow(self) -> bool {
        self.width < 480.0
    }
}

/// What was drawn: marks without a frame around them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Drawing {
    width: f64,
    height: f64,
    body: String,
}

/// Which part of the report a figure belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chapter {
    /// A column of the table.
    Column,
    /// This column of the table beside what was published.
    Published(usize),
    /// What the load saw over its time.
    Load,
    /// Whether the figures can be trusted.
    Method,
}

/// A figure.
pub(crate) struct Figure<'a> {
    /// Unique within a report; a file name's stem and an element's id.
    pub(crate) slug: String,
    /// Where it belongs.
    pub(crate) chapter: Chapter,
    /// What it shows.
    pub(crate) title: String,
    /// How to read it; one or two sentences.
    pub(crate) caption: String,
    /// The same in words, for those who do not see it.
    pub(crate) description: String,
    /// Whether a logarithmic axis makes sense.
    pub(crate) logarithmic: bool,
    /// Its place among the report's figures.
    number: usize,
    draw: Box<dyn Fn(Look) -> Drawing + 'a>,
}

impl Figure<'_> {
    /// The figure as an element of a page that has [`style`].
    pub(crate) fn inline(&self, width: f64, logarithmic: bool, classes: &str) -> String {
        let drawing = (self.draw)(Look { width, logarithmic, number: self.number });
        // Whoever does not see it gets the title and the description; the marks' own titles are for pointers.
        format!(
            "<svg class=\"fs {classes}\" role=\"img\" aria-label=\"{}. {}\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\">{}</svg>",
            xml(&self.title),
            xml(&self.description),
            Px(drawing.width),
            Px(drawing.height),
            Px(drawing.width),
            Px(drawing.height),
            drawing.body
        )
    }

    /// The figure as a file.
    fn standalone(&self) -> String {
        const MARGIN: f64 = 16.0;
        const LINE: f64 = 18.0;
        let drawing = (self.draw)(Look { width: WIDE, logarithmic: false, number: self.number });
        let titles = measure::wrap(&self.title, 14.0 * measure::BOLD, drawing.width);
        let captions = measure::wrap(&self.caption, 11.5, drawing.width);
        let head = MARGIN + LINE * titles.len() as f64 + 6.0;
        let foot = head + drawing.height + 14.0;
        let (width, height) = (drawing.width + 2.0 * MARGIN, foot + 15.0 * captions.len() as f64 + 4.0);
        let mut words = Canvas::default();
        for (index, title) in titles.iter().enumerate() {
            words.text(MARGIN, MARGIN + 12.0 + LINE * index as f64, Anchor::Start, "fs-t fs-h", title);
        }
        for (index, caption) in captions.iter().enumerate() {
            words.text(MARGIN, foot + 4.0 + 15.0 * index as f64, Anchor::Start, "fs-m fs-s", caption);
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fs\" role=\"img\" aria-labelledby=\"title description\" \
             viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\">\n<title id=\"title\">{}</title>\n\
             <desc id=\"description\">{}</desc>\n<style>{}</style>\n\
             <rect class=\"fs-paper\" width=\"100%\" height=\"100%\"/>\n{}\n<g transform=\"translate({} {})\">{}</g>\n</svg>\n",
            xml(&self.title),
            xml(&self.description),
            style(),
            words.finish(),
            Px(MARGIN),
            Px(head),
            drawing.body,
            w = Px(width),
            h = Px(height),
        )
    }
}

/// Every figure of a run as a stand-alone SVG file: (name, content).
#[must_use]
pub fn svg_files(dataset: &Dataset, options: &Options) -> Vec<(String, String)> {
    let analysis = Analysis::of(dataset);
    let loads = Loads::of(&analysis);
    figures(&analysis, &loads, options)
        .iter()
        .map(|figure| (format!("{}.svg", figure.slug), figure.standalone()))
        .collect()
}

/// Every figure that the run gives rise to, in reading order.
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

/// A name for files and ids: lower-case letters, digits and single hyphens.
fn slug(parts: &[&str]) -> String {
    let text = line(&parts.join("-")).to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut slug = words.join("-");
    slug.truncate(60);
    if slug.is_empty() { "figure".to_owned() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::slug;

    #[test]
    fn slugs_are_safe_file_names() {
        assert_eq!(slug(&["transactions per second"]), "transactions-per-second");
        assert_eq!(slug(&["../../etc/passwd", "p99"]), "etc-passwd-p99");
        assert_eq!(slug(&["\u{202e}漢"]), "figure");
    }
}

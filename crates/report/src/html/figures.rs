//! The figures of a page, by chapter, each drawn for desktops and phones, linear and where it helps logarithmic.

use super::published::{PublishedView, published_view};
use crate::{
    Analysis, Options,
    analysis::Loads,
    svg::{self, Chapter, Figure, MANY_TRIALS, NARROW, WIDE},
};

/// A section with figures.
pub(super) struct ChapterView {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// In the table of contents.
    pub(super) short: &'static str,
    pub(super) text: String,
    pub(super) published: Option<PublishedView>,
    pub(super) figures: Vec<FigureView>,
}

pub(super) struct FigureView {
    pub(super) slug: String,
    pub(super) title: String,
    pub(super) caption: String,
    pub(super) plots: Vec<Plot>,
}

/// A figure on one scale.
pub(super) struct Plot {
    /// "linear" or "log".
    pub(super) scale: &'static str,
    /// Whether there is a drawing for phones too.
    pub(super) both: bool,
    pub(super) svg: String,
}

impl FigureView {
    pub(super) fn has_log(&self) -> bool {
        self.plots.len() > 1
    }
}

/// The chapters that have anything to show, and the figures of the method section.
pub(super) fn views<'a>(
    analysis: &'a Analysis<'a>,
    loads: &'a Loads<'a>,
    options: &Options,
) -> (Vec<ChapterView>, Vec<FigureView>) {
    let many = analysis.dataset.trials.len() > MANY_TRIALS;
    let figures = svg::figures(analysis, loads, options);
    let of = |chapter: Chapter| -> Vec<FigureView> {
        figures.iter().filter(|figure| figure.chapter == chapter).map(|figure| view(figure, many)).collect()
    };
    let published = analysis.published.as_ref().filter(|_| options.published);
    let chapters = [
        ChapterView {
            id: "figures",
            title: "Figures",
            short: "Figures",
            text: String::new(),
            published: None,
            figures: of(Chapter::Column),
        },
        ChapterView {
            id: "published",
            title: "Published, and today",
            short: "Published",
            text: String::new(),
            published: published.map(|published| {
                published_view(analysis, published, &|column| of(Chapter::Published(column)).into_iter().next())
            }),
            figures: Vec::new(),
        },
        ChapterView {
            id: "load",
            title: "Inside the load",
            short: "Load",
            text: "A figure per second is a mean over a whole trial. Here is what it is a mean of.".to_owned(),
            published: None,
            figures: of(Chapter::Load),
        },
    ];
    let chapters =
        chapters.into_iter().filter(|chapter| !chapter.figures.is_empty() || chapter.published.is_some()).collect();
    (chapters, of(Chapter::Method))
}

fn view(figure: &Figure<'_>, many: bool) -> FigureView {
    let plot = |logarithmic: bool| {
        let mut svg = figure.inline(WIDE, logarithmic, "fs-wide");
        if !many {
            svg.push_str(&figure.inline(NARROW, logarithmic, "fs-narrow"));
        }
        Plot { scale: if logarithmic { "log" } else { "linear" }, both: !many, svg }
    };
    let mut plots = vec![plot(false)];
    if figure.logarithmic && !many {
        plots.push(plot(true));
    }
    FigureView { slug: figure.slug.clone(), title: figure.title.clone(), caption: figure.caption.clone(), plots }
}

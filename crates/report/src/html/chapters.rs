//! The chapters of a page that show figures.

use super::{
    figures::{FigureView, view},
    published::{PublishedView, published_view},
};
use crate::{
    Analysis, Options,
    analysis::Loads,
    svg::{self, Chapter, MANY_TRIALS},
};

pub(super) struct ChapterView {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// In the table of contents.
    pub(super) short: &'static str,
    pub(super) text: String,
    pub(super) published: Option<PublishedView>,
    pub(super) figures: Vec<FigureView>,
}

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
            text: "A figure per second is a mean over a whole trial. This is what went into it.".to_owned(),
            published: None,
            figures: of(Chapter::Load),
        },
    ];
    let chapters =
        chapters.into_iter().filter(|chapter| !chapter.figures.is_empty() || chapter.published.is_some()).collect();
    (chapters, of(Chapter::Method))
}

//! A figure of a page, drawn for desktops and phones, linear and where it helps logarithmic.

use crate::svg::{Figure, NARROW, WIDE};

pub(super) struct FigureView {
    pub(super) slug: String,
    pub(super) title: String,
    pub(super) caption: String,
    pub(super) plots: Vec<Plot>,
}

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

/// `many`: the run has so many trials that each figure is drawn once.
pub(super) fn view(figure: &Figure<'_>, many: bool) -> FigureView {
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

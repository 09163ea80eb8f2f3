//! What a figure is: its words, how it is drawn, and how it becomes part of a page or a file.

use super::{
    canvas::{Anchor, Canvas, Px},
    measure::{BOLD, wrap},
    theme::style,
};
use crate::text::{line, xml};

/// The width figures are drawn at for papers and desktops.
pub(crate) const WIDE: f64 = 720.0;
/// The width figures are drawn at for phones.
pub(crate) const NARROW: f64 = 352.0;
/// No figure shows more rows than this; the table has all.
pub(super) const MAX_ROWS: usize = 200;
/// A page of more trials than this is drawn and listed sparingly: it has to stay below 2 MB.
pub(crate) const MANY_TRIALS: usize = 3000;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Look {
    /// Width in CSS pixels.
    pub(crate) width: f64,
    /// Whether the values' axis is logarithmic; ignored by figures that do not offer it.
    pub(crate) logarithmic: bool,
    /// The figure's number in its report, for ids that are unique in a page.
    pub(super) number: usize,
}

impl Look {
    /// An id that no other drawing of the page has.
    pub(super) fn id(self) -> String {
        format!("drawing-{}-{}", self.number, self.width as u32)
    }

    pub(super) const fn is_narrow(self) -> bool {
        self.width < 480.0
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Drawing {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) body: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chapter {
    Column,
    /// This column of the table beside what was published.
    Published(usize),
    /// What the load saw over its time.
    Load,
    /// Whether the figures can be trusted.
    Method,
}

pub(crate) struct Figure<'a> {
    /// Unique within a report; a file name's stem and an element's id.
    pub(crate) slug: String,
    pub(crate) chapter: Chapter,
    pub(crate) title: String,
    /// How to read it; one or two sentences.
    pub(crate) caption: String,
    /// The same in words, for those who do not see it.
    pub(crate) description: String,
    pub(crate) logarithmic: bool,
    pub(super) number: usize,
    pub(super) draw: Box<dyn Fn(Look) -> Drawing + 'a>,
}

impl Figure<'_> {
    /// The figure as an element of a page that has [`style`].
    pub(crate) fn inline(&self, width: f64, logarithmic: bool, classes: &str) -> String {
        let drawing = (self.draw)(Look { width, logarithmic, number: self.number });
        // Readers who cannot see it get the title and the description; the marks' own titles are for pointers.
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

    pub(super) fn standalone(&self) -> String {
        const MARGIN: f64 = 16.0;
        const LINE: f64 = 18.0;
        let drawing = (self.draw)(Look { width: WIDE, logarithmic: false, number: self.number });
        let titles = wrap(&self.title, 14.0 * BOLD, drawing.width);
        let captions = wrap(&self.caption, 11.5, drawing.width);
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

/// A name for files and ids: lower-case letters, digits and single hyphens.
pub(super) fn slug(parts: &[&str]) -> String {
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

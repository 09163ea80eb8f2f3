//! Writing SVG: few marks, short numbers, escaped text.

use crate::text::xml;
use std::fmt::{Display, Write};

/// A drawing under construction. Units are CSS pixels.
#[derive(Default)]
pub(super) struct Canvas {
    body: String,
}

/// A coordinate with one decimal, without a trailing zero.
#[derive(Clone, Copy)]
pub(super) struct Px(pub(super) f64);

impl Display for Px {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round() as i64;
        let (whole, tenth) = (tenths.abs() / 10, tenths.abs() % 10);
        if tenths < 0 {
            f.write_char('-')?;
        }
        if tenth == 0 { write!(f, "{whole}") } else { write!(f, "{whole}.{tenth}") }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// What a series' marks look like; colour comes from the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
    Down,
    Ring,
}

impl Shape {
    pub(super) const fn of(series: usize) -> Self {
        match series % super::theme::SERIES {
            0 => Self::Circle,
            1 => Self::Square,
            2 => Self::Triangle,
            3 => Self::Diamond,
            4 => Self::Down,
            5 => Self::Cross,
            _ => Self::Ring,
        }
    }
}

impl Canvas {
    pub(super) fn finish(self) -> String {
        self.body
    }

    pub(super) fn raw(&mut self, markup: &str) {
        self.body.push_str(markup);
    }

    pub(super) fn open(&mut self, classes: &str) {
        let _ = write!(self.body, "<g class=\"{classes}\">");
    }

    pub(super) fn close(&mut self) {
        self.body.push_str("</g>");
    }

    /// The group of a cell of the table; its title is the tooltip.
    pub(super) fn open_cell(&mut self, series: usize, cell: u32, column: usize, title: &str) {
        let _ = write!(
            self.body,
            "<g class=\"fs-{series}\" data-cell=\"{cell}\" data-column=\"{column}\"><title>{}</title>",
            xml(title)
        );
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, classes: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " fs-c",
            Anchor::End => " fs-e",
        };
        let _ =
            write!(self.body, "<text x=\"{}\" y=\"{}\" class=\"{classes}{anchor}\">{}</text>", Px(x), Px(y), xml(text));
    }

    pub(super) fn line(&mut self, x1: f64, y1: f64, x2: f64, y2: f64, classes: &str) {
        let _ = write!(self.body, "<path class=\"{classes}\" d=\"M{} {}L{} {}\"/>", Px(x1), Px(y1), Px(x2), Px(y2));
    }

    /// An interval with caps, across or upright; dashed when it is rough.
    pub(super) fn interval(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), is_reliable: bool) {
        const CAP: f64 = 3.5;
        self.line(x1, y1, x2, y2, if is_reliable { "fs-bar" } else { "fs-bar fs-rough" });
        let (dx, dy) = if (y2 - y1).abs() < f64::EPSILON { (0.0, CAP) } else { (CAP, 0.0) };
        let caps = format!(
            "M{} {}L{} {}M{} {}L{} {}",
            Px(x1 - dx),
            Px(y1 - dy),
            Px(x1 + dx),
            Px(y1 + dy),
            Px(x2 - dx),
            Px(y2 - dy),
            Px(x2 + dx),
            Px(y2 + dy)
        );
        self.path(&caps, "fs-cap");
    }

    pub(super) fn path(&mut self, d: &str, classes: &str) {
        let _ = write!(self.body, "<path class=\"{classes}\" d=\"{d}\"/>");
    }

    pub(super) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, attributes: &str) {
        let _ = write!(
            self.body,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {attributes}/>",
            Px(x),
            Px(y),
            Px(width),
            Px(height)
        );
    }

    /// Many small round points: one path, so that ten thousand of them are a few bytes each.
    pub(super) fn dots(&mut self, points: &[(f64, f64)], classes: &str) {
        if points.is_empty() {
            return;
        }
        let mut d = String::with_capacity(points.len() * 14);
        for (x, y) in points {
            let _ = write!(d, "M{} {}h0", Px(*x), Px(*y));
        }
        self.path(&d, classes);
    }

    pub(super) fn mark(&mut self, x: f64, y: f64, shape: Shape, size: f64) {
        let (px, s) = (Px, size);
        let corners = |of: &[(f64, f64)]| through(of.iter().map(|(right, down)| Some((x + right * s, y + down * s))));
        let d = match shape {
            Shape::Circle | Shape::Ring => {
                let class = if shape == Shape::Circle { "fs-mark" } else { "fs-hollow" };
                let _ =
                    write!(self.body, "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>", px(x), px(y), px(s));
                return;
            }
            Shape::Square => format!("M{} {}h{}v{}h{}z", px(x - s), px(y - s), px(2.0 * s), px(2.0 * s), px(-2.0 * s)),
            Shape::Triangle => corners(&[(0.0, -1.2), (1.15, 1.0), (-1.15, 1.0)]) + "z",
            Shape::Down => corners(&[(0.0, 1.2), (1.15, -1.0), (-1.15, -1.0)]) + "z",
            Shape::Diamond => corners(&[(0.0, -1.35), (1.35, 0.0), (0.0, 1.35), (-1.35, 0.0)]) + "z",
            Shape::Cross => {
                let d = corners(&[(-1.0, -1.0), (1.0, 1.0)]) + &corners(&[(-1.0, 1.0), (1.0, -1.0)]);
                self.path(&d, "fs-hollow");
                return;
            }
        };
        self.path(&d, "fs-mark");
    }
}

/// A path through points; a gap where one is missing.
pub(super) fn through(points: impl IntoIterator<Item = Option<(f64, f64)>>) -> String {
    let mut d = String::new();
    let mut pen_down = false;
    for point in points {
        match point {
            Some((x, y)) => {
                let _ = write!(d, "{}{} {}", if pen_down { 'L' } else { 'M' }, Px(x), Px(y));
                pen_down = true;
            }
            None => pen_down = false,
        }
    }
    d
}

/// The closed area between an upper and a lower edge, both from left to right.
pub(super) fn between(upper: &[(f64, f64)], lower: &[(f64, f64)]) -> String {
    if upper.is_empty() {
        return String::new();
    }
    format!("{}z", through(upper.iter().chain(lower.iter().rev()).map(|point| Some(*point))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!(Px(12.04).to_string(), "12");
        assert_eq!(Px(-0.26).to_string(), "-0.3");
        assert_eq!(Px(-0.01).to_string(), "0");
        assert_eq!(through([Some((1.0, 2.0)), Some((3.0, 4.5)), None, Some((5.0, 6.0))]), "M1 2L3 4.5M5 6");
    }

    #[test]
    fn text_is_escaped() {
        let mut canvas = Canvas::default();
        canvas.text(0.0, 0.0, Anchor::Start, "fs-t", "<b>&\"");
        assert!(canvas.finish().contains("&lt;b&gt;&amp;&quot;"));
    }
}

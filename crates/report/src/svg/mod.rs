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
mod figure;
mod forest;
mod frame;
mod gallery;
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

pub(crate) use figure::{Chapter, Figure, MANY_TRIALS, NARROW, WIDE};
pub(crate) use forest::forest;
pub(crate) use gallery::figures;
pub use gallery::svg_files;
pub(crate) use theme::style;
pub(crate) use timeline::timeline;

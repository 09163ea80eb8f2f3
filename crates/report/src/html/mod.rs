//! One self-contained HTML file per run, and an index page for many.
//!
//! The page is complete without scripts, offline and on paper; a small script of our own adds sorting, filtering, another
//! baseline, logarithmic axes and trial details. All text is escaped by askama; only drawings, the style sheet, the
//! script and JSON made here go in as they are, and a content security policy forbids the page to load anything.

mod audit;
mod board;
mod chapters;
mod data;
mod differences;
mod figures;
mod flames;
mod index;
mod machine;
mod measured;
mod method;
mod outcomes;
mod page;
mod published;
mod shared;
mod table;
mod trials;

pub use board::{BoardRun, Live, Now, board, live_json, message};
pub(crate) use index::published_index;
pub use index::{IndexEntry, index, is_index, is_page};
pub use page::html;
pub(crate) use page::html_with_way_back;
pub(crate) use shared::css;

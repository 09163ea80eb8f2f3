//! The report: from a [`fstone_model::Dataset`] to something a person reads or a program takes in.
//!
//! Reading order: `fstone-analysis` analyses a run once (rows × columns, intervals, groups, footnotes, the answer in words);
//! here every format prints from it: [`terminal`](terminal()), [`markdown`](markdown()), [`csv`](csv()),
//! [`json`](json()), [`svg_files`], [`html`](mod@html). [`compare`] sets two runs side by side,
//! [`history`] one figure of many, and [`publish`] makes pages of many machines' runs.
//!
//! Everything here is a pure function: no I/O, no clock, and no random number but those of the bootstrap, whose seed is
//! derived from the run's. The same dataset gives the same bytes. This crate must not see a connection, a file or a
//! command, and no format may compute its own figures: what two formats print must agree.

pub mod compare;
mod csv;
pub mod history;
pub mod html;
pub mod json;
mod legend;
mod load;
mod markdown;
mod options;
mod profile;
pub mod publish;
mod ranks;
mod sheet;
mod svg;
mod terminal;
mod text;

pub use csv::csv;
pub use html::html;
pub use json::json;
pub use load::{live_figures, live_line, load_summary};
pub use markdown::markdown;
pub use options::Options;
pub use profile::{profile, profile_calls, profile_difference, profile_folded};
pub use ranks::{ranks_all_well, ranks_csv, ranks_summary};
pub use sheet::{Grid, Sheet, fact};
pub use svg::svg_files;
pub use terminal::{TerminalOptions, terminal};
pub use text::wrap;

use fstone_analysis::{self as analysis, Analysis, number, when};

//! What a run showed, computed once; every output format prints from this.
//!
//! Rows are cells in the plan's order, columns the plan's columns, and an [`Entry`] is where they meet. Figures come
//! from completed trials alone: what a trial measured before it failed is in the CSV and JSON, not in a mean.
//! All user text in here has been through [`text`].
//!
//! This crate is pure: no I/O, no clock, no random numbers. It knows no output format: `fstone-report` renders its results.

mod ceiling;
pub mod clock;
mod compare;
mod drift;
mod harm;
mod loads;
mod looks;
mod machines;
mod notes;
pub mod number;
mod open;
pub mod profile;
mod published;
mod rules;
mod run;
pub mod runs;
mod sentences;
mod served;
mod structure;
mod table;
pub mod text;

pub use ceiling::Ceiling;
pub use compare::{ColumnComparison, MAX_COMPARED_ROWS, NOT_COMPARED, PanelComparison};
pub use drift::Drifting;
pub use fstone_model::when;
pub use loads::{LoadRow, LoadStep, Loads};
pub use machines::{Machine, machines, machines_in_words};
pub use notes::{Footnote, FootnoteRow, Warning, touched};
pub use number::Scale;
pub use open::Open;
pub use published::{Published, PublishedEntry};
pub use rules::{Finding, Rule};
pub use run::Analysis;
pub use sentences::{Length, MOST_WORDS, amount, either_way, in_words};
pub use served::{is_disturbed, share_from_memory};
pub use structure::{Panel, Structure, Sweep, Varied, executors, of_executor};
pub use table::{ColumnView, Entry, HARDLY_KNOWN, Row, TrialValue};

//! A line at the bottom of the terminal that says how things go.

use fstone_model::text;
use indicatif::{ProgressBar, ProgressStyle};
use std::{
    io::{IsTerminal, stderr},
    time::Duration,
};

/// Such a line; nothing where standard error is no terminal. Whatever text it is given is made harmless.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn counting() -> Option<Self> {
        Self::counting_with("{bar:16.cyan/dim} {wide_msg}")
    }

    pub(crate) fn counting_above_a_line() -> Option<Self> {
        Self::counting_with("{bar:16.cyan/dim} {wide_msg}\n  {prefix}")
    }

    fn counting_with(template: &str) -> Option<Self> {
        let bar = Self::with_template(template)?;
        bar.0.set_style(bar.0.style().progress_chars("━━─"));
        bar.0.enable_steady_tick(Duration::from_millis(250));
        Some(bar)
    }

    pub(crate) fn spinning() -> Option<Self> {
        Self::with_template("{spinner} {wide_msg}")
    }

    fn with_template(template: &str) -> Option<Self> {
        if !stderr().is_terminal() {
            return None;
        }
        let bar = ProgressBar::new(1);
        bar.set_style(ProgressStyle::with_template(template).expect("the template is sound"));
        Some(Self(bar))
    }

    pub(crate) fn set(&self, done: u64, total: u64) {
        // One of no length would be drawn full.
        self.0.set_length(total.max(1));
        self.0.set_position(done);
    }

    pub(crate) fn say(&self, doing: &str) {
        self.0.set_message(text::line(doing));
    }

    pub(crate) fn say_below(&self, what: &str) {
        self.0.set_prefix(text::line(what));
    }

    pub(crate) fn tick(&self) {
        self.0.tick();
    }

    /// A line above it, which stays.
    pub(crate) fn above(&self, line: &str) {
        self.0.println(text::line(line));
    }

    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

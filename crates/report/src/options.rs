//! What a report shows beyond the run itself.

use crate::analysis::Length;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Print figures published elsewhere beside today's, where the study names some.
    pub published: bool,
    pub answer: Length,
}

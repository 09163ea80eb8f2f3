//! What is wrong with a profile, with a limit on how much of it is kept.

use crate::diagnostic::{self, Diagnostic, Report, Severity, Source};

/// Errors kept, and warnings kept: more would not be shown. A text with more is not a profile, and looking for the nearest
/// keyword of each of its lines would take long.
const LIMIT: usize = diagnostic::MAXIMUM_SHOWN;

#[derive(Debug)]
pub(super) struct Findings {
    report: Report,
    errors: usize,
    warnings: usize,
}

impl Findings {
    pub(super) fn new(source: &Source) -> Self {
        Self { report: Report::new(source.clone()), errors: 0, warnings: 0 }
    }

    /// Whether no more errors are kept: reading on is useless.
    pub(super) fn is_full(&self) -> bool {
        self.errors >= LIMIT
    }

    /// Keeps a finding, unless there are too many of its severity. It is made only when it is kept.
    pub(super) fn push_with(&mut self, severity: Severity, make: impl FnOnce() -> Diagnostic) {
        let count = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if *count < LIMIT {
            *count += 1;
            let diagnostic = make();
            debug_assert_eq!(diagnostic.severity, severity);
            self.report.push(diagnostic);
        }
    }

    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.push_with(diagnostic.severity, || diagnostic);
    }

    pub(super) fn into_report(self) -> Report {
        self.report
    }
}

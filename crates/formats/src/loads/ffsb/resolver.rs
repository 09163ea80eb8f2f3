//! What the rules of all sections work with: the profile's dialect, its filesystems, and the findings.

use super::{Dialect, findings::Findings, old, sections::Section};
use crate::{
    Span,
    diagnostic::{Diagnostic, Severity},
};

/// Every thread has a buffer of this size; more is a typing error.
pub(super) const MAXIMUM_BLOCK: u64 = 1 << 30;
/// A year; longer is a typing error, and sums of times stay far from their limits.
pub(super) const MAXIMUM_SECONDS: u64 = 366 * 24 * 3600;

/// Checks sections against the rules. `groups` has those of a threadgroup, `resolve` those of the rest.
pub(super) struct Resolver<'a, 'f> {
    pub(super) dialect: Dialect,
    pub(super) filesystems: &'a [&'a Section],
    pub(super) findings: &'f mut Findings,
}

impl Resolver<'_, '_> {
    pub(super) fn spelled(&self, keyword: &'static str) -> &'static str {
        if self.dialect == Dialect::V4 { old::spelling(keyword) } else { keyword }
    }

    pub(super) fn error(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.findings.push(Diagnostic::error(span, message).help(help));
    }

    pub(super) fn warning(&mut self, span: Span, message: impl FnOnce() -> String) {
        self.findings.push_with(Severity::Warning, || Diagnostic::warning(span, message()));
    }

    pub(super) fn limited(&mut self, section: &Section, keyword: &'static str, limit: u64) -> u64 {
        let number = section.number(keyword);
        if number > limit {
            let message = format!("`{}` is too large", self.spelled(keyword));
            self.findings
                .push(Diagnostic::error(section.span_of(keyword), message).label(format!("expected at most {limit}")));
        }
        number.min(limit)
    }
}

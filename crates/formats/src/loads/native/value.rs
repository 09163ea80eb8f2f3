//! Values of keys.

use crate::{
    decode::{Count, Field, Flag, Listed, Size, Text, Word},
    diagnostic::{Diagnostic, Report, Span},
};
use fstone_model::workload::MAXIMUM_BLOCK_BYTES;

pub(super) type Small = Count<1, { u32::MAX as u64 }>;

pub(super) fn or<T: Clone, U>(field: Option<&Field<T>>, default: U, value: impl Fn(T) -> U) -> U {
    field.map_or(default, |field| value(field.value.clone()))
}

pub(super) fn word<T: Word>(field: Option<&Field<Listed<T>>>, default: T) -> T {
    or(field, default, |Listed(word)| word)
}

pub(super) fn flag(field: Option<&Field<Flag>>, default: bool) -> bool {
    or(field, default, |Flag(flag)| flag)
}

pub(super) fn bytes(field: Option<&Field<Size>>) -> u64 {
    or(field, 0, |Size(bytes)| bytes)
}

pub(super) fn text(field: Option<&Field<Text>>, default: &str) -> String {
    or(field, default.to_owned(), |Text(text)| text)
}

pub(super) fn small<const MAX: u64>(field: Option<&Field<Count<1, MAX>>>) -> u32 {
    or(field, 1, |Count(count)| u32::try_from(count).expect("the type allows no more"))
}

pub(super) fn block(field: &Field<Size>, report: &mut Report) -> u64 {
    let Size(bytes) = field.value;
    check_block(bytes, field.span, report);
    bytes
}

pub(super) fn check_block(bytes: u64, span: Span, report: &mut Report) {
    if !(1..=MAXIMUM_BLOCK_BYTES).contains(&bytes) {
        report.push(Diagnostic::error(span, "no block can have this size").label("expected 1 byte to less than 4 GiB"));
    }
}

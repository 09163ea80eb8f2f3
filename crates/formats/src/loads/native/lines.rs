//! What is printed: lines of a workload file, and values as a person would write them.

use crate::decode::Word;
use fstone_model::units::{parse_share, percent};
use std::time::Duration;

pub(super) type KeyValues = Vec<(&'static str, String)>;

#[derive(Default)]
pub(super) struct Lines(pub(super) String);

impl Lines {
    pub(super) fn key(&mut self, name: &str, value: impl AsRef<str>) {
        self.0.push_str(&format!("{name} = {}\n", value.as_ref()));
    }

    pub(super) fn unless_default(&mut self, name: &str, value: impl AsRef<str>, is_default: bool) {
        if !is_default {
            self.key(name, value);
        }
    }

    pub(super) fn table(&mut self, header: &str, keys: KeyValues) {
        self.0.push_str(&format!("\n{header}\n"));
        for (name, value) in keys {
            self.key(name, value);
        }
    }

    pub(super) fn table_unless_empty(&mut self, header: &str, keys: KeyValues) {
        if !keys.is_empty() {
            self.table(header, keys);
        }
    }
}

pub(super) fn wanted<const N: usize>(keys: [(&'static str, Option<String>); N]) -> KeyValues {
    keys.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

pub(super) fn unless(is_default: bool, value: impl FnOnce() -> String) -> Option<String> {
    (!is_default).then(value)
}

pub(super) fn flag(is_set: bool) -> Option<String> {
    unless(!is_set, || "true".into())
}

pub(super) fn inline(keys: &KeyValues) -> String {
    if keys.is_empty() {
        return "{}".into();
    }
    let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    format!("{{ {} }}", keys.join(", "))
}

pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

pub(super) fn word<T: Word + PartialEq>(value: &T) -> String {
    let (word, _) = T::WORDS.iter().find(|(_, known)| known == value).expect("every value has its word");
    format!("\"{word}\"")
}

/// With the largest unit that leaves a whole number.
pub(super) fn size(bytes: u64) -> String {
    // Sizes with a unit are read by way of a double, which is exact up to here.
    const EXACT: u64 = 1 << 53;
    for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if (1..=EXACT).contains(&bytes) && bytes.is_multiple_of(1 << shift) {
            return format!("\"{} {unit}\"", bytes >> shift);
        }
    }
    // A bare number is bytes, and exact where TOML's integers end.
    if i64::try_from(bytes).is_ok() { bytes.to_string() } else { format!("\"{bytes}\"") }
}

/// With the largest unit that leaves a whole number; a fraction of a second otherwise.
pub(super) fn time(time: Duration) -> String {
    let ns = time.as_nanos();
    for (unit, ns_per_unit) in [("min", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)] {
        if ns.is_multiple_of(ns_per_unit) && (ns > 0 || unit == "s") {
            return format!("\"{} {unit}\"", ns / ns_per_unit);
        }
    }
    format!("\"{}.{:09} s\"", time.as_secs(), time.subsec_nanos())
}

/// As a percentage when that is the same number, as a share otherwise.
pub(super) fn share(share: f64) -> String {
    let percent = percent(share);
    let is_short = percent.len() <= "12.5 %".len();
    if is_short && parse_share(&percent) == Ok(share) { format!("\"{percent}\"") } else { format!("\"{share}\"") }
}

pub(super) fn real(number: f64) -> String {
    format!("{number:?}")
}

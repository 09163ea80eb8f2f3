//! Dates and durations as text. Always UTC, because a report may be read anywhere.

use fstone_model::units::format_duration;
use jiff::Timestamp;
use std::time::Duration;

/// "2026-11-21 21:15 UTC".
pub fn minute(unix_ns: u64) -> String {
    stamp(unix_ns, "%Y-%m-%d %H:%M UTC")
}

/// "2026-11-21T21:15:38Z", for machines.
pub fn iso(unix_ns: u64) -> String {
    stamp(unix_ns, "%Y-%m-%dT%H:%M:%SZ")
}

fn stamp(unix_ns: u64, format: &str) -> String {
    Timestamp::from_nanosecond(i128::from(unix_ns))
        .map_or_else(|_| format!("{unix_ns} ns after 1970"), |time| time.strftime(format).to_string())
}

/// "2 min 5 s".
pub fn duration(ns: u64) -> String {
    format_duration(Duration::from_nanos(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_utc() {
        assert_eq!(minute(0), "1970-01-01 00:00 UTC");
        assert_eq!(iso(1_795_295_738_000_000_000), "2026-11-21T21:15:38Z");
        assert_eq!(duration(125_000_000_000), "2 min 5 s");
        assert_eq!(minute(u64::MAX), "2554-07-21 23:34 UTC");
    }
}

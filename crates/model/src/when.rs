//! Dates and durations as text. Always UTC, because a report may be read anywhere.

use crate::units::format_duration;
use std::time::Duration;

/// Year, month, day, hour, minute, second, and day of the week from Sunday on. The date by Howard Hinnant's `civil_from_days`
/// (<https://howardhinnant.github.io/date_algorithms.html>).
fn civil(unix_ns: u64) -> [u64; 7] {
    let seconds = unix_ns / 1_000_000_000;
    let days = seconds / 86_400;
    // Days and years from 1 March, in cycles of 400 years.
    let (cycle, day) = ((days + 719_468) / 146_097, (days + 719_468) % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    [year + 400 * cycle, month, of_month, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60, (days + 4) % 7]
}

/// "2026-11-21 21:15 UTC".
pub fn minute(unix_ns: u64) -> String {
    let [year, month, day, hour, minute, ..] = civil(unix_ns);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// "2026-11-21T21:15:38Z", for machines.
pub fn iso(unix_ns: u64) -> String {
    let [year, month, day, hour, minute, second, _] = civil(unix_ns);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// "Sat Nov 21 21:15:38 2026", as ctime(3) writes it.
pub fn ctime(unix_ns: u64) -> String {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let [year, month, day, hour, minute, second, weekday] = civil(unix_ns);
    let (weekday, month) = (DAYS[weekday as usize], MONTHS[month as usize - 1]);
    format!("{weekday} {month} {day:2} {hour:02}:{minute:02}:{second:02} {year}")
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
        assert_eq!(ctime(1_795_295_738_000_000_000), "Sat Nov 21 21:15:38 2026");
        assert_eq!(duration(125_000_000_000), "2 min 5 s");
        assert_eq!(minute(u64::MAX), "2554-07-21 23:34 UTC");
    }

    /// As `date -u -d @SECONDS` has them: the ends of February, of a year and of a century.
    #[test]
    fn calendars_have_leap_years() {
        for (seconds, date) in [
            (951_782_399, "Mon Feb 28 23:59:59 2000"),
            (951_782_400, "Tue Feb 29 00:00:00 2000"),
            (951_868_800, "Wed Mar  1 00:00:00 2000"),
            (1_709_164_800, "Thu Feb 29 00:00:00 2024"),
            (1_735_689_599, "Tue Dec 31 23:59:59 2024"),
            (4_107_542_400, "Mon Mar  1 00:00:00 2100"),
        ] {
            assert_eq!(ctime(seconds * 1_000_000_000), date);
        }
    }
}

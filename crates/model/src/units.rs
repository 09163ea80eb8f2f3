//! Sizes, times and shares as people write and read them.
//!
//! Sizes: `4096`, `4 KiB`, `32GiB`, `64k`; the prefixes k, m, g, t count in 1024 in every spelling, as mkfs, dd and
//! FFSB do. Times: `5 s`, `30 min`, `250 ms`, `1 h`; a number alone is seconds. Shares: `2 %` or `0.02`.

use std::time::Duration;

const BYTE_UNITS: &str = "B, KiB, MiB, GiB, TiB";

/// Why a text is not a quantity; completes "… is not a size: ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    #[error("it must start with a number, like {0}")]
    NoNumber(&'static str),
    #[error("unknown unit {found:?}; use {}{known}", if known.contains(',') { "one of " } else { "" })]
    UnknownUnit { found: String, known: &'static str },
    #[error("{bits:?} reads as bits; write {bytes}")]
    Bits { bits: &'static str, bytes: &'static str },
    /// Larger than can be represented, negative, or not whole.
    #[error("it is out of range")]
    OutOfRange,
}

fn split(text: &str, example: &'static str) -> Result<(f64, String), UnitError> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let number: f64 = text[..end].replace('_', "").parse().map_err(|_| UnitError::NoNumber(example))?;
    Ok((number, text[end..].trim().to_ascii_lowercase()))
}

pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    if let Ok(exact) = trimmed.parse::<u64>() {
        return Ok(exact);
    }
    let (number, unit) = split(trimmed, "\"4 KiB\"")?;
    // With a small b after a large prefix people mean bits.
    let of_bits = [("Kb", "KiB"), ("Mb", "MiB"), ("Gb", "GiB"), ("Tb", "TiB")];
    if let Some((bits, bytes)) = of_bits.into_iter().find(|(bits, _)| trimmed.ends_with(bits)) {
        return Err(UnitError::Bits { bits, bytes });
    }
    let shift = match unit.as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(UnitError::UnknownUnit { found: unit, known: BYTE_UNITS }),
    };
    let bytes = number * (1u64 << shift) as f64;
    if bytes.fract() != 0.0 || bytes >= u64::MAX as f64 {
        return Err(UnitError::OutOfRange);
    }
    Ok(bytes as u64)
}

pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let (number, unit) = split(text, "\"5 s\"")?;
    let seconds = match unit.as_str() {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "" | "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86400.0,
        _ => return Err(UnitError::UnknownUnit { found: unit, known: "ms, s, min, h, d" }),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|_| UnitError::OutOfRange)
}

/// A length of time in nanoseconds, as records and figures hold it; one of more than 584 years is as long as that.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A share, 0 to 1, from `2 %` or `0.02`.
pub fn parse_share(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = split(text, "\"2 %\"")?;
    let share = match unit.as_str() {
        "" => number,
        "%" | "percent" => number / 100.0,
        _ => return Err(UnitError::UnknownUnit { found: unit, known: "%" }),
    };
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(UnitError::OutOfRange) }
}

/// "57 %" of 0.57, without what the multiplication adds to it.
pub fn percent(share: f64) -> String {
    format!("{} %", (share * 1e6).round() / 1e4)
}

/// "4 KiB", "1.5 GiB", "100 B".
pub fn format_bytes(bytes: u64) -> String {
    const PREFIXES: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut prefix = 0;
    while value >= 1024.0 && prefix + 1 < PREFIXES.len() {
        value /= 1024.0;
        prefix += 1;
    }
    format!("{} {}", trimmed(value), PREFIXES[prefix])
}

/// "250 ms", "5 s", "2 min 5 s", "3 h 20 min".
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1e-3 {
        return format!("{} µs", trimmed(seconds * 1e6));
    }
    if seconds < 1.0 {
        return format!("{} ms", trimmed(seconds * 1e3));
    }
    if seconds < 60.0 {
        return format!("{} s", trimmed(seconds));
    }
    let whole = seconds.round() as u64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    match (hours, minutes, rest) {
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, rest) => format!("{minutes} min {rest} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// At most three significant digits below 1000, without trailing zeros.
fn trimmed(value: f64) -> String {
    let decimals = if value >= 100.0 || value.fract() == 0.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("4096", 4096),
            ("4 KiB", 4096),
            ("32GiB", 32 << 30),
            ("1.5 g", 3 << 29),
            ("64K", 65536),
            ("8 TiB", 8 << 40),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        assert_eq!(parse_bytes("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parse_bytes("0.3 B"), Err(UnitError::OutOfRange));
        let refused = parse_bytes("400 Mb").expect_err("bits?").to_string();
        assert_eq!(refused, "\"Mb\" reads as bits; write MiB");
        assert!(parse_bytes("GiB").is_err() && parse_bytes("4 parsecs").is_err() && parse_bytes("-1").is_err());
        assert_eq!(format_bytes(3 << 29), "1.5 GiB");
        assert_eq!(format_bytes(0), "0 B");
    }

    #[test]
    fn times_and_shares() {
        assert_eq!(parse_duration("30 min"), Ok(Duration::from_secs(1800)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("5"), Ok(Duration::from_secs(5)));
        assert!(parse_duration("5 fortnights").is_err());
        assert_eq!(format_duration(Duration::from_secs(125)), "2 min 5 s");
        assert_eq!(format_duration(Duration::from_millis(1500)), "1.5 s");
        assert_eq!(parse_share("2 %"), Ok(0.02));
        for text in ["57 %", "29 %", "80.5 %", "0.07 %", "100 %", "0 %"] {
            assert_eq!(parse_share(text).map(percent), Ok(text.to_owned()));
        }
        assert_eq!(parse_share("0.5"), Ok(0.5));
        assert!(parse_share("250 %").is_err());
    }
}

//! Values of options: how each kind is written, and its limits.

use fstone_model::{Note, note::NoteError, units};
use fstone_sandbox::{
    uml::{MAX_MEMORY_BYTES, MIN_MEMORY_BYTES},
    vhost::Speed,
};
use std::{collections::BTreeSet, time::Duration};

pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let time = units::parse_duration(text).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("it must be longer than 0".into()) } else { Ok(time) }
}

/// Nothing, or a time. A second for a system call is a slip of the hand.
pub(super) fn parse_charge(text: &str) -> Result<Duration, String> {
    let time = units::parse_duration(text).map_err(|error| error.to_string())?;
    let most = Duration::from_millis(1);
    if time > most { Err(format!("a system call takes at most {}", units::format_duration(most))) } else { Ok(time) }
}

/// More guests than this are a slip of the hand.
const MOST_JOBS: usize = 1024;

pub(super) fn parse_jobs(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_JOBS).contains(number));
    number.ok_or_else(|| format!("it must be a whole number, from 1 to {MOST_JOBS}"))
}

pub(super) fn parse_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("it must be a whole number, from 0 to {}", u64::MAX))
}

pub(super) fn parse_run(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "it must be the number of a run, as `fstone list runs` lists them".into())
}

pub(super) fn parse_note(text: &str) -> Result<Note, NoteError> {
    text.to_owned().try_into()
}

/// "iops=500,latency=1ms".
pub(super) fn parse_speed(text: &str) -> Result<Speed, String> {
    let mut speed = Speed::default();
    for part in text.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(|| format!("{part:?}: write NAME=VALUE, like iops=500"))?;
        match name.trim() {
            "iops" => {
                speed.iops = Some(value.trim().parse().map_err(|_| "iops must be a whole number, like iops=500")?);
            }
            "bandwidth" => speed.bytes_per_second = Some(parse_bytes(value.trim().trim_end_matches("/s"))?),
            "latency" => speed.latency = Some(parse_duration(value.trim())?),
            other => return Err(format!("{other:?} is unknown; use iops, bandwidth or latency")),
        }
    }
    if speed.iops == Some(0) || speed.bytes_per_second == Some(0) {
        return Err("a disk needs more than 0 per second".into());
    }
    Ok(speed)
}

pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    units::parse_bytes(text).map_err(|error| error.to_string())
}

pub(super) fn parse_share(text: &str) -> Result<f64, String> {
    units::parse_share(text).map_err(|error| error.to_string())
}

pub(super) fn parse_port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("it must be the number of a port, from 0 to {}", u16::MAX))
}

pub(super) fn parse_guest_memory(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if !(MIN_MEMORY_BYTES..=MAX_MEMORY_BYTES).contains(&bytes) {
        let [least, most] = [MIN_MEMORY_BYTES, MAX_MEMORY_BYTES].map(units::format_bytes);
        return Err(format!("a guest has from {least} to {most} of memory"));
    }
    Ok(bytes)
}

/// No study needs more trials of a cell, and a plan lists every one.
const MOST_REPEATS: u32 = 100_000;

pub(super) fn parse_repeats(text: &str) -> Result<(u32, u32), String> {
    let number = |part: &str| part.trim().parse::<u32>().ok().filter(|number| (1..=MOST_REPEATS).contains(number));
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    match (number(min), number(max)) {
        (Some(min), Some(max)) if min <= max => Ok((min, max)),
        _ => Err(format!("write N or MIN..MAX, like 3 or 3..10, from 1 to {MOST_REPEATS}")),
    }
}

/// Blocks as a person counts them, from 1; kept from 0, each once, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blocks(pub(crate) Vec<u32>);

/// "3", "2-4", "1,3-4": counted from 1.
pub(super) fn parse_blocks(text: &str) -> Result<Blocks, String> {
    let number = |part: &str| part.trim().parse::<u32>().ok().filter(|number| (1..=MOST_REPEATS).contains(number));
    let mut blocks = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => blocks.extend(first - 1..last),
            _ => return Err("write the numbers of blocks, from 1, like 3, 2-4 or 1,3-4".into()),
        }
    }
    Ok(Blocks(blocks.into_iter().collect()))
}

pub(super) fn parse_set(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').filter(|(name, _)| !name.trim().is_empty()).ok_or("write NAME=VALUE, like build=none")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

pub(super) fn parse_only(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(factor, level)| !factor.trim().is_empty() && !level.trim().is_empty());
    let (factor, level) = pair.ok_or("write FACTOR=LEVEL, like filesystem='ext4*'")?;
    Ok((factor.trim().to_owned(), level.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disks_speed_has_names() {
        let speed = parse_speed("iops=500, bandwidth=20MB/s,latency=1ms").expect("a speed");
        assert_eq!((speed.iops, speed.bytes_per_second), (Some(500), Some(20 << 20)));
        assert_eq!(speed.latency, Some(Duration::from_millis(1)));
        for wrong in ["", "500", "iops=x", "iops=0", "colour=red"] {
            assert!(parse_speed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn blocks_are_counted_from_1_and_kept_from_0() {
        assert_eq!(parse_blocks("3"), Ok(Blocks(vec![2])));
        assert_eq!(parse_blocks("4, 1-2,2"), Ok(Blocks(vec![0, 1, 3])));
        for wrong in ["", "0", "0-2", "3-2", "1,", "x", "1-2-3", "4294967295"] {
            assert!(parse_blocks(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn repeats_are_a_number_or_a_range() {
        assert_eq!(parse_repeats("5"), Ok((5, 5)));
        assert_eq!(parse_repeats("3..10"), Ok((3, 10)));
        assert!(parse_repeats("0").is_err() && parse_repeats("5..3").is_err() && parse_repeats("x").is_err());
    }
}

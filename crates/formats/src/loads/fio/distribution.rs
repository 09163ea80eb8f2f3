//! Values of `random_distribution`.

use super::{
    job::Offsets,
    value::{self, Base},
};
use fstone_model::workload::{MAXIMUM_ZONES, Zone, Zones};

/// The distribution that is written so, or what was expected.
pub(super) fn distribution(text: &str, base: Base) -> Result<Offsets, &'static str> {
    if let Some((word @ ("zoned" | "zoned_abs"), zones)) = text.split_once(':') {
        if zones.contains(',') {
            return Err("one list of zones, the same for reads and writes");
        }
        return if word == "zoned" {
            zoned(zones, base)
                .ok_or("percents of operations and of the file such as 60/10:30/20:10/70, at most 16, both 100 in all")
        } else {
            zoned_bytes(zones, base)
                .ok_or("percents and sizes such as 60/20g:30/100g:10/, at most 15, the percents 100 in all")
        };
    }
    let mut parts = text.split(':');
    let word = parts.next().unwrap_or("");
    let parameter = parts.next().map(|part| value::decimal(part).filter(|number| *number > 0.0));
    if parts.next().is_some() {
        return Err("a distribution around its own centre: another is not supported");
    }
    match (word, parameter) {
        ("random", None) => Ok(Offsets::Uniform),
        ("zipf", None) => Ok(Offsets::Zipf(1.1)),
        ("zipf", Some(Some(theta))) if theta != 1.0 => Ok(Offsets::Zipf(theta)),
        ("normal" | "gauss", Some(Some(deviation))) if deviation <= 100.0 => Ok(Offsets::Normal(deviation)),
        ("pareto", None) => Ok(Offsets::Pareto(0.2)),
        ("pareto", Some(Some(share))) if share < 1.0 => Ok(Offsets::Pareto(share)),
        _ => Err(
            "random, zipf:THETA (not 1), pareto:SHARE (below 1), normal:PERCENT, zoned:PERCENT/PERCENT:… or zoned_abs:PERCENT/SIZE:…",
        ),
    }
}

/// The two numbers of each zone of `60/10:30/20:10/`, as far as they are given.
fn zones(text: &str, base: Base) -> Option<Vec<[Option<u64>; 2]>> {
    let number = |text: &str| if text.is_empty() { Some(None) } else { value::number(text, base).map(Some) };
    let zone = |part: &str| {
        let (share, length) = part.split_once('/').unwrap_or((part, ""));
        Some([number(share)?, number(length)?])
    };
    text.split(':').filter(|part| !part.is_empty()).map(zone).collect()
}

/// Percents, in hundredths, of which those that are left out share what is left.
fn percents(given: impl Iterator<Item = Option<u64>> + Clone) -> Option<Vec<u32>> {
    let sum = given.clone().flatten().try_fold(0_u64, u64::checked_add)?;
    let left = 100_u64.checked_sub(sum)? * 100;
    let open = given.clone().filter(Option::is_none).count() as u64;
    let each = match open {
        0 => (left == 0).then_some(0)?,
        open => left / open,
    };
    given.map(|percent| u32::try_from(percent.map_or(each, |percent| percent * 100)).ok()).collect()
}

fn zoned(text: &str, base: Base) -> Option<Offsets> {
    let zones = zones(text, base)?;
    let weights = percents(zones.iter().map(|zone| zone[0]))?;
    let lengths = percents(zones.iter().map(|zone| zone[1]))?;
    let all: Vec<Zone> = weights.into_iter().zip(lengths).map(|(weight, length)| Zone { weight, length }).collect();
    Zones::new(&all).map(Offsets::Zoned)
}

fn zoned_bytes(text: &str, base: Base) -> Option<Offsets> {
    let zones = zones(text, base)?;
    let weights = percents(zones.iter().map(|zone| zone[0]))?;
    let (last, before) = zones.split_last()?;
    // What is behind the last one is a zone, too.
    let fits = zones.len() < MAXIMUM_ZONES
        && before.iter().all(|zone| zone[1].is_some_and(|bytes| bytes > 0))
        && last[1] != Some(0)
        && weights[0] > 0;
    fits.then(|| Offsets::ZonedBytes(weights.into_iter().zip(zones.iter().map(|zone| zone[1])).collect()))
}

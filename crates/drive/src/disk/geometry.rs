//! Where sectors are on the platters, how long it takes to get there, and when they pass under the head.

use crate::model::Model;
use crate::request::SECTOR_BYTES;
use std::ops::Range;

/// A wait of nearly a whole revolution is a track switch that was on time but for rounding.
const ROUNDING_NS: u64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    cylinder: u64,
    head: u64,
}

/// Cylinders with the same number of sectors per track.
#[derive(Debug, Clone, Copy)]
struct Zone {
    first_sector: u64,
    first_cylinder: u64,
    sectors_per_track: u64,
}

#[derive(Debug)]
pub(super) struct Geometry {
    revolution_ns: u64,
    heads: u64,
    head_switch_ns: u64,
    cylinder_switch_ns: u64,
    zones: Vec<Zone>,
    cylinders: u64,
    track_seek_ns: f64,
    /// What a longer seek takes more: by the root and by the whole of the distance.
    curve: (f64, f64),
}

impl Geometry {
    /// A disk of this size: the whole stroke is the whole disk, however large that is.
    pub(super) fn new(model: &Model, capacity_bytes: u64) -> Self {
        let revolution_ns = (60e9 / model.number("rpm")).round() as u64;
        let heads = model.whole("heads");
        let (head_switch_ns, cylinder_switch_ns) = (model.whole("head-switch"), model.whole("track-to-track-seek"));
        let count = model.whole("zones");
        // A sustained rate includes the switches.
        let track_ns = revolution_ns as f64 + ((heads - 1) * head_switch_ns + cylinder_switch_ns) as f64 / heads as f64;
        let (outer, inner) = (model.number("outer-rate"), model.number("inner-rate"));
        let rate = |zone: u64| outer - (outer - inner) * zone as f64 / (count - 1).max(1) as f64;
        let per_track = |zone: u64| ((rate(zone) * track_ns / 1e9 / SECTOR_BYTES as f64).round() as u64).max(1);
        let sectors = capacity_bytes / SECTOR_BYTES;
        let first_cylinder = |zone: u64, cylinders: u64| (zone * cylinders).div_ceil(count);
        let holds = |cylinders: u64| {
            let of_zone =
                |zone| (first_cylinder(zone + 1, cylinders) - first_cylinder(zone, cylinders)) * per_track(zone);
            heads * (0..count).map(of_zone).sum::<u64>()
        };
        // As few as hold it, or a part of the stroke would not be used.
        let (mut too_few, mut cylinders) = (0, 1);
        while holds(cylinders) < sectors {
            (too_few, cylinders) = (cylinders, cylinders * 2);
        }
        while cylinders - too_few > 1 {
            let between = too_few + (cylinders - too_few) / 2;
            if holds(between) < sectors {
                too_few = between;
            } else {
                cylinders = between;
            }
        }
        let mut zones = Vec::new();
        let mut first_sector = 0;
        for zone in 0..count {
            let [first, end] = [zone, zone + 1].map(|zone| first_cylinder(zone, cylinders));
            // Disks of fewer cylinders than zones have some of them.
            if first < end {
                zones.push(Zone { first_sector, first_cylinder: first, sectors_per_track: per_track(zone) });
            }
            first_sector += (end - first) * heads * per_track(zone);
        }
        let mut geometry = Self {
            revolution_ns,
            heads,
            head_switch_ns,
            cylinder_switch_ns,
            zones,
            cylinders,
            track_seek_ns: model.number("track-to-track-seek"),
            curve: model.seek_curve(),
        };
        // Zones of whole cylinders may hold a little more than what is asked for.
        geometry.cylinders = geometry.locate(sectors.saturating_sub(1)).0.cylinder + 1;
        geometry
    }

    pub(super) const START: Place = Place { cylinder: 0, head: 0 };

    /// The zone of a sector, its place, its number on its track, and how many a track has there.
    fn locate(&self, sector: u64) -> (Place, u64, u64) {
        let after = self.zones.partition_point(|zone| zone.first_sector <= sector);
        let zone = self.zones[after - 1];
        let within = sector - zone.first_sector;
        let track = within / zone.sectors_per_track;
        let place = Place { cylinder: zone.first_cylinder + track / self.heads, head: track % self.heads };
        (place, within % zone.sectors_per_track, zone.sectors_per_track)
    }

    /// When in a revolution a sector begins to pass. Tracks are skewed by what it takes to switch to them.
    fn angle_ns(&self, place: Place, number: u64, per_track: u64) -> u64 {
        let of_a_cylinder = (self.heads - 1) * self.head_switch_ns + self.cylinder_switch_ns;
        let skew = place.cylinder * (of_a_cylinder % self.revolution_ns) + place.head * self.head_switch_ns;
        (skew + number * self.revolution_ns / per_track) % self.revolution_ns
    }

    pub(super) fn seek_ns(&self, from: Place, to: Place) -> u64 {
        let distance = from.cylinder.abs_diff(to.cylinder);
        if distance == 0 {
            return if from.head == to.head { 0 } else { self.head_switch_ns };
        }
        let share = (distance - 1) as f64 / (self.cylinders.max(3) - 2) as f64;
        (self.track_seek_ns + self.curve.0 * share.sqrt() + self.curve.1 * share).round() as u64
    }

    pub(super) fn arrival_ns(&self, now_ns: u64, from: Place, sector: u64, settle_ns: u64) -> u64 {
        let (place, number, per_track) = self.locate(sector);
        let there = now_ns + self.seek_ns(from, place) + settle_ns;
        there + self.wait_ns(there, self.angle_ns(place, number, per_track))
    }

    pub(super) fn seek_to_ns(&self, from: Place, sector: u64) -> u64 {
        self.seek_ns(from, self.locate(sector).0)
    }

    pub(super) fn is_on_track(&self, place: Place, sector: u64) -> bool {
        self.locate(sector).0 == place
    }

    /// What of a sector's track passes, whole, from one moment until that sector begins at another: what comes after it on the track, and then
    /// what comes before it.
    pub(super) fn passed(&self, from_ns: u64, begin_ns: u64, sector: u64) -> [Range<u64>; 2] {
        let (_, number, per_track) = self.locate(sector);
        let passing_ns = (begin_ns + ROUNDING_NS).saturating_sub(from_ns);
        let count = (passing_ns * per_track / self.revolution_ns).min(per_track);
        let next_track = sector - number + per_track;
        [next_track - count.saturating_sub(number)..next_track, sector - count.min(number)..sector]
    }

    fn wait_ns(&self, now_ns: u64, angle_ns: u64) -> u64 {
        let wait = (angle_ns + self.revolution_ns - now_ns % self.revolution_ns) % self.revolution_ns;
        if wait + ROUNDING_NS >= self.revolution_ns { 0 } else { wait }
    }

    /// Moves on along the tracks from a sector that begins at `now_ns`: to `end`, or to the last that is over at `limit_ns`.
    /// Gives where that was, when, and where the heads are.
    pub(super) fn run(&self, mut sector: u64, end: u64, now_ns: u64, limit_ns: u64) -> (u64, u64, Place) {
        let mut now = now_ns;
        loop {
            let (place, number, per_track) = self.locate(sector);
            let whole = (per_track - number).min(end - sector);
            let after = |count: u64| {
                now + (number + count) * self.revolution_ns / per_track - number * self.revolution_ns / per_track
            };
            if after(whole) > limit_ns {
                let left = limit_ns.saturating_sub(now);
                let count = (left * per_track / self.revolution_ns).min(whole);
                let count = if after(count) > limit_ns { count.saturating_sub(1) } else { count };
                return (sector + count, after(count), place);
            }
            now = after(whole);
            sector += whole;
            if sector >= end {
                return (sector, now, place);
            }
            now = self.arrival_ns(now, place, sector, 0);
        }
    }
}

//! Ageing as a step, and how the state that was reached compares with its targets.

use super::Call;
use crate::{
    events::LoadProgress,
    fragmentation::{self, FREE, Fragmentation, QUARTERS, REGIONS_OF},
    meters::{KernelWork, Meters},
    place::device::ScratchDevice,
    stop::Stop,
    trial::{
        measure::of_interval,
        record::{Halt, StepReport, failed},
        session::{OnProgress, Session},
    },
};
use fstone_engine::age::{AgeError, Lived, age};
use fstone_model::{
    Step,
    age::{AGED_DIRECTORY, Age, Past, Profile, TOLERANCE, class_of, compare, weights},
    metric::{Figure, catalog},
    outcome::{Outcome, Reason},
    result::CommandRecord,
    units::{format_bytes, nanoseconds},
};
use std::{os::unix::fs::MetadataExt, path::Path, time::Instant};

impl Session {
    /// Ages what is no copy of an old image, measures the state, and makes the calls that follow.
    pub(super) fn age(
        &mut self,
        step: &Step,
        past: &Past,
        place: &Path,
        then: &[Call<'_>],
        progress: OnProgress<'_>,
        report: &mut StepReport,
    ) -> Result<(), Halt> {
        let (mut argv, mut words) = (vec!["age".to_owned(), past.name().to_owned()], String::new());
        let started = Instant::now();
        let wanted = match past {
            Past::Aged(wanted) => Some(wanted),
            Past::Image(_) => None,
        };
        if let Some(wanted) = wanted {
            // The executor chose it.
            let seed = wanted.seed.unwrap_or_default();
            argv.push(format!("seed={seed}"));
            let Lived { operations, written_bytes, planned_bytes } =
                self.live(step, wanted, seed, place, progress, report)?;
            let [written, planned] = [written_bytes, planned_bytes as u64].map(format_bytes);
            words = format!("{operations} operations wrote {written}, target {planned}\n");
            if (written_bytes as f64 / planned_bytes - 1.0).abs() > TOLERANCE {
                self.warn(format!("{}: missed its target: {written} written, target {planned}", step.name));
            }
        }
        let (duration_ns, at) = (nanoseconds(started.elapsed()), report.commands.len());
        if wanted.is_some() && self.device.as_ref().is_some_and(|device| device.purpose().is_of_an_image()) {
            // What was removed takes room in the image, and in each copy, where a fresh image has none.
            if let Err(error) = self.machine.mounter.trim(place) {
                self.warn(format!(
                    "{}: free space of the image is allocated on the host, unlike that of a fresh one: FITRIM: {error}",
                    step.name
                ));
            }
        }
        if wanted.is_some() {
            // What is only in memory, such as what is allocated for files that may grow, is no part of the state.
            self.make_all(step, then, false, report)?;
        }
        let (state, counted) = State::of(place, wanted, &self.machine.stop).map_err(|words| failed(step, words))?;
        report.figures.extend(state.figures);
        self.count(step, &counted, report)?;
        words.push_str(&state.words);
        report.commands.insert(at, CommandRecord { argv, status: None, duration_ns, output_tail: words });
        for miss in state.misses {
            self.warn(format!("{}: {miss}", step.name));
        }
        // mkfs, after which the superblock is read otherwise, did not run for a copy of an image.
        self.make_all(step, then, wanted.is_none(), report)
    }

    fn make_all(
        &mut self,
        step: &Step,
        calls: &[Call<'_>],
        reads_superblock: bool,
        report: &mut StepReport,
    ) -> Result<(), Halt> {
        for call in calls {
            let _held = self.prepare(call)?;
            self.make(step, call, report)?;
            if reads_superblock && matches!(call, Call::Unmount(_)) {
                self.read_superblock();
            }
        }
        Ok(())
    }

    fn live(
        &self,
        step: &Step,
        wanted: &Age,
        seed: u64,
        place: &Path,
        progress: OnProgress<'_>,
        report: &mut StepReport,
    ) -> Result<Lived, Halt> {
        let meters = Meters::begin(self.device.as_ref().map(ScratchDevice::path));
        let ended = age(wanted, place, seed, self.machine.stop.flag(), &|now| {
            progress(LoadProgress {
                phase: "ageing".to_owned(),
                elapsed: now.elapsed,
                expected: Some(now.expected),
                operations: now.operations,
                bytes: now.written_bytes,
                lately: None,
            });
        });
        let readings = meters.end();
        report.figures = of_interval(&readings);
        report.commands.extend(readings.work.as_ref().map(KernelWork::record));
        ended.map_err(|error| match error {
            AgeError::Interrupted => Halt::Stopped(step.name.clone()),
            AgeError::Impossible(words) => Halt::Outcome(Outcome::Refused(Reason::new(&step.name, words))),
            AgeError::Call { .. } => failed(step, error.to_string()),
        })
    }
}

struct State {
    figures: Vec<Figure>,
    /// Targets beside what was reached, and where free space is.
    words: String,
    /// What is further from its target than [`TOLERANCE`].
    misses: Vec<String>,
}

impl State {
    /// Without targets, of all files.
    fn of(place: &Path, wanted: Option<&Age>, stop: &Stop) -> Result<(Self, Fragmentation), String> {
        let profile = wanted.map(|wanted| &wanted.profile);
        let root = if wanted.is_some() { place.join(AGED_DIRECTORY) } else { place.to_owned() };
        let classes = |count: fn(&Profile) -> usize| vec![0; profile.map_or(0, count)];
        let (mut sizes, mut ages) = (classes(|profile| profile.sizes.len()), classes(|profile| profile.ages.len()));
        let (mut depths, mut files) = (classes(|profile| profile.depths.len()), 0u64);
        let now = std::fs::metadata(&root).map_err(|error| format!("stat {}: {error}", root.display()))?.mtime();
        // When each file was changed, and where it is.
        let (mut changes, mut pieces) = (Vec::new(), Vec::new());
        let counted = fragmentation::count_seeing(&root, stop, &mut |path, metadata, places| {
            files += 1;
            changes.push(metadata.mtime());
            pieces.extend(places.iter().map(|place| (metadata.mtime(), *place)));
            let Some(profile) = profile else { return };
            sizes[class_of(&profile.sizes, metadata.len() as f64)] += 1;
            let hours = (now - metadata.mtime()).max(0) as f64 / 3600.0;
            ages[class_of(&profile.ages, hours)] += 1;
            let depth = path.strip_prefix(&root).map_or(0, |below| below.components().count() - 1);
            let class = profile.depths.iter().position(|class| class.depth as usize == depth);
            depths[class.unwrap_or(0)] += 1;
        })
        .map_err(|error| error.to_string())?;
        let space = rustix::fs::statvfs(place).map_err(|error| format!("statvfs: {error}"))?;
        let used = space.f_blocks.saturating_sub(space.f_bfree) as f64;
        let reached = used / (used + space.f_bavail as f64);
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let figures = vec![catalog::UTILIZATION.figure(reached * 100.0), catalog::AGED_FILES.figure(files as f64)];
        let mut state = Self { figures, words: format!("utilization {}", percent(reached)), misses: Vec::new() };
        if let Some(Age { utilization, .. }) = wanted {
            state.words.push_str(&format!(", target {}", percent(*utilization)));
            if (reached / utilization - 1.0).abs() > TOLERANCE {
                state.misses.push(format!("missed its target: {}", state.words));
            }
        }
        let distributions = profile.map(|profile| {
            [
                ("sizes", catalog::SIZES_CHI, sizes, weights(&profile.sizes)),
                ("ages", catalog::AGES_CHI, ages, weights(&profile.ages)),
                ("depths", catalog::DEPTHS_CHI, depths, profile.depth_weights()),
            ]
        });
        for (what, metric, counts, weights) in distributions.into_iter().flatten() {
            let (chi, elsewhere) = compare(&counts, &weights);
            state.figures.push(metric.figure(chi));
            let words = format!("{what}: {} of the files in another class than in the profile", percent(elsewhere));
            state.words.push_str(&format!("\n{words}, χ² {chi:.1}"));
            if elsewhere > TOLERANCE {
                state.misses.push(format!("missed its target: {words}"));
            }
        }
        changes.sort_unstable();
        let quarters = [1, 2, 3].map(|quarter| changes.get(changes.len() * quarter / 4).copied());
        let quarter = |change| QUARTERS[quarters.iter().filter(|from| from.is_some_and(|from| from <= change)).count()];
        let mut owned: Vec<_> = pieces.into_iter().map(|(change, place)| (quarter(change), place)).collect();
        if let Some(free) = fragmentation::free_extents(place) {
            let (count, bytes, words) = fragmentation::free_space(&free);
            state.figures.push(catalog::FREE_EXTENTS.figure(count as f64));
            if count > 0 {
                state.figures.push(catalog::MEAN_FREE_EXTENT.figure(bytes as f64 / count as f64));
            }
            state.words.push_str(&format!("\n{words}"));
            owned.extend(free.into_iter().map(|place| (FREE, place)));
        }
        let size = space.f_blocks.saturating_mul(space.f_frsize);
        if let Some(chunks) = fragmentation::chunks(place) {
            owned = fragmentation::on_device(&owned, &chunks, size);
        }
        state.words.push_str(&format!("\n{REGIONS_OF} {}", fragmentation::regions(&owned, size)));
        Ok((state, counted))
    }
}

//! Ageing as a step, and how the state that was reached compares with its targets.

use super::Call;
use crate::{
    events::LoadProgress,
    fragmentation::{self, Fragmentation},
    meters::{KernelWork, Meters},
    place::device::ScratchDevice,
    stop::Stop,
    trial::{
        measure::of_interval,
        record::{Halt, StepReport, failed},
        session::{OnProgress, Session},
    },
};
use fstone_engine::age::{AgeError, age};
use fstone_model::{
    Step,
    age::{AGED_DIRECTORY, Age, TOLERANCE, class_of, compare, weights},
    metric::{Figure, catalog},
    outcome::{Outcome, Reason},
    result::CommandRecord,
    units::{format_bytes, nanoseconds},
};
use std::{fs::Metadata, os::unix::fs::MetadataExt, path::Path, time::Instant};

impl Session {
    /// Ages, measures the state, and makes the calls that follow.
    pub(super) fn age(
        &mut self,
        step: &Step,
        wanted: &Age,
        place: &Path,
        then: &[Call<'_>],
        progress: OnProgress<'_>,
        report: &mut StepReport,
    ) -> Result<(), Halt> {
        let seed = wanted.seed.unwrap_or(self.seed);
        let meters = Meters::begin(self.device.as_ref().map(ScratchDevice::path));
        let started = Instant::now();
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
        let (operations, written) = ended.map_err(|error| match error {
            AgeError::Interrupted => Halt::Stopped(step.name.clone()),
            AgeError::Impossible(words) => Halt::Outcome(Outcome::Refused(Reason::new(&step.name, words))),
            AgeError::Call { .. } => failed(step, error.to_string()),
        })?;
        let duration_ns = nanoseconds(started.elapsed());
        let (state, counted) = State::of(place, wanted, &self.machine.stop).map_err(|words| failed(step, words))?;
        report.figures.extend(state.figures);
        self.count(step, &counted, report)?;
        report.commands.push(CommandRecord {
            argv: ["age", &wanted.profile.name, &format!("seed={seed}")].map(str::to_owned).to_vec(),
            status: None,
            duration_ns,
            output_tail: format!("{operations} operations wrote {}\n{}", format_bytes(written), state.words),
        });
        for miss in state.misses {
            self.warn(format!("{}: {miss}", step.name));
        }
        for call in then {
            let _held = self.prepare(call)?;
            self.make(step, call, report)?;
        }
        Ok(())
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
    fn of(place: &Path, wanted: &Age, stop: &Stop) -> Result<(Self, Fragmentation), String> {
        let profile = &wanted.profile;
        let root = place.join(AGED_DIRECTORY);
        let [mut sizes, mut ages] = [&profile.sizes, &profile.ages].map(|classes| vec![0; classes.len()]);
        let mut depths = vec![0; profile.depths.len()];
        let now = std::fs::metadata(&root).map_err(|error| format!("stat {AGED_DIRECTORY}: {error}"))?.mtime();
        let counted = fragmentation::count_seeing(&root, stop, &mut |path: &Path, metadata: &Metadata| {
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
        let figures = vec![
            catalog::UTILIZATION.figure(reached * 100.0),
            catalog::AGED_FILES.figure(sizes.iter().sum::<u64>() as f64),
        ];
        let words = format!("utilization {}, target {}", percent(reached), percent(wanted.utilization));
        let mut state = Self { figures, words, misses: Vec::new() };
        if (reached / wanted.utilization - 1.0).abs() > TOLERANCE {
            state.misses.push(format!("missed its target: {}", state.words));
        }
        for (what, metric, counts, weights) in [
            ("sizes", catalog::SIZES_CHI, sizes, weights(&profile.sizes)),
            ("ages", catalog::AGES_CHI, ages, weights(&profile.ages)),
            ("depths", catalog::DEPTHS_CHI, depths, profile.depth_weights()),
        ] {
            let (chi, elsewhere) = compare(&counts, &weights);
            state.figures.push(metric.figure(chi));
            let words = format!("{what}: {} of the files in another class than in the profile", percent(elsewhere));
            state.words.push_str(&format!("\n{words}, χ² {chi:.1}"));
            if elsewhere > TOLERANCE {
                state.misses.push(format!("missed its target: {words}"));
            }
        }
        if let Some(free) = fragmentation::free_extents(place) {
            let (count, bytes) = free.iter().fold((0u64, 0u64), |(count, bytes), of| (count + of.0, bytes + of.1));
            state.figures.push(catalog::FREE_EXTENTS.figure(count as f64));
            if count > 0 {
                state.figures.push(catalog::MEAN_FREE_EXTENT.figure(bytes as f64 / count as f64));
            }
            state.words.push_str("\nfree extents from");
            for (power, (count, _)) in free.iter().enumerate().filter(|(_, (count, _))| *count > 0) {
                state.words.push_str(&format!(" {}: {count};", format_bytes(1 << power)));
            }
        }
        Ok((state, counted))
    }
}

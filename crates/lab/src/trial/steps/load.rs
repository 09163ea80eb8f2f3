//! A load as a step.

use super::Call;
use crate::{
    meters::{self, KernelWork, Meters, Readings},
    trial::{
        load::{LoadFailure, LoadRequest, error_words, load_figures},
        promises::Promises,
        record::{Halt, StepReport, failed},
        session::{OnProgress, Session},
    },
};
use fstone_model::{
    LoadReport, Step, Workload,
    metric::catalog,
    result::CommandRecord,
    units::nanoseconds,
    workload::{Existing, Fileset},
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

impl Session {
    pub(super) fn load(
        &mut self,
        step: &Step,
        workload: &Workload,
        cold: bool,
        progress: OnProgress<'_>,
        report: &mut StepReport,
    ) -> Result<(), Halt> {
        if let Some(launch) = &workload.launch {
            let looks = |fileset: &Fileset| matches!(fileset.existing, Existing::Require | Existing::Reuse);
            if cold && workload.filesets.iter().any(looks) {
                let words = "ranks look at existing files before the interval, so names come from memory although caches were dropped; \
                             use existing = \"assume\"";
                self.warn(format!("{}: {words}", step.name));
            }
            return self.ranked_load(step, workload, launch, progress, report);
        }
        let cold = cold || workload.replay.as_ref().is_some_and(|replay| replay.cold);
        let directory = self.place.clone();
        let machine = self.machine.clone();
        let device = self.device.as_ref().map(|device| device.path().to_owned());
        let (running, readings) = (Mutex::new(None), Mutex::new(None::<Readings>));
        let slot = |slot: &Mutex<Option<Meters>>, value| {
            std::mem::replace(&mut *slot.lock().unwrap_or_else(PoisonError::into_inner), value)
        };
        let with_running = |act: fn(&mut Meters)| {
            if let Some(meters) = &mut *running.lock().unwrap_or_else(PoisonError::into_inner) {
                act(meters);
            }
        };
        let promises = self.promises.clone();
        let marker = promises.as_ref().and(device.as_deref()).and_then(meters::marker);
        let started = Instant::now();
        let dropped = Mutex::new(None);
        let company = Arc::clone(&self.company);
        let company = || company.lock().unwrap_or_else(PoisonError::into_inner);
        let request = LoadRequest {
            workload,
            directory: &directory,
            seed: self.seed,
            measure_null: self.measure_null,
            stop: machine.stop.flag(),
            found: &|| {
                // What was cold is to be so again.
                if cold {
                    let drop = Instant::now();
                    let done = machine.mounter.drop_caches();
                    *dropped.lock().unwrap_or_else(PoisonError::into_inner) = Some((done, drop.elapsed()));
                }
            },
            begin: &|| {
                company().begin();
                drop(slot(&running, Some(Meters::begin(device.as_deref()))));
            },
            end: &|| {
                // What the final sync promised is before the interval's end.
                if let (Some(promises), Some(marker)) = (&promises, &marker) {
                    promises.mark(marker);
                }
                company().interval_ended();
                if let Some(meters) = slot(&running, None) {
                    let mut readings = readings.lock().unwrap_or_else(PoisonError::into_inner);
                    readings.get_or_insert_default().add(&meters.end());
                }
                company().wait();
            },
            phase_ended: &|| with_running(Meters::phase_ended),
            phase_begins: &|| with_running(Meters::phase_begins),
            progress,
            witness: promises.as_ref().map(Promises::witness),
        };
        let result = match (&promises, &marker) {
            (Some(promises), Some(marker)) => promises.marking(marker, || machine.loader.load(&request)),
            _ => machine.loader.load(&request),
        };
        report.figures.push(catalog::TIME.figure(started.elapsed().as_secs_f64()));
        if let Some((done, duration)) = dropped.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.warmth.lost();
            let record = |argv| CommandRecord {
                argv,
                status: None,
                duration_ns: nanoseconds(duration),
                output_tail: String::new(),
            };
            report.commands.extend(Call::DropCaches.argv().map(record));
            if let Err(error) = done {
                self.warn(format!("{}: caches were not dropped after files were looked at: {error}", step.name));
            }
        }
        let loaded = match result {
            Ok(loaded) => loaded,
            Err(LoadFailure::Interrupted(_)) => return Err(Halt::Stopped(step.name.clone())),
            Err(LoadFailure::Failed(words)) => return Err(failed(step, words)),
        };
        let readings = readings.into_inner().unwrap_or_else(PoisonError::into_inner);
        report.commands.extend(readings.iter().filter_map(|readings| readings.work.as_ref()).map(KernelWork::record));
        let figures = load_figures(&loaded, readings.as_ref());
        let reads = figures.iter().find(|figure| figure.metric == catalog::DEVICE_READ_BYTES.name);
        if cold && workload.looks_at_files() && reads.is_some_and(|reads| reads.value == 0.0) {
            let words = "nothing was read from the device although caches were dropped before: its files or their names came from memory";
            self.warn(format!("{}: {words}", step.name));
        }
        report.figures.extend(figures);
        self.settle_load(step, workload, loaded, report)
    }

    /// Records what a load told of itself, and lets the step fail where its operations did and the workload does not allow for it.
    pub(super) fn settle_load(
        &mut self,
        step: &Step,
        workload: &Workload,
        loaded: LoadReport,
        report: &mut StepReport,
    ) -> Result<(), Halt> {
        for warning in &loaded.warnings {
            self.warn(format!("{}: {warning}", step.name));
        }
        let errors: Vec<String> = loaded.errors.iter().map(error_words).collect();
        let goes_on = loaded.ended_by(workload).is_none();
        report.load = Some(Box::new(loaded));
        if errors.is_empty() {
            return Ok(());
        }
        if goes_on {
            self.warn(format!("{}: operations failed: {}", step.name, errors.join("; ")));
            return Ok(());
        }
        Err(failed(step, errors.join("; ")))
    }
}

//! A load as a step.

use crate::{
    meters::{self, Meters, Readings},
    trial::{
        load::{LoadFailure, LoadRequest, error_words, load_figures},
        promises::Promises,
        record::{Halt, StepReport, failed},
        session::{OnProgress, Session},
    },
};
use fstone_model::{LoadReport, Step, Workload, metric::catalog, workload::ErrorPolicy};
use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

impl Session {
    pub(super) fn load(
        &mut self,
        step: &Step,
        workload: &Workload,
        progress: OnProgress<'_>,
        report: &mut StepReport,
    ) -> Result<(), Halt> {
        if let Some(launch) = &workload.launch {
            return self.ranked_load(step, workload, launch, progress, report);
        }
        let directory = self.place.clone();
        let machine = self.machine.clone();
        let device = self.device.as_ref().map(|device| device.path().to_owned());
        let (running, readings) = (Mutex::new(None), Mutex::new(None::<Readings>));
        let slot = |slot: &Mutex<Option<Meters>>, value| {
            std::mem::replace(&mut *slot.lock().unwrap_or_else(PoisonError::into_inner), value)
        };
        let promises = self.promises.clone();
        let marker = promises.as_ref().and(device.as_deref()).and_then(meters::marker);
        let started = Instant::now();
        let request = LoadRequest {
            workload,
            directory: &directory,
            seed: self.seed,
            measure_null: self.measure_null,
            stop: machine.stop.flag(),
            begin: &|| drop(slot(&running, Some(Meters::begin(device.as_deref())))),
            end: &|| {
                // What the final sync promised is before the interval's end.
                if let (Some(promises), Some(marker)) = (&promises, &marker) {
                    promises.mark(marker);
                }
                if let Some(meters) = slot(&running, None) {
                    let mut readings = readings.lock().unwrap_or_else(PoisonError::into_inner);
                    readings.get_or_insert_default().add(&meters.end());
                }
            },
            progress,
            witness: promises.as_ref().map(Promises::witness),
        };
        let result = match (&promises, &marker) {
            (Some(promises), Some(marker)) => promises.marking(marker, || machine.loader.load(&request)),
            _ => machine.loader.load(&request),
        };
        report.figures.push(catalog::TIME.figure(started.elapsed().as_secs_f64()));
        let loaded = match result {
            Ok(loaded) => loaded,
            Err(LoadFailure::Interrupted) => return Err(Halt::Stopped(step.name.clone())),
            Err(LoadFailure::Failed(words)) => return Err(failed(step, words)),
        };
        let readings = readings.into_inner().unwrap_or_else(PoisonError::into_inner);
        report.figures.extend(load_figures(&loaded, readings.as_ref()));
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
        report.load = Some(Box::new(loaded));
        if errors.is_empty() {
            return Ok(());
        }
        if workload.on_error == ErrorPolicy::Continue {
            self.warn(format!("{}: operations failed: {}", step.name, errors.join("; ")));
            return Ok(());
        }
        Err(failed(step, errors.join("; ")))
    }
}

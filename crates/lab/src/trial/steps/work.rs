//! Steps that work in the mounted filesystem, or in the directory that stands for it.

use crate::{
    command::{CommandLine, typed},
    meters::Meters,
    place::device::ScratchDevice,
    trial::{
        LoadFailure, LoadRequest,
        load::{error_words, load_figures},
        measure::of_command,
        record::{Halt, StepReport, failed},
        session::{OnProgress, Session},
    },
};
use fstone_model::{Outcome, Step, Workload, metric::catalog, outcome::Reason, workload::ErrorPolicy};
use std::{
    fs,
    path::{Component, Path},
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
        let directory = self.place(step)?.to_owned();
        let machine = self.machine.clone();
        let device = self.device.as_ref().map(|device| device.path().to_owned());
        let (running, readings) = (Mutex::new(None), Mutex::new(None));
        let slot = |slot: &Mutex<Option<Meters>>, value| {
            std::mem::replace(&mut *slot.lock().unwrap_or_else(PoisonError::into_inner), value)
        };
        let started = Instant::now();
        let result = machine.loader.load(&LoadRequest {
            workload,
            directory: &directory,
            seed: self.seed,
            measure_null: self.measure_null,
            stop: machine.stop.flag(),
            begin: &|| drop(slot(&running, Some(Meters::begin(device.as_deref())))),
            end: &|| {
                if let Some(meters) = slot(&running, None) {
                    *readings.lock().unwrap_or_else(PoisonError::into_inner) = Some(meters.end());
                }
            },
            progress,
        });
        report.figures.push(catalog::TIME.figure(started.elapsed().as_secs_f64()));
        let loaded = match result {
            Ok(loaded) => loaded,
            Err(LoadFailure::Interrupted) => return Err(Halt::Stopped(step.name.clone())),
            Err(LoadFailure::Failed(words)) => return Err(failed(step, words)),
        };
        let readings = readings.into_inner().unwrap_or_else(PoisonError::into_inner);
        report.figures.extend(load_figures(&loaded, readings.as_ref()));
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

    pub(super) fn command(
        &mut self,
        step: &Step,
        argv: &[String],
        shell: bool,
        success: &[i32],
        report: &mut StepReport,
    ) -> Result<(), Halt> {
        let place = self.place(step)?.to_owned();
        let device = self.device.as_ref().map(ScratchDevice::argument).unwrap_or_default();
        let argv: Vec<String> = argv
            .iter()
            .map(|word| word.replace("{mount}", &place.display().to_string()).replace("{device}", &device))
            .collect();
        let command = match argv.split_first() {
            Some((script, _)) if shell => CommandLine::new("sh", ["-c", script]),
            Some((program, args)) => CommandLine::new(program, args.iter().cloned()),
            None => return Err(failed(step, "the command is empty".into())),
        };
        let command = command.in_directory(&place);
        self.warmth.restore(&command, &*self.machine.runner);
        let (output, figures) = self.metered(|session| session.run(step, &command, report));
        let output = output?;
        report.figures = of_command(figures, &output);
        let good = if success.is_empty() { output.status == 0 } else { success.contains(&output.status) };
        if good {
            Ok(())
        } else {
            Err(failed(step, format!("{}: exit status {}: {}", typed(&argv), output.status, output.words())))
        }
    }

    pub(super) fn fragmentation(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        let place = self.place(step)?.to_owned();
        let (counted, figures) = self.metered(|session| crate::fragmentation::count(&place, &session.machine.stop));
        let counted = counted.map_err(|error| failed(step, error.to_string()))?;
        report.figures = figures;
        report.figures.extend(counted.figures());
        for failure in &counted.errors {
            let error = std::io::Error::from_raw_os_error(failure.errno);
            // A file that the filesystem can count no extents of is one thing, a filesystem that cannot be read another.
            if matches!(failure.errno, libc::EIO | libc::EUCLEAN) {
                return Err(failed(step, format!("{} {}: {error}", failure.call, failure.path.display())));
            }
            self.warn(format!(
                "{}: left out of the count: {} {}: {error} ({} times)",
                step.name,
                failure.call,
                failure.path.display(),
                failure.count
            ));
        }
        Ok(())
    }

    pub(super) fn copy_in(
        &mut self,
        step: &Step,
        source: &str,
        target: &str,
        report: &mut StepReport,
    ) -> Result<(), Halt> {
        let place = self.place(step)?.to_owned();
        let relative = Path::new(target);
        let inside = relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside || relative.as_os_str().is_empty() {
            let words = format!("{target:?} has to be a path inside the mounted filesystem");
            return Err(Halt::Outcome(Outcome::Refused(Reason::new(&step.name, words))));
        }
        let target = place.join(relative);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(|error| failed(step, format!("mkdir {}: {error}", parent.display())))?;
        }
        let (source, target) = (source.to_owned(), target.display().to_string());
        let command = CommandLine::new("cp", ["-R", "-P", "--preserve=timestamps", "--", &source, &target]);
        let (output, figures) = self.metered(|session| session.run(step, &command, report));
        let output = output?;
        report.figures = of_command(figures, &output);
        if output.status == 0 { Ok(()) } else { Err(failed(step, output.words())) }
    }
}

//! How long a plan may become, and how much its loads may put on a device.
//!
//! Cells times steps is not a measure: a step may be a word, or a load of a thousand operations. What counts is how long
//! the plan is as the record of a run has it, which bounds memory here, in the store, and where a bundle is read.

use super::{
    MAXIMUM_COMMAND_BYTES, MAXIMUM_PLAN_BYTES, form::Form, level::Setting, load::Number, placeholder, step::Steps,
};
use crate::diagnostic::{Diagnostic, Report, Span};
use fstone_model::{
    study::{Cell, StepAction},
    units,
};
use std::io::{self, Write};

/// The length of cells as the record of a run has them.
#[derive(Debug, Default)]
pub(super) struct RecordSize(usize);

impl RecordSize {
    pub(super) fn takes(&mut self, cell: &Cell) -> bool {
        serde_json::to_writer(&mut *self, cell).is_ok()
    }
}

impl Write for RecordSize {
    /// Fails when the record is too long, so that a long cell is not counted to its end.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        if self.0 > MAXIMUM_PLAN_BYTES { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn plan_too_long(place: Span, cells: usize, fit: usize) -> Diagnostic {
    let limit = units::format_bytes(MAXIMUM_PLAN_BYTES as u64);
    Diagnostic::error(place, format!("the plan of these {cells} combinations is longer than {limit}"))
        .label("expected fewer combinations, fewer steps, or loads with fewer operations")
        .note(format!("{fit} of them would fit"))
}

/// Whether the commands of a trial have a length that can be run, with the form's variables filled in. Asked before any
/// is: a text may name a variable many thousand times.
pub(super) fn commands_fit(form: &Form<'_>, steps: &Steps, report: &mut Report) -> bool {
    let commands = steps.templates.iter().flat_map(|step| step.texts()).map(|text| text.value.as_str());
    let levels = form.factors.iter().flat_map(|factor| &factor.levels);
    let filesystems = levels.filter_map(|level| match &level.value.setting {
        Setting::Filesystem(filesystem, _) => Some(filesystem),
        _ => None,
    });
    let trees = filesystems.flat_map(|filesystem| {
        filesystem.tree.as_deref().into_iter().chain(filesystem.own.iter().flat_map(|own| own.words()))
    });
    let filled = commands.chain(trees).map(|text| placeholder::filled_bytes(text, |name| form.variable(name)));
    let fit = filled.fold(0, usize::saturating_add) <= MAXIMUM_COMMAND_BYTES;
    if !fit {
        let limit = units::format_bytes(MAXIMUM_COMMAND_BYTES as u64);
        report.push(
            Diagnostic::error(form.place, format!("with their variables, the commands are longer than {limit}"))
                .label("expected shorter commands, or shorter variables"),
        );
    }
    fit
}

/// Reports loads whose files are larger than the cell's device, where the study says how large that is.
pub(super) fn check_filesets(cell: &Cell, steps: &Steps, numbers: &[Number], report: &mut Report) {
    let Some(device_bytes) = cell.device.size_bytes() else { return };
    for (template, step) in steps.templates.iter().zip(&cell.steps) {
        let (Some(load), StepAction::Load(workload)) = (template.load(), &step.action) else { continue };
        // What is compressible may take less.
        let squeezed = workload.data.compressible > 0.0 || workload.data.duplicate > 0.0;
        let built = workload.built_bytes();
        if built > device_bytes && !squeezed {
            let [files, device] = [built, device_bytes].map(units::format_bytes);
            report.push(
                Diagnostic::error(
                    load.place_of_size(numbers),
                    format!("the files of step `{}` do not fit on the device", step.name),
                )
                .label(format!("they take {files}, and the device has {device}"))
                .help("make the files fewer or smaller, or the device larger (device.size, or --device-size)"),
            );
        }
    }
}

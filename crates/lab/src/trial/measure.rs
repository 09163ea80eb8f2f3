//! What a step's interval comes to, as figures.

use crate::{command::CommandOutput, meters::Readings};
use fstone_model::{
    metric::{Figure, catalog},
    study::StepAction,
};

pub(super) fn of_interval(readings: &Readings) -> Vec<Figure> {
    let mut figures = vec![catalog::TIME.figure(readings.elapsed.as_secs_f64())];
    figures.extend(readings.figures());
    figures
}

/// Whether a command of a step ended as it should.
pub(super) fn is_accepted(action: &StepAction, status: i32) -> bool {
    match action {
        StepAction::Command { success, .. } if !success.is_empty() => success.contains(&status),
        _ => status == 0,
    }
}

/// The figures of a command: its own CPU time in place of this process', its status and memory.
pub(super) fn of_command(mut figures: Vec<Figure>, output: &CommandOutput) -> Vec<Figure> {
    figures.retain(|figure| figure.metric != catalog::PROCESS_CPU.name && figure.metric != catalog::TIME.name);
    let time = output.duration.as_secs_f64();
    figures.insert(0, catalog::TIME.figure(time));
    if time > 0.0 {
        let busy = (output.usage.user + output.usage.system).as_secs_f64();
        figures.push(catalog::PROCESS_CPU.figure(busy * 100.0 / time));
    }
    figures.push(catalog::EXIT_STATUS.figure(f64::from(output.status)));
    figures.push(catalog::MAXIMUM_RESIDENT_BYTES.figure(output.usage.maximum_resident_bytes as f64));
    figures
}

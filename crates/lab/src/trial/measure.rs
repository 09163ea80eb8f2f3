//! A step's time and meters.

use crate::meters::{Meters, Readings};
use fstone_model::metric::{Figure, catalog};
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Does something, with its time and everything the meters tell as figures.
pub(super) fn measured<T>(device: Option<&Path>, work: impl FnOnce() -> T) -> (T, Vec<Figure>) {
    let meters = Meters::begin(device);
    let started = Instant::now();
    let result = work();
    let time = started.elapsed();
    (result, figures(time, &meters.end()))
}

/// The figures of an interval.
pub(super) fn figures(time: Duration, readings: &Readings) -> Vec<Figure> {
    let mut figures = vec![catalog::TIME.figure(time.as_secs_f64())];
    figures.extend(readings.figures());
    figures
}

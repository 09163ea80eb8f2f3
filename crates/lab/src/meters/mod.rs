//! Meters: what the whole machine did during a step.

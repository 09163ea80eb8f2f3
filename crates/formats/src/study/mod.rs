//! The study file, read into a plan.

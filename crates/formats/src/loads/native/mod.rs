//! The workload file: the workload in a readable TOML form ([`parse`], [`print()`]); and the numbers of a workload that
//! a study may change whatever format it came from ([`Parameter`], [`Target`]).
//!
//! `docs/workload-file.md` describes the format. Reading order: `surface` has the tables and keys, `read` and `print` are
//! the two ways through it. What is used in several places is in files that have its keys and both ways: `action` (all operations
//! with it), `transfer`, `sizes` and `steps`.

mod action;
mod format;
mod lines;
mod parameter;
mod print;
mod read;
mod sizes;
mod steps;
mod surface;
mod target;
mod transfer;
mod value;

pub use format::FORMAT;
pub use parameter::{ApplyError, Parameter, Quantity};
pub use print::print;
pub use read::{MAXIMUM_BYTES, parse};
pub use target::Target;

use crate::decode::{self, Decode, KeyReference, Keys};

/// The JSON schema (draft 2020-12) of the workload file.
pub fn schema() -> serde_json::Value {
    let mut schema = surface::WorkloadFile::schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "fstone workload file".into();
    schema
}

/// Every key of the workload file, table by table, in the order a file usually has them.
pub fn reference() -> Vec<KeyReference> {
    decode::reference([
        ("", surface::WorkloadFile::keys()),
        ("io", surface::IoSurface::keys()),
        ("data", surface::DataSurface::keys()),
        ("fileset", surface::FilesetSurface::keys()),
        ("fileset.directories", surface::DirectoriesTable::keys()),
        ("fileset.directories.tree", surface::TreeSurface::keys()),
        ("fileset.size", sizes::SizeTable::keys()),
        ("fileset.size.uniform", sizes::UniformSurface::keys()),
        ("fileset.size.weighted", sizes::WeightedSize::keys()),
        ("fileset.size.gamma", sizes::GammaSurface::keys()),
        ("fileset.size.lognormal", sizes::LognormalSurface::keys()),
        ("phase", surface::PhaseSurface::keys()),
        ("phase.stop", surface::StopSurface::keys()),
        ("phase.group", surface::GroupSurface::keys()),
        ("phase.group.region", surface::RegionTable::keys()),
        ("phase.group.fsync", surface::FsyncSurface::keys()),
        ("phase.group.batches", surface::BatchesSurface::keys()),
        ("phase.group.latency-target", surface::LatencyTargetSurface::keys()),
        ("phase.group.goes-on-after", surface::GoesOnSurface::keys()),
        ("phase.group.least-rate", surface::LeastRateSurface::keys()),
        ("phase.group.steady", surface::SteadySurface::keys()),
        ("phase.group.ratio", surface::RatioSurface::keys()),
        ("phase.group.program", steps::StepSurface::keys()),
        ("phase.group.program.repeat", steps::RepeatSurface::keys()),
        ("phase.group.program.finish", steps::FinishSurface::keys()),
        ("phase.group.program.pace", steps::PaceSurface::keys()),
        ("phase.group.program.wait", steps::WaitSurface::keys()),
        ("phase.group.program.post", steps::PostSurface::keys()),
        ("phase.group.mix", action::ActionSurface::keys()),
        ("phase.group.mix.create", action::CreateSurface::keys()),
        ("phase.group.mix.replace", action::ReplaceSurface::keys()),
        ("phase.group.mix.read", transfer::TransferSurface::keys()),
        ("phase.group.mix.read.distribution", transfer::DistributionTable::keys()),
        ("phase.group.mix.read.distribution.zones", transfer::ZoneSurface::keys()),
        ("phase.group.mix.fill", action::FillSurface::keys()),
        ("phase.group.mix.move", action::MoveSurface::keys()),
        ("phase.group.mix.truncate", action::LengthSurface::keys()),
        ("phase.group.mix.setxattr", action::AttributeSurface::keys()),
    ])
}

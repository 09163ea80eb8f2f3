//! The workload file: the workload in a readable TOML form ([`parse`], [`print`]); and the numbers of a workload that
//! a study may change whatever format it came from ([`Parameter`], [`Target`]).
//!
//! `docs/workload-file.md` describes the format. Reading order: `surface` has every table and key there is, `read`
//! (with `action`) and `print` are the two ways through it.

mod action;
mod format;
mod parameter;
mod print;
mod read;
mod sizes;
mod surface;
mod target;
mod value;

pub use format::Native;
pub use parameter::{ApplyError, Parameter, Quantity};
pub use print::print;
pub use read::{MAXIMUM_BYTES, parse};
pub use target::Target;

use crate::decode::{self, Decode, KeyReference, Keys};

/// The JSON schema (draft 2020-12) of the workload file.
#[must_use]
pub fn schema() -> serde_json::Value {
    let mut schema = surface::WorkloadFile::schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "fstone workload file".into();
    schema
}

/// Every key of the workload file, table by table, in the order a file usually has them.
#[must_use]
pub fn reference() -> Vec<KeyReference> {
    decode::reference([
        ("", surface::WorkloadFile::keys()),
        ("io", surface::IoSurface::keys()),
        ("data", surface::DataSurface::keys()),
        ("fileset", surface::FilesetSurface::keys()),
        ("fileset.directories", surface::DirectoriesTable::keys()),
        ("fileset.directories.tree", surface::TreeSurface::keys()),
        ("fileset.size", surface::SizeTable::keys()),
        ("fileset.size.uniform", surface::UniformSurface::keys()),
        ("fileset.size.weighted", surface::WeightedSize::keys()),
        ("fileset.size.gamma", surface::GammaSurface::keys()),
        ("fileset.size.lognormal", surface::LognormalSurface::keys()),
        ("phase", surface::PhaseSurface::keys()),
        ("phase.stop", surface::StopSurface::keys()),
        ("phase.group", surface::GroupSurface::keys()),
        ("phase.group.region", surface::RegionTable::keys()),
        ("phase.group.fsync", surface::FsyncSurface::keys()),
        ("phase.group.ratio", surface::RatioSurface::keys()),
        ("phase.group.mix", surface::ActionSurface::keys()),
        ("phase.group.mix.create", surface::CreateSurface::keys()),
        ("phase.group.mix.read", surface::TransferSurface::keys()),
        ("phase.group.mix.read.distribution", surface::DistributionTable::keys()),
        ("phase.group.mix.move", surface::MoveSurface::keys()),
        ("phase.group.mix.truncate", surface::LengthSurface::keys()),
        ("phase.group.mix.setxattr", surface::AttributeSurface::keys()),
    ])
}

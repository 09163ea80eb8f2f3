//! The study file, read into a plan.
//!
//! [`compile`] turns a study file into a [`Plan`] in which every cell says all it needs. Reading order: `surface` has
//! every table and key there is; `factor` and `level` make the factors, and `cells` their combinations; `step` makes
//! the steps, `load` the loads in them, `placeholder` the `{names}` in their
//! commands, `figures` what those print, `show` the columns; `filesystem`, `own` and `device` check what is made, and on what;
//! `service` reads what steps need; `published` reads figures from elsewhere; `bounds` says how long a plan may become; `form` has
//! the study whole and quick, and `compile` puts it together.
//!
//! What can be known from the file alone is checked here: names, metrics, paths, counts. Which types of filesystem there
//! are is handed in; what depends on the machine (tools, minimum sizes, rights) is the lab's.

mod age;
mod bounds;
mod cells;
mod compile;
mod device;
mod factor;
mod figures;
mod filesystem;
mod form;
mod level;
mod load;
mod overrides;
mod own;
mod own_rows;
mod placeholder;
mod published;
mod service;
mod set;
mod show;
mod source_tree;
mod step;
mod surface;

pub use compile::{compile, compile_with_warnings};
pub use load::IMAGE_MARK;
pub use overrides::{DeviceChoice, Overrides};
pub use source_tree::{SourceTree, put_source_trees, source_trees};
pub use step::default_limit;

use crate::decode::{self, Decode, KeyReference, Keys, Shared};
#[expect(unused_imports, reason = "for the links above")]
use fstone_model::Plan;

pub const MAXIMUM_BYTES: usize = 1 << 20;
/// The largest number of cells. At a minute each, a block of them takes a week.
pub const MAXIMUM_CELLS: usize = 10_000;
pub const MAXIMUM_STEPS: usize = 200;
/// The longest plan, in bytes of its record: room for 10,000 cells with three loads each.
pub const MAXIMUM_PLAN_BYTES: usize = 64 << 20;
/// The longest text that the commands of one trial have together, variables filled in.
pub const MAXIMUM_COMMAND_BYTES: usize = 1 << 20;

/// The JSON schema (draft 2020-12) of the study file.
pub fn schema() -> serde_json::Value {
    let mut schema = surface::StudyFile::schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "fstone study file".into();
    schema
}

/// Every key of the study file, table by table, in the order a file usually has them.
pub fn reference() -> Vec<KeyReference> {
    decode::reference([
        ("", surface::StudyFile::keys()),
        ("repeats", surface::RepeatsRange::keys()),
        ("device", surface::DeviceSurface::keys()),
        ("device.loop", surface::LoopSurface::keys()),
        ("device.zram", surface::ZramSurface::keys()),
        ("filesystem.NAME", surface::OwnSurface::keys()),
        ("service.NAME", surface::ServiceSurface::keys()),
        ("service.NAME.ready", surface::ReadySurface::keys()),
        ("factor", surface::FactorsSurface::keys()),
        ("factor.filesystem.NAME", surface::FilesystemSurface::keys()),
        ("factor.filesystem.NAME.age", surface::AgeSurface::keys()),
        ("factor.filesystem.NAME.age, of an image", surface::OldImageSurface::keys()),
        ("sweep", surface::SweepSurface::keys()),
        ("step", surface::StepSurface::keys()),
        ("step.load", surface::LoadSurface::keys()),
        ("step.load.PART", level::Numbers::keys()),
        ("step.command", surface::CommandTable::keys()),
        ("step.command.figures.NAME", surface::FigureSurface::keys()),
        ("step.command.figures.NAME.csv", surface::CsvSurface::keys()),
        ("step.fsck", surface::FsckSurface::keys()),
        ("step.copy-in", surface::CopySurface::keys()),
        ("step.power-cut", surface::PowerSurface::keys()),
        ("quick", surface::QuickSurface::keys()),
        ("quick.factor", surface::SweepSurface::keys()),
        ("quick.sweep", surface::SweepSurface::keys()),
        ("published", surface::PublishedSurface::keys()),
        ("published.row.NAME", surface::RemarkedFigure::keys()),
    ])
}

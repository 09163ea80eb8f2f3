//! One run in one file, for others to import, verify and repeat.
//!
//! A bundle is a tar archive compressed with zstd, so that it can be looked into without fstone
//! (`tar --zstd -tf run.fstone`). Its entries, in this order and no others:
//!
//! | entry | |
//! |---|---|
//! | `fstone-bundle.json` | `{"format": "fstone bundle", "version": 1}`; 2 when other machines made blocks of the run, 3 with baselines |
//! | `run.json` | the run: plan (study, seed, cells), machine, command line |
//! | `baselines.json` | the names that the run has as a baseline, if any |
//! | `study/study.toml`, `study/…` | the study file and what it names, as they were read; the same as in `run.json` |
//! | `trials/000000.json`, … | each finished trial, by position: steps, commands, figures, raw histograms |
//! | `manifest.json` | path, length and SHA-256 of every entry before it |
//!
//! A bundle comes from someone else, so [`read`] trusts nothing: entries are read into memory within limits
//! and never written to paths they name; what is not a regular file with a plain relative name is refused, and so is
//! what is missing, too much, or differs from the manifest. The hashes find damage and careless changes. They do not
//! prove who made the bundle: for that, compare the [`Contents::digest`] with the one that its maker published.

mod error;
mod export;
mod files;
mod import;
mod known;
mod merge;
mod read;

pub use error::{BundleError, ExportError, ImportError, MergeError};
pub use export::{replace, write, write_named};
pub use files::digest_of_file;
pub use import::{Imported, Passage, Staged, stage};
pub use merge::{Merged, Part as MergePart, merge, plan_hash};
pub use read::{Contents, check_bytes, read, read_parts, verify};

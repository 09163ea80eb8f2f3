//! Kernels for guests: fetched as Debian packages with the system's own tools, unpacked into a directory of fstone's
//! and never installed, or simply named by path.
//!
//! ```text
//! kernels/kernels.json       the registry
//! kernels/fstone-apt/SUITE/  apt's lists and downloads, apart from the system's
//! kernels/NAME/              an unpacked package: usr/bin/linux.uml, or boot/vmlinuz-… and its modules
//! ```

mod build;
mod elf;
mod error;
mod fetch;
mod identity;
mod store;
mod unpacked;

pub use build::{BuildError, BuildProgress};
pub(crate) use elf::{LOADER, LOADER_LINK, interpreter_of};
pub use error::StoreError;
pub use fetch::FetchError;
pub use identity::{Flavour, Kernel};
pub use store::Store;

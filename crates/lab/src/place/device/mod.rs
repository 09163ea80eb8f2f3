//! Devices: what a filesystem may be made on, and how it is set up and given back.
//!
//! [`Devices`] is the border to the kernel; [`KernelDevices`] is real, `FakeDevices` is for tests. Nothing outside
//! this module hands a path to mkfs: that takes a [`ScratchDevice`], and only [`ScratchDevice::claim`] makes one.

mod border;
mod copy;
mod discard;
mod error;
mod facts;
#[cfg(any(test, feature = "fakes"))]
mod fake;
mod kernel;
mod lock;
mod loops;
mod memory;
mod numbers;
mod provide;
mod refusal;
mod sample;
mod scratch;
mod zram;

pub use border::{Devices, Space};
pub use copy::Content;
pub(crate) use copy::{copy, digest, room};
pub use error::DeviceError;
pub use facts::{BlockFacts, FileKind, Identity};
#[cfg(any(test, feature = "fakes"))]
pub use fake::FakeDevices;
pub use kernel::KernelDevices;
pub use lock::DeviceLock;
pub use loops::{LoopHandle, LoopSettings};
pub use numbers::FileId;
pub(crate) use numbers::{file_id, split_number};
pub use provide::{Provided, Wanted, provide};
pub(crate) use provide::{make_image, settle};
pub use refusal::Refusal;
pub use sample::Sampled;
pub use scratch::{Purpose, ScratchDevice};
pub(crate) use scratch::{filesystem_uuid, signature};

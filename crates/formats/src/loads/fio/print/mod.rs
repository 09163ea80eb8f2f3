//! What fio prints when a run is over: for people, as JSON, and as lines of fields.

mod figures;
mod json;
mod logs;
mod normal;
mod terse;

pub use figures::{Idle, When};
pub use json::json;
pub use logs::{Log, logs};
pub use normal::normal;
pub use terse::terse;

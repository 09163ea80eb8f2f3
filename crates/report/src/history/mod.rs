//! One figure over many runs, rendered.

mod html;
mod json;
mod terminal;

pub use html::html;
pub use json::json;
pub use terminal::terminal;

//! Two runs compared, rendered: what there is to say is `fstone_analysis::runs`' to work out.

mod html;
mod json;
mod junit;
mod markdown;
mod terminal;

pub use html::html;
pub use json::{Document, VERSION, json};
pub use junit::junit;
pub use markdown::markdown;
pub use terminal::terminal;

//! `fstone check`: what this machine can do.

use super::Context;
use crate::{
    exit::Exit,
    terminal::{self, CommandResult},
};

pub(crate) fn check(context: &Context) -> CommandResult {
    terminal::print(&fstone_lab::inventory::check(&context.work_directory).to_string());
    Ok(Exit::Success)
}

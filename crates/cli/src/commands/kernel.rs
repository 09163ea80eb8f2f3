//! `fstone kernel`: the kernels that guests can run.

use super::Context;
use crate::{
    args::KernelAction,
    exit::Exit,
    paths,
    terminal::{self, CommandResult, OrExit},
};
use anyhow::Context as _;
use fstone_sandbox::kernel::{Kernel, Store};

pub(crate) fn kernel(context: &Context, action: &KernelAction) -> CommandResult {
    let store = Store::new(&context.kernels);
    match action {
        KernelAction::Add { what } => {
            paths::create_directory(&context.kernels)
                .with_context(|| format!("cannot make {}", context.kernels.display()))
                .or_exit(Exit::LabFailed)?;
            for what in what {
                eprintln!("{what}: fetching and unpacking; nothing is installed");
                let added = store.add(what).with_context(|| format!("failed to add the kernel {what}"));
                terminal::print(&line(&added.or_exit(Exit::CannotHere)?));
            }
        }
        KernelAction::List => {
            let kernels = store.all().context("failed to list the kernels").or_exit(Exit::LabFailed)?;
            if kernels.is_empty() {
                terminal::print(&format!(
                    "No kernels in {}, and no user-mode Linux is installed.\nGet one: fstone kernel add uml:6.1\n",
                    context.kernels.display()
                ));
            }
            for kernel in &kernels {
                terminal::print(&line(kernel));
            }
        }
    }
    Ok(Exit::Success)
}

/// "uml:6.1.176                  installed".
fn line(kernel: &Kernel) -> String {
    format!("{:<40} {}\n", kernel.name(), kernel.source)
}

//! The one binary: arguments → command → exit code; and, as process 1 of a guest, the agent. `args` is what the user typed, `commands` what it means, and
//! `exit` how it ends.

mod args;
mod commands;
mod executors;
mod exit;
mod paths;
mod progress;
mod recorder;
mod sources;
mod studies;
mod terminal;

use args::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

/// Whether this process may make filesystems.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn main() -> ExitCode {
    if fstone_lab::agent::is_agent() {
        fstone_lab::agent::agent_main();
    }
    let arguments = Arguments::parse();
    let context = commands::Context::new(&arguments.global);
    let result = match arguments.command {
        Command::Run(arguments) => commands::run::run(&context, &arguments),
        Command::Report(arguments) => commands::report::report(&context, &arguments),
        Command::Compare(arguments) => commands::compare::compare(&context, &arguments),
        Command::History(arguments) => commands::history::history(&context, &arguments),
        Command::Export(arguments) => commands::bundles::export(&context, &arguments),
        Command::Import(arguments) => commands::bundles::import(&context, &arguments),
        Command::Verify(arguments) => commands::bundles::verify(&context, &arguments),
        Command::Serve(arguments) => commands::serve::serve(&context, &arguments),
        Command::Rerun(arguments) => commands::rerun::rerun(&context, &arguments),
        Command::List(arguments) => commands::list::list(&context, &arguments),
        Command::Check => commands::check::check(&context),
        Command::Load(arguments) => commands::load::load(&context, &arguments),
        Command::Ffsb(arguments) => commands::ffsb::ffsb(&context, &arguments),
        Command::Sysbench(arguments) => commands::sysbench::sysbench(&context, &arguments),
        Command::Convert(arguments) => commands::ffsb::convert(&context, &arguments),
        Command::Kernel(arguments) => commands::kernel::kernel(&context, &arguments.action),
        Command::Device(arguments) => commands::device::device(&context, &arguments),
        Command::Clean(arguments) => commands::clean::clean(&context, &arguments),
        Command::Schema => commands::generated::schema(),
        Command::Completions { shell } => commands::generated::completions(shell),
        Command::Manual => commands::generated::manual(),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            terminal::print_failure(&failure);
            failure.exit.into()
        }
    }
}

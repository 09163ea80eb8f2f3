//! The one binary: arguments → command → exit code; and, as process 1 of a guest, the agent. `args` is what the user typed, `commands` what it means, and
//! `exit` how it ends.

mod args;
mod caller;
mod commands;
mod documents;
mod executors;
mod exit;
mod fault;
mod judge;
mod keys;
mod launcher;
mod live;
mod paths;
mod progress;
mod recorder;
mod rights;
mod signals;
mod sources;
mod studies;
mod terminal;
mod watched;

use args::{Arguments, Command};
use exit::Exit;
use std::process::ExitCode;
use terminal::CommandResult;

fn main() -> ExitCode {
    if fstone_lab::agent::is_agent() {
        fstone_lab::agent::agent_main();
    }
    fault::watch();
    signals::watch();
    // Where a run makes things, so that what a fault leaves there is undone.
    let mut made_in = None;
    let exit = fault::caught(|| {
        let arguments = match Arguments::from_command_line() {
            Ok(arguments) => arguments,
            Err(usage) => {
                let exit = terminal::print_usage(&usage);
                return terminal::finish(Ok(exit));
            }
        };
        if arguments.command.keeps_files()
            && let Err(failure) = paths::require_home()
        {
            return terminal::finish(Err(failure));
        }
        let context = commands::Context::new(&arguments.global);
        if arguments.command.makes_things() {
            made_in = Some(context.work_directory.clone());
        }
        terminal::finish(carry_out(&context, arguments.command))
    });
    if let (Exit::Fault, Some(directory)) = (exit, made_in) {
        fault::undo(&directory);
    }
    exit.into()
}

fn carry_out(context: &commands::Context, command: Command) -> CommandResult {
    match command {
        Command::Run(arguments) => commands::run::run(context, &arguments),
        Command::Report(arguments) => commands::report::report(context, &arguments),
        Command::Compare(arguments) => commands::compare::compare(context, &arguments),
        Command::Profile(arguments) => commands::profile::profile_runs(context, &arguments),
        Command::History(arguments) => commands::history::history(context, &arguments),
        Command::Note(arguments) => commands::note::note(context, &arguments),
        Command::Publish(arguments) => commands::publish::publish(context, &arguments),
        Command::Delete(arguments) => commands::delete::delete(context, &arguments),
        Command::Export(arguments) => commands::bundles::export(context, &arguments),
        Command::Import(arguments) => commands::bundles::import(context, &arguments),
        Command::Blocks(arguments) => commands::blocks::blocks(context, &arguments),
        Command::Verify(arguments) => commands::bundles::verify(context, &arguments),
        Command::Serve(arguments) => commands::serve::serve(context, &arguments),
        Command::Rerun(arguments) => commands::rerun::rerun(context, &arguments),
        Command::List(arguments) => commands::list::list(context, &arguments),
        Command::Check => commands::check::check(context),
        Command::Load(arguments) => commands::load::load(context, &arguments),
        Command::Ffsb(arguments) => commands::ffsb::ffsb(context, &arguments),
        Command::Filebench(arguments) => commands::filebench::filebench(context, &arguments),
        Command::Fio(arguments) => commands::fio::fio(context, &arguments),
        Command::Sysbench(arguments) => commands::sysbench::sysbench(context, &arguments),
        Command::Ior(arguments) => commands::ior::ior(context, &arguments),
        Command::Mdtest(arguments) => commands::mdtest::mdtest(context, &arguments),
        Command::Io500(arguments) => commands::io500::io500(context, &arguments),
        Command::Convert(arguments) => commands::convert::convert(context, &arguments),
        Command::Record(arguments) => commands::record::record(context, &arguments),
        Command::Replay(arguments) => commands::replay::replay(context, &arguments),
        Command::Figures(arguments) => commands::figures::figures(&arguments),
        Command::Kernel(arguments) => commands::kernel::kernel(context, &arguments.action),
        Command::Device(arguments) => commands::device::device(context, &arguments),
        Command::Age { action } => commands::age::age(context, &action),
        Command::CrashState(arguments) => commands::crash_state::crash_state(&arguments),
        Command::Durability(arguments) => commands::durability::durability(context, &arguments),
        Command::Clean(arguments) => commands::clean::clean(context, &arguments),
        Command::Study => commands::generated::keys(&keys::of_study()),
        Command::Workload => commands::generated::keys(&keys::of_workload()),
        Command::Schema => commands::generated::schema(),
        Command::Completions { shell } => commands::generated::completions(shell),
        Command::Manual { directory } => commands::generated::manual(directory.as_deref()),
    }
}

//! What the terminal is, and how errors look on it. What is printed goes through [`output`].

mod bar;
mod failure;
mod output;

pub(crate) use bar::Bar;
pub(crate) use failure::{CommandResult, Failure, OrExit};
pub(crate) use output::{ask, is_stdout, print, print_document, print_now, tell, tell_in_handler, write_out};

use crate::{args::ColorWhen, exit::Exit};
use fstone_formats::diagnostic::Diagnostics;
use std::io::{BufRead, IsTerminal, Read, stderr, stdin, stdout};

pub(crate) fn colored(when: ColorWhen) -> bool {
    match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => is_colorful(&stdout()),
    }
}

fn is_colorful(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

pub(crate) fn is_interactive() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

const ANSWER_BYTES: u64 = 1000;

/// Asks a person, who agrees by typing "yes" and nothing else.
pub(crate) fn agrees(question: &str) -> bool {
    let mut typed = String::new();
    ask(&format!("{question} Type yes: ")).is_ok()
        && stdin().lock().take(ANSWER_BYTES).read_line(&mut typed).is_ok()
        && typed.trim() == "yes"
}

/// Columns of the terminal; 80 when it is none.
pub(crate) fn width() -> usize {
    rustix::termios::tcgetwinsize(stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns >= 40)
        .unwrap_or(80)
}

pub(crate) fn print_usage(usage: &clap::Error) -> Exit {
    let text = usage.render();
    let styled = |stream: &dyn Fn() -> bool| if stream() { text.ansi().to_string() } else { text.to_string() };
    if usage.use_stderr() {
        output::tell_styled(&styled(&|| is_colorful(&stderr())));
        Exit::BadInput
    } else {
        print_document(&styled(&|| is_colorful(&stdout())));
        Exit::Success
    }
}

/// The end of every command: errors are reported, and so is output that could not be written. What the command found comes
/// first: neither a reader that went away nor a full disk turns a regression into something else.
pub(crate) fn finish(result: CommandResult) -> Exit {
    let exit = result.unwrap_or_else(|failure| tell_failure(&failure));
    match output::take_lost() {
        Some(lost) => exit.else_of(tell_failure(&lost)),
        None => exit,
    }
}

pub(crate) fn tell_failure(Failure { exit, error }: &Failure) -> Exit {
    let exit = exit.by_cause(error);
    // Whoever read the output knows that it went away.
    if exit != Exit::ReaderGone {
        print_failure(error);
    }
    exit
}

fn print_failure(error: &anyhow::Error) {
    let mut causes = error.chain();
    let head = causes.next().expect("an error is the first of its chain");
    let mut text = match () {
        // Diagnostics of a file come with their own "error:" heads.
        () if head.is::<Diagnostics>() => head.to_string(),
        // The store's errors complete "failed to".
        () if fstone_store::is_error(head) => format!("fstone: failed to {head}"),
        () => format!("fstone: {head}"),
    };
    text.truncate(text.trim_end().len());
    for cause in causes {
        text.push_str(&format!("\n  because {cause}"));
    }
    tell(&text);
}

/// Says of each thing that is removed whether it is gone.
pub(crate) fn tell_removed<E: std::fmt::Display>(each: impl Iterator<Item = (String, Result<(), E>)>) -> Exit {
    let mut exit = Exit::Success;
    for (name, removed) in each {
        match removed {
            Ok(()) => print(&format!("removed: {name}\n")),
            Err(error) => {
                print(&format!("still there: {name}: {error}\n"));
                exit = Exit::LabFailed;
            }
        }
    }
    exit
}

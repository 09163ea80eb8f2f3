//! Standard output and standard error. Everything that fstone prints goes through here, so that one place sees to it
//! that foreign text is harmless and that no error is lost. `tests/tidy/main.rs` finds whoever goes past it.
//!
//! What cannot be printed does not stop the work: [`print()`] remembers the first error of standard output, and the end of
//! the process tells it and has its status. Messages and progress on standard error are for whoever reads them; when
//! nobody does, nothing happens.

use super::failure::{Failure, cannot_print};
use crate::exit::Exit;
use fstone_model::text;
use std::{
    fs::Metadata,
    io::{self, IsTerminal, Write, stderr, stdout},
    os::unix::fs::MetadataExt,
    sync::{Mutex, PoisonError},
};

static OUTPUT: Mutex<Output> = Mutex::new(Output::Whole);

/// Whether everything that was printed arrived. What is printed after the first error is lost as well: a reader is not to get
/// the end of a text without its middle.
enum Output {
    Whole,
    /// With its error, which has not been reported yet.
    Lost(io::Error),
    Told,
}

impl Output {
    fn write(&mut self, out: &mut impl Write, bytes: &[u8]) {
        if matches!(self, Self::Whole)
            && let Err(error) = out.write_all(bytes).and_then(|()| out.flush())
        {
            *self = Self::Lost(error);
        }
    }

    /// The error, to be reported once.
    fn take_lost(&mut self) -> Option<io::Error> {
        match std::mem::replace(self, Self::Told) {
            Self::Lost(error) => Some(error),
            before => {
                *self = before;
                None
            }
        }
    }
}

const STYLES: [&str; 7] =
    ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[4m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"];

/// Prints text that may quote others.
pub(crate) fn print(text: &str) {
    write_out(text::lines(text).as_bytes());
}

/// Prints text without which it is pointless to continue.
pub(crate) fn print_now(text: &str) -> Result<(), Failure> {
    print(text);
    take_lost().map_or(Ok(()), Err)
}

/// Prints a whole document, whose maker has seen to foreign text in it: a file or a pipe gets it byte by byte, a terminal
/// nothing that it would obey but fstone's own styles.
pub(crate) fn print_document(document: &str) {
    if stdout().is_terminal() {
        write_out(styled(document).as_bytes());
    } else {
        write_out(document.as_bytes());
    }
}

/// Writes bytes to standard output as they are.
pub(crate) fn write_out(bytes: &[u8]) {
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner).write(&mut stdout().lock(), bytes);
}

pub(crate) fn is_stdout(file: &Metadata) -> bool {
    let stdout = rustix::fs::fstat(stdout());
    stdout.is_ok_and(|stdout| (stdout.st_dev, stdout.st_ino) == (file.dev(), file.ino()))
}

/// Why some of the output did not arrive, for the first caller.
pub(super) fn take_lost() -> Option<Failure> {
    let error = OUTPUT.lock().unwrap_or_else(PoisonError::into_inner).take_lost()?;
    let exit = match error.kind() {
        io::ErrorKind::BrokenPipe => Exit::ReaderGone,
        kind => Exit::of_kind(kind).unwrap_or(Exit::LabFailed),
    };
    Some(Failure { exit, error: cannot_print(error) })
}

/// A message on standard error, with a line end.
pub(crate) fn tell(message: &str) {
    let _ = write_err(&format!("{}\n", text::lines(message)));
}

/// The same with fstone's own styles, as it is.
pub(super) fn tell_styled(message: &str) {
    let _ = write_err(&styled(message));
}

/// One in a signal's handler, where only calls to the kernel are safe.
pub(crate) fn tell_in_handler(message: &[u8]) {
    let _ = rustix::io::write(std::os::fd::AsFd::as_fd(&std::io::stderr()), message);
}

pub(crate) fn ask(question: &str) -> io::Result<()> {
    write_err(&text::lines(question))
}

fn write_err(text: &str) -> io::Result<()> {
    let mut err = stderr().lock();
    err.write_all(text.as_bytes())?;
    err.flush()
}

/// Text with no control but fstone's own styles.
fn styled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        let (before, after) = rest.split_at(at);
        out.push_str(&text::lines(before));
        let style = STYLES.into_iter().find(|style| after.starts_with(style));
        out.push_str(style.unwrap_or("␛"));
        rest = &after[style.map_or(1, str::len)..];
    }
    out.push_str(&text::lines(rest));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Hiccup(Vec<u8>, bool);

    impl Write for Hiccup {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.1, true) {
                self.0.write(bytes)
            } else {
                Err(io::ErrorKind::StorageFull.into())
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn after_an_error_nothing_is_printed_even_when_it_was_told() {
        let (mut output, mut out) = (Output::Whole, Hiccup(Vec::new(), false));
        output.write(&mut out, b"one");
        output.write(&mut out, b"two");
        assert_eq!(output.take_lost().map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
        output.write(&mut out, b"three");
        assert!(out.0.is_empty() && output.take_lost().is_none(), "{:?}", out.0);
    }

    #[test]
    fn a_terminal_gets_our_styles_and_no_others() {
        assert_eq!(styled("\u{1b}[1mext4\u{1b}[0m"), "\u{1b}[1mext4\u{1b}[0m");
        assert_eq!(styled("\u{1b}[2Jx\u{1b}]0;y\u{7}\u{1b}"), "␛[2Jx␛]0;y␇␛");
        assert_eq!(styled("\u{1b}[8mhidden\u{9b}1m"), "␛[8mhidden\u{fffd}1m");
    }
}

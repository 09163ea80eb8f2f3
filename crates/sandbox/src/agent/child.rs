//! What an agent prints and how it ends where there is no kernel of its own: its standard error is a pipe to its parent,
//! which takes it for a console.

pub(super) fn say(text: &str) {
    eprint!("{text}");
}

/// Ends the process; with it goes its namespace.
pub(super) fn end(well: bool) -> ! {
    std::process::exit(i32::from(!well))
}

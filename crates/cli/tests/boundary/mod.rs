//! The border of the process: what it prints, where its output goes, and with which status it ends.

mod exits;
mod mistakes;
mod output;
mod streams;

use crate::support::Bench;

/// A study of one command in a directory, which needs no root; the command and the step's name as TOML has them.
fn command_study(bench: &Bench, name: &str, step: &str, command: &str) {
    bench.write(
        name,
        &format!(
            "title = \"One command\"\nrepeats = 1\ndevice = {{ directory = \".\" }}\n\
             factor.filesystem = {{ \"a\" = {{ type = \"ext4\" }} }}\n[[step]]\nname = \"{step}\"\n\
             command = {{ shell = true, run = \"{command}\" }}\nshow = \"time\"\n"
        ),
    );
}

//! Dropping caches is about data, not about programs: those that a step runs are read back into memory before its time
//! begins.
//!
//! `drop_caches` evicts every clean page of the machine, so the next `git status` would be timed with the reading of git and its
//! libraries from a disk that is not the one under test.

use crate::command::{CommandLine, CommandRunner};
use std::{
    collections::HashSet,
    fs::File,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long ldd(1) may take, on a disk that has just lost its cache.
const LDD_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct Warmth {
    dropped: bool,
    warm: HashSet<PathBuf>,
}

impl Warmth {
    pub(crate) fn lost(&mut self) {
        self.dropped = true;
        self.warm.clear();
    }

    /// Reads the programs that a command names, and the libraries they are linked with, unless they are in memory. What
    /// those programs start in their turn nobody can know.
    pub(crate) fn restore(&mut self, command: &CommandLine, runner: &dyn CommandRunner) {
        if !self.dropped {
            return;
        }
        for program in programs(command, runner) {
            if self.warm.insert(program.clone()) {
                read(&program);
                libraries(&program, runner).iter().for_each(|library| read(library));
            }
        }
    }
}

/// The program of a command, and the words of a shell's script that are programs: those in PATH alone, for a path may lead
/// into the filesystem under test.
fn programs(command: &CommandLine, runner: &dyn CommandRunner) -> HashSet<PathBuf> {
    let apart = |letter: char| letter.is_whitespace() || ";|&()<>`\"'".contains(letter);
    let script = command.args.iter().filter(|_| command.program == "sh").flat_map(|word| word.split(apart));
    let words = script.chain([command.program.as_str()]);
    words.filter(|word| !word.is_empty() && !word.contains('/')).filter_map(|word| runner.find(word)).collect()
}

fn libraries(program: &Path, runner: &dyn CommandRunner) -> Vec<PathBuf> {
    let ldd = CommandLine::new("ldd", [program.display().to_string()]);
    // A script, or a program without libraries, has none to list.
    let Ok(output) = runner.run(&ldd, LDD_LIMIT) else { return Vec::new() };
    listed(&output.stdout)
}

/// The files in what ldd(1) prints: `libc.so.6 => /lib/libc.so.6 (0x…)`, and the loader alone on its line.
fn listed(text: &str) -> Vec<PathBuf> {
    let words = text.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    words.map(PathBuf::from).collect()
}

/// Reads a file to its end; one that cannot be read is told of by the step that needs it.
fn read(path: &Path) {
    if path.is_file()
        && let Ok(mut file) = File::open(path)
    {
        let _ = io::copy(&mut file, &mut io::sink());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{FakeRunner, SystemRunner};
    use std::sync::Arc;

    #[test]
    fn the_words_of_a_script_that_are_programs_are_found() {
        let runner = SystemRunner::new(Arc::default());
        let names = |command: &CommandLine| {
            let programs = programs(command, &runner);
            let mut names: Vec<String> =
                programs.iter().map(|path| path.file_name().expect("a name").to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&CommandLine::new("tar", ["cf", "/dev/zero", "cat"])), ["tar"]);
        let script = CommandLine::new("sh", ["-c", "no-such-program; (tar cf - .|cat) >/usr/bin/env && \"ls\""]);
        assert_eq!(names(&script), ["cat", "ls", "sh", "tar"]);
    }

    #[test]
    fn libraries_are_read_off_the_loaders_list() {
        let text = "\tlinux-vdso.so.1 (0x00007ffe)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                    \tlibx.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(
            listed(text),
            [PathBuf::from("/lib/x86_64-linux-gnu/libc.so.6"), PathBuf::from("/lib64/ld-linux-x86-64.so.2")]
        );
        assert_eq!(listed("\tnot a dynamic executable\n"), [] as [PathBuf; 0]);
    }

    #[test]
    fn a_program_is_read_once_after_each_drop() {
        let runner = FakeRunner::new();
        let mut warmth = Warmth::default();
        let tar = CommandLine::new("tar", ["cf", "/dev/zero", "."]);
        warmth.restore(&tar, &runner);
        assert_eq!(runner.calls().len(), 0, "nothing was dropped");
        for drops in 1..3 {
            warmth.lost();
            warmth.restore(&tar, &runner);
            warmth.restore(&tar, &runner);
            assert_eq!(runner.calls().len(), drops);
        }
    }
}

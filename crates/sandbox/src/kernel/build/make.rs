//! Make, run with nothing of the user's environment, watched, and quoted when it fails.

use super::super::error::file_error;
use super::report::{BuildError, BuildProgress};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What a build runs, and the Debian package that has it.
const TOOLS: [(&str, &str); 10] = [
    ("bc", "bc"),
    ("bison", "bison"),
    ("gcc", "build-essential"),
    ("ld", "build-essential"),
    ("make", "build-essential"),
    ("flex", "flex"),
    ("patch", "patch"),
    ("perl", "perl"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
];

/// Files that a build of 6.1 makes; others make about as many.
const FILES: u32 = 2_300;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(super) fn missing_tools() -> Vec<(&'static str, &'static str)> {
    let is_missing = |tool: &str| !PATH.split(':').any(|place| Path::new(place).join(tool).is_file());
    TOOLS.into_iter().filter(|(tool, _)| is_missing(tool)).collect()
}

pub(super) fn run_make(
    tree: &Path,
    targets: &[&str],
    options: &[String],
    log: &Path,
    tell: &mut dyn FnMut(BuildProgress),
) -> Result<(), BuildError> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = Command::new("make");
    command.current_dir(tree).args(["ARCH=um", "O=built", &format!("-j{jobs}")]);
    // Nothing of who builds it, where and when: the kernel is a function of its sources and the compiler.
    command.args(["KBUILD_BUILD_TIMESTAMP=1970-01-01", "KBUILD_BUILD_USER=fstone", "KBUILD_BUILD_HOST=fstone"]);
    command.args(options);
    command.arg("KBUILD_BUILD_VERSION=1").args(targets);
    let is_anew = !tree.join("built/linux").exists();
    run(command, log, &mut |done, elapsed| {
        let total = is_anew.then_some(FILES.max(done));
        tell(BuildProgress::Compiling { done, total, elapsed });
    })
}

/// Runs a tool, with its output in the log, and its last errors in the error.
pub(super) fn run(
    mut command: Command,
    log: &Path,
    on_file: &mut dyn FnMut(u32, std::time::Duration),
) -> Result<(), BuildError> {
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let what = words.join(" ");
    let mut writer = OpenOptions::new().append(true).create(true).open(log).map_err(file_error(log))?;
    let _ = writeln!(writer, "$ {what}");
    let began = fs::metadata(log).map_or(0, |data| data.len());
    let errors = writer.try_clone().map_err(file_error(log))?;
    command.env_clear().env("PATH", PATH).env("LC_ALL", "C").env("HOME", "/nonexistent");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
    let program = PathBuf::from(command.get_program());
    let mut child = command.spawn().map_err(file_error(&program))?;
    let since = Instant::now();
    let mut done = 0;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line.map_err(file_error(log))?;
            writeln!(writer, "{line}").map_err(file_error(log))?;
            // "  CC      fs/ext4/super.o"
            if line.starts_with("  ") {
                done += 1;
                on_file(done, since.elapsed());
            }
        }
    }
    let status = child.wait().map_err(file_error(&program))?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read(log).map_err(file_error(log))?;
    let said = String::from_utf8_lossy(text.get(began as usize..).unwrap_or_default()).into_owned();
    Err(BuildError::Failed { what, lines: last_errors(&said), log: log.to_owned() })
}

/// The lines that say what went wrong: the last that speak of errors, else the last of all.
fn last_errors(said: &str) -> String {
    const LINES: usize = 8;
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let errors: Vec<&str> =
        lines.iter().copied().filter(|line| line.contains("error") || line.contains("***")).collect();
    let told = if errors.is_empty() { lines } else { errors };
    told[told.len().saturating_sub(LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_found_in_a_log() {
        let log = "  CC a.o\na.c:1:2: error: x\n  CC b.o\nmake: *** [Makefile:1] Error 2\n";
        assert_eq!(last_errors(log), "a.c:1:2: error: x\nmake: *** [Makefile:1] Error 2");
        assert_eq!(last_errors("one\n\ntwo\n"), "one\ntwo");
    }
}

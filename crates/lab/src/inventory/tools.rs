//! Versions of the tools that a study uses.

use super::text;
use crate::command::{CommandLine, CommandRunner};
use std::time::Duration;

/// A tool that takes longer to tell its version is broken, or waits for something that does not come.
const LIMIT: Duration = Duration::from_secs(5);

/// The command that makes a tool tell its version. Most know `--version`; the tools of filesystems mostly `-V`, and
/// some nothing of the kind, so that another tool of the same package is asked.
#[must_use]
pub fn version_command(tool: &str) -> CommandLine {
    let name = tool.rsplit('/').next().unwrap_or(tool);
    match name {
        "mkfs.vfat" | "fsck.vfat" | "mkfs.fat" | "fsck.fat" => CommandLine::new("fatlabel", ["--version"]),
        "fsck.exfat" => CommandLine::new("mkfs.exfat", ["-V"]),
        "mkfs.btrfs" => CommandLine::new(tool, ["--version"]),
        "mke2fs" | "e2fsck" | "tune2fs" | "dumpe2fs" | "debugfs" | "e4defrag" | "reiserfsck" | "debugreiserfs"
        | "jfs_tune" | "nilfs-tune" => CommandLine::new(tool, ["-V"]),
        _ if ["mkfs.", "fsck.", "dump.", "xfs_"].iter().any(|prefix| name.starts_with(prefix)) => {
            CommandLine::new(tool, ["-V"])
        }
        _ => CommandLine::new(tool, ["--version"]),
    }
}

/// The line in which a tool tells its version; `None` when it is not installed or says nothing.
#[must_use]
pub fn tool_version(runner: &dyn CommandRunner, tool: &str) -> Option<String> {
    runner.find(tool)?;
    let output = runner.run(&version_command(tool), LIMIT).ok()?;
    version_line(&output.stdout).or_else(|| version_line(&output.stderr)).or_else(|| {
        let lines = output.stdout.lines().chain(output.stderr.lines());
        lines.map(text::clean).find(|line| !line.is_empty())
    })
}

/// The first line with a number like 1.47 in it: some tools complain about the option before they tell.
fn version_line(output: &str) -> Option<String> {
    output.lines().map(text::clean).find(|line| {
        line.as_bytes()
            .windows(3)
            .any(|three| three[0].is_ascii_digit() && three[1] == b'.' && three[2].is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{CommandOutput, FakeRunner, SystemRunner};
    use crate::{filesystem, stop::Stop};
    use std::sync::Arc;

    #[test]
    fn the_version_is_the_line_with_a_number_in_it() {
        for (tool, stdout, stderr, version) in [
            (
                "mkfs.ext4",
                "",
                "mke2fs 1.47.0 (5-Feb-2023)\n\tUsing EXT2FS Library version 1.47.0\n",
                "mke2fs 1.47.0 (5-Feb-2023)",
            ),
            ("nilfs-tune", "", "nilfs-tune: invalid option -- 'V'\nnilfs-tune 2.2.9\n", "nilfs-tune 2.2.9"),
            ("mkfs.btrfs", "mkfs.btrfs, part of btrfs-progs v6.2\n", "", "mkfs.btrfs, part of btrfs-progs v6.2"),
            ("odd", "\nrelease candidate\u{1b}[0m\n", "", "release candidate [0m"),
        ] {
            let typed = version_command(tool).typed();
            let output = CommandOutput { stdout: stdout.into(), stderr: stderr.into(), ..CommandOutput::default() };
            let runner = FakeRunner::scripted([(typed, output)]);
            assert_eq!(tool_version(&runner, tool).as_deref(), Some(version), "{tool}");
        }
        let runner = FakeRunner::new().without("mkfs.xfs");
        assert_eq!(tool_version(&runner, "mkfs.xfs"), None);
        assert_eq!(runner.calls(), [""; 0], "what is not there is not run");
    }

    /// Asked for its version, no tool may do anything else; here they are asked for real.
    #[test]
    fn every_installed_tool_of_every_adapter_tells_its_version() {
        let runner = SystemRunner::new(Arc::new(Stop::default()));
        for tool in filesystem::all().iter().flat_map(|filesystem| filesystem.tools()) {
            if runner.find(tool).is_none() {
                eprintln!("skipped: {tool} is not installed");
                continue;
            }
            let version = tool_version(&runner, tool).unwrap_or_default();
            assert!(version_line(&version).is_some(), "{tool}: {version:?}");
        }
    }
}

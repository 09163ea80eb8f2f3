//! Versions of the tools that a study uses.

use super::text;
use crate::command::{CommandLine, CommandRunner};
use crate::filesystem;
use fstone_model::Plan;
use fstone_model::study::{DeviceSpec, StepAction};
use std::time::Duration;

/// A tool that takes longer to tell its version is broken, or waits for something that does not come.
const LIMIT: Duration = Duration::from_secs(5);

/// Programs a study's commands may start that are known to tell their version and do nothing else when asked. Others
/// are not asked: what they would do is not known.
const KNOWN: [&str; 28] = [
    "bash", "bzip2", "cat", "cmake", "cp", "dd", "du", "find", "fio", "gcc", "git", "grep", "gzip", "ls", "make",
    "dpkg", "mkdir", "pgbench", "postgres", "python3", "rm", "rsync", "sqlite3", "svn", "tar", "touch", "xz", "zstd",
];

pub(super) fn versions(plan: &Plan, runner: &dyn CommandRunner) -> Vec<(String, String)> {
    let mut tools: Vec<&str> = Vec::new();
    for cell in &plan.cells {
        if !matches!(cell.device, DeviceSpec::Directory { .. })
            && let Some(adapter) = filesystem::find(&cell.filesystem.kind)
        {
            tools.extend(adapter.facts().tools);
        }
        for (_, words) in cell.filesystem.own.iter().flat_map(|own| own.commands()) {
            tools.extend(words.first().map(String::as_str));
        }
        for step in &cell.steps {
            if let StepAction::Service(service) = &step.action {
                tools.extend(service.start.first().map(String::as_str));
            }
            if let StepAction::Command { argv, shell: false, .. } = &step.action
                && let Some(program) = argv.first()
            {
                tools.push(program);
                // What make starts weighs more than make.
                tools.extend((program == "make").then_some("gcc"));
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    tools.retain(|tool| seen.insert(*tool));
    tools.into_iter().map(|tool| (text::clean(tool), state(tool, runner))).collect()
}

fn state(tool: &str, runner: &dyn CommandRunner) -> String {
    match runner.find(tool) {
        None => "not installed".to_owned(),
        Some(path) => tool_version(tool, runner).unwrap_or_else(|| text::clean(&path.display().to_string())),
    }
}

/// The command that makes a tool tell its version; `None` for a tool that is not known.
fn version_command(tool: &str) -> Option<CommandLine> {
    if KNOWN.contains(&tool) {
        return Some(CommandLine::new(tool, ["--version"]));
    }
    filesystem::all().iter().find(|adapter| adapter.facts().tools.contains(&tool)).map(|adapter| adapter.version(tool))
}

/// The line in which a tool tells its version; `None` when it is not known, not installed, or says nothing.
pub fn tool_version(tool: &str, runner: &dyn CommandRunner) -> Option<String> {
    let command = version_command(tool)?;
    runner.find(tool)?;
    let output = runner.run(&command, LIMIT).ok()?;
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
pub(super) fn plan_of(kinds: &[&str], device: &DeviceSpec, commands: &[&[&str]]) -> Plan {
    use crate::testing;
    use fstone_model::study::{Cell, Repeats, Step};
    let step = |argv: &&[&str]| {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        testing::step(
            &argv.join(" "),
            StepAction::Command { argv, shell: false, success: vec![0], figures: Vec::new() },
        )
    };
    let steps: Vec<Step> = commands.iter().map(step).collect();
    let cell = |(index, kind): (u32, &&str)| Cell { device: device.clone(), ..testing::cell(index, kind, "", &steps) };
    testing::plan((0..).zip(kinds).map(cell).collect(), Repeats { min: 1, max: 1, until: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{CommandOutput, FakeRunner, SystemRunner};
    use crate::stop::Stop;
    use std::sync::Arc;

    #[test]
    fn the_version_is_the_line_with_a_number_in_it() {
        for (tool, typed, stdout, stderr, version) in [
            (
                "mkfs.ext4",
                "mkfs.ext4 -V",
                "",
                "mke2fs 1.47.0 (5-Feb-2023)\n\tUsing EXT2FS Library version 1.47.0\n",
                "mke2fs 1.47.0 (5-Feb-2023)",
            ),
            (
                "nilfs-tune",
                "nilfs-tune -V",
                "",
                "nilfs-tune: invalid option -- 'V'\nnilfs-tune 2.2.9\n",
                "nilfs-tune 2.2.9",
            ),
            ("btrfs", "btrfs --version", "btrfs-progs v6.2\n", "", "btrfs-progs v6.2"),
            ("fsck.vfat", "fatlabel --version", "\nrelease candidate\u{1b}[0m\n", "", "release candidate [0m"),
        ] {
            let output = CommandOutput { stdout: stdout.into(), stderr: stderr.into(), ..CommandOutput::default() };
            let runner = FakeRunner::scripted([(typed, output)]);
            assert_eq!(tool_version(tool, &runner).as_deref(), Some(version), "{tool}");
        }
    }

    #[test]
    fn a_plan_s_tools_are_listed_once_and_strangers_are_not_run() {
        let device = crate::testing::loop_device(0);
        let commands: [&[&str]; 4] = [&["tar", "-xf", "x"], &["make", "-j8"], &["./wipe", "everything"], &["svn"]];
        let plan = plan_of(&["btrfs", "btrfs"], &device, &commands);
        let runner = FakeRunner::new().without("svn");
        let versions = versions(&plan, &runner);
        let tools: Vec<&str> = versions.iter().map(|(tool, _)| tool.as_str()).collect();
        assert_eq!(tools, ["mkfs.btrfs", "btrfs", "tar", "make", "gcc", "./wipe", "svn"]);
        assert_eq!(versions[6].1, "not installed");
        assert_eq!(versions[5].1, "/usr/sbin/./wipe", "found, not asked");
        let asked = ["mkfs.btrfs --version", "btrfs --version", "tar --version", "make --version", "gcc --version"];
        assert_eq!(runner.calls(), asked);

        let on_a_directory = plan_of(&["ext4"], &DeviceSpec::Directory { path: None }, &[]);
        assert_eq!(super::versions(&on_a_directory, &runner), [], "no filesystem is made there");
    }

    /// Asked for its version, no tool may do anything else; here they are asked for real.
    #[test]
    fn every_installed_tool_of_every_adapter_tells_its_version() {
        let runner = SystemRunner::new(Arc::new(Stop::default()));
        for tool in filesystem::all().iter().flat_map(|filesystem| filesystem.facts().tools).chain(&KNOWN) {
            if runner.find(tool).is_none() {
                eprintln!("skipped: {tool} is not installed");
                continue;
            }
            let version = tool_version(tool, &runner).unwrap_or_default();
            assert!(version_line(&version).is_some(), "{tool}: {version:?}");
        }
    }
}

//! The lists of safe mkfs options, held against what the installed tools say of themselves.

#![cfg(test)]

use super::*;
use fstone_model::mkfs::lists;
use std::collections::BTreeMap;

/// Tools whose help can be read, how it is asked for, and options of it that are left out on purpose: what runs a program,
/// names a file, a directory or a device, makes nothing, or breaks what it makes.
const TOOLS: [(&str, &str, &[&str]); 11] = [
    ("ext4", "", &["-d", "-l", "-M", "-S", "-V", "-z"]),
    ("xfs", "-?", &["-c", "-N", "-p", "-V"]),
    ("btrfs", "--help", &["--help", "--rootdir", "--version", "-r", "-V"]),
    ("nilfs2", "-h", &["-h", "-V"]),
    ("jfs", "-?", &["-j", "-J", "-V"]),
    ("reiserfs", "-?", &["--badblocks", "--journal-device", "-B", "-j", "-V"]),
    ("vfat", "--help", &["--help", "-C", "-g", "-l", "-m"]),
    ("exfat", "--help", &["--help", "--version", "-h", "-V"]),
    ("f2fs", "--help", &["-c", "-g", "-S", "-V"]),
    ("erofs", "--help", &["--blobdev", "--compress-hints", "--file-contexts", "--help"]),
    (
        "squashfs",
        "-help",
        &[
            "-Xhelp",
            "-action",
            "-action-file",
            "-cpiostyle",
            "-cpiostyle0",
            "-e",
            "-ef",
            "-false-action",
            "-false-action-file",
            "-h",
            "-help",
            "-info",
            "-log-action",
            "-log-action-file",
            "-no-strip",
            "-o",
            "-offset",
            "-p",
            "-pf",
            "-progress",
            "-recover",
            "-recovery-path",
            "-regex",
            "-root-becomes",
            "-sort",
            "-tar",
            "-tarstyle",
            "-true-action",
            "-true-action-file",
            "-version",
            "-wildcards",
        ],
    ),
];

/// Tools whose help does not say which options have a value: `-f force overwrite`, `-l label`.
const WITHOUT_VALUES: [&str; 1] = ["f2fs"];

/// A tool that takes a listed option for one with a value, or the other way round, would take the next word for the device.
#[test]
fn listed_options_are_what_the_tools_say() {
    let runner = SystemRunner::new(Arc::new(Stop::default()));
    assert_eq!(missing_from(TOOLS.map(|(kind, ..)| kind)), Vec::<&str>::new());
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (kind, ask, left_out) in TOOLS {
        let facts = find(kind).expect("known").facts();
        let (options, tool) = (&facts.mkfs_options, facts.tools[0]);
        if runner.find(tool).is_none() {
            eprintln!("skipped: {tool} is not installed");
            continue;
        }
        let asked = ask.split_whitespace();
        let output = runner.run(&CommandLine::new(tool, asked), Duration::from_secs(20)).expect("it starts");
        let documented = documented(&format!("{}\n{}", output.stdout, output.stderr));
        assert!(documented.len() > 5, "{tool}: only {documented:?}");
        let valued =
            |name: &&str| lists(options.values, name) || options.settings.iter().any(|(option, _)| option == name);
        for (name, value) in &documented {
            let name = name.as_str();
            let value = if WITHOUT_VALUES.contains(&kind) { &Value::Untold } else { value };
            compared += 1;
            match (lists(options.flags, name), valued(&name), value) {
                (true, _, Value::Needed) => wrong.push(format!("{tool}: {name} has a value")),
                (_, true, Value::None | Value::Optional) => wrong.push(format!("{tool}: {name} may have no value")),
                (false, false, _) if !left_out.contains(&name) => {
                    wrong.push(format!("{tool}: {name} is neither listed nor left out"));
                }
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    eprintln!("{compared} options compared");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    None,
    Optional,
    Needed,
    Untold,
}

/// The options that a help text names: in brackets (`[-b block-size]`, `[-qv]`), or one at the start of each line
/// (`-b | --block-size N   its meaning`).
fn documented(help: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for line in help.lines() {
        let line = line.trim();
        if line.starts_with('-') {
            let meaning = line.find("  ").into_iter().chain(line.find('\t')).min().unwrap_or(line.len());
            of_line(&line[..meaning], &mut found);
        }
        for group in line.split('[').skip(1).filter(|group| group.starts_with('-') && !line.starts_with('-')) {
            for alternative in group.split([']', '[']).next().unwrap_or_default().split('|') {
                of_brackets(alternative, &mut found);
            }
        }
    }
    found
}

/// `-b | --block-size N`, `-d|--data PROFILE`, `--mbr[=y|n|a]`, `-h | --hash rupasov|tea|r5`, `-d#`, `-zX[,Y]`.
fn of_line(head: &str, found: &mut BTreeMap<String, Value>) {
    let starts = |text: &str| text.trim_start().starts_with('-');
    let names: Vec<&str> = head.split('|').take_while(|part| starts(part)).collect();
    let value = match names.last() {
        Some(last) if last.contains("[=") => Value::Optional,
        Some(last) if last.contains('=') || last.trim().contains(' ') => Value::Needed,
        _ => Value::None,
    };
    for name in names {
        let name = name.trim().split([' ', '=', '[', '(']).next().unwrap_or_default();
        // A letter with a placeholder glued to it.
        let glued = (name.len() == 3).then(|| name.strip_suffix(['#', 'X'])).flatten();
        if let Some(name) = glued {
            found.insert(name.to_owned(), Value::Needed);
        } else if name.len() > 1 {
            found.insert(name.to_owned(), value);
        }
    }
}

/// `-b block-size`, or `-qvV`.
fn of_brackets(alternative: &str, found: &mut BTreeMap<String, Value>) {
    match alternative.trim().split_once(' ') {
        Some((name, _)) if name.len() == 2 => drop(found.insert(name.to_owned(), Value::Needed)),
        None if alternative.starts_with('-') => {
            for letter in alternative[1..].chars().filter(char::is_ascii_alphabetic) {
                found.insert(format!("-{letter}"), Value::None);
            }
        }
        _ => {}
    }
}

#[test]
fn help_is_read_as_it_is_meant() {
    let help = "Usage: mkfs [-c|-l filename] [-b size][-E option[,...]]\n\t[-jqV] device\n  -B | --badblocks file   bad\n\
                -f | --force                 twice\n  --mbr[=y|n|a]   fill\n\t-L | --volume-label=label   Set\n\
                -h | --hash rupasov|tea|r5   hash\n-d|--data PROFILE         profile -x\n\
                -T#                   time\n -zX[,Y]               compressor\n-noX\t\tuncompressed\n";
    let found = documented(help);
    let of = |value: Value| found.iter().filter(move |(_, known)| **known == value).map(|(name, _)| name.as_str());
    let valued =
        ["--badblocks", "--data", "--hash", "--volume-label", "-B", "-E", "-L", "-T", "-b", "-d", "-h", "-l", "-z"];
    assert_eq!(of(Value::Needed).collect::<Vec<_>>(), valued);
    assert_eq!(of(Value::None).collect::<Vec<_>>(), ["--force", "-V", "-c", "-f", "-j", "-noX", "-q"]);
    assert_eq!(of(Value::Optional).collect::<Vec<_>>(), ["--mbr"]);
}

//! From the words of a command line to what it means.

use super::{
    command::{Mdtest, Phases},
    options,
};
use crate::{
    Diagnostics,
    loads::letters::{CommandLine, Said},
};
use fstone_model::workload::{Directories, MAXIMUM_FILES};

const MAXIMUM_PHASES: u64 = 5000;

/// Reads a command line. `created` gives the content of the file of `-x`, or says why it cannot.
///
/// # Errors
/// Everything that is wrong with it. Warnings alone are no failure; they are in [`Mdtest::warnings`].
pub fn parse(
    line: &CommandLine,
    created: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Mdtest, Diagnostics> {
    let (mut mdtest, warnings) = Said::read(line, options::OPTIONS, |said| mdtest(said, created))?;
    mdtest.warnings = warnings;
    Ok(mdtest)
}

fn mdtest(said: &mut Said<'_>, created: &mut dyn FnMut(&str) -> Result<String, String>) -> Mdtest {
    let phases = phases(said);
    let (only_files, only_directories) = (said.flag("files"), said.flag("directories"));
    let both = only_files == only_directories;
    let depth = said.small("depth");
    let branching = said.small("branching");
    let leaves_only = said.flag("leaves-only");
    if branching == 0 && depth > 0 {
        said.wrong(&["branching"], "a tree with levels has at least one subdirectory in each", "-b 1, or more");
    }
    let (all, above) = Directories::of_tree(branching.max(1), depth);
    if all > MAXIMUM_FILES {
        let message = format!("the tree has {all} directories, where {MAXIMUM_FILES} are the most");
        said.wrong(&["branching", "depth"], message, "");
    }
    let holders = if leaves_only { all - above } else { all };
    let (items, each) = amounts(said, phases, holders, created);
    let random = said.flag("random") || said.get("random-seed").is_some();
    let mdtest = Mdtest {
        directory: said.text("directory").unwrap_or_default(),
        items,
        each,
        depth,
        branching: branching.max(1),
        leaves_only,
        unique: said.flag("unique"),
        files: only_files || both,
        directories: only_directories || both,
        phases,
        iterations: said.count("iterations"),
        shift: said.small("shift"),
        write_bytes: said.count("write-bytes"),
        read_bytes: said.count("read-bytes"),
        sync_file: said.flag("sync-file"),
        sync: said.flag("sync"),
        random,
        direct: said.flag("posix.odirect"),
        stonewall: said.deadline("stonewall"),
        status_file: said.text("status-file"),
        print_rates: !said.flag("time") || said.flag("rate-and-time"),
        print_times: said.flag("time") || said.flag("rate-and-time"),
        seed: said.number("seed").or_else(|| said.number("random-seed")),
        results: said.text("results"),
        json: said.flag("json"),
        silence: said.patience("rank-silence"),
        stillness: said.patience("rank-stillness"),
        warnings: None,
    };
    check(said, &mdtest);
    mdtest
}

fn phases(said: &Said<'_>) -> Phases {
    let [create, stat, read, rename, remove] =
        ["create", "stat", "read", "rename", "remove"].map(|name| said.flag(name));
    let all = !(create || stat || read || rename || remove);
    Phases { create: create || all, stat: stat || all, read: read || all, rename: rename || all, remove: remove || all }
}

/// Items of each task, and of each directory.
fn amounts(
    said: &mut Said<'_>,
    phases: Phases,
    holders: u64,
    created: &mut dyn FnMut(&str) -> Result<String, String>,
) -> (u64, u64) {
    let (mut items, mut each) = (said.number("items"), said.number("items-per-directory"));
    let in_two_ways = items.is_some_and(|items| items > 0) && each.is_some_and(|each| each > 0);
    if let Some(path) = said.text("status-file").filter(|_| !phases.create) {
        let read = created(&path).and_then(|text| {
            let mut numbers = text.split_whitespace().map_while(|word| word.parse::<u64>().ok());
            numbers.next().map(|created| (created, numbers.next())).ok_or_else(|| "it has no number".into())
        });
        match read {
            Ok((created, of_each)) => {
                // In which directory an item is follows from how many each was to have, whatever became of them. mdtest's own file does not
                // have that number; the items that were asked for say it.
                let asked = items.filter(|items| *items > 0).map(|items| items / holders.max(1));
                each = each.or(of_each).or(asked).filter(|each| *each > 0);
                items = Some(created);
            }
            Err(why) => {
                let message = format!("cannot read how many items were created from {path}: {why}");
                said.wrong(&["status-file"], message, "it is written by a run with -C and the same -x");
            }
        }
    }
    let holders = holders.max(1);
    let (items, each) = match (items.filter(|items| *items > 0), each.filter(|each| *each > 0)) {
        _ if in_two_ways => {
            said.wrong(&["items-per-directory"], "-n and -I say the same in two ways", "give one of them");
            (1, 1)
        }
        (Some(items), Some(each)) => (items, each),
        (None, Some(each)) => (each.saturating_mul(holders), each),
        (Some(items), None) if items < holders => {
            let message = format!("{items} items are too few for the {holders} directories of the tree");
            said.wrong(&["items"], message, "each directory has as many of them: give more, or say how many with -I");
            (1, 1)
        }
        (Some(items), None) => {
            let each = items / holders;
            if !items.is_multiple_of(holders) {
                let note = format!("each of {holders} directories has {each}, which makes {}", each * holders);
                said.warn("items", "this is not a multiple of the number of directories", &note);
            }
            (each * holders, each)
        }
        (None, None) => {
            said.wrong(
                &["items", "items-per-directory"],
                "the number of items is missing",
                "-n 1000, or -I 10 with -z and -b",
            );
            (1, 1)
        }
    };
    if items > MAXIMUM_FILES {
        let message = format!("{items} items are more than the {MAXIMUM_FILES} that a task can have");
        said.wrong(&["items", "items-per-directory"], message, "");
    }
    (items, each)
}

/// What does not go together.
fn check(said: &mut Said<'_>, mdtest: &Mdtest) {
    said.check_interface();
    if mdtest.directory.contains('@') {
        said.wrong(&["directory"], "one directory is worked in", "run one load in each of these");
    }
    let Phases { create, read, .. } = mdtest.phases;
    if mdtest.direct {
        for (name, bytes, moved) in
            [("write-bytes", mdtest.write_bytes, create), ("read-bytes", mdtest.read_bytes, read)]
        {
            said.check_direct(name, if moved { bytes } else { 0 });
        }
    }
    if create && read && mdtest.read_bytes > mdtest.write_bytes {
        said.wrong(&["read-bytes"], "more is read of each file than is written to it", "-w as large as -e, or larger");
    }
    if mdtest.phases.rename && said.get("rename").is_some() && !mdtest.directories {
        said.wrong(&["rename"], "-U renames directories, and there are none", "leave out -F, or -U");
    }
    if mdtest.iterations > 1 && mdtest.status_file.is_some() {
        said.wrong(&["status-file"], "-x keeps one number, and there are several iterations", "-i 1");
    }
    if mdtest.iterations == 0 {
        said.wrong(&["iterations"], "nothing would be done", "-i 1, or more");
    }
    if mdtest.iterations.saturating_mul(20) > MAXIMUM_PHASES {
        said.wrong(&["iterations"], "more phases than one load can have", "fewer, or several runs");
    }
    if mdtest.stonewall.is_some() && !create {
        said.warn(
            "stonewall",
            "-W has no effect",
            "it ends the phases that create, and -C is not among those asked for",
        );
    }
}

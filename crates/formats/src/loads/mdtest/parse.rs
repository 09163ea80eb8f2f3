//! From the words of a command line to what it means.

use super::{
    command::{Mdtest, Phases},
    options,
};
use crate::{
    Diagnostics,
    diagnostic::{Diagnostic, Report},
    loads::letters::{CommandLine, Given},
};
use fstone_model::workload::{Directories, MAXIMUM_FILES};
use std::time::Duration;

/// Phases that a command line may ask for.
const MAXIMUM_PHASES: u64 = 5000;

/// Reads a command line. `created` gives the content of the file of `-x`, or says why it cannot.
///
/// # Errors
/// Everything that is wrong with it. Warnings alone are no failure; they are in [`Mdtest::warnings`].
pub fn parse(
    line: &CommandLine,
    created: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Mdtest, Diagnostics> {
    let mut report = Report::new(line.source.clone());
    let given = Given::read(line, options::OPTIONS, &mut report);
    let mut said = Said { given: &given, report: &mut report };
    let mdtest = said.mdtest(created);
    let (mut mdtest, warnings) = report.finish(mdtest)?;
    mdtest.warnings = warnings;
    Ok(mdtest)
}

/// What was given, and what is found about it.
struct Said<'a> {
    given: &'a [Given],
    report: &'a mut Report,
}

impl Said<'_> {
    /// The last counts.
    fn get(&self, name: &str) -> Option<&Given> {
        self.given.iter().rev().find(|given| given.option.name == name)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.get(name).map(|given| given.number)
    }

    fn flag(&self, name: &str) -> bool {
        self.number(name).unwrap_or(0) > 0
    }

    fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|given| given.text.clone())
    }

    fn time(&self, name: &str, default: Duration) -> Duration {
        self.number(name).map_or(default, Duration::from_nanos)
    }

    /// Reports an error where one of these was given, else of the whole.
    fn wrong(&mut self, names: &[&str], message: impl Into<String>, help: &str) {
        let place = names.iter().find_map(|name| self.get(name)).map(|given| given.span);
        let diagnostic = place.map_or_else(|| Diagnostic::whole(""), |place| Diagnostic::error(place, ""));
        let diagnostic = Diagnostic { message: message.into(), ..diagnostic };
        self.report.push(if help.is_empty() { diagnostic } else { diagnostic.help(help) });
    }

    fn warn(&mut self, name: &str, message: &str, note: &str) {
        let place = self.get(name).map(|given| given.span);
        if let Some(place) = place {
            self.report.push(Diagnostic::warning(place, message).note(note));
        }
    }

    fn mdtest(&mut self, created: &mut dyn FnMut(&str) -> Result<String, String>) -> Mdtest {
        let phases = self.phases();
        let (only_files, only_directories) = (self.flag("files"), self.flag("directories"));
        let both = only_files == only_directories;
        let depth = u32::try_from(self.number("depth").unwrap_or(0)).unwrap_or(u32::MAX);
        let branching = u32::try_from(self.number("branching").unwrap_or(1)).unwrap_or(u32::MAX);
        let leaves_only = self.flag("leaves-only");
        if branching == 0 && depth > 0 {
            self.wrong(&["branching"], "a tree with levels has at least one subdirectory in each", "-b 1, or more");
        }
        let (all, above) = Directories::of_tree(branching.max(1), depth);
        if all > MAXIMUM_FILES {
            let message = format!("the tree has {all} directories, where {MAXIMUM_FILES} are the most");
            self.wrong(&["branching", "depth"], message, "");
        }
        let holders = if leaves_only { all - above } else { all };
        let (items, each) = self.amounts(phases, holders, created);
        let random = self.flag("random") || self.get("random-seed").is_some();
        let mdtest = Mdtest {
            directory: self.text("directory"),
            items,
            each,
            depth,
            branching: branching.max(1),
            leaves_only,
            unique: self.flag("unique"),
            files: only_files || both,
            directories: only_directories || both,
            phases,
            iterations: self.number("iterations").unwrap_or(1),
            shift: u32::try_from(self.number("shift").unwrap_or(0)).unwrap_or(0),
            write_bytes: self.number("write-bytes").unwrap_or(0),
            read_bytes: self.number("read-bytes").unwrap_or(0),
            sync_file: self.flag("sync-file"),
            sync: self.flag("sync"),
            random,
            direct: self.flag("posix.odirect"),
            stonewall: self.number("stonewall").filter(|seconds| *seconds > 0).map(Duration::from_secs),
            status_file: self.text("status-file"),
            print_rates: !self.flag("time") || self.flag("rate-and-time"),
            print_times: self.flag("time") || self.flag("rate-and-time"),
            seed: self.number("seed").or_else(|| self.number("random-seed")),
            results: self.text("results"),
            json: self.flag("json"),
            silence: self.time("rank-silence", Duration::from_secs(60)),
            stillness: self.time("rank-stillness", Duration::from_secs(600)),
            warnings: None,
        };
        self.check(&mdtest);
        mdtest
    }

    fn phases(&self) -> Phases {
        let [create, stat, read, rename, remove] =
            ["create", "stat", "read", "rename", "remove"].map(|name| self.flag(name));
        let all = !(create || stat || read || rename || remove);
        Phases {
            create: create || all,
            stat: stat || all,
            read: read || all,
            rename: rename || all,
            remove: remove || all,
        }
    }

    /// Items of each task, and of each directory.
    fn amounts(
        &mut self,
        phases: Phases,
        holders: u64,
        created: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> (u64, u64) {
        let (mut items, each) = (self.number("items"), self.number("items-per-directory"));
        if let Some(path) = self.text("status-file").filter(|_| !phases.create) {
            let read = created(&path).and_then(|text| {
                text.split_whitespace()
                    .next()
                    .and_then(|word| word.parse().ok())
                    .ok_or_else(|| "it has no number".into())
            });
            match read {
                Ok(number) => items = Some(number),
                Err(why) => {
                    let message = format!("cannot read how many items were created from {path}: {why}");
                    self.wrong(&["status-file"], message, "it is written by a run with -C and the same -x");
                }
            }
        }
        let holders = holders.max(1);
        let (items, each) = match (items.filter(|items| *items > 0), each.filter(|each| *each > 0)) {
            (Some(_), Some(_)) if self.get("items").is_some() => {
                self.wrong(&["items-per-directory"], "-n and -I say the same in two ways", "give one of them");
                (1, 1)
            }
            (Some(items), Some(each)) => (items, each),
            (None, Some(each)) => (each.saturating_mul(holders), each),
            (Some(items), None) if items < holders => {
                let message = format!("{items} items are too few for the {holders} directories of the tree");
                self.wrong(
                    &["items"],
                    message,
                    "each directory has as many of them: give more, or say how many with -I",
                );
                (1, 1)
            }
            (Some(items), None) => {
                let each = items / holders;
                if !items.is_multiple_of(holders) {
                    let note = format!("each of {holders} directories has {each}, which makes {}", each * holders);
                    self.warn("items", "this is no multiple of the number of directories", &note);
                }
                (each * holders, each)
            }
            (None, None) => {
                self.wrong(
                    &["items", "items-per-directory"],
                    "how many items are there to be?",
                    "-n 1000, or -I 10 with -z and -b",
                );
                (1, 1)
            }
        };
        if items > MAXIMUM_FILES {
            let message = format!("{items} items are more than the {MAXIMUM_FILES} that a task can have");
            self.wrong(&["items", "items-per-directory"], message, "");
        }
        (items, each)
    }

    /// What does not go together.
    fn check(&mut self, mdtest: &Mdtest) {
        if let Some(api) = self.text("api").filter(|api| !api.eq_ignore_ascii_case("posix")) {
            let message = format!("there is no interface {api} here");
            self.wrong(&["api"], message, "files are reached by system calls, as with -a POSIX");
        }
        if mdtest.directory.as_ref().is_some_and(|directory| directory.contains('@')) {
            self.wrong(&["directory"], "one directory is worked in", "run one load in each of these");
        }
        let Phases { create, read, .. } = mdtest.phases;
        if create && read && mdtest.files && mdtest.read_bytes > mdtest.write_bytes {
            self.wrong(
                &["read-bytes"],
                "more is read of each file than is written to it",
                "-w as large as -e, or larger",
            );
        }
        if mdtest.phases.rename && self.get("rename").is_some() && !mdtest.directories {
            self.wrong(&["rename"], "-U renames directories, and there are none", "leave out -F, or -U");
        }
        if mdtest.iterations > 1 && mdtest.status_file.is_some() {
            self.wrong(&["status-file"], "-x keeps one number, and there are several iterations", "-i 1");
        }
        if mdtest.iterations == 0 {
            self.wrong(&["iterations"], "nothing would be done", "-i 1, or more");
        }
        if mdtest.iterations.saturating_mul(20) > MAXIMUM_PHASES {
            self.wrong(&["iterations"], "more phases than one load can have", "fewer, or several runs");
        }
        if mdtest.stonewall.is_some() && !create {
            self.warn(
                "stonewall",
                "-W has no effect",
                "it ends the phases that create, and -C is not among those asked for",
            );
        }
    }
}

//! `fstone publish`: web pages of many runs from many machines.

use super::{Context, stored::Place};
use crate::{
    args::{PublishArguments, Shows},
    documents,
    exit::Exit,
    paths, studies,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use clap::ValueEnum as _;
use fstone_analysis::text::{counted, listing};
use fstone_files::{Owner, read_text};
use fstone_model::{Dataset, text};
use fstone_report::publish::{Gallery, Kind, Page, Show};
use rustix::{
    fs::{Dir, FlockOperation, flock},
    io::Errno,
    process::geteuid,
};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// The file that lists which files of a directory `fstone publish` made.
const MARK: &str = ".fstone-publish";

const MARKED: &str = "Made by fstone publish, which replaces and removes these files:";

pub(crate) fn publish(context: &Context, arguments: &PublishArguments) -> CommandResult {
    PageDirectory::examine(&arguments.directory)?;
    let places: Vec<Place> = arguments.runs.iter().map(|name| Place::of(name)).collect::<Result<_, _>>()?;
    let (places, runs) = each_once(context, places)?;
    let gallery = Gallery::of(&runs, show(&arguments.show)).or_exit(Exit::CannotHere)?;
    drop(runs);
    let pages = gallery.pages();
    let mut names: BTreeSet<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    names.extend((0..places.len()).map(|place| gallery.name(place)));
    let (site, _alone) = PageDirectory::alone(&arguments.directory)?;
    let dropped = site.refuse_to_drop(&names, arguments.remove)?;
    site.refuse_foreign(&names)?;
    site.mark(names.iter().copied().chain(site.made.iter().map(String::as_str)))?;
    for (place, at) in places.iter().enumerate() {
        site.write(&gallery.page(place, &at.whole(context)?).or_exit(Exit::CannotHere)?)?;
    }
    for page in &pages {
        site.write(page)?;
    }
    for name in dropped {
        paths::remove_file(&site.directory.join(name))
            .with_context(|| format!("cannot remove {name} in {}", site.directory.display()))
            .or_exit(Exit::LabFailed)?;
    }
    site.mark(names.into_iter())?;
    terminal::print(&format!(
        "{} of {}: {}\n{}.\n",
        counted(pages.len() + places.len(), "page"),
        counted(places.len(), "run"),
        site.directory.join(fstone_report::publish::INDEX).display(),
        left_out(&arguments.show)
    ));
    Ok(Exit::Success)
}

/// The runs without what loads did, each once: a bundle may be of a run that is named by its number, too. Where one of both was
/// made before the run was resumed, the other is taken.
fn each_once(context: &Context, places: Vec<Place>) -> Result<(Vec<Place>, Vec<Dataset>), Failure> {
    let (mut kept, mut runs): (Vec<Place>, Vec<Dataset>) = (Vec::new(), Vec::new());
    for place in places {
        let dataset = place.figures(context)?;
        match runs.iter().position(|known| known.run.identified() == dataset.run.identified()) {
            None => {
                kept.push(place);
                runs.push(dataset);
            }
            Some(at) if dataset.trials.len() > runs[at].trials.len() => (kept[at], runs[at]) = (place, dataset),
            Some(_) => {}
        }
    }
    Ok((kept, runs))
}

pub(crate) fn show(show: &[Shows]) -> Show {
    let kind = |shows: &Shows| match shows {
        Shows::Hosts => Kind::Hosts,
        Shows::Paths => Kind::Paths,
        Shows::Study => Kind::Study,
        Shows::Commands => Kind::Commands,
        Shows::Messages => Kind::Messages,
        Shows::Note => Kind::Note,
        Shows::Machine => Kind::Machine,
    };
    Show { kinds: show.iter().map(kind).collect(), is_ours: studies::is_ours }
}

pub(crate) fn left_out(show: &[Shows]) -> String {
    let words = |shows: &Shows| match shows {
        Shows::Hosts => "names of machines",
        Shows::Paths => "paths",
        Shows::Study => "texts of studies that did not come with fstone",
        Shows::Commands => "command lines",
        Shows::Messages => "messages",
        Shows::Note => "notes",
        Shows::Machine => "the machine's mounts and free text",
    };
    let out: Vec<&str> = Shows::value_variants().iter().filter(|what| !show.contains(what)).map(words).collect();
    if out.is_empty() { "Nothing was left out".to_owned() } else { format!("Left out: {}", listing(&out)) }
}

struct PageDirectory<'a> {
    directory: &'a Path,
    /// The files in it that `fstone publish` made.
    made: Vec<String>,
}

impl<'a> PageDirectory<'a> {
    /// What is there; refuses what is something else.
    fn examine(directory: &'a Path) -> Result<Self, Failure> {
        let named = directory.display();
        paths::require_directory_of(directory, "")?;
        let refuse = |words: &str| Err(Failure::new(Exit::BadInput, format!("{named} {words}")));
        match fs::metadata(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self { directory, made: Vec::new() }),
            Err(error) => return Err(error).with_context(|| format!("cannot use {named}")).or_exit(Exit::LabFailed),
            Ok(found) if !found.is_dir() => return refuse("is not a directory; name a new one for the pages"),
            Ok(_) => {}
        }
        let mark = directory.join(MARK);
        // Links are not followed.
        if mark.symlink_metadata().is_ok_and(|found| found.is_file()) {
            let mark = read_text(&mark).with_context(|| format!("cannot read {}", mark.display()));
            let mark = mark.or_exit(Exit::LabFailed)?;
            let mut lines = mark.lines();
            if lines.next() == Some(MARKED) {
                return Ok(Self { directory, made: lines.filter(|name| is_name(name)).map(str::to_owned).collect() });
            }
        }
        let mut entries =
            fs::read_dir(directory).with_context(|| format!("cannot read {named}")).or_exit(Exit::LabFailed)?;
        if entries.next().is_some() {
            return refuse("is not empty and was not made by `fstone publish`; name a new directory");
        }
        Ok(Self { directory, made: Vec::new() })
    }

    /// The same, created if it does not exist, and locked against other publishers until the file is closed.
    fn alone(directory: &'a Path) -> Result<(Self, File), Failure> {
        let named = directory.display();
        let is_new = !directory.exists();
        paths::create_directory(directory).with_context(|| format!("cannot make {named}")).or_exit(Exit::LabFailed)?;
        let opened = File::open(directory).with_context(|| format!("cannot read {named}")).or_exit(Exit::LabFailed)?;
        if is_new {
            share(&opened).with_context(|| format!("cannot make {named}")).or_exit(Exit::LabFailed)?;
        }
        match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok((Self::examine(directory)?, opened)),
            Err(Errno::WOULDBLOCK) => {
                let words = format!("another `fstone publish` is writing to {named}; try again when it is done");
                Err(Failure::new(Exit::CannotHere, words))
            }
            Err(errno) => Err(errno).with_context(|| format!("cannot lock {named}")).or_exit(Exit::LabFailed),
        }
    }

    /// The pages that nothing links to any more. Their runs may exist nowhere else, so they are removed only on request.
    fn refuse_to_drop(&self, names: &BTreeSet<&str>, remove: bool) -> Result<Vec<&str>, Failure> {
        let dropped: Vec<&str> = self.made.iter().map(String::as_str).filter(|name| !names.contains(name)).collect();
        if dropped.is_empty() || remove {
            return Ok(dropped);
        }
        let listed: Vec<String> = dropped.iter().map(|name| format!("  {}", text::line(name))).collect();
        let words = format!(
            "{} has pages of runs that are no longer named:\n{}\nName these runs too, or remove their pages with --remove. Nothing was changed",
            self.directory.display(),
            listed.join("\n")
        );
        Err(Failure::new(Exit::CannotHere, words))
    }

    fn refuse_foreign(&self, names: &BTreeSet<&str>) -> Result<(), Failure> {
        for name in names {
            let Ok(found) = self.path(name).symlink_metadata() else { continue };
            if !found.is_file() || !self.made.iter().any(|made| made == name) {
                let words = format!(
                    "{} was not made by `fstone publish`; move it away. Nothing was changed",
                    self.path(name).display()
                );
                return Err(Failure::new(Exit::CannotHere, words));
            }
        }
        Ok(())
    }

    fn mark<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<(), Failure> {
        let names: BTreeSet<&str> = names.collect();
        let lines = names.into_iter().fold(format!("{MARKED}\n"), |lines, name| format!("{lines}{name}\n"));
        documents::publish(&self.path(MARK), lines)
    }

    fn write(&self, (name, page): &Page) -> Result<(), Failure> {
        documents::publish(&self.path(name), page)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// Opens a new directory to everybody: its pages are for them, and a web server may be another user. What took its place meanwhile
/// stays as it is.
fn share(directory: &File) -> io::Result<()> {
    let owner = Owner::caller().map_or(geteuid().as_raw(), |caller| caller.user);
    // "." and "..".
    let is_empty = Dir::read_from(directory)?.flatten().count() <= 2;
    match is_empty && directory.metadata()?.uid() == owner {
        true => directory.set_permissions(fs::Permissions::from_mode(0o755)),
        false => Ok(()),
    }
}

/// Whether a line of the list is the name of a page and cannot lead elsewhere.
fn is_name(line: &str) -> bool {
    line.ends_with(".html") && !line.starts_with('.') && !line.contains('/')
}

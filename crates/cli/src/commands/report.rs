//! `fstone report`: a stored run in the format asked for.

use super::{
    Context,
    stored::{no_such_run, open},
};
use crate::{
    args::{Answer, Format, ReportArguments},
    documents,
    exit::Exit,
    paths,
    terminal::{self, CommandResult, Failure, OrExit},
};
use fstone_analysis::Length;
use fstone_model::Dataset;
use fstone_store::{RunSummary, Store};
use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

pub(crate) fn report(context: &Context, arguments: &ReportArguments) -> CommandResult {
    let mut dataset = find(context, arguments)?;
    if let Some(factor) = &arguments.by {
        let plan = &mut dataset.run.plan;
        let varied = plan.factors.iter().enumerate().filter(|(index, _)| plan.varies(*index));
        let varied: Vec<&str> = varied.map(|(_, factor)| factor.name.as_str()).collect();
        if !varied.contains(&factor.as_str()) {
            let names = if varied.is_empty() { "nothing".to_owned() } else { varied.join(", ") };
            let message = format!("--by {factor}: run {} did not vary this factor; it varied {names}", dataset.run.id);
            return Err(Failure::new(Exit::BadInput, message));
        }
        plan.compare = Some(factor.clone());
    }
    let answer = match arguments.answer {
        Answer::Short => Length::Short,
        Answer::Long => Length::Long,
    };
    let options = fstone_report::Options { published: arguments.published, answer };
    let text = match arguments.format {
        Format::Terminal => {
            let to_terminal = arguments.output.is_none();
            fstone_report::terminal(
                &dataset,
                &fstone_report::TerminalOptions {
                    width: terminal::width(),
                    color: to_terminal && context.colored(),
                    options,
                },
            )
        }
        Format::Markdown => fstone_report::markdown(&dataset, &options),
        Format::Html => fstone_report::html(&dataset, &options),
        Format::Csv => fstone_report::csv(&dataset),
        Format::Json => fstone_report::json(&dataset, &options),
        Format::Svg => return write_svg(&dataset, &options, arguments.output.as_deref()),
    };
    // The process is about to end: freeing a million figures one by one would take a tenth of its time.
    std::mem::forget(dataset);
    documents::deliver(arguments.output.as_deref(), &text)?;
    Ok(Exit::Success)
}

/// The dataset of a run, or of the last one, as far as the format shows it.
fn find(context: &Context, arguments: &ReportArguments) -> Result<Dataset, Failure> {
    let store = open(context)?;
    let runs = store.runs().or_exit(Exit::LabFailed)?;
    let Some(last) = runs.iter().map(|run| run.id).max() else {
        return Err(Failure::new(
            Exit::BadInput,
            "the store holds no run yet; `fstone run small-file --quick` makes one",
        ));
    };
    let id = arguments.run.unwrap_or(last);
    if !runs.iter().any(|run| run.id == id) {
        return Err(no_such_run(id));
    }
    let dataset = match arguments.format {
        Format::Html | Format::Svg => store.shown(id),
        Format::Terminal | Format::Markdown | Format::Csv | Format::Json => store.without_series(id),
    };
    dataset.or_exit(Exit::LabFailed)
}

pub(crate) fn usual_directory(context: &Context) -> PathBuf {
    context.store.parent().unwrap_or(Path::new(".")).join("reports")
}

/// Characters of a run's identity in the name of its page: 32 bits of a random UUID.
const IDENTITY_CHARACTERS: usize = 8;

/// The file name of a run's page. Several stores may put their pages into one directory, and each has a run 1.
pub(crate) fn page_name(study: &str, run: u64, identity: &str) -> String {
    // A store may come from outside, so the names of its studies must not lead anywhere.
    let plain = |c: char| if c.is_alphanumeric() || "-_".contains(c) { c } else { '_' };
    format!("{}{}", study.chars().map(plain).collect::<String>(), page_ending(run, identity))
}

fn page_ending(run: u64, identity: &str) -> String {
    let identity: String = identity.chars().filter(char::is_ascii_alphanumeric).take(IDENTITY_CHARACTERS).collect();
    format!("-{run}-{identity}.html")
}

/// How many runs an index shows, because each is read and analysed for it.
const INDEX_RUNS: usize = 50;

/// Writes `index.html`, which leads to the pages of this store's runs that are in a directory. A page of that name which is
/// not fstone's stays as it is; where it leads to another store's runs, this store's index is `index-2.html`.
///
/// An index that leads to no other run than some that were `deleted` is this store's, too.
pub(crate) fn write_index(store: &Store, directory: &Path, deleted: &[RunSummary]) -> Result<(), Failure> {
    let mut runs = store.runs().or_exit(Exit::LabFailed)?;
    runs.sort_by_key(|run| std::cmp::Reverse(run.id));
    let endings: Vec<String> = runs.iter().chain(deleted).map(|run| page_ending(run.id, &run.identity)).collect();
    let Some(index) = index_path(directory, &endings).or_exit(Exit::LabFailed)? else {
        terminal::tell(&format!(
            "{} is not one of fstone's pages and was left as it is, so there is no index of the reports.",
            directory.join("index.html").display()
        ));
        return Ok(());
    };
    let mut entries = Vec::new();
    for run in runs {
        let page = page_name(&run.study, run.id, &run.identity);
        if entries.len() < INDEX_RUNS && directory.join(&page).is_file() {
            let dataset = store.figures(run.id).or_exit(Exit::LabFailed)?;
            entries.push(fstone_report::html::IndexEntry::of(&dataset, &page));
        }
    }
    documents::write(&index, fstone_report::html::index(&entries))
}

pub(crate) fn is_page(path: &Path) -> bool {
    let head = fstone_files::regular(path).ok().flatten().and_then(|path| {
        let mut head = Vec::new();
        File::open(path).ok()?.take(HEAD as u64).read_to_end(&mut head).ok()?;
        Some(head)
    });
    head.is_some_and(|head| fstone_report::html::is_page(&String::from_utf8_lossy(&head)))
}

/// Stores that may have an index in one directory.
const INDEXES: u32 = 100;

/// Where the index of a store's runs goes whose pages end so; `None` when something is there that is not fstone's.
fn index_path(directory: &Path, endings: &[String]) -> io::Result<Option<PathBuf>> {
    let name = |number| if number == 1 { "index.html".to_owned() } else { format!("index-{number}.html") };
    for path in (1..=INDEXES).map(|number| directory.join(name(number))) {
        match path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(path)),
            Err(error) => return Err(error),
            // A pipe would keep its reader waiting.
            Ok(found) if !found.is_file() => return Ok(None),
            Ok(_) => {}
        }
        let mut text = Vec::new();
        File::open(&path)?.take(INDEX_BYTES).read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        let head: String = text.chars().take(HEAD).collect();
        if !fstone_report::html::is_index(&head) {
            return Ok(None);
        }
        if !text.contains(".html\"") || endings.iter().any(|ending| text.contains(ending.as_str())) {
            return Ok(Some(path));
        }
    }
    Ok(Some(directory.join(name(1))))
}

/// Characters at the start of a page in which its title is.
const HEAD: usize = 4096;

/// More than the index of [`INDEX_RUNS`] runs has.
const INDEX_BYTES: u64 = 4 << 20;

fn write_svg(dataset: &Dataset, options: &fstone_report::Options, directory: Option<&Path>) -> CommandResult {
    let Some(directory) = directory else {
        return Err(Failure::new(Exit::BadInput, "svg makes several files: name their directory with --output DIR"));
    };
    paths::require_directory_of(directory, " with --output")?;
    let mut listing = String::new();
    for (name, svg) in fstone_report::svg_files(dataset, options) {
        let path = directory.join(name);
        documents::write(&path, svg)?;
        listing.push_str(&format!("{}\n", path.display()));
    }
    terminal::print(&listing);
    Ok(Exit::Success)
}

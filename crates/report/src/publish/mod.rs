//! Pages of many runs from many machines, for any web server: an index by study, machine and kernel, a page for each run, and for
//! each study the ratios that its runs found. They load nothing and read well without scripts.
//!
//! Everything is drawn from runs that `redact` has cleaned, so no page can show what was taken out. Figures of two machines never
//! stand in one comparison: what a study's page sets side by side are ratios of rows of one run.

mod ratios;
mod redact;
mod scan;

pub use redact::{RedactError, Shown};

use crate::{
    Analysis, Options,
    analysis::runs::Across,
    html::{IndexEntry, html_with_way_back, published_index},
    when,
};
use fstone_model::{Dataset, dataset::Run};
use redact::Redactor;
use scan::is_uuid;
use std::collections::BTreeMap;

/// The page that leads to all others.
pub const INDEX: &str = "index.html";

/// A file to be published: its name, and what is in it.
pub type Page = (String, String);

/// Runs that are published together.
#[derive(Debug)]
pub struct Gallery {
    redactor: Redactor,
    /// Without what tells, the oldest first, numbered from 1.
    runs: Vec<Dataset>,
    /// Their places in what was handed over.
    places: Vec<usize>,
    names: Vec<String>,
}

impl Gallery {
    /// Of these runs; the load engine's reports are not needed yet. Each run once.
    ///
    /// # Errors
    /// [`RedactError`].
    pub fn of(runs: &[Dataset], shown: Shown) -> Result<Self, RedactError> {
        let mut places: Vec<usize> = (0..runs.len()).collect();
        places.sort_by_key(|place| (runs[*place].run.started_unix_ns, runs[*place].run.identified()));
        let ordered: Vec<&Dataset> = places.iter().map(|place| &runs[*place]).collect();
        let redactor = Redactor::of(&ordered, shown);
        let runs = ordered.iter().zip(1..).map(|(run, number)| redactor.redacted(run, number));
        let runs: Vec<Dataset> = runs.collect::<Result<_, _>>()?;
        Ok(Self { names: names(&ordered, &runs), redactor, runs, places })
    }

    /// Name of the page of the run at this place.
    #[must_use]
    pub fn name(&self, place: usize) -> &str {
        &self.names[self.order(place)]
    }

    /// The page of the run at this place, which is handed over whole.
    ///
    /// # Errors
    /// [`RedactError`].
    pub fn page(&self, place: usize, whole: &Dataset) -> Result<Page, RedactError> {
        let at = self.order(place);
        let dataset = self.redactor.redacted(whole, at as u64 + 1)?;
        let options = Options { published: dataset.run.plan.published.is_some() };
        Ok((self.names[at].clone(), html_with_way_back(&dataset, &options, Some(INDEX))))
    }

    /// The pages of many runs, the index last.
    #[must_use]
    pub fn pages(&self) -> Vec<Page> {
        let analyses: Vec<Analysis<'_>> = self.runs.iter().map(Analysis::of).collect();
        let entry = |(analysis, name): (&Analysis<'_>, &String)| IndexEntry {
            answer: told_apart(analysis),
            ..IndexEntry::of(analysis.dataset, name)
        };
        let mut entries: Vec<IndexEntry> = analyses.iter().zip(&self.names).map(entry).collect();
        let mut studies: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (run, dataset) in self.runs.iter().enumerate() {
            studies.entry(&dataset.run.plan.study).or_default().push(run);
        }
        let mut pages: Vec<Page> = Vec::new();
        for (study, runs) in studies {
            let of_study: Vec<&Analysis<'_>> = runs.iter().map(|run| &analyses[*run]).collect();
            let mut across = Across::of(&of_study);
            across.retain(|across| !across.columns.is_empty());
            if across.is_empty() {
                continue;
            }
            let is_taken =
                |name: &str| self.names.iter().chain(pages.iter().map(|(name, _)| name)).any(|other| other == name);
            let name = unique(&format!("study-{}", plain(study)), is_taken);
            let of_entries: Vec<&IndexEntry> = runs.iter().map(|run| &entries[*run]).collect();
            pages.push((name.clone(), ratios::html(&of_study, &of_entries, &across, INDEX)));
            runs.iter().for_each(|run| entries[*run].ratios = Some(name.clone()));
        }
        pages.push((INDEX.to_owned(), published_index(&entries)));
        pages
    }

    fn order(&self, place: usize) -> usize {
        self.places.iter().position(|known| *known == place).expect("a run that was handed over")
    }
}

/// What a run found, for a list with runs of other machines: without any figure.
fn told_apart(analysis: &Analysis<'_>) -> String {
    if analysis.completed() == 0 {
        return "No trial completed.".to_owned();
    }
    let Some(column) = analysis.primary() else { return String::new() };
    let pairs = || analysis.comparisons[column].panels.iter().flatten().flat_map(|panel| &panel.comparison.pairs);
    let header = &analysis.columns[column].header;
    match (pairs().filter(|pair| pair.differs).count(), pairs().count()) {
        (_, 0) => String::new(),
        (0, 1) => format!("In {header} the two rows are not told apart."),
        (1, 1) => format!("In {header} the two rows are told apart."),
        (0, all) => format!("In {header} none of {all} pairs of rows is told apart."),
        (some, all) => format!("In {header} {some} of {all} pairs of rows are told apart."),
    }
}

/// The names of runs' pages, from study and identity, which stay the same when other runs are published.
fn names(runs: &[&Dataset], redacted: &[Dataset]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (dataset, redacted) in runs.iter().zip(redacted) {
        let study = &dataset.run.plan.study;
        // What is put in place of a machine's name depends on which other runs are published.
        let study = if *study == redacted.run.plan.study { plain(study) } else { "run".to_owned() };
        let name =
            unique(&format!("{study}-{}", identity(&dataset.run)), |name| names.iter().any(|other| other == name));
        names.push(name);
    }
    names
}

/// The start of a run's random UUID, 32 bits. Older identities have the host's name in them: for those it is the start time.
fn identity(run: &Run) -> String {
    let identity = run.identified();
    if is_uuid(&identity) {
        identity.chars().take(8).collect()
    } else {
        when::iso(run.started_unix_ns).replace(['-', ':'], "")
    }
}

/// The name of a page that no other has.
fn unique(stem: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut names = std::iter::once(format!("{stem}.html")).chain((2..).map(|number| format!("{stem}-{number}.html")));
    names.find(|name| !is_taken(name)).expect("numbers do not end")
}

/// A study's name as part of a file's.
fn plain(study: &str) -> String {
    study.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

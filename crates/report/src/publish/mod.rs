//! Pages of many runs from many machines, for any web server: an index by study, machine and kernel, a page for each run, and for
//! each study the ratios that its runs found. They load nothing and read well without scripts.
//!
//! Everything is drawn from what the allow-list has left of the runs. Figures of two machines are never in one
//! comparison: what a study's page sets side by side are ratios of rows of one run.

mod allow;
mod ratios;
mod texts;
mod words;

pub use allow::{AllowError, Kind, Show};
#[doc(hidden)]
pub use allow::{is_name, texts_of};

use crate::{
    Analysis, Options,
    analysis::{clock, runs::Across},
    html::{IndexEntry, html_with_way_back, published_index},
    text::counted,
    when,
};
use allow::AllowList;
use fstone_model::{Dataset, dataset::Run};
use std::collections::BTreeMap;

pub const INDEX: &str = "index.html";

/// A file to be published: its name, and what is in it.
pub type Page = (String, String);

/// Runs that are published together.
#[derive(Debug)]
pub struct Gallery {
    allowed: AllowList,
    /// What is shown of them, the oldest first.
    runs: Vec<Dataset>,
    /// Their places in what was handed over.
    places: Vec<usize>,
    names: Vec<String>,
}

/// A run for others: only what the list allows.
pub fn anonymous(dataset: &Dataset, show: Show) -> Result<Dataset, AllowError> {
    AllowList::new(show).apply(dataset)
}

impl Gallery {
    /// Of these runs; the load engine's reports are not needed yet. Each run once.
    pub fn of(runs: &[Dataset], show: Show) -> Result<Self, AllowError> {
        let mut places: Vec<usize> = (0..runs.len()).collect();
        places.sort_by_key(|place| (runs[*place].run.started_unix_ns, runs[*place].run.identified()));
        let ordered: Vec<&Dataset> = places.iter().map(|place| &runs[*place]).collect();
        let mut allowed = AllowList::new(show);
        let runs: Vec<Dataset> = ordered.iter().map(|run| allowed.apply(run)).collect::<Result<_, _>>()?;
        Ok(Self { names: names(&ordered), allowed, runs, places })
    }

    pub fn name(&self, place: usize) -> &str {
        &self.names[self.order(place)]
    }

    /// The page of the run at this place, which is handed over whole.
    pub fn page(&self, place: usize, whole: &Dataset) -> Result<Page, AllowError> {
        let at = self.order(place);
        let mut dataset = self.allowed.clone().apply(whole)?;
        allow::shorten(&mut dataset);
        let options = Options { published: dataset.run.plan.published.is_some(), ..Options::default() };
        Ok((self.names[at].clone(), html_with_way_back(&dataset, &options, Some(INDEX))))
    }

    /// The pages of many runs, the index last.
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
    let panels = || analysis.comparisons[column].panels.iter().flatten();
    let pairs = || panels().flat_map(fstone_analysis::PanelComparison::compared_pairs).filter(|pair| pair.can_differ);
    let header = &analysis.columns[column].header;
    let lost = match analysis.rows.iter().filter(|row| row.harm.is_some()).count() {
        0 => String::new(),
        rows => format!("{} lost or damaged data, or could not be checked. ", counted(rows, "row")),
    };
    let found = match (pairs().filter(|pair| pair.differs).count(), pairs().count()) {
        (_, 0) if panels().next().is_none() => String::new(),
        (_, 0) if clock::is_one_seed(analysis.dataset) => {
            format!("In {header} figures are exact for one seed; what guests would move is not known.")
        }
        (_, 0) => format!("In {header} too few trials can tell rows apart."),
        (0, 1) => format!("In {header} the two rows are not told apart."),
        (1, 1) => format!("In {header} the two rows are told apart."),
        (0, all) => format!("In {header} none of {all} pairs of rows is told apart."),
        (some, all) => format!("In {header} {some} of {all} pairs of rows are told apart."),
    };
    format!("{lost}{found}").trim_end().to_owned()
}

/// The names of runs' pages, from study and identity, which stay the same when other runs are published.
fn names(runs: &[&Dataset]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for dataset in runs {
        let stem = format!("{}-{}", plain(&dataset.run.plan.study), identity(&dataset.run));
        let name = unique(&stem, |name| names.iter().any(|other| other == name));
        names.push(name);
    }
    names
}

/// The start of a run's random UUID, 32 bits. Older identities have the host's name in them: for those it is the start time.
fn identity(run: &Run) -> String {
    let identity = run.identified();
    let random = identity.strip_prefix(Run::ANONYMOUS).unwrap_or(&identity);
    if random.len() >= 32 && random.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        random.chars().take(8).collect()
    } else {
        when::iso(run.started_unix_ns).replace(['-', ':'], "")
    }
}

fn unique(stem: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut names = std::iter::once(format!("{stem}.html")).chain((2..).map(|number| format!("{stem}-{number}.html")));
    names.find(|name| !is_taken(name)).expect("numbers do not end")
}

fn plain(study: &str) -> String {
    study.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

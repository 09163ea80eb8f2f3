//! An index page of many runs.

use super::shared::css;
use crate::{Analysis, analysis::machines, text::line, when};
use askama::Template;
use fstone_model::{Dataset, study::KernelSpec, units::format_bytes};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// Where its page is, relative to the index.
    pub href: String,
    pub id: u64,
    pub study: String,
    pub title: String,
    pub quick: bool,
    pub started_unix_ns: u64,
    pub host: String,
    pub kernel: String,
    pub completed: usize,
    pub trials: usize,
    pub note: Option<String>,
    /// The first two sentences of the answer: what was lost or leads, and the next finding.
    pub answer: String,
    /// The machines that made it: (name, processors and memory).
    pub machines: Vec<(String, String)>,
    pub kernels: Vec<String>,
    /// Where its study's ratios are beside those of other runs, relative to the index.
    pub ratios: Option<String>,
}

impl IndexEntry {
    /// The entry of a run whose page is at `href`. The load engine's reports do not matter for it.
    pub fn of(dataset: &Dataset, href: &str) -> Self {
        let analysis = Analysis::of(dataset);
        let run = &dataset.run;
        Self {
            href: href.to_owned(),
            id: run.id,
            study: line(&run.plan.study),
            title: line(&run.plan.title),
            quick: run.plan.quick,
            started_unix_ns: run.started_unix_ns,
            host: line(&run.inventory.host),
            kernel: run.kernel(),
            machines: machines(dataset).iter().map(hardware).collect(),
            kernels: kernels(dataset),
            ratios: None,
            completed: analysis.completed(),
            trials: dataset.trials.len(),
            note: run.note.as_ref().map(|note| line(note.as_str())),
            answer: analysis.sentences().into_iter().take(2).collect::<Vec<_>>().join(" "),
        }
    }
}

impl IndexEntry {
    /// When it started, to the minute.
    pub(crate) fn started(&self) -> String {
        when::minute(self.started_unix_ns)
    }
}

/// "Linux 6.1.0".
fn short(kernel: &str) -> String {
    line(kernel).split(' ').take(2).collect::<Vec<_>>().join(" ")
}

fn hardware(machine: &fstone_analysis::Machine<'_>) -> (String, String) {
    let of = machine.inventory;
    let told = format!("{} × {}, {}", of.cpus, of.cpu_model, format_bytes(of.memory_bytes));
    (machine.name.clone(), line(&told))
}

fn kernels(dataset: &Dataset) -> Vec<String> {
    let mut kernels: Vec<String> = Vec::new();
    for cell in &dataset.run.plan.cells {
        let of_cell = match &cell.kernel {
            KernelSpec::Host => machines(dataset).iter().map(|machine| short(&machine.inventory.kernel)).collect(),
            KernelSpec::Uml(version) => vec![line(&format!("user-mode Linux {version}"))],
            KernelSpec::Qemu(version) => vec![line(&format!("QEMU with kernel {version}"))],
            KernelSpec::Exact(version) => vec![line(&format!("virtual time, user-mode Linux {version}"))],
        };
        kernels.extend(of_cell.into_iter().filter(|kernel| !kernel.is_empty()));
        kernels.sort();
        kernels.dedup();
    }
    kernels
}

#[derive(Template)]
#[template(path = "index.html")]
struct Page {
    css: String,
    studies: Vec<Study>,
    runs: usize,
    /// By machine and by kernel, where there is more than one.
    others: Vec<Other>,
    /// Whether it lists runs of many machines, for readers who did not make them.
    is_published: bool,
}

struct Study {
    id: String,
    name: String,
    title: String,
    runs: Vec<Line>,
    ratios: Option<String>,
}

struct Other {
    id: &'static str,
    title: &'static str,
    groups: Vec<Group>,
}

struct Group {
    name: String,
    about: String,
    /// (address, words).
    runs: Vec<(String, String)>,
}

struct Line {
    href: String,
    id: u64,
    when: String,
    quick: bool,
    host: String,
    kernel: String,
    trials: String,
    note: Option<String>,
    answer: String,
}

/// An index of runs, by study, the newest first.
pub fn index(entries: &[IndexEntry]) -> String {
    page(entries, false)
}

/// The same for published runs: it says what may be compared.
pub(crate) fn published_index(entries: &[IndexEntry]) -> String {
    page(entries, true)
}

fn page(entries: &[IndexEntry], is_published: bool) -> String {
    let mut newest: Vec<&IndexEntry> = entries.iter().collect();
    newest.sort_by_key(|entry| std::cmp::Reverse((entry.started_unix_ns, entry.id)));
    let mut studies: Vec<Study> = Vec::new();
    let others = others(&newest);
    for entry in newest {
        let at = studies.iter().position(|study| study.name == entry.study).unwrap_or_else(|| {
            let id = format!("study-{}", studies.len() + 1);
            let (name, title) = (entry.study.clone(), entry.title.clone());
            studies.push(Study { id, name, title, runs: Vec::new(), ratios: entry.ratios.as_deref().map(safe) });
            studies.len() - 1
        });
        studies[at].runs.push(Line {
            href: safe(&entry.href),
            id: entry.id,
            when: entry.started(),
            quick: entry.quick,
            host: entry.host.clone(),
            kernel: entry.kernel.clone(),
            trials: if entry.completed == entry.trials {
                entry.trials.to_string()
            } else {
                format!("{} of {}", entry.completed, entry.trials)
            },
            note: entry.note.clone(),
            answer: entry.answer.clone(),
        });
    }
    Page { css: css(), runs: entries.len(), studies, others, is_published }
        .render()
        .expect("writing to a string does not fail")
}

fn others(entries: &[&IndexEntry]) -> Vec<Other> {
    let by = |names: &dyn Fn(&IndexEntry) -> Vec<(String, String)>| {
        let mut groups: Vec<Group> = Vec::new();
        for entry in entries {
            let run = (safe(&entry.href), format!("{}, run {}", entry.study, entry.id));
            for (name, about) in names(entry) {
                match groups.iter_mut().find(|group| group.name == name) {
                    Some(group) => group.runs.push(run.clone()),
                    None => groups.push(Group { name, about, runs: vec![run.clone()] }),
                }
            }
        }
        groups.sort_by(|a, b| (a.name.len(), &a.name).cmp(&(b.name.len(), &b.name)));
        groups
    };
    let kernels = |entry: &IndexEntry| entry.kernels.iter().map(|kernel| (kernel.clone(), String::new())).collect();
    let all = [
        Other { id: "machines", title: "Machines", groups: by(&|entry| entry.machines.clone()) },
        Other { id: "kernels", title: "Kernels", groups: by(&kernels) },
    ];
    all.into_iter().filter(|other| other.groups.len() > 1).collect()
}

/// Whether the start of a page is that of an index that fstone made, of whichever version.
pub fn is_index(head: &str) -> bool {
    head.contains("<title>Runs · fstone</title>")
}

/// Whether the start of a page is that of a run's report that fstone made.
pub fn is_page(head: &str) -> bool {
    head.contains("<meta name=\"generator\" content=\"fstone ")
}

/// A relative address, whatever it was: one with a scheme could be a script.
fn safe(href: &str) -> String {
    let href = line(href);
    let scheme = href.split(['/', '?', '#']).next().is_some_and(|head| head.contains(':'));
    if scheme { format!("./{href}") } else { href }
}

#[cfg(test)]
mod tests {
    use super::{index, is_index, safe};

    #[test]
    fn an_index_is_known_by_its_title() {
        let page = index(&[]);
        assert!(is_index(page.split_once("<style>").expect("it has one").0));
        assert!(!is_index("<!doctype html><title>My benchmarks with fstone</title>"));
    }

    #[test]
    fn addresses_stay_relative() {
        assert_eq!(safe("run-3.html"), "run-3.html");
        assert_eq!(safe("javascript:alert(1)"), "./javascript:alert(1)");
        assert_eq!(safe("runs/a:b.html"), "runs/a:b.html");
    }
}

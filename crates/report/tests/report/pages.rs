//! HTML pages: complete, self-contained, escaped, and small.

use crate::{figures, fixture, hostile};
use fstone_report::{
    Options, html,
    html::{IndexEntry, index},
};
use std::{collections::BTreeSet, fs, time::Instant};

const ALL: Options = Options { published: true, answer: fstone_analysis::Length::Long };
const VOID: [&str; 7] = ["meta", "link", "br", "wbr", "input", "img", "hr"];

/// Names of a page's elements; checks on the way that they nest and that no script or style is let in by text.
pub(crate) fn check_html(page: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    let mut names = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let end = rest[at..].find('>').expect("a tag ends") + at;
        let tag = &rest[at + 1..end];
        let mut after = end + 1;
        if let Some(closing) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(closing), "near {:?}", &rest[..at.min(80)]);
        } else if !tag.starts_with('!') {
            let name = tag.trim_end_matches('/').split([' ', '\n']).next().expect("a name").to_owned();
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            if name == "script" || name == "style" {
                // Raw text up to the closing tag.
                after = end + rest[end..].find(&format!("</{name}>")).expect("it is closed") + name.len() + 3;
            } else if !tag.ends_with('/') && !VOID.contains(&name.as_str()) {
                open.push(name.clone());
            }
            names.push(name);
        }
        rest = &rest[after..];
    }
    assert!(open.is_empty(), "{open:?} left open");
    names
}

fn attributes<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    page.split(start.as_str()).skip(1).map(|rest| rest.split('"').next().expect("it ends")).collect()
}

#[test]
fn the_page_shows_what_mkfs_was_given() {
    let mut dataset = fixture::small_file(3);
    for trial in dataset.trials.iter_mut().filter(|trial| trial.id.cell == 0) {
        for step in trial.steps.iter_mut().filter(|step| step.step == "mkfs") {
            let added = ["-E".to_owned(), "lazy_itable_init=0,lazy_journal_init=0".to_owned()];
            step.commands[0].argv.splice(1..1, added);
        }
    }
    let page = html(&dataset, &ALL).replace("<wbr>", "");
    let asked = dataset.run.plan.cells[0].filesystem.mkfs.join(" ");
    let line_end = if asked.is_empty() { "" } else { "<br>" };
    let row = format!(
        "<td>{asked}{line_end}<span class=\"soft\">added:</span> -E lazy_itable_init=0,lazy_journal_init=0</td>"
    );
    assert!(page.contains(&row), "{row}");
}

#[test]
fn a_definition_that_columns_share_is_told_once() {
    let told = |columns: &[(&str, &str, &str)]| {
        let mut plan = fixture::plan("times", "Times", 1, columns);
        fixture::cross(&mut plan, &[fixture::Fs("ext4", "ext4", "", "")], &[]);
        let page = html(&fixture::dataset(plan), &Options::default());
        assert_eq!(page.matches("wall-clock time of the step").count(), 1, "{columns:?}");
        page
    };
    let times = ["touch", "find", "rm", "fsck"].map(|step| (step, step, "time"));
    let rate = ("rate", "load", "operations per second");
    assert!(told(&times).contains("All columns: wall-clock time of the step."));
    assert!(told(&[&times[..], &[rate]].concat()).contains("All other columns: wall-clock time of the step."));
    assert!(told(&[&times[..2], &[rate]].concat()).contains("Touch and find: wall-clock time of the step."));
}

#[test]
fn pages_are_sound_and_self_contained() {
    for (name, dataset) in figures::datasets() {
        let page = html(&dataset, &ALL);
        fs::write(figures::gallery().join(format!("{name}.html")), &page).expect("the gallery can be written");
        let names = check_html(&page);
        let count = |wanted: &str| names.iter().filter(|name| *name == wanted).count();
        assert_eq!((count("script"), count("style"), count("main"), count("h1")), (2, 1, 1, 1), "{name}");
        assert_eq!(count("img") + count("iframe") + count("object") + count("form"), 0);
        assert!(attributes(&page, "src").is_empty(), "nothing is loaded");
        let ids = attributes(&page, "id");
        let distinct: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(distinct.len(), ids.len(), "ids are unique: {ids:?}");
        for href in attributes(&page, "href") {
            let inside = href.strip_prefix('#').is_some_and(|id| distinct.contains(id));
            assert!(inside || href == "data:,", "{href} leads nowhere");
        }
        for of in ["aria-labelledby", "for"] {
            assert!(attributes(&page, of).iter().all(|id| distinct.contains(id)), "{of}");
        }
        assert!(!page.chars().any(|c| c.is_control() && c != '\n'), "{name}");
        assert!(!page.contains("NaN"), "{name}");
    }
}

#[test]
fn every_table_has_headers_and_every_figure_words() {
    let page = html(&fixture::small_file(10), &ALL);
    for table in page.split("<table").skip(1) {
        let table = table.split("</table>").next().expect("it ends");
        assert!(table.contains("<thead>") && table.contains("scope=\"col\"") && table.contains("scope=\"row\""));
        for row in table.split("<tbody").skip(1).flat_map(|body| body.split("<tr").skip(1)) {
            assert!(row.contains("<th scope=\"row\""), "{row}");
        }
    }
    for figure in page.split("<figure").skip(1) {
        let figure = figure.split("</figure>").next().expect("it ends");
        assert!(figure.contains("<figcaption>") && figure.contains("role=\"img\"") && figure.contains("class=\"cap\""));
        for label in attributes(figure, "aria-label") {
            assert!(label.len() > 30, "{label}");
        }
    }
}

#[test]
fn hostile_names_stay_text() {
    let page = html(&hostile::dataset(), &ALL);
    assert!(!page.contains("<script>alert") && !page.contains("</th>\u{241b}") && !page.contains("<b>"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") || page.contains("&#60;script&#62;alert(1)"));
    let data = page.split("id=\"data\">").nth(1).expect("there is data").split("</script>").next().expect("it ends");
    assert!(!data.contains('<'));
    let data: serde_json::Value = serde_json::from_str(data).expect("it is JSON");
    assert_eq!(data["cells"]["0"]["label"], hostile::SCRIPT);
}

#[test]
fn figures_of_the_page_are_those_of_the_table() {
    let dataset = fixture::small_file(10);
    let page = html(&dataset, &Options::default());
    let terminal = fstone_report::terminal(&dataset, &fstone_report::TerminalOptions::default());
    for value in ["66,167", "41,015", "0.333", "71.7"] {
        assert!(page.contains(&format!(">{value}<")) && terminal.contains(value), "{value}");
    }
    for sentence in fstone_analysis::Analysis::of(&dataset).sentences() {
        assert!(page.contains(&sentence), "{sentence}");
    }
    assert!(!page.contains("Published, and today"), "only when asked for");
}

#[test]
fn ten_thousand_trials_are_below_two_megabytes() {
    for (cells, repeats, with_loads) in [(1000, 10, false), (1000, 10, true), (100, 100, true), (17, 30, false)] {
        let dataset = fixture::many(cells, repeats, with_loads);
        let start = Instant::now();
        let page = html(&dataset, &ALL);
        // Told, not asserted: how long it takes is the machine's.
        let loads = if with_loads { ", with loads" } else { "" };
        eprintln!("{cells} rows × {repeats}{loads}: {} bytes in {:?}", page.len(), start.elapsed());
        fs::write(figures::gallery().join(format!("many-{cells}.html")), &page).expect("the gallery can be written");
        assert!(page.len() < 2_000_000, "{cells} rows: {} bytes", page.len());
    }
}

#[test]
fn an_entry_of_the_index_is_the_same_without_the_loads_reports() {
    let whole = fixture::small_file(10);
    let mut lean = whole.clone();
    let steps = lean.trials.iter_mut().flat_map(|trial| &mut trial.steps);
    let loads = steps.filter_map(|step| step.load.take()).count();
    assert!(loads > 0);
    assert_eq!(IndexEntry::of(&whole, "run-3.html"), IndexEntry::of(&lean, "run-3.html"));
}

/// The store leaves out of a load's report what no page shows.
#[test]
fn a_page_is_the_same_with_shortened_loads() {
    let whole = fixture::small_file(10);
    let mut shortened = whole.clone();
    let steps = shortened.trials.iter_mut().flat_map(|trial| &mut trial.steps);
    steps.filter_map(|step| step.load.as_mut()).for_each(|load| load.shorten());
    assert_ne!(whole, shortened);
    assert_eq!(html(&whole, &ALL), html(&shortened, &ALL));
}

#[test]
fn an_index_lists_the_newest_first() {
    let mut newer = fixture::small_file(3);
    newer.run.id = 9;
    newer.run.started_unix_ns += 86_400_000_000_000;
    let entries = [
        IndexEntry::of(&fixture::small_file(10), "run-3.html"),
        IndexEntry::of(&newer, "run-9.html"),
        IndexEntry::of(&fixture::large_file(3), "run-4.html"),
        IndexEntry::of(&hostile::dataset(), "javascript:alert(1)"),
    ];
    let page = index(&entries);
    fs::write(figures::gallery().join("index.html"), &page).expect("the gallery can be written");
    check_html(&page);
    let at = |text: &str| page.find(text).expect(text);
    assert!(at("run-9.html") < at("run-3.html"));
    assert!(!page.contains("href=\"javascript:"));
    assert!(!page.contains("<script"), "an index needs none");
    check_html(&index(&[]));
}

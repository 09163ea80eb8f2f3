//! The page of one run.

use super::{
    audit, chapters, data, differences, figures, flames, machine, measured, method, outcomes,
    shared::css,
    table::{self, Cell},
    trials,
};
use crate::{
    Analysis, Options,
    analysis::{Loads, Rule, clock, machines_in_words},
    number::grouped,
    text::{joined, line},
    when,
};
use askama::Template;
use fstone_model::Dataset;

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    fstone: String,
    title: String,
    run: u64,
    kicker: String,
    facts: String,
    note: Option<String>,
    css: String,
    js: &'static str,
    contents: Vec<(&'static str, &'static str)>,
    back: Option<&'a str>,
    sentences: Vec<String>,
    table: table::Table,
    footnotes: Vec<outcomes::Note>,
    comparisons_title: String,
    comparisons: Vec<table::Pair>,
    chapters: Vec<chapters::ChapterView>,
    method_figures: Vec<figures::FigureView>,
    flames: flames::Flames,
    differences: differences::Differences,
    measured: measured::Measured,
    commands: Vec<(String, String)>,
    outcomes: outcomes::Outcomes,
    trials: trials::Trials,
    method: Vec<String>,
    warnings: Vec<String>,
    rules_sentence: String,
    rules_broken: bool,
    rules: Vec<Rule>,
    audit: audit::Audits,
    machine: machine::Machine,
    repeat: machine::Repeat,
    data: String,
}

/// A run as one self-contained HTML page.
pub fn html(dataset: &Dataset, options: &Options) -> String {
    html_with_way_back(dataset, options, None)
}

/// The same; `back` is the address of the page it was reached from, for a link.
pub(crate) fn html_with_way_back(dataset: &Dataset, options: &Options, back: Option<&str>) -> String {
    let analysis = Analysis::of(dataset);
    let loads = Loads::of(&analysis);
    let run = &dataset.run;
    let (chapters, method_figures) = chapters::views(&analysis, &loads, options);
    let mut contents = vec![("answer", "Answer"), ("table", "Table")];
    contents.extend(chapters.iter().map(|chapter| (chapter.id, chapter.short)));
    let flames = flames::flames(dataset);
    contents.extend((!flames.drawn.is_empty()).then_some(("kernel", "Kernel")));
    contents.extend([
        ("different", "Differences"),
        ("outcomes", "Outcomes"),
        ("method", "Method"),
        ("machine", "Machine"),
        ("repeat", "Repeat it"),
    ]);
    let rules = analysis.rules();
    let (comparisons_title, comparisons) = table::comparisons(&analysis);
    let page = Page {
        fstone: line(&run.inventory.fstone_version),
        title: line(&run.plan.title),
        run: run.id,
        kicker: kicker(dataset),
        facts: facts(&analysis),
        note: run.note.as_ref().map(|note| line(note.as_str())),
        css: css(),
        js: include_str!("../../templates/report.js"),
        contents,
        back,
        sentences: analysis.answer(options.answer),
        table: table::table(&analysis),
        footnotes: outcomes::notes(&analysis),
        comparisons_title,
        comparisons,
        chapters,
        method_figures,
        flames,
        differences: differences::differences(&analysis),
        measured: measured::measured(&analysis),
        commands: differences::commands(&analysis),
        outcomes: outcomes::outcomes(&analysis, &loads),
        trials: trials::trials(&analysis),
        method: method::method(&analysis),
        warnings: method::warnings(&analysis),
        rules_sentence: analysis.rules_in_words(),
        rules_broken: rules.iter().any(Rule::is_broken),
        rules,
        audit: audit::audit(&analysis, &loads),
        machine: machine::machine(&analysis),
        repeat: machine::repeat(&analysis),
        data: data::data(&analysis),
    };
    page.render().expect("writing to a string does not fail")
}

fn kicker(dataset: &Dataset) -> String {
    let run = &dataset.run;
    let quick = if run.plan.quick { ", quick version" } else { "" };
    format!("Study {}{quick} · run {}", line(&run.plan.study), run.id)
}

fn count(count: usize) -> String {
    grouped(count as f64, 0)
}

fn facts(analysis: &Analysis<'_>) -> String {
    let run = &analysis.dataset.run;
    let kernel = || line(&run.inventory.kernel).split(' ').take(2).collect::<Vec<_>>().join(" ");
    let took = run.finished_unix_ns.map_or_else(
        || "not finished".to_owned(),
        |end| format!("took {}", when::duration(end.saturating_sub(run.started_unix_ns))),
    );
    let facts = [
        when::minute(run.started_unix_ns),
        machines_in_words(analysis.dataset)
            .map_or_else(|| line(&run.inventory.host), |machines| format!("blocks {machines}")),
        clock::heading(run).unwrap_or_else(kernel),
        format!("{} of {} trials completed", count(analysis.completed()), count(analysis.trials())),
        took,
    ];
    joined(&facts, " · ")
}

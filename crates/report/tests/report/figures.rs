//! The figures: well-formed, complete, described, and written to a gallery to be looked at.

use crate::{fixture, hostile};
use fstone_model::{
    Cell, Dataset,
    study::{Published, PublishedFigure},
};
use fstone_report::{Options, svg_files};
use std::{fs, path::PathBuf};

const ALL: Options = Options { published: true, answer: fstone_analysis::Length::Long };

pub(crate) fn gallery() -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("gallery");
    fs::create_dir_all(&directory).expect("the target directory can be written");
    directory
}

pub(crate) fn datasets() -> Vec<(&'static str, Dataset)> {
    vec![
        ("small-file-3", fixture::small_file(3)),
        ("small-file-10", fixture::small_file(10)),
        ("large-file", fixture::large_file(3)),
        ("sweep", fixture::sweep(5)),
        ("star", fixture::star(5)),
        ("alike", fixture::alike(10)),
        ("single", fixture::small_file(1)),
        ("hostile", hostile::dataset()),
        ("many", fixture::many(60, 12, false)),
    ]
}

/// A reader of XML as far as these files go: tags nest, attributes are quoted, nothing is left open.
pub(crate) fn check_xml(text: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "a stray > in {:?}", &rest[..at]);
        let end = rest[at..].find('>').expect("a tag ends") + at;
        let tag = &rest[at + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.trim_matches('/').split([' ', '/']).next().expect("a name").to_owned();
        if let Some(closing) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(closing));
        } else {
            names.push(name.clone());
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?} left open");
    for part in text.split('&').skip(1) {
        let entity = part.split(';').next().expect("there is a first");
        assert!(["amp", "lt", "gt", "quot", "#39"].contains(&entity), "&{entity}");
    }
    names
}

#[test]
fn every_figure_is_well_formed_and_described() {
    for (name, dataset) in datasets() {
        let files = svg_files(&dataset, &ALL);
        assert!(!files.is_empty(), "{name}");
        let mut stems: Vec<&String> = files.iter().map(|(name, _)| name).collect();
        stems.sort();
        stems.dedup();
        assert_eq!(stems.len(), files.len(), "names are unique");
        for (file, svg) in &files {
            fs::write(gallery().join(format!("{name}-{file}")), svg).expect("the gallery can be written");
            let tags = check_xml(svg);
            assert_eq!(tags.iter().filter(|tag| *tag == "desc").count(), 1, "{file}");
            assert!(tags.contains(&"title".to_owned()));
            assert!(!tags.iter().any(|tag| tag.contains("script") || tag == "image"), "{file}: {tags:?}");
            assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{file}");
            assert!(!svg.chars().any(|c| c.is_control() && c != '\n'), "{file}");
        }
    }
}

#[test]
fn the_forms_follow_what_was_varied() {
    let names = |dataset: &Dataset| svg_files(dataset, &ALL).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(
        names(&fixture::small_file(3)),
        [
            "transactions-per-second.svg",
            "cpu.svg",
            "fsck.svg",
            "transactions-per-second-then-and-now.svg",
            "cpu-then-and-now.svg",
            "fsck-then-and-now.svg",
            "load-create-latency.svg",
            "load-write-latency.svg",
            "load-readall-latency.svg",
            "load-over-time.svg",
            "load-latency-over-time.svg",
            "transactions-per-second-run-order.svg",
        ]
    );
    let bars = &svg_files(&fixture::large_file(3), &ALL)[0].1;
    assert_eq!(bars.matches("<rect").count(), 9 + 3 + 1, "a bar per cell, a key per filesystem, the paper");
    assert_eq!(
        names(&fixture::star(3))[..3],
        ["execution-time-over-total-size.svg", "execution-time-over-files.svg", "execution-time-over-threads.svg",]
    );
    let lines = &svg_files(&fixture::sweep(3), &ALL)[0].1;
    assert_eq!(lines.matches("class=\"fs-line\"").count(), 2, "a line per filesystem");
}

#[test]
fn every_trial_is_a_point() {
    let dataset = fixture::small_file(10);
    let (_, svg) = &svg_files(&dataset, &Options::default())[0];
    let points: usize = svg
        .split("class=\"fs-dots\" d=\"")
        .skip(1)
        .map(|path| path.split('"').next().expect("it ends").matches('M').count())
        .sum();
    let completed = dataset.trials.iter().filter(|trial| trial.outcome.is_completed()).count();
    assert_eq!(points, completed);
}

#[test]
fn a_sweep_that_was_published_is_drawn_then_and_now() {
    let mut dataset = fixture::star(3);
    let plan = &mut dataset.run.plan;
    let of_one = |filesystem: u32| plan.cells.iter().filter(move |cell| cell.levels[0] == filesystem);
    let figure = |cell: &Cell| PublishedFigure {
        cell: cell.label.clone(),
        column: "execution time".into(),
        value: Some(100.0 + f64::from(cell.index)),
        note: None,
    };
    let figures: Vec<PublishedFigure> = of_one(0).map(figure).collect();
    let both: Vec<PublishedFigure> = figures.iter().cloned().chain(of_one(1).map(figure)).collect();
    plan.published = Some(Published { source: "A paper.".into(), memory_bytes: None, model: None, figures });
    let then_and_now = |dataset: &Dataset| {
        let over = |name: &String| name.contains("-over-") && name.ends_with("-then-and-now.svg");
        svg_files(dataset, &ALL).into_iter().filter(|(name, _)| over(name)).collect::<Vec<_>>()
    };
    let drawn = then_and_now(&dataset);
    assert_eq!(drawn.len(), 3, "one per sweep");
    for (name, svg) in &drawn {
        check_xml(svg);
        assert_eq!(svg.matches("class=\"fs-line\"").count(), 2, "{name}: published and today");
        fs::write(gallery().join(name), svg).expect("the gallery can be written");
    }
    dataset.run.plan.published =
        Some(Published { source: "Another.".into(), memory_bytes: None, model: None, figures: both });
    assert!(then_and_now(&dataset).is_empty(), "of two filesystems it could not be told which is which");
}

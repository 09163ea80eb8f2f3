//! Markdown (GitHub's): the same answer, table, footnotes and warnings, for issues, mails and papers.

use crate::{
    Analysis, Options,
    analysis::{Entry, Published, PublishedEntry, clock, machines_in_words},
    legend::{self, HARMED, NOTHING, legend},
    number,
    text::{joined, line},
    when,
};
use fstone_model::Dataset;

/// A run as Markdown. Ends with a line feed.
pub fn markdown(dataset: &Dataset, options: &Options) -> String {
    let analysis = Analysis::of(dataset);
    let run = &dataset.run;
    let mut output = format!("## {}\n\n", escape(&line(&run.plan.title)));
    if let Some(note) = &run.note {
        output.push_str(&format!("Note: {}\n\n", escape(&line(note.as_str()))));
    }
    output.push_str(&format!("{}\n\n", escape(&analysis.answer(options.answer).join(" "))));
    if !analysis.warnings.is_empty() {
        output.push_str("**Warnings**\n\n");
        for warning in &analysis.warnings {
            output.push_str(&format!("- {}\n", escape(&warning.told(&analysis.rows))));
        }
        output.push('\n');
    }
    output.push_str(&table(&analysis));
    output.push('\n');
    let legend = legend(&analysis);
    if !legend.is_empty() {
        output.push_str(&format!("{}\n\n", escape(&legend.join(" "))));
    }
    for note in analysis.shown_footnotes() {
        output.push_str(&format!("{} {}  \n", mark(note.number), escape(&note.told(&analysis.rows))));
    }
    if analysis.shown_footnotes().next().is_some() {
        output.push('\n');
    }
    if let Some(published) = analysis.published.as_ref().filter(|_| options.published) {
        output.push_str(&published_table(&analysis, published));
    }
    output.push_str(&format!("{}\n\n", escape(&analysis.rules_in_words())));
    output.push_str(&provenance(dataset));
    output
}

/// One line that says where the figures come from and how to repeat them.
fn provenance(dataset: &Dataset) -> String {
    let (run, inventory) = (&dataset.run, &dataset.run.inventory);
    let quick = if run.plan.quick { ", quick" } else { "" };
    let facts = [
        format!("study {}{quick}, run {}, seed {}", run.plan.study, run.id, run.plan.seed),
        when::minute(run.started_unix_ns),
        clock::heading(run).unwrap_or_else(|| inventory.kernel.clone()),
        machines_in_words(dataset).map_or_else(|| inventory.cpu_model.clone(), |machines| format!("blocks {machines}")),
        format!("fstone {}", inventory.fstone_version),
    ];
    format!("{}.\n", escape(&joined(&facts.map(|fact| line(&fact)), "; ")))
}

fn table(analysis: &Analysis<'_>) -> String {
    let counts = analysis.common_count().is_none() && analysis.completed() > 0;
    let with_ratio: Vec<bool> = (0..analysis.columns.len())
        .map(|column| analysis.rows.iter().any(|row| row.entries[column].ratio.is_some()))
        .collect();
    let mut heads: Vec<String> = analysis.label_heads().into_iter().map(escape).collect();
    let labels = heads.len();
    if counts {
        heads.push("n".into());
    }
    for (column, ratio) in analysis.columns.iter().zip(&with_ratio) {
        heads.push(joined(&[&*escape(&column.with_unit()), column.better.arrow()], " "));
        if *ratio {
            heads.push("×".into());
        }
    }
    let mut output = head(&heads, labels);
    for index in analysis.order().into_iter().filter(|row| analysis.is_shown(*row)) {
        let row = &analysis.rows[index];
        let harm = if row.harm.is_some() { format!(" {HARMED}") } else { String::new() };
        let marks: String = row.footnotes.iter().map(|number| mark(*number)).collect();
        let mut cells: Vec<String> = analysis.labels(index).into_iter().map(escape).collect();
        let last = cells.last_mut().expect("a row has a label");
        last.push_str(&harm);
        if row.word.is_none() {
            last.push_str(&marks);
        }
        if counts {
            cells.push(row.completed.to_string());
        }
        for (column, ratio) in with_ratio.iter().enumerate() {
            cells.push(match row.word {
                Some(word) if column == 0 => format!("{word}{marks}"),
                Some(_) => NOTHING.to_owned(),
                None => value(analysis, column, &row.entries[column], counts),
            });
            if *ratio {
                cells.push(row.entries[column].ratio.map_or_else(String::new, number::ratio));
            }
        }
        output.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    output
}

/// `counts`: whether figures are of different numbers of trials.
fn value(analysis: &Analysis<'_>, column: usize, entry: &Entry, counts: bool) -> String {
    let view = &analysis.columns[column];
    let scale = &view.scale;
    let Some(mean) = entry.mean() else { return NOTHING.to_owned() };
    let tail = match entry.arm(scale) {
        Some(half) => format!("± {half}"),
        None if counts && entry.values.len() == 1 => "(1 trial)".to_owned(),
        None => String::new(),
    };
    let mark = legend::mark(view, entry);
    let letters = if entry.letters.is_empty() { String::new() } else { format!(" {}", entry.letters) };
    format!("{} {tail}{mark}{letters}", scale.number(mean)).trim_end().to_owned()
}

fn published_table(analysis: &Analysis<'_>, published: &Published) -> String {
    let mut output = format!("### Published, and today\n\n{}\n\n", escape(&line(&published.source)));
    let mut heads: Vec<String> = analysis.label_heads().into_iter().map(escape).collect();
    let labels = heads.len();
    for &column in &published.columns {
        let view = &analysis.columns[column];
        let unit = published.unit(column, view);
        let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
        heads.push(format!("{}{unit}, published", escape(&view.header)));
        heads.extend(["today".to_owned(), "ratio then".to_owned(), "ratio now".to_owned()]);
    }
    output.push_str(&head(&heads, labels));
    for index in analysis.order() {
        if !published.entries[index].iter().any(PublishedEntry::is_something) {
            continue;
        }
        let row = &analysis.rows[index];
        let mut cells: Vec<String> = analysis.labels(index).into_iter().map(escape).collect();
        for &column in &published.columns {
            let (entry, scale) = (&published.entries[index][column], &analysis.columns[column].scale);
            let note = entry.note.as_deref().map(escape);
            cells.push(match (published.figure(index, column, scale), note) {
                (Some(figure), Some(note)) => format!("{figure} ({note})"),
                (Some(figure), None) => figure,
                (None, note) => note.unwrap_or_else(|| NOTHING.to_owned()),
            });
            let today = row.entries[column].mean().map(|mean| published.today(column, scale, mean));
            cells.push(today.unwrap_or_else(|| row.word.unwrap_or(NOTHING).to_owned()));
            cells.push(entry.then.map_or_else(String::new, number::ratio));
            cells.push(entry.now.map_or_else(String::new, number::ratio));
        }
        output.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    if !published.missing.is_empty() {
        output.push_str(&format!("\nPublished, but not in this run: {}.\n", escape(&published.missing.join("; "))));
    }
    output.push('\n');
    output
}

/// The head and the line under it: labels to the left, figures to the right.
pub(crate) fn head(heads: &[String], labels: usize) -> String {
    let rule: Vec<&str> = (0..heads.len()).map(|index| if index < labels { ":---" } else { "---:" }).collect();
    format!("| {} |\n| {} |\n", heads.join(" | "), rule.join(" | "))
}

/// A footnote's number. HTML within Markdown: `[^1]` is not understood everywhere.
fn mark(number: usize) -> String {
    format!("<sup>{number}</sup>")
}

/// Text that means nothing to Markdown or HTML. It is one line already.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => {
                escaped.push('\\');
                escaped.push(c);
            }
            // Keeps a forge from seeing mentions and references: "@name" and "#1" become text.
            '@' => escaped.push_str("&#64;"),
            '#' => escaped.push_str("&#35;"),
            c => escaped.push(c),
        }
    }
    // A bare address would become a link.
    escaped = escaped.replace("://", ":&#47;/").replace("www.", "www&#46;");
    // At the start of a line these would begin a list.
    if escaped.starts_with(['-', '+', '=']) { format!("\\{escaped}") } else { escaped }
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn nothing_is_markup() {
        assert_eq!(escape("a|b <img> *x* [l](u) `c`"), "a\\|b &lt;img&gt; \\*x\\* \\[l\\](u) \\`c\\`");
        assert_eq!(escape("-I 256"), "\\-I 256");
        assert_eq!(escape("@root #1 https://x"), "&#64;root &#35;1 https:&#47;/x");
    }
}

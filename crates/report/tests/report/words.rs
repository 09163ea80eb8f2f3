//! The answer is never worded more strongly than the statistics allow.

use crate::{
    compare::{in_guests, in_virtual_time},
    fixture::{self, Fs, Nature, Random},
};
use fstone_analysis::{
    Analysis, Length, MOST_WORDS,
    runs::{CompareOptions, RunComparison, Verdict},
};
use fstone_model::{Dataset, Outcome, metric::catalog, outcome::Reason, result::Perturbation, study::KernelSpec};
use fstone_report::{Options, TerminalOptions, html, markdown, terminal};
use fstone_stats::compare::Basis;
use insta::assert_snapshot;

fn answer(dataset: &Dataset) -> String {
    let sentences = Analysis::of(dataset).sentences();
    assert!((1..=9).contains(&sentences.len()), "{sentences:?}");
    sentences.join("\n")
}

fn pair(factor: f64, spread: f64, repeats: u32, column: (&str, &str, &str)) -> Dataset {
    let mut plan = fixture::plan("pair", "Two", repeats, &[column]);
    fixture::cross(&mut plan, &[Fs("ext4", "ext4", "", ""), Fs("xfs", "xfs", "", "")], &[]);
    plan.baseline = Some(0);
    let mut dataset = fixture::dataset(plan);
    let nature = |cell: &fstone_model::Cell| {
        let mean = if cell.index == 0 { 1000.0 } else { 1000.0 * factor };
        Some(Nature { figures: vec![(mean, spread)] })
    };
    fixture::complete(&mut dataset, repeats, &mut Random::new(3), &nature, &|_, _, _| None);
    dataset
}

const RATE: (&str, &str, &str) = ("transactions per second", "load", "transactions per second");
const FSCK: (&str, &str, &str) = ("fsck", "fsck", "time");

#[test]
fn a_known_difference_is_told_with_its_interval() {
    assert_snapshot!(answer(&pair(1.07, 0.005, 10, RATE)));
    assert_snapshot!("lower_is_better", answer(&pair(0.5, 0.01, 10, FSCK)));
    assert_snapshot!("times", answer(&pair(2.5, 0.02, 10, RATE)));
}

#[test]
fn states_that_could_not_be_mounted_are_told_beside_the_promises_lost() {
    let mut dataset = pair(1.0, 0.0, 1, ("promises lost", "load", "promises lost"));
    assert!(!answer(&dataset).contains("could be mounted"), "{}", answer(&dataset));
    for (trial, share) in dataset.trials.iter_mut().zip([100.0, 83.3]) {
        let step = trial.steps.iter_mut().find(|step| step.step == "load").expect("the column's step");
        step.figures.push(catalog::STATES_MOUNTED.figure(share));
    }
    let told = answer(&dataset);
    assert!(
        told.contains("xfs lost 1,000 promises after a power cut and could be mounted in only 83.3 % of the states"),
        "{told}"
    );
    let last = dataset.trials[1].steps.iter_mut().find(|step| step.step == "load").expect("as above");
    *last.figures.last_mut().expect("pushed") = catalog::STATES_MOUNTED.figure(100.0 * 2999.0 / 3000.0);
    assert!(answer(&dataset).contains("only 99.9 % of the states"), "{}", answer(&dataset));
}

/// Filesystems that the running kernel lacks are one sentence under the table, not a row and a footnote each.
#[test]
fn filesystems_that_the_kernel_lacks_are_one_line() {
    let mut dataset = fixture::small_file(3);
    dataset.run.plan.expected_duration = Some(std::time::Duration::from_secs(230));
    for trial in dataset.trials.iter_mut().filter(|trial| trial.id.cell >= 6) {
        let name = if trial.id.cell == 6 { "f2fs" } else { "btrfs" };
        let reason = Reason::new("mount", format!("the running kernel has no {name}")).with_cure("--missing uml");
        trial.outcome = Outcome::Skipped(reason);
        trial.steps.clear();
    }
    let quick = if dataset.run.plan.quick { " --quick" } else { "" };
    let sentence = format!(
        "Not in this kernel: f2fs, btrfs; `fstone run small-file{quick} --executor uml` shows them, about 8 min."
    );
    let wide = TerminalOptions { width: 300, ..TerminalOptions::default() };
    let pages = [
        terminal(&dataset, &wide),
        markdown(&dataset, &Options::default()).replace('\\', ""),
        html(&dataset, &Options::default()),
    ];
    for page in &pages {
        assert!(page.contains(&sentence), "{page}");
        assert!(!page.contains("the running kernel has no"), "{page}");
        assert!(page.contains("1 of 7 rows") || page.contains("1 of 6 rows"), "the refused row is still told: {page}");
    }
    let table = pages[0].split("Published, and today").next().expect("text");
    assert!(!table.contains("\nbtrfs"), "{table}");
    let csv = fstone_report::csv(&dataset);
    assert!(csv.contains("the running kernel has no f2fs"), "tables for programs have every row: {csv}");

    // Where no filesystem is there, the table has all rows.
    for trial in &mut dataset.trials {
        trial.outcome = Outcome::Skipped(Reason::new("mount", "the running kernel has no ext4"));
    }
    assert!(terminal(&dataset, &wide).contains("the running kernel has no ext4"));
}

#[test]
fn no_difference_is_not_told_as_one() {
    let told = answer(&fixture::alike(10));
    assert!(told.contains("no difference was found"), "{told}");
    assert_snapshot!(told);
}

#[test]
fn no_difference_anywhere_is_said_once() {
    let mut dataset = fixture::large_file(8);
    let mut random = Random::new(4);
    for figure in dataset.trials.iter_mut().flat_map(|trial| &mut trial.steps).flat_map(|step| &mut step.figures) {
        figure.value = 50e6 * (1.0 + 0.02 * random.normal());
    }
    assert_snapshot!(answer(&dataset));
    // In one place out of three there is one.
    for trial in dataset.trials.iter_mut().filter(|trial| trial.id.cell == 3) {
        for figure in trial.steps.iter_mut().flat_map(|step| &mut step.figures) {
            figure.value *= 1.5;
        }
    }
    assert_snapshot!("one_place", answer(&dataset));
}

#[test]
fn three_trials_tell_what_is_large_beside_the_scatter_and_no_more() {
    let told = answer(&pair(1.5, 0.001, 3, RATE));
    assert!(told.contains("% higher than ext4"), "{told}");
    let told = answer(&pair(1.5, 0.3, 3, RATE));
    assert!(told.contains("no difference was found"), "{told}");
    assert_snapshot!("three_trials", answer(&fixture::small_file(3)));
}

#[test]
fn figures_of_one_seed_that_hardly_differ_say_so() {
    for (factor, apart) in [(1.00001, "less than 0.01 % apart"), (1.0050, "0.50 % apart")] {
        let told = answer(&in_virtual_time(pair(factor, 0.0, 1, RATE), "2 us"));
        assert!(told.contains(apart), "{told}");
    }
    let told = answer(&in_virtual_time(pair(3.0, 0.0, 1, RATE), "2 us"));
    assert!(!told.contains("apart,"), "{told}");
}

#[test]
fn single_trials_claim_nothing() {
    let single = pair(3.0, 0.0, 1, RATE);
    let told = answer(&single);
    assert!(told.contains("1 trial a row cannot show"), "{told}");
    let page = html(&single, &Options::default());
    assert!(page.contains("too few trials to tell") && !page.contains("797,693,134"), "{page}");
    let json: serde_json::Value =
        serde_json::from_str(&fstone_report::json(&single, &Options::default())).expect("JSON");
    assert!(json["comparisons"][0]["shift"]["interval"]["high"].is_null(), "{}", json["comparisons"][0]);
    let exact = html(&in_virtual_time(single, "2 us"), &Options::default());
    assert!(exact.contains("exact for one seed only") && !exact.contains("too few trials to tell"), "{exact}");
    // Pairs that are not told apart have no direction.
    let page = html(&pair(1.0, 0.05, 6, RATE), &Options::default());
    assert!(!page.contains("% lower") && !page.contains("% higher") && page.contains(" to +"), "{page}");
    // Each panel's own numbers of trials.
    let mut few =
        rows_of(&[&[100.0, 101.0], &[200.0, 201.0], &[150.0, 151.0], &[50.0, 51.0]], "transactions per second");
    few.trials.retain(|trial| trial.id.cell == 0 || trial.id.repetition == 0);
    let told = answer(&few);
    assert!(
        told.contains("1 or 2 trials a row cannot show") && told.contains("at least 2 trials of every row"),
        "{told}"
    );
    let mut alone = rows_of(&[STEADY.as_slice(); 2], "transactions per second");
    alone.trials.retain(|trial| (trial.id.cell == 0) == (trial.id.repetition < 4));
    let told = answer(&alone);
    assert!(told.contains("none of the 2 rows shares a block with another"), "{told}");
}

#[test]
fn rows_that_are_not_told_apart_are_named_together() {
    let at = |level: f64, by: usize| {
        let mut values = STEADY.map(|value| level * value / 100.0);
        values.rotate_left(by);
        values
    };
    let told = answer(&rates(&[at(100.0, 0), at(300.0, 1), at(200.0, 2), at(100.1, 3)]));
    assert!(told.contains("; d and a are lowest (") || told.contains("; a and d are lowest ("), "{told}");
    // Of zeros there is no ratio: the other row is named with its figure.
    let lost: [&[f64]; 3] = [&[0.0; 6], &[50.0, 51.0, 49.0, 50.0, 52.0, 48.0], &[0.0; 6]];
    let mut dataset = rows_of(&lost, "kernel work");
    dataset.run.plan.columns.remove(0);
    let told = answer(&dataset);
    assert!(told.contains("are lowest (0); b is highest (50)"), "{told}");
    // Losses are marked wherever a row is named.
    let some: [f64; 6] = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0];
    let more = some.map(|value| 2.0 * value);
    let threads: [fixture::More<'_>; 1] = [("threads", vec!["1 thread".into(), "2 threads".into()], Some(vec![1, 2]))];
    let mut dataset = panels_of(&[&some, &some, &more, &more], "kernel work", &threads);
    dataset.run.plan.baseline = Some(0);
    dataset.run.plan.columns.remove(0);
    let trial = dataset.trials.iter_mut().find(|trial| trial.id.cell == 2).expect("there is one");
    trial.steps[0].figures.push(catalog::PROMISES_LOST.figure(1.0));
    let told = Analysis::of(&dataset).answer(Length::Long).join(" ");
    assert!(told.contains("Against the baseline, a, in 2 combinations: b ‡ is higher"), "{told}");
}

/// A row that only ran in blocks 0 to 4, and the others only in 5 to 9, when the machine was 1.5 times as slow.
#[test]
fn rows_that_share_no_block_are_not_compared() {
    let mut dataset = fixture::small_file(10);
    dataset.run.plan.baseline = Some(2);
    dataset.trials.retain(|trial| match trial.id.cell {
        2 => trial.id.repetition < 5,
        1 | 4 | 7 => false,
        _ => trial.id.repetition >= 5,
    });
    for trial in dataset.trials.iter_mut().filter(|trial| trial.id.repetition >= 5) {
        for figure in trial.steps.iter_mut().flat_map(|step| &mut step.figures) {
            figure.value *= 1.5;
        }
    }
    let analysis = Analysis::of(&dataset);
    let panel = analysis.comparisons[0].panels[0].as_ref().expect("several rows");
    assert_eq!(panel.apart(), [2], "ext4");
    assert!(analysis.rows.iter().all(|row| row.entries.iter().all(|entry| entry.ratio.is_none())), "to ext4");
    let warning = analysis.warnings.iter().find(|warning| warning.text.contains("share no block")).expect("it is said");
    assert_eq!(warning.rows, [2]);
    let told = answer(&dataset);
    assert!(!told.contains("Against the baseline") && told.contains("is highest"), "{told}");
    // A letter would claim a comparison.
    let of = |row: usize| analysis.rows[row].entries[0].letters.as_str();
    assert!(of(2) == "–" && of(0).contains(char::is_alphabetic), "{} {}", of(2), of(0));
    assert!(["a", "ab"].contains(&of(6)), "the best of those that are compared: {}", of(6));
    let text = terminal(&dataset, &TerminalOptions { width: 400, ..TerminalOptions::default() });
    assert!(text.contains("– in place of a letter: it shares no block"), "{text}");
    let page = html(&dataset, &Options::default());
    assert!(page.contains("not compared: no common block"), "{page}");
    assert!(!page.contains("797,693,134"), "no largest number that a machine has");
    assert!(panel.differ(0, 6), "the others are compared within their blocks");
}

/// A run whose second column is what is given, row by row.
fn rows_of(figures: &[&[f64]], metric: &str) -> Dataset {
    panels_of(figures, metric, &[])
}

fn panels_of(figures: &[&[f64]], metric: &str, others: &[fixture::More<'_>]) -> Dataset {
    let repeats = u32::try_from(figures[0].len()).expect("few");
    let columns = [("transactions per second", "load", "transactions per second"), ("lost", "load", metric)];
    let mut plan = fixture::plan("small-file", "Small files", repeats, &columns);
    let names = ["a", "b", "c", "d"];
    let rows: Vec<Fs> = names[..figures.len() / others.first().map_or(1, |(_, levels, _)| levels.len())]
        .iter()
        .map(|name| Fs(name, "ext4", "", ""))
        .collect();
    fixture::cross(&mut plan, &rows, others);
    let mut dataset = fixture::dataset(plan);
    let nature = |_: &fstone_model::Cell| Some(Nature { figures: vec![(9000.0, 0.01), (1.0, 0.0)] });
    fixture::complete(&mut dataset, repeats, &mut Random::new(5), &nature, &|_, _, _| None);
    for trial in &mut dataset.trials {
        let value = figures[trial.id.cell as usize][trial.id.repetition as usize];
        for figure in trial.steps.iter_mut().flat_map(|step| &mut step.figures).filter(|figure| figure.metric == metric)
        {
            figure.value = value;
        }
    }
    dataset
}

#[test]
fn a_difference_from_zero_is_told_without_a_ratio() {
    let lost: [&[f64]; 3] = [&[0.0; 6], &[50.0, 51.0, 49.0, 50.0, 52.0, 48.0], &[0.0; 6]];
    let text = answer(&rows_of(&lost, "kernel work"));
    assert!(text.contains("In lost, b has ") && !text.contains("times as high"), "{text}");
    let (before, after) = (rows_of(&[&[50.0; 6], &[49.0; 6]], "CPU"), rows_of(&[&[0.0; 6], &[49.0; 6]], "CPU"));
    let (before, after) = (Analysis::of(&before), Analysis::of(&after));
    let comparison = RunComparison::of((&before, "run 3"), (&after, "run 7"), &CompareOptions::default());
    let words = comparison.sentences().join(" ");
    assert!(words.contains(" points, "), "no per cent of per cent: {words}");
    // Zeros of several trials are no single trial.
    let mut one = rows_of(&lost[..1], "kernel work");
    one.run.plan.columns.remove(0);
    let text = answer(&one);
    assert!(text.contains("had 0 in each of 6 trials"), "{text}");
}

#[test]
fn panels_tell_differences_from_zero_and_no_agreement_where_nothing_leads() {
    let some = [50.0, 51.0, 49.0, 50.0, 52.0, 48.0];
    let figures: [&[f64]; 4] = [&[0.0; 6], &[0.0; 6], &some, &some];
    let threads: [fixture::More<'_>; 1] = [("threads", vec!["1 thread".into(), "2 threads".into()], Some(vec![1, 2]))];
    let text = answer(&panels_of(&figures, "kernel work", &threads));
    assert!(!text.contains("The same rows are among the best"), "{text}");
    let mut dataset = panels_of(&figures, "transactions per second", &threads);
    dataset.run.plan.baseline = Some(0);
    let text = answer(&dataset);
    assert!(!text.contains("no clear difference anywhere"), "{text}");
}

/// Two rows at one thread and at two: "a" at one thread, at two, then "b".
fn at_two_places(figures: &[&[f64]; 4], metric: &str) -> Dataset {
    let threads: [fixture::More<'_>; 1] = [("threads", vec!["1 thread".into(), "2 threads".into()], Some(vec![1, 2]))];
    let mut dataset = panels_of(figures, metric, &threads);
    dataset.run.plan.columns.remove(0);
    dataset.run.plan.baseline = Some(0);
    dataset
}

#[test]
fn places_without_a_comparison_claim_nothing() {
    let (low, high) = ([100.0, 101.0, 99.0, 100.5], [130.0, 131.0, 129.0, 130.5]);
    let all = at_two_places(&[&low, &low, &high, &high], "transactions per second");
    let mut one_each = all.clone();
    one_each.trials.retain(|trial| trial.id.cell < 2);
    let told = answer(&one_each);
    assert!(told.contains("None has another row to be compared with") && !told.contains("So many rows"), "{told}");
    // One trial of each row at two threads.
    let mut few = all.clone();
    few.trials.retain(|trial| trial.id.cell % 2 == 0 || trial.id.repetition == 0);
    let analysis = Analysis::of(&few);
    let told = answer(&few);
    assert!(told.contains("1 trial a row cannot show a difference at 2 threads"), "{told}");
    assert!(!told.contains("no difference was found") && !told.contains("not clearly different"), "{told}");
    assert!(told.contains("in 1 combination: b is higher in all"), "{told}");
    let warning = analysis.warnings.iter().find(|warning| warning.text.contains("no test can tell")).expect("given");
    assert_eq!(warning.rows, [1, 3], "{warning:?}");
    // Nor does another column claim there that the same rows lead, or that none differ.
    for other in [[9.0, 9.0, 5.0, 5.0], [5.0; 4]] {
        let mut two = all.clone();
        let mut column = two.run.plan.columns[0].clone();
        (column.header, column.metric) = ("work".into(), "kernel work".into());
        two.run.plan.columns.push(column);
        for trial in &mut two.trials {
            let (cell, repetition) = (trial.id.cell, trial.id.repetition);
            let value = other[cell as usize] * (1.0 + 0.01 * f64::from((2 * cell + 3 * repetition) % 5));
            let figures = &mut trial.steps.iter_mut().find(|step| step.step == "load").expect("a load").figures;
            figures.extend((cell % 2 == 0 || repetition == 0).then(|| catalog::KERNEL_WORK.figure(value)));
        }
        let told = answer(&two);
        assert!(!told.contains("same rows are among") && !told.contains("No rows differ clearly in work"), "{told}");
        assert!(told.contains("In work, ") && told.contains("1 trial a row cannot show a difference at 2"), "{told}");
    }
    // Rows that share no block at two threads.
    let mut apart = all;
    apart.trials.retain(|trial| trial.id.cell % 2 == 0 || (trial.id.cell == 1) == (trial.id.repetition < 2));
    let told = answer(&apart);
    assert!(told.contains("no rows share a block at 2 threads") && !told.contains("no difference was found"), "{told}");
}

#[test]
fn seeds_that_would_narrow_the_widest_pair_are_not_called_useless() {
    // Three seeds and two guests: at one thread seeds move rows by a fifth and guests not at all, at two guests by some per cent.
    let mut dataset = at_two_places(
        &[
            &[100.0, 121.0, 92.0, 100.0, 100.0],
            &[100.0, 100.0, 100.0, 103.0, 98.0],
            &[104.0, 95.0, 110.0, 104.0, 104.0],
            &[100.0, 100.0, 100.0, 97.0, 102.0],
        ],
        "transactions per second",
    );
    dataset = in_virtual_time(dataset, "2 us");
    let seed = dataset.trials[0].seed;
    for trial in dataset.trials.iter_mut().filter(|trial| trial.id.repetition >= 3) {
        trial.id = Perturbation { number: trial.id.repetition - 3 }.trial(trial.id.cell);
        trial.seed = seed;
    }
    let told = Analysis::of(&dataset).answer(Length::Long).join(" ");
    assert!(told.contains("more block") && !told.contains("whatever the number of seeds"), "{told}");
}

#[test]
fn one_seed_names_all_that_are_equal_and_what_other_columns_show() {
    let one = |figures: &[&[f64]]| in_virtual_time(rows_of(figures, "kernel work"), "2 us");
    let mut dataset = one(&[&[100.0], &[50.0], &[50.0]]);
    dataset.run.plan.baseline = Some(0);
    dataset.run.plan.columns.reverse();
    for trial in &mut dataset.trials {
        let rate = [9.0, 9.0, 126.0][trial.id.cell as usize];
        let figures = trial.steps.iter_mut().flat_map(|step| &mut step.figures);
        figures.filter(|figure| figure.metric.starts_with("transactions")).for_each(|figure| figure.value = rate);
    }
    dataset.run.plan.columns[0].metric = "transactions per second".into();
    dataset.run.plan.columns[1].metric = "kernel work".into();
    let told = answer(&dataset);
    assert!(told.contains("c is highest (126.00/s) and a and b are lowest (9.00/s)"), "{told}");
    assert!(told.contains("c is 50.00 % lower than a"), "the other column: {told}");
    let at =
        in_virtual_time(at_two_places(&[&[100.0], &[100.0], &[100.0], &[50.0]], "transactions per second"), "2 us");
    let told = answer(&at);
    assert!(told.contains("a is highest at 2 threads and all rows are equal at 1 thread"), "{told}");
    assert!(told.contains("rebuilt kernel"), "{told}");
    // What only looks equal is not: 103.4, 102.6 and 102.9 are printed as 103 beside larger figures.
    let near = |figures: &[&[f64]]| {
        let mut dataset = in_virtual_time(rows_of(figures, "transactions per second"), "2 us");
        dataset.run.plan.columns.remove(0);
        dataset
    };
    let told = answer(&near(&[&[103.4], &[102.6], &[102.9]]));
    assert!(told.contains("a is highest (103.4") && told.contains("b is lowest (102.6"), "{told}");
    let told = answer(&near(&[&[103.4], &[103.4], &[103.4]]));
    assert!(told.contains("all 3 rows have 103"), "{told}");
    let near_at =
        in_virtual_time(at_two_places(&[&[103.4], &[100.0], &[102.6], &[50.0]], "transactions per second"), "2 us");
    let told = answer(&near_at);
    assert!(told.contains("a is highest") && !told.contains("rows are equal"), "{told}");
    // Two that agree prove nothing yet, and are not called equal either.
    let two = in_virtual_time(rows_of(&[&[0.0; 2], &[20.0; 2], &[20.0; 2]], "kernel work"), "2 us");
    let mut two = two;
    two.run.plan.columns.remove(0);
    let told = answer(&two);
    assert!(told.contains("the same in 2 trials of each; 3 trials would prove it"), "{told}");
    assert!(!told.contains("no difference was found"), "{told}");
}

#[test]
fn the_largest_contrast_may_go_to_zero() {
    let figures: [&[f64]; 3] =
        [&[100.0, 101.0, 99.0, 100.0, 102.0, 100.0], &[0.0; 6], &[90.0, 91.0, 89.0, 90.0, 92.0, 90.0]];
    let mut dataset = rows_of(&figures, "kernel work");
    dataset.run.plan.baseline = Some(0);
    let told = answer(&dataset);
    assert!(told.contains("b has 0 and a has 100"), "{told}");
    // Nothing is a multiple of what may be none.
    let share: [&[f64]; 3] = [&[0.0, 0.0, 0.1, 0.0], &[5.0, 5.1, 5.0, 5.0], &[99.9, 100.0, 100.0, 100.0]];
    let mut dataset = rows_of(&share, "CPU");
    dataset.run.plan.columns.remove(0);
    dataset.run.plan.baseline = Some(0);
    let analysis = Analysis::of(&dataset);
    let told = analysis.answer(Length::Long).join(" ");
    assert!(!told.contains("is different") && told.contains("a (0.025 %), b has 5.025 % and c has 99.975 %"), "{told}");
    assert!(analysis.rows[1].entries[0].ratio.is_none(), "{:?}", analysis.rows[1].entries[0]);
}

#[test]
fn a_row_that_scatters_is_not_among_the_best_by_that() {
    let rate: [&[f64]; 4] = [
        &[100.0, 101.0, 99.0, 100.5, 99.5, 100.0, 101.0, 99.0],
        &[45.0, 45.4, 44.6, 45.2, 44.8, 45.1, 45.0, 44.9],
        &[4.0, 160.0, 12.0, 90.0, 5.0, 150.0, 8.0, 120.0],
        &[50.0, 50.4, 49.6, 50.2, 49.8, 50.1, 50.0, 49.9],
    ];
    let text = answer(&rows_of(&rate, "transactions per second"));
    assert!(text.contains("a is highest (") && text.contains("; c (") && !text.contains("and c are"), "{text}");
    let mut apart = rows_of(&rate, "transactions per second");
    apart.trials.retain(|trial| (trial.id.cell != 2) == (trial.id.repetition < 4));
    let text = answer(&apart);
    assert!(text.contains(", among rows that share blocks, ") && !text.contains("C and"), "{text}");
}

/// Eight blocks of a rate for each row.
fn rates(rows: &[[f64; 8]]) -> Dataset {
    rows_of(&rows.iter().map(<[f64; 8]>::as_slice).collect::<Vec<_>>(), "transactions per second")
}

const STEADY: [f64; 8] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.0, 101.0, 99.0];

#[test]
fn a_row_that_widens_the_intervals_of_the_others_is_named() {
    let wild = [60.0, 160.0, 52.0, 190.0, 55.0, 150.0, 98.0, 120.0];
    let other = STEADY.map(|value| 299.0 - 2.0 * value);
    let told = |rows: &[[f64; 8]]| {
        let dataset = rates(rows);
        let analysis = Analysis::of(&dataset);
        let warnings: Vec<String> = analysis.warnings.iter().map(|warning| warning.told(&analysis.rows)).collect();
        warnings.join(" ")
    };
    let warned = told(&[STEADY, other, wild, STEADY.map(|value| 1.02 * value)]);
    assert!(
        warned.contains("One row scatters so much in ") && warned.contains(" times as wide as without it (c)"),
        "{warned}"
    );
    assert!(!told(&[STEADY, other, STEADY]).contains("scatters so much"));
    // A row of one trial has a wide interval, and scatters no more than the others.
    let mut few = rates(&[STEADY, other, STEADY.map(|value| 1.5 * value)]);
    few.trials.retain(|trial| trial.id.cell < 2 || trial.id.repetition == 0);
    assert!(!Analysis::of(&few).warnings.iter().any(|warning| warning.text.contains("scatters so much")));
    let constant = rates(&[[100.0; 8], [50.0; 8]]);
    let mut constant = constant;
    constant.trials.retain(|trial| trial.id.repetition < 4);
    assert!(Analysis::of(&constant).compared_by(Basis::Ranks).is_empty(), "nothing lies far off");
}

#[test]
fn ranks_are_said_and_ties_in_them_break_no_rule() {
    let mut late = STEADY;
    (late[2], late[5]) = (9000.0, 7000.0);
    let rows = [STEADY, late, STEADY.map(|value| 1.1 * value), late.map(|value| 0.9 * value)];
    let text = terminal(&rates(&rows), &TerminalOptions { width: 400, ..TerminalOptions::default() });
    assert!(text.contains("Rows are compared by ranks in "), "{text}");
    // Two values: a test may find what its interval does not.
    let mut random = Random::new(6);
    for _ in 0..60 {
        let rows: Vec<[f64; 8]> =
            (0..4).map(|_| [(); 8].map(|()| if random.unit() < 0.5 { 10.0 } else { 11.0 })).collect();
        let dataset = rates(&rows);
        let words = Analysis::of(&dataset).rules_in_words();
        assert!(!words.contains("contradicts"), "{words}");
    }
}

#[test]
fn marks_are_where_they_belong() {
    let mut one = rates(&[STEADY, STEADY.map(|value| 0.9 * value)]);
    one.trials.retain(|trial| trial.id.cell == 0 || trial.id.repetition == 0);
    let analysis = Analysis::of(&one);
    assert_eq!(analysis.rows[1].entries[0].interval, None, "a single trial shows no scatter");
    let text = terminal(&one, &TerminalOptions { width: 300, ..TerminalOptions::default() });
    assert!(text.contains("(1 trial)"), "{text}");
    // Where all are single trials, one line says so.
    let mut all = one.clone();
    all.trials.retain(|trial| trial.id.repetition == 0);
    for text in [
        terminal(&all, &TerminalOptions::default()),
        markdown(&all, &Options::default()),
        html(&all, &Options::default()),
    ] {
        assert!(!text.contains("(1 trial)") && text.contains("Single trials: their variation is unknown."), "{text}");
    }
    // Without a figure there is no ratio to explain.
    one.trials.clear();
    one.run.plan.baseline = Some(0);
    fixture::unsuccessful(&mut one, 0, 0, 0, Outcome::Failed(Reason::new("load", "No space left on device")));
    assert!(!terminal(&one, &TerminalOptions::default()).contains("× is the ratio"));
    // The row that lost something, and not the other.
    let mut pair = pair(1.3, 0.01, 8, RATE);
    for cell in &mut pair.run.plan.cells {
        cell.filesystem.kind = "ext4".into();
    }
    pair.run.plan.cells[1].filesystem.mount = "noatime".into();
    for (lossy, start) in [(0, "noatime raises "), (1, "noatime ‡ raises ")] {
        let mut dataset = pair.clone();
        let trial = dataset.trials.iter_mut().find(|trial| trial.id.cell == lossy).expect("there is one");
        trial.steps[0].figures.push(catalog::PROMISES_LOST.figure(1.0));
        let told = answer(&dataset);
        assert!(told.contains("lost 1 promise after") && told.contains(&format!("\n{start}")), "{told}");
    }
    let almost = answer(&rates(&[STEADY, STEADY.map(|value| value / 1e6)]));
    assert!(almost.contains("more than 99.99 %") || !almost.contains("100.00 %"), "{almost}");
}

#[test]
fn groups_are_told() {
    assert_snapshot!(answer(&fixture::small_file(10)));
    assert_snapshot!("two_factors", answer(&fixture::large_file(10)));
    assert_snapshot!("two_factors_few_trials", answer(&fixture::large_file(3)));
    assert_snapshot!("many_rows", answer(&fixture::many(100, 3, false)));
}

#[test]
fn one_row_and_none() {
    let mut dataset = pair(1.0, 0.01, 5, RATE);
    dataset.trials.retain(|trial| trial.id.cell == 0);
    assert_snapshot!(answer(&dataset));
    dataset.trials.clear();
    assert_snapshot!("not_run", answer(&dataset));
    fixture::unsuccessful(&mut dataset, 0, 0, 0, Outcome::Crashed(Reason::new("load", "Oops: 0002 [#1]")));
    assert_snapshot!("crashed", answer(&dataset));
    dataset.run.plan.columns.clear();
    assert_snapshot!("no_columns", answer(&dataset));
}

#[test]
fn drift_is_told_and_is_not_a_difference() {
    let mut dataset = fixture::alike(10);
    let count = dataset.trials.len() as f64;
    for trial in &mut dataset.trials {
        let share = f64::from(trial.position) / count;
        for figure in trial.steps.iter_mut().flat_map(|step| &mut step.figures) {
            figure.value *= 1.0 + 0.2 * share;
        }
    }
    let told = answer(&dataset);
    assert!(told.contains("drifted by") && told.contains("no difference was found"), "{told}");
    let analysis = Analysis::of(&dataset);
    assert!(analysis.warnings.iter().any(|warning| warning.text.contains("Mann–Kendall")), "{:?}", analysis.warnings);
}

#[test]
fn an_outlier_is_marked_and_kept() {
    let mut dataset = pair(1.0, 0.01, 10, RATE);
    let wild = dataset.trials.iter_mut().find(|trial| trial.id.cell == 1).expect("a trial");
    for figure in wild.steps.iter_mut().flat_map(|step| &mut step.figures) {
        figure.value *= 3.0;
    }
    let analysis = Analysis::of(&dataset);
    let entry = &analysis.rows[1].entries[0];
    assert_eq!(entry.values.len(), 10);
    assert_eq!(entry.values.iter().filter(|value| value.outlier).count(), 1);
    assert!(analysis.warnings.iter().any(|warning| warning.text.contains("1 trial lies far")));
}

#[test]
fn reasons_that_differ_in_a_number_are_one_footnote() {
    let mut dataset = pair(1.0, 0.01, 5, RATE);
    for (repetition, file) in [(5, 3692), (6, 17)] {
        let words = format!("write data/file{file}: ENOSPC: No space left on device");
        fixture::unsuccessful(&mut dataset, 1, repetition, 99, Outcome::Failed(Reason::new("load", words)));
    }
    let analysis = Analysis::of(&dataset);
    assert_eq!(analysis.footnotes.len(), 1);
    let note = &analysis.footnotes[0];
    assert_eq!((note.rows[0].trials, note.rows[0].of), (2, 7));
    assert_eq!(note.sentence(), "failed at load: write data/file3692: ENOSPC: No space left on device, and the like");
}

#[test]
fn a_warning_that_the_trial_passes_on_is_one() {
    let mut dataset = fixture::small_file(1);
    for trial in dataset.trials.iter_mut().filter(|trial| trial.outcome.is_completed()) {
        trial.warnings.push("load: it ended early".into());
        for load in trial.steps.iter_mut().filter_map(|step| step.load.as_mut()) {
            load.warnings.push("it ended early".into());
            // One that ran in the background.
            trial.warnings.push("load, beside app: it ended early, too".into());
            load.warnings.push("it ended early, too".into());
        }
    }
    let analysis = Analysis::of(&dataset);
    assert_eq!(analysis.warnings.iter().filter(|warning| warning.text.contains("ended early")).count(), 2);
}

#[test]
fn a_warning_names_its_rows_and_trials() {
    let mut dataset = pair(2.0, 0.01, 3, RATE);
    for trial in dataset.trials.iter_mut().filter(|trial| trial.id.cell == 1) {
        trial.warnings.push("load: operations failed: create: write file8: ENOSPC (32 times)".into());
    }
    let wanted = "ENOSPC (32 times) (xfs), 3 trials";
    let options = Options::default();
    let wide = TerminalOptions { width: 200, ..TerminalOptions::default() };
    for output in [terminal(&dataset, &wide), markdown(&dataset, &options), html(&dataset, &options)] {
        assert!(output.contains(wanted), "{output}");
    }
}

#[test]
fn published_minutes_and_measured_milliseconds_have_their_own_units() {
    let mut dataset = fixture::small_file(3);
    for figure in dataset.trials.iter_mut().flat_map(|trial| &mut trial.steps).flat_map(|step| &mut step.figures) {
        if figure.metric == "time" {
            figure.value /= 1000.0;
        }
    }
    let options = fstone_report::Options { published: true, ..Default::default() };
    let told = fstone_report::terminal(&dataset, &fstone_report::TerminalOptions { options, ..Default::default() });
    assert!(told.contains("4,004 s") && told.contains("2.90 ms"), "{told}");
}

#[test]
fn letters_start_with_the_best_group() {
    let dataset = fixture::small_file(10);
    let analysis = Analysis::of(&dataset);
    let letters = |row: usize, column: usize| analysis.rows[row].entries[column].letters.clone();
    // Row 6 has the most transactions, row 0 the fewest; row 6 has the shortest fsck, row 0 the longest.
    assert!(letters(6, 0).starts_with('a') && !letters(0, 0).contains('a'));
    assert!(letters(6, 2).starts_with('a') && !letters(0, 2).contains('a'));
    assert_eq!(analysis.rows[0].entries[0].ratio, None);
    assert!(analysis.rows[6].entries[0].ratio.is_some_and(|ratio| (1.5..1.7).contains(&ratio)));
}

#[test]
fn a_study_says_what_is_compared() {
    let kernels = ["uml:5.10", "uml:6.1"].map(str::to_owned);
    let mut plan = fixture::plan("kernels", "Two kernels", 10, &[RATE]);
    let filesystems = [Fs("ext4", "ext4", "", ""), Fs("xfs", "xfs", "", "")];
    fixture::cross(&mut plan, &filesystems, &[("kernel", kernels.to_vec(), None)]);
    plan.baseline = Some(0);
    for cell in &mut plan.cells {
        cell.kernel = KernelSpec::Uml(kernels[cell.levels[1] as usize].clone());
    }
    let mut dataset = fixture::dataset(plan);
    let nature = |cell: &fstone_model::Cell| {
        let mean = [1000.0, 1250.0][cell.levels[1] as usize] * [1.0, 2.0][cell.levels[0] as usize];
        Some(Nature { figures: vec![(mean, 0.01)] })
    };
    fixture::complete(&mut dataset, 10, &mut Random::new(4), &nature, &|_, _, _| None);
    assert_eq!(
        answer(&dataset),
        "In transactions per second, xfs is highest with kernel uml:5.10 and kernel uml:6.1.\n\
         Against the baseline, ext4, in 2 combinations: xfs is higher in all (by 97–103 %)."
    );
    dataset.run.plan.compare = Some("kernel".into());
    assert_eq!(
        answer(&dataset),
        "In transactions per second, uml:6.1 is highest on ext4 and xfs.\n\
         Against the baseline, uml:5.10, in 2 combinations: uml:6.1 is higher in all (by 23–26 %)."
    );
    let analysis = Analysis::of(&dataset);
    let titles: Vec<&str> = analysis.structure.panels.iter().map(|panel| panel.title.as_str()).collect();
    assert_eq!(titles, ["ext4", "xfs"]);
    // One filesystem has a difference between the kernels, the other none.
    let mut mixed = dataset.clone();
    for trial in &mut mixed.trials {
        let levels = &dataset.run.plan.cells[trial.id.cell as usize].levels;
        // Over ten trials both kernels have the same figures, in another order.
        let place = (7 * trial.id.repetition + 3 * levels[1]) % 5;
        for figure in trial.steps.iter_mut().flat_map(|step| &mut step.figures).filter(|_| levels[0] == 1) {
            figure.value = 2000.0 + 20.0 * f64::from(place);
        }
    }
    assert_eq!(
        answer(&mixed).lines().next(),
        Some("In transactions per second, uml:6.1 is highest on ext4; no difference between kernels was found on xfs.")
    );
    // What does not vary cannot be compared by.
    dataset.run.plan.compare = Some("scheduler".into());
    assert!(answer(&dataset).contains("xfs"), "{}", answer(&dataset));
}

/// A run whose loads read at this rate for ten seconds, and had this share of it from the device.
fn reading(rate: f64, from_device: f64) -> Dataset {
    let mut dataset = pair(1.07, 0.005, 5, RATE);
    for step in dataset.trials.iter_mut().flat_map(|trial| &mut trial.steps).filter(|step| step.step == "load") {
        step.figures.push(catalog::READ_THROUGHPUT.figure(rate));
        step.figures.push(catalog::EXECUTION_TIME.figure(10.0));
        step.figures.push(catalog::DEVICE_READ_BYTES.figure(10.0 * rate * from_device));
    }
    dataset
}

#[test]
fn reads_from_memory_and_above_the_device_s_ceiling_are_marked() {
    let warned = |rate: f64, from_device: f64| -> Vec<String> {
        let dataset = reading(rate, from_device);
        Analysis::of(&dataset).warnings.into_iter().map(|warning| warning.text).collect()
    };
    let mebibytes = f64::from(1 << 20);
    let cached = "load: at least 98 % of the bytes that it read came from memory, so its figures are the page cache's more than a device's";
    assert_eq!(warned(100.0 * mebibytes, 0.015), [cached]);
    assert_eq!(warned(100.0 * mebibytes, 1.0), [""; 0], "the device read it all");
    // What the device read for others hides what it did not read for this load.
    let mut dataset = reading(100.0 * mebibytes, 1.0);
    for trial in dataset.trials.iter_mut().filter(|trial| trial.id.cell == 1) {
        let step = trial.steps.iter_mut().find(|step| step.step == "load").expect("there is a load");
        step.figures.push(catalog::BESIDE.figure(1.0));
    }
    let hidden =
        "load: the device also read for what ran beside it, so how much of its own reads came from memory is not known";
    let told: Vec<_> =
        Analysis::of(&dataset).warnings.into_iter().map(|warning| (warning.text, warning.rows)).collect();
    assert_eq!(told, [(hidden.to_owned(), vec![1])]);
    let fast = "load: reads went faster than the device can read, 412 MiB/s by itself";
    assert_eq!(warned(900.0 * mebibytes, 1.0), [fast]);
    assert_eq!(warned(900.0, 0.0), [""; 0], "too little to tell");
}

#[test]
fn what_is_not_told_apart_has_its_price() {
    let dataset = pair(1.02, 0.06, 8, RATE);
    let told = answer(&dataset);
    let price = told.lines().last().expect("a sentence");
    assert!(
        price.starts_with("The two rows cannot be told apart in transactions per second: the ratio is known to ± "),
        "{told}"
    );
    assert!(price.contains(", and to ± 5 % after ") && price.contains(" more block"), "{price}");
    // What five per cent would take is of no use to anybody: what ten minutes bring is.
    let noisy = answer(&pair(1.02, 0.6, 8, RATE));
    let price = noisy.lines().last().expect("a sentence");
    assert!(price.contains("(10 min)") && !price.contains("± 5 %"), "{price}");
    assert!(!answer(&pair(2.0, 0.01, 8, RATE)).contains("cannot be told apart"));
    let close = answer(&pair(1.0, 0.01, 10, RATE));
    assert!(close.contains("the ratio is known to ± 1 %"), "{close}");
}

#[test]
fn other_programs_on_the_machine_are_told_of() {
    let mut dataset = pair(1.07, 0.005, 5, RATE);
    let cpus = f64::from(dataset.run.inventory.cpus);
    assert!(cpus > 1.0);
    for (index, trial) in dataset.trials.iter_mut().enumerate() {
        let step = trial.steps.iter_mut().find(|step| step.step == "load").expect("there is a load");
        // In two trials a third of the machine is somebody else's.
        let others = if index < 2 { 33.0 } else { 10.0 };
        step.figures.push(catalog::EXECUTION_TIME.figure(10.0));
        step.figures.push(catalog::CPU.figure(80.0 / cpus + 20.0 + others + 5.0));
        step.figures.push(catalog::CPU_IRQ.figure(5.0));
        step.figures.push(catalog::PROCESS_CPU.figure(80.0));
        step.figures.push(catalog::KERNEL_THREADS_CPU.figure(20.0));
    }
    let warnings = Analysis::of(&dataset).warnings;
    // Services and what runs in the background are no other programs.
    let mut whole = dataset.clone();
    for step in whole.trials.iter_mut().flat_map(|trial| &mut trial.steps).filter(|step| step.step == "load") {
        step.figures.push(catalog::TRIAL_CPU.figure(80.0 + 25.0 * cpus));
    }
    assert_eq!(Analysis::of(&whole).warnings, []);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].text.starts_with("load: in 2 of 10 trials other programs took more than a quarter"),
        "{warnings:?}"
    );
    let mut virtual_time = dataset;
    for cell in &mut virtual_time.run.plan.cells {
        cell.kernel = KernelSpec::Exact("6.1".into());
    }
    let warnings = Analysis::of(&virtual_time).warnings;
    assert!(warnings.iter().all(|warning| !warning.text.contains("other programs")), "{warnings:?}");
}

/// Percentages before "% lower" or after "fell by about"; the ends of ranges.
pub(crate) fn check_sentence(text: &str) {
    for wrong in ["NaN", "inf", "−0.0 %", "– %", " –/", "1 of 1 ", "among them"] {
        assert!(!text.contains(wrong), "{wrong:?} in {text}");
    }
    let number = |text: &str| text.trim_start_matches('(').replace(',', "").replace('−', "-").parse::<f64>().ok();
    let words: Vec<&str> = text.split_whitespace().collect();
    for (at, word) in
        words.iter().enumerate().filter(|(at, _)| words.get(at + 1).is_some_and(|next| next.starts_with('%')))
    {
        let ends: Vec<f64> = word.split('–').filter_map(number).collect();
        assert!(ends.len() < 2 || ends[0] <= ends[1], "a range that runs backwards: {text}");
        assert!(ends.len() < 2 || ends[0] > 0.0, "a difference that may be none: {text}");
        let falls = words.get(at + 2).is_some_and(|next| next.starts_with("lower"))
            || words[..at].iter().rev().take(4).any(|before| ["fell", "lowers"].contains(before));
        assert!(!falls || ends.iter().all(|end| (0.0..=100.0).contains(end)), "less than nothing: {text}");
    }
    assert!(text.ends_with('.') || !text.contains(". "), "cut off: {text}");
    assert!(["..", "  ", " .", " ,", ",,", "()"].iter().all(|wrong| !text.contains(wrong)), "badly put: {text}");
    // A row is not said to be best and another worst by figures that look the same.
    let shown =
        |word: &str| text.split(&format!("{word} (")).nth(1).and_then(|rest| rest.split(')').next().map(str::to_owned));
    if let (Some(high), Some(low)) = (shown("is highest"), shown("is lowest")) {
        assert_ne!(high, low, "{text}");
    }
}

/// Figures that scatter a little or wildly, stick to few values, are zero now and then, or outliers.
fn distorted(mut dataset: Dataset, random: &mut Random, case: u32) -> Dataset {
    let scatter = [0.0, 0.001, 0.1, 1.0, 3.0][case as usize % 5];
    let zeros = [0.0, 0.0, 0.1, 0.5][case as usize / 5 % 4];
    let steps = case.is_multiple_of(3);
    let rise = [0.0, 0.0, -3.0, 5.0][case as usize / 3 % 4];
    let trials = dataset.trials.len() as f64;
    for trial in &mut dataset.trials {
        let time = f64::from(trial.position) / trials;
        for figure in trial.steps.iter_mut().flat_map(|step| &mut step.figures) {
            let mut value = figure.value * (scatter * random.normal() + rise * time).exp();
            if steps {
                value = 2.0_f64.powf(value.log2().round());
            }
            figure.value = if random.unit() < zeros { 0.0 } else { value };
        }
    }
    dataset
}

fn datasets(case: u32) -> Dataset {
    let repeats = 1 + case % 7;
    match case % 5 {
        0 => fixture::small_file(repeats),
        1 => fixture::large_file(repeats),
        2 => pair(1.1, 0.05, repeats, RATE),
        3 => pair(0.9, 0.05, repeats, ("promises lost", "load", "promises lost")),
        _ => fixture::star(repeats),
    }
}

/// Some are in virtual time: of one seed, of several, and of one in perturbed guests.
fn in_some_time(mut dataset: Dataset, case: u32) -> Dataset {
    match case % 6 {
        3 => {
            dataset.trials.retain(|trial| trial.id.repetition == 0);
            in_virtual_time(dataset, "2 us")
        }
        4 => in_virtual_time(dataset, "2 us"),
        5 => in_guests(dataset),
        _ => dataset,
    }
}

#[test]
fn no_table_makes_an_impossible_sentence_or_a_long_answer() {
    let mut random = Random::new(77);
    for case in 0..200 {
        let dataset = in_some_time(distorted(datasets(case), &mut random, case / 5), case);
        let analysis = Analysis::of(&dataset);
        let short = analysis.answer(Length::Short);
        let words: usize = short.iter().map(|sentence| sentence.split_whitespace().count()).sum();
        assert!(words <= MOST_WORDS, "{words} words: {short:#?}");
        let long = analysis.answer(Length::Long);
        // What no ratio exceeds is more than how well it is known.
        let told = long.join(" ");
        let bound = |words: &str| told.split_once(words)?.1.split_once(" %")?.0.replace(',', "").parse::<f64>().ok();
        if let (Some(most), Some(known)) = (bound("none exceeds "), bound("known to ± ")) {
            assert!(most >= known || known == 5.0, "{told}");
        }
        assert!(short.iter().all(|sentence| long.contains(sentence)));
        let warnings = analysis.warnings.iter().map(|warning| warning.text.clone());
        for text in long.into_iter().chain(warnings).chain([analysis.rules_in_words()]) {
            check_sentence(&text);
        }
        for entry in analysis.entries() {
            let shift = entry.shift.map(|shift| shift.interval);
            assert!(shift.is_none_or(|shift| !shift.contains(0.0) && shift.low >= -1.0), "{shift:?}");
        }
    }
}

#[test]
fn no_comparison_contradicts_itself() {
    let mut random = Random::new(78);
    for case in 0..200 {
        let mut run = |how| in_some_time(distorted(datasets(case), &mut random, how), case);
        let (before, after) = (run(case / 5), run(case / 4));
        let (first, second) = (Analysis::of(&before), Analysis::of(&after));
        let options = CompareOptions::default();
        let comparison = RunComparison::of((&first, "run 3"), (&second, "run 7"), &options);
        for sentence in comparison.sentences() {
            check_sentence(&sentence);
        }
        for (_, figure) in comparison.figures() {
            let Some(pair) = figure.pair else { continue };
            let open = matches!(figure.verdict, Verdict::NotFound | Verdict::TooFew);
            // A range over guests claims nothing of a difference, and holds none where not all of them show what the test finds.
            let agrees = |has_none: bool| has_none == (open || pair.is_mixed()) || open && pair.exact.is_some();
            assert!(agrees(pair.shift.interval.contains(0.0)), "{figure:?}");
            assert!(pair.shift.interval.contains(pair.shift.estimate));
            assert!((pair.after - pair.before - pair.shift.estimate).abs() <= 1e-9 * pair.after.abs());
            let Some(relative) = pair.relative else { continue };
            assert!(agrees(relative.interval.contains(0.0)), "{figure:?}");
            assert!((pair.after / pair.before - 1.0 - relative.estimate).abs() < 1e-9, "{figure:?}");
            assert!(relative.interval.low > -1.0 && relative.interval.contains(relative.estimate), "{figure:?}");
        }
    }
}

#[test]
fn losses_come_first_and_are_marked_wherever_the_row_leads() {
    let mut dataset = pair(17.0, 0.01, 5, RATE);
    for trial in dataset.trials.iter_mut().filter(|trial| trial.id.cell == 1) {
        let figures = &mut trial.steps[2].figures;
        figures.push(catalog::PROMISES_CHECKED.figure(159.2));
        figures.push(catalog::PROMISES_LOST.figure(23.6));
    }
    let told = answer(&dataset);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "xfs lost 118 of 796 promises after a power cut.");
    assert!(lines[1].contains("xfs ‡ is highest") && lines[1].contains("16.9–17.1 times as high as ext4"), "{told}");
    let options = Options::default();
    for output in
        [terminal(&dataset, &TerminalOptions::default()), markdown(&dataset, &options), html(&dataset, &options)]
    {
        assert!(output.contains("‡ lost or damaged data") && output.contains("xfs ‡"), "{output}");
    }
    // So is a row whose check fails.
    let mut dataset = pair(1.1, 0.01, 5, RATE);
    let mut busy = dataset.clone();
    let failed = |words: &str| Outcome::Failed(Reason::new("fsck", words));
    fixture::unsuccessful(&mut dataset, 0, 5, 3, failed("the filesystem is not consistent: e2fsck: exit status 4"));
    assert!(answer(&dataset).starts_with("ext4 failed its check in 1 of 6 trials."), "{}", answer(&dataset));
    // One that could not be made is said, too, and the row marked wherever it leads.
    let mut unusable = dataset.clone();
    fixture::unsuccessful(&mut unusable, 1, 5, 3, failed("the filesystem could not be checked: e2fsck: exit status 8"));
    let told = answer(&unusable);
    assert!(told.contains("xfs could not be checked in 1 of 6 trials") && told.contains("xfs ‡ is highest"), "{told}");
    // What else failed that step says nothing about the data.
    fixture::unsuccessful(&mut busy, 0, 5, 3, failed("/mnt: still in use by sleep"));
    assert!(!answer(&busy).contains("check"), "{}", answer(&busy));
}

#[test]
fn a_paired_question_is_answered_as_asked() {
    let mut dataset = pair(1.0, 0.01, 10, RATE);
    let filesystem = &mut dataset.run.plan.cells[1].filesystem;
    (filesystem.kind, filesystem.mount) = ("ext4".into(), "noatime".into());
    let told = answer(&dataset);
    let first = told.lines().next().expect("a sentence");
    assert!(first.starts_with("noatime changes transactions per second by −") && first.ends_with(" %."), "{told}");
    let mut found = pair(1.3, 0.01, 10, RATE);
    found.run.plan.cells[1].filesystem = dataset.run.plan.cells[1].filesystem.clone();
    assert!(answer(&found).starts_with("noatime raises transactions per second by 2"), "{}", answer(&found));
}

#[test]
fn rules_do_not_hold_for_trials_that_failed_or_were_disturbed() {
    let mut dataset = pair(1.1, 0.01, 5, RATE);
    for trial in &mut dataset.trials {
        trial.warnings.push("another fstone run was in progress on this machine (process 7)".into());
    }
    let told = Analysis::of(&dataset).rules_in_words();
    assert!(told.contains("10 of 10 trials were disturbed"), "{told}");
    dataset.trials.clear();
    fixture::unsuccessful(&mut dataset, 0, 0, 0, Outcome::Crashed(Reason::new("load", "Oops: 0002 [#1]")));
    assert!(Analysis::of(&dataset).rules_in_words().starts_with("No trial completed"));
}

#[test]
fn warnings_stand_above_the_table() {
    let mut dataset = pair(1.1, 0.01, 5, RATE);
    dataset.trials[0].warnings.push("load: the clock went backwards".into());
    let options = Options::default();
    let pages = [
        (terminal(&dataset, &TerminalOptions::default()), "──"),
        (markdown(&dataset, &options), "| ---"),
        (html(&dataset, &options), "<table"),
    ];
    for (page, table) in pages {
        let (warning, table) = (page.find("the clock went backwards").expect("it is there"), page.find(table));
        assert!(warning < table.expect("so is the table"), "{page}");
    }
}

//! A comparison in words, never stronger than the statistics.

use super::{
    comparison::{ComparedColumn, ComparedFigure, RunComparison, Verdict},
    outcomes::{OutcomeChange, Turn},
    pair::{Exact, Pair},
};
use crate::{
    number::{grouped, p_value},
    sentences::amount,
    table::HARDLY,
    text::{capitalised, counted, has, line, listing},
};
use fstone_model::Trial;
use fstone_stats::{CONFIDENCE_TEXT, compare::Shift};

/// More regressions than this are only counted; the table has them all.
const MAX_TOLD: usize = 4;

pub fn caveat(comparison: &RunComparison<'_>) -> String {
    if is_seed_by_seed(comparison.figures().map(|(_, figure)| figure)) {
        return EXACT_CAVEAT.to_owned();
    }
    let by_means = |figure: &ComparedFigure| {
        let medians = [figure.baseline.summary, figure.other.summary].map(|summary| summary.map(|all| all.median));
        figure.pair.is_some_and(|pair| medians != [Some(pair.before), Some(pair.after)])
    };
    let medians = "medians of trials";
    match comparison.figures().any(|(_, figure)| by_means(figure)) {
        true => {
            CAVEAT.replacen(medians, "medians of trials, or means where medians do not show what the test finds", 1)
        }
        false => CAVEAT.to_owned(),
    }
}

fn is_seed_by_seed<'a>(figures: impl IntoIterator<Item = &'a ComparedFigure>) -> bool {
    figures.into_iter().any(|figure| figure.pair.is_some_and(|pair| pair.exact.is_some()))
}

/// What stands beside the changes of these figures: an interval of confidence, or, in virtual time, all that the seeds showed.
pub fn interval_name<'a>(figures: impl IntoIterator<Item = &'a ComparedFigure>) -> String {
    if is_seed_by_seed(figures) { "range over guests".to_owned() } else { format!("{CONFIDENCE_TEXT} interval") }
}

const EXACT_CAVEAT: &str = "Changes are relative to the figure before, guest by guest, with the smallest and the largest over the guests. \
                            Virtual time has no noise, but what should not matter may move a figure: perturbed guests and other seeds show how far, and a difference counts if it exceeds that.";

const CAVEAT: &str = "Before and after are medians of trials, and changes are between them, with Hodges–Lehmann intervals. The two runs were made one after the other: whatever changed on the machine in between counts as a \
                                 difference. Two runs of the same thing, compared, show how far that goes.";

impl RunComparison<'_> {
    pub fn sentences(&self) -> Vec<String> {
        sentences(self)
    }

    pub fn note_lines(&self) -> Vec<String> {
        let runs = [("Before", &self.baseline_name, self.baseline), ("After", &self.other_name, self.other)];
        let told = runs.into_iter().filter_map(|(when, name, analysis)| {
            let note = analysis.dataset.run.note.as_ref()?;
            Some(format!("{when}, {}: {}", line(name), line(note.as_str())))
        });
        told.collect()
    }

    pub fn outcome_lines(&self) -> Vec<String> {
        let told = self.outcomes.iter();
        told.map(|change| format!("{}: {}; before: {}", change.label, change.other, change.baseline)).collect()
    }

    pub fn change_lines(&self) -> Vec<String> {
        let told = self.changes.iter();
        told.map(|change| format!("{}: {} → {}", change.what, change.baseline, change.other)).collect()
    }

    pub fn unmatched_lines(&self) -> Vec<String> {
        let told = self.unmatched.iter();
        told.map(|only| {
            let run = if only.in_baseline { &self.baseline_name } else { &self.other_name };
            let what = if only.is_column { "column" } else { "row" };
            let left_out = only.in_baseline && !self.lacks(only);
            let why = if left_out { format!("; {} left it out", self.other_name) } else { String::new() };
            format!("{what} {} is in {run} only{why}", only.name)
        })
        .collect()
    }
}

/// "5 %", "2.5 %".
pub fn percent(share: f64) -> String {
    let text = grouped(share * 100.0, 2);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The estimate of a change with its interval: ("−7.1 %", "−9.0 to −5.2").
pub fn change(column: &ComparedColumn, pair: &Pair) -> (String, String) {
    let signed = |value: f64, text: String| if value > 0.0 { format!("+{text}") } else { text };
    if let Some(relative) = pair.relative {
        let decimals = decimals(relative);
        let told = |value: f64| signed(value, grouped(value * 100.0, decimals));
        let (low, high) = (relative.interval.low, relative.interval.high);
        let is_unknown = high > 100.0 && high > HARDLY * relative.estimate.abs();
        let high = if is_unknown { "over +10,000".to_owned() } else { told(high) };
        return (format!("{} %", told(relative.estimate)), format!("{} to {high}", told(low)));
    }
    let told = |value: f64| signed(value, column.scale.number(value));
    let (low, high) = (pair.shift.interval.low, pair.shift.interval.high);
    let estimate = told(pair.shift.estimate);
    // Per cent of a figure in per cent is something else.
    let is_points = column.unit == fstone_model::Unit::Percent;
    let estimate = if is_points { format!("{estimate} points") } else { column.scale.labelled(&estimate) };
    (estimate, format!("{} to {}", told(low), told(high)))
}

/// Two digits of the interval's half-width.
fn decimals(shift: Shift) -> usize {
    match shift.interval.half_width() * 100.0 {
        half if half >= 10.0 => 0,
        half if half >= 1.0 => 1,
        _ => 2,
    }
}

/// "9,012 → 8,281/s, 6–9 % lower (p = 0.004)", for a sentence.
pub fn difference(column: &ComparedColumn, figure: &ComparedFigure) -> String {
    let Some(pair) = figure.pair else { return "no figure".to_owned() };
    let told = match pair.relative {
        Some(relative) if pair.differs() || is_by_chance(figure) => amount(relative),
        // Not lower, not higher: what is known of it.
        _ => {
            let (estimate, interval) = change(column, &pair);
            format!("{estimate}, {} {interval}", interval_name([figure]))
        }
    };
    let told = format!("{}, {told}", from_to(column, &pair));
    let over = match pair.exact {
        Some(exact) if exact.moved.is_none() => return format!("{told} ({})", seeds(exact.seeds)),
        Some(exact) if exact.seeds == 1 => format!(", over {}", counted(exact.guests, "guest")),
        Some(exact) => format!(", over {}", counted(exact.seeds, "seed")),
        None => String::new(),
    };
    let p = match probability(&pair) {
        p if p == "exact" => p,
        p if p.starts_with('<') => format!("p {p}"),
        p => format!("p = {p}"),
    };
    format!("{told} ({p}{over})")
}

/// "9,012 → 8,281/s"
fn from_to(column: &ComparedColumn, pair: &Pair) -> String {
    format!("{} → {}", column.scale.number(pair.before), column.scale.with_unit(pair.after))
}

/// The p-value of a pair for a table; "exact" where nothing moved the figures, "one seed" where it is not known what does.
pub fn probability(pair: &Pair) -> String {
    match pair.exact.map(|exact| (exact.seeds, exact.moved)) {
        Some((count, None)) => seeds(count),
        Some((_, Some(moved))) if moved.error == 0.0 => "exact".to_owned(),
        _ => p_value(pair.adjusted_p),
    }
}

fn seeds(count: usize) -> String {
    if count == 1 { "one seed".to_owned() } else { counted(count, "seed") }
}

/// Whether both runs' guests sent their drives the same requests at the same moments; the first that did not.
fn requests(comparison: &RunComparison<'_>) -> Option<String> {
    let (mut same, mut all, mut first) = (0, 0, None);
    for trial in &comparison.baseline.dataset.trials {
        let Some(before) = trace(trial) else { continue };
        let Some(row) = comparison.baseline.rows.iter().find(|row| row.cell == trial.id.cell) else { continue };
        let Some(there) = comparison.other.rows.iter().find(|there| there.label == row.label) else { continue };
        let alike = |other: &&Trial| {
            (other.id.cell, other.id.repetition, other.seed) == (there.cell, trial.id.repetition, trial.seed)
        };
        let Some(other) = comparison.other.dataset.trials.iter().find(alike) else { continue };
        let Some(after) = trace(other) else { continue };
        all += 1;
        if before == after {
            same += 1;
        } else if first.is_none() {
            first = Some(format!("trial {} of {}", trial.id.number(), row.label));
        }
    }
    match first {
        None if all > 0 => {
            Some(format!("The requests to the drive and their times are the same in all {}.", counted(all, "trial")))
        }
        None => None,
        Some(first) => Some(format!(
            "The requests to the drive are the same in {same} of {all} trials; {first} is the first that differs."
        )),
    }
}

/// The hash of a trial's requests in virtual time.
fn trace(trial: &Trial) -> Option<&str> {
    let guest = trial.steps.iter().find(|step| step.step == "guest")?;
    Some(guest.commands.first()?.output_tail.rsplit_once("trace ")?.1)
}

/// Whether it differs, and nothing shows how far chance moves it.
fn is_by_chance(figure: &ComparedFigure) -> bool {
    figure.pair.is_some_and(|pair| pair.has_unknown_scatter() && pair.shift.estimate != 0.0)
}

const MAY_BE_CHANCE: &str = "may be chance";
const NOT_ALL_SHOW: &str = "not all guests show";

/// Why a difference is not called real.
fn doubt(figure: &ComparedFigure) -> Option<&'static str> {
    if is_by_chance(figure) {
        return Some(MAY_BE_CHANCE);
    }
    figure.pair.is_some_and(|pair| pair.is_mixed()).then_some(NOT_ALL_SHOW)
}

/// Where figures in virtual time differ, and it is not known how far chance moves them.
fn unperturbed(comparison: &RunComparison<'_>) -> Option<String> {
    comparison.figures().any(|(_, figure)| is_by_chance(figure)).then(|| {
        "How far a rebuilt kernel or another tool moves these figures is not known: run both with --perturbed 2."
            .to_owned()
    })
}

fn sentences(comparison: &RunComparison<'_>) -> Vec<String> {
    let compared = comparison.compared();
    let threshold = percent(comparison.threshold);
    // Where the comparison cannot see, that comes before what it did not see.
    let blind = if comparison.nothing_could_differ() { None } else { blind(comparison) };
    let (cannot_see, beside) = if comparison.allow_blind { (None, blind) } else { (blind, None) };
    let told_blind = cannot_see.is_some() || beside.is_some();
    // What no test stands behind comes first: it is certain.
    let worse = |is_harm: bool, words: &str| {
        outcomes(comparison, |change| change.turn == Turn::Worse && change.is_harm == is_harm, words)
    };
    let mut sentences: Vec<String> = worse(true, "Lost or damaged").into_iter().collect();
    sentences.extend(worse(false, "Does not complete as before"));
    sentences.extend(missing(comparison));
    if compared == 0 {
        sentences.push(format!("{} and {} have no figure in common.", comparison.baseline_name, comparison.other_name));
    } else if comparison.nothing_could_differ() {
        sentences.push(format!(
            "With so few trials no difference between {} and {} could be found, however large{}.",
            comparison.baseline_name,
            comparison.other_name,
            needed(comparison)
        ));
    } else {
        let blind = if cannot_see.is_some() { comparison.blind().len() } else { 0 };
        sentences.extend(cannot_see);
        sentences.push(headline(comparison, (compared, blind), &threshold));
    }
    let told = |verdict, word: &str| {
        let figures: Vec<_> = comparison.figures().filter(|(_, figure)| figure.verdict == verdict).collect();
        (!figures.is_empty()).then(|| {
            let mut items: Vec<String> = figures
                .iter()
                .take(MAX_TOLD)
                .map(|(column, figure)| format!("{}, {}: {}", figure.label, column.header, difference(column, figure)))
                .collect();
            if figures.len() > MAX_TOLD {
                items.push(format!("{} more in the table", figures.len() - MAX_TOLD));
            }
            format!("{word}: {}.", items.join("; "))
        })
    };
    sentences.extend(told(Verdict::Regression, "Worse"));
    let doubted = comparison.figures().any(|(_, figure)| figure.verdict == Verdict::Unclear && doubt(figure).is_some());
    let perhaps = match doubted {
        true => "Perhaps worse".to_owned(),
        false => format!("Worse, and perhaps by more than {threshold}"),
    };
    sentences.extend(told(Verdict::Unclear, &perhaps));
    sentences.extend(told(Verdict::Improvement, "Better"));
    sentences.extend(told(Verdict::Difference, "Different, without a better direction"));
    let better = |is_harm| move |change: &OutcomeChange| change.turn == Turn::Better && change.is_harm == is_harm;
    sentences.extend(outcomes(comparison, better(false), "Completes as it did not before"));
    sentences.extend(outcomes(comparison, better(true), "Nothing lost or damaged any more"));
    let before_too = |change: &OutcomeChange| change.is_harm && change.turn == Turn::Unknown && !change.is_missing;
    sentences.extend(outcomes(comparison, before_too, "Lost or damaged before, too"));
    sentences.extend(unperturbed(comparison));
    sentences.extend(beside);
    if !told_blind {
        sentences.extend(findable(comparison));
    }
    sentences.extend(required(comparison));
    sentences.extend(requests(comparison));
    sentences
}

/// Of the figures that are too noisy to say, it does not say that they are no worse.
fn headline(comparison: &RunComparison<'_>, (compared, blind): (usize, usize), threshold: &str) -> String {
    let count = |verdict| comparison.count(verdict);
    let mut parts = Vec::new();
    let others =
        if blind > 0 { format!(" in the other {}", counted(compared - blind, "figure")) } else { String::new() };
    match count(Verdict::Regression) {
        0 if blind == compared => {}
        // Beside what is a regression without any figure.
        0 if comparison.has_regression() => parts.push(format!("no figure worse beyond {threshold}{others}")),
        0 => parts.push(format!("no regression beyond {threshold}{others}")),
        some => parts.push(format!("{} beyond {threshold}", counted(some, "regression"))),
    }
    if count(Verdict::Improvement) > 0 {
        parts.push(counted(count(Verdict::Improvement), "improvement"));
    }
    if count(Verdict::Difference) > 0 {
        parts.push(format!("{} without a better direction", counted(count(Verdict::Difference), "difference")));
    }
    let doubtful = |verdict, why: Option<&str>| {
        comparison.figures().filter(|(_, figure)| figure.verdict == verdict && doubt(figure) == why).count()
    };
    let unclear = doubtful(Verdict::Unclear, None);
    if unclear > 0 {
        parts.push(format!("{} that may be beyond {threshold}", counted(unclear, "real difference")));
    }
    for why in [MAY_BE_CHANCE, NOT_ALL_SHOW] {
        let (worse, rest) = (doubtful(Verdict::Unclear, Some(why)), doubtful(Verdict::MayBeChance, Some(why)));
        if worse > 0 {
            parts.push(format!("{} for the worse that {why}", counted(worse, "difference")));
        }
        if rest > 0 {
            let others = if worse > 0 { "other difference" } else { "difference" };
            parts.push(format!("{} that {why}", counted(rest, others)));
        }
    }
    if count(Verdict::Slight) > 0 {
        parts.push(format!("{} within {threshold}", counted(count(Verdict::Slight), "real difference")));
    }
    if count(Verdict::NotFound) > 0 {
        parts.push(format!("no difference found in {} of {}", count(Verdict::NotFound), counted(compared, "figure")));
    }
    if count(Verdict::TooFew) > 0 {
        parts.push(format!("too few trials to tell in {}{}", count(Verdict::TooFew), needed(comparison)));
    }
    format!("{}.", capitalised(&listing(&parts)))
}

fn needed(comparison: &RunComparison<'_>) -> String {
    comparison.trials_needed().map_or_else(String::new, |needed| {
        format!(" (it takes at least {} of every row in both runs)", counted(needed, "trial"))
    })
}

fn outcomes(comparison: &RunComparison<'_>, which: impl Fn(&OutcomeChange) -> bool, words: &str) -> Option<String> {
    let changes = comparison.outcomes.iter().filter(|change| which(change));
    told_few(
        words,
        changes.map(|change| format!("{} ({}; before: {})", change.label, change.other, change.baseline)).collect(),
    )
}

fn told_few(words: &str, mut told: Vec<String>) -> Option<String> {
    let count = told.len();
    told.truncate(MAX_TOLD);
    if count > MAX_TOLD {
        told.push(format!("{} more", count - MAX_TOLD));
    }
    (count > 0).then(|| format!("{words}: {}.", told.join("; ")))
}

/// What the baseline has and the other run lacks: nothing is known of it.
fn missing(comparison: &RunComparison<'_>) -> Option<String> {
    let of_baseline = comparison.unmatched.iter().filter(|only| comparison.lacks(only));
    let whole = of_baseline.map(|only| format!("{} {}", if only.is_column { "column" } else { "row" }, only.name));
    let rows = comparison.outcomes.iter().filter(|change| change.is_missing);
    let rows = rows.map(|change| format!("{} ({})", change.label, change.other));
    // Of a row that is told to have ended otherwise no figure is to be expected.
    let has_ended = |label: &str| {
        comparison
            .outcomes
            .iter()
            .any(|change| !change.is_harm && (change.turn == Turn::Worse || change.is_missing) && change.label == label)
    };
    let figures = comparison.figures().filter(|(_, figure)| figure.is_missing() && !has_ended(&figure.label));
    let figures = figures.map(|(column, figure)| format!("{}, {}", figure.label, column.header));
    told_few(&format!("Missing in {}", comparison.other_name), whole.chain(rows).chain(figures).collect())
}

/// Which figures would hardly have shown a difference as large as the threshold.
fn blind(comparison: &RunComparison<'_>) -> Option<String> {
    let blind = comparison.blind();
    let size = |figure: &ComparedFigure| figure.pair.and_then(|pair| pair.detectable);
    // Where none could have been found, however large, that is worse than any size.
    let worst = blind.iter().max_by(|(_, a), (_, b)| {
        let key = |figure: &ComparedFigure| size(figure).unwrap_or(f64::INFINITY);
        key(a).total_cmp(&key(b))
    });
    let (column, figure) = worst?;
    let (label, header) = (&figure.label, &column.header);
    let missed = match size(figure) {
        Some(size) if size >= 1.0 => format!("a factor of {}", grouped(1.0 + size, 1)),
        Some(size) => format!("a difference of {}", reach(size)),
        None if figure.was_mostly_none() && figure.verdict != Verdict::TooFew => {
            let [was, is] = [&figure.baseline, &figure.other].map(|entry| column.scale.with_unit(entry.farthest()));
            let more = match blind.len() - 1 {
                0 => String::new(),
                more => format!("; {} too", counted(more, "other figure")),
            };
            return Some(format!(
                "Too noisy to say in {label}, {header}, 0 in most trials: it reached {was} before and reaches {is} now{more}."
            ));
        }
        None => "any difference".to_owned(),
    };
    let cost = cost(comparison, blind.iter().map(|(_, figure)| *figure));
    let cost = cost.map_or_else(String::new, |(_, cost)| format!("; {cost}"));
    Some(match blind.len() {
        1 => format!("Too noisy to say in {label}, {header}: {missed} could be missed{cost}."),
        count => {
            let figures = counted(count, "figure");
            format!("Too noisy to say in {figures}: {missed} could be missed in {label}, {header}{cost}.")
        }
    })
}

/// How many trials it takes to find the threshold in all of these figures, also in words.
fn cost<'a>(
    comparison: &RunComparison<'_>,
    figures: impl IntoIterator<Item = &'a ComparedFigure>,
) -> Option<(usize, String)> {
    let needed = figures.into_iter().filter_map(|figure| {
        let pair = figure.pair?;
        Some((pair.trials_for_threshold?, pair.perturbed_for_threshold))
    });
    let (trials, perturbed) = needed.max()?;
    let of_guests = if perturbed > 0 { format!(", with --perturbed {perturbed}") } else { String::new() };
    let (share, counted) = (percent(comparison.threshold), counted(trials, "trial"));
    Some((trials, format!("finding {share} takes about {counted} of every row in both runs{of_guests}")))
}

/// What could have been found if nothing was, and how many trials it takes to find the threshold.
fn findable(comparison: &RunComparison<'_>) -> Option<String> {
    let not_found = |verdict| matches!(verdict, Verdict::NotFound | Verdict::TooFew);
    let mut figures: Vec<(&ComparedColumn, &ComparedFigure, f64)> = comparison
        .figures()
        .filter(|(_, figure)| not_found(figure.verdict))
        .filter_map(|(column, figure)| Some((column, figure, figure.pair?.detectable?)))
        .collect();
    figures.sort_by(|a, b| a.2.total_cmp(&b.2));
    let Some((column, figure, worst)) = figures.last() else {
        // Nothing could have been found, but how many trials the threshold takes is known all the same.
        let pairs = comparison.figures().map(|(_, figure)| figure).filter(|figure| not_found(figure.verdict));
        let (trials, cost) = cost(comparison, pairs)?;
        // The fewest that can find anything are told already.
        if comparison.trials_needed().is_some_and(|fewest| trials <= fewest) {
            return None;
        }
        return Some(format!("{}.", capitalised(&cost)));
    };
    if *worst == 0.0 {
        return None;
    }
    let typical = figures[figures.len() / 2].2;
    let mut sentence = format!("A difference of {} would have been found four times in five", reach(typical));
    if *worst > typical {
        let name = format!("{}, {}", figure.label, column.header);
        sentence.push_str(&format!(", in the median figure; in {name}, one of {}", reach(*worst)));
    }
    if let Some((_, cost)) = cost(comparison, [*figure]).filter(|_| *worst > comparison.threshold) {
        sentence.push_str(&format!(". There, {cost}"));
    }
    Some(sentence + ".")
}

/// Which figures fall short of the power that was asked for.
fn required(comparison: &RunComparison<'_>) -> Option<String> {
    let share = comparison.required_power?;
    let short = comparison.could_miss(share);
    let missing = comparison.unmatched.iter().filter(|only| comparison.lacks(only)).count();
    let mut parts = Vec::new();
    if !short.is_empty() {
        let mut told: Vec<String> = short
            .iter()
            .take(MAX_TOLD)
            .map(|(column, figure)| {
                let what = match figure.pair {
                    Some(Pair { detectable: Some(found), .. }) => format!("one of {}", reach(found)),
                    Some(Pair { exact: Some(Exact { moved: None, seeds: count, .. }), .. }) => seeds(count),
                    Some(_) if figure.was_mostly_none() && figure.verdict != Verdict::TooFew => {
                        "0 in most trials".to_owned()
                    }
                    Some(_) => "too few trials".to_owned(),
                    None => format!("no figure in {}", comparison.other_name),
                };
                format!("{}, {} ({what})", figure.label, column.header)
            })
            .collect();
        if short.len() > MAX_TOLD {
            told.push(format!("{} more", short.len() - MAX_TOLD));
        }
        parts.push(format!("{} could miss it: {}", counted(short.len(), "figure"), told.join("; ")));
    }
    if missing > 0 {
        let what = if missing == 1 { "row or column" } else { "rows and columns" };
        parts.push(format!("{missing} {what} of {} {} no counterpart", comparison.baseline_name, has(missing)));
    }
    Some(if parts.is_empty() {
        format!("Every figure could have shown a difference of {}, as required.", percent(share))
    } else {
        format!("The requirement was to find a difference of {}, but {}.", percent(share), listing(&parts))
    })
}

/// A share rounded up: it is a bound.
fn reach(share: f64) -> String {
    let decimals = usize::from(share < 0.1);
    let steps = if decimals == 1 { 1000.0 } else { 100.0 };
    format!("{} %", grouped((share * steps).ceil() / steps * 100.0, decimals))
}

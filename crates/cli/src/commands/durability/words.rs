//! What the sequences of a filesystem showed, as text.

use super::campaign::{Campaign, Setting};
use fstone_analysis::text::counted;
use fstone_lab::run::explore::SequenceFound;
use fstone_model::text;
use std::collections::BTreeMap;

/// How many sequences with a loss are listed; the file has all.
const TOLD: usize = 12;

pub(super) fn report(setting: &Setting<'_>, campaign: &Campaign) -> String {
    let found = campaign.outcomes();
    let sum = |figure: fn(&SequenceFound) -> u64| found.values().map(figure).sum::<u64>();
    let (states, mounted, checked, clean) =
        (sum(|found| found.states), sum(|found| found.mounted), sum(|found| found.checked), sum(|found| found.clean));
    let refused = found.values().filter(|found| found.refused.is_some()).count();
    let mut facts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (aspect, (looked_at, lost)) in found.values().flat_map(|found| &found.facts) {
        let fact = facts.entry(aspect).or_default();
        *fact = (fact.0 + looked_at, fact.1 + lost);
    }
    let mut out = format!("{}\n\n", text::line(&setting.described()));
    let mut line = |what: &str, value: String| out.push_str(&format!("  {what:<28} {value}\n"));
    line("sequences tried", format!("{} of {}", found.len() - refused, campaign.total()));
    line("states", format!("{states}"));
    line("states mounted", format!("{mounted}"));
    if checked > 0 {
        line("states clean", format!("{clean} of {checked}"));
    }
    line("states with a loss", format!("{}", sum(|found| found.lossy)));
    let mut lost_any = false;
    for (aspect, (looked_at, lost)) in &facts {
        lost_any |= *lost > 0;
        line(&format!("lost: {aspect}"), format!("{lost} of {looked_at}"));
    }
    let (here, took) = campaign.pace();
    if here > 0 {
        line("states a second", format!("{:.1}", here as f64 / took.as_secs_f64().max(0.001)));
    }
    if refused > 0 {
        let why = found.values().find_map(|found| found.refused.as_ref()).map_or("", String::as_str);
        out.push_str(&format!(
            "\n{refused} sequences were left out because a call failed, such as {}.\n",
            text::line(why)
        ));
    }
    let sick: Vec<(&String, &SequenceFound)> = found.iter().filter(|(_, found)| !found.is_sound()).collect();
    if sick.is_empty() {
        return out;
    }
    out.push_str(&format!("\n{}:\n\n", counts(&sick)));
    for (sequence, found) in sick.iter().take(TOLD) {
        out.push_str(&format!("  {sequence}\n"));
        if let Some(words) = &found.ended {
            out.push_str(&format!("    {}\n", text::line(words)));
        }
        if let Some(state) = &found.ended_in {
            out.push_str(&again(found, state));
        }
        if let Some((state, words)) = found.told.first() {
            out.push_str(&format!("    {state}: {} ({})\n", text::line(words), share(found)));
        }
        if let Some((state, _)) = found.told.first().filter(|(state, _)| Some(state) != found.ended_in.as_ref()) {
            out.push_str(&again(found, state));
        }
    }
    if sick.len() > TOLD {
        out.push_str(&format!("  … and {} more, in {}\n", sick.len() - TOLD, campaign.path().display()));
    }
    if lost_any {
        out.push_str("\nTo repeat one: fstone durability TYPE --exhaustive --sequence 'CALL; CALL' --states 500\n");
    }
    out
}

pub(super) fn again(found: &SequenceFound, state: &str) -> String {
    let log = found.log.as_ref().map(|log| log.display());
    log.map_or_else(String::new, |log| format!("    fstone crash-state {log} {state} --image FILE\n"))
}

fstone_model::named! {
    /// The worst that a sequence showed, from the worst on.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Worst: words {
        Loss => "with a loss",
        Unmountable => "with a state that could not be mounted",
        Unclean => "with an unclean check",
        Ended => "in which the guest ended",
    }
}

impl Worst {
    const fn of(found: &SequenceFound) -> Self {
        if found.lossy > found.states - found.mounted {
            Self::Loss
        } else if found.lossy > 0 {
            Self::Unmountable
        } else if found.clean < found.checked {
            Self::Unclean
        } else {
            Self::Ended
        }
    }
}

/// "2 sequences with a loss, 1 sequence in which the guest ended": each counts once, for the worst that it showed.
fn counts(sick: &[(&String, &SequenceFound)]) -> String {
    let mut counts: BTreeMap<Worst, usize> = BTreeMap::new();
    for (_, found) in sick {
        *counts.entry(Worst::of(found)).or_default() += 1;
    }
    let told = counts.into_iter().map(|(worst, count)| format!("{} {}", counted(count, "sequence"), worst.words()));
    told.collect::<Vec<_>>().join(", ")
}

fn share(found: &SequenceFound) -> String {
    if found.lossy > 0 {
        format!("{} of {} states lost something", found.lossy, found.states)
    } else {
        format!("{} of {} states not clean", found.checked - found.clean, found.checked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_counts_for_the_worst_that_it_showed() {
        let sound = SequenceFound { states: 5, mounted: 5, checked: 5, clean: 5, ..SequenceFound::default() };
        let lost = SequenceFound { lossy: 2, clean: 4, ..sound.clone() };
        let unmountable = SequenceFound { mounted: 4, lossy: 1, clean: 4, ..sound.clone() };
        let unclean = SequenceFound { clean: 3, ended: Some("crashed".to_owned()), ..sound.clone() };
        let ended = SequenceFound { ended: Some("crashed".to_owned()), ..sound };
        let name = "sync".to_owned();
        let counted = |found: &[&SequenceFound]| counts(&found.iter().map(|found| (&name, *found)).collect::<Vec<_>>());
        assert_eq!(counted(&[&lost, &ended, &lost]), "2 sequences with a loss, 1 sequence in which the guest ended");
        assert_eq!(
            counted(&[&unclean, &unmountable]),
            "1 sequence with a state that could not be mounted, 1 sequence with an unclean check"
        );
        assert_eq!(share(&unclean), "2 of 5 states not clean");
        assert_eq!(share(&lost), "2 of 5 states lost something");
    }
}

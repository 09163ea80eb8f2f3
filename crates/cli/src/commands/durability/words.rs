//! What the sequences of a filesystem showed, as text.

use super::campaign::{Campaign, Setting};
use fstone_lab::run::explore::SequenceFound;
use fstone_model::text;
use std::collections::BTreeMap;

/// Sequences with a loss that are told one by one; the file has all.
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
    out.push_str(&format!("\n{} sequences with a loss, an unclean check or a guest that ended:\n\n", sick.len()));
    for (sequence, found) in sick.iter().take(TOLD) {
        out.push_str(&format!("  {sequence}\n"));
        if let Some(words) = &found.ended {
            out.push_str(&format!("    {}\n", text::line(words)));
        }
        if let Some((state, words)) = found.told.first() {
            let share = format!("{} of {} states lost something", found.lossy, found.states);
            out.push_str(&format!("    {state}: {} ({share})\n", text::line(words)));
        }
        if let Some((log, (state, _))) = found.log.as_ref().zip(found.told.first()) {
            out.push_str(&format!("    fstone crash-state {} {state} --image FILE\n", log.display()));
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

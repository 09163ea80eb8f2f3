//! `fstone profile`: what a run's kernels did, function by function, and what differs between two.

use super::{
    Context,
    compare::{Named, find, refuse_mismatches},
};
use crate::{
    args::ProfileArguments,
    exit::Exit,
    terminal::{self, CommandResult, Failure},
};
use fstone_analysis::profile::{Profile, profiles};
use fstone_model::metric::catalog;
use fstone_report::{profile, profile_calls, profile_difference, profile_folded};

pub(crate) fn profile_runs(context: &Context, arguments: &ProfileArguments) -> CommandResult {
    let ProfileArguments { run, other, row, lines, calls, folded, .. } = arguments;
    let first = find(context, run)?;
    let before = chosen(&first, row.first(), arguments)?;
    let differ = match row.len() {
        2 => true,
        0 | 1 => other.is_some(),
        _ => return Err(bad("two rows can be compared, not more")),
    };
    if differ && (*folded || *calls) {
        return Err(bad("--folded and --calls print the profile of one run, of one row or of all"));
    }
    if *calls && before.iter().all(|one| one.calls.is_empty()) {
        return Err(bad(
            "nothing tells who called what: an earlier version built the kernel. Build it anew and run it again",
        ));
    }
    let texts: Vec<String> = if differ {
        let second = other.as_ref().map(|other| find(context, other)).transpose()?;
        if let Some(second) = &second {
            refuse_mismatches(&first, second, &arguments.across)?;
        }
        let after = chosen(second.as_ref().unwrap_or(&first), row.last(), arguments)?;
        for (named, profiles) in [(&first, &before)].into_iter().chain(second.as_ref().map(|second| (second, &after))) {
            if second.is_some() && !profiles.iter().all(Profile::has_symbols) {
                return Err(bad(&format!(
                    "the kernel of {} has no symbols, so its functions cannot be matched with another kernel's; build it with \
                     CONFIG_KALLSYMS=y, as `fstone kernel build` does",
                    named.name
                )));
            }
        }
        let is_mate =
            |one: &Profile, other: &Profile| other.step == one.step && (row.len() == 2 || other.row == one.row);
        let mates = |one| after.iter().filter(move |other| is_mate(one, other)).map(move |other| (one, other));
        before.iter().flat_map(mates).map(|(one, other)| profile_difference(one, other, *lines)).collect()
    } else {
        let text = |one: &Profile| match (*folded, *calls) {
            (true, _) => profile_folded(one),
            (_, true) => profile_calls(one, *lines),
            _ => profile(one, *lines),
        };
        before.iter().map(text).collect()
    };
    if texts.is_empty() {
        return Err(bad("there is no row and step of the same name in both; name two rows: --row BEFORE --row AFTER"));
    }
    terminal::print(&texts.join(if *folded { "" } else { "\n" }));
    Ok(Exit::Success)
}

fn bad(words: &str) -> Failure {
    Failure::new(Exit::BadInput, words.to_owned())
}

/// The profiles of a run, or those of one row or step of it.
fn chosen(found: &Named, row: Option<&String>, arguments: &ProfileArguments) -> Result<Vec<Profile>, Failure> {
    let mut profiles = profiles(&found.dataset);
    if profiles.is_empty() {
        let mut steps = found.dataset.trials.iter().flat_map(|trial| &trial.steps);
        let counted = steps.any(|step| step.figure(catalog::KERNEL_WORK.name).is_some());
        let why = match (counted, found.dataset.run.is_anonymous()) {
            (false, _) => {
                "no kernel counted its work. Build one that does with `fstone kernel build --counting`, and run the study with --kernel and its name"
            }
            (true, true) => "what each function did was left out of an anonymous run",
            (true, false) => "the trials that would have it are not there: it is recorded with the first of each row",
        };
        return Err(bad(&format!("{} has no profile: {why}", found.name)));
    }
    let known: Vec<String> = profiles.iter().map(|one| format!("{:?}, {:?}", one.row, one.step)).collect();
    let is = |wanted: Option<&String>, name: &str| wanted.is_none_or(|wanted| wanted == name);
    profiles.retain(|one| is(row, &one.row) && is(arguments.step.as_ref(), &one.step));
    if profiles.is_empty() {
        let words = format!("{} has no such profile; it has (row, step): {}", found.name, known.join("; "));
        return Err(bad(&words));
    }
    Ok(profiles)
}

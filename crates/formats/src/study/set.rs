//! Numbers of loads that the command line sets: `--set threads=4`, or of one part of a load `--set readers.threads=4`.

use crate::{
    diagnostic::{Diagnostic, Report},
    native::{Parameter, Quantity, Target},
};
use fstone_model::units;

/// Whether `--set` with this name sets a number of loads; otherwise it names a variable of the study.
pub(super) fn is_number(name: &str) -> bool {
    name.contains('.') || parameter(name).is_some()
}

pub(super) fn numbers(set: &[(String, String)], report: &mut Report) -> Vec<(Target, u64)> {
    set.iter().filter(|(name, _)| is_number(name)).filter_map(|(name, value)| number(name, value, report)).collect()
}

fn number(name: &str, written: &str, report: &mut Report) -> Option<(Target, u64)> {
    let (part, wanted) = name.rsplit_once('.').map_or((None, name), |(part, wanted)| (Some(part.to_owned()), wanted));
    let Some(parameter) = parameter(wanted) else {
        let names = Parameter::ALL.map(Parameter::name);
        report.push(
            Diagnostic::whole(format!("--set {name}: a load has no number `{wanted}`"))
                .did_you_mean(wanted, names)
                .note(format!("it has {}", names.join(", "))),
        );
        return None;
    };
    let value = match parameter.quantity() {
        Quantity::Count => written.trim().parse::<u64>().map_err(|_| format!("{written:?} is not a whole number")),
        Quantity::Size => units::parse_bytes(written).map_err(|error| error.to_string()),
        Quantity::Time => units::parse_duration(written)
            .map_err(|error| error.to_string())
            .and_then(|time| u64::try_from(time.as_nanos()).map_err(|_| format!("{written:?} is too long"))),
    };
    match value {
        Ok(value) => Some((Target { parameter, part }, value)),
        Err(why) => {
            report.push(Diagnostic::whole(format!("--set {name}: {why}")));
            None
        }
    }
}

fn parameter(name: &str) -> Option<Parameter> {
    Parameter::ALL.into_iter().find(|parameter| parameter.name() == name)
}

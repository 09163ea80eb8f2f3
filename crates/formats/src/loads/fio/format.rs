//! fio's job files as one of the load formats.

use super::{Options, Placement, Plan, parse};
use crate::{
    Diagnostics,
    loads::{Document, Load, LoadFormat},
};

pub const FORMAT: LoadFormat = LoadFormat {
    key: "fio",
    about: "A fio job file, by its path relative to the study.",
    extensions: &["fio", "job"],
    words: None,
    file: |document| {
        let Plan { workload, warnings, .. } = plan(document)?;
        Ok(Load { workload, warnings, keeps_total: false })
    },
    converted: None,
};

fn plan(document: &mut Document<'_, '_>) -> Result<Plan, Diagnostics> {
    parse(
        document.source,
        &mut Options {
            placement: Placement::UnderDirectory,
            sections: &[],
            // A study means the same wherever it is run.
            variable: &|_| None,
            size_of: &|_| None,
            real: &|_| None,
            loader: document.loader,
            seconds: document.seconds,
        },
    )
}

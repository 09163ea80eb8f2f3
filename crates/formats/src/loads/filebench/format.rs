//! filebench's personalities as one of the load formats.

use super::{Options, Placement, parse};
use crate::loads::{Load, LoadFormat};

pub const FORMAT: LoadFormat = LoadFormat {
    key: "filebench",
    about: "A personality of filebench, by its path relative to the study.",
    extensions: &["f"],
    words: None,
    file: |document| {
        let options = Options { placement: Placement::UnderDirectory, seconds: document.seconds };
        let personality = parse(document.source, options)?;
        Ok(Load { workload: personality.workload, warnings: personality.warnings, keeps_total: false })
    },
    converted: None,
};

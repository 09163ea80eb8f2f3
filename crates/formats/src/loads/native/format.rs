//! Workload files as one of the load formats.

use super::parse;
use crate::loads::{Load, LoadFormat};

pub const FORMAT: LoadFormat = LoadFormat {
    key: "workload",
    about: "A workload file, by its path relative to the study.",
    extensions: &["toml", "workload"],
    words: None,
    file: |document| Ok(Load { workload: parse(document.source)?, warnings: None, keeps_total: false }),
    converted: None,
};

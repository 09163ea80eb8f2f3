//! Workload files as one of the load formats.

use super::parse;
use crate::loads::{Load, LoadFormat, Reader};

pub struct Native;

impl LoadFormat for Native {
    fn key(&self) -> &'static str {
        "workload"
    }

    fn about(&self) -> &'static str {
        "A workload file, by its path relative to the study."
    }

    fn reader(&self) -> Reader {
        Reader::File {
            extensions: &["toml", "workload"],
            read: |document| Ok(Load { workload: parse(document.source)?, warnings: None, keeps_total: false }),
        }
    }
}

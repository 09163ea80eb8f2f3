//! filebench's personalities as one of the load formats.

use super::{Options, Placement, parse};
use crate::loads::{Load, LoadFormat, Reader};

pub struct Filebench;

impl LoadFormat for Filebench {
    fn key(&self) -> &'static str {
        "filebench"
    }

    fn about(&self) -> &'static str {
        "A personality of filebench, by its path relative to the study."
    }

    fn reader(&self) -> Reader {
        Reader::File {
            extensions: &["f"],
            read: |document| {
                let options = Options { placement: Placement::UnderDirectory, seconds: document.seconds };
                let personality = parse(document.source, options)?;
                Ok(Load { workload: personality.workload, warnings: personality.warnings, keeps_total: false })
            },
        }
    }
}

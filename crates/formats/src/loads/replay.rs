//! Recordings of applications as one of the load formats. What a study is handed of one says what and where it is: the recording
//! itself is for the lab to read.

use super::{Document, Load, LoadFormat};
use crate::{Diagnostics, diagnostic::Diagnostic};
use fstone_model::Workload;

pub(super) const FORMAT: LoadFormat = LoadFormat {
    key: "replay",
    about: "The path of a recording that `fstone record` made, relative to the study file: docs/record-replay.md.",
    extensions: &[],
    words: None,
    file: read,
    converted: None,
};

fn read(document: &mut Document<'_, '_>) -> Result<Load, Diagnostics> {
    let source = document.source;
    let replay = serde_json::from_str(source.text())
        .map_err(|_| Diagnostics::one(source, Diagnostic::whole(format!("{} is no recording", source.name()))))?;
    let name = source.name().rsplit('/').next().unwrap_or_default().trim_end_matches(".rec").to_owned();
    let workload = Workload { replay: Some(replay), ..Workload::new(name, Vec::new(), Vec::new()) };
    Ok(Load { workload, warnings: None, keeps_total: false })
}

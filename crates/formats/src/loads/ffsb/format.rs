//! FFSB profiles as one of the load formats.

use super::{Options, Placement, Profile, convert, parse};
use crate::{
    Diagnostics,
    loads::{Document, Load, LoadFormat},
};

pub const FORMAT: LoadFormat = LoadFormat {
    key: "ffsb",
    about: "An FFSB profile, by its path relative to the study.",
    extensions: &["ffsb"],
    words: None,
    file: |document| {
        let mut profile = profile(document)?;
        let warnings = profile.warnings.take();
        Ok(Load { workload: profile.workload(Placement::UnderDirectory), warnings, keeps_total: false })
    },
    converted: Some(|document| {
        let mut profile = profile(document)?;
        let warnings = profile.warnings.take();
        Ok((convert(&profile), warnings))
    }),
};

fn profile(document: &Document<'_, '_>) -> Result<Profile, Diagnostics> {
    parse(document.source, &Options { seconds: document.seconds })
}

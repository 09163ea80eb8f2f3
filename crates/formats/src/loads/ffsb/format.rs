//! FFSB profiles as one of the load formats.

use super::{Options, Placement, Profile, convert, parse};
use crate::{
    Diagnostics,
    loads::{Document, Load, LoadFormat, Reader},
};

pub struct Ffsb;

impl LoadFormat for Ffsb {
    fn key(&self) -> &'static str {
        "ffsb"
    }

    fn about(&self) -> &'static str {
        "An FFSB profile, by its path relative to the study."
    }

    fn reader(&self) -> Reader {
        Reader::File {
            extensions: &["ffsb"],
            read: |document| {
                let mut profile = profile(document)?;
                let warnings = profile.warnings.take();
                Ok(Load { workload: profile.workload(Placement::UnderDirectory), warnings, keeps_total: false })
            },
        }
    }

    fn convert(&self, document: &mut Document<'_, '_>) -> Result<(String, Option<Diagnostics>), Diagnostics> {
        let mut profile = profile(document)?;
        let warnings = profile.warnings.take();
        Ok((convert(&profile), warnings))
    }
}

fn profile(document: &Document<'_, '_>) -> Result<Profile, Diagnostics> {
    parse(document.source, &Options { seconds: document.seconds })
}

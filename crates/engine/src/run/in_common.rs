//! Building a fileset as one of many ranks.

use crate::error::LoadError;
use crate::fileset::Files;
use crate::fileset::build::{self, Built};
use crate::fileset::site::BuildContext;
use crate::peers::{Parted, Peers};
use fstone_model::workload::{Fileset, Sharing};

impl From<Parted> for LoadError {
    fn from(Parted: Parted) -> Self {
        Self::Parted
    }
}

/// What another rank sent cannot be read; only of another build of fstone, which ranks look for when they meet.
pub(super) fn unreadable(fileset: &Fileset) -> LoadError {
    LoadError::Unsupported {
        what: format!("has fileset {:?}, about which another rank sent nothing readable", fileset.name),
    }
}

/// Builds a fileset as its rank does: what all have in common is made by rank 0, and a directory that all have in common is marked by
/// it before others look.
pub(super) fn build(files: &mut Files, site: BuildContext<'_>, peers: &dyn Peers) -> Result<Built, LoadError> {
    let first = peers.rank() == 0;
    match files.spec.ranks {
        Sharing::Private => build::build(files, site),
        Sharing::Names => {
            let mut built = Built::default();
            match (first, site.at_once) {
                (true, true) => build::enter(files, site)?,
                (true, false) => built = build::build(files, site)?,
                (false, _) => {}
            }
            peers.meet()?;
            if first && !site.at_once { Ok(built) } else { build::build(files, site) }
        }
        Sharing::Shared | Sharing::Regions => {
            let built = if first { build::build(files, site)? } else { Built::default() };
            let told = peers.share(first.then(|| files.snapshot()))?;
            if !first {
                build::visit(files, site)?;
                files.restore(&told).ok_or_else(|| unreadable(&files.spec))?;
            }
            Ok(built)
        }
    }
}

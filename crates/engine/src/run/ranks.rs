//! Phases of one of many ranks on another rank's files.

use super::in_common::unreadable;
use super::running::Running;
use crate::error::LoadError;
use crate::fileset::build;
use crate::fileset::{Files, Sizes};
use fstone_model::workload::{ByFileset, Phase, RankShift};
use std::sync::atomic::Ordering;

impl Running<'_> {
    /// Whose files a phase works on, and who works on this rank's; `None` for its own.
    fn shifted(&self, number: usize) -> Option<RankShift> {
        let peers = self.options.observer.peers()?;
        peers.whose().get(number).copied().filter(|whose| whose.of != peers.rank())
    }

    /// Whether ranks hand each other their files. Then none sees all that is done to its own.
    pub(super) fn hands_files(&self) -> bool {
        self.options.observer.peers().is_some() && self.workload.phases.iter().any(Phase::is_shifted)
    }

    /// Takes another rank's files in place of its own, and gives those away; what they were.
    pub(super) fn take_others(&mut self, number: usize, phase: &Phase) -> Result<Vec<(usize, Files)>, LoadError> {
        let (Some(RankShift { of, by }), Some(peers)) = (self.shifted(number), self.options.observer.peers()) else {
            return Ok(Vec::new());
        };
        let actions = ByFileset::of_phases([phase]);
        let mut own = Vec::new();
        for index in 0..self.files.len() {
            let spec = &self.written.filesets[index];
            if spec.ranks.is_common() || actions.on(index).next().is_none() {
                continue;
            }
            let told = peers.exchange(by, of, self.files[index].snapshot())?;
            let theirs = spec.of_rank(of);
            let sizes: Sizes = build::sizes(&theirs, false)?;
            let mut files = Files::new(&theirs, sizes, build::names(theirs.amount));
            files.restore(&told).ok_or_else(|| unreadable(spec))?;
            build::visit(&mut files, self.site(index))?;
            own.push((index, std::mem::replace(&mut self.files[index], files)));
        }
        Ok(own)
    }

    /// Gives the other's files back, and takes its own as that rank left them. If an error has ended this rank's load, the others are still
    /// in their phase: nobody is waited for, so that they are told of it at once.
    pub(super) fn give_back(&mut self, number: usize, own: Vec<(usize, Files)>) -> Result<(), LoadError> {
        let Some(RankShift { of, by }) = self.shifted(number) else { return Ok(()) };
        let halted = self.halted.load(Ordering::Relaxed);
        let mut parted = None;
        for (index, files) in own {
            let theirs = std::mem::replace(&mut self.files[index], files);
            if halted {
                continue;
            }
            let Some(peers) = self.options.observer.peers() else { continue };
            match peers.exchange(of, by, theirs.snapshot()) {
                Ok(told) => {
                    let files = &mut self.files[index];
                    files.restore(&told).ok_or_else(|| unreadable(&files.spec))?;
                }
                Err(error) => parted = Some(error),
            }
        }
        parted.map_or(Ok(()), |error| Err(error.into()))
    }
}

//! Who owns the descriptor of a file that stays open.
//!
//! A file has one owner: every thread for itself where files are few and none comes or goes, so that no counter is shared
//! (see [`super::OwnTable`]), unless its group shares them; else the phase, for all its groups. A number that was closed comes back for another file, so
//! a kept descriptor carries a generation: what a thread remembers of the number (a mapping, a registration with a ring)
//! holds for that generation only.

use crate::error::LoadError;
use crate::fileset::{Files, Growing};
use crate::io::{Fd, kernel};
use crate::plan::GroupPlan;
use fstone_model::workload::OpenPolicy;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Descriptors that all threads together may have of files that stay open, before they share them.
const OWN_DESCRIPTORS: u64 = 16_384;
const OTHER_DESCRIPTORS: u64 = 128;

#[derive(Debug)]
pub(crate) enum Kept {
    Own,
    Shared(SharedDescriptors),
}

impl Kept {
    /// Decides it, raising the process's limit of open files as far as it goes.
    pub(crate) fn plan(groups: &[GroupPlan], files: &[Files], real: bool) -> Result<Self, LoadError> {
        let keeping = || groups.iter().filter(|group| group.spec.open.keeps());
        let files_of = |group: &GroupPlan| {
            let all = group.filesets.iter().map(|index| files[*index].table.names()).sum::<u64>();
            all.min(group.spec.tour_open.unwrap_or(u64::MAX))
        };
        let own: u64 = keeping().map(|group| files_of(group).saturating_mul(u64::from(group.spec.threads))).sum();
        if !real || keeping().next().is_none() {
            return Ok(Self::Own);
        }
        let sets = groups.iter().map(|group| group.descriptors + 1).max().unwrap_or(0);
        let keeps = |set: usize, index: &usize| {
            keeping().any(|group| group.descriptors == set && group.filesets.contains(index))
        };
        let kept: Vec<bool> = (0..sets)
            .flat_map(|set| (0..files.len()).map(move |index| (set, index)))
            .map(|(set, index)| keeps(set, &index))
            .collect();
        let with_files = || kept.iter().zip(files.iter().cycle());
        let shared: u64 = with_files().filter(|(kept, _)| **kept).map(|(_, files)| files.table.names()).sum();
        let limit = raise_descriptor_limit();
        let actions = || groups.iter().flat_map(|group| &group.actions);
        let changing = actions().any(|action| action.operation.nature().changes_names());
        let is_shared = keeping().any(|group| group.spec.open == OpenPolicy::KeepShared && group.spec.threads > 1);
        if own <= OWN_DESCRIPTORS && own + OTHER_DESCRIPTORS <= limit && !changing && !is_shared {
            return Ok(Self::Own);
        }
        if let Some(group) = groups.iter().find(|group| group.spec.tour_open.is_some()) {
            let what = format!(
                "has a tour that closes files in group {:?}, beside groups that make or remove files, share descriptors or keep more than {OWN_DESCRIPTORS} open",
                group.spec.name
            );
            return Err(LoadError::Unsupported { what });
        }
        if shared + OTHER_DESCRIPTORS > limit {
            return Err(LoadError::Descriptors { wanted: shared, limit });
        }
        let slots = with_files().map(|(kept, files)| kept.then(|| Growing::new(files.table.names().max(1))));
        let slots = slots.collect();
        Ok(Self::Shared(SharedDescriptors { slots, filesets: files.len(), generation: AtomicU32::new(0) }))
    }
}

impl Kept {
    pub(super) fn shared_of(&self, set: usize, fileset: usize) -> Option<KeptOf<'_>> {
        match self {
            Self::Own => None,
            Self::Shared(shared) => shared.of(set, fileset).map(KeptOf),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptOf<'a>(&'a Growing<AtomicU64>);

impl KeptOf<'_> {
    /// The descriptor of a file that the caller holds, or that nobody may remove.
    #[inline(always)]
    pub(super) fn get(self, file: u32) -> Option<Fd> {
        unpacked(self.0.at(u64::from(file)).load(Ordering::Acquire))
    }
}

/// Descriptors that this process may have, after it asked for all that it can get.
pub fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.unwrap_or(1 << 20);
    // Where raising is refused, the present limit stays.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(maximum), maximum: limit.maximum });
    if raised.is_ok() { maximum } else { limit.current.unwrap_or(maximum) }
}

/// The one generation of a thread's own: only the thread itself closes anything of it.
const OWN: u32 = 1;

/// A thread's own, by fileset and file: numbers alone, -1 for none, since the fastest loops look here.
#[derive(Debug, Default)]
pub(crate) struct OwnDescriptors(Vec<Vec<i32>>);

impl OwnDescriptors {
    #[inline(always)]
    pub(crate) fn get(&self, fileset: usize, file: u32) -> Option<Fd> {
        let number = *self.0.get(fileset)?.get(file as usize)?;
        if number < 0 {
            return None;
        }
        Some(Fd::open(number).kept(OWN))
    }

    pub(super) fn put(&mut self, fileset: usize, file: u32, opened: Fd) -> Fd {
        if self.0.len() <= fileset {
            self.0.resize_with(fileset + 1, Vec::new);
        }
        let files = &mut self.0[fileset];
        if files.len() <= file as usize {
            files.resize(file as usize + 1, -1);
        }
        files[file as usize] = opened.number;
        opened.kept(OWN)
    }

    pub(super) fn take(&mut self, fileset: usize, file: u32) -> Option<Fd> {
        let fd = self.get(fileset, file)?;
        self.0[fileset][file as usize] = -1;
        Some(fd)
    }

    pub(super) fn into_all(self) -> impl Iterator<Item = Fd> {
        self.0.into_iter().flatten().filter(|number| *number >= 0).map(|number| Fd::open(number).kept(OWN))
    }
}

/// The phase's, by set, fileset and file: groups that open files in different ways have different sets. As words of a
/// generation and a number, 0 where none is open. Files that come into being while it runs have their places, too. What is open
/// when it is dropped is closed.
#[derive(Debug)]
pub(crate) struct SharedDescriptors {
    /// By set and fileset; none for filesets of which no group of the set keeps files open.
    slots: Vec<Option<Growing<AtomicU64>>>,
    filesets: usize,
    generation: AtomicU32,
}

fn packed(fd: Fd) -> u64 {
    u64::from(fd.generation) << 32 | u64::from(fd.number as u32)
}

fn unpacked(word: u64) -> Option<Fd> {
    (word != 0).then(|| Fd::open(word as u32 as i32).kept((word >> 32) as u32))
}

impl SharedDescriptors {
    fn of(&self, set: usize, fileset: usize) -> Option<&Growing<AtomicU64>> {
        self.slots[set * self.filesets + fileset].as_ref()
    }

    fn slot(&self, set: usize, fileset: usize, file: u32) -> Option<&AtomicU64> {
        self.of(set, fileset).map(|slots| slots.at(u64::from(file)))
    }

    /// The descriptor of a file that the caller holds.
    #[inline]
    pub(super) fn get(&self, set: usize, fileset: usize, file: u32) -> Option<Fd> {
        unpacked(self.slot(set, fileset, file)?.load(Ordering::Acquire))
    }

    /// Takes it over; the error is the one that another thread put there before, and the caller's is still its own.
    pub(super) fn put(&self, set: usize, fileset: usize, file: u32, opened: Fd) -> Result<Fd, Fd> {
        let Some(slot) = self.slot(set, fileset, file) else { return Ok(opened) };
        // 0 is of descriptors that are not kept.
        let generation = self.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        let fd = opened.kept(generation);
        match slot.compare_exchange(0, packed(fd), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(fd),
            Err(theirs) => Err(unpacked(theirs).unwrap_or(fd)),
        }
    }

    /// Gives those of every set to the caller, who holds the file alone.
    pub(super) fn take(&self, fileset: usize, file: u32) -> impl Iterator<Item = Fd> {
        let slots = self.slots.iter().skip(fileset).step_by(self.filesets).flatten();
        slots.filter_map(move |slots| unpacked(slots.at(u64::from(file)).swap(0, Ordering::AcqRel)))
    }
}

impl SharedDescriptors {
    /// Closes all that are open, when no thread is at work any more, and tells what failed.
    pub(crate) fn close(&self, mut failed: impl FnMut(Errno)) {
        for slot in self.slots.iter().flatten().flat_map(Growing::iter) {
            if let Some(Err(errno)) = unpacked(slot.swap(0, Ordering::AcqRel)).map(kernel::close) {
                failed(errno);
            }
        }
    }
}

impl Drop for SharedDescriptors {
    fn drop(&mut self) {
        // Only where the phase did not come to its end are there any left.
        self.close(|_| {});
    }
}

//! Files that a load names in directories where they may be the user's own.

use super::beneath::Held;
use super::build::Builder;
use super::existing::{ExistingFile, Planned};
use super::{Files, PathBuffer};
use crate::error::LoadError;
use crate::io::kernel;
use crate::options::Ownership;
use fstone_model::workload::{Amount, Existing};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;

/// Up to so many names are looked for one by one.
const MANY_NAMES: u64 = 1024;

impl Builder<'_> {
    /// The files that a load names, in their order: how large each is to be, and what becomes of an existing file of that name. Empty if no
    /// name is taken. Changes nothing.
    pub(super) fn planned(&self, files: &Files, directory: BorrowedFd<'_>) -> Result<Vec<Planned>, LoadError> {
        let Amount::Files(count) = files.spec.amount else {
            let what = format!("has fileset {:?}, whose files cannot be named before they are made", self.name);
            return Err(LoadError::Unsupported { what });
        };
        // One look at the directory in place of one at each of many names, which may be a test's and not yet be known to any cache.
        let looks_at_once = count > MANY_NAMES || self.site.options.ownership == Ownership::AsWritten;
        if looks_at_once && !self.has_names(files, directory)? {
            return Ok(Vec::new());
        }
        let present = Self::present(&files.spec, count);
        let mut random = self.sizes();
        let mut path = PathBuffer::default();
        let mut planned = Vec::new();
        for file in 0..count {
            if file.is_multiple_of(1024) {
                self.told.goes_on()?;
            }
            if self.site.renames {
                files.layout.file(&mut path, file as u32, true);
                self.is_free(directory, &path)?;
            }
            files.layout.file(&mut path, file as u32, false);
            // What comes into being later is not there at the start.
            let (size, existing) = match file < present {
                true => (files.sizes.draw(&mut random), files.spec.existing),
                false => (0, Existing::Rebuild),
            };
            let fate = self.fate(directory, &path, size, existing)?;
            let size = match fate {
                // Of sizes that are drawn, its own is as good as any.
                Some(ExistingFile::Used(has)) if has >= files.sizes.least() => has.min(size),
                _ => size,
            };
            planned.push(Planned { size, fate });
        }
        Ok(planned)
    }

    fn has_names(&self, files: &Files, directory: BorrowedFd<'_>) -> Result<bool, LoadError> {
        for entry in (Held { directory, path: &self.root }).entries().map_err(|failure| self.failure(failure))? {
            let (name, kind) = entry.map_err(|failure| self.failure(failure))?;
            if files.layout.is_ours(name.to_bytes(), kind.is_dir()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What becomes of what has a name, if anything has. What is in the way is an error.
    fn fate(
        &self,
        directory: BorrowedFd<'_>,
        path: &PathBuffer,
        size: u64,
        existing: Existing,
    ) -> Result<Option<ExistingFile>, LoadError> {
        let entry = match kernel::lstat(directory, path.as_c()) {
            Ok(entry) => entry,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(errno) => return Err(self.refused("lstat", path, errno)),
        };
        let target = match kernel::stat(directory, path.as_c()) {
            Ok(target) => Some(target),
            Err(Errno::NOENT | Errno::NOTDIR) => None,
            Err(errno) => return Err(self.refused("stat", path, errno)),
        };
        match ExistingFile::of(&entry, target.as_ref(), size, existing, &self.site) {
            ExistingFile::Refused(problem) => {
                Err(self.in_the_way(&self.root, vec![format!("{} ({problem})", path.shown())]))
            }
            fate => Ok(Some(fate)),
        }
    }

    /// A rename would replace what has a file's other name.
    fn is_free(&self, directory: BorrowedFd<'_>, path: &PathBuffer) -> Result<(), LoadError> {
        match kernel::lstat(directory, path.as_c()) {
            Ok(_) => Err(self.in_the_way(&self.root, vec![format!("{} (a rename would replace it)", path.shown())])),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
            Err(errno) => Err(self.refused("lstat", path, errno)),
        }
    }

    pub(super) fn remove_named(&self, files: &Files, planned: &[Planned]) -> Result<(), LoadError> {
        let mut path = PathBuffer::default();
        for (file, _) in planned.iter().enumerate().filter(|(_, planned)| planned.fate == Some(ExistingFile::Replaced))
        {
            files.layout.file(&mut path, file as u32, false);
            match kernel::unlink(files.directory(), path.as_c()) {
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(errno) => return Err(self.refused("unlink", &path, errno)),
            }
        }
        Ok(())
    }

    pub(super) fn warn_of_short(&mut self, files: &Files, planned: &[Planned]) {
        let mut path = PathBuffer::default();
        let (mut first, mut more) = (None, 0u64);
        for (file, Planned { size, fate }) in planned.iter().enumerate() {
            let Some(ExistingFile::Used(has)) =
                fate.filter(|fate| matches!(fate, ExistingFile::Used(has) if has < size))
            else {
                continue;
            };
            if first.is_some() {
                more += 1;
                continue;
            }
            files.layout.file(&mut path, file as u32, false);
            first = Some(format!("{} has {has} bytes, and the load would use {size}", path.shown()));
        }
        if let Some(first) = first {
            let more = if more == 0 { String::new() } else { format!(" (and {more} more like it)") };
            self.built.warnings.push(format!(
                "{first}{more}. It was there before the load, which does not lengthen or replace it: a read beyond its end fails. \
                 Remove it to have it made anew"
            ));
        }
    }
}

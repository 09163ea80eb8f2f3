//! Whether the files that a load of stamped data left are all there, as large as they were made. What is in them
//! `verify` tells, which has to read them all.

use super::running::Running;
use crate::fileset::{Files, PathBuffer};
use crate::io::kernel;
use crate::measure::{Call, Collector};
use rustix::io::Errno;

impl Running<'_> {
    /// Notes every file that is missing or too short as an error of the load.
    pub(super) fn look_for_files(&self) {
        self.files.iter().enumerate().filter(|(index, _)| self.built[*index]).for_each(|(_, files)| {
            look(files, &self.collector);
        });
    }
}

fn look(files: &Files, collector: &Collector) {
    let mut path = PathBuffer::default();
    for file in files.table.live_files() {
        files.layout.file(&mut path, file, files.table.renamed(file));
        let wrong = match kernel::stat(files.directory(), path.as_c()) {
            Ok(stat) if u64::try_from(stat.st_size).is_ok_and(|size| size >= files.table.size(file)) => continue,
            // Shorter than what was written to it.
            Ok(_) => Errno::NODATA,
            Err(errno) => errno,
        };
        collector.error("verify", Call::Verify.name(), &files.shown(&path.shown()), wrong, None);
    }
}

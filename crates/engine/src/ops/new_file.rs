//! Opening a new file, which all that make files begin with.

use crate::fileset::build::stamp_name;
use crate::io::{Fd, Io};
use crate::measure::Call;
use crate::worker::{Attempt, Worker};
use rustix::fs::OFlags;

/// Opens a new file of a number that the table gave away, which gets it back when that fails.
pub(super) fn open_new<E: Io>(worker: &mut Worker<'_, E>, fileset: usize, file: u32, access: OFlags) -> Attempt<Fd> {
    let files = worker.files(fileset);
    files.layout.file(&mut worker.path, file, false);
    let flags = worker.data_flags(access | OFlags::CREATE | OFlags::TRUNC);
    let opened = worker.call(Call::Create, |worker| worker.io.open(files.directory(), worker.path.as_c(), flags));
    match opened {
        Ok(_) => {
            if let Some(ledger) = worker.load.depot.ledger() {
                ledger.created(stamp_name(fileset as u32, file));
            }
        }
        Err(_) => files.table.remove(file),
    }
    opened
}

//! What tests of several kinds of drives need.

use crate::Drive;

/// When a request is complete. Others that are complete before are taken, too.
pub(crate) fn at(drive: &mut Drive, id: u64) -> u64 {
    while let Some(event) = drive.next_event() {
        while let Some((at_ns, done)) = drive.completed(event) {
            if done == id {
                return at_ns;
            }
        }
    }
    panic!("{id} was never complete")
}

//! What an agent remembers of the sequence of calls that it carried out last.

use fstone_engine::sequences::{Looked, Performed};
use std::path::Path;

#[derive(Debug)]
pub(crate) struct Carried {
    performed: Performed,
    /// The disk's marks before its first call and after each.
    marks: Vec<u64>,
}

impl Carried {
    pub(super) const fn new(performed: Performed, marks: Vec<u64>) -> Self {
        Self { performed, marks }
    }

    pub(super) fn look(&self, place: &Path, mark: Option<u64>) -> Looked {
        // The first mark is set before the first call.
        let set = self.marks.partition_point(|known| mark.is_some_and(|mark| *known <= mark));
        self.performed.look(place, set.saturating_sub(1))
    }
}

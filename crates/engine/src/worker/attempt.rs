//! An attempt at an operation, and why it was not completed.

use crate::measure::Call;
use rustix::io::Errno;

/// An operation's failure. Of whole words, like [`Call`]: results that the compiler has to take apart byte by byte
/// cost the loop a fifth of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) call: Call,
    number: i32,
}

impl Fault {
    pub(crate) fn new(call: Call, errno: Errno) -> Self {
        Self { call, number: errno.raw_os_error() }
    }

    pub(crate) fn errno(self) -> Errno {
        Errno::from_raw_os_error(self.number)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Incomplete {
    Fault(Fault),
    /// The file was removed by another thread, or there is none for the moment: to be chosen again.
    Missed,
    Exhausted,
    Stopped,
}

impl Incomplete {
    pub(crate) fn fault(call: Call, errno: Errno) -> Self {
        Self::Fault(Fault::new(call, errno))
    }
}

pub(crate) type Attempt<T> = std::result::Result<T, Incomplete>;

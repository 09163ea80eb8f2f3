//! CPU time of this process and its children, from getrusage(2).

#![expect(unsafe_code, reason = "getrusage has no safe wrapper among our dependencies")]

use std::time::Duration;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessTimes {
    pub user: Duration,
    pub system: Duration,
}

impl ProcessTimes {
    /// That of this process with all its threads, and of those of its descendants that have been waited for.
    pub fn now() -> Option<Self> {
        let (own, children) = (usage(libc::RUSAGE_SELF)?, usage(libc::RUSAGE_CHILDREN)?);
        Some(Self { user: own.user + children.user, system: own.system + children.system })
    }

    pub fn since(&self, earlier: &Self) -> Self {
        Self { user: self.user.saturating_sub(earlier.user), system: self.system.saturating_sub(earlier.system) }
    }

    pub fn plus(&self, other: &Self) -> Self {
        Self { user: self.user + other.user, system: self.system + other.system }
    }

    pub fn total(&self) -> Duration {
        self.user + self.system
    }
}

fn usage(who: libc::c_int) -> Option<ProcessTimes> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for a write of one rusage, which is all that getrusage does with it.
    let result = unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    // SAFETY: a rusage is plain numbers, for which the zeros it was made of are valid, too.
    let usage = unsafe { usage.assume_init() };
    let time = |time: libc::timeval| {
        let micros = u64::try_from(time.tv_usec).unwrap_or(0);
        Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0)) + Duration::from_micros(micros)
    };
    (result == 0).then(|| ProcessTimes { user: time(usage.ru_utime), system: time(usage.ru_stime) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waited_for_children_are_counted() {
        let begin = ProcessTimes::now().expect("getrusage");
        let mut since = ProcessTimes::default();
        // Each run of a process costs some; how much is the machine's business.
        while since.total().is_zero() {
            std::process::Command::new("true").status().expect("true");
            since = ProcessTimes::now().expect("getrusage").since(&begin);
        }
        assert_eq!(begin.since(&begin).total(), Duration::ZERO);
        assert_eq!(begin.since(&ProcessTimes::now().expect("getrusage")).total(), Duration::ZERO, "never negative");
    }
}

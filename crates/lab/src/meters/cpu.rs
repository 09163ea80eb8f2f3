//! The whole machine's CPU time, from /proc/stat (proc_stat(5)).

/// CPU time of all CPUs by kind, in ticks (USER_HZ, in practice 1/100 s). The kinds do not overlap: the kernel counts
/// guest time, which it also shows apart, as user time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    pub user: u64,
    pub nice: u64,
    pub system: u64,
    pub idle: u64,
    /// Idle with I/O outstanding.
    pub iowait: u64,
    pub irq: u64,
    pub softirq: u64,
    /// Taken by the hypervisor for something else.
    pub steal: u64,
    pub cpus: u32,
}

impl CpuTimes {
    /// As of now; `None` when /proc/stat cannot be read.
    pub fn read() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut fields = lines.next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
        let mut field = || fields.next()?.parse::<u64>().ok();
        Some(Self {
            user: field()?,
            nice: field()?,
            system: field()?,
            idle: field()?,
            iowait: field()?,
            irq: field()?,
            softirq: field()?,
            steal: field()?,
            cpus: u32::try_from(lines.take_while(|line| line.starts_with("cpu")).count()).ok()?,
        })
    }

    /// What was added since an earlier reading. idle and iowait may go back a little, as proc_stat(5) warns, and count
    /// as nothing then.
    pub fn since(&self, earlier: &Self) -> Self {
        Self { cpus: self.cpus, ..self.with(earlier, u64::saturating_sub) }
    }

    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn with(&self, other: &Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            user: of(self.user, other.user),
            nice: of(self.nice, other.nice),
            system: of(self.system, other.system),
            idle: of(self.idle, other.idle),
            iowait: of(self.iowait, other.iowait),
            irq: of(self.irq, other.irq),
            softirq: of(self.softirq, other.softirq),
            steal: of(self.steal, other.steal),
            cpus: self.cpus.max(other.cpus),
        }
    }

    pub const fn total(&self) -> u64 {
        self.busy().saturating_add(self.idle).saturating_add(self.iowait).saturating_add(self.steal)
    }

    /// Time in which this machine did something: neither idle nor stolen.
    pub const fn busy(&self) -> u64 {
        self.user
            .saturating_add(self.nice)
            .saturating_add(self.system)
            .saturating_add(self.irq)
            .saturating_add(self.softirq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = "cpu  189900 7 17055 250983 1643 3 214 2982 99 0\n\
                            cpu0 94255 0 7490 127292 757 0 66 1633 0 0\n\
                            cpu1 95644 0 9564 123690 885 0 148 1349 0 0\n\
                            intr 1 2 3\nctxt 9\n";

    #[test]
    fn a_recorded_text_is_read() {
        let times = CpuTimes::parse(RECORDED).expect("a /proc/stat");
        assert_eq!((times.user, times.nice, times.system, times.idle), (189_900, 7, 17_055, 250_983));
        assert_eq!((times.iowait, times.irq, times.softirq, times.steal, times.cpus), (1643, 3, 214, 2982, 2));
        assert_eq!(times.busy(), 189_900 + 7 + 17_055 + 3 + 214, "guest time is in user time already");
        assert_eq!(times.total(), times.busy() + 250_983 + 1643 + 2982);
    }

    #[test]
    fn hostile_and_short_texts_are_not() {
        for text in ["", "cpu", "cpu  1 2 3", "cpu  1 2 3 4 5 6 7 x", "cpu  -1 2 3 4 5 6 7 8", "intr 1 2 3 4 5 6 7 8 9"]
        {
            assert_eq!(CpuTimes::parse(text), None, "{text:?}");
        }
        let most = u64::MAX;
        let huge = format!("cpu  {most} {most} {most} {most} {most} {most} {most} {most}\n");
        assert_eq!(CpuTimes::parse(&huge).expect("numbers").total(), most, "no overflow");
        assert_eq!(CpuTimes::parse(&huge.replace(&most.to_string(), "99999999999999999999")), None);
    }

    #[test]
    fn counters_that_go_back_count_as_nothing() {
        let earlier = CpuTimes { idle: 10, iowait: 10, user: 1, ..CpuTimes::default() };
        let later = CpuTimes { idle: 14, iowait: 9, user: 2, ..CpuTimes::default() };
        let since = later.since(&earlier);
        assert_eq!((since.idle, since.iowait, since.user), (4, 0, 1));
    }
}

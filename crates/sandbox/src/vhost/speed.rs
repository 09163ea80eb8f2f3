//! A device of known speed: when a request may complete. Pure arithmetic on nanoseconds.

use fstone_model::units::format_duration;
use std::fmt;
use std::time::Duration;

/// The longest time between two requests that a client may make up for. It has to cover the guest's own work and the
/// host's scheduling delays, or the device would be slower than its name. After a longer one the device was idle: it has
/// saved up nothing, and what it was late before is forgotten, or a load would begin faster than the device is.
const SAVED_NS: u64 = 20_000_000;

/// What the device itself was late may be caught up beyond that, but not more than this at once.
const MAX_EXCUSED_NS: u64 = 1_000_000_000;

/// The share of each error by which the lead is corrected: an average over some sixteen requests.
const CORRECTION: i64 = 16;

/// A speed for a device. What is `None` is as fast as the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Speed {
    /// From the request's arrival at the device until its completion leaves it; the mean is kept exact.
    pub latency: Option<Duration>,
    pub flush_latency: Option<Duration>,
    pub iops: Option<u32>,
    pub bytes_per_second: Option<u64>,
}

impl Speed {
    pub const fn is_unlimited(&self) -> bool {
        self.latency.is_none() && self.flush_latency.is_none() && self.iops.is_none() && self.bytes_per_second.is_none()
    }

    /// The latency, when it is what decides about small requests one at a time, and not a rate.
    pub fn deciding_latency(&self) -> Option<Duration> {
        self.latency.filter(|latency| latency.as_nanos() > self.cost_ns(4096).unwrap_or(0))
    }

    /// What the rates ask for a request of so many bytes; `None` without a rate.
    fn cost_ns(&self, bytes: u64) -> Option<u128> {
        const SECOND: u128 = 1_000_000_000;
        let by_count = self.iops.map(|iops| SECOND / u128::from(iops.max(1)));
        let by_bytes = self.bytes_per_second.map(|rate| u128::from(bytes) * SECOND / u128::from(rate.max(1)));
        by_count.into_iter().chain(by_bytes).max()
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unlimited() {
            return f.write_str("as fast as the host");
        }
        let parts = [
            self.iops.map(|iops| format!("{iops} requests a second")),
            self.bytes_per_second.map(|bytes| format!("{bytes} bytes a second")),
            self.latency.map(|latency| format!("{} a request", format_duration(latency))),
            self.flush_latency.map(|latency| format!("{} a flush", format_duration(latency))),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Reads or writes this many bytes.
    Transfer(u64),
    Flush,
    Free,
}

/// When a request should complete, and how it will be judged whether it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) at_ns: u64,
    decided: Decided,
}

impl Due {
    pub(crate) const fn by_model(arrived_ns: u64) -> Self {
        Self { at_ns: arrived_ns, decided: Decided::Host }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decided {
    /// Nothing: it takes as long as it takes.
    Host,
    Rate,
    /// Its latency, which asks for this completion time.
    Latency(u64),
}

/// Applies a speed to a stream of requests.
///
/// Rates are kept in virtual time: each request takes its cost from `next_ns`, which never lags behind the clock by
/// more than [`SAVED_NS`]. A client with one request at a time thus gets the exact rate, although it needs time of
/// its own between two requests.
#[derive(Debug)]
pub(crate) struct Pacer {
    speed: Speed,
    /// Taken off the latencies.
    transport: Duration,
    /// When the device is free again, by the rates. `None` before the first request.
    next_ns: Option<u64>,
    /// How late completions are on average: timers fire late.
    lead_ns: i64,
    /// What the device was late when a rate decided, and the client could not make up for yet. How long the host takes for a
    /// flush is not among it: a rate says nothing of flushes.
    excused_ns: u64,
    /// The last completion; lateness up to here is counted.
    completed_ns: u64,
}

impl Pacer {
    pub(crate) const fn new(speed: Speed) -> Self {
        Self { speed, transport: Duration::ZERO, next_ns: None, lead_ns: 0, excused_ns: 0, completed_ns: 0 }
    }

    /// What a request spends on its way to the device and back is taken off the latencies, so that the guest sees them as
    /// asked for.
    pub(crate) const fn set_transport(&mut self, transport: Duration) {
        self.transport = transport;
    }

    pub(crate) fn admit(&mut self, now_ns: u64, work: Work) -> Due {
        let latency = match work {
            Work::Transfer(_) => self.speed.latency,
            Work::Flush => self.speed.flush_latency.or(self.speed.latency),
            Work::Free => None,
        };
        let by_rate = match work {
            Work::Transfer(bytes) => self.by_rate(now_ns, bytes),
            Work::Flush | Work::Free => None,
        };
        let by_latency = latency.map(|latency| now_ns + latency.saturating_sub(self.transport).as_nanos() as u64);
        match (by_latency, by_rate) {
            (Some(wanted), rate) if rate.is_none_or(|at_ns| wanted >= at_ns) => {
                let at_ns = wanted.saturating_sub(self.lead_ns.max(0) as u64).max(now_ns);
                Due { at_ns, decided: Decided::Latency(wanted) }
            }
            (_, Some(at_ns)) => Due { at_ns, decided: Decided::Rate },
            (_, None) => Due { at_ns: now_ns, decided: Decided::Host },
        }
    }

    /// When a transfer is due by the rates; `None` without a rate.
    fn by_rate(&mut self, now_ns: u64, bytes: u64) -> Option<u64> {
        let cost = self.speed.cost_ns(bytes)?;
        let free = match self.next_ns {
            Some(next) if now_ns <= next.max(self.completed_ns).saturating_add(SAVED_NS) => {
                next.max(now_ns.saturating_sub(SAVED_NS + self.excused_ns))
            }
            _ => now_ns,
        };
        let next = free.saturating_add(u64::try_from(cost).unwrap_or(u64::MAX));
        self.next_ns = Some(next);
        self.excused_ns = self.excused_ns.min(now_ns.saturating_sub(next));
        Some(next.max(now_ns))
    }

    pub(crate) fn completed(&mut self, due: Due, now_ns: u64) {
        match due.decided {
            Decided::Latency(wanted) => {
                let late = now_ns as i64 - wanted as i64;
                // A single stall of the host must not make the next hundred requests early.
                self.lead_ns = (self.lead_ns + late.clamp(-200_000, 200_000) / CORRECTION).clamp(0, 500_000);
            }
            Decided::Rate => {
                // The device's own doing; a rate must not suffer from it. What is late together is late once.
                let late = now_ns.saturating_sub(due.at_ns.max(self.completed_ns));
                self.excused_ns = self.excused_ns.saturating_add(late).min(MAX_EXCUSED_NS);
            }
            Decided::Host => (),
        }
        self.completed_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests one at a time; the client needs `think_ns` between two, the timer is late by `late_ns`.
    fn closed_loop(speed: Speed, bytes: u64, requests: u64, think_ns: u64, late_ns: u64) -> u64 {
        closed_loop_of(&mut Pacer::new(speed), bytes, requests, think_ns, late_ns)
    }

    fn closed_loop_of(pacer: &mut Pacer, bytes: u64, requests: u64, think_ns: u64, late_ns: u64) -> u64 {
        let mut now = 5_000_000_000;
        let start = now;
        for _ in 0..requests {
            let due = pacer.admit(now, Work::Transfer(bytes));
            now = due.at_ns.max(now) + late_ns;
            pacer.completed(due, now);
            now += think_ns;
        }
        now - start
    }

    #[test]
    fn rates_are_exact_although_client_and_timer_take_their_time() {
        for iops in [500u32, 4000] {
            let speed = Speed { iops: Some(iops), ..Speed::default() };
            let took = closed_loop(speed, 4096, u64::from(iops) * 10, 100_000, 60_000);
            assert!((took as f64 / 10e9 - 1.0).abs() < 0.002, "{iops}: {took}");
        }
        for rate in [20_000_000u64, 50_000_000] {
            let speed = Speed { bytes_per_second: Some(rate), ..Speed::default() };
            let took = closed_loop(speed, 128 << 10, rate * 10 / (128 << 10), 150_000, 80_000);
            assert!((took as f64 / 10e9 - 1.0).abs() < 0.003, "{rate}: {took}");
        }
    }

    #[test]
    fn mean_latency_is_exact_although_the_timer_is_late() {
        let speed = Speed { latency: Some(Duration::from_millis(1)), ..Speed::default() };
        let took = closed_loop(speed, 4096, 10_000, 0, 70_000);
        assert!((took as f64 / 10e9 - 1.0).abs() < 0.002, "{took}");
        let mut with_transport = Pacer::new(speed);
        with_transport.set_transport(Duration::from_micros(90));
        let took = closed_loop_of(&mut with_transport, 4096, 10_000, 90_000, 70_000);
        assert!((took as f64 / 10e9 - 1.0).abs() < 0.002, "{took}");
    }

    #[test]
    fn latency_decides_where_no_rate_is_slower() {
        let latency = Some(Duration::from_millis(1));
        assert_eq!(Speed { latency, ..Speed::default() }.deciding_latency(), latency);
        assert_eq!(Speed { latency, iops: Some(4000), ..Speed::default() }.deciding_latency(), latency);
        assert_eq!(Speed { latency, iops: Some(500), ..Speed::default() }.deciding_latency(), None);
        assert_eq!(Speed { latency, bytes_per_second: Some(1 << 20), ..Speed::default() }.deciding_latency(), None);
        assert_eq!(Speed::default().deciding_latency(), None);
        assert_eq!(
            Speed { latency, iops: Some(500), ..Speed::default() }.to_string(),
            "500 requests a second, 1 ms a request"
        );
    }

    #[test]
    fn idle_time_earns_nothing() {
        let immediate_after = |pause_ns: u64| {
            let mut pacer = Pacer::new(Speed { iops: Some(1000), ..Speed::default() });
            let first = pacer.admit(0, Work::Transfer(512));
            assert_eq!(first.at_ns, 1_000_000);
            pacer.completed(first, first.at_ns);
            let later = first.at_ns + pause_ns;
            (0..100).filter(|_| pacer.admit(later, Work::Transfer(512)).at_ns <= later).count()
        };
        assert_eq!(immediate_after(15_000_000), 15);
        assert_eq!(immediate_after(21_000_000), 0);
        assert_eq!(immediate_after(60_000_000_000), 0);
    }

    /// Before a load there are slow flushes, and bursts of which each request is late by the same stall.
    #[test]
    fn a_load_begins_at_its_rate_whatever_was_late_before() {
        let mut pacer = Pacer::new(Speed { iops: Some(1000), ..Speed::default() });
        let burst: Vec<Due> = (0..32).map(|_| pacer.admit(0, Work::Transfer(512))).collect();
        burst.into_iter().for_each(|due| pacer.completed(due, 500_000_000));
        for flush in 1..10 {
            let arrived = 500_000_000 + flush * 10_000_000;
            let due = pacer.admit(arrived, Work::Flush);
            pacer.completed(due, arrived + 9_000_000);
        }
        assert_eq!(pacer.excused_ns, 499_000_000, "flushes are not excused");
        let later = 2_000_000_000;
        let last = (0..100).map(|_| pacer.admit(later, Work::Transfer(512)).at_ns).last();
        assert_eq!(last, Some(later + 100_000_000));
    }

    /// The host stops the device for a second, once; a client that does its part still gets the rate.
    #[test]
    fn a_stall_of_the_device_is_made_up_for() {
        let mut pacer = Pacer::new(Speed { iops: Some(1000), ..Speed::default() });
        let mut now = 0;
        for request in 0..10_000 {
            let due = pacer.admit(now, Work::Transfer(512));
            now = due.at_ns.max(now) + if request == 1000 { 900_000_000 } else { 0 };
            pacer.completed(due, now);
        }
        assert!((now as f64 / 10e9 - 1.0).abs() < 0.001, "{now}");
    }

    #[test]
    fn many_at_once_share_a_rate_but_not_a_latency() {
        let mut rated = Pacer::new(Speed { iops: Some(1000), ..Speed::default() });
        let last = (0..10).map(|_| rated.admit(0, Work::Transfer(512)).at_ns).last();
        assert_eq!(last, Some(10_000_000));
        let mut slow = Pacer::new(Speed { latency: Some(Duration::from_millis(1)), ..Speed::default() });
        assert!((0..10).all(|_| slow.admit(0, Work::Transfer(512)).at_ns == 1_000_000));
        assert_eq!(slow.admit(0, Work::Flush).at_ns, 1_000_000);
        assert_eq!(slow.admit(0, Work::Free).at_ns, 0);
    }
}

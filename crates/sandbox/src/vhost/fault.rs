//! Faults to inject into a disk.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    Read,
    /// Writes sectors, zeroes included.
    Write,
    Flush,
    Discard,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Of this kind only, or of any.
    pub operation: Option<Operation>,
    pub trigger: Trigger,
    pub effect: Effect,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// The n-th, counted from 1.
    Nth(u64),
    From(u64),
    /// Those that touch a sector in this range of 512-byte sectors; flushes never do.
    Sectors(Range<u64>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It fails with an I/O error and touches nothing.
    Error,
    Stall,
}

#[derive(Debug)]
pub(crate) struct Faults {
    /// Each with how many requests of its kind have been seen.
    faults: Vec<(Fault, u64)>,
}

impl Faults {
    pub(crate) fn new(faults: Vec<Fault>) -> Self {
        Self { faults: faults.into_iter().map(|fault| (fault, 0)).collect() }
    }

    /// What happens to this request, if anything; the first fault that hits decides.
    pub(crate) fn hit(&mut self, operation: Operation, sectors: &Range<u64>) -> Option<Effect> {
        let mut effect = None;
        for (fault, seen) in &mut self.faults {
            if fault.operation.is_some_and(|only| only != operation) {
                continue;
            }
            *seen += 1;
            let hit = match &fault.trigger {
                Trigger::Nth(n) => *seen == *n,
                Trigger::From(n) => *seen >= *n,
                Trigger::Sectors(bad) => sectors.start.max(bad.start) < sectors.end.min(bad.end),
            };
            if hit {
                effect = effect.or(Some(fault.effect));
            }
        }
        effect
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(trigger: Trigger, requests: &[(Operation, Range<u64>)]) -> Vec<bool> {
        let fault = Fault { operation: Some(Operation::Write), trigger, effect: Effect::Error };
        let mut faults = Faults::new(vec![fault]);
        requests.iter().map(|(operation, sectors)| faults.hit(*operation, sectors).is_some()).collect()
    }

    #[test]
    fn each_trigger_hits_what_it_says() {
        let requests = [
            (Operation::Write, 0..8),
            (Operation::Read, 8..16),
            (Operation::Write, 8..16),
            (Operation::Flush, 0..0),
            (Operation::Write, 16..24),
        ];
        assert_eq!(hits(Trigger::Nth(2), &requests), [false, false, true, false, false]);
        assert_eq!(hits(Trigger::From(2), &requests), [false, false, true, false, true]);
        assert_eq!(hits(Trigger::Sectors(15..17), &requests), [false, false, true, false, true]);
        assert_eq!(hits(Trigger::Sectors(24..99), &requests), [false; 5]);
    }

    #[test]
    fn the_first_of_several_decides() {
        let any = |effect| Fault { operation: None, trigger: Trigger::From(1), effect };
        let mut faults = Faults::new(vec![any(Effect::Stall), any(Effect::Error)]);
        assert_eq!(faults.hit(Operation::Flush, &(0..0)), Some(Effect::Stall));
    }
}

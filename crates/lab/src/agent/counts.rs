//! The counts of a guest's disk as figures of its steps.

use super::protocol::StepReply;
use crate::meters;
use fstone_model::{
    LoadReport,
    metric::{Figure, catalog},
};
use fstone_sandbox::vhost::DiskCounters;

/// Puts what the disk counted in place of what the guest's kernel did: every request, and flushes for certain. `at_mark`
/// gives its counts as they were at a mark.
pub(crate) fn count_exactly(reply: &mut StepReply, at_mark: &dyn Fn(u64) -> Option<DiskCounters>) {
    let figures = &mut reply.figures;
    let parts = meters::marks(figures).into_iter();
    let counted: Option<Vec<DiskCounters>> =
        parts.map(|(begin, end)| Some(at_mark(end)?.since(&at_mark(begin)?))).collect();
    figures.retain(|figure| !meters::is_mark(figure));
    let Some(counted) = counted.filter(|parts| !parts.is_empty()) else { return };
    for figure in counted_figures(&counted, reply.load.as_deref().map(LoadReport::written_bytes)) {
        match figures.iter_mut().find(|known| known.metric == figure.metric) {
            Some(known) => *known = figure,
            None => figures.push(figure),
        }
    }
}

/// Leaves out what no virtual time can repeat: how much of a program is in memory follows from the host, which maps its files.
pub(super) fn without_the_hosts(reply: &mut StepReply) {
    reply.figures.retain(|figure| figure.metric != catalog::MAXIMUM_RESIDENT_BYTES.name);
}

fn counted_figures(parts: &[DiskCounters], asked_bytes: Option<u64>) -> Vec<Figure> {
    let sum = |count: fn(&DiskCounters) -> u64| parts.iter().map(|part| count(part) as f64).sum::<f64>();
    let written = sum(|part| part.write_bytes);
    let mut figures = vec![
        catalog::DEVICE_READ_BYTES.figure(sum(|part| part.read_bytes)),
        catalog::DEVICE_WRITTEN_BYTES.figure(written),
        catalog::DEVICE_READS.figure(sum(|part| part.reads)),
        catalog::DEVICE_WRITES.figure(sum(|part| part.writes)),
        catalog::DEVICE_FLUSHES.figure(sum(|part| part.flushes)),
        catalog::DEVICE_DISCARDED_BYTES.figure(sum(|part| part.discard_bytes)),
    ];
    if let Some(asked) = asked_bytes.filter(|bytes| *bytes > 0) {
        figures.push(catalog::WRITE_AMPLIFICATION.figure(written / asked as f64));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::{super::protocol::StepEnd, *};
    use crate::meters::Readings;
    use fstone_model::result::Effective;
    use std::time::Duration;

    #[test]
    fn what_the_disk_did_between_two_parts_is_not_counted() {
        let at_mark = |number: u64| {
            (number < 9).then(|| DiskCounters { write_bytes: number * number, ..DiskCounters::default() })
        };
        let mut kernel = vec![catalog::DEVICE_WRITTEN_BYTES.figure(1000.0)];
        let told = |marks: &[(u64, u64)], kernel: &[Figure]| {
            let readings = Readings { marks: marks.to_vec(), ..Readings::default() };
            let mut reply = StepReply {
                duration: Duration::ZERO,
                commands: Vec::new(),
                figures: [kernel, &readings.figures()].concat(),
                load: None,
                beside: Vec::new(),
                warnings: Vec::new(),
                effective: Effective::default(),
                uuid: None,
                mounted: true,
                end: StepEnd::Done,
            };
            reply.figures.push(catalog::MAXIMUM_RESIDENT_BYTES.figure(2_875_392.0));
            count_exactly(&mut reply, &at_mark);
            let is_of_host = |figure: &Figure| figure.metric == catalog::MAXIMUM_RESIDENT_BYTES.name;
            assert!(reply.figures.iter().any(is_of_host), "in real time it is a figure like others");
            without_the_hosts(&mut reply);
            assert!(!reply.figures.iter().any(is_of_host), "what follows from the host is no exact figure");
            assert!(!reply.figures.iter().any(meters::is_mark), "marks are for the host alone");
            reply
                .figures
                .into_iter()
                .find(|figure| figure.metric == catalog::DEVICE_WRITTEN_BYTES.name)
                .map(|f| f.value)
        };
        assert_eq!(told(&[(1, 2), (5, 6)], &kernel), Some(3.0 + 11.0));
        assert_eq!(told(&[(1, 2), (5, 9)], &kernel), Some(1000.0), "a mark that is forgotten tells nothing");
        assert_eq!(told(&[], &kernel), Some(1000.0));
        kernel.clear();
        assert_eq!(told(&[], &kernel), None);
    }
}

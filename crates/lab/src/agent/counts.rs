//! The counts of a guest's disk as figures of its steps.

use super::protocol::StepReply;
use crate::meters::{MARK_BEGIN, MARK_END};
use fstone_model::{
    LoadReport,
    metric::{Figure, catalog},
};
use fstone_sandbox::vhost::DiskCounters;

/// Puts what the disk counted in place of what the guest's kernel did: every request, and flushes for certain. `at_mark`
/// gives its counts as they were at a mark.
pub(crate) fn count_exactly(reply: &mut StepReply, at_mark: &dyn Fn(u64) -> Option<DiskCounters>) {
    let figures = &mut reply.figures;
    let mark = |name: &str| at_mark(figures.iter().find(|figure| figure.metric == name)?.value as u64);
    let counted = mark(MARK_END).zip(mark(MARK_BEGIN)).map(|(end, begin)| end.since(&begin));
    figures.retain(|figure| figure.metric != MARK_BEGIN && figure.metric != MARK_END);
    let Some(counted) = counted else { return };
    for figure in counted_figures(&counted, reply.load.as_deref().map(LoadReport::written_bytes)) {
        match figures.iter_mut().find(|known| known.metric == figure.metric) {
            Some(known) => *known = figure,
            None => figures.push(figure),
        }
    }
}

fn counted_figures(counted: &DiskCounters, asked_bytes: Option<u64>) -> Vec<Figure> {
    let mut figures = vec![
        catalog::DEVICE_READ_BYTES.figure(counted.read_bytes as f64),
        catalog::DEVICE_WRITTEN_BYTES.figure(counted.write_bytes as f64),
        catalog::DEVICE_READS.figure(counted.reads as f64),
        catalog::DEVICE_WRITES.figure(counted.writes as f64),
        catalog::DEVICE_FLUSHES.figure(counted.flushes as f64),
        catalog::DEVICE_DISCARDED_BYTES.figure(counted.discard_bytes as f64),
    ];
    if let Some(asked) = asked_bytes.filter(|bytes| *bytes > 0) {
        figures.push(catalog::WRITE_AMPLIFICATION.figure(counted.write_bytes as f64 / asked as f64));
    }
    figures
}

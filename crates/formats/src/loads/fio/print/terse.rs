//! Results as lines of fields, fio's terse versions 2 to 5.

use super::figures::{DirectionFigures, JobFigures, jobs, mean_and_deviation, percentiles, shares, version};
use crate::loads::fio::Plan;
use fstone_model::{Histogram, LoadReport};

const PERCENTILES: usize = 20;

pub fn terse(plan: &Plan, report: &LoadReport, format: u8) -> String {
    jobs(plan, report).iter().map(|figures| line(plan, figures, format) + "\n").collect()
}

fn line(plan: &Plan, figures: &JobFigures, format: u8) -> String {
    let job = &plan.jobs[figures.job];
    let mut fields: Vec<String> = vec![
        format.to_string(),
        version(),
        figures.name.replace(';', "_"),
        figures.group.to_string(),
        figures.error.to_string(),
    ];
    if format == 2 {
        fields.remove(1);
    }
    // But for version 3 there are trims, too.
    for direction in figures.directions.iter().take(if format == 3 { 2 } else { 3 }) {
        fields.extend(of_direction(direction, &job.percentiles, format));
    }
    let (user, system) = figures.cpu();
    fields.push(format!("{user:.6}%"));
    fields.push(format!("{system:.6}%"));
    let usage = &figures.usage;
    fields.extend([usage.context_switches, usage.major_faults, usage.minor_faults].map(|count| count.to_string()));
    fields.extend(figures.depths().map(|share| format!("{share:.1}%")));
    let (ns, us, ms) = shares(&figures.latency());
    // Version 3 knows no nanoseconds: what is below one microsecond is below two.
    let below: f64 = ns.iter().sum();
    fields.extend(
        us.iter().enumerate().map(|(index, share)| format!("{:.2}%", if index == 0 { share + below } else { *share })),
    );
    fields.extend(ms.iter().map(|share| format!("{share:.2}%")));
    fields.extend(figures.description.clone());
    fields.join(";")
}

fn of_direction(figures: &DirectionFigures, list: &[f64], format: u8) -> Vec<String> {
    let bandwidth = figures.bytes_per_second() / 1024.0;
    let mut fields = vec![
        (figures.bytes >> 10).to_string(),
        (bandwidth as u64).to_string(),
        (figures.iops() as u64).to_string(),
        figures.runtime_ms.to_string(),
    ];
    fields.extend(spread(&Histogram::default()));
    fields.extend(spread(&figures.latency));
    let all = percentiles(&figures.latency, list);
    let shown = |index: usize| match (all.get(index), list.get(index)) {
        (Some((percent, value)), _) => format!("{percent:.6}%={}", value / 1000),
        (None, Some(percent)) => format!("{percent:.6}%=0"),
        (None, None) => "0%=0".into(),
    };
    fields.extend((0..PERCENTILES).map(shown));
    fields.extend(spread(&figures.latency));
    let over_time = &figures.over_time.bytes;
    fields.extend([
        ((over_time.minimum / 1024.0) as u64).to_string(),
        ((over_time.maximum / 1024.0) as u64).to_string(),
        format!("{:.6}%", figures.share_percent),
        format!("{:.6}", over_time.mean / 1024.0),
        format!("{:.6}", over_time.deviation() / 1024.0),
    ]);
    if format == 5 {
        let operations = &figures.over_time.operations;
        fields.extend([
            over_time.samples.to_string(),
            (operations.minimum as u64).to_string(),
            (operations.maximum as u64).to_string(),
            format!("{:.6}", operations.mean),
            format!("{:.6}", operations.deviation()),
            operations.samples.to_string(),
        ]);
    }
    fields
}

/// Minimum, maximum, mean and deviation, in microseconds.
fn spread(histogram: &Histogram) -> [String; 4] {
    let (mean, deviation) = mean_and_deviation(histogram);
    [
        (histogram.min_ns() / 1000).to_string(),
        (histogram.max_ns() / 1000).to_string(),
        format!("{:.6}", mean / 1000.0),
        format!("{:.6}", deviation / 1000.0),
    ]
}

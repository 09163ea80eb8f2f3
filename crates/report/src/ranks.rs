//! A load of many ranks: the page of text that rank 0 prints, and its table as CSV.

use crate::{csv, load_summary, number::Scale, text};
use fstone_model::ranks::{MOST_DRIFT_PPM, PhaseMeeting, RankOutcome, RankReport, RanksReport};
use fstone_model::{Unit, when::duration};
use std::fmt::Write as _;

/// Ranks that did not complete and are listed one by one; the JSON has all.
const TOLD: usize = 20;

pub fn ranks_summary(report: &RanksReport) -> String {
    let mut out = String::new();
    let of = if report.ranked.completed == report.ranked.ranks {
        "all completed".into()
    } else {
        format!("{} completed", report.ranked.completed)
    };
    let nodes = if report.ranked.nodes == 1 { "node" } else { "nodes" };
    let _ = writeln!(out, "{} ranks on {} {nodes}, {of}", report.ranked.ranks, report.ranked.nodes);
    if let Some(why) = &report.ranked.ended_early {
        let _ = writeln!(out, "  ended early: {}", text::line(why));
    }
    let lost: Vec<&RankReport> = report.ranked.per_rank.iter().filter(|rank| rank.outcome.words().is_some()).collect();
    for rank in lost.iter().take(TOLD) {
        let words = rank.outcome.words().unwrap_or_default();
        let (word, host) = (rank.outcome.word(), text::line(&rank.host));
        let _ =
            writeln!(out, "  rank {} on {host} (process {}) {word}: {}", rank.rank, rank.process, text::line(words));
    }
    if lost.len() > TOLD {
        let _ = writeln!(out, "  and {} more; --results has them all", lost.len() - TOLD);
    }
    meetings(&mut out, report);
    if report.ranked.merged > 0 {
        if report.ranked.merged < report.ranked.ranks {
            let _ =
                writeln!(out, "\nThe figures are those of {} ranks; the others sent no report.", report.ranked.merged);
        }
        out.push('\n');
        out.push_str(&load_summary(&report.name, &report.load));
        spread(&mut out, report);
    }
    out
}

fn meetings(out: &mut String, report: &RanksReport) {
    if report.ranked.phases.is_empty() {
        return;
    }
    let _ =
        writeln!(out, "\n  {:<20} {:>6} {:>10} {:>12} {:>12}", "phase", "ranks", "length", "start skew", "stop skew");
    for phase in &report.ranked.phases {
        let PhaseMeeting { name, ranks, length_ns, start_skew_ns, stop_skew_ns, skewed, .. } = phase;
        let mark = if *skewed { " !" } else { "" };
        let _ = writeln!(
            out,
            "  {:<20} {ranks:>6} {:>10} {:>12} {:>12}{mark}",
            text::line(name),
            duration(*length_ns),
            duration(*start_skew_ns),
            duration(*stop_skew_ns)
        );
        if let Some(wall) = &phase.stonewall {
            let _ = writeln!(
                out,
                "    at the end of its time, after {}: {} operations, {} to {} a rank",
                duration(wall.length_ns),
                wall.operations,
                wall.fewest,
                wall.most
            );
        }
    }
    if report.ranked.phases.iter().any(|phase| phase.skewed) {
        let _ = writeln!(
            out,
            "  ! the ranks started or ended more than 1 % of the phase apart: not all were at work meanwhile"
        );
    }
    let largest = |of: fn(&PhaseMeeting) -> u64| duration(report.ranked.phases.iter().map(of).max().unwrap_or(0));
    let skews = largest(PhaseMeeting::skew_uncertainty_ns);
    let compared = report
        .ranked
        .per_rank
        .iter()
        .filter_map(|rank| rank.clock)
        .map(|clock| clock.uncertainty_ns)
        .max()
        .unwrap_or(0);
    let allowed = report.ranked.phases.iter().any(|phase| phase.uncertainty_ns > compared);
    let drifts = report.ranked.per_rank.iter().filter_map(|rank| {
        let clock = rank.clock?;
        Some((clock.drift_ppm?.abs(), clock.drift_uncertainty_ppm))
    });
    let drift = drifts.max_by(|one, other| one.0.total_cmp(&other.0));
    // Clocks are compared again after the last phase, if there still is a rank to compare with.
    let drift = match drift {
        Some((drift, Some(within))) => format!("largest drift {drift:.1} ± {within:.1} ppm"),
        Some((drift, None)) => format!("largest drift {drift:.1} ppm"),
        None => "drift unknown".to_owned(),
    };
    let drift =
        if allowed { format!("{drift}; up to {MOST_DRIFT_PPM} ppm where they were compared once") } else { drift };
    let _ = writeln!(out, "  skews ± {skews}: clocks compared within {}; {drift}", duration(compared));
}

fn spread(out: &mut String, report: &RanksReport) {
    let of = |number: Option<u32>| report.ranked.per_rank.iter().find(|rank| Some(rank.rank) == number);
    let rate = |value: f64| Scale::of_one(Unit::PerSecond, value).with_unit(value);
    out.push('\n');
    for (what, rank) in
        [("slowest", report.ranked.slowest), ("median", report.ranked.median), ("fastest", report.ranked.fastest)]
    {
        let Some(rank) = of(rank) else { continue };
        let percentile = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| duration(value.round() as u64));
        let _ = writeln!(
            out,
            "  {:<14}rank {} on {}: {}, p50 {}, p99 {}, max {}",
            format!("{what} rank"),
            rank.rank,
            text::line(&rank.host),
            rate(rank.per_second),
            percentile(rank.p50_ns),
            percentile(rank.p99_ns),
            duration(rank.max_ns)
        );
    }
    if report.ranked.nodes > 1 {
        let by = |one: &&_, other: &&_| {
            let (one, other): (&fstone_model::ranks::NodeReport, &fstone_model::ranks::NodeReport) = (one, other);
            one.per_second.total_cmp(&other.per_second)
        };
        for (what, node) in [
            ("slowest node", report.ranked.per_node.iter().min_by(by)),
            ("fastest node", report.ranked.per_node.iter().max_by(by)),
        ] {
            let Some(node) = node else { continue };
            let (host, ranks) = (text::line(&node.host), node.ranks);
            let _ = writeln!(out, "  {what:<14}{host}: {ranks} ranks, {}", rate(node.per_second));
        }
    }
}

/// A row for each phase of each rank, and one for a rank that ended none; RFC 4180 with a header line.
pub fn ranks_csv(report: &RanksReport) -> String {
    let mut out = String::from(
        "rank,host,process,outcome,phase,begin_ns,end_ns,operations,read_bytes,written_bytes,stonewall_operations,clock_offset_ns,\
         clock_uncertainty_ns,clock_drift_ppm,clock_drift_uncertainty_ppm,words\n",
    );
    for rank in &report.ranked.per_rank {
        let clock = rank.clock.unwrap_or_default();
        let ppm = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
        let drift = format!("{},{}", ppm(clock.drift_ppm), ppm(clock.drift_uncertainty_ppm));
        let (outcome, words) = (rank.outcome.word(), rank.outcome.words().unwrap_or_default());
        let mut row = |phase: &str, figures: &str| {
            let _ = writeln!(
                out,
                "{},{},{},{outcome},{},{figures},{},{},{drift},{}",
                rank.rank,
                csv::text(&rank.host),
                rank.process,
                csv::text(phase),
                clock.offset_ns,
                clock.uncertainty_ns,
                csv::text(words)
            );
        };
        for phase in &rank.phases {
            let wall = phase.stonewall_operations.map_or_else(String::new, |count| count.to_string());
            let (begin, end, operations) = (phase.begin_ns, phase.end_ns, phase.operations);
            let figures = format!("{begin},{end},{operations},{},{},{wall}", phase.read_bytes, phase.written_bytes);
            row(&phase.name, &figures);
        }
        if rank.phases.is_empty() {
            row("", ",,,,,");
        }
    }
    out
}

/// Whether all ranks completed without an error.
pub fn ranks_all_well(report: &RanksReport) -> bool {
    report.load.errors.is_empty() && report.ranked.per_rank.iter().all(|rank| rank.outcome == RankOutcome::Completed)
}

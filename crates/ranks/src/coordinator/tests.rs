#![cfg(test)]

use super::*;
use crate::facts::Facts;
use fstone_model::Workload;
use fstone_model::workload::{
    Action, Actions, Amount, Fileset, FinalSync, Operation, Phase, SizeDistribution, Stop, ThreadGroup, Weighted,
};

const MS: u64 = 1_000_000;

fn settings() -> Settings {
    let action = Action::new("stat", Operation::Stat, Some(0));
    let group = ThreadGroup::new("stat", 1, Actions::Mix(vec![Weighted { weight: 1, action }]));
    let workload = Workload {
        final_sync: FinalSync::None,
        series_interval: Duration::from_millis(100),
        ..Workload::new(
            "made up",
            vec![Fileset::new("files", Amount::Files(1), SizeDistribution::Fixed(1))],
            vec![Phase::new("stat", vec![group], Stop::default())],
        )
    };
    let patient = Duration::from_secs(60);
    Settings {
        subject: "load".into(),
        seed: 1,
        silence: patient,
        stillness: patient,
        facts: Facts::default(),
        workload,
        cancel: std::sync::Arc::default(),
    }
}

/// Answers pings at once, until rank 0 asks for nothing more; which reports it asks for.
fn answer_pings(coordinator: &mut Coordinator, now_ns: &mut u64) -> Vec<u32> {
    let mut asked = Vec::new();
    loop {
        let outgoing: Vec<(u32, Message)> = coordinator.outgoing().collect();
        if outgoing.is_empty() {
            return asked;
        }
        for (to, message) in outgoing {
            match message {
                Message::Ping { round } => {
                    *now_ns += 1000;
                    coordinator.handle(to, Message::Pong { round, clock_ns: *now_ns }, *now_ns);
                }
                Message::Collect => asked.push(to),
                _ => {}
            }
        }
    }
}

#[test]
fn a_rank_without_a_report_has_no_time_in_the_figures() {
    let (mut coordinator, mut now_ns) = welcomed();
    // The second rank is in its phase for ten times as long, and then its load fails.
    let begin_ns = now_ns;
    for (rank, length_ms) in [(0, 100), (1, 1000)] {
        let passed = PhasePassed { begin_ns, end_ns: begin_ns + length_ms * MS, ..PhasePassed::default() };
        coordinator.handle(rank, Message::Passed(passed), begin_ns + 1000 * MS);
    }
    now_ns = begin_ns + 1100 * MS;
    let failed = Message::Done {
        failed: Some("no such thing".into()),
        halted: None,
        unfinished: None,
        early: false,
        reports: false,
    };
    coordinator.handle(1, failed, now_ns);
    coordinator.handle(
        0,
        Message::Done { failed: None, halted: None, unfinished: None, early: true, reports: true },
        now_ns,
    );
    for rank in answer_pings(&mut coordinator, &mut now_ns) {
        let report = LoadReport { running_ns: 100 * MS, elapsed_ns: 100 * MS, ..LoadReport::default() };
        coordinator.handle(rank, Message::Report((rank == 0).then(|| Box::new(report))), now_ns);
    }
    let report = coordinator.concluded().expect("all have said what they had to");
    assert_eq!((report.ranked.merged, report.load.elapsed_ns), (1, 100 * MS));
    assert_eq!(report.ranked.per_rank[1].outcome, RankOutcome::Failed { words: "no such thing".into() });
    assert!(report.ranked.per_rank[1].clock.is_some_and(|clock| clock.drift_ppm.is_some()));
}

fn welcomed() -> (Coordinator, u64) {
    let mut now_ns = 1000 * MS;
    let mut coordinator = Coordinator::new(settings(), 2, now_ns);
    for rank in 0..2 {
        coordinator.handle(rank, Message::Hello(Hello { subject: "load".into(), ..Hello::default() }), now_ns);
    }
    answer_pings(&mut coordinator, &mut now_ns);
    (coordinator, now_ns)
}

#[test]
fn clocks_are_compared_for_a_tenth_of_a_second_if_answers_are_slow() {
    let rounds = |round_trip_ns: u64| {
        let mut now_ns = 1000 * MS;
        let mut coordinator = Coordinator::new(settings(), 2, now_ns);
        for rank in 0..2 {
            coordinator.handle(rank, Message::Hello(Hello { subject: "load".into(), ..Hello::default() }), now_ns);
        }
        let mut rounds = 0;
        loop {
            let next = coordinator.outgoing().next();
            let Some((to, Message::Ping { round })) = next else { return rounds };
            now_ns += round_trip_ns;
            coordinator.handle(to, Message::Pong { round, clock_ns: now_ns }, now_ns);
            rounds += 1;
        }
    };
    assert_eq!([1000, MS, 2 * MS, 30 * MS].map(rounds), [ROUNDS, 100, 50, ROUNDS]);
}

#[test]
fn a_rank_whose_report_cannot_be_read_is_not_waited_for() {
    let (mut coordinator, mut now_ns) = welcomed();
    for rank in 0..2 {
        let done = Message::Done { failed: None, halted: None, unfinished: None, early: false, reports: true };
        coordinator.handle(rank, done, now_ns);
    }
    for rank in answer_pings(&mut coordinator, &mut now_ns) {
        match rank {
            0 => coordinator.handle(0, Message::Report(Some(Box::default())), now_ns),
            _ => coordinator.garbled(rank, now_ns),
        }
    }
    let report = coordinator.concluded().expect("nothing is missing");
    assert_eq!(report.ranked.merged, 1);
    assert_eq!(report.ranked.per_rank[1].outcome, RankOutcome::Failed { words: UNREADABLE.into() });
}

#[test]
fn a_rank_whose_error_ended_the_load_has_not_completed_it() {
    let (mut coordinator, mut now_ns) = welcomed();
    let done = |halted: Option<&str>, early| {
        let halted = halted.map(str::to_owned);
        Message::Done { failed: None, halted, unfinished: None, early, reports: true }
    };
    coordinator.handle(1, done(Some("open of \"a\" failed: ENOSPC"), false), now_ns);
    coordinator.handle(0, done(None, true), now_ns);
    for rank in answer_pings(&mut coordinator, &mut now_ns) {
        coordinator.handle(rank, Message::Report(Some(Box::default())), now_ns);
    }
    let report = coordinator.concluded().expect("all have reported");
    assert_eq!(report.ranked.per_rank[1].outcome, RankOutcome::Failed { words: "open of \"a\" failed: ENOSPC".into() });
    assert_eq!((report.ranked.completed, report.ranked.merged), (0, 2));
    assert_eq!(report.ranked.ended_early.as_deref(), Some("rank 1 on : open of \"a\" failed: ENOSPC"));
}

/// A launcher kills soon after its signal, and there is no time to compare clocks again: they may have drifted since.
#[test]
fn a_clock_that_was_compared_once_is_known_less_and_less() {
    for (boots, drifts) in [(["one a", "other a"], true), (["one a", "one b"], false)] {
        let mut now_ns = 1000 * MS;
        let mut coordinator = Coordinator::new(settings(), 2, now_ns);
        for (rank, boot) in (0..).zip(boots) {
            let hello = Hello { subject: "load".into(), boot: boot.into(), ..Hello::default() };
            coordinator.handle(rank, Message::Hello(hello), now_ns);
        }
        answer_pings(&mut coordinator, &mut now_ns);
        let compared_ns = coordinator.ranks[1].compared.before.expect("compared").at_ns;
        for rank in 0..2 {
            let passed = PhasePassed { begin_ns: now_ns, end_ns: compared_ns + 100_000 * MS, ..PhasePassed::default() };
            coordinator.handle(rank, Message::Passed(passed), now_ns);
        }
        now_ns = compared_ns + 100_000 * MS;
        coordinator.handle(1, Message::Signalled, now_ns);
        for rank in 0..2 {
            let done = Message::Done { failed: None, halted: None, unfinished: None, early: true, reports: true };
            coordinator.handle(rank, done, now_ns);
        }
        for rank in answer_pings(&mut coordinator, &mut now_ns) {
            coordinator.handle(rank, Message::Report(Some(Box::default())), now_ns);
        }
        let report = coordinator.concluded().expect("all have reported");
        let clock = report.ranked.per_rank[1].clock.expect("compared");
        assert_eq!((clock.drift_ppm, clock.uncertainty_ns < MS), (None, true));
        let drifted_ns = report.ranked.phases[0].uncertainty_ns - clock.uncertainty_ns;
        assert!(if drifts { drifted_ns.abs_diff(50 * MS) < MS } else { drifted_ns == 0 }, "{boots:?}: {drifted_ns}");
    }
}

/// It may be in one long fsync. Of those that are there none has died, and who is gone has.
#[test]
fn a_rank_that_has_not_ended_soon_after_a_signal_is_interrupted() {
    let mut now_ns = 1000 * MS;
    let mut coordinator = Coordinator::new(settings(), 3, now_ns);
    // Rank 2 is a process of this machine that does not exist.
    for (rank, process) in [(0, std::process::id()), (1, std::process::id()), (2, u32::MAX)] {
        let hello = Hello { subject: "load".into(), boot: "here".into(), process, ..Hello::default() };
        coordinator.handle(rank, Message::Hello(hello), now_ns);
    }
    answer_pings(&mut coordinator, &mut now_ns);
    for rank in 0..3 {
        let state = State { at: "write".into(), operations: 7, ..State::default() };
        coordinator.handle(rank, Message::State(state), now_ns);
    }
    coordinator.handle(1, Message::Signalled, now_ns);
    let done = Message::Done { failed: None, halted: None, unfinished: None, early: true, reports: true };
    coordinator.handle(0, done, now_ns);
    now_ns += nanoseconds(HASTE) + MS;
    coordinator.tick(now_ns);
    assert_eq!(answer_pings(&mut coordinator, &mut now_ns), [0]);
    coordinator.handle(0, Message::Report(Some(Box::default())), now_ns);
    let report = coordinator.concluded().expect("nobody is waited for");
    let outcomes: Vec<_> = report.ranked.per_rank.iter().map(|rank| rank.outcome.clone()).collect();
    let [RankOutcome::EndedEarly, RankOutcome::Interrupted { words }, RankOutcome::Died { words: gone }] =
        &outcomes[..]
    else {
        panic!("{outcomes:?}")
    };
    assert!(words.contains("0.6 s after the signal") && words.contains("\"write\" with 7 operations"), "{words}");
    assert!(gone.contains("is gone"), "{gone}");
    assert!(coordinator.was_signalled() && !coordinator.is_clean());
}

//! Whether what is drawn has the distribution that the workload asks for.

use super::tours::{MOVED, Noting};
use super::*;
use crate::fileset::Sizes;
use crate::pattern::{BlockSizes, Drawer, permute};
use crate::plan::Schedule;
use crate::random::Random;
use std::collections::BTreeMap;

const DRAWS: u32 = 400_000;

/// Compares how often each cell was drawn with its share, by Pearson's χ² test. A right drawer fails once in 10,000 seeds, and the seed is fixed.
#[track_caller]
fn fits(what: &str, counts: &[u64], shares: &[f64]) {
    let (drawn, sum) = (counts.iter().sum::<u64>() as f64, shares.iter().sum::<f64>());
    let expected = |share: f64| share / sum * drawn;
    let (mut chi, mut cells) = (0.0, 0.0);
    for (count, share) in counts.iter().zip(shares) {
        let expected = expected(*share);
        assert!(expected == 0.0 || expected > 5.0, "{what}: a cell of {expected} is too small for the test");
        if expected == 0.0 {
            assert_eq!(*count, 0, "{what}: a cell that is never drawn");
            continue;
        }
        chi += (*count as f64 - expected).powi(2) / expected;
        cells += 1.0;
    }
    assert_eq!(counts.len(), shares.len(), "{what}");
    // The quantile of χ² by Wilson and Hilferty (1931).
    let part = 2.0 / (9.0 * (cells - 1.0));
    let limit = (cells - 1.0) * (1.0 - part + 3.719 * f64::sqrt(part)).powi(3);
    assert!(chi < limit, "{what}: χ² is {chi:.0} with a limit of {limit:.0}");
}

/// How often numbers fall between the edges; the first cell and the last are open.
fn counted(edges: &[f64], mut draw: impl FnMut() -> f64) -> Vec<u64> {
    let mut counts = vec![0; edges.len() + 1];
    for _ in 0..DRAWS {
        let drawn = draw();
        counts[edges.partition_point(|edge| *edge <= drawn)] += 1;
    }
    counts
}

/// The integral of a density between the edges, from `low` and up to `high`, by Simpson's rule.
fn shares(density: impl Fn(f64) -> f64, low: f64, edges: &[f64], high: f64) -> Vec<f64> {
    const STEPS: u32 = 2000;
    let ends: Vec<f64> = [low].into_iter().chain(edges.iter().copied()).chain([high]).collect();
    let over = |from: f64, to: f64| {
        let step = (to - from) / f64::from(STEPS);
        let weight = |place: u32| match place {
            0 | STEPS => 1.0,
            _ if place % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let sum: f64 = (0..=STEPS).map(|place| weight(place) * density(from + f64::from(place) * step)).sum();
        sum * step / 3.0
    };
    ends.windows(2).map(|ends| over(ends[0], ends[1])).collect()
}

fn sizes(distribution: &SizeDistribution) -> impl FnMut() -> f64 {
    let sizes = Sizes::new(distribution, 1).expect("it can be drawn from");
    let mut random = Random::new(11);
    move || sizes.draw(&mut random) as f64
}

#[test]
fn what_is_drawn_has_the_distribution_that_was_asked_for() {
    // Sizes of files. A size is a whole number of bytes: edges are between two.
    let uniform = SizeDistribution::Uniform { minimum: 1000, maximum: 2000 };
    let edges: Vec<f64> = (1..50).map(|cell| 999.5 + f64::from(cell) * 20.0).collect();
    fits("uniform sizes", &counted(&edges, sizes(&uniform)), &[1.0; 50]);
    let weighted = SizeDistribution::Weighted(vec![(1, 60), (2, 0), (3, 30), (4, 10)]);
    fits("weighted sizes", &counted(&[1.5, 2.5, 3.5], sizes(&weighted)), &[60.0, 0.0, 30.0, 10.0]);
    for shape in [1.5, 4.0] {
        let gamma = SizeDistribution::Gamma { mean: 100_000, shape };
        let scale = 100_000.0 / shape;
        let density = |size: f64| (size / scale).powf(shape - 1.0) * (-size / scale).exp();
        let edges: Vec<f64> = (1..30).map(|cell| f64::from(cell) * 10_000.0 + 0.5).collect();
        fits("gamma sizes", &counted(&edges, sizes(&gamma)), &shares(density, 0.0, &edges, 40.0 * scale));
    }
    let lognormal = SizeDistribution::Lognormal { median: 100_000, sigma: 0.7 };
    let density = |log: f64| (-(log / 0.7).powi(2) / 2.0).exp();
    let edges: Vec<f64> = (-20..=20).map(|cell| f64::from(cell) * 0.1).collect();
    let mut size = sizes(&lognormal);
    let drawn = counted(&edges, || (size() / 100_000.0).ln());
    fits("lognormal sizes", &drawn, &shares(density, -7.0, &edges, 7.0));

    // Sizes of blocks.
    let blocks = |distribution: &SizeDistribution| {
        let sizes = BlockSizes::new(distribution).expect("it can be drawn from");
        let (mut random, mut counts) = (Random::new(12), BTreeMap::<u64, u64>::new());
        (0..DRAWS).for_each(|_| *counts.entry(sizes.draw(&mut random)).or_default() += 1);
        counts.into_values().collect::<Vec<u64>>()
    };
    // The manual's own example; and where the range ends at a multiple, behind one, and before the next.
    for maximum in [65 << 10, 64 << 10, (64 << 10) + 1, (68 << 10) - 1] {
        let range = SizeDistribution::Uniform { minimum: 4 << 10, maximum };
        let count = if maximum == 64 << 10 { 15 } else { 16 };
        fits("a range of blocks", &blocks(&range), &vec![1.0; count]);
    }
    let weighted = SizeDistribution::Weighted(vec![(512, 60), (4096, 30), (65_536, 10)]);
    fits("weighted blocks", &blocks(&weighted), &[60.0, 30.0, 10.0]);

    // Places. Where ranks are scattered, by a permutation that is known.
    const SPACE: u64 = 200;
    let zones: Vec<Zone> =
        [(50, 5), (30, 15), (0, 40), (20, 40)].map(|(weight, length)| Zone { weight, length }).to_vec();
    let cells = |of: &dyn Fn(f64) -> f64| -> Vec<f64> { (0..SPACE).map(|place| of(place as f64)).collect() };
    let normal = |deviation: f64| {
        let density = move |place: f64| (-((place / SPACE as f64 - 0.5) / deviation).powi(2) / 2.0).exp();
        let edges: Vec<f64> = (1..SPACE).map(|place| place as f64).collect();
        shares(density, 0.0, &edges, SPACE as f64)
    };
    let power = 0.2f64.ln() / 0.8f64.ln();
    let reached = |place: f64| (place / SPACE as f64).powf(1.0 / power);
    let of_zone = |place: f64| match place as u64 {
        0..10 => 50.0 / 10.0,
        10..40 => 30.0 / 30.0,
        40..120 => 0.0,
        _ => 20.0 / 80.0,
    };
    let zoned = Distribution::Zoned(Zones::new(&zones).expect("they fit"));
    for (distribution, shares, scattered) in [
        (Distribution::Uniform, cells(&|_| 1.0), false),
        (Distribution::Permutation, cells(&|_| 1.0), false),
        (Distribution::Zipf { theta: 0.9 }, cells(&|place| (place + 1.0).powf(-0.9)), true),
        (Distribution::Zipf { theta: 1.2 }, cells(&|place| (place + 1.0).powf(-1.2)), true),
        (Distribution::Pareto { share: 0.2 }, cells(&|place| reached(place + 1.0) - reached(place)), true),
        (Distribution::Gauss { deviation: 0.25, scattered: false }, normal(0.25), false),
        (Distribution::Gauss { deviation: 0.25, scattered: true }, normal(0.25), true),
        (zoned, cells(&of_zone), false),
    ] {
        let (mut drawer, mut random) = (Drawer::new(distribution, 9), Random::new(13));
        let mut counts = vec![0; SPACE as usize];
        (0..u64::from(DRAWS)).for_each(|turn| counts[drawer.draw(SPACE, &mut random, || turn) as usize] += 1);
        let place = |rank: u64| if scattered { permute(rank, SPACE, 9) } else { rank } as usize;
        let ranked: Vec<u64> = (0..SPACE).map(|rank| counts[place(rank)]).collect();
        fits(&format!("{distribution:?}"), &ranked, &shares);
    }
    // A space of fewer places than zones.
    let (mut few, mut random) = (Drawer::new(zoned, 9), Random::new(13));
    assert!((0..100).all(|_| few.draw(2, &mut random, || 0) < 2));

    // Gaps of random arrivals, in mean gaps. Think times are fixed.
    let mut poisson = group(Operation::Stat);
    (poisson.rate_per_second, poisson.arrivals) = (Some(1000.0), Arrivals::Poisson);
    let Some(Schedule::Whole(pacer)) = Schedule::of(&poisson, &[]) else { panic!("it has a rate") };
    let (mut random, mut before) = (Random::new(14), 0);
    let edges: Vec<f64> = (1..60).map(|cell| f64::from(cell) * 0.1).collect();
    let gaps = counted(&edges, || {
        let now = pacer.next(&mut random);
        (now - std::mem::replace(&mut before, now)) as f64 / 1e6
    });
    fits("Poisson arrivals", &gaps, &shares(|gap| (-gap).exp(), 0.0, &edges, 40.0));
}

fn favourites(actions: Actions, tour: Option<Tour>) -> [u64; 2] {
    let mut group = ThreadGroup { open: OpenPolicy::KeepOpen, ..ThreadGroup::new("group", 1, actions) };
    (group.tour, group.stop.operations) = (tour, Some(3000));
    let mut load = workload(1, vec![group], Stop::default(), null(1));
    // An odd number of blocks has one in the middle.
    load.filesets[0].size = SizeDistribution::Fixed(255 * 4096);
    MOVED.take();
    let (_, errors) = carried_out(&load, Path::new("."), |load| drive::<Noting>(load, 0));
    assert!(errors.is_empty(), "{errors:?}");
    let moved = MOVED.take();
    [false, true].map(|written| {
        let mut counts = BTreeMap::<u64, u32>::new();
        let of = moved.iter().filter(|(is, ..)| *is == written);
        of.for_each(|(_, offset, _)| *counts.entry(offset / 4096).or_default() += 1);
        counts.into_iter().max_by_key(|(_, count)| *count).expect("both read and write").0
    })
}

/// Also where one names its fileset, and the other is on all.
#[test]
fn an_action_on_all_filesets_favours_the_same_blocks() {
    let pattern = Pattern::Random { distribution: Distribution::Zipf { theta: 1.5 }, align_bytes: 4096 };
    let transfer = Transfer { pattern, ..block() };
    let read = Action::new("read", Operation::Read(transfer), None);
    let write = Action::new("write", Operation::Write(transfer), Some(0));
    let [read, written] = favourites(Actions::Sequence(vec![read, write]), None);
    assert_eq!(read, written);
}

/// What is read most often is what is written most often, as in fio: otherwise reads would hardly ever come to what was written.
#[test]
fn reads_and_writes_of_a_group_favour_the_same_blocks() {
    let zones = [(90, 1), (10, 254)].map(|(weight, length)| Zone { weight, length });
    for distribution in [
        Distribution::Zipf { theta: 1.5 },
        Distribution::Pareto { share: 0.05 },
        Distribution::Gauss { deviation: 0.001, scattered: false },
        Distribution::Gauss { deviation: 0.001, scattered: true },
        Distribution::Zoned(Zones::new(&zones).expect("they fit")),
    ] {
        let transfer = Transfer { pattern: Pattern::Random { distribution, align_bytes: 4096 }, ..block() };
        let read = Action::new("read", Operation::Read(transfer), Some(0));
        let write = Action::new("write", Operation::Write(transfer), Some(0));
        let mix = || Actions::Mix([&read, &write].map(|one| Weighted { weight: 1, action: one.clone() }).to_vec());
        let program = [&read, &write].map(|one| Step::Perform { action: one.clone(), times: 1 }).to_vec();
        let ratio = Actions::Ratio { first: read.clone(), second: write.clone(), ratio: 1.5 };
        for (what, actions, tour) in [
            ("mix", mix(), None),
            ("tour", mix(), Some(Tour::InTurn)),
            ("ratio", ratio, None),
            ("sequence", Actions::Sequence(vec![read.clone(), write.clone()]), None),
            ("program", Actions::Program(program), None),
        ] {
            let [read, written] = favourites(actions, tour);
            assert_eq!(read, written, "{what}, {distribution:?}");
        }
    }
}

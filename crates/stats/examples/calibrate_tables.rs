//! False alarms, coverage and power of whole tables, by simulation. Prints CSV.
//!
//! `cargo run --release -p fstone-stats --example calibrate_tables 1000 >docs/method/calibration.csv`

#[expect(dead_code, reason = "the other calibrations use the rest")]
mod support;

use fstone_stats::compare::{Basis, Pairwise, compare_by_ranks};
use fstone_stats::{Blocking, Level, Sample, Scale, compare_all};
use support::Simulation;

/// The noise of a row (of so many), before it is put on its scale.
type Noise = fn(&mut Simulation, usize, usize) -> f64;

/// How the figures of a table come about: rows in complete blocks, in a shuffled order within each.
struct Source {
    name: &'static str,
    scale: Scale,
    noise: Noise,
    /// How far figures rise from the first trial to the last.
    rise: f64,
    /// Whether trials are missing.
    unbalanced: bool,
}

const SEED: u64 = 0x2026_1126_0000;

/// Student's t with three degrees of freedom.
fn t3(s: &mut Simulation) -> f64 {
    let squares: f64 = (0..3).map(|_| s.normal().powi(2)).sum();
    s.normal() / (squares / 3.0).sqrt()
}

fn sources() -> Vec<Source> {
    let ratios = |name, noise| Source { name, scale: Scale::Ratios, noise, rise: 0.0, unbalanced: false };
    vec![
        Source {
            name: "normal, 10 points",
            scale: Scale::Differences,
            noise: |s, _, _| 10.0 * s.normal(),
            rise: 0.0,
            unbalanced: false,
        },
        Source {
            name: "t₃, 10 points",
            scale: Scale::Differences,
            noise: |s, _, _| 10.0 * t3(s),
            rise: 0.0,
            unbalanced: false,
        },
        Source {
            name: "exponential, 10 points",
            scale: Scale::Differences,
            noise: |s, _, _| -10.0 * s.uniform().ln(),
            rise: 0.0,
            unbalanced: false,
        },
        ratios("lognormal, σ = 0.2", |s, _, _| 0.2 * s.normal()),
        ratios("lognormal, σ = 1", |s, _, _| s.normal()),
        ratios("normal, 10 % (not lognormal)", |s, _, _| (1.0 + 0.1 * s.normal()).max(0.01).ln()),
        ratios("log of t₃, scaled to 0.2", |s, _, _| 0.2 * t3(s)),
        Source {
            name: "lognormal, σ = 0.1, rising by 43 %",
            scale: Scale::Ratios,
            noise: |s, _, _| 0.1 * s.normal(),
            rise: 0.43,
            unbalanced: false,
        },
        ratios("unequal: σ from 0.1 to 0.3", |s, row, rows| (0.1 + 0.2 * row as f64 / (rows - 1) as f64) * s.normal()),
        ratios("unequal: one row × 3", |s, row, _| if row == 0 { 0.06 } else { 0.02 } * s.normal()),
        ratios("unequal: one row × 10", |s, row, _| if row == 0 { 0.2 } else { 0.02 } * s.normal()),
        ratios("unequal: one row × 30", |s, row, _| if row == 0 { 0.6 } else { 0.02 } * s.normal()),
        ratios("unequal: two rows × 10", |s, row, _| if row < 2 { 0.2 } else { 0.02 } * s.normal()),
        Source {
            unbalanced: true,
            ..ratios("unbalanced: σ = 0.2, one trial in seven missing", |s, _, _| 0.2 * s.normal())
        },
        Source {
            unbalanced: true,
            ..ratios("unbalanced and unequal: one row × 3", |s, row, _| if row == 0 { 0.06 } else { 0.02 } * s.normal())
        },
    ]
}

/// A table; the first row's level is `factor` times the others'.
fn table(s: &mut Simulation, source: &Source, (rows, blocks): (usize, usize), factor: f64) -> Vec<Sample> {
    let mut figures = vec![Vec::with_capacity(blocks); rows];
    for block in 0..blocks {
        let shared = 0.1 * s.normal();
        let mut order: Vec<(f64, usize)> = (0..rows).map(|row| (s.uniform(), row)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (place, (_, row)) in order.into_iter().enumerate() {
            let time = (block * rows + place) as f64 / (blocks * rows - 1) as f64;
            let noise = (source.noise)(s, row, rows);
            let level = if row == 0 { factor } else { 1.0 };
            figures[row].push(match source.scale {
                Scale::Ratios => 100.0 * level * (shared + noise + source.rise.ln_1p() * time).exp(),
                Scale::Differences => 100.0 * level + 10.0 * shared + noise,
            });
        }
    }
    figures.into_iter().map(|values| Sample::new(values).unwrap()).collect()
}

/// The blocks in which each row has a trial: at least two.
fn kept(s: &mut Simulation, source: &Source, (rows, blocks): (usize, usize)) -> Vec<Vec<usize>> {
    let mut of_row = |_| loop {
        let kept: Vec<usize> = (0..blocks).filter(|_| !source.unbalanced || s.uniform() > 1.0 / 7.0).collect();
        if kept.len() > 1 {
            return kept;
        }
    };
    (0..rows).map(&mut of_row).collect()
}

struct Case<'a> {
    simulation: &'a str,
    figures: &'a str,
    factor: f64,
    /// Standard deviation of the noise, unless `figures` says it.
    sigma: Option<f64>,
    rows: usize,
    blocks: usize,
}

impl Case<'_> {
    fn print(&self, quantity: &str, part: usize, of: usize) {
        let Self { simulation, figures, factor, sigma, rows, blocks } = self;
        let sigma = sigma.map(|sigma| sigma.to_string()).unwrap_or_default();
        let figures = if figures.contains(',') { format!("\"{figures}\"") } else { (*figures).to_owned() };
        let percent = 100.0 * part as f64 / of as f64;
        println!("{simulation},{figures},{factor},{sigma},{rows},{blocks},{quantity},{percent:.1}");
    }
}

fn any(pairs: &[Pairwise]) -> usize {
    usize::from(pairs.iter().any(|pair| pair.differs))
}

fn false_alarms_and_coverage(tables: usize) {
    for source in sources() {
        for rows in [2, 5, 9] {
            for blocks in [3, 5, 10] {
                let mut s = Simulation::new(SEED + (rows * 100 + blocks) as u64);
                let (mut alarms, mut by_ranks, mut held, mut ranks) = (0, 0, 0, 0);
                for _ in 0..tables {
                    let mut samples = table(&mut s, &source, (rows, blocks), 1.0);
                    let kept = kept(&mut s, &source, (rows, blocks));
                    for (sample, kept) in samples.iter_mut().zip(&kept) {
                        *sample = Sample::new(kept.iter().map(|block| sample.values()[*block]).collect()).unwrap();
                    }
                    let found = compare_all(&samples, source.scale, Level::FIXED, Blocking::Blocks(&kept));
                    alarms += any(&found.pairs);
                    by_ranks += any(&compare_by_ranks(&samples, Level::FIXED, Blocking::Blocks(&kept)));
                    held += usize::from(found.pairs.iter().all(|pair| pair.shift.interval.contains(0.0)));
                    ranks += usize::from(found.basis == Basis::Ranks);
                }
                let figures = source.name;
                let case = Case { simulation: "equal rows", figures, factor: 1.0, sigma: None, rows, blocks };
                case.print("false alarms", alarms, tables);
                case.print("false alarms of rank tests", by_ranks, tables);
                case.print("all intervals contain the truth", held, tables);
                case.print("decided by rank tests", ranks, tables);
            }
        }
    }
}

/// How often the interval of a row holds the row's level, with the blocks of the run as they were.
fn coverage_of_rows(tables: usize) {
    for source in
        sources().into_iter().filter(|source| source.rise == 0.0 && source.scale == Scale::Ratios && !source.unbalanced)
    {
        for rows in [2, 5, 9] {
            for blocks in [3, 5, 10] {
                let mut s = Simulation::new(SEED + (rows * 100 + blocks) as u64);
                let mut held = 0;
                for _ in 0..tables {
                    // Without shared effects the level is known: that of the noise's own mean.
                    let samples: Vec<Sample> = (0..rows)
                        .map(|row| {
                            let draw = |_| (source.noise)(&mut s, row, rows).exp();
                            Sample::new((0..blocks).map(draw).collect()).unwrap()
                        })
                        .collect();
                    let found = compare_all(&samples, source.scale, Level::FIXED, Blocking::Complete);
                    let truth = if source.name.contains("not lognormal") { 0.994_95 } else { 1.0 };
                    held += found.means.iter().filter(|row| row.interval.unwrap().contains(truth)).count();
                }
                let figures = source.name;
                let case = Case { simulation: "interval of a row", figures, factor: 1.0, sigma: None, rows, blocks };
                case.print("interval contains the level", held, tables * rows);
            }
        }
    }
}

fn power(tables: usize) {
    let cases = [
        (2.0, 0.2, 9, 3),
        (2.0, 0.2, 9, 4),
        (2.0, 0.2, 9, 5),
        (2.0, 0.2, 5, 3),
        (2.0, 0.2, 2, 5),
        (1.5, 0.1, 9, 3),
        (1.5, 0.2, 9, 10),
        (1.2, 0.05, 9, 3),
        (1.2, 0.1, 9, 10),
        (1.05, 0.02, 9, 5),
        (1.05, 0.02, 2, 10),
        (1.05, 0.03, 2, 10),
        (1.02, 0.01, 9, 10),
    ];
    let noises: [(f64, Noise); 6] = [
        (0.01, |s, _, _| 0.01 * s.normal()),
        (0.02, |s, _, _| 0.02 * s.normal()),
        (0.03, |s, _, _| 0.03 * s.normal()),
        (0.05, |s, _, _| 0.05 * s.normal()),
        (0.1, |s, _, _| 0.1 * s.normal()),
        (0.2, |s, _, _| 0.2 * s.normal()),
    ];
    for (factor, sigma, rows, blocks) in cases {
        let noise = noises.iter().find(|(known, _)| *known == sigma).expect("in the list").1;
        let source = Source { name: "", scale: Scale::Ratios, noise, rise: 0.0, unbalanced: false };
        let mut s = Simulation::new(SEED + (rows * 100 + blocks) as u64);
        let (mut pair, mut some, mut pair_by_ranks, mut some_by_ranks, mut held) = (0, 0, 0, 0, 0);
        for _ in 0..tables {
            let samples = table(&mut s, &source, (rows, blocks), factor);
            let found = compare_all(&samples, source.scale, Level::FIXED, Blocking::Complete);
            let of_first = |pairs: &[Pairwise]| pairs.iter().any(|pair| pair.baseline == 0 && pair.differs);
            let last = found.pair(rows - 1, 0).unwrap();
            pair += usize::from(last.differs);
            some += usize::from(of_first(&found.pairs));
            held += usize::from(last.relative.unwrap().interval.contains(factor - 1.0));
            let ranks = compare_by_ranks(&samples, Level::FIXED, Blocking::Complete);
            pair_by_ranks +=
                usize::from(ranks.iter().any(|pair| (pair.baseline, pair.other) == (0, rows - 1) && pair.differs));
            some_by_ranks += usize::from(of_first(&ranks));
        }
        let figures = "lognormal";
        let case = Case { simulation: "one larger row", figures, factor, sigma: Some(sigma), rows, blocks };
        case.print("told apart from one row", pair, tables);
        case.print("told apart from some row", some, tables);
        case.print("by rank tests: from one row", pair_by_ranks, tables);
        case.print("by rank tests: from some row", some_by_ranks, tables);
        case.print("interval contains the factor", held, tables);
    }
}

fn main() {
    let tables = std::env::args().nth(1).map_or(4000, |n| n.parse().expect("a number"));
    println!("simulation,figures,factor,sigma,rows,blocks,quantity,percent");
    power(tables);
    false_alarms_and_coverage(tables);
    coverage_of_rows(tables);
}

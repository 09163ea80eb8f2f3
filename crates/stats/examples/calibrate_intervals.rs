//! How often the intervals cover the truth, by simulation. Prints Markdown tables.
//!
//! `cargo run --release -p fstone-stats --example calibrate_intervals [simulations]`

mod support;

use fstone_stats::compare::row_means;
use fstone_stats::interval::{bca, interval95};
use fstone_stats::stopping::{Decision, LOOKED, StoppingRule, decide};
use fstone_stats::{Blocking, Interval, Sample, Scale};
use support::Simulation;

const REPEATS: [usize; 5] = [3, 5, 10, 20, 30];

struct Source {
    name: &'static str,
    mean: f64,
    draw: fn(&mut Simulation, usize) -> Vec<f64>,
}

/// A straight line that rises by 1 over the run and is 0 in its middle.
fn ramp(i: usize, n: usize) -> f64 {
    i as f64 / (n - 1) as f64 - 0.5
}

fn trend(simulation: &mut Simulation, n: usize, rise: f64) -> Vec<f64> {
    (0..n).map(|i| 100.0 + 2.0 * (simulation.normal() + rise * ramp(i, n))).collect()
}

fn lognormal(simulation: &mut Simulation, n: usize, sigma: f64) -> Vec<f64> {
    (0..n).map(|_| (sigma * simulation.normal()).exp()).collect()
}

fn gamma(simulation: &mut Simulation, n: usize, shape: usize) -> Vec<f64> {
    (0..n).map(|_| (0..shape).map(|_| -simulation.uniform().ln()).sum()).collect()
}

fn sources() -> Vec<Source> {
    let source = |name, mean, draw| Source { name, mean, draw };
    vec![
        source("normal, 2 % scatter", 100.0, |s, n| (0..n).map(|_| 100.0 + 2.0 * s.normal()).collect()),
        source("lognormal σ = 0.25", (0.25_f64.powi(2) / 2.0).exp(), |s, n| lognormal(s, n, 0.25)),
        source("lognormal σ = 0.5", (0.5_f64.powi(2) / 2.0).exp(), |s, n| lognormal(s, n, 0.5)),
        source("lognormal σ = 1", 0.5_f64.exp(), |s, n| lognormal(s, n, 1.0)),
        source("gamma, shape 4", 4.0, |s, n| gamma(s, n, 4)),
        source("gamma, shape 2", 2.0, |s, n| gamma(s, n, 2)),
        source("exponential", 1.0, |s, n| gamma(s, n, 1)),
        source("drift of 1 σ over the run", 100.0, |s, n| trend(s, n, 1.0)),
        source("drift of 2 σ over the run", 100.0, |s, n| trend(s, n, 2.0)),
        source("drift of 3 σ over the run", 100.0, |s, n| trend(s, n, 3.0)),
        source("lognormal σ = 0.25, drift of 25 %", (0.25_f64.powi(2) / 2.0).exp(), |s, n| {
            let figures = lognormal(s, n, 0.25);
            figures.iter().enumerate().map(|(i, v)| v + 0.25 * ramp(i, n)).collect()
        }),
        source("autoregressive, 0.1", 100.0, |s, n| correlated(s, n, 0.1)),
        source("autoregressive, 0.3", 100.0, |s, n| correlated(s, n, 0.3)),
    ]
}

fn correlated(simulation: &mut Simulation, n: usize, coefficient: f64) -> Vec<f64> {
    simulation.autoregression(n, coefficient).iter().map(|v| 100.0 + 2.0 * v).collect()
}

type Method = fn(&Sample, u64) -> Option<Interval>;

fn coverage_table(title: &str, simulations: usize, method: Method) {
    println!("### {title}\n");
    println!("| figures | n = 3 | n = 5 | n = 10 | n = 20 | n = 30 |");
    println!("|---|--:|--:|--:|--:|--:|");
    for (row, source) in sources().iter().enumerate() {
        print!("| {} |", source.name);
        for n in REPEATS {
            let mut simulation = Simulation::new((row * 100 + n) as u64);
            let covered = (0..simulations)
                .filter(|_| {
                    let sample = Sample::new((source.draw)(&mut simulation, n)).unwrap();
                    method(&sample, simulation.seed()).unwrap().contains(source.mean)
                })
                .count();
            let share = 100.0 * covered as f64 / simulations as f64;
            let mark = if (93.0..=97.0).contains(&share) { "" } else { " \\*" };
            print!(" {share:.1}{mark} |");
        }
        println!();
    }
    println!();
}

struct Stopped {
    sample: Sample,
    reached: bool,
}

fn repeat_until(
    rule: &StoppingRule,
    simulation: &mut Simulation,
    mut draw: impl FnMut(&mut Simulation) -> f64,
) -> Stopped {
    let mut values = Vec::new();
    loop {
        values.push(draw(simulation));
        let sample = Sample::new(values.clone()).unwrap();
        match decide(rule, &[&sample], simulation.seed()) {
            Decision::Continue { .. } => {}
            Decision::Enough { .. } => return Stopped { sample, reached: true },
            Decision::Limit { .. } => return Stopped { sample, reached: false },
        }
    }
}

fn stopping_table(simulations: usize) {
    println!("### Repeating until ± 2 %, at most 30 times\n");
    println!(
        "| figures | min | repeats (mean) | reached | of these truth within ± 2 % | \
         published interval covers | ordinary 95 % would |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    for (name, scatter, sigma) in [
        ("normal, 1 % scatter", 0.01, None),
        ("normal, 2 % scatter", 0.02, None),
        ("normal, 3 % scatter", 0.03, None),
        ("normal, 5 % scatter", 0.05, None),
        ("normal, 10 % scatter", 0.10, None),
        ("lognormal σ = 0.5, scaled to 2 %", 0.02, Some(0.5_f64)),
        ("lognormal σ = 0.5, scaled to 5 %", 0.05, Some(0.5)),
    ] {
        for min in [3, 5, 10] {
            let rule = StoppingRule::until(min, 30, 0.02).unwrap();
            let mut simulation = Simulation::new((scatter * 1000.0) as u64 + min as u64);
            let (mut repeats, mut reached, mut kept, mut published, mut ordinary) = (0, 0, 0, 0, 0);
            for _ in 0..simulations {
                let stopped = repeat_until(&rule, &mut simulation, |s| {
                    let z = s.normal();
                    let deviation = sigma.map_or(z, |sigma| {
                        let mean = (sigma * sigma / 2.0).exp();
                        let spread = mean * ((sigma * sigma).exp() - 1.0).sqrt();
                        ((sigma * z).exp() - mean) / spread
                    });
                    1.0 + scatter * deviation
                });
                let sample = &stopped.sample;
                repeats += sample.n();
                if stopped.reached {
                    reached += 1;
                    kept += usize::from((sample.mean() - 1.0).abs() <= 0.02 * sample.mean());
                }
                let seed = simulation.seed();
                let covers = |i: Option<Interval>| usize::from(i.unwrap().contains(1.0));
                // The very function that tables are published by.
                let row = row_means(std::slice::from_ref(sample), Scale::Ratios, LOOKED, Blocking::Independent);
                published += covers(row[0].interval);
                ordinary += covers(interval95(sample, seed));
            }
            let per_cent = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
            println!(
                "| {name} | {min} | {:.1} | {:.0} % | {:.1} % | {:.1} % | {:.1} % |",
                repeats as f64 / simulations as f64,
                per_cent(reached, simulations),
                per_cent(kept, reached),
                per_cent(published, simulations),
                per_cent(ordinary, simulations),
            );
        }
    }
    println!();
}

fn main() {
    let simulations = std::env::args().nth(1).map_or(5000, |n| n.parse().expect("a number"));
    println!("{simulations} simulations a cell; \\* marks what is outside 93–97 %.\n");
    coverage_table("interval95 (mean)", simulations, interval95);
    coverage_table("plain BCa (mean), for comparison", simulations, |sample, seed| bca(sample, 0.95, 2000, seed));
    stopping_table(simulations / 5);
}

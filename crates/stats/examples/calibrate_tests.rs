//! False alarms and power of the tests for drift, for steadiness and of outlier marks, by simulation. Prints Markdown tables.
//!
//! `cargo run --release -p fstone-stats --example calibrate_tests [tables]`

mod support;

use fstone_stats::Sample;
use fstone_stats::drift::{RunPoint, drift_of_run, drift_of_sample};
use fstone_stats::outliers::outliers;
use fstone_stats::series::{Stationarity, stationarity};
use support::Simulation;

fn per_cent(part: usize, of: usize) -> f64 {
    100.0 * part as f64 / of as f64
}

fn drift_tables(tables: usize) {
    println!("### Drift: runs called drifting at the 5 % level\n");
    println!("{tables} runs each, scatter 3 %.\n");
    println!("| rows | repeats | no drift | 3 % rise | 10 % rise |");
    println!("|--:|--:|--:|--:|--:|");
    for rows in [1, 5, 17] {
        for repeats in [3, 5, 10, 20] {
            print!("| {rows} | {repeats} |");
            for rise in [0.0, 0.03, 0.10] {
                let mut s = Simulation::new((rows * 100 + repeats) as u64);
                let called = (0..tables).filter(|_| drifts(&mut s, rows, repeats, rise)).count();
                print!(" {:.1} % |", per_cent(called, tables));
            }
            println!();
        }
    }
    println!();
}

fn drifts(s: &mut Simulation, rows: usize, repeats: usize, rise: f64) -> bool {
    let mut points = Vec::new();
    for block in 0..repeats {
        let mut order: Vec<(f64, usize)> = (0..rows).map(|row| (s.uniform(), row)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (place, (_, cell)) in order.into_iter().enumerate() {
            let position = (block * rows + place) as f64;
            let time = position / (rows * repeats - 1) as f64;
            let scatter = 0.03 * (1.0 + (cell % 4) as f64) / 2.5;
            let scatter = if rows == 1 { 0.03 } else { scatter };
            let level = 10_f64.powi(i32::try_from(cell % 5).unwrap());
            let value = level * (1.0 + rise * time + scatter * s.normal());
            points.push(RunPoint { position, cell, value });
        }
    }
    let drift = if rows == 1 {
        let values = points.iter().map(|point| point.value).collect();
        drift_of_sample(&Sample::new(values).unwrap())
    } else {
        drift_of_run(&points)
    };
    drift.unwrap().p <= 0.05
}

fn series_tables(trials: usize) {
    println!("### Series within a trial: what `stationarity` says\n");
    println!("{trials} series each, scatter 5 %; the test is at the 1 % level.\n");
    println!("| series | points | stationary | warm-up | shifted |");
    println!("|---|--:|--:|--:|--:|");
    type Level = fn(f64) -> f64;
    let flat: Level = |_| 0.0;
    let kinds: [(&str, f64, Level); 8] = [
        ("flat, independent", 0.0, flat),
        ("flat, neighbours correlated 0.3", 0.3, flat),
        ("flat, neighbours correlated 0.5", 0.5, flat),
        ("flat, neighbours correlated 0.8", 0.8, flat),
        ("warm-up −20 %, gone after a tenth", 0.0, |t| if t < 0.1 { -0.2 } else { 0.0 }),
        ("exponential warm-up from −30 %", 0.0, |t| -0.3 * (-t / 0.05).exp()),
        ("5 % shift at 60 %", 0.0, |t| if t < 0.6 { 0.0 } else { 0.05 }),
        ("10 % shift at 60 %, correlated 0.3", 0.3, |t| if t < 0.6 { 0.0 } else { 0.1 }),
    ];
    for (name, correlation, level) in kinds {
        for points in [30, 60, 300] {
            let mut s = Simulation::new(points as u64);
            let (mut stationary, mut warm_up, mut shifted) = (0, 0, 0);
            for _ in 0..trials {
                let noise = s.autoregression(points, correlation);
                let values = noise
                    .iter()
                    .enumerate()
                    .map(|(i, noise)| 100.0 * (1.0 + level(i as f64 / points as f64) + 0.05 * noise));
                match stationarity(&Sample::new(values.collect()).unwrap(), s.seed()) {
                    Stationarity::Stationary => stationary += 1,
                    Stationarity::WarmUp { .. } => warm_up += 1,
                    Stationarity::Shifted { .. } => shifted += 1,
                    Stationarity::TooShort => unreachable!("30 points are enough"),
                }
            }
            println!(
                "| {name} | {points} | {:.1} % | {:.1} % | {:.1} % |",
                per_cent(stationary, trials),
                per_cent(warm_up, trials),
                per_cent(shifted, trials)
            );
        }
    }
    println!();
}

fn outlier_table(samples: usize) {
    println!("### Outlier marks: figures of clean samples that are marked\n");
    println!("{samples} samples each.\n");
    println!("| figures | n = 5 | n = 10 | n = 30 |");
    println!("|---|--:|--:|--:|");
    for (name, sigma) in [("normal", None), ("lognormal σ = 0.5", Some(0.5_f64))] {
        print!("| {name} |");
        for n in [5, 10, 30] {
            let mut s = Simulation::new(n as u64);
            let marked: usize = (0..samples)
                .map(|_| {
                    let draw = |z: f64| sigma.map_or(100.0 + z, |sigma| (sigma * z).exp());
                    let values = (0..n).map(|_| draw(s.normal())).collect();
                    outliers(&Sample::new(values).unwrap()).len()
                })
                .sum();
            print!(" {:.1} % |", per_cent(marked, samples * n));
        }
        println!();
    }
    println!();
}

fn main() {
    let tables = std::env::args().nth(1).map_or(1000, |n| n.parse().expect("a number"));
    drift_tables(2 * tables);
    series_tables(tables);
    outlier_table(10 * tables);
}

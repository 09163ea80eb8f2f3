//! What looking after every block costs and saves, by simulation. Prints Markdown tables.
//!
//! `cargo run --release -p fstone-stats --example calibrate_sequential [RUNS [SERIES]]`. SERIES is a file for the figures that the rule
//! of fsperf is tried on, so that other tools can be tried on the same: bench/calibrate/change_points.py.

#[expect(dead_code, reason = "the other calibrations use the rest")]
mod support;

use fstone_stats::sequential::{Answered, Looks, MIN_FREEDOM};
use fstone_stats::{Blocking, Comparison, Level, Sample, Scale, compare_all};
use support::Simulation;

/// A run: rows that grow block by block, the last of them `factor` times the others.
struct Run {
    figures: Vec<Vec<f64>>,
    deviation: f64,
    factor: f64,
}

impl Run {
    fn new(rows: usize, deviation: f64, factor: f64) -> Self {
        Self { figures: vec![Vec::new(); rows], deviation, factor }
    }

    fn block(&mut self, s: &mut Simulation) {
        let shared = 0.1 * s.normal();
        let last = self.figures.len() - 1;
        for (row, figures) in self.figures.iter_mut().enumerate() {
            let level = if row == last { self.factor } else { 1.0 };
            figures.push(100.0 * level * (shared + self.deviation * s.normal()).exp());
        }
    }

    fn compared(&self, level: Level) -> Comparison {
        let samples: Vec<Sample> = self.figures.iter().map(|row| Sample::new(row.clone()).unwrap()).collect();
        compare_all(&samples, Scale::Ratios, level, Blocking::Complete)
    }
}

/// The levels of looks after every block; they do not depend on the figures.
fn levels(rows: usize, most: usize) -> Vec<(usize, Option<Level>)> {
    let mut looks = Looks::new(rows);
    let look = |blocks| {
        let freedom = (rows - 1) * (blocks - 1);
        let level = (freedom >= MIN_FREEDOM).then(|| looks.look(blocks as f64 / most as f64));
        (blocks, level.flatten())
    };
    (2..=most).map(look).collect()
}

struct End {
    blocks: usize,
    comparison: Comparison,
    decided: bool,
}

fn until_answered(s: &mut Simulation, mut run: Run, levels: &[(usize, Option<Level>)], resolution: f64) -> End {
    run.block(s);
    for (blocks, level) in levels {
        run.block(s);
        let Some(level) = level else { continue };
        let comparison = run.compared(*level);
        let decided = Answered::of(&comparison, resolution).all();
        if decided || *blocks == levels.len() + 1 {
            return End { blocks: *blocks, comparison, decided };
        }
    }
    unreachable!("the last block ends it")
}

fn fixed(s: &mut Simulation, mut run: Run, blocks: usize) -> Comparison {
    for _ in 0..blocks {
        run.block(s);
    }
    run.compared(Level::FIXED)
}

fn differs(comparison: &Comparison) -> usize {
    usize::from(comparison.pairs.iter().any(|pair| pair.differs))
}

fn per_cent(part: usize, of: usize) -> f64 {
    100.0 * part as f64 / of as f64
}

/// Never content with "small", so that every look has its chance to be wrong.
fn false_alarms(runs: usize) {
    println!("### Equal rows with a look after every block\n");
    println!(
        "{runs} runs each, which never stop early, so that every look can err. A run is wrong if any look calls any two rows different.\n"
    );
    println!("| rows | blocks at most | wrong, 5 % spent over the looks | wrong, 5 % at every look |");
    println!("|--:|--:|--:|--:|");
    for rows in [2, 5, 9] {
        for most in [5, 10, 30] {
            let mut s = Simulation::new((rows * 100 + most) as u64);
            let (mut wrong, mut naive) = (0, 0);
            let levels = levels(rows, most);
            for _ in 0..runs {
                let mut run = Run::new(rows, 0.1, 1.0);
                let (mut any, mut any_naive) = (0, 0);
                run.block(&mut s);
                for (_, level) in &levels {
                    run.block(&mut s);
                    any |= level.map_or(0, |level| differs(&run.compared(level)));
                    any_naive |= differs(&run.compared(Level::FIXED));
                }
                wrong += any;
                naive += any_naive;
            }
            println!("| {rows} | {most} | {:.1} % | {:.1} % |", per_cent(wrong, runs), per_cent(naive, runs));
        }
    }
    println!();
}

fn two_per_cent(runs: usize) {
    println!("### A device that is 2 % slower, or equally fast\n");
    println!("Two rows with a scatter of 2 %. \"Blocks\" is the mean number of blocks. {runs} runs each.\n");
    println!("| | found if 2 % slower | blocks | called different if equal | blocks |");
    println!("|---|--:|--:|--:|--:|");
    let print = |name: &str, of: &mut dyn FnMut(f64) -> (usize, usize)| {
        let (found, slower) = of(0.98);
        let (wrong, equal) = of(1.0);
        let mean = |blocks: usize| blocks as f64 / runs as f64;
        println!(
            "| {name} | {:.1} % | {:.1} | {:.1} % | {:.1} |",
            per_cent(found, runs),
            mean(slower),
            per_cent(wrong, runs),
            mean(equal)
        );
    };
    for blocks in [12, 24, 38, 50] {
        print(&format!("a fixed {blocks} blocks"), &mut |factor| {
            let mut s = Simulation::new(blocks as u64);
            let found = (0..runs).map(|_| differs(&fixed(&mut s, Run::new(2, 0.02, factor), blocks))).sum();
            (found, blocks * runs)
        });
    }
    for (most, resolution) in [(24, 0.0), (30, 0.0), (30, 0.02), (60, 0.02), (60, 0.01)] {
        let name = if resolution > 0.0 {
            format!("at most {most} looks, resolution {:.0} %", 100.0 * resolution)
        } else {
            format!("at most {most} looks")
        };
        let levels = levels(2, most);
        print(&name, &mut |factor| {
            let mut s = Simulation::new(most as u64);
            let (mut found, mut blocks) = (0, 0);
            for _ in 0..runs {
                let end = until_answered(&mut s, Run::new(2, 0.02, factor), &levels, resolution);
                found += differs(&end.comparison);
                blocks += end.blocks;
            }
            (found, blocks)
        });
    }
    let history = |factor: f64| history(runs, factor);
    // fsperf: a result is a regression when it lies outside mean ± 1.96 σ of the earlier ones.
    print("mean ± 1.96 σ of 24 earlier figures, one new", &mut |factor| {
        let outside = |series: &&Vec<f64>| {
            let sample = Sample::new(series[..EARLIER].to_vec()).unwrap();
            (series[EARLIER] - sample.mean()).abs() > 1.96 * sample.stddev()
        };
        (history(factor).iter().filter(outside).count(), runs)
    });
    println!();
}

/// Figures of a device before it may have become slower, and as many after.
const EARLIER: usize = 24;

/// What tools that watch a device over time are given: a series a run, without what the blocks of a run share.
fn history(runs: usize, factor: f64) -> Vec<Vec<f64>> {
    let mut s = Simulation::new(7);
    let figure = |s: &mut Simulation, index| {
        let level = if index < EARLIER { 1.0 } else { factor };
        100.0 * level * (0.02 * s.normal()).exp()
    };
    (0..runs).map(|_| (0..2 * EARLIER).map(|index| figure(&mut s, index)).collect()).collect()
}

/// A line a series: the factor, then its figures.
fn write_series(path: &str, runs: usize) -> std::io::Result<()> {
    let mut text = String::new();
    for factor in [0.98, 1.0] {
        for series in history(runs, factor) {
            let figures: Vec<String> = series.iter().map(f64::to_string).collect();
            text.push_str(&format!("{factor},{}\n", figures.join(",")));
        }
    }
    std::fs::write(path, text)
}

fn nine_rows(runs: usize) {
    println!("### Nine rows until they are answered\n");
    println!("{runs} runs each, scatter 10 %, at most 30 blocks, resolution 10 %; one row is larger by the factor.\n");
    println!("| factor | answered | blocks (mean) | pairs of that row found | other pairs called different |");
    println!("|--:|--:|--:|--:|--:|");
    let levels = levels(9, 30);
    for factor in [2.0, 1.5, 1.2, 1.0] {
        let mut s = Simulation::new(11);
        let (mut answered, mut blocks, mut found, mut wrong) = (0, 0, 0, 0);
        for _ in 0..runs {
            let end = until_answered(&mut s, Run::new(9, 0.1, factor), &levels, 0.1);
            answered += usize::from(end.decided);
            blocks += end.blocks;
            let of_last = |last: bool| end.comparison.pairs.iter().filter(move |pair| (pair.other == 8) == last);
            found += of_last(true).filter(|pair| pair.differs).count();
            wrong += usize::from(of_last(false).any(|pair| pair.differs));
        }
        println!(
            "| {factor} | {:.0} % | {:.1} | {:.1} % | {:.1} % |",
            per_cent(answered, runs),
            blocks as f64 / runs as f64,
            per_cent(found, 8 * runs),
            per_cent(wrong, runs)
        );
    }
    println!();
}

fn main() {
    let runs = std::env::args().nth(1).map_or(1000, |n| n.parse().expect("a number"));
    if let Some(path) = std::env::args().nth(2) {
        write_series(&path, runs).expect("a file that can be written");
    }
    two_per_cent(runs);
    nine_rows(runs);
    false_alarms(runs);
}

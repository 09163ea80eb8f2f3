//! Results, kept with the machine they are of.

use crate::before::{Before, Value};
use crate::options::Options;
use crate::place::command;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) unit: String,
    pub(crate) rounds: usize,
    pub(crate) sides: Vec<SideRecord>,
    pub(crate) verdicts: Vec<Verdict>,
    /// "side: why it was not measured".
    pub(crate) absent: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct SideRecord {
    pub(crate) name: String,
    /// One per round.
    pub(crate) values: Vec<f64>,
    pub(crate) mean: f64,
    pub(crate) interval95: Option<(f64, f64)>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Verdict {
    pub(crate) goal: String,
    /// The ratio, or fstone's figure.
    pub(crate) value: f64,
    pub(crate) interval95: Option<(f64, f64)>,
    pub(crate) reached: bool,
}

#[derive(Debug, Clone, Serialize)]
struct Machine {
    cpu: String,
    cpus: usize,
    kernel: String,
    memory_kib: u64,
}

#[derive(Debug, Clone, Serialize)]
struct Made {
    /// The commit, with "and changes" where files differ from it; empty outside a repository.
    commit: String,
    /// The tools, as they name themselves; those that are missing are left out.
    tools: Vec<String>,
    command: String,
}

#[derive(Debug, Serialize)]
struct Run<'a> {
    date: String,
    made: Made,
    smoke: bool,
    seconds: f64,
    machine: Machine,
    figures: &'a [Record],
}

impl Record {
    pub(crate) fn side(&self, name: &str) -> Option<&SideRecord> {
        self.sides.iter().find(|side| side.name == name)
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .sides
            .iter()
            .map(|side| format!("{:24} {} {}", side.name, between(side.mean, side.interval95), self.unit))
            .collect();
        lines.extend(self.verdicts.iter().map(|verdict| {
            let mark = if verdict.reached { "reached" } else { "MISSED" };
            format!("{}: {} — {mark}", verdict.goal, between(verdict.value, verdict.interval95))
        }));
        lines.extend(self.absent.iter().map(|absent| format!("skipped: {absent}")));
        lines
    }
}

/// "0.97 [0.95, 0.99]", with as many digits as matter.
fn between(value: f64, interval: Option<(f64, f64)>) -> String {
    match interval {
        Some((low, high)) => format!("{} [{}, {}]", digits(value), digits(low), digits(high)),
        None => digits(value),
    }
}

fn digits(value: f64) -> String {
    match value.abs() {
        large if large >= 1000.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

fn machine() -> Machine {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("", |rest| rest.trim_start_matches(['\t', ' ', ':']));
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory =
        meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok());
    Machine {
        cpu: cpu.to_owned(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        memory_kib: memory.unwrap_or(0),
    }
}

fn made() -> Made {
    let said = |program: &str, arguments: &[&str]| -> Option<String> {
        let output = command(program, arguments).ok()?;
        output.lines().next().map(|line| line.trim().to_owned())
    };
    let changed = said("git", &["status", "--porcelain", "--untracked-files=no"]).is_some();
    let commit = said("git", &["rev-parse", "HEAD"]).unwrap_or_default();
    Made {
        commit: if changed { format!("{commit} and changes") } else { commit },
        tools: [said("fio", &["--version"]), said("sysbench", &["--version"])].into_iter().flatten().collect(),
        command: std::env::args().collect::<Vec<String>>().join(" "),
    }
}

/// Writes `<date and time, UTC>-<machine>.json` and `.md`, of one figure with its name; gives their paths.
pub(crate) fn keep(records: &[Record], options: &Options) -> Result<Vec<PathBuf>, String> {
    let machine = machine();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let date = fstone_model::when::iso(fstone_model::units::nanoseconds(now))[..16].replace(':', "");
    let slug: String = format!("{}x-{}", machine.cpus, machine.cpu)
        .to_lowercase()
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect::<Vec<&str>>()
        .join("-");
    let run = Run {
        date: date.clone(),
        made: made(),
        smoke: options.smoke,
        seconds: options.seconds,
        machine,
        figures: records,
    };
    let failed = |error: std::io::Error| format!("keep the results in {}: {error}", options.output.display());
    std::fs::create_dir_all(&options.output).map_err(failed)?;
    let of_one = options.only.as_ref().map(|name| format!("-{name}")).unwrap_or_default();
    let base = options.output.join(format!("{date}-{slug}{of_one}"));
    let (json, markdown) = (base.with_extension("json"), base.with_extension("md"));
    let text = serde_json::to_string_pretty(&run).map_err(|error| format!("write the results: {error}"))?;
    std::fs::write(&json, text + "\n").map_err(failed)?;
    std::fs::write(&markdown, table(&run, options.before.as_deref().map(Before::read).transpose()?.as_ref()))
        .map_err(failed)?;
    Ok(vec![json, markdown])
}

fn table(run: &Run<'_>, before: Option<&Before>) -> String {
    let shown = |value: Option<Value>| value.map_or_else(String::new, |(value, interval)| between(value, interval));
    let column =
        |text: &dyn Fn(&Before) -> String| before.map_or_else(String::new, |before| format!(" {} |", text(before)));
    let (header, rule) = (column(&|before| format!("before ({})", before.date)), column(&|_| "---".into()));
    let machine = &run.machine;
    let mut text = format!(
        "# The load engine beside its peers, {}\n\n{} × {}, Linux {}, {:.1} GiB of memory. All sides of a figure were \
         measured in turns; ratios are of pairs of one round (Hodges–Lehmann, exact signed-rank interval); [ ] are 95 % \
         intervals.\n\nCommit {}; {}; `{}`.\n\n",
        run.date,
        machine.cpus,
        machine.cpu,
        machine.kernel,
        machine.memory_kib as f64 / 1048576.0,
        run.made.commit,
        run.made.tools.join(", "),
        run.made.command
    );
    if run.smoke {
        text.push_str("**Smoke mode: the amounts are far too small for these figures to mean anything.**\n\n");
    }
    let _ = writeln!(text, "| figure | goal |{header} result | |\n|---|---|{}---|---|", rule.trim_start());
    for record in run.figures {
        if record.verdicts.is_empty() && !record.absent.is_empty() {
            let (why, nothing) = (record.absent.join("; "), column(&|_| String::new()));
            let _ = writeln!(text, "| {} | |{nothing} not measured: {why} | |", record.title);
        }
        for verdict in &record.verdicts {
            let mark = if verdict.reached { "reached" } else { "**missed**" };
            let value = between(verdict.value, verdict.interval95);
            let earlier = column(&|before| shown(before.verdict(&record.name, &verdict.goal)));
            let _ = writeln!(text, "| {} | {} |{earlier} {value} | {mark} |", record.title, verdict.goal);
        }
    }
    let _ = writeln!(text, "\n| figure | side |{header} mean | unit | n |\n|---|---|{}---|---|---|", rule.trim_start());
    for record in run.figures {
        for side in &record.sides {
            let value = between(side.mean, side.interval95);
            let _ = writeln!(
                text,
                "| {} | {} |{} {value} | {} | {} |",
                record.title,
                side.name,
                column(&|before| shown(before.side(&record.name, &side.name))),
                record.unit,
                side.values.len()
            );
        }
        for absent in &record.absent {
            let _ = writeln!(text, "| {} | {absent} |{} | | |", record.title, column(&|_| String::new()));
        }
    }
    text
}

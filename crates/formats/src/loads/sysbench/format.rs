//! Options of `sysbench fileio` as one of the load formats.

use super::{
    arguments::{Arguments, Value},
    meaning,
};
use crate::{
    Diagnostics,
    loads::{Load, LoadFormat},
};

pub const FORMAT: LoadFormat = LoadFormat {
    key: "sysbench",
    about: "Options of `sysbench fileio`, as on its command line: `prepare` makes the files, `run` uses them; without \
         either, both.",
    extensions: &[],
    words: Some(read),
    file: |document| read(&document.source.text().split_whitespace().map(str::to_owned).collect::<Vec<_>>()),
    converted: None,
};

fn read(words: &[String]) -> Result<Load, Diagnostics> {
    let words = words.strip_prefix(&["sysbench".to_owned()]).unwrap_or(words);
    let is_prepared = !words.iter().any(|word| word == "prepare" || word == "run");
    let run = is_prepared.then(|| "run".to_owned());
    let mut arguments = Arguments::read(&words.iter().cloned().chain(run).collect::<Vec<_>>());
    for given in arguments.given.iter().filter(|given| given.value != Value::Switch(false)) {
        if let Some(why) = given.option.command_only {
            arguments.report.push(why.warning("sysbench", &format!("--{}", given.option.name), given.span));
        }
    }
    let fileio = meaning(arguments)?;
    let workload = if is_prepared { fileio.prepared_workload() } else { fileio.workload() };
    Ok(Load { workload, warnings: fileio.warnings, keeps_total: true })
}

//! Options of `sysbench fileio` as one of the load formats.

use super::parse;
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
    let (fileio, workload) = if words.iter().any(|word| word == "prepare" || word == "run") {
        let fileio = parse(words)?;
        let workload = fileio.workload();
        (fileio, workload)
    } else {
        let run: Vec<String> = words.iter().cloned().chain(["run".to_owned()]).collect();
        let fileio = parse(&run)?;
        let workload = fileio.prepared_workload();
        (fileio, workload)
    };
    Ok(Load { workload, warnings: fileio.warnings, keeps_total: true })
}

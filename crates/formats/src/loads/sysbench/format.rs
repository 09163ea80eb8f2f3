//! Options of `sysbench fileio` as one of the load formats.

use super::parse;
use crate::loads::{Load, LoadFormat, Reader};

pub struct Sysbench;

impl LoadFormat for Sysbench {
    fn key(&self) -> &'static str {
        "sysbench"
    }

    fn about(&self) -> &'static str {
        "Options of `sysbench fileio`, as on its command line: `prepare` makes the files, `run` uses them; without \
         either, both."
    }

    fn reader(&self) -> Reader {
        Reader::Words {
            extensions: &[],
            read: |words| {
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
            },
        }
    }
}

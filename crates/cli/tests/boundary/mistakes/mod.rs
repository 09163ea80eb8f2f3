//! Two hundred mistakes at the command line, each with its exit status and its message. Read the table aloud after a
//! change: a message says what is wrong with what was typed, and what to type instead.

mod table;

use super::command_study;
use crate::support::Bench;
use std::collections::BTreeSet;
use table::MISTAKES;

fn bench() -> Bench {
    let bench = Bench::new();
    command_study(&bench, "one.toml", "work", "true");
    for _ in 0..2 {
        bench.succeed(&["run", "./one.toml"]);
    }
    bench.write(
        "bad.ffsb",
        "num_filesystems=1\nnum_threadgroups=1\ntime=1\n[filesystem0]\nlocation=/nowhere/at/all\nnum_files=20\n[end0]\n\
         [threadgroup0]\nnum_threads=four\ncreate_weight=1\n[end0]\n",
    );
    bench.write(
        "load.toml",
        "name = \"l\"\n[[fileset]]\nname = \"f\"\nfiles = 1\nsize = \"4 KiB\"\n[[phase]]\nname = \"p\"\n\
         stop = { operations = 3 }\n[[phase.group]]\nname = \"g\"\nthreads = 1\n[[phase.group.mix]]\nweight = 1\n\
         read = { size = \"4 KiB\", block = \"4 KiB\" }\n",
    );
    bench.write(
        "bad.fio",
        "[global]\ndirectory=/nowhere/at/all\nsize=1x\n[job]\nrw=randraed\niodepht=4\nioengine=rdma\n",
    );
    bench.write("waits.fio", "[one]\nsize=4k\nrw=read\nwait_for=one\n");
    bench.write("includes.fio", "include includes.fio\ninclude none.fio\n[one]\nsize=4k\n");
    bench.write("unset.fio", "[one]\nsize=${FSTONE_NOT_SET}\n");
    let personality = |flowops: &str| {
        format!(
            "set $dir=/nowhere/at/all\ndefine fileset name=set,path=$dir,size=8k,entries=10,dirwidth=10\n\
             define process name=p {{\n thread name=t {{\n{flowops}\n }}\n}}\nrun 1\n"
        )
    };
    bench.write("bad.f", &personality("flowop opnfile name=o,filesetname=set,fd=1\nflowop read name=r,fd=2,iosize=8q"));
    bench.write("gone.f", &personality("flowop statfile name=s,filesetname=set"));
    bench.write("leaves.f", &personality("flowop makedir name=m,filesetname=set"));
    bench.write("sett.f", &personality("flowop statfile name=s,filesetname=sett"));
    bench.write("open.f", &personality("flowop closefile name=c,filesetname=set,fd=1"));
    bench.write("shell.f", "system \"true\"\nrun 1\n");
    bench.write("empty.f", "run 5\n");
    // A name that begins like a diagnostic.
    bench.write("error", "");
    bench
}

#[test]
fn every_mistake_is_told_in_words_that_help() {
    let bench = bench();
    let mut wrong = Vec::new();
    for (line, status, message) in MISTAKES {
        // The shell's two quotes stand for a word of nothing.
        let words: Vec<&str> = line.split_whitespace().map(|word| if word == "''" { "" } else { word }).collect();
        let (code, _, err) = bench.run(&words);
        if code != *status || !err.contains(message) {
            wrong.push(format!("$ fstone {line}\n  {status}: {message}\n  but it was {code}: {err}"));
        }
        // Errors of a language's library, of a parser's insides, and of fstone itself are no help.
        for word in ["panicked", "in string", "target type", "Os {", "Err(", "stack backtrace"] {
            assert!(!err.contains(word), "$ fstone {line}\n{err}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let lines: BTreeSet<&str> = MISTAKES.iter().map(|(line, ..)| *line).collect();
    assert!(lines.len() == MISTAKES.len() && lines.len() >= 200, "{} different mistakes", lines.len());
    // None of them made anything.
    bench.assert_clean();
    assert_eq!(bench.succeed(&["list", "runs"]).matches(" finished").count(), 2);
}

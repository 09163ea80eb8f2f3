use super::*;
use crate::{
    Source,
    loads::{
        letters::{self, CommandLine, Treatment},
        native,
    },
};
use fstone_model::{
    Histogram, LoadReport,
    load::OperationReport,
    ranks::{PhaseMeeting, RankPhase, RankReport, Ranked, RanksReport},
    workload::{Directories, Existing, FileChoice, Operation, Workload},
};
use std::time::Duration;

fn read(line: &str) -> Result<Mdtest, String> {
    read_with(line, "17\n")
}

fn read_with(line: &str, kept: &str) -> Result<Mdtest, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let mut created = |path: &str| if path == "there" { Ok(kept.to_owned()) } else { Err("no such file".into()) };
    parse(&CommandLine::of_arguments(&words), &mut created).map_err(|wrong| wrong.to_string())
}

fn phases(workload: &Workload) -> Vec<&str> {
    workload.phases.iter().map(|phase| phase.name.as_str()).collect()
}

#[test]
fn phases_come_in_mdtests_order() {
    let all = [
        "Directory creation",
        "Directory stat",
        "Directory rename",
        "Directory removal",
        "File creation",
        "File stat",
        "File read",
        "File removal",
    ];
    for (line, wanted) in [
        ("-n 10", &all[..]),
        ("-n 10 -F", &all[4..]),
        ("-n 10 -D", &all[..4]),
        ("-n 10 -F -D", &all[..]),
        ("-n 10 -F -C -r", &["File creation", "File removal"]),
        ("-n 10 -TF", &["File stat"]),
        ("-n 1 -D", &["Directory creation", "Directory stat", "Directory removal"]),
    ] {
        let plan = read(line).expect(line).plan();
        assert_eq!(phases(&plan.workload), wanted, "{line}");
        assert_eq!(plan.stages.len(), wanted.len());
    }
    let twice = read("-n 10 -F -T -Y -i 2").expect("right").plan();
    let wanted = [
        "File stat, iteration 1",
        "File stat: sync, iteration 1",
        "File stat, iteration 2",
        "File stat: sync, iteration 2",
    ];
    assert_eq!(phases(&twice.workload), wanted);
    assert_eq!(twice.workload.filesets[1].directory, "test-dir.1-0");
}

#[test]
fn a_tree_has_its_items_in_its_directories() {
    for (line, items, each) in [
        ("-n 100", 100, 100),
        ("-n 100 -z 1 -b 2", 99, 33),
        ("-n 100 -z 2 -b 3 -L", 99, 11),
        ("-I 7 -z 2 -b 2", 49, 7),
        ("-I 7 -z 2 -b 2 -L", 28, 7),
        ("-n 6 -z 2", 6, 2),
    ] {
        let mdtest = read(line).expect(line);
        assert_eq!((mdtest.items, mdtest.each), (items, each), "{line}");
        let fileset = &mdtest.plan().workload.filesets[0];
        let Directories::Filled { each: of_fileset, .. } = fileset.directories else { panic!("{fileset:?}") };
        assert_eq!((of_fileset, fileset.leaf_directories), (each, items));
    }
}

#[test]
fn options_are_in_the_load() {
    let load = |line: &str| read(line).expect(line).plan().workload;
    let shifted = load("-n 9 -N 2");
    let shifts: Vec<u32> = shifted.phases.iter().map(|phase| phase.node_shift).collect();
    assert_eq!(shifts, [0, 2, 2, 6, 0, 2, 4, 6]);
    let walled = load("-n 9 -W 30 -F");
    let [create, stat, ..] = &*walled.phases else { panic!("{walled:?}") };
    assert!(create.stop.wear_out && create.stop.time == Some(Duration::from_secs(30)));
    assert_eq!(create.groups[0].stop.operations, Some(9));
    assert!(stat.stop.once_through && !stat.stop.wear_out);
    let written = load("-n 9 -F -w 3901 -e 100 -y -R");
    let operations: Vec<Operation> =
        written.phases.iter().map(|phase| phase.groups[0].actions.all()[0].operation.clone()).collect();
    assert_eq!(operations[0], Operation::Create { block_bytes: 3901, fsync: true });
    assert!(matches!(&operations[2], Operation::Read(transfer) if transfer.block_bytes == 100));
    assert_eq!(written.phases[1].groups[0].actions.all()[0].choice, FileChoice::Shuffled);
    assert_eq!(load("-n 9 -F -E").filesets[0].existing, Existing::Assume);
    let private = &load("-n 9 -u").filesets[0];
    assert!(!private.has_common_directories() && load("-n 9").filesets[0].has_common_directories());
    assert!(private.of_rank(3).naming.directory_prefix == "mdtest_tree.3.", "{private:?}");
    assert_eq!(read("-F -T -x there").expect("the file is there").items, 17);
}

/// A stonewall leaves fewer items than were asked for, where they would have been without it.
#[test]
fn items_of_an_earlier_run_are_looked_for_where_they_are() {
    for (line, kept, each) in [
        ("-F -T -z 1 -b 2 -x there", "17 33\n", 33),
        ("-F -T -z 1 -b 2 -n 99 -x there", "17\n", 33),
        ("-F -T -z 1 -b 2 -I 33 -x there", "17\n", 33),
        ("-F -T -z 1 -b 2 -x there", "99\n", 33),
    ] {
        let mdtest = read_with(line, kept).expect(line);
        assert_eq!(mdtest.each, each, "{line} {kept}");
        assert_eq!(mdtest.items.to_string(), kept.split_whitespace().next().expect("a number"), "{line}");
    }
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    for (line, told) in [
        ("", "the number of items is missing"),
        ("-n 10 -I 5", "-n and -I say the same"),
        ("-n 2 -z 1 -b 2", "too few for the 3 directories"),
        ("-n 10 -F -w 3901 --posix.odirect", "O_DIRECT moves whole sectors of 512 bytes here, and not 3901 bytes"),
        ("-n 10 -F -w 4k -e 100 --posix.odirect", "O_DIRECT moves whole sectors of 512 bytes here, and not 100 bytes"),
        ("-n 10 -B", "-B is not supported"),
        ("-n 10 -c", "-c is not supported"),
        ("-n 10 -S", "-S is not supported"),
        ("-n 10 -k", "-k is not supported"),
        ("-n 10 -f 1 -l 4", "-f is not supported"),
        ("-n 10 -X", "-X is not supported"),
        ("-n 10 --saveRankPerformanceDetails=x", "--results DIR has every rank's figures"),
        ("-n 10 -a MPIIO", "no interface MPIIO"),
        ("-n 10 -d a@b", "one directory is worked in"),
        ("-n 10 -e 5", "more is read of each file than is written"),
        ("-n 10 -i 0", "nothing would be done"),
        ("-n 10 -z 1 -b 0", "at least one subdirectory"),
        ("-n 10 -z 30 -b 9", "directories, where"),
        ("-n 10 -F -U", "-U renames directories"),
        ("-T -x nowhere", "cannot read how many items"),
        ("-n 10 -Q", "unknown option -Q"),
    ] {
        let wrong = read(line).expect_err(line);
        assert!(wrong.contains(told), "{line}: {wrong}");
    }
    let warned = read("-n 10 -v -t -G 5 -T -W 3").expect("only warnings").warnings.expect("some").to_string();
    for told in ["-v has no effect", "-t has no effect", "-G has no effect", "-W has no effect"] {
        assert!(warned.contains(told), "{warned}");
    }
    assert!(read_with("-T -F -x there", "many").is_err());
}

#[test]
fn a_file_says_where_it_is_wrong() {
    let source = Source::new("easy.mdtest", "mpirun -n 4 mdtest \\\n  -n 10 \\\n  -B\n");
    let mut nothing = |_: &str| Err(String::new());
    let mut document = crate::loads::Document { source: &source, seconds: None, loader: &mut nothing };
    let wrong = (FORMAT.file)(&mut document).expect_err("-B").to_string();
    assert!(wrong.contains("easy.mdtest:3:3"), "{wrong}");
}

#[test]
fn every_load_is_a_workload_file() {
    for line in ["-n 10", "-n 100 -z 2 -b 3 -u -L -w 5 -e 5 -N 1 -R -W 2 -Y -i 2", "-n 4 -F -T -r", "-D -I 3 -z 2 -b 2"]
    {
        let workload = read(line).expect(line).plan().workload;
        let printed = native::print(&workload);
        let again =
            native::parse(&Source::new("converted", printed.as_str())).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(again, workload, "{printed}");
        assert_eq!(workload.unfit_for_ranks(), None, "{line}");
    }
}

/// Two tasks on two nodes that created and removed three files each, twice.
fn report(plan: &Plan) -> RanksReport {
    let length = |number: usize| 1_000_000 * (1 + number as u64);
    let phases = plan.workload.phases.iter().enumerate();
    let meetings = phases.clone().map(|(number, phase)| PhaseMeeting {
        name: phase.name.clone(),
        length_ns: length(number),
        ranks: 2,
        ..PhaseMeeting::default()
    });
    let rank = |rank: u32| RankReport {
        rank,
        host: format!("node{rank}"),
        phases: phases
            .clone()
            .map(|(_, phase)| RankPhase { name: phase.name.clone(), operations: 3, ..RankPhase::default() })
            .collect(),
        ..RankReport::default()
    };
    let operations = phases.clone().map(|(_, phase)| OperationReport {
        group: phase.name.clone(),
        latency: Histogram::from_values(&[1000, 2000]),
        ..OperationReport::default()
    });
    let ranked = Ranked {
        ranks: 2,
        nodes: 2,
        completed: 2,
        phases: meetings.collect(),
        per_rank: vec![rank(0), rank(1)],
        ..Ranked::default()
    };
    let load = LoadReport { operations: operations.collect(), ..LoadReport::default() };
    RanksReport { ranked, load, ..RanksReport::default() }
}

#[test]
fn the_table_is_mdtests() {
    let mdtest = read("-n 3 -F -C -r -i 2 -P").expect("right");
    let plan = mdtest.plan();
    let (report, place) = (report(&plan), Place { path: "/mnt/x".into(), ..Place::default() });
    let millisecond = Duration::from_millis(1);
    let trees = Trees { made: vec![(1, millisecond), (1, millisecond * 2)], removed: vec![] };
    let results = Results { mdtest: &mdtest, plan: &plan, report: &report, trees: &trees, place: &place };
    let text = print(&results);
    // Six files in 1 ms, and in 3 ms: 6000 and 2000 per second; removed in 2 and 4 ms.
    for line in [
        "2 tasks, 6 files",
        "Nodemap: 10",
        "Path                : /mnt/x",
        "SUMMARY rate (in ops/sec): (of 2 iterations)",
        "   Operation                     Max            Min           Mean        Std Dev",
        "   File creation            6000.000       2000.000       4000.000       2828.427",
        "   File removal             3000.000       1500.000       2250.000       1060.660",
        "   File stat                   0.000          0.000          0.000          0.000",
        "   Tree creation            1000.000        500.000        750.000        353.553",
        "   Tree removal                0.000          0.000          0.000          0.000",
        "   File creation               0.003          0.001          0.002          0.001",
    ] {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(text.lines().any(|printed| words(printed) == words(line)), "{line}\n{text}");
    }
    // In the tables of rates and of times, and nowhere else.
    assert_eq!(text.matches("File creation").count(), 2, "{text}");
    assert!(!text.contains("Directory"), "{text}");
    assert_eq!(results.created().as_deref(), Some("3 3\n"));
    let json = json(&results);
    assert_eq!(json["operations"][0]["operation"], "File creation");
    assert_eq!(json["operations"][0]["rate_per_second"]["max"], 6000.0);
    assert_eq!(json["operations"][1]["iterations"][1]["items"], 6);
}

/// Zeros are for what was not to be done.
#[test]
fn what_no_task_ended_is_marked() {
    let mdtest = read("-n 3 -F -C -r -i 2").expect("right");
    let plan = mdtest.plan();
    let mut report = report(&plan);
    let (place, trees) = (Place::default(), Trees::default());
    let removal = |phase: &str| phase.contains("removal") || phase.contains("Removal");
    let first = report.ranked.phases.iter().position(|phase| removal(&phase.name)).expect("files are removed");
    report.ranked.phases.remove(first);
    let results = Results { mdtest: &mdtest, plan: &plan, report: &report, trees: &trees, place: &place };
    let text = print(&results);
    let line = |name: &str| text.lines().find(|line| line.trim().starts_with(name)).expect("a row").to_owned();
    assert!(line("File removal").ends_with("  ! 1 of 2 iterations ended"), "{text}");
    assert!(!line("File creation").contains('!') && !line("File stat").contains('!'), "{text}");
}

#[test]
fn options_that_only_the_command_obeys_are_named_elsewhere() {
    let obeyed = |option: &&letters::Opt| matches!(option.treatment, Treatment::Supported | Treatment::Own);
    let options = options::OPTIONS.iter().filter(obeyed).map(letters::Opt::written);
    let lines = ["-n 12 -z 1 -b 2", "-I 3 -z 2 -b 2", "-n 10 -C", "-n 10 -T", "-n 10 -w 8m"];
    assert_eq!(FORMAT.dropped(&lines, options), ["-a"], "there is one interface");
    let words = "-n 10 -d /mnt/x -C -x created --random-seed 7 -P -Z -R".split(' ').map(str::to_owned);
    let load = FORMAT.words.expect("words")(&words.collect::<Vec<_>>()).expect("right");
    let warned = load.warnings.expect("some").to_string();
    for option in ["directory of -d", "-x", "seed of --random-seed", "-P", "-Z"] {
        assert!(warned.contains(&format!("{option} has no effect")), "{option}: {warned}");
    }
    assert!(!warned.contains("-R has no effect"), "{warned}");
}

#[test]
fn help_has_every_option() {
    let help = help();
    for option in options::OPTIONS {
        assert!(help.contains(&option.written()), "{}", option.written());
    }
    assert!(help.lines().all(|line| line.chars().count() <= 140), "{help}");
}

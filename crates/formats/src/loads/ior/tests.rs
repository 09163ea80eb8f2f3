use super::*;
use crate::{
    Source,
    loads::{
        letters::{self, CommandLine, Treatment},
        native,
    },
};
use fstone_model::Histogram;
use fstone_model::load::{LoadReport, OperationReport, Span};
use fstone_model::ranks::{ActionSpan, PhaseMeeting, RankPhase, RankReport, Ranked, RanksReport};
use fstone_model::workload::{Actions, Existing, Neighbours, Operation, Pattern, Runs, Step, Workload};
use std::time::Duration;

fn read(line: &str) -> Result<Ior, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    parse(&CommandLine::of_arguments(&words)).map_err(|wrong| wrong.to_string())
}

fn load(line: &str) -> Workload {
    read(line).expect(line).plan().workload
}

fn steps(workload: &Workload, phase: usize) -> Vec<(&'static str, u64)> {
    let Actions::Program(steps) = &workload.phases[phase].groups[0].actions else { panic!("a program") };
    let of = |step: &Step| match step {
        Step::Perform { action, times } => Some((action.operation.nature().word, *times)),
        _ => None,
    };
    steps.iter().filter_map(of).collect()
}

#[test]
fn calls_are_iors() {
    let own = load("-F -b 1m -t 256k -s 3 -e");
    assert_eq!(steps(&own, 0), [("create", 1), ("write", 12), ("fsync", 1), ("close", 1)]);
    assert_eq!(steps(&own, 1), [("open", 1), ("read", 12), ("close", 1)]);
    let shared = load("-b 8k -t 4k");
    assert_eq!(steps(&shared, 0), [("open", 1), ("write", 2), ("close", 1)]);
    let walled = load("-F -e -D 3 -w -O stoneWallingWearOut=1");
    assert_eq!(steps(&walled, 1), [("open", 1), ("fsync", 1), ("close", 1)]);
    assert!(walled.phases[0].stop.wear_out && walled.phases[0].stop.time == Some(Duration::from_secs(3)));
    assert_eq!(load("-r -F").filesets[0].existing, Existing::Assume);
    assert_eq!(load("-C -Q 3").phases[1].node_shift, 3);
    assert_eq!((load("-w").phases.len(), load("-i 3").phases.len()), (1, 6));
}

#[test]
fn pieces_of_a_shared_file_take_turns() {
    let shared = load("-b 47008 -t 47008 -s 10 -C");
    let runs = |workload: &Workload, phase: usize| -> Runs {
        let actions = workload.phases[phase].groups[0].actions.all();
        let transfer = actions.iter().find_map(|action| match &action.operation {
            Operation::Read(transfer) | Operation::Write(transfer) => Some(*transfer),
            _ => None,
        });
        match transfer.expect("a transfer").pattern {
            Pattern::Runs(runs) => runs,
            other => panic!("{other:?}"),
        }
    };
    let nodes = Neighbours::on(&[0; 4]);
    let of_rank = |workload: &Workload, rank| workload.of_rank(rank, 4, &workload.whose(&nodes, rank));
    let of_third = of_rank(&shared, 2);
    assert_eq!((runs(&of_third, 0).begin_bytes, runs(&of_third, 0).gap_bytes), (2 * 47008, 3 * 47008));
    assert_eq!(runs(&of_third, 1).begin_bytes, 3 * 47008, "it reads what the next one wrote");
    assert_eq!(runs(&of_rank(&shared, 3), 1).begin_bytes, 0);
    let on_two = shared.of_rank(2, 4, &shared.whose(&Neighbours::on(&[0, 0, 1, 1]), 2));
    assert_eq!(runs(&on_two, 1).begin_bytes, 0, "or the one in its place on the next node");
    let own = of_rank(&load("-F -b 1m -s 2 -t 1m"), 2);
    assert_eq!((runs(&own, 0).begin_bytes, runs(&own, 0).gap_bytes), (0, 0));
    assert_eq!(own.filesets[0].naming.file_prefix, "testFile.00000002");
    let ior = read("-F -o /mnt/x/f").expect("right");
    assert_eq!((ior.directory(), ior.file_of(0, 7)), ("/mnt/x", "f.00000007".to_owned()));
    assert_eq!(read("-i 2").expect("right").file_of(1, 7), "testFile.1");
    assert_eq!(read("-m -F").expect("right").file_of(0, 7), "testFile.00000007.0");
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    for (line, told) in [
        ("-b 1m -t 3k", "not a multiple of a transfer"),
        ("-t 0", "nothing would be moved"),
        ("-B -b 1000 -t 100", "O_DIRECT moves whole sectors of 512 bytes here, and not 100 bytes"),
        ("-a MPIIO", "no interface MPIIO"),
        ("-Z", "-Z is not supported"),
        ("-R", "-R is not supported"),
        ("-O saveRankPerformanceDetailsCSV=x", "the directive saveRankPerformanceDetailsCSV is not supported"),
        ("-O stoneWallingWearOut=1", "needs a deadline"),
        ("-O summaryFormat=CSV", "the summary format CSV is not supported"),
        ("-z -C", "in random order in a shared file"),
        ("-z -b 64k -t 64k -s 2", "a block of one transfer has no random order"),
        ("-z -D 3", "a deadline ends transfers in random order"),
        ("-o /mnt/", "is not a file"),
        ("-o a@b", "is not a file"),
        ("-s 1000000000000 -b 1t", "more than a file can hold"),
        ("--rank-silence=500ms", "--rank-silence is at least 3 s"),
        ("-q", "unknown option -q"),
    ] {
        let wrong = read(line).expect_err(line);
        assert!(wrong.contains(told), "{line}: {wrong}");
    }
    assert!(read("-B").expect("right").direct && read("-F -z -C").expect("right").random);
    let warned = read("-g -v -x").expect("only warnings").warnings.expect("some").to_string();
    for told in ["-g has no effect", "-v has no effect", "-x has no effect"] {
        assert!(warned.contains(told), "{warned}");
    }
}

#[test]
fn options_that_only_the_command_obeys_are_named_elsewhere() {
    let obeyed = |option: &&letters::Opt| matches!(option.treatment, Treatment::Supported | Treatment::Own);
    let options = options::OPTIONS.iter().filter(obeyed).map(letters::Opt::written);
    let dropped = FORMAT.dropped(&["", "-C", "-e -D 8", "-b 8m"], options);
    assert_eq!(dropped, ["-a", "-k"], "there is one interface, and a load keeps its files");
    let warned = |line: &str| {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let load = FORMAT.words.expect("words")(&words).expect(line);
        load.warnings.map(|warnings| warnings.to_string()).unwrap_or_default()
    };
    assert!(warned("-O summaryFormat=JSON").contains("summaryFormat has no effect"));
    assert!(warned("-o /mnt/x/f").contains("the directory of -o has no effect"));
    assert!(warned("--seed 7").contains("the seed of --seed has no effect"));
    assert_eq!(warned("-o f -w -O stoneWallingWearOut=1 -D 3 -h=0"), "");
}

#[test]
fn every_load_is_a_workload_file() {
    for line in [
        "",
        "-F -b 1m -t 4k -s 3 -e -z -C -i 2 -Y",
        "-b 47008 -t 47008 -s 9 -D 3 -O stoneWallingWearOut=1 -e",
        "-r -o x/f",
    ] {
        let workload = load(line);
        let printed = native::print(&workload);
        let again =
            native::parse(&Source::new("converted", printed.as_str())).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(again, workload, "{printed}");
        assert_eq!(workload.unfit_for_ranks(), None, "{line}");
    }
}

/// The second task was lost before it reported, and the deadline ended both before they closed.
#[test]
fn a_line_is_of_the_same_tasks_throughout() {
    let ior = read("-F -w -b 1m -t 4k -D 3").expect("right");
    let plan = ior.plan();
    let phase = &plan.stages[0].phase;
    let wrote = RankPhase { name: phase.clone(), written_bytes: 40 << 10, ..RankPhase::default() };
    let task = |rank| RankReport { rank, phases: vec![wrote.clone()], ..RankReport::default() };
    let operation = |name: &str, invocations: u64| OperationReport {
        group: phase.clone(),
        name: name.into(),
        invocations,
        latency: Histogram::from_values(&vec![2_000_000; invocations as usize]),
        ..OperationReport::default()
    };
    let operations = vec![operation("open", 1), operation("write", 10), operation("close", 0)];
    let meeting = PhaseMeeting { name: phase.clone(), ranks: 2, length_ns: 1_000_000_000, ..PhaseMeeting::default() };
    let ranked =
        Ranked { ranks: 2, merged: 1, phases: vec![meeting], per_rank: vec![task(0), task(1)], ..Ranked::default() };
    let load = LoadReport { operations, ..LoadReport::default() };
    let report = RanksReport { ranked, load, ..RanksReport::default() };
    let place = Place::default();
    let results = Results { ior: &ior, plan: &plan, report: &report, place: &place };
    let json = json(&results);
    let line = &json["operations"][0]["repetitions"][0];
    assert_eq!((&line["bytes"], &line["transfers"]), (&(80 << 10).into(), &20.into()), "{line}");
    assert_eq!(line["longest_open_seconds"], 0.002);
    assert!(line["longest_close_seconds"].is_null() && line["longest_fsync_seconds"].is_null(), "{line}");
    let text = print(&results);
    let row = text.lines().find(|row| row.starts_with("write ")).expect("a line of the table");
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((words[3], &words[6..]), ("-", &["-", "-", "-", "1.00", "0"][..]), "{row}");
    assert_eq!(line["iops"], 20.0, "by the whole time, where the other is not known");
}

/// As IOR computes them: while one task still opens its file, the other writes.
#[test]
fn times_are_from_the_first_begin_to_the_last_end() {
    let ior = read("-F -w -e -b 1m -t 4k").expect("right");
    let plan = ior.plan();
    let phase = &plan.stages[0].phase;
    let operation = |name: &str, longest_ms: u64| OperationReport {
        group: phase.clone(),
        name: name.into(),
        invocations: 2,
        latency: Histogram::from_values(&[longest_ms * 1_000_000; 2]),
        ..OperationReport::default()
    };
    let operations =
        vec![operation("open", 600), operation("write", 10), operation("fsync", 50), operation("close", 100)];
    let span = |action: &str, tasks: [[u64; 2]; 2]| {
        let of_ranks = tasks.map(|[begin, end]| Span { begin_ns: begin * 1_000_000, end_ns: end * 1_000_000 });
        let [first, second] = of_ranks;
        ActionSpan {
            phase: phase.clone(),
            action: action.into(),
            ranks: 2,
            span: Span { begin_ns: first.begin_ns.min(second.begin_ns), end_ns: first.end_ns.max(second.end_ns) },
            of_ranks: (0..).zip(of_ranks).collect(),
        }
    };
    let action_spans = vec![
        span("open", [[0, 100], [0, 600]]),
        span("write", [[100, 500], [644, 850]]),
        span("fsync", [[500, 550], [850, 900]]),
        span("close", [[550, 560], [900, 1000]]),
    ];
    let wrote = RankPhase { name: phase.clone(), written_bytes: 1 << 20, ..RankPhase::default() };
    let task = |rank| RankReport { rank, phases: vec![wrote.clone()], ..RankReport::default() };
    let meeting = PhaseMeeting { name: phase.clone(), ranks: 2, length_ns: 1_000_000_000, ..PhaseMeeting::default() };
    let per_rank = vec![task(0), task(1)];
    let ranked =
        Ranked { ranks: 2, nodes: 1, merged: 2, completed: 2, phases: vec![meeting], per_rank, ..Ranked::default() };
    let load = LoadReport { operations, ..LoadReport::default() };
    let report = RanksReport { ranked, action_spans, load, ..RanksReport::default() };
    let place = Place::default();
    let results = Results { ior: &ior, plan: &plan, report: &report, place: &place };
    let text = print(&results);
    let row = text.lines().find(|row| row.starts_with("write ")).expect("a line of the table");
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[6..], ["0.600000", "0.800000", "0.450000", "1.00", "0"], "{row}");
    assert_eq!(words[2], "640.00", "512 transfers in 0.8 s: {row}");
    assert_eq!(words[3], "0.001000", "the second task's 256 transfers took 256 ms with their fsync: {row}");
    let summary: Vec<&str> = text.lines().skip_while(|row| !row.starts_with("Operation")).take(2).collect();
    let [names, values] = [0, 1].map(|row| summary[row].split_whitespace().collect::<Vec<_>>());
    let of = |name: &str| names.iter().position(|known| *known == name).map(|place| values[place]);
    let wanted = [("Mean(s)", "1.00000"), ("Stonewall(MiB)", "NA"), ("Test#", "0"), ("#Tasks", "2"), ("tPN", "2")];
    for (name, value) in wanted.into_iter().chain([("reordoff", "1"), ("xsize", "4096"), ("RefNum", "0")]) {
        assert_eq!(of(name), Some(value), "{name}: {text}");
    }
    assert_eq!(names.len(), values.len(), "{text}");
    let walled = read("-F -w -b 1m -t 4k -D 5 -O stoneWallingWearOut=1 -Q 3").expect("right");
    let unreached = print(&Results { ior: &walled, plan: &walled.plan(), ..results.clone() });
    let row = unreached.lines().rfind(|row| row.starts_with("write ")).expect("a line of the summary");
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[10..12], ["0.40", "2.50"], "1 MiB of each task in at most 0.4 s: {row}");
    assert_eq!(words[17..19], ["0", "3"], "reord and reordoff: {row}");
    let json = json(&results);
    let line = &json["operations"][0]["repetitions"][0];
    assert_eq!((&line["moving_seconds"], &line["longest_close_seconds"]), (&0.8.into(), &0.1.into()), "{line}");
}

#[test]
fn defaults_are_those_of_their_rows() {
    let ior = read("").expect("right");
    assert_eq!((ior.block_bytes, ior.transfer_bytes, ior.segments, ior.repetitions), (1 << 20, 256 << 10, 1, 1));
    assert_eq!((ior.file.as_str(), read("-C").expect("right").shift), (FILE, 1));
    assert_eq!((ior.silence, ior.stillness), (Duration::from_secs(60), Duration::from_secs(600)));
    assert!(help().contains("bytes of each read or write [256k]"));
}

#[test]
fn figures_have_the_decimals_of_ior() {
    let row = |seconds: u64| {
        let ior = read("-F -w -b 1m -t 4k").expect("right");
        let plan = ior.plan();
        let name = plan.stages[0].phase.clone();
        let wrote = RankPhase { name: name.clone(), written_bytes: 4096, ..RankPhase::default() };
        let task = RankReport { phases: vec![wrote], ..RankReport::default() };
        let meeting = PhaseMeeting { name, ranks: 1, length_ns: seconds * 1_000_000_000, ..PhaseMeeting::default() };
        let ranked = Ranked { ranks: 1, phases: vec![meeting], per_rank: vec![task], ..Ranked::default() };
        let report = RanksReport { ranked, ..RanksReport::default() };
        let text = print(&Results { ior: &ior, plan: &plan, report: &report, place: &Place::default() });
        let row = text.lines().find(|row| row.starts_with("write ")).expect("a line of the table");
        row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row(4)[1..=2], ["0.000977", "0.250000"], "less than one a second is not none");
    assert_eq!((row(4)[9].as_str(), row(3600)[9].as_str()), ("4.00", "3600"));
}

#[test]
fn help_has_every_option() {
    let help = help();
    for option in options::OPTIONS {
        assert!(help.contains(&option.written()), "{}", option.written());
    }
    assert!(help.lines().all(|line| line.chars().count() <= 150), "{help}");
}

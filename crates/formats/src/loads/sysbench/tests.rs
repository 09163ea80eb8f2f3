//! Whole command lines, read, turned into workloads and printed.

use super::*;
use fstone_model::{
    Histogram, LoadReport, Workload,
    load::{CallReport, ErrorReport, GroupFsyncs, OperationReport, ThreadReport},
    workload::{
        Actions, Amount, Arrivals, Existing, Extent, IoEngineKind, OpenSync, Operation, Pattern, SizeDistribution,
    },
};
use proptest::prelude::*;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn read(line: &str) -> Fileio {
    let fileio = parse(&words(line)).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(fileio.warnings.is_none(), "{}", fileio.warnings.expect("some"));
    fileio
}

fn problems(line: &str) -> String {
    parse(&words(line)).expect_err("it is wrong").to_string()
}

fn actions(workload: &Workload) -> &Actions {
    &workload.phases[0].groups[0].actions
}

#[test]
fn defaults_are_those_of_sysbench() {
    let fileio = read("--file-test-mode=rndrw run");
    insta::assert_debug_snapshot!(fileio);
    insta::assert_debug_snapshot!(fileio.workload());
}

#[test]
fn every_mode() {
    for (mode, writes) in
        [("seqwr", true), ("seqrewr", true), ("seqrd", false), ("rndrd", false), ("rndwr", true), ("rndrw", true)]
    {
        let line = format!("--file-test-mode={mode} --file-num=16 --file-total-size=1G --file-merged-requests=4 run");
        let workload = read(&line).workload();
        let fileset = &workload.filesets[0];
        assert_eq!(fileset.existing, if mode == "seqwr" { Existing::Rebuild } else { Existing::Require }, "{mode}");
        assert_eq!(fileset.fill, mode != "seqwr");
        assert_eq!((fileset.amount, &fileset.size), (Amount::Files(16), &SizeDistribution::Fixed(64 << 20)));
        let fsync = workload.phases[0].groups[0].fsync;
        assert_eq!((fsync.at_end, fsync.every_operations), (writes, if writes { 100 } else { 0 }), "{mode}");
        for action in actions(&workload).all() {
            let (Operation::Read(transfer) | Operation::Write(transfer)) = action.operation else { panic!("{mode}") };
            let (extent, random) = if mode.starts_with("rnd") {
                (Extent::Bytes(16384), matches!(transfer.pattern, Pattern::Random { align_bytes: 16384, .. }))
            } else {
                (Extent::Bytes(65536), matches!(transfer.pattern, Pattern::Cursor { shared: true }))
            };
            assert_eq!((transfer.extent, random), (extent, true), "{mode}");
        }
    }
}

#[test]
fn io_modes_and_flags() {
    let io = |options: &str| read(&format!("{options} --file-test-mode=rndrd run")).workload().io;
    assert_eq!((io("").engine, io("").queue_depth), (IoEngineKind::Psync, 1));
    let aio = io("--file-io-mode=async --file-async-backlog=32");
    assert_eq!((aio.engine, aio.queue_depth), (IoEngineKind::IoUring, 32));
    assert_eq!(io("--file-io-mode=mmap").engine, IoEngineKind::Mmap);
    assert_eq!(io("--file-extra-flags=dsync").sync, OpenSync::Dsync);
    let both = io("--file-extra-flags=direct,sync");
    assert_eq!((both.direct, both.sync), (true, OpenSync::Sync));
    assert_eq!(io("--file-extra-flags="), io(""));
    // Neither flag says anything of a mapping.
    assert_eq!(io("--file-io-mode=mmap --file-extra-flags=sync").sync, OpenSync::None);
}

#[test]
fn fsync_all_overrides_the_others() {
    let fileio = read("--file-fsync-all --file-fsync-freq=7 --file-fsync-mode=fdatasync --file-test-mode=rndwr run");
    assert_eq!(fileio.fsync, FsyncOptions { every: 0, all: true, at_end: false, data_only: true });
    let workload = fileio.workload();
    let Actions::Sequence(sequence) = actions(&workload) else { panic!("one action") };
    assert!(matches!(sequence[0].operation, Operation::Write(transfer) if transfer.fsync));
}

#[test]
fn events_count_fsyncs_and_requests_do_not() {
    let stop = |line: &str| {
        let workload = parse(&words(line)).expect("good").workload();
        let phase = &workload.phases[0];
        (phase.stop.operations, phase.stop.time.map(|time| time.as_secs()), phase.groups[0].fsync.counted)
    };
    assert_eq!(stop("--events=100 --file-test-mode=rndwr run"), (Some(100), Some(10), true));
    assert_eq!(stop("--events=100 --time=0 --file-test-mode=rndwr run"), (Some(100), None, true));
    let old = "--test=fileio --num-threads=16 --max-requests=10000 --file-test-mode=rndrw run";
    assert_eq!(stop(old), (Some(10000), None, false));
    assert_eq!(stop("--test=fileio --max-time=300 --max-requests=0 --file-test-mode=rndrw run").1, Some(300));
    assert_eq!(stop("--max-time=0 --file-test-mode=rndrw run").1, Some(10));
}

#[test]
fn events_of_a_rate_begin_after_exponential_gaps() {
    let pace = |options: &str| {
        let workload = read(&format!("{options} --file-test-mode=rndrd run")).workload();
        let group = &workload.phases[0].groups[0];
        (group.rate_per_second, group.arrivals)
    };
    assert_eq!(pace("--rate=50"), (Some(50.0), Arrivals::Poisson));
    assert_eq!(pace("--rate=0"), (None, Arrivals::Even));
}

#[test]
fn options_that_only_the_command_obeys_are_named_elsewhere() {
    let options = options::OPTIONS.iter().filter(|option| option.treatment == options::Treatment::Supported);
    let lines =
        ["rndrw --file-io-mode=async", "rndwr", "seqwr", "rndrd"].map(|mode| format!("--file-test-mode={mode}"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let dropped = FORMAT.dropped(&lines, options.map(|option| format!("--{}", option.name)));
    assert_eq!(dropped, ["--test"], "it is the only one");
    let words = words("--rand-seed=7 --percentile=99 --histogram --file-test-mode=rndrd run");
    let warned = FORMAT.words.expect("words")(&words).expect("right").warnings.expect("some").to_string();
    for option in ["seed of --rand-seed", "--percentile", "--histogram"] {
        assert!(warned.contains(&format!("{option} has no effect")), "{option}: {warned}");
    }
}

#[test]
fn old_command_lines() {
    let fileio = parse(&words(
        "--num-threads=16 --test=fileio --file_num=128 --max-requests=10000 --max-time=0 --init-rng=on \
         --file-test-mode=rndrw --file-total-size=4g run",
    ))
    .expect("warnings only");
    assert_eq!((fileio.threads, fileio.files, fileio.file_bytes), (16, 128, 32 << 20));
    insta::assert_snapshot!(fileio.warnings.expect("two").to_string());
}

#[test]
fn prepare_and_cleanup() {
    let prepare = read("fileio --file-num=3 --file-total-size=3M prepare");
    let workload = prepare.workload();
    assert!(workload.phases.is_empty());
    assert_eq!(
        (workload.filesets[0].existing, workload.filesets[0].naming.file_prefix.as_str()),
        (Existing::Reuse, "test_file.")
    );
    let sizes = |line: &str| parse(&words(line)).expect("a warning at most").workload().filesets[0].size.clone();
    let line = "fileio --file-num=10 --file-total-size=4M --file-test-mode=rndrd";
    assert_eq!(
        sizes(&format!("{line} prepare")),
        SizeDistribution::Fixed(26 * 16384),
        "whole blocks, as sysbench writes them"
    );
    assert_eq!(sizes(&format!("{line} run")), SizeDistribution::Fixed(419_430));
    insta::assert_snapshot!(header(&prepare) + &prepared(3 << 20, Duration::from_millis(1500)));
    assert_eq!(prepared(0, Duration::ZERO), "No bytes written.\n");
    let cleanup = read("--file-num=2 cleanup");
    assert!(cleanup.workload().filesets.is_empty());
    assert_eq!(cleanup.file_names().collect::<Vec<_>>(), ["test_file.0", "test_file.1"]);
    let run = read("--file-test-mode=rndrd run");
    assert_eq!(run.prepared_workload().filesets[0].existing, Existing::Rebuild);
}

#[test]
fn what_is_wrong_is_shown() {
    insta::assert_snapshot!(problems(
        "--file-nums=3 --file-num 12 --threads=0 --file-block-size=4X --file-extra-flags=sync,dirct --validate=yes \
         --file-test-mode=rndw --report-checkpoints=3 --percentile=200 --rand-type=pareto prepared"
    ));
    insta::assert_snapshot!(problems("--file-total-size=10 --file-num=20 --time=0 --histogram --percentile=0 run"));
    insta::assert_snapshot!(problems(""));
    insta::assert_snapshot!(problems("run"));
}

#[test]
fn a_total_that_does_not_divide_is_told() {
    let fileio = parse(&words("--file-num=3 --file-total-size=100K --file-test-mode=rndrd run")).expect("a warning");
    assert_eq!(fileio.file_bytes, 34133);
    let warning = fileio.warnings.expect("one").to_string();
    assert!(warning.contains("stays within them"), "{warning}");
}

fn report() -> LoadReport {
    let operation = |name: &str, count: u64, read_bytes, written_bytes, latency: &[u64]| OperationReport {
        group: "fileio".into(),
        name: name.into(),
        invocations: count,
        transactions: count,
        calls: count,
        read_bytes,
        written_bytes,
        latency: Histogram::from_values(latency),
        ..OperationReport::default()
    };
    LoadReport {
        elapsed_ns: 2_000_000_000,
        operations: vec![
            operation("read", 3, 3 << 20, 0, &[1_000_000, 2_000_000, 3_000_000]),
            operation("write", 2, 0, 1 << 20, &[10_000, 20_000]),
        ],
        group_fsyncs: vec![
            GroupFsyncs {
                group: "fileio".into(),
                periodic: 1,
                at_end: 0,
                latency: Histogram::from_values(&[40_000_000]),
                ..GroupFsyncs::default()
            },
            GroupFsyncs {
                group: "fileio".into(),
                periodic: 0,
                at_end: 2,
                latency: Histogram::from_values(&[5_000_000; 2]),
                ..GroupFsyncs::default()
            },
        ],
        per_thread: [(4, 40_010_000), (2, 6_020_000)]
            .map(|(operations, busy_ns)| ThreadReport {
                group: "fileio".into(),
                operations,
                busy_ns,
                ..ThreadReport::default()
            })
            .into(),
        ..LoadReport::default()
    }
}

#[test]
fn fsyncs_of_each_write_are_printed_in_both_modes() {
    for call in ["fsync", "fdatasync"] {
        let options = format!("--file-fsync-all --file-fsync-mode={call} --file-test-mode=rndwr run");
        let latency = Histogram::from_values(&[7_000_000; 2]);
        let calls = vec![CallReport { group: "fileio".into(), call: call.into(), latency }];
        let text = print(&read(&options), &LoadReport { calls, group_fsyncs: Vec::new(), ..report() });
        assert!(text.lines().any(|line| line.contains("fsync") && line.contains("7.0")), "{call}: {text}");
    }
}

#[test]
fn sizes_have_five_digits() {
    for (size, block, lines) in [
        ("999999", "700", "3 files, 325.52KiB each\n976.56KiB total file size\nBlock size 700B\n"),
        ("4999999999998", "1024", "3 files, 1.5158TiB each\n4.5475TiB total file size\nBlock size 1KiB\n"),
    ] {
        let line =
            format!("--file-num=3 --file-total-size={size} --file-block-size={block} --file-test-mode=rndrd run");
        let printed = header(&read(&line));
        assert!(printed.contains(lines), "{printed}");
    }
}

#[test]
fn results_are_printed_as_sysbench_does() {
    let fileio = read("--threads=2 --file-test-mode=rndrw --histogram --percentile=99 --report-interval=1 run");
    insta::assert_snapshot!(header(&fileio) + &print(&fileio, &report()));
    let interval = Interval {
        elapsed: Duration::from_secs(3),
        length: Duration::from_secs(1),
        read_bytes: 3 << 20,
        written_bytes: 1 << 20,
        fsyncs: 12,
        latency: Histogram::from_values(&[1_000_000; 100]),
    };
    insta::assert_snapshot!(
        interval_line(&fileio, &interval),
        @"[ 3s ] reads: 3.00 MiB/s writes: 1.00 MiB/s fsyncs: 12.00/s latency (ms,99%): 1.000"
    );
    let all = read("--file-test-mode=rndwr --file-fsync-all run");
    let line = interval_line(&all, &Interval { fsyncs: 0, ..interval });
    assert!(line.contains("fsyncs: 64.00/s"), "of each of the 64 writes: {line}");
}

/// With `--max-requests` fsyncs are no events: not in their number, and not in the latency and the threads' time either.
#[test]
fn events_and_their_latency_are_of_the_same_operations() {
    let mut report = report();
    report.per_thread.iter_mut().for_each(|thread| (thread.operations, thread.busy_ns) = (2, 1_000_000));
    let text = |limit: &str| {
        let line = format!("--threads=2 --file-test-mode=rndrw {limit} run");
        print(&parse(&words(&line)).expect("a warning at most"), &report)
    };
    let with = text("--events=10");
    assert!(with.contains("total number of events:              6") && with.contains("40.00"), "{with}");
    let without = text("--max-requests=10");
    assert!(without.contains("total number of events:              5"), "{without}");
    let slowest = without.lines().find(|line| line.contains("max:")).expect("a line");
    assert!(!slowest.contains("40.00"), "the fsync is in {slowest}");
    assert!(without.contains("fsyncs/s:                     1.50"), "{without}");
}

#[test]
fn requests_in_flight_together_do_not_make_a_run_longer() {
    let mut report = report();
    report
        .per_thread
        .iter_mut()
        .for_each(|thread| (thread.busy_ns, thread.elapsed_ns) = (9_000_000_000, 2_000_000_000));
    let text =
        |mode: &str| print(&read(&format!("--threads=2 --file-test-mode=rndrd --file-io-mode={mode} run")), &report);
    assert!(text("async").contains("execution time (avg/stddev):   2.0000/0.00"), "{}", text("async"));
    assert!(text("sync").contains("execution time (avg/stddev):   9.0000/0.00"), "{}", text("sync"));
}

#[test]
fn what_is_not_known_is_not_printed_as_if_it_were() {
    let fileio = read("--threads=2 --file-test-mode=rndrd --percentile=0 run");
    let mut report = LoadReport { per_thread: Vec::new(), ..report() };
    report.errors.push(ErrorReport {
        call: "read".into(),
        path: "test_file.0".into(),
        errno: 5,
        text: "EIO: Input/output error".into(),
        count: 2,
        ..ErrorReport::default()
    });
    let text = print(&fileio, &report);
    assert!(text.contains("events (avg/stddev):           3.0000/-"), "{text}");
    assert!(text.contains("percentile stats:               disabled"), "{text}");
    assert!(text.contains("FATAL: read of test_file.0 failed: EIO: Input/output error (x2)"), "{text}");
}

proptest! {
    #[test]
    fn no_arguments_make_it_panic(args in prop::collection::vec(argument(), 0..12)) {
        match parse(&args) {
            Ok(fileio) => {
                let workload = fileio.workload();
                prop_assert_eq!(workload.filesets.is_empty(), fileio.command == Command::Cleanup);
                prop_assert_eq!(workload.phases.len(), usize::from(fileio.command == Command::Run));
                prop_assert!(!header(&fileio).is_empty());
                prop_assert!(!print(&fileio, &LoadReport::default()).is_empty());
            }
            Err(wrong) => {
                prop_assert!(wrong.errors() > 0);
                prop_assert!(!wrong.to_string().is_empty());
            }
        }
    }
}

fn argument() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = options::OPTIONS.iter().map(|option| option.name).collect();
    prop_oneof![
        4 => (prop::sample::select(names), prop_oneof!["[0-9]{0,6}[KMGTx]?", "on|off|rndrw|seqwr|async|sync,direct|fileio", "\\PC{0,8}"])
            .prop_map(|(name, value)| format!("--{name}={value}")),
        2 => prop::sample::select(vec!["run", "prepare", "cleanup", "fileio"]).prop_map(str::to_owned),
        1 => "(--)?\\PC{0,12}",
    ]
}

#[test]
fn every_option_is_documented() {
    let documentation = include_str!("../../../../../docs/formats/sysbench-fileio.md");
    for option in options::OPTIONS {
        let name = format!("`--{}`", option.name);
        let row = documentation.lines().find(|line| line.contains(&name));
        let row = row.unwrap_or_else(|| panic!("{name} is not documented"));
        let column = row.strip_prefix(&format!("| {name} | ")).and_then(|rest| rest.split(" |").next());
        if let Some(column) = column.filter(|_| !option.default.is_empty() && option.name == option.canonical) {
            let is_new = !matches!(option.name, "test" | "max-requests");
            assert!(!is_new || column == option.default, "{name} has another default: {column}");
        }
    }
}

#[test]
fn the_fuzzers_seeds_are_read() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/sysbench");
    let mut accepted = 0;
    for seed in std::fs::read_dir(seeds).expect("it is in the repository") {
        let path = seed.expect("readable").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        let args: Vec<String> = text.lines().map(str::to_owned).collect();
        match parse(&args) {
            Ok(_) => accepted += 1,
            Err(wrong) => assert!(path.ends_with("wrong"), "{}: {wrong}", path.display()),
        }
    }
    assert!(accepted >= 4, "{accepted}");
}

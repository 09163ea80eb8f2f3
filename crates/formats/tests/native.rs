//! The workload file: what is printed is read back as it was, and what is wrong is told.

use fstone_formats::{
    Source, ffsb,
    native::{self, ApplyError, Parameter, Target},
    sysbench,
};
use fstone_model::workload::{
    Action, Actions, Advice, Amount, Arrivals, Batches, CpuPolicy, DataPattern, Directories, Distribution, ErrorPolicy,
    Existing, Extent, FileChoice, Fileset, FinalSync, FinishUnit, FsyncPolicy, IoEngineKind, IoOverrides, IoSettings,
    LatencyTarget, LeastRate, MAXIMUM_FILES, MAXIMUM_HANDLES, Naming, OpenPolicy, OpenSync, Operation, PaceUnit,
    Pattern, Phase, Rate, Region, Runs, Sharing, SizeDistribution, Steady, Step, Stop, ThreadGroup, Tour,
    TransactionRule, Transfer, Weighted, Workload, Zone, Zones,
};
use proptest::{option, prelude::*};
use std::time::Duration;

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0u64..1 << 20,
        (0u64..1 << 20).prop_map(|kib| kib << 10),
        (1u64..1 << 10).prop_map(|gib| gib << 30)
    ]
}

fn block() -> impl Strategy<Value = u64> {
    prop_oneof![1u64..=1 << 30, (1u64..=1 << 20).prop_map(|kib| kib << 10)]
}

fn share() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0, (0u32..=100).prop_map(|percent| f64::from(percent) / 100.0)]
}

fn real() -> impl Strategy<Value = f64> {
    prop_oneof![Just(1.5), f64::MIN_POSITIVE..1e-3, 1e-3..1e3, 1e3..f64::MAX]
}

fn time() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0u64..1 << 40).prop_map(Duration::from_nanos),
        (0u64..1 << 40).prop_map(Duration::from_micros),
        (0u64..100_000).prop_map(Duration::from_secs)
    ]
}

/// Texts with everything that TOML has to quote.
fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 '\"\\\\\n\t\u{1b}é{}\\[\\]#=.-]{0,12}[a-z]"
}

fn size() -> BoxedStrategy<SizeDistribution> {
    prop_oneof![
        bytes().prop_map(SizeDistribution::Fixed),
        (bytes(), bytes()).prop_map(|(a, b)| SizeDistribution::Uniform { minimum: a.min(b), maximum: a.max(b) }),
        prop::collection::vec((bytes(), 1u32..), 1..4).prop_map(SizeDistribution::Weighted),
        (1u64.., real()).prop_map(|(mean, shape)| SizeDistribution::Gamma { mean, shape }),
        (1u64.., real()).prop_map(|(median, sigma)| SizeDistribution::Lognormal { median, sigma }),
    ]
    .boxed()
}

fn fileset(index: usize) -> BoxedStrategy<Fileset> {
    let amount = prop_oneof![
        (0..=MAXIMUM_FILES).prop_map(Amount::Files),
        (0u64..1 << 20).prop_map(Amount::Bytes),
        share().prop_map(Amount::Utilization)
    ];
    let directories = prop_oneof![
        (0..=MAXIMUM_FILES, any::<bool>()).prop_map(|(count, root_too)| Directories::Flat { count, root_too }),
        (1u32..=10, 1u32..=8).prop_map(|(width, depth)| Directories::Tree { width, depth }),
        (1u32..=10, 0u32..=7, 1..=MAXIMUM_FILES, any::<bool>())
            .prop_map(|(width, depth, each, leaves_only)| Directories::Filled { width, depth, each, leaves_only })
    ];
    let existing =
        prop_oneof![Just(Existing::Rebuild), Just(Existing::Reuse), Just(Existing::Require), Just(Existing::Assume)];
    let ranks =
        prop_oneof![Just(Sharing::Private), Just(Sharing::Names), Just(Sharing::Shared), Just(Sharing::Regions)];
    let naming = prop_oneof![
        Just(Naming::default()),
        ("[a-z'. \"]{1,8}", "[a-z]{1,4}").prop_map(|(file, directory)| Naming {
            file_prefix: format!("f{file}"),
            directory_prefix: directory,
            ..Naming::default()
        }),
        ("[a-z]{1,4}", "[a-z]{1,4}").prop_map(|(file, leaf)| Naming {
            file_prefix: format!("f{file}.{{rank}}."),
            leaf_prefix: Some(format!("l{leaf}.{{rank}}.")),
            ..Naming::default()
        })
    ];
    (
        text(),
        "([a-z]{1,3}(/[a-z]{1,3}){0,2})?",
        amount,
        directories,
        size(),
        naming,
        0..=MAXIMUM_FILES,
        share(),
        block(),
        existing,
        (any::<[bool; 4]>(), ranks),
    )
        .prop_map(
            move |(
                name,
                directory,
                amount,
                directories,
                size,
                naming,
                leaf_directories,
                preallocated,
                build_block_bytes,
                existing,
                ([fill, allocate, grows, made_when_opened], ranks),
            )| {
                let name = format!("{name}{index}");
                // None has another's directory.
                let directory = if index == 0 { directory } else { format!("{index}{directory}") };
                Fileset {
                    name,
                    directory,
                    amount,
                    directories,
                    leaf_directories,
                    size,
                    naming,
                    preallocated,
                    build_block_bytes,
                    existing,
                    fill,
                    allocate,
                    grows,
                    made_when_opened,
                    ranks,
                }
            },
        )
        .boxed()
}

fn transfer() -> BoxedStrategy<Transfer> {
    let distribution = prop_oneof![
        Just(Distribution::Uniform),
        Just(Distribution::Permutation),
        real().prop_map(|theta| Distribution::Zipf { theta }),
        (real(), any::<bool>()).prop_map(|(deviation, scattered)| Distribution::Gauss { deviation, scattered }),
        (0.001f64..0.999).prop_map(|share| Distribution::Pareto { share }),
        prop::collection::vec((1u32.., 1u32..), 1..5).prop_map(|zones| {
            let zones: Vec<Zone> = zones.into_iter().map(|(weight, length)| Zone { weight, length }).collect();
            Distribution::Zoned(Zones::new(&zones).expect("they fit"))
        })
    ];
    let pattern = prop_oneof![
        Just(Pattern::FromStart),
        block().prop_map(|align_bytes| Pattern::FromRandom { align_bytes }),
        any::<bool>().prop_map(|shared| Pattern::Cursor { shared }),
        (distribution, block()).prop_map(|(distribution, align_bytes)| Pattern::Random { distribution, align_bytes }),
        bytes().prop_map(|skip_bytes| Pattern::Skip { skip_bytes }),
        (-(1i64 << 60)..1 << 60, 1u32..).prop_map(|(gap_bytes, run)| Pattern::Stride { gap_bytes, run }),
        (1u32.., block()).prop_map(|(operations, align_bytes)| Pattern::Bursts { operations, align_bytes }),
        (1u64.., 1u64.., bytes(), bytes(), any::<bool>(), any::<bool>()).prop_map(
            |(run_bytes, total_bytes, begin_bytes, gap_bytes, interleaved, shuffled)| {
                Pattern::Runs(Runs { begin_bytes, run_bytes, gap_bytes, total_bytes, interleaved, shuffled })
            }
        )
    ];
    let extent = prop_oneof![Just(Extent::Whole), (1u64..).prop_map(Extent::Bytes)];
    (extent, block(), pattern, any::<bool>())
        .prop_map(|(extent, block_bytes, pattern, fsync)| Transfer { extent, block_bytes, pattern, fsync })
        .boxed()
}

fn operation() -> BoxedStrategy<Operation> {
    let plain = prop::sample::select(vec![
        Operation::OpenClose,
        Operation::Fsync,
        Operation::Fdatasync,
        Operation::FsyncDirectory,
        Operation::Syncfs,
        Operation::Unlink,
        Operation::Rename,
        Operation::Link,
        Operation::Symlink,
        Operation::Mkdir,
        Operation::Rmdir,
        Operation::StatDirectory,
        Operation::RenameDirectory,
        Operation::Metadata,
        Operation::Readdir,
        Operation::Walk,
        Operation::Stat,
        Operation::Chmod,
        Operation::Utimens,
        Operation::Getxattr,
        Operation::CopyFileRange,
        Operation::Reflink,
    ]);
    prop_oneof![
        plain,
        (prop_oneof![Just(0), block()], any::<bool>())
            .prop_map(|(block_bytes, fsync)| Operation::Create { block_bytes, fsync }),
        transfer().prop_map(Operation::Read),
        transfer().prop_map(Operation::Write),
        transfer().prop_map(Operation::Append),
        transfer().prop_map(Operation::MmapRead),
        transfer().prop_map(Operation::Trim),
        (transfer(), any::<bool>()).prop_map(|(transfer, msync)| Operation::MmapWrite { transfer, msync }),
        bytes().prop_map(|size_bytes| Operation::Truncate { size_bytes }),
        (bytes(), any::<bool>()).prop_map(|(size_bytes, punch)| Operation::Fallocate { size_bytes, punch }),
        (0u32..=64 << 10).prop_map(|value_bytes| Operation::Setxattr { value_bytes }),
    ]
    .boxed()
}

fn action(filesets: u32) -> BoxedStrategy<Action> {
    let choice = prop_oneof![
        Just(FileChoice::Uniform),
        Just(FileChoice::RoundRobin),
        Just(FileChoice::Shuffled),
        Just(FileChoice::Concatenated),
        Just(FileChoice::Partitioned)
    ];
    let rule =
        prop_oneof![Just(TransactionRule::One), Just(TransactionRule::BlocksFloor), Just(TransactionRule::BlocksCeil)];
    let drawn = prop_oneof![
        (block(), block()).prop_map(|(a, b)| SizeDistribution::Uniform { minimum: a.min(b), maximum: a.max(b) }),
        prop::collection::vec((block(), 1u32..), 1..4).prop_map(SizeDistribution::Weighted),
    ];
    (text(), operation(), option::of(0..filesets), choice, rule, option::of(drawn))
        .prop_map(|(name, operation, fileset, choice, transactions, drawn)| {
            let mut action = Action { choice, transactions, ..Action::new(name, operation, fileset) };
            if let Some(drawn) = drawn {
                draw_blocks(&mut action, drawn);
            }
            action
        })
        .boxed()
}

fn draw_blocks(action: &mut Action, drawn: SizeDistribution) {
    let (_, largest) = drawn.block_bounds().expect("a range or a list");
    if let Operation::Create { block_bytes, .. } = &mut action.operation {
        *block_bytes = largest;
        action.blocks = Some(drawn);
        return;
    }
    let Some(transfer) = action.operation.transfer_mut() else { return };
    transfer.block_bytes = largest;
    action.blocks = Some(drawn);
    if let Pattern::Random { distribution, .. } = &mut transfer.pattern {
        transfer.extent = Extent::Bytes(largest);
        if *distribution == Distribution::Permutation {
            *distribution = Distribution::Uniform;
        }
    } else if transfer.extent == Extent::Bytes(largest) {
        transfer.extent = Extent::Whole;
    }
}

fn stop() -> BoxedStrategy<Stop> {
    (option::of(time()), option::of(1u64..), option::of(bytes()), any::<bool>(), option::of(share()), any::<bool>())
        .prop_map(|(time, operations, bytes, once_through, utilization, first_done)| Stop {
            time,
            operations,
            bytes,
            once_through,
            utilization,
            first_done,
            wear_out: false,
            full: operations.is_some_and(|number| number % 2 == 0),
        })
        .boxed()
}

fn held() -> BoxedStrategy<Action> {
    let operation = prop_oneof![
        Just(Operation::Open),
        Just(Operation::Close),
        (block(), option::of(0..MAXIMUM_HANDLES)).prop_map(|(block_bytes, like)| Operation::Fill { block_bytes, like }),
        Just(Operation::Create { block_bytes: 0, fsync: false }),
        Just(Operation::Unlink),
        transfer().prop_map(Operation::Read),
    ];
    let choice = prop_oneof![Just(FileChoice::Uniform), Just(FileChoice::Rotation)];
    (text(), operation, 0..MAXIMUM_HANDLES, choice, option::of(size()))
        .prop_map(|(name, operation, handle, choice, numbers)| Action {
            choice,
            handle: Some(handle),
            numbers,
            ..Action::new(name, operation, Some(0))
        })
        .boxed()
}

fn step(filesets: u32) -> BoxedStrategy<Step> {
    let perform =
        (prop_oneof![held(), action(filesets)], 1u64..).prop_map(|(action, times)| Step::Perform { action, times });
    let unit = prop_oneof![
        Just(PaceUnit::Rounds),
        Just(PaceUnit::Operations),
        Just(PaceUnit::Transfers),
        Just(PaceUnit::Mebibytes)
    ];
    let waits = (1u64.., option::of(any::<u64>()), any::<bool>()).prop_map(|(posts, ahead, once)| Step::Wait {
        name: "mail".into(),
        posts,
        ahead,
        once,
    });
    let finish = (any::<u64>(), any::<bool>()).prop_map(|(count, bytes)| Step::Finish {
        count,
        unit: if bytes { FinishUnit::Bytes } else { FinishUnit::Operations },
        of: None,
    });
    prop_oneof![
        perform.clone(),
        (1u64.., prop::collection::vec(perform, 1..3)).prop_map(|(times, steps)| Step::Repeat { times, steps }),
        finish,
        unit.prop_map(|unit| Step::Pace { per_second: 2.5, unit, of: None }),
        time().prop_map(Step::Pause),
        (1u64..).prop_map(Step::Spin),
        waits,
    ]
    .boxed()
}

/// A program that does something, and posts only where somebody waits.
fn program(filesets: u32) -> BoxedStrategy<Actions> {
    (prop::collection::vec(step(filesets), 0..5), action(filesets), any::<bool>())
        .prop_map(|(mut steps, action, of)| {
            let of = of.then(|| action.name.clone());
            steps.push(Step::Perform { action, times: 1 });
            steps.push(Step::Finish { count: 7, unit: FinishUnit::Operations, of });
            if steps.iter().any(|step| matches!(step, Step::Wait { .. })) {
                steps.push(Step::Post { to: "mail".into(), posts: 3, bounded: true });
            }
            Actions::Program(steps)
        })
        .boxed()
}

fn group(index: usize, filesets: u32) -> BoxedStrategy<ThreadGroup> {
    let actions = prop_oneof![
        prop::collection::vec(
            (1u32.., action(filesets)).prop_map(|(weight, action)| Weighted { weight, action }),
            1..4
        )
        .prop_map(Actions::Mix),
        (prop::collection::vec(action(filesets), 1..4), any::<bool>()).prop_map(|(mut actions, same)| {
            for later in actions.iter_mut().skip(1).filter(|_| same) {
                later.choice = FileChoice::Same;
            }
            Actions::Sequence(actions)
        }),
        program(filesets),
        (action(filesets), action(filesets), real()).prop_map(|(first, second, ratio)| Actions::Ratio {
            first,
            second,
            ratio
        }),
    ];
    let fsync = (any::<u64>(), any::<[bool; 8]>()).prop_map(
        |(every_operations, [all_files, between, after_last, counted, at_end, at_close, data_only, counts_writes])| {
            FsyncPolicy {
                every_operations,
                all_files,
                between,
                after_last,
                counted,
                at_end,
                at_close,
                data_only,
                counts_writes,
                data_every: every_operations / 3,
                range_flags: (every_operations % 8) as u32,
            }
        },
    );
    let open = prop_oneof![Just(OpenPolicy::PerOperation), Just(OpenPolicy::KeepOpen), Just(OpenPolicy::KeepShared)];
    let io = (option::of(engine()), option::of(any::<bool>()), option::of(open_sync()), option::of(1u32..)).prop_map(
        |(engine, direct, sync, queue_depth)| IoOverrides {
            engine,
            direct,
            sync,
            queue_depth,
            ..IoOverrides::default()
        },
    );
    let poisson = prop_oneof![Just(Arrivals::Even), Just(Arrivals::Poisson)];
    let rate = prop_oneof![
        Just((None, None, Arrivals::Even)),
        (real(), poisson).prop_map(|(rate, arrivals)| (Some(rate), None, arrivals)),
        (1u64..).prop_map(|bytes| (None, Some(bytes), Arrivals::Even)),
    ];
    let split = prop_oneof![Just(CpuPolicy::Shared), Just(CpuPolicy::Split)];
    let cpus = prop_oneof![Just((Vec::new(), CpuPolicy::Shared)), (prop::collection::vec(0u32..1024, 1..4), split)];
    let region = prop_oneof![
        Just(Region::Whole),
        Just(Region::Split),
        (bytes(), option::of(bytes()), bytes()).prop_map(|(offset_bytes, length_bytes, step_bytes)| Region::At {
            offset_bytes,
            length_bytes,
            step_bytes
        })
    ];
    let batches = (option::of(1u32..), 1u32.., option::of(any::<u32>()), option::of(1u32..));
    let batches = batches.prop_map(|(submit, least, refill_at, most)| Batches { submit, least, refill_at, most });
    let target = (time(), share(), time(), any::<bool>()).prop_map(|(latency, share, window, follow)| LatencyTarget {
        latency,
        share,
        window,
        follow,
    });
    let times = ((time(), 1u64..), time(), region, any::<bool>(), (batches, option::of(target)));
    (text(), 1u32..=2000, actions, io, open, times, rate, cpus, fsync, stop())
        .prop_map(move |(name, threads, actions, io, open, times, rate, cpus, fsync, stop)| {
            let ((think_time, think_every), start_delay, region, invalidate, (batches, latency_target)) = times;
            let name = format!("{name}{index}");
            // Only what goes by no whole file has a part of each.
            let parts = actions.all().iter().all(|action| {
                let shared = action.operation.nature().transfer.map(|transfer| transfer.pattern);
                shared.is_none_or(|pattern| {
                    pattern != Pattern::Cursor { shared: true }
                        && matches!(action.choice, FileChoice::Uniform | FileChoice::Same)
                })
            });
            let region = if parts { region } else { Region::Whole };
            let fits = matches!(&actions, Actions::Mix(mix) if mix.iter().all(|weighted| weighted.action.fits_tour()));
            let of_mix = |writes: bool| {
                let Actions::Mix(mix) = &actions else { return None };
                let of = mix.iter().filter(|one| one.action.operation.nature().writes() == writes);
                let largest = of.map(|one| one.action.operation.nature().largest_block).max()?;
                let bytes = largest > 0 && writes;
                Some(if bytes { Rate::Bytes(u64::from(threads)) } else { Rate::Operations(f64::from(threads)) })
            };
            let of_directions = [false, true].map(|writes| of_mix(writes).filter(|_| invalidate || writes));
            let direction_rates = if rate == (None, None, Arrivals::Even) { of_directions } else { [None; 2] };
            let tour = (fits && invalidate).then_some(if parts { Tour::InTurn } else { Tour::Drawn });
            // Only what moves data has a rate in bytes.
            let moves = actions.all().iter().any(|action| action.operation.nature().largest_block > 0);
            ThreadGroup {
                io,
                open,
                think_time,
                think_every,
                think_after: invalidate.then_some(start_delay),
                think_spin: think_time,
                process: invalidate.then(|| "p".into()),
                rate_per_second: rate.0,
                bytes_per_second: rate.1.filter(|_| moves),
                arrivals: rate.2,
                direction_rates,
                start_delay,
                region,
                invalidate,
                advice: if invalidate { Advice::Random } else { Advice::None },
                invalidate_every: invalidate.then_some(u64::from(threads)),
                own_series: invalidate,
                batches,
                latency_target,
                tour,
                backlog: invalidate.then_some(2),
                least_rate: invalidate.then_some(LeastRate {
                    bytes: 0,
                    operations: 7,
                    every: think_time,
                    of_writes: moves.then_some((u64::from(threads), 0)),
                }),
                steady: invalidate.then_some(Steady {
                    bytes: parts,
                    slope: moves,
                    limit: 0.5,
                    relative: parts,
                    window: think_time,
                    ramp: start_delay,
                }),
                continues: open == OpenPolicy::KeepOpen && invalidate,
                cpus: cpus.0,
                cpu_policy: cpus.1,
                fsync,
                stop,
                ..ThreadGroup::new(name, threads, actions)
            }
        })
        .boxed()
}

fn phase(index: usize, filesets: u32) -> BoxedStrategy<Phase> {
    let groups = prop_oneof![
        group(0, filesets).prop_map(|one| vec![one]),
        (group(0, filesets), group(1, filesets)).prop_map(|(one, two)| vec![one, two])
    ];
    (text(), any::<bool>(), groups, stop(), any::<bool>(), any::<(bool, u32)>())
        .prop_map(move |(name, measured, groups, mut stop, wear_out, (by_node, shift))| {
            // A phase ends.
            stop.once_through |= Stop { first_done: false, ..stop } == Stop::default();
            stop.wear_out = wear_out && stop.time.is_some() && !stop.first_done;
            let (rank_shift, node_shift) = if by_node { (0, shift) } else { (shift, 0) };
            let drops_caches = shift % 4;
            let name = format!("{name}{index}");
            Phase { name, measured, groups, stop, rank_shift, node_shift, syncs: by_node, drops_caches }
        })
        .boxed()
}

fn engine() -> impl Strategy<Value = IoEngineKind> {
    prop_oneof![
        Just(IoEngineKind::Psync),
        Just(IoEngineKind::IoUring),
        Just(IoEngineKind::Libaio),
        Just(IoEngineKind::Mmap),
        Just(IoEngineKind::Falloc),
        Just(IoEngineKind::Splice)
    ]
}

fn open_sync() -> impl Strategy<Value = OpenSync> {
    prop_oneof![Just(OpenSync::None), Just(OpenSync::Sync), Just(OpenSync::Dsync)]
}

/// Without O_DIRECT, where that is refused.
fn possible(mut workload: Workload) -> Workload {
    let groups = || workload.phases.iter().flat_map(|phase| &phase.groups);
    if groups().any(|group| workload.refused_setting(group).is_some()) {
        workload.io.direct = false;
        workload.phases.iter_mut().flat_map(|phase| &mut phase.groups).for_each(|group| group.io.direct = None);
    }
    workload
}

fn workload() -> BoxedStrategy<Workload> {
    let io = (engine(), any::<bool>(), open_sync(), 1u32..).prop_map(|(engine, direct, sync, queue_depth)| {
        IoSettings { engine, direct, sync, queue_depth, ..IoSettings::default() }
    });
    let repeat = prop::collection::vec(any::<u8>(), 0..6);
    let data = (share(), share(), any::<bool>(), repeat).prop_map(|(compressible, duplicate, stamped, repeat)| {
        DataPattern { compressible, duplicate, stamped, repeat }
    });
    let last = (
        prop_oneof![Just(ErrorPolicy::Stop), Just(ErrorPolicy::Continue)],
        prop_oneof![Just(FinalSync::None), Just(FinalSync::Syncfs), Just(FinalSync::Everything)],
        option::of(text()),
        time().prop_filter("a point has some length", |time| !time.is_zero()),
    );
    let files_and_phases = prop_oneof![
        (
            fileset(0).prop_map(|one| vec![one]),
            prop_oneof![Just(Vec::new()), (phase(0, 1), phase(1, 1)).prop_map(|(one, two)| vec![one, two])]
        ),
        ((fileset(0), fileset(1)).prop_map(|(one, two)| vec![one, two]), phase(0, 2).prop_map(|one| vec![one]))
    ];
    (text(), files_and_phases, io, data, last)
        .prop_map(|(name, (filesets, phases), io, data, (on_error, final_sync, callout, series_interval))| {
            let mut workload = Workload {
                name,
                filesets,
                phases,
                io,
                data,
                on_error,
                final_sync,
                callout,
                launch: None,
                replay: None,
                series_interval,
            };
            // Only groups that can look for a queue depth have a latency target.
            let fit = workload.clone();
            let groups = workload.phases.iter_mut().flat_map(|phase| &mut phase.groups);
            let before = fit.phases.iter().flat_map(|phase| phase.groups.iter().map(move |group| (phase, group)));
            for (group, (phase, before)) in groups.zip(before) {
                group.latency_target = group.latency_target.filter(|_| fit.unfit_target(phase, before).is_none());
            }
            possible(workload)
        })
        .boxed()
}

fn parse(text: &str) -> Workload {
    native::parse(&Source::new("workload.toml", text)).unwrap_or_else(|diagnostics| panic!("{diagnostics}\n\n{text}"))
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(workload in workload()) {
        let text = native::print(&workload);
        prop_assert_eq!(parse(&text), workload.without_unused_depths(), "{}", text);
    }

    #[test]
    fn no_text_makes_it_panic(start in 0usize..EXAMPLE.len(), length in 0usize..60, insert in "[a-z\"\\[\\]{}=,.0-9 \\n-]{0,20}") {
        let end = (start + length).min(EXAMPLE.len());
        let text = format!("{}{insert}{}", &EXAMPLE[..start], &EXAMPLE[end..]);
        if let Err(diagnostics) = native::parse(&Source::new("workload.toml", text)) {
            prop_assert!(diagnostics.errors() > 0 && !diagnostics.to_string().is_empty());
        }
    }
}

const EXAMPLE: &str = r#"
name = "mail"
io = { engine = "io-uring" }

[[fileset]]
name = "boxes"
directory = "mail/boxes"
files = 1000
directories = 20
size = { lognormal = { median = "4 KiB", sigma = 1.5 } }

[[phase]]
name = "deliver and read"
stop = { time = "30 s" }

[[phase.group]]
name = "deliver"
threads = 4

[[phase.group.sequence]]
create = { block = "4 KiB", fsync = true }

[[phase.group.sequence]]
rename = {}
choice = "same"

[[phase.group]]
name = "read"
threads = 12
think-time = "10 ms"

[[phase.group.mix]]
weight = 9
read = { block = "16 KiB" }
transactions = "begun-blocks"

[[phase.group.mix]]
name = "look"
stat = {}

[[phase.group]]
name = "search"
open = "keep-open"
io = { queue-depth = 8 }

[[phase.group.mix]]
read = { size = "4 KiB", block = "4 KiB", pattern = "random" }
"#;

#[test]
fn an_example_means_what_it_says() {
    let workload = parse(EXAMPLE);
    assert_eq!((workload.filesets[0].amount, workload.threads()), (Amount::Files(1000), 17));
    assert_eq!(workload.filesets[0].directories, Directories::Flat { count: 20, root_too: false });
    let group = &workload.phases[0].groups[1];
    assert_eq!((group.think_time, group.actions.all()[1].name.as_str()), (Duration::from_millis(10), "look"));
    let Operation::Read(transfer) = &group.actions.all()[0].operation else { panic!("a read") };
    assert_eq!((transfer.extent, transfer.block_bytes, transfer.pattern), (Extent::Whole, 16384, Pattern::FromStart));
    insta::assert_snapshot!("example", native::print(&workload));
}

#[test]
fn loads_of_other_formats_are_printed_and_read_back() {
    let profile = include_str!("../../../studies/small-file.ffsb");
    let profile =
        ffsb::parse(&Source::new("small-file.ffsb", profile), &ffsb::Options::default()).expect("it is right");
    let workload = profile.workload(ffsb::Placement::UnderDirectory);
    insta::assert_snapshot!("small-file", native::print(&workload));
    assert_eq!(parse(&native::print(&workload)), workload);

    for mode in ["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"] {
        let words = [format!("--file-test-mode={mode}"), "--file-fsync-mode=fdatasync".into(), "run".into()];
        let workload = sysbench::parse(&words).expect("it is right").prepared_workload();
        assert_eq!(parse(&native::print(&workload)), workload);
    }
}

#[test]
fn what_is_wrong_is_told() {
    let wrong = r#"
name = "wrong"
series-interval = "0 s"

[[fileset]]
name = "*"
directory = "../up"
files = 1
bytes = "1 GiB"
size = { uniform = { from = "8 KiB", below = "4 KiB" } }
file-prefix = "a/b"
build-block = 0

[[fileset]]
name = "two"
files = 2
size = { weighted = [] }
directories = { tree = { width = 2, depth = 2 }, parent-too = true }

[[phase]]
name = "endless"

[[phase.group]]
name = "one"
sequence = [{ read = { block = "4 KiB", pattern = "skip", align = 1 }, choice = "same", weight = 2 }]

[[phase.group]]
name = "one"
mix = [
    { read = { block = "4 KiB", msync = true, distribution = "zipf", size = 0 }, fileset = "tow" },
    { raed = { block = "4 KiB" } },
    { write = { bock = "4 KiB", pattern = "radnom" } },
    { setxattr = { size = "1 MiB" }, stat = {} },
]

[[phase.group]]
name = "two"
threads = 100000
mix = []
"#;
    let diagnostics = native::parse(&Source::new("wrong.toml", wrong)).expect_err("it is wrong");
    insta::assert_snapshot!("wrong", diagnostics.to_string());
    // Leaf directories have names, too.
    let leaves =
        "name = \"w\"\n[[fileset]]\nname = \"f\"\nfiles = 1\nsize = 1\nleaf-directories = 1\nleaf-prefix = \"c/d\"\n";
    let wrong = native::parse(&Source::new("w.toml", leaves)).expect_err("it is wrong").to_string();
    assert!(wrong.contains("no file can be called that") && wrong.contains("w.toml:7:15"), "{wrong}");
}

/// What would run out of memory, or take another fileset's files for its own, is refused where it stands.
#[test]
fn what_a_workload_may_ask_for_is_bounded() {
    let said = |filesets: &str| {
        let text = format!(
            "name = \"w\"\n{filesets}\n[[phase]]\nname = \"p\"\nstop = {{ operations = 1 }}\ngroup = [{{ name = \"g\", sequence = [{{ \
             stat = {{}} }}] }}]\n"
        );
        let parsed = native::parse(&Source::new("w.toml", text.as_str()));
        parsed.map(|workload| workload.filesets.len()).map_err(|wrong| wrong.to_string())
    };
    let one = |keys: &str| said(&format!("[[fileset]]\nname = \"f\"\n{keys}\n"));
    for (keys, place, words) in [
        ("files = 9000000000000\nsize = 0", "w.toml:4:9", "from 0 to 100000000"),
        ("bytes = \"4 TiB\"\nsize = 0", "w.toml:4:9", "too many files"),
        ("bytes = \"4 TiB\"\nsize = \"1 KiB\"", "w.toml:4:9", "too many files"),
        ("files = 1\ndirectories = 1000000000\nsize = 0", "w.toml:5:15", "out of range"),
        (
            "files = 1\ndirectories = { tree = { width = 1000, depth = 4 } }\nsize = 0",
            "w.toml:5:24",
            "too many directories",
        ),
    ] {
        let said = one(keys).expect_err(keys);
        assert!(said.contains(place) && said.contains(words), "{keys}: {said}");
    }
    assert_eq!(one("bytes = \"4 TiB\"\nsize = \"1 MiB\""), Ok(1));
    assert_eq!(one("files = 100000000\nsize = 0"), Ok(1));

    let two = |new: &str, cur: &str| {
        let fileset =
            |name: &str, keys: &str| format!("[[fileset]]\nname = \"{name}\"\nfiles = 10\nsize = 0\n{keys}\n");
        said(&(fileset("new", new) + &fileset("cur", cur)))
    };
    let refused = two("", "").expect_err("both are dir0/file0");
    assert!(refused.contains("filesets new and cur use the same names"), "{refused}");
    assert!(refused.contains("give one a directory") && refused.contains("w.toml:8:8"), "{refused}");
    assert!(two("", "file-prefix = \"file1\"\ndirectory-prefix = \"d\"").is_err(), "file1 and 0 is file and 10");
    assert!(two("", "file-prefix = \"dir\"\ndirectory-prefix = \"d\"").is_err(), "a file and a directory");
    assert_eq!(two("", "directory = \"cur\""), Ok(2));
    assert_eq!(two("", "file-prefix = \"c\"\ndirectory-prefix = \"d\""), Ok(2));
}

#[test]
fn numbers_of_a_load_are_changed() {
    let mut workload = parse(EXAMPLE);
    assert!(matches!(
        Target::whole(Parameter::Threads).apply(&mut workload, 8),
        Err(ApplyError::Ambiguous { names, .. }) if names == "deliver, read, search"
    ));
    assert_eq!(
        Target::whole(Parameter::Operations).apply(&mut workload, 8),
        Err(ApplyError::Absent(Parameter::Operations))
    );
    assert_eq!(workload, parse(EXAMPLE), "a refused change changes nothing");
    for (parameter, value) in [
        (Parameter::Files, 64),
        (Parameter::Directories, 3),
        (Parameter::TotalSize, 1 << 20),
        (Parameter::BlockSize, 512),
        (Parameter::Duration, 5_000_000_000),
        (Parameter::QueueDepth, 2),
    ] {
        assert!(Target::whole(parameter).is_in(&workload), "{parameter}");
        Target::whole(parameter).apply(&mut workload, value).expect("it has that");
    }
    assert_eq!(workload.filesets[0].size, SizeDistribution::Fixed(16384));
    assert_eq!(workload.time_limit(), Some(Duration::from_secs(5)));
    // The other group creates files, and can use none.
    let depths = workload.phases[0].groups.iter().map(|group| group.io.queue_depth);
    assert_eq!((workload.io.queue_depth, depths.collect()), (1, vec![None, None, Some(2)]));
    assert!(Target::whole(Parameter::TotalSize).apply(&mut workload, 100).is_err(), "100 bytes over 64 files");
    assert!(Target::whole(Parameter::Files).apply(&mut workload, 0).is_err());
}

/// As fio's jobs have them.
#[test]
fn a_duration_is_that_of_groups_where_no_phase_has_one() {
    let group = |name: &str, stop: &str| {
        format!(
            "{{ name = \"{name}\"{stop}, open = \"keep-open\", sequence = [{{ read = {{ size = 512, block = 512 }} }}] }}"
        )
    };
    let with = |a: &str, b: &str| {
        let groups = [group("a", a), group("b", b)].join(", ");
        parse(&format!(
            "name = \"w\"\n[[fileset]]\nname = \"f\"\nfiles = 1\nsize = 512\n[[phase]]\nname = \"p\"\ngroup = [{groups}]\n"
        ))
    };
    let [minute, second] = ["60 s", "1 s"].map(|time| format!(", stop = {{ time = \"{time}\" }}"));
    let duration = Target::whole(Parameter::Duration);
    let mut workload = with(&minute, &minute);
    duration.apply(&mut workload, 5_000_000_000).expect("both are as long");
    let times = workload.phases[0].groups.iter().map(|group| group.stop.time);
    assert_eq!(times.collect::<Vec<_>>(), [Some(Duration::from_secs(5)); 2]);
    let unlike = duration.apply(&mut with(&minute, &second), 1);
    assert!(matches!(unlike, Err(ApplyError::Ambiguous { names, .. }) if names == "a, b"));
}

#[test]
fn groups_have_settings_of_their_own() {
    let reads = "open = \"keep-open\", sequence = [{ read = { size = 512, block = 512 } }]";
    let text = |io: &str, own: &str| {
        format!(
            "name = \"w\"\nio = {io}\n[[fileset]]\nname = \"f\"\nfiles = 1\nsize = 0\n[[phase]]\nname = \"p\"\n\
             stop = {{ operations = 1 }}\ngroup = [{{ name = \"a\", {reads} }}, {{ name = \"b\", io = {own}, {reads} }}]\n"
        )
    };
    let mut workload = parse(&text("{ engine = \"io-uring\", direct = true }", "{ direct = false, queue-depth = 8 }"));
    let ios = |workload: &Workload| -> Vec<IoSettings> {
        workload.phases[0].groups.iter().map(|group| workload.io_of(group)).collect()
    };
    let ring = IoSettings { engine: IoEngineKind::IoUring, direct: true, ..IoSettings::default() };
    assert_eq!(ios(&workload), [ring, IoSettings { direct: false, queue_depth: 8, ..ring }]);
    assert!(matches!(
        Target::whole(Parameter::QueueDepth).apply(&mut workload, 2),
        Err(ApplyError::Ambiguous { names, .. }) if names == "a, b"
    ));
    Target::of("b", Parameter::QueueDepth).apply(&mut workload, 1).expect("it queues");
    Target::whole(Parameter::QueueDepth).apply(&mut workload, 4).expect("they are alike");
    assert!(ios(&workload).iter().all(|io| io.queue_depth == 4));

    let parsed = native::parse(&Source::new("w.toml", text("{}", "{ engine = \"null\" }")));
    let refused = parsed.expect_err("the other does something").to_string();
    assert!(refused.contains("the null engine is for a whole workload"), "{refused}");
    assert!(native::parse(&Source::new("w.toml", text("{ engine = \"null\" }", "{}"))).is_ok());
}

#[test]
fn a_queue_depth_has_to_change_something() {
    let depth = "io = { engine = \"io-uring\", queue-depth = 8 }";
    let text = |top: &str, group: &str, action: &str| {
        format!(
            "name = \"w\"\n{top}\n[[fileset]]\nname = \"f\"\nfiles = 1\nsize = 4096\n[[phase]]\nname = \"p\"\n\
             stop = {{ operations = 1 }}\n[[phase.group]]\nname = \"g\"\n{group}\n[[phase.group.mix]]\n{action}\n"
        )
    };
    let kept = "open = \"keep-open\"";
    let block = "read = { size = 512, block = 512, pattern = \"random\" }";
    parse(&text(depth, kept, block));
    parse(&text("", &format!("{kept}\n{depth}"), block));
    for (top, group, action, place, words) in [
        (depth, "", block, "2:43", "opens a file for each operation"),
        (depth, "open = \"keep-open\"\nthink-time = \"1 ms\"", block, "2:43", "pause"),
        (&format!("{depth}\ndata = {{ stamped = true }}"), kept, block, "2:43", "stamped"),
        (depth, kept, "read = { size = 4096, block = 512 }", "2:43", "single read or write"),
        (depth, kept, "stat = {}", "2:43", "single read or write"),
        ("io = { queue-depth = 8 }", kept, block, "2:22", "its I/O engine"),
        ("", &format!("think-time = \"1 ms\"\n{kept}\n{depth}"), block, "14:43", "pause"),
    ] {
        let text = text(top, group, action);
        let refused = native::parse(&Source::new("w.toml", text.clone())).expect_err(&text).to_string();
        assert!(refused.contains(words) && refused.contains(&format!("w.toml:{place}")), "{text}\n{refused}");
        assert!(refused.contains("group `g`") && refused.contains("leave it out"), "{refused}");
    }
    let text = text(depth, "open = \"keep-open\"", "stat = {}")
        + "[[phase.group]]\nname = \"reads\"\nopen = \"keep-open\"\n[[phase.group.mix]]\n"
        + block;
    let refused = native::parse(&Source::new("w.toml", text.clone())).expect_err(&text).to_string();
    for words in ["w.toml:2:43", "group `g`", "give it to the groups that can use it, like `reads`"] {
        assert!(refused.contains(words), "{text}\n{refused}");
    }
}

#[test]
fn a_latency_target_needs_a_queue() {
    let file = |io: &str, target: &str| {
        let group = |target: &str| {
            format!(
                "stop = {{ operations = 1 }}\n[[phase.group]]\nname = \"g\"\nopen = \"keep-open\"\n\
                 io = {{ engine = \"io-uring\"{io} }}\n{target}sequence = [{{ read = {{ size = \"4 KiB\", block = \"4 KiB\" }} }}]\n"
            )
        };
        let searching = group(&format!("latency-target = {{ latency = \"2 ms\"{target} }}\n"));
        format!(
            "name = \"w\"\n[[fileset]]\nname = \"f\"\nfiles = 1\nsize = \"1 MiB\"\n[[phase]]\nname = \"p\"\nmeasured = false\n\
             {searching}[[phase]]\nname = \"q\"\n{}",
            group("")
        )
    };
    let deep = ", queue-depth = 8";
    let target = |text: &str| parse(text).phases[0].groups[0].latency_target.expect("it is said");
    let usual =
        LatencyTarget { latency: Duration::from_millis(2), share: 1.0, window: Duration::from_secs(1), follow: false };
    assert_eq!(target(&file(deep, "")), usual);
    let all = ", share = \"99.9 %\", window = \"5 s\", follow = true";
    assert_eq!(
        target(&file(deep, all)),
        LatencyTarget { share: 99.9 / 100.0, window: Duration::from_secs(5), follow: true, ..usual }
    );
    let wrong = |text: String| native::parse(&Source::new("w.toml", text)).expect_err("it is wrong").to_string();
    assert!(wrong(file("", "")).contains("its queue depth is the largest that is tried"));
    assert!(wrong(file(deep, ", window = \"0 s\"")).contains("must be above 0"));
    let measured = |target: &str| file(deep, target).replace("measured = false\n", "");
    assert!(wrong(measured("")).contains("its phase is measured"));
    assert!(target(&measured(", follow = true")).follow);
}

#[test]
fn every_operation_has_its_word() {
    let transfer = Transfer {
        extent: Extent::Bytes(4096),
        block_bytes: 4096,
        pattern: Pattern::Random { distribution: Distribution::Uniform, align_bytes: 4096 },
        fsync: true,
    };
    for operation in Operation::one_of_each(transfer) {
        let mut workload = parse(
            "name = \"w\"\n[[fileset]]\nname = \"f\"\nfiles = 1\nsize = 1\n[[phase]]\nname = \"p\"\nstop = { operations = 1 }\n\
             [[phase.group]]\nname = \"g\"\n[[phase.group.program]]\ndo = { stat = {} }\n",
        );
        let Actions::Program(steps) = &mut workload.phases[0].groups[0].actions else { panic!("it is a program") };
        let Step::Perform { action, .. } = &mut steps[0] else { panic!("it is an action") };
        action.name = operation.nature().word.to_owned();
        action.handle = operation.needs_handle().then_some(3);
        action.operation = operation;
        assert_eq!(parse(&native::print(&workload)), workload);
    }
}

#[test]
fn a_tour_is_of_a_mix_of_single_blocks() {
    let group = |actions: &str| {
        let text = format!(
            "name = \"w\"\n[[fileset]]\nname = \"f\"\nfiles = 2\nsize = \"1 MiB\"\n[[phase]]\nname = \"p\"\n[[phase.group]]\nname = \"g\"\n\
             tour = \"one-by-one\"\nstop = {{ once-through = true }}\n{actions}\n"
        );
        native::parse(&Source::new("w.toml", text))
    };
    let read = "read = { size = \"4 KiB\", block = \"4 KiB\", pattern = \"cursor\" }";
    let sound = group(&format!("[[phase.group.mix]]\n{read}")).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(sound.phases[0].groups[0].tour, Some(Tour::OneByOne));
    for (actions, why) in [
        (format!("[[phase.group.sequence]]\n{read}"), "`tour` without a `mix`"),
        (format!("[[phase.group.mix]]\nchoice = \"round-robin\"\n{read}"), "`read` cannot be part of a tour"),
        ("[[phase.group.mix]]\nstat = {}".into(), "`stat` cannot be part of a tour"),
    ] {
        let wrong = group(&actions).expect_err("it is wrong").to_string();
        assert!(wrong.contains(why), "{wrong}");
    }
}

#[test]
fn io_settings_are_done_or_refused() {
    let text = |io: &str, operation: &str| {
        format!(
            "name = \"w\"\nfileset = [{{ name = \"f\", files = 1, size = \"1 MiB\" }}]\nio = {io}\n[[phase]]\nname = \"p\"\n\
             [[phase.group]]\nname = \"g\"\nstop = {{ operations = 1 }}\n[[phase.group.mix]]\nname = \"a\"\n{operation}\n"
        )
    };
    let write = "write = { size = \"4 KiB\", block = \"4 KiB\" }";
    let read = |io: &str, operation: &str| native::parse(&Source::new("w.toml", text(io, operation)));
    for io in [
        "{ direct = true, polled = true, no-wait = true, atomic = true }",
        "{ engine = \"io-uring\", uncached = true, no-wait = true }",
        "{ engine = \"mmap\", sync = \"dsync\" }",
    ] {
        let workload = read(io, write).unwrap_or_else(|refused| panic!("{io}: {refused}"));
        assert_ne!(workload.io, IoSettings::default());
        assert_eq!(parse(&native::print(&workload)), workload, "{io}");
    }
    for (io, operation, why) in [
        ("{ engine = \"mmap\", direct = true }", write, "goes through the page cache"),
        ("{ direct = true }", "mmap-read = { block = \"4 KiB\" }", "goes through the page cache"),
        ("{ engine = \"mmap\", no-wait = true }", write, "takes no such flag"),
        ("{ engine = \"libaio\", direct = true, polled = true }", write, "does not poll"),
        ("{ polled = true }", write, "add direct = true"),
        ("{ atomic = true }", write, "add direct = true"),
        ("{ direct = true, uncached = true }", write, "leave one of the two out"),
        ("{ uncached = true }", "copy-file-range = {}", "no such flag"),
    ] {
        let refused = read(io, operation).expect_err(io).to_string();
        assert!(refused.contains(why) && refused.contains("group `g` cannot have"), "{io}: {refused}");
    }
}

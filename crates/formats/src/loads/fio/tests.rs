use super::*;
use crate::{Source, native};
use fstone_model::{
    Histogram, LoadReport,
    load::{ErrorReport, GroupFsyncs, OperationReport, ThreadReport},
    workload::{
        Actions, Advice, Amount as FileAmount, Arrivals, Batches, Distribution, ErrorPolicy, Existing, FailedPart,
        FileChoice, FsyncPolicy, IoEngineKind, LatencyTarget, Operation, Pattern, Rate, Region, SizeDistribution, Stop,
        Tour, Zone, Zones,
    },
};
use std::time::Duration;

mod figures;
mod files;
mod mistakes;
mod tours;

fn read(text: &str) -> Result<Plan, Diagnostics> {
    let mut loader = |name: &str| match name {
        "common.fio" => Ok("[global]\nbs=16k\n".to_owned()),
        "itself.fio" => Ok("include itself.fio\n".to_owned()),
        "one.fio" => Ok("include two.fio\n".to_owned()),
        "two.fio" => Ok("[a]\nsize=1m\ninclude one.fio\n".to_owned()),
        _ => Err("there is no such file".to_owned()),
    };
    let variable = |name: &str| match name {
        "SIZE" => Some("8m".to_owned()),
        "$ncpus" => Some("2".to_owned()),
        _ => None,
    };
    let mut options = Options {
        placement: Placement::UnderDirectory,
        sections: &[],
        variable: &variable,
        size_of: &|_| None,
        real: &|_| None,
        loader: &mut loader,
        seconds: None,
    };
    parse(&Source::new("load.fio", text), &mut options)
}

fn plan(text: &str) -> Plan {
    read(text).unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// The names of phases, whether they are measured, and the names of their groups.
fn phases(plan: &Plan) -> Vec<(&str, bool, Vec<&str>)> {
    let phases = plan.workload.phases.iter();
    phases
        .map(|phase| {
            (phase.name.as_str(), phase.measured, phase.groups.iter().map(|group| group.name.as_str()).collect())
        })
        .collect()
}

fn problems(text: &str) -> String {
    read(text).expect_err("it is wrong").to_string()
}

fn operation(plan: &Plan, phase: usize, group: usize) -> (Operation, FileChoice) {
    match &plan.workload.phases[phase].groups[group].actions {
        Actions::Sequence(actions) => (actions[0].operation.clone(), actions[0].choice),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_has_what_globals_before_it_say() {
    let plan = plan(
        "[global]\ninclude common.fio\nsize=${SIZE}\n[one]\nrw=write\n[global]\nbs=4k\n[two]\nrw=randread\niodepth=$ncpus*8\nioengine=libaio\n",
    );
    assert_eq!(plan.jobs.len(), 2);
    assert_eq!(plan.jobs[0].blocks[1], Blocks::Fixed(16 << 10));
    assert_eq!((&plan.jobs[1].blocks[0], plan.jobs[1].depth), (&Blocks::Fixed(4096), 16));
    let groups = &plan.workload.phases[0].groups;
    assert_eq!(groups[0].stop.operations, Some(512));
    assert_eq!(groups[1].stop.operations, Some(2048));
    assert_eq!(plan.workload.io_of(&groups[1]).engine, IoEngineKind::Libaio);
    assert_eq!(plan.workload.io_of(&groups[0]).engine, IoEngineKind::Psync);
    let (Operation::Read(transfer), FileChoice::Uniform) = operation(&plan, 0, 1) else { panic!("a read") };
    assert_eq!(transfer.pattern, Pattern::Random { distribution: Distribution::Permutation, align_bytes: 4096 });
}

#[test]
fn stonewalls_and_waiting_make_phases() {
    let plan = plan("[global]\nsize=1m\n[a]\n[b]\nwait_for=a\n[c]\nstonewall\nrw=write\nverify=md5\nramp_time=2\n");
    assert_eq!(
        phases(&plan),
        [
            ("run", true, vec!["a"]),
            ("run 2", true, vec!["b"]),
            ("run 3 ramp", false, vec!["c"]),
            ("run 3", true, vec!["c"]),
            ("run 3 verify", true, vec!["c verify"])
        ]
    );
    assert!(plan.workload.data.stamped);
    assert_eq!(plan.parts[2].verify, ["c verify"]);
}

#[test]
fn rates_arrivals_delays_and_cpus_are_those_of_a_clone() {
    let plan = plan(
        "[a]\nsize=1m\nnumjobs=2\nrw=randrw\nrate_iops=100,50\nrate_process=poisson\nstartdelay=3\ncpus_allowed=1,4-5\ncpus_allowed_policy=split\n\
         [b]\nsize=1m\nrate=1m\n",
    );
    let groups = &plan.workload.phases[0].groups;
    let rates = [100.0, 50.0].map(|rate| Some(Rate::Operations(rate)));
    assert_eq!((groups[1].direction_rates, groups[1].arrivals), (rates, Arrivals::Poisson));
    assert_eq!((groups[0].cpus.as_slice(), groups[1].cpus.as_slice()), (&[1][..], &[4][..]));
    assert_eq!(groups[0].start_delay, Duration::from_secs(3));
    assert_eq!(groups[2].bytes_per_second, Some(1 << 20));
}

/// fio 3.33 goes by the smallest block. In two seconds it makes 25 reads with `bsrange=4k-64k` and `rate_iops=100`, 83 with
/// `bssplit=16k/50:64k/50`, and at random arrivals 152 with `rate=340k` and `bssplit=4k/50:64k/50`.
#[test]
fn rates_of_drawn_blocks_go_by_the_smallest() {
    let of = |options: &str| {
        let plan = plan(&format!("[a]\nsize=1m\n{options}\n"));
        let group = &plan.workload.phases[0].groups[0];
        (group.rate_per_second, group.bytes_per_second, group.arrivals)
    };
    let evenly = |bytes: u64| (None, Some(bytes << 10), Arrivals::Even);
    assert_eq!(of("rw=randread\nbsrange=4k-64k\nrate_iops=100"), evenly(400));
    assert_eq!(of("rw=randread\nbssplit=16k/50:64k/50\nrate_iops=100"), evenly(1600));
    assert_eq!(of("rw=randread\nbssplit=4k/50:64k/50\nrate=340k"), evenly(340));
    assert_eq!(of("rw=randread\nbs=64k\nrate_iops=100"), (Some(100.0), None, Arrivals::Even));
    let at_random = |rate: f64| (Some(rate), None, Arrivals::Poisson);
    assert_eq!(of("rw=randread\nrate_process=poisson\nbs=8k\nrate=80k"), at_random(10.0));
    assert_eq!(of("rw=randread\nrate_process=poisson\nbssplit=4k/50:64k/50\nrate=340k"), at_random(85.0));
    assert_eq!(of("rw=randread\nrate_process=poisson\nbsrange=4k-64k\nrate=360k"), at_random(90.0));
    assert_eq!(of("rw=randread\nrate_process=poisson\nbsrange=4k-64k\nrate_iops=100"), at_random(100.0));
    let mix = |options: &str| {
        plan(&format!("[a]\nsize=1m\nrw=randrw\nrwmixread=75\n{options}\n")).workload.phases[0].groups[0]
            .direction_rates
    };
    let operations = |rates: [f64; 2]| rates.map(|rate| Some(Rate::Operations(rate)));
    let bytes = [400, 200].map(|rate: u64| Some(Rate::Bytes(rate << 10)));
    assert_eq!(mix("rate_process=poisson\nrate=100k,64k\nbs=4k,64k"), operations([25.0, 1.0]));
    assert_eq!(mix("rate_iops=100,50\nbs=4k,64k"), operations([100.0, 50.0]));
    assert_eq!(mix("rate_iops=100,50\nbsrange=4k-64k"), bytes);
}

/// As fio 3.33 does: 100 reads and 100 writes a second with `rate_iops=100` and `rwmixread=75`.
#[test]
fn rates_of_reads_and_of_writes_are_kept_apart() {
    let of = |options: &str| {
        let plan = plan(&format!("[a]\nsize=1m\nrw=randrw\n{options}\n"));
        let group = &plan.workload.phases[0].groups[0];
        (group.rate_per_second.map(Rate::Operations).or(group.bytes_per_second.map(Rate::Bytes)), group.direction_rates)
    };
    let (operations, bytes) = (|rate| Some(Rate::Operations(rate)), |rate: u64| Some(Rate::Bytes(rate << 10)));
    assert_eq!(of("rwmixread=75"), (None, [None, None]));
    assert_eq!(of("rwmixread=75\nrate_iops=100"), (None, [operations(100.0), operations(100.0)]));
    assert_eq!(of("rate_iops=300,100"), (None, [operations(300.0), operations(100.0)]));
    assert_eq!(of("rate=1m,500k\nbs=4k,12k"), (None, [bytes(1024), bytes(500)]));
    assert_eq!(of("rate=,500k"), (None, [None, bytes(500)]));
    assert_eq!(of("rate=400k:100k"), (None, [bytes(400), bytes(100)]));
    assert_eq!(of("rate_iops=10,\nrate_process=poisson"), (None, [operations(10.0), None]));
    // A mix of reads alone has theirs.
    assert_eq!(of("rwmixread=100\nrate=1m,500k"), (bytes(1024), [None, None]));
    // How often it reads and how often it writes is theirs only while neither is held back.
    let plan = plan("[a]\nsize=1m\nrw=randrw\nrwmixread=75\nrate_iops=300,100\n");
    let Actions::Mix(mix) = &plan.workload.phases[0].groups[0].actions else { panic!("a mix") };
    assert_eq!(mix.iter().map(|one| one.weight).collect::<Vec<_>>(), [75 * 100, 25 * 100]);
    // After two writes, however many reads are between them.
    let plan = self::plan("[a]\nsize=1m\nrw=randrw\nrwmixread=10\nrate_iops=300,100\nfsync=2\n");
    let fsync = plan.workload.phases[0].groups[0].fsync;
    assert_eq!((fsync.every_operations, fsync.counts_writes), (2, true));
}

/// As fio 3.33 does, in two seconds: 50 trims with `rate=400k,200k,100k`, 200 with `rate_iops=,,100`, 100 with `rate_iops=100,50`.
#[test]
fn trims_have_the_third_rate() {
    let of = |options: &str| {
        plan(&format!("[a]\nsize=1m\nioengine=null\n{options}\n")).workload.phases[0].groups[0].rate_per_second
    };
    assert_eq!(of("rw=randtrim\nrate=400k,200k,100k"), Some(25.0));
    assert_eq!(of("rw=randtrim\nrate_iops=,,100"), Some(100.0));
    assert_eq!(of("rw=randtrim\nrate_iops=100,50"), Some(50.0));
    // A write follows each of its trims, at the rate of writes.
    assert_eq!(of("rw=trimwrite\nrate_iops=,50,100"), Some(100.0));
}

/// fio 3.33 counts a file as a block: with `rate=400k` and `bs=8k` it makes 101 in two seconds.
#[test]
fn a_rate_in_bytes_is_one_of_files_too() {
    let of = |options: &str| plan(&format!("[a]\nsize=1m\n{options}\n")).workload.phases[0].groups[0].rate_per_second;
    assert_eq!(of("ioengine=filecreate\nrw=write\nbs=8k\nrate=400k"), Some(50.0));
    assert_eq!(of("ioengine=filestat\nrate=400k"), Some(100.0));
}

/// As strace sees fio 3.33.
#[test]
fn trims_before_writes_leave_no_turn_to_a_sync() {
    let of = |options: &str| {
        let plan = plan(&format!("[a]\nsize=1m\nioengine=falloc\nrw=trimwrite\n{options}\n"));
        plan.workload.phases[0].groups[0].fsync
    };
    assert_eq!(of("fsync=1"), FsyncPolicy::default());
    assert_eq!(of("fdatasync=1"), FsyncPolicy::default());
    assert_eq!(of("fsync=1\nend_fsync=1"), FsyncPolicy { at_end: true, ..FsyncPolicy::default() });
}

#[test]
fn without_a_runtime_time_based_has_no_effect() {
    let plan = plan("[a]\nsize=1m\ntime_based\n");
    assert_eq!(plan.workload.phases[0].groups[0].stop.operations, Some(256));
    assert!(plan.warnings.expect("one").to_string().contains("time_based has no effect"));
}

#[test]
fn a_load_lasts_as_long_as_its_jobs_and_their_ramps() {
    let limit = |text: &str| plan(text).workload.time_limit().map(|time| time.as_secs());
    let timed = "rw=randread\nsize=1m\ntime_based\nruntime=60\n";
    assert_eq!(limit(&format!("[a]\n{timed}[b]\n{timed}runtime=50\nstartdelay=20\n")), Some(70));
    assert_eq!(limit(&format!("[a]\n{timed}ramp_time=10\n[b]\nstonewall\n{timed}")), Some(130));
    assert_eq!(limit(&format!("[a]\n{timed}[b]\nrw=read\nsize=1m\n")), None);
}

#[test]
fn mixes_and_splits() {
    let plan = plan("[a]\nsize=1m\nrw=randrw\nrwmixread=75\nbssplit=4k/50:64k/,8k\npercentage_random=100,50\n");
    let Actions::Mix(mix) = &plan.workload.phases[0].groups[0].actions else { panic!("a mix") };
    let weights: Vec<(&str, u32)> = mix.iter().map(|one| (one.action.name.as_str(), one.weight)).collect();
    assert_eq!(weights, [("read", 7500), ("write", 1250), ("write on", 1250)]);
    assert_eq!(mix[0].action.blocks, Some(SizeDistribution::Weighted(vec![(4096, 50), (65536, 50)])));
    assert_eq!(mix[1].action.blocks, None);
    assert_eq!(plan.workload.phases[0].groups[0].stop.bytes, Some(1 << 20));
}

/// fio 3.33 makes 8192 bytes of `8k/50:12k/50`, and 3072 of `3k/30:5k/70`.
#[test]
fn sizes_of_a_split_are_multiples_of_the_smallest() {
    let of = |options: &str| plan(&format!("[a]\nsize=1m\nrw=randread\n{options}\n")).jobs[0].blocks[0].clone();
    assert_eq!(of("bssplit=8k/50:12k/50"), Blocks::Fixed(8192));
    assert_eq!(of("bssplit=3k/30:5k/70"), Blocks::Fixed(3072));
    assert_eq!(of("bssplit=4k/50:10k/50"), Blocks::Split(vec![(4096, 50), (8192, 50)]));
    assert_eq!(of("bssplit=8k/50:12k/50\nbs_unaligned"), Blocks::Split(vec![(8192, 50), (12288, 50)]));
    assert_eq!(of("bsrange=4k-10k"), Blocks::Split(vec![(4096, 4096), (8192, 4096), (10240, 2048)]));
}

#[test]
fn shares_of_a_split_add_up_to_100() {
    let told = problems("[a]\nsize=1m\nbssplit=4k/50:64k/40\n");
    assert!(told.contains("add up to 100"), "{told}");
}

fn pattern(text: &str) -> Pattern {
    let plan = plan(&format!("[a]\nsize=1m\n{text}\n"));
    let (operation, _) = operation(&plan, 0, 0);
    operation.nature().transfer.expect("it moves data").pattern
}

#[test]
fn places_are_drawn_as_asked() {
    let drawn = |text: &str| match pattern(&format!("rw=randread\nrandom_distribution={text}")) {
        Pattern::Random { distribution, .. } => distribution,
        other => panic!("{other:?}"),
    };
    let zones = |of: &[(u32, u32)]| {
        let zones: Vec<Zone> = of.iter().map(|(weight, length)| Zone { weight: *weight, length: *length }).collect();
        Distribution::Zoned(Zones::new(&zones).expect("they fit"))
    };
    assert_eq!(drawn("pareto:0.1"), Distribution::Pareto { share: 0.1 });
    assert_eq!(drawn("zoned:60/10:30/20:10/70"), zones(&[(6000, 1000), (3000, 2000), (1000, 7000)]));
    assert_eq!(drawn("zoned:50/5:30/15:20/"), zones(&[(5000, 500), (3000, 1500), (2000, 8000)]));
    let quarter = u32::MAX / 4;
    assert_eq!(drawn("zoned_abs:90/256k:10/"), zones(&[(9000, quarter), (1000, quarter * 3 + 2)]));
    assert_eq!(drawn("zoned_abs:90/256k:10/256k"), zones(&[(9000, quarter), (1000, quarter), (0, quarter * 2 + 1)]));
    for wrong in ["zoned:60/10:30/20", "zoned:60/10:50/", "zoned_abs:60/:40/1m", "pareto:1", "zoned:x/y"] {
        let told = problems(&format!("[a]\nsize=1m\nrw=randread\nrandom_distribution={wrong}\n"));
        assert!(told.contains("expected"), "{wrong}: {told}");
    }
}

/// fio 3.33's numbers of operations (its null engine and `write_iolog`).
#[test]
fn strides_and_bursts_are_those_of_fio() {
    for (text, gap, count) in [
        ("rw=read:4k\nbs=4k\nsize=1m", 4096, 256),
        ("rw=read:-8k\nbs=4k\nsize=1m", -8192, 256),
        ("rw=read:512k\nbs=1m\nsize=128m", 512 << 10, 85),
        ("rw=write:12k\nbs=4k\nsize=100k", 12 << 10, 7),
        ("rw=write:3k\nbs=4k\nsize=64k", 3072, 9),
        ("rw=read:4k\nbs=4k\nsize=1m\noffset=64k", 4096, 128),
        // It wraps around and goes on until it has moved its io_size, and the more so in each loop.
        ("rw=read:4k\nbs=4k\nsize=1m\nio_size=3m", 4096, 768),
        ("rw=write:60k\nbs=4k\nsize=1m\nio_size=2500k", 60 << 10, 625),
        ("rw=read:4k\nbs=4k\nsize=1m\nio_size=3m\nloops=2", 4096, 1536),
        ("rw=read:4k\nbs=4k\nsize=1m\nloops=3", 4096, 768),
        ("rw=read:4k\nbs=4k\nsize=1m\nloops=3\nnumber_ios=50", 4096, 150),
        ("rw=read:4k\nbs=4k\nsize=512k\nfilesize=1m\nio_size=3m", 4096, 768),
        ("rw=read:8k\nbs=4k\nsize=1m\nio_size=3m\nnumber_ios=500", 8192, 500),
        // A share is of the file, and no more than the size.
        ("rw=read:4k\nbs=4k\nsize=1m\nfilesize=4m\nio_size=50%", 4096, 256),
        ("rw=read:4k\nbs=4k\nsize=1m\nfilesize=4m\nio_size=10%", 4096, 103),
        // Where its blocks end with the file, or one would end behind it, a loop ends, and the last one is a whole one.
        ("rw=read:8k\nbs=4k\nsize=1m\nloops=3", 8192, 258),
        ("rw=read:8k\nbs=4k\nsize=1m\nio_size=512k", 8192, 128),
        ("rw=read:8k\nbs=4k\nsize=1m\nio_size=0", 8192, 86),
        ("rw=read:8k\nbs=4k\nsize=1m\nio_size=3m", 8192, 768),
        ("rw=read:8k\nbs=4k\nsize=1m\nio_size=3m\nloops=2", 8192, 774),
        ("rw=read:12k\nbs=64k\nsize=1m\nio_size=3m\nloops=2", 12 << 10, 52),
        ("rw=read:12k\nbs=4k\nsize=512k\noffset=256k", 12 << 10, 32),
        ("rw=read:12k\nbs=4k\nsize=512k\noffset=256k\nio_size=2m", 12 << 10, 512),
        ("rw=read:-16k\nbs=64k\nsize=1m\nio_size=3m\nloops=2", -16 << 10, 63),
        // The part of a block at the end is a place to wrap around, too.
        ("rw=read:12k\nbs=12k\nsize=1m", 12 << 10, 86),
        ("rw=write:4k\nbs=12k\nsize=1m\nloops=2", 4096, 171),
    ] {
        assert_eq!(pattern(text), Pattern::Stride { gap_bytes: gap, run: 1 }, "{text}");
        assert_eq!(plan(&format!("[a]\n{text}\n")).workload.phases[0].groups[0].stop.operations, Some(count), "{text}");
    }
    // Zones, which end a pass where the file ends in one.
    for (text, gap, count) in [
        ("zonesize=16k\nzoneskip=16k\nsize=128k", 16, 32),
        ("zonesize=16k\nzonerange=32k\nsize=104k", 16, 14),
        ("zonesize=16k\nzoneskip=8k\nsize=128k\nio_size=200k", 8, 50),
        ("zonesize=16k\nzoneskip=16k\nsize=128k\nloops=2", 16, 64),
    ] {
        let text = format!("zonemode=strided\nbs=4k\n{text}");
        assert_eq!(pattern(&text), Pattern::Stride { gap_bytes: gap << 10, run: 4 }, "{text}");
        assert_eq!(plan(&format!("[a]\n{text}\n")).workload.phases[0].groups[0].stop.operations, Some(count), "{text}");
    }
    for text in ["zonesize=16k", "zonemode=strided\nzonesize=6k", "zonemode=strided\nzonesize=8k\nrw=randread"] {
        assert!(problems(&format!("[a]\nsize=1m\nbs=4k\n{text}\n")).contains("zonemode=strided"), "{text}");
    }
    assert_eq!(pattern("rw=randread:8"), Pattern::Bursts { operations: 8, align_bytes: 4096 });
    assert!(problems("[a]\nrw=read:8k\nsize=1m\nnrfiles=2\n").contains("one file"));
}

#[test]
fn a_zero_switches_off_what_it_names() {
    let fsyncs = |options: &str| {
        let plan = plan(&format!("[a]\nsize=1m\nrw=write\n{options}"));
        let group = &plan.workload.phases[0].groups[0];
        (group.fsync.every_operations, group.fsync.data_every)
    };
    assert_eq!(fsyncs("fsync=4\nfdatasync=0\n"), (4, 0));
    assert_eq!(fsyncs("fdatasync=4\nfsync=0\n"), (0, 4));
    assert_eq!(fsyncs("fdatasync=4\nfdatasync=0\n"), (0, 0));
    assert_eq!(fsyncs("fdatasync=4\nfsync=8\n"), (8, 4));
    assert_eq!(fsyncs("fsync=8\nfdatasync=12\n"), (8, 12));
}

/// In fio 3.33 one option that implies another leaves it as it is when it is switched off again, in whatever order they come.
#[test]
fn what_an_option_implies_ends_with_it() {
    let ends = |options: &str| {
        let plan = plan(&format!("[global]\nsize=1m\nrw=write\n[a]\n{options}\n"));
        let job = &plan.jobs[0];
        (job.end_fsync, job.direct, plan.workload.data.repeat.clone(), plan.seed().is_some())
    };
    for (options, wanted) in [
        ("fsync_on_close=1\nend_fsync=0", (true, false, vec![], true)),
        ("fsync_on_close=1\nfsync_on_close=0", (false, false, vec![], true)),
        ("end_fsync=1\nfsync_on_close=0", (true, false, vec![], true)),
        ("atomic=1\natomic=0", (false, false, vec![], true)),
        ("direct=1\natomic=0", (false, true, vec![], true)),
        ("atomic=1\ndirect=0", (false, true, vec![], true)),
        ("zero_buffers=1\nzero_buffers=0", (false, false, vec![], true)),
        ("zero_buffers=1\nbuffer_pattern=1", (false, false, vec![1], true)),
        ("buffer_pattern=1\nzero_buffers=1", (false, false, vec![1], true)),
        ("allrandrepeat=1\nrandrepeat=0", (false, false, vec![], true)),
        ("allrandrepeat=1\nallrandrepeat=0\nrandrepeat=0", (false, false, vec![], false)),
    ] {
        assert_eq!(ends(options), wanted, "{options}");
    }
    let logs = plan("[global]\nsize=1m\nwrite_bw_log\n[a]\nname=b\n").jobs[0].logs[0].clone();
    assert_eq!(logs.as_deref(), Some("b"));
}

#[test]
fn each_job_says_after_which_errors_it_goes_on() {
    for wrong in ["0", "", "foo", ",0", "EIO:x", "1,2,3,4"] {
        let told = problems(&format!("[a]\nsize=1m\nignore_error={wrong}\n"));
        assert!(told.contains("not a value for `ignore_error`"), "{wrong}: {told}");
    }
    let policy = |text: &str| {
        let plan = plan(&format!("[global]\nsize=1m\n[a]\n{text}\n"));
        let groups = plan.workload.phases.iter().flat_map(|phase| &phase.groups);
        let goes_on = groups.map(|group| {
            let of = |part: FailedPart| group.goes_on_after.iter().filter(move |of| of.part == part);
            [FailedPart::Read, FailedPart::Write, FailedPart::Verify]
                .map(|part| of(part).map(|of| of.errno).collect::<Vec<_>>())
        });
        let goes_on: Vec<_> = goes_on.collect();
        (plan.workload.on_error, goes_on, plan.warnings.map(|warnings| warnings.to_string()).unwrap_or_default())
    };
    let backlog = |text: &str| problems(&format!("[a]\nrw=write\nsize=1m\nverify=crc32c\nverify_backlog=8\n{text}\n"));
    for of_writes in ["continue_on_error=write", "continue_on_error=all", "ignore_error=,EIO"] {
        let told = backlog(of_writes);
        assert!(told.contains("verify_backlog beside continue_on_error") && told.contains("leave out one"), "{told}");
    }
    plan("[a]\nrw=write\nsize=1m\nverify=crc32c\nverify_backlog=8\ncontinue_on_error=verify\n");
    let none = Vec::<i32>::new;
    let after = |text: &str| policy(text).1[0].clone();
    assert_eq!(after("ignore_error=,ENOSPC:28"), [none(), vec![28, 28], none()]);
    assert_eq!(after("ignore_error=EIO\ncontinue_on_error=none"), [none(), none(), none()]);
    assert_eq!(after("ignore_error=ENOSPC\ncontinue_on_error=all"), [vec![28], vec![5, 84], vec![0]]);
    assert_eq!(after("ignore_error=EAGAIN,,EIO"), [vec![11], none(), none()]);
    let (on_error, goes_on, told) = policy("continue_on_error=io\n[b]");
    let usual = [vec![5, 84, 61], vec![5, 84], none()];
    assert_eq!((on_error, goes_on, told.as_str()), (ErrorPolicy::StopGroup, vec![usual, Default::default()], ""));
    let (on_error, _, told) = policy("exitall_on_error\n[b]");
    assert!(on_error == ErrorPolicy::Stop && told.contains("`b` ends all jobs"), "{told}");
}

#[test]
fn what_a_search_has_warmed_stays_warm() {
    let cold = |options: &str| -> Vec<bool> {
        let plan = plan(&format!("[a]\nsize=1m\nrw=randread\n{options}"));
        plan.workload.phases.iter().map(|phase| phase.groups[0].invalidate).collect()
    };
    assert_eq!(cold(""), [true]);
    let search = "ioengine=libaio\niodepth=8\nlatency_target=500\nlatency_window=1s\n";
    assert_eq!(cold(search), [true, false]);
    assert_eq!(cold("ramp_time=2\n"), [true, false]);
    assert_eq!(cold(&format!("{search}ramp_time=2\n")), [true, false, false]);
    assert_eq!(cold("ramp_time=2\npre_read=1\n"), [false, false, false]);
}

#[test]
fn what_is_measured_continues_the_ramp() {
    let continues = |options: &str| -> Vec<bool> {
        let plan = plan(&format!("[a]\nsize=1m\nrw=randread\n{options}"));
        plan.workload.phases.iter().map(|phase| phase.groups[0].continues).collect()
    };
    let search = "ioengine=libaio\niodepth=8\nlatency_target=500\nlatency_window=1s\n";
    assert_eq!(continues(""), [false]);
    assert_eq!(continues("ramp_time=2\n"), [false, true]);
    assert_eq!(continues("ramp_time=2\npre_read=1\n"), [false, false, true]);
    assert_eq!(continues(search), [false, true]);
    assert_eq!(continues(&format!("{search}ramp_time=2\n")), [false, true, true]);
}

/// What a sync before the measurement has written back, the measurement would find clean.
#[test]
fn files_are_synced_at_the_end_of_what_is_measured() {
    let syncs = |options: &str| -> Vec<(bool, bool)> {
        let plan = plan(&format!("[a]\nrw=write\nsize=12345\n{options}"));
        let syncs = plan.workload.phases.iter().map(|phase| phase.groups[0].fsync);
        syncs.map(|fsync| (fsync.at_end, fsync.after_last)).collect()
    };
    let search = "ioengine=libaio\niodepth=8\nlatency_target=500\nlatency_window=1s\n";
    let (unfinished, done) = ((false, false), (true, true));
    for option in ["end_fsync=1\n", "fsync_on_close=1\n"] {
        assert_eq!(syncs(option), [done]);
        assert_eq!(syncs(&format!("{option}ramp_time=2\n")), [unfinished, done]);
        assert_eq!(syncs(&format!("{option}{search}")), [unfinished, done]);
        assert_eq!(syncs(&format!("{option}{search}ramp_time=2\n")), [unfinished, unfinished, done]);
    }
}

#[test]
fn each_loop_is_read_back() {
    let plan = plan(
        "[a]\nsize=1m\nrw=write\nverify=md5\nloops=3\n[b]\nsize=1m\nrw=write\nverify=md5\nloops=2\n[c]\nsize=1m\nloops=2\n",
    );
    assert_eq!(
        phases(&plan),
        [
            ("run", true, vec!["a", "b", "c"]),
            ("run verify", true, vec!["a verify", "b verify"]),
            ("run loop 2", true, vec!["a loop 2", "b loop 2"]),
            ("run loop 2 verify", true, vec!["a loop 2 verify", "b loop 2 verify"]),
            ("run loop 3", true, vec!["a loop 3"]),
            ("run loop 3 verify", true, vec!["a loop 3 verify"]),
        ]
    );
    assert_eq!(
        (&plan.parts[0].again[..], plan.parts[0].verify.len()),
        (&["a loop 2".into(), "a loop 3".into()][..], 3)
    );
    let operations: Vec<Vec<Option<u64>>> = plan
        .workload
        .phases
        .iter()
        .map(|phase| phase.groups.iter().map(|group| group.stop.operations).collect())
        .collect();
    let each: [Vec<Option<u64>>; 6] = [
        vec![Some(256), Some(256), Some(512)],
        vec![None, None],
        vec![Some(256); 2],
        vec![None, None],
        vec![Some(256)],
        vec![None],
    ];
    assert_eq!(operations, each);
    // An end that is counted over all loops can come in any of them.
    for counted in ["runtime=3", "number_ios=300", "loops=101"] {
        let plan = self::plan(&format!("[a]\nsize=1m\nrw=write\nverify=md5\nloops=3\n{counted}\n"));
        assert_eq!(plan.workload.phases.len(), 2, "{counted}");
    }
}

/// fio opens files anew before it reads them back, so that the pages are dropped that need not be written back. It syncs none.
#[test]
fn what_is_verified_is_opened_anew() {
    let phases = |options: &str| -> Vec<bool> {
        let plan = plan(&format!("[a]\nsize=1m\nrw=write\nverify=crc32c\n{options}\n"));
        plan.workload.phases.iter().map(|phase| phase.groups[0].invalidate).collect()
    };
    assert_eq!(phases(""), [true, true]);
    assert_eq!(phases("nrfiles=4"), [true, true]);
    assert_eq!(phases("invalidate=0"), [false, false]);
    assert_eq!(phases("ioengine=null"), [false, false]);
}

/// fio opens its files anew for each loop, and in a job that ends by time drops their pages when all blocks were met.
#[test]
fn each_pass_begins_cold() {
    let passes = |options: &str| {
        let plan = plan(&format!("[a]\nsize=1m\nnrfiles=2\n{options}\n"));
        plan.workload.phases.last().expect("a phase").groups[0].invalidate_every
    };
    let all = Some(1 << 20);
    assert_eq!(passes("rw=read"), None);
    assert_eq!(passes("rw=read\nloops=3"), all);
    // Not each loop, but when all blocks were met.
    assert_eq!(passes("rw=read\nloops=3\nio_size=256k"), None);
    assert_eq!(passes("rw=read\nloops=5\nio_size=256k"), all);
    assert_eq!(passes("rw=rw\nloops=3"), Some(2 << 20));
    assert_eq!(passes("rw=rw\ntime_based\nruntime=3"), all);
    assert_eq!(passes("rw=rw\nrwmixread=80\nloops=3"), Some((1 << 20) * 10 / 8));
    for (random, pass) in [("50", Some(2 << 20)), ("25", Some(4 << 20)), ("0", None)] {
        assert_eq!(passes(&format!("rw=randread\nloops=8\npercentage_random={random}")), pass, "{random}");
    }
    assert_eq!(passes("nrfiles=1\nrw=randread:4\nloops=8"), Some(4 << 20));
    for queued in [
        "rw=randread\nnorandommap\nloops=3",
        "rw=rw\nloops=3",
        "nrfiles=1\nrw=read:4k\nloops=3",
        "rw=read\nloops=5\nio_size=256k",
    ] {
        assert_eq!(passes(&format!("{queued}\nioengine=libaio")), all, "{queued}");
    }
    assert_eq!(passes("nrfiles=1\nrw=read:8k\nloops=3\nioengine=libaio"), Some(86 * 4096));
    assert_eq!(passes("rw=randread\nloops=3\nrandom_distribution=zipf:1.1"), None);
    assert_eq!(passes("rw=randrw\ntime_based\nruntime=3"), all);
    assert_eq!(passes("rw=randread\ntime_based\nruntime=3\nramp_time=1"), all);
    // Without a map of its blocks it never knows that it has met all.
    assert_eq!(passes("rw=randread\ntime_based\nruntime=3\nnorandommap"), None);
    assert_eq!(passes("rw=randread\nloops=3\nnorandommap"), None);
    assert_eq!(passes("rw=read\nio_size=8m"), all);
    assert_eq!(passes("rw=read\nio_size=8m\nloops=3"), all);
    assert_eq!(passes("rw=randread\nio_size=8m"), all);
    assert_eq!(passes("rw=randread\nio_size=8m\nnorandommap"), None);
    // With gaps it wraps around at the end and goes on, unless a block ends there.
    let timed = "nrfiles=1\ntime_based\nruntime=3";
    assert_eq!(passes(&format!("rw=read:4k\n{timed}")), None);
    assert_eq!(passes(&format!("rw=read:4k\nsize=1028k\n{timed}")), Some(129 * 4096));
    assert_eq!(passes(&format!("rw=read:8k\n{timed}")), Some(86 * 4096));
    assert_eq!(passes(&format!("rw=read:12k\nbs=64k\n{timed}")), Some(13 << 16));
    assert_eq!(passes(&format!("rw=read:-8k\n{timed}")), None);
    assert_eq!(passes("nrfiles=1\nrw=read:4k\nloops=3"), None);
    assert_eq!(passes("nrfiles=1\nrw=read:4k\nio_size=3m"), None);
    assert_eq!(passes("nrfiles=1\nrw=read:8k\nloops=3"), Some(86 * 4096));
    assert_eq!(passes("nrfiles=1\nrw=read:8k\nio_size=3m"), Some(86 * 4096));
    assert_eq!(passes("nrfiles=1\nrw=read:8k"), None);
    for warm in ["invalidate=0", "pre_read=1", "direct=1", "ioengine=mmap"] {
        assert_eq!(passes(&format!("rw=read\nloops=3\n{warm}")), None, "{warm}");
    }
}

#[test]
fn the_kernel_is_told_how_files_are_read() {
    let advice = |options: &str| plan(&format!("[a]\nsize=1m\n{options}\n")).workload.phases[0].groups[0].advice;
    assert_eq!(advice("rw=read"), Advice::Sequential);
    assert_eq!(advice("rw=randrw"), Advice::Random);
    assert_eq!(advice("rw=randread\nfadvise_hint=0"), Advice::None);
    assert_eq!(advice("rw=randread\nfadvise_hint=sequential"), Advice::Sequential);
    assert_eq!(advice("ioengine=filestat"), Advice::None);
}

/// fio ends each loop when it has moved its io_size, or when the first of both positions comes to the end.
#[test]
fn loops_of_two_positions_end_as_fio_s() {
    for (text, count) in [
        ("rw=rw\nio_size=32k", 16),
        ("rw=rw\nio_size=100k", 50),
        ("rw=rw\nio_size=160k", 64),
        ("rw=randrw\npercentage_random=0\nio_size=100k", 50),
    ] {
        let plan = plan(&format!("[a]\nbs=4k\nsize=64k\nloops=2\n{text}\n"));
        assert_eq!(plan.workload.phases[0].groups[0].stop.operations, Some(count), "{text}");
    }
}

#[test]
fn every_option_is_read() {
    for option in options::OPTIONS {
        for name in std::iter::once(&option.name).chain(option.aliases) {
            // Right or wrong, it is looked at.
            for value in ["", "=", "=1", "=x", "=4k-8k", "=1:2,3", "=${SIZE}"] {
                let _ = read(&format!("[a]\nsize=1m\n{name}{value}\n"));
            }
        }
    }
}

#[test]
fn help_lists_every_option_with_the_reason_why_it_is_not_read() {
    let help = super::help::help();
    let (_, help) = help.split_once("\nJob options:\n").expect("a list");
    for option in options::OPTIONS {
        for name in
            std::iter::once(&option.name).chain(option.aliases).take(if option.why_not().is_some() { 9 } else { 1 })
        {
            let mut lines = help
                .lines()
                .skip_while(|line| line.starts_with("      ") || !line.split(' ').any(|word| word == *name))
                .peekable();
            assert!(lines.peek().is_some(), "{name}");
            if let Some(why) = option.why_not() {
                assert_eq!(lines.find_map(|line| line.strip_prefix("      ")), Some(why), "{name}");
            }
        }
    }
}

#[test]
fn options_without_effect_have_values_and_others_are_refused_unless_they_ask_for_nothing() {
    let plan = |line: &str| read(&format!("[a]\nsize=1m\n{line}\n"));
    for (options, open) in [("openfiles=4", Some(4)), ("openfiles=8", None), ("openfiles=9\ncreate_on_open=1", Some(8))]
    {
        let plan = plan(&format!("nrfiles=8\n{options}")).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(plan.workload.phases[0].groups[0].tour_open, open, "{options}");
    }
    for nothing in [
        "nice=5",
        "unified_rw_reporting=mixed",
        "iomem=shmhuge",
        "io_submit_mode=offload",
        "stats=0",
        "prio=0",
        "numa_cpu_nodes=0",
        "uid=0",
        "lockfile=exclusive",
        "rate_ignore_thinktime=1",
        "write_hint=short",
    ] {
        let wrong = plan(nothing).expect_err(nothing).to_string();
        assert!(wrong.contains("supported"), "{nothing}: {wrong}");
    }
    for harmless in [
        "nice=0",
        "unified_rw_reporting=none",
        "iomem=malloc",
        "io_submit_mode=inline",
        "stats=1",
        "gtod_reduce=1",
        "prioclass=0",
        "lockfile=none",
        "rate_ignore_thinktime=0",
        "write_hint=none",
        "dedupe_mode=repeat",
        "numa_mem_policy=default",
    ] {
        plan(harmless).unwrap_or_else(|wrong| panic!("{harmless}: {wrong}"));
    }
    for quiet in ["thinktime_blocks_type=issue", "slat_percentiles=1"] {
        let told = plan(quiet).unwrap_or_else(|wrong| panic!("{wrong}")).warnings.expect("a note").to_string();
        assert!(told.contains("has no effect"), "{quiet}: {told}");
    }
    for mistaken in ["thinktime_blocks_type=x", "gtod_reduce=x", "clocksource=sundial", "log_entries=many"] {
        assert!(plan(mistaken).expect_err(mistaken).to_string().contains("not a value for"), "{mistaken}");
    }
}

/// fio 3.33 rejects them, whether they are reported together or not.
#[test]
fn jobs_of_one_group_are_steady_by_one_rule() {
    let jobs = |second: &str| read(&format!("[global]\nsize=1m\n[a]\nss=iops:5%\nss_dur=5\n[b]\n{second}\n"));
    for other in ["", "ss=iops:5%\nss_dur=6", "ss=bw:5%\nss_dur=5", "ss=iops:5%\nss_dur=5\nss_ramp=1"] {
        let told = jobs(other).expect_err(other).to_string();
        assert!(told.contains("`a` and `b` differ in steadystate"), "{other}: {told}");
        jobs(&format!("new_group\n{other}")).unwrap_or_else(|wrong| panic!("{other}: {wrong}"));
    }
    jobs("ss=iops:5%\nss_dur=5").unwrap_or_else(|wrong| panic!("{wrong}"));
}

/// As fio 3.33 has them: `16k-4k` is no range.
#[test]
fn two_block_sizes_may_have_a_dash_between_them() {
    let blocks = |line: &str| plan(&format!("[a]\nsize=1m\n{line}\n")).jobs[0].blocks.clone();
    assert_eq!(blocks("bs=4k-16k"), [Blocks::Fixed(4096), Blocks::Fixed(16384)]);
    assert_eq!(blocks("bs=16k-4k"), [Blocks::Fixed(16384), Blocks::Fixed(4096)]);
    assert_eq!(blocks("bs=(8k-4k)"), [Blocks::Fixed(4096), Blocks::Fixed(4096)]);
}

/// As fio 3.33 draws them: from the smaller to the sum of both, rounded down, and at most the larger.
#[test]
fn ranges_of_blocks_reach_their_ends() {
    let blocks = |line: &str| plan(&format!("[a]\nsize=1m\nrw=randread\n{line}\n")).jobs[0].blocks[0].clone();
    assert_eq!(blocks("bsrange=4k-10k"), Blocks::Split(vec![(4096, 4096), (8192, 4096), (10240, 2048)]));
    assert_eq!(blocks("bsrange=4k-64k"), Blocks::Range(4096, 65536));
    assert_eq!(blocks("bsrange=4k-4k"), Blocks::Fixed(4096));
}

#[test]
fn random_numbers_are_the_same_in_every_run_unless_they_are_not_to_be() {
    let seed = |line: &str| plan(&format!("[a]\nsize=1m\nrw=randread\n{line}\n")).seed();
    assert!(seed("").is_some() && seed("") == seed("randrepeat=1"));
    assert_eq!(seed("randseed=7"), Some(7));
    assert_eq!(seed("randrepeat=0"), None);
    assert!(read("[a]\nsize=1m\ndirect=1\nbs=700\n").expect_err("odd").to_string().contains("multiples of 512"));
    assert_eq!(plan("[a]\nsize=1m\nrw=write\nzero_buffers\n").workload.data.repeat, [0]);
    for repeated in ["zero_buffers", "buffer_pattern=0xab"] {
        let data = plan(&format!("[a]\nsize=1m\nrw=write\n{repeated}\ndedupe_percentage=50\n")).workload.data;
        assert_eq!((data.repeat, data.duplicate), (Vec::new(), 0.5), "as fio: random blocks, half of them again");
    }
    let compressed =
        "[a]\nsize=1m\nrw=write\nbuffer_pattern=0xab\ndedupe_percentage=50\nbuffer_compress_percentage=50\n";
    assert_eq!(plan(compressed).workload.data.repeat, [0xab], "of the part that can be compressed");
}

/// What a command line and its job files come to.
fn plan_of(line: &CommandLine, files: &[Source]) -> Plan {
    let mut options = Options {
        placement: Placement::AsWritten,
        sections: &line.sections,
        variable: &|_| None,
        size_of: &|_| None,
        real: &|_| None,
        loader: &mut |_| Err(String::new()),
        seconds: None,
    };
    line.plan(files, &mut options).unwrap_or_else(|wrong| panic!("{wrong}"))
}

#[test]
fn command_lines_have_jobs_files_and_options() {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let line = parse_command_line(&words(
        "--output-format=json+,normal --output out --direct 1 --name=one -rw randread -size=1m --time_based --runtime 5 --name two --size=2m",
    ))
    .expect("it is right");
    assert_eq!(line.output.formats, [OutputFormat::JsonPlus, OutputFormat::Normal]);
    assert_eq!(line.output.file.as_deref(), Some("out"));
    let both = plan_of(&line, &[]);
    assert_eq!(both.jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert!(both.jobs[0].direct && both.jobs[1].direct && both.jobs[0].time_based && !both.jobs[1].time_based);
    let line = parse_command_line(&words("--bs=8k job.fio --section=b")).expect("it is right");
    assert_eq!((line.files.as_slice(), line.sections.as_slice()), (&["job.fio".to_owned()][..], &["b".to_owned()][..]));
    let file = Source::new("job.fio", "[a]\nsize=1m\n[b]\nsize=2m\n");
    let one = plan_of(&line, &[file]);
    assert_eq!((one.jobs.len(), &one.jobs[0].blocks[0]), (1, &Blocks::Fixed(8192)));
    // As getopt_long takes them.
    let line = parse_command_line(&words("--output-f=json --sec=b --min --rwmixr 30 job.fio")).expect("each is one");
    assert_eq!((&line.sections[..], &line.files[..]), (&["b".to_owned()][..], &["job.fio".to_owned()][..]));
    let told = parse_command_line(&words("--out=x --iodepth_b=3")).expect_err("they are several").to_string();
    assert!(told.contains("--out is ambiguous") && told.contains("--output, --output-format"), "{told}");
    assert!(told.contains("--iodepth_b is ambiguous"), "{told}");
    let asked = |line: &str| parse_command_line(&words(line)).map(|line| line.asked);
    assert_eq!(asked("--enghelp").expect("it is right"), Some(Asked::Engines));
    assert!(asked("--enghelp=foo").is_err() && super::engines().contains("\tlibaio\n"));
    let told = parse_command_line(&words("--outputformat=json --minimall")).expect_err("neither is there").to_string();
    assert!(told.contains("did you mean `output-format`") && told.contains("did you mean `minimal`"), "{told}");
}

fn report() -> LoadReport {
    let operation = |name: &str, count: u64, read_bytes, written_bytes, latency: &[u64]| OperationReport {
        group: "a".into(),
        name: name.into(),
        invocations: count,
        read_bytes,
        written_bytes,
        latency: Histogram::from_values(latency),
        ..OperationReport::default()
    };
    LoadReport {
        elapsed_ns: 2_000_000_000,
        running_ns: 2_000_000_000,
        threads: 1,
        process_user_ns: 200_000_000,
        operations: vec![
            operation("read", 3, 12288, 0, &[1_000_000, 2_000_000, 3_000_000]),
            operation("write", 2, 0, 8192, &[10_000, 20_000]),
        ],
        group_fsyncs: vec![GroupFsyncs {
            group: "a".into(),
            periodic: 1,
            at_end: 0,
            latency: Histogram::from_values(&[40_000_000]),
            ..GroupFsyncs::default()
        }],
        per_thread: vec![ThreadReport { group: "a".into(), elapsed_ns: 1_500_000_000, ..ThreadReport::default() }],
        ..LoadReport::default()
    }
}

#[test]
fn queues_are_refilled_as_asked() {
    let batches = |text: &str| {
        let job = format!("[a]\nrw=randread\nsize=1m\nioengine=libaio\niodepth=16\n{text}\n");
        plan(&job).workload.phases[0].groups[0].batches
    };
    // fio's default: the device sees each request by itself.
    let one = Batches { submit: Some(1), ..Batches::default() };
    assert_eq!((batches(""), batches("iodepth_batch_complete_min=0")), (one, one));
    let asked = batches("iodepth_batch=8\niodepth_batch_complete=8\niodepth_low=4");
    assert_eq!(asked, Batches { submit: Some(8), least: 8, refill_at: Some(4), most: Some(8) });
    assert_eq!(batches("iodepth_batch_complete_min=99\niodepth_low=16"), Batches { least: 16, ..one });
    // No more are reaped at once than iodepth_batch_complete_max says, or else its minimum.
    for (most, text) in [
        (1, "iodepth_batch=0"),
        (1, "iodepth_batch_submit=16"),
        (1, "iodepth_batch=16\niodepth_batch_complete_max=0"),
        (4, "iodepth_batch=0\niodepth_batch_complete_max=4"),
    ] {
        assert_eq!(batches(text), Batches { most: Some(most), ..Batches::default() }, "{text}");
    }
    assert_eq!(batches("iodepth_batch=0\niodepth_batch_complete_max=16"), Batches::default());
    let least = batches("iodepth_batch_complete_min=4\niodepth_batch_complete_max=2");
    assert_eq!(least, Batches { least: 4, most: Some(4), ..one });
    // It is all the same to requests that are submitted one by one.
    assert_eq!(batches("iodepth_batch_complete_max=1"), Batches { most: Some(1), ..one });
}

#[test]
fn the_first_job_that_is_done_ends_the_others() {
    let plans = |text: &str| plan(&format!("[global]\nrw=read\nsize=1m\n{text}\n"));
    let stops = |text: &str| plans(text).workload.phases.iter().map(|phase| phase.stop).collect::<Vec<Stop>>();
    let first = Stop { first_done: true, ..Stop::default() };
    assert_eq!(stops("exitall\n[a]\n[b]\nstonewall\n[c]"), [first; 2]);
    let timed = Stop { time: Some(Duration::from_secs(2)), ..first };
    assert_eq!(stops("exitall=1\n[a]\nruntime=3\n[b]\nruntime=2\n[c]"), [timed]);
    let delayed = Stop { time: Some(Duration::from_secs(3)), ..first };
    assert_eq!(stops("exitall=1\n[a]\nruntime=3\n[b]\nstartdelay=5\nruntime=2\n[c]"), [delayed]);
    assert_eq!(stops("[a]\n[b]"), [Stop::default()]);
    assert!(problems("[a]\nsize=1m\nexitall\n[b]\nsize=1m\n").contains("`b` runs beside"));
    for what in ["all", "stonewall", "group"] {
        assert_eq!(stops(&format!("exitall\nexit_what={what}\n[a]\n[b]")), [first], "{what}");
    }
    assert_eq!(stops("exitall\nexit_what=stonewall\n[a]\n[b]\nnew_group"), [first]);
    let wrong = |text: &str| problems(&format!("[global]\nsize=1m\nexitall\n{text}\n"));
    assert!(wrong("exit_what=all\n[a]\n[b]\nstonewall").contains("have not begun"));
    assert!(wrong("[a]\n[b]\nnew_group").contains("of its group alone"));
}

#[test]
fn values_that_people_write_are_read() {
    let group = |job: &str| plan(&format!("[a]\nrw=randread\n{job}\n")).workload.phases[0].groups[0].clone();
    for (word, tour) in [("roundrobin:4", Tour::InTurn), ("random:16", Tour::Drawn), ("sequential:3", Tour::OneByOne)] {
        let read = group(&format!("size=1m\nnrfiles=4\nfile_service_type={word}"));
        let operations = word
            .split(':')
            .nth(1)
            .filter(|_| tour != Tour::OneByOne)
            .map_or(1, |number| number.parse().expect("it is one"));
        assert_eq!(read.tour.map(|tour| (tour, read.tour_operations)), Some((tour, operations)), "{word}");
    }
    assert!(problems("[a]\nsize=1m\nfile_service_type=zipf:1.2\n").contains("not supported"));
    let delays: Vec<Duration> = plan("[a]\nsize=1m\nnumjobs=3\nstartdelay=1-3s\n").workload.phases[0]
        .groups
        .iter()
        .map(|group| group.start_delay)
        .collect();
    assert!(delays.iter().all(|delay| (1.0..=3.0).contains(&delay.as_secs_f64())), "{delays:?}");
    assert!(delays[0] != delays[1] && delays[1] != delays[2], "{delays:?}");
    assert!(plan("[a]\nsize=1m\nrandom_generator=lfsr\n").warnings.is_some());
    let group =
        |options: &str| plan(&format!("[a]\nrw=write\nsize=1m\n{options}\n")).workload.phases[0].groups[0].clone();
    let odd = |options: &str| {
        let blocks = group(options).actions.all()[0].blocks.clone();
        matches!(blocks, Some(SizeDistribution::Weighted(sizes)) if sizes.len() == 1000 && sizes[1].0 % 1024 != 0)
    };
    assert!(odd("bs_unaligned=1\nbsrange=1k-64k") && !odd("bsrange=1k-64k\nbs_unaligned\nbs=4k"));
    let pauses = group("thinktime=100\nthinktime_iotime=3ms\nthinktime_spin=200");
    let micros = Duration::from_micros;
    assert_eq!((pauses.think_every, pauses.think_after), (u64::MAX, Some(micros(3000))));
    assert_eq!((pauses.think_time, pauses.think_spin), (micros(100), micros(100)));
    assert_eq!(group("thinktime=9\nthinktime_blocks=4\nthinktime_iotime=3ms").think_every, 4);
    for (options, operations) in [
        ("rw=rw", 4),
        ("rw=randrw", 3),
        ("rw=read", 3),
        ("rw=randread:4", 4),
        ("rw=randread\npercentage_random=0", 3),
        ("rw=randread\nba=8k", 4),
        ("rw=randrw\nnorandommap", 4),
        ("rw=randread\npercentage_random=50", 4),
    ] {
        let plan = plan(&format!("[a]\nsize=12345\nfilesize=12345\n{options}\n"));
        assert_eq!(plan.workload.phases[0].groups[0].stop.operations, Some(operations), "{options}");
    }
    let range = group("sync_file_range=wait_before,write:8").fsync;
    assert_eq!((range.range_flags, range.data_every, range.every_operations, range.between), (3, 8, 0, true));
    assert!(problems("[a]\nrw=write\nsize=1m\nsync_file_range=all:8\n").contains("wait_before"));
    assert!(problems("[a]\nrw=write\nsize=1m\nsync_file_range=write\nfdatasync=3\n").contains("beside"));
    let sizes = plan("[a]\nrw=write\nbs=4k\nfilesize=6k-17k\n").workload.filesets[0].size.clone();
    let SizeDistribution::Weighted(sizes) = sizes else { panic!("{sizes:?}") };
    assert_eq!(sizes.iter().map(|(bytes, _)| *bytes).collect::<Vec<_>>(), [4096, 8192, 12288, 16384]);
    assert_eq!((sizes[0].1 * 2, sizes[3].1 * 4), (sizes[1].1, sizes[1].1));
    assert!(problems("[a]\nsize=1m\nrandom_generator=mt\n").contains("not a value"));
    let logs = plan("[a]\nsize=1m\nwrite_lat_log=x\n").warnings.expect("it is averaged").to_string();
    assert!(logs.contains("every 500 ms"), "{logs}");
    let many: String = (0..9_000).map(|job| format!("[job{job}]\nfilename=one\nrw=read\nbs=4k\n")).collect();
    assert!(many.len() > 256 << 10);
    assert!(
        problems(&format!("[global]\nsize=1m\n{many}")).contains("more than 4000 sections"),
        "and not that it is too large"
    );
    // A share as in a script of Windows, of a file that is there.
    let mut options = Options {
        placement: Placement::AsWritten,
        sections: &[],
        variable: &|_| None,
        size_of: &|_| Some(1 << 20),
        real: &|_| None,
        loader: &mut |_| Err(String::new()),
        seconds: None,
    };
    let mut size = |text: &str| {
        let plan = parse(&Source::new("load.fio", text), &mut options).unwrap_or_else(|wrong| panic!("{wrong}"));
        (plan.workload.filesets[0].size.typical_bytes(), plan.workload.phases[0].groups[0].region, plan.device())
    };
    assert_eq!(size("[a]\nsize=100%%\n").0, 1 << 20);
    let appended = Region::At { offset_bytes: 1 << 20, length_bytes: Some(65536), step_bytes: 0 };
    assert_eq!(size("[a]\nrw=write\nsize=64k\nfile_append=1\n").1, appended);
    assert_eq!(size("[a]\nfilename=/dev/sdx\nrw=randwrite\n").2, Some(("/dev/sdx".into(), true)));
    assert_eq!(size("[a]\nfilename=/dev/disk/by-id/x\n").2, Some(("/dev/disk/by-id/x".into(), false)));
    assert_eq!(size("[a]\nfilename=/dev/shm/x\nrw=write\n").2, None);
}

#[test]
fn a_depth_is_looked_for_before_it_is_measured() {
    let job = |rest: &str| {
        format!(
            "[a]\nrw=randread\nsize=1m\nioengine=libaio\niodepth=64\nlatency_target=500\nlatency_window=2s\n\
             latency_percentile=99.9\n{rest}\n"
        )
    };
    let target = LatencyTarget {
        latency: Duration::from_micros(500),
        share: 99.9 / 100.0,
        window: Duration::from_secs(2),
        follow: false,
    };
    let of = |plan: &Plan| -> Vec<(bool, Option<LatencyTarget>, Option<Duration>)> {
        let phases = plan.workload.phases.iter();
        phases.map(|phase| (phase.measured, phase.groups[0].latency_target, phase.groups[0].stop.time)).collect()
    };
    let second = Duration::from_secs(1);
    let searched = plan(&job(""));
    assert_eq!(of(&searched), [(false, Some(target), None), (true, None, Some(2 * second))]);
    let limited = plan(&job("time_based\nruntime=1\nramp_time=3"));
    let ramp = (false, None, None);
    assert_eq!(of(&limited), [ramp, (false, Some(target), Some(second)), (true, None, Some(second))]);
    let following = plan(&job("latency_run=1"));
    assert_eq!(of(&following), [(true, Some(LatencyTarget { follow: true, ..target }), None)]);
    assert_eq!(of(&plan(&job("latency_target=0"))), [(true, None, None)]);

    let mut report = report();
    report.per_thread[0].queue_depth = 12;
    let json: serde_json::Value =
        serde_json::from_str(&json(&searched, &report, &When::default(), false)).expect("JSON");
    let said = ["latency_depth", "latency_target", "latency_percentile", "latency_window"];
    let values: Vec<f64> = said.iter().map(|key| json["jobs"][0][key].as_f64().expect("a number")).collect();
    assert_eq!(values, [12.0, 500_000.0, 99.9, 2_000_000.0]);
    let normal = normal(&searched, &report, &When::default());
    assert!(normal.contains("target=500000, window=2000000, percentile=99.90%, depth=12"), "{normal}");
}

#[test]
fn a_depth_that_cannot_be_looked_for_is_refused() {
    let wrong = |text: &str| problems(&format!("[a]\nrw=randread\nsize=1m\nlatency_target=500\n{text}\n"));
    let deep = "ioengine=libaio\niodepth=64";
    assert!(wrong(deep).contains("without a latency_window"));
    assert!(wrong("latency_window=1s").contains("one request in flight"));
    assert!(wrong("latency_window=1s\nioengine=libaio").contains("the largest that is tried"));
    assert!(wrong(&format!("latency_window=1s\n{deep}\n[b]\nsize=1m")).contains("`b` runs beside"));
    assert!(wrong(&format!("latency_window=1s\nlatency_percentile=101\n{deep}")).contains("at most 100"));
}

#[test]
fn data_is_what_buffer_pattern_says() {
    let data = plan("[a]\nrw=write\nsize=1m\nbuffer_pattern=0xdeadbeef\n[b]\nrw=read\nsize=1m\n").workload.data;
    assert_eq!(data.repeat, [0xde, 0xad, 0xbe, 0xef]);
    let told = problems("[a]\nrw=write\nsize=1m\nbuffer_pattern=1\n[b]\nrw=write\nsize=1m\n");
    assert!(told.contains("different data"), "{told}");
}

#[test]
fn results_are_printed_as_fio_does() {
    let plan = plan("[global]\nbs=4k\n[a]\nrw=randrw\nsize=20k\nfsync=2\n");
    let when = When { unix_ms: 1_795_377_955_936, text: "Sun Nov 22 20:05:55 2026".into(), ..When::default() };
    let text = normal(&plan, &report(), &when);
    for part in [
        "a: (groupid=0, jobs=1): err= 0: Sun Nov 22 20:05:55 2026",
        "read: IOPS=2,",
        "issued rwts: total=3,2,0,1",
        "READ: bw=",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let line = terse(&plan, &report(), 3);
    // As many fields as fio's own has, but for the devices' behind them.
    assert_eq!(line.trim_end().split(';').count(), 121, "{line}");
    let json: serde_json::Value = serde_json::from_str(&json(&plan, &report(), &when, true)).expect("JSON");
    let job = &json["jobs"][0];
    assert_eq!(job["read"]["iops"], 2.0);
    assert_eq!((&job["read"]["runtime"], &job["write"]["io_bytes"]), (&1500.into(), &8192.into()));
    assert_eq!(job["sync"]["total_ios"], 1);
    assert_eq!(job["read"]["clat_ns"]["percentile"]["50.000000"], 2_007_040);
    let bins = job["read"]["clat_ns"]["bins"].as_object().expect("bins");
    assert_eq!(bins.values().filter_map(serde_json::Value::as_u64).sum::<u64>(), 3);
    assert_eq!(json["global options"]["bs"], "4k");
}

/// As fio counts them: what failed is an operation, and what could not be opened is none.
#[test]
fn operations_that_failed_are_counted() {
    let plan = plan("[a]\nrw=randrw\nsize=20k\n");
    let error = |operation: &str, call: &str, errno: i32, count: u64| ErrorReport {
        group: "a".into(),
        operation: operation.into(),
        call: call.into(),
        errno,
        count,
        ..ErrorReport::default()
    };
    let errors = vec![
        error("write", "write", 28, 2),
        error("write", "open", 2, 8),
        error("fsync policy", "fsync", 5, 16),
        error("read", "read", 61, 4),
    ];
    let with = LoadReport { errors, ..report() };
    let shown = |report: &LoadReport| -> serde_json::Value {
        let json = json(&plan, report, &When::default(), false);
        serde_json::from_str::<serde_json::Value>(&json).expect("JSON")["jobs"][0].clone()
    };
    let (good, bad) = (shown(&report()), shown(&with));
    let of = |job: &serde_json::Value, direction: &str, key: &str| job[direction][key].as_u64().expect("a number");
    for (direction, more) in [("read", 4), ("write", 2)] {
        assert_eq!(of(&bad, direction, "total_ios"), of(&good, direction, "total_ios") + more, "{bad}");
        assert_eq!(of(&bad, direction, "io_bytes"), of(&good, direction, "io_bytes"), "{bad}");
    }
    assert_eq!(bad["error"], 28);
    let reads = LoadReport { errors: vec![error("read", "read", 61, 4), error("read", "verify", 74, 1)], ..report() };
    assert_eq!(shown(&reads)["error"], 5);
    let verifies = LoadReport { errors: vec![error("read", "verify", 74, 1)], ..report() };
    assert_eq!(shown(&verifies)["error"], 84);
}

#[test]
fn a_file_that_is_made_when_it_is_opened_is_not_written_before() {
    let fills = |options: &str| plan(&format!("[a]\nsize=256k\noverwrite=1\n{options}\n")).workload.filesets[0].fill;
    assert!(!fills("rw=randwrite\ncreate_on_open=1") && fills("rw=randwrite"));
    assert!(fills("rw=randrw\ncreate_on_open=1"), "those to be read are laid out");
}

#[test]
fn logs_that_nothing_writes_are_no_secret() {
    let plan = plan("[a]\nsize=1m\nwrite_lat_log=x\n[b]\nsize=1m\nwrite_bw_log=y\n");
    let told = plan.warnings.map(|warnings| warnings.to_string()).unwrap_or_default();
    assert_eq!(told.matches("write_lat_log").count(), 1, "{told}");
}

#[test]
fn a_description_is_printed_as_fio_does() {
    // Before the first job they are all jobs' own.
    let words = [
        "--description=of; both",
        "--rw=randrw",
        "--size=20k",
        "--group_reporting",
        "--name=a",
        "--name=b",
        "--description=b",
    ];
    let line = parse_command_line(&words.map(str::to_owned)).expect("it is right");
    let plan = plan_of(&line, &[]);
    let (text, line) = (normal(&plan, &report(), &When::default()), terse(&plan, &report(), 3));
    assert!(text.lines().nth(3) == Some("  Description  : [of; both]") && !text.contains("[b]"), "{text}");
    assert!(line.trim_end().ends_with("%;of; both"), "{line}");
    let json: serde_json::Value = serde_json::from_str(&json(&plan, &report(), &When::default(), false)).expect("JSON");
    assert_eq!(json["jobs"][0]["desc"], "of; both");
    let without = read("[a]\nsize=1m\ndescription=\n").expect("it is taken");
    assert!(!normal(&without, &report(), &When::default()).contains("Description"));
}

#[test]
fn json_has_every_key_of_fios() {
    let plan = plan("[a]\nrw=randrw\nsize=20k\n");
    let json: serde_json::Value = serde_json::from_str(&json(&plan, &report(), &When::default(), true)).expect("JSON");
    let has = |value: &serde_json::Value, keys: &[&str]| {
        for key in keys {
            assert!(value.get(key).is_some(), "{key}");
        }
    };
    has(&json, &["fio version", "timestamp", "timestamp_ms", "time", "jobs", "disk_util"]);
    let job = &json["jobs"][0];
    has(
        job,
        &[
            "jobname",
            "groupid",
            "error",
            "eta",
            "elapsed",
            "job options",
            "read",
            "write",
            "trim",
            "sync",
            "job_runtime",
            "usr_cpu",
            "sys_cpu",
            "ctx",
            "majf",
            "minf",
            "iodepth_level",
            "iodepth_submit",
            "iodepth_complete",
            "latency_ns",
            "latency_us",
            "latency_ms",
            "latency_depth",
            "latency_target",
            "latency_percentile",
            "latency_window",
        ],
    );
    for direction in ["read", "write", "trim"] {
        has(
            &job[direction],
            &[
                "io_bytes",
                "io_kbytes",
                "bw_bytes",
                "bw",
                "iops",
                "runtime",
                "total_ios",
                "short_ios",
                "drop_ios",
                "slat_ns",
                "clat_ns",
                "lat_ns",
                "bw_min",
                "bw_max",
                "bw_agg",
                "bw_mean",
                "bw_dev",
                "bw_samples",
                "iops_min",
                "iops_max",
                "iops_mean",
                "iops_stddev",
                "iops_samples",
            ],
        );
        has(&job[direction]["clat_ns"], &["min", "max", "mean", "stddev", "N"]);
    }
    has(&job["iodepth_level"], &["1", "2", "4", "8", "16", "32", ">=64"]);
    has(&job["latency_ms"], &["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"]);
}

#[test]
fn the_fuzzers_seeds_are_read() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/fio");
    let mut accepted = 0;
    for seed in std::fs::read_dir(seeds).expect("it is in the repository") {
        let path = seed.expect("readable").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        match read(&text) {
            Ok(plan) => {
                let printed = native::print(&plan.workload);
                let again =
                    native::parse(&Source::new("printed", printed.as_str())).unwrap_or_else(|wrong| panic!("{wrong}"));
                assert_eq!(again, plan.workload.without_unused_depths(), "{printed}");
                accepted += 1;
            }
            Err(wrong) => assert!(path.ends_with("wrong"), "{}: {wrong}", path.display()),
        }
    }
    assert_eq!(accepted, 4);
}

#[test]
fn trims_and_the_writes_after_them_have_the_rate_each() {
    for rate in ["rate_iops=100", "rate=400k"] {
        let job = format!("[j]\nioengine=falloc\nrw=trimwrite\nbs=4k\nsize=600k\n{rate}\n");
        assert_eq!(plan(&job).workload.phases[0].groups[0].rate_per_second, Some(200.0), "{rate}");
    }
}

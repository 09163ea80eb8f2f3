//! Which jobs go through their files on a tour.

use super::*;
use fstone_model::workload::{Tour, Weighted};

fn group(options: &str) -> fstone_model::workload::ThreadGroup {
    let plan = plan(&format!("[a]\nsize=1m\n{options}\n"));
    plan.workload.phases.last().expect("a phase").groups[0].clone()
}

#[test]
fn jobs_whose_operations_share_something_make_a_tour() {
    let tour = |options: &str| group(options).tour;
    // Reads and writes share one map, if there is one.
    assert_eq!(tour("rw=randrw"), Some(Tour::InTurn));
    for simple in ["rw=randrw\nnorandommap", "rw=randrw\nrandom_distribution=zipf", "rw=rw", "rw=randread", "rw=write"]
    {
        assert_eq!(tour(simple), None, "{simple}");
    }
    // Random and sequential operations share a position.
    assert_eq!(tour("rw=randread\npercentage_random=50"), Some(Tour::InTurn));
    assert_eq!(tour("rw=randrw\npercentage_random=50\nnorandommap"), Some(Tour::InTurn));
    assert_eq!(tour("rw=randread\npercentage_random=0"), None);
    assert_eq!(tour("rw=read:8k"), None);
}

#[test]
fn jobs_that_finish_some_files_before_others_make_a_tour() {
    let tour = |options: &str| group(&format!("nrfiles=4\n{options}")).tour;
    let [first, second, any] = ["roundrobin", "sequential", "random"].map(|how| format!("file_service_type={how}"));
    // Files that are alike are finished together.
    assert_eq!(tour("rw=randread"), None);
    assert_eq!(tour(&format!("rw=write\n{first}")), None);
    assert_eq!(tour(&format!("rw=read\n{second}")), None);
    assert_eq!(tour(&format!("rw=randread\nnorandommap\n{any}")), None);
    assert_eq!(tour(&format!("rw=randread\n{second}")), Some(Tour::OneByOne));
    assert_eq!(tour(&format!("rw=read\n{any}")), Some(Tour::Drawn));
    assert_eq!(tour(&format!("rw=randread\n{any}")), Some(Tour::Drawn));
    for sizes in ["bssplit=4k/50:16k/50", "bsrange=4k-16k", "filesize=4k-64k"] {
        assert_eq!(tour(&format!("rw=randread\n{sizes}")), Some(Tour::InTurn), "{sizes}");
        assert_eq!(tour(&format!("rw=write\n{sizes}\n{second}")), Some(Tour::OneByOne), "{sizes}");
    }
    // Files with names of their own as well.
    let named = group(&format!("rw=read\nfilename=a:b:c\n{second}"));
    assert_eq!(named.tour, Some(Tour::OneByOne));
    let Actions::Mix(mix) = &named.actions else { panic!("{:?}", named.actions) };
    let filesets: Vec<Option<u32>> = mix.iter().map(|Weighted { action, .. }| action.fileset).collect();
    assert_eq!(filesets, [Some(0), Some(1), Some(2)]);
}

/// How large such files are is not known before they are made: the job is done when all are.
#[test]
fn files_of_several_sizes_are_gone_through_once() {
    let plan = |options: &str| plan(&format!("[a]\nrw=randread\nnrfiles=4\nfilesize=4k-64k\n{options}\n"));
    let stop = |options: &str| plan(options).workload.phases[0].groups[0].stop;
    assert_eq!(stop(""), Stop { once_through: true, ..Stop::default() });
    assert_eq!(stop("io_size=1m").operations, Some(256));
    assert_eq!(stop("number_ios=7"), Stop { operations: Some(7), once_through: true, ..Stop::default() });
    // A size ends it earlier, and not later.
    for (size, operations) in [("10m", 2560), ("8k", 2)] {
        let expected = Stop { operations: Some(operations), once_through: true, ..Stop::default() };
        assert_eq!(stop(&format!("size={size}")), expected);
        assert_eq!(stop(&format!("nrfiles=1\nsize={size}")), expected);
    }
    assert_eq!(stop("nrfiles=1"), Stop { once_through: true, ..Stop::default() });
    // Without a map no block is the last: as many as files of the middle size hold.
    for anywhere in ["norandommap", "random_distribution=zipf"] {
        assert_eq!(stop(anywhere), Stop { operations: Some(32), ..Stop::default() }, "{anywhere}");
    }
}

/// A size that is more than the files hold does not have them gone through again. An io_size does.
#[test]
fn a_size_is_no_more_than_files_hold() {
    let operations = |options: &str| group(&format!("nrfiles=4\nfilesize=64k\n{options}")).stop.operations;
    for rw in
        ["rw=read", "rw=randread", "rw=write", "rw=randread\nnorandommap", "rw=randread\nfile_service_type=random"]
    {
        assert_eq!(operations(rw), Some(64), "{rw}");
        assert_eq!(operations(&format!("{rw}\nloops=2")), Some(128), "{rw}");
        assert_eq!(operations(&format!("{rw}\nsize=100k")), Some(25), "{rw}");
        assert_eq!(operations(&format!("{rw}\nio_size=2m")), Some(512), "{rw}");
    }
}

#[test]
fn loops_over_files_of_several_sizes_are_phases() {
    let plan = |options: &str| plan(&format!("[a]\nrw=randread\nnrfiles=3\nfilesize=4k-64k\nloops=3\n{options}\n"));
    let stops = |options: &str| -> Vec<Stop> {
        plan(options).workload.phases.iter().map(|phase| phase.groups[0].stop).collect()
    };
    let once = Stop { once_through: true, ..Stop::default() };
    assert_eq!(stops(""), [once; 3]);
    assert_eq!(stops("size=10m"), [Stop { operations: Some(2560), ..once }; 3]);
    let plan_of_three = plan("");
    assert_eq!(plan_of_three.parts[0].again, ["a loop 2", "a loop 3"]);
    assert!(plan_of_three.parts[0].verify.is_empty());
    assert!(plan_of_three.workload.phases.iter().all(|phase| phase.groups[0].invalidate));
    // An end that is counted over all loops can come in any of them.
    for counted in ["number_ios=30", "runtime=3", "exitall", "loops=101", "norandommap", "io_size=64k"] {
        assert_eq!(stops(counted).len(), 1, "{counted}");
    }
}

/// As fio 3.33 counts, in blocks: with loops whole passes until both are done, and without a map each loop moves all of it.
#[test]
fn an_io_size_is_not_moved_in_each_loop() {
    let operations = |options: &str| group(options).stop.operations;
    for (options, expected) in [
        ("rw=write\nio_size=4m\nloops=2", 1024),
        ("rw=write\nio_size=1536k\nloops=3", 768),
        ("rw=read\nio_size=8m\nloops=3", 2048),
        ("rw=randread\nio_size=2500k\nloops=5", 1280),
        ("rw=read\nio_size=2500k\nloops=2", 768),
        ("rw=write\nio_size=2050k\nloops=2", 512),
        ("rw=read\nio_size=2500k", 625),
        ("rw=write\nio_size=512k\nloops=3", 384),
        ("rw=randread\nnorandommap\nio_size=2500k\nloops=5", 3125),
    ] {
        assert_eq!(operations(options), Some(expected), "{options}");
    }
}

#[test]
fn what_is_read_back_counts_towards_an_io_size() {
    let written = |options: &str| -> Vec<Option<u64>> {
        let plan = plan(&format!("[a]\nsize=1m\nrw=write\nverify=md5\n{options}\n"));
        let phases = plan.workload.phases.iter().map(|phase| phase.groups[0].stop.operations);
        assert_eq!(plan.parts[0].verify.len(), plan.parts[0].again.len() + 1, "{options}");
        phases.step_by(2).collect()
    };
    for (options, passes) in [
        ("io_size=1536k", 1),
        ("io_size=2m", 1),
        ("io_size=2560k", 2),
        ("rw=randwrite\nio_size=4m", 2),
        ("io_size=2m\nloops=2", 2),
        ("io_size=5m\nloops=3", 3),
        ("rw=randrw\nio_size=4m", 3),
    ] {
        assert_eq!(written(options), vec![Some(256); passes], "{options}");
    }
    assert_eq!(written("io_size=512k\nloops=3"), [Some(128); 3]);
    assert_eq!(written("rw=randwrite\nnorandommap\nio_size=3m"), [Some(768)]);
}

#[test]
fn what_is_read_back_is_no_tour() {
    let plan = plan("[a]\nsize=1m\nrw=randwrite\nbssplit=4k/50:16k/50\nnrfiles=4\nverify=md5\n");
    let tours: Vec<_> = plan.workload.phases.iter().map(|phase| phase.groups[0].tour).collect();
    assert_eq!(tours, [Some(Tour::InTurn), None]);
}

/// fio's normal distribution is the sum of one that has always the same width and one that has the given width.
#[test]
fn normal_is_as_wide_as_in_fio() {
    for (percent, wanted) in [("1", 0.0834), ("20", 0.1014), ("50", 0.1667), ("90", 0.1667)] {
        let plan = plan(&format!("[a]\nrw=randread\nsize=1m\nrandom_distribution=normal:{percent}\n"));
        let (Operation::Read(transfer), _) = operation(&plan, 0, 0) else { panic!("a read") };
        let Pattern::Random { distribution: Distribution::Gauss { deviation, scattered: true }, .. } = transfer.pattern
        else {
            panic!("{transfer:?}")
        };
        assert!((deviation - wanted).abs() < 1e-4, "{percent}: {deviation}");
    }
}

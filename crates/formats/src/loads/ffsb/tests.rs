//! Whole profiles, read and turned into workloads.

use super::*;
use crate::{
    native,
    study::{self, Overrides},
};
use fstone_model::workload::{
    Actions, Amount, Directories, Existing, Extent, FinalSync, Operation, Pattern, SizeDistribution, TransactionRule,
    Workload,
};
use fstone_model::{
    Histogram, LoadReport,
    load::{CallReport, OperationReport},
    mkfs::MkfsOptions,
    study::FilesystemType,
};
use proptest::prelude::*;
use std::time::Duration;

const SMALL_FILE: &str = "\
num_filesystems=1
num_threadgroups=1
directio=0
time=1800

[filesystem0]
location=/mnt/test/
num_files=5000
num_dirs=1000
max_filesize=524288
min_filesize=4096
[end0]

[threadgroup0]
num_threads=128
write_size=4096
write_blocksize=4096
read_blocksize=4096
create_weight=1
write_weight=1
readall_weight=2
[end0]
";

const LARGE_FILE: &str = "\
num_filesystems=1
num_threadgroups=1
directio=0
time=300
[filesystem0]
\tlocation=/mnt/test
\tnum_files=0
\tnum_dirs=0
\tmax_filesize=1073741824
\tmin_filesize=1073741824
[end0]
[threadgroup0]
\tnum_threads=4
\twrite_blocksize=65536
\tcreate_weight=1
[end0]
";

const EVERYTHING: &str = "\
# a profile of FFSB 6.0
directio\t= 0
time = 10   # seconds
alignio=1
bufferio = 0
verbose=0
callout = echo begin

[filesystem]
    location = /a
    num_dirs = 100
    size_weight 4k 33
    size_weight 8KB 21
    size_weight 1m 2 # rare
    init_size = 100m
    create_blocksize = 64k
    age_blocksize = 8k
    agefs = 1
    [threadgroup]
        num_threads = 10
        write_size = 400
        write_blocksize = 1024
        create_weight = 10
        append_weight = 10
        delete_weight = 1
    [end]
    desired_util = 0.005
[end]
[filesystem]
    location = /b
    clone = /a
[end]

[threadgroup1]
    num_threads = 4
    bindfs = /b
    append_weight = 1
    append_fsync_weight = 2
    stat_weight = 3
    write_weight = 4
    write_fsync_weight = 5
    read_weight = 6
    create_weight = 7
    create_fsync_weight = 8
    delete_weight = 9
    readall_weight = 10
    writeall_weight = 11
    writeall_fsync_weight = 12
    open_close_weight = 13
    metaop_weight = 14
    createdir_weight = 15
    read_random = 1
    write_random = 1
    write_size = 2k
    write_blocksize = 1k
    read_size = 4k
    read_blocksize = 4k
    op_delay = 5
    [stats]
        enable_stats = 1
        enable_range = 1
        ignore = close
        ignore = LSEEK
        msec_range 0.00 0.01
        msec_range 0.01 10000.0
    [end]
[end]
[threadgroup]
    num_threads = 2
    readall_weight = 1
    read_blocksize = 4096
[end]
";

const OLD: &str = "\
numconfigs=1
numfiles=1000
maxfilesize=65536
minfilesize=4096
numdirs=10
utilization=0.25
initialcreateweight=10
initialdeleteweight=1
location=/mnt/old
directio=0
bufferedio=0
verbose=0
reage=0
[config0]
threads=4
iterations=20000
readsize=4096
readblocksize=4096
readseeksize=1
writesize=8192
readweight=4
writeweight=1
createweight=2
deleteweight=3
metaweight=5
";

pub(super) fn read(text: &str) -> Result<Profile, Diagnostics> {
    parse(&Source::new("dir/test.ffsb", text), &Options::default())
}

fn read_well(text: &str) -> Profile {
    let profile = read(text).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(profile.warnings.is_none(), "{}", profile.warnings.expect("some"));
    profile
}

fn problems(text: &str) -> String {
    read(text).expect_err("it is wrong").to_string()
}

fn mix(workload: &Workload, phase: usize, group: usize) -> Vec<(u32, &str, &Operation, TransactionRule)> {
    let Actions::Mix(mix) = &workload.phases[phase].groups[group].actions else { panic!("not a mix") };
    mix.iter()
        .map(|one| (one.weight, one.action.name.as_str(), &one.action.operation, one.action.transactions))
        .collect()
}

#[test]
fn the_published_small_file_profile() {
    let profile = read_well(SMALL_FILE);
    assert_eq!((profile.dialect, profile.name.as_str()), (Dialect::V5, "test"));
    let workload = profile.workload(Placement::UnderDirectory);
    let [fileset] = &workload.filesets[..] else { panic!("one fileset") };
    assert_eq!(fileset.directory, "data");
    assert_eq!(fileset.metadata_directory(), "meta");
    assert_eq!(fileset.amount, Amount::Files(5000));
    assert_eq!(fileset.directories, Directories::Flat { count: 1000, root_too: true });
    assert_eq!(fileset.size, SizeDistribution::Uniform { minimum: 4096, maximum: 524_288 });
    assert_eq!(
        (fileset.naming.file_prefix.as_str(), fileset.naming.directory_prefix.as_str()),
        ("datafile", "datadir")
    );
    assert_eq!((workload.threads(), workload.time_limit()), (128, Some(Duration::from_secs(1800))));
    assert_eq!(workload.final_sync, FinalSync::Syncfs);
    insta::assert_debug_snapshot!(mix(&workload, 0, 0));
    let as_written = profile.workload(Placement::AsWritten);
    assert_eq!(as_written.filesets[0].directory, "/mnt/test/data");
    assert_eq!(as_written.final_sync, FinalSync::Everything);
}

#[test]
fn the_published_large_file_profile() {
    let workload = read_well(LARGE_FILE).workload(Placement::UnderDirectory);
    assert_eq!(workload.filesets[0].amount, Amount::Files(0));
    assert_eq!(workload.filesets[0].size, SizeDistribution::Fixed(1 << 30));
    assert_eq!(
        mix(&workload, 0, 0),
        [(1, "create", &Operation::Create { block_bytes: 65536, fsync: false }, TransactionRule::BlocksCeil)]
    );
}

#[test]
fn every_keyword_of_6_0() {
    let profile = read_well(EVERYTHING);
    assert_eq!(profile.dialect, Dialect::V6);
    assert_eq!(profile.filesystems[1].sizes, profile.filesystems[0].sizes);
    assert_eq!(profile.filesystems[1].location, "/b");
    assert!(profile.filesystems[1].ageing.is_some(), "ageing is cloned too");
    let workload = profile.workload(Placement::UnderDirectory);
    let directories: Vec<&str> = workload.filesets.iter().map(|fileset| fileset.directory.as_str()).collect();
    assert_eq!(directories, ["fs0/data", "fs1/data", "fs0/fill", "fs1/fill"]);
    let [ageing, benchmark] = &workload.phases[..] else { panic!("two phases") };
    assert!(!ageing.measured && benchmark.measured);
    assert_eq!(ageing.groups[1].stop.utilization, Some(0.005));
    assert_eq!(benchmark.groups[0].think_time, Duration::from_millis(5));
    assert_eq!(workload.callout.as_deref(), Some("echo begin"));
    insta::assert_debug_snapshot!(mix(&workload, 1, 0));
    // Not bound: as likely here as there, and never on the files that aged.
    let Actions::Mix(mix) = &benchmark.groups[1].actions else { panic!("not a mix") };
    let drawn: Vec<_> = mix.iter().map(|one| (one.weight, one.action.fileset)).collect();
    assert_eq!(drawn, [(1, Some(0)), (1, Some(1))]);
    let stats = profile.groups[0].stats.as_ref().expect("enabled");
    assert_eq!((&stats.ignored[..], &stats.ranges[..]), (&["close", "lseek"][..], &[(0.0, 0.01), (0.01, 10000.0)][..]));
}

#[test]
fn the_4_x_dialect() {
    let source = Source::new("old", OLD);
    let wrong = parse(&source, &Options::default()).expect_err("no time");
    assert!(wrong.to_string().contains("does not say how long to run"), "{wrong}");
    let profile = parse(&source, &Options { seconds: Some(60) }).expect("good");
    assert_eq!(profile.dialect, Dialect::V4);
    let warnings = profile.warnings.as_ref().expect("iterations are ignored").to_string();
    assert!(warnings.contains("`iterations` is ignored"), "{warnings}");
    let workload = profile.workload(Placement::AsWritten);
    assert_eq!(workload.time_limit(), Some(Duration::from_secs(60)));
    insta::assert_debug_snapshot!((mix(&workload, 0, 0), mix(&workload, 1, 0)));
}

#[test]
fn inheritance_is_the_expanded_form() {
    let short = "\
num_filesystems=2
num_threadgroups=2
time=600
[filesystem0]
location=/one
num_files=1000
num_dirs=10
max_filesize=4096
min_filesize=4096
reuse=0
agefs=1
[threadgroup0]
num_threads=10
write_size=40960
write_blocksize=4096
create_weight=10
append_weight=10
delete_weight=1
[end0]
desired_util=0.02
[end0]
[filesystem1]
num_files=50
location=/two
[end1]
[threadgroup0]
num_threads=10
bindfs=1
write_weight=1
append_weight=1
write_random=1
fsync_file=1
op_delay=3
write_size=1024
write_blocksize=512
[end0]
[threadgroup1]
append_weight=7
[end1]
";
    let ageing = "agefs=1\n[threadgroup0]\nnum_threads=10\nwrite_size=40960\nwrite_blocksize=4096\ncreate_weight=10\n\
                  append_weight=10\ndelete_weight=1\n[end0]\ndesired_util=0.02\n";
    let expanded = short
        .replace("num_files=50\n", &format!("num_files=50\nnum_dirs=10\nmax_filesize=4096\nmin_filesize=4096\n{ageing}"))
        .replace(
            "append_weight=7\n",
            "append_weight=7\nnum_threads=10\nwrite_random=1\nfsync_file=1\nop_delay=3\nwrite_size=1024\nwrite_blocksize=512\n",
        );
    assert_eq!(read_well(short), read_well(&expanded));
    let plan = |profile: &str| {
        let study = "title = \"One\"\nrepeats = 1\ndevice = { loop = { size = \"1 GiB\" } }\n[factor.filesystem]\n\
                     ext4 = { type = \"ext4\" }\n[[step]]\nload = { ffsb = \"p.ffsb\" }\nshow = [\"transactions per second\"]\n";
        let load = |_: &str| Ok(profile.to_owned());
        let types = [FilesystemType { name: "ext4", holds_trees: true, mkfs: &MkfsOptions::NONE }];
        study::compile(&Source::new("study.toml", study), &load, &types, &Overrides::default())
            .unwrap_or_else(|wrong| panic!("{wrong}"))
    };
    assert_eq!(plan(short).cells, plan(&expanded).cells, "and so for a study");
    let profile = read_well(short);
    assert_eq!(profile.groups[1].bound_to, None, "bindfs is not inherited");
    assert_eq!(profile.groups[1].weights, [(Op::Append, 7)], "weights are not inherited");
}

#[test]
fn only_as_many_threadgroups_as_promised() {
    let text = SMALL_FILE.to_owned() + "[threadgroup1]\nnum_threads=3\nread_weight=1\n[end1]\n";
    let profile = read(&text).expect("a warning only");
    assert_eq!(profile.groups.len(), 1);
    assert!(profile.warnings.expect("one").to_string().contains("are ignored"));
}

#[test]
fn comments_after_values_in_5_x_and_unknown_lines() {
    let text = SMALL_FILE
        .replace("time=1800", "time=30 \t\t # seconds\ncallout=sync.sh my host # kept")
        .replace("num_threads=128", "num_threads=128\nsome_weight=3\nread_size=64k");
    let profile = read(&text).expect("warnings only");
    assert_eq!((profile.time.as_secs(), profile.callout.as_deref()), (30, Some("sync.sh my host # kept")));
    assert_eq!(profile.groups[0].read.size_bytes, 65536);
    insta::assert_snapshot!(profile.warnings.expect("two").to_string());
}

#[test]
fn seconds_replace_the_profiles_time() {
    let source = Source::new("small", SMALL_FILE);
    let profile = parse(&source, &Options { seconds: Some(5) }).expect("good");
    assert_eq!(profile.time, Duration::from_secs(5));
}

#[test]
fn no_time_builds_only() {
    let workload = read_well(&SMALL_FILE.replace("time=1800", "time=0")).workload(Placement::UnderDirectory);
    assert!(workload.phases.is_empty());
    assert_eq!(workload.filesets.len(), 1);
}

#[test]
fn reuse_is_kept() {
    let profile = read_well(&SMALL_FILE.replace("num_dirs=1000", "num_dirs=1000\nreuse=1"));
    assert_eq!(profile.workload(Placement::AsWritten).filesets[0].existing, Existing::Reuse);
}

#[test]
fn random_reads_are_whole_blocks() {
    let group = |size: &str| {
        let text = LARGE_FILE.replace(
            "create_weight=1",
            &format!("read_weight=1\nread_random=1\nread_size={size}\nread_blocksize=4096"),
        );
        let workload = read_well(&text).workload(Placement::UnderDirectory);
        let (_, _, Operation::Read(transfer), TransactionRule::BlocksFloor) = mix(&workload, 0, 0)[0] else { panic!() };
        assert!(matches!(transfer.pattern, Pattern::Random { align_bytes: 1, .. }));
        (transfer.extent, transfer.block_bytes)
    };
    assert_eq!(group("10000"), (Extent::Bytes(8192), 4096));
    assert_eq!(group("1000"), (Extent::Bytes(1000), 1000));
}

#[test]
fn what_is_wrong_is_shown() {
    insta::assert_snapshot!(problems(
        "time = x\nnum_thread = 3\n[filesystem]\n locations = /a\n num_files 3\n init_util = 30\n[end]\n\
         [threadgroup]\n num_threads = 0\n read_weight = 1\n read_skip = 1\n read_random = 1\n location = /b\n[end]\n"
    ));
}

#[test]
fn sections_in_the_wrong_place_are_shown() {
    insta::assert_snapshot!(problems(
        "time = 1\n[filesystem]\n location = /a\n[filesystem]\n location = /a/\n clone = /c\n[end]\n[end]\n[threadgrup]\n\
         [threadgroup]\n num_threads = 1\n bindfs = /aa\n stat_weight = 1\n"
    ));
}

#[test]
fn circles_of_clones_are_found() {
    let text = "[filesystem]\nlocation = /a\nclone = /b\n[end]\n[filesystem]\nlocation = /b\nclone = /a\n[end]\n\
                [threadgroup]\nnum_threads = 1\nstat_weight = 1\n[end]\n";
    assert!(problems(text).contains("clone each other in a circle"), "{}", problems(text));
}

#[test]
fn what_is_wrong_with_a_4_x_profile_is_shown() {
    let text = OLD
        .replace("threads=4", "thread=4")
        .replace("utilization=0.25", "utilization=25")
        .replace("[config0]", "[config0]\nnumdirs=3");
    insta::assert_snapshot!(problems(&text));
}

#[test]
fn a_conversion_means_the_same_and_explains_itself() {
    insta::assert_snapshot!(convert(&read_well(EVERYTHING)));
    let old = parse(&Source::new("old", OLD), &Options { seconds: Some(60) }).expect("good");
    let built_only = SMALL_FILE.replace("time=1800", "time=0");
    for profile in [read_well(SMALL_FILE), read_well(LARGE_FILE), read_well(EVERYTHING), old, read_well(&built_only)] {
        let text = convert(&profile);
        let again = native::parse(&Source::new("converted", text.as_str())).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(again, profile.workload(Placement::UnderDirectory), "{text}");
    }
    assert!(!convert(&read_well(LARGE_FILE)).contains("whole block"), "there is no readall");
}

fn profile_like() -> impl Strategy<Value = String> {
    let words: Vec<&'static str> = keyword::KEYWORDS.iter().map(|keyword| keyword.name).collect();
    let line = prop_oneof![
        (prop::sample::select(words), "[ =\t]{0,3}", "[-0-9kmg./ #a]{0,8}")
            .prop_map(|(key, sign, value)| key.to_owned() + &sign + &value),
        prop::sample::select(vec![
            "[filesystem]",
            "[threadgroup]",
            "[end]",
            "[end0]",
            "[stats]",
            "[config0]",
            "numconfigs=1"
        ])
        .prop_map(str::to_owned),
        "\\PC{0,20}",
    ];
    prop::collection::vec(line, 0..40).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in prop_oneof![profile_like(), "[\\PC\n\t\r]{0,200}"], seconds in prop::option::of(0u64..100)) {
        match parse(&Source::new("p", text), &Options { seconds }) {
            Ok(profile) => {
                for placement in [Placement::UnderDirectory, Placement::AsWritten] {
                    prop_assert_eq!(profile.workload(placement).filesets.len() >= profile.filesystems.len(), true);
                }
                prop_assert!(!header(&profile).is_empty() && !convert(&profile).is_empty());
            }
            Err(wrong) => prop_assert!(wrong.errors() > 0),
        }
    }
}

fn report() -> LoadReport {
    let operation = |group: &str, name: &str, invocations, transactions, read_bytes, written_bytes| OperationReport {
        group: group.into(),
        name: name.into(),
        invocations,
        transactions,
        read_bytes,
        written_bytes,
        ..OperationReport::default()
    };
    let call = |call: &str, latencies_ns: &[u64]| CallReport {
        group: "threadgroup0".into(),
        call: call.into(),
        latency: Histogram::from_values(latencies_ns),
    };
    LoadReport {
        setup_ns: 3_500_000_000,
        elapsed_ns: 10_000_000_000,
        sync_ns: 1_200_000_000,
        process_user_ns: 500_000_000,
        process_system_ns: 2_500_000_000,
        operations: vec![
            // Of one filesystem and of the other.
            operation("threadgroup0", "readall", 100, 6400, 6400 * 4096, 0),
            operation("threadgroup0", "readall", 100, 6400, 6400 * 4096, 0),
            operation("threadgroup0", "create", 150, 9000, 0, 9000 * 4096),
            operation("threadgroup0", "delete", 50, 50, 0, 0),
            operation("threadgroup1", "readall", 7, 0, 0, 0),
        ],
        calls: vec![
            call("open", &[5_000, 15_000]),
            call("read", &[1_000_000, 3_000_000]),
            call("close", &[1_000]),
            call("fsync", &[9_000_000]),
        ],
        ..LoadReport::default()
    }
}

#[test]
fn results_are_printed_as_ffsb_does() {
    let profile = read_well(EVERYTHING);
    insta::assert_snapshot!(header(&profile));
    insta::assert_snapshot!(print(&profile, &report()));
    let small = read_well(SMALL_FILE);
    let text = print(&small, &report());
    assert_eq!(text.matches("Total Results").count(), 1, "{text}");
    assert!(!text.contains("ThreadGroup"), "{text}");
    assert!(text.contains("2185.00 Transactions per Second"), "{text}");
}

#[test]
fn every_keyword_is_documented() {
    let documentation = include_str!("../../../../../docs/formats/ffsb.md");
    for keyword in keyword::KEYWORDS {
        assert!(documentation.contains(&format!("`{}`", keyword.name)), "{} is not documented", keyword.name);
    }
}

#[test]
fn the_fuzzers_seeds_are_read() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/ffsb");
    let mut accepted = 0;
    for seed in std::fs::read_dir(seeds).expect("it is in the repository") {
        let path = seed.expect("readable").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        match parse(&Source::new(path.to_string_lossy(), text), &Options { seconds: Some(1) }) {
            Ok(_) => accepted += 1,
            Err(wrong) => assert!(path.ends_with("wrong"), "{wrong}"),
        }
    }
    assert!(accepted >= 5, "{accepted}");
}

//! Personalities of every kind, and what is wrong with others.

use super::*;
use fstone_model::workload::{
    Action, Actions, Amount, Directories, Extent, FileChoice, FinishUnit, Operation, PaceUnit, Pattern, Region,
    SizeDistribution, Step,
};
use proptest::prelude::*;
use std::time::Duration;

const OPTIONS: Options = Options { placement: Placement::UnderDirectory, seconds: None };

fn read(text: &str) -> Result<Personality, Diagnostics> {
    parse(&Source::new("p.f", text), OPTIONS)
}

fn workload(text: &str) -> Workload {
    read(text).unwrap_or_else(|wrong| panic!("{wrong}")).workload
}

fn refused(text: &str) -> String {
    read(text).expect_err(text).to_string()
}

/// A personality of one thread with these flowops, on a fileset `set` of 100 files of 8 KiB and a file `one` of 1 MiB.
fn with(flowops: &str) -> String {
    format!(
        "set $dir=/tmp\ndefine fileset name=set,path=$dir,size=8k,entries=100,dirwidth=10,prealloc=80\n\
         define file name=one,path=$dir,size=1m,prealloc\n\
         define process name=p,instances=1\n{{\n thread name=t,memsize=10m,instances=2\n {{\n{flowops}\n }}\n}}\nrun 10\n"
    )
}

fn steps(flowops: &str) -> Vec<Step> {
    let load = workload(&with(flowops));
    let Actions::Program(steps) = &load.phases[0].groups[0].actions else { panic!("a thread goes through a program") };
    steps.clone()
}

fn only(flowops: &str) -> Action {
    let steps = steps(flowops);
    let [Step::Perform { action, times: 1 }] = steps.as_slice() else { panic!("{steps:?}") };
    action.clone()
}

#[test]
fn a_mail_server_is_read() {
    let load = workload(
        "# mail\nset $dir=/tmp\nset $nfiles=1000\nset $meandirwidth=1000000\n\
         set $filesize=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)\nset $nthreads=16\nset $iosize=1m\n\
         define fileset name=bigfileset,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80\n\
         define process name=filereader,instances=1\n{\n  thread name=filereaderthread,memsize=10m,instances=$nthreads\n  {\n\
         flowop deletefile name=deletefile1,filesetname=bigfileset\n\
         flowop createfile name=createfile2,filesetname=bigfileset,fd=1\n\
         flowop appendfilerand name=appendfilerand2,iosize=16k,fd=1\n\
         flowop fsync name=fsyncfile2,fd=1\n flowop closefile name=closefile2,fd=1\n\
         flowop openfile name=openfile3,filesetname=bigfileset,fd=1\n\
         flowop readwholefile name=readfile3,fd=1,iosize=$iosize\n flowop closefile name=closefile3,fd=1\n  }\n}\n\
         echo  \"Mail personality successfully loaded\"\nrun 60\n",
    );
    let [fileset] = load.filesets.as_slice() else { panic!("one fileset") };
    assert_eq!((fileset.amount, fileset.preallocated, &*fileset.directory), (Amount::Files(1000), 0.8, "bigfileset"));
    assert_eq!(fileset.size, SizeDistribution::Gamma { mean: 16384, shape: 1.5 });
    assert_eq!(fileset.directories, Directories::Flat { count: 0, root_too: false });
    let phase = &load.phases[0];
    assert_eq!((phase.stop.time, phase.stop.first_done), (Some(Duration::from_secs(60)), true));
    assert_eq!((&*phase.groups[0].name, phase.groups[0].threads), ("filereader", 16));
    let names: Vec<(&str, Option<u32>, &str)> = phase.groups[0]
        .actions
        .all()
        .into_iter()
        .map(|action| (&*action.name, action.handle, action.operation.nature().word))
        .collect();
    assert_eq!(
        names,
        [
            ("deletefile1", None, "unlink"),
            ("createfile2", Some(1), "create"),
            ("appendfilerand2", Some(1), "append"),
            ("fsyncfile2", Some(1), "fsync"),
            ("closefile2", Some(1), "close"),
            ("openfile3", Some(1), "open"),
            ("readfile3", Some(1), "read"),
            ("closefile3", Some(1), "close"),
        ]
    );
    let append = phase.groups[0].actions.all()[2].clone();
    assert_eq!(append.blocks, Some(SizeDistribution::Uniform { minimum: 1, maximum: 16385 }));
    assert!(phase.groups[0].actions.all().iter().all(|action| action.choice == FileChoice::Rotation));
    // What is printed as a workload file is read back as the same load.
    let text = crate::native::print(&load);
    let again =
        crate::native::parse(&Source::new("w.toml", text.clone())).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    assert_eq!(again, load);
}

#[test]
fn flowops_are_what_they_are() {
    let transfer = |flowop: &str| {
        let action = only(flowop);
        let transfer = *action.operation.nature().transfer.expect("it moves data");
        (action.operation.nature().word, transfer.extent, transfer.block_bytes, transfer.pattern, action.handle)
    };
    let on = Pattern::Cursor { shared: false };
    let random =
        |align_bytes| Pattern::Random { distribution: fstone_model::workload::Distribution::Uniform, align_bytes };
    for (flowop, wanted) in [
        (
            "flowop read name=a,filename=one,iosize=8k,random",
            ("read", Extent::Bytes(8192), 8192, random(8192), Some(0)),
        ),
        ("flowop read name=a,filename=one,iosize=1m", ("read", Extent::Bytes(1 << 20), 1 << 20, on, Some(0))),
        ("flowop write name=a,filesetname=one,iosize=2k,fd=3", ("write", Extent::Bytes(2048), 2048, on, Some(3))),
        (
            "flowop appendfile name=a,filename=one,iosize=8k",
            ("append", Extent::Bytes(8192), 8192, Pattern::FromStart, Some(0)),
        ),
        ("flowop readwholefile name=a,filesetname=set", ("read", Extent::Whole, 1 << 20, Pattern::FromStart, Some(0))),
    ] {
        assert_eq!(transfer(flowop), wanted, "{flowop}");
    }
    assert_eq!(only("flowop deletefile name=a,filesetname=set").handle, None);
    assert_eq!(only("flowop listdir name=a,filesetname=set").operation, Operation::Readdir);
    let copy = steps(
        "flowop openfile name=a,filesetname=set,fd=1\nflowop createfile name=b,filesetname=set,fd=2\n\
         flowop writewholefile name=c,fd=2,srcfd=1,iosize=4k\nflowop closefile name=d,fd=1\nflowop closefile name=e,fd=2",
    );
    let actions = Step::actions(&copy);
    assert_eq!(actions[2].operation, Operation::Fill { block_bytes: 4096, like: Some(1) });
}

#[test]
fn leaf_directories_are_made_and_removed() {
    let leaves = "define fileset name=leaves,path=/tmp,leafdirs=1000,dirwidth=10,prealloc=60\n";
    let load = workload(&format!(
        "{leaves}{}",
        with("flowop makedir name=m,filesetname=leaves\nflowop removedir name=r,filesetname=leaves")
    ));
    let set = load.filesets.iter().find(|set| set.name == "leaves").expect("it is defined");
    assert_eq!((set.amount, set.leaf_directories, set.preallocated), (Amount::Files(0), 1000, 0.6));
    let Directories::Tree { width, depth } = set.directories else { panic!("{:?}", set.directories) };
    assert_eq!(width.pow(depth), 100, "a hundred directories of ten each");
    let Actions::Program(steps) = &load.phases[0].groups[0].actions else { panic!("a program") };
    let actions: Vec<_> = Step::actions(steps).into_iter().map(|action| (&action.operation, action.handle)).collect();
    assert_eq!(actions, [(&Operation::Mkdir, None), (&Operation::Rmdir, None)]);
    let told = refused(&with("flowop makedir name=m,filesetname=set"));
    assert!(
        told.contains("p.f:8:8") && told.contains("has no leaf directories") && told.contains("leafdirs="),
        "{told}"
    );
    let told = refused(&format!("{leaves}{}", with("flowop statfile name=s,filesetname=leaves")));
    assert!(told.contains("p.f:9:8") && told.contains("and no files") && told.contains("entries="), "{told}");
}

#[test]
fn what_is_no_operation_is_a_step() {
    let rest = "flowop statfile name=s,filesetname=set\n";
    let after = |flowop: &str| steps(&format!("{rest}{flowop}")).into_iter().nth(1);
    assert_eq!(after("flowop delay name=d,value=3"), Some(Step::Pause(Duration::from_secs(3))));
    assert_eq!(after("flowop hog name=h,value=9"), Some(Step::Spin(9)));
    let finish = |count, unit| Step::Finish { count, unit, of: None };
    assert_eq!(after("flowop finishoncount name=f,value=7"), Some(finish(7, FinishUnit::Operations)));
    assert_eq!(after("flowop finishonbytes name=f,value=1m"), Some(finish(1 << 20, FinishUnit::Bytes)));
    assert_eq!(
        after("flowop finishoncount name=f,value=7,target=s"),
        Some(Step::Finish { count: 7, unit: FinishUnit::Operations, of: Some("s".into()) })
    );
    assert_eq!(after("flowop opslimit name=l"), None, "without an event generator there is no limit");
    let limited = format!("eventgen rate=50\n{}", with(&format!("{rest}flowop iopslimit name=l")));
    let load = workload(&limited);
    let Actions::Program(steps) = &load.phases[0].groups[0].actions else { panic!("a program") };
    assert_eq!(steps[1], Step::Pace { per_second: 50.0, unit: PaceUnit::Transfers, of: None });
}

#[test]
fn the_threads_of_a_process_count_together() {
    let text = "define fileset name=set,path=/x,entries=9,dirwidth=9,prealloc\ndefine process name=p,instances=3 {\n\
                thread name=a { flowop statfile name=s,filesetname=set }\n\
                thread name=b { flowop statfile name=t,filesetname=set\n flowop finishoncount name=f,value=7 } }\n";
    let load =
        workload(&format!("{text}system \"sync; echo 3 >/proc/sys/vm/drop_caches\"\nrun 1\nsystem \"sync\"\nrun 1\n"));
    let groups = &load.phases[0].groups;
    assert!(groups.iter().all(|group| group.process.as_deref() == Some("p")), "{groups:?}");
    let Actions::Program(steps) = &groups[1].actions else { panic!("a program") };
    assert_eq!(steps[1], Step::Finish { count: 21, unit: FinishUnit::Operations, of: None });
    let settles: Vec<_> = load.phases.iter().map(|phase| (phase.syncs, phase.drops_caches)).collect();
    assert_eq!(settles, [(true, 3), (true, 0)]);
    for other in ["sync /x", "rm x; sync", "echo 4 > /proc/sys/vm/drop_caches", "sync > x", "$(sync)", "sync | sync"] {
        assert!(refused(&format!("system \"{other}\"\nrun 1\n")).contains("no shell commands"), "{other}");
    }
}

#[test]
fn flowops_are_put_together() {
    let text =
        "define flowop name=twice, $what, $times\n{\n flowop statfile name=in,filesetname=$what,iters=$times\n}\n";
    let load = workload(&format!("{text}{}", with("flowop twice name=outer,iters=3,$what=set,$times=2")));
    let Actions::Program(steps) = &load.phases[0].groups[0].actions else { panic!("a program") };
    let [Step::Repeat { times: 3, steps }] = steps.as_slice() else { panic!("{steps:?}") };
    let [Step::Perform { action, times: 2 }] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!((&*action.name, action.fileset), ("outer.in", Some(0)));
}

#[test]
fn variables_mean_what_they_are_when_it_runs() {
    let threads = |text: &str| workload(text).phases[0].groups[0].threads;
    let text = with("flowop statfile name=s,filesetname=set").replace("instances=2", "instances=$n");
    assert_eq!(threads(&format!("set $n=4\n{text}")), 4);
    assert_eq!(threads(&format!("set $m=4\nset $n=$m * 3\n{text}")), 12, "as in 1.4");
    assert_eq!(threads(&text.replace("run 10", "set $n=9\nrun 10")), 9);
    let load = workload(
        &with("flowop statfile name=s,filesetname=set").replace("run 10", "set $t=7\nrun $t\nrun 3\nquit\nrun 1"),
    );
    let times: Vec<Option<Duration>> = load.phases.iter().map(|phase| phase.stop.time).collect();
    assert_eq!(times, [Some(Duration::from_secs(7)), Some(Duration::from_secs(3))]);
}

#[test]
fn drawn_numbers_are_lists_or_what_the_model_has() {
    let sizes = |text: &str| {
        workload(&with("flowop statfile name=s,filesetname=set").replace("size=8k", text)).filesets[0].size.clone()
    };
    let table = "size=randvar(type=tabular,min=1k,round=1k,randtable={{50,1k,1k},{50,1k,3k}})";
    let SizeDistribution::Weighted(list) = sizes(table) else { panic!("a list") };
    assert_eq!(list.iter().map(|(size, _)| *size).collect::<Vec<_>>(), [1024, 2048, 3072]);
    assert_eq!(
        sizes("size=cvar(type=cvar-uniform,parameters=lower:4096;upper:8192)"),
        SizeDistribution::Uniform { minimum: 4096, maximum: 8192 }
    );
    let action = only("flowop openfile name=o,filesetname=set,fd=1,indexed=randvar(type=gamma,min=0,gamma=100)");
    assert!(matches!(action.numbers, Some(SizeDistribution::Weighted(_))));
    let old = "define randvar name=$size, type=gamma, min=1k, mean=5632, gamma=1500\n";
    let load = workload(&format!("{old}{}", with("flowop appendfile name=a,filename=one,iosize=$size")));
    assert!(matches!(load.phases[0].groups[0].actions.all()[0].blocks, Some(SizeDistribution::Weighted(_))));
}

#[test]
fn threads_open_files_in_their_own_way() {
    let load = workload(&with("flowop write name=w,filename=one,iosize=4k,random,dsync,directio,workingset=64k"));
    let group = &load.phases[0].groups[0];
    assert_eq!((group.io.direct, group.io.sync), (Some(true), Some(fstone_model::workload::OpenSync::Sync)));
    assert_eq!(group.region, Region::At { offset_bytes: 0, length_bytes: Some(65536), step_bytes: 0 });
    let load = workload(&with("flowop read name=r,filesetname=set,iosize=2k,random,opennext"));
    let group = &load.phases[0].groups[0];
    assert_eq!(group.open, fstone_model::workload::OpenPolicy::KeepOpen);
    assert_eq!((group.actions.all()[0].handle, group.actions.all()[0].choice), (None, FileChoice::RoundRobin));
}

#[test]
fn mistakes_are_told_with_their_place_and_cure() {
    for (text, place, words) in [
        ("difine file name=a\n", "1:1", "did you mean `define`"),
        (&with("flowop statfile name=s,filesetnam=set"), "8:24", "did you mean `filesetname`"),
        (&with("flowop statfile name=s,filesetname=sett"), "8:36", "did you mean `set`"),
        (&with("flowop opnfile name=s,filesetname=set"), "8:8", "did you mean `openfile`"),
        (&with("flowop closefile name=c,filesetname=set,fd=1"), "8:41", "nothing is open as fd=1"),
        (
            &with("flowop openfile name=a,filesetname=set,fd=1\nflowop openfile name=b,filesetname=set,fd=1"),
            "9:40",
            "still open",
        ),
        (&with("flowop read name=r,filename=one,iosize=$size"), "8:40", "`$size` was never set"),
        (&with("flowop read name=r,filename=one,iosize=8kb"), "8:40", "`kb` is not a unit"),
        (&with("flowop read name=r,filename=one"), "8:8", "iosize=8k"),
        (&with("flowop read name=r,filename=one,random,iosize=2m"), "8:40", "larger than the file"),
        (&with("flowop read name=r,iosize=8k"), "8:8", "no file to work on"),
        (&with("flowop statfile name=s filesetname=set"), "8:24", "a comma"),
        (
            &with("flowop sempost name=s,value=1,target=nobody\nflowop statfile name=t,filesetname=set"),
            "12:1",
            "`nobody`",
        ),
        ("system \"rm -rf /\"\nrun 1\n", "1:1", "no shell commands"),
        ("echo \"never ends\n", "1:6", "never closed"),
        (&with("flowop statfile name=s,filesetname=set").replace("instances=2", "instances=0"), "11:1", "0 instances"),
    ] {
        let told = refused(text);
        assert!(told.contains(&format!("p.f:{place}")) && told.contains(words), "{place} {words}\n{text}\n{told}");
    }
}

#[test]
fn what_differs_is_said() {
    let told = |text: &str| read(text).expect("it is fine").warnings.map(|told| told.to_string()).unwrap_or_default();
    assert_eq!(told(&with("flowop statfile name=s,filesetname=set")), "");
    assert!(told(&with("flowop statfile name=s,filesetname=set").replace("run 10\n", "")).contains("no `run` follows"));
    let aio = with("flowop aiowrite name=w,filename=one,iosize=4k,random\nflowop aiowait name=x");
    assert!(told(&aio).contains("`aiowrite` is done as `write`") && told(&aio).contains("waits for nothing"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(start in 0usize..400, length in 0usize..60, insert in "[a-z$={},()\"#0-9 \n-]{0,20}") {
        let mut text = with("flowop openfile name=a,filesetname=set,fd=1\nflowop readwholefile name=b,fd=1\nflowop closefile name=c,fd=1");
        let start = start.min(text.len());
        let end = (start + length).min(text.len());
        text.replace_range(start..end, &insert);
        let _ = read(&text);
    }
}

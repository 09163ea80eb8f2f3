//! Which files jobs have, and what becomes of them.

use super::*;

#[test]
fn what_becomes_of_files_that_are_there_does_not_depend_on_the_order_of_jobs() {
    let reads = "[a]\nrw=read\nbs=8k\nsize=1m\nfilename=x\n";
    let verifies = "[b]\nrw=write\nbs=8k\nsize=1m\nverify=md5\nverify_only\nfilename=x\n";
    for jobs in [[reads, verifies], [verifies, reads]] {
        let plan = plan(&jobs.concat());
        assert_eq!(plan.workload.filesets.len(), 1);
        assert_eq!(plan.workload.filesets[0].existing, Existing::Require, "{jobs:?}");
    }
    // What an earlier job writes, a later one verifies.
    let writes = "[a]\nrw=write\nbs=8k\nsize=1m\nfilename=x\nverify=md5\ndo_verify=0\n";
    let later = verifies.replacen('\n', "\nstonewall\n", 1);
    assert_eq!(plan(&format!("{writes}{later}")).workload.filesets[0].existing, Existing::Reuse);
    let before = writes.replacen('\n', "\nstonewall\n", 1);
    assert_eq!(plan(&format!("{verifies}{before}")).workload.filesets[0].existing, Existing::Require);
}

#[test]
fn what_an_earlier_run_wrote_is_read_back() {
    let plan = plan("[a]\nrw=randwrite\nbs=8k\nsize=1m\nruntime=9\nverify=md5\nverify_only\n");
    assert_eq!(phases(&plan), [("run", true, vec!["a"])]);
    let (Operation::Read(transfer), _) = operation(&plan, 0, 0) else { panic!("a read") };
    assert!(matches!(transfer.pattern, Pattern::Cursor { .. }), "{transfer:?}");
    assert_eq!(plan.workload.filesets[0].existing, fstone_model::workload::Existing::Require);
    assert!(plan.workload.data.stamped && plan.writes().is_none());
}

#[test]
fn files_are_called_as_fio_calls_them() {
    let names = |text: &str| -> Vec<(String, String, bool)> {
        let plan = plan(text);
        let filesets = plan.workload.filesets.iter();
        filesets
            .map(|fileset| (fileset.directory.clone(), fileset.naming.file_prefix.clone(), fileset.naming.exact))
            .collect()
    };
    let name = |directory: &str, prefix: &str, exact| (directory.to_owned(), prefix.to_owned(), exact);
    assert_eq!(names("[a]\nsize=1m\n"), [name("", "a.0.0", true)]);
    assert_eq!(names("[a]\nsize=1m\nnumjobs=2\nnrfiles=4\n"), [name("", "a.0.", false), name("", "a.1.", false)]);
    assert_eq!(
        names("[a]\nsize=1m\ndirectory=/mnt/x\nfilename=d/f:g\n"),
        [name("mnt/x/d", "f", true), name("mnt/x", "g", true)]
    );
    assert_eq!(names("[a]\nsize=1m\nfilename=f\nnumjobs=4\n[b]\nsize=2m\nfilename=f\n").len(), 1, "one file for all");
    assert_eq!(
        names("[a]\nsize=1m\nnrfiles=2\nfilename_format=$filenum/$jobname\n"),
        [name("0", "a", true), name("1", "a", true)]
    );
}

/// A job never works on others than those that it names.
#[test]
fn operations_on_files_are_of_those_that_are_named() {
    for (engine, existing) in
        [("filestat", Existing::Reuse), ("filedelete", Existing::Rebuild), ("filerename", Existing::Rebuild)]
    {
        let plan = plan(&format!("[a]\nioengine={engine}\nsize=4k\nfilename=u:v\n"));
        let names: Vec<&str> = plan.workload.filesets.iter().map(|of| of.naming.file_prefix.as_str()).collect();
        let group = &plan.workload.phases[0].groups[0];
        let on: Vec<Option<u32>> = group.actions.all().iter().map(|action| action.fileset).collect();
        assert_eq!((names, on, group.stop.operations), (vec!["u", "v"], vec![Some(0), Some(1)], Some(2)), "{engine}");
        assert!(plan.workload.filesets.iter().all(|of| of.existing == Existing::Reuse), "{engine}");
        let plan = super::plan(&format!("[a]\nioengine={engine}\nsize=4k\nnrfiles=2\n"));
        assert_eq!(plan.workload.filesets[0].existing, existing, "{engine}");
    }
    for engine in ["filecreate", "dircreate", "dirstat", "dirdelete"] {
        let refused = problems(&format!("[a]\nioengine={engine}\nsize=4k\nfilename=u\n"));
        assert!(refused.contains("filename cannot name those"), "{engine}: {refused}");
    }
    let shared = plan("[a]\nrw=read\nnrfiles=2\nsize=8k\n[a]\nstonewall\nioengine=filedelete\nnrfiles=2\nsize=8k\n");
    assert_eq!(shared.workload.filesets[0].existing, Existing::Rebuild, "a later job removes them");
}

#[test]
fn a_job_moves_whole_blocks_of_its_part_of_each_file() {
    let region = |text: &str| {
        let plan = plan(text);
        let groups = &plan.workload.phases[0].groups;
        let last = groups.last().expect("one").clone();
        (last.region, last.stop.operations, plan.workload.filesets[0].size.clone())
    };
    let at = |offset_bytes, length| Region::At { offset_bytes, length_bytes: Some(length), step_bytes: 0 };
    assert_eq!(region("[a]\nsize=100k\nbs=64k\n"), (at(0, 65536), Some(1), SizeDistribution::Fixed(102_400)));
    assert_eq!(region("[a]\nsize=1m\n"), (Region::Whole, Some(256), SizeDistribution::Fixed(1 << 20)));
    let parts = "[a]\nsize=1m\noffset_increment=1m\nnumjobs=3\nfilename=f\n";
    assert_eq!(region(parts), (at(2 << 20, 1 << 20), Some(256), SizeDistribution::Fixed(3 << 20)));
    assert_eq!(region("[a]\nsize=1m\nio_size=2m\n").1, Some(512));
    // Found by fuzzing: the second job's files are the first one's, and larger than it wants them.
    let larger = problems("[global]\nnrfiles=3\nfilesize=8k\n[a]\n[a]\nfilesize=4k\n");
    assert!(larger.contains("`a` works on a part of each of several files"), "{larger}");
    assert_eq!(region("[a]\nsize=1m\nloops=3\n").1, Some(768));
    assert_eq!(region("[a]\nsize=1m\nnumber_ios=5\n").1, Some(5));
    assert_eq!(region("[a]\nsize=1m\nruntime=5\ntime_based\n").1, None);
}

#[test]
fn files_are_made_as_the_first_jobs_want_them() {
    let made = |job: &str| {
        let plan = plan(&format!("[a]\nsize=1m\nfilename=f\n{job}\n"));
        let fileset = &plan.workload.filesets[0];
        (fileset.fill, fileset.allocate)
    };
    let (data, blocks, nothing) = ((true, false), (false, true), (false, false));
    for (job, wanted) in [
        ("rw=read", data),
        ("rw=write", blocks),
        ("rw=randrw", data),
        ("rw=write\nfallocate=none", nothing),
        ("rw=write\nfallocate=posix", blocks),
        ("rw=randwrite\noverwrite=1", data),
        ("rw=randwrite\npre_read=1", blocks),
        ("rw=randwrite\nioengine=mmap", data),
        ("rw=write\n[b]\nstonewall\nsize=1m\nfilename=f\nrw=read", blocks),
        ("rw=write\n[b]\nsize=1m\nfilename=f\nrw=read", data),
        ("ioengine=filestat", data),
        ("ioengine=filedelete\nrw=write", blocks),
        ("ioengine=filedelete\nrw=write\nfallocate=none", nothing),
    ] {
        assert_eq!(made(job), wanted, "{job}");
    }
    let plan = plan("[a]\nsize=1m\nnrfiles=2\n[a]\nsize=5m\nnrfiles=10\n");
    assert_eq!(plan.workload.filesets[0].amount, FileAmount::Files(10), "two jobs of one name have the same files");
}

#[test]
fn files_are_read_first_and_removed_last() {
    let plan = plan(
        "[global]\nsize=1m\n[a]\nrw=write\ndirect=1\npre_read=1\nfilename=f:g\nunlink=1\n[b]\nstonewall\nfilename=f\n\
         [c]\nnrfiles=4\nunlink=1\nthinktime=100\nthinktime_blocks=8\nthinktime_blocks_type=issue\n",
    );
    assert_eq!(
        phases(&plan),
        [
            ("run pre-read", false, vec!["a pre-read"]),
            ("run", true, vec!["a"]),
            ("unlink 1", false, vec!["unlink"]),
            ("run 2", true, vec!["b", "c"]),
            // What another job still has goes with that one.
            ("unlink 2", false, vec!["unlink", "unlink 2"]),
        ]
    );
    let group = |phase: usize, group: usize| &plan.workload.phases[phase].groups[group];
    assert!(!plan.workload.io_of(group(0, 0)).direct, "it is the cache that is filled");
    assert_eq!((group(1, 0).invalidate, group(3, 0).invalidate), (false, true));
    assert_eq!((group(2, 0).stop.operations, group(4, 1).stop.operations), (Some(1), Some(4)));
    assert_eq!(operation(&plan, 4, 1).0, Operation::Unlink);
    assert_eq!((group(3, 1).think_time, group(3, 1).think_every), (Duration::from_micros(100), 8));
}

#[test]
fn a_job_that_only_makes_its_files_does_nothing() {
    let plan = plan("[x]\nsize=1m\nrw=read\ncreate_only=1\n[b]\nsize=1m\n");
    let names: Vec<&str> = plan.workload.phases[0].groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!((names, plan.workload.filesets.len()), (vec!["b"], 2));
    let json: serde_json::Value = serde_json::from_str(&json(&plan, &report(), &When::default(), false)).expect("JSON");
    assert_eq!((&json["jobs"][0]["jobname"], &json["jobs"][0]["read"]["total_ios"]), (&"x".into(), &0.into()));
    assert_eq!(json["jobs"][0]["job_runtime"], 0);
}

#[test]
fn clones_are_dealt_out_over_directories() {
    let directories = |text: &str| {
        let plan = plan(&format!("[a]\nsize=1m\nnumjobs=3\ndirectory=x:/y\n{text}\n"));
        plan.workload.filesets.iter().map(|fileset| fileset.directory.clone()).collect::<Vec<_>>()
    };
    assert_eq!(directories(""), ["x", "y", "x"]);
    assert_eq!(directories("filename=f"), ["x"]);
}

#[test]
fn without_a_size_it_is_that_of_what_is_there() {
    let there = |path: &str| match path {
        "d/one" | "d/two" => Some(1_000_000),
        "small" => Some(4096),
        _ => None,
    };
    let part = |text: &str| {
        let mut options = Options {
            placement: Placement::AsWritten,
            sections: &[],
            variable: &|_| None,
            size_of: &there,
            real: &|_| None,
            loader: &mut |_| Err(String::new()),
            seconds: None,
        };
        let plan = parse(&Source::new("load.fio", format!("[a]\nbs=4k\ndirectory=d\n{text}\n")), &mut options);
        plan.map(|plan| (plan.workload.phases[0].groups[0].stop.operations, plan.workload.filesets[0].size.clone()))
            .map_err(|wrong| wrong.to_string())
    };
    let all = Ok((Some(244), SizeDistribution::Fixed(244 * 4096)));
    assert_eq!(part("filename=one"), all);
    assert_eq!(part("filename=one\nsize=100%"), all);
    assert_eq!(part("filename=one\nsize=50%"), Ok((Some(122), SizeDistribution::Fixed(122 * 4096))));
    assert_eq!(part("filename=one\nsize=50%\noffset=800k"), Ok((Some(44), SizeDistribution::Fixed(244 * 4096))));
    assert_eq!(part("filename=one:two").map(|(operations, _)| operations), Ok(Some(488)));
    for (text, why) in [("filename=none", "no size"), ("size=50%", "not there"), ("filename=one:none", "no size")] {
        assert!(part(text).is_err_and(|told| told.contains(why)), "{text}");
    }
}

#[test]
fn directories_are_made_looked_at_and_removed() {
    for (engine, of, there) in [
        ("dircreate", Operation::Mkdir, 0.0),
        ("dirstat", Operation::StatDirectory, 1.0),
        ("dirdelete", Operation::Rmdir, 1.0),
    ] {
        let plan = plan(&format!("[a]\nioengine={engine}\nnrfiles=20\nfilesize=4k\nnumjobs=2\n"));
        let group = &plan.workload.phases[0].groups[1];
        assert_eq!((operation(&plan, 0, 1).0, group.stop.operations), (of, Some(20)));
        let fileset = &plan.workload.filesets[1];
        assert_eq!((&fileset.amount, fileset.leaf_directories), (&FileAmount::Files(0), 20));
        assert_eq!((fileset.naming.leaf_prefix.as_deref(), fileset.preallocated), (Some("a.1."), there), "{engine}");
    }
}

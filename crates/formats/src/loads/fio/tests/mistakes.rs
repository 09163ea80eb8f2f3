//! What is told of a job file that cannot be read.

use super::*;

#[test]
fn what_is_wrong_is_shown() {
    let told = problems(include_str!("../../../../../../fuzz/corpus/fio/wrong"));
    for part in
        ["load.fio:2:4", "load.fio:3:1", "did you mean `blocksize`", "`a` waits for itself", "`rdma` is not supported"]
    {
        assert!(told.contains(part), "{part} in {told}");
    }
    for (text, message) in [
        ("", "there is no job"),
        ("size=1m\n[a]\n", "a setting outside any section"),
        ("[a]\nrw=read\n", "`a` has no size"),
        ("[a]\nsize=1m\nwait_for=b\n", "no job before it has that name"),
        ("[a]\nsize=1m\nrw=rw\nrate=1m,\nrate_iops=,10\n", "rate beside rate_iops"),
        ("[a]\nsize=50%\n", "a share of files that are not there"),
        ("[a]\nsize=1m\nfilename=/dev/sda\n", "is a device"),
        ("[a]\nfilename=/dev/sda\n", "is a device"),
        ("[a]\nsize=1m\nioengine=falloc\n", "falloc with reads"),
        ("[a]\nrw=randwrite\nfill_device=1\n", "fill_device without a size"),
        ("[a]\nsize=1m\nrw=rw\nloops=2\nunlink_each_loop=1\n", "unlink_each_loop with other"),
        ("[a]\nsize=1m\nrw=write\nfilename=x\nloops=2\nunlink_each_loop=1\n", "named one by one"),
        ("[a]\nsize=1m\nallow_file_create=0\n", "1: files are made"),
        ("[a]\nsize=1m\nfilename=../x\n", "not a name for a file"),
        ("[a]\nsize=1k\nbs=4k\n", "cannot hold a block"),
        ("include itself.fio\n[a]\nsize=1m\n", "`itself.fio` includes itself\n --> itself.fio:1:1"),
        ("include\n[a]\nsize=1m\n", "an include without a file\n --> load.fio:1:1"),
        ("[a]\nsize=1m\ninclude=common.fio\n", "an include without a file\n --> load.fio:3:1"),
        ("[a]\nsize=1m\n  include none.fio\n", "`none.fio` cannot be read: there is no such file\n --> load.fio:3:3"),
        ("[b]\nsize=1m\nwait_for=a\n[a]\nsize=1m\n", "`b` waits for `a`, which stands below it\n --> load.fio:3:10"),
        ("[a]\nsize=1m\nxyzzyplugh=1\n", "unknown option `xyzzyplugh`\n --> load.fio:3:1"),
        ("[a]\nsize=${NONE}\n", "`${NONE}` is not set"),
        ("[a]\nsize=(4k*3\n", "a `(` is not closed"),
        ("[a]\nsize=4k*\n", "a number is missing at its end"),
        ("[a]\nsize=4kk\n", "`kk` is not a unit"),
        ("[a]\nsize=4k)\n", "`)` means nothing behind"),
        ("[a]\nsize=1m\nbs=4k/0\n", "it divides by zero"),
        ("[a]\nsize=1m\niodepth=x\n", "`x` stands where a number should"),
        ("[a]\nsize=2-3\n", "a result below zero; a range of blocks is bsrange="),
        ("[a]\nsize=-3\n", "it is below zero"),
        ("[a]\nsize=1m\nzonemode=zbd\n", "none or strided: zbd"),
        ("[a]\nsize=1m\nrw=randread\nzonemode=strided\nzonesize=64k\n", "at random places"),
        ("[a]\nsize=1m\nzonemode=strided\nzonesize=6k\n", "parts of blocks"),
        ("[a]\nread_iolog=x\nwrite_lat_log=y\n", "not supported with read_iolog\n --> load.fio:3:1"),
        ("[a]\nread_iolog=x\nioengine=libaio\n", "by ioengine=psync\n --> load.fio:3:1"),
        ("[a]\nsize=1m\nrw=write\nverify_only\n", "verify_only of a job that does not"),
        ("[a]\nsize=1m\nrw=write\nverify=md5\nverify_only\nio_size=64k\n", "verify_only of a job that does not"),
        ("[a]\nsize=1m\nrw=randwrite:4\nverify=md5\nverify_only\n", "verify_only of a job that does not"),
        (
            "[a]\nsize=1m\nrw=randwrite\npercentage_random=50\nverify=md5\nverify_only\n",
            "verify_only of a job that does not",
        ),
        ("[a]\nsize=1m\nrw=write\nverify=md5\nverify_only\ndo_verify=0\n", "which reads nothing"),
        ("[a]\nsize=1m\nignore_error=EFOO\n", "not a value for `ignore_error`"),
        ("[a]\nsize=1m\nrw=write\n[b]\nsize=1m\nrw=write\ndedupe_percentage=50\n", "write different data"),
        ("[a]\nsize=1m\nioengine=null\n[b]\nsize=1m\n", "beside jobs of other engines"),
        ("[a]\nsize=1m\nnumjobs=4000\n[b]\nsize=1m\n", "at most 4000"),
        ("[a]\nsize=1m\nrw=read:-x\n", "not a value for `rw`"),
        ("[a]\nsize=1m\nrw=randread:0\n", "not a value for `rw`"),
        ("[a]\nsize=1m\nbuffer_pattern='file'\n", "not a value for `buffer_pattern`"),
    ] {
        let told = problems(text);
        assert!(told.contains(message), "{text}: {told}");
        assert!(told.contains("help") || told.contains("expected"), "{text} has no cure: {told}");
    }
}

#[test]
fn a_variable_without_a_value_is_told() {
    let plan = plan("[a]\nsize=1m\nfilename=x${NONE}\n");
    let told = plan.warnings.expect("a warning").to_string();
    for part in ["`filename` has a variable without a value\n --> load.fio:3:10", "set NONE in the environment"] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn files_that_include_each_other_are_told_which() {
    let told = problems("include one.fio\n");
    assert!(told.contains("`one.fio` includes itself, by way of `two.fio`\n --> two.fio:3:1"), "{told}");
}

#[test]
fn who_waits_for_a_name_that_is_mistyped_is_told_the_right_one() {
    let told = problems("[prepare]\nsize=1m\n[b]\nsize=1m\nwait_for=prepaer\n");
    for part in ["no job before it has that name\n --> load.fio:5:10", "did you mean `prepare`?"] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn names_that_clash_are_found_among_thousands() {
    let many: String = (0..1_500).map(|job| format!("[job{job}.x]\n")).collect();
    let clash = "[one]\nnrfiles=2\nsize=8k\nfilename_format=n$filenum\n[other]\nfilename=n1\n";
    let told = problems(&format!("[global]\nsize=4k\n{many}{clash}"));
    assert!(told.contains("files of `n` and of `n1` can have the same names"), "{told}");
}

#[test]
fn flags_of_transfers_are_done_or_refused() {
    let io = |text: &str| plan(&format!("[a]\nrw=randwrite\nsize=1m\n{text}\n")).workload.io;
    assert!(io("hipri\ndirect=1").polled && io("hipri_percentage=100\ndirect=1").polled && !io("hipri=0").polled);
    assert!(io("uncached=1").uncached && io("nowait=1\nioengine=io_uring").no_wait);
    let atomic = io("atomic=1\nioengine=libaio\niodepth=8");
    assert!(atomic.atomic && atomic.direct);
    for (job, why) in [
        ("hipri\ndirect=1\nioengine=libaio", "does not poll"),
        ("hipri", "add direct = true"),
        ("uncached=1\nioengine=mmap", "takes no such flag"),
        ("nowait=1\nioengine=mmap", "takes no such flag"),
        ("direct=1\nioengine=mmap", "page cache"),
        ("atomic=1\nbs=6k", "power of two"),
        ("hipri_percentage=50", "100, or 0"),
        ("rw=randwrite:4\nrandom_distribution=zipf:1.1", "leave out the number behind rw="),
    ] {
        let refused = problems(&format!("[a]\nrw=randwrite\nsize=1m\n{job}\n"));
        assert!(refused.contains(why), "{job}: {refused}");
    }
}

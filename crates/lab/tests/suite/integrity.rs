//! A byte that changes below a mounted filesystem is found.

use crate::{
    load::{load, small_files},
    support::{
        Memory, assert_clean, cell, finds_image, may_use_devices, options, plan, scratch_directory, shell, step,
    },
};
use fstone_lab::{
    events::Silent,
    run::carry_out::{RunEnd, carry_out},
};
use fstone_model::{
    Outcome, Workload,
    study::StepAction,
    workload::{
        Action, Actions, Amount, Existing, Extent, FileChoice, Operation, Pattern, SizeDistribution, Transfer, Weighted,
    },
};
use std::sync::atomic::AtomicBool;

const FILES: u64 = 20;

fn reads() -> Workload {
    let mut reads = small_files(FILES, None);
    reads.data.stamped = true;
    reads.filesets[0].amount = Amount::Files(FILES);
    reads.filesets[0].size = SizeDistribution::Fixed(64 << 10);
    reads.filesets[0].existing = Existing::Reuse;
    let transfer = Transfer { block_bytes: 4096, extent: Extent::Whole, pattern: Pattern::FromStart, fsync: false };
    let read = Action { choice: FileChoice::RoundRobin, ..Action::new("read", Operation::Read(transfer), None) };
    let phase = &mut reads.phases[0];
    phase.groups[0].threads = 1;
    phase.groups[0].actions = Actions::Mix(vec![Weighted { weight: 1, action: read }]);
    phase.stop.operations = Some(FILES);
    reads
}

#[test]
fn a_flipped_byte_under_a_mounted_filesystem_is_found_with_file_and_offset() {
    if !may_use_devices(&["mkfs.ext4", "blkid", "filefrag", "losetup"]) {
        return;
    }
    let work = scratch_directory();
    let mut again = load(reads());
    again.name = "read again".into();
    // A byte of a file, on the device and so in the image; the file is one extent.
    let flip = "set -e; f=$(find . -type f | grep -v lost+found | sort | sed -n 7p)
        first=$(filefrag -b512 -v $f | awk '/^ *0:/ { print $4 + 0 }')
        FIND
        at=$((first * 512 + 4 * 4096 + 1234))
        byte=$(dd if=$image bs=1 skip=$at count=1 2>/dev/null | od -An -tu1 | tr -d ' ')
        printf \"\\\\$(printf %o $((byte ^ 1)))\" | dd of=$image bs=1 seek=$at conv=notrunc 2>/dev/null
        echo $f";
    let flip = &flip.replace("FIND", &finds_image());
    let drop_caches = || step("drop-caches", StepAction::DropCaches);
    let mut second = drop_caches();
    second.name = "drop-caches 2".into();
    let steps = |flip: &str| {
        vec![
            load(reads()),
            step("sync", StepAction::Sync),
            drop_caches(),
            shell("flip", flip),
            second.clone(),
            again.clone(),
        ]
    };
    let cells = vec![cell("ext4", "", "", steps(flip)), cell("ext4", "", "", steps("true"))];
    let mut memory = Memory::default();
    let end = carry_out(&plan(cells, 1), &options(work.path()), &[], &mut memory, &Silent, &AtomicBool::new(false));
    assert_eq!(end.expect("carried out"), RunEnd::Completed);
    memory.trials.sort_by_key(|trial| trial.id);
    let (flipped, sound) = (&memory.trials[0], &memory.trials[1]);
    let Outcome::Failed(reason) = &flipped.outcome else { panic!("{:#?}", flipped.outcome) };
    let name = flipped.steps[5].commands[0].output_tail.trim().trim_start_matches("./");
    assert_eq!(reason.step, "read again");
    let expected = format!(
        "read: verify {name} at byte {}: corruption: the data read is not the data written",
        4 * 4096 + 1234 / 512 * 512
    );
    assert_eq!(reason.words, expected, "{:#?}", flipped.steps[5]);
    assert_eq!(sound.outcome, Outcome::Completed);
    let report = sound.steps[7].load.as_ref().expect("a load");
    assert_eq!(report.audit.verified_bytes, FILES * (64 << 10), "all of it was looked at");
    assert_clean(work.path());
}

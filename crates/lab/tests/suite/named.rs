//! Named block devices: what is refused, what a run does to one, and what it leaves. Loop devices stand in for disks.

use crate::support::{Memory, assert_clean, cell, command, may_use_devices, options, plan, scratch_directory, step};
use fstone_files::Exchangeable;
use fstone_lab::{
    command::{CommandLine, CommandRunner, SystemRunner},
    events::Silent,
    machine::Machine,
    place::{
        device::{Devices, FileId, KernelDevices, LoopHandle, LoopSettings, Purpose, Refusal, ScratchDevice},
        undo::clean,
    },
    run::carry_out::{LabError, RunEnd, carry_out},
    stop::Stop,
};
use fstone_model::{
    Plan,
    result::CommandRecord,
    study::{DeviceSpec, FsckMode, StepAction},
};
use std::{
    fs::{self, OpenOptions},
    os::unix::fs::{MetadataExt, OpenOptionsExt, chown, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

const TOOLS: &[&str] = &["mkfs.ext4", "e2fsck", "dumpe2fs", "blkid", "mkswap", "losetup"];

/// A loop device that stands in for a disk; detached in the end.
struct Disk {
    path: PathBuf,
    image: PathBuf,
    handle: Option<LoopHandle>,
}

impl Disk {
    fn new(directory: &Path, size_bytes: u64) -> Self {
        let image = directory.join(format!("disk-{}", fs::read_dir(directory).expect("listed").count()));
        let file = fs::File::create_new(&image).expect("image");
        file.set_len(size_bytes).expect("sized");
        let settings = LoopSettings { sector_bytes: 512, direct_io: false };
        loop {
            let index = KernelDevices.free_loop().expect("a free loop device");
            match KernelDevices.attach_loop(index, &file, settings) {
                Ok(handle) => {
                    return Self { path: format!("/dev/loop{index}").into(), image, handle: Some(handle) };
                }
                Err(error) if error.raw_os_error() == Some(16) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn with_losetup(image: &Path, flag: &str) -> Self {
        let output = tool(&["losetup", "-f", "--show", flag, image.to_str().expect("plain")]);
        Self { path: output.trim().into(), image: image.to_owned(), handle: None }
    }

    fn name(&self) -> &str {
        self.path.to_str().expect("plain path")
    }

    fn index(&self) -> u32 {
        self.name().trim_start_matches("/dev/loop").parse().expect("a loop device")
    }

    fn number(&self) -> (u32, u32) {
        KernelDevices.facts(&self.path).expect("told").number
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.handle.take().is_none() {
            tool(&["losetup", "-d", self.name()]);
        }
        fs::remove_file(&self.image).expect("removed");
    }
}

fn runner() -> SystemRunner {
    SystemRunner::new(Arc::new(Stop::default()))
}

#[track_caller]
fn tool(argv: &[&str]) -> String {
    let command = CommandLine::new(argv[0], argv[1..].iter().copied());
    let output = runner().run(&command, Duration::from_secs(60)).expect("runs");
    assert_eq!(output.status, 0, "{}: {}{}", command.typed(), output.stdout, output.stderr);
    output.stdout
}

fn claim_at(path: &Path, needed_bytes: u64) -> Result<ScratchDevice, Refusal> {
    let purpose = Purpose::Named { allowed: vec![path.to_owned()] };
    ScratchDevice::claim(path, purpose, needed_bytes, &KernelDevices, &runner())
}

fn claim(path: &Path) -> Result<ScratchDevice, Refusal> {
    claim_at(path, 0)
}

#[test]
fn a_blank_disk_may_be_claimed_when_it_was_named() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let directory = scratch_directory();
    let disk = Disk::new(directory.path(), 16 << 20);
    let claimed = claim(&disk.path).expect("blank and unused");
    assert_eq!((claimed.path(), claimed.size_bytes()), (disk.path.as_path(), 16 << 20));
    assert_eq!(claimed.recheck(&KernelDevices), Ok(()));
    let nobody = Purpose::Named { allowed: Vec::new() };
    let refused = ScratchDevice::claim(&disk.path, nobody, 0, &KernelDevices, &runner());
    let words = refused.expect_err("not named").to_string();
    assert!(words.contains(&format!("--allow-destroy {}", disk.name())), "{words}");
    assert!(matches!(claim_at(&disk.path, 32 << 20), Err(Refusal::TooSmall { .. })));
}

#[test]
fn what_is_no_block_device_is_refused() {
    let directory = scratch_directory();
    let file = directory.path().join("file");
    fs::write(&file, "data").expect("written");
    assert!(matches!(claim(&file), Err(Refusal::NotBlock(_))));
    assert!(matches!(claim(directory.path()), Err(Refusal::NotBlock(_))));
    assert!(matches!(claim(Path::new("/dev/null")), Err(Refusal::NotBlock(_))));
    assert!(matches!(claim(&directory.path().join("nothing")), Err(Refusal::Missing(_))));
    let dangling = directory.path().join("dangling");
    symlink("nowhere", &dangling).expect("linked");
    assert!(matches!(claim(&dangling), Err(Refusal::Missing(_))));
    assert_eq!(fs::read(&file).expect("still there"), b"data");
}

#[test]
fn the_systems_own_disk_is_refused_even_when_named() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let mounts = fs::read_to_string("/proc/self/mounts").expect("mount table");
    let source = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (source, target) = (words.next()?, words.next()?);
        (target == "/" && source.starts_with("/dev/")).then_some(source)
    });
    let Some(source) = source else {
        eprintln!("skipped: / is on no block device that can be named");
        return;
    };
    // Claiming only looks; nothing is written whatever it says.
    let refused = claim(Path::new(source)).expect_err("the system is on it");
    assert!(
        matches!(refused, Refusal::Mounted { .. } | Refusal::Partitioned { .. } | Refusal::Missing(_)),
        "{refused}"
    );
}

#[test]
fn signatures_are_refused() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let directory = scratch_directory();
    for (argv, signature) in [
        (&["mkfs.ext4", "-q", "-F", "-L", "home"][..], "ext4 labelled \"home\""),
        (&["mkfs.xfs", "-q", "-f"], "xfs"),
        (&["mkfs.btrfs", "-q", "-f"], "btrfs"),
        (&["mkswap"], "swap"),
        (&["mkfs.vfat", "-I"], "vfat"),
    ] {
        if runner().find(argv[0]).is_none() {
            eprintln!("skipped: {} is not installed", argv[0]);
            continue;
        }
        let disk = Disk::new(directory.path(), 320 << 20);
        let argv: Vec<&str> = argv.iter().copied().chain([disk.name()]).collect();
        tool(&argv);
        match claim(&disk.path) {
            Err(Refusal::ForeignSignature { signature: found, .. }) => assert_eq!(found, signature),
            other => panic!("{signature}: {other:?}"),
        }
    }
    // Magics that need no tool: LUKS at the start; an MBR.
    let mbr = {
        let mut sector = vec![0; 512];
        sector[446..462].copy_from_slice(&[0, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0]);
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        sector
    };
    let luks = [b"LUKS\xba\xbe\x00\x01".to_vec(), vec![0; 1024]].concat();
    for (content, signature) in [(mbr, "a partition table (dos)"), (luks, "crypto_LUKS")] {
        let disk = Disk::new(directory.path(), 16 << 20);
        fs::write(&disk.path, content).expect("written");
        match claim(&disk.path) {
            Err(Refusal::ForeignSignature { signature: found, .. }) => assert_eq!(found, signature),
            other => panic!("{signature}: {other:?}"),
        }
    }
}

#[test]
fn a_disk_with_partitions_is_refused() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let directory = scratch_directory();
    let image = directory.path().join("partitioned");
    let mut content = vec![0; 512];
    content[446..462].copy_from_slice(&[0, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0]);
    content[510..].copy_from_slice(&[0x55, 0xaa]);
    fs::write(&image, content).expect("written");
    OpenOptions::new().write(true).open(&image).expect("opens").set_len(16 << 20).expect("sized");
    let disk = Disk::with_losetup(&image, "-P");
    match claim(&disk.path) {
        Err(Refusal::Partitioned { partitions, .. }) => assert_eq!(partitions.len(), 1),
        Err(Refusal::ForeignSignature { .. }) => eprintln!("skipped: this kernel scans no partitions on loop devices"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_read_only_disk_is_refused() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let directory = scratch_directory();
    let image = directory.path().join("read-only");
    fs::File::create(&image).expect("image").set_len(16 << 20).expect("sized");
    let disk = Disk::with_losetup(&image, "-r");
    assert!(matches!(claim(&disk.path), Err(Refusal::ReadOnly(_))));
}

#[test]
fn what_is_in_use_is_refused() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let directory = scratch_directory();
    let mount_point = directory.path().join("m");
    fs::create_dir(&mount_point).expect("made");

    // Mounted here.
    let disk = Disk::new(directory.path(), 16 << 20);
    tool(&["mkfs.ext4", "-q", "-F", disk.name()]);
    tool(&["mount", disk.name(), mount_point.to_str().expect("plain")]);
    assert!(matches!(claim(&disk.path), Err(Refusal::Mounted { at, .. }) if at == mount_point));
    tool(&["umount", mount_point.to_str().expect("plain")]);

    // Mounted in another mount namespace only.
    let script = format!("mount {} {} && echo ready && exec sleep 1000", disk.name(), mount_point.display());
    let mut elsewhere = Started::new("unshare", &["-m", "--propagation", "private", "sh", "-c", &script]);
    elsewhere.wait_until_ready();
    assert!(!fs::read_to_string("/proc/self/mounts").expect("mount table").contains(disk.name()));
    assert!(matches!(claim(&disk.path), Err(Refusal::Mounted { .. })));
    drop(elsewhere);
    wait_until_unused(&disk.path);

    // Opened exclusively, as md, dm and the like do.
    let disk = Disk::new(directory.path(), 16 << 20);
    let held = OpenOptions::new().read(true).custom_flags(libc_o_excl()).open(&disk.path).expect("exclusive");
    assert!(matches!(claim(&disk.path), Err(Refusal::InUse { .. })));
    drop(held);
    assert!(claim(&disk.path).is_ok());

    // The kernel lets go of it in a moment, as of what a killed run had mounted.
    let held = OpenOptions::new().read(true).custom_flags(libc_o_excl()).open(&disk.path).expect("exclusive");
    let letting_go = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        drop(held);
    });
    assert!(claim(&disk.path).is_ok(), "it is waited for");
    letting_go.join().expect("it lets go");

    // Swapped to.
    tool(&["mkswap", disk.name()]);
    let on = Command::new("swapon").arg(&disk.path).stderr(Stdio::null()).status().expect("swapon runs");
    if on.success() {
        let refused = claim(&disk.path);
        tool(&["swapoff", disk.name()]);
        assert!(matches!(refused, Err(Refusal::Swap(_))), "{refused:?}");
    } else {
        eprintln!("skipped: this machine does not swap to loop devices");
    }
}

const fn libc_o_excl() -> i32 {
    0o200
}

struct Started(Child);

impl Started {
    fn new(program: &str, args: &[&str]) -> Self {
        Self(Command::new(program).args(args).stdout(Stdio::piped()).spawn().expect("starts"))
    }

    fn wait_until_ready(&mut self) {
        use std::io::{BufRead, BufReader};
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().expect("piped")).read_line(&mut line).expect("says something");
        assert_eq!(line, "ready\n");
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("reaped");
    }
}

#[track_caller]
fn wait_until_unused(path: &Path) {
    for _ in 0..500 {
        if OpenOptions::new().read(true).custom_flags(libc_o_excl()).open(path).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{} is still in use", path.display());
}

#[test]
fn a_link_that_is_turned_is_noticed() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let directory = scratch_directory();
    let (first, second) = (Disk::new(directory.path(), 16 << 20), Disk::new(directory.path(), 16 << 20));
    let link = directory.path().join("link");
    symlink(&first.path, &link).expect("linked");
    let claimed = claim(&link).expect("leads to a blank disk");
    // What was claimed is the device; where the link leads later is of no account.
    assert_eq!(claimed.path(), first.path);
    fs::remove_file(&link).expect("removed");
    symlink(&second.path, &link).expect("linked");
    assert_eq!(claimed.path(), first.path);
    assert_eq!(claimed.recheck(&KernelDevices), Ok(()));
    fs::remove_file(&link).expect("removed");
}

/// Below a directory of somebody else's a path can lead elsewhere from one moment to the next.
#[test]
fn a_node_that_others_can_replace_is_refused() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let directory = scratch_directory();
    let disk = Disk::new(directory.path(), 16 << 20);
    let theirs = directory.path().join("theirs");
    fs::create_dir(&theirs).expect("made");
    let node = theirs.join("disk");
    let (major, minor) = disk.number();
    tool(&["mknod", node.to_str().expect("plain"), "b", &major.to_string(), &minor.to_string()]);
    assert!(claim(&node).is_ok(), "as long as it is root's");
    chown(&theirs, Some(65534), None).expect("given away");
    match claim(&node) {
        Err(Refusal::Exchangeable { part, .. }) => assert_eq!(part, Exchangeable::Owned(theirs, 65534)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_loop_device_of_another_image_is_left_alone() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let directory = scratch_directory();
    let disk = Disk::new(directory.path(), 16 << 20);
    let theirs = KernelDevices.loop_backing(disk.index()).expect("told").expect("attached");
    let ours = FileId { inode: theirs.inode + 1, ..theirs };
    KernelDevices.forget_loop_size(disk.index(), ours).expect("nothing to do");
    assert_eq!(KernelDevices.loop_backing(disk.index()).expect("told"), Some(theirs));

    // A device that changed its number between the look at it and the lock on it is not locked.
    let number = (disk.number().0, disk.number().1 + 1);
    assert!(matches!(KernelDevices.lock(&disk.path, number), Err(Refusal::Changed(_))));
}

#[test]
fn an_image_that_is_given_up_does_not_grow_again() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let directory = scratch_directory();
    let disk = Disk::new(directory.path(), 256 << 20);
    let mount_point = directory.path().join("m");
    fs::create_dir(&mount_point).expect("made");
    tool(&["mkfs.ext4", "-q", "-F", disk.name()]);
    tool(&["mount", disk.name(), mount_point.to_str().expect("plain")]);
    fs::write(mount_point.join("dirty"), vec![1; 64 << 20]).expect("written");
    let file = OpenOptions::new().write(true).open(&disk.image).expect("opens");
    file.set_len(0).expect("emptied");
    let image = KernelDevices.loop_backing(disk.index()).expect("told").expect("attached");
    KernelDevices.forget_loop_size(disk.index(), image).expect("shrunk");
    // The kernel may have written some of it back in between, and requests that it began before go on.
    let requests = format!("/sys/block/loop{}/inflight", disk.index());
    while fs::read_to_string(&requests).expect("read").split_whitespace().any(|count| count != "0") {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    file.set_len(0).expect("emptied again");
    tool(&["umount", mount_point.to_str().expect("plain")]);
    let allocated = fs::metadata(&disk.image).expect("told").blocks() * 512;
    assert!(allocated < 1 << 20, "{allocated} bytes were written behind the image's end");
}

fn named_plan(disk: &Disk, repeats: u32) -> Plan {
    let steps =
        vec![command("touch", &["touch", "{mount}/a"]), step("fsck", StepAction::Fsck { mode: FsckMode::ReadOnly })];
    let mut cell = cell("ext4", "", "", steps);
    cell.device = DeviceSpec::Block { path: disk.name().into() };
    plan(vec![cell], repeats)
}

#[test]
fn a_run_uses_a_named_disk_and_leaves_it_blank() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let (directory, work) = (scratch_directory(), scratch_directory());
    let disk = Disk::new(directory.path(), 64 << 20);
    let plan = named_plan(&disk, 2);
    let mut options = options(work.path());
    let cancel = AtomicBool::new(false);
    let refused = carry_out(&plan, &options, &[], &mut Memory::default(), &Silent, &cancel);
    assert!(matches!(&refused, Err(LabError::Device(refusal)) if matches!(**refusal, Refusal::NotAllowed { .. })));
    assert_clean(work.path());

    options.allow_destroy = vec![disk.path.clone()];
    let mut memory = Memory::default();
    let end = carry_out(&plan, &options, &[], &mut memory, &Silent, &cancel).expect("carried out");
    assert_eq!(end, RunEnd::Completed);
    assert_eq!(memory.trials.len(), 2);
    assert!(memory.trials.iter().all(|trial| trial.outcome.is_completed()), "{:?}", memory.trials);
    assert!(claim(&disk.path).is_ok(), "nothing is left on it");
    assert_clean(work.path());
}

/// What a user's disk holds between two trials is not of the next one's making: a drive that is full is slower.
#[test]
fn a_named_disk_starts_every_trial_with_its_blocks_given_back() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let (directory, work) = (scratch_directory(), scratch_directory());
    let disk = Disk::new(directory.path(), 64 << 20);
    // Nothing that blkid knows, and mkfs would leave it there.
    fs::write(&disk.image, vec![0x55; 64 << 20]).expect("written");
    let mut plan = named_plan(&disk, 1);
    plan.cells[0].filesystem.mkfs = vec!["-E".into(), "nodiscard".into()];
    let mut options = options(work.path());
    options.allow_destroy = vec![disk.path.clone()];
    let mut memory = Memory::default();
    carry_out(&plan, &options, &[], &mut memory, &Silent, &AtomicBool::new(false)).expect("carried out");
    assert!(memory.trials[0].outcome.is_completed(), "{:?}", memory.trials);
    let commands: Vec<&CommandRecord> = memory.trials[0].steps.iter().flat_map(|step| &step.commands).collect();
    let discard = commands.iter().find(|command| command.argv[0] == "blkdiscard").expect("recorded");
    assert_eq!((discard.argv[1].as_str(), discard.output_tail.as_str()), (disk.name(), ""));
    let allocated = fs::metadata(&disk.image).expect("told").blocks() * 512;
    assert!(allocated < 48 << 20, "{allocated} of 64 MiB are still there");
    assert_clean(work.path());
}

#[test]
fn a_second_run_on_a_named_disk_is_refused_with_the_holder_named() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let (directory, work) = (scratch_directory(), scratch_directory());
    let disk = Disk::new(directory.path(), 64 << 20);
    let lock = KernelDevices.lock(&disk.path, disk.number()).expect("free");
    let mut options = options(work.path());
    options.allow_destroy = vec![disk.path.clone()];
    let refused =
        carry_out(&named_plan(&disk, 1), &options, &[], &mut Memory::default(), &Silent, &AtomicBool::new(false));
    let words = refused.expect_err("locked").to_string();
    assert!(words.contains(&format!("in use by process {}", std::process::id())), "{words}");
    drop(lock);
    assert_clean(work.path());
}

#[test]
fn a_clean_erases_its_own_filesystem_and_no_other() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let (directory, work) = (scratch_directory(), scratch_directory());
    let disk = Disk::new(directory.path(), 64 << 20);
    let machine = Machine::host();
    let number = disk.number();
    let work_directory = work.path().join("work");
    let leave_behind = |uuid: &str| {
        fs::create_dir_all(&work_directory).expect("made");
        let entry = format!(
            "{{\"made\":{{\"id\":0,\"entry\":{{\"scratch\":{{\"path\":\"{}\",\"device\":[{},{}],\"uuid\":\"{uuid}\"}}}}}}}}\n",
            disk.name(),
            number.0,
            number.1
        );
        fs::write(work_directory.join("fstone.journal"), entry).expect("written");
    };
    let uuid = "11111111-2222-3333-4444-555555555555";
    tool(&["mkfs.ext4", "-q", "-F", "-U", uuid, disk.name()]);

    leave_behind("99999999-2222-3333-4444-555555555555");
    let left = clean(&work_directory, false, &[], &machine).expect("cleans");
    assert!(left[0].error.as_ref().is_some_and(|error| error.contains("left alone")), "{left:?}");
    assert!(matches!(claim(&disk.path), Err(Refusal::ForeignSignature { .. })), "somebody else's stays");

    // A disk that is away for the moment is not forgotten.
    leave_behind(uuid);
    let journal = work_directory.join("fstone.journal");
    let here = fs::read_to_string(&journal).expect("readable");
    fs::write(&journal, here.replace(disk.name(), "/dev/fstone-no-such-disk")).expect("written");
    for _ in 0..2 {
        let left = clean(&work_directory, false, &[], &machine).expect("cleans");
        assert!(
            left.len() == 1 && left[0].error.as_ref().is_some_and(|error| error.contains("not attached now")),
            "{left:?}"
        );
    }

    // Another number under the same name: the disk, its copy, or another one.
    let renumber = || {
        let here = fs::read_to_string(&journal).expect("readable");
        let other = format!("[{},{}]", number.0, number.1 + 1000);
        fs::write(&journal, here.replace(&format!("[{},{}]", number.0, number.1), &other)).expect("written");
    };
    leave_behind("99999999-2222-3333-4444-555555555555");
    renumber();
    let left = clean(&work_directory, false, &[], &machine).expect("cleans");
    assert!(left[0].error.as_ref().is_some_and(|error| error.contains("another device has its name now")), "{left:?}");

    leave_behind(uuid);
    renumber();
    let left = clean(&work_directory, false, &[], &machine).expect("cleans");
    let cure = format!("wipefs -a {}", disk.name());
    assert!(left[0].error.as_ref().is_some_and(|error| error.contains(&cure)), "{left:?}");
    assert!(matches!(claim(&disk.path), Err(Refusal::ForeignSignature { .. })), "a copy has the same UUID");

    leave_behind(uuid);
    let left = clean(&work_directory, true, &[], &machine).expect("lists");
    assert!(left.len() == 1 && left[0].error.is_none(), "{left:?}");
    assert!(matches!(claim(&disk.path), Err(Refusal::ForeignSignature { .. })), "a dry run changes nothing");
    for may_lose in [vec![], vec![work_directory.clone()]] {
        let left = clean(&work_directory, false, &may_lose, &machine).expect("cleans");
        let cure = format!("fstone clean --allow-destroy-data {}", disk.name());
        assert!(left[0].error.as_ref().is_some_and(|error| error.contains(&cure)), "{left:?}");
        assert!(matches!(claim(&disk.path), Err(Refusal::ForeignSignature { .. })), "it may hold other data by now");
    }
    // What was made before it goes all the same.
    let (tree, here) = (work_directory.join("fstone-load-1"), fs::read_to_string(&journal).expect("readable"));
    fs::create_dir(&tree).expect("made");
    let before = format!("{{\"made\":{{\"id\":7,\"entry\":{{\"tree\":{{\"path\":\"{}\"}}}}}}}}\n", tree.display());
    fs::write(&journal, before + &here).expect("written");
    let left = clean(&work_directory, false, &[], &machine).expect("cleans");
    assert!(left.len() == 2 && left[0].error.is_some() && left[1].error.is_none() && !tree.exists(), "{left:?}");
    let left = clean(&work_directory, false, std::slice::from_ref(&disk.path), &machine).expect("cleans");
    assert!(left.len() == 1 && left[0].error.is_none(), "{left:?}");
    assert!(claim(&disk.path).is_ok(), "ours is gone");

    // Killed before mkfs wrote its superblock.
    leave_behind(uuid);
    for dry_run in [true, false] {
        let left = clean(&work_directory, dry_run, &[], &machine).expect("cleans");
        assert!(left.is_empty(), "nothing is there to be undone: {left:?}");
    }
    fs::remove_dir(&work_directory).expect("nothing is left in it");
}

/// What is mounted between the last look at a device and mkfs is not formatted: mkfs opens the device exclusively, or the
/// lab does for it.
#[test]
fn no_mkfs_writes_to_a_device_that_is_held() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let directory = scratch_directory();
    for filesystem in fstone_lab::filesystem::all() {
        if filesystem.unusable().is_some() || !filesystem.facts().mkfs_is_exclusive {
            continue;
        }
        let disk = Disk::new(directory.path(), filesystem.facts().minimum_bytes.max(64 << 20));
        // To be told it of a device in use takes ten seconds.
        let number = disk.number();
        let _held = KernelDevices.hold(&disk.path, number).expect("free");
        assert!(matches!(KernelDevices.hold(&disk.path, number), Err(Refusal::InUse { .. })));
        let command = filesystem.mkfs(&[], disk.name()).in_directory(directory.path());
        match runner().run(&command, Duration::from_secs(60)) {
            Ok(output) => assert_ne!(output.status, 0, "{}", command.typed()),
            Err(error) => {
                eprintln!("skipped: {error}");
                continue;
            }
        }
        let written = fs::metadata(&disk.image).expect("there").blocks();
        assert_eq!(written, 0, "{} wrote to it", command.typed());
    }
}

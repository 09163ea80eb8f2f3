//! What `clean` recognises as its own, and what it leaves alone though the journal's words fit it.

use crate::support::{may_use_devices, scratch_directory};
use fstone_files::FileIdentity;
use fstone_lab::{
    machine::Machine,
    place::{
        device::{Devices, KernelDevices, LoopSettings},
        undo::{CleanError, Entry, JournalError, clean},
    },
};
use std::{
    fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
};

fn killed_run(directory: &Path, entries: &[Entry]) -> PathBuf {
    let work = directory.join("work");
    fs::create_dir_all(&work).expect("made");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux");
    let mut journal = serde_json::json!({ "boot": { "id": boot.trim() } }).to_string() + "\n";
    for (id, entry) in entries.iter().enumerate() {
        journal += &(serde_json::json!({ "made": { "id": id, "entry": entry } }).to_string() + "\n");
    }
    fs::write(work.join("fstone.journal"), journal).expect("written");
    work
}

fn identity(path: &Path) -> FileIdentity {
    FileIdentity::of(&fs::symlink_metadata(path).expect("there"))
}

fn cleaned(work: &Path) -> Vec<String> {
    let left = clean(work, false, &[], &Machine::host()).expect("cleans");
    assert!(left.iter().all(|leftover| leftover.error.is_none()), "{left:?}");
    left.into_iter().map(|leftover| leftover.what).collect()
}

#[test]
fn a_file_that_took_an_images_name_is_not_removed() {
    let directory = scratch_directory();
    let image = directory.path().join("work/fstone-scratch.img");
    let id = FileIdentity { device: (0, 0), inode: 1, made_unix_ns: None };
    let work = killed_run(directory.path(), &[Entry::Image { path: image.clone(), id: Some(id) }]);
    fs::write(&image, "precious").expect("written");
    assert_eq!(cleaned(&work), [""; 0]);
    // Nor one that has content, when the run was killed before it made its own.
    let work = killed_run(directory.path(), &[Entry::Image { path: image.clone(), id: None }]);
    assert_eq!(cleaned(&work), [""; 0]);
    assert_eq!(fs::read(&image).expect("still there"), b"precious");
    let work = killed_run(directory.path(), &[Entry::Image { path: image.clone(), id: Some(identity(&image)) }]);
    assert_eq!(cleaned(&work).len(), 1);
    assert!(!image.exists());
    // Killed right after it was made.
    let work = killed_run(directory.path(), &[Entry::Image { path: image.clone(), id: None }]);
    fs::File::create(&image).expect("made");
    assert_eq!(cleaned(&work).len(), 1);
    assert!(!image.exists());
}

#[test]
fn a_directory_that_took_a_trees_name_is_not_removed() {
    let directory = scratch_directory();
    let tree = directory.path().join("fstone-load-1");
    fs::create_dir(&tree).expect("made");
    fs::write(tree.join("precious"), "data").expect("written");
    let other = FileIdentity { device: (0, 0), inode: 1, made_unix_ns: None };
    for id in [None, Some(other)] {
        let work = killed_run(directory.path(), &[Entry::Tree { path: tree.clone(), id, hung: None }]);
        assert_eq!(cleaned(&work), [""; 0]);
        assert!(tree.join("precious").exists());
    }
    let work =
        killed_run(directory.path(), &[Entry::Tree { path: tree.clone(), id: Some(identity(&tree)), hung: None }]);
    assert_eq!(cleaned(&work).len(), 1);
    assert!(!tree.exists());
}

#[test]
fn a_users_own_directory_of_a_guests_name_stays() {
    let directory = scratch_directory();
    let guest = directory.path().join("work/guest");
    let program = PathBuf::from("/bin/true");
    let killed =
        |id| killed_run(directory.path(), &[Entry::Guest { path: guest.clone(), id, program: program.clone() }]);
    let work = killed(None);
    fs::create_dir(&guest).expect("made");
    let before = identity(&guest);
    fs::remove_dir(&guest).expect("empty");
    fs::create_dir(&guest).expect("made");
    fs::write(guest.join("precious"), "data").expect("written");
    // A journal of an earlier version has no identity either.
    let journal = work.join("fstone.journal");
    let earlier = fs::read_to_string(&journal).expect("read").replace("\"id\":null,", "");
    fs::write(&journal, earlier).expect("written");
    for id in [None, Some(before)] {
        assert_eq!(cleaned(&work), [""; 0]);
        assert_eq!(fs::read(guest.join("precious")).expect("still there"), b"data");
        killed(id);
    }
    assert_eq!(cleaned(&work), [""; 0]);
    assert!(guest.join("precious").exists());
    killed(Some(identity(&guest)));
    assert_eq!(cleaned(&work).len(), 1);
    assert!(!guest.exists());
}

#[test]
fn loop_devices_and_settings_of_others_are_left_alone() {
    if !may_use_devices(&["losetup"]) {
        return;
    }
    let directory = scratch_directory();
    let image = directory.path().join("theirs.img");
    let file = fs::File::create_new(&image).expect("made");
    file.set_len(16 << 20).expect("sized");
    let (index, handle) = loop {
        let index = KernelDevices.free_loop().expect("a free loop device");
        let settings = LoopSettings { sector_bytes: 512, direct_io: false };
        if let Ok(handle) = KernelDevices.attach_loop(index, &file, settings) {
            break (index, handle);
        }
    };
    let theirs = KernelDevices.loop_backing(index).expect("told").expect("attached");
    let number = KernelDevices.facts(Path::new(&format!("/dev/loop{index}"))).expect("told").number;
    let name = || "read_ahead_kb".to_owned();
    KernelDevices.set_queue_setting(number, "read_ahead_kb", "1024").expect("set");

    // The run had set 512, and since then somebody set 1024.
    let setting = Entry::QueueSetting { device: number, name: name(), before: "128".into(), after: Some("512".into()) };
    let work = killed_run(directory.path(), &[setting]);
    assert_eq!(cleaned(&work), [""; 0]);
    assert_eq!(KernelDevices.loop_backing(index).expect("told"), Some(theirs));
    assert_eq!(KernelDevices.queue_setting(number, "read_ahead_kb").expect("told"), "1024");

    let setting =
        Entry::QueueSetting { device: number, name: name(), before: "128".into(), after: Some("1024".into()) };
    let work = killed_run(directory.path(), &[setting]);
    assert_eq!(cleaned(&work).len(), 1);
    assert_eq!(KernelDevices.queue_setting(number, "read_ahead_kb").expect("told"), "128");
    // It goes by itself when nobody has it open any more.
    drop(handle);
    for _ in 0..500 {
        if KernelDevices.loop_backing(index).expect("told") != Some(theirs) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("/dev/loop{index} is still attached");
}

#[test]
fn mounts_of_others_are_left_alone() {
    if !may_use_devices(&["losetup"]) {
        return;
    }
    let directory = scratch_directory();
    let target = directory.path().join("work/mnt");
    fs::create_dir_all(&target).expect("made");
    let work = killed_run(directory.path(), &[]);
    assert!(Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&target).status().expect("starts").success());
    let left = clean(&work, false, &[], &Machine::host());
    let mounted = fs::read_to_string("/proc/self/mounts").expect("readable").contains(target.to_str().expect("plain"));
    assert!(Command::new("umount").arg(&target).status().expect("starts").success());
    assert!(mounted, "it was unmounted: {left:?}");
    assert_eq!(cleaned(&work), [""; 0]);
}

#[test]
fn a_journal_of_another_user_is_not_followed() {
    if !may_use_devices(&[]) {
        return;
    }
    let directory = scratch_directory();
    let precious = directory.path().join("work/fstone-scratch.img");
    let work = killed_run(directory.path(), &[Entry::Image { path: precious.clone(), id: None }]);
    fs::File::create(&precious).expect("made");
    let journal = work.join("fstone.journal");
    chown(&journal, Some(65534), None).expect("given away");
    let refused = clean(&work, false, &[], &Machine::host());
    assert!(matches!(refused, Err(CleanError::Journal(JournalError::Untrusted(_)))), "{refused:?}");
    chown(&journal, Some(0), None).expect("taken back");
    // Nor one in a directory that another user owns, where he could put another in its place.
    chown(&work, Some(65534), None).expect("given away");
    let refused = clean(&work, false, &[], &Machine::host());
    assert!(matches!(refused, Err(CleanError::WorkDirectory(_))), "{refused:?}");
    assert!(precious.exists());
}

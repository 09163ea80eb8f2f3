//! Healthy guests.

use crate::support::{AMPLE, Turn, agent, done, run, skip};
use fstone_sandbox::Confinement;
use fstone_sandbox::guest::{Ending, Event, JobEnd};
use fstone_sandbox::uml::UmlDisk;
use fstone_sandbox::vhost::DiskSpec;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

#[test]
fn says_hello_works_and_powers_off() {
    let Some(turn) = Turn::new() else { return };
    let mut guest = turn.boot();
    let hello = guest.hello().clone();
    assert!(hello.filesystems.iter().any(|name| name == "ext4"), "{hello:?}");
    assert!(hello.memory_bytes > 200 << 20 && hello.memory_bytes < 256 << 20, "{hello:?}");
    assert_eq!(hello.complaints, [] as [String; 0]);
    assert!(hello.booted_ns > 0 && guest.boot_time() > Duration::ZERO);

    let megabyte = "fstone ".repeat(150_000);
    assert_eq!(done(&mut guest, "echo", &megabyte), megabyte);
    let mut events = Vec::new();
    let reported = guest.run("report", &[], AMPLE, &mut |event| events.push(event));
    assert_eq!(reported, JobEnd::Done(Vec::new()));
    let expected = [Event::Progress("half way".into()), Event::Log("one".into()), Event::Log("two".into())];
    assert_eq!(events, expected);
    assert!(matches!(run(&mut guest, "nonsense", ""), JobEnd::Failed(why) if why.contains("no such job")));

    // The host's files are there, and safe.
    std::fs::write(turn.path("a-file"), "of the host").unwrap();
    let path = turn.path("a-file").display().to_string();
    assert_eq!(done(&mut guest, "read-file", &path), "of the host");
    assert!(matches!(run(&mut guest, "write-file", &path), JobEnd::Failed(why) if why.contains("Read-only")));

    done(&mut guest, "sleep", "1100");
    let report = guest.finish();
    assert_eq!(report.ending, Ending::Bye, "{:?}", report.console);
    assert!(report.clock.beats >= 3 && report.clock.span_guest > Duration::from_millis(500), "{:?}", report.clock);
    assert_eq!(turn.processes(), [] as [i32; 0]);
}

#[test]
fn a_panicking_handler_fails_its_job_only() {
    let Some(turn) = Turn::new() else { return };
    let mut guest = turn.boot();
    assert!(matches!(run(&mut guest, "handler-panic", ""), JobEnd::Failed(why) if why.contains("as asked")));
    assert_eq!(done(&mut guest, "echo", "still here"), "still here");
    assert_eq!(guest.finish().ending, Ending::Bye);
}

#[test]
fn dropping_a_guest_leaves_nothing() {
    let Some(turn) = Turn::new() else { return };
    let guest = turn.boot();
    assert!(!turn.processes().is_empty());
    drop(guest);
    assert_eq!(turn.processes(), [] as [i32; 0]);
}

/// The whole way, from boot to power-off, without any right: as nobody when the tests run as root.
#[test]
fn an_ordinary_user_needs_nothing_else() {
    let Some(turn) = Turn::new() else { return };
    if !rustix_is_root() {
        let mut guest = turn.boot();
        assert_eq!(done(&mut guest, "echo", "me"), "me");
        assert_eq!(guest.finish().ending, Ending::Bye);
        return;
    }
    std::fs::set_permissions(turn.directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let nobody = 65534;
    for arguments in [["boot", "1"], ["disk", "ext4"]] {
        let output = Command::new(agent())
            .args(arguments)
            .env("TMPDIR", turn.directory.path())
            .current_dir("/")
            .uid(nobody)
            .gid(nobody)
            .output();
        let output = match output {
            Err(error) => return skip(&format!("nobody cannot execute {}: {error}", agent().display())),
            Ok(output) => output,
        };
        let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.contains("Bye"), "{text}\n{errors}");
    }
}

fn rustix_is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

#[test]
fn every_fsync_reaches_a_vhost_disk_and_the_filesystem_is_whole() {
    let Some(turn) = Turn::new() else { return };
    let Some(image) = turn.image("ext4", 64) else { return };
    let (mut guest, disk) = turn.boot_with(&DiskSpec::new(&image), |_| ());
    assert_eq!(guest.hello().disks, [("vda".to_owned(), 64 << 20)]);
    done(&mut guest, "mount", "/dev/vda ext4");
    let before = disk.counters();
    done(&mut guest, "fsync-files", "20");
    let during = disk.counters().since(&before);
    // The journal's commit flushes before and after its commit block.
    assert!(during.flushes >= 20, "{during:?}");
    assert!(during.write_bytes >= 20 * 4096, "{during:?}");
    done(&mut guest, "unmount", "");
    assert_eq!(guest.finish().ending, Ending::Bye);
    let counters = disk.finish();
    assert_eq!((counters.host_errors, counters.guest_errors, counters.injected_errors), (0, 0, 0), "{counters:?}");
    let check = Command::new("/usr/sbin/e2fsck").args(["-f", "-n"]).arg(&image).output().unwrap();
    let text = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(check.status.success(), "{text}");
    assert!(text.contains("31/"), "20 files beside the 11 inodes of an empty filesystem: {text}");
}

#[test]
fn a_disk_outlives_its_guest() {
    let Some(turn) = Turn::new() else { return };
    let Some(image) = turn.image("ext4", 64) else { return };
    let (mut first, disk) = turn.boot_with(&DiskSpec::new(&image), |_| ());
    done(&mut first, "mount", "/dev/vda ext4");
    done(&mut first, "fsync-files", "3");
    assert!(matches!(first.kill().ending, Ending::Killed { signal: 9 }));
    let mut spec = turn.spec();
    spec.disks = vec![UmlDisk::VhostUser(disk.socket().to_owned())];
    let mut second = spec.boot().unwrap();
    done(&mut second, "mount", "/dev/vda ext4");
    assert_eq!(done(&mut second, "read-file", "/run/fstone/mount/file-2").len(), 4096);
    assert_eq!(second.finish().ending, Ending::Bye);
}

/// Tools of the host run in the guest, as its root and on its disk: the way out where a mkfs wants root on the host.
#[test]
fn a_mkfs_of_the_host_can_run_in_the_guest() {
    let Some(turn) = Turn::new() else { return };
    if !std::path::Path::new("/usr/sbin/mkfs.btrfs").exists() {
        return skip("mkfs.btrfs is not installed");
    }
    let image = turn.path("raw.img");
    File::create(&image).unwrap().set_len(128 << 20).unwrap();
    let (mut guest, disk) = turn.boot_with(&DiskSpec::new(&image), |_| ());
    done(&mut guest, "command", "/usr/sbin/mkfs.btrfs -q -f /dev/vda");
    done(&mut guest, "mount", "/dev/vda btrfs");
    done(&mut guest, "fsync-files", "3");
    assert_eq!(guest.finish().ending, Ending::Bye);
    assert!(disk.finish().flushes >= 3);
}

#[test]
fn the_built_in_disk_is_there_too() {
    let Some(turn) = Turn::new() else { return };
    let image = turn.path("ubd.img");
    File::create(&image).unwrap().set_len(8 << 20).unwrap();
    let mut spec = turn.spec();
    spec.disks = vec![UmlDisk::Ubd(image)];
    let guest = spec.boot().unwrap();
    assert_eq!(guest.hello().disks, [("ubda".to_owned(), 8 << 20)]);
    assert_eq!(guest.finish().ending, Ending::Bye);
}

#[test]
fn each_filesystem_takes_files() {
    for (kind, mebibytes) in [
        ("ext2", 64),
        ("ext3", 64),
        ("ext4", 64),
        ("xfs", 320),
        ("btrfs", 128),
        ("jfs", 64),
        ("reiserfs", 64),
        ("f2fs", 128),
        ("nilfs2", 320),
    ] {
        let Some(turn) = Turn::new() else { return };
        let Some(image) = turn.image(kind, mebibytes) else { continue };
        let (mut guest, disk) = turn.boot_with(&DiskSpec::new(&image), |_| ());
        if !guest.hello().filesystems.iter().any(|name| name == kind) {
            done(&mut guest, "module", kind);
        }
        done(&mut guest, "mount", &format!("/dev/vda {kind}"));
        let before = disk.counters();
        done(&mut guest, "fsync-files", "5");
        let during = disk.counters().since(&before);
        assert!(during.writes >= 5 && during.write_bytes >= 5 * 4096, "{kind}: {during:?}");
        eprintln!("{kind}: 5 fsyncs made {} writes and {} flushes", during.writes, during.flushes);
        done(&mut guest, "unmount", "");
        assert_eq!(guest.finish().ending, Ending::Bye, "{kind}");
        assert_eq!(disk.finish().guest_errors, 0, "{kind}");
    }
}

#[test]
fn confinement_is_a_namespace_where_the_host_allows_it() {
    let Some(turn) = Turn::new() else { return };
    let guest = turn.boot();
    let allowed = Command::new("unshare").args(["--user", "--mount", "--net", "--pid", "--fork", "true"]).output();
    match allowed {
        Ok(output) if output.status.success() => {
            assert_eq!((guest.confinement(), guest.not_enforced()), (Confinement::Apart, None));
        }
        _ => skip("this host refuses user namespaces"),
    }
}

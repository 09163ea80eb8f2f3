//! A block device that is named on the command line.

use super::{disk::Disk, may_use_devices};
use crate::support::{Bench, interrupt, wait_until};
use std::{
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt as _,
    process::{Command, Stdio},
};

/// The same command on a terminal, with somebody who types this; what is on the screen, and the exit status.
pub(super) fn on_a_terminal(bench: &Bench, arguments: &[&str], typed: &str) -> (String, i32) {
    let words: Vec<String> = bench.typed(arguments);
    let mut child = Command::new("script")
        .args(["-qec", &words.join(" "), "/dev/null"])
        .env("FSTONE_STORE", bench.store())
        .env("FSTONE_WORK_DIRECTORY", bench.work())
        .env("FSTONE_MACHINE_LOCK", bench.path("machine.lock"))
        .env_remove("SUDO_UID")
        .current_dir(bench.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script starts");
    child.stdin.take().expect("piped").write_all(typed.as_bytes()).expect("typed");
    let output = child.wait_with_output().expect("it ends");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code().unwrap_or(-1))
}

#[test]
fn a_disk_is_formatted_only_when_it_was_named_twice_and_its_number_typed_back() {
    if !may_use_devices() {
        return;
    }
    let bench = Bench::new();
    let disk = Disk::new(&bench);
    bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
    let named = ["run", "./tiny.toml", "--device", &disk.0];
    let allowed = [&named[..], &["--allow-destroy", &disk.0]].concat();

    // A script that does not name it twice, or names another.
    for arguments in [named.to_vec(), [&named[..], &["--allow-destroy", "/dev/loop-control"]].concat()] {
        let (code, _, err) = bench.run(&arguments);
        assert_eq!(code, 3, "{err}");
        assert!(err.contains(&format!("--allow-destroy {}", disk.0)), "{err}");
    }
    assert!(!bench.store().exists() && !bench.work().exists(), "nothing is begun");

    // A person who types something else, or nothing.
    for typed in ["yes\n", "\n"] {
        let (screen, code) = on_a_terminal(&bench, &allowed, typed);
        assert_eq!(code, 3, "{screen}");
        assert!(screen.contains("will be formatted") && screen.contains("no serial number"), "{screen}");
        assert!(screen.contains("was not touched"), "{screen}");
    }
    assert!(!bench.store().exists());
    let (screen, code) = on_a_terminal(&bench, &named, &format!("{}\n", disk.0));
    assert_eq!(code, 3, "the flag is needed on a terminal as well: {screen}");

    let (screen, code) = on_a_terminal(&bench, &allowed, &format!("{}\n", disk.0));
    assert_eq!(code, 0, "{screen}");
    // A script may go on without a question.
    bench.succeed(&allowed);
    let content = fs::read(bench.path("disk.img")).expect("readable");
    assert!(content.starts_with(b"fstone: only trials have left data"), "it is marked");
    assert!(content[512..1 << 20].iter().all(|byte| *byte == 0), "it is left blank");
    bench.assert_clean();

    // What is on it now is somebody's.
    assert!(Command::new("mkfs.ext4").args(["-q", "-L", "home", &disk.0]).status().expect("starts").success());
    let (code, _, err) = bench.run(&allowed);
    assert!(code == 3 && err.contains("holds ext4 labelled \"home\""), "{code}: {err}");
}

fn load_of_one_file(bench: &Bench, action: &str) {
    let text = format!(
        "name = \"raw\"\nio = {{ engine = \"io-uring\", direct = true, queue-depth = 4 }}\n[[fileset]]\nname = \"f\"\nfiles = 1\n\
         size = \"32 MiB\"\n[[phase]]\nname = \"p\"\nstop = {{ operations = 200 }}\n[[phase.group]]\nname = \"g\"\nthreads = 2\n\
         open = \"keep-open\"\n[[phase.group.mix]]\nread = {{ size = 4096, block = 4096, pattern = \"random\" }}\n\
         [[phase.group.mix]]\n{action}\n"
    );
    fs::write(bench.path("raw.toml"), text).expect("written");
}

#[test]
fn a_load_overwrites_a_device_only_when_it_was_named_twice_and_nobody_has_it() {
    if !may_use_devices() {
        return;
    }
    let bench = Bench::new();
    let disk = Disk::new(&bench);
    let write = "write = { size = 4096, block = 4096, pattern = \"random\" }";
    load_of_one_file(&bench, write);
    let image = || fs::read(bench.path("disk.img")).expect("readable");
    let is_blank = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    let named = ["load", "./raw.toml", "--device", &disk.0];
    let allowed = [&named[..], &["--allow-destroy", &disk.0]].concat();
    // A load leaves data that no signature accounts for.
    let again = [&allowed[..], &["--allow-destroy-data", &disk.0]].concat();

    for arguments in [named.to_vec(), [&named[..], &["--allow-destroy", "/dev/loop-control"]].concat()] {
        let (code, _, err) = bench.run(&arguments);
        assert!(code == 3 && err.contains(&format!("--allow-destroy {}", disk.0)), "{code}: {err}");
    }
    for (action, words) in
        [("unlink = {}", "which a device cannot do"), ("append = { size = 512, block = 512 }", "cannot do")]
    {
        load_of_one_file(&bench, action);
        let (code, _, err) = bench.run(&allowed);
        assert!(code == 2 && err.contains(words), "{code}: {err}");
    }
    let (code, _, err) = bench.run(&["load", "./raw.toml", "--device", "/dev/null", "--allow-destroy", "/dev/null"]);
    assert!(code == 3 && err.contains("not a block device"), "{code}: {err}");
    assert!(is_blank(&image()), "nothing was written");

    load_of_one_file(&bench, write);
    bench.succeed(&allowed);
    let written = image();
    assert!(!is_blank(&written[..32 << 20]));
    assert!(is_blank(&written[32 << 20..]), "the load's file is no larger than it says");
    assert!(std::path::Path::new(&disk.0).exists(), "the node stays");
    for engine in ["psync", "mmap", "libaio"] {
        let text = fs::read_to_string(bench.path("raw.toml")).expect("readable");
        let io = format!("io = {{ engine = \"{engine}\" }}");
        let other: Vec<&str> = text.lines().map(|line| if line.starts_with("io =") { &*io } else { line }).collect();
        fs::write(bench.path("raw.toml"), other.join("\n")).expect("written");
        bench.succeed(&again);
    }

    // What is on it now is somebody's, and mounted as well.
    assert!(Command::new("mkfs.ext4").args(["-qF", &disk.0]).status().expect("starts").success());
    let (code, _, err) = bench.run(&allowed);
    assert!(code == 3 && err.contains("holds ext4"), "{code}: {err}");
    let mounted = bench.path("mounted");
    fs::create_dir(&mounted).expect("made");
    assert!(Command::new("mount").arg(&disk.0).arg(&mounted).status().expect("starts").success());
    let (code, _, err) = bench.run(&allowed);
    assert!(Command::new("umount").arg(&mounted).status().expect("starts").success());
    assert!(code == 3 && err.contains("mounted on"), "{code}: {err}");
}

#[test]
fn fio_reads_a_disk_and_overwrites_only_one_that_was_named_twice() {
    if !may_use_devices() {
        return;
    }
    let bench = Bench::new();
    let disk = Disk::new(&bench);
    let image = || fs::read(bench.path("disk.img")).expect("readable");
    let job = |file: &str, rw: &str, more: &[&str]| {
        let (file, rw) = (format!("--filename={file}"), format!("--rw={rw}"));
        let usual = ["fio", "--name=a", &file, &rw, "--bs=64k", "--number_ios=40", "--output-format=json"];
        bench.run(&[&usual[..], more].concat())
    };
    let twice = ["--allow-destroy", &disk.0];
    let permitted = [&twice[..], &["--allow-destroy-data", &disk.0]].concat();
    let refused = |file: &str, rw: &str, more: &[&str], expected: i32, words: &str| {
        let (code, out, err) = job(file, rw, more);
        assert!(code == expected && err.contains(words), "{file} {rw} {more:?}: {code} {out}{err}");
    };
    let set = |how: &str| assert!(Command::new("blockdev").args([how, &disk.0]).status().expect("starts").success());

    // Nothing that reads opens it for writing, which the kernel refuses for a read-only device.
    set("--setro");
    for more in
        [&["--direct=1"][..], &["--ioengine=io_uring", "--readonly"], &["--ioengine=libaio"], &["--ioengine=mmap"]]
    {
        let (code, out, err) = job(&disk.0, "randread", &[more, &["--numjobs=2", "--invalidate=1"]].concat());
        assert!(code == 0 && out.contains("\"total_ios\": 40"), "{out}{err}");
    }
    refused(&disk.0, "randwrite", &permitted, 3, "read-only");
    set("--setrw");

    let number = disk.0.trim_start_matches("/dev/");
    // One that was not named.
    let other = if number == "loop0" { "loop1" } else { "loop0" };
    let cure = format!("--allow-destroy {}", disk.0);
    std::os::unix::fs::symlink(&disk.0, bench.path("link")).expect("a link");
    std::os::unix::fs::symlink("/dev", bench.path("devices")).expect("a link");
    let node = rustix::fs::stat(&disk.0).expect("a device").st_rdev;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        bench.path("node"),
        rustix::fs::FileType::BlockDevice,
        rustix::fs::Mode::RUSR,
        node,
    )
    .expect("a node");
    for rw in ["write", "randwrite", "randrw", "trim", "randtrim", "trimwrite"] {
        refused(&disk.0, rw, &[], 3, &cure);
        refused(&disk.0, rw, &["--allow-destroy", "/dev/loop-control"], 3, &cure);
        refused(&disk.0, rw, &[&twice[..], &["--readonly"]].concat(), 2, "--readonly");
        refused(&disk.0, rw, &[&twice[..], &["--size=65m"]].concat(), 3, "");
        refused(&disk.0, rw, &[&twice[..], &["--offset=60m", "--size=8m"]].concat(), 3, "");
        refused(&format!("/dev/./{number}"), rw, &[], 3, "--allow-destroy");
        let elsewhere = [format!("devices/{number}"), format!("/dev/../dev/{other}"), format!("../../dev/{other}")];
        for elsewhere in ["link", "node"].into_iter().chain(elsewhere.iter().map(String::as_str)) {
            let (code, out, err) = job(elsewhere, rw, &[&permitted[..], &["--size=1m"]].concat());
            assert!(code != 0, "{elsewhere}: {out}{err}");
        }
    }
    for more in ["--ioengine=falloc", "--unlink_each_loop=1", "--verify=md5", "--fill_device=1", "--overwrite=1"] {
        let (code, out, err) = job(&disk.0, "write", &[more]);
        assert!(code == 3 && err.contains(&cure) || code == 2, "{more}: {out}{err}");
    }
    let second = [&twice[..], &["--size=1m", "--name=b", "--size=1m", "--rw=write"]].concat();
    refused(&disk.0, "randwrite", &second, 2, "a device is one file");
    refused(&format!("{}:other", disk.0), "randread", &["--size=1m"], 2, "a device is one file");
    refused("/dev/null", "write", &["--size=1m", "--allow-destroy", "/dev/null"], 3, "not a block device");
    refused("/dev/fstone-none", "write", &["--size=1m", "--allow-destroy", "/dev/fstone-none"], 3, "");
    assert!(!std::path::Path::new("/dev/fstone-none").exists());
    let whose = fs::OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::EXCL.bits() as i32)
        .open(&disk.0)
        .expect("it is free");
    refused(&disk.0, "write", &permitted, 3, "in use");
    drop(whose);
    assert!(image().iter().all(|byte| *byte == 0), "nothing was written");
    let words = ["fio", "--name=a", "--rw=write", "--size=1m", &format!("--filename={}", disk.0)];
    let (screen, code) = on_a_terminal(&bench, &[&words[..], &twice].concat(), "yes\n");
    assert!(code == 3 && screen.contains("will be overwritten") && screen.contains("was not touched"), "{screen}");
    assert!(image().iter().all(|byte| *byte == 0), "nothing was written");

    let (code, out, err) =
        job(&disk.0, "randwrite", &[&twice[..], &["--direct=1", "--size=32m", "--unlink=1"]].concat());
    assert!(code == 0 && out.contains("\"total_ios\": 40"), "{out}{err}");
    let written = image();
    assert!(written[..32 << 20].iter().any(|byte| *byte != 0) && written[32 << 20..].iter().all(|byte| *byte == 0));
    assert!(std::path::Path::new(&disk.0).exists(), "the node stays");
    refused(&disk.0, "randwrite", &twice, 3, "--allow-destroy-data");
    let (code, out, err) = job(number, "write", &[&permitted[..], &["--directory=/dev", "--unlink=1"]].concat());
    assert!(code == 0 && std::path::Path::new(&disk.0).exists(), "{out}{err}");

    for (rw, counts) in [("trim", [40, 0]), ("trimwrite", [40, 40])] {
        let (code, out, err) = job(&disk.0, rw, &[&permitted[..], &["--size=16m"]].concat());
        assert_eq!(code, 0, "{out}{err}");
        let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        let count = |kind: &str| json["jobs"][0][kind]["total_ios"].as_u64().expect("a count");
        assert_eq!(["trim", "write"].map(count), counts, "{out}");
        let empty = image()[..40 * (64 << 10)].iter().all(|byte| *byte == 0);
        assert_eq!(empty, rw == "trim");
    }

    // What is somebody's and mounted can be read, and not written.
    assert!(Command::new("mkfs.ext4").args(["-qF", &disk.0]).status().expect("starts").success());
    refused(&disk.0, "write", &permitted, 3, "holds ext4");
    let mounted = bench.path("mounted");
    fs::create_dir(&mounted).expect("made");
    assert!(Command::new("mount").arg(&disk.0).arg(&mounted).status().expect("starts").success());
    let (written, read) = (job(&disk.0, "randwrite", &permitted), job(&disk.0, "randread", &[]));
    assert!(Command::new("umount").arg(&mounted).status().expect("starts").success());
    assert!(written.0 == 3 && written.2.contains("mounted on") && read.0 == 0, "{written:?} {read:?}");
    // A guest of another test that was started meanwhile has the mount in its own namespace, until it ends.
    wait_until("no mount", || !job(&disk.0, "write", &permitted).2.contains("mounted on"));
    refused(&disk.0, "write", &permitted, 3, "holds ext4");
}

#[test]
fn a_second_run_on_a_disk_or_a_work_directory_is_refused_with_the_holder_named() {
    if !may_use_devices() {
        return;
    }
    let bench = Bench::new();
    let disk = Disk::new(&bench);
    bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
    let arguments = ["run", "./tiny.toml", "--repeats", "200", "--device", &disk.0, "--allow-destroy", &disk.0];
    let first = bench.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let journal = bench.work().join("fstone.journal");
    wait_until("a journal", || journal.exists());
    let number = first.id();
    let holder = format!("process {number} on ");
    let (code, _, in_directory) = bench.run(&["run", "./tiny.toml"]);
    let cleaning = bench.run(&["clean"]);
    let elsewhere = bench.path("other");
    let mut second = arguments.to_vec();
    let elsewhere = elsewhere.display().to_string();
    second.extend(["--work-directory", &elsewhere]);
    let mut on_disk = Vec::new();
    for _ in 0..5 {
        on_disk.push(bench.run(&second));
    }
    interrupt(&first);
    first.wait_with_output().expect("it ends");
    assert_ne!(code, 0);
    assert!(in_directory.contains(&holder) && in_directory.contains("in use by"), "{in_directory}");
    assert!(cleaning.0 != 0 && cleaning.2.contains(&holder), "{cleaning:?}");
    for (code, out, err) in on_disk {
        assert_ne!(code, 0, "{out}{err}");
        // Whatever the first run is doing with it, also in the middle of its mkfs.
        assert!(err.contains(&format!("{}: in use by process {number} ", disk.0)), "{err}");
    }
    bench.assert_clean();
}

/// SQLite takes a device for an empty file and would write its first page over the superblock.
#[test]
fn a_store_that_is_a_disk_is_refused() {
    if !may_use_devices() {
        return;
    }
    let bench = Bench::new();
    let disk = Disk::new(&bench);
    let made = Command::new("mkfs.ext4").args(["-q", &disk.0]).status().expect("mkfs.ext4 starts");
    assert!(made.success());
    let before = fs::read(bench.path("disk.img")).expect("an image");
    for command in [["list"].as_slice(), &["report"], &["note", "1", "x"]] {
        let (status, _, err) = bench.run(&[&["--store", &disk.0], command].concat());
        assert!(
            status == 3 && err.contains("it is a disk, and its contents would be lost"),
            "{command:?}: {status} {err}"
        );
        let (status, _, err) = bench.run_with(command, &[("FSTONE_STORE", &disk.0)]);
        assert!(status == 3 && err.contains("it is a disk"), "{command:?}: {status} {err}");
    }
    assert!(fs::read(bench.path("disk.img")).expect("an image") == before, "nothing was written");
}

/// blkid knows no tar that was written to a disk without a filesystem.
#[test]
fn data_that_nothing_recognises_is_shown_and_goes_only_if_that_is_permitted() {
    if !may_use_devices() {
        return;
    }
    let bench = Bench::new();
    let disk = Disk::new(&bench);
    bench.write("precious.txt", &"precious\n".repeat(500_000));
    // Without tar's magic: the format of version 7.
    let tar = Command::new("tar")
        .args(["--format=v7", "-cf", &disk.0, "-C"])
        .arg(bench.path("."))
        .arg("precious.txt")
        .status();
    assert!(tar.expect("tar starts").success());
    let before = fs::read(bench.path("disk.img")).expect("an image");
    bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
    let named = ["run", "./tiny.toml", "--device", &disk.0, "--allow-destroy", &disk.0, "--repeats", "1"];
    let (code, _, err) = bench.run(&named);
    let told = "from byte 0 on it holds \"precious.txt....\", and ";
    assert!(
        code == 3 && err.contains(told) && err.contains(&format!("--allow-destroy-data {}", disk.0)),
        "{code}: {err}"
    );
    let (screen, code) = on_a_terminal(&bench, &named, "no\n");
    assert!(code == 3 && screen.contains("It is not empty: from byte 0 on"), "{code}: {screen}");
    assert!(fs::read(bench.path("disk.img")).expect("an image") == before, "nothing was written");
    assert!(!bench.store().exists());
    let (code, _, err) = bench.run(&[&named[..], &["--allow-destroy-data", "/dev/loop-control"]].concat());
    assert!(code == 3, "{code}: {err}");
    bench.succeed(&[&named[..], &["--allow-destroy-data", &disk.0]].concat());
    // What trials left there needs no permission, but data of somebody who used the disk afterwards does.
    bench.succeed(&named);
    let raw = fs::OpenOptions::new().write(true).open(&disk.0).expect("a disk");
    let size = fs::metadata(bench.path("disk.img")).expect("an image").len();
    std::os::unix::fs::FileExt::write_all_at(&raw, &vec![b'x'; 4 << 20], size / 2).expect("written");
    raw.sync_all().expect("written");
    drop(raw);
    let (code, _, err) = bench.run(&named);
    assert!(code == 3 && err.contains("nothing recognises it"), "{code}: {err}");
    bench.succeed(&[&named[..], &["--allow-destroy-data", &disk.0]].concat());
}

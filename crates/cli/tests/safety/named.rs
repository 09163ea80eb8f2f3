//! A block device that is named on the command line.

use super::{disk::Disk, may_use_devices};
use crate::support::{Bench, interrupt};
use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
    time::Duration,
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
    for _ in 0..1000 {
        if journal.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
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

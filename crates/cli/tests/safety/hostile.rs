//! Files that mean harm: refused in clear words, and nothing of them reaches a terminal or a page.

use crate::support::{Bench, is_root};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Command,
};

fn has_escapes(text: &str) -> bool {
    text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
}

#[test]
fn a_file_of_ten_gigabytes_is_refused_by_its_size() {
    let bench = Bench::new();
    bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
    for (file, arguments) in [
        ("tiny.ffsb", &["run", "./tiny.toml"][..]),
        ("huge.ffsb", &["ffsb", "huge.ffsb"]),
        ("huge.ffsb", &["load", "huge.ffsb", "--directory", "."]),
        ("huge.toml", &["run", "./huge.toml"]),
    ] {
        let huge = fs::File::create(bench.path(file)).expect("made");
        huge.set_len(10 << 30).expect("sparse");
        let (code, _, err) = bench.run(arguments);
        assert!(code == 2 && err.contains("larger than 16 MiB"), "{arguments:?}: {code}: {err}");
    }
}

#[test]
fn escapes_in_names_do_not_reach_the_terminal() {
    let bench = Bench::new();
    bench.tiny_study("\"bad\\u001b[2J\" = { type = \"ext4\" }");
    let (code, out, err) = bench.run(&["run", "./tiny.toml"]);
    assert!(code == 2 && !has_escapes(&out) && !has_escapes(&err), "{code}: {out:?} {err:?}");
    for title in ["\"\\u001b]0;owned\\u0007\"", "\"\\u009b31m\""] {
        bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
        let study = fs::read_to_string(bench.path("tiny.toml")).expect("written").replace("\"Tiny\"", title);
        bench.write("tiny.toml", &study);
        for arguments in [&["run", "./tiny.toml", "--dry-run"][..], &["run", "./tiny.toml", "--device", "directory"]] {
            let (_, out, err) = bench.run(arguments);
            assert!(!has_escapes(&out) && !has_escapes(&err), "{title}: {out:?} {err:?}");
        }
    }
    // A file's own name, and a word on the command line.
    bench.write("x\u{1b}[2J.toml", "");
    for name in ["./x\u{1b}[2J.toml", "no\u{1b}[2Jsuch"] {
        let (code, out, err) = bench.run(&["run", name]);
        assert!(code == 2 && !has_escapes(&out) && !has_escapes(&err), "code {code}: {out:?} {err:?}");
    }
    // What a command prints.
    bench.write(
        "loud.toml",
        "title = \"Loud\"\nrepeats = 1\ndevice = { directory = \".\" }\nfactor.filesystem = { \"a\" = { type = \"ext4\" } }\n[[step]]\n\
         command = { shell = true, run = \"printf '\\\\033[2J\\\\233\\\\007words' >&2; exit 1\" }\nshow = \"time\"\n",
    );
    let (code, out, err) = bench.run(&["run", "./loud.toml"]);
    assert_eq!(code, 4, "{out}{err}");
    assert!(out.contains("words") && !has_escapes(&out) && !has_escapes(&err), "{out:?} {err:?}");
}

#[test]
fn markup_in_names_is_text_on_the_page() {
    let bench = Bench::new();
    bench.tiny_study("\"<script>alert(1)</script>\" = { type = \"ext4\" }\n\"</title><img src=x onerror=alert(2)>\" = { type = \"ext4\" }");
    bench.succeed(&["run", "./tiny.toml", "--device", "directory"]);
    let study = fs::read_to_string(bench.path("tiny.toml")).expect("written");
    bench.write("tiny.toml", &study.replace("\"Tiny\"", "\"</script><script>alert(3)</script>\""));
    bench.succeed(&["run", "./tiny.toml", "--device", "directory"]);
    for format in ["html", "markdown"] {
        let page = bench.succeed(&["report", "--format", format]);
        assert!(page.contains("alert(3)"), "{format}");
        for markup in ["<script>alert", "<img src=x"] {
            assert!(!page.contains(markup), "{format}: {markup}");
        }
    }
}

#[test]
fn a_study_reaches_no_file_but_those_beside_it() {
    let bench = Bench::new();
    for path in ["/etc/passwd", "../tiny.ffsb", "a/../../tiny.ffsb"] {
        bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
        let study = fs::read_to_string(bench.path("tiny.toml")).expect("written").replace("tiny.ffsb", path);
        bench.write("tiny.toml", &study);
        let (code, _, err) = bench.run(&["run", "./tiny.toml", "--dry-run"]);
        assert!(code == 2 && err.contains("tiny.toml:"), "{path}: {code}: {err}");
    }
    // Nor a device besides the scratch device: refused in every cell, before anything is made.
    for options in ["-J device=/dev/null", "-d name=/dev/null", "-E offset=0 /dev/null"] {
        bench.tiny_study(&format!("\"ext4\" = {{ type = \"ext4\", mkfs = \"{options}\" }}"));
        let (code, out, err) = bench.run(&["run", "./tiny.toml", "--dry-run"]);
        let said = format!("{out}{err}");
        assert!(code == 2 || said.contains("never lets be written") || said.contains("may not"), "{options}: {said}");
    }
}

#[test]
fn a_job_reaches_no_file_by_a_link_and_waits_for_no_pipe() {
    let bench = Bench::new();
    let other = tempfile::tempdir().expect("a directory");
    fs::write(other.path().join("secret"), "[secret]\n").expect("written");
    symlink(other.path().join("secret"), bench.path("link")).expect("linked");
    symlink(other.path(), bench.path("sub")).expect("linked");
    assert!(Command::new("mkfifo").arg(bench.path("pipe")).status().is_ok_and(|status| status.success()));
    for (name, why) in [("link", "a link out of"), ("sub/secret", "a link out of"), ("pipe", "it is no file")] {
        bench.write("job.fio", &format!("include {name}\n[job]\nsize=4k\n"));
        for arguments in [&["fio", "job.fio", "--parse-only"][..], &["convert", "job.fio"]] {
            let (code, _, err) = bench.run(arguments);
            assert!(code == 2 && err.contains(why), "{name}: {code}: {err}");
        }
    }
    // A path that the job gives itself is followed.
    for name in [other.path().join("secret").display().to_string(), "./more/../common".into()] {
        fs::create_dir_all(bench.path("more")).expect("made");
        bench.write("common", "[global]\nbs=4k\n");
        bench.write("job.fio", &format!("include {name}\n[job]\n"));
        let (code, _, err) = bench.run(&["fio", "job.fio", "--showcmd"]);
        assert_eq!(code, 0, "{name}: {err}");
    }
}

#[test]
fn no_option_of_a_study_runs_a_program() {
    let bench = Bench::new();
    for (kind, options) in [
        ("squashfs", "-p 'x f 644 0 0 id'"),
        ("squashfs", "-comp zstd -pf pseudo"),
        ("ext4", "-d tree"),
        ("btrfs", "--rootdir tree"),
        ("xfs", "-p prototype"),
        ("erofs", "--no-such-option=1"),
    ] {
        bench.tiny_study(&format!("\"fs\" = {{ type = \"{kind}\", mkfs = \"{options}\" }}"));
        let (code, _, err) = bench.run(&["run", "./tiny.toml", "--dry-run"]);
        assert!(code == 2 && err.contains("is not known to be a safe option"), "{options}: {code}: {err}");
    }
}

/// Others could put a link in place of a directory of the fileset, and the load's names would lead through it.
#[test]
fn root_makes_no_names_below_directories_that_others_can_exchange() {
    if !is_root() {
        eprintln!("skipped: it is about root");
        return;
    }
    let bench = Bench::new();
    let load = |directories: &str| {
        format!(
            "name = \"names\"\nfileset = [{{ name = \"files\", files = 4, size = \"4 KiB\"{directories} }}]\n[[phase]]\nname = \
             \"remove\"\nstop = {{ operations = 3 }}\n[[phase.group]]\nname = \"removers\"\nthreads = 1\nmix = [{{ unlink = {{}} }}]\n"
        )
    };
    bench.write("flat.toml", &load(""));
    bench.write("deep.toml", &load(", directories = 2"));
    let (open, inner) = (bench.path("open"), bench.path("shut/inner"));
    for path in [&open, &inner] {
        fs::create_dir_all(path).expect("made");
    }
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    for path in [&open, &inner] {
        mode(path, 0o777);
    }
    for (directory, part) in [("open", &open), ("shut", &inner)] {
        let (code, _, err) = bench.run(&["load", "deep.toml", "--directory", directory, "--overwrite"]);
        assert!(code == 3 && err.contains("fstone does not work there"), "{code}: {err}");
        assert!(err.contains(&*part.to_string_lossy()), "{err}");
        let left = fs::read_dir(bench.path(directory)).expect("readable").count();
        assert_eq!(left, usize::from(directory == "shut"), "nothing was made");
    }
    bench.succeed(&["load", "flat.toml", "--directory", "open"]);
    fs::remove_dir(&inner).expect("empty");
    bench.succeed(&["load", "deep.toml", "--directory", "shut"]);
}

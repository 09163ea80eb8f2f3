//! The documentation as its reader tries it: every example is run, and what comes of it is looked at.

mod agreement;
pub(crate) mod clusters;
mod install;
mod scripts;

use crate::support::{Bench, is_root, tool, trials};
use std::{fs, path::Path};

fn document(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name))
        .expect("it is part of the source")
}

fn examples(text: &str) -> Vec<&str> {
    text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().expect("split gives one")).collect()
}

/// A command of the README: the words that make it quick, and what it has to give.
struct Tried {
    command: &'static str,
    quickly: &'static [&'static str],
    status: &'static [i32],
    prints: &'static [&'static str],
    makes: Option<(&'static str, &'static str)>,
}

const HERE: &[&str] = &["--device", "directory", "--repeats", "2", "--duration", "300ms", "--set", "files=200"];

const README: [Tried; 11] = [
    Tried { command: "check", quickly: &[], status: &[0], prints: &["ext4", "Filesystems"], makes: None },
    Tried {
        command: "list studies",
        quickly: &[],
        status: &[0],
        prints: &["small-file", "large-file", "kernel-tree", "random-io", "many-files"],
        makes: None,
    },
    Tried {
        command: "run small-file --quick --dry-run",
        quickly: &["--device", "loop"],
        status: &[0],
        prints: &["14 cells, 8 trials each", "mkfs.ext3 -q -F -I 256", "mount -t xfs", "Order\n"],
        makes: None,
    },
    Tried {
        command: "run small-file --quick",
        quickly: HERE,
        status: &[0],
        prints: &["as it is", "transactions per second"],
        makes: Some(("data/reports/index.html", "Small files: random create, write and read")),
    },
    Tried {
        command: "report --format html --output small-file.html",
        quickly: &[],
        status: &[0],
        prints: &[],
        makes: Some(("small-file.html", "<title>")),
    },
    Tried {
        command: "run small-file --quick --budget 10min",
        quickly: &["--device", "loop", "--dry-run"],
        status: &[0],
        prints: &["trials for 10 min or until all pairs of rows are told apart"],
        makes: None,
    },
    Tried {
        command: "compare 1 2",
        quickly: &[],
        // A moment's few trials can show nothing.
        status: &[8],
        prints: &["transactions per second"],
        makes: None,
    },
    // A kernel takes minutes: what builds one, and what runs in it, has tests of its own where there is one.
    Tried {
        command: "kernel build",
        quickly: &["--help"],
        status: &[0],
        prints: &["Build a kernel whose time can be simulated"],
        makes: None,
    },
    Tried {
        command: "run small-file --quick --exact",
        quickly: &["--kernels", "none"],
        status: &[3],
        prints: &["there is no kernel whose time can be simulated", "fstone kernel build"],
        makes: None,
    },
    Tried {
        command: "publish site 1 2",
        quickly: &[],
        status: &[0],
        prints: &[],
        makes: Some(("site/index.html", "small-file")),
    },
    Tried {
        command: "export 2 mine.fstone",
        quickly: &[],
        status: &[0],
        prints: &[],
        makes: Some(("mine.fstone", "")),
    },
];

#[test]
fn every_command_of_the_readme_does_what_it_says() {
    let bench = Bench::new();
    assert_eq!(commands("README.md"), names(&README), "the README's commands and those that are tried here");
    for tried in &README {
        if tried.command == "compare 1 2" {
            // The README's second run has a budget of minutes: here it is another quick one.
            bench.succeed(&[&["run", "small-file", "--quick"], HERE].concat());
        }
        tried.go(&bench);
    }
    // What the last one's remark says of the file.
    assert!(bench.succeed(&["verify", "mine.fstone"]).contains("Every entry agrees with the manifest"));
    assert!(bench.succeed(&["import", "mine.fstone"]).contains("run 2, which the store already has"));
    assert!(bench.succeed(&["rerun", "mine.fstone", "--dry-run"]).contains("small-file"));
    bench.assert_clean();
}

fn commands(document_name: &str) -> Vec<String> {
    let text = document(document_name);
    let commands = text.lines().filter_map(|line| {
        let line = line.strip_prefix("    ")?;
        let line = line.strip_prefix("sudo ").unwrap_or(line);
        Some(line.strip_prefix("fstone ")?.split(" #").next().unwrap_or_default().trim().to_owned())
    });
    commands.collect()
}

fn names(tried: &[Tried]) -> Vec<&'static str> {
    tried.iter().map(|tried| tried.command).collect()
}

impl Tried {
    /// Types the command, whose words may be in quotes.
    fn go(&self, bench: &Bench) {
        let mut words: Vec<&str> = Vec::new();
        for (index, part) in self.command.split(['"', '\'']).enumerate() {
            if index % 2 == 1 { words.push(part) } else { words.extend(part.split_whitespace()) }
        }
        words.extend(self.quickly);
        let (code, out, err) = bench.run(&words);
        assert!(self.status.contains(&code), "{words:?}: {code}\n{out}{err}");
        for words in self.prints {
            assert!(out.contains(words) || err.contains(words), "{}: {words:?} in\n{out}{err}", self.command);
        }
        if let Some((path, content)) = self.makes {
            let made = fs::read(bench.path(path)).expect("it was made");
            assert!(String::from_utf8_lossy(&made).contains(content), "{path}");
        }
    }
}

const MAIL_HERE: &[&str] =
    &["--device", "directory", "--repeats", "2", "--duration", "300ms", "--set", "new.files=200"];
const PLANNED: &[&str] = &["--device", "loop", "--dry-run"];

const TUTORIAL: [Tried; 11] = [
    Tried { command: "check", quickly: &[], status: &[0], prints: &["Filesystems"], makes: None },
    Tried { command: "list studies", quickly: &[], status: &[0], prints: &["mail "], makes: None },
    Tried {
        command: "run mail --quick --dry-run",
        quickly: &["--device", "loop"],
        status: &[0],
        prints: &["7 cells, 8 trials each", "mkfs.xfs"],
        makes: None,
    },
    Tried {
        command: "run mail --quick --note \"first look\"",
        quickly: MAIL_HERE,
        status: &[0],
        prints: &["Note: first look", "deliver"],
        makes: None,
    },
    Tried {
        command: "report --format html --output mail.html",
        quickly: &[],
        status: &[0],
        prints: &[],
        makes: Some(("mail.html", "Note: first look")),
    },
    Tried {
        command: "run mail --quick --device loop --work-directory /srv/fstone --set deliver.threads=4 --set new.files=50000 --note \"on the RAID\"",
        quickly: &["--dry-run"],
        status: &[0],
        prints: &["7 cells, 8 trials each", "/srv/fstone"],
        makes: None,
    },
    Tried {
        command: "run mail --device /dev/sdX1 --allow-destroy /dev/sdX1",
        quickly: &["--dry-run"],
        status: &[0],
        prints: &["7 cells, 5 trials each", "mkfs.xfs", "/dev/sdX1"],
        makes: None,
    },
    Tried {
        command: "run mail --quick --budget 10min --resolution 10% --note \"until decided\"",
        quickly: PLANNED,
        status: &[0],
        prints: &["trials for 10 min or until all pairs of rows are told apart or closer than 10 %"],
        makes: None,
    },
    Tried {
        command: "compare 1 2",
        quickly: &[],
        status: &[8],
        prints: &["Before, run 1: first look", "deliver"],
        makes: None,
    },
    Tried {
        command: "export 1 mail.fstone",
        quickly: &[],
        status: &[0],
        prints: &[],
        makes: Some(("mail.fstone", "")),
    },
    Tried {
        command: "verify mail.fstone",
        quickly: &[],
        status: &[0],
        prints: &["Every entry agrees with the manifest"],
        makes: None,
    },
];

#[test]
fn every_command_of_the_tutorial_does_what_it_says() {
    let bench = Bench::new();
    assert_eq!(commands("docs/tutorial.md"), names(&TUTORIAL));
    for tried in &TUTORIAL {
        if tried.command == "compare 1 2" {
            bench.succeed(&[&["run", "mail", "--quick"], MAIL_HERE].concat());
        }
        tried.go(&bench);
    }
    assert!(bench.succeed(&["rerun", "mail.fstone", "--dry-run"]).contains("mail"));
    bench.assert_clean();
}

const CI: [Tried; 7] = [
    Tried {
        command: "run small-file --quick --note \"v1.0\"",
        quickly: HERE,
        status: &[0],
        prints: &["Note: v1.0"],
        makes: None,
    },
    Tried {
        command: "compare --save-baseline main 1",
        quickly: &[],
        status: &[0],
        prints: &["Run 1 is now the baseline main"],
        makes: None,
    },
    Tried {
        command: "run small-file --quick --note \"commit 4f3c2a1\"",
        quickly: HERE,
        status: &[0],
        prints: &["Note: commit 4f3c2a1"],
        makes: None,
    },
    Tried {
        command: "compare --baseline main --threshold 5%",
        quickly: &[],
        status: &[8],
        prints: &["Before, main (run 1): v1.0", "After, run 2: commit 4f3c2a1"],
        makes: None,
    },
    Tried {
        command: "compare --baseline main --format junit --output fstone.xml",
        quickly: &[],
        status: &[8],
        prints: &[],
        makes: Some(("fstone.xml", "<testsuites ")),
    },
    Tried {
        command: "compare --baseline main --format markdown --output comment.md",
        quickly: &[],
        status: &[8],
        prints: &[],
        makes: Some(("comment.md", "v1.0")),
    },
    Tried {
        command: "report --format html --output report.html",
        quickly: &[],
        status: &[0],
        prints: &[],
        makes: Some(("report.html", "commit 4f3c2a1")),
    },
];

#[test]
fn every_command_of_the_page_on_ci_does_what_it_says() {
    let bench = Bench::new();
    assert_eq!(commands("docs/ci.md"), names(&CI));
    for tried in &CI {
        tried.go(&bench);
    }
    bench.assert_clean();
}

const APPLICATIONS: [Tried; 7] = [
    Tried { command: "check", quickly: &[], status: &[0], prints: &["Filesystems"], makes: None },
    Tried {
        command: "run postgresql --quick --dry-run",
        quickly: &["--device", "loop"],
        status: &[0],
        prints: &[
            "3 cells, 6 trials each",
            "initdb -D",
            "pg_isready -q -h",
            "in the end runuser -u postgres -- pg_ctl",
            "prints transactions per second, latency average",
        ],
        makes: None,
    },
    Tried {
        command: "run postgresql --quick",
        quickly: &["--dry-run"],
        status: &[0],
        prints: &["mkfs.btrfs", "postgres -D"],
        makes: None,
    },
    Tried {
        command: "figures pgbench.txt --match '^tps = ([0-9.]+)'",
        quickly: &[],
        status: &[0],
        prints: &["613.5"],
        makes: None,
    },
    Tried {
        command: "figures pgbench.txt --match 'tps = ([0-9.+)'",
        quickly: &[],
        status: &[2],
        prints: &["unclosed character class\n  tps = ([0-9.+)\n         ^"],
        makes: None,
    },
    Tried {
        command: "run ./pgbench.toml",
        quickly: &["--dry-run"],
        status: &[0],
        prints: &["4 cells, 3 trials each", "ext4 · beside trim", "beside the next load or command: sh -c"],
        makes: None,
    },
    Tried {
        command: "report --by background",
        quickly: &[],
        status: &[0],
        prints: &["alone", "beside scan", "“beside scan” instead of alone", "scans"],
        makes: None,
    },
];

/// What the page's study would print of PostgreSQL, a script prints here.
const COPIES: &str = r#"
title = "Copies"
device = { directory = "." }
repeats = 2

[factor.filesystem]
"as it is" = { type = "ext4" }

[factor]
background = ["none", "scan"]

[[step]]
name = "scan"
background = true
command = { shell = true, run = "n=0; while :; do n=$((n+1)); echo scanned $n; sleep 0.02; done", figures = { "scans" = { match = 'scanned (.*)' } } }

[[step]]
name = "copy"
command = { shell = true, run = "sleep 0.2; echo copies per second: $$.5", figures = { "copies per second" = { match = 'second: ([0-9.]+)', unit = "/s" } } }
"#;

#[test]
fn every_command_of_the_page_on_applications_does_what_it_says() {
    let bench = Bench::new();
    let text = document("docs/applications.md");
    assert_eq!(commands("docs/applications.md"), names(&APPLICATIONS));
    fs::write(bench.path("pgbench.txt"), "latency average = 3.2 ms\ntps = 613.5 (without initial connection time)\n")
        .expect("written");
    fs::write(bench.path("pgbench.toml"), examples(&text)[0]).expect("written");
    fs::write(bench.path("copies.toml"), COPIES).expect("written");
    bench.succeed(&["run", "./copies.toml"]);
    for tried in &APPLICATIONS {
        tried.go(&bench);
    }
    // The page's own study, with shorter loads, where it can be run.
    bench.write("short.toml", &examples(&text)[0].replace("\"-T\", \"10\"", "\"-T\", \"1\""));
    let (code, out, err) =
        bench.run(&["run", "./short.toml", "--repeats", "2", "--device", "memory", "--only", "filesystem=ext4"]);
    match out.contains("skipped") {
        true => eprintln!("skipped: the page's study, which needs root and PostgreSQL: {out}"),
        false => {
            assert_eq!(code, 0, "{out}{err}");
            let figures = bench.succeed(&["report", "--format", "csv"]);
            for words in
                ["pgbench,transactions per second,", "pgbench,latency average,", "beside trim", "postgresql,time,"]
            {
                assert!(figures.contains(words), "{words:?} in\n{figures}");
            }
            assert!(bench.succeed(&["report", "--by", "background"]).contains("alone"));
        }
    }
    bench.assert_clean();
}

/// Lines of docs/record-replay.md, and what each has to say.
const RECORDINGS: [(&str, &str); 11] = [
    ("fstone record -o app.rec --under /srv/data -- ./app --its-options", "recorded "),
    ("fstone record show app.rec", "  open "),
    ("fstone replay app.rec --directory /mnt/xfs", "differences    0 calls"),
    ("fstone replay app.rec --directory /mnt/btrfs", "differences    0 calls"),
    ("tar -cf doc.tar -C /usr/share doc", ""),
    ("mkdir unpacked", ""),
    ("fstone record -o unpack.rec --under unpacked -- tar -xf doc.tar -C unpacked", "recorded "),
    ("fstone record show unpack.rec", "  mkdir "),
    ("sudo fstone run ./unpack.toml", "execution time"),
    ("strace -f -ttt -T -yy -o app.strace ./app", ""),
    ("fstone record import app.strace", "not known: "),
];

/// Word for word, but for where files are. Each block begins in a place of its own.
#[test]
fn every_line_of_the_page_on_recordings_does_what_it_says() {
    let text = document("docs/record-replay.md");
    let line = |line: &str| Some(line.strip_prefix("    ")?.split(" #").next()?.trim_end().to_owned());
    let known: Vec<&str> = RECORDINGS.iter().map(|(line, _)| *line).collect();
    assert_eq!(text.lines().filter_map(line).collect::<Vec<_>>(), known);
    let mut places: Vec<Bench> = Vec::new();
    for (line, says) in RECORDINGS {
        let begins = ["fstone record -o app.rec", "tar ", "strace "].iter().any(|word| line.starts_with(word));
        if begins {
            let bench = Bench::new();
            for directory in ["srv/data", "mnt/xfs", "mnt/btrfs", "usr/share/doc/some"] {
                fs::create_dir_all(bench.path(directory)).expect("ours");
            }
            std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin!("fstone"), bench.path("fstone")).expect("ours");
            bench.write("app", "#!/bin/sh\necho x > /srv/data/x && cat /srv/data/x");
            bench.write("usr/share/doc/some/copyright", "to copy");
            bench.write("unpack.toml", &examples(&text)[0].replace("4 GiB", "400 MiB"));
            places.push(bench);
        }
        let bench = places.last().expect("the first line begins a block");
        if line.starts_with("strace") && !tool("strace") {
            return eprintln!("skipped: strace is not installed");
        }
        let typed = match line.strip_prefix("sudo ") {
            Some(_) if !is_root() => {
                eprintln!("skipped: making filesystems needs root");
                continue;
            }
            Some(typed) => format!("{typed} --repeats 2"),
            None => line.to_owned(),
        };
        let here = |text: &str| {
            let place = bench.path("").display().to_string();
            ["/srv/", "/mnt/", "/usr/share"]
                .iter()
                .fold(text.to_owned(), |text, path| text.replace(path, &format!("{place}{path}")))
        };
        let app = fs::read_to_string(bench.path("app")).expect("it is there");
        if begins {
            bench.write("app", &here(&app));
        }
        let typed = format!("chmod +x app; PATH=$PWD:$PATH; {}", here(&typed));
        let output = bench.shell(&typed).output().expect("sh starts");
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
        assert!(output.status.success() && said.contains(says), "{line}: {said}");
    }
    places.iter().for_each(Bench::assert_clean);
}

#[test]
fn the_studies_of_the_documentation_are_planned_as_they_say() {
    let bench = Bench::new();
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    fs::copy(studies.join("small-file.ffsb"), bench.path("small-file.ffsb")).expect("copied");
    let text = document("docs/study-file.md");
    let plans: [(&[&str], &[&str]); 4] = [
        (
            &["9 cells, 3 to 10 trials each", "ext4 nodelalloc · 64 threads", "nodelalloc", "fsck", "32 GiB"],
            &["6 cells, 3 trials each", "xfs · 16 threads", "5 s", "4 GiB"],
        ),
        // Two sweeps of three, that have one cell in common.
        (
            &["5 cells, 3 trials each", "16 GiB in all · 128 files", "4 GiB in all · 1 file", "drop_caches", "24 GiB"],
            &["has no quick form"],
        ),
        (
            &["2 cells, 3 trials each", "scratch directory", "bindfs --multithreaded", "files/source"],
            &["has no quick form"],
        ),
        (&["2 cells, 3 trials each", "mkfs.btrfs", "tree.tar", "tar xf tree.tar"], &["2 cells", "source-v1-5000-1"]),
    ];
    let examples = examples(&text);
    assert_eq!(examples.len(), plans.len());
    for (example, (whole, quick)) in examples.iter().zip(plans) {
        bench.write("example.toml", example);
        for (words, form) in [(whole, None), (quick, Some("--quick"))] {
            let arguments = ["run", "./example.toml", "--dry-run", "--executor", "host"];
            let (_, out, err) = bench.run(&[&arguments[..], form.as_slice()].concat());
            for words in words {
                assert!(out.contains(words) || err.contains(words), "{words:?} in\n{out}{err}");
            }
        }
    }
}

/// The page's example is a part of a study.
#[test]
fn the_example_of_an_aged_filesystem_is_planned_as_it_says() {
    let bench = Bench::new();
    let page = document("docs/aging.md");
    let part = examples(&page).remove(0);
    let (head, step) = ("title = \"Aged\"\ndevice = { loop = { size = \"4 GiB\" } }", "[[step]]\nname = \"touch\"");
    let text = format!("{head}\n{part}\n{step}\ncommand = [\"touch\", \"x\"]\nshow = [\"time\"]\n");
    bench.write("example.toml", &text);
    let (_, out, err) = bench.run(&["run", "./example.toml", "--dry-run", "--executor", "host"]);
    for words in ["2 cells, 3 trials each", "age it by profile agrawal, 80 % in use, 10 overwrites"] {
        assert!(out.contains(words), "{words:?} in\n{out}{err}");
    }
    let in_place = [
        ("2 cells, 1 trial each", "tar xf /srv/tree.tar"),
        (", aged: desktop, 80 % in use, 2 overwrites", "by /mnt/big/fstone-aged, which stays"),
    ];
    for (example, words) in examples(&page)[1..].iter().zip(in_place) {
        bench.write("example.toml", example);
        let (_, out, err) = bench.run(&["run", "./example.toml", "--dry-run"]);
        assert!(out.contains(words.0) && out.contains(words.1), "{words:?} in\n{out}{err}");
    }
}

#[test]
fn the_study_for_kernel_developers_has_its_load_beside_it() {
    let bench = Bench::new();
    let page = document("docs/kernel-developers.md");
    let [study, load] = examples(&page)[..] else { panic!("a study and its load") };
    bench.write("fsync.toml", study);
    bench.write("fsync.workload", load);
    let plan = bench.succeed(&["run", "./fsync.toml", "--dry-run"]);
    assert!(plan.contains("1 cell, ") && plan.contains("mkfs.ext4"), "{plan}");
    let directory = bench.path("d");
    fs::create_dir(&directory).expect("made");
    let json = bench.succeed(&["load", "fsync.workload", "--directory", directory.to_str().expect("UTF-8"), "--json"]);
    let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(report["operations"][0]["invocations"], 500, "{json}");
    assert_eq!(report["group_fsyncs"][0]["periodic"], 500, "{json}");
}

/// The loads of the documentation, made small by the study that runs them; what was done is in the ratio that they ask for.
#[test]
fn the_loads_of_the_documentation_do_what_they_say() {
    let bench = Bench::new();
    let text = document("docs/workload-file.md");
    let examples = examples(&text);
    assert_eq!(examples.len(), 5);
    for (name, example) in ["mail", "delivery", "groups", "depth", "database"].into_iter().zip(examples) {
        bench.write(&format!("{name}.workload"), example);
    }
    bench.write(
        "both.toml",
        "title = \"Both\"\nrepeats = 1\ndevice = { directory = \".\" }\nfactor.filesystem = { \"ext4\" = { type = \"ext4\" } }\n\
         [[step]]\nname = \"mail\"\nload = { workload = \"mail.workload\", new.files = 200, new.directories = 4, duration = \"700 ms\" }\n\
         [[step]]\nname = \"delivery\"\nload = { workload = \"delivery.workload\", files = 100, duration = \"500 ms\" }\n\
         [[step]]\nname = \"database\"\nload = { workload = \"database.workload\", file-size = \"1 MiB\", duration = \"700 ms\" }\n\
         [[step]]\nname = \"depth\"\nload = { workload = \"depth.workload\", file-size = \"4 MiB\", duration = \"500 ms\" }\n\
         [[step]]\nname = \"groups\"\nload = { workload = \"groups.workload\", file-size = \"4 MiB\", duration = \"500 ms\" }\n",
    );
    bench.succeed(&["run", "./both.toml"]);
    let trial = trials(&bench.json()).remove(0);
    assert_eq!(trial["outcome"], "completed", "{trial}");
    let figures = trial["figures"].as_array().expect("figures");
    let rate = |step: &str, operation: &str| {
        let metric = format!("{operation} operations per second");
        let figure = figures.iter().find(|figure| figure["step"] == step && figure["metric"] == metric.as_str());
        figure.unwrap_or_else(|| panic!("{metric} of {step} in {trial}"))["value"].as_f64().expect("a number")
    };
    // Each mail is created in `tmp` and moved to `new`; nine reads to one stat, as the weights have it.
    let (created, moved) = (rate("mail", "create"), rate("mail", "move"));
    assert!(created > 0.0 && moved > 0.0 && moved <= created, "{created} {moved}");
    let ratio = rate("mail", "read") / rate("mail", "stat");
    assert!((4.0..20.0).contains(&ratio), "{ratio}");
    // A program's actions come one after the other.
    let (removed, synced) = (rate("delivery", "remove"), rate("delivery", "sync"));
    // At the end each of 16 threads may have removed a file whose successor it has not synced: 32 per second of half a second.
    assert!(synced > 0.0 && removed >= synced && removed <= synced * 1.3 + 32.0, "{removed} {synced}");
    assert!(rate("groups", "read") > 0.0 && rate("groups", "write") > 0.0);
    // The search for a depth is cut short, and what runs with the depth is measured.
    assert!(rate("depth", "read") > 0.0);
    // Three reads to one write.
    let ratio = rate("database", "read") / rate("database", "write");
    assert!((2.0..4.5).contains(&ratio), "{ratio}");
}

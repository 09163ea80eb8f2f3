//! Trials in guests, as an ordinary user meets them.

mod durability;
mod power;

use crate::support::{self, Bench, has_uml, is_root};
use std::path::Path;

fn study(bench: &Bench, filesystems: &str) {
    bench.tiny_study(filesystems);
    let text = std::fs::read_to_string(bench.path("tiny.toml")).expect("written").replace("64 MiB", "320 MiB");
    bench.write("tiny.toml", &text.replace("repeats = 2", "repeats = 1"));
}

/// Two runs, for two executors are never in one comparison.
#[test]
fn rows_that_the_running_kernel_lacks_get_a_table_from_guests() {
    if !is_root() {
        eprintln!("skipped: loop devices need root");
        return;
    }
    let bench = Bench::new();
    let checked = bench.succeed(&["check"]);
    let lacking = ["jfs", "reiserfs", "f2fs", "nilfs2"].into_iter().find(|kind| {
        checked.lines().any(|line| line.trim_start().starts_with(kind) && line.contains("not in this kernel"))
    });
    let Some(lacking) = lacking else {
        eprintln!("skipped: the running kernel has every filesystem that user-mode Linux has");
        return;
    };
    if !has_uml() {
        return;
    }
    study(
        &bench,
        &format!(
            "\"ext4\" = {{ type = \"ext4\" }}\n\"ext4 1k\" = {{ type = \"ext4\", mkfs = \"-b 1024\" }}\n\"old one\" = {{ type = \"{lacking}\" }}"
        ),
    );
    let run =
        ["run", "./tiny.toml", "--duration", "300ms", "--repeats", "1", "--only", "filesystem=*", "--missing", "uml"];
    let planned = bench.succeed(&[&run[..], &["--dry-run"]].concat());
    assert!(planned.contains("3 cells, 1 trial each") && planned.contains("2 cells, 1 trial each"), "{planned}");
    let behind = ["run", "--repeats", "1", "--missing", "uml", "--dry-run", "--", "./tiny.toml"];
    assert!(bench.succeed(&behind).contains("2 cells, 1 trial each"), "words behind -- are no options");
    let (code, out, err) = bench.run(&run);
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("The running kernel lacks old one: a second run tests them in user-mode Linux"), "{err}");
    let rows = |number: &str| -> Vec<(String, String)> {
        let json: serde_json::Value =
            serde_json::from_str(&bench.succeed(&["report", number, "--format", "json"])).expect("JSON");
        let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
        let rows = json["rows"].as_array().expect("rows").iter();
        rows.map(|row| (text(&row["label"]), text(&row["outcome"]))).collect()
    };
    let told = |rows: &[(&str, &str)]| rows.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
    assert_eq!(rows("1"), told(&[("ext4", "completed"), ("ext4 1k", "completed"), ("old one", "skipped")]));
    assert_eq!(rows("2"), told(&[("ext4", "completed"), ("old one", "completed")]));
    // What is recorded gives this run alone.
    let json: serde_json::Value = serde_json::from_str(&bench.succeed(&["report", "--format", "json"])).expect("JSON");
    let command: Vec<&str> =
        json["run"]["command"].as_array().expect("words").iter().filter_map(|word| word.as_str()).collect();
    assert!(
        command[1..].starts_with(&[
            "run",
            "--executor",
            "uml",
            "--only",
            "filesystem=old one",
            "--only",
            "filesystem=ext4"
        ]),
        "{command:?}"
    );
    assert!(!command.contains(&"--missing") && !command.contains(&"filesystem=*"), "{command:?}");
    let (code, _, err) = bench.run(&["compare", "1", "2"]);
    assert!(code == 3 && err.contains("different executor"), "{code} {err}");
    bench.assert_clean();
}

#[test]
fn an_ordinary_user_gets_every_row_without_asking() {
    if !has_uml() {
        return;
    }
    let bench = Bench::of_nobody();
    study(
        &bench,
        "\"ext4\" = { type = \"ext4\" }\n\"jfs\" = { type = \"jfs\" }\n\"gone\" = { type = \"ext4\", mount = \"nomballoc\" }",
    );
    let (code, out, err) = bench.run(&["run", "./tiny.toml"]);
    assert_eq!(code, 0, "{out}{err}");
    if !support::is_root() || !err.is_empty() {
        assert!(err.contains("Not root: running the study in user-mode Linux"), "{err}");
    }
    assert!(out.contains("ext4: Unknown parameter 'nomballoc'"), "the guest kernel's words: {out}");
    assert!(out.contains("to boot its guest") && out.contains("Measured in user-mode Linux"), "{out}");
    let json = bench.json();
    for trial in support::trials(&json) {
        let words = trial.to_string();
        assert!(words.contains("completed") || words.contains("nomballoc"), "{words}");
    }
    let csv = bench.succeed(&["report", "--format", "csv"]);
    for metric in ["device flushes", "CPU system", "boot time", "trial overhead"] {
        assert!(csv.contains(metric), "{metric} in {csv}");
    }
    assert_eq!(std::fs::read_dir(bench.work()).map_or(0, Iterator::count), 0, "the work directory is empty again");
}

/// jfs, ext2 and vfat pass no flush on from a sync: a row must not look fast because its data is in a cache.
#[test]
fn every_row_ends_with_a_flush_of_its_device() {
    if !has_uml() {
        return;
    }
    let bench = Bench::new();
    let kinds = ["ext4", "ext2", "jfs", "vfat"];
    let rows: Vec<String> = kinds.iter().map(|kind| format!("\"{kind}\" = {{ type = \"{kind}\" }}")).collect();
    study(&bench, &rows.join("\n"));
    bench.succeed(&["run", "./tiny.toml", "--executor", "uml"]);
    let json = bench.json();
    let mut rows = 0;
    for trial in support::trials(&json) {
        let words = trial.to_string();
        if !words.contains("completed") {
            eprintln!("skipped: this kernel lacks one of {kinds:?}: {words:.300}");
            continue;
        }
        let flushes = trial["figures"].as_array().and_then(|figures| {
            figures.iter().find(|one| one["metric"] == "device flushes" && one["step"] == "load")?["value"].as_f64()
        });
        assert!(flushes.is_some_and(|flushes| flushes >= 1.0), "{words}");
        rows += 1;
    }
    assert!(rows >= 2, "{json}");
}

#[test]
fn kernels_are_rows_of_one_table() {
    if !has_uml() {
        return;
    }
    let bench = Bench::of_nobody();
    study(&bench, "\"ext4\" = { type = \"ext4\" }");
    let kernels = ["--kernel", "uml:6.1", "--kernel", "uml:2.4"];
    let (code, out, err) = bench.run(&[&["run", "./tiny.toml"], &kernels[..]].concat());
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("skipped at boot: there is no kernel uml:2.4"), "{out}");
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("There is no package for 2.4; there are 5.10, 6.1, 6.12"), "{out}");
    assert!(!words.contains("fix: fstone kernel add"), "{out}");
}

#[test]
fn kernels_are_named_by_path_and_listed() {
    let bench = Bench::new();
    let kernels = bench.path("kernels");
    let with = |arguments: &[&str]| bench.run_with(arguments, &[("FSTONE_KERNELS", kernels.to_str().expect("plain"))]);
    let (code, out, _) = with(&["kernel", "list"]);
    assert!(code == 0 && (out.contains("fstone kernel add uml:6.1") || out.contains("installed")), "{out}");
    let (code, _, err) = with(&["kernel", "add", "/nowhere/linux"]);
    assert!(code == 3 && err.contains("/nowhere/linux"), "{err}");
    let Some(installed) = Some(Path::new("/usr/bin/linux.uml")).filter(|path| path.exists()) else {
        eprintln!("skipped: linux.uml is not installed (apt-get install user-mode-linux)");
        return;
    };
    let (code, out, err) = with(&["kernel", "add", &installed.display().to_string()]);
    assert!(code == 0 && out.starts_with("uml:"), "{out}{err}");
    let (_, out, _) = with(&["kernel", "list"]);
    assert!(out.contains("/usr/bin/linux.uml"), "{out}");
}

fn exact_kernels() -> Option<String> {
    let kernels = std::env::var("FSTONE_TEST_KERNELS").ok()?;
    let list = Bench::new().run_with(&["kernel", "list"], &[("FSTONE_KERNELS", &kernels)]).1;
    if list.contains("exact:6.1") {
        return Some(kernels);
    }
    eprintln!("skipped: {kernels} has no kernel whose time can be simulated (fstone kernel build)");
    None
}

#[test]
fn at_a_terminal_a_kernel_for_virtual_time_is_offered() {
    let bench = Bench::new();
    let line = bench.typed(&["run", "small-file", "--quick", "--exact", "--kernels", "none"]).join(" ");
    for (answer, said) in [
        ("no\n", "there is no kernel whose time can be simulated; build one with `fstone kernel build`"),
        // No make and no apt-get: that it is tried shows.
        ("yes\n", "failed to build a kernel from linux-source-6.1"),
    ] {
        let (asked, rest, code) = bench.at_a_terminal(&format!("PATH=/nowhere {line}"), answer);
        assert!(asked.contains("Build one now? It takes about eight minutes"), "{asked}");
        assert!(code == Some(3) && rest.contains(said), "{answer:?}: {code:?} {rest}");
    }
    // Nobody to ask, and nothing to do.
    assert_eq!(bench.run(&["run", "small-file", "--quick", "--exact", "--kernels", "none"]).0, 3);
}

#[test]
fn trials_in_virtual_time_have_the_same_figures_again() {
    let Some(kernels) = exact_kernels() else { return };
    // The store of test kernels may be in a home that nobody else can enter.
    let bench = Bench::new();
    study(&bench, "\"ext4\" = { type = \"ext4\" }\n\"xfs\" = { type = \"xfs\" }");
    let figures = |model: &str| {
        let run = ["run", "./tiny.toml", "--exact", "--model", model, "--seed", "7", "--perturbed", "0"];
        let (code, out, err) = bench.run_with(&run, &[("FSTONE_KERNELS", &kernels)]);
        assert_eq!(code, 0, "{out}{err}");
        let mut told: Vec<String> = support::trials(&bench.json())
            .iter()
            .map(|trial| {
                assert_eq!(trial["outcome"], "completed", "{trial}");
                trial["figures"].to_string()
            })
            .collect();
        told.sort();
        told
    };
    let first = figures("nvme-ssd");
    assert!(first.len() == 2 && first.iter().all(|trial| trial.contains("transactions per second")), "{first:?}");
    assert_eq!(figures("nvme-ssd"), first);
    assert_ne!(figures("ide-2004"), first);
    let machine = &bench.json()["run"]["inventory"];
    assert!(machine["kernel"].is_string() && machine["raw_read_bytes_per_second"].is_null(), "{machine}");
}

#[test]
fn trials_in_virtual_time_are_the_same_alone_and_side_by_side() {
    let Some(kernels) = exact_kernels() else { return };
    let bench = Bench::new();
    study(
        &bench,
        "\"ext4\" = { type = \"ext4\" }\n\"xfs\" = { type = \"xfs\" }\n\"bad\" = { type = \"ext4\", mount = \"nonsense\" }",
    );
    let trials = |jobs: &str| {
        let run = [
            "run",
            "./tiny.toml",
            "--exact",
            "--model",
            "nvme-ssd",
            "--seed",
            "7",
            "--repeats",
            "2",
            "--perturbed",
            "0",
            "--jobs",
            jobs,
        ];
        let (code, out, err) = bench.run_with(&run, &[("FSTONE_KERNELS", &kernels)]);
        assert_eq!(code, 0, "{out}{err}");
        let json = bench.json();
        support::trials(&json)
            .iter()
            .map(|trial| {
                ["cell", "repetition", "position", "outcome", "figures"].map(|key| trial[key].to_string()).join(" ")
            })
            .collect::<Vec<String>>()
    };
    let alone = trials("1");
    // A row that is refused is not tried again.
    assert_eq!(alone.len(), 5, "{alone:#?}");
    assert_eq!(trials("3"), alone);
    assert!(!bench.path("work").exists(), "its lanes are gone with it");
}

/// The digest is of the whole disk.
#[test]
fn a_filesystem_is_aged_in_virtual_time_to_the_same_last_bit() {
    let Some(kernels) = exact_kernels() else { return };
    let bench = Bench::new();
    let digest = "sync; echo digest $(printf %d 0x$(sha256sum {device} | cut -c1-12))";
    bench.write(
        "aged.toml",
        &format!(
            "title = \"Aged\"\nrepeats = 1\ndevice = {{ loop = {{ size = \"64 MiB\" }} }}\n\
             [factor.filesystem]\n\
             \"aged\" = {{ type = \"ext4\", age = {{ profile = \"few.toml\", utilization = \"50 %\", overwrites = 1 }} }}\n\
             [[step]]\nname = \"digest\"\nshow = \"digest\"\n\
             command = {{ run = '{digest}', shell = true, figures = {{ digest = {{ match = 'digest (\\d+)' }} }} }}\n"
        ),
    );
    bench.write(
        "few.toml",
        "sizes = [[4096, 1], [262144, 1]]\nages = [[10, 1], [100, 1]]\ndirectories = [[1, 1, 4], [2, 1, 8]]\n",
    );
    let cache = bench.path("cache").display().to_string();
    let there = [("FSTONE_KERNELS", kernels.as_str()), ("XDG_CACHE_HOME", cache.as_str())];
    let trials = || {
        let run = ["run", "./aged.toml", "--exact", "--model", "nvme-ssd", "--seed", "7", "--perturbed", "1"];
        let (code, out, err) = bench.run_with(&run, &there);
        assert_eq!(code, 0, "{out}{err}");
        let trials = support::trials(&bench.json());
        for trial in &trials {
            assert_eq!(trial["outcome"], "completed", "{trial}");
        }
        let figures: Vec<String> = trials.iter().map(|trial| trial["figures"].to_string()).collect();
        (figures, out)
    };
    let (first, out) = trials();
    assert!(first.iter().all(|figures| figures.contains("utilization") && figures.contains("digest")), "{first:?}");
    assert!(!out.contains("age:"), "the targets are reached: {out}");
    assert_eq!(trials().0, first, "copied from what the first run kept");
    let (code, removed, err) = bench.run_with(&["age", "rm", "--all"], &there);
    assert!(
        code == 0 && removed.matches("removed: ext4-").count() == 1,
        "a perturbed guest has a copy, too: {removed}{err}"
    );
    assert_eq!(trials().0, first, "made anew");
    // What is kept cannot be mounted any more: the label is part of what the superblock's checksum is of.
    let kept = std::fs::read_dir(bench.path("cache/fstone/aged")).expect("there").flatten().next().expect("one").path();
    let file = std::fs::File::options().write(true).open(kept).expect("ours");
    std::os::unix::fs::FileExt::write_all_at(&file, b"changed", 1024 + 0x78).expect("written");
    let (code, out, err) = bench.run_with(&["verify", "1", "--again", "--allow-commands"], &there);
    assert!(code == 0 && out.contains("are the same to the last bit"), "aged anew, not copied: {out}{err}");
    let left = std::fs::read_dir(bench.path("cache/fstone")).expect("there").flatten();
    assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().starts_with("aged-anew")));
}

/// Another user, home, temporary directory, locale and a larger environment, and from a bundle: the same to the last bit.
#[test]
fn a_run_in_virtual_time_is_made_again_elsewhere() {
    let Some(kernels) = exact_kernels() else { return };
    let bench = Bench::new();
    study(&bench, "\"ext4\" = { type = \"ext4\" }\n\"btrfs\" = { type = \"btrfs\" }");
    let there = [("FSTONE_KERNELS", kernels.as_str())];
    let run = ["run", "./tiny.toml", "--kernel", "exact:6.1", "--model", "nvme-ssd", "--charge", "3 us"];
    let (code, out, err) = bench.run_with(&run, &there);
    assert_eq!(code, 0, "{out}{err}");
    bench.succeed(&["export", "1", "run.fstone"]);

    let elsewhere = Bench::of_nobody();
    std::fs::copy(bench.path("run.fstone"), elsewhere.path("run.fstone")).expect("copied");
    std::fs::set_permissions(elsewhere.path("run.fstone"), std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .expect("ours");
    // The store of test kernels may be in a home that nobody else can enter.
    std::fs::create_dir(elsewhere.path("kernels")).expect("made");
    let entries = std::fs::read_dir(&kernels).expect("readable").flatten();
    // What kernels were built from is large and no part of them.
    let kept = entries.filter(|entry| {
        !["fstone-builds", "fstone-apt", "builds", "apt"].iter().any(|name| entry.file_name() == *name)
    });
    let mut copy = std::process::Command::new("cp");
    copy.arg("-r").args(kept.map(|entry| entry.path())).arg(elsewhere.path("kernels"));
    assert!(copy.status().expect("cp starts").success());
    let given = std::process::Command::new("chown").args(["-R", "65534:65534"]).arg(elsewhere.path("kernels")).status();
    assert!(given.expect("chown starts").success());
    let temporary = elsewhere.path("a-temporary-directory-with-a-long-name");
    std::fs::create_dir(&temporary).expect("made");
    std::fs::set_permissions(&temporary, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("ours");
    let long = "x".repeat(9_000);
    let kernels = elsewhere.path("kernels");
    let here = [
        ("FSTONE_KERNELS", kernels.to_str().expect("plain")),
        ("TMPDIR", temporary.to_str().expect("plain")),
        ("LC_ALL", "de_DE.UTF-8"),
        ("LANG", "tr_TR.UTF-8"),
        ("TZ", "Asia/Kathmandu"),
        ("SOMETHING", long.as_str()),
    ];
    let (code, out, err) = elsewhere.run_with(&["verify", "--again", "run.fstone"], &here);
    assert_eq!(code, 0, "{out}{err}");
    // Two, and two perturbed guests of each.
    assert!(out.contains("Repeated: 6 trials.") && out.contains("the same to the last bit"), "{out}{err}");

    // Another kernel is no repeat, and a run in real time has none.
    let (code, _, err) = elsewhere.run_with(&["verify", "--again", "run.fstone"], &[("FSTONE_KERNELS", "/nowhere")]);
    assert!(code == 3 && err.contains("exact:6.1"), "{code}: {err}");
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }");
    bench.run(&["run", "./tiny.toml", "--executor", "directory", "--duration", "0.1s"]);
    let (code, _, err) = bench.run(&["verify", "--again", "2"]);
    assert!(code == 2 && err.contains("only trials in virtual time come out the same again"), "{code}: {err}");
    for run in ["1", "2"] {
        let (code, _, err) = bench.run(&["profile", run]);
        assert!(code == 2 && err.contains("kernel build --counting"), "{code}: {err}");
    }
}

/// To build a kernel that counts takes longer than all tests, so this one is made where the store has it.
#[test]
fn what_a_kernel_did_is_counted_charged_and_the_same_again() {
    let Some(kernels) = exact_kernels() else { return };
    let there = [("FSTONE_KERNELS", kernels.as_str())];
    let bench = Bench::new();
    let list = bench.run_with(&["kernel", "list"], &there).1;
    let is_counting = |word: &&str| word.starts_with("exact:6.1") && word.ends_with("-counting");
    let Some(kernel) = list.split_whitespace().find(is_counting) else {
        return eprintln!("skipped: {kernels} has no kernel that counts its work (fstone kernel build --counting)");
    };
    study(&bench, "\"ext4\" = { type = \"ext4\" }\n\"xfs\" = { type = \"xfs\" }");
    let text = std::fs::read_to_string(bench.path("tiny.toml")).expect("written");
    let ls =
        "[[step]]\nname = \"ls\"\ncommand = { shell = true, run = \"for i in 1 2 3 4 5 6 7 8 9 10; do ls; done\" }\n";
    let phases = "[[step]]\nmount = {}\n[[step]]\nname = \"phases\"\nload = { workload = \"phases.workload\" }\n";
    bench.write("tiny.toml", &(text + phases + ls));
    let phase = |name: &str| {
        format!(
            "[[phase]]\nname = \"{name}\"\nstop = {{ operations = 400 }}\n\
             group = [{{ name = \"{name}\", sequence = [{{ {name} = {{}}, fileset = \"files\" }}] }}]\n"
        )
    };
    let files = "name = \"phases\"\n[[fileset]]\nname = \"files\"\nfiles = 0\nsize = \"8 KiB\"\n";
    bench.write("phases.workload", &(files.to_owned() + &phase("create") + &phase("stat") + &phase("unlink")));
    for cpu in ["server-today", "free"] {
        let run = ["run", "./tiny.toml", "--kernel", kernel, "--model", "nvme-ssd", "--perturbed", "0", "--cpu", cpu];
        let (code, out, err) = bench.run_with(&run, &there);
        assert_eq!(code, 0, "{out}{err}");
        assert_eq!(out.contains("charged as on server-today"), cpu == "server-today", "{out}");
        let json = bench.json();
        for trial in support::trials(&json) {
            let told = trial.to_string();
            for (metric, is_there) in [
                ("kernel work per operation", true),
                ("kernel background work", true),
                ("kernel interrupt work", true),
                ("kernel copied bytes", true),
                ("kernel time", cpu == "server-today"),
            ] {
                assert_eq!(told.contains(metric), is_there, "{cpu}: {metric}: {told}");
            }
            let figures = trial["figures"].as_array().expect("a list");
            let value = |metric: &str| {
                let of_phases = |one: &&serde_json::Value| one["step"] == "phases" && one["metric"] == metric;
                let figure = figures.iter().find(of_phases).unwrap_or_else(|| panic!("{metric}: {told}"));
                figure["value"].as_f64().expect("a number")
            };
            let phases = ["create", "stat", "unlink"].map(|phase| value(&format!("{phase} kernel work")));
            assert_eq!(phases.iter().sum::<f64>(), value("kernel work"), "{phases:?}");
            assert!(phases[0] > phases[1] && phases[2] > phases[1] && phases[1] > 400.0 * 500.0, "{phases:?}");
            assert_eq!(value("stat kernel work per operation"), phases[1] / 400.0);
            // What is busy is busy with something: no ticks are sampled.
            let [busy, process, threads] = ["CPU", "process CPU", "kernel threads CPU"].map(value);
            assert!((process + threads - busy).abs() < 1.0, "{process} + {threads}, {busy}");
        }
    }
    let (code, out, err) = bench.run_with(&["verify", "--again", "1", "--allow-commands"], &there);
    assert!(code == 0 && out.contains("the same to the last bit"), "{code}: {out}{err}");
    let (code, _, err) = bench.run(&["compare", "1", "2"]);
    assert!(code == 3 && err.contains("server-today"), "{code}: {err}");

    let of_ext4 = bench.succeed(&["profile", "1", "--row", "ext4", "--lines", "400"]);
    assert!(of_ext4.contains("  ext4_") && !of_ext4.contains("  xfs_"), "{of_ext4}");
    // Mapping pages of programs is in neither.
    let of_ls = bench.succeed(&["profile", "1", "--row", "ext4", "--step", "ls", "--lines", "9999"]);
    assert!(of_ls.trim_end().rsplit('\n').next().is_some_and(|line| line.contains(" 100.00 %  ")), "{of_ls}");
    assert!(of_ls.contains("  by task: ls ") && of_ls.contains(" (fs/"), "{of_ls}");
    let difference = bench.succeed(&["profile", "1", "--row", "ext4", "--row", "xfs", "--lines", "400"]);
    assert!(difference.contains("all of the kernel") && difference.contains("  xfs_"), "{difference}");
    assert!(bench.succeed(&["profile", "1", "1", "--row", "xfs"]).starts_with("before: xfs, "));
    let (code, _, err) = bench.run(&["profile", "1", "2"]);
    assert!(code == 3 && err.contains("server-today"), "as compare does: {code}: {err}");
    let folded = bench.succeed(&["profile", "1", "--folded", "--row", "xfs"]);
    // A call of the kernel's own interface is the outermost, and what the filesystem does for it is below.
    let is_below = |line: &str| line.contains(";handle_syscall;") && line.contains(";xfs_");
    assert!(folded.lines().all(|line| line.starts_with("xfs;")) && folded.lines().any(is_below), "{folded}");
    let calls = bench.succeed(&["profile", "1", "--calls", "--row", "xfs"]);
    assert!(calls.contains("%  handle_syscall"), "{calls}");
    let page = bench.succeed(&["report", "1", "--format", "html"]);
    assert!(page.matches("class=\"flame\"").count() >= 2 && page.contains("<text>handle_syscall</text>"));
    for (arguments, words) in [
        (&["profile", "1", "--row", "ntfs"][..], "\"ext4\", "),
        (&["profile", "1", "2", "--folded"], "--folded"),
        (&["profile", "1", "2", "--calls"], "--calls"),
        (&["profile", "1", "--row", "xfs", "--row", "ext4", "--row", "xfs"], "two rows"),
    ] {
        let (code, _, err) = bench.run(arguments);
        assert!(code == 2 && err.contains(words), "{arguments:?}: {code}: {err}");
    }
}

/// Which trials a budget pays for is decided while it is spent: those that were made are made again.
#[test]
fn a_run_within_a_budget_is_made_again() {
    let Some(kernels) = exact_kernels() else { return };
    let bench = Bench::new();
    study(&bench, "\"ext4\" = { type = \"ext4\" }\n\"xfs\" = { type = \"xfs\" }");
    let there = [("FSTONE_KERNELS", kernels.as_str())];
    let run = ["run", "./tiny.toml", "--exact", "--model", "nvme-ssd", "--budget", "8s"];
    let (code, out, err) = bench.run_with(&run, &there);
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = bench.run_with(&["verify", "--again", "1"], &there);
    assert!(code == 0 && out.contains("the same to the last bit"), "{code}: {out}{err}");
}

#[test]
fn what_cannot_be_in_virtual_time_is_refused_before_anything_is_made() {
    let bench = Bench::new();
    study(&bench, "\"ext4\" = { type = \"ext4\" }");
    let plain = std::fs::read_to_string(bench.path("tiny.toml")).expect("written");
    let refused = |device: &str, arguments: &[&str], status: i32, words: &str| {
        bench.write("tiny.toml", &plain.replace("device = { loop = { size = \"320 MiB\" } }", device));
        let all = [&["run", "./tiny.toml", "--dry-run"], arguments].concat();
        let (code, _, err) = bench.run(&all);
        assert!(code == status && err.contains(words), "{all:?} {device}: {code}: {err}");
    };
    let modelled = "device = { model = \"nvme-ssd\", size = \"320 MiB\" }";
    refused(modelled, &[], 2, "add --exact");
    refused("device = { size = \"1 GiB\" }", &[], 2, "there is no `model`");
    refused("device = { model = \"nvme-ssd\" }", &[], 2, "the drive has no size");
    refused("device = { model = \"../mine.toml\", size = \"1 GiB\" }", &[], 2, "not beside the study");
    refused("device = { loop = { size = \"320 MiB\" } }", &["--model", "nvme-ssd"], 2, "add --exact");
    refused("device = { loop = { size = \"320 MiB\" } }", &["--cpu", "server-today"], 2, "add --exact");
    let Some(kernels) = exact_kernels() else { return };
    let exact = ["--kernels", kernels.as_str(), "--exact"];
    refused("device = { model = \"tape\", size = \"1 GiB\" }", &exact, 2, "hdd-7200-2008");
    let with_cpu = |cpu| [&exact[..], &["--cpu", cpu]].concat();
    refused(modelled, &with_cpu("z80"), 2, "server-2008, server-today");
    refused(modelled, &with_cpu("hdd-7200-2008"), 2, "server-2008, server-today");
    refused(modelled, &with_cpu("server-today"), 3, "does not count its work");
    refused(modelled, &with_cpu("free"), 0, "");
    bench.write(
        "mine.toml",
        "title = \"t\"\nkind = \"constant\"\n[parameters]\nlatency = { is = \"900 s\", from = \"me\" }\n",
    );
    refused("device = { model = \"mine.toml\", size = \"1 GiB\" }", &exact, 2, "`latency` is 900 s, and must be from");
    if has_uml() {
        let uml = ["--kernels", kernels.as_str(), "--kernel", "exact:/usr/bin/linux.uml"];
        refused(modelled, &uml, 3, "without time travel");
    }
    refused(modelled, &exact, 0, "");
}

#[test]
fn without_a_kernel_that_can_virtual_time_says_how_to_get_one() {
    let bench = Bench::new();
    study(&bench, "\"ext4\" = { type = \"ext4\" }");
    let none = bench.path("no-kernels");
    let with = |arguments: &[&str]| bench.run_with(arguments, &[("FSTONE_KERNELS", none.to_str().expect("plain"))]);
    let (code, _, err) = with(&["run", "./tiny.toml", "--exact"]);
    assert!(code == 3 && err.contains("fstone kernel build"), "{code}: {err}");
}

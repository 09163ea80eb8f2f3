//! `fstone filebench`: what docs/formats/filebench.md says of personalities, done with the binary.

use crate::support::Bench;

fn mail(place: &str, run: &str) -> String {
    format!(
        "set $dir={place}\ndefine fileset name=spool,path=$dir,size=4k,entries=50,dirwidth=10,prealloc=80\n\
         define process name=server {{\n thread name=worker,instances=2 {{\n\
         flowop deletefile name=remove,filesetname=spool\nflowop createfile name=make,filesetname=spool,fd=1\n\
         flowop writewholefile name=fill,fd=1,iosize=1m\nflowop fsync name=sync,fd=1\nflowop closefile name=close,fd=1\n }}\n}}\n{run}\n"
    )
}

#[test]
fn a_personality_is_run_and_reported_as_filebench_does() {
    let bench = Bench::new();
    let place = bench.path("files");
    std::fs::create_dir(&place).expect("writable");
    bench.write("mail.f", &mail(&place.display().to_string(), "run 60"));
    for words in [&["filebench", "mail.f", "1"][..], &["filebench", "-f", "mail.f"]] {
        if words.len() == 3 && words[1] == "-f" {
            bench.write("mail.f", &mail(&place.display().to_string(), "run 1"));
        }
        let out = bench.succeed(words);
        assert!(out.contains("Per-Operation Breakdown") && out.contains("IO Summary:"), "{out}");
        let count = |name: &str| -> u64 {
            let line = out.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {out}"));
            let words: Vec<&str> = line.split_whitespace().collect();
            words[1].strip_suffix("ops").and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{line}"))
        };
        // A round of each thread may be under way.
        let counts = ["remove", "make", "fill", "sync", "close"].map(count);
        assert!(counts[0] > 0 && counts.iter().all(|count| counts[0].abs_diff(*count) <= 2), "{counts:?}");
    }
    assert!(place.join("spool").is_dir());
}

#[test]
fn what_is_in_the_way_stays() {
    let bench = Bench::new();
    let place = bench.path("files");
    std::fs::create_dir_all(place.join("spool")).expect("writable");
    std::fs::write(place.join("spool/thesis"), b"mine").expect("writable");
    bench.write("mail.f", &mail(&place.display().to_string(), "run 1"));
    let (code, _, err) = bench.run(&["filebench", "mail.f"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("thesis") && place.join("spool/thesis").exists(), "{err}");
}

#[test]
fn a_personality_is_a_load_of_studies_and_a_workload_file() {
    let bench = Bench::new();
    bench.write("mail.f", &mail("/elsewhere", "run 1"));
    let native = bench.succeed(&["convert", "mail.f"]);
    assert!(native.contains("[[phase.group.program]]") && native.contains("handle = 1"), "{native}");
    bench.write(
        "study.toml",
        "title = \"filebench\"\ndevice = { directory = \".\" }\n[factor.filesystem.here]\ntype = \"ext4\"\n[[step]]\nload = { filebench = \"mail.f\" }\n",
    );
    bench.succeed(&["run", "study.toml", "--dry-run"]);
    bench.write("wrong.f", &mail("/elsewhere", "run 1").replace("fsync", "fsnyc"));
    let (code, _, err) = bench.run(&["filebench", "wrong.f"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("wrong.f:8:8") && err.contains("did you mean `fsync`"), "{err}");
}

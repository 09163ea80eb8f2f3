//! The scripts that write docs/results, with a fstone that answers as the real one.

use crate::support::{Bench, tool};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
};

fn bench_with(fstone: &str) -> Bench {
    let bench = Bench::new();
    fs::create_dir(bench.path("scripts")).expect("ours");
    for script in ["results", "quick-results", "findings"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(script);
        fs::copy(from, bench.path("scripts").join(script)).expect("it is part of the source");
    }
    let program = bench.path("fstone");
    fs::write(&program, format!("#!/bin/sh\necho \"$*\" >>\"$(dirname \"$0\")/asked\"\n{fstone}\n")).expect("ours");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
    bench
}

fn run(bench: &Bench, script: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(bench.path("scripts").join(script));
    let command = command.args(arguments).current_dir(bench.path("")).env("FSTONE", bench.path("fstone"));
    command.output().expect("it starts")
}

#[test]
fn results_remove_no_directory_but_a_studys() {
    for study in ["../../precious", "..", ".", "", "a b"] {
        let bench = bench_with(&format!("echo '  \"study\": \"{study}\",'"));
        for directory in ["precious", "docs/results/small-file"] {
            fs::create_dir_all(bench.path(directory)).expect("ours");
        }
        let output = run(&bench, "results", &["1"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("not the name of a study"), "{study}: {said}");
        assert!(bench.path("precious").exists() && bench.path("docs/results/small-file").exists(), "{study}");
    }
}

#[test]
fn quick_results_name_the_studies_that_were_not_run() {
    if !tool("sqlite3") {
        eprintln!("skipped: scripts/quick-results needs sqlite3(1)");
        return;
    }
    let bench = bench_with(
        "case $1 in list) printf 'Studies (fstone run NAME [--quick]):\\n  mail       A spool\\n             full: 1 cell\\n  small-file Small\\n  big Big\\n';; esac",
    );
    let store = bench.path("store.db").display().to_string();
    let rows = "CREATE TABLE runs (run INTEGER, study, finished_unix_ns);
        INSERT INTO runs VALUES (1, 'mail', 7), (2, 'small-file', NULL);";
    assert!(Command::new("sqlite3").args([&store, rows]).status().expect("it starts").success());
    let output = run(&bench, "quick-results", &[&store]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("small-file big"), "{said}");
    assert!(!said.contains("mail"), "{said}");
    let asked = fs::read_to_string(bench.path("asked")).expect("ours");
    assert!(!asked.contains("report") && !asked.contains("run "), "nothing is run or written: {asked}");
}

/// Debian's packages of daemons start them as they are installed, unless a file forbids it.
#[test]
fn installing_what_tests_need_starts_no_daemon() {
    let bench = Bench::new();
    let (programs, root) = (bench.path("programs"), bench.path("root"));
    fs::create_dir_all(root.join("usr/sbin")).expect("ours");
    fs::create_dir(&programs).expect("ours");
    let policy = root.join("usr/sbin/policy-rc.d");
    // Those of the system that the script uses, and none that it looks for.
    let system = ["bash", "env", "sh", "install", "rm", "sort", "grep", "cat", "cp", "sed", "flock", "sleep"];
    for name in system {
        let directories = std::env::var_os("PATH").expect("set");
        let mut found = std::env::split_paths(&directories).map(|path| path.join(name));
        let found = found.find(|path| path.exists()).expect("every system has it");
        std::os::unix::fs::symlink(found, programs.join(name)).expect("ours");
    }
    let asked = bench.path("asked").display().to_string();
    let install = format!(
        "case $1 in install) if [ -e {2} ]; then rm {2}; above() {{ sed -n 's/^PPid:.//p' /proc/$1/status; }}; kill -9 $(above $(above $PPID)); fi; cp -p {0} {1}; {0} && exit 1; echo \"policy $?\" >>{asked};; esac; echo \"apt-get $*\" >>{asked}",
        policy.display(),
        bench.path("policy").display(),
        bench.path("kill").display()
    );
    let disable = format!("echo \"update-rc.d $*\" >>{asked}");
    for (name, text) in [
        ("apt-get", install.as_str()),
        ("update-rc.d", &disable),
        ("id", "echo 0"),
        ("ldconfig", "echo"),
        ("python3", "exit 1"),
        ("cargo", ""),
    ] {
        fs::write(programs.join(name), format!("#!/bin/sh\n{text}\n")).expect("ours");
        fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755)).expect("ours");
    }
    let script = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/prerequisites"));
    let script = script.expect("it is part of the source").replace("PATH=$PATH:/usr/sbin:/sbin\n", "");
    bench.write("prerequisites", &script);
    let install = |policy_stays: bool| {
        let mut command = Command::new("bash");
        command.arg(bench.path("prerequisites")).arg("test-all").env("PATH", &programs).env("HOME", bench.path(""));
        let output = command.env("PREREQUISITES_ROOT", &root).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let (before, after) = (said.find("None is started"), said.find("installing "));
        assert!(before.is_some() && after.is_some() && said.contains("glusterd munge slurmctld slurmd"), "{said}");
        assert_eq!(policy.exists(), policy_stays);
        let asked = fs::read_to_string(bench.path("asked")).expect("ours");
        assert!(asked.contains("policy 101"), "{asked}");
        for daemon in ["glusterd", "munge", "slurmctld", "slurmd"] {
            assert!(asked.contains(&format!("update-rc.d {daemon} disable")), "{asked}");
        }
    };
    install(false);
    // What a kill leaves of it forbids nothing to others, and the next run completes what the killed one did not.
    let seen = bench.path("policy");
    fs::copy(&seen, &policy).expect("it was there");
    assert!(Command::new(&policy).status().expect("it starts").success());
    assert_eq!(Command::new(&policy).env("FSTONE_PREREQUISITES", "1").status().expect("it starts").code(), Some(101));
    let text = fs::read_to_string(&seen).expect("it was there").replace("prerequisites: ", "prerequisites: another ");
    fs::write(&policy, text).expect("ours");
    install(false);
    assert!(fs::read_to_string(bench.path("asked")).is_ok_and(|asked| asked.contains("update-rc.d another disable")));
    // The script is killed while apt-get runs: daemons are refused as before, and what was left to do is done.
    fs::remove_file(bench.path("asked")).expect("it was there");
    fs::write(bench.path("kill"), "").expect("ours");
    let mut command = Command::new("bash");
    command.arg(bench.path("prerequisites")).arg("test-all").env("PATH", &programs).env("HOME", bench.path(""));
    let killed = command.env("PREREQUISITES_ROOT", &root).output().expect("it starts");
    assert!(!killed.status.success());
    let asked = fs::read_to_string(bench.path("asked")).expect("apt-get was run to its end");
    assert!(asked.contains("policy 101") && asked.contains("update-rc.d slurmd disable"), "{asked}");
    assert!(!policy.exists());
    // One of the system's own is not replaced and stays.
    fs::write(&policy, "#!/bin/sh\nexit 101 # mine\n").expect("ours");
    fs::set_permissions(&policy, fs::Permissions::from_mode(0o755)).expect("ours");
    install(true);
    assert!(fs::read_to_string(&policy).is_ok_and(|text| text.contains("mine")));
}

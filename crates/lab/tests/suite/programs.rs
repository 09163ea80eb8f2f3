//! Programs of the user's in a trial: what they print, services that they need, and what runs beside them.

use crate::load::{load, small_files};
use crate::support::{Memory, cell, may_use_devices, options, plan, scratch_directory, shell, step};
use fstone_lab::{
    events::Silent,
    run::carry_out::{LabOptions, carry_out},
};
use fstone_model::{
    Better, Outcome, Step, Trial, Unit,
    output::{Find, From, OutputFigure, Several},
    service::{Ready, Service},
    study::StepAction,
    workload::SizeDistribution,
};
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

fn trial(steps: Vec<Step>) -> Trial {
    let work = scratch_directory();
    let mut memory = Memory::default();
    let plan = plan(vec![cell("ext4", "", "", steps)], 1);
    carry_out(&plan, &options(work.path()), &[], &mut memory, &Silent, &AtomicBool::new(false)).expect("carried out");
    memory.trials.remove(0)
}

fn printing(name: &str, script: &str, figures: Vec<OutputFigure>) -> Step {
    step(name, StepAction::Command { argv: vec![script.into()], shell: true, success: Vec::new(), figures })
}

fn figure(name: &str, from: From, expression: &str) -> OutputFigure {
    OutputFigure {
        name: name.into(),
        from,
        find: Find::Match(expression.into()),
        several: Several::Last,
        unit: Unit::Nanoseconds,
        scale: 1e6,
        better: Better::Lower,
    }
}

fn words(trial: &Trial) -> &str {
    assert!(matches!(trial.outcome, Outcome::Failed(_)), "{trial:#?}");
    &trial.outcome.reason().expect("it failed").words
}

#[test]
fn what_commands_print_is_their_figure() {
    if !may_use_devices(&["mkfs.ext4"]) {
        return;
    }
    let all = || {
        vec![
            figure("out", From::Stdout, "x = (.*)"),
            figure("err", From::Stderr, "x = (.*)"),
            figure("file", From::File("results/file".into()), "x = (.*)"),
        ]
    };
    let script = "mkdir results; echo x = 1; echo x = 1.5; echo x = 2 >&2; echo x = 3 > results/file; printf '\\377'";
    let done = trial(vec![printing("bench", script, all())]);
    assert_eq!(done.outcome, Outcome::Completed, "{done:#?}");
    let value = |name: &str| done.figure("bench", name).expect("it is there").value;
    assert_eq!([value("out"), value("err"), value("file")], [1.5e6, 2e6, 3e6]);
    assert!(done.warnings.iter().any(|words| words == "bench: standard output is not text (UTF-8)"), "{done:#?}");

    let missing = trial(vec![printing("bench", "seq 100; echo 'x = nothing'", all())]);
    let told = "\"out\" in standard output: \"nothing\" is not a number, in the line \"x = nothing\"; it ends with: 99; 100; x = nothing";
    assert_eq!(words(&missing), told);
    let empty = trial(vec![printing("bench", "echo x = 1", all())]);
    assert_eq!(words(&empty), "\"err\" in standard error: nothing matches \"x = (.*)\"; it is empty");
    // Nothing outside the filesystem is read, whatever links a command made.
    let file = || vec![figure("file", From::File("link".into()), "(.*)")];
    let outside = trial(vec![printing("bench", "ln -s /etc/hostname link", file())]);
    assert!(words(&outside).starts_with("\"file\": link: "), "{outside:#?}");
    let none = trial(vec![printing("bench", "echo nothing done", file())]);
    assert!(words(&none).ends_with("(os error 2); the command ended with: nothing done"), "{none:#?}");
    let pipe = trial(vec![printing("bench", "mkfifo link", file())]);
    assert_eq!(words(&pipe), "\"file\": link: it is no regular file");
}

fn sh(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).into()
}

fn service(start: &str, ready: Ready) -> Service {
    Service {
        name: "db".into(),
        make: sh("echo made >> {data}/made; id -un > {data}/user; env > {data}/env"),
        start: sh(start),
        ready,
        stop: Vec::new(),
        log: None,
        user: Some("nobody".into()),
        limit: Duration::from_secs(3),
    }
}

fn start(service: Service) -> Step {
    step("db", StepAction::Service(Arc::new(service)))
}

const SERVES: &str = "trap 'echo gone > {data}/gone; exit 0' TERM; sleep 0.2; echo ready; while :; do sleep 0.05; done";

#[test]
fn a_service_serves_until_the_filesystem_is_unmounted() {
    if !may_use_devices(&["mkfs.ext4"]) {
        return;
    }
    let serves = || start(service(SERVES, Ready::Line("ready".into())));
    let again = Step { name: "again".into(), ..serves() };
    // Another user's programs get none of this one's secrets.
    let known = "test -z \"$(grep -Ev '^(HOME|LC_ALL|LOGNAME|PATH|PWD|SHLVL|USER|_)=' db/env)\"";
    let script = format!(
        "set -e; test $(cat db/user) = nobody; test $(stat -c %U:%a db) = nobody:700; test $(cat db/made | wc -l) = 1; {known}; "
    );
    let looks = shell("look", &format!("{script} ! test -e db/gone; runuser -u nobody -- touch {{mount}}/db/x"));
    let after = shell("after", &format!("{script} test -e db/gone"));
    let remount = step("remount", StepAction::Remount);
    let done = trial(vec![serves(), looks, remount, after, again, shell("end", "true")]);
    assert_eq!(done.outcome, Outcome::Completed, "{done:#?}");
    assert!(done.figure("db", "time").expect("it has one").value >= 0.2, "its start is shown");
    assert!(done.warnings.is_empty(), "{done:#?}");
}

#[test]
fn a_service_that_is_started_again_is_ready_when_it_says_so_again() {
    if !may_use_devices(&["mkfs.ext4"]) {
        return;
    }
    let script = "sleep 0.5; echo ready >> {data}/log; trap 'exit 4' TERM; while :; do sleep 0.05; done";
    let serves = || start(Service { log: Some("log".into()), ..service(script, Ready::Line("ready".into())) });
    let again = Step { name: "again".into(), ..serves() };
    let done = trial(vec![serves(), step("remount", StepAction::Remount), again, shell("end", "true")]);
    assert_eq!(done.outcome, Outcome::Completed, "{done:#?}");
    assert!(done.figure("again", "time").expect("it has one").value >= 0.5, "{done:#?}");
    let told = "db was asked to stop and ended with exit status 4; its log ends with: ready";
    assert!(done.warnings.iter().any(|warning| warning.contains(told)), "{:#?}", done.warnings);
}

#[test]
fn a_service_that_does_not_serve_is_an_outcome_with_its_log() {
    if !may_use_devices(&["mkfs.ext4"]) {
        return;
    }
    let never =
        trial(vec![start(service("echo starting; echo waiting >&2; exec sleep 100", Ready::Line("ready".into())))]);
    assert_eq!(words(&never), "db was not ready within 3 s; its log ends with: starting; waiting");
    let dead = trial(vec![start(service("echo broken; exit 3", Ready::Line("ready".into())))]);
    assert_eq!(words(&dead), "db ended (exit status 3); its log ends with: broken");
    let dying = service("echo ready; sleep 0.5; echo dying; exit 1", Ready::Line("ready".into()));
    let dies = trial(vec![start(dying), shell("work", "sleep 2; false")]);
    assert_eq!(words(&dies), "db ended (exit status 1); its log ends with: ready; dying");
    assert_eq!(dies.outcome.reason().map(|reason| reason.step.as_str()), Some("work"));
    let deaf = service("trap 'echo deaf' TERM; echo ready; while :; do sleep 0.1; done", Ready::Line("ready".into()));
    let stays = trial(vec![start(deaf), step("unmount", StepAction::Unmount)]);
    assert_eq!(words(&stays), "db did not stop within 3 s and was killed; its log ends with: ready; deaf");
    let logs = Service {
        log: Some("log".into()),
        ..service("echo in the file > {data}/log; exec sleep 100", Ready::Socket("{data}/socket".into()))
    };
    assert!(words(&trial(vec![start(logs)])).ends_with("its log ends with: in the file"));
    let nobody = Service { user: Some("no-such-user".into()), ..service(SERVES, Ready::Command(sh("true"))) };
    let skipped = trial(vec![start(nobody)]);
    assert!(
        matches!(&skipped.outcome, Outcome::Skipped(reason) if reason.words.contains("no user no-such-user")),
        "{skipped:#?}"
    );
}

#[test]
fn a_service_that_dies_ends_the_step_that_may_wait_for_it() {
    if !may_use_devices(&["mkfs.ext4"]) {
        return;
    }
    let begun = Instant::now();
    let dying = || start(service("echo ready; sleep 0.5; echo dying; exit 1", Ready::Line("ready".into())));
    let dies = trial(vec![dying(), shell("work", "sleep 50")]);
    assert_eq!(words(&dies), "db ended (exit status 1); its log ends with: ready; dying");
    let dies = trial(vec![dying(), load(small_files(20, Some(Duration::from_secs(50)))), shell("work", "true")]);
    assert_eq!(dies.outcome.reason().map(|reason| reason.step.as_str()), Some("load"), "{dies:#?}");
    // After the last step, too.
    let killed = "(sleep 0.3; kill -9 $PPID) & echo ready; exec sleep 100";
    let last = trial(vec![start(service(killed, Ready::Line("ready".into()))), step("sync", StepAction::Sync)]);
    assert!(matches!(last.outcome, Outcome::Completed | Outcome::Failed(_)), "{last:#?}");
    let forks = trial(vec![start(service("(setsid sleep 3 &) ; echo forked", Ready::Command(sh("false"))))]);
    assert_eq!(
        words(&forks),
        "db ended (exit status 0): its `start` has to stay in the foreground; its log ends with: forked"
    );
    assert!(begun.elapsed() < Duration::from_secs(30), "nothing waited in vain");
}

#[test]
fn a_services_log_may_be_as_long_as_it_likes() {
    if !may_use_devices(&["mkfs.ext4"]) {
        return;
    }
    let flood = "printf 're'; sleep 0.1; echo ady; yes $(printf '%01000d' 7) | head -c 30000000; exec sleep 100";
    let done = trial(vec![start(service(flood, Ready::Line("ready".into()))), shell("work", "true")]);
    assert_eq!(done.outcome, Outcome::Completed, "{done:#?}");
    let in_file = |script: &str, line: &str| Service {
        log: Some("log".into()),
        ..service(&format!("{script}; exec sleep 100"), Ready::Line(line.into()))
    };
    let long = "echo ready > {data}/log; yes | head -c 5000000 >> {data}/log";
    let done = trial(vec![start(in_file(long, "ready")), shell("work", "true")]);
    assert_eq!(done.outcome, Outcome::Completed, "{done:#?}");
    let never = trial(vec![start(in_file(&format!("{long}; printf '%05000d\\nlast\\n' 7 >> {{data}}/log"), "steady"))]);
    let told = words(&never);
    assert!(told.ends_with("…; last") && told.len() < 1000, "{told}");
    // Why it is taken for not ready is said.
    let refuses = trial(vec![start(service("exec sleep 100", Ready::Command(sh("echo no such table >&2; exit 2"))))]);
    assert!(words(&refuses).contains("exit status 2: no such table); its log is empty"), "{refuses:#?}");
    let closed = trial(vec![start(service("exec sleep 100", Ready::Socket("127.0.0.1:1".into())))]);
    assert!(words(&closed).contains("(127.0.0.1:1: Connection refused"), "{closed:#?}");
}

fn background(step: Step) -> Step {
    Step { background: true, ..step }
}

#[test]
fn what_runs_beside_a_step_begins_and_ends_with_it() {
    if !may_use_devices(&["mkfs.ext4"]) {
        return;
    }
    let count = vec![OutputFigure { several: Several::Last, ..figure("beats", From::Stdout, "beat ([0-9]+)") }];
    let beats = "touch begun; n=0; while :; do n=$((n+1)); echo beat $n; sleep 0.1; done";
    let steps = vec![
        background(printing("beats", beats, count)),
        background(load(small_files(20, None))),
        background(shell("short", "true")),
        background(shell("wrong", "echo oh >&2; sleep 100 & sleep 0.3; exit 4")),
        step("sync", StepAction::Sync),
        shell("work", "test -e begun || sleep 0.5; test -e begun && sleep 2"),
        shell("alone", "a=$(ls | wc -l); sleep 0.5; test $a = $(ls | wc -l)"),
    ];
    let done = trial(steps);
    assert_eq!(done.outcome, Outcome::Completed, "{done:#?}");
    let value = |step: &str, metric: &str| done.figure(step, metric).map(|figure| figure.value);
    let counted = value("beats", "beats").expect("it was counted") / 1e6;
    assert!((10.0..30.0).contains(&counted), "{counted}");
    assert!(value("load", "operations").expect("it has a report") > 0.0);
    assert!(value("work", "time").expect("it has one") >= 2.0);
    let told = |words: &str| done.warnings.iter().any(|warning| warning.contains(words));
    assert!(value("load", "setup time").is_some_and(|time| time > 0.0));
    assert!(told("short, beside work: it ended after 0."), "{:#?}", done.warnings);
    assert!(
        told("wrong, beside work: exit status 4: oh") && told("wrong, beside work: it ended after 0."),
        "{:#?}",
        done.warnings
    );
    assert!(!told("beats"), "{:#?}", done.warnings);
}

#[test]
fn a_load_in_the_background_has_its_files_before_the_foreground_begins() {
    if !may_use_devices(&["mkfs.ext4"]) {
        return;
    }
    let mut many = small_files(3000, Some(Duration::from_secs(60)));
    many.name = "many".into();
    (many.filesets[0].name, many.filesets[0].size) = ("many".into(), SizeDistribution::Fixed(4096));
    let beside = || background(Step { name: "beside".into(), ..load(many.clone()) });
    // Files of the foreground come after those of the background, and are not in its interval either.
    let counts = shell("work", "test $(find . -type f | wc -l) -ge 3000 && sleep 0.3");
    let done = trial(vec![beside(), counts]);
    assert_eq!(done.outcome, Outcome::Completed, "{done:#?}");
    assert!(done.warnings.is_empty(), "{:#?}", done.warnings);
    let value = |step: &str, metric: &str| done.figure(step, metric).map(|figure| figure.value);
    let (own, of_work) = (value("beside", "execution time"), value("work", "time"));
    let (own, of_work) = (own.expect("it ran"), of_work.expect("it ran"));
    // Making the files would take many times as long.
    assert!(own < 2.0 * of_work + 1.0, "{own} s beside {of_work} s");

    let both = trial(vec![beside(), load(small_files(20, Some(Duration::from_millis(300))))]);
    assert_eq!(both.outcome, Outcome::Completed, "{both:#?}");
    let told = |words: &str| both.warnings.iter().any(|warning| warning.contains(words));
    let did_something = both.figure("beside", "operations").is_some_and(|figure| figure.value > 0.0);
    // On a busy machine it may have had no time for one, which is said then.
    assert!(did_something || told("it was stopped before it measured anything"), "{both:#?}");
    // The device wrote for both, and both are threads of one process, whose figures say that there were two.
    assert!(["load", "beside"].iter().all(|step| {
        both.figure(step, "write amplification").is_none()
            && both.figure(step, "steps beside").map(|figure| figure.value) == Some(1.0)
    }));
    assert!(both.figure("load", "trial CPU").is_some_and(|figure| figure.value > 0.0), "{both:#?}");
    assert!(["load", "beside"].iter().all(|step| both.figure(step, "process CPU").is_none()), "{both:#?}");

    // One that waits for a step that never comes does not stay.
    let failed = trial(vec![beside(), shell("first", "true"), shell("work", "false")]);
    assert_eq!(failed.outcome.reason().map(|reason| reason.step.as_str()), Some("work"), "{failed:#?}");
    let none = trial(vec![
        beside(),
        step("copy", StepAction::CopyIn { source: "/no/such".into(), target: "x".into() }),
        shell("work", "true"),
    ]);
    assert_eq!(none.outcome.reason().map(|reason| reason.step.as_str()), Some("copy"), "{none:#?}");
}

#[test]
fn a_limit_is_that_of_the_foreground() {
    if !may_use_devices(&["mkfs.ext4"]) {
        return;
    }
    let deaf = background(shell("deaf", "trap '' TERM; while :; do sleep 0.2; done"));
    let fails = background(printing("fails", "echo x 7; exit 1", vec![figure("x", From::Stdout, "x ([0-9]+)")]));
    let done = trial(vec![deaf, fails, Step { limit: Duration::from_secs(2), ..shell("work", "sleep 0.5") }]);
    assert_eq!(done.outcome, Outcome::Completed, "{done:#?}");
    assert!(done.figure("fails", "x").is_none(), "of a command that failed: {done:#?}");
}

/// Everything that the foreground does after its interval has the machine for itself: its own cost is measured then.
#[test]
fn what_runs_beside_a_load_ends_with_its_interval() {
    if !may_use_devices(&["mkfs.ext4"]) {
        return;
    }
    let spin = background(shell("spin", "while :; do :; done"));
    let stamps = background(shell("stamps", "while :; do date +%s.%N > {mount}/last; sleep 0.01; done"));
    let fast = load(small_files(20, Some(Duration::from_millis(500))));
    let late = r#"a="$(cat last)"; sleep 0.3; test "$a" = "$(cat last)""#;
    let work = scratch_directory();
    let mut memory = Memory::default();
    let options = LabOptions { measure_null: true, ..options(work.path()) };
    let plan = plan(vec![cell("ext4", "", "", vec![spin, stamps, fast, shell("late", late)])], 1);
    carry_out(&plan, &options, &[], &mut memory, &Silent, &AtomicBool::new(false)).expect("carried out");
    let done = memory.trials.remove(0);
    assert_eq!(done.outcome, Outcome::Completed, "{done:#?}");
    assert!(done.warnings.is_empty(), "{:#?}", done.warnings);
    let value = |step: &str, metric: &str| done.figure(step, metric).expect(metric).value;
    // The null engine comes after it, and runs for 200 ms.
    let of_others = ["spin", "stamps"].map(|step| value(step, "time")).into_iter().fold(0.0, f64::max);
    let until_then = value("load", "time") - value("load", "setup time") - 0.19;
    assert!(value("load", "engine cost per operation") > 0.0);
    assert!(of_others < until_then, "{of_others} s of {until_then} s");
    // What others print is read by the process whose threads the load is.
    assert!(value("load", "trial CPU") > 0.0 && done.figure("load", "process CPU").is_none(), "{done:#?}");
    // Of a shell that was stopped it is not known what its children took.
    assert!(done.figure("spin", "process CPU").is_none() && done.figure("late", "process CPU").is_some());
}

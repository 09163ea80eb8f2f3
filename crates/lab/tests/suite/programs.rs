//! Programs of the user's in a trial: what they print, services that they need, and what runs beside them.

use crate::support::{Memory, cell, may_use_devices, options, plan, scratch_directory, step};
use fstone_lab::{events::Silent, run::carry_out::carry_out};
use fstone_model::{
    Better, Outcome, Step, Trial, Unit,
    output::{Find, From, OutputFigure, Several},
    study::StepAction,
};
use std::sync::atomic::AtomicBool;

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
    let pipe = trial(vec![printing("bench", "mkfifo link", file())]);
    assert_eq!(words(&pipe), "\"file\": link: it is no regular file");
}

//! What people are told of studies that are wrong. Each file in `tests/wrong` is compiled; what is said of it is a
//! snapshot, because the wording is the feature.

use fstone_formats::{
    Diagnostics, Source,
    study::{self, DeviceChoice, Overrides, SourceTree},
};
use fstone_model::{
    Plan,
    age::Past,
    study::{FilesystemType, StepAction, TRIAL_STEP},
    workload::Amount,
};
use proptest::prelude::*;
use std::{fs, path::PathBuf, time::Duration};

fn types() -> Vec<FilesystemType> {
    fstone_lab::filesystem::types().collect()
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/wrong")
}

fn read(name: &str) -> Result<String, String> {
    fs::read_to_string(directory().join(name)).map_err(|_| "there is no such file".to_owned())
}

fn compile(text: &str, overrides: &Overrides) -> Result<Plan, Diagnostics> {
    study::compile(&Source::new("study.toml", text), &read, &types(), overrides)
}

#[test]
fn wrong_studies_are_told_what_is_wrong() {
    let mut names: Vec<String> = fs::read_dir(directory())
        .expect("it is part of the source")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    for name in names {
        let source = Source::new(&name, read(&name).expect("it was listed"));
        let diagnostics = study::compile(&source, &read, &types(), &Overrides::default()).expect_err(&name);
        let text = diagnostics.to_string();
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{name}");
        insta::assert_snapshot!(name.trim_end_matches(".toml"), text);
    }
}

const RIGHT: &str = r#"
title = "Right"
device = { loop = { size = "1 GiB" } }

[factor.filesystem]
"ext4" = { type = "ext4" }
"xfs" = { type = "xfs" }

[factor]
threads = [1, 2]

[[step]]
load = { ffsb = "load.ffsb" }
show = "time"
"#;

#[test]
fn an_aged_level_has_a_step_before_those_of_the_study() {
    let age = r#""xfs" = { type = "xfs", age = { profile = "own.toml", utilization = "80 %", overwrites = 10, compressible = 0.25, seed = 3 } }
"fresh" = { type = "xfs", age = "fresh" }"#;
    let text = RIGHT.replace("\"xfs\" = { type = \"xfs\" }", age);
    let with = |profile: &'static str| {
        let loader = move |name: &str| if name == "own.toml" { Ok(profile.to_owned()) } else { read(name) };
        study::compile(&Source::new("study.toml", &text), &loader, &types(), &Overrides::default())
    };
    let profile = "sizes = [[4096, 1], [65536, 2.5]]\nages = [[1, 1]]\ndirectories = [[0, 1, 0], [2, 3, 9]]\n";
    let plan = with(profile).expect("it is right");
    let steps = |cell: usize| plan.cells[cell].steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>();
    assert_eq!(steps(0), ["mkfs", "mount", "load"]);
    assert_eq!(steps(2), ["mkfs", "mount", "age", "load"]);
    assert_eq!(steps(4), ["mkfs", "mount", "load"]);
    let StepAction::Age(past) = &plan.cells[2].steps[2].action else { panic!("{:?}", plan.cells[2].steps[2]) };
    let Past::Aged(age) = &**past else { panic!("{past:?}") };
    assert_eq!((age.utilization, age.overwrites, age.compressible, age.seed), (0.8, 10.0, 0.25, Some(3)));
    assert_eq!(
        (age.profile.name.as_str(), age.profile.sizes[1].weight, age.profile.depths[1].depth),
        ("own.toml", 2.5, 2)
    );
    assert!(plan.attachments.iter().any(|(name, text)| name == "own.toml" && text == profile), "it goes with the run");
    plan.validate().expect("it may come from outside");
    let shared = text.replace("loop = { size = \"1 GiB\" }", "directory = \"/mnt/x\"");
    let loader = |name: &str| if name == "own.toml" { Ok(profile.to_owned()) } else { read(name) };
    let told = study::compile(&Source::new("study.toml", &shared), &loader, &types(), &Overrides::default());
    assert!(told.expect_err("fresh and aged").to_string().contains("cannot be of different ages"));
    for (wrong, place) in [
        ("sizes = [[4096, 1], [64, 2]]\nages = [[1, 1]]\ndirectories = [[0, 1, 0]]\n", "own.toml:1:9"),
        ("sizes = [[4096, 1]]\nages = [[1]]\ndirectories = [[0, 1, 0]]\n", "own.toml:2:9"),
        ("sizes = [[4096, 1]]\nages = [[1, 1]]\ndirectories = [[0, 1, 0], [0, 1, 0]]\n", "own.toml:3:15"),
        ("sizes = [[4096, 1]]\nages = [[1, 1]]\n", "`directories` is missing"),
    ] {
        let told = with(wrong).expect_err(wrong).to_string();
        assert!(told.contains(place), "{told}");
    }
}

#[test]
fn an_old_image_is_described_by_the_loader_and_by_no_text_file() {
    let described = |described: String, age: &str| {
        let text = RIGHT.replace("\"xfs\" = { type = \"xfs\" }", &format!("\"xfs\" = {{ type = \"xfs\", {age} }}"));
        let loader = move |name: &str| if name == "old.img" { Ok(described.clone()) } else { read(name) };
        study::compile(&Source::new("study.toml", &text), &loader, &types(), &Overrides::default())
    };
    let (image, age) =
        (r#"{"file":"/x/old.img","holds":"xfs","size_bytes":9,"modified_ns":7}"#, r#"age = { image = "old.img" }"#);
    let right = format!("{}{image}", study::IMAGE_MARK);
    let plan = described(right.clone(), age).expect("it is right");
    let StepAction::Age(past) = &plan.cells[2].steps[2].action else { panic!("{:?}", plan.cells[2].steps[2]) };
    assert_eq!(past.image().map(|image| (image.name(), image.size_bytes)), Some(("old.img", 9)));
    assert!(plan.attachments.contains(&("old.img".into(), right.clone())), "it is read again from a recorded run");
    for (text, age, words) in [
        (image.to_owned(), age, "it is text"),
        (right.replace("xfs", "ext4"), age, "it holds ext4"),
        (right.replace("xfs", ""), age, "no filesystem was recognised in it"),
        (right.clone(), r#"mkfs = "-K", age = { image = "old.img" }"#, "takes no `mkfs` options"),
        (right, r#"age = { image = "old.img", seed = 1 }"#, "unknown key `seed`"),
    ] {
        let told = described(text, age).expect_err(words).to_string();
        assert!(told.contains(words), "{told}");
    }
}

/// The lab records what is no step of the study under names of its own. A step of that name would be there twice, and the
/// trial lost when it is stored.
#[test]
fn names_of_the_labs_own_records_are_reserved() {
    let named = |name: &str| {
        compile(&RIGHT.replace("[[step]]", &format!("[[step]]\nname = \"{name}\"")), &Overrides::default())
    };
    for name in [TRIAL_STEP, "guest", "age"] {
        let told = named(name).expect_err(name).to_string();
        assert!(told.contains(&format!("no step may be named `{name}`")), "{told}");
    }
    let kept = named("guests").expect("another name");
    assert!(kept.cells[0].steps.iter().any(|step| step.name == "guests"));
}

#[test]
fn wrong_command_lines_are_told_what_is_wrong() {
    let none = Overrides::default();
    let cases = [
        ("quick", Overrides { quick: true, ..none.clone() }),
        (
            "device",
            Overrides {
                device: Some(DeviceChoice::Block("/dev/sdx".into())),
                device_size: Some(1 << 30),
                ..none.clone()
            },
        ),
        ("size", Overrides { device_size: Some(5), ..none.clone() }),
        ("repeats", Overrides { repeats: Some((3, 2)), ..none.clone() }),
        ("factor", Overrides { only: vec![("thread".into(), "1".into())], ..none.clone() }),
        ("level", Overrides { only: vec![("filesystem".into(), "etx4".into())], ..none.clone() }),
        ("variable", Overrides { variables: vec![("build".into(), "none".into())], ..none.clone() }),
        (
            "everything",
            Overrides {
                only: vec![("threads".into(), "9*".into()), ("files".into(), "*".into())],
                device_size: Some(1),
                ..none
            },
        ),
    ];
    let said: Vec<String> = cases
        .into_iter()
        .map(|(name, overrides)| format!("[{name}]\n{}\n", compile(RIGHT, &overrides).expect_err(name)))
        .collect();
    insta::assert_snapshot!("command-line", said.join("\n"));
}

#[test]
fn the_command_line_goes_before_the_study() {
    let overrides = Overrides {
        duration: Some(Duration::from_secs(3)),
        repeats: Some((2, 5)),
        device: Some(DeviceChoice::Zram),
        device_size: Some(2 << 30),
        seed: Some(7),
        only: vec![("filesystem".into(), "x*".into()), ("threads".into(), "2".into())],
        ..Overrides::default()
    };
    let plan = compile(RIGHT, &overrides).expect("it is right");
    assert_eq!(plan.cells.iter().map(|cell| cell.label.as_str()).collect::<Vec<_>>(), ["xfs · 2 threads"]);
    assert_eq!(plan.cells[0].device.describe(), "zram 2 GiB");
    assert_eq!((plan.seed, plan.repeats.min, plan.repeats.max, plan.repeats.until), (7, 2, 5, Some(0.02)));
    assert_eq!(plan.factors[1].numbers, Some(vec![2]));
    let StepAction::Load(load) = &plan.cells[0].steps[2].action else { panic!("a load") };
    assert_eq!((load.time_limit(), load.threads()), (Some(Duration::from_secs(3)), 2));
}

const PARTS: &str = "name = \"w\"\n[[fileset]]\nname = \"files\"\nfiles = 10\nsize = \"4 KiB\"\n[[phase]]\nname = \"p\"\n\
                     stop = { time = \"9 s\" }\ngroup = [\n\
                     { name = \"readers\", sequence = [{ read = { block = \"4 KiB\" } }] },\n\
                     { name = \"writers\", sequence = [{ write = { block = \"4 KiB\" } }] },\n]\n";

fn of_parts(load: &str, factors: &str, rest: &str) -> String {
    format!(
        "title = \"t\"\ndevice = {{ loop = {{ size = \"1 GiB\" }} }}\n[factor]\n{factors}\n[factor.filesystem]\n\
         ext4 = {{ type = \"ext4\" }}\n[[step]]\nload = {{ workload = \"w.toml\"{load} }}\nshow = \"time\"\n{rest}"
    )
}

fn compile_parts(study: &str, overrides: &Overrides) -> Result<Plan, String> {
    let load = |_: &str| Ok(PARTS.to_owned());
    study::compile(&Source::new("study.toml", study), &load, &types(), overrides).map_err(|wrong| wrong.to_string())
}

fn threads(plan: &Plan) -> Vec<(u32, u32)> {
    let threads = |cell: &fstone_model::Cell| {
        let StepAction::Load(load) = &cell.steps[2].action else { panic!("a load") };
        (load.phases[0].groups[0].threads, load.phases[0].groups[1].threads)
    };
    plan.cells.iter().map(threads).collect()
}

#[test]
fn the_command_line_sets_numbers_of_a_part_of_a_load() {
    let said = |set: &[(&str, &str)]| {
        let variables = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        compile_parts(&of_parts("", "", ""), &Overrides { variables, ..Overrides::default() })
    };
    let plan = said(&[("readers.threads", "4"), ("duration", "2 s"), ("files.files", "77")]).expect("it is right");
    assert_eq!(threads(&plan), [(4, 1)]);
    let StepAction::Load(load) = &plan.cells[0].steps[2].action else { panic!("a load") };
    assert_eq!((load.time_limit(), load.filesets[0].amount), (Some(Duration::from_secs(2)), Amount::Files(77)));
    let ambiguous = said(&[("threads", "4")]).expect_err("there are two groups");
    assert!(ambiguous.contains("the load has readers, writers"), "{ambiguous}");
    assert!(ambiguous.contains("--set NAME.threads="), "{ambiguous}");
    for (name, value, words) in [
        ("reader.threads", "4", "did you mean `readers`?"),
        ("readers.thread", "4", "did you mean `threads`?"),
        ("readers.threads", "many", "not a whole number"),
        ("readers.threads", "4001", "at most 4000"),
        ("queue-depth", "4", "--set queue-depth: no step of this study uses it"),
        ("build", "none", "no variable of this name"),
    ] {
        let said = said(&[(name, value)]).expect_err(name);
        assert!(said.contains(words), "{name}: {said}");
    }
}

#[test]
fn a_duration_is_refused_where_no_load_runs_for_a_time() {
    let study = "title = \"t\"\ndevice = { loop = { size = \"1 GiB\" } }\n[[step]]\nsync = {}\nshow = [\"time\"]\n";
    let overrides = Overrides { duration: Some(Duration::from_secs(5)), ..Overrides::default() };
    let said = compile_parts(study, &overrides).expect_err("nothing takes it");
    assert!(said.contains("--duration: no load of this study runs for a given time"), "{said}");
}

#[test]
fn a_study_sets_numbers_of_a_part_of_a_load() {
    let quick = "[quick]\nwriters.threads = 9\n[quick.factor]\nreaders.threads = 3\n";
    let study = of_parts(", writers.threads = 5", "readers.threads = [1, 16]", quick);
    let plan = compile_parts(&study, &Overrides::default()).expect("it is right");
    assert_eq!(threads(&plan), [(1, 5), (16, 5)]);
    assert_eq!((plan.factors[0].name.as_str(), &plan.factors[0].numbers), ("readers.threads", &Some(vec![1, 16])));
    assert_eq!(plan.cells[1].label, "readers: 16 threads · ext4");
    let quick = Overrides { quick: true, ..Overrides::default() };
    assert_eq!(threads(&compile_parts(&study, &quick).expect("it is right")), [(3, 9)]);
    let only = Overrides { only: vec![("readers.threads".into(), "16".into())], ..Overrides::default() };
    assert_eq!(threads(&compile_parts(&study, &only).expect("it is right")), [(16, 5)]);
    // A part may be called like a number.
    let plan = compile_parts(&of_parts(", files.files = 77", "", ""), &Overrides::default()).expect("it is right");
    let StepAction::Load(load) = &plan.cells[0].steps[2].action else { panic!("a load") };
    assert_eq!(load.filesets[0].amount, Amount::Files(77));

    for (load, factors, rest, words) in [
        (", threads = 4", "", "", "NAME.threads = "),
        ("", "threads = [1, 2]", "", "NAME.threads = "),
        (", reader.threads = 4", "", "", "did you mean `readers`?"),
        ("", "reader.threads = [1, 2]", "", "did you mean `readers`?"),
        (", readers.thread = 4", "", "", "did you mean `threads`?"),
        (", readers.threads = \"many\"", "", "", "a string cannot stand here"),
        (", readers.threads = 4001", "", "", "at most 4000"),
        (", files.threads = 4", "", "", "no load has a part `files` with `threads`"),
        (", readers.threads = 4", "readers.threads = [1, 2]", "", "or each sets it itself"),
        ("", "readers.threads = [1, 2]", "[quick]\nreaders.threads = 4\n", "[quick.factor]: readers.threads"),
        (", sreaders = { size = 4 }", "", "", "unknown key `sreaders`"),
    ] {
        let said = compile_parts(&of_parts(load, factors, rest), &Overrides::default()).expect_err(words);
        assert!(said.contains(words), "{load}{factors}{rest}: {said}");
    }
}

#[test]
fn steps_that_are_implied_keep_their_names() {
    let steps = |listed: &str, rest: &str| -> Result<Vec<String>, String> {
        let text = format!(
            "title = \"Steps\"\ndevice = {{ loop = {{ size = \"1 GiB\" }} }}\n\
             [factor.filesystem]\n\"ext4\" = {{ type = \"ext4\" }}\n\
             {listed}[[step]]\nsync = {{}}\nshow = [\"time\"]\n[[step]]\nunmount = {{}}\n[[step]]\nmount = {{}}\n{rest}"
        );
        let plan = compile(&text, &Overrides::default()).map_err(|wrong| wrong.to_string())?;
        Ok(plan.cells[0].steps.iter().map(|step| step.name.clone()).collect())
    };
    for listed in ["", "[[step]]\nmkfs = {}\n", "[[step]]\nmount = {}\n", "[[step]]\nmkfs = {}\n[[step]]\nmount = {}\n"]
    {
        let names = steps(listed, "[[step]]\nunmount = {}\n[[step]]\nmount = {}\n").expect(listed);
        assert_eq!(names, ["mkfs", "mount", "sync", "unmount", "mount 2", "unmount 2", "mount 3"], "{listed}");
    }
    for name in ["mkfs", "mount"] {
        let said = steps("", &format!("name = \"{name}\"\n")).expect_err(name);
        assert!(said.contains(&format!("a step named `{name}` is there already")), "{said}");
    }
    // Where it is listed under another name, its usual one is free.
    let names =
        steps("[[step]]\nmount = {}\nname = \"first\"\n", "name = \"mount\"\n").expect("no name is there twice");
    assert_eq!(names, ["mkfs", "first", "sync", "unmount", "mount"]);
}

#[test]
fn a_tree_goes_into_what_can_hold_one_from_the_start() {
    let said = |kind: &str, tree: &str| {
        let level = format!("\"ext4\" = {{ type = \"{kind}\", tree = \"{tree}\" }}");
        let text = RIGHT.replacen("\"ext4\" = { type = \"ext4\" }", &level, 1);
        assert_ne!(text, RIGHT);
        compile(&text, &Overrides::default()).map_err(|said| said.to_string())
    };
    let plan = said("erofs", "/srv/tree").expect("erofs is made of one");
    assert_eq!(plan.cells[0].filesystem.tree.as_deref(), Some("/srv/tree"));
    assert!(said("xfs", "/srv/tree").expect_err("mkfs.xfs cannot").contains("copy-in"));
    assert!(said("squashfs", "tree").expect_err("relative").contains("absolute path"));
    assert!(said("squashfs", "{sourcs}").expect_err("misspelt").contains("`{source}`"));
}

#[test]
fn warnings_of_a_profile_do_not_get_lost() {
    let loader = |name: &str| Ok(read(name)?.replace("num_dirs=2", "num_dirs=2\ncreate_wait=1"));
    let source = Source::new("study.toml", RIGHT);
    let (plan, warnings) =
        study::compile_with_warnings(&source, &loader, &types(), &Overrides::default()).expect("a warning is no error");
    assert_eq!(plan.cells.len(), 4);
    let said = warnings.expect("an unknown keyword").to_string();
    assert!(said.starts_with("warning: unknown keyword `create_wait`"), "{said}");
}

#[test]
fn words_in_braces_are_filled_in() {
    let text = r#"
title = "Commands"
device = { zram = { size = "1 GiB" } }
variables = { tree = "{source}", times = 3 }
factor = { filesystem = { "ext4" = { type = "ext4" } }, threads = [2, 8] }
quick = { variables = { tree = "{source:500}" } }

[[step]]
copy-in = { source = "{tree}", target = "tree.tar" }

[[step]]
name = "build"
command = { shell = true, run = "make -C {mount} -j{threads} | awk '{print $1}' # {times}" }
show = "time"
"#;
    let mut plan = compile(text, &Overrides::default()).expect("it is right");
    assert_eq!(study::source_trees(&plan), [SourceTree::Kernel]);
    let with = |quick: bool, set: &[(&str, &str)]| {
        let variables = set.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        compile(text, &Overrides { quick, variables, ..Overrides::default() })
    };
    let quick = with(true, &[("tree", "{source:7}"), ("tree", "{source:9}")]).expect("the last one counts");
    assert_eq!(study::source_trees(&quick), [SourceTree::Made { files: 9 }]);
    let said = with(false, &[("tre", "x")]).expect_err("no such variable").to_string();
    assert!(said.contains("--set tre") && said.contains("did you mean `tree`?"), "{said}");
    study::put_source_trees(&mut plan, |_| "/usr/src/linux.tar.xz".into());
    let actions: Vec<&StepAction> = plan.cells[1].steps[2..].iter().map(|step| &step.action).collect();
    let StepAction::CopyIn { source, .. } = actions[0] else { panic!("a copy") };
    let StepAction::Command { argv, .. } = actions[1] else { panic!("a command") };
    assert_eq!(source, "/usr/src/linux.tar.xz");
    assert_eq!(argv, &["make -C {mount} -j8 | awk '{print $1}' # 3"]);

    let quick = compile(text, &Overrides { quick: true, ..Overrides::default() }).expect("it is right");
    assert_eq!(study::source_trees(&quick), [SourceTree::Made { files: 500 }]);
}

/// Where the size of the device is known, nobody has to wait for a trial to learn that files do not fit.
#[test]
fn files_have_to_fit_on_the_device() {
    let study = |files: &str| {
        format!(
            "title = \"Full\"\ndevice = {{ loop = {{ size = \"1 GiB\" }} }}\n[factor]\nfilesystem.ext4 = {{ type = \"ext4\" }}\n\
             total-size = [\"512 MiB\", \"{files}\"]\n[[step]]\n\
             load = {{ sysbench = \"--file-test-mode=rndrd --file-num=4 --time=1\" }}\nshow = \"operations per second\"\n"
        )
    };
    let compiled = compile(&study("1 GiB"), &Overrides::default());
    assert!(compiled.is_ok(), "{}", compiled.expect_err("it is not"));
    let said = compile(&study("2 GiB"), &Overrides::default()).expect_err("too much").to_string();
    assert!(said.contains("do not fit on the device") && said.contains("study.toml:5:26"), "{said}");
    assert!(said.contains("they take 2 GiB, and the device has 1 GiB"), "{said}");
    let larger = Overrides { device_size: Some(4 << 30), ..Overrides::default() };
    assert!(compile(&study("2 GiB"), &larger).is_ok());
    let aged = "{ type = \"ext4\", age = { profile = \"agrawal\", utilization = \"50 %\", overwrites = 1 } }";
    let of_aged = study("2 GiB").replace("{ type = \"ext4\" }", aged);
    let said = compile(&of_aged, &Overrides::default()).expect_err("too much").to_string();
    assert!(said.contains("do not fit on the device"), "{said}");
}

#[test]
fn what_sysbench_runs_on_is_prepared() {
    let compiled = |steps: &str| {
        let head = "title = \"s\"\ndevice = { loop = { size = \"8 GiB\" } }\n[factor]\nfilesystem.ext4 = { type = \"ext4\" }\n";
        compile(&format!("{head}{steps}"), &Overrides::default()).map_err(|wrong| wrong.to_string())
    };
    let step = |words: &str| format!("[[step]]\nload = {{ sysbench = \"{words} --file-test-mode=rndrw\" }}\n");
    let said = compiled(&step("fileio run")).expect_err("its files are missing");
    assert!(said.contains("`run` uses files that an earlier step prepared, and none does"), "{said}");
    assert!(said.contains("leave out `run`, and the step does both") && said.contains("study.toml:6:"), "{said}");
    for right in [
        step("fileio"),
        step("sysbench fileio"),
        step("fileio prepare") + &step("fileio run"),
        "[[step]]\ncommand = [\"sysbench\", \"fileio\", \"prepare\"]\n".to_owned() + &step("fileio run"),
    ] {
        let compiled = compiled(&right);
        assert!(compiled.is_ok(), "{right}: {}", compiled.expect_err("it is not"));
    }
}

#[test]
fn a_study_too_large_is_refused_unread() {
    let text = format!("title = \"{}\"", "x".repeat(study::MAXIMUM_BYTES));
    let said = compile(&text, &Overrides::default()).expect_err("too large").to_string();
    assert!(said.starts_with("error: study.toml: the study has 1048586 bytes; the limit is 1 MiB"), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_makes_it_panic(start in 0usize..RIGHT.len(), length in 0usize..60, insert in "[a-z\"\\[\\]{}=,.0-9 \\n\u{1b}é-]{0,20}") {
        let end = (start + length).min(RIGHT.len());
        let text = format!("{}{insert}{}", &RIGHT[..start], &RIGHT[end..]);
        if let Err(diagnostics) = compile(&text, &Overrides { quick: length % 2 == 0, ..Overrides::default() }) {
            prop_assert!(diagnostics.errors() > 0);
            prop_assert!(!diagnostics.to_string().is_empty());
        }
    }
}

#[test]
fn a_metric_of_a_job_with_clones_is_answered_with_that_of_the_load() {
    let job = "[global]\nsize=1m\n[data]\nrw=randrw\nnumjobs=2\n[wal]\nrw=write\n";
    let study = "title = \"s\"\ndevice = { loop = { size = \"8 GiB\" } }\n[factor]\nfilesystem.ext4 = { type = \"ext4\" }\n\
                 [[step]]\nload = { fio = \"two.fio\" }\nshow = \"data read latency p99\"\n";
    let loader = |name: &str| if name == "two.fio" { Ok(job.to_owned()) } else { Err("it is not there".to_owned()) };
    let compiled = study::compile(&Source::new("study.toml", study), &loader, &types(), &Overrides::default());
    let said = compiled.expect_err("it is unknown").to_string();
    assert!(said.contains("did you mean `read latency p99`?") && !said.contains("did you mean `data.0"), "{said}");
}

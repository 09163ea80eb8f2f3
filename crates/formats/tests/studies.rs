//! Every study that comes with fstone compiles, whole and quick, and says what it should.

use fstone_formats::{
    Source,
    study::{self, Overrides},
};
use fstone_model::{
    Plan,
    study::{FilesystemType, Step, StepAction},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

fn types() -> Vec<FilesystemType> {
    fstone_lab::filesystem::types().collect()
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../studies")
}

fn compile(name: &str, overrides: &Overrides) -> Plan {
    compile_in(&directory(), name, overrides)
}

fn compile_in(directory: &Path, name: &str, overrides: &Overrides) -> Plan {
    let load = |file: &str| fs::read_to_string(directory.join(file)).map_err(|error| error.to_string());
    let source = Source::new(name, load(name).expect("the study is there"));
    study::compile(&source, &load, &types(), overrides).unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("studies/ is part of the source");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8")).collect();
    names.retain(|name| name.ends_with(".toml"));
    names.sort();
    names
}

#[test]
fn all_compile() {
    let names = names(&directory());
    assert!(!names.is_empty());
    for name in names {
        let full = compile(&name, &Overrides::default());
        let quick = compile(&name, &Overrides { quick: true, ..Overrides::default() });
        assert!(
            !full.about.is_empty() && full.expected_duration.is_some() && quick.expected_duration.is_some(),
            "{name}"
        );
        assert!(full.baseline.is_some() && quick.baseline.is_some(), "{name}: no baseline");
        assert!(quick.cells.len() <= full.cells.len(), "{name}");
        for plan in [&full, &quick] {
            for cell in &plan.cells {
                assert!(
                    matches!(cell.steps[0].action, StepAction::Mkfs)
                        && matches!(cell.steps[1].action, StepAction::Mount)
                );
                // ext4's lazy initialisation would write into the measurement.
                let is_lazy =
                    cell.filesystem.kind == "ext4" && !cell.filesystem.mkfs.join(" ").contains("lazy_itable_init=0");
                assert!(!is_lazy, "{name}: {}", cell.label);
            }
        }
        if let Some(published) = &full.published {
            let has = |cell: &str| full.cells.iter().any(|known| known.label == cell);
            assert!(published.figures.iter().all(|figure| has(&figure.cell)), "{name}");
        }
    }
}

/// Those that are run by their path.
#[test]
fn further_ones_compile() {
    let directory = directory().join("more");
    let names = names(&directory);
    assert!(!names.is_empty());
    for name in names {
        for quick in [false, true] {
            let plan = compile_in(&directory, &name, &Overrides { quick, ..Overrides::default() });
            assert!(!plan.about.is_empty() && plan.expected_duration.is_some() && plan.baseline.is_some(), "{name}");
        }
    }
    let quick = Overrides { quick: true, ..Overrides::default() };
    let mut read_only = compile_in(&directory, "read-only.toml", &quick);
    assert_eq!(study::source_trees(&read_only), [study::SourceTree::Made { files: 2000 }]);
    study::put_source_trees(&mut read_only, |_| "/tree.tar.gz".into());
    assert!(read_only.cells.iter().all(|cell| cell.filesystem.tree.as_deref() == Some("/tree.tar.gz")));
}

fn outline(plan: &Plan) -> String {
    let mut text = format!(
        "{}: {}\nrepeats {:?}, {:?}, seed {}, baseline {:?}\n",
        plan.study, plan.title, plan.repeats, plan.order, plan.seed, plan.baseline
    );
    for column in &plan.columns {
        text.push_str(&format!("column {:?}: {} of {}\n", column.header, column.metric, column.step));
    }
    for cell in &plan.cells {
        let filesystem = &cell.filesystem;
        text.push_str(&format!(
            "{} {:?}: mkfs.{} {} | -o {} | {}\n",
            cell.index,
            cell.label,
            filesystem.kind,
            filesystem.mkfs.join(" "),
            filesystem.mount,
            cell.device.describe()
        ));
    }
    for Step { name, action, limit, .. } in &plan.cells[0].steps {
        let what = match action {
            StepAction::Load(load) => {
                let files: Vec<_> = load.filesets.iter().map(|set| (set.amount, set.directories, &set.size)).collect();
                format!("load {}: {} threads, {:?}, {files:?}", load.name, load.threads(), load.time_limit())
            }
            action => format!("{action:?}"),
        };
        text.push_str(&format!("step {name:?}: {what}, at most {limit:?}\n"));
    }
    for figure in plan.published.iter().flat_map(|published| &published.figures) {
        let note = figure.note.as_deref().unwrap_or_default();
        text.push_str(&format!("published {:?}, {}: {:?} {note}\n", figure.cell, figure.column, figure.value));
    }
    text
}

#[test]
fn small_file_means_what_was_published() {
    let plan = compile("small-file.toml", &Overrides::default());
    insta::assert_snapshot!("small-file", outline(&plan));
    let quick = compile("small-file.toml", &Overrides { quick: true, ..Overrides::default() });
    insta::assert_snapshot!("small-file-quick", outline(&quick));
    assert_eq!(quick.attachments, plan.attachments);
    assert_eq!(quick.attachments[0].0, "small-file.ffsb");
}

const SPOOL: &str = r#"
name = "spool"
[[fileset]]
name = "mail"
directory = "mail"
files = 100
size = "4 KiB"
[[phase]]
name = "work"
stop = { time = "5 s" }
[[phase.group]]
name = "readers"
threads = 4
rate = 100
mix = [{ read = { block = "4 KiB" }, weight = 3 }, { stat = {}, weight = 1 }]
[[phase.group]]
name = "deliverers"
threads = 2
sequence = [{ create = { block = "4 KiB" } }]
"#;

fn spool(show: &str) -> (Plan, String) {
    let text = format!(
        "title = \"Spool\"\ndevice = {{ loop = {{ size = \"1 GiB\" }} }}\n[factor.filesystem]\n\"ext4\" = {{ type = \"ext4\" }}\n\
         [[step]]\nload = {{ workload = \"spool.workload\" }}\n{show}\n"
    );
    let load = |_: &str| Ok(SPOOL.to_owned());
    let source = Source::new("spool.toml", text);
    let (plan, warnings) = study::compile_with_warnings(&source, &load, &types(), &Overrides::default())
        .unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    (plan, warnings.map_or_else(String::new, |warnings| warnings.to_string()))
}

#[test]
fn a_mixed_load_has_a_rate_for_each_group() {
    let shown = |plan: &Plan| plan.columns.iter().map(|column| column.metric.clone()).collect::<Vec<_>>();
    let (unasked, warnings) = spool("");
    assert_eq!(shown(&unasked), ["readers operations per second", "deliverers operations per second"]);
    assert_eq!(warnings, "");
    let (asked, warnings) = spool(
        "show = [\"create latency p99.9\", \"readers latency max\", \"stat operations per second\", \"read latency mean\"]",
    );
    assert_eq!((asked.columns.len(), warnings.as_str()), (4, ""));
    let (_, warnings) = spool("show = \"operations per second\"");
    assert!(warnings.contains("some groups of this load are paced and others are not"), "{warnings}");
    assert!(warnings.contains("`readers operations per second`, `deliverers operations per second`"), "{warnings}");
}

fn wide(levels: usize, steps: usize) -> Result<Plan, fstone_formats::Diagnostics> {
    let listed = |text: &dyn Fn(usize) -> String| (1..=levels).map(text).collect::<Vec<_>>().join(", ");
    let step = |number: usize| {
        let show = if number == 0 { "show = [\"time\"]\n" } else { "" };
        format!("[[step]]\nname = \"load {number}\"\nload = {{ workload = \"one.workload\" }}\n{show}")
    };
    let study = format!(
        "title = \"wide\"\ndevice = {{ loop = {{ size = \"1 GiB\" }} }}\n[factor]\nfilesystem.ext4 = {{ type = \"ext4\" }}\n\
         filesystem.xfs = {{ type = \"xfs\" }}\nthreads = [{}]\nblock-size = [{}]\n{}",
        listed(&|level| level.to_string()),
        listed(&|level| format!("\"{} KiB\"", 4 * level)),
        (0..steps).map(step).collect::<String>(),
    );
    let load = "name = \"one\"\n[[fileset]]\nname = \"files\"\nfiles = 10\nsize = \"1 MiB\"\n[[phase]]\nname = \"read\"\n\
                stop = { time = \"1 s\" }\n[[phase.group]]\nname = \"readers\"\nthreads = 1\nmix = [{ read = { block = \"4 KiB\" } }]\n";
    study::compile(&Source::new("wide.toml", study), &|_| Ok(load.to_owned()), &types(), &Overrides::default())
}

#[test]
fn cells_that_do_the_same_share_their_load() {
    let plan = wide(5, 40).unwrap_or_else(|wrong| panic!("{wrong}"));
    let steps: Vec<&Step> = plan.cells.iter().flat_map(|cell| &cell.steps).collect();
    let loads = steps.iter().filter_map(|step| match &step.action {
        StepAction::Load(load) => Some(std::sync::Arc::as_ptr(load)),
        _ => None,
    });
    let loads: Vec<_> = loads.collect();
    assert_eq!(loads.len(), 2 * 5 * 5 * 40);
    let distinct: std::collections::HashSet<_> = loads.into_iter().collect();
    assert_eq!(distinct.len(), 5 * 5, "one for each combination of threads and block size");
}

#[test]
fn a_plan_has_a_bounded_length() {
    let wrong = wide(70, 190).expect_err("9,800 cells with 190 loads each").to_string();
    assert!(wrong.contains("the plan of these 9800 combinations is longer than 64 MiB"), "{wrong}");
    wide(70, 3).unwrap_or_else(|wrong| panic!("{wrong}"));
}

/// The two tests beside this one, in a process that may not have more.
#[test]
fn the_longest_plans_are_made_in_half_a_gibibyte() {
    let tests = "exec \"$0\" --exact a_plan_has_a_bounded_length variables_do_not_blow_up_commands --test-threads=1";
    let limited = format!("ulimit -v {} && {tests}", 512 << 10);
    let output = std::process::Command::new("sh")
        .args(["-c", &limited])
        .arg(std::env::current_exe().expect("this is running"))
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("2 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn variables_do_not_blow_up_commands() {
    let study = format!(
        "title = \"long\"\ndevice = {{ loop = {{ size = \"1 GiB\" }} }}\nvariables = {{ a = \"{}\" }}\n[factor]\nfilesystem.ext4 = {{ type = \"ext4\" }}\n\
         [[step]]\ncommand = [\"echo\", \"{}\"]\nshow = [\"time\"]\n",
        "a".repeat(500_000),
        "{a}".repeat(100_000),
    );
    let wrong =
        study::compile(&Source::new("long.toml", study), &|_| Err(String::new()), &types(), &Overrides::default());
    let wrong = wrong.expect_err("50 GB of words");
    let said: Vec<&str> = wrong.iter().map(|(_, wrong)| wrong.message.as_str()).collect();
    assert_eq!(said, ["with their variables, the commands are longer than 1 MiB"]);
}

//! Pages for everybody: nothing in them tells whose machine it was, and no figure of one machine is held against another's.

use crate::{figures, fixture, pages::check_html};
use fstone_model::{
    Better, Dataset, Note, Outcome, Unit,
    age::{Age, Class, Depth, OldImage, Past, Profile},
    dataset::BlockOrigin,
    load::{CallReport, ErrorReport, GroupFsyncs, OperationReport, OwnSeries, PhaseReport, ThreadReport},
    outcome::Reason,
    output::{Find, From, OutputFigure, Several},
    own::OwnFilesystem,
    ranks::{NodeReport, PhaseMeeting, RankOutcome, RankPhase, RankReport, Ranked},
    result::{CommandRecord, Perturbation},
    service::{Ready, Service},
    study::{DeviceSpec, KernelSpec, Step, StepAction},
    workload,
};
use fstone_report::publish::{Gallery, INDEX, Kind, Page, Show, anonymous, is_name, texts_of};
use proptest::prelude::*;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    sync::{Arc, LazyLock},
    time::Duration,
};

const ALL: [Kind; 7] =
    [Kind::Hosts, Kind::Paths, Kind::Study, Kind::Commands, Kind::Messages, Kind::Note, Kind::Machine];

fn show(kinds: &[Kind]) -> Show {
    Show { kinds: kinds.to_vec(), is_ours: |_| false }
}

const SECRETS: [&str; 15] = [
    "mallory",
    "moonbase",
    "S4EWNX0N123456",
    "wwn-0x5002538e40a1b2c3",
    "4f2c1a7e-0b1d-4c55-9d3e-0123456789ab",
    "192.168.7.12",
    "52:54:00:12:34:56",
    "secret project",
    "vg-mallory",
    "LVM-abcdefgh12345678",
    "/srv/",
    "far-node",
    "52-54-00-12-34-57",
    "acme",
    "merger",
];

/// A run on a machine of this name, full of what tells.
fn telling(host: &str, factor: f64, hour: u64) -> Dataset {
    let mut dataset = fixture::small_file(10);
    let run = &mut dataset.run;
    run.started_unix_ns += hour * 3_600_000_000_000;
    run.identity = format!("{}@{host}", run.started_unix_ns);
    run.command = ["/home/mallory/bin/fstone", "--store", "/home/mallory/secret project/x.db", "run", "small-file"]
        .map(str::to_owned)
        .to_vec();
    run.note = Some(Note::try_from(format!("before mallory's patch on {host}")).expect("a line"));
    run.plan.source += "# cp /srv/trees/linux.tar.xz here; disk serial = \"S4EWNX0N123456\"\n# as root@192.168.7.12\n";
    run.plan
        .attachments
        .push(("notes.txt".into(), "Serial Number: S4EWNX0N123456\nLU WWN: wwn-0x5002538e40a1b2c3\n".into()));
    let inventory = &mut run.inventory;
    inventory.host = host.to_owned();
    inventory.kernel_command_line =
        format!("root=UUID=4f2c1a7e-0b1d-4c55-9d3e-0123456789ab systemd.hostname={host} mitigations=off");
    inventory.mounts = "22 1 0:20 / /home/mallory rw - nfs far-node:/home rw".into();
    inventory.settings.push(("network".into(), "52:54:00:12:34:56 52-54-00-12-34-57 192.168.7.12".into()));
    if let Some(device) = &mut inventory.device {
        device.name = "mapper/vg-mallory".into();
        device.queue.push(("dm/name".into(), "vg-mallory".into()));
        device.queue.push(("dm/uuid".into(), "LVM-abcdefgh12345678".into()));
        device.queue.push(("loop/backing_file".into(), "/home/mallory/secret project/image".into()));
    }
    for trial in &mut dataset.trials {
        trial.warnings.push(format!("{host}: /home/mallory/secret project/image is slow"));
        trial.warnings.push(format!(
            "cp: /home/mallory/merger/plans, /mnt/{host}/merger/x and /scratch/S4EWNX0N123456/merger are full"
        ));
        trial.effective.superblock.push(("UUID".into(), "4f2c1a7e-0b1d-4c55-9d3e-0123456789ab".into()));
        for step in &mut trial.steps {
            for figure in &mut step.figures {
                figure.value *= factor;
            }
            for command in &mut step.commands {
                command.argv.push("/home/mallory/secret project/mnt".into());
                command.argv.extend(["if=trees/acme", "/usr/local/acme/bin/x", "../acme"].map(str::to_owned));
                command.output_tail =
                    "no such disk: /dev/disk/by-id/ata-SSD_S4EWNX0N123456, /etc/acme/x, ./acme/y, trees/acme.tar"
                        .into();
            }
        }
    }
    dataset
}

fn published(runs: &[Dataset], kinds: &[Kind]) -> Vec<Page> {
    let gallery = Gallery::of(runs, show(kinds)).expect("valid");
    let mut pages: Vec<Page> = (0..runs.len()).map(|place| gallery.page(place, &runs[place]).expect("valid")).collect();
    assert!(pages.iter().enumerate().all(|(place, (name, _))| name == gallery.name(place)));
    pages.extend(gallery.pages());
    pages
}

fn two_machines() -> Vec<Dataset> {
    let mut later = telling("moonbase", 10.0, 5);
    let inventory = &mut later.run.inventory;
    (inventory.cpus, inventory.cpu_model) = (64, "Another CPU".into());
    let first = telling("mallory-laptop.example.org", 1.0, 0);
    let far = BlockOrigin { block: 1, machine: "far-node".into(), inventory: later.run.inventory.clone() };
    let mut shared = telling("mallory-laptop.example.org", 1.0, 9);
    shared.run.blocks.push(far);
    vec![later, first, shared]
}

#[test]
fn nothing_tells_whose_machine_it_was() {
    let pages = published(&two_machines(), &[]);
    assert_eq!(pages.len(), 3 + 1 + 1, "{:?}", pages.iter().map(|(name, _)| name).collect::<Vec<_>>());
    for (name, page) in &pages {
        check_html(page);
        for secret in SECRETS {
            let at = page.to_ascii_lowercase().find(&secret.to_ascii_lowercase());
            let near = at.map(|at| page[at.saturating_sub(80)..].chars().take(160).collect::<String>());
            assert_eq!((name, secret, near.as_deref()), (name, secret, None));
            assert!(!name.contains(secret));
        }
    }
    let (_, run) = pages.iter().find(|(name, _)| name.starts_with("small-file-")).expect("a run");
    assert!(run.contains("machine 2") && run.contains("mitigations=off") && run.contains("href=\"index.html\""));
}

#[test]
fn what_was_asked_for_is_shown() {
    let pages = published(&two_machines(), &ALL);
    let all: String = pages.into_iter().map(|(_, page)| page).collect();
    for secret in ["mallory-laptop.example.org", "/home/mallory", "S4EWNX0N123456", "192.168.7.12", "far-node"] {
        assert!(all.contains(secret), "{secret}");
    }
}

#[test]
fn machines_share_ratios_alone() {
    let runs = two_machines();
    let pages = published(&runs, &[]);
    let (_, ratios) = pages.iter().find(|(name, _)| name == "study-small-file.html").expect("ratios");
    let (_, index) = pages.last().expect("the index is last");
    let row = ratios.split("<tr>").find(|row| row.contains(">ext4 nodelalloc<")).expect("a row");
    let cells: Vec<&str> = row.split("<td class=\"num\">").skip(1).collect();
    assert_eq!(cells.len(), 3, "a column per run: {row}");
    assert!(cells[0].contains('×') && cells[0].starts_with(cells[1].split("<span").next().expect("a ratio")), "{row}");
    for dataset in &runs {
        let analysis = fstone_analysis::Analysis::of(dataset);
        for (row, column) in (0..analysis.rows.len()).flat_map(|row| (0..analysis.columns.len()).map(move |c| (row, c)))
        {
            let Some(mean) = analysis.rows[row].entries[column].mean() else { continue };
            let told = analysis.columns[column].scale.number(mean);
            let shared = [ratios, index].iter().any(|page| page.contains(&told));
            assert!(told.len() < 5 || !shared, "{told} is a figure of a machine");
        }
    }
}

#[test]
fn addresses_are_of_the_run_itself() {
    let mut runs = vec![telling("a-host", 1.0, 0), telling("b-host", 1.0, 0)];
    for (run, number) in runs.iter_mut().zip(1..) {
        run.run.identity = format!("{number}f2c1a7e-0b1d-4c55-9d3e-0123456789ab");
    }
    let gallery = Gallery::of(&runs, show(&[])).expect("valid");
    assert_eq!([gallery.name(0), gallery.name(1)], ["small-file-1f2c1a7e.html", "small-file-2f2c1a7e.html"]);
    runs.remove(0);
    let gallery = Gallery::of(&runs, show(&[])).expect("valid");
    assert_eq!(gallery.name(0), "small-file-2f2c1a7e.html", "whatever else is published");
}

#[test]
fn a_run_without_a_figure_says_so() {
    let mut run = telling("a-host", 1.0, 0);
    run.trials.clear();
    let pages = published(&[run], &[]);
    let (_, index) = pages.last().expect("the index is last");
    assert!(index.contains("No trial completed."), "{index}");
}

#[test]
fn ratios_of_few_trials_are_marked() {
    let ratios = |runs: &[Dataset]| {
        let pages = published(runs, &[]);
        pages.into_iter().find(|(name, _)| name == "study-small-file.html").expect("ratios").1
    };
    let whole = telling("a-host", 1.0, 0);
    let mut few = whole.clone();
    few.trials.retain(|trial| trial.id.repetition < 1);
    assert!(!ratios(&[whole]).contains('†'));
    let few = ratios(&[few]);
    assert!(few.contains("†<span") && few.contains("† marks ratios from too few trials"), "{few}");
}

#[test]
fn runs_that_did_other_work_are_not_set_side_by_side() {
    let (one, mut other) = (telling("a-host", 1.0, 0), telling("b-host", 1.0, 1));
    for cell in &mut other.run.plan.cells {
        cell.steps.truncate(2);
    }
    let pages = published(&[one, other], &[]);
    let (_, ratios) = pages.iter().find(|(name, _)| name.starts_with("study-")).expect("ratios");
    assert!(ratios.contains("Set 1: ") && ratios.contains("Set 2: "), "two sets of one run each");
    let mut headings: Vec<&str> =
        ratios.split("<h3 ").skip(1).filter_map(|rest| rest.split_once('>')?.1.split("</h3>").next()).collect();
    let all = headings.len();
    headings.sort_unstable();
    headings.dedup();
    assert!(all > 1 && headings.len() == all, "each table has a name of its own");
}

#[test]
fn the_index_counts_pairs_that_were_compared_and_names_losses() {
    let found = |dataset: &Dataset| {
        let gallery = Gallery::of(std::slice::from_ref(dataset), show(&[])).expect("valid");
        gallery.pages().pop().expect("the index is last").1
    };
    let mut single = fixture::small_file(1);
    single.trials.retain(|trial| trial.id.repetition == 0);
    assert!(found(&single).contains("too few trials can tell rows apart"), "{}", found(&single));
    single = crate::compare::in_virtual_time(single, "2 us");
    let index = found(&single);
    assert!(index.contains("exact for one seed") && !index.contains("pairs of rows"), "{index}");
    // With guests it is known what these move; one is too few.
    let mut guest = single.clone();
    guest.trials.retain(|trial| trial.id.cell < 2);
    let first = guest.trials.clone();
    for trial in &mut guest.trials {
        trial.id = Perturbation { number: 0 }.trial(trial.id.cell);
    }
    guest.trials.splice(0..0, first);
    let index = found(&guest);
    assert!(index.contains("too few trials can tell rows apart") && !index.contains("is not known"), "{index}");
    let figure = single.trials[0].steps.iter_mut().flat_map(|step| &mut step.figures).next().expect("a figure");
    (figure.metric, figure.value) = ("promises lost".into(), 3.0);
    (figure.unit, figure.better) = (Unit::Count, Better::Lower);
    assert!(found(&single).contains("1 row lost or damaged data"), "{}", found(&single));
}

#[test]
fn the_index_leads_to_every_page() {
    let pages = published(&two_machines(), &[]);
    let (_, index) = pages.last().expect("the index is last");
    for (name, page) in &pages {
        assert!(name == INDEX || index.contains(&format!("href=\"{name}\"")), "{name}");
        assert!(name == INDEX || page.contains("href=\"index.html\""), "{name} leads back");
    }
    assert!(index.contains("compare only ratios"));
    for section in ["id=\"machines\"", "id=\"kernels\"", "id=\"study-1\""] {
        assert!(index.contains(section) || section.contains("kernels"), "{section}");
    }
    for (name, page) in pages {
        let kind = if name == INDEX {
            "index"
        } else if name.starts_with("study-") {
            "ratios"
        } else {
            "run"
        };
        fs::write(figures::gallery().join(format!("published-{kind}.html")), page).expect("the gallery can be written");
    }
}

fn full() -> Dataset {
    let mut dataset = fixture::small_file(3);
    let text = || String::from("text");
    let list = || vec![text(), text()];
    let pairs = || vec![("read_ahead_kb".to_owned(), text())];
    let run = &mut dataset.run;
    run.note = Some(Note::try_from(text()).expect("a line"));
    run.blocks = vec![BlockOrigin { block: 1, machine: text(), inventory: run.inventory.clone() }];
    if let Some(device) = &mut run.inventory.device {
        device.model = Some(text());
    }
    run.plan.compare = Some("filesystem".into());
    if let Some(published) = &mut run.plan.published {
        published.model = Some(text());
    }
    for note in run.plan.published.iter_mut().flat_map(|published| &mut published.figures) {
        note.note = Some(text());
    }
    let own = OwnFilesystem {
        make: vec![text(), "x={device}".into()],
        mount: list(),
        unmount: list(),
        check: list(),
        remove: list(),
        packages: list(),
        clients: 1,
    };
    let devices = [
        DeviceSpec::Loop {
            size_bytes: 1 << 30,
            direct_io: false,
            sector_bytes: 512,
            directory: Some(text()),
            in_memory: false,
            model: Some(text()),
        },
        DeviceSpec::Block { path: text() },
        DeviceSpec::Directory { path: Some(text()) },
    ];
    let kernels = [KernelSpec::Uml(text()), KernelSpec::Qemu(text()), KernelSpec::Exact(text())];
    for (cell, (device, kernel)) in run.plan.cells.iter_mut().zip(devices.into_iter().zip(kernels)) {
        cell.filesystem.tree = Some(text());
        cell.filesystem.own = Some(Arc::new(own.clone()));
        cell.queue = pairs();
        (cell.device, cell.kernel) = (device, kernel);
    }
    let cell = &mut run.plan.cells[3];
    cell.device = DeviceSpec::Scratch { directory: Some(text()) };
    cell.filesystem.own = Some(Arc::new(OwnFilesystem { make: list(), ..own }));
    let limit = Duration::from_secs(1);
    let figure = OutputFigure {
        name: text(),
        from: From::File(text()),
        find: Find::Match(text()),
        several: Several::Last,
        unit: Unit::Count,
        scale: 1.0,
        better: Better::Lower,
    };
    let service = Service {
        name: text(),
        make: list(),
        start: list(),
        ready: Ready::Command(list()),
        stop: list(),
        log: Some(text()),
        user: Some(text()),
        limit,
    };
    let class = || vec![Class { up_to: 4096.0, weight: 1.0 }];
    let depths = vec![Depth { depth: 1, weight: 1.0, directories: 1 }];
    let profile = Profile { name: text(), sizes: class(), ages: class(), depths, overwritten: None, appended: None };
    let age = Age { profile, utilization: 0.8, overwrites: 10.0, compressible: 0.0, seed: None };
    let image = OldImage { file: text(), holds: text(), size_bytes: 1 << 20, modified_ns: 7 };
    let actions = [
        StepAction::Age(Arc::new(age.into())),
        StepAction::Age(Arc::new(Past::Image(image))),
        StepAction::Load(Arc::new(load())),
        StepAction::Command { argv: list(), shell: false, success: vec![0], figures: vec![figure] },
        StepAction::Service(Arc::new(service)),
        StepAction::CopyIn { source: text(), target: text() },
    ];
    cell.steps.extend(actions.into_iter().zip(0..).map(|(action, number)| Step {
        name: format!("step {number}"),
        action,
        limit,
        background: false,
    }));
    let reason = || Reason::new(text(), text()).with_cure(text());
    let outcomes = [
        Outcome::Refused(reason()),
        Outcome::Failed(reason()),
        Outcome::Hung(reason()),
        Outcome::Crashed(reason()),
        Outcome::Skipped(reason()),
    ];
    // One trial with all there is of a load; more would only take time.
    let whole = dataset.trials.iter().position(|trial| trial.steps.iter().any(|step| step.load.is_some()));
    dataset.trials.swap(0, whole.expect("one with a load"));
    dataset.trials.truncate(2 + outcomes.len());
    for (trial, outcome) in dataset.trials.iter_mut().skip(2).zip(outcomes) {
        trial.outcome = outcome;
    }
    for (trial, number) in dataset.trials.iter_mut().zip(0..) {
        (trial.id.repetition, trial.position) = (number, number);
        trial.warnings = list();
        trial.steps.truncate(if number == 0 { 4 } else { 1 });
    }
    let trial = &mut dataset.trials[0];
    let step = trial.steps.iter_mut().find(|step| step.load.is_some()).expect("one with a load");
    step.commands = vec![CommandRecord { argv: list(), status: Some(0), duration_ns: 1, output_tail: text() }];
    let report = step.load.as_mut().expect("a load");
    report.per_thread = vec![ThreadReport { group: text(), ..ThreadReport::default() }];
    report.phases = vec![PhaseReport { name: text(), groups: list(), ..PhaseReport::default() }];
    report.operations.push(OperationReport {
        phase: text(),
        group: text(),
        name: text(),
        ..OperationReport::default()
    });
    report.group_fsyncs = vec![GroupFsyncs { phase: text(), group: text(), ..GroupFsyncs::default() }];
    report.calls.push(CallReport { group: text(), call: text(), ..CallReport::default() });
    report.own_series = vec![OwnSeries { group: text(), name: text(), ..OwnSeries::default() }];
    let (group, operation, call) = (text(), text(), text());
    let error = ErrorReport { group, operation, call, path: text(), errno: 28, text: text(), count: 1 };
    report.errors = vec![error];
    report.warnings = list();
    report.series.truncate(2);
    let outcomes = [
        RankOutcome::Failed { words: text() },
        RankOutcome::Died { words: text() },
        RankOutcome::Hung { words: text() },
        RankOutcome::Interrupted { words: text() },
    ];
    let rank = |outcome| RankReport {
        host: text(),
        outcome,
        phases: vec![RankPhase { name: text(), ..RankPhase::default() }],
        warnings: list(),
        ..RankReport::default()
    };
    report.ranks = Some(Box::new(Ranked {
        ended_early: Some(text()),
        phases: vec![PhaseMeeting { name: text(), ..PhaseMeeting::default() }],
        per_rank: outcomes.into_iter().map(rank).collect(),
        per_node: vec![NodeReport { host: text(), ..NodeReport::default() }],
        ..Ranked::default()
    }));
    dataset
}

fn load() -> workload::Workload {
    use workload::{
        Action, Actions, Amount, DataPattern, ErrorPolicy, Fileset, FinalSync, FinishUnit, IoSettings, Launch, Naming,
        Operation, PaceUnit, Phase, Replay, ReplayPace, SizeDistribution, Step, Stop, ThreadGroup,
    };
    let text = || String::from("text");
    let naming = Naming { leaf_prefix: Some(text()), ..Naming::default() };
    let fileset =
        Fileset { directory: text(), naming, ..Fileset::new("text", Amount::Files(1), SizeDistribution::Fixed(1)) };
    let program = vec![
        Step::Perform { action: Action::new("text", Operation::Stat, Some(0)), times: 1 },
        Step::Finish { count: 1, unit: FinishUnit::Bytes, of: Some(text()) },
        Step::Pace { per_second: 1.0, unit: PaceUnit::Rounds, of: Some(text()) },
        Step::Wait { name: text(), posts: 1, ahead: None, once: false },
        Step::Post { to: text(), posts: 1, bounded: false },
    ];
    let group = ThreadGroup::new("text", 1, Actions::Program(program));
    let groups = vec![ThreadGroup { process: Some("text".into()), ..group }];
    workload::Workload {
        name: text(),
        filesets: vec![fileset],
        phases: vec![Phase::new("text", groups, Stop::default())],
        io: IoSettings::default(),
        data: DataPattern { repeat: b"mallory".to_vec(), ..DataPattern::default() },
        on_error: ErrorPolicy::Stop,
        final_sync: FinalSync::None,
        callout: Some(text()),
        launch: Some(Launch { command: vec![text(), text()], ranks: 2 }),
        replay: Some(Replay {
            file: text(),
            digest: 1,
            calls: 1,
            kinds: vec![text()],
            pace: ReplayPace::Think,
            speed: 1.0,
            cold: false,
        }),
        series_interval: Duration::from_secs(1),
    }
}

/// The places, in JSON, of the texts that can be others.
fn free_texts<T: serde::Serialize + serde::de::DeserializeOwned>(of: &T) -> Vec<String> {
    fn texts(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::String(_) => found.push(at.to_owned()),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| texts(item, &format!("{at}/{index}"), found));
            }
            Value::Object(fields) => {
                fields.iter().for_each(|(name, item)| texts(item, &format!("{at}/{name}"), found));
            }
            _ => {}
        }
    }
    let mut value = serde_json::to_value(of).expect("JSON");
    let mut found = Vec::new();
    texts(&value, "", &mut found);
    found.retain(|pointer| {
        let was = value.pointer(pointer).expect("there").clone();
        replace(&mut value, pointer, &format!("mark of {pointer}"));
        let free = serde_json::from_value::<T>(value.clone()).is_ok();
        *value.pointer_mut(pointer).expect("there") = was;
        free
    });
    found
}

fn replace(value: &mut Value, pointer: &str, by: &str) {
    let text = value.pointer_mut(pointer).expect("there");
    let device = if text.as_str().is_some_and(|was| was.contains("{device}")) { "{device}" } else { "" };
    // What a load and a copy make is below their directory.
    let is_below = pointer.contains("/filesets/")
        || ["/target", "/file", "/service/name", "/service/log"].iter().any(|end| pointer.ends_with(end));
    *text = format!("{}{device}", if is_below { by.replace('/', "") } else { by.to_owned() }).into();
}

/// A run with every text, and which of them can be others: of the run, and of each trial.
static FULL: LazyLock<(Dataset, Vec<String>, Vec<Vec<String>>)> = LazyLock::new(|| {
    let full = full();
    let (run, trials) = (free_texts(&full.run), full.trials.iter().map(free_texts).collect());
    (full, run, trials)
});

fn with_marks(mark: &dyn Fn(&str) -> String) -> Dataset {
    fn marked<T: serde::Serialize + serde::de::DeserializeOwned>(
        of: &T,
        places: &[String],
        mark: &dyn Fn(usize) -> String,
    ) -> T {
        let mut value = serde_json::to_value(of).expect("JSON");
        places.iter().enumerate().for_each(|(number, pointer)| replace(&mut value, pointer, &mark(number)));
        serde_json::from_value(value).expect("valid")
    }
    let (full, of_run, of_trials) = &*FULL;
    let trials = full.trials.iter().zip(of_trials).enumerate();
    Dataset {
        run: marked(&full.run, of_run, &|number| mark(&format!("secretr{number}e"))),
        trials: trials
            .map(|(trial, (of, places))| marked(of, places, &|number| mark(&format!("secrett{trial}x{number}e"))))
            .collect(),
    }
}

fn marks(text: &str) -> BTreeSet<String> {
    let ends = |rest: &str| rest.find('e').map(|end| rest[..=end].to_owned());
    text.match_indices("secret").filter_map(|(at, word)| ends(&text[at + word.len()..])).collect()
}

/// The places of the marks that are shown, in pages or in the run for a bundle, although they are not listed.
fn leaks(dataset: &Dataset) -> Vec<(String, String)> {
    let bundle = anonymous(dataset, show(&[])).expect("valid");
    let written = (serde_json::to_string(&bundle.run), serde_json::to_string(&bundle.trials));
    let (run, trials) = (written.0.expect("JSON"), written.1.expect("JSON"));
    let mut shown: BTreeSet<String> = marks(&run).into_iter().chain(marks(&trials)).collect();
    for (name, page) in published(std::slice::from_ref(dataset), &[]) {
        shown.extend(marks(&name));
        shown.extend(marks(&page.replace("<wbr>", "")));
    }
    let listed = |place: &str| is_name(place);
    let texts = texts_of(dataset).expect("JSON");
    texts
        .into_iter()
        .filter(|(place, text)| !listed(place) && marks(text).iter().any(|mark| shown.contains(mark)))
        .collect()
}

#[test]
fn only_listed_texts_are_shown() {
    let dataset = with_marks(&|mark| mark.to_owned());
    assert_eq!(leaks(&dataset), []);
    // The list is what lets texts through: each place on it does, unless it has fstone's own words.
    let written = serde_json::to_string(&anonymous(&dataset, show(&[])).expect("valid").run).expect("JSON");
    let texts = texts_of(&dataset).expect("JSON");
    let (_, label) = texts.iter().find(|(place, _)| place == "Cell.label").expect("a row");
    assert!(written.contains(label.as_str()), "{label}");
    let once = anonymous(&dataset, show(&[])).expect("valid");
    assert_eq!(anonymous(&once, show(&[])).expect("valid"), once, "nothing more is left out of what is anonymous");
    assert!(!written.contains("109,97,108,108"), "bytes of a pattern are text");
    let all = anonymous(&dataset, show(&ALL)).expect("valid");
    for secret in [&dataset.run.inventory.host, &dataset.run.plan.title, &dataset.run.command[1]] {
        assert!(serde_json::to_string(&all.run).expect("JSON").contains(secret.as_str()), "{secret}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// However a text looks: like an option, a path, an address, a number or several words.
    #[test]
    fn no_decoration_lets_a_text_through(
        before in prop::sample::select(vec!["", "/", "-O ", "data=", "/dev/", "a@", "[", "mkfs.", "vm.", "1.5-", "x,", "://", "E", "sd", "modelled drive"]),
        after in prop::sample::select(vec!["", "/x", "=1", ":/", " 4096", "@h", ".corp", "]", ",rw", "-rc1", "1.5"]),
    ) {
        let dataset = with_marks(&|mark| format!("{before}{mark}{after}"));
        prop_assert_eq!(leaks(&dataset), []);
    }
}

#[test]
fn the_marked_run_has_every_text() {
    const IN_NO_RUN: [&str; 9] = [
        "Holder.machine",
        "Holder.host",
        "Holder.boot",
        "RanksReport.name",
        "ActionSpan.phase",
        "ActionSpan.action",
        "RankNews.phase",
        "LoadMetric.name",
        "UnitError.found",
    ];
    let places: BTreeSet<String> = texts_of(&FULL.0)
        .expect("JSON")
        .into_iter()
        .map(|(place, _)| {
            place.split('.').take(3).filter(|part| *part != "0" && *part != "1").collect::<Vec<_>>().join(".")
        })
        .collect();
    let of_rank = |field: &str| places.contains(&format!("Ranked.per_rank.{field}"));
    let mut checked = 0;
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/src");
    for directory in [model.clone(), model.join("workload")] {
        for entry in fs::read_dir(directory).expect("there").flatten() {
            let Ok(source) = fs::read_to_string(entry.path()) else { continue };
            let mut name = "";
            for line in source.lines() {
                if let Some(rest) = line.strip_prefix("pub struct ") {
                    name = rest.split([' ', '(', '<']).next().expect("a name");
                } else if !line.starts_with(' ') {
                    // Fields of enums are not preceded by `pub`; the marks find those that are in the run.
                } else if let Some((field, kind)) = line.trim().strip_prefix("pub ").and_then(|it| it.split_once(": "))
                {
                    let is_text = ["String", "Note", "Vec<u8>"].iter().any(|word| kind.contains(word));
                    if !is_text || line.contains("fn ") || kind.contains("Vec<u8>") {
                        continue;
                    }
                    let place = format!("{name}.{field}");
                    let known = places.contains(&place) || IN_NO_RUN.contains(&place.as_str());
                    assert!(known || name == "RankReport" && of_rank(field), "{place} is not in the marked run");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 50, "{checked}");
}

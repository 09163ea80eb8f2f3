//! Pages for everybody: nothing in them tells whose machine it was, and no figure of one machine is held against another's.

use crate::{figures, fixture, pages::check_html};
use fstone_model::{Dataset, Note, dataset::BlockOrigin};
use fstone_report::publish::{Gallery, INDEX, Page, Shown};
use std::fs;

/// What nobody is to read.
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

fn published(runs: &[Dataset], shown: Shown) -> Vec<Page> {
    let gallery = Gallery::of(runs, shown).expect("it can be redacted");
    let mut pages: Vec<Page> =
        (0..runs.len()).map(|place| gallery.page(place, &runs[place]).expect("redacted")).collect();
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
    let pages = published(&two_machines(), Shown::default());
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
    assert!(run.contains("[path 1]") && run.contains("[serial]") && run.contains("[user]"));
}

#[test]
fn what_was_asked_for_is_shown() {
    let shown = Shown { hosts: true, paths: true, users: true, serials: true };
    let pages = published(&two_machines(), shown);
    let all: String = pages.into_iter().map(|(_, page)| page).collect();
    for secret in ["mallory-laptop.example.org", "/home/mallory", "S4EWNX0N123456", "192.168.7.12", "far-node"] {
        assert!(all.contains(secret), "{secret}");
    }
}

#[test]
fn machines_share_ratios_alone() {
    let runs = two_machines();
    let pages = published(&runs, Shown::default());
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
    let gallery = Gallery::of(&runs, Shown::default()).expect("it can be redacted");
    assert_eq!([gallery.name(0), gallery.name(1)], ["small-file-1f2c1a7e.html", "small-file-2f2c1a7e.html"]);
    runs.remove(0);
    let gallery = Gallery::of(&runs, Shown::default()).expect("it can be redacted");
    assert_eq!(gallery.name(0), "small-file-2f2c1a7e.html", "whatever else is published");
}

#[test]
fn addresses_tell_no_more_than_their_pages() {
    let mut run = telling("moonbase", 1.0, 0);
    run.run.plan.study = "mallory-moonbase".into();
    for (name, page) in published(&[run], Shown::default()) {
        for secret in ["mallory", "moonbase"] {
            assert!(!name.contains(secret) && !page.contains(secret), "{secret} in {name}");
        }
    }
}

#[test]
fn a_run_without_a_figure_says_so() {
    let mut run = telling("a-host", 1.0, 0);
    run.trials.clear();
    let pages = published(&[run], Shown::default());
    let (_, index) = pages.last().expect("the index is last");
    assert!(index.contains("No trial completed."), "{index}");
}

#[test]
fn ratios_of_few_trials_are_marked() {
    let ratios = |runs: &[Dataset]| {
        let pages = published(runs, Shown::default());
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
    let pages = published(&[one, other], Shown::default());
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
fn the_index_leads_to_every_page() {
    let pages = published(&two_machines(), Shown::default());
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

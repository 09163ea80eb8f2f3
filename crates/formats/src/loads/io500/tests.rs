use super::*;
use fstone_model::{
    LoadReport,
    load::{OperationReport, PhaseReport},
};

fn read(text: &str) -> Result<Config, String> {
    parse(&Source::new("config.ini", text)).map_err(|wrong| wrong.to_string())
}

/// Names, limits of time and of operations of the phases.
fn phases(config: &Config) -> Vec<(&str, Option<u64>, Option<u64>)> {
    let phases = config.workload.phases.iter();
    phases
        .map(|phase| (phase.name.as_str(), phase.stop.time.map(|time| time.as_secs()), phase.stop.operations))
        .collect()
}

#[test]
fn an_official_configuration_is_read() {
    let config = read("[global]\ndatadir = ./out/\n").expect("right");
    assert_eq!(config.workload, native::parse(&Source::new("w", OFFICIAL)).expect("right"));
    assert_eq!((config.data, config.results), (("./out/".into(), true), ("./results".into(), true)));
    let text = "[global]\ndatadir = ./out/\nresultdir = ./results/\n\nverbosity = 10\ntimestamp-resultdir = FALSE\ndrop-caches = TRUE\n\n\
                [debug]\nstonewall-time = 1 # for testing\n\n[ior-easy]\ntransferSize = 1m\nblockSize = 20m\n\n[mdtest-easy]\nn = 500\n\n\
                [ior-hard]\nsegmentCount = 95\n[mdtest-hard]\nn = 70\n[timestamp]\n[find]\nnproc =\n";
    let config = read(text).expect("right");
    assert_eq!(config.results, ("./results/".into(), false));
    let all = phases(&config);
    assert_eq!(all[0], ("ior-easy-write", Some(1), Some(22)));
    assert!(all.contains(&("ior-hard-read", None, Some(97))) && all.contains(&("mdtest-hard-write", Some(1), None)));
    let workload = &config.workload;
    assert_eq!(workload.filesets[0].size, SizeDistribution::Fixed(20 << 20));
    assert_eq!((&workload.filesets[1].amount, &workload.filesets[3].amount), (&Amount::Files(500), &Amount::Files(70)));
    assert!(workload.phases.iter().all(|phase| (phase.drops_caches == 3) != phase.name.ends_with("sync")));
    let Actions::Program(steps) = &workload.phases[0].groups[0].actions else { panic!("a program") };
    let Step::Perform { action, times: 20 } = &steps[1] else { panic!("{:?}", steps[1]) };
    assert_eq!(action.operation.nature().largest_block, 1 << 20);
    // What is printed as a workload file is the same.
    let printed = native::print(workload);
    assert_eq!(
        native::parse(&Source::new("w", printed.as_str())).map_err(|wrong| wrong.to_string()),
        Ok(workload.clone())
    );
}

#[test]
fn phases_are_left_out_with_what_needs_them() {
    let config =
        read("[ior-hard]\nrun = FALSE\n[find]\nrun=false\n[ior-easy]\nAPI = POSIX --posix.odirect\n").expect("right");
    let names: Vec<&str> = config.workload.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert!(
        names.iter().all(|name| !name.starts_with("ior-hard") && *name != "find") && names.len() == 14,
        "{names:?}"
    );
    assert_eq!(config.workload.phases[0].groups[0].io.direct, Some(true));
    let wrong = read("[ior-easy-write]\nrun = FALSE\n").expect_err("others need it");
    assert!(wrong.contains("ior-easy-read needs the files") && wrong.contains("run = FALSE in [ior-easy]"), "{wrong}");
}

#[test]
fn what_is_not_known_is_refused_with_its_line_and_a_cure() {
    for (text, place, what) in [
        ("[global]\ndatadirr = x\n", "config.ini:2:1", "did you mean `datadir`"),
        ("[ior-eazy]\n", "config.ini:1:1", "did you mean `ior-easy`"),
        ("x = 1\n", "config.ini:1:1", "begin with [global]"),
        ("[debug]\n\n  stonewall\n", "config.ini:3:3", "no `option = value`"),
        ("[global]\napi = MPIIO\n", "config.ini:2:1", "give POSIX"),
        ("[ior-hard]\nsegmentCount = many\n", "config.ini:2:1", "give a number above 0"),
        ("[ior-easy]\nblockSize = 2x\n", "config.ini:2:1", "such as 2m"),
        ("[mdtest-hard]\nfiles-per-dir = 10\n", "config.ini:2:1", "all files are in one directory"),
        ("[find]\nexternal-script = ./x.sh\n", "config.ini:2:1", "walks the directories itself"),
        ("[ior-easy]\nrun = perhaps\n", "config.ini:2:1", "TRUE or FALSE"),
        ("[ior-easy]\nn = 3\n", "config.ini:2:1", "there are API, transferSize"),
    ] {
        let wrong = read(text).expect_err(text);
        assert!(wrong.contains(place) && wrong.contains(what), "{text}: {wrong}");
    }
    let config = read("[ior-rnd4K]\nblockSize = 7\n[global]\nscc = FALSE\nverbosity = 1\n").expect("warnings");
    let warnings = config.warnings.expect("some").to_string();
    assert!(warnings.contains("extended mode") && warnings.contains("`verbosity` has no effect"), "{warnings}");
}

#[test]
fn what_does_not_meet_the_rules_is_marked() {
    let config = read("[debug]\nstonewall-time = 400\n").expect("right");
    let marked = |workload: &Workload, name: &str, seconds: u64, invocations: u64| {
        let (name, elapsed_ns) = (name.to_owned(), seconds * 1_000_000_000);
        let operation = OperationReport { group: name.clone(), invocations, ..OperationReport::default() };
        let phases = vec![PhaseReport { name, elapsed_ns, ..PhaseReport::default() }];
        let printed = print(&LoadReport { phases, operations: vec![operation], ..LoadReport::default() }, workload);
        assert!(printed.trim_end().ends_with(" seconds") || printed.ends_with(" seconds [INVALID]\n"), "{printed}");
        printed.contains("[INVALID]")
    };
    let quick = read("[debug]\nstonewall-time = 1\n").expect("right");
    for (config, shortest) in [(&config, 400), (&quick, 300)] {
        assert!(marked(&config.workload, "mdtest-easy-write", shortest - 1, 9));
        assert!(!marked(&config.workload, "mdtest-easy-write", shortest, 9));
        assert!(!marked(&config.workload, "mdtest-easy-stat", 1, 9));
        assert!(marked(&config.workload, "mdtest-easy-stat", 1, 0));
    }
}

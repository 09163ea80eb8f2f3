//! What has to hold for every text that the readers of crates/formats are given. Used by the fuzz targets, and by a test
//! of that crate that runs them for a moment.

use fstone_formats::{
    Diagnostics, Source,
    ffsb::{self, Options, Placement},
    filebench,
    fio::{self, When},
    io500, ior,
    letters::CommandLine,
    mdtest, native,
    study::{self, Overrides},
    sysbench::{self, Command},
};
use fstone_model::{LoadReport, mkfs::MkfsOptions, study::FilesystemType, workload::ThreadGroup};

/// What the studies that inputs are made from ask mkfs for.
const OPTIONS: MkfsOptions =
    MkfsOptions { flags: "", values: "-E -G -I -O", settings: &[("-d", "agcount")], whole_words: false };

/// Filesystems that studies here may name: some whose mkfs takes a tree, and one whose does not.
const TYPES: [FilesystemType; 3] = [
    FilesystemType { name: "ext3", holds_trees: true, mkfs: &OPTIONS },
    FilesystemType { name: "ext4", holds_trees: true, mkfs: &OPTIONS },
    FilesystemType { name: "xfs", holds_trees: false, mkfs: &OPTIONS },
];

/// Rendering shows the whole text once per finding; beyond this it is the renderer that is tested, slowly.
const RENDERED: usize = 64;

fn refused(text: &str, wrong: &Diagnostics) {
    assert!(wrong.errors() > 0);
    if text.len() <= RENDERED {
        assert!(!wrong.to_string().is_empty());
    }
}

/// An FFSB profile is refused, or is a load, is printed, and is converted into a workload file that means the same.
pub(crate) fn ffsb(text: &str) {
    let source = Source::new("profile.ffsb", text);
    // One or the other, so that an input costs one parse.
    let seconds = (text.len() % 2 == 1).then_some(60);
    let profile = match ffsb::parse(&source, &Options { seconds }) {
        Ok(profile) => profile,
        Err(wrong) => return refused(text, &wrong),
    };
    for placement in [Placement::UnderDirectory, Placement::AsWritten] {
        let workload = profile.workload(placement);
        assert!(workload.filesets.len() >= profile.filesystems.len());
        assert_eq!(workload.time_limit().is_some_and(|time| !time.is_zero()), !profile.time.is_zero());
    }
    let load = profile.workload(Placement::UnderDirectory);
    let converted = ffsb::convert(&profile);
    match native::parse(&Source::new("converted", converted.as_str())) {
        Ok(again) => assert_eq!(again, load, "{converted}"),
        Err(wrong) => panic!("{converted}\n{wrong}"),
    }
    assert!(!ffsb::header(&profile).is_empty());
    assert!(!ffsb::print(&profile, &LoadReport::default()).is_empty());
}

/// A personality of filebench is refused, or is a load, is printed, and is converted into a workload file that means the same.
pub(crate) fn filebench(text: &str) {
    let placement =
        if text.len() % 2 == 1 { filebench::Placement::UnderDirectory } else { filebench::Placement::AsWritten };
    let options = filebench::Options { placement, seconds: None };
    let personality = match filebench::parse(&Source::new("load.f", text), options) {
        Ok(personality) => personality,
        Err(wrong) => return refused(text, &wrong),
    };
    assert!(!filebench::print(&LoadReport::default()).is_empty());
    if placement == filebench::Placement::UnderDirectory {
        let converted = native::print(&personality.workload);
        match native::parse(&Source::new("converted", converted.as_str())) {
            Ok(again) => assert_eq!(again, personality.workload, "{converted}"),
            Err(wrong) => panic!("{converted}\n{wrong}"),
        }
    }
}

/// A fio job file is refused, or is a load, is printed, and is converted into a workload file that means the same.
pub(crate) fn fio(text: &str) {
    // One or the other, so that an input costs one parse.
    let placement = if text.len() % 2 == 1 { fio::Placement::UnderDirectory } else { fio::Placement::AsWritten };
    let mut options = fio::Options {
        placement,
        sections: &[],
        variable: &|_| Some("1".to_owned()),
        size_of: &|name| (name.len() % 2 == 1).then_some(1 << 16),
        real: &|name| (name.len() % 2 == 0).then(|| "/real".to_owned()),
        loader: &mut |_| Err("it is not read here".to_owned()),
        seconds: None,
    };
    let plan = match fio::parse(&Source::new("load.fio", text), &mut options) {
        Ok(plan) => plan,
        Err(wrong) => return refused(text, &wrong),
    };
    assert!(!plan.parts.is_empty());
    let ends = |group: &ThreadGroup| {
        // What reads back ends with what was written.
        let stop = group.stop;
        stop.time.is_some() || stop.operations.is_some() || stop.bytes.is_some() || stop.once_through
    };
    assert!(plan.workload.measured_phases().flat_map(|phase| &phase.groups).all(ends), "every job ends");
    let (report, when) = (LoadReport::default(), When::default());
    assert!(serde_json::from_str::<serde_json::Value>(&fio::json(&plan, &report, &when, true)).is_ok());
    assert!(!fio::normal(&plan, &report, &when).is_empty() && !fio::terse(&plan, &report, 5).is_empty());
    if placement == fio::Placement::UnderDirectory {
        let converted = native::print(&plan.workload);
        // Many jobs with long names are more than a workload file may have.
        if converted.len() > native::MAXIMUM_BYTES {
            return;
        }
        match native::parse(&Source::new("converted", converted.as_str())) {
            Ok(again) => assert_eq!(again, plan.workload.without_unused_depths(), "{converted}"),
            Err(wrong) => panic!("{converted}\n{wrong}"),
        }
    }
}

/// Arguments, one a line, are refused, or are a load that is printed.
pub(crate) fn sysbench(text: &str) {
    let args: Vec<String> = text.lines().map(str::to_owned).collect();
    match sysbench::parse(&args) {
        Ok(fileio) => {
            let workload = fileio.workload();
            assert_eq!(workload.phases.len(), usize::from(fileio.command == Command::Run));
            assert_eq!(workload.filesets.is_empty(), fileio.command == Command::Cleanup);
            assert!(!sysbench::header(&fileio).is_empty());
            assert!(!sysbench::print(&fileio, &LoadReport::default()).is_empty());
        }
        Err(wrong) => refused(text, &wrong),
    }
}

/// A command line of mdtest is refused, or is a load that can be one of many ranks, and is converted into a workload file that means the same.
pub(crate) fn mdtest(text: &str) {
    let line = CommandLine::of_text(&Source::new("line.mdtest", text), "mdtest");
    match mdtest::parse(&line, &mut |_| Ok(text.to_owned())) {
        // Beyond, it is printing that takes the time.
        Ok(mdtest) if mdtest.iterations > 3 => {}
        Ok(mdtest) => {
            let plan = mdtest.plan();
            assert_eq!(plan.workload.unfit_for_ranks(), None);
            assert!(plan.workload.phases.len() >= plan.stages.len());
            let converted = native::print(&plan.workload);
            match native::parse(&Source::new("converted", converted.as_str())) {
                Ok(again) => assert_eq!(again, plan.workload, "{converted}"),
                Err(wrong) => panic!("{converted}\n{wrong}"),
            }
        }
        Err(wrong) => refused(text, &wrong),
    }
}

/// The same of IOR.
pub(crate) fn ior(text: &str) {
    match ior::parse(&CommandLine::of_text(&Source::new("line.ior", text), "ior")) {
        Ok(ior) if ior.repetitions > 3 => {}
        Ok(ior) => {
            let plan = ior.plan();
            assert_eq!(plan.workload.unfit_for_ranks(), None);
            let converted = native::print(&plan.workload);
            match native::parse(&Source::new("converted", converted.as_str())) {
                Ok(again) => assert_eq!(again, plan.workload, "{converted}"),
                Err(wrong) => panic!("{converted}\n{wrong}"),
            }
        }
        Err(wrong) => refused(text, &wrong),
    }
}

/// An ini file of IO500 is refused, or is a load that can be one of many ranks, and is converted into a workload file that means the same.
pub(crate) fn io500(text: &str) {
    match io500::parse(&Source::new("config.ini", text)) {
        Ok(config) => {
            assert_eq!(config.workload.unfit_for_ranks(), None);
            let converted = native::print(&config.workload);
            match native::parse(&Source::new("converted", converted.as_str())) {
                Ok(again) => assert_eq!(again, config.workload, "{converted}"),
                Err(wrong) => panic!("{converted}\n{wrong}"),
            }
        }
        Err(wrong) => refused(text, &wrong),
    }
}

/// Files that studies may name here.
const FILES: [(&str, &str); 2] = [
    ("load.ffsb", include_str!("../corpus/ffsb/small-file")),
    ("load.workload", include_str!("../corpus/native/payload")),
];

/// A study is refused, or is a plan that makes sense, whole or quick.
pub(crate) fn study(text: &str) {
    let source = Source::new("study.toml", text);
    let load = |name: &str| {
        let file = FILES.iter().find(|(known, _)| *known == name);
        file.map(|(_, text)| (*text).to_owned()).ok_or_else(|| format!("{name} is not read here"))
    };
    // One or the other, so that an input costs one reading; each checks both.
    let overrides = Overrides { quick: text.len() % 2 == 1, ..Overrides::default() };
    match study::compile(&source, &load, &TYPES, &overrides) {
        Ok(plan) => {
            assert_eq!(plan.validate(), Ok(()));
            assert!(!plan.cells.is_empty());
            for cell in &plan.cells {
                assert!(!cell.steps.is_empty() && cell.levels.len() == plan.factors.len());
            }
        }
        Err(wrong) => refused(text, &wrong),
    }
}

/// A workload file is refused, or is printed as a file that means the same.
pub(crate) fn native(text: &str) {
    match native::parse(&Source::new("load.workload", text)) {
        Ok(workload) => {
            let printed = native::print(&workload);
            match native::parse(&Source::new("printed.workload", printed.as_str())) {
                Ok(again) => assert_eq!(again, workload, "{printed}"),
                Err(wrong) => panic!("{printed}\n{wrong}"),
            }
        }
        Err(wrong) => refused(text, &wrong),
    }
}

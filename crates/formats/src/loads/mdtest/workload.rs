//! A command line in the words of the model.

use super::command::Mdtest;
use crate::loads::letters;
use fstone_model::workload::{
    Action, Actions, Amount, Directories, ErrorPolicy, Existing, Extent, FileChoice, Fileset, Naming, Operation,
    Pattern, Phase, Sharing, SizeDistribution, Stop, ThreadGroup, Transfer, Workload,
};

const LARGEST_BLOCK: u64 = 1 << 30;

fstone_model::named! {
    /// What a phase does, in the order in which mdtest prints them, and what mdtest calls it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Test: name, ALL {
        DirectoryCreation => "Directory creation",
        DirectoryStat => "Directory stat",
        DirectoryRename => "Directory rename",
        DirectoryRemoval => "Directory removal",
        /// open(O_CREAT), write, close
        FileCreation => "File creation",
        FileStat => "File stat",
        /// open, read, close
        FileRead => "File read",
        FileRemoval => "File removal",
    }
}

impl Test {
    pub(super) const fn of_directories(self) -> bool {
        matches!(self, Self::DirectoryCreation | Self::DirectoryStat | Self::DirectoryRename | Self::DirectoryRemoval)
    }

    const fn creates(self) -> bool {
        matches!(self, Self::DirectoryCreation | Self::FileCreation)
    }

    /// How many tasks further on the files are that a task works on, of so many that it was told.
    const fn shifts(self) -> u32 {
        match self {
            Self::DirectoryCreation | Self::FileCreation => 0,
            Self::DirectoryStat | Self::DirectoryRename | Self::FileStat => 1,
            Self::FileRead => 2,
            Self::DirectoryRemoval | Self::FileRemoval => 3,
        }
    }
}

/// A phase that has a place in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    pub test: Test,
    /// From 0.
    pub iteration: u64,
    pub phase: String,
    /// The name of the phase that makes it durable, if there is one.
    pub sync: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The load, in the directory of `-d`. Each iteration has a fileset.
    pub workload: Workload,
    pub stages: Vec<Stage>,
}

impl Mdtest {
    pub fn plan(&self) -> Plan {
        let (mut phases, mut stages) = (Vec::new(), Vec::new());
        for iteration in 0..self.iterations {
            let name = |what: &str| {
                if self.iterations == 1 { what.to_owned() } else { format!("{what}, iteration {}", iteration + 1) }
            };
            for test in self.tests() {
                let phase = name(test.name());
                let sync = self.sync.then(|| name(&format!("{}: sync", test.name())));
                phases.push(self.phase(test, &phase, iteration));
                phases.extend(sync.as_ref().map(|name| sync_phase(name, iteration)));
                stages.push(Stage { test, iteration, phase, sync });
            }
        }
        let filesets = (0..self.iterations).map(|iteration| self.fileset(iteration)).collect();
        // It warns and goes on, as mdtest does.
        let workload = letters::workload("mdtest", filesets, phases, self.direct, ErrorPolicy::Continue);
        Plan { workload, stages }
    }

    fn tests(&self) -> Vec<Test> {
        let phases = self.phases;
        let of_directories = [
            (Test::DirectoryCreation, phases.create),
            (Test::DirectoryStat, phases.stat),
            (Test::DirectoryRename, phases.rename && self.items > 1),
            (Test::DirectoryRemoval, phases.remove),
        ];
        let of_files = [
            (Test::FileCreation, phases.create),
            (Test::FileStat, phases.stat),
            (Test::FileRead, phases.read),
            (Test::FileRemoval, phases.remove),
        ];
        let chosen = |tests: [(Test, bool); 4], are: bool| tests.into_iter().filter(move |(_, is)| *is && are);
        chosen(of_directories, self.directories).chain(chosen(of_files, self.files)).map(|(test, _)| test).collect()
    }

    fn fileset(&self, iteration: u64) -> Fileset {
        let (width, depth, each, leaves_only) = (self.branching, self.depth, self.each, self.leaves_only);
        let created = self.phases.create;
        // Of files that are there from before only as much can be read as they are taken to have.
        let bytes = if created { self.write_bytes } else { self.write_bytes.max(self.read_bytes) };
        let tree = if self.unique { "mdtest_tree.{rank}." } else { "mdtest_tree." };
        let amount = Amount::Files(if self.files { self.items } else { 0 });
        Fileset {
            directory: Self::test_directory(iteration),
            directories: Directories::Filled { width, depth, each, leaves_only },
            leaf_directories: if self.directories { self.items } else { 0 },
            naming: Naming {
                file_prefix: "file.mdtest.{rank}.".into(),
                directory_prefix: tree.into(),
                leaf_prefix: Some("dir.mdtest.{rank}.".into()),
                exact: false,
            },
            preallocated: if created { 0.0 } else { 1.0 },
            existing: if created { Existing::Rebuild } else { Existing::Assume },
            ranks: Sharing::Names,
            ..Fileset::new(name_of(iteration), amount, SizeDistribution::Fixed(bytes))
        }
    }

    fn phase(&self, test: Test, name: &str, iteration: u64) -> Phase {
        let fileset = Some(u32::try_from(iteration).unwrap_or(u32::MAX));
        let in_order = if self.random { FileChoice::Shuffled } else { FileChoice::RoundRobin };
        let (operation, choice) = match test {
            Test::DirectoryCreation => (Operation::Mkdir, FileChoice::Uniform),
            Test::DirectoryStat => (Operation::StatDirectory, in_order),
            Test::DirectoryRename => (Operation::RenameDirectory, FileChoice::Uniform),
            Test::DirectoryRemoval => (Operation::Rmdir, FileChoice::Uniform),
            Test::FileCreation => (self.create(), FileChoice::Uniform),
            Test::FileStat => (Operation::Stat, in_order),
            Test::FileRead => (self.read(), in_order),
            Test::FileRemoval => (Operation::Unlink, FileChoice::RoundRobin),
        };
        // The names of the directories that are looked at one after the other.
        let choice =
            if operation.is_of_leaves() && choice == FileChoice::RoundRobin { FileChoice::Uniform } else { choice };
        let action = Action { choice, ..Action::new(operation.nature().word, operation, fileset) };
        let group = ThreadGroup::new(name, 1, Actions::Sequence(vec![action]));
        let stop = if test.creates() {
            let wear_out = self.stonewall.is_some();
            Stop { time: self.stonewall, operations: Some(self.items), wear_out, ..Stop::default() }
        } else {
            Stop { once_through: true, ..Stop::default() }
        };
        let mut phase = Phase::new(name, vec![group], stop);
        if test.creates() {
            // Counted by the group, as what wears out is.
            phase.groups[0].stop.operations = phase.stop.operations.take();
        }
        phase.node_shift = self.shift.saturating_mul(test.shifts());
        phase
    }

    fn create(&self) -> Operation {
        let block_bytes = self.write_bytes.min(LARGEST_BLOCK);
        Operation::Create { block_bytes, fsync: self.sync_file && self.write_bytes > 0 }
    }

    fn read(&self) -> Operation {
        match self.read_bytes {
            0 => Operation::OpenClose,
            bytes => Operation::Read(Transfer {
                extent: Extent::Bytes(bytes),
                block_bytes: bytes.min(LARGEST_BLOCK),
                pattern: Pattern::FromStart,
                fsync: false,
            }),
        }
    }
}

fn name_of(iteration: u64) -> String {
    format!("iteration {}", iteration + 1)
}

fn sync_phase(name: &str, iteration: u64) -> Phase {
    let fileset = Some(u32::try_from(iteration).unwrap_or(u32::MAX));
    let action = Action::new("sync", Operation::Syncfs, fileset);
    let stop = Stop { operations: Some(1), ..Stop::default() };
    Phase::new(name, vec![ThreadGroup::new(name, 1, Actions::Sequence(vec![action]))], stop)
}

//! A profile in the words of the model.

use super::profile::{Filesystem, Group, Op, Profile};
use fstone_model::workload::{
    Action, Actions, Amount, Directories, Distribution, Existing, Extent, Fileset, FinalSync, IoSettings, Naming,
    Operation, Pattern, Phase, Stop, ThreadGroup, TransactionRule, Transfer, Weighted, Workload,
};

/// FFSB's `alignio`.
const ALIGNMENT: u64 = 4096;
/// Files that ageing starts from, so that there is something to append to and to delete.
const FILES_TO_AGE: u64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// In the load's directory: the directory itself when there is one filesystem; `fs0`, `fs1`, … when there are more.
    /// For studies, where a profile's `location` is somebody else's mount point.
    UnderDirectory,
    /// Where the profile says, as FFSB would. A relative location is relative to the load's directory, so the caller
    /// makes that its working directory.
    AsWritten,
}

impl Profile {
    pub fn workload(&self, placement: Placement) -> Workload {
        let bases: Vec<String> = self
            .filesystems
            .iter()
            .enumerate()
            .map(|(index, filesystem)| match placement {
                Placement::UnderDirectory if self.filesystems.len() == 1 => String::new(),
                Placement::UnderDirectory => format!("fs{index}/"),
                Placement::AsWritten => format!("{}/", filesystem.location.trim_end_matches('/')),
            })
            .collect();
        let mut filesets: Vec<Fileset> = self
            .filesystems
            .iter()
            .zip(&bases)
            .enumerate()
            .map(|(index, (filesystem, base))| filesystem.fileset(index, base))
            .collect();
        let mut ageing = Vec::new();
        for (index, (filesystem, base)) in self.filesystems.iter().zip(&bases).enumerate() {
            if let Some((fill, group)) = filesystem.ageing(self, index, filesets.len(), base) {
                filesets.push(fill);
                ageing.push(group);
            }
        }
        let mut phases = Vec::new();
        if !ageing.is_empty() {
            phases.push(Phase::unmeasured("ageing", ageing, Stop::default()));
        }
        if !self.time.is_zero() {
            let targets = Targets::of(self, filesets.len());
            let groups = (0..)
                .zip(&self.groups)
                .map(|(index, group)| group.threads(self, &group_name(index), targets))
                .collect();
            let stop = Stop { time: Some(self.time), ..Stop::default() };
            phases.push(Phase::new("benchmark", groups, stop));
        }
        Workload {
            io: IoSettings { direct: self.direct, ..IoSettings::default() },
            final_sync: match placement {
                Placement::UnderDirectory => FinalSync::Syncfs,
                Placement::AsWritten => FinalSync::Everything,
            },
            callout: self.callout.clone(),
            ..Workload::new(self.name.clone(), filesets, phases)
        }
    }
}

pub(super) fn group_name(index: usize) -> String {
    format!("threadgroup{index}")
}

impl Filesystem {
    fn fileset(&self, index: usize, base: &str) -> Fileset {
        Fileset {
            directory: format!("{base}data"),
            directories: Directories::Flat { count: self.directories, root_too: true },
            naming: Naming { file_prefix: "datafile".into(), directory_prefix: "datadir".into(), ..Naming::default() },
            build_block_bytes: self.create_block_bytes,
            existing: if self.reuse { Existing::Reuse } else { Existing::Rebuild },
            ..Fileset::new(format!("filesystem{index}"), self.amount, self.sizes.clone())
        }
    }

    /// The files that age it, which will be the fileset of that index, and the threads that work on them.
    fn ageing(&self, profile: &Profile, index: usize, fileset: usize, base: &str) -> Option<(Fileset, ThreadGroup)> {
        let ageing = self.ageing.as_ref()?;
        let fill = Fileset {
            name: format!("ageing of filesystem{index}"),
            directory: format!("{base}fill"),
            amount: Amount::Files(FILES_TO_AGE),
            directories: Directories::Flat { count: 0, root_too: true },
            naming: Naming { file_prefix: "fillfile".into(), directory_prefix: "filldir".into(), ..Naming::default() },
            build_block_bytes: ageing.block_bytes,
            existing: Existing::Rebuild,
            ..self.fileset(index, base)
        };
        let name = format!("ageing of filesystem{index}");
        let mut group = ageing.group.threads(profile, &name, Targets::One(narrow(fileset)));
        group.stop.utilization = Some(ageing.utilization);
        Some((fill, group))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Targets {
    All,
    /// The first so many; those of ageing come after them.
    First(u32),
    One(u32),
}

impl Targets {
    fn of(profile: &Profile, filesets: usize) -> Self {
        match profile.filesystems.len() {
            1 => Self::One(0),
            count if count == filesets => Self::All,
            count => Self::First(narrow(count)),
        }
    }
}

fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl Group {
    fn threads(&self, profile: &Profile, name: &str, targets: Targets) -> ThreadGroup {
        let targets = self.bound_to.filter(|_| !matches!(targets, Targets::One(_))).map_or(targets, Targets::One);
        let filesets: Vec<Option<u32>> = match targets {
            Targets::All => vec![None],
            Targets::One(index) => vec![Some(index)],
            // Equal weights for each are a uniform choice.
            Targets::First(count) => (0..count).map(Some).collect(),
        };
        let mix = self
            .weights
            .iter()
            .flat_map(|(op, weight)| filesets.iter().map(move |fileset| (*op, *weight, *fileset)))
            .map(|(op, weight, fileset)| Weighted { weight, action: self.action(op, fileset, profile.aligned) })
            .collect();
        ThreadGroup { think_time: self.delay, ..ThreadGroup::new(name, self.threads, Actions::Mix(mix)) }
    }

    fn action(&self, op: Op, fileset: Option<u32>, aligned: bool) -> Action {
        let (operation, transactions) = self.operation(op, if aligned { ALIGNMENT } else { 1 });
        Action { transactions, ..Action::new(op.name(), operation, fileset) }
    }

    fn operation(&self, op: Op, align_bytes: u64) -> (Operation, TransactionRule) {
        use TransactionRule::{BlocksCeil, BlocksFloor, One};
        let (read, write) = (&self.read, &self.write);
        let whole =
            |block_bytes, fsync| Transfer { extent: Extent::Whole, block_bytes, pattern: Pattern::FromStart, fsync };
        let overwrite = |fsync| {
            let moved = Moved { size_bytes: write.size_bytes, block_bytes: write.block_bytes, align_bytes };
            let rule = if write.random { BlocksFloor } else { BlocksCeil };
            (Operation::Write(moved.transfer(write.random, fsync)), rule)
        };
        let append = |fsync| {
            let transfer = Transfer {
                extent: Extent::Bytes(write.size_bytes),
                block_bytes: write.block_bytes,
                pattern: Pattern::FromStart,
                fsync,
            };
            (Operation::Append(transfer), BlocksCeil)
        };
        match op {
            Op::Read => match read.skip_bytes {
                Some(skip_bytes) => {
                    let extent = Extent::Bytes(read.size_bytes);
                    let pattern = Pattern::Skip { skip_bytes };
                    let transfer = Transfer { extent, block_bytes: read.block_bytes, pattern, fsync: false };
                    (Operation::Read(transfer), BlocksCeil)
                }
                None => {
                    let moved = Moved { size_bytes: read.size_bytes, block_bytes: read.block_bytes, align_bytes };
                    (Operation::Read(moved.transfer(read.random, false)), BlocksFloor)
                }
            },
            Op::Readall => (Operation::Read(whole(read.block_bytes, false)), BlocksFloor),
            Op::Write => overwrite(write.fsync),
            Op::WriteFsync => overwrite(true),
            Op::Writeall => (Operation::Write(whole(write.block_bytes, false)), BlocksCeil),
            Op::WriteallFsync => (Operation::Write(whole(write.block_bytes, true)), BlocksCeil),
            Op::Append => append(false),
            Op::AppendFsync => append(true),
            Op::Create => (Operation::Create { block_bytes: write.block_bytes, fsync: false }, BlocksCeil),
            Op::CreateFsync => (Operation::Create { block_bytes: write.block_bytes, fsync: true }, BlocksCeil),
            Op::Delete => (Operation::Unlink, One),
            Op::Metaop => (Operation::Metadata, One),
            Op::Createdir => (Operation::Mkdir, One),
            Op::Stat => (Operation::Stat, One),
            Op::OpenClose => (Operation::OpenClose, One),
        }
    }
}

struct Moved {
    size_bytes: u64,
    block_bytes: u64,
    align_bytes: u64,
}

impl Moved {
    fn transfer(&self, random: bool, fsync: bool) -> Transfer {
        let &Self { size_bytes, block_bytes, align_bytes } = self;
        if !random {
            let pattern = Pattern::FromRandom { align_bytes };
            return Transfer { extent: Extent::Bytes(size_bytes), block_bytes, pattern, fsync };
        }
        // Whole blocks only; less than one is a block of that size, where FFSB would do nothing.
        let (block_bytes, blocks) = match size_bytes.checked_div(block_bytes) {
            Some(0) | None => (size_bytes, 1),
            Some(blocks) => (block_bytes, blocks),
        };
        Transfer {
            extent: Extent::Bytes(blocks * block_bytes),
            block_bytes,
            pattern: Pattern::Random { distribution: Distribution::Uniform, align_bytes },
            fsync,
        }
    }
}

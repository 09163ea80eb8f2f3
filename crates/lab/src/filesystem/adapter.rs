//! What an adapter is.

use crate::command::{CommandLine, CommandOutput};
use fstone_model::{metric::Figure, mkfs::MkfsOptions, study::FsckMode};

/// What is known of a filesystem without asking.
#[derive(Debug)]
pub struct Facts {
    /// Its name in a study ("ext4").
    pub kind: &'static str,
    pub package: &'static str,
    /// Every program its command lines name.
    pub tools: &'static [&'static str],
    /// Modules that its own asks the kernel for by name: algorithms, character sets. The kernel calls modprobe for them, which a guest
    /// does not have: there they are loaded first.
    pub modules_asked_by_name: &'static [&'static str],
    /// The program that makes it, and the arguments that every study needs (quiet, no questions).
    pub mkfs: &'static [&'static str],
    /// What checks it, unmounted, and what repairs it, without the device; `None` when there is no such tool.
    pub fsck: Option<Fsck>,
    /// The command that prints its superblock, without the device; empty when there is none.
    pub superblock: &'static [&'static str],
    /// The smallest device its mkfs takes with default options. Options may raise it; mkfs then says so itself.
    pub minimum_bytes: u64,
    /// The options of its mkfs that a study may use: those that run no program and name no file, device or directory.
    pub mkfs_options: MkfsOptions,
    /// The mount options with a value that a study may use, separated by spaces: none that names a file or a device. Options without
    /// a value lead nowhere, and are the kernel's to know.
    pub mount_values: &'static str,
    /// Whether its mkfs opens the device exclusively, and so fails where somebody has begun to use it since it was looked
    /// at. Where it does not, the lab holds the device meanwhile.
    pub mkfs_is_exclusive: bool,
}

#[derive(Debug)]
pub struct Fsck {
    pub read_only: &'static [&'static str],
    pub repair: &'static [&'static str],
}

pub trait Filesystem: Sync {
    fn facts(&self) -> &Facts;

    fn kind(&self) -> &'static str {
        self.facts().kind
    }

    /// Its name for mount(2) and in /proc/filesystems.
    fn kernel_name(&self) -> &'static str {
        self.kind()
    }

    /// The command that makes one of its tools tell its version and do nothing else.
    fn version(&self, tool: &str) -> CommandLine {
        CommandLine::new(tool, ["-V"])
    }

    /// Whether its tools work in a guest only, because on the host they need root or a block device. All trials in guests
    /// then use them there, so that their times can be compared.
    fn tools_need_a_guest(&self) -> bool {
        false
    }

    /// The command that brings it back after a power cut, where its kernel part cannot and refuses to mount it; its exit status
    /// says less than the mount that follows.
    fn recovery(&self, _device: &str) -> Option<CommandLine> {
        None
    }

    /// The command by which the kernel forgets a device on which it is not mounted any more, where the kernel would otherwise refuse
    /// another copy of the same filesystem.
    fn forget(&self, _device: &str) -> Option<CommandLine> {
        None
    }

    /// The mount option with which the kernel takes a copy of a filesystem that is mounted, where it needs one.
    fn option_of_copies(&self) -> Option<&'static str> {
        None
    }

    /// Why no trial with it can be made anywhere, when so.
    fn unusable(&self) -> Option<&'static str> {
        None
    }

    /// The command that makes it on a device. `options` are the study's own and come after ours. It never asks: there is nobody at its
    /// standard input.
    fn mkfs(&self, options: &[String], device: &str) -> CommandLine {
        mkfs_command(self.facts().mkfs, &[], options, device)
    }

    /// The options with which what its mkfs draws at random, and figures depend on, follows from a seed.
    fn seeded(&self, options: &[String], _seed: u64) -> Vec<String> {
        options.to_vec()
    }

    /// The command that makes it with everything below a directory in it; `None` when its mkfs cannot.
    fn mkfs_of_tree(&self, _options: &[String], _device: &str, _tree: &str) -> Option<CommandLine> {
        None
    }

    /// The command that checks it, unmounted; `None` when there is no such tool.
    fn fsck(&self, mode: FsckMode, device: &str) -> Option<CommandLine> {
        let fsck = self.facts().fsck.as_ref()?;
        on_device(if mode == FsckMode::ReadOnly { fsck.read_only } else { fsck.repair }, device)
    }

    fn verdict(&self, output: &CommandOutput) -> Verdict {
        Verdict::of_fsck_status(output.status)
    }

    /// Whether the check found nothing wrong after a power cut. That the filesystem was not unmounted is no fault there.
    fn is_clean_after_power_cut(&self, output: &CommandOutput) -> bool {
        self.verdict(output) == Verdict::Clean
    }

    /// Whether a check that only reads found a log or journal that is not replayed.
    fn is_unclean(&self, _output: &CommandOutput) -> bool {
        false
    }

    /// How many inodes mkfs makes on a device of this size, where they are limited and that is known before.
    fn inodes(&self, _options: &[String], _size_bytes: u64) -> Option<f64> {
        None
    }

    fn figures(&self, _output: &CommandOutput) -> Vec<Figure> {
        Vec::new()
    }

    fn superblock(&self, device: &str) -> Option<CommandLine> {
        on_device(self.facts().superblock, device)
    }

    /// What that command printed, as (name, value). Only what describes the format: nothing that differs between two
    /// filesystems made alike, such as UUIDs and times.
    fn parse_superblock(&self, text: &str) -> Vec<(String, String)>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Clean,
    Corrected,
    Errors,
    Unusable,
}

impl Verdict {
    /// By the bits that fsck(8) documents: 1 corrected, 2 reboot, 4 uncorrected, 8 operational, 16 usage, 32
    /// cancelled, 128 shared library (or, by our own convention, ended by a signal).
    pub const fn of_fsck_status(status: i32) -> Self {
        match status {
            0 => Self::Clean,
            // Errors that make it give up are errors: e2fsck ends with 12 then.
            s if s & !0b1111 == 0 && s & 0b100 != 0 => Self::Errors,
            s if s & !0b111 != 0 => Self::Unusable,
            _ => Self::Corrected,
        }
    }
}

/// Program and our own arguments, more of these, the study's, the device.
pub(super) fn mkfs_command(own: &[&str], more: &[&str], options: &[String], device: &str) -> CommandLine {
    let ours = own[1..].iter().chain(more).map(|word| (*word).to_owned());
    CommandLine::new(own[0], ours.chain(options.iter().cloned()).chain([device.to_owned()]))
}

fn on_device(command: &[&str], device: &str) -> Option<CommandLine> {
    let (program, arguments) = command.split_first()?;
    Some(CommandLine::new(program, arguments.iter().copied().chain([device])))
}

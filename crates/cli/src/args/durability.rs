//! `fstone durability`, as it is typed.

use clap::{Args, builder::NonEmptyStringValueParser};
use fstone_model::study::{DiskTruth, KernelSpec, PowerCut};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fstone durability ext4 xfs btrfs f2fs\n  fstone durability ext4 --exhaustive\n  fstone durability ext4 xfs btrfs f2fs --exhaustive --pairs 500\n  \
    fstone durability ext4 --mount data=writeback --exhaustive\n  fstone durability ext2 --exhaustive --sequence 'rename a n; fsync n' --states 500\n\n\
    Exit status 1 when something was lost that a call had persisted, or a state could not be mounted or was not clean. docs/durability.md says what has to be there after which call."
)]
pub(crate) struct DurabilityArguments {
    /// Types of filesystems (ext4, xfs, …), or studies whose filesystems are tried
    #[arg(value_name = "TYPE|STUDY", required = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) filesystem: Vec<String>,
    /// Try all sequences of one operation and one call that persists something, rather than the table of properties
    #[arg(long)]
    pub(crate) exhaustive: bool,
    /// Also try this many sequences of two operations, drawn by the seed
    #[arg(long, value_name = "N", default_value_t = 0, requires = "exhaustive")]
    pub(crate) pairs: u32,
    /// Try this sequence instead: 'rename a b; fsync b'. May be given several times
    #[arg(long, value_name = "CALLS", conflicts_with = "pairs")]
    pub(crate) sequence: Vec<String>,
    /// Most states that each sequence gets. Default: 60, and 200 for the table of properties
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) states: Option<u32>,
    /// Another seed draws other pairs and other states
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Options of mkfs, for types
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    pub(crate) mkfs: String,
    /// Options to mount with, for types
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    pub(crate) mount: String,
    /// The guest's kernel: uml:6.1, qemu:6.12, … Default: user-mode Linux, else QEMU, as `fstone kernel list` has them
    #[arg(long, value_name = "KERNEL", value_parser = str::parse::<KernelSpec>)]
    pub(crate) kernel: Option<KernelSpec>,
    /// Guests at once. Default: one per core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
    /// What the disk writes whole, 512 or 4096 bytes: writes are torn at multiples of this
    #[arg(long, value_name = "BYTES", default_value_t = PowerCut::USUAL_SECTOR, value_parser = parse_sector)]
    pub(crate) sector: u32,
    /// Use a disk that breaks its promise (forgets-flushes, tears, reorders), to see that a loss is found
    #[arg(long, value_name = "DISK", default_value = "sound", value_parser = parse_disk)]
    pub(crate) disk: DiskTruth,
    /// Try these sequences again, whatever an earlier command with these options found
    #[arg(long)]
    pub(crate) fresh: bool,
}

fn parse_sector(text: &str) -> Result<u32, String> {
    text.parse().ok().and_then(PowerCut::whole_sector).ok_or_else(|| "512 or 4096".to_owned())
}

fn parse_disk(text: &str) -> Result<DiskTruth, String> {
    match text {
        "sound" => Ok(DiskTruth::Sound),
        "forgets-flushes" => Ok(DiskTruth::ForgetsFlushes),
        "tears" => Ok(DiskTruth::Tears),
        "reorders" => Ok(DiskTruth::Reorders),
        _ => Err("disks are sound, forgets-flushes, tears and reorders".to_owned()),
    }
}

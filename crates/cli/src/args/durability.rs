//! `fstone durability`, as it is typed.

use clap::{Args, builder::NonEmptyStringValueParser};
use fstone_model::study::{DiskTruth, KernelSpec, PowerCut};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fstone durability ext4 xfs btrfs f2fs\n  fstone durability ext4 --exhaustive\n  fstone durability ext4 xfs btrfs f2fs --exhaustive --pairs 500\n  \
    fstone durability ext4 --mount data=writeback --exhaustive\n  fstone durability ext2 --exhaustive --sequence 'rename a n; fsync n' --states 500\n\n\
    The exit status is 1 if something was lost that a call had persisted, or if a state could not be mounted or was not clean. docs/durability.md says what each call promises."
)]
pub(crate) struct DurabilityArguments {
    /// Filesystem types (ext4, xfs, …), or studies whose filesystems to try
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
    /// How many states to try for each sequence, or as many as it has calls. Default: 60, or 200 for the table of properties
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) states: Option<u32>,
    /// The seed that pairs and states are drawn by
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// mkfs options, if types are given
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    pub(crate) mkfs: String,
    /// Mount options, if types are given
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    pub(crate) mount: String,
    /// The guest's kernel: uml:6.1, qemu:6.12, … (`fstone kernel list`). Default: user-mode Linux, else QEMU
    #[arg(long, value_name = "KERNEL", value_parser = str::parse::<KernelSpec>)]
    pub(crate) kernel: Option<KernelSpec>,
    /// How many guests run at once. Default: one per core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
    /// The unit that the disk writes atomically, 512 or 4096 bytes: writes are torn at multiples of it
    #[arg(long, value_name = "BYTES", default_value_t = PowerCut::USUAL_SECTOR, value_parser = parse_sector)]
    pub(crate) sector: u32,
    /// Use a disk that breaks its promises (forgets-flushes, tears, reorders), to check that losses are found
    #[arg(long, value_name = "DISK", default_value = "sound", value_parser = parse_disk)]
    pub(crate) disk: DiskTruth,
    /// Try these sequences again, even if an earlier command with these options did
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
        _ => Err("write sound, forgets-flushes, tears or reorders".to_owned()),
    }
}

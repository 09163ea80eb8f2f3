//! Arguments of drop-ins for programs that a launcher of MPI starts.

#[cfg(feature = "mpi")]
use super::patience;
use super::values::parse_number;
use clap::Args;
use std::path::PathBuf;
#[cfg(feature = "mpi")]
use std::time::Duration;

#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct IorArguments {
    /// IOR's own arguments: -b 1g -t 1m -F -o FILE …; -h lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct MdtestArguments {
    /// mdtest's own arguments: -n 1000 -u -F -d DIR …; -h lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  fstone io500 config-minimal.ini\n\ndocs/io500.md says which options there are, and what differs from IO500."
)]
pub(crate) struct Io500Arguments {
    /// IO500's configuration
    #[arg(value_name = "CONFIG.ini")]
    pub(crate) config: PathBuf,
    /// The seed of all random streams. Default: drawn
    #[arg(long, value_name = "N", value_parser = parse_number, allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
    /// With many ranks: a rank that gives no sign of life for this long is considered dead
    #[cfg(feature = "mpi")]
    #[arg(long, value_name = "TIME", value_parser = patience::parse, default_value = "60 s")]
    pub(crate) rank_silence: Duration,
    /// With many ranks: a rank that completes nothing for this long is considered hung
    #[cfg(feature = "mpi")]
    #[arg(long, value_name = "TIME", value_parser = patience::parse, default_value = "10 min")]
    pub(crate) rank_stillness: Duration,
}

//! Arguments of drop-ins for programs that a launcher of MPI starts.

#[cfg(feature = "mpi")]
use super::patience::Patience;
use super::values::parse_number;
use clap::Args;
use std::path::PathBuf;

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
    #[cfg(feature = "mpi")]
    #[command(flatten)]
    pub(crate) patience: Patience,
}

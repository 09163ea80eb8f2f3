//! Arguments of drop-ins for programs that a launcher of MPI starts.

use clap::Args;

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

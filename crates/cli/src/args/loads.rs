//! Arguments of the commands that run a load by itself, or print it.

#[cfg(feature = "mpi")]
use super::patience::Patience;
use super::values::parse_number;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fstone load random-read.toml --directory /mnt/scratch --json")]
pub(crate) struct LoadArguments {
    /// A workload file (docs/workload-file.md), or a load of another format by its extension (*.ffsb, *.fio, *.job, *.f, *.mdtest, *.ior)
    #[arg(value_name = "SPEC")]
    pub(crate) spec: PathBuf,
    /// The directory to work in
    #[arg(long, short, value_name = "DIR", required_unless_present = "device")]
    pub(crate) directory: Option<PathBuf>,
    /// A block device to work on instead, as the only file of the load's only fileset; its data is overwritten
    #[arg(long, value_name = "PATH", conflicts_with_all = ["directory", "verify", "overwrite"])]
    pub(crate) device: Option<PathBuf>,
    /// The path of --device again, to confirm that everything on it may be lost
    #[arg(long, value_name = "PATH", requires = "device")]
    pub(crate) allow_destroy: Vec<PathBuf>,
    /// Permit the loss of data on this block device that no filesystem accounts for; without a terminal it is refused otherwise
    #[arg(long, value_name = "PATH", requires = "device")]
    pub(crate) allow_destroy_data: Vec<PathBuf>,
    /// The seed of all random streams. Default: drawn, and printed
    #[arg(long, value_name = "N", value_parser = parse_number, allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
    /// Read every file back afterwards and check the stamps of its data (for loads with `data = { stamped = true }`)
    #[arg(long, conflicts_with = "json")]
    pub(crate) verify: bool,
    /// Replace files that have the load's names in a directory that fstone did not make
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Print the whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// With many ranks: write ranks.json and ranks.csv here, anew after each phase, so that they survive if the job is killed
    #[cfg(feature = "mpi")]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    #[cfg(feature = "mpi")]
    #[command(flatten)]
    pub(crate) patience: Patience,
    /// SPEC is what a step of a study hands to its ranks
    #[cfg(feature = "mpi")]
    #[arg(long, hide = true)]
    pub(crate) of_step: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fstone ffsb profile.ffsb\n  fstone ffsb old-4.x-profile 300")]
pub(crate) struct FfsbArguments {
    /// The profile, in FFSB's 4.x, 5.x or 6.0 format
    #[arg(value_name = "PROFILE")]
    pub(crate) profile: PathBuf,
    /// Seconds to run (4.x profiles expect it here)
    #[arg(value_name = "SECONDS", value_parser = parse_number)]
    pub(crate) seconds: Option<u64>,
    /// Replace files that have the load's names in a directory that fstone did not make
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// The seed of all random streams
    #[arg(long, value_name = "N", value_parser = parse_number, allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Files are made in the directories that the personality names (`set $dir=/tmp`), each fileset in one of its own. Unlike filebench, \
fstone makes them only in a directory that is empty or that it made itself.

Examples:
  fstone filebench varmail.f            as long as the file says (`run 60`)
  fstone filebench varmail.f 10         for 10 seconds
  fstone filebench -f varmail.f         as filebench is called
  fstone convert varmail.f              the same load as a workload file

In a study: load = { filebench = \"varmail.f\" }. docs/formats/filebench.md says what differs from filebench.")]
pub(crate) struct FilebenchArguments {
    /// The personality
    #[arg(value_name = "PERSONALITY", required_unless_present = "script")]
    pub(crate) personality: Option<PathBuf>,
    /// Seconds to run, whatever the personality says
    #[arg(value_name = "SECONDS", value_parser = parse_number)]
    pub(crate) seconds: Option<u64>,
    /// The personality, for filebench's own syntax
    #[arg(short = 'f', value_name = "PERSONALITY", conflicts_with = "personality")]
    pub(crate) script: Option<PathBuf>,
    /// Replace files that have the load's names in a directory that fstone did not make
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// The seed of all random streams
    #[arg(long, value_name = "N", value_parser = parse_number, allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct FioArguments {
    /// fio's own arguments: JOB.fio --output-format=json, or --name=NAME --rw=randread --size=1g …
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct SysbenchArguments {
    /// sysbench's own arguments: fileio --file-test-mode=rndrw … run
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// A load in any format, recognised by its extension, or a recording; without an extension, an FFSB profile
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Seconds to run, for formats that do not contain it (FFSB 4.x profiles)
    #[arg(value_name = "SECONDS", value_parser = parse_number)]
    pub(crate) seconds: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct FiguresArguments {
    /// What the program printed; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// A regular expression with one group, the number
    #[arg(id = "match", long = "match", value_name = "EXPRESSION", allow_hyphen_values = true, required_unless_present_any = ["json", "csv"], conflicts_with_all = ["json", "csv"])]
    pub(crate) expression: Option<String>,
    /// A JSON pointer to a number or to a list of numbers: /jobs/0/read/iops
    #[arg(long, value_name = "POINTER", conflicts_with = "csv")]
    pub(crate) json: Option<String>,
    /// The name of a column of a table with commas
    #[arg(long, value_name = "COLUMN")]
    pub(crate) csv: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_formats::loads::{ALL, native};

    #[test]
    fn the_help_names_the_extension_of_every_other_format() {
        let command = LoadArguments::augment_args(clap::Command::new("load"));
        let spec = command.get_arguments().find(|argument| argument.get_id() == "spec").expect("it is there");
        let help = spec.get_help().expect("it has one").to_string();
        for format in ALL.iter().filter(|format| format.key != native::FORMAT.key) {
            for extension in format.extensions {
                assert!(
                    help.contains(&format!("*.{extension},")) || help.contains(&format!("*.{extension})")),
                    "{extension}"
                );
            }
        }
    }
}

//! `fstone kernel` as it is typed, and the values of `--kernel`.

use clap::{Args, Subcommand, builder::NonEmptyStringValueParser};
use fstone_model::study::KernelSpec;

/// What a kernel whose time can be simulated is built from, unless another source is named.
pub(crate) const USUAL_SOURCE: &str = "linux-source-6.1";

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fstone kernel add uml:5.10\n  fstone kernel add linux-image-cloud-amd64/trixie\n  fstone kernel add ./vmlinuz\n  fstone kernel build\n  fstone kernel build ~/src/linux --name patched\n  fstone kernel list\n  \
    fstone run random-io --quick --kernel uml:5.10 --kernel uml:6.1"
)]
pub(crate) struct KernelArguments {
    #[command(subcommand)]
    pub(crate) action: KernelAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KernelAction {
    /// Fetch a Debian package with the system's apt (uml:5.10, uml:6.1, uml:6.12, qemu:6.1, qemu:6.12, PACKAGE or PACKAGE/SUITE) and unpack it, or take a .deb, a directory or a kernel by its path
    Add {
        /// What to add
        #[arg(value_name = "PACKAGE|PATH", required = true, value_parser = NonEmptyStringValueParser::new())]
        what: Vec<String>,
    },
    /// Build a kernel whose time can be simulated, for exact figures. Takes about 8 minutes of CPU time, once; nothing is installed, and your tree is not changed
    Build {
        /// A package (linux-source-6.1, linux-source-6.12, or NAME/SUITE), an archive of a kernel's sources (.tar, .tar.xz, .tar.gz), or the directory of a kernel tree
        #[arg(value_name = "SOURCE", default_value = USUAL_SOURCE)]
        source: String,
        /// Its name in studies, after `exact:`. Default: its release, or the directory's name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Have it count the instructions that it executes, for `kernel work`, --cpu and `fstone profile`
        #[arg(long)]
        counting: bool,
    },
    /// List the kernels that a study can name
    List,
}

/// A value of `--kernel`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NamedKernel {
    There(KernelSpec),
    /// One to be built from these sources before the study begins.
    Tree(String),
}

impl NamedKernel {
    const BUILD: &str = "build:";

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix(Self::BUILD) {
            Some("") => Err("no sources given; write build:TREE, like build:. or build:/home/me/linux".into()),
            Some(tree) => Ok(Self::Tree(tree.to_owned())),
            None => text.parse().map(Self::There).map_err(|error: String| format!("{error}, or build:TREE")),
        }
    }

    pub(crate) fn written(&self) -> String {
        match self {
            Self::There(kernel) => kernel.written(),
            Self::Tree(tree) => format!("{}{tree}", Self::BUILD),
        }
    }
}

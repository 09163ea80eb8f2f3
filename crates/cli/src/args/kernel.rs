//! Values of `--kernel`.

use fstone_model::study::KernelSpec;

/// A value of `--kernel`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NamedKernel {
    /// An existing kernel.
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

    /// As it is written after `--kernel`.
    pub(crate) fn written(&self) -> String {
        match self {
            Self::There(kernel) => kernel.written(),
            Self::Tree(tree) => format!("{}{tree}", Self::BUILD),
        }
    }
}

//! What `--kernel` names.

use fstone_model::study::KernelSpec;

/// What `--kernel` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NamedKernel {
    /// One that is there, or should be.
    There(KernelSpec),
    /// One that is built of these sources before the study begins.
    Tree(String),
}

impl NamedKernel {
    const BUILD: &str = "build:";

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix(Self::BUILD) {
            Some("") => Err("which sources? write build:TREE, like build:. or build:/home/me/linux".into()),
            Some(tree) => Ok(Self::Tree(tree.to_owned())),
            None => text.parse().map(Self::There).map_err(|error: String| format!("{error}, or build:TREE")),
        }
    }

    /// As it is written behind `--kernel`.
    pub(crate) fn written(&self) -> String {
        match self {
            Self::There(kernel) => kernel.written(),
            Self::Tree(tree) => format!("{}{tree}", Self::BUILD),
        }
    }
}

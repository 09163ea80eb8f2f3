//! How a trial ended. Outcomes are results, printed in the table with a footnote; they are not errors.

use serde::{Deserialize, Serialize};

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// Every step ran and its figures stand.
    Completed,
    /// The kernel or mkfs does not know, or does not accept, an option of this cell.
    Refused(Reason),
    /// A step failed: a command's exit status, an operation's errno, an unclean fsck, a full device.
    Failed(Reason),
    /// A step did not end within its limit.
    Hung(Reason),
    /// The kernel crashed.
    Crashed(Reason),
    /// It was not tried: a tool or a permission is missing.
    Skipped(Reason),
}

/// Why a trial did not complete, in the words of the program or kernel that refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub step: String,
    pub words: String,
    pub cure: Option<String>,
}

/// What precedes the filesystem's name where the running kernel lacks it.
pub const KERNEL_LACKS: &str = "the running kernel has no ";

/// What a failure says in which a load read other data than it wrote.
pub const CORRUPTION: &str = "corruption: the data read is not the data written";

/// How the words of a check begin that found damage.
pub const NOT_CONSISTENT: &str = "the filesystem is not consistent";

/// How the words of a check begin that could not be made: nothing is known of the data.
pub const NOT_CHECKED: &str = "the filesystem could not be checked";

impl Reason {
    pub fn new(step: impl Into<String>, words: impl Into<String>) -> Self {
        Self { step: step.into(), words: words.into(), cure: None }
    }

    #[must_use]
    pub fn with_cure(mut self, cure: impl Into<String>) -> Self {
        self.cure = Some(cure.into());
        self
    }
}

impl Outcome {
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Refused(_) => "refused",
            Self::Failed(_) => "failed",
            Self::Hung(_) => "hung",
            Self::Crashed(_) => "crashed",
            Self::Skipped(_) => "skipped",
        }
    }

    pub const fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Completed => None,
            Self::Refused(reason)
            | Self::Failed(reason)
            | Self::Hung(reason)
            | Self::Crashed(reason)
            | Self::Skipped(reason) => Some(reason),
        }
    }

    pub const fn reason_mut(&mut self) -> Option<&mut Reason> {
        match self {
            Self::Completed => None,
            Self::Refused(reason)
            | Self::Failed(reason)
            | Self::Hung(reason)
            | Self::Crashed(reason)
            | Self::Skipped(reason) => Some(reason),
        }
    }

    /// The filesystem that the running kernel lacks, if that is why the trial was skipped.
    pub fn lacking_filesystem(&self) -> Option<&str> {
        match self {
            Self::Skipped(reason) => reason.words.strip_prefix(KERNEL_LACKS),
            _ => None,
        }
    }

    pub const fn is_completed(&self) -> bool {
        matches!(self, Self::Completed)
    }

    /// Whether another try of the same cell would end in the same way, so that further repeats are skipped.
    pub const fn is_final_for_cell(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Skipped(_))
    }
}

//! Kinds of steps.

/// The kind of a step, without its particulars: metrics list the kinds of steps that have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    Mkfs,
    Mount,
    Load,
    Command,
    /// Starts a service.
    Service,
    /// Unmounts, drops caches and mounts again.
    Remount,
    Unmount,
    /// sync(2).
    Sync,
    /// Drops the page, dentry and inode caches.
    DropCaches,
    /// FITRIM.
    Trim,
    Fsck,
    /// Counts extents per file.
    Fragmentation,
    /// Copies files of the host into the filesystem.
    CopyIn,
    PowerCut,
    Age,
}

impl StepKind {
    pub const ALL: [Self; 15] = [
        Self::Mkfs,
        Self::Mount,
        Self::Load,
        Self::Command,
        Self::Service,
        Self::Remount,
        Self::Unmount,
        Self::Sync,
        Self::DropCaches,
        Self::Trim,
        Self::Fsck,
        Self::Fragmentation,
        Self::CopyIn,
        Self::PowerCut,
        Self::Age,
    ];

    /// Its name in study files, and the default name of such a step.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mkfs => "mkfs",
            Self::Mount => "mount",
            Self::Load => "load",
            Self::Command => "command",
            Self::Service => "service",
            Self::Remount => "remount",
            Self::Unmount => "unmount",
            Self::Sync => "sync",
            Self::DropCaches => "drop-caches",
            Self::Trim => "trim",
            Self::Fsck => "fsck",
            Self::Fragmentation => "fragmentation",
            Self::CopyIn => "copy-in",
            Self::PowerCut => "power-cut",
            Self::Age => "age",
        }
    }
}

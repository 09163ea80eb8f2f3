//! Kinds of steps.

crate::named! {
    /// The kind of a step, without its particulars: metrics list the kinds of steps that have them. A step has this
    /// name unless the study gives it one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum StepKind: name, ALL {
        Mkfs => "mkfs",
        Mount => "mount",
        Load => "load",
        Command => "command",
        /// Starts a service.
        Service => "service",
        /// Unmounts, drops caches and mounts again.
        Remount => "remount",
        Unmount => "unmount",
        /// sync(2).
        Sync => "sync",
        /// Drops the page, dentry and inode caches.
        DropCaches => "drop-caches",
        /// FITRIM.
        Trim => "trim",
        Fsck => "fsck",
        /// Counts extents per file.
        Fragmentation => "fragmentation",
        /// Copies files of the host into the filesystem.
        CopyIn => "copy-in",
        PowerCut => "power-cut",
        Age => "age",
    }
}

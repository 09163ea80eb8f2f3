//! The words of the language: commands, attributes and flowops.

/// The commands of filebench 1.5, and those of 1.4 that its own personalities still use.
pub(super) const COMMANDS: &[&str] = &[
    "create",
    "debug",
    "define",
    "domultisync",
    "echo",
    "enable",
    "eventgen",
    "list",
    "psrun",
    "quit",
    "run",
    "set",
    "sleep",
    "stats",
    "system",
    "usage",
    "version",
];

pub(super) fn is_command(word: &str) -> bool {
    COMMANDS.contains(&word)
}

fstone_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Of: what {
        File => "a file",
        Fileset => "a fileset",
        Process => "a process",
        Thread => "a thread",
        Flowop => "a flowop",
        Composite => "a flowop that is put together of others",
        Randvar => "a random variable",
        Cvar => "a custom variable",
        Eventgen => "the event generator",
        Multi => "this command",
    }
}

impl Of {
    pub(super) const fn attributes(self) -> &'static [&'static str] {
        match self {
            Self::File => &[
                "name",
                "path",
                "size",
                "filesize",
                "prealloc",
                "paralloc",
                "reuse",
                "trusttree",
                "readonly",
                "writeonly",
                "cached",
            ],
            Self::Fileset => &[
                "name",
                "path",
                "entries",
                "size",
                "filesize",
                "prealloc",
                "paralloc",
                "reuse",
                "trusttree",
                "readonly",
                "writeonly",
                "dirwidth",
                "dirdepthrv",
                "dirgamma",
                "leafdirs",
                "cached",
            ],
            Self::Process => &["name", "instances", "nice"],
            Self::Thread => &["name", "memsize", "useism", "instances", "ioprio"],
            Self::Flowop => &[
                "name",
                "filename",
                "filesetname",
                "fd",
                "srcfd",
                "iosize",
                "iters",
                "random",
                "dsync",
                "directio",
                "workingset",
                "opennext",
                "indexed",
                "target",
                "value",
                "blocking",
                "highwater",
                "noreadahead",
            ],
            Self::Composite => &["name", "iters"],
            Self::Randvar => &["name", "type", "randsrc", "seed", "gamma", "mean", "min", "round"],
            Self::Cvar => &["type", "parameters", "min", "max", "round"],
            Self::Eventgen => &["rate"],
            Self::Multi => &["master", "client", "value"],
        }
    }

    pub(super) const fn has_locals(self) -> bool {
        matches!(self, Self::Flowop | Self::Composite)
    }
}

pub(super) const FLOWOPS: &[&str] = &[
    "aiowait",
    "aiowrite",
    "appendfile",
    "appendfilerand",
    "block",
    "bwlimit",
    "closefile",
    "createfile",
    "delay",
    "deletefile",
    "eventlimit",
    "finishonbytes",
    "finishoncount",
    "fsync",
    "fsyncset",
    "hog",
    "iopslimit",
    "listdir",
    "makedir",
    "openfile",
    "opslimit",
    "print",
    "read",
    "readwholefile",
    "removedir",
    "semblock",
    "sempost",
    "statfile",
    "testrandvar",
    "wakeup",
    "write",
    "writewholefile",
];

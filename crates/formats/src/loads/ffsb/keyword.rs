//! Every keyword of an FFSB 5.x or 6.0 profile, defined once: reading, suggestions and documentation use this table.

fstone_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Part: name {
        Global => "the global part",
        Filesystem => "[filesystem]",
        Threadgroup => "[threadgroup]",
        Stats => "[stats]",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Number,
    /// 0 or 1; 5.x takes every number but 0 for 1.
    Flag,
    /// Bytes, with k, m or g (1024-based).
    Size,
    /// A share, 0 to 1.
    Share,
    Word,
    /// The rest of the line.
    Line,
    /// `SIZE WEIGHT`, without `=`; may be given many times.
    SizeAndWeight,
    /// `FROM TO` in milliseconds, without `=`; may be given many times.
    Range,
    /// A word that may be given many times.
    Words,
}

impl Kind {
    pub const fn expected(self) -> &'static str {
        match self {
            Self::Number => "a whole number",
            Self::Flag => "0 or 1",
            Self::Size => "a size in bytes, such as 4096, 64k or 1g",
            Self::Share => "a share from 0 to 1, such as 0.2",
            Self::Word | Self::Words => "a word",
            Self::Line => "a shell command",
            Self::SizeAndWeight => "a size and a weight, such as 4k 33",
            Self::Range => "two times in milliseconds, such as 0.5 1.0",
        }
    }

    pub const fn is_list(self) -> bool {
        matches!(self, Self::SizeAndWeight | Self::Range | Self::Words)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Keyword {
    pub name: &'static str,
    /// The name it is looked up by: that of 6.0 where 5.x has another.
    pub canonical: &'static str,
    pub part: Part,
    pub kind: Kind,
    /// Whether, in 5.x, a section takes it over from the one before.
    pub inherited: bool,
}

const fn keyword(part: Part, name: &'static str, kind: Kind) -> Keyword {
    Keyword { name, canonical: name, part, kind, inherited: !matches!(part, Part::Global | Part::Stats) }
}

impl Keyword {
    const fn own(mut self) -> Self {
        self.inherited = false;
        self
    }

    const fn means(mut self, canonical: &'static str) -> Self {
        self.canonical = canonical;
        self
    }
}

use Kind::{Flag, Line, Number, Range, Share, Size, SizeAndWeight, Word, Words};
use Part::{Filesystem, Global, Stats, Threadgroup};

pub static KEYWORDS: &[Keyword] = &[
    keyword(Global, "num_filesystems", Number),
    keyword(Global, "num_threadgroups", Number),
    keyword(Global, "time", Number),
    keyword(Global, "directio", Flag),
    keyword(Global, "alignio", Flag),
    keyword(Global, "bufferio", Flag),
    keyword(Global, "bufferedio", Flag).means("bufferio"),
    keyword(Global, "verbose", Flag),
    keyword(Global, "callout", Line),
    keyword(Filesystem, "location", Word).own(),
    keyword(Filesystem, "num_files", Number),
    keyword(Filesystem, "num_dirs", Number),
    keyword(Filesystem, "min_filesize", Size),
    keyword(Filesystem, "max_filesize", Size),
    keyword(Filesystem, "size_weight", SizeAndWeight),
    keyword(Filesystem, "init_size", Size),
    keyword(Filesystem, "init_util", Share),
    keyword(Filesystem, "create_blocksize", Size),
    keyword(Filesystem, "age_blocksize", Size),
    keyword(Filesystem, "reuse", Flag),
    keyword(Filesystem, "agefs", Flag),
    keyword(Filesystem, "desired_util", Share),
    keyword(Filesystem, "clone", Word).own(),
    keyword(Threadgroup, "num_threads", Number),
    keyword(Threadgroup, "bindfs", Word).own(),
    keyword(Threadgroup, "read_random", Flag),
    keyword(Threadgroup, "read_size", Size),
    keyword(Threadgroup, "read_blocksize", Size),
    keyword(Threadgroup, "read_skip", Flag),
    keyword(Threadgroup, "read_skipsize", Size),
    keyword(Threadgroup, "write_random", Flag),
    keyword(Threadgroup, "write_size", Size),
    keyword(Threadgroup, "write_blocksize", Size),
    keyword(Threadgroup, "fsync_file", Flag),
    keyword(Threadgroup, "op_delay", Number),
    keyword(Threadgroup, "read_weight", Number).own(),
    keyword(Threadgroup, "readall_weight", Number).own(),
    keyword(Threadgroup, "write_weight", Number).own(),
    keyword(Threadgroup, "create_weight", Number).own(),
    keyword(Threadgroup, "append_weight", Number).own(),
    keyword(Threadgroup, "delete_weight", Number).own(),
    keyword(Threadgroup, "metaop_weight", Number).own(),
    keyword(Threadgroup, "meta_weight", Number).means("metaop_weight").own(),
    keyword(Threadgroup, "createdir_weight", Number).own(),
    keyword(Threadgroup, "stat_weight", Number).own(),
    keyword(Threadgroup, "writeall_weight", Number).own(),
    keyword(Threadgroup, "writeall_fsync_weight", Number).own(),
    keyword(Threadgroup, "open_close_weight", Number).own(),
    keyword(Threadgroup, "write_fsync_weight", Number).own(),
    keyword(Threadgroup, "create_fsync_weight", Number).own(),
    keyword(Threadgroup, "append_fsync_weight", Number).own(),
    keyword(Stats, "enable_stats", Flag),
    keyword(Stats, "enable_range", Flag),
    keyword(Stats, "ignore", Words),
    keyword(Stats, "msec_range", Range),
];

pub fn find(part: Part, name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.part == part && keyword.name == name)
}

/// The keyword that goes by this canonical name; for translating the 4.x format.
///
/// # Panics
/// When there is none: the name is always written out in this crate.
pub(super) fn canonical(part: Part, name: &'static str) -> &'static Keyword {
    find(part, name).expect("a keyword of the table")
}

pub fn names(part: Part) -> impl Iterator<Item = &'static str> {
    KEYWORDS.iter().filter(move |keyword| keyword.part == part).map(|keyword| keyword.name)
}

//! Options, and reasons for what becomes of them, that the tables of both programs have.

use super::{Kind, Opt, Treatment};
use crate::loads::CommandOnly;

pub(in crate::loads) const fn refused(option: Opt, why: &'static str) -> Opt {
    option.treated(Treatment::Refused(why))
}

pub(in crate::loads) const fn ignored(option: Opt, why: &'static str) -> Opt {
    option.treated(Treatment::Ignored(why))
}

pub(in crate::loads) const fn own(name: &'static str, kind: Kind, about: &'static str) -> Opt {
    Opt::word(name, kind, about).treated(Treatment::Own)
}

pub(in crate::loads) const fn output(option: Opt) -> Opt {
    option.command_only(CommandOnly::Output)
}

pub(in crate::loads) const JSON: Opt =
    output(own("json", Kind::Flag, "print the summary as JSON instead of the table"));
pub(in crate::loads) const SEED: Opt =
    own("seed", Kind::Number(u64::MAX >> 16), "the seed of all random numbers").command_only(CommandOnly::Seed);
pub(in crate::loads) const SILENCE: Opt =
    output(own("rank-silence", Kind::Time, "a task without a heartbeat for this long counts as dead").default("60s"));
pub(in crate::loads) const STILLNESS: Opt = output(
    own("rank-stillness", Kind::Time, "a task that completes nothing for this long counts as hung").default("10min"),
);

pub(in crate::loads) const VERBOSE: &str = "everything is printed, and --results has more";
pub(in crate::loads) const RANDOM_DATA: &str = "data is random and different for every write";
pub(in crate::loads) const ERRORS_TOLD: &str = "errors of operations are always reported, with exit status 4";
pub(in crate::loads) const NOT_COMPARED: &str =
    "data is not compared when read; `fstone load --verify` does that with stamped data";
pub(in crate::loads) const NO_GPU: &str = "there is no I/O to GPU memory";
pub(in crate::loads) const LAUNCHER: &str = "a load has as many tasks as the launcher starts";

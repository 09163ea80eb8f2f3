//! A movement of data: its keys, how they are read, and how they are printed.

use super::{
    lines::{self, KeyValues},
    sizes::{self, SizeSurface, blocks},
    value::{Small, bytes, flag, small, word},
};
use crate::{
    decode::{At, Count, Decode, Field, Flag, Listed, Node, Real, Size, Word, listed, table, wrong_type},
    diagnostic::{Diagnostic, Report, Span},
};
use fstone_model::workload::{
    Distribution, Extent, MAXIMUM_ZONES, Pattern, Runs, SizeDistribution, Transfer, Zone, Zones,
};
use serde_json::{Value, json};
use toml::de::DeValue;

table! {
    /// A movement of data within a file.
    pub(crate) struct TransferSurface {
        /// How much one operation moves: a size, "block" for one block, or "whole" for the file (the default).
        "size" => size: ExtentSurface;
        /// How much one system call moves: a size, or a table with a distribution from which each size is drawn.
        "block" => block: SizeSurface, required;
        /// Where: "from-start" (the default), "from-random", "cursor", "shared-cursor", "random", "skip", "stride", "bursts", "written" or "runs".
        "pattern" => pattern: Listed<PatternWord>;
        /// Random offsets are multiples of this. Of the block, or the smallest block, unless given.
        "align" => align: Size;
        /// How random offsets are drawn: "uniform" (the default), "permutation", { zipf = 1.2 }, { gauss = 0.1 }, { pareto = 0.2 } or zones.
        "distribution" => distribution: DistributionSurface;
        /// How much is skipped after each block; with "stride", the distance from the end of one operation to the start of the next.
        "skip" => skip: Size;
        /// With "stride", instead of `skip`: how far before the end of one operation the next one starts.
        "back" => back: Size;
        /// With "bursts": number of consecutive operations of a thread from each drawn place. With "stride": the same between two gaps, 1 unless given.
        "burst" => burst: Small;
        /// With "written": how many of the previous phases count. 1 unless given.
        "phases" => phases: Small;
        /// With "runs": the length of each run.
        "run" => run: Size;
        /// With "runs": the length of all runs together, without the gaps.
        "total" => total: Size;
        /// With "runs": where the first run starts. At the start of the file unless given.
        "begin" => begin: Size;
        /// With "runs": the distance from the end of one run to the start of the next. None unless given.
        "gap" => gap: Size;
        /// With "runs", in a load of many ranks: whether the first runs of all ranks come first, then all second runs, and so on. False unless given.
        "interleaved" => interleaved: Flag;
        /// With "runs": whether the blocks come in random order, each once. False unless given.
        "shuffled" => shuffled: Flag;
        /// Whether to fsync the file after the transfer. False unless given.
        "fsync" => fsync: Flag;
        /// For `mmap-write`: whether to msync the written data. False unless given.
        "msync" => msync: Flag;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExtentSurface {
    Whole,
    Block,
    Bytes(u64),
}

pub(crate) const WHOLE: &str = "whole";
pub(crate) const BLOCK: &str = "block";

impl Decode for ExtentSurface {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        match node.get_ref().as_str() {
            Some(WHOLE) => Some(Self::Whole),
            Some(BLOCK) => Some(Self::Block),
            _ => Size::decode(node, report).map(|Size(bytes)| Self::Bytes(bytes)),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "enum": [WHOLE, BLOCK] }, Size::schema()] })
    }

    fn expected() -> String {
        format!("a size such as \"4 KiB\", \"{BLOCK}\" or \"{WHOLE}\"")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternWord {
    FromStart,
    FromRandom,
    Cursor,
    SharedCursor,
    Random,
    Skip,
    Stride,
    Bursts,
    Written,
    Runs,
}

#[derive(Debug, Clone)]
pub(crate) enum DistributionSurface {
    Word(DistributionWord),
    Table(Box<DistributionTable>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DistributionWord {
    Uniform,
    Permutation,
}

table! {
    /// The distributions with a parameter.
    pub(crate) struct DistributionTable {
        /// A Zipf distribution with this exponent.
        "zipf" => zipf: Real;
        /// A normal distribution around the middle, with this standard deviation as a share of the space.
        "gauss" => gauss: Real;
        /// With `gauss`: whether places are scattered over the space, so that frequent ones are not neighbours. False unless given.
        "scattered" => scattered: Flag;
        /// The Pareto principle: this share of the space (below 1) gets the rest of the operations, and so on within it.
        "pareto" => pareto: Real;
        /// Consecutive zones of the space, drawn by weight; within a zone all places are equally likely.
        "zones" => zones: Vec<At<ZoneSurface>>;
    }
    one of ["zipf", "gauss", "pareto", "zones"]
}

table! {
    /// A zone of the space that offsets are drawn from.
    pub(crate) struct ZoneSurface {
        /// Its share of the operations is weight / sum of weights.
        "weight" => weight: Count<0, { u32::MAX as u64 }>, required;
        /// Its share of the space is length / sum of lengths.
        "length" => length: Count<1, { u32::MAX as u64 }>, required;
    }
}

impl Decode for DistributionSurface {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        match node.get_ref() {
            DeValue::String(text) => {
                let word = DistributionWord::WORDS.iter().find(|(word, _)| word == text);
                if word.is_none() {
                    report.push(
                        Diagnostic::error(node.span(), format!("unknown distribution `{text}`"))
                            .label(format!("expected {}", Self::expected())),
                    );
                }
                word.map(|(_, word)| Self::Word(*word))
            }
            DeValue::Table(_) => DistributionTable::decode(node, report).map(|table| Self::Table(Box::new(table))),
            _ => wrong_type(node, &Self::expected(), report),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [Listed::<DistributionWord>::schema(), DistributionTable::schema()] })
    }

    fn expected() -> String {
        "\"uniform\", \"permutation\", { zipf = 1.2 }, { gauss = 0.1 }, { pareto = 0.2 } or { zones = [{ weight = 60, length = 10 }, …] }".into()
    }
}

pub(super) fn read(surface: &TransferSurface, report: &mut Report) -> (Transfer, Option<SizeDistribution>) {
    let (block_bytes, blocks) = surface.block.as_ref().map_or((1, None), |field| blocks(field, report));
    let smallest =
        blocks.as_ref().and_then(SizeDistribution::block_bounds).map_or(block_bytes, |(smallest, _)| smallest);
    let word = word(surface.pattern.as_ref(), PatternWord::FromStart);
    let place = surface.pattern.as_ref().map(|field| field.span);
    let mut only_for = |key: Option<Span>, name: &str, words: &[PatternWord]| {
        let Some(key) = key.filter(|_| !words.contains(&word)) else { return };
        let known = PatternWord::WORDS.iter().filter(|(_, value)| words.contains(value)).map(|(word, _)| *word);
        let patterns = listed(&known.collect::<Vec<_>>());
        let diagnostic =
            Diagnostic::error(key, format!("`{name}` is for the pattern {patterns}")).label("it would change nothing");
        report.push(match place {
            Some(place) => diagnostic.context(place, "the pattern"),
            None => diagnostic.note("the pattern is \"from-start\" unless given"),
        });
    };
    let aligned = [PatternWord::FromRandom, PatternWord::Random, PatternWord::Bursts];
    only_for(surface.align.as_ref().map(|field| field.key), "align", &aligned);
    only_for(surface.distribution.as_ref().map(|field| field.key), "distribution", &[PatternWord::Random]);
    only_for(surface.skip.as_ref().map(|field| field.key), "skip", &[PatternWord::Skip, PatternWord::Stride]);
    only_for(surface.back.as_ref().map(|field| field.key), "back", &[PatternWord::Stride]);
    only_for(surface.burst.as_ref().map(|field| field.key), "burst", &[PatternWord::Bursts, PatternWord::Stride]);
    only_for(surface.phases.as_ref().map(|field| field.key), "phases", &[PatternWord::Written]);
    let of_runs =
        [&surface.run, &surface.total, &surface.begin, &surface.gap].map(|field| field.as_ref().map(|field| field.key));
    let flags = [&surface.interleaved, &surface.shuffled].map(|field| field.as_ref().map(|field| field.key));
    for (key, name) in of_runs.into_iter().chain(flags).zip(["run", "total", "begin", "gap", "interleaved", "shuffled"])
    {
        only_for(key, name, &[PatternWord::Runs]);
    }
    if let Some(place) =
        place.filter(|_| word == PatternWord::Runs && (surface.run.is_none() || surface.total.is_none()))
    {
        report.push(
            Diagnostic::error(place, "how long are the runs?").help("for example: run = \"1 MiB\", total = \"16 MiB\""),
        );
    }
    if let Some(place) = place.filter(|_| word == PatternWord::Skip && surface.skip.is_none()) {
        report.push(Diagnostic::error(place, "how much is skipped?").help("for example: skip = \"64 KiB\""));
    }
    if let Some(place) =
        place.filter(|_| word == PatternWord::Stride && surface.skip.is_some() == surface.back.is_some())
    {
        report.push(
            Diagnostic::error(place, "how far is a stride?")
                .help("for example: skip = \"64 KiB\", or back = \"64 KiB\""),
        );
    }
    if let Some(place) = place.filter(|_| word == PatternWord::Bursts && surface.burst.is_none()) {
        report.push(Diagnostic::error(place, "how long are the bursts?").help("for example: burst = 8"));
    }
    let align_bytes = surface.align.as_ref().map_or(smallest, |field| {
        if field.value.0 == 0 {
            report.push(Diagnostic::error(field.span, "nothing is a multiple of 0").label("expected at least 1 byte"));
        }
        field.value.0
    });
    let pattern = match word {
        PatternWord::FromStart => Pattern::FromStart,
        PatternWord::FromRandom => Pattern::FromRandom { align_bytes },
        PatternWord::Cursor => Pattern::Cursor { shared: false },
        PatternWord::SharedCursor => Pattern::Cursor { shared: true },
        PatternWord::Random => Pattern::Random { distribution: distribution(surface, report), align_bytes },
        PatternWord::Stride => {
            Pattern::Stride { gap_bytes: stride(surface, report), run: small(surface.burst.as_ref()) }
        }
        PatternWord::Bursts => Pattern::Bursts { operations: small(surface.burst.as_ref()), align_bytes },
        PatternWord::Written => Pattern::Written { phases: small(surface.phases.as_ref()) },
        PatternWord::Skip => Pattern::Skip { skip_bytes: bytes(surface.skip.as_ref()) },
        PatternWord::Runs => Pattern::Runs(Runs {
            begin_bytes: bytes(surface.begin.as_ref()),
            run_bytes: bytes(surface.run.as_ref()),
            gap_bytes: bytes(surface.gap.as_ref()),
            total_bytes: bytes(surface.total.as_ref()),
            interleaved: flag(surface.interleaved.as_ref(), false),
            shuffled: flag(surface.shuffled.as_ref(), false),
        }),
    };
    let extent = surface.size.as_ref().map_or(Extent::Whole, |field| match field.value {
        ExtentSurface::Whole => Extent::Whole,
        ExtentSurface::Block => Extent::Bytes(block_bytes),
        ExtentSurface::Bytes(bytes) => {
            if bytes == 0 {
                report.push(
                    Diagnostic::error(field.span, "an operation has to move something")
                        .label("expected at least 1 byte"),
                );
            }
            Extent::Bytes(bytes)
        }
    });
    (Transfer { extent, block_bytes, pattern, fsync: flag(surface.fsync.as_ref(), false) }, blocks)
}

fn stride(surface: &TransferSurface, report: &mut Report) -> i64 {
    let (field, sign) = surface.back.as_ref().map_or((surface.skip.as_ref(), 1), |back| (Some(back), -1));
    let Some(field) = field else { return 0 };
    let bytes = i64::try_from(field.value.0).unwrap_or_else(|_| {
        report.push(Diagnostic::error(field.span, "no file is that large"));
        0
    });
    sign * bytes
}

fn zones(field: &Field<Vec<At<ZoneSurface>>>, report: &mut Report) -> Distribution {
    let number = |number: u64| u32::try_from(number).expect("the type allows no more");
    let of = |zone: &ZoneSurface| Zone {
        weight: zone.weight.as_ref().map_or(0, |field| number(field.value.0)),
        length: zone.length.as_ref().map_or(1, |field| number(field.value.0)),
    };
    let all: Vec<Zone> = field.value.iter().map(|at| of(&at.value)).collect();
    Zones::new(&all).map_or_else(
        || {
            let expected = format!("expected 1 to {MAXIMUM_ZONES}, of which one at least has a weight");
            report.push(Diagnostic::error(field.span, "nothing can be drawn from these zones").label(expected));
            Distribution::Uniform
        },
        Distribution::Zoned,
    )
}

fn distribution(surface: &TransferSurface, report: &mut Report) -> Distribution {
    match surface.distribution.as_ref().map(|field| &field.value) {
        None | Some(DistributionSurface::Word(DistributionWord::Uniform)) => Distribution::Uniform,
        Some(DistributionSurface::Word(DistributionWord::Permutation)) => Distribution::Permutation,
        Some(DistributionSurface::Table(table)) if table.gauss.is_none() && table.scattered.is_some() => {
            let place = table.scattered.as_ref().map(|field| field.key).unwrap_or_default();
            report.push(Diagnostic::error(place, "`scattered` is for `gauss`").label("it would change nothing"));
            Distribution::Uniform
        }
        Some(DistributionSurface::Table(table)) => match (&table.zipf, &table.gauss, &table.pareto, &table.zones) {
            (Some(theta), ..) => Distribution::Zipf { theta: theta.value.0 },
            (None, Some(deviation), ..) => {
                Distribution::Gauss { deviation: deviation.value.0, scattered: flag(table.scattered.as_ref(), false) }
            }
            (None, None, Some(share), _) => {
                if share.value.0 >= 1.0 {
                    report.push(Diagnostic::error(share.span, "not a share").label("expected a number below 1"));
                }
                Distribution::Pareto { share: share.value.0 }
            }
            (None, None, None, Some(field)) => zones(field, report),
            (None, None, None, None) => Distribution::Uniform,
        },
    }
}

pub(super) fn print_block(bytes: u64, blocks: Option<&SizeDistribution>) -> String {
    blocks.map_or_else(|| lines::size(bytes), sizes::print)
}

pub(super) fn print(transfer: &Transfer, blocks: Option<&SizeDistribution>) -> KeyValues {
    let smallest =
        blocks.and_then(SizeDistribution::block_bounds).map_or(transfer.block_bytes, |(smallest, _)| smallest);
    let (word, align, distribution, skip) = match transfer.pattern {
        Pattern::FromStart => (None, None, None, None),
        Pattern::FromRandom { align_bytes } => (Some("\"from-random\""), Some(align_bytes), None, None),
        Pattern::Cursor { shared: false } => (Some("\"cursor\""), None, None, None),
        Pattern::Cursor { shared: true } => (Some("\"shared-cursor\""), None, None, None),
        Pattern::Random { distribution, align_bytes } => {
            let distribution = match distribution {
                Distribution::Uniform => None,
                Distribution::Permutation => Some("\"permutation\"".to_owned()),
                Distribution::Zipf { theta } => Some(format!("{{ zipf = {} }}", lines::real(theta))),
                Distribution::Gauss { deviation, scattered } => Some(lines::inline(&lines::wanted([
                    ("gauss", Some(lines::real(deviation))),
                    ("scattered", lines::flag(scattered)),
                ]))),
                Distribution::Pareto { share } => Some(format!("{{ pareto = {} }}", lines::real(share))),
                Distribution::Zoned(zones) => {
                    let print = |zone: &Zone| format!("{{ weight = {}, length = {} }}", zone.weight, zone.length);
                    let all: Vec<String> = zones.all().iter().map(print).collect();
                    Some(format!("{{ zones = [{}] }}", all.join(", ")))
                }
            };
            (Some("\"random\""), Some(align_bytes), distribution, None)
        }
        Pattern::Skip { skip_bytes } => (Some("\"skip\""), None, None, Some(skip_bytes)),
        Pattern::Stride { gap_bytes, .. } => {
            (Some("\"stride\""), None, None, (gap_bytes >= 0).then_some(gap_bytes.unsigned_abs()))
        }
        Pattern::Bursts { align_bytes, .. } => (Some("\"bursts\""), Some(align_bytes), None, None),
        Pattern::Runs(_) => (Some("\"runs\""), None, None, None),
        Pattern::Written { .. } => (Some("\"written\""), None, None, None),
    };
    let extent = match transfer.extent {
        Extent::Whole => format!("\"{WHOLE}\""),
        Extent::Bytes(bytes) if blocks.is_some() && bytes == transfer.block_bytes => format!("\"{BLOCK}\""),
        Extent::Bytes(bytes) => lines::size(bytes),
    };
    let runs = if let Pattern::Runs(runs) = transfer.pattern { Some(runs) } else { None };
    let back = if let Pattern::Stride { gap_bytes: back @ ..0, .. } = transfer.pattern {
        Some(back.unsigned_abs())
    } else {
        None
    };
    let burst = match transfer.pattern {
        Pattern::Bursts { operations, .. } => Some(operations),
        Pattern::Stride { run: run @ 2.., .. } => Some(run),
        _ => None,
    };
    let phases = if let Pattern::Written { phases: phases @ 2.. } = transfer.pattern { Some(phases) } else { None };
    let of_runs = |of: fn(Runs) -> u64| runs.map(of).filter(|bytes| *bytes > 0).map(lines::size);
    lines::wanted([
        ("size", Some(extent)),
        ("block", Some(print_block(transfer.block_bytes, blocks))),
        ("pattern", word.map(str::to_owned)),
        ("align", align.filter(|align| *align != smallest).map(lines::size)),
        ("distribution", distribution),
        ("skip", skip.map(lines::size)),
        ("back", back.map(lines::size)),
        ("burst", burst.map(|burst| burst.to_string())),
        ("phases", phases.map(|phases| phases.to_string())),
        ("run", of_runs(|runs| runs.run_bytes)),
        ("total", of_runs(|runs| runs.total_bytes)),
        ("begin", of_runs(|runs| runs.begin_bytes)),
        ("gap", of_runs(|runs| runs.gap_bytes)),
        ("interleaved", lines::flag(runs.is_some_and(|runs| runs.interleaved))),
        ("shuffled", lines::flag(runs.is_some_and(|runs| runs.shuffled))),
        ("fsync", lines::flag(transfer.fsync)),
    ])
}

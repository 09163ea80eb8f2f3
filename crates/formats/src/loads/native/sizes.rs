//! Sizes of files and blocks, and how they are drawn: their keys, how they are read, and how they are printed.

use super::{
    lines::{real, size as printed},
    value::{Small, bytes, check_block, or, small},
};
use crate::{
    decode::{At, Field, InPlace, OrTable, Real, Size, table},
    diagnostic::{Diagnostic, Report, Span},
};
use fstone_model::workload::SizeDistribution;

pub(crate) type SizeSurface = OrTable<Size, SizeTable>;

table! {
    /// How sizes are drawn.
    pub(crate) struct SizeTable {
        /// Uniform, from `from` to below `below`.
        "uniform" => uniform: UniformSurface;
        /// One of these sizes, drawn by weight.
        "weighted" => weighted: Vec<At<WeightedSize>>;
        /// A gamma distribution.
        "gamma" => gamma: GammaSurface;
        /// A lognormal distribution.
        "lognormal" => lognormal: LognormalSurface;
    }
    one of ["uniform", "weighted", "gamma", "lognormal"]
}

impl InPlace for SizeTable {
    const EXPECTED: &'static str =
        "a size such as \"4 KiB\", or { uniform = { from = \"4 KiB\", below = \"512 KiB\" } }";
}

table! {
    /// Uniform sizes.
    pub(crate) struct UniformSurface {
        /// The smallest size.
        "from" => from: Size, required;
        /// The first size that is too large.
        "below" => below: Size, required;
    }
}

table! {
    /// A size and its weight.
    pub(crate) struct WeightedSize {
        /// The size.
        "size" => size: Size, required;
        /// Its weight.
        "weight" => weight: Small, required;
    }
}

table! {
    /// Gamma-distributed sizes.
    pub(crate) struct GammaSurface {
        /// The mean.
        "mean" => mean: Size, required;
        /// The shape parameter; 1.5 is usual.
        "shape" => shape: Real, required;
    }
}

table! {
    /// Lognormally distributed sizes.
    pub(crate) struct LognormalSurface {
        /// The median.
        "median" => median: Size, required;
        /// Standard deviation of the logarithm.
        "sigma" => sigma: Real, required;
    }
}

pub(super) fn size(surface: &SizeSurface, span: Span, report: &mut Report) -> SizeDistribution {
    let table: &SizeTable = match surface {
        OrTable::Plain(Size(bytes)) => return SizeDistribution::Fixed(*bytes),
        OrTable::Table(table) => table,
    };
    let real = |field: Option<&Field<Real>>| or(field, 1.0, |Real(real)| real);
    if let Some(Field { value, .. }) = &table.uniform {
        let (minimum, maximum) = (bytes(value.from.as_ref()), bytes(value.below.as_ref()));
        if let (Some(from), Some(below)) = (&value.from, &value.below)
            && minimum > maximum
        {
            report.push(
                Diagnostic::error(below.span, "`below` is less than `from`")
                    .context(from.span, "`from`")
                    .label("expected a larger size"),
            );
        }
        return SizeDistribution::Uniform { minimum, maximum };
    }
    if let Some(Field { span, value: sizes, .. }) = &table.weighted {
        if sizes.is_empty() {
            report.push(Diagnostic::error(*span, "there is no size to draw").label("expected at least one size"));
        }
        let weighted = |at: &At<WeightedSize>| (bytes(at.value.size.as_ref()), small(at.value.weight.as_ref()));
        return SizeDistribution::Weighted(sizes.iter().map(weighted).collect());
    }
    let (distribution, middle) = if let Some(Field { value, .. }) = &table.gamma {
        let mean = bytes(value.mean.as_ref());
        (SizeDistribution::Gamma { mean, shape: real(value.shape.as_ref()) }, mean)
    } else if let Some(Field { value, .. }) = &table.lognormal {
        let median = bytes(value.median.as_ref());
        (SizeDistribution::Lognormal { median, sigma: real(value.sigma.as_ref()) }, median)
    } else {
        (SizeDistribution::Fixed(0), 1)
    };
    if middle == 0 {
        report.push(Diagnostic::error(span, "a distribution around 0 bytes has only empty files"));
    }
    distribution
}

/// The largest block, and the sizes that blocks are drawn from where they are not alike.
pub(super) fn blocks(field: &Field<SizeSurface>, report: &mut Report) -> (u64, Option<SizeDistribution>) {
    let drawn = match size(&field.value, field.span, report) {
        SizeDistribution::Fixed(bytes) => {
            check_block(bytes, field.span, report);
            return (bytes, None);
        }
        drawn => drawn,
    };
    let Some((smallest, largest)) = drawn.block_bounds() else {
        if !report.has_errors() {
            report.push(
                Diagnostic::error(field.span, "blocks of no bounded size")
                    .label("expected a size, `uniform` or `weighted`"),
            );
        }
        return (1, None);
    };
    check_block(smallest, field.span, report);
    check_block(largest, field.span, report);
    (largest, Some(drawn))
}

pub(super) fn print(distribution: &SizeDistribution) -> String {
    match distribution {
        SizeDistribution::Fixed(bytes) => printed(*bytes),
        SizeDistribution::Uniform { minimum, maximum } => {
            format!("{{ uniform = {{ from = {}, below = {} }} }}", printed(*minimum), printed(*maximum))
        }
        SizeDistribution::Weighted(sizes) => {
            let sizes: Vec<String> = sizes
                .iter()
                .map(|(bytes, weight)| format!("{{ size = {}, weight = {weight} }}", printed(*bytes)))
                .collect();
            format!("{{ weighted = [{}] }}", sizes.join(", "))
        }
        SizeDistribution::Gamma { mean, shape } => {
            format!("{{ gamma = {{ mean = {}, shape = {} }} }}", printed(*mean), real(*shape))
        }
        SizeDistribution::Lognormal { median, sigma } => {
            format!("{{ lognormal = {{ median = {}, sigma = {} }} }}", printed(*median), real(*sigma))
        }
    }
}

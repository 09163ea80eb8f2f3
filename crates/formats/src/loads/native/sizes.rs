//! Sizes of files and blocks, and how they are drawn.

use super::{
    surface::{SizeSurface, SizeTable, WeightedSize},
    value::{bytes, check_block, or, small},
};
use crate::{
    decode::{At, Field, Real},
    diagnostic::{Diagnostic, Report, Span},
};
use fstone_model::workload::SizeDistribution;

pub(super) fn size(surface: &SizeSurface, span: Span, report: &mut Report) -> SizeDistribution {
    let table: &SizeTable = match surface {
        SizeSurface::Fixed(bytes) => return SizeDistribution::Fixed(*bytes),
        SizeSurface::Table(table) => table,
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

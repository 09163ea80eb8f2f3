//! Parquet: the rows of [`csv`](crate::csv()) with types, for data frames and DuckDB.

use crate::{
    csv::{better, figures_of, unit},
    text::line,
};
use fstone_model::{Dataset, Trial, metric::Figure, result::StepResult};
use parquet::{
    basic::{LogicalType, Repetition, TimeUnit, Type as Physical},
    data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type},
    errors::ParquetError,
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::types::Type,
};
use std::sync::Arc;

/// A figure of a trial; of a trial without any, the trial alone.
struct Row<'a> {
    trial: &'a Trial,
    figure: Option<(&'a StepResult, &'a Figure)>,
}

/// What a column holds; where it holds nothing, there is a null.
enum Values {
    Text(Vec<Option<String>>),
    Real(Vec<Option<f64>>),
    /// Not negative.
    Natural(Vec<Option<u64>>),
    /// Nanoseconds since the Unix epoch, UTC.
    Moment(Vec<Option<u64>>),
}

/// Every figure of every trial, in the order they ran, with the columns that [`csv`](crate::csv()) has: text as UTF-8,
/// seeds and counts as unsigned 64-bit integers, `started` as a UTC timestamp in nanoseconds, `duration_s` and `value` as
/// doubles in the unit named beside them. Every column may hold nulls.
///
/// # Errors
/// When the Parquet library refuses to encode it; no dataset is known for which it does.
pub fn parquet(dataset: &Dataset) -> Result<Vec<u8>, ParquetError> {
    let columns = columns(dataset);
    let fields: Result<Vec<_>, _> = columns.iter().map(|(name, values)| field(name, values).map(Arc::new)).collect();
    let schema = Arc::new(Type::group_type_builder("figures").with_fields(fields?).build()?);
    let properties =
        WriterProperties::builder().set_created_by(format!("fstone {}", env!("CARGO_PKG_VERSION"))).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (_, values) in columns {
        let Some(mut column) = group.next_column()? else { break };
        match values {
            Values::Text(values) => {
                let (levels, values) = present(values, |text| ByteArray::from(text.into_bytes()));
                column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
            }
            Values::Real(values) => {
                let (levels, values) = present(values, |value| value);
                column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
            }
            Values::Natural(values) | Values::Moment(values) => {
                let (levels, values) = present(values, u64::cast_signed);
                column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
            }
        }
        column.close()?;
    }
    group.close()?;
    writer.into_inner()
}

/// Whether each value is there, and those that are.
fn present<T, U>(values: Vec<Option<T>>, encode: impl Fn(T) -> U) -> (Vec<i16>, Vec<U>) {
    let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
    (levels, values.into_iter().flatten().map(encode).collect())
}

fn field(name: &str, values: &Values) -> Result<Type, ParquetError> {
    let (physical, logical) = match values {
        Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Real(_) => (Physical::DOUBLE, None),
        Values::Natural(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Values::Moment(_) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
    };
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

fn columns(dataset: &Dataset) -> Vec<(String, Values)> {
    let plan = &dataset.run.plan;
    let rows_of = |trial| figures_of(trial).into_iter().map(move |figure| Row { trial, figure });
    let rows: Vec<Row<'_>> = dataset.trials.iter().flat_map(rows_of).collect();
    let text = |of: &dyn Fn(&Row<'_>) -> Option<String>| Values::Text(rows.iter().map(of).collect());
    let natural = |of: &dyn Fn(&Row<'_>) -> u64| Values::Natural(rows.iter().map(|row| Some(of(row))).collect());
    let cell = |row: &Row<'_>| plan.cells.iter().find(|cell| cell.index == row.trial.id.cell);
    let figure =
        |of: &dyn Fn(&StepResult, &Figure) -> String| text(&|row| row.figure.map(|(step, figure)| of(step, figure)));
    let mut columns = vec![
        ("run".to_owned(), natural(&|_| dataset.run.id)),
        ("study".to_owned(), text(&|_| Some(line(&plan.study)))),
        ("cell".to_owned(), natural(&|row| row.trial.id.cell.into())),
        ("row".to_owned(), text(&|row| cell(row).map(|cell| line(&cell.label)))),
    ];
    columns.extend(plan.factors.iter().enumerate().map(|(index, factor)| {
        let level = |row: &Row<'_>| factor.levels.get(*cell(row)?.levels.get(index)? as usize).map(|level| line(level));
        (format!("factor: {}", line(&factor.name)), text(&level))
    }));
    let reason =
        |row: &Row<'_>| row.trial.outcome.reason().map(|reason| line(&format!("{}: {}", reason.step, reason.words)));
    let started = rows.iter().map(|row| Some(row.trial.started_unix_ns)).collect();
    let duration = rows.iter().map(|row| Some(row.trial.duration_ns as f64 / 1e9)).collect();
    let value = rows.iter().map(|row| row.figure.map(|(_, figure)| figure.value)).collect();
    columns.extend(
        [
            ("repetition", natural(&|row| row.trial.id.repetition.into())),
            ("position", natural(&|row| row.trial.position.into())),
            ("started", Values::Moment(started)),
            ("duration_s", Values::Real(duration)),
            ("seed", natural(&|row| row.trial.seed)),
            ("outcome", text(&|row| Some(row.trial.outcome.word().to_owned()))),
            ("reason", text(&reason)),
            ("step", figure(&|step, _| line(&step.step))),
            ("metric", figure(&|_, figure| line(&figure.metric))),
            ("value", Values::Real(value)),
            ("unit", figure(&|_, figure| unit(figure.unit).to_owned())),
            ("better", figure(&|_, figure| better(figure.better).to_owned())),
            ("note", text(&|_| dataset.run.note.as_ref().map(|note| line(note.as_str())))),
        ]
        .map(|(name, values)| (name.to_owned(), values)),
    );
    columns
}

//! `fstone device`: the parameters of a drive model, and the service times that follow from them.

use super::Context;
use crate::{
    args::DeviceArguments,
    exit::Exit,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_drive::{Drive, Kind, Model, ModelError, Parameter, Processor, curves};
use fstone_files::read_text;
use fstone_model::units::format_bytes;
use std::{fmt::Write, path::Path};

/// The streams of the curves are some 1.3 GB long.
const SMALLEST: u64 = 4 << 30;

const BAR: f64 = 40.0;

pub(crate) fn device(_: &Context, arguments: &DeviceArguments) -> CommandResult {
    let Some(name) = &arguments.model else {
        let mut text = String::new();
        for name in Model::built_in() {
            let model = Model::find(name).or_exit(Exit::LabFailed)?;
            writeln!(text, "{name:<16} {}", model.title()).or_exit(Exit::LabFailed)?;
        }
        text += "\nProcessors, for --cpu:\n";
        for name in Processor::built_in() {
            let processor = Processor::find(name).or_exit(Exit::LabFailed)?;
            writeln!(text, "{name:<16} {}", processor.title()).or_exit(Exit::LabFailed)?;
        }
        terminal::print(&text);
        return Ok(Exit::Success);
    };
    if arguments.toml {
        if is_file(name) {
            return Err(Failure::new(Exit::BadInput, format!("{name} is a file already: copy it")));
        }
        let text =
            Model::text(name).with_context(|| format!("failed to read the model {name}")).or_exit(Exit::BadInput)?;
        terminal::print(text);
        return Ok(Exit::Success);
    }
    let file = if is_file(name) { Some(read_text(Path::new(name)).map_err(anyhow::Error::from)) } else { None };
    let processor = match file {
        Some(text) => text.map(|text| Processor::parse(name, &text)),
        None => Ok(Processor::find(name)),
    };
    match processor.with_context(|| format!("failed to read the model {name}")).or_exit(Exit::BadInput)? {
        Ok(processor) => {
            let [instruction, byte] = processor.rates_as().map(|rate| rate as f64 / 1e6);
            let mut text = described(processor.name(), processor.title(), processor.parameters());
            let _ = writeln!(
                text,
                "Charged: {instruction:.2} ps for an instruction, {byte:.2} ps for a byte copied or filled"
            );
            terminal::print(&text);
            return Ok(Exit::Success);
        }
        // A drive, or nothing.
        Err(ModelError::NoSuchKind(_) | ModelError::NoSuchModel(_)) => {}
        Err(error) => return Err(Failure::new(Exit::BadInput, format!("failed to read the model {name}: {error}"))),
    }
    let model = find(name).with_context(|| format!("failed to read the model {name}")).or_exit(Exit::BadInput)?;
    if arguments.size < SMALLEST {
        let words = format!(
            "a drive of {} is too small for its curves: at least {}",
            format_bytes(arguments.size),
            format_bytes(SMALLEST)
        );
        return Err(Failure::new(Exit::BadInput, words));
    }
    let mut text = described(model.name(), model.title(), model.parameters());
    let _ = write!(text, "\n{}", plots(&model, arguments.size));
    terminal::print(&text);
    terminal::print("\n");
    Ok(Exit::Success)
}

fn described(name: &str, title: &str, parameters: &[Parameter]) -> String {
    let mut text = format!("{name}: {title}\n");
    let [name, value] = ["name", "value"].map(|what| {
        let lengths = parameters.iter().map(|one| if what == "name" { one.name.len() } else { one.written.len() });
        lengths.max().unwrap_or(0)
    });
    for one in parameters {
        let _ = writeln!(text, "  {:<name$}  {:>value$}  {}", one.name, one.written, one.meaning);
        let _ = writeln!(text, "  {:<name$}  {:>value$}  from: {}", "", "", one.source);
    }
    text
}

fn is_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

/// A model that is built in, or the one in a file.
pub(crate) fn find(name: &str) -> anyhow::Result<Model> {
    let path = Path::new(name);
    if is_file(name) {
        let text = read_text(path)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        return Ok(Model::parse(&stem, &text)?);
    }
    Ok(Model::find(name)?)
}

fn plots(model: &Model, size: u64) -> String {
    let mebibytes = |rate: f64| rate / f64::from(1 << 20);
    let mut text = format!("A drive of {}, asked in virtual time:\n", format_bytes(size));
    let small = |depth: usize| {
        let (rate, mean) = curves::random_reads(model, size, depth, 4_000.max(16 * depth));
        (format!("{depth} at a time, {:.3} ms each", mean / 1e6), rate)
    };
    text += &plot("Random reads of 4 KiB, a second", &[1, 2, 4, 8, 16, 32, 64, 128].map(small));
    if model.kind() == Kind::Disk {
        let at = |writes: bool| {
            move |part: u32| {
                let rate = curves::sequential(model, size, f64::from(part) / 8.0, writes, 1);
                (format!("at {:.1} % of the drive", f64::from(part) * 12.5), mebibytes(rate))
            }
        };
        let parts = [0, 1, 2, 3, 4, 5, 6, 7, 8];
        text += &plot("One stream of reads of 1 MiB, MiB/s", &parts.map(at(false)));
        text += &plot("One stream of writes of 1 MiB, MiB/s", &parts.map(at(true)));
    } else {
        let stream = [("reads", false), ("writes", true)];
        let stream =
            stream.map(|(what, writes)| (what.to_owned(), mebibytes(curves::sequential(model, size, 0.0, writes, 8))));
        text += &plot("One stream of 1 MiB, 8 at a time, MiB/s", &stream);
    }
    // Until the buffer is full, a write only goes there.
    let buffer_bytes = match model.kind() {
        Kind::Constant => 0.0,
        Kind::Disk => model.number("write-cache"),
        Kind::Ssd => model.number("write-buffer"),
    };
    // More would take long.
    let before = (2.0 * buffer_bytes / 4096.0).clamp(100_000.0, 1_000_000.0) as usize;
    let into = if (before as f64) < buffer_bytes / 4096.0 { " into a buffer that is not full" } else { "" };
    let written = curves::random_writes(model, size, before, 20_000);
    let durable = curves::durable_writes(model, size, 2_000);
    let _ = writeln!(
        text,
        "Random writes of 4 KiB, 32 at a time, after {} of them{into}: {written:.0} a second",
        fstone_analysis::number::grouped(before as f64, 0)
    );
    let how = if Drive::new(model, size).is_durable() { "durable without" } else { "made durable by" };
    let _ = write!(text, "A random write of 4 KiB, {how} a flush: {:.3} ms", durable / 1e6);
    text
}

fn plot(title: &str, points: &[(String, f64)]) -> String {
    let most = points.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let mut text = format!("{title}\n");
    let width = points.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    for (label, value) in points {
        let bar = "█".repeat((value / most * BAR).round() as usize);
        let _ = writeln!(text, "  {label:<width$} {value:>12.2} {bar}");
    }
    text + "\n"
}

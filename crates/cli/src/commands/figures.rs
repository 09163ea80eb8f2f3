//! `fstone figures`: what a study's expression would find in saved output.

use crate::{
    args::FiguresArguments,
    exit::Exit,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_model::{
    output::{ExpressionError, Find, SEARCHED_BYTES, Several, expression},
    text,
    units::format_bytes,
};
use std::{
    fs::File,
    io::{Read, stdin},
};

pub(crate) fn figures(arguments: &FiguresArguments) -> CommandResult {
    let wrong = |words: String| Failure::new(Exit::BadInput, words);
    let find = if let Some(expression) = &arguments.expression {
        check(expression).map_err(wrong)?;
        Find::Match(expression.clone())
    } else if let Some(pointer) = &arguments.json {
        if !pointer.starts_with('/') {
            return Err(wrong(format!("{pointer} is not a JSON pointer, which begins with `/`: /jobs/0/read/iops")));
        }
        Find::Json(pointer.clone())
    } else {
        Find::Csv(arguments.csv.clone().unwrap_or_default())
    };
    let name = arguments.file.display().to_string();
    let cannot = || format!("cannot read {name}");
    let source: Box<dyn Read> = match name.as_str() {
        "-" => Box::new(stdin()),
        _ => Box::new(File::open(&arguments.file).with_context(cannot).or_exit(Exit::BadInput)?),
    };
    let mut output = Vec::new();
    source.take(SEARCHED_BYTES as u64 + 1).read_to_end(&mut output).with_context(cannot).or_exit(Exit::BadInput)?;
    if output.len() > SEARCHED_BYTES {
        let limit = format_bytes(SEARCHED_BYTES as u64);
        return Err(wrong(format!("{name} is longer than {limit}, which is all that is searched")));
    }
    let numbers = find.numbers(&output, Several::Mean).map_err(|error| wrong(format!("{name}: {error}")))?;
    if let [number] = numbers[..] {
        terminal::print(&format!("{number}\n"));
        return Ok(Exit::Success);
    }
    let all = [("first", Several::First), ("last", Several::Last), ("mean", Several::Mean), ("sum", Several::Sum)];
    let lines = all.map(|(word, several)| format!("{word:<6} {}\n", several.of(&numbers)));
    terminal::print(&format!("{} numbers\n{}", numbers.len(), lines.concat()));
    Ok(Exit::Success)
}

/// What is wrong with an expression, and where.
fn check(text: &str) -> Result<(), String> {
    let Err(error) = expression(text) else { return Ok(()) };
    let ExpressionError::Syntax { place, .. } = &error else { return Err(error.to_string()) };
    let before = text.get(..place.start).map_or(0, |before| before.chars().count());
    Err(format!("{error}\n  {}\n  {}^", text::line(text), " ".repeat(before)))
}

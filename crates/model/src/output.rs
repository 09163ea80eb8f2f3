//! Figures that a program prints: where they are in its output, and how they are taken out.
//!
//! A study, the agent that runs the program and `fstone figures` share this, so that an expression finds the same in all three.

use crate::{Better, Figure, Unit, text::line};
use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How much of a stream or a file is searched, in bytes.
pub const SEARCHED_BYTES: usize = 128 << 20;

/// Most numbers of a series.
const SERIES: usize = 1000;

/// Of a line that is quoted.
const QUOTED_BYTES: usize = 200;

/// A figure that a command prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputFigure {
    pub name: String,
    pub from: From,
    pub find: Find,
    pub several: Several,
    pub unit: Unit,
    /// What a printed number is multiplied by to be in `unit`.
    pub scale: f64,
    pub better: Better,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum From {
    Stdout,
    Stderr,
    /// Relative path of a file in the mounted filesystem.
    File(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Find {
    /// A regular expression with one group. `^` and `$` match at every line.
    Match(String),
    /// A JSON pointer (RFC 6901) to a number, or to a list of numbers.
    Json(String),
    /// The column of this name in the first table that has it.
    Csv(String),
}

/// What several numbers come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Several {
    First,
    #[default]
    Last,
    Mean,
    Sum,
    /// Their mean; each of them besides, as [`of_series`] names them.
    Each,
}

/// The name of one of the numbers of a figure that is a series, from 1.
pub fn of_series(figure: &str, number: usize) -> String {
    format!("{figure} #{number}")
}

/// The figure whose series this name is of, and its number there.
pub fn series_of(name: &str) -> Option<(&str, usize)> {
    let (figure, number) = name.rsplit_once(" #")?;
    Some((figure, number.parse().ok()?))
}

/// Why an expression cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    #[error("this is not a regular expression: {words}")]
    Syntax { words: String, place: Range<usize> },
    #[error("this regular expression has {0}, and needs exactly one: the number")]
    Groups(String),
    #[error("this regular expression is too large: {0}")]
    Size(String),
}

/// Why there is no figure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    #[error("{0}")]
    Nothing(String),
    #[error("{text:?} is not a number, in the line {line:?}")]
    NotANumber { text: String, line: String },
}

/// Compiles an expression with one group.
///
/// # Errors
/// When it does not compile, or has another number of groups.
pub fn expression(text: &str) -> Result<Regex, ExpressionError> {
    if let Err(error) = regex_syntax::ast::parse::Parser::new().parse(text) {
        let place = error.span().start.offset..error.span().end.offset;
        return Err(ExpressionError::Syntax { words: error.kind().to_string(), place });
    }
    let compiled = RegexBuilder::new(text).multi_line(true).build();
    let regex = compiled.map_err(|error| match error {
        // Its last line says what is wrong; the others point at the place, which is not known here.
        regex::Error::Syntax(words) => {
            let words = words.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            ExpressionError::Syntax { words, place: 0..text.len() }
        }
        other => ExpressionError::Size(other.to_string()),
    })?;
    match regex.captures_len() - 1 {
        1 => Ok(regex),
        0 => Err(ExpressionError::Groups("no group".to_owned())),
        groups => Err(ExpressionError::Groups(format!("{groups} groups"))),
    }
}

impl OutputFigure {
    /// The figure in this output, and the series that it is of, if it is.
    ///
    /// # Errors
    /// When it is not there, or no number.
    pub fn read(&self, output: &[u8]) -> Result<Vec<Figure>, NotFound> {
        let numbers = self.find.numbers(output, self.several)?;
        let figure = |metric: String, value: f64| {
            let value = value * self.scale;
            let too_large = || NotFound::Nothing("the numbers are too large".to_owned());
            value
                .is_finite()
                .then_some(Figure { metric, value, unit: self.unit, better: self.better })
                .ok_or_else(too_large)
        };
        let whole = figure(self.name.clone(), self.several.of(&numbers));
        if self.several != Several::Each {
            return Ok(vec![whole?]);
        }
        if numbers.len() > SERIES {
            let words = format!("there are {} numbers, and a series has at most {SERIES}", numbers.len());
            return Err(NotFound::Nothing(words));
        }
        let each = (1..).zip(numbers).map(|(number, value)| figure(of_series(&self.name, number), value));
        std::iter::once(whole).chain(each).collect()
    }
}

impl Several {
    pub fn of(self, numbers: &[f64]) -> f64 {
        let sum = || numbers.iter().sum::<f64>();
        match self {
            Self::First => numbers.first().copied().unwrap_or(f64::NAN),
            Self::Last => numbers.last().copied().unwrap_or(f64::NAN),
            Self::Mean | Self::Each => sum() / numbers.len() as f64,
            Self::Sum => sum(),
        }
    }
}

impl Find {
    /// The numbers that matter to `several`, at least one: only the first or the last if no other does.
    ///
    /// # Errors
    /// When there is none, or something that is no number.
    pub fn numbers(&self, output: &[u8], several: Several) -> Result<Vec<f64>, NotFound> {
        match self {
            Self::Match(text) => {
                let regex = expression(text).map_err(|error| NotFound::Nothing(error.to_string()))?;
                matched(&regex, output, several)
            }
            Self::Json(pointer) => of_json(pointer, without_mark(output), several),
            Self::Csv(column) => of_csv(column, without_mark(output), several),
        }
    }

    /// As messages name it.
    pub fn describe(&self) -> String {
        match self {
            Self::Match(text) => format!("matches {text:?}"),
            Self::Json(pointer) => format!("is at {pointer:?} of the JSON document"),
            Self::Csv(column) => format!("is in a column {column:?}"),
        }
    }

    fn nothing(&self) -> NotFound {
        NotFound::Nothing(format!("nothing {}", self.describe()))
    }
}

fn matched(regex: &Regex, output: &[u8], several: Several) -> Result<Vec<f64>, NotFound> {
    // Searching for matches alone is several times as fast as for their groups.
    let mut at = match several {
        Several::Last => regex.find_iter(output).last().map_or(0, |last| last.start()),
        _ => 0,
    };
    let mut places = regex.capture_locations();
    let mut numbers = Vec::new();
    while at <= output.len()
        && let Some(whole) = regex.captures_read_at(&mut places, output, at)
    {
        let Some((start, end)) = places.get(1) else {
            let words = format!("the group of {:?} took no part in a match", regex.as_str());
            return Err(NotFound::Nothing(words));
        };
        if is_cut(output, start, end, whole.end()) {
            let (taken, line) = (quote(&output[start..end]), line_around(output, start));
            let words =
                format!("the group of {:?} takes only {taken:?}, a part of a number, out of {line:?}", regex.as_str());
            return Err(NotFound::Nothing(words));
        }
        numbers.push(number(&output[start..end], || line_around(output, start))?);
        if matches!(several, Several::First | Several::Last) {
            break;
        }
        at = whole.end().max(whole.start() + 1);
    }
    if numbers.is_empty() { Err(Find::Match(regex.as_str().to_owned()).nothing()) } else { Ok(numbers) }
}

/// Whether a number goes on before the group, or behind it where the expression ends as well.
fn is_cut(output: &[u8], start: usize, end: usize, whole_end: usize) -> bool {
    let is_digit = |place: Option<usize>| place.and_then(|place| output.get(place)).is_some_and(u8::is_ascii_digit);
    let before = is_digit(start.checked_sub(1)) && matches!(output.get(start), Some(b'0'..=b'9' | b'.'));
    let sign = usize::from(matches!(output.get(end + 1), Some(b'+' | b'-')));
    let behind = whole_end == end
        && is_digit(end.checked_sub(1))
        && match output.get(end) {
            Some(b'0'..=b'9') => true,
            Some(b'.') => is_digit(Some(end + 1)),
            Some(b'e' | b'E') => is_digit(Some(end + 1 + sign)),
            // Three digits behind a comma, and no fourth, are thousands.
            Some(b',') => (1..=3).all(|next| is_digit(Some(end + next))) && !is_digit(Some(end + 4)),
            _ => false,
        };
    before || behind
}

/// Without the byte order mark that programs of Windows begin with.
fn without_mark(output: &[u8]) -> &[u8] {
    output.strip_prefix(b"\xef\xbb\xbf").unwrap_or(output)
}

fn of_json(pointer: &str, output: &[u8], several: Several) -> Result<Vec<f64>, NotFound> {
    let document: serde_json::Value = serde_json::from_slice(output)
        .map_err(|error| NotFound::Nothing(format!("it is not a JSON document: {error}")))?;
    let found = document.pointer(pointer).ok_or_else(|| Find::Json(pointer.to_owned()).nothing())?;
    let of_one = |value: &serde_json::Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        number(text.as_bytes(), || quote(text.as_bytes()))
    };
    let list = found.as_array().map_or(std::slice::from_ref(found), Vec::as_slice);
    match (several, list) {
        (_, []) => Err(NotFound::Nothing(format!("the list at {pointer:?} is empty"))),
        (Several::First, [one, ..]) | (Several::Last, [.., one]) => Ok(vec![of_one(one)?]),
        _ => list.iter().map(of_one).collect(),
    }
}

fn of_csv(column: &str, output: &[u8], several: Several) -> Result<Vec<f64>, NotFound> {
    let mut rows = output.split(|byte| *byte == b'\n');
    let of_column = |row| fields(row).position(|field| field == column.as_bytes());
    let nothing = || Find::Csv(column.to_owned()).nothing();
    let index = rows.find_map(of_column).ok_or_else(nothing)?;
    // What follows the table is not of it; a row that is too short is no end.
    let of_row = |row| fields(row).nth(index);
    let mut rows = rows.take_while(|row| !row.trim_ascii().is_empty()).peekable();
    let (mut numbers, mut last) = (Vec::new(), None);
    while let Some(row) = rows.next() {
        let Some(field) = of_row(row) else {
            if row.contains(&b',') || rows.peek().is_some_and(|next| of_row(next).is_some()) {
                return Err(NotFound::Nothing(format!("a row has no {column:?}: {}", quote(row))));
            }
            break;
        };
        let read = || number(field, || quote(row));
        match several {
            Several::Last => last = Some((field, row)),
            _ => numbers.push(read()?),
        }
        if several == Several::First {
            break;
        }
    }
    if let Some((field, row)) = last {
        numbers.push(number(field, || quote(row))?);
    }
    if numbers.is_empty() { Err(nothing()) } else { Ok(numbers) }
}

/// The fields of a row, without quotes around them. An empty line has none.
fn fields(row: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    let is_end = move |byte: &u8| {
        quoted ^= *byte == b'"';
        *byte == b',' && !quoted
    };
    let is_empty = row.trim_ascii().is_empty();
    row.split(is_end).filter(move |_| !is_empty).map(|field| {
        let field = field.trim_ascii();
        field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\"")).unwrap_or(field).trim_ascii()
    })
}

fn number(text: &[u8], line: impl FnOnce() -> String) -> Result<f64, NotFound> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<f64>().ok());
    number.filter(|number| number.is_finite()).ok_or_else(|| NotFound::NotANumber { text: quote(text), line: line() })
}

fn line_around(output: &[u8], place: usize) -> String {
    let start = output[..place].iter().rposition(|byte| *byte == b'\n').map_or(0, |before| before + 1);
    let rest = &output[start..];
    quote(&rest[..rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())])
}

fn quote(bytes: &[u8]) -> String {
    line(&String::from_utf8_lossy(&bytes[..bytes.len().min(QUOTED_BYTES)]))
}

/// A unit as studies write it, and what a number in it is multiplied by to be in fstone's own.
pub fn unit(text: &str) -> Option<(Unit, f64)> {
    // As programs print them: dd's MB is 10⁶ bytes.
    let bytes = |text: &str| {
        Some(match text {
            "B" => 1.0,
            "kB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "TB" => 1e12,
            _ if text.ends_with("iB") => crate::units::parse_bytes(&format!("1 {text}")).ok()? as f64,
            _ => return None,
        })
    };
    Some(match text.trim() {
        "count" => (Unit::Count, 1.0),
        "ratio" => (Unit::Ratio, 1.0),
        "%" => (Unit::Percent, 1.0),
        "/s" => (Unit::PerSecond, 1.0),
        "min" => (Unit::Seconds, 60.0),
        "s" => (Unit::Seconds, 1.0),
        "ms" => (Unit::Nanoseconds, 1e6),
        "us" | "µs" => (Unit::Nanoseconds, 1e3),
        "ns" => (Unit::Nanoseconds, 1.0),
        "" => return None,
        text => match text.strip_suffix("/s") {
            Some(text) => (Unit::BytesPerSecond, bytes(text)?),
            None => (Unit::Bytes, bytes(text)?),
        },
    })
}

/// The better direction if nothing says which.
pub const fn usually_better(unit: Unit) -> Better {
    match unit {
        Unit::PerSecond | Unit::BytesPerSecond => Better::Higher,
        Unit::Seconds | Unit::Nanoseconds => Better::Lower,
        Unit::Bytes | Unit::Percent | Unit::Count | Unit::Ratio => Better::Neither,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(find: Find, several: Several, output: &[u8]) -> Result<f64, String> {
        let (name, from) = ("x".to_owned(), From::Stdout);
        let figure = OutputFigure { name, from, find, several, unit: Unit::Count, scale: 1.0, better: Better::Neither };
        figure.read(output).map(|figures| figures[0].value).map_err(|error| error.to_string())
    }

    fn matching(text: &str, several: Several, output: &[u8]) -> Result<f64, String> {
        read(Find::Match(text.to_owned()), several, output)
    }

    #[test]
    fn several_matches_come_to_one_number() {
        let output = b"progress: tps = 10.5\nprogress: tps = 20\n\xff\0 tps = 30.5 (all)\n";
        for (several, value) in
            [(Several::First, 10.5), (Several::Last, 30.5), (Several::Mean, 61.0 / 3.0), (Several::Sum, 61.0)]
        {
            assert_eq!(matching("tps = ([0-9.]+)", several, output), Ok(value), "{several:?}");
        }
        assert_eq!(matching("^progress.* ([0-9.]+)$", Several::Last, output), Ok(20.0), "lines have an end");
        assert_eq!(matching("(?:tps|x) = ([0-9]+)", Several::First, b"x = 1"), Ok(1.0));
        assert_eq!(matching("([0-9]*)", Several::Sum, b"1"), Err("\"\" is not a number, in the line \"1\"".into()));
    }

    #[test]
    fn each_of_several_is_a_series() {
        let (name, from, several) = ("tps".to_owned(), From::Stdout, Several::Each);
        let find = Find::Match("tps = ([0-9.e]+)".into());
        let figure = OutputFigure { name, from, find, several, unit: Unit::Count, scale: 2.0, better: Better::Higher };
        let found = figure.read(b"tps = 1\ntps = 3\ntps = 2\n").expect("they are there");
        let found: Vec<(&str, f64)> = found.iter().map(|figure| (figure.metric.as_str(), figure.value)).collect();
        assert_eq!(found, [("tps", 4.0), ("tps #1", 2.0), ("tps #2", 6.0), ("tps #3", 4.0)]);
        assert_eq!(series_of(found[2].0), Some(("tps", 2)));
        assert_eq!((series_of("tps"), series_of("tps #x")), (None, None));
        let told = figure.read("tps = 1\n".repeat(1001).as_bytes()).unwrap_err().to_string();
        assert_eq!(told, "there are 1001 numbers, and a series has at most 1000");
        assert_eq!(figure.read(b"tps = 1e308").unwrap_err().to_string(), "the numbers are too large");
    }

    #[test]
    fn what_is_no_number_is_quoted_with_its_line() {
        let told = matching("tps = (.*)", Several::Last, b"a\ntps = n/a\x1b[31m\nb");
        assert_eq!(told, Err("\"n/a\u{241b}[31m\" is not a number, in the line \"tps = n/a\u{241b}[31m\"".into()));
        assert_eq!(
            matching("(inf)", Several::Last, b"inf").unwrap_err(),
            "\"inf\" is not a number, in the line \"inf\""
        );
        assert_eq!(matching("tps (.)", Several::Last, b"").unwrap_err(), "nothing matches \"tps (.)\"");
        let told = matching("a|(b)", Several::Last, b"a").unwrap_err();
        assert_eq!(told, "the group of \"a|(b)\" took no part in a match");
    }

    #[test]
    fn a_part_of_a_number_is_none() {
        let found = |text: &str, output: &str| read(Find::Match(text.to_owned()), Several::Last, output.as_bytes());
        for (text, output) in [
            ("tps.*([0-9.]+)$", "tps = 1234.567"),
            ("lat = ([0-9.]+)", "lat = 1.5e+06"),
            ("lat = ([0-9.]+)", "lat = 1.5E6"),
            ("lat = ([0-9]+)", "lat = 12.5"),
            (": ([0-9.]+)", "size: 123,456,789 bytes"),
        ] {
            let error = found(text, output).expect_err("a part");
            assert!(error.contains("a part of a number") && error.contains(output), "{error}");
        }
        assert_eq!(found("lat = ([0-9]+)", "lat = 12. It ended"), Ok(12.0));
        assert_eq!(found("lat = ([0-9]+)[.]", "lat = 12.5"), Ok(12.0), "it is asked for");
        assert_eq!(found("v([0-9.]+)", "v15.2"), Ok(15.2));
        assert_eq!(found("^([0-9]+),", "5,123"), Ok(5.0), "of a table");
    }

    #[test]
    fn a_short_row_ends_no_table() {
        let table = |rows: &str| read(Find::Csv("tps".into()), Several::Sum, format!("t,tps\n{rows}").as_bytes());
        assert_eq!(table("1,10\n2,20\n\nend,1\n"), Ok(30.0));
        assert_eq!(table("1,10\n2,20\nthe end\n"), Ok(30.0));
        let error = table("1,10\n2\n3,30\n").expect_err("a short row");
        assert!(error.contains("a row has no \"tps\": 2"), "{error}");
    }

    #[test]
    fn documents_and_tables_are_read() {
        let json = |pointer: &str, several| {
            let output =
                br#"{"jobs": [{"iops": 7.5, "all": [1, "2", 3]}], "name": "x", "none": [], "mixed": [null, 8]}"#;
            read(Find::Json(pointer.to_owned()), several, output)
        };
        assert_eq!(json("/jobs/0/iops", Several::Last), Ok(7.5));
        assert_eq!(json("/jobs/0/all", Several::Mean), Ok(2.0));
        assert_eq!(json("/name", Several::Last).unwrap_err(), "\"x\" is not a number, in the line \"x\"");
        assert_eq!(json("/none", Several::Last).unwrap_err(), "the list at \"/none\" is empty");
        assert_eq!(json("/mixed", Several::Last), Ok(8.0), "only the last one matters");
        assert_eq!(json("/mixed", Several::First).unwrap_err(), "\"null\" is not a number, in the line \"null\"");
        let long = format!("{{\"a\": [{}]}}", "{},".repeat(1 << 20) + "1");
        let told = read(Find::Json("/a".into()), Several::First, format!("{{\"a\": {{\"b\": {long}}}}}").as_bytes());
        assert!(told.unwrap_err().len() < 1000, "what is quoted is bounded");
        assert_eq!(json("/jobs/1", Several::Last).unwrap_err(), "nothing is at \"/jobs/1\" of the JSON document");
        assert!(read(Find::Json("/a".into()), Several::Last, b"{").unwrap_err().contains("not a JSON document"));

        let csv = |column: &str| {
            read(
                Find::Csv(column.to_owned()),
                Several::Sum,
                b"# made today\nname, \"rate\",x\r\n\"a,b\",1,2\nc,2,3\n\n9,9,9",
            )
        };
        assert_eq!((csv("rate"), csv("x")), (Ok(3.0), Ok(5.0)));
        assert_eq!(csv("name").unwrap_err(), "\"a,b\" is not a number, in the line \"\\\"a,b\\\",1,2\"");
        assert_eq!(csv("y").unwrap_err(), "nothing is in a column \"y\"");
        let ends = |several| read(Find::Csv("rate".into()), several, b"\xef\xbb\xbfrate\nn/a\n5\n6\n");
        assert_eq!(ends(Several::Last), Ok(6.0));
        assert_eq!(ends(Several::First).unwrap_err(), "\"n/a\" is not a number, in the line \"n/a\"");
        assert!(ends(Several::Each).is_err());
    }

    #[test]
    fn expressions_have_one_group() {
        let told = |text: &str| expression(text).expect_err("it is wrong");
        let ExpressionError::Syntax { words, place } = told("tps = ([0-9.+)") else { panic!("its syntax") };
        assert_eq!((words.as_str(), place.start), ("unclosed character class", 7));
        assert!(told("tps").to_string().contains("has no group,"));
        assert!(told("(a)(b)").to_string().contains("has 2 groups,"));
        assert!(matches!(told(r"(\p{Greek}{1000}{1000})"), ExpressionError::Size(_) | ExpressionError::Syntax { .. }));
    }

    #[test]
    fn units_are_those_of_figures() {
        for (text, told) in [
            ("ms", Some((Unit::Nanoseconds, 1e6))),
            ("MiB/s", Some((Unit::BytesPerSecond, 1048576.0))),
            ("MB/s", Some((Unit::BytesPerSecond, 1e6))),
            ("M/s", None),
            ("KiB", Some((Unit::Bytes, 1024.0))),
            ("/s", Some((Unit::PerSecond, 1.0))),
            ("furlongs", None),
            ("", None),
        ] {
            assert_eq!(unit(text), told, "{text}");
        }
    }
}

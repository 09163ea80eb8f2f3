//! A model as a file: TOML, with a source for every parameter.

use fstone_model::units::{parse_bytes, parse_duration};
use std::fmt;
use toml::{Table, Value};

const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/models.rs"));
const PROCESSORS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/processors.rs"));

fstone_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Kind: word, ALL {
        Constant => "constant",
        Disk => "disk",
        Ssd => "ssd",
    }
}

impl Kind {
    const fn parameters(self) -> &'static [Known] {
        match self {
            Self::Constant => CONSTANT,
            Self::Disk => DISK,
            Self::Ssd => SSD,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// "8.5 ms", in nanoseconds.
    Time,
    /// "16 MiB".
    Bytes,
    /// "300 MB/s" as data sheets count, "110.51 MiB/s" as programs do; in bytes per second.
    Rate,
    Number,
    /// A count, or a switch of 0 and 1.
    Whole,
}

#[derive(Debug)]
struct Known {
    name: &'static str,
    unit: Unit,
    least: f64,
    most: f64,
    meaning: &'static str,
}

const fn known(name: &'static str, unit: Unit, least: f64, most: f64, meaning: &'static str) -> Known {
    Known { name, unit, least, most, meaning }
}

const SECOND: f64 = 1e9;
const MB: f64 = 1e6;

const CONSTANT: &[Known] = &[
    known("latency", Unit::Time, 0.0, 100.0 * SECOND, "each request, also flushes, which empty a volatile write cache"),
    known("bandwidth", Unit::Rate, 1000.0, 1e15, "of all requests together"),
];

const DISK: &[Known] = &[
    known("rpm", Unit::Number, 300.0, 30_000.0, "revolutions per minute"),
    known("heads", Unit::Whole, 1.0, 64.0, "recorded surfaces"),
    known("zones", Unit::Whole, 1.0, 256.0, "zones of equal width, each with its own rate"),
    known("outer-rate", Unit::Rate, 0.1 * MB, 2000.0 * MB, "sustained, in the first zone"),
    known("inner-rate", Unit::Rate, 0.1 * MB, 2000.0 * MB, "sustained, in the last zone"),
    known("track-to-track-seek", Unit::Time, 0.0, SECOND, "to the next cylinder"),
    known("average-seek", Unit::Time, 0.0, SECOND, "between two cylinders at random"),
    known("full-seek", Unit::Time, 0.0, SECOND, "from the first cylinder to the last"),
    known("head-switch", Unit::Time, 0.0, SECOND, "to another surface of the cylinder"),
    known("write-settle", Unit::Time, 0.0, SECOND, "longer that a seek takes before a write"),
    known("command-time", Unit::Time, 0.0, SECOND, "of the electronics, each request"),
    known("interface-rate", Unit::Rate, MB, 1e12, "between cache and host"),
    known("queue-depth", Unit::Whole, 1.0, 256.0, "commands that the drive takes at a time and orders by itself"),
    known("queued-flush", Unit::Whole, 0.0, 1.0, "0: a flush waits for all before it and holds back all after it"),
    known("ageing", Unit::Number, 0.001, 1.0, "what counts of a wait against a positioning time"),
    known("buffer", Unit::Bytes, 0.0, 1e12, "for what was read and for what is to be written"),
    known("write-cache", Unit::Bytes, 0.0, 1e12, "of the buffer, at most; 0 for none"),
    known("write-choice", Unit::Whole, 1.0, 4096.0, "parts of it among which the drive chooses what it writes next"),
    known("segments", Unit::Whole, 1.0, 256.0, "parts of the read cache, each with one run of sectors"),
    known("segment-size", Unit::Bytes, 0.0, 1e9, "how much is read ahead at most, too"),
    known(
        "read-on-arrival",
        Unit::Whole,
        0.0,
        1.0,
        "1: what passes the heads before the wanted sector is read and kept",
    ),
];

const SSD: &[Known] = &[
    known("channels", Unit::Whole, 1.0, 64.0, "between controller and flash"),
    known("dies", Unit::Whole, 1.0, 4096.0, "in all; each does one thing at a time"),
    known("writing-dies", Unit::Whole, 1.0, 4096.0, "that program, move and erase at a time"),
    known("page", Unit::Bytes, 512.0, 1e6, "read and programmed at once, all planes of a die together"),
    known("pages-per-block", Unit::Whole, 1.0, 65_536.0, "erased at once"),
    known("read-time", Unit::Time, 100.0, SECOND, "of a page"),
    known("program-time", Unit::Time, 100.0, SECOND, "of a page"),
    known("erase-time", Unit::Time, 100.0, SECOND, "of a block"),
    known("channel-rate", Unit::Rate, MB, 1e12, "of one channel"),
    known("interface-rate", Unit::Rate, MB, 1e12, "between buffer and host"),
    known("full-duplex", Unit::Whole, 0.0, 1.0, "1: the interface has that rate in each direction"),
    known("command-time", Unit::Time, 0.0, SECOND, "of controller and protocol, each request"),
    known("controller-time", Unit::Time, 0.0, SECOND, "of the controller, which takes one request after the other"),
    known("queue-depth", Unit::Whole, 1.0, 65_536.0, "commands that the drive takes at a time"),
    known("queued-flush", Unit::Whole, 0.0, 1.0, "0: a flush waits for all before it and holds back all after it"),
    known("write-buffer", Unit::Bytes, 4096.0, 1e12, "acknowledges writes before they are programmed"),
    known("buffer-is-durable", Unit::Whole, 0.0, 1.0, "1: survives a loss of power, and a flush has nothing to do"),
    known("over-provisioning", Unit::Number, 0.01, 10.0, "spare flash as a share of the drive's size"),
];

const PROCESSOR: &[Known] = &[
    known("clock", Unit::Number, 0.1, 10.0, "in GHz"),
    known("instructions-per-cycle", Unit::Number, 0.05, 8.0, "of the kernel's code, with the caches it finds"),
    known("copy-rate", Unit::Rate, 10.0 * MB, 1e12, "of what the kernel copies and fills"),
    known(
        "system-call",
        Unit::Time,
        1.0,
        SECOND,
        "the program's own time between two calls, entry and exit of the kernel",
    ),
];

#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    pub name: &'static str,
    pub meaning: &'static str,
    pub written: String,
    pub source: String,
    /// In nanoseconds, bytes, bytes per second, or as it is.
    value: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    name: String,
    title: String,
    kind: Kind,
    parameters: Vec<Parameter>,
}

/// Why a text is no model; completes "the model NAME: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("{0}")]
    Toml(String),
    #[error("it has no `{0}`; `fstone device sata-ssd --toml` prints a model to begin with")]
    Missing(String),
    #[error("its `kind` is none of {0}")]
    NoSuchKind(&'static str),
    #[error("it has no `{name}`, {meaning}: add {name} = {{ is = …, from = \"…\" }} with {expected} and its source")]
    NoParameter { name: &'static str, meaning: &'static str, expected: &'static str },
    #[error("`{found}` is not a parameter of a {kind}: those are {known}")]
    Unknown { found: String, kind: &'static str, known: String },
    #[error("`{name}` must be written as {expected}, with its source: {name} = {{ is = …, from = \"…\" }}")]
    Form {
        name: String,
        /// "a time (\"8.5 ms\")".
        expected: &'static str,
    },
    #[error("`{name}` is {written}, and must be from {least} to {most}")]
    OutOfRange { name: String, written: String, least: String, most: String },
    #[error("{0}")]
    Contradiction(&'static str),
    #[error("there is no such model; there are {0}, and a path to a .toml file is one, too")]
    NoSuchModel(String),
}

impl Unit {
    const fn expected(self) -> &'static str {
        match self {
            Self::Time => "a time (\"8.5 ms\")",
            Self::Bytes => "a size (\"16 MiB\")",
            Self::Rate => "a rate (\"300 MB/s\", or \"110.51 MiB/s\" of 2^20 bytes)",
            Self::Number => "a number",
            Self::Whole => "a whole number",
        }
    }

    fn parse(self, value: &Value) -> Option<(f64, String)> {
        match (self, value) {
            (Self::Number | Self::Whole, Value::Integer(number)) => Some((*number as f64, number.to_string())),
            (Self::Number, Value::Float(number)) => Some((*number, number.to_string())),
            (Self::Time, Value::String(text)) => {
                parse_duration(text).ok().map(|time| (time.as_nanos() as f64, text.clone()))
            }
            (Self::Bytes, Value::String(text)) => parse_bytes(text).ok().map(|bytes| (bytes as f64, text.clone())),
            // With fractions: 110.51 MB are a whole number of bytes only by chance.
            (Self::Rate, Value::String(text)) => {
                let (number, unit) = text.strip_suffix("/s")?.trim().split_once(' ')?;
                let bytes = rate_unit(unit.trim())?;
                number.parse::<f64>().ok().map(|number| (number * bytes, text.clone()))
            }
            _ => None,
        }
    }

    fn describe(self, value: f64) -> String {
        match self {
            Self::Time => format!("{} ms", value / 1e6),
            Self::Bytes => format!("{value} bytes"),
            Self::Rate => format!("{} MB/s", value / MB),
            Self::Number | Self::Whole => value.to_string(),
        }
    }
}

/// Bytes of a unit of rates. Elsewhere MB are 2^20 bytes, as in mkfs and dd, but rates are copied from data sheets.
fn rate_unit(unit: &str) -> Option<f64> {
    match unit {
        "B" => Some(1.0),
        "kB" | "KB" => Some(1e3),
        "MB" => Some(1e6),
        "GB" => Some(1e9),
        "KiB" => Some(f64::from(1 << 10)),
        "MiB" => Some(f64::from(1 << 20)),
        "GiB" => Some(f64::from(1 << 30)),
        _ => None,
    }
}

impl Model {
    pub fn built_in() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    pub fn find(name: &str) -> Result<Self, ModelError> {
        find(BUILT_IN, name, Self::parse)
    }

    /// The file of one that is built in, or of a processor.
    pub fn text(name: &str) -> Result<&'static str, ModelError> {
        find(PROCESSORS, name, |_, text| Ok(text)).or_else(|_| find(BUILT_IN, name, |_, text| Ok(text)))
    }

    pub fn parse(name: &str, text: &str) -> Result<Self, ModelError> {
        let kinds = Kind::ALL.map(|kind| (kind.word(), kind.parameters()));
        let (title, kind, parameters) = read(text, &kinds, "\"constant\", \"disk\" or \"ssd\"")?;
        let kind = Kind::ALL[kind];
        let model = Self { name: name.to_owned(), title, kind, parameters };
        model.contradiction().map_or(Ok(model), |words| Err(ModelError::Contradiction(words)))
    }

    fn contradiction(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Constant => return None,
            Kind::Ssd => {
                let has_them = self.number("writing-dies") <= self.number("dies");
                return (!has_them).then_some("`writing-dies` are some of the `dies`, or all");
            }
            Kind::Disk => {}
        }
        let [track, average, full] = ["track-to-track-seek", "average-seek", "full-seek"].map(|name| self.number(name));
        // Below, the curve that goes through all three would fall somewhere.
        let third = track + (full - track) / 3.0;
        if !(track <= average && average <= full && average >= third && self.seek_root() >= 0.0) {
            return Some("seeks: track-to-track ≤ average ≤ full, and the average at least a third of the way between");
        }
        // Above, it would fall before it comes to the full stroke: its slope there is half the root and all of the rest.
        if self.seek_root() / 2.0 + self.seek_curve().1 < 0.0 {
            return Some(
                "seeks: the average is at most 11/15 of the way from track-to-track to full, or longer seeks would take less \
                 time: raise `full-seek` or lower `average-seek`",
            );
        }
        if self.number("inner-rate") > self.number("outer-rate") {
            return Some("the inner zone cannot be faster than the outer");
        }
        (self.number("write-cache") + self.number("segment-size") > self.number("buffer"))
            .then_some("`buffer` must hold `write-cache` and one segment at least")
    }

    fn seek_root(&self) -> f64 {
        let [track, average, full] = ["track-to-track-seek", "average-seek", "full-seek"].map(|name| self.number(name));
        (average - track - (full - track) / 3.0) / (8.0 / 15.0 - 1.0 / 3.0)
    }

    /// What a seek takes beyond the step to the next track: (coefficient of the root, coefficient of the distance) over the
    /// distance as a share of the whole stroke, 0 to 1. Chosen so that the full stroke and the mean between two cylinders
    /// at random are as given: the mean root of their distance is 8/15, the mean distance 1/3.
    pub(crate) fn seek_curve(&self) -> (f64, f64) {
        let root = self.seek_root();
        (root, self.number("full-seek") - self.number("track-to-track-seek") - root)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    pub const fn kind(&self) -> Kind {
        self.kind
    }

    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The value of a parameter, in nanoseconds, bytes, bytes per second, or as it is.
    ///
    /// # Panics
    /// When this kind of model has no such parameter.
    pub fn number(&self, name: &str) -> f64 {
        number(&self.parameters, name)
    }

    /// The same as a whole number of nanoseconds, bytes or things.
    pub(crate) fn whole(&self, name: &str) -> u64 {
        self.number(name).round() as u64
    }
}

/// Its name and every parameter, so that two that differ in anything are not taken for one.
impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(&self.name, &self.parameters, f)
    }
}

fn display(name: &str, parameters: &[Parameter], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{name}:")?;
    parameters.iter().try_for_each(|one| write!(f, " {}={}", one.name, one.written))
}

fn number(parameters: &[Parameter], name: &str) -> f64 {
    parameters.iter().find(|one| one.name == name).map(|one| one.value).expect("a parameter of this kind")
}

fn find<T>(
    built_in: &[(&str, &'static str)],
    name: &str,
    parse: impl Fn(&str, &'static str) -> Result<T, ModelError>,
) -> Result<T, ModelError> {
    match built_in.iter().find(|(known, _)| *known == name) {
        Some((name, text)) => parse(name, text),
        None => {
            let names: Vec<&str> = built_in.iter().map(|(name, _)| *name).collect();
            Err(ModelError::NoSuchModel(names.join(", ")))
        }
    }
}

/// Title, which of the kinds, and its parameters in their order.
fn read(
    text: &str,
    kinds: &[(&'static str, &'static [Known])],
    expected: &'static str,
) -> Result<(String, usize, Vec<Parameter>), ModelError> {
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| ModelError::Toml(error.to_string()))?;
    let mut word = |key: &str| match table.remove(key) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(ModelError::Missing(key.to_owned())),
    };
    let (title, kind) = (word("title")?, word("kind")?);
    let number = kinds.iter().position(|(word, _)| *word == kind).ok_or(ModelError::NoSuchKind(expected))?;
    let (kind, wanted) = kinds[number];
    let Some(Value::Table(mut given)) = table.remove("parameters") else {
        return Err(ModelError::Missing("[parameters]".into()));
    };
    let unknown = |found: &str| ModelError::Unknown {
        found: found.to_owned(),
        kind,
        known: wanted.iter().map(|known| known.name).collect::<Vec<_>>().join(", "),
    };
    if let Some(found) = table.keys().next() {
        return Err(unknown(found));
    }
    let mut parameters = Vec::new();
    for known in wanted {
        let (name, meaning, expected) = (known.name, known.meaning, known.unit.expected());
        let given = given.remove(name).ok_or(ModelError::NoParameter { name, meaning, expected })?;
        parameters.push(known.read(&given)?);
    }
    match given.keys().next() {
        Some(found) => Err(unknown(found)),
        None => Ok((title, number, parameters)),
    }
}

/// What the kernel's work takes of a processor: a file like a drive's.
#[derive(Debug, Clone, PartialEq)]
pub struct Processor {
    name: String,
    title: String,
    parameters: Vec<Parameter>,
}

impl Processor {
    pub fn built_in() -> impl Iterator<Item = &'static str> {
        PROCESSORS.iter().map(|(name, _)| *name)
    }

    pub fn find(name: &str) -> Result<Self, ModelError> {
        find(PROCESSORS, name, Self::parse)
    }

    pub fn parse(name: &str, text: &str) -> Result<Self, ModelError> {
        let (title, _, parameters) = read(text, &[("processor", PROCESSOR)], "\"processor\"")?;
        Ok(Self { name: name.to_owned(), title, parameters })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Attoseconds of an instruction, and of a byte that is copied or filled.
    pub fn rates_as(&self) -> [u64; 2] {
        let number = |name| number(&self.parameters, name);
        let instruction = 1e9 / (number("clock") * number("instructions-per-cycle"));
        [instruction, 1e18 / number("copy-rate")].map(|rate| rate.round() as u64)
    }

    pub fn system_call_ns(&self) -> u64 {
        number(&self.parameters, "system-call").round() as u64
    }
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(&self.name, &self.parameters, f)
    }
}

impl Known {
    fn read(&self, given: &Value) -> Result<Parameter, ModelError> {
        let form = || ModelError::Form { name: self.name.to_owned(), expected: self.unit.expected() };
        let Value::Table(table) = given else { return Err(form()) };
        let (Some(is), Some(Value::String(source)), 2) = (table.get("is"), table.get("from"), table.len()) else {
            return Err(form());
        };
        let (value, written) = self.unit.parse(is).ok_or_else(form)?;
        if !(self.least..=self.most).contains(&value) {
            return Err(ModelError::OutOfRange {
                name: self.name.to_owned(),
                written,
                least: self.unit.describe(self.least),
                most: self.unit.describe(self.most),
            });
        }
        Ok(Parameter { name: self.name, meaning: self.meaning, written, source: source.clone(), value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_model_is_one_and_says_where_its_figures_are_from() {
        let names: Vec<&str> = Model::built_in().collect();
        for name in ["constant", "hdd-7200-2008", "hdd-today", "ide-2004", "nvme-ssd", "sata-ssd", "scsi-10k-2007"] {
            assert!(names.contains(&name), "{names:?}");
        }
        for name in names {
            let model = Model::find(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!model.title().is_empty() && model.parameters().iter().all(|one| one.source.len() > 5), "{name}");
        }
        let error = Model::find("hdd").unwrap_err().to_string();
        assert!(error.contains("hdd-7200-2008"), "{error}");
    }

    #[test]
    fn a_processor_is_a_file_too_and_no_drive() {
        assert_eq!(Processor::built_in().collect::<Vec<_>>(), ["server-2008", "server-today", "xeon-2005"]);
        for name in Processor::built_in() {
            let processor = Processor::find(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(processor.parameters().iter().all(|one| one.source.len() > 5), "{name}");
            assert!(processor.rates_as().iter().all(|rate| *rate > 0), "{name}");
        }
        let of = |text: &str| Processor::parse("mine", text).map_err(|error| error.to_string());
        let text = "title = \"t\"\nkind = \"processor\"\n[parameters]\nclock = { is = 2, from = \"t\" }\n\
                    instructions-per-cycle = { is = 0.5, from = \"t\" }\ncopy-rate = { is = \"4 GB/s\", from = \"t\" }\n\
                    system-call = { is = \"0.2 us\", from = \"t\" }\n";
        let mine = of(text).unwrap();
        assert_eq!((mine.rates_as(), mine.system_call_ns()), ([1_000_000_000, 250_000_000], 200));
        let third = of(&text.replace("clock = { is = 2,", "clock = { is = 6,")).unwrap();
        assert_eq!(third.rates_as()[0], 333_333_333, "no picoseconds are rounded");
        assert!(of(&text.replace("clock =", "clack =")).unwrap_err().contains("no `clock`"));
        assert!(of(&text.replace("\"processor\"", "\"disk\"")).unwrap_err().contains("\"processor\""));
        assert!(Model::parse("mine", text).unwrap_err().to_string().contains("ssd"));
        assert!(Model::find("server-2008").is_err());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let constant = |parameters: &str| {
            let text = format!("title = \"t\"\nkind = \"constant\"\n[parameters]\n{parameters}");
            Model::parse("mine", &text).map(drop).map_err(|error| error.to_string())
        };
        let latency = "latency = { is = \"1 ms\", from = \"me\" }\n";
        let bandwidth = "bandwidth = { is = \"110.51 MB/s\", from = \"me\" }\n";
        assert_eq!(constant(&(latency.to_owned() + bandwidth)), Ok(()));
        let said = |parameters: &str, words: &str| {
            let error = constant(parameters).unwrap_err();
            assert!(error.contains(words), "{error}");
        };
        said(latency, "no `bandwidth`, of all requests together: add bandwidth = { is = …, from = \"…\" } with a rate");
        said(
            &(latency.replace("1 ms", "1000 s") + bandwidth),
            "`latency` is 1000 s, and must be from 0 ms to 100000 ms",
        );
        said(&(latency.replace("1 ms", "-1 ms") + bandwidth), "a time");
        said(&(latency.replace(", from = \"me\"", "") + bandwidth), "with its source");
        said(&(latency.to_owned() + bandwidth + "rpm = 7200\n"), "`rpm` is not a parameter of a constant");
        assert!(Model::parse("x", "title = ").unwrap_err().to_string().contains("line 1"));
        assert!(Model::parse("x", "title = \"t\"").unwrap_err().to_string().contains("--toml"));
        assert!(Model::parse("x", "title = \"\"\nkind = \"tape\"").unwrap_err().to_string().contains("ssd"));
    }

    #[test]
    fn rates_are_those_of_data_sheets_and_of_programs() {
        let interface = |name: &str| Model::find(name).expect("built in").number("interface-rate");
        // 3 Gb/s with ten bits to a byte.
        assert_eq!([interface("hdd-7200-2008"), interface("ide-2004"), interface("nvme-ssd")], [300e6, 100e6, 6.8e9]);
        let outer = Model::find("hdd-7200-2008").expect("built in").number("outer-rate");
        assert_eq!(outer, 110.51 * 1_048_576.0);
        let rate = |text: &str| Unit::Rate.parse(&Value::String(text.to_owned())).map(|(rate, _)| rate);
        assert_eq!(["1 kB/s", "2.5 GB/s", "1 KiB/s"].map(rate), [Some(1e3), Some(2.5e9), Some(1024.0)]);
        assert_eq!(["1 Mb/s", "1 MB", "1 m/s", "MB/s"].map(rate), [None; 4]);
    }

    #[test]
    fn a_drive_in_parts_is_refused() {
        let text = Model::text("sata-ssd").expect("built in");
        let with = |name: &str, value: &str| {
            let line = text.lines().find(|line| line.starts_with(&format!("{name} ="))).expect("it has it");
            let changed = text.replace(line, &format!("{name} = {{ is = {value}, from = \"me\" }}"));
            Model::parse("mine", &changed).map(drop).map_err(|error| error.to_string())
        };
        for name in ["channels", "dies", "pages-per-block", "queue-depth", "buffer-is-durable", "full-duplex"] {
            let error = with(name, "0.5").unwrap_err();
            assert!(error.contains("a whole number"), "{error}");
        }
        assert!(with("writing-dies", "17").unwrap_err().contains("`dies`"));
        assert_eq!(with("writing-dies", "16"), Ok(()));
    }

    #[test]
    fn a_disk_that_could_not_be_is_refused() {
        let text = BUILT_IN.iter().find(|(name, _)| *name == "hdd-7200-2008").unwrap().1;
        let average = text.lines().find(|line| line.starts_with("average-seek")).unwrap();
        let faster = text.replace(average, "average-seek = { is = \"1 ms\", from = \"a dream\" }");
        assert!(matches!(Model::parse("x", &faster), Err(ModelError::Contradiction(_))));
        // From 0.8 to 18 ms, 11/15 of the way are 13.413 ms.
        let of =
            |ms: &str| text.replace(average, &format!("average-seek = {{ is = \"{ms}\", from = \"a slow one\" }}"));
        assert!(Model::parse("x", &of("13.41 ms")).is_ok());
        let said = Model::parse("x", &of("13.42 ms")).unwrap_err().to_string();
        assert!(said.contains("raise `full-seek`"), "{said}");
    }
}

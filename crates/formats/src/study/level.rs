//! Levels that are plain values (numbers of a load, kernels, queue settings), and what a level sets.

use crate::{
    decode::{At, Decode, Field, Key, Listed, Node, OneOrMany, Shared, Size, Text, Time, Word, check_names, field},
    diagnostic::{Diagnostic, Report, closest},
    native::{Parameter, Quantity, Target},
};
use fstone_model::{
    age::Past,
    study::{DeviceSpec, FilesystemSpec, KernelSpec},
    units,
};
use serde_json::Value;
use std::sync::Arc;
use toml::de::DeTable;

type Number = crate::decode::Count<1, { u64::MAX }>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    /// What tables and labels call it: "16 threads".
    pub(crate) name: String,
    /// As it is written where it stands for itself: "16".
    pub(crate) written: String,
    /// Its place on an axis.
    pub(crate) number: Option<u64>,
    pub(crate) setting: Setting,
}

/// The level of the factor `background` that has no such step.
pub(super) const NO_BACKGROUND: &str = "none";

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Setting {
    Filesystem(FilesystemSpec, Option<Arc<Past>>),
    Device(DeviceSpec),
    Kernel(KernelSpec),
    /// A file of the device's queue directory in sysfs, and its content.
    Queue(&'static str, String),
    /// The only step of the background that is done.
    Background(String),
    Number(Target, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainFactor {
    Kernel,
    Scheduler,
    ReadAhead,
    QueueRequests,
    RequestSize,
    WriteCache,
    Background,
    Load(Parameter),
}

impl PlainFactor {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Scheduler => "scheduler",
            Self::ReadAhead => "read-ahead",
            Self::QueueRequests => "queue-requests",
            Self::RequestSize => "request-size",
            Self::WriteCache => "write-cache",
            Self::Background => "background",
            Self::Load(parameter) => parameter.name(),
        }
    }

    const fn about(self) -> &'static str {
        match self {
            Self::Kernel => "Kernels: \"host\", \"uml:VERSION\", \"uml:PATH\", \"qemu:PATH\" or \"exact:NAME\".",
            Self::Scheduler => "I/O schedulers of the device: \"none\", \"mq-deadline\", …",
            Self::ReadAhead => "Read-ahead of the device.",
            Self::QueueRequests => "Number of requests that the device's queue holds.",
            Self::RequestSize => "Largest request that the kernel sends to the device.",
            Self::WriteCache => {
                "What the kernel assumes about the device's cache: \"write back\" (it is flushed) or \"write through\"."
            }
            Self::Background => "Which step with `background = true` runs: its name, or \"none\".",
            Self::Load(parameter) => parameter.about(),
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        let own = [
            Self::Kernel,
            Self::Scheduler,
            Self::ReadAhead,
            Self::QueueRequests,
            Self::RequestSize,
            Self::WriteCache,
            Self::Background,
        ];
        own.into_iter().chain(Parameter::ALL.map(Self::Load))
    }

    fn schema(self) -> fn() -> Value {
        match self {
            Self::Kernel => OneOrMany::<Kernel>::schema,
            Self::Scheduler | Self::Background => OneOrMany::<Text>::schema,
            Self::ReadAhead | Self::RequestSize => OneOrMany::<Size>::schema,
            Self::QueueRequests => OneOrMany::<Number>::schema,
            Self::WriteCache => OneOrMany::<Listed<WriteCache>>::schema,
            Self::Load(parameter) => match parameter.quantity() {
                Quantity::Count => OneOrMany::<Number>::schema,
                Quantity::Size => OneOrMany::<Size>::schema,
                Quantity::Time => OneOrMany::<Time>::schema,
            },
        }
    }

    fn read(self, table: &DeTable<'_>, report: &mut Report) -> Option<Field<Vec<At<Level>>>> {
        match self {
            Self::Kernel => levels(table, self.name(), report, |Kernel { written, spec }| Level {
                name: written.clone(),
                written,
                number: None,
                setting: Setting::Kernel(spec),
            }),
            Self::Scheduler => levels(table, self.name(), report, |Text(name)| Level {
                name: name.clone(),
                written: name.clone(),
                number: None,
                setting: Setting::Queue("scheduler", name),
            }),
            Self::Background => levels(table, self.name(), report, |Text(name)| Level {
                name: if name == NO_BACKGROUND { "alone".to_owned() } else { format!("beside {name}") },
                written: name.clone(),
                number: None,
                setting: Setting::Background(name),
            }),
            Self::ReadAhead => levels(table, self.name(), report, |Size(bytes)| {
                sized_setting(format!("read-ahead {}", units::format_bytes(bytes)), bytes, "read_ahead_kb")
            }),
            Self::RequestSize => levels(table, self.name(), report, |Size(bytes)| {
                sized_setting(format!("requests up to {}", units::format_bytes(bytes)), bytes, "max_sectors_kb")
            }),
            Self::QueueRequests => levels(table, self.name(), report, |value: Number| Level {
                name: format!("{} requests queued", value.number()),
                written: value.number().to_string(),
                number: Some(value.number()),
                setting: Setting::Queue("nr_requests", value.number().to_string()),
            }),
            Self::WriteCache => levels(table, self.name(), report, |Listed(WriteCache(words))| Level {
                name: words.to_owned(),
                written: words.to_owned(),
                number: None,
                setting: Setting::Queue("write_cache", words.to_owned()),
            }),
            Self::Load(parameter) => number_levels(table, &Target::whole(parameter), report),
        }
    }
}

fn number_levels(table: &DeTable<'_>, target: &Target, report: &mut Report) -> Option<Field<Vec<At<Level>>>> {
    let parameter = target.parameter;
    let level = |number| Level {
        name: target.level(number),
        written: parameter.written(number),
        number: Some(number),
        setting: Setting::Number(target.clone(), number),
    };
    let name = parameter.name();
    match parameter.quantity() {
        Quantity::Count => levels(table, name, report, |value: Number| level(value.number())),
        Quantity::Size => levels(table, name, report, |value: Size| level(value.number())),
        Quantity::Time => levels(table, name, report, |value: Time| level(value.number())),
    }
}

/// A level that is a size, and in sysfs a number of KiB.
fn sized_setting(name: String, bytes: u64, file: &'static str) -> Level {
    let written = units::format_bytes(bytes);
    Level { name, written, number: Some(bytes), setting: Setting::Queue(file, (bytes >> 10).to_string()) }
}

/// The kernel's words for what it takes a device's cache for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WriteCache(&'static str);

impl Word for WriteCache {
    const WORDS: &'static [(&'static str, Self)] =
        &[("write back", Self("write back")), ("write through", Self("write through"))];
}

fn levels<T: Decode>(
    table: &DeTable<'_>,
    name: &str,
    report: &mut Report,
    level: impl Fn(T) -> Level,
) -> Option<Field<Vec<At<Level>>>> {
    let Field { key, span, value } = field::<OneOrMany<T>>(table, name, report)?;
    let value = value.0.into_iter().map(|At { span, value }| At { span, value: level(value) }).collect();
    Some(Field { key, span, value })
}

/// The plain factors that a table gives levels of, by name: `threads`, or of one part of a load `readers.threads`.
#[derive(Debug, Clone)]
pub(crate) struct PlainFactors(pub(crate) Vec<(String, Field<Vec<At<Level>>>)>);

impl Shared for PlainFactors {
    fn keys() -> Vec<Key> {
        let key = |factor: PlainFactor| Key {
            name: factor.name(),
            doc: factor.about(),
            required: false,
            schema: factor.schema(),
        };
        PlainFactor::all().map(key).collect()
    }

    fn decode(table: &DeTable<'_>, own: &[&str], report: &mut Report) -> Self {
        let of_whole = PlainFactor::all()
            .filter(|factor| !is_part(table, factor.name()))
            .filter_map(|factor| Some((factor.name().to_owned(), factor.read(table, report)?)));
        let mut factors: Vec<_> = of_whole.collect();
        let keys: Vec<Key> =
            Self::keys().into_iter().filter(|key| Parameter::ALL.iter().any(|one| one.name() == key.name)).collect();
        each_of_parts(table, own, &keys, report, |table, target, report| {
            factors.extend(number_levels(table, target, report).map(|levels| (target.to_string(), levels)));
        });
        Self(factors)
    }

    fn takes(value: &Node<'_>) -> bool {
        is_of_part(value)
    }

    fn others() -> Option<Value> {
        Some(part_schema(&Self::keys()))
    }
}

/// Whether a value is a table of numbers, whose key names a part of a load. One number that is misspelt is enough to tell.
fn is_of_part(value: &Node<'_>) -> bool {
    let is_number = |key: &str| closest(key, Parameter::ALL.iter().map(|parameter| parameter.name())).is_some();
    value.get_ref().as_table().is_some_and(|table| table.keys().any(|key| is_number(key.get_ref())))
}

fn is_part(table: &DeTable<'_>, name: &str) -> bool {
    table.get(name).is_some_and(is_of_part)
}

fn each_of_parts(
    table: &DeTable<'_>,
    own: &[&str],
    keys: &[Key],
    report: &mut Report,
    mut each: impl FnMut(&DeTable<'_>, &Target, &mut Report),
) {
    for (part, value) in table.iter().filter(|(key, value)| !own.contains(&key.get_ref().as_ref()) && is_of_part(value))
    {
        let Some(numbers) = value.get_ref().as_table() else { continue };
        check_names(numbers, value.span().into(), keys, report);
        for parameter in Parameter::ALL {
            each(numbers, &Target::of(part.get_ref(), parameter), report);
        }
    }
}

fn part_schema(keys: &[Key]) -> Value {
    let numbers = keys.iter().filter(|key| Parameter::ALL.iter().any(|parameter| parameter.name() == key.name));
    let properties: serde_json::Map<String, Value> = numbers.map(|key| (key.name.to_owned(), (key.schema)())).collect();
    serde_json::json!({
        "type": "object",
        "description": "Numbers of the part of a load that has this name: a group of threads, a phase or a fileset.",
        "properties": properties,
        "minProperties": 1,
        "additionalProperties": false,
    })
}

#[derive(Debug, Clone)]
pub(crate) struct Numbers(pub(crate) Vec<(Target, Field<u64>)>);

impl Shared for Numbers {
    fn keys() -> Vec<Key> {
        let key = |parameter: Parameter| Key {
            name: parameter.name(),
            doc: parameter.about(),
            required: false,
            schema: match parameter.quantity() {
                Quantity::Count => Number::schema,
                Quantity::Size => Size::schema,
                Quantity::Time => Time::schema,
            },
        };
        Parameter::ALL.map(key).into()
    }

    fn decode(table: &DeTable<'_>, own: &[&str], report: &mut Report) -> Self {
        fn one<T: Quantified>(table: &DeTable<'_>, name: &str, report: &mut Report) -> Option<Field<u64>> {
            let Field { key, span, value } = field::<T>(table, name, report)?;
            Some(Field { key, span, value: value.number() })
        }
        let mut numbers = Vec::new();
        let mut read = |table: &DeTable<'_>, target: &Target, report: &mut Report| {
            let read = match target.parameter.quantity() {
                Quantity::Count => one::<Number>,
                Quantity::Size => one::<Size>,
                Quantity::Time => one::<Time>,
            };
            numbers.extend(read(table, target.parameter.name(), report).map(|field| (target.clone(), field)));
        };
        for parameter in Parameter::ALL.into_iter().filter(|parameter| !is_part(table, parameter.name())) {
            read(table, &Target::whole(parameter), report);
        }
        each_of_parts(table, own, &Self::keys(), report, read);
        Self(numbers)
    }

    fn takes(value: &Node<'_>) -> bool {
        is_of_part(value)
    }

    fn others() -> Option<Value> {
        Some(part_schema(&Self::keys()))
    }
}

trait Quantified: Decode {
    /// Bytes, nanoseconds, or the count.
    fn number(self) -> u64;
}

impl Quantified for Number {
    fn number(self) -> u64 {
        self.0
    }
}

impl Quantified for Size {
    fn number(self) -> u64 {
        self.0
    }
}

impl Quantified for Time {
    fn number(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Kernel {
    written: String,
    spec: KernelSpec,
}

impl Decode for Kernel {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        let Text(written) = Text::decode(node, report)?;
        let spec: Option<KernelSpec> = written.parse().ok();
        if spec.is_none() {
            report.push(
                Diagnostic::error(node.span(), format!("unknown kernel `{written}`"))
                    .label(format!("expected {}", Self::expected()))
                    .did_you_mean(&written, ["host"]),
            );
        }
        Some(Self { written, spec: spec? })
    }

    fn schema() -> Value {
        serde_json::json!({ "type": "string", "pattern": "^(host|uml:.+|qemu:.+)$" })
    }

    fn expected() -> String {
        "\"host\", \"uml:VERSION\", \"uml:PATH\", \"qemu:PATH\" or \"exact:NAME\"".into()
    }
}

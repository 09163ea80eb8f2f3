//! TOML tables with known keys, read with every error at once.
//!
//! [`table!`] defines a table's keys once: name, type, whether it is required, and its documentation. From that one
//! definition come the struct, its decoder (unknown keys, wrong types and missing keys are reported and decoding goes
//! on), its JSON schema and its printed reference. Every key is optional in the struct: a required one that is missing
//! has been reported, and the reader carries on with the rest to find what else is wrong.

mod scalar;

pub(crate) use scalar::{Count, Flag, Listed, OneOrMany, Real, Share, Size, Text, Time, Word, Words};

use crate::diagnostic::{Diagnostic, Report, Span, closest};
use serde_json::{Map, Value, json};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

pub(crate) type Node<'a> = Spanned<DeValue<'a>>;

pub(crate) trait Decode: Sized {
    /// Reads it; `None` after having reported why not.
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self>;

    /// Its JSON schema, without a description.
    fn schema() -> Value;

    /// What it is, to complete "expected …": "a size such as \"4 KiB\"".
    fn expected() -> String;

    /// Whether the node is of TOML's type for it, where that says what was meant: a number or a table, for example.
    fn is_meant(_: &Node<'_>) -> bool {
        true
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Field<T> {
    pub(crate) key: Span,
    pub(crate) span: Span,
    pub(crate) value: T,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct At<T> {
    pub(crate) span: Span,
    pub(crate) value: T,
}

pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) required: bool,
    pub(crate) schema: fn() -> Value,
}

/// A table with known keys.
pub(crate) trait Keys {
    const ABOUT: &'static str;
    /// Exactly one of these has to be there; empty for no such rule.
    fn one_of() -> Vec<&'static str> {
        Vec::new()
    }
    /// Its keys, in the order they are documented.
    fn keys() -> Vec<Key>;

    /// Whether it takes a key that is not among them: a name of the user's. Whoever takes it checks it.
    fn takes(_: &Node<'_>) -> bool {
        false
    }

    fn others() -> Option<Value> {
        None
    }
}

/// Keys that several tables share.
pub(crate) trait Shared: Sized {
    fn keys() -> Vec<Key>;
    /// Reads those that are there; `own` are the other keys that the table knows.
    fn decode(table: &DeTable<'_>, own: &[&str], report: &mut Report) -> Self;

    fn takes(_: &Node<'_>) -> bool {
        false
    }

    fn others() -> Option<Value> {
        None
    }
}

/// The keys that are there, whether or not their values could be read.
#[derive(Debug, Clone)]
pub(crate) struct Given(Vec<String>);

impl Given {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|given| given == name)
    }
}

impl Shared for Given {
    fn keys() -> Vec<Key> {
        Vec::new()
    }

    fn decode(table: &DeTable<'_>, _: &[&str], _: &mut Report) -> Self {
        Self(table.keys().map(|key| key.get_ref().to_string()).collect())
    }
}

/// Defines a table: see the module.
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        $vis:vis struct $name:ident {
            $( $(#[doc = $doc:literal])+ $key:literal => $field:ident: $type:ty $(, $required:ident)?; )*
            $( .. $shared:ident: $keys:ty; )?
        }
        $(one of [$($choice:literal),* $(,)?])?
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone)]
        $vis struct $name {
            $( $(#[doc = $doc])+ pub(crate) $field: Option<$crate::decode::Field<$type>>, )*
            $(
                pub(crate) $shared: $keys,
            )?
        }

        impl $crate::decode::Keys for $name {
            const ABOUT: &'static str = concat!($($about),+);
            $(fn one_of() -> Vec<&'static str> {
                vec![$($choice),*]
            })?

            fn keys() -> Vec<$crate::decode::Key> {
                [
                    vec![$(
                        $crate::decode::Key {
                            name: $key,
                            doc: concat!($($doc),+),
                            required: $crate::decode::table!(@required $($required)?),
                            schema: <$type as $crate::decode::Decode>::schema,
                        },
                    )*],
                    $(<$keys as $crate::decode::Shared>::keys(),)?
                ]
                .into_iter()
                .flatten()
                .collect()
            }

            $(
                fn takes(value: &$crate::decode::Node<'_>) -> bool {
                    <$keys as $crate::decode::Shared>::takes(value)
                }

                fn others() -> Option<serde_json::Value> {
                    <$keys as $crate::decode::Shared>::others()
                }
            )?
        }

        impl $crate::decode::Decode for $name {
            fn decode(node: &$crate::decode::Node<'_>, report: &mut $crate::diagnostic::Report) -> Option<Self> {
                let table = $crate::decode::open::<Self>(node, report)?;
                let _own: &[&str] = &[$($key),*];
                Some(Self {
                    $( $field: $crate::decode::field(table, $key, report), )*
                    $( $shared: <$keys as $crate::decode::Shared>::decode(table, _own, report), )?
                })
            }

            fn schema() -> serde_json::Value {
                $crate::decode::object_schema::<Self>()
            }

            fn expected() -> String {
                $crate::decode::expected_table::<Self>()
            }
        }
    };
    (@required required) => { true };
    (@required) => { false };
}
pub(crate) use table;

/// A table without keys, where there is nothing to choose.
#[derive(Debug, Clone)]
pub(crate) struct Nothing;

impl Keys for Nothing {
    const ABOUT: &'static str = "Nothing to choose.";
    fn keys() -> Vec<Key> {
        Vec::new()
    }
}

impl Decode for Nothing {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        open::<Self>(node, report).map(|_| Self)
    }

    fn schema() -> Value {
        object_schema::<Self>()
    }

    fn expected() -> String {
        "an empty table, {}".into()
    }
}

/// A plain value, or a table where it is not enough.
#[derive(Debug, Clone)]
pub(crate) enum OrTable<V, T> {
    Plain(V),
    Table(Box<T>),
}

/// A table that can be there in place of a plain value.
pub(crate) trait InPlace: Decode {
    /// Completes "expected …", for the value and the table.
    const EXPECTED: &'static str;
}

impl<V: Decode, T: InPlace> Decode for OrTable<V, T> {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        if node.get_ref().is_table() {
            return T::decode(node, report).map(|table| Self::Table(Box::new(table)));
        }
        if !V::is_meant(node) {
            return wrong_type(node, T::EXPECTED, report);
        }
        V::decode(node, report).map(Self::Plain)
    }

    fn schema() -> Value {
        json!({ "anyOf": [V::schema(), T::schema()] })
    }

    fn expected() -> String {
        T::EXPECTED.into()
    }
}

/// Parses a file and decodes its root table. Syntax errors are reported alone: what follows from them is no news.
pub(crate) fn document<T: Decode + Keys>(report: &mut Report) -> Option<T> {
    let source = report.source().clone();
    let (root, errors) = DeTable::parse_recoverable(source.text());
    if errors.is_empty() {
        let whole = 0..source.text().len();
        return T::decode(&Spanned::new(whole, DeValue::Table(root.into_inner())), report);
    }
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        report.push(Diagnostic::error(span, format!("this is not TOML: {}", error.message())));
    }
    None
}

/// The table behind a node, its keys checked.
pub(crate) fn open<'n, T: Keys + Decode>(node: &'n Node<'_>, report: &mut Report) -> Option<&'n DeTable<'n>> {
    let Some(table) = node.get_ref().as_table() else {
        return wrong_type(node, &T::expected(), report);
    };
    check_keys(table, node.span().into(), &T::keys(), (T::takes, &T::one_of()), report);
    Some(table)
}

/// More keys than this are not listed where one is unknown, unless nothing like it is known.
const LISTED_KEYS: usize = 8;

fn check_keys(
    table: &DeTable<'_>,
    span: Span,
    keys: &[Key],
    (takes, one_of): (fn(&Node<'_>) -> bool, &[&str]),
    report: &mut Report,
) {
    let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
    let mut meant = Vec::new();
    for (key, value) in table {
        let written = key.get_ref().as_ref();
        if names.contains(&written) || takes(value) {
            continue;
        }
        let unused = names.iter().copied().filter(|name| !table.contains_key(*name));
        let guess = closest(written, unused);
        meant.extend(guess);
        let mut diagnostic = Diagnostic::error(key.span(), format!("unknown key `{written}`"));
        diagnostic = match names.len() {
            0 => diagnostic.label("no key is known here"),
            1..=LISTED_KEYS => diagnostic.label(format!("expected {}", any_of(&names))),
            _ => diagnostic.label("no such key here"),
        };
        if names.len() > LISTED_KEYS && guess.is_none() {
            diagnostic = diagnostic.note(format!("the keys here are {}", listed(&names)));
        }
        if let Some(guess) = guess {
            diagnostic = diagnostic.help(format!("did you mean `{guess}`?"));
        }
        report.push(diagnostic);
    }
    let is_missing = |key: &&Key| key.required && !table.contains_key(key.name) && !meant.contains(&key.name);
    for key in keys.iter().filter(is_missing) {
        let message = format!("`{}` is missing", key.name);
        // The root has no place but the whole file.
        let is_root = span.start == 0 && span.end == report.source().text().len();
        let diagnostic = if is_root { Diagnostic::whole(message) } else { Diagnostic::error(start_of(span), message) };
        report.push(diagnostic.help(format!("`{}`: {}", key.name, tidy(key.doc))));
    }
    if one_of.is_empty() {
        return;
    }
    let mut given: Vec<_> = table.keys().filter(|key| one_of.contains(&key.get_ref().as_ref())).collect();
    given.sort_by_key(|key| key.span().start);
    match given.as_slice() {
        [_] => {}
        // An unknown key was probably meant to be the one; one error is enough.
        [] if table.keys().any(|key| !names.contains(&key.get_ref().as_ref())) => {}
        [] => report.push(Diagnostic::error(start_of(span), format!("expected one of {}", listed(one_of)))),
        [first, others @ ..] => {
            for other in others {
                report.push(
                    Diagnostic::error(other.span(), format!("`{}` beside `{}`", other.get_ref(), first.get_ref()))
                        .label("only one of the two can be here")
                        .context(first.span(), "the first"),
                );
            }
        }
    }
}

/// A table's own place may be many lines long; its first byte is enough to find it.
fn start_of(span: Span) -> Span {
    Span::new(span.start, (span.start + 1).min(span.end))
}

/// Checks a table of the user's naming, whose keys these are.
pub(crate) fn check_names(table: &DeTable<'_>, span: Span, keys: &[Key], report: &mut Report) {
    check_keys(table, span, keys, (|_| false, &[]), report);
}

pub(crate) fn field<T: Decode>(table: &DeTable<'_>, name: &str, report: &mut Report) -> Option<Field<T>> {
    let (key, node) = table.get_key_value(name)?;
    let value = T::decode(node, report)?;
    Some(Field { key: key.span().into(), span: node.span().into(), value })
}

/// Entries of a table whose keys are the user's, in the order they were written.
#[derive(Debug, Clone)]
pub(crate) struct Entries<T>(pub(crate) Vec<(At<String>, At<T>)>);

impl<T: Decode> Decode for Entries<T> {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        let Some(table) = node.get_ref().as_table() else {
            return wrong_type(node, &Self::expected(), report);
        };
        if table.is_empty() {
            report.push(
                Diagnostic::error(start_of(node.span().into()), "this table is empty")
                    .label("expected at least one name"),
            );
            return None;
        }
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let decode = |(key, node): (&Spanned<_>, &Node<'_>)| {
            let name: &std::borrow::Cow<'_, str> = key.get_ref();
            let value = T::decode(node, report)?;
            let key = At { span: key.span().into(), value: name.to_string() };
            Some((key, At { span: node.span().into(), value }))
        };
        Some(Self(entries.into_iter().filter_map(decode).collect()))
    }

    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema(), "minProperties": 1 })
    }

    fn expected() -> String {
        format!("a table of names, each with {}", T::expected())
    }
}

impl<T: Decode> Decode for Vec<At<T>> {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        let Some(array) = node.get_ref().as_array() else {
            return wrong_type(node, &Self::expected(), report);
        };
        let decode = |node: &Node<'_>| Some(At { span: node.span().into(), value: T::decode(node, report)? });
        Some(array.iter().filter_map(decode).collect())
    }

    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }

    fn expected() -> String {
        format!("a list, each of it {}", T::expected())
    }
}

/// Reports what is there in place of what was expected. There is no value then.
pub(crate) fn wrong_type<T>(node: &Node<'_>, expected: &str, report: &mut Report) -> Option<T> {
    let found = match node.get_ref() {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    report.push(
        Diagnostic::error(node.span(), format!("{found} cannot stand here")).label(format!("expected {expected}")),
    );
    None
}

/// "`a`", "`a` or `b`", "one of `a`, `b`, `c`".
pub(crate) fn any_of(names: &[&str]) -> String {
    match names {
        [one] => format!("`{one}`"),
        [one, other] => format!("`{one}` or `{other}`"),
        _ => format!("one of {}", listed(names)),
    }
}

/// "`a`, `b`, `c`".
pub(crate) fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

pub(crate) fn expected_table<T: Keys>() -> String {
    let names: Vec<&str> = T::keys().iter().map(|key| key.name).collect();
    if names.is_empty() { "an empty table, {}".into() } else { format!("a table with {}", any_of(&names)) }
}

pub(crate) fn object_schema<T: Keys>() -> Value {
    let keys = T::keys();
    let properties: Map<String, Value> = keys
        .iter()
        .map(|key| {
            let mut schema = (key.schema)();
            schema["description"] = tidy(key.doc).into();
            (key.name.to_owned(), schema)
        })
        .collect();
    let required: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    let mut schema = json!({
        "type": "object",
        "description": tidy(T::ABOUT),
        "properties": properties,
        "additionalProperties": T::others().unwrap_or(Value::Bool(false)),
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let one_of = T::one_of();
    if !one_of.is_empty() {
        schema["oneOf"] = one_of.iter().map(|name| json!({ "required": [name] })).collect();
    }
    schema
}

/// A key's documentation on one line: doc comments keep their line breaks and leading blanks.
pub(crate) fn tidy(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A key of a file format, for printing a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReference {
    /// The table it stands in, as in a file: "", "factor.filesystem.NAME", "step.load".
    pub table: &'static str,
    pub name: &'static str,
    pub required: bool,
    pub about: String,
}

pub(crate) fn reference<const N: usize>(tables: [(&'static str, Vec<Key>); N]) -> Vec<KeyReference> {
    let of_table = |(table, keys): (&'static str, Vec<Key>)| {
        keys.into_iter().map(move |key| KeyReference {
            table,
            name: key.name,
            required: key.required,
            about: tidy(key.doc),
        })
    };
    tables.into_iter().flat_map(of_table).collect()
}

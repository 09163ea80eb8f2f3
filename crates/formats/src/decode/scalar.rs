//! Values that are one word, number or list of words.

use super::{At, Decode, Node, wrong_type};
use crate::diagnostic::{Diagnostic, Report, Span};
use fstone_model::units;
use serde_json::{Value, json};
use std::time::Duration;
use toml::de::DeValue;

/// A text that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) String);

impl Decode for Text {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        let Some(text) = node.get_ref().as_str() else {
            return wrong_type(node, &Self::expected(), report);
        };
        if text.trim().is_empty() {
            report.push(Diagnostic::error(node.span(), "this text is empty").label("leave the key out instead"));
            return None;
        }
        Some(Self(text.to_owned()))
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1 })
    }

    fn expected() -> String {
        "a string".into()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) bool);

impl Decode for Flag {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        node.get_ref().as_bool().map(Self).or_else(|| wrong_type(node, &Self::expected(), report))
    }

    fn schema() -> Value {
        json!({ "type": "boolean" })
    }

    fn expected() -> String {
        "true or false".into()
    }
}

/// A whole number in `MIN..=MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count<const MIN: u64, const MAX: u64>(pub(crate) u64);

impl<const MIN: u64, const MAX: u64> Decode for Count<MIN, MAX> {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        let Some(integer) = node.get_ref().as_integer() else {
            return wrong_type(node, &Self::expected(), report);
        };
        match u64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) if (MIN..=MAX).contains(&number) => Some(Self(number)),
            _ => {
                report.push(
                    Diagnostic::error(node.span(), "this number is out of range")
                        .label(format!("expected {}", Self::expected())),
                );
                None
            }
        }
    }

    fn schema() -> Value {
        // TOML's integers end at 2^63; JSON schema readers may not go beyond 2^53.
        if MAX > 1 << 53 {
            json!({ "type": "integer", "minimum": MIN })
        } else {
            json!({ "type": "integer", "minimum": MIN, "maximum": MAX })
        }
    }

    fn expected() -> String {
        match (MIN, MAX) {
            (_, u64::MAX) => format!("a whole number from {MIN}"),
            _ => format!("a whole number from {MIN} to {MAX}"),
        }
    }

    fn is_meant(node: &Node<'_>) -> bool {
        node.get_ref().is_integer()
    }
}

/// A number above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Real(pub(crate) f64);

impl Decode for Real {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        let number = match node.get_ref() {
            DeValue::Integer(integer) => u64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|n| n as f64),
            DeValue::Float(float) => float.as_str().replace('_', "").parse::<f64>().ok(),
            _ => {
                return wrong_type(node, &Self::expected(), report);
            }
        };
        let number = number.filter(|number| number.is_finite() && *number > 0.0);
        if number.is_none() {
            report.push(
                Diagnostic::error(node.span(), "this number is out of range")
                    .label(format!("expected {}", Self::expected())),
            );
        }
        number.map(Self)
    }

    fn schema() -> Value {
        json!({ "type": "number", "exclusiveMinimum": 0 })
    }

    fn expected() -> String {
        "a number above 0".into()
    }
}

/// A quantity with a unit: as text, or as a number in the base unit.
fn quantity<T>(
    node: &Node<'_>,
    expected: &str,
    parse: impl Fn(&str) -> Result<T, units::UnitError>,
    report: &mut Report,
) -> Option<T> {
    let text = match node.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.as_str().to_owned(),
        _ => {
            return wrong_type(node, expected, report);
        }
    };
    parse(&text)
        .map_err(|error| {
            report.push(Diagnostic::error(node.span(), error.to_string()).label(format!("expected {expected}")));
        })
        .ok()
}

/// Defines quantities: the type of the value, what reads it, its JSON schema, and what is expected.
macro_rules! quantities {
    ($($(#[$about:meta])* $name:ident($type:ty) = $parse:path, $schema:tt, $expected:literal;)*) => {
        $(
            $(#[$about])*
            #[derive(Debug, Clone, Copy, PartialEq)]
            pub(crate) struct $name(pub(crate) $type);

            impl Decode for $name {
                fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
                    quantity(node, &Self::expected(), $parse, report).map(Self)
                }

                fn schema() -> Value {
                    json!({ "anyOf": $schema })
                }

                fn expected() -> String {
                    $expected.into()
                }
            }
        )*
    };
}

quantities! {
    /// A size in bytes.
    Size(u64) = units::parse_bytes,
        [{ "type": "string", "examples": ["4 KiB", "32 GiB"] }, { "type": "integer", "minimum": 0 }],
        "a size such as \"4 KiB\" (bytes without a unit)";
    Time(Duration) = units::parse_duration,
        [{ "type": "string", "examples": ["5 s", "30 min"] }, { "type": "number", "minimum": 0 }],
        "a time such as \"30 s\" (seconds without a unit)";
    /// A share, 0 to 1.
    Share(f64) = units::parse_share,
        [{ "type": "string", "examples": ["2 %"] }, { "type": "number", "minimum": 0, "maximum": 1 }],
        "a share such as \"2 %\" (or 0.02)";
}

pub(crate) trait Word: Sized + Clone + 'static {
    const WORDS: &'static [(&'static str, Self)];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listed<T>(pub(crate) T);

impl<T: Word> Decode for Listed<T> {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        let Some(text) = node.get_ref().as_str() else {
            return wrong_type(node, &Self::expected(), report);
        };
        let found = T::WORDS.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            report.push(
                Diagnostic::error(node.span(), format!("unknown word `{text}`"))
                    .label(format!("expected {}", Self::expected()))
                    .did_you_mean(text, T::WORDS.iter().map(|(word, _)| *word)),
            );
        }
        found.map(|(_, value)| Self(value.clone()))
    }

    fn schema() -> Value {
        json!({ "enum": T::WORDS.iter().map(|(word, _)| *word).collect::<Vec<_>>() })
    }

    fn expected() -> String {
        let words: Vec<String> = T::WORDS.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        match words.as_slice() {
            [one, other] => format!("{one} or {other}"),
            _ => format!("one of {}", words.join(", ")),
        }
    }

    fn is_meant(node: &Node<'_>) -> bool {
        node.get_ref().is_str()
    }
}

/// Words as a shell would split them: blanks separate, quotes and backslashes keep together. Nothing is expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words(pub(crate) Vec<String>);

impl Decode for Words {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        let Some(text) = node.get_ref().as_str() else {
            return wrong_type(node, &Self::expected(), report);
        };
        match words_of(text) {
            Some(words) => Some(Self(words)),
            None => {
                report
                    .push(Diagnostic::error(node.span(), "a quote or backslash is not closed").label("in these words"));
                None
            }
        }
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }

    fn expected() -> String {
        "a string of words, split as a shell splits them".into()
    }
}

/// Splits as a shell does; `None` when a quote is not closed or a backslash is last.
pub(crate) fn words_of(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '"' => break,
                        '\\' => match characters.next()? {
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(characters.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<At<T>>);

impl<T: Decode> Decode for OneOrMany<T> {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        if let Some(array) = node.get_ref().as_array() {
            if array.is_empty() {
                report.push(
                    Diagnostic::error(node.span(), "this list is empty").label(format!("expected {}", T::expected())),
                );
                return None;
            }
            return Vec::decode(node, report).map(Self);
        }
        Some(Self(vec![At { span: Span::from(node.span()), value: T::decode(node, report)? }]))
    }

    fn schema() -> Value {
        json!({ "anyOf": [T::schema(), { "type": "array", "items": T::schema(), "minItems": 1 }] })
    }

    fn expected() -> String {
        format!("{}, or a list of such", T::expected())
    }
}

#[cfg(test)]
mod tests {
    use super::words_of;
    use proptest::prelude::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let split = |text| words_of(text).map(|words| words.join("|"));
        assert_eq!(split("-I 256  -O 'a b'").as_deref(), Some("-I|256|-O|a b"));
        assert_eq!(split(r#"-L "my \"disk\"" a\ b '' x"y"z"#).as_deref(), Some(r#"-L|my "disk"|a b||xyz"#));
        assert_eq!(split(r#""\n""#).as_deref(), Some(r"\n"));
        assert_eq!(split("").as_deref(), Some(""));
        assert!(words_of("'open").is_none() && words_of("\"open").is_none() && words_of("end\\").is_none());
    }

    proptest! {
        #[test]
        fn quoting_a_word_keeps_it(words in prop::collection::vec("[^']{0,12}", 0..5)) {
            let text = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(words_of(&text), Some(words));
        }
    }
}

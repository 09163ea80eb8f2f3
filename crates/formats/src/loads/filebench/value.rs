//! What values mean when the load is run: variables, numbers, and what is drawn.

use super::tree::{At, Attribute, Local, Random, Value};
use crate::diagnostic::{Diagnostic, Report, Span};
use std::collections::HashMap;

/// Variables that stand for variables: more of them in a row stand for themselves.
const MAXIMUM_DEPTH: usize = 16;

/// What variables are, as far as the file has been read: those of the file, and those of the flowop that is being put together.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    variables: HashMap<String, At<Value>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Amount {
    Fixed(u64),
    Drawn(At<Random>),
}

impl Scope {
    pub(super) fn set(&mut self, name: &str, value: At<Value>) {
        self.variables.insert(name.to_owned(), value);
    }

    pub(super) fn with(&self, declared: &[Local], given: &[Local], report: &mut Report) -> Self {
        let mut inner = self.clone();
        for local in declared.iter().chain(given) {
            let Some(value) = &local.value else { continue };
            if let Some(value) = self.plain(value, report) {
                inner.variables.insert(local.name.value.clone(), value);
            }
        }
        inner
    }

    /// A value that is no variable.
    pub(super) fn plain(&self, value: &At<Value>, report: &mut Report) -> Option<At<Value>> {
        let mut value = value;
        let used = value.span;
        for _ in 0..MAXIMUM_DEPTH {
            let Value::Variable(name) = &value.value else {
                return Some(At::new(value.value.clone(), used));
            };
            let Some(next) = self.variables.get(name) else {
                let diagnostic = Diagnostic::error(value.span, format!("`${name}` was never set"))
                    .did_you_mean(name, self.variables.keys().map(String::as_str))
                    .help(format!("for example: set ${name}=10"));
                report.push(diagnostic);
                return None;
            };
            value = next;
        }
        report.push(Diagnostic::error(used, "this variable refers to itself"));
        None
    }

    pub(super) fn amount(&self, value: &At<Value>, report: &mut Report) -> Option<Amount> {
        let plain = self.plain(value, report)?;
        match &plain.value {
            Value::Number(number) => Some(Amount::Fixed(*number)),
            Value::Flag(flag) => Some(Amount::Fixed(u64::from(*flag))),
            Value::Sum(left, sign, right) => {
                let (left, right) = (self.number(left, report)?, self.number(right, report)?);
                let result = match sign {
                    '*' => left.checked_mul(right),
                    '/' => left.checked_div(right),
                    '+' => left.checked_add(right),
                    _ => left.checked_sub(right),
                };
                if result.is_none() {
                    report.push(Diagnostic::error(plain.span, format!("{left} {sign} {right} is not a number here")));
                }
                result.map(Amount::Fixed)
            }
            Value::Random(random) => Some(Amount::Drawn(At::new((**random).clone(), plain.span))),
            Value::Text(text) => {
                report.push(
                    Diagnostic::error(value.span, format!("`{text}` is not a number"))
                        .label("expected a number such as 16k"),
                );
                None
            }
            Value::Variable(_) => None,
        }
    }

    pub(super) fn number(&self, value: &At<Value>, report: &mut Report) -> Option<u64> {
        match self.amount(value, report)? {
            Amount::Fixed(number) => Some(number),
            Amount::Drawn(_) => {
                report.push(
                    Diagnostic::error(value.span, "this number cannot be drawn")
                        .label("expected a number")
                        .help("fstone draws iosize, indexed and the size of files"),
                );
                None
            }
        }
    }

    pub(super) fn flag(&self, value: &At<Value>, report: &mut Report) -> Option<bool> {
        let plain = self.plain(value, report)?;
        match plain.value {
            Value::Flag(flag) => Some(flag),
            Value::Number(number) => Some(number != 0),
            _ => {
                report.push(Diagnostic::error(value.span, "this is neither `true` nor `false`"));
                None
            }
        }
    }

    pub(super) fn text(&self, value: &At<Value>, report: &mut Report) -> Option<At<String>> {
        let plain = self.plain(value, report)?;
        match plain.value {
            Value::Text(text) => Some(At::new(text, plain.span)),
            Value::Number(number) => Some(At::new(number.to_string(), plain.span)),
            _ => {
                report.push(Diagnostic::error(value.span, "this is not a name"));
                None
            }
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Attributes<'a> {
    pub(super) all: &'a [Attribute],
    pub(super) scope: &'a Scope,
}

impl<'a> Attributes<'a> {
    pub(super) const fn new(all: &'a [Attribute], scope: &'a Scope) -> Self {
        Self { all, scope }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Attribute> {
        self.all.iter().find(|attribute| attribute.name.value == name)
    }

    fn value(&self, name: &str, report: &mut Report) -> Option<&'a At<Value>> {
        let attribute = self.get(name)?;
        if attribute.value.is_none() {
            report.push(
                Diagnostic::error(attribute.name.span, format!("`{name}` of what?"))
                    .label(format!("expected `{name}=…`")),
            );
        }
        attribute.value.as_ref()
    }

    pub(super) fn number(&self, name: &str, default: u64, report: &mut Report) -> u64 {
        self.value(name, report).and_then(|value| self.scope.number(value, report)).unwrap_or(default)
    }

    pub(super) fn amount(&self, name: &str, report: &mut Report) -> Option<Amount> {
        let value = self.value(name, report)?;
        self.scope.amount(value, report)
    }

    pub(super) fn text(&self, name: &str, report: &mut Report) -> Option<At<String>> {
        let value = self.value(name, report)?;
        self.scope.text(value, report)
    }

    /// A name alone says yes.
    pub(super) fn flag(&self, name: &str, report: &mut Report) -> bool {
        match self.get(name) {
            None => false,
            Some(Attribute { value: None, .. }) => true,
            Some(Attribute { value: Some(value), .. }) => self.scope.flag(value, report).unwrap_or(false),
        }
    }

    /// Where an attribute stands, and where it does not, what has it.
    pub(super) fn span(&self, name: &str, otherwise: Span) -> Span {
        self.get(name).map_or(otherwise, |attribute| match &attribute.value {
            Some(value) => Span::new(attribute.name.span.start, value.span.end.max(attribute.name.span.end)),
            None => attribute.name.span,
        })
    }
}

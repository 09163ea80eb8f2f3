//! Services of a study: `[service.NAME]`.

use super::{
    load::stays_beside,
    surface::{CommandWords, ReadySurface, StudyFile},
};
use crate::{
    decode::{At, Field, Text},
    diagnostic::{Diagnostic, Report, Span},
};
use fstone_model::service::{Ready, Service};
use std::{sync::Arc, time::Duration};

/// The name that stands for its directory, in its own commands.
pub(super) const DATA: &str = "data";
const LONGEST_NAME: usize = 40;
const USUAL_LIMIT: Duration = Duration::from_secs(60);

pub(super) struct Known {
    pub(super) span: Span,
    pub(super) service: Arc<Service>,
    /// Its words with their places, in the order of [`Service::words`].
    pub(super) texts: Vec<At<String>>,
}

pub(super) fn services(surface: &StudyFile, report: &mut Report) -> Vec<Known> {
    let mut services = Vec::new();
    for (name, At { value: table, .. }) in surface.service.iter().flat_map(|field| &field.value.0) {
        check_name(name, report);
        let mut texts = Vec::new();
        let words = |field: Option<&Field<CommandWords>>, texts: &mut Vec<At<String>>, report: &mut Report| {
            let Some(field) = field else { return Vec::new() };
            if field.value.first().is_none_or(|program| program.value.0.trim().is_empty()) {
                let error = Diagnostic::error(field.span, "this command is empty");
                report.push(error.label("expected a program and its arguments, or no such key"));
            }
            texts.extend(field.value.iter().map(|word| At { span: word.span, value: word.value.0.clone() }));
            field.value.iter().map(|word| word.value.0.clone()).collect()
        };
        let (make, start) =
            (words(table.make.as_ref(), &mut texts, report), words(table.start.as_ref(), &mut texts, report));
        let ready = table.ready.as_ref().and_then(|field| match &field.value {
            ReadySurface { command: Some(command), .. } => {
                Some(Ready::Command(words(Some(command), &mut texts, report)))
            }
            ReadySurface { socket: Some(socket), .. } => {
                let Text(text) = &socket.value;
                // A variable may have what is missing.
                if !text.contains(['/', ':', '{']) {
                    let error = Diagnostic::error(socket.span, format!("`{text}` is not a socket"));
                    report.push(error.label("expected a path like \"{data}/socket\", or \"127.0.0.1:5432\""));
                }
                texts.push(At { span: socket.span, value: text.clone() });
                Some(Ready::Socket(text.clone()))
            }
            ReadySurface { line, .. } => line.as_ref().map(|Field { span, value: Text(text), .. }| {
                texts.push(At { span: *span, value: text.clone() });
                Ready::Line(text.clone())
            }),
        });
        let stop = words(table.stop.as_ref(), &mut texts, report);
        if let Some(log) = table.log.as_ref().filter(|log| !stays_beside(&log.value.0)) {
            let error = Diagnostic::error(log.span, format!("`{}` is not in the service's directory", log.value.0));
            report.push(error.label("expected a relative path without `..`"));
        }
        // What is missing has been reported.
        let (Some(ready), false) = (ready, start.is_empty()) else { continue };
        let service = Service {
            name: name.value.clone(),
            make,
            start,
            ready,
            stop,
            log: table.log.as_ref().map(|log| log.value.0.clone()),
            user: table.user.as_ref().map(|user| user.value.0.clone()),
            limit: table.limit.as_ref().map_or(USUAL_LIMIT, |limit| limit.value.0),
        };
        services.push(Known { span: name.span, service: Arc::new(service), texts });
    }
    services
}

fn check_name(name: &At<String>, report: &mut Report) {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let written = &name.value;
    if written.len() > LONGEST_NAME || !written.chars().all(plain) || !written.starts_with(|c: char| c != '-') {
        report.push(
            Diagnostic::error(name.span, format!("no service can be called `{}`", written.escape_debug()))
                .label(format!("expected small letters, digits, `-` and `_`, {LONGEST_NAME} at most")),
        );
    }
}

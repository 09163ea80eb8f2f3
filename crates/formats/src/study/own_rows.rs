//! What a study's own filesystems mean for its factors and cells.

use super::{factor::Factor, level::Setting, own::Own, placeholder};
use crate::diagnostic::{Diagnostic, Report, Span};
use fstone_model::study::{Cell, DeviceSpec, FilesystemSpec, KernelSpec};
use std::sync::Arc;

/// Every one of them is a level's type, or it would never be made.
pub(super) fn all_used(own: &[Own], factors: &[Factor], report: &mut Report) {
    for one in own.iter().filter(|one| !specs(factors).any(|spec| spec.kind == one.name)) {
        report.push(
            Diagnostic::error(one.span, format!("no level of `factor.filesystem` has the type `{}`", one.name))
                .label("it would never be made")
                .help(format!("add under [factor.filesystem]: \"{0}\" = {{ type = \"{0}\" }}", one.name)),
        );
    }
}

fn specs(factors: &[Factor]) -> impl Iterator<Item = &FilesystemSpec> {
    factors.iter().flat_map(|factor| &factor.levels).filter_map(|level| match &level.value.setting {
        Setting::Filesystem(spec, _) => Some(spec),
        _ => None,
    })
}

pub(super) fn need_nothing(factors: &[Factor]) -> bool {
    let mut specs = specs(factors).peekable();
    specs.peek().is_some() && specs.all(|spec| spec.own.as_ref().is_some_and(|own| !own.needs_device()))
}

/// What steps may call the mounts of several clients: `mount0`, `mount1`, …; nothing where there is one.
pub(super) fn places(factors: &[Factor]) -> Vec<String> {
    let most = specs(factors).filter_map(|spec| spec.own.as_ref()).map(|own| own.clients).max().unwrap_or(1);
    if most == 1 { Vec::new() } else { (0..most).map(|client| format!("mount{client}")).collect() }
}

/// Puts variables in, and gives a filesystem that needs no device a directory in its place: where the image would be.
pub(super) fn settle(cell: &mut Cell, variables: &[(String, String)]) {
    let Some(own) = &mut cell.filesystem.own else { return };
    for word in Arc::make_mut(own).words_mut() {
        *word = placeholder::fill(word, |name| {
            variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        });
    }
    if !own.needs_device() {
        let directory = match &cell.device {
            DeviceSpec::Loop { directory, .. } => directory.clone(),
            DeviceSpec::Directory { path } => path.clone(),
            _ => None,
        };
        cell.device = DeviceSpec::Scratch { directory };
    }
}

/// What cannot be: reported once each, however many cells have it, and only where nothing else is wrong that it may come from.
pub(super) fn check_cells(cells: &[Cell], place: Span, report: &mut Report) {
    if report.has_errors() {
        return;
    }
    let own = || cells.iter().filter(|cell| cell.filesystem.own.is_some());
    let mut tell = |cell: Option<&Cell>, words: fn(&str) -> (String, String)| {
        let Some(cell) = cell else { return };
        let (message, help) = words(&cell.filesystem.kind);
        report.push(Diagnostic::error(place, message).help(help));
    };
    tell(own().find(|cell| cell.kernel != KernelSpec::Host), |name| {
        (
            format!("`{name}` is a filesystem of the study's own, and cannot be made in a guest"),
            "leave `kernel` out, or make a study of its own for it".to_owned(),
        )
    });
    let on_directory = |cell: &&Cell| matches!(cell.device, DeviceSpec::Directory { .. });
    tell(own().find(on_directory), |name| {
        (
            format!("`{name}` has `{{device}}` in its commands, and the study has no device"),
            "for example: device = { loop = { size = \"4 GiB\" } }".to_owned(),
        )
    });
    if own().next().is_some() {
        tell(cells.iter().find(|cell| cell.filesystem.own.is_none() && on_directory(cell)), |name| {
            (
                format!("`{name}` needs a device: in a directory only filesystems of the study's own can be made"),
                "for example: device = { loop = { size = \"4 GiB\" } }".to_owned(),
            )
        });
    }
    tell(own().find(|cell| !cell.queue.is_empty() && matches!(cell.device, DeviceSpec::Scratch { .. })), |name| {
        (format!("`{name}` has no device whose queue could be set"), "leave the factor of the queue out".to_owned())
    });
}

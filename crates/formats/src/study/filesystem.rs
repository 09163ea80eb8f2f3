//! Filesystems as a study names them.

use super::{own::Own, surface::FilesystemSurface};
use crate::{
    decode::{At, Text, Words},
    diagnostic::{Diagnostic, Report},
};
use fstone_model::study::{FilesystemSpec, FilesystemType};
use std::sync::Arc;

pub(super) fn filesystem(
    name: &str,
    surface: &FilesystemSurface,
    types: &[FilesystemType],
    own: &[Own],
    report: &mut Report,
) -> FilesystemSpec {
    let mut spec = FilesystemSpec { name: name.to_owned(), ..FilesystemSpec::default() };
    if let Some(kind) = &surface.r#type {
        let Text(written) = &kind.value;
        if let Some(own) = own.iter().find(|own| own.name == *written) {
            own.refuse_options(surface, report);
            return FilesystemSpec { kind: written.clone(), own: Some(Arc::clone(&own.filesystem)), ..spec };
        }
        let known = types.iter().map(|known| known.name);
        let names: Vec<&str> = known.chain(own.iter().map(|own| own.name.as_str())).collect();
        if !names.contains(&written.as_str()) {
            report.push(
                Diagnostic::error(kind.span, format!("unknown filesystem type `{written}`"))
                    .label("no such type")
                    .did_you_mean(written, names.iter().copied())
                    .note(format!("there are {}", names.join(", "))),
            );
        }
        spec.kind.clone_from(written);
    }
    if let Some(mkfs) = &surface.mkfs {
        let Words(words) = &mkfs.value;
        let known = types.iter().find(|known| known.name == spec.kind);
        check_mkfs(&At { span: mkfs.span, value: words }, known, report);
        spec.mkfs.clone_from(words);
    }
    if let Some(mount) = &surface.mount {
        let Text(options) = &mount.value;
        if options.trim_start().starts_with('-') || options.contains(|c: char| c.is_whitespace() || c.is_control()) {
            report.push(
                Diagnostic::error(mount.span, "these are not mount options")
                    .label("expected names separated by commas, without blanks and without -o")
                    .help("for example: mount = \"data=writeback,nodelalloc\""),
            );
        }
        if options.contains("/dev/") {
            report.push(
                Diagnostic::error(mount.span, "a mount option names a device")
                    .label("another device would be written to as well"),
            );
        }
        spec.mount.clone_from(options);
    }
    if let Some(tree) = &surface.tree {
        let Text(path) = &tree.value;
        check_tree(&At { span: tree.span, value: path }, &spec.kind, types, report);
        spec.tree = Some(path.clone());
    }
    spec
}

fn check_tree(path: &At<&String>, kind: &str, types: &[FilesystemType], report: &mut Report) {
    if !path.value.starts_with('/') && !path.value.starts_with('{') {
        report.push(
            Diagnostic::error(path.span, format!("`{}` depends on where fstone is started", path.value))
                .label("expected an absolute path"),
        );
    }
    if types.iter().any(|known| known.name == kind && !known.holds_trees) {
        let others: Vec<&str> = types.iter().filter(|known| known.holds_trees).map(|known| known.name).collect();
        report.push(
            Diagnostic::error(path.span, format!("mkfs.{kind} cannot put a tree into the filesystem it makes"))
                .label("expected a step `copy-in` instead")
                .note(format!("those of {} can", others.join(", "))),
        );
    }
}

/// mkfs gets the device from fstone. A device among its options would be formatted, or written to, all the same; and
/// some options run commands.
fn check_mkfs(words: &At<&Vec<String>>, known: Option<&FilesystemType>, report: &mut Report) {
    let device = words.value.iter().find(|word| word.contains("/dev/"));
    if let Some(word) = device {
        report.push(
            Diagnostic::error(words.span, format!("`{word}` names a device"))
                .label("options of mkfs may not name a device")
                .help("say what filesystems are made on with `device`"),
        );
    }
    if let Some(first) = words.value.first().filter(|first| !first.starts_with('-')) {
        report.push(
            Diagnostic::error(words.span, format!("`{first}` is not an option"))
                .label("expected options, the first of which starts with `-`")
                .note("fstone knows the program by the type, and adds the device itself"),
        );
        return;
    }
    let Some(known) = known.filter(|_| device.is_none()) else { return };
    if let Some(word) = known.mkfs.unsafe_word(words.value) {
        let listed = known.mkfs.flags.split_whitespace().chain(known.mkfs.values.split_whitespace());
        let mut listed: Vec<&str> = listed.chain(known.mkfs.settings.iter().map(|(option, _)| *option)).collect();
        listed.sort_unstable();
        report.push(
            Diagnostic::error(
                words.span,
                format!("`{word}` is not known to be a safe option of {}'s mkfs", known.name),
            )
            .label("options that run programs or name files are refused, and so are unknown ones")
            .note(if listed.is_empty() {
                "it takes no options".to_owned()
            } else {
                format!("there are {}", listed.join(", "))
            }),
        );
    }
}

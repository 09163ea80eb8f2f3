//! What a section takes over from another: 5.x from the one before it, 6.0 from the one it clones.

use super::{Dialect, findings::Findings, keyword::Part, sections::Section};
use crate::diagnostic::Diagnostic;
use std::collections::HashMap;

pub(super) fn expand(profile: &mut Section, dialect: Dialect, findings: &mut Findings) {
    if dialect == Dialect::V5 {
        inherit(&mut profile.children, Part::Filesystem);
        inherit(&mut profile.children, Part::Threadgroup);
    }
    clone(&mut profile.children, findings);
}

/// Each section of a part takes over what it does not say itself from the one before, which has done so already.
fn inherit(sections: &mut [Section], part: Part) {
    let mut before: Option<Section> = None;
    for section in sections.iter_mut().filter(|section| section.part == part) {
        if let Some(before) = &before {
            let missing: Vec<_> = before
                .settings
                .iter()
                .filter(|setting| setting.keyword.inherited && section.get(setting.keyword.canonical).is_none())
                .cloned()
                .collect();
            section.settings.extend(missing);
            // A filesystem's ageing goes with it; a threadgroup's statistics do not.
            if part == Part::Filesystem && section.children.is_empty() {
                section.children.clone_from(&before.children);
            }
        }
        before = Some(section.clone());
    }
}

/// Each filesystem with `clone` becomes the one it names, in its own location.
fn clone(sections: &mut [Section], findings: &mut Findings) {
    let filesystems: Vec<usize> =
        (0..sections.len()).filter(|index| sections[*index].part == Part::Filesystem).collect();
    let originals: Vec<Section> = filesystems.iter().map(|index| sections[*index].clone()).collect();
    // The first of a location counts; a second is an error that is found later.
    let mut by_location = HashMap::new();
    for original in originals.iter().rev() {
        if let Some((location, _)) = original.text("location") {
            by_location.insert(location, original);
        }
    }
    for (original, index) in originals.iter().zip(filesystems) {
        let Some((_, cloned_at)) = original.text("clone") else { continue };
        for setting in &original.settings {
            if !matches!(setting.keyword.canonical, "clone" | "location") {
                findings.push(
                    Diagnostic::warning(setting.span, format!("`{}` is ignored", setting.keyword.name))
                        .context(cloned_at, "everything but the location is cloned"),
                );
            }
        }
        if let Some(base) = follow(original, originals.len(), &by_location, findings) {
            let mut expanded = base.clone();
            expanded.header = original.header;
            expanded.settings.retain(|setting| setting.keyword.canonical != "location");
            expanded.settings.extend(original.get("location").cloned());
            sections[index] = expanded;
        }
    }
}

fn follow<'a>(
    first: &'a Section,
    filesystems: usize,
    by_location: &HashMap<&str, &'a Section>,
    findings: &mut Findings,
) -> Option<&'a Section> {
    let mut base = first;
    // One step more than there are filesystems means going round in a circle.
    for _ in 0..=filesystems {
        let Some((location, span)) = base.text("clone") else { return Some(base) };
        let Some(next) = by_location.get(location) else {
            findings.push(
                Diagnostic::error(span, format!("no filesystem has the location {location}"))
                    .label("expected the location of another [filesystem]")
                    .did_you_mean(location, by_location.keys().copied()),
            );
            return None;
        };
        base = next;
    }
    findings.push(Diagnostic::error(first.span_of("clone"), "these filesystems clone each other in a circle"));
    None
}

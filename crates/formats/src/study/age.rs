//! Aged filesystems of a study, and profiles.

use super::{
    load::{Files, IMAGE_MARK},
    surface::{AgeChoice, AgeSurface, ProfileSurface},
};
use crate::{
    Source,
    decode::{Field, Share, Text, document},
    diagnostic::{Diagnostic, Report, Span},
};
use fstone_model::{
    Cell,
    age::{Age, Class, Depth, OldImage, Past, Profile},
    study::{DeviceSpec, FilesystemSpec},
};
use std::sync::Arc;

macro_rules! built_in {
    ($($name:literal),*) => {
        &[$(($name, include_str!(concat!("../../../../ages/", $name, ".toml")))),*]
    };
}

const PROFILES: &[(&str, &str)] = built_in![
    "agrawal",
    "dabre",
    "database",
    "desktop",
    "douceur",
    "git",
    "grundman",
    "mail",
    "meyer",
    "pramod",
    "wang-lanl",
    "wang-os"
];

/// `None` for a fresh filesystem, and after an error, which is reported.
pub(super) fn age(
    field: &Field<AgeChoice>,
    of: &FilesystemSpec,
    files: &mut Files<'_>,
    report: &mut Report,
) -> Option<Arc<Past>> {
    let aged = match &field.value {
        AgeChoice::Fresh => return None,
        AgeChoice::Aged(aged) => aged,
        AgeChoice::Image(surface) => {
            return image(surface.image.as_ref()?, of, files, report).map(|image| Arc::new(Past::Image(image)));
        }
    };
    let AgeSurface { profile, utilization, overwrites, compressible, seed } = &**aged;
    let profile = named(profile.as_ref()?, files, report)?;
    let (utilization, overwrites) = (utilization.as_ref()?, overwrites.as_ref()?);
    let age = Age {
        profile,
        utilization: utilization.value.0,
        overwrites: overwrites.value.0,
        compressible: compressible.as_ref().map_or(0.0, |field| field.value.0),
        seed: seed.as_ref().map(|field| field.value.0),
    };
    // The profile itself is checked already.
    if let Err(why) = age.check() {
        let span = if why.starts_with("a utilization") { utilization.span } else { overwrites.span };
        report.push(Diagnostic::error(span, why));
        return None;
    }
    Some(Arc::new(age.into()))
}

/// A directory has one filesystem: once it is aged, all rows there are.
pub(super) fn check_cells(cells: &[Cell], place: Span, report: &mut Report) {
    if report.has_errors() {
        return;
    }
    let is_directory = |cell: &&Cell| matches!(cell.device, DeviceSpec::Directory { .. });
    let pasts: Vec<_> = cells.iter().filter(is_directory).map(|cell| (&cell.device, cell.past())).collect();
    if pasts.iter().any(|(directory, past)| pasts.iter().any(|(other, its)| directory == other && past != its)) {
        let error = "rows in one directory cannot be of different ages: they share its filesystem";
        report.push(
            Diagnostic::error(place, error)
                .help("give all of them the same `age`, or a device: device = { loop = { size = \"4 GiB\" } }"),
        );
    }
}

fn image(field: &Field<Text>, of: &FilesystemSpec, files: &mut Files<'_>, report: &mut Report) -> Option<OldImage> {
    let Text(name) = &field.value;
    let source = files.described(field, report)?;
    let described = source.text().strip_prefix(IMAGE_MARK).and_then(|json| serde_json::from_str::<OldImage>(json).ok());
    let error = match described {
        Some(image) if image.holds != of.kind => Diagnostic::error(field.span, format!("`{name}` is no {}", of.kind))
            .label(match image.holds.as_str() {
                "" => "no filesystem was recognised in it".to_owned(),
                holds => format!("it holds {holds}"),
            })
            .note("an image holds one filesystem; of a disk with partitions, copy one of them into a file"),
        Some(_) if of.own.is_some() || of.tree.is_some() || !of.mkfs.is_empty() => {
            Diagnostic::error(field.span, "an image is copied as it is: it takes no `mkfs` options and no `tree`")
        }
        Some(image) => return Some(image),
        None => Diagnostic::error(field.span, format!("`{name}` is no image of a filesystem")).label("it is text"),
    };
    report.push(error);
    None
}

fn named(field: &Field<Text>, files: &mut Files<'_>, report: &mut Report) -> Option<Profile> {
    let Text(name) = &field.value;
    if let Some((_, text)) = PROFILES.iter().find(|(known, _)| known == name) {
        return read(Source::new(name, *text), report);
    }
    if name.ends_with(".toml") {
        return read(files.source(field, report)?, report);
    }
    let names: Vec<&str> = PROFILES.iter().map(|(name, _)| *name).collect();
    report.push(
        Diagnostic::error(field.span, format!("there is no profile `{name}`"))
            .label("expected one of the built-in profiles, or a .toml file beside the study")
            .did_you_mean(name, names.iter().copied())
            .note(format!("there are {}", names.join(", "))),
    );
    None
}

fn read(source: Source, report: &mut Report) -> Option<Profile> {
    let name = source.name().to_owned();
    let mut of_profile = Report::new(source);
    let profile =
        document::<ProfileSurface>(&mut of_profile).and_then(|surface| profile(name, &surface, &mut of_profile));
    match of_profile.finish(profile) {
        Ok((profile, _)) => profile,
        Err(diagnostics) => {
            report.append(diagnostics);
            None
        }
    }
}

fn profile(name: String, surface: &ProfileSurface, report: &mut Report) -> Option<Profile> {
    let (sizes, ages, directories) = (surface.sizes.as_ref()?, surface.ages.as_ref()?, surface.directories.as_ref()?);
    let class = |[up_to, weight]: &[f64; 2]| Class { up_to: *up_to, weight: *weight };
    let depth = |[depth, weight, directories]: &[f64; 3]| Depth {
        depth: *depth as u32,
        weight: *weight,
        directories: *directories as u32,
    };
    let share = |field: &Option<Field<Share>>| field.as_ref().map(|field| field.value.0);
    if directories.value.0.iter().any(|[depth, _, count]| depth.fract() != 0.0 || count.fract() != 0.0) {
        report.push(Diagnostic::error(directories.span, "depths and numbers of directories are whole"));
        return None;
    }
    let profile = Profile {
        name,
        sizes: sizes.value.0.iter().map(class).collect(),
        ages: ages.value.0.iter().map(class).collect(),
        depths: directories.value.0.iter().map(depth).collect(),
        overwritten: share(&surface.overwritten),
        appended: share(&surface.appended),
    };
    if let Err(why) = profile.check() {
        let span = match why.split(':').next() {
            Some("ages") => ages.span,
            Some("overwritten") => surface.overwritten.as_ref().map_or(sizes.span, |field| field.span),
            Some("appended") => surface.appended.as_ref().map_or(sizes.span, |field| field.span),
            Some("directories") => directories.span,
            _ => sizes.span,
        };
        report.push(Diagnostic::error(span, why));
        return None;
    }
    Some(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_is_sound() {
        for (name, text) in PROFILES {
            let mut report = Report::new(Source::new("study", ""));
            let profile = read(Source::new(*name, *text), &mut report);
            assert!(profile.is_some_and(|profile| profile.name == *name), "{name}");
        }
    }
}

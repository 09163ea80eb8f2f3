//! Devices as a study and the command line name them.

use super::{
    overrides::{DeviceChoice, Overrides},
    surface::DeviceSurface,
};
use crate::{
    decode::{Field, Size, Text},
    diagnostic::{Diagnostic, Report},
};
use fstone_model::study::DeviceSpec;

/// The smallest device: only the simplest filesystems fit on less.
const MINIMUM_BYTES: u64 = 1 << 20;
/// The largest device: 1 EiB. Sparse images beyond are refused by every filesystem that could hold them.
const MAXIMUM_BYTES: u64 = 1 << 60;
const SECTOR_SIZES: [u64; 4] = [512, 1024, 2048, 4096];

/// The work directory, as a study writes it.
const WORK_DIRECTORY: &str = ".";

/// What filesystems are made on; reports what is wrong with it. `None` when nothing usable was given.
pub(super) fn device(surface: &DeviceSurface, report: &mut Report) -> Option<DeviceSpec> {
    if let Some(Field { value, .. }) = &surface.r#loop {
        let sector_bytes = match &value.sector_size {
            Some(field) if !SECTOR_SIZES.contains(&field.value.0) => {
                report.push(
                    Diagnostic::error(field.span, "loop devices have no sectors of this size")
                        .label("expected 512, 1024, 2048 or 4096"),
                );
                512
            }
            Some(field) => u32::try_from(field.value.0).expect("at most 4096"),
            None => 512,
        };
        return Some(DeviceSpec::Loop {
            size_bytes: size(value.size.as_ref()?, report),
            direct_io: value.direct_io.as_ref().is_some_and(|field| field.value.0),
            sector_bytes,
            directory: value.directory.as_ref().map(|field| absolute(field, report)),
            in_memory: value.memory.as_ref().is_some_and(|field| field.value.0),
            model: None,
        });
    }
    if let Some(field) = &surface.model {
        let Some(wanted) = &surface.size else {
            report.push(Diagnostic::error(field.key, "the drive has no size").help("add it: size = \"500 GB\""));
            return None;
        };
        return Some(DeviceSpec::Loop {
            size_bytes: size(wanted, report),
            direct_io: false,
            sector_bytes: 512,
            directory: None,
            in_memory: false,
            model: Some(field.value.0.clone()),
        });
    }
    if let Some(field) = &surface.size {
        report
            .push(Diagnostic::error(field.key, "this is the size of a modelled drive, and there is no `model`").help(
            "for example: device = { loop = { size = \"32 GiB\" } }, or { model = \"nvme-ssd\", size = \"32 GiB\" }",
        ));
        return None;
    }
    if let Some(Field { value, .. }) = &surface.zram {
        return Some(DeviceSpec::Zram { size_bytes: size(value.size.as_ref()?, report) });
    }
    if let Some(field) = &surface.block {
        let path = absolute(field, report);
        if !path.starts_with("/dev/") {
            report
                .push(Diagnostic::error(field.span, "this is not a block device").label("expected a path below /dev"));
        }
        return Some(DeviceSpec::Block { path });
    }
    let field = surface.directory.as_ref()?;
    let path = if field.value.0 == WORK_DIRECTORY { None } else { Some(absolute(field, report)) };
    Some(DeviceSpec::Directory { path })
}

fn size(field: &Field<Size>, report: &mut Report) -> u64 {
    let Size(bytes) = field.value;
    if !(MINIMUM_BYTES..=MAXIMUM_BYTES).contains(&bytes) {
        report.push(
            Diagnostic::error(field.span, "no filesystem fits on a device of this size")
                .label("expected 1 MiB to 1 EiB (1048576 TiB)"),
        );
    } else if !bytes.is_multiple_of(4096) {
        report.push(Diagnostic::error(field.span, "a device has whole blocks").label("expected a multiple of 4 KiB"));
    }
    bytes
}

fn absolute(field: &Field<Text>, report: &mut Report) -> String {
    let Text(path) = &field.value;
    if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
        report.push(
            Diagnostic::error(field.span, format!("`{path}` depends on where fstone is started"))
                .label("expected an absolute path without `..`"),
        );
    }
    path.clone()
}

pub(super) fn overridden(device: DeviceSpec, overrides: &Overrides, report: &mut Report) -> DeviceSpec {
    let size = overrides.device_size.or(device.size_bytes());
    let mut sized = || {
        size.unwrap_or_else(|| {
            report.push(
                Diagnostic::whole("the study does not say how large the device is to be")
                    .help("add --device-size SIZE"),
            );
            MINIMUM_BYTES
        })
    };
    let device = match (&overrides.device, device) {
        (None, device) => device,
        (Some(DeviceChoice::Loop), device) => image(device, sized(), false),
        (Some(DeviceChoice::Memory), device) => image(device, sized(), true),
        (Some(DeviceChoice::Zram), _) => DeviceSpec::Zram { size_bytes: sized() },
        (Some(DeviceChoice::Block(path)), _) => DeviceSpec::Block { path: path.clone() },
        (Some(DeviceChoice::Directory(path)), _) => DeviceSpec::Directory { path: path.clone() },
    };
    match (overrides.device_size, device) {
        (Some(bytes), _) if !(MINIMUM_BYTES..=MAXIMUM_BYTES).contains(&bytes) || !bytes.is_multiple_of(4096) => {
            report.push(Diagnostic::whole("--device-size must be a multiple of 4 KiB, from 1 MiB to 1 EiB"));
            DeviceSpec::Zram { size_bytes: MINIMUM_BYTES }
        }
        (Some(size_bytes), device @ DeviceSpec::Loop { in_memory, .. }) => image(device, size_bytes, in_memory),
        (Some(size_bytes), DeviceSpec::Zram { .. }) => DeviceSpec::Zram { size_bytes },
        (Some(_), device) => {
            report.push(Diagnostic::whole(format!("--device-size cannot change the size of {}", device.describe())));
            device
        }
        (None, device) => device,
    }
}

/// An image of this size; whatever else the study says of its image stays.
fn image(device: DeviceSpec, size_bytes: u64, in_memory: bool) -> DeviceSpec {
    match device {
        DeviceSpec::Loop { direct_io, sector_bytes, directory, model, .. } => {
            DeviceSpec::Loop { size_bytes, direct_io, sector_bytes, directory, in_memory, model }
        }
        _ => DeviceSpec::Loop {
            size_bytes,
            direct_io: false,
            sector_bytes: 512,
            directory: None,
            in_memory,
            model: None,
        },
    }
}

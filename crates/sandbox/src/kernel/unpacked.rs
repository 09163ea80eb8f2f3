//! What kernel a file or an unpacked package holds. None is started for that: it could be anybody's.

use super::elf::{self, LOADER, LOADER_LINK};
use super::error::{StoreError, file_error};
use super::fetch::Archive;
use super::identity::{COUNTING, COUNTS, Flavour, Kernel, TIME_TRAVEL, knows};
use std::fs;
use std::path::{Path, PathBuf};

pub(super) fn installed() -> Option<Kernel> {
    let kernel = crate::uml::installed_kernel()?;
    let release = elf::release(&fs::read(&kernel.binary).ok()?)?;
    Some(Kernel {
        flavour: Flavour::Uml,
        release,
        source: "installed".to_owned(),
        binary: kernel.binary,
        modules: kernel.modules,
        libraries: None,
        counts: false,
    })
}

/// The kernel at this path: a program, an image, or a directory like the root of an unpacked package. `archive` is
/// where a C library comes from if one is needed.
pub(super) fn kernel_in(path: &Path, source: &str, archive: Option<&Archive>) -> Result<Kernel, StoreError> {
    let (binary, root) = if path.is_dir() {
        let uml = path.join("usr/bin/linux.uml");
        let binary = if uml.is_file() { Some(uml) } else { image_in(&path.join("boot")) };
        (binary.ok_or_else(|| StoreError::NoKernel(path.to_owned()))?, Some(path))
    } else {
        (path.to_owned(), None)
    };
    let name = binary.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if name.starts_with("vmlinu") {
        return qemu_kernel(binary, &name, root, source);
    }
    uml_kernel(binary, root, source, archive)
}

/// More than a kernel with the symbols of all its parts has.
const KERNEL_BYTES: u64 = 2 << 30;

fn uml_kernel(
    binary: PathBuf,
    root: Option<&Path>,
    source: &str,
    archive: Option<&Archive>,
) -> Result<Kernel, StoreError> {
    let facts = fs::metadata(&binary).map_err(file_error(&binary))?;
    if !facts.is_file() || facts.len() > KERNEL_BYTES {
        return Err(StoreError::NoKernel(binary));
    }
    let image = fs::read(&binary).map_err(file_error(&binary))?;
    let Some(release) = elf::release(&image) else { return Err(StoreError::NoKernel(binary)) };
    let flavour = if knows(&image, TIME_TRAVEL) { Flavour::Exact } else { Flavour::Uml };
    let counts = flavour == Flavour::Exact && knows(&image, COUNTS);
    let source = source.to_owned();
    let mut kernel = Kernel { flavour, release, source, binary, modules: None, libraries: None, counts };
    if let Some(problem) = lacks(&image) {
        match (root, archive) {
            (Some(root), Some(archive)) => with_libraries(&mut kernel, root, archive, image)?,
            _ => return Err(StoreError::DoesNotRun { path: kernel.binary, problem }),
        }
    }
    let beside = root.map(|root| root.join("usr/lib/uml/modules").join(&kernel.release));
    let candidates = [beside, Some(Path::new("/usr/lib/uml/modules").join(&kernel.release))];
    kernel.modules = candidates.into_iter().flatten().find(|path| path.join("modules.dep").is_file());
    // As one that is built: it has other figures than a kernel of this release that does not count.
    kernel.release += if counts { COUNTING } else { "" };
    Ok(kernel)
}

/// Brings the C library of the kernel's own suite along. Starting the kernel through the loader by hand does not do:
/// user-mode Linux computes its memory's place from its break, which would be the loader's. So a copy of the program
/// gets another interpreter.
fn with_libraries(kernel: &mut Kernel, root: &Path, archive: &Archive, mut image: Vec<u8>) -> Result<(), StoreError> {
    let package = archive.download("libc6")?;
    let library_root = root.join("libc6");
    archive.unpack(&package, &library_root)?;
    let libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"]
        .map(|place| library_root.join(place))
        .into_iter()
        .find(|place| place.join(LOADER).is_file() && place.join("libc.so.6").is_file());
    let missing = || StoreError::DoesNotRun {
        path: kernel.binary.clone(),
        problem: format!("{} holds no C library for it", package.stem()),
    };
    let libraries = libraries.ok_or_else(missing)?;
    if !elf::set_interpreter(&mut image, LOADER_LINK) {
        let problem = "it has no interpreter that could be replaced".to_owned();
        return Err(StoreError::DoesNotRun { path: kernel.binary.clone(), problem });
    }
    let copy = kernel.binary.with_file_name("linux.uml.own-libc");
    let permissions = fs::metadata(&kernel.binary).map_err(file_error(&kernel.binary))?.permissions();
    fs::write(&copy, image).and_then(|()| fs::set_permissions(&copy, permissions)).map_err(file_error(&copy))?;
    kernel.binary = copy;
    kernel.libraries = Some(libraries);
    Ok(())
}

/// What a program needs of the C library that this host's has not, in words.
fn lacks(image: &[u8]) -> Option<String> {
    let (loader, needed) = (elf::interpreter_of(image)?, elf::c_library(image)?);
    let Ok(loader) = fs::canonicalize(&loader) else {
        return Some(format!("there is no {} on this host", loader.display()));
    };
    // Where it is not beside its loader, starting the kernel tells.
    let here = elf::c_library(&fs::read(loader.with_file_name("libc.so.6")).ok()?)?;
    let text = |(major, minor): (u32, u32)| format!("GLIBC_{major}.{minor}");
    (needed > here).then(|| format!("it needs {}, and this host has {}", text(needed), text(here)))
}

fn image_in(boot: &Path) -> Option<PathBuf> {
    let mut images: Vec<PathBuf> = fs::read_dir(boot).ok()?.flatten().map(|entry| entry.path()).collect();
    images.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinu")));
    images.sort();
    images.pop()
}

fn qemu_kernel(binary: PathBuf, name: &str, root: Option<&Path>, source: &str) -> Result<Kernel, StoreError> {
    let release = name.split_once('-').map_or_else(|| "unknown".to_owned(), |(_, release)| release.to_owned());
    let root = root.or_else(|| binary.parent().and_then(Path::parent)).unwrap_or_else(|| Path::new("/"));
    let modules = ["usr/lib/modules", "lib/modules"]
        .map(|place| root.join(place).join(&release))
        .into_iter()
        .find(|path| path.is_dir());
    let source = source.to_owned();
    Ok(Kernel { flavour: Flavour::Qemu, release, source, binary, modules, libraries: None, counts: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_kernel_that_is_looked_at_is_not_started() {
        let place = tempfile::tempdir().unwrap();
        let (kernel, trace) = (place.path().join("linux.uml"), place.path().join("started"));
        // It starts as a program, and has all that a kernel has.
        let mut image = format!("#!/bin/sh\ntouch {}\necho 6.1.176\nexit\n", trace.display()).into_bytes();
        image.extend(b"Linux version 6.1.176 (x)\0");
        fs::write(&kernel, &image).unwrap();
        fs::set_permissions(&kernel, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(kernel_in(&kernel, "", None), Err(StoreError::NoKernel(_))));
        assert!(!trace.exists());
        // Nor is it read if it has no end.
        assert!(matches!(kernel_in(Path::new("/dev/zero"), "", None), Err(StoreError::NoKernel(_))));
        let Some(installed) = installed() else { return eprintln!("skipped: there is no user-mode Linux here") };
        assert_eq!(kernel_in(&installed.binary, "", None).unwrap().release, installed.release);
    }

    #[test]
    fn a_kernel_that_counts_has_another_name() {
        let place = tempfile::tempdir().unwrap();
        let kernel = place.path().join("linux");
        for (text, name) in [("", "exact:6.1.176"), ("work_price=\0", "exact:6.1.176-counting")] {
            fs::write(&kernel, format!("\x7fELFLinux version 6.1.176 (x)\0time-travel=ext:\0{text}")).unwrap();
            assert_eq!(kernel_in(&kernel, "", None).unwrap().name(), name);
        }
    }

    #[test]
    fn a_newer_c_library_is_missed() {
        let Ok(mut shell) = fs::read("/bin/sh") else { return eprintln!("skipped: there is no /bin/sh") };
        if elf::interpreter_of(&shell).is_none() {
            return eprintln!("skipped: /bin/sh is static here");
        }
        assert_eq!(lacks(&shell), None);
        shell.extend(b"GLIBC_2.999\0");
        assert!(lacks(&shell).is_some_and(|problem| problem.starts_with("it needs GLIBC_2.999, and this host has")));
    }
}

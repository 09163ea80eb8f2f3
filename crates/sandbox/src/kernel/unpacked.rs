//! What kernel a file or an unpacked package holds.

use super::build::has_time_travel;
use super::elf::{self, LOADER, LOADER_LINK};
use super::error::{StoreError, file_error};
use super::fetch::Archive;
use super::identity::{Flavour, Kernel};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) fn installed() -> Option<Kernel> {
    let kernel = crate::uml::installed_kernel()?;
    let release = version(&kernel.binary).ok()?;
    Some(Kernel {
        flavour: Flavour::Uml,
        release,
        source: "installed".to_owned(),
        binary: kernel.binary,
        modules: kernel.modules,
        libraries: None,
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

fn uml_kernel(
    binary: PathBuf,
    root: Option<&Path>,
    source: &str,
    archive: Option<&Archive>,
) -> Result<Kernel, StoreError> {
    let flavour = if has_time_travel(&binary) { Flavour::Exact } else { Flavour::Uml };
    let mut kernel =
        Kernel { flavour, release: String::new(), source: source.to_owned(), binary, modules: None, libraries: None };
    match (version(&kernel.binary), root, archive) {
        (Ok(release), _, _) => kernel.release = release,
        (Err(problem), Some(root), Some(archive)) if problem.contains("GLIBC_") => {
            with_libraries(&mut kernel, root, archive)?;
        }
        (Err(problem), _, _) => return Err(StoreError::DoesNotRun { path: kernel.binary, problem }),
    }
    let beside = root.map(|root| root.join("usr/lib/uml/modules").join(&kernel.release));
    let candidates = [beside, Some(Path::new("/usr/lib/uml/modules").join(&kernel.release))];
    kernel.modules = candidates.into_iter().flatten().find(|path| path.join("modules.dep").is_file());
    Ok(kernel)
}

/// Brings the C library of the kernel's own suite along. Starting the kernel through the loader by hand does not do:
/// user-mode Linux computes its memory's place from its break, which would be the loader's. So a copy of the program
/// gets another interpreter.
fn with_libraries(kernel: &mut Kernel, root: &Path, archive: &Archive) -> Result<(), StoreError> {
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
    let output = Command::new(libraries.join(LOADER))
        .arg("--library-path")
        .arg(&libraries)
        .arg(&kernel.binary)
        .arg("--version")
        .output()
        .map_err(file_error(&libraries))?;
    let release = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() || release.is_empty() {
        let problem = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(StoreError::DoesNotRun { path: kernel.binary.clone(), problem });
    }
    let mut image = fs::read(&kernel.binary).map_err(file_error(&kernel.binary))?;
    if !elf::set_interpreter(&mut image, LOADER_LINK) {
        let problem = "it has no interpreter that could be replaced".to_owned();
        return Err(StoreError::DoesNotRun { path: kernel.binary.clone(), problem });
    }
    let copy = kernel.binary.with_file_name("linux.uml.own-libc");
    let permissions = fs::metadata(&kernel.binary).map_err(file_error(&kernel.binary))?.permissions();
    fs::write(&copy, image).and_then(|()| fs::set_permissions(&copy, permissions)).map_err(file_error(&copy))?;
    kernel.binary = copy;
    kernel.release = release;
    kernel.libraries = Some(libraries);
    Ok(())
}

/// What `linux.uml --version` prints, or why it does not.
fn version(binary: &Path) -> Result<String, String> {
    let output = Command::new(binary).arg("--version").output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && text.starts_with(|c: char| c.is_ascii_digit()) {
        Ok(text)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
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
    Ok(Kernel { flavour: Flavour::Qemu, release, source: source.to_owned(), binary, modules, libraries: None })
}

//! What a QEMU guest starts from: the agent, the libraries it and other programs need, and the kernel's modules.

use super::cpio::Archive;
use super::error::QemuError;
use super::modules::Set;
use crate::kernel::interpreter_of;
use fstone_files::Temporary;
use std::collections::BTreeSet;
use std::fs;
use std::io::BufWriter;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) const MODULES: &str = "/lib/modules/fstone";

const DIRECTORIES: [&str; 9] = ["/dev", "/proc", "/sys", "/run", "/tmp", "/root", "/etc", "/mnt", "/var/tmp"];

/// Where loaders of the system are.
const LOADERS: [&str; 7] = ["/gnu", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/usr"];

pub(super) fn write(path: &Path, agent: &Path, programs: &[PathBuf], modules: &Set) -> Result<(), QemuError> {
    let error = |cause| QemuError::File { path: path.to_owned(), cause };
    let temporary = Temporary::owned(path, None).map_err(error)?;
    let mut archive = Archive::new(BufWriter::new(temporary.file()));
    for directory in DIRECTORIES {
        archive.directory(Path::new(directory)).map_err(error)?;
    }
    let read = |path: &Path| fs::read(path).map_err(|cause| QemuError::File { path: path.to_owned(), cause });
    archive.file(Path::new("/init"), true, &read(agent)?).map_err(error)?;
    let mut files: BTreeSet<PathBuf> = programs.iter().cloned().collect();
    for program in std::iter::once(agent).chain(programs.iter().map(PathBuf::as_path)) {
        files.extend(libraries(program)?);
    }
    for file in files {
        let executable = fs::metadata(&file).is_ok_and(|data| data.permissions().mode() & 0o111 != 0);
        archive.file(&file, executable, &read(&file)?).map_err(error)?;
    }
    let place = Path::new(MODULES);
    for (name, _, content) in &modules.modules {
        archive.file(&place.join(format!("{name}.ko")), false, content).map_err(error)?;
    }
    archive.file(&place.join("modules.dep"), false, modules.dependencies().as_bytes()).map_err(error)?;
    let builtin: String = modules.builtin.iter().map(|name| format!("{name}.ko\n")).collect();
    archive.file(&place.join("modules.builtin"), false, builtin.as_bytes()).map_err(error)?;
    drop(archive.finish().map_err(error)?);
    temporary.replace(path).map_err(error)
}

/// The shared libraries of a program, its loader among them, at the paths it will look for them; none of a static
/// program or a script.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, QemuError> {
    let image = fs::read(program).map_err(|cause| QemuError::File { path: program.to_owned(), cause })?;
    let Some(loader) = interpreter_of(&image) else { return Ok(Vec::new()) };
    let failed = |problem: String| QemuError::Libraries { program: program.to_owned(), problem };
    // It is started here, and the program, which may be anybody's, says which it is.
    if !fs::canonicalize(&loader).is_ok_and(|loader| LOADERS.iter().any(|system| loader.starts_with(system))) {
        return Err(failed(format!("its loader {} is not the system's", loader.display())));
    }
    let output = Command::new(&loader)
        .arg("--list")
        .arg(program)
        .output()
        .map_err(|error| failed(format!("{}: {error}", loader.display())))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let mut libraries = parse_list(&String::from_utf8_lossy(&output.stdout)).map_err(failed)?;
    libraries.push(loader);
    Ok(libraries)
}

/// "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)", "/lib64/ld-linux-x86-64.so.2 (0x…)", "linux-vdso.so.1 (0x…)".
fn parse_list(list: &str) -> Result<Vec<PathBuf>, String> {
    let mut libraries = Vec::new();
    for line in list.lines() {
        if line.contains("=> not found") {
            return Err(line.trim().to_owned());
        }
        let found = line.split_once("=> ").map_or(line, |(_, path)| path);
        let path = found.trim().split(" (").next().unwrap_or_default();
        if path.starts_with('/') {
            libraries.push(PathBuf::from(path));
        }
    }
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loader_that_only_the_program_names_is_not_started() {
        let place = tempfile::tempdir().unwrap();
        let (loader, trace, program) =
            (place.path().join("loader"), place.path().join("started"), place.path().join("x"));
        fs::write(&loader, format!("#!/bin/sh\ntouch {}\n", trace.display())).unwrap();
        fs::set_permissions(&loader, fs::Permissions::from_mode(0o755)).unwrap();
        // elf(5): a header, and one entry of the table behind it, for the interpreter.
        let path = format!("{}\0", loader.display());
        let mut image = [b"\x7fELF\x02\x01", &[0; 114][..]].concat();
        for (at, value) in [(32, 64), (54, 56), (56, 1), (64, 3), (72, 120), (96, path.len())] {
            image[at] = u8::try_from(value).unwrap();
        }
        fs::write(&program, [&image, path.as_bytes()].concat()).unwrap();
        let error = libraries(&program).unwrap_err().to_string();
        assert!(error.contains("is not the system's") && !trace.exists(), "{error}");
    }

    #[test]
    fn what_the_loader_lists() {
        let list =
            "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x2)\n\t/lib64/ld-linux-x86-64.so.2 (0x3)\n";
        let expected = ["/lib/x/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(parse_list(list).unwrap(), expected);
        assert!(parse_list("\tlibfoo.so.1 => not found\n").is_err());
        let of_this_test = libraries(&std::env::current_exe().unwrap()).unwrap();
        assert!(of_this_test.iter().all(|library| library.is_file()), "{of_this_test:?}");
    }
}

//! Kernels whose time is simulated, built from source: user-mode Linux with time travel, which no distribution ships.
//!
//! ```text
//! kernels/builds/NAME/source/        the sources: unpacked, or links into the user's own tree, which is left untouched
//! kernels/builds/NAME/source/built/  what make makes of them; kept for trees, so that the next build is short
//! kernels/builds/NAME/build.log
//! kernels/exact-KEY/linux            the kernel; KEY is a hash of sources, configuration, patch and compiler
//! ```
//!
//! Make is run in a directory below the sources, so that no path of this machine gets into the kernel: the same sources
//! and the same compiler make the same kernel everywhere, and the same kernel makes the same figures.

mod make;
mod report;
mod source;

pub use report::{BuildError, BuildProgress};

use super::error::file_error;
use super::identity::{Flavour, Kernel};
use make::{missing_tools, run_make};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What is built in, on top of the kernel's own tinyconfig.
const CONFIGURATION: &str = include_str!("../../../kernel/exact.config");

/// Lets system calls take virtual time. Under the kernel's licence, GPL-2.0; a source it does not fit goes without.
const CHARGE: &str = include_str!("../../../kernel/charge.patch");

/// The words by which a kernel with time travel is known.
const TIME_TRAVEL: &[u8] = b"time-travel=ext:";

/// Whether a kernel's time can be simulated.
pub(super) fn has_time_travel(binary: &Path) -> bool {
    fs::read(binary).is_ok_and(|image| image.windows(TIME_TRAVEL.len()).any(|window| window == TIME_TRAVEL))
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Builds what `source` names, unless that was built before. The kernel is not registered yet.
pub(super) fn build(
    store: &Path,
    source: &str,
    name: Option<&str>,
    tell: &mut dyn FnMut(BuildProgress),
) -> Result<Kernel, BuildError> {
    let missing = missing_tools();
    if !missing.is_empty() {
        let tools = missing.iter().map(|(tool, _)| *tool).collect();
        let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
        packages.dedup();
        return Err(BuildError::Tools { tools, packages: packages.join(" ") });
    }
    let source = source::find(store, source, tell)?;
    let compiler = Command::new("gcc").arg("--version").output().map_err(file_error(Path::new("gcc")))?.stdout;
    tell(BuildProgress::Preparing("reading the sources"));
    let mut key = Sha256::new();
    for part in [&source.digest()?, CONFIGURATION.as_bytes(), CHARGE.as_bytes(), &compiler] {
        key.update((part.len() as u64).to_le_bytes());
        key.update(part);
    }
    let key = &hex(&key.finalize())[..12];
    let home = store.join(format!("exact-{key}"));
    let binary = home.join("linux");
    let noted = home.join("release");
    if !binary.is_file() {
        let place = store.join("builds").join(source.name());
        fs::create_dir_all(&place).map_err(file_error(&place))?;
        let release = make_in(&place, &source, tell)?;
        let built = place.join("source/built/linux");
        let log = place.join("build.log");
        if !has_time_travel(&built) {
            return Err(BuildError::NoTimeTravel { log });
        }
        fs::create_dir_all(&home).map_err(file_error(&home))?;
        fs::write(&noted, &release).map_err(file_error(&noted))?;
        // Whole or not at all.
        let new = home.join("linux.new");
        fs::copy(&built, &new).and_then(|_| fs::rename(&new, &binary)).map_err(file_error(&binary))?;
        if !source.is_tree() {
            fs::remove_dir_all(&place).map_err(file_error(&place))?;
        }
    }
    let release = fs::read_to_string(&noted).map_err(file_error(&noted))?;
    let named = name.map(str::to_owned).or_else(|| source.is_tree().then(|| source.name().to_owned()));
    Ok(Kernel {
        flavour: Flavour::Exact,
        release: named.unwrap_or_else(|| release.clone()),
        source: format!("Linux {release}, built from {} ({key})", source.told()),
        binary,
        modules: None,
        libraries: None,
    })
}

/// Lays the sources out, configures and compiles them. Gives the kernel's release.
fn make_in(
    place: &Path,
    source: &source::KernelSource,
    tell: &mut dyn FnMut(BuildProgress),
) -> Result<String, BuildError> {
    let tree = place.join("source");
    source.lay_out(&tree, tell)?;
    let log = place.join("build.log");
    fs::write(&log, "").map_err(file_error(&log))?;
    if !source::patch(&tree, CHARGE, &log)? {
        tell(BuildProgress::Uncharged);
    }
    tell(BuildProgress::Preparing("configuring"));
    let out = tree.join("built");
    fs::create_dir_all(&out).map_err(file_error(&out))?;
    let wanted = out.join("exact.config");
    fs::write(&wanted, CONFIGURATION).map_err(file_error(&wanted))?;
    run_make(&tree, &["tinyconfig"], &log, tell)?;
    let configuration = out.join(".config");
    let tiny = fs::read_to_string(&configuration).map_err(file_error(&configuration))?;
    fs::write(&configuration, merged(&tiny, CONFIGURATION)).map_err(file_error(&configuration))?;
    run_make(&tree, &["olddefconfig"], &log, tell)?;
    run_make(&tree, &["linux"], &log, tell)?;
    let release = out.join("include/config/kernel.release");
    Ok(fs::read_to_string(&release).map_err(file_error(&release))?.trim().to_owned())
}

/// A configuration with some of its options set anew.
fn merged(base: &str, wanted: &str) -> String {
    let option = |line: &str| line.trim_start_matches("# ").split(['=', ' ']).next().map(str::to_owned);
    let is_set = |line: &&str| line.starts_with("CONFIG_");
    let replaced: Vec<String> = wanted.lines().filter(is_set).filter_map(option).collect();
    let kept = base.lines().filter(|line| option(line).is_none_or(|name| !replaced.contains(&name)));
    let mut text = kept.collect::<Vec<_>>().join("\n");
    for line in wanted.lines().filter(is_set) {
        text.push('\n');
        text.push_str(line);
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_replaced_whether_they_were_set_or_not() {
        let base = "# head\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_AB=m\n";
        let text = merged(base, "# why\nCONFIG_A=n\nCONFIG_B=y\n");
        assert_eq!(text, "# head\nCONFIG_AB=m\nCONFIG_A=n\nCONFIG_B=y\n");
    }

    #[test]
    fn what_is_no_source_is_named() {
        let store = tempfile::tempdir().unwrap();
        let empty = tempfile::tempdir().unwrap();
        if !missing_tools().is_empty() {
            return eprintln!("skipped: the tools to build a kernel are not here");
        }
        for path in [empty.path(), Path::new("/nowhere/linux.tar.xz")] {
            let error = build(store.path(), &path.display().to_string(), None, &mut |_| ()).unwrap_err().to_string();
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
    }

    #[test]
    fn a_tree_that_does_not_build_says_why_and_stays_as_it_was() {
        if !missing_tools().is_empty() {
            return eprintln!("skipped: the tools to build a kernel are not here");
        }
        let store = tempfile::tempdir().unwrap();
        let tree = tempfile::tempdir().unwrap();
        fs::write(tree.path().join("Kbuild"), "").unwrap();
        fs::create_dir_all(tree.path().join("arch/um")).unwrap();
        fs::write(tree.path().join("Makefile"), "tinyconfig:\n\t@echo half.c:1: error: no such thing; false\n")
            .unwrap();
        let path = tree.path().display().to_string();
        let error = build(store.path(), &path, Some("mine"), &mut |_| ()).unwrap_err();
        let BuildError::Failed { lines, log, .. } = error else { panic!("{error}") };
        assert!(lines.contains("half.c:1: error: no such thing"), "{lines}");
        assert!(fs::read_to_string(log).unwrap().contains("half.c"));
        let mut left: Vec<_> = fs::read_dir(tree.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["Kbuild", "Makefile", "arch"]);
    }
}

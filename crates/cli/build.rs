//! Bakes in the commit, the target and the built-in studies: every file in `studies/` at the top of the repository.

use std::{env, fmt::Write as _, fs, path::Path, process::Command};

fn main() {
    // Asked for when it runs: a target directory may serve checkouts in several places.
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    println!("cargo::rustc-env=FSTONE_COMMIT={}", commit(&root).unwrap_or_else(|| "unknown".into()));
    println!("cargo::rustc-env=FSTONE_TARGET={}", env::var("TARGET").expect("cargo sets it"));

    // A guest reads its agent, which is this program, page by page, and all relocations at its start.
    if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|libc| libc == "gnu") {
        println!("cargo::rustc-link-arg-bin=fstone=-Wl,-z,pack-relative-relocs");
    }

    let studies = root.join("studies");
    println!("cargo::rerun-if-changed={}", studies.display());
    let mut names: Vec<String> = fs::read_dir(&studies)
        .expect("studies/ is part of the source")
        .map(|entry| entry.expect("studies/ is readable").file_name().into_string().expect("study names are UTF-8"))
        .filter(|name| !name.starts_with('.') && studies.join(name).is_file())
        .collect();
    names.sort();
    let mut table =
        String::from("/// Every file of studies/, as (name, content).\npub(crate) const FILES: &[(&str, &str)] = &[\n");
    for name in names {
        let path = studies.join(&name).canonicalize().expect("it was listed");
        println!("cargo::rerun-if-changed={}", path.display());
        writeln!(table, "    ({name:?}, include_str!({path:?})),").expect("writing to a string");
    }
    table.push_str("];\n");
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("studies.rs");
    fs::write(out, table).expect("OUT_DIR is writable");
}

/// The commit the source is at; none outside a git checkout.
fn commit(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let head = git(&["rev-parse", "--git-path", "HEAD"])?;
    println!("cargo::rerun-if-changed={}", root.join(head).display());
    let reference = git(&["rev-parse", "--symbolic-full-name", "HEAD"])?;
    if let Some(path) = git(&["rev-parse", "--git-path", &reference]) {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

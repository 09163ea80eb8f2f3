// What the build scripts of all packages with libraries to be preloaded have in common.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn build(name: &str, more: &[&str]) -> Result<(), Box<dyn Error>> {
    let source = format!("shim/{name}.rs");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=shim");
    let library = PathBuf::from(env::var("OUT_DIR")?).join(format!("{name}.so"));
    // It is loaded into programs of glibc: built for this host, even when fstone is for musl.
    if env::var("HOST")? != "x86_64-unknown-linux-gnu" || env::var("CARGO_CFG_TARGET_ARCH")? != "x86_64" {
        fs::write(&library, [])?;
        return Ok(());
    }
    let options = ["panic=abort", "opt-level=2", "debuginfo=0", "strip=symbols"];
    let status = Command::new(env::var("RUSTC")?)
        .args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", name])
        .args(options.iter().flat_map(|option| ["-C", option]))
        .args(more)
        .args(["-C", "link-arg=-nostartfiles", "-C", "link-arg=-nostdlib"])
        .args([&source, "-o"])
        .arg(&library)
        .status()?;
    if !status.success() {
        return Err(format!("rustc cannot build {source}: {status}").into());
    }
    Ok(())
}

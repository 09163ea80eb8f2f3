//! Lists the models in `models/`: a file there is built in by being there.

use std::{
    env,
    error::Error,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    let models = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../models").canonicalize()?;
    list(&models, "models.rs")?;
    list(&models.join("processors"), "processors.rs")
}

fn list(models: &Path, name: &str) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", models.display());
    let mut files: Vec<PathBuf> =
        fs::read_dir(models)?.map(|entry| Ok(entry?.path())).collect::<Result<_, Box<dyn Error>>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut code = String::from("&[");
    for file in files {
        let name = file.file_stem().and_then(|name| name.to_str()).ok_or("a model's name is plain text")?;
        write!(code, "({name:?}, include_str!({:?})),", file.display().to_string())?;
    }
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join(name), code + "]")?;
    Ok(())
}

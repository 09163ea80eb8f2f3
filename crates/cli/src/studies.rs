//! The built-in studies, and study files of the user's.

use fstone_files::{read_text, regular_below};
use fstone_formats::{
    diagnostic::{Diagnostics, Source, closest},
    study::{self, Overrides},
};
use fstone_lab::trial::old_image;
use fstone_model::{
    Plan,
    workload::{Replay, ReplayPace},
};
use fstone_record::{EMPTY, ReadError, Reader, is_recording};
use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

mod built_in {
    include!(concat!(env!("OUT_DIR"), "/studies.rs"));
}

pub(crate) struct Study {
    source: Source,
    files: Files,
}

enum Files {
    BuiltIn,
    Directory(PathBuf),
    /// Recorded with it, as (name, content).
    Recorded(Vec<(String, String)>),
}

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    built_in::FILES.iter().filter_map(|(name, _)| name.strip_suffix(".toml"))
}

/// Whether a plan's study and all files it names came with fstone.
pub(crate) fn is_ours(plan: &Plan) -> bool {
    let is_file = |name: &str, text: &str| built_in::FILES.contains(&(name, text));
    is_file(&format!("{}.toml", plan.study), &plan.source)
        && plan.attachments.iter().all(|(name, text)| is_file(name, text))
}

/// A study by its built-in name, or by its path when the name has a slash or a dot in it.
pub(crate) fn find(name: &str) -> Result<Study, FindError> {
    // It goes into tables, file names and onto terminals.
    if name.chars().any(char::is_control) {
        let cause = io::Error::new(io::ErrorKind::InvalidInput, "its name has control characters");
        return Err(FindError::Read { path: name.escape_debug().to_string().into(), cause });
    }
    if !name.contains(['/', '.']) {
        let file = format!("{name}.toml");
        return match built_in::FILES.iter().find(|(known, _)| *known == file) {
            Some((_, text)) => Ok(Study { source: Source::new(file, *text), files: Files::BuiltIn }),
            None => Err(FindError::NotBuiltIn { name: name.to_owned(), known: names().collect::<Vec<_>>().join(", ") }),
        };
    }
    let path = Path::new(name);
    let text = read_document(path).map_err(|cause| FindError::Read { path: path.to_owned(), cause })?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    Ok(Study { source: Source::new(name, text), files: Files::Directory(directory.to_owned()) })
}

impl Study {
    pub(crate) fn recorded(plan: &Plan) -> Self {
        let source = Source::new(format!("{}.toml", plan.study), plan.source.as_str());
        Self { source, files: Files::Recorded(plan.attachments.clone()) }
    }

    pub(crate) fn has_text(&self, text: &str) -> bool {
        self.source.text() == text
    }

    pub(crate) const fn is_built_in(&self) -> bool {
        matches!(self.files, Files::BuiltIn)
    }

    pub(crate) fn recorded_file(&self, name: &str) -> Option<&str> {
        let Files::Recorded(files) = &self.files else { return None };
        files.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    pub(crate) fn compile(&self, overrides: &Overrides) -> Result<(Plan, Option<Diagnostics>), Diagnostics> {
        let types: Vec<_> = fstone_lab::filesystem::types().collect();
        study::compile_with_warnings(&self.source, &|name| self.load(name), &types, overrides)
    }

    /// A file that the study names, looked up beside it (formats has refused absolute paths and `..`).
    fn load(&self, name: &str) -> Result<String, String> {
        match &self.files {
            Files::Recorded(files) => files
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, text)| text.clone())
                .ok_or_else(|| format!("it was not recorded with the run: {name}")),
            Files::BuiltIn => built_in::FILES
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| format!("there is no built-in file {name}")),
            Files::Directory(directory) => {
                let cannot = |error| format!("cannot read {}: {error}", directory.join(name).display());
                let path = regular_below(directory, name).map_err(cannot)?;
                let described = recording(&path).or_else(|| image(&path).map(|image| image.map_err(cannot)));
                described.unwrap_or_else(|| read_text(&path).map_err(cannot))
            }
        }
    }
}

/// What a study is handed of a recording, in place of its content; `None` for other files.
fn recording(path: &Path) -> Option<Result<String, String>> {
    let mut reader = match Reader::open(path) {
        Ok(reader) => reader,
        Err(ReadError::Foreign | ReadError::Read(_)) => return None,
        Err(error) => return Some(Err(error.to_string())),
    };
    let describe = |reader: &mut Reader<_>| {
        let summary = fstone_record::summarize(reader).map_err(|error| error.to_string())?;
        let file = path.canonicalize().map_err(|error| error.to_string())?;
        let replay = Replay {
            file: file.to_str().ok_or("its path is no UTF-8")?.to_owned(),
            digest: reader.digest(),
            calls: summary.calls,
            // Mappings and the like are counted, and not replayed.
            kinds: summary
                .groups
                .iter()
                .filter(|group| !group.kind.is_uncovered())
                .map(|group| group.kind.name().into())
                .collect(),
            pace: ReplayPace::default(),
            speed: Replay::as_recorded(),
            cold: false,
        };
        if replay.kinds.is_empty() {
            return Err(EMPTY.to_owned());
        }
        serde_json::to_string(&replay).map_err(|error| error.to_string())
    };
    Some(describe(&mut reader))
}

/// The same of an image; `None` for what could be text.
fn image(path: &Path) -> Option<io::Result<String>> {
    let mut first = Vec::new();
    File::open(path).and_then(|file| file.take(4096).read_to_end(&mut first)).ok()?;
    first.contains(&0).then(|| {
        let json = serde_json::to_string(&old_image(path)?)?;
        Ok(format!("{}{json}", study::IMAGE_MARK))
    })
}

/// Reads a study or a load. Of a recording it says what takes it.
pub(crate) fn read_document(path: &Path) -> io::Result<String> {
    read_text(path).map_err(|error| {
        if !is_recording(path) {
            return error;
        }
        let words = "this is a recording: fstone replay takes it, or a study with a step load = { replay = … }";
        io::Error::new(io::ErrorKind::InvalidData, words)
    })
}

#[derive(Debug)]
pub(crate) enum FindError {
    NotBuiltIn { name: String, known: String },
    Read { path: PathBuf, cause: io::Error },
}

impl std::fmt::Display for FindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotBuiltIn { name, known } => {
                if let Some(meant) = closest(name, names()) {
                    return write!(
                        f,
                        "there is no built-in study {name:?}; did you mean {meant}? `fstone list studies` lists all"
                    );
                }
                write!(
                    f,
                    "there is no built-in study {name:?}; there are {known}. A file of your own is named by its path: ./{name}.toml"
                )
            }
            Self::Read { path, cause } => {
                write!(f, "cannot read the study {}: {cause}", path.display())?;
                match path
                    .to_str()
                    .and_then(|path| path.strip_suffix(".toml"))
                    .filter(|name| names().any(|known| known == *name))
                {
                    Some(name) => write!(f, "; the built-in study is named {name}, without .toml"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for FindError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_shows_nothing_but_files_beside_it_and_waits_for_nobody() {
        let place = tempfile::tempdir().expect("a directory");
        let (study, outside) = (place.path().join("study"), place.path().join("secret"));
        std::fs::create_dir(&study).expect("made");
        std::fs::write(&outside, "secret = 1").expect("written");
        std::fs::write(study.join("real.toml"), "").expect("written");
        std::os::unix::fs::symlink("real.toml", study.join("link.toml")).expect("made");
        std::os::unix::fs::symlink(&outside, study.join("out.toml")).expect("made");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            study.join("pipe.toml"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .expect("made");
        let study = Study { source: Source::new("study", String::new()), files: Files::Directory(study) };
        assert_eq!((study.load("real.toml"), study.load("link.toml")), (Ok(String::new()), Ok(String::new())));
        for (name, words) in [("out.toml", "a link out of"), ("pipe.toml", "no file"), ("none.toml", "No such file")] {
            let error = study.load(name).expect_err("refused");
            assert!(error.contains(words), "{error}");
        }
    }
}

//! Reading the text files that a user names.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest study, workload, job, profile or model, in bytes.
pub const TEXT_BYTES: u64 = 16 << 20;

/// Reads a text file of at most [`TEXT_BYTES`].
pub fn read_text(path: &Path) -> io::Result<String> {
    read_text_within(path, TEXT_BYTES)
}

/// Reads a text file of at most so many bytes. What is longer, or is not UTF-8, is refused before all of it is in memory.
///
/// # Errors
/// Those of open(2) and read(2), and when the file is too long or no text.
pub fn read_text_within(path: &Path, limit: u64) -> io::Result<String> {
    let file = File::open(path)?;
    // Pipes and the like have no size to go by.
    let mut text = String::new();
    if file.metadata()?.len() <= limit {
        file.take(limit + 1).read_to_string(&mut text)?;
        if text.len() as u64 <= limit {
            return Ok(text);
        }
    }
    let most = if limit >= 1 << 20 { format!("{} MiB", limit >> 20) } else { format!("{} KiB", limit >> 10) };
    Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most}, the limit for such files")))
}

/// The path of a file that another one names, in its directory or below. Who wrote that one may be a stranger: no link in it leads to
/// other files, and no pipe keeps a reader waiting.
///
/// # Errors
/// Those of looking at it; what is wrong with it.
pub fn regular_below(directory: &Path, name: &str) -> io::Result<PathBuf> {
    let path = directory.join(name);
    let real = path.canonicalize()?;
    let above = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    if !real.starts_with(above.canonicalize()?) {
        return Err(io::Error::other("it is a link out of its directory; put a copy there"));
    }
    match real.metadata()?.is_file() {
        true => Ok(path),
        false => Err(io::Error::other("it is no file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_file_is_refused_and_the_limit_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        std::fs::write(&path, "x".repeat(2048)).expect("written");
        assert_eq!(read_text_within(&path, 2048).expect("read").len(), 2048);
        let error = read_text_within(&path, 2047).expect_err("too long");
        assert!(error.to_string().contains("larger than 1 KiB"), "{error}");
        let error = read_text(Path::new("/dev/zero")).expect_err("endless");
        assert!(error.to_string().contains("larger than 16 MiB"), "{error}");
    }
}

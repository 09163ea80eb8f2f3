//! Packages by the system's own tools, with lists and a cache of our own: nothing of the system is touched, no right
//! is needed.

use fstone_files::{OwnDirectory, remove_own_tree};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// The archive that is asked, through whatever proxy the system's apt is configured for.
const ARCHIVE: &str = "http://deb.debian.org/debian";

/// The archive of security updates; its suites are named like the others with "-security" behind.
const SECURITY_ARCHIVE: &str = "http://deb.debian.org/debian-security";

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Package lists older than this are fetched again.
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// Why a package could not be had; completes "failed to add a kernel: …".
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("{path}: {cause}")]
    File { path: PathBuf, cause: io::Error },
    #[error("{tool} cannot be run: {cause}; fetching packages takes apt and dpkg, so give a path instead")]
    NoTool {
        /// apt-get, apt-cache or dpkg.
        tool: &'static str,
        cause: io::Error,
    },
    #[error("{command} ended with {status}: {output}")]
    Tool { command: String, status: String, output: String },
    #[error("{suite} of Debian has no package {name}; kernels with short names are listed by fstone kernel add --help")]
    NoPackage { name: String, suite: String },
    /// It succeeded, and what was asked for is not there.
    #[error("apt-get downloaded nothing for {0}")]
    Nothing(String),
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> FetchError {
    let path = path.to_owned();
    move |cause| FetchError::File { path, cause }
}

fn run(tool: &'static str, arguments: &[OsString], directory: &Path) -> Result<String, FetchError> {
    let output = Command::new(tool)
        .args(arguments)
        .current_dir(directory)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .map_err(|cause| FetchError::NoTool { tool, cause })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = errors.lines().filter(|line| !line.trim().is_empty()).collect();
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    Err(FetchError::Tool {
        command: format!("{tool} {}", words.join(" ")),
        status: output.status.to_string(),
        output: lines[lines.len().saturating_sub(4)..].join("; "),
    })
}

/// The suite this host itself was installed from, if it is a Debian.
pub(super) fn own_suite() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let field = |name: &str| {
        release.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim_matches('"').to_owned())
    };
    let debian = field("ID=").is_some_and(|id| id == "debian");
    field("VERSION_CODENAME=").filter(|_| debian).unwrap_or_else(|| "bookworm".to_owned())
}

#[derive(Debug)]
pub(super) struct Package {
    file: PathBuf,
}

impl Package {
    pub(super) fn path(&self) -> &Path {
        &self.file
    }

    /// Removes the file: tens of megabytes, when it is unpacked.
    pub(super) fn discard(&self) {
        let _ = fs::remove_file(&self.file);
    }

    /// "user-mode-linux_6.1um1_amd64".
    pub(super) fn stem(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// One suite of the archive, as apt sees it.
#[derive(Debug)]
pub(super) struct Archive {
    directory: PathBuf,
}

impl Archive {
    /// Its lists are fetched when there are none or they are old.
    pub(super) fn open(store: &Path, suite: &str) -> Result<Self, FetchError> {
        let directory = store.join("fstone-apt").join(suite);
        for part in ["state/lists/partial", "cache/archives/partial", "packages"] {
            fs::create_dir_all(directory.join(part)).map_err(file_error(&directory))?;
        }
        let signed = if Path::new(KEYRING).is_file() { format!("[signed-by={KEYRING}] ") } else { String::new() };
        let write = |name: &str, text: &str| fs::write(directory.join(name), text).map_err(file_error(&directory));
        let url = if suite.ends_with("-security") { SECURITY_ARCHIVE } else { ARCHIVE };
        write("sources.list", &format!("deb {signed}{url} {suite} main\n"))?;
        write("status", "")?;
        let archive = Self { directory };
        let stamp = archive.directory.join("updated");
        let fresh = fs::metadata(&stamp)
            .and_then(|data| data.modified())
            .is_ok_and(|then| SystemTime::now().duration_since(then).is_ok_and(|age| age < FRESH));
        if !fresh {
            archive.apt("apt-get", &["-q", "update"])?;
            fs::write(&stamp, "").map_err(file_error(&stamp))?;
        }
        Ok(archive)
    }

    fn apt(&self, tool: &'static str, arguments: &[&str]) -> Result<String, FetchError> {
        let at = |name: &str| self.directory.join(name).display().to_string();
        let mut words: Vec<OsString> = Vec::new();
        for option in [
            format!("Dir::Etc::SourceList={}", at("sources.list")),
            "Dir::Etc::SourceParts=/dev/null".to_owned(),
            format!("Dir::State={}", at("state")),
            format!("Dir::State::status={}", at("status")),
            format!("Dir::Cache={}", at("cache")),
            "Acquire::Languages=none".to_owned(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
            // apt of root would become _apt, which may not enter a directory of root's.
            "APT::Sandbox::User=root".to_owned(),
        ] {
            words.push("-o".into());
            words.push(option.into());
        }
        words.extend(arguments.iter().map(OsString::from));
        run(tool, &words, &self.directory.join("packages"))
    }

    /// Downloads a package, or what an empty package of this name stands for ("linux-image-amd64").
    pub(super) fn download(&self, name: &str) -> Result<Package, FetchError> {
        let record = self.apt("apt-cache", &["show", "--no-all-versions", name]).map_err(|error| match error {
            FetchError::Tool { output, .. } if output.contains("No packages found") => {
                let suite = self.directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
                FetchError::NoPackage { name: name.to_owned(), suite }
            }
            other => other,
        })?;
        let name = if name.starts_with("linux-image-") { image_behind(&record).unwrap_or(name) } else { name };
        // apt-get prints neither path nor version: the file is the one of this name that it touched last.
        let packages = self.directory.join("packages");
        self.apt("apt-get", &["-q", "download", name])?;
        let prefix = format!("{name}_");
        let newest = fs::read_dir(&packages)
            .map_err(file_error(&packages))?
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
            .max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok());
        Ok(Package { file: newest.ok_or_else(|| FetchError::Nothing(name.to_owned()))?.path() })
    }

    pub(super) fn unpack(&self, package: &Package, root: &Path) -> Result<(), FetchError> {
        fs::create_dir(root).map_err(file_error(root))?;
        unpack(&package.file, root)?;
        package.discard();
        Ok(())
    }
}

/// The versioned image that a record of apt-cache depends on.
fn image_behind(record: &str) -> Option<&str> {
    let depends = record.lines().find_map(|line| line.strip_prefix("Depends: "))?;
    depends.split(',').filter_map(|one| one.split_whitespace().next()).find(|name| name.starts_with("linux-image-"))
}

/// Unpacks a package into a directory that is there.
fn unpack(package: &Path, root: &Path) -> Result<(), FetchError> {
    // dpkg is run elsewhere, where a relative path would lead to another file or to none.
    let package = fs::canonicalize(package).map_err(file_error(package))?;
    run("dpkg", &["-x".into(), package.into(), root.into()], Path::new("/")).map(drop)
}

/// The same into a directory of fstone's own, whatever is in it.
pub(super) fn unpack_anew(package: &Path, root: &Path) -> Result<(), FetchError> {
    remove_own_tree(root).and_then(|()| fs::create_dir_all(root)).map_err(file_error(root))?;
    unpack(package, root)
}

/// How the directories of packages begin. No directory of a user's has such a name, and none is unpacked in another's place.
const PACKAGE: &str = "package-";

/// Unpacks a package below a new directory of the store. That one stays this user's alone: what root unpacks may be setuid, a device, or
/// another user's.
pub(super) fn unpack_beside(package: &Path, store: &Path) -> Result<(OwnDirectory, PathBuf), FetchError> {
    let own = OwnDirectory::make(store, PACKAGE).map_err(file_error(store))?;
    let root = own.path().join("root");
    fs::create_dir(&root).map_err(file_error(&root))?;
    unpack(package, &root)?;
    Ok((own, root))
}

/// The directories of packages, but for those that are being made.
pub(super) fn unpacked(store: &Path) -> Vec<OwnDirectory> {
    OwnDirectory::left(store, PACKAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_package_stands_for_its_image() {
        let record = "Package: linux-image-amd64\nVersion: 6.1.1\nDepends: x, linux-image-6.1.0-9-amd64 (= 6.1.1)\n";
        assert_eq!(image_behind(record), Some("linux-image-6.1.0-9-amd64"));
        assert_eq!(image_behind("Package: p\nDepends: kmod, linux-base (>= 4)\n"), None);
    }

    #[test]
    fn a_failing_tool_is_quoted() {
        let place = tempfile::tempdir().unwrap();
        let package = place.path().join("x.deb");
        fs::write(&package, "no package").unwrap();
        let text = unpack(&package, place.path()).unwrap_err().to_string();
        assert!(text.contains("dpkg -x /") || text.contains("dpkg cannot be run"), "{text}");
    }
}

//! The kernels that are kept in a directory, and how one is added.

use super::build::{self, BuildError, BuildProgress};
use super::error::{StoreError, file_error};
use super::identity::{Flavour, Kernel};
use super::{fetch, unpacked};
use fstone_files::{OwnDirectory, Temporary, Trust, create_directories, resolve};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Package { name: String, suite: Option<String> },
    Path(PathBuf),
}

/// What is short for which package: the name, the package, and the release of Debian that has it.
const SHORT: [(&str, &str, &str); 5] = [
    ("uml:5.10", "user-mode-linux", "bullseye"),
    ("uml:6.1", "user-mode-linux", "bookworm"),
    ("uml:6.12", "user-mode-linux", "trixie"),
    ("qemu:6.1", "linux-image-amd64", "bookworm"),
    ("qemu:6.12", "linux-image-cloud-amd64", "trixie"),
];

/// The command that gets a kernel of this name; `None` where no package is known to have it.
fn command_for(name: &str) -> Option<String> {
    if name.starts_with("exact:") {
        return Some("fstone kernel build".to_owned());
    }
    let is_of = |short: &str| name.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    SHORT.iter().find(|(short, ..)| is_of(short)).map(|(short, ..)| format!("fstone kernel add {short}"))
}

fn no_package_for(name: &str) -> String {
    let (flavour, release) = name.split_once(':').unwrap_or(("", name));
    let of_flavour = SHORT.iter().filter_map(|(short, ..)| short.strip_prefix(flavour)?.strip_prefix(':'));
    let releases: Vec<&str> = of_flavour.collect();
    format!("There is no package for {release}; there are {}", releases.join(", "))
}

impl Source {
    /// "uml:5.10" is short for the package that has it; "NAME" and "NAME/SUITE" are packages; all else is a path.
    fn parse(text: &str) -> Self {
        let package =
            |name: &str, suite: Option<&str>| Self::Package { name: name.to_owned(), suite: suite.map(str::to_owned) };
        if let Some((_, name, suite)) = SHORT.iter().find(|(short, ..)| *short == text) {
            return package(name, Some(suite));
        }
        let (name, suite) = text.split_once('/').map_or((text, None), |(name, suite)| (name, Some(suite)));
        let plain = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        };
        if !Path::new(text).exists() && plain(name) && !name.starts_with(['.', '-']) && suite.is_none_or(plain) {
            return package(name, suite);
        }
        Self::Path(text.into())
    }
}

/// What lies in the store is written down relative to it, so that the store can be moved.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Registry {
    kernels: Vec<Kernel>,
}

/// The kernels kept in one directory.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// In this directory, made when something is added.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Adds what a package or a path holds: "uml:5.10", "user-mode-linux/trixie", "linux-image-amd64", a `.deb`, a
    /// directory with an unpacked package, `linux.uml`, a vmlinuz. Adding the same release again replaces it.
    pub fn add(&self, what: &str) -> Result<Kernel, StoreError> {
        let directory = self.own_directory()?;
        drop(self.left());
        let (kernel, own) = match Source::parse(what) {
            Source::Package { name, suite } => {
                let suite = suite.unwrap_or_else(fetch::own_suite);
                let archive = fetch::Archive::open(&directory, &suite)?;
                let package = archive.download(&name)?;
                let stem = package.stem();
                let (own, root) = fetch::unpack_beside(package.path(), &directory)?;
                package.discard();
                (unpacked::kernel_in(&root, &format!("{stem} from {suite}"), Some(&archive))?, Some(own))
            }
            Source::Path(path) if path.extension().is_some_and(|extension| extension == "deb") => {
                let (own, root) = fetch::unpack_beside(&path, &directory)?;
                (unpacked::kernel_in(&root, &path.display().to_string(), None)?, Some(own))
            }
            Source::Path(path)
                if !path.exists() && what.split_once(':').is_some_and(|(kind, _)| matches!(kind, "uml" | "qemu")) =>
            {
                let known = SHORT.map(|(short, ..)| short).join(", ");
                return Err(StoreError::NoPackage { wanted: what.to_owned(), known });
            }
            Source::Path(path) => {
                let path = fs::canonicalize(&path).map_err(file_error(&path))?;
                (unpacked::kernel_in(&path, &path.display().to_string(), None)?, None)
            }
        };
        self.register(kernel.clone())?;
        own.into_iter().for_each(OwnDirectory::keep);
        // What it replaced.
        drop(self.left());
        Ok(kernel)
    }

    /// What killed processes left of packages that they unpacked. It goes with these values.
    pub fn left(&self) -> Vec<OwnDirectory> {
        let Ok(directory) = fs::canonicalize(&self.directory) else { return Vec::new() };
        let unpacked = fetch::unpacked(&directory);
        // Read only now that they are locked: each was locked until its kernel was registered.
        let registry = self.read();
        let is_used = |own: &OwnDirectory| match &registry {
            Ok(registry) => registry.kernels.iter().any(|kernel| kernel.binary.starts_with(own.path())),
            Err(_) => true,
        };
        let (used, left): (Vec<_>, Vec<_>) = unpacked.into_iter().partition(is_used);
        used.into_iter().for_each(OwnDirectory::keep);
        left
    }

    /// Builds a kernel whose time can be simulated from a package of sources ("linux-source-6.1"), a tar or a tree,
    /// unless that very one was built before, and adds it: as "exact:RELEASE", or by the tree's or the given name. If `counting`, it counts its
    /// work, and "-counting" ends its name.
    pub fn build(
        &self,
        source: &str,
        name: Option<&str>,
        counting: bool,
        tell: &mut dyn FnMut(BuildProgress),
    ) -> Result<Kernel, BuildError> {
        let directory = self.own_directory()?;
        let kernel = build::build(&directory, source, name, counting, tell)?;
        self.register(kernel.clone())?;
        Ok(kernel)
    }

    /// The directory, made if it is missing, where only this user makes files: what is written and removed in it is known by its name.
    fn own_directory(&self) -> Result<PathBuf, StoreError> {
        let path = &self.directory;
        let made = create_directories(path, None).and_then(|()| {
            let directory = resolve(path)?;
            Trust::here().open_to_others(&directory)?.map_or(Ok(directory), |part| Err(part.refusal()))
        });
        made.map_err(file_error(path))
    }

    fn register(&self, kernel: Kernel) -> Result<(), StoreError> {
        let directory = fs::File::open(&self.directory).map_err(file_error(&self.directory))?;
        // One at a time. Where there are no locks, one of two at once is lost.
        let _ = rustix::io::retry_on_intr(|| flock(&directory, FlockOperation::LockExclusive));
        let mut registry = self.read()?;
        registry.kernels.retain(|other| other.name() != kernel.name());
        registry.kernels.push(kernel);
        self.write(registry)
    }

    /// All kernels, in the order they were added.
    pub fn list(&self) -> Result<Vec<Kernel>, StoreError> {
        Ok(self.read()?.kernels)
    }

    /// The kernel that a study means by this name: "uml:6.1", "qemu:6.12", or "uml:/path". The last added of several;
    /// the installed user-mode Linux counts too. Where no user-mode Linux has the name, one that was built for virtual time runs in
    /// normal time.
    pub fn find(&self, name: &str) -> Result<Kernel, StoreError> {
        if let Some((flavour, path)) = name.split_once(':')
            && path.starts_with('/')
        {
            let kernel = unpacked::kernel_in(Path::new(path), path, None)?;
            return match kernel.flavour {
                known if known.word() == flavour => Ok(kernel),
                Flavour::Exact if flavour == Flavour::Uml.word() => Ok(kernel.in_normal_time()),
                Flavour::Uml if flavour == Flavour::Exact.word() => Err(StoreError::NoTimeTravel(path.into())),
                _ => Err(StoreError::NoKernel(path.into())),
            };
        }
        let kernels = self.all()?;
        if let Some(kernel) = kernels.iter().rev().find(|kernel| kernel.answers_to(name)) {
            return Ok(kernel.clone());
        }
        // One that was built for virtual time has a clock as well.
        let as_exact = name.strip_prefix("uml:").map(|rest| format!("exact:{rest}"));
        if let Some(name) = as_exact
            && let Some(kernel) = kernels.iter().rev().find(|kernel| kernel.answers_to(&name))
        {
            return Ok(kernel.clone().in_normal_time());
        }
        let mut names: Vec<String> = kernels.iter().map(Kernel::name).collect();
        names.sort();
        names.dedup();
        let known = if names.is_empty() {
            "there is none at all".to_owned()
        } else {
            format!("there are {}", names.join(", "))
        };
        let problem = format!("there is no kernel {name}; {known}");
        Err(match command_for(name) {
            Some(command) => StoreError::Absent { problem, command },
            None => StoreError::Unknown { problem, packages: no_package_for(name) },
        })
    }

    /// All kernels, with the user-mode Linux that is installed.
    pub fn all(&self) -> Result<Vec<Kernel>, StoreError> {
        let mut kernels: Vec<Kernel> = unpacked::installed().into_iter().collect();
        kernels.extend(self.list()?);
        Ok(kernels)
    }

    /// The kernel to use when none is named: the installed user-mode Linux, else the newest that there is.
    pub fn default(&self, flavour: Flavour) -> Option<Kernel> {
        let number = |part: &str| part.parse::<u64>().unwrap_or(0);
        // One that counts has to be named.
        let age = |kernel: &Kernel| {
            let parts: Vec<u64> = kernel.release.split(['.', '-', '+']).map(number).collect();
            (!kernel.counts, parts)
        };
        let added =
            || self.list().unwrap_or_default().into_iter().filter(|kernel| kernel.flavour == flavour).max_by_key(age);
        unpacked::installed().filter(|kernel| kernel.flavour == flavour).or_else(added)
    }

    fn path(&self) -> PathBuf {
        self.directory.join("kernels.json")
    }

    fn read(&self) -> Result<Registry, StoreError> {
        let path = self.path();
        match fs::read(&path) {
            Ok(text) => {
                let registry: Registry = serde_json::from_slice(&text)
                    .map_err(|error| StoreError::Registry { path, problem: error.to_string() })?;
                let directory = fs::canonicalize(&self.directory).map_err(file_error(&self.directory))?;
                let here = |path: &Path| directory.join(path);
                Ok(Registry { kernels: registry.kernels.into_iter().map(|kernel| kernel.with_paths(here)).collect() })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Registry::default()),
            Err(cause) => Err(StoreError::File { path, cause }),
        }
    }

    /// Replaced in one step: a reader sees the old or the new registry.
    fn write(&self, registry: Registry) -> Result<(), StoreError> {
        let path = self.path();
        let directory = fs::canonicalize(&self.directory).map_err(file_error(&self.directory))?;
        let inside = |path: &Path| path.strip_prefix(&directory).unwrap_or(path).to_owned();
        let kernels = registry.kernels.into_iter().map(|kernel| kernel.with_paths(inside)).collect();
        let text = serde_json::to_vec_pretty(&Registry { kernels })
            .map_err(|error| StoreError::Registry { path: path.clone(), problem: error.to_string() })?;
        let written = Temporary::owned(&path, None).and_then(|temporary| {
            temporary.file().write_all(&text)?;
            temporary.replace(&path)
        });
        written.map_err(file_error(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn kernel(flavour: Flavour, release: &str) -> Kernel {
        Kernel {
            flavour,
            release: release.to_owned(),
            source: String::new(),
            binary: "/k".into(),
            modules: None,
            libraries: None,
            counts: false,
        }
    }

    #[test]
    fn names_may_be_shortened_at_dots() {
        let old = kernel(Flavour::Uml, "6.1.176");
        assert!(old.answers_to("uml:6.1") && old.answers_to("uml:6.1.176") && old.answers_to("uml:6"));
        assert!(!old.answers_to("uml:6.1.17") && !old.answers_to("qemu:6.1"));
        assert!(!kernel(Flavour::Uml, "6.12.101").answers_to("uml:6.1"));
        assert!(kernel(Flavour::Qemu, "6.12.107+deb13-cloud-amd64").answers_to("qemu:6.12.107"));
        let counting = Kernel { counts: true, ..kernel(Flavour::Exact, "6.1.192-counting") };
        assert!(counting.answers_to("exact:6.1.192-counting") && !counting.answers_to("exact:6.1.192"));
    }

    #[test]
    fn what_can_be_added() {
        let package =
            |name: &str, suite: Option<&str>| Source::Package { name: name.into(), suite: suite.map(str::to_owned) };
        assert_eq!(Source::parse("uml:5.10"), package("user-mode-linux", Some("bullseye")));
        assert_eq!(Source::parse("linux-image-amd64"), package("linux-image-amd64", None));
        assert_eq!(Source::parse("user-mode-linux/trixie"), package("user-mode-linux", Some("trixie")));
        for path in ["/boot/vmlinuz", "./vmlinuz", "../linux.uml", "a b", "-x", "a/b/c"] {
            assert_eq!(Source::parse(path), Source::Path(path.into()), "{path}");
        }
    }

    #[test]
    fn the_registry_survives_and_the_unknown_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        assert_eq!(store.list().unwrap(), []);
        let mut inside = kernel(Flavour::Uml, "5.10.46");
        inside.binary = fs::canonicalize(directory.path()).unwrap().join("5.10/linux.uml");
        let both = vec![inside, kernel(Flavour::Qemu, "6.12.1")];
        store.write(Registry { kernels: both.clone() }).unwrap();
        assert_eq!(store.list().unwrap(), both);
        assert_eq!(store.find("qemu:6.12").unwrap(), both[1]);
        let text = fs::read_to_string(directory.path().join("kernels.json")).unwrap();
        assert!(text.contains("\"binary\": \"5.10/linux.uml\"") && text.contains("\"/k\""), "{text}");
        let built = kernel(Flavour::Exact, "skips-flush");
        store.register(built.clone()).unwrap();
        assert_eq!(store.find("exact:skips-flush").unwrap(), built);
        assert_eq!(store.find("uml:skips-flush").unwrap(), Kernel { flavour: Flavour::Uml, ..built });
        store.register(kernel(Flavour::Exact, "6.1.192")).unwrap();
        store.register(Kernel { counts: true, ..kernel(Flavour::Exact, "6.1.200-counting") }).unwrap();
        assert_eq!(store.default(Flavour::Exact).unwrap().release, "6.1.192", "one that counts has to be named");
        assert_eq!(store.find("exact:6.1").unwrap().release, "6.1.192");
        let error = store.find("qemu:2.6").unwrap_err().to_string();
        assert!(error.contains("no kernel qemu:2.6") && error.contains("uml:5.10.46"), "{error}");
        assert!(error.ends_with("There is no package for 2.6; there are 6.1, 6.12"), "{error}");
        let error = store.find("uml:6.12").unwrap_err().to_string();
        assert!(error.ends_with("Get it: fstone kernel add uml:6.12"), "{error}");
        fs::write(directory.path().join("kernels.json"), "{").unwrap();
        assert!(matches!(store.list(), Err(StoreError::Registry { .. })));
    }

    #[test]
    fn only_what_can_be_had_is_suggested() {
        let command = |name| command_for(name).unwrap_or_default();
        assert_eq!(command("uml:6.1"), "fstone kernel add uml:6.1");
        assert_eq!(command("uml:6.1.176"), "fstone kernel add uml:6.1");
        assert_eq!(command("exact:6.12"), "fstone kernel build");
        for none in ["uml:9.9", "uml:6.11", "uml:6", "qemu:5.10", "uml:/no/linux"] {
            assert_eq!(command(none), "", "{none}");
        }
    }

    #[test]
    fn a_release_that_no_package_has_names_those_that_one_has() {
        let directory = tempfile::tempdir().expect("made");
        let said = Store::new(directory.path()).add("uml:9.9").expect_err("there is none").to_string();
        assert!(said.starts_with("there is no package for uml:9.9; there are uml:5.10, uml:6.1"), "{said}");
    }

    fn package(place: &Path, name: &str) -> Option<PathBuf> {
        let (tree, file) = (place.join("tree"), place.join(format!("{name}.deb")));
        fs::create_dir_all(tree.join("DEBIAN")).expect("made");
        fs::create_dir_all(tree.join("boot")).expect("made");
        fs::write(
            tree.join("DEBIAN/control"),
            format!("Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: x\n"),
        )
        .expect("written");
        fs::write(tree.join("boot/vmlinuz-6.1.1"), name).expect("written");
        let made = std::process::Command::new("dpkg-deb").arg("-b").args([&tree, &file]).output();
        made.is_ok_and(|made| made.status.success()).then_some(file)
    }

    #[test]
    fn adding_a_package_touches_nothing_that_a_user_has_in_the_store() {
        let place = tempfile::tempdir().expect("made");
        let Some(file) = package(place.path(), "mine") else { return eprintln!("skipped: there is no dpkg-deb") };
        let directory = fs::canonicalize(place.path()).expect("there").join("kernels");
        let store = Store::new(&directory);
        fs::create_dir_all(directory.join("mine")).expect("made");
        fs::write(directory.join("mine/precious"), "a user's").expect("written");
        let first = store.add(file.to_str().expect("UTF-8")).expect("added");
        let second = store.add(file.to_str().expect("UTF-8")).expect("added again");
        let around = second.binary.ancestors().find(|path| path.parent() == Some(&directory)).expect("in the store");
        let mode = fs::metadata(around).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "a package may have setuid files and devices");
        assert_eq!(fs::read(directory.join("mine/precious")).expect("there"), b"a user's");
        assert!(second.binary.is_file() && !first.binary.exists(), "it was replaced");
        assert_eq!(store.list().expect("read"), [second]);
        assert_eq!(fs::read_dir(&directory).expect("listed").count(), 3, "and nothing beside it");
    }

    #[test]
    fn nothing_is_added_or_built_where_others_may_write() {
        let place = tempfile::tempdir().expect("made");
        for mode in [0o777, 0o1777] {
            fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).expect("ours");
            let store = Store::new(place.path());
            let said = store.add("uml:6.1").expect_err("another user could have made links there").to_string();
            assert!(said.contains("may write to"), "{said}");
            store.build("linux-source-6.1", None, false, &mut |_| ()).expect_err("nor built");
            assert_eq!(fs::read_dir(place.path()).expect("listed").count(), 0, "{mode:o}");
        }
    }

    #[test]
    fn what_is_added_counts_only_when_it_is_complete_and_what_a_kill_leaves_goes() {
        let place = tempfile::tempdir().expect("made");
        let Some(file) = package(place.path(), "mine") else { return eprintln!("skipped: there is no dpkg-deb") };
        let directory = fs::canonicalize(place.path()).expect("there").join("kernels");
        let store = Store::new(&directory);
        let kernel = store.add(file.to_str().expect("UTF-8")).expect("added");
        // A second one of which nothing is registered yet, and another that fails.
        let (unregistered, _) = fetch::unpack_beside(&file, &directory).expect("unpacked");
        fs::write(&file, "no package").expect("written");
        store.add(file.to_str().expect("UTF-8")).expect_err("no package");
        assert!(kernel.binary.is_file() && unregistered.path().is_dir());
        assert!(store.left().is_empty(), "it is locked");
        let left = unregistered.path().to_owned();
        unregistered.keep();
        let found = store.left();
        assert_eq!(found.iter().map(OwnDirectory::path).collect::<Vec<_>>(), [&left]);
        drop(found);
        assert!(!left.exists() && kernel.binary.is_file());
        fs::write(directory.join("kernels.json"), "{").expect("written");
        assert!(store.left().is_empty(), "nothing goes if it is not known what is used");
    }

    #[test]
    fn kernels_that_are_added_at_once_are_all_registered() {
        let place = tempfile::tempdir().expect("made");
        let store = Store::new(place.path());
        std::thread::scope(|scope| {
            for number in 0..20 {
                let store = store.clone();
                scope.spawn(move || store.register(kernel(Flavour::Uml, &format!("6.{number}"))).expect("registered"));
            }
        });
        assert_eq!(store.list().expect("read").len(), 20);
    }
}

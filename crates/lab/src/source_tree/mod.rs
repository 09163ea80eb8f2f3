//! A source tree with the shape of a Linux kernel's, made from a seed.
//!
//! The studies that unpack, build, pack and remove "a kernel tree" need one where no kernel source is at hand. This one
//! has the size, depth, name and kind distributions of Linux 6.1 (`shape` has the measured tables), scaled to any
//! number of files; its C files really compile under its own Makefile (`make defconfig && make -j8`, or `tinyconfig`),
//! so that a build of it is a build. The same seed and number of files give the same tree, byte for byte.
//!
//! Nothing here looks at a clock or at the machine. [`SourceTree::write`] writes below the directory it is given and
//! nowhere else.

mod draw;
mod makefile;
mod shape;
mod text;

use draw::Draw;
use makefile::Objects;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Files in Linux 6.1's source, for a tree of full size.
pub const LINUX_FILES: u64 = 78_579;

/// Fewer files than this leave no room for the build's own.
pub const MINIMUM_FILES: u64 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceTree {
    /// How many files, those of the build included; at least [`MINIMUM_FILES`].
    pub files: u64,
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    pub files: u64,
    /// Directories, the top one not counted.
    pub directories: u64,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Relative to the tree's top.
    pub path: PathBuf,
    pub content: Vec<u8>,
}

impl SourceTree {
    /// Writes the tree into `top`, which has to be there and empty.
    pub fn write(&self, top: &Path) -> io::Result<Written> {
        if fs::read_dir(top)?.next().is_some() {
            return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, format!("{} is not empty", top.display())));
        }
        let layout = shape::layout(self.files.max(MINIMUM_FILES), self.seed);
        let mut written = Written::default();
        for directory in &layout.directories[1..] {
            fs::create_dir(top.join(&directory.path))?;
            written.directories += 1;
        }
        self.each(&layout, &mut |file| {
            fs::write(top.join(&file.path), &file.content)?;
            written.files += 1;
            written.bytes += file.content.len() as u64;
            Ok(())
        })?;
        Ok(written)
    }

    /// Hands every file to `emit`, directories' own files together.
    fn each(&self, layout: &shape::Layout, emit: &mut dyn FnMut(File) -> io::Result<()>) -> io::Result<()> {
        for (path, content) in makefile::top() {
            emit(File { path, content })?;
        }
        let mut serial = 0u32;
        let mut first_object = None;
        for (index, directory) in layout.directories.iter().enumerate() {
            let mut objects = Objects::default();
            for planned in &directory.files {
                let mut draw = Draw::new(self.seed, &[2, u64::from(serial)]);
                let path = directory.path.join(&planned.name);
                let content = text::content(planned, serial, &mut draw);
                if planned.kind == shape::Kind::C {
                    objects.push(&planned.name, serial);
                    first_object.get_or_insert(serial);
                }
                serial += 1;
                emit(File { path, content })?;
            }
            let mut draw = Draw::new(self.seed, &[3, index as u64]);
            let content = makefile::directory(directory, &objects, first_object, &mut draw);
            emit(File { path: directory.path.join("Kbuild"), content })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeMap, process::Command};

    fn files(tree: &SourceTree) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let layout = shape::layout(tree.files, tree.seed);
        tree.each(&layout, &mut |file| {
            assert!(found.insert(file.path.clone(), file.content).is_none(), "{} twice", file.path.display());
            Ok(())
        })
        .expect("nothing here fails");
        found
    }

    #[test]
    fn the_number_of_files_is_what_was_asked_for_and_the_seed_decides_the_rest() {
        let tree = SourceTree { files: 2000, seed: 7 };
        let first = files(&tree);
        assert_eq!(first.len(), 2000);
        assert_eq!(first, files(&tree));
        assert_ne!(first, files(&SourceTree { seed: 8, ..tree }));
        for path in first.keys() {
            assert!(path.is_relative() && path.to_str().is_some_and(|path| !path.contains("..")), "{}", path.display());
        }
    }

    #[test]
    fn sizes_and_depths_are_those_of_a_kernel_tree() {
        let found = files(&SourceTree { files: 4_000, seed: 1 });
        let mut sizes: Vec<usize> = found.values().map(Vec::len).collect();
        sizes.sort_unstable();
        let median = sizes[sizes.len() / 2] as f64;
        let ninetieth = sizes[sizes.len() * 9 / 10] as f64;
        let mean = sizes.iter().sum::<usize>() as f64 / sizes.len() as f64;
        // Linux 6.1: 3,874, 28,759 and 16,527 bytes; the mean hangs on a few giants.
        assert!((2500.0..5500.0).contains(&median), "median {median}");
        assert!((20_000.0..40_000.0).contains(&ninetieth), "90th percentile {ninetieth}");
        assert!((8_000.0..40_000.0).contains(&mean), "mean {mean}");
        let depth = found.keys().map(|path| path.components().count() - 1).sum::<usize>() as f64 / found.len() as f64;
        // Linux 6.1: 3.5.
        assert!((2.8..4.2).contains(&depth), "mean depth {depth}");
        let share = |suffix: &str| {
            found.keys().filter(|path| path.extension().is_some_and(|extension| extension == suffix)).count() as f64
                / found.len() as f64
        };
        assert!(
            (0.34..0.46).contains(&share("c")) && (0.24..0.34).contains(&share("h")),
            "{} {}",
            share("c"),
            share("h")
        );
    }

    #[test]
    fn it_builds_under_its_own_makefile() {
        if Command::new("make").arg("--version").output().is_err()
            || Command::new("cc").arg("--version").output().is_err()
        {
            eprintln!("skipped: make or cc is not installed");
            return;
        }
        let top = tempfile::tempdir().expect("a temporary directory");
        let written = SourceTree { files: 125, seed: 3 }.write(top.path()).expect("it can be written");
        assert_eq!(written.files, 125);
        let make = |target: &str| {
            let output =
                Command::new("make").args(["-j2", target]).current_dir(top.path()).output().expect("make starts");
            assert!(output.status.success(), "make {target}: {}", String::from_utf8_lossy(&output.stderr));
        };
        let objects = || {
            let listing = Command::new("find").arg(top.path()).args(["-name", "*.o"]).output().expect("find starts");
            String::from_utf8_lossy(&listing.stdout).lines().count()
        };
        make("tinyconfig");
        make("all");
        let tiny = objects();
        assert!(top.path().join("image").exists() && tiny >= 1);
        make("defconfig");
        make("all");
        let default = objects();
        assert!(default > tiny, "{default} objects, {tiny} with tinyconfig");
        make("allyesconfig");
        make("all");
        let all = objects();
        let sources = files(&SourceTree { files: 125, seed: 3 })
            .keys()
            .filter(|path| path.extension().is_some_and(|e| e == "c"))
            .count();
        assert_eq!(all, sources - 1, "every C file compiles; main.c is compiled and linked in one go");
        assert!(Command::new(top.path().join("image")).status().expect("the image runs").success());
        make("clean");
        assert_eq!(objects(), 0);
    }
}

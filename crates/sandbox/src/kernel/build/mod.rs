//! Kernels whose time is simulated, built from source: user-mode Linux with time travel, which no distribution ships.
//!
//! ```text
//! kernels/fstone-builds/NAME/source/        the sources: unpacked, or links into the user's own tree, which is left untouched; NAME
//!                                    ends with KEY for what was unpacked, and with a hash of a tree's path
//! kernels/fstone-builds/NAME/source/built/  what make makes of them; kept for trees, so that the next build is short
//! kernels/fstone-builds/NAME/build.log
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
use super::identity::{COUNTING, COUNTS, Flavour, Kernel, TIME_TRAVEL, knows};
use fstone_files::{Temporary, remove_own_tree};
use make::{missing_tools, run_make};
use sha2::{Digest, Sha256};
use source::{BUILDS, hex};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// What is built in, on top of the kernel's own tinyconfig.
const CONFIGURATION: &str = include_str!("../../../kernel/exact.config");

/// Lets system calls take virtual time. Under the kernel's licence, GPL-2.0; a source it does not fit goes without.
const CHARGE: &str = include_str!("../../../kernel/charge.patch");

/// Lets the kernel's own work take it. It needs the assembler that counts it.
const WORK: &str = include_str!("../../../kernel/work.patch");

/// The assembler that the compiler runs then.
const COUNT: &str = include_str!("../../../kernel/count.pl");

/// Builds what `source` names, unless that was built before. The kernel is not registered yet.
pub(super) fn build(
    store: &Path,
    source: &str,
    name: Option<&str>,
    counting: bool,
    tell: &mut dyn FnMut(BuildProgress),
) -> Result<Kernel, BuildError> {
    let missing = missing_tools();
    if !missing.is_empty() {
        let tools = missing.iter().map(|(tool, _)| *tool).collect();
        let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
        packages.dedup();
        return Err(BuildError::Tools { tools, packages: packages.join(" ") });
    }
    let asked = source;
    let source = source::find(store, asked, tell)?;
    let compiler = Command::new("gcc").arg("--version").output().map_err(file_error(Path::new("gcc")))?.stdout;
    tell(BuildProgress::Preparing("reading the sources"));
    let mut key = Sha256::new();
    let stamps = source.stamps()?;
    let digest = source.digest()?;
    let patches: &[&str] = if counting { &[CHARGE, WORK, COUNT] } else { &[CHARGE] };
    let patches = patches.iter().map(|patch| patch.as_bytes());
    let parts = [&digest[..], CONFIGURATION.as_bytes()].into_iter().chain(patches).chain([&compiler[..]]);
    for part in parts {
        key.update((part.len() as u64).to_le_bytes());
        key.update(part);
    }
    let key = &hex(&key.finalize())[..12];
    let home = store.join(format!("exact-{key}"));
    let binary = home.join("linux");
    let noted = home.join("release");
    if !binary.is_file() {
        let place = store.join(BUILDS).join(source.place(key, counting)?);
        fs::create_dir_all(&place).map_err(file_error(&place))?;
        let release = make_in(&place, &source, counting, tell).inspect_err(|error| {
            // Nothing can be made of what was unpacked, and its log says no more than the error.
            if matches!(error, BuildError::NoArchive { .. } | BuildError::NoTree(_) | BuildError::LeadsOut { .. }) {
                let _ = remove_own_tree(&place);
            }
        })?;
        let built = place.join("source").join(source::BUILT).join("linux");
        let log = place.join("build.log");
        if !knows(&fs::read(&built).map_err(file_error(&built))?, TIME_TRAVEL) {
            return Err(BuildError::NoTimeTravel { log });
        }
        // The kernel is stored under what the tree was before.
        let changed = || {
            let now = source::find(store, asked, &mut |_| ())?;
            Ok::<bool, BuildError>(now.stamps()? != stamps || now.digest()? != digest)
        };
        if source.is_tree() && changed()? {
            // make goes by times: what it built of other contents would stay if they were put back with their old times.
            let objects = place.join("source").join(source::BUILT);
            remove_own_tree(&objects).map_err(file_error(&objects))?;
            return Err(BuildError::Changed(source.told().to_owned()));
        }
        fs::create_dir_all(&home).map_err(file_error(&home))?;
        fs::write(&noted, &release).map_err(file_error(&noted))?;
        // Whole or not at all.
        let whole = Temporary::owned(&binary, None).and_then(|temporary| {
            io::copy(&mut fs::File::open(&built)?, &mut temporary.file())?;
            temporary.file().set_permissions(fs::Permissions::from_mode(0o755))?;
            temporary.replace(&binary)
        });
        whole.map_err(file_error(&binary))?;
        if !source.is_tree() {
            remove_own_tree(&place).map_err(file_error(&place))?;
        }
    }
    source.discard();
    let release = fs::read_to_string(&noted).map_err(file_error(&noted))?;
    let counts = knows(&fs::read(&binary).map_err(file_error(&binary))?, COUNTS);
    let own = || {
        let own = if source.is_tree() { source.name() } else { &release };
        own.to_owned() + if counts { COUNTING } else { "" }
    };
    Ok(Kernel {
        flavour: Flavour::Exact,
        release: name.map_or_else(own, str::to_owned),
        source: format!("Linux {release}, built from {} ({key})", source.told()),
        binary,
        modules: None,
        libraries: None,
        counts,
    })
}

/// Lays the sources out, configures and compiles them. Gives the kernel's release.
fn make_in(
    place: &Path,
    source: &source::KernelSource,
    counting: bool,
    tell: &mut dyn FnMut(BuildProgress),
) -> Result<String, BuildError> {
    let tree = place.join("source");
    source.lay_out(&tree, tell)?;
    let log = place.join("build.log");
    fs::write(&log, "").map_err(file_error(&log))?;
    let charges = source::patch(&tree, CHARGE, &log)?;
    let counts = counting && source::patch(&tree, WORK, &log)?;
    if !charges {
        tell(BuildProgress::Unpatched("charges system calls", "system calls will take no time"));
    }
    if counting && !counts {
        tell(BuildProgress::Unpatched(
            "counts the kernel's work",
            "there will be no figures of it, and --cpu will be refused",
        ));
    }
    let options = options(place, counting, counts)?;
    if counts && !is_counted("gcc", place)? {
        return Err(BuildError::NotCounted);
    }
    tell(BuildProgress::Preparing("configuring"));
    let out = tree.join(source::BUILT);
    fs::create_dir_all(&out).map_err(file_error(&out))?;
    let wanted = out.join(source::BEGAN);
    fs::write(&wanted, CONFIGURATION).map_err(file_error(&wanted))?;
    run_make(&tree, &["tinyconfig"], &options, &log, tell)?;
    let configuration = out.join(".config");
    let tiny = fs::read_to_string(&configuration).map_err(file_error(&configuration))?;
    fs::write(&configuration, merged(&tiny, CONFIGURATION)).map_err(file_error(&configuration))?;
    run_make(&tree, &["olddefconfig"], &options, &log, tell)?;
    run_make(&tree, &["linux"], &options, &log, tell)?;
    let release = out.join("include/config/kernel.release");
    Ok(fs::read_to_string(&release).map_err(file_error(&release))?.trim().to_owned())
}

/// The compiler's, the same as long as the patches and the assembler are: make builds everything anew when they change, for patched files
/// keep their times.
fn options(place: &Path, counting: bool, counts: bool) -> Result<[String; 2], BuildError> {
    let patches = if counting { [CHARGE, WORK, COUNT].concat() } else { CHARGE.to_owned() };
    let patches = format!("-DFSTONE_PATCHES=0x{}", &hex(&Sha256::digest(patches))[..12]);
    if !counts {
        return Ok([format!("KCFLAGS={patches}"), format!("KAFLAGS={patches}")]);
    }
    let directory = place.join("as");
    let program = directory.join("as");
    let make = || -> io::Result<()> {
        fs::create_dir_all(&directory)?;
        fs::write(&program, COUNT)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
    };
    make().map_err(file_error(&program))?;
    // A kernel's code calls and loads directly. User-mode Linux asks for indirection, which would be counted, and does not need it.
    // The assembler goes by the tables to see how far the stack reaches. As make sees it from where it builds:
    let assembler = "-B../../as/";
    Ok([
        format!("KCFLAGS=-mcmodel=small -fasynchronous-unwind-tables {assembler} {patches}"),
        format!("KAFLAGS={assembler} {patches}"),
    ])
}

/// Whether what `compiler` makes counts itself. One that has its own assembler, as clang, would build for many minutes and then not link.
fn is_counted(compiler: &str, place: &Path) -> Result<bool, BuildError> {
    let probe = place.join("probe.o");
    let make = || -> io::Result<bool> {
        fs::write(place.join("probe.c"), "int probe(int value) { return value + 1; }\n")?;
        let mut command = Command::new(compiler);
        command.current_dir(place).args(["-Bas/", "-c", "probe.c", "-o", "probe.o"]).stderr(Stdio::null());
        Ok(command.status()?.success() && knows(&fs::read(&probe)?, b"work_functions"))
    };
    Ok(make().map_err(file_error(&probe))?)
}

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

    /// Something that looks like a kernel's sources, in a directory of a store, and builds in no time. What it is built with is
    /// appended to `made`.
    fn sources(place: &Path, release: &str) -> std::path::PathBuf {
        let tree = place.join(format!("linux-{release}"));
        fs::create_dir_all(tree.join("arch/um")).unwrap();
        fs::write(tree.join("Kbuild"), "").unwrap();
        std::os::unix::fs::symlink("../Kbuild", tree.join("arch/link")).unwrap();
        let made = place.join("made");
        let makefile = format!(
            "tinyconfig:\n\t@touch $(O)/.config\nolddefconfig:\n\t@true\nlinux:\n\t@mkdir -p $(O)/include/config\n\
             \t@echo {release} > $(O)/include/config/kernel.release\n\t@echo time-travel=ext: > $(O)/linux\n\
             \t@echo $@ >> {}\n",
            made.display()
        );
        fs::write(tree.join("Makefile"), makefile).unwrap();
        tree
    }

    fn pack(archive: &Path, options: &[&str], directory: &Path, names: &[&str]) {
        let mut tar = Command::new("tar");
        tar.args(options).arg("-cf").arg(archive).arg("-C").arg(directory).args(names);
        assert!(tar.status().unwrap().success(), "{tar:?}");
    }

    #[test]
    fn an_archive_is_built_in_a_place_of_its_own_and_once() {
        if !missing_tools().is_empty() {
            return eprintln!("skipped: the tools to build a kernel are not here");
        }
        let user = tempfile::tempdir().unwrap();
        let tree = sources(user.path(), "9.8.7");
        // Left by whoever built where it was packed.
        fs::create_dir(tree.join("built")).unwrap();
        fs::write(tree.join("built/linux"), "theirs").unwrap();
        let made = || fs::read_to_string(user.path().join("made")).unwrap_or_default().lines().count();
        let packed: [(&str, &[&str], &Path, &str); 4] = [
            ("linux-9.8.7.tar", &[], user.path(), "linux-9.8.7"),
            ("linux-9.8.7.tar.xz", &["--xz"], user.path(), "linux-9.8.7"),
            ("linux.tgz", &["--gzip"], user.path(), "linux-9.8.7"),
            // Without a directory around it.
            ("flat.tar.gz", &["--gzip"], &tree, "."),
        ];
        for (times, (name, options, directory, what)) in packed.into_iter().enumerate() {
            let (store, downloads) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let archive = downloads.path().join(name);
            pack(&archive, options, directory, &[what]);
            let before = fs::read(&archive).unwrap();
            let path = archive.display().to_string();
            let kernel = build(store.path(), &path, None, false, &mut |_| ()).unwrap();
            assert_eq!((kernel.release.as_str(), kernel.flavour), ("9.8.7", Flavour::Exact), "{name}");
            assert_eq!(fs::read_to_string(&kernel.binary).unwrap(), "time-travel=ext:\n", "{name}");
            assert_eq!(made(), times + 1, "{name}");
            let again = build(store.path(), &path, Some("mine"), false, &mut |_| ()).unwrap();
            assert_eq!((again.release.as_str(), &again.binary), ("mine", &kernel.binary), "{name}");
            assert_eq!(made(), times + 1, "{name}: it is cached");
            assert_eq!(fs::read(&archive).unwrap(), before, "{name}");
            assert_eq!(fs::read_dir(downloads.path()).unwrap().count(), 1, "{name}");
            assert_eq!(fs::read_dir(store.path().join(BUILDS)).unwrap().count(), 0, "{name}: sources are gone");
        }

        // Nothing of fstone's fits these sources, so this one counts nothing, whatever was asked for.
        let (store, mut lacks) = (tempfile::tempdir().unwrap(), Vec::new());
        let mut tell = |progress| {
            if let BuildProgress::Unpatched(what, _) = progress {
                lacks.push(what);
            }
        };
        let archive = user.path().join("linux.tar");
        pack(&archive, &[], user.path(), &["linux-9.8.7"]);
        let kernel = build(store.path(), &archive.display().to_string(), None, true, &mut tell).unwrap();
        assert_eq!((kernel.release.as_str(), kernel.counts), ("9.8.7", false));
        assert_eq!(lacks, ["charges system calls", "counts the kernel's work"]);
    }

    #[test]
    fn a_tree_that_changes_while_it_is_built_gives_no_kernel() {
        if !missing_tools().is_empty() {
            return eprintln!("skipped: the tools to build a kernel are not here");
        }
        let back = "cp -p Kbuild was && echo '# more' >> Kbuild && mv was Kbuild";
        for change in ["echo '# more' >> Kbuild", "touch new.c", "rm arch/link", back] {
            let (user, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let tree = sources(user.path(), "9.8.7");
            let makefile = fs::read_to_string(tree.join("Makefile")).unwrap();
            let once = user.path().join("once");
            let edit = format!(
                "\t@test -f {once} || (touch {once} && cd {} && {change})\n\t@echo $@",
                tree.display(),
                once = once.display()
            );
            fs::write(tree.join("Makefile"), makefile.replace("\t@echo $@", &edit)).unwrap();
            let build = || build(store.path(), &tree.display().to_string(), None, false, &mut |_| ());
            let error = build().unwrap_err();
            assert!(matches!(error, BuildError::Changed(_)), "{change}: {error}");
            assert!(error.to_string().ends_with("changed while it was being built; build it again"), "{error}");
            let stored = fs::read_dir(store.path()).unwrap().flatten();
            let names: Vec<_> = stored.map(|entry| entry.file_name()).collect();
            assert_eq!(names, [BUILDS], "{change}");
            let kernel = build().unwrap();
            assert_eq!(fs::read_to_string(&kernel.binary).unwrap(), "time-travel=ext:\n", "{change}");
        }
    }

    /// make goes by times, and all of these files are older than what was built of the first.
    #[test]
    fn trees_of_one_name_are_not_mixed() {
        if !missing_tools().is_empty() {
            return eprintln!("skipped: the tools to build a kernel are not here");
        }
        let (user, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
        let write = |tree: &Path, text: &str| {
            let file = tree.join("new");
            fs::write(&file, text).unwrap();
            fs::File::options().write(true).open(&file).unwrap().set_modified(old).unwrap();
            fs::rename(file, tree.join("a.c")).unwrap();
        };
        let trees = ["before", "after"].map(|name| {
            let place = user.path().join(name);
            let tree = sources(&place, "1.0");
            let makefile = fs::read_to_string(tree.join("Makefile")).unwrap();
            let makefile = makefile.replace("linux:", "linux: $(O)/a.o")
                + "\t@cat $(O)/a.o >> $(O)/linux\n$(O)/a.o: a.c\n\t@cp a.c $@\n";
            fs::write(tree.join("Makefile"), makefile).unwrap();
            write(&tree, name);
            tree
        });
        let built = |tree: &Path| {
            let kernel = build(store.path(), &tree.display().to_string(), None, false, &mut |_| ()).unwrap();
            fs::read_to_string(kernel.binary).unwrap()
        };
        assert_eq!(
            trees.each_ref().map(|tree| built(tree)),
            ["before", "after"].map(|name| format!("time-travel=ext:\n{name}"))
        );
        // One that replaces another and is older than what was built of that.
        write(&trees[0], "later");
        assert_eq!(built(&trees[0]), "time-travel=ext:\nlater");
        assert_eq!(fs::read_dir(store.path().join(BUILDS)).unwrap().count(), 2);
    }

    /// A static function with a part of it apart, one that others know, and the one that switches tasks.
    const ASSEMBLY: &str = "\t.text\n\t.type f, @function\nf:\n\tmovl $1, %eax\n\tret\n\t.type f.cold, @function\nf.cold:\n\tret\n\
                            \t.globl g\n\t.type g, @function\ng:\n\tret\n\t.type __schedule, @function\n__schedule:\n\tret\n";

    #[test]
    fn the_counting_assembler_leaves_nothing_beside_its_input() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("count.pl"), COUNT).unwrap();
        fs::write(at("a.s"), ASSEMBLY).unwrap();
        fs::write(at("victim"), "as it was").unwrap();
        std::os::unix::fs::symlink("victim", at("a.s.counted.s")).unwrap();
        fs::write(at("as"), "#!/bin/sh\ncat > got\nexit 3\n").unwrap();
        fs::set_permissions(at("as"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut perl = Command::new("perl");
        perl.current_dir(place.path()).env("PATH", format!("{}:/usr/bin:/bin", place.path().display()));
        let output = perl.args(["count.pl", "-o", "fs/a.o", "a.s"]).output();
        let Ok(output) = output else { return eprintln!("skipped: there is no perl here") };
        assert_eq!((output.status.code(), &output.stderr[..]), (Some(3), &b""[..]), "the assembler's own");
        let got = fs::read_to_string(at("got")).unwrap();
        assert!(got.contains("addq\t$2, work_instructions(%rip)"), "{got}");
        let functions: Vec<&str> = got.lines().filter(|line| line.contains(":\t.quad 0, 0, 0, ")).collect();
        let of = |line: &str| line.split(", ").skip(3).take(2).collect::<Vec<_>>().join(" ");
        assert_eq!(
            functions.into_iter().map(of).collect::<Vec<_>>(),
            ["f .Lwork_file", "g 0", "__schedule .Lwork_file"]
        );
        assert_eq!(got.matches("\tpushq\t%rdi\n\tcall\twork_charge\n\tpopq\t%rdi\n").count(), 1, "{got}");
        assert!(got.contains(".string \"fs/a.c\""), "{got}");
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "as it was");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 6);
    }

    #[test]
    fn a_compiler_with_its_own_assembler_does_not_count() {
        if !missing_tools().is_empty() {
            return eprintln!("skipped: the tools to build a kernel are not here");
        }
        let place = tempfile::tempdir().unwrap();
        options(place.path(), true, true).unwrap();
        let other = place.path().join("other");
        fs::write(&other, "#!/bin/sh\nshift\nexec gcc \"$@\"\n").unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
        for (compiler, counts) in [("gcc", true), (other.to_str().unwrap(), false)] {
            assert_eq!(is_counted(compiler, place.path()).unwrap(), counts, "{compiler}");
        }
    }

    /// What was built of an archive that did not end is not taken for another one's.
    #[test]
    fn archives_of_one_name_are_not_mixed() {
        if !missing_tools().is_empty() {
            return eprintln!("skipped: the tools to build a kernel are not here");
        }
        let (user, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let archive = user.path().join("linux.tar");
        let build = || build(store.path(), &archive.display().to_string(), None, false, &mut |_| ());
        let half = sources(user.path(), "1.0");
        let makefile = fs::read_to_string(half.join("Makefile")).unwrap();
        fs::write(half.join("Makefile"), makefile.replace("\t@echo $@", "\t@false && echo $@")).unwrap();
        pack(&archive, &[], user.path(), &["linux-1.0"]);
        assert!(matches!(build().unwrap_err(), BuildError::Failed { .. }));
        let left: Vec<_> = fs::read_dir(store.path().join(BUILDS)).unwrap().flatten().collect();
        assert!(left.len() == 1 && left[0].path().join("source/built/linux").is_file(), "{left:?}");
        // The next attempt on the same archive goes on there; another archive does not.
        fs::write(left[0].path().join("source/built/kept"), "").unwrap();
        assert!(matches!(build().unwrap_err(), BuildError::Failed { .. }));
        assert!(left[0].path().join("source/built/kept").is_file());
        sources(user.path(), "2.0");
        pack(&archive, &[], user.path(), &["linux-2.0"]);
        assert_eq!(build().unwrap().release, "2.0");
        assert_eq!(fs::read_dir(store.path().join(BUILDS)).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_archive_of_a_kernel_says_what_it_lacks_and_leaves_nothing() {
        if !missing_tools().is_empty() {
            return eprintln!("skipped: the tools to build a kernel are not here");
        }
        let (user, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let archive = user.path().join("linux.tar");
        let refused = |words: &[&str]| {
            let path = archive.display().to_string();
            let error = build(store.path(), &path, None, false, &mut |_| ()).unwrap_err().to_string();
            assert!(error.contains(&path) && words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
            assert_eq!(fs::read_dir(store.path().join(BUILDS)).unwrap().count(), 0, "{error}");
        };
        fs::write(&archive, "not an archive\n").unwrap();
        refused(&["cannot be unpacked", "does not look like a tar archive", "tar.xz"]);
        fs::write(&archive, "").unwrap();
        refused(&["cannot be unpacked"]);
        fs::write(user.path().join("README"), "").unwrap();
        pack(&archive, &[], user.path(), &["README"]);
        refused(&["has no kernel's sources", "arch/um"]);
        let tree = sources(user.path(), "1.0");
        pack(&archive, &["--gzip"], user.path(), &["linux-1.0"]);
        let whole = fs::read(&archive).unwrap();
        fs::write(&archive, &whole[..whole.len() / 2]).unwrap();
        refused(&["cannot be unpacked", "unexpected end of file"]);

        // Nothing gets out of the place: neither by a name nor through a link.
        let secret = user.path().join("secret");
        fs::write(&secret, "as it was").unwrap();
        pack(&archive, &["-P", "--transform=s,secret,../../../../secret,"], user.path(), &["linux-1.0", "secret"]);
        refused(&["cannot be unpacked", "'..'"]);
        for target in [user.path().to_str().unwrap(), "../.."] {
            let _ = fs::remove_file(tree.join("built"));
            let _ = fs::remove_file(tree.join("out"));
            std::os::unix::fs::symlink(target, tree.join("built")).unwrap();
            pack(&archive, &[], user.path(), &["linux-1.0"]);
            refused(&["built", "leads out", "git archive"]);
            fs::remove_file(tree.join("built")).unwrap();
            std::os::unix::fs::symlink(target, tree.join("out")).unwrap();
            pack(&archive, &[], user.path(), &["linux-1.0"]);
            refused(&["out", "leads out"]);
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), "as it was");
    }

    #[test]
    fn what_is_no_source_is_named() {
        let store = tempfile::tempdir().unwrap();
        let empty = tempfile::tempdir().unwrap();
        if !missing_tools().is_empty() {
            return eprintln!("skipped: the tools to build a kernel are not here");
        }
        for path in [empty.path(), Path::new("/nowhere/linux.tar.xz")] {
            let error =
                build(store.path(), &path.display().to_string(), None, false, &mut |_| ()).unwrap_err().to_string();
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
        let error = build(store.path(), &path, Some("mine"), false, &mut |_| ()).unwrap_err();
        let BuildError::Failed { lines, log, .. } = error else { panic!("{error}") };
        assert!(lines.contains("half.c:1: error: no such thing"), "{lines}");
        assert!(fs::read_to_string(log).unwrap().contains("half.c"));
        let mut left: Vec<_> = fs::read_dir(tree.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["Kbuild", "Makefile", "arch"]);
    }
}

//! `fstone age`: the aged filesystems that are kept, and profiles of living trees.

use super::Context;
use crate::{
    args::AgeAction,
    documents,
    exit::Exit,
    paths,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_analysis::{
    Scale,
    text::{counted, line},
    when,
};
use fstone_files::OwnDirectory;
use fstone_lab::{
    filesystem,
    fragmentation::{self, FREE, OTHER, QUARTERS, REGIONS_OF},
    stop::Stop,
    trial::{
        KeptImage, TO_CLEAN, aged_directories, forget_directory, kept_images, old_image, refusal,
        remove_aged_directory, remove_image, state_of_aged_directory,
    },
};
use fstone_model::{
    age::{Class, Depth, OldImage, Past, Profile},
    metric::Figure,
    units::format_bytes,
};
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write as _,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

const BAR: f64 = 40.0;

pub(crate) fn age(_: &Context, action: &AgeAction) -> CommandResult {
    let directory = paths::aged();
    let images = || kept_images(&directory);
    match action {
        AgeAction::List => {
            tell_refusal(&directory);
            terminal::print(&(listed(&images(), &directory) + &in_place(&aged_directories(&directory))));
        }
        AgeAction::Show { name, svg } => {
            let (title, said, figures, warnings) = if name.contains('/') {
                let state = state_of_aged_directory(Path::new(name));
                let (age, said, figures) = match state {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing(name)),
                    state => state.with_context(|| format!("cannot show {name}")).or_exit(Exit::BadInput)?,
                };
                (format!("{name}: {}", Past::from(age).describe()), said, figures, Vec::new())
            } else {
                let image = find(&images(), name)?;
                let title = format!("{}: {}", image.name(), life(&image));
                let (_, result, warnings) = image.past.ok_or_else(|| Failure::new(Exit::BadInput, title.clone()))?;
                let said = result
                    .iter()
                    .flat_map(|result| &result.commands)
                    .map(|command| format!("{}\n", command.output_tail));
                (title, said.collect(), result.iter().flat_map(|result| result.figures.clone()).collect(), warnings)
            };
            terminal::print(&if *svg { picture(&said) } else { shown(&title, &said, &figures, &warnings) });
        }
        AgeAction::Rm { all: true, .. } => {
            let exit = remove(&images());
            terminal::print(&in_place(&aged_directories(&directory)));
            return Ok(exit);
        }
        AgeAction::Rm { names, .. } if names.iter().any(|name| name.contains('/')) => {
            let remove = |name: &str| {
                let removed = remove_aged_directory(Path::new(name));
                match &removed {
                    Ok(()) => drop(forget_directory(&directory, Path::new(name))),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        // Of a disk that will not be there any more.
                        if forget_directory(&directory, Path::new(name)) {
                            return Ok(());
                        }
                    }
                    Err(_) => {}
                }
                removed
            };
            let removed = names.iter().map(|name| (name.clone(), remove(name)));
            return Ok(terminal::tell_removed(removed));
        }
        AgeAction::Rm { names, .. } => {
            let found: Result<Vec<_>, _> = names.iter().map(|name| find(&images(), name)).collect();
            return Ok(remove(&found?));
        }
        AgeAction::Learn { directory, image, output } => {
            let text = match (directory, image) {
                (_, Some(image)) => learn_image(image)?,
                (Some(directory), None) => {
                    let (profile, unseen) = learn(directory)?;
                    if unseen > 0 {
                        terminal::tell(&format!("{} could not be read.", counted(unseen, "file or directory")));
                    }
                    written(&profile) + &extents(directory)
                }
                (None, None) => unreachable!("the arguments require one of them"),
            };
            documents::deliver(output.as_deref(), &text)?;
        }
    }
    Ok(Exit::Success)
}

fn find(images: &[KeptImage], name: &str) -> Result<KeptImage, Failure> {
    let found = images.iter().find(|image| image.name() == name.trim_end_matches(".aged"));
    found.cloned().ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Failure {
    Failure::new(Exit::BadInput, format!("there is no aged filesystem {name:?}; `fstone age list` lists them"))
}

/// Removes kept images and says so.
pub(super) fn remove(images: &[KeptImage]) -> Exit {
    terminal::tell_removed(images.iter().map(|image| (image.name(), remove_image(image))))
}

/// "2 aged filesystems, 1.5 GiB"; `None` if there is none.
pub(super) fn summary(images: &[KeptImage]) -> Option<String> {
    let bytes = images.iter().map(|image| image.bytes).sum();
    (!images.is_empty()).then(|| format!("{}, {}", counted(images.len(), "aged filesystem"), format_bytes(bytes)))
}

fn listed(images: &[KeptImage], directory: &Path) -> String {
    let Some(summary) = summary(images) else {
        return format!("No aged filesystems are kept in {}.\n", directory.display());
    };
    let mut text = format!("{summary}, in {}; the first goes first when there is no room:\n", directory.display());
    for image in images {
        let since = image.used.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let (name, bytes) = (image.name(), format_bytes(image.bytes));
        let _ = writeln!(text, "  {name:<26} {bytes:>10}  used {}  {}", when::iso(since), life(image));
    }
    text
}

/// Says why nothing is listed, if that is so.
pub(super) fn tell_refusal(directory: &Path) {
    if let Some(words) = refusal(directory) {
        terminal::tell(&format!("What is aged is not listed: {}", line(&words)));
    }
}

/// What is listed behind the images; nothing where there is none.
pub(super) fn in_place(directories: &[(PathBuf, bool)]) -> String {
    let mut text = String::new();
    for (directory, answers) in directories {
        let silent = if *answers { "" } else { " (its filesystem does not answer)" };
        let _ = writeln!(text, "  {}{silent}", line(&directory.display().to_string()));
    }
    match text.is_empty() {
        true => text,
        false => format!("Aged in place; `fstone age rm DIRECTORY` removes one:\n{text}"),
    }
}

/// "ext4 of 20 GiB with sectors of 4 KiB, agrawal, 80 % in use, 10 overwrites, seed 7, 6.1.0-18-amd64"
fn life(image: &KeptImage) -> String {
    let Some((life, ..)) = &image.past else {
        return "no use: damaged, or made by another build of fstone".to_owned();
    };
    let mut options = life.filesystem.mkfs.join(" ");
    if !life.filesystem.mount.is_empty() {
        let _ = write!(options, " -o {}", life.filesystem.mount);
    }
    let options = if options.is_empty() { options } else { format!(" ({})", options.trim()) };
    let build = if image.is_of_this_build { "" } else { ", another build's" };
    line(&format!(
        "{}{options} of {}, {}, {}{build}",
        life.filesystem.kind,
        life.device(),
        life.age.describe(),
        life.kernel.split(' ').next().unwrap_or_default()
    ))
}

/// Targets beside what was reached, and a histogram of free extents.
fn shown(title: &str, said: &str, figures: &[Figure], warnings: &[String]) -> String {
    let mut text = format!("{title}\n\n");
    for line in said.lines() {
        match line.split_once(' ') {
            Some(("free", extents)) => text += &histogram(extents.trim_start_matches("extents from")),
            Some((REGIONS_OF, regions)) => text += &map(regions),
            _ => text += &format!("{line}\n"),
        }
    }
    text.push('\n');
    for figure in figures {
        let _ = writeln!(
            text,
            "{:<20} {}",
            figure.metric,
            Scale::of_one(figure.unit, figure.value).with_unit(figure.value)
        );
    }
    text.extend(warnings.iter().map(|words| format!("{words}\n")));
    text
}

/// The owners of the regions of a disk, with their colours.
const OWNERS: [(char, &str, &str); 6] = [
    (QUARTERS[0], "#0b3c6f", "the oldest quarter of the files"),
    (QUARTERS[1], "#2f7ab8", "the second"),
    (QUARTERS[2], "#8fc1e3", "the third"),
    (QUARTERS[3], "#f0a04b", "the youngest"),
    (OTHER, "#8a8a8a", "metadata; free, too, where the filesystem does not list that"),
    (FREE, "#f2f2f2", "free"),
];
const REGIONS_IN_A_LINE: usize = 64;

fn lines_of(regions: &str) -> Vec<String> {
    let regions: Vec<char> = regions.chars().collect();
    regions.chunks(REGIONS_IN_A_LINE).map(|line| line.iter().collect()).collect()
}

fn map(regions: &str) -> String {
    let owners = OWNERS.map(|(owner, _, name)| format!("{owner} {name}")).join(", ");
    let lines: String = lines_of(regions).iter().map(|line| format!("  {line}\n")).collect();
    format!("{REGIONS_OF} of the disk, by who has most of them: {owners}\n{lines}")
}

/// The same as an SVG.
fn picture(said: &str) -> String {
    const SIDE: usize = 10;
    let regions = said.lines().filter_map(|line| line.split_once(' ')).find(|(key, _)| *key == REGIONS_OF);
    let lines = lines_of(regions.map_or("", |(_, regions)| regions));
    let below = lines.len() * SIDE;
    let (width, height) = (REGIONS_IN_A_LINE * SIDE, below + OWNERS.len() * 2 * SIDE + SIDE);
    let square = |x: usize, y: usize, width: usize, colour: &str| {
        format!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{SIDE}\" fill=\"{colour}\"/>\n")
    };
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Regions of the disk, by who has most of them</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (y, line) in lines.iter().enumerate() {
        let owners: Vec<char> = line.chars().collect();
        let mut x = 0;
        for run in owners.chunk_by(|one, other| one == other) {
            let colour = OWNERS.iter().find(|(owner, ..)| *owner == run[0]).map_or("#ffffff", |(_, colour, _)| colour);
            text += &square(x * SIDE, y * SIDE, run.len() * SIDE, colour);
            x += run.len();
        }
    }
    for (at, (_, colour, name)) in OWNERS.iter().enumerate() {
        let y = below + SIDE + at * 2 * SIDE;
        text += &square(0, y, SIDE, colour);
        let _ = writeln!(text, "<text x=\"{}\" y=\"{}\">{name}</text>", 2 * SIDE, y + SIDE);
    }
    text + "</svg>\n"
}

/// " 4 KiB: 12; 8 KiB: 3;" as bars.
fn histogram(extents: &str) -> String {
    let classes: Vec<(&str, f64)> = extents
        .split(';')
        .filter_map(|class| class.trim().rsplit_once(": "))
        .filter_map(|(from, count)| Some((from, count.parse().ok()?)))
        .collect();
    let most = classes.iter().map(|class| class.1).fold(1.0, f64::max);
    let mut text = "free extents, by their length from\n".to_owned();
    for (from, count) in classes {
        let _ = writeln!(text, "  {from:>8} {count:>8}  {}", "▆".repeat((count / most * BAR).ceil() as usize));
    }
    text
}

/// Sizes are by powers of four, as in the profiles of Geriatrix, ages by what people call a time.
const SMALLEST_BYTES: f64 = 8.0;
const HOURS: [f64; 9] = [1.0, 4.0, 24.0, 168.0, 720.0, 2160.0, 8760.0, 26_280.0, 87_600.0];
/// More is not taken: the limits of profiles.
const DEEPEST: u32 = 99;
const MOST_DIRECTORIES: u32 = 100_000;

/// The profile of the files below a directory, on its filesystem; links are not followed. And how much could not be read.
fn learn(root: &Path) -> Result<(Profile, usize), Failure> {
    let failed = || format!("cannot learn from {}", root.display());
    let device = fs::metadata(root).with_context(failed).or_exit(Exit::BadInput)?.dev();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let (mut sizes, mut ages): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut depths: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    let (mut linked, mut unseen) = (HashSet::new(), 0);
    let mut directories = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = directories.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(error).with_context(failed).or_exit(Exit::BadInput),
            Err(_) => {
                unseen += 1;
                continue;
            }
        };
        for entry in entries {
            let Ok((path, found)) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))) else {
                unseen += 1;
                continue;
            };
            // Files of an overlay are on other devices, but its directories are on its own.
            if found.dev() != device && (found.is_dir() || is_mounted(&path)) {
                continue;
            }
            if found.is_dir() {
                depths.entry(DEEPEST.min(depth + 1)).or_default().1 += 1;
                directories.push((path, depth + 1));
            } else if found.is_file() && (found.nlink() == 1 || linked.insert((found.dev(), found.ino()))) {
                sizes.push(found.len() as f64);
                ages.push((now - found.mtime() as f64).max(0.0) / 3600.0);
                depths.entry(DEEPEST.min(depth)).or_default().0 += 1;
            }
        }
    }
    let bounds = std::iter::once(0.0).chain((0..).map(|power| SMALLEST_BYTES * 4f64.powi(power)));
    if sizes.is_empty() {
        return Err(Failure::new(Exit::BadInput, format!("{}: there are no files below it", failed())));
    }
    let profile = Profile {
        name: root.display().to_string(),
        sizes: classes(&sizes, bounds.take_while(|bound| *bound < 1e15)),
        ages: classes(&ages, HOURS.into_iter()),
        depths: depths
            .into_iter()
            .map(|(depth, (files, directories))| Depth {
                depth,
                weight: f64::from(files),
                directories: directories.min(MOST_DIRECTORIES),
            })
            .collect(),
        ..Profile::default()
    };
    match profile.check() {
        Ok(()) => Ok((profile, unseen)),
        Err(why) => Err(Failure::new(Exit::BadInput, format!("{}: {why}", failed()))),
    }
}

/// What is mounted in a namespace that ends with the program in it, however that ends.
const LEARN_MOUNTED: &str = r#"mount -t "$1" -o "$4" -- "$2" "$3" && exec "$0" age learn "$3""#;
const MOUNTED: &str = "learnt-";

fn learn_image(image: &Path) -> Result<String, Failure> {
    let cannot = || format!("cannot learn from {}", image.display());
    let OldImage { file, holds, .. } = old_image(image).with_context(cannot).or_exit(Exit::BadInput)?;
    if holds.is_empty() {
        return Err(Failure::new(Exit::BadInput, format!("{}: no filesystem was recognised in it", cannot())));
    }
    if !rustix::process::geteuid().is_root() {
        let cure = "run it with sudo, or learn from a directory where it is mounted";
        return Err(Failure::new(Exit::CannotHere, format!("{}: it is mounted for that, as root; {cure}", cannot())));
    }
    let cache = paths::own_cache();
    paths::create_in_own_cache(&cache).with_context(cannot).or_exit(Exit::LabFailed)?;
    OwnDirectory::remove_left(&cache, MOUNTED);
    let place = OwnDirectory::make(&cache, MOUNTED).with_context(cannot).or_exit(Exit::LabFailed)?;
    let program = std::env::current_exe().with_context(cannot).or_exit(Exit::LabFailed)?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--", "sh", "-c", LEARN_MOUNTED]).arg(program).args([&holds, &file]).arg(place.path());
    // What it is a copy of may be mounted.
    let option = filesystem::find(&holds).and_then(filesystem::Filesystem::option_of_copies);
    command.arg(option.map_or_else(|| "ro,loop".to_owned(), |option| format!("ro,loop,{option}")));
    let output = command.output().with_context(cannot).or_exit(Exit::LabFailed)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&place.path().display().to_string(), &file);
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let words = text(&output.stderr);
    let cure = format!("if it was not unmounted: {TO_CLEAN}");
    Err(Failure::new(Exit::CannotHere, format!("{}: {}; {cure}", cannot(), words.trim())))
}

/// For root, who may look at where files are on the device, as comments.
fn extents(root: &Path) -> String {
    let counted = rustix::process::geteuid().is_root().then(|| fragmentation::count(root, None, &Stop::default()));
    let Some(Ok(counted)) = counted else { return String::new() };
    let figures = counted.figures().into_iter().map(|figure| format!("\n# {}: {:.3}", figure.metric, figure.value));
    let free = fragmentation::free_extents(root).map(|free| format!("\n# {}", fragmentation::free_space(&free).2));
    figures.chain(free).chain(["\n".to_owned()]).collect()
}

/// How many values are in each class up to the largest value, which ends the last one.
fn classes(values: &[f64], bounds: impl Iterator<Item = f64>) -> Vec<Class> {
    let largest = values.iter().copied().fold(0.0, f64::max);
    let mut classes: Vec<Class> =
        bounds.take_while(|bound| *bound < largest).map(|up_to| Class { up_to, weight: 0.0 }).collect();
    classes.push(Class { up_to: if largest > 0.0 { largest.ceil() } else { 1.0 }, weight: 0.0 });
    for value in values {
        let class = fstone_model::age::class_of(&classes, *value);
        classes[class].weight += 1.0;
    }
    let empty = classes.iter().take_while(|class| class.weight == 0.0).count().saturating_sub(1);
    classes.split_off(empty.min(classes.len() - 1))
}

fn written(profile: &Profile) -> String {
    let class = |class: &Class| format!("[{}, {}]", class.up_to, class.weight);
    let depth = |depth: &Depth| format!("[{}, {}, {}]", depth.depth, depth.weight, depth.directories);
    let rows = |rows: Vec<String>| format!("[{}]", rows.join(", "));
    format!(
        "# The files below {}, as fstone age learn found them.\n\n# [bytes, files]\nsizes = {}\n\n# [hours, files]\nages = {}\n\n\
         # [depth, files, directories]\ndirectories = {}\n",
        line(&profile.name),
        rows(profile.sizes.iter().map(class).collect()),
        rows(profile.ages.iter().map(class).collect()),
        rows(profile.depths.iter().map(depth).collect())
    )
}

/// Whether a file is one that is mounted there.
fn is_mounted(path: &Path) -> bool {
    let facts = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    facts.is_ok_and(|facts| facts.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_learnt_from_a_tree() {
        let place = tempfile::tempdir().expect("a directory");
        let path = |name: &str| place.path().join(name);
        fs::create_dir_all(path("a/b")).expect("made");
        for (name, bytes) in [("top", 5000), ("a/one", 0), ("a/two", 100), ("a/b/three", 9000)] {
            fs::write(path(name), vec![0; bytes]).expect("written");
        }
        fs::hard_link(path("top"), path("a/again")).expect("linked");
        std::os::unix::fs::symlink("/etc", path("link")).expect("linked");
        let (profile, unseen) = learn(place.path()).expect("learnt");
        assert_eq!(unseen, 0);
        let counts = |classes: &[Class]| -> Vec<(f64, f64)> {
            classes.iter().filter(|class| class.weight > 0.0).map(|class| (class.up_to, class.weight)).collect()
        };
        assert_eq!(counts(&profile.sizes), [(0.0, 1.0), (128.0, 1.0), (8192.0, 1.0), (9000.0, 1.0)]);
        assert_eq!(counts(&profile.ages), [(1.0, 4.0)]);
        let depths: Vec<_> = profile.depths.iter().map(|one| (one.depth, one.weight, one.directories)).collect();
        assert_eq!(depths, [(0, 1.0, 0), (1, 2.0, 1), (2, 1.0, 1)]);
        assert!(written(&profile).contains("directories = [[0, 1, 0], [1, 2, 1], [2, 1, 1]]"), "{}", written(&profile));
        let empty = tempfile::tempdir().expect("a directory");
        assert!(learn(empty.path()).is_err() && learn(&path("none")).is_err());
    }

    #[test]
    fn files_of_an_overlay_are_its_own() {
        let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let lower = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let [upper, work, at] = ["upper", "work", "at"].map(|name| place.path().join(name));
        for made in [&upper, &work, &at] {
            fs::create_dir(made).expect("made");
        }
        fs::write(lower.path().join("below"), "1").expect("written");
        fs::write(upper.join("above"), "2").expect("written");
        let options =
            format!("lowerdir={},upperdir={},workdir={}", lower.path().display(), upper.display(), work.display());
        let mounted = Command::new("mount").args(["-t", "overlay", "overlay", "-o", &options]).arg(&at).status();
        if !mounted.is_ok_and(|status| status.success()) {
            eprintln!("skipped: no overlay can be mounted");
            return;
        }
        let learnt = learn(&at).map(|(profile, unseen)| (profile.depths[0].weight, unseen));
        let unmounted = Command::new("umount").arg(&at).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
        assert_eq!(learnt.expect("learnt"), (2.0, 0));
    }

    #[test]
    fn regions_are_lines_and_runs() {
        let regions = format!("11{}{FREE}", OTHER.to_string().repeat(REGIONS_IN_A_LINE - 1));
        assert!(map(&regions).ends_with(&format!("\n  11{}\n  #.\n", "#".repeat(REGIONS_IN_A_LINE - 2))), "{regions}");
    }

    #[test]
    fn free_extents_are_bars() {
        let bars = histogram(" 4 KiB: 12; 8 KiB: 3;");
        assert!(bars.contains("4 KiB       12  ") && bars.lines().count() == 3, "{bars}");
    }
}

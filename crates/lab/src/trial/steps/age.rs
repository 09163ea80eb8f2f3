//! Ageing as a step, and how the state that was reached compares with its targets.

use super::Call;
use crate::{
    events::LoadProgress,
    fragmentation::{self, FREE, Fragmentation, QUARTERS, REGIONS_OF},
    meters::{KernelWork, Meters},
    place::{device::ScratchDevice, holder::boot_id},
    stop::Stop,
    trial::{
        aged::{note_directory, stamp},
        measure::of_interval,
        record::{Halt, StepReport, failed},
        session::{OnProgress, Session},
    },
};
use fstone_engine::age::{AgeError, Held, Journal, JournalError, Lived, age, is_made};
use fstone_files::{FileIdentity, Owner, first_other, open_new_directory, remove_tree, remove_tree_in};
use fstone_model::{
    Step,
    age::{AGED_DIRECTORY, Age, Past, Profile, TOLERANCE, class_of, compare, weights},
    metric::{Figure, catalog},
    outcome::{Outcome, Reason},
    result::CommandRecord,
    units::{format_bytes, nanoseconds, percent},
};
use fstone_sandbox::agent::is_exact;
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};
use std::{
    fs::File,
    io,
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::Path,
    time::Instant,
};

/// Removes what ageing left beneath a directory.
///
/// # Errors
/// If it is something else, another user's, has what ageing did not make, or a process ages it or measures on it; as [`remove_tree`].
pub fn remove_aged_directory(path: &Path) -> io::Result<()> {
    remove_held(path, &Journal::hold(path).map_err(io::Error::other)?)
}

fn remove_held(path: &Path, held: &Held) -> io::Result<()> {
    // Before the journal, without which a removal that was interrupted could not be made again.
    remove_files(held).map_err(|error| match error {
        JournalError::System { cause } => cause,
        error => io::Error::other(format!("{error}; move it away")),
    })?;
    // By what is held: another directory may have taken its name.
    remove_tree(path, FileIdentity::of(&held.directory().metadata()?))
}

/// Removes the files that were aged, unless there are others beside or below them.
fn remove_files(held: &Held) -> Result<(), JournalError> {
    let directory = held.directory().as_fd();
    match first_other(directory, &is_made)? {
        Some(path) => Err(JournalError::Others { path }),
        None => {
            held.begin_removal()?;
            Ok(remove_tree_in(directory, AGED_DIRECTORY)?)
        }
    }
}

/// The journal of a directory, and why what was there was removed.
fn taken_up(place: &Path, key: &str, build: &str, boot: &str) -> Result<(Journal, Option<&'static str>), JournalError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::open(place, flags, Mode::empty()) {
        Err(Errno::NOENT) => open_new_directory(place)?,
        Err(Errno::LOOP | Errno::NOTDIR | Errno::ACCESS) => return Err(JournalError::Foreign),
        opened => File::from(opened?),
    };
    match Journal::open(directory, place, key, build, boot) {
        Err(JournalError::Lost { held, why }) => {
            remove_files(&held)?;
            Ok((Journal::begin(held, key, build, boot)?, Some(why)))
        }
        opened => Ok((opened?, None)),
    }
}

impl Session {
    /// Ages what is no copy of an old image, measures the state, and makes the calls that follow.
    pub(super) fn age(
        &mut self,
        step: &Step,
        past: &Past,
        place: &Path,
        then: &[Call<'_>],
        progress: OnProgress<'_>,
        report: &mut StepReport,
    ) -> Result<(), Halt> {
        let (mut argv, mut words) = (vec!["age".to_owned(), past.name().to_owned()], String::new());
        let started = Instant::now();
        let mut journal = None;
        let wanted = match past {
            Past::Aged(wanted) => Some(wanted),
            Past::Image(_) => None,
        };
        if let Some(wanted) = wanted {
            // The executor chose it.
            let seed = wanted.seed.unwrap_or_default();
            argv.push(format!("seed={seed}"));
            if self.device.is_none() {
                journal = Some(self.journal(step, wanted, seed, place)?);
            }
            let lived = self.live(step, wanted, seed, place, journal.as_mut(), progress, report);
            if let (Err(Halt::Outcome(Outcome::Refused(_))), Some(journal)) = (&lived, &journal) {
                // Nothing was made, and what was found may have changed when it is tried again.
                remove_held(place, journal.held()).map_err(|error| failed(step, error.to_string()))?;
            }
            let Lived { operations, written_bytes, planned_bytes, overwritten_bytes } = lived?;
            let [written, planned] = [written_bytes, planned_bytes as u64].map(format_bytes);
            words = format!("{operations} operations wrote {written}, target {planned}\n");
            if (written_bytes as f64 / planned_bytes - 1.0).abs() > TOLERANCE {
                self.warn(format!("{}: missed its target: {written} written, target {planned}", step.name));
            }
            if let Some((reached, miss)) = overwritten(wanted, written_bytes, overwritten_bytes) {
                words.push_str(&format!("{reached}\n"));
                miss.into_iter().for_each(|miss| self.warn(format!("{}: missed its target: {miss}", step.name)));
            }
        }
        let (duration_ns, at) = (nanoseconds(started.elapsed()), report.commands.len());
        if wanted.is_some() && self.device.as_ref().is_some_and(|device| device.purpose().is_of_an_image()) {
            // What was removed takes room in the image, and in each copy, where a fresh image has none.
            if let Err(error) = self.machine.mounter.trim(place) {
                self.warn(format!(
                    "{}: free space of the image is allocated on the host, unlike that of a fresh one: FITRIM: {error}",
                    step.name
                ));
            }
        }
        if wanted.is_some() {
            // What is only in memory, such as what is allocated for files that may grow, is no part of the state.
            self.make_all(step, then, false, report)?;
        }
        let (state, counted) = State::of(place, wanted, &self.machine.stop).map_err(|words| failed(step, words))?;
        if let Some(held) = journal.map(Journal::into_held) {
            if !held.is_at(place) {
                return Err(failed(step, format!("{}: another directory has taken its place", place.display())));
            }
            // Until the trial ends, others do not remove it.
            self.aged.push(held);
        }
        report.figures.extend(state.figures);
        self.count(step, &counted, report)?;
        words.push_str(&state.words);
        report.commands.insert(at, CommandRecord { argv, status: None, duration_ns, output_tail: words });
        for miss in state.misses {
            self.warn(format!("{}: {miss}", step.name));
        }
        // mkfs, after which the superblock is read otherwise, did not run for a copy of an image.
        self.make_all(step, then, wanted.is_none(), report)
    }

    fn make_all(
        &mut self,
        step: &Step,
        calls: &[Call<'_>],
        reads_superblock: bool,
        report: &mut StepReport,
    ) -> Result<(), Halt> {
        for call in calls {
            let _held = self.prepare(call)?;
            self.make(step, call, report)?;
            if reads_superblock && matches!(call, Call::Unmount(_)) {
                self.read_superblock();
            }
        }
        Ok(())
    }

    /// The journal of what is aged beneath a directory.
    fn journal(&mut self, step: &Step, wanted: &Age, seed: u64, place: &Path) -> Result<Journal, Halt> {
        let failed = |error: io::Error| failed(step, format!("{}: {error}", place.display()));
        let refused = |error: &JournalError, cure: String| {
            let words = format!("{}: {error}", place.display());
            Halt::Outcome(Outcome::Refused(Reason::new(&step.name, words).with_cure(cure)))
        };
        let key =
            serde_json::to_string(&Age { seed: Some(seed), ..wanted.clone() }).map_err(|error| failed(error.into()))?;
        let build = std::env::current_exe().ok().and_then(|program| stamp(&program)).unwrap_or_default();
        // With sudo it is root's.
        let sudo = if Owner::caller().is_some() { "sudo " } else { "" };
        let remove = format!("{sudo}fstone age rm {}", place.display());
        // What was opened with the trial is opened once more.
        self.aged.retain(|held| !held.is_at(place));
        // Before it is there: a run that is killed leaves it, too.
        if let Some(notes) = &self.notes {
            note_directory(notes, place);
        }
        let (journal, lost) = taken_up(place, &key, &build, &boot_id()).map_err(|error| match error {
            JournalError::System { cause } => failed(cause),
            JournalError::Copy | JournalError::Other | JournalError::Build | JournalError::Lost { .. } => {
                refused(&error, remove.clone())
            }
            JournalError::Busy => refused(&error, "wait for the other run".to_owned()),
            JournalError::Foreign | JournalError::Others { .. } => refused(&error, "move it away".to_owned()),
            JournalError::Mounted => refused(&error, format!("umount {}", place.display())),
        })?;
        if let Some(why) = lost {
            self.warn(format!("{}: {why}; it began anew", step.name));
        }
        let there = place.display();
        if journal.ended().is_none() && journal.done() > 0 {
            self.warn(format!(
                "{}: it went on where it was interrupted, after {} operations",
                step.name,
                journal.done()
            ));
        }
        self.warn(format!("{}: {there} stays, and repeats and later runs take it up; {remove} removes it", step.name));
        Ok(journal)
    }

    #[expect(clippy::too_many_arguments, reason = "the step's, and the journal")]
    fn live(
        &self,
        step: &Step,
        wanted: &Age,
        seed: u64,
        place: &Path,
        journal: Option<&mut Journal>,
        progress: OnProgress<'_>,
        report: &mut StepReport,
    ) -> Result<Lived, Halt> {
        let root = match &journal {
            Some(journal) => journal.held().directory().try_clone(),
            None => File::open(place),
        };
        let root = root.map_err(|error| failed(step, format!("open {}: {error}", place.display())))?;
        // Of what was aged earlier, at most the remainder is measured.
        let is_whole = journal.as_ref().is_none_or(|journal| journal.ended().is_none() && journal.done() == 0);
        let meters = Meters::begin(self.device.as_ref().map(ScratchDevice::path));
        let ended = age(wanted, root.as_fd(), seed, journal, !is_exact(), self.machine.stop.flag(), &|now| {
            progress(LoadProgress::of_ageing(now.elapsed, now.share, now.operations, now.written_bytes));
        });
        let readings = meters.end();
        if is_whole {
            report.figures = of_interval(&readings);
            report.commands.extend(readings.work.as_ref().map(KernelWork::record));
        }
        ended.map_err(|error| match error {
            AgeError::Interrupted => Halt::Stopped(step.name.clone()),
            AgeError::Impossible(words) => Halt::Outcome(Outcome::Refused(Reason::new(&step.name, words))),
            AgeError::Call { .. } | AgeError::Journal { .. } => failed(step, error.to_string()),
        })
    }
}

/// What a profile says of overwriting beside what was reached, and the same with a cure if that is too far from it.
fn overwritten(wanted: &Age, written_bytes: u64, overwritten_bytes: u64) -> Option<(String, Option<String>)> {
    let target = wanted.profile.overwritten?;
    let share = overwritten_bytes as f64 / written_bytes.max(1) as f64;
    let reached = format!("overwritten in place {:.1} %, target {}", share * 100.0, percent(target));
    let miss = ((share / target - 1.0).abs() > TOLERANCE).then(|| {
        // Each file is written once before a part of it is overwritten.
        let needed = wanted.utilization / (1.0 - target);
        let cure =
            (wanted.overwrites < needed).then(|| format!("; overwrites = {} can reach it", (needed - 1e-6).ceil()));
        format!("{reached}{}", cure.unwrap_or_default())
    });
    Some((reached, miss))
}

struct State {
    figures: Vec<Figure>,
    /// Targets beside what was reached, and where free space is.
    words: String,
    /// What is further from its target than [`TOLERANCE`].
    misses: Vec<String>,
}

impl State {
    /// Without targets, of all files.
    fn of(place: &Path, wanted: Option<&Age>, stop: &Stop) -> Result<(Self, Fragmentation), String> {
        let profile = wanted.map(|wanted| &wanted.profile);
        let root = if wanted.is_some() { place.join(AGED_DIRECTORY) } else { place.to_owned() };
        let classes = |count: fn(&Profile) -> usize| vec![0; profile.map_or(0, count)];
        let (mut sizes, mut ages) = (classes(|profile| profile.sizes.len()), classes(|profile| profile.ages.len()));
        let (mut depths, mut files) = (classes(|profile| profile.depths.len()), 0u64);
        let now = std::fs::metadata(&root).map_err(|error| format!("stat {}: {error}", root.display()))?.mtime();
        // When each file was changed, and where it is.
        let (mut changes, mut pieces) = (Vec::new(), Vec::new());
        let counted = fragmentation::count_seeing(&root, None, stop, &mut |path, metadata, places| {
            files += 1;
            changes.push(metadata.mtime());
            pieces.extend(places.iter().map(|place| (metadata.mtime(), *place)));
            let Some(profile) = profile else { return };
            sizes[class_of(&profile.sizes, metadata.len() as f64)] += 1;
            let hours = (now - metadata.mtime()).max(0) as f64 / 3600.0;
            ages[class_of(&profile.ages, hours)] += 1;
            let depth = path.strip_prefix(&root).map_or(0, |below| below.components().count() - 1);
            let class = profile.depths.iter().position(|class| class.depth as usize == depth);
            depths[class.unwrap_or(0)] += 1;
        })
        .map_err(|error| error.to_string())?;
        let space = rustix::fs::statvfs(place).map_err(|error| format!("statvfs: {error}"))?;
        let used = space.f_blocks.saturating_sub(space.f_bfree) as f64;
        let reached = used / (used + space.f_bavail as f64);
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let figures = vec![catalog::UTILIZATION.figure(reached * 100.0), catalog::AGED_FILES.figure(files as f64)];
        let mut state = Self { figures, words: format!("utilization {}", percent(reached)), misses: Vec::new() };
        if let Some(Age { utilization, .. }) = wanted {
            state.words.push_str(&format!(", target {}", percent(*utilization)));
            if (reached / utilization - 1.0).abs() > TOLERANCE {
                state.misses.push(format!("missed its target: {}", state.words));
            }
        }
        let distributions = profile.map(|profile| {
            [
                ("sizes", catalog::SIZES_CHI, sizes, weights(&profile.sizes)),
                ("ages", catalog::AGES_CHI, ages, weights(&profile.ages)),
                ("depths", catalog::DEPTHS_CHI, depths, profile.depth_weights()),
            ]
        });
        for (what, metric, counts, weights) in distributions.into_iter().flatten() {
            let (chi, elsewhere) = compare(&counts, &weights);
            state.figures.push(metric.figure(chi));
            let words = format!("{what}: {} of the files in another class than in the profile", percent(elsewhere));
            state.words.push_str(&format!("\n{words}, χ² {chi:.1}"));
            if elsewhere > TOLERANCE {
                state.misses.push(format!("missed its target: {words}"));
            }
        }
        changes.sort_unstable();
        let quarters = [1, 2, 3].map(|quarter| changes.get(changes.len() * quarter / 4).copied());
        let quarter = |change| QUARTERS[quarters.iter().filter(|from| from.is_some_and(|from| from <= change)).count()];
        let mut owned: Vec<_> = pieces.into_iter().map(|(change, place)| (quarter(change), place)).collect();
        if let Some(free) = fragmentation::free_extents(place) {
            let (count, bytes, words) = fragmentation::free_space(&free);
            state.figures.push(catalog::FREE_EXTENTS.figure(count as f64));
            if count > 0 {
                state.figures.push(catalog::MEAN_FREE_EXTENT.figure(bytes as f64 / count as f64));
            }
            state.words.push_str(&format!("\n{words}"));
            owned.extend(free.into_iter().map(|place| (FREE, place)));
        }
        let size = space.f_blocks.saturating_mul(space.f_frsize);
        if let (Some(chunks), Some(allocated)) = (fragmentation::chunks(place), fragmentation::allocated(place)) {
            owned = fragmentation::on_device(&owned, &allocated, &chunks, size);
        }
        state.words.push_str(&format!("\n{REGIONS_OF} {}", fragmentation::regions(&owned, size)));
        Ok((state, counted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::age::{Class, Depth};
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use std::{
        fs,
        os::unix::fs::symlink,
        process::Command,
        sync::{
            Barrier,
            atomic::{AtomicBool, Ordering},
        },
    };

    /// A directory that was aged in another boot than "boot 2".
    fn aged(place: &Path) {
        drop(taken_up(place, "key", "build", "boot 1").expect("nothing is there"));
        fs::create_dir(place.join(AGED_DIRECTORY)).expect("made");
        for number in 0..20 {
            fs::write(place.join(AGED_DIRECTORY).join(number.to_string()), "").expect("written");
        }
    }

    fn victim(place: &Path) {
        fs::create_dir_all(place.join(AGED_DIRECTORY)).expect("made");
        for name in ["precious", ".aged/precious"] {
            fs::write(place.join(name), "data").expect("written");
        }
        rustix::fs::chmod(place, Mode::RWXU).expect("ours");
    }

    fn is_whole(victim: &Path) -> bool {
        ["precious", ".aged/precious"].iter().all(|name| victim.join(name).exists())
            && victim.read_dir().is_ok_and(|entries| entries.count() == 2)
    }

    #[test]
    fn a_share_that_too_little_writing_leaves_room_for_is_a_miss() {
        let classes = || vec![Class { up_to: 4096.0, weight: 1.0 }];
        let depths = vec![Depth { depth: 0, weight: 1.0, directories: 0 }];
        let profile = Profile { sizes: classes(), ages: classes(), depths, ..Profile::default() };
        let mut wanted = Age { profile, utilization: 0.6, overwrites: 1.0, compressible: 0.0, seed: None };
        assert_eq!(overwritten(&wanted, 1000, 400), None);
        wanted.profile.overwritten = Some(0.8);
        let (reached, miss) = overwritten(&wanted, 1000, 400).expect("it has a target");
        assert_eq!(reached, "overwritten in place 40.0 %, target 80 %");
        assert_eq!(miss.expect("half"), format!("{reached}; overwrites = 3 can reach it"));
        wanted.overwrites = 4.0;
        assert_eq!(
            overwritten(&wanted, 1000, 780),
            Some(("overwritten in place 78.0 %, target 80 %".to_owned(), None))
        );
        assert_eq!(
            overwritten(&wanted, 1000, 700).and_then(|found| found.1).as_deref(),
            Some("overwritten in place 70.0 %, target 80 %")
        );
        wanted.profile.overwritten = Some(0.0);
        assert_eq!(overwritten(&wanted, 1000, 0).and_then(|found| found.1), None);
    }

    #[test]
    fn what_another_build_began_stays_until_it_is_removed() {
        let above = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let place = above.path().join("fstone-aged");
        aged(&place);
        for boot in ["boot 1", "boot 2"] {
            assert!(matches!(taken_up(&place, "key", "another build", boot), Err(JournalError::Build)));
        }
        assert!(place.join(AGED_DIRECTORY).join("0").exists());
        assert!(taken_up(&place, "key", "build", "boot 1").is_ok_and(|(_, lost)| lost.is_none()), "it goes on");
        assert!(taken_up(&place, "key", "build", "boot 2").is_ok_and(|(_, lost)| lost.is_some()));
        assert!(!place.join(AGED_DIRECTORY).exists());
    }

    #[test]
    fn what_a_removal_that_was_interrupted_left_is_not_taken_up() {
        let above = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let place = above.path().join("fstone-aged");
        aged(&place);
        let stays = place.join(AGED_DIRECTORY).join("7");
        let flag = |flag| Command::new("chattr").arg(flag).arg(&stays).status().is_ok_and(|status| status.success());
        if !flag("+i") {
            eprintln!("skipped: no file can be made immutable");
            return;
        }
        let removed = remove_aged_directory(&place);
        let again = taken_up(&place, "key", "build", "boot 1");
        assert!(flag("-i"));
        assert!(removed.is_err() && again.is_err(), "{removed:?} {again:?}");
        let anew = taken_up(&place, "another", "another build", "boot 1").expect("what is left goes first");
        assert_eq!(anew.1, Some("its removal was interrupted"));
        assert!(!place.join(AGED_DIRECTORY).exists());
    }

    #[test]
    fn what_a_user_put_into_an_aged_directory_is_named_and_nothing_goes() {
        let above = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let place = above.path().join("fstone-aged");
        aged(&place);
        fs::create_dir(place.join(".aged/suba")).expect("made");
        fs::write(place.join(".aged/suba/1f"), "").expect("written");
        for mine in ["mine.txt", ".aged/mine.txt", ".aged/suba/01", ".aged/suba/1F", ".aged/sub", "1"] {
            fs::write(place.join(mine), "mine").expect("written");
            let refused = remove_aged_directory(&place).expect_err("it is mine").to_string();
            assert_eq!(refused, format!("it has {mine}, which ageing did not make; move it away"));
            let anew = taken_up(&place, "key", "build", "boot 2");
            assert!(matches!(&anew, Err(JournalError::Others { path }) if path == Path::new(mine)), "{anew:?}");
            assert_eq!(fs::read(place.join(mine)).expect("there"), b"mine");
            fs::remove_file(place.join(mine)).expect("removed");
        }
        symlink("1", place.join(".aged/1000")).expect("linked");
        assert!(remove_aged_directory(&place).is_err());
        fs::remove_file(place.join(".aged/1000")).expect("removed");
        assert_eq!(place.join(AGED_DIRECTORY).read_dir().expect("there").count(), 21);
        remove_aged_directory(&place).expect("all is of ageing");
        assert!(!place.exists());
    }

    /// In a directory that others may write to, they can exchange names between any two calls.
    #[test]
    fn what_takes_the_name_of_an_aged_directory_is_left_alone() {
        let above = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let [place, other, mine] = ["fstone-aged", "other", "mine"].map(|name| above.path().join(name));
        let mut removed = 0;
        for round in 0..200 {
            aged(&place);
            victim(&other);
            let (ends, handle) = (AtomicBool::new(false), File::open(&other).expect("there"));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    // Until one of them is removed.
                    while renameat_with(CWD, &place, CWD, &other, RenameFlags::EXCHANGE).is_ok() {
                        if ends.load(Ordering::Acquire) {
                            break;
                        }
                    }
                });
                for _ in 0..20 {
                    if round % 2 == 0 {
                        removed += usize::from(remove_held_of(&place));
                    } else {
                        let _ = taken_up(&place, "key", "build", "boot 2");
                    }
                }
                ends.store(true, Ordering::Release);
            });
            let inode = handle.metadata().expect("there").ino();
            let is_victim = |path: &&&Path| fs::metadata(path).is_ok_and(|facts| facts.ino() == inode);
            let victim = [&*place, &*other].iter().find(is_victim).copied();
            assert!(victim.is_some_and(is_whole), "round {round}");
            for path in [&place, &other] {
                let _ = fs::remove_dir_all(path);
            }
        }
        assert!(removed > 0, "nothing was held");
        // A link, where there was a directory.
        victim(&mine);
        aged(&mine.join("aged"));
        symlink(mine.join("aged"), &place).expect("linked");
        assert!(remove_aged_directory(&place).is_err());
        assert!(matches!(taken_up(&place, "key", "build", "boot 2"), Err(JournalError::Foreign)));
        assert!(mine.join("aged/.aged/0").exists());
    }

    /// Whether it was held, and so emptied; its name may be another's by then.
    fn remove_held_of(place: &Path) -> bool {
        Journal::hold(place).map(|held| drop(remove_held(place, &held))).is_ok()
    }

    #[test]
    fn what_is_mounted_on_an_aged_directory_or_in_it_is_left_alone() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: mounting needs root");
            return;
        }
        struct Bound<'a>(&'a Path);
        impl Drop for Bound<'_> {
            fn drop(&mut self) {
                assert!(Command::new("umount").arg(self.0).status().is_ok_and(|status| status.success()));
            }
        }
        fn bind<'a>(what: &Path, place: &'a Path) -> Bound<'a> {
            let status = Command::new("mount").arg("--bind").args([what, place]).status();
            assert!(status.is_ok_and(|status| status.success()));
            Bound(place)
        }
        let above = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let [place, other, mine] = ["fstone-aged", "other", "mine"].map(|name| above.path().join(name));
        let below = place.join(AGED_DIRECTORY).join("sub1");
        aged(&place);
        aged(&other);
        victim(&mine);
        {
            let _bound = bind(&other, &place);
            assert!(matches!(taken_up(&place, "key", "build", "boot 2"), Err(JournalError::Mounted)));
            assert!(remove_aged_directory(&place).is_err());
        }
        assert!(other.join(".aged/0").exists(), "it is another's");
        fs::create_dir(&below).expect("made");
        {
            let _bound = bind(&mine, &below);
            assert!(remove_aged_directory(&place).is_err());
            assert!(taken_up(&place, "key", "build", "boot 2").is_err());
        }
        assert!(is_whole(&mine) && place.join("journal").exists());
        remove_aged_directory(&place).expect("nothing is mounted there now");
        assert!(!place.exists());
    }

    /// Of runs that find a lost state at once, at most one ages, and in the directory that the others find then.
    #[test]
    fn no_run_removes_what_another_began_anew() {
        let above = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let place = above.path().join("fstone-aged");
        let mut began = 0;
        for _ in 0..100 {
            aged(&place);
            let barrier = Barrier::new(3);
            let taken: Vec<_> = std::thread::scope(|scope| {
                let run = || {
                    barrier.wait();
                    taken_up(&place, "key", "build", "boot 2")
                };
                [(); 3].map(|()| scope.spawn(run)).into_iter().map(|run| run.join().expect("ends")).collect()
            });
            let ageing = taken.iter().filter(|taken| taken.is_ok()).count();
            assert!(ageing <= 1, "{taken:#?}");
            let held = Journal::hold(&place);
            assert!(ageing == 0 || matches!(held, Err(JournalError::Busy)), "{held:?} {taken:#?}");
            began += ageing;
            drop((taken, held));
            let _ = remove_aged_directory(&place);
            let _ = fs::remove_dir_all(&place);
        }
        assert!(began > 0);
    }
}

//! Ageing as a step, and how the state that was reached compares with its targets.

use super::Call;
use crate::{
    command::typed,
    events::LoadProgress,
    fragmentation::{self, FREE, Fragmentation, QUARTERS, REGIONS_OF},
    meters::{KernelWork, Meters},
    place::{AGED_BENEATH, device::ScratchDevice, holder::boot_id},
    stop::Stop,
    trial::{
        aged::{note_directory, stamp},
        measure::of_interval,
        record::{Halt, StepReport, failed},
        session::{OnProgress, Session},
    },
};
use fstone_engine::age::{AgeError, Held, Journal, JournalError, Lived, MORE_INODES, age, is_made, unreadable};
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

/// How far, as a share of the filesystem, ageing goes beyond its target before the end.
const OVERSHOOT: f64 = 0.01;

/// Removes what ageing left beneath a directory.
///
/// # Errors
/// If it is something else, another user's, has what ageing did not make, or a process ages it or measures on it; as [`remove_tree`].
pub fn remove_aged_directory(path: &Path) -> io::Result<()> {
    // A slash at its end would have a link followed.
    let path = path.components().as_path();
    match Journal::hold(path) {
        // Its ageing was killed at once, or found no room.
        Err(JournalError::Foreign)
            if Journal::remove_empty(path, path.ends_with(AGED_BENEATH)).map_err(io_error)? =>
        {
            Ok(())
        }
        held => remove_held(path, &held.map_err(io_error)?),
    }
}

/// What ageing left beneath a directory, as it is now: its age, its targets beside what was reached, and the figures.
///
/// # Errors
/// As [`remove_aged_directory`], also while it is aged; those of reading it.
pub fn state_of_aged_directory(path: &Path) -> io::Result<(Age, String, Vec<Figure>)> {
    let path = path.components().as_path();
    let held = Journal::share(path).map_err(io_error)?;
    let key = held.key()?.ok_or_else(|| io::Error::other("its ageing has not ended"))?;
    let age: Age = serde_json::from_str(&key)?;
    let (state, counted) = State::of(path, Some(&age), &Stop::default()).map_err(io::Error::other)?;
    Ok((age, state.words, state.figures.into_iter().chain(counted.figures()).collect()))
}

fn io_error(error: JournalError) -> io::Error {
    match error {
        JournalError::System { cause } => cause,
        error => io::Error::other(error),
    }
}

/// The command that removes an aged directory, for the user who made it.
pub fn removal_of(path: &Path) -> String {
    format!("{}fstone age rm {}", sudo(), typed_path(path))
}

/// With sudo, what was made is root's.
fn sudo() -> &'static str {
    if Owner::caller().is_some() { "sudo " } else { "" }
}

fn typed_path(path: &Path) -> String {
    typed(&[path.display().to_string()])
}

fn cure_of(error: &JournalError, place: &Path) -> String {
    let path = typed_path(place);
    match error {
        JournalError::Copy | JournalError::Other | JournalError::Build | JournalError::Lost { .. } => removal_of(place),
        JournalError::Unsure { identity } => {
            let journal = typed_path(&place.join("journal"));
            format!("if it is the original: {}sed -i '3s/.*/{identity}/' {journal}", sudo())
        }
        JournalError::Busy => "wait for the other run".to_owned(),
        JournalError::Exposed { .. } => format!("{}chmod 700 {path}", sudo()),
        JournalError::Owner { .. } => {
            format!("run it as that user, or have that user remove it: fstone age rm {path}")
        }
        JournalError::Foreign | JournalError::Others { .. } | JournalError::System { .. } => "move it away".to_owned(),
        JournalError::Mounted => format!("umount {path}"),
    }
}

/// Files of an aged directory were removed, but its journal is there.
fn without_files(words: &str, place: &Path) -> Reason {
    Reason::new("", format!("{words}; files that ageing made were removed")).with_cure(removal_of(place))
}

/// The kernel says "No space left" of inodes, too.
fn of_no_room(words: String, cause: &io::Error, place: &Path) -> Reason {
    let space =
        (cause.kind() == io::ErrorKind::StorageFull).then(|| rustix::fs::statvfs(place.parent().unwrap_or(place)));
    match space.and_then(Result::ok).filter(|space| space.f_files > 0 && space.f_favail == 0 && space.f_bavail > 0) {
        Some(space) => {
            let free = format_bytes(space.f_bavail.saturating_mul(space.f_frsize));
            Reason::new("", format!("{words}: {free} are free, but no inodes")).with_cure(MORE_INODES)
        }
        None => Reason::new("", words),
    }
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
        Err(Errno::NOENT) => {
            let opened = Journal::open(open_new_directory(place)?, place, key, build, boot);
            if opened.is_err() {
                // What cannot be removed, `fstone age rm` can.
                let _ = Journal::remove_empty(place, true);
                // One whose mode the filesystem chose; it is empty, or stays.
                let _ = std::fs::remove_dir(place);
            }
            return Ok((opened?, None));
        }
        Err(Errno::LOOP | Errno::NOTDIR) => return Err(JournalError::Foreign),
        Err(Errno::ACCESS) => return Err(unreadable(place)),
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
                self.refuse_reserve(step, wanted, place)?;
                journal = Some(self.journal(step, wanted, seed, place)?);
            }
            let lived = self.live(step, wanted, seed, place, journal.as_mut(), progress, report);
            match (&lived, &journal) {
                (Err(Halt::Outcome(Outcome::Refused(_))), Some(journal)) => {
                    // Nothing was made, and what was found may have changed when it is tried again.
                    remove_held(place, journal.held()).map_err(|error| failed(step, error.to_string()))?;
                }
                (_, Some(_)) => {
                    let (there, remove) = (place.display(), removal_of(place));
                    self.warn(format!(
                        "{}: {there} stays, and repeats and later runs take it up; {remove} removes it",
                        step.name
                    ));
                }
                (_, None) => {}
            }
            let Lived { operations, written_bytes, planned_bytes, overwritten_bytes } = lived?;
            let [written, planned] = [written_bytes, planned_bytes as u64].map(format_bytes);
            words = format!("{operations} operations wrote {written}, target {planned}\n");
            if (written_bytes as f64 / planned_bytes - 1.0).abs() > TOLERANCE {
                self.warn(format!("{}: missed its target: {written} written, target {planned}", step.name));
            }
            if let Some((reached, miss)) = overwritten_bytes.and_then(|bytes| overwritten(wanted, written_bytes, bytes))
            {
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
        let (state, counted) = State::of(place, wanted, &self.machine.stop).map_err(|words| {
            let is_gone = journal.is_some() && !place.join(AGED_DIRECTORY).exists();
            let reason = if is_gone { without_files(&words, place) } else { Reason::new("", words) };
            Halt::Outcome(Outcome::Failed(Reason { step: step.name.clone(), ..reason }))
        })?;
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

    /// Refuses a utilization at which the trial would be stopped, because it leaves too little of a disk that others use.
    fn refuse_reserve(&self, step: &Step, wanted: &Age, place: &Path) -> Result<(), Halt> {
        let above = place.parent().unwrap_or(place);
        let found = (self.machine.devices.space(above).ok(), rustix::fs::statvfs(above).ok());
        let (Some(space), Some(stat)) = found else { return Ok(()) };
        let used = stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(stat.f_frsize) as f64;
        let reserve = space.reserve_bytes() as f64 / (used + space.free_bytes as f64);
        // It is exceeded while files are overwritten.
        let highest = ((1.0 - reserve - OVERSHOOT) * 100.0).floor();
        if wanted.utilization * 100.0 <= highest {
            return Ok(());
        }
        let words = format!(
            "{}: {} % in use would leave less than the {} that stay free for others",
            above.display(),
            wanted.utilization * 100.0,
            format_bytes(space.reserve_bytes())
        );
        let reason = Reason::new(&step.name, words).with_cure(format!("utilization = \"{highest} %\""));
        Err(Halt::Outcome(Outcome::Refused(reason)))
    }

    /// The journal of what is aged beneath a directory.
    fn journal(&mut self, step: &Step, wanted: &Age, seed: u64, place: &Path) -> Result<Journal, Halt> {
        let failed = |error: io::Error| {
            let reason = of_no_room(format!("{}: {error}", place.display()), &error, place);
            Halt::Outcome(Outcome::Failed(Reason { step: step.name.clone(), ..reason }))
        };
        let key =
            serde_json::to_string(&Age { seed: Some(seed), ..wanted.clone() }).map_err(|error| failed(error.into()))?;
        let build = std::env::current_exe().ok().and_then(|program| stamp(&program)).unwrap_or_default();
        // What was opened with the trial is opened once more.
        self.aged.retain(|held| !held.is_at(place));
        // Before it is there: a run that is killed leaves it, too.
        if let Some(Err(error)) = self.notes.as_ref().map(|notes| note_directory(notes, place)) {
            self.warn(format!("{}: `fstone age list` does not list {}: {error}", step.name, place.display()));
        }
        let (journal, lost) = taken_up(place, &key, &build, &boot_id()).map_err(|error| match error {
            JournalError::System { cause } => failed(cause),
            error => {
                let words = format!("{}: {error}", place.display());
                let reason = Reason::new(&step.name, words).with_cure(cure_of(&error, place));
                Halt::Outcome(Outcome::Refused(reason))
            }
        })?;
        if let Some(why) = lost {
            self.warn(format!("{}: {why}; it began anew", step.name));
        }
        if journal.ended().is_none() && journal.done() > 0 {
            self.warn(format!(
                "{}: it went on where it was interrupted, after {} operations",
                step.name,
                journal.done()
            ));
        }
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
        let is_beneath = journal.is_some();
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
            AgeError::Call { ref cause, .. } | AgeError::Journal { ref cause } => {
                let mut reason = of_no_room(error.to_string(), cause, place);
                if is_beneath && cause.kind() == io::ErrorKind::NotFound {
                    reason = without_files(&reason.words, place);
                }
                Halt::Outcome(Outcome::Failed(Reason { step: step.name.clone(), ..reason }))
            }
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
        let cure = if share < target { "; with more overwrites it comes nearer" } else { "" };
        format!("{reached}{cure}")
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
        assert_eq!(miss.expect("half"), format!("{reached}; with more overwrites it comes nearer"));
        assert_eq!(
            overwritten(&wanted, 1000, 780),
            Some(("overwritten in place 78.0 %, target 80 %".to_owned(), None))
        );
        assert_eq!(
            overwritten(&wanted, 1000, 900).and_then(|found| found.1).as_deref(),
            Some("overwritten in place 90.0 %, target 80 %")
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

    /// A small ext4, for root.
    struct Small(tempfile::TempDir, Vec<String>);

    impl Small {
        fn make(options: &[&str]) -> Option<Self> {
            let above = tempfile::tempdir_in("/var/tmp").expect("a directory");
            let image = above.path().join("image");
            File::create(&image).and_then(|file| file.set_len(8 << 20)).expect("sized");
            fs::create_dir(above.path().join("mnt")).expect("made");
            let mkfs = Command::new("mkfs.ext4").arg("-q").args(options).arg(&image).status();
            let is_made = mkfs.is_ok_and(|status| status.success()) && rustix::process::geteuid().is_root();
            let mut small = Self(above, Vec::new());
            if is_made && small.mount() {
                return Some(small);
            }
            eprintln!("skipped: no ext4 can be mounted");
            None
        }

        /// By a loop device of its own.
        fn mount(&mut self) -> bool {
            let made = Command::new("losetup").args(["-f", "--show"]).arg(self.0.path().join("image")).output();
            let Ok(device) = made.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()) else {
                return false;
            };
            let mounted = Command::new("mount").arg(&device).arg(self.place()).status();
            self.1.push(device);
            mounted.is_ok_and(|status| status.success())
        }

        fn unmount(&self) -> bool {
            Command::new("umount").arg(self.place()).status().is_ok_and(|status| status.success())
        }

        fn place(&self) -> std::path::PathBuf {
            self.0.path().join("mnt")
        }
    }

    impl Drop for Small {
        fn drop(&mut self) {
            self.unmount();
            for device in &self.1 {
                let _ = Command::new("losetup").args(["-d", device]).status();
            }
        }
    }

    #[test]
    fn without_birth_times_an_aged_directory_is_known_under_another_device_number() {
        let Some(mut small) = Small::make(&["-I", "128"]) else { return };
        let (place, copy) = (small.place().join("fstone-aged"), small.place().join("copy"));
        aged(&place);
        let number = fs::metadata(&place).expect("there").dev();
        let copied = Command::new("cp").arg("-a").args([&place, &copy]).status();
        assert!(copied.is_ok_and(|status| status.success()));
        assert!(small.unmount() && small.mount());
        assert_ne!(fs::metadata(&place).expect("there").dev(), number);
        let found = taken_up(&place, "key", "build", "boot 1");
        assert!(matches!(found, Ok((_, None))), "{found:?}");
        drop(found);
        assert!(matches!(taken_up(&copy, "key", "build", "boot 1"), Err(JournalError::Copy)));
    }

    #[test]
    fn without_inodes_no_directory_is_left_and_the_cause_is_said() {
        let Some(small) = Small::make(&["-N", "32"]) else { return };
        let file = |number: u32| small.place().join(number.to_string());
        let made = (0..).take_while(|number| File::create(file(*number)).is_ok()).count();
        let place = small.place().join("fstone-aged");
        let no_room = |place: &Path| {
            let Err(JournalError::System { cause }) = taken_up(place, "key", "build", "boot") else {
                panic!("no room")
            };
            assert!(!place.exists());
            of_no_room("x".to_owned(), &cause, place)
        };
        let reason = no_room(&place);
        assert!(reason.words.ends_with("are free, but no inodes") && reason.cure.is_some(), "{reason:?}");
        // One for the directory, and none for its journal.
        fs::remove_file(file(made as u32 - 1)).expect("removed");
        no_room(&place);
    }

    #[test]
    fn what_was_killed_before_its_first_line_is_removed_and_a_link_is_not_followed() {
        let above = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let [place, link, mine] = ["fstone-aged", "link", "mine"].map(|name| above.path().join(name));
        for empty in [&place, &mine] {
            rustix::fs::mkdir(empty, Mode::RWXU).expect("made");
        }
        remove_aged_directory(&place).expect("ageing made it");
        assert!(remove_aged_directory(&mine).is_err() && mine.exists() && !place.exists());
        let missing = remove_aged_directory(&place).expect_err("it is gone");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        aged(&place);
        symlink(&place, &link).expect("linked");
        for end in ["", "/", "//", "/."] {
            assert!(remove_aged_directory(Path::new(&format!("{}{end}", link.display()))).is_err());
        }
        remove_aged_directory(Path::new(&format!("{}/", place.display()))).expect("it is no link");
    }

    #[test]
    fn cures_are_as_a_shell_takes_them_and_none_removes_what_may_be_used() {
        let place = Path::new("/mnt/my disk/fstone-aged");
        let sudo = sudo();
        assert_eq!(removal_of(place), format!("{sudo}fstone age rm '/mnt/my disk/fstone-aged'"));
        let cures = [
            (JournalError::Exposed { mode: 0o755 }, format!("{sudo}chmod 700 '/mnt/my disk/fstone-aged'")),
            (
                JournalError::Unsure { identity: "7 generation 8".into() },
                format!(
                    "if it is the original: {sudo}sed -i '3s/.*/7 generation 8/' '/mnt/my disk/fstone-aged/journal'"
                ),
            ),
            (
                JournalError::Owner { user: 7 },
                "run it as that user, or have that user remove it: fstone age rm '/mnt/my disk/fstone-aged'".to_owned(),
            ),
        ];
        for (error, cure) in cures {
            assert_eq!(cure_of(&error, place), cure);
        }
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

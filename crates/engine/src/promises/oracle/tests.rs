use super::super::known::UNIT;
use super::*;
use crate::data::stamp;
use crate::promises::{Made, Witness};
use proptest::prelude::*;
use std::collections::BTreeMap;

mod left;
mod parts;

const DIRECTORY: &str = "/nowhere";

fn path(name: &str) -> Arc<str> {
    format!("{DIRECTORY}/{name}").into()
}

struct Told(Witness);

impl Told {
    fn change(&self, change: Change) {
        let begun = self.0.tick();
        self.0.changed(begun, change);
    }

    fn open(&self, name: &str, inode: u64) -> FileId {
        let begun = self.0.tick();
        self.0.opened(begun, &path(name), inode, false).0
    }

    fn write(&self, file: FileId, offset: u64, generation: u64) {
        self.change(Change::Wrote { file, offset, bytes: 512, says: Some((1, generation)), durable: false });
    }

    /// The same is found whether files are read one by one or many at a time.
    fn look(&self, moment: u64) -> Kept {
        self.look_between(moment..u64::MAX)
    }

    fn look_between(&self, cut: Range<u64>) -> Kept {
        let kept = self.0.look(cut.clone(), false);
        assert_eq!(self.0.look(cut, true), kept);
        kept
    }

    fn promises(&self) -> Promises {
        self.0.promises(self.0.now())
    }

    fn promised(&self, file: FileId) -> Vec<(u64, u64)> {
        let promises = self.promises();
        let units = promises.files[&file].units.iter();
        units.filter_map(|(at, held)| Some((*at / UNIT, held.says?.1))).collect()
    }
}

#[test]
fn data_is_promised_when_it_was_written_before_the_sync_began() {
    let told = Told(Witness::new());
    let file = told.open("a", 5);
    told.write(file, 0, 1);
    let begun = told.0.tick();
    told.write(file, 512, 2);
    told.0.changed(begun, Change::Synced { file, names: true });
    let promises = told.promises();
    let known = &promises.files[&file];
    assert_eq!(told.promised(file), [(0, 1)]);
    assert_eq!(known.promised_names, BTreeSet::from([path("a")]));
}

#[test]
fn of_writes_at_the_same_time_either_may_be_the_last() {
    let told = Told(Witness::new());
    let file = told.open("a", 5);
    let begun = told.0.tick();
    told.write(file, 0, 2);
    let beside = Change::Wrote { file, offset: 0, bytes: 512, says: Some((1, 1)), durable: false };
    told.0.changed(begun, beside);
    told.change(Change::Synced { file, names: true });
    assert_eq!(told.promised(file), [(0, 1)]);
    told.write(file, 0, 3);
    told.change(Change::Synced { file, names: true });
    assert_eq!(told.promised(file), [(0, 3)]);
}

/// A thread may have got its generation before another one wrote and synced, and have written after that.
#[test]
fn a_later_write_may_have_a_lower_generation() {
    let told = Told(Witness::new());
    let file = told.open("a", 5);
    told.write(file, 0, 2);
    told.write(file, 512, 3);
    told.change(Change::Synced { file, names: true });
    let moment = told.0.moment();
    assert_eq!(told.promised(file), [(0, 2), (1, 3)]);
    told.write(file, 0, 1);
    assert_eq!(told.promised(file), [(0, 1), (1, 3)], "acknowledged, and perhaps on the disk");
    let then = told.0.promises(moment..u64::MAX);
    assert_eq!(then.files[&file].units[&0].says, Some((1, 1)), "not acknowledged yet, and perhaps on the disk");
    // Of data that the file may have under another name nothing can be told.
    told.change(Change::Wrote { file, offset: 512, bytes: 512, says: Some((9, 4)), durable: false });
    assert_eq!(told.promised(file), [(0, 1)]);
    told.change(Change::Synced { file, names: true });
    assert_eq!(told.promised(file), [(0, 1), (1, 4)]);
}

/// O_DSYNC makes durable what is written through it, and nothing that others wrote to the same file.
#[test]
fn a_synchronous_write_promises_itself_alone() {
    let told = Told(Witness::new());
    let file = told.open("a", 5);
    told.write(file, 0, 1);
    assert!(!told.promises().files[&file].synced);
    told.change(Change::Wrote { file, offset: 512, bytes: 512, says: Some((1, 2)), durable: true });
    assert_eq!(told.promised(file), [(1, 2)]);
    assert!(told.promises().files[&file].synced);
}

/// Write, fsync, rename, fsync of the directory: the name is there, and what was removed stays away. Nothing of other directories is.
#[test]
fn a_synced_directory_promises_its_names() {
    let told = Told(Witness::new());
    let [made, moved, removed, elsewhere] =
        [("made", 5), ("old", 6), ("removed", 7), ("other/made", 8)].map(|(name, inode)| told.open(name, inode));
    told.change(Change::Renamed { from: path("old"), to: path("new") });
    told.change(Change::Unnamed { path: path("removed") });
    assert_eq!(told.look(told.0.moment()).checked, 0);
    let begun = told.0.tick();
    let late = told.open("late", 9);
    told.0.changed(begun, Change::SyncedNames { directory: DIRECTORY.into() });
    let promises = told.promises();
    let names = |file| promises.files[&file].promised_names.clone();
    assert_eq!([names(made), names(moved)], [BTreeSet::from([path("made")]), BTreeSet::from([path("new")])]);
    assert!([removed, elsewhere, late].iter().all(|file| names(*file).is_empty()));
    assert_eq!(promises.promised_gone, HashSet::from([path("old"), path("removed")]));
    // Two names that are not there, and two that are not back.
    let kept = told.look(told.0.moment());
    assert_eq!((kept.checked, kept.broken), (4, 2), "{kept:?}");
    told.change(Change::SyncedNames { directory: DIRECTORY.into() });
    assert_eq!(told.promises().files[&late].promised_names, BTreeSet::from([path("late")]));
    // It may have another name by then, and what comes to its old one is another file's.
    told.change(Change::Renamed { from: path("late"), to: path("other/late") });
    told.open("late", 10);
    let candidates = &told.promises().files[&late].later_names;
    assert!(candidates.contains(&path("late")) && candidates.contains(&path("other/late")));
}

/// POSIX promises no name with the data, but data without any is lost.
#[test]
fn a_file_whose_data_is_durable_is_there_by_some_name() {
    let lost = |sync: &dyn Fn(&Told, FileId)| {
        let told = Told(Witness::new());
        let file = told.open("tmp", 5);
        told.change(Change::Renamed { from: path("tmp"), to: path("new") });
        sync(&told, file);
        let lost = told.look(told.0.moment());
        told.change(Change::Unnamed { path: path("new") });
        assert_eq!(told.look(told.0.moment()).checked, 0);
        (lost.checked, lost.first.first().map(|broken| broken.property))
    };
    let written = |durable| Change::Wrote {
        file: FileId { inode: 5, incarnation: 1 },
        offset: 0,
        bytes: 512,
        says: None,
        durable,
    };
    assert_eq!(lost(&|told, _| told.change(written(false))), (0, None));
    assert_eq!(lost(&|told, _| told.change(written(true))), (1, Some(Property::Name)));
    assert_eq!(lost(&|told, file| told.change(Change::Synced { file, names: false })), (1, Some(Property::Name)));
}

#[test]
fn what_is_made_anew_by_others_is_not_asked_for() {
    let told = Told(Witness::new());
    let file = told.open("set/a", 5);
    let other = told.open("elsewhere", 6);
    told.write(file, 0, 1);
    told.change(Change::SyncedAll);
    told.change(Change::Remade { below: path("set") });
    let promises = told.promises();
    assert!(promises.files[&file].excused && !promises.files[&other].excused);
}

#[test]
fn what_comes_after_the_moment_is_allowed_and_not_asked_for() {
    let told = Told(Witness::new());
    let file = told.open("tmp", 5);
    told.write(file, 0, 1);
    told.change(Change::Synced { file, names: true });
    let moment = told.0.moment();
    told.change(Change::Renamed { from: path("tmp"), to: path("new") });
    let promises = told.0.promises(moment..u64::MAX);
    assert!(promises.files[&file].later_names.contains(&path("new")));
    assert!(!promises.files[&file].excused);
    told.change(Change::Unnamed { path: path("new") });
    assert!(told.0.promises(moment..u64::MAX).files[&file].excused);
}

#[test]
fn a_number_that_comes_back_is_another_file() {
    let told = Told(Witness::new());
    let first = told.open("a", 5);
    assert_eq!(told.open("a", 5), first);
    told.change(Change::Unnamed { path: path("a") });
    let second = told.open("b", 5);
    assert_ne!(first, second);
    assert_eq!(told.0.file(5), second);
    assert!(told.promises().files[&first].excused);
}

#[test]
fn removed_names_are_promised_to_stay_away_once_everything_is_synced() {
    let told = Told(Witness::new());
    let file = told.open("a", 5);
    told.change(Change::Unnamed { path: path("a") });
    assert!(told.promises().promised_gone.is_empty());
    told.change(Change::SyncedAll);
    assert!(told.promises().promised_gone.contains(&path("a")));
    told.open("a", 6);
    assert!(told.promises().promised_gone.is_empty());
    let _ = file;
}

/// A mail spool: a message is made in tmp, synced and moved away, and the next one gets its name in tmp. Their stamps differ in the
/// generation alone, and the second is no answer for the first.
#[test]
fn a_file_is_not_taken_for_the_one_that_had_its_name() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| -> Arc<str> { place.path().join(name).to_string_lossy().into() };
    let told = Told(Witness::new());
    let deliver = |inode, generation, to: &str| {
        let file = told.0.opened(told.0.tick(), &path("tmp"), inode, false).0;
        told.write(file, 0, generation);
        told.change(Change::Synced { file, names: true });
        told.change(Change::Renamed { from: path("tmp"), to: path(to) });
    };
    deliver(5, 1, "first");
    let between = told.0.moment();
    deliver(6, 2, "second");
    let broken = |moment, there: &[(&str, u64)]| -> Vec<Property> {
        for name in ["tmp", "first", "second"] {
            drop(std::fs::remove_file(&*path(name)));
        }
        for (name, generation) in there {
            let mut block = vec![0; 512];
            stamp::write(&mut block, 1, 0, *generation);
            std::fs::write(&*path(name), block).expect("ours");
        }
        told.look(moment).first.into_iter().map(|broken| broken.property).collect()
    };
    let after = told.0.moment();
    for whole in [[("first", 1), ("second", 2)], [("first", 1), ("tmp", 2)]] {
        assert!(broken(after, &whole).is_empty(), "{whole:?}");
    }
    assert!(broken(between, &[("tmp", 1)]).is_empty());
    assert_eq!(broken(after, &[("tmp", 2)]), [Property::Name], "the first is lost");
    assert_eq!(broken(between, &[("tmp", 2)]), [Property::Name], "the first is lost");
    assert_eq!(broken(after, &[("tmp", 1)]), [Property::Name], "the second is lost");
    // What nobody is known to have written is newer data of the file, as a write through a mapping is.
    assert!(broken(between, &[("tmp", 3)]).is_empty());
}

#[test]
fn a_name_that_is_only_replaced_is_there_with_one_of_its_files() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| -> Arc<str> { place.path().join(name).to_string_lossy().into() };
    let told = Told(Witness::new());
    let open = |name: &str, inode| told.0.opened(told.0.tick(), &path(name), inode, false).0;
    let stamped = |generation| {
        let mut block = vec![0; 512];
        stamp::write(&mut block, 1, 0, generation);
        block
    };
    let old = open("a", 5);
    told.write(old, 0, 1);
    told.change(Change::SyncedAll);
    let new = open("a.r", 6);
    told.write(new, 0, 2);
    told.change(Change::Synced { file: new, names: true });
    let before = told.0.moment();
    told.change(Change::Renamed { from: path("a.r"), to: path("a") });
    let after = told.0.moment();
    let broken = |moment, a: Option<&[u8]>, beside: Option<&[u8]>| -> Vec<Property> {
        for (name, data) in [("a", a), ("a.r", beside)] {
            let path = place.path().join(name);
            drop(std::fs::remove_file(&path));
            if let Some(data) = data {
                std::fs::write(path, data).expect("ours");
            }
        }
        told.look(moment).first.into_iter().map(|broken| broken.property).collect()
    };
    let (first, second) = (stamped(1), stamped(2));
    for moment in [before, after] {
        assert!(broken(moment, Some(&first), Some(&second)).is_empty());
        assert!(broken(moment, Some(&second), None).is_empty());
        assert_eq!(broken(moment, None, Some(&second)), [Property::Replacement]);
        assert_eq!(broken(moment, Some(&[]), Some(&second)), [Property::Replacement]);
        assert_eq!(broken(moment, Some(&[0; 512]), Some(&second)), [Property::Replacement]);
    }
    // Once everything is synced it is an ordinary file, and the old one is no answer.
    told.change(Change::SyncedAll);
    assert!(told.promises().replaced.is_empty());
    assert!(broken(told.0.moment(), Some(&second), None).is_empty());
    assert_eq!(broken(told.0.moment(), Some(&first), None), [Property::Name]);
    // One that was not synced may have anything in it, but the name is there.
    let unsynced = open("a.r", 7);
    told.write(unsynced, 0, 3);
    told.change(Change::Renamed { from: path("a.r"), to: path("a") });
    let moment = told.0.moment();
    assert!(broken(moment, Some(&[]), None).is_empty());
    assert_eq!(broken(moment, None, None), [Property::Replacement]);
    told.change(Change::Unnamed { path: path("a") });
    assert!(broken(told.0.moment(), None, None).is_empty() && broken(moment, None, None).is_empty());
}

#[test]
fn what_is_removed_later_has_to_be_there_before() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| -> Arc<str> { place.path().join(name).to_string_lossy().into() };
    for removed in [
        Change::Unnamed { path: path("a") },
        Change::Renamed { from: path("b"), to: path("a") },
        Change::Remade { below: place.path().to_string_lossy().into() },
    ] {
        let told = Told(Witness::new());
        let file = told.0.opened(told.0.tick(), &path("a"), 5, true).0;
        told.write(file, 0, 1);
        told.change(Change::Synced { file, names: true });
        let moment = told.0.moment();
        let _other = told.0.opened(told.0.tick(), &path("b"), 6, true);
        let before = told.0.moment();
        told.change(removed.clone());
        let found =
            |cut| -> Vec<Property> { told.look_between(cut).first.into_iter().map(|broken| broken.property).collect() };
        assert_eq!(found(moment..before), [Property::Name], "{removed:?}");
        let excused: Vec<Property> = match removed {
            Change::Renamed { .. } => vec![Property::Replacement],
            _ => Vec::new(),
        };
        for after in [moment..before + 1, moment..u64::MAX, told.0.now()] {
            assert_eq!(found(after), excused, "{removed:?}");
        }
    }
}

#[test]
fn every_save_of_a_document_is_looked_at() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| -> Arc<str> { place.path().join(name).to_string_lossy().into() };
    let stamped = |generation| {
        let mut block = vec![0; 512];
        stamp::write(&mut block, 1, 0, generation);
        block
    };
    let told = Told(Witness::new());
    let first = told.0.opened(told.0.tick(), &path("a"), 5, true).0;
    told.write(first, 0, 1);
    told.change(Change::SyncedAll);
    let mut moments = vec![told.0.moment()];
    for generation in 2..5 {
        let file = told.0.opened(told.0.tick(), &path("a.r"), 5 + generation, true).0;
        told.write(file, 0, generation);
        moments.push(told.0.moment());
        told.change(Change::Synced { file, names: true });
        moments.push(told.0.moment());
        told.change(Change::Renamed { from: path("a.r"), to: path("a") });
        moments.push(told.0.moment());
    }
    let broken = |cut, data: &[u8]| -> bool {
        std::fs::write(&*path("a"), data).expect("ours");
        told.look_between(cut).first.iter().any(|broken| broken.property == Property::Replacement)
    };
    // Between the write and the rename of each save, seen from any moment before.
    for (number, moment) in moments.iter().enumerate().skip(1) {
        for end in moments[number..].iter().copied().chain([u64::MAX]) {
            let is_replaced = !told.0.promises(*moment..end).replaced.is_empty();
            let cut = *moment..end;
            assert_eq!(broken(cut.clone(), &stamped(1)[..100]), is_replaced, "{moment} to {end}");
            assert_eq!(broken(cut.clone(), &[0; 512]), is_replaced, "{moment} to {end}");
            assert!(!broken(cut.clone(), &stamped(1)), "{moment} to {end}: the old one");
            let newest = moments.iter().filter(|renamed| **renamed < end).count() as u64 / 3 + 1;
            assert!(!broken(cut, &stamped(newest.min(4))), "{moment} to {end}: {newest}");
        }
    }
    assert!(!told.0.promises(moments[1]..u64::MAX).replaced.is_empty());
}

#[test]
fn names_of_files_that_were_built_are_promised_from_the_beginning() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| -> Arc<str> { place.path().join(name).to_string_lossy().into() };
    let told = Told(Witness::new());
    let open = |name: &str, inode, made| told.0.opened(told.0.tick(), &path(name), inode, made).0;
    open("unknown", 4, false);
    told.0.settled(place.path());
    let built = open("built", 5, false);
    open("made", 6, true);
    told.0.linked(path("linked"));
    open("linked", 7, false);
    let lost = |told: &Told| -> Vec<Arc<str>> {
        let found = told.look(told.0.moment());
        found.first.into_iter().map(|broken| broken.path.to_string_lossy().into()).collect()
    };
    assert_eq!(lost(&told), [path("built")]);
    std::fs::write(&*path("built"), []).expect("ours");
    assert!(lost(&told).is_empty());
    // By its new name, too.
    told.change(Change::Renamed { from: path("built"), to: path("moved") });
    assert!(lost(&told).is_empty());
    std::fs::rename(&*path("built"), &*path("moved")).expect("ours");
    assert!(lost(&told).is_empty());
    // A name that was used again says nothing of what was there.
    let again = open("built", 8, true);
    assert!(again != built);
    told.change(Change::Unnamed { path: path("built") });
    open("built", 9, false);
    assert!(lost(&told).is_empty());
    std::fs::remove_file(&*path("moved")).expect("ours");
    assert_eq!(lost(&told), [path("built")], "the name that it had, of the first");
    // A directory that was renamed: what is below its names may be anything, and what is beside it is as it was.
    told.change(Change::Renamed { from: path("directory"), to: path("other") });
    open("directory/late", 10, false);
    open("other/deep/late", 11, false);
    assert_eq!(lost(&told), [path("built")]);
    open("late", 12, false);
    assert_eq!(lost(&told), [path("built"), path("late")]);
    told.change(Change::Unnamed { path: path("late") });
    // Once it was made again and synced it is like any other.
    told.0.settled(Path::new(&*path("other")));
    open("other/new", 13, false);
    assert_eq!(lost(&told), [path("built"), path("other/new")]);
}

/// The kernel gives numbers of files that went to those that are built in their place.
#[test]
fn names_of_files_that_were_built_anew_are_promised_whatever_their_numbers() {
    let told = Told(Witness::new());
    told.0.settled(Path::new(DIRECTORY));
    let first = told.open("a", 5);
    told.change(Change::Remade { below: DIRECTORY.into() });
    told.0.settled(Path::new(DIRECTORY));
    let second = told.open("a", 5);
    assert_ne!(first, second);
    let promises = told.promises();
    assert!(promises.files[&first].excused);
    assert!(promises.files[&second].promised_names.contains(&path("a")));
    // Another name of a file that is known may be one that nobody was told of.
    let linked = told.open("b", 5);
    assert_eq!(linked, second);
    assert!(!told.promises().files[&second].promised_names.contains(&path("b")));
}

#[test]
fn a_sync_beside_a_rename_drops_no_promised_name() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| -> Arc<str> { place.path().join(name).to_string_lossy().into() };
    for (all, number) in [(false, 5), (true, 6)] {
        let (from, to) = (path(&format!("a{number}")), path(&format!("b{number}")));
        let told = Told(Witness::new());
        let file = told.0.opened(told.0.tick(), &from, number, true).0;
        let sync = || if all { Change::SyncedAll } else { Change::Synced { file, names: true } };
        told.change(sync());
        let begun = told.0.tick();
        told.change(Change::Renamed { from: from.clone(), to: to.clone() });
        told.0.changed(begun, sync());
        let broken = || told.look(told.0.moment()).broken;
        assert_eq!(broken(), 1, "it is there by no name");
        for name in [&from, &to] {
            std::fs::write(&**name, []).expect("ours");
            assert_eq!(broken(), 0, "{name}");
            std::fs::remove_file(&**name).expect("ours");
        }
        // The next sync promises the new name.
        told.change(sync());
        std::fs::write(&*from, []).expect("ours");
        assert_eq!(told.promises().files[&file].promised_names, BTreeSet::from([to.clone()]));
    }
}

/// Whether the sync came before or after it, nobody can tell.
#[test]
fn a_file_that_is_made_during_a_sync_of_everything_is_not_promised() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path: Arc<str> = place.path().join("a").to_string_lossy().into();
    let told = Told(Witness::new());
    let begun = told.0.tick();
    let file = told.0.opened(told.0.tick(), &path, 5, true).0;
    told.write(file, 0, 1);
    told.0.changed(begun, Change::SyncedAll);
    let kept = told.look(told.0.moment());
    assert_eq!((kept.checked, kept.broken), (0, 0), "{kept:?}");
    std::fs::write(&*path, []).expect("ours");
    assert_eq!(told.look(told.0.moment()).checked, 0);
    told.change(Change::SyncedAll);
    let kept = told.look(told.0.moment());
    assert!(kept.checked > 0 && kept.broken > 0, "{kept:?}");
}

/// A directory may be made again by the name that it had, and nobody is told.
#[test]
fn a_renamed_directory_is_not_taken_for_a_removed_name() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| -> Arc<str> { place.path().join(name).to_string_lossy().into() };
    let told = Told(Witness::new());
    told.change(Change::Renamed { from: path("a"), to: path("b") });
    std::fs::create_dir(&*path("a")).expect("ours");
    told.change(Change::SyncedAll);
    let kept = told.look(told.0.moment());
    assert_eq!((kept.checked, kept.broken), (0, 0), "{kept:?}");
}

#[test]
fn what_others_may_have_changed_is_not_asked_for_after_that() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path: Arc<str> = place.path().join("a").to_string_lossy().into();
    let told = Told(Witness::new());
    let file = told.0.opened(told.0.tick(), &path, 5, true).0;
    told.write(file, 0, 1);
    told.change(Change::SyncedAll);
    let moment = told.0.moment();
    let broken = |cut| told.look_between(cut).broken;
    assert_eq!(broken(moment..moment), 1);
    let during = told.0.unobserved(place.path(), || told.0.moment());
    let after = told.0.moment();
    assert_eq!(broken(moment..moment), 1, "it had not begun");
    for cut in [moment..during, moment..u64::MAX, after..u64::MAX] {
        assert_eq!(told.look_between(cut).checked, 0);
    }
    // What is promised after that is another matter.
    let new = told.0.opened(told.0.tick(), &path, 5, false).0;
    told.write(new, 0, 2);
    told.change(Change::Synced { file: new, names: true });
    assert_eq!(broken(told.0.now()), 1);
}

#[test]
fn a_file_that_was_found_may_get_a_name_that_was_removed() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| -> Arc<str> { place.path().join(name).to_string_lossy().into() };
    let told = Told(Witness::new());
    told.0.opened(told.0.tick(), &path("a"), 5, true);
    told.change(Change::Unnamed { path: path("a") });
    told.change(Change::SyncedAll);
    std::fs::write(&*path("a"), []).expect("ours");
    assert_eq!(told.look(told.0.moment()).broken, 1, "it is back");
    told.0.opened(told.0.tick(), &path("found"), 6, false);
    let moment = told.0.moment();
    told.change(Change::Renamed { from: path("found"), to: path("a") });
    told.change(Change::SyncedAll);
    assert_eq!(told.look(moment).broken, 0);
    assert_eq!(told.look(told.0.moment()).broken, 0);
    std::fs::write(&*path("found"), []).expect("ours");
    assert_eq!(told.look(told.0.moment()).broken, 1, "its old name is back");
}

/// The kernel gives the number of a file that was replaced to a new one before the thread that replaced it can say so.
#[test]
fn a_number_that_is_given_away_early_belongs_to_the_new_file() {
    let told = Told(Witness::new());
    let open = |name: &str, inode| told.0.opened(told.0.tick(), &path(name), inode, true).0;
    let old = open("a", 5);
    told.write(old, 0, 1);
    told.change(Change::SyncedAll);
    let first = open("a.r", 6);
    let renamed = told.0.tick();
    let second = open("b.r", 5);
    told.0.changed(renamed, Change::Renamed { from: path("a.r"), to: path("a") });
    told.write(second, 0, 2);
    assert!(old != second && first != second);
    assert_eq!(told.0.file(5), second, "whose name is still there");
    let promises = told.promises();
    assert!(promises.writers.are_others(1, 2, old));
    assert_eq!(promises.owner[&path("b.r")], second);
    assert_eq!(promises.owner[&path("a")], first);
}

fn from_the_start(events: &[Event], cut: &Range<u64>) -> Promises {
    let mut promises = Promises::default();
    events.iter().for_each(|event| Arc::make_mut(&mut promises.writers).note(event));
    let (acknowledged, later) = events.split_at(events.partition_point(|event| event.ended < cut.start));
    acknowledged.iter().for_each(|event| promises.apply(event));
    promises.files.values_mut().for_each(|known| Arc::make_mut(known).allow_pending());
    later.iter().filter(|event| event.begun < cut.end).for_each(|event| promises.allow(event));
    let given = promises.given.iter().filter(|(_, begun)| **begun > cut.start);
    promises.then = given.map(|(file, begun)| (*file, Known::of(*file, events, &(*begun..cut.end)))).collect();
    promises
}

fn assert_same(one: &Promises, other: &Promises) {
    let known = |promises: &Promises| -> BTreeMap<FileId, String> {
        let files = promises.files.iter();
        // What is pending is asked for by nobody.
        files.map(|(id, known)| (*id, format!("{:?}", Known { pending: Vec::new(), ..(**known).clone() }))).collect()
    };
    assert_eq!(known(one), known(other));
    assert_eq!(one.owner, other.owner);
    assert_eq!(one.gone, other.gone);
    assert_eq!(one.promised_gone, other.promised_gone);
    assert_eq!(one.replaced, other.replaced);
    assert_eq!(one.given, other.given);
    assert_eq!(format!("{:?}", one.then), format!("{:?}", other.then));
    assert_eq!(one.writers.0, other.writers.0);
}

fn made() -> impl Strategy<Value = Made> {
    prop::sample::select(vec![Made::Zeros, Made::Copied, Made::Mapped, Made::End, Made::Unknown])
}

fn history() -> impl Strategy<Value = Vec<Event>> {
    let file = || (1..5u64, 1..3u32).prop_map(|(inode, incarnation)| FileId { inode, incarnation });
    let name = || prop::sample::select(vec!["a", "b", "set/a", "set/b", "set/c"]).prop_map(path);
    // Some of whole units, and some of any bytes.
    let place = prop_oneof![
        (0..6u64, 0..4u64).prop_map(|(unit, units)| (unit * UNIT, units * UNIT)),
        (0..6 * UNIT, 1..3 * UNIT),
    ];
    let place2 = place.clone();
    let wrote = (file(), place, 1..3u64, 1..9u64, any::<bool>());
    let change = prop_oneof![
        3 => (file(), name(), any::<bool>()).prop_map(|(file, path, durable)| Change::Named { file, path, durable }),
        2 => name().prop_map(|path| Change::Unnamed { path }),
        3 => (name(), name()).prop_map(|(from, to)| Change::Renamed { from, to }),
        6 => wrote.prop_map(|(file, (offset, bytes), stamp, generation, durable)| {
            Change::Wrote { file, offset, bytes, says: Some((stamp, generation)), durable }
        }),
        3 => (file(), place2, made()).prop_map(|(file, (offset, bytes), what)| {
            Change::Made { file, part: offset..offset + bytes, what }
        }),
        4 => (file(), any::<bool>()).prop_map(|(file, names)| Change::Synced { file, names }),
        1 => Just(Change::SyncedAll),
        1 => Just(Change::Remade { below: path("set") }),
    ];
    prop::collection::vec((change, 0..6u64), 0..60).prop_map(|calls| {
        let ended = (6u64..).step_by(2);
        ended.zip(calls).map(|(ended, (change, took))| Event { begun: ended - 1 - took, ended, change }).collect()
    })
}

proptest! {
    /// Moments go forward in a study, but need not, and a load goes on after a look.
    #[test]
    fn going_on_from_the_last_look_is_the_same_as_from_the_start(
        events in history(), looks in prop::collection::vec((0..130u64, 0..40u64, 0..60usize), 1..8), forward: bool,
    ) {
        let mut looks = looks;
        if forward {
            looks.sort_unstable();
        }
        let (mut kept, mut there) = (Acknowledged::default(), 0);
        for (moment, open, more) in looks {
            let cut = moment..moment + open;
            there = (there + more).min(events.len());
            assert_same(&kept.at(&events[..there], &cut), &from_the_start(&events[..there], &cut));
        }
    }
}

fn found_in(content: &[u8], writes: &[(u64, u64)], synced: usize) -> Kept {
    let place = tempfile::tempdir().expect("a temporary directory");
    let name = place.path().join("a");
    std::fs::write(&name, content).expect("ours");
    let told = Told(Witness::new());
    let file = told.0.opened(told.0.tick(), &name.to_string_lossy(), 5, true).0;
    for (generation, (offset, bytes)) in (1..).zip(writes) {
        if generation as usize == synced + 1 {
            told.change(Change::Synced { file, names: true });
        }
        let says = Some((1, generation));
        told.change(Change::Wrote { file, offset: *offset, bytes: *bytes, says, durable: false });
    }
    if synced == writes.len() {
        told.change(Change::Synced { file, names: true });
    }
    told.look(told.0.moment())
}

fn written(writes: &[(u64, u64)]) -> Vec<u8> {
    let mut content = Vec::new();
    for (generation, (offset, bytes)) in (1..).zip(writes) {
        let (offset, end) = (*offset as usize, (offset + bytes) as usize);
        content.resize(content.len().max(end), 0);
        stamp::write(&mut content[offset..end], 1, offset as u64, generation);
    }
    content
}

#[test]
fn every_byte_of_appended_records_is_looked_at() {
    let lengths = [1000, 100, 700, 24, 32, 300, 1536, 511];
    let mut end = 0;
    let writes = lengths.map(|bytes| {
        end += bytes;
        (end - bytes, bytes)
    });
    let content = written(&writes);
    let whole = found_in(&content, &writes, writes.len());
    assert_eq!((whole.checked, whole.broken), (3, 0), "{whole:?}");
    for at in (0..content.len()).step_by(7) {
        let mut content = content.clone();
        content[at] ^= 1;
        let found = found_in(&content, &writes, writes.len());
        // The last unit of a record may be too short to say which one it is.
        let rest = writes.iter().find(|(offset, bytes)| (*offset..offset + bytes).contains(&(at as u64)));
        let (offset, bytes) = rest.expect("a record");
        let unit = (at as u64 - offset) / UNIT * UNIT;
        assert_eq!(found.broken, u64::from(bytes - unit >= 32), "byte {at}");
    }
    let short = found_in(&content[..content.len() - 1], &writes, writes.len());
    assert_eq!(short.first[0].property, Property::Length);
}

#[test]
fn where_no_byte_is_compared_no_data_is_counted() {
    // A name alone, and a name and a length.
    assert_eq!(found_in(&[], &[], 0).checked, 1);
    assert_eq!(found_in(&[1; 8], &[(0, 8)], 1).checked, 2);
    // The second leaves half of the first.
    assert_eq!(found_in(&[1; 512], &[(0, 512), (100, 300)], 2).checked, 3, "the second itself");
    assert_eq!(found_in(&[1; 512], &[(0, 512), (100, 8)], 2).checked, 2);
}

proptest! {
    /// Each sector of the disk has what it had after the writes that were synced, or after any later one.
    #[test]
    fn no_order_of_sectors_is_taken_for_a_loss(
        writes in prop::collection::vec(prop_oneof![
            (0..8u64, 1..4u64).prop_map(|(unit, units)| (unit * UNIT, units * UNIT)),
            (0..3000u64, 1..1500u64),
        ], 1..8),
        synced: prop::sample::Index,
        ages in prop::collection::vec(any::<prop::sample::Index>(), 16),
    ) {
        let synced = synced.index(writes.len() + 1);
        let after: Vec<Vec<u8>> = (synced..=writes.len()).map(|count| written(&writes[..count])).collect();
        let mut content = after.last().expect("one at least").clone();
        for (number, (sector, age)) in content.chunks_mut(stamp::UNIT).zip(&ages).enumerate() {
            let of = &after[age.index(after.len())];
            let there = of.get(number * stamp::UNIT..).unwrap_or_default();
            let there = &there[..there.len().min(sector.len())];
            sector.fill(0);
            sector[..there.len()].copy_from_slice(there);
        }
        let found = found_in(&content, &writes, synced);
        prop_assert_eq!(found.broken, 0, "{:?}", found.first);
    }
}

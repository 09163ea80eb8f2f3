//! What opening refuses, and what it leaves alone.

use crate::samples::{run, trial};
use fstone_model::result::TrialId;
use fstone_store::{OpenError, Store};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

fn pragma(path: &std::path::Path, name: &str) -> i64 {
    let connection = Connection::open(path).expect("opened");
    connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).expect("a number")
}

#[test]
fn a_new_store_has_the_settings_that_make_it_crash_safe() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("not/yet there/fstone.db");
    drop(Store::open(&path).expect("a store"));
    let connection = Connection::open(&path).expect("opened");
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).expect("a word");
    assert_eq!(mode, "wal");
    assert_eq!(pragma(&path, "user_version"), 8);
    assert_eq!(pragma(&path, "application_id"), 0x6673_746f);
}

#[test]
fn a_newer_store_is_refused_in_clear_words_and_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("fstone.db");
    drop(Store::open(&path).expect("a store"));
    Connection::open(&path).expect("opened").execute_batch("PRAGMA user_version = 9").expect("set");
    for opened in [Store::open(&path), Store::open_read_only(&path)] {
        let error = opened.expect_err("newer");
        assert!(matches!(error, OpenError::Newer { found: 9, known: 8, .. }), "{error}");
        assert!(error.to_string().contains("schema version 9"), "{error}");
    }
    assert_eq!(pragma(&path, "user_version"), 9);
}

#[test]
fn files_of_other_programs_are_refused_and_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = directory.path().join("bookmarks.db");
    Connection::open(&database).expect("opened").execute_batch("CREATE TABLE bookmarks (url)").expect("a table");
    let letter = directory.path().join("letter.txt");
    fs::write(&letter, "Dear store, ".repeat(1000)).expect("written");
    for path in [database, letter] {
        let before = fs::read(&path).expect("read");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("ours");
        for opened in [Store::open(&path), Store::open_read_only(&path)] {
            assert!(matches!(opened, Err(OpenError::Foreign { .. })), "{opened:?}");
        }
        assert_eq!(fs::read(&path).expect("read"), before);
        assert_eq!(mode_of(&path), 0o644, "others read it as before");
    }
}

#[test]
fn another_users_store_keeps_its_rights() {
    use std::os::unix::fs::chown;
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: giving files away needs root");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("fstone.db");
    drop(Store::open(&path).expect("a store"));
    chown(&path, Some(65534), None).expect("given away");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("ours");
    assert!(!Store::open_read_only(&path).expect("opened").was_readable_by_others());
    assert_eq!(mode_of(&path), 0o640);
}

#[test]
fn reading_makes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("fstone.db");
    assert!(matches!(Store::open_read_only(&path), Err(OpenError::Missing { .. })));
    fs::write(&path, "").expect("an empty file");
    assert!(matches!(Store::open_read_only(&path), Err(OpenError::Missing { .. })), "nothing was ever recorded in it");
    assert!(matches!(Store::open(&directory.path().join("fstone.db/inside")), Err(OpenError::Create { .. })));
}

#[test]
fn a_store_that_was_opened_for_reading_cannot_be_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("fstone.db");
    drop(Store::open(&path).expect("a store"));
    let mut store = Store::open_read_only(&path).expect("opened");
    let error = store.begin_run(&run()).expect_err("read only");
    assert!(error.to_string().contains("readonly"), "{error}");
}

/// A directory nobody may write in, so that SQLite cannot make its -shm file, and a name full of what URIs escape.
#[test]
fn a_store_is_readable_where_nothing_can_be_made() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("readable");
    let sealed = directory.path().join("100% sealed? #1");
    let path = sealed.join("fstone.db");
    let mut store = Store::open(&path).expect("a store");
    let number = store.begin_run(&run()).expect("recorded");
    store.record_trial(number, &trial(TrialId { cell: 0, repetition: 0 }, 0)).expect("recorded");
    drop(store);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("for others, too");
    fs::set_permissions(&sealed, fs::Permissions::from_mode(0o555)).expect("sealed");
    let trials = std::thread::spawn({
        let path = path.clone();
        move || {
            // Root may write anywhere; this thread, which ends here, becomes nobody.
            if rustix::process::geteuid().is_root() {
                let nobody = rustix::process::Uid::from_raw(65534);
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("become nobody");
            }
            fs::write(path.with_file_name("new"), "").expect_err("the directory is sealed");
            Store::open_read_only(&path).expect("opened").dataset(number).expect("read").trials.len()
        }
    })
    .join();
    fs::set_permissions(&sealed, fs::Permissions::from_mode(0o755)).expect("unsealed");
    assert_eq!(trials.expect("no panic"), 1);
}

fn made(command: &str, arguments: &[&std::path::Path]) {
    let status = std::process::Command::new(command).args(arguments).status().expect("it starts");
    assert!(status.success(), "{command}");
}

/// SQLite takes a device for an empty file, and waits for ever at a pipe.
#[test]
fn only_a_regular_file_is_opened_and_so_are_the_files_beside_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let pipe = directory.path().join("pipe");
    made("mkfifo", &[&pipe]);
    let (store, to_pipe) = (directory.path().join("fstone.db"), directory.path().join("link"));
    std::os::unix::fs::symlink(&pipe, &to_pipe).expect("a link");
    let irregular = |path: &std::path::Path, what: &str| {
        for opened in [Store::open(path), Store::open_read_only(path)] {
            let error = opened.expect_err("refused");
            assert!(matches!(error, OpenError::Irregular { .. }) && error.to_string().contains(what), "{error}");
        }
    };
    for (path, what) in [
        (pipe.as_path(), "it is a pipe"),
        (to_pipe.as_path(), "it is a pipe"),
        (directory.path(), "it is a directory"),
        ("/dev/null".as_ref(), "it is a device"),
    ] {
        irregular(path, what);
    }
    drop(Store::open(&store).expect("a store"));
    for suffix in ["-wal", "-shm", "-journal"] {
        let beside = directory.path().join(format!("fstone.db{suffix}"));
        made("mkfifo", &[&beside]);
        irregular(&store, suffix);
        fs::remove_file(&beside).expect("ours");
        std::os::unix::fs::symlink(directory.path().join("elsewhere"), &beside).expect("a link");
        irregular(&store, suffix);
        fs::remove_file(&beside).expect("ours");
    }
    assert!(!directory.path().join("elsewhere").exists());
    // A link of its user leads to a store.
    let link = directory.path().join("to-the-store");
    std::os::unix::fs::symlink("fstone.db", &link).expect("a link");
    drop(Store::open(&link).expect("the store"));
    drop(Store::open_read_only(&link).expect("the store"));
    let new = directory.path().join("to-a-new-one");
    std::os::unix::fs::symlink("new.db", &new).expect("a link");
    drop(Store::open(&new).expect("a store"));
    assert!(directory.path().join("new.db").is_file());
}

#[test]
fn a_link_that_another_user_could_have_made_leads_to_no_store() {
    use std::os::unix::fs::{PermissionsExt, lchown};
    let directory = tempfile::tempdir().expect("a directory");
    let (shared, target) = (directory.path().join("shared"), directory.path().join("target"));
    fs::create_dir(&shared).expect("made");
    let mode = |mode| fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).expect("changed");
    std::os::unix::fs::symlink(&target, shared.join("fstone.db")).expect("a link");
    let refused = || {
        let error = Store::open(&shared.join("fstone.db")).expect_err("refused").to_string();
        assert!(error.contains("is a link that another user could have put there"), "{error}");
        assert!(!target.exists());
    };
    mode(0o777);
    refused();
    mode(0o1777);
    if rustix::process::geteuid().is_root() {
        lchown(shared.join("fstone.db"), Some(65534), None).expect("given away");
        refused();
        lchown(shared.join("fstone.db"), Some(0), None).expect("taken back");
        fs::rename(shared.join("fstone.db"), shared.join("own")).expect("ours");
        // A directory on the way counts as well.
        std::os::unix::fs::symlink(directory.path(), shared.join("up")).expect("a link");
        lchown(shared.join("up"), Some(65534), None).expect("given away");
        Store::open(&shared.join("up/target")).expect_err("refused");
        assert!(!target.exists());
        fs::rename(shared.join("own"), shared.join("fstone.db")).expect("ours");
    } else {
        eprintln!("skipped: giving links away needs root");
    }
    drop(Store::open(&shared.join("fstone.db")).expect("a link of this user's own in a sticky directory"));
}

/// SQLite plays back a journal that is there and writes to a log that is there, whoever made them.
#[test]
fn a_store_beside_which_others_can_make_files_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("fstone.db");
    drop(Store::open(&path).expect("a store"));
    let exposed = |what: &str| {
        for opened in [Store::open(&path), Store::open_read_only(&path)] {
            let error = opened.expect_err(what);
            assert!(matches!(error, OpenError::Exposed { .. }), "{what}: {error}");
        }
    };
    for mode in [0o1777, 0o777] {
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).expect("ours");
        exposed("others may write to its directory");
        Store::open(&directory.path().join("new.db")).expect_err("the same");
        assert!(!directory.path().join("new.db").exists(), "nothing is made");
    }
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    drop(Store::open(&path).expect("nobody else can"));
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: giving files away needs root");
        return;
    }
    for suffix in ["-wal", "-shm", "-journal"] {
        let beside = directory.path().join(format!("fstone.db{suffix}"));
        fs::write(&beside, "").expect("ours");
        std::os::unix::fs::chown(&beside, Some(65534), None).expect("given away");
        exposed(suffix);
        fs::remove_file(&beside).expect("ours");
    }
    std::os::unix::fs::chown(directory.path(), Some(65534), None).expect("given away");
    exposed("another user's directory");
}

fn mode_of(path: &std::path::Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

#[test]
fn a_store_is_for_its_owner_alone_and_one_that_was_not_is_made_so_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("share/fstone");
    let path = home.join("fstone.db");
    let mut store = Store::open(&path).expect("a store");
    store.begin_run(&run()).expect("recorded");
    assert!(!store.was_readable_by_others());
    let files: Vec<_> = ["fstone.db", "fstone.db-wal", "fstone.db-shm"].map(|name| home.join(name)).into();
    assert!(
        files.iter().all(|file| mode_of(file) == 0o600),
        "{:?}",
        files.iter().map(|it| mode_of(it)).collect::<Vec<_>>()
    );
    assert_eq!((mode_of(&home), mode_of(home.parent().expect("made"))), (0o700, 0o700));
    for reads in [true, false] {
        for file in &files {
            fs::set_permissions(file, fs::Permissions::from_mode(0o664)).expect("ours");
        }
        let open = || if reads { Store::open_read_only(&path) } else { Store::open(&path) };
        let opened = open().expect("opened");
        assert!(opened.was_readable_by_others(), "it can be said");
        assert!(files.iter().all(|file| mode_of(file) == 0o600));
        assert!(!open().expect("opened").was_readable_by_others(), "once");
    }
}

#[test]
fn a_store_of_before_is_refused_with_its_cure_and_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("fstone.db");
    drop(Store::open(&path).expect("a store"));
    Connection::open(&path).expect("opened").execute_batch("PRAGMA user_version = 7").expect("set");
    for opened in [Store::open(&path), Store::open_read_only(&path)] {
        let error = opened.expect_err("older");
        assert!(matches!(error, OpenError::Older { found: 7, known: 8, .. }), "{error}");
        let error = error.to_string();
        assert!(error.contains("`fstone export`") && error.contains("or remove it"), "{error}");
    }
    assert_eq!(pragma(&path, "user_version"), 7);
}

//! With sudo the store belongs to the user who called.

use crate::samples::run;
use fstone_store::Store;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

const STORE: &str = "FSTONE_TEST_OWNED_STORE";
const USER: u32 = 12345;
const GROUP: u32 = 54321;

/// Leaves SQLite's own files there, as a killed process does.
#[test]
#[ignore = "the child of the test below"]
fn child() {
    let path = std::env::var_os(STORE).expect("only as a child");
    let mut store = Store::open(Path::new(&path)).expect("opened");
    store.begin_run(&run()).expect("recorded");
    std::mem::forget(store);
}

#[test]
fn with_sudo_everything_made_belongs_to_the_caller() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("share/fstone");
    let store = home.join("fstone.db");
    let status = Command::new(std::env::current_exe().expect("this binary"))
        .args(["ownership::child", "--exact", "--ignored"])
        .envs([("SUDO_UID", USER.to_string()), ("SUDO_GID", GROUP.to_string())])
        .env(STORE, &store)
        .status()
        .expect("started");
    assert!(status.success());
    for name in ["..", ".", "fstone.db", "fstone.db-wal", "fstone.db-shm"] {
        let metadata = std::fs::metadata(home.join(name)).expect(name);
        assert_eq!((metadata.uid(), metadata.gid()), (USER, GROUP), "{name}");
    }
    assert_eq!(directory.path().metadata().expect("there").uid(), 0, "what was there before keeps its owner");
}

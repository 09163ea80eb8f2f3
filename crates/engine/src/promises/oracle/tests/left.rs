//! Names that files left by calls that may have had no effect.

use super::*;

fn found_after(calls: impl Fn(&Told, &dyn Fn(&str) -> Arc<str>), there: &[&str]) -> (u64, Vec<Property>) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| -> Arc<str> { place.path().join(name).to_string_lossy().into() };
    let told = Told(Witness::new());
    told.0.settled(place.path());
    for (name, inode) in [("a", 5), ("b", 6)] {
        told.0.opened(told.0.tick(), &path(name), inode, false);
    }
    let moment = told.0.moment();
    calls(&told, &path);
    for name in there {
        std::fs::write(&*path(name), []).expect("ours");
    }
    let kept = told.look_between(moment..told.0.moment());
    (kept.checked, kept.first.into_iter().map(|broken| broken.property).collect())
}

#[test]
fn a_name_that_was_left_is_not_replaced() {
    let rename = |told: &Told, from, to| told.change(Change::Renamed { from, to });
    let passed_on = |told: &Told, path: &dyn Fn(&str) -> Arc<str>| {
        rename(told, path("a"), path("c"));
        rename(told, path("b"), path("a"));
    };
    assert_eq!(found_after(passed_on, &["b", "c"]), (2, vec![]));
    assert_eq!(found_after(passed_on, &["a", "b"]), (2, vec![]));
    assert_eq!(found_after(passed_on, &["c"]).1, [Property::Name], "the second is lost");
    let removed_before = |told: &Told, path: &dyn Fn(&str) -> Arc<str>| {
        told.change(Change::Unnamed { path: path("a") });
        rename(told, path("b"), path("a"));
    };
    assert_eq!(found_after(removed_before, &["b"]), (1, vec![]));
}

#[test]
fn a_file_that_is_moved_back_does_not_replace_itself() {
    let back = |told: &Told, path: &dyn Fn(&str) -> Arc<str>| {
        told.change(Change::Renamed { from: path("a"), to: path("c") });
        told.change(Change::Renamed { from: path("c"), to: path("a") });
    };
    assert_eq!(found_after(back, &["a", "b"]), (2, vec![]));
    assert_eq!(found_after(back, &["c", "b"]), (2, vec![]));
    assert_eq!(found_after(back, &["b"]).1, [Property::Name]);
}

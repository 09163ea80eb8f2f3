//! Files that get their name when they are complete.
//!
//! Until then they have no name at all, so that nothing is left if their process is killed. Where the filesystem has no such
//! files, they have a name that cannot be guessed and that contains their inode number, and their process holds a lock on them.
//! If one is not locked, its process was killed, and it is removed when the next is made in the same directory.
//!
//! The directory is opened once. All else goes relative to it, so that it cannot be exchanged for a link in between.

use crate::path::{DIRECTORY, directory_of, open_directory_of};
use crate::trust::{others_may_write, place_of};
use crate::{Owner, Trust};
use rustix::fs::{
    AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, RenameFlags, flock, linkat, open, openat, renameat, renameat_with,
    unlinkat,
};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::ffi::OsStr;
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

const BEGINNING: &str = ".fstone-";
const END: &str = ".part";

const MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A file beside its future name; it is gone unless it gets that name. Only its owner may read it.
#[derive(Debug)]
pub struct Temporary {
    file: File,
    directory: File,
    /// What the directory was called.
    beside: PathBuf,
    /// Its name, if it has one already.
    name: Option<String>,
}

impl Temporary {
    /// Makes an empty file in the directory of `path`, owned by the caller of `sudo`.
    ///
    /// # Errors
    /// Those of open(2) and fchown(2), and if a link leads there that another user could have made.
    pub fn beside(path: &Path) -> io::Result<Self> {
        Self::owned(path, Owner::caller())
    }

    /// The same, owned by `owner` if given, and else by this process's user.
    pub fn owned(path: &Path, owner: Option<Owner>) -> io::Result<Self> {
        let directory = open_directory_of(path)?;
        let (file, name) = match temporary(&directory, OFlags::empty())? {
            Some(file) => (file, None),
            None => {
                remove_left(&directory);
                let (file, name) = named(&directory)?;
                (file, Some(name))
            }
        };
        if let Some(owner) = owner {
            fchown(&file, Some(owner.user), Some(owner.group))?;
        }
        Ok(Self { file, directory, beside: directory_of(path).to_owned(), name })
    }

    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Gives it the rights, and if this process may also the owner, of the regular file that it is to replace. False if there is none, or if
    /// another user could have put it there to read what replaces it.
    ///
    /// # Errors
    /// Those of chmod(2), and if something else than a regular file is there.
    pub fn resemble(&self, path: &Path) -> io::Result<bool> {
        let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let before = match openat(&self.directory, self.last_part(path)?, how, Mode::empty()) {
            Ok(before) => File::from(before).metadata()?,
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        };
        if !before.is_file() {
            return Err(io::Error::other("something else has taken its place"));
        }
        let (trust, above) = (Trust::here(), self.directory.metadata()?);
        let is_others = !trust.includes(above.uid()) || others_may_write(&place_of(&self.directory), &above);
        if is_others && !trust.includes(before.uid()) {
            return Ok(false);
        }
        let now = self.file.metadata()?;
        if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
            // Only root can give files away; for others the file becomes their own, as with any editor.
            let _ = fchown(&self.file, Some(before.uid()), Some(before.gid()));
        }
        self.file.set_permissions(Permissions::from_mode(before.mode() & 0o777))?;
        Ok(true)
    }

    /// Gives the file its name, replacing any file of that name. It is on the disk by then. `path` is in the directory that
    /// it was made for.
    ///
    /// # Errors
    /// Those of fsync(2), link(2) and rename(2).
    pub fn replace(mut self, path: &Path) -> io::Result<()> {
        let to = self.last_part(path)?;
        // Some filesystems report only now that there was no space. The old file is still there.
        self.file.sync_all()?;
        let from = match self.name.take() {
            Some(from) => from,
            None => {
                // A link replaces nothing, so it needs a name first, and a kill may leave it.
                remove_left(&self.directory);
                let _ = flock(&self.file, FlockOperation::NonBlockingLockExclusive);
                let from = name(&unguessable()?, self.file.metadata()?.ino());
                link(&self.file, &self.directory, OsStr::new(&from))?;
                from
            }
        };
        renameat(&self.directory, self.name.insert(from).as_str(), &self.directory, to)?;
        self.name = None;
        Ok(())
    }

    /// Gives the file its name. An existing file of that name stays, wherever it came from. `path` is in the directory that
    /// it was made for.
    ///
    /// # Errors
    /// Those of fsync(2), rename(2) and link(2): [`io::ErrorKind::AlreadyExists`] when the name is taken.
    pub fn publish(mut self, path: &Path) -> io::Result<()> {
        let to = self.last_part(path)?;
        self.file.sync_all()?;
        let directory = &self.directory;
        let Some(from) = &self.name else { return link(&self.file, directory, to) };
        match renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE) {
            // The filesystem cannot do that (NFS). A link never replaces anything; the other name goes with `self`.
            Err(Errno::INVAL | Errno::NOSYS) => Ok(linkat(directory, from, directory, to, AtFlags::empty())?),
            other => {
                other?;
                self.name = None;
                Ok(())
            }
        }
    }

    /// The name of a path in this file's directory.
    fn last_part<'a>(&self, path: &'a Path) -> io::Result<&'a OsStr> {
        if directory_of(path) != self.beside {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it was made for another directory"));
        }
        Ok(path.file_name().ok_or(io::ErrorKind::IsADirectory)?)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // An error cannot be reported here, and the next one made in this directory tries again.
            let _ = unlinkat(&self.directory, name, AtFlags::empty());
        }
    }
}

/// A file in a directory that never gets a name: nothing is left of it when it is closed, be it by a kill. Where the filesystem
/// has none, it has a name until it is open.
pub fn nameless(directory: &Path) -> io::Result<File> {
    let directory = open_directory(directory)?;
    match temporary(&directory, OFlags::EXCL)? {
        Some(file) => Ok(file),
        None => named_for_a_moment(&directory),
    }
}

/// The same; `None` where the filesystem has none.
pub fn nameless_where_possible(directory: &Path) -> io::Result<Option<File>> {
    // EXCL: it never gets a name.
    temporary(&open_directory(directory)?, OFlags::EXCL)
}

/// A word of 128 random bits, for a name.
///
/// # Errors
/// Those of getrandom(2).
pub fn unguessable() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// Opens a directory to make files in, wherever links lead.
fn open_directory(directory: &Path) -> io::Result<File> {
    Ok(open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?.into())
}

fn temporary(directory: &File, more: OFlags) -> io::Result<Option<File>> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | more;
    match openat(directory, ".", flags, MODE) {
        Ok(file) => Ok(Some(file.into())),
        // What filesystems without them say (procfs: EPERM), and kernels that do not know the flag (open(2)).
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT | Errno::PERM) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn link(file: &File, directory: &File, name: &OsStr) -> io::Result<()> {
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, open, directory, name, AtFlags::SYMLINK_FOLLOW)?)
}

fn named_for_a_moment(directory: &File) -> io::Result<File> {
    let (file, name) = named(directory)?;
    unlinkat(directory, name, AtFlags::empty())?;
    Ok(file)
}

/// A locked file with the name by which [`remove_left`] recognises it.
fn named(directory: &File) -> io::Result<(File, String)> {
    let word = unguessable()?;
    let first = format!("{BEGINNING}{word}{END}");
    let how = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = File::from(openat(directory, &first, how, MODE)?);
    // Before it has the name by which it can be removed. Where there are no locks, nothing is removed.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    let name = name(&word, file.metadata()?.ino());
    renameat(directory, &first, directory, &name)?;
    Ok((file, name))
}

/// A name that only this file has, and no copy of it.
fn name(word: &str, inode: u64) -> String {
    format!("{BEGINNING}{word}-{inode}{END}")
}

fn is_named_by_us(found: &str, inode: u64) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let word = found.strip_prefix(BEGINNING).and_then(|rest| rest.get(..32));
    word.is_some_and(|word| word.bytes().all(is_digit) && name(word, inode) == found)
}

/// Removes what killed processes left here. What cannot be removed stays, which does no harm.
fn remove_left(directory: &File) {
    let user = rustix::process::geteuid().as_raw();
    let caller = Owner::caller().map_or(user, |caller| caller.user);
    let Ok(entries) = openat(directory, ".", DIRECTORY, Mode::empty()).and_then(Dir::new) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(known) = name.to_str().ok().filter(|name| name.starts_with(BEGINNING)) else { continue };
        let is_ours = |found: io::Result<Metadata>| {
            found.is_ok_and(|found| {
                found.is_file()
                    && found.nlink() == 1
                    && [user, caller].contains(&found.uid())
                    && is_named_by_us(known, found.ino())
            })
        };
        // Neither a link nor a pipe is followed or waited for, and no device notices.
        let open = |how: OFlags| {
            openat(directory, name, how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
                .map(File::from)
        };
        if !open(OFlags::PATH).is_ok_and(|found| is_ours(found.metadata())) {
            continue;
        }
        let Ok(file) = open(OFlags::RDONLY) else { continue };
        if is_ours(file.metadata()) && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = unlinkat(directory, name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    fn both(path: &Path) -> [Temporary; 2] {
        let directory = open_directory_of(path).expect("there");
        let (file, name) = named(&directory).expect("made");
        let beside = directory_of(path).to_owned();
        [Temporary::beside(path).expect("made"), Temporary { file, directory, beside, name: Some(name) }]
    }

    /// Two directories, and a link from one to the other.
    fn linked(place: &Path) -> [PathBuf; 3] {
        let [shared, elsewhere] = ["shared", "elsewhere"].map(|name| place.join(name));
        [&shared, &elsewhere].into_iter().for_each(|path| fs::create_dir(path).expect("made"));
        let link = shared.join("link");
        symlink(&elsewhere, &link).expect("linked");
        fs::write(elsewhere.join("file"), "somebody's").expect("written");
        [shared, elsewhere, link]
    }

    #[test]
    fn no_file_is_made_where_another_users_link_leads() {
        let place = tempfile::tempdir().expect("a directory");
        let [shared, elsewhere, link] = linked(place.path());
        let path = link.join("file");
        let refused = |why: &str| {
            let error = Temporary::beside(&path).expect_err(why);
            assert!(error.to_string().contains("another user could have put there"), "{error}");
            assert_eq!(fs::read_dir(&elsewhere).expect("readable").count(), 1);
        };
        let own = Temporary::beside(&path).expect("this user's own link");
        own.publish(&path.with_file_name("new")).expect("published");
        fs::remove_file(elsewhere.join("new")).expect("it leads there");
        fs::set_permissions(&shared, Permissions::from_mode(0o777)).expect("changed");
        refused("anybody could have made the link");
        fs::set_permissions(&shared, Permissions::from_mode(0o755)).expect("changed");
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: only root can make a link of another user");
        }
        lchown(&link, Some(12_345), Some(12_345)).expect("given away");
        refused("another user's link");
    }

    #[test]
    fn a_directory_that_is_exchanged_for_a_link_keeps_its_files() {
        let place = tempfile::tempdir().expect("a directory");
        let [shared, elsewhere, link] = linked(place.path());
        let (directory, away) = (shared.join("directory"), shared.join("away"));
        fs::create_dir(&directory).expect("made");
        let path = |name: &str| directory.join(name);
        let (replaced, published, dropped) = (both(&path("file")), both(&path("0")), both(&path("file")));
        fs::rename(&directory, &away).expect("moved");
        fs::rename(&link, &directory).expect("moved");
        for (number, temporary) in replaced.into_iter().enumerate() {
            write!(temporary.file(), "{number}").expect("written");
            temporary.replace(&path("file")).expect("replaced");
            assert_eq!(fs::read_to_string(away.join("file")).expect("there"), number.to_string());
        }
        for (number, temporary) in published.into_iter().enumerate() {
            temporary.publish(&path(&number.to_string())).expect("published");
            assert!(away.join(number.to_string()).is_file());
        }
        for temporary in dropped {
            let error = temporary.replace(&away.join("file")).expect_err("it was made for another directory");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
        }
        assert_eq!(fs::read_dir(&away).expect("readable").count(), 3, "nothing beside them");
        assert_eq!(fs::read_to_string(elsewhere.join("file")).expect("there"), "somebody's");
        assert_eq!(fs::read_dir(&elsewhere).expect("readable").count(), 1);
    }

    #[test]
    fn a_directory_that_is_being_exchanged_for_a_link_leads_nowhere() {
        let place = tempfile::tempdir().expect("a directory");
        let [shared, elsewhere, link] = linked(place.path());
        let directory = shared.join("directory");
        fs::create_dir(&directory).expect("made");
        fs::set_permissions(&shared, Permissions::from_mode(0o777)).expect("changed");
        let exchange = || renameat_with(CWD, &directory, CWD, &link, RenameFlags::EXCHANGE);
        if let Err(errno) = exchange().and_then(|()| exchange()) {
            return eprintln!("skipped: this filesystem exchanges nothing: {errno}");
        }
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    exchange().expect("exchanged");
                }
            });
            let path = directory.join("file");
            for _ in 0..500 {
                // It succeeds or it is refused.
                let _ = Temporary::beside(&path).and_then(|temporary| temporary.replace(&path));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read_to_string(elsewhere.join("file")).expect("there"), "somebody's");
    }

    #[test]
    fn a_name_that_was_taken_meanwhile_stays_whose_it_is_unless_it_is_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        fs::write(&path, "somebody's").expect("ours");
        for temporary in both(&path) {
            let error = temporary.publish(&path).expect_err("it is taken");
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
            assert_eq!(fs::read_to_string(&path).expect("there"), "somebody's");
        }
        for (number, temporary) in both(&path).into_iter().enumerate() {
            write!(temporary.file(), "{number}").expect("written");
            assert_eq!(temporary.file().metadata().expect("open").mode() & 0o777, 0o600);
            temporary.replace(&path).expect("replaced");
            assert_eq!(fs::read_to_string(&path).expect("there"), number.to_string());
        }
        for (number, temporary) in both(&path).into_iter().enumerate() {
            temporary.publish(&directory.path().join(number.to_string())).expect("free");
        }
        drop(both(&path));
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 3, "nothing beside them");
    }

    #[test]
    fn what_is_not_complete_has_no_name_where_it_need_not_have_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let names = || fs::read_dir(directory.path()).expect("readable").count();
        let temporary = Temporary::beside(&directory.path().join("file")).expect("made");
        assert_eq!(names(), usize::from(temporary.name.is_some()));
        drop(temporary);
        let opened = open_directory(directory.path()).expect("there");
        let never = [nameless(directory.path()).expect("made"), named_for_a_moment(&opened).expect("made")];
        for file in never {
            let facts = file.metadata().expect("open");
            assert_eq!((facts.nlink(), facts.mode() & 0o777, names()), (0, 0o600, 0));
        }
        if let Some(never) = nameless_where_possible(directory.path()).expect("asked") {
            assert!(link(&never, &opened, OsStr::new("name")).is_err());
        }
        assert!(nameless(&directory.path().join("missing")).is_err());
    }

    #[test]
    fn what_a_kill_left_of_a_replacement_is_removed_by_the_next() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        let killed = Temporary::beside(&path).expect("made");
        if killed.name.is_some() {
            return eprintln!("skipped: this filesystem has no files without names");
        }
        // Between the two calls that give it its name.
        let left = name(&unguessable().expect("random"), killed.file.metadata().expect("open").ino());
        link(&killed.file, &killed.directory, OsStr::new(&left)).expect("linked");
        let left = directory.path().join(left);
        drop(killed);
        Temporary::beside(&path).expect("made").replace(&path).expect("replaced");
        assert!(!left.exists() && path.exists());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let opened = open_directory(directory.path()).expect("there");
        let made = || named(&opened).map(|(file, name)| (file, path(&name))).expect("made");
        let (_lock, living) = made();
        let (lock, left) = made();
        drop(lock);
        // A user's files of such names: a copy has another number.
        let word = "0123456789abcdef0123456789abcdef";
        let kept = ["report.part", ".fstone-1-1.part", ".fstone-0-1.part", &format!(".fstone-{word}-1.part")];
        for name in kept {
            fs::write(path(name), "").expect("ours");
        }
        let (_, linked) = made();
        fs::hard_link(&linked, path("another name")).expect("ours");
        fs::create_dir(path(&name(word, 2))).expect("ours");
        symlink(path(kept[0]), path(&name(word, 3))).expect("ours");
        remove_left(&opened);
        assert!(!left.exists(), "nobody holds it");
        assert!(living.exists(), "this one is being written");
        assert!(linked.exists(), "it has another name");
        for name in kept.map(str::to_owned).into_iter().chain([name(word, 2), name(word, 3)]) {
            assert!(path(&name).exists(), "{name}");
        }
    }
}

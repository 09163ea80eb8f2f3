//! Opening a store, with the settings that make it crash-safe.

use crate::schema::{self, Kind, VERSION};
use crate::{OpenError, RecordError};
use fstone_files::{Owner, Trust, create_directories, directory_of, make_private, regular, regular_or_new, resolve};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a writer waits for another one. A transaction takes milliseconds, but longer on a device that is busy with
/// a benchmark, and keeping devices busy is what this program does.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// An open store. Threads must not share it: each opens its own.
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    path: PathBuf,
    was_readable: bool,
}

impl Store {
    /// Opens a store for reading and writing; makes it, and the directories above it, when there is none, for its owner
    /// alone, and takes the rights of others from one that is there. With `sudo`, what is made belongs to the caller
    /// ([`Owner::caller`]).
    ///
    /// The settings, and why:
    /// - `journal_mode = WAL`: a reader never makes a writer wait, nor the other way round, so a report can be written
    ///   while a run is in progress; a process that is killed leaves a log whose unfinished end the next one ignores. WAL needs
    ///   memory that all writers share, so on a filesystem that several machines mount it is SQLite's rollback journal,
    ///   which needs only the filesystem's locks: as safe, though readers then wait for writers.
    /// - `synchronous = FULL`: every commit ends in an fsync of that log. With WAL's usual NORMAL a power cut could
    ///   take trials back that were reported as recorded. It costs one fsync per trial.
    /// - `foreign_keys = ON`: a row always has its trial, cell and run; `delete_runs` leaves nothing behind.
    ///
    /// # Errors
    /// [`OpenError`]: among others for a file of another program and for one of a newer fstone, both left untouched.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let create = |cause| OpenError::Create { path: path.to_owned(), cause };
        let owner = Owner::caller();
        if let Some(parent) = path.parent() {
            create_directories(parent, owner).map_err(create)?;
        }
        if path.symlink_metadata().is_err() {
            // Before anything is made there.
            let directory = resolve(directory_of(path)).map_err(create)?;
            examine_directory(&directory, path, &Trust::here())?;
        }
        let there = regular_or_new(path, owner).map_err(|cause| match cause {
            cause if is_irregular(&cause) => OpenError::Irregular { path: path.to_owned(), cause },
            cause => create(cause),
        })?;
        examine_place(&there, path, &Trust::here())?;

        let sqlite = |cause| OpenError::sqlite(path, cause);
        let mut connection =
            Connection::open_with_flags(&there, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
                .map_err(sqlite)?;
        configure(&connection).map_err(sqlite)?;
        match schema::create(&mut connection).map_err(sqlite)? {
            Kind::Store(version) if version == VERSION => {}
            kind => return Err(OpenError::unfit(path, kind)),
        }
        let was_readable = take_from_others(&there);
        let mode = if is_shared_between_hosts(path) { "DELETE" } else { "WAL" };
        set_journal(&connection, mode).map_err(sqlite)?;
        Ok(Self { connection, path: path.to_owned(), was_readable })
    }

    /// A store without a name, which is gone when it is dropped: SQLite keeps it in memory, and what becomes large in a file
    /// that no directory lists.
    pub(crate) fn nameless() -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags("", flags)?;
        configure(&connection)?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        schema::create(&mut connection)?;
        Ok(Self { connection, path: PathBuf::new(), was_readable: false })
    }

    /// Opens a store for reading only. Nothing is made. Works on a store that this user cannot write,
    /// even on read-only media, as long as no crashed writer left a log beside it that has to be worked in.
    pub fn open_read_only(path: &Path) -> Result<Self, OpenError> {
        let named = || path.to_owned();
        let there = match regular(path) {
            Ok(Some(there)) => there,
            Ok(None) => return Err(OpenError::Missing { path: named() }),
            Err(cause) if is_irregular(&cause) => return Err(OpenError::Irregular { path: named(), cause }),
            Err(cause) => return Err(OpenError::Access { path: named(), cause }),
        };
        // The owner of a store that is only read may do with it what he likes.
        let owner = there.metadata().map_err(|cause| OpenError::Access { path: named(), cause })?.uid();
        examine_place(&there, path, &Trust::here().and(owner))?;
        let open = |path: &Path, flags| {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | flags;
            let connection = Connection::open_with_flags(path, flags)?;
            configure(&connection)?;
            let kind = schema::kind(&connection)?;
            Ok((connection, kind))
        };
        let (connection, kind) = match open(&there, OpenFlags::empty()) {
            // Even to read, WAL needs its -shm file. Where it cannot be made and there is no log to read, the file
            // cannot change either, and SQLite may take it as it is.
            Err(error) if cannot_make_shm(&error) && !beside(&there, "-wal").exists() => {
                open(&immutable_uri(&there), OpenFlags::SQLITE_OPEN_URI)
            }
            other => other,
        }
        .map_err(|cause| OpenError::sqlite(path, cause))?;
        match kind {
            Kind::Store(version) if version == VERSION => {
                let was_readable = take_from_others(&there);
                Ok(Self { connection, path: path.to_owned(), was_readable })
            }
            kind => Err(OpenError::unfit(path, kind)),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether other users had rights to it until it was opened.
    pub const fn was_readable_by_others(&self) -> bool {
        self.was_readable
    }

    /// Does `work` in one transaction, which is rolled back unless it succeeds. It is an immediate one: the write lock is
    /// taken at once, where SQLite waits for another writer, and not at the first write, where it could only give up.
    pub(crate) fn write<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, RecordError>,
    ) -> Result<T, RecordError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let value = work(&transaction)?;
        transaction.commit()?;
        Ok(value)
    }
}

/// Takes the rights of others to what is known to be a store, and to the files beside it. On media that cannot be written they stay.
fn take_from_others(store: &Path) -> bool {
    let files = all_beside(store).into_iter().chain([store.to_owned()]);
    // Each of them, so no `any`.
    files.filter(|path| make_private(path).unwrap_or(false)).count() > 0
}

fn all_beside(store: &Path) -> [PathBuf; 3] {
    ["-wal", "-shm", "-journal"].map(|suffix| beside(store, suffix))
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Deleted data must not be recoverable from a copy of the file.
    connection.pragma_update(None, "secure_delete", true)?;
    // A store may come from outside: its schema must not call functions with side effects.
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(())
}

/// Switches the file permanently to a journal mode. SQLite does not wait for other connections here, so we do.
fn set_journal(connection: &Connection, wanted: &str) -> rusqlite::Result<()> {
    let started = Instant::now();
    loop {
        let set = connection.pragma_update_and_check(None, "journal_mode", wanted, |row| row.get::<_, String>(0));
        // Without any shared memory, SQLite keeps the rollback journal by itself, and reports that mode instead of an error.
        let Err(busy) = set else { return Ok(()) };
        let waits = matches!(busy.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked));
        if !waits || started.elapsed() > BUSY_TIMEOUT {
            return Err(busy);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether other machines may have this file open too, as far as the kind of its filesystem tells. What is mounted by a
/// process (FUSE) may be anything, and counts as shared.
pub fn is_shared_between_hosts(path: &Path) -> bool {
    // A filesystem of an unknown kind is assumed to be local, as SQLite itself does.
    rustix::fs::statfs(path).is_ok_and(|filesystem| SHARED.contains(&(filesystem.f_type as u32)))
}

/// Kinds of filesystems that several machines mount at once, by the number that statfs(2) returns: linux/magic.h, and for
/// those outside of the kernel their own sources.
const SHARED: [u32; 13] = [
    0x6969,      // NFS
    0xFF53_4D42, // CIFS
    0xFE53_4D42, // SMB 2 and 3
    0x517B,      // the old smbfs
    0x6573_5546, // FUSE: GlusterFS, sshfs, JuiceFS, …
    0x0102_1997, // 9p
    0x00C3_6400, // Ceph
    0x0BD0_0BD0, // Lustre
    0x4750_4653, // GPFS
    0x1983_0326, // BeeGFS
    0x0116_1970, // GFS2
    0x7461_636F, // OCFS2
    0x5346_414F, // AFS
];

/// Refuses a store beside which others could put a file: SQLite writes to its log and carries out what is in its journal. Refuses also
/// what is no regular file of a trusted user there.
fn examine_place(store: &Path, path: &Path, trust: &Trust) -> Result<(), OpenError> {
    examine_directory(directory_of(store), path, trust)?;
    for beside in all_beside(store) {
        let Ok(found) = beside.symlink_metadata() else { continue };
        if !found.is_file() {
            let cause =
                io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file, as it has to be beside a store");
            return Err(OpenError::Irregular { path: beside, cause });
        }
        if !trust.includes(found.uid()) {
            return Err(OpenError::Exposed { path: path.to_owned(), place: beside });
        }
    }
    Ok(())
}

fn examine_directory(directory: &Path, path: &Path, trust: &Trust) -> Result<(), OpenError> {
    let access = |cause| OpenError::Access { path: path.to_owned(), cause };
    match trust.open_to_others(directory).map_err(access)? {
        Some(part) => Err(OpenError::Exposed { path: path.to_owned(), place: part.place().to_owned() }),
        None => Ok(()),
    }
}

fn is_irregular(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory)
}

fn cannot_make_shm(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The name for SQLite of the file that the system has under this one. SQLite gives `:memory:` and names that begin with
/// `file:` a meaning of their own; an absolute name has none.
pub(crate) fn plain_name(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| Path::new(".").join(path))
}

/// `file:PATH?immutable=1` with everything that has a meaning in a URI escaped.
fn immutable_uri(path: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let mut uri = String::from("file://");
    for byte in plain_name(path).as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => uri.push(char::from(*byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri.into()
}

impl OpenError {
    fn sqlite(path: &Path, cause: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match cause.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::Foreign { path },
            // SQLite keeps the system's reason to itself.
            Some(ErrorCode::CannotOpen) => match File::open(&path) {
                Err(reason) => Self::Access { path, cause: reason },
                Ok(_) => Self::Sqlite { path, cause },
            },
            _ => Self::Sqlite { path, cause },
        }
    }

    fn unfit(path: &Path, kind: Kind) -> Self {
        let path = path.to_owned();
        match kind {
            Kind::Store(found) if found > VERSION => Self::Newer { path, found, known: VERSION },
            Kind::Store(found) => Self::Older { path, found, known: VERSION },
            Kind::Empty => Self::Missing { path },
            Kind::Foreign => Self::Foreign { path },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_can_be_changed_to_one_that_machines_can_share_and_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("store.db");
        let connection = Connection::open(&path).expect("opened");
        connection.execute_batch("CREATE TABLE t(a)").expect("written");
        let mode = || connection.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0)).expect("told");
        for (wanted, is) in [("WAL", "wal"), ("DELETE", "delete"), ("WAL", "wal")] {
            set_journal(&connection, wanted).expect("switched");
            assert_eq!(mode(), is);
        }
        assert!(!is_shared_between_hosts(&path), "a directory for temporary files is this machine's own");
    }

    /// statfs gives a signed number, and two of these have its highest bit.
    #[test]
    fn kinds_beyond_31_bits_are_known() {
        for kind in [0xFF53_4D42u32, 0xFE53_4D42] {
            let told = i64::from(kind.cast_signed());
            assert!(SHARED.contains(&(told as u32)) && SHARED.contains(&(i64::from(kind) as u32)));
        }
    }
}

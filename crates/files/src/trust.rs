//! Which users a process relies on: who else may own or change what it works with.

use crate::Owner;
use rustix::io::Errno;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The user that the kernel shows as owner if this user namespace has no number for the real one (user_namespaces(7)).
const OVERFLOW_USER: u32 = 65534;

/// The users who may own what this process relies on.
#[derive(Debug)]
pub struct Trust(Vec<u32>);

impl Trust {
    /// Root, this process's user and the one who called sudo. In a user namespace also the users outside, root among them, who all have
    /// one number there, unless that is the number of a user inside as well.
    pub fn here() -> Self {
        let map = fs::read_to_string("/proc/self/uid_map");
        let has_outside = map.is_ok_and(|map| !maps(&map, OVERFLOW_USER));
        let caller = Owner::caller().map(|caller| caller.user);
        let users = [Some(0), Some(user()), caller, has_outside.then_some(OVERFLOW_USER)];
        Self(users.into_iter().flatten().collect())
    }

    /// The same in a guest, which sees its root as a process in a user namespace does; the maker of that root is trusted as well.
    pub fn in_guest(maker: Option<u32>) -> Self {
        let mut trust = Self::here();
        trust.0.extend(maker.into_iter().chain([OVERFLOW_USER]));
        trust
    }

    pub fn and(mut self, user: u32) -> Self {
        self.0.push(user);
        self
    }

    pub fn includes(&self, user: u32) -> bool {
        self.0.contains(&user)
    }

    /// The first part of a path, from the root down, that a user who is not trusted could make lead elsewhere. The path has to be without
    /// symbolic links.
    ///
    /// The argument: a name is looked up part by part, and a part can be exchanged only by who may write the directory
    /// above it. Where each directory on the way is owned by a trusted user and writable by nobody else, only they can.
    /// In a sticky directory, such as /tmp, others may write but cannot rename or remove what is not theirs, and the part
    /// below is looked at in its turn.
    ///
    /// # Errors
    /// Those of lstat(2).
    pub fn exchangeable(&self, path: &Path) -> io::Result<Option<Exchangeable>> {
        let mut parts: Vec<&Path> = path.ancestors().filter(|part| !part.as_os_str().is_empty()).collect();
        parts.reverse();
        for part in parts {
            if let Some(found) = self.judge(part, &fs::symlink_metadata(part)?) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The same of a directory whose contents this process relies on: nobody else may make files in it, even if it is sticky.
    ///
    /// # Errors
    /// Those of lstat(2).
    pub fn open_to_others(&self, directory: &Path) -> io::Result<Option<Exchangeable>> {
        if let Some(found) = self.exchangeable(directory)? {
            return Ok(Some(found));
        }
        let is_open = others_may_write(directory, &fs::symlink_metadata(directory)?);
        Ok(is_open.then(|| Exchangeable::Shared(directory.to_owned())))
    }

    /// One part of a path, of which these are the facts.
    pub fn judge(&self, part: &Path, facts: &Metadata) -> Option<Exchangeable> {
        if !self.includes(facts.uid()) {
            Some(Exchangeable::Owned(part.to_owned(), facts.uid()))
        } else if facts.is_dir() && facts.mode() & 0o1000 == 0 && others_may_write(part, facts) {
            Some(Exchangeable::Writable(part.to_owned()))
        } else {
            None
        }
    }
}

/// A part of a path that somebody else could make lead elsewhere, and why; a sentence without its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Exchangeable {
    #[error("others may write to {}, so fstone does not work there; chmod go-w it", .0.display())]
    Writable(PathBuf),
    /// As /tmp is, which is to stay so.
    #[error("all may write to {}, so fstone does not work in it itself; name a directory of your own below it", .0.display())]
    Shared(PathBuf),
    #[error("{} belongs to user {}, so fstone does not work there; work as that user", .0.display(), .1)]
    Owned(PathBuf, u32),
}

impl Exchangeable {
    pub fn place(&self) -> &Path {
        let (Self::Writable(place) | Self::Shared(place) | Self::Owned(place, _)) = self;
        place
    }

    pub fn refusal(&self) -> io::Error {
        io::Error::new(io::ErrorKind::PermissionDenied, format!("{self}, or name another directory"))
    }
}

/// Whether a user namespace has a user of this number. The first one has all.
fn maps(map: &str, user: u32) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        matches!(numbers[..], [inside, _, count] if (inside..inside.saturating_add(count)).contains(&user.into()))
    })
}

/// Whether something belongs to this user, or to the user who called sudo.
pub(crate) fn is_own(facts: &Metadata) -> bool {
    facts.uid() == user() || Owner::caller().is_some_and(|caller| caller.user == facts.uid())
}

/// Whether its mode lets other users write it. A group counts as other users unless it is an ordinary user's own and nobody else is in it.
/// With an access control list, the group's bits are the most that anybody on it may (acl(5)).
pub(crate) fn others_may_write(path: &Path, facts: &Metadata) -> bool {
    let (by_group, by_all) = (facts.mode() & 0o020 != 0, facts.mode() & 0o002 != 0);
    by_all || by_group && (!is_of_own_group(facts) || has_list(path))
}

/// Where what is open is found, if only with `O_PATH`.
pub(crate) fn place_of(open: &File) -> PathBuf {
    format!("/proc/self/fd/{}", open.as_raw_fd()).into()
}

fn has_list(path: &Path) -> bool {
    let mut none: [u8; 0] = [];
    let found = rustix::fs::getxattr(path, "system.posix_acl_access", &mut none);
    !matches!(found, Err(Errno::NODATA | Errno::OPNOTSUPP))
}

fn is_of_own_group(facts: &Metadata) -> bool {
    let own = (user(), rustix::process::getegid().as_raw());
    let read = |path| crate::read_text(Path::new(path)).unwrap_or_default();
    own.0 != 0
        && (facts.uid(), facts.gid()) == own
        && is_private_group(own.1, own.0, &read("/etc/passwd"), &read("/etc/group"))
}

/// Whether a group has the name of a user and no other member (passwd(5), group(5)). Members that only a directory service knows are not
/// in these files, but such a service's groups of several users have other names.
fn is_private_group(group: u32, user: u32, passwd: &str, groups: &str) -> bool {
    let number = |field: Option<&&str>| field.and_then(|field| field.parse::<u32>().ok());
    let users: Vec<Vec<&str>> = passwd.lines().map(|line| line.split(':').collect()).collect();
    let names: Vec<&str> = users.iter().filter(|row| number(row.get(2)) == Some(user)).map(|row| row[0]).collect();
    let is_others = users.iter().any(|row| number(row.get(3)) == Some(group) && number(row.get(2)) != Some(user));
    let mut of_group = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found = of_group.find(|row| number(row.get(2)) == Some(group));
    !is_others
        && found.is_some_and(|row| {
            let members = row.get(3).unwrap_or(&"").split(',').filter(|member| !member.is_empty());
            names.contains(&row[0]) && members.into_iter().all(|member| names.contains(&member))
        })
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_private_if_it_is_its_users_alone() {
        let passwd = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/:/bin/sh\nbob:x:1001:100::/:/bin/sh\neve:x:1002:1002::/:/bin/sh\n";
        let private = |groups: &str| is_private_group(1000, 1000, passwd, groups);
        assert!(private("users:x:100:\nann:x:1000:\n") && private("ann:x:1000:ann\n"));
        assert!(!private("ann:x:1000:ann,eve\n"), "eve is a member");
        assert!(!private("staff:x:1000:\n"), "a directory service may have other members");
        assert!(!private("") && !private("ann:x:1001:\n"), "it is not known");
        assert!(!is_private_group(1000, 1000, &format!("{passwd}dan:x:1003:1000::/:\n"), "ann:x:1000:\n"), "dan's too");
        // The usual group of every user on some systems.
        assert!(!is_private_group(100, 1001, passwd, "users:x:100:\n"));
        assert!(!is_private_group(5, 5, passwd, "tty:x:5:\n"), "the user is not known");
    }

    #[test]
    fn nobody_is_trusted_only_where_it_is_the_users_outside() {
        for (map, has_nobody) in [
            ("         0          0 4294967295\n", true),
            ("0 0 65536\n", true),
            ("0 1000 1\n1 100000 65536\n", true),
            ("0 1000 1\n", false),
            ("1000 1000 1\n65535 100000 10\n", false),
            ("0 100000 65534\n", false),
        ] {
            assert_eq!(maps(map, OVERFLOW_USER), has_nobody, "{map}");
        }
    }

    #[test]
    fn an_access_control_list_is_noticed() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(!has_list(directory.path()));
        // u::rwx, u:1234:rwx, g::---, m::rwx, o::--- as acl(5) has them in an extended attribute.
        let entries: [(u16, u16, u32); 5] = [(1, 7, !0), (2, 7, 1234), (4, 0, !0), (16, 7, !0), (32, 0, !0)];
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, rights, who) in entries {
            list.extend(tag.to_le_bytes().into_iter().chain(rights.to_le_bytes()).chain(who.to_le_bytes()));
        }
        let flags = rustix::fs::XattrFlags::empty();
        match rustix::fs::setxattr(directory.path(), "system.posix_acl_access", &list, flags) {
            Err(Errno::OPNOTSUPP) => return eprintln!("skipped: this filesystem has no access control lists"),
            set => set.expect("ours"),
        }
        let open = rustix::fs::open(directory.path(), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty());
        let open = File::from(open.expect("opened"));
        let facts = open.metadata().expect("opened");
        assert!(has_list(directory.path()) && others_may_write(&place_of(&open), &facts));
    }
}

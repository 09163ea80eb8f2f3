//! With `sudo`, results belong to the user who called.
//!
//! Only files that are made here change owner: an existing file keeps its owner. SQLite gives the files it
//! makes beside the store (`-wal`, `-shm`) the store's own owner when it runs as root, so that they follow.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub user: u32,
    pub group: u32,
}

impl Owner {
    /// The user who called `sudo`: `SUDO_UID` and `SUDO_GID`, when this process is root. `None` otherwise, and when
    /// they are not numbers.
    pub fn caller() -> Option<Self> {
        let effective = rustix::process::geteuid().as_raw();
        let variable = |name| std::env::var(name).ok();
        Self::from_sudo(effective, variable("SUDO_UID").as_deref(), variable("SUDO_GID").as_deref())
    }

    fn from_sudo(effective_user: u32, sudo_uid: Option<&str>, sudo_gid: Option<&str>) -> Option<Self> {
        if effective_user != 0 {
            return None;
        }
        Some(Self { user: sudo_uid?.parse().ok()?, group: sudo_gid?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_gives_away_and_only_to_numbers() {
        let owner = Owner { user: 1000, group: 100 };
        assert_eq!(Owner::from_sudo(0, Some("1000"), Some("100")), Some(owner));
        assert_eq!(Owner::from_sudo(1000, Some("1000"), Some("100")), None);
        assert_eq!(Owner::from_sudo(0, None, Some("100")), None);
        assert_eq!(Owner::from_sudo(0, Some("root"), Some("100")), None);
        assert_eq!(Owner::from_sudo(0, Some("-1"), Some("100")), None);
    }
}

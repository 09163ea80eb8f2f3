//! Mount options, one by one: which of them belong to the mount, which to the superblock.

use rustix::mount::MountAttrFlags;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountOption {
    Flag(String),
    Value(String, String),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountOptions {
    pub filesystem: Vec<MountOption>,
    pub attributes: Attributes,
}

/// Attributes of a mount, as a set of MOUNT_ATTR bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes(u32);

impl Default for Attributes {
    fn default() -> Self {
        Self(MountAttrFlags::MOUNT_ATTR_RELATIME.bits())
    }
}

impl Attributes {
    pub const fn flags(self) -> MountAttrFlags {
        MountAttrFlags::from_bits_retain(self.0)
    }
}

impl MountOptions {
    /// Takes a comma-separated list apart, with mount(8)'s reading of it: attributes of the mount are set on the mount,
    /// the last of contradicting words counts, commas within double quotes do not separate, `defaults` and words that
    /// are for mount(8) alone say nothing. All else is the kernel's to know or to refuse.
    pub fn parse(list: &str) -> Self {
        let mut filesystem = Vec::new();
        let mut bits = MountAttrFlags::MOUNT_ATTR_RELATIME;
        let access_times = MountAttrFlags::MOUNT_ATTR__ATIME;
        let mut diratime = true;
        for word in split(list) {
            match word {
                "" | "defaults" => {}
                // The superblock's as well as the mount's, as mount(2) has it.
                "ro" => {
                    bits |= MountAttrFlags::MOUNT_ATTR_RDONLY;
                    filesystem.push(MountOption::Flag("ro".to_owned()));
                }
                "rw" => {
                    bits.remove(MountAttrFlags::MOUNT_ATTR_RDONLY);
                    filesystem.push(MountOption::Flag("rw".to_owned()));
                }
                "nosuid" => bits |= MountAttrFlags::MOUNT_ATTR_NOSUID,
                "suid" => bits.remove(MountAttrFlags::MOUNT_ATTR_NOSUID),
                "nodev" => bits |= MountAttrFlags::MOUNT_ATTR_NODEV,
                "dev" => bits.remove(MountAttrFlags::MOUNT_ATTR_NODEV),
                "noexec" => bits |= MountAttrFlags::MOUNT_ATTR_NOEXEC,
                "exec" => bits.remove(MountAttrFlags::MOUNT_ATTR_NOEXEC),
                "nosymfollow" => bits |= MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW,
                "symfollow" => bits.remove(MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW),
                "nodiratime" => diratime = false,
                "diratime" => diratime = true,
                // One field of three values; relatime is 0.
                "relatime" | "atime" | "nostrictatime" | "norelatime" => bits.remove(access_times),
                "noatime" => {
                    bits.remove(access_times);
                    bits |= MountAttrFlags::MOUNT_ATTR_NOATIME;
                }
                "strictatime" => {
                    bits.remove(access_times);
                    bits |= MountAttrFlags::MOUNT_ATTR_STRICTATIME;
                }
                _ => filesystem.push(match word.split_once('=') {
                    Some((name, value)) => MountOption::Value(name.to_owned(), unquoted(value).to_owned()),
                    None => MountOption::Flag(word.to_owned()),
                }),
            }
        }
        if !diratime {
            bits |= MountAttrFlags::MOUNT_ATTR_NODIRATIME;
        }
        Self { filesystem, attributes: Attributes(bits.bits()) }
    }
}

fn split(list: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    list.split(move |c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    })
    .map(str::trim)
}

fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(list: &str) -> MountAttrFlags {
        MountOptions::parse(list).attributes.flags()
    }

    #[test]
    fn attributes_of_the_mount_are_kept_from_the_filesystem() {
        for (list, bits) in [
            ("", MountAttrFlags::empty()),
            ("defaults", MountAttrFlags::empty()),
            ("relatime", MountAttrFlags::empty()),
            ("noatime", MountAttrFlags::MOUNT_ATTR_NOATIME),
            ("noatime,strictatime", MountAttrFlags::MOUNT_ATTR_STRICTATIME),
            ("noatime,atime", MountAttrFlags::empty()),
            ("nodiratime", MountAttrFlags::MOUNT_ATTR_NODIRATIME),
            ("nodiratime,diratime", MountAttrFlags::empty()),
            (
                "nosuid,nodev,noexec",
                MountAttrFlags::MOUNT_ATTR_NOSUID
                    | MountAttrFlags::MOUNT_ATTR_NODEV
                    | MountAttrFlags::MOUNT_ATTR_NOEXEC,
            ),
            ("nosuid,suid", MountAttrFlags::empty()),
        ] {
            assert_eq!(attributes(list), bits, "{list}");
            assert!(MountOptions::parse(list).filesystem.is_empty(), "{list}");
        }
        assert_eq!(attributes("ro"), MountAttrFlags::MOUNT_ATTR_RDONLY);
        assert_eq!(MountOptions::parse("ro").filesystem, [MountOption::Flag("ro".into())]);
    }

    #[test]
    fn the_rest_is_the_filesystems_in_order() {
        let parsed = MountOptions::parse("data=writeback,nodelalloc,noatime,sync,context=\"a:b,c\",stripe=");
        let flag = |word: &str| MountOption::Flag(word.into());
        let value = |name: &str, value: &str| MountOption::Value(name.into(), value.into());
        let expected = [
            value("data", "writeback"),
            flag("nodelalloc"),
            flag("sync"),
            value("context", "a:b,c"),
            value("stripe", ""),
        ];
        assert_eq!(parsed.filesystem, expected);
        assert_eq!(attributes("noatime"), parsed.attributes.flags());
    }
}

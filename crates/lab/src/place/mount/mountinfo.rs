//! /proc/self/mountinfo.

use std::{ffi::OsString, fs, io, os::unix::ffi::OsStringExt, path::PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountEntry {
    pub id: u64,
    /// Device number of the superblock: (major, minor).
    pub device: (u32, u32),
    /// The path within the filesystem that is mounted; "/" for the whole.
    pub root: PathBuf,
    pub target: PathBuf,
    pub kernel_name: String,
    /// What was mounted, as the filesystem calls it.
    pub source: String,
    pub mount_options: String,
    pub superblock_options: String,
}

impl MountEntry {
    /// Both kinds of options in one line, without what is there twice.
    pub fn options(&self) -> String {
        let of_mount: Vec<&str> = self.mount_options.split(',').collect();
        let of_superblock = self.superblock_options.split(',').filter(|word| !of_mount.contains(word));
        of_mount.iter().copied().chain(of_superblock).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(",")
    }
}

/// The mounts of this process' namespace.
pub fn read_mountinfo() -> io::Result<Vec<MountEntry>> {
    Ok(parse(&fs::read("/proc/self/mountinfo")?))
}

pub(crate) fn parse(table: &[u8]) -> Vec<MountEntry> {
    table.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

/// proc_pid_mountinfo(5): `36 35 98:0 /root /target rw,noatime master:1 - ext3 /dev/root rw,errors=continue`, with any
/// number of optional fields before the dash.
fn parse_line(line: &[u8]) -> Option<MountEntry> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut next = || fields.next();
    let id = text(next()?).parse().ok()?;
    let _parent = next()?;
    let device = text(next()?);
    let (major, minor) = device.split_once(':')?;
    let device = (major.parse().ok()?, minor.parse().ok()?);
    let root = path(next()?);
    let target = path(next()?);
    let mount_options = text(next()?);
    while next()? != b"-" {}
    let kernel_name = text(next()?);
    let source = path(next()?).to_string_lossy().into_owned();
    let superblock_options = text(next().unwrap_or_default());
    Some(MountEntry { id, device, root, target, kernel_name, source, mount_options, superblock_options })
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field).into_owned()
}

/// Blanks, tabs, newlines and backslashes stand as three octal digits.
fn path(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let octal = |digits: &[u8]| {
            digits
                .iter()
                .try_fold(0u32, |sum, digit| (b'0'..=b'7').contains(digit).then(|| sum * 8 + u32::from(digit - b'0')))
        };
        if first == b'\\'
            && let Some(code) = after.get(..3).and_then(octal).and_then(|code| u8::try_from(code).ok())
        {
            bytes.push(code);
            rest = &after[3..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_and_without_optional_fields() {
        let table = b"36 35 7:0 / /mnt\\040x rw,noatime master:1 shared:2 - ext4 /dev/loop0 rw,data=writeback\n\
                      37 35 0:22 /a /b rw - tmpfs tmpfs rw,size=4k\nrubbish\n\n";
        let mounts = parse(table);
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].target, PathBuf::from("/mnt x"));
        assert_eq!((mounts[0].device, mounts[0].kernel_name.as_str()), ((7, 0), "ext4"));
        assert_eq!(mounts[0].options(), "rw,noatime,data=writeback");
        assert_eq!(mounts[1].root, PathBuf::from("/a"));
    }

    #[test]
    fn this_process_has_a_root() {
        assert!(read_mountinfo().expect("readable").iter().any(|mount| *mount.target == *"/"));
    }
}

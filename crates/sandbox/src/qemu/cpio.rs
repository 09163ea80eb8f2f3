//! An initramfs: a cpio archive in the "newc" format, uncompressed, as linux/Documentation/driver-api/early-userspace
//! describes it. Every entry is root's and dated 0, so equal content makes equal bytes.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Component, Path};

/// Writes an archive. Directories above an entry are added by themselves.
#[derive(Debug)]
pub(super) struct Archive<W> {
    out: W,
    bytes: u64,
    entries: u32,
    directories: BTreeSet<String>,
}

impl<W: Write> Archive<W> {
    pub(super) const fn new(out: W) -> Self {
        Self { out, bytes: 0, entries: 0, directories: BTreeSet::new() }
    }

    pub(super) fn directory(&mut self, path: &Path) -> io::Result<()> {
        let mut name = String::new();
        for part in path.components() {
            let Component::Normal(part) = part else { continue };
            if !name.is_empty() {
                name.push('/');
            }
            name.push_str(&part.to_string_lossy());
            if self.directories.insert(name.clone()) {
                self.entry(&name, 0o040_755, &[])?;
            }
        }
        Ok(())
    }

    pub(super) fn file(&mut self, path: &Path, executable: bool, content: &[u8]) -> io::Result<()> {
        if let Some(parent) = path.parent() {
            self.directory(parent)?;
        }
        let name = path.to_string_lossy();
        self.entry(name.trim_start_matches('/'), if executable { 0o100_755 } else { 0o100_644 }, content)
    }

    pub(super) fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", 0, &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let size = u32::try_from(content.len()).map_err(|_| io::Error::other("a file of 4 GiB in an initramfs"))?;
        self.entries += 1;
        // ino, mode, uid, gid, nlink, mtime, filesize, major, minor, rmajor, rminor, namesize, check
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        let header: String = fields.iter().map(|field| format!("{field:08X}")).collect();
        self.put(b"070701")?;
        self.put(header.as_bytes())?;
        self.put(name.as_bytes())?;
        self.put(b"\0")?;
        self.pad()?;
        self.put(content)?;
        self.pad()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn pad(&mut self) -> io::Result<()> {
        let zeroes = (4 - self.bytes % 4) % 4;
        self.put(&[0; 3][..zeroes as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_bytes_of_a_small_archive() {
        let mut archive = Archive::new(Vec::new());
        archive.file(Path::new("/a/b"), true, b"hello").unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("07070100000001000041ED0000000000000000000000010000000000000000"), "{text}");
        assert!(text.contains("a/b\0") && text.contains("hello\x00\x00\x00070701") && text.contains("TRAILER!!!\0"));
    }

    #[test]
    fn cpio_itself_can_read_it() {
        let mut archive = Archive::new(Vec::new());
        archive.directory(Path::new("/proc")).unwrap();
        archive.file(Path::new("/usr/lib/x/file one"), false, &[7; 1001]).unwrap();
        archive.file(Path::new("/usr/lib/y"), false, b"").unwrap();
        let bytes = archive.finish().unwrap();
        let Ok(mut cpio) = Command::new("cpio")
            .args(["-t"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
        else {
            return eprintln!("skipped: cpio is not installed");
        };
        cpio.stdin.take().unwrap().write_all(&bytes).unwrap();
        let names = String::from_utf8(cpio.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(names, "proc\nusr\nusr/lib\nusr/lib/x\nusr/lib/x/file one\nusr/lib/y\n");
    }
}

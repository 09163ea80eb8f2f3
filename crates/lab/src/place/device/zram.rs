//! Compressed-RAM disks, through /sys/class/zram-control.

use std::{fs, io, path::PathBuf};

pub(super) fn path_of(index: u32) -> PathBuf {
    PathBuf::from(format!("/dev/zram{index}"))
}

fn size_file(index: u32) -> PathBuf {
    PathBuf::from(format!("/sys/block/zram{index}/disksize"))
}

pub(super) fn list() -> io::Result<Vec<(u32, u64)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/sys/block")? {
        let name = entry?.file_name();
        let Some(index) = name.to_str().and_then(|name| name.strip_prefix("zram")?.parse().ok()) else { continue };
        let size = fs::read_to_string(size_file(index))?.trim().parse().unwrap_or(0);
        found.push((index, size));
    }
    found.sort_unstable();
    Ok(found)
}

/// Reading the file makes a device and gives its number.
pub(super) fn add() -> io::Result<u32> {
    let text = fs::read_to_string("/sys/class/zram-control/hot_add")?;
    text.trim().parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("hot_add gave {text:?}")))
}

pub(super) fn set_size(index: u32, size_bytes: u64) -> io::Result<()> {
    fs::write(size_file(index), size_bytes.to_string())
}

pub(super) fn remove(index: u32) -> io::Result<()> {
    fs::write("/sys/class/zram-control/hot_remove", index.to_string())
}

//! Extents per file, counted by FIEMAP, alike for every filesystem; and extents of free space, where the filesystem lists them.
//!
//! An extent, here, is a stretch of a file that lies on the device in one piece. The kernel reports finer ones: where a
//! flag changes (allocated but unwritten), where the filesystem's records are full, at holes. Two of them are one here
//! when the second starts on the device where the first ends, or just as far behind it as the hole between them is
//! long, as filefrag(8) counts, too. On ext2 and ext3 a block of the file's own map between two stretches breaks them.

#![expect(unsafe_code, reason = "FIEMAP and GETFSMAP have no safe wrapper among our dependencies")]

use crate::stop::Stop;
use fstone_model::{
    metric::{Figure, catalog},
    units::format_bytes,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fragmentation {
    /// Regular files with data; a file with several names counts once.
    pub files: u64,
    pub extents: u64,
    pub fragmented_files: u64,
    /// Of 4 KiB.
    pub blocks: u64,
    /// Files and directories that could not be looked at, by error number.
    pub errors: Vec<FragmentationFailure>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentationFailure {
    /// What was tried: "open", "FIEMAP" or "readdir".
    pub call: &'static str,
    pub errno: i32,
    pub path: PathBuf,
    pub count: u64,
}

/// Why nothing was counted; completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum FragmentationError {
    #[error("look at {path}: {cause}")]
    Root { path: PathBuf, cause: io::Error },
    #[error("count extents: stopped on request")]
    Stopped,
}

/// Counts the extents of every regular file below a directory, on its filesystem only; symbolic links are not
/// followed. Delayed allocations are written out first, because they have no place on the device yet. A directory of this name right
/// below is left out.
///
/// # Errors
/// [`FragmentationError`]; what single files give is in [`Fragmentation::errors`].
pub fn count(root: &Path, left_out: Option<&str>, stop: &Stop) -> Result<Fragmentation, FragmentationError> {
    count_seeing(root, left_out, stop, &mut |_, _, _| {})
}

/// Where something is on the device, and how long it is, in bytes.
pub type Piece = (u64, u64);

type See<'a> = dyn FnMut(&Path, &fs::Metadata, &[Piece]) + 'a;

/// The same, and calls `see` for every regular file.
pub(crate) fn count_seeing(
    root: &Path,
    left_out: Option<&str>,
    stop: &Stop,
    see: &mut See<'_>,
) -> Result<Fragmentation, FragmentationError> {
    let failed = |cause| FragmentationError::Root { path: root.to_owned(), cause };
    let device = fs::symlink_metadata(root).map_err(failed)?.dev();
    let directory = fs::File::open(root).map_err(failed)?;
    // Far cheaper than letting FIEMAP wait for file after file. If it fails, FIEMAP_FLAG_SYNC does it all the same.
    let _ = rustix::fs::syncfs(&directory);

    let mut walk = Walk { device, left_out: left_out.map(|name| root.join(name)), ..Walk::default() };
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) => {
                walk.failure("readdir", &error, &directory);
                continue;
            }
        };
        for entry in entries {
            if stop.is_requested() {
                return Err(FragmentationError::Stopped);
            }
            match entry {
                Ok(entry) => walk.entry(entry.path(), &mut directories, see),
                Err(error) => walk.failure("readdir", &error, &directory),
            }
        }
    }
    Ok(walk.found)
}

impl Fragmentation {
    /// Extents per file and the share of fragmented files; nothing when there was no file.
    pub fn figures(&self) -> Vec<Figure> {
        if self.files == 0 {
            return Vec::new();
        }
        let files = self.files as f64;
        let mut figures = vec![
            catalog::EXTENTS_PER_FILE.figure(self.extents as f64 / files),
            catalog::FRAGMENTED_FILES.figure(self.fragmented_files as f64 * 100.0 / files),
        ];
        // Every block but the first of an extent follows another one.
        if self.blocks > self.files {
            let following = self.blocks.saturating_sub(self.extents) as f64;
            figures.push(catalog::LAYOUT_SCORE.figure(following / (self.blocks - self.files) as f64));
        }
        figures
    }
}

/// The unit of the layout score.
const BLOCK: u64 = 4096;

#[derive(Default)]
struct Walk {
    device: u64,
    left_out: Option<PathBuf>,
    found: Fragmentation,
    /// Inodes with several names that have been counted.
    linked: HashSet<u64>,
}

impl Walk {
    fn entry(&mut self, path: PathBuf, directories: &mut Vec<PathBuf>, see: &mut See<'_>) {
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) => return self.failure("stat", &error, &path),
        };
        if metadata.dev() != self.device {
            return;
        }
        if metadata.is_dir() {
            if self.left_out.as_ref() != Some(&path) {
                directories.push(path);
            }
        } else if metadata.is_file() && (metadata.nlink() == 1 || self.linked.insert(metadata.ino())) {
            let pieces = self.file(&path);
            see(&path, &metadata, &pieces);
        }
    }

    fn file(&mut self, path: &Path) -> Vec<Piece> {
        // NOFOLLOW and NONBLOCK: should it have become something else since it was looked at, nothing waits for it.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => file,
            Err(errno) => {
                self.failure("open", &errno.into(), path);
                return Vec::new();
            }
        };
        match extents_of(file.as_fd()) {
            Ok(Merged { count: 0, .. }) => Vec::new(),
            Ok(Merged { count, bytes, pieces, .. }) => {
                self.found.files += 1;
                self.found.extents += count;
                self.found.blocks += bytes.div_ceil(BLOCK);
                self.found.fragmented_files += u64::from(count > 1);
                pieces
            }
            Err(errno) => {
                self.failure("FIEMAP", &errno.into(), path);
                Vec::new()
            }
        }
    }

    fn failure(&mut self, call: &'static str, error: &io::Error, path: &Path) {
        let errno = error.raw_os_error().unwrap_or(0);
        match self.found.errors.iter_mut().find(|failure| failure.call == call && failure.errno == errno) {
            Some(failure) => failure.count += 1,
            None => self.found.errors.push(FragmentationFailure { call, errno, path: path.to_owned(), count: 1 }),
        }
    }
}

/// One struct fiemap_extent of linux/fiemap.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

/// struct fiemap without its extents; the call's number has the size of this in it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Header {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// Files in more pieces than this take several calls.
const EXTENTS_PER_CALL: usize = 64;

#[repr(C)]
struct Request {
    header: Header,
    extents: [Extent; EXTENTS_PER_CALL],
}

const FS_IOC_FIEMAP: Opcode = opcode::read_write::<Header>(b'f', 11);

// linux/fiemap.h
const FIEMAP_FLAG_SYNC: u32 = 0x1;
const EXTENT_LAST: u32 = 0x1;
const EXTENT_UNKNOWN: u32 = 0x2;
const EXTENT_ENCODED: u32 = 0x8;
const EXTENT_DATA_INLINE: u32 = 0x200;

/// The extents of an open file; none when it has no data.
fn extents_of(file: BorrowedFd<'_>) -> Result<Merged, Errno> {
    let mut merged = Merged::default();
    let mut start = 0;
    loop {
        let header = Header {
            start,
            length: u64::MAX - start,
            flags: FIEMAP_FLAG_SYNC,
            extent_count: EXTENTS_PER_CALL as u32,
            ..Header::default()
        };
        let mut request = Request { header, extents: [Extent::default(); EXTENTS_PER_CALL] };
        // SAFETY: FS_IOC_FIEMAP reads and writes a struct fiemap followed by at most extent_count extents, which is
        // what Request is; it is borrowed for the call alone, and any bits the kernel writes are valid integers.
        unsafe { ioctl(file, Updater::<FS_IOC_FIEMAP, Request>::new(&mut request)) }?;
        let mapped = &request.extents[..(request.header.mapped_extents as usize).min(EXTENTS_PER_CALL)];
        for extent in mapped {
            merged.add(extent);
        }
        match mapped.last() {
            // Each call begins where the last one ended; a filesystem that does not get on is not asked for ever.
            Some(last) if last.flags & EXTENT_LAST == 0 && end_of(last) > start => start = end_of(last),
            _ => return Ok(merged),
        }
    }
}

const fn end_of(extent: &Extent) -> u64 {
    extent.logical.saturating_add(extent.length)
}

/// Counts extents as they come, those that are one piece as one.
#[derive(Default)]
struct Merged {
    count: u64,
    bytes: u64,
    /// Those that have a place on the device.
    pieces: Vec<Piece>,
    previous: Option<Extent>,
}

impl Merged {
    fn add(&mut self, extent: &Extent) {
        let continues = self.previous.is_some_and(|previous| continues(&previous, extent));
        self.count += u64::from(!continues);
        self.bytes = self.bytes.saturating_add(extent.length);
        if extent.flags & (EXTENT_UNKNOWN | EXTENT_DATA_INLINE) == 0 {
            match self.pieces.last_mut().filter(|_| continues) {
                Some((place, length)) => *length = extent.physical.saturating_add(extent.length).saturating_sub(*place),
                None => self.pieces.push((extent.physical, extent.length)),
            }
        }
        self.previous = Some(*extent);
    }
}

fn continues(previous: &Extent, next: &Extent) -> bool {
    // Neither has an address of its own: not yet written out, or inside the inode.
    if (previous.flags | next.flags) & (EXTENT_UNKNOWN | EXTENT_DATA_INLINE) != 0 {
        return false;
    }
    let Some(distance) = next.physical.checked_sub(previous.physical) else { return false };
    if previous.flags & EXTENT_ENCODED != 0 {
        // Compressed: how long it is on the device is not told, but it is at most as long as its data.
        return distance > 0 && distance <= previous.length;
    }
    distance == previous.length || distance == next.logical.saturating_sub(previous.logical)
}

/// One struct fsmap of linux/fsmap.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Mapping {
    device: u32,
    flags: u32,
    physical: u64,
    owner: u64,
    offset: u64,
    length: u64,
    reserved: [u64; 3],
}

/// struct fsmap_head without its records.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct MapHeader {
    flags: [u32; 2],
    count: u32,
    entries: u32,
    reserved: [u64; 6],
    keys: [Mapping; 2],
}

const MAPPINGS_PER_CALL: usize = 256;

#[repr(C)]
struct MapRequest {
    header: MapHeader,
    mappings: [Mapping; MAPPINGS_PER_CALL],
}

const FS_IOC_GETFSMAP: Opcode = opcode::read_write::<MapHeader>(b'X', 59);

// linux/fsmap.h
const SPECIAL_OWNER: u32 = 0x10;
const LAST_MAPPING: u32 = 0x20;
const OWNER_FREE: u64 = 1;

const fn place_of(mapping: &Mapping) -> (u32, u64) {
    (mapping.device, mapping.physical)
}

/// How many free extents there are, their bytes, and how many there are of each length, as "free extents from 4 KiB: 12; 8 KiB: 3;".
pub fn free_space(free: &[Piece]) -> (u64, u64, String) {
    // By the power of two at or below their lengths.
    let mut counts = [0u64; 64];
    free.iter().for_each(|(_, length)| counts[length.max(&1).ilog2() as usize] += 1);
    let mut words = "free extents from".to_owned();
    for (power, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        words.push_str(&format!(" {}: {count};", format_bytes(1 << power)));
    }
    (free.len() as u64, free.iter().map(|(_, length)| length).sum(), words)
}

/// What the line of a record begins with that has the regions of a device, by their owners.
pub const REGIONS_OF: &str = "regions";
/// How many there are, all of one length.
pub const REGIONS: usize = 1024;
/// The owners: files by the time of their last change, the oldest first.
pub const QUARTERS: [char; 4] = ['1', '2', '3', '4'];
pub const FREE: char = '.';
/// Metadata, and what is free where the filesystem does not list it.
pub const OTHER: char = '#';

/// struct btrfs_ioctl_search_key of linux/btrfs.h, for items of one kind in one tree.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct SearchKey {
    tree: u64,
    objects: [u64; 2],
    offsets: [u64; 2],
    transactions: [u64; 2],
    kinds: [u32; 2],
    items: u32,
    unused: u32,
    reserved: [u64; 4],
}

const FOUND_BYTES: usize = 4096 - size_of::<SearchKey>();

#[repr(C)]
struct SearchRequest {
    key: SearchKey,
    found: [u8; FOUND_BYTES],
}

const BTRFS_IOC_TREE_SEARCH: Opcode = opcode::read_write::<SearchRequest>(0x94, 17);

// linux/btrfs_tree.h
const EXTENT_TREE: u64 = 2;
const EXTENT_ITEM: u32 = 168;
const CHUNK_TREE: u64 = 3;
const CHUNKS: u64 = 256;
const CHUNK_ITEM: u32 = 228;
const OF_DATA: u64 = 1;
/// Neither system, metadata nor any kind of RAID but the copies on one device.
const ELSE_THAN_DATA: u64 = 0b110;
const STRIPED: u64 = 0x7d8;

/// A range of addresses of btrfs, and the places on the device where it is, all of its length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    address: u64,
    length: u64,
    is_data: bool,
    places: Vec<u64>,
}

/// Of btrfs on one device, for root.
pub(crate) fn chunks(place: &Path) -> Option<Vec<Chunk>> {
    let mut chunks = Vec::new();
    search(place, CHUNK_TREE, [CHUNKS; 2], CHUNK_ITEM, |_, address, item| {
        chunks.push(chunk(address, item)?);
        Some(())
    })?;
    Some(chunks)
}

/// What is allocated for data of btrfs, by its addresses, whether or not a file still has all of it: an extent of which a part was
/// overwritten is kept whole. In order, for root.
pub(crate) fn allocated(place: &Path) -> Option<Vec<Piece>> {
    let mut extents = Vec::new();
    search(place, EXTENT_TREE, [0, u64::MAX], EXTENT_ITEM, |address, length, _| {
        extents.push((address, length));
        Some(())
    })?;
    Some(extents)
}

/// Calls `see` with the object, the offset and the data of all items of one kind in a tree of btrfs.
fn search(
    place: &Path,
    tree: u64,
    objects: [u64; 2],
    kind: u32,
    mut see: impl FnMut(u64, u64, &[u8]) -> Option<()>,
) -> Option<()> {
    let directory = fs::File::open(place).ok()?;
    let (mut from, last) = ((objects[0], kind, 0), (objects[1], kind, u64::MAX));
    loop {
        // The kernel compares keys as a whole, and finds items of other kinds between them, too.
        let key = SearchKey {
            tree,
            objects: [from.0, last.0],
            kinds: [from.1, last.1],
            offsets: [from.2, last.2],
            transactions: [0, u64::MAX],
            items: u32::MAX,
            ..SearchKey::default()
        };
        let mut request = SearchRequest { key, found: [0; FOUND_BYTES] };
        // SAFETY: BTRFS_IOC_TREE_SEARCH reads and writes a struct btrfs_ioctl_search_args, which is what SearchRequest is; it is
        // borrowed for the call alone, and any bits the kernel writes are valid integers.
        unsafe { ioctl(&directory, Updater::<BTRFS_IOC_TREE_SEARCH, SearchRequest>::new(&mut request)) }.ok()?;
        if request.key.items == 0 {
            return Some(());
        }
        let mut rest = &request.found[..];
        for _ in 0..request.key.items {
            // struct btrfs_ioctl_search_header, then the item.
            let (object, offset, facts) = (u64_at(rest, 8)?, u64_at(rest, 16)?, u64_at(rest, 24)?);
            let (found, length) = (facts as u32, (facts >> 32) as usize);
            rest = rest.get(32..)?;
            if found == kind {
                see(object, offset, rest.get(..length)?)?;
            }
            rest = rest.get(length..)?;
            from = (object, found, offset);
        }
        match from.2.checked_add(1) {
            _ if from >= last => return Some(()),
            Some(offset) => from.2 = offset,
            None => from = (from.0, from.1 + 1, 0),
        }
    }
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Reads a struct btrfs_chunk.
fn chunk(address: u64, item: &[u8]) -> Option<Chunk> {
    let (length, kind) = (u64_at(item, 0)?, u64_at(item, 24)?);
    let stripes = u16::from_le_bytes(item.get(44..46)?.try_into().ok()?);
    let places: Option<Vec<u64>> = (0..usize::from(stripes)).map(|stripe| u64_at(item, 56 + stripe * 32)).collect();
    let is_data = kind & OF_DATA != 0 && kind & ELSE_THAN_DATA == 0;
    (kind & STRIPED == 0).then_some(Chunk { address, length, is_data, places: places? })
}

/// Turns pieces of btrfs into pieces of a device of this size, and adds what is free: what no chunk has, and what is not allocated in a
/// chunk of data.
pub(crate) fn on_device(
    owned: &[(char, Piece)],
    allocated: &[Piece],
    chunks: &[Chunk],
    size: u64,
) -> Vec<(char, Piece)> {
    let mut used: Vec<Piece> = Vec::new();
    let mut moved = Vec::new();
    for chunk in chunks {
        let end = chunk.address.saturating_add(chunk.length);
        let is_inside = |(from, _): &Piece| (chunk.address..end).contains(from);
        for place in &chunk.places {
            let moved_to = |(from, length): &Piece| (place + (from - chunk.address), *length);
            let here = owned.iter().filter(|(_, piece)| is_inside(piece));
            moved.extend(here.map(|(owner, piece)| (*owner, moved_to(piece))));
            if chunk.is_data {
                let first = allocated.partition_point(|(from, _)| *from < chunk.address);
                used.extend(allocated[first..].iter().take_while(|piece| is_inside(piece)).map(moved_to));
            } else {
                used.push((*place, chunk.length));
            }
        }
    }
    used.sort_unstable();
    let mut from = 0;
    for (place, length) in used.into_iter().chain([(size, 0)]) {
        if place > from {
            moved.push((FREE, (from, place - from)));
        }
        from = from.max(place.saturating_add(length));
    }
    moved
}

/// Who has most of each region of a device of this size, given who has which pieces of it.
pub(crate) fn regions(pieces: &[(char, Piece)], size: u64) -> String {
    let end = pieces.iter().map(|(_, (place, length))| place.saturating_add(*length)).max().unwrap_or(0).max(size);
    let size = end.div_ceil(REGIONS as u64).max(1);
    let mut shares = vec![Vec::<(char, u64)>::new(); REGIONS];
    for (owner, (place, length)) in pieces {
        let mut from = *place;
        let to = from.saturating_add(*length);
        while from < to {
            let region = &mut shares[(from / size) as usize];
            let next = to.min((from / size + 1).saturating_mul(size));
            match region.iter_mut().find(|(one, _)| one == owner) {
                Some((_, bytes)) => *bytes += next - from,
                None => region.push((*owner, next - from)),
            }
            from = next;
        }
    }
    let most = |mut region: Vec<(char, u64)>| {
        let known: u64 = region.iter().map(|(_, bytes)| bytes).sum();
        region.push((OTHER, size.saturating_sub(known)));
        region.into_iter().max_by_key(|(_, bytes)| *bytes).map_or(OTHER, |(owner, _)| owner)
    };
    shares.into_iter().map(most).collect()
}

/// `None` if the filesystem of a directory does not list what is free.
pub fn free_extents(place: &Path) -> Option<Vec<Piece>> {
    let directory = fs::File::open(place).ok()?;
    let mut found = Vec::new();
    let last = Mapping {
        device: u32::MAX,
        flags: u32::MAX,
        physical: u64::MAX,
        owner: u64::MAX,
        offset: u64::MAX,
        ..Mapping::default()
    };
    let mut header =
        MapHeader { count: MAPPINGS_PER_CALL as u32, keys: [Mapping::default(), last], ..MapHeader::default() };
    loop {
        let mut request = MapRequest { header, mappings: [Mapping::default(); MAPPINGS_PER_CALL] };
        // SAFETY: FS_IOC_GETFSMAP reads and writes a struct fsmap_head followed by at most `count` records, which is what
        // MapRequest is; it is borrowed for the call alone, and any bits the kernel writes are valid integers.
        unsafe { ioctl(&directory, Updater::<FS_IOC_GETFSMAP, MapRequest>::new(&mut request)) }.ok()?;
        let mappings = &request.mappings[..(request.header.entries as usize).min(MAPPINGS_PER_CALL)];
        for mapping in mappings.iter().filter(|one| one.flags & SPECIAL_OWNER != 0 && one.owner == OWNER_FREE) {
            found.push((mapping.physical, mapping.length));
        }
        match mappings.last() {
            // Each call begins after the last record; a filesystem that does not advance would be asked forever.
            Some(last) if last.flags & LAST_MAPPING == 0 && place_of(last) > place_of(&header.keys[0]) => {
                header.keys[0] = *last;
            }
            _ => return Some(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::StopReason;
    use fstone_model::age::AGED_DIRECTORY;
    use rustix::fs::{FallocateFlags, fallocate};
    use std::fs::File;
    use std::io::Write;
    use std::process::Command;

    fn extent(logical: u64, physical: u64, length: u64, flags: u32) -> Extent {
        Extent { logical, physical, length, flags, ..Extent::default() }
    }

    fn merged(extents: &[Extent]) -> u64 {
        let mut merged = Merged::default();
        extents.iter().for_each(|extent| merged.add(extent));
        merged.count
    }

    #[test]
    fn pieces_that_touch_are_one() {
        assert_eq!(merged(&[]), 0);
        assert_eq!(merged(&[extent(0, 100, 8, 0)]), 1);
        assert_eq!(merged(&[extent(0, 100, 8, 0), extent(8, 108, 4, 0x800), extent(12, 112, 4, 0)]), 1, "flags only");
        assert_eq!(merged(&[extent(0, 100, 8, 0), extent(8, 109, 4, 0)]), 2, "a gap");
        assert_eq!(merged(&[extent(0, 100, 8, 0), extent(8, 92, 4, 0)]), 2, "backwards");
        assert_eq!(merged(&[extent(0, 100, 8, 0), extent(16, 116, 8, 0)]), 1, "a hole with room for it");
        assert_eq!(merged(&[extent(0, 100, 8, 0), extent(16, 108, 8, 0)]), 1, "a hole without");
        assert_eq!(merged(&[extent(0, 100, 8, 0), extent(16, 110, 8, 0)]), 2, "a hole and a gap");
    }

    #[test]
    fn pieces_of_unknown_place_or_length() {
        let encoded = EXTENT_ENCODED;
        assert_eq!(merged(&[extent(0, 100, 32, encoded), extent(32, 105, 32, encoded)]), 1, "compressed to 5");
        assert_eq!(merged(&[extent(0, 100, 32, encoded), extent(32, 133, 32, encoded)]), 2, "further than its data");
        assert_eq!(merged(&[extent(0, 100, 32, encoded), extent(32, 100, 32, encoded)]), 2, "the same place again");
        assert_eq!(merged(&[extent(0, 0, 4, EXTENT_UNKNOWN), extent(4, 4, 4, EXTENT_UNKNOWN)]), 2);
        assert_eq!(merged(&[extent(0, 0, 4, EXTENT_DATA_INLINE)]), 1);
        assert_eq!(merged(&[extent(0, u64::MAX, 8, 0), extent(8, 0, u64::MAX, 0)]), 2, "no overflow");
    }

    #[test]
    fn a_region_is_of_who_has_most_of_it() {
        let end = REGIONS as u64 * 100;
        let picture = regions(&[('1', (0, 230)), ('2', (240, 60)), (FREE, (300, 60)), (FREE, (end - 100, 100))], 0);
        assert!(regions(&[('1', (0, end / 2))], end).ends_with(OTHER), "the end of the device is unknown");
        assert_eq!(picture, format!("112.{}{FREE}", OTHER.to_string().repeat(REGIONS - 5)));
        let mut merged = Merged::default();
        [extent(0, 100, 8, 0), extent(8, 108, 4, 0), extent(20, 50, 4, 0), extent(24, 0, 4, EXTENT_DATA_INLINE)]
            .iter()
            .for_each(|extent| merged.add(extent));
        assert_eq!((merged.count, merged.pieces), (3, vec![(100, 12), (50, 4)]));
    }

    #[test]
    fn pieces_of_btrfs_are_where_its_chunks_are() {
        let mut item = [0; 112];
        item[..8].copy_from_slice(&100u64.to_le_bytes());
        (item[24], item[44]) = (0x24, 2);
        item[56..64].copy_from_slice(&50u64.to_le_bytes());
        item[88..96].copy_from_slice(&400u64.to_le_bytes());
        let metadata = chunk(7000, &item).expect("whole");
        assert_eq!(metadata, Chunk { address: 7000, length: 100, is_data: false, places: vec![50, 400] });
        assert!(chunk(7000, &item[..90]).is_none());
        (item[24], item[44]) = (1, 1);
        let data = chunk(9000, &item).expect("whole");
        item[24] = 0x9;
        assert!(data.is_data && chunk(9000, &item).is_none(), "striped");
        let data = Chunk { places: vec![200], ..data };
        let pieces = [('1', (9010, 20)), ('2', (9050, 50))];
        // Of what the first file was written to, it has less since a part was overwritten.
        let allocated = [(9010, 30), (9050, 50)];
        let free = [(0, 50), (150, 60), (240, 10), (300, 100), (500, 100)].map(|piece| (FREE, piece));
        let found = on_device(&pieces, &allocated, &[metadata, data], 600);
        assert_eq!(found, [&[('1', (210, 20)), ('2', (250, 50))][..], &free].concat());
        assert!(chunks(Path::new("/proc")).is_none());
    }

    #[test]
    fn the_structures_are_the_kernel_s() {
        assert_eq!((size_of::<SearchKey>(), size_of::<SearchRequest>()), (104, 4096));
        assert_eq!((size_of::<Header>(), size_of::<Extent>()), (32, 56));
        assert_eq!((size_of::<MapHeader>(), size_of::<Mapping>()), (192, 64));
        assert_eq!(size_of::<Request>(), 32 + 56 * EXTENTS_PER_CALL);
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        assert_eq!((FS_IOC_FIEMAP, FS_IOC_GETFSMAP, BTRFS_IOC_TREE_SEARCH), (0xc020_660b, 0xc0c0_583b, 0xd000_9411));
    }

    /// A directory on a filesystem on which the first error would be a surprise; `None`, and why, when there is none.
    fn directory() -> Option<tempfile::TempDir> {
        let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
        fs::write(directory.path().join("probe"), [1; 5000]).expect("written");
        let found = count(directory.path(), None, &Stop::default()).expect("counted");
        fs::remove_file(directory.path().join("probe")).expect("removed");
        if found.errors.is_empty() {
            return Some(directory);
        }
        eprintln!("skipped: no FIEMAP here: {:?}", found.errors);
        None
    }

    #[test]
    fn files_without_data_links_and_pipes_do_not_count() {
        let Some(directory) = directory() else { return };
        let path = |name: &str| directory.path().join(name);
        fs::write(path("data"), [1; 5000]).expect("written");
        fs::hard_link(path("data"), path("same data")).expect("linked");
        std::os::unix::fs::symlink("data", path("link")).expect("linked");
        fs::write(path("empty"), "").expect("written");
        File::create(path("hole")).and_then(|file| file.set_len(1 << 20)).expect("made");
        fs::create_dir(path("below")).expect("made");
        fs::write(path("below/more"), [1; 5000]).expect("written");
        fs::create_dir(path(AGED_DIRECTORY)).expect("made");
        fs::write(path(AGED_DIRECTORY).join("aged"), [1; 5000]).expect("written");
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), Mode::from(0o600)).expect("made");
        let all = count(directory.path(), None, &Stop::default()).expect("counted");
        assert_eq!(all.files, 3, "of an old image, these are files, too");
        let found = count(directory.path(), Some(AGED_DIRECTORY), &Stop::default()).expect("counted");
        assert_eq!((found.files, found.extents, found.fragmented_files), (2, 2, 0), "{found:?}");
        assert_eq!(found.errors, []);
        let values: Vec<f64> = found.figures().iter().map(|figure| figure.value).collect();
        assert_eq!(values, [1.0, 0.0, 1.0]);
    }

    #[test]
    fn a_file_in_many_pieces_is_counted_as_filefrag_counts() {
        const BLOCK: u64 = 4096;
        let Some(directory) = directory() else { return };
        let path = directory.path().join("file");
        let mut file = File::create(&path).expect("made");
        file.write_all(&vec![1; 400 * BLOCK as usize]).expect("written");
        file.sync_all().expect("synced");
        let before = extents_of(file.as_fd()).expect("counted").count;
        // Taking blocks out of the middle leaves what is left in two pieces; more than one call can hold, here.
        for piece in (1..=150).rev() {
            if let Err(errno) = fallocate(&file, FallocateFlags::COLLAPSE_RANGE, piece * 2 * BLOCK, BLOCK) {
                eprintln!("skipped: this filesystem takes nothing out of the middle of a file: {errno}");
                return;
            }
        }
        let found = count(directory.path(), None, &Stop::default()).expect("counted");
        assert_eq!((found.files, found.fragmented_files), (1, 1));
        assert!(found.extents >= 151 && found.extents <= before + 150, "{} from {before}", found.extents);
        assert_eq!(found.figures()[1].value, 100.0);
        let score = found.figures()[2].value;
        assert!((score - (250 - found.extents) as f64 / 249.0).abs() < 1e-9, "{score}");

        match Command::new("filefrag").arg(&path).output() {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                let told = text.rsplit(": ").next().and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
                assert_eq!(told, Some(found.extents), "{text}");
            }
            Err(error) => eprintln!("skipped: the comparison with filefrag: {error}"),
        }
    }

    #[test]
    fn errors_are_counted_and_a_request_to_stop_is_heard() {
        // Files of /proc have no extents to tell.
        let found = count(Path::new("/proc/self/net"), None, &Stop::default()).expect("counted");
        assert_eq!((found.files, found.figures()), (0, Vec::new()));
        assert!(found.errors.iter().any(|failure| failure.call == "FIEMAP" && failure.count > 1), "{found:?}");
        assert!(matches!(
            count(Path::new("/nonexistent"), None, &Stop::default()),
            Err(FragmentationError::Root { .. })
        ));
        let stop = Stop::default();
        stop.request(StopReason::Cancelled);
        assert!(matches!(count(Path::new("/proc/self"), None, &stop), Err(FragmentationError::Stopped)));
    }
}

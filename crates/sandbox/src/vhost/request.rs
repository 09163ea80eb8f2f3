//! One request of the virtio block device (Virtual I/O Device 1.2, section 5.2.6): decoded, carried out on an image,
//! answered. Data goes through a buffer of this process: a copy costs a tenth of what the request costs otherwise,
//! and no pointer into the guest's memory ever reaches a system call.

use super::fault::Operation;
use super::medium::Medium;
use std::io::{self, Read, Write};
use std::ops::Range;
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_ID_BYTES, VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_OK, VIRTIO_BLK_S_UNSUPP, VIRTIO_BLK_T_DISCARD,
    VIRTIO_BLK_T_FLUSH, VIRTIO_BLK_T_GET_ID, VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_WRITE_ZEROES,
};

/// The unit of the protocol's addresses, whatever the disk's logical block.
pub(crate) const SECTOR_BYTES: u64 = 512;

const BUFFER_BYTES: usize = 1 << 20;

/// Most ranges a guest may name in one discard or write-zeroes request; the configuration space says 1.
pub(crate) const MAX_RANGES: usize = 1;

/// Most sectors of one such range, 1 GiB.
pub(crate) const MAX_RANGE_SECTORS: u32 = 1 << 21;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Done,
    Failed,
    Unsupported,
}

impl Status {
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::Done => VIRTIO_BLK_S_OK as u8,
            Self::Failed => VIRTIO_BLK_S_IOERR as u8,
            Self::Unsupported => VIRTIO_BLK_S_UNSUPP as u8,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) what: What,
    /// 512-byte sectors touched; empty for a flush.
    pub(crate) sectors: Range<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Operation(Operation),
    WriteZeroes { may_unmap: bool },
    Name,
}

impl Request {
    pub(crate) const fn operation(&self) -> Option<Operation> {
        match self.what {
            What::Operation(operation) => Some(operation),
            What::WriteZeroes { .. } => Some(Operation::Write),
            What::Name => None,
        }
    }

    pub(crate) const fn bytes(&self) -> u64 {
        (self.sectors.end - self.sectors.start) * SECTOR_BYTES
    }

    /// Decodes the head of a request. `readable` is what the guest sends (head and data), `writable` the bytes it has
    /// room for, without the status byte. Nothing in it is trusted.
    pub(crate) fn decode(
        readable: &mut impl Read,
        data_bytes: u64,
        writable: u64,
        capacity: u64,
    ) -> Result<Self, Status> {
        let mut head = [0u8; 16];
        readable.read_exact(&mut head).map_err(|_| Status::Failed)?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let first = u64::from(word(8)) | u64::from(word(12)) << 32;
        let transfer = |operation, bytes: u64| {
            let end = first.checked_add(bytes / SECTOR_BYTES).filter(|&end| end <= capacity);
            match end {
                Some(end) if bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES) => {
                    Ok(Self { what: What::Operation(operation), sectors: first..end })
                }
                _ => Err(Status::Failed),
            }
        };
        match word(0) {
            VIRTIO_BLK_T_IN => transfer(Operation::Read, writable),
            VIRTIO_BLK_T_OUT => transfer(Operation::Write, data_bytes),
            VIRTIO_BLK_T_FLUSH => Ok(Self { what: What::Operation(Operation::Flush), sectors: 0..0 }),
            VIRTIO_BLK_T_GET_ID => Ok(Self { what: What::Name, sectors: 0..0 }),
            kind @ (VIRTIO_BLK_T_DISCARD | VIRTIO_BLK_T_WRITE_ZEROES) => {
                let mut range = [0u8; 16];
                if data_bytes != (MAX_RANGES * range.len()) as u64 {
                    return Err(Status::Unsupported);
                }
                readable.read_exact(&mut range).map_err(|_| Status::Failed)?;
                let word = |at: usize| u32::from_le_bytes([range[at], range[at + 1], range[at + 2], range[at + 3]]);
                let first = u64::from(word(0)) | u64::from(word(4)) << 32;
                let (count, flags) = (word(8), word(12));
                let end = first.checked_add(u64::from(count)).filter(|&end| end <= capacity).ok_or(Status::Failed)?;
                if count == 0 || count > MAX_RANGE_SECTORS {
                    return Err(Status::Failed);
                }
                let what = match (kind, flags) {
                    (VIRTIO_BLK_T_DISCARD, 0) => What::Operation(Operation::Discard),
                    (VIRTIO_BLK_T_WRITE_ZEROES, 0) => What::WriteZeroes { may_unmap: false },
                    (VIRTIO_BLK_T_WRITE_ZEROES, 1) => What::WriteZeroes { may_unmap: true },
                    _ => return Err(Status::Unsupported),
                };
                Ok(Self { what, sectors: first..end })
            }
            _ => Err(Status::Unsupported),
        }
    }

    /// Does it. Gives how many bytes went to the guest. `name` is what the disk tells who asks for its name.
    pub(crate) fn carry_out(
        &self,
        medium: &Medium,
        name: &str,
        buffer: &mut Vec<u8>,
        readable: &mut impl Read,
        writable: &mut impl Write,
        write_through: bool,
    ) -> io::Result<u64> {
        let (mut at, end) = (self.sectors.start * SECTOR_BYTES, self.sectors.end * SECTOR_BYTES);
        match self.what {
            What::Operation(Operation::Read) => {
                buffer.resize(BUFFER_BYTES, 0);
                while at < end {
                    let piece = &mut buffer[..((end - at) as usize).min(BUFFER_BYTES)];
                    medium.read_exact_at(piece, at)?;
                    writable.write_all(piece)?;
                    at += piece.len() as u64;
                }
                return Ok(self.bytes());
            }
            What::Operation(Operation::Write) => {
                buffer.resize(BUFFER_BYTES, 0);
                while at < end {
                    let piece = &mut buffer[..((end - at) as usize).min(BUFFER_BYTES)];
                    readable.read_exact(piece)?;
                    medium.write_all_at(piece, at)?;
                    at += piece.len() as u64;
                }
                if write_through {
                    medium.sync()?;
                }
            }
            What::Operation(Operation::Flush) => medium.sync()?,
            What::Operation(Operation::Discard) => medium.discard(at, end - at)?,
            What::WriteZeroes { may_unmap } => {
                medium.zero(at, end - at, may_unmap)?;
                if write_through {
                    medium.sync()?;
                }
            }
            What::Name => {
                let mut field = [0u8; VIRTIO_BLK_ID_BYTES as usize];
                for (byte, of_name) in field.iter_mut().zip(name.bytes()) {
                    *byte = of_name;
                }
                writable.write_all(&field)?;
                return Ok(field.len() as u64);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::{DiskSpec, Showing};
    use super::*;
    use proptest::prelude::*;

    fn head(kind: u32, sector: u64) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(sector.to_le_bytes());
        bytes
    }

    fn range(first: u64, count: u32, flags: u32) -> Vec<u8> {
        [first.to_le_bytes().as_slice(), &count.to_le_bytes(), &flags.to_le_bytes()].concat()
    }

    #[test]
    fn requests_beyond_the_end_or_half_a_sector_long_fail() {
        let read = |sector, bytes| Request::decode(&mut head(VIRTIO_BLK_T_IN, sector).as_slice(), 0, bytes, 100);
        assert_eq!(read(99, 512).unwrap().sectors, 99..100);
        for (sector, bytes) in [(99, 1024), (u64::MAX, 512), (0, 100), (0, 0)] {
            assert_eq!(read(sector, bytes), Err(Status::Failed), "{sector} {bytes}");
        }
        let discard = |range: Vec<u8>| {
            let bytes = [head(VIRTIO_BLK_T_DISCARD, 0), range].concat();
            Request::decode(&mut bytes.as_slice(), 16, 0, 1 << 30)
        };
        assert_eq!(discard(range(8, 8, 0)).unwrap().sectors, 8..16);
        assert_eq!(discard(range(8, 8, 1)), Err(Status::Unsupported));
        assert_eq!(discard(range(0, 0, 0)), Err(Status::Failed));
        assert_eq!(discard(range(u64::MAX, 8, 0)), Err(Status::Failed));
        let unknown = Request::decode(&mut head(99, 0).as_slice(), 0, 0, 100);
        assert_eq!(unknown, Err(Status::Unsupported));
    }

    #[test]
    fn what_is_written_is_read_and_zeroed() {
        let image = tempfile::tempfile().unwrap();
        image.set_len(1 << 20).unwrap();
        let image = Medium::new(&DiskSpec::new(""), image, None, &Showing::default());
        let mut buffer = Vec::new();
        let data: Vec<u8> = (0..4096u32).map(|n| n as u8).collect();
        let write = Request { what: What::Operation(Operation::Write), sectors: 8..16 };
        write.carry_out(&image, "", &mut buffer, &mut data.as_slice(), &mut io::sink(), false).unwrap();
        let read = Request { what: What::Operation(Operation::Read), sectors: 8..16 };
        let mut back = Vec::new();
        assert_eq!(read.carry_out(&image, "", &mut buffer, &mut io::empty(), &mut back, false).unwrap(), 4096);
        assert_eq!(back, data);
        for what in [What::Operation(Operation::Discard), What::WriteZeroes { may_unmap: false }] {
            let zero = Request { what, sectors: 8..12 };
            zero.carry_out(&image, "", &mut buffer, &mut io::empty(), &mut io::sink(), true).unwrap();
        }
        back.clear();
        read.carry_out(&image, "", &mut buffer, &mut io::empty(), &mut back, false).unwrap();
        assert!(back[..2048].iter().all(|&byte| byte == 0));
        assert_eq!(back[2048..], data[2048..]);
    }

    #[test]
    fn zeros_that_are_written_become_holes_where_that_is_asked_for() {
        use std::os::unix::fs::MetadataExt;
        let mut data = vec![0u8; 1 << 20];
        data[(300 << 10) + 17] = 1;
        for zeros_as_holes in [true, false] {
            let image = tempfile::tempfile().unwrap();
            image.set_len(4 << 20).unwrap();
            let spec = DiskSpec { zeros_as_holes, ..DiskSpec::new("") };
            let medium = Medium::new(&spec, image.try_clone().unwrap(), None, &Showing::default());
            let mut buffer = Vec::new();
            let mut carry_out = |what, sectors, from: &[u8]| {
                let request = Request { what, sectors };
                let (mut from, mut to) = (from, Vec::new());
                request.carry_out(&medium, "", &mut buffer, &mut from, &mut to, false).unwrap();
                to
            };
            // Data, then zeros over a part of it, and zeros where nothing has been.
            carry_out(What::Operation(Operation::Write), 0..2048, &data);
            assert_eq!(carry_out(What::Operation(Operation::Read), 0..2048, &[]), data);
            carry_out(What::Operation(Operation::Write), 0..2048, &vec![0; 1 << 20]);
            carry_out(What::Operation(Operation::Write), 4096..6144, &vec![0; 1 << 20]);
            carry_out(What::WriteZeroes { may_unmap: false }, 6144..8192, &[]);
            assert!(carry_out(What::Operation(Operation::Read), 0..8192, &[]).iter().all(|byte| *byte == 0));
            let expected = if zeros_as_holes { 0..1 } else { 3 << 20..5 << 20 };
            let bytes = image.metadata().unwrap().blocks() * 512;
            assert!(expected.contains(&bytes), "zeros_as_holes: {zeros_as_holes}, {bytes} bytes");
        }
    }

    proptest! {
        #[test]
        fn no_head_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64), kind in 0u32..16, data in any::<u64>(), room in any::<u64>()) {
            let mut head = kind.to_le_bytes().to_vec();
            head.extend(bytes);
            if let Ok(request) = Request::decode(&mut head.as_slice(), data, room, 1 << 40) {
                prop_assert!(request.sectors.end <= 1 << 40);
            }
        }
    }
}

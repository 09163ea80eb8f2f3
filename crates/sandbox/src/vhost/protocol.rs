//! The vhost-user protocol, device side: messages of the guest's kernel, decoded, and the answers to them.
//!
//! Written for the two kernels that connect to it. The rust-vmm library was tried first; it refuses the memory table
//! of user-mode Linux, which always sends room for two regions and fills in one.
//! Source: <https://qemu-project.gitlab.io/qemu/interop/vhost-user.html>.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;

/// Request, flags, size of what follows.
const HEADER_BYTES: usize = 12;

/// Longest payload: a configuration space of 4 KiB and its head.
const MAX_PAYLOAD_BYTES: usize = (4 << 10) + 64;

pub(crate) const MAX_REGIONS: usize = 8;

const REGION_BYTES: usize = 32;

const VERSION: u32 = 1;
const VERSION_MASK: u32 = 0b11;
const IS_REPLY: u32 = 1 << 2;
const NEEDS_REPLY: u32 = 1 << 3;

/// In a ring's file message: no file comes with it, poll the ring instead.
const NO_FILE: u64 = 1 << 8;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtocolError {
    #[error("the guest is gone")]
    Closed,
    #[error("a message of protocol version {0}")]
    Version(u32),
    #[error("request {request} with {bytes} bytes")]
    TooLong { request: u32, bytes: usize },
    #[error("request {request} with too few bytes, {bytes}")]
    TooShort { request: u32, bytes: usize },
    #[error("request {0} is not known")]
    Unknown(u32),
    #[error("{0}")]
    Refused(&'static str),
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) guest_address: u64,
    pub(crate) bytes: u64,
    pub(crate) user_address: u64,
    pub(crate) file_offset: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    GetFeatures,
    SetFeatures(u64),
    SetOwner,
    ResetOwner,
    SetMemory(Vec<Region>),
    SetRingSize {
        ring: u32,
        entries: u32,
    },
    SetRingAddress {
        ring: u32,
        descriptors: u64,
        used: u64,
        available: u64,
    },
    SetRingBase {
        ring: u32,
        base: u32,
    },
    GetRingBase {
        ring: u32,
    },
    SetKick {
        ring: u32,
        with_file: bool,
    },
    SetNotify {
        ring: u32,
        with_file: bool,
    },
    SetError {
        ring: u32,
    },
    GetProtocolFeatures,
    SetProtocolFeatures(u64),
    GetRingCount,
    EnableRing {
        ring: u32,
        enable: bool,
    },
    SetRequestChannel,
    GetConfig {
        offset: u32,
        bytes: u32,
        flags: u32,
    },
    SetConfig {
        offset: u32,
        bytes: Vec<u8>,
    },
    /// Requests are on the ring: in band only.
    Kick {
        ring: u32,
    },
}

#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) call: Call,
    pub(crate) files: Vec<OwnedFd>,
    request: u32,
    needs_reply: bool,
}

struct Fields<'a> {
    request: u32,
    whole: usize,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        let too_short = ProtocolError::TooShort { request: self.request, bytes: self.whole };
        let (first, rest) = self.rest.split_first_chunk::<N>().ok_or(too_short)?;
        self.rest = rest;
        Ok(*first)
    }

    fn u32(&mut self) -> Result<u32, ProtocolError> {
        self.take().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Result<u64, ProtocolError> {
        self.take().map(u64::from_ne_bytes)
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], ProtocolError> {
        let too_short = ProtocolError::TooShort { request: self.request, bytes: self.whole };
        let (first, rest) = self.rest.split_at_checked(count).ok_or(too_short)?;
        self.rest = rest;
        Ok(first)
    }
}

impl Call {
    /// Decodes a payload. Bytes beyond what the request needs are ignored.
    pub(crate) fn decode(request: u32, payload: &[u8]) -> Result<Self, ProtocolError> {
        let mut fields = Fields { request, whole: payload.len(), rest: payload };
        let ring_file = |fields: &mut Fields<'_>| fields.u64().map(|word| ((word & 0xff) as u32, word & NO_FILE == 0));
        Ok(match request {
            1 => Self::GetFeatures,
            2 => Self::SetFeatures(fields.u64()?),
            3 => Self::SetOwner,
            4 => Self::ResetOwner,
            5 => {
                let count = fields.u32()? as usize;
                fields.u32()?;
                if count > MAX_REGIONS {
                    return Err(ProtocolError::TooLong { request, bytes: count * REGION_BYTES });
                }
                let region = |fields: &mut Fields<'_>| {
                    Ok(Region {
                        guest_address: fields.u64()?,
                        bytes: fields.u64()?,
                        user_address: fields.u64()?,
                        file_offset: fields.u64()?,
                    })
                };
                Self::SetMemory((0..count).map(|_| region(&mut fields)).collect::<Result<_, ProtocolError>>()?)
            }
            8 => Self::SetRingSize { ring: fields.u32()?, entries: fields.u32()? },
            9 => {
                let ring = fields.u32()?;
                fields.u32()?;
                Self::SetRingAddress { ring, descriptors: fields.u64()?, used: fields.u64()?, available: fields.u64()? }
            }
            10 => Self::SetRingBase { ring: fields.u32()?, base: fields.u32()? },
            11 => Self::GetRingBase { ring: fields.u32()? },
            12 => ring_file(&mut fields).map(|(ring, with_file)| Self::SetKick { ring, with_file })?,
            13 => ring_file(&mut fields).map(|(ring, with_file)| Self::SetNotify { ring, with_file })?,
            14 => ring_file(&mut fields).map(|(ring, _)| Self::SetError { ring })?,
            15 => Self::GetProtocolFeatures,
            16 => Self::SetProtocolFeatures(fields.u64()?),
            17 => Self::GetRingCount,
            18 => Self::EnableRing { ring: fields.u32()?, enable: fields.u32()? == 1 },
            21 => Self::SetRequestChannel,
            24 => Self::GetConfig { offset: fields.u32()?, bytes: fields.u32()?, flags: fields.u32()? },
            25 => {
                let (offset, count) = (fields.u32()?, fields.u32()? as usize);
                fields.u32()?;
                Self::SetConfig { offset, bytes: fields.bytes(count)?.to_vec() }
            }
            35 => Self::Kick { ring: fields.u32()? },
            other => return Err(ProtocolError::Unknown(other)),
        })
    }
}

impl Message {
    /// The next message on this connection, whose read timeout bounds how long half a message may take.
    pub(crate) fn receive(stream: &mut UnixStream) -> Result<Self, ProtocolError> {
        let mut header = [0u8; HEADER_BYTES];
        let (have, files) = receive_with_files(stream, &mut header)?;
        if have == 0 {
            return Err(ProtocolError::Closed);
        }
        stream.read_exact(&mut header[have..])?;
        let word = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (request, flags, bytes) = (word(0), word(4), word(8) as usize);
        if flags & VERSION_MASK != VERSION {
            return Err(ProtocolError::Version(flags & VERSION_MASK));
        }
        if bytes > MAX_PAYLOAD_BYTES {
            return Err(ProtocolError::TooLong { request, bytes });
        }
        let mut payload = vec![0u8; bytes];
        stream.read_exact(&mut payload)?;
        let call = Call::decode(request, &payload)?;
        Ok(Self { call, files, request, needs_reply: flags & NEEDS_REPLY != 0 })
    }

    pub(crate) fn reply(&self, stream: &mut UnixStream, payload: &[u8]) -> io::Result<()> {
        let words = [self.request, VERSION | IS_REPLY, payload.len() as u32];
        let mut frame = words.map(u32::to_ne_bytes).concat();
        frame.extend_from_slice(payload);
        stream.write_all(&frame)
    }

    /// Confirms an order, if that was asked for.
    pub(crate) fn acknowledge(&self, stream: &mut UnixStream, done: bool) -> io::Result<()> {
        if self.needs_reply { self.reply(stream, &u64::from(!done).to_ne_bytes()) } else { Ok(()) }
    }
}

fn receive_with_files(stream: &UnixStream, buffer: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), ProtocolError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_REGIONS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(stream, &mut [IoSliceMut::new(buffer)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            other => break other.map_err(io::Error::from)?,
        }
    };
    let mut files = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            files.extend(rights);
        }
    }
    Ok((received.bytes, files))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_table_with_room_for_more_regions_than_it_has() {
        let mut payload = [1u32, 0].map(u32::to_ne_bytes).concat();
        payload.extend([0x1000u64, 0x2000, 0x3000, 0, 0, 0, 0, 0].map(u64::to_ne_bytes).concat());
        let region = Region { guest_address: 0x1000, bytes: 0x2000, user_address: 0x3000, file_offset: 0 };
        assert_eq!(Call::decode(5, &payload).unwrap(), Call::SetMemory(vec![region]));
        payload[0] = 200;
        assert!(matches!(Call::decode(5, &payload), Err(ProtocolError::TooLong { .. })));
        payload[0] = 3;
        assert!(matches!(Call::decode(5, &payload), Err(ProtocolError::TooShort { .. })));
    }

    #[test]
    fn ring_files_and_configuration() {
        assert_eq!(Call::decode(12, &0u64.to_ne_bytes()).unwrap(), Call::SetKick { ring: 0, with_file: true });
        assert_eq!(Call::decode(13, &0x101u64.to_ne_bytes()).unwrap(), Call::SetNotify { ring: 1, with_file: false });
        let set = [[32u32, 1, 0].map(u32::to_ne_bytes).concat(), vec![0]].concat();
        assert_eq!(Call::decode(25, &set).unwrap(), Call::SetConfig { offset: 32, bytes: vec![0] });
        assert!(matches!(Call::decode(77, &[]), Err(ProtocolError::Unknown(77))));
    }

    proptest! {
        #[test]
        fn no_payload_panics(request in 0u32..48, payload in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = Call::decode(request, &payload);
        }
    }
}

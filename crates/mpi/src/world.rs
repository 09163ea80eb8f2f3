#![expect(
    unsafe_code,
    reason = "sends without waiting: rsmpi ties a message that is under way to a scope, which ends by waiting for it"
)]
//! The processes that a launcher started together.

use fstone_ranks::Transport;
use mpi::{
    Threading,
    environment::Universe,
    ffi,
    traits::{AsRaw, Communicator},
};
use std::{collections::VecDeque, ffi::c_int, mem::MaybeUninit};

/// All messages have one tag: their kind is inside.
const TAG: c_int = 1;
/// Bytes of a message beyond which MPI's counts, which are of 31 bits, end.
const LONGEST: usize = c_int::MAX as usize;

/// A message that MPI has not let go of yet.
struct Sent {
    request: ffi::MPI_Request,
    /// MPI reads it until the request is complete.
    _bytes: Box<[u8]>,
}

/// All processes that were started together. It belongs to the thread that made it.
pub struct World {
    universe: Universe,
    communicator: ffi::MPI_Comm,
    rank: u32,
    size: u32,
    sent: VecDeque<Sent>,
}

/// The name and version of the MPI that is linked ("Open MPI v4.1.4 …"), in its own words; the first line of them.
pub fn library() -> String {
    let words = mpi::environment::library_version().unwrap_or_default();
    words.lines().next().unwrap_or_default().trim_end_matches('\0').trim().to_owned()
}

impl World {
    /// Starts MPI. `None` when it was started before, or cannot be used beside threads that do not use it.
    pub fn start() -> Option<Self> {
        let (universe, threading) = mpi::initialize_with_threading(Threading::Funneled)?;
        if threading < Threading::Funneled {
            return None;
        }
        let world = universe.world();
        let (rank, size) = (world.rank().cast_unsigned(), world.size().cast_unsigned());
        let communicator = world.as_raw();
        // SAFETY: the world's communicator is valid until MPI ends, which `universe` sees to. An error of a message is then a
        // value of the call; as MPI has it by itself, it would end the process.
        unsafe { ffi::MPI_Comm_set_errhandler(communicator, ffi::RSMPI_ERRORS_RETURN) };
        Some(Self { universe, communicator, rank, size, sent: VecDeque::new() })
    }

    fn settle(&mut self) {
        self.sent.retain_mut(|sent| {
            let mut done: c_int = 0;
            // SAFETY: the request is of MPI_Isend and was not completed before; completing it makes it void, and it is dropped.
            let code = unsafe { ffi::MPI_Test(&raw mut sent.request, &raw mut done, ffi::RSMPI_STATUS_IGNORE) };
            code == ffi::MPI_SUCCESS.cast_signed() && done == 0
        });
    }
}

impl Transport for World {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn send(&mut self, to: u32, message: Vec<u8>) {
        self.settle();
        assert!(message.len() <= LONGEST, "a message of {} bytes is longer than MPI can send", message.len());
        let bytes = message.into_boxed_slice();
        let mut request = MaybeUninit::uninit();
        // SAFETY: the bytes stay where they are until the request is complete, since `sent` owns them.
        let code = unsafe {
            ffi::MPI_Isend(
                bytes.as_ptr().cast(),
                bytes.len() as c_int,
                ffi::RSMPI_UINT8_T,
                to.cast_signed(),
                TAG,
                self.communicator,
                request.as_mut_ptr(),
            )
        };
        // Who cannot be reached is missed by its silence.
        if code == ffi::MPI_SUCCESS.cast_signed() {
            // SAFETY: MPI_Isend has succeeded, and written it.
            let request = unsafe { request.assume_init() };
            self.sent.push_back(Sent { request, _bytes: bytes });
        }
    }

    fn receive(&mut self) -> Option<(u32, Vec<u8>)> {
        self.settle();
        let mut found: c_int = 0;
        let mut message = MaybeUninit::uninit();
        let mut status = MaybeUninit::uninit();
        // SAFETY: all pointers are to places of the right types; what is read below was written, as `found` says.
        unsafe {
            let code = ffi::MPI_Improbe(
                ffi::RSMPI_ANY_SOURCE,
                TAG,
                self.communicator,
                &raw mut found,
                message.as_mut_ptr(),
                status.as_mut_ptr(),
            );
            if code != ffi::MPI_SUCCESS.cast_signed() || found == 0 {
                return None;
            }
            let (mut message, status) = (message.assume_init(), status.assume_init());
            let mut length: c_int = 0;
            ffi::MPI_Get_count(&raw const status, ffi::RSMPI_UINT8_T, &raw mut length);
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
            let code = ffi::MPI_Mrecv(
                bytes.as_mut_ptr().cast(),
                length,
                ffi::RSMPI_UINT8_T,
                &raw mut message,
                ffi::RSMPI_STATUS_IGNORE,
            );
            (code == ffi::MPI_SUCCESS.cast_signed()).then(|| (status.MPI_SOURCE.cast_unsigned(), bytes))
        }
    }

    fn idle(&mut self) -> bool {
        self.settle();
        self.sent.is_empty()
    }

    fn finish(self) {
        let Self { universe, mut sent, .. } = self;
        for sent in &mut sent {
            // SAFETY: as in `settle`; all ranks are there and take what was sent.
            unsafe { ffi::MPI_Wait(&raw mut sent.request, ffi::RSMPI_STATUS_IGNORE) };
        }
        // Ends MPI, which waits for the others to do so.
        drop(universe);
    }

    fn abort(self, status: u8) {
        // SAFETY: the communicator is valid. It ends all processes, and usually this one; the bytes of messages under way
        // are not freed before.
        unsafe { ffi::MPI_Abort(self.communicator, c_int::from(status)) };
        std::mem::forget(self);
    }
}

//! A disk for guests: an image file served over vhost-user, whose flushes are honoured and counted, whose speed can
//! be chosen, and which can be made to fail.
//!
//! It runs on threads of this process, without any right beyond access to the image. A guest's kernel that knows
//! virtio-blk uses it like any disk: `/dev/vda`. Both user-mode Linux and QEMU connect to its socket.
//!
//! A flush is an `fdatasync` of the image. What the guest has not flushed is in the host's page cache and survives
//! the guest. What a power cut would have left follows from the disk's log: see [`crate::power`].

mod counters;
mod engine;
mod fault;
mod medium;
mod protocol;
mod request;
mod server;
mod spec;
mod speed;

pub use counters::DiskCounters;
pub use fault::{Effect, Fault, Operation, Trigger};
pub use spec::{DiskSpec, MARK_PREFIX};
pub use speed::Speed;

use crate::power::{CrashState, Log, LogError, Mirror, States};
pub(crate) use counters::Marks;
pub(crate) use engine::Engine;
pub(crate) use engine::QUEUE_SIZE;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
pub(crate) use server::Connection;
pub(crate) use spec::Shared;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// Why a disk is not served; completes "failed to serve a disk: …".
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error("{path}: {cause}")]
    Image { path: PathBuf, cause: io::Error },
    #[error("sectors of {0} bytes are not possible; 512 and 4096 are")]
    SectorSize(u32),
    #[error("cannot {what}: {cause}")]
    Host { what: &'static str, cause: io::Error },
}

/// A disk being served, to one guest after the other, until this is dropped.
#[derive(Debug)]
pub struct Disk {
    socket: PathBuf,
    /// To wind it back.
    image: File,
    shared: Shared,
    stop: Option<OwnedFd>,
    server: Option<thread::JoinHandle<()>>,
}

impl Disk {
    pub fn serve(spec: &DiskSpec, socket: &Path) -> Result<Self, DiskError> {
        let image_error = |cause| DiskError::Image { path: spec.image.clone(), cause };
        let host_error = |what| move |cause| DiskError::Host { what, cause };
        let image = open_image(spec)?;
        let shared = Shared::new(spec, &image).map_err(host_error("begin a log of the disk"))?;
        let own = image.try_clone().map_err(image_error)?;
        let mut engine = Engine::new(spec, image, &shared).map_err(image_error)?;
        let _ = std::fs::remove_file(socket);
        let listener = bind(socket).map_err(host_error("make the disk's socket"))?;
        let (stopped, stop) =
            pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from).map_err(host_error("make a pipe"))?;
        let server = thread::Builder::new()
            .name("disk".to_owned())
            .spawn(move || server::serve(&listener, &stopped, &mut engine))
            .map_err(host_error("start a thread"))?;
        Ok(Self { socket: socket.to_owned(), image: own, shared, stop: Some(stop), server: Some(server) })
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn counters(&self) -> DiskCounters {
        self.shared.counters()
    }

    /// What it had been asked to do when the guest set a mark: every request before that one, and none after it.
    pub fn mark(&self, number: u64) -> Option<DiskCounters> {
        self.shared.marks.lock().unwrap_or_else(PoisonError::into_inner).get(number)
    }

    /// From now on, takes what a request spends between the guest's block layer and this device, both ways, off the
    /// latencies of its speed, so that the guest sees those as asked for. To be measured by the guest, one request at a
    /// time, on this very device: what it costs to wake a guest up depends on how long it slept.
    pub fn take_off(&self, transport: Duration) {
        self.shared.transport.store(u64::try_from(transport.as_nanos()).unwrap_or(0), Ordering::Relaxed);
    }

    /// The log so far, of a disk that keeps one.
    pub fn log(&self) -> Option<Result<Log, LogError>> {
        self.shared.log()
    }

    /// Begins the log of a disk that keeps one anew: from now on it is of changes to what the disk holds now. To be called
    /// while no request is under way. The log's files go, without a name, into this directory.
    pub fn begin_log_anew(&self, directory: &Path) -> io::Result<()> {
        self.shared.begin_log_anew(&self.image, directory)
    }

    /// Makes the disk what it was when its log began, and empties the log. To be called while nothing of it is mounted; the
    /// guest has to forget what it knows of the disk.
    pub fn rewind(&self, directory: &Path) -> io::Result<()> {
        self.shared.log.as_ref().map_or(Ok(()), |log| log.rewind(&self.image, directory))
    }

    /// Shows a crash state in place of what was written, or that again when there is none. To be called while nothing of
    /// it is mounted; the guest has to forget what it knows of the disk. What is written to the state goes to a file
    /// without a name in this directory.
    ///
    /// # Errors
    /// When that file cannot be made. Then the disk shows what it showed.
    pub fn show(&self, state: Option<(&mut States, CrashState)>, directory: &Path) -> io::Result<()> {
        self.shared.show(state, directory)
    }

    /// Makes a file hold the crash state that is shown, with what was written to it meanwhile; whether one is shown.
    pub fn mirror(&self, mirror: &mut Mirror) -> io::Result<bool> {
        self.shared.mirror(mirror)
    }

    /// Stops serving and gives the final counts. For when the guest is gone.
    #[must_use]
    pub fn finish(mut self) -> DiskCounters {
        self.stop();
        self.counters()
    }

    fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(server) = self.server.take() {
            let _ = server.join();
            let _ = std::fs::remove_file(&self.socket);
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn open_image(spec: &DiskSpec) -> Result<File, DiskError> {
    if !matches!(spec.sector_bytes, 512 | 4096) {
        return Err(DiskError::SectorSize(spec.sector_bytes));
    }
    let image_error = |cause| DiskError::Image { path: spec.image.clone(), cause };
    let image = OpenOptions::new().read(true).write(true).open(&spec.image).map_err(image_error)?;
    let bytes = image.metadata().map_err(image_error)?.len();
    if bytes == 0 || !bytes.is_multiple_of(u64::from(spec.sector_bytes)) {
        let problem = format!("its size, {bytes} bytes, is not a multiple of the sector size");
        return Err(image_error(io::Error::new(io::ErrorKind::InvalidInput, problem)));
    }
    Ok(image)
}

/// Listens at a path of any length: the address of a socket has but 107 bytes, so it goes by its directory's descriptor.
pub(crate) fn bind(socket: &Path) -> io::Result<UnixListener> {
    let (Some(parent), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no name"));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let directory = File::open(parent)?;
    UnixListener::bind(Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name))
}

#![expect(unsafe_code, reason = "an inherited descriptor has only its number")]
//! The agent's end of the channel: a raw terminal or a virtio-serial port.

use rustix::termios::{OptionalActions, isatty, tcdrain, tcgetattr, tcsetattr};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a device node may take to appear after its driver was loaded.
const APPEARING_TIME: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Line(File);

impl Line {
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Waits until everything written has left the guest, where the device can tell.
    pub(crate) fn drain(&self) {
        if isatty(&self.0) {
            let _ = tcdrain(&self.0);
        }
    }
}

impl Read for Line {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn inherited(number: RawFd) -> io::Result<Line> {
    // Through /proc, which takes no descriptor's owner on trust; a socket cannot be opened there, but it can be told.
    let target = fs::read_link(format!("/proc/self/fd/{number}"))?;
    if !target.to_string_lossy().starts_with("socket:") {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("descriptor {number} is not a socket")));
    }
    // SAFETY: it is open, as was just seen, and was passed on for this alone; nothing else in this process knows it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    // Programs that jobs start have no business with it.
    rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::CLOEXEC)?;
    Ok(Line(File::from(descriptor)))
}

pub(crate) fn open(name: &str) -> io::Result<Line> {
    let since = Instant::now();
    loop {
        let opened = find(name).and_then(|path| OpenOptions::new().read(true).write(true).open(path));
        match opened {
            Ok(file) => {
                if isatty(&file) {
                    let mut attributes = tcgetattr(&file)?;
                    attributes.make_raw();
                    tcsetattr(&file, OptionalActions::Now, &attributes)?;
                }
                return Ok(Line(file));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && since.elapsed() < APPEARING_TIME => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => return Err(error),
        }
    }
}

fn find(name: &str) -> io::Result<PathBuf> {
    let Some(port) = name.strip_prefix("virtio:") else { return Ok(PathBuf::from(name)) };
    for entry in fs::read_dir("/sys/class/virtio-ports")? {
        let entry = entry?;
        if fs::read_to_string(entry.path().join("name")).is_ok_and(|found| found.trim_end() == port) {
            return Ok(PathBuf::from("/dev").join(entry.file_name()));
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, format!("no virtio-serial port is named {port}")))
}

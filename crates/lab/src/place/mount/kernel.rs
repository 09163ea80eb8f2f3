//! The real mounter.

use super::{
    MountEntry, MountError, MountOption, MountOptions, MountRequest, Mounter, UnmountError,
    messages::{self, KernelLog},
    read_mountinfo, trim,
};
use crate::filesystem;
use rustix::{
    fs::{CWD, syncfs},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MoveMountFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag,
        fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
    },
};
use std::{
    fs, io,
    path::Path,
    time::{Duration, Instant},
};

/// How long something in use is waited for. Indexers and udev's probes let go within a second or two.
const BUSY: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub struct KernelMounter;

impl Mounter for KernelMounter {
    fn mount(&self, request: &MountRequest) -> Result<(), MountError> {
        let options = MountOptions::parse(&request.options);
        let context =
            fsopen(request.kernel_name.as_str(), FsOpenFlags::FSOPEN_CLOEXEC).map_err(|errno| match errno {
                Errno::NODEV => MountError::UnknownFilesystem { kernel_name: request.kernel_name.clone() },
                _ => failed("fsopen", errno, None),
            })?;
        fsconfig_set_string(&context, "source", request.source.as_path())
            .map_err(|errno| failed("fsconfig", errno, messages::from_context(&context)))?;
        for option in &options.filesystem {
            let (result, typed) = match option {
                MountOption::Flag(name) => (fsconfig_set_flag(&context, name.as_str()), name.clone()),
                MountOption::Value(name, value) => {
                    (fsconfig_set_string(&context, name.as_str(), value.as_str()), format!("{name}={value}"))
                }
            };
            result.map_err(|errno| {
                let words = messages::from_context(&context);
                if is_refusal(errno) {
                    let words = words.unwrap_or_else(|| format!("{typed}: {}", io::Error::from(errno)));
                    MountError::Refused { option: Some(typed), words }
                } else {
                    failed("fsconfig", errno, words)
                }
            })?;
        }

        let log = KernelLog::listen();
        fsconfig_create(&context).map_err(|errno| {
            let device = request.source.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let words = messages::from_context(&context).or_else(|| log.heard_about(&device, &request.kernel_name));
            if is_refusal(errno) {
                let words = words.unwrap_or_else(|| io::Error::from(errno).to_string());
                MountError::Refused { option: None, words }
            } else {
                failed("fsconfig", errno, words)
            }
        })?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, options.attributes.flags())
            .map_err(|errno| failed("fsmount", errno, messages::from_context(&context)))?;
        // Until the next call succeeds the filesystem is mounted nowhere, and gone when these descriptors are.
        move_mount(&mount, "", CWD, request.target.as_path(), MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
            .map_err(|errno| failed("move_mount", errno, None))
    }

    fn unmount(&self, target: &Path) -> Result<(), UnmountError> {
        let started = Instant::now();
        let mut pause = Duration::from_millis(5);
        loop {
            // NOFOLLOW: a mount point that became a symbolic link is not ours any more.
            match unmount(target, UnmountFlags::NOFOLLOW) {
                Ok(()) => return Ok(()),
                Err(Errno::BUSY) if started.elapsed() < BUSY => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(500));
                }
                Err(Errno::BUSY) => return Err(UnmountError::Busy { target: target.to_owned(), by: users_of(target) }),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(UnmountError::Failed { target: target.to_owned(), cause: errno.into() }),
            }
        }
    }

    fn mounts(&self) -> io::Result<Vec<MountEntry>> {
        read_mountinfo()
    }

    fn drop_caches(&self) -> io::Result<()> {
        // What is dirty is not dropped.
        rustix::fs::sync();
        fs::write("/proc/sys/vm/drop_caches", "3")
    }

    fn sync(&self, target: &Path) -> io::Result<()> {
        let directory = fs::File::open(target)?;
        rustix::fs::sync();
        Ok(syncfs(&directory)?)
    }

    fn flush(&self, target: &Path) -> io::Result<()> {
        Ok(syncfs(&fs::File::open(target)?)?)
    }

    fn trim(&self, target: &Path) -> io::Result<()> {
        trim::trim(target)
    }

    fn kernel_has(&self, kernel_name: &str) -> bool {
        filesystem::kernel_has(kernel_name)
    }
}

/// What an unknown option, a bad value or a combination that is not supported gives.
fn is_refusal(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS | Errno::RANGE)
}

fn failed(call: &'static str, errno: Errno, words: Option<String>) -> MountError {
    let error = io::Error::from(errno);
    let words = words.map_or_else(|| error.to_string(), |words| format!("{words} ({error})"));
    MountError::Failed { call, errno: errno.raw_os_error(), words }
}

/// Processes with their working directory, root or an open file below a mount point; what can be seen of them.
fn users_of(target: &Path) -> Vec<String> {
    const SHOWN: usize = 5;
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let uses = |process: &Path| {
        let below = |link: &Path| fs::read_link(link).is_ok_and(|path| path.starts_with(target));
        let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        below(&process.join("cwd"))
            || below(&process.join("root"))
            || files.map(|file| file.path()).any(|file| below(&file))
    };
    processes
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|entry| uses(&entry.path()))
        .take(SHOWN)
        .map(|entry| {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            format!("{} ({})", name.trim(), entry.file_name().to_string_lossy())
        })
        .collect()
}

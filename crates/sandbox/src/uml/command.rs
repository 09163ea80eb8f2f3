//! The command line of user-mode Linux.

use super::spec::{MAX_DISKS, MAX_MEMORY_BYTES, MIN_MEMORY_BYTES, UmlDisk, UmlSpec};
use crate::guest::{BootError, path_word, word};
use std::ffi::OsString;
use std::path::PathBuf;

/// Descriptors of the channel in the guest's process.
pub(super) const GUEST_INPUT: i32 = 3;
pub(super) const GUEST_OUTPUT: i32 = 4;
pub(super) const FREE_DESCRIPTOR: i32 = 5;

/// UML's private directory, below the guest's own: all that the guest writes.
pub(crate) const CONTROL: &str = "uml";

/// What every user-mode kernel is told of its root and its way of running: the host's files, read-only.
pub(crate) const HOST_AS_ROOT: [&str; 7] =
    ["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet", "noreboot", "random.trust_cpu=on"];

/// Spares a boot what only takes time: measuring the delay loop, which no filesystem and no disk of a guest uses (this is a
/// processor of 3 GHz), and testing ciphers and checksums. Level 3 hides a complaint about each serial line that is not to
/// be there; the agent raises it again.
const BOOT_QUICKLY: [&str; 3] = ["lpj=16000000", "cryptomgr.notests", "loglevel=3"];

const VIRTIO_ID_BLOCK: u32 = 2;

/// The program to execute and its arguments, argv[0] included. Everything in the guest's own directory is named
/// relative to it: socket paths are limited to 107 bytes.
pub(super) fn argv(spec: &UmlSpec) -> Result<(PathBuf, Vec<OsString>), BootError> {
    if !(MIN_MEMORY_BYTES..=MAX_MEMORY_BYTES).contains(&spec.memory_bytes) {
        return Err(BootError::OutOfBounds {
            what: "the guest's memory",
            value: fstone_model::units::format_bytes(spec.memory_bytes),
            bounds: "from 64 MiB to 64 GiB",
        });
    }
    if spec.disks.len() > MAX_DISKS {
        return Err(BootError::OutOfBounds {
            what: "the number of disks",
            value: spec.disks.len().to_string(),
            bounds: "at most 8",
        });
    }
    let mut words = vec![format!("mem={}K", spec.memory_bytes >> 10)];
    words.extend(HOST_AS_ROOT.map(str::to_owned));
    words.extend([
        // The console goes to the host's pipe only: no terminals are made, nothing is read.
        "con=null".to_owned(),
        "con0=null,fd:1".to_owned(),
        // 63 further serial lines would be made otherwise.
        "ssl=none".to_owned(),
        format!("ssl0=fd:{GUEST_INPUT},fd:{GUEST_OUTPUT}"),
        "pty.legacy_count=0".to_owned(),
        format!("uml_dir={CONTROL}"),
        "umid=guest".to_owned(),
        format!("init={}", path_word("the agent's path", &spec.agent)?),
    ]);
    words.extend(BOOT_QUICKLY.map(str::to_owned));
    // Measuring the RAID 6 routines takes 0.85 of the 1.2 seconds of a boot, and RAID 5/6 needs several disks.
    if spec.disks.len() < 2 {
        words.push("initcall_blacklist=raid6_select_algo".to_owned());
    }
    let mut ubd = 0;
    for disk in &spec.disks {
        match disk {
            UmlDisk::VhostUser(socket) => {
                let socket = path_word("the disk's socket", socket.strip_prefix(&spec.directory).unwrap_or(socket))?;
                if socket.contains(':') {
                    return Err(BootError::Unspeakable { what: "the disk's socket", value: socket });
                }
                words.push(format!("virtio_uml.device={socket}:{VIRTIO_ID_BLOCK}"));
            }
            UmlDisk::Ubd(image) => {
                words.push(format!("ubd{ubd}={}", path_word("the disk's image", image)?));
                ubd += 1;
            }
        }
    }
    for module in &spec.modules {
        word("the module", module)?;
    }
    if let Some(modules) = &spec.kernel.modules {
        path_word("the modules' directory", modules)?;
    }
    words.extend(spec.settings().words());
    if !spec.agent_arguments.is_empty() {
        words.push("--".to_owned());
        for argument in &spec.agent_arguments {
            words.push(word("the agent's argument", argument)?);
        }
    }

    let program = spec.kernel.binary.clone();
    let argv = std::iter::once(program.clone().into_os_string()).chain(words.into_iter().map(OsString::from)).collect();
    Ok((program, argv))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uml::UmlKernel;
    use std::path::Path;

    fn spec() -> UmlSpec {
        let kernel =
            UmlKernel { binary: "/k/linux.uml".into(), modules: Some("/k/modules/6.1.0".into()), libraries: None };
        UmlSpec::new(kernel, "/usr/bin/fstone", "/tmp/guest")
    }

    #[test]
    fn the_whole_command_line() {
        let mut spec = spec();
        spec.disks = vec![UmlDisk::VhostUser("/tmp/guest/disk.sock".into()), UmlDisk::Ubd("/tmp/i.img".into())];
        spec.modules = vec!["f2fs".into()];
        spec.agent_arguments = vec!["agent".into()];
        let (program, argv) = argv(&spec).unwrap();
        assert_eq!(program, Path::new("/k/linux.uml"));
        let argv: Vec<&str> = argv.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(
            argv.join(" "),
            "/k/linux.uml mem=262144K root=/dev/root rootfstype=hostfs rootflags=/ ro quiet noreboot \
             random.trust_cpu=on con=null con0=null,fd:1 ssl=none ssl0=fd:3,fd:4 pty.legacy_count=0 uml_dir=uml \
             umid=guest init=/usr/bin/fstone lpj=16000000 cryptomgr.notests loglevel=3 virtio_uml.device=disk.sock:2 ubd0=/tmp/i.img \
             FSTONE_CHANNEL=/dev/ttyS0 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
             TMPDIR=/run/tmp FSTONE_MODULES=/k/modules/6.1.0 FSTONE_LOAD=virtio_blk,f2fs -- agent"
        );
    }

    #[test]
    fn what_a_kernel_cannot_hear_is_refused() {
        let mut blank = spec();
        blank.agent = "/home/a b/fstone".into();
        let error = argv(&blank).unwrap_err().to_string();
        assert!(error.starts_with("the agent's path \"/home/a b/fstone\" cannot be passed"), "{error}");
        let mut injected = spec();
        injected.modules = vec!["x init=/bin/sh".into()];
        assert!(argv(&injected).is_err());
        let mut small = spec();
        small.memory_bytes = 1 << 20;
        assert_eq!(
            argv(&small).unwrap_err().to_string(),
            "the guest's memory is 1 MiB, and must be from 64 MiB to 64 GiB"
        );
    }
}

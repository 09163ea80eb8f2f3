//! The command line of QEMU, and of the kernel in it.

use super::error::QemuError;
use super::initramfs;
use super::spec::QemuSpec;
use crate::agent::settings::Settings;
use crate::guest::{BootError, path_word};
use std::ffi::OsString;
use std::path::Path;

/// The channel's descriptor in QEMU.
pub(super) const CHANNEL: i32 = 3;

const PORT: &str = "fstone";

pub(super) fn argv(
    spec: &QemuSpec,
    emulator: &Path,
    vmlinux: &Path,
    initrd: &Path,
    kvm: bool,
) -> Result<Vec<OsString>, QemuError> {
    if !((96 << 20)..=(64 << 30)).contains(&spec.memory_bytes) {
        return Err(QemuError::Boot(BootError::OutOfBounds {
            what: "the guest's memory",
            value: fstone_model::units::format_bytes(spec.memory_bytes),
            bounds: "from 96 MiB to 64 GiB",
        }));
    }
    let memory = spec.memory_bytes >> 20;
    let settings = Settings {
        channel: format!("virtio:{PORT}"),
        modules: Some(initramfs::MODULES.into()),
        load: spec.all_modules(),
    };
    // A guest on a slow emulator must not spend its time proving its cryptography or calibrating timers.
    let mut kernel = "console=ttyS0 quiet panic=-1 rdinit=/init mitigations=off nokaslr no_timer_check \
                      cryptomgr.notests random.trust_cpu=on initcall_blacklist=raid6_select_algo"
        .to_owned();
    for word in settings.words() {
        kernel.push(' ');
        kernel.push_str(&word);
    }

    let mut argv: Vec<OsString> = vec![emulator.into()];
    let mut add = |words: &[&str]| argv.extend(words.iter().map(OsString::from));
    add(&["-accel", if kvm { "kvm" } else { "tcg" }]);
    // Emulated cmpxchg16b of QEMU 7.2 is not sound on every host: 6.12 died in kmalloc in 5 of 12 boots, with double
    // faults, and in none without it.
    add(&["-cpu", if kvm { "host" } else { "max,-cx16" }]);
    // For a machine that can never have a second processor, emulation leaves the barriers out of locked instructions; but
    // the disk's server runs beside it.
    add(&["-smp", if kvm { "1" } else { "1,maxcpus=2" }]);
    // Shared, so that the disk's server sees the guest's memory.
    add(&["-machine", "q35,memory-backend=memory", "-m", &format!("{memory}M")]);
    add(&["-object", &format!("memory-backend-memfd,id=memory,size={memory}M,share=on")]);
    add(&["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio"]);
    add(&["-device", "pvpanic-pci", "-action", "panic=exit-failure"]);
    add(&["-chardev", &format!("socket,id=channel,fd={CHANNEL}")]);
    add(&["-device", "virtio-serial-pci", "-device", &format!("virtserialport,chardev=channel,name={PORT}")]);
    for (index, socket) in spec.disks.iter().enumerate() {
        let socket = path_word("the disk's socket", socket.strip_prefix(&spec.directory).unwrap_or(socket))?;
        add(&["-chardev", &format!("socket,id=disk{index},path={socket}")]);
        // By itself QEMU gives half as many places as the disk takes pieces of memory at once.
        let places = crate::vhost::QUEUE_SIZE;
        add(&["-device", &format!("vhost-user-blk-pci,chardev=disk{index},num-queues=1,queue-size={places}")]);
    }
    add(&["-append", &kernel]);
    argv.extend(["-kernel".into(), vmlinux.into(), "-initrd".into(), initrd.into()]);
    Ok(argv)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Flavour, Kernel};

    #[test]
    fn the_whole_command_line() {
        let kernel = Kernel {
            flavour: Flavour::Qemu,
            release: "6.12.1".into(),
            source: "x".into(),
            binary: "/k/vmlinuz".into(),
            modules: None,
            libraries: None,
            counts: false,
        };
        let mut spec = QemuSpec::new(kernel, "/usr/bin/fstone", "/g", "/c");
        spec.disks = vec!["/g/disk.sock".into()];
        spec.modules = vec!["ext4".into()];
        let argv = argv(&spec, Path::new("/usr/bin/qemu"), Path::new("/c/vmlinux"), Path::new("/c/i"), false).unwrap();
        let text: Vec<&str> = argv.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(
            text.join(" "),
            "/usr/bin/qemu -accel tcg -cpu max,-cx16 -smp 1,maxcpus=2 -machine q35,memory-backend=memory -m 256M -object \
             memory-backend-memfd,id=memory,size=256M,share=on -nodefaults -no-user-config -display none -no-reboot \
             -serial stdio -device pvpanic-pci -action panic=exit-failure -chardev socket,id=channel,fd=3 -device \
             virtio-serial-pci -device virtserialport,chardev=channel,name=fstone -chardev \
             socket,id=disk0,path=disk.sock -device vhost-user-blk-pci,chardev=disk0,num-queues=1,queue-size=256 -append \
             console=ttyS0 quiet panic=-1 rdinit=/init mitigations=off nokaslr no_timer_check cryptomgr.notests \
             random.trust_cpu=on initcall_blacklist=raid6_select_algo FSTONE_CHANNEL=virtio:fstone \
             PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/run/tmp \
             FSTONE_MODULES=/lib/modules/fstone FSTONE_LOAD=virtio_pci,virtio_console,virtio_blk,pvpanic_pci,ext4 \
             -kernel /c/vmlinux -initrd /c/i"
        );
        spec.memory_bytes = 1 << 20;
        assert!(super::argv(&spec, Path::new("q"), Path::new("v"), Path::new("i"), false).is_err());
    }
}

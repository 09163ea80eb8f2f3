//! Whether the running kernel knows a filesystem.

use std::{fs, path::Path};

/// Whether the running kernel has this filesystem, built in, loaded, or as a module that mounting would load.
pub fn kernel_has(kernel_name: &str) -> bool {
    let registered = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if is_registered(&registered, kernel_name) {
        return true;
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let modules = Path::new("/lib/modules").join(release);
    let list = fs::read_to_string(modules.join("modules.dep")).unwrap_or_default();
    let built_in = fs::read_to_string(modules.join("modules.builtin")).unwrap_or_default();
    has_module(&list, kernel_name) || has_module(&built_in, kernel_name)
}

/// Whether /proc/filesystems names it as one that lives on a device.
fn is_registered(filesystems: &str, name: &str) -> bool {
    filesystems.lines().any(|line| line.strip_prefix('\t') == Some(name))
}

/// Whether a list of modules (modules.dep, modules.builtin) has one of this name under kernel/fs.
fn has_module(list: &str, name: &str) -> bool {
    list.lines().filter_map(|line| line.split(':').next()).any(|path| {
        let file = path.rsplit('/').next().unwrap_or(path);
        path.contains("/fs/") && file.strip_prefix(name).is_some_and(|rest| rest.starts_with(".ko"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_word_by_word() {
        let filesystems = "nodev\ttmpfs\n\text4\nnodev\toverlay\n\txfs\n";
        assert!(is_registered(filesystems, "ext4") && is_registered(filesystems, "xfs"));
        assert!(!is_registered(filesystems, "ext") && !is_registered(filesystems, "tmpfs"));
        let list = "kernel/fs/f2fs/f2fs.ko.xz: kernel/lib/lz4.ko\nkernel/drivers/jfs/jfs.ko:\nkernel/fs/fat/vfat.ko:\n";
        assert!(has_module(list, "f2fs") && has_module(list, "vfat"));
        assert!(!has_module(list, "jfs") && !has_module(list, "fat") && !has_module(list, "f2"));
    }
}

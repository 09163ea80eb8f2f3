//! The modules a guest needs, out of an unpacked linux-image package. Such a package has no modules.dep: depmod makes
//! it when a package is installed, and nothing is installed here. So what a module needs is read from the module.

use super::vmlinux::{VmlinuxError, decompress, tool_for};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Modules in the order of loading: name, what each needs directly, and its content, uncompressed.
#[derive(Debug, Default)]
pub(super) struct Set {
    pub(super) modules: Vec<(String, Vec<String>, Vec<u8>)>,
    /// Asked for, and part of the kernel itself.
    pub(super) builtin: Vec<String>,
    /// Asked for, and neither there nor built in.
    pub(super) missing: Vec<String>,
}

/// Why modules could not be collected; completes "failed to collect the guest's modules: …".
#[derive(Debug, thiserror::Error)]
pub enum ModulesError {
    #[error("{path}: {cause}")]
    File { path: PathBuf, cause: io::Error },
    #[error("{path}: {cause}")]
    Compressed { path: PathBuf, cause: VmlinuxError },
}

fn name_of(file: &str) -> Option<String> {
    let (stem, rest) = file.split_once(".ko")?;
    matches!(rest, "" | ".xz" | ".zst" | ".gz").then(|| stem.replace('-', "_"))
}

fn index(directory: &Path, found: &mut HashMap<String, PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            index(&entry.path(), found);
        // Links lead out of the package ("build", "source"), and the guest gets what is read here.
        } else if kind.is_file()
            && let Some(name) = name_of(&entry.file_name().to_string_lossy())
        {
            found.insert(name, entry.path());
        }
    }
}

/// The value of a tag in a module's .modinfo section, which holds "tag=value" texts.
fn tag<'a>(module: &'a [u8], tag: &str) -> Option<&'a str> {
    let wanted = [b"\0", tag.as_bytes(), b"="].concat();
    let at = module.windows(wanted.len()).position(|window| window == wanted.as_slice())? + wanted.len();
    let end = at + module[at..].iter().position(|&byte| byte == 0)?;
    std::str::from_utf8(&module[at..end]).ok()
}

impl Set {
    pub(super) fn collect(directory: &Path, names: &[String]) -> Result<Self, ModulesError> {
        let mut files = HashMap::new();
        index(directory, &mut files);
        let builtin = fs::read_to_string(directory.join("modules.builtin")).unwrap_or_default();
        let builtin: HashSet<String> = builtin.lines().filter_map(|line| name_of(line.rsplit('/').next()?)).collect();
        let mut set = Self::default();
        let mut done = HashSet::new();
        for name in names {
            if files.contains_key(name) {
                set.add(name, &files, &mut done)?;
            } else if builtin.contains(name) {
                set.builtin.push(name.clone());
            } else {
                set.missing.push(name.clone());
            }
        }
        Ok(set)
    }

    fn add(
        &mut self,
        name: &str,
        files: &HashMap<String, PathBuf>,
        done: &mut HashSet<String>,
    ) -> Result<(), ModulesError> {
        let Some(path) = files.get(name).filter(|_| done.insert(name.to_owned())) else { return Ok(()) };
        let bytes = fs::read(path).map_err(|cause| ModulesError::File { path: path.clone(), cause })?;
        let module = match tool_for(&bytes) {
            Some(tool) => {
                decompress(tool, &bytes).map_err(|cause| ModulesError::Compressed { path: path.clone(), cause })?
            }
            None => bytes,
        };
        let declared = tag(&module, "depends").unwrap_or_default().split(',').filter(|need| !need.is_empty());
        let needs: Vec<String> = declared.map(|need| need.replace('-', "_")).collect();
        for need in &needs {
            self.add(need, files, done)?;
        }
        self.modules.push((name.to_owned(), needs, module));
        Ok(())
    }

    /// modules.dep for these, as depmod would write it: everything a module needs, nearest first.
    pub(super) fn dependencies(&self) -> String {
        let direct: BTreeMap<&str, &[String]> =
            self.modules.iter().map(|(name, needs, _)| (name.as_str(), needs.as_slice())).collect();
        // In the order of loading, what a module needs comes before it: nearest first is the reverse of that.
        let mut text = String::new();
        for (name, _, _) in &self.modules {
            let mut wanted = HashSet::new();
            let mut open = vec![name.as_str()];
            while let Some(one) = open.pop() {
                for need in direct.get(one).copied().unwrap_or_default() {
                    if wanted.insert(need.as_str()) {
                        open.push(need);
                    }
                }
            }
            let needs = self.modules.iter().rev().filter(|(other, _, _)| wanted.contains(other.as_str()));
            let needs: Vec<String> = needs.map(|(other, _, _)| format!(" {other}.ko")).collect();
            text.push_str(&format!("{name}.ko:{}\n", needs.concat()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_read_from_the_modules_and_ordered() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, needs: &str| {
            fs::create_dir_all(directory.path().join("kernel/fs")).unwrap();
            let content = format!("\x7fELF\0license=GPL\0depends={needs}\0name=x\0");
            fs::write(directory.path().join("kernel/fs").join(name), content).unwrap();
        };
        write("ext4.ko", "jbd2,mbcache");
        write("jbd2.ko", "crc16");
        write("mbcache.ko", "");
        write("crc16.ko", "");
        write("crc32c-generic.ko", "");
        let secret = directory.path().join("secret");
        fs::write(&secret, "a user's").unwrap();
        std::os::unix::fs::symlink(&secret, directory.path().join("kernel/fs/zfs.ko")).unwrap();
        fs::write(directory.path().join("modules.builtin"), "kernel/drivers/virtio/virtio.ko\n").unwrap();
        let names = ["crc32c_generic", "ext4", "virtio", "zfs"].map(str::to_owned);
        let set = Set::collect(directory.path(), &names).unwrap();
        let order: Vec<&str> = set.modules.iter().map(|(name, _, _)| name.as_str()).collect();
        assert_eq!(order, ["crc32c_generic", "crc16", "jbd2", "mbcache", "ext4"]);
        assert_eq!((set.builtin.as_slice(), set.missing.as_slice()), (&names[2..3], &names[3..]));
        let expected = "crc32c_generic.ko:\ncrc16.ko:\njbd2.ko: crc16.ko\nmbcache.ko:\n\
                        ext4.ko: mbcache.ko jbd2.ko crc16.ko\n";
        assert_eq!(set.dependencies(), expected);
    }
}

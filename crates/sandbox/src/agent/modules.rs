//! Loading kernel modules with what they depend on. The guest has no modprobe, and the kernel's own would be it.

use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Why a module was not loaded; completes "failed to load a module: …".
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("no modules are known: {directory}/modules.dep: {cause}")]
    NoList { directory: String, cause: io::Error },
    /// Neither built in nor on the list.
    #[error("this kernel has no module {0}")]
    Unknown(String),
    #[error("{path}: {cause}")]
    File { path: String, cause: io::Error },
    /// Compressed in a way this agent cannot undo.
    #[error("{0} is compressed; unpack the kernel's modules on the host")]
    Compressed(String),
    #[error("the kernel refused {path}: {cause}")]
    Refused { path: String, cause: io::Error },
}

/// A kernel's modules: what there is, what is built in, and what needs what.
#[derive(Debug, Default)]
pub struct Modules {
    directory: PathBuf,
    /// Module name to its file and the files it needs, relative to the directory, as modules.dep has them.
    files: HashMap<String, (String, Vec<String>)>,
    builtin: HashSet<String>,
    /// What a module wants loaded before it without depending on it: f2fs wants a crc32 of the crypto layer.
    before: HashMap<String, Vec<String>>,
    /// Other names of modules; patterns for hardware are left out.
    aliases: HashMap<String, String>,
}

/// "kernel/fs/f2fs/f2fs.ko.xz" is the module f2fs; the kernel knows no difference between - and _.
fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

impl Modules {
    /// Reads what depmod wrote into this directory; only modules.dep has to be there.
    pub fn open(directory: Option<&Path>) -> Result<Self, LoadError> {
        let directory = directory.unwrap_or_else(|| Path::new("/lib/modules"));
        let list = fs::read_to_string(directory.join("modules.dep"))
            .map_err(|cause| LoadError::NoList { directory: directory.display().to_string(), cause })?;
        let optional = |name| fs::read_to_string(directory.join(name)).unwrap_or_default();
        let (builtin, soft, aliases) =
            (optional("modules.builtin"), optional("modules.softdep"), optional("modules.alias"));
        Ok(Self::parse(directory, &list, &builtin, &soft, &aliases))
    }

    fn parse(directory: &Path, list: &str, builtin: &str, soft: &str, aliases: &str) -> Self {
        let mut modules = Self { directory: directory.to_owned(), ..Self::default() };
        for (file, needs) in list.lines().filter_map(|line| line.split_once(':')) {
            let needs = needs.split_whitespace().map(str::to_owned).collect();
            modules.files.insert(module_name(file), (file.to_owned(), needs));
        }
        modules.builtin.extend(builtin.lines().map(module_name));
        for line in soft.lines() {
            // "softdep NAME pre: A B post: C"
            let mut words = line.split_whitespace();
            if let (Some("softdep"), Some(name), Some("pre:")) = (words.next(), words.next(), words.next()) {
                let before = words.take_while(|&word| word != "post:").map(module_name);
                modules.before.entry(module_name(name)).or_default().extend(before);
            }
        }
        for line in aliases.lines() {
            let mut words = line.split_whitespace();
            if let (Some("alias"), Some(alias), Some(name)) = (words.next(), words.next(), words.next())
                && !alias.contains(['*', ':'])
            {
                modules.aliases.insert(module_name(alias), module_name(name));
            }
        }
        modules
    }

    /// The files to load for this module, in order, relative to the directory; empty when it is built in.
    pub fn order(&self, name: &str) -> Result<Vec<String>, LoadError> {
        let mut order = Vec::new();
        self.add(&module_name(name), &mut order, &mut Vec::new())?;
        Ok(order)
    }

    fn add(&self, name: &str, order: &mut Vec<String>, adding: &mut Vec<String>) -> Result<(), LoadError> {
        // As modprobe looks a name up: modules, aliases, what is built in.
        let name =
            if self.files.contains_key(name) { name } else { self.aliases.get(name).map_or(name, String::as_str) };
        let Some((file, needs)) = self.files.get(name) else {
            return if self.builtin.contains(name) { Ok(()) } else { Err(LoadError::Unknown(name.to_owned())) };
        };
        // Wishes may go round in circles.
        if adding.iter().any(|other| other == name) {
            return Ok(());
        }
        adding.push(name.to_owned());
        // depmod lists what is needed nearest first: the last has to be there before the others.
        for file in needs.iter().rev().chain([file]) {
            for before in self.before.get(&module_name(file)).into_iter().flatten() {
                // A wish, not a need.
                let _ = self.add(before, order, adding);
            }
            if !order.contains(file) {
                order.push(file.clone());
            }
        }
        adding.pop();
        Ok(())
    }

    /// Loads a module and what it needs. One that is there already is not an error.
    pub fn load(&self, name: &str) -> Result<(), LoadError> {
        for file in self.order(name)? {
            self.load_file(&self.directory.join(file))?;
        }
        Ok(())
    }

    fn load_file(&self, path: &Path) -> Result<(), LoadError> {
        let shown = || path.display().to_string();
        let mut file = File::open(path).map_err(|cause| LoadError::File { path: shown(), cause })?;
        match rustix::system::finit_module(&file, c"", 0) {
            Ok(()) | Err(Errno::EXIST) => return Ok(()),
            Err(Errno::NOEXEC | Errno::OPNOTSUPP | Errno::INVAL) => {}
            Err(error) => return Err(LoadError::Refused { path: shown(), cause: error.into() }),
        }
        // Some kernels cannot read a module through every filesystem: give them the bytes.
        let mut image = Vec::new();
        file.read_to_end(&mut image).map_err(|cause| LoadError::File { path: shown(), cause })?;
        if !image.starts_with(b"\x7fELF") {
            return Err(LoadError::Compressed(shown()));
        }
        match rustix::system::init_module(&image, c"") {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(LoadError::Refused { path: shown(), cause: error.into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_from_the_ground_up() {
        let list = "kernel/drivers/scsi/sd_mod.ko: kernel/block/t10-pi.ko kernel/lib/crc64-rocksoft.ko kernel/lib/crc64.ko\n\
                    kernel/lib/crc64.ko:\nkernel/fs/nilfs2/nilfs2.ko.xz:\n";
        let modules = Modules::parse(Path::new("/m"), list, "kernel/fs/ext4/ext4.ko\n", "", "");
        assert_eq!(
            modules.order("sd-mod").unwrap(),
            [
                "kernel/lib/crc64.ko",
                "kernel/lib/crc64-rocksoft.ko",
                "kernel/block/t10-pi.ko",
                "kernel/drivers/scsi/sd_mod.ko"
            ]
        );
        assert_eq!(modules.order("nilfs2").unwrap(), ["kernel/fs/nilfs2/nilfs2.ko.xz"]);
        assert!(modules.order("ext4").unwrap().is_empty());
        assert_eq!(modules.order("reiser4").unwrap_err().to_string(), "this kernel has no module reiser4");
        let missing = Modules::open(Some(Path::new("/nowhere"))).unwrap_err().to_string();
        assert!(missing.contains("/nowhere/modules.dep"), "{missing}");
    }

    #[test]
    fn soft_dependencies_and_aliases() {
        let list = "kernel/fs/f2fs/f2fs.ko:\nkernel/crypto/crc32_generic.ko:\n";
        let soft = "# comment\nsoftdep f2fs pre: crc32 missing post: other\nsoftdep crc32_generic pre: f2fs\n";
        let aliases = "alias crc32 crc32_generic\nalias pci:v0*d1* f2fs\n";
        let modules = Modules::parse(Path::new("/m"), list, "kernel/lib/crc32.ko\n", soft, aliases);
        assert_eq!(modules.order("f2fs").unwrap(), ["kernel/crypto/crc32_generic.ko", "kernel/fs/f2fs/f2fs.ko"]);
    }
}

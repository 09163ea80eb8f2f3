//! Filesystems of a study's own: the commands of the study, with the places of a trial put in.

use crate::command::CommandLine;
use fstone_model::own::{OwnCommand, OwnFilesystem};
use std::path::{Path, PathBuf};

/// The name of `{directory}` in the directory of a trial.
pub(crate) const OWN_DIRECTORY: &str = "files";

#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnPlaces<'a> {
    pub(crate) definition: &'a OwnFilesystem,
    pub(crate) directory: &'a Path,
    /// Where each client mounts it.
    pub(crate) mounts: &'a [PathBuf],
}

impl OwnPlaces<'_> {
    /// The command for a client; the first where it is for none. `None` when the study has no such command.
    pub(crate) fn command(&self, which: OwnCommand, device: &str, client: usize) -> Option<CommandLine> {
        let (directory, host) = (self.directory.display().to_string(), host());
        let mountpoint = self.mounts.get(client).map(|place| place.display().to_string()).unwrap_or_default();
        let number = client.to_string();
        let value = |name: &str| match name {
            _ if !which.placeholders().contains(&name) => None,
            "mountpoint" => Some(mountpoint.as_str()),
            "client" => Some(number.as_str()),
            "directory" => Some(directory.as_str()),
            "host" => Some(host.as_str()),
            "device" => Some(device),
            _ => None,
        };
        let mut words = self.definition.command(which).iter().map(|word| fill(word, value));
        let program = words.next()?;
        Some(CommandLine::new(&program, words).in_directory(self.directory))
    }
}

/// Where each client mounts: the first where every filesystem is, the others beside `{directory}`.
pub(crate) fn mount_points(definition: &OwnFilesystem, first: &Path, trial: &Path) -> Vec<PathBuf> {
    let others = (1..definition.clients).map(|client| trial.join(format!("client-{client}")));
    std::iter::once(first.to_owned()).chain(others).collect()
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Values in place of names in braces, in one pass: no value is looked at again. In a shell's script `${name}` is the shell's.
fn fill<'v>(word: &str, value: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut filled = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        let (before, after) = rest.split_at(start);
        filled.push_str(before);
        let name = after[1..].split_once('}').map(|(name, _)| name).filter(|_| !before.ends_with('$'));
        match name.and_then(|name| Some((name, value(name)?))) {
            Some((name, value)) => {
                filled.push_str(value);
                rest = &after[name.len() + 2..];
            }
            None => {
                filled.push('{');
                rest = &after[1..];
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// Whether a shell reads a path as one plain word. The commands of a study may be a shell's script, in which a blank in a path
/// would make two of it.
pub(crate) fn is_plain(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+@%=,".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_gets_what_it_may_have() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let definition = OwnFilesystem {
            make: words(&["sh", "-c", "mkdir {directory}/a ${directory} { x } {{device}} {"]),
            mount: words(&["m", "{mountpoint}", "c{client}"]),
            unmount: Vec::new(),
            check: Vec::new(),
            remove: words(&["rm", "{directory}", "{device}"]),
            packages: Vec::new(),
            clients: 2,
        };
        let mounts = mount_points(&definition, Path::new("/w/mnt"), Path::new("/w/t"));
        let places = OwnPlaces { definition: &definition, directory: Path::new("/w/t/files"), mounts: &mounts };
        let typed = |which, client| places.command(which, "/dev/loop7", client).map(|command| command.argv().join("|"));
        let made = "sh|-c|mkdir /w/t/files/a ${directory} { x } {/dev/loop7} {";
        assert_eq!(typed(OwnCommand::Make, 0).as_deref(), Some(made));
        assert_eq!(typed(OwnCommand::Mount, 0).as_deref(), Some("m|/w/mnt|c0"));
        assert_eq!(typed(OwnCommand::Mount, 1).as_deref(), Some("m|/w/t/client-1|c1"));
        assert_eq!(typed(OwnCommand::Unmount, 0), None);
        assert_eq!(typed(OwnCommand::Remove, 0).as_deref(), Some("rm|/w/t/files|{device}"));
    }

    #[test]
    fn only_plain_paths_go_into_scripts() {
        assert!(is_plain(Path::new("/var/tmp/fstone-1/a_b.c")));
        for path in ["/my work", "/a;b", "/a$b", "/a\nb", "/a'b", "/a{host}", "/a*"] {
            assert!(!is_plain(Path::new(path)), "{path:?}");
        }
    }
}

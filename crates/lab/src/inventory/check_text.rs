//! A check as plain text of at most 80 columns.

use super::check::{Ability, Check, FilesystemCheck};
use fstone_model::units::format_bytes;
use std::fmt;

const COLUMNS: usize = 80;

/// Where the second column starts.
const INDENT: usize = 22;

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "This machine")?;
        ability(f, "root", &self.root)?;
        ability(f, "loop devices", &self.loop_devices)?;
        ability(f, "io_uring", &self.io_uring)?;
        ability(f, "KVM", &self.kvm)?;
        ability(f, "user namespaces", &self.user_namespaces)?;
        ability(f, "Linux source", &self.linux_source)?;
        let free = self.free_bytes.map_or_else(|| "unknown".to_owned(), format_bytes);
        line(f, "free space", &format!("{free} in {}", self.work_directory.display()))?;

        writeln!(f, "\nFilesystems")?;
        for filesystem in &self.filesystems {
            line(f, filesystem.kind, &state(filesystem))?;
        }

        writeln!(f, "\nOther programs")?;
        for program in &self.programs {
            let state = if program.installed { "yes" } else { "missing" };
            line(f, program.program, &format!("{state}, for {}", program.purpose))?;
        }

        if let Some(command) = self.install_command() {
            writeln!(f, "\nTo install what is missing:\n  {command}")?;
        }
        Ok(())
    }
}

fn ability(f: &mut fmt::Formatter<'_>, name: &str, ability: &Ability) -> fmt::Result {
    let word = if ability.available { "yes" } else { "no" };
    let text = if ability.detail.is_empty() { word.to_owned() } else { format!("{word}: {}", ability.detail) };
    line(f, name, &text)
}

fn state(filesystem: &FilesystemCheck) -> String {
    let minimum = format_bytes(filesystem.minimum_bytes);
    if let Some(why) = filesystem.unusable {
        return format!("unusable: {why}");
    }
    let missing = filesystem.missing_tools.join(", ");
    match (filesystem.in_kernel, missing.is_empty()) {
        (true, true) => format!("ready, on devices from {minimum}"),
        (true, false) => format!("missing: {missing} (package {})", filesystem.package),
        (false, true) => "not in this kernel".to_owned(),
        (false, false) => format!("not in this kernel; missing: {missing} (package {})", filesystem.package),
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    write!(f, "  {name:<width$}", width = INDENT - 2)?;
    let mut column = INDENT;
    for (index, word) in text.split_whitespace().enumerate() {
        let length = word.chars().count();
        if index > 0 && column + 1 + length > COLUMNS {
            write!(f, "\n{:INDENT$}", "")?;
            column = INDENT;
        } else if index > 0 {
            f.write_str(" ")?;
            column += 1;
        }
        f.write_str(word)?;
        column += length;
    }
    writeln!(f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::ProgramCheck;

    fn example() -> Check {
        let ability = |available, detail: &str| Ability { available, detail: detail.into() };
        let filesystem = |kind, in_kernel, missing_tools: &[&'static str], unusable| FilesystemCheck {
            kind,
            in_kernel,
            missing_tools: missing_tools.to_vec(),
            package: "the-package",
            minimum_bytes: 16 << 20,
            unusable,
        };
        Check {
            root: ability(
                false,
                "no mkfs, mount or fsck without root; use user-mode Linux (--executor uml), or measure a directory",
            ),
            loop_devices: ability(false, "/dev/loop-control: Permission denied (os error 13)"),
            io_uring: ability(true, ""),
            kvm: ability(true, ""),
            user_namespaces: ability(true, ""),
            linux_source: ability(true, "/usr/src/linux-source-6.1.tar.xz"),
            work_directory: "/var/tmp".into(),
            free_bytes: Some(41 << 30),
            filesystems: vec![
                filesystem("ext4", true, &[], None),
                filesystem("xfs", true, &["mkfs.xfs", "xfs_repair"], None),
                filesystem("jfs", false, &[], None),
                filesystem("f2fs", false, &["mkfs.f2fs"], None),
                filesystem("reiser4", false, &["mkfs.reiser4"], Some("it is in no kernel")),
            ],
            programs: vec![ProgramCheck {
                program: "svn",
                package: "subversion",
                purpose: "a tree under version control",
                installed: false,
            }],
        }
    }

    #[test]
    fn a_check_is_plain_text() {
        insta::assert_snapshot!(example().to_string(), @r"
        This machine
          root                no: no mkfs, mount or fsck without root; use user-mode
                              Linux (--executor uml), or measure a directory
          loop devices        no: /dev/loop-control: Permission denied (os error 13)
          io_uring            yes
          KVM                 yes
          user namespaces     yes
          Linux source        yes: /usr/src/linux-source-6.1.tar.xz
          free space          41 GiB in /var/tmp

        Filesystems
          ext4                ready, on devices from 16 MiB
          xfs                 missing: mkfs.xfs, xfs_repair (package the-package)
          jfs                 not in this kernel
          f2fs                not in this kernel; missing: mkfs.f2fs (package
                              the-package)
          reiser4             unusable: it is in no kernel

        Other programs
          svn                 missing, for a tree under version control

        To install what is missing:
          sudo apt-get install subversion the-package
        ");
    }

    #[test]
    fn no_line_is_longer_than_a_terminal() {
        let mut check = example();
        check.kvm.detail = "word ".repeat(100);
        let text = check.to_string();
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert!(text.lines().all(|line| line.trim_end() == line), "no blanks at the end of a line: {text}");
    }
}

//! Finds what in a text reveals whose machine it is from: paths, names of devices that contain a serial number, addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Something that reveals the machine, at the start of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    /// A path, of this length.
    Path(usize),
    /// A device's name, UUID or the like.
    Serial(usize),
    /// An address of the network.
    Address(usize),
    /// Something of this length that looks like one of these and is not.
    Harmless(usize),
}

impl Telling {
    /// In bytes.
    pub(super) const fn length(self) -> usize {
        match self {
            Self::Path(length) | Self::Serial(length) | Self::Address(length) | Self::Harmless(length) => length,
        }
    }

    /// The same with one more slash in front.
    const fn after_slash(self) -> Self {
        match self {
            Self::Path(length) => Self::Path(length + 1),
            Self::Serial(length) => Self::Serial(length + 1),
            Self::Address(length) => Self::Address(length + 1),
            Self::Harmless(length) => Self::Harmless(length + 1),
        }
    }
}

/// Ends a path, unless it began with a quote.
pub(super) const ENDS: &[char] = &['"', '\'', '`', ',', ';', ':', '(', ')', '[', ']', '{', '}', '<', '>', '|', '&'];

/// Directories of libraries, at the root and in /usr.
const LIBRARIES: [&str; 4] = ["lib", "lib32", "lib64", "libexec"];

/// What every system has in them. Other directories there belong to locally installed software.
const IN_LIBRARIES: [&str; 8] =
    ["modules", "firmware", "systemd", "udev", "uml", "debug", "x86_64-linux-gnu", "aarch64-linux-gnu"];

/// What every system has in /usr/share.
const IN_SHARE: [&str; 7] = ["doc", "man", "info", "locale", "misc", "zoneinfo", "fstone"];

/// What every system has in /etc.
const IN_ETC: [&str; 16] = [
    "fstab",
    "mtab",
    "mke2fs.conf",
    "os-release",
    "debian_version",
    "hosts",
    "hostname",
    "resolv.conf",
    "passwd",
    "group",
    "localtime",
    "modprobe.d",
    "modules",
    "mdadm.conf",
    "lvm",
    "sysctl.conf",
];

/// Parts of fstone's own source that studies refer to.
const OUR_OWN: [&str; 3] = ["docs/", "studies/more/", "models/"];

/// Names that systemd gives to network cards begin with these, followed by the card's address.
const CARDS: [&str; 3] = ["enx", "wlx", "wwx"];

/// Paths begin with these even if a letter precedes them, as in `-I/home/…`.
const HOMES: [&str; 10] =
    ["/home/", "/root/", "/Users/", "/mnt/", "/media/", "/tmp/", "/var/", "/srv/", "/opt/", "/export/"];

/// Directories at the root. Two slashes before another name are the address of a share: `//server/share`.
const AT_ROOT: [&str; 20] = [
    "home", "root", "Users", "mnt", "media", "tmp", "var", "srv", "opt", "export", "usr", "etc", "dev", "proc", "sys",
    "run", "bin", "sbin", "lib", "lib64",
];

/// What the links in /dev/disk/by-id begin with.
const BY_ID: [&str; 12] =
    ["ata-", "nvme-", "scsi-", "usb-", "wwn-", "mmc-", "virtio-", "dm-uuid-", "md-uuid-", "eui.", "naa.", "LVM-"];

/// Shorter words that begin like a link in /dev/disk/by-id are ordinary words.
const SHORTEST_ID: usize = 12;

pub(super) const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

/// What begins where `rest` does, after the character `before`.
pub(super) fn telling(rest: &str, before: Option<char>) -> Option<Telling> {
    let first = rest.chars().next()?;
    if first == '/' || first == '~' {
        return path(rest, before);
    }
    if first == '.' {
        return dotted(rest, before);
    }
    if before.is_some_and(is_word) || !(is_word(first) || first == ':') {
        return None;
    }
    let token = &rest[..rest.find(|c: char| c.is_whitespace() || "\"'`,;()[]{}<>|&".contains(c)).unwrap_or(rest.len())];
    // Names of hosts and users are in it, and passwords may be.
    if token.contains("://") {
        return Some(Telling::Address(token.len()));
    }
    let word = &token[..token.find('/').unwrap_or(token.len())];
    if word.len() >= SHORTEST_ID
        && BY_ID.iter().any(|id| word.starts_with(id))
        && word.contains(|c: char| c.is_ascii_digit())
    {
        return Some(Telling::Serial(word.len()));
    }
    let of = |allowed: &str| rest.find(|c: char| !c.is_ascii_hexdigit() && !allowed.contains(c)).unwrap_or(rest.len());
    let ends = |length: usize| !rest[length..].starts_with(is_word);
    let uuid = of("-");
    if is_uuid(&rest[..uuid]) && ends(uuid) {
        return Some(Telling::Serial(uuid));
    }
    let dashes = rest[..uuid].trim_end_matches('-');
    if is_card(dashes, '-') && ends(dashes.len()) {
        return Some(Telling::Address(dashes.len()));
    }
    if let Some(card) = CARDS.iter().find_map(|kind| rest.strip_prefix(kind)) {
        let digits = card.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(card.len());
        if digits == 12 && ends(15) {
            return Some(Telling::Address(15));
        }
    }
    let colons = of(":.");
    let address = rest[..colons].trim_end_matches([':', '.']);
    // A port may stand behind it.
    let four = rest[..of(".")].trim_end_matches('.');
    let address = [address, four].into_iter().find(|address| is_address(address) && ends(address.len()));
    address.map(|address| Telling::Address(address.len())).or_else(|| named(rest, before))
}

/// A path from the directory that the run was started in, as `./…` or `../…`.
fn dotted(rest: &str, before: Option<char>) -> Option<Telling> {
    if before.is_some_and(|c| is_word(c) || "./~)]".contains(c)) {
        return None;
    }
    let found = rest[..extent(rest, before)].trim_end_matches('.');
    let below = found.strip_prefix("../").or_else(|| found.strip_prefix("./"))?;
    if below.split('/').all(|part| matches!(part, "" | "." | "..")) {
        return Some(Telling::Harmless(found.len()));
    }
    Some(Telling::Path(found.len()))
}

/// The same as `directory/file.extension`: "MiB/s" and "read/write" are not paths.
fn named(rest: &str, before: Option<char>) -> Option<Telling> {
    if before.is_some_and(|c| "/.~".contains(c)) || is_ours(rest) {
        return None;
    }
    let end = rest.find(|c: char| !(is_word(c) || "/.+@%=-".contains(c))).unwrap_or(rest.len());
    let found = rest[..end].trim_end_matches(['.', '/']);
    let found = found.split_once('=').map_or(found, |(option, _)| option);
    let (_, file) = found.rsplit_once('/')?;
    is_file(file).then_some(Telling::Path(found.len()))
}

/// Whether a path is one of fstone's own source.
pub(super) fn is_ours(path: &str) -> bool {
    OUR_OWN.iter().any(|own| path.starts_with(own))
}

/// Whether a name has an extension, as users' files have. Kernel sources, which messages of faults name, have an extension of one letter.
fn is_file(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (2..=8).contains(&extension.len())
            && extension.starts_with(|c: char| c.is_ascii_alphabetic())
            && extension.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

/// Where a path ends that may have begun with a quote.
pub(super) fn extent(rest: &str, before: Option<char>) -> usize {
    let end = match before.filter(|c| matches!(c, '"' | '\'' | '`')) {
        Some(quote) => rest.find(quote),
        None => rest.find(|c: char| c.is_whitespace() || ENDS.contains(&c)),
    };
    end.unwrap_or(rest.len())
}

fn path(rest: &str, before: Option<char>) -> Option<Telling> {
    let joined = before.is_some_and(|c| is_word(c) || ".)]/+*-".contains(c));
    if joined && !HOMES.iter().any(|home| rest.starts_with(home)) {
        return None;
    }
    let found = rest[..extent(rest, before)].trim_end_matches('.');
    if let Some(below) = found.strip_prefix("//").filter(|_| before != Some(':')) {
        return if below.split('/').next().is_some_and(|first| AT_ROOT.contains(&first)) {
            path(&rest[1..], before).map(Telling::after_slash)
        } else {
            server(found).map(|_| Telling::Path(found.len()))
        };
    }
    let mut parts = found.split('/');
    let first = parts.next()?;
    let second = parts.next()?;
    if second.is_empty() || !first.chars().all(|c| c == '~' || is_word(c) || c == '-') {
        return None;
    }
    let parts: Vec<&str> = std::iter::once(second).chain(parts).filter(|part| !part.is_empty()).collect();
    if found.len() <= "/s".len() || (first.is_empty() && is_everywhere(&parts)) {
        return Some(Telling::Harmless(found.len()));
    }
    Some(Telling::Path(found.len()))
}

/// The server in `//server/share`, which is what CIFS mounts.
pub(super) fn server(text: &str) -> Option<&str> {
    let (server, share) = text.strip_prefix("//")?.split_once('/')?;
    (is_host(server) && share.starts_with(is_word) && !AT_ROOT.contains(&server)).then_some(server)
}

/// Whether a machine may be called so.
pub(super) fn is_host(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| is_word(c) || "-.".contains(c))
}

/// Whether a path of these parts is the same on every machine: `/usr/bin/tar` and `/dev/sda`, and not `/usr/local/…` or `/dev/vg/…`.
fn is_everywhere(parts: &[&str]) -> bool {
    match parts {
        // One that leads elsewhere.
        parts if parts.contains(&"..") => false,
        ["proc", ..] | ["usr" | "etc" | "dev"] => true,
        ["sys", rest @ ..] => !rest.contains(&"cgroup"),
        ["usr", rest @ ..] => is_system(rest) || matches!(rest, ["share", of, ..] if IN_SHARE.contains(of)),
        ["etc", file, ..] => IN_ETC.contains(file),
        ["dev", device, ..] => is_plain_device(device),
        parts => is_system(parts),
    }
}

/// Whether this is so at the root and in /usr alike: programs, and what comes with the system's libraries.
fn is_system(parts: &[&str]) -> bool {
    match parts {
        ["bin" | "sbin"] | ["bin" | "sbin", _] => true,
        [libraries, rest @ ..] if LIBRARIES.contains(libraries) => match rest {
            [] => true,
            [one] => IN_LIBRARIES.contains(one) || one.contains(".so"),
            [one, ..] => IN_LIBRARIES.contains(one),
        },
        _ => false,
    }
}

/// Whether this is one of the kernel's own names for a device: `sda1`, `nvme0n1`, `loop12`, `dm-3`.
pub(super) fn is_plain_device(name: &str) -> bool {
    const KINDS: [&str; 22] = [
        "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "pmem", "loop", "zram", "ram", "dm-", "md", "ubd", "nbd", "sr",
        "null", "zero", "full", "shm", "fd", "urandom", "random",
    ];
    let rest = KINDS.iter().find_map(|kind| name.strip_prefix(kind));
    rest.is_some_and(|rest| rest.len() <= 8 && rest.chars().all(|c| c.is_ascii_digit() || c.is_ascii_lowercase()))
}

pub(super) fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

/// Whether this is the address of a network card, of six bytes with this character between.
fn is_card(text: &str, between: char) -> bool {
    text.len() == 17 && text.split(between).count() == 6 && text.split(between).all(|byte| byte.len() == 2)
}

/// Addresses of a network card, of IPv4 and of IPv6; not those that every machine has.
fn is_address(text: &str) -> bool {
    let card = is_card(text, ':');
    let four = text.parse::<Ipv4Addr>().is_ok_and(|address| !address.is_loopback() && !address.is_unspecified());
    let six = text.len() > 6 && text.parse::<Ipv6Addr>().is_ok_and(|address| !address.is_loopback());
    card || four || six
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_is_found() {
        let found = |text: &str| telling(text, None);
        for path in [
            "/home/alice/x",
            "~alice/x",
            "~/x",
            "/mnt/fast",
            "/dev/disk/by-id/ata-X",
            "/dev/mapper/vg-home",
            "/scratch",
            "/usr/local/acme/bin/x",
            "/usr/src/acme-merger",
            "/usr/lib/acme/x.so",
            "/usr/bin/../../srv/x",
            "/etc/acme/secret.conf",
            "/lib/acme/x",
            "/sys/fs/cgroup/acme",
            "./acme/study.toml",
            "../acme",
            "acme-merger/study.toml",
            "trees/acme.tar.xz",
            "//server/share",
            "//10.0.0.7/share/acme",
            "//home/alice/x",
        ] {
            assert_eq!(found(&format!("{path}: gone")), Some(Telling::Path(path.len())), "{path}");
        }
        for serial in ["nvme-Samsung_SSD_S4EWNX0N1", "wwn-0x5002538e40a1b2c3", "4f2c1a7e-0b1d-4c55-9d3e-0123456789ab"] {
            assert_eq!(found(&format!("{serial} x")), Some(Telling::Serial(serial.len())), "{serial}");
        }
        for address in [
            "192.168.7.12",
            "52:54:00:12:34:56",
            "52-54-00-ab-CD-56",
            "enx525400123456",
            "fe80::5054:ff:fe12:3456",
            "2001:db8::1",
        ] {
            assert_eq!(found(&format!("{address} x")), Some(Telling::Address(address.len())), "{address}");
        }
        assert_eq!(telling("/home/alice smith/x' y", Some('\'')), Some(Telling::Path(19)));
        assert_eq!(telling("/home/alice", Some('I')), Some(Telling::Path(11)), "-I/home/alice");
    }

    #[test]
    fn what_does_not_tell_stays() {
        for text in [
            "/usr/sbin/mkfs.ext4",
            "/bin/sh",
            "/usr/lib/uml/modules/6.1.0",
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
            "/etc/mke2fs.conf",
            "/dev/sda1",
            "/dev/loop0",
            "/proc/self/mountinfo",
            "/sys/block/sda/queue/scheduler",
            "/usr",
            "/s",
            "//",
            "// x/y",
            "//x",
            "//usr/bin/tar",
            "..",
            "../..",
        ] {
            assert!(matches!(telling(text, None), None | Some(Telling::Harmless(_))), "{text}");
        }
        for (before, text) in [('B', "/s"), ('d', "/or"), (':', "//x"), ('/', "/comment"), ('.', "/study.toml")] {
            assert_eq!(telling(text, Some(before)), None, "{before}{text}");
        }
        for text in ["6.1.0-18", "12:30:01", "nvme-cli", "1.2.3", "127.0.0.1", "/", "/ x", "virtio-blk-pci", "deadbeef"]
            .into_iter()
            .chain([
                "MiB/s",
                "read/write",
                "1/2.5",
                "fs/ext4/inode.c:123",
                "docs/method.md",
                "ext4/xfs.",
                "20-11-23",
                "...",
            ])
        {
            assert_eq!(telling(text, None), None, "{text}");
        }
    }
}

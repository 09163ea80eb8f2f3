//! What in a text tells whose machine it is from: paths, names of devices that hold a serial number, addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Something that tells, at the start of a text.
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

/// Ends a path, unless it began with a quote.
pub(super) const ENDS: &[char] = &['"', '\'', '`', ',', ';', ':', '(', ')', '[', ']', '{', '}', '<', '>', '|', '&'];

/// Directories that are the same on every machine.
const EVERYWHERE: [&str; 8] = ["usr", "bin", "sbin", "lib", "lib64", "proc", "sys", "etc"];

/// Paths begin with these even where a letter stands before them, as in `-I/home/…`.
const HOMES: [&str; 10] =
    ["/home/", "/root/", "/Users/", "/mnt/", "/media/", "/tmp/", "/var/", "/srv/", "/opt/", "/export/"];

/// What the links in /dev/disk/by-id begin with.
const BY_ID: [&str; 12] =
    ["ata-", "nvme-", "scsi-", "usb-", "wwn-", "mmc-", "virtio-", "dm-uuid-", "md-uuid-", "eui.", "naa.", "LVM-"];

/// Shorter words that begin like a link in /dev/disk/by-id are words.
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
    if before.is_some_and(is_word) || !(first.is_ascii_alphanumeric() || first == ':') {
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
    let colons = of(":.");
    let address = rest[..colons].trim_end_matches([':', '.']);
    // A port may stand behind it.
    let four = rest[..of(".")].trim_end_matches('.');
    let address = [address, four].into_iter().find(|address| is_address(address) && ends(address.len()));
    address.map(|address| Telling::Address(address.len()))
}

fn path(rest: &str, before: Option<char>) -> Option<Telling> {
    let joined = before.is_some_and(|c| is_word(c) || ".)]/+*-".contains(c));
    if joined && !HOMES.iter().any(|home| rest.starts_with(home)) {
        return None;
    }
    let end = match before.filter(|c| matches!(c, '"' | '\'' | '`')) {
        Some(quote) => rest.find(quote),
        None => rest.find(|c: char| c.is_whitespace() || ENDS.contains(&c)),
    };
    let length = end.unwrap_or(rest.len());
    let found = rest[..length].trim_end_matches('.');
    let mut parts = found.split('/');
    let first = parts.next()?;
    let second = parts.next()?;
    if second.is_empty() || !first.chars().all(|c| c == '~' || is_word(c) || c == '-') {
        return None;
    }
    if found.len() <= "/s".len() || (first.is_empty() && is_everywhere(second, parts.next())) {
        return Some(Telling::Harmless(found.len()));
    }
    Some(Telling::Path(found.len()))
}

/// Whether a path that begins so is on every machine: `/usr/…`, `/dev/sda`, and not `/dev/disk/…` or `/dev/vg/…`.
fn is_everywhere(first: &str, second: Option<&str>) -> bool {
    EVERYWHERE.contains(&first)
        || (first == "dev" && second.is_some_and(|name| !["disk", "mapper"].contains(&name) && is_plain_device(name)))
}

/// Whether the kernel gives a device such a name by itself: `sda1`, `nvme0n1`, `loop12`, `dm-3`.
pub(super) fn is_plain_device(name: &str) -> bool {
    const KINDS: [&str; 22] = [
        "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "pmem", "loop", "zram", "ram", "dm-", "md", "ubd", "nbd", "sr",
        "null", "zero", "full", "shm", "fd", "urandom", "random",
    ];
    let rest = KINDS.iter().find_map(|kind| name.strip_prefix(kind));
    rest.is_some_and(|rest| rest.len() <= 8 && rest.chars().all(|c| c.is_ascii_digit() || c.is_ascii_lowercase()))
}

fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12]
}

/// Addresses of a network card, of IPv4 and of IPv6; not those that every machine has.
fn is_address(text: &str) -> bool {
    let card = text.len() == 17 && text.split(':').count() == 6 && text.split(':').all(|byte| byte.len() == 2);
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
        ] {
            assert_eq!(found(&format!("{path}: gone")), Some(Telling::Path(path.len())), "{path}");
        }
        for serial in ["nvme-Samsung_SSD_S4EWNX0N1", "wwn-0x5002538e40a1b2c3", "4f2c1a7e-0b1d-4c55-9d3e-0123456789ab"] {
            assert_eq!(found(&format!("{serial} x")), Some(Telling::Serial(serial.len())), "{serial}");
        }
        for address in ["192.168.7.12", "52:54:00:12:34:56", "fe80::5054:ff:fe12:3456", "2001:db8::1"] {
            assert_eq!(found(&format!("{address} x")), Some(Telling::Address(address.len())), "{address}");
        }
        assert_eq!(telling("/home/alice smith/x' y", Some('\'')), Some(Telling::Path(19)));
        assert_eq!(telling("/home/alice", Some('I')), Some(Telling::Path(11)), "-I/home/alice");
    }

    #[test]
    fn what_does_not_tell_stays() {
        for text in ["/usr/sbin/mkfs.ext4", "/dev/sda1", "/dev/loop0", "/proc/self/mountinfo", "/s"] {
            assert!(matches!(telling(text, None), None | Some(Telling::Harmless(_))), "{text}");
        }
        for (before, text) in [('B', "/s"), ('d', "/or"), (':', "//x"), ('/', "/comment"), ('.', "/study.toml")] {
            assert_eq!(telling(text, Some(before)), None, "{before}{text}");
        }
        for text in ["6.1.0-18", "12:30:01", "nvme-cli", "1.2.3", "127.0.0.1", "/", "/ x", "virtio-blk-pci", "deadbeef"]
        {
            assert_eq!(telling(text, None), None, "{text}");
        }
    }
}

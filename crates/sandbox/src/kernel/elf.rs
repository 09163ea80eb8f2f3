//! Just enough of ELF to know a user-mode kernel without running it, and to give it another interpreter.

use std::ops::Range;

const PT_INTERP: u32 = 3;

/// What a program finds its C library's loader under when it was given another one: a link in the directory of its
/// guest. Relative, because the space for it in the program is 28 bytes.
pub(crate) const LOADER_LINK: &str = "ld.so";

/// The loader's own name, in the directory of a kernel's libraries.
pub(crate) const LOADER: &str = "ld-linux-x86-64.so.2";

/// Where in a 64-bit little-endian ELF file the interpreter's path is, terminator included.
pub(super) fn interpreter(image: &[u8]) -> Option<Range<usize>> {
    let half = |at: usize| Some(u16::from_le_bytes(image.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?));
    let long =
        |at: usize| usize::try_from(u64::from_le_bytes(image.get(at..at.checked_add(8)?)?.try_into().ok()?)).ok();
    if !image.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, size, count) = (long(32)?, usize::from(half(54)?), usize::from(half(56)?));
    (0..count).find_map(|index| {
        let at = table.checked_add(index * size)?;
        (word(at)? == PT_INTERP).then_some(())?;
        let (start, bytes) = (long(at.checked_add(8)?)?, long(at.checked_add(32)?)?);
        let range = start..start.checked_add(bytes)?;
        (range.end <= image.len()).then_some(range)
    })
}

/// The path of a program's interpreter; `None` for a static program.
pub(crate) fn interpreter_of(image: &[u8]) -> Option<std::path::PathBuf> {
    let path = std::ffi::CStr::from_bytes_until_nul(image.get(interpreter(image)?)?).ok()?;
    Some(path.to_str().ok()?.into())
}

/// The words of a program that follow each place of `beginning`, as far as their characters are those of versions.
fn words_after<'a>(image: &'a [u8], beginning: &'static [u8]) -> impl Iterator<Item = &'a str> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._~".contains(byte);
    let places = (0..image.len()).filter(move |&at| image[at] == beginning[0] && image[at..].starts_with(beginning));
    places.filter_map(move |at| {
        let rest = &image[at + beginning.len()..];
        let length = rest.iter().take(WORD + 1).take_while(|byte| is_plain(byte)).count();
        (1..=WORD).contains(&length).then(|| std::str::from_utf8(&rest[..length]).ok()).flatten()
    })
}

/// Longest release of a kernel (`__NEW_UTS_LEN`).
const WORD: usize = 64;

/// What `uname -r` is in a kernel; `None` if this program is none.
pub(super) fn release(image: &[u8]) -> Option<String> {
    let mut words = words_after(image, b"Linux version ").filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    image.starts_with(b"\x7fELF").then(|| words.next()).flatten().map(str::to_owned)
}

/// The newest version of the GNU C library whose name is in a program: what the program needs, or what the library is.
pub(super) fn c_library(image: &[u8]) -> Option<(u32, u32)> {
    let version = |word: &str| {
        let (major, minor) = word.split_once('.')?;
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    };
    words_after(image, b"GLIBC_").filter_map(version).max()
}

/// Gives a program another interpreter, no longer than the one it has. Whether it could.
pub(super) fn set_interpreter(image: &mut [u8], path: &str) -> bool {
    let Some(range) = interpreter(image) else { return false };
    if path.len() >= range.len() {
        return false;
    }
    let place = &mut image[range];
    place.fill(0);
    place[..path.len()].copy_from_slice(path.as_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_interpreter_of_a_shell_is_found_and_replaced() {
        let mut shell = std::fs::read("/bin/sh").unwrap();
        let Some(range) = interpreter(&shell) else {
            return eprintln!("skipped: /bin/sh is static here");
        };
        assert!(shell[range.clone()].starts_with(b"/lib"), "{:?}", &shell[range.clone()]);
        assert!(set_interpreter(&mut shell, "ld.so"));
        assert!(shell[range.clone()].starts_with(b"ld.so\0") && shell[range].ends_with(b"\0"));
        assert!(!set_interpreter(&mut shell, &"x".repeat(200)));
    }

    #[test]
    fn a_kernel_is_known_by_what_is_in_it() {
        let mut image =
            b"\x7fELF\x02\x01 Linux version %s \0Linux version 6.1.176-x+1 (buildd@x)\0GLIBC_2.34\0GLIBC_2.9\0"
                .to_vec();
        assert_eq!(release(&image).as_deref(), Some("6.1.176-x+1"));
        assert_eq!((c_library(&image), c_library(b"GLIBC_2.2.5\0GLIBC_PRIVATE\0")), (Some((2, 34)), Some((2, 2))));
        image[0] = b'#';
        assert_eq!(release(&image), None, "a script");
        for none in [&b"\x7fELF Linux version \0"[..], b"\x7fELF Linux version 6\x1b[0m", b"\x7fELF", b""] {
            assert!(release(none).is_none_or(|release| release == "6"), "{none:?}");
        }
        let long = format!("\x7fELFLinux version {}", "1".repeat(80));
        assert_eq!(release(long.as_bytes()), None);
    }

    proptest! {
        #[test]
        fn no_file_panics(rest in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut image = b"\x7fELF\x02\x01".to_vec();
            image.extend(rest);
            let _ = set_interpreter(&mut image, "ld.so");
        }
    }
}

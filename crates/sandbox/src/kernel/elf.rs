//! Just enough of ELF to give a program another interpreter.

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

    proptest! {
        #[test]
        fn no_file_panics(rest in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut image = b"\x7fELF\x02\x01".to_vec();
            image.extend(rest);
            let _ = set_interpreter(&mut image, "ld.so");
        }
    }
}

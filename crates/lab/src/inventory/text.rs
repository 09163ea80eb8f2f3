//! Small files of /proc, /sys and /etc: bounded, and never with anything in them that a terminal would obey.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest file that is read. /proc/cpuinfo of 1,000 CPUs is about 1.5 MB.
const FILE_BYTES: u64 = 4 << 20;

/// Longest single value, such as a queue setting.
const LINE_BYTES: usize = 1024;

/// A text; `None` when it cannot be read.
pub(super) fn read(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A value of one line; `None` when it cannot be read or is empty.
pub(super) fn read_line(path: &Path) -> Option<String> {
    let line = clean(&read(path)?);
    (!line.is_empty()).then_some(line)
}

/// A text as one printable line: control characters are blanks, and blanks at its ends are gone.
pub(super) fn clean(text: &str) -> String {
    let printable: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    clip(printable.trim(), LINE_BYTES).trim_end().to_owned()
}

pub(super) fn clip(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short_and_printable() {
        assert_eq!(clean("\t[none] mq-deadline \n"), "[none] mq-deadline");
        assert_eq!(clean("a\u{1b}[31mb\0"), "a [31mb");
        assert_eq!(clean(&"é".repeat(1000)).len(), LINE_BYTES);
        assert_eq!(clip("aé", 2), "a");
        assert_eq!(read(Path::new("/nonexistent")), None);
    }
}

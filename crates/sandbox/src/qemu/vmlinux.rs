//! The kernel proper out of a bzImage. QEMU without KVM spends ten seconds in the decompressor; a vmlinux is started
//! directly. Format: linux/Documentation/arch/x86/boot.rst, header fields of boot protocol 2.08.

use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Why there is no vmlinux; completes "failed to unpack the kernel: …".
#[derive(Debug, thiserror::Error)]
pub enum VmlinuxError {
    #[error("it is neither a vmlinux nor a bzImage")]
    Format,
    #[error("its compression (first bytes {0:02x?}) is not known")]
    Compression([u8; 6]),
    #[error("{tool}: {problem}")]
    Tool {
        /// xz, gzip or zstd.
        tool: &'static str,
        problem: String,
    },
}

pub(super) fn tool_for(bytes: &[u8]) -> Option<&'static str> {
    const MAGICS: [(&[u8], &str); 4] =
        [(b"\xFD7zXZ\0", "xz"), (b"\x28\xB5\x2F\xFD", "zstd"), (b"\x1F\x8B\x08", "gzip"), (b"\x02\x21\x4C\x18", "lz4")];
    MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, tool)| *tool)
}

/// Undoes a compression with the host's tool. What follows the compressed data is ignored: the kernel's build appends
/// the size to it.
pub(super) fn decompress(tool: &'static str, bytes: &[u8]) -> Result<Vec<u8>, VmlinuxError> {
    let failed = |problem: String| VmlinuxError::Tool { tool, problem };
    let mut child = Command::new(tool)
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let mut input = child.stdin.take().ok_or_else(|| failed("it has no input".to_owned()))?;
    let output = std::thread::scope(|scope| {
        scope.spawn(move || match input.write_all(bytes) {
            // It has seen enough and closed its input.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        });
        child.wait_with_output()
    })
    .map_err(|error| failed(error.to_string()))?;
    // Complaints about the appended size are expected: what counts is what came out.
    if output.stdout.is_empty() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(output.stdout)
}

pub(super) fn extract(image: &[u8]) -> Result<Vec<u8>, VmlinuxError> {
    if image.starts_with(b"\x7fELF") {
        return Ok(image.to_vec());
    }
    let payload = payload(image).ok_or(VmlinuxError::Format)?;
    let Some(tool) = tool_for(payload) else {
        let mut first = [0; 6];
        let count = payload.len().min(6);
        first[..count].copy_from_slice(&payload[..count]);
        return Err(VmlinuxError::Compression(first));
    };
    let kernel = decompress(tool, payload)?;
    if kernel.starts_with(b"\x7fELF") { Ok(kernel) } else { Err(VmlinuxError::Format) }
}

/// The compressed part of a bzImage.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    // Zero means four, for the oldest boot loaders.
    let setup_sectors = match *image.get(0x1f1)? {
        0 => 4,
        count => usize::from(count),
    };
    let start = (setup_sectors + 1) * 512 + word(0x248)?;
    image.get(start..start.checked_add(word(0x24c)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bzimage_of_our_own() {
        let mut image = vec![0u8; 0x600];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&0x100u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&8u32.to_le_bytes());
        image[0x500..0x508].copy_from_slice(b"\x28\xB5\x2F\xFDrest");
        assert_eq!(payload(&image), Some(b"\x28\xB5\x2F\xFDrest".as_slice()));
        assert_eq!(tool_for(payload(&image).unwrap()), Some("zstd"));
        assert!(matches!(extract(b"nothing"), Err(VmlinuxError::Format)));
        image[0x500..0x504].copy_from_slice(b"what");
        assert!(matches!(extract(&image), Err(VmlinuxError::Compression(_))));
        image[0x24c..0x250].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(extract(&image), Err(VmlinuxError::Format)));
        assert_eq!(extract(b"\x7fELFrest").unwrap(), b"\x7fELFrest");
    }

    #[test]
    fn trailing_bytes_do_not_matter() {
        let compressed = Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = compressed else { return eprintln!("skipped: gzip is not installed") };
        child.stdin.take().unwrap().write_all(b"\x7fELF and more").unwrap();
        let mut bytes = child.wait_with_output().unwrap().stdout;
        bytes.extend([1, 2, 3, 4]);
        assert_eq!(decompress("gzip", &bytes).unwrap(), b"\x7fELF and more");
    }
}
